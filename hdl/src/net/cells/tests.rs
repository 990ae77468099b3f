//! The buffer against a model that keeps whole frames by handle.

use super::{CellBuffer, CELLS};
use crate::msg::CellRead;
use crate::tb::{AxisSink, Fields, Rng, Source, Tb};
use std::collections::{BTreeMap, VecDeque};

struct Read {
    off: usize,
    bytes: Vec<u8>,
}

/// Everything a test drives: one write port by hand, read ports by queues.
struct Bench {
    tb: Tb,
    bytes: usize,
    cells: u64,
    layout: Fields,
    read: Source,
    free: Source,
    retain: Source,
    data: AxisSink,
    rng: Rng,
    /// Beats still to write: data, first, last, and at the last one the frame and whether to keep it.
    beats: VecDeque<(Vec<u8>, bool, bool)>,
    waiting: VecDeque<(u64, Vec<u8>, bool)>,
    closing: VecDeque<(Vec<u8>, bool)>,
    judged: VecDeque<(Vec<u8>, bool)>,
    stored: BTreeMap<u16, Vec<u8>>,
    no_room: usize,
    expected: VecDeque<Read>,
    partial: Vec<u8>,
    started: bool,
}

fn bench<const W: usize, const K: usize>(name: &str, seed: u64, stalls: [u32; 2]) -> Bench {
    bench_of(CellBuffer::<W, K>::default(), CELLS as u64, name, seed, stalls)
}

fn bench_of<const W: usize, const K: usize>(block: CellBuffer<W, K>, cells: u64, name: &str, seed: u64, stalls: [u32; 2]) -> Bench {
    let mut tb = Tb::with_seed(name, block, seed);
    let read = tb.source("s_read$0", stalls[0]);
    let free = tb.source("s_read$1", stalls[0]);
    let retain = tb.source("s_retain", stalls[0]);
    let data = tb.axis_sink("m_data", stalls[1]);
    let rng = Rng::new(tb.seed() ^ 0xce11);
    let mut bench = Bench {
        tb,
        bytes: K,
        cells,
        layout: Fields::of::<CellRead>(),
        read,
        free,
        retain,
        data,
        rng,
        beats: VecDeque::new(),
        waiting: VecDeque::new(),
        closing: VecDeque::new(),
        judged: VecDeque::new(),
        stored: BTreeMap::new(),
        no_room: 0,
        expected: VecDeque::new(),
        partial: Vec::new(),
        started: false,
    };
    while bench.tb.get("free_count") < cells {
        bench.tb.cycle();
        assert!(bench.tb.cycles() < cells + 88, "the free list is not built");
    }
    bench
}

impl Bench {
    fn write(&mut self, frame: Vec<u8>, keep: bool) {
        let beats: Vec<_> = frame.chunks(self.bytes).map(<[u8]>::to_vec).collect();
        let count = beats.len();
        for (n, beat) in beats.into_iter().enumerate() {
            self.beats.push_back((beat, n == 0, n + 1 == count));
        }
        self.closing.push_back((frame, keep));
    }

    fn command(&mut self, port: usize, handle: u16, off: usize, len: usize, free: bool) {
        let message = self.layout.pack(&[("handle", handle.into()), ("off", off as u128), ("len", len as u128), ("free", free.into())]);
        [&self.read, &self.free][port].push(message);
        if len > 0 {
            self.expected.push_back(Read { off, bytes: self.stored[&handle][off..off + len].to_vec() });
        }
        if free {
            self.stored.remove(&handle);
        }
    }

