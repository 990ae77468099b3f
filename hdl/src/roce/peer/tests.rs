//! Random packets against the model: those of the peer, and those in which one thing is wrong.
use super::model::{foreign, meant, stranger, Path, Seen};
use super::PeerCheck;
use crate::msg::{CtlReq, PeerAsk};
use crate::net::within::testing::{anywhere, origin, some, words};
use crate::tb::{Fields, Rng, Tb};
use ferric_abi::context::PathCtx;
use ferric_abi::special::special_queue_pair;
use ferric_model::net::networks::{Network, Networks, Through};
use std::collections::{BTreeMap, VecDeque};

/// 256 queue pairs of 64 functions, each with a share of four.
const LQ: usize = 8;
const LJ: usize = 2;
const QPS: u64 = 1 << LQ;

fn address(rng: &mut Rng, ipv6: bool) -> u128 {
    if ipv6 {
        u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())
    } else {
        rng.next_u32().into()
    }
}

fn random_path(rng: &mut Rng) -> Path {
    let ipv6 = rng.percent(50);
    let vlan = rng.percent(50).then(|| rng.next_u32() as u16 & 0xfff);
    Path { smac: rng.next_u64() >> 16, sip: address(rng, ipv6), dip: address(rng, ipv6), ipv6, vlan, function: rng.below(64) as u16 }
}

/// Few enough that most have paths, and special ones among them; the shares of functions 0 to 3 and of the last two.
fn some_line(rng: &mut Rng) -> u32 {
    let line = rng.below(24) as u32;
    if line < 16 {
        line
    } else {
        QPS as u32 - 24 + line
    }
}

struct Bench {
    tb: Tb,
    rng: Rng,
    paths: Vec<Option<Path>>,
    /// Words of `PathCtx` on their way over the control bus, and the path that is good from then on.
    writes: VecDeque<(u32, u32, u32, Option<Option<Path>>)>,
    /// Verdicts to come: those asked for in the last two cycles.
    expected: VecDeque<Option<(Seen, bool, bool, u32)>>,
    /// The function whose MAC address the next packet goes to.
    addressee: u16,
    functions: Networks,
    /// Packets of another network that were refused for that, and those of the right one.
    networks: [u32; 2],
    counts: BTreeMap<(&'static str, bool), u32>,
}

impl Bench {
    fn new(seed: u64) -> Self {
        let tb = Tb::with_seed("peer", PeerCheck::<LQ, LJ>::default(), seed);
        Self {
            rng: Rng::new(tb.seed() ^ 0x9ee6),
            tb,
            paths: vec![None; 1 << LQ],
            writes: VecDeque::new(),
            expected: [None, None].into(),
            addressee: 0,
            functions: Networks::default(),
            networks: [0; 2],
            counts: BTreeMap::new(),
        }
    }

    /// As the admin engine does it: the word with `valid` is zeroed first and written last. What is not compared is noise.
    fn connect(&mut self, line: u32, path: Option<Path>) {
        self.writes.push_back((line, 13, 0, Some(None)));
        let Some(p) = path else { return };
        let noise = self.rng.next_u64();
        // Of an IPv4 address the low word counts.
        let high = if p.ipv6 { 0 } else { u128::from(self.rng.next_u64()) << 32 };
        let record = PathCtx::default()
            .with_dmac(noise >> 16)
            .with_smac(p.smac)
            .with_udp_sport(noise as u16)
            .with_dip(p.dip | high)
            .with_sip(p.sip | high)
            .with_ipv6(p.ipv6)
            .with_vlan(p.vlan.is_some())
            .with_vlan_tci(p.vlan.unwrap_or(noise as u16) | (noise as u16) << 12)
            .with_flow_label(noise as u32 & 0xf_ffff)
            .with_hop_limit(noise as u8)
            .with_function(p.function)
            .with_rsvd4(noise as u32 & 0xf_ffff)
            .with_valid(true);
        let words: Vec<u32> = record.0.chunks(4).map(|w| u32::from_le_bytes(w.try_into().expect("four bytes"))).collect();
        for word in (0..16).filter(|w| *w != 13) {
            self.writes.push_back((line, word, words[word as usize], None));
        }
        self.writes.push_back((line, 13, words[13], Some(Some(p))));
    }

