//! The front end with its cell buffer against the golden parser, and the parser against etherparse and real frames.

mod golden;

use super::model::{receive, Drop, Parsed};
use super::opcode::Headers;
use super::{RxFront, STATS, STRANGERS};
use crate::bus::{AxisSink, AxisSrc, MsgSink, MsgSrc};
use crate::msg::{CellRead, Network, PeerAsk, RxDesc};
use crate::net::cells::{CellBuffer, CellWriter, CELLS};
use crate::net::icrc::model::seal;
use crate::net::icrc::tests::captured;
use crate::tb::{Fields, Rng, Tb};
use ferric_abi::meta::frame_kind;
use ferric_abi::wire::{Bth, Eth, Ipv4, Ipv6};
use ferric_hdl_derive::kernel;
use ferric_model::net::networks::WHOLE;
use rust_hdl::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// Front end and buffer as in the card.
#[derive(LogicBlock, Default)]
struct Receive<const W: usize, const K: usize, const LK: usize> {
    clock: Signal<In, Clock>,
    reset: Signal<In, Bit>,
    s: AxisSink<W, K>,
    s_err: Signal<In, Bit>,
    network: Signal<In, Network>,
    note: Signal<In, Bits<24>>,
    /// Those of both ports, in their order.
    m_desc: MsgSrc<RxDesc>,
    /// A descriptor stands at the wrong one.
    astray: Signal<Out, Bit>,
    stat: Signal<Out, Bits<8>>,
    strange: Signal<Out, Bits<2>>,
    peer: Signal<Out, PeerAsk>,
    peer_stranger: Signal<In, Bit>,
    peer_foreign: Signal<In, Bit>,
    peer_line: Signal<In, Bits<24>>,
    foreign: Signal<Out, Bit>,
    dmac: Signal<Out, Bits<48>>,
    dmac_network: Signal<Out, Network>,
    other_station: Signal<In, Bit>,
    owner: Signal<In, Bits<6>>,
    owned: Signal<In, Bit>,
    s_read: MsgSink<CellRead>,
    s_free: MsgSink<CellRead>,
    m_data: AxisSrc<W, K>,
    free_count: Signal<Out, Bits<10>>,
    rx: RxFront<W, K, LK>,
    cells: CellBuffer<W, K>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize> Logic for Receive<W, K, LK> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, rx, cells);
        self.rx.reset.next = self.reset.val();
        self.cells.reset.next = self.reset.val();
        AxisSink::<W, K>::link(&mut self.s, &mut self.rx.s);
        self.rx.s_err.next = self.s_err.val();
        self.rx.owner.next = self.owner.val();
        self.rx.owned.next = self.owned.val();
        self.m_desc.data.next = self.rx.m_desc.data.val();
        self.m_desc.valid.next = self.rx.m_desc.valid.val() | self.rx.m_raw.valid.val();
        self.rx.m_desc.ready.next = self.m_desc.ready.val() & self.rx.m_desc.valid.val();
        self.rx.m_raw.ready.next = self.m_desc.ready.val() & self.rx.m_raw.valid.val();
        self.astray.next =
            (self.rx.m_desc.valid.val() & self.rx.m_desc.data.val().raw) | (self.rx.m_raw.valid.val() & !self.rx.m_raw.data.val().raw) | (self.rx.m_desc.valid.val() & self.rx.m_raw.valid.val());
        CellWriter::<W>::join(&mut self.rx.m_cell, &mut self.cells.s_write);
        MsgSink::<CellRead>::link(&mut self.s_read, &mut self.cells.s_read[0]);
        MsgSink::<CellRead>::link(&mut self.s_free, &mut self.cells.s_read[1]);
        AxisSrc::<W, K>::link(&mut self.m_data, &mut self.cells.m_data);
        self.cells.s_retain.valid.next = false;
        self.cells.s_retain.data.next = bits::<9>(0);
        self.stat.next = self.rx.stat.val();
        self.strange.next = self.rx.strange.val();
        self.peer.next = self.rx.peer.val();
        self.rx.peer_stranger.next = self.peer_stranger.val();
        self.rx.peer_foreign.next = self.peer_foreign.val();
        self.rx.peer_line.next = self.peer_line.val();
        self.rx.network.next = self.network.val();
        self.rx.note.next = self.note.val();
        self.foreign.next = self.rx.foreign.val();
        self.dmac.next = self.rx.dmac.val();
        self.dmac_network.next = self.rx.dmac_network.val();
        self.rx.other_station.next = self.other_station.val();
        self.free_count.next = self.cells.free_count.val();
    }
}

