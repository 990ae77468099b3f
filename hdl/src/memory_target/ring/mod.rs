//! The target's receive ring: where SENDs land. Stands in the place of receive queues and completion queues. See README.md.
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::host::table::INDEX;
use crate::msg::{CqeReq, RqAlloc, RqGrant, WqeData, WqeFree, WqeRead, WrDone, WrSmall};
use crate::prim::pack::Cast;
use crate::records::{Cqe, RecvHead, Sge};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Bytes of the completion record at the start of each slot.
pub const RECORD_BYTES: u32 = 32;

/// The ring as the set-up wrote it: `2^log_count` slots (at most 64) of `2^log_slot` bytes from byte `base` of the RAM on, which `key` lets the
/// card write.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct RingSetup {
    pub valid: Bit,
    pub base: Bits<32>,
    pub log_slot: Bits<4>,
    pub log_count: Bits<3>,
    pub key: Bits<32>,
}

/// The ring. Slots are handed out in order, `head` of them so far, as long as fewer than all lie between `consumer` and it.
#[derive(LogicBlock, Default)]
pub struct Ring {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub setup: Signal<In, RingSetup>,
    /// Slots given back so far, modulo 65536.
    pub consumer: Signal<In, Bits<16>>,
    pub head: Signal<Out, Bits<16>>,
    /// From and to resp, as of `host/rq`; the ring's number is not looked at: there is one.
    pub s_alloc: MsgSink<RqAlloc>,
    pub m_grant: MsgSrc<RqGrant>,
    /// From place: the receive request that a slot is.
    pub s_read: MsgSink<WqeRead>,
    pub m_read: MsgSrc<WqeData>,
    pub s_free: MsgSink<WqeFree>,
    /// From complete: becomes the record of its slot.
    pub s_cqe: MsgSink<CqeReq>,
    pub m_wr: MsgSrc<WrSmall>,
    pub s_done: MsgSink<WrDone>,
    /// Pulse per record written, per SEND without a slot.
    pub written: Signal<Out, Bit>,
    pub lacking: Signal<Out, Bit>,
    count: DFF<Bits<16>>,
    grant: DFF<RqGrant>,
    granted: DFF<Bit>,
    entry: DFF<Bits<128>>,
    read: DFF<Bit>,
    req: DFF<CqeReq>,
    writing: DFF<Bit>,
    head_bits: Cast<RecvHead, Bits<128>>,
    sge_bits: Cast<Sge, Bits<128>>,
    cqe_bits: Cast<Cqe, Bits<256>>,
    mask: Signal<Local, Bits<16>>,
    outstanding: Signal<Local, Bits<16>>,
    over: Signal<Local, Bits<16>>,
    room: Signal<Local, Bit>,
    wanted: Signal<Local, Bits<32>>,
    done: Signal<Local, Bits<32>>,
    size: Signal<Local, Bits<32>>,
    lap: Signal<Local, Bits<16>>,
    index: Signal<Local, Bits<16>>,
    masked: Signal<Local, Bits<16>>,
    now: Signal<Local, Bits<16>>,
    granted_slot: Signal<Local, Bits<16>>,
}

