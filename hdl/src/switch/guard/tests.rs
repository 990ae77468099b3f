//! Frames of functions against the golden model's verification at both widths, under stalls, and what commands do to it.
use super::{Guard, COUNTS};
use crate::switch::flows::tests::seen;
use crate::switch::testing::{mac, set_lines, tunnel, words};
use crate::switch::verify::model::verify_on_card;
use crate::switch::verify::tests::{any_ip, any_port, any_sent, endpoints, sender_of};
use crate::tb::{AxisSink, AxisSource, Rng, Tb};
use ferric_abi::codes::SwitchCause;
use ferric_abi::context::SenderCtx;
use ferric_abi::switch::bind::{self, KEY_BITS};
use ferric_abi::switch::{table, FlowCommand};
use ferric_abi::wire::{protocol, ROCE_PORT, VXLAN_PORT};
use ferric_driver::switch::place::{Entry, Table};
use ferric_model::switch::tables::{Port, RocePolicy, Tables};
use std::collections::BTreeMap;

/// Functions, and log2 of the lines of a way of addresses.
const NF: usize = 4;
const LB: usize = 3;
/// Number of function 0's port.
const PORT_0: usize = 8;
/// Cycles in which a frame's fate is there.
const KNOWN: usize = 40;

struct Bench<const W: usize, const K: usize> {
    tb: Tb,
    source: AxisSource,
    sink: AxisSink,
    begun: Vec<usize>,
    ports: [Port; NF],
    tables: Tables,
    placement: Table<KEY_BITS, 64>,
    /// What was written into functions' lines and into the table of addresses, and how often each was read.
    card: BTreeMap<(u8, u8, u32), FlowCommand>,
    read: BTreeMap<u8, usize>,
}

impl<const W: usize, const K: usize> Bench<W, K> {
    fn new(stalls: [u32; 2], seed: u64) -> Self {
        let mut tb = Tb::with_seed(&format!("guard{W}"), Guard::<W, K, NF, LB, 5>::default(), seed);
        let tunnels = [tunnel(false), tunnel(true), tunnel(false).with_valid(false), tunnel(false).with_valid(false)];
        set_lines(&mut tb, &tunnels);
        let (source, sink) = (tb.axis_source("s", stalls[0]), tb.axis_sink("m", stalls[1]));
        let tables = Tables { endpoints: endpoints(&tunnels), ..Default::default() };
        Bench { tb, source, sink, begun: Vec::new(), ports: Default::default(), tables, placement: Table::new(LB as u32), card: BTreeMap::new(), read: BTreeMap::new() }
    }

    fn cycle(&mut self) {
        self.tb.cycle();
        if self.tb.get("m_begins") == 1 {
            self.begun.push(self.tb.get("m_function") as usize);
        }
    }

    /// Every counter that is not zero.
    fn counts(&mut self) -> BTreeMap<(usize, &'static str), u64> {
        let mut counts = BTreeMap::new();
        for f in 0..NF {
            for (place, name) in COUNTS.iter().enumerate() {
                self.tb.set("asked", (f * COUNTS.len() + place) as u64);
                self.cycle();
                counts.insert((f, *name), self.tb.get("count"));
            }
        }
        counts.retain(|_, count| *count > 0);
        counts
    }

    /// Gives a command; whether it is refused.
    fn give(&mut self, command: &FlowCommand) -> bool {
        self.tb.set("write", 1);
        self.tb.set_wide("command", &words(&command.0)[..]);
        self.cycle();
        self.tb.set("write", 0);
        let refused = self.tb.get("refused") == 1;
        self.cycle();
        assert_eq!(self.tb.get("refused"), 0);
        if !refused && command.opcode() != table::READ {
            let place = (command.table(), command.way(), command.line());
            let now = if command.opcode() == table::CLEAR { table::read(place.0, place.1, place.2).with_opcode(table::CLEAR) } else { *command };
            self.card.insert(place, now);
        }
        refused
    }

    /// Begins to read a line that was written once.
    fn ask(&mut self) -> Option<FlowCommand> {
        let at = self.tb.rng().below(self.card.len().max(1) as u64) as usize;
        let (table, way, line) = *self.card.keys().nth(at)?;
        let read = table::read(table, way, line);
        self.tb.set("write", 1);
        self.tb.set_wide("command", &words(&read.0)[..]);
        self.cycle();
        self.tb.set("write", 0);
        assert_eq!((self.tb.get("reading"), self.tb.get("refused")), (1, 0));
        Some(read)
    }

