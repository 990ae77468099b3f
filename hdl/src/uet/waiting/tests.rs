//! Messages of all peers at random, of which some find no PDC for a while, against queues of Rust: those to others pass, and none passes one of its own peer and mode.
use super::*;
use crate::tb::{Fields, Source, Tb};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const LM: usize = 3;
const PEERS: u64 = 5;
/// Cycles of a tick.
const TICK: u64 = 100;

type Name = (u64, u64);

struct Bench {
    tb: Tb,
    posts: Source,
    /// By peer and mode, in their order: numbers that have not been taken.
    inside: BTreeMap<Name, VecDeque<u64>>,
    next: u64,
    /// Peers and modes that have a PDC; places for messages; who has gone.
    open: BTreeSet<Name>,
    room: bool,
    had_room: bool,
    gone: Option<u64>,
    /// What is offered, and whether it is answered in the next cycle.
    offered: Option<(Name, u64)>,
    taken: BTreeMap<Name, u64>,
    /// How often a peer and mode was refused in this tick.
    refused: BTreeMap<Name, u64>,
    slow: u32,
}

impl Bench {
    fn new(seed: u64, stall: u32, slow: u32) -> Self {
        let mut tb = Tb::with_seed(&format!("uet_waiting{stall}"), Waiting::<LM>::default(), seed);
        let posts = tb.source("s", stall);
        tb.reset();
        let (inside, open, taken, refused) = Default::default();
        Self { tb, posts, inside, next: 0, open, room: true, had_room: true, gone: None, offered: None, taken, refused, slow }
    }

    fn post(&mut self, name: Name) {
        self.posts.push(Fields::of::<Message>().pack(&[("peer", name.0.into()), ("rod", name.1.into()), ("token", self.next.into())]));
        self.inside.entry(name).or_default().push_back(self.next);
        self.next += 1;
    }

    fn cycle(&mut self) {
        let now = self.tb.cycles() / TICK;
        if self.tb.cycles() % TICK == 0 {
            self.refused.clear();
        }
        let answers = self.offered.take_if(|_| !self.tb.rng().percent(self.slow));
        let takes = answers.is_some_and(|(name, _)| self.gone == Some(name.0) || self.open.contains(&name));
        self.tb.set("m$ready", takes.into());
        self.tb.set("later", (answers.is_some() && !takes).into());
        self.tb.set("now", now);
        self.tb.set("room", self.room.into());
        let gone = [("on", self.gone.is_some().into()), ("peer", self.gone.unwrap_or(0).into())];
        self.tb.set_wide("gone", &Fields::of::<Gone>().pack(&gone)[..]);
        self.tb.begin();
        let (valid, data) = (self.tb.get("m$valid") == 1, self.tb.get_wide("m$data"));
        self.tb.end();
        let get = |name: &str| Fields::of::<Message>().get(&data, name) as u64;
        let (name, number) = ((get("peer"), get("rod")), get("token"));
        if let Some(answered) = answers {
            assert!(valid && answered == (name, number), "an offer is taken back");
            if takes {
                // Those to a peer that has gone end in any order.
                let numbers = self.inside.get_mut(&name).unwrap();
                let at = numbers.iter().position(|waits| *waits == number).expect("one that has come and was not taken");
                assert!(at == 0 || self.gone.is_some(), "{number} passes {numbers:?}");
                numbers.remove(at);
                *self.taken.entry(name).or_default() += 1;
            } else {
                let count = self.refused.entry(name).or_default();
                *count += 1;
                assert!(*count <= 2, "{name:?} is refused again and again");
            }
        } else if valid {
            assert!(self.offered.is_some() || self.had_room || self.gone == Some(name.0), "there is no place for a message");
            self.offered = Some((name, number));
        }
        self.had_room = self.room;
    }

    fn waits(&self) -> usize {
        self.inside.values().map(VecDeque::len).sum()
    }
}

#[test]
fn messages_pass_those_of_others_and_none_of_their_own() {
    for (seed, stall, slow) in [(1, 0, 20), (2, 50, 80)] {
        let mut bench = Bench::new(seed, stall, slow);
        let (mut most, mut swept) = (0, 0);
        for n in 0..1500u64 {
            let mut draw = |n| bench.tb.rng().below(n);
            let (name, other, kind) = ((draw(PEERS), draw(2)), (draw(PEERS), draw(2)), draw(40));
            bench.room = draw(10) > 0;
            if bench.waits() < 1 << LM {
                bench.post(name);
            }
            match kind {
                0..=9 => drop(bench.open.insert(other)),
                10..=22 => drop(bench.open.remove(&other)),
                // All that had come and wait for this peer are offered, and nobody else's is lost.
                23 => {
                    for _ in 0..400 {
                        bench.cycle();
                    }
                    most = most.max(bench.waits());
                    bench.gone = Some(other.0);
                    let begun = bench.tb.cycles();
                    while bench.tb.get("swept") == 0 {
                        assert!(bench.tb.cycles() - begun < 4000);
                        bench.cycle();
                    }
                    swept += 1;
                    let left = bench.inside.iter().filter(|(name, _)| name.0 == other.0).map(|(_, numbers)| numbers.len()).sum::<usize>();
                    assert!(left <= bench.posts.pending(), "{left} of {other:?}");
                    bench.gone = None;
                    bench.cycle();
                    assert_eq!(bench.tb.get("swept"), 0);
                }
                _ => {}
            }
            (0..n % 60).for_each(|_| bench.cycle());
        }
        bench.room = true;
        bench.open = (0..PEERS).flat_map(|peer| [(peer, 0), (peer, 1)]).collect();
        (0..4000).for_each(|_| bench.cycle());
        assert_eq!(bench.waits(), 0);
        assert!(most == 1 << LM && swept > 20, "{most}, {swept}");
    }
}

/// Whatever waits, the messages to others go on; and whatever goes on, those that wait are looked at.
#[test]
fn nobody_is_kept_from_sending_by_another() {
    let mut bench = Bench::new(3, 0, 0);
    let (silent, good) = ((1, 1), (2, 0));
    bench.open.insert(good);
    (0..(1 << LM) - 1).for_each(|_| bench.post(silent));
    for _ in 0..200 {
        (0..4).for_each(|_| bench.post(good));
        (0..TICK).for_each(|_| bench.cycle());
    }
    assert_eq!((bench.taken.get(&good), bench.taken.get(&silent)), (Some(&800), None));
    // There is no cycle now in which no message comes.
    (0..400).for_each(|_| bench.post(good));
    bench.open.insert(silent);
    (0..3 * TICK).for_each(|_| bench.cycle());
    assert_eq!(bench.taken.get(&silent), Some(&((1 << LM) - 1)));
    assert!(bench.posts.pending() > 100);
}
