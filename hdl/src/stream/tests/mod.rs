//! Stream blocks under random stalls, at full rate, at W=64 and W=512, plain and as chaos builds.

pub(crate) mod yard;

use crate::stream::chaos;
use crate::tb::{AxisSink, AxisSource, Tb};
use yard::{Yard, MSG_BITS, WIDE_BITS};

/// Stall percentages of (source, sink).
const STALLS: [[u32; 2]; 9] = [[0, 0], [0, 30], [0, 80], [30, 0], [30, 30], [30, 80], [80, 0], [80, 30], [80, 80]];

/// Blocks with one record input and output; capacity (0: no level port) and latency in cycles.
const MSG_BLOCKS: [(&str, u64, u64); 5] = [("mslice", 0, 1), ("mfifo1", 2, 1), ("mfifo4", 16, 1), ("mfifo7", 128, 1), ("mskid", 0, 1)];
const AXIS_BLOCKS: [(&str, u64); 3] = [("aslice", 1), ("afifo4", 2), ("afifo7", 3)];

/// Runs `test` on every build: (test bench, bytes per beat, chaos).
fn builds(test: impl Fn(&mut Tb, usize, bool)) {
    test(&mut Tb::new("streams64", Yard::<64, 8, 4>::default()), 8, false);
    test(&mut Tb::new("streams512", Yard::<512, 64, 7>::default()), 64, false);
    test(&mut Tb::new("chaos64", chaos::scoped(7, Yard::<64, 8, 4>::default)), 8, true);
}

fn frames(tb: &mut Tb, count: usize, longest: u64) -> Vec<Vec<u8>> {
    (0..count)
        .map(|i| {
            // All short lengths once, then random ones.
            let len = if (i as u64) < longest { i as u64 + 1 } else { tb.rng().range(1, longest) };
            tb.rng().bytes(len as usize)
        })
        .collect()
}

fn collect(tb: &mut Tb, m: &AxisSink, count: usize, limit: u64) -> Vec<Vec<u8>> {
    let mut got = Vec::new();
    tb.run_until(limit, |_| {
        got.extend(m.pop());
        got.len() == count
    });
    got
}

#[test]
fn records_pass_in_order_under_stalls() {
    builds(|tb, _, _| {
        for (name, ..) in MSG_BLOCKS {
            let (s, m) = (tb.source(&format!("{name}_s"), 0), tb.sink(&format!("{name}_m"), 0));
            for stalls in STALLS {
                s.set_stall(stalls[0]);
                m.set_stall(stalls[1]);
                let sent: Vec<_> = (0..400).map(|_| tb.rng().words(MSG_BITS as u32)).collect();
                sent.iter().for_each(|r| s.push(r.clone()));
                tb.run_until(60_000, |_| m.len() == sent.len());
                let got: Vec<_> = std::iter::from_fn(|| m.pop()).collect();
                assert!(got == sent, "{name} {stalls:?}");
            }
        }
    });
}

#[test]
fn packets_pass_in_order_under_stalls() {
    builds(|tb, k, _| {
        for (name, _) in AXIS_BLOCKS {
            let (s, m) = (tb.axis_source(&format!("{name}_s"), 0), tb.axis_sink(&format!("{name}_m"), 0));
            for stalls in STALLS {
                s.set_stall(stalls[0]);
                m.set_stall(stalls[1]);
                let sent = frames(tb, 4 * k, 3 * k as u64);
                sent.iter().for_each(|f| s.push(f));
                assert!(collect(tb, &m, sent.len(), 60_000) == sent, "{name} {stalls:?}");
            }
        }
    });
}

#[test]
fn without_stalls_one_transfer_per_cycle() {
    builds(|tb, k, chaos| {
        if chaos {
            return;
        }
        for (name, capacity, latency) in MSG_BLOCKS {
            let (s, m) = (tb.source(&format!("{name}_s"), 0), tb.sink(&format!("{name}_m"), 0));
            (0..500u64).for_each(|i| s.push(i));
            tb.run(500 + latency);
            assert_eq!(m.len(), 500, "{name}: N items in N + {latency} cycles");
            // From full as well: the output stops, everything fills, then both run.
            while m.pop().is_some() {}
            m.set_stall(90);
            (0..1000u64).for_each(|i| s.push(i));
            tb.run(400);
            m.set_stall(0);
            tb.run(50);
            let before = m.taken();
            tb.run(200);
            assert_eq!(m.taken() - before, 200, "{name}: full rate from full, capacity {capacity}");
            tb.run_until(2000, |_| s.pending() == 0);
            tb.run(10);
        }
        for (name, latency) in AXIS_BLOCKS {
            let (s, m) = (tb.axis_source(&format!("{name}_s"), 0), tb.axis_sink(&format!("{name}_m"), 0));
            (0..100).for_each(|_| s.push(&vec![9; 5 * k]));
            tb.run(500 + latency);
            assert_eq!(m.beats(), 500, "{name}: N beats in N + {latency} cycles");
        }
    });
}

