//! `ferric switch`: the flow switch and the tunnels of a card (docs/switch.md). One process holds the physical function, for its reset empties all tables; the others tell it what to do.
mod ask;
mod book;
mod card;
mod hold;
#[cfg(test)]
mod tests;
mod trace;

use ask::{ask, Miss, Request, Rights, Tunnel};
use std::error::Error;
use std::io::Read;
use std::path::PathBuf;

/// What to do with a switch.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum Command {
    /// Hold a card's physical function until this command is ended (Ctrl-C), and do what the others say
    Hold(hold::Options),
    /// What the holder was told
    Show {
        /// Socket of the holder.
        socket: PathBuf,
    },
    /// From now on the tables decide about frames off the wire, by all flows and stations that there are
    Tables {
        /// Socket of the holder.
        socket: PathBuf,
        /// What becomes of a frame that no table knows. RoCE that would be for software is dropped.
        #[arg(long, value_enum, default_value = "drop")]
        miss: Miss,
        /// Ask the stations about what no flow knows.
        #[arg(long)]
        bridge: bool,
        /// Ask about what functions send by the wire, too: it leaves only by a flow whose one action is the uplink. ARP, RoCE and its acknowledges, and what the card answers need one.
        #[arg(long)]
        egress: bool,
    },
    /// From now on frames pass, as on a card without tables
    Pass {
        /// Socket of the holder.
        socket: PathBuf,
    },
    /// What functions may send
    #[command(subcommand)]
    Port(PortCommand),
    /// Tunnels of functions
    #[command(subcommand)]
    Tunnel(TunnelCommand),
    /// Stations of networks
    #[command(subcommand)]
    Station(StationCommand),
    /// Flows, in the words of Open vSwitch's datapath (ovs-appctl dpctl/dump-flows)
    #[command(subcommand)]
    Flow(FlowCommand),
    /// What the card has counted: by cause of a drop, and so on
    Stats {
        /// Socket of the holder.
        socket: PathBuf,
        /// Also what is zero.
        #[arg(long)]
        all: bool,
    },
    /// What would become of a frame off the wire, or of one from a function, step by step, by the golden model
    Trace {
        /// Socket of the holder.
        socket: PathBuf,
        /// The function that sends the frame to others of the card; without it, it comes off the wire.
        #[arg(long, value_name = "FUNCTION")]
        from: Option<u16>,
        /// The frame in hexadecimal, from its destination address on and without its check sequence.
        #[arg(value_parser = trace::frame)]
        frame: std::vec::Vec<u8>,
    },
}

/// What functions may send.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum PortCommand {
    /// Only this; the card drops and counts everything else
    Set {
        /// Socket of the holder.
        socket: PathBuf,
        /// Function.
        function: u16,
        /// What it may.
        #[command(flatten)]
        rights: Rights,
    },
    /// Anything: nobody looks
    Free {
        /// Socket of the holder.
        socket: PathBuf,
        /// Function.
        function: u16,
    },
}

/// Tunnels.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum TunnelCommand {
    /// All frames of a function go through this tunnel, and what comes through it is the function's only
    Set {
        /// Socket of the holder.
        socket: PathBuf,
        /// Function.
        function: u16,
        /// The tunnel.
        #[command(flatten)]
        tunnel: Tunnel,
    },
    /// A function has none any more
    Clear {
        /// Socket of the holder.
        socket: PathBuf,
        /// Function.
        function: u16,
    },
}

/// Stations.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum StationCommand {
    /// A MAC address is a function's
    Set {
        /// Socket of the holder.
        socket: PathBuf,
        /// MAC address.
        mac: String,
        /// Function.
        function: u16,
        /// In the network of this function's tunnel; else in that of frames through none.
        #[arg(long)]
        network: Option<u16>,
    },
    /// It is nobody's any more
    Clear {
        /// Socket of the holder.
        socket: PathBuf,
        /// MAC address.
        mac: String,
        /// As above.
        #[arg(long)]
        network: Option<u16>,
    },
}

