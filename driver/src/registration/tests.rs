use super::free::FreeList;
use proptest::prelude::*;

proptest! {
    /// Pieces never overlap, and everything comes back as one range.
    #[test]
    fn pieces_do_not_overlap(steps in proptest::collection::vec((1usize..40, any::<prop::sample::Index>(), any::<bool>()), 1..80)) {
        let mut list = FreeList::new(7, 200);
        let mut out: Vec<(usize, usize)> = Vec::new();
        for (len, which, back) in steps {
            if back && !out.is_empty() {
                let (at, len) = out.swap_remove(which.index(out.len()));
                list.give(at, len);
            } else if let Some(at) = list.take(len) {
                prop_assert!(at >= 7 && at + len <= 207);
                prop_assert!(out.iter().all(|(a, l)| at + len <= *a || a + l <= at));
                out.push((at, len));
            }
            prop_assert_eq!(list.available(), 200 - out.iter().map(|o| o.1).sum::<usize>());
        }
        out.into_iter().for_each(|(at, len)| list.give(at, len));
        prop_assert_eq!(list.take(200), Some(7));
    }
}

#[test]
fn nothing_is_not_a_piece() {
    let mut list = FreeList::new(0, 64);
    assert_eq!((list.take(0), list.take(65), list.take(64), list.take(1)), (None, None, Some(0), None));
}
