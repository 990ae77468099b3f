//! The order of work: one frame, or one request of our own, after the other.

use super::header::{Sort, READY};
use super::table::want;
use super::STATS;
use crate::stats::flags;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// The bit of function 0 among those that are to ask.
const FUNCTION_0: u64 = 1;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// The first two pieces of the frame are read, then the headers are judged.
    First,
    Second,
    Judge,
    Sort,
    /// The table is asked for the address, or for the search.
    Look,
    Limit,
    Check,
    /// Checksums and options.
    Walk,
    Learn,
    /// The function's search is read.
    Search,
    Build,
    Send,
    /// The frame's cells are freed.
    Free,
    /// The frame is passed on.
    Back,
}

/// Its events; `came`, `done` and the like are one cycle long.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Worker<const LF: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    /// A frame waits; it does until `taken`, or until it is passed on.
    pub waiting: Signal<In, Bit>,
    pub taken: Signal<Out, Bit>,
    /// Too many wait: it is dropped unseen.
    pub crowded: Signal<In, Bit>,
    /// It is of more than one piece.
    pub long: Signal<In, Bit>,
    pub back: Signal<Out, Bit>,
    pub back_ready: Signal<In, Bit>,
    // Pieces
    pub fetch: Signal<Out, Bit>,
    pub fetch_second: Signal<Out, Bit>,
    pub fetch_free: Signal<Out, Bit>,
    pub came: Signal<In, Bit>,
    pub first: Signal<Out, Bit>,
    pub second: Signal<Out, Bit>,
    // Headers
    pub sort: Signal<In, Sort>,
    pub good: Signal<In, Bit>,
    pub nobody: Signal<In, Bit>,
    // Table
    pub look: Signal<Out, Bit>,
    pub want: Signal<Out, Bits<2>>,
    pub whose: Signal<Out, Bits<LF>>,
    pub looked: Signal<In, Bit>,
    pub hit: Signal<In, Bit>,
    /// A function is to ask.
    pub ask: Signal<In, Bit>,
    pub ask_function: Signal<In, Bits<LF>>,
    // Limit
    pub limit: Signal<Out, Bit>,
    pub limited: Signal<In, Bit>,
    pub allowed: Signal<In, Bit>,
    // Checksums and options
    pub walk: Signal<Out, Bit>,
    pub walked: Signal<In, Bit>,
    pub right: Signal<In, Bit>,
    pub source: Signal<In, Bit>,
    pub target: Signal<In, Bit>,
    // What is sent
    pub asking: Signal<Out, Bit>,
    pub build: Signal<Out, Bit>,
    pub built: Signal<In, Bit>,
    pub send: Signal<Out, Bit>,
    pub sent: Signal<In, Bit>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<9>>,
    state: DFF<State>,
    /// The state's order has been given.
    told: DFF<Bit>,
    age: DFF<Bits<3>>,
    asks: DFF<Bit>,
    /// Of functions that are to ask, one bit each, and the one that is looked at.
    pending: DFF<Bits<64>>,
    poll: DFF<Bits<LF>>,
    turn: DFF<Bit>,
    events: DFF<Bits<9>>,
    count: DFF<Bits<9>>,
    request: Signal<Local, Bit>,
    tells: Signal<Local, Bit>,
    polled: Signal<Local, Bits<64>>,
    place: Signal<Local, Bits<64>>,
    newly: Signal<Local, Bits<64>>,
    answered: Signal<Local, Bits<9>>,
}

