//! Who gets what functions send, and that what leaves waits for what the flow tables say.
use super::super::asking::{Leaving, Told, Used};
use super::super::depart::{Depart, STATS};
use super::model::{returned, way, Network, Way};
use super::{network, sender, shown, Sender};
use crate::net::within::testing::{some, words as networks_words};
use crate::switch::testing::{mac, words};
use crate::tb::{AxisSink, AxisSource, Fields, Rng, Tb};
use ferric_abi::context::StationCtx;
use ferric_abi::csr::FUNCTION_PORTS;
use ferric_model::net::networks::Networks;
use std::collections::{BTreeMap, VecDeque};

/// Functions, and their MAC addresses.
const NF: usize = 4;
const ND: usize = 16;
/// Cycles for which a frame waits for room.
const LATE: u64 = 4096;
/// Bytes that the tables see, and the longest that they take for an answer.
const WINDOW: usize = 128;
const SLOW: u64 = 40;
/// More cycles than some hundred frames take.
const LONG: u64 = 200_000;

/// What the tables say of a frame that is asked about: it leaves, it comes in again, and the line under which it counts. Here its bytes say so, as far as the tables see them.
fn says(window: &[u8]) -> (bool, bool, Option<u16>) {
    let sum = window.iter().fold(0u16, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
    (sum & 3 != 0, sum & 3 == 0 && sum & 8 != 0, (sum & 4 != 0).then_some(sum & 0xfff))
}

struct Bench<const W: usize, const K: usize> {
    tb: Tb,
    source: AxisSource,
    sink: AxisSink,
    stations: [StationCtx; ND],
    networks: Networks,
    /// Beginnings of frames that were shown for the wire.
    begun: VecDeque<u64>,
    local: Vec<(Vec<u8>, Network, Sender)>,
    now: Vec<u8>,
    stat: BTreeMap<&'static str, u64>,
    /// Of a hundred cycles, those in which there is room when a frame may begin.
    roomy: u32,
    /// There was room in the last cycle; a frame that has begun has it.
    room: bool,
    /// Whether the tables are asked; of a hundred cycles those in which they take a question or a frame to count, and the answers that are due, in order, not before these cycles.
    egress: bool,
    taking: u32,
    answers: VecDeque<(u64, Vec<u32>)>,
    asked: Vec<(u64, Vec<u8>, u16)>,
    used: Vec<(u16, u64)>,
}

impl<const W: usize, const K: usize> Bench<W, K> {
    fn new(stalls: [u32; 2], seed: u64) -> Self {
        let mut tb = Tb::with_seed(&format!("depart{W}"), Depart::<W, K, ND, 4>::default(), seed);
        let (source, sink) = (tb.axis_source("s", stalls[0]), tb.axis_sink("m", stalls[1]));
        tb.set("m_local$ready", 1);
        let (begun, local, now, stat) = Default::default();
        let (answers, asked, used) = Default::default();
        let networks = Networks::default();
        Bench { tb, source, sink, stations: [StationCtx::default(); ND], networks, begun, local, now, stat, roomy: 100, room: true, egress: false, taking: 100, answers, asked, used }
    }

    fn cycle(&mut self) {
        let roomy = self.roomy;
        self.room = self.tb.rng().percent(roomy);
        self.tb.set("room", self.room.into());
        self.tb.set("egress", self.egress.into());
        let taking = self.taking;
        let [takes, counts] = [0, 1].map(|_| self.tb.rng().percent(taking));
        self.tb.set("m_ask$ready", takes.into());
        self.tb.set("m_use$ready", counts.into());
        let due = self.answers.pop_front_if(|(at, _)| *at <= self.tb.cycles());
        self.tb.set("told_valid", due.is_some().into());
        if let Some((_, told)) = due {
            self.tb.set_wide("told", &told[..]);
        }
        self.tb.begin();
        if takes && self.tb.get("m_ask$valid") == 1 {
            self.answer();
        }
        if counts && self.tb.get("m_use$valid") == 1 {
            let used = self.tb.get_wide("m_use$data");
            let [flow, len] = ["flow", "len"].map(|name| Fields::of::<Used>().get(&used, name) as u64);
            self.used.push((flow as u16, len));
        }
        self.tb.end();
        if self.tb.get("m_begins") == 1 {
            self.begun.push_back(self.tb.get("m_function"));
        }
        let stat = self.tb.get("stat");
        assert!(stat.count_ones() < 2);
        STATS.iter().enumerate().filter(|(i, _)| stat >> i & 1 == 1).for_each(|(_, name)| *self.stat.entry(name).or_default() += 1);
        if let Some((bytes, last)) = shown(&self.tb, "m_local") {
            self.now.extend(bytes);
            if last {
                let network = network(&self.tb, "network");
                let sender = sender(&self.tb, "origin").expect("a function");
                self.local.push((std::mem::take(&mut self.now), network, sender));
            }
        }
    }

    /// What the tables are asked now, and will say some cycles later.
    fn answer(&mut self) {
        let asked = self.tb.get_wide("m_ask$data");
        let fields = Fields::of::<Leaving>();
        let window: Vec<u8> = fields.get_words(&asked, "window").iter().flat_map(|w| w.to_le_bytes()).collect();
        let [ended, len, f, port, domain] = ["ended", "len", "function", "port", "domain"].map(|name| fields.get(&asked, name) as u64);
        assert_eq!(port, u64::from(FUNCTION_PORTS) + f);
        let bytes = if ended == 1 { len as usize } else { WINDOW };
        assert!(window[bytes..].iter().all(|byte| *byte == 0));
        let (leaves, returns, counts) = says(&window[..bytes]);
        self.asked.push((f, window[..bytes].to_vec(), domain as u16));
        let told = [("function", f), ("drops", (!leaves).into()), ("returns", returns.into()), ("judged", 1), ("count", counts.is_some().into()), ("flow", counts.unwrap_or(77).into())];
        let told = Fields::of::<Told>().pack(&told.map(|(name, value)| (name, value.into())));
        let after = self.answers.back().map_or(0, |(at, _)| at + 1).max(self.tb.cycles() + self.tb.rng().range(1, SLOW));
        self.answers.push_back((after, told));
    }

    /// Other addresses and tunnels; nothing is under way.
    fn set(&mut self, stations: [StationCtx; ND], networks: Networks) {
        for (n, station) in stations.iter().enumerate() {
            self.tb.set_wide(&format!("macs${n}"), &words(&station.0)[..]);
        }
        self.tb.set_wide("networks", networks_words(&networks));
        (self.stations, self.networks) = (stations, networks);
    }

    fn begin(&mut self, function: u16) {
        self.tb.set("begins", 1);
        self.tb.set("begins_function", function.into());
        self.cycle();
        self.tb.set("begins", 0);
    }

    fn way(&self, function: u16, frame: &[u8]) -> Way {
        let to = frame[..6].iter().fold(0, |to, byte| to << 8 | u64::from(*byte));
        way(to, function, &self.stations, &self.networks)
    }

    /// Sends these and waits until `out` frames have left for the wire and nothing moves any more.
    fn send(&mut self, frames: &[(u16, Vec<u8>)], out: usize) -> Vec<Vec<u8>> {
        frames.iter().for_each(|(function, _)| self.begin(*function));
        frames.iter().for_each(|(_, frame)| self.source.push(frame));
        let (mut got, mut idle) = (Vec::new(), 0);
        while got.len() < out || idle < 60 {
            let before = (got.len(), self.source.pending(), self.local.len(), self.now.len());
            self.cycle();
            got.extend(std::iter::from_fn(|| self.sink.pop()));
            idle = if before == (got.len(), self.source.pending(), self.local.len(), self.now.len()) { idle + 1 } else { 0 };
            assert!(idle < 3 * LATE, "{} of {out} frames", got.len());
        }
        got
    }
}

fn any_station(rng: &mut Rng) -> StationCtx {
    // A few addresses, so that several functions have the same one and others nearly the same; those of groups, too.
    StationCtx::default().with_mac(0x0200_0000_0000 | [0, 1, 1 << 8, 1 << 40, 1 << 47][rng.below(5) as usize] | rng.below(4) << 16).with_valid(rng.percent(70))
}

fn any_frame<const W: usize, const K: usize>(b: &mut Bench<W, K>) -> (u16, Vec<u8>) {
    let stations = b.stations;
    let rng = b.tb.rng();
    let to = match rng.below(10) {
        0..5 => stations[rng.below(ND as u64) as usize].mac(),
        5 => 0xffff_ffff_ffff,
        6 => 0x0100_5e00_0000 | rng.below(4),
        7 => any_station(rng).mac(),
        _ => rng.next_u64() >> 16,
    };
    let more = if rng.percent(70) { rng.below(80) } else { rng.below(1500) } as usize;
    (rng.below(NF as u64) as u16, [&mac(to)[..], &rng.bytes(8 + more)].concat())
}

/// `asked`: of a hundred rounds, those in which the tables are asked.
fn random<const W: usize, const K: usize>(stalls: [u32; 2], roomy: u32, asked: u32, seed: u64, rounds: usize) {
    let mut b = Bench::<W, K>::new(stalls, seed);
    (b.roomy, b.taking) = (roomy, 100 - stalls[1]);
    let (mut seen, mut returns) = (BTreeMap::<_, u64>::new(), 0);
    for _ in 0..rounds {
        let rng = b.tb.rng();
        let stations = std::array::from_fn(|_| any_station(rng));
        let tunnels = if rng.percent(30) { 0 } else { rng.below(1 << NF) };
        let networks = some(rng, NF as u16, tunnels);
        b.set(stations, networks);
        let frames: Vec<_> = (0..b.tb.rng().range(1, 40)).map(|_| any_frame(&mut b)).collect();
        let ways: Vec<Way> = frames.iter().map(|(function, frame)| b.way(*function, frame)).collect();
        b.egress = asked > 0 && b.tb.rng().percent(asked);
        let all: Vec<_> = frames.iter().zip(&ways).filter(|(_, way)| !matches!(way, Way::Local(_))).map(|(frame, _)| frame.clone()).collect();
        let seen_of = |frame: &[u8]| frame[..frame.len().min(WINDOW)].to_vec();
        let wire: Vec<_> = all.iter().filter(|(_, frame)| !b.egress || says(&seen_of(frame)).0).cloned().collect();
        let got = b.send(&frames, wire.len());
        // Whatever leaves by the wire is asked about once, and what is for a function only is not.
        let domain = |f: u16| b.networks.get(f).map_or(0, |network| u16::from(network) + 1);
        let questions: Vec<_> = all.iter().filter(|_| b.egress).map(|(f, frame)| (u64::from(*f), seen_of(frame), domain(*f))).collect();
        assert_eq!(std::mem::take(&mut b.asked), questions);
        assert_eq!(got, wire.iter().map(|(_, frame)| frame.clone()).collect::<Vec<_>>());
        assert_eq!(std::mem::take(&mut b.begun), wire.iter().map(|(function, _)| u64::from(*function)).collect::<VecDeque<_>>());
        // What is for functions of the card comes, in order; a copy may be missing, if there was no room.
        let mut local = std::mem::take(&mut b.local).into_iter().peekable();
        let mut uses = Vec::new();
        let mut expected = BTreeMap::from([("local", 0), ("local_copies", 0), ("local_no_room", 0)]);
        for ((function, frame), way) in frames.iter().zip(&ways) {
            let sender = (*function, b.networks.get(*function).unwrap_or(0).into());
            let (_, again, counts) = says(&seen_of(frame));
            let counts = counts.filter(|_| b.egress && !matches!(way, Way::Local(_))).map(|flow| (flow, frame.len() as u64));
            if let Way::Wire = way {
                // What comes in again is counted there, and does not wait for room.
                let came = again && b.egress && local.next_if_eq(&(frame.clone(), returned(*function, &b.networks), sender)).is_some();
                uses.extend(counts.filter(|_| !came));
                *expected.get_mut("local_no_room").expect("there") += u64::from(again && b.egress && !came);
                returns += u64::from(came);
                continue;
            }
            uses.extend(counts);
            let came = match way {
                Way::Wire => unreachable!(),
                Way::Local(network) => {
                    assert_eq!(local.next(), Some((frame.clone(), *network, sender)));
                    "local"
                }
                Way::Both(network) => match local.next_if_eq(&(frame.clone(), *network, sender)) {
                    Some(_) => "local_copies",
                    None => "local_no_room",
                },
            };
            *expected.get_mut(came).expect("there") += 1;
        }
        assert_eq!((local.next(), std::mem::take(&mut b.used)), (None, uses));
        expected.retain(|_, n| *n > 0);
        assert_eq!(b.stat, expected);
        std::mem::take(&mut b.stat).into_iter().for_each(|(name, n)| *seen.entry(name).or_default() += n);
    }
    assert!(seen["local"] > 3 * rounds as u64 && seen["local_copies"] > rounds as u64, "{seen:?}");
    assert_eq!((seen.contains_key("local_no_room"), returns > 0), (roomy < 100, asked > 0));
}

#[test]
fn functions_get_what_the_model_says() {
    random::<64, 8>([0, 0], 100, 0, 1, 60);
    random::<64, 8>([30, 40], 60, 0, 2, 40);
    random::<512, 64>([0, 0], 100, 0, 3, 120);
    random::<512, 64>([30, 50], 40, 0, 4, 60);
}

#[test]
fn what_leaves_is_asked_about() {
    random::<64, 8>([0, 0], 100, 80, 11, 40);
    random::<64, 8>([30, 40], 60, 80, 12, 40);
    random::<512, 64>([0, 0], 100, 80, 13, 80);
    random::<512, 64>([30, 50], 40, 80, 14, 60);
}

/// The tables have hardly a cycle for what leaves: all questions are asked, one after the other.
#[test]
fn questions_wait_for_their_turn() {
    let mut b = Bench::<512, 64>::new([0, 0], 15);
    (b.egress, b.taking) = (true, 5);
    b.cycle();
    let frames: Vec<_> = (0..60).map(|_| (1, [&mac(9)[..], &b.tb.rng().bytes(40)].concat())).collect();
    let out = frames.iter().filter(|(_, frame)| says(frame).0).count();
    assert_eq!(b.send(&frames, out).len(), out);
    assert!(b.asked.iter().map(|(_, window, _)| window).eq(frames.iter().map(|(_, frame)| frame)));
}

/// The tables are asked, and not, in the middle of frames: whatever was asked about and may not leave does not, everything else does, in order, and its beginning is said ahead of it.
fn in_the_middle<const W: usize, const K: usize>(stalls: [u32; 2]) {
    let mut b = Bench::<W, K>::new(stalls, 21);
    b.taking = 60;
    let frames: Vec<_> = (0..600).map(|_| any_frame(&mut b)).collect();
    let (mut got, mut pushed, mut started) = (Vec::new(), 0, 0);
    while pushed < frames.len() || got.len() < started {
        if pushed < frames.len() && b.source.pending() < 4 {
            let (function, frame) = &frames[pushed];
            b.begin(*function);
            b.source.push(frame);
            pushed += 1;
        }
        b.egress ^= b.tb.rng().percent(3);
        // Now and then nobody waits for an answer any more.
        let silence = if b.tb.rng().percent(2) { 150 } else { 1 };
        (0..silence).for_each(|_| b.cycle());
        started = b.begun.len();
        got.extend(std::iter::from_fn(|| b.sink.pop()));
        assert!(got.len() <= started, "a frame has left before it was said whose it is");
        assert!(b.tb.cycles() < LONG, "{} of {started} frames", got.len());
    }
    (0..400).for_each(|_| b.cycle());
    got.extend(std::iter::from_fn(|| b.sink.pop()));
    let refused: Vec<_> = b.asked.iter().filter(|(_, window, _)| !says(window).0).map(|(_, window, _)| window.clone()).collect();
    let mut refused = refused.into_iter().peekable();
    let seen_of = |frame: &[u8]| frame[..frame.len().min(WINDOW)].to_vec();
    let left: Vec<_> = frames.iter().filter(|(_, frame)| refused.next_if(|window| *window == seen_of(frame)).is_none()).cloned().collect();
    assert!(got.iter().eq(left.iter().map(|(_, frame)| frame)), "{} of {}", got.len(), left.len());
    assert!(b.begun.iter().eq(left.iter().map(|(function, _)| u64::from(*function)).collect::<Vec<_>>().iter()));
    assert!(refused.next().is_none() && left.len() < 560 && b.asked.len() < 560, "{} {}", left.len(), b.asked.len());
}

#[test]
fn asking_begins_and_ends_in_the_middle() {
    in_the_middle::<64, 8>([0, 0]);
    in_the_middle::<64, 8>([20, 40]);
    in_the_middle::<512, 64>([0, 0]);
    in_the_middle::<512, 64>([20, 40]);
}

/// While nobody is asked a frame takes three cycles.
#[test]
fn three_cycles_without_a_question() {
    let mut b = Bench::<512, 64>::new([0, 0], 22);
    b.begin(1);
    b.source.push(&[3; 60]);
    let cycles = (1..).find(|_| {
        b.cycle();
        b.tb.get("m$valid") == 1
    });
    assert_eq!(cycles, Some(3));
}

/// No room for too long: frames for functions of the card go after 4,096 cycles each, others leave behind them, copies are not waited for.
#[test]
fn no_room_holds_nobody_for_ever() {
    let mut b = Bench::<512, 64>::new([0, 0], 5);
    let mut stations = [StationCtx::default(); ND];
    stations[5] = StationCtx::default().with_mac(7).with_valid(true);
    b.set(stations, Networks::default());
    b.roomy = 0;
    let mut frame = |to: u64, bytes: usize| [&mac(to)[..], &b.tb.rng().bytes(bytes)].concat();
    let frames = [(0, frame(7, 200)), (0, frame(9, 100)), (2, frame(0xffff_ffff_ffff, 300)), (1, frame(7, 60)), (1, frame(8, 60))];
    let start = b.tb.cycles();
    let out = b.send(&frames, 3);
    assert_eq!(out, [1, 2, 4].map(|n: usize| frames[n].1.clone()));
    let cycles = b.tb.cycles() - start;
    assert!((2 * LATE..2 * LATE + 200).contains(&cycles), "{cycles} cycles");
    assert_eq!((b.local.len(), b.stat.clone()), (0, BTreeMap::from([("local_late", 2), ("local_no_room", 1)])));
    // There is room again.
    b.roomy = 100;
    assert_eq!(b.send(&frames[..2], 1).len(), 1);
    assert_eq!(b.local, [(frames[0].1.clone(), Network { tunnel: false, function: 0 }, (frames[0].0, 0))]);
}

/// A frame that waits for room goes as soon as there is some.
#[test]
fn patience_begins_anew_with_each_frame() {
    let mut b = Bench::<64, 8>::new([0, 0], 6);
    let mut stations = [StationCtx::default(); ND];
    stations[0] = StationCtx::default().with_mac(7).with_valid(true);
    b.set(stations, Networks::default());
    for n in 0..3 {
        b.roomy = 0;
        let frame = [&mac(7)[..], &b.tb.rng().bytes(60)].concat();
        b.begin(3);
        b.source.push(&frame);
        (0..LATE - 200).for_each(|_| b.cycle());
        assert_eq!(b.local.len(), n);
        b.roomy = 100;
        (0..40).for_each(|_| b.cycle());
        assert_eq!(b.local.len(), n + 1);
    }
    assert_eq!(b.stat, BTreeMap::from([("local", 3)]));
}
