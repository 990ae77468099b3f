//! The flow switch and the tunnel endpoint as a whole: a frame and the port it came from go in, frames and the ports they leave by come out, or the cause why not. Written from
//! SWITCH.md, which is compared with Open vSwitch by the crate `ferric-ovs`. What of it is gateware: docs/switch.md. See the README beside this file.
pub mod counters;
pub mod decide;
pub mod edit;
pub mod fate;
pub mod flow;
pub mod functions;
pub mod install;
pub mod key;
pub mod layers;
pub mod local;
pub mod outer;
pub mod tables;
#[cfg(test)]
mod tests;
pub mod verify;
pub mod wrap;

use counters::{FlowCounters, PortCounters};
use decide::Facts;
use ferric_abi::codes::SwitchCause;
use ferric_abi::switch::{destination, FlowKey, Verdict};
use key::Origin;
use layers::{parse, Layers};
use outer::{Inner, Stripped};
use std::collections::HashMap;
use tables::{Member, PortKind, Tables};

/// A frame that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Port that it leaves by.
    pub port: u8,
    /// Its bytes, without check sequence.
    pub frame: Vec<u8>,
}

/// A frame that software gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Software {
    /// Why; `None`: an action or the port's miss action says so.
    pub cause: SwitchCause,
    /// The frame as it came; of a tunnel the inner one.
    pub frame: Vec<u8>,
    /// Remote endpoint and VNI of a stripped frame.
    pub tunnel: Option<(u16, u32)>,
}

/// What became of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Frames that leave, in the order of their making.
    pub sent: Vec<Sent>,
    /// Frames that software gets.
    pub software: Vec<Software>,
    /// Causes, one for each frame or copy that is dropped.
    pub dropped: Vec<SwitchCause>,
    /// What the lookup decided; zero if a frame did not get that far.
    pub verdict: Verdict,
    /// It came through a tunnel that ends here.
    pub stripped: bool,
}

/// The switch: its tables and what it has counted.
#[derive(Clone, Debug, Default)]
pub struct Switch {
    /// Whoever makes a switch fills them; [`Switch::install`] does so from flows.
    pub tables: Tables,
    /// By port.
    pub counters: HashMap<u8, PortCounters>,
    /// By direction (true: from an uplink) and line of the action table; only of actions that count.
    pub flows: HashMap<(bool, u16), FlowCounters>,
    frames: u64,
    /// Frames of each action that samples.
    samples: HashMap<(bool, u16), u64>,
}

/// A frame behind the tunnel's end.
struct Arrived<'a> {
    frame: &'a [u8],
    layers: Layers,
    number: u8,
    inner: Option<&'a Inner>,
}

impl Switch {
    /// Takes a frame, from its Ethernet header on and without check sequence, from a port. A port that there is not counts as `InjectBad`.
    pub fn receive(&mut self, number: u8, frame: &[u8]) -> Outcome {
        let mut out = Outcome::default();
        self.frames += 1;
        self.run(number, frame, &mut out);
        let counters = self.counters.entry(number).or_default();
        let ends = out.sent.len() + out.software.len() + out.dropped.len();
        counters.received += 1;
        counters.copies += ends.saturating_sub(1) as u64;
        counters.delivered += out.sent.len() as u64;
        counters.software += out.software.len() as u64;
        for cause in &out.dropped {
            *counters.drops.entry(*cause).or_default() += 1;
        }
        out
    }

    fn run(&mut self, number: u8, frame: &[u8], out: &mut Outcome) {
        let Some(port) = self.tables.ports.get(&number) else {
            return out.dropped.push(SwitchCause::InjectBad);
        };
        if !port.up {
            return out.dropped.push(SwitchCause::PortDown);
        }
        let uplink = port.kind == PortKind::Uplink;
        let stripped = if uplink { outer::strip(&self.tables, frame, port.macs.first().copied()) } else { Stripped::Plain };
        let inner = match &stripped {
            Stripped::Plain => None,
            Stripped::Inner(inner) => Some(inner),
            Stripped::Drop(cause) => return out.dropped.push(*cause),
            Stripped::Software(cause) => return out.software.push(Software { cause: *cause, frame: frame.to_vec(), tunnel: None }),
        };
        out.stripped = inner.is_some();
        let frame = inner.map_or(frame, |inner| &inner.frame);
        let tunnel = inner.map(|inner| (inner.remote, inner.vni));
        let Ok(layers) = parse(frame) else {
            out.verdict = self.tables.decide(&FlowKey::default(), &Facts::DEEP, port);
            return out.software.push(Software { cause: SwitchCause::Deep, frame: frame.to_vec(), tunnel });
        };
        if !uplink && port.verify {
            if let Err(cause) = verify::verify(&self.tables, number, port, frame, &layers) {
                return out.dropped.push(cause);
            }
        }
        let arrived = Arrived { frame, layers, number, inner };
        let domain = inner.map_or(port.domain, |inner| inner.domain);
        let origin = Origin { port: number, domain, remote: inner.map_or(0, |inner| inner.remote), geneve_option: inner.is_some_and(|inner| inner.option) };
        let verdict = self.tables.decide(&key::key(&layers, origin), &Facts::of(&layers), port);
        let line = (uplink, verdict.flow());
        if verdict.count() {
            self.flows.entry(line).or_default().take(frame.len() as u64, self.frames);
        }
        let sampled = verdict.sample() > 0 && {
            let seen = self.samples.entry(line).or_default();
            *seen += 1;
            *seen % (1 << verdict.sample()) == 0
        };
        out.verdict = verdict;
        self.act(&arrived, &verdict, sampled, out);
    }

