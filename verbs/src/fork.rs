//! fork(2). A child's copies of its parent's objects are of no use to it: calls that need the card give EIO. It opens what it needs itself, and gets
//! EBUSY for a card that its parent still has ([`ferric_driver::forked`]).
//!
//! **Memory.** Registered pages become copy-on-write by a fork, and a card that holds physical addresses must not be left with the child's copy. A
//! served card has no addresses of pages: its server writes by the parent's page tables, as a debugger does, and the parent sees what was written. For
//! a card on the bus the kernel pins pages, and gives the child a copy of pinned ones at the fork since 5.12. So nothing is to be done, and
//! `ibv_is_fork_initialized` says so, but on an older kernel with a card on the bus: there fork is not safe, and `ibv_fork_init` fails.
use crate::config::Config;
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_uint, c_void, CStr};
use std::marker::PhantomData;
use std::sync::OnceLock;

const IBV_FORK_DISABLED: c_uint = 0;
const IBV_FORK_UNNEEDED: c_uint = 2;

/// Held by the thread of events while it holds any lock, and by whoever forks: the child has no such thread to let go of them.
struct Gate(UnsafeCell<libc::pthread_mutex_t>);
// SAFETY: a mutex.
unsafe impl Sync for Gate {}
static GATE: Gate = Gate(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

/// No fork as long as it lives, on the thread that made it.
pub struct NoFork(PhantomData<*const ()>);

unsafe extern "C" fn close_gate() {
    // SAFETY: an initialized mutex, not held by this thread.
    unsafe { libc::pthread_mutex_lock(GATE.0.get()) };
}

unsafe extern "C" fn open_gate() {
    // SAFETY: held by this thread; after a fork, by the thread that it has become.
    unsafe { libc::pthread_mutex_unlock(GATE.0.get()) };
}

impl NoFork {
    /// Waits for a fork that is going on.
    pub fn now() -> Self {
        static ONCE: OnceLock<()> = OnceLock::new();
        ONCE.get_or_init(|| {
            // SAFETY: the handlers lock and unlock.
            unsafe { libc::pthread_atfork(Some(close_gate), Some(open_gate), Some(open_gate)) };
        });
        // SAFETY: unlocked by the drop, on this thread, since it is not Send.
        unsafe { close_gate() };
        Self(PhantomData)
    }
}

impl Drop for NoFork {
    fn drop(&mut self) {
        // SAFETY: locked by `now`.
        unsafe { open_gate() };
    }
}

/// A kernel of this release copies pinned pages when a process forks.
fn copies_pinned_pages(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(5), Some(12))
}

fn state(targets: impl IntoIterator<Item = impl AsRef<str>>, release: &str) -> c_uint {
    let on_the_bus = targets.into_iter().any(|t| !t.as_ref().contains('/'));
    if on_the_bus && !copies_pinned_pages(release) {
        IBV_FORK_DISABLED
    } else {
        IBV_FORK_UNNEEDED
    }
}

/// Whether a program that forks has anything to do: never with served cards.
#[no_mangle]
extern "C" fn ibv_is_fork_initialized() -> c_uint {
    // SAFETY: all zeros are empty strings, and the call fills them in.
    let name = unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(&mut name);
        name
    };
    // SAFETY: the kernel ends its strings.
    let release = unsafe { CStr::from_ptr(name.release.as_ptr()) }.to_string_lossy();
    state(Config::of_process().cards.iter().map(|c| &c.target), &release)
}

#[no_mangle]
extern "C" fn ibv_fork_init() -> c_int {
    if ibv_is_fork_initialized() == IBV_FORK_UNNEEDED {
        0
    } else {
        libc::ENOSYS
    }
}

#[no_mangle]
extern "C" fn ibv_dontfork_range(_base: *mut c_void, _size: usize) -> c_int {
    0
}

#[no_mangle]
extern "C" fn ibv_dofork_range(_base: *mut c_void, _size: usize) -> c_int {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_that_of_cards_and_kernel() {
        let bus = ["/tmp/a.sock", "0000:01:00.0"];
        for (release, safe) in [("5.11.22-generic", false), ("5.12.0", true), ("6.18.44-fc-v657", true), ("4.19.0", false), ("10.0", true), ("nonsense", false)] {
            assert_eq!(copies_pinned_pages(release), safe, "{release}");
            assert_eq!(state(bus, release), if safe { IBV_FORK_UNNEEDED } else { IBV_FORK_DISABLED });
            assert_eq!(state(&bus[..1], release), IBV_FORK_UNNEEDED);
        }
    }
}
