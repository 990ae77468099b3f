//! The actions of a flow as a line of the action table.
use super::{NotOffloaded, TunnelPort};
use crate::switch::flow::{Field, Flow, Header, Masked, Step};
use crate::switch::tables::{Member, Mirror, PortKind};
use crate::switch::{wrap, Switch};
use ferric_abi::switch::{destination, source_port, tag_op, Action};
use ferric_abi::wire::ethertype;
use std::collections::BTreeMap;

/// Lines that the tables have (SWITCH.md section 7).
const ENCAPS: usize = 1024;
const REWRITES: usize = 512;
const GROUPS: usize = 256;
const COPIES: usize = 64;
/// Sessions that four bits can name, 0 among them.
const MIRRORS: usize = 16;

/// What is done to a frame before it leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Changes {
    dst: Option<u64>,
    src: Option<u64>,
    popped: bool,
    pushed: Option<u16>,
    dec_ttl: bool,
    dscp: Option<u8>,
}

/// A destination, the changes and the outer header before it.
struct Copy {
    port: u32,
    changes: Changes,
    header: Option<(Header, u32)>,
    /// Bytes of it at most; 0: all.
    truncate: u16,
}

fn no(step: &Step) -> NotOffloaded {
    NotOffloaded::Action(step.to_string())
}

fn ttl_field(flow: &Flow) -> Field {
    if flow.matches.exact(Field::EthType) == Some(ethertype::IPV6.into()) {
        Field::Ip6Hlimit
    } else {
        Field::Ip4Ttl
    }
}

/// Whether a flow sets the time to live to one less than what it matches, at least 1: Open vSwitch says so for `dec_ttl`.
pub fn lessens_ttl(flow: &Flow) -> bool {
    let field = ttl_field(flow);
    let now = flow.matches.exact(field);
    let sets = |step: &Step| matches!(step, Step::Set(fields) if fields.get(&field).is_some_and(|m| m.mask == 0xff && Some(m.value + 1) == now && m.value > 0));
    flow.steps.iter().any(|step| sets(step) || matches!(step, Step::Clone(inner) if inner.iter().any(sets)))
}

impl Switch {
    /// The line for a flow's actions; lines of the other tables that it leads to are made.
    pub(super) fn action_of(&mut self, flow: &Flow, ttl: bool, tunnels: &[TunnelPort]) -> Result<Action, NotOffloaded> {
        let counted = Action::default().with_count(true);
        let mut copies = Vec::new();
        let mut sample = 0;
        if let [Step::Userspace(_)] = flow.steps[..] {
            return Ok(counted.with_kind(destination::EXCEPTION));
        }
        walk(flow, &flow.steps, ttl, Changes::default(), &mut copies, &mut sample)?;
        let mirrored = mirrored(&copies);
        let Some(first) = copies.get(usize::from(mirrored)) else {
            return if sample == 0 { Ok(counted.with_kind(destination::DROP)) } else { Err(NotOffloaded::Action("sample without a destination".into())) };
        };
        let changes = first.changes.clone();
        if copies[usize::from(mirrored)..].iter().any(|copy| copy.changes != changes || copy.truncate != 0) {
            return Err(NotOffloaded::Changes);
        }
        let tag = changes.pushed.unwrap_or(0);
        let op = match (changes.popped, changes.pushed) {
            (false, None) => tag_op::NONE,
            (false, Some(_)) => tag_op::PUSH,
            (true, None) => tag_op::POP,
            (true, Some(_)) => tag_op::SET,
        };
        let dscp = changes.dscp;
        let mut action = counted.with_tag_op(op).with_tag(tag).with_sample(sample).with_dec_ttl(changes.dec_ttl).with_write_dscp(dscp.is_some()).with_dscp(dscp.unwrap_or(0));
        if changes.dst.is_some() || changes.src.is_some() {
            action.set_rewrite(self.rewrite(flow, &changes)?);
        }
        let mut members = copies.iter().map(|copy| self.member(flow, copy, tunnels)).collect::<Result<Vec<_>, _>>()?;
        if mirrored {
            action.set_mirror(self.mirror(Mirror { to: members.remove(0), truncate: copies[0].truncate })?);
        }
        if let [Member { port, encap }] = members[..] {
            let uplink = self.tables.ports.get(&port).is_some_and(|p| p.kind == PortKind::Uplink);
            return Ok(action.with_kind(if uplink { destination::UPLINK } else { destination::PORT }).with_number(port.into()).with_encap(encap));
        }
        if self.tables.groups.len() >= GROUPS || members.len() > COPIES {
            return Err(NotOffloaded::Room("group"));
        }
        self.tables.groups.push(members);
        Ok(action.with_kind(destination::GROUP).with_number((self.tables.groups.len() - 1) as u16))
    }

