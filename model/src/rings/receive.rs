//! Golden model of one receive ring.

/// One ring: what an allocation, a flush and a doorbell do to it when nothing else is on the way.
#[derive(Clone, Debug, Default)]
pub struct RingModel {
    pub function: u16,
    pub log_size: u8,
    pub stride: u8,
    pub producer: u16,
    pub next: u16,
    pub flush: bool,
    /// Of a shared receive queue: its limit (0: not armed), and whether a fetch has failed.
    pub shared: bool,
    pub limit: u16,
    pub error: bool,
}

impl RingModel {
    /// Slots posted and not handed out.
    pub fn pending(&self) -> u16 {
        self.producer.wrapping_sub(self.next)
    }

    /// Whether a doorbell is accepted.
    pub fn doorbell(&mut self, function: u16, index: u16) -> bool {
        let ahead = index.wrapping_sub(self.next);
        let accepted = function == self.function && ahead > self.pending() && u32::from(ahead) <= 1 << self.log_size;
        if accepted {
            self.producer = index;
        }
        accepted
    }

    /// The slot an allocation gets.
    pub fn alloc(&mut self) -> Option<u16> {
        (self.pending() > 0 && !self.flush && !self.error).then(|| self.pop())
    }

    /// Whether the limit event is due, after an allocation and after arming (IBTA 10.2.9.3): it comes once.
    pub fn reached(&mut self) -> bool {
        let reached = self.shared && self.pending() < self.limit;
        if reached {
            self.limit = 0;
        }
        reached
    }

    /// Next slot in ring order.
    pub fn pop(&mut self) -> u16 {
        let index = self.next;
        self.next = index.wrapping_add(1);
        index
    }

    /// Byte offset of slot `index` from the ring's base.
    pub fn offset(&self, index: u16) -> u64 {
        u64::from(index & ((1u32 << self.log_size) - 1) as u16) << (6 + self.stride)
    }
}