    /// What was asked for is there, and is what was written.
    fn answered(&mut self, read: &FlowCommand) {
        let answer: Vec<u8> = self.tb.get_wide("answer").iter().flat_map(|w| w.to_le_bytes()).collect();
        let stands = table::standing(read, answer[..].try_into().expect("64")).expect("a table that is written");
        // The card keeps what means something of a function's line.
        assert_eq!(stands, self.card[&(read.table(), read.way(), read.line())]);
        *self.read.entry(read.table()).or_default() += 1;
    }

    fn set_port(&mut self, f: usize, port: Port) {
        let spare = self.tb.rng().next_u64() >> 16;
        assert!(!self.give(&table::sender(f as u16, Some(&sender_of(&port, spare)))));
        self.ports[f] = port;
    }

    /// An address of a function comes or goes, as the driver places it.
    fn bind(&mut self, f: usize, v6: bool, ip: u128, there: bool) {
        let key = bind::key((PORT_0 + f) as u8, v6, ip);
        let address = ((PORT_0 + f) as u8, v6, ip);
        let writes = match there {
            true => self.placement.insert(Entry { key: key.into(), generation: 0, result: 0 }).unwrap_or_default(),
            false => self.placement.remove(&key, 0).into_iter().collect(),
        };
        if !writes.is_empty() {
            if there {
                _ = self.tables.bind.insert(address)
            } else {
                _ = self.tables.bind.remove(&address)
            }
        }
        for write in writes {
            let key = write.entry.map(|entry| std::array::from_fn(|n| entry.key[n]));
            assert!(!self.give(&table::bound(write.place.way, write.place.line.into(), key.as_ref())));
        }
    }

    /// The egress begins frames of these functions; their beats come some cycles later.
    fn begin(&mut self, functions: impl Iterator<Item = usize>) {
        for function in functions {
            self.tb.set("begins", 1);
            self.tb.set("begins_function", function as u64);
            self.cycle();
        }
        self.tb.set("begins", 0);
        (0..4).for_each(|_| self.cycle());
    }

    /// What stands against a frame; `None`: nobody looks.
    fn judge(&self, f: usize, frame: &[u8]) -> Option<SwitchCause> {
        let port = &self.ports[f];
        let (layers, cut) = seen(frame);
        let whole = if cut { [frame, &[0; 70_000]].concat() } else { frame.to_vec() };
        let verdict = layers.map_or(Err(SwitchCause::Deep), |layers| verify_on_card(&self.tables, (PORT_0 + f) as u8, port, &whole, &layers));
        port.verify.then(|| verdict.err().unwrap_or(SwitchCause::None))
    }

    /// Sends frames of functions and looks what has become of them.
    fn send(&mut self, frames: &[(usize, Vec<u8>)]) {
        let mut counts = self.counts();
        let mut passed = Vec::new();
        for (f, frame) in frames {
            let cause = self.judge(*f, frame);
            if cause.is_none_or(|cause| cause == SwitchCause::None) {
                passed.push((*f, frame.clone()));
            }
            if let Some(cause) = cause {
                *counts.entry((*f, name(cause))).or_default() += 1;
            }
        }
        self.begun.clear();
        self.begin(frames.iter().map(|(f, _)| *f));
        frames.iter().for_each(|(_, frame)| self.source.push(frame));
        let mut out = Vec::new();
        let mut idle = 0;
        let mut reading = None;
        while self.source.pending() > 0 || idle < KNOWN || reading.is_some() {
            match reading.take() {
                None if self.source.pending() > 0 => reading = self.ask(),
                None => self.cycle(),
                Some(read) => {
                    self.cycle();
                    if self.tb.get("reading") == 0 {
                        self.answered(&read);
                    } else {
                        reading = Some(read);
                    }
                }
            }
            let before = out.len();
            out.extend(std::iter::from_fn(|| self.sink.pop()));
            idle = if self.source.pending() > 0 || out.len() > before { 0 } else { idle + 1 };
            assert!(self.begun.len() >= out.len(), "a frame has left before it was said whose it is");
        }
        while out.len() < passed.len() {
            self.cycle();
            out.extend(std::iter::from_fn(|| self.sink.pop()));
            idle += 1;
            assert!(idle < 20_000, "{} of {} frames", out.len(), passed.len());
        }
        assert!(out.iter().eq(passed.iter().map(|(_, frame)| frame)), "{} of {}", out.len(), passed.len());
        assert!(self.begun.iter().eq(passed.iter().map(|(f, _)| f)));
        assert_eq!(self.counts(), counts);
    }
}

