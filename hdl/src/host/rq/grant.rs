//! Answers to the responder: takes a buffer for each granted slot and starts its fetch. One per cycle.

use super::{RqFault, RqJob};
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{RdCmd, RqGrant, WqeFree};
use crate::prim::arb::BinToOneHot;
use crate::prim::ram::RamAsync;
use crate::prim::sum::Sum;
use crate::stream::{Fence, MsgFifo};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

// Below these levels `reads` and `grants` have room, one command being on its way.
const READS: u64 = 3;
const GRANTS: u64 = 6;

/// Whose a fetch is.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Owner {
    shared: Bit,
    ring: Bits<24>,
    function: Bits<12>,
}

#[derive(LogicBlock, Default)]
pub(super) struct RqGranter {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_job: MsgSink<RqJob>,
    pub s_buffer: MsgSink<WqeFree>,
    pub m_grant: MsgSrc<RqGrant>,
    pub m_rd: MsgSrc<RdCmd>,
    /// Buffer `handle` starts a new life as request 0 of fetch `fetch`.
    pub open_en: Signal<Out, Bit>,
    pub handle: Signal<Out, Bits<6>>,
    pub fetch: Signal<Out, Bits<6>>,
    /// Whose fetch it is, and whose that of `tag` was.
    pub open_function: Signal<Out, Bits<12>>,
    pub tag_function: Signal<Out, Bits<12>>,
    pub tag_done: Signal<In, Bit>,
    pub tag_err: Signal<In, Bit>,
    pub tag: Signal<In, Bits<6>>,
    /// Fetches that failed for a shared receive queue: one per fetch under way fits.
    pub m_fault: MsgSrc<RqFault>,
    /// Pulse in; pulse out when the reads of all receives granted before have left `m_rd`.
    pub fence: Signal<In, Bit>,
    pub passed: Signal<Out, Bit>,
    asked: Fence<4>,
    owners: RamAsync<Owner, 6>,
    faults: MsgFifo<RqFault, 6>,
    fetch_no: DFF<Bits<6>>,
    busy: DFF<Bits<64>>,
    busy_set: BinToOneHot<64, 6>,
    busy_clear: BinToOneHot<64, 6>,
    command: DFF<RdCmd>,
    place: Sum<64>,
    command_valid: DFF<Bit>,
    reads: MsgFifo<RdCmd, 2>,
    grants: MsgFifo<RqGrant, 3>,
    ok: Signal<Local, Bit>,
    can_fetch: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    offset: Signal<Local, Bits<25>>,
    stride: Signal<Local, Bits<2>>,
}

#[kernel]
impl Logic for RqGranter {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, fetch_no, busy, command, command_valid);
        clock!(self, clock, reads, grants, owners, faults, asked);
        self.asked.reset.next = self.reset.val();
        self.asked.start.next = self.fence.val();
        self.passed.next = self.asked.passed.val();
        self.faults.reset.next = self.reset.val();
        MsgSrc::<RqFault>::link(&mut self.m_fault, &mut self.faults.m);
        self.reads.reset.next = self.reset.val();
        self.grants.reset.next = self.reset.val();
        MsgSrc::<RdCmd>::link(&mut self.m_rd, &mut self.reads.m);
        MsgSrc::<RqGrant>::link(&mut self.m_grant, &mut self.grants.m);
        self.ok.next = self.s_job.data.val().ok;
        self.offset.next = self.s_job.data.val().offset;
        self.place.a.next = self.s_job.data.val().base;
        self.place.b.next = bit_cast::<64, 25>(self.offset.val());
        self.stride.next = self.s_job.data.val().stride;
        // A fetch number is used again only after its last row; one command may be on its way to the read FIFO.
        self.can_fetch.next = self.s_buffer.valid.val() & !self.busy.q.val().get_bit(self.fetch_no.q.val().index()) & (self.reads.level.val() < READS);
        self.go.next = self.s_job.valid.val() & (self.grants.level.val() < GRANTS) & (!self.ok.val() | self.can_fetch.val());
        self.s_job.ready.next = self.go.val();
        self.s_buffer.ready.next = self.go.val() & self.ok.val();
        self.open_en.next = self.go.val() & self.ok.val();
        self.handle.next = bit_cast::<6, 7>(self.s_buffer.data.val().handle);
        self.fetch.next = self.fetch_no.q.val();
        self.grants.s.valid.next = self.go.val();
        self.grants.s.data.next.ok = self.ok.val();
        self.grants.s.data.next.dead = self.s_job.data.val().dead;
        self.grants.s.data.next.handle = bit_cast::<6, 7>(self.s_buffer.data.val().handle);
        self.grants.s.data.next.index = self.s_job.data.val().index;

        self.command_valid.d.next = self.go.val() & self.ok.val();
        self.asked.came.next = self.go.val() & self.ok.val();
        self.asked.went.next = self.m_rd.valid.val() & self.m_rd.ready.val();
        self.command.d.next.iova = self.place.y.val();
        self.command.d.next.function = self.s_job.data.val().function;
        self.command.d.next.rows = bits::<4>(1) << self.stride.val();
        self.command.d.next.tag = bit_cast::<8, 6>(self.fetch_no.q.val()) | (bit_cast::<8, 2>(self.stride.val()) << 6);
        self.reads.s.valid.next = self.command_valid.q.val();
        self.reads.s.data.next = self.command.q.val();
        self.busy_set.x.next = self.fetch_no.q.val();
        self.busy_set.en.next = self.go.val() & self.ok.val();
        self.busy_clear.x.next = self.tag.val();
        self.busy_clear.en.next = self.tag_done.val();
        self.busy.d.next = (self.busy.q.val() & !self.busy_clear.y.val()) | self.busy_set.y.val();
        if self.go.val() & self.ok.val() {
            self.fetch_no.d.next = self.fetch_no.q.val() + 1;
        }
        self.owners.write_addr.next = self.fetch_no.q.val();
        self.owners.write_data.next.shared = self.s_job.data.val().shared;
        self.owners.write_data.next.ring = self.s_job.data.val().ring;
        self.owners.write_data.next.function = self.s_job.data.val().function;
        self.open_function.next = self.s_job.data.val().function;
        self.tag_function.next = self.owners.read_data.val().function;
        self.owners.write_en.next = self.go.val() & self.ok.val();
        self.owners.read_addr.next = self.tag.val();
        self.faults.s.data.next.ring = self.owners.read_data.val().ring;
        self.faults.s.valid.next = self.tag_done.val() & self.tag_err.val() & self.owners.read_data.val().shared;
        if self.reset.val() {
            self.busy.d.next = bits::<64>(0);
            self.command_valid.d.next = false;
        }
    }
}
