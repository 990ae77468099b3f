//! A memory of wide rows of which one 32-bit word can be written alone.

use super::word::span;
use rust_hdl::prelude::*;

/// `2^A` rows of type `T`. The write port takes a whole row (`write_en`) or one 32-bit word of it (`word_en`; a word beyond the row is lost), never
/// both in one cycle. Where no row is written whole, `write_data` is best the constant zero. The read port gives a row in the cycle after the address, the OLD one in the cycle of a write.
#[derive(LogicBlock, Default)]
pub struct PatchRam<T: Synth, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub read_addr: Signal<In, Bits<A>>,
    pub read_data: Signal<Out, T>,
    pub write_addr: Signal<In, Bits<A>>,
    pub write_data: Signal<In, T>,
    pub write_en: Signal<In, Bit>,
    pub word: Signal<In, Bits<6>>,
    pub word_data: Signal<In, Bits<32>>,
    pub word_en: Signal<In, Bit>,
}

impl<T: Synth, const A: usize> Logic for PatchRam<T, A> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.read_data.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(T::BITS > 1 && T::BITS <= 64 * 32, "a word number has 6 bits");
        let part = |i| {
            let (lo, hi) = span(T::BITS, i);
            format!("  if (write_en || (word_en && word == 6'd{i})) cells[write_addr][{hi}:{lo}] <= word_en ? word_data[{}:0] : write_data[{hi}:{lo}];\n", hi - lo)
        };
        let parts: String = (0..T::BITS.div_ceil(32)).map(part).collect();
        Verilog::Custom(format!(
            "{style}reg [{d}:0] cells [0:{n}];\n\
             {zero}\
             always @(posedge clock) begin\n{parts}  read_data <= cells[read_addr];\nend\n",
            style = super::ram::style(A, T::BITS),
            zero = super::ram::zeros(A, T::BITS),
            d = T::BITS - 1,
            n = (1usize << A) - 1,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tb::Tb;

    /// A row whose last word is cut.
    const ROW: usize = 200;

    #[test]
    fn rows_and_words_of_them_are_written() {
        let mut tb = Tb::new("patch_ram", PatchRam::<Bits<200>, 3>::default());
        let cut = |mut row: Vec<u32>| {
            row[ROW / 32] &= (1 << (ROW % 32)) - 1;
            row
        };
        let mut rows = vec![vec![0u32; ROW.div_ceil(32)]; 8];
        for _ in 0..4000 {
            let (to, at, word) = (tb.rng().below(8), tb.rng().below(8), tb.rng().below(10));
            let (whole, one) = [(true, false), (false, true), (false, false)][tb.rng().below(3) as usize];
            let (row, data) = (cut(tb.rng().words(ROW as u32)), tb.rng().next_u32());
            tb.set("write_addr", to);
            tb.set("read_addr", at);
            tb.set("write_en", whole.into());
            tb.set_wide("write_data", &row[..]);
            tb.set("word", word);
            tb.set("word_data", data.into());
            tb.set("word_en", one.into());
            tb.cycle();
            assert_eq!(tb.get_wide("read_data"), rows[at as usize]);
            let cells = &mut rows[to as usize];
            if whole {
                *cells = row;
            }
            if let (true, Some(cell)) = (one, cells.get_mut(word as usize)) {
                *cell = data;
                *cells = cut(cells.clone());
            }
        }
    }
}
