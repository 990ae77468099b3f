//! Random stall generator behind the stream blocks' chaos option (see `stream::chaos`). With the option off the leaf is
//! the constant one and vanishes in synthesis.

use rust_hdl::prelude::*;

/// `go` gates a stream output: the block shows `valid & go`.
///
/// Once a transfer has been shown (`valid & go`) and not taken, `go` stays high, so the gated valid keeps the handshake.
#[derive(LogicBlock)]
pub struct ChaosGate {
    pub clock: Signal<In, Clock>,
    /// The block has something to show.
    pub valid: Signal<In, Bit>,
    /// The consumer's ready.
    pub ready: Signal<In, Bit>,
    /// The block may show it.
    pub go: Signal<Out, Bit>,
    _seed: Option<u32>,
}

impl ChaosGate {
    /// `None`: always go. `Some(seed)`: stalls from a 32-bit LFSR that starts at `seed` (0 is replaced by 1).
    pub fn new(seed: Option<u32>) -> Self {
        Self { clock: Default::default(), valid: Default::default(), ready: Default::default(), go: Default::default(), _seed: seed.map(|s| s.max(1)) }
    }
}

impl Logic for ChaosGate {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.go.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(match self._seed {
            // Names every input so that lint finds no unused port; folds to the constant one.
            None => "always @(*) go = 1'b1 | (clock & valid & ready);\n".into(),
            // Galois LFSR, x^32 + x^22 + x^2 + x + 1. A slow bit changes the stall rate between about 1/4 and 7/8, so
            // that both long bubbles and nearly full streams occur.
            Some(seed) => format!(
                "reg [31:0] lfsr;\nreg [9:0] phase;\n\
                 initial begin lfsr = 32'd{seed}; phase = 10'd{}; go = 1'b0; end\n\
                 always @(posedge clock) begin\n\
                 \x20 lfsr <= {{1'b0, lfsr[31:1]}} ^ (lfsr[0] ? 32'h80200003 : 32'd0);\n\
                 \x20 phase <= phase + 10'd1;\n\
                 \x20 if (!(go & valid & !ready)) go <= phase[9] ? (lfsr[2:0] == 3'd0) : (lfsr[1:0] != 2'd0);\n\
                 end\n",
                seed & 0x3ff
            ),
        })
    }
}

/// `busy` for a random number of cycles after each `start`; the constant zero with chaos off.
///
/// Stands for a slow memory: 2 to 500 cycles, seven times in eight below 32.
#[derive(LogicBlock)]
pub struct ChaosDelay {
    pub clock: Signal<In, Clock>,
    /// One cycle; only while not `busy`.
    pub start: Signal<In, Bit>,
    /// From the cycle after `start`.
    pub busy: Signal<Out, Bit>,
    _seed: Option<u32>,
}

impl ChaosDelay {
    /// `None`: never busy. `Some(seed)`: delays from a 32-bit LFSR that starts at `seed` (0 is replaced by 1).
    pub fn new(seed: Option<u32>) -> Self {
        let _seed = seed.map(|s| s.max(1));
        Self { clock: Default::default(), start: Default::default(), busy: Default::default(), _seed }
    }
}

impl Logic for ChaosDelay {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.busy.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(match self._seed {
            None => "always @(*) busy = 1'b0 & (clock | start);\n".into(),
            Some(seed) => format!(
                "reg [31:0] lfsr;\nreg [8:0] left;\n\
                 initial begin lfsr = 32'd{seed}; left = 9'd0; busy = 1'b0; end\n\
                 always @(posedge clock) begin\n\
                 \x20 lfsr <= {{1'b0, lfsr[31:1]}} ^ (lfsr[0] ? 32'h80200003 : 32'd0);\n\
                 \x20 if (start) begin\n\
                 \x20   left <= (lfsr[2:0] == 3'd0) ? ((lfsr[11:3] > 9'd498) ? 9'd498 : lfsr[11:3]) : {{4'd0, lfsr[7:3]}};\n\
                 \x20   busy <= 1'b1;\n\
                 \x20 end else if (left == 9'd0) busy <= 1'b0;\n\
                 \x20 else left <= left - 9'd1;\n\
                 end\n"
            ),
        })
    }
}
