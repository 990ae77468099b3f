//! Records between the machines of this half and the lines of its PDCs.
#![allow(missing_docs)]
use crate::uet::pdc::types::PEER;
use crate::uet::pds::types::RxLine;
use crate::uet::types::{Owed, LINE};
use rust_hdl::prelude::*;

/// Timers of a PDC, as low bits of the number that `rdma/timer` knows them by: an ACK is owed; its peer is silent, or it lingers; responses are kept, and it is time to ask for a clear.
pub mod timer {
    pub const ACK: u64 = 0;
    pub const LIFE: u64 = 1;
    pub const CLEAR: u64 = 2;
    /// Their bits below the place of the PDC, in that number.
    pub const SHIFT: u64 = 2;
}

/// What is answered.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Reply {
    pub peer: Bits<PEER>,
    /// The PDC's ids here and there; 0: it has none here.
    pub id: Bits<16>,
    pub peer_id: Bits<16>,
    /// A refusal, its code, and the PSN that is expected.
    pub nack: Bit,
    pub code: Bits<8>,
    pub expected: Bits<32>,
    /// An ACK with a response and all that is known; else of a control packet.
    pub full: Bit,
    /// A packet that has been acknowledged before: `ack` has to hear that an ACK goes.
    pub again: Bit,
    /// A CLEAR_REQUEST; the PDC is ROD.
    pub clears: Bit,
    pub rod: Bit,
    /// The target wants to be closed.
    pub wants: Bit,
    /// Which packet is meant, how it came, and what semantics say of it.
    pub owed: Owed,
    pub service: Bits<16>,
}

/// An order to `lines`. Without `put`: the line `at`, which is answered; with it: the line that was got last goes back, changed, which is not.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct LineAsk {
    pub put: Bit,
    pub at: Bits<LINE>,
    pub line: RxLine,
    /// Timers are started: for the ACK that is owed; for responses that are kept; for a PDC that was heard, or has begun to linger.
    pub owes: Bit,
    pub keeps: Bit,
    pub hears: Bit,
    pub lingers: Bit,
}

/// A line, and whether its peer has been silent for too long, or it has lingered long enough.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct LineTold {
    pub line: RxLine,
    pub due: Bit,
}
