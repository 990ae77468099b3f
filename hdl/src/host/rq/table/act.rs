//! Act: the new row of an operation's queue, and what follows from it. No state.

use super::{Kind, Op, ROWS, STATS};
use crate::host::rq::ahead::RqLink;
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
    /// The ring is such as is fetched ahead; slots that are posted and not fetched ahead.
    pub apt: Signal<In, Bit>,
    pub waiting: Signal<In, Bits<16>>,
    /// What may be done: the ring may go on the active list to be fetched ahead of; a doorbell puts it there; it may have another block.
    pub open: Signal<In, Bit>,
    pub joins: Signal<In, Bit>,
    pub below_limit: Signal<In, Bit>,
    /// There are some; fewer than eight.
    pub some: Signal<In, Bit>,
    pub few_left: Signal<In, Bit>,
    /// See [`RqAhead`](crate::host::rq::ahead::RqAhead).
    pub block: Signal<In, Bits<7>>,
    pub block_ok: Signal<In, Bit>,
    pub chained: Signal<In, RqLink>,
    pub take: Signal<Out, Bit>,
    pub link_en: Signal<Out, Bit>,
    pub link: Signal<Out, RqLink>,
    /// A block was wanted, and none was free.
    pub starved: Signal<Out, Bit>,
    pub write: Signal<Out, Bit>,
    pub new_row: Signal<Out, RingCtx>,
    /// The queue joins the tail of the active list.
    pub enlist: Signal<Out, Bit>,
    pub issue: Signal<Out, Bit>,
    /// The job reads.
    pub reading: Signal<Out, Bit>,
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
    pub stat: Signal<Out, Bits<8>>,
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
    /// Slot `fetch` is in a block, the last one of it.
    has: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    unread: Signal<Local, Bit>,
    fetches: Signal<Local, Bit>,
    to_end: Signal<Local, Bits<4>>,
    few: Signal<Local, Bits<6>>,
    rows: Signal<Local, Bits<4>>,
    slots: Signal<Local, Bits<4>>,
    offset: Signal<Local, Bits<25>>,
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
        self.stat.next = bits::<8>(0);
        self.whose.next = self.row.val().function;
        if self.kind.val() == Kind::Doorbell {
            self.whose.next = self.op.val().function;
        }
        self.used.next = bits::<7>(0);
        self.size.next = bits::<17>(1) << self.row.val().log_size;
        self.within.next = (self.facts.val().ahead > self.facts.val().pending) & (bit_cast::<17, 16>(self.facts.val().ahead) <= self.size.val());
        self.posted.next = self.facts.val().exists & self.facts.val().more & ((!self.row.val().flush & !self.row.val().error) | self.op.val().late);
        self.takes.next = self.posted.val();
        self.armed.next = self.facts.val().exists & self.row.val().shared & self.row.val().limit.any();
        self.below.next = self.facts.val().pending < self.row.val().limit;
        self.at.next = self.facts.val().pending <= self.row.val().limit;
        self.tells.next = false;
        self.news.next = bits::<8>(EventKind::SrqLimit as u64);
        self.eqn.next = self.row.val().eqn;
        self.job.next.grant = true;
        self.job.next.late = self.op.val().late;
        self.job.next.release = false;
        self.job.next.hit = false;
        self.job.next.frees = false;
        self.job.next.block = self.row.val().first;
        self.job.next.count = self.row.val().blocks;
        self.job.next.ok = self.takes.val();
        self.job.next.dead = self.row.val().error & self.facts.val().exists;
        self.job.next.shared = self.row.val().shared;
        self.job.next.ring = self.id.val();
        self.job.next.index = self.row.val().fetch;
        self.job.next.function = self.row.val().function;
        self.job.next.base = self.row.val().base;
        self.job.next.offset = self.facts.val().offset;
        self.job.next.stride = self.row.val().stride;
        self.reading.next = false;
        self.has.next = self.row.val().blocks.any() & !self.row.val().stale;
        self.ends.next = self.row.val().left == 1;
        self.unread.next = self.facts.val().pending != bit_cast::<16, 8>(self.row.val().ahead);
        if !self.has.val() {
            self.unread.next = self.facts.val().pending != 1;
        }
        // A read goes to the end of the ring's eight rows at most, which are in one page.
        self.offset.next = self.facts.val().offset;
        self.to_end.next = bits::<4>(ROWS) - bit_cast::<4, 3>(self.offset.val().get_bits::<3>(6));
        self.few.next = bit_cast::<6, 3>(self.waiting.val().get_bits::<3>(0)) << self.row.val().stride;
        self.rows.next = self.to_end.val();
        if self.few_left.val() & (self.few.val() < bit_cast::<6, 4>(self.to_end.val())) {
            self.rows.next = self.few.val().get_bits::<4>(0);
        }
        self.slots.next = self.rows.val() >> self.row.val().stride;
        self.fetches.next = self.apt.val() & self.facts.val().exists & self.some.val() & !self.row.val().flush & !self.row.val().error & self.below_limit.val();
        self.take.next = false;
        self.link_en.next = false;
        self.link.next.block = self.block.val();
        self.link.next.slots = self.slots.val();
        self.starved.next = false;
        self.flush.next.qpn = self.id.val();
        self.flush.next.index = self.row.val().fetch;
        if self.valid.val() {
            match self.kind.val() {
                Kind::Doorbell => {
                    if !self.facts.val().exists | !self.facts.val().mine {
                        self.stat.next = bits::<8>(flags(STATS, &["rq_db_bad"]) as u64);
                    } else if !self.within.val() {
                        self.stat.next = bits::<8>(flags(STATS, &["rq_db_overrun"]) as u64);
                    } else {
                        self.write.next = true;
                        self.new_row.next.producer = self.op.val().index;
                        self.enlist.next = self.joins.val();
                    }
                }
                Kind::Alloc => {
                    self.issue.next = true;
                    self.tells.next = self.armed.val() & (self.below.val() | (self.at.val() & self.takes.val()));
                    if !self.posted.val() {
                        self.stat.next = bits::<8>(flags(STATS, &["rq_empty"]) as u64);
                    } else {
                        self.write.next = true;
                        self.new_row.next.fetch = self.fetch_next.val();
                        self.used.next = bits::<7>(1);
                        self.enlist.next = self.open.val() & self.unread.val() & (self.below_limit.val() | self.ends.val());
                        self.reading.next = !self.has.val();
                    }
                    if self.posted.val() & self.has.val() {
                        self.stat.next = bits::<8>(flags(STATS, &["rq_fetched_ahead"]) as u64);
                        self.job.next.hit = true;
                        self.job.next.frees = self.ends.val();
                        self.new_row.next.used = true;
                        self.new_row.next.ahead = self.row.val().ahead - 1;
                        self.new_row.next.left = self.row.val().left - 1;
                        if self.ends.val() {
                            self.new_row.next.first = self.chained.val().block;
                            self.new_row.next.left = self.chained.val().slots;
                            self.new_row.next.blocks = self.row.val().blocks - 1;
                        }
                    }
                }
                Kind::Again => {
                    // Nothing moves: this one has been handed out before.
                    self.issue.next = true;
                    self.job.next.ok = self.facts.val().exists;
                    self.stat.next = bits::<8>(flags(STATS, &["rq_fetched_again"]) as u64);
                    self.reading.next = self.facts.val().exists;
                    if self.facts.val().exists {
                        self.used.next = bits::<7>(1);
                    }
                }
                Kind::Cmd => {
                    self.write.next = self.facts.val().exists;
                    self.new_row.next.flush = true;
                    self.new_row.next.stale = self.row.val().blocks.any();
                    self.enlist.next = self.facts.val().exists & self.facts.val().more & !self.row.val().active;
                }
                Kind::Fault => {
                    // A queue pair's own failed fetch is found by placement.
                    self.tells.next = self.facts.val().exists & !self.row.val().error;
                    self.news.next = bits::<8>(EventKind::SrqError as u64);
                    self.write.next = self.tells.val();
                    self.new_row.next.error = true;
                }
                Kind::Evict => {
                    self.write.next = self.row.val().blocks.any();
                    self.new_row.next.used = false;
                    if self.has.val() & !self.row.val().used {
                        self.new_row.next.stale = true;
                        self.enlist.next = !self.row.val().active;
                    }
                }
                _ => {
                    self.write.next = true;
                    self.new_row.next.active = false;
                    self.tells.next = self.armed.val() & self.below.val();
                    self.job.next.grant = false;
                    if self.row.val().stale {
                        // Nothing is fetched ahead before the next doorbell or allocation.
                        self.issue.next = true;
                        self.job.next.release = true;
                        self.new_row.next.stale = false;
                        self.new_row.next.blocks = bits::<4>(0);
                        self.new_row.next.ahead = bits::<8>(0);
                        self.enlist.next = self.facts.val().exists & self.facts.val().more & self.row.val().flush;
                    } else if self.fetches.val() & self.block_ok.val() {
                        self.issue.next = true;
                        self.reading.next = true;
                        self.take.next = true;
                        self.job.next.block = self.block.val();
                        self.job.next.count = self.rows.val();
                        self.new_row.next.ahead = self.row.val().ahead + bit_cast::<8, 4>(self.slots.val());
                        self.new_row.next.blocks = self.row.val().blocks + 1;
                        self.new_row.next.last = self.block.val();
                        self.link_en.next = true;
                        if !self.row.val().blocks.any() {
                            self.link_en.next = false;
                            self.new_row.next.first = self.block.val();
                            self.new_row.next.left = self.slots.val();
                        }
                        self.enlist.next = self.waiting.val() != bit_cast::<16, 4>(self.slots.val());
                    } else if self.fetches.val() {
                        self.starved.next = true;
                    } else if self.facts.val().exists & self.facts.val().more & self.row.val().flush {
                        self.flushes.next = true;
                        self.stat.next = bits::<8>(flags(STATS, &["rq_flushed"]) as u64);
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
                self.stat.next = bits::<8>(flags(STATS, &["srq_errors"]) as u64);
            } else {
                // Once: then it has to be armed again.
                self.write.next = true;
                self.new_row.next.limit = bits::<16>(0);
                self.stat.next = self.stat.val() | bits::<8>(flags(STATS, &["srq_limits"]) as u64);
            }
        }
    }
}
