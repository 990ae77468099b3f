//! A card that another process serves over vfio-user (`ferric card serve`), used without a virtual machine in between.
//!
//! The server reaches this process's memory through `/proc/self/mem`, sent as the file of every DMA_MAP with the virtual
//! address as its offset: any memory can be mapped, wherever it comes from, and the server touches only what is mapped.
//! It could touch more; a server runs as the same user and is trusted as a debugger would be. The addresses are those of the process that opened
//! the card: pages that it shares with a child of fork(2) are copied for whoever writes first, and the server finds this process's.
pub mod client;
pub mod socket;
pub mod sriov;
pub mod wire;

use crate::device::{Device, DmaAccess};
use crate::error::{Error, Result};
use crate::eventfd::{is_closed, wait_readable, EventFd};
use crate::forked::Held;
use crate::iova::IovaAllocator;
use crate::mapping::Mapping;
use crate::pages::PAGE;
use client::Client;
use ferric_abi::{csr, pci};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use wire::index;

/// What one turn of a busy-wait loop sleeps: the simulation that serves the card needs the processor more than we do.
const NAP: Duration = Duration::from_micros(50);
/// Turns of such a loop, since the card was last spoken to, that only give the processor away: a functional twin answers within microseconds. Behind them they sleep.
const EAGER: u32 = 2000;
/// Command register: memory space and bus master enable.
const COMMAND: u64 = 4;
const COMMAND_ENABLE: u16 = 6;

struct Dma {
    iovas: IovaAllocator,
    /// Bytes of each mapping by its first address.
    mapped: HashMap<u64, u64>,
}

/// A served card's function.
pub struct VfioUserDevice {
    path: PathBuf,
    /// Before what it holds.
    held: Held,
    client: Mutex<Client>,
    /// The client's, to watch for its end without the lock.
    socket: RawFd,
    memory: File,
    dma: Mutex<Dma>,
    vectors: Vec<EventFd>,
    /// It is a functional twin.
    twin: bool,
    /// Turns of busy-wait loops since it was last spoken to.
    turns: AtomicU32,
    gone: AtomicBool,
    opened: Instant,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

impl VfioUserDevice {
    /// Connects to the server at `path`, checks what it serves and takes it into use.
    pub fn open(path: &Path) -> Result<Arc<dyn Device>> {
        Ok(Arc::new(Self::connect(path)?))
    }

    /// As [`VfioUserDevice::open`], but gives the concrete type, which can also be reset.
    pub fn connect(path: &Path) -> Result<Self> {
        Self::try_connect(path).map_err(|e| {
            let shown = path.display();
            let (problem, mend) = match (e.kind(), e.raw_os_error()) {
                (io::ErrorKind::NotFound, _) => ("there is no such socket".into(), format!("start a server: ferric card serve --socket {shown}")),
                (io::ErrorKind::ConnectionRefused, _) => ("nothing listens there any more".into(), format!("remove it and start a server: rm {shown}; ferric card serve --socket {shown}")),
                (io::ErrorKind::PermissionDenied, _) => ("the socket is another user's".into(), format!("give it away: sudo chown $USER {shown}")),
                (_, Some(libc::EMFILE | libc::ENFILE)) => (format!("{e}"), "raise the limit on open files: ulimit -n".into()),
                (_, Some(libc::ENODEV)) => {
                    ("the card has no such function now: its physical function has not enabled it, or does no longer".into(), "enable virtual functions: ferric vf enable".into())
                }
                (_, Some(libc::EBUSY)) => ("the card is in use by another process".into(), format!("see which: ss -xp | grep {shown}")),
                _ => (format!("it does not answer as a vfio-user server: {e}"), format!("see what listens: ss -xlp | grep {shown}")),
            };
            Error::Open { device: shown.to_string(), problem, mend, errno: e.raw_os_error().unwrap_or(0) }
        })
    }

