//! How many PDCs there are of each kind, and whether there is room for one more.
use super::types::PLACES;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// What is counted, in this order.
pub const INITIATORS: usize = 0;
pub const TARGETS: usize = 1;
/// Initiators' places that rest; targets that linger.
pub const RESTING: usize = 2;
pub const LINGERING: usize = 3;
/// Initiators that take no more; targets that want to be closed.
pub const LEAVING: usize = 4;
pub const WANTING: usize = 5;
/// How many these are.
pub const KINDS: usize = 6;

/// Counts; all that says yes or no is true two cycles behind them.
#[derive(LogicBlock, BlockDefault)]
pub struct Counts {
    pub clock: Signal<In, Clock>,
    /// Synchronous; there are none.
    pub reset: Signal<In, Bit>,
    /// Registers: places that initiators, and targets, may have; places in use at most; below so many free places of the targets' share one of them is asked to go.
    pub share: Signal<In, Bits<PLACES>>,
    pub places: Signal<In, Bits<PLACES>>,
    pub low: Signal<In, Bits<PLACES>>,
    /// One more, one less. Not both.
    pub up: Signal<In, Bits<KINDS>>,
    pub down: Signal<In, Bits<KINDS>>,
    /// All places in use, a cycle later.
    pub all: Signal<Out, Bits<PLACES>>,
    pub count: [Signal<Out, Bits<PLACES>>; KINDS],
    /// There is one.
    pub any: Signal<Out, Bits<KINDS>>,
    /// A target is open.
    pub open: Signal<Out, Bit>,
    pub initiator_room: Signal<Out, Bit>,
    pub target_room: Signal<Out, Bit>,
    pub scarce: Signal<Out, Bit>,
    counts: [DFF<Bits<PLACES>>; KINDS],
    anys: [DFF<Bit>; KINDS],
    total: DFF<Bits<PLACES>>,
    wanted: DFF<Bits<PLACES>>,
    opens: DFF<Bit>,
    total_fits: DFF<Bit>,
    initiator_fits: DFF<Bit>,
    target_fits: DFF<Bit>,
    few: DFF<Bit>,
    flags: crate::prim::pack::Gather<KINDS>,
}

#[kernel]
impl Logic for Counts {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, total, wanted, opens, total_fits, initiator_fits, target_fits, few);
        for i in 0..KINDS {
            self.counts[i].clock.next = self.clock.val();
            self.counts[i].d.next = self.counts[i].q.val();
            if self.up.val().get_bit(i) {
                self.counts[i].d.next = self.counts[i].q.val() + 1;
            }
            if self.down.val().get_bit(i) {
                self.counts[i].d.next = self.counts[i].q.val() - 1;
            }
            if self.reset.val() {
                self.counts[i].d.next = bits::<PLACES>(0);
            }
            self.count[i].next = self.counts[i].q.val();
            self.anys[i].clock.next = self.clock.val();
            self.anys[i].d.next = self.counts[i].q.val().any();
            self.flags.x[i].next = self.anys[i].q.val();
        }
        self.any.next = self.flags.y.val();
        self.total.d.next = self.counts[INITIATORS].q.val() + self.counts[TARGETS].q.val();
        self.wanted.d.next = self.counts[TARGETS].q.val() + self.low.val();
        self.opens.d.next = !(self.counts[TARGETS].q.val() == self.counts[LINGERING].q.val());
        self.total_fits.d.next = self.total.q.val() < self.places.val();
        self.initiator_fits.d.next = self.counts[INITIATORS].q.val() < self.share.val();
        self.target_fits.d.next = self.counts[TARGETS].q.val() < self.share.val();
        self.few.d.next = self.wanted.q.val() > self.share.val();
        self.all.next = self.total.q.val();
        self.open.next = self.opens.q.val();
        self.initiator_room.next = self.initiator_fits.q.val() & self.total_fits.q.val();
        self.target_room.next = self.target_fits.q.val() & self.total_fits.q.val();
        self.scarce.next = self.few.q.val();
    }
}
