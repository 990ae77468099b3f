//! Signals of an assembly that no Rust type declares: ports that mirror a port of an instance, and the vector of all events.

use rust_hdl::core::ast::VerilogLiteral;
use rust_hdl::core::constraint::PinConstraint;
use rust_hdl::core::synth::VCDValue;
use rust_hdl::prelude::*;

/// A signal by its description.
pub(super) struct Mirror {
    pub name: String,
    pub kind: AtomKind,
    pub bits: usize,
    pub descriptor: TypeDescriptor,
}

impl Atom for Mirror {
    fn bits(&self) -> usize {
        self.bits
    }
    /// The wiring has checked it.
    fn connected(&self) -> bool {
        self.kind != AtomKind::InputParameter
    }
    fn changed(&self) -> bool {
        false
    }
    fn kind(&self) -> AtomKind {
        self.kind
    }
    fn descriptor(&self) -> TypeDescriptor {
        self.descriptor.clone()
    }
    /// RustHDL's simulator is not used.
    fn vcd(&self) -> VCDValue {
        VCDValue::String(String::new())
    }
    /// RustHDL's own checks use it to tell faulty signals apart, which a mirror never is.
    fn id(&self) -> usize {
        0
    }
    fn verilog(&self) -> VerilogLiteral {
        0u32.into()
    }
    fn constraints(&self) -> Vec<PinConstraint> {
        Vec::new()
    }
}

/// An input of an instance, which the wiring drives.
struct Driven<'a>(&'a dyn Atom);

impl Atom for Driven<'_> {
    fn bits(&self) -> usize {
        self.0.bits()
    }
    fn connected(&self) -> bool {
        true
    }
    fn changed(&self) -> bool {
        self.0.changed()
    }
    fn kind(&self) -> AtomKind {
        self.0.kind()
    }
    fn descriptor(&self) -> TypeDescriptor {
        self.0.descriptor()
    }
    fn vcd(&self) -> VCDValue {
        self.0.vcd()
    }
    fn id(&self) -> usize {
        self.0.id()
    }
    fn verilog(&self) -> VerilogLiteral {
        self.0.verilog()
    }
    fn constraints(&self) -> Vec<PinConstraint> {
        self.0.constraints()
    }
}

/// Shows an instance to a probe, its inputs as driven.
pub(super) struct InsideProbe<'a> {
    pub probe: &'a mut dyn Probe,
    pub depth: usize,
}

impl Probe for InsideProbe<'_> {
    fn visit_start_scope(&mut self, name: &str, node: &dyn Block) {
        self.depth += 1;
        self.probe.visit_start_scope(name, node);
    }
    fn visit_end_scope(&mut self, name: &str, node: &dyn Block) {
        self.depth -= 1;
        self.probe.visit_end_scope(name, node);
    }
    fn visit_start_namespace(&mut self, name: &str, node: &dyn Block) {
        self.probe.visit_start_namespace(name, node);
    }
    fn visit_end_namespace(&mut self, name: &str, node: &dyn Block) {
        self.probe.visit_end_namespace(name, node);
    }
    fn visit_atom(&mut self, name: &str, atom: &dyn Atom) {
        if self.depth == 1 && atom.kind() == AtomKind::InputParameter {
            self.probe.visit_atom(name, &Driven(atom));
        } else {
            self.probe.visit_atom(name, atom);
        }
    }
}
