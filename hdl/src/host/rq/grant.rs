//! What the table decides, in its order: answers to the responder with a buffer for each granted slot, reads, and what is to be copied or given back. One per cycle.

use super::ahead::{RqCopy, RqDue};
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
    /// Of late allocations; and a pulse for each.
    pub m_late: MsgSrc<RqGrant>,
    pub told: Signal<Out, Bit>,
    pub m_rd: MsgSrc<RdCmd>,
    /// Where the rows of each read go, and those of a read that pass; there is room for them.
    pub m_due: MsgSrc<RqDue>,
    pub passes: Signal<Out, Bits<4>>,
    pub pass_ok: Signal<In, Bit>,
    pub m_copy: MsgSrc<RqCopy>,
    /// The table decides on a read.
    pub reading: Signal<In, Bit>,
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
    asked: Fence<5>,
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
    lates: MsgFifo<RqGrant, 3>,
    ok: Signal<Local, Bit>,
    grants_one: Signal<Local, Bit>,
    opens: Signal<Local, Bit>,
    reads_one: Signal<Local, Bit>,
    passing: Signal<Local, Bit>,
    copies_one: Signal<Local, Bit>,
    can_open: Signal<Local, Bit>,
    can_read: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    offset: Signal<Local, Bits<25>>,
    stride: Signal<Local, Bits<2>>,
    slot_rows: Signal<Local, Bits<4>>,
}

