//! The golden model in a virtio function's place.
use super::{FunctionConfig, GuestMemory, NetCounters, Seat, SeatEdge, LONGEST};
use ferric_model::virtio::{Device, Step};
use std::collections::VecDeque;

/// Steps of a queue in one cycle of the world at most, and bytes that a function sends in one, about: others get their turn.
const STEPS: usize = 256;
const BYTES: usize = 1 << 20;

/// A virtio function that is the golden model.
pub struct ModelSeat {
    /// Its number at the IOMMU and in its interrupts.
    function: u16,
    device: Device,
    frames: VecDeque<Vec<u8>>,
    reads: VecDeque<[u8; 4]>,
    /// A queue may have something to do.
    busy: bool,
    /// The queue that has the first turn.
    first: u16,
    arrived: u64,
    left: u64,
    oversize: u64,
}

impl ModelSeat {
    /// The function after power-on, number `function` of its card.
    pub fn new(function: u16, config: &FunctionConfig) -> Self {
        Self { function, device: Device::new(config.offer()), frames: VecDeque::new(), reads: VecDeque::new(), busy: false, first: 0, arrived: 0, left: 0, oversize: 0 }
    }

    /// Steps of one queue until it has nothing to do or its turn is over.
    fn turn(&mut self, edge: &mut SeatEdge, queue: u16, bytes: &mut usize) {
        for _ in 0..STEPS {
            let step = self.device.step(&mut GuestMemory { iommu: edge.iommu, function: self.function }, queue);
            match step {
                Step::Idle => return,
                Step::Worked => {}
                Step::Frame(frame) => {
                    let ticket = frame.ticket;
                    for segment in frame.segments() {
                        *bytes += segment.len();
                        if segment.len() > LONGEST {
                            self.oversize += 1;
                            continue;
                        }
                        self.left += 1;
                        edge.sent.push_back(segment);
                    }
                    self.device.sent(ticket);
                    if *bytes >= BYTES {
                        break;
                    }
                }
            }
        }
        self.busy = true;
    }
}

impl Seat for ModelSeat {
    fn cycle(&mut self, edge: &mut SeatEdge) -> bool {
        if self.idle() {
            return false;
        }
        self.busy = false;
        while let Some(frame) = self.frames.pop_front() {
            self.arrived += 1;
            self.device.arrive(&mut GuestMemory { iommu: edge.iommu, function: self.function }, &frame);
        }
        let (queues, mut bytes) = (self.device.queues(), 0);
        for n in 0..queues {
            self.turn(edge, (self.first + n) % queues, &mut bytes);
        }
        self.first = (self.first + 1) % queues;
        edge.interrupts.extend(self.device.interrupts().into_iter().map(|vector| (self.function, vector)));
        true
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) {
        self.device.write(offset, bytes);
        self.busy = true;
    }

    fn start_read(&mut self, offset: u32, bytes: usize) {
        let mut found = [0; 4];
        self.device.read(offset, &mut found[..bytes.min(4)]);
        self.reads.push_back(found);
    }

    fn take_read(&mut self) -> Option<[u8; 4]> {
        self.reads.pop_front()
    }

    fn start_reset(&mut self) {
        self.device.reset();
    }

    fn is_resetting(&self) -> bool {
        self.device.is_resetting()
    }

    fn receive(&mut self, frame: &[u8]) {
        self.frames.push_back(frame.to_vec());
    }

    fn receive_backlog(&self) -> usize {
        self.frames.len()
    }

    fn idle(&self) -> bool {
        !self.busy && self.frames.is_empty()
    }

    fn counters(&self) -> NetCounters {
        let mut chains = [0; 5];
        for queue in 0..self.device.queues() {
            let (Some(balance), Some((stock, _))) = (self.device.balance(queue), self.device.held(queue)) else { continue };
            let stock = stock as u64;
            for (sum, more) in chains.iter_mut().zip([balance.available, balance.skipped, balance.used, stock, balance.held - stock]) {
                *sum += more;
            }
        }
        NetCounters { device: self.device.counters().clone(), arrived: self.arrived, left: self.left, oversize: self.oversize, chains }
    }
}
