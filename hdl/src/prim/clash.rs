//! Comparison of everybody's number with what everybody holds: who stands in whose way.

use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// Bit `i` of `y`: some `j` with `held[j]` keeps the number `id[i]`; that is `i` itself if it asks for what it holds. `kept` stands apart from `id`, since what is held is in a register long before.
#[derive(LogicBlock, BlockDefault)]
#[demand(N > 1, "one alone does not clash")]
pub struct Clash<const A: usize, const N: usize> {
    pub id: [Signal<In, Bits<A>>; N],
    pub kept: [Signal<In, Bits<A>>; N],
    pub held: Signal<In, Bits<N>>,
    pub y: Signal<Out, Bits<N>>,
}

impl<const A: usize, const N: usize> Logic for Clash<A, N> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        let mut text = String::from("always @(*) begin\n");
        for i in 0..N {
            let terms: Vec<_> = (0..N).map(|j| format!("(held[{j}] & (id${i} == kept${j}))")).collect();
            text += &format!("  y[{i}] = {};\n", terms.join(" | "));
        }
        Verilog::Custom(text + "end\n")
    }
}
