//! Whole frames between clocks of many ratios, with stalls, without room, through resets.

use super::*;
use crate::tb::{ClockSpec, Clocks, Rng, Sink, Source};

/// Periods of writer and reader in ps: the boards' own, equal ones, far apart.
const RATIOS: [(u64, u64); 6] = [(4000, 3103), (3103, 4000), (16000, 8000), (8000, 16000), (5000, 5000), (2000, 13700)];

fn clocks(periods: (u64, u64)) -> [ClockSpec<'static>; 2] {
    [("s_clock", Some("s_reset"), periods.0), ("m_clock", Some("m_reset"), periods.1)]
}

/// Synchronisers of the block: none of them, and each in turn, takes a change an edge later than the others.
const LATE: [Option<&str>; 5] = [None, Some("frames"), Some("taken"), Some("s_reset_over"), Some("m_reset_over")];

/// A frame and its error flag.
type Frame = (Vec<u8>, bool);

struct Bench {
    tb: Clocks,
    s: Source,
    m: Sink,
    bytes: usize,
    dropped: u64,
    rng: Rng,
    partial: Vec<u8>,
}

impl Bench {
    fn new<const W: usize, const K: usize>(lossy: bool, periods: (u64, u64), stalls: (u32, u32)) -> Bench {
        Bench::late::<W, K>(lossy, periods, stalls, None)
    }

    /// With that synchroniser an edge late.
    fn late<const W: usize, const K: usize>(lossy: bool, periods: (u64, u64), stalls: (u32, u32), late: Option<&str>) -> Bench {
        let (name, block) = (format!("cross{W}{}", if lossy { "l" } else { "" }), FrameCross::<W, K>::new(5, lossy));
        let mut tb = match late {
            Some(late) => Clocks::late(&name, block, &clocks(periods), late),
            None => Clocks::new(&name, block, &clocks(periods)),
        };
        let s = tb.source_of(0, "s", &["data", "keep", "last", "/s_err"], stalls.0);
        let m = tb.sink_of(1, "m", &["data", "keep", "last", "/m_err"], stalls.1);
        let rng = Rng::new(tb.rng().next_u64());
        Bench { tb, s, m, bytes: K, dropped: 0, rng, partial: Vec::new() }
    }

    fn frame(&mut self, longest: u64) -> Frame {
        let len = self.rng.range(1, longest) as usize;
        (self.rng.bytes(len), self.rng.percent(20))
    }

    fn push(&mut self, (bytes, err): &Frame) {
        for (n, chunk) in bytes.chunks(self.bytes).enumerate() {
            let mut data = chunk.to_vec();
            data.extend(self.rng.bytes(self.bytes - chunk.len()));
            let words: Vec<u32> = data.chunks(4).map(|c| c.iter().rev().fold(0, |v, b| v << 8 | u32::from(*b))).collect();
            let keep = u64::MAX >> (64 - chunk.len());
            let last = (n + 1) * self.bytes >= bytes.len();
            // Noise where the flag does not count.
            let err = if last { *err } else { self.rng.percent(50) };
            self.s.push_fields(&[&words, &[keep as u32, (keep >> 32) as u32], &[last.into()], &[err.into()]]);
        }
    }

    fn step(&mut self) {
        if self.tb.step() == 0 {
            self.dropped += self.tb.get("dropped");
        }
    }

    /// The next whole frame at the output.
    fn pop(&mut self) -> Option<Frame> {
        while let Some(fields) = self.m.pop_fields() {
            let data: Vec<u8> = fields[0].iter().flat_map(|w| w.to_le_bytes()).collect();
            let keep = fields[1].iter().rev().fold(0u64, |v, w| v << 32 | u64::from(*w));
            let len = keep.count_ones() as usize;
            assert!(len > 0 && keep == u64::MAX >> (64 - len), "keep {keep:x}");
            assert!(fields[2][0] == 1 || (len == self.bytes && fields[3][0] == 0));
            self.partial.extend(&data[..len]);
            if fields[2][0] == 1 {
                return Some((std::mem::take(&mut self.partial), fields[3][0] == 1));
            }
        }
        None
    }
}

