//! Act: the new row of an operation's queue, and what follows from it. No state.

use super::{Facts, Kind, Op, LOG_BURST};
use crate::codes::send_command;
use crate::host::sq::{job_kind, SqJob, STATS};
use crate::host::table::posted::PostedFacts;
use crate::records::RingCtx;
use crate::stats::flags;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub(super) struct SqAct {
    /// The operation in Act.
    pub valid: Signal<In, Bit>,
    pub op: Signal<In, Op>,
    pub id: Signal<In, Bits<24>>,
    pub row: Signal<In, RingCtx>,
    pub posted: Signal<In, PostedFacts>,
    pub facts: Signal<In, Facts>,
    /// Free buffers.
    pub buffers: Signal<In, Bits<9>>,
    /// The active list is empty and a job fits.
    pub may_issue: Signal<In, Bit>,
    pub write: Signal<Out, Bit>,
    pub new_row: Signal<Out, RingCtx>,
    /// The queue joins the tail of the active list.
    pub enlist: Signal<Out, Bit>,
    pub issue: Signal<Out, Bit>,
    pub job: Signal<Out, SqJob>,
    /// Buffers that the job takes.
    pub used: Signal<Out, Bits<9>>,
    /// The request that was kept for the operation is not needed.
    pub drop_request: Signal<Out, Bit>,
    /// Bit 0: bad doorbell, 1: doorbell beyond the ring.
    pub stat: Signal<Out, Bits<2>>,
    kind: Signal<Local, Kind>,
    /// Buffers, when they are fewer than a burst; fewer than the fetch would take.
    few: Signal<Local, Bits<4>>,
    scarce: Signal<Local, Bit>,
    take: Signal<Local, Bits<4>>,
    /// The index behind what is taken.
    onward: Signal<Local, Bits<16>>,
    fetch: Signal<Local, Bits<16>>,
    low: Signal<Local, Bits<5>>,
    high: Signal<Local, Bits<12>>,
    leaves_rest: Signal<Local, Bit>,
    size: Signal<Local, Bits<17>>,
    within: Signal<Local, Bit>,
    direct_ok: Signal<Local, Bit>,
    at_once: Signal<Local, Bit>,
}

