//! Set-up of served cards, accepting and refusing clients, end.
use super::command::{Command, Handle};
use super::door::Door;
use super::engine::Engine;
use super::function::{Counters, Function};
use super::session::{Seat, Session};
use super::sriov::Virtuals;
use crate::capture::Capture;
use crate::card::CardConfig;
use crate::error::Error;
use crate::fabric::LinkConfig;
use crate::service::Service;
use crate::timing::HostTiming;
use crate::virtio::NetCounters;
use crate::wire::{self, WireConfig};
use crate::world::{World, WorldConfig};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the accepting threads look whether they are to end.
const ACCEPT_POLL: Duration = Duration::from_millis(50);
/// Connections of one function at once. One that says nothing goes soon.
const VISITORS: usize = 64;

/// A function to serve.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Card.
    pub card: usize,
    /// Function of the card; 0 is the physical one. Virtio functions ([`CardConfig::virtio`]) come behind the native ones.
    pub function: u16,
    /// Unix socket. One that a dead server left behind is replaced.
    pub socket: PathBuf,
}

/// What to serve.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    /// One card, or two that are each other's wire ([`WireConfig::Peer`]).
    pub cards: Vec<CardConfig>,
    /// Functions and their sockets.
    pub endpoints: Vec<Endpoint>,
    /// The wire of a single card.
    pub wire: WireConfig,
    /// The wire between two cards.
    pub link: LinkConfig,
    /// Whoever connects to a card's socket gets the first function of the card that is free, of those that are served; else each socket is its function's own.
    pub shared: bool,
    /// Virtual functions are there while their card's physical function has them enabled (SR-IOV); else all that are served are there always. A card's `TotalVFs` is the number of
    /// its virtual functions that are served, which have the numbers from 1 on.
    pub sriov: bool,
    /// Write a pcapng of the wire here.
    pub capture: Option<PathBuf>,
    /// Seed.
    pub seed: u64,
}

impl ServeConfig {
    /// A card of `width` bits as it is served: the host behind it answers quickly, since every cycle takes wall time.
    pub fn card(width: usize) -> CardConfig {
        let host = HostTiming { read_latency: 16, read_jitter: 8, write_latency: 8, ..HostTiming::default() };
        CardConfig { width, host, ..CardConfig::default() }
    }
}

/// Cards being served. Ends with [`Server::stop`] or when dropped.
pub struct Server {
    functions: Vec<Arc<Function>>,
    engine: Handle,
    frames_dropped: Arc<AtomicU64>,
    service: Service,
    sockets: Vec<PathBuf>,
}

fn fail(what: impl std::fmt::Display) -> Error {
    Error::Serve(what.to_string())
}

impl Server {
    /// Builds the cards and serves them. When this returns clients can connect.
    pub fn start(config: &ServeConfig) -> Result<Self, Error> {
        let n = config.cards.len();
        let peers = config.wire == WireConfig::Peer;
        if n == 0 || n > 2 || peers != (n == 2) {
            return Err(fail("serve one card, or two with the wire `peer`"));
        }
        for (i, e) in config.endpoints.iter().enumerate() {
            if e.card >= n || usize::from(e.function) >= config.cards[e.card].functions + config.cards[e.card].virtio.len() {
                return Err(fail(format!("there is no card {} with function {}", e.card, e.function)));
            }
            if config.endpoints[..i].iter().any(|o| (o.card, o.function) == (e.card, e.function) || o.socket == e.socket) {
                return Err(fail(format!("{} is given twice", e.socket.display())));
            }
        }
        if config.sriov && config.shared {
            return Err(fail("virtual functions that come and go have each a socket of their own"));
        }
        // Sockets first: building a card can take minutes, a wrong name none.
        let listeners = config.endpoints.iter().map(|e| listen(&e.socket)).collect::<Result<Vec<_>, _>>()?;
        let sockets: Vec<PathBuf> = config.endpoints.iter().map(|e| e.socket.clone()).collect();
        let wire = config.wire.open().map_err(|e| fail(format!("wire {}: {e}", config.wire)))?;
        let world_config = WorldConfig { cards: config.cards.clone(), link: config.link, seed: config.seed, tick_cycles: u64::MAX, skip_idle: false, rest: false, threads: None };
        let mut world = World::new(&world_config)?;
        let mut capture = None;
        if let Some(path) = &config.capture {
            if peers {
                world.start_capture(path)?
            } else {
                capture = Some(Capture::create(path)?)
            }
        }
        let functions: Vec<Arc<Function>> = config.endpoints.iter().map(|e| Arc::new(function(e, config))).collect();
        let (runner, handle) = Engine::over(world, &functions, wire.clone(), capture);
        let mut server = Self { functions, engine: handle, frames_dropped: Arc::default(), service: Service::new("server"), sockets };
        server.service.push(std::thread::spawn(move || runner.run()));
        if let Some(wire) = wire {
            let engine = server.engine.clone();
            server.service.push(wire::pump(wire, server.service.stopped(), server.frames_dropped.clone(), move |frame| engine.frame(frame)));
        }
        let stop = server.service.stopped();
        let mut seats: Vec<Seat> = server.functions.iter().enumerate().map(|(number, function)| Seat { function: function.clone(), number, door: Door::new(stop.clone()), virtuals: None }).collect();
        for card in 0..if config.sriov { n } else { 0 } {
            let native = |seat: &Seat| seat.function.card == card && seat.function.virtio.is_none();
            let served = seats.iter().filter(|seat| native(seat) && seat.function.number > 0);
            let virtuals = Virtuals::new(served.map(|seat| (seat.function.number, seat.number, seat.door.clone())).collect());
            seats.iter_mut().filter(|seat| native(seat)).for_each(|seat| seat.virtuals = Some(virtuals.clone()));
        }
        for (seat, listener) in seats.iter().zip(listeners) {
            // A virtio function is its socket's alone: no program takes it for a native one.
            let shared = config.shared && seat.function.virtio.is_none();
            let own = |other: &&Seat| if shared { other.function.card == seat.function.card && other.function.virtio.is_none() } else { other.number == seat.number };
            let (own, engine, stop) = (seats.iter().filter(own).cloned().collect(), server.engine.clone(), stop.clone());
            server.service.push(std::thread::spawn(move || accept(listener, own, engine, stop)));
        }
        Ok(server)
    }

