//! The modules of a block as Verilog text, byte for byte what RustHDL's `ModuleDefines` writes (a test compares them). Its own search goes through all
//! links of a module for every port of every instance, which takes most of a minute for a card; here each name is looked up.

use super::unrolled::unrolled;
use rust_hdl::core::ast::{VerilogLink, VerilogLiteral};
use rust_hdl::core::atom::is_atom_signed;
use rust_hdl::core::verilog_gen::{verilog_combinatorial, verilog_link_extraction};
use rust_hdl::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A signal, port or constant of a module.
#[derive(Clone)]
struct Declared {
    name: String,
    kind: AtomKind,
    width: usize,
    /// Of a constant. To bring a record into bits takes longer than all else that is done for a signal.
    value: Option<VerilogLiteral>,
    signed: bool,
}

impl Declared {
    fn of(name: String, kind: AtomKind, atom: &dyn Atom) -> Self {
        let value = (kind == AtomKind::Constant).then(|| atom.verilog());
        Declared { name, kind, width: atom.bits(), value, signed: is_atom_signed(atom) }
    }

    fn text(&self) -> String {
        let keyword = match self.kind {
            AtomKind::InputParameter => "input wire",
            AtomKind::OutputParameter => "output reg",
            AtomKind::OutputPassthrough => "output wire",
            AtomKind::InOutParameter => "inout wire",
            AtomKind::StubInputSignal | AtomKind::LocalSignal => "reg",
            AtomKind::StubOutputSignal => "wire",
            AtomKind::Constant => "localparam",
        };
        let (signed, name) = (if self.signed { "signed" } else { "" }, &self.name);
        match (&self.value, self.width) {
            (Some(value), _) => format!("{keyword} {signed} {name} = {value};"),
            (_, 1) => format!("{keyword} {signed} {name};"),
            (_, width) => format!("{keyword} {signed} [{}:0] {name};", width - 1),
        }
    }
}

/// One module: what it declares, what it holds, what it does.
#[derive(Default)]
struct Module {
    declared: Vec<Declared>,
    /// Instances: name, and module.
    children: Vec<(String, String)>,
    /// Names of the values of enumerations, and the values, in order of appearance.
    labels: Vec<(String, usize)>,
    known: HashSet<(String, String, usize)>,
    code: Option<Verilog>,
    links: Vec<VerilogLink>,
}

/// Collects modules while a block shows its parts.
#[derive(Default)]
pub(crate) struct Modules {
    path: NamedPath,
    /// Interfaces around the signal that is visited.
    buses: NamedPath,
    modules: BTreeMap<String, Module>,
}

/// The two signals that a link joins, the driven one in no fixed place.
fn ends(link: &VerilogLink) -> (String, String) {
    let (VerilogLink::Forward(d) | VerilogLink::Backward(d) | VerilogLink::Bidirectional(d)) = link;
    if d.my_name.is_empty() && matches!(link, VerilogLink::Bidirectional(_)) {
        return (d.owner_name.clone(), d.other_name.clone());
    }
    let (owner, other) = (format!("{}${}", d.owner_name, d.my_name), format!("{}${}", d.other_name, d.my_name));
    if matches!(link, VerilogLink::Backward(_)) {
        (owner, other)
    } else {
        (other, owner)
    }
}

/// A link between two instances.
fn joined(link: &VerilogLink) -> String {
    let plain = |name: &str| name.replace('[', "$").replace(']', "");
    match link {
        VerilogLink::Forward(d) => format!("always @(*) {}${m} = {}${m};", plain(&d.other_name), plain(&d.owner_name), m = d.my_name),
        VerilogLink::Backward(d) => format!("always @(*) {}${m} = {}${m};", plain(&d.owner_name), plain(&d.other_name), m = d.my_name),
        VerilogLink::Bidirectional(d) if d.my_name.is_empty() => format!("assign {} = {};", d.owner_name, d.other_name),
        VerilogLink::Bidirectional(d) => format!("assign {}${m} = {}${m};", d.owner_name, d.other_name, m = d.my_name),
    }
}

/// Text with an indentation for each line.
#[derive(Default)]
struct Page {
    text: String,
    depth: usize,
}

