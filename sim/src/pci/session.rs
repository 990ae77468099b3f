//! One client's connection: every message is answered, with an error if it makes no sense.
use super::bar::{self, Bar};
use super::command::{Command, Handle};
use super::config;
use super::dma::{Errno, Mapping};
use super::door::{Door, Inside};
use super::function::Function;
use super::sriov::Virtuals;
use super::virtio;
use ferric_abi::pci;
use ferric_driver::vfio_user::socket::{send, Inbox, Message};
use ferric_driver::vfio_user::wire::{self, command, index, Header};
use std::fs::File;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;

/// How long a client has to say hello; until then it has nothing.
const HELLO_LIMIT: Duration = Duration::from_secs(10);
/// How long a message may take from its first byte to its last: whoever stops in the middle of one has failed.
const MESSAGE_LIMIT: Duration = Duration::from_secs(5);
/// How often the processor is given to others before a session over twins sleeps until the next message: some tens of microseconds. Programs that send small messages to and fro
/// have their answer by then.
const TURNS: u32 = 100;
/// How long the engine may take to take a command, and to change the map: with eight clients that poll on two cores it took more than three seconds. A reset waits for three of these
/// and its own at most, and the client waits 60 seconds for a reply.
const MAP_LIMIT: Duration = Duration::from_secs(10);
/// How long a client waits for a reset at most; the reset itself goes on.
const RESET_LIMIT: Duration = Duration::from_secs(4);

/// Body of the reply, or what is wrong.
type Answer = Result<Vec<u8>, Errno>;

/// A function that a client may have, and who has it.
#[derive(Clone)]
pub struct Seat {
    /// The function.
    pub function: Arc<Function>,
    /// Its number in the engine.
    pub number: usize,
    /// Who has it.
    pub door: Arc<Door>,
    /// The card's virtual functions, if they are there only while its physical function says so.
    pub virtuals: Option<Arc<Virtuals>>,
}

/// A session.
pub struct Session {
    stream: UnixStream,
    inbox: Inbox,
    function: Arc<Function>,
    engine: Handle,
    /// The function's number in the engine.
    number: usize,
    /// Functions that its hello may take, the first that is free.
    seats: Arc<[Seat]>,
    /// [`Seat::virtuals`] of the function that it has.
    virtuals: Option<Arc<Virtuals>>,
    bar: Bar,
    /// Once it has said hello.
    inside: Option<Inside>,
    /// It said hello while somebody else had the function.
    refused: bool,
    silent: Arc<AtomicBool>,
}

/// A body as `T` and what follows it.
macro_rules! parse {
    ($kind:ident, $body:expr) => {
        (wire::$kind::parse($body).ok_or(libc::EINVAL)?, &$body[size_of::<wire::$kind>()..])
    };
}

impl Session {
    /// A session over `stream`, which is counted at the first of the seats until it has one; there is one at least.
    pub fn new(stream: UnixStream, seats: Arc<[Seat]>, engine: Handle) -> Self {
        let Seat { function, number, .. } = seats[0].clone();
        Self {
            stream,
            inbox: Inbox::default(),
            bar: Bar::new(engine.clone(), number),
            function,
            engine,
            number,
            seats,
            virtuals: None,
            inside: None,
            refused: false,
            silent: Arc::new(AtomicBool::new(true)),
        }
    }

    /// True until it says hello.
    pub fn silent(&self) -> Arc<AtomicBool> {
        self.silent.clone()
    }

    /// Serves the client until it leaves, dies, or sends what cannot be a message: that before it has said hello has no time, that in the middle of a
    /// message not much. Its hello takes a function through its door, or is answered with EBUSY. In the end the function is made as after power-on.
    pub fn run(mut self) {
        let hello = Instant::now() + HELLO_LIMIT;
        // Where cycles are simulated the simulation needs the processor.
        let turns = if self.engine.runs_in_the_sender() { TURNS } else { 0 };
        loop {
            let left = hello.saturating_duration_since(Instant::now());
            let received = match self.inside {
                Some(_) => self.inbox.receive_eagerly(&self.stream, turns, MESSAGE_LIMIT),
                None => self.inbox.receive_within(&self.stream, Some(left), left),
            };
            match received {
                Ok(Some(m)) => {
                    if let Err(e) = self.message(m) {
                        let level = if self.bar.failed { log::Level::Error } else { log::Level::Info };
                        log::log!(level, "function {}: the client's connection ends: {e}", self.function.number);
                        break;
                    }
                }
                Ok(None) => break,
                Err(e) => {
                    log::warn!("function {}: closing the connection: {e}", self.function.number);
                    self.function.state().counters.nonsense += 1;
                    break;
                }
            }
            if self.refused {
                break;
            }
        }
        // The client sees it now: the accepting thread has the stream too.
        let _ = self.stream.shutdown(Shutdown::Both);
        // One that never said hello has left nothing to clean up.
        if let Some(inside) = self.inside.take() {
            inside.clean();
            self.leave();
        }
    }

