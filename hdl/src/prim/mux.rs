//! Multiplexers over an array of inputs.

use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// AND-OR multiplexer: OR of the inputs whose `sel` bit is set; zero when none is.
#[derive(LogicBlock, BlockDefault)]
pub struct OneHotMux<T: Synth, const N: usize> {
    pub x: [Signal<In, T>; N],
    /// One-hot (or zero).
    pub sel: Signal<In, Bits<N>>,
    pub y: Signal<Out, T>,
}

impl<T: Synth, const N: usize> Logic for OneHotMux<T, N> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        let terms: Vec<_> = (0..N).map(|i| format!("({{{}{{{}}}}} & x${i})", T::BITS, super::bit("sel", N, i))).collect();
        Verilog::Custom(format!("always @(*) y = {};\n", terms.join(" | ")))
    }
}

/// Indexed multiplexer: `y` = `x[sel]`, zero when `sel` is N or more.
#[derive(LogicBlock, BlockDefault)]
#[demand(N <= 1 << LN, "{LN} bits cannot select among {N}")]
pub struct IndexMux<T: Synth, const N: usize, const LN: usize> {
    pub x: [Signal<In, T>; N],
    pub sel: Signal<In, Bits<LN>>,
    pub y: Signal<Out, T>,
}

impl<T: Synth, const N: usize, const LN: usize> Logic for IndexMux<T, N, LN> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        let arms: Vec<_> = (0..N).map(|i| format!("  {LN}'d{i}: y = x${i};\n")).collect();
        Verilog::Custom(format!("always @(*) case (sel)\n{}  default: y = {}'d0;\nendcase\n", arms.concat(), T::BITS))
    }
}
