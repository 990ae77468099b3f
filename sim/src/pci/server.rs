//! Set-up of served cards, accepting and refusing clients, end.
use super::command::{Command, Handle};
use super::engine::Engine;
use super::function::{Counters, Function};
use super::session::Session;
use super::RESET_WAIT;
use crate::axi::HostTiming;
use crate::capture::Capture;
use crate::card::CardConfig;
use crate::error::Error;
use crate::fabric::LinkConfig;
use crate::service::Service;
use crate::wire::{self, WireConfig};
use crate::world::{World, WorldConfig};
use ferric_driver::vfio_user::socket::{receive, send};
use ferric_driver::vfio_user::wire::{ERROR, REPLY};
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the accepting threads look whether they are to end.
const ACCEPT_POLL: Duration = Duration::from_millis(5);
/// How long a client that is refused has to say its first word.
const REFUSE_LIMIT: Duration = Duration::from_millis(200);

/// A function to serve.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Card.
    pub card: usize,
    /// Function of the card; 0 is the physical one.
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Free,
    Client,
    /// The client has gone, its traces are being removed.
    Cleaning,
}

struct Slot {
    state: Mutex<Use>,
    changed: Condvar,
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
            if e.card >= n || e.function >= ferric_abi::pci::FUNCTIONS {
                return Err(fail(format!("there is no card {} with function {}", e.card, e.function)));
            }
            if config.endpoints[..i].iter().any(|o| (o.card, o.function) == (e.card, e.function) || o.socket == e.socket) {
                return Err(fail(format!("{} is given twice", e.socket.display())));
            }
        }
        // Sockets first: building a card can take minutes, a wrong name none.
        let listeners = config.endpoints.iter().map(|e| listen(&e.socket)).collect::<Result<Vec<_>, _>>()?;
        let sockets: Vec<PathBuf> = config.endpoints.iter().map(|e| e.socket.clone()).collect();
        let wire = config.wire.open().map_err(|e| fail(format!("wire {}: {e}", config.wire)))?;
        let world_config = WorldConfig { cards: config.cards.clone(), link: config.link, seed: config.seed, tick_cycles: u64::MAX, skip_idle: false };
        let mut world = World::new(&world_config)?;
        let mut capture = None;
        if let Some(path) = &config.capture {
            if peers { world.start_capture(path)? } else { capture = Some(Capture::create(path)?) }
        }
        let functions: Vec<Arc<Function>> = config.endpoints.iter().map(|e| Arc::new(Function::new(e.card, e.function))).collect();
        let (engine, handle) = Engine::new(world, &functions, wire.clone(), capture);
        let mut server = Self { functions, engine: handle, frames_dropped: Arc::default(), service: Service::new("server"), sockets };
        server.service.push(std::thread::spawn(move || engine.run()));
        if let Some(wire) = wire {
            let engine = server.engine.clone();
            server.service.push(wire::pump(wire, server.service.stopped(), server.frames_dropped.clone(), move |frame| engine.frame(frame)));
        }
        for (number, listener) in listeners.into_iter().enumerate() {
            let (function, engine, stop) = (server.functions[number].clone(), server.engine.clone(), server.service.stopped());
            server.service.push(std::thread::spawn(move || accept(listener, function, engine, number, stop)));
        }
        Ok(server)
    }

    /// Counters of an endpoint, in the order of the configuration.
    pub fn counters(&self, endpoint: usize) -> Counters {
        self.functions[endpoint].counters()
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

/// A listening socket at `path`, in place of one that nobody listens to any more.
fn listen(path: &Path) -> Result<UnixListener, Error> {
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

fn accept(listener: UnixListener, function: Arc<Function>, engine: Handle, number: usize, stop: Arc<AtomicBool>) {
    let slot = Arc::new(Slot { state: Mutex::new(Use::Free), changed: Condvar::new() });
    let mut session: Option<(JoinHandle<()>, UnixStream)> = None;
    while !stop.load(Ordering::Relaxed) {
        let stream = match listener.accept() {
            Ok((s, _)) if s.set_nonblocking(false).is_ok() => s,
            _ => {
                std::thread::sleep(ACCEPT_POLL);
                continue;
            }
        };
        // While the last client's traces are removed the next one waits; it is not refused.
        let mut state = slot.state.lock().unwrap_or_else(|e| e.into_inner());
        if *state == Use::Cleaning {
            state = slot.changed.wait_timeout_while(state, RESET_WAIT, |s| *s == Use::Cleaning).unwrap_or_else(|e| e.into_inner()).0;
        }
        let free = *state == Use::Free;
        let watch = if free { stream.try_clone().ok() } else { None };
        let Some(watch) = watch else {
            drop(state);
            function.state().counters.refused += 1;
            refuse(&stream);
            continue;
        };
        *state = Use::Client;
        drop(state);
        function.state().counters.clients += 1;
        let (f, e, s) = (function.clone(), engine.clone(), slot.clone());
        let thread = std::thread::spawn(move || {
            let guard = Leave(s);
            let session = Session::new(stream, f, e, number);
            session.run(|| guard.set(Use::Cleaning));
        });
        session = Some((thread, watch));
    }
    if let Some((thread, stream)) = session {
        // Wakes a session that waits for its client.
        let _ = stream.shutdown(std::net::Shutdown::Both);
        let _ = thread.join();
    }
}

/// Frees the slot however the session ends.
struct Leave(Arc<Slot>);

impl Leave {
    fn set(&self, to: Use) {
        *self.0.state.lock().unwrap_or_else(|e| e.into_inner()) = to;
        self.0.changed.notify_all();
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        self.set(Use::Free);
    }
}

/// Tells a second client that the function is in use.
fn refuse(stream: &UnixStream) {
    let _ = stream.set_read_timeout(Some(REFUSE_LIMIT));
    let _ = stream.set_write_timeout(Some(REFUSE_LIMIT));
    if let Ok(Some(m)) = receive(stream) {
        let reply = ferric_driver::vfio_user::wire::Header { flags: REPLY | ERROR, error: libc::EBUSY as u32, ..m.header };
        let _ = send(stream, reply, &[], &[]);
    }
}