    /// A client that has gone takes its memory and its interrupts with it, and the function is reset.
    fn leave(&mut self) {
        {
            let mut s = self.function.state();
            s.clear_vectors();
            s.set_error(None);
        }
        self.change_map(|m| {
            m.clear();
            m.enabled = false;
            Ok(())
        })
        .unwrap_or_else(|e| log::error!("function {}: its map was not cleared (errno {e})", self.function.number));
        self.reset(super::RESET_WAIT);
    }

    fn message(&mut self, m: Message) -> std::io::Result<()> {
        let Header { id, command, flags, .. } = m.header;
        if flags & 0xf != 0 {
            return Err(std::io::Error::other("it replies to what was never asked"));
        }
        let answer = self.answer(command, &m.body, m.fds);
        if let Err(e) = &answer {
            log::debug!("function {}: command {command} refused, errno {e}: {:02x?}", self.function.number, &m.body[..m.body.len().min(64)]);
        }
        self.note(answer.is_err() && !self.refused);
        if self.bar.failed {
            return Err(std::io::Error::other("the card takes no writes any more"));
        }
        if flags & wire::NO_REPLY != 0 {
            return Ok(());
        }
        let reply = Header { id, command, flags: wire::REPLY, ..Default::default() };
        match answer {
            Ok(body) => send(&self.stream, reply, &[&body], &[]),
            Err(e) => send(&self.stream, Header { flags: wire::REPLY | wire::ERROR, error: e as u32, ..reply }, &[], &[]),
        }
    }

    fn note(&mut self, refused: bool) {
        let mut s = self.function.state();
        s.counters.late += std::mem::take(&mut self.bar.late);
        s.counters.nonsense += refused as u64;
    }

    fn answer(&mut self, command: u16, body: &[u8], fds: Vec<OwnedFd>) -> Answer {
        if self.inside.is_none() && command != command::VERSION {
            return Err(libc::EPROTO);
        }
        match command {
            command::VERSION => self.version(body),
            command::GET_INFO => {
                parse!(DeviceInfo, body);
                let info = wire::DeviceInfo { argsz: 16, flags: wire::DEVICE_PCI | wire::DEVICE_RESET, regions: index::REGIONS, irqs: index::IRQS };
                Ok(info.as_bytes().to_vec())
            }
            command::GET_REGION_INFO => {
                let (ask, _) = parse!(RegionInfo, body);
                let size = region_size(ask.index).ok_or(libc::EINVAL)?;
                let flags = if size > 0 { wire::REGION_READABLE | wire::REGION_WRITABLE } else { 0 };
                Ok(wire::RegionInfo { argsz: 32, flags, index: ask.index, size, ..Default::default() }.as_bytes().to_vec())
            }
            command::GET_IRQ_INFO => {
                let (ask, _) = parse!(IrqInfo, body);
                let count = irq_count(ask.index).ok_or(libc::EINVAL)?;
                let flags = if count > 0 { wire::IRQ_EVENTFD } else { 0 };
                Ok(wire::IrqInfo { argsz: 16, flags, index: ask.index, count }.as_bytes().to_vec())
            }
            command::SET_IRQS => self.set_irqs(body, fds).map(|()| Vec::new()),
            command::DMA_MAP => self.dma_map(body, fds).map(|()| Vec::new()),
            command::DMA_UNMAP => {
                let (ask, _) = parse!(DmaUnmap, body);
                if ask.flags & !wire::UNMAP_ALL != 0 {
                    return Err(libc::EINVAL);
                }
                self.change_map(move |m| {
                    if ask.flags & wire::UNMAP_ALL != 0 {
                        m.clear();
                        return Ok(());
                    }
                    m.unmap(ask.address, ask.size)
                })?;
                Ok(ask.as_bytes().to_vec())
            }
            command::REGION_READ => {
                let (ask, _) = parse!(RegionAccess, body);
                let mut data = vec![0; checked(&ask)?];
                self.read(ask.region, ask.offset, &mut data);
                Ok([ask.as_bytes(), &data].concat())
            }
            command::REGION_WRITE => {
                let (ask, data) = parse!(RegionAccess, body);
                if checked(&ask)? != data.len() {
                    return Err(libc::EINVAL);
                }
                self.write(ask.region, ask.offset, data);
                Ok(ask.as_bytes().to_vec())
            }
            command::RESET => {
                self.reset(RESET_LIMIT);
                Ok(Vec::new())
            }
            _ => Err(libc::EOPNOTSUPP),
        }
    }

