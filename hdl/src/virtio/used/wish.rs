//! Whether a driver of a packed ring wants an interrupt, by its event structure (VIRTIO 1.3, 2.8.10, 2.8.14). See README.md.

use crate::records::VqUsed;
use ferric_abi::virtio::event;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of a descriptor's number, and of a distance of less than two rounds.
const SLOT: usize = 15;
const WIDE: usize = 17;

/// The answer stands two cycles behind the structure.
#[derive(LogicBlock, BlockDefault)]
pub struct Wish {
    pub clock: Signal<In, Clock>,
    /// The structure: descriptor and wrap counter; flags.
    pub place: Signal<In, Bits<16>>,
    pub flags: Signal<In, Bits<16>>,
    /// The line, with all that has been given back.
    pub row: Signal<In, VqUsed>,
    pub wants: Signal<Out, Bit>,
    /// How far the used descriptors have gone beyond the one that is named, in this round and since the one before; it is one of the ring.
    near: DFF<Bits<WIDE>>,
    far: DFF<Bits<WIDE>>,
    behind: DFF<Bit>,
    exists: DFF<Bit>,
    /// It is one of those since the driver's event was last looked at.
    passed: DFF<Bit>,
    slot: Signal<Local, Bits<WIDE>>,
    used: Signal<Local, Bits<WIDE>>,
    round: Signal<Local, Bits<WIDE>>,
    since: Signal<Local, Bits<WIDE>>,
    kind: Signal<Local, Bits<2>>,
    same: Signal<Local, Bit>,
    one: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Wish {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, near, far, behind, exists, passed);
        self.slot.next = bit_cast::<WIDE, SLOT>(self.place.val().get_bits::<SLOT>(0));
        self.used.next = bit_cast::<WIDE, 16>(self.row.val().used);
        self.round.next = self.used.val() + bit_cast::<WIDE, 16>(self.row.val().size);
        self.near.d.next = self.used.val() - self.slot.val();
        self.far.d.next = self.round.val() - self.slot.val();
        self.behind.d.next = self.slot.val() < self.used.val();
        // A descriptor that the ring does not have is never used.
        self.exists.d.next = self.slot.val() < bit_cast::<WIDE, 16>(self.row.val().size);
        self.since.next = bit_cast::<WIDE, 16>(self.row.val().signalled);
        self.same.next = self.place.val().get_bit(SLOT) == self.row.val().wrap;
        self.passed.d.next = self.exists.q.val() & (self.far.q.val() <= self.since.val());
        if self.same.val() {
            self.passed.d.next = self.behind.q.val() & (self.near.q.val() <= self.since.val());
        }
        self.kind.next = self.flags.val().get_bits::<2>(0);
        self.one.next = (self.kind.val() == event::DESC as u64) & self.row.val().events;
        self.wants.next = self.kind.val() != event::DISABLE as u64;
        if self.one.val() {
            self.wants.next = self.passed.q.val();
        }
    }
}
