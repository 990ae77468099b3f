//! The entropy value of each packet, and with it its path. See README.md.

#[cfg(test)]
mod tests;

use super::types::{told, Choice, SprayAsk, LINE, SLOT};
use crate::bus::{MsgSink, MsgSrc};
use crate::prim::ram::Ram;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("s", &["m"])];

/// What a bad path costs: times that it is passed over, at most `MOST`.
const ECN: u64 = 1;
const NACK: u64 = 4;
const MOST: u64 = 15;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Wipe,
    Load,
    Slot,
    Look,
    Judge,
    Wait,
    Punish,
    Answer,
}

/// The paths of `2^LP` PDCs. `LA` = `LP` + 6.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE && LA == LP + SLOT, "64 slots a PDC")]
pub struct Spray<const LP: usize, const LA: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets what is under way.
    pub reset: Signal<In, Bit>,
    /// Slots in use less one; what is bad is passed over.
    pub last_slot: Signal<In, Bits<SLOT>>,
    pub penalties: Signal<In, Bit>,
    /// Entropy values are written by the driver, all with the same table.
    pub table_en: Signal<In, Bit>,
    pub table_slot: Signal<In, Bits<SLOT>>,
    pub table_entropy: Signal<In, Bits<16>>,
    pub s: MsgSink<SprayAsk>,
    /// Answers to `choose` only.
    pub m: MsgSrc<Choice>,
    entropies: Ram<Bits<16>, 6>,
    marks: Ram<Bits<4>, LA>,
    turns: Ram<Bits<SLOT>, LP>,
    state: DFF<State>,
    ask: DFF<SprayAsk>,
    slot: DFF<Bits<SLOT>>,
    mark: DFF<Bits<4>>,
    /// Slots still to be looked at, less one.
    left: DFF<Bits<SLOT>>,
    /// Nobody has been passed over in this choice.
    fresh: DFF<Bit>,
    #[init(Constant::new((SLOT as u64).to_bits()))]
    lg_slots: Constant<Bits<4>>,
    mark_at: Signal<Local, Bits<LA>>,
    next_slot: Signal<Local, Bits<SLOT>>,
    more: Signal<Local, Bits<4>>,
    room: Signal<Local, Bits<4>>,
}

#[kernel]
impl<const LP: usize, const LA: usize> Logic for Spray<LP, LA> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, ask, slot, mark, left, fresh);
        clock!(self, clock, entropies, marks, turns);
        self.next_slot.next = self.slot.q.val() + 1;
        if self.slot.q.val() == self.last_slot.val() {
            self.next_slot.next = bits::<SLOT>(0);
        }
        self.entropies.write_en.next = self.table_en.val();
        self.entropies.write_addr.next = self.table_slot.val();
        self.entropies.write_data.next = self.table_entropy.val();
        self.entropies.read_addr.next = self.slot.q.val();
        self.mark_at.next = (bit_cast::<LA, LINE>(self.ask.q.val().line) << self.lg_slots.val()) | bit_cast::<LA, SLOT>(self.slot.q.val());
        self.marks.read_addr.next = self.mark_at.val();
        self.marks.write_addr.next = self.mark_at.val();
        self.marks.write_data.next = bits::<4>(0);
        self.marks.write_en.next = false;
        self.turns.read_addr.next = bit_cast::<LP, LINE>(self.s.data.val().line);
        self.turns.write_addr.next = bit_cast::<LP, LINE>(self.ask.q.val().line);
        self.turns.write_data.next = self.next_slot.val();
        self.turns.write_en.next = false;
        self.more.next = bits::<4>(0);
        if self.ask.q.val().what == told::ECN {
            self.more.next = bits::<4>(ECN);
        } else if self.ask.q.val().what == told::NACK {
            self.more.next = bits::<4>(NACK);
        } else if self.ask.q.val().what == told::TIMEOUT {
            self.more.next = bits::<4>(MOST);
        }
        self.room.next = !self.mark.q.val();
        self.s.ready.next = false;
        self.m.valid.next = false;
        self.m.data.next.slot = self.slot.q.val();
        self.m.data.next.entropy = self.entropies.read_data.val();
        match self.state.q.val() {
            State::Idle => {
                self.s.ready.next = true;
                self.ask.d.next = self.s.data.val();
                self.slot.d.next = self.s.data.val().slot;
                self.left.d.next = self.last_slot.val();
                self.fresh.d.next = true;
                if self.s.valid.val() {
                    self.state.d.next = State::Look;
                    if self.s.data.val().init {
                        self.slot.d.next = bits::<SLOT>(0);
                        self.state.d.next = State::Wipe;
                    } else if self.s.data.val().choose {
                        self.state.d.next = State::Load;
                    }
                }
            }
            // A PDC begins: no path is bad, and it is the first one's turn.
            State::Wipe => {
                self.marks.write_en.next = true;
                self.turns.write_data.next = bits::<SLOT>(0);
                self.turns.write_en.next = true;
                self.slot.d.next = self.slot.q.val() + 1;
                if self.slot.q.val().all() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Load => {
                self.slot.d.next = self.turns.read_data.val();
                // ROD has one path, of which nothing is said.
                if self.ask.q.val().fixed {
                    self.slot.d.next = bits::<SLOT>(0);
                }
                self.state.d.next = State::Look;
            }
            // The memories see the slot in this state and have its mark in the next.
            State::Look => {
                self.state.d.next = State::Slot;
            }
            State::Slot => {
                self.mark.d.next = self.marks.read_data.val();
                self.state.d.next = State::Punish;
                if self.ask.q.val().choose {
                    self.state.d.next = State::Judge;
                }
            }
            State::Judge => {
                self.state.d.next = State::Answer;
                if self.penalties.val() & !self.ask.q.val().fixed & self.mark.q.val().any() {
                    // Only the first that is passed over in a choice has done its time by that.
                    self.marks.write_data.next = self.mark.q.val() - 1;
                    self.marks.write_en.next = self.fresh.q.val();
                    self.fresh.d.next = false;
                    self.slot.d.next = self.next_slot.val();
                    self.left.d.next = self.left.q.val() - 1;
                    self.state.d.next = State::Look;
                    if !self.left.q.val().any() {
                        self.state.d.next = State::Wait;
                    }
                }
            }
            // All are bad: the one after the last that was looked at; the table sees it in this state.
            State::Wait => {
                self.state.d.next = State::Answer;
            }
            State::Answer => {
                self.turns.write_en.next = !self.ask.q.val().fixed;
                self.m.valid.next = true;
                if self.m.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Punish => {
                self.marks.write_data.next = self.mark.q.val() + self.more.val();
                if self.more.val() > self.room.val() {
                    self.marks.write_data.next = bits::<4>(MOST);
                }
                self.marks.write_en.next = self.penalties.val();
                self.state.d.next = State::Idle;
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
