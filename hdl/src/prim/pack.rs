//! Wiring the language cannot say: reinterpretation, concatenation, fixed slices and bit permutations. No gates.

use ferric_abi::layout::Layout;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// Same bits, other type: `y` = `x`.
#[derive(LogicBlock, Default)]
pub struct Cast<T: Synth, U: Synth> {
    pub x: Signal<In, T>,
    pub y: Signal<Out, U>,
}

impl<T: Synth, U: Synth> Logic for Cast<T, U> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        assert_eq!(T::BITS, U::BITS, "a cast keeps the width");
        Verilog::Custom("always @(*) y = x;\n".into())
    }
}

/// `x` zero-extended or cut to `M` bits (low bits kept), without a width warning either way.
#[derive(LogicBlock, Default)]
pub struct Resize<const N: usize, const M: usize> {
    pub x: Signal<In, Bits<N>>,
    pub y: Signal<Out, Bits<M>>,
}

impl<const N: usize, const M: usize> Logic for Resize<N, M> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        let bits: Vec<_> = (0..M).map(|i| (i < N).then_some(i)).collect();
        Verilog::Custom(format!("always @(*) y = {};\n", super::concat("x", N, &bits)))
    }
}

/// `y` = `x` moved down by a number of bits fixed at construction, zeros from above.
#[derive(LogicBlock)]
pub struct ShiftDown<const N: usize> {
    pub x: Signal<In, Bits<N>>,
    pub y: Signal<Out, Bits<N>>,
    _bits: usize,
}

impl<const N: usize> ShiftDown<N> {
    /// Moves by `bits`; N or more gives zero.
    pub fn new(bits: usize) -> Self {
        Self { x: Default::default(), y: Default::default(), _bits: bits }
    }
}

impl<const N: usize> Logic for ShiftDown<N> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        let bits: Vec<_> = (0..N).map(|i| (i + self._bits < N).then_some(i + self._bits)).collect();
        // Naming `x` keeps the sensitivity list from being empty when nothing of it is left.
        let zero = if self._bits >= N { " & x" } else { "" };
        Verilog::Custom(format!("always @(*) y = {}{zero};\n", super::concat("x", N, &bits)))
    }
}

/// Single bits to a vector: bit `i` of `y` is `x[i]`. (`replace_bit` in a kernel shifts a one-bit value, which the lint
/// gate refuses.)
#[derive(LogicBlock, BlockDefault)]
pub struct Gather<const N: usize> {
    pub x: [Signal<In, Bit>; N],
    pub y: Signal<Out, Bits<N>>,
}

impl<const N: usize> Logic for Gather<N> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        let bits: Vec<_> = (0..N).rev().map(|i| format!("x${i}")).collect();
        Verilog::Custom(format!("always @(*) y = {{{}}};\n", bits.join(", ")))
    }
}

/// `y` = {`b`, `a`}: `a` in the low bits. C = A + B.
#[derive(LogicBlock, Default)]
pub struct Concat2<const A: usize, const B: usize, const C: usize> {
    pub a: Signal<In, Bits<A>>,
    pub b: Signal<In, Bits<B>>,
    pub y: Signal<Out, Bits<C>>,
}

impl<const A: usize, const B: usize, const C: usize> Logic for Concat2<A, B, C> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        assert_eq!(A + B, C, "C must be A + B");
        Verilog::Custom("always @(*) y = {b, a};\n".into())
    }
}

/// `M` bits of `x` from a bit offset fixed at construction.
#[derive(LogicBlock)]
pub struct Slice<const N: usize, const M: usize> {
    pub x: Signal<In, Bits<N>>,
    pub y: Signal<Out, Bits<M>>,
    _offset: usize,
}

impl<const N: usize, const M: usize> Slice<N, M> {
    /// `y = x[offset + M - 1 : offset]`; panics at generation when that leaves `x`.
    pub fn new(offset: usize) -> Self {
        assert!(offset + M <= N, "slice {offset}+{M} leaves {N} bits");
        Self { x: Default::default(), y: Default::default(), _offset: offset }
    }
}

impl<const N: usize, const M: usize> Logic for Slice<N, M> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        let bits: Vec<_> = (0..M).map(|i| Some(self._offset + i)).collect();
        Verilog::Custom(format!("always @(*) y = {};\n", super::concat("x", N, &bits)))
    }
}

/// For every bit of the hardware struct of `layout`, the raw bit (8 * byte + bit) that carries it, the record starting
/// at byte `at` of the raw vector. The list [`BePick`] and [`BePack`] take.
pub fn permutation(layout: &Layout, at: usize) -> Vec<usize> {
    layout.fields.iter().flat_map(|f| (0..f.width).map(move |b| 8 * at + layout.raw_bit(f, b))).collect()
}

/// Raw bytes to a record: bit i of `y` is bit `list[i]` of `x`.
#[derive(LogicBlock)]
pub struct BePick<const N: usize, T: Synth> {
    pub x: Signal<In, Bits<N>>,
    pub y: Signal<Out, T>,
    _list: Vec<usize>,
}

impl<const N: usize, T: Synth> BePick<N, T> {
    /// `list[i]`: which bit of `x` becomes bit `i` of the struct (first field lowest).
    pub fn new(list: Vec<usize>) -> Self {
        assert_eq!(list.len(), T::BITS, "one source per bit of the struct");
        assert!(list.iter().all(|&i| i < N), "source bit outside of {N}");
        Self { x: Default::default(), y: Default::default(), _list: list }
    }

    /// The record of `layout` that starts at byte `at` of `x`.
    pub fn of(layout: &Layout, at: usize) -> Self {
        Self::new(permutation(layout, at))
    }
}

impl<const N: usize, T: Synth> Logic for BePick<N, T> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        let bits: Vec<_> = self._list.iter().copied().map(Some).collect();
        Verilog::Custom(format!("always @(*) y = {};\n", super::concat("x", N, &bits)))
    }
}

/// A record to raw bytes, the inverse of [`BePick`]: bit `list[i]` of `y` is bit i of `x`, all others are zero.
#[derive(LogicBlock)]
pub struct BePack<const N: usize, T: Synth> {
    pub x: Signal<In, T>,
    pub y: Signal<Out, Bits<N>>,
    _list: Vec<usize>,
}

impl<const N: usize, T: Synth> BePack<N, T> {
    /// `list[i]`: which bit of `y` carries bit `i` of the struct; no bit twice.
    pub fn new(list: Vec<usize>) -> Self {
        assert_eq!(list.len(), T::BITS, "one target per bit of the struct");
        let mut seen = vec![false; N];
        for &i in &list {
            assert!(i < N && !seen[i], "target bit {i} twice or outside of {N}");
            seen[i] = true;
        }
        Self { x: Default::default(), y: Default::default(), _list: list }
    }

    /// The record of `layout` at byte `at` of `y`.
    pub fn of(layout: &Layout, at: usize) -> Self {
        Self::new(permutation(layout, at))
    }
}

impl<const N: usize, T: Synth> Logic for BePack<N, T> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        let mut bits = vec![None; N];
        for (from, &to) in self._list.iter().enumerate() {
            bits[to] = Some(from);
        }
        Verilog::Custom(format!("always @(*) y = {};\n", super::concat("x", T::BITS, &bits)))
    }
}
