//! The mask that a key is looked up under. See README.md.

#[cfg(test)]
mod tests;

use crate::prim::pack::Cast;
use crate::prim::ram::RamAsync;
pub use ferric_abi::switch::table::{KEY_BITS, PROFILE_LINE_BITS};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Cycles from a key to the masked key.
pub const LATENCY: u64 = 1;
/// Bits of what is read.
pub const READ: usize = KEY_BITS + 1;
/// A mask, and that it is there.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Line {
    mask: Bits<KEY_BITS>,
    there: Bit,
}

/// One key a cycle, never stalled.
#[derive(LogicBlock, BlockDefault)]
pub struct Profile {
    pub clock: Signal<In, Clock>,
    /// Synchronous; what is under way is forgotten. The masks stay.
    pub reset: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    pub key: Signal<In, Bits<KEY_BITS>>,
    /// Which mask: `ferric_abi::switch::table::profile_line`.
    pub generation: Signal<In, Bits<2>>,
    pub port_class: Signal<In, Bits<2>>,
    pub packet_class: Signal<In, Bits<2>>,
    /// [`LATENCY`] cycles later: there is such a mask, and the key under it.
    pub asks: Signal<Out, Bit>,
    pub masked: Signal<Out, Bits<KEY_BITS>>,
    /// A mask is written, at any time; a key in the same cycle meets the old one. `there` low: it is taken away.
    pub write: Signal<In, Bit>,
    pub write_line: Signal<In, Bits<PROFILE_LINE_BITS>>,
    pub write_mask: Signal<In, Bits<KEY_BITS>>,
    pub there: Signal<In, Bit>,
    /// A mask is read when no key wants the memory: `read` and the line's number stay until `read_done`, which brings it: the mask, and above it that it is there.
    pub read: Signal<In, Bit>,
    pub read_line: Signal<In, Bits<PROFILE_LINE_BITS>>,
    pub read_done: Signal<Out, Bit>,
    pub read_data: Signal<Out, Bits<READ>>,
    memory: RamAsync<Line, PROFILE_LINE_BITS>,
    line: Signal<Local, Bits<PROFILE_LINE_BITS>>,
    row: Cast<Line, Bits<READ>>,
    asks1: DFF<Bit>,
    masked1: DFF<Bits<KEY_BITS>>,
}

#[kernel]
impl Logic for Profile {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, asks1, masked1);
        clock!(self, clock, memory);
        self.line.next =
            (bit_cast::<PROFILE_LINE_BITS, 2>(self.generation.val()) << 4) | (bit_cast::<PROFILE_LINE_BITS, 2>(self.port_class.val()) << 2) | bit_cast::<PROFILE_LINE_BITS, 2>(self.packet_class.val());
        if !self.valid.val() {
            self.line.next = self.read_line.val();
        }
        self.memory.read_addr.next = self.line.val();
        self.row.x.next = self.memory.read_data.val();
        self.read_data.next = self.row.y.val();
        self.read_done.next = self.read.val() & !self.valid.val();
        self.memory.write_data.next.there = self.there.val();
        self.memory.write_data.next.mask = self.write_mask.val();
        self.memory.write_addr.next = self.write_line.val();
        self.memory.write_en.next = self.write.val();
        self.masked1.d.next = self.key.val() & self.memory.read_data.val().mask;
        self.asks1.d.next = self.valid.val() & self.memory.read_data.val().there;
        self.asks.next = self.asks1.q.val();
        self.masked.next = self.masked1.q.val();
        if self.reset.val() {
            self.asks1.d.next = false;
        }
    }
}
