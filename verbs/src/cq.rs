//! Completion queues.
use crate::abi::consts::*;
use crate::abi::objects::{CompChannel, Context, Cq, CqEx, Pd};
use crate::abi::wr::Wc;
use crate::channel::ChannelObject;
use crate::context::ContextObject;
use crate::errors::{number, pointer, Errno};
use crate::events::Outstanding;
use crate::latch::Latch;
use crate::mr::PdObject;
use crate::query::MAX_DEPTH;
use crate::shared::{lock, serial, Entry, Shared};
use ferric_abi::host::Cqe;
use ferric_driver::{Completion, CompletionQueue, CqeOpcode};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::net::IpAddr;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Polls in a row that find nothing before the card is given time: a program that spins must not starve the simulation it waits for.
const PATIENCE: u32 = 8;

/// How long a queue that queue pairs use waits before it shrinks: what was posted may be about to complete, on a served card whose process has to get its turn.
const LAST_COMPLETIONS: Duration = Duration::from_millis(100);

/// Entries that the smallest ring has: those of a page.
const LEAST_RING: u32 = 64;

/// Entries to which every queue may grow, and how many times its size a larger one: the card cannot give a queue another ring, so the room is there from the beginning.
const ROOM: u32 = 2048;
const GROWTH: u32 = 4;

/// Bytes of all rings of a card together that are there for growing. Rings on a card on the bus are pinned, and count as locked memory (8 MiB for an ordinary user).
const ROOM_OF_CARD: usize = 4 << 20;

/// Bytes that `ring` entries take, about: the driver's ring has more than a program may leave unpolled.
fn bytes_of(ring: u32) -> usize {
    ring as usize * 2 * Cqe::BYTES
}

/// Entries of the ring for `cqe`, without room for growing and with it.
fn rings_for(cqe: u32) -> [u32; 2] {
    let least = cqe.next_power_of_two().max(LEAST_RING);
    [least, (least * GROWTH).clamp(ROOM, MAX_DEPTH)]
}

/// Entries of a queue for which a program has asked for so many.
fn size_of_queue(cqe: u32) -> u32 {
    cqe.next_power_of_two().max(2)
}

/// A completion queue.
#[repr(C)]
pub struct CqObject {
    /// What the program sees, and may read and write at any time: only ever reached through [`CqObject::seen`].
    ex: UnsafeCell<CqEx>,
    /// What is changed by polling.
    pub inner: Latch<Polled>,
    /// A program is between `ibv_start_poll` and `ibv_end_poll`.
    pub polling: AtomicBool,
    /// Completion events the program has.
    pub completion_events: Outstanding,
    /// Asynchronous events the program has.
    pub async_events: Outstanding,
    /// Queue pairs that report here.
    pub users: AtomicU32,
    /// Entries to which it may grow.
    pub ring: u32,
    /// Bytes of the card's room for growing that it has.
    room: usize,
    /// The parent domain that it was made in, or null.
    pub domain: *mut Pd,
    /// The card.
    pub shared: Arc<Shared>,
}

/// Changed by polling.
pub struct Polled {
    /// The driver's queue.
    pub driver: CompletionQueue,
    /// Polls in a row that found nothing.
    empty: u32,
    /// What `ibv_start_poll` or `ibv_next_poll` found.
    pub current: Wc,
    /// Its time.
    pub timestamp: u64,
    /// What is in front of a datagram.
    pub headers: u8,
}

impl CqObject {
    /// # Safety
    /// `cq` is a handle that is in use.
    pub unsafe fn of<'a>(cq: *mut Cq) -> &'a Self {
        // SAFETY: the handle is the first field.
        unsafe { &*cq.cast::<Self>() }
    }

    /// What the program sees.
    pub fn seen(&self) -> *mut CqEx {
        self.ex.get()
    }

