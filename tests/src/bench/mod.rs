//! Cycle-exact figures: scenarios produce boundary traces, a reader that knows nothing of the code under test turns them into numbers.

pub mod answers;
pub mod datagrams;
pub mod host;
pub mod reader;
pub mod registrations;
pub mod scenario;
