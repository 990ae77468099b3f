//! Who goes when there is no room: of targets that are to be asked one of the peer that has most, then as of all the one opened longest ago, those without work first. It looks at a place in each cycle.
use super::types::{class, PEER, PLACES};
use crate::prim::ram::Ram;
use crate::prim::sum::Diff;
use crate::uet::types::LINE;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Scan,
    /// The last places are under way.
    Drain,
    Compare,
    Done,
}

/// Bits of a rank: how many targets a peer has, and that it is the one that wants a place.
const RANK: usize = PLACES + 1;

/// `2^LP` places.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE)]
pub struct Oldest<const LP: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets the search. The classes stay.
    pub reset: Signal<In, Bit>,
    /// The place that is meant by what follows.
    pub place: Signal<In, Bits<LINE>>,
    /// It is of another class from now on, see [`class`].
    pub set: Signal<In, Bit>,
    pub sort: Signal<In, Bits<2>>,
    /// It is opened now, by or to this peer.
    pub opens: Signal<In, Bit>,
    pub peer: Signal<In, Bits<PEER>>,
    /// It has work, or none.
    pub work: Signal<In, Bit>,
    pub busy: Signal<In, Bit>,
    /// One cycle: a search for one of `wanted`; nothing is set before `done`.
    pub go: Signal<In, Bit>,
    pub wanted: Signal<In, Bits<2>>,
    /// With `go`: only one of `peer`, which stays as it is until `done`.
    pub own: Signal<In, Bit>,
    /// Whose place is looked at, and in the next cycle how many targets that peer has.
    pub looked: Signal<Out, Bits<PEER>>,
    pub many: Signal<In, Bits<PLACES>>,
    /// One cycle: here it is; 0: there is none.
    pub done: Signal<Out, Bit>,
    pub found: Signal<Out, Bits<LINE>>,
    classes: Ram<Bits<2>, LP>,
    works: Ram<Bits<1>, LP>,
    orders: Ram<Bits<32>, LP>,
    peers: Ram<Bits<PEER>, LP>,
    state: DFF<State>,
    /// Order of the next to be opened. Ages are differences, so that it may wrap.
    order: DFF<Bits<32>>,
    wants: DFF<Bits<2>>,
    owns: DFF<Bit>,
    at: DFF<Bits<LP>>,
    /// Place of what the memories show, and of what stands behind them.
    at1: DFF<Bits<LP>>,
    on1: DFF<Bit>,
    at2: DFF<Bits<LP>>,
    on2: DFF<Bit>,
    busy2: DFF<Bit>,
    age2: DFF<Bits<32>>,
    /// It is of `peer`.
    own2: DFF<Bit>,
    best: DFF<Bits<LP>>,
    best_busy: DFF<Bit>,
    best_age: DFF<Bits<32>>,
    best_rank: DFF<Bits<RANK>>,
    age: Diff<32>,
    compared: Diff<32>,
    older: Signal<Local, Bit>,
    better: Signal<Local, Bit>,
    rank: Signal<Local, Bits<RANK>>,
    alike: Signal<Local, Bit>,
    sooner: Signal<Local, Bit>,
    fits: Signal<Local, Bit>,
}

#[kernel]
impl<const LP: usize> Logic for Oldest<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, order, wants, owns, at, at1, on1, at2, on2, busy2, age2, own2, best, best_busy, best_age, best_rank);
        clock!(self, clock, classes, works, orders, peers);
        self.classes.write_addr.next = bit_cast::<LP, LINE>(self.place.val());
        self.classes.write_data.next = self.sort.val();
        self.classes.write_en.next = self.set.val();
        self.works.write_addr.next = bit_cast::<LP, LINE>(self.place.val());
        self.works.write_data.next = bit_cast::<1, 1>(self.busy.val().into());
        self.works.write_en.next = self.work.val();
        self.orders.write_addr.next = bit_cast::<LP, LINE>(self.place.val());
        self.orders.write_data.next = self.order.q.val();
        self.orders.write_en.next = self.opens.val();
        self.peers.write_addr.next = bit_cast::<LP, LINE>(self.place.val());
        self.peers.write_data.next = self.peer.val();
        self.peers.write_en.next = self.opens.val();
        self.peers.read_addr.next = self.at.q.val();
        if self.opens.val() {
            self.order.d.next = self.order.q.val() + 1;
        }
        self.classes.read_addr.next = self.at.q.val();
        self.works.read_addr.next = self.at.q.val();
        self.orders.read_addr.next = self.at.q.val();
        self.done.next = false;
        self.found.next = bit_cast::<LINE, LP>(self.best.q.val());
        // Places go through in three steps: read, reckoned, compared.
        self.on1.d.next = self.state.q.val() == State::Scan;
        self.at1.d.next = self.at.q.val();
        self.fits.next = (self.classes.read_data.val() == self.wants.q.val()) & (!self.owns.q.val() | (self.peers.read_data.val() == self.peer.val()));
        self.on2.d.next = self.on1.q.val() & self.fits.val();
        self.at2.d.next = self.at1.q.val();
        self.age.a.next = self.order.q.val();
        self.age.b.next = self.orders.read_data.val();
        self.age2.d.next = self.age.y.val();
        // Those that linger have none.
        self.busy2.d.next = self.works.read_data.val().any() & !(self.wants.q.val() == class::LINGERS);
        self.compared.a.next = self.best_age.q.val();
        self.compared.b.next = self.age2.q.val();
        self.older.next = self.compared.below.val();
        self.sooner.next = (self.best_busy.q.val() & !self.busy2.q.val()) | ((self.best_busy.q.val() == self.busy2.q.val()) & self.older.val());
        self.looked.next = self.peers.read_data.val();
        self.own2.d.next = self.peers.read_data.val() == self.peer.val();
        self.rank.next = bits::<RANK>(0);
        if self.wants.q.val() == class::TARGET {
            self.rank.next = (bit_cast::<RANK, PLACES>(self.many.val()) << 1) | bit_cast::<RANK, 1>(self.own2.q.val().into());
        }
        self.alike.next = (self.rank.val() == self.best_rank.q.val()) & self.sooner.val();
        self.better.next = !self.best.q.val().any() | (self.rank.val() > self.best_rank.q.val()) | self.alike.val();
        if self.on2.q.val() & self.better.val() {
            self.best.d.next = self.at2.q.val();
            self.best_busy.d.next = self.busy2.q.val();
            self.best_age.d.next = self.age2.q.val();
            self.best_rank.d.next = self.rank.val();
        }
        match self.state.q.val() {
            State::Idle => {
                self.at.d.next = bits::<LP>(0);
                if self.go.val() {
                    self.wants.d.next = self.wanted.val();
                    self.owns.d.next = self.own.val();
                    self.best.d.next = bits::<LP>(0);
                    self.state.d.next = State::Scan;
                }
            }
            // Place 0 is nobody's and of no class.
            State::Scan => {
                self.at.d.next = self.at.q.val() + 1;
                if self.at.q.val().all() {
                    self.state.d.next = State::Drain;
                }
            }
            State::Drain => {
                self.state.d.next = State::Compare;
            }
            State::Compare => {
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
            self.state.d.next = State::Idle;
            self.order.d.next = bits::<32>(0);
        }
    }
}
