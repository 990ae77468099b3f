//! The block against its model (`ferric_model::net::pause`).
use super::model::{build, read, Pause, Seen, Timers};
use super::{Pause as Block, STATS};
use crate::host::testing::Control;
use crate::tb::{AxisSink, AxisSource, Rng, Tb};
use ferric_abi::context::PauseCtx;
use std::collections::{BTreeMap, VecDeque};

const MAC: u64 = 0x0203_0405_0607;
const SOURCE: [u8; 6] = [2, 3, 4, 5, 6, 7];
const STOP: u16 = 0xffff;
/// Cycles from the last beat of a frame to what it does, at most.
const DELAY: u64 = 6;
/// Quanta that a random pause lasts.
const LONGEST: u64 = 40;
/// Cells of the buffer.
const CELLS: u64 = 512;

/// On, both ways.
fn rules(quantum: u16) -> PauseCtx {
    let on = PauseCtx::default().with_send(2).with_obey_link(true).with_obey_priority(true).with_data(0b1000).with_sent(0b0110);
    on.with_xoff(100).with_xon(200).with_quantum(quantum).with_obey_limit(u16::MAX).with_send_limit(u16::MAX).with_mac(MAC)
}

struct Bench<const W: usize, const K: usize> {
    tb: Tb,
    to_s: AxisSource,
    to_m: AxisSink,
    control: Control,
    /// Beats off the wire that are to come: bytes, last, bad.
    beats: VecDeque<(Vec<u8>, bool, bool)>,
    gaps: u32,
    now: u64,
    stat: BTreeMap<&'static str, u64>,
    sent: Vec<Vec<u8>>,
    holds: u64,
}

impl<const W: usize, const K: usize> Bench<W, K> {
    fn new(stall: u32, seed: u64) -> Self {
        let mut tb = Tb::with_seed(&format!("pause{W}"), Block::<W, K>::default(), seed);
        // Frames pass in the cycle in which they come.
        tb.allow_combinational();
        let (to_s, to_m, control) = (tb.axis_source("to_s", stall), tb.axis_sink("to_m", stall), Control::new(&mut tb, stall));
        tb.set("free_cells", CELLS);
        tb.set("m$ready", 1);
        Bench { tb, to_s, to_m, control, beats: VecDeque::new(), gaps: stall, now: 0, stat: STATS.iter().map(|s| (*s, 0)).collect(), sent: Vec::new(), holds: 0 }
    }

    fn cycle(&mut self) {
        let gap = self.gaps > 0 && self.tb.rng().percent(self.gaps);
        let beat = if gap { None } else { self.beats.pop_front() };
        self.tb.set("s$valid", beat.is_some().into());
        if let Some((bytes, last, bad)) = &beat {
            let mut data = bytes.clone();
            let noise = self.tb.rng().bytes(K - data.len());
            data.extend(noise);
            let words: Vec<u32> = data.chunks(4).map(|w| u32::from_le_bytes(w.try_into().expect("four"))).collect();
            self.tb.set_wide("s$data", &words[..]);
            self.tb.set("s$keep", u64::MAX >> (64 - bytes.len()));
            self.tb.set("s$last", (*last).into());
            self.tb.set("s_err", (*bad).into());
        }
        self.tb.set("now", self.now);
        self.tb.begin();
        // What comes passes as it is.
        for port in ["data", "keep", "last", "valid"] {
            assert_eq!(self.tb.get_wide(&format!("m${port}")), self.tb.get_wide(&format!("s${port}")));
        }
        assert_eq!((self.tb.get("m_err"), self.tb.get("s$ready")), (self.tb.get("s_err"), 1));
        self.tb.end();
        let stat = self.tb.get("stat");
        STATS.iter().enumerate().for_each(|(i, name)| *self.stat.get_mut(name).expect("a counter") += stat >> i & 1);
        self.holds += self.tb.get("hold");
        self.sent.extend(std::iter::from_fn(|| self.to_m.pop()));
    }

    fn run(&mut self, cycles: u64) {
        (0..cycles).for_each(|_| self.cycle());
    }

