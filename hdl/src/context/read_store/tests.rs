//! The store of which every line can change hands and contents is the model: with clients that give lines back as they were both do the same in every cycle.

use super::ReadStore;
use crate::context::store::CtxStore;
use crate::msg::{CtlReq, CtlResp};
use crate::stream::chaos;
use crate::tb::{Fields, Rng, Sink, Source, Tb};
use rust_hdl::prelude::*;

const LQ: usize = 4;
const BITS: usize = 200;
const WORDS: u64 = 7;
/// Seed of the delays of both stores.
const DELAYS: u64 = 5;

struct Client {
    acq: Source,
    line: Sink,
    rel: Source,
}

/// One of the two stores with everything that drives it.
struct Bench {
    tb: Tb,
    clients: Vec<Client>,
    ctl: Source,
    answers: Sink,
}

impl Bench {
    fn new<B: Block>(name: &str, block: B, seed: u64, stall: u32) -> Bench {
        let mut tb = Tb::with_seed(name, block, seed);
        let clients = (0..2)
            .map(|i| Client {
                acq: tb.source_of(&format!("client${i}$acq_"), &["id", "tag"], stall),
                line: tb.sink_of(&format!("client${i}$line_"), &["data", "tag", "fault"], stall),
                rel: tb.source_of(&format!("client${i}$rel_"), &["id", "dirty", "data"], stall),
            })
            .collect();
        let (ctl, answers) = (tb.source("s_ctl", stall), tb.sink("m_ctl", stall));
        Bench { tb, clients, ctl, answers }
    }

    /// What has gone through each port since the start.
    fn taken(&self) -> Vec<u64> {
        let clients = self.clients.iter().flat_map(|c| [c.acq.taken(), c.line.taken(), c.rel.taken()]);
        clients.chain([self.ctl.taken(), self.answers.taken()]).collect()
    }
}

/// Where a client is.
#[derive(Clone, Copy)]
enum Phase {
    Free,
    Asked(u64),
    /// Line, cycles still to hold it.
    Has(u64, u64),
    /// Releases taken before this one.
    Gives(u64),
}

/// What came to pass that the test is about.
#[derive(Default, Debug)]
struct Seen {
    lines: u32,
    faults: u32,
    /// Lines asked for while the other client had them.
    conflicts: u32,
    /// Control-bus writes to a line in a client's hands.
    overlaps: u32,
    /// Lines whose contents were not zero.
    filled: u32,
}

