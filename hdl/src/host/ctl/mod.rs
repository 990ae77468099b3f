//! The control bus inside the card: words in, table lines out.
pub mod line;
pub mod switch;
