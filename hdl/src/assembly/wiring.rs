//! From the list to assignments: every input has one driver, every output a listener, and what is joined fits.

use super::atoms::Mirror;
use super::block::{AnyBlock, Assembled};
use super::ports::{self, Port, Signalled};
use super::{Assembly, Wire};
use rust_hdl::core::ast::{VerilogExpression, VerilogLink, VerilogLinkDetails, VerilogOp, VerilogStatement};
use rust_hdl::prelude::*;
use std::collections::{HashMap, HashSet};

/// Two ports that are joined: of an instance (`sq.m_wqe`), or of the assembly itself (no dot).
#[derive(Clone, Debug, PartialEq)]
pub struct Joint {
    pub from: String,
    pub to: String,
    /// Both whole ports, with a handshake.
    pub waits: bool,
    /// What travels.
    pub carries: String,
}

/// One end of a wire: the signals it names.
struct End {
    /// The Verilog in front of the signals: `sq$` or nothing.
    owner: String,
    /// The port with its instance, as the list writes it.
    port: String,
    signals: Vec<(String, Signalled)>,
    /// Whether it is a whole interface: its signals are joined by name.
    interface: bool,
    waits: bool,
    carries: String,
}

pub(super) fn assemble(list: Assembly) -> Result<Assembled, Vec<String>> {
    let children: Vec<(String, AnyBlock)> = list.instances.iter().map(|i| (i.name.clone(), (i.make)(&list))).collect();
    let ports: Vec<(String, Vec<Port>)> = children.iter().map(|(name, block)| (name.clone(), ports::of(block))).collect();
    let mut wiring = Wiring { faults: list.faults.clone(), ports: &ports, ..Default::default() };
    for (name, input) in &list.inputs {
        let Some(port) = named(input, name) else { continue };
        wiring.inputs.push((name.clone(), port));
    }
    wiring.common("clock", list.inputs.iter().any(|(name, _)| name == "clock").then_some("clock"));
    wiring.common("reset", list.reset.as_deref());
    let mut counted = Vec::new();
    for wire in &list.wires {
        match wire {
            Wire::Join { from, to } => wiring.join(from, to),
            Wire::Expose { port, inner } => wiring.expose(port, inner),
            Wire::Count { events, width } => counted.push((events, *width)),
        }
    }
    let locals = wiring.count(&counted, list.counts.as_ref());
    let free = list.free_places(|port| port.split_once('.').is_some_and(|(instance, name)| wiring.port(instance, name).is_some()));
    wiring.leave_alone(&[&list.optional[..], &free].concat());
    wiring.finish(&list.open);
    let Wiring { faults, plain, links, exposed, joints, .. } = wiring;
    if !faults.is_empty() {
        return Err(faults);
    }
    let code = plain.into_iter().chain([VerilogStatement::Link(links)]).collect();
    let waits = list.instances.iter().map(|i| (i.name.clone(), i.waits, i.never_waits.clone())).collect();
    Ok(Assembled { inputs: list.inputs, exposed, locals, children, code, ports, joints, waits })
}

/// The port that one signal is, under its name.
fn named(signal: &AnyBlock, name: &str) -> Option<Port> {
    /// Sees a signal outside any block.
    struct One(Option<Signalled>);
    impl Probe for One {
        fn visit_atom(&mut self, _: &str, atom: &dyn Atom) {
            self.0 = Some(Signalled { field: String::new(), input: true, bits: atom.bits(), kind: atom.descriptor() });
        }
    }
    let mut one = One(None);
    signal.accept(name, &mut one);
    one.0.map(|signal| Port { name: name.into(), signals: vec![signal] })
}

#[derive(Default)]
struct Wiring<'a> {
    ports: &'a [(String, Vec<Port>)],
    inputs: Vec<(String, Port)>,
    faults: Vec<String>,
    plain: Vec<VerilogStatement>,
    links: Vec<VerilogLink>,
    exposed: Vec<(String, Vec<Mirror>)>,
    joints: Vec<Joint>,
    /// Driver of every driven signal.
    driven: HashMap<String, String>,
    used: HashSet<String>,
}

