//! Every event is counted for its function, also while the control bus reads without pause.

use super::{Stats, FUNCTION_AT, OWN, TOTAL};
use crate::msg::{CtlReq, CtlResp};
use crate::prim::tally::Lane;
use crate::tb::{Fields, IntoWords, Sink, Source, Tb};
use std::collections::VecDeque;

/// Places of those who say whose events theirs are.
const L: usize = 5;
/// Answers are some cycles old: those that the bus waited, and of all functions together the time of looking at each.
const AGE: u64 = 100;

/// An access: counter, function, word.
type Access = (u64, u64, u32);

struct Bench {
    tb: Tb,
    ctl: Source,
    answers: Sink,
    lanes: Vec<Lane>,
    /// Of each counter, by function.
    counts: Vec<Vec<u64>>,
    asked: VecDeque<Access>,
}

impl Bench {
    fn new<const N: usize, const LF: usize, const LS: usize, const C: usize, const H: usize>(name: &str, lanes: &[Lane], stall: u32) -> Bench {
        let mut tb = Tb::new(name, Stats::<N, L, LF, LS, C, H>::new(lanes));
        let (ctl, answers) = (tb.source("s_ctl", stall), tb.sink("m_ctl", stall));
        Bench { tb, ctl, answers, lanes: lanes.to_vec(), counts: vec![vec![0; 1 << LF]; N], asked: VecDeque::new() }
    }

    fn functions(&self) -> u64 {
        self.counts[0].len() as u64
    }

    /// One cycle in which each counter has an event with the chance `rate(counter)`, and lane `n` is function `whose(n)`'s.
    fn cycle(&mut self, rate: impl Fn(usize) -> u32, whose: impl Fn(usize) -> u64) {
        let (mut inc, mut at) = (0u128, 0);
        for (n, lane) in self.lanes.iter().enumerate() {
            let function = lane.whose.map_or(0, |_| whose(n));
            if let Some(place) = lane.whose {
                self.tb.set(&format!("whose${place}"), function);
            }
            for i in at..at + lane.events {
                if self.tb.rng().percent(rate(i)) {
                    inc |= 1 << i;
                    self.counts[i][function as usize] += 1;
                }
            }
            at += lane.events;
        }
        self.tb.set_wide("inc", inc.into_words());
        self.tb.cycle();
    }

    fn quiet(&mut self) {
        self.tb.set_wide("inc", 0u128.into_words());
    }

    fn ask(&mut self, counter: u64, function: u64, word: u32) {
        let line = function << FUNCTION_AT | counter;
        // A write has no effect.
        let write = self.tb.rng().below(2);
        self.ctl.push(Fields::of::<CtlReq>().pack(&[("line", line.into()), ("word", word.into()), ("write", write.into()), ("data", 77)]));
        self.asked.push_back((counter, function, word));
    }

    fn answer(&mut self) -> Option<(Access, u64, bool)> {
        let got = self.answers.pop()?;
        let resp = Fields::of::<CtlResp>();
        Some((self.asked.pop_front().expect("asked"), resp.get(&got, "data") as u64, resp.get(&got, "err") != 0))
    }

    /// What it should be now.
    fn right(&self, (counter, function, word): Access) -> u64 {
        let of = &self.counts[counter as usize];
        if word >= TOTAL {
            of.iter().sum()
        } else {
            of[function as usize]
        }
    }

    /// Every counter of every function, and the totals, when all is quiet.
    fn settle(&mut self) {
        self.quiet();
        let (n, functions) = (self.counts.len() as u64, self.functions());
        self.tb.run(20);
        for counter in 0..n {
            (0..functions).for_each(|f| [OWN, OWN + 1].iter().for_each(|word| self.ask(counter, f, *word)));
            // Whoever asks for all may name any function.
            let any = self.tb.rng().below(functions);
            [TOTAL, TOTAL + 1, TOTAL + 2].iter().for_each(|word| self.ask(counter, any, *word));
        }
        for (counter, function) in [(n, 0), (0, functions), (n - 1, functions), ((1 << FUNCTION_AT) - 1, 0), (0, (1 << FUNCTION_AT) - 1)] {
            [OWN, OWN + 1, TOTAL, TOTAL + 1].iter().for_each(|word| self.ask(counter, function, *word));
        }
        while !self.asked.is_empty() {
            self.tb.cycle();
            let Some((access, data, err)) = self.answer() else { continue };
            let (counter, function, word) = access;
            let exists = counter < n && function < functions;
            let right = if exists && word < TOTAL + 2 { self.right(access) >> (32 * (word % 2)) & u64::from(u32::MAX) } else { 0 };
            assert_eq!((data, err), (right, !exists), "counter {counter} of function {function}, word {word}");
        }
    }
}

