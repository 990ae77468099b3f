//! An open card function: discovery, object numbers, protection domains.
use crate::admin::AdminQueue;
use crate::cq::CompletionQueue;
use crate::device::Device;
use crate::eq::EventQueue;
use crate::error::{Error, Result};
use crate::mr::{Access, MemoryRegion, Region, Start};
use crate::qp::{QpConfig, QpTable, QueuePair};
use crate::srq::{SharedReceiveQueue, SrqConfig};
use crate::types::{Capabilities, QpType};
use ferric_abi::codes::AdminOpcode;
use ferric_abi::csr;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

/// Numbers of one object kind; freed numbers are used again, oldest first, so that stale references show.
pub(crate) struct Ids {
    what: &'static str,
    /// Smallest number handed out; those below are reserved.
    first: u32,
    free: Mutex<std::collections::VecDeque<u32>>,
}

impl Ids {
    fn new(what: &'static str, range: std::ops::Range<u32>) -> Self {
        Self { what, first: range.start, free: Mutex::new(range.collect()) }
    }
    pub(crate) fn take(&self) -> Result<u32> {
        self.free.lock().unwrap_or_else(|e| e.into_inner()).pop_front().ok_or(Error::Exhausted(self.what))
    }
    pub(crate) fn give(&self, id: u32) {
        if id >= self.first {
            self.free.lock().unwrap_or_else(|e| e.into_inner()).push_back(id);
        }
    }
}

pub(crate) struct Inner {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) caps: Capabilities,
    admin: Mutex<AdminQueue>,
    pub(crate) pd_ids: Ids,
    pub(crate) mr_ids: Ids,
    pub(crate) cq_ids: Ids,
    pub(crate) qp_ids: Ids,
    pub(crate) eq_ids: Ids,
    pub(crate) srq_ids: Ids,
    pub(crate) qps: QpTable,
}

impl Inner {
    pub(crate) fn admin(&self, what: &'static str, opcode: AdminOpcode, id: u32, params: &[u32]) -> Result<[u32; 14]> {
        self.admin.lock().unwrap_or_else(|e| e.into_inner()).execute(what, opcode, id, params)
    }
    /// Destroys an object from a `drop`: there is nobody to tell but the log.
    pub(crate) fn destroy(&self, what: &'static str, opcode: AdminOpcode, id: u32, ids: &Ids) {
        self.destroy_then(what, opcode, id, ids, || ());
    }

    /// The same; `gone` is called when the card has let go of the object, before another can have its number.
    pub(crate) fn destroy_then(&self, what: &'static str, opcode: AdminOpcode, id: u32, ids: &Ids, gone: impl FnOnce()) {
        match self.admin(what, opcode, id, &[]) {
            Ok(_) => {
                gone();
                ids.give(id);
            }
            // With the card everything on it has gone; it has been said once.
            Err(Error::Gone) => log::debug!("{what} {id}: the card is gone"),
            // The number stays taken: the card may still use the object.
            Err(e) => log::warn!("{what} {id}: {e}"),
        }
    }
}

/// How to open a card.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {}

/// An open card function. Cheap to clone; objects keep it alive.
#[derive(Clone)]
pub struct Context {
    pub(crate) inner: Arc<Inner>,
}

