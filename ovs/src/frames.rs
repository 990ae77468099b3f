//! Frames made at random, most of them so that a flow of the table matches.
use ferric_abi::wire::ethertype;
use ferric_model::net::sums::{finish, sum};
use ferric_model::switch::flow::{Field, Masked, Match};
use rand::seq::SliceRandom;
use rand::Rng;

/// Few values of each kind, so that flows and frames meet.
pub const MACS: [u64; 6] = [0x5254_0000_0001, 0x5254_0000_0002, 0x5254_0000_0103, 0x0200_0000_0004, 0x3333_0000_0001, 0xffff_ffff_ffff];
pub const IP4: [u32; 6] = [0xc0a8_0701, 0xc0a8_0702, 0xc0a8_0801, 0x0a01_0203, 0xac10_0001, 0xe000_0005];
pub const PORTS: [u16; 6] = [22, 80, 443, 1024, 4790, 50000];
pub const PROTOCOLS: [u8; 6] = [6, 17, 1, 58, 47, 132];

/// One of the few IPv6 addresses.
pub fn ip6(n: usize) -> u128 {
    [0x2001_0db8_0000_0000_0000_0000_0000_0001, 0x2001_0db8_0000_0000_0000_0000_0001_0002, 0x2001_0db8_00ff_0000_0000_0000_0000_0001, 0xfe80 << 112 | 5][n % 4]
}

/// What is in a frame behind Ethernet and tags.
#[derive(Clone, Debug)]
pub enum Net {
    Other,
    Arp { op: u16, sip: u32, tip: u32 },
    V4 { src: u32, dst: u32, part: u16, options: usize },
    V6 { src: u128, dst: u128, hop: bool, part: Option<u16> },
}

/// A frame before it is bytes.
#[derive(Clone, Debug)]
pub struct Spec {
    pub dmac: u64,
    pub smac: u64,
    /// Type and tag control information, from the outside on.
    pub tags: Vec<(u16, u16)>,
    pub ethertype: u16,
    pub net: Net,
    pub proto: u8,
    pub tos: u8,
    pub ttl: u8,
    /// Ports, or type and code.
    pub upper: (u16, u16),
    pub tcp_flags: u16,
    /// Bytes behind the last header.
    pub payload: usize,
    /// Bytes behind the datagram.
    pub padding: usize,
    /// Bytes of the frame at least, which padding makes up for.
    pub least: usize,
}

impl Spec {
    /// Any frame.
    pub fn random(rng: &mut impl Rng) -> Self {
        let pick_mac = |rng: &mut _| *MACS.choose(rng).unwrap_or(&0);
        let kind = rng.gen_range(0..10);
        let (ethertype, net) = match kind {
            0 => (0x88b5, Net::Other),
            1 => (ethertype::ARP, Net::Arp { op: rng.gen_range(1..3), sip: pick(rng, &IP4), tip: pick(rng, &IP4) }),
            2..=6 => (ethertype::IPV4, Net::V4 { src: pick(rng, &IP4), dst: pick(rng, &IP4), part: 0, options: if rng.gen_ratio(1, 20) { rng.gen_range(1..4) } else { 0 } }),
            _ => (ethertype::IPV6, Net::V6 { src: ip6(rng.gen()), dst: ip6(rng.gen()), hop: rng.gen_ratio(1, 20), part: None }),
        };
        let mut spec = Self {
            dmac: pick_mac(rng),
            smac: pick_mac(rng) & !(1 << 40),
            tags: Vec::new(),
            ethertype,
            net,
            proto: pick(rng, &PROTOCOLS),
            tos: if rng.gen_bool(0.5) { 0 } else { rng.gen() },
            ttl: if rng.gen_ratio(1, 10) { rng.gen_range(0..2) } else { 64 },
            upper: (pick(rng, &PORTS), pick(rng, &PORTS)),
            tcp_flags: if rng.gen() { 0x10 } else { rng.gen_range(0..0x1000) },
            payload: match rng.gen_range(0..20) {
                0 => rng.gen_range(1350..1500),
                1..=4 => rng.gen_range(0..600),
                _ => rng.gen_range(0..40),
            },
            padding: if rng.gen_ratio(1, 8) { rng.gen_range(1..20) } else { 0 },
            // Around what ports take at most, with a tag and without.
            least: if rng.gen_ratio(1, 25) { pick(rng, &[600usize, 1500]) + rng.gen_range(10..24) } else { 0 },
        };
        if rng.gen_ratio(1, 12) {
            spec.fragment(rng.gen_range(1..3));
        }
        spec
    }

