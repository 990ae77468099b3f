//! The golden model in a virtio function's place.
use super::{Front, FunctionConfig, GuestMemory, Seat, SeatEdge};
use ferric_model::virtio::Step;
use std::time::Instant;

/// Steps of a queue in one cycle of the world at most, and bytes that a function sends in one, about: others get their turn.
const STEPS: usize = 256;
const BYTES: usize = 1 << 20;

/// A virtio function that is the golden model.
pub struct ModelSeat {
    front: Front,
    /// The queue that has the first turn.
    first: u16,
    /// When the function was made: notifications that are held back go by the guest's time, which is ours.
    began: Instant,
}

impl ModelSeat {
    /// The function after power-on, number `function` of its card.
    pub fn new(function: u16, config: &FunctionConfig) -> Self {
        Self { front: Front::new(function, config), first: 0, began: Instant::now() }
    }

    /// Steps of one queue until it has nothing to do or its turn is over.
    fn turn(&mut self, edge: &mut SeatEdge, queue: u16, bytes: &mut usize) {
        for _ in 0..STEPS {
            let front = &mut self.front;
            let step = front.device.step(&mut GuestMemory { iommu: edge.iommu, function: front.function }, queue);
            match step {
                Step::Idle => return,
                Step::Worked => {}
                Step::Frame(frame) => {
                    let ticket = frame.ticket;
                    for segment in frame.segments() {
                        *bytes += segment.len();
                        front.leaves(segment, edge);
                    }
                    front.device.sent(ticket);
                    if *bytes >= BYTES {
                        break;
                    }
                }
            }
        }
        self.front.busy = true;
    }
}

impl Seat for ModelSeat {
    fn front(&self) -> &Front {
        &self.front
    }

    fn front_mut(&mut self) -> &mut Front {
        &mut self.front
    }

    fn cycle(&mut self, edge: &mut SeatEdge) -> bool {
        if self.idle() {
            return false;
        }
        let front = &mut self.front;
        front.busy = false;
        front.device.set_time(self.began.elapsed().as_micros() as u64);
        while let Some(frame) = front.arrives() {
            front.device.arrive(&mut GuestMemory { iommu: edge.iommu, function: front.function }, &frame);
        }
        let (queues, mut bytes) = (front.device.queues(), 0);
        for n in 0..queues {
            self.turn(edge, (self.first + n) % queues, &mut bytes);
        }
        self.first = (self.first + 1) % queues;
        self.front.interrupt(edge);
        // Nobody wakes the function when the time has come.
        self.front.busy |= self.front.device.holds_back();
        true
    }

    fn idle(&self) -> bool {
        !self.front.busy && self.front.backlog() == 0
    }

    fn chains(&self) -> [u64; 5] {
        let (device, mut chains) = (&self.front.device, [0; 5]);
        for queue in 0..device.queues() {
            let (Some(balance), Some((stock, _))) = (device.balance(queue), device.held(queue)) else { continue };
            let stock = stock as u64;
            for (sum, more) in chains.iter_mut().zip([balance.available, balance.skipped, balance.used, stock, balance.held - stock]) {
                *sum += more;
            }
        }
        chains
    }
}
