//! One 32-bit word of a wide row: picking it and replacing it.

use rust_hdl::prelude::*;

/// Low and high bit of word `i` of a row of `bits` bits; the last word may be cut.
pub(super) fn span(bits: usize, i: usize) -> (usize, usize) {
    (32 * i, (32 * i + 32).min(bits) - 1)
}

/// `y` = 32-bit word `sel` of `x`; zero beyond the row.
#[derive(LogicBlock, Default)]
pub struct WordPick<T: Synth> {
    pub x: Signal<In, T>,
    pub sel: Signal<In, Bits<6>>,
    pub y: Signal<Out, Bits<32>>,
}

impl<T: Synth> Logic for WordPick<T> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(T::BITS > 1 && T::BITS <= 64 * 32, "a word number has 6 bits");
        let arm = |i| {
            let (lo, hi) = span(T::BITS, i);
            match 31 - (hi - lo) {
                0 => format!("  6'd{i}: y = x[{hi}:{lo}];\n"),
                pad => format!("  6'd{i}: y = {{{pad}'d0, x[{hi}:{lo}]}};\n"),
            }
        };
        let arms: String = (0..T::BITS.div_ceil(32)).map(arm).collect();
        Verilog::Custom(format!("always @(*) case (sel)\n{arms}  default: y = 32'd0;\nendcase\n"))
    }
}

/// `y` = `x` with its 32-bit word `sel` replaced by `data`; unchanged when `sel` is beyond the row.
#[derive(LogicBlock, Default)]
pub struct WordPut<T: Synth> {
    pub x: Signal<In, T>,
    pub sel: Signal<In, Bits<6>>,
    pub data: Signal<In, Bits<32>>,
    pub y: Signal<Out, T>,
}

impl<T: Synth> Logic for WordPut<T> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(T::BITS > 1 && T::BITS <= 64 * 32, "a word number has 6 bits");
        let part = |i| {
            let (lo, hi) = span(T::BITS, i);
            format!("  if (sel == 6'd{i}) y[{hi}:{lo}] = data[{}:0];\n", hi - lo)
        };
        let parts: String = (0..T::BITS.div_ceil(32)).map(part).collect();
        Verilog::Custom(format!("always @(*) begin\n  y = x;\n{parts}end\n"))
    }
}
