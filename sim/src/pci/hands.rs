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

#[cfg(test)]
mod tests {
    use super::super::command::{Command, Handle};
    use super::super::engine::{Engine, Runner};
    use super::super::function::Function;
    use crate::{Body, CardConfig, World, WorldConfig};
    use ferric_abi::csr;
    use std::sync::mpsc::sync_channel;
    use std::sync::Arc;
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn twin() -> (Runner, Handle) {
        let cards = vec![CardConfig { body: Body::Twin, width: 64, ..Default::default() }];
        let world = World::new(&WorldConfig { cards, tick_cycles: u64::MAX, skip_idle: false, ..Default::default() }).unwrap();
        Engine::over(world, &[Arc::new(Function::new(0, 0))], None, None)
    }

    fn read(handle: &Handle) -> Option<u32> {
        let (reply, value) = sync_channel(1);
        handle.send(Command::Read32 { function: 0, offset: csr::MAGIC, reply }, PATIENCE).then(|| value.recv_timeout(PATIENCE).ok()).flatten()
    }

    #[test]
    fn who_asks_is_answered_without_a_keeper() {
        let (_runner, handle) = twin();
        let (reply, value) = sync_channel(1);
        assert!(handle.send(Command::Read32 { function: 0, offset: csr::MAGIC, reply }, Duration::ZERO));
        assert_eq!(value.try_recv(), Ok(csr::MAGIC_VALUE));
    }

    /// Whoever does not get the engine is answered by the one who has it.
    #[test]
    fn many_who_ask_at_once_are_all_answered() {
        let (runner, handle) = twin();
        let keeper = std::thread::spawn(move || runner.run());
        let askers: Vec<_> = (0..4)
            .map(|_| {
                let handle = handle.clone();
                std::thread::spawn(move || (0..500).all(|_| read(&handle) == Some(csr::MAGIC_VALUE)))
            })
            .collect();
        assert!(askers.into_iter().all(|asker| asker.join().unwrap()));
        assert!(handle.send(Command::Stop, PATIENCE));
        keeper.join().unwrap();
        assert_eq!(read(&handle), None, "it has ended");
    }
}
