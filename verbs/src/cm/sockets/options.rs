//! Options of a socket, and its addresses.
use super::datagrams::Datagrams;
use super::endpoint::{Sizes, LEAST};
use super::state::State;
use super::wire::{scaled, unscaled};
use super::Socket;
use crate::cm::address::sockaddr;
use crate::cm::id::IdObject;
use crate::errors::minus_one;
use crate::query::MAX_DEPTH;
use crate::shared::lock;
use std::ffi::{c_int, c_void};
use std::net::SocketAddr;
use std::sync::Arc;

/// Level of rsockets' own options, and their numbers (rsocket(7)).
const SOL_RDMA: c_int = 0x10000;
const RDMA_SQSIZE: c_int = 0;
const RDMA_RQSIZE: c_int = 1;
const RDMA_INLINE: c_int = 2;
const RDMA_IOMAPSIZE: c_int = 3;

/// Requests and receives of a queue at most: both report to one completion queue.
const MOST_REQUESTS: c_int = MAX_DEPTH as c_int / 2;
/// Bytes inside a request at most.
const MOST_INLINE: c_int = 256;
/// Bytes of a buffer: fewer would stop a stream, more would not fit into the counters.
const BUFFER: std::ops::RangeInclusive<i64> = 4096..=1 << 30;
/// Seconds without a message after which a sign of life is sent, if the program does not say (tcp(7)).
const KEEP_IDLE: u32 = 7200;

/// What can be set.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sizes of the connection, once there is one.
    pub sizes: Sizes,
    /// Signs of life are sent, by the calls that wait.
    pub keep_alive: bool,
    /// Seconds without a message after which one is sent.
    pub keep_idle: u32,
    /// `SOCK_STREAM` or `SOCK_DGRAM`.
    kind: c_int,
    /// Flags of `F_GETFL` and of `F_GETFD`.
    status: c_int,
    descriptor: c_int,
    /// Options that are only remembered: level, name and value.
    remembered: Vec<(c_int, c_int, c_int)>,
}

impl Options {
    /// Those of rsocket(7), with `SOCK_NONBLOCK` and `SOCK_CLOEXEC` of `flags`.
    pub fn new(flags: c_int) -> Self {
        Self {
            sizes: Sizes { requests: 384, receives: 384, inline: 64, send: 1 << 17, receive: 1 << 17, mappings: 0 },
            kind: libc::SOCK_STREAM,
            keep_alive: false,
            keep_idle: KEEP_IDLE,
            status: if flags & libc::SOCK_NONBLOCK != 0 { libc::O_NONBLOCK } else { 0 },
            descriptor: if flags & libc::SOCK_CLOEXEC != 0 { libc::FD_CLOEXEC } else { 0 },
            remembered: Vec::new(),
        }
    }

    /// Those of a datagram socket.
    pub fn of_datagrams(flags: c_int) -> Self {
        Self { kind: libc::SOCK_DGRAM, ..Self::new(flags) }
    }

    /// Calls do not wait.
    pub fn is_nonblocking(&self) -> bool {
        self.status & libc::O_NONBLOCK != 0
    }

