//! Both directions against the bytes of the wire, with an FCS that is not ours (crc32fast).

use super::*;
use crate::tb::{ClockSpec, Clocks, Rng};

/// Periods of core and MAC: the board's, and others.
const PERIODS: [(u64, u64); 3] = [(16000, 8000), (4000, 8000), (8000, 8000)];

fn clocks(periods: (u64, u64)) -> [ClockSpec<'static>; 2] {
    [("clock", Some("reset"), periods.0), ("mac_clock", Some("mac_reset"), periods.1)]
}

/// What a receiver of another make would expect.
fn expected(frame: &[u8]) -> Vec<u8> {
    let mut padded = frame.to_vec();
    padded.resize(frame.len().max(60), 0);
    let fcs = crc32fast::hash(&padded).to_le_bytes();
    [&[0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5], &padded[..], &fcs].concat()
}

/// Frames that Linux has sent.
fn captured() -> Vec<Vec<u8>> {
    crate::net::icrc::tests::captured()
}

#[test]
fn the_model_agrees_with_another_fcs() {
    let mut rng = Rng::new(1);
    for len in (1..80).chain([1500, 4200]) {
        let frame = rng.bytes(len);
        assert_eq!(model::wire(&frame), expected(&frame));
        let end = [&frame[..], &model::fcs(&frame)].concat();
        assert_eq!(end.iter().fold(!0, |c, b| model::step(c, *b)), model::RESIDUE);
    }
}

/// Collects frames from the pins: bytes and the idle cycles before.
#[derive(Default)]
struct Listener {
    frames: Vec<(Vec<u8>, usize)>,
    idle: usize,
    inside: bool,
}

impl Listener {
    fn see(&mut self, rise: u64, fall: u64) {
        let (byte, valid, error) = model::from_lanes(rise, fall);
        assert!(!error, "TX_ER");
        if !valid {
            self.idle += 1;
        } else if !self.inside {
            self.frames.push((vec![byte], self.idle));
            self.idle = 0;
        } else {
            self.frames.last_mut().unwrap_or_else(|| panic!("inside none")).0.push(byte);
        }
        self.inside = valid;
    }
}

fn send(frames: &[Vec<u8>], periods: (u64, u64), stall: u32) {
    let mut tb = Clocks::new("ferric_rgmii_tx_w64", RgmiiTx::default(), &clocks(periods));
    let s = tb.axis_source(0, "s", stall);
    frames.iter().for_each(|f| s.push(f));
    let mut pins = Listener::default();
    let bytes: usize = frames.iter().map(|f| f.len() + 30).sum();
    let mut quiet = 0;
    while quiet < 3000 {
        quiet = if pins.inside || s.pending() > 0 { 0 } else { quiet + 1 };
        if tb.step() == 1 {
            pins.see(tb.get("rise"), tb.get("fall"));
        }
        assert!(tb.edges(1) < 20_000 + 10 * bytes as u64, "{} of {} frames", pins.frames.len(), frames.len());
    }
    assert_eq!(pins.frames.len(), frames.len());
    for (n, ((got, idle), frame)) in pins.frames.iter().zip(frames).enumerate() {
        assert!(*got == expected(frame), "{} bytes at {periods:?}: {got:x?}", frame.len());
        assert!(n == 0 || *idle >= model::GAP, "a gap of {idle}");
    }
    // Frames that were waiting follow at the smallest gap, a cycle more for the look at the queue.
    if stall == 0 && periods.0 <= periods.1 {
        assert!(pins.frames[1..].iter().all(|(_, idle)| *idle <= model::GAP + 1), "gaps {:?}", pins.frames.iter().map(|f| f.1).collect::<Vec<_>>());
    }
}

#[test]
fn frames_go_out_padded_with_fcs_and_gap() {
    let mut rng = Rng::new(2);
    for (n, periods) in PERIODS.into_iter().enumerate() {
        let lengths = (1..75).chain([1000, 1514, 1518, 4200, 8000]);
        let frames: Vec<Vec<u8>> = lengths.map(|len| rng.bytes(len)).collect();
        send(&frames, periods, [0, 0, 60][n]);
    }
    send(&captured(), PERIODS[0], 20);
}

