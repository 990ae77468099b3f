//! Flow tables made at random, in the flow language: what the datapath of Open vSwitch takes as it is.
use crate::frames::{ip6, pick, IP4, MACS, PORTS, PROTOCOLS};
use crate::oracle::{FUNCTIONS, GENEVE, LOCAL_IP, LOCAL_MAC, PEERS, UNDERLAY, UPLINK, VXLAN};
use ferric_abi::wire::ethertype;
use ferric_model::switch::flow::{Field, Flow, Header, Masked, Match, Outer, Step, Tag, TunnelKind};
use rand::Rng;
use std::collections::BTreeMap;

fn mask(rng: &mut impl Rng, masks: &[u128]) -> u128 {
    pick(rng, masks)
}

/// What a flow of the table matches.
pub fn matches(rng: &mut impl Rng) -> Match {
    let port = if rng.gen_ratio(1, 4) { pick(rng, &[UNDERLAY, UPLINK]) } else { pick(rng, &FUNCTIONS) };
    let ethertype = pick(rng, &[ethertype::IPV4, ethertype::IPV4, ethertype::IPV4, ethertype::IPV6, ethertype::IPV6, ethertype::ARP, 0x88b5]);
    let mut m = Match::default().with(Field::InPort, port.into()).with(Field::EthType, ethertype.into());
    let macs = [0, 0, u128::from(u64::MAX >> 16), 0xffff_ff00_0000];
    m = m.with_masked(Field::EthDst, pick(rng, &MACS).into(), mask(rng, &macs));
    m = m.with_masked(Field::EthSrc, (pick(rng, &MACS) & !(1 << 40)).into(), mask(rng, &macs));
    let tags = if rng.gen_ratio(1, 3) { rng.gen_range(1..3) } else { 0 };
    for n in 0..tags {
        let inner = n == 1;
        let tpid = if !inner && rng.gen_ratio(1, 5) { ethertype::SERVICE_VLAN } else { ethertype::VLAN };
        let vid = if inner { 0 } else { mask(rng, &[0, 0xfff, 0xfff, 0xff0]) };
        let pcp = if inner { 0 } else { mask(rng, &[0, 0, 7]) };
        m.tags.push(Tag { tpid, vid: Masked::new(rng.gen_range(0..4), vid), pcp: Masked::new(rng.gen_range(0..8), pcp) });
    }
    if tags == 2 {
        // Open vSwitch reads one tag unless told otherwise, and says nothing of what is behind the second one.
        m.fields.remove(&Field::EthType);
        return m;
    }
    match ethertype {
        ethertype::IPV4 => ipv4(rng, m),
        ethertype::IPV6 => ipv6(rng, m),
        ethertype::ARP => {
            m = m.with_masked(Field::ArpOp, rng.gen_range(1..3), mask(rng, &[0, 0xff]));
            m = m.with_masked(Field::ArpSip, pick(rng, &IP4).into(), mask(rng, &[0, 0xffff_ffff]));
            m.with_masked(Field::ArpTip, pick(rng, &IP4).into(), mask(rng, &[0, 0xffff_ffff, 0xffff_ff00]))
        }
        _ => m,
    }
}

fn ipv4(rng: &mut impl Rng, mut m: Match) -> Match {
    let prefixes = [0, 0, 0xffff_ffff, 0xffff_ff00, 0xffff_0000];
    m = m.with_masked(Field::Ip4Src, pick(rng, &IP4).into(), mask(rng, &prefixes));
    m = m.with_masked(Field::Ip4Dst, pick(rng, &IP4).into(), mask(rng, &prefixes));
    m = m.with_masked(Field::Ip4Tos, rng.gen::<u8>().into(), mask(rng, &[0, 0, 3, 0xfc, 0xff]));
    let fragment = fragment(rng);
    m = m.with(Field::Ip4Frag, fragment);
    if rng.gen_ratio(1, 6) {
        m = m.with(Field::Ip4Ttl, rng.gen_range(0..2));
    }
    if rng.gen_bool(0.6) {
        m = m.with(Field::Ip4Proto, pick(rng, &PROTOCOLS).into());
    }
    upper(rng, m, Field::Ip4Proto, fragment)
}

