//! Payload of outgoing packets: from packet orders to reads into the assembly buffer. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::codes::ONLY_FREE;
use crate::msg::*;
use crate::stream::{Fence, MsgFifo};
use ferric_abi::codes::QpType;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

mod copy;
mod fit;
mod front;
mod issue;
#[cfg(test)]
mod tests;
mod walk;

use copy::{Copier, Piece, Sealed};
use front::Front;
use issue::Issue;
use walk::Walk;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_op", &["m_slot", "s_slot", "m_hdr", "m_wqe", "s_wqe", "m_free", "m_mr", "s_mr", "m_pay", "m_seal", "m_inline"]),
    ("s_reply", &["m_slot", "s_slot", "m_hdr", "m_wqe", "s_wqe", "m_free", "m_mr", "s_mr", "m_pay", "m_seal", "m_inline"]),
    // Inline data are read when their packet has its place; the walker takes its own answers at once.
    ("s_wqe", &["m_inline", "m_free"]),
    // Key answers wait for the packet's place, in the 32 places of the key unit, and for the inline data of those before it.
    ("s_mr", &["m_slot", "s_slot", "m_hdr", "m_pay", "m_seal", "m_wqe", "s_wqe", "m_inline", "m_free"]),
    // 32 places: with all taken the oldest packet has been walked, for order by order goes to front and walker at once.
    ("s_slot", &["m_hdr", "m_mr", "s_mr", "m_pay", "m_seal", "m_wqe", "s_wqe", "m_inline", "m_free"]),
    // Of a packet that has its slot, and those before it. The walker is there or beyond, so the answers in front of the next read are this packet's and find its place: there is no wait for a slot.
    ("m_seal", &["m_hdr", "m_wqe", "s_wqe", "m_mr", "s_mr", "m_pay", "m_seal", "m_inline", "m_free"]),
    ("passed", &["fence", "m_slot", "s_slot", "m_hdr", "m_wqe", "s_wqe", "m_free", "m_mr", "s_mr", "m_pay", "m_seal", "m_inline"]),
];

/// A packet order as the walker needs it. `pay_len`: a raw frame's, too. `only_free`: no packet.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct GatherJob {
    pub function: Bits<12>,
    pub pd: Bits<24>,
    pub pay_off: Bits<32>,
    pub pay_len: Bits<14>,
    pub handle: Bits<8>,
    pub num_sge: Bits<8>,
    pub inline_data: Bit,
    /// A datagram: its address stands in front of the list.
    pub addressed: Bit,
    pub free: Bit,
    pub only_free: Bit,
    pub notify: Bit,
    pub qpn: Bits<24>,
    pub epoch: Bits<8>,
    pub psn: Bits<24>,
    pub wqe_index: Bits<16>,
    pub reply: Bit,
    pub round: Bits<2>,
    pub sge: Bits<128>,
}

/// A granted slot: `dst` is the first payload byte in the assembly buffer. Front to issuer, one per packet.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Place {
    pub slot: Bits<8>,
    pub dst: Bits<18>,
}

/// Whose segments follow, walker to issuer, one per packet.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Owner {
    pub function: Bits<12>,
    pub notify: Bit,
    pub qpn: Bits<24>,
    pub epoch: Bits<8>,
    pub psn: Bits<24>,
    pub wqe_index: Bits<16>,
    pub reply: Bit,
    pub round: Bits<2>,
    /// Where inline data are, and whether the buffer goes back behind them.
    pub handle: Bits<8>,
    pub free: Bit,
}

/// A piece of payload from byte `at` of the packet's payload on, walker to issuer. `keyed`: within one page and one entry, and a key answer belongs to it.
/// `inline_data`: within two granules of the buffer, from `granule` on. With neither it only ends the packet, with `status` (`CqeStatus`).
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Segment {
    pub len: Bits<13>,
    pub at: Bits<14>,
    pub keyed: Bit,
    pub inline_data: Bit,
    pub granule: Bits<5>,
    pub last: Bit,
    pub status: Bits<8>,
}

