//! Cycle-exact figures. Scenarios produce boundary traces, and a reader that knows nothing of the code under test turns them into numbers:
//! unique payload that arrived, over all the time that passed. A repeat or a drop on a link without loss fails the run.

pub mod docs;
pub mod host;
pub mod load;
pub mod packet;
pub mod place;
pub mod reader;
pub mod registrations;
pub mod report;
pub mod rig;
pub mod scenarios;
pub mod sweep;
pub mod switch;
pub mod twin;
pub mod uet;
pub mod virtio;
pub mod workers;
