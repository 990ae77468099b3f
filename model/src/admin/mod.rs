//! The admin engine: its instructions, the microprogram that executes the admin commands (docs/admin.md), and an interpreter of it.

pub mod interpreter;
pub mod isa;
pub mod program;

/// What the admin engine reads of a function by `look_word`: the words of its row, and what is not kept there.
pub mod word {
    /// Base of the admin ring, two words.
    pub const SQ: u32 = 0;
    /// Base of the completion ring, two words.
    pub const CQ: u32 = 2;
    /// log2 of the slots of both.
    pub const SIZE: u32 = 4;
    /// Producer index.
    pub const PRODUCER: u32 = 5;
    /// As the register STATUS.
    pub const STATE: u32 = 6;
    /// Whose turn it is: bits 11:0, if bit [`DUE`] is set. The same for all functions.
    pub const TURN: u32 = 7;
    /// Bits of [`STATE`].
    pub const ENABLED: u8 = 0;
    /// See [`ENABLED`].
    pub const RESETTING: u8 = 1;
    /// Bit of [`TURN`].
    pub const DUE: u8 = 31;
}

/// Lines of `space::STATS` (`abi::csr`).
pub mod stats {
    /// Words of a line on the control bus, and the ones behind them: the low and the high half of one function's sum, and of that of all functions.
    pub const OWN: u32 = 0;
    pub const TOTAL: u32 = 2;
    /// The function's place in the number of a line; below it is the counter.
    pub const FUNCTION_AT: u32 = 12;
}