#[kernel]
impl Logic for Ring {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, count, grant, granted, entry, read, req, writing);
        self.head.next = self.count.q.val();
        self.mask.next = bits::<16>(INDEX) << self.setup.val().log_count;

        // A slot for a SEND, or none.
        self.outstanding.next = self.count.q.val() - self.consumer.val();
        self.over.next = self.outstanding.val() & self.mask.val();
        self.room.next = self.setup.val().valid & !self.over.val().any();
        self.s_alloc.ready.next = !self.granted.q.val();
        self.m_grant.valid.next = self.granted.q.val();
        self.m_grant.data.next = self.grant.q.val();
        self.lacking.next = false;
        self.now.next = self.count.q.val() & !self.mask.val();
        self.granted_slot.next = self.now.val();
        if self.granted.q.val() {
            self.granted.d.next = !self.m_grant.ready.val();
        } else {
            self.granted.d.next = self.s_alloc.valid.val();
            self.grant.d.next.ok = self.room.val();
            self.grant.d.next.dead = false;
            self.grant.d.next.handle = self.now.val().get_bits::<6>(0);
            self.grant.d.next.index = self.count.q.val();
            if self.s_alloc.valid.val() & self.s_alloc.data.val().again {
                // A slot of this ring is not taken away: it is the one it was.
                self.granted_slot.next = self.s_alloc.data.val().index & !self.mask.val();
                self.grant.d.next.ok = true;
                self.grant.d.next.handle = self.granted_slot.val().get_bits::<6>(0);
            } else if self.s_alloc.valid.val() {
                self.lacking.next = !self.room.val();
                if self.room.val() {
                    self.count.d.next = self.count.q.val() + 1;
                }
            }
        }

        // The request: one entry, the slot behind its record.
        self.head_bits.x.next.num_sge = bits::<8>(1);
        self.head_bits.x.next.rsvd0 = bits::<8>(0);
        self.head_bits.x.next.index = bits::<16>(0);
        self.head_bits.x.next.copy = bits::<16>(0);
        self.head_bits.x.next.rsvd1 = bits::<16>(0);
        self.head_bits.x.next.rsvd2 = bits::<64>(0);
        self.size.next = bits::<32>(1) << self.setup.val().log_slot;
        self.wanted.next = self.setup.val().base + (bit_cast::<32, 8>(self.s_read.data.val().handle) << self.setup.val().log_slot);
        self.sge_bits.x.next.addr = bit_cast::<64, 32>(self.wanted.val() | RECORD_BYTES);
        self.sge_bits.x.next.length = self.size.val() - RECORD_BYTES;
        self.sge_bits.x.next.lkey = self.setup.val().key;
        self.s_read.ready.next = !self.read.q.val();
        self.m_read.valid.next = self.read.q.val();
        self.m_read.data.next.data = self.entry.q.val();
        self.m_read.data.next.more = bits::<128>(0);
        self.m_read.data.next.err = false;
        if self.read.q.val() {
            self.read.d.next = !self.m_read.ready.val();
        } else {
            self.read.d.next = self.s_read.valid.val();
            self.entry.d.next = self.head_bits.y.val();
            if self.s_read.data.val().granule.any() {
                self.entry.d.next = self.sge_bits.y.val();
            }
        }
        // Slots come back by the set-up protocol.
        self.s_free.ready.next = true;

        // The record.
        self.s_cqe.ready.next = !self.writing.q.val();
        if self.writing.q.val() {
            self.writing.d.next = !self.m_wr.ready.val();
        } else {
            self.req.d.next = self.s_cqe.data.val();
            // No event behind the last receive of a queue pair: nobody asked for one.
            self.writing.d.next = self.s_cqe.valid.val() & !self.s_cqe.data.val().last;
        }
        self.index.next = self.req.q.val().wqe_index;
        self.masked.next = self.index.val() & !self.mask.val();
        self.lap.next = self.index.val() >> self.setup.val().log_count;
        self.done.next = self.setup.val().base + (bit_cast::<32, 16>(self.masked.val()) << self.setup.val().log_slot);
        self.cqe_bits.x.next.wqe_index = self.index.val();
        self.cqe_bits.x.next.status = self.req.q.val().status;
        self.cqe_bits.x.next.opcode = self.req.q.val().opcode;
        self.cqe_bits.x.next.qpn = self.req.q.val().qpn;
        self.cqe_bits.x.next.is_recv = true;
        self.cqe_bits.x.next.imm_valid = self.req.q.val().imm_valid;
        self.cqe_bits.x.next.solicited = self.req.q.val().solicited;
        self.cqe_bits.x.next.grh = false;
        self.cqe_bits.x.next.inv_valid = false;
        self.cqe_bits.x.next.rsvd0 = bits::<3>(0);
        self.cqe_bits.x.next.byte_len = self.req.q.val().byte_len;
        self.cqe_bits.x.next.imm = self.req.q.val().imm;
        self.cqe_bits.x.next.src_qp = bits::<24>(0);
        self.cqe_bits.x.next.rsvd1 = bits::<8>(0);
        self.cqe_bits.x.next.timestamp = bits::<64>(0);
        self.cqe_bits.x.next.syndrome = bits::<8>(0);
        self.cqe_bits.x.next.rsvd2 = bits::<16>(0);
        self.cqe_bits.x.next.rsvd3 = bits::<7>(0);
        // First lap 1, so that memory never written says "not yet".
        self.cqe_bits.x.next.phase = !self.lap.val().get_bit(0);
        self.m_wr.valid.next = self.writing.q.val();
        self.m_wr.data.next.iova = bit_cast::<64, 32>(self.done.val());
        self.m_wr.data.next.function = bits::<12>(0);
        self.m_wr.data.next.len = bits::<7>(RECORD_BYTES);
        self.m_wr.data.next.tag = bits::<8>(0);
        self.m_wr.data.next.data = bit_cast::<512, 256>(self.cqe_bits.y.val());
        self.s_done.ready.next = true;
        self.written.next = self.s_done.valid.val();
        if self.reset.val() {
            self.count.d.next = bits::<16>(0);
            self.granted.d.next = false;
            self.read.d.next = false;
            self.writing.d.next = false;
        }
    }
}
