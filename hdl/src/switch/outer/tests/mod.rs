//! The block against the golden model (`ferric_model::switch::outer`), hostile frames included.
mod frames;
mod passing;

use super::model::{ecn, strip, Stripped};
use super::{Outer, STATS};
use crate::msg::Network;
use crate::switch::testing::{any_inner, mac, right, set_lines, tunnel};
use crate::tb::{Fields, Rng, Tb};
use ferric_abi::codes::SwitchCause;
use ferric_abi::context::TunnelCtx;
use ferric_model::net::networks::Through;
use ferric_model::net::sums::{finish, pseudo, sum, update};
use ferric_model::switch::functions::{has, judge, tables};
use ferric_model::switch::layers::{parse, Deep, Fragment, Upper};
use frames::{any_frame, outer};
use std::collections::{BTreeMap, VecDeque};

/// Functions.
const NF: usize = 4;
type Lines = [TunnelCtx; NF];

/// One function has a tunnel.
fn alone(ctx: &TunnelCtx) -> Lines {
    [*ctx, TunnelCtx::default(), TunnelCtx::default(), TunnelCtx::default()]
}

/// Cycles in which everything that came has left.
const DRAIN: u64 = 60;

/// What comes out, and what it counts as.
#[derive(Debug, PartialEq, Eq)]
struct Expected {
    frame: Option<Vec<u8>>,
    /// Whether it came through a tunnel, and the function.
    network: [u64; 2],
    counts: Option<&'static str>,
}

fn name(cause: SwitchCause) -> &'static str {
    use SwitchCause::*;
    match cause {
        OuterMalformed => "outer_malformed",
        OuterFragment => "outer_fragment",
        OuterCsum => "outer_csum",
        VxlanFlags => "vxlan_flags",
        VniUnknown => "vni_unknown",
        RemoteUnknown => "remote_unknown",
        Ecn => "ecn",
        InnerShort => "inner_short",
        other => panic!("{other:?}"),
    }
}

/// The golden model of whichever function's tunnel the frame is for.
fn expected(lines: &Lines, frame: &[u8]) -> Expected {
    let passes = || {
        let function = if has(&lines[0]) { 0xfff } else { 0 };
        let everybody = lines.iter().all(has);
        Expected { frame: (!everybody).then(|| frame.to_vec()), network: [0, function], counts: everybody.then_some("miss") }
    };
    let Some((function, ctx)) = judge(lines, frame) else { return passes() };
    let one = of_one(&ctx, frame, passes);
    // What the model hands to software passes as what came through no tunnel.
    match function.filter(|_| one.counts == Some("stripped")) {
        Some(function) => Expected { network: [1, Through::Whole(function).bits().into()], ..one },
        None => one,
    }
}

/// The golden model, and where this block differs from it (README.md, Limits).
fn of_one(ctx: &TunnelCtx, frame: &[u8], passes: impl Fn() -> Expected) -> Expected {
    let tables = tables(ctx);
    let layers = parse(frame);
    // A packet that is cut is known when the frame ends.
    if layers == Err(Deep::Truncated) && frame.len() > 128 {
        let whole = [frame, &[0; 70_000]].concat();
        let known = parse(&whole).is_ok_and(|l| !matches!(l.upper, Upper::Ip(ip) if behind(&ip, &l)));
        if known && strip(&tables, &whole, Some(ctx.smac())) != Stripped::Plain {
            return Expected { frame: None, network: [0; 2], counts: Some("outer_malformed") };
        }
    }
    match strip(&tables, frame, Some(ctx.smac())) {
        Stripped::Plain | Stripped::Software(_) => passes(),
        Stripped::Drop(SwitchCause::OuterFragment) if layers.is_ok_and(|l| matches!(l.upper, Upper::Ip(ip) if behind(&ip, &l))) => passes(),
        Stripped::Inner(inner) => by_ecn(frame, inner.frame),
        Stripped::Drop(cause) => Expected { frame: None, network: [0; 2], counts: Some(name(cause)) },
    }
}

/// Something stands between Ethernet, one tag, IP and UDP that the block does not look behind.
fn behind(ip: &ferric_model::switch::layers::Ip, layers: &ferric_model::switch::layers::Layers) -> bool {
    layers.second || ip.l4 != layers.l3 + if ip.v6 { 40 } else { 20 } || (ip.v6 && ip.fragment != Fragment::Whole)
}

