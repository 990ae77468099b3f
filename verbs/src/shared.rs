//! A card in use: one per card and process, however often the program opens it.
use crate::channel::Pipe;
use crate::cm::Port;
use crate::config::{Config, Named};
use crate::errors::Errno;
use crate::neighbour::introduce;
use ferric_driver::eq::EventQueue;
use ferric_driver::vfio::VfioDevice;
use ferric_driver::vfio_user::VfioUserDevice;
use ferric_driver::{Context, Device, Error};
use std::collections::HashMap;
use std::convert::Infallible;
use std::ffi::c_int;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Locks; a panic of another thread has ended the process already.
pub fn lock<T: ?Sized>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

/// A queue of any kind, to the thread that hands out events.
pub struct Entry {
    /// Tells it from others that had the same number.
    pub serial: u64,
    /// Address of the program's object.
    pub object: usize,
    /// Channel for completions.
    pub channel: Option<Arc<Pipe>>,
    /// Asynchronous events of the context it was made in.
    pub errors: Arc<Pipe>,
}

/// See above. Fields are dropped in this order.
pub struct Shared {
    /// The communication manager, once a program needs it.
    pub port: Mutex<Option<Port>>,
    /// Events of all queues; the thread of [`crate::events`] reads it.
    pub eq: Mutex<EventQueue>,
    /// Held from taking an event to handing it out, so that it is known when none is between the two.
    pub dispatch: Mutex<()>,
    /// The driver's context.
    pub driver: Context,
    /// What it is called in the environment.
    pub named: Named,
    /// Completion queues by number.
    pub cqs: Mutex<HashMap<u32, Entry>>,
    /// Bytes of completion queues' rings that are there for growing.
    pub room: AtomicUsize,
    /// Queue pairs by number.
    pub qps: Mutex<HashMap<u32, Entry>>,
    /// Shared receive queues by number.
    pub srqs: Mutex<HashMap<u32, Entry>>,
    /// There is a flow.
    pub flow: Mutex<bool>,
    /// Contexts, for events of the whole card.
    pub contexts: Mutex<Vec<Arc<Pipe>>>,
    /// Smallest ACK timeout.
    pub least_ack_timeout: u8,
    /// The last field: when its other end hears that it is gone, the card is closed.
    _closed: Sender<Infallible>,
}

/// Opens what is a card by its name only: models, for tests that link this crate.
pub type Opener = fn(&str) -> Option<Arc<dyn Device>>;
/// Asked before anybody else is.
pub static MODELS: OnceLock<Opener> = OnceLock::new();

/// Vector of the only event queue.
pub const VECTOR: u16 = 0;

impl Shared {
    /// Takes a card into use. The receiver's other end goes when the card has been closed.
    pub fn open(named: &Named) -> Result<(Arc<Self>, Receiver<Infallible>), c_int> {
        let served = named.target.contains('/');
        let driver = (|| -> Result<Context, Error> {
            let model = MODELS.get().and_then(|open| open(&named.target));
            let device = match model {
                Some(device) => device,
                None if served => VfioUserDevice::open(Path::new(&named.target))?,
                None => VfioDevice::open(&named.target)?,
            };
            Context::open(device, ferric_driver::Config::default())
        })()
        .inspect_err(|e| log::error!("{e}"))
        .errno("open")?;
        let named = named.on(driver.capabilities().function);
        introduce(&driver, named.ip).errno("own address")?;
        let eq = driver.create_eq(10, VECTOR).errno("event queue")?;
        let (sender, closed) = channel();
        let shared = Arc::new(Self {
            port: Mutex::new(None),
            eq: Mutex::new(eq),
            dispatch: Mutex::default(),
            driver,
            named,
            cqs: Mutex::default(),
            room: AtomicUsize::new(0),
            qps: Mutex::default(),
            srqs: Mutex::default(),
            flow: Mutex::default(),
            contexts: Mutex::default(),
            least_ack_timeout: Config::of_process().least_ack_timeout(served),
            _closed: sender,
        });
        crate::events::start(&shared)?;
        Ok((shared, closed))
    }
}

/// A number that no other object of this process has.
pub fn serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
