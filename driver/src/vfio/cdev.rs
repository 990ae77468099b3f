//! The device-file and iommufd interface of VFIO, through `vfio-ioctls`.
use super::backend::{Backend, COMMAND_ENABLE};
use crate::device::DmaAccess;
use crate::eventfd::EventFd;
use ferric_abi::pci;
use iommufd_ioctls::IommuFd;
use std::io::{Error, Result};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use vfio_ioctls::{VfioDevice, VfioIommufd};
use vmm_sys_util::eventfd::EventFd as VmmEventFd;

/// Configuration space as a region, and the command register in it.
const CONFIG: u32 = 7;
const COMMAND: u64 = 4;
const WINDOW: usize = pci::BAR_WINDOW_SIZE as usize;

/// A function opened through its device file.
pub struct Cdev {
    device: VfioDevice,
    iommufd: Arc<VfioIommufd>,
    window: NonNull<u8>,
}

// SAFETY: the mapping is device registers, only ever reached by volatile accesses.
unsafe impl Send for Cdev {}
// SAFETY: as above; the kernel's objects take calls from any thread.
unsafe impl Sync for Cdev {}

/// The crates' error, whole: the system's number is at the end of its chain of sources.
fn other(e: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::other(e)
}

impl Cdev {
    /// Opens the function whose sysfs folder is `path`, with an address space of its own.
    pub fn open(path: &Path) -> Result<Self> {
        let iommufd = Arc::new(VfioIommufd::new(Arc::new(IommuFd::new().map_err(other)?), None, None).map_err(other)?);
        let device = VfioDevice::new(path, iommufd.clone(), true).map_err(other)?;
        if device.get_region_size(pci::BAR_WINDOW) < WINDOW as u64 {
            return Err(Error::other("its BAR 0 is smaller than a Ferric function's"));
        }
        let offset = device.get_region_offset(pci::BAR_WINDOW);
        // SAFETY: a new mapping of the device's BAR.
        let p = unsafe { libc::mmap(std::ptr::null_mut(), WINDOW, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, device.as_raw_fd(), offset as libc::off_t) };
        match NonNull::new(p.cast()) {
            Some(window) if p != libc::MAP_FAILED => Ok(Self { device, iommufd, window }),
            _ => Err(Error::last_os_error()),
        }
    }
}

impl Backend for Cdev {
    fn window(&self) -> Option<NonNull<u8>> {
        Some(self.window)
    }

    fn iova_ranges(&self) -> Vec<Range<u64>> {
        // The crate does not ask the kernel. Every IOMMU reaches the first 512 GiB; the low end and the interrupt window stay out.
        vec![0x100_0000..0xfee0_0000, 0x1_0000_0000..0x80_0000_0000]
    }

    unsafe fn map(&self, iova: u64, ptr: *mut u8, len: usize, _access: DmaAccess) -> Result<()> {
        // The crate maps for reading and writing only; the card's own keys hold a read-only region.
        // SAFETY: the caller's promise is passed on.
        unsafe { self.iommufd.vfio_dma_map(iova, len, ptr) }.map_err(other)
    }

    fn unmap(&self, iova: u64, len: usize) -> Result<()> {
        self.iommufd.vfio_dma_unmap(iova, len).map_err(other)
    }

    fn interrupts(&self, fds: &[EventFd]) -> Result<usize> {
        let n = fds.len().min(self.device.get_irq_info(2).map_or(0, |i| i.count as usize));
        let copies = fds[..n]
            .iter()
            // SAFETY: a descriptor of our own that nobody else closes.
            .map(|f| Ok(unsafe { VmmEventFd::from_raw_fd(f.as_fd().try_clone_to_owned()?.into_raw_fd()) }))
            .collect::<Result<Vec<_>>>()?;
        self.device.enable_msix(copies.iter().collect()).map_err(other)?;
        Ok(n)
    }

    fn enable(&self) -> Result<()> {
        let mut command = [0; 2];
        self.device.region_read(CONFIG, &mut command, COMMAND);
        let value = u16::from_le_bytes(command) | COMMAND_ENABLE;
        self.device.region_write(CONFIG, &value.to_le_bytes(), COMMAND);
        Ok(())
    }

    fn reset(&self) -> Result<()> {
        self.device.reset();
        Ok(())
    }
}

impl Drop for Cdev {
    fn drop(&mut self) {
        // SAFETY: mapped in `open`; nobody holds the window any more.
        unsafe { libc::munmap(self.window.as_ptr().cast(), WINDOW) };
    }
}
