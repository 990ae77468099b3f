//! Writes the Verilog of a card, of one block, or of a module that board tops instantiate, and the pages that come from the card's list; `USAGE` says how.
use ferric_hdl::emit::same::{compare, Difference};
use ferric_hdl::{board, card, tops};
use std::process::ExitCode;

const USAGE: &str = "usage: ferric-gen [--chaos] 64|512 FILE\n       ferric-gen block NAME FILE\n       ferric-gen --list\n       ferric-gen --docs FOLDER\n       ferric-gen --same FILE FILE";

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
        ["--docs", folder] => docs(folder),
        ["--same", before, now] => same(before, now),
        ["--chaos", width, file] => write_card(width, true, file),
        [width, file] => write_card(width, false, file),
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

fn write_card(width: &str, chaos: bool, file: &str) -> Result<(), String> {
    let bits = width.parse().map_err(|_| format!("{width} is not a width: 64 or 512"))?;
    let top = format!("ferric_w{bits}{}", if chaos { "_chaos" } else { "" });
    write(file, &card::generate(bits, chaos, &top)?)
}

/// Writes the pages of `folder` that come from the list of the card of 64 bits.
fn docs(folder: &str) -> Result<(), String> {
    let (ports, deadlock) = (format!("{folder}/ports.md"), format!("{folder}/deadlock.md"));
    write(&ports, &card::pages::ports(64)?)?;
    let page = std::fs::read_to_string(&deadlock).map_err(|e| format!("{deadlock}: {e}"))?;
    write(&deadlock, &card::pages::with_graph(&page, 64)?)
}

/// Compares two files of Verilog. Error: a module differs.
fn same(before: &str, now: &str) -> Result<(), String> {
    let read = |file: &str| std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"));
    match compare(&read(before)?, &read(now)?) {
        Difference::None => println!("{now}: equal"),
        Difference::Order(modules) => println!("{now}: equal but for the order of instances and independent assignments in {}", modules.join(", ")),
        Difference::Modules(modules) => return Err(format!("{now}: {} modules differ: {}", modules.len(), modules.join(", "))),
    }
    Ok(())
}

fn write(file: &str, verilog: &str) -> Result<(), String> {
    std::fs::write(file, verilog).map_err(|e| format!("{file}: {e}"))
}
