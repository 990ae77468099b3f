//! `ferric target`: sets a memory target up for this host's RDMA device, and serves a simulated one.
#[cfg(feature = "cards")]
use crate::serve;
use clap::{Args, Subcommand, ValueEnum};
use ferric_abi::codes::QpState;
use ferric_abi::target::SetupReply;
use ferric_driver::target::{PeerQp, Target};
#[cfg(feature = "cards")]
use ferric_sim::board::{BoardConfig, BoardServer};
use ferric_sim::wire::WireConfig;
use serde_json::json;
use std::error::Error;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Memory, receive ring, counters, and the state of a queue pair
    Query {
        /// Where it is.
        #[command(flatten)]
        to: To,
        /// Queue pair whose state is asked for.
        #[arg(long)]
        qp: Option<u32>,
    },
    /// Make a key over a piece of its memory
    Key {
        /// Where it is.
        #[command(flatten)]
        to: To,
        /// First byte.
        #[arg(long, default_value_t = 0)]
        start: u32,
        /// Bytes [default: to the end of the memory].
        #[arg(long)]
        length: Option<u32>,
        /// Whose it is, and what they may do.
        #[command(flatten)]
        grant: Grant,
    },
    /// Make its end of an RC queue pair of this host
    Qp {
        /// Where it is.
        #[command(flatten)]
        to: To,
        /// This host's queue pair.
        #[arg(long)]
        peer_qpn: u32,
        /// PSN of this host's first request.
        #[arg(long)]
        first_psn: u32,
        /// Path MTU: 256, 512, 1024, 2048 or 4096.
        #[arg(long, default_value_t = 1024, value_parser = mtu)]
        mtu: u16,
        /// Partition key.
        #[arg(long, default_value_t = 0xffff)]
        pkey: u16,
        /// Whose it is, and what they may do.
        #[command(flatten)]
        grant: Grant,
    },
    /// Lay the receive ring, while there is no queue pair
    Ring {
        /// Where it is.
        #[command(flatten)]
        to: To,
        /// First byte, a multiple of 4096.
        #[arg(long)]
        start: u32,
        /// Bytes of a slot, a power of two from 64 to 4096: 32 of record, then the message.
        #[arg(long, default_value_t = 2048, value_parser = power)]
        slot: u32,
        /// Slots, a power of two up to 64.
        #[arg(long, default_value_t = 4, value_parser = power)]
        slots: u32,
    },
    /// Give slots of the receive ring back
    Release {
        /// Where it is.
        #[command(flatten)]
        to: To,
        /// Number of the first message that is still needed.
        #[arg(long)]
        before: u16,
    },
    /// End a key of this host
    EndKey {
        /// Where it is.
        #[command(flatten)]
        to: To,
        /// The key.
        #[arg(value_parser = number)]
        key: u32,
    },
    /// End a queue pair of this host
    EndQp {
        /// Where it is.
        #[command(flatten)]
        to: To,
        /// The target's number for it.
        qp: u32,
    },
    /// Simulate the ECPIX-5 with the target in it, its Ethernet pins on a wire of this host; it is 10.0.0.1, MAC 02:fe:11:00:00:01
    Serve(Serve),
}

/// A target on the network.
#[derive(Args, Debug)]
pub struct To {
    /// The target's IP address.
    address: IpAddr,
    /// Seconds without an answer after which it gives up.
    #[arg(long, default_value_t = 1)]
    patience: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What a key or a queue pair allows.
#[derive(Args, Debug)]
pub struct Grant {
    /// Protection domain: keys work for queue pairs of the same one.
    #[arg(long, default_value_t = 0)]
    pd: u32,
    /// What peers may do; the queue pair and the key must both allow it.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "write,read,atomic")]
    rights: Vec<Right>,
}

/// What a peer may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Right {
    /// RDMA WRITE.
    Write,
    /// RDMA READ.
    Read,
    /// FETCH_ADD and COMPARE_SWAP.
    Atomic,
}

/// Options of `serve`.
#[derive(Args, Debug)]
pub struct Serve {
    /// What the Ethernet pins are plugged into: udp:LOCAL,REMOTE, tap:[NAMESPACE/]INTERFACE, packet:[NAMESPACE/]INTERFACE.
    #[arg(long)]
    wire: WireConfig,
    /// Write a pcapng of the wire.
    #[arg(long)]
    pcap: Option<PathBuf>,
    /// Print counters as JSON at the end.
    #[arg(long)]
    json: bool,
}

