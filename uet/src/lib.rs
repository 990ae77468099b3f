//! Ultra Ethernet transport in software: frames ([`wire`]).
pub mod check;
pub mod end;
pub mod model;
pub mod replay;
pub mod soak;
pub mod wire;
