//! The memory target's set-up protocol: constants. Frames: `SetupRequest` and `SetupReply` in [`crate::wire`]; codes: `TargetOp` and
//! `TargetStatus` in [`crate::codes`]; behaviour: hdl/src/target/setup/README.md.

/// UDP port of the target.
pub const PORT: u16 = 47910;
/// First word of requests and answers.
pub const MAGIC: u32 = 0xfe44_5e70;
/// Version of the protocol.
pub const VERSION: u8 = 1;
