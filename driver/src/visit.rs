//! When memory that completion queues reach without a lock may be freed: each says when it looks, at the price of two plain stores, and who frees
//! waits until none does. What orders the two sides is `membarrier(2)`, paid by the one that frees.
use std::sync::atomic::{compiler_fence, AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// One completion queue's: it is polled by one thread at a time.
#[derive(Default)]
pub(crate) struct Visit(AtomicBool);

impl Visit {
    /// Runs `f`, which may look at what it finds in a shared table.
    #[inline(always)]
    pub(crate) fn during<T>(&self, f: impl FnOnce() -> T) -> T {
        self.0.store(true, Ordering::Relaxed);
        // The processor may still load before it stores: `barrier` makes up for that.
        compiler_fence(Ordering::SeqCst);
        let out = f();
        self.0.store(false, Ordering::Release);
        out
    }
}

/// Those who look at a table.
#[derive(Default)]
pub(crate) struct Visits(Mutex<Vec<Arc<Visit>>>);

impl Visits {
    fn all(&self) -> MutexGuard<'_, Vec<Arc<Visit>>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// One more.
    pub(crate) fn one(&self) -> Arc<Visit> {
        let visit = Arc::new(Visit::default());
        self.all().push(visit.clone());
        visit
    }

    /// It looks no more.
    pub(crate) fn no_more(&self, visit: &Arc<Visit>) {
        self.all().retain(|v| !Arc::ptr_eq(v, visit));
    }

    /// Waits until nobody looks at what has been taken out of the table before. False: this cannot be known here, the memory must stay.
    pub(crate) fn are_over(&self) -> bool {
        if !barrier() {
            return false;
        }
        for visit in self.all().iter() {
            // A few instructions, unless the other thread has lost its processor.
            while visit.0.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
        true
    }
}

/// Every thread of the process passes a full memory barrier. False: this kernel has no such call, or forbids it.
fn barrier() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    // SAFETY: no memory involved.
    let call = |command: libc::c_int| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } == 0;
    *REGISTERED.get_or_init(|| call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) && call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
}
