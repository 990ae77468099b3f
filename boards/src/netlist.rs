//! A board's top as data: modules with their ports and parameters, instances of them, and what is wired to what. No logic:
//! an expression is a net, a slice of one, a constant or a concatenation of those.

/// Direction of a port, seen from the module that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dir {
    In,
    Out,
    /// A bidirectional pin; only between a pin of the top and one instance.
    InOut,
}

/// One port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    pub name: String,
    pub dir: Dir,
    /// Bits.
    pub width: u32,
    /// Declared `[0:0]`, as vendors' wrappers do for one-bit buses.
    pub vector: bool,
}

/// What a parameter may be.
#[derive(Clone, Debug, PartialEq)]
pub enum Allowed {
    /// A string out of a list.
    OneOf(Vec<&'static str>),
    /// A number in a range, ends included. Written as it stands (`10.000`).
    Number(f64, f64),
}

/// A parameter of a module, or a property of a vendor's IP.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    pub name: &'static str,
    pub allowed: Allowed,
}

/// Who delivers a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A primitive in the vendor's own library.
    Primitive,
    /// Made by the vendor's IP generator under this module name, from the properties in [`crate::Board::ips`].
    Ip,
    /// RustHDL: a file in `target/verilog/`.
    Gateware,
}

/// A module that a top may instantiate.
#[derive(Clone, Debug)]
pub struct Module {
    pub name: String,
    pub origin: Origin,
    /// What it does and where its ports are documented.
    pub doc: &'static str,
    pub params: Vec<Param>,
    pub ports: Vec<Port>,
}

impl Module {
    /// The port of that name.
    pub fn port(&self, name: &str) -> Option<&Port> {
        self.ports.iter().find(|p| p.name == name)
    }
}

/// What a port is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A whole net. Nets have no declaration: the output that drives one gives its width.
    Net(String),
    /// Bits `high` to `low` of a net.
    Slice(String, u32, u32),
    /// A constant: width, value.
    Const(u32, u64),
    /// The first is the most significant.
    Concat(Vec<Expr>),
    /// Deliberately not connected; outputs only.
    Open,
}

/// An instance.
#[derive(Clone, Debug)]
pub struct Instance {
    pub name: String,
    pub module: String,
    pub params: Vec<(&'static str, String)>,
    /// Synthesis attributes, for what a vendor's tool wants to know besides parameters.
    pub attributes: Vec<(&'static str, &'static str)>,
    pub conns: Vec<(String, Expr)>,
}

/// The top of a board.
#[derive(Clone, Debug, Default)]
pub struct Netlist {
    pub name: String,
    pub ports: Vec<Port>,
    pub modules: Vec<Module>,
    pub instances: Vec<Instance>,
    /// Outputs of the top that are not driven by an instance through a net of their own name.
    pub assigns: Vec<(String, Expr)>,
    /// Inputs of the top that nothing reads, and why.
    pub unused: Vec<(&'static str, &'static str)>,
}

impl Netlist {
    /// The module of that name.
    pub fn module(&self, name: &str) -> Option<&Module> {
        self.modules.iter().find(|m| m.name == name)
    }

    /// Adds an instance.
    pub fn instance(&mut self, name: &str, module: &Module) -> Wiring<'_> {
        if self.module(&module.name).is_none() {
            self.modules.push(module.clone());
        }
        self.instances.push(Instance { name: name.into(), module: module.name.clone(), params: Vec::new(), attributes: Vec::new(), conns: Vec::new() });
        Wiring { instance: self.instances.last_mut().expect("just pushed"), ports: module.ports.clone() }
    }
}

/// Connects the ports of a new instance.
pub struct Wiring<'a> {
    instance: &'a mut Instance,
    ports: Vec<Port>,
}

impl Wiring<'_> {
    /// Sets a parameter.
    pub fn param(self, name: &'static str, value: &str) -> Self {
        self.instance.params.push((name, value.into()));
        self
    }

    /// Adds a synthesis attribute.
    pub fn attribute(self, name: &'static str, value: &'static str) -> Self {
        self.instance.attributes.push((name, value));
        self
    }

    /// Connects one port.
    pub fn to(self, port: &str, expr: Expr) -> Self {
        self.instance.conns.push((port.into(), expr));
        self
    }

    /// Connects ports to nets, `"port=net port=net"`; a word without `=` connects a port to the net of its own name.
    pub fn wire(self, list: &str) -> Self {
        for word in list.split_whitespace() {
            let (port, to) = word.split_once('=').unwrap_or((word, word));
            self.instance.conns.push((port.into(), net(to)));
        }
        self
    }

    /// Connects every port whose name starts with `prefix` and that has no connection yet to the net `to` + the rest of its name.
    pub fn bundle(self, prefix: &str, to: &str) -> Self {
        let left = self.unconnected();
        for name in left.iter().filter_map(|n| n.strip_prefix(prefix)) {
            self.instance.conns.push((format!("{prefix}{name}"), net(&format!("{to}{name}"))));
        }
        self
    }

    /// Ties every input in the list, and leaves every output in it open.
    pub fn tie(self, list: &str) -> Self {
        for name in list.split_whitespace() {
            let expr = match self.ports.iter().find(|p| p.name == name) {
                Some(p) if p.dir == Dir::In => Expr::Const(p.width, 0),
                _ => Expr::Open,
            };
            self.instance.conns.push((name.into(), expr));
        }
        self
    }

    /// Ties every input that starts with `prefix` and has no connection yet to zero; leaves such outputs open.
    pub fn tie_rest(self, prefix: &str) -> Self {
        let rest = self.unconnected().into_iter().filter(|n| n.starts_with(prefix)).collect::<Vec<_>>().join(" ");
        self.tie(&rest)
    }

    fn unconnected(&self) -> Vec<String> {
        self.ports.iter().map(|p| p.name.clone()).filter(|n| !self.instance.conns.iter().any(|(c, _)| c == n)).collect()
    }
}

/// A whole net.
pub fn net(name: &str) -> Expr {
    Expr::Net(name.into())
}

/// Ports from a table, one direction a line: `"in a b:8 c:1v"`: `b` has 8 bits, `c` is declared `[0:0]`.
/// # Panics
/// On a word that is not of that form: the tables are constants of this crate.
pub fn ports(table: &str) -> Vec<Port> {
    let mut found = Vec::new();
    for line in table.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let mut words = line.split_whitespace();
        let dir = match words.next() {
            Some("in") => Dir::In,
            Some("out") => Dir::Out,
            Some("inout") => Dir::InOut,
            other => panic!("{other:?} is no direction: {line}"),
        };
        for word in words {
            let (name, width) = word.split_once(':').unwrap_or((word, "1"));
            let bits = width.trim_end_matches('v');
            let parsed = bits.parse().unwrap_or_else(|_| panic!("{word}: {bits} is no width"));
            found.push(Port { name: name.into(), dir, width: parsed, vector: parsed > 1 || width.ends_with('v') });
        }
    }
    found
}
