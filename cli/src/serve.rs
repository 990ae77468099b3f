//! `ferric card serve`: simulated cards for other processes and virtual machines.
use ferric_abi::codes::VirtioCause;
use ferric_abi::pci::FUNCTIONS;
use ferric_abi::virtio::feature;
use ferric_sim::pci::{Endpoint, ServeConfig, Server};
use ferric_sim::virtio::{FunctionConfig, NetCounters, Offer, MOST_PAIRS};
use ferric_sim::wire::WireConfig;
use ferric_sim::{Body, CardConfig, Error, LinkConfig};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// As many functions as a card has at most.
const MOST_FUNCTIONS: u16 = 64;

/// Options.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Socket of a card's physical function; twice for two cards on one wire.
    #[arg(long, required = true, num_args = 1)]
    pub socket: Vec<PathBuf>,
    /// Sockets of virtual functions of the first card, from function 1 on.
    #[arg(long)]
    pub vf_socket: Vec<PathBuf>,
    /// Virtual functions of each card, which are there when the owner of its physical function enables them (`ferric vf`): SR-IOV. Their sockets are PATH.1 and so on.
    #[arg(long, default_value_t = 0, conflicts_with_all = ["vf_socket", "shared"], value_parser = clap::value_parser!(u16).range(0..MOST_FUNCTIONS as i64))]
    pub vfs: u16,
    /// Whoever connects to a card gets its next free function: as many processes may use the card as it has functions. Those after the first have sockets, too: PATH.1 and so on.
    #[arg(long, conflicts_with = "vf_socket")]
    pub shared: bool,
    /// Wire of a single card: none, loop, udp:LOCAL,REMOTE, tap:[NAMESPACE/]INTERFACE, packet:[NAMESPACE/]INTERFACE.
    #[arg(long)]
    pub wire: Option<WireConfig>,
    /// Write a pcapng of the wire.
    #[arg(long)]
    pub pcap: Option<PathBuf>,
    /// Serve functional twins instead of gateware: programs without cycles, at the speed of memory. They need no Verilator.
    #[arg(long)]
    pub twin: bool,
    /// Data path width in bits: 64 or 512. Of a twin the size of its tables.
    #[arg(long, default_value_t = 64, value_parser = width)]
    pub width: usize,
    /// Functions of each card, which is how many processes may share it: 4 to 64, a power of two. Others than 4 are for twins only; each but function 0 has its share of the card's tables.
    #[arg(long, default_value_t = FUNCTIONS, value_parser = functions, requires = "twin")]
    pub functions: u16,
    /// The card: `roce`; `vxlan`, which is the end of tunnels; or `switch`, which has flow tables, too, and is of gateware only (docs/engines.md, docs/switch.md).
    #[arg(long, default_value = ferric_sim::CardConfig::default().engines, value_parser = engines)]
    pub engines: &'static str,
    /// Socket of a virtio network function, for a guest's stock driver (docs/virtio.md); several times for several. `1:PATH`: of the second card. Beside twins only: it is the golden model, or see --gateware.
    #[arg(long, requires = "twin", value_name = "[CARD:]PATH")]
    pub virtio: Vec<String>,
    /// The rings of virtio functions are run by the gateware's engine, compiled by Verilator, of the card's width; registers, commands and filters are the model's. It has fewer features (docs/virtio.md).
    #[arg(long, requires = "virtio")]
    pub gateware: bool,
    /// Pairs of queues of each virtio function; with --gateware it is one.
    #[arg(long, default_value_t = 1, requires = "virtio", value_parser = clap::value_parser!(u16).range(1..=MOST_PAIRS as i64))]
    pub pairs: u16,
    /// Features that virtio functions do not offer, by their names in the specification: ring_packed,event_idx. What needs them is not offered either.
    #[arg(long, requires = "virtio", value_delimiter = ',', value_parser = feature)]
    pub without: Vec<u64>,
    /// Seed of what is random around the card.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print counters as JSON at the end.
    #[arg(long)]
    pub json: bool,
}

fn width(text: &str) -> Result<usize, String> {
    match text {
        "64" => Ok(64),
        "512" => Ok(512),
        _ => Err("a card is built with 64 or 512 bits".into()),
    }
}

