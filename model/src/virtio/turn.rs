//! The available side of a ring, one step at a time: who waits for whom. The driver notifies a ring that is idle; before a ring goes idle it is armed, and looked at once more, since what
//! came before the driver saw that may have come without a notification.
use super::engine::{Engine, Taken, Took};
use super::memory::Memory;
use super::ring::Format;
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::{event, PackedEvent, UsedHead};

/// What a ring does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It waits for a notification.
    Idle,
    /// Chains are taken until it is empty; the driver need not notify.
    Active,
    /// It has been armed: the next step looks once more.
    Look,
}

/// What one step did.
#[derive(Debug)]
pub enum Turn {
    /// Nothing: the ring waits.
    Idle,
    /// Something.
    Worked,
    /// It took a chain.
    Chain(Taken),
    /// It rejected a chain.
    Rejected(VirtioCause),
}

impl Engine {
    /// The driver has notified. Notifications before the ring is looked at are one.
    pub fn notify(&mut self) {
        self.pending = true;
    }

    /// One step of the available side.
    pub fn turn(&mut self, memory: &mut dyn Memory) -> Result<Turn, VirtioCause> {
        match self.phase {
            Phase::Idle if !self.pending => return Ok(Turn::Idle),
            Phase::Idle => self.wake(memory)?,
            Phase::Active => match self.take(memory)? {
                Took::Chain(taken) => return Ok(Turn::Chain(taken)),
                Took::Rejected(cause) => return Ok(Turn::Rejected(cause)),
                Took::Nothing => {
                    self.arm(memory)?;
                    self.phase = Phase::Look;
                }
            },
            Phase::Look => {
                self.pending = false;
                if self.is_available(memory)? {
                    self.wake(memory)?;
                } else {
                    self.phase = Phase::Idle;
                }
            }
        }
        Ok(Turn::Worked)
    }

    /// From now on no notification is needed. With an event index nothing has to be written for that: it stays behind.
    pub fn wake(&mut self, memory: &mut dyn Memory) -> Result<(), VirtioCause> {
        (self.pending, self.phase) = (false, Phase::Active);
        if self.events {
            return Ok(());
        }
        self.tell(memory, UsedHead::default().with_no_notify(true), PackedEvent::default().with_flags(event::DISABLE))
    }

    /// The next chain that becomes available is worth a notification.
    fn arm(&mut self, memory: &mut dyn Memory) -> Result<(), VirtioCause> {
        match self.ring.format() {
            Format::Split if self.events => memory.write(self.ring.avail_event(), &(self.fetch as u16).to_le_bytes()).map_err(|_| VirtioCause::RingDma),
            Format::Packed if self.events => {
                let (slot, wrap) = self.ring.slot(self.fetch);
                self.tell(memory, UsedHead::default(), PackedEvent::default().with_offset(slot as u16).with_wrap(wrap).with_flags(event::DESC))
            }
            _ => self.tell(memory, UsedHead::default(), PackedEvent::default()),
        }
    }

    /// Writes the flags of a split ring's used head, or the event structure of a packed ring.
    fn tell(&mut self, memory: &mut dyn Memory, split: UsedHead, packed: PackedEvent) -> Result<(), VirtioCause> {
        let bytes = match self.ring.format() {
            Format::Split => &split.0[..2],
            Format::Packed => &packed.0[..],
        };
        memory.write(self.ring.device(), bytes).map_err(|_| VirtioCause::RingDma)
    }
}
