//! Queues whose rings somebody else runs: gateware in a function's seat has the rings of the data queues, while registers, commands and filters stay here. What the borrower finds it tells,
//! so that the driver and whoever counts see one device.
use super::device::Device;
use super::queue::{Role, Ticket};
use super::ring::Ring;
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::{feature, isr};

/// A ring that has been lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    /// For [`Device::may_run`] and [`Device::take_back`].
    pub ticket: Ticket,
    /// Where it lies.
    pub ring: Ring,
    /// Its chains take frames; else they send them.
    pub receive: bool,
}

impl Device {
    /// The ring of a data queue that runs: from its beginning on it is the borrower's, and no step of this device takes anything from it. A reset of the queue or of the device ends when
    /// it has been given back. `None`: it does not run, is the control queue's, or has been lent.
    pub fn lend(&mut self, queue: u16) -> Option<Lent> {
        let role = self.role(queue).filter(|role| *role != Role::Control && self.runs())?;
        let q = self.queues.get_mut(usize::from(queue))?;
        let ring = *q.engine.as_ref().filter(|_| !q.lent)?.ring();
        q.lent = true;
        Some(Lent { ticket: q.ticket(queue, 0), ring, receive: role == Role::Receive })
    }

    /// The borrower may go on with the ring; else it has to come to an end and give it back.
    pub fn may_run(&self, ticket: Ticket) -> bool {
        self.runs() && self.queues.get(usize::from(ticket.queue)).is_some_and(|q| q.lent && q.is_of(ticket))
    }

    /// The borrower has nothing of the ring in hand, and does not touch it any more.
    pub fn take_back(&mut self, ticket: Ticket) {
        if let Some(q) = self.queues.get_mut(usize::from(ticket.queue)) {
            if q.is_of(ticket) {
                q.lent = false;
            }
            q.finish(ticket, self.now);
        }
        self.settle();
    }

    /// The driver has notified the queue since the last call.
    pub fn take_notification(&mut self, queue: u16) -> bool {
        self.queues.get_mut(usize::from(queue)).and_then(|q| q.engine.as_mut()).is_some_and(|engine| std::mem::take(&mut engine.pending))
    }

    /// Features that the ring of a data queue has, and what its frames are made of: its borrower wants to know of EVENT_IDX, INDIRECT_DESC, CSUM and their like.
    pub fn ring_features(&self) -> u64 {
        let frames = feature::CSUM | feature::GUEST_CSUM | feature::MRG_RXBUF;
        self.features & (feature::EVENT_IDX | feature::INDIRECT_DESC | feature::RING_PACKED | frames)
    }

    /// The borrower has given chains back, and the driver wants to know.
    pub fn chains_used(&mut self, queue: u16) {
        if let Some(vector) = self.queues.get(usize::from(queue)).map(|q| q.vector) {
            self.interrupt(isr::QUEUE, vector);
        }
    }

    /// The borrower has rejected something of a queue. A ring that is lost ends the function's work, as one of the device's own does.
    pub fn rejected(&mut self, queue: u16, cause: VirtioCause) {
        match cause {
            VirtioCause::AvailJump | VirtioCause::RingDma => self.lost(queue, cause),
            _ => self.counters.count(cause),
        }
    }

    /// The borrower has lost the ring of a queue by what it has found there.
    pub fn lost(&mut self, queue: u16, cause: VirtioCause) {
        if self.runs() && self.queues.get(usize::from(queue)).is_some_and(|q| q.lent) {
            self.fail(cause);
        } else {
            self.counters.count(cause);
        }
    }

    /// Pairs of queues that take frames: none, until the driver is ready.
    pub fn receiving(&self) -> u16 {
        if self.runs() {
            self.pairs_in_use()
        } else {
            0
        }
    }

    /// Pairs of which any may take a frame: with receive-side scaling all, of which the table has those that the driver wants.
    pub(super) fn pairs_in_use(&self) -> u16 {
        if self.rss.is_some() {
            self.offer.pairs
        } else {
            self.modes.pairs
        }
    }

    /// A frame that has come is somebody else's: the borrower has sorted it by [`Device::rules`].
    pub fn filtered(&mut self) {
        self.counters.filtered += 1;
    }

    /// A frame that has come is this function's, and the borrower says what becomes of it ([`Device::delivered`], [`Device::rejected`]).
    pub fn admitted(&mut self) {
        self.counters.frames += 1;
    }

    /// A frame is in the buffers that the borrower has found for it.
    pub fn delivered(&mut self) {
        self.counters.delivered += 1;
    }

    /// A frame of the borrower's leaves.
    pub fn leaves(&mut self) {
        self.counters.transmitted += 1;
    }
}