#[test]
fn levels_count_what_is_held_and_reset_empties() {
    builds(|tb, _, chaos| {
        for (name, capacity, _) in MSG_BLOCKS.iter().filter(|block| block.1 > 0) {
            let (s, m) = (tb.source(&format!("{name}_s"), 40), tb.sink(&format!("{name}_m"), 60));
            let level = format!("{name}_level");
            let mut peak = 0;
            (0..2000u64).for_each(|i| s.push(i));
            for _ in 0..1500 {
                tb.cycle();
                assert_eq!(tb.get(&level), s.taken() - m.taken(), "{name}");
                peak = peak.max(tb.get(&level));
            }
            assert!(peak <= capacity + 2, "{name}: {peak} items");
            if *capacity <= 16 {
                assert!(peak >= *capacity, "{name}: never filled, {peak}");
            }
            tb.reset();
            assert_eq!((tb.get(&level), tb.get(&format!("{name}_m$valid"))), (0, 0), "{name} {chaos}");
            let (pending, taken) = (s.pending(), m.taken());
            tb.run_until(40_000, |_| s.pending() == 0 && tb_empty(&m, taken, pending));
        }
    });
}

/// Everything still queued at the reset has come out.
fn tb_empty(m: &crate::tb::Sink, before: u64, pending: usize) -> bool {
    m.taken() == before + pending as u64
}

