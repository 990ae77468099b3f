//! Two masters at once, a host that answers out of order: each gets its own, whole.
use super::*;
use crate::tb::Tb;
use std::collections::VecDeque;

/// What is read at an address.
fn word(addr: u32, beat: u32) -> u32 {
    addr.wrapping_mul(0x9e37_79b9).wrapping_add(beat)
}

fn read<const W: usize, const K: usize, const LA: usize, const LO: usize>(seed: u64, stall: u32) {
    let mut tb = Tb::with_seed(&format!("masters_rd_w{W}"), Reads::<W, K, LA, LO>::default(), seed);
    let fields = ["addr", "id", "len", "user"];
    let ar = tb.sink_of("ar_", &fields, stall);
    let r = tb.source_of("r_", &["id", "data", "resp", "last"], stall);
    let asks = ["a_ar_", "b_ar_"].map(|prefix| tb.source_of(prefix, &fields, stall));
    let answers = ["a_r_", "b_r_"].map(|prefix| tb.sink_of(prefix, &["id", "data", "resp", "last"], stall));
    tb.reset();
    // By master and id: address, beats, those that have come.
    let mut out: [Vec<Option<(u32, u32, u32)>>; 2] = [vec![None; 1 << LA], vec![None; 256]];
    let mut host: Vec<(u32, u32, u32, u32)> = Vec::new();
    let (mut begun, mut done) = ([0; 2], [0; 2]);
    while done.iter().sum::<u64>() < 3000 {
        for master in 0..2 {
            let id = tb.rng().below(out[master].len() as u64) as usize;
            if tb.rng().percent(20) && out[master][id].is_none() && begun[0] + begun[1] < 3000 {
                let (addr, beats) = (tb.rng().next_u32(), 1 + tb.rng().below(6) as u32);
                // Who asks is also the function, in this test.
                asks[master].push_fields(&[&[addr, 5], &[id as u32], &[beats - 1], &[master as u32]]);
                out[master][id] = Some((addr, beats, 0));
                begun[master] += 1;
            }
        }
        while let Some(f) = ar.pop_fields() {
            assert_eq!(f[0][1], 5);
            assert_eq!(f[1][0] >> LA, f[3][0], "whose it is stands in the id");
            host.push((f[1][0], f[0][0], f[2][0] + 1, 0));
        }
        if r.pending() < 2 && !host.is_empty() {
            let n = tb.rng().below(host.len() as u64) as usize;
            let (id, addr, beats, beat) = host[n];
            let data: Vec<u32> = (0..W / 32).map(|_| word(addr, beat)).collect();
            r.push_fields(&[&[id], &data, &[addr & 2], &[u32::from(beat + 1 == beats)]]);
            host[n].3 += 1;
            if beat + 1 == beats {
                host.swap_remove(n);
            }
        }
        tb.cycle();
        for master in 0..2 {
            while let Some(f) = answers[master].pop_fields() {
                let slot = &mut out[master][f[0][0] as usize];
                let (addr, beats, beat) = slot.expect("it was asked for");
                assert!(f[1].iter().all(|w| *w == word(addr, beat)), "master {master}");
                assert_eq!((f[2][0], f[3][0]), (addr & 2, u32::from(beat + 1 == beats)));
                *slot = (beat + 1 < beats).then_some((addr, beats, beat + 1));
                done[master] += u64::from(slot.is_none());
            }
        }
        assert!(tb.cycles() < 300_000, "{begun:?} begun, {done:?} done");
    }
    assert!(done.iter().all(|n| *n > 1000), "{done:?}");
}

#[test]
fn each_master_reads_its_own() {
    read::<64, 8, 8, 9>(1, 30);
    read::<512, 64, 9, 10>(2, 30);
    read::<64, 8, 9, 10>(3, 0);
}

fn written<const W: usize, const K: usize>(seed: u64, stall: u32) {
    let mut tb = Tb::with_seed(&format!("masters_wr_w{W}"), Writes::<W, K>::default(), seed);
    let (aw, w, b) = (tb.sink_of("aw_", &["addr", "len", "user"], stall), tb.sink_of("w_", &["data", "strb", "last"], stall), tb.source_of("b_", &["resp"], stall));
    let addresses = ["a_aw_", "b_aw_"].map(|prefix| tb.source_of(prefix, &["addr", "len", "user"], stall));
    let data = ["a_w_", "b_w_"].map(|prefix| tb.source_of(prefix, &["data", "strb", "last"], stall));
    let answers = ["a_b_", "b_b_"].map(|prefix| tb.sink_of(prefix, &["resp"], stall));
    tb.reset();
    let mut bursts: [VecDeque<(u32, u32)>; 2] = Default::default();
    let mut expected: [VecDeque<u32>; 2] = Default::default();
    // The burst whose beats come: master, address, beats, those that have come.
    let mut current: VecDeque<(usize, u32, u32, u32)> = VecDeque::new();
    let (mut begun, mut done) = ([0; 2], [0; 2]);
    while done.iter().sum::<u64>() < 3000 {
        for master in 0..2 {
            if tb.rng().percent(30) && bursts[master].len() < 4 && begun[0] + begun[1] < 3000 {
                let (addr, beats) = (tb.rng().next_u32(), 1 + tb.rng().below(5) as u32);
                addresses[master].push_fields(&[&[addr, 7], &[beats - 1], &[master as u32]]);
                for beat in 0..beats {
                    let words: Vec<u32> = (0..W / 32).map(|_| word(addr, beat)).collect();
                    let strobes = vec![(addr ^ beat) & ((1u64 << K.min(32)) - 1) as u32; K.div_ceil(32)];
                    data[master].push_fields(&[&words, &strobes, &[u32::from(beat + 1 == beats)]]);
                }
                bursts[master].push_back((addr, beats));
                begun[master] += 1;
            }
        }
        tb.cycle();
        while let Some(f) = aw.pop_fields() {
            let master = f[2][0] as usize;
            let (addr, beats) = bursts[master].pop_front().expect("it was begun");
            assert_eq!((f[0][0], f[0][1], f[1][0]), (addr, 7, beats - 1));
            current.push_back((master, addr, beats, 0));
        }
        while !current.is_empty() {
            let Some(f) = w.pop_fields() else { break };
            let (master, addr, beats, beat) = current[0];
            assert!(f[0].iter().all(|x| *x == word(addr, beat)), "a beat of another burst");
            assert_eq!(f[1][0], (addr ^ beat) & ((1u64 << K.min(32)) - 1) as u32);
            assert_eq!(f[2][0], u32::from(beat + 1 == beats));
            current[0].3 += 1;
            if beat + 1 == beats {
                current.pop_front();
                let resp = addr & 2;
                b.push_fields(&[&[resp]]);
                expected[master].push_back(resp);
            }
        }
        for master in 0..2 {
            while let Some(f) = answers[master].pop_fields() {
                assert_eq!(Some(f[0][0]), expected[master].pop_front(), "answer to master {master}");
                done[master] += 1;
            }
        }
        assert!(tb.cycles() < 300_000, "{begun:?} begun, {done:?} done");
    }
    assert!(done.iter().all(|n| *n > 1000), "{done:?}");
}

#[test]
fn each_master_writes_whole_bursts() {
    written::<64, 8>(4, 30);
    written::<512, 64>(5, 30);
    written::<64, 8>(6, 0);
}
