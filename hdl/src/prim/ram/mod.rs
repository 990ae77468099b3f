//! Memories. Depth is always `2^A` words, contents start as zeros, one clock.
//!
//! | leaf | read | ports |
//! |---|---|---|
//! | [`Ram`] | synchronous, 1 cycle | 1 write, 1 read |
//! | [`RamApart`] | as `Ram`, never used of a word that is being written | 1 write, 1 read |
//! | [`RamHold`] | synchronous, 1 cycle, holds while `read_en` is low | 1 write, 1 read |
//! | [`RamPass`] | as `RamHold`, or the word being written | 1 write, 1 read |
//! | [`AxisRam`] | as `RamHold`, word = data, keep and last of one beat | 1 write, 1 read |
//! | [`RamAsync`] | combinational | 1 write, 1 read |
//! | [`RamAsync2`] | combinational | 1 write, 2 reads |
//!
//! A read in the cycle of a write to the same address returns the OLD word on every leaf (`pass` of [`RamPass`] apart), but for [`RamApart`] and a [`RamPass`] in block RAM: there the word is
//! undefined, a wrong one in every simulation of ours. Block RAM of UltraScale+ has the old word for nothing; that of the ECP5 leaves it open, and what yosys builds around it to have
//! it costs two flip-flops and a LUT a bit.

use rust_hdl::prelude::*;

/// Depths up to this many address bits go to LUT RAM, deeper ones to block RAM or UltraRAM: a 64-word LUT RAM is one LUT per bit.
pub const LUT_RAM_MAX_A: usize = 6;

/// Below this many bits a deep memory is cheaper in LUTs than as a mostly empty block RAM: the tool decides.
const BLOCK_MIN_BITS: usize = 4096;

/// A memory of more bits would take more than 29 block RAMs: UltraRAM (4096 rows of 72 bits each) has room for it. Only cards for parts that
/// have some are so large.
const ULTRA_MIN_BITS: usize = 1 << 20;

pub(super) fn style(a: usize, bits: usize) -> &'static str {
    if a <= LUT_RAM_MAX_A {
        "(* ram_style = \"distributed\" *) "
    } else if bits << a >= ULTRA_MIN_BITS {
        "(* ram_style = \"ultra\" *) "
    } else if bits << a >= BLOCK_MIN_BITS {
        "(* ram_style = \"block\" *) "
    } else {
        ""
    }
}

/// Declaration of the array, its zero initialisation and a write port that writes the expression `word`.
fn array(a: usize, bits: usize, style: &str, word: &str) -> String {
    format!(
        "{style}reg [{d}:0] cells [0:{n}];\n\
         {zero}\
         always @(posedge clock) if (write_en) cells[write_addr] <= {word};\n",
        d = bits - 1,
        n = (1usize << a) - 1,
        zero = zeros(a, bits),
    )
}

/// Zero contents of the array `cells`, for simulators. FPGA memories power up as zeros without being told, and a synthesis
/// tool that unrolls the loop spends minutes on it.
pub(super) fn zeros(a: usize, bits: usize) -> String {
    zeros_of("cells", "init_i", 1 << a, bits)
}

/// As [`zeros`], for an array of any name and depth, with a loop variable called `i`.
pub(super) fn zeros_of(array: &str, i: &str, words: usize, bits: usize) -> String {
    let last = words - 1;
    format!("`ifndef SYNTHESIS\ninteger {i};\ninitial for ({i} = 0; {i} <= {last}; {i} = {i} + 1) {array}[{i}] = {bits}'d0;\n`endif\n")
}

/// Tells yosys, where the part is an ECP5, that nobody uses a word which is read while it is written.
pub(super) const APART: &str = "`ifdef FERRIC_ECP5\n(* no_rw_check *)\n`endif\n";

/// The read port of such a memory. Whoever defines `FERRIC_CHECKS` (our simulations) gets a wrong word for one that is being written.
fn read_apart(enable: &str) -> String {
    format!(
        "`ifdef FERRIC_CHECKS\nalways @(posedge clock) {enable}read_data <= write_en && write_addr == read_addr ? ~cells[read_addr] : cells[read_addr];\n\
         `else\nalways @(posedge clock) {enable}read_data <= cells[read_addr];\n`endif\n"
    )
}

/// Simple dual-port RAM, synchronous read: address in cycle n, data in cycle n+1.
#[derive(LogicBlock, Default)]
pub struct Ram<T: Synth, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub read_addr: Signal<In, Bits<A>>,
    pub read_data: Signal<Out, T>,
    pub write_addr: Signal<In, Bits<A>>,
    pub write_data: Signal<In, T>,
    pub write_en: Signal<In, Bit>,
}
impl<T: Synth, const A: usize> Logic for Ram<T, A> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.read_data.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!("{}always @(posedge clock) read_data <= cells[read_addr];\n", array(A, T::BITS, style(A, T::BITS), "write_data")))
    }
}

/// [`Ram`] whose reader never uses a word that is written in the cycle in which it is read: undefined.
#[derive(LogicBlock, Default)]
pub struct RamApart<T: Synth, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub read_addr: Signal<In, Bits<A>>,
    pub read_data: Signal<Out, T>,
    pub write_addr: Signal<In, Bits<A>>,
    pub write_data: Signal<In, T>,
    pub write_en: Signal<In, Bit>,
}
impl<T: Synth, const A: usize> Logic for RamApart<T, A> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.read_data.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!("{APART}{}{}", array(A, T::BITS, style(A, T::BITS), "write_data"), read_apart("")))
    }
}