    fn version(&mut self, body: &[u8]) -> Answer {
        let (v, _) = parse!(Version, body);
        if v.major != 0 || self.inside.is_some() {
            return Err(libc::EINVAL);
        }
        self.silent.store(false, Ordering::Relaxed);
        let is_there = |seat: &Seat| seat.virtuals.as_ref().is_none_or(|virtuals| virtuals.has(seat.function.number));
        if !self.seats.iter().any(is_there) {
            self.refused = true;
            return Err(libc::ENODEV);
        }
        let entered = self.seats.iter().find_map(|seat| Some((seat.clone(), seat.door.enter(&self.stream)?)));
        // It may have gone meanwhile: who has entered before that has been told, who has entered behind it sees it here.
        if let Some((seat, inside)) = entered.filter(|(seat, _)| is_there(seat)) {
            self.virtuals = seat.virtuals.clone();
            self.bar = Bar::new(self.engine.clone(), seat.number).of_virtio(seat.function.virtio.is_some()).until(seat.door.closing());
            (self.function, self.number, self.inside) = (seat.function, seat.number, Some(inside));
        }
        self.refused = self.inside.is_none();
        let counters = &mut self.function.state().counters;
        if self.refused {
            counters.refused += 1;
            return Err(libc::EBUSY);
        }
        counters.clients += 1;
        let agreed = wire::Version { major: 0, minor: v.minor.min(1) };
        Ok([agreed.as_bytes(), &wire::capabilities()].concat())
    }

    fn set_irqs(&mut self, body: &[u8], fds: Vec<OwnedFd>) -> Result<(), Errno> {
        let (ask, data) = parse!(SetIrqs, body);
        let limit = irq_count(ask.index).ok_or(libc::EINVAL)?;
        let end = ask.start.checked_add(ask.count).filter(|e| *e <= limit).ok_or(libc::EINVAL)?;
        if ask.flags & wire::IRQ_ACTION_TRIGGER == 0 || fds.len() > ask.count as usize {
            return Err(libc::EINVAL);
        }
        let msix = ask.index == index::MSIX_IRQ;
        match ask.flags & !wire::IRQ_ACTION_TRIGGER {
            wire::IRQ_DATA_NONE if ask.count == 0 => {
                let mut s = self.function.state();
                if msix {
                    s.clear_vectors()
                } else {
                    s.set_error(None)
                }
            }
            wire::IRQ_DATA_NONE if msix => (ask.start..end).for_each(|v| self.function.interrupt(v as u16)),
            wire::IRQ_DATA_BOOL if msix && data.len() == ask.count as usize => {
                (ask.start..end).zip(data).filter(|(_, on)| **on != 0).for_each(|(v, _)| self.function.interrupt(v as u16));
            }
            wire::IRQ_DATA_EVENTFD => {
                let mut files = Vec::with_capacity(ask.count as usize);
                for fd in fds {
                    files.push(Some(eventfd(fd)?));
                }
                files.resize_with(ask.count as usize, || None);
                let mut s = self.function.state();
                if !msix {
                    s.set_error(files.pop().flatten());
                } else if !s.set_vectors(ask.start as usize, files) {
                    return Err(libc::EINVAL);
                }
            }
            _ => return Err(libc::EINVAL),
        }
        Ok(())
    }

    fn dma_map(&mut self, body: &[u8], mut fds: Vec<OwnedFd>) -> Result<(), Errno> {
        let (ask, _) = parse!(DmaMap, body);
        if fds.len() > 1 {
            return Err(libc::EINVAL);
        }
        let backing = fds.pop().map(|fd| (File::from(fd), ask.offset));
        let regular = |f: &File| f.metadata().is_ok_and(|m| m.is_file());
        if backing.as_ref().is_some_and(|(f, _)| !regular(f)) {
            // A pipe or a terminal could make the simulation wait.
            return Err(libc::EINVAL);
        }
        let mapping = Mapping { size: ask.size, backing, readable: ask.flags & wire::DMA_READ != 0, writable: ask.flags & wire::DMA_WRITE != 0 };
        self.change_map(move |m| m.map(ask.address, mapping))
    }

    /// Changes the function's map between two cycles and waits until that is done.
    fn change_map(&self, change: impl FnOnce(&mut super::dma::ClientMap) -> Result<(), Errno> + Send + 'static) -> Result<(), Errno> {
        self.change_map_of(self.number, change)
    }

    /// The same of a function by its number in the engine.
    fn change_map_of(&self, number: usize, change: impl FnOnce(&mut super::dma::ClientMap) -> Result<(), Errno> + Send + 'static) -> Result<(), Errno> {
        let (tx, rx) = sync_channel(1);
        let change = Box::new(move |m: &mut super::dma::ClientMap| {
            let _ = tx.try_send(change(m));
        });
        if !self.engine.send(Command::Map { function: number, change }, MAP_LIMIT) {
            return Err(libc::EIO);
        }
        rx.recv_timeout(MAP_LIMIT).unwrap_or(Err(libc::EIO))
    }

