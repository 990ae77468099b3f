//! Wide addition and subtraction that is shallow: carry-select over pieces of 14, 14 and then 18 bits.
//!
//! A plain 64-bit adder is a chain of 16 four-bit carry cells. Here each piece is added with and without a carry coming in, and
//! the true carries choose: about 9 levels for 64 bits, for twice the LUTs. The first pieces are the shorter ones, since the carries behind
//! them have the longer way.

use rust_hdl::prelude::*;

/// Bits of the first two pieces (16 with both carries: four carry cells), and of those behind them.
const FIRST: usize = 14;
const REST: usize = 18;

/// Lowest bit and width of each piece of `n` bits.
fn cuts(n: usize) -> Vec<(usize, usize)> {
    let mut cuts = Vec::new();
    let mut low = 0;
    while low < n {
        let width = if cuts.len() < 2 { FIRST } else { REST }.min(n - low);
        cuts.push((low, width));
        low += width;
    }
    cuts
}

/// `y = a + b`, modulo `2^N`.
#[derive(LogicBlock, Default)]
pub struct Sum<const N: usize> {
    pub a: Signal<In, Bits<N>>,
    pub b: Signal<In, Bits<N>>,
    pub y: Signal<Out, Bits<N>>,
}

impl<const N: usize> Logic for Sum<N> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!("wire [{}:0] one = a;\n{}always @(*) y = sum;\n", N - 1, pieces(N)))
    }
}

/// `y = a - b`, modulo `2^N`; `below` when `a < b`.
#[derive(LogicBlock, Default)]
pub struct Diff<const N: usize> {
    pub a: Signal<In, Bits<N>>,
    pub b: Signal<In, Bits<N>>,
    pub y: Signal<Out, Bits<N>>,
    pub below: Signal<Out, Bit>,
}

impl<const N: usize> Logic for Diff<N> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
        self.below.connect();
    }
    fn hdl(&self) -> Verilog {
        // `a - b = ~(~a + b)`: with a carry coming in instead, synthesis finds rows of LUTs in place of the second sums, two levels deeper.
        let last = cuts(N).len();
        Verilog::Custom(format!("wire [{}:0] one = ~a;\n{}always @(*) begin\n  y = ~sum;\n  below = c{last};\nend\n", N - 1, pieces(N)))
    }
}

/// `y = a - 1`, modulo `2^N`, without a carry chain: a bit turns over when all below it are 0.
#[derive(LogicBlock, Default)]
pub struct LessOne<const N: usize> {
    pub a: Signal<In, Bits<N>>,
    pub y: Signal<Out, Bits<N>>,
}

impl<const N: usize> Logic for LessOne<N> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        let turns: String = (1..N).map(|i| format!("  y[{i}] = a[{i}] ^ ~|a[{}:0];\n", i - 1)).collect();
        Verilog::Custom(format!("always @(*) begin\n  y[0] = ~a[0];\n{turns}end\n"))
    }
}

/// `y = a + 1`, modulo `2^N`, without a carry chain: a bit turns over when all below it are 1.
#[derive(LogicBlock, Default)]
pub struct PlusOne<const N: usize> {
    pub a: Signal<In, Bits<N>>,
    pub y: Signal<Out, Bits<N>>,
}

impl<const N: usize> Logic for PlusOne<N> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        let turns: String = (1..N).map(|i| format!("  y[{i}] = a[{i}] ^ &a[{}:0];\n", i - 1)).collect();
        Verilog::Custom(format!("always @(*) begin\n  y[0] = ~a[0];\n{turns}end\n"))
    }
}

/// `y`: `a` is ahead of `b` in a sequence of `N` bits: `0 < a - b < 2^(N-1)`, modulo `2^N`. A tree of gates: about 5 levels for 24 bits.
#[derive(LogicBlock, Default)]
pub struct Ahead<const N: usize> {
    pub a: Signal<In, Bits<N>>,
    pub b: Signal<In, Bits<N>>,
    pub y: Signal<Out, Bit>,
}

impl<const N: usize> Logic for Ahead<N> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        // Of each group of bits whether a is more than b, and whether they are equal: pairs first, then three groups at a time.
        let mut text = String::new();
        let mut count = (N - 1).div_ceil(2);
        for k in 0..count {
            let bits = format!("{}:{}", (2 * k + 1).min(N - 2), 2 * k);
            text += &format!("wire m0_{k} = a[{bits}] > b[{bits}];\nwire e0_{k} = a[{bits}] == b[{bits}];\n");
        }
        let mut level = 0;
        while count > 1 {
            let next = level + 1;
            for (n, low) in (0..count).step_by(3).enumerate() {
                let group: Vec<usize> = (low..(low + 3).min(count)).rev().collect();
                let equal: Vec<String> = group.iter().map(|k| format!("e{level}_{k}")).collect();
                let more: Vec<String> = group.iter().enumerate().map(|(i, k)| [&equal[..i], &[format!("m{level}_{k}")]].concat().join(" & ")).collect();
                text += &format!("wire m{next}_{n} = {};\nwire e{next}_{n} = {};\n", more.join(" | "), equal.join(" & "));
            }
            count = count.div_ceil(3);
            level = next;
        }
        let top = N - 1;
        Verilog::Custom(format!("{text}always @(*) y = a[{top}] == b[{top}] ? m{level}_0 : ~(m{level}_0 | e{level}_0);\n"))
    }
}