/// [`Ram`] with a read enable: `read_data` keeps its value through cycles where `read_en` is low.
#[derive(LogicBlock, Default)]
pub struct RamHold<T: Synth, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub read_en: Signal<In, Bit>,
    pub read_addr: Signal<In, Bits<A>>,
    pub read_data: Signal<Out, T>,
    pub write_addr: Signal<In, Bits<A>>,
    pub write_data: Signal<In, T>,
    pub write_en: Signal<In, Bit>,
}
impl<T: Synth, const A: usize> Logic for RamHold<T, A> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.read_data.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!("{}always @(posedge clock) if (read_en) read_data <= cells[read_addr];\n", array(A, T::BITS, style(A, T::BITS), "write_data")))
    }
}

/// [`RamHold`] whose read register takes `write_data` instead of the addressed word while `pass` is high. Deeper than [`LUT_RAM_MAX_A`] it has no `pass`, and a word that is being written is
/// not to be read.
#[derive(LogicBlock, Default)]
pub struct RamPass<T: Synth, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub read_en: Signal<In, Bit>,
    pub pass: Signal<In, Bit>,
    pub read_addr: Signal<In, Bits<A>>,
    pub read_data: Signal<Out, T>,
    pub write_addr: Signal<In, Bits<A>>,
    pub write_data: Signal<In, T>,
    pub write_en: Signal<In, Bit>,
}
impl<T: Synth, const A: usize> Logic for RamPass<T, A> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.read_data.connect();
    }
    fn hdl(&self) -> Verilog {
        let array = array(A, T::BITS, style(A, T::BITS), "write_data");
        // Behind block RAM the choice would sit after its read register: such a memory is not used with `pass`.
        Verilog::Custom(if A <= LUT_RAM_MAX_A {
            format!("{array}always @(posedge clock) if (read_en) read_data <= pass ? write_data : cells[read_addr];\n")
        } else {
            format!("{APART}{array}{}", read_apart("if (read_en | (pass & 1'b0)) "))
        })
    }
}

/// [`RamHold`] for one stream beat: data, keep and last share one word, so that they share block RAMs.
#[derive(LogicBlock, Default)]
pub struct AxisRam<const W: usize, const K: usize, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub read_en: Signal<In, Bit>,
    pub read_addr: Signal<In, Bits<A>>,
    pub read_data: Signal<Out, Bits<W>>,
    pub read_keep: Signal<Out, Bits<K>>,
    pub read_last: Signal<Out, Bit>,
    pub write_addr: Signal<In, Bits<A>>,
    pub write_data: Signal<In, Bits<W>>,
    pub write_keep: Signal<In, Bits<K>>,
    pub write_last: Signal<In, Bit>,
    pub write_en: Signal<In, Bit>,
}
impl<const W: usize, const K: usize, const A: usize> Logic for AxisRam<W, K, A> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.read_data.connect();
        self.read_keep.connect();
        self.read_last.connect();
    }
    fn hdl(&self) -> Verilog {
        let bits = W + K + 1;
        Verilog::Custom(format!(
            "{}reg [{d}:0] word;\n\
             always @(posedge clock) if (read_en) word <= cells[read_addr];\n\
             always @(*) begin\n  read_data = word[{w}:0];\n  read_keep = word[{k}:{W}];\n  read_last = word[{d}];\nend\n",
            array(A, bits, style(A, bits), "{write_last, write_keep, write_data}"),
            d = bits - 1,
            w = W - 1,
            k = W + K - 1,
        ))
    }
}

/// LUT RAM with a combinational read port. A write is visible in the cycle after it.
#[derive(LogicBlock, Default)]
pub struct RamAsync<T: Synth, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub read_addr: Signal<In, Bits<A>>,
    pub read_data: Signal<Out, T>,
    pub write_addr: Signal<In, Bits<A>>,
    pub write_data: Signal<In, T>,
    pub write_en: Signal<In, Bit>,
}
impl<T: Synth, const A: usize> Logic for RamAsync<T, A> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.read_data.connect();
    }
    fn hdl(&self) -> Verilog {
        // A wire between array and output: `always @(*)` does not wake on a change of an array element.
        Verilog::Custom(format!("{}wire [{d}:0] word = cells[read_addr];\nalways @(*) read_data = word;\n", array(A, T::BITS, "(* ram_style = \"distributed\" *) ", "write_data"), d = T::BITS - 1,))
    }
}

/// [`RamAsync`] with two read ports.
#[derive(LogicBlock, Default)]
pub struct RamAsync2<T: Synth, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub read_addr0: Signal<In, Bits<A>>,
    pub read_data0: Signal<Out, T>,
    pub read_addr1: Signal<In, Bits<A>>,
    pub read_data1: Signal<Out, T>,
    pub write_addr: Signal<In, Bits<A>>,
    pub write_data: Signal<In, T>,
    pub write_en: Signal<In, Bit>,
}
impl<T: Synth, const A: usize> Logic for RamAsync2<T, A> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.read_data0.connect();
        self.read_data1.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "{}wire [{d}:0] word0 = cells[read_addr0];\nwire [{d}:0] word1 = cells[read_addr1];\n\
             always @(*) read_data0 = word0;\nalways @(*) read_data1 = word1;\n",
            array(A, T::BITS, "(* ram_style = \"distributed\" *) ", "write_data"),
            d = T::BITS - 1,
        ))
    }
}