/// A frame that the core's reset cuts off never goes out with a right FCS.
#[test]
fn a_frame_cut_by_a_reset_is_spoilt() {
    let mut tb = Clocks::new("ferric_rgmii_tx_w64", RgmiiTx::default(), &clocks(PERIODS[0]));
    let s = tb.axis_source(0, "s", 0);
    let mut pins = Listener::default();
    let (first, second) = (tb.rng().bytes(1000), tb.rng().bytes(200));
    s.push(&first);
    while pins.frames.first().is_none_or(|f| f.0.len() < 300) {
        if tb.step() == 1 {
            pins.see(tb.get("rise"), tb.get("fall"));
        }
    }
    tb.set("reset", 1);
    for n in 0..6000 {
        if n == 300 {
            tb.set("reset", 0);
        }
        if n == 400 {
            s.push(&second);
        }
        if tb.step() == 1 {
            pins.see(tb.get("rise"), tb.get("fall"));
        }
    }
    assert_eq!(pins.frames.len(), 2);
    let cut = &pins.frames[0].0;
    assert!(cut.len() < 1000 && cut.len() > 72);
    let (body, fcs) = cut[8..].split_at(cut.len() - 12);
    assert_ne!(crc32fast::hash(body).to_le_bytes(), fcs);
    assert_eq!(pins.frames[1].0, expected(&second));
}

/// What the PHY says in one cycle.
type Cycle = (u8, bool, bool);

/// A frame as the PHY delivers it, and what is to come of it: contents and error flag, or nothing.
fn arrival(rng: &mut Rng, kind: u64) -> (Vec<Cycle>, Option<(Vec<u8>, bool)>) {
    let len = match kind {
        0..=4 => rng.range(60, 1514),
        5 => rng.range(60, 300),
        6 => rng.range(60, 300),
        7 => rng.range(1, 59),
        8 => rng.range(9597, 9700),
        _ => 60,
    } as usize;
    let frame = rng.bytes(len);
    let fcs = crc32fast::hash(&frame).to_le_bytes();
    let mut bytes = [&frame[..], &fcs].concat();
    let mut result = Some((frame, false));
    let mut errors = vec![false; bytes.len()];
    match kind {
        // One bit is wrong, anywhere.
        5 => {
            let bit = rng.below(8 * bytes.len() as u64) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
            result = Some((bytes[..len].to_vec(), true));
        }
        6 => {
            errors[rng.below(bytes.len() as u64) as usize] = true;
            result = result.map(|(f, _)| (f, true));
        }
        7 | 8 => result = result.map(|(f, _)| (f, true)),
        // Too short for anything.
        9 => {
            bytes.truncate(rng.below(5) as usize);
            result = None;
        }
        _ => {}
    }
    if kind == 10 {
        // A carrier that is no frame.
        return (vec![(0x0f, true, true); 9], None);
    }
    // A PHY may eat some of the preamble.
    let preamble = rng.below(8) as usize;
    let start = vec![(0x55, true, false); preamble].into_iter().chain([(0xd5, true, false)]);
    (start.chain(bytes.into_iter().zip(errors).map(|(b, e)| (b, true, e))).collect(), result)
}