/// A number of functions that a twin may have.
pub fn functions(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(n @ FUNCTIONS..=MOST_FUNCTIONS) if u16::is_power_of_two(n) => Ok(n),
        _ => Err("a card has 4, 8, 16, 32 or 64 functions".into()),
    }
}

pub(crate) fn engines(text: &str) -> Result<&'static str, String> {
    ["roce", "vxlan", "switch"].into_iter().find(|card| *card == text).ok_or_else(|| "there are the cards roce, vxlan and switch".into())
}

/// A feature's bit as a mask.
fn feature(name: &str) -> Result<u64, String> {
    let names = || feature::ALL.iter().filter(|f| Offer::KNOWN >> f.bit & 1 == 1);
    let wanted = name.trim().to_uppercase().replace('-', "_");
    let found = names().find(|f| f.name == wanted).map(|f| 1 << f.bit);
    found.ok_or_else(|| format!("there is no feature `{name}`; there are {}", names().map(|f| f.name.to_lowercase()).collect::<Vec<_>>().join(", ")))
}

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// `physical`, and behind them the other functions of their cards, which have `functions` each; their sockets have their numbers at the end.
pub fn all_functions(physical: Vec<Endpoint>, functions: u16) -> Vec<Endpoint> {
    let numbered = |e: &Endpoint, function: u16| {
        let mut socket = e.socket.clone().into_os_string();
        socket.push(format!(".{function}"));
        Endpoint { card: e.card, function, socket: socket.into() }
    };
    let virtuals: Vec<_> = physical.iter().flat_map(|e| (1..functions).map(move |function| numbered(e, function))).collect();
    physical.into_iter().chain(virtuals).collect()
}

impl Options {
    /// Native functions of each card.
    fn native(&self) -> u16 {
        self.functions.max((self.vfs + 1).next_power_of_two())
    }

    fn config(&self) -> ServeConfig {
        let wire = self.wire.clone().unwrap_or(if self.socket.len() > 1 { WireConfig::Peer } else { WireConfig::None });
        let physical = self.socket.iter().enumerate().map(|(card, s)| Endpoint { card, function: 0, socket: s.clone() });
        let virtuals = self.vf_socket.iter().zip(1..).map(|(s, function)| Endpoint { card: 0, function, socket: s.clone() });
        let physical = physical.collect();
        // Each card's virtio functions are numbered behind its native ones.
        let mut virtio: Vec<Vec<FunctionConfig>> = vec![Vec::new(); self.socket.len()];
        let mut guests = Vec::new();
        for text in &self.virtio {
            let (card, socket) = match text.split_once(':') {
                Some(("0", path)) => (0, path),
                Some(("1", path)) => (1, path),
                _ => (0, text.as_str()),
            };
            // The server says that there is no such card.
            let number = self.native() + virtio.get(card).map_or(0, Vec::len) as u16;
            if let Some(own) = virtio.get_mut(card) {
                own.push(FunctionConfig {
                    body: if self.gateware { Body::Gateware } else { Body::Twin },
                    pairs: self.pairs,
                    without: self.without.iter().fold(0, |all, bit| all | bit),
                    ..FunctionConfig::new(card as u16, number)
                });
            }
            guests.push(Endpoint { card, function: number, socket: socket.into() });
        }
        ServeConfig {
            shared: self.shared,
            sriov: self.vfs > 0,
            cards: self
                .socket
                .iter()
                .zip(virtio)
                .map(|(_, virtio)| CardConfig {
                    virtio,
                    body: if self.twin { Body::Twin } else { Body::Gateware },
                    functions: self.native().into(),
                    engines: self.engines,
                    ..ServeConfig::card(self.width)
                })
                .collect(),
            endpoints: match (self.shared, self.vfs) {
                (true, _) => all_functions(physical, self.functions),
                (false, 0) => physical.into_iter().chain(virtuals).collect(),
                (false, vfs) => all_functions(physical, vfs + 1),
            }
            .into_iter()
            .chain(guests)
            .collect(),
            wire,
            link: LinkConfig { delay: if self.twin { 0 } else { LinkConfig::default().delay }, ..LinkConfig::default() },
            capture: self.pcap.clone(),
            seed: self.seed,
        }
    }
}

