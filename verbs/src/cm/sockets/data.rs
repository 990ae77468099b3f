//! Sending and receiving.
use super::connect::has_length;
use super::datagrams::{Datagrams, LONGEST};
use super::mappings::tell_mappings;
use super::options::{name, put, Options};
use super::state::{Inner, State};
use super::wire::Message;
use super::{bytes, Socket};
use crate::cm::address::address;
use std::ffi::{c_int, c_void};
use std::net::SocketAddr;

/// Bytes of one message at most, so that the peer begins to read before all is there.
const MOST: u32 = 65_536;
/// Parts of a message in memory (`IOV_MAX`).
const MOST_PARTS: usize = 1024;
/// Flags that mean something here, or may be passed over.
const FLAGS: c_int = libc::MSG_DONTWAIT | libc::MSG_PEEK | libc::MSG_WAITALL | libc::MSG_NOSIGNAL | libc::MSG_MORE;

/// Whether a call with these flags waits, on a socket with these options.
fn patient(options: &Options, flags: c_int) -> Result<bool, c_int> {
    if flags & !FLAGS != 0 {
        return Err(libc::EOPNOTSUPP);
    }
    Ok(flags & libc::MSG_DONTWAIT == 0 && !options.is_nonblocking())
}

/// Sends `count` bytes by `send`, which gives how many of the rest it has sent: 0 if it can send none now. Gives the bytes sent.
///
/// # Safety
/// `count` bytes can be read at `from`.
pub unsafe fn send_all(number: c_int, from: *const u8, count: usize, flags: c_int, mut send: impl FnMut(&mut Inner, *const u8, usize) -> Result<u32, c_int>) -> Result<usize, c_int> {
    let socket = Socket::of(number)?;
    let inner = socket.lock();
    let patient = patient(&inner.options, flags)?;
    if count > 0 && from.is_null() {
        return Err(libc::EFAULT);
    }
    let mut done = 0;
    let (_inner, r) = socket.until(inner, patient, None, |inner| {
        loop {
            match inner.state {
                State::Open { writes: true, .. } => {}
                State::Open { .. } => return Some(Err(libc::EPIPE)),
                State::Connecting => return None,
                State::Ended => return Some(Err(libc::ECONNRESET)),
                State::Broken(n) | State::Refused(n) => return Some(Err(n)),
                State::Closed => return Some(Err(libc::EBADF)),
                State::Fresh | State::Bound | State::Listening => return Some(Err(libc::ENOTCONN)),
            }
            if done == count {
                return Some(Ok(()));
            }
            if inner.held {
                return None;
            }
            // SAFETY: inside what the caller has.
            let rest = unsafe { from.add(done) };
            match tell_mappings(inner).and_then(|all| if all { send(inner, rest, count - done) } else { Ok(0) }) {
                Ok(0) => return None,
                Ok(n) => done += n as usize,
                Err(n) => return Some(Err(n)),
            }
        }
    });
    match r {
        Err(n) if done == 0 => Err(n),
        _ => Ok(done),
    }
}

/// What a program names by its address; `None`: nothing. EINVAL: it is too short.
unsafe fn named(addr: *const c_void, len: u32) -> Result<Option<SocketAddr>, c_int> {
    if addr.is_null() && len == 0 {
        return Ok(None);
    }
    // SAFETY: by the caller's promise.
    unsafe { has_length(addr, len).and_then(|()| address(addr)) }.map(Some)
}

/// Sends a datagram of several parts.
unsafe fn send_datagram(socket: &Datagrams, parts: &[libc::iovec], to: Option<SocketAddr>, flags: c_int) -> Result<usize, c_int> {
    let mut data = Vec::new();
    for part in parts.iter().filter(|p| p.iov_len > 0) {
        if part.iov_base.is_null() {
            return Err(libc::EFAULT);
        }
        if data.len().saturating_add(part.iov_len) > LONGEST {
            return Err(libc::EMSGSIZE);
        }
        // SAFETY: a part of the caller's, by its promise.
        data.extend_from_slice(unsafe { std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len) });
    }
    let patient = patient(&socket.lock().options, flags)?;
    socket.send(to, &data, patient)
}