/// Flows. Ports: `uplink` (1) is the wire, `vxlan` (4789) where frames through a tunnel come from, `f0` (8) and up are functions.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum FlowCommand {
    /// One more; its ufid is printed. Of flows that overlap it is not said which counts, as in Open vSwitch
    Add {
        /// Socket of the holder.
        socket: PathBuf,
        /// What it matches: in_port(uplink),eth_type(0x0800),ipv4(dst=192.168.7.8,frag=no)
        matches: String,
        /// What is done: a port, or `drop`, or userspace(...).
        actions: String,
    },
    /// One less
    Del {
        /// Socket of the holder.
        socket: PathBuf,
        /// Its ufid.
        #[arg(value_parser = book::id)]
        ufid: u64,
    },
    /// All, with what they have counted
    Dump {
        /// Socket of the holder.
        socket: PathBuf,
        /// Where they stand in the card, too.
        #[arg(long, short)]
        more: bool,
    },
    /// Flows of a file, a line each as `dump` prints them, take the place of all that there are between two frames
    Load {
        /// Socket of the holder.
        socket: PathBuf,
        /// File; `-`: standard input.
        file: PathBuf,
        /// Say only which can be taken, and of the others why not.
        #[arg(long)]
        check: bool,
        /// Leave out what cannot be taken, and say why: such frames are misses.
        #[arg(long)]
        partial: bool,
        /// A port's name in the file, and its number here: vnet0=8.
        #[arg(long, value_parser = name, value_name = "NAME=NUMBER")]
        port: Vec<(String, u32)>,
    },
    /// None any more
    Flush {
        /// Socket of the holder.
        socket: PathBuf,
    },
}

fn name(text: &str) -> Result<(String, u32), String> {
    let pair = text.split_once('=').and_then(|(name, number)| Some((name.to_owned(), number.parse().ok()?)));
    pair.ok_or_else(|| format!("`{text}` is not NAME=NUMBER"))
}

/// Runs one.
pub fn run(command: &Command) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Hold(options) => hold::run(options),
        Command::Show { socket } => ask(socket, &Request::Show),
        Command::Tables { socket, miss, bridge, egress } => ask(socket, &Request::Tables { miss: *miss, bridge: *bridge, egress: *egress }),
        Command::Pass { socket } => ask(socket, &Request::Pass),
        Command::Port(PortCommand::Set { socket, function, rights }) => ask(socket, &Request::Port { function: *function, rights: Some(rights.clone()) }),
        Command::Port(PortCommand::Free { socket, function }) => ask(socket, &Request::Port { function: *function, rights: None }),
        Command::Tunnel(TunnelCommand::Set { socket, function, tunnel }) => ask(socket, &Request::Tunnel { function: *function, tunnel: Some(tunnel.clone()) }),
        Command::Tunnel(TunnelCommand::Clear { socket, function }) => ask(socket, &Request::Tunnel { function: *function, tunnel: None }),
        Command::Station(StationCommand::Set { socket, mac, function, network }) => ask(socket, &Request::Station { network: *network, mac: mac.clone(), function: Some(*function) }),
        Command::Station(StationCommand::Clear { socket, mac, network }) => ask(socket, &Request::Station { network: *network, mac: mac.clone(), function: None }),
        Command::Flow(command) => flow(command),
        Command::Stats { socket, all } => ask(socket, &Request::Stats { all: *all }),
        Command::Trace { socket, from, frame } => ask(socket, &Request::Trace { from: *from, frame: frame.clone() }),
    }
}

fn flow(command: &FlowCommand) -> Result<(), Box<dyn Error>> {
    match command {
        FlowCommand::Add { socket, matches, actions } => ask(socket, &Request::Add { matches: matches.clone(), actions: actions.clone() }),
        FlowCommand::Del { socket, ufid } => ask(socket, &Request::Delete { id: *ufid }),
        FlowCommand::Dump { socket, more } => ask(socket, &Request::Dump { places: *more }),
        FlowCommand::Load { socket, file, check, partial, port } => {
            let mut text = String::new();
            match file.as_os_str() == "-" {
                true => std::io::stdin().read_to_string(&mut text).map(drop)?,
                false => text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?,
            }
            ask(socket, &Request::Load { text, names: port.clone(), check: *check, partial: *partial })
        }
        FlowCommand::Flush { socket } => ask(socket, &Request::Load { text: String::new(), names: Vec::new(), check: false, partial: false }),
    }
}
