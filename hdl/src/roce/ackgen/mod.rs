//! Acknowledge generator: coalesces ACKs per queue pair, sends every NAK. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::codes::header;
use crate::msg::{AckOp, HdrOp, SlotGrant, SlotReq, SlotSeal};
use crate::prim::ram::{RamAsync, RamAsync2};
use crate::stats::flags;
use crate::stream::{MsgFifo, MsgSlice};
use ferric_abi::wire::Aeth;
use ferric_abi::wire::{opcode, syndrome, ICRC_BYTES};
use ferric_hdl_derive::kernel;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

// Bytes of an acknowledge's headers.
const IPV4: u64 = header::ROCE4 + Aeth::BYTES as u64;
const IPV4_VLAN: u64 = IPV4 + header::VLAN;
const IPV6: u64 = header::ROCE6 + Aeth::BYTES as u64;
const IPV6_VLAN: u64 = IPV6 + header::VLAN;

/// Cycles from one positive acknowledge to the next at least. A peer like this card takes four for one, and what it does not take waits in its receive buffer, which frames without a window of their own may fill.
const PACE: u64 = 6;
/// One cycle passes with the first decision about the next.
const REST: u64 = PACE - 1;
/// Places of the queue. With half of them taken there are too many queue pairs for one to come again while it waits: the pace would only stop the responder.
const LOG_QUEUE: usize = 7;
const MANY: u64 = 1 << (LOG_QUEUE - 1);

/// Events on `stat`.
pub const STATS: &[&str] = &["ack_sent", "ack_coalesced", "nak_sent", "rnr_nak_sent"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_ack", &["m_slot", "s_slot", "m_hdr", "m_seal"]),
    ("s_slot", &["m_hdr", "m_seal"]), // whose it is waits
    ("m_seal", &["m_hdr", "m_seal"]), // of a slot that has been granted
];

/// One acknowledge a cycle in; one every two cycles out, or as fast as slots are granted.
#[derive(LogicBlock, BlockDefault)]
pub struct AckGen<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets everything. Acknowledges are taken again 2^LQ cycles later.
    pub reset: Signal<In, Bit>,
    pub s_ack: MsgSink<AckOp>,
    pub m_slot: MsgSrc<SlotReq>,
    pub s_slot: MsgSink<SlotGrant>,
    pub m_hdr: MsgSrc<HdrOp>,
    pub m_seal: MsgSrc<SlotSeal>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<4>>,
    /// Whose events they are.
    pub stat_function: Signal<Out, Bits<12>>,
    queue: MsgFifo<AckOp, LOG_QUEUE>,
    /// Acknowledges that wait for their slot.
    pending: MsgFifo<AckOp, 3>,
    request: MsgSlice<SlotReq>,
    grant: MsgSlice<SlotGrant>,
    header: MsgSlice<HdrOp>,
    seal: MsgSlice<SlotSeal>,
    /// Positive acknowledges ever queued and ever taken from the queue, per queue pair, modulo 256.
    queued: RamAsync2<Bits<8>, LQ>,
    taken: RamAsync<Bits<8>, LQ>,
    init: DFF<Bits<LQ>>,
    ready: DFF<Bit>,
    head_valid: DFF<Bit>,
    head: DFF<AckOp>,
    /// `covered` is about this head: it has been there for a cycle.
    judged: DFF<Bit>,
    /// A younger positive acknowledge of the head's queue pair was queued a cycle ago (and is: only the head leaves).
    covered: DFF<Bit>,
    /// Cycles until a positive one may leave, unless many wait.
    rest: DFF<Bits<3>>,
    many: DFF<Bit>,
    events: DFF<Bits<4>>,
    events_of: DFF<Bits<12>>,
    push: Signal<Local, Bit>,
    push_ack: Signal<Local, Bit>,
    push_qp: Signal<Local, Bits<LQ>>,
    push_kind: Signal<Local, Bits<2>>,
    push_syndrome: Signal<Local, Bits<8>>,
    head_qp: Signal<Local, Bits<LQ>>,
    head_qpn: Signal<Local, Bits<24>>,
    push_qpn: Signal<Local, Bits<24>>,
    syndrome: Signal<Local, Bits<8>>,
    kind: Signal<Local, Bits<2>>,
    is_ack: Signal<Local, Bit>,
    ahead: Signal<Local, Bits<8>>,
    skip: Signal<Local, Bit>,
    send: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    hdr_len: Signal<Local, Bits<8>>,
    emit: Signal<Local, Bit>,
    out_syndrome: Signal<Local, Bits<8>>,
}

