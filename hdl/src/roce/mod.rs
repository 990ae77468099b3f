//! The RoCEv2 transport. See `docs/microarchitecture.md`.

pub mod header;
pub mod resp;
pub mod gather;
pub mod req_rx;
pub mod req_tx;
pub mod requester;
pub mod timer;
pub mod tracker;
pub mod ackgen;
pub mod mcast;
pub mod peer;
pub mod reply;
