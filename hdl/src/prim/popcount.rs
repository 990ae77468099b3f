//! Population count as a balanced tree.

use rust_hdl::prelude::*;

/// Number of set bits of `x`. `M` bits must hold N.
#[derive(LogicBlock, Default)]
pub struct PopCount<const N: usize, const M: usize> {
    pub x: Signal<In, Bits<N>>,
    pub count: Signal<Out, Bits<M>>,
}

impl<const N: usize, const M: usize> Logic for PopCount<N, M> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.count.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(N > 1 && N >> M == 0, "{N} does not fit in {M} bits");
        let mut text = String::new();
        let mut serial = 0;
        // Level 0: groups of up to three bits, a full adder each; then pairwise sums, one bit wider per level.
        let mut level: Vec<(String, usize)> = (0..N)
            .step_by(3)
            .map(|i| {
                let name = format!("g{i}");
                let (a, b, c) = (Some(i), (i + 1 < N).then_some(i + 1), (i + 2 < N).then_some(i + 2));
                let bits: Vec<_> = [a, b, c].into_iter().flatten().map(|k| format!("x[{k}]")).collect();
                let carry = match bits.len() {
                    3 => format!("({0} & {1}) | ({2} & ({0} ^ {1}))", bits[0], bits[1], bits[2]),
                    2 => format!("{} & {}", bits[0], bits[1]),
                    _ => "1'b0".into(),
                };
                text += &format!("wire [1:0] {name} = {{{carry}, {}}};\n", bits.join(" ^ "));
                (name, 2)
            })
            .collect();
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|pair| match pair {
                    [(a, wa), (b, wb)] => {
                        let w = wa.max(wb) + 1;
                        let name = format!("s{serial}");
                        serial += 1;
                        let pad = |v: &str, from: usize| format!("{{{}'d0, {v}}}", w - from);
                        text += &format!("wire [{}:0] {name} = {} + {};\n", w - 1, pad(a, *wa), pad(b, *wb));
                        (name, w)
                    }
                    single => single[0].clone(),
                })
                .collect();
        }
        let (sum, width) = &level[0];
        let rhs = match width.cmp(&M) {
            std::cmp::Ordering::Greater => format!("{sum}[{}:0]", M - 1),
            std::cmp::Ordering::Equal => sum.clone(),
            std::cmp::Ordering::Less => format!("{{{}'d0, {sum}}}", M - width),
        };
        Verilog::Custom(format!("{text}always @(*) count = {rhs};\n"))
    }
}
