//! The command line.
use crate::perf::Op;
use crate::{address, dump, interop, pingpong, run, serve, switch, target, vf, vhost};
use clap::{Args, Parser, Subcommand};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

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
    /// Ferric functions on the PCI bus, and what keeps one from being used
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// What a card is and can do
    Info {
        /// Device.
        device: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// A card's counters; those of one function, if the device is not function 0
    Stat {
        /// Device.
        device: String,
        /// Only counters with this in their name.
        filter: Option<String>,
        /// Those of this function alone. Function 0 may ask for any, others for themselves.
        #[arg(long)]
        function: Option<u32>,
        /// Also those that are zero.
        #[arg(long)]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Give functions to vfio-pci, so that programs can open them (root)
    Bind {
        /// PCI addresses.
        #[arg(required = true)]
        address: Vec<String>,
    },
    /// Give functions back to the kernel (root)
    Unbind {
        /// PCI addresses.
        #[arg(required = true)]
        address: Vec<String>,
    },
    /// Test a card; nothing else may be using it
    Selftest {
        /// Device.
        device: String,
        /// The port has a loopback plug (`--wire loop` of a served card): test the data path too.
        #[arg(long)]
        plugged: bool,
        /// Also have the card write where nothing is mapped, which an IOMMU must refuse (its kernel logs a fault); then wait for the end of the
        /// input before the card is closed, for an administrator to see what its AER registers say (lspci -vv).
        #[arg(long)]
        stray: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write the frames that no RDMA block of a card wants to a pcapng
    Capture {
        /// Device.
        device: String,
        /// File.
        #[arg(long, short)]
        out: PathBuf,
        /// Frames at most.
        #[arg(long, default_value_t = u64::MAX)]
        count: u64,
        /// Seconds at most.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// A verified exchange between two cards: run it with --listen on one side, then with --connect on the other
    Perf(Perf),
    /// Have a card answer ARP, neighbour discovery and pings for addresses until the input ends, and find neighbours
    Address(address::Options),
    /// The other end of the stock ibv_rc_pingpong and ibv_uc_pingpong, every byte compared
    Pingpong(pingpong::Options),
    /// Every operation, both ways, against a machine that runs tests/vm/peer.c on its own RDMA device; every byte checked on both sides
    Interop(interop::Options),
    /// Run a program on simulated cards of its own, with our libibverbs and librdmacm; its exit status is the program's
    ///
    /// The program finds two cards, ferric0 and ferric1, on one wire; all of them are gone when it ends. Exit status: the program's; 128 and a signal's number; 125: the cards
    /// could not be started; 126, 127: the program could not.
    Run(run::Options),
    /// Virtual functions of a card, which others use then: an SR-IOV card has them when its physical function's owner says so
    Vf {
        /// What to do.
        #[command(subcommand)]
        command: vf::Command,
    },
    /// A network card for a virtual machine: a vhost-user back end, whose frames go through a function of a card that needs no virtio of its own
    VhostUser(vhost::Options),
    /// The flow switch and the tunnels of a card, which its physical function's owner holds
    Switch {
        /// What to do.
        #[command(subcommand)]
        command: switch::Command,
    },
    /// Simulated cards
    Card {
        /// What to do with them.
        #[command(subcommand)]
        command: CardCommand,
    },
    /// The memory target, a card without a host that serves on-card RAM (docs/boards.md): set it up over UDP, or simulate one
    Target {
        /// What to do.
        #[command(subcommand)]
        command: target::Command,
    },
    /// Write manual pages (man/) and shell completions (completions/) into a folder
    Generate {
        /// Folder.
        folder: PathBuf,
    },
}

/// Simulated cards.
#[derive(Subcommand, Debug)]
pub enum CardCommand {
    /// Serve cards over vfio-user, for `ferric` and other drivers, or as vfio-user-pci in QEMU
    Serve(Box<serve::Options>),
    /// Print the configuration space of served functions that nobody uses, for `lspci -F - -vvv`
    Dump(dump::Options),
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
