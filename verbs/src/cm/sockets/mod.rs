//! rsockets: calls like those of stream sockets, over a connected queue pair, and of datagram sockets, over a datagram queue pair (rsocket(7)).
//!
//! * `wire`: what two ends say to each other; `flow`: credits and buffers, without verbs.
//! * `memory`, `endpoint`: registered buffers, the queue pair and what completes on it.
//! * `state`: the state of a socket, and the one place in which it changes by what comes from the peer.
//! * `datagrams`: datagram sockets, whose calls the others pass on.
//! * `connect`, `data`, `mappings`, `poll`, `options`: the calls.
//!
//! A socket's number is a descriptor that poll(2) finds readable when something may have happened; programs give it to `rpoll`, since they cannot know which.
mod connect;
mod data;
mod datagrams;
mod endpoint;
mod flow;
mod mappings;
mod memory;
mod options;
mod poll;
mod state;
mod wire;

use crate::errors::set_errno;
use crate::shared::lock;
use datagrams::Datagrams;
use state::Inner;
use std::collections::HashMap;
use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// The longest time that a thread sleeps without a look at the connection.
const SLICE: Duration = Duration::from_millis(100);

/// A socket.
pub struct Socket {
    /// Readable when its completion channel or its event channel is.
    fd: OwnedFd,
    inner: Mutex<Inner>,
    /// The thread that waited for the descriptor has looked.
    looked: Condvar,
}

fn table() -> &'static RwLock<HashMap<c_int, Arc<Socket>>> {
    static TABLE: OnceLock<RwLock<HashMap<c_int, Arc<Socket>>>> = OnceLock::new();
    TABLE.get_or_init(RwLock::default)
}

impl Socket {
    /// A new one in the table; its number.
    fn add(inner: Inner) -> Result<c_int, c_int> {
        // SAFETY: a new descriptor, which nobody else owns.
        let fd = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(last_errno());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let number = fd.as_raw_fd();
        inner.fds().into_iter().try_for_each(|of| watch(number, of))?;
        table().write().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::new(Self { fd, inner: Mutex::new(inner), looked: Condvar::new() }));
        Ok(number)
    }

    /// The stream socket with a number. EBADF: there is none; EOPNOTSUPP: it is one of datagrams.
    fn of(number: c_int) -> Result<Arc<Self>, c_int> {
        Self::find(number).ok_or_else(|| if Datagrams::find(number).is_some() { libc::EOPNOTSUPP } else { libc::EBADF })
    }

    fn find(number: c_int) -> Option<Arc<Self>> {
        table().read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    /// Takes it out of the table.
    fn remove(number: c_int) -> Result<Arc<Self>, c_int> {
        table().write().unwrap_or_else(PoisonError::into_inner).remove(&number).ok_or(libc::EBADF)
    }

    /// Its state, for one thread at a time.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Its endpoint has been made: its channel counts from now on.
    fn watch(&self, inner: &Inner) -> Result<(), c_int> {
        inner.endpoint_fd().map_or(Ok(()), |of| watch(self.fd.as_raw_fd(), of))
    }

    /// Waits until something may have happened, for a moment at most; others may use the socket meanwhile.
    fn wait<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        if inner.waited_for {
            // Somebody else looks when the descriptor becomes readable.
            return self.looked.wait_timeout(inner, SLICE).unwrap_or_else(PoisonError::into_inner).0;
        }
        if inner.arm() {
            // What came before that makes nothing readable.
            return inner;
        }
        inner.waited_for = true;
        drop(inner);
        let mut fds = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry.
        unsafe { libc::poll(&mut fds, 1, SLICE.as_millis() as c_int) };
        let mut inner = self.lock();
        inner.waited_for = false;
        self.look(&mut inner);
        inner
    }

    /// The descriptor was readable, or a moment has passed.
    fn look(&self, inner: &mut Inner) {
        inner.disarm();
        inner.progress();
        self.looked.notify_all();
    }

    /// Waits until `done` gives something. EAGAIN if it does not at once and `patient` is not set; a time limit gives ETIMEDOUT.
    fn until<'a, T>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        patient: bool,
        deadline: Option<Instant>,
        mut done: impl FnMut(&mut Inner) -> Option<Result<T, c_int>>,
    ) -> (MutexGuard<'a, Inner>, Result<T, c_int>) {
        loop {
            inner.progress();
            if let Some(r) = done(&mut inner) {
                return (inner, r);
            }
            if !patient {
                return (inner, Err(libc::EAGAIN));
            }
            if deadline.is_some_and(|d| Instant::now() >= d) {
                return (inner, Err(libc::ETIMEDOUT));
            }
            inner = self.wait(inner);
        }
    }
}

fn last_errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// `number` is readable when `fd` is.
fn watch(number: c_int, fd: c_int) -> Result<(), c_int> {
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
    // SAFETY: two descriptors in use, and an event on the stack.
    match unsafe { libc::epoll_ctl(number, libc::EPOLL_CTL_ADD, fd, &mut event) } {
        0 => Ok(()),
        _ => Err(last_errno()),
    }
}

/// For calls that give a number of bytes, or -1 with `errno`.
fn bytes(what: &str, r: Result<usize, c_int>) -> isize {
    match r {
        Ok(n) => n as isize,
        Err(n) => {
            // Calls that do not wait say so all the time.
            if n != libc::EAGAIN {
                log::debug!("{what}: errno {n}");
            }
            set_errno(n);
            -1
        }
    }
}
