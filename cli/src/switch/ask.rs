//! What a command says to the holder of a switch and what it answers: one line of JSON each way, over a socket.
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Bytes of a line at most: some hundred thousand flows.
const LONGEST: u64 = 64 << 20;
/// A holder that takes longer than this for a line is stuck, and a command that does so is dead.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is done with frames off the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Miss {
    /// Dropped.
    Drop,
    /// To software: the holder's queue.
    Software,
}

/// What a function may send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
pub struct Rights {
    /// Source MAC addresses, at most four; without any it may send nothing.
    #[arg(long)]
    pub mac: Vec<String>,
    /// Source IP addresses.
    #[arg(long)]
    pub ip: Vec<IpAddr>,
    /// Any source IP address.
    #[arg(long)]
    pub any_ip: bool,
    /// Tagged frames.
    #[arg(long)]
    pub trunk: bool,
    /// Tunnel packets, and frames to the addresses where tunnels end.
    #[arg(long)]
    pub underlay: bool,
    /// Answers of DHCP, and router advertisements.
    #[arg(long)]
    pub server: bool,
    /// RoCE, acknowledges included.
    #[arg(long)]
    pub roce: bool,
}

/// A tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
pub struct Tunnel {
    /// VNI,MAC,IP,PEER-MAC,PEER-IP: the network, the card in the underlay, and the other end, or the router on the way to it.
    pub ends: String,
    /// Take packets from any address, not from the peer's only.
    #[arg(long)]
    pub any_remote: bool,
    /// Ignore reserved bits of VXLAN headers, as RFC 7348 has it; else such packets are dropped.
    #[arg(long)]
    pub lenient: bool,
    /// The function may have raw queue pairs.
    #[arg(long)]
    pub raw: bool,
    /// 802.1Q tag control information of frames in the underlay.
    #[arg(long)]
    pub tag: Option<u16>,
    /// Bytes of an IP packet that the underlay has room for.
    #[arg(long)]
    pub underlay_mtu: Option<u16>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Everything that the holder was told, but flows.
    Show,
    /// The tables decide.
    Tables { miss: Miss, bridge: bool, egress: bool },
    /// Frames pass.
    Pass,
    /// What a function may send; `None`: nobody looks.
    Port { function: u16, rights: Option<Rights> },
    /// A function's tunnel; `None`: none.
    Tunnel { function: u16, tunnel: Option<Tunnel> },
    /// Where a station is: the function whose tunnel (or none) it is reached through, and the function that it is.
    Station { network: Option<u16>, mac: String, function: Option<u16> },
    /// A new flow.
    Add { matches: String, actions: String },
    /// One flow less.
    Delete { id: u64 },
    /// All flows, in the place of those that there are; `check`: says only what it would do. `partial`: without those that cannot be taken.
    Load { text: String, names: Vec<(String, u32)>, check: bool, partial: bool },
    /// All flows.
    Dump { places: bool },
    /// What the card has counted.
    Stats { all: bool },
    /// What would become of a frame off the wire, or of one that a function sends.
    Trace { from: Option<u16>, frame: Vec<u8> },
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What to print.
    pub text: String,
    /// Why it was not done.
    pub error: Option<String>,
}

fn read(stream: &UnixStream) -> Result<String, Box<dyn Error>> {
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
    match line.ends_with('\n') {
        true => Ok(line),
        false => Err("the other side has ended in the middle of a line".into()),
    }
}

fn write(mut stream: &UnixStream, what: &impl Serialize) -> Result<(), Box<dyn Error>> {
    Ok(stream.write_all(format!("{}\n", serde_json::to_string(what)?).as_bytes())?)
}

/// Says something to the holder at a socket and prints what it answers.
pub fn ask(socket: &Path, request: &Request) -> Result<(), Box<dyn Error>> {
    let shown = socket.display();
    let stream = UnixStream::connect(socket).map_err(|e| format!("{shown}: {e}; who holds the switch? ferric switch hold DEVICE --socket {shown}"))?;
    write(&stream, request)?;
    let answer: Answer = serde_json::from_str(&read(&stream)?).map_err(|e| format!("{shown} is no holder of a switch: {e}"))?;
    print!("{}", answer.text);
    std::io::stdout().flush()?;
    answer.error.map_or(Ok(()), |error| Err(error.into()))
}

/// Hears one command out and answers it.
pub fn answer(stream: &UnixStream, does: impl FnOnce(Request) -> Result<String, Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let said = read(stream)?;
    let done = serde_json::from_str(&said).map_err(|e| format!("no such command: {e}").into()).and_then(does);
    let answer = match done {
        Ok(text) => Answer { text, error: None },
        Err(error) => Answer { text: String::new(), error: Some(error.to_string()) },
    };
    write(stream, &answer)?;
    Ok(stream.shutdown(Shutdown::Both)?)
}
