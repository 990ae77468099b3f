//! Coalescing of notifications (spec 5.1.6.5.9): a driver may want to be told of used buffers only when there are so many packets, or after a time.
use super::device::Device;
use super::queue::Role;
use ferric_abi::virtio::NotfCoal;

/// Microseconds that a notification may be held back at most: a driver that asks for more is refused, since whoever steps the device may have to look at its clock for so long.
pub const LONGEST: u32 = 1_000_000;

/// What a driver has asked for: both count, or everything is told at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Packets after which it is told.
    pub packets: u32,
    /// Microseconds after the first packet, after which it is told.
    pub usecs: u32,
}

impl Limits {
    /// The data of TX_SET and RX_SET. `None`: they are cut, or the time is longer than [`LONGEST`].
    pub fn parse(data: &[u8]) -> Option<Self> {
        let wanted = NotfCoal(*data.first_chunk()?);
        Some(Self { packets: wanted.max_packets(), usecs: wanted.max_usecs() }).filter(|limits| limits.usecs <= LONGEST)
    }
}

/// Packets of a queue of which its driver has not been told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Untold {
    packets: u32,
    /// When the first of them was there, in the device's microseconds.
    since: u64,
}

impl Untold {
    /// A packet has come, or left.
    pub fn count(&mut self, now: u64) {
        if self.packets == 0 {
            self.since = now;
        }
        self.packets = self.packets.saturating_add(1);
    }

    /// The driver may be told of what has been used. Chains that have been rejected are no packets: it is told of them at once.
    pub fn is_due(&self, limits: Limits, now: u64) -> bool {
        let waits = limits.packets > 0 && limits.usecs > 0 && (1..limits.packets).contains(&self.packets);
        !waits || now.saturating_sub(self.since) >= limits.usecs.into()
    }
}

impl Device {
    /// It is so many microseconds later than some beginning; never fewer than at the call before. Notifications that are held back go by it.
    pub fn set_time(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// A notification is held back: there is something to do later, whatever the driver does.
    pub fn holds_back(&self) -> bool {
        self.runs() && self.queues.iter().zip(0..).any(|(queue, n)| queue.engine.as_ref().is_some_and(|engine| !engine.told) && !self.may_tell(n))
    }

    /// The queue's driver may be told of what has been used there.
    pub(super) fn may_tell(&self, queue: u16) -> bool {
        let limits = match self.role(queue) {
            Some(Role::Receive) => self.modes.receive_limits,
            Some(Role::Transmit) => self.modes.transmit_limits,
            _ => Limits::default(),
        };
        self.queues[usize::from(queue)].untold.is_due(limits, self.now)
    }
}
