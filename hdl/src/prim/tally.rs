//! Small event counters that never stop and are never cleared: a row of them for each function, or one register each.

use ferric_hdl_derive::BlockNew;
use rust_hdl::prelude::*;

/// Counters that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// How many counters.
    pub events: usize,
    /// The input `whose` that says whose events these are; `None`: they are the card's, which is function 0.
    pub whose: Option<usize>,
}

/// `N` counters of `C` bits, modulo `2^C`, for `2^LF` functions. `inc[i]` adds one to counter `i`: to that of function `whose[p]` (its low `LF` bits) if the
/// lane of `i` has place `p` of the `L`, else to function 0's. `y` is counter `sel` of function `row` as it was in the cycle before, without the events of that cycle
/// (zero when there is no such counter).
///
/// `lanes`: the counters from number 0 on. A lane with a place is one LUT RAM, a word for each function.
#[derive(LogicBlock, BlockNew)]
#[given(lanes: &[Lane])]
#[demand(lanes.iter().map(|lane| lane.events).sum::<usize>() <= N, "more counters than {N}")]
#[demand(lanes.iter().all(|lane| lane.whose.is_none_or(|place| place < L)), "a lane with a place beyond {L}")]
#[demand(N <= 1 << LN && (1..=12).contains(&LF), "{LN} bits for {N} counters, {LF} for a function")]
pub struct Tally<const N: usize, const L: usize, const LN: usize, const LF: usize, const C: usize> {
    pub clock: Signal<In, Clock>,
    pub inc: Signal<In, Bits<N>>,
    pub whose: [Signal<In, Bits<12>>; L],
    pub sel: Signal<In, Bits<LN>>,
    pub row: Signal<In, Bits<LF>>,
    pub y: Signal<Out, Bits<C>>,
    #[init(lanes.to_vec())]
    _lanes: Vec<Lane>,
}

impl<const N: usize, const L: usize, const LN: usize, const LF: usize, const C: usize> Logic for Tally<N, L, LN, LF, C> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.y.connect();
    }
    fn hdl(&self) -> Verilog {
        let (mut text, mut arms, mut at) = (String::new(), String::new(), 0);
        for (n, lane) in self._lanes.iter().enumerate() {
            match lane.whose {
                Some(place) => {
                    text += &rows(n, lane.events, at, &format!("whose${place}[{}:0]", LF - 1), C, LF);
                    (0..lane.events).for_each(|i| arms += &format!("  {LN}'d{}: y <= rows{n}[row][{}:{}];\n", at + i, (i + 1) * C - 1, i * C));
                }
                None => {
                    for i in at..at + lane.events {
                        text += &format!("reg [{c}:0] n{i};\ninitial n{i} = {C}'d0;\nalways @(posedge clock) n{i} <= n{i} + {{{{{c}{{1'b0}}}}, inc[{i}]}};\n", c = C - 1);
                        arms += &format!("  {LN}'d{i}: y <= row == {LF}'d0 ? n{i} : {C}'d0;\n");
                    }
                }
            }
            at += lane.events;
        }
        Verilog::Custom(format!("{text}initial y = {C}'d0;\nalways @(posedge clock) case (sel)\n{arms}  default: y <= {C}'d0;\nendcase\n"))
    }
}

/// The counters of a lane: they are read, changed and written in the cycle of the event.
fn rows(n: usize, events: usize, at: usize, whose: &str, bits: usize, log: usize) -> String {
    let (high, zero) = (bits - 1, super::ram::zeros_of(&format!("rows{n}"), &format!("init{n}"), 1 << log, events * bits));
    let sums: Vec<_> = (0..events).rev().map(|i| format!("rows{n}[{whose}][{}:{}] + {{{{{high}{{1'b0}}}}, inc[{}]}}", (i + 1) * bits - 1, i * bits, at + i)).collect();
    format!(
        "(* ram_style = \"distributed\" *) reg [{}:0] rows{n} [0:{}];\n{zero}always @(posedge clock) if (|inc[{}:{at}]) rows{n}[{whose}] <= {{{}}};\n",
        events * bits - 1,
        (1usize << log) - 1,
        at + events - 1,
        sums.join(",\n  ")
    )
}
