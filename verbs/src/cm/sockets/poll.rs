//! `rpoll` and `rselect`: of rsockets and of other descriptors.
use super::datagrams::Datagrams;
use super::state::{Inner, State};
use super::{Socket, SLICE};
use crate::errors::{minus_one, set_errno};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_short};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Events of poll(2) that a socket has.
fn events_of(inner: &mut Inner, wanted: c_short) -> c_short {
    inner.progress();
    let (reads, writes, always) = match inner.state {
        State::Open { reads, writes } => (!reads || inner.unread() > 0, writes && inner.room() > 0, 0),
        State::Listening => (inner.has_events(), false, 0),
        // Programs that take a hang-up for an error shall read what came before it.
        State::Ended if inner.unread() > 0 => (true, false, 0),
        State::Ended => (true, false, libc::POLLHUP),
        State::Broken(_) | State::Refused(_) => (true, true, libc::POLLERR),
        State::Closed => (false, false, libc::POLLNVAL),
        State::Fresh | State::Bound | State::Connecting => (false, false, 0),
    };
    let of = |is: bool, event: c_short| if is { event & wanted } else { 0 };
    of(reads, libc::POLLIN) | of(writes, libc::POLLOUT) | always
}

/// What `rpoll` looks at beside descriptors.
trait Looked {
    /// Events of poll(2) that it has.
    fn events(&self, wanted: c_short) -> c_short;
    /// Asks for its descriptor to become readable; `true` if something has happened meanwhile.
    fn arm(&self) -> bool;
    /// Its descriptor was readable, or a moment has passed.
    fn look(&self);
}

impl Looked for Socket {
    fn events(&self, wanted: c_short) -> c_short {
        events_of(&mut self.lock(), wanted)
    }
    fn arm(&self) -> bool {
        self.lock().arm()
    }
    fn look(&self) {
        Socket::look(self, &mut self.lock());
    }
}

impl Looked for Datagrams {
    fn events(&self, wanted: c_short) -> c_short {
        let mut inner = self.lock();
        let (reads, writes) = inner.ready();
        let of = |is: bool, event: c_short| if is { event & wanted } else { 0 };
        of(reads, libc::POLLIN) | of(writes, libc::POLLOUT) | if inner.broken().is_some() { libc::POLLERR } else { 0 }
    }
    fn arm(&self) -> bool {
        self.lock().arm()
    }
    fn look(&self) {
        self.lock().disarm();
    }
}

/// The socket with a number, if it is one.
fn find(number: c_int) -> Option<Arc<dyn Looked>> {
    let stream = Socket::find(number).map(|s| s as Arc<dyn Looked>);
    stream.or_else(|| Datagrams::find(number).map(|d| d as Arc<dyn Looked>))
}

/// Notes in `fds` what each has; how many have something.
fn look(fds: &mut [libc::pollfd], sockets: &[Option<Arc<dyn Looked>>], others: &mut [libc::pollfd]) -> Result<c_int, c_int> {
    // SAFETY: as many entries as it says; those of rsockets are negative or looked at below.
    if unsafe { libc::poll(others.as_mut_ptr(), others.len() as libc::nfds_t, 0) } < 0 {
        return Err(super::last_errno());
    }
    let mut n = 0;
    for ((fd, socket), other) in fds.iter_mut().zip(sockets).zip(others.iter()) {
        fd.revents = match socket {
            Some(socket) => socket.events(fd.events),
            None => other.revents,
        };
        n += c_int::from(fd.revents != 0);
    }
    Ok(n)
}

