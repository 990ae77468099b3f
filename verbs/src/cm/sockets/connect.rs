//! Sockets are made, connected and closed.
use super::datagrams::Datagrams;
use super::options::Options;
use super::state::{private_data, quiet_channel, Inner, State};
use super::wire::{Message, Opening};
use super::{last_errno, Socket};
use crate::abi::cma::{CmEvent, ConnParam};
use crate::abi::consts::*;
use crate::cm::address::address;
use crate::cm::connect::{ferric_rdma_accept, ferric_rdma_connect, ferric_rdma_disconnect, ferric_rdma_reject};
use crate::cm::event::{ferric_rdma_ack_cm_event, ferric_rdma_destroy_event_channel};
use crate::cm::id::{ferric_rdma_destroy_id, ferric_rdma_migrate_id};
use crate::cm::resolve::{ferric_rdma_bind_addr, ferric_rdma_listen, ferric_rdma_resolve_addr, ferric_rdma_resolve_route};
use crate::errors::minus_one;
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

/// How long the peer's MAC address is sought, in milliseconds.
const RESOLVE_MS: c_int = 2000;
/// Retries without end while the peer has no receive posted, and as many as there can be when it does not answer.
const RETRIES: u8 = 7;

/// How long `rclose` waits for a peer that answers and takes nothing.
const LINGER: Duration = Duration::from_secs(60);

/// The error number of a call that gave -1.
fn done(r: c_int) -> Result<(), c_int> {
    if r == 0 {
        Ok(())
    } else {
        Err(last_errno())
    }
}

/// A number, or -1 with `errno`.
fn number(what: &str, r: Result<c_int, c_int>) -> c_int {
    r.unwrap_or_else(|n| minus_one(what, Err(n)))
}

/// What a connection is asked for with, or accepted with.
fn parameters(opening: &[u8; Opening::BYTES]) -> ConnParam {
    ConnParam {
        private_data: opening.as_ptr().cast(),
        private_data_len: Opening::BYTES as u8,
        responder_resources: 0,
        initiator_depth: 0,
        flow_control: 1,
        retry_count: RETRIES,
        rnr_retry_count: RETRIES,
        srq: 0,
        qp_num: 0,
    }
}

/// Makes a stream socket, `protocol` is 0 or `IPPROTO_TCP`, or a datagram socket (0, `IPPROTO_UDP`). `SOCK_NONBLOCK` and `SOCK_CLOEXEC` may be in the type. -1 with EAFNOSUPPORT, EPROTONOSUPPORT, EMFILE.
#[no_mangle]
extern "C" fn ferric_rsocket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let flags = kind & (libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    let make = || match (domain, kind & !flags) {
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM) if protocol == 0 || protocol == libc::IPPROTO_TCP => Inner::new(Options::new(flags)).and_then(Socket::add),
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM) if protocol == 0 || protocol == libc::IPPROTO_UDP => Datagrams::add(domain == libc::AF_INET, Options::of_datagrams(flags)),
        (libc::AF_INET | libc::AF_INET6, _) => Err(libc::EPROTONOSUPPORT),
        _ => Err(libc::EAFNOSUPPORT),
    };
    number("rsocket", make())
}

/// Enough bytes for an address of its family.
pub unsafe fn has_length(addr: *const c_void, len: u32) -> Result<(), c_int> {
    // SAFETY: two bytes at least, by the caller's promise.
    let family = if addr.is_null() || len < 2 { return Err(libc::EINVAL) } else { c_int::from(unsafe { addr.cast::<u16>().read_unaligned() }) };
    let least = if family == libc::AF_INET6 { size_of::<libc::sockaddr_in6>() } else { size_of::<libc::sockaddr_in>() };
    if (len as usize) < least {
        return Err(libc::EINVAL);
    }
    Ok(())
}

/// Binds a socket to an own address. -1 with EBADF, EINVAL, EADDRNOTAVAIL, EAFNOSUPPORT.
#[no_mangle]
unsafe extern "C" fn ferric_rbind(socket: c_int, addr: *const c_void, len: u32) -> c_int {
    let bind = || {
        if let Some(datagrams) = Datagrams::find(socket) {
            // SAFETY: by the caller's promise.
            return unsafe { has_length(addr, len).and_then(|()| address(addr)) }.and_then(|own| datagrams.bind(own));
        }
        let socket = Socket::of(socket)?;
        let mut inner = socket.lock();
        // SAFETY: by the caller's promise.
        unsafe { has_length(addr, len) }?;
        if inner.state != State::Fresh {
            return Err(libc::EINVAL);
        }
        // SAFETY: an identifier in use, and an address of the caller's.
        done(unsafe { ferric_rdma_bind_addr(inner.id, addr.cast_mut()) })?;
        inner.state = State::Bound;
        Ok(())
    };
    minus_one("rbind", bind())
}

