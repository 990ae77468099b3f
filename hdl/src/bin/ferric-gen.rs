//! Writes the Verilog of a card, of one block, or of a module that board tops instantiate, and the pages that come from the cards' lists.
use clap::Parser;
use ferric_hdl::card::{pages, Card, DEFAULT};
use ferric_hdl::emit::same::{compare, Difference};
use ferric_hdl::{board, tops};
use std::process::ExitCode;

/// Writes the Verilog of a card.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct Arguments {
    #[command(subcommand)]
    other: Option<Other>,
    /// The name of a card
    #[arg(long, default_value = DEFAULT)]
    card: String,
    /// Engines of the card, with commas between them, instead of its name
    #[arg(long, value_delimiter = ',', conflicts_with = "card")]
    engines: Option<Vec<String>>,
    /// PCI functions: 4, or 64 with 64 bits
    #[arg(long, default_value_t = 4)]
    functions: usize,
    /// Bits of the ids of DMA reads that the board's bridge takes: a card that needs more is refused
    #[arg(long)]
    read_ids: Option<usize>,
    /// With random stalls on internal streams
    #[arg(long)]
    chaos: bool,
    /// Bits of the data path: 64 or 512
    #[arg(required = true)]
    width: Option<usize>,
    /// Where to write it
    #[arg(required = true)]
    file: Option<String>,
}

#[derive(clap::Subcommand)]
enum Other {
    /// Writes the Verilog of one block
    Block { name: String, file: String },
    /// Names the blocks
    List,
    /// Names the engines and the cards
    Cards,
    /// Writes the pages of FOLDER that come from the cards' lists
    Docs { folder: String },
    /// Compares two files of Verilog; they differ: error
    Same { before: String, now: String },
}

fn main() -> ExitCode {
    let mut arguments = Arguments::parse();
    match arguments.other.take().map_or_else(|| write_card(arguments), other) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("ferric-gen: {e}");
            ExitCode::FAILURE
        }
    }
}

fn write_card(Arguments { card: name, engines, functions, read_ids, chaos, width, file, .. }: Arguments) -> Result<(), String> {
    let (Some(width), Some(file)) = (width, file) else { return Err("a width and a file are needed".into()) };
    let card = match engines {
        Some(engines) => Card::of(&engines.iter().map(String::as_str).collect::<Vec<_>>(), width)?,
        None => Card::named(&name, width)?,
    }
    .with_functions(functions)?;
    if let Some(bits) = read_ids {
        card.fits_read_ids(bits)?;
    }
    write(&file, &card.verilog(chaos, &format!("ferric_w{width}{}", if chaos { "_chaos" } else { "" }))?)
}

fn other(other: Other) -> Result<(), String> {
    match other {
        Other::List => tops::tops().iter().map(|t| t.name).chain(board::tops::TOPS.iter().map(|t| t.name)).for_each(|name| println!("{name}")),
        Other::Cards => print!("{}", pages::cards()),
        Other::Block { name, file } => match (tops::find(&name), board::tops::find(&name)) {
            (Some(top), _) => write(&file, &top.emit()?)?,
            (None, Some(top)) => write(&file, &top.emit()?)?,
            (None, None) => return Err(format!("no block is called {name}; `ferric-gen list` names them")),
        },
        Other::Docs { folder } => docs(&folder)?,
        Other::Same { before, now } => same(&before, &now)?,
    }
    Ok(())
}

/// Writes the pages of `folder` that come from the lists.
fn docs(folder: &str) -> Result<(), String> {
    let card = Card::named(DEFAULT, 64)?;
    write(&format!("{folder}/ports.md"), &pages::ports(&card)?)?;
    write(&format!("{folder}/engines.md"), &pages::engines()?)?;
    let deadlock = format!("{folder}/deadlock.md");
    let page = std::fs::read_to_string(&deadlock).map_err(|e| format!("{deadlock}: {e}"))?;
    write(&deadlock, &pages::with_graph(&page, &card)?)
}

fn same(before: &str, now: &str) -> Result<(), String> {
    let read = |file: &str| std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"));
    match compare(&read(before)?, &read(now)?) {
        Difference::None => println!("{now}: equal"),
        Difference::Order(modules) => println!("{now}: equal but for the order of instances and independent assignments in {}", modules.join(", ")),
        Difference::Modules(modules) => {
            const SHOWN: usize = 20;
            let rest = if modules.len() > SHOWN { ", .." } else { "" };
            return Err(format!("{now}: {} modules differ: {}{rest}", modules.len(), modules[..modules.len().min(SHOWN)].join(", ")));
        }
    }
    Ok(())
}

fn write(file: &str, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|e| format!("{file}: {e}"))
}
