//! Tables that Open vSwitch gets as OpenFlow rules: it translates each frame itself, so that tunnels with their ECN, priorities, groups, time to live, its forwarding table and
//! routes are its own.
use crate::diff::{compare, Arrival, Difference};
use crate::frames::{ip6, pick, Net, Spec, IP4, MACS};
use crate::openflow;
use crate::oracle::{Oracle, FUNCTIONS, GENEVE, UNDERLAY, UPLINK};
use crate::rules::{tunnel_switch, Rule};
use crate::server::Error;
use crate::tally::Tally;
use crate::tunnels::{Tunnel, STRANGER, VNIS};
use ferric_abi::switch::{destination, Action};
use ferric_abi::wire::ethertype;
use ferric_model::switch::flow::{mac_text, Field};
use ferric_model::switch::layers::parse;
use ferric_model::switch::tables::{Member, Route, Station};
use ferric_model::switch::Switch;
use rand::seq::SliceRandom;
use rand::Rng;

/// A route: IPv6, prefix, bits, port, new MAC addresses.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    pub v6: bool,
    pub prefix: u128,
    pub bits: u8,
    pub port: u8,
    pub dst: u64,
    pub src: u64,
}

/// A table of one of three kinds.
#[derive(Clone, Debug)]
pub enum Bridge {
    /// Rules, the first that matches counts, and a port that is down.
    Rules(Vec<Rule>, Option<u8>),
    /// Stations of the forwarding table; others are flooded.
    Stations(Vec<(u8, u64)>),
    /// Routes, the longest prefix counts.
    Routes(Vec<Hop>),
}

impl Bridge {
    /// A table.
    pub fn random(rng: &mut impl Rng) -> Self {
        match rng.gen_range(0..6) {
            0 => {
                let ports: Vec<u8> = FUNCTIONS.into_iter().chain([UPLINK]).collect();
                Self::Stations(MACS[..rng.gen_range(1..5)].iter().map(|mac| (pick(rng, &ports), *mac)).collect())
            }
            1 => {
                let mut hops: Vec<Hop> = Vec::new();
                for _ in 0..rng.gen_range(1..16) {
                    let v6 = rng.gen_ratio(1, 3);
                    let bits = if v6 { pick(rng, &[0, 48, 56, 64, 128]) } else { pick(rng, &[0, 16, 20, 24, 28, 32]) };
                    let (width, address) = if v6 { (128, ip6(rng.gen())) } else { (32, pick(rng, &IP4).into()) };
                    let prefix = if bits == 0 { 0 } else { address >> (width - u32::from(bits)) << (width - u32::from(bits)) };
                    if !hops.iter().any(|h| (h.v6, h.prefix, h.bits) == (v6, prefix, bits)) {
                        hops.push(Hop { v6, prefix, bits, port: pick(rng, &FUNCTIONS), dst: pick(rng, &MACS[..4]), src: pick(rng, &MACS[..4]) });
                    }
                }
                Self::Routes(hops)
            }
            _ => {
                let mut switch = tunnel_switch();
                let mut rules: Vec<Rule> = (0..rng.gen_range(1..30)).map(|_| Rule::random(rng)).collect();
                rules.retain(|rule| rule.install(&mut switch));
                Self::Rules(rules, rng.gen_ratio(1, 4).then(|| pick(rng, &FUNCTIONS)))
            }
        }
    }

    /// Frames for it.
    pub fn frames(&self, count: usize, rng: &mut impl Rng) -> Vec<Arrival> {
        (0..count).map(|_| self.frame(rng)).collect()
    }

