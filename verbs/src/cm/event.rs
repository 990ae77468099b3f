//! Event channels and the events in them.
use super::connect::{answered, UDP_QKEY};
use super::id::IdObject;
use crate::abi::attr::{AhAttr, GlobalRoute};
use crate::abi::cma::{CmEvent, CmId, ConnParam, EventChannel, EventParam, UdParam};
use crate::abi::consts::*;
use crate::channel::{Pipe, Record};
use crate::config::gid_of;
use crate::errors::{minus_one, pointer};
use crate::shared::lock;
use ferric_driver::cm::{Remote, ServiceAnswer, ServiceStatus};
use ferric_driver::ud::MULTICAST_QPN;
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_uint};
use std::mem::offset_of;
use std::net::IpAddr;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex};

/// What has happened, before the program asks.
pub struct Happened {
    /// To which identifier.
    pub id: *mut IdObject,
    /// Which identifier listened, of requests.
    pub listener: *mut IdObject,
    /// What.
    pub cause: Cause,
}

/// Causes.
pub enum Cause {
    /// An address is known.
    AddressResolved,
    /// A route is known.
    RouteResolved,
    /// A peer asks.
    Request { remote: Remote, private: Vec<u8> },
    /// The peer accepts.
    Reply { remote: Remote, private: Vec<u8> },
    /// Both sides are ready.
    Established,
    /// The peer refuses, with a reason.
    Rejected { reason: u16, private: Vec<u8> },
    /// Nobody answers.
    Unreachable,
    /// A peer asks which datagram queue pair serves.
    Question { private: Vec<u8> },
    /// The peer has said which does, or that none does.
    Answer { answer: ServiceAnswer, private: Vec<u8> },
    /// A multicast group has been joined, or not.
    Joined { group: IpAddr, context: usize, done: Result<(), c_int> },
    /// The connection has ended.
    Disconnected,
    /// The card is gone.
    Removed,
}

// Addresses of identifiers, which take their events out before they go.
unsafe impl Send for Happened {}

/// Events in order, and a pipe that is readable while there are some.
pub struct Queue {
    pipe: Arc<Pipe>,
    events: Mutex<VecDeque<Happened>>,
}

impl Queue {
    /// An empty one.
    pub fn new() -> Result<Arc<Self>, c_int> {
        Ok(Arc::new(Self { pipe: Pipe::new()?, events: Mutex::default() }))
    }

    /// Adds an event.
    pub fn push(&self, h: Happened) {
        lock(&self.events).push_back(h);
        self.pipe.put(Record { serial: 0, id: 0, kind: 0 });
    }

    /// Waits for an event, unless the program has made the descriptor non-blocking.
    fn pop(&self) -> Result<Happened, c_int> {
        loop {
            self.pipe.take()?;
            // Empty: its identifier has gone, or has moved.
            if let Some(h) = lock(&self.events).pop_front() {
                return Ok(h);
            }
        }
    }

    /// There is no event.
    pub fn is_empty(&self) -> bool {
        lock(&self.events).is_empty()
    }

    /// Requests for a listening identifier that the program has not fetched.
    pub fn requests_of(&self, listener: *mut IdObject) -> usize {
        lock(&self.events).iter().filter(|h| h.listener == listener).count()
    }

    /// Takes out what is about an identifier.
    pub fn take_of(&self, id: *mut IdObject) -> Vec<Happened> {
        let mut events = lock(&self.events);
        let (of, others): (Vec<_>, Vec<_>) = events.drain(..).partition(|h| h.id == id || h.listener == id);
        *events = others.into();
        of
    }
}

/// An event channel of a program.
#[repr(C)]
pub struct ChannelObject {
    channel: EventChannel,
    /// Its events.
    pub queue: Arc<Queue>,
}

/// Makes a channel.
pub fn make_channel() -> Result<*mut EventChannel, c_int> {
    let queue = Queue::new()?;
    Ok(Box::into_raw(Box::new(ChannelObject { channel: EventChannel { fd: queue.pipe.fd() }, queue })).cast())
}

#[no_mangle]
extern "C" fn ferric_rdma_create_event_channel() -> *mut EventChannel {
    pointer("rdma_create_event_channel", make_channel())
}

/// Destroys a channel.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_destroy_event_channel(channel: *mut EventChannel) {
    // SAFETY: from Box::into_raw, by the caller's promise.
    drop(unsafe { Box::from_raw(channel.cast::<ChannelObject>()) });
}

/// An event in the program's hands.
#[repr(C)]
struct EventObject {
    event: CmEvent,
    private: Vec<u8>,
    /// Whose it is.
    of: *mut IdObject,
}

/// What is said of datagrams of which nothing is known yet.
fn nobody() -> UdParam {
    UdParam { private_data: null(), private_data_len: 0, ah_attr: AhAttr::default(), qp_num: 0, qkey: 0 }
}