#[kernel]
impl<const LF: usize> Logic for Worker<LF> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, told, age, asks, pending, poll, turn, events, count);
        self.stat.next = self.events.q.val();
        self.events.d.next = bits::<9>(0);
        self.request.next = self.sort.val().arp_request | self.sort.val().ping | self.sort.val().ping6 | self.sort.val().solicitation;
        self.tells.next = self.sort.val().arp_reply | self.sort.val().advertisement;
        self.asking.next = self.asks.q.val();
        self.whose.next = self.poll.q.val();
        self.want.next = bits::<2>(want::OWN);
        if self.tells.val() {
            self.want.next = bits::<2>(want::SEEKER);
        }
        if self.state.q.val() == State::Learn {
            self.want.next = bits::<2>(want::FOUND);
        }
        if self.asks.q.val() {
            self.want.next = bits::<2>(want::SEARCH);
        }
        self.answered.next = bits::<9>(flags(STATS, &["echo_arp"]) as u64);
        if self.sort.val().ping {
            self.answered.next = bits::<9>(flags(STATS, &["echo_ping"]) as u64);
        }
        if self.sort.val().ping6 {
            self.answered.next = bits::<9>(flags(STATS, &["echo_ping6"]) as u64);
        }
        if self.sort.val().solicitation {
            self.answered.next = bits::<9>(flags(STATS, &["echo_nd"]) as u64);
        }

        // Who is to ask: each function in its turn. An order in the cycle in which an older one begins stays.
        self.newly.next = bits::<64>(0);
        if self.ask.val() {
            self.newly.next = bits::<64>(FUNCTION_0) << bit_cast::<64, LF>(self.ask_function.val());
        }
        self.polled.next = self.pending.q.val() >> bit_cast::<64, LF>(self.poll.q.val());
        self.place.next = bits::<64>(FUNCTION_0) << bit_cast::<64, LF>(self.poll.q.val());
        self.pending.d.next = self.pending.q.val() | self.newly.val();

        // Orders: each is given once, when its state begins.
        self.fetch.next = false;
        self.fetch_second.next = false;
        self.fetch_free.next = false;
        self.first.next = false;
        self.second.next = false;
        self.look.next = false;
        self.limit.next = false;
        self.walk.next = false;
        self.build.next = false;
        self.send.next = false;
        self.taken.next = false;
        self.back.next = self.state.q.val() == State::Back;
        self.told.d.next = true;
        match self.state.q.val() {
            State::Idle => {
                self.told.d.next = false;
                self.age.d.next = bits::<3>(0);
                self.asks.d.next = false;
                self.poll.d.next = self.poll.q.val() + 1;
                if self.polled.val().get_bit(0) & (self.turn.q.val() | !self.waiting.val()) {
                    self.turn.d.next = false;
                    self.asks.d.next = true;
                    self.poll.d.next = self.poll.q.val();
                    self.pending.d.next = (self.pending.q.val() & !self.place.val()) | self.newly.val();
                    self.state.d.next = State::Search;
                } else if self.waiting.val() & (!self.turn.q.val() | !self.pending.q.val().any()) {
                    self.turn.d.next = true;
                    self.state.d.next = State::First;
                    if self.crowded.val() {
                        self.count.d.next = bits::<9>(flags(STATS, &["echo_limited"]) as u64);
                        self.state.d.next = State::Free;
                    }
                }
            }
            State::First => {
                self.fetch.next = !self.told.q.val();
                self.first.next = self.came.val();
                if self.came.val() {
                    self.told.d.next = false;
                    self.state.d.next = State::Judge;
                    if self.long.val() {
                        self.state.d.next = State::Second;
                    }
                }
            }
            State::Second => {
                self.fetch.next = !self.told.q.val();
                self.fetch_second.next = true;
                self.second.next = self.came.val();
                if self.came.val() {
                    self.state.d.next = State::Judge;
                }
            }
            State::Judge => {
                self.age.d.next = self.age.q.val() + 1;
                if self.age.q.val() == READY {
                    self.state.d.next = State::Sort;
                }
            }
            State::Sort => {
                self.told.d.next = false;
                self.state.d.next = State::Back;
                if self.request.val() | (self.tells.val() & self.good.val()) {
                    self.state.d.next = State::Look;
                }
            }
            State::Look => {
                self.look.next = true;
                if self.looked.val() {
                    self.told.d.next = false;
                    self.state.d.next = State::Back;
                    if self.hit.val() {
                        self.state.d.next = State::Limit;
                        if self.tells.val() {
                            self.state.d.next = State::Learn;
                            if self.sort.val().advertisement {
                                self.state.d.next = State::Walk;
                            }
                        }
                    }
                }
            }
            State::Limit => {
                self.limit.next = !self.told.q.val();
                self.count.d.next = bits::<9>(flags(STATS, &["echo_limited"]) as u64);
                if self.limited.val() {
                    self.told.d.next = false;
                    self.state.d.next = State::Free;
                    if self.allowed.val() {
                        self.state.d.next = State::Check;
                    }
                }
            }
            State::Check => {
                self.told.d.next = false;
                self.count.d.next = bits::<9>(flags(STATS, &["echo_malformed"]) as u64);
                self.state.d.next = State::Free;
                if self.good.val() {
                    self.state.d.next = State::Walk;
                    if self.sort.val().arp_request {
                        self.state.d.next = State::Build;
                    }
                }
            }
            State::Walk => {
                self.walk.next = !self.told.q.val();
                self.count.d.next = bits::<9>(flags(STATS, &["echo_malformed"]) as u64);
                if self.walked.val() {
                    self.told.d.next = false;
                    self.state.d.next = State::Free;
                    if self.tells.val() {
                        self.state.d.next = State::Back;
                        if self.right.val() & self.target.val() {
                            self.state.d.next = State::Learn;
                        }
                    } else if self.right.val() & !(self.sort.val().solicitation & self.nobody.val() & self.source.val()) {
                        self.state.d.next = State::Build;
                    }
                }
            }
            State::Learn => {
                self.look.next = true;
                self.count.d.next = bits::<9>(flags(STATS, &["echo_found"]) as u64);
                if self.looked.val() {
                    self.told.d.next = false;
                    self.state.d.next = State::Back;
                    if self.hit.val() {
                        self.state.d.next = State::Free;
                    }
                }
            }
            State::Search => {
                self.look.next = true;
                if self.looked.val() {
                    self.told.d.next = false;
                    self.state.d.next = State::Idle;
                    if self.hit.val() {
                        self.state.d.next = State::Build;
                    }
                }
            }
            State::Build => {
                self.build.next = !self.told.q.val();
                if self.built.val() {
                    self.told.d.next = false;
                    self.state.d.next = State::Send;
                }
            }
            State::Send => {
                self.send.next = !self.told.q.val();
                self.count.d.next = self.answered.val();
                if self.sent.val() {
                    self.told.d.next = false;
                    self.state.d.next = State::Free;
                    if self.asks.q.val() {
                        self.events.d.next = bits::<9>(flags(STATS, &["echo_asked"]) as u64);
                        self.state.d.next = State::Idle;
                    }
                }
            }
            State::Free => {
                self.fetch.next = !self.told.q.val();
                self.fetch_free.next = true;
                if self.came.val() {
                    self.taken.next = true;
                    self.events.d.next = self.count.q.val();
                    self.state.d.next = State::Idle;
                }
            }
            State::Back => {
                if self.back_ready.val() {
                    self.taken.next = true;
                    self.events.d.next = bits::<9>(flags(STATS, &["echo_passed_on"]) as u64);
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.pending.d.next = bits::<64>(0);
            self.events.d.next = bits::<9>(0);
            self.asks.d.next = false;
        }
    }
}
