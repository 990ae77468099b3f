//! The thread that hands out a card's events, and asynchronous events.
use crate::abi::consts::*;
use crate::abi::objects::{AsyncEvent, Context};
use crate::channel::{Pipe, Record};
use crate::context::ContextObject;
use crate::cq::CqObject;
use crate::errors::minus_one;
use crate::fork::NoFork;
use crate::qp::QpObject;
use crate::shared::{lock, Shared, VECTOR};
use crate::srq::SrqObject;
use ferric_abi::codes::{CqeStatus, EventKind};
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::Duration;

/// How long the thread keeps a card open that nobody uses any more.
const IDLE: Duration = Duration::from_millis(50);
/// How often the communication manager is looked after once there is one.
const CM_TURN: Duration = Duration::from_millis(3);

/// Events given to the program and not acknowledged yet: an object with some may not go.
#[derive(Default)]
pub struct Outstanding {
    count: Mutex<i64>,
    changed: Condvar,
}

impl Outstanding {
    /// The program has one more.
    pub fn got(&self) {
        *lock(&self.count) += 1;
    }

    /// The program is done with `n`.
    pub fn acknowledged(&self, n: u32) {
        *lock(&self.count) -= i64::from(n);
        self.changed.notify_all();
    }

    /// Waits until the program is done with all.
    pub fn wait(&self) {
        let mut count = lock(&self.count);
        while *count > 0 {
            count = self.changed.wait(count).unwrap_or_else(|e| e.into_inner());
        }
    }
}

/// Starts the thread. It ends when the card is closed.
pub fn start(shared: &Arc<Shared>) -> Result<(), c_int> {
    let weak = Arc::downgrade(shared);
    // Signals are the program's business: its own threads take them.
    // SAFETY: sets of signals on the stack; this thread's mask is put back below.
    let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
    }
    let started = std::thread::Builder::new().name("ferric-events".into()).spawn(move || run(&weak));
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    started.map(drop).map_err(|e| e.raw_os_error().unwrap_or(libc::EAGAIN))
}

fn run(weak: &Weak<Shared>) {
    let mut managed = false;
    while let Some(shared) = weak.upgrade() {
        let waited = shared.driver.device().wait_interrupt(VECTOR, if managed { CM_TURN } else { IDLE });
        // Whatever it locks it has let go of when a program forks, also the card itself when nobody else has it any more.
        let _no_fork = NoFork::now();
        if let Err(e) = waited {
            log::error!("{}: {e}", shared.named.target);
            gone(&shared);
            return;
        }
        hand_out(&shared);
        managed = lock(&shared.port).is_some();
        if managed {
            crate::cm::progress(&shared);
        }
        drop(shared);
    }
}

/// Tells everybody who may be waiting that nothing will come any more.
fn gone(shared: &Shared) {
    let record = Record { serial: 0, id: 0, kind: IBV_EVENT_DEVICE_FATAL };
    lock(&shared.contexts).iter().for_each(|c| c.put(record));
    let mut told: Vec<*const Pipe> = Vec::new();
    for channel in lock(&shared.cqs).values().filter_map(|entry| entry.channel.as_ref()) {
        if !told.contains(&Arc::as_ptr(channel)) {
            channel.put(record);
            told.push(Arc::as_ptr(channel));
        }
    }
    crate::cm::removed(shared);
}

