//! Good and bad writes at both widths, under stalls on all channels.

use super::Doorbell;
use crate::msg::{DoorbellMsg, WqeDoorbell};
use crate::tb::{Counted, Events, Fields, Sink, Source, Tb};
use ferric_abi::csr;
use std::collections::VecDeque;

struct Bench {
    tb: Tb,
    aw: Source,
    w: Source,
    b: Sink,
    doorbells: [Sink; 4],
    wqe: Sink,
    bytes: usize,
    stats: Counted,
    /// What they should have counted.
    counts: Events,
    expected: [VecDeque<Vec<(&'static str, u128)>>; 4],
    lines: VecDeque<(u16, Vec<u8>)>,
    sent: u64,
}

impl Bench {
    fn new(mut tb: Tb, bytes: usize, stall: u32) -> Bench {
        Bench {
            aw: tb.source_of("aw_", &["addr", "len"], stall),
            w: tb.source_of("w_", &["data", "strb", "last"], stall),
            b: tb.sink_of("b_", &["resp"], stall),
            doorbells: ["m_sq", "m_rq", "m_cq", "m_eq"].map(|port| tb.sink(port, stall)),
            wqe: tb.sink("m_wqe", stall),
            bytes,
            stats: Counted::new("stat", "stat_function", super::STATS),
            counts: Events::new(),
            expected: Default::default(),
            lines: VecDeque::new(),
            sent: 0,
            tb,
        }
    }

    /// One burst: `data` from byte `addr` on, as whole beats with strobes.
    fn write(&mut self, addr: u32, data: &[u8], strobes: &[bool]) {
        let first = addr as usize % self.bytes;
        let beats = (first + data.len()).div_ceil(self.bytes);
        self.aw.push_fields(&[&[addr], &[beats as u32 - 1]]);
        for beat in 0..beats {
            let (mut words, mut keep) = (vec![0u32; self.bytes / 4], vec![0u32; self.bytes.div_ceil(32)]);
            for lane in 0..self.bytes {
                let at = (beat * self.bytes + lane).checked_sub(first).filter(|at| *at < data.len());
                // Lanes without a strobe carry noise.
                let byte = at.map_or_else(|| self.tb.rng().next_u32() as u8, |at| data[at]);
                words[lane / 4] |= u32::from(byte) << (8 * (lane % 4));
                keep[lane / 32] |= u32::from(at.is_some_and(|at| strobes[at])) << (lane % 32);
            }
            self.w.push_fields(&[&words, &keep, &[u32::from(beat + 1 == beats)]]);
        }
        self.sent += 1;
    }

    fn doorbell(&mut self, function: u32, kind: usize) {
        let (id, index) = (self.tb.rng().below(1 << 24), self.tb.rng().below(1 << 16));
        let arms = [self.tb.rng().percent(50), self.tb.rng().percent(50)];
        let record = ferric_abi::host::Doorbell::default().with_id(id as u32).with_index(index as u16).with_arm(arms[0]).with_arm_solicited(arms[1]);
        self.write(function << 16 | (csr::DB_SQ + 8 * kind as u32), &record.0, &[true; 8]);
        if function >= 4 {
            // A window that is nobody's is the card's.
            return self.count(0, "db_bad");
        }
        self.count(function, "db_rung");
        self.expected[kind].push_back(vec![
            ("kind", kind as u128),
            ("id", id.into()),
            ("index", index.into()),
            ("arm", arms[0].into()),
            ("arm_solicited", arms[1].into()),
            ("function", function.into()),
        ]);
    }

    fn count(&mut self, function: u32, name: &'static str) {
        *self.counts.entry((function.into(), name)).or_default() += 1;
    }

    fn line(&mut self, function: u32, offset: u32) {
        let data = self.tb.rng().bytes(64);
        self.write(function << 16 | offset, &data, &[true; 64]);
        self.lines.push_back((function as u16, data));
        self.count(function, "db_wqe");
    }

    fn wrong(&mut self) {
        let function = self.tb.rng().below(4) as u32;
        let mut strobes = vec![true; 64];
        let hole = self.tb.rng().below(64) as usize;
        strobes[hole] = false;
        let data = self.tb.rng().bytes(128);
        let which = self.tb.rng().below(9);
        match which {
            0 => self.write(function << 16 | 0x1020, &data[..8], &strobes[..8].iter().map(|_| true).collect::<Vec<_>>()),
            1 => self.write(function << 16 | 0x1004, &data[..4], &[true; 4]),
            2 => self.write(function << 16 | 0x1008, &data[..4], &[true; 4]),
            3 => self.write(function << 16 | csr::DB_WQE, &data[..64], &strobes),
            4 => self.write(function << 16 | csr::DB_WQE, &data[..8], &[true; 8]),
            5 => self.write(function << 16 | csr::DB_WQE, &data, &[true; 128]),
            6 => self.write(1 << 28 | csr::DB_SQ, &data[..8], &[true; 8]),
            7 => self.write((4 + function) << 16 | csr::DB_WQE, &data[..64], &[true; 64]),
            _ => self.write(function << 16 | 0x3000, &data[..64], &[true; 64]),
        }
        self.count(if [6, 7].contains(&which) { 0 } else { function }, "db_bad");
    }

    fn check(&mut self) {
        let (db, wqe) = (Fields::of::<DoorbellMsg>(), Fields::of::<WqeDoorbell>());
        for (sink, expected) in self.doorbells.iter().zip(&mut self.expected) {
            while let Some(message) = sink.pop() {
                assert_eq!(message, db.pack(&expected.pop_front().expect("a doorbell that was rung")));
            }
        }
        while let Some(message) = self.wqe.pop() {
            let (function, data) = self.lines.pop_front().expect("a line that was written");
            let words: Vec<u32> = data.chunks(4).map(|c| u32::from_le_bytes(c.try_into().expect("whole words"))).collect();
            assert_eq!((wqe.get(&message, "function") as u16, wqe.get_words(&message, "data")), (function, words));
        }
        while let Some(answer) = self.b.pop() {
            assert_eq!(answer, [0], "posted writes never fail");
        }
    }

    fn cycle(&mut self) {
        self.tb.cycle();
        self.stats.see(&self.tb);
        self.check();
    }
}

fn exercise(mut bench: Bench) {
    for _ in 0..600 {
        match bench.tb.rng().below(10) {
            0..=4 => {
                let (function, kind) = (bench.tb.rng().below(5) as u32, bench.tb.rng().below(4) as usize);
                bench.doorbell(function, kind);
            }
            5..=7 => {
                let slot = bench.tb.rng().below(u64::from(csr::DB_WQE_SIZE) / 64) as u32;
                let function = bench.tb.rng().below(4) as u32;
                bench.line(function, csr::DB_WQE + 64 * slot);
            }
            _ => bench.wrong(),
        }
    }
    let mut limit = 100_000;
    while bench.b.taken() < bench.sent {
        bench.cycle();
        limit -= 1;
        assert!(limit > 0, "{} of {} writes answered", bench.b.taken(), bench.sent);
    }
    (0..300).for_each(|_| bench.cycle());
    assert_eq!(bench.stats.events, bench.counts);
    assert!(super::STATS.iter().all(|name| bench.stats.all(name) > 0));
    assert!(bench.expected.iter().all(VecDeque::is_empty) && bench.lines.is_empty(), "messages are missing");
}

#[test]
fn writes_become_messages_at_64() {
    for stall in [0, 40] {
        exercise(Bench::new(Tb::new("doorbell64", Doorbell::<64, 8, 2>::default()), 8, stall));
    }
}

#[test]
fn writes_become_messages_at_512() {
    for stall in [0, 40] {
        exercise(Bench::new(Tb::new("doorbell512", Doorbell::<512, 64, 2>::default()), 64, stall));
    }
}

#[test]
fn one_doorbell_per_cycle() {
    let mut bench = Bench::new(Tb::new("doorbell512", Doorbell::<512, 64, 2>::default()), 64, 0);
    (0..100).for_each(|i| bench.doorbell(i % 4, i as usize % 4));
    let start = bench.tb.cycles();
    while bench.b.taken() < 100 {
        bench.cycle();
    }
    assert!(bench.tb.cycles() - start < 110, "100 doorbells in {} cycles", bench.tb.cycles() - start);
}

/// Exact cycles of an idle window: last beat to message.
#[test]
fn a_doorbell_takes_two_cycles() {
    let mut bench = Bench::new(Tb::new("doorbell512", Doorbell::<512, 64, 2>::default()), 64, 0);
    bench.tb.run(10);
    bench.doorbell(0, 0);
    let m_sq = bench.doorbells[0].clone();
    assert_eq!(bench.tb.latency(&m_sq, 10), 2);
}