/// A RoCEv2 frame with random fields, right lengths, checksum and ICRC, and `pay` payload bytes.
fn roce_frame(rng: &mut Rng, opcode: u8, pay: usize) -> Vec<u8> {
    let (vlan, ipv6) = (rng.percent(30), rng.percent(40));
    let pad = (4 - pay % 4) % 4;
    let udp = 8 + 12 + Headers::of(opcode).len + pay + pad + 4;
    let mut f = rng.bytes(12);
    if vlan {
        f.extend([0x81, 0x00, rng.next_u32() as u8, rng.next_u32() as u8]);
    }
    let l3 = f.len() + 2;
    if ipv6 {
        f.extend([0x86, 0xdd, 0x60 | rng.next_u32() as u8 & 15]);
        f.extend(rng.bytes(3));
        f.extend((udp as u16).to_be_bytes());
        f.push(17);
        f.extend(rng.bytes(33));
    } else {
        f.extend([0x08, 0x00, 0x45, rng.next_u32() as u8]);
        f.extend((udp as u16 + 20).to_be_bytes());
        f.extend(rng.bytes(2));
        f.extend([rng.next_u32() as u8 & 0x40, 0, 64, 17, 0, 0]);
        f.extend(rng.bytes(8));
        checksum(&mut f[l3..]);
    }
    f.extend(rng.bytes(2));
    f.extend(4791u16.to_be_bytes());
    f.extend((udp as u16).to_be_bytes());
    f.extend([0, 0]);
    f.extend([opcode, (rng.next_u32() as u8 & 0x80) | (pad as u8) << 4]);
    f.extend(rng.bytes(udp - 10));
    seal(&mut f).unwrap();
    f
}

fn checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum: u32 = header[..20].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!sum as u16).to_be_bytes());
}

const OPCODES: [u8; 44] = [
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x17, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
    0x29, 0x2a, 0x2b, 0x64, 0x65, 0x15, 0x81, 0x40, 0xa0, 0xff, 0x1c, 0x1d,
];

/// Any kind of frame: good, padded, other protocols, cut, with changed bits, too long.
fn any_frame(rng: &mut Rng) -> Vec<u8> {
    let opcode = OPCODES[rng.below(OPCODES.len() as u64) as usize];
    let most = [0, 1, 16, 64, 200, 1100, 4096][rng.below(7) as usize];
    let pay = rng.range(0, most) as usize;
    let mut f = roce_frame(rng, opcode, pay);
    match rng.below(20) {
        0..=6 => {}
        7 | 8 => {
            let more = rng.range(1, 70) as usize;
            f.extend(rng.bytes(more));
        }
        9 => {
            let len = rng.range(1, f.len() as u64) as usize;
            f.truncate(len);
        }
        10 => {
            let len = f.len() - (rng.range(1, 40) as usize).min(f.len() - 1);
            f.truncate(len);
        }
        // A field of the headers changed, ICRC made right again if the frame still has one.
        11..=14 => {
            let at = rng.range(12, 73) as usize;
            if at < f.len() {
                f[at] ^= 1 << rng.below(8);
                if rng.percent(70) && f[14] == 0x45 && f.len() >= 34 && at != 24 && at != 25 {
                    checksum(&mut f[14..]);
                }
                if rng.percent(70) {
                    let _ = seal(&mut f);
                }
            }
        }
        15 => {
            let at = rng.below(f.len() as u64) as usize;
            f[at] ^= 1 << rng.below(8);
        }
        // Another type, another protocol, another port.
        16 => {
            let at = 12 + 4 * usize::from(f[12] == 0x81);
            f[at] = [0x88, 0x08][rng.below(2) as usize];
            f[at + 1] = [0x00, 0x06, 0xdd][rng.below(3) as usize];
        }
        17 => {
            let len = [rng.range(1, 60), rng.range(60, 1600), rng.range(8180, 8195), rng.range(8192, 20000)][rng.below(4) as usize];
            f = rng.bytes(len as usize);
        }
        18 => {
            let len = rng.range(1, 30) as usize;
            f.truncate(len);
        }
        _ => {
            let l3 = if f[12] == 0x81 { 18 } else { 14 };
            let l4 = l3 + if f[l3] >> 4 == 6 { 40 } else { 20 };
            let proto = l3 + if f[l3] >> 4 == 6 { 6 } else { 9 };
            match rng.below(3) {
                0 => f[proto] = [6, 1, 58][rng.below(3) as usize],
                1 => f[l4 + 2] ^= 1 << rng.below(8),
                _ => f[l3 + 6] ^= 0x20,
            }
        }
    }
    f
}

