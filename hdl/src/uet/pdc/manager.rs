//! One order after another: whose PDC it is, what the rules say, what becomes of its place, and who has to make room.
use super::counts::{Counts, INITIATORS, KINDS, LEAVING, LINGERING, RESTING, TARGETS, WANTING};
use super::directory::{dir_ask, Directory};
use super::effects::{mode, Effect, Effects};
use super::judge::Judge;
use super::oldest::Oldest;
use super::places::Places;
use super::start::Start;
use super::tally::Tally;
use super::types::{class, pdc_ask, stat, verdict, victim, PdcAsk, PdcLine, PdcTold, ID, PLACES, STAT_BITS};
use crate::bus::{CtxClient, MsgSink, MsgSrc};
use crate::uet::types::LINE;
use ferric_abi::uet::codes::NackCode;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// Whose place it is.
    Seek,
    Sought,
    /// Whether a place is free.
    Room,
    /// A line is taken, judged, changed, and given back.
    Want,
    Line,
    Judge,
    Ruled,
    Shape,
    Act,
    Put,
    After,
    /// The directory learns of it.
    Enter,
    Entered,
    Erase,
    Erased,
    /// Who may go.
    Press,
    Scan,
    Scanned,
    Tell,
    Next,
}

/// `2^LP` places, `2^LH` chains of the directory. Ports as of [`super::Pdc`].
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE)]
pub struct Manager<const LP: usize, const LH: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub window: Signal<In, Bits<16>>,
    pub share: Signal<In, Bits<PLACES>>,
    pub peer_share: Signal<In, Bits<PLACES>>,
    pub peer_initiators: Signal<In, Bits<PLACES>>,
    pub places: Signal<In, Bits<PLACES>>,
    pub low: Signal<In, Bits<PLACES>>,
    pub linger_cut: Signal<In, Bit>,
    pub seed: Signal<In, Bits<32>>,
    pub s: MsgSink<PdcAsk>,
    pub m: MsgSrc<PdcTold>,
    pub stat: Signal<Out, Bits<STAT_BITS>>,
    pub used: Signal<Out, Bits<PLACES>>,
    pub ctx: CtxClient<PdcLine>,
    directory: Directory<LP, LH>,
    judge: Judge,
    oldest: Oldest<LP>,
    free: Places<LP>,
    counts: Counts,
    tally: Tally<LP>,
    /// The same of initiators, with those that rest.
    toward: Tally<LP>,
    start: Start,
    effects: Effects<LP>,
    state: DFF<State>,
    mode: DFF<Bits<3>>,
    ask: DFF<PdcAsk>,
    at: DFF<Bits<LINE>>,
    line: DFF<PdcLine>,
    told: DFF<PdcTold>,
    counted: DFF<Bits<STAT_BITS>>,
    /// The PDC is over: its name goes. It takes no more: another one is opened.
    over: DFF<Bit>,
    beside: DFF<Bit>,
    #[init(Constant::new(PdcTold::default()))]
    nothing: Constant<PdcTold>,
    #[init(Constant::new(((1u64 << LP) - 1).to_bits()))]
    last: Constant<Bits<LINE>>,
    effect: Signal<Local, Effect>,
    made: Signal<Local, PdcLine>,
    marks: Signal<Local, Bits<STAT_BITS>>,
    seeks: Signal<Local, Bit>,
    room: Signal<Local, Bit>,
    posts: Signal<Local, Bit>,
    presses: Signal<Local, Bit>,
    may_cut: Signal<Local, Bit>,
    may_ask: Signal<Local, Bit>,
    ousts: Signal<Local, Bit>,
    acts: Signal<Local, Bit>,
    acted: Signal<Local, Bit>,
    named: Signal<Local, Bit>,
    id_place: Signal<Local, Bits<LP>>,
    rod_id: Signal<Local, Bits<ID>>,
    line_rod_id: Signal<Local, Bits<ID>>,
}

