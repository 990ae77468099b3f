//! Who looks at memory that completion queues reach without a lock: each poller says when it looks, at the price of two plain stores and a load.
//! Whoever wants to free or change what pollers look at waits until none does. What orders the two sides is `membarrier(2)`, paid by the one that waits.
use std::sync::atomic::{compiler_fence, fence, AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

/// How long no processor keeps a store to itself, by a wide margin: what takes the place of `membarrier(2)` where a kernel or a filter refuses it.
const STORES_ARRIVE: Duration = Duration::from_millis(10);

/// One completion queue's: it is polled by one thread at a time.
#[derive(Default)]
pub(crate) struct Visit {
    /// Somebody looks.
    here: AtomicBool,
    /// Nobody may begin to.
    shut: AtomicBool,
    /// Those who shut others out, one at a time.
    turn: Mutex<()>,
}

/// Lets visitors in again, also after a panic.
struct Shut<'a>(&'a AtomicBool);

impl Drop for Shut<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Visit {
    /// Runs `f`, which may look at what it finds in a shared table.
    #[inline(always)]
    pub(crate) fn during<T>(&self, f: impl FnOnce() -> T) -> T {
        self.here.store(true, Ordering::Relaxed);
        // The processor may still load before it stores: `barrier` makes up for that.
        compiler_fence(Ordering::SeqCst);
        if self.shut.load(Ordering::Acquire) {
            self.wait_outside();
        }
        let out = f();
        self.here.store(false, Ordering::Release);
        out
    }

    #[cold]
    fn wait_outside(&self) {
        loop {
            self.here.store(false, Ordering::Release);
            while self.shut.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            self.here.store(true, Ordering::SeqCst);
            if !self.shut.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    /// Runs `f` while there is no visit.
    pub(crate) fn shut_out<T>(&self, f: impl FnOnce() -> T) -> T {
        let _turn = self.turn.lock().unwrap_or_else(|e| e.into_inner());
        self.shut.store(true, Ordering::SeqCst);
        let _open_again = Shut(&self.shut);
        barrier();
        self.is_over();
        f()
    }

    /// Waits until the visit that may be going on is over: a few instructions, unless the other thread has lost its processor.
    fn is_over(&self) {
        while self.here.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
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

    /// Waits until nobody looks at what has been taken out of the table before.
    pub(crate) fn are_over(&self) {
        barrier();
        self.all().iter().for_each(|visit| visit.is_over());
    }
}

/// Every thread of the process passes a full memory barrier.
fn barrier() {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    // SAFETY: no memory involved.
    let call = |command: libc::c_int| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } == 0;
    if !*REGISTERED.get_or_init(|| call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) || !call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) {
        fence(Ordering::SeqCst);
        std::thread::sleep(STORES_ARRIVE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;

    /// Two plain words that visitors and those who shut them out change; they are equal whenever somebody looks.
    struct Words(UnsafeCell<[u64; 2]>);
    // SAFETY: reached during visits or while there are none.
    unsafe impl Sync for Words {}

    #[test]
    fn nobody_looks_while_visitors_are_shut_out() {
        let (visit, words) = (Visit::default(), Words(UnsafeCell::new([0; 2])));
        let more = || {
            let words: &Words = &words;
            // SAFETY: one at a time, which is what is tested.
            let w = unsafe { &mut *words.0.get() };
            assert_eq!(w[0], w[1]);
            w[0] += 1;
            w[1] += 1;
        };
        std::thread::scope(|s| {
            s.spawn(|| (0..200_000).for_each(|_| visit.during(more)));
            s.spawn(|| (0..500).for_each(|_| visit.shut_out(more)));
            s.spawn(|| (0..500).for_each(|_| visit.shut_out(more)));
        });
        assert_eq!(words.0.into_inner(), [201_000; 2]);
    }
}
