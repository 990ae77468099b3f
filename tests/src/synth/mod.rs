//! Area and depth of the gateware: every block top mapped by yosys, counted, walked, and compared with the committed table.

pub mod cells;
pub mod docs;
pub mod gate;
pub mod limits;
#[cfg(test)]
mod lint;
pub mod memories;
pub mod netlist;
pub mod placed;
pub mod report;
pub mod share;
pub mod subject;
pub mod table;
#[cfg(test)]
mod tests;
pub mod walk;
pub mod yosys;

use cells::{area, Area};
use ferric_boards::Board;
use ferric_hdl::tops::{self, Top};
use memories::Memory;
use netlist::Module;
use share::Share;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use subject::{Subject, Unit, What};
use verilator_sys::content_hash;
use walk::{walk, Count, Walk};
use yosys::{Family, Job, Yosys};

/// Blocks of the core that hand each other combinational signals in one cycle: mapped together with the core's own gates, because a
/// path over their borders is only shortened by a tool that sees all of it.
const TOGETHER: [&str; 3] = ["req_ctx", "req_tx", "req_rx"];

/// How a netlist came about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Mapped whole.
    Flat,
    /// Blocks mapped each on its own, then joined and walked as one netlist.
    Hierarchical,
}

/// One top mapped to one family.
pub struct Mapping {
    pub area: Area,
    /// Each cell counts.
    pub walk: Walk,
    /// Depth with a carry chain as one and hard multiplexers as none.
    pub levels_chain: u32,
    pub flow: Flow,
    /// The top's memories and what they were mapped to.
    pub memories: Vec<Memory>,
    /// Seconds of yosys; without the blocks' for a core.
    pub seconds: f32,
    /// Why the netlist is not acceptable: latches, open nets, several drivers, loops.
    pub faults: Vec<String>,
}

/// One top.
pub struct Outcome {
    pub subject: Subject,
    pub mapping: Mapping,
    /// What stands in leaves of `prim`, when it was asked for.
    pub prim: Option<Share>,
}

/// A netlist, the faults found in it, and the seconds it took.
type Netlist = (Module, Vec<String>, f32);

/// The flow's settings.
pub struct Flows {
    yosys: Yosys,
    verilog: PathBuf,
    /// Map the core flat too, as long as it takes (an hour at most).
    pub flat_core: bool,
    /// Map once more to see the share of `prim`.
    pub share: bool,
}

impl Flows {
    /// `out`: folder for reports and caches.
    pub fn new(out: &Path) -> Result<Self, String> {
        let verilog = out.join("verilog").join(ferric_hdl::card::SOURCE_HASH);
        std::fs::create_dir_all(&verilog).map_err(|e| format!("{}: {e}", verilog.display()))?;
        Ok(Self { yosys: Yosys::new(out.join("cache"))?, verilog, flat_core: false, share: false })
    }

    /// Version of the mapper. Errors: it is not installed.
    pub fn version(&self) -> Result<String, String> {
        self.yosys.version().map(|v| v.split(',').next().unwrap_or(v).trim_start_matches("Yosys ").replace(" (git sha1 ", "+"))
    }

    /// What `make` says of a top, kept in a file until the sources change.
    fn kept(&self, name: &str, extension: &str, make: impl Fn() -> Result<String, String>) -> Result<String, String> {
        let file = self.verilog.join(format!("{name}.{extension}"));
        if let Ok(text) = std::fs::read_to_string(&file) {
            return Ok(text);
        }
        let text = make()?;
        std::fs::write(&file, &text).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(text)
    }

    fn verilog(&self, unit: Unit) -> Result<String, String> {
        self.kept(&unit.file(), "v", || unit.emit())
    }

    /// Hashes of what the mapper is given for each subject. That of a core that is simulated is the simulated card's: the same gateware, and a
    /// test has made it already.
    pub fn hashes(&self, subjects: &[Subject]) -> Vec<Result<String, String>> {
        let next = Mutex::new(0..subjects.len());
        let mut found: Vec<(usize, Result<String, String>)> = Vec::new();
        std::thread::scope(|scope| {
            let work = || {
                let mut found = Vec::new();
                while let Some(n) = {
                    let mut next = next.lock().expect("no panic");
                    next.next()
                } {
                    found.push((n, self.hash(&subjects[n].what, subjects[n].family)));
                }
                found
            };
            let workers = [scope.spawn(work), scope.spawn(work)];
            found.extend(workers.into_iter().flat_map(|w| w.join().expect("no panic")));
        });
        found.sort_by_key(|(n, _)| *n);
        found.into_iter().map(|(_, hash)| hash).collect()
    }