fn expect(p: &Parsed) -> Vec<(&'static str, u128)> {
    vec![
        ("frame_len", p.frame_len.into()),
        ("port", 0),
        ("class", p.class.into()),
        ("ecn", p.ecn.into()),
        ("ipv6", p.ipv6.into()),
        ("has_vlan", p.has_vlan.into()),
        ("vlan_tci", p.vlan_tci.into()),
        ("raw", p.raw.into()),
        ("pay_off", p.pay_off.into()),
        ("pay_len", p.pay_len.into()),
        ("pad", p.pad.into()),
        ("opcode", p.opcode.into()),
        ("solicited", p.solicited.into()),
        ("ack_req", p.ack_req.into()),
        ("becn", p.becn.into()),
        ("fecn", p.fecn.into()),
        ("pkey", p.pkey.into()),
        ("dest_qpn", p.dest_qpn.into()),
        ("psn", p.psn.into()),
        ("va", p.va.into()),
        ("rkey", p.rkey.into()),
        ("dma_len", p.dma_len.into()),
        ("imm", p.imm.into()),
        ("aeth", p.aeth.into()),
        ("qkey", p.qkey.into()),
        ("src_qpn", p.src_qpn.into()),
        ("flow_hash", p.flow_hash.into()),
        ("operand", p.operand.into()),
        ("compare", p.compare.into()),
        ("multicast", p.multicast.into()),
        ("kind", p.kind.into()),
    ]
}

/// Between whom a RoCE packet travels, by the fields of [`PeerAsk`].
fn between(frame: &[u8], p: &Parsed, network: [u64; 2]) -> Vec<(&'static str, u128)> {
    let l3 = if p.has_vlan { 18 } else { 14 };
    fn at<const N: usize>(frame: &[u8], from: usize) -> [u8; N] {
        frame[from..from + N].try_into().unwrap()
    }
    let (sip, dip) = if p.ipv6 {
        let ip = Ipv6(at(frame, l3));
        (ip.src(), ip.dst())
    } else {
        let ip = Ipv4(at(frame, l3));
        (ip.src().into(), ip.dst().into())
    };
    let bth = Bth(at(frame, l3 + if p.ipv6 { 48 } else { 28 }));
    vec![
        ("qpn", bth.dest_qpn().into()),
        ("datagram", (bth.opcode() >> 5 == 3).into()),
        ("dmac", Eth(at(frame, 0)).dst().into()),
        ("sip", sip),
        ("dip", dip),
        ("ipv6", p.ipv6.into()),
        ("vlan", p.has_vlan.into()),
        ("vid", (p.vlan_tci & 0xfff).into()),
        ("tunnel", network[0].into()),
        ("function", network[1].into()),
    ]
}

/// In place of `roce/peer`: one in eight is refused, and each bit of the question counts.
fn refused(words: &[u32]) -> bool {
    words.iter().fold(0x811c_9dc5u32, |h, w| (h ^ w).wrapping_mul(0x0100_0193).rotate_left(7)) % 8 == 0
}

/// The first six bytes as a number.
fn destination(frame: &[u8]) -> u64 {
    frame[..6].iter().fold(0, |mac, byte| mac << 8 | u64::from(*byte))
}

/// The same of packets of another network: one in sixteen.
fn foreign(words: &[u32]) -> bool {
    words.iter().fold(0x1234_5678u32, |h, w| (h ^ w).wrapping_mul(0x0100_0193).rotate_left(9)) % 16 == 0
}

/// Of one packet in four the peer's check says more about its queue pair than the packet, and each bit of that counts.
fn line_bits(words: &[u32]) -> u32 {
    let hash = words.iter().fold(0x7654_3210u32, |h, w| (h ^ w).wrapping_mul(0x0100_0193).rotate_left(11));
    if hash % 4 == 0 {
        hash >> 8
    } else {
        0
    }
}

