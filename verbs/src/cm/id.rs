//! Identifiers: made, bound to addresses and cards, destroyed.
use super::address::{ephemeral, sockaddr};
use super::event::{complete, ferric_rdma_destroy_event_channel, forget, make_channel, Cause, ChannelObject, Happened, Queue};
use crate::abi::attr::{QpAttr, QpInitAttr};
use crate::abi::cma::{Addr, CmId, EventChannel, IbAddr, Route, SockAddr};
use crate::abi::consts::*;
use crate::abi::objects::{Context, Pd, Qp};
use crate::config::gid_of;
use crate::context::{devices, ContextObject, DeviceObject};
use crate::errors::minus_one;
use crate::events::Outstanding;
use crate::shared::{lock, Shared};
use ferric_driver::cm::{IpHeader, Local, RejectReason, Remote};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_uint, c_void};
use std::net::{IpAddr, SocketAddr};
use std::ptr::{null_mut, NonNull};
use std::sync::{Arc, Mutex, OnceLock};

/// An identifier.
#[repr(C)]
pub struct IdObject {
    /// What the program sees and may change. The thread of events does not look at it: what that thread wants to know stands behind the locks.
    seen: UnsafeCell<CmId>,
    /// Port space.
    pub ps: c_uint,
    /// Kind of queue pair.
    pub qp_type: c_uint,
    /// Events the program has.
    pub outstanding: Outstanding,
    /// Where its events go.
    pub target: Mutex<Target>,
    /// Behind the lock: both the program and the thread of events look at it.
    pub inner: Mutex<IdInner>,
}

/// Where events of an identifier go.
pub struct Target {
    /// The channel.
    pub channel: *mut EventChannel,
    /// What the channel has.
    pub queue: Arc<Queue>,
    /// The channel is our own: calls wait for their events.
    pub waits: bool,
}

impl Target {
    /// A channel of the program's; null: one of our own.
    fn of(channel: *mut EventChannel) -> Result<Self, c_int> {
        let waits = channel.is_null();
        let channel = if waits { make_channel()? } else { channel };
        // SAFETY: a channel in use, by the callers' promise.
        let queue = unsafe { &*channel.cast::<ChannelObject>() }.queue.clone();
        Ok(Self { channel, queue, waits })
    }
}

/// What is known of an identifier.
#[derive(Default)]
pub struct IdInner {
    /// Own address.
    pub own: Option<SocketAddr>,
    /// The peer's address.
    pub peer: Option<SocketAddr>,
    /// Connection on the wire.
    pub connection: Option<u32>,
    /// Services listened for.
    pub listening: Option<u64>,
    /// Requests that may wait for the program while it listens.
    pub backlog: usize,
    /// The peer's end.
    pub remote: Option<Remote>,
    /// Our end, as it was told to the peer.
    pub local: Option<Local>,
    /// The program has been told that the connection is there.
    pub announced: bool,
    /// Queue pairs to be made for the requests of a listening endpoint, and where.
    pub for_requests: Option<(*mut Pd, QpInitAttr)>,
    /// Traffic class that was asked for.
    pub tos: u8,
    /// Local ACK timeout that was asked for, as exponent.
    pub ack_timeout: Option<u8>,
    /// First PSN our queue pair expects.
    pub psn: u32,
    /// Multicast groups that it has joined, and whether its queue pair gets what is sent to them.
    pub groups: Vec<(SocketAddr, bool)>,
}

/// Contexts of connection management, by the number of their cards: never closed.
static OPEN: Mutex<Vec<(c_int, usize)>> = Mutex::new(Vec::new());

/// The card of a context of connection management.
fn shared_of(context: usize) -> &'static Shared {
    // SAFETY: contexts of connection management are never closed.
    &unsafe { ContextObject::of(context as *mut Context) }.shared
}

/// The context of connection management on a card: one for the life of the process, unless the card goes and comes back.
pub fn context_of(device: &'static DeviceObject) -> Result<*mut Context, c_int> {
    let mut open = lock(&OPEN);
    if let Some((_, context)) = open.iter().find(|(index, context)| *index == device.index && !shared_of(*context).driver.device().is_gone()) {
        return Ok(*context as *mut Context);
    }
    let context = ContextObject::open(device)?;
    open.push((device.index, context as usize));
    Ok(context)
}

