//! A client's grants that it has not taken yet.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::SlotGrant;
use crate::stream::MsgSkid;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Requests of a client that may be without their grant taken: as many as the egress itself takes ahead (one at hand, two grants behind it), so
/// that a client by itself never waits for this.
pub(super) const AHEAD: u64 = 3;

/// [`AHEAD`] places that a grant passes within the cycle while its client takes it. No more is asked for than there is room for here, so a grant
/// waits for other grants on their way to the end at most, never for the client.
#[derive(LogicBlock, Default)]
pub(super) struct Place {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<SlotGrant>,
    pub m: MsgSrc<SlotGrant>,
    /// A request of this client was taken.
    pub asked: Signal<In, Bit>,
    /// It may ask.
    pub room: Signal<Out, Bit>,
    skid0: MsgSkid<SlotGrant>,
    skid1: MsgSkid<SlotGrant>,
    skid2: MsgSkid<SlotGrant>,
    /// Requests without their grant taken.
    ahead: DFF<Bits<2>>,
    took: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Place {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, ahead);
        clock!(self, clock, skid0, skid1, skid2);
        self.skid0.reset.next = self.reset.val();
        self.skid1.reset.next = self.reset.val();
        self.skid2.reset.next = self.reset.val();
        MsgSink::<SlotGrant>::link(&mut self.s, &mut self.skid0.s);
        MsgSrc::<SlotGrant>::join(&mut self.skid0.m, &mut self.skid1.s);
        MsgSrc::<SlotGrant>::join(&mut self.skid1.m, &mut self.skid2.s);
        MsgSrc::<SlotGrant>::link(&mut self.m, &mut self.skid2.m);
        self.room.next = self.ahead.q.val() < AHEAD;
        self.took.next = self.m.valid.val() & self.m.ready.val();
        if self.asked.val() & !self.took.val() {
            self.ahead.d.next = self.ahead.q.val() + 1;
        }
        if self.took.val() & !self.asked.val() {
            self.ahead.d.next = self.ahead.q.val() - 1;
        }
        if self.reset.val() {
            self.ahead.d.next = bits::<2>(0);
        }
    }
}
