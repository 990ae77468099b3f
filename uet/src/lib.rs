//! Ultra Ethernet transport in software: frames ([`wire`]).
pub mod wire;