/// Receives a datagram into several parts: how many bytes there was room for, how many it has, and its sender.
unsafe fn receive_datagram(socket: &Datagrams, parts: &[libc::iovec], flags: c_int) -> Result<(usize, usize, SocketAddr), c_int> {
    if parts.iter().any(|p| p.iov_len > 0 && p.iov_base.is_null()) {
        return Err(libc::EFAULT);
    }
    let patient = patient(&socket.lock().options, flags)?;
    let (from, data) = socket.receive(flags & libc::MSG_PEEK != 0, patient)?;
    let mut rest = &data[..];
    for part in parts {
        let (now, later) = rest.split_at(rest.len().min(part.iov_len));
        // SAFETY: room for so many, by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), part.iov_base.cast(), now.len()) };
        rest = later;
    }
    Ok((data.len() - rest.len(), data.len(), from))
}

unsafe fn send(number: c_int, buf: *const c_void, len: usize, flags: c_int) -> Result<usize, c_int> {
    if let Some(socket) = Datagrams::find(number) {
        let part = libc::iovec { iov_base: buf.cast_mut(), iov_len: len };
        // SAFETY: by the caller's promise.
        return unsafe { send_datagram(&socket, &[part], None, flags) };
    }
    // SAFETY: by the caller's promise.
    unsafe {
        send_all(number, buf.cast(), len, flags, |inner, from, left| {
            let n = (left.min(MOST as usize) as u32).min(inner.room());
            let (Some(endpoint), Some(flow)) = (&mut inner.endpoint, &mut inner.flow) else { return Err(libc::ENOTCONN) };
            if n > 0 {
                let to = flow.send(n);
                endpoint.write(from, n, Some(Message::Data(n)), to)?;
            }
            Ok(n)
        })
    }
}

unsafe fn receive(number: c_int, buf: *mut c_void, len: usize, flags: c_int) -> Result<usize, c_int> {
    if let Some(socket) = Datagrams::find(number) {
        let part = libc::iovec { iov_base: buf, iov_len: len };
        // SAFETY: by the caller's promise.
        return unsafe { receive_datagram(&socket, &[part], flags) }.map(|r| r.0);
    }
    let socket = Socket::of(number)?;
    let inner = socket.lock();
    let patient = patient(&inner.options, flags)?;
    if len > 0 && buf.is_null() {
        return Err(libc::EFAULT);
    }
    let mut done = 0;
    let (_inner, r) = socket.until(inner, patient, None, |inner| {
        let n = inner.unread().min((len - done).min(u32::MAX as usize) as u32);
        if let (Some(endpoint), Some(flow)) = (&inner.endpoint, &mut inner.flow) {
            let mut to = buf.cast::<u8>().wrapping_add(done);
            for (at, len) in flow.pieces(n) {
                // SAFETY: both pieces together are not more than what is left.
                unsafe { endpoint.copy(at, to, len) };
                to = to.wrapping_add(len as usize);
            }
            done += n as usize;
            if flags & libc::MSG_PEEK == 0 {
                flow.read(n);
                if inner.is_open() {
                    if let Err(n) = inner.tell() {
                        inner.lost(n);
                    }
                }
            }
        }
        if done == len || done > 0 && flags & (libc::MSG_WAITALL | libc::MSG_PEEK) != libc::MSG_WAITALL {
            return Some(Ok(()));
        }
        match inner.state {
            State::Open { reads: true, .. } | State::Connecting => None,
            // The end of the stream.
            State::Open { .. } | State::Ended => Some(Ok(())),
            State::Broken(n) | State::Refused(n) => Some(Err(n)),
            State::Closed => Some(Err(libc::EBADF)),
            State::Fresh | State::Bound | State::Listening => Some(Err(libc::ENOTCONN)),
        }
    });
    match r {
        Err(n) if done == 0 => Err(n),
        _ => Ok(done),
    }
}

/// The parts of a message.
unsafe fn parts<'a>(iov: *const libc::iovec, n: usize) -> Result<&'a [libc::iovec], c_int> {
    match n {
        0 => Ok(&[]),
        // SAFETY: so many of them, by the caller's promise.
        1..=MOST_PARTS if !iov.is_null() => Ok(unsafe { std::slice::from_raw_parts(iov, n) }),
        _ => Err(libc::EINVAL),
    }
}

/// Does something with each part until one is done in part only: bytes of all, or the error of the first.
fn each(parts: &[libc::iovec], mut f: impl FnMut(&libc::iovec, bool) -> Result<usize, c_int>) -> Result<usize, c_int> {
    let mut done = 0;
    for part in parts.iter().filter(|p| p.iov_len > 0) {
        match f(part, done == 0) {
            Ok(n) => {
                done += n;
                if n < part.iov_len {
                    break;
                }
            }
            Err(n) if done == 0 => return Err(n),
            Err(_) => break,
        }
    }
    Ok(done)
}

