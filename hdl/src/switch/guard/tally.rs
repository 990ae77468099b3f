//! How many frames of each function have gone on, and were dropped by which cause.

use crate::prim::ram::RamAsync2;
use crate::prim::sum::PlusOne;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// 2^`LC` counters of 64 bits in LUT RAM, one event a cycle. They begin with zero, and no reset clears them.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Tally<const LC: usize> {
    pub clock: Signal<In, Clock>,
    /// This counter goes up by one.
    pub valid: Signal<In, Bit>,
    pub which: Signal<In, Bits<LC>>,
    /// What this one is at, a cycle later.
    pub asked: Signal<In, Bits<LC>>,
    pub count: Signal<Out, Bits<64>>,
    cells: RamAsync2<Bits<64>, LC>,
    next: PlusOne<64>,
    count1: DFF<Bits<64>>,
}

#[kernel]
impl<const LC: usize> Logic for Tally<LC> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, count1);
        clock!(self, clock, cells);
        self.cells.read_addr0.next = self.which.val();
        self.next.a.next = self.cells.read_data0.val();
        self.cells.write_addr.next = self.which.val();
        self.cells.write_data.next = self.next.y.val();
        self.cells.write_en.next = self.valid.val();
        self.cells.read_addr1.next = self.asked.val();
        self.count1.d.next = self.cells.read_data1.val();
        self.count.next = self.count1.q.val();
    }
}
