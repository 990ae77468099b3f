//! fork(2): a child has its parent's memory and descriptors, but not its card.
//!
//! A child that spoke on its parent's socket would take the parent's answers; a child that did nothing would keep the card taken after its parent's
//! death. So in a child every descriptor that reaches a card becomes one whose other end is closed, and every device of the parent's is gone for it.
//! What the child opens itself is its own.
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::OnceLock;

/// Descriptors of all devices of a process at most.
const MOST: usize = 128;
const NONE: RawFd = -1;

/// What reaches a card. Looked through by the child's only thread, where a lock may be held by one that it does not have.
static HELD: [AtomicI32; MOST] = [const { AtomicI32::new(NONE) }; MOST];
/// Forks between the process that opened the first device and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// A socket whose other end is closed.
static DEAD: AtomicI32 = AtomicI32::new(NONE);

/// Descriptors that reach a card, as long as this lives, and the process whose they are.
#[derive(Debug)]
pub struct Held {
    fds: Vec<RawFd>,
    forks: u32,
}

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    let dead = DEAD.load(Ordering::Relaxed);
    for slot in &HELD {
        let fd = slot.swap(NONE, Ordering::Relaxed);
        if fd != NONE {
            // SAFETY: replaces a descriptor by another: whoever owns the number closes that one. A system call, which a child of a process with
            // threads may make.
            unsafe { libc::dup3(dead, fd, libc::O_CLOEXEC) };
        }
    }
}

/// From now on children are looked after.
fn watch() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        if let Ok((dead, _closed)) = UnixStream::pair() {
            DEAD.store(dead.into_raw_fd(), Ordering::Relaxed);
        }
        // SAFETY: the handler takes no lock and makes system calls only.
        if DEAD.load(Ordering::Relaxed) == NONE || unsafe { libc::pthread_atfork(None, None, Some(in_child)) } != 0 {
            log::warn!("children of this process will share its cards");
        }
    });
}

impl Held {
    /// These descriptors reach a card. They are closed after this is dropped.
    pub fn new(fds: &[&dyn AsRawFd]) -> Self {
        watch();
        let fds: Vec<RawFd> = fds.iter().map(|f| f.as_raw_fd()).collect();
        for fd in &fds {
            let taken = HELD.iter().any(|slot| slot.compare_exchange(NONE, *fd, Ordering::Relaxed, Ordering::Relaxed).is_ok());
            if !taken {
                log::warn!("more than {MOST} descriptors: a child of this process will share one");
            }
        }
        Self { fds, forks: FORKS.load(Ordering::Relaxed) }
    }

    /// This process is the one that opened them.
    pub fn is_ours(&self) -> bool {
        self.forks == FORKS.load(Ordering::Relaxed)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // In a child the numbers may be those of something of its own.
        if self.is_ours() {
            for fd in &self.fds {
                let _ = HELD.iter().any(|slot| slot.compare_exchange(*fd, NONE, Ordering::Relaxed, Ordering::Relaxed).is_ok());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::time::Duration;

    /// Runs `f` in a child of fork; its answer.
    fn child(f: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child makes system calls and ends.
        unsafe {
            let pid = libc::fork();
            if pid == 0 {
                libc::_exit(i32::from(!f()));
            }
            let mut status = -1;
            libc::waitpid(pid, &mut status, 0);
            status == 0
        }
    }

    #[test]
    fn a_child_has_nothing_of_its_parents() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let held = Held::new(&[&ours]);
        assert!(held.is_ours());
        assert!(child(|| {
            let mut one = [0];
            let closed = matches!((&ours).read(&mut one), Ok(0)) && (&ours).write(&one).is_err();
            // What it opens itself is its own, for its own children to lose.
            let (mine, _other) = UnixStream::pair().unwrap();
            let new = Held::new(&[&mine]);
            closed && !held.is_ours() && new.is_ours() && child(|| !new.is_ours() && matches!((&mine).read(&mut [0]), Ok(0)))
        }));
        // The parent's works, and its end is seen although a child of it lives.
        ours.write_all(b"x").unwrap();
        theirs.read_exact(&mut [0]).unwrap();
        let mut wait = [0; 2];
        // SAFETY: room for two descriptors; a child that waits for its parent and ends.
        let idle = unsafe {
            libc::pipe2(wait.as_mut_ptr(), libc::O_CLOEXEC);
            let pid = libc::fork();
            if pid == 0 {
                libc::close(wait[1]);
                libc::read(wait[0], [0u8; 1].as_mut_ptr().cast(), 1);
                libc::_exit(0);
            }
            pid
        };
        drop((held, ours));
        theirs.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(theirs.read(&mut [0]).unwrap(), 0, "the idle child keeps it open");
        // SAFETY: the pipe's ends are ours; the child is ours.
        unsafe {
            libc::close(wait[1]);
            libc::close(wait[0]);
            libc::waitpid(idle, &mut 0, 0);
        }
    }
}
