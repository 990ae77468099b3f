//! A queue of a function: its registers, and its ring while it is enabled.
use super::coalesce::Untold;
use super::engine::{Engine, Taken};
use super::ring::{Format, Ring};
use super::walk::Direction;
use ferric_abi::virtio::{feature, NO_VECTOR};
use std::collections::VecDeque;

/// What a queue is for (spec 5.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Buffers for frames that come.
    Receive,
    /// Frames that leave.
    Transmit,
    /// Commands.
    Control,
}

impl Role {
    fn direction(self) -> Direction {
        match self {
            Role::Receive => Direction::Writable,
            Role::Transmit => Direction::Readable,
            Role::Control => Direction::Both,
        }
    }
}

/// Names a frame that has left a transmit queue and whose chain is still in hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    /// Its queue.
    pub queue: u16,
    pub(super) life: u64,
    pub(super) number: u64,
}

/// A queue's registers and ring.
pub struct Queue {
    /// Descriptors, as the driver has set them or the most.
    pub(super) size: u16,
    /// MSI-X vector, or `NO_VECTOR`.
    pub(super) vector: u16,
    /// Addresses of descriptors, driver's area, device's area.
    pub(super) areas: [u64; 3],
    /// The ring; `None` while the queue is not enabled.
    pub(super) engine: Option<Engine>,
    /// Receive: chains that have been fetched ahead, in order.
    pub(super) stock: VecDeque<Taken>,
    /// Receive: the stock is filled until it has its target.
    pub(super) fills: bool,
    /// Receive: frames in a row whose buffers could not be written.
    pub(super) faults: u32,
    /// Packets of which the driver has not been told.
    pub(super) untold: Untold,
    /// The driver has reset the queue, and it is not done.
    pub(super) resets: bool,
    /// Somebody else runs the ring (`lend.rs`).
    pub(super) lent: bool,
    /// How often the queue has been reset: tickets of an earlier life are of no ring.
    life: u64,
    /// Frames of earlier lives, and rings, that are still out.
    late: usize,
}

impl Queue {
    pub(super) fn new(max: u16) -> Self {
        Self { size: max, vector: NO_VECTOR, areas: [0; 3], engine: None, stock: VecDeque::new(), fills: true, faults: 0, untold: Untold::default(), resets: false, lent: false, life: 0, late: 0 }
    }

    /// Its ring begins; `false`: what the registers say cannot be.
    pub(super) fn enable(&mut self, features: u64, max: u16, role: Role) -> bool {
        let format = if features & feature::RING_PACKED != 0 { Format::Packed } else { Format::Split };
        self.engine = Ring::new(format, self.size, max, self.areas).map(|ring| Engine::new(ring, features, role.direction()));
        self.engine.is_some()
    }

    /// The ring ends at once. The queue is as new when the frames that are out have come back: see [`Queue::is_drained`].
    pub(super) fn stop(&mut self) {
        let stock = self.stock.drain(..).count();
        self.late += self.engine.take().map_or(0, |engine| engine.in_hand() - stock) + usize::from(std::mem::take(&mut self.lent));
        self.life += 1;
    }

    /// Nothing of an earlier life is out.
    pub(super) fn is_drained(&self) -> bool {
        self.late == 0
    }

    /// Registers as after a reset of the device.
    pub(super) fn clear(&mut self, max: u16) {
        let (life, late) = (self.life, self.late);
        *self = Self { life, late, ..Self::new(max) };
    }

    pub(super) fn ticket(&self, queue: u16, number: u64) -> Ticket {
        Ticket { queue, life: self.life, number }
    }

    /// The ticket is of the ring that there is now.
    pub(super) fn is_of(&self, ticket: Ticket) -> bool {
        ticket.life == self.life
    }

    /// The frame of this ticket has left, or will not.
    pub(super) fn finish(&mut self, ticket: Ticket, now: u64) {
        if !self.is_of(ticket) {
            self.late = self.late.saturating_sub(1);
        } else if let Some(engine) = &mut self.engine {
            engine.finish(ticket.number, 0);
            self.untold.count(now);
        }
    }
}