#[kernel]
impl Logic for SqAct {
    #[hdl_gen]
    fn update(&mut self) {
        self.kind.next = self.op.val().kind;
        self.new_row.next = self.row.val();
        self.write.next = false;
        self.enlist.next = false;
        self.issue.next = false;
        self.drop_request.next = false;
        self.stat.next = bits::<2>(0);
        self.used.next = bits::<9>(0);
        self.few.next = self.buffers.val().get_bits::<4>(0);
        self.scarce.next = !self.buffers.val().get_bits::<6>(LOG_BURST).any() & (self.few.val() < self.facts.val().burst);
        self.take.next = self.facts.val().burst;
        self.leaves_rest.next = !self.facts.val().whole;
        if self.scarce.val() {
            self.take.next = self.few.val();
            self.leaves_rest.next = true;
        }
        // How many are taken is known late: it goes through a short sum, which chooses between two upper parts.
        self.fetch.next = self.row.val().fetch;
        self.low.next = bit_cast::<5, 4>(self.fetch.val().get_bits::<4>(0)) + bit_cast::<5, 4>(self.take.val());
        self.high.next = self.fetch.val().get_bits::<12>(4);
        if self.low.val().get_bit(4) {
            self.high.next = self.fetch.val().get_bits::<12>(4) + 1;
        }
        self.onward.next = (bit_cast::<16, 12>(self.high.val()) << 4) | bit_cast::<16, 4>(self.low.val().get_bits::<4>(0));
        self.size.next = bits::<17>(1) << self.row.val().log_size;
        self.within.next = (self.posted.val().ahead > self.posted.val().pending) & (bit_cast::<17, 16>(self.posted.val().ahead) <= self.size.val());
        self.direct_ok.next = !self.posted.val().more & (self.posted.val().ahead == 1) & (self.row.val().stride == 0) & !self.row.val().parked & !self.row.val().flush & self.buffers.val().any();
        // With nobody in the list a doorbell is its queue's turn.
        self.at_once.next = (self.kind.val() == Kind::Doorbell) & self.may_issue.val() & !self.row.val().active & !self.row.val().parked & self.take.val().any();
        self.job.next.kind = bits::<2>(job_kind::FETCH);
        self.job.next.qpn = self.id.val();
        self.job.next.index = self.row.val().fetch;
        self.job.next.epoch = self.row.val().epoch;
        self.job.next.function = self.row.val().function;
        self.job.next.count = self.take.val();
        self.job.next.base = self.row.val().base;
        self.job.next.offset = self.posted.val().offset.get_bits::<24>(0);
        self.job.next.stride = self.row.val().stride;
        self.job.next.place = self.op.val().place;
        if self.valid.val() {
            match self.kind.val() {
                Kind::Cmd => {
                    self.write.next = self.posted.val().exists;
                    self.new_row.next.parked = self.op.val().command == send_command::PARK;
                    if self.op.val().command != send_command::RESUME {
                        self.new_row.next.fetch = self.op.val().index;
                        self.new_row.next.epoch = self.op.val().epoch;
                    }
                    if self.op.val().command == send_command::FLUSH {
                        self.new_row.next.flush = true;
                    }
                    self.enlist.next = self.posted.val().exists
                        & !self.row.val().active
                        & (self.op.val().command != send_command::PARK)
                        & ((self.facts.val().index_differs & (self.op.val().command != send_command::RESUME)) | (self.posted.val().more & (self.op.val().command == send_command::RESUME)));
                }
                Kind::Turn => {
                    self.write.next = true;
                    if !self.posted.val().exists | self.row.val().parked | !self.posted.val().more {
                        self.new_row.next.active = false;
                    } else {
                        self.new_row.next.active = self.leaves_rest.val();
                        self.enlist.next = self.leaves_rest.val();
                        self.issue.next = self.take.val().any();
                        self.used.next = bit_cast::<9, 4>(self.take.val());
                        self.new_row.next.fetch = self.onward.val();
                        if self.row.val().flush {
                            self.job.next.kind = bits::<2>(job_kind::FLUSH);
                        }
                    }
                }
                _ => {
                    // A doorbell, with or without its request.
                    self.drop_request.next = self.kind.val() == Kind::Direct;
                    if !self.posted.val().exists | !self.posted.val().mine {
                        self.stat.next = bits::<2>(flags(STATS, &["sq_db_bad"]) as u64);
                    } else if !self.within.val() {
                        self.stat.next = bits::<2>(flags(STATS, &["sq_db_overrun"]) as u64);
                    } else {
                        self.write.next = true;
                        self.new_row.next.producer = self.op.val().index;
                        if (self.kind.val() == Kind::Direct) & self.direct_ok.val() {
                            self.new_row.next.fetch = self.op.val().index;
                            self.drop_request.next = false;
                            self.issue.next = true;
                            self.used.next = bits::<9>(1);
                            self.job.next.kind = bits::<2>(job_kind::DIRECT);
                            self.job.next.count = bits::<4>(1);
                        } else if self.at_once.val() {
                            self.issue.next = true;
                            self.used.next = bit_cast::<9, 4>(self.take.val());
                            self.new_row.next.fetch = self.onward.val();
                            self.enlist.next = self.leaves_rest.val();
                            if self.row.val().flush {
                                self.job.next.kind = bits::<2>(job_kind::FLUSH);
                            }
                        } else {
                            self.enlist.next = !self.row.val().active & !self.row.val().parked;
                        }
                    }
                }
            }
        }
        if self.enlist.val() {
            self.new_row.next.active = true;
        }
    }
}