/// Where datagrams go, as `ibv_create_ah` and a request want it.
fn of_datagrams(to: IpAddr, traffic_class: u8, qp_num: u32, qkey: u32) -> UdParam {
    let grh = GlobalRoute { dgid: gid_of(to), hop_limit: 64, traffic_class, ..Default::default() };
    UdParam { ah_attr: AhAttr { grh, is_global: 1, port_num: 1, ..Default::default() }, qp_num, qkey, ..nobody() }
}

/// Waits for the next event of a channel.
pub unsafe fn next(channel: *mut EventChannel) -> Result<*mut CmEvent, c_int> {
    // SAFETY: a handle of ours, by the caller's promise.
    // The queue is held while this thread waits: a channel that is destroyed meanwhile leaves it waiting, as a closed descriptor would.
    let queue = unsafe { &*channel.cast::<ChannelObject>() }.queue.clone();
    let happened = queue.pop()?;
    let (id, of) = (happened.id, if happened.listener.is_null() { happened.id } else { happened.listener });
    let conn = |remote: Option<Remote>, len: usize| ConnParam {
        private_data: std::ptr::null(),
        private_data_len: len.min(255) as u8,
        // What the peer will have outstanding is what is to be remembered here.
        responder_resources: remote.map_or(0, |r| r.initiator_depth),
        initiator_depth: remote.map_or(0, |r| r.responder_resources),
        flow_control: 1,
        retry_count: remote.map_or(0, |r| r.retry_count),
        rnr_retry_count: remote.map_or(0, |r| r.rnr_retry),
        srq: 0,
        qp_num: remote.map_or(0, |r| r.qpn),
    };
    let mut ud = None;
    let (kind, status, remote, private) = match happened.cause {
        Cause::AddressResolved => (RDMA_CM_EVENT_ADDR_RESOLVED, 0, None, Vec::new()),
        Cause::RouteResolved => (RDMA_CM_EVENT_ROUTE_RESOLVED, 0, None, Vec::new()),
        Cause::Request { remote, private } => {
            // SAFETY: identifiers take their events out before they go; the program has not seen this one yet.
            unsafe { (*id.cast::<CmId>()).context = (*happened.listener.cast::<CmId>()).context };
            (RDMA_CM_EVENT_CONNECT_REQUEST, 0, Some(remote), private)
        }
        Cause::Question { private } => {
            // SAFETY: as above.
            unsafe { (*id.cast::<CmId>()).context = (*happened.listener.cast::<CmId>()).context };
            ud = Some(nobody());
            (RDMA_CM_EVENT_CONNECT_REQUEST, 0, None, private)
        }
        Cause::Answer { answer: ServiceAnswer { status: ServiceStatus::Valid, qpn, qkey }, private } => {
            // SAFETY: identifiers take their events out before they go.
            let (peer, tos) = unsafe { ((*id).peer(), lock(&(*id).inner).tos) };
            ud = peer.map(|peer| of_datagrams(peer.ip(), tos, qpn, qkey));
            (RDMA_CM_EVENT_ESTABLISHED, 0, None, private)
        }
        Cause::Answer { answer, private } => {
            ud = Some(nobody());
            (RDMA_CM_EVENT_UNREACHABLE, answer.status.code().into(), None, private)
        }
        Cause::Joined { group, context, done } => {
            // SAFETY: as above.
            let tos = unsafe { lock(&(*id).inner).tos };
            // The program's context of the group stands where private data would.
            ud = Some(UdParam { private_data: context as *const _, ..of_datagrams(group, tos, MULTICAST_QPN, UDP_QKEY) });
            let kind = if done.is_ok() { RDMA_CM_EVENT_MULTICAST_JOIN } else { RDMA_CM_EVENT_MULTICAST_ERROR };
            (kind, done.err().map_or(0, |n| -n), None, Vec::new())
        }
        Cause::Reply { remote, private } => {
            // SAFETY: identifiers take their events out before they go.
            let (kind, status) = unsafe { answered(&*id, remote) };
            (kind, status, Some(remote), private)
        }
        Cause::Established => {
            // SAFETY: as above.
            if unsafe { (*id).announced() } {
                // Of the active side: the program has been told with the reply.
                // SAFETY: by the caller's promise.
                return unsafe { next(channel) };
            }
            (RDMA_CM_EVENT_ESTABLISHED, 0, None, Vec::new())
        }
        Cause::Rejected { reason, private } => (RDMA_CM_EVENT_REJECTED, c_int::from(reason), None, private),
        Cause::Unreachable => (RDMA_CM_EVENT_UNREACHABLE, -libc::ETIMEDOUT, None, Vec::new()),
        Cause::Disconnected => (RDMA_CM_EVENT_DISCONNECTED, 0, None, Vec::new()),
        Cause::Removed => (RDMA_CM_EVENT_DEVICE_REMOVAL, 0, None, Vec::new()),
    };
    if matches!(kind, RDMA_CM_EVENT_REJECTED | RDMA_CM_EVENT_UNREACHABLE) {
        // SAFETY: as above. Its queue pair flushes what was posted.
        unsafe { (*id).fail() };
    }
    if kind == RDMA_CM_EVENT_DISCONNECTED {
        // The peer has let go of its queue pair: what ours still sends would reach nobody, or whoever has that number next.
        // SAFETY: as above.
        unsafe { (*id).to_error() };
    }
    // SAFETY: as above.
    unsafe { (*of).outstanding.got() };
    let param = match ud {
        Some(ud) => EventParam { ud: UdParam { private_data_len: private.len().min(255) as u8, ..ud } },
        None => EventParam { conn: conn(remote, private.len()) },
    };
    let mut object = Box::new(EventObject { event: CmEvent { id: id.cast(), listen_id: happened.listener.cast(), event: kind, status, param }, private, of });
    if !object.private.is_empty() {
        // In both kinds it stands in front.
        const _: () = assert!(offset_of!(ConnParam, private_data) == 0 && offset_of!(UdParam, private_data) == 0);
        object.event.param.conn.private_data = object.private.as_ptr().cast();
    }
    Ok(Box::into_raw(object).cast())
}