    /// One cycle: a beat (in `rate` percent), a verdict if one is due, results.
    fn cycle(&mut self, rate: u32) {
        let beat = if self.rng.percent(rate) { self.beats.pop_front() } else { None };
        self.tb.set("s_write$valid", beat.is_some().into());
        if let Some((mut data, first, last)) = beat {
            self.tb.set("s_write$first", first.into());
            self.tb.set("s_write$last", last.into());
            data.resize(self.bytes, 0xee);
            let words: Vec<u32> = data.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
            self.tb.set_wide("s_write$data", words);
            if last {
                let (frame, keep) = self.closing.pop_front().unwrap();
                let due = self.tb.cycles() + 3 + self.rng.below(6);
                self.waiting.push_back((due, frame, keep));
            }
        }
        let now = self.tb.cycles();
        let verdict = self.waiting.front().is_some_and(|(due, ..)| *due <= now);
        self.tb.set("s_write$verdict", verdict.into());
        if verdict {
            let (_, frame, keep) = self.waiting.pop_front().unwrap();
            self.tb.set("s_write$keep", keep.into());
            self.judged.push_back((frame, keep));
        }
        self.tb.cycle();
        assert_eq!(self.tb.get("s_write$done"), u64::from(verdict), "an answer one cycle after each verdict");
        if verdict {
            let (frame, keep) = self.judged.pop_front().unwrap();
            let (ok, no_room) = (self.tb.get("s_write$done_ok") == 1, self.tb.get("s_write$done_no_room") == 1);
            assert_eq!(ok | no_room, keep);
            assert!(!(ok && no_room));
            if ok {
                let old = self.stored.insert(self.tb.get("s_write$done_handle") as u16, frame);
                assert!(old.is_none(), "a handle twice");
            } else {
                self.no_room += usize::from(no_room);
            }
        }
        while let Some(beat) = self.data.pop_beat() {
            let want = self.expected.front().expect("a beat nobody asked for");
            let lane = if self.started { 0 } else { want.off % self.bytes };
            let count = (want.bytes.len() - self.partial.len()).min(self.bytes - lane);
            let mask = (u128::MAX >> (128 - count)) << lane;
            assert_eq!(beat.keep, mask, "keep");
            self.partial.extend(&beat.data[lane..lane + count]);
            self.started = !beat.last;
            assert_eq!(beat.last, self.partial.len() == want.bytes.len(), "last");
            if beat.last {
                assert_eq!(self.partial, want.bytes, "data of a read at {}", want.off);
                self.partial.clear();
                self.expected.pop_front();
            }
        }
    }

    /// Until everything asked for has happened.
    fn drain(&mut self) {
        for _ in 0..60_000 {
            if self.beats.is_empty() && self.waiting.is_empty() && self.expected.is_empty() && self.read.pending() + self.free.pending() + self.retain.pending() == 0 {
                (0..40).for_each(|_| self.cycle(100));
                return;
            }
            self.cycle(100);
        }
        panic!("wedged: {} reads, {} beats", self.expected.len(), self.beats.len());
    }

    fn all_back(&mut self) {
        self.drain();
        for handle in self.stored.keys().copied().collect::<Vec<_>>() {
            let port = self.rng.below(2) as usize;
            self.command(port, handle, 0, 0, true);
        }
        self.drain();
        assert_eq!(self.tb.get("free_count"), self.cells, "cells lost");
    }

    fn random_frame(&mut self) -> Vec<u8> {
        let most = [64, 64, 200, 300, 1100, 4200, 8191][self.rng.below(7) as usize];
        let len = self.rng.range(1, most) as usize;
        self.rng.bytes(len)
    }
}

fn random<const W: usize, const K: usize>(name: &str, seed: u64, stalls: [u32; 2]) {
    random_on(bench::<W, K>(name, seed, stalls));
}

fn random_on(mut b: Bench) {
    let mut written = 0;
    // Phases: light load, more frames than cells, light again.
    for (frames, backlog, reads) in [(120, 3, 40), (300, 1000, 6), (120, 8, 40)] {
        for _ in 0..frames {
            let frame = b.random_frame();
            let keep = b.rng.percent(80);
            b.write(frame, keep);
            written += 1;
            let rate = [30, 100][b.rng.below(2) as usize];
            while b.beats.len() > 10 {
                b.cycle(rate);
            }
            while b.stored.len() > backlog || (b.rng.percent(reads) && !b.stored.is_empty() && b.read.pending() < 4) {
                let pick = b.rng.below(b.stored.len() as u64) as usize;
                let handle = *b.stored.keys().nth(pick).unwrap();
                let size = b.stored[&handle].len();
                let free = b.rng.percent(60);
                match b.rng.below(4) {
                    0 => {
                        // A frame that is still being read is not freed at the other port.
                        let port = b.rng.below(2) as usize * usize::from(b.expected.is_empty());
                        b.command(port, handle, 0, 0, free);
                    }
                    // In pieces, as the mover does.
                    1 => {
                        let mut off = b.rng.below(size as u64) as usize;
                        while off < size {
                            let len = (b.rng.range(1, 4096) as usize).min(size - off);
                            b.command(0, handle, off, len, free && off + len == size);
                            off += len;
                        }
                    }
                    _ => {
                        let off = b.rng.below(size as u64) as usize;
                        let len = b.rng.range(1, (size - off) as u64) as usize;
                        b.command(0, handle, off, len, free);
                    }
                }
                while b.read.pending() > 20 {
                    b.cycle(rate);
                }
            }
        }
    }
    b.all_back();
    assert!(b.no_room > 5, "the buffer never ran full in {written} frames");
}

#[test]
fn random_frames_64() {
    for (seed, stalls) in [(1, [0, 0]), (2, [30, 40]), (3, [0, 70])] {
        random::<64, 8>("cells64", seed, stalls);
    }
}

#[test]
fn random_frames_512() {
    for (seed, stalls) in [(1, [0, 0]), (2, [30, 40]), (3, [0, 70])] {
        random::<512, 64>("cells512", seed, stalls);
    }
}

