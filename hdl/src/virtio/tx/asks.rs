//! What a frame's header asks for, and whether it can be (VIRTIO 1.3, 5.1.6.2). See README.md.

use crate::msg::L4Order;
use crate::prim::pack::Slice;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Where the header says it in its slot: flags and kind of segmentation; from which byte on the checksum counts, and where it stands from there on.
pub const FLAGS: u64 = super::START;
pub const SUM: u64 = super::START + 6;
/// Bytes of a checksum.
const SUM_BYTES: u64 = 2;

/// A header, row by row.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K, "K must be W / 8")]
pub struct Asks<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    /// A row of the slot: that of [`FLAGS`] with `flags`, that of [`SUM`] with `sums`.
    pub row: Signal<In, Bits<W>>,
    pub flags: Signal<In, Bit>,
    pub sums: Signal<In, Bit>,
    /// Bytes of the frame; its driver may ask for a checksum.
    pub len: Signal<In, Bits<14>>,
    pub offered: Signal<In, Bit>,
    /// Two cycles behind `sums`: what is to be done, but for the queue; it cannot be.
    pub order: Signal<Out, L4Order>,
    pub bad: Signal<Out, Bit>,
    #[init(Slice::new(8 * (FLAGS as usize % K)))]
    flags_of: Slice<W, 16>,
    #[init(Slice::new(8 * (SUM as usize % K)))]
    sums_of: Slice<W, 32>,
    asked: DFF<Bits<16>>,
    start: DFF<Bits<16>>,
    at: DFF<Bits<17>>,
    beyond: DFF<Bit>,
    places: Signal<Local, Bits<32>>,
    kind: Signal<Local, Bits<7>>,
    summed: Signal<Local, Bit>,
    ending: Signal<Local, Bits<17>>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Asks<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, asked, start, at, beyond);
        self.flags_of.x.next = self.row.val();
        self.sums_of.x.next = self.row.val();
        if self.flags.val() {
            self.asked.d.next = self.flags_of.y.val();
        }
        self.places.next = self.sums_of.y.val();
        if self.sums.val() {
            self.start.d.next = self.places.val().get_bits::<16>(0);
            self.at.d.next = bit_cast::<17, 16>(self.places.val().get_bits::<16>(0)) + bit_cast::<17, 16>(self.places.val().get_bits::<16>(16));
        }
        // Both bytes of the checksum have to be in the frame.
        self.ending.next = self.at.q.val() + SUM_BYTES;
        self.beyond.d.next = self.ending.val() > bit_cast::<17, 14>(self.len.val());
        self.summed.next = self.asked.q.val().get_bit(0);
        self.kind.next = self.asked.q.val().get_bits::<7>(8);
        // Segments are not offered; a checksum if the driver has taken it.
        self.bad.next = self.kind.val().any() | (self.summed.val() & (self.beyond.q.val() | !self.offered.val()));
        self.order.next.queue = bits::<16>(0);
        self.order.next.fills = self.summed.val();
        self.order.next.start = self.start.q.val();
        self.order.next.at = self.at.q.val();
    }
}
