//! Golden model of one send ring: what may be offered next, whatever the timing.

/// One ring as the requester and the host see it.
#[derive(Clone, Debug, Default)]
pub struct RingModel {
    pub function: u16,
    pub log_size: u8,
    pub stride: u8,
    pub epoch: u8,
    pub producer: u16,
    /// Next index the requester expects in the present epoch.
    pub next: u16,
    pub parked: bool,
    pub flush: bool,
}

impl RingModel {
    /// Whether the unit accepts a doorbell, given that it has not fetched beyond `next` (idle queue).
    pub fn doorbell(&mut self, function: u16, index: u16) -> bool {
        let (ahead, pending) = (index.wrapping_sub(self.next), self.producer.wrapping_sub(self.next));
        let accepted = function == self.function && ahead > pending && u32::from(ahead) <= 1 << self.log_size;
        if accepted {
            self.producer = index;
        }
        accepted
    }

    /// `SqCmd`.
    pub fn command(&mut self, op: u8, index: u16, epoch: u8) {
        self.parked = op == 1;
        if op != 2 {
            self.next = index;
            self.epoch = epoch;
        }
        self.flush |= op == 3;
    }

    /// Requests still to be offered.
    pub fn pending(&self) -> u16 {
        self.producer.wrapping_sub(self.next)
    }

    /// Byte offset of slot `index` from the ring's base.
    pub fn offset(&self, index: u16) -> u64 {
        u64::from(index & ((1u32 << self.log_size) - 1) as u16) << (6 + self.stride)
    }
}
