//! Filling a wide register piece by piece.

use rust_hdl::prelude::*;

/// `y` is `acc` with its `slot`-th piece of `W` bits replaced by `data`; the pieces above it are zeroed and, with
/// `fresh`, those below too. A slot beyond the `N` bits changes nothing; the last piece may be cut.
#[derive(LogicBlock, Default)]
pub struct SlotMerge<const N: usize, const W: usize> {
    pub acc: Signal<In, Bits<N>>,
    pub data: Signal<In, Bits<W>>,
    pub slot: Signal<In, Bits<8>>,
    pub fresh: Signal<In, Bit>,
    pub y: Signal<Out, Bits<N>>,
}

impl<const N: usize, const W: usize> Logic for SlotMerge<N, W> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        let pieces = N.div_ceil(W);
        assert!(pieces <= 255, "a slot number has 8 bits");
        let mut text = String::from("always @(*) begin\n");
        for p in 0..pieces {
            let (lo, hi) = (p * W, ((p + 1) * W).min(N) - 1);
            let n = hi - lo + 1;
            text += &format!("  if (slot == 8'd{p}) y[{hi}:{lo}] = data[{}:0];\n  else if (fresh | (slot < 8'd{p})) y[{hi}:{lo}] = {n}'d0;\n  else y[{hi}:{lo}] = acc[{hi}:{lo}];\n", n - 1);
        }
        Verilog::Custom(text + "end\n")
    }
}