    /// One cycle: a word of a path, if one waits, and a packet, if one is asked about.
    fn step(&mut self, what: &'static str, seen: Option<Seen>) {
        let ctl = Fields::of::<CtlReq>();
        let mut path_now = None;
        // Other accesses of the bus mean nothing.
        let (mut valid, mut request) = (false, vec![("line", self.rng.below(QPS).into()), ("word", 13), ("write", 0), ("data", 0x700)]);
        if self.rng.percent(60) {
            if let Some((line, word, data, then)) = self.writes.pop_front() {
                (valid, request) = (true, vec![("line", line.into()), ("word", word.into()), ("write", 1), ("data", data.into())]);
                path_now = then.map(|p| (line, p));
            }
        } else {
            valid = self.rng.percent(50);
            if !valid {
                request[2].1 = 1;
            }
        }
        self.tb.set("ctl_valid", valid.into());
        self.tb.set_wide("ctl", ctl.pack(&request));
        let layout = Fields::of::<PeerAsk>();
        let asked = seen.unwrap_or(Seen { qpn: self.rng.below(QPS) as u32, ..Default::default() });
        self.tb.set_wide(
            "ask",
            layout.pack(&[
                ("qpn", asked.qpn.into()),
                ("datagram", asked.datagram.into()),
                ("dmac", asked.dmac.into()),
                ("sip", asked.sip),
                ("dip", asked.dip),
                ("ipv6", asked.ipv6.into()),
                ("vlan", asked.vlan.is_some().into()),
                ("vid", asked.vlan.unwrap_or(0).into()),
                origin(asked.network.through, true)[0],
                origin(asked.network.through, true)[1],
            ]),
        );
        self.tb.set("addressee", self.addressee.into());
        let qpn = meant(&asked, self.addressee, LJ as u32);
        let path = self.paths.get(qpn as usize).copied().flatten();
        self.expected.push_back(seen.map(|s| (s, stranger(&s, path.as_ref(), LJ as u32), foreign(&s, path.as_ref()), qpn)));
        self.tb.cycle();
        if let Some((line, path)) = path_now {
            self.paths[line as usize] = path;
        }
        self.expected.pop_front();
        if let Some(Some((s, verdict, foreign, qpn))) = self.expected.front() {
            assert_eq!(self.tb.get("line_bits") as u32 | s.qpn, *qpn, "{s:?}, seed {}", self.tb.seed());
            assert_eq!(self.tb.get("foreign") == 1, *foreign, "{s:?}, seed {}", self.tb.seed());
            self.networks[usize::from(*foreign)] += 1;
            assert_eq!(self.tb.get("stranger") == 1, *verdict, "{s:?}, seed {}", self.tb.seed());
        }
        if let Some(Some((_, verdict, ..))) = self.expected.back() {
            *self.counts.entry((what, *verdict)).or_default() += 1;
        }
    }

    /// The network of a function.
    fn network(&self, function: u16) -> Network {
        let through = self.functions.get(function).map_or(Through::None, |leader| if function % 2 == 0 { Through::Whole(leader.into()) } else { Through::Only(function) });
        Network { through, networks: self.functions }
    }

    /// Other functions have tunnels, once nothing is asked about.
    fn set_tunnels(&mut self, tunnels: u64) {
        (0..3).for_each(|_| self.step("idle", None));
        self.functions = some(&mut self.rng, 64, tunnels);
        self.tb.set_wide("networks", words(&self.functions));
    }