    /// Makes one; `comp_vector` must be the only one.
    ///
    /// # Safety
    /// Handles in use; `channel` may be null.
    pub unsafe fn create(context: *mut Context, cqe: u32, cq_context: *mut c_void, channel: *mut CompChannel, vector: u32) -> Result<*mut Self, c_int> {
        if cqe == 0 || cqe > MAX_DEPTH || vector != 0 {
            return Err(libc::EINVAL);
        }
        // SAFETY: by the caller's promise.
        let (open, pipe) = unsafe { (ContextObject::of(context), channel.cast::<ChannelObject>().as_ref()) };
        let shared = open.shared.clone();
        let [least, most] = rings_for(cqe);
        let make = |ring: u32| shared.driver.create_cq(ring as usize, &lock(&shared.eq)).map(|driver| (ring, driver));
        let wanted = bytes_of(most) - bytes_of(least);
        let room = if shared.room.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| Some(n + wanted).filter(|n| *n <= ROOM_OF_CARD)).is_ok() { wanted } else { 0 };
        // Growing is not worth a failure: where memory is short there is what was asked for.
        let made = if room > 0 { make(most).or_else(|_| make(least)) } else { make(least) };
        let (ring, driver) = made.errno("completion queue").inspect_err(|_| {
            shared.room.fetch_sub(room, Ordering::AcqRel);
        })?;
        let id = driver.id();
        // SAFETY: all zeros are null pointers, absent functions and numbers.
        let mut ex: CqEx = unsafe { std::mem::zeroed() };
        (ex.context, ex.channel, ex.cq_context, ex.handle) = (context, channel, cq_context, id);
        ex.cqe = size_of_queue(cqe) as c_int;
        (ex.mutex, ex.cond) = (libc::PTHREAD_MUTEX_INITIALIZER, libc::PTHREAD_COND_INITIALIZER);
        let inner = Latch::new(Polled { driver, empty: 0, current: Wc::default(), timestamp: 0, headers: headers_of(shared.named.ip) });
        let object = Box::into_raw(Box::new(Self {
            ex: UnsafeCell::new(ex),
            inner,
            polling: AtomicBool::new(false),
            completion_events: Outstanding::default(),
            async_events: Outstanding::default(),
            users: AtomicU32::new(0),
            ring,
            room,
            domain: null_mut(),
            shared: shared.clone(),
        }));
        let channel = pipe.map(|c| {
            c.users.fetch_add(1, Ordering::AcqRel);
            c.pipe.clone()
        });
        let entry = Entry { serial: serial(), object: object as usize, channel, errors: open.events.clone() };
        // What is told of an earlier queue of this number nobody gets.
        crate::events::hand_out(&shared);
        lock(&shared.cqs).insert(id, entry);
        Ok(object)
    }

    /// The next completion.
    pub fn take(&self, inner: &mut Polled) -> Option<Completion> {
        let c = inner.driver.poll();
        inner.empty = if c.is_some() { 0 } else { inner.empty.saturating_add(1) };
        c
    }

    /// Nothing was there: gives the card time now and then. EIO: there is no card any more.
    pub fn pause(&self, inner: &Polled) -> Result<(), c_int> {
        if inner.empty > PATIENCE {
            if self.shared.driver.device().is_gone() {
                return Err(libc::EIO);
            }
            inner.driver.relax();
        }
        Ok(())
    }
}

/// The service level of a datagram's completion: RoCE has none, so mlx5 puts there what stands in front of the datagram, and UCX 1.13 reads it: an
/// IPv4 (2) or IPv6 header (1), and behind it one of UDP (8).
fn headers_of(ip: IpAddr) -> u8 {
    if ip.is_ipv4() {
        10
    } else {
        9
    }
}

