//! Registered memory of a connection: pages of its own, which the card reads and writes while the program runs.
use crate::abi::objects::{Mr, Pd};
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{null_mut, NonNull};

/// Pages with a memory region.
pub struct Memory {
    at: NonNull<u8>,
    len: usize,
    mr: *mut Mr,
}

impl Memory {
    /// `len` bytes of zeros, registered with `access` (`ibv_access_flags`). ENOMEM, or what `ibv_reg_mr` says.
    ///
    /// # Safety
    /// `pd` is a handle in use, and outlives this.
    pub unsafe fn new(pd: *mut Pd, len: usize, access: c_uint) -> Result<Self, c_int> {
        let len = len.max(1);
        // SAFETY: new pages, wherever there is room.
        let at = unsafe { libc::mmap(null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
        let at = if at == libc::MAP_FAILED { None } else { NonNull::new(at.cast::<u8>()) }.ok_or(libc::ENOMEM)?;
        let mut memory = Self { at, len, mr: null_mut() };
        // SAFETY: the pages live as long as the region.
        memory.mr = unsafe { register(pd, at.as_ptr().cast(), len, access) }?;
        Ok(memory)
    }

    /// Address of the first byte.
    pub fn addr(&self) -> u64 {
        self.at.as_ptr() as u64
    }

    /// Local key.
    pub fn lkey(&self) -> u32 {
        // SAFETY: a region in use.
        unsafe { (*self.mr).lkey }
    }

    /// Remote key.
    pub fn rkey(&self) -> u32 {
        // SAFETY: a region in use.
        unsafe { (*self.mr).rkey }
    }

    /// Copies `len` bytes from `offset` to `to`. What the card writes meanwhile is seen in part.
    ///
    /// # Safety
    /// Room for `len` bytes at `to`.
    pub unsafe fn read(&self, offset: usize, to: *mut u8, len: usize) {
        assert!(offset <= self.len && len <= self.len - offset, "inside the memory");
        // SAFETY: inside, by the check, and room for them by the caller's promise.
        unsafe { to.copy_from_nonoverlapping(self.at.as_ptr().add(offset), len) };
    }

    /// Copies `len` bytes from `from` to `offset`.
    ///
    /// # Safety
    /// `len` bytes can be read at `from`.
    pub unsafe fn write(&self, offset: usize, from: *const u8, len: usize) {
        assert!(offset <= self.len && len <= self.len - offset, "inside the memory");
        // SAFETY: as above.
        unsafe { self.at.as_ptr().add(offset).copy_from_nonoverlapping(from, len) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: made in `new`; nobody else has them.
        unsafe {
            if !self.mr.is_null() {
                deregister(self.mr);
            }
            libc::munmap(self.at.as_ptr().cast(), self.len);
        }
    }
}

/// Registers memory.
///
/// # Safety
/// `pd` is a handle in use; the memory stays as long as the region.
pub unsafe fn register(pd: *mut Pd, addr: *mut c_void, len: usize, access: c_uint) -> Result<*mut Mr, c_int> {
    // SAFETY: by the caller's promise.
    let mr = unsafe { crate::mr::ibv_reg_mr(pd, addr, len, access as c_int) };
    if mr.is_null() {
        Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENOMEM))
    } else {
        Ok(mr)
    }
}

/// Lets go of a region. A card that is gone has none any more, so that a failure leaves nothing to be done.
///
/// # Safety
/// `mr` is of [`register`], and is not used afterwards.
pub unsafe fn deregister(mr: *mut Mr) {
    // SAFETY: by the caller's promise.
    let n = unsafe { crate::mr::ibv_dereg_mr(mr) };
    if n != 0 {
        log::warn!("rsocket: a region stays registered, errno {n}");
    }
}
