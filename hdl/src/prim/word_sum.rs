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

/// Cycles from `x` to `y` of [`WordTree`].
pub const WORD_TREE_LATENCY: usize = 3;

/// As [`WordSum`] with a cycle more, so that at 512 bits no more than four numbers are added in one.
#[derive(LogicBlock, Default)]
pub struct WordTree<const W: usize> {
    pub clock: Signal<In, Clock>,
    pub x: Signal<In, Bits<W>>,
    pub y: Signal<Out, Bits<22>>,
}

impl<const W: usize> Logic for WordTree<W> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(W.is_multiple_of(16) && W <= 1024, "whole words, at most 64");
        let mut terms: Vec<_> = (0..W / 16).map(|w| format!("{{6'd0, x[{}:{}]}}", 16 * w + 15, 16 * w)).collect();
        let mut text = String::new();
        for level in 0..WORD_TREE_LATENCY - 1 {
            let groups: Vec<_> = terms.chunks(GROUP).map(|group| group.join(" + ")).collect();
            terms = (0..groups.len()).map(|g| format!("level{level}_{g}")).collect();
            for (name, sum) in terms.iter().zip(groups) {
                text += &format!("reg [21:0] {name};\ninitial {name} = 22'd0;\nalways @(posedge clock) {name} <= {sum};\n");
            }
        }
        Verilog::Custom(format!("{text}initial y = 22'd0;\nalways @(posedge clock) y <= {};\n", terms.join(" + ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tb::Tb;

    fn sums<B: Block>(name: &str, block: B, latency: usize) {
        let mut tb = Tb::new(name, block);
        let count = tb.width("x") / 32;
        let mut expected = Vec::new();
        for n in 0..500 {
            // All ones are the largest sum.
            let words: Vec<u32> = (0..count).map(|_| if n % 7 == 0 { u32::MAX } else { tb.rng().next_u32() }).collect();
            expected.push(words.iter().map(|w| u64::from(w & 0xffff) + u64::from(w >> 16)).sum::<u64>());
            tb.set_wide("x", &words[..]);
            tb.cycle();
            if n >= latency {
                assert_eq!(tb.get("y"), expected[n + 1 - latency]);
            }
        }
    }

    #[test]
    fn words_are_added_up() {
        sums("word_sum64", WordSum::<64>::default(), WORD_SUM_LATENCY);
        sums("word_sum512", WordSum::<512>::default(), WORD_SUM_LATENCY);
        sums("word_tree64", WordTree::<64>::default(), WORD_TREE_LATENCY);
        sums("word_tree512", WordTree::<512>::default(), WORD_TREE_LATENCY);
    }
}
