//! Puts flows of the flow language into the tables, as a driver will: lines of the action, encapsulation, rewrite and group tables, an exact entry if the class's profile has the
//! flow's mask, else a wildcard rule. What the tables cannot say is refused with the reason; such a flow stays in software.
mod actions;

use super::flow::{Field, Flow, Masked, Match};
use super::key::masked;
use super::tables::{class_of_type, profile, PortKind, Rule, GENERATIONS};
use super::Switch;
use ferric_abi::switch::{Action, FlowKey};
use ferric_abi::wire::ethertype;

/// Where a flow's entry may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The exact table if the profile has the flow's mask or none yet, else a rule behind those that are there.
    Any,
    /// A rule behind those that are there.
    Rule,
}

/// Why a flow stays in software.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotOffloaded {
    /// A field, or a mask of it, that the key does not have.
    Field(String),
    /// An action that the card does not have.
    Action(String),
    /// Several destinations that want different changes of the frame.
    Changes,
    /// More lines than a table has.
    Room(&'static str),
    /// The tunnel or the port that the flow comes from is not there.
    Origin,
}

impl std::fmt::Display for NotOffloaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotOffloaded::Field(what) => write!(f, "the key does not know {what}"),
            NotOffloaded::Action(what) => write!(f, "the card has no action {what}"),
            NotOffloaded::Changes => write!(f, "the destinations want different changes of the frame"),
            NotOffloaded::Room(table) => write!(f, "the {table} table is full"),
            NotOffloaded::Origin => write!(f, "no such port or tunnel"),
        }
    }
}

impl std::error::Error for NotOffloaded {}

/// Ports of the text that are no ports of the card: where stripped frames come from and wrapped ones go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelPort {
    /// Number in the text.
    pub number: u32,
    /// Place of the endpoint in the table.
    pub endpoint: u8,
}

/// A flow as the tables' lines have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// It is about frames from the wire, else about what a function sends.
    pub inbound: bool,
    /// Its bits of the key, and which of them count.
    pub key: FlowKey,
    /// Ones where bits count.
    pub mask: FlowKey,
    /// What is done; lines of other tables that it names have been made.
    pub action: Action,
    /// The profile (port class and packet class) that its frames are of, if they are all of one.
    pub profile: Option<usize>,
}

impl Switch {
    /// What a flow is in the tables. `tunnels` says which ports of the text are tunnels.
    ///
    /// # Errors
    /// The reason why the flow stays in software; the tables are then as before, but for lines that nothing leads to.
    pub fn compile(&mut self, flow: &Flow, tunnels: &[TunnelPort]) -> Result<Compiled, NotOffloaded> {
        let inbound = self.is_inbound(&flow.matches, tunnels)?;
        let ttl = actions::lessens_ttl(flow);
        let (key, mask) = self.key_of(&flow.matches, ttl, tunnels)?;
        let action = self.action_of(flow, ttl, tunnels)?;
        Ok(Compiled { inbound, key, mask, action, profile: self.profiles_of(&flow.matches, inbound) })
    }

    /// Installs a flow: [`Switch::compile`], and a place for it. Line of its action.
    ///
    /// # Errors
    /// As of [`Switch::compile`].
    pub fn install(&mut self, flow: &Flow, room: Room, tunnels: &[TunnelPort]) -> Result<u16, NotOffloaded> {
        let Compiled { inbound, key, mask, action, profile } = self.compile(flow, tunnels)?;
        let generation = self.tables.generation;
        let direction = if inbound { &mut self.tables.inbound } else { &mut self.tables.outbound };
        let line = u16::try_from(direction.actions.len()).map_err(|_| NotOffloaded::Room("action"))?;
        direction.actions.push(Some(action));
        let profiles = &mut direction.profiles[usize::from(generation) % GENERATIONS];
        let exact = room == Room::Any && profile.is_some_and(|class| profiles[class].is_none_or(|profile| profile == mask));
        if let Some(class) = profile.filter(|_| exact) {
            profiles[class] = Some(mask);
            direction.exact.insert((masked(&key, &mask).0, generation), line);
        } else {
            direction.tcam.push(Rule { key, mask, action: line, generation });
        }
        Ok(line)
    }

