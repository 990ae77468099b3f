//! What is measured: the blocks, the modules of the boards, the cores, and the boards' tops, each on the family of the chips it is for.

use super::yosys::Family;
use ferric_boards::netlist::Netlist;
use ferric_boards::{bitstream, boards, emit, Board, Flow};
use ferric_hdl::board::tops::{self as modules, BoardTop};
use ferric_hdl::tops::{self, Top};

/// A module that the generator emits on its own.
#[derive(Clone, Copy)]
pub enum Unit {
    Block(&'static Top),
    Module(&'static BoardTop),
    /// A block as an instance of a core has it.
    Part {
        core: &'static Top,
        instance: &'static str,
        block: &'static Top,
    },
}

impl Unit {
    pub fn name(&self) -> &'static str {
        match self {
            Unit::Block(top) => top.name,
            Unit::Module(top) => top.name,
            Unit::Part { block, .. } => block.name,
        }
    }

    /// Name of the file that its Verilog is kept in.
    pub fn file(&self) -> String {
        match self {
            Unit::Part { core, block, .. } => format!("{}.{}", core.name, block.name),
            unit => unit.name().into(),
        }
    }

    /// Its Verilog. Errors: what the emitter found.
    pub fn emit(&self) -> Result<String, String> {
        match self {
            Unit::Block(top) => top.emit(),
            Unit::Module(top) => top.emit(),
            Unit::Part { core, instance, block } => core.emit_instance(instance, block),
        }
    }
}

/// How a subject comes about.
#[derive(Clone)]
pub enum What {
    /// Mapped whole.
    Unit(Unit),
    /// Joined from its blocks.
    Core(&'static Top),
    /// Joined from its modules; vendor blocks are borders.
    Board(Box<Board>),
}

/// One line of the table.
#[derive(Clone)]
pub struct Subject {
    pub name: &'static str,
    pub family: Family,
    pub what: What,
}

impl Subject {
    /// Data path bits, where the name says them.
    pub fn width(&self) -> Option<usize> {
        self.name.rsplit_once("_w").and_then(|(_, w)| w.parse().ok())
    }

    /// Too large to be mapped in a test: compared by its hash there.
    pub fn whole(&self) -> bool {
        !matches!(self.what, What::Unit(_)) || self.name.starts_with("ferric_target")
    }

    /// How it is called in messages.
    pub fn label(&self) -> String {
        format!("{} on {}", self.name, self.family.name())
    }
}

fn family(board: &Board) -> Family {
    if board.flow == Flow::Ecp5 {
        Family::Ecp5
    } else {
        Family::Xcup
    }
}

/// Families of the boards whose tops instantiate `module`; of what none does, UltraScale+.
fn families(module: &str, boards: &[Board]) -> Vec<Family> {
    let mut found: Vec<Family> = Vec::new();
    for board in boards.iter().filter(|b| bitstream::modules(&b.top).contains(&module)) {
        if !found.contains(&family(board)) {
            found.push(family(board));
        }
    }
    if found.is_empty() {
        vec![Family::Xcup]
    } else {
        found
    }
}

/// Everything, in the table's order: blocks, modules of the boards, cores, boards.
pub fn all() -> Vec<Subject> {
    let boards = boards::all();
    let blocks = tops::tops().iter().filter(|t| !is_core(t)).map(Unit::Block);
    let units = blocks.chain(modules::TOPS.iter().map(Unit::Module));
    let mut all: Vec<Subject> = units.flat_map(|u| families(u.name(), &boards).into_iter().map(move |family| Subject { name: u.name(), family, what: What::Unit(u) })).collect();
    all.extend(tops::tops().iter().filter(|t| is_core(t)).map(|t| Subject { name: t.name, family: Family::Xcup, what: What::Core(t) }));
    all.extend(boards.into_iter().map(|b| Subject { name: top_name(b.key), family: family(&b), what: What::Board(Box::new(b)) }));
    all
}

pub fn is_core(top: &Top) -> bool {
    top.name.starts_with("core_")
}

/// Whether a core is the card that is simulated and that boards hold.
pub fn is_default(core: &Top) -> bool {
    core.name.starts_with("core_w")
}

/// The name of a board's top module, as the table has it.
fn top_name(key: &str) -> &'static str {
    match key {
        "u50" => "ferric_u50",
        "u250" => "ferric_u250",
        "f2" => "ferric_f2",
        _ => "ferric_ecpix5",
    }
}

/// What stands for the gateware module `name` of a board's top.
pub fn module(name: &str) -> Result<What, String> {
    if let Some(core) = name.strip_prefix("ferric_w").and_then(|w| tops::find(&format!("core_w{w}"))) {
        return Ok(What::Core(core));
    }
    let block = tops::find(name).map(Unit::Block);
    block.or_else(|| modules::find(name).map(Unit::Module)).map(What::Unit).ok_or_else(|| format!("the generator has no module {name}"))
}

/// Instances of gateware in a top: name, module.
pub fn gateware(top: &Netlist) -> Vec<(&str, &str)> {
    let modules = bitstream::modules(top);
    top.instances.iter().filter(|i| modules.contains(&i.module.as_str())).map(|i| (i.name.as_str(), i.module.as_str())).collect()
}

/// The text of a board's top alone.
pub fn wiring(board: &Board) -> String {
    emit::files(board).into_iter().find(|(name, _)| name == "top.v").map(|f| f.1).unwrap_or_default()
}

/// The same with a stub for each module in it.
pub fn with_stubs(board: &Board) -> String {
    emit::lint(board).into_iter().filter(|(name, _)| name.ends_with(".v")).map(|f| f.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_measured_on_the_chips_it_is_for() {
        let all = all();
        let labels: Vec<String> = all.iter().map(Subject::label).collect();
        for (n, label) in labels.iter().enumerate() {
            assert!(!labels[..n].contains(label), "{label} stands twice");
        }
        let has = |label: &str| labels.iter().any(|l| l == label);
        assert!(has("sq_w64 on xcup") && has("core_w512 on xcup") && has("ferric_u50 on xcup"));
        assert!(has("ferric_target_w64 on ecp5") && !has("ferric_target_w64 on xcup"));
        assert!(has("ferric_reset on ecp5") && has("ferric_reset on xcup") && has("ferric_ecpix5 on ecp5"));
        for top in tops::tops() {
            assert!(all.iter().any(|s| s.name == top.name), "{}", top.name);
        }
        for top in modules::TOPS {
            assert!(all.iter().any(|s| s.name == top.name), "{}", top.name);
        }
        for board in boards::all() {
            assert_eq!(top_name(board.key), board.top.name);
            for (_, name) in gateware(&board.top) {
                assert!(module(name).is_ok(), "{name}");
            }
        }
        let whole: Vec<&str> = all.iter().filter(|s| s.whole()).map(|s| s.name).collect();
        assert_eq!(whole, ["ferric_target_w64", "core_w64", "core_w512", "core_plain_w512", "ferric_u50", "ferric_u250", "ferric_f2", "ferric_ecpix5"]);
    }
}
