//! How many PDCs of a kind each peer has. Peers whose numbers agree in their low bits are counted together: a card has no more peers than places.
use super::types::{PEER, PLACES};
use crate::prim::ram::Ram;
use crate::uet::types::LINE;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// `2^LP` counts.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE)]
pub struct Tally<const LP: usize> {
    pub clock: Signal<In, Clock>,
    /// Register: so many it may have.
    pub share: Signal<In, Bits<PLACES>>,
    /// Who is meant: `owner`, if `owned`; steady for a cycle in front of `up` and `down`, which are not both.
    pub asked: Signal<In, Bits<PEER>>,
    pub owner: Signal<In, Bits<PEER>>,
    pub owned: Signal<In, Bit>,
    pub up: Signal<In, Bit>,
    pub down: Signal<In, Bit>,
    /// The count with the number `place` is 0 from now on.
    pub wipe: Signal<In, Bit>,
    pub place: Signal<In, Bits<LINE>>,
    /// How many another peer has, one cycle later; not of a peer whose count has just changed.
    pub looked: Signal<In, Bits<PEER>>,
    pub many: Signal<Out, Bits<PLACES>>,
    /// It has all that it may; two cycles behind who is meant.
    pub full: Signal<Out, Bit>,
    counts: Ram<Bits<PLACES>, LP>,
    copies: Ram<Bits<PLACES>, LP>,
    has_all: DFF<Bit>,
    peer: Signal<Local, Bits<PEER>>,
}

#[kernel]
impl<const LP: usize> Logic for Tally<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, has_all);
        clock!(self, clock, counts, copies);
        self.peer.next = self.asked.val();
        if self.owned.val() {
            self.peer.next = self.owner.val();
        }
        self.counts.read_addr.next = self.peer.val().get_bits::<LP>(0);
        self.counts.write_addr.next = self.peer.val().get_bits::<LP>(0);
        self.counts.write_data.next = self.counts.read_data.val() + 1;
        if self.down.val() {
            self.counts.write_data.next = self.counts.read_data.val() - 1;
        }
        self.counts.write_en.next = self.up.val() | self.down.val() | self.wipe.val();
        if self.wipe.val() {
            self.counts.write_addr.next = bit_cast::<LP, LINE>(self.place.val());
            self.counts.write_data.next = bits::<PLACES>(0);
        }
        self.copies.read_addr.next = self.looked.val().get_bits::<LP>(0);
        self.copies.write_addr.next = self.counts.write_addr.val();
        self.copies.write_data.next = self.counts.write_data.val();
        self.copies.write_en.next = self.counts.write_en.val();
        self.many.next = self.copies.read_data.val();
        self.has_all.d.next = self.counts.read_data.val() >= self.share.val();
        self.full.next = self.has_all.q.val();
    }
}
