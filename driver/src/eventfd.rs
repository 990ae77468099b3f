//! eventfds: how interrupts reach a process.
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::time::{Duration, Instant};

/// A counter that interrupts increase.
#[derive(Debug)]
pub struct EventFd(File);

impl EventFd {
    /// A new one, at zero, that never blocks.
    pub fn new() -> Result<Self> {
        // SAFETY: no memory involved.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    /// Its value, which becomes zero.
    pub fn take(&self) -> u64 {
        let mut value = [0; 8];
        match (&self.0).read_exact(&mut value) {
            Ok(()) => u64::from_ne_bytes(value),
            Err(_) => 0,
        }
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Waits until `fd` is readable; false on time-out. An error when `socket` (-1: none) was closed by its other end.
pub fn wait_readable(fd: RawFd, socket: RawFd, timeout: Duration) -> Result<bool> {
    let end = Instant::now() + timeout;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        // Rounded up: a wait of 0.3 ms must not become a busy loop.
        let ms = left.as_micros().div_ceil(1000).min(i32::MAX as u128) as i32;
        let mut fds = [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }, libc::pollfd { fd: socket, events: 0, revents: 0 }];
        // SAFETY: two valid entries.
        let n = unsafe { libc::poll(fds.as_mut_ptr(), 2, ms) };
        if n < 0 {
            let e = Error::last_os_error();
            if e.kind() != ErrorKind::Interrupted {
                return Err(e);
            }
        } else if fds[0].revents & libc::POLLIN != 0 {
            return Ok(true);
        } else if fds[1].revents & (libc::POLLHUP | libc::POLLERR) != 0 {
            return Err(ErrorKind::ConnectionAborted.into());
        } else if n == 0 && ms as u128 * 1000 >= left.as_micros() {
            return Ok(false);
        }
    }
}

/// Sleeps for `nap`; true, and at once, when `socket` has been closed by its other end.
pub fn is_closed(socket: RawFd, nap: Duration) -> bool {
    let mut fd = libc::pollfd { fd: socket, events: 0, revents: 0 };
    let nap = libc::timespec { tv_sec: nap.as_secs() as libc::time_t, tv_nsec: nap.subsec_nanos() as libc::c_long };
    // SAFETY: one valid entry, a time of our own, no signal mask.
    let n = unsafe { libc::ppoll(&mut fd, 1, &nap, std::ptr::null()) };
    n == 1 && fd.revents & (libc::POLLHUP | libc::POLLERR) != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn counts_waits_and_sees_the_end() {
        let e = EventFd::new().unwrap();
        let (a, b) = UnixStream::pair().unwrap();
        let wait = |ms| wait_readable(e.as_raw_fd(), b.as_raw_fd(), Duration::from_millis(ms));
        assert!(!wait(2).unwrap());
        (&e.0).write_all(&2u64.to_ne_bytes()).unwrap();
        assert!(wait(1000).unwrap());
        assert_eq!((e.take(), e.take()), (2, 0));
        assert!(!is_closed(b.as_raw_fd(), Duration::from_millis(1)));
        drop(a);
        assert!(wait(1000).is_err());
        assert!(is_closed(b.as_raw_fd(), Duration::from_secs(60)));
    }
}
