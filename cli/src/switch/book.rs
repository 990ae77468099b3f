//! What the holder of a switch has been told: tunnels, stations and flows, in the words of the flow language, and what each flow is in the card's tables. Nothing here talks to a card.
use ferric_abi::csr::{FUNCTION_PORTS, WIRE_PORT};
use ferric_abi::switch::station::ALL_DOMAIN_BITS;
use ferric_abi::switch::{destination, Action, FlowKey, Verdict};
use ferric_abi::wire::ethertype;
use ferric_driver::types::Mac;
use ferric_driver::TunnelConfig;
use ferric_model::switch::decide::orders;
use ferric_model::switch::fate::{beyond, changes, Egress};
use ferric_model::switch::flow::parse::Ports;
use ferric_model::switch::flow::{Field, Flow};
use ferric_model::switch::install::{Compiled, NotOffloaded, TunnelPort};
use ferric_model::switch::key::masked;
use ferric_model::switch::tables::{Endpoint, EndpointKind, InnerTag, Port, PortKind, Station};
use ferric_model::switch::Switch;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Port of the text that is the wire, and the one that frames through any tunnel come from: VXLAN's UDP port.
pub const UPLINK: u32 = WIRE_PORT;
pub const VXLAN: u32 = 4789;
/// How [`Book::model`] calls the tunnel.
pub const TUNNELS: [TunnelPort; 1] = [TunnelPort { number: VXLAN, endpoint: 0 }];
/// Packet classes: see [`ferric_model::switch::tables::packet_class`].
pub const CLASSES: usize = 4;

/// Why a flow is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The tables cannot say it.
    #[error("{0}")]
    Tables(#[from] NotOffloaded),
    /// The card does not do what the actions say.
    #[error("the card does not do what the actions say: it neither copies frames nor adds or removes tags, and what leaves by the wire leaves unchanged")]
    Unable,
    /// No function has this tunnel.
    #[error("no function has a tunnel with this tun_id and these addresses: ferric switch tunnel set")]
    Tunnel,
    /// The card cannot tell who sent it.
    #[error("this tunnel takes packets from any address, so that none can be matched")]
    AnyRemote,
    /// The destination is not there.
    #[error("port {0} is no function of the card: those are {FUNCTION_PORTS} and up")]
    Port(u32),
    /// There is a flow with the same bits of the key.
    #[error("flow {0} has the same match")]
    Same(u64),
    /// Wildcard rules do not see all of it.
    #[error("the class of these packets has exact entries with another mask, and the card's wildcard rules do not see all bits of this one")]
    Rule,
}

/// A flow as the card's tables have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Bits of the key.
    pub key: FlowKey,
    /// Those of them that count.
    pub mask: FlowKey,
    /// What is done; the line of MAC addresses that it names is that of `macs`, which the card chooses.
    pub action: Action,
    /// MAC addresses, destination and source, that the frame gets.
    pub macs: Option<[[u8; 6]; 2]>,
    /// Packet class that it is about; `None`: more than one, and only a wildcard rule can say it.
    pub class: Option<u8>,
    /// It is about IPv6 packets.
    pub v6: bool,
}

/// A flow and what it is in the card.
#[derive(Clone, Debug)]
pub struct Entry {
    /// As it was said.
    pub flow: Flow,
    /// As the card has it.
    pub line: Line,
}

/// Everything that was said.
#[derive(Clone, Debug, Default)]
pub struct Book {
    /// Functions of the card.
    pub functions: u16,
    /// Tunnels, by function.
    pub tunnels: BTreeMap<u16, TunnelConfig>,
    /// Of functions that have joined another's network, that one.
    pub leaders: BTreeMap<u16, u16>,
    /// Flows, by the number that their ufid is.
    pub flows: BTreeMap<u64, Entry>,
    /// (bridge domain, MAC address) to the port of a function.
    pub stations: BTreeMap<(u16, [u8; 6]), u8>,
}

/// The bridge domain of what comes through a function's tunnel; through none it is 0.
pub fn domain(function: Option<u16>) -> u16 {
    function.map_or(0, |f| f + 1)
}

fn number(ip: IpAddr) -> (bool, u128) {
    match ip {
        IpAddr::V4(ip) => (false, u32::from(ip).into()),
        IpAddr::V6(ip) => (true, ip.into()),
    }
}

impl Book {
    /// Names that ports have in the text: `uplink`, `vxlan`, `f0` and so on.
    pub fn names(&self) -> Ports {
        let own = (0..self.functions).map(|f| (format!("f{f}"), FUNCTION_PORTS + u32::from(f)));
        own.chain([("uplink".into(), UPLINK), ("vxlan".into(), VXLAN)]).collect()
    }

    /// The tunnels of functions by which networks are called: all but those of functions that have joined another.
    pub fn networks(&self) -> impl Iterator<Item = (&u16, &TunnelConfig)> + Clone {
        self.tunnels.iter().filter(|(function, _)| !self.leaders.contains_key(function))
    }

    /// The function by which the network of one with a tunnel is called; `None`: it has no tunnel.
    pub fn network_of(&self, function: u16) -> Option<u16> {
        self.tunnels.contains_key(&function).then(|| self.leaders.get(&function).copied().unwrap_or(function))
    }

