//! Ends at random, with an intake, an engine and posts that the bench plays.
use super::*;
use crate::host::testing::Control;
use crate::tb::{Fields, Tb};

const LP: usize = 4;
const PLACES: u64 = 1 << LP;

/// What has come of an end so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Hear,
    Walk,
    Flush,
    Settle,
    Over,
}

#[test]
fn an_end_hears_what_had_come_and_visits_all_places() {
    let mut waited = 0;
    for stall in [0, 50] {
        let mut tb = Tb::with_seed(&format!("uet_ending{stall}"), Ending::<LP>::default(), 5);
        let control = Control::new(&mut tb, stall);
        let halves = [0, 1].map(|half| tb.sink(&format!("m${half}"), stall));
        tb.reset();
        // Packets that have come and were not heard.
        let mut inside = 0u64;
        for round in 0..60u32 {
            let (all, peer) = (round % 3 == 0, round % 7);
            control.ask(round, 0, Some(if all { 1 << EVERYBODY } else { peer }));
            let (mut step, mut old, mut places) = (Step::Hear, None::<u64>, Vec::new());
            // Cycles until an answer of the others.
            let mut due: Option<u64> = None;
            let begun = tb.cycles();
            let mut went = false;
            while step != Step::Over {
                assert!(tb.cycles() - begun < 4000, "{step:?}");
                let comes = inside < 10 && tb.rng().percent(20);
                // While it is waited for, one at a time is slow to be heard.
                let goes = inside > 0 && !went && tb.rng().percent(15);
                went = goes;
                let drops = inside > 1 && tb.rng().percent(10);
                tb.set("came", comes.into());
                tb.set("judged", goes.into());
                tb.set("bad", drops.into());
                let answers = due == Some(0);
                due = due.and_then(|left| left.checked_sub(1));
                tb.set("flushed", (answers && step == Step::Flush).into());
                tb.set("settled", (answers && step == Step::Settle).into());
                tb.begin();
                let gone = tb.get_wide("gone");
                let [flush, settle] = ["flush", "settle"].map(|port| tb.get(port));
                tb.end();
                inside = inside + u64::from(comes) - u64::from(goes) - u64::from(drops);
                let gone = |name: &str| Fields::of::<Gone>().get(&gone, name) as u64;
                old = match old {
                    None if gone("on") == 1 => Some(inside),
                    old => old.map(|left| left.saturating_sub(u64::from(goes) + u64::from(drops))),
                };
                if step == Step::Walk || step == Step::Flush || step == Step::Settle && due.is_some() {
                    assert_eq!((gone("on"), gone("all"), gone("peer")), (1, all.into(), if all { 0 } else { peer.into() }));
                }
                for (half, sink) in halves.iter().enumerate() {
                    while let Some(place) = sink.pop_u64() {
                        places.push((half as u64, place));
                    }
                }
                if !places.is_empty() && step == Step::Hear {
                    assert_eq!(old, Some(0), "packets that had come were not heard");
                    waited += u64::from(tb.cycles() - begun > 20);
                    step = Step::Walk;
                }
                if flush == 1 {
                    assert!(all && step == Step::Walk);
                    (step, due) = (Step::Flush, Some(tb.rng().below(30)));
                }
                if settle == 1 {
                    assert!(step == if all { Step::Flush } else { Step::Walk } && due.is_none());
                    (step, due) = (Step::Settle, Some(tb.rng().below(30)));
                }
                if let Some(answer) = control.answer() {
                    assert_eq!((answer, step, due), (Some(0), Step::Settle, None));
                    step = Step::Over;
                }
            }
            let expected: Vec<(u64, u64)> = (0..PLACES).rev().flat_map(|place| [(0, place), (1, place)]).collect();
            assert_eq!(places, expected);
        }
        // A word that is read says nothing, and ends nobody.
        control.ask(3, 2, None);
        let mut answer = None;
        while answer.is_none() {
            tb.cycle();
            assert_eq!(Fields::of::<Gone>().get(&tb.get_wide("gone"), "on"), 0);
            answer = control.answer();
        }
        assert_eq!(answer, Some(Some(0)));
    }
    assert!(waited > 20, "{waited}");
}