/// What is said of frame `n`, for software.
fn note(n: usize) -> u32 {
    (n as u32).wrapping_mul(0x9e37_79b9) >> 8
}

/// Where frame `n` comes from: whether through a tunnel, and the function.
fn network_of(n: usize) -> [u64; 2] {
    [n as u64 & 1, (n as u64 * 5) & 0xfff]
}

/// In place of `net/station`: one destination in three is another station's, and each of its bits counts, and those of where it comes from.
fn elsewhere(dmac: u64, network: u64) -> bool {
    (dmac ^ network << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 3 == 0
}

/// Likewise: of which function a destination is, if it is one's.
fn owner(dmac: u64, network: u64) -> Option<u64> {
    let n = (dmac ^ network << 24).wrapping_mul(0xc2b2_ae3d_27d4_eb4f) >> 20;
    (n % 2 == 0).then_some(n / 2 % 64)
}

/// Whose a frame is, as its descriptor says: one for a whole network to the address of a function is for that function.
fn whose(frame: &[u8], network: [u64; 2]) -> [u64; 2] {
    match (owner(destination(frame), network[0] | network[1] << 1), network[0] == 1 && network[1] & u64::from(WHOLE) != 0) {
        (Some(function), true) => [1, function],
        _ => network,
    }
}

/// Sends `frames` with `gap` percent idle cycles, stalls descriptors in `stall` percent of cycles and reads every frame back, one
/// in `pace` cycles. Returns what `stat` counted.
fn run<const W: usize, const K: usize, const LK: usize>(name: &str, seed: u64, frames: &[(Vec<u8>, bool)], gap: u32, stall: u32, pace: u64) -> BTreeMap<&'static str, u64> {
    let mut tb = Tb::with_seed(name, Receive::<W, K, LK>::default(), seed);
    let descs = tb.sink("m_desc", stall);
    let (read, data) = (tb.source("s_read", 0), tb.axis_sink("m_data", 0));
    let (rx, command) = (Fields::of::<RxDesc>(), Fields::of::<CellRead>());
    let mut rng = Rng::new(tb.seed() ^ 0x4e7);
    let mut counts: BTreeMap<&'static str, u64> = STATS.iter().chain(STRANGERS).chain(&["foreign"]).map(|s| (*s, 0)).collect();
    let ask = Fields::of::<PeerAsk>();
    let (mut asked, mut sought) = (VecDeque::from([(false, false, 0); 2]), VecDeque::from([false; 3]));
    let mut owned = VecDeque::from([None; 1]);
    (0..520).for_each(|_| tb.cycle());
    assert_eq!(tb.get("free_count"), CELLS as u64);
    let mut good: VecDeque<(usize, Parsed, Vec<u8>)> = VecDeque::new();
    let mut drops = BTreeMap::from([("rx_mac_error", 0), ("rx_oversize", 0), ("rx_malformed", 0), ("rx_bad_icrc", 0), ("rx_stranger", 0), ("rx_other_station", 0), ("foreign", 0)]);
    let mut beats = VecDeque::new();
    for (n, (frame, err)) in frames.iter().enumerate() {
        let network = network_of(n);
        let bits = network[0] | network[1] << 1;
        match receive(frame, *err) {
            Ok(parsed) if !parsed.raw && foreign(&ask.pack(&between(frame, &parsed, network))) => *drops.get_mut("foreign").unwrap() += 1,
            Ok(parsed) if !parsed.raw && refused(&ask.pack(&between(frame, &parsed, network))) => *drops.get_mut("rx_stranger").unwrap() += 1,
            Ok(parsed) if parsed.raw && elsewhere(destination(frame), bits) => *drops.get_mut("rx_other_station").unwrap() += 1,
            Ok(mut parsed) => {
                if parsed.raw {
                    parsed.src_qpn = note(n);
                } else {
                    parsed.dest_qpn |= line_bits(&ask.pack(&between(frame, &parsed, network)));
                }
                good.push_back((n, parsed, frame.clone()));
            }
            Err(Drop::MacError) => *drops.get_mut("rx_mac_error").unwrap() += 1,
            Err(Drop::Oversize) => *drops.get_mut("rx_oversize").unwrap() += 1,
            Err(Drop::Malformed) => *drops.get_mut("rx_malformed").unwrap() += 1,
            Err(Drop::BadIcrc) => *drops.get_mut("rx_bad_icrc").unwrap() += 1,
        }
        let count = frame.len().div_ceil(K);
        for (i, chunk) in frame.chunks(K).enumerate() {
            beats.push_back((chunk.to_vec(), i + 1 == count, *err, bits, note(n)));
        }
    }
    let mut reading: VecDeque<Vec<u8>> = VecDeque::new();
    let (mut partial, mut quiet) = (Vec::new(), 0);
    let mut commands = VecDeque::new();
    while quiet < 300 {
        let idle = gap > 0 && rng.percent(gap);
        let beat = if idle { None } else { beats.pop_front() };
        tb.set("s$valid", beat.is_some().into());
        quiet = if beat.is_some() || !reading.is_empty() || !commands.is_empty() { 0 } else { quiet + 1 };
        if let Some((bytes, last, err, network, note)) = beat {
            tb.set("network", network);
            tb.set("note", note.into());
            let mut padded = bytes.clone();
            padded.extend(rng.bytes(K - bytes.len()));
            let words: Vec<u32> = padded.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
            tb.set_wide("s$data", words);
            tb.set_wide("s$keep", u128::MAX >> (128 - bytes.len()));
            tb.set("s$last", last.into());
            tb.set("s_err", (last && err || !last && rng.percent(10)).into());
            assert_eq!(tb.get("s$ready"), 1);
        }
        tb.cycle();
        asked.push_back((refused(&tb.get_wide("peer")), foreign(&tb.get_wide("peer")), line_bits(&tb.get_wide("peer"))));
        sought.push_back(elsewhere(tb.get("dmac"), tb.get("dmac_network")));
        let ((stranger, alien, line), other) = (asked.pop_front().unwrap(), sought.pop_front().unwrap());
        owned.push_back(owner(tb.get("dmac"), tb.get("dmac_network")));
        let function = owned.pop_front().unwrap();
        tb.set("owner", function.unwrap_or(0));
        tb.set("owned", function.is_some().into());
        tb.set("peer_line", line.into());
        tb.set("peer_stranger", stranger.into());
        tb.set("other_station", other.into());
        tb.set("peer_foreign", alien.into());
        *counts.get_mut("foreign").unwrap() += tb.get("foreign");
        assert_eq!(tb.get("astray"), 0);
        let strange = tb.get("strange");
        for (i, name) in STRANGERS.iter().enumerate() {
            *counts.get_mut(name).unwrap() += strange >> i & 1;
        }
        let stat = tb.get("stat");
        for (i, name) in STATS.iter().enumerate() {
            *counts.get_mut(name).unwrap() += stat >> i & 1;
        }
        if let Some(words) = descs.pop() {
            // Frames without room are known by their absence only: skip to the one that this is.
            let (n, parsed, frame) = loop {
                let (n, parsed, frame) = good.pop_front().expect("a descriptor nobody sent");
                let same = expect(&parsed).iter().all(|(name, value)| rx.get(&words, name) == *value);
                if same || counts["rx_no_buffer"] == 0 {
                    break (n, parsed, frame);
                }
            };
            for (name, value) in expect(&parsed) {
                assert_eq!(rx.get(&words, name), value, "frame {n}: {name}\n{frame:02x?}");
            }
            assert_eq!([rx.get(&words, "tunnel") as u64, rx.get(&words, "function") as u64], whose(&frame, network_of(n)), "frame {n}");
            let off = if parsed.raw { 0 } else { usize::from(parsed.pay_off) };
            let len = usize::from(parsed.pay_len);
            commands.push_back(command.pack(&[("handle", rx.get(&words, "handle")), ("off", off as u128), ("len", len as u128), ("free", 1)]));
            if len > 0 {
                reading.push_back(frame[off..off + len].to_vec());
            }
        }
        if tb.cycles() % pace == 0 {
            commands.drain(..commands.len().min(1)).for_each(|c| read.push(c));
        }
        while let Some(beat) = data.pop_beat() {
            partial.extend((0..K).filter(|i| beat.keep >> i & 1 == 1).map(|i| beat.data[i]));
            if beat.last {
                assert_eq!(partial, reading.pop_front().unwrap());
                partial.clear();
            }
        }
    }
    let count = |name: &str| counts[name];
    assert_eq!(count("rx_frames"), frames.len() as u64, "{counts:?}");
    assert_eq!(STATS[1..].iter().chain(STRANGERS).chain(&["foreign"]).map(|s| count(s)).sum::<u64>(), frames.len() as u64, "each frame is one of the others: {counts:?}");
    for (name, expected) in drops {
        assert_eq!(count(name), expected, "{name}: {counts:?}");
    }
    assert_eq!(tb.get("free_count"), CELLS as u64, "cells lost");
    if count("rx_no_buffer") == 0 {
        assert!(good.is_empty(), "{} frames without a descriptor", good.len());
    }
    counts
}