/// The gatherer.
#[derive(LogicBlock, Default)]
pub struct Gather {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_op: MsgSink<TxOp>,
    /// The responder's, packet by packet in turn with the requester's.
    pub s_reply: MsgSink<TxOp>,
    pub m_wqe: MsgSrc<WqeRead>,
    pub s_wqe: MsgSink<WqeData>,
    pub m_free: MsgSrc<WqeFree>,
    pub m_mr: MsgSrc<MrReq>,
    pub s_mr: MsgSink<MrResp>,
    pub m_slot: MsgSrc<SlotReq>,
    pub s_slot: MsgSink<SlotGrant>,
    pub m_pay: MsgSrc<PayCmd>,
    pub m_hdr: MsgSrc<HdrOp>,
    pub m_seal: MsgSrc<SlotSeal>,
    pub m_inline: MsgSrc<InlineWrite>,
    /// The queue pair of the packet whose payload is asked for, and its round in the same cycle (`roce/rounds`).
    pub look: Signal<Out, Bits<24>>,
    pub round: Signal<In, Bits<2>>,
    /// Pulse in; pulse out when all payload of every packet order taken before has been asked of the host.
    pub fence: Signal<In, Bit>,
    pub passed: Signal<Out, Bit>,
    front: Front,
    walk: Walk,
    issue: Issue,
    copier: Copier,
    owners: MsgFifo<Owner, 5>,
    segments: MsgFifo<Segment, 5>,
    /// Packets between their order and their seal, and payload reads behind that.
    packets: Fence<6>,
    reads: Fence<3>,
    /// The next order is a reply.
    turn: DFF<Bit>,
    op: Signal<Local, TxOp>,
    /// Payload bytes of the requester's order, a raw frame's, too.
    length: Signal<Local, Bits<14>>,
    op_valid: Signal<Local, Bit>,
    op_ready: Signal<Local, Bit>,
    only_free: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Gather {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, turn);
        clock!(self, clock, front, walk, issue, copier, owners, segments, packets, reads);
        self.front.reset.next = self.reset.val();
        self.walk.reset.next = self.reset.val();
        self.issue.reset.next = self.reset.val();
        self.copier.reset.next = self.reset.val();
        self.owners.reset.next = self.reset.val();
        self.segments.reset.next = self.reset.val();
        self.packets.reset.next = self.reset.val();
        self.reads.reset.next = self.reset.val();
        // An order goes to both at once: the front asks for a slot while the walker asks for keys.
        self.op.next = self.s_op.data.val();
        self.op_valid.next = self.s_op.valid.val();
        if self.turn.q.val() {
            self.op.next = self.s_reply.data.val();
            self.op_valid.next = self.s_reply.valid.val();
        }
        self.only_free.next = self.op.val().opcode == ONLY_FREE;
        self.op_ready.next = self.front.op_ready.val() & self.walk.s_job.ready.val();
        self.s_op.ready.next = self.op_ready.val() & !self.turn.q.val();
        self.s_reply.ready.next = self.op_ready.val() & self.turn.q.val();
        // Chosen a cycle ahead, so that the requester's orders do not wait for a choice while there are no replies. An order that is
        // offered stays until it is taken.
        if self.turn.q.val() {
            self.turn.d.next = !(self.s_reply.valid.val() & self.op_ready.val());
        } else if !self.s_op.valid.val() | self.op_ready.val() {
            self.turn.d.next = self.s_reply.valid.val();
        }
        self.front.op.next = self.op.val();
        self.front.op_valid.next = self.op_valid.val() & self.walk.s_job.ready.val() & !self.only_free.val();
        self.walk.s_job.valid.next = self.op_valid.val() & self.front.op_ready.val();
        self.walk.s_job.data.next.function = self.op.val().function;
        self.walk.s_job.data.next.pd = self.op.val().pd;
        self.walk.s_job.data.next.pay_off = self.op.val().pay_off;
        // The walker compares the requester's order with where it stands while the choice is still being made. A reply is never raw.
        self.length.next = bit_cast::<14, 13>(self.s_op.data.val().pay_len);
        if self.s_op.data.val().qp_type == QpType::Raw as u64 {
            self.length.next = bit_cast::<14, 32>(self.s_op.data.val().dma_len);
        }
        self.walk.request.next = !self.turn.q.val();
        self.walk.request_handle.next = self.s_op.data.val().handle;
        self.walk.request_off.next = self.s_op.data.val().pay_off;
        self.walk.request_len.next = self.length.val();
        self.walk.s_job.data.next.pay_len = self.length.val();
        if self.turn.q.val() {
            self.walk.s_job.data.next.pay_len = bit_cast::<14, 13>(self.s_reply.data.val().pay_len);
        }
        self.walk.s_job.data.next.handle = self.op.val().handle;
        self.walk.s_job.data.next.num_sge = self.op.val().num_sge;
        self.walk.s_job.data.next.inline_data = self.op.val().inline_data;
        self.walk.s_job.data.next.addressed = self.op.val().has_deth;
        self.walk.s_job.data.next.free = self.op.val().free;
        self.walk.s_job.data.next.only_free = self.only_free.val();
        self.walk.s_job.data.next.notify = self.op.val().notify;
        self.walk.s_job.data.next.qpn = self.op.val().qpn;
        self.walk.s_job.data.next.epoch = self.op.val().epoch;
        self.walk.s_job.data.next.psn = self.op.val().psn;
        self.walk.s_job.data.next.wqe_index = self.op.val().wqe_index;
        self.walk.s_job.data.next.reply = self.op.val().reply;
        self.walk.s_job.data.next.round = self.op.val().round;
        self.walk.s_job.data.next.sge = self.op.val().sge;
        if self.reset.val() {
            self.turn.d.next = false;
        }
        self.look.next = self.issue.look.val();
        self.issue.round.next = self.round.val();
        self.packets.start.next = self.fence.val();
        self.reads.start.next = self.packets.passed.val();
        self.passed.next = self.reads.passed.val();
        self.packets.came.next = self.walk.s_job.valid.val() & self.walk.s_job.ready.val() & !self.only_free.val();
        self.packets.went.next = self.issue.sealed.val();
        self.reads.came.next = self.issue.reads_one.val();
        self.reads.went.next = self.m_pay.valid.val() & self.m_pay.ready.val();
        self.walk.copied.next = self.copier.copied.val();
        self.walk.answered.next = self.issue.answered.val();
        MsgSrc::<SlotReq>::link(&mut self.m_slot, &mut self.front.m_slot);
        MsgSink::<SlotGrant>::link(&mut self.s_slot, &mut self.front.s_slot);
        MsgSrc::<HdrOp>::link(&mut self.m_hdr, &mut self.front.m_hdr);
        MsgSrc::<Place>::join(&mut self.front.m_place, &mut self.issue.s_place);
        MsgSrc::<WqeRead>::join(&mut self.walk.m_wqe, &mut self.copier.s_list);
        MsgSrc::<WqeData>::join(&mut self.copier.m_list, &mut self.walk.s_wqe);
        MsgSrc::<WqeRead>::link(&mut self.m_wqe, &mut self.copier.m_wqe);
        MsgSink::<WqeData>::link(&mut self.s_wqe, &mut self.copier.s_wqe);
        MsgSrc::<WqeFree>::join(&mut self.walk.m_free, &mut self.copier.s_free);
        MsgSrc::<WqeFree>::link(&mut self.m_free, &mut self.copier.m_free);
        MsgSrc::<MrReq>::link(&mut self.m_mr, &mut self.walk.m_mr);
        MsgSrc::<InlineWrite>::link(&mut self.m_inline, &mut self.copier.m_inline);
        MsgSrc::<Owner>::join(&mut self.walk.m_owner, &mut self.owners.s);
        MsgSrc::<Segment>::join(&mut self.walk.m_segment, &mut self.segments.s);
        MsgSrc::<Owner>::join(&mut self.owners.m, &mut self.issue.s_owner);
        MsgSrc::<Segment>::join(&mut self.segments.m, &mut self.issue.s_segment);
        MsgSink::<MrResp>::link(&mut self.s_mr, &mut self.issue.s_mr);
        MsgSrc::<PayCmd>::link(&mut self.m_pay, &mut self.issue.m_pay);
        MsgSrc::<Piece>::join(&mut self.issue.m_piece, &mut self.copier.s_piece);
        MsgSrc::<Sealed>::join(&mut self.issue.m_seal, &mut self.copier.s_seal);
        MsgSrc::<SlotSeal>::link(&mut self.m_seal, &mut self.copier.m_seal);
    }
}