/// The protection domain of a card that identifiers use unless the program gives one.
pub fn domain_of(context: *mut Context) -> Result<*mut Pd, c_int> {
    static DOMAINS: OnceLock<Mutex<Vec<(usize, usize)>>> = OnceLock::new();
    let mut domains = lock(DOMAINS.get_or_init(Mutex::default));
    if let Some((_, pd)) = domains.iter().find(|(c, _)| *c == context as usize) {
        return Ok(*pd as *mut Pd);
    }
    // SAFETY: a context of ours.
    let pd = NonNull::new(unsafe { crate::mr::ibv_alloc_pd(context) }).ok_or(libc::ENOMEM)?.as_ptr();
    domains.push((context as usize, pd as usize));
    Ok(pd)
}

/// The own address on a card. Which function of it this process has may not be known yet: then it takes one.
pub fn own_ip(device: &'static DeviceObject) -> IpAddr {
    if device.named.counts {
        if let Err(e) = context_of(device) {
            log::error!("{}: {}", device.named.target, std::io::Error::from_raw_os_error(e));
        }
    }
    device.ip()
}

impl IdObject {
    /// # Safety
    /// `id` is a handle in use.
    pub unsafe fn of<'a>(id: *mut CmId) -> &'a Self {
        // SAFETY: the handle is the first field; all that changes is in a cell or behind a lock.
        unsafe { &*id.cast::<Self>() }
    }

    /// What the program sees, for the program's threads.
    pub fn seen(&self) -> *mut CmId {
        self.seen.get()
    }

    /// Context of its card, or null.
    pub fn verbs(&self) -> *mut Context {
        // SAFETY: on a thread of the program's.
        unsafe { (*self.seen()).verbs }
    }

    /// Its queue pair, or null.
    pub fn qp(&self) -> *mut Qp {
        // SAFETY: on a thread of the program's.
        unsafe { (*self.seen()).qp }
    }

    fn make(channel: *mut EventChannel, context: *mut c_void, ps: c_uint) -> Result<*mut Self, c_int> {
        let qp_type = match ps {
            RDMA_PS_TCP => IBV_QPT_RC,
            RDMA_PS_UDP => IBV_QPT_UD,
            _ => return Err(libc::EPROTONOSUPPORT),
        };
        let target = Target::of(channel)?;
        let none = SockAddr([0; 128]);
        let route = Route { addr: Addr { src_addr: none, dst_addr: none, addr: IbAddr { sgid: Default::default(), dgid: Default::default(), pkey: 0 } }, path_rec: null_mut(), num_paths: 0 };
        let id = CmId {
            verbs: null_mut(),
            channel: target.channel,
            context,
            qp: null_mut(),
            route,
            ps,
            port_num: 0,
            event: null_mut(),
            send_cq_channel: null_mut(),
            send_cq: null_mut(),
            recv_cq_channel: null_mut(),
            recv_cq: null_mut(),
            srq: null_mut(),
            pd: null_mut(),
            qp_type,
        };
        let psn = ephemeral() as u32 * 251;
        let inner = Mutex::new(IdInner { psn, ..Default::default() });
        let object = Self { seen: UnsafeCell::new(id), ps, qp_type, outstanding: Outstanding::default(), target: Mutex::new(target), inner };
        Ok(Box::into_raw(Box::new(object)))
    }

    /// The identifier of a request that has come for `listener`. The program's context comes later, from a thread of the program's.
    pub fn of_request(listener: &Self, connection: u32, remote: Option<Remote>, ip: Option<IpHeader>, from: Option<IpAddr>) -> Option<*mut Self> {
        let device = devices().iter().find(|d| Some(d.ip()) == ip.and_then(|h| h.addresses()).map(|a| a.1)).or_else(|| devices().first())?;
        let made = Self::make(lock(&listener.target).channel, null_mut(), listener.ps).ok()?;
        // SAFETY: just made.
        let object = unsafe { &*made };
        let port = listener.own().map_or(0, |a| a.port());
        let theirs = ip.and_then(|h| Some(SocketAddr::new(h.addresses()?.0, h.src_port()))).or(from.map(|f| SocketAddr::new(f, 0)))?;
        object.bind(device).ok()?;
        object.set_own(SocketAddr::new(device.ip(), port));
        object.set_peer(theirs);
        let mut inner = lock(&object.inner);
        (inner.connection, inner.remote) = (Some(connection), remote);
        Some(made)
    }

