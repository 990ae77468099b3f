//! What functions send against the golden model's verification, while the driver's placement writes their addresses.
use super::{model, Message, Verify, LATENCY, LINE};
use crate::switch::key::tests::any_frame;
use crate::switch::key::Facts as FactsStruct;
use crate::switch::testing::{mac, set_lines, tunnel, words};
use crate::tb::{Fields, Rng, Tb};
use ferric_abi::codes::SwitchCause;
use ferric_abi::context::{SenderCtx, TunnelCtx};
use ferric_abi::csr::STATIONS;
use ferric_abi::switch::bind::{key as bound, KEY_BITS, RESULT_BITS};
use ferric_abi::wire::{protocol, ROCE_PORT, VXLAN_PORT};
use ferric_driver::switch::place::{Entry, Table, Write};
use ferric_model::switch::decide::Facts;
use ferric_model::switch::key::{key, Origin};
use ferric_model::switch::layers::{parse, Fragment, Layers, Upper};
use ferric_model::switch::tables::{Endpoint, EndpointKind, Port, RocePolicy, Tables};
use std::collections::{BTreeMap, HashSet, VecDeque};

/// Functions, and log2 of the lines of a way.
const NF: usize = 2;
const LG: usize = 4;
/// Cycles after its key in which a lookup reads its lines; a write in that cycle comes too late for it.
const LINES: usize = 2;
const FIRST_PORT: u8 = 8;

/// Addresses that functions have, and a stranger's.
pub(in crate::switch) fn any_mac(rng: &mut Rng) -> u64 {
    0x0200_0000_0100 | rng.below(6)
}

pub(in crate::switch) fn any_ip(rng: &mut Rng, v6: bool) -> u128 {
    let low = match rng.below(10) {
        0 => return 0,
        n => u128::from(n % 5),
    };
    // The same number is an address of either version.
    if rng.percent(20) {
        low
    } else {
        low | if v6 { 0xfd00 << 112 } else { 0x0a00_0000 }
    }
}

/// What is asked: a port, its line, a frame with its layers.
#[derive(Clone)]
struct Asked {
    number: u8,
    port: Port,
    frame: Vec<u8>,
    layers: Option<Layers>,
}

impl Asked {
    /// The address that the table is asked for.
    fn address(&self) -> (u8, bool, u128) {
        match self.layers.map(|layers| layers.upper) {
            Some(Upper::Ip(ip)) => (self.number, ip.v6, ip.src),
            Some(Upper::Arp(arp)) => (self.number, false, arp.sender.into()),
            _ => (self.number, false, 0),
        }
    }

    /// What the block hears of neighbour discovery.
    fn message(&self, rng: &mut Rng) -> Vec<(&'static str, u128)> {
        let l3 = match &self.layers {
            Some(layers) if layers.ip().is_some_and(|ip| ip.v6) => layers.l3,
            _ => return vec![("plain", rng.below(2).into()), ("target", rng.next_u64().into()), ("names", rng.below(2).into()), ("hardware", any_mac(rng).into())],
        };
        let byte = |n: usize| self.frame.get(l3 + n).copied().unwrap_or(0);
        let number = |at: usize, len: usize| (at..at + len).fold(0, |v, n| v << 8 | u128::from(byte(n)));
        let one = number(4, 2) == 32 && byte(65) == 1;
        let plain = byte(6) == protocol::ICMPV6 && (number(4, 2) == 24 || one);
        vec![("plain", plain.into()), ("target", number(48, 16)), ("names", (one && matches!(byte(64), 1 | 2)).into()), ("hardware", number(66, 6))]
    }
}

