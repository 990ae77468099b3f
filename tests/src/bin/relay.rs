//! Joins two machines whose network cards are UDP datagrams (QEMU's `-netdev dgram`, `ferric card serve --wire udp:...`), loses RoCEv2
//! frames at random if asked to, and writes what went by as pcapng, each frame's fate in its comment.
use clap::Parser;
use ferric_tests::replay::capture::{write, Packet};
use ferric_tests::rxe_placement::{translate, Once};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A wire between two machines. Ends with SIGTERM and then prints what it did as JSON.
#[derive(Parser)]
struct Args {
    /// First machine: our address, its address.
    #[arg(long, value_parser = ends)]
    left: (SocketAddr, SocketAddr),
    /// Second machine.
    #[arg(long, value_parser = ends)]
    right: (SocketAddr, SocketAddr),
    /// Of a thousand RoCEv2 frames so many are lost, those in VXLAN tunnels among them.
    #[arg(long, default_value_t = 0)]
    loss: u32,
    /// The second machine is a Linux that uses FLUSH and ATOMIC WRITE: each FLUSH gets the ICRC that its receiver wants, and what Linux cannot repeat is not lost.
    #[arg(long)]
    rxe_placement: bool,
    /// Seed of the losses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write one file for all.
    #[arg(long)]
    pcap: Option<PathBuf>,
    /// Write a file for each exchange into this folder: the first machine begins exchange N by an echo request of 1000 + N bytes.
    #[arg(long, requires = "names")]
    folder: Option<PathBuf>,
    /// Names of the exchanges: the first word of each line that is not a comment.
    #[arg(long)]
    names: Option<PathBuf>,
}

fn ends(text: &str) -> Result<(SocketAddr, SocketAddr), String> {
    let (a, b) = text.split_once(',').ok_or("two addresses with a comma between them")?;
    let parse = |s: &str| s.parse().map_err(|e| format!("{s}: {e}"));
    Ok((parse(a)?, parse(b)?))
}

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// Bytes of payload of an ICMP echo request.
fn echo_request(f: &[u8]) -> Option<usize> {
    let ip = f.get(14..)?;
    let head = (*ip.first()? & 15) as usize * 4;
    let is = f[12..14] == [8, 0] && *ip.get(9)? == 1 && *ip.get(head)? == 8;
    is.then(|| (u16::from_be_bytes([ip[2], ip[3]]) as usize).saturating_sub(head + 8))
}

/// RoCEv2, or RoCEv2 in a VXLAN tunnel.
fn is_roce(f: &[u8]) -> bool {
    let udp = match f.get(12..14) {
        Some([8, 0]) if f.get(23) == Some(&17) => 14 + (f[14] & 15) as usize * 4,
        Some([0x86, 0xdd]) if f.get(20) == Some(&17) => 54,
        _ => return false,
    };
    match f.get(udp + 2..udp + 4).map(|port| u16::from_be_bytes([port[0], port[1]])) {
        Some(4791) => true,
        Some(4789) => f.get(udp + 16..).is_some_and(is_roce),
        _ => false,
    }
}

/// What both directions share.
struct Shared {
    random: ChaCha8Rng,
    loss: u32,
    packets: Vec<Packet>,
    /// Where they go; `None`: nowhere.
    to: Option<PathBuf>,
    folder: Option<PathBuf>,
    names: Vec<String>,
    /// Of a Linux with FLUSH.
    once: Option<Once>,
    seen: [u64; 2],
    lost: [u64; 2],
    failure: Option<String>,
}

impl Shared {
    /// Whether the frame goes on.
    fn passes(&mut self, side: usize, f: &[u8]) -> bool {
        if let (Some(folder), 0, Some(n)) = (self.folder.clone(), side, echo_request(f)) {
            if let Some(name) = n.checked_sub(1000).and_then(|n| self.names.get(n)).cloned() {
                self.flush();
                self.to = Some(folder.join(format!("{name}.pcapng")));
            }
        }
        if !is_roce(f) {
            return true;
        }
        self.seen[side] += 1;
        let spared = self.once.as_mut().is_some_and(|once| once.has_to_arrive(f, side == 1));
        let lost = !spared && self.loss > 0 && self.random.gen_range(0..1000) < self.loss;
        self.lost[side] += u64::from(lost);
        if self.to.is_some() {
            let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
            // So that a reader need not guess what became of the others.
            let comment = match (lost, self.packets.is_empty()) {
                (true, _) => "relay: DROPPED, never delivered",
                (false, true) => "relay: delivered once, as all that says nothing else",
                (false, false) => "",
            };
            let comment = comment.to_owned();
            self.packets.push(Packet { time, bytes: f.to_vec(), comment, direction: side as u32 + 1 });
        }
        !lost
    }

    /// Ends a file.
    fn flush(&mut self) {
        let Some(to) = self.to.take() else { return };
        let packets = std::mem::take(&mut self.packets);
        if packets.is_empty() {
            return;
        }
        let done = write(&packets).map_err(|e| e.to_string()).and_then(|bytes| std::fs::write(&to, bytes).map_err(|e| e.to_string()));
        if let Err(e) = done {
            self.failure = Some(format!("{}: {e}", to.display()));
        }
    }
}

fn carry(from: &UdpSocket, to: &UdpSocket, at: SocketAddr, side: usize, rxe_placement: bool, shared: &Mutex<Shared>) {
    let mut buffer = vec![0; 1 << 16];
    while !STOP.load(Ordering::Relaxed) {
        let Ok(n) = from.recv(&mut buffer) else { continue };
        if shared.lock().unwrap_or_else(PoisonError::into_inner).passes(side, &buffer[..n]) {
            if rxe_placement {
                translate(&mut buffer[..n], side == 0);
            }
            // A machine that is not there yet loses its frames, as on any wire.
            let _ = to.send_to(&buffer[..n], at);
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    let names = match &args.names {
        Some(file) => std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?,
        None => String::new(),
    };
    let names = names.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_whitespace().next()).map(str::to_owned).collect();
    let bind = |at: SocketAddr| {
        let socket = UdpSocket::bind(at).map_err(|e| format!("{at}: {e}"))?;
        socket.set_read_timeout(Some(Duration::from_millis(100))).map_err(|e| e.to_string())?;
        Ok::<_, String>(socket)
    };
    let (left, right) = (bind(args.left.0)?, bind(args.right.0)?);
    let shared = Mutex::new(Shared {
        random: ChaCha8Rng::seed_from_u64(args.seed),
        loss: args.loss,
        packets: Vec::new(),
        to: args.pcap.clone(),
        folder: args.folder.clone(),
        names,
        once: args.rxe_placement.then(Once::default),
        seen: [0; 2],
        lost: [0; 2],
        failure: None,
    });
    println!("ready");
    let _ = std::io::stdout().flush();
    std::thread::scope(|s| {
        s.spawn(|| carry(&left, &right, args.right.1, 0, args.rxe_placement, &shared));
        s.spawn(|| carry(&right, &left, args.left.1, 1, args.rxe_placement, &shared));
    });
    let mut shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    shared.flush();
    let lost = shared.lost[0] + shared.lost[1];
    println!("{}", serde_json::json!({ "roce_frames": shared.seen, "dropped": shared.lost, "dropped_all": lost }));
    shared.failure.map_or(Ok(()), Err)
}

fn main() -> ExitCode {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, stop as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    }
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("relay: {e}");
            ExitCode::FAILURE
        }
    }
}
