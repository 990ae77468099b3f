//! Ultra Ethernet transport in software: frames ([`wire`]).
pub mod wire;
pub mod model;
pub mod check;
pub mod end;
pub mod soak;
pub mod replay;
