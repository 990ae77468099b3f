use super::Tracker;
use crate::msg::{TrackEntry, TrackRead, TrackWrite};
use crate::tb::{Fields, Tb};
use std::collections::HashMap;

/// Reads return what was last written to the queue's slot.
#[test]
fn entries_come_back() {
    let mut tb = Tb::new("tracker3", Tracker::<3, 11>::default());
    let (write, read, entry) = (tb.source("s_write", 30), tb.source("s_read", 30), tb.sink("m_entry", 40));
    let (fw, fr, fe) = (Fields::of::<TrackWrite>(), Fields::of::<TrackRead>(), Fields::of::<TrackEntry>());
    let mut model = HashMap::new();
    for _ in 0..40 {
        for _ in 0..50 {
            let (qpn, index) = (tb.rng().below(8), tb.rng().below(65536));
            let (psn, signaled, opcode) = (tb.rng().below(1 << 24), tb.rng().below(2), tb.rng().below(16));
            write.push(fw.pack(&[("qpn", qpn.into()), ("index", index.into()), ("last_psn", psn.into()), ("signaled", signaled.into()), ("opcode", opcode.into())]));
            model.insert((qpn, index % 256), fe.pack(&[("last_psn", psn.into()), ("signaled", signaled.into()), ("opcode", opcode.into())]));
        }
        tb.run_until(1000, |_| write.pending() == 0);
        let expected: Vec<_> = model.clone().into_iter().collect();
        for ((qpn, index), _) in &expected {
            read.push(fr.pack(&[("qpn", (*qpn).into()), ("index", ((*index + 256 * 7) % 65536).into())]));
        }
        tb.run_until(100_000, |_| entry.len() == expected.len());
        for ((qpn, index), want) in &expected {
            let mut got = entry.pop().expect("an answer");
            if let Some(behind) = model.get(&(*qpn, (*index + 1) % 256)) {
                assert_eq!(fe.get(&got, "next_psn"), fe.get(behind, "last_psn"), "the entry behind");
                // What has an answer: codes 4 to 7, and 12 to 14, of which only the first is used.
                assert_eq!(fe.get(&got, "next_asks"), u128::from(matches!(fe.get(behind, "opcode"), 4..8 | 12..15)), "the entry behind");
            }
            fe.set(&mut got, "next_psn", 0);
            fe.set(&mut got, "next_asks", 0);
            assert_eq!(&got, want);
        }
    }
}
