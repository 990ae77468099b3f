//! Cycle-stamped events at the card's boundary, for benches that must not trust the code under test.

/// Bytes of a frame that its last beat's event carries: all headers of RoCEv2 over IPv4 inside a VXLAN tunnel over IPv4, and more without one.
pub const HEAD: usize = 146;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Doorbell write accepted (address in the BAR).
    Doorbell,
    /// Read address accepted.
    ReadAddress,
    /// Last beat of a read burst delivered.
    ReadLast,
    /// Write address accepted.
    WriteAddress,
    /// Write data beat accepted; bytes = strobes set.
    WriteBeat,
    /// Beat out of the MAC port; `last` in the flag.
    TxBeat,
    /// Beat into the MAC port; `last` in the flag.
    RxBeat,
    /// MSI-X request.
    Interrupt,
}

/// One event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Cycle of the handshake in the card's own time: idle time that the simulation skipped is counted ([`crate::World::elapsed`]).
    pub cycle: u64,
    /// Card.
    pub card: u16,
    /// What.
    pub kind: Kind,
    /// Bytes of the beat or burst.
    pub bytes: u32,
    /// Last beat of a frame or burst.
    pub last: bool,
    /// Address, where there is one.
    pub addr: u64,
    /// First bytes of the frame, [`HEAD`] at most, with its last beat; otherwise none.
    pub head: Vec<u8>,
}