/// Neighbour discovery: what it should be but for one thing, or nearly.
fn any_discovery(rng: &mut Rng) -> Vec<u8> {
    let mut frame = [mac(any_mac(rng)), mac(any_mac(rng))].concat();
    if rng.percent(20) {
        frame.extend([0x81, 0, 0, 5]);
    }
    let src = any_ip(rng, true);
    let hop = rng.percent(15);
    let target = match rng.below(10) {
        // Behind an extension header the target's end stands where an option would be.
        _ if hop => src & !(0xffff << 48) | 0x0e01 << 48,
        0..7 => src,
        _ => any_ip(rng, true),
    };
    let mut message = vec![[135, 136][rng.below(2) as usize], 0, 0, 0, 0, 0, 0, 0];
    message.extend(target.to_be_bytes());
    for _ in 0..[0, 1, 1, 1, 2][rng.below(5) as usize] {
        let units = if rng.percent(90) { 1 } else { rng.below(4) as u8 };
        message.extend([[1, 2, 14][rng.below(3) as usize], units]);
        message.extend(mac(if rng.percent(70) { frame[6..12].iter().fold(0, |v, b| v << 8 | u64::from(*b)) } else { any_mac(rng) }));
        message.resize(message.len() + 8 * usize::from(units.max(1) - 1), 0);
    }
    if hop {
        message.splice(0..0, [protocol::ICMPV6, 0, 1, 4, 0, 0, 0, 0]);
    }
    if rng.percent(5) {
        message.truncate(rng.range(8, message.len() as u64) as usize);
    }
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    frame.extend((message.len() as u16).to_be_bytes());
    frame.extend([if hop { 0 } else { protocol::ICMPV6 }, 255]);
    frame.extend(src.to_be_bytes());
    frame.extend((0xff02u128 << 112 | 1).to_be_bytes());
    frame.extend(message);
    frame.resize(frame.len() + rng.below(20) as usize, 0);
    frame
}

/// A frame as tenants send them: most are what they should be in all things but one.
pub(in crate::switch) fn any_sent(rng: &mut Rng) -> Vec<u8> {
    if rng.percent(20) {
        return any_discovery(rng);
    }
    let mut frame = any_frame(rng);
    let Ok(layers) = parse(&frame) else { return frame };
    let put = |frame: &mut Vec<u8>, at: usize, bytes: &[u8]| frame[at..at + bytes.len()].copy_from_slice(bytes);
    let smac = any_mac(rng);
    put(&mut frame, 6, &smac.to_be_bytes()[2..]);
    match layers.upper {
        Upper::Arp(_) => {
            let hardware = if rng.percent(80) { smac } else { any_mac(rng) };
            put(&mut frame, layers.l3 + 8, &hardware.to_be_bytes()[2..]);
            put(&mut frame, layers.l3 + 14, &(any_ip(rng, false) as u32).to_be_bytes());
        }
        Upper::Ip(ip) => {
            let ends = rng.percent(15).then(|| tunnel(rng.percent(70) == ip.v6).local());
            let (src, dst) = (any_ip(rng, ip.v6), ends);
            if ip.v6 {
                put(&mut frame, layers.l3 + 8, &src.to_be_bytes());
                dst.into_iter().for_each(|dst| put(&mut frame, layers.l3 + 24, &dst.to_be_bytes()));
            } else {
                put(&mut frame, layers.l3 + 12, &(src as u32).to_be_bytes());
                dst.into_iter().for_each(|dst| put(&mut frame, layers.l3 + 16, &(dst as u32).to_be_bytes()));
            }
            if ip.fragment != Fragment::Later && ip.l4 + 4 <= ip.end {
                match ip.proto {
                    protocol::UDP => {
                        let from = [67u16, 547, 68, 0xc000][rng.below(4) as usize];
                        let to = [VXLAN_PORT, ROCE_PORT, ROCE_PORT, 67, 53][rng.below(5) as usize];
                        put(&mut frame, ip.l4, &from.to_be_bytes());
                        put(&mut frame, ip.l4 + 2, &to.to_be_bytes());
                    }
                    protocol::ICMPV6 => frame[ip.l4] = rng.range(132, 137) as u8,
                    _ => {}
                }
            }
        }
        Upper::Other => {}
    }
    frame
}

/// A port with one to four addresses.
pub(in crate::switch) fn any_port(rng: &mut Rng) -> Port {
    let count = rng.range(1, STATIONS as u64) as usize;
    Port {
        macs: (0..count).map(|_| any_mac(rng)).collect(),
        trunk: rng.percent(60),
        any_ip: rng.percent(20),
        underlay: rng.percent(40),
        server: rng.percent(40),
        roce: if rng.percent(50) { RocePolicy::Off } else { RocePolicy::Flow },
        verify: rng.percent(90),
        ..Default::default()
    }
}

