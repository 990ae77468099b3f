//! A link with a queue for each class; the most urgent frame goes first.
use super::Class;
use std::collections::VecDeque;

/// Bytes of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From so many on, frames are marked.
    pub mark: usize,
    /// Frames beyond are trimmed, if they may be.
    pub trim: usize,
    /// Frames beyond are dropped.
    pub drop: usize,
}

/// A frame in a queue.
pub struct Queued {
    /// Node that it goes to.
    pub to: usize,
    /// Its class.
    pub class: Class,
    /// The frame.
    pub bytes: Vec<u8>,
}

/// Bytes on the wire that are not in the frame: FCS, preamble, gap.
const OVERHEAD: usize = 24;

/// A link.
pub struct Link {
    /// Of each of its queues.
    pub limits: Limits,
    rate: u64,
    queues: [VecDeque<Queued>; 3],
    bytes: [usize; 3],
    current: Option<Queued>,
}

impl Link {
    /// A free link of `rate` bytes per tick.
    pub fn new(rate: u64, limits: Limits) -> Self {
        Self { limits, rate: rate.max(1), queues: Default::default(), bytes: [0; 3], current: None }
    }

    /// Bytes that wait in a class.
    pub fn bytes(&self, class: Class) -> usize {
        self.bytes[class as usize]
    }

    /// Frames that wait, and the one on the wire.
    pub fn waiting(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum::<usize>() + usize::from(self.current.is_some())
    }

    /// Puts a frame into its queue.
    pub fn push(&mut self, queued: Queued) {
        self.bytes[queued.class as usize] += queued.bytes.len();
        self.queues[queued.class as usize].push_back(queued);
    }

    /// Takes the next frame, if the link is free. Gives the ticks that it takes.
    pub fn start(&mut self) -> Option<u64> {
        if self.current.is_some() {
            return None;
        }
        let queued = self.queues.iter_mut().find_map(VecDeque::pop_front)?;
        self.bytes[queued.class as usize] -= queued.bytes.len();
        let ticks = ((queued.bytes.len() + OVERHEAD) as u64).div_ceil(self.rate);
        self.current = Some(queued);
        Some(ticks)
    }

    /// The frame on the wire is sent.
    pub fn finish(&mut self) -> Option<Queued> {
        self.current.take()
    }
}