fn both(seed: u64, frames: &[(Vec<u8>, bool)], gap: u32, stall: u32) {
    for counts in [run::<64, 8, 3>("rx64", seed, frames, gap, stall, 1), run::<512, 64, 6>("rx512", seed, frames, gap, stall, 1)] {
        println!("{counts:?}");
    }
}

#[test]
fn real_frames_pass() {
    let frames: Vec<_> = captured().into_iter().map(|f| (f, false)).collect();
    let counts = run::<512, 64, 6>("rx512", 1, &frames, 0, 0, 1);
    assert_eq!(counts["rx_roce"] + counts["rx_stranger"] + counts["foreign"], frames.len() as u64);
    let counts = run::<64, 8, 3>("rx64", 1, &frames, 20, 0, 1);
    assert_eq!(counts["rx_roce"] + counts["rx_stranger"] + counts["foreign"], frames.len() as u64);
}

#[test]
fn random_frames_agree_with_the_model() {
    for (seed, gap, stall) in [(1, 0, 0), (2, 30, 0), (3, 0, 40)] {
        let mut rng = Rng::new(seed);
        let frames: Vec<_> = (0..500).map(|_| (any_frame(&mut rng), rng.percent(5))).collect();
        both(seed, &frames, gap, stall);
    }
}

/// The same with every queue stalling at random inside.
#[test]
fn chaos_changes_nothing() {
    let mut rng = Rng::new(21);
    let frames: Vec<_> = (0..300).map(|_| (any_frame(&mut rng), rng.percent(5))).collect();
    crate::stream::chaos::scoped(21, || run::<512, 64, 6>("rx512_chaos", 21, &frames, 0, 20, 1));
}