#[kernel]
impl<const LQ: usize> Logic for AckGen<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, init, ready, head_valid, head, judged, covered, rest, many, events, events_of);
        clock!(self, clock, queue, pending, request, grant, header, seal, queued, taken);
        self.queue.reset.next = self.reset.val();
        self.pending.reset.next = self.reset.val();
        self.request.reset.next = self.reset.val();
        self.grant.reset.next = self.reset.val();
        self.header.reset.next = self.reset.val();
        self.seal.reset.next = self.reset.val();
        MsgSrc::<SlotReq>::link(&mut self.m_slot, &mut self.request.m);
        MsgSink::<SlotGrant>::link(&mut self.s_slot, &mut self.grant.s);
        MsgSrc::<HdrOp>::link(&mut self.m_hdr, &mut self.header.m);
        MsgSrc::<SlotSeal>::link(&mut self.m_seal, &mut self.seal.m);
        // In
        self.push.next = self.s_ack.valid.val() & self.queue.s.ready.val() & self.ready.q.val();
        self.s_ack.ready.next = self.queue.s.ready.val() & self.ready.q.val();
        self.queue.s.valid.next = self.s_ack.valid.val() & self.ready.q.val();
        self.queue.s.data.next = self.s_ack.data.val();
        self.push_qpn.next = self.s_ack.data.val().qpn;
        self.push_qp.next = self.push_qpn.val().get_bits::<LQ>(0);
        self.push_syndrome.next = self.s_ack.data.val().syndrome;
        self.push_kind.next = self.push_syndrome.val().get_bits::<2>(5);
        self.push_ack.next = self.push.val() & (self.push_kind.val() == 0);
        // The oldest: a positive one is left out when a younger positive one of its queue pair is queued.
        self.head_qpn.next = self.head.q.val().qpn;
        self.head_qp.next = self.head_qpn.val().get_bits::<LQ>(0);
        self.syndrome.next = self.head.q.val().syndrome;
        self.kind.next = self.syndrome.val().get_bits::<2>(5);
        self.is_ack.next = self.kind.val() == syndrome::KIND_ACK;
        self.queued.read_addr0.next = self.push_qp.val();
        self.queued.read_addr1.next = self.head_qp.val();
        self.taken.read_addr.next = self.head_qp.val();
        self.ahead.next = self.queued.read_data1.val() - self.taken.read_data.val();
        self.covered.d.next = self.is_ack.val() & (self.ahead.val() != 1);
        self.skip.next = self.judged.q.val() & self.covered.q.val();
        self.send.next = self.judged.q.val() & !self.covered.q.val() & (!self.rest.q.val().any() | self.many.q.val() | !self.is_ack.val()) & self.request.s.ready.val() & self.pending.s.ready.val();
        self.many.d.next = self.queue.level.val() >= MANY;
        if self.rest.q.val().any() {
            self.rest.d.next = self.rest.q.val() - 1;
        }
        if self.send.val() & self.is_ack.val() {
            self.rest.d.next = bits::<3>(REST);
        }
        self.go.next = self.skip.val() | self.send.val();
        self.judged.d.next = self.head_valid.q.val() & !self.go.val();
        self.queue.m.ready.next = self.go.val() | !self.head_valid.q.val();
        if self.go.val() | !self.head_valid.q.val() {
            self.head_valid.d.next = self.queue.m.valid.val();
            self.head.d.next = self.queue.m.data.val();
        }
        self.events.d.next = bits::<4>(0);
        if self.skip.val() {
            self.events.d.next = bits::<4>(flags(STATS, &["ack_coalesced"]) as u64);
        }
        if self.send.val() {
            self.events.d.next = bits::<4>(flags(STATS, &["nak_sent"]) as u64);
            if self.is_ack.val() {
                self.events.d.next = bits::<4>(flags(STATS, &["ack_sent"]) as u64);
            }
            if self.kind.val() == syndrome::KIND_RNR {
                self.events.d.next = bits::<4>(flags(STATS, &["rnr_nak_sent"]) as u64);
            }
        }
        self.stat.next = self.events.q.val();
        self.stat_function.next = self.events_of.q.val();
        self.events_of.d.next = self.head.q.val().function;
        // The counts
        self.queued.write_en.next = self.push_ack.val() | !self.ready.q.val();
        self.queued.write_addr.next = self.push_qp.val();
        self.queued.write_data.next = self.queued.read_data0.val() + 1;
        self.taken.write_en.next = (self.go.val() & self.is_ack.val()) | !self.ready.q.val();
        self.taken.write_addr.next = self.head_qp.val();
        self.taken.write_data.next = self.taken.read_data.val() + 1;
        if !self.ready.q.val() {
            self.init.d.next = self.init.q.val() + 1;
            self.ready.d.next = self.init.q.val().all();
            self.queued.write_addr.next = self.init.q.val();
            self.queued.write_data.next = bits::<8>(0);
            self.taken.write_addr.next = self.init.q.val();
            self.taken.write_data.next = bits::<8>(0);
        }
        // Slot request: `header::header_len` of an acknowledge.
        self.hdr_len.next = bits::<8>(IPV4);
        if self.head.q.val().ipv6 {
            self.hdr_len.next = bits::<8>(IPV6);
            if self.head.q.val().vlan {
                self.hdr_len.next = bits::<8>(IPV6_VLAN);
            }
        } else if self.head.q.val().vlan {
            self.hdr_len.next = bits::<8>(IPV4_VLAN);
        }
        self.request.s.valid.next = self.send.val();
        self.request.s.data.next.hdr_len = bit_cast::<9, 8>(self.hdr_len.val());
        self.request.s.data.next.frame_len = bit_cast::<14, 8>(self.hdr_len.val()) + ICRC_BYTES;
        self.request.s.data.next.pay_len = bits::<13>(0);
        self.request.s.data.next.bypass = true;
        self.request.s.data.next.raw = false;
        self.request.s.data.next.client = bits::<3>(0);
        self.pending.s.valid.next = self.send.val();
        self.pending.s.data.next = self.head.q.val();
        // Header and seal, once there is a slot
        self.emit.next = self.grant.m.valid.val() & self.pending.m.valid.val() & self.header.s.ready.val() & self.seal.s.ready.val();
        self.grant.m.ready.next = self.emit.val();
        self.pending.m.ready.next = self.emit.val();
        // Credit count 31: end-to-end flow control is not used.
        self.out_syndrome.next = self.pending.m.data.val().syndrome;
        if self.out_syndrome.val() < syndrome::RNR_NAK {
            self.out_syndrome.next = bits::<8>(syndrome::ACK);
        }
        self.header.s.valid.next = self.emit.val();
        self.header.s.data.next.kind = true;
        self.header.s.data.next.slot = self.grant.m.data.val().slot;
        self.header.s.data.next.qpn = self.pending.m.data.val().qpn;
        self.header.s.data.next.opcode = bits::<8>(opcode::ACKNOWLEDGE);
        self.header.s.data.next.dest_qpn = self.pending.m.data.val().dest_qpn;
        self.header.s.data.next.psn = self.pending.m.data.val().psn;
        self.header.s.data.next.ack_req = false;
        self.header.s.data.next.solicited = false;
        self.header.s.data.next.pad = bits::<2>(0);
        self.header.s.data.next.pay_len = bits::<13>(0);
        self.header.s.data.next.has_reth = false;
        self.header.s.data.next.raddr = bits::<64>(0);
        self.header.s.data.next.rkey = bits::<32>(0);
        self.header.s.data.next.dma_len = bits::<32>(0);
        self.header.s.data.next.has_imm = false;
        self.header.s.data.next.imm = bits::<32>(0);
        self.header.s.data.next.has_aeth = true;
        self.header.s.data.next.aeth = (bit_cast::<32, 8>(self.out_syndrome.val()) << 24) | bit_cast::<32, 24>(self.pending.m.data.val().msn);
        self.header.s.data.next.has_atomic = false;
        self.header.s.data.next.has_atomic_ack = false;
        self.header.s.data.next.has_deth = false;
        self.header.s.data.next.has_feth = false;
        self.header.s.data.next.operand = bits::<64>(0);
        self.header.s.data.next.compare = bits::<64>(0);
        self.seal.s.valid.next = self.emit.val();
        self.seal.s.data.next.slot = self.grant.m.data.val().slot;
        self.seal.s.data.next.reads = bits::<9>(0);
        self.seal.s.data.next.abort = false;
        self.seal.s.data.next.notify = false;
        self.seal.s.data.next.qpn = self.pending.m.data.val().qpn;
        self.seal.s.data.next.epoch = bits::<8>(0);
        self.seal.s.data.next.psn = self.pending.m.data.val().psn;
        self.seal.s.data.next.wqe_index = bits::<16>(0);
        self.seal.s.data.next.status = bits::<8>(0);
        self.seal.s.data.next.reply = false;
        self.seal.s.data.next.function = self.pending.m.data.val().function;
        self.seal.s.data.next.request = false;
        self.seal.s.data.next.round = bits::<2>(0);
        if self.reset.val() {
            self.init.d.next = bits::<LQ>(0);
            self.ready.d.next = false;
            self.head_valid.d.next = false;
            self.judged.d.next = false;
            self.rest.d.next = bits::<3>(0);
            self.events.d.next = bits::<4>(0);
        }
    }
}