unsafe fn send_parts(number: c_int, iov: *const libc::iovec, n: usize, flags: c_int) -> Result<usize, c_int> {
    if let Some(socket) = Datagrams::find(number) {
        // SAFETY: by the caller's promise.
        return unsafe { send_datagram(&socket, parts(iov, n)?, None, flags) };
    }
    Socket::of(number)?;
    // SAFETY: by the caller's promise.
    unsafe { each(parts(iov, n)?, |part, _| send(number, part.iov_base, part.iov_len, flags)) }
}

unsafe fn receive_parts(number: c_int, iov: *const libc::iovec, n: usize, flags: c_int) -> Result<usize, c_int> {
    if let Some(socket) = Datagrams::find(number) {
        // SAFETY: by the caller's promise.
        return unsafe { receive_datagram(&socket, parts(iov, n)?, flags) }.map(|r| r.0);
    }
    Socket::of(number)?;
    if flags & libc::MSG_PEEK != 0 && n > 1 {
        // Each part would show the same bytes.
        return Err(libc::EOPNOTSUPP);
    }
    // One part is waited for; the others are filled with what is there.
    let more = if flags & libc::MSG_WAITALL != 0 { flags } else { flags | libc::MSG_DONTWAIT };
    // SAFETY: by the caller's promise.
    unsafe { each(parts(iov, n)?, |part, first| receive(number, part.iov_base, part.iov_len, if first { flags } else { more })) }
}

/// Receives up to `len` bytes; 0 at the end of the stream. Flags: `MSG_DONTWAIT`, `MSG_PEEK`, `MSG_WAITALL`. -1 with EBADF, EAGAIN, ENOTCONN, EOPNOTSUPP (flags), ECONNRESET when the peer
/// does not answer any more, or what `rconnect` would say.
#[no_mangle]
unsafe extern "C" fn ferric_rrecv(socket: c_int, buf: *mut c_void, len: usize, flags: c_int) -> isize {
    // SAFETY: by the caller's promise.
    bytes("rrecv", unsafe { receive(socket, buf, len, flags) })
}

/// As `rrecv`, with the address of who has sent it.
#[no_mangle]
unsafe extern "C" fn ferric_rrecvfrom(socket: c_int, buf: *mut c_void, len: usize, flags: c_int, from: *mut c_void, addrlen: *mut u32) -> isize {
    if let Some(datagrams) = Datagrams::find(socket) {
        let part = libc::iovec { iov_base: buf, iov_len: len };
        // SAFETY: by the caller's promise.
        let received = unsafe {
            receive_datagram(&datagrams, &[part], flags).and_then(|(n, _, sender)| {
                if !from.is_null() {
                    put(from, addrlen, sender)?;
                }
                Ok(n)
            })
        };
        return bytes("rrecvfrom", received);
    }
    // SAFETY: by the caller's promise.
    let received = unsafe { receive(socket, buf, len, flags) };
    let named = received.and_then(|n| {
        if !from.is_null() && n > 0 {
            // SAFETY: as above.
            unsafe { name(socket, from, addrlen, |object| object.peer()) }?;
        }
        Ok(n)
    });
    bytes("rrecvfrom", named)
}

/// As `rrecv`, into several buffers. There are no control messages: EOPNOTSUPP if there is room for some.
#[no_mangle]
unsafe extern "C" fn ferric_rrecvmsg(socket: c_int, msg: *mut libc::msghdr, flags: c_int) -> isize {
    // SAFETY: by the caller's promise.
    let received = unsafe {
        match msg.as_mut() {
            None => Err(libc::EFAULT),
            Some(m) if !m.msg_control.is_null() && m.msg_controllen > 0 => Err(libc::EOPNOTSUPP),
            Some(m) => {
                if let Some(datagrams) = Datagrams::find(socket) {
                    let received = parts(m.msg_iov, m.msg_iovlen).and_then(|parts| receive_datagram(&datagrams, parts, flags));
                    let received = received.and_then(|(n, all, from)| {
                        m.msg_flags = if n < all { libc::MSG_TRUNC } else { 0 };
                        if m.msg_name.is_null() {
                            m.msg_namelen = 0;
                        } else {
                            put(m.msg_name, &mut m.msg_namelen, from)?;
                        }
                        Ok(n)
                    });
                    return bytes("rrecvmsg", received);
                }
                (m.msg_namelen, m.msg_flags) = (0, 0);
                receive_parts(socket, m.msg_iov, m.msg_iovlen, flags)
            }
        }
    };
    bytes("rrecvmsg", received)
}

