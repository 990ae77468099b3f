//! `boards generate`, `check`, `modules`, `bitstream`, `netlist`, `flash`: what `./scripts/bitstream` and `./scripts/flash` run.

use clap::{Parser, Subcommand};
use ferric_boards::bitstream::{self, Environment};
use ferric_boards::{blocks, boards, check, ecp5, emit, flash, tool, Board, Flow};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

#[derive(Parser)]
#[command(name = "boards", about = "Board descriptions: constraints, images, flash")]
struct Args {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Writes constraints/BOARD/ of every board.
    Generate,
    /// Says what is wrong with the descriptions.
    Check,
    /// Names of the gateware modules that the image of a board is made of, if its tools are there.
    Modules {
        #[arg(long)]
        board: String,
        /// Those of `bitstream --lamp`: none.
        #[arg(long)]
        lamp: bool,
    },
    /// Bits of the ids of DMA reads that the boards' bridges take: `ferric-gen --read-ids` wants to know.
    ReadIds,
    /// Builds the image of a board in target/boards/BOARD/.
    Bitstream {
        #[arg(long)]
        board: String,
        /// Only the smallest top that goes through every tool (ecpix5): PLL, a register, two lamps.
        #[arg(long)]
        lamp: bool,
    },
    /// The netlist of the memory target's board after synthesis, as Verilog for a simulation, in target/boards/ecpix5/.
    Netlist,
    /// Puts an image into a card, after checking that it is for this card and leaves the golden image alone.
    Flash {
        #[arg(long)]
        board: String,
        /// The image (.bit or .mcs); for f2 the name of a global AFI. Default: what `bitstream` made.
        file: Option<PathBuf>,
        /// Says what would be done and does nothing.
        #[arg(long)]
        dry_run: bool,
        /// Into the configuration memory only: lost at power-off, the flash is not touched.
        #[arg(long)]
        volatile: bool,
    },
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Task::Generate => generate().map_err(|e| e.to_string()),
        Task::Check => checked(),
        Task::Modules { board, lamp } => named(&board).and_then(|b| modules(&b, lamp)),
        Task::ReadIds => {
            println!("{}", blocks::gateware::READ_ID_BITS);
            Ok(())
        }
        Task::Bitstream { board, lamp } => named(&board).and_then(|b| image(&b, lamp)),
        Task::Netlist => named("ecpix5").and_then(|b| netlist(&b)),
        Task::Flash { board, file, dry_run, volatile } => named(&board).and_then(|b| write(&b, file, dry_run, volatile)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("boards: {e}");
            ExitCode::FAILURE
        }
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn named(key: &str) -> Result<Board, String> {
    boards::find(key).ok_or_else(|| format!("no board is called {key}: {}", boards::all().iter().map(|b| b.key).collect::<Vec<_>>().join(", ")))
}

/// Where a board's image and reports lie.
fn output(board: &Board) -> Result<PathBuf, String> {
    let root = root().canonicalize().map_err(|e| e.to_string())?;
    Ok(root.join("target/boards").join(board.key))
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

fn modules(board: &Board, lamp: bool) -> Result<(), String> {
    let path = std::env::var_os("PATH");
    bitstream::tools(board, &Environment { path: path.as_deref(), hdk: None, root: root() }).map_err(|e| e.to_string())?;
    if !lamp {
        bitstream::modules(&board.top).iter().for_each(|name| println!("{name}"));
    }
    Ok(())
}

fn image(board: &Board, lamp: bool) -> Result<(), String> {
    let (path, hdk) = (std::env::var_os("PATH"), std::env::var_os("HDK_SHELL_DIR"));
    let root = root().canonicalize().map_err(|e| e.to_string())?;
    let env = Environment { path: path.as_deref(), hdk: hdk.as_deref(), root: &root };
    let (top, out) = match (lamp, board.flow) {
        (false, _) => (board.top.clone(), output(board)?),
        (true, Flow::Ecp5) => (boards::lamp(), output(board)?.join("lamp")),
        (true, _) => return Err(format!("--lamp: {} has none", board.name)),
    };
    let made = bitstream::build(board, &top, &env, &out).map_err(|e| e.to_string())?;
    println!("image: {}", made.display());
    Ok(())
}

fn netlist(board: &Board) -> Result<(), String> {
    let path = std::env::var_os("PATH");
    let root = root().canonicalize().map_err(|e| e.to_string())?;
    let env = Environment { path: path.as_deref(), hdk: None, root: &root };
    let made = ecp5::simulation(board, &board.top, &env, &output(board)?).map_err(|e| e.to_string())?;
    println!("netlist: {}", made.display());
    Ok(())
}

fn write(board: &Board, file: Option<PathBuf>, dry_run: bool, volatile: bool) -> Result<(), String> {
    let work = output(board)?;
    let file = match file {
        Some(file) => file,
        None if board.flow == Flow::AwsHdk => return Err("name the AFI: agfi-...".into()),
        None => {
            let made = work.join(format!("{}.bit", board.top.name));
            if !made.exists() {
                return Err(format!("nothing was touched: there is no {} yet; ./scripts/bitstream --board {} makes it, or name another image", made.display(), board.key));
            }
            made
        }
    };
    let plan = flash::plan(board, &file, volatile, &work).map_err(|e| format!("nothing was touched: {e}"))?;
    plan.says.iter().for_each(|line| println!("{line}"));
    println!("{} {}", if dry_run { "would run:" } else { "runs:" }, plan.command.join(" "));
    if dry_run {
        if let Some((name, text)) = &plan.script {
            println!("with {}:\n{text}", name.display());
        }
        return Ok(());
    }
    let program = flash::tool_of(board, std::env::var_os("PATH").as_deref()).map_err(|e| format!("nothing was touched: {e}"))?;
    std::fs::create_dir_all(&work).map_err(|e| format!("nothing was touched: {}: {e}", work.display()))?;
    if let Some((name, text)) = &plan.script {
        std::fs::write(name, text).map_err(|e| format!("nothing was touched: {}: {e}", name.display()))?;
    }
    tool::run("flash", Command::new(program).args(&plan.command[1..]), &work.join("flash.log")).map_err(|e| e.to_string())
}
