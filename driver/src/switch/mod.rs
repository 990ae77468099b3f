//! The flow switch, as far as the driver has it: where entries and rules stand in the card's tables. No card has these tables yet.

pub mod place;
pub mod rules;