fn waits<const W: usize, const K: usize>(count: usize) {
    for (n, periods) in RATIOS.into_iter().enumerate() {
        let stalls = [(0, 0), (30, 30), (0, 80), (80, 0), (60, 10), (0, 50)][n];
        let mut b = Bench::new::<W, K>(false, periods, stalls);
        let frames: Vec<Frame> = (0..count).map(|i| b.frame(if i % 3 == 0 { 27 * K as u64 } else { 3 * K as u64 })).collect();
        frames.iter().for_each(|f| b.push(f));
        for (i, want) in frames.iter().enumerate() {
            let mut edges = 0;
            let got = loop {
                if let Some(got) = b.pop() {
                    break got;
                }
                b.step();
                edges += 1;
                assert!(edges < 40_000, "frame {i} never came, {periods:?}");
            };
            assert!(got == *want, "frame {i} of {}, {periods:?}", frames.len());
        }
        assert_eq!(b.dropped, 0);
    }
}

#[test]
fn frames_cross_whole_and_wait_for_room() {
    waits::<64, 8>(150);
    waits::<512, 64>(150);
}

/// A reader that is never stalled gets a frame without a gap, and short frames back to back.
#[test]
fn no_gap_inside_a_frame() {
    for periods in RATIOS {
        let mut b = Bench::new::<64, 8>(false, periods, (70, 0));
        let frames: Vec<Frame> = (0..60).map(|_| b.frame(27 * 8)).collect();
        frames.iter().for_each(|f| b.push(f));
        let (mut inside, mut ended) = (false, 0);
        while ended < frames.len() {
            if b.tb.upcoming() == 1 {
                let (valid, last) = (b.tb.get("m$valid") == 1, b.tb.get("m$last") == 1);
                assert!(valid || !inside, "a gap in frame {ended}, {periods:?}");
                inside = valid && !last;
                ended += usize::from(valid && last);
            }
            b.step();
        }
    }
}

#[test]
fn short_frames_pass_one_a_cycle() {
    let mut b = Bench::new::<512, 64>(false, (2000, 13700), (0, 0));
    let frames: Vec<Frame> = (0..100).map(|_| b.frame(64)).collect();
    frames.iter().for_each(|f| b.push(f));
    b.tb.run(1, 130);
    assert!(b.m.len() >= 100, "{} frames in 130 cycles", b.m.len());
}

#[test]
fn a_frame_that_fits_nowhere_is_dropped_and_nothing_else() {
    for periods in RATIOS {
        let mut b = Bench::new::<64, 8>(false, periods, (0, 20));
        let lengths = [27, 28, 27, 40, 1, 33, 100, 26, 28, 2];
        let frames: Vec<Frame> = lengths.iter().map(|l| (b.rng.bytes(l * 8), false)).collect();
        frames.iter().for_each(|f| b.push(f));
        b.tb.run(0, 3000.min(3_000_000 * 8 / periods.0));
        (0..3000).for_each(|_| b.step());
        let got: Vec<Frame> = std::iter::from_fn(|| b.pop()).collect();
        let want: Vec<Frame> = frames.into_iter().filter(|f| f.0.len() <= 27 * 8).collect();
        assert!(got == want, "{periods:?}");
    }
}

/// Room runs out: what arrives are whole frames in order, and those that do not are counted.
#[test]
fn a_lossy_writer_is_never_stalled_and_drops_whole_frames() {
    for (n, periods) in RATIOS.into_iter().enumerate() {
        let mut b = Bench::new::<64, 8>(true, periods, ([0, 20, 0, 50, 0, 30][n], [30, 80, 60, 0, 70, 0][n]));
        let frames: Vec<Frame> = (0..300).map(|_| b.frame(30 * 8)).collect();
        frames.iter().for_each(|f| b.push(f));
        while b.s.pending() > 0 {
            if b.tb.upcoming() == 0 {
                assert_eq!(b.tb.get("s$ready"), 1);
            }
            b.step();
        }
        (0..20_000).for_each(|_| b.step());
        let got: Vec<Frame> = std::iter::from_fn(|| b.pop()).collect();
        let mut sent = frames.iter();
        for frame in &got {
            assert!(sent.any(|f| f == frame), "a frame that was not sent, or out of order, {periods:?}");
        }
        assert_eq!(got.len() as u64 + b.dropped, frames.len() as u64, "{periods:?}");
        assert!(!got.is_empty());
        assert!(b.dropped > 0 || periods.0 > periods.1, "{periods:?}");
    }
}

