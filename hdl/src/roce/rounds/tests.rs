use super::{Rounds, READERS};
use crate::tb::Tb;

/// Each queue pair has a count of its own, and everyone who asks sees it in the cycle after the change.
#[test]
fn rounds_are_counted() {
    let mut tb = Tb::new("rounds3", Rounds::<3>::default());
    let mut model = [0u64; 8];
    for _ in 0..2000 {
        let (rewound, qpn) = (tb.rng().percent(40), tb.rng().below(8));
        tb.set("rewound", rewound.into());
        tb.set("rewound_qpn", qpn);
        let looks: Vec<u64> = (0..READERS).map(|_| tb.rng().below(8)).collect();
        for (n, look) in looks.iter().enumerate() {
            tb.set(&format!("look${n}"), *look);
        }
        tb.begin();
        for (n, look) in looks.iter().enumerate() {
            assert_eq!(tb.get(&format!("round${n}")), model[*look as usize], "reader {n}, queue pair {look}");
        }
        if rewound {
            model[qpn as usize] = (model[qpn as usize] + 1) % 4;
        }
        tb.end();
    }
}
