//! The block against the golden model (`ferric_model::switch::wrap`); etherparse reads every outer header.
use super::model::wrap;
use super::Wrap;
use crate::switch::testing::{any_inner, set_lines, tunnel};
use crate::tb::{AxisSink, AxisSource, Rng, Tb};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use ferric_abi::context::TunnelCtx;
use ferric_model::switch::functions::encap;
use ferric_model::switch::layers::{parse, Layers};
use std::collections::{BTreeMap, BTreeSet};

/// Functions.
const NF: usize = 4;

fn any_tunnel(rng: &mut Rng) -> TunnelCtx {
    let ctx = tunnel(rng.percent(50)).with_vlan(rng.percent(30)).with_tci(rng.next_u32() as u16).with_vni(rng.next_u32() & 0xff_ffff);
    let ctx = ctx.with_dscp(rng.below(64) as u8).with_hop_limit(rng.range(1, 255) as u8).with_copy_dscp(rng.percent(40)).with_copy_ttl(rng.percent(40));
    let address = |rng: &mut Rng| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
    let mask = if ctx.ipv6() { u128::MAX } else { u32::MAX.into() };
    let (local, remote) = (address(rng) & mask, address(rng) & mask);
    ctx.with_smac(rng.next_u64() >> 16).with_dmac(rng.next_u64() >> 16).with_local(local).with_remote(remote)
}

/// `out` is `frame` in the outer header of `ctx`.
fn check(ctx: &TunnelCtx, frame: &[u8], out: &[u8]) {
    let l4 = 14 + if ctx.vlan() { 4 } else { 0 } + if ctx.ipv6() { 40 } else { 20 };
    let packet = SlicedPacket::from_ethernet(out).expect("etherparse reads it");
    let Some(TransportSlice::Udp(udp)) = packet.transport else { panic!("no UDP: {out:02x?}") };
    assert_eq!((udp.destination_port(), udp.length() as usize, udp.checksum()), (4789, 16 + frame.len(), 0));
    assert!(udp.source_port() >= 0xc000);
    match packet.net.expect("there is IP") {
        NetSlice::Ipv4(ip) => {
            let h = ip.header().to_header();
            assert_eq!((h.header_checksum, usize::from(h.total_len), h.dont_fragment), (h.calc_header_checksum(), 36 + frame.len(), true));
        }
        NetSlice::Ipv6(ip) => assert_eq!(usize::from(ip.header().payload_length()), 16 + frame.len()),
    }
    match parse(frame) {
        Ok(layers) => assert_eq!(out, wrap(&encap(ctx), frame, &layers).expect("it is short enough"), "{ctx:?}"),
        // Of what the model's parser does not understand source port, DSCP, ECN, TTL and what follows from them are the block's own.
        Err(_) => {
            let l3 = if ctx.vlan() { 18 } else { 14 };
            let masked = |bytes: &[u8]| {
                let mut bytes = bytes.to_vec();
                bytes[l4..l4 + 2].fill(0);
                if ctx.ipv6() {
                    bytes[l3] &= 0xf0;
                    bytes[l3 + 1] &= 0x0f;
                    bytes[l3 + 7] = 0;
                } else {
                    bytes[l3 + 1] = 0;
                    bytes[l3 + 8] = 0;
                    bytes[l3 + 10..l3 + 12].fill(0);
                }
                bytes
            };
            assert_eq!(masked(out), masked(&wrap(&encap(ctx), frame, &Layers::default()).expect("short")));
        }
    }
}

struct Bench<const W: usize, const K: usize, const LK: usize> {
    tb: Tb,
    source: AxisSource,
    sink: AxisSink,
    wrapped: u64,
    lines: [TunnelCtx; NF],
}

impl<const W: usize, const K: usize, const LK: usize> Bench<W, K, LK> {
    fn new(stalls: [u32; 2], seed: u64) -> Self {
        let mut tb = Tb::with_seed(&format!("wrap{W}"), Wrap::<W, K, LK, NF>::default(), seed);
        let (source, sink) = (tb.axis_source("s", stalls[0]), tb.axis_sink("m", stalls[1]));
        Bench { tb, source, sink, wrapped: 0, lines: [TunnelCtx::default(); NF] }
    }

