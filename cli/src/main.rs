//! The `ferric` command.
use std::process::ExitCode;

fn main() -> ExitCode {
    ferric_cli::main()
}
