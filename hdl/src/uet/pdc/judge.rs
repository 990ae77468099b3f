//! The rules (UE 3.5.8, 3.5.12): what an order comes to, by what is known of the PDC that it means.
use super::types::{pdc_ask, stage, stat, verdict, PdcAsk, PdcLine, Ruling, STAT_BITS};
use crate::prim::sum::Diff;
use ferric_abi::uet::codes::{ControlType, NackCode};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// What is known of the order and the line, one bit each.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Facts {
    /// The place has a PDC, and its id is the one meant.
    alive: Bit,
    peer: Bit,
    peer_id: Bit,
    /// The peer's id in the packet; in the line.
    named: Bit,
    known: Bit,
    rod: Bit,
    start: Bit,
    syn: Bit,
    open: Bit,
    close_wait: Bit,
    lingers: Bit,
    /// The place rests, and its last id is the one meant.
    rests: Bit,
    /// The PSN is the one of the close; it is beyond it.
    at_close: Bit,
    past_close: Bit,
    initiator: Bit,
    /// Of NACK: there is such a code; how it is taken.
    again: Bit,
    later: Bit,
    back: Bit,
    waits: Bit,
    unknown: Bit,
    gone: Bit,
}

/// Order and line are steady from `go` to `done`; the ruling is from `done` on.
#[derive(LogicBlock, BlockDefault)]
pub struct Judge {
    pub clock: Signal<In, Clock>,
    /// One cycle.
    pub go: Signal<In, Bit>,
    pub ask: Signal<In, PdcAsk>,
    pub line: Signal<In, PdcLine>,
    pub done: Signal<Out, Bit>,
    pub ruling: Signal<Out, Ruling>,
    /// PSN less Start_PSN.
    pub place: Signal<Out, Bits<32>>,
    /// Start_PSN of a SYN.
    pub syn_start: Signal<Out, Bits<32>>,
    steps: [DFF<Bit>; 4],
    places: DFF<Bits<32>>,
    starts: DFF<Bits<32>>,
    facts: DFF<Facts>,
    /// By what the order is: an arrival, an answer of the peer, anything else.
    arrival: DFF<Ruling>,
    answer: DFF<Ruling>,
    other: DFF<Ruling>,
    rule: DFF<Ruling>,
    behind: Diff<32>,
    first: Diff<32>,
    past: Diff<32>,
    #[init(Constant::new(Ruling::default()))]
    nothing: Constant<Ruling>,
    live: Signal<Local, Bit>,
    same: Signal<Local, Bit>,
    theirs: Signal<Local, Bit>,
    latches: Signal<Local, Bit>,
    stranger: Signal<Local, Bit>,
    no_code: Signal<Local, Bits<8>>,
    fatal: Signal<Local, Bit>,
    f: Signal<Local, Facts>,
    a: Signal<Local, PdcAsk>,
    l: Signal<Local, PdcLine>,
    clears: Signal<Local, Bit>,
    taken: Signal<Local, Bit>,
    /// An arrival that is refused, and why.
    refused: Signal<Local, Bit>,
    why: Signal<Local, Bits<8>>,
    with_id: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Judge {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, places, starts, facts, arrival, answer, other, rule);
        for i in 0..4 {
            self.steps[i].clock.next = self.clock.val();
        }
        self.steps[0].d.next = self.go.val();
        self.steps[1].d.next = self.steps[0].q.val();
        self.steps[2].d.next = self.steps[1].q.val();
        self.steps[3].d.next = self.steps[2].q.val();
        self.done.next = self.steps[3].q.val();
        self.ruling.next = self.rule.q.val();
        self.place.next = self.places.q.val();
        self.syn_start.next = self.starts.q.val();
        self.a.next = self.ask.val();
        self.l.next = self.line.val();

