//! Frames whose bytes are on their way to memory: each is over when all its writes are answered. See README.md.

use crate::bus::MsgSink;
use crate::msg::WrDone;
use crate::prim::ram::RamAsync;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// log2 of the jobs under way.
pub const LG_JOBS: usize = 3;
const JOBS: u64 = 1 << LG_JOBS;
/// The uppermost bit of a number of writes: one less another that is further is negative.
const SIGN: usize = 9;

/// What goes back together: so many chains of a queue, with a frame in them, or (`discards`) one that can only be given back; or (`mark`) nothing but a use that is none.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Job {
    pub queue: Bits<16>,
    pub count: Bits<7>,
    pub discards: Bit,
    pub mark: Bit,
}

/// Where a job ends: the number of its last write among all, or, `empty`, of the one in front of it: it has none.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct End {
    until: Bits<10>,
    empty: Bit,
}

/// Jobs are over in the order in which they are handed on, which is that of their writes, and of the answers.
#[derive(LogicBlock, BlockDefault)]
pub struct Jobs {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not while a write is in flight.
    pub reset: Signal<In, Bit>,
    /// Pulse: all writes of `job` have been ordered, the last one is number `until` of all. Not while `full`.
    pub hands: Signal<In, Bit>,
    pub job: Signal<In, Job>,
    pub until: Signal<In, Bits<10>>,
    pub full: Signal<Out, Bit>,
    /// Answers of writes, in their order.
    pub s_done: MsgSink<WrDone>,
    /// The oldest job is over; one of its writes has failed.
    pub over: Signal<Out, Bit>,
    pub oldest: Signal<Out, Job>,
    pub failed: Signal<Out, Bit>,
    /// Pulse: it is done with.
    pub taken: Signal<In, Bit>,
    /// Jobs that have been handed on, that are over, that are done with; with a bit more.
    handed: DFF<Bits<8>>,
    closed: DFF<Bits<8>>,
    gone: DFF<Bits<8>>,
    /// Writes that are answered; one of the first job that is not over has failed.
    answered: DFF<Bits<10>>,
    fault: DFF<Bit>,
    jobs: RamAsync<Job, LG_JOBS>,
    ends: RamAsync<End, LG_JOBS>,
    faults: RamAsync<Bit, LG_JOBS>,
    beyond: Signal<Local, Bits<10>>,
    closes: Signal<Local, Bit>,
    errs: Signal<Local, Bit>,
    under_way: Signal<Local, Bits<8>>,
}

#[kernel]
impl Logic for Jobs {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, handed, closed, gone, answered, fault);
        clock!(self, clock, jobs, ends, faults);
        self.jobs.write_addr.next = self.handed.q.val().get_bits::<LG_JOBS>(0);
        self.jobs.write_data.next = self.job.val();
        self.jobs.write_en.next = self.hands.val();
        self.ends.write_addr.next = self.handed.q.val().get_bits::<LG_JOBS>(0);
        self.ends.write_data.next.until = self.until.val();
        self.ends.write_data.next.empty = self.job.val().discards | self.job.val().mark;
        self.ends.write_en.next = self.hands.val();
        if self.hands.val() {
            self.handed.d.next = self.handed.q.val() + 1;
        }
        self.under_way.next = self.handed.q.val() - self.gone.q.val();
        self.full.next = self.under_way.val() == JOBS;

        // An answer is of the first job that is not over, also if that has not been handed on yet.
        self.s_done.ready.next = true;
        self.errs.next = self.s_done.valid.val() & self.s_done.data.val().err;
        if self.s_done.valid.val() {
            self.answered.d.next = self.answered.q.val() + 1;
        }
        self.ends.read_addr.next = self.closed.q.val().get_bits::<LG_JOBS>(0);
        // Of one without writes the next one's may have been answered already.
        self.beyond.next = self.answered.q.val() - self.ends.read_data.val().until;
        self.closes.next = (self.closed.q.val() != self.handed.q.val()) & !self.beyond.val().get_bit(SIGN);
        self.faults.write_addr.next = self.closed.q.val().get_bits::<LG_JOBS>(0);
        self.faults.write_data.next = self.fault.q.val();
        self.faults.write_en.next = self.closes.val();
        self.fault.d.next = (self.fault.q.val() & (!self.closes.val() | self.ends.read_data.val().empty)) | self.errs.val();
        if self.closes.val() {
            self.closed.d.next = self.closed.q.val() + 1;
        }

        self.jobs.read_addr.next = self.gone.q.val().get_bits::<LG_JOBS>(0);
        self.faults.read_addr.next = self.gone.q.val().get_bits::<LG_JOBS>(0);
        self.over.next = self.gone.q.val() != self.closed.q.val();
        self.oldest.next = self.jobs.read_data.val();
        self.failed.next = self.faults.read_data.val();
        if self.taken.val() {
            self.gone.d.next = self.gone.q.val() + 1;
        }
        if self.reset.val() {
            self.handed.d.next = bits::<8>(0);
            self.closed.d.next = bits::<8>(0);
            self.gone.d.next = bits::<8>(0);
            self.answered.d.next = bits::<10>(0);
            self.fault.d.next = false;
        }
    }
}
