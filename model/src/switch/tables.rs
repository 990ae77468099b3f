//! The tables (SWITCH.md section 7), as sets of lines: where a line stands, its way and its bank are the gateware's and the driver's business.
use super::key::masked;
use super::layers::{Layers, Upper};
use ferric_abi::switch::{Action, Encap, FlowKey};
use ferric_abi::wire::ethertype;
use std::collections::{HashMap, HashSet};

/// What a virtual port is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortKind {
    /// The wire: ports 1 and 2.
    Uplink,
    /// A function: 8 and the function's number.
    #[default]
    Function,
}

/// What becomes of a frame that no table knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissAction {
    /// Software gets it.
    #[default]
    Exception,
    /// It is dropped, cause `Miss`.
    Drop,
}

/// How a port treats RoCE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RocePolicy {
    /// It sends none. What comes for it is for the tables to decide.
    Off,
    /// Received packets to its MAC address are its without a flow.
    Direct,
    /// The tables decide, as for any other frame.
    #[default]
    Flow,
}

/// A line of the port table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// What the port is (section 8).
    pub kind: PortKind,
    /// Function, 12 bits.
    pub function: u16,
    /// MAC addresses that are the port's, four at most; the first is its own.
    pub macs: Vec<u64>,
    /// Bridge domain of what it sends (of an uplink: of what comes without a tunnel), 12 bits.
    pub domain: u16,
    /// Routing domain, 16 bits.
    pub vrf: u16,
    /// It may send tagged frames.
    pub trunk: bool,
    /// Frames come in and leave; else each is dropped, cause `PortDown`.
    pub up: bool,
    /// Bytes behind the Ethernet header and the first tag.
    pub mtu: u16,
    /// What becomes of a frame that no table knows.
    pub miss: MissAction,
    /// The FDB is asked when no flow is found.
    pub bridge: bool,
    /// The LPM table is asked behind the FDB.
    pub route: bool,
    /// Sources are verified.
    pub verify: bool,
    /// Any source IP address is allowed.
    pub any_ip: bool,
    /// How RoCE to and from the port is treated.
    pub roce: RocePolicy,
    /// It may send tunnel packets and frames to the endpoints' addresses.
    pub underlay: bool,
    /// It may answer DHCP and send router advertisements.
    pub server: bool,
    /// Class for the choice of a profile, 0 to 3.
    pub class: u8,
}

impl Default for Port {
    fn default() -> Self {
        Self {
            kind: PortKind::Function,
            function: 0,
            macs: Vec::new(),
            domain: 0,
            vrf: 0,
            trunk: false,
            up: true,
            mtu: 1500,
            miss: MissAction::Exception,
            bridge: false,
            route: false,
            verify: false,
            any_ip: false,
            roce: RocePolicy::Flow,
            underlay: false,
            server: false,
            class: 0,
        }
    }
}

/// Which tunnel an endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointKind {
    /// RFC 7348.
    Vxlan,
    /// RFC 8926.
    Geneve,
}

/// A local tunnel endpoint: packets to this address and UDP port are stripped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Over IPv6, else over IPv4.
    pub v6: bool,
    /// Local address; IPv4 in the lower 32 bits.
    pub ip: u128,
    /// UDP port of the tunnel's packets, 4789 or 6081 as a rule.
    pub udp_port: u16,
    /// Which tunnel ends here.
    pub kind: EndpointKind,
    /// VXLAN: reserved bits are ignored, as RFC 7348 has it. Else such a frame is dropped, as Open vSwitch and Linux do.
    pub lenient: bool,
    /// Over IPv6 a UDP checksum of zero is accepted (RFC 6935).
    pub zero_csum6: bool,
    /// Remote endpoints need not be known.
    pub any_remote: bool,
    /// A VNI that is not known goes to software, else it is dropped.
    pub unknown_to_software: bool,
    /// Geneve: class and type of the option that the key knows.
    pub option: Option<(u16, u8)>,
}

/// What a bridge domain does with a tag of a stripped frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InnerTag {
    /// It stays.
    #[default]
    Keep,
    /// It is taken away.
    Strip,
    /// The frame is dropped, cause `InnerTag`.
    Drop,
}

/// `remote` of a frame from an endpoint that is not in the table, where any may send.
pub const ANY_REMOTE: u16 = 0xfff;

/// Where the FDB leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Station {
    /// A local port or an uplink.
    Port(u8),
    /// Line of the encapsulation table.
    Remote(u16),
    /// A group; every member gets a copy.
    Group(u16),
}

/// A copy that a group makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Local port or uplink.
    pub port: u8,
    /// Line of the encapsulation table; 0: none.
    pub encap: u16,
}

/// A mirror session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Where the copy goes.
    pub to: Member,
    /// Bytes of the frame that are copied at most, without the outer header; 0: all.
    pub truncate: u16,
}

/// A rule with a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Bits that a frame's key has to have, where the mask has ones.
    pub key: FlowKey,
    /// Bits that count.
    pub mask: FlowKey,
    /// Line of the action table.
    pub action: u16,
    /// Generation of the line, 2 bits.
    pub generation: u8,
}

