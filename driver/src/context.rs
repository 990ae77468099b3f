//! An open card function: discovery, object numbers, protection domains.
use crate::admin::AdminQueue;
use crate::cq::CompletionQueue;
use crate::device::Device;
use crate::eq::EventQueue;
use crate::error::{Error, Result};
use crate::ids::{range, Ids};
use crate::mr::{Access, MemoryRegion, Region, Start};
use crate::qp::{QpConfig, QpTable, QueuePair};
use crate::srq::{SharedReceiveQueue, SrqConfig};
use crate::types::{Capabilities, QpType};
use ferric_abi::codes::{AdminOpcode, AdminStatus, ObjectKind};
use ferric_abi::csr;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

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
    /// Queue pairs of the whole card: shared receive queues have the receive rings behind theirs.
    pub(crate) all_qps: u32,
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
    /// Discovers the card behind `device`, starts its admin queue and asks which object numbers are the function's.
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
        let logs = [byte(c0, 0), byte(c0, 1), byte(c0, 2), byte(c0, 3), byte(c1, 0), byte(c0, 0)];
        let mut admin = AdminQueue::new(&device)?;
        let (ranges, function) = match admin.execute("query ranges", AdminOpcode::QueryRanges, 0, &[0]) {
            Ok(words) => (std::array::from_fn(|kind| range(words[kind]).0), words[logs.len()]),
            // A card of one function.
            Err(Error::Admin { status: AdminStatus::BadOpcode, .. }) => (logs.map(|log| 0..1 << log), 0),
            Err(e) => return Err(e),
        };
        let [qps, cqs, mrs, pds, eqs, srqs] = &ranges;
        let caps = Capabilities {
            version,
            qps: qps.len() as u32,
            cqs: cqs.len() as u32,
            mrs: mrs.len() as u32,
            pds: pds.len() as u32,
            eqs: eqs.len() as u32,
            function,
            functions: 1 << byte(c1, 1),
            width: byte(c1, 2),
            max_sge: byte(c2, 0),
            max_inline: c2 >> 8 & 0xffff,
            features: c3,
        };
        log::info!("Ferric card: {caps:?}");
        let from = |first: u32, range: &std::ops::Range<u32>| range.start.max(first)..range.end;
        Ok(Self {
            inner: Arc::new(Inner {
                admin: Mutex::new(admin),
                pd_ids: Ids::new("protection domains", ObjectKind::Pd, from(1, pds)),
                // Key 0 is never handed out, so that a zeroed key is refused.
                mr_ids: Ids::new("memory regions", ObjectKind::Mr, from(1, mrs)),
                cq_ids: Ids::new("completion queues", ObjectKind::Cq, cqs.clone()),
                // Queue pairs 0 and 1 are the management ones of IBTA.
                qp_ids: Ids::new("queue pairs", ObjectKind::Qp, from(2, qps)),
                eq_ids: Ids::new("event queues", ObjectKind::Eq, eqs.clone()),
                srq_ids: Ids::new("shared receive queues", ObjectKind::Srq, if c3 >> csr::FEATURE_SRQ & 1 == 1 { srqs.clone() } else { 0..0 }),
                qps: QpTable::new(1 << logs[0])?,
                all_qps: 1 << logs[0],
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
        let id = self.inner.create("create PD", AdminOpcode::CreatePd, &self.inner.pd_ids, &[])?;
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

    /// Gives function `function` (not 0, which has all that the others do not use) `2^log` numbers from `first` on for its objects of a kind. Its driver
    /// learns of them when it opens the function. Only the physical function may do this, and only while that function has not made use of its range.
    pub fn set_range(&self, function: u32, kind: ObjectKind, first: u32, log: u32) -> Result<()> {
        if first >> 24 != 0 || log > 24 {
            return Err(Error::Invalid("object numbers have 24 bits"));
        }
        self.inner.admin("set range", AdminOpcode::SetRange, function, &[kind as u32, log << 24 | first]).map(drop)
    }

    /// Reads `count` 64-bit counters from number `first` on (see the gateware's counter table for their names). They are the whole card's, and the physical function's to read.
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
