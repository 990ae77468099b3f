//! Writes the Verilog of a card: `ferric-gen [--chaos] 64|512 FILE`.
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let chaos = args.first().is_some_and(|a| a == "--chaos");
    if chaos {
        args.remove(0);
    }
    let [width, file] = args.as_slice() else {
        eprintln!("usage: ferric-gen [--chaos] 64|512 FILE");
        return ExitCode::FAILURE;
    };
    let Ok(bits) = width.parse() else {
        eprintln!("ferric-gen: {width} is not a width: 64 or 512");
        return ExitCode::FAILURE;
    };
    let top = format!("ferric_w{bits}{}", if chaos { "_chaos" } else { "" });
    let written = ferric_hdl::core::generate(bits, chaos, &top).and_then(|v| std::fs::write(file, v).map_err(|e| format!("{file}: {e}")));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("ferric-gen: {e}");
            ExitCode::FAILURE
        }
    }
}
