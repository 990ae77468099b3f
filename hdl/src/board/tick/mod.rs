//! The time that the core counts in. See `csr::TICK_NS` in the abi.

use ferric_hdl_derive::{kernel, BlockNew};
use rust_hdl::prelude::*;

/// Counts periods of so many cycles; a board chooses them to be 1.024 us. `reset` starts again from 0.
#[derive(LogicBlock, BlockNew)]
#[given(cycles: usize)]
#[demand((2..=1024).contains(&cycles), "a tick of {cycles} cycles")]
pub struct Tick {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub now: Signal<Out, Bits<32>>,
    part: DFF<Bits<10>>,
    count: DFF<Bits<32>>,
    #[init(Constant::new((cycles as u64 - 1).to_bits()))]
    last: Constant<Bits<10>>,
}

#[kernel]
impl Logic for Tick {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, part, count);
        self.part.d.next = self.part.q.val() + 1;
        if self.part.q.val() == self.last.val() {
            self.part.d.next = bits::<10>(0);
            self.count.d.next = self.count.q.val() + 1;
        }
        if self.reset.val() {
            self.part.d.next = bits::<10>(0);
            self.count.d.next = bits::<32>(0);
        }
        self.now.next = self.count.q.val();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tb::Tb;

    #[test]
    fn one_step_every_so_many_cycles() {
        for cycles in [64, 256] {
            let mut tb = Tb::new(&format!("ferric_tick_{cycles}"), Tick::new(cycles));
            for n in 1..3000 {
                tb.cycle();
                assert_eq!(tb.get("now"), n / cycles as u64);
            }
            tb.reset();
            assert_eq!(tb.get("now"), 0);
        }
    }
}
