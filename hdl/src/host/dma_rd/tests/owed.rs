//! How much payload the host owes: what its latency needs, and not much more.

use super::super::owed::{Owed, LEAST, PATIENCE};
use super::*;

/// Pages that the buffer of the tests holds.
const PAGES: u64 = (BUFFER >> 12) as u64;

/// A host that answers in order after `latency` cycles, and a client of payload that takes pages as fast as it gets them.
struct Stream {
    bench: Bench<512, 64, 6>,
    sent: u64,
}

impl Stream {
    fn new(latency: u64, seed: u64) -> Stream {
        Stream { bench: Bench::new("dma_rd512", seed, Temper { latency: (latency, latency), bad: 0, shuffle: 1 }, 0), sent: 0 }
    }

    /// Reads so many pages; how many cycles it took, and the most beats that the host owed after the first `warm` pages.
    fn pages(&mut self, count: u64, warm: u64) -> (u64, u64) {
        let (begin, end) = (self.sent + warm, self.sent + count);
        let (mut start, mut most) = (self.bench.tb.cycles(), 0);
        let limit = start + 1_000 * (count + 10);
        while self.sent < end || !self.bench.idle() {
            assert!(self.bench.tb.cycles() < limit, "stuck");
            let (slot, dst) = (self.sent % 64, ((self.sent % PAGES) << 12) as usize);
            if self.sent < end && !self.bench.flying.contains_key(&slot) && self.bench.owner[dst..dst + 4096].iter().all(Option::is_none) {
                self.bench.read(self.sent << 12, 4096, dst, slot);
                self.sent += 1;
                if self.sent == begin {
                    start = self.bench.tb.cycles();
                }
            }
            self.bench.cycle();
            if self.sent >= begin {
                most = most.max(self.bench.host.owed);
            }
        }
        (self.bench.tb.cycles() - start, most)
    }
}

#[test]
fn the_host_owes_what_its_latency_needs() {
    for (latency, bound) in [(250, 500), (1000, 1400)] {
        let mut stream = Stream::new(latency, 11);
        let (cycles, most) = stream.pages(400, 200);
        // The last page comes a latency after it was asked for, and 32 are asked for before the 200th is there.
        let floor = 200 * 64;
        assert!(cycles <= (floor + 2048 + latency) * 101 / 100, "{cycles} cycles at a latency of {latency}");
        assert!(most <= bound, "{most} beats owed at a latency of {latency}");
        assert!(most >= latency, "{most} beats owed at a latency of {latency}");
    }
}

/// Each burst waits a latency for its first beat, which says nothing of the limit.
#[test]
fn a_burst_from_rest_does_not_raise_the_limit() {
    let mut stream = Stream::new(250, 12);
    for _ in 0..12 {
        stream.pages(PAGES, 0);
        (0..600).for_each(|_| stream.bench.cycle());
    }
    let (_, most) = stream.pages(PAGES, 0);
    assert!(most <= 500, "{most} beats owed");
}

/// A small read waits behind what is owed: behind as much as the latency needs, not behind the buffer.
#[test]
fn a_small_read_does_not_wait_behind_the_buffer() {
    let mut stream = Stream::new(250, 13);
    stream.pages(200, 0);
    let (mut asked, mut longest, mut sent) = (None, 0, 0);
    for _ in 0..8000 {
        let (slot, dst) = (stream.sent % 64, ((stream.sent % PAGES) << 12) as usize);
        if !stream.bench.flying.contains_key(&slot) && stream.bench.owner[dst..dst + 4096].iter().all(Option::is_none) {
            stream.bench.read(stream.sent << 12, 4096, dst, slot);
            stream.sent += 1;
        }
        if stream.bench.rows[3].is_empty() {
            if let Some(at) = asked {
                longest = longest.max(stream.bench.tb.cycles() - at);
            }
            stream.bench.read_small(3, sent << 9, 8);
            asked = Some(stream.bench.tb.cycles());
            sent += 1;
        }
        stream.bench.cycle();
    }
    assert!(longest <= 250 + 500 + 60, "{longest} cycles for a small read");
    // None of them counted as payload: at rest nothing is owed, and all that a latency needs may be asked for again.
    let (_, most) = stream.pages(200, 100);
    assert!((250..=500).contains(&most), "{most} beats owed");
}

/// The rule itself, against the same in Rust.
#[test]
fn the_limit_is_the_models() {
    let mut tb = Tb::with_seed("owed", Owed::new(true), 5);
    let (mut owed, mut limit, mut flows, mut busy, mut open) = (0i64, LEAST as i64, false, 0u64, false);
    let (mut raised, mut lowered) = (0, 0);
    for cycle in 0..60_000u64 {
        // Hosts that give nothing, that give some, and that give all.
        let share = [2, 50, 98][(cycle / 5000 % 3) as usize];
        let waiting = tb.rng().percent(90);
        let start = waiting && open && tb.rng().percent(60);
        let last = tb.rng().below(64);
        let payload = owed > 0 && tb.rng().percent(90);
        let beat = (payload || tb.rng().percent(10)) && tb.rng().percent(share);
        for (port, value) in [("waiting", waiting), ("start", start), ("beat", beat), ("payload", payload)] {
            tb.set(port, value.into());
        }
        tb.set("last", last);
        tb.begin();
        assert_eq!(tb.get("open") == 1, open, "cycle {cycle}: {owed} owed of {limit}");
        tb.end();
        let blocked = waiting && !open;
        open = owed < limit;
        let before = limit;
        if blocked && !beat && flows && limit < 4095 {
            limit += 1;
        }
        if blocked && beat {
            if busy == (1 << PATIENCE) - 1 && limit > LEAST as i64 {
                limit -= 1;
            }
            busy = (busy + 1) % (1 << PATIENCE);
        }
        raised += u64::from(limit > before);
        lowered += u64::from(limit < before);
        if owed == 0 {
            flows = false;
        } else if beat && payload {
            flows = true;
        }
        owed += if start { last as i64 + 1 } else { 0 } - i64::from(beat && payload);
    }
    assert!(raised > 1000 && lowered > 20, "{raised} up, {lowered} down");
}