impl Context {
    /// Discovers the card behind `device` and starts its admin queue.
    pub fn open(device: Arc<dyn Device>, _config: Config) -> Result<Self> {
        let magic = device.read32(csr::MAGIC);
        if magic != csr::MAGIC_VALUE {
            return Err(Error::NotFerric(magic));
        }
        let version = device.read32(csr::VERSION);
        if version >> 16 != csr::VERSION_VALUE >> 16 {
            return Err(Error::Version { card: version, driver: csr::VERSION_VALUE });
        }
        let [c0, c1, c2, c3] = [csr::CAPS0, csr::CAPS1, csr::CAPS2, csr::CAPS3].map(|r| device.read32(r));
        let byte = |w: u32, n: u32| w >> (8 * n) & 0xff;
        // A card that has stopped answering reads all ones.
        if [c0, c1, c2, c3].contains(&u32::MAX) || [byte(c0, 0), byte(c0, 1), byte(c0, 2), byte(c0, 3), byte(c1, 0), byte(c1, 1)].iter().any(|log| *log > 24) {
            return Err(Error::Gone);
        }
        let caps = Capabilities {
            version,
            qps: 1 << byte(c0, 0),
            cqs: 1 << byte(c0, 1),
            mrs: 1 << byte(c0, 2),
            pds: 1 << byte(c0, 3),
            eqs: 1 << byte(c1, 0),
            functions: 1 << byte(c1, 1),
            width: byte(c1, 2),
            max_sge: byte(c2, 0),
            max_inline: c2 >> 8 & 0xffff,
            features: c3,
        };
        log::info!("Ferric card: {caps:?}");
        let admin = Mutex::new(AdminQueue::new(&device)?);
        Ok(Self {
            inner: Arc::new(Inner {
                admin,
                pd_ids: Ids::new("protection domains", 1..caps.pds),
                // Key 0 is never handed out, so that a zeroed key is refused.
                mr_ids: Ids::new("memory regions", 1..caps.mrs),
                cq_ids: Ids::new("completion queues", 0..caps.cqs),
                // Queue pairs 0 and 1 are the management ones of IBTA.
                qp_ids: Ids::new("queue pairs", 2..caps.qps),
                eq_ids: Ids::new("event queues", 0..caps.eqs),
                srq_ids: Ids::new("shared receive queues", 0..if c3 >> csr::FEATURE_SRQ & 1 == 1 { caps.qps } else { 0 }),
                qps: QpTable::new(caps.qps as usize)?,
                caps,
                device,
            }),
        })
    }

    /// What the card can do.
    pub fn capabilities(&self) -> &Capabilities {
        &self.inner.caps
    }

    /// The device behind this context.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.inner.device
    }

    /// Makes a protection domain.
    pub fn alloc_pd(&self) -> Result<Pd> {
        let id = self.inner.pd_ids.take()?;
        if let Err(e) = self.inner.admin("create PD", AdminOpcode::CreatePd, id, &[]) {
            self.inner.pd_ids.give(id);
            return Err(e);
        }
        Ok(Pd { inner: Arc::new(PdInner { ctx: self.inner.clone(), id }) })
    }

    /// Makes an event queue of `2^log_size` entries that raises MSI-X `vector`.
    pub fn create_eq(&self, log_size: u8, vector: u16) -> Result<EventQueue> {
        EventQueue::create(&self.inner, log_size, vector)
    }

    /// Makes a completion queue of at least `entries`; `eq` receives its events.
    pub fn create_cq(&self, entries: usize, eq: &EventQueue) -> Result<CompletionQueue> {
        CompletionQueue::create(&self.inner, entries, eq)
    }

    /// Runs one raw admin command; for tools and tests that speak docs/admin.md themselves.
    pub fn admin(&self, opcode: AdminOpcode, id: u32, params: &[u32]) -> Result<[u32; 14]> {
        self.inner.admin("raw command", opcode, id, params)
    }

    /// Frames that no block of the card wants go to this raw queue pair's receives (`None`: dropped and counted).
    pub fn set_raw_queue(&self, qp: Option<&QueuePair>) -> Result<()> {
        let word = qp.map_or(0, |q| q.qpn() | 1 << 31);
        self.inner.admin("set port", AdminOpcode::SetPort, 0, &[word]).map(drop)
    }

    /// Reads `count` 64-bit counters from number `first` on (see the gateware's counter table for their names).
    pub fn counters(&self, first: u32, count: u32) -> Result<Vec<u64>> {
        let n = count.next_multiple_of(8);
        let buffer = crate::dma::DmaBuffer::new(&self.inner.device, n as usize * 8)?;
        let iova = buffer.iova();
        self.inner.admin("query counters", AdminOpcode::QueryCounters, 0, &[iova as u32, (iova >> 32) as u32, first, n])?;
        Ok((0..count as usize).map(|i| u64::from_le_bytes(buffer.read(i * 8))).collect())
    }
}

pub(crate) struct PdInner {
    pub(crate) ctx: Arc<Inner>,
    pub(crate) id: u32,
}

impl Drop for PdInner {
    fn drop(&mut self) {
        self.ctx.destroy("destroy PD", AdminOpcode::DestroyPd, self.id, &self.ctx.pd_ids);
    }
}

