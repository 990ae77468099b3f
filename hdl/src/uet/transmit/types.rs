//! Records between the machines of this half and the lines of its PDCs.
#![allow(missing_docs)]
use crate::uet::pds::types::TxLine;
use crate::uet::types::LINE;
use rust_hdl::prelude::*;

/// An order to `lines`. Without `put`: the line `at`, which is answered; with it: the line that was got last goes back, changed, which is not.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct LineAsk {
    pub put: Bit,
    pub at: Bits<LINE>,
    pub line: TxLine,
    /// What `loss` said last goes into it.
    pub update: Bit,
    /// Timers are started, and the PDC is listed, as it says now.
    pub follows: Bit,
    /// The time-out begins anew; the stall's time is looked at; a refused packet waits.
    pub arms: Bit,
    pub stall_again: Bit,
    pub waits: Bit,
    /// The PDC has ended, and its place rests.
    pub ends: Bit,
    /// It was its turn to send; of packets to be sent again.
    pub served: Bit,
    pub again: Bit,
}

/// A line, and what follows from it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct LineTold {
    pub line: TxLine,
    /// The present time-out, and whether the one that runs is over.
    pub timeout: Bits<32>,
    pub due: Bit,
    /// It has something to be sent again; something new; its close.
    pub again: Bit,
    pub fresh: Bit,
    pub closes: Bit,
}
