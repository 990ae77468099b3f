use super::Unwanted;
use crate::msg::{CellRead, RxDesc};
use crate::tb::{Fields, Tb};

/// Every descriptor is one release, in order, and one event.
#[test]
fn cells_come_back_once() {
    for (seed, stalls) in [(1, [0, 0]), (2, [30, 70])] {
        let mut tb = Tb::with_seed("unwanted", Unwanted::default(), seed);
        let (s, free) = (tb.source("s", stalls[0]), tb.sink("m_free", stalls[1]));
        let (desc, read) = (Fields::of::<RxDesc>(), Fields::of::<CellRead>());
        let mut events = 0;
        for n in 0..300u32 {
            let mut words = tb.rng().words(desc.width());
            desc.set(&mut words, "handle", n.into());
            s.push(words);
        }
        while free.len() < 300 {
            tb.cycle();
            events += tb.get("stat");
            assert!(tb.cycles() < 5_000, "{} of 300", free.len());
        }
        for _ in 0..4 {
            tb.cycle();
            events += tb.get("stat");
        }
        for n in 0..300u32 {
            let words = free.pop().unwrap();
            assert_eq!(["handle", "len", "free"].map(|name| read.get(&words, name)), [n.into(), 0, 1]);
        }
        assert_eq!(events, 300);
    }
}