    fn hash(&self, what: &What, family: Family) -> Result<String, String> {
        match what {
            What::Unit(unit) => Ok(text_hash(&self.verilog(*unit)?, family)),
            What::Core(top) if !subject::is_default(top) => Ok(text_hash(&self.verilog(Unit::Block(top))?, family)),
            What::Core(top) => Ok(text_hash(&ferric_sim::device::card_verilog(top.width.unwrap_or(0)).map_err(|e| e.to_string())?, family)),
            What::Board(board) => {
                let mut names: Vec<&str> = subject::gateware(&board.top).into_iter().map(|(_, module)| module).collect();
                names.dedup();
                let hashes: Result<Vec<String>, String> = names.into_iter().map(|n| self.hash(&subject::module(n)?, family)).collect();
                Ok(joined_hash(&subject::wiring(board), &hashes?))
            }
        }
    }

    /// Maps and measures one subject.
    pub fn run(&self, subject: &Subject) -> Result<Outcome, String> {
        let family = subject.family;
        let mapping = match &subject.what {
            What::Unit(unit) => measure(self.flat(*unit, family)?, Flow::Flat, vec![])?,
            What::Core(top) => {
                let (netlist, flow) = self.core(top, family)?;
                let memories = memories::read(&self.verilog(Unit::Block(top))?, top.name, &netlist.0);
                measure(netlist, flow, memories)?
            }
            What::Board(board) => measure(self.board(board, family)?, Flow::Hierarchical, vec![])?,
        };
        let prim = match &subject.what {
            What::Unit(Unit::Block(top)) | What::Core(top) if self.share => self.wanted(self.prim(top))?,
            _ => None,
        };
        Ok(Outcome { subject: subject.clone(), mapping, prim })
    }

    /// Only what is known: the rest may be missing.
    pub fn known_only(&mut self) {
        self.yosys.known_only = true;
    }

    fn wanted<R>(&self, found: Result<R, String>) -> Result<Option<R>, String> {
        match found {
            Err(_) if self.yosys.known_only => Ok(None),
            found => found.map(Some),
        }
    }

    /// The share of `prim`; of a core the sum over its blocks, as a card with every engine has them.
    fn prim(&self, top: &'static Top) -> Result<Share, String> {
        let verilog = self.verilog(Unit::Block(top))?;
        if !subject::is_core(top) {
            let leaves = self.kept(top.name, "leaves", || Ok(top.leaves()?.join("\n")))?;
            let leaves: Vec<String> = leaves.lines().map(String::from).collect();
            let job = Job { top: top.name, verilog: &verilog, family: Family::Xcup };
            let stat = self.yosys.count(&job, &leaves).map_err(|e| format!("{}, share of prim: {e}", top.name))?;
            return share::read(&stat, &BTreeSet::from_iter(leaves));
        }
        let mut sum = Share::default();
        for instance in blocks(&verilog, top) {
            sum += self.prim(block_of(&instance, top)?)?;
        }
        Ok(sum)
    }

    fn flat(&self, unit: Unit, family: Family) -> Result<Netlist, String> {
        self.mapped(unit.name(), &self.verilog(unit)?, &[], family)
    }

    fn mapped(&self, top: &str, verilog: &str, boxes: &[String], family: Family) -> Result<Netlist, String> {
        let mapped = self.yosys.map(&Job { top, verilog, family }, boxes).map_err(|e| format!("{top} on {}: {e}", family.name()))?;
        Ok((netlist::read(&mapped.json, top)?, mapped.faults, mapped.seconds))
    }

    fn core(&self, top: &'static Top, family: Family) -> Result<(Netlist, Flow), String> {
        if self.flat_core {
            match self.flat(Unit::Block(top), family) {
                Ok(netlist) => return Ok((netlist, Flow::Flat)),
                Err(e) => eprintln!("{e}; mapping its blocks instead"),
            }
        }
        Ok((self.joined(top, family)?, Flow::Hierarchical))
    }

    /// The core: its own few gates and [`TOGETHER`] with the other blocks as boxes, then those blocks' netlists in the boxes' place.
    fn joined(&self, top: &'static Top, family: Family) -> Result<Netlist, String> {
        let verilog = self.verilog(Unit::Block(top))?;
        let mut instances = blocks(&verilog, top);
        instances.retain(|i| !TOGETHER.contains(&i.as_str()));
        let boxes: Vec<String> = instances.iter().map(|i| format!("{}${i}", top.name)).collect();
        let glue = self.mapped(top.name, &verilog, &boxes, family)?;
        let mut places: Vec<(String, What)> = Vec::new();
        for instance in instances {
            let block = block_of(&instance, top)?;
            // Kept as long as the program runs, as the tops are.
            let name: &'static str = instance.clone().leak();
            places.push((instance, What::Unit(Unit::Part { core: top, instance: name, block })));
        }
        self.filled(glue, places, family)
    }