/// The model leaves an inner packet alone that its parser does not understand; the block looks at no more than type, version and lengths of its IP header.
fn by_ecn(outer: &[u8], mut inner: Vec<u8>) -> Expected {
    let stripped = |frame| Expected { frame: Some(frame), network: [0; 2], counts: Some("stripped") };
    if parse(&inner).is_ok() {
        return stripped(inner);
    }
    let Ok(Upper::Ip(ip)) = parse(outer).map(|l| l.upper) else { unreachable!("it was stripped") };
    let word = |at: usize| inner.get(at..at + 2).map_or(0, |w| u16::from_be_bytes([w[0], w[1]]));
    let l3 = match (word(12), word(16)) {
        (0x8100 | 0x88a8, 0x8100) => 22,
        (0x8100 | 0x88a8, _) => 18,
        _ => 14,
    };
    let (shift, least) = match (word(l3 - 2), inner.get(l3).copied().unwrap_or(0)) {
        (0x0800, first) if first >> 4 == 4 && first & 15 >= 5 => (0, 20),
        (0x86dd, first) if first >> 4 == 6 => (4, 40),
        _ => return stripped(inner),
    };
    if inner.len() < l3 + least {
        return stripped(inner);
    }
    let old = inner[l3 + 1] >> shift & 3;
    let Some(new) = ecn(ip.tos & 3, old) else { return Expected { frame: None, network: [0; 2], counts: Some("ecn") } };
    let from = word(l3);
    inner[l3 + 1] ^= (old ^ new) << shift;
    if shift == 0 && old != new {
        let to = u16::from_be_bytes([inner[l3], inner[l3 + 1]]);
        let sum = update(u16::from_be_bytes([inner[l3 + 10], inner[l3 + 11]]), from, to);
        inner[l3 + 10..l3 + 12].copy_from_slice(&sum.to_be_bytes());
    }
    stripped(inner)
}

struct Bench<const W: usize, const K: usize, const LK: usize> {
    tb: Tb,
    /// Beats that are to come: bytes, last, bad.
    beats: VecDeque<(Vec<u8>, bool, bool)>,
    gaps: u32,
    out: Vec<u8>,
    /// Frames that came out, whether they were marked bad, and where they came from.
    frames: Vec<(Vec<u8>, bool, [u64; 2])>,
    network: Option<[u64; 2]>,
    stat: BTreeMap<&'static str, u64>,
}

impl<const W: usize, const K: usize, const LK: usize> Bench<W, K, LK> {
    fn new(gaps: u32, seed: u64) -> Self {
        let tb = Tb::with_seed(&format!("outer{W}"), Outer::<W, K, LK, NF>::default(), seed);
        Bench { tb, beats: VecDeque::new(), gaps, out: Vec::new(), frames: Vec::new(), network: None, stat: STATS.iter().map(|s| (*s, 0)).collect() }
    }

    fn set(&mut self, lines: &Lines) {
        set_lines(&mut self.tb, lines);
    }

    fn cycle(&mut self) {
        let gap = self.gaps > 0 && self.tb.rng().percent(self.gaps);
        let beat = if gap { None } else { self.beats.pop_front() };
        self.tb.set("s$valid", beat.is_some().into());
        // What is not valid is noise.
        let (bytes, last, bad) = beat.unwrap_or_else(|| (Vec::new(), self.tb.rng().percent(50), self.tb.rng().percent(50)));
        let mut data = bytes.clone();
        let noise = self.tb.rng().bytes(K - data.len());
        data.extend(noise);
        let words: Vec<u32> = data.chunks(4).map(|w| u32::from_le_bytes(w.try_into().expect("four"))).collect();
        self.tb.set_wide("s$data", &words[..]);
        self.tb.set("s$keep", if bytes.is_empty() { 0 } else { u64::MAX >> (64 - bytes.len()) });
        self.tb.set("s$last", last.into());
        self.tb.set("s_err", bad.into());
        self.tb.cycle();
        assert_eq!(self.tb.get("s$ready"), 1);
        let stat = self.tb.get("stat");
        STATS.iter().enumerate().for_each(|(i, name)| *self.stat.get_mut(name).expect("a counter") += stat >> i & 1);
        if self.tb.get("m$valid") == 1 {
            let keep = self.tb.get("m$keep");
            let bytes = keep.trailing_ones() as usize;
            assert!(keep == u64::MAX >> (64 - bytes) && (bytes == K || self.tb.get("m$last") == 1), "{keep:#x}");
            let data: Vec<u8> = self.tb.get_wide("m$data").iter().flat_map(|w| w.to_le_bytes()).collect();
            self.out.extend(&data[..bytes]);
            let network = self.tb.get_wide("network");
            let network = ["tunnel", "function"].map(|name| Fields::of::<Network>().get(&network, name) as u64);
            assert_eq!(*self.network.get_or_insert(network), network, "it stays the same");
            if self.tb.get("m$last") == 1 {
                self.frames.push((std::mem::take(&mut self.out), self.tb.get("m_err") == 1, network));
                self.network = None;
            }
        }
    }