        // First step: differences. Second: facts.
        self.behind.a.next = self.a.val().psn;
        self.behind.b.next = self.l.val().start;
        self.places.d.next = self.behind.y.val();
        self.first.a.next = self.a.val().psn;
        self.first.b.next = bit_cast::<32, 12>(self.a.val().offset);
        self.starts.d.next = self.first.y.val();
        self.live.next = self.l.val().stage.any() & !(self.l.val().stage == stage::REST);
        self.same.next = self.l.val().id == self.a.val().id;
        // Who was found by its peer's name is the one that is meant.
        self.taken.next = (self.a.val().kind == pdc_ask::POST) | ((self.a.val().kind == pdc_ask::ARRIVE) & self.a.val().syn);
        self.facts.d.next.alive = self.live.val() & (self.same.val() | self.taken.val());
        self.facts.d.next.rests = (self.l.val().stage == stage::REST) & self.same.val();
        self.facts.d.next.peer = self.l.val().peer == self.a.val().peer;
        self.facts.d.next.peer_id = self.l.val().peer_id == self.a.val().peer_id;
        self.facts.d.next.named = self.a.val().peer_id.any();
        self.facts.d.next.known = self.l.val().peer_id.any();
        self.facts.d.next.rod = self.l.val().rod == self.a.val().rod;
        self.facts.d.next.start = self.places.q.val() == bit_cast::<32, 12>(self.a.val().offset);
        self.facts.d.next.syn = self.l.val().stage == stage::SYN;
        self.facts.d.next.open = self.l.val().stage == stage::OPEN;
        self.facts.d.next.close_wait = self.l.val().stage == stage::CLOSE_WAIT;
        self.facts.d.next.lingers = self.l.val().stage == stage::LINGER;
        self.facts.d.next.at_close = self.places.q.val() == self.l.val().close;
        self.past.a.next = self.l.val().close;
        self.past.b.next = self.places.q.val();
        self.facts.d.next.past_close = self.past.below.val();
        self.facts.d.next.initiator = self.l.val().initiator;
        self.no_code.next = self.a.val().code;
        self.facts.d.next.again = (self.no_code.val() == NackCode::Trimmed as u64)
            | (self.no_code.val() == NackCode::TrimmedLastHop as u64)
            | (self.no_code.val() == NackCode::NotReceived as u64)
            | (self.no_code.val() == NackCode::AckWithData as u64)
            | (self.no_code.val() == NackCode::InferredLoss as u64);
        self.facts.d.next.later = (self.no_code.val() >= NackCode::NoPdc as u64) & (self.no_code.val() <= NackCode::OutOfWindow as u64);
        self.facts.d.next.back = self.no_code.val() == NackCode::RodOutOfOrder as u64;
        self.facts.d.next.waits = self.no_code.val() == NackCode::InProgress as u64;
        self.facts.d.next.gone = self.no_code.val() == NackCode::InvalidPdc as u64;
        self.facts.d.next.unknown = !self.no_code.val().any()
            | (self.no_code.val() == (NackCode::TrimmedLastHop as u64 + 1))
            | (self.no_code.val() == (NackCode::OutOfWindow as u64 + 1))
            | (self.no_code.val() > NackCode::InferredLoss as u64);

        // Third step, three ways. An arrival: first whether it is refused, then what the PDC's stage makes of it.
        self.f.next = self.facts.q.val();
        self.clears.next =
            (self.a.val().control == ControlType::AckRequest as u64) | (self.a.val().control == ControlType::ClearCommand as u64) | (self.a.val().control == ControlType::ClearRequest as u64);
        self.refused.next = true;
        self.why.next = bits::<8>(NackCode::InvalidPdc as u64);
        self.with_id.next = false;
        if self.a.val().syn {
            self.with_id.next = true;
            self.why.next = bits::<8>(NackCode::InvalidSyn as u64);
            if self.f.val().start {
                self.why.next = bits::<8>(NackCode::ModeMismatch as u64);
                self.refused.next = !self.f.val().rod;
            }
        } else if self.f.val().alive {
            self.why.next = bits::<8>(NackCode::HeaderMismatch as u64);
            if self.f.val().peer & self.f.val().peer_id {
                self.with_id.next = true;
                self.why.next = bits::<8>(NackCode::ModeMismatch as u64);
                self.refused.next = !self.f.val().rod & self.a.val().request;
            }
        }
        self.arrival.d.next = self.nothing.val();
        if self.a.val().trim & !self.a.val().request {
            self.arrival.d.next.verdict = bits::<4>(verdict::DROP);
            self.arrival.d.next.stat = bits::<STAT_BITS>(stat::TRIMMED);
        } else if !self.a.val().syn & self.f.val().alive & !self.f.val().known {
            // The peer's id comes with an answer of it; this packet will come again.
            self.arrival.d.next.verdict = bits::<4>(verdict::DROP);
            self.arrival.d.next.stat = bits::<STAT_BITS>(stat::EARLY);
        } else if self.refused.val() {
            self.arrival.d.next.verdict = bits::<4>(verdict::REFUSE);
            self.arrival.d.next.code = self.why.val();
            self.arrival.d.next.own = self.with_id.val();
            self.arrival.d.next.stat = bits::<STAT_BITS>(stat::REFUSED);
            // Of a trimmed frame no check is left, so it ends nothing.
            if self.a.val().trim {
                self.arrival.d.next.verdict = bits::<4>(verdict::DROP);
                self.arrival.d.next.stat = bits::<STAT_BITS>(stat::TRIMMED);
            }
        } else if self.a.val().request {
            if self.f.val().lingers {
                self.arrival.d.next.verdict = bits::<4>(verdict::DROP);
                self.arrival.d.next.stat = bits::<STAT_BITS>(stat::LATE);
                if self.a.val().trim {
                    self.arrival.d.next.stat = bits::<STAT_BITS>(stat::TRIMMED);
                } else if self.a.val().syn {
                    self.arrival.d.next.stat = bits::<STAT_BITS>(stat::SYN_AFTER_CLOSE);
                } else if self.f.val().past_close {
                    self.arrival.d.next.verdict = bits::<4>(verdict::REFUSE);
                    self.arrival.d.next.code = bits::<8>(NackCode::Closing as u64);
                    self.arrival.d.next.own = true;
                    self.arrival.d.next.stat = bits::<STAT_BITS>(stat::REFUSED);
                }
            }
        } else if self.clears.val() | (self.a.val().control == ControlType::Noop as u64) {
            if self.f.val().lingers {
                self.arrival.d.next.verdict = bits::<4>(verdict::DROP);
                self.arrival.d.next.stat = bits::<STAT_BITS>(stat::LATE);
            }
        } else if (self.a.val().control == ControlType::CloseCommand as u64) & !self.f.val().initiator {
            if self.f.val().lingers {
                self.arrival.d.next.verdict = bits::<4>(verdict::AGAIN);
                self.arrival.d.next.stat = bits::<STAT_BITS>(stat::CLOSE_AGAIN);
                if !self.f.val().at_close {
                    self.arrival.d.next.verdict = bits::<4>(verdict::REFUSE);
                    self.arrival.d.next.code = bits::<8>(NackCode::Closing as u64);
                    self.arrival.d.next.own = true;
                    self.arrival.d.next.stat = bits::<STAT_BITS>(stat::REFUSED);
                }
            }
        } else if (self.a.val().control == ControlType::Credit as u64) | (self.a.val().control == ControlType::CreditRequest as u64) {
            // Congestion management, which is not there.
            self.arrival.d.next.verdict = bits::<4>(verdict::DROP);
            self.arrival.d.next.stat = bits::<STAT_BITS>(stat::IGNORED);
        } else if !((self.a.val().control == ControlType::CloseRequest as u64) & self.f.val().initiator) {
            self.arrival.d.next.verdict = bits::<4>(verdict::REFUSE);
            self.arrival.d.next.code = bits::<8>(NackCode::Unexpected as u64);
            self.arrival.d.next.own = true;
            self.arrival.d.next.stat = bits::<STAT_BITS>(stat::REFUSED);
        }

