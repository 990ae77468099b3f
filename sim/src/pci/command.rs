//! What the engine is asked to do, and the way to it. Nobody who asks waits for more than the bounded time of its choice.
use super::dma::ClientMap;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TrySendError};
use std::time::{Duration, Instant};

/// A change to a function's map.
pub type MapChange = Box<dyn FnOnce(&mut ClientMap) + Send>;

/// What the engine is asked to do. `function` is an index into the functions it was made with, `offset` one into the
/// function's window.
#[allow(missing_docs)]
pub enum Command {
    /// A register write.
    Write32 { function: usize, offset: u32, value: u32 },
    /// A doorbell write.
    Doorbell { function: usize, offset: u32, bytes: Vec<u8> },
    /// A register read.
    Read32 { function: usize, offset: u32, reply: SyncSender<u32> },
    /// A change to its DMA map, made between two cycles.
    Map { function: usize, change: MapChange },
    /// Reset of the function; `done` hears when the card has finished.
    Reset { function: usize, done: Option<SyncSender<()>> },
    /// A frame is waiting.
    Wake,
    /// End.
    Stop,
}

/// The way to a running engine.
#[derive(Clone)]
pub struct Handle {
    commands: SyncSender<Command>,
    frames: SyncSender<Vec<u8>>,
}

/// What comes out at the engine's end.
pub struct Inbox {
    /// Commands in order.
    pub commands: Receiver<Command>,
    /// Frames from the wire.
    pub frames: Receiver<Vec<u8>>,
}

impl Handle {
    /// A way to an engine, and the engine's end of it.
    pub fn new() -> (Self, Inbox) {
        let (commands_tx, commands) = sync_channel(1024);
        let (frames_tx, frames) = sync_channel(512);
        (Self { commands: commands_tx, frames: frames_tx }, Inbox { commands, frames })
    }

    /// Sends a command, waiting at most `limit` for room. False: there was none, or the engine has ended.
    pub fn send(&self, mut command: Command, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        loop {
            match self.commands.try_send(command) {
                Ok(()) => return true,
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(c)) if Instant::now() < end => command = c,
                Err(TrySendError::Full(_)) => return false,
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Hands the engine a frame from the wire. False: dropped, its queue is full.
    pub fn frame(&self, frame: Vec<u8>) -> bool {
        let taken = self.frames.try_send(frame).is_ok();
        // A full channel is awake anyway.
        let _ = self.commands.try_send(Command::Wake);
        taken
    }
}