/// `timeout`: milliseconds, negative for ever.
fn poll(fds: &mut [libc::pollfd], timeout: c_int) -> Result<c_int, c_int> {
    let deadline = u64::try_from(timeout).ok().map(|ms| Instant::now() + Duration::from_millis(ms));
    let sockets: Vec<_> = fds.iter().map(|f| find(f.fd)).collect();
    if sockets.iter().all(Option::is_none) {
        // Nothing of ours: it may sleep as long as it likes.
        // SAFETY: the caller's entries.
        let n = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
        return if n < 0 { Err(super::last_errno()) } else { Ok(n) };
    }
    // The number of a socket is a descriptor that is readable when the socket wants to be looked at.
    let wakes = |f: &libc::pollfd, s: &Option<Arc<dyn Looked>>| libc::pollfd { events: if s.is_some() { libc::POLLIN } else { f.events }, ..*f };
    let mut others: Vec<_> = fds.iter().zip(&sockets).map(|(f, s)| wakes(f, s)).collect();
    loop {
        let n = look(fds, &sockets, &mut others)?;
        let left = deadline.map_or(SLICE, |d| d.saturating_duration_since(Instant::now()).min(SLICE));
        if n > 0 || left.is_zero() {
            return Ok(n);
        }
        if sockets.iter().flatten().any(|s| s.arm()) {
            continue;
        }
        // SAFETY: as many entries as it says.
        if unsafe { libc::poll(others.as_mut_ptr(), others.len() as libc::nfds_t, left.as_millis().max(1) as c_int) } < 0 {
            return Err(super::last_errno());
        }
        sockets.iter().flatten().for_each(|s| s.look());
    }
}

/// poll(2) for rsockets and other descriptors. -1 with EINTR, EFAULT, ENOMEM.
#[no_mangle]
unsafe extern "C" fn ferric_rpoll(fds: *mut libc::pollfd, n: libc::nfds_t, timeout: c_int) -> c_int {
    let polled = if n == 0 {
        poll(&mut [], timeout)
    } else if fds.is_null() {
        Err(libc::EFAULT)
    } else {
        // SAFETY: `n` entries, by the caller's promise.
        poll(unsafe { std::slice::from_raw_parts_mut(fds, n as usize) }, timeout)
    };
    polled.unwrap_or_else(|n| minus_one("rpoll", Err(n)))
}

/// select(2) for rsockets and other descriptors below `FD_SETSIZE`. -1 with EBADF, EINVAL, EINTR. The time limit is not changed.
#[no_mangle]
unsafe extern "C" fn ferric_rselect(n: c_int, reads: *mut libc::fd_set, writes: *mut libc::fd_set, excepts: *mut libc::fd_set, timeout: *const libc::timeval) -> c_int {
    let sets = [(reads, libc::POLLIN), (writes, libc::POLLOUT), (excepts, libc::POLLPRI)];
    let select = || {
        if !(0..=libc::FD_SETSIZE as c_int).contains(&n) {
            return Err(libc::EINVAL);
        }
        let mut wanted = BTreeMap::new();
        for fd in 0..n {
            for (set, event) in sets {
                // SAFETY: null, or a set of the caller's with room for `fd`.
                if !set.is_null() && unsafe { libc::FD_ISSET(fd, set) } {
                    *wanted.entry(fd).or_insert(0) |= event;
                }
            }
        }
        let mut fds: Vec<_> = wanted.into_iter().map(|(fd, events)| libc::pollfd { fd, events, revents: 0 }).collect();
        // SAFETY: null, or the caller's.
        let limit = match unsafe { timeout.as_ref() } {
            None => -1,
            Some(t) if t.tv_sec < 0 || !(0..1_000_000).contains(&t.tv_usec) => return Err(libc::EINVAL),
            Some(t) => t.tv_sec.saturating_mul(1000).saturating_add((t.tv_usec + 999) / 1000).min(c_int::MAX.into()) as c_int,
        };
        poll(&mut fds, limit)?;
        if fds.iter().any(|f| f.revents & libc::POLLNVAL != 0) {
            return Err(libc::EBADF);
        }
        let mut count = 0;
        for (set, event) in sets.into_iter().filter(|s| !s.0.is_null()) {
            // What ends a connection makes it readable and writable, as with select(2).
            let also = match event {
                libc::POLLIN => libc::POLLHUP | libc::POLLERR,
                libc::POLLOUT => libc::POLLERR,
                _ => 0,
            };
            // SAFETY: as above.
            unsafe { libc::FD_ZERO(set) };
            for f in fds.iter().filter(|f| f.events & event != 0 && f.revents & (event | also) != 0) {
                // SAFETY: as above.
                unsafe { libc::FD_SET(f.fd, set) };
                count += 1;
            }
        }
        Ok(count)
    };
    select().unwrap_or_else(|n| {
        set_errno(n);
        -1
    })
}
