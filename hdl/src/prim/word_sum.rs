//! Sums of 16-bit words, of which internet checksums are made (RFC 1071).

use rust_hdl::prelude::*;

/// Cycles from `x` to `y` of [`WordSum`].
pub const WORD_SUM_LATENCY: usize = 2;

/// Words that are added in one cycle.
const GROUP: usize = 4;

/// `y` is the sum of the `W / 16` words of the `x` of two cycles before, the lower byte of each in its lower bits. At most 64 words: it never overflows.
#[derive(LogicBlock, Default)]
pub struct WordSum<const W: usize> {
    pub clock: Signal<In, Clock>,
    pub x: Signal<In, Bits<W>>,
    pub y: Signal<Out, Bits<22>>,
}

impl<const W: usize> Logic for WordSum<W> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(W.is_multiple_of(16 * GROUP) && W <= 1024, "whole groups of words, at most 64 words");
        let groups = W / 16 / GROUP;
        let mut text = String::new();
        for g in 0..groups {
            let words: Vec<_> = (0..GROUP).map(|w| 16 * (GROUP * g + w)).map(|low| format!("{{6'd0, x[{}:{low}]}}", low + 15)).collect();
            text += &format!("reg [21:0] group{g};\ninitial group{g} = 22'd0;\nalways @(posedge clock) group{g} <= {};\n", words.join(" + "));
        }
        let all: Vec<_> = (0..groups).map(|g| format!("group{g}")).collect();
        Verilog::Custom(format!("{text}initial y = 22'd0;\nalways @(posedge clock) y <= {};\n", all.join(" + ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tb::Tb;

    fn sums<const W: usize>() {
        let mut tb = Tb::new(&format!("word_sum{W}"), WordSum::<W>::default());
        let mut expected = Vec::new();
        for n in 0..500 {
            // All ones are the largest sum.
            let words: Vec<u32> = (0..W / 32).map(|_| if n % 7 == 0 { u32::MAX } else { tb.rng().next_u32() }).collect();
            expected.push(words.iter().map(|w| u64::from(w & 0xffff) + u64::from(w >> 16)).sum::<u64>());
            tb.set_wide("x", &words[..]);
            tb.cycle();
            if n >= WORD_SUM_LATENCY {
                assert_eq!(tb.get("y"), expected[n + 1 - WORD_SUM_LATENCY]);
            }
        }
    }

    #[test]
    fn words_are_added_up() {
        sums::<64>();
        sums::<512>();
    }
}
