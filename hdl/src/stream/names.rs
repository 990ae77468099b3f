//! What is under way, by name.

use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Up to `N` = 2^`LN` things, which begin and end in the same order, each with a name of 12 bits; names may be alike. `P` answers whether a name is under way,
/// in the same cycle.
#[derive(LogicBlock, BlockDefault)]
#[demand(N == 1 << LN, "{N} places, and {LN} bits to count them")]
pub struct Names<const N: usize, const LN: usize, const P: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; nothing is under way.
    pub reset: Signal<In, Bit>,
    /// Pulses: one called `entry` begins, for which there has to be a place; the oldest ends.
    pub begins: Signal<In, Bit>,
    pub entry: Signal<In, Bits<12>>,
    pub ends: Signal<In, Bit>,
    /// What is asked for, and whether something of that name is under way: in the lower half of the places, in the upper one. Who has time puts both together.
    pub look: [Signal<In, Bits<12>>; P],
    pub below: [Signal<Out, Bit>; P],
    pub above: [Signal<Out, Bit>; P],
    /// Nothing is under way; `N` are.
    pub none: Signal<Out, Bit>,
    pub full: Signal<Out, Bit>,
    names: [DFF<Bits<12>>; N],
    valid: DFF<Bits<N>>,
    head: DFF<Bits<LN>>,
    tail: DFF<Bits<LN>>,
    mark: Signal<Local, Bits<N>>,
    wipe: Signal<Local, Bits<N>>,
    low: Signal<Local, Bits<N>>,
    high: Signal<Local, Bits<N>>,
    #[init(Constant::new(((1u64 << (N / 2)) - 1).into()))]
    lower: Constant<Bits<N>>,
}

#[kernel]
impl<const N: usize, const LN: usize, const P: usize> Logic for Names<N, LN, P> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, valid, head, tail);
        self.mark.next = bits::<N>(0);
        self.wipe.next = bits::<N>(0);
        if self.begins.val() {
            self.mark.next = bits::<N>(1) << self.tail.q.val();
            self.tail.d.next = self.tail.q.val() + 1;
        }
        if self.ends.val() {
            self.wipe.next = bits::<N>(1) << self.head.q.val();
            self.head.d.next = self.head.q.val() + 1;
        }
        self.valid.d.next = (self.valid.q.val() | self.mark.val()) & !self.wipe.val();
        self.low.next = self.valid.q.val() & self.lower.val();
        self.high.next = self.valid.q.val() & !self.lower.val();
        self.none.next = !self.valid.q.val().any();
        self.full.next = self.valid.q.val().all();
        for i in 0..N {
            self.names[i].clock.next = self.clock.val();
            self.names[i].d.next = self.names[i].q.val();
            if self.mark.val().get_bit(i) {
                self.names[i].d.next = self.entry.val();
            }
        }
        for p in 0..P {
            self.below[p].next = false;
            self.above[p].next = false;
            for i in 0..N {
                if self.low.val().get_bit(i) & (self.names[i].q.val() == self.look[p].val()) {
                    self.below[p].next = true;
                }
                if self.high.val().get_bit(i) & (self.names[i].q.val() == self.look[p].val()) {
                    self.above[p].next = true;
                }
            }
        }
        if self.reset.val() {
            self.valid.d.next = bits::<N>(0);
            self.head.d.next = bits::<LN>(0);
            self.tail.d.next = bits::<LN>(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Names;
    use crate::tb::Tb;
    use std::collections::VecDeque;

    /// Few names, so that several are alike, and now and then as many as there is room for.
    #[test]
    fn what_is_under_way_is_found() {
        let mut tb = Tb::with_seed("names", Names::<4, 2, 2>::default(), 7);
        let (mut inside, mut filled) = (VecDeque::new(), 0);
        for _ in 0..3000 {
            let name = 0x7f0 + tb.rng().below(6);
            let begins = inside.len() < 4 && tb.rng().percent(50);
            let ends = !inside.is_empty() && tb.rng().percent(40);
            let looks = [0, 1].map(|_| 0x7f0 + tb.rng().below(6));
            for (port, value) in [("begins", begins.into()), ("entry", name), ("ends", ends.into()), ("look$0", looks[0]), ("look$1", looks[1])] {
                tb.set(port, value);
            }
            tb.begin();
            for (p, look) in looks.iter().enumerate() {
                assert_eq!(tb.get(&format!("below${p}")) + tb.get(&format!("above${p}")) > 0, inside.contains(look), "{look:#x} among {inside:x?}");
            }
            assert_eq!((tb.get("none") == 1, tb.get("full") == 1), (inside.is_empty(), inside.len() == 4));
            tb.end();
            filled += usize::from(inside.len() == 4);
            if ends {
                inside.pop_front();
            }
            if begins {
                inside.push_back(name);
            }
        }
        assert!(filled > 100, "{filled}");
    }
}
