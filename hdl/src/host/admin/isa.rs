//! The instruction word of the admin engine. What an instruction does, and the assembler, stand in `ferric_model::admin::isa`.

pub use ferric_model::admin::isa::*;
use rust_hdl::prelude::*;

/// An instruction as the engine reads it. `y` is `imm` or register `b`; register 0 reads as zero.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Inst {
    pub imm: Bits<32>,
    pub target: Bits<11>,
    pub sh: Bits<5>,
    pub use_imm: Bit,
    pub write: Bit,
    pub b: Bits<6>,
    pub a: Bits<6>,
    pub d: Bits<6>,
    pub op: Bits<5>,
}