    fn set(&mut self, function: usize, ctx: &TunnelCtx) {
        self.lines[function] = *ctx;
        set_lines(&mut self.tb, &self.lines);
    }

    /// The egress begins frames of these functions; their beats come some cycles later.
    fn begin(&mut self, functions: &[usize]) {
        for function in functions {
            self.tb.set("begins", 1);
            self.tb.set("begins_function", *function as u64);
            self.cycle();
        }
        self.tb.set("begins", 0);
        (0..8).for_each(|_| self.cycle());
    }

    fn cycle(&mut self) {
        self.tb.cycle();
        self.wrapped += self.tb.get("stat");
    }

    /// As the admin engine writes it: off, then everything else, then on.
    fn tell_of(&mut self, function: usize, ctx: &TunnelCtx) {
        let mut off = *ctx;
        off.0[..4].fill(0);
        self.set(function, &off.with_bound(ctx.bound()));
        (0..12).for_each(|_| self.cycle());
        self.set(function, ctx);
        (0..12).for_each(|_| self.cycle());
    }

    fn tell(&mut self, ctx: &TunnelCtx) {
        self.tell_of(0, ctx);
    }

    /// What comes out of these frames, which are the physical function's.
    fn send(&mut self, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
        self.send_of(&vec![0; frames.len()], frames)
    }

    fn send_of(&mut self, functions: &[usize], frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
        self.begin(functions);
        frames.iter().for_each(|frame| self.source.push(frame));
        let mut out = Vec::new();
        let mut idle = 0;
        while out.len() < frames.len() {
            self.cycle();
            let before = out.len();
            out.extend(std::iter::from_fn(|| self.sink.pop()));
            idle = if out.len() > before { 0 } else { idle + 1 };
            assert!(idle < 20_000, "{} of {} frames", out.len(), frames.len());
        }
        (0..10).for_each(|_| self.cycle());
        out
    }
}

fn any_frame(rng: &mut Rng) -> Vec<u8> {
    loop {
        let frame = any_inner(rng);
        if frame.len() >= 14 {
            return frame;
        }
    }
}

fn random<const W: usize, const K: usize, const LK: usize>(stalls: [u32; 2], seed: u64, rounds: usize) {
    let mut b = Bench::<W, K, LK>::new(stalls, seed);
    let mut rng = Rng::new(seed);
    let mut understood = 0;
    for _ in 0..rounds {
        let lines: [TunnelCtx; NF] = std::array::from_fn(|_| if rng.percent(80) { any_tunnel(&mut rng).with_bound(true) } else { TunnelCtx::default() });
        lines.iter().enumerate().for_each(|(function, ctx)| b.tell_of(function, ctx));
        let frames: Vec<Vec<u8>> = (0..rng.range(1, 80)).map(|_| any_frame(&mut rng)).collect();
        let functions: Vec<usize> = frames.iter().map(|_| rng.below(NF as u64) as usize).collect();
        let before = b.wrapped;
        let out = b.send_of(&functions, &frames);
        for ((frame, out), function) in frames.iter().zip(&out).zip(&functions) {
            let ctx = &lines[*function];
            if ctx.valid() {
                check(ctx, frame, out);
            } else {
                assert_eq!(frame, out, "a function without a tunnel");
            }
        }
        understood += frames.iter().filter(|frame| parse(frame).is_ok()).count();
        assert_eq!(b.wrapped - before, functions.iter().filter(|f| lines[**f].valid()).count() as u64);
    }
    assert!(understood > 10 * rounds, "{understood}");
}

#[test]
fn frames_are_wrapped_as_the_model_does() {
    random::<64, 8, 3>([0, 0], 1, 30);
    random::<64, 8, 3>([30, 40], 2, 20);
    random::<512, 64, 6>([0, 0], 3, 60);
    random::<512, 64, 6>([30, 50], 4, 30);
}

/// Every place of the header's end and of the frame's, and the longest frames of the card.
#[test]
fn frames_of_every_length() {
    fn all<const W: usize, const K: usize, const LK: usize>() {
        let mut b = Bench::<W, K, LK>::new([0, 10], 5);
        let mut rng = Rng::new(5);
        for (v6, vlan) in [(false, false), (false, true), (true, false), (true, true)] {
            let ctx = tunnel(v6).with_vlan(vlan);
            b.tell(&ctx);
            let frames: Vec<Vec<u8>> = (14..220)
                .chain([9000, 16_383, 16_383])
                .map(|len| {
                    let mut frame = rng.bytes(len);
                    frame[12] = 0x99;
                    frame
                })
                .collect();
            let out = b.send(&frames);
            frames.iter().zip(&out).for_each(|(frame, out)| check(&ctx, frame, out));
        }
    }
    all::<64, 8, 3>();
    all::<512, 64, 6>();
}

