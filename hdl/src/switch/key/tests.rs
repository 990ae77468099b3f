//! Keys against the golden model's, of frames of every shape.
use super::{model, Facts, Key, Origin, LATENCY};
use crate::bus::AxisSink;
use crate::records::FlowKey as KeyStruct;
use crate::switch::sight::Sight;
use crate::switch::testing::{mac, old};
use crate::tb::{Fields, Rng, Tb};
use ferric_abi::switch::FlowKey;
use ferric_abi::wire::protocol;
use ferric_hdl_derive::{kernel, BlockDefault};
use ferric_model::switch::key::{key, Origin as From};
use ferric_model::switch::tables::packet_class;
use rust_hdl::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// A stream of frames in front of the block.
#[derive(LogicBlock, BlockDefault)]
struct Front<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: AxisSink<W, K>,
    pub origin: Signal<In, Origin>,
    pub valid: Signal<Out, Bit>,
    pub key: Signal<Out, KeyStruct>,
    pub facts: Signal<Out, Facts>,
    sight: Sight<W, K>,
    parse: Key,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Front<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, sight, parse);
        self.sight.reset.next = self.reset.val();
        self.parse.reset.next = self.reset.val();
        self.s.ready.next = true;
        self.sight.data.next = self.s.data.val();
        self.sight.keep.next = self.s.keep.val();
        self.sight.last.next = self.s.last.val();
        self.sight.err.next = false;
        self.sight.valid.next = self.s.valid.val();
        self.parse.window.next = self.sight.window.val();
        self.parse.window_valid.next = self.sight.window_valid.val();
        self.parse.ended.next = self.sight.ended.val();
        self.parse.len.next = self.sight.len.val();
        self.parse.origin.next = self.origin.val();
        self.valid.next = self.parse.valid.val();
        self.key.next = self.parse.key.val();
        self.facts.next = self.parse.facts.val();
    }
}

fn pick<T: Copy>(rng: &mut Rng, list: &[T]) -> T {
    list[rng.below(list.len() as u64) as usize]
}

/// What may follow an IP header.
fn upper(rng: &mut Rng) -> (u8, Vec<u8>) {
    let proto = pick(rng, &[6, 6, 6, 6, 17, 17, 17, 17, 1, 1, 58, 58, 99, 99, 0, 43, 44, 50, 51, 60, 135]);
    let length = pick(rng, &[0, 4, 7, 8, 12, 19, 20, 21, 40, 90]);
    let mut bytes = rng.bytes(length);
    if proto == protocol::UDP && length >= 8 && rng.percent(50) {
        bytes[2..4].copy_from_slice(&ferric_abi::wire::ROCE_PORT.to_be_bytes());
    }
    if proto == protocol::TCP && length >= 20 && rng.percent(50) {
        bytes[13] &= 0xf8;
    }
    (proto, bytes)
}

/// An IPv4 packet.
fn ipv4(rng: &mut Rng) -> Vec<u8> {
    let (proto, behind) = upper(rng);
    let words = if rng.percent(60) { 5 } else { rng.below(16) as usize };
    let part = pick(rng, &[0, 0, 0, 0x4000, 0x2000, 0x2001, 1, 0x1fff, 0x8000]);
    let mut ip = vec![0x40 | words as u8, rng.next_u32() as u8, 0, 0, 0, 0, 0, 0, pick(rng, &[0, 1, 2, 64, 255]), proto, 0, 0];
    ip[6..8].copy_from_slice(&u16::to_be_bytes(part));
    ip.extend(rng.bytes((words * 4).max(20) - 12));
    ip.extend(behind);
    let total = ip.len() as u16;
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    ip
}