/// Resets of either side at any moment: frames cut are dropped or end with an error, later ones are whole, in order.
#[test]
fn resets_leave_no_half_frames() {
    for (n, periods) in RATIOS.into_iter().enumerate() {
        for (lossy, late) in [false, true].into_iter().flat_map(|lossy| LATE.map(|late| (lossy, late))) {
            let mut b = Bench::late::<64, 8>(lossy, periods, (20, [0, 30, 60, 0, 30, 0][n]), late);
            let mut sent: Vec<Frame> = Vec::new();
            let mut got: Vec<Frame> = Vec::new();
            for round in 0..12 {
                for _ in 0..6 {
                    let frame = b.frame(20 * 8);
                    b.push(&frame);
                    sent.push(frame);
                }
                let pause = b.rng.below(160);
                (0..pause).for_each(|_| b.step());
                if round % 2 == 0 {
                    // The reader alone: the writer sees it and empties itself.
                    b.tb.reset(&[1]);
                    got.extend(std::iter::from_fn(|| b.pop()));
                    b.partial.clear();
                } else {
                    // The writer, between frames of its source; the reader goes on.
                    let mut edges = 0;
                    while b.s.pending() > 0 && edges < 50_000 {
                        b.step();
                        edges += 1;
                    }
                    assert!(edges < 50_000, "stuck, {periods:?} {lossy}");
                    b.tb.reset(&[0]);
                }
            }
            (0..6000).for_each(|_| b.step());
            let after: Vec<Frame> = (0..8).map(|_| b.frame(4 * 8)).collect();
            after.iter().for_each(|f| b.push(f));
            (0..6000).for_each(|_| b.step());
            got.extend(std::iter::from_fn(|| b.pop()));
            assert!(b.partial.is_empty(), "a frame without an end, {periods:?} {late:?}");
            assert!(got.ends_with(&after), "what comes after the resets comes whole, {periods:?} {late:?}");
            got.truncate(got.len() - after.len());
            let mut rest = sent.iter();
            for (bytes, err) in &got {
                // What was cut has lost its end, and says so.
                if rest.clone().any(|f| f.0 == *bytes && f.1 == *err) {
                    rest.find(|f| f.0 == *bytes);
                } else {
                    assert!(*err, "a cut frame of {} bytes without its error, {periods:?} {lossy}", bytes.len());
                }
            }
        }
    }
}

/// With every synchroniser in turn an edge late, and with none.
fn pulses(periods: (u64, u64)) -> impl Iterator<Item = Clocks> {
    let late = ["s_reset_over", "m_reset_over", "seen"].map(Some).into_iter().chain([None]);
    late.map(move |late| match late {
        Some(late) => Clocks::late("pulse_cross", PulseCross::default(), &clocks(periods), late),
        None => Clocks::new("pulse_cross", PulseCross::default(), &clocks(periods)),
    })
}

#[test]
fn no_pulse_is_lost_or_made_up() {
    for mut tb in RATIOS.into_iter().flat_map(pulses) {
        let (mut sent, mut seen) = (0, 0);
        // The other side's reset is over here a few edges later.
        tb.run(0, 20);
        for n in 0..6000 {
            if tb.upcoming() == 0 {
                // Never more than the receiver can take for long.
                let on = n < 5000 && sent - seen < 12 && tb.rng().percent(40);
                tb.set("s", on.into());
                sent += i64::from(on);
                tb.step();
            } else {
                tb.step();
                seen += tb.get("m") as i64;
            }
            assert!(seen <= sent);
        }
        assert_eq!(seen, sent);
        assert!(sent > 200);
    }
}

#[test]
fn a_reset_makes_no_pulses() {
    for mut tb in RATIOS.into_iter().flat_map(pulses) {
        for count in 1..12 {
            tb.set("s", 1);
            tb.run(0, count);
            tb.set("s", 0);
            tb.run(1, 30);
            let mut seen = 0;
            let side = tb.rng().below(2) as usize;
            let reset = ["s_reset", "m_reset"][side];
            tb.set(reset, 1);
            for n in 0..400 {
                if n == 200 {
                    tb.set(reset, 0);
                }
                if tb.step() == 1 {
                    seen += tb.get("m");
                }
            }
            assert_eq!(seen, 0, "{reset}");
        }
    }
}
