//! The blocks of this folder as modules, by the names under which board tops instantiate them.

use super::host::Host;
use super::irq::Irq16;
use super::link::CmacLink;
use super::mac::{MacRx, MacTx};
use super::msix::Msix;
use super::ocl::Ocl;
use super::reset::{Reset, ResetFlr};
use super::rgmii::{RgmiiRx, RgmiiTx};
use super::tick::Tick;
use crate::emit::{emit, EmitError};

/// A module that a board top instantiates.
pub struct BoardTop {
    /// Name of the module and of its file.
    pub name: &'static str,
    /// Inputs and outputs that belong to a clock other than `clock`: a prefix of their names, the clock. `-`: to none.
    pub clocks: &'static [(&'static str, &'static str)],
    build: fn(&str) -> Result<String, EmitError>,
}

impl BoardTop {
    /// The module's Verilog. Errors: what the emitter found.
    pub fn emit(&self) -> Result<String, String> {
        let (name, build) = (self.name, self.build);
        let thread = std::thread::Builder::new().stack_size(256 << 20).spawn(move || build(name)).map_err(|e| e.to_string())?;
        thread.join().map_err(|_| format!("{name}: the generator panicked"))?.map_err(|e| e.to_string())
    }
}

macro_rules! tops {
    ($($name:literal $clocks:expr, $block:expr;)*) => { &[$(BoardTop { name: $name, clocks: $clocks, build: |name| emit(name, $block) }),*] };
}

/// All of them.
pub const TOPS: &[BoardTop] = tops! {
    "ferric_reset" &[("reset_n", "-"), ("ready", "-")], Reset::default();
    "ferric_reset_flr" &[], ResetFlr::default();
    "ferric_tick_64" &[], Tick::new(64);
    "ferric_tick_256" &[], Tick::new(256);
    "ferric_cmac_link" &[], CmacLink::default();
    "ferric_mac_tx_w512" &[("mac_reset", "mac_clock"), ("m$", "mac_clock")], MacTx::<512, 64>::default();
    "ferric_mac_rx_w512" &[("mac_reset", "mac_clock"), ("s$", "mac_clock"), ("s_err", "mac_clock")], MacRx::<512, 64>::default();
    "ferric_rgmii_tx_w64" &[("mac_reset", "mac_clock"), ("rise", "mac_clock"), ("fall", "mac_clock")], RgmiiTx::default();
    "ferric_rgmii_rx_w64" &[("mac_reset", "mac_clock"), ("rise", "mac_clock"), ("fall", "mac_clock")], RgmiiRx::default();
    "ferric_irq16" &[], Irq16::default();
    "ferric_host_w512" &[], Host::<512, 64>::default();
    "ferric_msix_w512" &[], Msix::<512, 64>::default();
    "ferric_ocl_w512" &[], Ocl::<512, 64>::default();
};

/// The module called `name`.
pub fn find(name: &str) -> Option<&'static BoardTop> {
    TOPS.iter().find(|t| t.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_board_module_emits_and_passes_the_lint_gate() {
        for top in TOPS {
            let verilog = top.emit().unwrap_or_else(|e| panic!("{e}"));
            if let Err(faults) = crate::lint::check(top.name, &verilog) {
                panic!("{}: {faults:#?}", top.name);
            }
            for (prefix, clock) in top.clocks {
                let header = verilog.split(&format!("module {}(", top.name)).nth(1).and_then(|t| t.split(')').next()).unwrap_or_default();
                let ports: Vec<&str> = header.split([',', '\n', ' ']).map(str::trim).collect();
                assert!(ports.iter().any(|p| p.starts_with(prefix)), "{} has no {prefix}", top.name);
                assert!(*clock == "-" || ports.contains(clock), "{} has no {clock}", top.name);
            }
        }
    }

    /// Ports of a module's header: name, width, whether it is an output.
    fn header(name: &str, verilog: &str) -> BTreeSet<(String, u32, bool)> {
        let body = verilog.split(&format!("module {name}(")).nth(1).and_then(|t| t.split("endmodule").next()).unwrap_or_default();
        let ports = body.lines().map(str::trim).filter(|l| l.starts_with("input ") || l.starts_with("output "));
        ports
            .map(|line| {
                let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
                let high = words.iter().find_map(|w| w.strip_prefix('[')?.strip_suffix(":0]")?.parse::<u32>().ok());
                (words[words.len() - 1].to_string(), high.map_or(1, |h| h + 1), words[0] == "output")
            })
            .collect()
    }

    /// The tables that `boards/` writes say which ports its tops connect.
    #[test]
    fn the_boards_expect_these_ports() {
        let mut compared = BTreeSet::new();
        for board in ["u50", "u250", "f2", "ecpix5"] {
            let file = format!("{}/../constraints/{board}/README.md", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
            for row in text.lines().filter(|l| l.starts_with("| `ferric_")) {
                let cells: Vec<&str> = row.split('|').map(str::trim).collect();
                let name = cells[1].trim_matches('`');
                let emit = |name| find(name).map(BoardTop::emit).or_else(|| crate::tops::find(name).map(crate::tops::Top::emit));
                // The card core has its own: `boards/tests/agree.rs`.
                let Some(verilog) = emit(name) else { continue };
                let port = |text: &str, output| match text.trim_end_matches(']').split_once('[') {
                    Some((name, width)) => (name.to_string(), width.parse().unwrap_or(0), output),
                    None => (text.to_string(), 1, output),
                };
                let inputs = cells[2].split(", ").map(|t| port(t, false));
                let declared: BTreeSet<_> = inputs.chain(cells[3].split(", ").map(|t| port(t, true))).collect();
                assert_eq!(header(name, &verilog.unwrap_or_else(|e| panic!("{e}"))), declared, "{name} of {board}");
                compared.insert(name.to_string());
            }
        }
        assert_eq!(compared.len(), TOPS.len() + 1, "modules that no board uses, or that no table has; the memory target is the one more");
    }
}
