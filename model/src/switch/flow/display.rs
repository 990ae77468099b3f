//! Writes flows as Open vSwitch does, so that `dpctl/add-flow` reads them.
use super::fields::{Form, TUNNEL_FLAGS};
use super::{Field, Flow, Header, Masked, Match, Step, TunnelKind};
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter, Result};
use std::net::{Ipv4Addr, Ipv6Addr};

fn one(value: u128, form: Form) -> String {
    match form {
        Form::Decimal | Form::Port => value.to_string(),
        Form::Hex | Form::TcpFlags | Form::TunnelFlags => format!("{value:#x}"),
        Form::Mac => mac(value as u64),
        Form::Ip4 => Ipv4Addr::from(value as u32).to_string(),
        Form::Ip6 => Ipv6Addr::from(value).to_string(),
        Form::Fragment => ["no", "first", "later"][value.min(2) as usize].to_owned(),
    }
}

/// A MAC address as text.
pub fn mac(value: u64) -> String {
    value.to_be_bytes()[2..].iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")
}

fn masked(field: Field, m: &Masked) -> String {
    let form = field.form();
    if form == Form::TunnelFlags {
        let flags = TUNNEL_FLAGS.iter().enumerate().filter(|(bit, _)| m.mask >> bit & 1 == 1);
        return format!("({})", flags.map(|(bit, name)| format!("{}{name}", if m.value >> bit & 1 == 1 { '+' } else { '-' })).collect::<String>());
    }
    let mask = match form {
        Form::Decimal | Form::Port => Form::Hex,
        other => other,
    };
    if m.mask == field.full() || form == Form::Fragment {
        one(m.value, form)
    } else {
        format!("{}/{}", one(m.value, form), one(m.mask, mask))
    }
}

/// `group(member=value,...)` with those members that count.
fn group(name: &str, fields: &BTreeMap<Field, Masked>) -> String {
    let members = Field::ALL.iter().filter(|e| e.1 == name).filter_map(|e| Some((e, fields.get(&e.0)?)));
    let mut text: Vec<String> = members
        .map(|((field, _, member, _, form), m)| match (*member, form) {
            ("", _) => masked(*field, m),
            (_, Form::TunnelFlags) => format!("{member}{}", masked(*field, m)),
            _ => format!("{member}={}", masked(*field, m)),
        })
        .collect();
    // The datapath takes no tunnel without a time to live.
    if name == "tunnel" && !fields.contains_key(&Field::TunTtl) {
        text.push("ttl=0/0".into());
    }
    format!("{name}({})", text.join(","))
}

impl Match {
    /// Groups that have to stand there: the datapath refuses a key that says what a frame is and leaves that layer out.
    fn groups(&self) -> Vec<&'static str> {
        let is = |field, value| self.exact(field) == Some(value);
        let used = |name: &str| self.fields.keys().any(|f| f.group() == name);
        let mut names = Vec::new();
        let v4 = is(Field::EthType, 0x0800);
        let v6 = is(Field::EthType, 0x86dd);
        let later = is(Field::Ip4Frag, 2) || is(Field::Ip6Frag, 2);
        let proto = |n| !later && (v4 && is(Field::Ip4Proto, n) || v6 && is(Field::Ip6Proto, n));
        for (name, due) in
            [("ipv4", v4), ("ipv6", v6), ("arp", is(Field::EthType, 0x0806)), ("tcp", proto(6)), ("udp", proto(17)), ("sctp", proto(132)), ("icmp", v4 && proto(1)), ("icmpv6", v6 && proto(58))]
        {
            if due || used(name) {
                names.push(name);
            }
        }
        if used("tcp_flags") {
            names.push("tcp_flags");
        }
        names
    }
}

