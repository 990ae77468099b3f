//! Identifiers: made, bound to addresses and cards, destroyed.
use super::event::{complete, forget, make_channel, ferric_rdma_destroy_event_channel, Cause, ChannelObject, Happened, Queue};
use crate::abi::attr::{QpAttr, QpInitAttr};
use crate::abi::cma::{Addr, CmId, EventChannel, IbAddr, Route, SockAddr};
use crate::abi::consts::*;
use crate::abi::objects::{Context, Pd};
use crate::config::gid_of;
use crate::context::{devices, ContextObject, DeviceObject};
use crate::errors::minus_one;
use crate::events::Outstanding;
use crate::shared::{lock, Shared};
use ferric_driver::cm::{IpHeader, Local, RejectReason, Remote};
use std::ffi::{c_int, c_uint, c_void};
use std::net::{IpAddr, SocketAddr};
use std::ptr::{null_mut, NonNull};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// An identifier.
#[repr(C)]
pub struct IdObject {
    /// What the program sees.
    pub id: CmId,
    /// Events the program has.
    pub outstanding: Outstanding,
    /// Behind the lock: both the program and the thread of events look at it.
    pub inner: Mutex<IdInner>,
}

/// What is known of an identifier.
#[derive(Default)]
pub struct IdInner {
    /// The channel is our own: calls wait for their events.
    pub waits: bool,
    /// Connection on the wire.
    pub connection: Option<u32>,
    /// Services listened for.
    pub listening: Option<u64>,
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
    /// First PSN our queue pair expects.
    pub psn: u32,
}