    /// The session that makes such copies.
    fn mirror(&mut self, mirror: Mirror) -> Result<u8, NotOffloaded> {
        let table = &mut self.tables.mirrors;
        if table.is_empty() {
            table.push(None);
        }
        let line = table.iter().position(|m| *m == Some(mirror)).unwrap_or(table.len());
        if line == table.len() {
            if line >= MIRRORS {
                return Err(NotOffloaded::Room("mirror"));
            }
            table.push(Some(mirror));
        }
        Ok(line as u8)
    }

    /// Both MAC addresses: one that does not change has to be known from the key.
    fn rewrite(&mut self, flow: &Flow, changes: &Changes) -> Result<u16, NotOffloaded> {
        let known = |new: Option<u64>, field| new.or_else(|| flow.matches.exact(field).map(|v| v as u64));
        let (Some(dst), Some(src)) = (known(changes.dst, Field::EthDst), known(changes.src, Field::EthSrc)) else {
            return Err(NotOffloaded::Action("set(eth(...)) of one address where the key does not say the other".into()));
        };
        let table = &mut self.tables.rewrites;
        if table.is_empty() {
            table.push((0, 0));
        }
        let line = table.iter().skip(1).position(|l| *l == (dst, src)).map_or(table.len(), |n| n + 1);
        if line == table.len() {
            if line >= REWRITES {
                return Err(NotOffloaded::Room("rewrite"));
            }
            table.push((dst, src));
        }
        Ok(line as u16)
    }

    fn member(&mut self, flow: &Flow, copy: &Copy, tunnels: &[TunnelPort]) -> Result<Member, NotOffloaded> {
        let port = u8::try_from(copy.port).ok().filter(|n| self.tables.ports.contains_key(n)).ok_or_else(|| NotOffloaded::Action(format!("output to port {}", copy.port)))?;
        let Some((header, tunnel)) = &copy.header else {
            if flow.matches.exact(Field::InPort) == Some(port.into()) {
                return Err(NotOffloaded::Action("output to the port that the frame came from".into()));
            }
            return Ok(Member { port, encap: 0 });
        };
        let refuse = |what: &str| NotOffloaded::Action(format!("tnl_push {what}"));
        if !tunnels.iter().any(|t| t.number == *tunnel) {
            return Err(refuse("of a port that is no tunnel"));
        }
        if header.udp.2 != 0 {
            return Err(refuse("with a UDP checksum"));
        }
        // The card copies ECN: the text has one flow for each, and has to say the same.
        let tos = match flow.matches.exact(Field::EthType) {
            Some(t) if t == ethertype::IPV4.into() || t == ethertype::IPV6.into() => {
                let field = if t == ethertype::IPV4.into() { Field::Ip4Tos } else { Field::Ip6Tclass };
                flow.matches.fields.get(&field).filter(|m| m.mask & 3 == 3).map(|m| m.value & 3)
            }
            Some(t) if t == ethertype::ARP.into() => Some(0),
            _ => None,
        };
        if tos != Some(u128::from(header.outer.tos & 3)) {
            return Err(refuse("with an ECN that is not the frame's"));
        }
        let mut line = wrap::line(&header.bytes(), port).map_err(|bad| refuse(&format!("with such a header ({bad:?})")))?;
        line.set_source_port(source_port::ENTROPY);
        let table = &mut self.tables.encaps;
        if table.is_empty() {
            table.push(Default::default());
        }
        let number = table.iter().skip(1).position(|l| *l == line).map_or(table.len(), |n| n + 1);
        if number == table.len() {
            if number >= ENCAPS {
                return Err(NotOffloaded::Room("encapsulation"));
            }
            table.push(line);
        }
        Ok(Member { port, encap: number as u16 })
    }
}