impl Display for Match {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut parts: Vec<String> = self.foreign.clone();
        if self.tunnel {
            parts.push(group("tunnel", &self.fields));
        }
        if self.fields.contains_key(&Field::InPort) {
            parts.push(group("in_port", &self.fields));
        }
        parts.push(group("eth", &self.fields));
        for tag in &self.tags {
            parts.push(format!("eth_type({:#06x})", tag.tpid));
            let part = |name: &str, m: &Masked, full: u128| match m.mask {
                0 => None,
                mask if mask == full => Some(format!("{name}={}", m.value)),
                mask => Some(format!("{name}={}/{mask:#x}", m.value)),
            };
            let members: Vec<String> = [part("vid", &tag.vid, 0xfff), part("pcp", &tag.pcp, 7)].into_iter().flatten().collect();
            parts.push(format!("vlan({})", members.join(",")));
        }
        let mut inner = Vec::new();
        if let Some(m) = self.fields.get(&Field::EthType) {
            inner.push(if m.mask == 0xffff { format!("eth_type({:#06x})", m.value) } else { format!("eth_type({:#06x}/{:#06x})", m.value, m.mask) });
        }
        inner.extend(self.groups().into_iter().map(|name| group(name, &self.fields)));
        let mut text = inner.join(",");
        match self.tags.len() {
            0 => {}
            // A second tag of which nothing is said is a type like any other: Open vSwitch reads one tag unless told otherwise.
            2 if text.is_empty() && self.tags[1].vid.mask | self.tags[1].pcp.mask == 0 => {
                parts.truncate(parts.len() - 2);
                text = format!("encap(eth_type({:#06x}))", self.tags[1].tpid);
            }
            // The second tag stands in the first one's `encap`.
            2 => {
                let (second, vlan) = (parts.split_off(parts.len() - 2), ",");
                text = format!("encap({}{vlan}encap({text}))", second.join(","));
            }
            _ => text = format!("encap({text})"),
        }
        if !text.is_empty() {
            parts.push(text);
        }
        write!(f, "{}", parts.join(","))
    }
}

impl Display for Header {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let o = &self.outer;
        let kind = if matches!(self.kind, TunnelKind::Vxlan { .. }) { 4 } else { 5 };
        let ethertype = if o.v6 { "0x86dd" } else { "0x0800" };
        write!(f, "header(size={},type={kind},eth(dst={},src={},dl_type={ethertype}),", self.bytes().len(), mac(self.dmac), mac(self.smac))?;
        if o.v6 {
            let (src, dst) = (Ipv6Addr::from(o.src), Ipv6Addr::from(o.dst));
            write!(f, "ipv6(src={src},dst={dst},label={},proto=17,tclass={:#x},hlimit={}),", o.extra, o.tos, o.ttl)?;
        } else {
            let (src, dst) = (Ipv4Addr::from(o.src as u32), Ipv4Addr::from(o.dst as u32));
            write!(f, "ipv4(src={src},dst={dst},proto=17,tos={:#x},ttl={},frag={:#x}),", o.tos, o.ttl, o.extra)?;
        }
        write!(f, "udp(src={},dst={},csum={:#x}),", self.udp.0, self.udp.1, self.udp.2)?;
        match &self.kind {
            TunnelKind::Vxlan { flags, vni } => write!(f, "vxlan(flags={flags:#x},vni={vni:#x}))"),
            TunnelKind::Geneve { oam, critical, vni, options } => {
                write!(f, "geneve({}{}vni={vni:#x}", if *oam { "oam," } else { "" }, if *critical { "crit," } else { "" })?;
                if !options.is_empty() {
                    write!(f, ",options(")?;
                    for (class, kind, data) in options {
                        write!(f, "{{class={class:#x},type={kind:#x},len={}", data.len())?;
                        if !data.is_empty() {
                            write!(f, ",0x{}", data.iter().map(|b| format!("{b:02x}")).collect::<String>())?;
                        }
                        write!(f, "}}")?;
                    }
                    write!(f, ")")?;
                }
                write!(f, "))")
            }
        }
    }
}

/// Steps with commas between them; `drop` if there is none.
pub fn steps(steps: &[Step]) -> String {
    if steps.is_empty() {
        return "drop".to_owned();
    }
    steps.iter().map(Step::to_string).collect::<Vec<_>>().join(",")
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Step::Output(port) => write!(f, "{port}"),
            Step::PushVlan { tpid: 0x8100, tci } => write!(f, "push_vlan(vid={},pcp={})", tci & 0xfff, tci >> 13),
            Step::PushVlan { tpid, tci } => write!(f, "push_vlan(tpid={tpid:#06x},vid={},pcp={})", tci & 0xfff, tci >> 13),
            Step::PopVlan => write!(f, "pop_vlan"),
            Step::Set(fields) => write!(f, "set({})", group(fields.keys().next().map_or("eth", |field| field.group()), fields)),
            Step::TnlPush { port, header, out } => write!(f, "tnl_push(tnl_port({port}),{header},out_port({out}))"),
            Step::TnlPop(port) => write!(f, "tnl_pop({port})"),
            Step::Userspace(inside) => write!(f, "userspace({inside})"),
            Step::Meter(n) => write!(f, "meter({n})"),
            Step::Clone(inside) => write!(f, "clone({})", steps(inside)),
            Step::Sample { probability, steps: inside } => write!(f, "sample(sample={}%,actions({}))", f64::from(*probability) / f64::from(u32::MAX) * 100.0, steps(inside)),
            Step::Trunc(n) => write!(f, "trunc({n})"),
            Step::Foreign(text) => write!(f, "{text}"),
        }
    }
}

impl Display for Flow {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} actions:{}", self.matches, steps(&self.steps))
    }
}