    fn frame(&self, rng: &mut impl Rng) -> Arrival {
        let mut spec = Spec::random(rng);
        let mut port = pick(rng, &FUNCTIONS);
        match self {
            Self::Stations(stations) => {
                // A source that is not in the table would be learnt.
                let (_, smac) = stations.choose(rng).copied().unwrap_or_default();
                (spec.smac, spec.padding) = (smac, 0);
                if rng.gen_ratio(1, 6) {
                    port = UPLINK;
                }
                (port, spec.bytes())
            }
            Self::Routes(_) => {
                if let Net::V4 { options, .. } = &mut spec.net {
                    *options = 0;
                }
                (port, spec.bytes())
            }
            Self::Rules(rules, _) => {
                let tunnels: Vec<&Rule> = rules.iter().filter(|rule| rule.matches.tunnel).collect();
                let rule = tunnels.choose(rng).copied().filter(|_| rng.gen()).or_else(|| rules.choose(rng)).filter(|_| rng.gen_ratio(9, 10));
                let mut tunnel = None;
                if let Some(rule) = rule {
                    spec.fit(&rule.matches, rng);
                    if rule.matches.tunnel {
                        let mut t = Tunnel::random(rng);
                        if t.geneve == (rule.matches.exact(Field::InPort) == Some(GENEVE.into())) {
                            if VNIS.contains(&t.vni) {
                                t.vni = rule.matches.exact(Field::TunId).map_or(t.vni, |v| v as u32);
                            }
                            let v6 = rule.matches.exact(Field::TunSrc6);
                            // Faults of IPv4's header are none of IPv6's.
                            if t.part == 0x4000 && !t.bad_header && t.words == 0 {
                                t.v6 = v6.is_some();
                            }
                            if t.src != STRANGER {
                                let v4 = rule.matches.exact(Field::TunSrc).map(|v| (v as u32).to_be_bytes());
                                t.src = v4.or(v6.map(|v| [10, 0, 0, v as u8])).unwrap_or(t.src);
                            }
                        }
                        tunnel = Some(t);
                    } else {
                        port = rule.matches.exact(Field::InPort).map_or(port, |p| p as u8);
                    }
                }
                if rng.gen_ratio(1, 5) {
                    spec.spoil(rng);
                }
                // OpenFlow does not tell the types of tags apart.
                spec.tags.truncate(1);
                spec.tags.iter_mut().for_each(|tag| tag.0 = ethertype::VLAN);
                if tunnel.is_some() {
                    spec.least = 0;
                }
                let mut frame = spec.bytes();
                let Some(mut tunnel) = tunnel else {
                    return (port, frame);
                };
                if rng.gen_ratio(1, 8) {
                    frame.truncate(rng.gen_range(0..14));
                }
                // Open vSwitch leaves ECT(0) inside as it is under ECT(1); RFC 6040 says ECT(1), as Linux does.
                let inner = parse(&frame).ok().and_then(|l| l.ip().map(|ip| ip.tos & 3));
                if (tunnel.tos & 3, inner) == (1, Some(2)) {
                    tunnel.tos &= !3;
                }
                (UNDERLAY, tunnel.around(&frame))
            }
        }
    }

    /// The model with the table.
    pub fn model(&self) -> Switch {
        let mut switch = tunnel_switch();
        match self {
            Self::Rules(rules, down) => {
                for rule in rules {
                    rule.install(&mut switch);
                }
                for (number, port) in &mut switch.tables.ports {
                    port.up = Some(*number) != *down;
                }
            }
            Self::Stations(stations) => {
                for port in switch.tables.ports.values_mut() {
                    (port.bridge, port.domain) = (true, 1);
                }
                switch.tables.groups.push([UPLINK].into_iter().chain(FUNCTIONS).map(|port| Member { port, encap: 0 }).collect());
                for direction in [&mut switch.tables.inbound, &mut switch.tables.outbound] {
                    direction.floods.insert(1, 0);
                    for (port, mac) in stations {
                        direction.fdb.insert((1, *mac, 0), Station::Port(*port));
                    }
                }
            }
            Self::Routes(hops) => {
                for port in switch.tables.ports.values_mut() {
                    port.route = true;
                }
                switch.tables.rewrites.push((0, 0));
                for hop in hops {
                    switch.tables.rewrites.push((hop.dst, hop.src));
                    let rewrite = switch.tables.rewrites.len() as u16 - 1;
                    let direction = &mut switch.tables.outbound;
                    let action = Action::default().with_kind(destination::PORT).with_number(hop.port.into()).with_rewrite(rewrite).with_dec_ttl(true).with_count(true);
                    direction.lpm.push(Route { vrf: 0, v6: hop.v6, prefix: hop.prefix, bits: hop.bits, action: direction.actions.len() as u16, generation: 0 });
                    direction.actions.push(Some(action));
                }
            }
        }
        switch
    }