fn ipv6(rng: &mut impl Rng, mut m: Match) -> Match {
    let prefixes = [0, 0, u128::MAX, u128::MAX << 64, u128::MAX << 80];
    m = m.with_masked(Field::Ip6Src, ip6(rng.gen()), mask(rng, &prefixes));
    m = m.with_masked(Field::Ip6Dst, ip6(rng.gen()), mask(rng, &prefixes));
    m = m.with_masked(Field::Ip6Tclass, rng.gen::<u8>().into(), mask(rng, &[0, 0, 3, 0xfc, 0xff]));
    let fragment = fragment(rng);
    m = m.with(Field::Ip6Frag, fragment);
    if rng.gen_ratio(1, 6) {
        m = m.with(Field::Ip6Hlimit, rng.gen_range(0..2));
    }
    if rng.gen_bool(0.6) {
        // A later fragment's protocol is that of the fragment header.
        m = m.with(Field::Ip6Proto, if fragment == 2 { 44 } else { pick(rng, &PROTOCOLS).into() });
    }
    upper(rng, m, Field::Ip6Proto, fragment)
}

fn fragment(rng: &mut impl Rng) -> u128 {
    if rng.gen_ratio(1, 6) {
        rng.gen_range(1..3)
    } else {
        0
    }
}

fn upper(rng: &mut impl Rng, mut m: Match, proto: Field, fragment: u128) -> Match {
    let (src, dst) = match (m.exact(proto), proto) {
        (Some(6), _) => (Field::TcpSrc, Field::TcpDst),
        (Some(17), _) => (Field::UdpSrc, Field::UdpDst),
        (Some(1), Field::Ip4Proto) => (Field::IcmpType, Field::IcmpCode),
        (Some(58), Field::Ip6Proto) => (Field::Icmp6Type, Field::Icmp6Code),
        _ => return m,
    };
    if fragment == 2 {
        return m;
    }
    let masks: &[u128] = if src.full() == 0xff { &[0, 0xff] } else { &[0, 0, 0xffff, 0xfff0, 0xff00] };
    let value = |rng: &mut _| u128::from(pick(rng, &PORTS)) & src.full();
    m = m.with_masked(src, value(rng), mask(rng, masks));
    m = m.with_masked(dst, value(rng), mask(rng, masks));
    if src == Field::TcpSrc && rng.gen_ratio(1, 4) {
        m = m.with_masked(Field::TcpFlags, rng.gen_range(0..0x100), mask(rng, &[0x02, 0x17, 0xff]));
    }
    m
}

/// Whether no frame matches both, as far as one field shows it. It is written apart from the model's tables, which it tests.
pub fn disjoint(a: &Match, b: &Match) -> bool {
    let fields = a.fields.iter().any(|(field, m)| b.fields.get(field).is_some_and(|n| (m.value ^ n.value) & m.mask & n.mask != 0));
    let tags = a.tags.len() != b.tags.len()
        || a.tags.iter().zip(&b.tags).any(|(t, u)| t.tpid != u.tpid || (t.vid.value ^ u.vid.value) & t.vid.mask & u.vid.mask != 0 || (t.pcp.value ^ u.pcp.value) & t.pcp.mask & u.pcp.mask != 0);
    fields || tags
}

/// The outer header to one of the peers.
pub fn header(rng: &mut impl Rng, ecn: u8) -> (u32, Header) {
    let (ip, dmac) = PEERS[rng.gen_range(0..PEERS.len())];
    let vni = rng.gen_range(0..0x100_0000);
    let vxlan = rng.gen();
    let options = (0..rng.gen_range(0..3)).map(|n| (rng.gen(), n, (0..4 * rng.gen_range(0..4)).map(|_| rng.gen()).collect())).collect();
    let kind = if vxlan { TunnelKind::Vxlan { flags: 0x0800_0000, vni } } else { TunnelKind::Geneve { oam: false, critical: false, vni, options } };
    let (v6, tos) = (rng.gen_ratio(1, 3), rng.gen_range(0..64) << 2 | ecn);
    let outer = if v6 {
        Outer { v6, src: 0xfd00 << 112 | 1, dst: 0xfd00 << 112 | u128::from(ip[3]), tos, ttl: 64, extra: rng.gen_range(0..0x10_0000) }
    } else {
        Outer { v6, src: u32::from_be_bytes(LOCAL_IP).into(), dst: u32::from_be_bytes(ip).into(), tos, ttl: 64, extra: if rng.gen() { 0x4000 } else { 0 } }
    };
    let (port, to) = if vxlan { (VXLAN, 4789) } else { (GENEVE, 6081) };
    (port, Header { dmac, smac: LOCAL_MAC, outer, udp: (0, to, 0), kind })
}

