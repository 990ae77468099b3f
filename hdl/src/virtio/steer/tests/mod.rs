//! Frames of every kind and functions that want anything, beside the golden model.
mod frames;

use super::choose::tables;
use super::load::{line, Wants, Write};
use super::toeplitz::Toeplitz;
use super::Steer;
use crate::codes::steer_cause;
use crate::host::testing::Control;
use crate::msg::{VqNotify, VsDropped, VsFor, VsNote};
use crate::tb::{AxisSink, AxisSource, Fields, Rng, Sink, Source, Tb};
use crate::virtio::note::Note;
use ferric_abi::virtio::feature;
use ferric_abi::virtio::net::control;
use ferric_model::virtio::filter::{Filter, Filtered, Rules};
use ferric_model::virtio::rss::{toeplitz, Rss, KEY, MOST};
use ferric_model::virtio::steer::Flows;
use frames::{answer, frame, mac, VLANS};
use std::collections::{BTreeMap, VecDeque};

const FUNCTIONS: u64 = 8;
const QUEUES: u64 = 32;

/// A function as the model has it.
struct Golden {
    filter: Filter,
    modes: [bool; 6],
    features: u64,
    own: [u8; 6],
    pairs: u16,
    first: u16,
    multiqueue: bool,
    rss: Option<Rss>,
    flows: Flows,
}

impl Golden {
    /// One that wants anything.
    fn any(rng: &mut Rng) -> Self {
        let mut filter = Filter::default();
        let mut list = |group: bool, most: u64| {
            let count = if rng.percent(10) {
                most + 1
            } else if rng.percent(20) {
                most
            } else {
                rng.below(most)
            };
            let macs: Vec<u8> = (0..count).flat_map(|_| mac(group, rng.below(36))).collect();
            [&(count as u32).to_le_bytes()[..], &macs].concat()
        };
        let tables = [list(false, 16), list(true, 32)].concat();
        filter.set_addresses(&tables).expect("a whole table");
        VLANS.into_iter().for_each(|vlan| filter.set_vlan(vlan, rng.percent(50)).expect("a VLAN"));
        let modes = std::array::from_fn(|_| rng.percent(12));
        let features = [feature::CTRL_RX, feature::CTRL_VLAN].into_iter().filter(|_| rng.percent(70)).sum();
        let pairs = if rng.percent(8) { 0 } else { rng.range(1, 8) as u16 };
        let table = |rng: &mut Rng| {
            let entries = 1 << rng.below(8);
            // Some lead to a pair that is not in use.
            let any_pair = |rng: &mut Rng| if rng.percent(3) { rng.below(256) as u16 } else { rng.below(u64::from(pairs.max(1))) as u16 };
            let types = if rng.percent(40) { 0x3f } else { rng.below(64) as u32 };
            let key = rng.bytes(KEY).try_into().expect("as long");
            Rss { types, pairs: (0..entries).map(|_| any_pair(rng)).collect(), unclassified: any_pair(rng), key }
        };
        let rss = rng.percent(50).then(|| table(rng));
        Self { filter, modes, features, own: mac(false, rng.below(20)), pairs, first: rng.below(8) as u16, multiqueue: rng.percent(80), rss, flows: Flows::default() }
    }

    fn rules(&self) -> Rules<'_> {
        Rules { filter: &self.filter, modes: self.modes, features: self.features, own: self.own }
    }

    fn writes(&self, function: u32) -> Vec<Write> {
        Wants { rules: self.rules(), pairs: self.pairs as u8, first: self.first as u8, multiqueue: self.multiqueue, rss: self.rss.as_ref() }.writes(function)
    }

    /// What becomes of a frame: its queue, or why not.
    fn place(&self, frame: &[u8]) -> Result<u16, u64> {
        self.rules().judge(frame).map_err(|why| match why {
            Filtered::Runt => steer_cause::RUNT,
            Filtered::Vlan => steer_cause::VLAN,
            Filtered::Broadcast => steer_cause::BROADCAST,
            Filtered::Multicast => steer_cause::MULTICAST,
            Filtered::Unicast => steer_cause::UNICAST,
        })?;
        let pair = match &self.rss {
            Some(rss) => rss.pair_of(frame),
            None if self.multiqueue => self.flows.pair_of(frame, self.pairs),
            None => 0,
        };
        if pair < self.pairs {
            Ok(2 * (self.first + pair))
        } else {
            Err(steer_cause::NO_QUEUE)
        }
    }
}