#[test]
fn off_is_off() {
    let mut b = Bench::<64, 8, 3>::new([20, 20], 6);
    let mut rng = Rng::new(6);
    let frames: Vec<Vec<u8>> = (0..100).map(|_| any_frame(&mut rng)).collect();
    b.tell(&tunnel(false).with_valid(false));
    assert_eq!((b.send(&frames), b.wrapped), (frames, 0));
    // Another function's changes nothing.
    let frames: Vec<Vec<u8>> = (0..20).map(|_| any_frame(&mut rng)).collect();
    b.tell_of(1, &tunnel(false));
    assert_eq!((b.send(&frames), b.wrapped), (frames, 0));
}

/// Nobody has a tunnel: frames take a cycle. Then a function has one, in the middle of frames, and has none again: another's frames stay as they are and in order, its own are whole in it or in none.
fn nobody_has_a_tunnel<const W: usize, const K: usize, const LK: usize>(stalls: [u32; 2]) {
    let mut b = Bench::<W, K, LK>::new(stalls, 10);
    let mut rng = Rng::new(10);
    let ctx = tunnel(false).with_bound(true);
    let (mut sent, mut out): (Vec<(usize, Vec<u8>)>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
    for round in 0..80u8 {
        if round == 0 || rng.percent(60) {
            (0..100).for_each(|_| b.cycle());
        }
        let some: Vec<(usize, Vec<u8>)> = (0..30u8)
            .map(|n| {
                let mut frame = rng.bytes(60);
                frame[12..16].copy_from_slice(&[0x99, 0, round, n]);
                let more = rng.below(300) as usize;
                frame.extend(rng.bytes(more));
                (if rng.percent(30) { 2 } else { 0 }, frame)
            })
            .collect();
        b.begin(&some.iter().map(|(function, _)| *function).collect::<Vec<_>>());
        some.iter().for_each(|(_, frame)| b.source.push(frame));
        if round == 0 && stalls == [0, 0] {
            b.cycle();
            assert_eq!(b.tb.get("m$valid"), 1);
        }
        sent.extend(some);
        (0..rng.below(300)).for_each(|_| b.cycle());
        match rng.percent(50) {
            true => b.tell(&ctx),
            false => b.tell(&TunnelCtx::default()),
        }
        while b.source.pending() > 0 {
            b.cycle();
        }
        out.extend(std::iter::from_fn(|| b.sink.pop()));
    }
    let start = b.tb.cycles();
    while out.len() < sent.len() {
        b.cycle();
        out.extend(std::iter::from_fn(|| b.sink.pop()));
        assert!(b.tb.cycles() - start < 100_000, "{} of {} frames", out.len(), sent.len());
    }
    let mut wrapped = 0;
    for ((function, frame), out) in sent.iter().zip(&out) {
        if *function == 0 && out != frame {
            wrapped += 1;
            check(&ctx, frame, out);
        } else {
            assert_eq!(out, frame);
        }
    }
    assert!(wrapped > 100 && wrapped == b.wrapped, "{wrapped} in the tunnel");
}

#[test]
fn frames_of_nobody_who_has_a_tunnel_go_by() {
    nobody_has_a_tunnel::<512, 64, 6>([0, 0]);
    nobody_has_a_tunnel::<512, 64, 6>([20, 50]);
    // What goes past waits for the wire while the store has got something.
    nobody_has_a_tunnel::<512, 64, 6>([0, 90]);
    nobody_has_a_tunnel::<64, 8, 3>([0, 0]);
    nobody_has_a_tunnel::<64, 8, 3>([20, 50]);
}

/// A tunnel that changes while frames leave: each is in the old one or in the new one, and never in half of either, or in none; another function's frames stay in theirs.
#[test]
fn a_header_is_of_one_tunnel() {
    let mut b = Bench::<512, 64, 6>::new([0, 60], 7);
    let mut rng = Rng::new(7);
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for _ in 0..40 {
        let [old, new, other] = std::array::from_fn(|_| any_tunnel(&mut rng).with_bound(true));
        b.tell(&old);
        b.tell_of(2, &other);
        let frames: Vec<Vec<u8>> = (0..120)
            .map(|_| {
                let mut frame = rng.bytes(60);
                frame[12] = 0x99;
                frame
            })
            .collect();
        let functions: Vec<usize> = frames.iter().map(|_| if rng.percent(30) { 2 } else { 0 }).collect();
        b.begin(&functions);
        frames.iter().for_each(|frame| b.source.push(frame));
        (0..rng.below(200)).for_each(|_| b.cycle());
        // Word by word, as an admin command does it: off, the others, on. An address comes with the last one: however late it is, it is in the checksum.
        let mut line = old;
        line.0[..4].fill(0);
        line = line.with_bound(true);
        for word in 0..14 {
            if word != 0 && word != 6 {
                line.0[4 * word..4 * word + 4].copy_from_slice(&new.0[4 * word..4 * word + 4]);
            }
            b.set(0, &line);
            (0..5).for_each(|_| b.cycle());
        }
        b.set(0, &new);
        let mut out = Vec::new();
        while out.len() < frames.len() {
            b.cycle();
            out.extend(std::iter::from_fn(|| b.sink.pop()));
        }
        for ((frame, out), function) in frames.iter().zip(&out).zip(&functions) {
            let layers = parse(frame).expect("an unknown type");
            let of = |ctx: &TunnelCtx| wrap(&encap(ctx), frame, &layers).expect("it is short");
            let which = match function {
                2 if *out == of(&other) => "other",
                0 if *out == of(&old) => "old",
                0 if *out == of(&new) => "new",
                _ => panic!("{out:02x?}"),
            };
            *seen.entry(which).or_default() += 1;
        }
    }
    assert!(seen.len() == 3 && seen.values().all(|n| *n > 100), "{seen:?}");
}

/// One flow has one source port, many flows have many; nothing but addresses and ports changes it.
#[test]
fn flows_spread_over_source_ports() {
    let mut b = Bench::<512, 64, 6>::new([0, 0], 8);
    let ctx = tunnel(false);
    b.tell(&ctx);
    let frame = |ports: u16, payload: u8| {
        let mut frame = Vec::new();
        let builder = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(ports, 4791);
        builder.write(&mut frame, &[payload; 30]).expect("a vector takes everything");
        frame
    };
    let frames: Vec<Vec<u8>> = (0..200).flat_map(|n| [frame(n, 1), frame(n, 2)]).collect();
    let ports: Vec<[u8; 2]> = b.send(&frames).iter().map(|f| [f[34], f[35]]).collect();
    assert!(ports.chunks(2).all(|two| two[0] == two[1]));
    assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 200);
}

