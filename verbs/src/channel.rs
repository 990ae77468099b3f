//! Completion channels: a pipe, so that a program can poll(2) what it waits for.
use crate::abi::consts::IBV_EVENT_DEVICE_FATAL;
use crate::abi::objects::{CompChannel, Context, Cq};
use crate::context::ContextObject;
use crate::cq::CqObject;
use crate::errors::{minus_one, number, pointer};
use crate::shared::lock;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// What one event is in a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Of the object it is about, 0 for the whole card.
    pub serial: u64,
    /// Number of the object.
    pub id: u32,
    /// `ibv_event_type`; on completion channels nothing, or that the card is gone.
    pub kind: u32,
}

/// A pipe of [`Record`]s. The reading end is the program's: it may make it non-blocking.
pub struct Pipe {
    read: File,
    write: File,
}

impl Pipe {
    /// A new one.
    pub fn new() -> Result<Arc<Self>, c_int> {
        let mut fds = [0; 2];
        // SAFETY: room for two descriptors; the writing end must not block the thread that hands out events.
        let bad = unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) != 0 || libc::fcntl(fds[1], libc::F_SETFL, libc::O_NONBLOCK) != 0 };
        if bad {
            return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EMFILE));
        }
        // SAFETY: two new descriptors that nobody else owns.
        unsafe { Ok(Arc::new(Self { read: File::from_raw_fd(fds[0]), write: File::from_raw_fd(fds[1]) })) }
    }

    /// The end that becomes readable.
    pub fn fd(&self) -> c_int {
        self.read.as_raw_fd()
    }

    /// Puts a record in. A program that leaves 4096 of them unread loses more of them.
    pub fn put(&self, r: Record) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&r.serial.to_ne_bytes());
        bytes[8..12].copy_from_slice(&r.id.to_ne_bytes());
        bytes[12..].copy_from_slice(&r.kind.to_ne_bytes());
        if let Err(e) = (&self.write).write_all(&bytes) {
            log::error!("an event is lost: {e}");
        }
    }

    /// Takes a record out, waiting for it unless the program has made the descriptor non-blocking.
    pub fn take(&self) -> Result<Record, c_int> {
        let mut b = [0; 16];
        match (&self.read).read(&mut b) {
            // Writes of 16 bytes are atomic, so are reads.
            Ok(16) => {}
            Ok(_) => return Err(libc::EIO),
            Err(e) => return Err(e.raw_os_error().unwrap_or(libc::EIO)),
        }
        let word = |at: usize| u32::from_ne_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        Ok(Record { serial: u64::from_ne_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]), id: word(8), kind: word(12) })
    }
}

/// A completion channel.
#[repr(C)]
pub struct ChannelObject {
    /// What the program sees.
    pub channel: CompChannel,
    /// Its events.
    pub pipe: Arc<Pipe>,
    /// Completion queues that report here.
    pub users: AtomicU32,
}

/// Makes a channel.
#[no_mangle]
pub unsafe extern "C" fn ibv_create_comp_channel(context: *mut Context) -> *mut CompChannel {
    pointer(
        "ibv_create_comp_channel",
        Pipe::new().map(|pipe| {
            let channel = CompChannel { context, fd: pipe.fd(), refcnt: 0 };
            Box::into_raw(Box::new(ChannelObject { channel, pipe, users: AtomicU32::new(0) })).cast()
        }),
    )
}

/// Destroys a channel that nothing reports to.
#[no_mangle]
pub unsafe extern "C" fn ibv_destroy_comp_channel(channel: *mut CompChannel) -> c_int {
    let object = channel.cast::<ChannelObject>();
    // SAFETY: a handle of ours, by the caller's promise.
    if unsafe { &*object }.users.load(Ordering::Acquire) > 0 {
        return number("ibv_destroy_comp_channel", Err(libc::EBUSY));
    }
    // SAFETY: from Box::into_raw; nobody uses it any more.
    drop(unsafe { Box::from_raw(object) });
    0
}

#[no_mangle]
pub unsafe extern "C" fn ibv_get_cq_event(channel: *mut CompChannel, cq: *mut *mut Cq, cq_context: *mut *mut c_void) -> c_int {
    // SAFETY: handles of ours, by the caller's promise.
    let (object, context) = unsafe { (&*channel.cast::<ChannelObject>(), ContextObject::of((*channel).context)) };
    minus_one(
        "ibv_get_cq_event",
        loop {
            let record = match object.pipe.take() {
                Ok(record) => record,
                Err(n) => break Err(n),
            };
            if record.kind == IBV_EVENT_DEVICE_FATAL {
                // For whoever asks next, too.
                object.pipe.put(record);
                break Err(libc::EIO);
            }
            let cqs = lock(&context.shared.cqs);
            // Events of queues that have been destroyed are passed over.
            if let Some(entry) = cqs.get(&record.id).filter(|e| e.serial == record.serial) {
                let found = entry.object as *mut CqObject;
                // SAFETY: in the table, so it exists; the outputs are the caller's.
                unsafe {
                    (*found).completion_events.got();
                    *cq = found.cast();
                    *cq_context = (*(*found).seen()).cq_context;
                }
                break Ok(());
            }
        },
    )
}

#[no_mangle]
pub unsafe extern "C" fn ibv_ack_cq_events(cq: *mut Cq, nevents: u32) {
    // SAFETY: a handle of ours, by the caller's promise.
    unsafe { &*cq.cast::<CqObject>() }.completion_events.acknowledged(nevents);
}
