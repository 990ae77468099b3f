//! Headers of Ultra Ethernet, from beats to a record and back. See README.md.

pub mod builder;
mod delivery;
pub mod parser;
mod semantics;
pub(in crate::uet) mod tables;
#[cfg(test)]
mod tests;
pub mod types;

pub use builder::Builder;
pub use parser::Parser;