    /// Where its events go.
    pub fn queue(&self) -> Arc<Queue> {
        lock(&self.target).queue.clone()
    }

    /// Its card.
    pub fn shared(&self) -> Result<&'static Shared, c_int> {
        let verbs = self.verbs();
        if verbs.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: contexts of connection management are never closed.
        Ok(&unsafe { ContextObject::of(verbs) }.shared)
    }

    /// Own address, if there is one.
    pub fn own(&self) -> Option<SocketAddr> {
        lock(&self.inner).own
    }

    /// The peer's address, if there is one.
    pub fn peer(&self) -> Option<SocketAddr> {
        lock(&self.inner).peer
    }

    /// Notes its own address.
    pub fn set_own(&self, a: SocketAddr) {
        lock(&self.inner).own = Some(a);
        // SAFETY: on the program's thread, or not shown to the program yet.
        let addr = unsafe { &mut (*self.seen()).route.addr };
        (addr.src_addr, addr.addr.sgid) = (sockaddr(a).0, gid_of(a.ip()));
    }

    /// Notes the peer's address.
    pub fn set_peer(&self, a: SocketAddr) {
        lock(&self.inner).peer = Some(a);
        // SAFETY: as in `set_own`.
        let addr = unsafe { &mut (*self.seen()).route.addr };
        (addr.dst_addr, addr.addr.dgid) = (sockaddr(a).0, gid_of(a.ip()));
    }

    /// Ties it to a card.
    pub fn bind(&self, device: &'static DeviceObject) -> Result<(), c_int> {
        let verbs = context_of(device)?;
        let pd = domain_of(verbs)?;
        // SAFETY: as in `set_own`.
        let id = unsafe { &mut *self.seen() };
        (id.verbs, id.port_num, id.route.addr.addr.pkey) = (verbs, 1, 0xffff);
        if id.pd.is_null() {
            id.pd = pd;
        }
        Ok(())
    }

    /// Binds it to an own address; one that is unspecified means all cards.
    pub fn bind_to(&self, a: SocketAddr) -> Result<(), c_int> {
        let port = if a.port() == 0 { ephemeral() } else { a.port() };
        if a.ip().is_unspecified() {
            self.set_own(SocketAddr::new(a.ip(), port));
            return Ok(());
        }
        // The loopback address is on no wire: as in Linux it means a card, whichever.
        let fits = |d: &&'static DeviceObject| (d.named.may_have(a.ip()) && own_ip(d) == a.ip()) || (a.ip().is_loopback() && d.named.ip.is_ipv4() == a.is_ipv4());
        let device = devices().iter().find(fits).ok_or(libc::EADDRNOTAVAIL)?;
        self.bind(device)?;
        self.set_own(SocketAddr::new(device.ip(), port));
        Ok(())
    }

    /// Whether the program knows already that the connection is there; it does from now on.
    pub fn announced(&self) -> bool {
        std::mem::replace(&mut lock(&self.inner).announced, true)
    }

    /// There will be no connection.
    pub fn fail(&self) {
        lock(&self.inner).connection = None;
        // A datagram queue pair is its program's: others may be served by it.
        if self.ps == RDMA_PS_TCP {
            self.to_error();
        }
    }

    /// The queue pair flushes what was posted.
    pub fn to_error(&self) {
        let qp = self.qp();
        if !qp.is_null() {
            let mut attr = QpAttr { qp_state: IBV_QPS_ERR, ..Default::default() };
            // SAFETY: made by `rdma_create_qp`, which is undone before it is destroyed.
            unsafe { crate::qp_modify::ibv_modify_qp(qp, &mut attr, IBV_QP_STATE as c_int) };
        }
    }

    /// Takes it out of all tables; what is still open on the wire is closed.
    fn forget_everywhere(&self) {
        let me = &raw const *self as usize;
        let (connection, listening) = {
            let mut inner = lock(&self.inner);
            (inner.connection.take(), inner.listening.take())
        };
        let contexts = lock(&OPEN).clone();
        for shared in contexts.iter().map(|(_, context)| shared_of(*context)) {
            let mut port = lock(&shared.port);
            let Some(port) = port.as_mut() else { continue };
            if let Some(service) = listening.filter(|s| port.listeners.get(s) == Some(&me)) {
                port.listeners.remove(&service);
                port.driver.cm.unlisten(service);
                port.driver.cm.serve_no_more(service);
            }
            let mine: Vec<u32> = port.ids.iter().filter(|(_, p)| **p == me).map(|(c, _)| *c).collect();
            for c in mine {
                port.ids.remove(&c);
                if connection == Some(c) {
                    let now = port.driver.now();
                    if self.ps == RDMA_PS_UDP {
                        super::datagram::forget(port, c);
                        continue;
                    }
                    // One of the two fits its state, or it has ended already.
                    if port.driver.cm.disconnect(now, c, &[]).is_err() {
                        let _ = port.driver.cm.reject(c, RejectReason::Consumer, &[]);
                    }
                    let _ = port.driver.progress();
                }
            }
        }
    }
}

