//! Writes the Verilog of a card, of one block, or of a module that board tops instantiate: `ferric-gen [--chaos] 64|512 FILE`, `ferric-gen block NAME FILE`, `ferric-gen --list`.
use ferric_hdl::{board, tops};
use std::process::ExitCode;

const USAGE: &str = "usage: ferric-gen [--chaos] 64|512 FILE\n       ferric-gen block NAME FILE\n       ferric-gen --list";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let written = match args.as_slice() {
        ["--list"] => {
            tops::tops().iter().for_each(|t| println!("{}", t.name));
            board::tops::TOPS.iter().for_each(|t| println!("{}", t.name));
            Ok(())
        }
        ["block", name, file] => match (tops::find(name), board::tops::find(name)) {
            (Some(top), _) => top.emit().and_then(|v| write(file, &v)),
            (None, Some(top)) => top.emit().and_then(|v| write(file, &v)),
            (None, None) => Err(format!("no block is called {name}; --list names them")),
        },
        ["--chaos", width, file] => card(width, true, file),
        [width, file] => card(width, false, file),
        _ => Err(USAGE.into()),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("ferric-gen: {e}");
            ExitCode::FAILURE
        }
    }
}

fn card(width: &str, chaos: bool, file: &str) -> Result<(), String> {
    let bits = width.parse().map_err(|_| format!("{width} is not a width: 64 or 512"))?;
    let top = format!("ferric_w{bits}{}", if chaos { "_chaos" } else { "" });
    write(file, &ferric_hdl::card::generate(bits, chaos, &top)?)
}

fn write(file: &str, verilog: &str) -> Result<(), String> {
    std::fs::write(file, verilog).map_err(|e| format!("{file}: {e}"))
}
