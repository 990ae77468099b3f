//! Random orders of a few PDCs against maps of Rust.
use super::Kept;
use crate::tb::Tb;
use crate::uet::testing::Asked;
use crate::uet::types::{kept_ask, KeptAsk, KeptTold};
use std::collections::BTreeMap;

const LP: usize = 2;
const LK: usize = 4;
const LIMIT: usize = (1 << LK) - (1 << LP);

/// A PDC: its oldest PSN, packets that semantics have, and what is kept: message, code, length.
#[derive(Default)]
struct Lane {
    base: u32,
    pending: Vec<u32>,
    kept: BTreeMap<u32, (u16, u8, u32)>,
    next: u32,
}

impl Lane {
    fn used(&self) -> usize {
        self.pending.len() + self.kept.len()
    }
}

#[test]
fn what_is_kept_is_there_until_it_is_cleared() {
    let mut tb = Tb::with_seed("uet_kept", Kept::<LP, LK>::default(), 5);
    let block = Asked::new::<KeptAsk, KeptTold>(&mut tb);
    tb.reset();
    // PSNs are counted from the start of each, which is near the wrap for one.
    let start = [0u32, 0xffff_fff0, 0x1234_5678, 7];
    let mut lanes: Vec<Lane> = (0..1 << LP).map(|_| Lane::default()).collect();
    let mut reached = [0; 8];
    for _ in 0..6000 {
        let line = tb.rng().below(1 << LP) as usize;
        let used: usize = lanes.iter().map(Lane::used).sum();
        tb.cycle();
        assert_eq!(tb.get("full") == 1, used >= LIMIT, "{used} places are used");
        let psn = |place: u32| start[line].wrapping_add(place);
        let order = |kind: u64, place: u32| vec![("kind", u128::from(kind)), ("line", line as u128), ("psn", psn(place).into())];
        let lane = &mut lanes[line];
        let what = tb.rng().below(20);
        let told = match what {
            // A packet comes: the oldest always finds a place.
            0..=6 if used < LIMIT || lane.used() == 0 => {
                reached[usize::from(used >= LIMIT)] += 1;
                let place = lane.next;
                lane.next += 1;
                lane.pending.push(place);
                block.ask(&mut tb, &order(kept_ask::TAKE, place))
            }
            7..=9 if !lane.pending.is_empty() => {
                reached[2] += 1;
                let n = tb.rng().below(lane.pending.len() as u64) as usize;
                let place = lane.pending.swap_remove(n);
                block.ask(&mut tb, &order(kept_ask::DROP, place))
            }
            10..=14 if !lane.pending.is_empty() => {
                reached[3] += 1;
                let n = tb.rng().below(lane.pending.len() as u64) as usize;
                let place = lane.pending.swap_remove(n);
                let (message, code, length) = (tb.rng().below(1 << 16) as u16, tb.rng().below(64) as u8, tb.rng().below(1 << 32) as u32);
                lane.kept.insert(place, (message, code, length));
                let mut order = order(kept_ask::KEEP, place);
                order.extend([("message", message.into()), ("code", code.into()), ("length", length.into())]);
                block.ask(&mut tb, &order)
            }
            15 | 16 => {
                let place = lane.base + tb.rng().below(u64::from(lane.next - lane.base) + 1) as u32;
                let told = block.ask(&mut tb, &order(kept_ask::LOOK, place));
                let wanted = lane.kept.get(&place);
                reached[4 + usize::from(wanted.is_some())] += 1;
                assert_eq!(told.is("found"), wanted.is_some());
                if let Some((message, code, length)) = wanted {
                    assert_eq!((told.word("message"), told.word("code"), told.word("length")), ((*message).into(), (*code).into(), *length));
                }
                told
            }
            17 | 18 => {
                reached[6] += 1;
                let place = lane.base + tb.rng().below(u64::from(lane.next - lane.base) + 1) as u32;
                lane.kept.retain(|kept, _| *kept >= place);
                lane.base = place;
                block.ask(&mut tb, &order(kept_ask::CLEAR, place))
            }
            19 if tb.rng().percent(20) => {
                reached[7] += 1;
                *lane = Lane { base: lane.next, next: lane.next, ..Lane::default() };
                block.ask(&mut tb, &order(kept_ask::FORGET, 0))
            }
            _ => continue,
        };
        assert_eq!(told.is("any"), !lanes[line].kept.is_empty());
    }
    assert!(reached.iter().all(|count| *count > 20), "{reached:?}");
    for line in 0..lanes.len() {
        block.ask(&mut tb, &[("kind", kept_ask::FORGET.into()), ("line", line as u128)]);
    }
    // All places are there: as many as there are can be filled again.
    for n in 0..(1u32 << LK) - 1 {
        block.ask(&mut tb, &[("kind", kept_ask::TAKE.into()), ("psn", n.into())]);
        block.ask(&mut tb, &[("kind", kept_ask::KEEP.into()), ("psn", n.into()), ("message", n.into())]);
    }
    for n in 0..(1u32 << LK) - 1 {
        let told = block.ask(&mut tb, &[("kind", kept_ask::LOOK.into()), ("psn", n.into())]);
        assert!(told.is("found") && told.word("message") == n, "{n}");
    }
}