    /// A board's top: its wiring and what of the vendor's stands in it, with the netlists of our modules in their places.
    fn board(&self, board: &Board, family: Family) -> Result<Netlist, String> {
        let mut glue = self.mapped(&board.top.name, &subject::with_stubs(board), &[], family)?;
        let gateware = subject::gateware(&board.top);
        for cell in glue.0.cells.values_mut() {
            if board.top.modules.iter().any(|m| m.name == cell.kind) && !gateware.iter().any(|(_, m)| *m == cell.kind) {
                cell.kind = cells::BORDER.into();
            }
        }
        let places: Result<Vec<_>, String> = gateware.into_iter().map(|(i, m)| Ok((i.to_string(), subject::module(m)?))).collect();
        self.filled(glue, places?, family)
    }

    /// `outer` with a netlist in the place of each instance named.
    fn filled(&self, (outer, mut faults, seconds): Netlist, places: Vec<(String, What)>, family: Family) -> Result<Netlist, String> {
        let mut known: BTreeMap<&str, Module> = BTreeMap::new();
        let mut names: BTreeMap<String, &str> = BTreeMap::new();
        for (instance, what) in places {
            let (name, netlist) = match what {
                What::Unit(unit) if known.contains_key(unit.name()) => (unit.name(), None),
                What::Unit(unit) => (unit.name(), Some(self.flat(unit, family)?)),
                What::Core(top) => (top.name, Some(self.core(top, family)?.0)),
                What::Board(board) => return Err(format!("{} stands inside a top", board.key)),
            };
            if let Some((module, found, _)) = netlist {
                faults.extend(found.into_iter().map(|f| format!("{name}: {f}")));
                known.insert(name, module);
            }
            names.insert(instance, name);
        }
        let places = names.into_iter().map(|(i, b)| (i, &known[b])).collect();
        Ok((outer.inline(&places)?, faults, seconds))
    }
}

/// The text that the mapper reads, without what it does not: comments, indentation, empty lines, what is defined for other parts or for simulations.
fn text_hash(verilog: &str, family: Family) -> String {
    let mut text = String::with_capacity(verilog.len());
    // Of each `ifdef around the line whether it is one of ours, and whether what stands there is read.
    let mut around: Vec<(bool, bool)> = Vec::new();
    for line in verilog.lines().map(|l| l.split("//").next().unwrap_or_default().trim()).filter(|l| !l.is_empty()) {
        let ours = line.strip_prefix("`ifdef ").filter(|name| name.starts_with("FERRIC_"));
        match line.split(' ').next() {
            Some("`ifdef" | "`ifndef") => around.push((ours.is_some(), ours.is_none_or(|name| family.define() == Some(name)))),
            Some("`else") => around.iter_mut().rev().take(1).filter(|(ours, _)| *ours).for_each(|(_, read)| *read = !*read),
            _ => {}
        }
        let directive = line.starts_with('`') && around.last().is_some_and(|(ours, _)| *ours);
        if !directive && around.iter().all(|(_, read)| *read) {
            text += line;
            text.push('\n');
        }
        if line == "`endif" {
            around.pop();
        }
    }
    content_hash(&[&text, &family.synth("top")])
}

/// A board: its wiring and the modules in it.
pub fn joined_hash(wiring: &str, modules: &[String]) -> String {
    content_hash(&[&[wiring], &modules.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat())
}

/// Instances in a core that a top stands for; the others are its own registers.
fn blocks(verilog: &str, core: &Top) -> Vec<String> {
    let mut found = instances(verilog, core.name);
    found.retain(|i| block_of(i, core).is_ok());
    found
}

fn block_of(instance: &str, core: &Top) -> Result<&'static Top, String> {
    tops::in_core(instance, core.width.unwrap_or(0)).ok_or_else(|| format!("no top stands for the core's {instance}"))
}

/// Names of the blocks right below `top`: modules are called by their path, parts joined by `$`.
fn instances(verilog: &str, top: &str) -> Vec<String> {
    let modules = verilog.lines().filter_map(|l| l.strip_prefix("module ")?.strip_prefix(top)?.strip_prefix('$'));
    let names = modules.map(|rest| rest.split(['(', ' ', ';']).next().unwrap_or_default().to_string());
    let mut direct: Vec<String> = names.filter(|n| !n.is_empty() && !n.contains('$')).collect();
    direct.sort();
    direct.dedup();
    direct
}

fn measure((module, mut faults, seconds): Netlist, flow: Flow, memories: Vec<Memory>) -> Result<Mapping, String> {
    let area = area(module.cells.values().map(|c| c.kind.as_str()))?;
    if area.latches > 0 {
        faults.push(format!("{} latches after mapping", area.latches));
    }
    let mut walk = walk(&module, Count::Cells);
    faults.append(&mut walk.faults);
    Ok(Mapping { area, walk, levels_chain: self::walk::walk(&module, Count::Chains).levels(), flow, memories, seconds, faults })
}