/// Whether the first copy is a mirror's: it is as the frame came, and truncated or unlike the others.
fn mirrored(copies: &[Copy]) -> bool {
    match copies {
        [first, second, ..] => first.changes == Changes::default() && (first.truncate != 0 || second.changes != first.changes),
        _ => false,
    }
}

/// Follows the steps; each destination becomes a copy with the changes up to there.
fn walk(flow: &Flow, steps: &[Step], ttl: bool, mut changes: Changes, copies: &mut Vec<Copy>, sample: &mut u8) -> Result<(), NotOffloaded> {
    let mut header: Option<(Header, u32)> = None;
    let mut truncate = 0;
    for step in steps {
        match step {
            Step::Output(port) => copies.push(Copy { port: *port, changes: changes.clone(), header: header.clone(), truncate: std::mem::take(&mut truncate) }),
            // The datapath truncates to at least an Ethernet header.
            Step::Trunc(n) if header.is_none() && *n >= 14 => truncate = u16::try_from(*n).map_err(|_| no(step))?,
            Step::Clone(inner) if header.is_none() => walk(flow, inner, ttl, changes.clone(), copies, sample)?,
            Step::TnlPush { port, header: h, .. } if header.is_none() && truncate == 0 => header = Some((h.clone(), *port)),
            Step::PushVlan { tpid: ethertype::VLAN, tci } if header.is_none() && changes.pushed.is_none() => changes.pushed = Some(*tci),
            // What was pushed goes again: nothing has happened.
            Step::PopVlan if header.is_none() && changes.pushed.is_some() => changes.pushed = None,
            Step::PopVlan if header.is_none() && !changes.popped && !flow.matches.tags.is_empty() => changes.popped = true,
            Step::Set(fields) if header.is_none() => set(flow, fields, ttl, &mut changes).ok_or_else(|| no(step))?,
            Step::Sample { probability, steps } if *sample == 0 && matches!(steps[..], [Step::Userspace(_)]) => *sample = one_in(*probability).ok_or_else(|| no(step))?,
            _ => return Err(no(step)),
        }
    }
    Ok(())
}

/// n where the probability is one in 2^n.
fn one_in(probability: u32) -> Option<u8> {
    (1..16).find(|n| probability.abs_diff(u32::MAX >> n) <= 1)
}

fn set(flow: &Flow, fields: &BTreeMap<Field, Masked>, ttl: bool, changes: &mut Changes) -> Option<()> {
    for (field, m) in fields {
        match field {
            Field::EthDst if m.mask == field.full() => changes.dst = Some(m.value as u64),
            Field::EthSrc if m.mask == field.full() => changes.src = Some(m.value as u64),
            Field::Ip4Tos | Field::Ip6Tclass => {
                // ECN stays: either its bits do not count, or they are what the key says.
                let ecn = flow.matches.fields.get(field).filter(|k| k.mask & 3 == 3).map(|k| k.value & 3);
                let stays = m.mask & 3 == 0 || m.mask & 3 == 3 && ecn == Some(m.value & 3);
                if m.mask >> 2 != 0x3f || !stays {
                    return None;
                }
                changes.dscp = Some((m.value >> 2) as u8);
            }
            Field::Ip4Ttl | Field::Ip6Hlimit if ttl && flow.matches.exact(*field) == Some(m.value + 1) => changes.dec_ttl = true,
            // What is set to what it is.
            _ if m.mask == field.full() && flow.matches.exact(*field) == Some(m.value) => {}
            _ => return None,
        }
    }
    Some(())
}
