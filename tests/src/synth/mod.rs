//! Area and depth of the gateware: every block top mapped by yosys, counted, and walked.

pub mod cells;
pub mod netlist;
pub mod report;
#[cfg(test)]
mod tests;
pub mod walk;
pub mod yosys;

use cells::{area, Area};
use ferric_hdl::tops::{self, Top};
use netlist::Module;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use walk::{walk, Count, Walk};
use yosys::{Family, Yosys};

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
    /// Why the netlist is not acceptable: latches, open nets, several drivers, loops.
    pub faults: Vec<String>,
}

/// One top.
pub struct Outcome {
    pub top: &'static Top,
    pub xcup: Mapping,
    pub ecp5: Option<Mapping>,
}

/// The flow's settings.
pub struct Flows {
    yosys: Yosys,
    verilog: PathBuf,
    /// Map the core flat too, as long as it takes (half an hour at most).
    pub flat_core: bool,
    pub ecp5: bool,
}

impl Flows {
    /// `out`: folder for reports and caches.
    pub fn new(out: &Path) -> Result<Self, String> {
        let verilog = out.join("verilog").join(ferric_hdl::core::SOURCE_HASH);
        std::fs::create_dir_all(&verilog).map_err(|e| format!("{}: {e}", verilog.display()))?;
        Ok(Self { yosys: Yosys::new(out.join("cache"))?, verilog, flat_core: false, ecp5: true })
    }

    /// The Verilog of a top, generated once per state of the sources.
    fn verilog(&self, top: &Top) -> Result<String, String> {
        let file = self.verilog.join(format!("{}.v", top.name));
        if let Ok(text) = std::fs::read_to_string(&file) {
            return Ok(text);
        }
        let text = top.emit()?;
        std::fs::write(&file, &text).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(text)
    }

    /// Maps and measures one top.
    pub fn run(&self, top: &'static Top) -> Result<Outcome, String> {
        let xcup = self.family(top, Family::Xcup)?;
        let ecp5 = if self.ecp5 { Some(self.family(top, Family::Ecp5)?) } else { None };
        Ok(Outcome { top, xcup, ecp5 })
    }

    fn family(&self, top: &Top, family: Family) -> Result<Mapping, String> {
        let core = top.name.starts_with("core_");
        if !core || self.flat_core {
            match self.flat(top, family) {
                Ok((module, faults)) => return measure(&module, Flow::Flat, faults),
                Err(e) if !core => return Err(e),
                Err(e) => eprintln!("{} on {}: {e}; mapping its blocks instead", top.name, family.name()),
            }
        }
        let (module, faults) = self.joined(top, family)?;
        measure(&module, Flow::Hierarchical, faults)
    }

    fn flat(&self, top: &Top, family: Family) -> Result<(Module, Vec<String>), String> {
        let mapped = self.yosys.map(top.name, &self.verilog(top)?, &[], family).map_err(|e| format!("{}: {e}", top.name))?;
        Ok((netlist::read(&mapped.json, top.name)?, mapped.faults))
    }

    /// The core: its own few gates with the blocks as boxes, then the blocks' netlists in the boxes' place.
    fn joined(&self, top: &Top, family: Family) -> Result<(Module, Vec<String>), String> {
        let verilog = self.verilog(top)?;
        let instances = instances(&verilog, top.name);
        let boxes: Vec<String> = instances.iter().map(|i| format!("{}${i}", top.name)).collect();
        let glue = self.yosys.map(top.name, &verilog, &boxes, family)?;
        let mut faults = glue.faults;
        let mut blocks: BTreeMap<&str, Module> = BTreeMap::new();
        let mut places: BTreeMap<String, &str> = BTreeMap::new();
        for instance in &instances {
            let block = tops::in_core(instance, top.width.unwrap_or(0)).ok_or_else(|| format!("no top stands for the core's {instance}"))?;
            if !blocks.contains_key(block.name) {
                let (module, found) = self.flat(block, family)?;
                faults.extend(found.into_iter().map(|f| format!("{}: {f}", block.name)));
                blocks.insert(block.name, module);
            }
            places.insert(instance.clone(), block.name);
        }
        let places = places.into_iter().map(|(i, b)| (i, &blocks[b])).collect();
        Ok((netlist::read(&glue.json, top.name)?.inline(&places)?, faults))
    }
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

fn measure(module: &Module, flow: Flow, mut faults: Vec<String>) -> Result<Mapping, String> {
    let area = area(module.cells.values().map(|c| c.kind.as_str()))?;
    if area.latches > 0 {
        faults.push(format!("{} latches after mapping", area.latches));
    }
    let mut walk = walk(module, Count::Cells);
    faults.append(&mut walk.faults);
    Ok(Mapping { area, walk, levels_chain: self::walk::walk(module, Count::Chains).levels(), flow, faults })
}
