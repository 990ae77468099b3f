//! Rules with priorities: what a rule matches, changes and where it sends frames to, in the model and as OpenFlow.
use crate::diff::{empty_switch, TUNNELS};
use crate::frames::pick;
use crate::openflow::{self, End};
use crate::oracle::{FUNCTIONS, GENEVE, LOCAL_IP, LOCAL_MAC, PEERS, UNDERLAY, UPLINK, VXLAN};
use crate::tables;
use crate::tunnels::{address6, VNIS};
use ferric_abi::switch::destination;
use ferric_abi::wire::ethertype;
use ferric_model::switch::flow::{Field, Flow, Header, Match, Outer, Step, TunnelKind};
use ferric_model::switch::install::Room;
use ferric_model::switch::tables::{InnerTag, Member, MissAction};
use ferric_model::switch::{wrap, Switch};
use rand::Rng;

/// A rule: what it matches, what it changes, where frames go.
#[derive(Clone, Debug)]
pub struct Rule {
    pub matches: Match,
    pub changes: Vec<Step>,
    pub dec_ttl: bool,
    pub ends: Vec<End>,
    /// Through an OpenFlow group, else one output after the other.
    pub group: bool,
    pub software: bool,
}

/// Numbers of the peers as remote endpoints.
fn remote(peer: usize) -> u16 {
    peer as u16 + 1
}

/// The switch with peers and VNIs in its tables.
pub fn tunnel_switch() -> Switch {
    let mut switch = empty_switch();
    // VXLAN and Geneve, each over IPv4 and then over IPv6: a VNI of a kind is one bridge domain.
    for endpoint in 0..4u8 {
        for (n, vni) in VNIS.into_iter().enumerate() {
            switch.tables.vnis.insert((endpoint, vni), (1 + 4 * u16::from(endpoint % 2) + n as u16, InnerTag::Keep));
        }
    }
    for (n, (ip, _)) in PEERS.into_iter().enumerate() {
        switch.tables.remotes.insert((false, u32::from_be_bytes(ip).into()), remote(n));
        switch.tables.remotes.insert((true, address6(ip)), remote(n + PEERS.len()));
    }
    if let Some(port) = switch.tables.ports.get_mut(&UNDERLAY) {
        port.macs = vec![LOCAL_MAC];
    }
    for port in switch.tables.ports.values_mut() {
        port.miss = MissAction::Drop;
    }
    switch
}

/// The outer header that Open vSwitch makes: DF, TTL 64, no checksum.
fn header(geneve: bool, peer: usize, vni: u32) -> Header {
    let (ip, dmac) = PEERS[peer];
    let outer = Outer { v6: false, src: u32::from_be_bytes(LOCAL_IP).into(), dst: u32::from_be_bytes(ip).into(), tos: 0, ttl: 64, extra: 0x4000 };
    let kind = if geneve { TunnelKind::Geneve { oam: false, critical: false, vni, options: Vec::new() } } else { TunnelKind::Vxlan { flags: 0x0800_0000, vni } };
    Header { dmac, smac: LOCAL_MAC, outer, udp: (0, if geneve { 6081 } else { 4789 }, 0), kind }
}

fn member(switch: &mut Switch, end: &End) -> Member {
    match end {
        End::Port(port) => Member { port: *port, encap: 0 },
        End::Tunnel { geneve, peer, vni } => {
            let line = wrap::line(&header(*geneve, *peer, *vni).bytes(), UNDERLAY).unwrap_or_default();
            let encaps = &mut switch.tables.encaps;
            if encaps.is_empty() {
                encaps.push(Default::default());
            }
            encaps.push(line);
            Member { port: UNDERLAY, encap: encaps.len() as u16 - 1 }
        }
    }
}

