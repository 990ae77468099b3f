//! Act: the new row of an operation's queue, and what follows from it. No state.

use super::{Kind, Op, STATS};
use crate::host::rq::RqJob;
use crate::host::table::posted::PostedFacts;
use crate::msg::RqFlush;
use crate::records::RingCtx;
use crate::stats::flags;
use ferric_abi::codes::EventKind;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub(super) struct RqAct {
    /// The operation in Act.
    pub valid: Signal<In, Bit>,
    pub op: Signal<In, Op>,
    pub id: Signal<In, Bits<24>>,
    pub row: Signal<In, RingCtx>,
    pub facts: Signal<In, PostedFacts>,
    pub write: Signal<Out, Bit>,
    pub new_row: Signal<Out, RingCtx>,
    /// The queue joins the tail of the active list.
    pub enlist: Signal<Out, Bit>,
    pub issue: Signal<Out, Bit>,
    pub job: Signal<Out, RqJob>,
    /// Buffers that the job takes.
    pub used: Signal<Out, Bits<7>>,
    pub flushes: Signal<Out, Bit>,
    /// The slot passed over.
    pub flush: Signal<Out, RqFlush>,
    /// Something is told about the shared receive queue: `news` (`EventKind`) to event queue `eqn`.
    pub tells: Signal<Out, Bit>,
    pub news: Signal<Out, Bits<8>>,
    pub eqn: Signal<Out, Bits<8>>,
    /// As [`RqTable::stat`](super::RqTable::stat).
    pub stat: Signal<Out, Bits<7>>,
    pub whose: Signal<Out, Bits<12>>,
    kind: Signal<Local, Kind>,
    fetch_next: Signal<Local, Bits<16>>,
    fetch_old: Signal<Local, Bits<16>>,
    size: Signal<Local, Bits<17>>,
    within: Signal<Local, Bit>,
    posted: Signal<Local, Bit>,
    takes: Signal<Local, Bit>,
    armed: Signal<Local, Bit>,
    /// Fewer are left than the limit; they are, once one has been taken.
    below: Signal<Local, Bit>,
    at: Signal<Local, Bit>,
}

#[kernel]
impl Logic for RqAct {
    #[hdl_gen]
    fn update(&mut self) {
        self.kind.next = self.op.val().kind;
        self.new_row.next = self.row.val();
        self.fetch_old.next = self.row.val().fetch;
        self.fetch_next.next = self.fetch_old.val() + 1;
        self.write.next = false;
        self.enlist.next = false;
        self.issue.next = false;
        self.flushes.next = false;
        self.stat.next = bits::<7>(0);
        self.whose.next = self.row.val().function;
        if self.kind.val() == Kind::Doorbell {
            self.whose.next = self.op.val().function;
        }
        self.used.next = bits::<7>(0);
        self.size.next = bits::<17>(1) << self.row.val().log_size;
        self.within.next = (self.facts.val().ahead > self.facts.val().pending) & (bit_cast::<17, 16>(self.facts.val().ahead) <= self.size.val());
        self.posted.next = self.facts.val().exists & self.facts.val().more & !self.row.val().flush & !self.row.val().error;
        self.takes.next = self.posted.val();
        self.armed.next = self.facts.val().exists & self.row.val().shared & self.row.val().limit.any();
        self.below.next = self.facts.val().pending < self.row.val().limit;
        self.at.next = self.facts.val().pending <= self.row.val().limit;
        self.tells.next = false;
        self.news.next = bits::<8>(EventKind::SrqLimit as u64);
        self.eqn.next = self.row.val().eqn;
        self.job.next.ok = self.takes.val();
        self.job.next.dead = self.row.val().error & self.facts.val().exists;
        self.job.next.shared = self.row.val().shared;
        self.job.next.ring = self.id.val();
        self.job.next.index = self.row.val().fetch;
        self.job.next.function = self.row.val().function;
        self.job.next.base = self.row.val().base;
        self.job.next.offset = self.facts.val().offset;
        self.job.next.stride = self.row.val().stride;
        self.flush.next.qpn = self.id.val();
        self.flush.next.index = self.row.val().fetch;
        if self.valid.val() {
            match self.kind.val() {
                Kind::Doorbell => {
                    if !self.facts.val().exists | !self.facts.val().mine {
                        self.stat.next = bits::<7>(flags(STATS, &["rq_db_bad"]) as u64);
                    } else if !self.within.val() {
                        self.stat.next = bits::<7>(flags(STATS, &["rq_db_overrun"]) as u64);
                    } else {
                        self.write.next = true;
                        self.new_row.next.producer = self.op.val().index;
                        self.enlist.next = self.row.val().flush & !self.row.val().active;
                    }
                }
                Kind::Alloc => {
                    self.issue.next = true;
                    self.tells.next = self.armed.val() & (self.below.val() | (self.at.val() & self.takes.val()));
                    if !self.posted.val() {
                        self.stat.next = bits::<7>(flags(STATS, &["rq_empty"]) as u64);
                    } else {
                        self.write.next = true;
                        self.new_row.next.fetch = self.fetch_next.val();
                        self.used.next = bits::<7>(1);
                    }
                }
                Kind::Again => {
                    // Nothing moves: this one has been handed out before.
                    self.issue.next = true;
                    self.job.next.ok = self.facts.val().exists;
                    self.stat.next = bits::<7>(flags(STATS, &["rq_fetched_again"]) as u64);
                    if self.facts.val().exists {
                        self.used.next = bits::<7>(1);
                    }
                }
                Kind::Cmd => {
                    self.write.next = self.facts.val().exists;
                    self.new_row.next.flush = true;
                    self.enlist.next = self.facts.val().exists & self.facts.val().more & !self.row.val().active;
                }
                Kind::Fault => {
                    // A queue pair's own failed fetch is found by placement.
                    self.tells.next = self.facts.val().exists & !self.row.val().error;
                    self.news.next = bits::<8>(EventKind::SrqError as u64);
                    self.write.next = self.tells.val();
                    self.new_row.next.error = true;
                }
                _ => {
                    self.write.next = true;
                    self.new_row.next.active = false;
                    self.tells.next = self.armed.val() & self.below.val();
                    if self.facts.val().exists & self.facts.val().more & self.row.val().flush {
                        self.flushes.next = true;
                        self.stat.next = bits::<7>(flags(STATS, &["rq_flushed"]) as u64);
                        self.new_row.next.fetch = self.fetch_next.val();
                        self.enlist.next = self.facts.val().pending != 1;
                    }
                }
            }
        }
        if self.enlist.val() {
            self.new_row.next.active = true;
        }
        if self.tells.val() {
            if self.kind.val() == Kind::Fault {
                self.stat.next = bits::<7>(flags(STATS, &["srq_errors"]) as u64);
            } else {
                // Once: then it has to be armed again.
                self.write.next = true;
                self.new_row.next.limit = bits::<16>(0);
                self.stat.next = self.stat.val() | bits::<7>(flags(STATS, &["srq_limits"]) as u64);
            }
        }
    }
}
