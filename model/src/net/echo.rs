//! Golden model: what becomes of a received frame, in software.
use super::networks::{Network, Through};
use super::parse::receive as parse;
use super::sums::{finish, pseudo, sum};
use ferric_abi::context::{AddressCtx, NeighbourCtx};
use ferric_abi::csr::ADDRESSES;
use ferric_abi::meta::frame_kind;
use ferric_abi::wire::{ethertype, protocol, Arp, Eth, IcmpEcho, Ipv4, Ipv6, NeighbourMessage};

/// Answers that a function gives at once, after it gave none for long.
pub const BURST: u64 = 64;
/// Ticks in which it may give one more.
pub const TICKS_PER_TOKEN: u64 = 16;

const BROADCAST: u64 = 0xffff_ffff_ffff;
/// Shortest frame that is sent, without FCS.
const SHORTEST: usize = 60;
/// Bytes that are looked at from the IP header or ARP packet on, before checksums.
const WINDOW: usize = 64;
/// All nodes of the link (RFC 4291, 2.7.1).
pub const ALL_NODES: u128 = 0xff02 << 112 | 1;

/// What became of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Not for us.
    PassedOn,
    Limited,
    Malformed,
    /// `STATS` name, frame, and the function that answers.
    Answered(&'static str, Vec<u8>, usize),
    /// The answer to a search.
    Found,
}

/// A card's table and its rate limit.
pub struct Station {
    pub addresses: Vec<AddressCtx>,
    pub neighbours: Vec<NeighbourCtx>,
    /// When each bucket is full again: two of a function, of neighbours and of pings.
    full_at: Vec<u32>,
}

/// Who is meant.
struct Key {
    ip: u128,
    ipv6: bool,
    mac: u64,
    /// The frame goes to a group that the address is a member of.
    group: bool,
    vid: Option<u16>,
    network: Network,
}

fn part<const N: usize>(from: &[u8], at: usize) -> [u8; N] {
    from[at..at + N].try_into().expect("inside")
}

/// The address of one station.
fn single(mac: u64) -> bool {
    mac != 0 && mac >> 40 & 1 == 0
}

/// Sum of an ICMPv6 message with its pseudo-header (RFC 8200, 8.1).
fn sum6(ip: &Ipv6, message: &[u8]) -> u32 {
    sum(pseudo(&ip.0[8..24], &ip.0[24..40], protocol::ICMPV6, message.len() as u32), message)
}

/// The solicited-node group of an address (RFC 4291, 2.7.1) and its MAC address (RFC 2464).
pub fn solicited_node(ip: u128) -> (u128, u64) {
    (0xff02 << 112 | 0x1_ff00_0000 | ip & 0xff_ffff, 0x3333_ff00_0000 | ip as u64 & 0xff_ffff)
}

/// Options of a neighbour discovery message: whether there is a source link-layer address, and the target's. `None`: they are malformed.
fn options(mut rest: &[u8]) -> Option<(bool, Option<u64>)> {
    let (mut source, mut target) = (false, None);
    while !rest.is_empty() {
        let len = usize::from(*rest.get(1)?) * 8;
        if len == 0 || len > rest.len() {
            return None;
        }
        source |= rest[0] == 1;
        if rest[0] == 2 && len == 8 {
            target = Some(rest[2..8].iter().fold(0, |mac, b| mac << 8 | u64::from(*b)));
        }
        rest = &rest[len..];
    }
    Some((source, target))
}

/// Ethernet header, perhaps a tag, and what follows; filled up.
fn frame(to: u64, from: u64, vid: Option<u16>, kind: u16, rest: &[&[u8]]) -> Vec<u8> {
    let eth = Eth::default().with_dst(to).with_src(from).with_ethertype(kind);
    let mut bytes = eth.0[..12].to_vec();
    if let Some(vid) = vid {
        bytes.extend(ethertype::VLAN.to_be_bytes());
        bytes.extend(vid.to_be_bytes());
    }
    bytes.extend(&eth.0[12..]);
    bytes.extend(rest.concat());
    bytes.resize(bytes.len().max(SHORTEST), 0);
    bytes
}