/// Blocks in the order of counters: some tell the function, others do not.
fn lanes(all: usize) -> Vec<Lane> {
    let mut lanes =
        vec![Lane { events: 2, whose: Some(3) }, Lane { events: 3, whose: None }, Lane { events: 1, whose: Some(0) }, Lane { events: all / 3, whose: Some(4) }, Lane { events: 1, whose: None }];
    lanes.push(Lane { events: all - lanes.iter().map(|l| l.events).sum::<usize>(), whose: Some(1) });
    lanes
}

/// Events in every cycle of functions that take turns, or of one, or at random, while the bus reads at will.
fn exercise(bench: &mut Bench, cycles: u64) {
    let (n, functions) = (bench.counts.len(), bench.functions());
    let mut low = None;
    for cycle in 0..cycles {
        // Some counters run in every cycle, some rarely, some never.
        let rate = |i: usize| [100, 3, 50, 0, 97][i % 5];
        let any = bench.tb.rng().below(functions);
        // The functions take turns, each with lanes of other places; or it is always the last one; or any.
        bench.cycle(rate, |lane| [cycle + lane as u64, functions - 1, any][(lane + cycle as usize / 4096) % 3] % functions);
        if bench.ctl.pending() < 2 {
            let (counter, function) = (bench.tb.rng().below(n as u64), bench.tb.rng().below(functions));
            let word = [OWN, OWN, OWN, TOTAL][bench.tb.rng().below(4) as usize];
            bench.ask(counter, function, word);
            bench.ask(counter, function, word + 1);
        }
        while let Some((access, data, err)) = bench.answer() {
            assert!(!err);
            match low.take() {
                None => low = Some(data),
                Some(low) => {
                    let (value, right) = (data << 32 | low, bench.right(access));
                    let age = AGE + 8 * functions;
                    assert!(value <= right && value + age > right, "cycle {cycle}, {access:?}: {value} of {right}");
                }
            }
        }
    }
    bench.quiet();
    while !bench.asked.is_empty() {
        bench.tb.cycle();
        bench.answer();
    }
    bench.settle();
}

#[test]
fn four_functions_are_lossless_under_constant_reads() {
    exercise(&mut Bench::new::<128, 2, 9, 10, 54>("stats128", &lanes(128), 0), 20_000);
}

#[test]
fn sixty_four_functions_are_lossless_under_constant_reads() {
    exercise(&mut Bench::new::<128, 6, 13, 14, 50>("stats128_64", &lanes(128), 0), 40_000);
}

#[test]
fn odd_size_is_lossless() {
    exercise(&mut Bench::new::<11, 2, 9, 10, 54>("stats11", &lanes(11), 40), 9_000);
}

/// A small counter comes round once in a visit at most: every counter of one function in every cycle, and no cycle without a wish to read.
#[test]
fn every_counter_in_every_cycle() {
    let whole: Vec<Lane> = (0..4).map(|place| Lane { events: 32, whose: Some(place) }).collect();
    let mut bench = Bench::new::<128, 2, 9, 10, 54>("stats128_full", &whole, 0);
    for cycle in 0..8_000u64 {
        bench.cycle(|_| 100, |lane| [2, cycle % 4, 3, cycle / 2 % 4][lane]);
        if bench.ctl.pending() < 2 {
            bench.ask(cycle % 128, 2, TOTAL);
        }
        bench.answer();
    }
    while !bench.asked.is_empty() {
        bench.quiet();
        bench.tb.cycle();
        bench.answer();
    }
    bench.settle();
}

/// A reset in the middle of an access forgets that and no count.
#[test]
fn reset_keeps_the_counts() {
    let mut bench = Bench::new::<11, 2, 9, 10, 54>("stats11", &lanes(11), 0);
    for n in 0..600u64 {
        bench.cycle(|i| [100, 20][i % 2], |_| n % 4);
        bench.tb.set("reset", u64::from(n % 100 > 97));
    }
    bench.tb.set("reset", 0);
    bench.settle();
}
