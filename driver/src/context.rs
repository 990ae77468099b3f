//! An open card function and its protection domains: what programs make objects with.
use crate::cq::CompletionQueue;
use crate::device::Device;
use crate::eq::EventQueue;
use crate::error::{Error, Result};
use crate::function::{Inner, PdInner};
use crate::mr::{Access, MemoryRegion, Region, Start};
use crate::qp::{QpConfig, QueuePair};
use crate::srq::{SharedReceiveQueue, SrqConfig};
use crate::types::{Capabilities, QpType};
use ferric_abi::codes::{AdminOpcode, ObjectKind};
use ferric_abi::csr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

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
        Ok(Self { inner: Arc::new(Inner::open(device)?) })
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

    /// Frames to the functions' MAC addresses and to groups that no block of the card wants go to this raw queue pair's receives (`None`: dropped and counted).
    /// Those for other stations are dropped before. Of the physical function those that came through no tunnel, or its own; of another one those that came through its tunnel. Errors: a function
    /// that may have no raw queue pair ([`crate::TunnelConfig::raw`]) names one.
    pub fn set_raw_queue(&self, qp: Option<&QueuePair>) -> Result<()> {
        self.set_port(qp.map_or(0, |q| q.qpn() | csr::PORT_RAW))
    }

    /// The same with frames for every station: promiscuous mode, until the next [`Context::set_raw_queue`]. The physical function's only.
    pub fn set_promiscuous_queue(&self, qp: &QueuePair) -> Result<()> {
        self.set_port(qp.qpn() | csr::PORT_RAW | csr::PORT_PROMISCUOUS)
    }

    fn set_port(&self, word: u32) -> Result<()> {
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

    /// Reads `count` 64-bit counters from number `first` on (see the gateware's counter table for their names). The physical function reads what all functions
    /// together have, every other one what is its own: of what is nobody's in particular (frames, DMA) nothing.
    pub fn counters(&self, first: u32, count: u32) -> Result<Vec<u64>> {
        self.read_counters(0, first, count)
    }

    /// The same of function `function` by itself. The physical function may ask for any, which is how it gets its own, the others for themselves.
    pub fn counters_of(&self, function: u32, first: u32, count: u32) -> Result<Vec<u64>> {
        if function >> 12 != 0 {
            return Err(Error::Invalid("function numbers have 12 bits"));
        }
        self.read_counters(1 << 31 | function, first, count)
    }

    fn read_counters(&self, whose: u32, first: u32, count: u32) -> Result<Vec<u64>> {
        let n = count.next_multiple_of(8);
        let buffer = crate::dma::DmaBuffer::new(&self.inner.device, n as usize * 8)?;
        let iova = buffer.iova();
        self.inner.admin("query counters", AdminOpcode::QueryCounters, 0, &[iova as u32, (iova >> 32) as u32, first, n, whose])?;
        Ok((0..count as usize).map(|i| u64::from_le_bytes(buffer.read(i * 8))).collect())
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
        unsafe { MemoryRegion::register_raw(&self.inner, ptr, len, start, access, Start::Ordinary) }
    }

    /// The same, and windows may be bound to it ([`QueuePair::stage_bind`]).
    ///
    /// # Safety
    /// As [`Pd::register_raw`].
    pub unsafe fn register_raw_bindable(&self, ptr: *mut u8, len: usize, start: u64, access: Access) -> Result<MemoryRegion> {
        // SAFETY: the caller's promise is passed on.
        unsafe { MemoryRegion::register_raw(&self.inner, ptr, len, start, access, Start::Bindable) }
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

    /// Makes the function's general services queue pair (IBTA 3.9.1): datagrams of management, with the Q_Key [`crate::ud::GSI_QKEY`]. There
    /// is one per function. Others know it as number 1 ([`crate::ud::GSI_QPN`]), at the function's MAC addresses; the number that it has here and in
    /// completions is a number of the card. Of a function but the physical one the card wants its source address to be one that
    /// [`Context::set_address`] has made the function's.
    pub fn create_gsi(&self, config: &QpConfig, send_cq: &CompletionQueue, recv_cq: &CompletionQueue) -> Result<QueuePair> {
        let config = QpConfig { qp_type: QpType::Ud, ..*config };
        QueuePair::create(&self.inner, &config, Some(self.inner.ctx.gsi), send_cq, recv_cq, None)
    }
}
