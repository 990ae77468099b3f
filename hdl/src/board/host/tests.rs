//! Random accesses against a list of what is to come of them.

use super::*;
use crate::tb::{Rng, Tb};
use std::collections::BTreeMap;

/// Which of the three a single beat goes to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Target {
    Register,
    Doorbell,
    Table,
}

fn target(addr: u64, beats: u64) -> Option<Target> {
    let inside = addr >> 21 == 0 && beats == 1;
    match (inside, addr >> 20 & 1, addr & 0xfffff) {
        (true, 1, 0..=0x1fff) => Some(Target::Table),
        (true, 0, offset) => match offset & 0xf000 {
            0 => Some(Target::Register),
            0x1000 | 0x2000 => Some(Target::Doorbell),
            _ => None,
        },
        _ => None,
    }
}

fn address(rng: &mut Rng) -> u64 {
    let window = rng.below(16) << 16;
    match rng.below(10) {
        0..=3 => window | (rng.below(0x400) * 4),
        4..=6 => window | 0x1000 | (rng.below(0x400) * 8),
        7 | 8 => 1 << 20 | (rng.below(0x800) * 4),
        _ => (rng.next_u64() >> rng.below(60)) & !3,
    }
}

fn register(addr: u64) -> u32 {
    (addr as u32 ^ 0x1234).wrapping_mul(0x9e37_79b9)
}

fn run(stall: u32) {
    let mut tb = Tb::new("ferric_host_w512", Host::<512, 64>::default());
    let (aw, w) = (tb.source_of("s_aw_", &["id", "addr", "len", "size", "burst"], stall), tb.source_of("s_w_", &["data", "strb", "last"], stall));
    let b = tb.sink_of("s_b_", &["id", "resp"], stall);
    let (ar, r) = (tb.source_of("s_ar_", &["id", "addr", "len", "size", "burst"], stall), tb.sink_of("s_r_", &["id", "data", "resp", "last"], stall));
    let lites = ["csr", "tbl"].map(|p| {
        let name = |c: &str| format!("{p}_{c}_");
        (
            tb.sink_of(&name("aw"), &["addr"], stall),
            tb.sink_of(&name("w"), &["data", "strb"], stall),
            tb.source_of(&name("b"), &["resp"], stall),
            tb.sink_of(&name("ar"), &["addr"], stall),
            tb.source_of(&name("r"), &["data", "resp"], stall),
        )
    });
    let (db_aw, db_w, db_b) = (tb.sink_of("db_aw_", &["addr", "len"], stall), tb.sink_of("db_w_", &["data", "strb", "last"], stall), tb.source_of("db_b_", &["resp"], stall));
    let mut wanted: BTreeMap<Target, Vec<Vec<u32>>> = BTreeMap::new();
    let (mut ids, mut reads) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        let rng = tb.rng();
        let (addr, id) = (address(rng), rng.below(16) as u32);
        let beats = if rng.percent(10) { rng.range(2, 5) } else { 1 };
        let split = [addr as u32, (addr >> 32) as u32];
        aw.push_fields(&[&[id], &split, &[beats as u32 - 1], &[6], &[1]]);
        ids.push(id);
        for beat in 0..beats {
            let data = rng.words(512);
            let lane = addr % 64;
            let strobes = match rng.below(8) {
                0 => u64::MAX,
                1 => rng.next_u64(),
                2 | 3 => 0xff << (lane & !7),
                _ => 15 << lane,
            };
            let strobe_words = [strobes as u32, (strobes >> 32) as u32];
            w.push_fields(&[&data, &strobe_words, &[u32::from(beat == beats - 1)]]);
            let to = target(addr, beats);
            let word = [data[lane as usize / 4], (strobes >> lane) as u32 & 15];
            let what = match to {
                Some(Target::Register) => vec![addr as u32 & 0xfffff, word[0], word[1]],
                Some(Target::Table) => vec![addr as u32 & 0x1fff, word[0], word[1]],
                Some(Target::Doorbell) => [&[addr as u32 & 0xfffff, 0][..], &data, &strobe_words, &[1]].concat(),
                None => continue,
            };
            wanted.entry(to.unwrap_or(Target::Table)).or_default().push(what);
        }
        let (addr, id) = (address(rng), rng.below(16) as u32);
        let beats = if rng.percent(10) { rng.range(2, 5) } else { 1 };
        ar.push_fields(&[&[id], &[addr as u32, (addr >> 32) as u32], &[beats as u32 - 1], &[2], &[1]]);
        reads.push((id, addr, beats));
    }
    let total: usize = reads.iter().map(|r| r.2 as usize).sum();
    let mut got: BTreeMap<Target, Vec<Vec<u32>>> = BTreeMap::new();
    tb.run_until(100_000, |_| {
        for ((aw, w, b, ar, r), target) in lites.iter().zip([Target::Register, Target::Table]) {
            if !aw.is_empty() && !w.is_empty() {
                got.entry(target).or_default().push([aw.pop().unwrap_or_default(), w.pop().unwrap_or_default()].concat());
                b.push(0u8);
            }
            if let Some(addr) = ar.pop_u64() {
                r.push_fields(&[&[register(addr | (target as u64) << 28)], &[0]]);
            }
        }
        if !db_aw.is_empty() && !db_w.is_empty() {
            got.entry(Target::Doorbell).or_default().push([db_aw.pop().unwrap_or_default(), db_w.pop().unwrap_or_default()].concat());
            db_b.push(0u8);
        }
        b.len() == ids.len() && r.len() == total && got.values().map(Vec::len).sum::<usize>() == wanted.values().map(Vec::len).sum::<usize>()
    });
    assert!(got == wanted);
    assert!(wanted.values().all(|w| w.len() > 30));
    for id in ids {
        assert_eq!(b.pop(), Some(vec![id, 0]));
    }
    for (id, addr, beats) in reads {
        for beat in 1..=beats {
            let fields = r.pop_fields().unwrap_or_default();
            let mut line = vec![0; 16];
            line[addr as usize % 64 / 4] = match target(addr, beats) {
                Some(Target::Register) => register(addr & 0xfffff | (Target::Register as u64) << 28),
                Some(Target::Table) => register(addr & 0x1fff | (Target::Table as u64) << 28),
                _ => 0,
            };
            assert_eq!(fields, [vec![id], line, vec![0], vec![u32::from(beat == beats)]], "{addr:x}");
        }
    }
}

#[test]
fn registers_doorbells_table_and_nothing_else() {
    run(0);
    run(40);
}

/// The shortest doorbell: what the cost of one write at a time is.
#[test]
fn a_doorbell_takes_five_cycles() {
    let mut tb = Tb::new("ferric_host_w512", Host::<512, 64>::default());
    let (aw, w) = (tb.source_of("s_aw_", &["id", "addr", "len", "size", "burst"], 0), tb.source_of("s_w_", &["data", "strb", "last"], 0));
    let (_, db_aw, _) = (tb.sink_of("s_b_", &["id", "resp"], 0), tb.sink_of("db_aw_", &["addr", "len"], 0), tb.sink_of("db_w_", &["data", "strb", "last"], 0));
    for _ in 0..50 {
        aw.push_fields(&[&[1], &[0x1000, 0], &[0], &[6], &[1]]);
        w.push_fields(&[&[0; 16], &[0xff, 0], &[1]]);
    }
    let start = tb.cycles();
    tb.run_until(1000, |_| db_aw.len() == 50);
    let each = (tb.cycles() - start) as f64 / 50.0;
    assert!((4.9..5.2).contains(&each), "{each}");
}