    fn write(&mut self, word: u32, value: Option<u32>) -> u32 {
        self.control.ask(0, word, value);
        for _ in 0..2000 {
            self.cycle();
            if let Some(answer) = self.control.answer() {
                return answer.expect("a line");
            }
        }
        panic!("no answer of the table");
    }

    /// As the admin engine does it.
    fn set(&mut self, rules: PauseCtx) {
        let words: Vec<u32> = rules.0.chunks(4).map(|w| u32::from_le_bytes(w.try_into().expect("four"))).collect();
        self.write(0, Some(0));
        for n in 1..words.len() {
            self.write(n as u32, Some(words[n]));
        }
        self.write(0, Some(words[0]));
        (0..words.len()).for_each(|n| assert_eq!(self.write(n as u32, None), words[n], "word {n}"));
        self.run(10);
    }

    fn receive(&mut self, frame: &[u8], bad: bool) {
        let count = frame.len().div_ceil(K);
        self.beats.extend(frame.chunks(K).enumerate().map(|(n, beat)| (beat.to_vec(), n + 1 == count, bad && n + 1 == count)));
    }

    /// Takes a frame in and waits until it has done what it does.
    fn exchange(&mut self, frame: &[u8], bad: bool) {
        self.receive(frame, bad);
        while !self.beats.is_empty() {
            self.cycle();
        }
        self.run(DELAY);
    }

    /// Of the frames that went out those that are pause frames, and the others.
    fn pauses(&mut self) -> (Vec<Pause>, Vec<Vec<u8>>) {
        let (mut pauses, mut others) = (Vec::new(), Vec::new());
        for frame in std::mem::take(&mut self.sent) {
            match read(&frame, false) {
                Seen::Pause(pause) => {
                    assert_eq!(frame, build(SOURCE, pause), "no byte more");
                    pauses.push(pause);
                }
                Seen::Other => others.push(frame),
                Seen::Malformed => panic!("{frame:02x?}"),
            }
        }
        (pauses, others)
    }
}

fn any_pause(rng: &mut Rng) -> Pause {
    let mut time = || if rng.percent(30) { 0 } else { rng.range(1, LONGEST) as u16 };
    let times = std::array::from_fn(|_| time());
    if rng.percent(40) {
        Pause::Link(times[0])
    } else {
        Pause::Priorities(rng.next_u32() as u8, times)
    }
}

/// A frame with what strangers do to it, and whether the MAC finds it bad.
fn any_frame(rng: &mut Rng) -> (Vec<u8>, bool) {
    let mut frame = build(std::array::from_fn(|_| rng.next_u32() as u8), any_pause(rng));
    // Beyond what is read anything may stand, and the reserved half of the vector.
    let noise = rng.bytes(26);
    frame[34..].copy_from_slice(&noise);
    if frame[14] == 1 {
        frame[16] = rng.next_u32() as u8;
        // Times of priorities that the vector does not name are noise, too.
        (0..8).filter(|n| frame[17] >> n & 1 == 0).collect::<Vec<_>>().into_iter().for_each(|n| frame[19 + 2 * n] = rng.range(1, LONGEST) as u8);
    }
    match rng.below(10) {
        0 => frame[rng.below(6) as usize] ^= 1 << rng.below(8),
        1 => frame[14 + rng.below(2) as usize] ^= 1 << rng.below(8),
        2 => frame.truncate(rng.range(34, 60) as usize),
        3 => return (frame, true),
        4 => frame[12 + rng.below(2) as usize] ^= 1 << rng.below(8),
        5 => {
            frame = {
                let len = rng.range(1, 300) as usize;
                rng.bytes(len)
            }
        }
        6 => {
            let len = rng.range(1, 1400) as usize;
            frame.extend(rng.bytes(len));
        }
        _ => {}
    }
    (frame, false)
}

