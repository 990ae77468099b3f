//! Shared receive queues (IBTA volume 1, 10.2.9 and 11.2.3): one queue of receives for any number of queue pairs.
//!
//! Each queue pair takes the next request at the first packet of a message, so completions come in any order. See
//! docs/decisions/0013-shared-receive-rings.md.
use crate::alloc::{boxed, room};
use crate::context::{Inner, PdInner};
use crate::eq::EventQueue;
use crate::error::{Error, Result};
use crate::qp::RecvRequest;
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

/// A request: its index in the ring, the program's number, and where its copy stands.
#[derive(Clone, Copy, Default)]
struct Posted {
    index: u16,
    number: u64,
    copy: u16,
}

/// The program's numbers of outstanding requests.
struct Book {
    /// Per slot: its request, and whether that is outstanding.
    slots: Box<[(Posted, bool)]>,
    /// Outstanding ones whose slot has been used again.
    late: Vec<Posted>,
    /// Places for copies that no outstanding request has. There are as many as slots, hence always one more than are taken.
    copies: Vec<u16>,
    outstanding: usize,
    max_wr: usize,
}

impl Book {
    fn new(slots: usize, max_wr: usize) -> Result<Self> {
        // `late` never grows beyond what is outstanding: no allocation later.
        let mut copies = room(slots)?;
        copies.extend((0..slots as u16).rev());
        Ok(Self { slots: boxed(slots, |_| (Posted::default(), false))?, late: room(max_wr)?, copies, outstanding: 0, max_wr })
    }

    fn place(&self, index: u16) -> usize {
        index as usize & (self.slots.len() - 1)
    }

    fn check_room(&self, index: u16) -> Result<()> {
        // One that has been outstanding for 65,536 others stands in the way of its own index.
        if self.outstanding >= self.max_wr || self.late.iter().any(|old| old.index == index) {
            return Err(Error::QueueFull);
        }
        Ok(())
    }

    /// Where the next request's copy goes.
    fn next_copy(&self) -> Result<u16> {
        self.copies.last().copied().ok_or(Error::QueueFull)
    }

    fn post(&mut self, index: u16, number: u64) {
        let (place, copy) = (self.place(index), self.copies.pop().unwrap_or_default());
        let (old, live) = std::mem::replace(&mut self.slots[place], (Posted { index, number, copy }, true));
        if live {
            self.late.push(old);
        }
        self.outstanding += 1;
    }

    fn complete(&mut self, index: u16) -> Option<u64> {
        let place = self.place(index);
        let (found, live) = &mut self.slots[place];
        let posted = if *live && found.index == index {
            *live = false;
            *found
        } else {
            let at = self.late.iter().position(|old| old.index == index)?;
            self.late.swap_remove(at)
        };
        self.copies.push(posted.copy);
        self.outstanding -= 1;
        Some(posted.number)
    }
}

pub(crate) struct SrqInner {
    pd: Arc<PdInner>,
    id: u32,
    numbers: Arc<Numbers>,
    /// Here, for it must live as long as a queue pair may take receives from it.
    ring: Mutex<Ring>,
}

/// What completion queues need to know of a shared receive queue. They are those of all its queue pairs, hence the lock.
pub(crate) struct Numbers(Mutex<Book>);

impl Numbers {
    pub(crate) fn new(slots: usize, max_wr: usize) -> Result<Self> {
        Ok(Self(Mutex::new(Book::new(slots, max_wr)?)))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The program's number of the request with this index; `None`: there is none outstanding.
    pub(crate) fn complete(&self, index: u16) -> Option<u64> {
        self.book().complete(index)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_in_any_order_find_their_numbers() {
        let mut book = Book::new(128, 64).unwrap();
        let mut producer = 0xffc0u16;
        for n in 0..64 {
            book.check_room(producer).unwrap();
            book.post(producer, n);
            producer = producer.wrapping_add(1);
        }
        assert!(matches!(book.check_room(producer), Err(Error::QueueFull)));
        // All but number 5 complete, last one first; then the ring goes round twice.
        for n in (0..64).rev().filter(|n| *n != 5) {
            assert_eq!(book.complete(0xffc0u16.wrapping_add(n)), Some(n.into()));
        }
        for n in 64..300u64 {
            book.check_room(producer).unwrap();
            book.post(producer, n);
            assert_eq!(book.complete(producer), Some(n));
            producer = producer.wrapping_add(1);
        }
        assert_eq!((book.outstanding, book.late.len()), (1, 1));
        assert_eq!(book.complete(producer), None);
        assert_eq!((book.complete(0xffc5), book.complete(0xffc5)), (Some(5), None));
        assert_eq!((book.outstanding, book.late.len()), (0, 0));
    }

    #[test]
    fn an_index_is_not_used_while_it_is_outstanding() {
        let mut book = Book::new(128, 64).unwrap();
        for index in 0..=u16::MAX {
            book.check_room(index).unwrap();
            book.post(index, index.into());
            if index != 0 {
                assert_eq!(book.complete(index), Some(index.into()));
            }
        }
        assert!(matches!(book.check_room(0), Err(Error::QueueFull)));
        assert_eq!(book.complete(0), Some(0));
        book.check_room(0).unwrap();
    }
}