impl Wiring<'_> {
    fn port(&self, instance: &str, name: &str) -> Option<&Port> {
        self.ports.iter().find(|(n, _)| n == instance)?.1.iter().find(|p| p.name == name)
    }

    /// What `text` names. `inside`: an input of the assembly may be meant.
    fn end(&mut self, text: &str) -> Option<End> {
        let found = match text.split_once('.') {
            None => self.inputs.iter().find(|(name, _)| name == text).map(|(_, port)| end_of("", text, port, None)),
            Some((instance, rest)) => match (self.port(instance, rest), rest.rsplit_once('.')) {
                (Some(port), _) => Some(end_of(instance, text, port, None)),
                (None, Some((name, field))) => self.port(instance, name).filter(|p| p.signals.iter().any(|s| s.field == field)).map(|port| end_of(instance, text, port, Some(field))),
                (None, None) => None,
            },
        };
        if found.is_none() {
            self.faults.push(format!("there is no port {text}"));
        }
        found
    }

    fn drive(&mut self, sink: &str, driver: &str) {
        self.used.insert(driver.into());
        if let Some(other) = self.driven.insert(sink.into(), driver.into()) {
            self.faults.push(format!("{sink} is driven by {other} and by {driver}"));
        }
    }

    fn assign(&mut self, sink: &str, driver: &str) {
        self.plain.push(VerilogStatement::Assignment(signal(sink), signal(driver)));
    }

    /// The input `name` of every instance that has one, from `from`.
    fn common(&mut self, name: &str, from: Option<&str>) {
        let Some(from) = from.and_then(|from| self.end(from)) else { return };
        for (instance, ports) in self.ports {
            let Some(port) = ports.iter().find(|p| p.name == name && p.signals.iter().all(|s| s.input)) else { continue };
            let (sink, driver) = (format!("{instance}${}", port.signal("")), from.signals[0].0.clone());
            self.drive(&sink, &driver);
            self.assign(&sink, &driver);
        }
    }

    fn join(&mut self, from: &str, to: &str) {
        let (Some(from), Some(to)) = (self.end(from), self.end(to)) else { return };
        let one = from.signals.len() == 1 && to.signals.len() == 1;
        if from.signals.len() != to.signals.len() {
            return self.faults.push(format!("{} has {} signals, {} has {}", from.port, from.signals.len(), to.port, to.signals.len()));
        }
        for (name, signalled) in &from.signals {
            let Some((other, partner)) = to.signals.iter().find(|(_, s)| one || s.field == signalled.field) else {
                self.faults.push(format!("{} has {}, {} has not", from.port, signalled.field, to.port));
                continue;
            };
            // An input of the assembly gives, inside.
            let gives = from.owner.is_empty() || !signalled.input;
            if gives != partner.input {
                self.faults.push(format!("{name} and {other} both {}", if gives { "give" } else { "take" }));
            }
            if signalled.bits != partner.bits || format!("{:?}", signalled.kind) != format!("{:?}", partner.kind) {
                self.faults.push(format!("{name} is {}, {other} is {}", described(signalled), described(partner)));
            }
            let (sink, driver) = if gives { (other, name) } else { (name, other) };
            self.drive(sink, driver);
            if from.interface && to.interface {
                let details = VerilogLinkDetails { my_name: signalled.field.clone(), owner_name: verilog(&from.port), other_name: verilog(&to.port) };
                self.links.push(if gives { VerilogLink::Forward(details) } else { VerilogLink::Backward(details) });
            } else {
                self.assign(sink, driver);
            }
        }
        self.joints.push(Joint { from: from.port, to: to.port, waits: from.waits && to.waits, carries: from.carries });
    }

    fn expose(&mut self, port: &str, inner: &str) {
        let Some(end) = self.end(inner) else { return };
        if end.owner.is_empty() || self.exposed.iter().any(|(name, _)| name == port) || self.inputs.iter().any(|(name, _)| name == port) {
            return self.faults.push(format!("{port} cannot show {inner}"));
        }
        let mut mirrors = Vec::new();
        for (name, signalled) in &end.signals {
            let outside = if end.interface { format!("{}${}", verilog(port), signalled.field) } else { verilog(port) };
            let kind = if signalled.input { AtomKind::InputParameter } else { AtomKind::OutputParameter };
            let field = if end.interface { signalled.field.clone() } else { String::new() };
            mirrors.push(Mirror { name: field, kind, bits: signalled.bits, descriptor: signalled.kind.clone() });
            if signalled.input {
                self.drive(name, &outside);
            } else {
                self.used.insert(name.clone());
            }
            if end.interface {
                self.links.push(VerilogLink::Forward(VerilogLinkDetails { my_name: signalled.field.clone(), owner_name: verilog(port), other_name: verilog(&end.port) }));
            } else if signalled.input {
                self.assign(name, &outside);
            } else {
                self.assign(&outside, name);
            }
        }
        self.exposed.push((port.into(), mirrors));
        self.joints.push(Joint { from: port.into(), to: end.port, waits: end.waits, carries: end.carries });
    }

    /// All events side by side in one vector, in the order of their lines.
    fn count(&mut self, counted: &[(&String, usize)], counts: Option<&(String, usize)>) -> Vec<Mirror> {
        let Some((input, width)) = counts else {
            if !counted.is_empty() {
                self.faults.push("events are counted, and nobody counts".into());
            }
            return Vec::new();
        };
        let all: usize = counted.iter().map(|(_, n)| n).sum();
        if all > *width {
            self.faults.push(format!("{all} counters, {input} has room for {width}"));
        }
        const VECTOR: &str = "counted";
        let wide = |e: VerilogExpression| VerilogExpression::Cast(Box::new(e), *width);
        let nested = |e: VerilogExpression| VerilogExpression::Paren(Box::new(e));
        self.plain.push(VerilogStatement::Assignment(signal(VECTOR), wide(VerilogExpression::Literal(0u32.into()))));
        let mut at = 0usize;
        for (events, n) in counted {
            let Some(end) = self.end(events) else { continue };
            let (name, signalled) = &end.signals[0];
            if signalled.bits != *n {
                self.faults.push(format!("{events} has {} bits for {n} names", signalled.bits));
            }
            self.used.insert(name.clone());
            self.joints.push(Joint { from: end.port.clone(), to: input.clone(), waits: false, carries: "events".into() });
            let events = wide(signal(name));
            let shifted = if at == 0 { events } else { VerilogExpression::Binary(Box::new(events), VerilogOp::Shl, Box::new(VerilogExpression::Literal((at as u32).into()))) };
            self.plain.push(VerilogStatement::Assignment(signal(VECTOR), VerilogExpression::Binary(Box::new(signal(VECTOR)), VerilogOp::BitOr, Box::new(nested(shifted)))));
            at += n;
        }
        if let Some(end) = self.end(input) {
            let sink = end.signals[0].0.clone();
            self.drive(&sink, VECTOR);
            self.assign(&sink, VECTOR);
        }
        vec![Mirror { name: VECTOR.into(), kind: AtomKind::LocalSignal, bits: *width, descriptor: TypeDescriptor { name: VECTOR.into(), kind: TypeKind::Bits(*width) } }]
    }

    /// Ports that nobody uses: what they offer is taken, their other inputs are zero.
    fn leave_alone(&mut self, optional: &[String]) {
        for name in optional {
            let Some(end) = self.end(name) else { continue };
            let used = |(name, s): &(String, Signalled)| if s.input { self.driven.contains_key(name) } else { self.used.contains(name) };
            if end.signals.iter().any(used) {
                continue;
            }
            for (name, s) in &end.signals {
                if s.input {
                    self.driven.insert(name.clone(), "nobody".into());
                    let value = VerilogExpression::Literal(u32::from(s.field == "ready").into());
                    self.plain.push(VerilogStatement::Assignment(signal(name), VerilogExpression::Cast(Box::new(value), s.bits)));
                } else {
                    self.used.insert(name.clone());
                }
            }
        }
    }

    /// Inputs without a driver, outputs that nobody listens to, and exceptions that are none.
    fn finish(&mut self, open: &[String]) {
        let mut excused = HashSet::new();
        for (instance, ports) in self.ports {
            for port in ports {
                for s in &port.signals {
                    let name = format!("{instance}${}", port.signal(&s.field));
                    let listed = format!("{instance}.{}", port.name);
                    if s.input && !self.driven.contains_key(&name) {
                        self.faults.push(format!("{name} has no driver"));
                    } else if !s.input && !self.used.contains(&name) {
                        if open.contains(&listed) {
                            excused.insert(listed);
                        } else {
                            self.faults.push(format!("nobody listens to {name}"));
                        }
                    }
                }
            }
        }
        self.faults.extend(open.iter().filter(|port| !excused.contains(*port)).map(|port| format!("{port} is called open, and is not")));
    }
}

fn end_of(instance: &str, text: &str, port: &Port, field: Option<&str>) -> End {
    let owner = if instance.is_empty() { String::new() } else { format!("{instance}$") };
    let signals = port.signals.iter().filter(|s| field.is_none_or(|f| f == s.field)).map(|s| (format!("{owner}{}", port.signal(&s.field)), s.clone())).collect();
    let whole = field.is_none();
    End { signals, owner, port: text.into(), interface: whole && port.signals.iter().any(|s| !s.field.is_empty()), waits: whole && port.waits(), carries: port.carries().into() }
}

fn signal(name: &str) -> VerilogExpression {
    VerilogExpression::Signal(name.into())
}

/// A port of the list as Verilog writes it.
fn verilog(port: &str) -> String {
    port.replace(['.', '['], "$").replace(']', "")
}

fn described(s: &Signalled) -> String {
    format!("{} of {} bits", s.kind.name, s.bits)
}
