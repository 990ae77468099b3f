//! Lives of queue pairs: what completion queues find out about a queue pair by its number, from its making or a reset to the next or its end.
use crate::alloc::boxed;
use crate::book::Numbers;
use crate::error::Result;
use crate::visit::Visits;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicU64, Ordering};
use std::sync::Arc;

/// What completion queues need to know of a queue: the program's numbers and how far it is done.
pub(crate) struct Half {
    /// A power of two of them, 65536 at most.
    wr_ids: Box<[AtomicU64]>,
    /// So many less one.
    mask: u16,
    pub(crate) posted: AtomicU16,
    pub(crate) done: AtomicU16,
}

impl Half {
    fn new(log_size: u8) -> Result<Self> {
        Ok(Self { wr_ids: boxed(1 << log_size, |_| AtomicU64::new(0))?, mask: ((1u32 << log_size) - 1) as u16, posted: AtomicU16::new(0), done: AtomicU16::new(0) })
    }

    /// Where the number of request `index` stands.
    #[inline(always)]
    pub(crate) fn wr_id(&self, index: u16) -> &AtomicU64 {
        // SAFETY: `new` makes one more than `mask`.
        unsafe { self.wr_ids.get_unchecked(usize::from(index & self.mask)) }
    }
}

/// One life of a queue pair, from its making or a reset to the next or its end.
pub(crate) struct Shared {
    pub(crate) send: Half,
    pub(crate) recv: Half,
    /// Receives come from there.
    srq: Option<Arc<Numbers>>,
    /// Receives complete in this life: it has left INIT.
    pub(crate) receives: AtomicBool,
}

impl Shared {
    /// With send and receive rings of these sizes.
    pub(crate) fn new(log_send: u8, log_recv: u8, srq: Option<Arc<Numbers>>) -> Result<Box<Self>> {
        Ok(Box::new(Self { send: Half::new(log_send)?, recv: Half::new(log_recv)?, srq, receives: AtomicBool::new(false) }))
    }
}

/// Queue pairs by number, so that a completion finds its work request without a lock.
pub(crate) struct QpTable {
    slots: Box<[AtomicPtr<Shared>]>,
    /// Stands where there is no queue pair: nothing was posted there, so nothing completes.
    nobody: Box<Shared>,
    /// Whoever looks at it.
    pub(crate) visits: Visits,
}

impl QpTable {
    pub(crate) fn new(n: usize) -> Result<Self> {
        let half = || Half::new(0);
        let nobody = Box::new(Shared { send: half()?, recv: half()?, srq: None, receives: AtomicBool::new(false) });
        let place = (&raw const *nobody).cast_mut();
        Ok(Self { slots: boxed(n, |_| AtomicPtr::new(place))?, nobody, visits: Visits::default() })
    }

    /// A life begins; that of an earlier one ends, and what completion queues needed of it is freed.
    pub(crate) fn set(&self, qpn: u32, shared: Box<Shared>) -> *const Shared {
        let raw = Box::into_raw(shared);
        self.replace(qpn, raw);
        raw
    }

    /// A queue pair is no more.
    pub(crate) fn remove(&self, qpn: u32) {
        self.replace(qpn, (&raw const *self.nobody).cast_mut());
    }

    fn replace(&self, qpn: u32, new: *mut Shared) {
        let old = self.slots[qpn as usize].swap(new, Ordering::AcqRel);
        if !std::ptr::eq(old, &*self.nobody) {
            self.visits.are_over();
            // SAFETY: from Box::into_raw in `set`; out of the table, and whoever found it there before has finished.
            drop(unsafe { Box::from_raw(old) });
        }
    }

    /// Marks everything up to `index` done and returns the program's number of that request. `None`: the completion belongs to an
    /// earlier life of the queue pair, before a reset or its end. Only during one of [`QpTable::visits`].
    #[inline(always)]
    pub(crate) fn complete(&self, qpn: u32, is_recv: bool, index: u16) -> Option<u64> {
        let ptr = self.slots.get(qpn as usize)?.load(Ordering::Acquire);
        // SAFETY: what is in the table during a visit is valid until its end.
        let shared = unsafe { &*ptr };
        if let (true, Some(srq)) = (is_recv, &shared.srq) {
            return if shared.receives.load(Ordering::Acquire) { srq.complete(index) } else { None };
        }
        let half = if is_recv { &shared.recv } else { &shared.send };
        let done = half.done.load(Ordering::Acquire);
        if index.wrapping_sub(done) >= half.posted.load(Ordering::Acquire).wrapping_sub(done) {
            return None;
        }
        half.done.store(index.wrapping_add(1), Ordering::Release);
        Some(half.wr_id(index).load(Ordering::Relaxed))
    }
}

impl Drop for QpTable {
    fn drop(&mut self) {
        for slot in self.slots.iter() {
            let ptr = slot.load(Ordering::Acquire);
            if !std::ptr::eq(ptr, &*self.nobody) {
                // SAFETY: from Box::into_raw, nobody else is left.
                drop(unsafe { Box::from_raw(ptr) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(numbers: &Arc<Numbers>) -> Box<Shared> {
        let half = || Half::new(4).unwrap();
        Box::new(Shared { send: half(), recv: half(), srq: Some(numbers.clone()), receives: AtomicBool::new(true) })
    }

    #[test]
    fn memory_of_a_destroyed_queue_pair_comes_back() {
        let (table, numbers) = (QpTable::new(8).unwrap(), Arc::new(Numbers::new(8, 4).unwrap()));
        let visit = table.visits.one();
        for _ in 0..3 {
            table.set(5, shared(&numbers));
            assert_eq!(Arc::strong_count(&numbers), 2);
            // A new life in the same place.
            table.set(5, shared(&numbers));
            assert_eq!(Arc::strong_count(&numbers), 2);
            table.remove(5);
            assert_eq!(Arc::strong_count(&numbers), 1, "it is still held");
            assert_eq!(visit.during(|| table.complete(5, false, 0)), None);
        }
    }

    #[test]
    fn completions_and_destruction_at_once() {
        let (table, numbers) = (QpTable::new(8).unwrap(), Arc::new(Numbers::new(8, 4).unwrap()));
        let visits = [table.visits.one(), table.visits.one()];
        let (stop, found) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|s| {
            for visit in &visits {
                s.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        found.fetch_add(visit.during(|| table.complete(5, false, 3)).is_some() as u64, Ordering::Relaxed);
                    }
                });
            }
            let mut rounds = 0;
            while rounds < 2000 || found.load(Ordering::Relaxed) < 100 {
                let one = shared(&numbers);
                one.send.posted.store(4, Ordering::Release);
                table.set(5, one);
                if rounds % 8 == 0 {
                    std::thread::yield_now();
                }
                table.remove(5);
                rounds += 1;
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(Arc::strong_count(&numbers), 1, "all have come back");
    }
}
