//! Frames of every kind and functions that want anything, beside the golden model.
mod frames;
mod parts;
mod rules;

use super::choose::tables;
use super::load::{line, Wants, Write};
use super::Steer;
use crate::codes::steer_cause;
use crate::host::testing::Control;
use crate::msg::{VqNotify, VsDropped, VsFor, VsNote};
use crate::tb::{AxisSink, AxisSource, Fields, Rng, Sink, Source, Tb};
use ferric_abi::virtio::feature;
use ferric_model::virtio::filter::{Filter, Filtered, Rules};
use ferric_model::virtio::rss::{Rss, KEY};
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