fn lockstep(mut both: [Bench; 2], cycles: u32) -> Seen {
    let (req, resp) = (Fields::of::<CtlReq>(), Fields::of::<CtlResp>());
    // Not a bench's own: those have to stay as one.
    let mut rng = Rng::new(both[0].tb.seed());
    let mut phases = [Phase::Free; 2];
    let mut asked_ctl = false;
    let mut seen = Seen::default();
    let line_of = |phase: Phase| match phase {
        Phase::Has(id, _) => Some(id),
        _ => None,
    };
    for _ in 0..cycles {
        both.iter_mut().for_each(|bench| bench.tb.cycle());
        assert_eq!(both[0].taken(), both[1].taken(), "cycle {}", both[0].tb.cycles());
        for i in 0..2 {
            let [got, want] = [0, 1].map(|b| both[b].clients[i].line.pop_fields());
            if let (Phase::Asked(id), Some(want)) = (phases[i], &want) {
                let fault = want[2][0] == 1;
                assert_eq!(fault, id >= 1 << LQ, "fault of id {id}");
                // Nothing is a fault's line.
                let from = usize::from(fault);
                assert_eq!(got.as_ref().map(|got| &got[from..]), Some(&want[from..]), "line {id} for client {i}");
                seen.lines += 1;
                seen.faults += u32::from(fault);
                seen.filled += u32::from(!fault && want[0].iter().any(|word| *word != 0));
                let most = if rng.percent(80) { 4 } else { 40 };
                phases[i] = if fault { Phase::Free } else { Phase::Has(id, rng.below(most)) };
            } else {
                assert!(got.is_none() && want.is_none(), "a line for client {i} that it has not asked for");
            }
            match phases[i] {
                Phase::Has(id, 0) => {
                    let before = both[0].clients[i].rel.taken();
                    both.iter().for_each(|bench| bench.clients[i].rel.push_fields(&[&[id as u32], &[0], &[0]]));
                    phases[i] = Phase::Gives(before);
                }
                Phase::Has(id, left) => phases[i] = Phase::Has(id, left - 1),
                Phase::Gives(before) if both[0].clients[i].rel.taken() > before => phases[i] = Phase::Free,
                Phase::Free => {
                    let id = match rng.below(100) {
                        0..=4 => (1 << LQ) << rng.below(20),
                        5..=60 => 5,
                        _ => rng.below(1 << LQ),
                    };
                    let tag = rng.below(16) as u32;
                    both.iter().for_each(|bench| bench.clients[i].acq.push_fields(&[&[id as u32], &[tag]]));
                    seen.conflicts += u32::from(line_of(phases[1 - i]) == Some(id));
                    phases[i] = Phase::Asked(id);
                }
                Phase::Asked(_) | Phase::Gives(_) => {}
            }
        }
        let [got, want] = [0, 1].map(|b| both[b].answers.pop());
        assert_eq!(got, want, "control bus");
        asked_ctl &= want.is_none();
        if let Some(answer) = want {
            assert!(resp.get(&answer, "err") <= 1);
        } else if !asked_ctl && rng.percent(30) {
            let line = match rng.below(100) {
                0..=4 => 1 << LQ,
                5..=60 => 5,
                _ => rng.below(1 << LQ),
            };
            let (word, write, data) = (rng.below(WORDS + 2), rng.percent(50), rng.next_u32());
            let message = req.pack(&[("line", line.into()), ("word", word.into()), ("write", write.into()), ("data", data.into())]);
            both.iter().for_each(|bench| bench.ctl.push(message.clone()));
            seen.overlaps += u32::from(write && phases.iter().any(|phase| line_of(*phase) == Some(line)));
            asked_ctl = true;
        }
    }
    seen
}

fn exercise(name: &str, chaos: bool, seed: u64, stall: u32, cycles: u32) {
    let name = |kind: &str| format!("{kind}_{name}");
    let store = || if chaos { chaos::scoped(DELAYS, ReadStore::<Bits<BITS>, LQ>::default) } else { ReadStore::default() };
    let model = || if chaos { chaos::scoped(DELAYS, CtxStore::<Bits<BITS>, LQ, 2>::default) } else { CtxStore::default() };
    let mut both = [Bench::new(&name("read_store"), store(), seed, stall), Bench::new(&name("ctx_store"), model(), seed, stall)];
    // In the model a release waits for those of higher clients in its cycle; the check would take other random numbers in one bench than in the other.
    both.iter_mut().for_each(|bench| bench.tb.allow_combinational());
    let seen = lockstep(both, cycles);
    println!("read_store: {seen:?}");
    assert!(seen.lines >= cycles / 100 && seen.filled > seen.lines / 4, "{seen:?}");
    assert!(seen.faults > 0 && seen.conflicts >= 5 && seen.overlaps >= 5, "{seen:?}");
}

#[test]
fn every_cycle_is_that_of_the_store_with_writing_clients() {
    for (seed, stall) in [(1, 0), (2, 20), (3, 60)] {
        exercise("2", false, seed, stall, 12_000);
    }
}

#[test]
fn every_cycle_is_the_same_under_chaos() {
    exercise("2c", true, 4, 20, 60_000);
}

/// The bench checks that by itself, unless it is told not to.
#[test]
fn no_output_follows_an_input_in_its_cycle() {
    let store = || Bench::new("read_store_2", ReadStore::<Bits<BITS>, LQ>::default(), 6, 20);
    let seen = lockstep([store(), store()], 12_000);
    assert!(seen.lines >= 120 && seen.conflicts >= 5, "{seen:?}");
}
