//! Who may use a function: one client at a time. It is the client's hello that takes it; a connection alone holds nothing.
use super::RESET_WAIT;
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Use {
    #[default]
    Free,
    Client,
    /// The client has gone, its traces are being removed.
    Cleaning,
}

#[derive(Debug, Default)]
struct State {
    used: Use,
    /// The client's connection.
    stream: Option<UnixStream>,
}

impl State {
    /// The client is there no more, or will not be at once: its session need not know yet.
    fn leaves(&self) -> bool {
        let hung_up = |stream: &UnixStream| {
            let mut poll = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 };
            // SAFETY: one valid entry.
            unsafe { libc::poll(&mut poll, 1, 0) == 1 }
        };
        self.used == Use::Cleaning || self.used == Use::Client && self.stream.as_ref().is_some_and(hung_up)
    }
}

/// A function's door.
#[derive(Debug, Default)]
pub struct Door {
    state: Mutex<State>,
    changed: Condvar,
    closing: Arc<AtomicBool>,
}

impl Door {
    /// A door that is `closing` once the server ends.
    pub fn new(closing: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self { closing, ..Self::default() })
    }

    /// The server ends: nobody waits any more.
    pub fn closing(&self) -> Arc<AtomicBool> {
        self.closing.clone()
    }

    /// Lets the client at the other end of `stream` in. While the last one's traces are removed it waits; it is refused (`None`) while there is one.
    pub fn enter(self: &Arc<Self>, stream: &UnixStream) -> Option<Inside> {
        let state = self.state();
        let waits = |s: &mut State| s.leaves() && !self.closing.load(Ordering::Relaxed);
        let (mut state, _) = self.changed.wait_timeout_while(state, RESET_WAIT, waits).unwrap_or_else(|e| e.into_inner());
        (state.used == Use::Free).then(|| {
            *state = State { used: Use::Client, stream: stream.try_clone().ok() };
            Inside(self.clone())
        })
    }

    /// Closes the connection of the client that is inside: the function is there no more.
    pub fn expel(&self) {
        if let Some(stream) = &self.state().stream {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn set(&self, to: Use) {
        *self.state() = State { used: to, stream: None };
        self.changed.notify_all();
    }
}

/// A client that has the function, as long as this lives.
#[derive(Debug)]
pub struct Inside(Arc<Door>);

impl Inside {
    /// The client has gone; whoever comes now waits until its traces are gone too.
    pub fn clean(&self) {
        self.0.set(Use::Cleaning);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.set(Use::Free);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn one_at_a_time() {
        let door = Door::new(Arc::default());
        let (near, far) = UnixStream::pair().unwrap();
        let inside = door.enter(&near).unwrap();
        assert!(door.enter(&near).is_none());
        // It has gone, but its session does not know.
        drop(far);
        let next = std::thread::spawn({
            let door = door.clone();
            move || door.enter(&UnixStream::pair().unwrap().0).is_some()
        });
        std::thread::sleep(Duration::from_millis(20));
        assert!(!next.is_finished(), "it waits for the session");
        inside.clean();
        std::thread::sleep(Duration::from_millis(20));
        assert!(!next.is_finished(), "it waits for the cleaning");
        drop(inside);
        assert!(next.join().unwrap());
        assert!(door.enter(&near).is_some(), "it has gone again");
    }
}
