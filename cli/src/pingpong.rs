//! `ferric pingpong`: the other end of the stock `ibv_rc_pingpong` and `ibv_uc_pingpong` programs, which send back what they get.
use crate::party::{Address, Party, Shape, Trouble};
use ferric_abi::codes::WrOpcode;
use ferric_driver::device::Device;
use ferric_driver::types::{Mac, Mtu, QpType};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of the address text with its zero: LID, queue pair, packet sequence number, GID.
const TEXT: usize = 52;

/// Transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Transport {
    /// Reliable connection: `ibv_rc_pingpong`.
    Rc,
    /// Unreliable connection: `ibv_uc_pingpong`.
    Uc,
}

/// Options.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Device.
    pub device: String,
    /// Where the stock program listens (its port is 18515).
    #[arg(long, required_unless_present = "listen", conflicts_with = "listen")]
    pub connect: Option<SocketAddr>,
    /// Wait for a stock client here.
    #[arg(long)]
    pub listen: Option<SocketAddr>,
    /// Our IP address on the card's wire.
    #[arg(long, default_value = "10.0.0.1")]
    pub ip: IpAddr,
    /// The peer's MAC address [default: the card asks for it; one that cannot ask takes the peer for a Ferric card].
    #[arg(long)]
    pub peer_mac: Option<Mac>,
    /// Transport.
    #[arg(long, value_enum, default_value = "rc")]
    pub transport: Transport,
    /// Bytes of a message (-s of the stock program).
    #[arg(long, default_value_t = 4096)]
    pub size: usize,
    /// Messages each way (-n of the stock program).
    #[arg(long, default_value_t = 1000)]
    pub count: u64,
    /// Path MTU (-m of the stock program).
    #[arg(long, default_value_t = 1024)]
    pub mtu: usize,
    /// Seconds without a completion after which it gives up.
    #[arg(long, default_value_t = 30)]
    pub patience: u64,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Outcome.
#[derive(Debug, serde::Serialize)]
pub struct Report {
    /// Messages that came back as they were sent, every byte compared (listening: that came in).
    pub verified: u64,
    /// Bytes of each.
    pub size: usize,
    /// Seconds.
    pub seconds: f64,
    /// Microseconds of a round trip.
    pub round_trip_us: f64,
}

fn gid(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(a) => a.to_ipv6_mapped(),
        IpAddr::V6(a) => a,
    }
}

fn text(a: &Address) -> Vec<u8> {
    let hex: String = gid(a.ip).octets().iter().map(|b| format!("{b:02x}")).collect();
    format!("0000:{:06x}:{:06x}:{hex}\0", a.qpn, a.psn).into_bytes()
}

fn parse(bytes: &[u8]) -> Option<(u32, u32, IpAddr)> {
    let text = std::str::from_utf8(bytes).ok()?.trim_end_matches('\0');
    let mut parts = text.split(':').skip(1);
    let mut number = || u32::from_str_radix(parts.next()?, 16).ok();
    let (qpn, psn) = (number()?, number()?);
    let raw = u128::from_str_radix(parts.next().filter(|g| g.len() == 32)?, 16).ok()?;
    Some((qpn, psn, Ipv6Addr::from(raw).to_canonical()))
}