/// `sum = one + b`, piece by piece; `c{k}` is the carry into piece k: `z{k}` is that piece without one, `o{k}`, from bit 1 on, with one.
fn pieces(n: usize) -> String {
    assert!(n > FIRST, "an ordinary adder of {n} bits is as shallow");
    let mut text = format!("reg [{}:0] sum;\n", n - 1);
    for (k, (low, w)) in cuts(n).into_iter().enumerate() {
        let (top, next, high) = (w + 1, k + 1, w - 1);
        let bits = format!("{}:{low}", low + high);
        text += &format!("wire [{w}:0] z{k} = {{1'b0, one[{bits}]}} + {{1'b0, b[{bits}]}};\n");
        if k == 0 {
            text += &format!("always @(*) sum[{bits}] = z0[{high}:0];\nwire c1 = z0[{w}];\n");
            continue;
        }
        // The choice is written in gates: a multiplexer would let synthesis share one adder between its two inputs again.
        text += &format!(
            "wire [{top}:0] o{k} = {{1'b0, one[{bits}], 1'b1}} + {{1'b0, b[{bits}], 1'b1}};\n\
             wire c{next} = z{k}[{w}] | (o{k}[{top}] & c{k});\n\
             always @(*) sum[{bits}] = z{k}[{high}:0] ^ ((z{k}[{high}:0] ^ o{k}[{w}:1]) & {{{w}{{c{k}}}}});\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tb::Tb;

    /// Operands whose carries run over piece boundaries, and random ones.
    fn operands(tb: &mut Tb, n: u32) -> (u64, u64) {
        let mask = u64::MAX >> (64 - n);
        let (mut a, mut b) = (tb.rng().next_u64(), tb.rng().next_u64());
        if tb.rng().percent(50) {
            let run = tb.rng().below(n.into());
            a |= (1 << run) - 1;
            b = 1 << tb.rng().below(n.into());
        } else if tb.rng().percent(20) {
            b = !a;
        } else if tb.rng().percent(20) {
            b = a;
        }
        (a & mask, b & mask)
    }

    #[test]
    fn sums() {
        let mut tb = Tb::new("sum64", Sum::<64>::default());
        for _ in 0..5000 {
            let (a, b) = operands(&mut tb, 64);
            tb.set("a", a);
            tb.set("b", b);
            tb.model().settle();
            assert_eq!(tb.get("y"), a.wrapping_add(b), "{a:x} + {b:x}");
        }
    }

    #[test]
    fn differences() {
        let mut tb = Tb::new("diff52", Diff::<52>::default());
        for _ in 0..5000 {
            let (a, b) = operands(&mut tb, 52);
            tb.set("a", a);
            tb.set("b", b);
            tb.model().settle();
            assert_eq!(tb.get("y"), a.wrapping_sub(b) & (u64::MAX >> 12), "{a:x} - {b:x}");
            assert_eq!(tb.get("below") == 1, a < b, "{a:x} < {b:x}");
        }
    }

    #[test]
    fn one_less() {
        let mut tb = Tb::new("less32", LessOne::<32>::default());
        for n in 0..5000 {
            let a = if n < 32 { 1 << n } else { operands(&mut tb, 32).0 };
            tb.set("a", a);
            tb.model().settle();
            assert_eq!(tb.get("y"), a.wrapping_sub(1) & 0xffff_ffff, "{a:x} - 1");
        }
    }

    #[test]
    fn one_more() {
        let mut tb = Tb::new("more24", PlusOne::<24>::default());
        for n in 0..5000 {
            let a = if n <= 24 { (1 << n) - 1 } else { operands(&mut tb, 24).0 } & 0xff_ffff;
            tb.set("a", a);
            tb.model().settle();
            assert_eq!(tb.get("y"), a.wrapping_add(1) & 0xff_ffff, "{a:x} + 1");
        }
    }

    #[test]
    fn ahead() {
        let mut tb = Tb::new("ahead24", Ahead::<24>::default());
        for n in 0..20_000u64 {
            let (a, mut b) = operands(&mut tb, 24);
            match n % 4 {
                // Near each other, and near half of the numbers apart.
                0 => b = a.wrapping_add(tb.rng().below(5)).wrapping_sub(2) & 0xff_ffff,
                1 => b = a.wrapping_add(tb.rng().below(5)).wrapping_sub(2 + (1 << 23)) & 0xff_ffff,
                2 => b = a ^ (1 << tb.rng().below(24)),
                _ => {}
            }
            tb.set("a", a);
            tb.set("b", b);
            tb.model().settle();
            let distance = a.wrapping_sub(b) & 0xff_ffff;
            assert_eq!(tb.get("y") == 1, (1..1 << 23).contains(&distance), "{a:x} ahead of {b:x}");
        }
    }
}
