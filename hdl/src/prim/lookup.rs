//! A constant table: decoders, opcode tables, masks by position.

use rust_hdl::prelude::*;

/// `y` = entry `x` of a table fixed at construction, combinational.
#[derive(LogicBlock)]
pub struct Lookup<const A: usize, const D: usize> {
    pub x: Signal<In, Bits<A>>,
    pub y: Signal<Out, Bits<D>>,
    _entries: Vec<Vec<bool>>,
}

impl<const A: usize, const D: usize> Lookup<A, D> {
    /// `entry(x)`: the `D` bits of entry `x`, lowest first.
    pub fn new(entry: impl Fn(usize) -> Vec<bool>) -> Self {
        let entries: Vec<_> = (0..1 << A).map(entry).collect();
        assert!(entries.iter().all(|e| e.len() == D), "every entry needs {D} bits");
        Self { x: Default::default(), y: Default::default(), _entries: entries }
    }

    /// Entries of up to 128 bits as numbers. Panics if one does not fit.
    pub fn of(entry: impl Fn(usize) -> u128) -> Self {
        Self::new(|x| {
            let v = entry(x);
            assert!(D >= 128 || v >> D == 0, "entry {x} does not fit {D} bits");
            (0..D).map(|i| i < 128 && v >> i & 1 == 1).collect()
        })
    }
}

/// The bits as hexadecimal digits, most significant first.
fn hex(bits: &[bool]) -> String {
    let digit = |n: &[bool]| n.iter().enumerate().map(|(i, &on)| u32::from(on) << i).sum::<u32>();
    bits.chunks(4).rev().map(|n| format!("{:x}", digit(n))).collect()
}

impl<const A: usize, const D: usize> Logic for Lookup<A, D> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        // The all-zero entries share the default: tables are mostly sparse.
        let mut text = String::from("always @(*) case (x)\n");
        for (i, entry) in self._entries.iter().enumerate().filter(|(_, e)| e.contains(&true)) {
            text += &format!("  {A}'d{i}: y = {D}'h{};\n", hex(entry));
        }
        Verilog::Custom(text + &format!("  default: y = {D}'d0;\nendcase\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tb::Tb;

    #[test]
    fn every_entry_reads_back() {
        let entry = |x: usize| if x % 3 == 0 { 0 } else { (x as u128).wrapping_mul(0x9e37_79b9) & 0x1ff_ffff_ffff };
        let mut tb = Tb::new("lookup_leaf", Lookup::<7, 41>::of(entry));
        for x in 0..128 {
            tb.set("x", x);
            tb.cycle();
            assert_eq!(u128::from(tb.get("y")), entry(x as usize), "entry {x}");
        }
    }
}
