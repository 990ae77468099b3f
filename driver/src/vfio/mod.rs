//! A card on the PCI bus, owned by this process through VFIO: no privilege is needed once the device file is ours.
mod backend;
mod cdev;
mod group;
pub mod sysfs;
#[cfg(test)]
mod tests;

use crate::device::{Device, DmaAccess};
use crate::error::{Error, Result};
use crate::eventfd::{wait_readable, EventFd};
use crate::iova::IovaAllocator;
use crate::mapping::Mapping;
use crate::pages::PAGE;
use crate::window::Window;
use backend::Backend;
use ferric_abi::{csr, pci};
use memmap2::{MmapOptions, MmapRaw};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use sysfs::{memlock_mend, memlock_problem, Sysfs};

/// A card is gone after as many waits: a simulated one behind a virtual machine may answer late once.
const SILENT: u32 = 3;

struct Mapped {
    len: usize,
    /// Our own view of a dma-buf, by whose addresses the kernel finds it. Closed after the card's mapping.
    _view: Option<MmapRaw>,
}

struct Dma {
    iovas: IovaAllocator,
    /// Each mapping by its first address.
    mapped: HashMap<u64, Mapped>,
}

/// A function of a card on the PCI bus.
pub struct VfioDevice {
    address: String,
    // Before the back end, whose mapping it is.
    window: Window,
    vectors: Vec<EventFd>,
    dma: Mutex<Dma>,
    backend: Box<dyn Backend>,
    opened: Instant,
    /// Waits in a row that found all ones where the magic number is.
    silent: AtomicU32,
}

impl VfioDevice {
    /// Opens the function at a PCI address of this machine.
    pub fn open(address: &str) -> Result<Arc<dyn Device>> {
        Ok(Arc::new(Self::open_in(&Sysfs::system(), address)?))
    }

    /// As [`VfioDevice::open`], but gives the concrete type, which can also be reset.
    pub fn open_in(sysfs: &Sysfs, address: &str) -> Result<Self> {
        let ready = sysfs.check(address)?;
        let open = || -> io::Result<Self> {
            let backend: Box<dyn Backend> = match &ready.cdev {
                Some(file) => {
                    // The crate hides the reason of a failure: ask for it first.
                    drop(std::fs::File::options().read(true).write(true).open(file)?);
                    Box::new(cdev::Cdev::open(&ready.path)?)
                }
                None => Box::new(group::Group::open(&ready.path)?),
            };
            backend.reset()?;
            backend.enable()?;
            let mut vectors = (0..pci::MSIX_VECTORS).map(|_| EventFd::new()).collect::<io::Result<Vec<_>>>()?;
            vectors.truncate(backend.interrupts(&vectors)?);
            let base = backend.window().ok_or_else(|| io::Error::other("BAR 0 is not mapped"))?;
            // SAFETY: the back end keeps the mapping, and is dropped after the window.
            let window = unsafe { Window::new(base) }.ok_or_else(|| io::Error::other("BAR 0 is not aligned"))?;
            let dma = Mutex::new(Dma { iovas: IovaAllocator::new(backend.iova_ranges()), mapped: HashMap::new() });
            Ok(Self { address: ready.address.clone(), window, vectors, dma, backend, opened: Instant::now(), silent: AtomicU32::new(0) })
        };
        open().map_err(|e| sysfs.explain(&ready, &e, errno_of(&e)))
    }

    fn dma(&self) -> MutexGuard<'_, Dma> {
        self.dma.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Maps whole pages; `view` is kept as long.
    ///
    /// # Safety
    /// As [`Device::map`].
    unsafe fn map_view(&self, ptr: *mut u8, len: usize, access: DmaAccess, view: Option<MmapRaw>) -> Result<Mapping> {
        let mut dma = self.dma();
        let iova = dma.iovas.take(len as u64).ok_or_else(|| Error::Map { len, reason: "no I/O virtual addresses are left".into(), errno: libc::ENOMEM })?;
        // SAFETY: the caller's promise is passed on.
        if let Err(e) = unsafe { self.backend.map(iova, ptr, len, access) } {
            dma.iovas.give(iova, len as u64);
            let errno = errno_of(&e);
            let reason = if errno == libc::ENOMEM { format!("{}; {}", memlock_problem(len), memlock_mend()) } else { e.to_string() };
            return Err(Error::Map { len, reason, errno });
        }
        dma.mapped.insert(iova, Mapped { len, _view: view });
        Ok(Mapping::new([(iova, len as u64)]))
    }