/// Lets this process have as many descriptors as the system allows: a served card has one for each piece of memory that its clients have mapped, and those of eight busy processes
/// are more than the usual 1,024. What the limit was; `None`: it stays as it is.
pub fn raise_descriptors() -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a record on the stack.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return None;
    }
    let most = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
    // SAFETY: as above.
    (unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &most) } == 0).then_some(limit)
}

/// What [`wait`] says of a simulation that has died.
pub const PANIC: &str = "the simulation has ended with a panic; its message is above";

/// Whether one of the signals of [`catch_signals`] has come.
pub fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// From now on SIGINT and SIGTERM end [`wait`] instead of the process.
pub fn catch_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, stop as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    }
}

/// Says that it is ready, and `what` behind it.
pub fn ready(what: &str) {
    println!("ready{what}");
    // A script reads this through a pipe.
    let _ = std::io::stdout().flush();
}

/// Says that it is ready, and returns at SIGINT or SIGTERM. Errors: what it depends on has died, of which `end` says how.
pub fn wait(end: &str, died: impl Fn() -> bool) -> Result<(), Error> {
    ready("");
    while !stopped() {
        if died() {
            return Err(Error::Serve(end.into()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// What a virtio function has counted: frames, chains of the queues that run, and rejects by their cause.
fn network(c: &NetCounters) -> serde_json::Value {
    let [available, skipped, used, stock, hand] = c.chains;
    let rejects: serde_json::Map<_, _> = VirtioCause::ALL.iter().map(|(cause, name, ..)| (name.to_string(), c.device.of(*cause))).filter(|(_, n)| *n > 0).map(|(name, n)| (name, n.into())).collect();
    serde_json::json!({ "arrived": c.arrived, "filtered": c.device.filtered, "delivered": c.device.delivered, "frames_add_up": c.frames_add_up(), "sent": c.device.transmitted, "left": c.left, "oversize": c.oversize,
        "commands": c.device.commands, "rejects": rejects,
        "chains": { "available": available, "skipped": skipped, "used": used, "stock": stock, "in_hand": hand, "add_up": c.chains_add_up() } })
}

/// Serves until SIGINT or SIGTERM.
pub fn run(options: &Options) -> Result<(), Error> {
    catch_signals();
    raise_descriptors();
    if options.twin && options.engines == "switch" {
        return Err(Error::Serve("twins have no flow tables: serve the card `switch` without --twin".into()));
    }
    if options.vfs >= FUNCTIONS && !options.twin {
        return Err(Error::Serve(format!("gateware has up to {} virtual functions; with --twin there may be {}", FUNCTIONS - 1, MOST_FUNCTIONS - 1)));
    }
    let config = options.config();
    let server = Server::start(&config)?;
    for e in &config.endpoints {
        let kind = if e.function >= options.native() { "virtio function" } else { "function" };
        println!("serving card {} {kind} {} at {}", e.card, e.function, e.socket.display());
    }
    wait(PANIC, || server.has_died())?;
    let functions: Vec<_> = config.endpoints.iter().enumerate().map(|(i, e)| (e, server.counters(i), (e.function >= options.native()).then(|| server.network(i)))).collect();
    if options.json {
        let list: Vec<_> = functions.iter().map(|(e, c, net)| {
            serde_json::json!({ "card": e.card, "function": e.function, "dma_reads": c.dma_passed[0], "dma_writes": c.dma_passed[1], "dma_refused": c.dma_refused,
                "dma_master_off": c.dma_master_off, "interrupts": c.interrupts, "resets": c.resets, "clients": c.clients, "clients_refused": c.refused, "bad_messages": c.nonsense, "late_accesses": c.late,
                "virtio": net.as_ref().map(network) })
        }).collect();
        println!("{}", serde_json::json!({ "functions": list, "frames_dropped": server.frames_dropped() }));
    } else {
        for (e, c, net) in &functions {
            println!("card {} function {}: {c:?}", e.card, e.function);
            if let Some(net) = net {
                println!("card {} virtio function {}: {}", e.card, e.function, network(net));
            }
        }
        println!("frames dropped for want of speed: {}", server.frames_dropped());
    }
    server.stop();
    Ok(())
}
