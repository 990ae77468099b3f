//! Connection management (IBTA volume 1, chapter 12; annex A11 for RDMA over IP): pure software over the general services queue pair.
//!
//! [`Cm`] is the state machine: messages and time in, messages and events out; it knows no card. [`CmPort`] runs it over a card's queue pair 1.
//! What the peer is told, and what a queue pair must be set to, is in [`Local`] and [`Remote`].
mod connection;
mod gsi;
mod machine;
mod question;
mod sidr;
#[cfg(test)]
mod sidr_tests;
#[cfg(test)]
mod tests;
mod types;
pub mod wire;

pub use gsi::{CmPort, Gsi};
pub use machine::Cm;
pub use types::{timeout, Event, Local, Remote, Request, ServiceAnswer, ServiceQuestion};
pub use wire::{ip_datagram_service_id, ip_service_id, IpHeader, RejectReason, ServiceStatus};
