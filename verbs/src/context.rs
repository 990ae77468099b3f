//! Devices and contexts.
use crate::abi::consts::*;
use crate::abi::objects::{Context, ContextOps, Device, VerbsContext};
use crate::channel::Pipe;
use crate::config::{guid_of, mac_of, Config, Named};
use crate::errors::pointer;
use crate::shared::{lock, Shared};
use std::convert::Infallible;
use std::ffi::{c_char, c_int};
use std::mem::offset_of;
use std::net::IpAddr;
use std::ptr::null;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

/// A card that the environment names.
#[repr(C)]
pub struct DeviceObject {
    /// What the program sees.
    pub device: Device,
    /// Providers of rdma-core, which some programs load, look behind a device for a pointer to their operations: they find none.
    behind: [u64; 16],
    /// Where it is.
    pub named: Named,
    /// Its place in the list.
    pub index: c_int,
    open: Mutex<Open>,
}

/// A card that is in use, or was.
#[derive(Default)]
struct Open {
    card: Weak<Shared>,
    /// Hears that the card has been closed, which whoever is the last to let go of it does.
    closed: Option<Receiver<Infallible>>,
}

/// How long a card that is being closed may take until it is opened once more all the same.
const CLOSING: Duration = Duration::from_secs(10);

// Plain data and a lock; the program does not write to devices.
unsafe impl Send for DeviceObject {}
unsafe impl Sync for DeviceObject {}

fn text<const N: usize>(s: &str) -> [c_char; N] {
    let mut out = [0; N];
    out.iter_mut().take(N - 1).zip(s.bytes()).for_each(|(o, b)| *o = b as c_char);
    out
}

impl DeviceObject {
    fn new(index: usize, named: &Named) -> Self {
        let device = Device {
            opaque_ops: [null(); 2],
            node_type: IBV_NODE_CA as c_int,
            transport_type: IBV_TRANSPORT_IB as c_int,
            name: text(&format!("ferric{index}")),
            dev_name: text(&format!("uverbs{index}")),
            dev_path: text(""),
            ibdev_path: text(""),
        };
        Self { device, behind: [0; 16], named: named.clone(), index: index as c_int, open: Mutex::default() }
    }

    /// Takes the card into use, or finds it in use by this process.
    fn shared(&self) -> Result<Arc<Shared>, c_int> {
        let mut open = lock(&self.open);
        // A card that is gone, or this process's parent's: it may be there again.
        match open.card.upgrade() {
            Some(shared) if !shared.driver.device().is_gone() => return Ok(shared),
            Some(_) => {}
            // Another thread is just closing it: until then its function is in use, and the card would give this process another one.
            None => drop(open.closed.take().map(|closed| closed.recv_timeout(CLOSING))),
        }
        let (shared, closed) = Shared::open(&self.named)?;
        *open = Open { card: Arc::downgrade(&shared), closed: Some(closed) };
        Ok(shared)
    }

    /// This process has it open.
    pub fn in_use(&self) -> bool {
        lock(&self.open).card.upgrade().is_some()
    }

    /// Its address on the wire: that of the function that this process has, if it has one already.
    pub fn ip(&self) -> IpAddr {
        lock(&self.open).card.upgrade().map_or(self.named.ip, |shared| shared.named.ip)
    }

    /// Node GUID, as it stands in memory.
    pub fn guid(&self) -> u64 {
        guid_of(mac_of(self.named.ip))
    }
}

/// Every card, for the life of the process: programs keep pointers.
pub fn devices() -> &'static [DeviceObject] {
    static DEVICES: OnceLock<Vec<DeviceObject>> = OnceLock::new();
    DEVICES.get_or_init(|| Config::of_process().cards.iter().enumerate().map(|(i, named)| DeviceObject::new(i, named)).collect())
}

/// An open context.
#[repr(C)]
pub struct ContextObject {
    /// What the program sees; it holds a pointer to the last field.
    verbs: VerbsContext,
    /// The card.
    pub shared: Arc<Shared>,
    /// The card as the program sees it.
    pub device: &'static DeviceObject,
    /// Asynchronous events.
    pub events: Arc<Pipe>,
}

impl ContextObject {
    /// # Safety
    /// `context` is a handle that [`ibv_open_device`] gave and that has not been closed.
    pub unsafe fn of<'a>(context: *mut Context) -> &'a Self {
        // SAFETY: the handle points to the field `context` of `verbs`, which is the first field here.
        unsafe { &*context.byte_sub(offset_of!(VerbsContext, context)).cast::<Self>() }
    }