    fn try_connect(path: &Path) -> io::Result<Self> {
        let mut client = Client::connect(path)?;
        let window = client.region_size(pci::BAR_WINDOW)?;
        if window < pci::BAR_WINDOW_SIZE as u64 {
            return Err(io::Error::other(format!("its BAR 0 has {window} bytes, a Ferric function's has {}", pci::BAR_WINDOW_SIZE)));
        }
        let mut id = [0; 4];
        client.read(index::CONFIG_REGION, 0, &mut id)?;
        let id = [u16::from_le_bytes([id[0], id[1]]), u16::from_le_bytes([id[2], id[3]])];
        if id != [pci::VENDOR_ID, pci::DEVICE_ID] && id != [pci::VENDOR_ID, pci::VF_DEVICE_ID] {
            return Err(io::Error::other(format!("its device is {:04x}:{:04x}, not a Ferric card", id[0], id[1])));
        }
        let count = client.irq_count(index::MSIX_IRQ)?.min(pci::MSIX_VECTORS as u32);
        let vectors = (0..count).map(|_| EventFd::new()).collect::<io::Result<Vec<_>>>()?;
        client.set_eventfds(index::MSIX_IRQ, &vectors.iter().map(|v| v.as_fd()).collect::<Vec<_>>())?;
        client.write(index::CONFIG_REGION, COMMAND, &COMMAND_ENABLE.to_le_bytes(), false)?;
        let mut features = [0; 4];
        client.read(pci::BAR_WINDOW, csr::CAPS3.into(), &mut features)?;
        let features = u32::from_le_bytes(features);
        // All ones: nobody has answered.
        let twin = features != u32::MAX && features >> csr::FEATURE_TWIN & 1 == 1;
        let memory = File::options().read(true).write(true).open("/proc/self/mem")?;
        // High addresses, so that truncation shows.
        let dma = Dma { iovas: IovaAllocator::new(std::iter::once(0x10_0000_0000..0x70_0000_0000)), mapped: HashMap::new() };
        let socket = client.raw_fd();
        Ok(Self {
            path: path.to_owned(),
            held: Held::new(&[&socket, &memory]),
            client: Mutex::new(client),
            socket,
            memory,
            dma: Mutex::new(dma),
            vectors,
            twin,
            turns: AtomicU32::new(0),
            gone: AtomicBool::new(false),
            opened: Instant::now(),
        })
    }

    /// Runs a request; its failure makes the device a removed one.
    fn with<T>(&self, what: &str, f: impl FnOnce(&mut Client) -> io::Result<T>) -> Option<T> {
        if self.is_gone() {
            return None;
        }
        self.turns.store(0, Ordering::Relaxed);
        f(&mut lock(&self.client)).inspect_err(|e| self.remove(what, e)).ok()
    }

    fn remove(&self, what: &str, e: &io::Error) {
        if !self.gone.swap(true, Ordering::Relaxed) {
            log::error!("{}: {what}: {e}; the card is gone", self.path.display());
        }
    }

    /// Function-level reset. Everything the card held is void afterwards.
    pub fn reset(&self) -> Result<()> {
        self.with("reset", |c| {
            c.reset()?;
            c.write(index::CONFIG_REGION, COMMAND, &COMMAND_ENABLE.to_le_bytes(), false)
        })
        .ok_or(Error::Gone)
    }

    /// Reads configuration space: for tools and tests.
    pub fn config(&self, offset: u32, out: &mut [u8]) -> Result<()> {
        self.with("configuration read", |c| c.read(index::CONFIG_REGION, offset as u64, out)).ok_or(Error::Gone)
    }