/// A message of neighbour discovery about `target`, with a link-layer address.
fn neighbour_message(from: &AddressCtx, to: u128, to_mac: u64, vid: Option<u16>, message: NeighbourMessage) -> Vec<u8> {
    let ip = Ipv6::default().with_version(6).with_payload_length(32).with_next_header(protocol::ICMPV6).with_hop_limit(255).with_src(from.ip()).with_dst(to);
    let message = message.with_option_len(1).with_mac(from.mac());
    let message = message.with_checksum(finish(sum6(&ip, &message.0)));
    frame(to_mac, from.mac(), vid, ethertype::IPV6, &[&ip.0, &message.0])
}

impl Station {
    /// Nothing is known yet.
    pub fn new(functions: usize) -> Station {
        Station { addresses: vec![AddressCtx([0; 24]); functions * ADDRESSES as usize], neighbours: vec![NeighbourCtx([0; 24]); functions], full_at: vec![0; 2 * functions] }
    }

    fn is(a: &AddressCtx, key: &Key) -> bool {
        let vid = a.vlan().then_some(a.vid());
        a.valid() && a.ip() == key.ip && a.ipv6() == key.ipv6 && vid == key.vid && (key.group || a.mac() == key.mac)
    }

    /// The function that has the address asked for.
    fn find(&self, key: &Key) -> Option<(usize, AddressCtx)> {
        let line = self.addresses.iter().enumerate().position(|(line, a)| Self::is(a, key) && key.network.has((line / ADDRESSES as usize) as u16))?;
        Some((line / ADDRESSES as usize, self.addresses[line]))
    }

    /// The function that seeks `peer` and is meant by an answer.
    fn seeker(&self, key: &Key, peer: u128) -> Option<usize> {
        let asks = |(f, n): (usize, &NeighbourCtx)| key.network.has(f as u16) && n.state() == 1 && n.ip() == peer && Self::is(&self.addresses[f * ADDRESSES as usize + usize::from(n.source())], key);
        (0..self.neighbours.len()).find(|f| asks((*f, &self.neighbours[*f])))
    }

    fn learn(&mut self, key: &Key, peer: u128, mac: u64) -> Outcome {
        let Some(f) = self.seeker(key, peer) else { return Outcome::PassedOn };
        self.neighbours[f] = self.neighbours[f].with_mac(mac).with_state(2);
        Outcome::Found
    }

    /// Takes a token: `BURST` at once, one more in each `TICKS_PER_TOKEN`.
    fn allowed(&mut self, bucket: usize, now: u32) -> bool {
        let (burst, step) = (BURST as u32 * TICKS_PER_TOKEN as u32, TICKS_PER_TOKEN as u32);
        let ahead = self.full_at[bucket].wrapping_sub(now);
        let begin = if ahead <= burst { self.full_at[bucket] } else { now };
        if ahead <= burst && ahead > burst - step {
            return false;
        }
        self.full_at[bucket] = begin.wrapping_add(step);
        true
    }

    /// What function `f` sends when it is told to ask.
    pub fn ask(&self, f: usize) -> Option<Vec<u8>> {
        let seek = self.neighbours[f];
        let from = self.addresses[f * ADDRESSES as usize + usize::from(seek.source())];
        let vid = from.vlan().then_some(from.vid());
        if seek.state() != 1 || !from.valid() {
            return None;
        }
        if from.ipv6() {
            let (group, mac) = solicited_node(seek.ip());
            return Some(neighbour_message(&from, group, mac, vid, NeighbourMessage::default().with_kind(135).with_target(seek.ip()).with_option(1)));
        }
        let arp = Arp::default().with_htype(1).with_ptype(0x0800).with_hlen(6).with_plen(4).with_oper(1);
        let arp = arp.with_sha(from.mac()).with_spa(from.ip() as u32).with_tpa(seek.ip() as u32);
        Some(frame(BROADCAST, from.mac(), vid, ethertype::ARP, &[&arp.0]))
    }

