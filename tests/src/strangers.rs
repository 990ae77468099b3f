//! Packets of strangers: right queue pair, PSN and key, but from another address, to another, in another VLAN, or of the other IP version. Nothing of them may be executed or answered.
use crate::pair::{Error, Pair, Wire};
use crate::traffic::Flow;
use ferric_abi::codes::WrOpcode;
use ferric_driver::types::Mac;
use ferric_driver::{Access, QpConfig};
use ferric_hdl::card::counters;
use ferric_hdl::net::icrc::model::seal;
use ferric_sim::{CardConfig, Rng, WorldConfig};
use rand::{Rng as _, SeedableRng};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Between whom a packet travels.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    /// Source MAC address.
    pub smac: Mac,
    /// Destination MAC address.
    pub dmac: Mac,
    /// Source IP address.
    pub sip: IpAddr,
    /// Destination IP address, of the same version.
    pub dip: IpAddr,
    /// 802.1Q tag.
    pub vlan: Option<u16>,
}

impl Between {
    /// From host `from` to the other one, as on a connection over `wire`.
    pub fn of(pair: &Pair, wire: &Wire, from: usize) -> Self {
        let (me, peer) = (&pair.hosts[from], &pair.hosts[1 - from]);
        Self { smac: me.mac(), dmac: peer.mac(), sip: me.ip(wire.v6), dip: peer.ip(wire.v6), vlan: wire.vlan }
    }

    /// The frame of `packet`: BTH, its extended headers, payload and pad, without ICRC.
    pub fn frame(&self, packet: &[u8]) -> Vec<u8> {
        let mut f = [self.dmac.0, self.smac.0].concat();
        if let Some(tci) = self.vlan {
            f.extend([0x81, 0]);
            f.extend(tci.to_be_bytes());
        }
        let udp = 8 + packet.len() + 4;
        match (self.sip, self.dip) {
            (IpAddr::V4(sip), IpAddr::V4(dip)) => {
                f.extend([8, 0]);
                let mut ip = vec![0x45, 0];
                ip.extend((20 + udp as u16).to_be_bytes());
                ip.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
                ip.extend(sip.octets());
                ip.extend(dip.octets());
                let sum: u32 = ip.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
                let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
                ip[10..12].copy_from_slice(&sum.to_be_bytes());
                f.extend(ip);
            }
            (sip, dip) => {
                let octets = |ip: IpAddr| match ip {
                    IpAddr::V6(a) => a.octets(),
                    IpAddr::V4(a) => a.to_ipv6_mapped().octets(),
                };
                f.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
                f.extend((udp as u16).to_be_bytes());
                f.extend([17, 64]);
                f.extend(octets(sip));
                f.extend(octets(dip));
            }
        }
        f.extend([0xc0, 0x77, 0x12, 0xb7]);
        f.extend((udp as u16).to_be_bytes());
        f.extend([0, 0]);
        f.extend(packet);
        f.extend([0; 4]);
        // A RoCE frame as it is made here always has its place for one.
        let _ = seal(&mut f);
        f
    }
}

/// A transport packet of `opcode` for queue pair `qpn`: base header with default P_Key and acknowledge request, `headers`, `payload` with its pad.
pub fn packet(opcode: u8, qpn: u32, psn: u32, headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let pad = (4 - payload.len() % 4) % 4;
    let mut p = vec![opcode, 0x40 | (pad as u8) << 4, 0xff, 0xff, 0];
    p.extend(&qpn.to_be_bytes()[1..]);
    p.push(0x80);
    p.extend(&psn.to_be_bytes()[1..]);
    p.extend(headers);
    p.extend(payload);
    p.extend(&[0; 4][..pad]);
    p
}

/// RETH.
pub fn reth(va: u64, rkey: u32, len: u32) -> Vec<u8> {
    [&va.to_be_bytes()[..], &rkey.to_be_bytes(), &len.to_be_bytes()].concat()
}

/// AETH.
pub fn aeth(syndrome: u8, msn: u32) -> Vec<u8> {
    (u32::from(syndrome) << 24 | msn).to_be_bytes().to_vec()
}

/// What makes a stranger of a sender, or a neighbour's of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Foreign {
    /// Every address is another.
    Everything,
    /// The source IP address.
    Source,
    /// The destination IP address.
    Destination,
    /// The destination MAC address: a switch has flooded the frame.
    Flooded,
    /// The destination MAC address is broadcast.
    Broadcast,
    /// IPv4 for IPv6, or the other way.
    Version,
    /// Another VLAN; without one, a tag too many.
    Vlan,
    /// The tag is missing; without one, as `Vlan` with another number.
    Tag,
}

