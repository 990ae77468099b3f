//! Frames inside tunnels, most of them right, some with one property changed as in SWITCH.md section 3.
use crate::oracle::{LOCAL_IP, LOCAL_MAC, PEERS};
use ferric_model::net::sums::{finish, pseudo, sum};
use rand::Rng;

/// VNIs that the tables know.
pub const VNIS: [u32; 4] = [100, 101, 102, 0xab_cdef];

/// An address that is no peer's.
pub const STRANGER: [u8; 4] = [10, 0, 0, 9];

/// The IPv6 address beside one of IPv4.
pub fn address6(ip: [u8; 4]) -> u128 {
    0xfd10 << 112 | u128::from(ip[3])
}

/// An outer header and how it differs from a right one.
#[derive(Clone, Debug)]
pub struct Tunnel {
    pub geneve: bool,
    /// Over IPv6, between addresses with the last byte of those of IPv4.
    pub v6: bool,
    pub src: [u8; 4],
    pub vni: u32,
    pub tos: u8,
    pub ttl: u8,
    /// Flags and fragment offset.
    pub part: u16,
    /// UDP checksum: none, right, wrong.
    pub csum: Csum,
    /// IPv4 checksum wrong.
    pub bad_header: bool,
    /// VXLAN: first four bytes and the last; Geneve: first two bytes.
    pub flags: [u8; 4],
    pub last: u8,
    /// Geneve options as on the wire.
    pub options: Vec<u8>,
    /// Words of IPv4 options.
    pub words: usize,
    /// The UDP length is off by so much. Not at random: Open vSwitch does not look at it, the model drops such a frame.
    pub udp_off: u16,
    /// Bytes behind the datagram. None at random: Open vSwitch leaves them behind the inner frame, the model takes them away, as Linux does.
    pub padding: usize,
}

/// What the UDP checksum is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Csum {
    None,
    Right,
    Wrong,
}

impl Tunnel {
    /// A right one from the first peer.
    pub fn right(geneve: bool, vni: u32) -> Self {
        let flags = if geneve { [0, 0, 0, 0] } else { [8, 0, 0, 0] };
        Self { geneve, v6: false, src: PEERS[0].0, vni, tos: 0, ttl: 64, part: 0x4000, csum: Csum::None, bad_header: false, flags, last: 0, options: Vec::new(), words: 0, udp_off: 0, padding: 0 }
    }

    /// One at random.
    pub fn random(rng: &mut impl Rng) -> Self {
        let mut t = Self::right(rng.gen(), VNIS[rng.gen_range(0..VNIS.len())]);
        t.src = PEERS[rng.gen_range(0..PEERS.len())].0;
        t.tos = if rng.gen_bool(0.7) { 0 } else { rng.gen() };
        t.v6 = rng.gen_ratio(1, 4);
        t.csum = if rng.gen() { Csum::None } else { Csum::Right };
        match rng.gen_range(0..30) {
            0 | 15 => t.csum = Csum::Wrong,
            1 if !t.geneve => t.flags[0] = 0,
            1 | 2 if t.geneve => t.flags[0] = 0x40,
            2 => t.flags[rng.gen_range(0..4)] |= 1 << rng.gen_range(0..8),
            3 if !t.geneve => t.last = rng.gen(),
            3..=5 if t.geneve => t.options = vec![1, 2, 0x80 | rng.gen::<u8>(), 1, 1, 2, 3, 4],
            4 => t.vni = rng.gen_range(0..0x100_0000),
            6 | 17 => t.src = STRANGER,
            7 | 16 => (t.v6, t.part) = (false, 0x2000),
            8 | 18 => (t.v6, t.bad_header) = (false, true),
            9 => t.ttl = 1,
            10 => (t.v6, t.words) = (false, 1),
            11 if t.geneve => t.options = vec![1, 2, 3, 1, 1, 2, 3, 4],
            12 | 13 => t.tos |= 3,
            14 => t.vni = rng.gen_range(0..0x100_0000),
            _ => {}
        }
        t
    }

    /// The outer frame around `inner`.
    pub fn around(&self, inner: &[u8]) -> Vec<u8> {
        let vni = self.vni.to_be_bytes();
        let mut udp = [&0xd431u16.to_be_bytes()[..], &(if self.geneve { 6081u16 } else { 4789 }).to_be_bytes(), &[0; 4]].concat();
        if self.geneve {
            let critical = u8::from(self.options.get(2).is_some_and(|kind| kind & 0x80 != 0)) << 6;
            udp.extend([self.flags[0] | (self.options.len() / 4) as u8, self.flags[1] | critical, 0x65, 0x58, vni[1], vni[2], vni[3], 0]);
            udp.extend(&self.options);
        } else {
            udp.extend(self.flags);
            udp.extend([vni[1], vni[2], vni[3], self.last]);
        }
        udp.extend(inner);
        let length = udp.len() as u16;
        udp[4..6].copy_from_slice(&(length + self.udp_off).to_be_bytes());
        if self.csum != Csum::None {
            let addresses = if self.v6 { pseudo(&address6(self.src).to_be_bytes(), &address6(LOCAL_IP).to_be_bytes(), 17, length.into()) } else { pseudo(&self.src, &LOCAL_IP, 17, length.into()) };
            let check = finish(sum(addresses, &udp));
            let check = if check == 0 { 0xffff } else { check };
            udp[6..8].copy_from_slice(&(if self.csum == Csum::Wrong { check ^ 0x0101 } else { check }).to_be_bytes());
        }
        let mut ip = vec![0x45 + self.words as u8, self.tos];
        ip.extend((20 + 4 * self.words as u16 + length).to_be_bytes());
        ip.extend([0, 7]);
        ip.extend(self.part.to_be_bytes());
        ip.extend([self.ttl, 17, 0, 0]);
        ip.extend(self.src);
        ip.extend(LOCAL_IP);
        ip.resize(20 + 4 * self.words, 1);
        let check = finish(sum(0, &ip)) ^ u16::from(self.bad_header);
        ip[10..12].copy_from_slice(&check.to_be_bytes());
        let peer = PEERS.iter().find(|(ip, _)| *ip == self.src).map_or(0x0200_0000_00ff, |(_, mac)| *mac);
        let mut frame = [&LOCAL_MAC.to_be_bytes()[2..], &peer.to_be_bytes()[2..]].concat();
        if self.v6 {
            frame.extend([0x86, 0xdd]);
            frame.extend((6 << 28 | u32::from(self.tos) << 20 | 0x54321).to_be_bytes());
            frame.extend(length.to_be_bytes());
            frame.extend([17, self.ttl]);
            frame.extend(address6(self.src).to_be_bytes());
            frame.extend(address6(LOCAL_IP).to_be_bytes());
        } else {
            frame.extend([8, 0]);
            frame.extend(ip);
        }
        frame.extend(udp);
        frame.resize(frame.len() + self.padding, 0);
        frame
    }
}