/// One quantum is 8 cycles of 64 bits; the wait after a frame is counted in them.
fn random<const W: usize, const K: usize>(stall: u32, seed: u64, rounds: usize) {
    let mut b = Bench::<W, K>::new(stall, seed);
    // Slow time, so that the delay of a frame counts for little.
    const QUANTUM: u64 = 64;
    let rule = rules((QUANTUM << 8) as u16).with_send(0);
    b.set(rule);
    let mut rng = Rng::new(seed);
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for _ in 0..rounds {
        let (frame, bad) = any_frame(&mut rng);
        let data = rng.next_u32() as u8 | 1;
        b.write(0, Some(u32::from_le_bytes(rule.with_data(data).0[..4].try_into().expect("four"))));
        b.run(3);
        let before = (b.stat.clone(), b.tb.get("hold") == 1);
        b.exchange(&frame, bad);
        let counted = |name: &str| b.stat[name] - before.0[name];
        let (what, numbers) = match read(&frame, bad) {
            Seen::Other => ("other", (0, 0)),
            Seen::Malformed => ("malformed", (0, 1)),
            Seen::Pause(_) => ("pause", (1, 0)),
        };
        assert_eq!((counted("pause_received"), counted("pause_malformed")), numbers, "{frame:02x?}, {bad}, seed {}", b.tb.seed());
        *seen.entry(what).or_default() += 1;
        let Seen::Pause(pause) = read(&frame, bad) else {
            assert_eq!(b.tb.get("hold") == 1, before.1, "{what} frames change nothing");
            continue;
        };
        let mut timers = Timers::default();
        // What was before has ended, for the table has been written with a break.
        timers.take(pause);
        let mut quanta = 0;
        assert_eq!(b.tb.get("hold") == 1, timers.holds(data), "{pause:?}, data {data:#x}");
        let longest = (0..8).filter(|n| data >> n & 1 == 1).map(|n| u64::from(timers.0[n])).max().unwrap_or(0);
        // A vector that has become a time by a bit of the opcode is too long to wait for.
        while b.tb.get("hold") == 1 && longest <= LONGEST {
            b.run(QUANTUM);
            quanta += 1;
            assert!(quanta < 50, "{pause:?}");
        }
        assert!(longest.abs_diff(quanta) <= 1 || longest > LONGEST, "{pause:?}, data {data:#x}: {quanta} quanta");
        // Nobody is held any more, whatever others were asked for.
        b.write(0, Some(0));
        b.run(4);
    }
    println!("{seen:?}");
    assert!(seen.values().all(|n| *n > rounds as u64 / 12) && seen.len() == 3, "{seen:?}");
}

#[test]
fn what_comes_is_read_and_obeyed() {
    random::<64, 8>(0, 1, 400);
    random::<64, 8>(40, 2, 200);
    random::<512, 64>(20, 3, 400);
}

/// Frames without a gap between them, one of them a pause frame; each is counted as what it is.
fn crowd<const W: usize, const K: usize>(seed: u64) {
    let mut b = Bench::<W, K>::new(0, seed);
    b.set(rules(1 << 8));
    let mut rng = Rng::new(seed);
    let mut expected = [0, 0];
    for _ in 0..1500 {
        let (frame, bad) = any_frame(&mut rng);
        match read(&frame, bad) {
            Seen::Other => {}
            Seen::Malformed => expected[1] += 1,
            Seen::Pause(_) => expected[0] += 1,
        }
        b.receive(&frame, bad);
    }
    while !b.beats.is_empty() {
        b.cycle();
    }
    b.run(DELAY);
    assert_eq!([b.stat["pause_received"], b.stat["pause_malformed"]], expected);
}

#[test]
fn frames_without_a_gap_are_counted_each() {
    crowd::<64, 8>(4);
    crowd::<512, 64>(5);
}

/// What is said at both thresholds, again and again, and that all other frames go out as they came.
fn fills<const W: usize, const K: usize>(stall: u32, seed: u64) {
    for by_priority in [false, true] {
        let mut b = Bench::<W, K>::new(stall, seed);
        let rule = rules((W as u16 / 64) << 8);
        b.set(if by_priority { rule } else { rule.with_send(1) });
        let said = |time: u16| if by_priority { Pause::Priorities(0b0110, [0, time, time, 0, 0, 0, 0, 0]) } else { Pause::Link(time) };
        let mut rng = Rng::new(seed);
        let mut frames = Vec::new();
        let mut expected = Vec::new();
        let mut full = false;
        for _ in 0..300 {
            for _ in 0..rng.below(3) {
                let len = rng.range(1, 300) as usize;
                let mut frame = rng.bytes(len);
                frame[0] = 2;
                b.to_s.push(&frame);
                frames.push(frame);
            }
            let free = [0, 99, 100, 101, 150, 199, 200, 201, CELLS][rng.below(9) as usize];
            b.tb.set("free_cells", free);
            if free <= 100 && !full || free >= 200 && full {
                full = !full;
                expected.push(said(if full { STOP } else { 0 }));
            }
            // Long enough for it to be said.
            b.run(400 + 8 * u64::from(stall));
        }
        b.tb.set("free_cells", CELLS);
        if full {
            expected.push(said(0));
        }
        b.run(20_000);
        let (pauses, others) = b.pauses();
        assert_eq!(others, frames);
        assert_eq!(pauses, expected);
        assert!(pauses.len() > 50, "{}", pauses.len());
        assert_eq!(b.stat["pause_sent"], pauses.len() as u64);
    }
}