/// Protection domain: memory and queue pairs of one domain may be used together.
#[derive(Clone)]
pub struct Pd {
    pub(crate) inner: Arc<PdInner>,
}

impl Pd {
    /// Registers memory that this region owns until it is dropped.
    pub fn register(&self, memory: Box<[u8]>, access: Access) -> Result<MemoryRegion> {
        MemoryRegion::register(&self.inner, memory, access, Start::Ordinary)
    }

    /// The same, and windows may be bound to it ([`QueuePair::post_bind`]).
    pub fn register_bindable(&self, memory: Box<[u8]>, access: Access) -> Result<MemoryRegion> {
        MemoryRegion::register(&self.inner, memory, access, Start::Bindable)
    }

    /// The same, but work requests may change the region: its key stops working when a peer to which `access` gives a right invalidates it with
    /// a SEND ([`crate::Completion::invalidated`]).
    pub fn register_fast(&self, memory: Box<[u8]>, access: Access) -> Result<MemoryRegion> {
        MemoryRegion::register(&self.inner, memory, access, Start::Fast)
    }

    /// Registers memory that stays the caller's. Work requests and peers name its first byte `start`, which lies in its page as `ptr` does in
    /// its own; usually it is `ptr` itself. [`crate::Error::Fault`]: some of it is not there, or may not be written though `access` lets the card write.
    ///
    /// # Safety
    /// `ptr..ptr + len` stays allocated until the region is dropped; the card reads and writes it behind the compiler's back.
    pub unsafe fn register_raw(&self, ptr: *mut u8, len: usize, start: u64, access: Access) -> Result<MemoryRegion> {
        // SAFETY: the caller's promise is passed on.
        unsafe { MemoryRegion::register_raw(&self.inner, ptr, len, start, access) }
    }

    /// Registers memory that another device exported as a dma-buf (a GPU's, another card's): `len` bytes of it from `offset` on, which work
    /// requests and peers name from `start` on; `start` lies in its page as `offset` does. The card reaches the bytes on the bus, past this
    /// process and its memory. The caller may close the file; the region holds what it needs.
    ///
    /// Errors: [`crate::Error::Map`] when the IOMMU's driver does not take the buffer.
    pub fn register_dmabuf(&self, buffer: BorrowedFd, offset: u64, len: usize, start: u64, access: Access) -> Result<Region> {
        Region::of_dmabuf(&self.inner, buffer, offset, len, start, access)
    }

    /// Makes a queue pair in state RESET.
    pub fn create_qp(&self, config: &QpConfig, send_cq: &CompletionQueue, recv_cq: &CompletionQueue) -> Result<QueuePair> {
        QueuePair::create(&self.inner, config, None, send_cq, recv_cq, None)
    }

    /// Makes a queue pair in state RESET that takes its receives from `srq`; `config.max_recv` and `max_recv_sge` do not matter.
    /// Its receive completions name the queue pair; `wr_id` is that of the shared queue's request.
    pub fn create_qp_on_srq(&self, config: &QpConfig, send_cq: &CompletionQueue, recv_cq: &CompletionQueue, srq: &SharedReceiveQueue) -> Result<QueuePair> {
        QueuePair::create(&self.inner, config, None, send_cq, recv_cq, Some(srq.inner()))
    }

    /// Makes a shared receive queue (IBTA 11.2.3.1). `eq` gets its events.
    pub fn create_srq(&self, config: &SrqConfig, eq: &EventQueue) -> Result<SharedReceiveQueue> {
        SharedReceiveQueue::create(&self.inner, config, eq)
    }

    /// Makes the general services queue pair, number 1 (IBTA 3.9.1): datagrams of management, with the Q_Key [`crate::ud::GSI_QKEY`]. There
    /// is one per card, and it is the physical function's.
    pub fn create_gsi(&self, config: &QpConfig, send_cq: &CompletionQueue, recv_cq: &CompletionQueue) -> Result<QueuePair> {
        let config = QpConfig { qp_type: QpType::Ud, ..*config };
        QueuePair::create(&self.inner, &config, Some(crate::ud::GSI_QPN), send_cq, recv_cq, None)
    }
}
