//! Responses that have to be kept until the peer says that it has them. See README.md.

#[cfg(test)]
mod tests;

use super::pdc::places::Places;
use super::types::{kept_ask, KeptAsk, KeptTold, LINE};
use crate::bus::{MsgSink, MsgSrc};
use crate::prim::ram::Ram;
use crate::prim::sum::Diff;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("s", &["m"])];

/// Bits of a place, and of a count of places.
const PLACE: usize = LINE + 1;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Wipe,
    Idle,
    Load,
    Act,
    Keep,
    /// The PDC's responses, one after another.
    Walk,
    Read,
    Weigh,
    Match,
    Unlink,
    Rest,
    Tell,
}

/// What a PDC has: places that are taken for it, and the newest response that is kept (0: none is).
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Line {
    count: Bits<PLACE>,
    head: Bits<PLACE>,
}

/// A response.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Slot {
    psn: Bits<32>,
    message: Bits<16>,
    code: Bits<6>,
    length: Bits<32>,
}

/// Responses of `2^LP` PDCs in `2^LK` - 1 places. `2^LP` of them are for the oldest packet of each, which always finds one.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE && LK > LP && LK <= PLACE, "more places than PDCs")]
pub struct Kept<const LP: usize, const LK: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; nothing is kept. Lines are wiped before the first order is taken.
    pub reset: Signal<In, Bit>,
    /// No place is free but for the oldest packets.
    pub full: Signal<Out, Bit>,
    pub s: MsgSink<KeptAsk>,
    pub m: MsgSrc<KeptTold>,
    lines: Ram<Line, LP>,
    slots: Ram<Slot, LK>,
    nexts: Ram<Bits<PLACE>, LK>,
    free: Places<LK>,
    state: DFF<State>,
    ask: DFF<KeptAsk>,
    told: DFF<KeptTold>,
    line: DFF<Line>,
    slot: DFF<Slot>,
    /// The response that is looked at, the one in front of it in the list (if it is not the first), and the one behind.
    at: DFF<Bits<PLACE>>,
    front: DFF<Bits<PLACE>>,
    first: DFF<Bit>,
    behind: DFF<Bits<PLACE>>,
    used: DFF<Bits<PLACE>>,
    crowded: DFF<Bit>,
    /// How far its PSN is beyond that of the order; it is in front of it, or the same: in registers, since what follows is deep.
    ahead: Diff<32>,
    before: DFF<Bit>,
    same: DFF<Bit>,
    #[init(Constant::new(((1u64 << LP) - 1).to_bits()))]
    last_line: Constant<Bits<LINE>>,
    #[init(Constant::new(((1u64 << LK) - (1u64 << LP)).to_bits()))]
    limit: Constant<Bits<PLACE>>,
    #[init(Constant::new(Line::default()))]
    nobody: Constant<Line>,
    #[init(Constant::new(KeptTold::default()))]
    nothing: Constant<KeptTold>,
    asked: Signal<Local, Bits<LINE>>,
    goes: Signal<Local, Bit>,
}

