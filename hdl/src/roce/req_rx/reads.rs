//! What an event means while READs or atomics are outstanding, step by step along the work requests (IBTA 9.7.5.1).
//!
//! Two places in the list of work requests: `una_index`, up to where everything is acknowledged, and `done_index`, up to where everything is
//! completed. The second stays behind at a READ whose answer is not in host memory yet.

use super::{kind, outcome};
use super::{Answer, Event};
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{TrackEntry, TrackRead};
use crate::prim::sum::{Ahead, PlusOne};
use crate::records::ReqCtx;
use ferric_abi::codes::CqeStatus;
use ferric_abi::wire::pmtu;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// Asks for the oldest request not acknowledged, compares, acts.
    Seek,
    Entry,
    Weigh,
    /// The same for the oldest request not completed.
    Tell,
    TellEntry,
    TellWeigh,
    End,
    /// The event has a verdict, which is in its register now.
    Done,
}

/// From `start` to `done` the owner lets `new` be its line in every cycle.
#[derive(LogicBlock, Default)]
pub struct Reads {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub start: Signal<In, Bit>,
    /// With `start`: the owner has asked the tracker for the first entry already. It may be there.
    pub asked: Signal<In, Bit>,
    /// The next event is taken with its line in this cycle.
    pub load: Signal<In, Bit>,
    pub next_ev: Signal<In, Event>,
    pub next_line: Signal<In, ReqCtx>,
    pub ev: Signal<In, Event>,
    pub line: Signal<In, ReqCtx>,
    /// So much of the oldest request was acknowledged a cycle before.
    pub bytes: Signal<In, Bits<32>>,
    pub new: Signal<Out, ReqCtx>,
    /// The answer is that of the request at hand: `una_psn` moves by one in this cycle.
    pub accepts: Signal<Out, Bit>,
    /// The same, and it is the request's last one.
    pub answered: Signal<Out, Bit>,
    /// The oldest request is complete in this cycle; it is a READ or an atomic; none is left behind it.
    pub told: Signal<Out, Bit>,
    pub told_asks: Signal<Out, Bit>,
    pub empties: Signal<Out, Bit>,
    /// `una_psn` moved.
    pub progress: Signal<Out, Bit>,
    pub done: Signal<Out, Bit>,
    /// Nothing can follow: the event is over in this cycle. The tracker is not asked by it.
    pub ends: Signal<Out, Bit>,
    /// `m_track` is not wanted in this state.
    pub rests: Signal<Out, Bit>,
    /// 0: timer, resume. 1: the NAK itself. 2: go back to the hole. 3: error with `status`.
    pub outcome: Signal<Out, Bits<2>>,
    pub status: Signal<Out, Bits<8>>,
    pub m_track: MsgSrc<TrackRead>,
    pub s_track: MsgSink<TrackEntry>,
    /// A completion, made from `line.done_index` and `entry`; never while `cqe_busy`.
    pub put_cqe: Signal<Out, Bit>,
    pub cqe_busy: Signal<In, Bit>,
    pub entry: Signal<Out, TrackEntry>,
    /// Always has a place, see `Scatter::room`.
    pub m_answer: MsgSrc<Answer>,
    state: DFF<State>,
    /// Everything before this PSN is acknowledged by the event.
    goal: DFF<Bits<24>>,
    kept: DFF<TrackEntry>,
    passed: DFF<Bit>,
    ahead: DFF<Bit>,
    at_last: DFF<Bit>,
    at_una: DFF<Bit>,
    at_first: DFF<Bit>,
    whole: DFF<Bit>,
    asks: DFF<Bit>,
    atomic: DFF<Bit>,
    /// The request that is being told of is the last before `una_index`.
    nearest: DFF<Bit>,
    /// The request behind takes no PSN, if there is one.
    idle_next: DFF<Bit>,
    accepted: DFF<Bit>,
    /// Something older than the event is not answered.
    hole: DFF<Bit>,
    moved: DFF<Bit>,
    first: DFF<Bit>,
    verdict: DFF<Bits<2>>,
    cause: DFF<Bits<8>>,
    over: Ahead<24>,
    lead: Ahead<24>,
    answers: Signal<Local, Bit>,
    placed: Signal<Local, Bit>,
    lag: Signal<Local, Bit>,
    nothing: Signal<Local, Bit>,
    stopped: Signal<Local, Bit>,
    /// A request that failed locally, and its turn has come.
    due: Signal<Local, Bit>,
    refusal: Signal<Local, Bit>,
    /// The event is over without a verdict.
    over_now: Signal<Local, Bit>,
    op: Signal<Local, Bits<4>>,
    seen: Signal<Local, TrackEntry>,
    after: PlusOne<24>,
    retire: Signal<Local, Bit>,
    fits: Signal<Local, Bit>,
    mtu: Signal<Local, Bits<13>>,
    /// Not carry chains: mapping would share them with `Oldest`'s, whose path is long.
    onward: PlusOne<16>,
    one_more: PlusOne<24>,
    done_onward: PlusOne<16>,
    follower: Signal<Local, Bits<16>>,
    done_follower: Signal<Local, Bits<16>>,
}