/// The action that hands a frame to software.
pub fn to_software() -> Step {
    Step::Userspace("pid=0".into())
}

/// What is done with the frames of a flow.
pub fn steps(rng: &mut impl Rng, m: &Match) -> Vec<Step> {
    match rng.gen_range(0..20) {
        0 | 1 => return Vec::new(),
        2 => return vec![to_software()],
        _ => {}
    }
    let mut steps = Vec::new();
    let tagged = !m.tags.is_empty();
    let from = m.exact(Field::InPort);
    let mut others: Vec<u8> = FUNCTIONS.into_iter().chain([UPLINK, UNDERLAY]).filter(|p| from != Some((*p).into())).collect();
    if rng.gen_ratio(1, 4) {
        let probability = u32::MAX >> rng.gen_range(1..3u32);
        steps.push(Step::Sample { probability, steps: vec![to_software()] });
    }
    if rng.gen_ratio(1, 6) {
        // A mirror's copy: the frame as it came, whole or its beginning.
        if rng.gen() {
            steps.push(Step::Trunc(rng.gen_range(14..100)));
        }
        steps.push(Step::Output(others.swap_remove(rng.gen_range(0..others.len())).into()));
    }
    match rng.gen_range(0..6) {
        0 => steps.push(Step::PushVlan { tpid: ethertype::VLAN, tci: rng.gen_range(0..8) << 13 | rng.gen_range(0..0x1000) }),
        1 if tagged => steps.push(Step::PopVlan),
        2 if tagged => steps.extend([Step::PopVlan, Step::PushVlan { tpid: ethertype::VLAN, tci: rng.gen_range(0..8) << 13 | rng.gen_range(0..0x1000) }]),
        _ => {}
    }
    if rng.gen_ratio(1, 4) {
        let mut eth = BTreeMap::new();
        eth.insert(Field::EthSrc, Masked::new(pick(rng, &MACS).into(), Field::EthSrc.full()));
        eth.insert(Field::EthDst, Masked::new(pick(rng, &MACS).into(), Field::EthDst.full()));
        steps.push(Step::Set(eth));
    }
    let tos = match m.exact(Field::EthType).map(|t| t as u16) {
        Some(ethertype::IPV4) => Some(Field::Ip4Tos),
        Some(ethertype::IPV6) => Some(Field::Ip6Tclass),
        _ => None,
    };
    if let Some(field) = tos.filter(|_| rng.gen_ratio(1, 4)) {
        steps.push(Step::Set([(field, Masked::new(u128::from(rng.gen::<u8>()), 0xfc))].into()));
    }
    for _ in 0..if rng.gen_ratio(1, 3) { rng.gen_range(2..5) } else { 1 } {
        let port = others.swap_remove(rng.gen_range(0..others.len()));
        steps.push(Step::Output(port.into()));
    }
    let ecn = match tos {
        Some(field) => m.fields.get(&field).filter(|v| v.mask & 3 == 3).map(|v| v.value as u8 & 3),
        None => (m.exact(Field::EthType) == Some(ethertype::ARP.into())).then_some(0),
    };
    if let Some(ecn) = ecn.filter(|_| rng.gen_bool(0.7)) {
        let (port, header) = header(rng, ecn);
        let push = vec![Step::TnlPush { port, header, out: UNDERLAY.into() }, Step::Output(UNDERLAY.into())];
        if rng.gen() {
            steps.push(Step::Clone(push));
        } else {
            steps.extend(push);
        }
    }
    steps
}

/// A table of flows of which no two match the same frame: the datapath knows no order.
pub fn table(rng: &mut impl Rng) -> Vec<Flow> {
    let mut flows: Vec<Flow> = Vec::new();
    for _ in 0..rng.gen_range(1..40) {
        let m = matches(rng);
        if flows.iter().all(|f| disjoint(&f.matches, &m)) {
            let steps = steps(rng, &m);
            flows.push(Flow { matches: m, steps });
        }
    }
    flows
}
