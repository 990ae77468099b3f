//! The responder half of the card around on-card RAM: wires, and ends for what has no other side here.
use super::keys::{KeyWrite, RamKeys};
use super::paths::{Paths, PeerWrite};
use super::ram::Memory;
use super::ring::{Ring, RingSetup};
use super::sort::Sort;
use crate::bus::{AxisSink, AxisSrc, HdrSrc, MsgSink, MsgSrc};
use crate::context::bus::CtxClient;
use crate::context::store::CtxStore;
use crate::msg::*;
use crate::net::{
    cells::{CellBuffer, CellWriter},
    rx::RxFront,
    tx::Egress,
};
use crate::rdma::{complete::Complete, gather::Gather, mover::Mover, place::Place};
use crate::records::{PathCtx, RspCtx};
use crate::roce::{
    ackgen::AckGen,
    header::{self, HeaderBuilder},
    reply::Reply,
    resp::Responder,
};
use crate::stream::{MsgArb, MsgFifo};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// log2 of the cells and of the bytes in which answers are put together: 32 KiB, which a Gigabit link fills in a quarter of a millisecond,
/// and 16 KiB, against 128 and 64 of the card, whose block RAMs the ECPIX-5 has not to spare.
const LOG_CELLS: usize = 7;
const LOG_ASSEMBLY: usize = 14;
/// log2 of the requests that may wait for atomics: many, because from here on they lie in block RAM, which costs no LUTs.
const LOG_WAITING: usize = 7;

/// `LQ`: log2 of the queue pairs, `LR` = `LQ` + 5, `LM`: log2 of the keys, `A`: log2 of the RAM's rows of 8 bytes.
#[derive(LogicBlock, BlockDefault)]
pub struct TargetCore<const LQ: usize, const LR: usize, const LM: usize, const A: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous. The next 128 cycles no frame finds room.
    pub reset: Signal<In, Bit>,
    /// From the MAC, always taken; `rx_err` with the last beat: a bad frame.
    pub rx: AxisSink<64, 8>,
    pub rx_err: Signal<In, Bit>,
    pub tx: AxisSrc<64, 8>,
    /// Responder contexts.
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    pub key: Signal<In, KeyWrite>,
    pub key_en: Signal<In, Bit>,
    pub peer: Signal<In, PeerWrite>,
    pub peer_en: Signal<In, Bit>,
    pub ring: Signal<In, RingSetup>,
    pub ring_consumer: Signal<In, Bits<16>>,
    pub ring_head: Signal<Out, Bits<16>>,
    /// The card's addresses.
    pub mac: Signal<In, Bits<48>>,
    pub ip: Signal<In, Bits<32>>,
    /// Pulse; `barrier_done` pulses once everything accepted before is done.
    pub barrier: Signal<In, Bit>,
    pub barrier_done: Signal<Out, Bit>,
    /// One pulse per event, [`EVENTS`].
    pub events: Signal<Out, Bits<8>>,
    front: RxFront<64, 8, 3>,
    #[init(CellBuffer::new(LOG_CELLS))]
    cells: CellBuffer<64, 8>,
    sort: Sort,
    resp: Responder<LQ, LOG_WAITING>,
    rsp_ctx: CtxStore<RspCtx, LQ, 2>,
    slots: Ring,
    // Receives are of a ring here, and there when their order is made.
    #[init(Place::new(false))]
    place: Place<LQ>,
    keys: RamKeys<LM>,
    mover: Mover<64, 8, 3>,
    complete: Complete<LQ>,
    reply: Reply<LQ, LR>,
    ackgen: AckGen<LQ>,
    gather: Gather,
    paths: Paths<LQ>,
    /// One share: it has one function, and no special queue pair.
    header: HeaderBuilder<64, 8, LQ>,
    #[init(Egress::new(LOG_ASSEMBLY, header::BYTES.ilog2() as usize, [0, 0]))]
    egress: Egress<64, 8, 3, 1, 7>,
    memory: Memory<A>,
    error_from_complete: MsgFifo<QpError, LQ>,
    error_from_reply: MsgFifo<QpError, LQ>,
    errors: MsgArb<QpError, 2>,
    reset_q: DFF<Bit>,
    #[init(Constant::new(TxOp::default()))]
    no_packet: Constant<TxOp>,
    #[init(Constant::new(PlaceOp::default()))]
    no_order: Constant<PlaceOp>,
    #[init(Constant::new(RqGrant::default()))]
    no_grant: Constant<RqGrant>,
    rx_stat: Signal<Local, Bits<8>>,
    resp_stat: Signal<Local, Bits<16>>,
    tx_stat: Signal<Local, Bits<2>>,
}