    /// Writes configuration space: for tools and tests.
    pub fn write_config(&self, offset: u32, data: &[u8]) -> Result<()> {
        self.with("configuration write", |c| c.write(index::CONFIG_REGION, offset as u64, data, false)).ok_or(Error::Gone)
    }
}

impl VfioUserDevice {
    /// Maps whole pages of a file.
    fn map_file(&self, file: BorrowedFd, offset: u64, len: usize, access: DmaAccess) -> Result<Mapping> {
        if self.is_gone() {
            return Err(Error::Gone);
        }
        let iova = lock(&self.dma).iovas.take(len as u64).ok_or_else(|| Error::Map { len, reason: "no I/O virtual addresses are left".into(), errno: libc::ENOMEM })?;
        let done = lock(&self.client).dma_map(iova, len as u64, file.as_raw_fd(), offset, access == DmaAccess::ReadWrite);
        let mut dma = lock(&self.dma);
        if let Err(e) = done {
            dma.iovas.give(iova, len as u64);
            if e.raw_os_error().is_none() {
                self.remove("DMA_MAP", &e);
            }
            return Err(Error::Map { len, reason: format!("the server refused: {e}"), errno: e.raw_os_error().unwrap_or(libc::EIO) });
        }
        dma.mapped.insert(iova, len as u64);
        Ok(Mapping::new([(iova, len as u64)]))
    }
}

impl Device for VfioUserDevice {
    fn read32(&self, offset: u32) -> u32 {
        let mut word = [0xff; 4];
        self.with("register read", |c| c.read(pci::BAR_WINDOW, offset as u64, &mut word));
        u32::from_le_bytes(word)
    }

    fn write32(&self, offset: u32, value: u32) {
        self.with("register write", |c| c.write(pci::BAR_WINDOW, offset as u64, &value.to_le_bytes(), true));
    }

    fn write64(&self, offset: u32, value: u64) {
        self.with("doorbell", |c| c.write(pci::BAR_WINDOW, offset as u64, &value.to_le_bytes(), true));
    }

    fn has_lines(&self) -> bool {
        true
    }

    fn write_line(&self, offset: u32, line: &[u8; 64]) {
        self.with("doorbell line", |c| c.write(pci::BAR_WINDOW, offset as u64, line, true));
    }

    unsafe fn map(&self, ptr: *mut u8, len: usize, access: DmaAccess, _contiguous: bool) -> Result<Mapping> {
        self.map_file(self.memory.as_fd(), ptr as u64, len.next_multiple_of(PAGE), access)
    }

    fn map_dmabuf(&self, buffer: BorrowedFd, offset: u64, len: usize, access: DmaAccess) -> Result<Mapping> {
        self.map_file(buffer, offset, len, access)
    }

    fn unmap(&self, mapping: &Mapping) {
        if self.is_gone() {
            return;
        }
        let first = mapping.iova();
        let Some(len) = lock(&self.dma).mapped.remove(&first) else { return };
        self.with("DMA_UNMAP", |c| c.dma_unmap(first, len));
        lock(&self.dma).iovas.give(first, len);
    }

    /// A nap that ends when the server does: whoever waits for a completion touches no register that would tell him. A twin has mostly answered before that.
    fn relax(&self) {
        if self.is_gone() {
            return std::thread::sleep(NAP);
        }
        if self.twin && self.turns.fetch_add(1, Ordering::Relaxed) < EAGER {
            return std::thread::yield_now();
        }
        if is_closed(self.socket, NAP) {
            self.remove("wait", &io::ErrorKind::ConnectionAborted.into());
        }
    }

    fn wait_interrupt(&self, vector: u16, timeout: Duration) -> Result<bool> {
        let event = self.vectors.get(vector as usize).ok_or(Error::Invalid("the card has no such interrupt vector"))?;
        if self.is_gone() {
            return Err(Error::Gone);
        }
        match wait_readable(event.as_raw_fd(), self.socket, timeout) {
            Ok(true) => Ok(event.take() > 0),
            Ok(false) => Ok(false),
            Err(e) => {
                self.remove("interrupt", &e);
                Err(Error::Gone)
            }
        }
    }

    fn now(&self) -> Duration {
        self.opened.elapsed()
    }

    fn is_gone(&self) -> bool {
        // Without a lock: in a child of fork(2) one may be held by a thread that it does not have.
        self.gone.load(Ordering::Relaxed) || !self.held.is_ours()
    }
}
