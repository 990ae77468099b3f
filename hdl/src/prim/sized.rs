//! Memories and delays whose depth is a value, for blocks that hold a fixed number of bytes at any beat width (their row
//! count is not expressible as a const generic). Contents start as zeros. One write port, one synchronous read port; a
//! read in the cycle of a write to the same row returns the OLD row.

use super::ram::{style, zeros, APART};
use ferric_hdl_derive::BlockNew;
use rust_hdl::prelude::*;

/// RAM of `2^rows_log2` words; address bits above that are ignored.
#[derive(LogicBlock, BlockNew)]
#[given(rows_log2: usize)]
#[demand((1..=L).contains(&rows_log2), "2^{rows_log2} rows with {L} address bits")]
pub struct SizedRam<T: Synth, const L: usize> {
    pub clock: Signal<In, Clock>,
    pub read_addr: Signal<In, Bits<L>>,
    pub read_data: Signal<Out, T>,
    pub write_addr: Signal<In, Bits<L>>,
    pub write_data: Signal<In, T>,
    pub write_en: Signal<In, Bit>,
    #[init(rows_log2)]
    _a: usize,
}

impl<T: Synth, const L: usize> Logic for SizedRam<T, L> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.read_data.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "{style}reg [{d}:0] cells [0:{n}];\n\
             {zero}\
             always @(posedge clock) begin\n\
             \x20 if (write_en) cells[write_addr[{a}:0]] <= write_data;\n\
             \x20 read_data <= cells[read_addr[{a}:0]];\nend\n",
            style = style(self._a, T::BITS),
            zero = zeros(self._a, T::BITS),
            d = T::BITS - 1,
            n = (1usize << self._a) - 1,
            a = self._a - 1,
        ))
    }
}

/// RAM of `2^rows_log2` stream beats (data, byte count, last) in one word; the read port holds while `read_en` is low. A row that is being written is not to be read: undefined, as of
/// [`super::ram::RamApart`].
#[derive(LogicBlock, BlockNew)]
#[given(rows_log2: usize)]
#[demand((1..=L).contains(&rows_log2), "2^{rows_log2} rows with {L} address bits")]
pub struct SizedBeatRam<const W: usize, const L: usize> {
    pub clock: Signal<In, Clock>,
    pub read_en: Signal<In, Bit>,
    pub read_addr: Signal<In, Bits<L>>,
    pub read_data: Signal<Out, Bits<W>>,
    pub read_len: Signal<Out, Bits<8>>,
    pub read_last: Signal<Out, Bit>,
    pub write_addr: Signal<In, Bits<L>>,
    pub write_data: Signal<In, Bits<W>>,
    pub write_len: Signal<In, Bits<8>>,
    pub write_last: Signal<In, Bit>,
    pub write_en: Signal<In, Bit>,
    #[init(rows_log2)]
    _a: usize,
}

impl<const W: usize, const L: usize> Logic for SizedBeatRam<W, L> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.read_data.connect();
        self.read_len.connect();
        self.read_last.connect();
    }
    fn hdl(&self) -> Verilog {
        let bits = W + 9;
        Verilog::Custom(format!(
            "{APART}{style}reg [{d}:0] cells [0:{n}];\nreg [{d}:0] word;\n\
             {zero}\
             always @(posedge clock) begin\n\
             \x20 if (write_en) cells[write_addr[{a}:0]] <= {{write_last, write_len, write_data}};\n\
             `ifdef FERRIC_CHECKS\n\
             \x20 if (read_en) word <= write_en && write_addr[{a}:0] == read_addr[{a}:0] ? ~cells[read_addr[{a}:0]] : cells[read_addr[{a}:0]];\n\
             `else\n\
             \x20 if (read_en) word <= cells[read_addr[{a}:0]];\n\
             `endif\nend\n\
             always @(*) begin\n  read_data = word[{w}:0];\n  read_len = word[{k}:{W}];\n  read_last = word[{d}];\nend\n",
            style = style(self._a, bits),
            zero = zeros(self._a, bits),
            d = bits - 1,
            n = (1usize << self._a) - 1,
            a = self._a - 1,
            w = W - 1,
            k = W + 7,
        ))
    }
}

/// [`super::lane_ram::LaneRam`] of `2^rows_log2` rows; address bits above that are ignored. Of a byte that is being written the read is undefined, as of [`super::ram::RamApart`].
#[derive(LogicBlock, BlockNew)]
#[given(rows_log2: usize)]
#[demand(W == 8 * K && K > 1, "K must be W / 8")]
#[demand((1..=L).contains(&rows_log2), "2^{rows_log2} rows with {L} address bits")]
pub struct SizedLaneRam<const W: usize, const K: usize, const L: usize> {
    pub clock: Signal<In, Clock>,
    /// Lane enables.
    pub we: Signal<In, Bits<K>>,
    /// Lanes that go to row `waddr + 1`.
    pub row1: Signal<In, Bits<K>>,
    pub waddr: Signal<In, Bits<L>>,
    pub wdata: Signal<In, Bits<W>>,
    pub raddr: Signal<In, Bits<L>>,
    pub rdata: Signal<Out, Bits<W>>,
    #[init(rows_log2)]
    _a: usize,
}

impl<const W: usize, const K: usize, const L: usize> Logic for SizedLaneRam<W, K, L> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.rdata.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "wire [{a}:0] wthis = waddr[{a}:0];\nwire [{a}:0] wnext = wthis + {bits}'d1;\n\
             genvar lane;\n\
             generate for (lane = 0; lane < {K}; lane = lane + 1) begin : lanes\n\
             {APART}\x20 {style}reg [7:0] cells [0:{n}];\n\
             {zero}\
             \x20 wire [{a}:0] row = row1[lane] ? wnext : wthis;\n\
             \x20 always @(posedge clock) begin\n\
             \x20   if (we[lane]) cells[row] <= wdata[8*lane +: 8];\n\
             `ifdef FERRIC_CHECKS\n\
             \x20   rdata[8*lane +: 8] <= we[lane] && row == raddr[{a}:0] ? ~cells[row] : cells[raddr[{a}:0]];\n\
             `else\n\
             \x20   rdata[8*lane +: 8] <= cells[raddr[{a}:0]];\n\
             `endif\n\
             \x20 end\n\
             end endgenerate\n",
            style = style(self._a, 8 * K),
            zero = zeros(self._a, 8),
            bits = self._a,
            n = (1usize << self._a) - 1,
            a = self._a - 1,
        ))
    }
}

/// `y` is `x` of `n` cycles before. No reset: carry a valid bit beside it where that matters.
#[derive(LogicBlock)]
pub struct Delay<T: Synth> {
    pub clock: Signal<In, Clock>,
    pub x: Signal<In, T>,
    pub y: Signal<Out, T>,
    _n: usize,
}

impl<T: Synth> Delay<T> {
    /// `n` cycles, at least one.
    pub fn new(n: usize) -> Self {
        assert!(n > 0, "a delay has at least one stage");
        Self { clock: Default::default(), x: Default::default(), y: Default::default(), _n: n }
    }
}

impl<T: Synth> Logic for Delay<T> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        let mut text = String::new();
        for i in 0..self._n {
            text += &format!("reg [{}:0] stage{i};\ninitial stage{i} = {}'d0;\n", T::BITS - 1, T::BITS);
        }
        text += "always @(posedge clock) begin\n  stage0 <= x;\n";
        for i in 1..self._n {
            text += &format!("  stage{i} <= stage{};\n", i - 1);
        }
        Verilog::Custom(text + &format!("end\nalways @(*) y = stage{};\n", self._n - 1))
    }
}
