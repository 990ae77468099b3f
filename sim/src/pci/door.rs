//! Who may use a function: one client at a time. It is the client's hello that takes it; a connection alone holds nothing.
use super::RESET_WAIT;
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

/// A function's door.
#[derive(Debug, Default)]
pub struct Door {
    state: Mutex<Use>,
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

    /// Lets a client in. While the last one's traces are removed it waits; it is refused (`None`) while there is one.
    pub fn enter(self: &Arc<Self>) -> Option<Inside> {
        let state = self.state();
        let waits = |s: &mut Use| *s == Use::Cleaning && !self.closing.load(Ordering::Relaxed);
        let (mut state, _) = self.changed.wait_timeout_while(state, RESET_WAIT, waits).unwrap_or_else(|e| e.into_inner());
        (*state == Use::Free).then(|| {
            *state = Use::Client;
            Inside(self.clone())
        })
    }

    fn state(&self) -> MutexGuard<'_, Use> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn set(&self, to: Use) {
        *self.state() = to;
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
        let inside = door.enter().unwrap();
        assert!(door.enter().is_none());
        inside.clean();
        let next = std::thread::spawn({
            let door = door.clone();
            move || door.enter().is_some()
        });
        std::thread::sleep(Duration::from_millis(20));
        assert!(!next.is_finished(), "it waits for the cleaning");
        drop(inside);
        assert!(next.join().unwrap());
        assert!(door.enter().is_some(), "it has gone again");
    }
}