    fn to_software(&self, arrived: &Arrived, cause: SwitchCause, out: &mut Outcome) {
        let tunnel = arrived.inner.map(|inner| (inner.remote, inner.vni));
        out.software.push(Software { cause, frame: arrived.frame.to_vec(), tunnel });
    }

    /// Carries a verdict out.
    fn act(&self, arrived: &Arrived, verdict: &Verdict, sampled: bool, out: &mut Outcome) {
        let layers = &arrived.layers;
        let cause = SwitchCause::from_u8(verdict.cause()).unwrap_or(SwitchCause::None);
        match verdict.kind() {
            destination::DROP => return out.dropped.push(cause),
            destination::EXCEPTION => return self.to_software(arrived, cause, out),
            _ => {}
        }
        if sampled {
            self.to_software(arrived, SwitchCause::None, out);
        }
        if let Some(mirror) = self.tables.mirrors.get(usize::from(verdict.mirror())).copied().flatten() {
            let length = if mirror.truncate == 0 { arrived.frame.len() } else { arrived.frame.len().min(mirror.truncate.into()) };
            self.leave(arrived, &arrived.frame[..length], layers, mirror.to, out);
        }
        let Some((frame, layers)) = self.edited(arrived, verdict) else {
            return out.dropped.push(SwitchCause::NoRuleRoom);
        };
        match verdict.kind() {
            destination::GROUP => self.replicate(arrived, verdict.number(), &frame, &layers, out),
            _ => match u8::try_from(verdict.number()) {
                Ok(port) => self.leave(arrived, &frame, &layers, Member { port, encap: verdict.encap() }, out),
                Err(_) => out.dropped.push(SwitchCause::PortDown),
            },
        }
    }

    /// The frame with the verdict's changes, and its headers then. `None`: a line that the verdict names is not there.
    fn edited(&self, arrived: &Arrived, verdict: &Verdict) -> Option<(Vec<u8>, Layers)> {
        let layers = &arrived.layers;
        let frame = edit::edited(arrived.frame, layers, verdict, &self.tables.rewrites)?;
        // A pushed tag may be the third, which the parser does not know; of its headers only the addresses count then, and they are as they were.
        let layers = parse(&frame).unwrap_or(*layers);
        Some((frame, layers))
    }

    /// Every member gets a copy, but not the port that the frame came from, and after a tunnel no other tunnel (split horizon).
    fn replicate(&self, arrived: &Arrived, group: u16, frame: &[u8], layers: &Layers, out: &mut Outcome) {
        let members = self.tables.groups.get(usize::from(group)).map_or(&[][..], Vec::as_slice);
        let mut empty = true;
        for member in members {
            if arrived.inner.is_some() && member.encap != 0 || member.encap == 0 && member.port == arrived.number {
                continue;
            }
            empty = false;
            self.leave(arrived, frame, layers, *member, out);
        }
        if empty {
            out.dropped.push(SwitchCause::GroupEmpty);
        }
    }

    /// A frame leaves by a port, in an outer header if there is one.
    fn leave(&self, arrived: &Arrived, frame: &[u8], layers: &Layers, to: Member, out: &mut Outcome) {
        let wrapped = match to.encap {
            0 => None,
            line => match self.tables.encaps.get(usize::from(line)).filter(|line| line.valid()) {
                Some(encap) => match wrap::wrap(encap, frame, layers) {
                    Some(wrapped) => Some(wrapped),
                    None => return out.dropped.push(SwitchCause::Mtu),
                },
                None => return out.dropped.push(SwitchCause::NoRuleRoom),
            },
        };
        if to.port == arrived.number && wrapped.is_none() && arrived.inner.is_none() {
            return out.dropped.push(SwitchCause::SamePort);
        }
        let Some(port) = self.tables.ports.get(&to.port).filter(|port| port.up) else {
            return out.dropped.push(SwitchCause::PortDown);
        };
        let frame = wrapped.unwrap_or_else(|| frame.to_vec());
        let tagged = matches!(frame.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8]));
        if frame.len() > usize::from(port.mtu) + if tagged { 18 } else { 14 } {
            return out.dropped.push(SwitchCause::Mtu);
        }
        out.sent.push(Sent { port: to.port, frame });
    }
}
