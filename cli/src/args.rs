//! The command line.
use crate::perf::Op;
use crate::serve;
use clap::{Args, Parser, Subcommand};
use std::net::{IpAddr, SocketAddr};

/// Ferric cards: see them, bind them, test them, use them, and serve simulated ones.
///
/// A DEVICE is a PCI address (0000:03:00.0) or the path of a vfio-user socket (anything with a slash in it).
#[derive(Parser, Debug)]
#[command(name = "ferric", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// A verified exchange between two cards: run it with --listen on one side, then with --connect on the other
    Perf(Perf),
    /// Simulated cards
    Card {
        /// What to do with them.
        #[command(subcommand)]
        command: CardCommand,
    },
}

/// Simulated cards.
#[derive(Subcommand, Debug)]
pub enum CardCommand {
    /// Serve cards over vfio-user, for `ferric` and other drivers, or as vfio-user-pci in QEMU
    Serve(serve::Options),
}

/// Options of `perf`.
#[derive(Args, Debug)]
pub struct Perf {
    /// Device.
    pub device: String,
    /// Wait for the other side here.
    #[arg(long, required_unless_present = "connect", conflicts_with = "connect")]
    pub listen: Option<SocketAddr>,
    /// Connect to the other side.
    #[arg(long)]
    pub connect: Option<SocketAddr>,
    /// Our IP address on the card's wire [default: 10.0.0.1 to listen, 10.0.0.2 to connect].
    #[arg(long)]
    pub ip: Option<IpAddr>,
    /// Operation.
    #[arg(long, value_enum, default_value = "write")]
    pub op: Op,
    /// Bytes of a message.
    #[arg(long, default_value_t = 4096)]
    pub size: usize,
    /// Messages.
    #[arg(long, default_value_t = 64)]
    pub count: u64,
    /// Messages outstanding at once.
    #[arg(long, default_value_t = 8)]
    pub window: usize,
    /// Path MTU.
    #[arg(long, default_value_t = 1024)]
    pub mtu: usize,
    /// Seconds without a completion, or without a word from the other side, after which it gives up.
    #[arg(long, default_value_t = 60)]
    pub patience: u64,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}