    /// 0: whole, 1: first, 2: later.
    fn fragment(&mut self, class: u128) {
        match &mut self.net {
            Net::V4 { part, .. } => *part = [0x4000, 0x2000, 0x2057][class.min(2) as usize],
            Net::V6 { part, .. } => *part = [None, Some(1), Some(0x57 << 3 | 1)][class.min(2) as usize],
            _ => {}
        }
    }

    /// Changes the frame so that `m` matches it, as far as a frame can.
    pub fn fit(&mut self, m: &Match, rng: &mut impl Rng) {
        self.tags = m.tags.iter().map(|tag| (tag.tpid, (blend(tag.pcp, rng.gen::<u128>() & 7) as u16) << 13 | blend(tag.vid, rng.gen::<u128>() & 0xfff) as u16)).collect();
        if let Some(ethertype) = m.exact(Field::EthType) {
            if u128::from(self.ethertype) != ethertype {
                self.ethertype = ethertype as u16;
                self.net = match self.ethertype {
                    ethertype::ARP => Net::Arp { op: 1, sip: pick(rng, &IP4), tip: pick(rng, &IP4) },
                    ethertype::IPV4 => Net::V4 { src: pick(rng, &IP4), dst: pick(rng, &IP4), part: 0, options: 0 },
                    ethertype::IPV6 => Net::V6 { src: ip6(rng.gen()), dst: ip6(rng.gen()), hop: false, part: None },
                    _ => Net::Other,
                };
            }
        }
        for (field, value) in &m.fields {
            self.set(*field, *value);
        }
    }

    fn set(&mut self, field: Field, m: Masked) {
        fn put<T: Copy + Into<u128> + TryFrom<u128>>(to: &mut T, m: Masked) {
            if let Ok(v) = T::try_from(blend(m, (*to).into())) {
                *to = v;
            }
        }
        match (field, &mut self.net) {
            (Field::EthSrc, _) => put(&mut self.smac, m),
            (Field::EthDst, _) => put(&mut self.dmac, m),
            (Field::Ip4Src, Net::V4 { src, .. }) | (Field::ArpSip, Net::Arp { sip: src, .. }) => put(src, m),
            (Field::Ip4Dst, Net::V4 { dst, .. }) | (Field::ArpTip, Net::Arp { tip: dst, .. }) => put(dst, m),
            (Field::Ip6Src, Net::V6 { src, .. }) => put(src, m),
            (Field::Ip6Dst, Net::V6 { dst, .. }) => put(dst, m),
            // 44 is the fragment header, which the fragment class brings.
            (Field::Ip6Proto, _) if m.value == 44 => {}
            (Field::Ip4Proto | Field::Ip6Proto, _) => put(&mut self.proto, m),
            (Field::ArpOp, Net::Arp { op, .. }) => put(op, m),
            (Field::Ip4Tos | Field::Ip6Tclass, _) => put(&mut self.tos, m),
            (Field::Ip4Ttl | Field::Ip6Hlimit, _) => put(&mut self.ttl, m),
            (Field::Ip4Frag | Field::Ip6Frag, _) => self.fragment(m.value),
            (Field::TcpSrc | Field::UdpSrc | Field::IcmpType | Field::Icmp6Type, _) => put(&mut self.upper.0, m),
            (Field::TcpDst | Field::UdpDst | Field::IcmpCode | Field::Icmp6Code, _) => put(&mut self.upper.1, m),
            (Field::TcpFlags, _) => put(&mut self.tcp_flags, m),
            _ => {}
        }
    }

    /// One property becomes another, so that the frame nearly matches.
    pub fn spoil(&mut self, rng: &mut impl Rng) {
        match rng.gen_range(0..9) {
            0 => self.dmac = pick(rng, &MACS),
            1 => self.smac = pick(rng, &MACS) & !(1 << 40),
            2 => self.tags = (0..rng.gen_range(0..4)).map(|n| (if n == 0 && rng.gen_ratio(1, 4) { 0x88a8 } else { ethertype::VLAN }, rng.gen())).collect(),
            3 => self.tos = rng.gen(),
            4 => self.ttl = rng.gen_range(0..4),
            5 => self.upper = (pick(rng, &PORTS), pick(rng, &PORTS)),
            6 => self.fragment(rng.gen_range(0..3)),
            7 => self.proto = pick(rng, &PROTOCOLS),
            _ => self.tcp_flags = rng.gen_range(0..0x1000),
        }
    }