/// An IPv6 packet.
fn ipv6(rng: &mut Rng) -> Vec<u8> {
    let (mut proto, mut behind) = upper(rng);
    if rng.percent(40) {
        let offset = pick(rng, &[0, 1, 1, 1, 8, 9, 0xfff8, 2, 4]);
        let mut fragment = vec![proto, rng.next_u32() as u8, 0, 0, 1, 2, 3, 4];
        fragment[2..4].copy_from_slice(&u16::to_be_bytes(offset));
        (proto, behind) = (44, [fragment, behind].concat());
    }
    if rng.percent(40) {
        let options = [&[proto, pick(rng, &[0, 0, 0, 1])][..], &rng.bytes(6)].concat();
        (proto, behind) = (0, [options, behind].concat());
    }
    let tos = rng.next_u32() as u8;
    let mut ip = vec![0x60 | tos >> 4, tos << 4 | 3, 1, 2];
    ip.extend((behind.len() as u16).to_be_bytes());
    ip.extend([proto, pick(rng, &[0, 1, 2, 64])]);
    ip.extend(rng.bytes(32));
    ip.extend(behind);
    ip
}

/// Frames as they come, and as strangers make them.
pub(in crate::switch) fn any_frame(rng: &mut Rng) -> Vec<u8> {
    if rng.percent(4) {
        let length = rng.range(1, 150) as usize;
        return rng.bytes(length);
    }
    let mut frame = [mac(rng.next_u64()), mac(rng.next_u64())].concat();
    for _ in 0..pick(rng, &[0, 0, 0, 1, 1, 2, 3]) {
        frame.extend(pick(rng, &[[0x81, 0x00], [0x81, 0x00], [0x88, 0xa8]]));
        frame.extend(rng.bytes(2));
    }
    match rng.below(16) {
        0..6 => {
            frame.extend([0x08, 0x00]);
            frame.extend(ipv4(rng));
        }
        6..12 => {
            frame.extend([0x86, 0xdd]);
            frame.extend(ipv6(rng));
        }
        12..14 => {
            frame.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4]);
            frame.extend(pick(rng, &[[0, 1], [0, 2], [0, 255], [1, 0]]));
            frame.extend(rng.bytes(20));
        }
        14 => {
            frame.extend(pick(rng, &[[0x88, 0x47], [0x88, 0x48], [0x89, 0x4f], [0x05, 0xff], [0x06, 0x00], [0x00, 0x40], [0x88, 0xb5]]));
            frame.extend(rng.bytes(30));
        }
        _ => frame.extend(rng.bytes(40)),
    }
    match rng.below(10) {
        // Padding, and packets beyond the window.
        0..3 => {
            let more = rng.below(120) as usize;
            frame.extend(rng.bytes(more));
        }
        // One bit of the headers is another one; so lengths contradict each other.
        3..6 => {
            let at = rng.range(12, frame.len().min(70) as u64 - 1) as usize;
            frame[at] ^= 1 << rng.below(8);
        }
        // The frame is cut.
        6 => frame.truncate(rng.range(1, frame.len() as u64) as usize),
        7 => {
            let at = frame.len().min(18) + rng.below(4) as usize;
            frame.resize(at, 0);
        }
        _ => {}
    }
    frame
}

fn class_of(frame: &[u8]) -> String {
    match model::parse(frame) {
        Err(deep) => format!("{deep:?}"),
        Ok(layers) => match layers.ip() {
            Some(ip) => format!("v{} {:?} {}", if ip.v6 { 6 } else { 4 }, ip.fragment, if layers.tag.is_some() { "tagged" } else { "plain" }),
            None => format!("class {}", packet_class(&layers)),
        },
    }
}

struct Bench {
    tb: Tb,
    /// The origins of the last cycles, the newest first.
    origins: VecDeque<From>,
    fields: Fields,
    expected: VecDeque<Vec<u8>>,
    seen: BTreeMap<String, usize>,
}

impl Bench {
    fn cycle(&mut self) -> bool {
        let rng = self.tb.rng();
        let from = From { port: rng.next_u32() as u8, domain: rng.below(4096) as u16, remote: rng.below(4096) as u16, geneve_option: rng.percent(50) };
        let words = Fields::of::<Origin>().pack(&[("port", from.port.into()), ("domain", from.domain.into()), ("remote", from.remote.into()), ("option", from.geneve_option.into())]);
        self.tb.set_wide("origin", &words[..]);
        self.origins.push_front(from);
        self.origins.truncate(LATENCY as usize);
        self.tb.cycle();
        let valid = self.tb.get("valid") == 1;
        if valid {
            let frame = self.expected.pop_front().expect("a key for every frame, no more");
            self.compare(&frame);
        }
        valid
    }

