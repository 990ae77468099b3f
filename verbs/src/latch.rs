//! The lock of the data path: one exchange to take it, a plain store to give it back. It is held for a few instructions, or for a command to the card.
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Turns of the processor, then of other threads, before the wait becomes sleep.
const SPINS: u32 = 100;
const YIELDS: u32 = 1000;
const NAP: Duration = Duration::from_micros(50);

/// A value that one thread at a time may change.
pub struct Latch<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: as a mutex.
unsafe impl<T: Send> Send for Latch<T> {}
// SAFETY: the value is reached through a guard, of which there is one at a time.
unsafe impl<T: Send> Sync for Latch<T> {}

/// The right to change the value.
pub struct Guard<'a, T>(&'a Latch<T>);

impl<T> Latch<T> {
    /// Around a value.
    pub const fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits until nobody else has it.
    #[inline(always)]
    pub fn lock(&self) -> Guard<'_, T> {
        if self.taken.swap(true, Ordering::Acquire) {
            self.wait();
        }
        Guard(self)
    }

    #[cold]
    fn wait(&self) {
        let mut turn = 0;
        while self.taken.load(Ordering::Relaxed) || self.taken.swap(true, Ordering::Acquire) {
            match turn {
                0..SPINS => std::hint::spin_loop(),
                SPINS..YIELDS => std::thread::yield_now(),
                _ => std::thread::sleep(NAP),
            }
            turn = turn.saturating_add(1);
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this is the only guard.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this is the only guard.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let sum = Latch::new([0u64; 2]);
        std::thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    (0..20_000).for_each(|_| {
                        let mut both = sum.lock();
                        assert_eq!(both[0], both[1]);
                        both[0] += 1;
                        both[1] += 1;
                    })
                });
            }
        });
        assert_eq!(*sum.lock(), [60_000; 2]);
    }
}