    fn receive(&mut self, frame: &[u8], bad: bool) {
        let count = frame.len().div_ceil(K);
        self.beats.extend(frame.chunks(K).enumerate().map(|(n, beat)| (beat.to_vec(), n + 1 == count, bad && n + 1 == count)));
    }

    fn drain(&mut self) {
        while !self.beats.is_empty() {
            self.cycle();
        }
        (0..DRAIN).for_each(|_| self.cycle());
    }
}

/// Compares `frames` that came one behind the other.
fn compare<const W: usize, const K: usize, const LK: usize>(b: &mut Bench<W, K, LK>, ctx: &Lines, frames: &[(Vec<u8>, bool)], seen: &mut BTreeMap<&'static str, u64>) {
    let before = b.stat.clone();
    b.frames.clear();
    frames.iter().for_each(|(frame, bad)| b.receive(frame, *bad));
    b.drain();
    let mut counts: BTreeMap<&str, u64> = STATS.iter().map(|s| (*s, 0)).collect();
    let mut out = Vec::new();
    for (frame, bad) in frames {
        let expected = expected(ctx, frame);
        // The MAC's verdict stays with what goes on, and is no cause of its own.
        if let Some(name) = expected.counts.filter(|_| !(*bad && expected.frame.is_some())) {
            // Of what the MAC has found bad some is known to be dropped only when it ends.
            if !(*bad && matches!(name, "outer_malformed" | "outer_csum")) {
                *counts.get_mut(name).expect("a counter") += 1;
                *seen.entry(name).or_default() += 1;
            }
        } else {
            *seen.entry("passed").or_default() += 1;
        }
        // Where it comes from counts of what goes through.
        let network = expected.network;
        out.extend(expected.frame.filter(|_| !bad).map(|frame| (frame, network)));
    }
    let good: Vec<(Vec<u8>, [u64; 2])> = b.frames.iter().filter(|f| !f.1).map(|f| (f.0.clone(), f.2)).collect();
    for (n, (got, wanted)) in good.iter().zip(&out).enumerate() {
        assert_eq!(got, wanted, "frame {n} of those that go on; {ctx:?}, seed {}", b.tb.seed());
    }
    assert_eq!(good.len(), out.len(), "{:02x?}, {ctx:?}, seed {}", frames, b.tb.seed());
    let counted: BTreeMap<&str, u64> = b.stat.iter().map(|(name, n)| (*name, n - before[name])).collect();
    if frames.iter().all(|f| !f.1) {
        assert_eq!(counted, counts, "{:02x?}, {ctx:?}, seed {}", frames, b.tb.seed());
    }
}

fn any_tunnel(rng: &mut Rng) -> TunnelCtx {
    let mut coin = |percent| rng.percent(percent);
    tunnel(coin(50)).with_lenient(coin(30)).with_zero_csum6(coin(60)).with_any_remote(coin(20)).with_valid(coin(95)).with_bound(coin(50))
}

/// Tunnels of four functions: of one address or of several, each with its own VNI.
fn any_tunnels(rng: &mut Rng) -> Lines {
    let first = any_tunnel(rng);
    std::array::from_fn(|f| {
        if f == 0 {
            return first;
        }
        let other = any_tunnel(rng);
        let mut line = if rng.percent(60) { other.with_ipv6(first.ipv6()).with_local(first.local()).with_remote(first.remote()) } else { other.with_local(other.local() + f as u128) };
        line = line.with_vni(first.vni() ^ 1 << (8 * (f - 1))).with_valid(rng.percent(70));
        match rng.below(8) {
            0 => line.with_smac(first.smac() + f as u64),
            1 => line.with_remote(line.remote() + 7),
            2 => line.with_valid(false).with_bound(false),
            _ => line,
        }
    })
}

