//! Another device on the bus whose memory the card reaches past the host: a simulated GPU, say. It exports its memory as a file, as a dma-buf is
//! exported; the IOMMU lets the card's accesses through to the device, which counts them and may take its memory back.
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A device's memory.
#[derive(Debug)]
pub struct PeerMemory {
    file: File,
    len: u64,
    revoked: AtomicBool,
    passed: [AtomicU64; 2],
}

impl PeerMemory {
    /// `len` zero bytes.
    pub fn new(len: u64) -> io::Result<Self> {
        // SAFETY: a name that ends; the descriptor that comes is checked and is nobody else's.
        let fd = unsafe { libc::memfd_create(c"ferric-peer".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(len)?;
        Ok(Self { file, len, revoked: AtomicBool::new(false), passed: Default::default() })
    }

    /// What the device exports.
    pub fn export(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// `buffer` is this device's.
    pub fn is(&self, buffer: BorrowedFd) -> bool {
        let identity = |f: &File| f.metadata().map(|m| (m.dev(), m.ino()));
        let theirs = buffer.try_clone_to_owned().map(File::from).and_then(|f| identity(&f));
        matches!((identity(&self.file), theirs), (Ok(a), Ok(b)) if a == b)
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.len
    }

    /// The device needs its memory for something else: whatever comes from now on is refused.
    pub fn revoke(&self) {
        self.revoked.store(true, Ordering::Release);
    }

    /// Reads and writes of cards that were served.
    pub fn passed(&self) -> [u64; 2] {
        [0, 1].map(|i| self.passed[i].load(Ordering::Relaxed))
    }

    /// The device's own view of its memory: reads.
    pub fn load(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    /// The device's own view of its memory: writes.
    pub fn store(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn serve(&self, kind: usize, f: impl FnOnce(&Self) -> io::Result<()>) -> bool {
        let served = !self.revoked.load(Ordering::Acquire) && f(self).is_ok();
        self.passed[kind].fetch_add(served as u64, Ordering::Relaxed);
        served
    }

    /// A card's read.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> bool {
        self.serve(0, |m| m.load(offset, out))
    }

    /// A card's write of the bytes that `strobe` selects.
    pub(crate) fn write(&self, offset: u64, data: &[u8], strobe: u64) -> bool {
        self.serve(1, |m| (0..data.len()).filter(|i| strobe >> i & 1 == 1).try_for_each(|i| m.store(offset + i as u64, &data[i..=i])))
    }

    /// A card's write of whole bytes.
    pub(crate) fn write_all(&self, offset: u64, bytes: &[u8]) -> bool {
        self.serve(1, |m| m.store(offset, bytes))
    }
}