/// What has become of a frame.
type Fate = Result<(u16, Vec<u8>), (u64, u64)>;

struct Bench {
    tb: Tb,
    frames: AxisSource,
    whose: Source,
    control: Control,
    notes: Source,
    out: AxisSink,
    to: Sink,
    functions: Vec<Golden>,
    owners: Vec<usize>,
    expected: VecDeque<Fate>,
    dropped: VecDeque<(u64, u64)>,
    /// What has come of frames, by cause.
    seen: BTreeMap<u64, u64>,
}

impl Bench {
    fn new(width: usize, seed: u64, stall: u32) -> Self {
        let name = format!("virtio_steer_w{width}");
        let mut tb =
            if width == 512 { Tb::with_seed(&name, Steer::<512, 64, 5, 5, 11, 12, 15, 10>::default(), seed) } else { Tb::with_seed(&name, Steer::<64, 8, 3, 5, 9, 10, 13, 8>::default(), seed) };
        let (frames, whose, control) = (tb.axis_source("s_frame", stall), tb.source("s_for", stall), Control::new(&mut tb, stall));
        let (notes, out, to) = (tb.source("s_note", stall), tb.axis_sink("m_frame", stall), tb.sink("m_to", stall));
        let functions = (0..FUNCTIONS).map(|_| Golden::any(tb.rng())).collect();
        let owners = (0..QUEUES).map(|_| tb.rng().below(FUNCTIONS) as usize).collect();
        let mut bench = Self { tb, frames, whose, control, notes, out, to, functions, owners, expected: VecDeque::new(), dropped: VecDeque::new(), seen: BTreeMap::new() };
        (0..FUNCTIONS as usize).for_each(|function| bench.load(function));
        for queue in 0..QUEUES as usize {
            let owner = bench.owners[queue] as u32;
            bench.write((line(tables::OWNERS, queue as u32), 0, owner));
        }
        bench
    }

    fn write(&mut self, (line, word, data): Write) {
        self.control.ask(line, word, Some(data));
        let (control, mut answer) = (&self.control, None);
        self.tb.run_until(5000, |_| {
            answer = control.answer();
            answer.is_some()
        });
        assert_eq!(answer.flatten(), Some(0), "line {line:#x}");
    }

    fn load(&mut self, function: usize) {
        self.write((line(tables::FLOWS, function as u32), 0, 0));
        self.functions[function].writes(function as u32).into_iter().for_each(|write| self.write(write));
    }

    /// Another life of a function.
    fn renew(&mut self, function: usize) {
        self.functions[function] = Golden::any(self.tb.rng());
        self.load(function);
    }

    fn offer(&mut self, function: usize, frame: Vec<u8>) {
        self.whose.push(Fields::of::<VsFor>().pack(&[("function", function as u128)]));
        self.frames.push(&frame);
        let fate = self.functions[function].place(&frame);
        *self.seen.entry(*fate.as_ref().err().unwrap_or(&steer_cause::NONE)).or_default() += 1;
        self.expected.push_back(fate.map(|queue| (queue, frame)).map_err(|cause| (function as u64, cause)));
    }

    /// A frame has left by a queue: its flow's answers come there.
    fn note(&mut self, queue: u64, frame: &[u8]) {
        let function = &mut self.functions[self.owners[queue as usize]];
        let pair = (queue as u16 / 2).wrapping_sub(function.first);
        function.flows.note(frame, pair);
        if let Some(place) = ferric_model::virtio::steer::place(frame) {
            self.notes.push(Fields::of::<VsNote>().pack(&[("queue", queue.into()), ("place", place as u128)]));
        }
    }

    fn cycle(&mut self) {
        self.tb.begin();
        if self.tb.get("dropped_valid") == 1 {
            let (fields, words) = (Fields::of::<VsDropped>(), self.tb.get_wide("dropped"));
            self.dropped.push_back((fields.get(&words, "function") as u64, fields.get(&words, "cause") as u64));
        }
        self.tb.end();
    }

