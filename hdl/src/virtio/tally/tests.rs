//! All that is said is counted, however much of it at once.
use super::*;
use crate::tb::{Fields, Tb};
use ferric_abi::codes::VirtioCause;

#[test]
fn everything_is_counted_once() {
    let mut tb = Tb::new("virtio_tally", Tally::default());
    let from = tb.source("s_from", 30);
    tb.reset();
    let causes = [
        VirtioCause::RxSmall,
        VirtioCause::RxNoBuffer,
        VirtioCause::RxDma,
        VirtioCause::AvailJump,
        VirtioCause::BadHead,
        VirtioCause::BadNext,
        VirtioCause::LongChain,
        VirtioCause::BadIndirect,
        VirtioCause::BadDirection,
        VirtioCause::Short,
        VirtioCause::Oversize,
        VirtioCause::BadOffload,
        VirtioCause::RingDma,
        VirtioCause::TxDma,
    ];
    // Their places among the events.
    let places = [3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17];
    let (told, dropped) = (Fields::of::<VqTold>(), Fields::of::<VsDropped>());
    let mut expected = [0u64; EVENTS];
    let mut counted = [0u64; EVENTS];
    let mut count = |tb: &Tb| {
        let stat = tb.get("stat");
        (0..EVENTS).for_each(|n| counted[n] += stat >> n & 1);
    };
    for round in 0..4000u32 {
        // Nobody tells more often than in every fourth cycle; all may at once.
        for voice in 0..VOICES {
            let tells = round % 8 == 0 && tb.rng().percent(60);
            tb.set(&format!("told_valid${voice}"), tells.into());
            let n = tb.rng().below(causes.len() as u64) as usize;
            tb.set_wide(&format!("told${voice}"), told.pack(&[("queue", 3), ("cause", (causes[n] as u8).into())]));
            expected[places[n]] += u64::from(tells);
        }
        let (drops, cause) = (tb.rng().percent(30), 1 + tb.rng().below(6));
        tb.set("dropped_valid", drops.into());
        tb.set_wide("dropped", dropped.pack(&[("function", 1), ("cause", cause.into())]));
        expected[if cause == steer_cause::NO_QUEUE { 2 } else { 1 }] += u64::from(drops);
        let delivers = tb.rng().percent(30);
        tb.set("delivered", delivers.into());
        expected[0] += u64::from(delivers);
        if tb.rng().percent(20) {
            from.push(Fields::of::<VqNotify>().pack(&[("queue", 1)]));
            expected[6] += 1;
        }
        tb.cycle();
        count(&tb);
    }
    ["dropped_valid", "delivered"].iter().for_each(|port| tb.set(port, 0));
    (0..VOICES).for_each(|voice| tb.set(&format!("told_valid${voice}"), 0));
    for _ in 0..3000 {
        tb.cycle();
        count(&tb);
    }
    assert_eq!(counted, expected);
    assert!(expected.iter().all(|n| *n > 50));
}