#[test]
fn a_full_buffer_stops_senders_and_room_lets_them_go() {
    fills::<64, 8>(0, 6);
    fills::<64, 8>(50, 7);
    fills::<512, 64>(30, 8);
}

/// A port that takes nothing for a while: what is said when it goes on is what holds then.
#[test]
fn a_pause_that_is_over_before_it_is_said_is_not_said() {
    let mut b = Bench::<64, 8>::new(0, 9);
    b.set(rules(8 << 8));
    // 60 bytes are half out when the buffer fills and empties.
    b.to_s.push(&[2; 1500]);
    b.run(20);
    b.tb.set("free_cells", 50);
    b.run(20);
    b.tb.set("free_cells", CELLS);
    b.run(400);
    let (pauses, others) = b.pauses();
    assert_eq!((pauses, others.len()), (vec![], 1));
}

/// It is said again after half its time, not earlier and not later, and other frames leave in between at full rate.
#[test]
fn a_pause_is_said_again_at_half_its_time() {
    const QUANTUM: u64 = 1;
    let mut b = Bench::<512, 64>::new(0, 10);
    b.set(rules((QUANTUM << 8) as u16));
    b.tb.set("free_cells", 10);
    let mut at = Vec::new();
    for cycle in 0..3 * 32_768 + 100 {
        b.cycle();
        if !std::mem::take(&mut b.sent).is_empty() {
            at.push(cycle);
        }
    }
    let gaps: Vec<i64> = at.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps.len() == 3 && gaps.iter().all(|gap| (32_767..32_775).contains(gap)), "{at:?}");
    // A third of a megabyte without a bubble: as many cycles as beats.
    b.tb.set("free_cells", CELLS);
    b.run(20);
    b.pauses();
    let taken = b.to_m.taken();
    (0..500).for_each(|_| b.to_s.push(&[2; 640]));
    b.cycle();
    b.run(5000);
    assert!(b.to_m.taken() - taken >= 5000, "{} beats in 5001 cycles", b.to_m.taken() - taken);
}

/// A quantum may last any part of a cycle more than one.
#[test]
fn quanta_are_as_long_as_they_are_told_to_be() {
    for (quantum, time, cycles) in [(1 << 8, 1000, 1000), (0x180, 1000, 1500), (8 << 8, 100, 800), (0x8ff, 512, 4606), (255 << 8, 10, 2550)] {
        let mut b = Bench::<64, 8>::new(0, 11);
        b.set(rules(quantum).with_send(0));
        b.exchange(&build(SOURCE, Pause::Link(time)), false);
        b.holds = 1;
        while b.tb.get("hold") == 1 {
            b.cycle();
        }
        let slack = u64::from(quantum >> 8) + DELAY + 2;
        assert!(b.holds.abs_diff(cycles) <= slack, "{} cycles, not {cycles}", b.holds);
    }
}