/// Takes connections from now on. -1 with EBADF, EINVAL, EADDRINUSE.
#[no_mangle]
extern "C" fn ferric_rlisten(socket: c_int, backlog: c_int) -> c_int {
    let listen = || {
        let socket = Socket::of(socket)?;
        let mut inner = socket.lock();
        match inner.state {
            State::Listening => return Ok(()),
            State::Fresh | State::Bound => {}
            _ => return Err(libc::EINVAL),
        }
        // SAFETY: an identifier in use.
        done(unsafe { ferric_rdma_listen(inner.id, backlog) })?;
        inner.state = State::Listening;
        Ok(())
    };
    minus_one("rlisten", listen())
}

/// Accepts the request of an event.
unsafe fn accepted(options: Options, event: *mut CmEvent) -> Result<Inner, c_int> {
    // SAFETY: an event in our hands, with a new identifier.
    unsafe {
        let id = (*event).id;
        let moved = quiet_channel().and_then(|channel| {
            let moved = done(ferric_rdma_migrate_id(id, channel));
            moved.map(|()| channel).inspect_err(|_| ferric_rdma_destroy_event_channel(channel))
        });
        let channel = moved.inspect_err(|_| {
            ferric_rdma_destroy_id(id);
        })?;
        let mut inner = Inner::of(State::Connecting, id, channel, options);
        let mut accept = || {
            let peer = Opening::of_bytes(&private_data(event)).ok_or(libc::EPROTO)?;
            inner.make_endpoint()?;
            inner.opened(peer);
            inner.held = true;
            let opening = inner.endpoint.as_ref().ok_or(libc::EIO)?.opening().to_bytes();
            done(ferric_rdma_accept(id, &parameters(&opening)))
        };
        match accept() {
            Ok(()) => Ok(inner),
            Err(n) => {
                ferric_rdma_reject(id, null(), 0);
                Err(n)
            }
        }
    }
}

/// The next connection of a listening socket; it has the listener's options, whether it waits included. -1 with EBADF, EINVAL (it does not listen), EAGAIN, EMFILE, EIO (the card is gone).
#[no_mangle]
unsafe extern "C" fn ferric_raccept(socket: c_int, addr: *mut c_void, len: *mut u32) -> c_int {
    let accept = || {
        let socket = Socket::of(socket)?;
        let inner = socket.lock();
        let patient = !inner.options.is_nonblocking();
        let (inner, made) = socket.until(inner, patient, None, |inner| {
            match inner.state {
                State::Listening => {}
                State::Closed => return Some(Err(libc::EBADF)),
                _ => return Some(Err(libc::EINVAL)),
            }
            while let Some(event) = inner.event() {
                // SAFETY: an event in our hands.
                let made = unsafe {
                    let made = match (*event).event {
                        RDMA_CM_EVENT_CONNECT_REQUEST => Some(accepted(inner.options.clone(), event)),
                        RDMA_CM_EVENT_DEVICE_REMOVAL => Some(Err(libc::EIO)),
                        _ => None,
                    };
                    ferric_rdma_ack_cm_event(event);
                    made
                };
                match made {
                    Some(Err(n @ (libc::EMFILE | libc::ENFILE | libc::EIO))) => return Some(Err(n)),
                    Some(Err(n)) => log::info!("rsocket: a request is refused, errno {n}"),
                    Some(Ok(made)) => return Some(Ok(made)),
                    None => {}
                }
            }
            None
        });
        drop(inner);
        let new = made.and_then(Socket::add)?;
        if !addr.is_null() {
            // SAFETY: by the caller's promise.
            unsafe { super::options::name(new, addr, len, |object| object.peer()) }?;
        }
        Ok(new)
    };
    number("raccept", accept())
}

/// Asks for the connection; the answer comes as an event.
unsafe fn ask(socket: &Socket, inner: &mut Inner, addr: *const c_void) -> Result<(), c_int> {
    // SAFETY: an identifier in use, and an address of the caller's.
    unsafe {
        done(ferric_rdma_resolve_addr(inner.id, null_mut(), addr.cast_mut(), RESOLVE_MS))?;
        done(ferric_rdma_resolve_route(inner.id, RESOLVE_MS))?;
        inner.make_endpoint()?;
        socket.watch(inner)?;
        let opening = inner.endpoint.as_ref().ok_or(libc::EIO)?.opening().to_bytes();
        done(ferric_rdma_connect(inner.id, &parameters(&opening)))
    }
}