impl Page {
    fn add(&mut self, lines: &str) {
        for line in lines.split_terminator('\n') {
            (0..self.depth).for_each(|_| self.text.push_str("    "));
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    /// A heading, and a line for each of what is under it, if there is any.
    fn list(&mut self, heading: &str, lines: Vec<String>, always: bool) {
        if always || !lines.is_empty() {
            self.add(heading);
            lines.iter().for_each(|line| self.add(line));
        }
    }
}

impl Modules {
    fn module(&mut self, path: String) -> &mut Module {
        self.modules.entry(path).or_default()
    }

    fn add_labels(module: &mut Module, kind: &TypeDescriptor) {
        match &kind.kind {
            TypeKind::Enum(labels) => {
                for (value, label) in labels.iter().enumerate() {
                    if module.known.insert((kind.name.clone(), label.clone(), value)) {
                        module.labels.push((label.replace("::", "$"), value));
                    }
                }
            }
            TypeKind::Composite(fields) => fields.iter().for_each(|field| Self::add_labels(module, &field.kind)),
            _ => {}
        }
    }

    /// The text of all modules. An error names modules that are foreign Verilog, which Ferric has none of.
    pub(crate) fn text(&self) -> Result<String, Vec<String>> {
        let mut page = Page::default();
        let mut faults = Vec::new();
        for (name, module) in self.modules.iter().filter(|(name, _)| !name.is_empty()) {
            match &module.code {
                Some(Verilog::Blackbox(_) | Verilog::Wrapper(_)) => faults.push(format!("module {name} wraps foreign Verilog")),
                code => self.write(name, module, code.as_ref(), &mut page),
            }
        }
        if faults.is_empty() {
            Ok(page.text)
        } else {
            Err(faults)
        }
    }

    fn write(&self, name: &str, module: &Module, code: Option<&Verilog>, page: &mut Page) {
        let pairs: Vec<(String, String)> = module.links.iter().map(ends).collect();
        let mut across: HashMap<&str, Vec<&str>> = HashMap::new();
        for (a, b) in &pairs {
            across.entry(a).or_default().push(b);
            if a != b {
                across.entry(b).or_default().push(a);
            }
        }
        let ports: Vec<&Declared> = module.declared.iter().filter(|d| d.kind.is_parameter()).collect();
        let arguments: HashSet<&str> = ports.iter().map(|d| d.name.as_str()).collect();
        // The name that a child's signal is linked to; whether a port of this module is.
        let linked = |name: &str| across.get(name).map(|others| others[0].to_string());
        let is_port = |name: &str| across.get(name).is_some_and(|others| others.iter().any(|other| arguments.contains(other)));
        let mut passed = HashSet::new();
        for (child, kind) in &module.children {
            for d in &self.modules[kind].declared {
                let signal = format!("{child}${}", d.name);
                passed.insert(linked(&signal).unwrap_or(signal));
            }
        }

        page.add(&format!("\n\nmodule {name}({});", ports.iter().map(|d| d.name.as_str()).collect::<Vec<_>>().join(",")));
        page.depth += 1;
        let declaration = |d: &&Declared| {
            // A child drives it.
            let through = d.kind == AtomKind::OutputParameter && passed.contains(&d.name);
            if through {
                Declared { kind: AtomKind::OutputPassthrough, ..(*d).clone() }.text()
            } else {
                d.text()
            }
        };
        page.list("\n// Module arguments", ports.iter().map(declaration).collect(), false);
        let of = |kind: AtomKind| module.declared.iter().filter(|d| d.kind == kind).map(Declared::text).collect::<Vec<_>>();
        page.list("\n// Constant declarations", of(AtomKind::Constant), false);
        page.list("\n// Enums", module.labels.iter().map(|(label, value)| format!("localparam {label} = {value};")).collect(), false);
        let stubs: Vec<&Declared> = module.declared.iter().filter(|d| d.kind.is_stub()).collect();
        page.list("\n// Stub signals", stubs.iter().filter(|d| !is_port(&d.name)).map(|d| d.text()).collect(), !stubs.is_empty());
        page.list("\n// Local signals", of(AtomKind::LocalSignal), false);
        if !module.children.is_empty() {
            page.add("\n// Sub module instances");
        }
        for (child, kind) in &module.children {
            let pins: Vec<String> = self.modules[kind]
                .declared
                .iter()
                .filter(|d| d.kind.is_parameter())
                .map(|d| {
                    let signal = format!("{child}${}", d.name);
                    let to = if is_port(&signal) { linked(&signal).unwrap_or(signal) } else { signal };
                    format!(".{}({to})", d.name)
                })
                .collect();
            page.add(&format!("{kind} {child}(\n"));
            page.depth += 1;
            page.add(&pins.join(",\n"));
            page.depth -= 1;
            page.add(");\n");
        }
        match code {
            Some(Verilog::Combinatorial(code)) => {
                page.add("\n// Update code");
                page.add(&verilog_combinatorial(code));
            }
            Some(Verilog::Custom(text)) => {
                page.add("\n// Update code (custom)");
                page.add(text);
            }
            _ => {}
        }
        for (link, (a, b)) in module.links.iter().zip(&pairs) {
            if !arguments.contains(a.as_str()) && !arguments.contains(b.as_str()) {
                page.add(&joined(link));
            }
        }
        page.depth -= 1;
        page.add(&format!("endmodule // {name}"));
    }
}

impl Probe for Modules {
    fn visit_start_scope(&mut self, name: &str, node: &dyn Block) {
        let parent = self.path.to_string();
        self.path.push(name);
        self.buses.reset();
        let path = self.path.to_string();
        self.module(parent).children.push((name.into(), path.clone()));
        let code = match node.hdl() {
            Verilog::Combinatorial(code) => Verilog::Combinatorial(unrolled(&code)),
            other => other,
        };
        let module = self.module(path);
        module.links = if let Verilog::Combinatorial(code) = &code { verilog_link_extraction(code) } else { Vec::new() };
        module.code = Some(code);
    }

    fn visit_end_scope(&mut self, _: &str, _: &dyn Block) {
        self.path.pop();
    }

    fn visit_start_namespace(&mut self, name: &str, _: &dyn Block) {
        self.buses.push(name);
    }

    fn visit_end_namespace(&mut self, _: &str, _: &dyn Block) {
        self.buses.pop();
    }

    fn visit_atom(&mut self, name: &str, atom: &dyn Atom) {
        let name = if self.buses.is_empty() { name.to_string() } else { format!("{}${name}", self.buses.flat("$")) };
        let (path, parent, kind) = (self.path.to_string(), self.path.parent(), atom.descriptor());
        if atom.kind().is_parameter() {
            let stub = if atom.kind() == AtomKind::InputParameter { AtomKind::StubInputSignal } else { AtomKind::StubOutputSignal };
            let outside = Declared::of(format!("{}${name}", self.path.last()), stub, atom);
            self.module(parent.clone()).declared.push(outside);
        }
        let own = Declared::of(name, atom.kind(), atom);
        let module = self.module(path);
        Self::add_labels(module, &kind);
        module.declared.push(own);
        Self::add_labels(self.module(parent), &kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RustHDL's own text of some blocks: with interfaces, arrays, enumerations, constants, children of children.
    #[test]
    fn the_text_is_what_rust_hdl_writes() {
        fn compare<B: Block>(name: &str, mut block: B) {
            block.connect_all();
            let (mut theirs, mut ours) = (ModuleDefines::default(), Modules::default());
            block.accept(name, &mut theirs);
            block.accept(name, &mut ours);
            let (theirs, ours) = (theirs.defines(), ours.text().expect("no foreign Verilog"));
            let differs = theirs.lines().zip(ours.lines()).find(|(a, b)| a != b);
            assert!(theirs == ours, "{name}: {differs:?}");
        }
        compare("requester", crate::roce::requester::alone::<3, 11>());
        compare("sq", crate::host::sq::SendQueue::<4, 128, 7, 10>::default());
        compare("mr", crate::rdma::mr::MemoryKeys::<4, 9, 4>::default());
        compare("chaos", crate::stream::chaos::scoped(7, || crate::host::dma_wr::for_number::<512, 64, 6>(4)));
        compare("target", crate::memory_target::Target::new(0x02_00_00_00_00_01, 0x0a00_0001));
    }
}
