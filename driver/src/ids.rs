//! Numbers of objects: each function has a range of each kind (docs/admin.md), in which the driver chooses.
use crate::context::Inner;
use crate::error::{Error, Result};
use ferric_abi::codes::{AdminOpcode, AdminStatus, ObjectKind};
use ferric_abi::csr::RANGE_IN_USE;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

/// A range word of the card: the numbers, and whether the function has made use of them since its last reset.
pub(crate) fn range(word: u32) -> (Range<u32>, bool) {
    let first = word & 0xff_ffff;
    (first..first + (1 << (word >> 24 & 31)), word & RANGE_IN_USE != 0)
}

#[derive(Default)]
struct Numbers {
    /// Used again oldest first, so that stale references show.
    free: VecDeque<u32>,
    /// Free as well, but in the range of another function that makes use of it: the physical function's driver alone has such.
    lent: Vec<u32>,
}

/// Numbers of one kind of object.
pub(crate) struct Ids {
    what: &'static str,
    kind: ObjectKind,
    /// Smallest number handed out; those below are reserved.
    first: u32,
    numbers: Mutex<Numbers>,
}

impl Ids {
    pub(crate) fn new(what: &'static str, kind: ObjectKind, range: Range<u32>) -> Self {
        Self { what, kind, first: range.start, numbers: Mutex::new(Numbers { free: range.collect(), lent: Vec::new() }) }
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(crate) fn give(&self, id: u32) {
        if id >= self.first {
            self.numbers().free.push_back(id);
        }
    }

    /// Sets the numbers aside that other functions have, and takes back those they have not any more. False: `id` is none of theirs.
    fn sort(&self, ctx: &Inner, id: Option<u32>) -> Result<bool> {
        let mut theirs = Vec::new();
        for function in 1..ctx.caps.functions {
            let words = ctx.admin("query ranges", AdminOpcode::QueryRanges, function, &[1])?;
            let (numbers, used) = range(words[self.kind as usize]);
            if used {
                theirs.push(numbers);
            }
        }
        let lent = |id: &u32| theirs.iter().any(|r| r.contains(id));
        let mut n = self.numbers();
        let Numbers { free, lent: aside } = &mut *n;
        free.extend(aside.drain(..));
        aside.extend(free.iter().copied().filter(lent));
        free.retain(|id| !lent(id));
        Ok(id.is_some_and(|id| lent(&id)))
    }
}

impl Inner {
    /// Makes an object and gives its number. A number that another function's object has, or that has come into another's range, is passed over.
    pub(crate) fn create(&self, what: &'static str, opcode: AdminOpcode, ids: &Ids, params: &[u32]) -> Result<u32> {
        let mut passed = Vec::new();
        let physical = self.caps.function == 0;
        let made = loop {
            let id = ids.numbers().free.pop_front();
            let Some(id) = id else {
                let more = physical && !ids.numbers().lent.is_empty() && ids.sort(self, None).is_ok() && !ids.numbers().free.is_empty();
                if more {
                    continue;
                }
                break Err(Error::Exhausted(ids.what));
            };
            match self.admin(what, opcode, id, params) {
                Ok(_) => break Ok(id),
                Err(Error::Admin { status: AdminStatus::BadState, .. }) => passed.push(id),
                Err(e) => {
                    ids.give(id);
                    let refused = physical && matches!(e, Error::Admin { status: AdminStatus::BadId, .. });
                    if !refused || !ids.sort(self, Some(id)).unwrap_or(false) {
                        break Err(e);
                    }
                }
            }
        };
        passed.into_iter().for_each(|id| ids.give(id));
        made
    }
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn a_range_word_says_which_numbers_and_whether_they_are_used() {
        assert_eq!(range(6 << 24 | 64), (64..128, false));
        assert_eq!(range(1 << 31 | 7), (7..8, true));
    }
}