/// Says what has happened at once; without a channel of the program's it is over with the call.
///
/// # Safety
/// An identifier in use.
pub unsafe fn happened(id: *mut CmId, cause: Cause) -> Result<(), c_int> {
    // SAFETY: by the caller's promise.
    unsafe {
        IdObject::of(id).queue().push(Happened { id: id.cast(), listener: null_mut(), cause });
        wait(id)
    }
}

/// Waits for the event of a call, without a channel of the program's.
///
/// # Safety
/// An identifier in use.
pub unsafe fn wait(id: *mut CmId) -> Result<(), c_int> {
    // SAFETY: by the caller's promise.
    unsafe {
        let waits = lock(&IdObject::of(id).target).waits;
        if waits {
            complete(id)
        } else {
            Ok(())
        }
    }
}

/// Makes an identifier.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_create_id(channel: *mut EventChannel, id: *mut *mut CmId, context: *mut c_void, ps: c_uint) -> c_int {
    // SAFETY: an output of the caller's.
    minus_one("rdma_create_id", IdObject::make(channel, context, ps).map(|made| unsafe { id.write(made.cast()) }))
}

/// Destroys an identifier; its queue pair has been destroyed.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_destroy_id(id: *mut CmId) -> c_int {
    // SAFETY: an identifier in use, by the caller's promise.
    unsafe {
        let object = IdObject::of(id);
        object.forget_everywhere();
        for h in object.queue().take_of(id.cast()) {
            // Requests that the program has not seen.
            if h.id != id.cast() {
                ferric_rdma_destroy_id(h.id.cast());
            }
        }
        forget(id);
        object.outstanding.wait();
        let (waits, channel) = {
            let target = lock(&object.target);
            (target.waits, target.channel)
        };
        drop(Box::from_raw(id.cast::<IdObject>()));
        if waits {
            ferric_rdma_destroy_event_channel(channel);
        }
    }
    0
}

/// Moves an identifier and its events to another channel; null: one of its own, so that its calls wait.
#[no_mangle]
pub unsafe extern "C" fn ferric_rdma_migrate_id(id: *mut CmId, channel: *mut EventChannel) -> c_int {
    // SAFETY: handles in use, by the caller's promise.
    let object = unsafe { IdObject::of(id) };
    minus_one(
        "rdma_migrate_id",
        Target::of(channel).map(|new| {
            // The thread of events hands out under this lock.
            let shared = object.shared().ok();
            let held = shared.map(|s| lock(&s.port));
            let old = {
                let mut target = lock(&object.target);
                // SAFETY: on a thread of the program's.
                unsafe { (*object.seen()).channel = new.channel };
                let old = std::mem::replace(&mut *target, new);
                old.queue.take_of(id.cast()).into_iter().for_each(|h| target.queue.push(h));
                old
            };
            drop(held);
            if old.waits {
                // SAFETY: made with the identifier, nobody else has it.
                unsafe {
                    forget(id);
                    ferric_rdma_destroy_event_channel(old.channel);
                }
            }
        }),
    )
}

#[no_mangle]
unsafe extern "C" fn ferric_rdma_get_src_port(id: *mut CmId) -> u16 {
    // SAFETY: by the caller's promise.
    unsafe { IdObject::of(id) }.own().map_or(0, |a| a.port().to_be())
}

#[no_mangle]
unsafe extern "C" fn ferric_rdma_get_dst_port(id: *mut CmId) -> u16 {
    // SAFETY: by the caller's promise.
    unsafe { IdObject::of(id) }.peer().map_or(0, |a| a.port().to_be())
}
