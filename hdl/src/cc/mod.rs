//! Congestion control.
pub mod hook;
