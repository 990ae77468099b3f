//! The responder against its model.
mod bench;
mod pace;
mod single;
mod streams;