    /// A frame that `net/rx` accepted, from `network` at tick `now`. `None`: it is of no kind that is looked at, or one that software is shown.
    pub fn receive(&mut self, bytes: &[u8], now: u32, network: Network) -> Option<Outcome> {
        if let Through::Shown(_) = network.through {
            return None;
        }
        let parsed = parse(bytes, false).ok()?;
        let l3 = if parsed.has_vlan { 18 } else { 14 };
        let mut window = [0; WINDOW];
        let seen = bytes.len().saturating_sub(l3).min(WINDOW);
        window[..seen].copy_from_slice(&bytes[bytes.len().min(l3)..bytes.len().min(l3) + seen]);
        let eth = Eth(part(bytes, 0));
        let key = Key { ip: 0, ipv6: false, mac: eth.dst(), group: false, vid: parsed.has_vlan.then_some(parsed.vlan_tci & 0xfff), network };
        match parsed.kind {
            frame_kind::ARP => Some(self.arp(eth, Arp(part(&window, 0)), bytes.len() >= l3 + Arp::BYTES, key, now)),
            frame_kind::ICMP => Some(self.icmp(eth, bytes, l3, &window, key, now)),
            frame_kind::ICMPV6 => Some(self.icmpv6(eth, bytes, l3, &window, key, now)),
            _ => None,
        }
    }

    fn arp(&mut self, eth: Eth, arp: Arp, whole: bool, key: Key, now: u32) -> Outcome {
        let form = (arp.htype(), arp.ptype(), arp.hlen(), arp.plen()) == (1, 0x0800, 6, 4);
        let good = whole && form && arp.sha() == eth.src() && single(eth.src());
        let key = Key { ip: arp.tpa().into(), ..key };
        match arp.oper() {
            1 => {
                let key = Key { group: eth.dst() == BROADCAST, ..key };
                let Some((function, address)) = self.find(&key) else { return Outcome::PassedOn };
                if !self.allowed(2 * function, now) {
                    return Outcome::Limited;
                }
                if !good {
                    return Outcome::Malformed;
                }
                let answer = arp.with_oper(2).with_sha(address.mac()).with_spa(arp.tpa()).with_tha(arp.sha()).with_tpa(arp.spa());
                Outcome::Answered("echo_arp", frame(eth.src(), address.mac(), key.vid, ethertype::ARP, &[&answer.0]), function)
            }
            2 if good => self.learn(&key, arp.spa().into(), arp.sha()),
            _ => Outcome::PassedOn,
        }
    }

    fn icmp(&mut self, eth: Eth, bytes: &[u8], l3: usize, window: &[u8; WINDOW], key: Key, now: u32) -> Outcome {
        let (ip, icmp) = (Ipv4(part(window, 0)), IcmpEcho(part(window, 20)));
        let key = Key { ip: ip.dst().into(), ..key };
        if icmp.kind() != 8 {
            return Outcome::PassedOn;
        }
        let Some((function, address)) = self.find(&key) else { return Outcome::PassedOn };
        if !self.allowed(2 * function + 1, now) {
            return Outcome::Limited;
        }
        let length = usize::from(ip.total_length());
        // Nobody is 0.0.0.0, a group, or of class E.
        let sender = ip.src() != 0 && ip.src() >> 29 != 7 && single(eth.src());
        if !sender || icmp.code() != 0 || length < 28 || l3 + length > bytes.len() {
            return Outcome::Malformed;
        }
        let message = &bytes[l3 + 20..l3 + length];
        if sum(0, &ip.0) != 0xffff || sum(0, message) != 0xffff {
            return Outcome::Malformed;
        }
        let answer = Ipv4::default().with_version(4).with_ihl(5).with_dscp(ip.dscp()).with_total_length(ip.total_length()).with_flags(2).with_ttl(64).with_protocol(protocol::ICMP);
        let answer = answer.with_src(ip.dst()).with_dst(ip.src());
        let answer = answer.with_checksum(finish(sum(0, &answer.0)));
        // Type 8 becomes 0 (RFC 1624).
        let checksum = u32::from(icmp.checksum()) + 0x0800;
        let echo = icmp.with_kind(0).with_checksum((checksum + (checksum >> 16)) as u16);
        Outcome::Answered("echo_ping", frame(eth.src(), address.mac(), key.vid, ethertype::IPV4, &[&answer.0, &echo.0, &message[8..]]), function)
    }

