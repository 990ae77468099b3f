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
        Self {
            clock: Default::default(),
            valid: Default::default(),
            ready: Default::default(),
            go: Default::default(),
            _seed: seed.map(|s| s.max(1)),
        }
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
