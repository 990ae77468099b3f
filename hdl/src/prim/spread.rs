//! Short words onto every lane of a wide row.

use rust_hdl::prelude::*;

/// `y` is `x` (`M` bits) as often as it fits into `W` bits.
#[derive(LogicBlock, Default)]
pub struct Repeat<const M: usize, const W: usize> {
    pub x: Signal<In, Bits<M>>,
    pub y: Signal<Out, Bits<W>>,
}

impl<const M: usize, const W: usize> Logic for Repeat<M, W> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(W.is_multiple_of(M), "{W} is not a multiple of {M}");
        Verilog::Custom(format!("always @(*) y = {{{}{{x}}}};\n", W / M))
    }
}

/// Bytes of a word that [`SpreadLanes`] takes.
pub const SPREAD_BYTES: usize = 32;

/// The first C = min(32, K) bytes of `x` placed at byte offset `n` of a row and, modulo C, everywhere: lane `l` shows
/// byte `(l - n) mod C`. Lane enables pick the copy that counts.
#[derive(LogicBlock, Default)]
pub struct SpreadLanes<const W: usize, const K: usize> {
    pub x: Signal<In, Bits<256>>,
    /// Byte offset; the bits that number a place within C bytes count.
    pub n: Signal<In, Bits<5>>,
    pub y: Signal<Out, Bits<W>>,
}

impl<const W: usize, const K: usize> Logic for SpreadLanes<W, K> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(W == 8 * K && K.is_power_of_two() && K > 1, "K must be W / 8 and a power of two");
        let c = K.min(SPREAD_BYTES);
        Verilog::Custom(format!(
            "wire [{d}:0] twice = {{2{{x[{t}:0]}}}} << {{n[{l}:0], 3'b000}};\n\
             always @(*) y = {{{r}{{twice[{d}:{c8}]}}}};\n",
            d = 16 * c - 1,
            t = 8 * c - 1,
            l = c.trailing_zeros() - 1,
            r = K / c,
            c8 = 8 * c,
        ))
    }
}
