//! The `ferric` command, built where the tests can find it.
use std::process::ExitCode;

fn main() -> ExitCode {
    ferric_cli::main()
}