    /// A packet of the peer of queue pair `line`.
    fn own(&mut self, line: u32) -> Seen {
        let p = self.paths[line as usize].unwrap_or_else(|| random_path(&mut self.rng));
        Seen { qpn: line, datagram: false, dmac: p.smac, sip: p.dip, dip: p.sip, ipv6: p.ipv6, vlan: p.vlan, network: self.network(p.function) }
    }
}

/// What is wrong in a packet, one thing at a time.
const WRONGS: [&str; 19] = [
    "nothing",
    "destination MAC",
    "source address",
    "destination address",
    "IP version",
    "VLAN",
    "tag missing",
    "tag too many",
    "queue pair",
    "datagram",
    "group",
    "group's MAC",
    "group, other family",
    "beyond the table",
    "special",
    "special, of another function",
    "special by its number",
    "connection to 1",
    "one beside 1",
];

fn mutated(b: &mut Bench, line: u32, what: &'static str) -> Seen {
    b.addressee = b.rng.below(64) as u16;
    let mut s = b.own(line);
    let bit = |rng: &mut Rng, ipv6: bool| 1u128 << rng.below(if ipv6 { 128 } else { 32 });
    let group = |s: &Seen| Seen { qpn: 0xff_ffff, datagram: true, dmac: if s.ipv6 { 0x3333 << 32 | s.dip as u64 & 0xffff_ffff } else { 0x0100_5e00_0000 | s.dip as u64 & 0x7f_ffff }, ..*s };
    let rng = &mut b.rng;
    match what {
        "destination MAC" => s.dmac ^= 1 << rng.below(48),
        "source address" => s.sip ^= bit(rng, s.ipv6),
        "destination address" => s.dip ^= bit(rng, s.ipv6),
        "IP version" => s.ipv6 ^= true,
        "VLAN" => s.vlan = s.vlan.map(|v| v ^ 1 << rng.below(12)),
        "tag missing" => s.vlan = None,
        "tag too many" => s.vlan = s.vlan.or(Some(if rng.percent(50) { 0 } else { rng.next_u32() as u16 & 0xfff })),
        "queue pair" => s.qpn = rng.below(QPS) as u32,
        "datagram" => {
            // From anybody; the rest counts.
            s.datagram = true;
            s.sip = address(rng, s.ipv6);
            match rng.below(6) {
                0 => s.dmac ^= 1 << rng.below(48),
                1 => s.dip ^= bit(rng, s.ipv6),
                2 => s.vlan = if s.vlan.is_some() { None } else { Some(5) },
                3 => s.ipv6 ^= true,
                _ => {}
            }
        }
        "group" => s = group(&s),
        "group's MAC" => {
            s = group(&s);
            s.dmac ^= 1 << rng.below(48);
            s.datagram = rng.percent(90);
        }
        "group, other family" => {
            s = group(&s);
            s.ipv6 ^= true;
        }
        "beyond the table" => {
            // Datagrams to all ones are to a group.
            s.qpn |= 1 << (LQ as u64 + rng.below(24 - LQ as u64));
            s.dmac ^= 1;
        }
        "special" | "special, of another function" | "special by its number" | "connection to 1" | "one beside 1" => {
            // From anybody to number 1, at the address of a function's special queue pair.
            let function = (line >> LJ) as u16;
            s = b.own(special_queue_pair(function.into(), LJ as u32));
            b.addressee = function;
            let rng = &mut b.rng;
            s.sip = address(rng, s.ipv6);
            (s.datagram, s.qpn) = match what {
                "special by its number" => (rng.percent(80), s.qpn),
                "connection to 1" => (false, 1),
                "one beside 1" => (true, 1 ^ 1 << rng.below(24)),
                _ => (true, 1),
            };
            if what == "special, of another function" {
                b.addressee ^= 1 << rng.below(6);
            }
        }
        _ => {}
    }
    s
}

#[test]
fn random_packets_are_judged_as_the_model_does() {
    for seed in 1..=3 {
        let mut b = Bench::new(seed);
        for _ in 0..40 {
            for _ in 0..b.rng.below(6) {
                let (line, path) = (some_line(&mut b.rng), b.rng.percent(85).then(|| random_path(&mut b.rng)));
                b.connect(line, path);
            }
            let tunnels = [0, u64::MAX, b.rng.next_u64(), b.rng.next_u64()][b.rng.below(4) as usize];
            b.set_tunnels(tunnels);
            for _ in 0..300 {
                let (line, what) = (some_line(&mut b.rng), WRONGS[b.rng.below(WRONGS.len() as u64) as usize]);
                let mut seen = mutated(&mut b, line, what);
                match b.rng.below(8) {
                    0 => seen.network.through = Through::None,
                    1 => seen.network.through = anywhere(&mut b.rng, 64),
                    2 => {
                        seen.network.through = match seen.network.through {
                            Through::Whole(f) => Through::Whole(f ^ 1 << b.rng.below(6)),
                            Through::Only(f) => Through::Only(f ^ 1 << b.rng.below(6)),
                            other => other,
                        }
                    }
                    _ => {}
                }
                let asked = b.rng.percent(90);
                b.step(what, asked.then_some(seen));
            }
            // The bus is idle before the next paths.
            while !b.writes.is_empty() {
                b.step("idle", None);
            }
        }
        assert!(b.networks.iter().all(|n| *n > 500), "{:?}", b.networks);
        for what in WRONGS {
            let count = |refused| b.counts.get(&(what, refused)).copied().unwrap_or(0);
            let (never_passes, never_fails) = (what == "group, other family", matches!(what, "group" | "beyond the table" | "special"));
            assert!((never_passes || count(false) > 20) && (never_fails || count(true) > 20), "{what}: {:?}", b.counts);
        }
    }
}

/// Each bit of each field, both versions, with and without a tag.
#[test]
fn every_bit_counts() {
    let mut b = Bench::new(7);
    for ipv6 in [false, true] {
        for vlan in [None, Some(0x5a5)] {
            let mut path = random_path(&mut b.rng);
            (path.ipv6, path.vlan) = (ipv6, vlan);
            (path.sip, path.dip) = (address(&mut b.rng, ipv6), address(&mut b.rng, ipv6));
            b.connect(3, Some(path));
            while !b.writes.is_empty() {
                b.step("idle", None);
            }
            let good = b.own(3);
            b.step("good", Some(good));
            let bits = if ipv6 { 128 } else { 32 };
            for n in 0..bits {
                b.step("source", Some(Seen { sip: good.sip ^ 1 << n, ..good }));
                b.step("destination", Some(Seen { dip: good.dip ^ 1 << n, ..good }));
                // The source of a datagram is free.
                b.step("free", Some(Seen { sip: good.sip ^ 1 << n, datagram: true, ..good }));
            }
            (0..48).for_each(|n| b.step("MAC", Some(Seen { dmac: good.dmac ^ 1 << n, ..good })));
            (0..12).for_each(|n| b.step("VLAN", Some(Seen { vlan: vlan.map(|v| v ^ 1 << n), ..good })));
            b.step("good", Some(good));
        }
    }
    assert_eq!(b.counts.get(&("good", true)), None);
    assert_eq!((b.counts[&("source", true)], b.counts[&("destination", true)], b.counts[&("MAC", true)], b.counts[&("VLAN", true)]), (320, 320, 192, 24));
    assert_eq!((b.counts[&("free", false)], b.counts.get(&("free", true))), (320, None));
}
