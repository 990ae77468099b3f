//! A bank of small event counters that a scanner empties one at a time.

use rust_hdl::prelude::*;

/// Bits of one counter: it must be taken at least every 2^9 - 1 cycles, or events are lost.
pub const TALLY_BITS: usize = 9;

/// `N` counters of [`TALLY_BITS`]; `inc[i]` adds one to counter `i`. `y` is counter `sel` (zero when `sel` is N or
/// more); with `take` that counter starts again from this cycle's `inc`.
#[derive(LogicBlock, Default)]
pub struct Tally<const N: usize, const LN: usize> {
    pub clock: Signal<In, Clock>,
    pub inc: Signal<In, Bits<N>>,
    pub sel: Signal<In, Bits<LN>>,
    pub take: Signal<In, Bit>,
    pub y: Signal<Out, Bits<9>>,
}

impl<const N: usize, const LN: usize> Logic for Tally<N, LN> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(N > 1 && N <= 1 << LN, "{LN} bits cannot number {N}");
        let (mut regs, mut arms, mut text) = (String::new(), String::new(), String::new());
        for i in 0..N {
            regs += &format!("reg [8:0] n{i};\ninitial n{i} = 9'd0;\n");
            text += &format!("always @(posedge clock) n{i} <= ((take & (sel == {LN}'d{i})) ? 9'd0 : n{i}) + {{8'd0, inc[{i}]}};\n");
            arms += &format!("  {LN}'d{i}: y = n{i};\n");
        }
        Verilog::Custom(format!("{regs}{text}always @(*) case (sel)\n{arms}  default: y = 9'd0;\nendcase\n"))
    }
}
