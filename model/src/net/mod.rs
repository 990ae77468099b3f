//! Frames: how they are read and built, whose they are, what the card answers by itself.

pub mod echo;
pub mod icrc;
pub mod layers;
pub mod networks;
pub mod opcode;
pub mod parse;
pub mod pause;
pub mod stations;
pub mod sums;