#[test]
fn chaos_stalls_and_plain_builds_have_no_trace_of_it() {
    let plain = crate::emit::emit("plain", Yard::<64, 8, 4>::default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(!plain.contains("lfsr"));
    let wild = crate::emit::emit("wild", chaos::scoped(3, Yard::<64, 8, 4>::default)).unwrap_or_else(|e| panic!("{e}"));
    assert!(wild.contains("lfsr"));
    assert_eq!(crate::emit::emit("plain", Yard::<64, 8, 4>::default()).unwrap_or_else(|e| panic!("{e}")), plain);
    let mut tb = Tb::new("chaos64", chaos::scoped(7, Yard::<64, 8, 4>::default));
    let (s, m) = (tb.source("mslice_s", 0), tb.sink("mslice_m", 0));
    (0..5000u64).for_each(|i| s.push(i));
    tb.run(5000);
    assert!((1000..4500).contains(&m.taken()), "chaos let {} of 5000 pass", m.taken());
}

#[test]
fn record_arbiter_is_fair_lossless_and_full_rate() {
    builds(|tb, _, chaos| {
        let s: Vec<_> = (0..3).map(|i| tb.source(&format!("marb_s${i}"), 0)).collect();
        let m = tb.sink("marb_m", 0);
        let mut next = [0u64; 3];
        for (round, stalls) in STALLS.iter().enumerate() {
            s.iter().for_each(|s| s.set_stall(stalls[0]));
            m.set_stall(stalls[1]);
            for (i, s) in s.iter().enumerate() {
                (0..200).for_each(|n| s.push((i as u64) << 32 | (round as u64 * 200 + n)));
            }
            let start = tb.cycles();
            tb.run_until(60_000, |_| m.len() == 600);
            if *stalls == [0, 0] && !chaos {
                assert!(tb.cycles() - start <= 603, "600 records took {}", tb.cycles() - start);
            }
            let got: Vec<_> = std::iter::from_fn(|| m.pop_u64()).collect();
            if stalls[0] == 0 {
                // Nobody waits for more than the two others.
                for three in got[..570].chunks(3) {
                    let mut who: Vec<_> = three.iter().map(|r| r >> 32).collect();
                    who.sort_unstable();
                    assert_eq!(who, [0, 1, 2], "{stalls:?}");
                }
            }
            for r in got {
                let i = (r >> 32) as usize;
                assert_eq!(r & 0xffff_ffff, next[i], "input {i}");
                next[i] += 1;
            }
        }
        // One busy input alone keeps the full rate.
        s[1].set_stall(0);
        m.set_stall(0);
        // Long stalls that have begun run out first.
        tb.run(50);
        (0..300u64).for_each(|n| s[1].push(n));
        tb.run(303);
        assert!(chaos || m.len() == 300, "alone: {}", m.len());
        tb.run_until(3000, |_| m.len() == 300);
    });
}

#[test]
fn packet_arbiter_keeps_packets_whole_and_is_fair() {
    builds(|tb, k, chaos| {
        let s: Vec<_> = (0..3).map(|i| tb.axis_source(&format!("aarb_s${i}"), 0)).collect();
        let m = tb.axis_sink("aarb_m", 0);
        for stalls in STALLS {
            s.iter().for_each(|s: &AxisSource| s.set_stall(stalls[0]));
            m.set_stall(stalls[1]);
            let mut sent: Vec<_> = (0..3).map(|_| frames(tb, 60, 4 * k as u64)).collect();
            for (i, list) in sent.iter_mut().enumerate() {
                list.iter_mut().for_each(|f| f[0] = i as u8);
                list.iter().for_each(|f| s[i].push(f));
            }
            let beats: u64 = s.iter().map(|s| s.pending() as u64).sum();
            let (start, before) = (tb.cycles(), m.taken());
            tb.run_until(60_000, |_| m.taken() - before == beats);
            if stalls == [0, 0] && !chaos {
                assert!(tb.cycles() - start <= beats + 3, "{beats} beats took {}", tb.cycles() - start);
            }
            let got = collect(tb, &m, 180, 1000);
            let mut at = [0; 3];
            for (n, f) in got.iter().enumerate() {
                let i = f[0] as usize;
                assert!(*f == sent[i][at[i]], "input {i} packet {}", at[i]);
                at[i] += 1;
                if stalls[0] == 0 && n < 170 {
                    let (least, most) = (at.iter().min(), at.iter().max());
                    assert!(most.zip(least).is_some_and(|(a, b)| a - b <= 1), "unfair: {at:?}");
                }
            }
        }
    });
}

#[test]
fn fork_gives_both_everything() {
    builds(|tb, _, chaos| {
        let (s, m0, m1) = (tb.source("twin_s", 0), tb.sink("twin_m0", 0), tb.sink("twin_m1", 0));
        for (round, stalls) in STALLS.iter().enumerate() {
            s.set_stall(stalls[0]);
            m0.set_stall(stalls[1]);
            m1.set_stall(if round % 2 == 0 { stalls[1] } else { 50 });
            let sent: Vec<_> = (0..300).map(|_| tb.rng().words(48)).collect();
            sent.iter().for_each(|r| s.push(r.clone()));
            let start = tb.cycles();
            tb.run_until(60_000, |_| m0.len() == 300 && m1.len() == 300);
            assert!(round != 0 || chaos || tb.cycles() - start <= 301);
            for m in [&m0, &m1] {
                assert!(std::iter::from_fn(|| m.pop()).collect::<Vec<_>>() == sent, "{stalls:?}");
            }
        }
    });
}

/// Record ports: bytes in words, the length in a word.
fn words(record: &[u8], bits: usize) -> Vec<u32> {
    let mut padded = record.to_vec();
    padded.resize(bits.div_ceil(32) * 4, 0);
    padded.chunks(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

#[test]
fn records_become_packets() {
    builds(|tb, k, chaos| {
        for (name, bits) in [("to", WIDE_BITS), ("nar", 40)] {
            let s = tb.source_of(&format!("{name}_s"), &["data", "len"], 0);
            let m = tb.axis_sink(&format!("{name}_m"), 0);
            for (round, stalls) in STALLS.iter().enumerate() {
                s.set_stall(stalls[0]);
                m.set_stall(stalls[1]);
                let sent = frames(tb, 2 * bits / 8, bits as u64 / 8);
                let noise = tb.rng().bytes(bits / 8);
                for f in &sent {
                    // What lies behind the length must not get out.
                    let record: Vec<u8> = f.iter().chain(&noise[f.len()..]).copied().collect();
                    s.push_fields(&[&words(&record, bits), &[f.len() as u32]]);
                }
                let beats: u64 = sent.iter().map(|f| f.len().div_ceil(k) as u64).sum();
                let (start, before) = (tb.cycles(), m.taken());
                tb.run_until(60_000, |_| m.taken() - before == beats);
                assert!(round != 0 || chaos || tb.cycles() - start <= beats + 2, "{name}: gaps");
                assert!(collect(tb, &m, sent.len(), 1000) == sent, "{name} {stalls:?}");
            }
        }
    });
}

#[test]
fn packets_become_records() {
    builds(|tb, k, chaos| {
        for (name, bits) in [("from", WIDE_BITS), ("few", 40)] {
            let s = tb.axis_source(&format!("{name}_s"), 0);
            let m = tb.sink_of(&format!("{name}_m"), &["data", "len"], 0);
            for (round, stalls) in STALLS.iter().enumerate() {
                s.set_stall(stalls[0]);
                m.set_stall(stalls[1]);
                // Some are longer than the record.
                let mut sent = frames(tb, 260, bits as u64 / 8 + 20);
                if round == 1 {
                    let long = tb.rng().bytes(300 * k);
                    sent.push(long);
                    sent.push(vec![5]);
                }
                sent.iter().for_each(|f| s.push(f));
                let beats = s.pending() as u64;
                let start = tb.cycles();
                tb.run_until(60_000, |_| m.len() == sent.len());
                assert!(round != 0 || chaos || tb.cycles() - start <= beats + 2, "{name}: gaps");
                for f in &sent {
                    let got = m.pop_fields().unwrap_or_default();
                    let kept = &f[..f.len().min(bits / 8)];
                    assert_eq!(got, [words(kept, bits), vec![f.len() as u32]], "{name} {stalls:?}");
                }
            }
        }
    });
}