impl Rule {
    /// One at random.
    pub fn random(rng: &mut impl Rng) -> Self {
        let mut m = loop {
            let m = tables::matches(rng);
            // Neither fields that OpenFlow says otherwise nor a second tag, nor the uplink of the other bridge.
            let odd = m.fields.iter().any(|(f, v)| matches!(f, Field::Ip4Tos | Field::Ip6Tclass) && ![3, 0xfc, 0xff].contains(&v.mask)) || m.tags.len() > 1 || m.tags.iter().any(|t| t.tpid != 0x8100);
            if !odd && m.exact(Field::InPort) != Some(UNDERLAY.into()) {
                break m;
            }
        };
        if rng.gen_bool(0.5) {
            let geneve = rng.gen();
            let peer = rng.gen_range(0..PEERS.len());
            m = m.with(Field::InPort, if geneve { GENEVE } else { VXLAN }.into());
            m = m.with(Field::TunId, pick(rng, &VNIS).into());
            m = if rng.gen_ratio(1, 4) { m.with(Field::TunSrc6, address6(PEERS[peer].0)) } else { m.with(Field::TunSrc, u32::from_be_bytes(PEERS[peer].0).into()) };
            m.tunnel = true;
            // Open vSwitch looks up the inner ECN as it came and changes it then; the model's key has what RFC 6040 makes of it.
            for field in [Field::Ip4Tos, Field::Ip6Tclass] {
                if let Some(v) = m.fields.get(&field).copied() {
                    m = m.with_masked(field, v.value, v.mask & 0xfc);
                }
            }
        }
        let steps = tables::steps(rng, &m);
        let software = steps == [tables::to_software()];
        let changes: Vec<Step> = steps.iter().filter(|s| matches!(s, Step::PushVlan { .. } | Step::PopVlan | Step::Set(_))).cloned().collect();
        let ip = matches!(m.exact(Field::EthType).map(|t| t as u16), Some(ethertype::IPV4 | ethertype::IPV6));
        let mut ends = Vec::new();
        if !software && !steps.is_empty() {
            let mut ports: Vec<u8> = FUNCTIONS.into_iter().chain([UPLINK]).collect();
            for _ in 0..pick(rng, &[1usize, 1, 1, 2, 3, 5]) {
                ends.push(End::Port(ports.swap_remove(rng.gen_range(0..ports.len()))));
            }
            if !m.tunnel && rng.gen_ratio(1, 3) {
                ends.push(End::Tunnel { geneve: rng.gen(), peer: rng.gen_range(0..PEERS.len()), vni: rng.gen_range(0..0x100_0000) });
                if rng.gen() {
                    ends.remove(0);
                }
            }
        }
        let mut group = ends.len() > 1 && rng.gen();
        if rng.gen_ratio(1, 9) && !software {
            (ends, group) = (Vec::new(), true);
        }
        let dec_ttl = ip && !ends.is_empty() && rng.gen_ratio(1, 4);
        Self { matches: m, changes, dec_ttl, ends, group, software }
    }

    /// Puts it behind the model's other rules; whether it could.
    pub fn install(&self, switch: &mut Switch) -> bool {
        // The destination here is any port but the one that frames come from; the right ones follow.
        let other = if self.matches.exact(Field::InPort) == Some(8) { 9 } else { 8 };
        let steps = if self.software { vec![tables::to_software()] } else { self.changes.iter().cloned().chain([Step::Output(other)]).collect() };
        let inbound = !matches!(self.matches.exact(Field::InPort), Some(8..=12));
        let Ok(line) = switch.install(&Flow { matches: self.matches.clone(), steps }, Room::Rule, &TUNNELS) else {
            return false;
        };
        let members: Vec<Member> = self.ends.iter().map(|end| member(switch, end)).collect();
        let group = switch.tables.groups.len() as u16;
        let direction = if inbound { &mut switch.tables.inbound } else { &mut switch.tables.outbound };
        let Some(action) = direction.actions[usize::from(line)].as_mut() else {
            return false;
        };
        action.set_dec_ttl(self.dec_ttl);
        match members[..] {
            _ if self.software => {}
            [] if !self.group => {
                action.set_kind(destination::DROP);
            }
            [Member { port, encap }] => {
                let kind = if port == UNDERLAY || port == UPLINK { destination::UPLINK } else { destination::PORT };
                action.set_kind(kind).set_number(port.into()).set_encap(encap);
            }
            _ => {
                action.set_kind(destination::GROUP).set_number(group);
                switch.tables.groups.push(members);
            }
        }
        true
    }

    /// It as OpenFlow, with the number of its group.
    pub fn text(&self, priority: usize, group: usize) -> String {
        let mut actions: Vec<String> = Vec::new();
        if self.dec_ttl {
            actions.push("dec_ttl".into());
        }
        actions.extend(self.changes.iter().map(openflow::change));
        if self.software {
            actions.push("controller".into());
        } else if self.group {
            actions.push(format!("group:{group}"));
        } else {
            actions.extend(self.ends.iter().map(openflow::end));
        }
        let actions = if !self.group && !self.software && self.ends.is_empty() { "drop".into() } else { actions.join(",") };
        format!("priority={priority},{},actions={actions}", openflow::matches(&self.matches))
    }
}
