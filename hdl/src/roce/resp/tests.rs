//! The responder against its model.
mod bench;
mod kept;
mod order;
mod pace;
mod single;
mod streams;
