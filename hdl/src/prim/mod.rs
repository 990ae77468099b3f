//! Leaf primitives: the only place with Verilog text. A leaf has no protocol state, only storage, pure functions and
//! (for [`chaos`]) a test-only pattern generator.

pub mod chaos;
pub mod ram;
