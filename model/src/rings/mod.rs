//! Rings in host memory: what a doorbell, a completion and a work request do to them.

pub mod completion;
pub mod receive;
pub mod send;
