//! A memory that is read or written in a cycle, never both: on small FPGAs that costs block RAMs and nothing else.

use rust_hdl::prelude::*;

/// `2^A` rows of `K` bytes with byte enables and one address. A cycle with any of `we` writes; after one with
/// none `read_data` is the row addressed in it, else undefined.
#[derive(LogicBlock, Default)]
pub struct ByteRam<const W: usize, const K: usize, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub addr: Signal<In, Bits<A>>,
    pub we: Signal<In, Bits<K>>,
    pub write_data: Signal<In, Bits<W>>,
    pub read_data: Signal<Out, Bits<W>>,
}

impl<const W: usize, const K: usize, const A: usize> Logic for ByteRam<W, K, A> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.read_data.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(W == 8 * K && K > 1, "K must be W / 8");
        Verilog::Custom(format!(
            "genvar lane;\n\
             generate for (lane = 0; lane < {K}; lane = lane + 1) begin : lanes\n\
             \x20 (* ram_style = \"block\" *) reg [7:0] cells [0:{n}];\n\
             {zero}\
             \x20 always @(posedge clock) begin\n\
             \x20   if (we[lane]) cells[addr] <= write_data[8*lane +: 8];\n\
             \x20   else read_data[8*lane +: 8] <= cells[addr];\n\
             \x20 end\n\
             end endgenerate\n",
            n = (1usize << A) - 1,
            zero = super::ram::zeros(A, 8),
        ))
    }
}
