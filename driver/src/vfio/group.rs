//! The group and container interface of VFIO, through `pci-driver`.
use super::backend::{Backend, COMMAND_ENABLE};
use crate::device::DmaAccess;
use crate::eventfd::EventFd;
use ferric_abi::pci;
use pci_driver::backends::vfio::VfioPciDevice;
use pci_driver::device::PciDevice;
use pci_driver::regions::{MappedOwningPciRegion, PciRegion, Permissions};
use std::io::{Error, Result};
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::ptr::NonNull;

/// Command register.
const COMMAND: u64 = 4;

/// A function opened through its group.
pub struct Group {
    device: VfioPciDevice,
    bar: MappedOwningPciRegion,
}

impl Group {
    /// Opens the function whose sysfs folder is `path`, alone in a container of its own.
    pub fn open(path: &Path) -> Result<Self> {
        let device = VfioPciDevice::open(path)?;
        let bar = device.bar(pci::BAR_WINDOW as usize).ok_or_else(|| Error::other("it has no BAR 0"))?;
        if bar.len() < pci::BAR_WINDOW_SIZE as u64 {
            return Err(Error::other(format!("its BAR 0 has {} bytes, a Ferric function's has {}", bar.len(), pci::BAR_WINDOW_SIZE)));
        }
        let bar = bar.map(0..pci::BAR_WINDOW_SIZE as u64, Permissions::ReadWrite)?;
        Ok(Self { device, bar })
    }
}

impl Backend for Group {
    fn window(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.bar.as_mut_ptr())
    }

    fn iova_ranges(&self) -> Vec<Range<u64>> {
        self.device.iommu().valid_iova_ranges().to_vec()
    }

    unsafe fn map(&self, iova: u64, ptr: *mut u8, len: usize, access: DmaAccess) -> Result<()> {
        let permissions = match access {
            DmaAccess::Read => {
                // Pages that nobody has written yet are the kernel's page of zeros, or a file's. Pinned for reading they stay that for the card, while the program's first store gives the
                // program another one. So they become the program's own first. Memory that may not be written has no such store, and the call fails there, as it does before Linux 5.14.
                // SAFETY: no contents change.
                if unsafe { libc::madvise(ptr.cast(), len, libc::MADV_POPULATE_WRITE) } != 0 {
                    log::debug!("pages at {ptr:p} are pinned as they are: {}", Error::last_os_error());
                }
                Permissions::Read
            }
            DmaAccess::ReadWrite => Permissions::ReadWrite,
        };
        // SAFETY: the caller's promise is passed on.
        unsafe { self.device.iommu().map(iova, len, ptr, permissions) }.map_err(numbered)
    }

    fn unmap(&self, iova: u64, len: usize) -> Result<()> {
        self.device.iommu().unmap(iova, len)
    }

    fn interrupts(&self, fds: &[EventFd]) -> Result<usize> {
        let interrupts = self.device.interrupts();
        let msix = interrupts.msi_x();
        let n = fds.len().min(msix.max());
        let raw: Vec<RawFd> = fds[..n].iter().map(|f| f.as_raw_fd()).collect();
        msix.enable(&raw)?;
        Ok(n)
    }

    fn enable(&self) -> Result<()> {
        let config = self.device.config();
        config.write_le_u16(COMMAND, config.read_le_u16(COMMAND)? | COMMAND_ENABLE)
    }

    fn reset(&self) -> Result<()> {
        self.device.reset()
    }
}

/// `pci-driver` puts the system's number of a failed mapping into words, as `std` does: "... (os error 12)".
fn numbered(e: Error) -> Error {
    let text = e.to_string();
    let number = text.strip_suffix(')').and_then(|t| t.rsplit_once("(os error ")).and_then(|(_, n)| n.parse().ok());
    number.map_or(e, Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_failed_mapping_is_found() {
        let words = |e: Error| Error::other(format!("Failed to set up IOMMU mapping process memory [0x0, 0x1000): {e}"));
        assert_eq!(numbered(words(Error::from_raw_os_error(libc::EFAULT))).raw_os_error(), Some(libc::EFAULT));
        assert_eq!(numbered(Error::from_raw_os_error(libc::ENOMEM)).raw_os_error(), Some(libc::ENOMEM));
        assert_eq!(numbered(words(Error::other("nothing"))).raw_os_error(), None);
    }
}
