use super::CcHook;
use crate::msg::CcEvent;
use crate::tb::{Fields, Tb};

/// Each event is counted by what it is; the policy in force orders nothing.
#[test]
fn events_are_counted_and_nothing_is_updated() {
    let mut tb = Tb::new("cc_hook", CcHook::default());
    let layout = Fields::of::<CcEvent>();
    let (mut marked, mut ignored) = ((0, 0), (0, 0));
    for _ in 0..2000 {
        let rng = tb.rng();
        let (mut words, valid, kind, ecn) = (rng.words(layout.width()), rng.percent(60), rng.below(2), rng.below(4));
        layout.set(&mut words, "kind", kind.into());
        layout.set(&mut words, "ecn", ecn.into());
        marked.0 += u64::from(valid && ecn == 3);
        ignored.0 += u64::from(valid && kind == 1);
        tb.set_wide("notice", words);
        tb.set("notice_valid", valid.into());
        tb.cycle();
        let stat = tb.get("stat");
        (marked.1, ignored.1) = (marked.1 + (stat & 1), ignored.1 + (stat >> 1));
        assert_eq!(tb.get("update_valid"), 0);
    }
    assert_eq!((marked.0, ignored.0), (marked.1, ignored.1));
}