    /// Sets one; `connected` forbids what sizes a connection.
    fn set(&mut self, level: c_int, option: c_int, n: c_int, connected: bool) -> Result<(), c_int> {
        // The kernel doubles buffers for its own use, and rsockets do as it does.
        let buffer = (i64::from(n) * 2).clamp(*BUFFER.start(), *BUFFER.end()) as u32;
        let sizes = &mut self.sizes;
        match (level, option) {
            (libc::SOL_SOCKET, libc::SO_RCVBUF) if connected => {}
            (libc::SOL_SOCKET, libc::SO_SNDBUF) if connected => {}
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => sizes.receive = buffer,
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => sizes.send = buffer,
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => self.keep_alive = n != 0,
            (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => self.keep_idle = u32::try_from(n).ok().filter(|n| *n > 0).ok_or(libc::EINVAL)?,
            (SOL_RDMA, _) if connected => return Err(libc::EINVAL),
            (SOL_RDMA, RDMA_SQSIZE) => sizes.requests = n.clamp(LEAST.into(), MOST_REQUESTS) as u16,
            (SOL_RDMA, RDMA_RQSIZE) => sizes.receives = n.clamp(LEAST.into(), MOST_REQUESTS) as u16,
            (SOL_RDMA, RDMA_INLINE) => sizes.inline = n.clamp(0, MOST_INLINE) as u16,
            (SOL_RDMA, RDMA_IOMAPSIZE) => sizes.mappings = unscaled(scaled(n.clamp(0, 0x7fff) as u16)),
            (libc::SOL_SOCKET, libc::SO_REUSEADDR | libc::SO_OOBINLINE)
            | (libc::IPPROTO_TCP, libc::TCP_NODELAY | libc::TCP_MAXSEG | libc::TCP_KEEPCNT | libc::TCP_KEEPINTVL | libc::TCP_CONGESTION)
            | (libc::IPPROTO_IP, libc::IP_TOS)
            | (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => {
                self.remembered.retain(|r| (r.0, r.1) != (level, option));
                self.remembered.push((level, option, n));
            }
            _ => return Err(libc::ENOPROTOOPT),
        }
        Ok(())
    }

    /// `rfcntl`: gives what the call gives.
    fn control(&mut self, cmd: c_int, arg: c_int) -> Result<c_int, c_int> {
        match cmd {
            libc::F_GETFL => return Ok(self.status | libc::O_RDWR),
            libc::F_SETFL => self.status = arg & libc::O_NONBLOCK,
            libc::F_GETFD => return Ok(self.descriptor),
            libc::F_SETFD => self.descriptor = arg & libc::FD_CLOEXEC,
            _ => return Err(libc::EOPNOTSUPP),
        }
        Ok(0)
    }

    /// What one is.
    fn get(&self, level: c_int, option: c_int) -> Result<c_int, c_int> {
        let remembered = |otherwise| self.remembered.iter().find(|r| (r.0, r.1) == (level, option)).map_or(otherwise, |r| r.2);
        let is_set = || c_int::from(remembered(0) != 0);
        Ok(match (level, option) {
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => self.sizes.receive as c_int,
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => self.sizes.send as c_int,
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => self.keep_alive.into(),
            (libc::SOL_SOCKET, libc::SO_TYPE) => self.kind,
            (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => self.keep_idle as c_int,
            (SOL_RDMA, RDMA_SQSIZE) => self.sizes.requests.into(),
            (SOL_RDMA, RDMA_RQSIZE) => self.sizes.receives.into(),
            (SOL_RDMA, RDMA_INLINE) => self.sizes.inline.into(),
            (SOL_RDMA, RDMA_IOMAPSIZE) => self.sizes.mappings.into(),
            (libc::SOL_SOCKET, libc::SO_REUSEADDR | libc::SO_OOBINLINE) | (libc::IPPROTO_TCP, libc::TCP_NODELAY) | (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => is_set(),
            (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => 2048,
            (libc::IPPROTO_TCP, libc::TCP_KEEPCNT | libc::TCP_KEEPINTVL) => remembered(1),
            (libc::IPPROTO_IP, libc::IP_TOS) => remembered(0),
            _ => return Err(libc::ENOPROTOOPT),
        })
    }
}

/// Sets an option whose value is an `int`, or a `struct linger`, which is passed over. Sizes count for connections that are made later. -1 with EBADF, EINVAL, ENOPROTOOPT.
#[no_mangle]
unsafe extern "C" fn ferric_rsetsockopt(socket: c_int, level: c_int, option: c_int, value: *const c_void, len: u32) -> c_int {
    let set = || {
        let datagrams = Datagrams::find(socket);
        let socket = if datagrams.is_some() { None } else { Some(Socket::of(socket)?) };
        if value.is_null() || (len as usize) < size_of::<c_int>() {
            return Err(libc::EINVAL);
        }
        if (level, option) == (libc::SOL_SOCKET, libc::SO_LINGER) {
            return Ok(());
        }
        // SAFETY: four bytes at least, by the caller's promise.
        let n = unsafe { value.cast::<c_int>().read_unaligned() };
        if let Some(datagrams) = datagrams {
            let mut inner = datagrams.lock();
            let bound = inner.own().is_some();
            return inner.options.set(level, option, n, bound);
        }
        let socket = socket.ok_or(libc::EBADF)?;
        let mut inner = socket.lock();
        let connected = !matches!(inner.state, State::Fresh | State::Bound | State::Listening);
        inner.options.set(level, option, n, connected)?;
        if (level, option) == (libc::IPPROTO_IP, libc::IP_TOS) {
            lock(&inner.object().inner).tos = n as u8;
        }
        Ok(())
    };
    minus_one("rsetsockopt", set())
}

/// What an option is: an `int`. `SO_ERROR` is why there is no connection, once. -1 with EBADF, EINVAL (no room), ENOPROTOOPT.
#[no_mangle]
unsafe extern "C" fn ferric_rgetsockopt(socket: c_int, level: c_int, option: c_int, value: *mut c_void, len: *mut u32) -> c_int {
    let get = || {
        let datagrams = Datagrams::find(socket);
        let socket = if datagrams.is_some() { None } else { Some(Socket::of(socket)?) };
        // SAFETY: null, or the caller's.
        if value.is_null() || len.is_null() || (unsafe { len.read() } as usize) < size_of::<c_int>() {
            return Err(libc::EINVAL);
        }
        let of_stream = |socket: Arc<Socket>| {
            let mut inner = socket.lock();
            match (level, option) {
                (libc::SOL_SOCKET, libc::SO_ERROR) => {
                    inner.progress();
                    Ok(std::mem::take(&mut inner.error))
                }
                (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => Ok(c_int::from(inner.state == State::Listening)),
                _ => inner.options.get(level, option),
            }
        };
        let of_datagrams = |datagrams: Arc<Datagrams>| {
            let inner = datagrams.lock();
            match (level, option) {
                (libc::SOL_SOCKET, libc::SO_ERROR) => Ok(inner.broken().unwrap_or(0)),
                (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => Ok(0),
                _ => inner.options.get(level, option),
            }
        };
        let n = match (datagrams, socket) {
            (Some(datagrams), _) => of_datagrams(datagrams)?,
            (None, Some(socket)) => of_stream(socket)?,
            (None, None) => return Err(libc::EBADF),
        };
        // SAFETY: room for four bytes, by the check.
        unsafe {
            value.cast::<c_int>().write_unaligned(n);
            len.write(size_of::<c_int>() as u32);
        }
        Ok(())
    };
    minus_one("rgetsockopt", get())
}

/// `F_GETFL`, `F_SETFL` (of which `O_NONBLOCK` counts), `F_GETFD`, `F_SETFD`. -1 with EBADF, EOPNOTSUPP. The third argument is a variable one in C, which is passed as this one is.
#[no_mangle]
extern "C" fn ferric_rfcntl(socket: c_int, cmd: c_int, arg: c_int) -> c_int {
    let control = || {
        if let Some(datagrams) = Datagrams::find(socket) {
            return datagrams.lock().options.control(cmd, arg);
        }
        let socket = Socket::of(socket)?;
        let mut inner = socket.lock();
        inner.options.control(cmd, arg)
    };
    control().unwrap_or_else(|n| minus_one("rfcntl", Err(n)))
}

/// Writes an address of a socket, as much of it as there is room for.
///
/// # Safety
/// `addr` and `len` are the caller's: room, and how much of it there is.
pub unsafe fn name(number: c_int, addr: *mut c_void, len: *mut u32, which: impl FnOnce(&IdObject) -> Option<SocketAddr>) -> Result<(), c_int> {
    let socket = Socket::of(number)?;
    let inner = socket.lock();
    if addr.is_null() || len.is_null() {
        return Err(libc::EFAULT);
    }
    if inner.state == State::Closed {
        return Err(libc::EBADF);
    }
    // SAFETY: by the caller's promise.
    unsafe { put(addr, len, which(inner.object()).ok_or(libc::ENOTCONN)?) }
}

/// Writes an address, as much of it as there is room for. EFAULT: there is nowhere to.
///
/// # Safety
/// As [`name`], or null.
pub unsafe fn put(addr: *mut c_void, len: *mut u32, a: SocketAddr) -> Result<(), c_int> {
    if addr.is_null() || len.is_null() {
        return Err(libc::EFAULT);
    }
    let (bytes, size) = sockaddr(a);
    // SAFETY: by the caller's promise.
    unsafe {
        let room = len.replace(size);
        addr.cast::<u8>().copy_from_nonoverlapping(bytes.0.as_ptr(), room.min(size) as usize);
    }
    Ok(())
}

/// The peer's address. -1 with EBADF, EFAULT, ENOTCONN.
#[no_mangle]
unsafe extern "C" fn ferric_rgetpeername(socket: c_int, addr: *mut c_void, len: *mut u32) -> c_int {
    let named = match Datagrams::find(socket) {
        // SAFETY: by the caller's promise.
        Some(datagrams) => datagrams.lock().peer().ok_or(libc::ENOTCONN).and_then(|a| unsafe { put(addr, len, a) }),
        // SAFETY: as above.
        None => unsafe { name(socket, addr, len, |object| object.peer()) },
    };
    minus_one("rgetpeername", named)
}

/// The own address; of a socket that has none, the unspecified one. -1 with EBADF, EFAULT.
#[no_mangle]
unsafe extern "C" fn ferric_rgetsockname(socket: c_int, addr: *mut c_void, len: *mut u32) -> c_int {
    let unspecified = SocketAddr::from(([0, 0, 0, 0], 0));
    let named = match Datagrams::find(socket) {
        // SAFETY: by the caller's promise.
        Some(datagrams) => unsafe { put(addr, len, datagrams.lock().own().unwrap_or(unspecified)) },
        // SAFETY: as above.
        None => unsafe { name(socket, addr, len, |object| Some(object.own().unwrap_or(unspecified))) },
    };
    minus_one("rgetsockname", named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_what_they_were_set_to() {
        let mut o = Options::new(libc::SOCK_NONBLOCK);
        assert!(o.is_nonblocking() && !Options::new(libc::SOCK_CLOEXEC).is_nonblocking());
        let socket = libc::SOL_SOCKET;
        for (level, option, n, is) in [
            (socket, libc::SO_RCVBUF, 1 << 19, 1 << 20),
            (socket, libc::SO_SNDBUF, 0, 4096),
            (socket, libc::SO_RCVBUF, c_int::MAX, 1 << 30),
            (socket, libc::SO_KEEPALIVE, 5, 1),
            (libc::IPPROTO_TCP, libc::TCP_NODELAY, 3, 1),
            (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 9, 9),
            (SOL_RDMA, RDMA_SQSIZE, -5, 16),
            (SOL_RDMA, RDMA_RQSIZE, c_int::MAX, 16384),
            (SOL_RDMA, RDMA_INLINE, 64, 64),
            (SOL_RDMA, RDMA_IOMAPSIZE, 300, 256),
            (libc::IPPROTO_IP, libc::IP_TOS, 8, 8),
        ] {
            assert_eq!(o.set(level, option, n, false), Ok(()));
            assert_eq!(o.get(level, option), Ok(is), "{level} {option}");
        }
        // With a connection sizes stay as they are.
        assert_eq!((o.set(socket, libc::SO_SNDBUF, 1 << 20, true), o.sizes.send), (Ok(()), 4096));
        assert_eq!([o.set(SOL_RDMA, RDMA_SQSIZE, 20, true), o.set(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 0, false)], [Err(libc::EINVAL); 2]);
        assert_eq!((o.set(socket, 9999, 1, false), o.get(SOL_RDMA, 77)), (Err(libc::ENOPROTOOPT), Err(libc::ENOPROTOOPT)));
    }
}
