//! The counters of the default card: which number is which event.

use std::sync::OnceLock;

/// `block.event` of every counter, in counter order.
pub fn names() -> Vec<String> {
    all().to_vec()
}

fn all() -> &'static [String] {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    NAMES.get_or_init(|| super::Card::named(super::DEFAULT, super::WIDTHS[0]).map(|card| card.list().counter_names()).unwrap_or_default())
}

/// Of every counter, in counter order: it is kept by function. The others are the card's, and count for function 0.
pub fn by_function() -> Vec<bool> {
    super::Card::named(super::DEFAULT, super::WIDTHS[0]).map(|card| card.list().counters.iter().flat_map(|c| vec![c.whose.is_some(); c.events.len()]).collect()).unwrap_or_default()
}

/// Number of the counter called `name` (`block.event`).
pub fn index(name: &str) -> Option<usize> {
    all().iter().position(|n| n == name)
}