    fn icmpv6(&mut self, eth: Eth, bytes: &[u8], l3: usize, window: &[u8; WINDOW], key: Key, now: u32) -> Outcome {
        let (ip, icmp) = (Ipv6(part(window, 0)), IcmpEcho(part(window, 40)));
        let target = u128::from_be_bytes(part(window, 48));
        let (group, group_mac) = solicited_node(target);
        let length = usize::from(ip.payload_length());
        let whole = l3 + 40 + length <= bytes.len();
        let message = &bytes[(l3 + 40).min(bytes.len())..(l3 + 40 + length).min(bytes.len())];
        let (nobody, many) = (ip.src() == 0, ip.src() >> 120 == 0xff);
        let sound = whole && icmp.code() == 0 && single(eth.src()) && !many;
        let right = sum6(&ip, message) == 0xffff;
        let discovery = sound && ip.hop_limit() == 255 && length >= 24 && length % 8 == 0;
        let about = if discovery { options(&message[24..]) } else { None };
        match icmp.kind() {
            128 => {
                let key = Key { ip: ip.dst(), ipv6: true, ..key };
                let Some((function, address)) = self.find(&key) else { return Outcome::PassedOn };
                if !self.allowed(2 * function + 1, now) {
                    return Outcome::Limited;
                }
                if !sound || nobody || length < 8 || !right {
                    return Outcome::Malformed;
                }
                let answer = Ipv6::default().with_version(6).with_dscp(ip.dscp()).with_payload_length(ip.payload_length()).with_next_header(protocol::ICMPV6).with_hop_limit(64);
                let answer = answer.with_src(ip.dst()).with_dst(ip.src());
                // Type 128 becomes 129.
                let checksum = u32::from(icmp.checksum()) + u32::from(!0x0100u16);
                let echo = icmp.with_kind(129).with_checksum((checksum + (checksum >> 16)) as u16);
                Outcome::Answered("echo_ping6", frame(eth.src(), address.mac(), key.vid, ethertype::IPV6, &[&answer.0, &echo.0, &message[8..]]), function)
            }
            135 => {
                let key = Key { ip: target, ipv6: true, group: eth.dst() == group_mac, ..key };
                let Some((function, address)) = self.find(&key) else { return Outcome::PassedOn };
                if !self.allowed(2 * function, now) {
                    return Outcome::Limited;
                }
                let to = ip.dst() == group || (ip.dst() == target && !nobody);
                match about {
                    Some((source, _)) if to && right && !(source && nobody) => {
                        let (to, to_mac, flags) = if nobody { (ALL_NODES, 0x3333_0000_0001, 0x20) } else { (ip.src(), eth.src(), 0x60) };
                        let answer = NeighbourMessage::default().with_kind(136).with_flags(flags).with_target(target).with_option(2);
                        Outcome::Answered("echo_nd", neighbour_message(&address, to, to_mac, key.vid, answer), function)
                    }
                    _ => Outcome::Malformed,
                }
            }
            136 => match about {
                Some((_, Some(mac))) if right && single(mac) => self.learn(&Key { ip: ip.dst(), ipv6: true, ..key }, target, mac),
                _ => Outcome::PassedOn,
            },
            _ => Outcome::PassedOn,
        }
    }
}
