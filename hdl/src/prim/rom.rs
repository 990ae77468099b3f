//! A synchronous ROM for microprograms: address in cycle n, word in cycle n+1.

use rust_hdl::prelude::*;

/// `2^A` words of type `T`, contents fixed at construction, missing words zero.
#[derive(LogicBlock)]
pub struct Rom<T: Synth, const A: usize> {
    pub clock: Signal<In, Clock>,
    pub read_addr: Signal<In, Bits<A>>,
    pub read_data: Signal<Out, T>,
    _words: Vec<u128>,
}

impl<T: Synth, const A: usize> Rom<T, A> {
    /// `words[i]`: the bits of word `i`. Panics if there are too many or one does not fit.
    pub fn new(words: Vec<u128>) -> Self {
        assert!(words.len() <= 1 << A, "{} words do not fit {A} address bits", words.len());
        assert!(T::BITS <= 128 && words.iter().all(|w| T::BITS == 128 || w >> T::BITS == 0), "a word does not fit");
        Self { clock: Default::default(), read_addr: Default::default(), read_data: Default::default(), _words: words }
    }
}

impl<T: Synth, const A: usize> Logic for Rom<T, A> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.read_data.connect();
    }
    fn hdl(&self) -> Verilog {
        let n = T::BITS;
        let mut text = format!(
            "(* rom_style = \"block\" *) reg [{}:0] cells [0:{last}];\ninteger init_i;\ninitial begin\n\
             \x20 for (init_i = 0; init_i <= {last}; init_i = init_i + 1) cells[init_i] = {n}'d0;\n",
            n - 1,
            last = (1usize << A) - 1,
        );
        for (i, word) in self._words.iter().enumerate() {
            text += &format!("  cells[{i}] = {n}'h{word:x};\n");
        }
        Verilog::Custom(text + "end\nalways @(posedge clock) read_data <= cells[read_addr];\n")
    }
}