    /// Until all that has been offered is where it belongs.
    fn settle(&mut self) {
        let (mut passed, mut queues) = (VecDeque::new(), VecDeque::new());
        let dropped = self.expected.iter().filter(|fate| fate.is_err()).count();
        let limit = self.tb.cycles() + 2_000_000;
        while passed.len() + self.dropped.len() < self.expected.len() || queues.len() < passed.len() || self.notes.pending() > 0 {
            assert!(self.tb.cycles() < limit, "{} of {} frames have come, {} are dropped", passed.len(), self.expected.len() - dropped, self.dropped.len());
            self.cycle();
            passed.extend(self.out.pop());
            queues.extend(self.to.pop());
        }
        for (n, fate) in std::mem::take(&mut self.expected).into_iter().enumerate() {
            match fate {
                Ok((queue, frame)) => {
                    let words = queues.pop_front().unwrap_or_else(|| panic!("frame {n} has no queue"));
                    assert_eq!(u64::from(queue), Fields::of::<VqNotify>().get(&words, "queue") as u64, "queue of frame {n}: {frame:02x?}");
                    assert_eq!(passed.pop_front(), Some(frame), "frame {n}");
                }
                Err(why) => assert_eq!(self.dropped.pop_front(), Some(why), "frame {n} is dropped"),
            }
        }
        assert!(passed.is_empty() && queues.is_empty() && self.dropped.is_empty());
        // A note that has been taken is in the table a few cycles later.
        self.tb.run(8);
    }
}

fn rounds(width: usize, seed: u64, stall: u32, count: usize) {
    let mut b = Bench::new(width, seed, stall);
    for _ in 0..count {
        for _ in 0..40 {
            let (function, frame) = (b.tb.rng().below(FUNCTIONS) as usize, frame(b.tb.rng()));
            b.offer(function, frame);
        }
        b.settle();
        // Frames leave, and their answers come.
        let mut answers = Vec::new();
        for _ in 0..20 {
            let (queue, frame) = (b.tb.rng().below(QUEUES), frame(b.tb.rng()));
            b.note(queue, &frame);
            answers.push((b.owners[queue as usize], answer(&frame)));
        }
        b.settle();
        answers.into_iter().for_each(|(function, frame)| b.offer(function, frame));
        b.settle();
        for _ in 0..2 {
            let function = b.tb.rng().below(FUNCTIONS) as usize;
            b.renew(function);
        }
    }
    assert!((0..=steer_cause::COUNT as u64).all(|cause| b.seen.get(&cause).is_some_and(|n| *n >= 10)), "not enough of all: {:?}", b.seen);
}

#[test]
fn frames_go_where_the_model_says_w64() {
    rounds(64, 1, 30, 120);
    rounds(64, 2, 0, 80);
}

#[test]
fn frames_go_where_the_model_says_w512() {
    rounds(512, 3, 30, 120);
    rounds(512, 4, 0, 80);
}

/// One function, which all rules are tried on.
fn alone(pairs: u16) -> (Bench, Golden) {
    let b = Bench::new(64, 5, 10);
    let filter = Filter::default();
    let golden = Golden { filter, modes: [false; 6], features: feature::CTRL_RX | feature::CTRL_VLAN, own: mac(false, 0), pairs, first: 0, multiqueue: true, rss: None, flows: Flows::default() };
    (b, golden)
}

/// A frame to an address, with a tag or without.
fn plain(to: [u8; 6], vlan: Option<u16>) -> Vec<u8> {
    let tag = vlan.map_or(vec![], |vlan| [[0x81, 0], vlan.to_be_bytes()].concat());
    [&to[..], &[2; 6], &tag, &[0x88, 0xb5], &[7; 46]].concat()
}

