//! `ferric interop`: every operation, both ways, against any RDMA device that runs `tests/vm/peer.c` on stock libibverbs. Each case has a
//! queue pair of its own, and every byte is checked on the side where it arrives.
mod bench;
mod case;

use crate::party::Trouble;
use bench::{Bench, SLOTS};
use case::{is_placement, name, peer_error, transport, Case, Lines, CASES};
use ferric_abi::codes::WrOpcode;
use ferric_driver::device::Device;
use ferric_driver::types::{Mac, Mtu, QpType};
use ferric_driver::TunnelConfig;
use std::io::BufReader;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Options.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Device.
    pub device: String,
    /// Where the peer listens.
    #[arg(long)]
    pub connect: SocketAddr,
    /// Our IP addresses on the card's wire: one, or one of each family.
    #[arg(long, required = true)]
    pub ip: Vec<IpAddr>,
    /// The peer's MAC address [default: the card asks for it].
    #[arg(long)]
    pub peer_mac: Option<Mac>,
    /// The card is the end of a VXLAN tunnel to the peer: VNI,MAC,IP,PEER-MAC,PEER-IP of the underlay.
    #[arg(long, value_parser = tunnel)]
    pub tunnel: Option<TunnelConfig>,
    /// Path MTUs.
    #[arg(long, default_values_t = [1024, 4096])]
    pub mtu: Vec<usize>,
    /// Only these operations (transport_operation, see the table).
    #[arg(long)]
    pub only: Vec<String>,
    /// FLUSH and ATOMIC WRITE, too: the peer has to know them.
    #[arg(long)]
    pub placement: bool,
    /// Messages of a case.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=SLOTS))]
    pub count: u64,
    /// Seconds without a completion after which a case has failed.
    #[arg(long, default_value_t = 60)]
    pub patience: u64,
    /// Print the table as JSON.
    #[arg(long)]
    pub json: bool,
}

/// A tunnel as `VNI,MAC,IP,PEER-MAC,PEER-IP` of the underlay.
pub(crate) fn tunnel(text: &str) -> Result<TunnelConfig, String> {
    let parts: Vec<&str> = text.split(',').collect();
    let [vni, mac, local, next_hop, remote] = parts[..] else { return Err("a tunnel is VNI,MAC,IP,PEER-MAC,PEER-IP".into()) };
    let address = |text: &str| text.parse::<IpAddr>().map_err(|e| format!("`{text}`: {e}"));
    let station = |text: &str| text.parse::<Mac>().map_err(|e| e.to_string());
    let vni = vni.parse().map_err(|e| format!("`{vni}` is no VNI: {e}"))?;
    Ok(TunnelConfig::new(vni, station(mac)?, address(local)?, station(next_hop)?, address(remote)?))
}

/// One line of the table.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Row {
    /// Transport and operation.
    pub case: String,
    /// The card asks.
    pub card_asks: bool,
    /// Path MTU.
    pub mtu: usize,
    /// 4 or 6.
    pub ip: u8,
    /// Messages sent, and those that arrived with the right bytes.
    pub messages: [u64; 2],
    /// Frames the card received and sent, by its own counters.
    pub frames: [u64; 2],
    /// What went wrong.
    pub error: Option<String>,
}

/// Plays the table; one row for each case. `each` hears of it at once.
pub fn run(device: Arc<dyn Device>, o: &Options, mut each: impl FnMut(&Row)) -> Result<Vec<Row>, Trouble> {
    let patience = Duration::from_secs(o.patience.max(1));
    let mut bench = Bench::open(device, o.peer_mac, &o.ip, o.tunnel.as_ref(), patience)?;
    let stream = TcpStream::connect(o.connect).map_err(|e| Trouble::Peer(format!("{}: {e}; does the peer run there?", o.connect)))?;
    stream.set_read_timeout(Some(patience + Duration::from_secs(30))).map_err(peer_error)?;
    stream.set_nodelay(true).map_err(peer_error)?;
    let mut lines = Lines { stream: BufReader::new(stream), broken: false };
    let mut rows = Vec::new();
    for ip in &o.ip {
        for bytes in &o.mtu {
            let mtu = Mtu::from_bytes(*bytes).ok_or_else(|| peer_error("the path MTU is 256, 512, 1024, 2048 or 4096"))?;
            for (transport_, op) in CASES {
                let case = format!("{}_{}", transport(transport_), name(op));
                if o.only.is_empty() && is_placement(op) && !o.placement || !o.only.is_empty() && !o.only.contains(&case) {
                    continue;
                }
                for card_asks in [true, false] {
                    let size = match (transport_, op) {
                        (QpType::Ud, _) => bytes - 5,
                        (_, WrOpcode::AtomicWrite) => 8,
                        _ => 3 * bytes + 7,
                    };
                    let c = Case { transport: transport_, op, card_asks, mtu, ip: *ip, count: o.count, size };
                    let before = bench.frames()?;
                    let mut outcome = bench.play(&c, &mut lines);
                    // On an unreliable transport all of them can be lost, but hardly twice.
                    if transport_ != QpType::Rc && matches!(outcome, Ok(0)) {
                        outcome = bench.play(&c, &mut lines).and_then(|n| if n > 0 { Ok(n) } else { Err(peer_error("none of the messages arrived, twice")) });
                    }
                    let after = bench.frames()?;
                    let (arrived, mut error) = outcome.map_or_else(|e| (0, Some(e.to_string())), |n| (n, None));
                    let frames = [after[0] - before[0], after[1] - before[1]];
                    // What the card did not send or receive did not come through it.
                    if error.is_none() && (frames[1 - usize::from(!card_asks)] < arrived || frames.iter().sum::<u64>() == 0) {
                        error = Some(format!("{arrived} messages arrived, but the card counts {frames:?} frames"));
                    }
                    let row = Row { case: case.clone(), card_asks, mtu: *bytes, ip: if ip.is_ipv4() { 4 } else { 6 }, messages: [o.count, arrived], frames, error };
                    each(&row);
                    rows.push(row);
                    if lines.broken {
                        return Ok(rows);
                    }
                }
            }
        }
    }
    lines.say("end")?;
    Ok(rows)
}
