//! `ferric run`: programs on simulated cards of their own. Starts the cards, says in the environment where they are, runs the program and gives its exit status.
use crate::serve::{all_functions, functions, raise_descriptors};
use ferric_abi::pci::FUNCTIONS;
use ferric_sim::pci::{Endpoint, ServeConfig, Server};
use ferric_sim::wire::WireConfig;
use ferric_sim::{Body, CardConfig, Faults, LinkConfig};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// Exit statuses of our own, as env(1) and timeout(1) have them.
const FAILED: u8 = 125;
/// The program cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// There is no such program.
const NOT_FOUND: u8 = 127;
/// A program that a signal has ended gives this and the signal's number, as in a shell.
const BY_SIGNAL: u8 = 128;
/// Signals that are passed on to the program.
const PASSED_ON: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// How often a folder is to be removed that somebody else still removes something from.
const ATTEMPTS: usize = 50;
/// How often the program and the signals are looked at.
const LOOK: Duration = Duration::from_millis(5);
/// What the libraries are told of twins, if the environment says nothing else. The smallest ACK timeout of a queue pair, an exponent: 67 ms, for they answer within one, but
/// their processor may be somebody else's for a while. The active MTU: what a packet costs a twin hardly depends on its bytes.
const OF_TWINS: [(&str, &str); 2] = [("FERRIC_ACK_TIMEOUT", "14"), ("FERRIC_MTU", "4096")];
/// Frames in a million of one percent.
const PPM: f64 = 10_000.0;
/// Wires of the first and of the second card: of two only, since a wire has two ends.
const MOST_CARDS: i64 = 2;

/// Options.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Cards: one, or two on one wire. Their addresses are 10.0.0.1 and 10.0.0.2; each further process that opens a card at the same time gets its next function, 10.0.1.1 and so on.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=MOST_CARDS))]
    pub cards: u8,
    /// Functional twins: programs without cycles, at the speed of memory. This is what there is if nothing is said.
    #[arg(long, conflicts_with = "gateware")]
    pub twin: bool,
    /// Gateware, simulated cycle by cycle by Verilator.
    #[arg(long)]
    pub gateware: bool,
    /// The card of the gateware: `roce`, `vxlan` or `switch` (docs/engines.md). One card alone is `switch`, whose functions and queue pairs reach each other, if nothing is said; two are `roce`.
    #[arg(long, requires = "gateware", value_parser = crate::serve::engines)]
    pub engines: Option<&'static str>,
    /// Functions of each twin, which is how many processes may share it: 4 to 64, a power of two. Each but function 0 has its share of the card's 1,024 queue pairs.
    #[arg(long, default_value_t = FUNCTIONS, value_parser = functions, conflicts_with = "gateware")]
    pub functions: u16,
    /// Percent of the frames that the wire between two cards loses, 0 to 100.
    #[arg(long, default_value_t = 0.0, value_parser = percent)]
    pub loss: f64,
    /// Write a pcapng of the wire between two cards.
    #[arg(long)]
    pub pcap: Option<PathBuf>,
    /// Seed of what is random: which frames are lost.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Folder with our libibverbs.so.1 and librdmacm.so.1 [default: where `./scripts/verbs` puts them beside this program]
    #[arg(long)]
    pub libraries: Option<PathBuf>,
    /// Program and its arguments, behind `--`.
    #[arg(required = true, last = true)]
    pub program: Vec<OsString>,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(p) if (0.0..=100.0).contains(&p) => Ok(p),
        _ => Err("a percentage is 0 to 100".into()),
    }
}

/// Signal that the program is to have, 0: none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // What the terminal sends, the kernel gives to the program, too; what a process sends is for us alone.
    // SAFETY: the kernel gives a valid record to a handler of this kind.
    if unsafe { (*info).si_code } <= 0 {
        SIGNAL.store(signal, Ordering::Relaxed);
    }
}

