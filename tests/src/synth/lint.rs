//! Lint of every board's top with the really generated modules in it, and stubs of the vendor's blocks only: `verilator --lint-only -Wall`.
use super::subject::{self, What};
use ferric_boards::{boards, emit};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Mutex, OnceLock};

/// Each waived class stands behind its reason.
const WAIVERS: &str = include_str!("../../../hdl/lint.vlt");

/// The text of a gateware module, made once.
fn module(name: &str) -> String {
    static MADE: OnceLock<Mutex<BTreeMap<String, String>>> = OnceLock::new();
    let mut made = MADE.get_or_init(Mutex::default).lock().unwrap_or_else(|e| e.into_inner());
    let make = || match subject::module(name).unwrap_or_else(|e| panic!("{e}")) {
        What::Unit(unit) => unit.emit().unwrap_or_else(|e| panic!("{name}: {e}")),
        What::Core(top) => ferric_sim::device::card_verilog(top.width.unwrap_or(0)).unwrap_or_else(|e| panic!("{name}: {e}")),
        _ => panic!("{name} is no module"),
    };
    made.entry(name.into()).or_insert_with(make).clone()
}

/// What Verilator says of a board's top, if anything. `text`: the real text of a module of ours; `None` leaves it a stub.
fn lint(key: &str, text: impl Fn(&str) -> Option<String>) -> Result<(), String> {
    let board = boards::find(key).unwrap_or_else(|| panic!("no board {key}"));
    let folder = std::env::temp_dir().join(format!("ferric-board-lint-{key}-{}-{:?}", std::process::id(), std::thread::current().id()));
    std::fs::create_dir_all(folder.join("gateware")).expect("a folder");
    let mut files = emit::lint(&board);
    files.push(("gateware.vlt".into(), WAIVERS.into()));
    for name in ferric_boards::bitstream::modules(&board.top) {
        if let Some(text) = text(name) {
            files.retain(|(file, _)| *file != format!("{name}_stub.v"));
            files.push((format!("gateware/{name}.v"), text));
        }
    }
    for (name, text) in &files {
        std::fs::write(folder.join(name), text).expect("written");
    }
    let names = files.iter().map(|(n, _)| n).filter(|n| n.ends_with(".v"));
    let mut command = Command::new("verilator");
    command.current_dir(&folder).args(["--lint-only", "-Wall", "--default-language", "1364-2005", "--top-module", &board.top.name, "lint.vlt", "gateware.vlt"]);
    let output = command.args(names).output().expect("verilator");
    std::fs::remove_dir_all(&folder).expect("removed");
    if output.status.success() && output.stderr.is_empty() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[test]
fn tops_with_their_gateware_have_nothing_unexplained() {
    for board in boards::all() {
        if let Err(said) = lint(board.key, |name| Some(module(name))) {
            panic!("{}: {}", board.key, said.lines().take(40).collect::<Vec<_>>().join("\n"));
        }
    }
}

/// A module whose port has another name or width, or in which something is used that nothing drives, is found.
#[test]
fn mistakes_in_a_module_are_found() {
    let tick = module("ferric_tick_64");
    let cases = [
        (tick.clone(), None),
        (tick.replace("now", "later"), Some("PINNOTFOUND")),
        (tick.replace("[31:0] now", "[15:0] now"), Some("WIDTH")),
        (tick.replacen("endmodule", "wire [3:0] loose;\nwire lost = loose[1];\nendmodule", 1), Some("UNDRIVEN")),
    ];
    for (text, wanted) in cases {
        let said = lint("ecpix5", |name| (name == "ferric_tick_64").then(|| text.clone()));
        match wanted {
            None => assert_eq!(said, Ok(())),
            Some(class) => assert!(said.as_ref().is_err_and(|s| s.contains(class)), "{class}: {said:?}"),
        }
    }
}

#[test]
fn waived_classes_have_reasons() {
    let lines: Vec<&str> = WAIVERS.lines().collect();
    let waived: Vec<usize> = (0..lines.len()).filter(|n| lines[*n].starts_with("lint_off")).collect();
    assert!(waived.iter().all(|n| lines[n - 1].starts_with("// ") && lines[n - 1].len() > 40 && lines[*n].ends_with("-file \"*gateware/*.v\"")));
    for never in ["LATCH", "UNDRIVEN", "MULTIDRIVEN", "PINMISSING", "PINNOTFOUND", "CASEINCOMPLETE"] {
        assert!(!waived.iter().any(|n| lines[*n].contains(&format!("-rule {never} "))), "{never} is waived");
    }
}