    /// Whether a flow is about frames from the wire.
    fn is_inbound(&self, m: &Match, tunnels: &[TunnelPort]) -> Result<bool, NotOffloaded> {
        let number = m.exact(Field::InPort).ok_or(NotOffloaded::Origin)?;
        if tunnels.iter().any(|t| u128::from(t.number) == number) {
            return Ok(true);
        }
        let port = u8::try_from(number).ok().and_then(|n| self.tables.ports.get(&n)).ok_or(NotOffloaded::Origin)?;
        Ok(port.kind == PortKind::Uplink)
    }

    /// The profile of the frames that a flow is about, if it is one.
    fn profiles_of(&self, m: &Match, inbound: bool) -> Option<usize> {
        let ethertype = m.exact(Field::EthType)? as u16;
        let number = m.exact(Field::InPort).and_then(|n| u8::try_from(n).ok());
        let port = match number.and_then(|n| self.tables.ports.get(&n)) {
            Some(port) => port,
            None if inbound => self.tables.ports.get(&1)?,
            None => return None,
        };
        Some(profile(port, class_of_type(ethertype)))
    }

    /// Key and mask of what a flow matches.
    fn key_of(&self, m: &Match, ttl: bool, tunnels: &[TunnelPort]) -> Result<(FlowKey, FlowKey), NotOffloaded> {
        if let Some(foreign) = m.foreign.first() {
            return Err(NotOffloaded::Field(foreign.clone()));
        }
        let mut lines = Lines::default();
        let number = m.exact(Field::InPort).unwrap_or(0);
        match tunnels.iter().find(|t| u128::from(t.number) == number) {
            Some(tunnel) => self.tunnel_key(m, tunnel.endpoint, &mut lines)?,
            None if m.tunnel => return Err(NotOffloaded::Origin),
            None => {
                // A stripped frame has the uplink as its port, too, but a remote endpoint beside it.
                lines.put(FlowKey::set_in_port, number as u8, u8::MAX);
                lines.put(FlowKey::set_remote, 0, u16::MAX);
            }
        }
        tags(m, &mut lines)?;
        let v6 = m.exact(Field::EthType) == Some(ethertype::IPV6.into());
        for (field, value) in &m.fields {
            lines.field(*field, value, ttl, v6)?;
        }
        Ok((lines.key, lines.mask))
    }

    /// `tunnel(tun_id=,src=,dst=)` is a bridge domain and a remote endpoint.
    fn tunnel_key(&self, m: &Match, endpoint: u8, lines: &mut Lines) -> Result<(), NotOffloaded> {
        let vni = m.exact(Field::TunId).ok_or_else(|| NotOffloaded::Field("a tunnel without its tun_id".into()))?;
        let (domain, _) = u32::try_from(vni).ok().and_then(|vni| self.tables.vnis.get(&(endpoint, vni))).ok_or(NotOffloaded::Origin)?;
        lines.put(FlowKey::set_domain, *domain, u16::MAX);
        let endpoint = self.tables.endpoints.get(usize::from(endpoint)).ok_or(NotOffloaded::Origin)?;
        let v6 = m.fields.contains_key(&Field::TunSrc6) || m.fields.contains_key(&Field::TunDst6);
        let (src, dst) = if v6 { (Field::TunSrc6, Field::TunDst6) } else { (Field::TunSrc, Field::TunDst) };
        // The text has one port for a kind of tunnel, whatever local addresses there are.
        let local = |ip| self.tables.endpoints.iter().any(|e| e.v6 == v6 && e.kind == endpoint.kind && e.udp_port == endpoint.udp_port && ip == Some(e.ip));
        if m.fields.contains_key(&dst) && !local(m.exact(dst)) {
            return Err(NotOffloaded::Origin);
        }
        if m.fields.contains_key(&src) {
            let remote = m.exact(src).and_then(|ip| self.tables.remotes.get(&(v6, ip))).ok_or(NotOffloaded::Origin)?;
            lines.put(FlowKey::set_remote, *remote, u16::MAX);
        }
        for field in [Field::TunTos, Field::TunTtl, Field::TunTpSrc, Field::TunTpDst] {
            if m.fields.contains_key(&field) {
                return Err(NotOffloaded::Field(format!("{field:?}")));
            }
        }
        Ok(())
    }
}