#[kernel]
impl Logic for Reads {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, goal, kept, passed, ahead, at_last, at_una, at_first, whole, asks, atomic, nearest, idle_next, accepted, hole, moved, first, verdict, cause);
        self.outcome.next = self.verdict.q.val();
        self.status.next = self.cause.q.val();
        self.entry.next = self.kept.q.val();
        self.new.next = self.line.val();
        self.put_cqe.next = false;
        self.retire.next = false;
        self.told.next = false;
        // An answer; behind it, once accepted, only requests that take no PSN are looked for.
        self.answers.next = ((self.ev.val().kind == kind::READ) | (self.ev.val().kind == kind::ATOMIC)) & !self.accepted.q.val();
        self.placed.next = self.ev.val().kind == kind::PLACED;
        self.lag.next = !(self.line.val().done_index == self.line.val().una_index);
        self.nothing.next = self.line.val().una_index == self.line.val().sent_index;
        self.stopped.next = self.line.val().error_pending & (self.line.val().error_index == self.line.val().una_index);
        self.due.next = self.stopped.val() & !self.lag.val();
        self.refusal.next = (self.ev.val().kind == kind::RNR) | (self.ev.val().kind == kind::NAK_SEQUENCE) | (self.ev.val().kind == kind::NAK_FATAL);
        self.over_now.next = (self.state.q.val() == State::End) & !self.verdict.q.val().any() & !self.refusal.val() & !self.due.val();
        self.onward.a.next = self.line.val().una_index;
        self.one_more.a.next = self.line.val().una_psn;
        self.done_onward.a.next = self.line.val().done_index;
        self.follower.next = self.onward.y.val();
        self.done_follower.next = self.done_onward.y.val();
        self.after.a.next = self.kept.q.val().last_psn;

        // Tracker
        self.m_track.valid.next = ((self.state.q.val() == State::Seek) & !self.nothing.val() & !self.stopped.val()) | (self.state.q.val() == State::Tell);
        self.m_track.data.next.qpn = self.ev.val().qpn;
        self.m_track.data.next.index = self.line.val().una_index;
        if self.state.q.val() == State::Tell {
            self.m_track.data.next.index = self.line.val().done_index;
        }
        // The first entry may come together with the event.
        self.s_track.ready.next = (self.state.q.val() == State::Entry) | (self.state.q.val() == State::TellEntry) | ((self.state.q.val() == State::Idle) & self.start.val() & self.asked.val());
        self.rests.next = (self.state.q.val() == State::Weigh) | (self.state.q.val() == State::TellWeigh);
        self.seen.next = self.s_track.data.val();
        self.op.next = self.seen.val().opcode;

        // Comparisons with the entry, for the next state.
        self.over.a.next = self.goal.q.val();
        self.over.b.next = self.seen.val().last_psn;
        self.lead.a.next = self.goal.q.val();
        self.lead.b.next = self.line.val().una_psn;
        match self.line.val().pmtu.index() {
            pmtu::MTU_256 => {
                self.mtu.next = bits::<13>(pmtu::bytes(pmtu::MTU_256) as u64);
            }
            pmtu::MTU_512 => {
                self.mtu.next = bits::<13>(pmtu::bytes(pmtu::MTU_512) as u64);
            }
            pmtu::MTU_1024 => {
                self.mtu.next = bits::<13>(pmtu::bytes(pmtu::MTU_1024) as u64);
            }
            pmtu::MTU_2048 => {
                self.mtu.next = bits::<13>(pmtu::bytes(pmtu::MTU_2048) as u64);
            }
            _ => {
                self.mtu.next = bits::<13>(pmtu::bytes(pmtu::MTU_4096) as u64);
            }
        }
        if (self.state.q.val() == State::Entry) | (self.state.q.val() == State::TellEntry) | (self.state.q.val() == State::Idle) {
            self.kept.d.next = self.seen.val();
            self.passed.d.next = self.over.y.val();
            self.ahead.d.next = self.lead.y.val();
            self.at_last.d.next = self.ev.val().psn == self.seen.val().last_psn;
            self.at_una.d.next = self.ev.val().psn == self.line.val().una_psn;
            self.at_first.d.next = self.ev.val().psn == self.line.val().una_wqe_psn;
            self.whole.d.next = self.ev.val().pay_len == self.mtu.val();
            // Codes 4 to 7 and 12; a NOP is 15. Atomics are 5 and 6, the others are answered as READs are.
            self.asks.d.next = self.op.val().get_bit(2) & !self.op.val().all();
            self.atomic.d.next = (self.op.val().get_bit(0) & !self.op.val().get_bit(1)) | (!self.op.val().get_bit(0) & self.op.val().get_bit(1));
            self.idle_next.d.next = self.seen.val().next_psn == self.seen.val().last_psn;
            self.nearest.d.next = self.done_follower.val() == self.line.val().una_index;
        }
        // Whether the answer is one of the request at hand: kind, place in the sequence, length (the last one's is checked by placement).
        self.fits.next = !self.ev.val().bad
            & ((self.ev.val().kind == kind::ATOMIC) == self.atomic.q.val())
            & (self.atomic.q.val() | ((self.ev.val().last == self.at_last.q.val()) & (self.ev.val().first | !self.at_first.q.val()) & (self.whole.q.val() | self.at_last.q.val())));
        self.accepts.next = (self.state.q.val() == State::Weigh) & self.asks.q.val() & self.answers.val() & self.at_una.q.val() & self.fits.val();

        self.progress.next = self.moved.q.val() | self.accepts.val();

        self.m_answer.valid.next = self.accepts.val();
        self.m_answer.data.next.qpn = self.ev.val().qpn;
        self.m_answer.data.next.index = self.line.val().una_index;
        self.m_answer.data.next.function = self.line.val().function;
        self.m_answer.data.next.pd = self.line.val().pd;
        self.m_answer.data.next.psn = self.ev.val().psn;
        self.m_answer.data.next.place = self.accepts.val();
        self.m_answer.data.next.last = self.at_last.q.val();
        self.m_answer.data.next.atomic = self.atomic.q.val();
        self.m_answer.data.next.handle = self.ev.val().handle;
        self.m_answer.data.next.pay_off = self.ev.val().pay_off;
        self.m_answer.data.next.pay_len = self.ev.val().pay_len;
        self.m_answer.data.next.data = self.ev.val().data;
        self.m_answer.data.next.buffer = bits::<8>(0);
        self.m_answer.data.next.only_free = false;
        self.m_answer.data.next.mark = false;
        self.m_answer.data.next.msg_off = self.bytes.val();
        if self.atomic.q.val() {
            self.m_answer.data.next.pay_len = bits::<13>(8);
            self.m_answer.data.next.pay_off = bits::<8>(0);
        }

        if self.load.val() {
            self.goal.d.next = self.next_ev.val().psn;
            match self.next_ev.val().kind.index() {
                kind::ACK => self.goal.d.next = self.next_ev.val().psn + 1,
                kind::LOOK => self.goal.d.next = self.next_line.val().una_psn,
                kind::LOCAL => self.goal.d.next = self.next_line.val().una_psn,
                _ => {}
            }
        }
        match self.state.q.val() {
            State::Idle => {
                self.moved.d.next = false;
                self.accepted.d.next = false;
                self.hole.d.next = false;
                self.first.d.next = true;
                self.verdict.d.next = bits::<2>(0);
                self.cause.d.next = bits::<8>(CqeStatus::Success as u64);
                if self.start.val() {
                    self.state.d.next = State::Seek;
                    if self.asked.val() {
                        self.state.d.next = State::Entry;
                        if self.s_track.valid.val() {
                            self.state.d.next = State::Weigh;
                        }
                    }
                    if self.placed.val() {
                        self.state.d.next = State::Tell;
                        if self.asked.val() {
                            self.state.d.next = State::TellEntry;
                            if self.s_track.valid.val() {
                                self.state.d.next = State::TellWeigh;
                            }
                        }
                    }
                }
            }
            State::Seek => {
                if self.nothing.val() | self.stopped.val() {
                    self.state.d.next = State::End;
                } else if self.m_track.ready.val() {
                    self.state.d.next = State::Entry;
                }
            }
            State::Entry => {
                if self.s_track.valid.val() {
                    self.state.d.next = State::Weigh;
                }
            }
            State::Weigh => {
                self.state.d.next = State::End;
                if !self.asks.q.val() {
                    if self.passed.q.val() {
                        // Behind a READ that is not done a completion has to wait.
                        self.retire.next = self.lag.val() | !self.kept.q.val().signaled | !self.cqe_busy.val();
                        self.put_cqe.next = self.retire.val() & !self.lag.val() & self.kept.q.val().signaled;
                        self.state.d.next = State::Weigh;
                        if self.retire.val() {
                            self.state.d.next = State::Seek;
                        }
                    } else if self.ahead.q.val() & !self.answers.val() {
                        // An answer that nobody asked for says nothing.
                        self.new.next.una_psn = self.goal.q.val();
                        self.moved.d.next = true;
                    }
                } else if self.answers.val() & self.at_una.q.val() {
                    if self.fits.val() {
                        self.accepted.d.next = true;
                        self.moved.d.next = true;
                        self.goal.d.next = self.ev.val().psn + 1;
                        self.state.d.next = State::Idle;
                        // What stands behind and takes no PSN is acknowledged with it; whatever takes one is not.
                        if self.at_last.q.val() & self.idle_next.q.val() {
                            self.state.d.next = State::Seek;
                        }
                    } else {
                        self.verdict.d.next = bits::<2>(outcome::FAIL);
                        self.cause.d.next = bits::<8>(CqeStatus::BadResponse as u64);
                    }
                } else if self.ahead.q.val() & (self.answers.val() | (self.ev.val().kind == kind::ACK) | (self.ev.val().kind == kind::NAK_FATAL)) {
                    // An answer is missing: implied NAK, told once (9.7.5.1.2). A refusal of what stands behind it has to come again.
                    self.hole.d.next = true;
                    if !self.line.val().read_gap & !self.line.val().rnr_wait {
                        self.new.next.read_gap = true;
                        self.verdict.d.next = bits::<2>(outcome::GO_BACK);
                    }
                }
            }
            State::Tell => {
                if self.m_track.ready.val() {
                    self.state.d.next = State::TellEntry;
                }
            }
            State::TellEntry => {
                if self.s_track.valid.val() {
                    self.state.d.next = State::TellWeigh;
                }
            }
            State::TellWeigh => {
                self.state.d.next = State::End;
                if self.first.q.val() & self.ev.val().status.any() {
                    // Something of the oldest READ could not be placed.
                    if self.asks.q.val() & !(self.line.val().done_index == self.line.val().sent_index) {
                        self.verdict.d.next = bits::<2>(outcome::FAIL);
                        self.cause.d.next = self.ev.val().status;
                    }
                } else if self.lag.val() & ((self.first.q.val() & self.asks.q.val() & self.at_last.q.val()) | (!self.first.q.val() & !self.asks.q.val())) {
                    self.told.next = !self.kept.q.val().signaled | !self.cqe_busy.val();
                    self.put_cqe.next = self.told.val() & self.kept.q.val().signaled;
                    self.state.d.next = State::TellWeigh;
                    if self.told.val() {
                        self.state.d.next = State::Tell;
                        if self.nearest.q.val() | self.kept.q.val().next_asks {
                            self.state.d.next = State::End;
                        }
                    }
                }
            }
            State::End => {
                self.state.d.next = State::Done;
                if self.over_now.val() {
                    self.state.d.next = State::Idle;
                }
                if !self.verdict.q.val().any() {
                    if self.refusal.val() & (!(self.ev.val().kind == kind::NAK_FATAL) | !self.hole.q.val()) {
                        self.verdict.d.next = bits::<2>(outcome::FINISH);
                    }
                    if self.due.val() {
                        self.verdict.d.next = bits::<2>(outcome::FAIL);
                        self.cause.d.next = self.line.val().error_status;
                    }
                }
                // Whatever was not accepted gives its frame back.
                if (self.ev.val().kind == kind::READ) & !self.accepted.q.val() {
                    self.m_answer.valid.next = true;
                }
            }
            State::Done => {
                self.state.d.next = State::Idle;
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.retire.val() {
            self.moved.d.next = true;
            self.new.next.una_psn = self.after.y.val();
            self.new.next.una_wqe_psn = self.after.y.val();
            self.new.next.una_index = self.follower.val();
            if !self.lag.val() {
                self.new.next.done_index = self.follower.val();
            }
        }
        if self.told.val() {
            self.first.d.next = false;
            self.new.next.done_index = self.done_follower.val();
            if self.asks.q.val() {
                self.new.next.rd_out = self.line.val().rd_out - 1;
            }
        }
        if self.accepts.val() {
            self.new.next.una_psn = self.one_more.y.val();
            self.new.next.read_gap = false;
            if self.at_last.q.val() {
                self.new.next.una_index = self.follower.val();
                self.new.next.una_wqe_psn = self.after.y.val();
                self.new.next.rd_open = self.line.val().rd_open - 1;
            }
        }
        self.answered.next = self.accepts.val() & self.at_last.q.val();
        // An answer's request has not failed, and that behind it waits for it; a failure behind the last that is told of has its turn (`End`).
        self.ends.next = (self.accepts.val() & !(self.at_last.q.val() & self.idle_next.q.val()))
            | (self.told.val() & ((self.nearest.q.val() & !self.stopped.val()) | (!self.nearest.q.val() & self.kept.q.val().next_asks)));
        self.told_asks.next = self.told.val() & self.asks.q.val();
        self.empties.next = self.nearest.q.val() & self.nothing.val();
        self.done.next = (self.state.q.val() == State::Done) | self.over_now.val() | self.ends.val();
        if self.told.val() & self.ends.val() {
            self.state.d.next = State::Idle;
        }
        if self.progress.val() {
            self.new.next.retries_left = self.line.val().retry_cnt;
            self.new.next.rnr_left = self.line.val().rnr_retry;
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
