//! Area and depth of the gateware: every block top mapped by yosys, counted, and walked.

pub mod cells;
pub mod docs;
pub mod memories;
pub mod netlist;
pub mod report;
pub mod share;
#[cfg(test)]
mod tests;
pub mod walk;
pub mod yosys;

use cells::{area, Area};
use ferric_hdl::tops::{self, Top};
use memories::Memory;
use netlist::Module;
use share::Share;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
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
    pub top: &'static Top,
    pub xcup: Mapping,
    pub ecp5: Option<Mapping>,
    /// What stands in leaves of `prim`, xcup.
    pub prim: Option<Share>,
}

/// A netlist, the faults found in it, and the seconds it took.
type Netlist = (Module, Vec<String>, f32);

/// The flow's settings.
pub struct Flows {
    yosys: Yosys,
    verilog: PathBuf,
    /// Map the core flat too, as long as it takes (half an hour at most).
    pub flat_core: bool,
    pub ecp5: bool,
    /// Map once more to see the share of `prim`.
    pub share: bool,
}

impl Flows {
    /// `out`: folder for reports and caches.
    pub fn new(out: &Path) -> Result<Self, String> {
        let verilog = out.join("verilog").join(ferric_hdl::core::SOURCE_HASH);
        std::fs::create_dir_all(&verilog).map_err(|e| format!("{}: {e}", verilog.display()))?;
        Ok(Self { yosys: Yosys::new(out.join("cache"))?, verilog, flat_core: false, ecp5: true, share: true })
    }

    /// What `make` says of a top, kept in a file until the sources change.
    fn kept(&self, top: &Top, extension: &str, make: impl Fn() -> Result<String, String>) -> Result<String, String> {
        let file = self.verilog.join(format!("{}.{extension}", top.name));
        if let Ok(text) = std::fs::read_to_string(&file) {
            return Ok(text);
        }
        let text = make()?;
        std::fs::write(&file, &text).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(text)
    }

    fn verilog(&self, top: &Top) -> Result<String, String> {
        self.kept(top, "v", || top.emit())
    }

    /// Maps and measures one top.
    pub fn run(&self, top: &'static Top) -> Result<Outcome, String> {
        let xcup = self.family(top, Family::Xcup)?;
        let ecp5 = if self.ecp5 { self.wanted(self.family(top, Family::Ecp5))? } else { None };
        let prim = if self.share { self.wanted(self.prim(top))? } else { None };
        Ok(Outcome { top, xcup, ecp5, prim })
    }

    /// Only what is known: the rest of a top's figures may be missing.
    pub fn known_only(&mut self) {
        self.yosys.known_only = true;
    }

    fn wanted<R>(&self, found: Result<R, String>) -> Result<Option<R>, String> {
        match found {
            Err(_) if self.yosys.known_only => Ok(None),
            found => found.map(Some),
        }
    }

    /// The share of `prim`; of a core the sum over its blocks.
    fn prim(&self, top: &Top) -> Result<Share, String> {
        let verilog = self.verilog(top)?;
        if !is_core(top) {
            let leaves = self.kept(top, "leaves", || Ok(top.leaves()?.join("\n")))?;
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

    fn family(&self, top: &Top, family: Family) -> Result<Mapping, String> {
        if !is_core(top) || self.flat_core {
            match self.flat(top, family) {
                Ok(netlist) => return measure(netlist, Flow::Flat, top, &self.verilog(top)?),
                Err(e) if !is_core(top) => return Err(e),
                Err(e) => eprintln!("{e}; mapping its blocks instead"),
            }
        }
        measure(self.joined(top, family)?, Flow::Hierarchical, top, &self.verilog(top)?)
    }

    fn flat(&self, top: &Top, family: Family) -> Result<Netlist, String> {
        self.mapped(top, &self.verilog(top)?, &[], family)
    }

    fn mapped(&self, top: &Top, verilog: &str, boxes: &[String], family: Family) -> Result<Netlist, String> {
        let mapped = self.yosys.map(&Job { top: top.name, verilog, family }, boxes).map_err(|e| format!("{} on {}: {e}", top.name, family.name()))?;
        Ok((netlist::read(&mapped.json, top.name)?, mapped.faults, mapped.seconds))
    }

    /// The core: its own few gates and [`TOGETHER`] with the other blocks as boxes, then those blocks' netlists in the boxes' place.
    fn joined(&self, top: &Top, family: Family) -> Result<Netlist, String> {
        let verilog = self.verilog(top)?;
        let mut instances = blocks(&verilog, top);
        instances.retain(|i| !TOGETHER.contains(&i.as_str()));
        let boxes: Vec<String> = instances.iter().map(|i| format!("{}${i}", top.name)).collect();
        let (glue, mut faults, seconds) = self.mapped(top, &verilog, &boxes, family)?;
        let mut blocks: BTreeMap<&str, Module> = BTreeMap::new();
        let mut places: BTreeMap<String, &str> = BTreeMap::new();
        for instance in &instances {
            let block = block_of(instance, top)?;
            if !blocks.contains_key(block.name) {
                let (module, found, _) = self.flat(block, family)?;
                faults.extend(found.into_iter().map(|f| format!("{}: {f}", block.name)));
                blocks.insert(block.name, module);
            }
            places.insert(instance.clone(), block.name);
        }
        let places = places.into_iter().map(|(i, b)| (i, &blocks[b])).collect();
        Ok((glue.inline(&places)?, faults, seconds))
    }
}

fn is_core(top: &Top) -> bool {
    top.name.starts_with("core_")
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

fn measure((module, mut faults, seconds): Netlist, flow: Flow, top: &Top, verilog: &str) -> Result<Mapping, String> {
    let area = area(module.cells.values().map(|c| c.kind.as_str()))?;
    if area.latches > 0 {
        faults.push(format!("{} latches after mapping", area.latches));
    }
    let mut walk = walk(&module, Count::Cells);
    faults.append(&mut walk.faults);
    Ok(Mapping { area, walk, levels_chain: self::walk::walk(&module, Count::Chains).levels(), flow, memories: memories::read(verilog, top.name, &module), seconds, faults })
}