/// Under which name a cause counts.
fn name(cause: SwitchCause) -> &'static str {
    use SwitchCause::*;
    let place = [None, Deep, SpoofMac, SpoofIp, SpoofArp, TagDenied, RoceDenied, UnderlayDenied].iter().position(|c| *c == cause);
    COUNTS[place.expect("it is counted")]
}

/// A frame of a port that would be right, mostly: it has one of the port's addresses.
fn any_of(rng: &mut Rng, port: &Port) -> Vec<u8> {
    let mut frame = if rng.percent(25) { datagram(rng) } else { any_sent(rng) };
    if frame.is_empty() {
        frame.push(0);
    }
    if frame.len() >= 12 && rng.percent(60) && !port.macs.is_empty() {
        let own = port.macs[rng.below(port.macs.len() as u64) as usize];
        frame[6..12].copy_from_slice(&mac(own));
    }
    if rng.percent(5) {
        let more = rng.below(9000) as usize;
        frame.extend(rng.bytes(more));
    }
    frame
}

/// UDP over IPv4 to a port that not everybody may send to.
fn datagram(rng: &mut Rng) -> Vec<u8> {
    let mut frame = [mac(1), mac(2), [8, 0, 0x45, 0, 0, 36]].concat();
    frame.extend([0, 0, 0, 0, 64, protocol::UDP, 0, 0]);
    frame.extend((any_ip(rng, false) as u32).to_be_bytes());
    frame.extend([10, 9, 9, 9, 0xc0, 0]);
    frame.extend([VXLAN_PORT, ROCE_PORT, 53][rng.below(3) as usize].to_be_bytes());
    frame.extend([0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    frame
}

fn random<const W: usize, const K: usize>(stalls: [u32; 2], seed: u64, rounds: usize) -> BTreeMap<&'static str, u64> {
    let mut b = Bench::<W, K>::new(stalls, seed);
    let mut rng = Rng::new(seed);
    for _ in 0..rounds {
        for f in 0..NF {
            match rng.below(4) {
                0 => {
                    assert!(!b.give(&table::sender(f as u16, None)));
                    b.ports[f] = Port::default();
                }
                _ => b.set_port(f, any_port(&mut rng)),
            }
            for _ in 0..4 {
                let v6 = rng.percent(50);
                let (ip, there) = (any_ip(&mut rng, v6), rng.percent(70));
                b.bind(f, v6, ip, there);
            }
        }
        let frames: Vec<_> = (0..rng.range(1, 60))
            .map(|_| {
                let f = rng.below(NF as u64) as usize;
                (f, any_of(&mut rng, &b.ports[f]))
            })
            .collect();
        b.send(&frames);
    }
    assert!([table::SENDER, table::BIND].iter().all(|table| b.read.get(table).is_some_and(|n| *n > 100)), "{:?}", b.read);
    let mut sums = BTreeMap::new();
    b.counts().iter().for_each(|((_, name), n)| *sums.entry(*name).or_default() += n);
    sums
}

#[test]
fn frames_go_or_not_as_the_model_says_w64() {
    let sums = random::<64, 8>([30, 40], 1, 100);
    assert!(COUNTS.iter().all(|name| sums.get(name).is_some_and(|n| *n > 5)), "{sums:?}");
    random::<64, 8>([0, 0], 2, 40);
}

#[test]
fn frames_go_or_not_as_the_model_says_w512() {
    let sums = random::<512, 64>([30, 50], 3, 100);
    assert!(COUNTS.iter().all(|name| sums.get(name).is_some_and(|n| *n > 5)), "{sums:?}");
    random::<512, 64>([0, 0], 4, 60);
}

fn own(n: u64) -> Port {
    Port { macs: vec![n], any_ip: true, verify: true, roce: RocePolicy::Flow, ..Default::default() }
}

/// A frame of a type that nobody knows, from a MAC address.
fn plain(from: u64, tagged: bool, len: usize) -> Vec<u8> {
    let mut frame = [mac(0x0200_0000_0001), mac(from)].concat();
    if tagged {
        frame.extend([0x81, 0, 0, 7]);
    }
    frame.extend([0x88, 0xb5]);
    frame.resize(len, 0x77);
    frame
}

/// A beat a cycle goes in, and one out, whatever the frames' lengths; and the cycles that the first one takes.
fn in_every_cycle<const W: usize, const K: usize>(first: u64) {
    let mut b = Bench::<W, K>::new([0, 0], 5);
    b.set_port(1, own(7));
    for len in [60, 64, 65, 130, 1000] {
        let frames = vec![plain(7, false, len); 200];
        b.begin((0..200).map(|_| 1));
        frames.iter().for_each(|frame| b.source.push(frame));
        let beats = b.source.pending() as u64;
        let (mut cycles, mut out) = (0, 0);
        while out < 200 {
            b.cycle();
            cycles += 1;
            out += std::iter::from_fn(|| b.sink.pop()).count();
            assert!(cycles < beats + 100, "{len}: {out}");
        }
        let window = (len.min(128) / K) as u64;
        assert!(cycles <= beats + window + first, "{len}: {cycles} for {beats}");
    }
}

#[test]
fn a_beat_in_every_cycle() {
    in_every_cycle::<64, 8>(16);
    in_every_cycle::<512, 64>(16);
}

/// Nobody is verified: frames take two cycles, and whose they are is said a cycle ahead of them. Then somebody is, in the middle of frames, and nobody again: all that may leave do, in order.
fn nobody_is_verified<const W: usize, const K: usize>(stalls: [u32; 2]) {
    let mut b = Bench::<W, K>::new(stalls, 9);
    let mut rng = Rng::new(9);
    let (mut at_once, mut frames, mut out) = (0, Vec::new(), Vec::new());
    for round in 0..80 {
        if round == 0 || rng.percent(60) {
            (0..100).for_each(|_| b.cycle());
        }
        let some: Vec<_> = (0..30).map(|n| (rng.below(NF as u64) as usize, [plain(7, false, rng.range(16, 300) as usize), vec![n]].concat())).collect();
        b.begin(some.iter().map(|(f, _)| *f));
        some.iter().for_each(|(_, frame)| b.source.push(frame));
        frames.extend(some);
        if round == 0 && stalls == [0, 0] {
            b.cycle();
            assert_eq!((b.tb.get("m_begins"), b.tb.get("m$valid")), (1, 0));
            b.cycle();
            assert_eq!(b.tb.get("m$valid"), 1);
        }
        (0..rng.below(300)).for_each(|_| b.cycle());
        at_once += usize::from(b.ports.iter().all(|port| !port.verify));
        let f = rng.below(NF as u64) as usize;
        match rng.percent(40) {
            true => b.set_port(f, own(7)),
            false => (0..NF).for_each(|f| b.set_port(f, Port::default())),
        }
        while b.source.pending() > 0 {
            b.cycle();
        }
        out.extend(std::iter::from_fn(|| b.sink.pop()));
    }
    (0..8000).for_each(|_| b.cycle());
    out.extend(std::iter::from_fn(|| b.sink.pop()));
    assert!(out.iter().eq(frames.iter().map(|(_, frame)| frame)), "{} of {}", out.len(), frames.len());
    assert!(b.begun.iter().eq(frames.iter().map(|(f, _)| f)));
    assert!(at_once > 10 && b.counts().values().sum::<u64>() > 100, "{at_once}");
}

#[test]
fn frames_of_nobody_who_is_verified_go_by() {
    nobody_is_verified::<512, 64>([0, 0]);
    nobody_is_verified::<512, 64>([20, 50]);
    nobody_is_verified::<64, 8>([0, 0]);
    nobody_is_verified::<64, 8>([20, 50]);
}

/// A line that changes while frames leave: each is of the old one or of the new one.
#[test]
fn a_frame_is_judged_by_one_line() {
    let mut b = Bench::<512, 64>::new([0, 20], 6);
    let lines = [own(7), Port { trunk: true, ..own(9) }];
    let mut rng = Rng::new(6);
    let mut heard = [0; 2];
    for round in 0..60 {
        b.set_port(2, lines[round % 2].clone());
        let frames: Vec<_> = (0..60).map(|n| plain([7, 9][n % 2], n % 4 < 2, 60)).collect();
        b.begin((0..60).map(|_| 2));
        frames.iter().for_each(|frame| b.source.push(frame));
        (0..rng.below(60)).for_each(|_| b.cycle());
        b.set_port(2, lines[1 - round % 2].clone());
        (0..200).for_each(|_| b.cycle());
        for frame in std::iter::from_fn(|| b.sink.pop()) {
            assert!(frame[11] == 9 || frame[12] == 0x88, "the first one is no trunk");
            heard[usize::from(frame[11] == 9)] += 1;
        }
    }
    assert!(heard.iter().all(|n| *n > 100), "{heard:?}");
}

/// What takes the right to send away, and what does not.
#[test]
fn functions_are_closed() {
    let mut b = Bench::<64, 8>::new([10, 10], 7);
    let all = |b: &mut Bench<64, 8>, open: [bool; NF]| {
        let before = b.counts();
        b.begin(0..NF);
        (0..NF).for_each(|_| b.source.push(&plain(7, false, 60)));
        (0..200).for_each(|_| b.cycle());
        let out = std::iter::from_fn(|| b.sink.pop()).count();
        assert_eq!(out, open.iter().filter(|is| **is).count());
        let after = b.counts();
        for (f, open) in open.into_iter().enumerate() {
            let of = |counts: &BTreeMap<_, u64>| counts.get(&(f, "spoof_mac")).copied().unwrap_or(0);
            assert_eq!(of(&after) - of(&before), u64::from(!open), "function {f}");
        }
    };
    // Nobody is verified; then three are, of whom one may send from another address.
    all(&mut b, [true; NF]);
    [(0, 7), (1, 7), (2, 8)].into_iter().for_each(|(f, mac)| b.set_port(f, own(mac)));
    all(&mut b, [true, true, false, true]);
    let close = |b: &mut Bench<64, 8>, f: u64| {
        b.tb.set("close", 1);
        b.tb.set("closed", f);
        b.cycle();
        b.tb.set("close", 0);
    };
    // Of the one it is taken away; one that is not verified does not notice.
    close(&mut b, 1);
    close(&mut b, 3);
    all(&mut b, [true, false, false, true]);
    b.set_port(1, own(7));
    all(&mut b, [true, true, false, true]);
    // Of all; the physical function is free again.
    b.tb.set("forget", 1);
    b.cycle();
    b.tb.set("forget", 0);
    all(&mut b, [true, false, false, true]);
    [0, 1, 2].into_iter().for_each(|f| b.set_port(f, own(7)));
    all(&mut b, [true; NF]);
    b.set_port(0, own(8));
    all(&mut b, [false, true, true, true]);
    b.tb.reset();
    all(&mut b, [true; NF]);
}

/// What names nothing changes nothing.
#[test]
fn what_names_nothing_is_refused() {
    let mut b = Bench::<64, 8>::new([0, 0], 8);
    b.set_port(0, own(7));
    b.bind(0, false, 5, true);
    let line = SenderCtx::default().with_on(true);
    let key = bind::key(PORT_0 as u8, false, 5);
    let bad = [
        table::sender(NF as u16, Some(&line)),
        table::sender(64, None),
        table::read(table::SENDER, 0, NF as u32),
        table::read(table::BIND, 4, 0),
        table::read(table::BIND, 0, 1 << LB),
        table::read(table::ACTION, 0, 0),
        table::bound(4, 0, None),
        table::bound(0, 1 << LB, Some(&key)),
        table::bound(0, 0, None).with_opcode(0),
        table::action(0, None),
        table::flood(0, Some(1)),
    ];
    bad.iter().for_each(|command| assert!(b.give(command), "{command:?}"));
    // What was read of a table that is here; then of one that is not.
    let read = b.placement.find(&key, 0).map(|place| table::read(table::BIND, place.way, place.line.into())).expect("it was put there");
    assert!(!b.give(&read));
    (0..20).for_each(|_| b.cycle());
    b.answered(&read);
    assert!(b.give(&table::read(table::ACTION, 0, 0)));
    assert!(b.tb.get_wide("answer").iter().all(|word| *word == 0));
    let mut frame = plain(7, false, 14);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 99, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
    let strict = Port { any_ip: false, ..own(7) };
    b.set_port(0, strict);
    b.send(&[(0, frame.clone())]);
    assert_eq!(b.counts(), BTreeMap::from([((0, "verified"), 1)]));
    b.bind(0, false, 5, false);
    // What is cleared does not count, whatever the command brings.
    let place = b.placement.candidates(&key)[0];
    assert!(!b.give(&table::bound(place.way, place.line.into(), Some(&key)).with_opcode(table::CLEAR)));
    b.send(&[(0, frame)]);
    assert_eq!(b.counts().get(&(0, "spoof_ip")), Some(&1));
}