/// Where tunnels end.
pub(in crate::switch) fn endpoints(tunnels: &[TunnelCtx]) -> Vec<Endpoint> {
    let endpoint = |ctx: &TunnelCtx| Endpoint {
        v6: ctx.ipv6(),
        ip: ctx.local(),
        udp_port: VXLAN_PORT,
        kind: EndpointKind::Vxlan,
        lenient: false,
        zero_csum6: false,
        any_remote: false,
        unknown_to_software: false,
        option: None,
    };
    tunnels.iter().filter(|ctx| ctx.valid()).map(endpoint).collect()
}

/// The line of a port; a MAC address that does not count is `spare`.
pub(in crate::switch) fn sender_of(port: &Port, spare: u64) -> SenderCtx {
    let own = |n: usize| port.macs.get(n).copied().unwrap_or(spare);
    let sender = SenderCtx::default().with_mac0(own(0)).with_mac1(own(1)).with_mac2(own(2)).with_mac3(own(3)).with_have((1 << port.macs.len()) - 1).with_on(port.verify);
    sender.with_trunk(port.trunk).with_any_ip(port.any_ip).with_underlay(port.underlay).with_server(port.server).with_roce(port.roce != RocePolicy::Off)
}

struct Bench {
    tb: Tb,
    placement: Table<KEY_BITS, 64>,
    tables: Tables,
    /// Addresses as the card has them.
    card: HashSet<(u8, bool, u128)>,
    /// Lines to be written, and with the last one of a change what the card knows behind it.
    writes: VecDeque<(Write, Option<((u8, bool, u128), bool)>)>,
    /// What was asked in the last cycles, the newest first, and whether the card knew its address.
    asked: VecDeque<Option<(Asked, bool)>>,
    seen: BTreeMap<u8, usize>,
    /// Neighbour discovery that nothing stands against, and that the model alone would let through.
    discovery: [usize; 2],
}

impl Bench {
    fn new(tunnels: &[TunnelCtx; NF]) -> Self {
        let mut tb = Tb::new("verify", Verify::<NF, LG>::default());
        set_lines(&mut tb, tunnels);
        let endpoints = endpoints(tunnels);
        Bench {
            tb,
            placement: Table::new(LG as u32),
            tables: Tables { endpoints, ..Default::default() },
            card: HashSet::new(),
            writes: VecDeque::new(),
            asked: vec![None; LATENCY as usize].into(),
            seen: BTreeMap::new(),
            discovery: [0; 2],
        }
    }

    fn any_asked(&mut self) -> Asked {
        let rng = self.tb.rng();
        let (number, port, frame) = (FIRST_PORT + rng.below(NF as u64) as u8, any_port(rng), any_sent(rng));
        let layers = parse(&frame).ok();
        Asked { number, port, frame, layers }
    }

    fn set(&mut self, asked: &Asked) {
        let noise = self.tb.rng().next_u64();
        let origin = Origin { port: asked.number, domain: noise as u16 & 0xfff, remote: 0, geneve_option: false };
        // The key of a frame that the parser does not understand means nothing.
        let (key, facts, hardware) = match &asked.layers {
            Some(layers) => (key(layers, origin), Facts::of(layers), if let Upper::Arp(arp) = layers.upper { arp.hardware } else { noise & 0xffff_ffff_ffff }),
            None => (Default::default(), Facts { deep: true, class: noise as u8 & 3, roce: noise & 4 != 0, ends: false }, asked.port.macs[0]),
        };
        self.tb.set_wide("key", &words(&key.0)[..]);
        let fields = [("deep", facts.deep.into()), ("class", facts.class.into()), ("roce", facts.roce.into()), ("ends", facts.ends.into()), ("hardware", hardware.into())];
        self.tb.set_wide("facts", &Fields::of::<FactsStruct>().pack(&fields)[..]);
        let message = asked.message(self.tb.rng());
        self.tb.set_wide("message", &Fields::of::<Message>().pack(&message)[..]);
        let spare = any_mac(self.tb.rng());
        let sender = sender_of(&asked.port, spare);
        self.tb.set_wide("sender", &words(&sender.0)[..]);
    }

