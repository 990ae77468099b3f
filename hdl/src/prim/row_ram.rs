//! Narrow writes, wide reads: a row of `N` bits is written in pieces of `W` bits and read whole.

use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// `2^A` rows of `N` bits in `N / W` banks. The write port takes piece `write_sub` (0 is the lowest) of row
/// `write_addr`; the read port gives the whole row in the cycle after the address, OLD bits in the cycle of a write.
#[derive(LogicBlock, BlockDefault)]
#[demand(N.is_multiple_of(W) && N / W <= 8, "a row is 1 to 8 pieces")]
pub struct RowRam<const W: usize, const N: usize, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub write_en: Signal<In, Bit>,
    pub write_addr: Signal<In, Bits<A>>,
    pub write_sub: Signal<In, Bits<3>>,
    pub write_data: Signal<In, Bits<W>>,
    pub read_addr: Signal<In, Bits<A>>,
    pub read_data: Signal<Out, Bits<N>>,
}

impl<const W: usize, const N: usize, const A: usize> Logic for RowRam<W, N, A> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.read_data.connect();
    }
    fn hdl(&self) -> Verilog {
        let banks: Vec<_> = (0..N / W)
            .map(|bank| {
                format!(
                    "{style}reg [{w}:0] bank{bank} [0:{n}];\n\
                     {zero}\
                     always @(posedge clock) begin\n\
                     \x20 if (write_en && write_sub == 3'd{bank}) bank{bank}[write_addr] <= write_data;\n\
                     \x20 read_data[{hi}:{lo}] <= bank{bank}[read_addr];\n\
                     end\n",
                    style = super::ram::style(A, N),
                    zero = super::ram::zeros_of(&format!("bank{bank}"), &format!("init{bank}"), 1 << A, W),
                    w = W - 1,
                    n = (1usize << A) - 1,
                    hi = (bank + 1) * W - 1,
                    lo = bank * W,
                )
            })
            .collect();
        Verilog::Custom(banks.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tb::Tb;

    fn against_an_array<const W: usize>(name: &str) {
        let mut tb = Tb::new(name, RowRam::<W, 512, 3>::default());
        let words = W / 32;
        let mut rows = vec![vec![0u32; 16]; 8];
        for _ in 0..2000 {
            let (row, sub, at) = (tb.rng().below(8), tb.rng().below(512 / W as u64), tb.rng().below(8));
            let (data, on) = (tb.rng().words(W as u32), tb.rng().percent(50));
            tb.set("write_en", on.into());
            tb.set("write_addr", row);
            tb.set("write_sub", sub);
            tb.set("read_addr", at);
            tb.set_wide("write_data", &data[..]);
            tb.cycle();
            assert_eq!(tb.get_wide("read_data"), rows[at as usize]);
            if on {
                rows[row as usize][sub as usize * words..][..words].copy_from_slice(&data);
            }
        }
    }

    #[test]
    fn rows_are_written_in_pieces_and_read_whole() {
        against_an_array::<64>("row_ram64");
        against_an_array::<512>("row_ram512");
    }
}