impl Foreign {
    /// All of them.
    pub const ALL: [Self; 8] = [Self::Everything, Self::Source, Self::Destination, Self::Flooded, Self::Broadcast, Self::Version, Self::Vlan, Self::Tag];

    /// `b` with that wrong; `n` says which bit of it, for a start.
    pub fn apply(self, b: &Between, n: u64) -> Between {
        let mac = |m: Mac, bit: u64| {
            let mut m = m.0;
            m[5 - bit as usize / 8 % 6] ^= 1 << (bit % 8);
            Mac(m)
        };
        let ip = |a: IpAddr, bit: u64| match a {
            IpAddr::V4(a) => IpAddr::V4(Ipv4Addr::from(u32::from(a) ^ 1 << (bit % 32))),
            IpAddr::V6(a) => IpAddr::V6(Ipv6Addr::from(u128::from(a) ^ 1 << (bit % 128))),
        };
        let other = |a: IpAddr| match a {
            IpAddr::V4(a) => IpAddr::V6(if n % 2 == 0 { a.to_ipv6_mapped() } else { Ipv6Addr::from(u128::from(u32::from(a))) }),
            IpAddr::V6(a) => IpAddr::V4(Ipv4Addr::from(u128::from(a) as u32)),
        };
        match self {
            Self::Everything => Between { smac: mac(b.smac, n), dmac: mac(b.dmac, n), sip: ip(b.sip, n), dip: ip(b.dip, n), vlan: b.vlan },
            Self::Source => Between { sip: ip(b.sip, n), ..*b },
            Self::Destination => Between { dip: ip(b.dip, n), ..*b },
            Self::Flooded => Between { dmac: mac(b.dmac, n), ..*b },
            Self::Broadcast => Between { dmac: Mac([0xff; 6]), ..*b },
            Self::Version => Between { sip: other(b.sip), dip: other(b.dip), ..*b },
            Self::Vlan => Between { vlan: Some(b.vlan.unwrap_or(0x2005) ^ 1 << (n % 12)), ..*b },
            Self::Tag => Between { vlan: b.vlan.map_or(Some(n as u16), |_| None), ..*b },
        }
    }
}

/// How many strangers, against which card.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Seed.
    pub seed: u64,
    /// Their frames.
    pub frames: u64,
    /// Data path bits.
    pub width: usize,
}

/// What came of them.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Messages of the real pair.
    pub messages: u64,
    /// Cycles they took without strangers, and with them.
    pub cycles: [u64; 2],
    /// Frames of strangers, all of them dropped and counted.
    pub frames: u64,
}

/// Bytes of a message of the real pair, one at a time: the wire, of which strangers take their share, does not set its pace.
const MESSAGE: usize = 2000;
/// Cycles between two frames of strangers.
const PACE: u64 = 400;

