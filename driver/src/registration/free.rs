//! Which parts of an arena are free.
use std::collections::BTreeMap;

/// Free ranges by offset; neighbours are always joined. First fit.
pub(super) struct FreeList {
    ranges: BTreeMap<usize, usize>,
}

impl FreeList {
    pub(super) fn new(offset: usize, len: usize) -> Self {
        Self { ranges: [(offset, len)].into_iter().filter(|r| r.1 > 0).collect() }
    }

    /// Offset of `len` bytes that are free no more.
    pub(super) fn take(&mut self, len: usize) -> Option<usize> {
        let (at, room) = self.ranges.iter().find(|(_, room)| len > 0 && **room >= len).map(|(at, room)| (*at, *room))?;
        self.ranges.remove(&at);
        if room > len {
            self.ranges.insert(at + len, room - len);
        }
        Some(at)
    }

    /// Back again: what `take` gave.
    pub(super) fn give(&mut self, at: usize, len: usize) {
        let (mut at, mut len) = (at, len);
        if let Some(behind) = self.ranges.remove(&(at + len)) {
            len += behind;
        }
        if let Some((before, room)) = self.ranges.range(..at).next_back().map(|(a, l)| (*a, *l)) {
            if before + room == at {
                (at, len) = (before, room + len);
            }
        }
        self.ranges.insert(at, len);
    }

    pub(super) fn available(&self) -> usize {
        self.ranges.values().sum()
    }
}
