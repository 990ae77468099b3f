//! How many frames of each function have gone on, and were dropped by which cause.

#[cfg(test)]
mod tests;

use crate::prim::ram::RamAsync2;
use crate::prim::sum::PlusOne;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// 2^`LC` counters of `LO` + `HI` bits in LUT RAM, one event a cycle. They begin with zero, and no reset clears them. The upper part follows the lower one a cycle later, so that no addition is long.
#[derive(LogicBlock, BlockDefault)]
#[demand(LO + HI == 64)]
pub(in crate::switch) struct Tally<const LC: usize, const LO: usize, const HI: usize> {
    pub clock: Signal<In, Clock>,
    /// This counter goes up by one.
    pub valid: Signal<In, Bit>,
    pub which: Signal<In, Bits<LC>>,
    /// What this one is at, a cycle later.
    pub asked: Signal<In, Bits<LC>>,
    pub count: Signal<Out, Bits<64>>,
    low: RamAsync2<Bits<LO>, LC>,
    high: RamAsync2<Bits<HI>, LC>,
    next_low: PlusOne<LO>,
    next_high: PlusOne<HI>,
    carry: DFF<Bit>,
    carries: DFF<Bits<LC>>,
    low1: DFF<Bits<LO>>,
    high1: DFF<Bits<HI>>,
    #[init(Constant::new((LO as u64).to_bits()))]
    above: Constant<Bits<7>>,
}

#[kernel]
impl<const LC: usize, const LO: usize, const HI: usize> Logic for Tally<LC, LO, HI> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, carry, carries, low1, high1);
        clock!(self, clock, low, high);
        self.low.read_addr0.next = self.which.val();
        self.next_low.a.next = self.low.read_data0.val();
        self.low.write_addr.next = self.which.val();
        self.low.write_data.next = self.next_low.y.val();
        self.low.write_en.next = self.valid.val();
        self.carry.d.next = self.valid.val() & self.low.read_data0.val().all();
        self.carries.d.next = self.which.val();
        self.high.read_addr0.next = self.carries.q.val();
        self.next_high.a.next = self.high.read_data0.val();
        self.high.write_addr.next = self.carries.q.val();
        self.high.write_data.next = self.next_high.y.val();
        self.high.write_en.next = self.carry.q.val();
        self.low.read_addr1.next = self.asked.val();
        self.high.read_addr1.next = self.asked.val();
        self.low1.d.next = self.low.read_data1.val();
        self.high1.d.next = self.high.read_data1.val();
        self.count.next = bit_cast::<64, LO>(self.low1.q.val()) | (bit_cast::<64, HI>(self.high1.q.val()) << self.above.val());
    }
}