/// `rrecv` without flags.
#[no_mangle]
unsafe extern "C" fn ferric_rread(socket: c_int, buf: *mut c_void, len: usize) -> isize {
    // SAFETY: by the caller's promise.
    bytes("rread", unsafe { receive(socket, buf, len, 0) })
}

/// `rread` into several buffers.
#[no_mangle]
unsafe extern "C" fn ferric_rreadv(socket: c_int, iov: *const libc::iovec, n: c_int) -> isize {
    let parts = usize::try_from(n).map_err(|_| libc::EINVAL);
    // SAFETY: by the caller's promise.
    bytes("rreadv", parts.and_then(|n| unsafe { receive_parts(socket, iov, n, 0) }))
}

/// Sends `len` bytes, and waits until all of them are in the send buffer; those that do not wait send fewer. -1 with EBADF, EAGAIN, ENOTCONN, EOPNOTSUPP (flags), EPIPE after `rshutdown`,
/// ECONNRESET when the peer has ended the connection or does not answer any more, or what `rconnect` would say.
#[no_mangle]
unsafe extern "C" fn ferric_rsend(socket: c_int, buf: *const c_void, len: usize, flags: c_int) -> isize {
    // SAFETY: by the caller's promise.
    bytes("rsend", unsafe { send(socket, buf, len, flags) })
}

/// As `rsend`; of a stream, which has one peer, an address gives EISCONN. A datagram goes to the address, or to the peer of `rconnect`; without either -1 with EDESTADDRREQ; EMSGSIZE
/// when it does not fit into a packet.
#[no_mangle]
unsafe extern "C" fn ferric_rsendto(socket: c_int, buf: *const c_void, len: usize, flags: c_int, to: *const c_void, addrlen: u32) -> isize {
    if let Some(datagrams) = Datagrams::find(socket) {
        let part = libc::iovec { iov_base: buf.cast_mut(), iov_len: len };
        // SAFETY: by the caller's promise.
        return bytes("rsendto", unsafe { named(to, addrlen).and_then(|to| send_datagram(&datagrams, &[part], to, flags)) });
    }
    let addressed = !to.is_null() || addrlen > 0;
    // SAFETY: by the caller's promise.
    let sent = Socket::of(socket).and_then(|_| if addressed { Err(libc::EISCONN) } else { unsafe { send(socket, buf, len, flags) } });
    bytes("rsendto", sent)
}

/// As `rsend`, from several buffers. Control messages give EOPNOTSUPP.
#[no_mangle]
unsafe extern "C" fn ferric_rsendmsg(socket: c_int, msg: *const libc::msghdr, flags: c_int) -> isize {
    // SAFETY: by the caller's promise.
    let sent = unsafe {
        match msg.as_ref() {
            None => Err(libc::EFAULT),
            Some(m) if !m.msg_control.is_null() && m.msg_controllen > 0 => Err(libc::EOPNOTSUPP),
            Some(m) => match Datagrams::find(socket) {
                Some(datagrams) => named(m.msg_name, m.msg_namelen).and_then(|to| send_datagram(&datagrams, parts(m.msg_iov, m.msg_iovlen)?, to, flags)),
                None => send_parts(socket, m.msg_iov, m.msg_iovlen, flags),
            },
        }
    };
    bytes("rsendmsg", sent)
}

/// `rsend` without flags.
#[no_mangle]
unsafe extern "C" fn ferric_rwrite(socket: c_int, buf: *const c_void, len: usize) -> isize {
    // SAFETY: by the caller's promise.
    bytes("rwrite", unsafe { send(socket, buf, len, 0) })
}

/// `rwrite` from several buffers.
#[no_mangle]
unsafe extern "C" fn ferric_rwritev(socket: c_int, iov: *const libc::iovec, n: c_int) -> isize {
    let parts = usize::try_from(n).map_err(|_| libc::EINVAL);
    // SAFETY: by the caller's promise.
    bytes("rwritev", parts.and_then(|n| unsafe { send_parts(socket, iov, n, 0) }))
}