        // An ACK or a NACK: whose it is, whether it says the peer's id for the first time.
        self.theirs.next = self.f.val().alive & self.f.val().peer;
        self.latches.next = self.f.val().syn & self.f.val().named;
        self.stranger.next = !self.f.val().peer_id & !self.latches.val();
        self.fatal.next = !self.f.val().again & !self.f.val().later & !self.f.val().back & !self.f.val().waits;
        self.answer.d.next = self.nothing.val();
        if !self.theirs.val() {
            self.answer.d.next.verdict = bits::<4>(verdict::NOBODY);
            self.answer.d.next.stat = bits::<STAT_BITS>(stat::STRAY);
        } else if self.a.val().kind == pdc_ask::ACK {
            if self.a.val().bad | self.f.val().lingers {
                self.answer.d.next.verdict = bits::<4>(verdict::BAD);
                self.answer.d.next.stat = bits::<STAT_BITS>(stat::BAD_ACK);
            } else if self.stranger.val() {
                self.answer.d.next.verdict = bits::<4>(verdict::NOBODY);
                self.answer.d.next.stat = bits::<STAT_BITS>(stat::STRAY);
            } else {
                self.answer.d.next.latch = self.latches.val();
                self.answer.d.next.closing = self.a.val().wants & self.f.val().initiator;
                if self.f.val().close_wait & self.a.val().empty {
                    self.answer.d.next.verdict = bits::<4>(verdict::CLOSED);
                    self.answer.d.next.over = true;
                    self.answer.d.next.stat = bits::<STAT_BITS>(stat::CLOSED);
                }
            }
        } else if self.f.val().unknown {
            self.answer.d.next.verdict = bits::<4>(verdict::DROP);
            self.answer.d.next.stat = bits::<STAT_BITS>(stat::UNKNOWN_NACK);
        } else if self.a.val().stale {
            self.answer.d.next.verdict = bits::<4>(verdict::STALE);
            self.answer.d.next.stat = bits::<STAT_BITS>(stat::STALE);
        } else if self.stranger.val() & self.f.val().named {
            self.answer.d.next.verdict = bits::<4>(verdict::NOBODY);
            self.answer.d.next.stat = bits::<STAT_BITS>(stat::STRAY);
        } else {
            self.answer.d.next.latch = self.latches.val();
            if self.f.val().again {
                self.answer.d.next.verdict = bits::<4>(verdict::RESEND);
            } else if self.f.val().later {
                self.answer.d.next.verdict = bits::<4>(verdict::RETRY);
            } else if self.f.val().back {
                self.answer.d.next.verdict = bits::<4>(verdict::REWIND);
            } else if self.fatal.val() {
                self.answer.d.next.verdict = bits::<4>(verdict::FAILED);
                self.answer.d.next.over = true;
                self.answer.d.next.stat = bits::<STAT_BITS>(stat::FAILED);
                // A peer that forgets at once when it is closed says this to a close that comes again.
                if self.f.val().gone & self.f.val().close_wait & self.a.val().closes {
                    self.answer.d.next.verdict = bits::<4>(verdict::CLOSED);
                    self.answer.d.next.stat = bits::<STAT_BITS>(stat::CLOSED_BY_0E);
                }
            }
        }

