//! Typed errors.
use ferric_abi::codes::AdminStatus;
use std::net::IpAddr;

/// What can go wrong between the program, the driver and the card.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device does not answer with Ferric's magic number.
    #[error("device is not a Ferric card (magic register reads {0:#010x}); check the PCI address and that the bitstream is loaded")]
    NotFerric(u32),
    /// The card speaks another major interface version.
    #[error("card speaks interface version {card:#010x}, this driver {driver:#010x}; update one of them")]
    Version {
        /// Version register of the card.
        card: u32,
        /// Version this driver was built for.
        driver: u32,
    },
    /// A device cannot be opened.
    #[error("{device}: {problem}; {mend}")]
    Open {
        /// PCI address or socket.
        device: String,
        /// What is wrong.
        problem: String,
        /// What to do, with the command.
        mend: String,
        /// The system's error number behind it; 0 if there is none.
        errno: i32,
    },
    /// The card was removed, the process that serves it has ended, or this process is a child of the one that opened it.
    #[error("the card is gone: it was removed, or the process that served it has ended, or it was opened by the parent of this process and not by this one")]
    Gone,
    /// The back end could not map memory for DMA.
    #[error("DMA mapping of {len} bytes failed: {reason}")]
    Map {
        /// Bytes.
        len: usize,
        /// What the back end said.
        reason: String,
        /// The system's error number behind it; 0 if there is none.
        errno: i32,
    },
    /// The process has no memory of its own left, or not as much as it may have.
    #[error("no memory: {bytes} bytes were wanted")]
    NoMemory {
        /// Bytes.
        bytes: usize,
    },
    /// A part of the memory is not there, or the process itself may not do with it what the card is to do.
    #[error("{len} bytes at {start:#x} are not all mapped, or not with the rights that were asked for")]
    Fault {
        /// Address of the first byte.
        start: usize,
        /// Bytes.
        len: usize,
    },
    /// The card refused an admin command.
    #[error("{what} refused by the card: {status:?}")]
    Admin {
        /// Command in words.
        what: &'static str,
        /// The card's status.
        status: AdminStatus,
    },
    /// The card did not complete an admin command in time.
    #[error("admin command timed out: {0}")]
    AdminTimeout(&'static str),
    /// All numbers of a kind are in use.
    #[error("the card's {0} are exhausted")]
    Exhausted(&'static str),
    /// A parameter is out of the card's or the protocol's range.
    #[error("{0}")]
    Invalid(&'static str),
    /// The card lacks what it takes.
    #[error("this card cannot {0}: its gateware was made without that engine (docs/engines.md); use one that was made with it, or do without")]
    Unsupported(&'static str),
    /// Nobody answered for an IP address.
    #[error("no machine has answered for {0} (ARP or neighbour discovery); see that the address is right, that the machine is up and in the same network and VLAN, or say its MAC address by hand")]
    NoNeighbour(IpAddr),
    /// The work queue has no free slot; poll completions first.
    #[error("work queue is full")]
    QueueFull,
    /// The queue pair is not in a state that allows this.
    #[error("queue pair is in the wrong state")]
    State,
}

/// Result with the driver's error.
pub type Result<T> = core::result::Result<T, Error>;