/// What the bits of [`TargetCore::events`] count.
pub const EVENTS: &[&str] = &["rx_roce", "rx_bad", "rx_no_buffer", "requests", "qp_errors", "keys_refused", "tx_frames", "recv_written"];

#[kernel]
impl<const LQ: usize, const LR: usize, const LM: usize, const A: usize> Logic for TargetCore<LQ, LR, LM, A> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, reset_q);
        self.reset_q.d.next = self.reset.val();
        clock!(self, clock, front, cells, sort, resp, rsp_ctx, slots, place, keys, mover, complete, reply, ackgen, gather, paths, header, egress);
        clock!(self, clock, memory, error_from_complete, error_from_reply, errors);
        self.front.reset.next = self.reset_q.q.val();
        self.cells.reset.next = self.reset_q.q.val();
        self.sort.reset.next = self.reset_q.q.val();
        self.resp.reset.next = self.reset_q.q.val();
        self.rsp_ctx.reset.next = self.reset_q.q.val();
        self.slots.reset.next = self.reset_q.q.val();
        self.place.reset.next = self.reset_q.q.val();
        self.keys.reset.next = self.reset_q.q.val();
        self.mover.reset.next = self.reset_q.q.val();
        self.complete.reset.next = self.reset_q.q.val();
        self.reply.reset.next = self.reset_q.q.val();
        self.ackgen.reset.next = self.reset_q.q.val();
        self.gather.reset.next = self.reset_q.q.val();
        self.paths.reset.next = self.reset_q.q.val();
        self.header.reset.next = self.reset_q.q.val();
        self.egress.reset.next = self.reset_q.q.val();
        self.memory.reset.next = self.reset_q.q.val();
        self.error_from_complete.reset.next = self.reset_q.q.val();
        self.error_from_reply.reset.next = self.reset_q.q.val();
        self.errors.reset.next = self.reset_q.q.val();

        // In.
        AxisSink::<64, 8>::link(&mut self.rx, &mut self.front.s);
        self.front.s_err.next = self.rx_err.val();
        // There are no functions, hence no networks.
        self.front.network.next.tunnel = false;
        self.front.network.next.function = bits::<12>(0);
        self.front.note.next = bits::<24>(0);
        self.front.peer_foreign.next = false;
        self.front.owner.next = bits::<6>(0);
        self.front.owned.next = false;
        CellWriter::<64>::join(&mut self.front.m_cell, &mut self.cells.s_write);
        // Whatever it is: `sort` looks at it.
        self.sort.s.data.next = self.front.m_desc.data.val();
        self.sort.s.valid.next = self.front.m_desc.valid.val() | self.front.m_raw.valid.val();
        self.front.m_desc.ready.next = self.sort.s.ready.val();
        self.front.m_raw.ready.next = self.sort.s.ready.val();
        MsgSrc::<RxRequest>::join(&mut self.sort.m_resp, &mut self.resp.s_rx);
        MsgSrc::<CellRead>::join(&mut self.sort.m_free, &mut self.cells.s_read[1]);
        MsgSrc::<CellRead>::join(&mut self.mover.m_cell, &mut self.cells.s_read[0]);
        AxisSrc::<64, 8>::join(&mut self.cells.m_data, &mut self.mover.s_cell);
        self.cells.s_retain.valid.next = false;
        self.cells.s_retain.data.next = bits::<9>(0);

        // Responder.
        CtxClient::<RspCtx>::join(&mut self.resp.ctx[0], &mut self.rsp_ctx.client[0]);
        CtxClient::<RspCtx>::join(&mut self.resp.ctx[1], &mut self.rsp_ctx.client[1]);
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.rsp_ctx.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.rsp_ctx.m_ctl);
        MsgSrc::<RqAlloc>::join(&mut self.resp.m_alloc, &mut self.slots.s_alloc);
        MsgSrc::<RqGrant>::join(&mut self.slots.m_grant, &mut self.resp.s_grant);
        MsgSrc::<PlaceOp>::join(&mut self.resp.m_op, &mut self.place.s_op);
        // Every receive is asked for before its order is made.
        self.resp.posted.next = bits::<4>(0);
        self.resp.told.next = false;
        self.place.s_late.valid.next = false;
        self.place.s_late.data.next = self.no_grant.val();
        // Raw frames do not come here; receives are those of the ring, which nobody flushes.
        self.resp.raw_qpn.next = bits::<32>(0);
        self.resp.m_rq.ready.next = true;
        self.resp.s_flush.valid.next = false;
        self.resp.s_flush.data.next.qpn = bits::<24>(0);
        self.resp.s_flush.data.next.index = bits::<16>(0);
        self.slots.setup.next = self.ring.val();
        self.slots.consumer.next = self.ring_consumer.val();
        self.ring_head.next = self.slots.head.val();

        // Placement.
        MsgSrc::<MrReq>::join(&mut self.place.m_mr, &mut self.keys.s_req[1]);
        MsgSrc::<MrResp>::join(&mut self.keys.m_resp[1], &mut self.place.s_mr);
        MsgSrc::<MrChange>::join(&mut self.place.m_change, &mut self.keys.s_change);
        MsgSrc::<MrChanged>::join(&mut self.keys.m_changed, &mut self.place.s_changed);
        MsgSrc::<WqeRead>::join(&mut self.place.m_wqe, &mut self.slots.s_read);
        MsgSrc::<WqeData>::join(&mut self.slots.m_read, &mut self.place.s_wqe);
        MsgSrc::<WqeFree>::join(&mut self.place.m_free, &mut self.slots.s_free);
        MsgSrc::<MoveOp>::join(&mut self.place.m_move, &mut self.mover.s_move);
        MsgSrc::<DoneOp>::join(&mut self.place.m_done, &mut self.complete.s_done);
        self.keys.write.next = self.key.val();
        self.keys.write_en.next = self.key_en.val();
        // No answers to READs of our own.
        self.place.s_answer.valid.next = false;
        self.place.s_answer.data.next = self.no_order.val();
        self.place.m_again.ready.next = true;
        self.place.s_again.valid.next = false;
        self.place.s_again.data.next.data = bits::<128>(0);
        self.place.s_again.data.next.more = bits::<128>(0);
        self.place.s_again.data.next.err = false;
        self.place.m_again_free.ready.next = true;
        self.complete.m_read.ready.next = true;

        // Memory.
        MsgSrc::<WrCmd>::join(&mut self.mover.m_cmd, &mut self.memory.s_cmd);
        AxisSrc::<64, 8>::join(&mut self.mover.m_data, &mut self.memory.s_data);
        MsgSrc::<WrDone>::join(&mut self.memory.m_cmd_done, &mut self.complete.s_wr);
        MsgSrc::<RdCmd>::join(&mut self.reply.m_rd, &mut self.memory.s_rd);
        MsgSrc::<RdRow>::join(&mut self.memory.m_rd, &mut self.reply.s_rd);
        MsgSrc::<WrSmall>::join(&mut self.reply.m_wr, &mut self.memory.s_small[0]);
        MsgSrc::<WrDone>::join(&mut self.memory.m_small_done[0], &mut self.reply.s_wr);
        // Nobody keeps payload away from atomics here.
        self.reply.atomic_clear.next = true;
        MsgSrc::<WrSmall>::join(&mut self.slots.m_wr, &mut self.memory.s_small[1]);
        MsgSrc::<WrDone>::join(&mut self.memory.m_small_done[1], &mut self.slots.s_done);
        MsgSrc::<PayCmd>::join(&mut self.gather.m_pay, &mut self.memory.s_pay);
        // It sends answers only, and obeys no pause.
        self.egress.hold.next = false;
        self.egress.shallow.next = false;
        self.egress.round.next = bits::<2>(0);
        self.gather.round.next = bits::<2>(0);
        MsgSrc::<PayDone>::join(&mut self.memory.m_pay_done, &mut self.egress.s_pay_done);
        self.egress.asm_we.next = self.memory.asm_we.val();
        self.egress.asm_row1.next = self.memory.asm_row1.val();
        self.egress.asm_addr.next = self.memory.asm_addr.val();
        self.egress.asm_data.next = self.memory.asm_data.val();

        // Completion and answers.
        MsgSrc::<CqeReq>::join(&mut self.complete.m_cqe, &mut self.slots.s_cqe);
        MsgSrc::<ReplyOp>::join(&mut self.complete.m_ack, &mut self.reply.s_ack);
        MsgSrc::<AckOp>::join(&mut self.reply.m_ack, &mut self.ackgen.s_ack);
        MsgSrc::<TxOp>::join(&mut self.reply.m_op, &mut self.gather.s_reply);
        MsgSrc::<MrReq>::join(&mut self.gather.m_mr, &mut self.keys.s_req[0]);
        MsgSrc::<MrResp>::join(&mut self.keys.m_resp[0], &mut self.gather.s_mr);
        MsgSrc::<SlotReq>::join(&mut self.gather.m_slot, &mut self.egress.s_slot[0]);
        MsgSrc::<SlotGrant>::join(&mut self.egress.m_slot[0], &mut self.gather.s_slot);
        MsgSrc::<SlotReq>::join(&mut self.ackgen.m_slot, &mut self.egress.s_slot[1]);
        MsgSrc::<SlotGrant>::join(&mut self.egress.m_slot[1], &mut self.ackgen.s_slot);
        MsgSrc::<HdrOp>::join(&mut self.gather.m_hdr, &mut self.header.s_op[0]);
        MsgSrc::<HdrOp>::join(&mut self.ackgen.m_hdr, &mut self.header.s_op[1]);
        MsgSrc::<SlotSeal>::join(&mut self.gather.m_seal, &mut self.egress.s_seal[0]);
        MsgSrc::<SlotSeal>::join(&mut self.ackgen.m_seal, &mut self.egress.s_seal[1]);
        CtxClient::<PathCtx>::join(&mut self.header.ctx[0], &mut self.paths.client[0]);
        CtxClient::<PathCtx>::join(&mut self.header.ctx[1], &mut self.paths.client[1]);
        self.paths.mac.next = self.mac.val();
        self.paths.ip.next = self.ip.val();
        self.paths.write.next = self.peer.val();
        self.paths.write_en.next = self.peer_en.val();
        self.paths.ask.next = self.front.peer.val();
        self.front.peer_stranger.next = self.paths.stranger.val();
        // What is not RoCE is looked at by `sort`: no table of stations.
        self.front.other_station.next = false;
        self.front.peer_line.next = bits::<24>(0);
        HdrSrc::<64>::join(&mut self.header.m_row, &mut self.egress.s_row[0]);
        MsgSrc::<HdrDone>::join(&mut self.header.m_ready, &mut self.egress.s_hdr[0]);
        MsgSrc::<TxDone>::join(&mut self.egress.m_reply_done, &mut self.reply.s_tx_done);
        AxisSrc::<64, 8>::link(&mut self.tx, &mut self.egress.m);
        // No orders of a requester, no buffers of work requests.
        self.gather.s_op.valid.next = false;
        self.gather.s_op.data.next = self.no_packet.val();
        self.gather.m_wqe.ready.next = true;
        self.gather.s_wqe.valid.next = false;
        self.gather.s_wqe.data.next.data = bits::<128>(0);
        self.gather.s_wqe.data.next.more = bits::<128>(0);
        self.gather.s_wqe.data.next.err = false;
        self.gather.m_free.ready.next = true;
        self.gather.m_inline.ready.next = true;
        self.egress.s_inline.valid.next = false;
        self.egress.s_inline.data.next.dst = bits::<18>(0);
        self.egress.s_inline.data.next.len = bits::<6>(0);
        self.egress.s_inline.data.next.data = bits::<256>(0);
        self.egress.m_done.ready.next = true;

        // Errors.
        MsgSrc::<QpError>::join(&mut self.complete.m_error, &mut self.error_from_complete.s);
        MsgSrc::<QpError>::join(&mut self.error_from_complete.m, &mut self.errors.s[0]);
        MsgSrc::<QpError>::join(&mut self.reply.m_error, &mut self.error_from_reply.s);
        MsgSrc::<QpError>::join(&mut self.error_from_reply.m, &mut self.errors.s[1]);
        MsgSrc::<QpError>::join(&mut self.errors.m, &mut self.resp.s_error[0]);
        self.resp.s_error[1].valid.next = false;
        self.resp.s_error[1].data.next.qpn = bits::<24>(0);
        self.resp.s_error[1].data.next.epoch = bits::<8>(0);
        self.resp.s_error[1].data.next.side = false;
        self.resp.s_error[1].data.next.cause = bits::<8>(0);
        self.resp.m_error.ready.next = true;
        self.resp.over.next = self.reply.over.val();
        self.resp.over_qpn.next = self.reply.over_qpn.val();
        self.resp.over_count.next = self.reply.over_count.val();
        // Keys never go while atomics come.
        self.place.phase.next = false;
        self.resp.answered.next = self.reply.answered.val();
        self.resp.answered_qpn.next = self.reply.answered_qpn.val();
        self.resp.answered_epoch.next = self.reply.answered_epoch.val();
        self.resp.answered_count.next = self.reply.answered_count.val();

        // What was accepted before a barrier is done when it has passed all three, and what they have ordered when it has passed the gatherer.
        self.resp.barrier.next = self.barrier.val();
        self.reply.barrier.next = self.complete.barrier_done.val();
        self.reply.ends.next = false;
        self.reply.ends_qpn.next = bits::<24>(0);
        self.gather.fence.next = self.reply.barrier_done.val();
        self.barrier_done.next = self.gather.passed.val();

        self.rx_stat.next = self.front.stat.val();
        self.resp_stat.next = self.resp.stat.val();
        self.tx_stat.next = self.egress.stat.val();
        self.events.next = bit_cast::<8, 1>(self.rx_stat.val().get_bits::<1>(1))
            | (bit_cast::<8, 1>((self.rx_stat.val().get_bit(3) | self.rx_stat.val().get_bit(4) | self.rx_stat.val().get_bit(6) | self.front.strange.val().get_bit(0)).into()) << 1)
            | (bit_cast::<8, 1>(self.rx_stat.val().get_bits::<1>(5)) << 2)
            | (bit_cast::<8, 1>(self.resp_stat.val().get_bits::<1>(0)) << 3)
            | (bit_cast::<8, 1>(self.resp.m_error.valid.val().into()) << 4)
            | (bit_cast::<8, 1>(self.keys.refused.val().into()) << 5)
            | (bit_cast::<8, 1>(self.tx_stat.val().get_bits::<1>(0)) << 6)
            | (bit_cast::<8, 1>(self.slots.written.val().into()) << 7);
    }
}
