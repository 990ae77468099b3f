//! Places of packets: grants come in packet order, some only when the walk of their packet is long over.

use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// The place of the packet at hand, once its grant has come.
#[derive(LogicBlock, Default)]
pub struct Grants {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: the next packet without a place has got one.
    pub granted: Signal<In, Bit>,
    pub granted_dst: Signal<In, Bits<18>>,
    /// Pulse: the walk goes on to the next packet, place or no place.
    pub ends: Signal<In, Bit>,
    pub valid: Signal<Out, Bit>,
    pub dst: Signal<Out, Bits<18>>,
    known: DFF<Bit>,
    place: DFF<Bits<18>>,
    /// How many of the packets that have passed still wait for their places.
    owed: DFF<Bits<6>>,
    mine: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Grants {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, known, place, owed);
        self.valid.next = self.known.q.val();
        self.dst.next = self.place.q.val();
        // First to the packets that went on without, then to the packet at hand.
        self.mine.next = self.granted.val() & !self.owed.q.val().any();
        if self.mine.val() {
            self.known.d.next = true;
            self.place.d.next = self.granted_dst.val();
        }
        if self.granted.val() & self.owed.q.val().any() {
            self.owed.d.next = self.owed.q.val() - 1;
        }
        if self.ends.val() {
            self.known.d.next = false;
            if !self.granted.val() & !self.known.q.val() {
                self.owed.d.next = self.owed.q.val() + 1;
            }
            if self.granted.val() {
                self.owed.d.next = self.owed.q.val();
            }
        }
        if self.reset.val() {
            self.known.d.next = false;
            self.owed.d.next = bits::<6>(0);
        }
    }
}