    fn cycle(&mut self, asks: bool) {
        let asked = self.any_asked();
        self.set(&asked);
        self.tb.set("valid", asks.into());
        self.asked.push_front(asks.then_some((asked, false)));
        if let Some((asked, knows)) = &mut self.asked[LINES] {
            *knows = self.card.contains(&asked.address());
        }
        let write = if self.tb.rng().percent(70) { self.writes.pop_front() } else { None };
        self.tb.set("write", write.is_some().into());
        if let Some((Write { place, entry, .. }, done)) = write {
            self.tb.set("write_way", place.way.into());
            self.tb.set("write_line", place.line.into());
            let line = entry.map_or_else(|| vec![0; LINE.div_ceil(8)], |entry| entry.line(KEY_BITS, RESULT_BITS));
            self.tb.set_wide("write_data", &words(&line)[..]);
            match done {
                Some((address, true)) => _ = self.card.insert(address),
                Some((address, false)) => _ = self.card.remove(&address),
                None => {}
            }
        }
        self.tb.cycle();
        let due = self.asked.remove(LATENCY as usize - 1).expect("a cycle");
        assert_eq!(self.tb.get("judged"), u64::from(due.is_some()));
        if let Some((asked, knows)) = due {
            self.compare(&asked, knows);
        }
    }

    fn compare(&mut self, asked: &Asked, knows: bool) {
        self.tables.bind.clear();
        if knows {
            self.tables.bind.insert(asked.address());
        }
        let verify = |by: fn(&Tables, u8, &Port, &[u8], &Layers) -> Result<(), SwitchCause>| {
            asked.layers.as_ref().map_or(Err(SwitchCause::Deep), |layers| by(&self.tables, asked.number, &asked.port, &asked.frame, layers))
        };
        let want = verify(model::verify_on_card);
        let cause = want.err().unwrap_or(SwitchCause::None);
        let got = (self.tb.get("cause"), self.tb.get("on") == 1);
        assert_eq!(got, (cause as u64, asked.port.verify), "{cause:?} {} {:?} {:?} {knows}", asked.number, asked.port, asked.layers);
        *self.seen.entry(cause as u8).or_default() += 1;
        let discovers = asked.layers.is_some_and(|layers| layers.ip().is_some_and(|ip| ip.proto == protocol::ICMPV6) && matches!(layers.ports.0, 135 | 136));
        self.discovery[0] += usize::from(discovers && want.is_ok());
        self.discovery[1] += usize::from(discovers && want.is_err() && verify(model::verify).is_ok());
    }

    /// An address comes or goes.
    fn change(&mut self) {
        let rng = self.tb.rng();
        let (number, v6) = (FIRST_PORT + rng.below(NF as u64) as u8, rng.percent(50));
        let ip = any_ip(rng, v6);
        let key = bound(number, v6, ip);
        if rng.percent(40) {
            let write = self.placement.remove(&key, 0);
            self.writes.extend(write.map(|write| (write, Some(((number, v6, ip), false)))));
        } else if let Ok(writes) = self.placement.insert(Entry { key: key.into(), generation: 0, result: 0 }) {
            let last = writes.len() - 1;
            self.writes.extend(writes.into_iter().enumerate().map(|(n, write)| (write, (n == last).then_some(((number, v6, ip), true)))));
        }
    }

    fn run(&mut self, cycles: usize) {
        for _ in 0..cycles {
            if self.writes.is_empty() && self.tb.rng().percent(20) {
                self.change();
            }
            let asks = self.tb.rng().percent(85);
            self.cycle(asks);
        }
    }
}

#[test]
fn what_functions_send_is_judged_as_by_the_model() {
    let mut b = Bench::new(&[tunnel(false), tunnel(true)]);
    b.run(60_000);
    use SwitchCause::*;
    for cause in [None, Deep, SpoofMac, SpoofIp, SpoofArp, TagDenied, RoceDenied, UnderlayDenied] {
        assert!(b.seen.get(&(cause as u8)).is_some_and(|n| *n > 50), "{cause:?}: {:?}", b.seen);
    }
    assert!(b.discovery.iter().all(|n| *n > 50), "{:?}", b.discovery);
}

/// Without tunnels there is no underlay that anybody could reach.
#[test]
fn without_tunnels_there_is_no_underlay() {
    let mut b = Bench::new(&[tunnel(false).with_valid(false), tunnel(true).with_valid(false)]);
    b.run(8_000);
    assert_eq!(b.seen.get(&(SwitchCause::UnderlayDenied as u8)), None);
    assert!(b.seen[&(SwitchCause::None as u8)] > 100 && b.seen[&(SwitchCause::SpoofMac as u8)] > 100);
}