#[kernel]
impl<const LP: usize, const LH: usize> Logic for Manager<LP, LH> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, mode, ask, at, line, told, counted, over, beside);
        clock!(self, clock, directory, judge, oldest, free, counts, tally, toward, start, effects);
        self.directory.reset.next = self.reset.val();
        self.oldest.reset.next = self.reset.val();
        self.free.reset.next = self.reset.val();
        self.counts.reset.next = self.reset.val();
        self.start.reset.next = self.reset.val();
        self.counts.share.next = self.share.val();
        self.counts.places.next = self.places.val();
        self.tally.share.next = self.peer_share.val();
        self.counts.low.next = self.low.val();
        self.start.seed.next = self.seed.val();
        self.start.last.next = self.line.q.val().start;
        self.used.next = self.counts.all.val();
        self.posts.next = self.ask.q.val().kind == pdc_ask::POST;
        self.id_place.next = self.s.data.val().id.get_bits::<LP>(0);
        self.presses.next = self.ask.q.val().kind == pdc_ask::ROOM;
        self.seeks.next = (self.s.data.val().kind == pdc_ask::POST) | ((self.s.data.val().kind == pdc_ask::ARRIVE) & self.s.data.val().syn);
        // The directory: the order's own name, or that of the PDC which is over.
        self.directory.go.next = (self.state.q.val() == State::Seek) | (self.state.q.val() == State::Enter) | (self.state.q.val() == State::Erase);
        self.directory.kind.next = bits::<2>(dir_ask::SEEK);
        self.directory.place.next = self.at.q.val();
        self.rod_id.next = bit_cast::<ID, 1>(self.ask.q.val().rod.into());
        self.line_rod_id.next = bit_cast::<ID, 1>(self.line.q.val().rod.into());
        self.named.next = (self.state.q.val() == State::Seek) | (self.state.q.val() == State::Enter);
        self.directory.key.next.initiator = self.line.q.val().initiator;
        self.directory.key.next.peer = self.line.q.val().peer;
        self.directory.key.next.low = self.line.q.val().peer_id;
        if self.line.q.val().initiator {
            self.directory.key.next.low = self.line_rod_id.val();
        }
        if self.named.val() {
            self.directory.key.next.initiator = self.posts.val();
            self.directory.key.next.peer = self.ask.q.val().peer;
            self.directory.key.next.low = self.ask.q.val().peer_id;
            if self.posts.val() {
                self.directory.key.next.low = self.rod_id.val();
            }
        }
        // The line, and the rules.
        self.ctx.acq_valid.next = self.state.q.val() == State::Want;
        self.ctx.acq_id.next = bit_cast::<24, LINE>(self.at.q.val());
        self.ctx.acq_tag.next = bits::<4>(0);
        self.ctx.line_ready.next = self.state.q.val() == State::Line;
        self.ctx.rel_valid.next = self.state.q.val() == State::Put;
        self.ctx.rel_id.next = bit_cast::<24, LINE>(self.at.q.val());
        self.ctx.rel_dirty.next = true;
        self.ctx.rel_data.next = self.line.q.val();
        self.judge.go.next = self.state.q.val() == State::Judge;
        self.judge.ask.next = self.ask.q.val();
        self.judge.line.next = self.line.q.val();
        self.free.take.next = false;
        self.free.given.next = bit_cast::<LP, LINE>(self.at.q.val());
        self.oldest.place.next = self.at.q.val();
        self.oldest.busy.next = self.ask.q.val().busy | self.posts.val();
        self.oldest.go.next = self.state.q.val() == State::Scan;
        self.oldest.wanted.next = bits::<2>(class::LINGERS);
        self.ousts.next = self.mode.q.val() == mode::OUST;
        self.oldest.peer.next = self.ask.q.val().peer;
        self.oldest.own.next = self.ousts.val();
        self.tally.looked.next = self.oldest.looked.val();
        self.oldest.many.next = self.tally.many.val();
        if self.mode.q.val() == mode::LEAVE {
            self.oldest.wanted.next = bits::<2>(class::INITIATOR);
        } else if (self.mode.q.val() == mode::ASK) | self.ousts.val() {
            self.oldest.wanted.next = bits::<2>(class::TARGET);
        }
        self.counts.up.next = bits::<KINDS>(0);
        self.counts.down.next = bits::<KINDS>(0);
        self.room.next = self.free.any.val() & ((self.posts.val() & self.counts.initiator_room.val() & !self.toward.full.val()) | (!self.posts.val() & self.counts.target_room.val()));
        self.may_cut.next = self.linger_cut.val() & self.counts.any.val().get_bit(LINGERING);
        self.may_ask.next = !self.counts.any.val().get_bit(WANTING) & self.counts.open.val();
        self.effects.mode.next = self.mode.q.val();
        self.effects.posts.next = self.posts.val();
        self.effects.ask.next = self.ask.q.val();
        self.effects.line.next = self.line.q.val();
        self.effects.ruling.next = self.judge.ruling.val();
        self.effects.place.next = self.judge.place.val();
        self.effects.syn_start.next = self.judge.syn_start.val();
        self.effects.start.next = self.start.start.val();
        self.effects.at.next = self.at.q.val();
        self.effect.next = self.effects.effect.val();
        self.made.next = self.effects.made.val();
        self.oldest.sort.next = self.effect.val().class;
        self.acts.next = self.state.q.val() == State::Act;
        // Start_PSN 0 is none; another one comes in the next cycle.
        self.acted.next = self.acts.val() & !(self.effect.val().opens & self.made.val().initiator & !self.made.val().start.any());
        self.oldest.set.next = self.acted.val() & self.effect.val().set;
        self.oldest.opens.next = self.acted.val() & self.effect.val().opens;
        self.oldest.work.next = self.acted.val() & self.effect.val().work;
        self.free.give.next = self.acted.val() & self.effect.val().gives;
        // How many targets a peer has: the order's, or whose line is at hand.
        self.tally.asked.next = self.ask.q.val().peer;
        self.tally.owner.next = self.line.q.val().peer;
        self.tally.owned.next = ((self.state.q.val() == State::Shape) | self.acts.val()) & !(self.mode.q.val() == mode::NEW);
        self.tally.up.next = self.acts.val() & self.effect.val().up.get_bit(TARGETS);
        self.tally.down.next = self.acts.val() & self.effect.val().down.get_bit(TARGETS);
        self.toward.share.next = self.peer_initiators.val();
        self.toward.asked.next = self.tally.asked.val();
        self.toward.owner.next = self.tally.owner.val();
        self.toward.owned.next = self.tally.owned.val();
        self.toward.up.next = self.acts.val() & self.effect.val().up.get_bit(INITIATORS);
        self.toward.down.next = self.acts.val() & self.effect.val().down.get_bit(INITIATORS);
        self.toward.wipe.next = self.tally.wipe.val();
        self.toward.place.next = self.at.q.val();
        self.toward.looked.next = self.ask.q.val().peer;
        self.tally.wipe.next = self.acts.val() & (self.mode.q.val() == mode::WIPE);
        self.tally.place.next = self.at.q.val();
        self.marks.next = bits::<STAT_BITS>(0);
        self.stat.next = bits::<STAT_BITS>(0);
        self.s.ready.next = self.state.q.val() == State::Idle;
        self.m.valid.next = self.state.q.val() == State::Tell;
        match self.state.q.val() {
            State::Idle => {
                self.ask.d.next = self.s.data.val();
                self.told.d.next = self.nothing.val();
                self.at.d.next = bit_cast::<LINE, LP>(self.id_place.val());
                self.mode.d.next = bits::<3>(mode::OWN);
                if self.s.valid.val() {
                    self.state.d.next = State::Want;
                    if self.seeks.val() {
                        self.state.d.next = State::Seek;
                    } else if self.s.data.val().kind == pdc_ask::ROOM {
                        self.state.d.next = State::Press;
                    } else if self.s.data.val().kind == pdc_ask::RESET {
                        self.at.d.next = bits::<LINE>(0);
                        self.mode.d.next = bits::<3>(mode::SWEEP);
                        self.state.d.next = State::Next;
                    }
                }
            }
            State::Seek => {
                self.state.d.next = State::Sought;
            }
            State::Sought => {
                self.at.d.next = self.directory.found.val();
                if self.directory.done.val() {
                    self.state.d.next = State::Want;
                    if !self.directory.found.val().any() {
                        self.mode.d.next = bits::<3>(mode::NEW);
                        self.state.d.next = State::Room;
                        if !self.posts.val() {
                            self.told.d.next.verdict = bits::<4>(verdict::REFUSE);
                            self.told.d.next.code = bits::<8>(NackCode::HeaderMismatch as u64);
                            // A SYN that opens nothing: trimmed, no request or from nobody, beyond the window.
                            if self.ask.q.val().trim {
                                self.told.d.next.verdict = bits::<4>(verdict::DROP);
                                self.marks.next = bits::<STAT_BITS>(stat::TRIMMED);
                                self.state.d.next = State::Tell;
                            } else if !self.ask.q.val().request | !self.ask.q.val().peer_id.any() {
                                self.marks.next = bits::<STAT_BITS>(stat::REFUSED);
                                self.state.d.next = State::Tell;
                            } else if bit_cast::<16, 12>(self.ask.q.val().offset) >= self.window.val() {
                                self.told.d.next.code = bits::<8>(NackCode::InvalidSyn as u64);
                                self.marks.next = bits::<STAT_BITS>(stat::REFUSED);
                                self.state.d.next = State::Tell;
                            }
                        }
                    }
                }
            }
            State::Room => {
                self.mode.d.next = bits::<3>(mode::NEW);
                self.at.d.next = bit_cast::<LINE, LP>(self.free.place.val());
                self.told.d.next.verdict = bits::<4>(verdict::REFUSE);
                self.told.d.next.code = bits::<8>(NackCode::NoPdc as u64);
                if self.tally.full.val() & !self.posts.val() {
                    // One of its own goes, or else it is refused.
                    self.mode.d.next = bits::<3>(mode::OUST);
                    self.state.d.next = State::Scan;
                } else if self.room.val() {
                    self.free.take.next = true;
                    self.state.d.next = State::Want;
                } else if self.posts.val() {
                    self.told.d.next.verdict = bits::<4>(verdict::FULL);
                    self.marks.next = bits::<STAT_BITS>(stat::NO_ROOM);
                    self.state.d.next = State::Tell;
                } else if self.may_cut.val() {
                    self.mode.d.next = bits::<3>(mode::CUT);
                    self.state.d.next = State::Scan;
                } else {
                    self.marks.next = bits::<STAT_BITS>(stat::NO_PDC);
                    self.state.d.next = State::Tell;
                    if self.may_ask.val() {
                        self.mode.d.next = bits::<3>(mode::ASK);
                        self.state.d.next = State::Scan;
                    }
                }
            }
            // One at a time is on its way out.
            State::Press => {
                self.state.d.next = State::Tell;
                if !self.counts.any.val().get_bit(LEAVING) & !self.counts.any.val().get_bit(RESTING) {
                    if self.counts.any.val().get_bit(INITIATORS) {
                        self.mode.d.next = bits::<3>(mode::LEAVE);
                        self.state.d.next = State::Scan;
                    } else if self.may_cut.val() {
                        self.mode.d.next = bits::<3>(mode::CUT);
                        self.state.d.next = State::Scan;
                    }
                }
            }
            State::Scan => {
                self.state.d.next = State::Scanned;
            }
            State::Scanned => {
                self.at.d.next = self.oldest.found.val();
                if self.oldest.done.val() {
                    self.state.d.next = State::Want;
                    if !self.oldest.found.val().any() {
                        self.state.d.next = State::Tell;
                        if self.ousts.val() {
                            self.marks.next = bits::<STAT_BITS>(stat::NO_PDC);
                        }
                    }
                }
            }
            State::Want => {
                if self.ctx.acq_ready.val() {
                    self.state.d.next = State::Line;
                }
            }
            State::Line => {
                self.line.d.next = self.ctx.line_data.val();
                if self.ctx.line_valid.val() {
                    self.state.d.next = State::Judge;
                }
            }
            State::Judge => {
                self.state.d.next = State::Ruled;
            }
            State::Ruled => {
                if self.judge.done.val() {
                    self.state.d.next = State::Shape;
                }
            }
            State::Shape => {
                self.state.d.next = State::Act;
            }
            // The effect is known: it is given to all who keep something of it.
            State::Act => {
                if self.acted.val() {
                    self.state.d.next = State::Put;
                    self.line.d.next = self.made.val();
                    self.over.d.next = self.effect.val().ends;
                    self.beside.d.next = self.judge.ruling.val().beside & (self.mode.q.val() == mode::OWN);
                    self.marks.next = self.effect.val().stat;
                    self.counts.up.next = self.effect.val().up;
                    self.counts.down.next = self.effect.val().down;
                    if self.effect.val().tells {
                        self.told.d.next.verdict = self.effect.val().verdict;
                        self.told.d.next.code = self.effect.val().code;
                        self.told.d.next.own = self.effect.val().own;
                        self.told.d.next.more = self.effect.val().more;
                        self.told.d.next.line = self.made.val();
                    }
                    if self.effect.val().victim == victim::CUT {
                        self.told.d.next.cut_id = self.made.val().id;
                    } else if self.effect.val().victim.any() {
                        self.told.d.next.victim = self.effect.val().victim;
                        self.told.d.next.victim_id = self.made.val().id;
                    }
                }
            }
            State::Put => {
                if self.ctx.rel_ready.val() {
                    self.state.d.next = State::After;
                }
            }
            State::After => {
                self.state.d.next = State::Tell;
                if self.over.q.val() {
                    self.state.d.next = State::Erase;
                } else if self.beside.q.val() {
                    self.state.d.next = State::Room;
                } else if self.mode.q.val() == mode::NEW {
                    self.state.d.next = State::Enter;
                } else if (self.mode.q.val() == mode::SWEEP) | (self.mode.q.val() == mode::WIPE) {
                    self.state.d.next = State::Next;
                }
            }
            State::Enter => {
                self.directory.kind.next = bits::<2>(dir_ask::ADD);
                self.state.d.next = State::Entered;
            }
            State::Entered => {
                if self.directory.done.val() {
                    self.state.d.next = State::Tell;
                    if !self.posts.val() & self.counts.scarce.val() & self.may_ask.val() {
                        self.mode.d.next = bits::<3>(mode::ASK);
                        self.state.d.next = State::Scan;
                    }
                }
            }
            State::Erase => {
                self.directory.kind.next = bits::<2>(dir_ask::REMOVE);
                self.state.d.next = State::Erased;
            }
            State::Erased => {
                if self.directory.done.val() {
                    self.state.d.next = State::Tell;
                    // One that lingers, or was the peer's own, has made room.
                    if ((self.mode.q.val() == mode::CUT) & !self.presses.val()) | self.ousts.val() {
                        self.state.d.next = State::Room;
                    }
                }
            }
            State::Tell => {
                if self.m.ready.val() {
                    self.stat.next = self.counted.q.val();
                    self.counted.d.next = bits::<STAT_BITS>(0);
                    self.state.d.next = State::Idle;
                    if self.told.q.val().more {
                        self.told.d.next = self.nothing.val();
                        self.state.d.next = State::Next;
                    }
                }
            }
            // The next place, of a reset; behind the last one an answer, or after the card's reset the first order.
            State::Next => {
                self.at.d.next = self.at.q.val() + 1;
                self.state.d.next = State::Want;
                if self.at.q.val() == self.last.val() {
                    self.state.d.next = State::Tell;
                    if self.mode.q.val() == mode::WIPE {
                        self.state.d.next = State::Idle;
                    }
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.m.data.next = self.told.q.val();
        self.m.data.next.initiators = self.counts.count[INITIATORS].val();
        self.m.data.next.targets = self.counts.count[TARGETS].val();
        self.m.data.next.resting = self.counts.count[RESTING].val();
        self.m.data.next.lingering = self.counts.count[LINGERING].val();
        if !(self.state.q.val() == State::Tell) {
            self.counted.d.next = self.counted.q.val() | self.marks.val();
        }
        if self.reset.val() {
            self.state.d.next = State::Want;
            self.mode.d.next = bits::<3>(mode::WIPE);
            self.at.d.next = bits::<LINE>(0);
            self.told.d.next = self.nothing.val();
            self.counted.d.next = bits::<STAT_BITS>(0);
        }
    }
}