    fn compare(&mut self, frame: &[u8]) {
        let facts = self.tb.get_wide("facts");
        let fact = |name: &str| self.fields.get(&facts, name) as u64;
        *self.seen.entry(class_of(frame)).or_default() += 1;
        // A frame that is longer than the window is known to be cut when it ends.
        let deep = fact("deep") == 1 || frame.len() > model::WINDOW && fact("stop") > frame.len() as u64;
        let Ok(layers) = model::parse(frame) else {
            assert!(deep, "{:?} of {frame:02x?}", model::parse(frame));
            return;
        };
        assert!(!deep, "{layers:?} of {frame:02x?}");
        let bytes: Vec<u8> = self.tb.get_wide("key").iter().flat_map(|w| w.to_le_bytes()).collect();
        let want = key(&layers, self.origins[LATENCY as usize - 1]);
        assert_eq!(FlowKey(bytes[..61].try_into().expect("61")), want, "{frame:02x?}");
        assert_eq!(fact("class"), u64::from(packet_class(&layers)));
        assert_eq!(fact("stop"), layers.ip().map_or(0, |ip| ip.end as u64));
        assert_eq!(fact("roce"), u64::from(layers.udp_to() == Some(ferric_abi::wire::ROCE_PORT)));
        assert_eq!(fact("ends"), u64::from(layers.ip().is_some_and(|ip| ip.proto == protocol::TCP) && layers.tcp_flags & 7 != 0));
        for (name, value) in old(&layers, frame) {
            assert_eq!(fact(&format!("old.{name}")), value as u64, "{name} of {frame:02x?}");
        }
        if let model::Upper::Arp(arp) = layers.upper {
            assert_eq!(fact("hardware"), arp.hardware);
        }
    }
}

fn frames<const W: usize, const K: usize>(count: usize) {
    let mut tb = Tb::new(&format!("key{W}"), Front::<W, K>::default());
    let frames: Vec<Vec<u8>> = (0..count).map(|_| any_frame(tb.rng())).collect();
    let source = tb.axis_source("s", 20);
    frames.iter().for_each(|frame| source.push(frame));
    let mut b = Bench { tb, origins: VecDeque::new(), fields: Fields::of::<Facts>(), expected: frames.into(), seen: BTreeMap::new() };
    for _ in 0..40 * count {
        b.cycle();
        if b.expected.is_empty() {
            break;
        }
    }
    assert!(b.expected.is_empty());
    (0..20).for_each(|_| assert!(!b.cycle()));
    // Nothing of the parse graph was left out.
    for version in ["v4", "v6"] {
        for fragment in ["Whole", "First", "Later"] {
            for tag in ["plain", "tagged"] {
                let class = format!("{version} {fragment} {tag}");
                assert!(b.seen.get(&class).is_some_and(|n| *n > 2), "{class}: {:?}", b.seen);
            }
        }
    }
    ["Truncated", "Tags", "Unknown", "class 0", "class 1"].iter().for_each(|class| assert!(b.seen.get(*class).is_some_and(|n| *n > count / 100), "{class}: {:?}", b.seen));
}

#[test]
fn keys_are_the_models_w512() {
    frames::<512, 64>(6000);
}

#[test]
fn keys_are_the_models_w64() {
    frames::<64, 8>(4000);
}

/// A frame every cycle, a key every cycle.
#[test]
fn one_key_a_cycle() {
    let mut tb = Tb::new("key512", Front::<512, 64>::default());
    let source = tb.axis_source("s", 0);
    let frames: Vec<Vec<u8>> = (0..200).map(|n| [mac(n), mac(!n)].concat().into_iter().chain([0x88, 0xb5]).chain(std::iter::repeat_n(n as u8, 50)).collect()).collect();
    frames.iter().for_each(|frame| source.push(frame));
    let mut b = Bench { tb, origins: VecDeque::new(), fields: Fields::of::<Facts>(), expected: frames.into(), seen: BTreeMap::new() };
    let first = (1..).find(|_| b.cycle()).expect("a key");
    // The beat is taken in the first cycle, side by side with others in the next one, and shown in the one after it.
    assert_eq!(first, 2 + LATENCY);
    (1..200).for_each(|n| assert!(b.cycle(), "key {n} is late"));
}