    /// Counters of an endpoint, in the order of the configuration.
    pub fn counters(&self, endpoint: usize) -> Counters {
        self.functions[endpoint].counters()
    }

    /// What an endpoint that is a virtio function has counted; zeros of others.
    pub fn network(&self, endpoint: usize) -> NetCounters {
        self.functions[endpoint].state().network.clone()
    }

    /// Frames from the wire that the simulation was too slow for.
    pub fn frames_dropped(&self) -> u64 {
        self.frames_dropped.load(Ordering::Relaxed)
    }

    /// The simulation has ended although nobody asked it to.
    pub fn has_died(&self) -> bool {
        self.service.has_died()
    }

    /// Ends everything and removes the sockets.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Sessions end before the engine: they leave a clean function behind, with its help.
        self.service.end(|| {
            self.engine.send(Command::Stop, Duration::from_secs(5));
        });
        self.sockets.drain(..).for_each(|s| drop(std::fs::remove_file(s)));
    }
}

/// The function behind an endpoint, native or virtio.
fn function(endpoint: &Endpoint, config: &ServeConfig) -> Function {
    let native = config.cards[endpoint.card].functions as u16;
    match endpoint.function.checked_sub(native) {
        Some(index) => Function::virtio(endpoint.card, index.into(), native),
        None if config.sriov => {
            let last = config.endpoints.iter().filter(|e| e.card == endpoint.card && e.function < native).map(|e| e.function).max();
            Function::among(endpoint.card, endpoint.function, last.map_or(1, |last| last + 1))
        }
        None => Function::among(endpoint.card, endpoint.function, native),
    }
}

/// A listening socket at `path`, in place of one that nobody listens to any more; it does not block. Errors: somebody serves there, or there is something that is no socket.
pub fn listen(path: &Path) -> Result<UnixListener, Error> {
    let shown = path.display();
    if let Ok(found) = path.symlink_metadata() {
        // A plain file refuses connections just as a dead socket does.
        if !found.file_type().is_socket() {
            return Err(fail(format!("{shown} exists and is no socket to replace")));
        }
        match UnixStream::connect(path) {
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path).map_err(|e| fail(format!("{shown}: {e}")))?,
            Ok(_) => return Err(fail(format!("{shown}: another process serves there; choose another name or end it"))),
            Err(e) => return Err(fail(format!("{shown}: {e}"))),
        }
    }
    let listener = UnixListener::bind(path).map_err(|e| fail(format!("{shown}: {e}")))?;
    listener.set_nonblocking(true).map_err(fail)?;
    Ok(listener)
}

/// A connection: a client, or one that has not said hello.
struct Visitor {
    thread: JoinHandle<()>,
    stream: UnixStream,
    silent: Arc<AtomicBool>,
}

/// Waits until somebody comes, or for `limit`.
fn wait(listener: &UnixListener, limit: Duration) {
    let mut fd = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid entry.
    unsafe { libc::poll(&mut fd, 1, limit.as_millis() as i32) };
}

/// Accepts connections. Each is heard by a thread of its own, so that one that says nothing keeps nobody waiting.
fn accept(listener: UnixListener, seats: Arc<[Seat]>, engine: Handle, stop: Arc<AtomicBool>) {
    let function = seats[0].function.clone();
    let mut visitors: VecDeque<Visitor> = VecDeque::new();
    while !stop.load(Ordering::Relaxed) {
        // A connection whose session is over is closed here, whether or not another client comes.
        visitors.retain(|v| !v.thread.is_finished());
        let stream = match listener.accept() {
            Ok((s, _)) if s.set_nonblocking(false).is_ok() => s,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                wait(&listener, ACCEPT_POLL);
                continue;
            }
            // No descriptor is left, or the like: whoever waits to be accepted would be there at once.
            _ => {
                std::thread::sleep(ACCEPT_POLL);
                continue;
            }
        };
        if visitors.len() >= VISITORS {
            // Whoever has been silent for longest makes room.
            let oldest = visitors.iter().position(|v| v.silent.load(Ordering::Relaxed)).and_then(|n| visitors.remove(n));
            log::warn!("function {}: {VISITORS} connections are open: {} is closed", function.number, if oldest.is_some() { "a silent one" } else { "one more" });
            function.state().counters.refused += 1;
            let Some(oldest) = oldest else { continue };
            oldest.end();
        }
        let Ok(watch) = stream.try_clone() else { continue };
        let session = Session::new(stream, seats.clone(), engine.clone());
        let silent = session.silent();
        let thread = std::thread::spawn(move || session.run());
        visitors.push_back(Visitor { thread, stream: watch, silent });
    }
    visitors.into_iter().for_each(Visitor::end);
}

impl Visitor {
    /// Closes the connection and waits for its session, which may be waiting for its client, whichever way.
    fn end(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        let _ = self.thread.join();
    }
}
