//! The directory: which place the PDC of a peer has. Chains behind a hash, so that it is full when the pool is and never before.
use super::types::{Key, ID};
use crate::prim::ram::Ram;
use crate::uet::types::LINE;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// All chains become empty.
    Sweep,
    Idle,
    Hash,
    Head,
    Add,
    Walk,
    Look,
    Compare,
    Unlink,
    Done,
}

/// Orders.
pub mod dir_ask {
    pub const SEEK: u64 = 0;
    /// `place` is its place from now on. Another one may have the key, too: the last that was added is found.
    pub const ADD: u64 = 1;
    /// The key of `place`, and of no other one.
    pub const REMOVE: u64 = 2;
}

/// A place in its chain. Place 0 is none.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Link {
    key: Key,
    behind: Bits<LINE>,
}

/// `2^LP` places, `2^LH` chains.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE && LH >= 2 && LH <= 16)]
pub struct Directory<const LP: usize, const LH: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; it is empty after `2^LH` cycles, and waits until then.
    pub reset: Signal<In, Bit>,
    /// One cycle, with an order (see [`dir_ask`]); none before `done`.
    pub go: Signal<In, Bit>,
    pub kind: Signal<In, Bits<2>>,
    pub key: Signal<In, Key>,
    pub place: Signal<In, Bits<LINE>>,
    /// One cycle: it is carried out; the place that the key has, 0: none.
    pub done: Signal<Out, Bit>,
    pub found: Signal<Out, Bits<LINE>>,
    heads: Ram<Bits<LINE>, LH>,
    links: Ram<Link, LP>,
    state: DFF<State>,
    sweep: DFF<Bits<LH>>,
    /// An order that came during the sweep waits.
    waits: DFF<Bit>,
    order: DFF<Bits<2>>,
    name: DFF<Key>,
    own: DFF<Bits<LINE>>,
    hash: DFF<Bits<LH>>,
    at: DFF<Bits<LINE>>,
    link: DFF<Link>,
    /// The one in front of `at` in the chain.
    front: DFF<Bits<LINE>>,
    front_link: DFF<Link>,
    same: Signal<Local, Bit>,
    mixed: Signal<Local, Bits<ID>>,
    turned: Signal<Local, Bits<ID>>,
    was: Signal<Local, Link>,
    front_was: Signal<Local, Link>,
}

#[kernel]
impl<const LP: usize, const LH: usize> Logic for Directory<LP, LH> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, sweep, waits, order, name, own, hash, at, link, front, front_link);
        clock!(self, clock, heads, links);
        self.done.next = false;
        self.found.next = self.at.q.val();
        // Peers and places are small numbers, lives the high bits of an id.
        self.turned.next = (self.name.q.val().low >> 9) | (self.name.q.val().low << 7);
        self.mixed.next = self.name.q.val().peer ^ self.turned.val() ^ (self.name.q.val().low << 2) ^ (self.name.q.val().peer << 5);
        self.was.next = self.link.q.val();
        self.front_was.next = self.front_link.q.val();
        self.same.next = self.was.val().key == self.name.q.val();
        if self.order.q.val() == dir_ask::REMOVE {
            self.same.next = self.at.q.val() == self.own.q.val();
        }
        self.heads.read_addr.next = self.hash.q.val();
        self.heads.write_addr.next = self.hash.q.val();
        self.heads.write_data.next = self.was.val().behind;
        self.heads.write_en.next = false;
        self.links.read_addr.next = bit_cast::<LP, LINE>(self.at.q.val());
        self.links.write_addr.next = bit_cast::<LP, LINE>(self.own.q.val());
        self.links.write_data.next.key = self.name.q.val();
        self.links.write_data.next.behind = self.at.q.val();
        self.links.write_en.next = false;
        if self.go.val() {
            self.waits.d.next = true;
            self.order.d.next = self.kind.val();
            self.name.d.next = self.key.val();
            self.own.d.next = self.place.val();
        }
        match self.state.q.val() {
            State::Sweep => {
                self.heads.write_addr.next = self.sweep.q.val();
                self.heads.write_data.next = bits::<LINE>(0);
                self.heads.write_en.next = true;
                self.sweep.d.next = self.sweep.q.val() + 1;
                if self.sweep.q.val().all() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Idle => {
                self.front.d.next = bits::<LINE>(0);
                self.hash.d.next = bit_cast::<LH, ID>(self.mixed.val());
                if self.waits.q.val() {
                    self.waits.d.next = false;
                    self.state.d.next = State::Hash;
                }
            }
            // The memory sees the hash in this state and has the first place in the next.
            State::Hash => {
                self.state.d.next = State::Head;
            }
            State::Head => {
                self.at.d.next = self.heads.read_data.val();
                self.state.d.next = State::Walk;
                if self.order.q.val() == dir_ask::ADD {
                    self.state.d.next = State::Add;
                }
            }
            State::Add => {
                self.links.write_en.next = true;
                self.heads.write_data.next = self.own.q.val();
                self.heads.write_en.next = true;
                self.state.d.next = State::Done;
            }
            State::Walk => {
                self.state.d.next = State::Look;
                if !self.at.q.val().any() {
                    self.state.d.next = State::Done;
                }
            }
            State::Look => {
                self.link.d.next = self.links.read_data.val();
                self.state.d.next = State::Compare;
            }
            State::Compare => {
                if self.same.val() {
                    self.state.d.next = State::Done;
                    if self.order.q.val() == dir_ask::REMOVE {
                        self.state.d.next = State::Unlink;
                    }
                } else {
                    self.front.d.next = self.at.q.val();
                    self.front_link.d.next = self.link.q.val();
                    self.at.d.next = self.was.val().behind;
                    self.state.d.next = State::Walk;
                }
            }
            State::Unlink => {
                if self.front.q.val().any() {
                    self.links.write_addr.next = bit_cast::<LP, LINE>(self.front.q.val());
                    self.links.write_data.next.key = self.front_was.val().key;
                    self.links.write_data.next.behind = self.was.val().behind;
                    self.links.write_en.next = true;
                } else {
                    self.heads.write_en.next = true;
                }
                self.state.d.next = State::Done;
            }
            State::Done => {
                self.done.next = true;
                self.state.d.next = State::Idle;
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Sweep;
            self.sweep.d.next = bits::<LH>(0);
            self.waits.d.next = false;
        }
    }
}
