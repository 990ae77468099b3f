//! librdmacm: connections by IP address. Functions have the prefix `ferric_` here; `librdmacm.so.1` has the names programs know and jumps to them.
//!
//! The messages are the driver's business ([`ferric_driver::cm`]); this is what a program sees of them: identifiers, events, and queue pairs that
//! are brought into their states.
mod address;
mod addrinfo;
mod connect;
mod datagram;
mod event;
mod id;
mod multicast;
mod queues;
mod resolve;
mod sockets;

use crate::config::{guid_of, mac_of, Config};
use crate::errors::{set_errno, Errno};
use crate::neighbour;
use crate::shared::{lock, Shared, VECTOR};
use event::{Cause, Happened};
use ferric_driver::cm::{Cm, CmPort, Event, Gsi, IpHeader, RejectReason, Remote};
use ferric_driver::ud::Source;
use ferric_driver::Search;
use id::IdObject;
use std::collections::HashMap;
use std::ffi::c_int;
use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a program may take to answer a request, as exponent: the peer is told to wait 17 seconds.
const ANSWER: u8 = 22;

/// How the sender of a message is sought: it is there, so it answers at once or its message was not what it seemed to be, and others wait meanwhile. Whom a program wants to
/// reach has been sought before, with more patience (`rdma_resolve_addr`).
const SENDER: Search = Search { asks: 1, wait: Duration::from_secs(1) };

/// The communication manager of a card, and whom its events are for.
pub struct Port {
    /// The driver's.
    pub driver: CmPort,
    /// Identifiers by connection.
    pub ids: HashMap<u32, usize>,
    /// Listening identifiers by service.
    pub listeners: HashMap<u64, usize>,
}

// Addresses of identifiers, which take themselves out before they go.
unsafe impl Send for Port {}

impl Port {
    fn open(shared: &Shared) -> Result<Self, c_int> {
        let ip = shared.named.ip;
        let source = Source { smac: mac_of(ip), sip: ip, vlan: None, udp_sport: 0xc000, flow_label: 0 };
        let driver = || {
            let pd = shared.driver.alloc_pd()?;
            let gsi = Gsi::open(&shared.driver, &pd, &lock(&shared.eq), &source)?;
            // An earlier life of the program has used other numbers.
            let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64) ^ u64::from(std::process::id()) << 16;
            let card = shared.driver.clone();
            let neighbour = Box::new(move |ip: IpAddr| Some(neighbour::mac(&card, &Config::of_process().neighbours, ip, &SENDER)));
            Ok(CmPort::new(&shared.driver, gsi, Cm::new(guid_of(mac_of(ip)).to_be(), seed & 0xffff_ffff), neighbour))
        };
        Ok(Self { driver: driver().errno("queue pair 1")?, ids: HashMap::new(), listeners: HashMap::new() })
    }
}

/// Does something with a card's communication manager, which is started if need be.
pub fn with_port<T>(shared: &Shared, f: impl FnOnce(&mut Port) -> Result<T, c_int>) -> Result<T, c_int> {
    let mut port = lock(&shared.port);
    if port.is_none() {
        *port = Some(Port::open(shared)?);
        // Its events come with the interrupt of all others.
        const _: () = assert!(VECTOR == 0);
    }
    match port.as_mut() {
        Some(port) => {
            let done = f(port);
            // What is to be said is said now.
            port.driver.progress().errno("communication manager")?;
            done
        }
        None => Err(libc::EIO),
    }
}

/// Takes what has come and hands it out.
pub fn progress(shared: &Shared) {
    let mut port = lock(&shared.port);
    let Some(port) = port.as_mut() else { return };
    if let Err(e) = port.driver.progress() {
        log::error!("communication manager: {e}");
        return;
    }
    while let Some(event) = port.driver.cm.poll() {
        hand_out(port, event);
    }
}

/// The card is gone: every identifier on it is told.
pub fn removed(shared: &Shared) {
    if let Some(port) = lock(&shared.port).as_ref() {
        for id in port.ids.values().chain(port.listeners.values()).map(|p| *p as *mut IdObject) {
            // SAFETY: identifiers take themselves out of the tables before they go.
            unsafe { (*id).queue().push(Happened { id, listener: std::ptr::null_mut(), cause: Cause::Removed }) };
        }
    }
}

/// A request has come for a service: an identifier for it, which its listener's program gets. `None`: nobody is to hear of it.
fn requested(port: &mut Port, id: u32, service_id: u64, ip: Option<IpHeader>, remote: Option<Remote>) -> Option<[*mut IdObject; 2]> {
    let listener = port.listeners.get(&service_id).map(|p| *p as *mut IdObject)?;
    // SAFETY: identifiers take themselves out of the table before they go.
    let (waiting, backlog) = unsafe { ((*listener).queue().requests_of(listener), lock(&(*listener).inner).backlog) };
    if waiting >= backlog {
        log::info!("{waiting} requests wait for the program: another one has to come again");
        let _ = port.driver.cm.ignore(id);
        port.driver.cm.forget_service(id);
        return None;
    }
    let from = port.driver.cm.peer(id).or_else(|| port.driver.cm.asker(id)).map(|to| to.dip);
    if remote.is_some() {
        let _ = port.driver.cm.delay(id, ANSWER).and_then(|()| port.driver.progress());
    }
    // SAFETY: identifiers take themselves out of the table before they go.
    let Some(made) = (unsafe { IdObject::of_request(&*listener, id, remote, ip, from) }) else {
        log::error!("a request for a connection cannot be shown");
        let _ = port.driver.cm.reject(id, RejectReason::Other(3), &[]);
        port.driver.cm.forget_service(id);
        return None;
    };
    port.ids.insert(id, made as usize);
    Some([made, listener])
}

/// What every function that is not there jumps to: -1.
#[no_mangle]
extern "C" fn ferric_not_there() -> isize {
    set_errno(libc::EOPNOTSUPP);
    -1
}

fn hand_out(port: &mut Port, event: Event) {
    log::debug!("connection: {event:?}");
    let (id, cause) = match event {
        Event::Request { id, service_id, remote, ip, private } => {
            let Some([made, listener]) = requested(port, id, service_id, ip, Some(remote)) else { return };
            // SAFETY: identifiers take themselves out of the table before they go.
            unsafe { (*listener).queue().push(Happened { id: made, listener, cause: Cause::Request { remote, private } }) };
            return;
        }
        Event::ServiceRequest { id, service_id, ip, private } => {
            let Some([made, listener]) = requested(port, id, service_id, ip, None) else { return };
            // SAFETY: as above.
            unsafe { (*listener).queue().push(Happened { id: made, listener, cause: Cause::Question { private } }) };
            return;
        }
        Event::ServiceReply { id, answer, private } => (id, Cause::Answer { answer, private }),
        Event::Reply { id, remote, private } => (id, Cause::Reply { remote, private }),
        Event::Established { id } => (id, Cause::Established),
        Event::Rejected { id, reason: RejectReason::Timeout, .. } => (id, Cause::Unreachable),
        Event::Rejected { id, reason, private } => (id, Cause::Rejected { reason: reason.code(), private }),
        Event::Disconnected { id } => (id, Cause::Disconnected),
    };
    if let Some(object) = port.ids.get(&id).map(|p| *p as *mut IdObject) {
        // SAFETY: identifiers take themselves out of the table before they go.
        unsafe { (*object).queue().push(Happened { id: object, listener: std::ptr::null_mut(), cause }) };
    }
}