/// Frames of one beat, one per cycle, right behind long ones.
#[test]
fn one_beat_frames_back_to_back() {
    for width in [8, 64] {
        let mut rng = Rng::new(9);
        let mut frames = Vec::new();
        for n in 0..400 {
            let len = if n % 60 == 0 { 1500 } else { rng.range(1, width) as usize };
            let mut frame = rng.bytes(len);
            if len > 20 && width == 64 && rng.percent(50) {
                frame = roce_frame(&mut rng, 0x11, 0);
            }
            frames.push((frame, rng.percent(3)));
        }
        if width == 8 {
            run::<64, 8, 3>("rx64", 9, &frames, 0, 0, 1);
        } else {
            run::<512, 64, 6>("rx512", 9, &frames, 0, 0, 1);
        }
    }
}

#[test]
fn a_full_buffer_drops_whole_frames_and_recovers() {
    let mut rng = Rng::new(4);
    let frames: Vec<_> = (0..200).map(|_| (roce_frame(&mut rng, 0x07, 4096), false)).collect();
    let counts = run::<512, 64, 6>("rx512", 4, &frames, 0, 30, 200);
    assert!(counts["rx_no_buffer"] > 10 && counts["rx_roce"] > 50, "{counts:?}");
}

#[test]
fn latency() {
    let mut tb = Tb::new("rx512", Receive::<512, 64, 6>::default());
    let descs = tb.sink("m_desc", 0);
    tb.run(520);
    let frame = roce_frame(&mut Rng::new(1), 0x04, 0);
    let mut bytes = frame.clone();
    bytes.resize(64, 0);
    tb.set_wide("s$data", bytes.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect::<Vec<_>>());
    tb.set_wide("s$keep", u128::MAX >> (128 - frame.len().min(64)));
    tb.set("s$last", 1);
    tb.set("s$valid", 1);
    let start = tb.cycles();
    tb.cycle();
    tb.set("s$valid", 0);
    tb.run_until(40, |_| !descs.is_empty());
    let cycles = tb.cycles() - start - 1;
    assert_eq!(cycles, 9, "from the last beat to the descriptor");
}
