//! How the host behind a card answers.

/// How the host answers.
#[derive(Clone, Copy, Debug)]
pub struct HostTiming {
    /// Shortest read latency in cycles.
    pub read_latency: u32,
    /// Added at random, up to this many cycles: completions overtake each other.
    pub read_jitter: u32,
    /// Cycles from the last write beat to the response.
    pub write_latency: u32,
    /// Beats of different reads may interleave.
    pub interleave: bool,
    /// Probability in percent that a ready or valid is withheld in a cycle.
    pub stall_percent: u32,
    /// Read bursts that the host takes before it has answered one.
    pub max_reads: u32,
    /// Bytes of the bus that move per cycle in either direction, on average; 0: a beat in every cycle. A PCIe Gen3 x16 host at 250 MHz: 54.
    pub bytes_per_cycle: u32,
}

impl Default for HostTiming {
    fn default() -> Self {
        Self { read_latency: 250, read_jitter: 60, write_latency: 100, interleave: false, stall_percent: 0, max_reads: 512, bytes_per_cycle: 0 }
    }
}