    /// The function whose tunnel a flow's frames come through; `None`: they come through none.
    fn tunnel_of(&self, flow: &Flow) -> Result<Option<u16>, Refusal> {
        let m = &flow.matches;
        if m.exact(Field::InPort) != Some(VXLAN.into()) {
            return Ok(None);
        }
        let says = |[v4, v6]: [Field; 2], ip: IpAddr| {
            let (own, other) = if ip.is_ipv6() { (v6, v4) } else { (v4, v6) };
            !m.fields.contains_key(&other) && (!m.fields.contains_key(&own) || m.exact(own) == Some(number(ip).1))
        };
        let fits = |t: &TunnelConfig| m.exact(Field::TunId) == Some(t.vni.into()) && says([Field::TunDst, Field::TunDst6], t.local);
        let (function, tunnel) = self.networks().find(|(_, t)| fits(t)).ok_or(Refusal::Tunnel)?;
        let src = [Field::TunSrc, Field::TunSrc6];
        match src.iter().any(|field| m.fields.contains_key(field)) {
            true if tunnel.any_remote => Err(Refusal::AnyRemote),
            true if !says(src, tunnel.remote) => Err(Refusal::Tunnel),
            _ => Ok(Some(*function)),
        }
    }

    /// The golden model with these ports and stations, one function's tunnel and no flows. The tunnel is endpoint 0, and the remote endpoint is its bridge domain, as in the card.
    pub fn model(&self, through: Option<u16>) -> Switch {
        let mut switch = Switch::default();
        let tables = &mut switch.tables;
        tables.ports.insert(UPLINK as u8, Port { kind: PortKind::Uplink, ..Default::default() });
        for function in 0..self.functions {
            tables.ports.insert((FUNCTION_PORTS + u32::from(function)) as u8, Port { function, ..Default::default() });
        }
        if let Some((t, domain)) = through.and_then(|function| Some((self.tunnels.get(&function)?, domain(through)))) {
            let (v6, ip) = number(t.local);
            let [lenient, zero_csum6, any_remote] = [t.lenient, t.zero_checksum_v6, t.any_remote];
            tables.endpoints.push(Endpoint { v6, ip, udp_port: VXLAN as u16, kind: EndpointKind::Vxlan, lenient, zero_csum6, any_remote, unknown_to_software: false, option: None });
            tables.vnis.insert((0, t.vni), (domain, InnerTag::Keep));
            tables.remotes.insert(number(t.remote), domain);
        }
        for ((domain, mac), port) in &self.stations {
            let key = (*domain, u64::from_be_bytes([0, 0, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]]), 0);
            for direction in [&mut tables.inbound, &mut tables.outbound] {
                direction.fdb.insert(key, Station::Port(*port));
            }
        }
        switch
    }

    /// What a flow is in the card's tables, whether or not there is room for it.
    pub fn compile(&self, flow: &Flow) -> Result<Line, Refusal> {
        let from = self.tunnel_of(flow)?;
        let tunnels: &[TunnelPort] = if from.is_some() { &TUNNELS } else { &[] };
        let mut model = self.model(from);
        let Compiled { inbound, mut key, mut mask, action, profile } = model.compile(flow, tunnels)?;
        if !inbound {
            // A function's frames of the network that it is in now: with another tunnel they would be the next network's.
            let function = u16::from(key.in_port()).wrapping_sub(FUNCTION_PORTS as u16);
            (key, mask) = (key.with_domain(domain(self.network_of(function))), mask.with_domain(ALL_DOMAIN_BITS));
        }
        let (number, ordered) = (u32::from(action.number()), orders(Verdict::default(), &action));
        match action.kind() {
            destination::PORT if !(FUNCTION_PORTS..FUNCTION_PORTS + u32::from(self.functions)).contains(&number) => return Err(Refusal::Port(number)),
            destination::PORT if !beyond(&ordered) => {}
            destination::DROP | destination::EXCEPTION if !changes(&ordered) => {}
            // What a function sends by the wire, if the tables are asked about that.
            destination::UPLINK if !inbound && Egress::of(&ordered) == Egress::Leaves => {}
            _ => return Err(Refusal::Unable),
        }
        let v6 = key.ethertype() == ethertype::IPV6;
        let bytes = |mac: u64| std::array::from_fn(|n| mac.to_be_bytes()[n + 2]);
        let macs = model.tables.rewrites.get(usize::from(action.rewrite())).filter(|_| action.rewrite() != 0).map(|(dst, src)| [bytes(*dst), bytes(*src)]);
        Ok(Line { key: masked(&key, &mask), mask, action: action.with_rewrite(0), macs, class: profile.map(|p| (p % CLASSES) as u8), v6 })
    }

    /// A new flow and its number, which is not taken yet.
    pub fn entry(&self, flow: Flow) -> Result<Entry, Refusal> {
        let line = self.compile(&flow)?;
        let same = self.flows.iter().find(|(_, e)| (e.line.key, e.line.mask, e.line.v6) == (line.key, line.mask, line.v6));
        match same {
            Some((id, _)) => Err(Refusal::Same(*id)),
            None => Ok(Entry { flow, line }),
        }
    }

    /// What stands in the way of another tunnel for a function: what speaks of the bridge domain that it has.
    pub fn speaks_of(&self, function: u16) -> Option<String> {
        let own = domain(Some(function));
        let flow = self.flows.iter().find(|(_, e)| e.line.mask.domain() != 0 && e.line.key.domain() == own);
        let station = self.stations.keys().find(|(domain, _)| *domain == own);
        flow.map(|(id, _)| format!("flow {}", ufid(*id))).or_else(|| station.map(|(_, mac)| format!("the station {}", Mac(*mac))))
    }
}

/// A flow's number as Open vSwitch writes it.
pub fn ufid(id: u64) -> String {
    format!("ufid:{:08x}-{:04x}-{:04x}-{:04x}-{id:012x}", 0, 0, 0, 0)
}

/// Reads what [`ufid`] writes, or a decimal number.
pub fn id(text: &str) -> Result<u64, String> {
    let hex = text.strip_prefix("ufid:").unwrap_or(text).strip_prefix("00000000-0000-0000-0000-");
    hex.map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok()).ok_or_else(|| format!("`{text}` is no ufid: ferric switch flow dump shows them"))
}