/// A completion as verbs show it; `headers` are those of a datagram on this port.
pub fn wc_of(c: &Completion, headers: u8) -> Wc {
    let opcode = match (c.opcode, c.is_recv) {
        (CqeOpcode::RecvWriteImm, _) => IBV_WC_RECV_RDMA_WITH_IMM,
        (CqeOpcode::Recv | CqeOpcode::RecvImm, _) | (_, true) => IBV_WC_RECV,
        (CqeOpcode::Write | CqeOpcode::WriteImm, _) => IBV_WC_RDMA_WRITE,
        (CqeOpcode::Read, _) => IBV_WC_RDMA_READ,
        (CqeOpcode::CompareSwap, _) => IBV_WC_COMP_SWAP,
        (CqeOpcode::FetchAdd, _) => IBV_WC_FETCH_ADD,
        (CqeOpcode::LocalInv, _) => IBV_WC_LOCAL_INV,
        (CqeOpcode::Flush, _) => IBV_WC_FLUSH,
        (CqeOpcode::AtomicWrite, _) => IBV_WC_ATOMIC_WRITE,
        (CqeOpcode::BindMw, _) => IBV_WC_BIND_MW,
        _ => IBV_WC_SEND,
    };
    Wc {
        wr_id: c.wr_id,
        status: c.status as u32,
        opcode,
        vendor_err: c.syndrome.into(),
        byte_len: c.byte_len,
        // Immediate data are in network order, a key is not.
        imm_data: c.invalidated.unwrap_or(c.imm.unwrap_or(0).to_be()),
        qp_num: c.qpn,
        src_qp: c.src_qp,
        wc_flags: if c.imm.is_some() { IBV_WC_WITH_IMM } else { 0 } | if c.invalidated.is_some() { IBV_WC_WITH_INV } else { 0 } | if c.grh { IBV_WC_GRH } else { 0 },
        pkey_index: c.pkey_index,
        sl: if c.grh { headers } else { 0 },
        ..Default::default()
    }
}

/// `ibv_poll_cq`.
pub unsafe extern "C" fn poll_cq(cq: *mut Cq, entries: c_int, wc: *mut Wc) -> c_int {
    // SAFETY: a handle of ours, by the caller's promise.
    let object = unsafe { CqObject::of(cq) };
    let mut inner = object.inner.lock();
    let mut n = 0;
    while n < entries {
        let Some(c) = object.take(&mut inner) else {
            if n == 0 && object.pause(&inner).is_err() {
                return -1;
            }
            break;
        };
        // SAFETY: room for `entries`, by the caller's promise.
        unsafe { wc.add(n as usize).write(wc_of(&c, inner.headers)) };
        n += 1;
    }
    n
}

/// `ibv_req_notify_cq`.
pub unsafe extern "C" fn req_notify_cq(cq: *mut Cq, solicited_only: c_int) -> c_int {
    // SAFETY: a handle of ours, by the caller's promise.
    unsafe { CqObject::of(cq) }.inner.lock().driver.arm_next(solicited_only != 0);
    0
}

/// Makes a completion queue.
#[no_mangle]
pub unsafe extern "C" fn ibv_create_cq(context: *mut Context, cqe: c_int, cq_context: *mut c_void, channel: *mut CompChannel, vector: c_int) -> *mut Cq {
    let sized = u32::try_from(cqe).map_err(|_| libc::EINVAL);
    // SAFETY: by the caller's promise.
    pointer("ibv_create_cq", sized.and_then(|n| unsafe { CqObject::create(context, n, cq_context, channel, vector as u32) })).cast()
}

/// Changes how many completions a queue holds, under traffic too: up to what its ring has room for (EOPNOTSUPP beyond that), and down to what it holds (EINVAL below that). The ring stays, so
/// that no completion is lost or comes twice.
#[no_mangle]
unsafe extern "C" fn ibv_resize_cq(cq: *mut Cq, cqe: c_int) -> c_int {
    // SAFETY: a handle of ours, by the caller's promise.
    let object = unsafe { CqObject::of(cq) };
    let resize = || -> Result<(), c_int> {
        let wanted = u32::try_from(cqe).ok().filter(|n| (1..=MAX_DEPTH).contains(n)).map(size_of_queue).ok_or(libc::EINVAL)?;
        if wanted > object.ring {
            return Err(libc::EOPNOTSUPP);
        }
        // SAFETY: as below.
        let shrinks = wanted < unsafe { (*object.seen()).cqe } as u32 && object.users.load(Ordering::Acquire) > 0;
        let start = Instant::now();
        let _inner = loop {
            // Not for longer than a look: somebody else may poll meanwhile.
            let inner = object.inner.lock();
            if inner.driver.waiting() > wanted as usize {
                return Err(libc::EINVAL);
            }
            if !shrinks || start.elapsed() >= LAST_COMPLETIONS {
                break inner;
            }
            inner.driver.relax();
        };
        // SAFETY: as above; the program reads it when it likes, and no reference to it exists.
        unsafe { (*object.seen()).cqe = wanted as c_int };
        Ok(())
    };
    number("ibv_resize_cq", resize())
}

