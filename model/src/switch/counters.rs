//! What is counted (SWITCH.md section 12): for each port what came, what went and why frames were dropped; for each flow frames, bytes and the last use.
use ferric_abi::codes::SwitchCause;
use std::collections::HashMap;

/// Counters of one port. `received + copies = delivered + software + dropped` holds after every frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames that came from this port.
    pub received: u64,
    /// Copies made of them, beyond the first destination of each.
    pub copies: u64,
    /// Those that left by a port.
    pub delivered: u64,
    /// Those that went to software.
    pub software: u64,
    /// Those that were dropped, by cause.
    pub drops: HashMap<SwitchCause, u64>,
}

impl PortCounters {
    /// All drops.
    pub fn dropped(&self) -> u64 {
        self.drops.values().sum()
    }

    /// Whether nothing has vanished.
    pub fn conserved(&self) -> bool {
        self.received + self.copies == self.delivered + self.software + self.dropped()
    }
}

/// Counters of one flow (`ferric_abi::switch::FlowRecord`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Frames.
    pub packets: u64,
    /// Bytes without check sequence, as the frame came (of a tunnel: the inner frame).
    pub bytes: u64,
    /// Number of the frame that used it last, counted over the whole switch: the model has no clock.
    pub last_use: u64,
}

impl FlowCounters {
    /// A frame of so many bytes, at a time. The gateware's `switch/count` is compared with this; it counts frames in 40 bits, bytes in 48, and time in ticks.
    pub fn take(&mut self, bytes: u64, time: u64) {
        self.packets += 1;
        self.bytes += bytes;
        self.last_use = time;
    }
}