    /// Groups, rules and stations as Open vSwitch gets them.
    fn texts(&self) -> (Vec<String>, Vec<String>, Vec<(u8, u64)>) {
        let mut groups = Vec::new();
        let mut rules = Vec::new();
        let mut stations = Vec::new();
        match self {
            Self::Rules(list, _) => {
                for (n, rule) in list.iter().enumerate() {
                    let number = n + 1;
                    if rule.group {
                        let buckets: String = rule.ends.iter().map(|end| format!(",bucket={}", openflow::end(end))).collect();
                        groups.push(format!("group_id={number},type=all{buckets}"));
                    }
                    rules.push(rule.text(30_000 - n, number));
                }
            }
            Self::Stations(list) => {
                rules.push("priority=1,actions=NORMAL".into());
                stations = list.clone();
            }
            Self::Routes(hops) => {
                for hop in hops {
                    let (kind, field, address) =
                        if hop.v6 { ("ipv6", "ipv6_dst", std::net::Ipv6Addr::from(hop.prefix).to_string()) } else { ("ip", "nw_dst", std::net::Ipv4Addr::from(hop.prefix as u32).to_string()) };
                    let (dst, src) = (mac_text(hop.dst), mac_text(hop.src));
                    rules.push(format!("priority={},{kind},{field}={address}/{},actions=dec_ttl,set_field:{dst}->eth_dst,set_field:{src}->eth_src,output:{}", hop.bits + 1, hop.bits, hop.port));
                }
            }
        }
        (groups, rules, stations)
    }

    fn down(&self) -> Option<u8> {
        match self {
            Self::Rules(_, down) => *down,
            _ => None,
        }
    }

    /// Gives the table to Open vSwitch.
    pub fn ovs(&self, oracle: &mut Oracle) -> Result<(), Error> {
        let (groups, rules, stations) = self.texts();
        oracle.rules(&groups, &rules, &stations)?;
        oracle.down(self.down())
    }

    fn lines(&self) -> Vec<String> {
        let (groups, rules, stations) = self.texts();
        let down = self.down().map(|port| format!("port {port} is down"));
        groups.into_iter().chain(rules).chain(down).chain(stations.iter().map(|(port, mac)| format!("station {} at port {port}", mac_text(*mac)))).collect()
    }

    fn without(&self, n: usize) -> Option<Self> {
        let mut smaller = self.clone();
        let there = match &mut smaller {
            Self::Rules(list, _) => n < list.len() && (list.remove(n), true).1,
            Self::Stations(list) => n < list.len() && (list.remove(n), true).1,
            Self::Routes(list) => n < list.len() && (list.remove(n), true).1,
        };
        there.then_some(smaller)
    }

    /// Compares the frames; the first difference, with as few entries as show it.
    pub fn run(&self, oracle: &mut Oracle, frames: &[Arrival], tally: &mut Tally) -> Result<Option<Difference>, Error> {
        self.ovs(oracle)?;
        let mut switch = self.model();
        for arrival in frames {
            if compare(&mut switch, oracle, arrival, tally)?.is_some() {
                let mut table = self.clone();
                let mut again = |table: &Self| {
                    table.ovs(oracle)?;
                    compare(&mut table.model(), oracle, arrival, &mut Tally::default())
                };
                let Some(mut found) = again(&table)? else {
                    self.ovs(oracle)?;
                    continue;
                };
                let mut at = 0;
                while let Some(smaller) = table.without(at) {
                    match again(&smaller)? {
                        Some(difference) => (table, found) = (smaller, difference),
                        None => at += 1,
                    }
                }
                return Ok(Some(Difference { table: table.lines(), arrival: Some(arrival.clone()), model: found.0, ovs: found.1 }));
            }
        }
        Ok(None)
    }
}
