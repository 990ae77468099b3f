//! Connection management of a card.
use crate::shared::Shared;

/// The communication manager of a card in use.
pub struct Port;

/// Does what is due.
pub fn progress(_shared: &Shared) {}
