//! Byte barrel rotator: byte `i` of `x` becomes byte `(i + n) mod K` of `y`.

use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// One two-bit (or, for the last odd bit, one-bit) stage from vector `x` to `y`, rotating by `n[lo..] << lo` bytes.
fn stage(w: usize, lk: usize, lo: usize, x: &str, n: &str, y: &str) -> String {
    let rotated = |bytes: usize| match 8 * bytes % w {
        0 => x.to_string(),
        r => format!("{{{x}[{}:0], {x}[{}:{}]}}", w - r - 1, w - 1, w - r),
    };
    let unit = 1 << lo;
    if lo + 1 < lk {
        format!(
            "always @(*) case ({n}[{h}:{lo}])\n  2'd0: {y} = {};\n  2'd1: {y} = {};\n  2'd2: {y} = {};\n  default: {y} = {};\nendcase\n",
            rotated(0),
            rotated(unit),
            rotated(2 * unit),
            rotated(3 * unit),
            h = lo + 1,
        )
    } else {
        format!("always @(*) {y} = {} ? {} : {};\n", super::bit(n, lk, lo), rotated(unit), rotated(0))
    }
}

/// Combinational rotator, ceil(LK / 2) LUT levels (4:1 multiplexers).
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K == 1 << LK && LK >= 1, "K must be W / 8 and a power of two, LK its logarithm")]
pub struct ByteRotate<const W: usize, const K: usize, const LK: usize> {
    pub x: Signal<In, Bits<W>>,
    /// Bytes to rotate left (towards higher byte numbers).
    pub n: Signal<In, Bits<LK>>,
    pub y: Signal<Out, Bits<W>>,
}

impl<const W: usize, const K: usize, const LK: usize> Logic for ByteRotate<W, K, LK> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        let mut text = String::new();
        let mut from = String::from("x");
        for lo in (0..LK).step_by(2) {
            let to = if lo + 2 >= LK { "y".to_string() } else { format!("t{lo}") };
            if to != "y" {
                text += &format!("reg [{}:0] {to};\n", W - 1);
            }
            text += &stage(W, LK, lo, &from, "n", &to);
            from = to;
        }
        Verilog::Custom(text)
    }
}

/// Rotator with a register after each half: `y` belongs to the `x` and `n` of two enabled cycles before.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K == 1 << LK && LK >= 1, "K must be W / 8 and a power of two, LK its logarithm")]
pub struct ByteRotatePipe<const W: usize, const K: usize, const LK: usize> {
    pub clock: Signal<In, Clock>,
    /// Both registers advance; low: both hold.
    pub en: Signal<In, Bit>,
    pub x: Signal<In, Bits<W>>,
    /// Bytes to rotate left (towards higher byte numbers).
    pub n: Signal<In, Bits<LK>>,
    pub y: Signal<Out, Bits<W>>,
}

/// Enabled cycles from `x` to `y` of [`ByteRotatePipe`].
pub const ROTATE_PIPE_LATENCY: usize = 2;

impl<const W: usize, const K: usize, const LK: usize> Logic for ByteRotatePipe<W, K, LK> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        // Stages with lo < half before the first register, the others before the second.
        let half = LK.div_ceil(4) * 2;
        let mut text = format!("reg [{w}:0] mid;\nreg [{l}:0] mid_n;\n", w = W - 1, l = LK - 1);
        let mut from = String::from("x");
        for lo in (0..LK).step_by(2) {
            let name = if lo < half { "n" } else { "mid_n" };
            if lo == half {
                text += &format!("always @(posedge clock) if (en) mid <= {from};\n");
                from = "mid".into();
            }
            let to = format!("t{lo}");
            text += &format!("reg [{}:0] {to};\n", W - 1);
            text += &stage(W, LK, lo, &from, name, &to);
            from = to;
        }
        if half >= LK {
            text += &format!("always @(posedge clock) if (en) mid <= {from};\n");
            from = "mid".into();
        }
        text += &format!("always @(posedge clock) if (en) begin mid_n <= n; y <= {from}; end\n");
        Verilog::Custom(text)
    }
}