/// Plays with a stock program.
pub fn run(device: Arc<dyn Device>, o: &Options) -> Result<Report, Trouble> {
    let fail = |e: std::io::Error| Trouble::Peer(e.to_string());
    let mtu = Mtu::from_bytes(o.mtu).ok_or_else(|| Trouble::Peer("the path MTU is 256, 512, 1024, 2048 or 4096".into()))?;
    let patience = Duration::from_secs(o.patience.max(1));
    // Two slots: what is sent lies in one, what comes in the other.
    let shape = Shape { ip: o.ip, size: o.size, window: 2, mtu, patience, transport: if o.transport == Transport::Rc { QpType::Rc } else { QpType::Uc } };
    let mut party = Party::open(device, shape)?;
    party.introduce()?;
    let mut stream = match (o.listen, o.connect) {
        (Some(at), _) => TcpListener::bind(at).and_then(|l| l.accept()).map_err(fail)?.0,
        (None, Some(at)) => TcpStream::connect(at).map_err(|e| Trouble::Peer(format!("{at}: {e}; is ibv_rc_pingpong running there?")))?,
        (None, None) => return Err(Trouble::Peer("say --connect or --listen".into())),
    };
    stream.set_read_timeout(Some(patience)).map_err(fail)?;
    let mut theirs = [0; TEXT];
    let ours = text(&party.address());
    if o.connect.is_some() {
        stream.write_all(&ours).map_err(fail)?;
    }
    stream.read_exact(&mut theirs).map_err(fail)?;
    let (qpn, psn, ip) = parse(&theirs).ok_or_else(|| Trouble::Peer("the peer does not speak as ibv_rc_pingpong does".into()))?;
    let mac = o.peer_mac.map_or_else(|| party.find(ip), Ok)?.0;
    let peer = Address { qpn, psn, ip, mac, rkey: 0, addr: 0, len: u64::MAX };
    party.connect(&peer)?;
    receive_into(&mut party, 0)?;
    if o.connect.is_some() {
        stream.write_all(b"done\0").map_err(fail)?;
    } else {
        stream.write_all(&ours).map_err(fail)?;
        stream.read_exact(&mut [0; 5]).map_err(fail)?;
    }
    let start = Instant::now();
    let mut sending = false;
    for n in 0..o.count {
        if o.connect.is_some() {
            round(&mut party, n, &peer, n + 1 < o.count)?;
        } else {
            echo(&mut party, n, &peer, n + 1 < o.count, &mut sending)?;
        }
    }
    if sending {
        party.wait()?;
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(Report { verified: o.count, size: o.size, seconds, round_trip_us: seconds * 1e6 / o.count.max(1) as f64 })
}

/// Odd messages lie in the second slot: receives go there.
fn receive_into(party: &mut Party, n: u64) -> Result<(), Trouble> {
    party.wipe(2 * n + 1);
    party.post_receive(2 * n + 1)
}

/// Sends message `n` and gets it back.
fn round(party: &mut Party, n: u64, peer: &Address, more: bool) -> Result<(), Trouble> {
    party.fill(2 * n);
    party.post(2 * n, WrOpcode::Send, peer)?;
    // Both completions, in either order.
    party.wait()?;
    party.wait()?;
    party.verify_as(2 * n + 1, 2 * n)?;
    if more {
        receive_into(party, n + 1)
    } else {
        Ok(())
    }
}

/// Gets message `n` and sends it back. `sending`: a send has not completed yet, so its slot may not be written.
fn echo(party: &mut Party, n: u64, peer: &Address, more: bool, sending: &mut bool) -> Result<(), Trouble> {
    let mut got = None;
    while got.is_none() || *sending {
        let c = party.wait()?;
        if c.is_recv {
            got = Some(c.byte_len as usize);
        } else {
            *sending = false;
        }
    }
    party.copy(2 * n + 1, 2 * n, got.unwrap_or(0))?;
    if more {
        receive_into(party, n + 1)?;
    }
    party.post(2 * n, WrOpcode::Send, peer)?;
    *sending = true;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_text_is_that_of_the_stock_programs() {
        let a = Address { qpn: 0x11, psn: 0xabcdef, mac: [0; 6], ip: IpAddr::from([10, 9, 0, 1]), rkey: 0, addr: 0, len: 0 };
        let t = text(&a);
        assert_eq!(t, b"0000:000011:abcdef:00000000000000000000ffff0a090001\0");
        assert_eq!(t.len(), TEXT);
        assert_eq!(parse(&t), Some((0x11, 0xabcdef, a.ip)));
        for bad in [&b""[..], b"0000:000011", b"0000:xx:abcdef:00000000000000000000ffff0a090001", b"0000:000011:abcdef:ff", &[0xff; 52]] {
            assert_eq!(parse(bad), None);
        }
    }
}