        // Anything else.
        self.other.d.next = self.nothing.val();
        if self.a.val().kind == pdc_ask::SAFE {
            self.other.d.next.free = self.f.val().rests;
            self.other.d.next.over = self.f.val().lingers & self.f.val().alive;
            if !self.f.val().rests & !(self.f.val().lingers & self.f.val().alive) {
                self.other.d.next.verdict = bits::<4>(verdict::NOBODY);
            }
        } else if !self.f.val().alive {
            self.other.d.next.verdict = bits::<4>(verdict::NOBODY);
            if self.a.val().heard {
                self.other.d.next.stat = bits::<STAT_BITS>(stat::STRAY);
            }
        } else if self.a.val().kind == pdc_ask::POST {
            self.other.d.next.work = true;
            if self.l.val().closing | !(self.f.val().syn | self.f.val().open) {
                self.other.d.next.work = false;
                self.other.d.next.verdict = bits::<4>(verdict::LATER);
                // Messages with an order wait until all in front of them are answered, and then the close goes out.
                self.other.d.next.beside = !self.l.val().rod | self.f.val().close_wait;
            }
        } else if self.a.val().kind == pdc_ask::LOOK {
            if !self.a.val().bare & (!self.f.val().peer | self.stranger.val()) {
                self.other.d.next.verdict = bits::<4>(verdict::NOBODY);
                if self.a.val().heard {
                    self.other.d.next.stat = bits::<STAT_BITS>(stat::STRAY);
                }
            }
        } else if self.a.val().kind == pdc_ask::CLOSE {
            self.other.d.next.closing = self.f.val().initiator;
            self.other.d.next.wants = !self.f.val().initiator;
        } else if self.a.val().kind == pdc_ask::LEAVE {
            self.other.d.next.leaves = self.f.val().open & self.l.val().initiator & self.l.val().closing;
            if !(self.f.val().open & self.l.val().initiator & self.l.val().closing) {
                self.other.d.next.verdict = bits::<4>(verdict::NOBODY);
            }
        } else if self.a.val().kind == pdc_ask::SHUT {
            if self.f.val().initiator | !self.f.val().open {
                self.other.d.next.verdict = bits::<4>(verdict::NOBODY);
            } else if self.a.val().unfinished {
                self.other.d.next.verdict = bits::<4>(verdict::FAILED);
                self.other.d.next.code = bits::<8>(NackCode::ClosingInError as u64);
                self.other.d.next.own = true;
                self.other.d.next.over = true;
                self.other.d.next.stat = bits::<STAT_BITS>(stat::FAILED_REFUSED);
            } else if !self.a.val().whole {
                // Its source has not been answered everything, and yet closes.
                self.other.d.next.verdict = bits::<4>(verdict::REFUSE);
                self.other.d.next.code = bits::<8>(NackCode::Unexpected as u64);
                self.other.d.next.own = true;
                self.other.d.next.stat = bits::<STAT_BITS>(stat::REFUSED);
            } else {
                self.other.d.next.verdict = bits::<4>(verdict::LINGERS);
                self.other.d.next.lingers = true;
                self.other.d.next.stat = bits::<STAT_BITS>(stat::LINGERED);
            }
        } else if self.a.val().kind == pdc_ask::FAIL {
            self.other.d.next.verdict = bits::<4>(verdict::FAILED);
            self.other.d.next.over = true;
            self.other.d.next.stat = bits::<STAT_BITS>(stat::FAILED);
        } else if self.a.val().kind == pdc_ask::WORK {
            self.other.d.next.work = true;
        }

        // Fourth step.
        self.rule.d.next = self.other.q.val();
        if self.a.val().kind == pdc_ask::ARRIVE {
            self.rule.d.next = self.arrival.q.val();
        } else if (self.a.val().kind == pdc_ask::ACK) | (self.a.val().kind == pdc_ask::NACK) {
            self.rule.d.next = self.answer.q.val();
        }
    }
}
