//! An engine that is run by whoever asks something of it: one of twins, which do at once what they are asked for. That spares a doorbell two changes of thread.
//! A thread of its own, the keeper, goes on with what is too much for one turn, and is there when a timer fires.
use super::engine::Engine;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, TryLockError};
use std::thread::Thread;
use std::time::Duration;

/// Turns in a row that whoever asks gives to what others ask meanwhile.
const HELP: usize = 4;
/// Bursts of a turn of the keeper, between which nobody else has one.
const LONG_TURN: usize = 16;

/// What became of an attempt to give the engine a turn.
enum Turn {
    /// Somebody else runs it, or it has ended.
    Taken,
    /// There is more to do, or the keeper sleeps for too long.
    More,
    /// Nothing is left to do now.
    Done,
}

/// The engine, and who may run it.
pub struct Hands {
    /// `None` when it has ended.
    engine: Mutex<Option<Engine>>,
    /// Something has been asked for since the last turn began.
    asked: AtomicBool,
    keeper: OnceLock<Thread>,
}

impl Hands {
    /// For an engine that nobody runs yet.
    pub fn new(engine: Engine) -> Self {
        Self { engine: Mutex::new(Some(engine)), asked: AtomicBool::new(false), keeper: OnceLock::new() }
    }

    /// Something has been sent to the engine: gives it a turn, unless somebody else has it, who looks again when he has let it go.
    pub fn help(&self) {
        self.asked.store(true, Ordering::SeqCst);
        for _ in 0..HELP {
            match self.turn() {
                Turn::Taken => return,
                Turn::More => break,
                Turn::Done if self.asked.load(Ordering::SeqCst) => {}
                Turn::Done => return,
            }
        }
        if let Some(keeper) = self.keeper.get() {
            keeper.unpark();
        }
    }

    fn turn(&self) -> Turn {
        let mut guard = match self.engine.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::WouldBlock) => return Turn::Taken,
            // The keeper ends when it sees that.
            Err(TryLockError::Poisoned(_)) => return Turn::More,
        };
        let Some(engine) = guard.as_mut() else { return Turn::Taken };
        self.asked.store(false, Ordering::SeqCst);
        match engine.turn(1) {
            Some(rest) if !engine.ends_sleep(rest) => Turn::Done,
            _ => Turn::More,
        }
    }

    /// The keeper's work; returns when the engine has ended.
    pub fn keep(&self) {
        self.keeper.get_or_init(std::thread::current);
        loop {
            let rest = {
                let mut guard = self.engine.lock().unwrap_or_else(|poisoned| {
                    // Nobody may wait for a channel that it would have emptied.
                    drop(poisoned.into_inner().take());
                    panic!("the simulation has panicked in a client's thread")
                });
                let Some(engine) = guard.as_mut() else { return };
                self.asked.store(false, Ordering::SeqCst);
                let rest = engine.turn(LONG_TURN);
                if engine.has_ended() {
                    *guard = None;
                    return;
                }
                rest.inspect(|rest| engine.sleeps(*rest))
            };
            match rest {
                Some(rest) if !self.asked.load(Ordering::SeqCst) => std::thread::park_timeout(rest.max(Duration::from_micros(1))),
                _ => {}
            }
        }
    }
}
