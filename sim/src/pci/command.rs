//! What the engine is asked to do, and the way to it. Nobody who asks waits for more than the bounded time of its choice.
use super::dma::ClientMap;
use super::hands::Hands;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TrySendError};
use std::sync::Arc;
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
    /// A write of 1, 2 or 4 bytes to a virtio function's window.
    WindowWrite { function: usize, offset: u32, bytes: Vec<u8> },
    /// A read of 1, 2 or 4 bytes there; those beyond them are zero.
    WindowRead { function: usize, offset: u32, bytes: usize, reply: SyncSender<[u8; 4]> },
    /// A change to its DMA map, made between two cycles.
    Map { function: usize, change: MapChange },
    /// Reset of the function; `done` hears when the card has finished.
    Reset { function: usize, done: Option<SyncSender<()>> },
    /// A frame is waiting.
    Wake,
    /// End.
    Stop,
}

/// What executes commands at once, where they are sent.
pub type Executor = Arc<dyn Fn(Command) + Send + Sync>;

/// The way to an engine.
#[derive(Clone)]
pub enum Handle {
    /// One that runs in a thread of its own, or in those of the senders.
    Running {
        /// Commands in order.
        commands: SyncSender<Command>,
        /// Frames from the wire.
        frames: SyncSender<Vec<u8>>,
        /// Whoever sends runs it.
        helps: Option<Arc<Hands>>,
    },
    /// What stands for one in a test.
    Direct(Executor),
}

/// What comes out at the engine's end.
pub struct Inbox {
    /// Commands in order.
    pub commands: Receiver<Command>,
    /// Frames from the wire.
    pub frames: Receiver<Vec<u8>>,
}

impl Handle {
    /// A way to an engine with a thread, and the engine's end of it.
    pub fn running() -> (Self, Inbox) {
        let (commands, commands_rx) = sync_channel(1024);
        let (frames, frames_rx) = sync_channel(512);
        (Self::Running { commands, frames, helps: None }, Inbox { commands: commands_rx, frames: frames_rx })
    }

    /// True if what is sent is mostly done when the sender goes on.
    pub fn runs_in_the_sender(&self) -> bool {
        matches!(self, Self::Running { helps: Some(_), .. })
    }

    /// Sends a command, waiting at most `limit` for room. False: there was none, or the engine has ended.
    pub fn send(&self, command: Command, limit: Duration) -> bool {
        self.send_unless(command, limit, &AtomicBool::new(false))
    }

    /// The same; gives up when `cancelled` becomes true.
    pub fn send_unless(&self, mut command: Command, limit: Duration, cancelled: &AtomicBool) -> bool {
        let (commands, helps) = match self {
            Self::Running { commands, helps, .. } => (commands, helps),
            Self::Direct(execute) => {
                execute(command);
                return true;
            }
        };
        let end = Instant::now() + limit;
        loop {
            match commands.try_send(command) {
                Ok(()) => {
                    if let Some(hands) = helps {
                        hands.help();
                    }
                    return true;
                }
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(c)) if Instant::now() < end && !cancelled.load(Ordering::Relaxed) => command = c,
                Err(TrySendError::Full(_)) => return false,
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Hands the engine a frame from the wire. False: dropped, its queue is full.
    pub fn frame(&self, frame: Vec<u8>) -> bool {
        let Self::Running { commands, frames, helps } = self else { return false };
        let taken = frames.try_send(frame).is_ok();
        if let Some(hands) = helps {
            hands.help();
            return taken;
        }
        // A full channel is awake anyway.
        let _ = commands.try_send(Command::Wake);
        taken
    }
}
