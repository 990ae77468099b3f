//! The requester against a whole world in Rust: context store, send queue, gatherer, lossy wire and responder.

mod faults;
mod forged;
mod reads;
mod streams;
mod world;