fn mtu(text: &str) -> Result<u16, String> {
    text.parse().ok().filter(|m| (256u16..=4096).contains(m) && m.is_power_of_two()).ok_or_else(|| "256, 512, 1024, 2048 or 4096".into())
}

fn power(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|n: &u32| n.is_power_of_two()).ok_or_else(|| "not a power of two".into())
}

fn number(text: &str) -> Result<u32, String> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |hex| (hex, 16));
    u32::from_str_radix(digits, radix).map_err(|e| e.to_string())
}

impl To {
    fn open(&self) -> Result<Target, Box<dyn Error>> {
        // Numbers of requests: microseconds, so that no two commands of a host use the same one.
        let seq = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as u32;
        Ok(Target::at(self.address, seq)?.with_patience(Duration::from_secs(self.patience.max(1))))
    }

    fn say(&self, json: serde_json::Value, text: String) {
        println!("{}", if self.json { json.to_string() } else { text });
    }
}

impl Grant {
    fn rights(&self) -> u8 {
        self.rights.iter().fold(0, |all, right| all | 1 << *right as u8)
    }
}

fn told(to: &To, qp: Option<u32>, r: &SetupReply) {
    let state = QpState::from_u8(r.state()).map_or_else(|| r.state().to_string(), |s| format!("{s:?}"));
    let mut json = json!({ "ram_bytes": r.ram_bytes(), "ring": { "start": r.ring_base(), "slot": 0, "slots": 0, "head": r.ring_head(), "consumer": r.ring_consumer() },
        "frames": r.frames(), "requests": r.requests(), "qp_errors": r.errors(), "refused": r.refused(), "echoes": r.echoes(), "malformed": r.malformed(), "ticks": r.now() });
    let mut text = format!("{} bytes of memory\nreceive ring: none\n", r.ram_bytes());
    if r.ring_log_slot() != 0 {
        let (slot, slots) = (1u32 << r.ring_log_slot(), 1u32 << r.ring_log_count());
        (json["ring"]["slot"], json["ring"]["slots"]) = (slot.into(), slots.into());
        text = format!(
            "{} bytes of memory\nreceive ring: {slots} slots of {slot} bytes from byte {} on; {} messages have come, those before {} are given back\n",
            r.ram_bytes(),
            r.ring_base(),
            r.ring_head(),
            r.ring_consumer()
        );
    }
    if let Some(qp) = qp {
        json["qp"] = json!({ "number": qp, "state": state, "epsn": r.epsn(), "msn": r.msn() });
        text += &format!("queue pair {qp}: {state}, expects PSN {:#08x}, {} messages completed\n", r.epsn(), r.msn());
    }
    text += &format!(
        "RoCE frames {}, requests {}, queue pairs that went to error {}, set-up requests refused {}\nARP and echo requests answered {}, malformed {}\n{:.3} s since the reset",
        r.frames(),
        r.requests(),
        r.errors(),
        r.refused(),
        r.echoes(),
        r.malformed(),
        f64::from(r.now()) * 1.024e-6
    );
    to.say(json, text);
}

/// Does it. Errors: the target is silent or refuses; the board cannot be built or plugged in.
pub fn run(command: &Command) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Query { to, qp } => told(to, *qp, &to.open()?.query(qp.unwrap_or_default())?),
        Command::Key { to, start, length, grant } => {
            let target = to.open()?;
            let length = match length {
                Some(length) => *length,
                None => target.query(0)?.ram_bytes().saturating_sub(*start),
            };
            let key = target.create_key(*start, length, grant.pd, grant.rights())?;
            to.say(json!({ "key": key, "start": start, "length": length }), format!("key {key:#010x} over {length} bytes from byte {start} on"));
        }
        Command::Qp { to, peer_qpn, first_psn, mtu, pkey, grant } => {
            let peer = PeerQp { qpn: *peer_qpn, first_psn: *first_psn, pd: grant.pd, pkey: *pkey, mtu: mtu.trailing_zeros() as u8 - 7, rights: grant.rights() };
            let qp = to.open()?.create_qp(&peer)?;
            to.say(json!({ "qp": qp }), format!("queue pair {qp}"));
        }
        Command::Ring { to, start, slot, slots } => {
            let next = to.open()?.set_ring(*start, slot.trailing_zeros() as u8, slots.trailing_zeros() as u8)?;
            to.say(json!({ "start": start, "slot": slot, "slots": slots, "next": next }), format!("next message {next}, in a ring of {slots} slots of {slot} bytes from byte {start} on"));
        }
        Command::Release { to, before } => {
            to.open()?.release(*before)?;
            to.say(json!({ "before": before }), format!("slots before message {before} are given back"));
        }
        Command::EndKey { to, key } => {
            to.open()?.destroy_key(*key)?;
            to.say(json!({ "key": key }), format!("key {key:#010x} has ended"));
        }
        Command::EndQp { to, qp } => {
            to.open()?.destroy_qp(*qp)?;
            to.say(json!({ "qp": qp }), format!("queue pair {qp} has ended"));
        }
        Command::Serve(options) => return simulate(options),
    }
    Ok(())
}

