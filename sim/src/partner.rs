//! A second thread for the second card. Within a cycle two cards know nothing of each other, and of a cycle of gateware the model takes nearly all of the time.
//!
//! Which thread runs a card changes no result: frames and boundary events are collected in the order of the cards, whoever ran them.
use crate::card::Card;
use crate::trace::Event;
use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Looks at the turn before whoever waits gives the processor away: a cycle of a card takes some 10 us, a look up to 50 ns.
const LOOKS: u32 = 1000;
/// So often the partner gives it away before it sleeps.
const PATIENCE: u32 = 16;

/// Whose turn it is.
mod turn {
    /// The partner looks for work.
    pub const REST: u8 = 0;
    /// The partner has a card.
    pub const WORK: u8 = 1;
    /// The card may be taken back.
    pub const DONE: u8 = 2;
    /// The partner sleeps, and has nothing.
    pub const ASLEEP: u8 = 3;
    /// The partner is to end.
    pub const END: u8 = 4;
}

/// A card and the cycle that it is to run.
struct Work {
    card: Card,
    cycle: u64,
    ticks: u64,
    trace: Option<Vec<Event>>,
    /// What the card's cycle panicked with.
    panic: Option<Box<dyn Any + Send>>,
}

#[derive(Default)]
struct Shared {
    turn: AtomicU8,
    /// Never waited for: `turn` says who may take it.
    work: Mutex<Option<Work>>,
}

impl Shared {
    fn put(&self, work: Work, turn: u8) {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
        self.turn.store(turn, Ordering::Release);
    }
    fn take(&self) -> Option<Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
    /// Looks for a turn other than `turn`, and gives the processor away `patience` times at most. What it was last.
    fn wait_while(&self, turn: u8, patience: u32) -> u8 {
        for _ in 0..patience {
            for _ in 0..LOOKS {
                let now = self.turn.load(Ordering::Acquire);
                if now != turn {
                    return now;
                }
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        }
        turn
    }
    fn run(&self) {
        loop {
            match self.wait_while(turn::REST, PATIENCE) {
                turn::WORK => {
                    let Some(mut work) = self.take() else { return };
                    let Work { card, cycle, ticks, trace, panic } = &mut work;
                    *panic = catch_unwind(AssertUnwindSafe(|| card.cycle(*cycle, *ticks, trace))).err();
                    self.put(work, turn::DONE);
                    while self.wait_while(turn::DONE, PATIENCE) == turn::DONE {}
                }
                turn::END => return,
                _ => {
                    if self.turn.compare_exchange(turn::REST, turn::ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                        while self.turn.load(Ordering::Acquire) == turn::ASLEEP {
                            std::thread::park();
                        }
                    }
                }
            }
        }
    }
}

/// The second thread. It sleeps when there is nothing to do for about a millisecond.
pub(crate) struct Partner {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Where it was started: a copy of that process (`fork`) has no such thread.
    process: u32,
}

impl Partner {
    /// Starts it. Error: the system gives no thread.
    pub fn start() -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let its = shared.clone();
        let thread = std::thread::Builder::new().name("ferric-partner".into()).spawn(move || its.run())?;
        Ok(Self { shared, thread: Some(thread), process: std::process::id() })
    }

    /// The process is a copy of the one where it was started, and there is no such thread in it.
    pub fn lost(&self) -> bool {
        self.process != std::process::id()
    }

    /// Gives it `card` for a cycle. It comes back at once when the partner sleeps, and that wakes it.
    pub fn begin(&self, card: Card, cycle: u64, ticks: u64, traced: bool) -> Option<Card> {
        if self.shared.turn.compare_exchange(turn::ASLEEP, turn::REST, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.wake();
            return Some(card);
        }
        // It may fall asleep now: then it is woken with the work.
        let work = Work { card, cycle, ticks, trace: traced.then(Vec::new), panic: None };
        *self.shared.work.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
        if self.shared.turn.swap(turn::WORK, Ordering::AcqRel) == turn::ASLEEP {
            self.wake();
        }
        None
    }

    /// The card, and the boundary events of its cycle. What the cycle panicked with goes on here, and the card is lost with it.
    pub fn finish(&self) -> (Card, Option<Vec<Event>>) {
        while self.shared.wait_while(turn::WORK, PATIENCE) == turn::WORK {}
        let work = self.shared.take();
        self.shared.turn.store(turn::REST, Ordering::Release);
        let work = work.expect("the partner gives back what it got");
        if let Some(panic) = work.panic {
            resume_unwind(panic);
        }
        (work.card, work.trace)
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        if self.lost() {
            // There is nobody to wait for.
            std::mem::forget(self.thread.take());
            return;
        }
        // Whoever panicked may have left a card with it.
        while self.shared.wait_while(turn::WORK, PATIENCE) == turn::WORK {}
        self.shared.turn.store(turn::END, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // It panics nowhere but in a card's cycle, which is caught.
            let _ = thread.join();
        }
    }
}
