//! LUT RAM with two write ports: two halves, one for each writer, whose XOR is the contents (an XOR-based multi-ported memory). A flag that one side sets and another clears
//! costs a few LUTs in it, where it would cost a register, a decoder and a place in a multiplexer.

#[cfg(test)]
pub(crate) mod tests;

use super::ram::{RamAsync, RamAsync2};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// `2^A` words of `B` bits with two combinational read ports. A write is visible in the cycle after it. Contents start as zeros.
///
/// Each writer writes its own half with what makes the XOR of both the word that it wants. So the two may write in one cycle, but not the same word: that is undefined.
#[derive(LogicBlock, BlockDefault)]
pub struct RamTwoWriters<const B: usize, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub write_en0: Signal<In, Bit>,
    pub write_addr0: Signal<In, Bits<A>>,
    pub write_data0: Signal<In, Bits<B>>,
    /// The word at `write_addr0`, for a writer that changes a part of it.
    pub written0: Signal<Out, Bits<B>>,
    pub write_en1: Signal<In, Bit>,
    pub write_addr1: Signal<In, Bits<A>>,
    pub write_data1: Signal<In, Bits<B>>,
    pub read_addr0: Signal<In, Bits<A>>,
    pub read_data0: Signal<Out, Bits<B>>,
    pub read_addr1: Signal<In, Bits<A>>,
    pub read_data1: Signal<Out, Bits<B>>,
    /// The halves: a copy for the two read ports, and one for the writers.
    first: RamAsync2<Bits<B>, A>,
    second: RamAsync2<Bits<B>, A>,
    first_for_writers: RamAsync2<Bits<B>, A>,
    second_for_writer: RamAsync<Bits<B>, A>,
    half0: Signal<Local, Bits<B>>,
    half1: Signal<Local, Bits<B>>,
}

#[kernel]
impl<const B: usize, const A: usize> Logic for RamTwoWriters<B, A> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, first, second, first_for_writers, second_for_writer);
        self.first_for_writers.read_addr0.next = self.write_addr0.val();
        self.first_for_writers.read_addr1.next = self.write_addr1.val();
        self.second_for_writer.read_addr.next = self.write_addr0.val();
        self.written0.next = self.first_for_writers.read_data0.val() ^ self.second_for_writer.read_data.val();
        self.half0.next = self.second_for_writer.read_data.val() ^ self.write_data0.val();
        self.half1.next = self.first_for_writers.read_data1.val() ^ self.write_data1.val();
        self.first.write_en.next = self.write_en0.val();
        self.first.write_addr.next = self.write_addr0.val();
        self.first.write_data.next = self.half0.val();
        self.first_for_writers.write_en.next = self.write_en0.val();
        self.first_for_writers.write_addr.next = self.write_addr0.val();
        self.first_for_writers.write_data.next = self.half0.val();
        self.second.write_en.next = self.write_en1.val();
        self.second.write_addr.next = self.write_addr1.val();
        self.second.write_data.next = self.half1.val();
        self.second_for_writer.write_en.next = self.write_en1.val();
        self.second_for_writer.write_addr.next = self.write_addr1.val();
        self.second_for_writer.write_data.next = self.half1.val();
        self.first.read_addr0.next = self.read_addr0.val();
        self.second.read_addr0.next = self.read_addr0.val();
        self.read_data0.next = self.first.read_data0.val() ^ self.second.read_data0.val();
        self.first.read_addr1.next = self.read_addr1.val();
        self.second.read_addr1.next = self.read_addr1.val();
        self.read_data1.next = self.first.read_data1.val() ^ self.second.read_data1.val();
    }
}