    fn master(&self, on: bool) {
        let (virtuals, own) = (self.virtuals.clone(), self.function.number);
        self.change_map(move |m| {
            // Asked when the change is made: a function that is there no more masters no bus, whatever its client has said meanwhile.
            m.enabled = on && virtuals.is_none_or(|virtuals| virtuals.has(own));
            Ok(())
        })
        .unwrap_or_else(|e| log::error!("function {}: bus master enable was not passed on (errno {e})", self.function.number));
    }

    /// The card's virtual functions are as this physical function says from now on; what those that go may do in memory ends here.
    fn follow_virtuals(&self) {
        let Some(virtuals) = self.virtuals.as_ref().filter(|_| self.function.number == 0) else { return };
        for number in virtuals.follow(&self.function.state().config) {
            self.change_map_of(number, |m| {
                m.enabled = false;
                Ok(())
            })
            .unwrap_or_else(|e| log::error!("function {number} of the engine: its bus mastering was not ended (errno {e})"));
        }
    }

    /// The function's memory answers.
    fn answers(&self) -> bool {
        self.function.state().memory_enabled() && self.virtuals.as_ref().is_none_or(|virtuals| virtuals.answers(self.function.number))
    }

    fn reset(&mut self, limit: Duration) {
        self.function.state().reset();
        // A physical function that is reset has no virtual ones.
        self.follow_virtuals();
        self.master(false);
        let (done, wait) = sync_channel(1);
        let sent = self.engine.send(Command::Reset { function: self.number, done: Some(done) }, MAP_LIMIT);
        if sent && wait.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            log::warn!("function {}: the reset is still going on after {limit:?}", self.function.number);
        }
    }

    /// Where in the window an access to configuration space goes that is one to it (spec 4.1.4.9).
    fn through_config(&self, at: usize, bytes: usize) -> Option<u32> {
        self.function.virtio?;
        virtio::target(&self.function.state().config, at, bytes)
    }

    fn read(&mut self, region: u32, offset: u64, out: &mut [u8]) {
        let at = offset as usize;
        match region {
            index::CONFIG_REGION => match self.through_config(at, out.len()) {
                Some(offset) => self.bar.read(offset, out),
                None => self.function.state().config.read(at, out),
            },
            // Without memory space enable nobody answers.
            _ if !self.answers() => out.fill(0xff),
            pci::BAR_WINDOW => self.bar.read(at as u32, out),
            _ => self.function.state().read_msix(at, out),
        }
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) {
        let at = offset as usize;
        if region == index::CONFIG_REGION {
            if let Some(offset) = self.through_config(at, data.len()) {
                return self.bar.write(offset, data);
            }
            let (effect, master) = {
                let mut s = self.function.state();
                let effect = s.write_config(at, data);
                (effect, s.master_enabled())
            };
            if effect.reset {
                self.reset(RESET_LIMIT);
            } else if effect.command {
                self.master(master);
            }
            if effect.virtuals {
                self.follow_virtuals();
            }
            return;
        }
        if !self.answers() {
            return;
        }
        match region {
            pci::BAR_WINDOW => self.bar.write(at as u32, data),
            _ => self.function.state().write_msix(at, data),
        }
    }
}

/// Bytes of a region; `None`: no such region.
fn region_size(region: u32) -> Option<u64> {
    Some(match region {
        pci::BAR_WINDOW => bar::SIZE,
        pci::BAR_MSIX => pci::BAR_MSIX_SIZE as u64,
        index::CONFIG_REGION => config::SIZE as u64,
        r if r < index::REGIONS => 0,
        _ => return None,
    })
}

/// Vectors of an interrupt kind; `None`: no such kind.
fn irq_count(kind: u32) -> Option<u32> {
    Some(match kind {
        index::MSIX_IRQ => pci::MSIX_VECTORS as u32,
        index::ERR_IRQ => 1,
        k if k < index::IRQS => 0,
        _ => return None,
    })
}

/// The length of an access that lies inside its region.
fn checked(ask: &wire::RegionAccess) -> Result<usize, Errno> {
    let size = region_size(ask.region).ok_or(libc::EINVAL)?;
    let end = ask.offset.checked_add(ask.count as u64).ok_or(libc::EINVAL)?;
    if ask.count == 0 || end > size {
        Err(libc::EINVAL)
    } else {
        Ok(ask.count as usize)
    }
}

/// Takes only eventfds: writing anything else could make the simulation wait.
fn eventfd(fd: OwnedFd) -> Result<File, Errno> {
    use std::os::fd::AsRawFd;
    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).map_err(|_| libc::EINVAL)?;
    if link.as_os_str() == "anon_inode:[eventfd]" {
        Ok(File::from(fd))
    } else {
        Err(libc::EINVAL)
    }
}
