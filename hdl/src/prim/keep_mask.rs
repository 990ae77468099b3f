//! Byte enables, byte counts and masks.

use rust_hdl::prelude::*;

/// Byte enables to a bit mask: `mask[8i+7:8i]` = `keep[i]`.
#[derive(LogicBlock, Default)]
pub struct KeepMask<const W: usize, const K: usize> {
    pub keep: Signal<In, Bits<K>>,
    pub mask: Signal<Out, Bits<W>>,
}

impl<const W: usize, const K: usize> Logic for KeepMask<W, K> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.mask.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(W == 8 * K && K > 1, "K must be W / 8");
        let parts: Vec<_> = (0..K).rev().map(|i| format!("{{8{{keep[{i}]}}}}")).collect();
        Verilog::Custom(format!("always @(*) mask = {{{}}};\n", parts.join(", ")))
    }
}

/// Text that declares `name` = (bit i set when i < `len`), two LUT levels: the length is split into groups of eight and
/// the rest, each compared alone. Lengths above `k` set every bit.
fn below(name: &str, len: &str, k: usize, l: usize) -> String {
    if l <= 3 {
        return format!("wire [{}:0] {name} = ~({{{k}{{1'b1}}}} << {len});\n", k - 1);
    }
    let groups = k.div_ceil(8);
    let high = l - 3;
    let mut text = format!(
        "wire [{h}:0] {name}_high = {len}[{top}:3];\nwire [7:0] {name}_part = ~(8'hff << {len}[2:0]);\nreg [{g}:0] {name}_bytes;\nalways @(*) begin\n",
        h = high - 1,
        top = l - 1,
        g = groups * 8 - 1,
    );
    for g in 0..groups {
        let (full, edge) = if g >> high != 0 { ("1'b0".to_string(), "1'b0".to_string()) } else { (format!("{name}_high > {high}'d{g}"), format!("{name}_high == {high}'d{g}")) };
        text += &format!("  {name}_bytes[{}:{}] = {{8{{{full}}}}} | ({{8{{{edge}}}}} & {name}_part);\n", g * 8 + 7, g * 8);
    }
    text + &format!("end\nwire [{}:0] {name} = {name}_bytes[{}:0];\n", k - 1, k - 1)
}

/// Byte count to byte enables: the low `len` bits of `keep` are set. `L` is the width of the count: log2(K) + 1 to be
/// able to say K.
#[derive(LogicBlock, Default)]
pub struct LenMask<const K: usize, const L: usize> {
    pub len: Signal<In, Bits<L>>,
    pub keep: Signal<Out, Bits<K>>,
}

impl<const K: usize, const L: usize> Logic for LenMask<K, L> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.keep.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!("{}always @(*) keep = under;\n", below("under", "len", K, L)))
    }
}

/// Byte range to byte enables: bit i is set when `lo <= i < hi`. `L` as for [`LenMask`].
#[derive(LogicBlock, Default)]
pub struct RangeMask<const K: usize, const L: usize> {
    pub lo: Signal<In, Bits<L>>,
    pub hi: Signal<In, Bits<L>>,
    pub keep: Signal<Out, Bits<K>>,
}

impl<const K: usize, const L: usize> Logic for RangeMask<K, L> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.keep.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!("{}{}always @(*) keep = under_hi & ~under_lo;\n", below("under_lo", "lo", K, L), below("under_hi", "hi", K, L)))
    }
}

/// Contiguous byte enables (bit 0 upwards) to their count, 0 to K, by the position of the edge: far shallower than a
/// population count. Non-contiguous enables give a wrong count.
#[derive(LogicBlock, Default)]
pub struct KeepLen<const K: usize, const L: usize> {
    pub keep: Signal<In, Bits<K>>,
    pub len: Signal<Out, Bits<L>>,
}

impl<const K: usize, const L: usize> Logic for KeepLen<K, L> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.len.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(K > 1 && K >> L == 0, "{K} does not fit in {L} bits");
        let mut text = format!("wire [{}:0] top = keep & ~(keep >> 1);\nalways @(*) begin\n", K - 1);
        for j in 0..L {
            let ones: Vec<_> = (0..K).filter(|i| (i + 1) >> j & 1 == 1).map(|i| format!("top[{i}]")).collect();
            let rhs = if ones.is_empty() { "1'b0".into() } else { ones.join(" | ") };
            text += &format!("  {} = {rhs};\n", super::bit("len", L, j));
        }
        Verilog::Custom(text + "end\n")
    }
}
