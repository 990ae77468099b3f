//! Selection among request bits, all combinational and logarithmic in depth (parallel prefix).

use rust_hdl::prelude::*;

/// Statements that turn `name` (N bits) into its prefix OR: bit i becomes the OR of bits 0 to i.
fn prefix_or(name: &str, n: usize) -> String {
    let mut text = String::new();
    let mut step = 1;
    while step < n {
        text += &format!("  {name} = {name} | ({name} << {step});\n");
        step *= 2;
    }
    text
}

/// Round-robin pick: the first request above the last grant, else the first one from bit 0.
#[derive(LogicBlock, Default)]
pub struct RrPick<const N: usize> {
    pub req: Signal<In, Bits<N>>,
    /// The previous grant, one-hot; zero starts at bit 0.
    pub last: Signal<In, Bits<N>>,
    /// One-hot, or zero without a request.
    pub grant: Signal<Out, Bits<N>>,
}

impl<const N: usize> Logic for RrPick<N> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.grant.connect();
    }
    fn hdl(&self) -> Verilog {
        if N == 1 {
            return Verilog::Custom("always @(*) grant = req | (req & last);\n".into());
        }
        let d = N - 1;
        Verilog::Custom(format!(
            "reg [{d}:0] above;\nreg [{d}:0] high;\nreg [{d}:0] high_or;\nreg [{d}:0] all_or;\n\
             always @(*) begin\n  above = last << 1;\n{}  high = req & above;\n  high_or = high;\n{}  all_or = req;\n{}\
             \x20 if (high != {N}'d0) grant = high & ~(high_or << 1);\n  else grant = req & ~(all_or << 1);\nend\n",
            prefix_or("above", N),
            prefix_or("high_or", N),
            prefix_or("all_or", N),
        ))
    }
}

/// The lowest set bit of `x`, one-hot; zero when there is none.
#[derive(LogicBlock, Default)]
pub struct FirstSet<const N: usize> {
    pub x: Signal<In, Bits<N>>,
    pub y: Signal<Out, Bits<N>>,
}

impl<const N: usize> Logic for FirstSet<N> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        if N == 1 {
            return Verilog::Custom("always @(*) y = x;\n".into());
        }
        Verilog::Custom(format!("reg [{d}:0] any;\nalways @(*) begin\n  any = x;\n{}  y = x & ~(any << 1);\nend\n", prefix_or("any", N), d = N - 1,))
    }
}

/// Position of the set bit of a one-hot vector; zero for zero.
#[derive(LogicBlock, Default)]
pub struct OneHotToBin<const N: usize, const LN: usize> {
    pub x: Signal<In, Bits<N>>,
    pub y: Signal<Out, Bits<LN>>,
}

impl<const N: usize, const LN: usize> Logic for OneHotToBin<N, LN> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(N > 1 && N <= 1 << LN, "{LN} bits cannot number {N}");
        let mut text = String::from("always @(*) begin\n");
        for j in 0..LN {
            let ones: Vec<_> = (0..N).filter(|i| i >> j & 1 == 1).map(|i| format!("x[{i}]")).collect();
            let rhs = if ones.is_empty() { "1'b0".into() } else { ones.join(" | ") };
            text += &format!("  {} = {rhs};\n", super::bit("y", LN, j));
        }
        Verilog::Custom(text + "end\n")
    }
}

/// Binary to one-hot: bit `x` of `y` is set when `en`; none when `x` is N or more.
#[derive(LogicBlock, Default)]
pub struct BinToOneHot<const N: usize, const LN: usize> {
    pub en: Signal<In, Bit>,
    pub x: Signal<In, Bits<LN>>,
    pub y: Signal<Out, Bits<N>>,
}

impl<const N: usize, const LN: usize> Logic for BinToOneHot<N, LN> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(N > 1, "one-hot needs two bits");
        if N <= 8 || N % 8 != 0 {
            return Verilog::Custom(format!("always @(*) y = {{{}'d0, en}} << x;\n", N - 1));
        }
        // Two decoders and their products: a plain shift is mapped as one stage a bit of `x`.
        let (high, top) = (N / 8, LN - 1);
        Verilog::Custom(format!(
            "reg [7:0] low;\nreg [{}:0] high;\ninteger i;\nalways @(*) begin\nlow = 8'd1 << x[2:0];\nhigh = {{{}'d0, en}} << x[{top}:3];\n\
             for (i = 0; i < {high}; i = i + 1) y[8*i +: 8] = low & {{8{{high[i]}}}};\nend\n",
            high - 1,
            high - 1
        ))
    }
}