#[test]
fn modes_and_tables() {
    let (mut b, golden) = alone(1);
    b.functions[0] = golden;
    let to = [mac(false, 0), mac(false, 1), mac(true, 0), [0xff; 6]];
    for mode in (control::RX_PROMISC..=control::RX_NOBCAST).map(Some).chain([None]) {
        b.functions[0].modes = std::array::from_fn(|n| mode == Some(n as u8));
        b.load(0);
        to.into_iter().for_each(|to| b.offer(0, plain(to, None)));
        b.settle();
    }
    // Lists of every length: the last address is found, those behind it are not, and too many are all. The lists before have been longer.
    for (own, groups) in [(16, 32), (17, 33), (0, 0), (1, 31), (15, 1)] {
        let list = |group: bool, n: u64| [&(n as u32).to_le_bytes()[..], &(0..n).flat_map(|i| mac(group, i + 1)).collect::<Vec<_>>()].concat();
        b.functions[0].filter.set_addresses(&[list(false, own), list(true, groups)].concat()).expect("a table");
        b.load(0);
        for n in [0, 1, own, own + 1] {
            b.offer(0, plain(mac(false, n), None));
        }
        for n in [1, groups, groups + 1] {
            b.offer(0, plain(mac(true, n), None));
        }
        b.settle();
    }
    // Every VLAN that differs in one bit.
    for n in 0..12 {
        let vlan = 0x5a5 ^ 1 << n;
        b.functions[0].filter.set_vlan(vlan, true).expect("a VLAN");
        b.load(0);
        for other in (0..12).map(|m| vlan ^ 1 << m).chain([vlan, vlan | 0xe000]) {
            b.offer(0, plain(mac(false, 0), Some(other)));
        }
        b.settle();
        b.functions[0].filter.set_vlan(vlan, false).expect("a VLAN");
    }
}

#[test]
fn flows_are_forgotten_when_they_are_to_be() {
    let (mut b, mut golden) = alone(4);
    golden.modes[usize::from(control::RX_PROMISC)] = true;
    b.functions[0] = golden;
    b.load(0);
    b.write((line(tables::OWNERS, 7), 0, 0));
    b.owners[7] = 0;
    let sent: Vec<_> = std::iter::repeat_with(|| frame(b.tb.rng())).filter(|frame| ferric_model::virtio::steer::place(frame).is_some()).take(20).collect();
    sent.iter().for_each(|frame| b.note(7, frame));
    b.settle();
    sent.iter().for_each(|frame| b.offer(0, answer(frame)));
    assert!(b.expected.iter().any(|fate| fate.as_ref().is_ok_and(|(queue, _)| *queue == 6)));
    b.settle();
    b.functions[0].flows = Flows::default();
    b.load(0);
    sent.iter().for_each(|frame| b.offer(0, answer(frame)));
    assert!(b.expected.iter().all(|fate| fate.as_ref().is_ok_and(|(queue, _)| *queue == 0)));
    b.settle();
}

#[test]
fn what_is_no_write_of_a_table_is_refused() {
    let (mut b, _) = alone(1);
    for (at, write) in [(line(tables::COUNT, 0), Some(1)), (line(tables::FUNCTIONS, 0), None), (0xff_0000, Some(0))] {
        b.control.ask(at, 0, write);
        let mut answer = None;
        let control = &b.control;
        b.tb.run_until(5000, |_| {
            answer = control.answer();
            answer.is_some()
        });
        assert_eq!(answer, Some(None), "line {at:#x}");
    }
}