#[kernel]
impl<const LP: usize, const LK: usize> Logic for Kept<LP, LK> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, ask, told, line, slot, at, front, first, behind, used, crowded, before, same);
        clock!(self, clock, lines, slots, nexts, free);
        self.free.reset.next = self.reset.val();
        self.free.take.next = false;
        self.free.give.next = false;
        self.free.given.next = bit_cast::<LK, PLACE>(self.at.q.val());
        self.crowded.d.next = self.used.q.val() >= self.limit.val();
        self.full.next = self.crowded.q.val();
        self.asked.next = self.ask.q.val().line;
        self.lines.read_addr.next = bit_cast::<LP, LINE>(self.asked.val());
        self.lines.write_addr.next = bit_cast::<LP, LINE>(self.asked.val());
        self.lines.write_data.next = self.line.q.val();
        self.lines.write_en.next = false;
        self.slots.read_addr.next = bit_cast::<LK, PLACE>(self.at.q.val());
        self.slots.write_addr.next = bit_cast::<LK, PLACE>(self.at.q.val());
        self.slots.write_data.next = self.slot.q.val();
        self.slots.write_en.next = false;
        self.nexts.read_addr.next = bit_cast::<LK, PLACE>(self.at.q.val());
        self.nexts.write_addr.next = bit_cast::<LK, PLACE>(self.at.q.val());
        self.nexts.write_data.next = self.behind.q.val();
        self.nexts.write_en.next = false;
        self.ahead.a.next = self.slot.q.val().psn;
        self.ahead.b.next = self.ask.q.val().psn;
        self.before.d.next = self.ahead.y.val().get_bit(31);
        self.same.d.next = !self.ahead.y.val().any();
        self.goes.next = (self.ask.q.val().kind == kept_ask::FORGET) | ((self.ask.q.val().kind == kept_ask::CLEAR) & self.before.q.val());
        self.s.ready.next = self.state.q.val() == State::Idle;
        self.m.valid.next = self.state.q.val() == State::Tell;
        self.m.data.next = self.told.q.val();
        self.m.data.next.any = self.line.q.val().head.any();
        match self.state.q.val() {
            State::Wipe => {
                self.lines.write_en.next = true;
                self.lines.write_data.next = self.nobody.val();
                self.ask.d.next.line = self.asked.val() + 1;
                if self.asked.val() == self.last_line.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Idle => {
                self.ask.d.next = self.s.data.val();
                self.told.d.next = self.nothing.val();
                self.first.d.next = true;
                if self.s.valid.val() {
                    self.state.d.next = State::Load;
                }
            }
            // The memory sees the line in this state and has it in the next.
            State::Load => {
                self.state.d.next = State::Act;
            }
            State::Act => {
                self.line.d.next = self.lines.read_data.val();
                self.at.d.next = self.lines.read_data.val().head;
                self.behind.d.next = self.lines.read_data.val().head;
                self.slot.d.next.psn = self.ask.q.val().psn;
                self.slot.d.next.message = self.ask.q.val().message;
                self.slot.d.next.code = self.ask.q.val().code;
                self.slot.d.next.length = self.ask.q.val().length;
                self.state.d.next = State::Walk;
                if self.ask.q.val().kind == kept_ask::TAKE {
                    self.line.d.next.count = self.lines.read_data.val().count + 1;
                    self.used.d.next = self.used.q.val() + 1;
                    self.state.d.next = State::Tell;
                } else if self.ask.q.val().kind == kept_ask::DROP {
                    self.line.d.next.count = self.lines.read_data.val().count - 1;
                    self.used.d.next = self.used.q.val() - 1;
                    self.state.d.next = State::Tell;
                } else if self.ask.q.val().kind == kept_ask::KEEP {
                    self.at.d.next = bit_cast::<PLACE, LK>(self.free.place.val());
                    self.state.d.next = State::Keep;
                }
            }
            State::Keep => {
                self.free.take.next = true;
                self.slots.write_en.next = true;
                self.nexts.write_en.next = true;
                self.line.d.next.head = self.at.q.val();
                self.state.d.next = State::Tell;
            }
            State::Walk => {
                self.state.d.next = State::Read;
                if !self.at.q.val().any() {
                    self.state.d.next = State::Tell;
                    if self.ask.q.val().kind == kept_ask::FORGET {
                        self.state.d.next = State::Rest;
                    }
                }
            }
            State::Read => {
                self.slot.d.next = self.slots.read_data.val();
                self.behind.d.next = self.nexts.read_data.val();
                self.state.d.next = State::Weigh;
            }
            State::Weigh => {
                self.state.d.next = State::Match;
            }
            State::Match => {
                self.state.d.next = State::Walk;
                self.at.d.next = self.behind.q.val();
                self.front.d.next = self.at.q.val();
                self.first.d.next = false;
                if self.goes.val() {
                    self.at.d.next = self.at.q.val();
                    self.front.d.next = self.front.q.val();
                    self.first.d.next = self.first.q.val();
                    self.free.give.next = true;
                    self.used.d.next = self.used.q.val() - 1;
                    self.line.d.next.count = self.line.q.val().count - 1;
                    self.state.d.next = State::Unlink;
                } else if (self.ask.q.val().kind == kept_ask::LOOK) & self.same.q.val() {
                    self.told.d.next.found = true;
                    self.told.d.next.message = self.slot.q.val().message;
                    self.told.d.next.code = self.slot.q.val().code;
                    self.told.d.next.length = self.slot.q.val().length;
                    self.state.d.next = State::Tell;
                }
            }
            // The one in front goes on with the one behind.
            State::Unlink => {
                self.nexts.write_addr.next = bit_cast::<LK, PLACE>(self.front.q.val());
                self.nexts.write_en.next = !self.first.q.val();
                if self.first.q.val() {
                    self.line.d.next.head = self.behind.q.val();
                }
                self.at.d.next = self.behind.q.val();
                self.state.d.next = State::Walk;
            }
            // Places of packets that semantics have, whose answers will find nobody.
            State::Rest => {
                self.used.d.next = self.used.q.val() - self.line.q.val().count;
                self.line.d.next.count = bits::<PLACE>(0);
                self.state.d.next = State::Tell;
            }
            State::Tell => {
                self.lines.write_en.next = true;
                if self.m.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.ask.d.next.line = bits::<LINE>(0);
            self.used.d.next = bits::<PLACE>(0);
            self.state.d.next = State::Wipe;
        }
    }
}