/// Presence, VLAN and priority of the first tag; of the second one only that it is there.
fn tags(m: &Match, lines: &mut Lines) -> Result<(), NotOffloaded> {
    lines.put(FlowKey::set_tag_present, !m.tags.is_empty(), true);
    lines.put(FlowKey::set_second_tag, m.tags.len() > 1, true);
    if let Some(tag) = m.tags.first() {
        lines.put(FlowKey::set_service_tag, tag.tpid == ethertype::SERVICE_VLAN, true);
        lines.put(FlowKey::set_tag_vid, tag.vid.value as u16, tag.vid.mask as u16);
        lines.put(FlowKey::set_tag_pcp, tag.pcp.value as u8, tag.pcp.mask as u8);
    }
    let second = m.tags.get(1).is_some_and(|tag| tag.vid.mask | tag.pcp.mask != 0);
    if second || m.tags.len() > 2 {
        return Err(NotOffloaded::Field("what is in the second tag".into()));
    }
    Ok(())
}

/// A key and its mask.
#[derive(Default)]
struct Lines {
    key: FlowKey,
    mask: FlowKey,
}

impl Lines {
    fn put<T>(&mut self, set: fn(&mut FlowKey, T) -> &mut FlowKey, value: T, mask: T) {
        set(&mut self.key, value);
        set(&mut self.mask, mask);
    }

    fn field(&mut self, field: Field, m: &Masked, ttl: bool, v6: bool) -> Result<(), NotOffloaded> {
        let (value, mask) = (m.value, m.mask);
        let unknown = || NotOffloaded::Field(format!("{field:?} with mask {mask:#x}"));
        match field {
            // The origin has been looked at.
            Field::InPort | Field::TunId | Field::TunSrc | Field::TunDst | Field::TunSrc6 | Field::TunDst6 | Field::TunFlags => {}
            Field::TunTos | Field::TunTtl | Field::TunTpSrc | Field::TunTpDst => return Err(unknown()),
            Field::EthSrc => self.put(FlowKey::set_smac, value as u64, mask as u64),
            Field::EthDst => self.put(FlowKey::set_dmac, value as u64, mask as u64),
            Field::EthType => self.put(FlowKey::set_ethertype, value as u16, mask as u16),
            Field::Ip4Src | Field::Ip6Src | Field::ArpSip => self.put(FlowKey::set_src, value, mask),
            Field::Ip4Dst | Field::Ip6Dst | Field::ArpTip => self.put(FlowKey::set_dst, value, mask),
            Field::Ip4Proto | Field::Ip6Proto | Field::ArpOp => self.put(FlowKey::set_proto, value as u8, mask as u8),
            Field::Ip4Tos | Field::Ip6Tclass => {
                self.put(FlowKey::set_dscp, value as u8 >> 2, mask as u8 >> 2);
                self.put(FlowKey::set_ecn, value as u8 & 3, mask as u8 & 3);
            }
            // The key has a class of it only: 0, 1, more.
            Field::Ip4Ttl | Field::Ip6Hlimit => match (value, mask) {
                (0 | 1, 0xff) => self.put(FlowKey::set_ttl_class, value as u8, 3),
                (_, 0xff) if ttl => self.put(FlowKey::set_ttl_class, 2, 3),
                _ => return Err(unknown()),
            },
            Field::Ip4Frag | Field::Ip6Frag => self.put(FlowKey::set_fragment, value as u8, 3),
            Field::TcpSrc | Field::UdpSrc => self.put(FlowKey::set_src_port, value as u16, mask as u16),
            Field::TcpDst | Field::UdpDst => self.put(FlowKey::set_dst_port, value as u16, mask as u16),
            Field::TcpFlags if mask & 0xf00 == 0 => self.put(FlowKey::set_tcp_flags, value as u8, mask as u8),
            Field::IcmpType | Field::Icmp6Type => self.put(FlowKey::set_src_port, value as u16, mask as u16),
            Field::IcmpCode | Field::Icmp6Code => self.put(FlowKey::set_dst_port, value as u16, mask as u16),
            Field::Ip6Label | Field::TcpFlags | Field::ArpSha | Field::ArpTha => return Err(unknown()),
        }
        let ip4 = field.group() == "ipv4" && self.key.ethertype() != ethertype::IPV4;
        if ip4 || field.group() == "ipv6" && !v6 {
            return Err(NotOffloaded::Field(format!("{field:?} without its eth_type")));
        }
        Ok(())
    }
}
