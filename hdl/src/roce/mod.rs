//! The RoCEv2 transport. See `docs/microarchitecture.md`.

pub mod ackgen;
pub mod header;
pub mod mcast;
pub mod peer;
pub mod reply;
pub mod req_rx;
pub mod req_tx;
pub mod requester;
pub mod resp;
pub mod rounds;
pub mod tracker;
pub mod word;
