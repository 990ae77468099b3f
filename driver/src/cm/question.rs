//! Questions which queue pair serves a service, as the state machine remembers them.
use super::wire::MAD_BYTES;
use crate::ud::AddressHandle;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A question of our own.
pub(super) struct Asking {
    pub to: AddressHandle,
    pub mad: [u8; MAD_BYTES],
    pub due: Duration,
    pub left: u8,
}

/// A peer's.
pub(super) struct Asked {
    pub from: AddressHandle,
    pub tid: u64,
    pub request_id: u32,
    pub service_id: u64,
    /// What has been answered, and until when it is kept.
    pub answer: Option<([u8; MAD_BYTES], Duration)>,
}

/// All of them, and the services after which peers may ask.
#[derive(Default)]
pub(super) struct Questions {
    pub listening: BTreeSet<u64>,
    pub asking: BTreeMap<u32, Asking>,
    pub asked: BTreeMap<u32, Asked>,
}

impl Questions {
    pub fn has(&self, id: u32) -> bool {
        self.asking.contains_key(&id) || self.asked.contains_key(&id)
    }
}