/// Hands out all events that wait. When it returns, none that the card had told of before is on its way to an object any more.
pub fn hand_out(shared: &Shared) {
    loop {
        let _one = lock(&shared.dispatch);
        // Not held while pipes are written: queues are destroyed meanwhile.
        let Some(event) = lock(&shared.eq).poll() else { return };
        let (table, kind) = match event.kind {
            EventKind::Completion => (&shared.cqs, None),
            EventKind::CqError => (&shared.cqs, Some(IBV_EVENT_CQ_ERR)),
            // The program has asked for that itself.
            EventKind::QpError if event.cause == CqeStatus::WrFlush as u16 => continue,
            EventKind::QpError => (&shared.qps, Some(IBV_EVENT_QP_FATAL)),
            EventKind::QpAccessError => (&shared.qps, Some(IBV_EVENT_QP_ACCESS_ERR)),
            EventKind::SqDrained => (&shared.qps, Some(IBV_EVENT_SQ_DRAINED)),
            EventKind::LastWqe => (&shared.qps, Some(IBV_EVENT_QP_LAST_WQE_REACHED)),
            EventKind::SrqLimit => (&shared.srqs, Some(IBV_EVENT_SRQ_LIMIT_REACHED)),
            EventKind::SrqError => (&shared.srqs, Some(IBV_EVENT_SRQ_ERR)),
            #[allow(unreachable_patterns)]
            other => {
                log::debug!("event {other:?} of {}", event.id);
                continue;
            }
        };
        let table = lock(table);
        let Some(entry) = table.get(&event.id) else { continue };
        // SAFETY: a queue pair is in the table as long as it exists, and the table is locked.
        if event.kind == EventKind::SqDrained && !unsafe { &*(entry.object as *const crate::qp::QpObject) }.tell_drained.load(std::sync::atomic::Ordering::Acquire) {
            continue;
        }
        let record = Record { serial: entry.serial, id: event.id, kind: kind.unwrap_or(0) };
        match (kind, &entry.channel) {
            (Some(_), _) => entry.errors.put(record),
            (None, Some(channel)) => channel.put(record),
            (None, None) => {}
        }
    }
}

/// What an event is about.
enum About {
    Cq,
    Qp,
    Srq,
    /// The whole card, or its port.
    Card,
}

fn about(kind: u32) -> About {
    match kind {
        IBV_EVENT_CQ_ERR => About::Cq,
        IBV_EVENT_QP_FATAL | IBV_EVENT_QP_REQ_ERR | IBV_EVENT_QP_ACCESS_ERR | IBV_EVENT_COMM_EST | IBV_EVENT_SQ_DRAINED | IBV_EVENT_QP_LAST_WQE_REACHED => About::Qp,
        IBV_EVENT_SRQ_ERR | IBV_EVENT_SRQ_LIMIT_REACHED => About::Srq,
        _ => About::Card,
    }
}

#[no_mangle]
unsafe extern "C" fn ibv_get_async_event(context: *mut Context, event: *mut AsyncEvent) -> c_int {
    // SAFETY: a handle of ours, by the caller's promise.
    let context = unsafe { ContextObject::of(context) };
    minus_one(
        "ibv_get_async_event",
        loop {
            let record = match context.events.take() {
                Ok(record) => record,
                Err(n) => break Err(n),
            };
            let table = match about(record.kind) {
                About::Cq => Some(&context.shared.cqs),
                About::Qp => Some(&context.shared.qps),
                About::Srq => Some(&context.shared.srqs),
                About::Card => None,
            };
            let element = match table {
                // Its port.
                None => Some(std::ptr::dangling_mut()),
                Some(table) => lock(table).get(&record.id).filter(|e| e.serial == record.serial).map(|e| {
                    let object = e.object as *mut c_void;
                    // SAFETY: in the table, so it exists.
                    if let Some(outstanding) = unsafe { outstanding(object, record.kind) } {
                        outstanding.got();
                    }
                    object
                }),
            };
            if let Some(element) = element {
                // SAFETY: the output is the caller's.
                unsafe { event.write(AsyncEvent { element, event_type: record.kind }) };
                break Ok(());
            }
        },
    )
}

unsafe fn outstanding<'a>(object: *mut c_void, kind: u32) -> Option<&'a Outstanding> {
    // SAFETY: the kind says what the object is.
    unsafe {
        match about(kind) {
            About::Cq => Some(&(*object.cast::<CqObject>()).async_events),
            About::Qp => Some(&(*object.cast::<QpObject>()).async_events),
            About::Srq => Some(&(*object.cast::<SrqObject>()).async_events),
            About::Card => None,
        }
    }
}

#[no_mangle]
unsafe extern "C" fn ibv_ack_async_event(event: *mut AsyncEvent) {
    // SAFETY: what `ibv_get_async_event` gave, by the caller's promise.
    let event = unsafe { *event };
    // SAFETY: an object of that kind, which waits for this before it goes.
    if let Some(outstanding) = unsafe { outstanding(event.element, event.event_type) } {
        outstanding.acknowledged(1);
    }
}
