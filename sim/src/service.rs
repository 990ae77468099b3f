//! Threads of something that is served: started together, ended together.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

/// A group of threads. The first one started is the simulation; the others feed it.
pub(crate) struct Service {
    /// In messages.
    name: &'static str,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Service {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, stop: Arc::default(), threads: Vec::new() }
    }

    /// What tells the threads to end.
    pub(crate) fn stopped(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// One more thread.
    pub(crate) fn push(&mut self, thread: JoinHandle<()>) {
        self.threads.push(thread);
    }

    /// The first thread has ended.
    pub(crate) fn has_died(&self) -> bool {
        self.threads.first().is_some_and(|t| t.is_finished())
    }

    /// Ends the threads, the last one first: what feeds the simulation may need it to end well. `last`: tells the first one to end,
    /// where the flag does not. Does nothing the second time.
    pub(crate) fn end(&mut self, last: impl Fn()) {
        self.stop.store(true, Ordering::Relaxed);
        for (n, thread) in self.threads.drain(..).enumerate().rev() {
            if n == 0 {
                last();
            }
            if thread.join().is_err() {
                log::error!("a thread of the {} has panicked", self.name);
            }
        }
    }
}