/// README.md has these figures.
#[test]
fn rate_and_latency() {
    fn of<const W: usize, const K: usize, const LK: usize>(len: usize) -> (u64, u64) {
        let mut b = Bench::<W, K, LK>::new([0, 0], 9);
        b.tell(&tunnel(false));
        let mut frame = vec![2; len];
        frame[12] = 0x99;
        b.begin(&[0; 102]);
        b.source.push(&frame);
        let start = b.tb.cycles();
        while b.sink.pop().is_none() {
            b.cycle();
        }
        let latency = b.tb.cycles() - start - (len.div_ceil(K) as u64) - ((len + 50).div_ceil(K) as u64);
        // A hundred frames from the first one on that is through.
        (0..101).for_each(|_| b.source.push(&frame));
        let (mut start, mut out) = (0, 0);
        while out < 101 {
            b.cycle();
            if b.sink.pop().is_some() {
                out += 1;
                start = if out == 1 { b.tb.cycles() } else { start };
            }
        }
        (latency, (b.tb.cycles() - start) / 100)
    }
    // Beyond the beats of the frame and those of the wrapped frame; cycles for a frame.
    assert_eq!([62, 4178].map(of::<512, 64, 6>), [(8, 2), (4, 67)]);
    assert_eq!([62, 4178].map(of::<64, 8, 3>), [(8, 14), (4, 529)]);
}
