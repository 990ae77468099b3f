//! Golden model of packet delivery: PDCs that come and go, windows, acknowledges, loss, paths.
//!
//! [`Pds::step`] takes a state and an event and gives what is to be done; nothing else changes the state, and equal states answer equally. Payload is not here: a packet
//! has a [`Body`], as packet delivery has in the gateware, and who owns memory adds the bytes. The gateware of `uet` will be compared with this model.
mod address;
mod answer;
mod hear;
mod pdc;
mod pool;
mod rx;
mod spray;
#[cfg(test)]
mod tests;
mod tx;
mod types;

pub use pdc::{Pdc, Shared, Stage};
pub use pool::{Pds, Pool};
pub use rx::{Arrival, Finished, Mark, Rx, Seen};
pub use spray::{random, Policy, Spray, Told};
pub use tx::{Answer, Content, Record, Tx};
pub use types::{Action, Body, Config, Counter, Defect, Event, Failure, Message, Mode, Packet, Peer, Response, Sack, Timer, To};