/// Connects a socket; one of datagrams only notes its peer. Those that do not wait get EINPROGRESS, and `rpoll` says POLLOUT when the answer is there; the peer's MAC address is waited for all the same (two seconds at most).
/// -1 with EBADF, EINVAL, EISCONN, EALREADY, ECONNREFUSED, ETIMEDOUT, EPROTO (the peer speaks no rsockets), ENODEV.
#[no_mangle]
unsafe extern "C" fn ferric_rconnect(socket: c_int, addr: *const c_void, len: u32) -> c_int {
    let connect = || {
        if let Some(datagrams) = Datagrams::find(socket) {
            // SAFETY: by the caller's promise.
            return unsafe { has_length(addr, len).and_then(|()| address(addr)) }.and_then(|peer| datagrams.connect(peer));
        }
        let socket = Socket::of(socket)?;
        let mut inner = socket.lock();
        // SAFETY: by the caller's promise.
        unsafe { has_length(addr, len) }?;
        match inner.state {
            State::Fresh | State::Bound => {
                // SAFETY: as above.
                if let Err(n) = unsafe { ask(&socket, &mut inner, addr) } {
                    (inner.state, inner.error) = (State::Refused(n), n);
                    return Err(n);
                }
                inner.state = State::Connecting;
            }
            State::Connecting if inner.options.is_nonblocking() => {
                inner.progress();
                if inner.state == State::Connecting {
                    return Err(libc::EALREADY);
                }
            }
            State::Connecting => {}
            State::Open { .. } | State::Ended | State::Broken(_) => return Err(libc::EISCONN),
            State::Listening => return Err(libc::EINVAL),
            State::Refused(n) => return Err(n),
            State::Closed => return Err(libc::EBADF),
        }
        let patient = !inner.options.is_nonblocking();
        let (_inner, connected) = socket.until(inner, patient, None, |inner| match inner.state {
            State::Connecting => None,
            State::Refused(n) | State::Broken(n) => Some(Err(n)),
            State::Closed => Some(Err(libc::EBADF)),
            _ => Some(Ok(())),
        });
        connected.map_err(|n| if n == libc::EAGAIN { libc::EINPROGRESS } else { n })
    };
    minus_one("rconnect", connect())
}

/// Ends one direction or both, and waits until the peer's card has everything, or does not answer any more.
fn shut(socket: &Socket, how: c_int, deadline: Option<Instant>) -> Result<(), c_int> {
    let mut inner = socket.lock();
    inner.progress();
    let State::Open { reads, writes } = inner.state else {
        return match inner.state {
            State::Ended | State::Broken(_) => Ok(()),
            State::Closed => Err(libc::EBADF),
            _ => Err(libc::ENOTCONN),
        };
    };
    let (still_reads, still_writes) = match how {
        libc::SHUT_RD => (false, writes),
        libc::SHUT_WR => (reads, false),
        libc::SHUT_RDWR => (false, false),
        _ => return Err(libc::EINVAL),
    };
    inner.state = State::Open { reads: still_reads, writes: still_writes };
    let message = if still_reads { Message::Shutdown } else { Message::Disconnect };
    if !still_writes && (reads, writes) != (still_reads, still_writes) {
        let told;
        (inner, told) = socket.until(inner, true, deadline, |inner| {
            let may = !inner.held && inner.endpoint.as_ref().is_some_and(|e| e.may_control());
            match &mut inner.endpoint {
                Some(endpoint) if may && matches!(inner.state, State::Open { .. }) => Some(endpoint.control(message, None)),
                _ => (!inner.is_open()).then_some(Ok(())),
            }
        });
        told?;
    }
    let idle;
    (inner, idle) = socket.until(inner, true, deadline, |inner| (!inner.is_open() || inner.endpoint.as_ref().is_none_or(|e| e.is_idle())).then_some(Ok(())));
    if inner.state == State::Ended {
        // SAFETY: an identifier in use.
        unsafe { ferric_rdma_disconnect(inner.id) };
    }
    idle
}

/// Ends one direction (`SHUT_RD`, `SHUT_WR`) or both (`SHUT_RDWR`). Waits until the peer's card has what was sent, also on sockets that do not wait otherwise. -1 with EBADF, EINVAL, ENOTCONN.
#[no_mangle]
extern "C" fn ferric_rshutdown(socket: c_int, how: c_int) -> c_int {
    minus_one("rshutdown", Socket::of(socket).and_then(|s| shut(&s, how, None)))
}

/// Ends the connection as `rshutdown` does, within a minute, and lets go of the socket and its number. -1 with EBADF.
#[no_mangle]
extern "C" fn ferric_rclose(socket: c_int) -> c_int {
    let close = || {
        if let Some(datagrams) = Datagrams::remove(socket) {
            datagrams.close();
            return Ok(());
        }
        let socket = Socket::remove(socket)?;
        if let Err(n) = shut(&socket, libc::SHUT_RDWR, Some(Instant::now() + LINGER)) {
            log::debug!("rclose: errno {n}: the connection has not ended in order");
        }
        socket.lock().close();
        // Threads that wait in other calls see it.
        socket.looked.notify_all();
        Ok(())
    };
    minus_one("rclose", close())
}
