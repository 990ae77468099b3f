//! A descriptor of either format, as the walker sees it. See README.md.

use crate::prim::mux::IndexMux;
use crate::prim::pack::Cast;
use crate::records::{PackedDesc, SplitDesc};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of a descriptor, and how many stand in a row.
const DESC: usize = 128;
const DESCS: usize = 512 / DESC;

/// What a descriptor says: its format has been left behind.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Entry {
    pub addr: Bits<64>,
    pub length: Bits<32>,
    /// The chain goes on at `to` in the same table.
    pub has_next: Bit,
    pub to: Bits<16>,
    pub write: Bit,
    pub indirect: Bit,
    /// Packed: buffer ID.
    pub id: Bits<16>,
    /// Packed, first of a chain: it is not available under this wrap counter.
    pub absent: Bit,
}

/// One of the descriptors in a row; combinational.
#[derive(LogicBlock, BlockDefault)]
pub struct Entries {
    pub row: Signal<In, Bits<512>>,
    pub which: Signal<In, Bits<2>>,
    /// It is one of a packed ring, or of a table that a packed ring leads to.
    pub packed: Signal<In, Bit>,
    /// It is one of an indirect table: of a packed one flags but WRITE are ignored (VIRTIO 1.3, 2.8.7).
    pub inside: Signal<In, Bit>,
    /// Wrap counter of the ring at the chain's first descriptor.
    pub wrap: Signal<In, Bit>,
    /// The descriptor behind it in its table, around the end; it is the last.
    pub behind: Signal<In, Bits<16>>,
    pub last: Signal<In, Bit>,
    pub y: Signal<Out, Entry>,
    quarter: IndexMux<Bits<DESC>, DESCS, 2>,
    split: Cast<Bits<DESC>, SplitDesc>,
    pack: Cast<Bits<DESC>, PackedDesc>,
}

#[kernel]
impl Logic for Entries {
    #[hdl_gen]
    fn update(&mut self) {
        self.quarter.x[0].next = self.row.val().get_bits::<DESC>(0);
        self.quarter.x[1].next = self.row.val().get_bits::<DESC>(128);
        self.quarter.x[2].next = self.row.val().get_bits::<DESC>(256);
        self.quarter.x[3].next = self.row.val().get_bits::<DESC>(384);
        self.quarter.sel.next = self.which.val();
        self.split.x.next = self.quarter.y.val();
        self.pack.x.next = self.quarter.y.val();
        self.y.next.addr = self.split.y.val().addr;
        self.y.next.length = self.split.y.val().length;
        self.y.next.has_next = self.split.y.val().has_next;
        self.y.next.to = self.split.y.val().next;
        self.y.next.write = self.split.y.val().write;
        self.y.next.indirect = self.split.y.val().indirect;
        self.y.next.id = self.pack.y.val().id;
        self.y.next.absent = (self.pack.y.val().avail != self.wrap.val()) | (self.pack.y.val().used == self.wrap.val());
        if self.packed.val() {
            self.y.next.has_next = self.pack.y.val().has_next;
            self.y.next.to = self.behind.val();
            self.y.next.write = self.pack.y.val().write;
            self.y.next.indirect = self.pack.y.val().indirect & !self.inside.val();
            if self.inside.val() {
                self.y.next.has_next = !self.last.val();
            }
        }
    }
}
