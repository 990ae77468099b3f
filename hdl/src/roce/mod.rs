//! The RoCEv2 transport. See `docs/microarchitecture.md`.

pub mod ackgen;
pub mod gather;
pub mod header;
pub mod mcast;
pub mod peer;
pub mod reply;
pub mod req_rx;
pub mod req_tx;
pub mod requester;
pub mod resp;
pub mod timer;
pub mod tracker;
