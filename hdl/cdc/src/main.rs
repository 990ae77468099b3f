//! `./scripts/cdc [--write]`: lists the clock-domain crossings of the boards' gateware and compares them with `constraints/crossings.txt`.
use ferric_cdc::{gateware, list};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let write = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [flag] if flag == "--write" => true,
        _ => {
            eprintln!("usage: ferric-cdc [--write]");
            return ExitCode::FAILURE;
        }
    };
    match run(write) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("cdc: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(write: bool) -> Result<bool, String> {
    let found = gateware(Path::new("target/cdc"))?;
    let file = list::file();
    let mut text = std::fs::read_to_string(&file).unwrap_or_default();
    if write {
        text = list::render(&found, &text);
        std::fs::write(&file, &text).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    found.crossings.iter().chain(&found.meetings).for_each(|l| println!("{l}"));
    let wrong = list::compare(&found, &text);
    wrong.iter().for_each(|w| println!("FAULT {w}"));
    println!("{} crossings, {} meetings, {} faults", found.crossings.len(), found.meetings.len(), wrong.len());
    Ok(wrong.is_empty())
}