fn random<const W: usize, const K: usize, const LK: usize>(gaps: u32, seed: u64, rounds: usize) {
    let mut b = Bench::<W, K, LK>::new(gaps, seed);
    let mut rng = Rng::new(seed);
    let mut seen = BTreeMap::new();
    for round in 0..rounds {
        let lines = any_tunnels(&mut rng);
        b.set(&lines);
        b.drain();
        let count = if round % 2 == 0 { 1 } else { rng.range(2, 30) };
        let frames: Vec<(Vec<u8>, bool)> = (0..count).map(|_| (any_frame(&lines[rng.below(NF as u64) as usize], &mut rng), round % 5 == 4 && rng.percent(10))).collect();
        compare(&mut b, &lines, &frames, &mut seen);
    }
    println!("{seen:?}");
    assert!(STATS.iter().all(|name| seen.get(name).is_some_and(|n| *n > 3)), "{seen:?}");
}

#[test]
fn frames_are_treated_as_the_model_does() {
    random::<64, 8, 3>(0, 1, 400);
    random::<64, 8, 3>(40, 2, 200);
    random::<512, 64, 6>(0, 3, 400);
    random::<512, 64, 6>(30, 4, 200);
}

/// Every place of the inner frame's end in its last beat, with and without something behind the packet, without a gap between frames.
#[test]
fn inner_frames_of_every_length() {
    fn all<const W: usize, const K: usize, const LK: usize>() {
        let mut b = Bench::<W, K, LK>::new(0, 5);
        let (mut rng, mut seen) = (Rng::new(5), BTreeMap::new());
        for v6 in [false, true] {
            let ctx = tunnel(v6).with_zero_csum6(true);
            b.set(&alone(&ctx));
            b.drain();
            let frames: Vec<(Vec<u8>, bool)> = (14..300)
                .map(|len| {
                    let mut inner = rng.bytes(len);
                    inner[12] = 0x99;
                    (outer(&ctx, &mut rng, &inner), false)
                })
                .collect();
            compare(&mut b, &alone(&ctx), &frames, &mut seen);
        }
        assert_eq!(seen, BTreeMap::from([("stripped", 572)]));
    }
    all::<64, 8, 3>();
    all::<512, 64, 6>();
}

/// RFC 6040, figure 4: all 16 rows, over both versions, of inner packets of both and in up to two tags, with their checksums right afterwards.
#[test]
fn ecn_goes_inside() {
    let mut b = Bench::<512, 64, 6>::new(0, 6);
    let (mut rng, mut seen) = (Rng::new(6), BTreeMap::new());
    for v6 in [false, true] {
        let ctx = tunnel(v6).with_zero_csum6(true);
        b.set(&alone(&ctx));
        b.drain();
        let mut frames = Vec::new();
        for (n, tags) in (0..64u8).flat_map(|n| [(n, 0), (n, 1), (n, 2)]) {
            let mut inner = any_inner(&mut rng);
            while parse(&inner).ok().is_none_or(|l| l.ip().is_none() || (l.l3 - 14) / 4 != tags) {
                inner = any_inner(&mut rng);
            }
            let l3 = parse(&inner).expect("it was").l3;
            let v4 = inner[l3] >> 4 == 4;
            let shift = if v4 { 0 } else { 4 };
            inner[l3 + 1] = inner[l3 + 1] & !(3 << shift) | (n & 3) << shift;
            if v4 {
                right(&mut inner, l3);
            }
            let mut frame = outer(&ctx, &mut rng, &inner);
            let l3 = if matches!((frame[12], frame[13]), (0x81, 0) | (0x88, 0xa8)) { 18 } else { 14 };
            let shift = if v6 { 4 } else { 0 };
            frame[l3 + 1] = frame[l3 + 1] & !(3 << shift) | (n >> 2 & 3) << shift;
            right(&mut frame, l3);
            frames.push((frame, false));
        }
        compare(&mut b, &alone(&ctx), &frames, &mut seen);
    }
    // Outer CE and inner Not-ECT: one row of 16.
    assert_eq!(seen, BTreeMap::from([("ecn", 24), ("stripped", 360)]));
}
