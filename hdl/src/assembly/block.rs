//! The assembled block, as RustHDL sees it.

use super::atoms::{InsideProbe, Mirror};
use super::ports::Port;
use super::wiring::Joint;
use super::Waits;
use rust_hdl::prelude::*;

/// A block of any type, for an instance whose type the list decides.
pub struct AnyBlock(Box<dyn Block>);

impl AnyBlock {
    pub fn new(block: impl Block + 'static) -> Self {
        AnyBlock(Box::new(block))
    }
}

impl Logic for AnyBlock {
    fn update(&mut self) {
        self.0.update();
    }
    fn connect(&mut self) {
        self.0.connect();
    }
    fn hdl(&self) -> Verilog {
        self.0.hdl()
    }
}

impl Block for AnyBlock {
    fn connect_all(&mut self) {
        self.0.connect_all();
    }
    fn update_all(&mut self) {
        self.0.update_all();
    }
    fn has_changed(&self) -> bool {
        self.0.has_changed()
    }
    fn accept(&self, name: &str, probe: &mut dyn Probe) {
        self.0.accept(name, probe);
    }
}

/// An [`Assembly`](super::Assembly) with its wires resolved. It is emitted like any block; RustHDL's simulator, which Ferric does not use, cannot run it.
pub struct Assembled {
    pub(super) inputs: Vec<(String, AnyBlock)>,
    /// Ports that are those of an instance, by the name of the port.
    pub(super) exposed: Vec<(String, Vec<Mirror>)>,
    pub(super) locals: Vec<Mirror>,
    pub(super) children: Vec<(String, AnyBlock)>,
    pub(super) code: Vec<rust_hdl::core::ast::VerilogStatement>,
    /// Every instance with its ports.
    pub ports: Vec<(String, Vec<Port>)>,
    /// What is joined to what, port by port.
    pub joints: Vec<Joint>,
    /// Which ports of which instance wait for which, and which of its inputs never do.
    pub waits: Vec<(String, Waits, Vec<&'static str>)>,
}

impl Logic for Assembled {
    fn update(&mut self) {}
    fn hdl(&self) -> Verilog {
        Verilog::Combinatorial(self.code.clone())
    }
}

impl Block for Assembled {
    fn connect_all(&mut self) {
        self.children.iter_mut().for_each(|(_, child)| child.connect_all());
    }
    fn update_all(&mut self) {}
    fn has_changed(&self) -> bool {
        false
    }
    fn accept(&self, name: &str, probe: &mut dyn Probe) {
        probe.visit_start_scope(name, self);
        for (name, input) in &self.inputs {
            input.accept(name, probe);
        }
        for (port, mirrors) in &self.exposed {
            let interface = mirrors.iter().any(|m| !m.name.is_empty());
            let port = port.replace('[', "$").replace(']', "");
            if interface {
                probe.visit_start_namespace(&port, self);
            }
            mirrors.iter().for_each(|m| probe.visit_atom(if interface { &m.name } else { &port }, m));
            if interface {
                probe.visit_end_namespace(&port, self);
            }
        }
        for (name, child) in &self.children {
            child.accept(name, &mut InsideProbe { probe, depth: 0 });
        }
        self.locals.iter().for_each(|m| probe.visit_atom(&m.name, m));
        probe.visit_end_scope(name, self);
    }
}
