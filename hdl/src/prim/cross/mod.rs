//! Leaves on the border between two clocks: the only places where data may pass from one to another.
//!
//! Each marks its registers for the tools: `ASYNC_REG` (Vivado: keep together, no optimisation; `hdl/cdc` knows
//! synchronisers by it), `SHREG_EXTRACT` (Vivado: no shift register), `keep` (yosys), `ferric_gray` (never more than one bit
//! of this register changes at once), `ferric_cross` on a memory with two clocks.

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use super::ram::{style, zeros};
use ferric_hdl_derive::BlockNew;
use rust_hdl::prelude::*;

/// On both registers of a synchroniser.
const ASYNC: &str = "(* ASYNC_REG = \"TRUE\", SHREG_EXTRACT = \"NO\", keep = \"true\" *) ";

/// Two registers in `clock`: `y` is `x` of one to two edges ago. For single bits, and for vectors of which at most one bit
/// changes in a cycle of their own clock ([`GrayCount`]). `x` has to come straight from a register.
#[derive(LogicBlock, Default)]
pub struct Sync<T: Synth> {
    pub clock: Signal<In, Clock>,
    pub x: Signal<In, T>,
    pub y: Signal<Out, T>,
}

impl<T: Synth> Logic for Sync<T> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "{ASYNC}reg [{d}:0] meta;\n{ASYNC}reg [{d}:0] settled;\n\
             initial meta = {w}'d0;\ninitial settled = {w}'d0;\n\
             always @(posedge clock) begin\n  meta <= x;\n  settled <= meta;\nend\n\
             always @(*) y = settled;\n",
            d = T::BITS - 1,
            w = T::BITS,
        ))
    }
}

/// `y` rises at once when `n` falls, with or without a clock, and falls two edges after `n` is high again.
#[derive(LogicBlock, Default)]
pub struct ResetSync {
    pub clock: Signal<In, Clock>,
    /// Low: reset. Asynchronous.
    pub n: Signal<In, Bit>,
    pub y: Signal<Out, Bit>,
}

impl Logic for ResetSync {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "{ASYNC}reg meta;\n{ASYNC}reg settled;\n\
             initial meta = 1'b1;\ninitial settled = 1'b1;\n\
             always @(posedge clock or negedge n) begin\n\
             \x20 if (!n) begin\n    meta <= 1'b1;\n    settled <= 1'b1;\n  end else begin\n    meta <= 1'b0;\n    settled <= meta;\n  end\nend\n\
             always @(*) y = settled;\n"
        ))
    }
}

/// A counter and, one register for both, its Gray code (`binary ^ binary >> 1`), for [`Sync`]. Counts the cycles with `step`,
/// modulo `2^N`. Only `reset` changes more than one bit of the code: the reader has to be in reset with it.
#[derive(LogicBlock, Default)]
pub struct GrayCount<const N: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; back to 0.
    pub reset: Signal<In, Bit>,
    pub step: Signal<In, Bit>,
    pub binary: Signal<Out, Bits<N>>,
    pub gray: Signal<Out, Bits<N>>,
}

impl<const N: usize> Logic for GrayCount<N> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.binary.connect();
        self.gray.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(N > 1, "a Gray code has two bits or more");
        Verilog::Custom(format!(
            "reg [{d}:0] count;\n(* ferric_gray = \"1\", keep = \"true\" *) reg [{d}:0] code;\n\
             initial count = {N}'d0;\ninitial code = {N}'d0;\n\
             wire [{d}:0] next = count + {N}'d1;\n\
             always @(posedge clock)\n\
             \x20 if (reset) begin\n    count <= {N}'d0;\n    code <= {N}'d0;\n\
             \x20 end else if (step) begin\n    count <= next;\n    code <= next ^ (next >> 1);\n  end\n\
             always @(*) begin\n  binary = count;\n  gray = code;\nend\n",
            d = N - 1,
        ))
    }
}

/// Gray code back to binary, combinational.
#[derive(LogicBlock, Default)]
pub struct GrayToBin<const N: usize> {
    pub x: Signal<In, Bits<N>>,
    pub y: Signal<Out, Bits<N>>,
}

impl<const N: usize> Logic for GrayToBin<N> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(N > 1, "a Gray code has two bits or more");
        // Each step joins twice as many neighbours: log2(N) levels, where one reduction a bit became a chain of N.
        let steps = usize::BITS - (N - 1).leading_zeros();
        let name = |step| if step == 0 { "x".to_string() } else { format!("s{step}") };
        let joins: String = (0..steps).map(|i| format!("wire [{}:0] s{} = {from} ^ ({from} >> {});\n", N - 1, i + 1, 1 << i, from = name(i))).collect();
        Verilog::Custom(format!("{joins}always @(*) y = s{steps};\n"))
    }
}

/// Memory of `2^rows_log2` words, written in one clock and read in another; address bits above that are ignored. The read
/// port is synchronous to `read_clock` and holds while `read_en` is low. A word must not be read in the cycles around its
/// writing: whoever uses this passes addresses over as Gray codes first.
#[derive(LogicBlock, BlockNew)]
#[given(rows_log2: usize)]
#[demand((1..=L).contains(&rows_log2), "2^{rows_log2} rows with {L} address bits")]
pub struct CrossRam<T: Synth, const L: usize> {
    pub write_clock: Signal<In, Clock>,
    pub write_addr: Signal<In, Bits<L>>,
    pub write_data: Signal<In, T>,
    pub write_en: Signal<In, Bit>,
    pub read_clock: Signal<In, Clock>,
    pub read_en: Signal<In, Bit>,
    pub read_addr: Signal<In, Bits<L>>,
    pub read_data: Signal<Out, T>,
    #[init(rows_log2)]
    _a: usize,
}

impl<T: Synth, const L: usize> Logic for CrossRam<T, L> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.read_data.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "(* ferric_cross = \"1\" *) {style}reg [{d}:0] cells [0:{n}];\n\
             {zero}\
             always @(posedge write_clock) if (write_en) cells[write_addr[{a}:0]] <= write_data;\n\
             always @(posedge read_clock) if (read_en) read_data <= cells[read_addr[{a}:0]];\n",
            style = style(self._a, T::BITS),
            zero = zeros(self._a, T::BITS),
            d = T::BITS - 1,
            n = (1usize << self._a) - 1,
            a = self._a - 1,
        ))
    }
}
