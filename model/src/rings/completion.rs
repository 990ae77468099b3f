//! Golden model of one completion queue.

/// What becomes of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No such queue, or another function's.
    Bad,
    /// No room; `first` raises the one error event.
    Lost { first: bool },
    /// Written to `slot` with `phase`; `event` after the write.
    Written { slot: u16, phase: bool, event: bool },
}

/// One queue.
#[derive(Clone, Debug, Default)]
pub struct CqModel {
    pub valid: bool,
    pub function: u16,
    pub log_size: u8,
    pub eqn: u8,
    pub producer: u16,
    pub consumer: u16,
    pub armed: bool,
    pub armed_solicited: bool,
    pub overflow: bool,
}

impl CqModel {
    /// A completion of `function`; `urgent`: an error, or a solicited receive.
    pub fn complete(&mut self, function: u16, urgent: bool) -> Outcome {
        if !self.valid || function != self.function {
            return Outcome::Bad;
        }
        let size = 1u32 << self.log_size;
        if self.overflow || u32::from(self.producer.wrapping_sub(self.consumer)) == size {
            return Outcome::Lost { first: !std::mem::replace(&mut self.overflow, true) };
        }
        let at = self.producer;
        self.producer = at.wrapping_add(1);
        let event = self.armed || (self.armed_solicited && urgent);
        if event {
            (self.armed, self.armed_solicited) = (false, false);
        }
        Outcome::Written { slot: at & (size - 1) as u16, phase: u32::from(at) / size % 2 == 0, event }
    }

    /// A doorbell: `None` when refused, else whether it raises an event at once.
    pub fn doorbell(&mut self, function: u16, index: u16, arm: bool, arm_solicited: bool) -> Option<bool> {
        let unread = self.producer.wrapping_sub(index);
        if !self.valid || function != self.function || unread > self.producer.wrapping_sub(self.consumer) {
            return None;
        }
        self.consumer = index;
        if !arm && !arm_solicited {
            return Some(false);
        }
        let event = unread != 0;
        self.armed = !event && (arm || self.armed);
        self.armed_solicited = !event && (arm_solicited || self.armed_solicited);
        Some(event)
    }
}
