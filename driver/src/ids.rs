//! Numbers of objects: each function has a range of each kind (docs/admin.md), in which the driver chooses.
use ferric_abi::codes::ObjectKind;
use ferric_abi::csr::RANGE_IN_USE;
use ferric_abi::special::is_special;
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
    pub(crate) what: &'static str,
    pub(crate) kind: ObjectKind,
    /// Smallest number handed out; those below are reserved.
    first: u32,
    /// Of queue pairs: log2 of the numbers in a function's share, of which one is that function's special queue pair's and never handed out.
    log_share: Option<u32>,
    numbers: Mutex<Numbers>,
}

impl Ids {
    pub(crate) fn new(what: &'static str, kind: ObjectKind, range: Range<u32>) -> Self {
        Self { what, kind, first: range.start, log_share: None, numbers: Mutex::new(Numbers { free: range.collect(), lent: Vec::new() }) }
    }

    /// Numbers of queue pairs: all but those of special ones (`ferric_abi::special::special_queue_pair`).
    pub(crate) fn of_queue_pairs(range: Range<u32>, log_share: u32) -> Self {
        let mut ids = Self { log_share: Some(log_share), ..Self::new("queue pairs", ObjectKind::Qp, range) };
        ids.numbers.get_mut().unwrap_or_else(|e| e.into_inner()).free.retain(|id| !is_special(*id, log_share));
        ids
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(crate) fn give(&self, id: u32) {
        if id >= self.first && !self.log_share.is_some_and(|log| is_special(id, log)) {
            self.numbers().free.push_back(id);
        }
    }

    /// The next free number.
    pub(crate) fn take(&self) -> Option<u32> {
        self.numbers().free.pop_front()
    }

    /// Some numbers have been set aside for other functions.
    pub(crate) fn has_lent(&self) -> bool {
        !self.numbers().lent.is_empty()
    }

    /// Sets the numbers aside that other functions have, and takes back those they have not any more.
    pub(crate) fn sort(&self, theirs: &[Range<u32>]) {
        let lent = |id: &u32| theirs.iter().any(|r| r.contains(id));
        let mut n = self.numbers();
        let Numbers { free, lent: aside } = &mut *n;
        free.extend(aside.drain(..));
        aside.extend(free.iter().copied().filter(lent));
        free.retain(|id| !lent(id));
    }
}

#[cfg(test)]
mod tests {
    use super::{range, Ids};

    #[test]
    fn special_queue_pairs_are_not_handed_out() {
        let ids = Ids::of_queue_pairs(14..20, 4);
        assert_eq!(std::iter::from_fn(|| ids.take()).collect::<Vec<_>>(), [14, 15, 16, 18, 19]);
        ids.give(17);
        assert_eq!(ids.take(), None);
        ids.give(18);
        assert_eq!(ids.take(), Some(18));
    }

    #[test]
    fn a_range_word_says_which_numbers_and_whether_they_are_used() {
        assert_eq!(range(6 << 24 | 64), (64..128, false));
        assert_eq!(range(1 << 31 | 7), (7..8, true));
    }
}
