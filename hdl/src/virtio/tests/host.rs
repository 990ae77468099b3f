//! The host at the engine's AXI ports: a guest's memory that answers late and out of order. A burst is read in one moment, so that no record is torn.
use crate::tb::{Rng, Sink, Source, Tb};
use crate::virtio::testing::Guest;
use std::collections::VecDeque;

const SLVERR: u32 = 2;
/// Bursts whose beats may be mixed.
const SHUFFLE: usize = 6;

struct Burst {
    id: u32,
    due: u64,
    addr: u64,
    beats: u64,
    data: Option<(bool, Vec<u8>)>,
}

pub struct Host {
    ar: Sink,
    r: Source,
    aw: Sink,
    w: Sink,
    b: Source,
    k: u64,
    latency: (u64, u64),
    rng: Rng,
    reads: VecDeque<Burst>,
    writes: VecDeque<(u64, u64)>,
    answers: VecDeque<(u64, bool)>,
    bad: bool,
    /// Writes are not answered.
    pub holds: bool,
}

impl Host {
    pub fn new(tb: &mut Tb, k: u64, latency: (u64, u64), stall: u32) -> Self {
        let ar = tb.sink_of("ar_", &["addr", "len", "user", "id"], stall);
        let r = tb.source_of("r_", &["id", "data", "resp", "last"], stall);
        let aw = tb.sink_of("aw_", &["addr", "len", "user"], stall);
        let w = tb.sink_of("w_", &["data", "strb", "last"], stall);
        let b = tb.source_of("b_", &["resp"], stall);
        let rng = Rng::new(tb.rng().next_u64());
        Self { ar, r, aw, w, b, k, latency, rng, reads: VecDeque::new(), writes: VecDeque::new(), answers: VecDeque::new(), bad: false, holds: false }
    }

    fn due(&mut self, now: u64) -> u64 {
        now + self.rng.range(self.latency.0, self.latency.1)
    }

    /// Once per cycle.
    pub fn step(&mut self, now: u64, guest: &mut Guest) {
        let address = |fields: &[Vec<u32>]| u64::from(fields[0][0]) | u64::from(fields[0][1]) << 32;
        while let Some(fields) = self.ar.pop_fields() {
            let due = self.due(now);
            self.reads.push_back(Burst { id: fields[3][0], due, addr: address(&fields), beats: u64::from(fields[1][0]) + 1, data: None });
        }
        while self.r.pending() < 2 {
            // Beats of one id stay in order.
            let ready: Vec<usize> =
                (0..self.reads.len()).filter(|n| self.reads[*n].due <= now && self.reads.iter().position(|other| other.id == self.reads[*n].id) == Some(*n)).take(SHUFFLE).collect();
            if ready.is_empty() {
                break;
            }
            let n = ready[self.rng.below(ready.len() as u64) as usize];
            let burst = &mut self.reads[n];
            let (at, bytes) = (burst.addr, burst.beats * self.k);
            let (good, data) = burst.data.get_or_insert_with(|| (guest.reaches(at, bytes), guest.get(at, bytes as usize)));
            let beat: Vec<u8> = data.drain(..self.k as usize).collect();
            let words: Vec<u32> = beat.chunks(4).map(|w| w.iter().rev().fold(0, |x, b| x << 8 | u32::from(*b))).collect();
            let resp = if *good { 0 } else { SLVERR };
            let last = data.is_empty();
            self.r.push_fields(&[&[burst.id], &words, &[resp], &[last.into()]]);
            if last {
                self.reads.remove(n);
            }
        }
        while let Some(fields) = self.aw.pop_fields() {
            self.writes.push_back((address(&fields), u64::from(fields[1][0]) + 1));
        }
        while !self.writes.is_empty() {
            let Some(fields) = self.w.pop_fields() else { break };
            let (at, beats) = self.writes[0];
            let strobes = fields[1].iter().rev().fold(0u64, |x, w| x << 32 | u64::from(*w));
            for lane in (0..self.k).filter(|lane| strobes >> lane & 1 == 1) {
                if guest.reaches(at + lane, 1) {
                    *guest.byte(at + lane) = (fields[0][lane as usize / 4] >> (8 * (lane % 4))) as u8;
                } else {
                    self.bad = true;
                }
            }
            self.writes[0] = (at + self.k, beats - 1);
            if beats == 1 {
                let due = self.due(now);
                self.answers.push_back((due, std::mem::take(&mut self.bad)));
                self.writes.pop_front();
            }
        }
        while !self.holds && self.b.pending() < 2 && self.answers.front().is_some_and(|(due, _)| *due <= now) {
            let Some((_, bad)) = self.answers.pop_front() else { break };
            self.b.push_fields(&[&[if bad { SLVERR } else { 0 }]]);
        }
    }
}