/// A real pair works while strangers who know everything about its connection and about an idle one but the addresses speak to both hosts: every packet type,
/// every address wrong once. Errors: something of them was executed, answered or not counted, or the real pair lost more than a hundredth of its pace.
pub fn run(plan: Plan) -> Result<Outcome, Error> {
    let mut rng = Rng::seed_from_u64(plan.seed);
    let card = CardConfig { width: plan.width, ..Default::default() };
    let pair = Pair::new(&WorldConfig { cards: vec![card.clone(), card], seed: plan.seed, ..Default::default() })?;
    let fail = |what: String| {
        Error::Stuck(format!("seed {}, W = {}: {what}; replay with ./scripts/soak hostile --strangers {} --seed {} --width {}", plan.seed, plan.width, plan.frames, plan.seed, plan.width))
    };
    let count = |host: usize, name: &str| -> Result<u64, Error> {
        let index = counters::index(name).ok_or_else(|| Error::Stuck(format!("no counter {name}")))?;
        Ok(pair.hosts[host].ctx.counters(index as u32, 1)?[0])
    };
    let wire = Wire { v6: plan.seed % 2 == 1, vlan: (plan.seed % 3 == 1).then_some(0x6123), psn: [0x1000, 0x2000], ..Default::default() };
    // The victim of the forgeries is idle, so that every PSN of theirs is the one expected.
    let cqs = [pair.hosts[0].cq(64)?, pair.hosts[1].cq(64)?];
    let victims = pair.connected(&QpConfig::default(), &wire, [&cqs[0], &cqs[1]])?;
    let regions = [pair.hosts[0].region(4096, Access::ALL)?, pair.hosts[1].region(4096, Access::ALL)?];
    let mut good = Flow::new(&pair, &wire, MESSAGE, 1, false)?;
    let mut messages = 0;

    // Twice the same work: alone, and among strangers. Frames are thrown in as time passes.
    let mut cycles = [0; 2];
    let enough = plan.frames * PACE / 1000 + 24;
    let mut thrown = [0u64; 2];
    good.run(&pair, WrOpcode::Write, 8, 400_000)?;
    messages += 8;
    for (strangers, cycles) in [false, true].into_iter().zip(&mut cycles) {
        let start = pair.world().cycle();
        let mut due = start;
        messages += enough;
        while !good.advance(WrOpcode::Write, messages)? {
            while strangers && pair.world().cycle() >= due && thrown.iter().sum::<u64>() < plan.frames {
                due += PACE;
                let (to, n) = (rng.gen_range(0..2usize), thrown.iter().sum::<u64>());
                let foreign = Foreign::ALL[n as usize % Foreign::ALL.len()];
                let between = foreign.apply(&Between::of(&pair, &wire, 1 - to), rng.gen());
                let (qpn, expected, unsent) = (victims[to].qpn(), wire.psn[1 - to], wire.psn[to]);
                let region = &regions[to];
                let payload: Vec<u8> = (0..rng.gen_range(1..=100)).map(|_| 0xa5).collect();
                let access = reth(region.addr() + rng.gen_range(0..3000), region.rkey(), payload.len() as u32);
                let forged = match n / Foreign::ALL.len() as u64 % 10 {
                    0 => packet(0x0a, qpn, expected, &access, &payload),
                    1 => packet(0x04, qpn, expected, &[], &payload),
                    2 => packet(0x0c, qpn, expected, &access, &[]),
                    3 => packet(0x14, qpn, expected, &[&reth(region.addr(), region.rkey(), 0)[..12], &[0, 0, 0, 0, 0, 0, 0, 1], &[0; 8]].concat(), &[]),
                    4 => packet(0x0a, qpn, expected.wrapping_sub(1) & 0xff_ffff, &access, &payload),
                    5 => packet(0x0a, qpn, expected + 1, &access, &payload),
                    6 => packet(0x11, qpn, unsent, &aeth(0x1f, 1), &[]),
                    7 => packet(0x11, qpn, unsent, &aeth([0x60, 0x61, 0x62, 0x63, 0x21][n as usize % 5], 0), &[]),
                    8 => packet(0x10, qpn, unsent, &aeth(0x1f, 1), &payload),
                    _ => packet(0x81, qpn, 0, &[], &[0; 16]),
                };
                pair.world().cards[to].receive(between.frame(&forged));
                thrown[to] += 1;
            }
            pair.world().run(20);
        }
        *cycles = pair.world().cycle() - start;
    }
    pair.world().run(5000);
    let frames = thrown.iter().sum();
    if frames < plan.frames {
        return Err(fail(format!("only {frames} frames were thrown in")));
    }
    for host in 0..2 {
        let dropped = count(host, "rx.rx_stranger")?;
        if dropped != thrown[host] {
            return Err(fail(format!("host {host} counted {dropped} of {} frames", thrown[host])));
        }
        for name in [
            "rx.rx_bad_icrc",
            "rx.rx_malformed",
            "rx.rx_no_buffer",
            "resp.dup_requests",
            "resp.out_of_order",
            "resp.nak_seq_sent",
            "req_rx.bad_ack",
            "req_rx.retransmits",
            "req_rx.timeouts",
            "cc.rp_cnp_ignored",
        ] {
            if count(host, name)? != 0 {
                return Err(fail(format!("host {host}: {name} is {}", count(host, name)?)));
            }
        }
        let status = victims[host].query()?;
        if (status.expected_psn, status.next_psn, status.msn) != (wire.psn[1 - host], wire.psn[host], 0) || regions[host].to_vec(0, 4096) != [0; 4096] {
            return Err(fail(format!("host {host}: {status:?}, or its memory has changed")));
        }
    }
    if cycles[1] * 99 > cycles[0] * 100 {
        return Err(fail(format!("{enough} messages took {} cycles alone and {} among strangers", cycles[0], cycles[1])));
    }
    Ok(Outcome { messages: enough, cycles, frames })
}