/// From now on signals are noted for the program instead of ending this process.
fn catch_signals() {
    for signal in PASSED_ON {
        // SAFETY: an all-zero record is a valid one; the handler only stores to an atomic.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// The folder with the libraries: the one that was named, or beside this program, as built (`target/verbs`) or installed (`lib/ferric`).
fn libraries(named: Option<&Path>) -> Result<PathBuf, String> {
    let has = |dir: &PathBuf| dir.join("libibverbs.so.1").is_file();
    if let Some(dir) = named {
        let dir = std::path::absolute(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        return if has(&dir) { Ok(dir) } else { Err(format!("{} has no libibverbs.so.1; ./scripts/verbs builds it", dir.display())) };
    }
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let above = program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let places = [above.join("verbs"), above.join("lib/ferric")];
    places
        .iter()
        .find(|dir| has(dir))
        .cloned()
        .ok_or_else(|| format!("no libibverbs.so.1 in {} or {}: build it with ./scripts/verbs, or say where it is with --libraries", places[0].display(), places[1].display()))
}

/// A folder for the sockets, which only this user may enter; removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let mut template = std::env::temp_dir().join("ferric-run-XXXXXX").into_os_string().into_encoded_bytes();
        template.push(0);
        // SAFETY: the template ends with a zero and is ours.
        if unsafe { libc::mkdtemp(template.as_mut_ptr().cast()) }.is_null() {
            return Err(io::Error::last_os_error());
        }
        template.pop();
        // SAFETY: mkdtemp has only replaced bytes of what was an encoded name by ASCII letters.
        Ok(Self(unsafe { OsString::from_encoded_bytes_unchecked(template) }.into()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Whoever serves a socket takes it away when it ends, maybe in this moment, in which the folder is not empty or has lost what was to be removed.
        for _ in 0..ATTEMPTS {
            match std::fs::remove_dir_all(&self.0) {
                Err(e) if e.kind() != io::ErrorKind::NotFound || self.0.exists() => log::warn!("{}: {e}", self.0.display()),
                _ => break,
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Options {
    fn config(&self, folder: &Path) -> ServeConfig {
        // A twin has the larger tables, which cost it nothing, and no cycles that a frame could take on the wire.
        let (body, width, delay) = if self.gateware { (Body::Gateware, 64, LinkConfig::default().delay) } else { (Body::Twin, 512, 0) };
        let engines = self.engines.unwrap_or(match self.cards {
            1 if self.gateware => "switch",
            _ => CardConfig::default().engines,
        });
        let faults = Faults { loss: (self.loss * PPM) as u32, ..Faults::default() };
        ServeConfig {
            cards: (0..self.cards).map(|_| CardConfig { body, engines, functions: self.functions.into(), ..ServeConfig::card(width) }).collect(),
            endpoints: all_functions((0..self.cards.into()).map(|card| Endpoint { card, function: 0, socket: folder.join(format!("card{card}")) }).collect(), self.functions),
            shared: true,
            sriov: false,
            wire: if self.cards == 2 { WireConfig::Peer } else { WireConfig::None },
            link: LinkConfig { faults, delay, ..LinkConfig::default() },
            capture: self.pcap.clone(),
            seed: self.seed,
        }
    }

    /// The program as it is to be started; `limit`: what it may have of descriptors.
    fn command(&self, config: &ServeConfig, libraries: &Path, limit: Option<libc::rlimit>) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]);
        let physical = config.endpoints.iter().filter(|e| e.function == 0);
        let devices: Vec<String> = physical.map(|e| format!("{}@10.0.0.{}+", e.socket.display(), e.card + 1)).collect();
        command.env("FERRIC_DEVICES", devices.join(","));
        let others = std::env::var_os("LD_LIBRARY_PATH").filter(|path| !path.is_empty());
        let path = others.map_or_else(|| libraries.into(), |path| [libraries.as_os_str(), &path].join(std::ffi::OsStr::new(":")));
        command.env("LD_LIBRARY_PATH", path);
        for (name, value) in OF_TWINS {
            if !self.gateware && std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        // SAFETY: prctl and setrlimit may be called between fork and exec.
        unsafe {
            command.pre_exec(move || {
                if let Some(limit) = &limit {
                    libc::setrlimit(libc::RLIMIT_NOFILE, limit);
                }
                // Whoever kills us with a signal that cannot be caught ends the program, too.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                Ok(())
            });
        }
        command
    }
}

/// Waits for the program, and passes signals on to it.
fn wait(mut program: Child, server: &Server) -> io::Result<ExitStatus> {
    let mut told = false;
    loop {
        if let Some(status) = program.try_wait()? {
            return Ok(status);
        }
        let signal = SIGNAL.swap(0, Ordering::Relaxed);
        if signal != 0 {
            // SAFETY: no memory involved; the child has not been waited for.
            unsafe { libc::kill(program.id() as libc::pid_t, signal) };
        }
        if server.has_died() && !std::mem::replace(&mut told, true) {
            // The program sees that its cards have gone.
            eprintln!("ferric run: the simulation has ended with a panic; its message is above");
        }
        std::thread::sleep(LOOK);
    }
}

/// Runs the program; its exit status, or one of our own.
pub fn status(options: &Options) -> u8 {
    run(options).unwrap_or_else(|e| {
        eprintln!("ferric run: {e}");
        FAILED
    })
}

fn run(options: &Options) -> Result<u8, Box<dyn std::error::Error>> {
    if options.cards == 1 && (options.loss > 0.0 || options.pcap.is_some()) {
        return Err("a single card has no wire that could lose frames or be captured: say --cards 2".into());
    }
    let libraries = libraries(options.libraries.as_deref())?;
    let folder = Folder::new().map_err(|e| format!("a folder for sockets: {e}"))?;
    let config = options.config(&folder.0);
    let limit = raise_descriptors();
    let server = Server::start(&config)?;
    catch_signals();
    let name = options.program[0].to_string_lossy();
    let program = match options.command(&config, &libraries, limit).spawn() {
        Ok(program) => program,
        Err(e) => {
            eprintln!("ferric run: {name}: {e}");
            return Ok(if e.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE });
        }
    };
    let status = wait(program, &server)?;
    server.stop();
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, signal) => BY_SIGNAL.wrapping_add(signal.unwrap_or(0) as u8),
    })
}
