//! Linear map over GF(2): CRC steps, Toeplitz hash, anything made of XORs.

use rust_hdl::prelude::*;

/// `y = M x` over GF(2), combinational. The matrix is fixed at construction.
#[derive(LogicBlock)]
pub struct XorMatrix<const IN: usize, const OUT: usize> {
    pub x: Signal<In, Bits<IN>>,
    pub y: Signal<Out, Bits<OUT>>,
    _columns: Vec<Vec<bool>>,
}

impl<const IN: usize, const OUT: usize> XorMatrix<IN, OUT> {
    /// `column(j)` is the image of the unit vector `j`: `OUT` bits, lowest first.
    pub fn new(column: impl Fn(usize) -> Vec<bool>) -> Self {
        let columns: Vec<_> = (0..IN).map(column).collect();
        assert!(columns.iter().all(|c| c.len() == OUT), "every column needs {OUT} bits");
        Self { x: Default::default(), y: Default::default(), _columns: columns }
    }

    /// The matrix of a function that is linear over GF(2), probed with unit vectors (`u128` limits `OUT`, not `IN`).
    pub fn of(f: impl Fn(usize) -> u128) -> Self {
        Self::new(|j| {
            let y = f(j);
            (0..OUT).map(|i| y >> i & 1 == 1).collect()
        })
    }
}

impl<const IN: usize, const OUT: usize> Logic for XorMatrix<IN, OUT> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        // Parity of a masked vector: one wide AND per output bit is what simulates fastest.
        let mut text = String::from("always @(*) begin\n");
        for i in 0..OUT {
            let mut mask = String::new();
            for digit in (0..IN.div_ceil(4)).rev() {
                let v = (0..4).filter(|b| digit * 4 + b < IN && self._columns[digit * 4 + b][i]).map(|b| 1 << b).sum::<u32>();
                mask += &format!("{v:x}");
            }
            text += &format!("  {} = ^(x & {IN}'h{mask});\n", super::bit("y", OUT, i));
        }
        text += "end\n";
        Verilog::Custom(text)
    }
}
