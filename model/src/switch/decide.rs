//! The match stage (SWITCH.md sections 4 and 6a): the key of a frame and a few facts about it go in, the verdict comes out. The gateware's `switch/matching` is compared with this.
use super::layers::{Layers, Upper};
use super::tables::{Found, MissAction, Port, PortKind, RocePolicy, Station, Tables};
use crate::net::parse::ROCE_PORT;
use ferric_abi::codes::SwitchCause;
use ferric_abi::switch::{destination, Action, FlowKey, Verdict};
use ferric_abi::wire::protocol;

/// Bits of [`Verdict::flow`].
const FLOW: u16 = 0x7fff;

/// Packet classes ([`super::tables::packet_class`]) from this one on are IP.
const FIRST_IP: u8 = 2;

/// TCP flags that begin or end a connection: FIN, SYN, RST.
const ENDS: u16 = 7;

/// What the decision wants to know about a frame beside its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The parser does not understand the frame: its key means nothing.
    pub deep: bool,
    /// Packet class: 0 others, 1 ARP, 2 IPv4, 3 IPv6.
    pub class: u8,
    /// UDP to RoCE's port.
    pub roce: bool,
    /// TCP with SYN, FIN or RST.
    pub ends: bool,
}

impl Facts {
    /// Those of a frame that the parser does not understand.
    pub const DEEP: Facts = Facts { deep: true, class: 0, roce: false, ends: false };

    /// Those of a frame with these layers.
    pub fn of(layers: &Layers) -> Self {
        let tcp = matches!(layers.upper, Upper::Ip(ip) if ip.proto == protocol::TCP);
        Facts { deep: false, class: super::tables::packet_class(layers), roce: layers.udp_to() == Some(ROCE_PORT), ends: tcp && layers.tcp_flags & ENDS != 0 }
    }

    fn is_ip(&self) -> bool {
        self.class >= FIRST_IP
    }
}

/// Nowhere, or to software, because of `cause`.
fn refused(verdict: Verdict, kind: u8, cause: SwitchCause) -> Verdict {
    verdict.with_kind(kind).with_cause(cause as u8)
}

/// What an action orders, whatever the frame.
pub fn orders(begun: Verdict, action: &Action) -> Verdict {
    begun
        .with_kind(action.kind())
        .with_number(action.number())
        .with_encap(action.encap())
        .with_rewrite(action.rewrite())
        .with_tag_op(action.tag_op())
        .with_tag(action.tag())
        .with_class(action.class())
        .with_mirror(action.mirror())
        .with_sample(action.sample())
        .with_count(action.count())
        .with_dec_ttl(action.dec_ttl())
        .with_write_dscp(action.write_dscp())
        .with_dscp(action.dscp())
}

/// What an action says about the frame with this key. The changes that it orders stay in the verdict whatever becomes of the frame.
fn of_action(begun: Verdict, action: &Action, key: &FlowKey, facts: &Facts) -> Verdict {
    let verdict = orders(begun, action);
    if action.no_roce() && facts.roce {
        return refused(verdict, destination::DROP, SwitchCause::RoceDenied);
    }
    if action.kind() == destination::EXCEPTION || action.trap_tcp() && facts.ends {
        return refused(verdict, destination::EXCEPTION, SwitchCause::None);
    }
    if action.kind() == destination::DROP {
        return refused(verdict, destination::DROP, SwitchCause::Acl);
    }
    if action.dec_ttl() && facts.is_ip() && key.ttl_class() < 2 {
        return refused(verdict, destination::EXCEPTION, SwitchCause::Ttl);
    }
    verdict
}

impl Tables {
    /// The verdict on a frame from `port` with this key and these facts. The order is that of SWITCH.md section 6a: direct RoCE, exact entries, rules, stations, routes, the port's miss
    /// action. A line of the action table that was never written, or is of no kind that there is, drops the frame with the cause `NoRuleRoom`.
    pub fn decide(&self, key: &FlowKey, facts: &Facts, port: &Port) -> Verdict {
        let begun = Verdict::default().with_generation(self.generation & 1 == 1);
        if facts.deep {
            return refused(begun, destination::EXCEPTION, SwitchCause::Deep);
        }
        let uplink = port.kind == PortKind::Uplink;
        if let Some(to) = self.direct(key, facts).filter(|_| uplink) {
            return begun.with_kind(destination::PORT).with_number(to.into());
        }
        let direction = if uplink { &self.inbound } else { &self.outbound };
        match direction.find(key, facts.class, port, self.generation) {
            Found::Action(line) => {
                let begun = begun.with_flow(line & FLOW);
                match direction.actions.get(usize::from(line)).copied().flatten().filter(|action| action.kind() <= destination::EXCEPTION) {
                    Some(action) => of_action(begun, &action, key, facts),
                    None => refused(begun, destination::DROP, SwitchCause::NoRuleRoom),
                }
            }
            Found::Station(Station::Port(to)) => begun.with_kind(destination::PORT).with_number(to.into()),
            Found::Station(Station::Group(group)) => begun.with_kind(destination::GROUP).with_number(group),
            Found::Station(Station::Remote(encap)) => {
                let uplink = self.encaps.get(usize::from(encap)).map_or(0, |line| line.uplink());
                begun.with_kind(destination::UPLINK).with_number(uplink.into()).with_encap(encap)
            }
            Found::Nothing => match port.miss {
                MissAction::Drop => refused(begun, destination::DROP, SwitchCause::Miss),
                MissAction::Exception => refused(begun, destination::EXCEPTION, SwitchCause::None),
            },
        }
    }

    /// The port that a RoCE packet goes to without a flow: bridge domain and MAC address name it.
    fn direct(&self, key: &FlowKey, facts: &Facts) -> Option<u8> {
        let is = |p: &Port| p.roce == RocePolicy::Direct && p.kind == PortKind::Function && p.domain == key.domain() && p.macs.contains(&key.dmac());
        self.ports.iter().find(|(_, p)| facts.roce && is(p)).map(|(number, _)| *number)
    }
}
