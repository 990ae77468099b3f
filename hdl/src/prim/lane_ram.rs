//! Byte-lane RAM: the write side places a row of bytes at any byte offset, the read side sees aligned rows.

use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// `K` one-byte lanes of `2^A` rows. Lane `l` with `we[l]` writes its byte to row `waddr`, or `waddr + 1` (modulo the
/// depth) when `row1[l]` is set: bytes rotated to their lane and split over two neighbouring rows land in one cycle.
/// The read port returns a whole row in the cycle after the address; OLD bytes in the cycle of a write to that row.
///
/// Each lane is a memory of its own, hence at least K half block RAMs (8 bits by 2048): A = 11 fills them.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K > 1 && A > 1, "K must be W / 8")]
pub struct LaneRam<const W: usize, const K: usize, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub we: Signal<In, Bits<K>>,
    pub row1: Signal<In, Bits<K>>,
    pub waddr: Signal<In, Bits<A>>,
    pub wdata: Signal<In, Bits<W>>,
    pub raddr: Signal<In, Bits<A>>,
    pub rdata: Signal<Out, Bits<W>>,
}

impl<const W: usize, const K: usize, const A: usize> Logic for LaneRam<W, K, A> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.rdata.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "wire [{a}:0] wnext = waddr + {A}'d1;\n\
             genvar lane;\n\
             generate for (lane = 0; lane < {K}; lane = lane + 1) begin : lanes\n\
             \x20 {style}reg [7:0] cells [0:{n}];\n\
             {zero}\
             \x20 wire [{a}:0] row = row1[lane] ? wnext : waddr;\n\
             \x20 always @(posedge clock) begin\n\
             \x20   if (we[lane]) cells[row] <= wdata[8*lane +: 8];\n\
             \x20   rdata[8*lane +: 8] <= cells[raddr];\n\
             \x20 end\n\
             end endgenerate\n",
            a = A - 1,
            n = (1usize << A) - 1,
            zero = super::ram::zeros(A, 8),
            style = super::ram::style(A, 8 * K),
        ))
    }
}
