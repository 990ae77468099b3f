//! `boards generate`, `boards check`: writes `constraints/`, checks the descriptions.

use clap::{Parser, Subcommand};
use ferric_boards::{boards, check, emit};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "boards", about = "Board descriptions: constraints, images, flash")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Writes constraints/<board>/ of every board.
    Generate,
    /// Says what is wrong with the descriptions.
    Check,
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Generate => generate().map_err(|e| e.to_string()),
        Command::Check => checked(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("boards: {e}");
            ExitCode::FAILURE
        }
    }
}

fn generate() -> std::io::Result<()> {
    for board in boards::all() {
        let folder = emit::folder(&board);
        std::fs::create_dir_all(&folder)?;
        let files = emit::files(&board);
        for old in std::fs::read_dir(&folder)?.flatten().filter(|f| !files.iter().any(|(n, _)| *n == *f.file_name().to_string_lossy())) {
            std::fs::remove_file(old.path())?;
        }
        for (name, text) in &files {
            std::fs::write(folder.join(name), text)?;
        }
        println!("constraints/{}: {} files", board.key, files.len());
    }
    Ok(())
}

fn checked() -> Result<(), String> {
    let wrong: Vec<String> = boards::all().iter().flat_map(|b| check::check(b).into_iter().map(|p| format!("{}: {p}", b.key))).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("{} mistakes\n{}", wrong.len(), wrong.join("\n")))
}