#[no_mangle]
unsafe extern "C" fn ferric_rdma_get_cm_event(channel: *mut EventChannel, event: *mut *mut CmEvent) -> c_int {
    if channel.is_null() || event.is_null() {
        return minus_one("rdma_get_cm_event", Err(libc::EINVAL));
    }
    // SAFETY: by the caller's promise.
    minus_one("rdma_get_cm_event", unsafe { next(channel).map(|e| event.write(e)) })
}

/// Gives an event back.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_ack_cm_event(event: *mut CmEvent) -> c_int {
    if event.is_null() {
        return minus_one("rdma_ack_cm_event", Err(libc::EINVAL));
    }
    // SAFETY: from Box::into_raw, by the caller's promise; an identifier waits for its events before it goes.
    unsafe {
        let object = Box::from_raw(event.cast::<EventObject>());
        (*object.of).outstanding.acknowledged(1);
    }
    0
}

/// Waits for an event of an identifier without a channel of the program's, and keeps it there.
pub unsafe fn complete(id: *mut CmId) -> Result<(), c_int> {
    // SAFETY: an identifier in use, by the caller's promise.
    unsafe {
        forget(id);
        (*id).event = next((*id).channel)?;
        match (*(*id).event).status {
            0 => Ok(()),
            n if (*(*id).event).event == RDMA_CM_EVENT_REJECTED => {
                log::info!("rejected, reason {n}");
                Err(libc::ECONNREFUSED)
            }
            n => Err(n.abs()),
        }
    }
}

/// Gives back the event that [`complete`] kept.
pub unsafe fn forget(id: *mut CmId) {
    // SAFETY: an identifier in use, by the caller's promise.
    unsafe {
        let event = std::mem::replace(&mut (*id).event, null_mut());
        if !event.is_null() {
            ferric_rdma_ack_cm_event(event);
        }
    }
}

#[no_mangle]
extern "C" fn ferric_rdma_event_str(event: c_uint) -> *const c_char {
    const NAMES: [&std::ffi::CStr; 16] = [
        c"RDMA_CM_EVENT_ADDR_RESOLVED",
        c"RDMA_CM_EVENT_ADDR_ERROR",
        c"RDMA_CM_EVENT_ROUTE_RESOLVED",
        c"RDMA_CM_EVENT_ROUTE_ERROR",
        c"RDMA_CM_EVENT_CONNECT_REQUEST",
        c"RDMA_CM_EVENT_CONNECT_RESPONSE",
        c"RDMA_CM_EVENT_CONNECT_ERROR",
        c"RDMA_CM_EVENT_UNREACHABLE",
        c"RDMA_CM_EVENT_REJECTED",
        c"RDMA_CM_EVENT_ESTABLISHED",
        c"RDMA_CM_EVENT_DISCONNECTED",
        c"RDMA_CM_EVENT_DEVICE_REMOVAL",
        c"RDMA_CM_EVENT_MULTICAST_JOIN",
        c"RDMA_CM_EVENT_MULTICAST_ERROR",
        c"RDMA_CM_EVENT_ADDR_CHANGE",
        c"RDMA_CM_EVENT_TIMEWAIT_EXIT",
    ];
    NAMES.get(event as usize).copied().unwrap_or(c"UNKNOWN EVENT").as_ptr()
}