    /// The bytes. Checksums of IPv4 are right, those of the layers above are not looked at by anybody here and are zero.
    pub fn bytes(&self) -> Vec<u8> {
        let mut b = [&self.dmac.to_be_bytes()[2..], &self.smac.to_be_bytes()[2..]].concat();
        for (tpid, tci) in &self.tags {
            b.extend(tpid.to_be_bytes());
            b.extend(tci.to_be_bytes());
        }
        b.extend(self.ethertype.to_be_bytes());
        match &self.net {
            Net::Other => b.extend(self.upper()),
            Net::Arp { op, sip, tip } => {
                b.extend([0, 1, 8, 0, 6, 4]);
                b.extend(op.to_be_bytes());
                b.extend(&self.smac.to_be_bytes()[2..]);
                b.extend(sip.to_be_bytes());
                b.extend([0; 6]);
                b.extend(tip.to_be_bytes());
            }
            Net::V4 { src, dst, part, options } => {
                let upper = if part & 0x1fff == 0 { self.upper() } else { vec![0x5a; self.payload] };
                let total = 20 + 4 * options + upper.len();
                let mut h = vec![0x45 + *options as u8, self.tos];
                h.extend((total as u16).to_be_bytes());
                h.extend([0x12, 0x34]);
                h.extend(part.to_be_bytes());
                h.extend([self.ttl, self.proto, 0, 0]);
                h.extend(src.to_be_bytes());
                h.extend(dst.to_be_bytes());
                h.resize(20 + 4 * options, 1);
                let check = finish(sum(0, &h));
                h[10..12].copy_from_slice(&check.to_be_bytes());
                b.extend(h);
                b.extend(upper);
            }
            Net::V6 { src, dst, hop, part } => {
                let later = part.is_some_and(|p| p & 0xfff8 != 0);
                let upper = if later { vec![0x5a; self.payload] } else { self.upper() };
                let extensions = 8 * (usize::from(*hop) + usize::from(part.is_some()));
                b.extend((6 << 28 | u32::from(self.tos) << 20 | 0x12345).to_be_bytes());
                b.extend(((extensions + upper.len()) as u16).to_be_bytes());
                let fragment = if part.is_some() { 44 } else { self.proto };
                b.extend([if *hop { 0 } else { fragment }, self.ttl]);
                b.extend(src.to_be_bytes());
                b.extend(dst.to_be_bytes());
                if *hop {
                    b.extend([fragment, 0, 5, 2, 0, 0, 1, 0]);
                }
                if let Some(part) = part {
                    b.extend([self.proto, 0]);
                    b.extend(part.to_be_bytes());
                    b.extend([0, 0, 0, 7]);
                }
                b.extend(upper);
            }
        }
        b.resize((b.len() + self.padding).max(self.least), 0);
        b
    }

    fn upper(&self) -> Vec<u8> {
        let ip = matches!(self.net, Net::V4 { .. } | Net::V6 { .. });
        let (a, b) = (self.upper.0.to_be_bytes(), self.upper.1.to_be_bytes());
        let mut out = match self.proto {
            6 if ip => [&a[..], &b, &[0, 0, 0, 1, 0, 0, 0, 2], &(0x5000 | self.tcp_flags).to_be_bytes(), &[0x20, 0, 0, 0, 0, 0]].concat(),
            17 if ip => [&a[..], &b, &((8 + self.payload) as u16).to_be_bytes(), &[0, 0]].concat(),
            1 | 58 if ip => vec![a[1], b[1], 0, 0, 0, 1, 0, 2],
            _ => Vec::new(),
        };
        out.extend((0..self.payload).map(|i| i as u8));
        out
    }
}

/// One of a few.
pub fn pick<T: Copy + Default>(rng: &mut impl Rng, of: &[T]) -> T {
    of.choose(rng).copied().unwrap_or_default()
}

/// `m.value` where its bits count, else `free`.
fn blend(m: Masked, free: u128) -> u128 {
    m.value | free & !m.mask
}

/// Damages a frame: a bit, or its end.
pub fn damage(frame: &mut Vec<u8>, rng: &mut impl Rng) {
    if rng.gen() {
        let bit = rng.gen_range(96..frame.len() * 8);
        frame[bit / 8] ^= 1 << (bit % 8);
    } else {
        let length = rng.gen_range(14..=frame.len());
        frame.truncate(length);
    }
}
