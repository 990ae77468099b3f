//! Checksums of TCP and UDP (RFC 1071) in frames that pass: filled in on their way out, looked at on their way in. See README.md.

pub mod fill;
pub mod head;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod total;
pub mod verify;
