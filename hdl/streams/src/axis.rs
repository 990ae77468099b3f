//! Frames on AXI4-Stream ports.

use crate::rng::Rng;
use crate::stream::{Sink, Source};
use std::cell::RefCell;
use std::rc::Rc;

/// Payload ports of an AXI4-Stream bus, in the order of a beat's fields.
pub const AXIS_FIELDS: [&str; 3] = ["data", "keep", "last"];

/// Feeds frames to an AXI4-Stream port. Made by `Tb::axis_source`.
#[derive(Clone)]
pub struct AxisSource {
    source: Source,
    bytes: usize,
    rng: Rc<RefCell<Rng>>,
}

impl AxisSource {
    /// Frames over `source`, a port of [`AXIS_FIELDS`] with `bytes` bytes per beat; `seed` is that of the noise.
    pub fn new(source: Source, bytes: usize, seed: u64) -> AxisSource {
        AxisSource { source, bytes, rng: Rc::new(RefCell::new(Rng::new(seed))) }
    }

    /// Queues a frame; the bytes after its end are noise in the last beat. Panics on an empty frame.
    pub fn push(&self, frame: &[u8]) {
        assert!(!frame.is_empty(), "a frame has at least one byte");
        for (index, chunk) in frame.chunks(self.bytes).enumerate() {
            let mut data = chunk.to_vec();
            data.extend(self.rng.borrow_mut().bytes(self.bytes - chunk.len()));
            self.push_beat(&data, keep_mask(chunk.len()), (index + 1) * self.bytes >= frame.len());
        }
    }

    /// Queues one beat as given (`keep` bit i belongs to byte i).
    pub fn push_beat(&self, data: &[u8], keep: u128, last: bool) {
        let words: Vec<u32> = data.chunks(4).map(word).collect();
        let keep = [0, 32, 64, 96].map(|shift| (keep >> shift) as u32);
        self.source.push_fields(&[&words, &keep, &[last.into()]]);
    }

    /// Beats not yet taken by the block.
    pub fn pending(&self) -> usize {
        self.source.pending()
    }

    /// Beats taken by the block since the start.
    pub fn taken(&self) -> u64 {
        self.source.taken()
    }

    /// Changes the stall probability (percent, 0..=90).
    pub fn set_stall(&self, percent: u32) {
        self.source.set_stall(percent);
    }
}

/// One beat of an AXI4-Stream port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisBeat {
    /// All bytes of the bus, kept or not.
    pub data: Vec<u8>,
    /// Bit i tells whether byte i counts.
    pub keep: u128,
    /// Ends a frame.
    pub last: bool,
}

/// Collects frames from an AXI4-Stream port. Made by `Tb::axis_sink`.
#[derive(Clone)]
pub struct AxisSink {
    sink: Sink,
    bytes: usize,
    partial: Rc<RefCell<Vec<u8>>>,
}

impl AxisSink {
    /// Frames out of `sink`, a port of [`AXIS_FIELDS`] with `bytes` bytes per beat.
    pub fn new(sink: Sink, bytes: usize) -> AxisSink {
        AxisSink { sink, bytes, partial: Rc::default() }
    }

    /// The oldest complete frame. Panics if `keep` has holes, is empty, or is not full before the last beat.
    pub fn pop(&self) -> Option<Vec<u8>> {
        while let Some(beat) = self.pop_beat() {
            let count = beat.keep.count_ones() as usize;
            assert!(count > 0 && beat.keep == keep_mask(count), "keep is {:#x}", beat.keep);
            assert!(beat.last || count == self.bytes, "keep is {:#x} before the last beat", beat.keep);
            let mut partial = self.partial.borrow_mut();
            partial.extend(&beat.data[..count]);
            if beat.last {
                return Some(std::mem::take(&mut partial));
            }
        }
        None
    }

    /// The oldest beat as it stands. Do not mix with [`AxisSink::pop`] within a frame.
    pub fn pop_beat(&self) -> Option<AxisBeat> {
        let fields = self.sink.pop_fields()?;
        let mut data: Vec<u8> = fields[0].iter().flat_map(|word| word.to_le_bytes()).collect();
        data.truncate(self.bytes);
        let keep = fields[1].iter().rev().fold(0, |keep, word| keep << 32 | u128::from(*word));
        Some(AxisBeat { data, keep, last: fields[2][0] == 1 })
    }

    /// Beats collected and not yet popped.
    pub fn beats(&self) -> usize {
        self.sink.len()
    }

    /// Beats taken from the block since the start.
    pub fn taken(&self) -> u64 {
        self.sink.taken()
    }

    /// Changes the stall probability (percent, 0..=90).
    pub fn set_stall(&self, percent: u32) {
        self.sink.set_stall(percent);
    }

    /// Takes nothing more, until `set_stall`.
    pub fn refuse(&self) {
        self.sink.refuse();
    }
}

/// The keep value of a beat with `bytes` bytes.
fn keep_mask(bytes: usize) -> u128 {
    u128::MAX >> (128 - bytes)
}

fn word(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte))
}