/// A peer, or a stranger on the link, that wants everybody to be quiet for good.
#[test]
fn nobody_stops_the_card_for_good() {
    let mut b = Bench::<64, 8>::new(0, 12);
    b.set(rules(8 << 8).with_send(0).with_obey_limit(3));
    let stop = build(SOURCE, Pause::Priorities(0b1000, [STOP; 8]));
    let mut held = 0;
    for n in 0..200 {
        b.exchange(&stop, false);
        b.now += 4;
        b.run(20);
        held += b.tb.get("hold");
        assert_eq!(b.tb.get("hold") == 1, n < 11, "{n}: three units of 16 ticks");
    }
    assert_eq!(held, 11);
    assert_eq!((b.stat["pause_ignored"], b.stat["pause_held"]), (1, 1));
    // The pause ends; the next one counts again.
    b.exchange(&build(SOURCE, Pause::Priorities(0b1000, [0; 8])), false);
    b.exchange(&stop, false);
    assert_eq!(b.tb.get("hold"), 1);
    assert_eq!((b.stat["pause_ignored"], b.stat["pause_held"]), (1, 2));
    // Time that passes without a pause is not counted.
    b.exchange(&build(SOURCE, Pause::Priorities(0b1000, [0; 8])), false);
    (0..100).for_each(|_| {
        b.now += 4;
        b.run(3);
    });
    b.exchange(&stop, false);
    b.run(50);
    assert_eq!(b.tb.get("hold"), 1);
}

/// A host that takes nothing.
#[test]
fn the_card_does_not_stop_others_for_good() {
    let mut b = Bench::<64, 8>::new(0, 13);
    b.set(rules(8 << 8).with_send(1).with_send_limit(2));
    b.tb.set("free_cells", 5);
    b.run(40);
    assert_eq!(b.pauses().0, [Pause::Link(STOP)]);
    for _ in 0..12 {
        b.now += 4;
        b.run(20);
    }
    assert_eq!(b.pauses().0, [Pause::Link(0)], "they go on");
    assert_eq!(b.stat["pause_given_up"], 1);
    // In between does not count; with room for them all it begins anew.
    for free in [150, 5, 150, 5] {
        b.tb.set("free_cells", free);
        b.run(50);
    }
    assert_eq!(b.pauses().0, []);
    b.tb.set("free_cells", CELLS);
    b.run(50);
    b.tb.set("free_cells", 5);
    b.run(50);
    assert_eq!(b.pauses().0, [Pause::Link(STOP)]);
}

/// As after a reset, and as after it was switched off in the middle.
#[test]
fn off_is_off() {
    let mut b = Bench::<512, 64>::new(0, 14);
    b.tb.set("free_cells", 0);
    b.exchange(&build(SOURCE, Pause::Link(STOP)), false);
    b.exchange(&build(SOURCE, Pause::Priorities(0xff, [STOP; 8])), false);
    b.run(100);
    assert_eq!((b.holds, b.pauses(), b.tb.get("shallow")), (0, (vec![], vec![]), 0));
    assert_eq!(b.stat["pause_received"], 2, "it is told of them all the same");
    b.set(rules(1 << 8));
    b.run(50);
    assert_eq!((b.pauses().0, b.tb.get("shallow")), (vec![Pause::Priorities(0b0110, [0, STOP, STOP, 0, 0, 0, 0, 0])], 1));
    b.exchange(&build(SOURCE, Pause::Link(STOP)), false);
    assert_eq!(b.tb.get("hold"), 1);
    b.write(0, Some(0));
    b.run(50);
    assert_eq!((b.pauses().0, b.tb.get("hold")), (vec![Pause::Priorities(0b0110, [0; 8])], 0), "who was stopped is let go");
    // On again: what was asked for before is over.
    b.set(rules(1 << 8).with_send(0));
    b.run(50);
    assert_eq!((b.tb.get("hold"), b.pauses()), (0, (vec![], vec![])));
    // Each kind by itself.
    for (link, priority) in [(true, false), (false, true)] {
        b.set(rules(1 << 8).with_send(0).with_obey_link(link).with_obey_priority(priority));
        b.exchange(&build(SOURCE, Pause::Link(40)), false);
        assert_eq!(b.tb.get("hold") == 1, link);
        b.run(100);
        b.exchange(&build(SOURCE, Pause::Priorities(0b1000, [40; 8])), false);
        assert_eq!(b.tb.get("hold") == 1, priority);
        b.run(100);
    }
    b.tb.reset();
    b.run(20);
    assert_eq!((b.tb.get("hold"), b.tb.get("shallow"), b.pauses()), (0, 0, (vec![], vec![])));
}