/// Contexts of connection management: one per card, for the life of the process.
pub fn context_of(device: &'static DeviceObject) -> Result<*mut Context, c_int> {
    static OPEN: OnceLock<Mutex<Vec<(c_int, usize)>>> = OnceLock::new();
    let mut open = lock(OPEN.get_or_init(Mutex::default));
    if let Some((_, context)) = open.iter().find(|(index, _)| *index == device.index) {
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

/// A socket address of the program's.
pub unsafe fn address(at: *const c_void) -> Result<SocketAddr, c_int> {
    if at.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: a socket address of its family, by the callers' promise.
    unsafe {
        match c_int::from(at.cast::<u16>().read_unaligned()) {
            libc::AF_INET => {
                let a = at.cast::<libc::sockaddr_in>().read_unaligned();
                Ok(SocketAddr::new(IpAddr::V4(u32::from_be(a.sin_addr.s_addr).into()), u16::from_be(a.sin_port)))
            }
            libc::AF_INET6 => {
                let a = at.cast::<libc::sockaddr_in6>().read_unaligned();
                Ok(SocketAddr::new(IpAddr::V6(a.sin6_addr.s6_addr.into()), u16::from_be(a.sin6_port)))
            }
            _ => Err(libc::EAFNOSUPPORT),
        }
    }
}

/// A socket address for the program, and its size.
pub fn sockaddr(a: SocketAddr) -> (SockAddr, u32) {
    let mut out = SockAddr([0; 128]);
    out.0[2..4].copy_from_slice(&a.port().to_be_bytes());
    let family = match a.ip() {
        IpAddr::V4(ip) => {
            out.0[4..8].copy_from_slice(&ip.octets());
            libc::AF_INET
        }
        IpAddr::V6(ip) => {
            out.0[8..24].copy_from_slice(&ip.octets());
            libc::AF_INET6
        }
    };
    out.0[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    (out, if a.is_ipv4() { size_of::<libc::sockaddr_in>() } else { size_of::<libc::sockaddr_in6>() } as u32)
}

/// A port that no identifier of this process has had lately.
pub fn ephemeral() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = std::process::id() as u16;
    49152 + NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(start) % 16384
}

impl IdObject {
    /// # Safety
    /// `id` is a handle in use.
    pub unsafe fn of<'a>(id: *mut CmId) -> &'a mut Self {
        // SAFETY: the handle is the first field.
        unsafe { &mut *id.cast::<Self>() }
    }

    fn make(channel: *mut EventChannel, context: *mut c_void, ps: c_uint) -> Result<*mut Self, c_int> {
        let qp_type = match ps {
            RDMA_PS_TCP => IBV_QPT_RC,
            RDMA_PS_UDP => IBV_QPT_UD,
            _ => return Err(libc::EPROTONOSUPPORT),
        };
        let waits = channel.is_null();
        let none = SockAddr([0; 128]);
        let route = Route { addr: Addr { src_addr: none, dst_addr: none, addr: IbAddr { sgid: Default::default(), dgid: Default::default(), pkey: 0 } }, path_rec: null_mut(), num_paths: 0 };
        let id = CmId {
            verbs: null_mut(), channel: if waits { make_channel()? } else { channel }, context, qp: null_mut(), route, ps, port_num: 0, event: null_mut(),
            send_cq_channel: null_mut(), send_cq: null_mut(), recv_cq_channel: null_mut(), recv_cq: null_mut(), srq: null_mut(), pd: null_mut(), qp_type,
        };
        let psn = ephemeral() as u32 * 251;
        let inner = Mutex::new(IdInner { waits, psn, ..Default::default() });
        Ok(Box::into_raw(Box::new(Self { id, outstanding: Outstanding::default(), inner })))
    }

    /// The identifier of a request that has come for `listener`.
    pub fn of_request(listener: &Self, connection: u32, remote: Remote, ip: Option<IpHeader>, from: Option<IpAddr>) -> Option<*mut Self> {
        let device = devices().iter().find(|d| Some(d.named.ip) == ip.and_then(|h| h.addresses()).map(|a| a.1)).or_else(|| devices().first())?;
        let made = Self::make(listener.id.channel, listener.id.context, listener.id.ps).ok()?;
        // SAFETY: just made.
        let object = unsafe { &mut *made };
        let port = listener.own().map_or(0, |a| a.port());
        let theirs = ip.and_then(|h| Some(SocketAddr::new(h.addresses()?.0, h.src_port()))).or(from.map(|f| SocketAddr::new(f, 0)))?;
        object.bind(device).ok()?;
        object.set_own(SocketAddr::new(device.named.ip, port));
        object.set_peer(theirs);
        let inner = lock_mut(&mut object.inner);
        (inner.connection, inner.remote) = (Some(connection), Some(remote));
        Some(made)
    }

    /// Where its events go.
    pub fn queue(&self) -> Arc<Queue> {
        // SAFETY: a channel outlives its identifiers.
        unsafe { &*self.id.channel.cast::<ChannelObject>() }.queue.clone()
    }

    /// Its card.
    pub fn shared(&self) -> Result<&'static Shared, c_int> {
        if self.id.verbs.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: contexts of connection management are never closed.
        Ok(&unsafe { ContextObject::of(self.id.verbs) }.shared)
    }

    /// Own address, if there is one.
    pub fn own(&self) -> Option<SocketAddr> {
        // SAFETY: zeros, or an address of ours.
        unsafe { address((&raw const self.id.route.addr.src_addr).cast()) }.ok()
    }

    /// The peer's address, if there is one.
    pub fn peer(&self) -> Option<SocketAddr> {
        // SAFETY: zeros, or an address of ours.
        unsafe { address((&raw const self.id.route.addr.dst_addr).cast()) }.ok()
    }

    /// Notes its own address.
    pub fn set_own(&mut self, a: SocketAddr) {
        self.id.route.addr.src_addr = sockaddr(a).0;
        self.id.route.addr.addr.sgid = gid_of(a.ip());
    }

    /// Notes the peer's address.
    pub fn set_peer(&mut self, a: SocketAddr) {
        self.id.route.addr.dst_addr = sockaddr(a).0;
        self.id.route.addr.addr.dgid = gid_of(a.ip());
    }

    /// Ties it to a card.
    pub fn bind(&mut self, device: &'static DeviceObject) -> Result<(), c_int> {
        let verbs = context_of(device)?;
        self.id.verbs = verbs;
        self.id.port_num = 1;
        self.id.route.addr.addr.pkey = 0xffff;
        if self.id.pd.is_null() {
            self.id.pd = domain_of(verbs)?;
        }
        Ok(())
    }

    /// Binds it to an own address; one that is unspecified means all cards.
    pub fn bind_to(&mut self, a: SocketAddr) -> Result<(), c_int> {
        let port = if a.port() == 0 { ephemeral() } else { a.port() };
        if a.ip().is_unspecified() {
            self.set_own(SocketAddr::new(a.ip(), port));
            return Ok(());
        }
        // The loopback address is on no wire: as in Linux it means a card, whichever.
        let fits = |d: &&DeviceObject| d.named.ip == a.ip() || a.ip().is_loopback() && d.named.ip.is_ipv4() == a.is_ipv4();
        let device = devices().iter().find(fits).ok_or(libc::EADDRNOTAVAIL)?;
        self.bind(device)?;
        self.set_own(SocketAddr::new(device.named.ip, port));
        Ok(())
    }

    /// Says what has happened at once; without a channel of the program's it is over with the call.
    pub unsafe fn happened(&mut self, cause: Cause) -> Result<(), c_int> {
        self.queue().push(Happened { id: self, listener: null_mut(), cause });
        // SAFETY: an identifier in use, by the caller's promise.
        unsafe { self.wait() }
    }

    /// Waits for the event of a call, without a channel of the program's.
    pub unsafe fn wait(&mut self) -> Result<(), c_int> {
        if !lock(&self.inner).waits {
            return Ok(());
        }
        // SAFETY: an identifier in use, by the caller's promise.
        unsafe { complete(&mut self.id) }
    }

    /// Whether the program knows already that the connection is there; it does from now on.
    pub fn announced(&self) -> bool {
        std::mem::replace(&mut lock(&self.inner).announced, true)
    }

    /// There will be no connection.
    pub fn fail(&mut self) {
        lock(&self.inner).connection = None;
        self.to_error();
    }

    /// The queue pair flushes what was posted.
    pub fn to_error(&mut self) {
        if !self.id.qp.is_null() {
            let mut attr = QpAttr { qp_state: IBV_QPS_ERR, ..Default::default() };
            // SAFETY: made by `rdma_create_qp`, which is undone before it is destroyed.
            unsafe { crate::qp_modify::ibv_modify_qp(self.id.qp, &mut attr, IBV_QP_STATE as c_int) };
        }
    }

    /// Takes it out of all tables; what is still open on the wire is closed.
    fn forget_everywhere(&mut self) {
        let me = &raw mut *self as usize;
        let (connection, listening) = {
            let mut inner = lock(&self.inner);
            (inner.connection.take(), inner.listening.take())
        };
        for d in devices() {
            let shared: Option<&'static Shared> = if listening.is_some() || !self.id.verbs.is_null() {
                // SAFETY: contexts of connection management are never closed.
                opened(d).map(|c| &*unsafe { ContextObject::of(c) }.shared)
            } else {
                None
            };
            let Some(shared) = shared else { continue };
            let mut port = lock(&shared.port);
            let Some(port) = port.as_mut() else { continue };
            if let Some(service) = listening.filter(|s| port.listeners.get(s) == Some(&me)) {
                port.listeners.remove(&service);
                port.driver.cm.unlisten(service);
            }
            let mine: Vec<u32> = port.ids.iter().filter(|(_, p)| **p == me).map(|(c, _)| *c).collect();
            for c in mine {
                port.ids.remove(&c);
                if connection == Some(c) {
                    let now = port.driver.now();
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

fn lock_mut<T>(m: &mut Mutex<T>) -> &mut T {
    m.get_mut().unwrap_or_else(|e| e.into_inner())
}

/// The context of connection management on a card, if it is open.
fn opened(device: &'static DeviceObject) -> Option<*mut Context> {
    if device.is_open() { context_of(device).ok() } else { None }
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
        for h in object.queue().take_of(object) {
            // Requests that the program has not seen.
            if h.id != &raw mut *object {
                ferric_rdma_destroy_id(h.id.cast());
            }
        }
        forget(id);
        object.outstanding.wait();
        let (waits, channel) = (lock(&object.inner).waits, object.id.channel);
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
    let waits = channel.is_null();
    let target = if waits { make_channel() } else { Ok(channel) };
    minus_one("rdma_migrate_id", target.map(|target| {
        let (old, owned) = (object.id.channel, lock(&object.inner).waits);
        // The thread of events hands out under this lock.
        // SAFETY: contexts of connection management are never closed.
        let shared = object.shared().ok();
        let held = shared.map(|s| lock(&s.port));
        let events = object.queue().take_of(object);
        object.id.channel = target;
        lock(&object.inner).waits = waits;
        events.into_iter().for_each(|h| object.queue().push(h));
        drop(held);
        if owned {
            // SAFETY: made with the identifier, nobody else has it.
            unsafe {
                forget(id);
                ferric_rdma_destroy_event_channel(old);
            }
        }
    }))
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
