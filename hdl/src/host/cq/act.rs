//! Act: the new row of an operation's queue, and what follows from it. No state.

use super::report::Report;
use super::{Kind, Op, STATS};
use crate::host::table::ring::RingFacts;
use crate::msg::CqeReq;
use crate::records::CqCtx;
use crate::stats::flags;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub(super) struct CqAct {
    /// The operation in Act; `request` is a completion's.
    pub valid: Signal<In, Bit>,
    pub op: Signal<In, Op>,
    pub id: Signal<In, Bits<24>>,
    pub request: Signal<In, CqeReq>,
    pub row: Signal<In, CqCtx>,
    /// The queue exists, the number has no bits beyond the table, and the function owns it.
    pub mine: Signal<In, Bit>,
    pub ring: Signal<In, RingFacts>,
    pub write: Signal<Out, Bit>,
    pub new_row: Signal<Out, CqCtx>,
    /// The completion's entry is written.
    pub issue: Signal<Out, Bit>,
    pub report: Signal<Out, Report>,
    /// `report` goes to the reporter.
    pub reports: Signal<Out, Bit>,
    /// Bits of [`super::STATS`].
    pub counted: Signal<Out, Bits<5>>,
    kind: Signal<Local, Kind>,
    size: Signal<Local, Bits<16>>,
    full: Signal<Local, Bit>,
    producer_old: Signal<Local, Bits<16>>,
    producer_next: Signal<Local, Bits<16>>,
    wants: Signal<Local, Bit>,
    arms: Signal<Local, Bit>,
    last: Signal<Local, Bit>,
}

#[kernel]
impl Logic for CqAct {
    #[hdl_gen]
    fn update(&mut self) {
        self.kind.next = self.op.val().kind;
        self.new_row.next = self.row.val();
        self.write.next = false;
        self.issue.next = false;
        self.reports.next = false;
        self.counted.next = bits::<5>(0);
        self.size.next = bits::<16>(1) << self.row.val().log_size;
        self.full.next = self.ring.val().unread >= self.size.val();
        self.producer_old.next = self.row.val().producer;
        self.producer_next.next = self.producer_old.val() + 1;
        self.wants.next = self.row.val().armed | (self.row.val().armed_solicited & ((self.request.val().status != 0) | (self.request.val().is_recv & self.request.val().solicited)));
        self.arms.next = self.op.val().arm | self.op.val().arm_solicited;
        self.report.next.written = false;
        self.report.next.event = true;
        self.report.next.error = false;
        self.last.next = self.request.val().last & (self.kind.val() == Kind::Cqe);
        self.report.next.last = self.last.val();
        self.report.next.eqn = self.row.val().eqn;
        self.report.next.function = self.row.val().function;
        self.report.next.id = self.id.val();
        if self.last.val() {
            self.report.next.id = self.request.val().qpn;
        }
        if self.valid.val() {
            match self.kind.val() {
                Kind::Cqe => {
                    if !self.mine.val() {
                        self.counted.next = bits::<5>(flags(STATS, &["cq_bad"]) as u64);
                    } else if self.last.val() {
                        self.reports.next = true;
                    } else if self.row.val().overflow | self.full.val() {
                        // The queue is dead from here on; one event says so.
                        self.counted.next = bits::<5>(flags(STATS, &["cq_overflow"]) as u64);
                        self.write.next = true;
                        self.new_row.next.overflow = true;
                        self.reports.next = !self.row.val().overflow;
                        self.report.next.error = true;
                    } else {
                        self.counted.next = bits::<5>(flags(STATS, &["cqe_written"]) as u64);
                        self.write.next = true;
                        self.issue.next = true;
                        self.new_row.next.producer = self.producer_next.val();
                        self.reports.next = true;
                        self.report.next.written = true;
                        self.report.next.event = self.wants.val();
                        if self.wants.val() {
                            self.new_row.next.armed = false;
                            self.new_row.next.armed_solicited = false;
                        }
                    }
                }
                _ => {
                    if !self.mine.val() {
                        self.counted.next = bits::<5>(flags(STATS, &["cq_db_bad"]) as u64);
                    } else if self.ring.val().unread_then > self.ring.val().unread {
                        self.counted.next = bits::<5>(flags(STATS, &["cq_db_overrun"]) as u64);
                    } else {
                        self.write.next = true;
                        self.new_row.next.consumer = self.op.val().index;
                        if self.arms.val() {
                            // Something is unread: the event goes at once (behind the writes it may be about).
                            self.reports.next = self.ring.val().unread_then.any();
                            self.new_row.next.armed = (self.row.val().armed | self.op.val().arm) & !self.ring.val().unread_then.any();
                            self.new_row.next.armed_solicited = (self.row.val().armed_solicited | self.op.val().arm_solicited) & !self.ring.val().unread_then.any();
                        }
                    }
                }
            }
        }
    }
}
