//! What functions may send, as it stands in the card.

use super::place::Table;
use ferric_abi::switch::bind::KEY_BITS;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Bits of the middle word of a key's hash.
const MIDDLE: usize = 64;

/// The addresses that stand in the card, by function.
#[derive(Debug)]
pub(super) struct Senders {
    pub(super) table: Table<KEY_BITS, MIDDLE>,
    pub(super) of: BTreeMap<u8, BTreeSet<IpAddr>>,
}

impl Senders {
    /// No addresses, in four ways of 2^`lg` lines.
    pub(super) fn new(lg: u32) -> Self {
        Self { table: Table::new(lg), of: BTreeMap::new() }
    }
}