fn receive(kinds: &[u64], periods: (u64, u64), stall: u32) {
    let mut tb = Clocks::new("ferric_rgmii_rx_w64", RgmiiRx::default(), &clocks(periods));
    let m = tb.sink_of(0, "m", &["data", "keep", "last", "/m_err"], stall);
    tb.run(1, 20);
    let (mut cycles, mut wanted, mut scraps) = (Vec::new(), Vec::new(), 0);
    for kind in kinds {
        let (frame, result) = arrival(tb.rng(), *kind);
        cycles.extend(frame);
        // In the gap the PHY shows its state on the data lines. 96 bits are sent, fewer may arrive.
        let gap = tb.rng().range(5, 14);
        cycles.extend((0..gap).map(|_| (0x0d, false, false)));
        scraps += u64::from(*kind == 9);
        wanted.extend(result);
    }
    let mut left = cycles.into_iter();
    let (mut dropped, mut rest) = (0, 4000);
    while rest > 0 {
        if tb.upcoming() == 1 {
            let (byte, valid, error) = left.next().unwrap_or_else(|| {
                rest -= 1;
                (0x0d, false, false)
            });
            let (rise, fall) = model::lanes(byte, valid, error);
            tb.set("rise", rise);
            tb.set("fall", fall);
            tb.step();
        } else {
            tb.step();
            dropped += tb.get("dropped");
        }
    }
    assert_eq!(dropped, scraps);
    for (n, want) in wanted.iter().enumerate() {
        let mut bytes: Vec<u8> = Vec::new();
        let err = loop {
            let beat = m.pop_fields().unwrap_or_else(|| panic!("frame {n} of {} is missing", wanted.len()));
            let data: Vec<u8> = beat[0].iter().flat_map(|w| w.to_le_bytes()).collect();
            bytes.extend(&data[..beat[1][0].count_ones() as usize]);
            if beat[2][0] == 1 {
                break beat[3][0] == 1;
            }
        };
        assert!((bytes == want.0) && (err == want.1), "frame {n} of {} bytes: {} bytes, error {err}", want.0.len(), bytes.len());
    }
    assert!(m.is_empty());
}

#[test]
fn frames_come_in_and_every_fault_is_marked() {
    for (n, periods) in PERIODS.into_iter().enumerate() {
        let mut rng = Rng::new(n as u64);
        // Of each kind some, the order mixed; the long ones are few.
        let kinds: Vec<u64> = (0..120).map(|i| if i % 40 == 39 { 8 } else { [0, 1, 2, 3, 4, 5, 6, 7, 9, 10][rng.below(10) as usize] }).collect();
        receive(&kinds, periods, [0, 30, 40][n]);
    }
}

#[test]
fn captured_frames_come_in() {
    let mut tb = Clocks::new("ferric_rgmii_rx_w64", RgmiiRx::default(), &clocks(PERIODS[0]));
    let m = tb.axis_sink(0, "m", 20);
    tb.run(1, 20);
    let frames = captured();
    let line: Vec<u8> = frames.iter().flat_map(|f| [expected(f), vec![0; 12]].concat()).collect();
    let lengths: Vec<usize> = frames.iter().map(|f| expected(f).len()).collect();
    let mut valid = lengths.iter().flat_map(|n| std::iter::repeat_n(true, *n).chain(std::iter::repeat_n(false, 12)));
    let mut line = line.into_iter();
    while tb.edges(0) < 60_000 {
        if tb.upcoming() == 1 {
            let (rise, fall) = model::lanes(line.next().unwrap_or(0), valid.next().unwrap_or(false), false);
            tb.set("rise", rise);
            tb.set("fall", fall);
        }
        tb.step();
        assert_eq!(tb.get("m_err") & tb.get("m$valid"), 0);
    }
    for frame in frames {
        let mut padded = frame;
        padded.resize(padded.len().max(60), 0);
        assert_eq!(m.pop(), Some(padded));
    }
}

/// More than fits: frames are lost whole, and counted.
#[test]
fn frames_without_room_are_counted() {
    let mut tb = Clocks::new("ferric_rgmii_rx_w64", RgmiiRx::default(), &clocks(PERIODS[0]));
    tb.run(1, 20);
    let frame = expected(&tb.rng().bytes(1000));
    let mut dropped = 0;
    for _ in 0..30 {
        for byte in frame.iter().copied().map(Some).chain([None; 12]) {
            while tb.upcoming() == 0 {
                tb.step();
                dropped += tb.get("dropped");
            }
            let (rise, fall) = model::lanes(byte.unwrap_or(0), byte.is_some(), false);
            tb.set("rise", rise);
            tb.set("fall", fall);
            tb.step();
        }
    }
    (0..60).for_each(|_| {
        if tb.step() == 0 {
            dropped += tb.get("dropped");
        }
    });
    // 2048 beats hold sixteen frames of 125.
    let m = tb.axis_sink(0, "m", 0);
    tb.run(0, 4000);
    let held = std::iter::from_fn(|| m.pop()).inspect(|f| assert_eq!(f.len(), 1000)).count();
    assert!(held >= 16 && dropped >= 13, "{held} {dropped}");
    assert_eq!(held as u64 + dropped, 30);
}