/// Destroys a completion queue that nothing reports to.
#[no_mangle]
pub unsafe extern "C" fn ibv_destroy_cq(cq: *mut Cq) -> c_int {
    // SAFETY: a handle of ours, by the caller's promise.
    let object = unsafe { CqObject::of(cq) };
    if object.users.load(Ordering::Acquire) > 0 {
        return number("ibv_destroy_cq", Err(libc::EBUSY));
    }
    // SAFETY: as above.
    let (number, channel) = unsafe { ((*object.seen()).handle, (*object.seen()).channel) };
    // SAFETY: a domain outlives what was made in it.
    if let Some(domain) = unsafe { object.domain.cast::<PdObject>().as_ref() } {
        domain.users.fetch_sub(1, Ordering::AcqRel);
    }
    lock(&object.shared.cqs).remove(&number);
    object.completion_events.wait();
    object.async_events.wait();
    object.shared.room.fetch_sub(object.room, Ordering::AcqRel);
    // SAFETY: a channel outlives its queues; from Box::into_raw, and out of the table, so nobody finds it.
    unsafe {
        if let Some(channel) = channel.cast::<ChannelObject>().as_ref() {
            channel.users.fetch_sub(1, Ordering::AcqRel);
        }
        drop(Box::from_raw(cq.cast::<CqObject>()));
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferric_driver::CqeStatus;

    #[test]
    fn rings_have_room_to_grow() {
        assert_eq!([1, 64, 65, 2048, 5000, 20_000, MAX_DEPTH].map(rings_for), [[64, 2048], [64, 2048], [128, 2048], [2048, 8192], [8192, MAX_DEPTH], [MAX_DEPTH; 2], [MAX_DEPTH; 2]]);
    }

    #[test]
    fn immediate_data_and_keys_are_told_apart() {
        let plain = Completion {
            wr_id: 7,
            status: CqeStatus::Success,
            opcode: CqeOpcode::Recv,
            qpn: 3,
            is_recv: true,
            byte_len: 64,
            imm: None,
            invalidated: None,
            solicited: false,
            timestamp: 0,
            src_qp: 0,
            grh: false,
            pkey_index: 0,
            syndrome: 0,
        };
        let shown = |c: Completion| {
            let wc = wc_of(&c, 10);
            (wc.opcode, wc.wc_flags, wc.imm_data)
        };
        assert_eq!(shown(plain), (IBV_WC_RECV, 0, 0));
        assert_eq!(shown(Completion { opcode: CqeOpcode::RecvImm, imm: Some(0x0102_0304), ..plain }), (IBV_WC_RECV, IBV_WC_WITH_IMM, 0x0102_0304u32.to_be()));
        assert_eq!(shown(Completion { invalidated: Some(0x0102_0304), ..plain }), (IBV_WC_RECV, IBV_WC_WITH_INV, 0x0102_0304));
        assert_eq!([true, false].map(|grh| wc_of(&Completion { grh, ..plain }, headers_of([10, 0, 0, 1].into())).sl), [10, 0]);
        assert_eq!(shown(Completion { opcode: CqeOpcode::SendInv, is_recv: false, ..plain }), (IBV_WC_SEND, 0, 0));
    }
}