/// The memory target's.
#[test]
fn random_frames_in_128_cells() {
    for (seed, stalls) in [(1, [0, 0]), (2, [30, 40])] {
        random_on(bench_of(CellBuffer::<64, 8>::new(7), 128, "cells64_128", seed, stalls));
    }
}

/// Every cell in use, then one frame too many, one after the other at full rate; then room for one again.
fn brim<const W: usize, const K: usize>(name: &str) {
    let mut b = bench::<W, K>(name, 5, [0, 0]);
    for _ in 0..16 {
        let frame = b.rng.bytes(32 * 256 - 1);
        b.write(frame, true);
    }
    for _ in 0..20 {
        let len = b.rng.range(1, 600) as usize;
        let frame = b.rng.bytes(len);
        b.write(frame, true);
    }
    b.drain();
    assert_eq!((b.stored.len(), b.no_room, b.tb.get("free_count")), (16, 20, 0));
    // A frame under way while the list runs empty and fills again keeps its chain together.
    let handle = *b.stored.keys().next().unwrap();
    b.command(1, handle, 0, 0, true);
    b.drain();
    let other = *b.stored.keys().next().unwrap();
    let frame = b.rng.bytes(8191);
    b.write(frame, true);
    b.command(1, other, 0, 0, true);
    let frame = b.rng.bytes(8191);
    b.write(frame, true);
    b.drain();
    assert_eq!((b.stored.len(), b.tb.get("free_count")), (16, 0));
    for handle in b.stored.keys().copied().collect::<Vec<_>>() {
        let size = b.stored[&handle].len();
        b.command(0, handle, 0, size, true);
    }
    b.all_back();
}

#[test]
fn full_to_the_brim() {
    brim::<64, 8>("cells64");
    brim::<512, 64>("cells512");
}

/// Small reads, each freeing its frame, cost their beats and at most four cycles more; long ones run without a gap.
#[test]
fn read_rate_512() {
    let mut b = bench::<512, 64>("cells512", 6, [0, 0]);
    for _ in 0..100 {
        let frame = b.rng.bytes(122);
        b.write(frame, true);
    }
    b.drain();
    for handle in b.stored.keys().copied().collect::<Vec<_>>() {
        b.command(0, handle, 54, 64, true);
    }
    let start = b.tb.cycles();
    while !b.expected.is_empty() {
        b.cycle(0);
    }
    let cycles = b.tb.cycles() - start;
    assert!(cycles <= 100 * 2 + 12, "{cycles} cycles for 100 reads of two beats");
    let frame = b.rng.bytes(4200);
    b.write(frame, true);
    b.drain();
    let handle = *b.stored.keys().next().unwrap();
    b.command(0, handle, 60, 4096, true);
    let start = b.tb.cycles();
    while !b.expected.is_empty() {
        b.cycle(0);
    }
    assert!(b.tb.cycles() - start <= 65 + 12);
    b.all_back();
}

#[test]
fn owners_are_counted() {
    let mut b = bench::<64, 8>("cells64", 7, [0, 0]);
    let frame = b.rng.bytes(700);
    b.write(frame, true);
    b.drain();
    let (&handle, frame) = b.stored.iter().next().map(|(h, f)| (h, f.clone())).unwrap();
    b.retain.push(u32::from(handle));
    b.retain.push(u32::from(handle));
    b.drain();
    for owner in 0..3 {
        assert_eq!(b.tb.get("free_count"), CELLS as u64 - 3, "owner {owner}");
        b.stored.insert(handle, frame.clone());
        b.command(usize::from(owner == 1), handle, 0, if owner == 0 { 700 } else { 0 }, true);
        b.drain();
    }
    assert_eq!(b.tb.get("free_count"), CELLS as u64);
}

#[test]
fn reset_frees_everything() {
    let mut b = bench::<512, 64>("cells512", 8, [0, 0]);
    for _ in 0..30 {
        let frame = b.random_frame();
        b.write(frame, true);
    }
    (0..60).for_each(|_| b.cycle(100));
    b.tb.set("s_write$valid", 0);
    b.tb.set("s_write$verdict", 0);
    b.tb.reset();
    b.beats.clear();
    b.waiting.clear();
    b.closing.clear();
    b.stored.clear();
    (0..520).for_each(|_| b.cycle(0));
    assert_eq!(b.tb.get("free_count"), CELLS as u64);
    for _ in 0..30 {
        let frame = b.random_frame();
        b.write(frame, true);
    }
    b.drain();
    for handle in b.stored.keys().copied().collect::<Vec<_>>() {
        let size = b.stored[&handle].len();
        b.command(0, handle, 0, size, true);
    }
    b.all_back();
}
