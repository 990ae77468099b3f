//! Multiplexers over an array of inputs.

use rust_hdl::prelude::*;

/// AND-OR multiplexer: OR of the inputs whose `sel` bit is set; zero when none is.
#[derive(LogicBlock)]
pub struct OneHotMux<T: Synth, const N: usize> {
    pub x: [Signal<In, T>; N],
    /// One-hot (or zero).
    pub sel: Signal<In, Bits<N>>,
    pub y: Signal<Out, T>,
}

impl<T: Synth, const N: usize> Default for OneHotMux<T, N> {
    fn default() -> Self {
        Self { x: std::array::from_fn(|_| Default::default()), sel: Default::default(), y: Default::default() }
    }
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
#[derive(LogicBlock)]
pub struct IndexMux<T: Synth, const N: usize, const LN: usize> {
    pub x: [Signal<In, T>; N],
    pub sel: Signal<In, Bits<LN>>,
    pub y: Signal<Out, T>,
}

impl<T: Synth, const N: usize, const LN: usize> Default for IndexMux<T, N, LN> {
    fn default() -> Self {
        assert!(N <= 1 << LN, "{LN} bits cannot select among {N}");
        Self { x: std::array::from_fn(|_| Default::default()), sel: Default::default(), y: Default::default() }
    }
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