/// The published vectors (model/src/virtio/tests/rss.rs has them all with their source), and random ones.
#[test]
fn hashes_are_toeplitz() {
    let published: [u8; KEY] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
        0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];
    // 66.9.149.187:2794 to 161.142.100.80:1766, and 3ffe:501:8::260:97ff:fe40:efab:14230 to ff02::1:4739.
    let v4 = [66, 9, 149, 187, 161, 142, 100, 80, 0x0a, 0xea, 0x06, 0xe6];
    let v6 = [0x3f, 0xfe, 0x05, 0x01, 0, 8, 0, 0, 0x02, 0x60, 0x97, 0xff, 0xfe, 0x40, 0xef, 0xab, 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x37, 0x96, 0x12, 0x83];
    let mut cases = vec![(published, v4.to_vec(), Some((0x323e_8fc2, 0x51cc_c178))), (published, v6.to_vec(), Some((0x0f0c_461c, 0xdde5_1bbf)))];
    let mut tb = Tb::new("virtio_toeplitz", Toeplitz::<2, 7>::default());
    for n in 0..40 {
        let key = tb.rng().bytes(KEY).try_into().expect("as long");
        cases.push((key, tb.rng().bytes(if n % 2 == 0 { 12 } else { 36 }), None));
    }
    for (n, (key, data, hashes)) in cases.into_iter().enumerate() {
        let function = n as u64 % 4;
        for (i, word) in key.chunks_exact(2).enumerate() {
            tb.set("write_en", 1);
            tb.set("write_addr", function << 5 | i as u64);
            tb.set("write_data", u64::from(word[0]) << 8 | u64::from(word[1]));
            tb.cycle();
        }
        tb.set("write_en", 0);
        tb.set("owner", function);
        tb.set("begins", 1);
        tb.cycle();
        tb.set("begins", 0);
        tb.run(3);
        let words = data.len() / 2;
        for (i, word) in data.chunks_exact(2).enumerate() {
            tb.set("feeds", 1);
            tb.set("feed", u64::from(word[0]) << 8 | u64::from(word[1]));
            tb.set("paired", u64::from(i + 3 == words));
            tb.cycle();
            tb.set("feeds", 0);
            tb.set("feed", 0xffff);
            if tb.rng().percent(20) {
                tb.cycle();
            }
        }
        tb.cycle();
        let got = (tb.get("pair") as u32, tb.get("whole") as u32);
        assert_eq!(got, (toeplitz(&key, &data[..data.len() - 4]), toeplitz(&key, &data)), "case {n}");
        assert!(hashes.is_none_or(|hashes| hashes == got), "case {n}: {got:x?}");
    }
    assert_eq!(MOST, 1 << super::choose::LG_PAIRS);
}

/// How long a frame of 64 bytes takes: the figure of README.md.
#[test]
fn a_short_frame_is_steered_in_time() {
    for (width, most) in [(64, 35), (512, 30)] {
        let mut b = Bench::new(width, 6, 0);
        b.functions[0].modes = [true, false, false, false, false, false];
        b.functions[0].pairs = 1;
        b.load(0);
        let tcp = [&[2; 12][..], &[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6, 0, 0], &[10; 8], &[1; 26]].concat();
        (0..100).for_each(|_| b.offer(0, tcp.clone()));
        let from = b.tb.cycles();
        b.settle();
        let each = (b.tb.cycles() - from) / 100;
        assert!(each <= most, "{width} bits: {each} cycles");
        println!("{width} bits: {each} cycles for a frame");
    }
}

fn notes<const W: usize, const K: usize>(stall: u32) {
    let mut tb = Tb::new(&format!("virtio_note_w{W}"), Note::<W, K>::default());
    let (s, from, m) = (tb.axis_source("s_frame", stall), tb.source("s_from", stall), tb.axis_sink("m_frame", stall));
    let (queues, noted) = (tb.sink("m_from", stall), tb.sink("m_note", stall));
    let fields = Fields::of::<VsNote>();
    let (mut sent, mut wanted) = (Vec::new(), Vec::new());
    for _ in 0..300 {
        let (queue, frame) = (tb.rng().below(1 << 16), frame(tb.rng()));
        from.push(Fields::of::<VqNotify>().pack(&[("queue", queue.into())]));
        s.push(&frame);
        wanted.extend(ferric_model::virtio::steer::place(&frame).map(|place| (queue, place as u64)));
        sent.push((queue, frame));
    }
    let (mut got, mut count) = (Vec::new(), 0);
    let take = |got: &mut Vec<(u64, u64)>| {
        while let Some(words) = noted.pop() {
            got.push((fields.get(&words, "queue") as u64, fields.get(&words, "place") as u64));
        }
    };
    tb.run_until(400_000, |_| {
        while let Some(frame) = m.pop() {
            assert_eq!(frame, sent[count].1, "frame {count}");
            count += 1;
        }
        take(&mut got);
        count == sent.len()
    });
    tb.run(300);
    take(&mut got);
    assert_eq!(got, wanted);
    let passed: Vec<_> = std::iter::from_fn(|| queues.pop()).map(|words| Fields::of::<VqNotify>().get(&words, "queue") as u64).collect();
    assert_eq!(passed, sent.iter().map(|(queue, _)| *queue).collect::<Vec<_>>());
}

#[test]
fn frames_that_leave_are_noted() {
    notes::<64, 8>(30);
    notes::<512, 64>(0);
    notes::<512, 64>(30);
}
