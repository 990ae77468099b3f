use super::Unwanted;
use crate::msg::{CellRead, RxDesc};
use crate::tb::{Fields, Tb};

/// Every descriptor is one release, in order of its kind, and one event.
#[test]
fn cells_come_back_once() {
    for (seed, stalls) in [(1, [0, 0, 0]), (2, [30, 50, 70]), (3, [90, 0, 0])] {
        let mut tb = Tb::with_seed("unwanted", Unwanted::default(), seed);
        let (s, s_raw, free) = (tb.source("s", stalls[0]), tb.source("s_raw", stalls[1]), tb.sink("m_free", stalls[2]));
        let (desc, read) = (Fields::of::<RxDesc>(), Fields::of::<CellRead>());
        let mut events = 0;
        for n in 0..300u32 {
            let mut words = tb.rng().words(desc.width());
            desc.set(&mut words, "handle", n.into());
            if n % 2 == 0 { &s } else { &s_raw }.push(words);
        }
        while free.len() < 300 {
            tb.cycle();
            events += tb.get("stat");
            assert!(tb.cycles() < 5_000, "{} of 300", free.len());
        }
        assert!(seed > 1 || tb.cycles() <= 305, "{} cycles", tb.cycles());
        for _ in 0..4 {
            tb.cycle();
            events += tb.get("stat");
        }
        let mut want = [0, 1];
        for _ in 0..300 {
            let words = free.pop().unwrap();
            let [handle, len, frees] = ["handle", "len", "free"].map(|name| read.get(&words, name));
            assert_eq!((handle, len, frees), (want[handle as usize % 2], 0, 1));
            want[handle as usize % 2] += 2;
        }
        assert_eq!(events, 300);
    }
}
