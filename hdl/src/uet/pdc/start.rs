//! Start_PSN of PDCs that are opened here (UE 3.5.8.2).
use crate::prim::sum::Sum;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// What a new Start_PSN is beyond the last one of its place at least: past all PSNs that the last life may have used (2^31), and 2^17 more. Twenty-nine bits are random: it stays 2^29 in front of the last one, too.
const BEYOND: u64 = (1 << 31) | (1 << 17);
/// The random bits of it: all below bit 30 but for bit 17, which is set.
const RANDOM: u64 = ((1 << 30) - 1) & !(1 << 17);
/// In the place of a seed of 0, which would stay.
const SEED: u64 = 0x2545_f491;

/// Another one in each cycle.
#[derive(LogicBlock, BlockDefault)]
pub struct Start {
    pub clock: Signal<In, Clock>,
    /// Synchronous; takes the seed.
    pub reset: Signal<In, Bit>,
    pub seed: Signal<In, Bits<32>>,
    /// Last Start_PSN of the place.
    pub last: Signal<In, Bits<32>>,
    /// From the second cycle on with `last`: the next; 0 is none, and another one comes in the next cycle.
    pub start: Signal<Out, Bits<32>>,
    random: DFF<Bits<32>>,
    drawn: DFF<Bits<32>>,
    sum: Sum<32>,
    #[init(Constant::new(SEED.to_bits()))]
    other_seed: Constant<Bits<32>>,
    #[init(Constant::new(BEYOND.to_bits()))]
    beyond: Constant<Bits<32>>,
    #[init(Constant::new(RANDOM.to_bits()))]
    mask: Constant<Bits<32>>,
    one: Signal<Local, Bits<32>>,
    two: Signal<Local, Bits<32>>,
}

#[kernel]
impl Logic for Start {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, random, drawn);
        // Marsaglia's xorshift of 32 bits.
        self.one.next = self.random.q.val() ^ (self.random.q.val() << 13);
        self.two.next = self.one.val() ^ (self.one.val() >> 17);
        self.random.d.next = self.two.val() ^ (self.two.val() << 5);
        self.sum.a.next = self.last.val();
        self.sum.b.next = (self.random.q.val() & self.mask.val()) | self.beyond.val();
        self.drawn.d.next = self.sum.y.val();
        self.start.next = self.drawn.q.val();
        if self.reset.val() {
            self.random.d.next = self.seed.val();
            if !self.seed.val().any() {
                self.random.d.next = self.other_seed.val();
            }
        }
    }
}
