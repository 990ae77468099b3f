//! The control bus inside the card: one master, a table per space.
pub mod switch;