    /// Opens a device.
    pub fn open(device: &'static DeviceObject) -> Result<*mut Context, c_int> {
        let shared = device.shared()?;
        let events = Pipe::new()?;
        // SAFETY: all zeros are null pointers and numbers.
        let mut verbs: VerbsContext = unsafe { std::mem::zeroed() };
        verbs.query_port = Some(crate::query::query_port);
        verbs.query_device_ex = Some(crate::query::query_device_ex);
        verbs.create_cq_ex = Some(crate::cq_ex::create_cq_ex);
        verbs.ibv_create_flow = Some(crate::flow::create_flow);
        verbs.ibv_destroy_flow = Some(crate::flow::destroy_flow);
        verbs.create_qp_ex = Some(crate::qp_ex::create_qp_ex);
        verbs.get_srq_num = Some(crate::srq::get_srq_num);
        verbs.alloc_td = Some(crate::domain::alloc_td);
        verbs.dealloc_td = Some(crate::domain::dealloc_td);
        verbs.alloc_parent_domain = Some(crate::domain::alloc_parent_domain);
        verbs.sz = size_of::<VerbsContext>();
        verbs.context = Context {
            device: (&raw const device.device).cast_mut(),
            ops: ContextOps {
                alloc_mw: Some(crate::mw::alloc_mw),
                bind_mw: Some(crate::mw::bind_mw),
                dealloc_mw: Some(crate::mw::dealloc_mw),
                poll_cq: Some(crate::cq::poll_cq),
                req_notify_cq: Some(crate::cq::req_notify_cq),
                post_send: Some(crate::post::post_send),
                post_recv: Some(crate::post::post_recv),
                post_srq_recv: Some(crate::srq::post_srq_recv),
                ..verbs.context.ops
            },
            // Nobody reads it here; a program may duplicate it for a device that is imported, which there is none of.
            cmd_fd: events.fd(),
            async_fd: events.fd(),
            num_comp_vectors: 1,
            mutex: libc::PTHREAD_MUTEX_INITIALIZER,
            // "The structure in front of this one is there."
            abi_compat: usize::MAX as *mut _,
        };
        lock(&shared.contexts).push(events.clone());
        let object = Box::into_raw(Box::new(Self { verbs, shared, device, events }));
        // SAFETY: just made.
        Ok(unsafe { &raw mut (*object).verbs.context })
    }

    /// # Safety
    /// As [`ContextObject::of`]; nothing made in the context is left.
    pub unsafe fn close(context: *mut Context) {
        // SAFETY: from Box::into_raw in `open`.
        let object = unsafe { Box::from_raw(context.byte_sub(offset_of!(VerbsContext, context)).cast::<Self>()) };
        lock(&object.shared.contexts).retain(|c| !Arc::ptr_eq(c, &object.events));
    }
}

#[no_mangle]
unsafe extern "C" fn ibv_get_device_list(num_devices: *mut c_int) -> *mut *mut Device {
    let all = devices();
    // SAFETY: a fresh array of pointers with a null behind them, freed by `ibv_free_device_list`.
    unsafe {
        let list = libc::calloc(all.len() + 1, size_of::<*mut Device>()).cast::<*mut Device>();
        if list.is_null() {
            return pointer("ibv_get_device_list", Err(libc::ENOMEM));
        }
        for (i, d) in all.iter().enumerate() {
            list.add(i).write((&raw const d.device).cast_mut());
        }
        if !num_devices.is_null() {
            *num_devices = all.len() as c_int;
        }
        list
    }
}

#[no_mangle]
unsafe extern "C" fn ibv_free_device_list(list: *mut *mut Device) {
    // SAFETY: from `ibv_get_device_list`, by the caller's promise.
    unsafe { libc::free(list.cast()) };
}

/// # Safety
/// `device` is one of [`devices`].
pub unsafe fn device_of(device: *mut Device) -> &'static DeviceObject {
    // SAFETY: devices live as long as the process; the device is the first field.
    unsafe { &*device.cast::<DeviceObject>() }
}

#[no_mangle]
unsafe extern "C" fn ibv_get_device_name(device: *mut Device) -> *const c_char {
    // SAFETY: as above, by the caller's promise.
    unsafe { &raw const (*device).name }.cast()
}

#[no_mangle]
unsafe extern "C" fn ibv_get_device_guid(device: *mut Device) -> u64 {
    // SAFETY: as above, by the caller's promise.
    unsafe { device_of(device) }.guid()
}

#[no_mangle]
unsafe extern "C" fn ibv_get_device_index(device: *mut Device) -> c_int {
    // SAFETY: as above, by the caller's promise.
    unsafe { device_of(device) }.index
}

#[no_mangle]
unsafe extern "C" fn ibv_open_device(device: *mut Device) -> *mut Context {
    if device.is_null() {
        return pointer("ibv_open_device", Err(libc::ENODEV));
    }
    // SAFETY: as above, by the caller's promise.
    pointer("ibv_open_device", ContextObject::open(unsafe { device_of(device) }))
}

#[no_mangle]
unsafe extern "C" fn ibv_close_device(context: *mut Context) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe { ContextObject::close(context) };
    0
}

#[no_mangle]
unsafe extern "C" fn ibv_import_device(_fd: c_int) -> *mut Context {
    pointer("ibv_import_device", Err(libc::EOPNOTSUPP))
}