#[kernel]
impl Logic for RqGranter {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, fetch_no, busy, command, command_valid);
        clock!(self, clock, reads, grants, lates, owners, faults, asked);
        self.asked.reset.next = self.reset.val();
        self.asked.start.next = self.fence.val();
        self.passed.next = self.asked.passed.val();
        self.faults.reset.next = self.reset.val();
        MsgSrc::<RqFault>::link(&mut self.m_fault, &mut self.faults.m);
        self.reads.reset.next = self.reset.val();
        self.grants.reset.next = self.reset.val();
        self.lates.reset.next = self.reset.val();
        MsgSrc::<RqGrant>::link(&mut self.m_late, &mut self.lates.m);
        MsgSrc::<RdCmd>::link(&mut self.m_rd, &mut self.reads.m);
        MsgSrc::<RqGrant>::link(&mut self.m_grant, &mut self.grants.m);
        // A slot to hand out (with or without one there), a block to fetch, or blocks to give back.
        self.ok.next = self.s_job.data.val().ok;
        self.grants_one.next = self.s_job.data.val().grant;
        self.opens.next = self.grants_one.val() & self.ok.val();
        self.passing.next = self.opens.val() & !self.s_job.data.val().hit;
        self.reads_one.next = self.passing.val() | (!self.grants_one.val() & !self.s_job.data.val().release);
        self.copies_one.next = self.opens.val() | self.s_job.data.val().release;
        self.offset.next = self.s_job.data.val().offset;
        self.place.a.next = self.s_job.data.val().base;
        self.place.b.next = bit_cast::<64, 25>(self.offset.val());
        self.stride.next = self.s_job.data.val().stride;
        // A fetch number is used again only after its last row; one command may be on its way to the read FIFO.
        self.can_open.next = self.s_buffer.valid.val() & !self.busy.q.val().get_bit(self.fetch_no.q.val().index());
        self.can_read.next = (self.reads.level.val() < READS) & self.m_due.ready.val() & (!self.passing.val() | self.pass_ok.val());
        self.go.next = self.s_job.valid.val()
            & (!self.grants_one.val() | ((self.grants.level.val() < GRANTS) & (self.lates.level.val() < GRANTS)))
            & (!self.opens.val() | self.can_open.val())
            & (!self.reads_one.val() | self.can_read.val())
            & (!self.copies_one.val() | self.m_copy.ready.val());
        self.s_job.ready.next = self.go.val();
        self.s_buffer.ready.next = self.go.val() & self.opens.val();
        self.open_en.next = self.go.val() & self.opens.val();
        self.handle.next = bit_cast::<6, 8>(self.s_buffer.data.val().handle);
        self.fetch.next = self.fetch_no.q.val();
        self.grants.s.valid.next = self.go.val() & self.grants_one.val() & !self.s_job.data.val().late;
        self.told.next = self.go.val() & self.s_job.data.val().late;
        self.lates.s.valid.next = self.told.val();
        self.grants.s.data.next.ok = self.ok.val();
        self.grants.s.data.next.dead = self.s_job.data.val().dead;
        self.grants.s.data.next.handle = bit_cast::<6, 8>(self.s_buffer.data.val().handle);
        self.grants.s.data.next.index = self.s_job.data.val().index;
        self.lates.s.data.next.ok = self.ok.val();
        self.lates.s.data.next.dead = false;
        self.lates.s.data.next.handle = bit_cast::<6, 8>(self.s_buffer.data.val().handle);
        self.lates.s.data.next.index = self.s_job.data.val().index;

        self.command_valid.d.next = self.go.val() & self.reads_one.val();
        self.asked.came.next = self.reading.val();
        self.asked.went.next = self.m_rd.valid.val() & self.m_rd.ready.val();
        self.command.d.next.iova = self.place.y.val();
        self.command.d.next.function = self.s_job.data.val().function;
        self.slot_rows.next = bits::<4>(1) << self.stride.val();
        self.command.d.next.rows = self.s_job.data.val().count;
        self.passes.next = bits::<4>(0);
        if self.passing.val() {
            self.command.d.next.rows = self.slot_rows.val();
            if self.go.val() {
                self.passes.next = self.slot_rows.val();
            }
        }
        // Rows are told apart by their order.
        self.command.d.next.tag = bits::<8>(0);
        self.m_due.valid.next = self.go.val() & self.reads_one.val();
        self.m_due.data.next.passing = self.passing.val();
        self.m_due.data.next.block = self.s_job.data.val().block;
        self.m_due.data.next.row = self.offset.val().get_bits::<3>(6);
        self.m_copy.valid.next = self.go.val() & self.copies_one.val();
        self.m_copy.data.next.release = self.s_job.data.val().release;
        self.m_copy.data.next.passing = self.passing.val();
        self.m_copy.data.next.frees = self.s_job.data.val().frees;
        self.m_copy.data.next.block = self.s_job.data.val().block;
        self.m_copy.data.next.row = self.offset.val().get_bits::<3>(6);
        self.m_copy.data.next.tag = bit_cast::<8, 6>(self.fetch_no.q.val()) | (bit_cast::<8, 2>(self.stride.val()) << 6);
        self.m_copy.data.next.count = self.s_job.data.val().count;
        self.reads.s.valid.next = self.command_valid.q.val();
        self.reads.s.data.next = self.command.q.val();
        self.busy_set.x.next = self.fetch_no.q.val();
        self.busy_set.en.next = self.go.val() & self.opens.val();
        self.busy_clear.x.next = self.tag.val();
        self.busy_clear.en.next = self.tag_done.val();
        self.busy.d.next = (self.busy.q.val() & !self.busy_clear.y.val()) | self.busy_set.y.val();
        if self.go.val() & self.opens.val() {
            self.fetch_no.d.next = self.fetch_no.q.val() + 1;
        }
        self.owners.write_addr.next = self.fetch_no.q.val();
        self.owners.write_data.next.shared = self.s_job.data.val().shared;
        self.owners.write_data.next.ring = self.s_job.data.val().ring;
        self.owners.write_data.next.function = self.s_job.data.val().function;
        self.open_function.next = self.s_job.data.val().function;
        self.tag_function.next = self.owners.read_data.val().function;
        self.owners.write_en.next = self.go.val() & self.opens.val();
        self.owners.read_addr.next = self.tag.val();
        self.faults.s.data.next.ring = self.owners.read_data.val().ring;
        self.faults.s.valid.next = self.tag_done.val() & self.tag_err.val() & self.owners.read_data.val().shared;
        if self.reset.val() {
            self.busy.d.next = bits::<64>(0);
            self.command_valid.d.next = false;
        }
    }
}
