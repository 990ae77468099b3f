//! Shared receive queues (IBTA volume 1, 10.2.9 and 11.2.3): one queue of receives for any number of queue pairs.
//!
//! Each queue pair takes the next request at the first packet of a message, so completions come in any order. See
//! docs/decisions/0013-shared-receive-rings.md.
use crate::book::Numbers;
use crate::eq::EventQueue;
use crate::error::{Error, Result};
use crate::function::{Inner, PdInner};
use crate::request::RecvRequest;
use crate::ring::Ring;
use ferric_abi::codes::AdminOpcode;
use ferric_abi::context::RingCtx;
use ferric_abi::host::{RecvHead, Sge, RECV_FETCHES};
use std::sync::{Arc, Mutex, MutexGuard};

/// What a shared receive queue is made with.
#[derive(Clone, Copy, Debug)]
pub struct SrqConfig {
    /// Receives that may be outstanding, at most 32,704.
    pub max_wr: usize,
    /// Scatter/gather entries of each, at most 31.
    pub max_sge: usize,
}

impl Default for SrqConfig {
    fn default() -> Self {
        Self { max_wr: 256, max_sge: 4 }
    }
}

/// What the card holds of a shared receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrqStatus {
    /// Receives posted and not taken by a message.
    pub posted: u16,
    /// The armed limit, 0: none.
    pub limit: u16,
    /// A request could not be fetched: queue pairs that want one go to error.
    pub error: bool,
}

pub(crate) struct SrqInner {
    pd: Arc<PdInner>,
    id: u32,
    numbers: Arc<Numbers>,
    /// Here, for it must live as long as a queue pair may take receives from it.
    ring: Mutex<Ring>,
}

impl SrqInner {
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn numbers(&self) -> &Arc<Numbers> {
        &self.numbers
    }
}

impl Drop for SrqInner {
    fn drop(&mut self) {
        self.pd.ctx.destroy("destroy SRQ", AdminOpcode::DestroySrq, self.id, &self.pd.ctx.srq_ids);
    }
}

/// A shared receive queue. The card's object lives until this value and all queue pairs on it are gone.
pub struct SharedReceiveQueue {
    inner: Arc<SrqInner>,
}

impl SharedReceiveQueue {
    pub(crate) fn create(pd: &Arc<PdInner>, config: &SrqConfig, eq: &EventQueue) -> Result<Self> {
        let ctx: &Inner = &pd.ctx;
        // A slot may be written anew when its request has been read, which is certain of one that RECV_FETCHES others came behind. The card may read a request
        // once more until it has completed: that is what the copies are for.
        if config.max_wr == 0 || config.max_wr > (1 << 15) - RECV_FETCHES {
            return Err(Error::Invalid("a shared receive queue has 1 to 32704 requests"));
        }
        let ring = Ring::with_copies(ctx, config.max_wr + RECV_FETCHES, RecvHead::BYTES + config.max_sge * Sge::BYTES)?;
        let numbers = Arc::new(Numbers::new(1 << ring.log_size, config.max_wr)?);
        let [lo, hi, attributes] = ring.context();
        let id = ctx.create("create SRQ", AdminOpcode::CreateSrq, &ctx.srq_ids, &[pd.id, eq.id(), lo, hi, attributes])?;
        Ok(Self { inner: Arc::new(SrqInner { pd: pd.clone(), id, numbers, ring: Mutex::new(ring) }) })
    }

    pub(crate) fn inner(&self) -> &Arc<SrqInner> {
        &self.inner
    }

    fn ctx(&self) -> &Inner {
        &self.inner.pd.ctx
    }

    /// Number of the queue: what its events name.
    pub fn id(&self) -> u32 {
        self.inner.id
    }

    /// Scatter/gather entries that fit into a request: at least as many as it was made for.
    pub fn max_sge(&self) -> usize {
        let ring = self.inner.ring.lock().unwrap_or_else(|e| e.into_inner());
        (ring.slot_bytes - RecvHead::BYTES) / Sge::BYTES
    }

    /// Posts a receive. [`Error::QueueFull`]: `max_wr` are outstanding.
    pub fn post_srq_recv(&self, wr: &RecvRequest) -> Result<()> {
        self.posting().add(wr)
    }

    /// Begins to post several receives, of which the card hears when the value is dropped. Other threads that post wait so long.
    pub fn posting(&self) -> Posting<'_> {
        let ring = self.inner.ring.lock().unwrap_or_else(|e| e.into_inner());
        Posting { srq: self, rung: ring.producer, ring }
    }

    /// Arms the limit (IBTA 11.2.3.3): one `EventKind::SrqLimit` when fewer than `limit` receives are left, at once if they are. 0 disarms.
    pub fn modify_srq(&self, limit: u16) -> Result<()> {
        if usize::from(limit) > self.inner.numbers.book().max_wr {
            return Err(Error::Invalid("a limit above the size of the queue"));
        }
        self.ctx().admin("modify SRQ", AdminOpcode::ModifySrq, self.inner.id, &[limit.into()]).map(drop)
    }

    /// What the card holds (IBTA 11.2.3.2).
    pub fn query_srq(&self) -> Result<SrqStatus> {
        let r = self.ctx().admin("query SRQ", AdminOpcode::QuerySrq, self.inner.id, &[])?;
        let mut row = RingCtx::default();
        for (word, value) in [(2, r[0]), (4, r[1]), (5, r[2]), (6, r[3])] {
            row.0[4 * word..4 * word + 4].copy_from_slice(&value.to_le_bytes());
        }
        Ok(SrqStatus { posted: row.producer().wrapping_sub(row.fetch()), limit: row.limit(), error: row.error() })
    }

    /// Destroys it; gives it back while queue pairs take receives from it.
    pub fn destroy_srq(self) -> std::result::Result<(), Self> {
        if Arc::strong_count(&self.inner) > 1 {
            return Err(self);
        }
        Ok(())
    }
}

/// Receives that are being posted to a shared receive queue; see [`SharedReceiveQueue::posting`].
pub struct Posting<'a> {
    srq: &'a SharedReceiveQueue,
    ring: MutexGuard<'a, Ring>,
    /// The card has been told of those up to here.
    rung: u16,
}

impl Posting<'_> {
    /// One more. [`Error::QueueFull`]: `max_wr` are outstanding.
    pub fn add(&mut self, wr: &RecvRequest) -> Result<()> {
        let (index, numbers) = (self.ring.producer, &self.srq.inner.numbers);
        let copy = {
            let book = numbers.book();
            book.check_room(index)?;
            book.next_copy()?
        };
        self.ring.write_shared_receive(wr.sges, copy)?;
        numbers.book().post(index, wr.wr_id);
        self.ring.producer = index.wrapping_add(1);
        Ok(())
    }
}

impl Drop for Posting<'_> {
    fn drop(&mut self) {
        if self.ring.producer != self.rung {
            // Rings of shared receive queues follow those of the queue pairs.
            let ctx = self.srq.ctx();
            self.ring.ring_receive_bell(ctx, ctx.all_qps + self.srq.inner.id);
        }
    }
}