#[cfg(not(feature = "cards"))]
fn simulate(_: &Serve) -> Result<(), Box<dyn Error>> {
    Err("this program has been built without the gateware, which the board is made of".into())
}

/// Serves a simulated board until SIGINT or SIGTERM.
#[cfg(feature = "cards")]
fn simulate(options: &Serve) -> Result<(), Box<dyn Error>> {
    serve::catch_signals();
    let server = BoardServer::start(&BoardConfig { wire: options.wire.clone(), capture: options.pcap.clone() })?;
    serve::wait(serve::PANIC, || server.has_died())?;
    let c = server.counters();
    if options.json {
        println!("{}", json!({ "cycles": c.cycles, "frames_in": c.frames[0], "frames_out": c.frames[1], "frames_dropped": c.dropped }));
    } else {
        println!("{} cycles of 8 ns, {} frames in, {} out, {} dropped for want of speed", c.cycles, c.frames[0], c.frames[1], c.dropped);
    }
    server.stop();
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::args::{Cli, Command};
    use clap::Parser;
    use ferric_abi::codes::TargetOp;
    use ferric_abi::target::{SetupReply, SetupRequest, MAGIC, PORT};
    use std::net::UdpSocket;

    fn run(line: &str) -> Result<(), String> {
        let cli = Cli::try_parse_from(line.split_whitespace()).map_err(|e| e.to_string())?;
        let Command::Target { command } = &cli.command else { panic!("another command") };
        super::run(command).map_err(|e| e.to_string())
    }

    #[test]
    fn options_become_requests() {
        // An address of the loopback interface that nobody else takes.
        let socket = UdpSocket::bind(("127.83.1.7", PORT)).unwrap();
        let target = std::thread::spawn(move || {
            let mut seen = Vec::new();
            while seen.len() < 4 {
                let mut bytes = [0; 64];
                let (_, from) = socket.recv_from(&mut bytes).unwrap();
                let request = SetupRequest(bytes);
                let reply = SetupReply::default().with_magic(MAGIC).with_op(request.op()).with_seq(request.seq()).with_ram_bytes(1000).with_object(3);
                // The last one is refused.
                socket.send_to(&reply.with_status(if request.op() == TargetOp::Release as u8 { 5 } else { 0 }).0, from).unwrap();
                seen.push(request);
            }
            seen
        });
        run("ferric target qp 127.83.1.7 --peer-qpn 17 --first-psn 99 --mtu 4096 --rights write,atomic --pd 5").unwrap();
        run("ferric target key 127.83.1.7 --start 400 --rights read --json").unwrap();
        assert_eq!(run("ferric target release 127.83.1.7 --before 9").unwrap_err(), "the target refuses: Refused");
        let seen = target.join().unwrap();
        let qp = seen[0];
        assert_eq!((qp.op(), qp.peer_qpn(), qp.first_psn(), qp.pmtu(), qp.rights(), qp.pd(), qp.pkey()), (TargetOp::CreateQp as u8, 17, 99, 5, 5, 5, 0xffff));
        // Without a length it asks how much there is.
        assert_eq!(seen[1].op(), TargetOp::Query as u8);
        assert_eq!((seen[2].op(), seen[2].start(), seen[2].length(), seen[2].rights()), (TargetOp::CreateKey as u8, 400, 600, 2));
        assert_eq!(seen[3].consumer(), 9);
    }

    #[test]
    fn what_makes_no_sense_is_refused_at_once() {
        for line in ["qp 127.0.0.1 --peer-qpn 1 --first-psn 0 --mtu 1000", "ring 127.0.0.1 --start 0 --slot 100", "key 127.0.0.1 --rights everything", "end-key 127.0.0.1 0xgg", "serve"] {
            assert!(run(&format!("ferric target {line}")).is_err(), "{line}");
        }
        assert!(run("ferric target serve --wire none").unwrap_err().contains("not none"));
    }
}
