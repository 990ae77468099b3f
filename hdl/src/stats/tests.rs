//! Every event is counted, also while the control bus reads without pause.

use super::Stats;
use crate::msg::{CtlReq, CtlResp};
use crate::tb::{Fields, IntoWords, Tb};

fn exercise<const N: usize>(name: &str, stall: u32) {
    let mut tb = Tb::new(name, Stats::<N>::default());
    let (req, resp) = (Fields::of::<CtlReq>(), Fields::of::<CtlResp>());
    let (ctl, answers) = (tb.source("s_ctl", stall), tb.sink("m_ctl", stall));
    let mut counts = vec![0u64; N];
    let mut pairs: Vec<(usize, u64)> = Vec::new();
    // Some counters run in every cycle, some rarely, some never.
    let rate = |i: usize| [100, 3, 50, 0, 97][i % 5];
    let mut low = None;
    for cycle in 0..6000u32 {
        let mut inc = 0u128;
        for (i, count) in counts.iter_mut().enumerate() {
            if tb.rng().percent(rate(i)) {
                inc |= 1 << i;
                *count += 1;
            }
        }
        tb.set_wide("inc", inc.into_words());
        if ctl.pending() < 2 {
            let line = tb.rng().below(N as u64);
            pairs.push((line as usize, 0));
            for word in 0..2 {
                ctl.push(req.pack(&[("line", line.into()), ("word", word)]));
            }
        }
        tb.cycle();
        while let Some(got) = answers.pop() {
            let data = resp.get(&got, "data") as u64;
            match low.take() {
                None => low = Some(data),
                Some(low) => {
                    let (line, _) = pairs.remove(0);
                    let value = data << 32 | low;
                    // An answer is some cycles old.
                    assert!(value <= counts[line] && value + 200 > counts[line], "cycle {cycle} counter {line}: {value} of {}", counts[line]);
                }
            }
        }
    }
    tb.set_wide("inc", 0u128.into_words());
    tb.run_until(2000, |_| ctl.pending() == 0);
    tb.run(100);
    while answers.pop().is_some() {}
    for line in 0..=N {
        for word in [0u128, 1, 2] {
            ctl.push(req.pack(&[("line", line as u128), ("word", word), ("write", 1), ("data", 77)]));
        }
    }
    tb.run_until(20_000, |_| answers.len() == 3 * (N + 1));
    for line in 0..=N {
        let word = || answers.pop().map(|got| (resp.get(&got, "data") as u64, resp.get(&got, "err"))).expect("counted");
        let words = [word(), word(), word()];
        match counts.get(line) {
            Some(count) => assert_eq!(words, [(count & 0xffff_ffff, 0), (count >> 32, 0), (0, 0)], "counter {line}"),
            None => assert_eq!(words, [(0, 1); 3], "beyond the last counter"),
        }
    }
}

#[test]
fn full_size_is_lossless_under_constant_reads() {
    exercise::<128>("stats128", 0);
}

#[test]
fn odd_size_is_lossless() {
    exercise::<11>("stats11", 40);
}