    /// Function-level reset. Everything the card held is void afterwards.
    pub fn reset(&self) -> Result<()> {
        let open = |e: io::Error| Error::Open { device: self.address.clone(), problem: format!("reset failed: {e}"), mend: "see what the kernel says: sudo dmesg | tail".into(), errno: errno_of(&e) };
        self.backend.reset().and_then(|()| self.backend.enable()).map_err(open)
    }
}

/// The system's number of an error, 0 if there is none: its own, or that of what caused it.
fn errno_of(e: &io::Error) -> i32 {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(e);
    while let Some(c) = cause {
        let number = c.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        if let Some(n) = number.or_else(|| c.downcast_ref::<vmm_sys_util::errno::Error>().map(|n| n.errno())) {
            return n;
        }
        // An error that wraps another shows that one's source as its own.
        cause = match c.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => c.source(),
        };
    }
    0
}

impl Device for VfioDevice {
    fn read32(&self, offset: u32) -> u32 {
        self.window.read32(offset)
    }

    fn write32(&self, offset: u32, value: u32) {
        self.window.write32(offset, value);
    }

    fn write64(&self, offset: u32, value: u64) {
        self.window.write64(offset, value);
    }

    // No lines: the kernel maps BARs uncached, so that 64 bytes are eight writes on the bus, and whatever comes between two of them (another
    // thread's access, an interrupt) tears the line.

    unsafe fn map(&self, ptr: *mut u8, len: usize, access: DmaAccess, _contiguous: bool) -> Result<Mapping> {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.map_view(ptr, len.next_multiple_of(PAGE), access, None) }
    }

    /// Through a view of the buffer in this process: VFIO finds the pages of another device by the page tables of such a view. (An exporter
    /// that cannot be mapped into a process is refused; so are, by iommufd, buffers without page structures.)
    fn map_dmabuf(&self, buffer: BorrowedFd, offset: u64, len: usize, access: DmaAccess) -> Result<Mapping> {
        let mut options = MmapOptions::new();
        options.offset(offset).len(len);
        let view = if access == DmaAccess::Read { options.map_raw_read_only(&buffer) } else { options.map_raw(&buffer) };
        let view = view.map_err(|e| Error::Map { len, reason: format!("the buffer cannot be mapped: {e}"), errno: errno_of(&e) })?;
        // SAFETY: the view is kept with the mapping.
        unsafe { self.map_view(view.as_mut_ptr(), len, access, Some(view)) }
    }

    fn unmap(&self, mapping: &Mapping) {
        let first = mapping.iova();
        let mut dma = self.dma();
        let Some(mapped) = dma.mapped.remove(&first) else { return };
        match self.backend.unmap(first, mapped.len) {
            Ok(()) => dma.iovas.give(first, mapped.len as u64),
            // The address stays taken: the card may still reach what is there.
            Err(e) => log::error!("{}: {} bytes at {first:#x} stay mapped: {e}", self.address, mapped.len),
        }
    }

    fn relax(&self) {
        std::hint::spin_loop();
    }

    fn wait_interrupt(&self, vector: u16, timeout: Duration) -> Result<bool> {
        let event = self.vectors.get(vector as usize).ok_or(Error::Invalid("the card has no such interrupt vector"))?;
        match wait_readable(event.as_raw_fd(), -1, timeout) {
            Ok(true) => Ok(event.take() > 0),
            Ok(false) => {
                // One that was pulled raises no interrupt to say so.
                let silent = if self.read32(csr::MAGIC) == u32::MAX { self.silent.load(Ordering::Relaxed) + 1 } else { 0 };
                self.silent.store(silent.min(SILENT), Ordering::Relaxed);
                if silent < SILENT {
                    Ok(false)
                } else {
                    Err(Error::Gone)
                }
            }
            Err(e) => {
                log::error!("{}: waiting for an interrupt: {e}", self.address);
                Err(Error::Gone)
            }
        }
    }

    fn now(&self) -> Duration {
        self.opened.elapsed()
    }

    fn is_gone(&self) -> bool {
        self.silent.load(Ordering::Relaxed) == SILENT
    }
}
