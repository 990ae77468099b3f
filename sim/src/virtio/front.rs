//! What every virtio function is before its rings: the golden model's registers and frames that come and leave, with their counts.
use super::{FunctionConfig, NetCounters, SeatEdge, LONGEST};
use ferric_model::virtio::Device;
use std::collections::VecDeque;

/// The registers of a function, and its side of the card's port.
pub struct Front {
    /// Its number at the IOMMU and in its interrupts.
    pub(super) function: u16,
    pub(super) device: Device,
    /// There may be something to do: a register has been written, or something has ended.
    pub(super) busy: bool,
    frames: VecDeque<Vec<u8>>,
    reads: VecDeque<[u8; 4]>,
    arrived: u64,
    left: u64,
    oversize: u64,
}

impl Front {
    /// Function `function` of its card, after power-on.
    pub fn new(function: u16, config: &FunctionConfig) -> Self {
        Self { function, device: Device::new(config.offer()), busy: false, frames: VecDeque::new(), reads: VecDeque::new(), arrived: 0, left: 0, oversize: 0 }
    }

    /// A write to the register window.
    pub fn write(&mut self, offset: u32, bytes: &[u8]) {
        self.device.write(offset, bytes);
        self.busy = true;
    }

    /// A read there, which finds what stands there at once.
    pub fn start_read(&mut self, offset: u32, bytes: usize) {
        let mut found = [0; 4];
        self.device.read(offset, &mut found[..bytes.min(4)]);
        self.reads.push_back(found);
    }

    /// What the oldest read has found.
    pub fn take_read(&mut self) -> Option<[u8; 4]> {
        self.reads.pop_front()
    }

    /// Begins a reset.
    pub fn start_reset(&mut self) {
        self.device.reset();
        self.busy = true;
    }

    /// A frame that has come by the port.
    pub fn receive(&mut self, frame: &[u8]) {
        self.frames.push_back(frame.to_vec());
    }

    /// Frames that wait.
    pub fn backlog(&self) -> usize {
        self.frames.len()
    }

    /// The oldest frame that waits; it has arrived.
    pub fn arrives(&mut self) -> Option<Vec<u8>> {
        self.frames.pop_front().inspect(|_| self.arrived += 1)
    }

    /// A frame leaves by the port, unless it is longer than that carries.
    pub fn leaves(&mut self, frame: Vec<u8>, edge: &mut SeatEdge) {
        if frame.len() > LONGEST {
            self.oversize += 1;
            return;
        }
        self.left += 1;
        edge.sent.push_back(frame);
    }

    /// Passes the device's interrupts on.
    pub fn interrupt(&mut self, edge: &mut SeatEdge) {
        edge.interrupts.extend(self.device.interrupts().into_iter().map(|vector| (self.function, vector)));
    }

    /// What the function has counted; `chains` as in [`NetCounters`].
    pub fn counters(&self, chains: [u64; 5]) -> NetCounters {
        NetCounters { device: self.device.counters().clone(), arrived: self.arrived, left: self.left, oversize: self.oversize, chains }
    }
}
