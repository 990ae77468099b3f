//! The ports of a block, found by looking at it.

use rust_hdl::prelude::*;

/// A signal at the border of a block.
#[derive(Clone, Debug)]
pub struct Signalled {
    /// Name behind that of its port: `data`, `valid`; empty for a port that is one signal.
    pub field: String,
    pub input: bool,
    pub bits: usize,
    pub kind: TypeDescriptor,
}

/// A port: one signal, or the signals of an interface.
#[derive(Clone, Debug)]
pub struct Port {
    /// As it is written in a list: `s_small[0]`.
    pub name: String,
    pub signals: Vec<Signalled>,
}

impl Port {
    /// Name of one of its signals in the Verilog, without the instance's.
    pub fn signal(&self, field: &str) -> String {
        let name = self.name.replace('[', "$").replace(']', "");
        if field.is_empty() {
            name
        } else {
            format!("{name}${field}")
        }
    }

    /// Whether transfers wait for the other side: it has a `ready` among its signals.
    pub fn waits(&self) -> bool {
        self.signals.iter().any(|s| s.field == "ready" || s.field.ends_with("_ready"))
    }

    /// What travels: the type of its `data`, or of its one signal.
    pub fn carries(&self) -> &str {
        let data = self.signals.iter().find(|s| s.field == "data" || s.field == "line_data").or(self.signals.first());
        data.map_or("", |s| s.kind.name.as_str())
    }
}

/// The ports of `block`, in the order of their declaration.
pub fn of(block: &dyn Block) -> Vec<Port> {
    let mut seen = Seen::default();
    block.accept("block", &mut seen);
    seen.ports
}

#[derive(Default)]
struct Seen {
    depth: usize,
    buses: Vec<String>,
    ports: Vec<Port>,
}

/// `a$3` is `a[3]`.
fn listed(name: &str) -> String {
    match name.rsplit_once('$') {
        Some((base, n)) if !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => format!("{base}[{n}]"),
        _ => name.into(),
    }
}

impl Probe for Seen {
    fn visit_start_scope(&mut self, _: &str, _: &dyn Block) {
        self.depth += 1;
    }
    fn visit_end_scope(&mut self, _: &str, _: &dyn Block) {
        self.depth -= 1;
    }
    fn visit_start_namespace(&mut self, name: &str, _: &dyn Block) {
        self.buses.push(name.into());
    }
    fn visit_end_namespace(&mut self, _: &str, _: &dyn Block) {
        self.buses.pop();
    }
    fn visit_atom(&mut self, name: &str, atom: &dyn Atom) {
        if self.depth != 1 || !atom.kind().is_parameter() {
            return;
        }
        let (port, field) = match self.buses.split_first() {
            Some((bus, inner)) => (listed(bus), inner.iter().map(|b| format!("{b}$")).collect::<String>() + name),
            None => (listed(name), String::new()),
        };
        let signal = Signalled { field, input: atom.kind() == AtomKind::InputParameter, bits: atom.bits(), kind: atom.descriptor() };
        match self.ports.iter_mut().find(|p| p.name == port) {
            Some(port) => port.signals.push(signal),
            None => self.ports.push(Port { name: port, signals: vec![signal] }),
        }
    }
}