/// A route: addresses whose first bits are those of `prefix`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Routing domain, 16 bits.
    pub vrf: u16,
    /// IPv6, else IPv4.
    pub v6: bool,
    /// Address; IPv4 in the lower 32 bits.
    pub prefix: u128,
    /// Bits of the prefix: up to 32 or 128.
    pub bits: u8,
    /// Line of the action table.
    pub action: u16,
    /// Generation of the line, 2 bits.
    pub generation: u8,
}

/// Port class and packet class.
pub const PROFILES: usize = 16;

/// A line's generation has two bits.
pub const GENERATIONS: usize = 4;

/// The profile for a port class (0 to 3) and a packet class ([`packet_class`]).
pub fn profile(port: &Port, packet_class: u8) -> usize {
    usize::from(port.class & 3) * 4 + usize::from(packet_class & 3)
}

/// Packet class: 0 others, 1 ARP, 2 IPv4, 3 IPv6.
pub fn packet_class(layers: &Layers) -> u8 {
    match layers.upper {
        Upper::Ip(ip) => 2 + u8::from(ip.v6),
        Upper::Arp(_) => 1,
        Upper::Other => 0,
    }
}

/// Packet class of the frames with this Ethernet type.
pub fn class_of_type(ethertype: u16) -> u8 {
    match ethertype {
        ethertype::IPV4 => 2,
        ethertype::IPV6 => 3,
        ethertype::ARP => 1,
        _ => 0,
    }
}

/// The tables of one direction.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    /// By generation: masks over the key, one for each port class and packet class; none: the class has no exact entries.
    pub profiles: [[Option<FlowKey>; PROFILES]; GENERATIONS],
    /// Masked key and generation to line of the action table.
    pub exact: HashMap<([u8; FlowKey::BYTES], u8), u16>,
    /// The first that matches counts.
    pub tcam: Vec<Rule>,
    /// (domain, MAC address, generation).
    pub fdb: HashMap<(u16, u64, u8), Station>,
    /// Bridge domain to the group that gets what is for an address that the FDB does not know, multicast and broadcast among them.
    pub floods: HashMap<u16, u16>,
    /// Routes; the longest prefix counts.
    pub lpm: Vec<Route>,
    /// Lines that the other tables lead to; none: the line does not count.
    pub actions: Vec<Option<Action>>,
}

/// What a lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A flow or a route: line of the action table.
    Action(u16),
    /// The FDB knows the destination, or its domain is flooded.
    Station(Station),
    /// No table knows the frame.
    Nothing,
}

impl Direction {
    /// The order of SWITCH.md section 6a behind direct RoCE: exact, wildcard rules, stations, routes. `class`: that of the packet. The port says whether the FDB and the LPM table are asked.
    pub fn find(&self, key: &FlowKey, class: u8, port: &Port, generation: u8) -> Found {
        let mask = self.profiles[usize::from(generation) % GENERATIONS][profile(port, class)];
        let exact = mask.and_then(|mask| self.exact.get(&(masked(key, &mask).0, generation)));
        if let Some(action) = exact {
            return Found::Action(*action);
        }
        if let Some(rule) = self.tcam.iter().find(|r| r.generation == generation && masked(key, &r.mask) == masked(&r.key, &r.mask)) {
            return Found::Action(rule.action);
        }
        if port.bridge {
            let station = self.fdb.get(&(key.domain(), key.dmac(), generation)).copied();
            if let Some(station) = station.or_else(|| self.floods.get(&key.domain()).map(|group| Station::Group(*group))) {
                return Found::Station(station);
            }
        }
        if port.route && class >= 2 {
            let v6 = class == 3;
            let width = if v6 { 128 } else { 32 };
            let holds = |r: &&Route| r.generation == generation && r.vrf == port.vrf && r.v6 == v6 && ((key.dst() ^ r.prefix).checked_shr(width - u32::from(r.bits).min(width)).unwrap_or(0)) == 0;
            if let Some(route) = self.lpm.iter().filter(holds).max_by_key(|r| r.bits) {
                return Found::Action(route.action);
            }
        }
        Found::Nothing
    }
}

/// Every table.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// By number: 1 and 2 uplinks, 8 and up functions (section 8).
    pub ports: HashMap<u8, Port>,
    /// At most eight.
    pub endpoints: Vec<Endpoint>,
    /// (place of the endpoint, VNI) to bridge domain.
    pub vnis: HashMap<(u8, u32), (u16, InnerTag)>,
    /// (IPv6, outer source address) to remote endpoint, 1 to 0xFFE.
    pub remotes: HashMap<(bool, u128), u16>,
    /// Asked about what comes from uplinks.
    pub inbound: Direction,
    /// Asked about what functions send.
    pub outbound: Direction,
    /// (port, IPv6, address) that may be a source.
    pub bind: HashSet<(u8, bool, u128)>,
    /// Line 0 is none.
    pub encaps: Vec<Encap>,
    /// Destination and source MAC address; line 0 is none.
    pub rewrites: Vec<(u64, u64)>,
    /// By number.
    pub groups: Vec<Vec<Member>>,
    /// Session 0 is none.
    pub mirrors: Vec<Option<Mirror>>,
    /// The generation that counts, 2 bits.
    pub generation: u8,
}
