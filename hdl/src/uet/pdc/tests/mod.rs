//! Random lives of PDCs against the golden model's packet delivery, event by event: who is opened, accepted, refused, closed and taken away, and what is left.
mod arrivals;
mod events;
mod rules;

use super::types::*;
use super::Pdc;
use crate::tb::{Fields, Sink, Source, Tb};
use ferric_uet::model::{Action, Config, Counter, Event, Message, Mode, Pds, Policy, Stage, Timer};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

const LP: usize = 4;
/// Few chains, so that they are long.
const LH: usize = 2;
const WINDOW: u32 = 8;
/// Cycles after which the block has hung.
const PATIENCE: u64 = 20_000;
/// Start_PSN is at least so far from all that its place may have used.
const DISTANCE: u32 = 1 << 16;
const PSNS: u32 = 1 << 31;

fn config() -> Config {
    Config {
        pool_bits: LP as u32,
        life_bits: 16 - LP as u32,
        places: 13,
        share: 9,
        peer_share: 4,
        peer_initiators: 3,
        low: 2,
        mtu: 100,
        window: WINDOW,
        mpr_unit: 1,
        default_mpr: 8,
        first_window: 4,
        nack_gap: 0,
        nack_max: 3,
        rto_max: 6,
        limit: 9,
        spray: Policy::Fixed,
        ..Config::default()
    }
}

/// A PDC here and there. The model takes the lowest free place, the block the one that has been free for longest, so their ids differ.
#[derive(Clone, Debug)]
struct Pair {
    model: u16,
    block: u16,
    peer: u32,
    peer_id: u16,
    mode: Mode,
    busy: bool,
    closing: bool,
    wants: bool,
}

/// The block alone: orders, answers, pulses.
struct Block {
    tb: Tb,
    ask: Fields,
    told: Fields,
    source: Source,
    sink: Sink,
    stats: [u64; STAT_BITS],
}

/// An answer.
struct Told {
    fields: Fields,
    words: Vec<u32>,
}

impl Told {
    fn get(&self, name: &str) -> u64 {
        self.fields.get(&self.words, name) as u64
    }

    fn is(&self, name: &str) -> bool {
        self.get(name) == 1
    }

    fn id(&self) -> u16 {
        self.get("line.id") as u16
    }
}

impl Block {
    fn new(name: &str, config: &Config) -> Self {
        let mut tb = Tb::new(name, Pdc::<LP, LH>::default());
        for (port, value) in [
            ("window", config.window as usize),
            ("share", config.share),
            ("peer_share", config.peer_share),
            ("peer_initiators", config.peer_initiators),
            ("places", config.places),
            ("low", config.low),
            ("linger_cut", config.linger_cut.into()),
            ("seed", 77),
        ] {
            tb.set(port, value as u64);
        }
        // The seed is taken at reset.
        tb.reset();
        Self { ask: Fields::of::<PdcAsk>(), told: Fields::of::<PdcTold>(), source: tb.source("s", 30), sink: tb.sink("m", 30), tb, stats: [0; STAT_BITS] }
    }

    fn wait(&mut self) -> Told {
        for _ in 0..PATIENCE {
            if let Some(words) = self.sink.pop() {
                return Told { fields: self.told.clone(), words };
            }
            self.tb.begin();
            let stat = self.tb.get("stat");
            self.stats.iter_mut().enumerate().for_each(|(bit, count)| *count += stat >> bit & 1);
            self.tb.end();
        }
        panic!("no answer");
    }

    fn ask(&mut self, kind: u64, order: &[(&str, u64)]) -> Told {
        let mut all = vec![("kind", u128::from(kind))];
        all.extend(order.iter().map(|(name, value)| (*name, u128::from(*value))));
        self.source.push(self.ask.pack(&all));
        self.wait()
    }

    fn stat(&self, name: &str) -> u64 {
        self.stats[STATS.iter().position(|stat| *stat == name).unwrap()]
    }
}

struct Bench {
    block: Block,
    pds: Pds,
    /// By the model's id.
    live: BTreeMap<u16, Pair>,
    gone: Vec<Pair>,
    /// Messages that no PDC takes yet, as the model has them.
    waiting: VecDeque<(u32, Mode, Message)>,
    /// With semantics.
    delivered: Vec<(u16, u32, u32)>,
    /// Start_PSN that a place had last; places that were used.
    starts: BTreeMap<u16, u32>,
    reused: u64,
    /// Control packets that are ignored.
    ignored: u64,
    message: u16,
    /// Ids that peers have used.
    theirs: u16,
    counters: BTreeMap<Counter, u64>,
    reached: BTreeMap<String, u64>,
    /// Ends that the model counts nowhere.
    quiet: u64,
}

impl Bench {
    fn new(name: &str) -> Self {
        let (block, pds) = (Block::new(name, &config()), Pds::new(Arc::new(config())));
        let (live, gone, waiting, delivered, starts, counters, reached) = Default::default();
        Self { block, pds, live, gone, waiting, delivered, starts, reused: 0, ignored: 0, message: 0, theirs: 1, counters, reached, quiet: 0 }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.block.tb.rng().below(n)
    }

    fn percent(&mut self, n: u64) -> bool {
        self.block.tb.rng().percent(n as u32)
    }

    fn reach(&mut self, what: impl Into<String>) {
        *self.reached.entry(what.into()).or_default() += 1;
    }

    /// The model's step.
    fn step(&mut self, event: Event) -> Vec<Action> {
        let actions = self.pds.step(event);
        for action in &actions {
            if let Action::Count(counter) = action {
                *self.counters.entry(*counter).or_default() += 1;
            }
        }
        actions
    }

    fn pdc(&self, id: u16) -> Option<&ferric_uet::model::Pdc> {
        self.pds.pdcs().find(|pdc| pdc.id == id)
    }

    /// The block's id for one of the model's; nobody's id stays what it is.
    fn id(&self, model: u16) -> u16 {
        let gone = self.gone.iter().rev().find(|pair| pair.model == model);
        self.live.get(&model).or(gone).map_or(model, |pair| pair.block)
    }

    /// One of the PDCs that are there.
    fn any(&mut self) -> Option<Pair> {
        let n = self.live.len() as u64;
        let at = if n == 0 { return None } else { self.below(n) };
        self.live.values().nth(at as usize).cloned()
    }

    /// One of the last that are gone.
    fn any_gone(&mut self) -> Option<Pair> {
        let n = self.gone.len().min(30) as u64;
        let at = if n == 0 { return None } else { self.below(n) };
        self.gone.iter().rev().nth(at as usize).cloned()
    }

    fn part(&mut self, block: u16) {
        let model = self.live.values().find(|pair| pair.block == block).expect("one that is there").model;
        let pair = self.live.remove(&model).unwrap();
        self.gone.push(pair);
    }

    /// Takes note of a PDC that has begun.
    fn born(&mut self, model: u16, told: &Told) {
        let pdc = self.pdc(model).expect("the model has it, too");
        let initiator = pdc.initiator;
        let pair = Pair { model, block: told.id(), peer: pdc.peer, peer_id: pdc.peer_id, mode: pdc.mode, busy: initiator, closing: false, wants: false };
        let (place, start, theirs) = (told.id() & ((1 << LP) - 1), told.get("line.start") as u32, pdc.rx.start);
        assert!(place != 0 && self.live.values().all(|pair| pair.block & ((1 << LP) - 1) != place), "place {place} is somebody's");
        let last = self.starts.insert(place, start);
        self.reused += u64::from(last.is_some());
        if !initiator {
            assert_eq!(start, theirs);
        } else if let Some(last) = last {
            let beyond = start.wrapping_sub(last);
            assert!(start != 0 && beyond >= PSNS + DISTANCE && beyond <= 0u32.wrapping_sub(DISTANCE), "{start:x} behind {last:x}");
        }
        self.live.insert(model, pair);
    }

    /// What was done to others to make room.
    fn victims(&mut self, told: &Told) {
        let cut = told.get("cut_id") as u16;
        if cut != 0 {
            self.part(cut);
        }
        let victim = told.get("victim");
        if victim != victim::NONE {
            let id = told.get("victim_id") as u16;
            let pair = self.live.values_mut().find(|pair| pair.block == id).expect("one that is there");
            match victim {
                victim::LEAVES => pair.closing = true,
                _ => pair.wants = true,
            }
        }
    }

    /// Tells the block who has work; then the messages that wait find their PDCs, and what has no room asks for it; then all is compared.
    fn settle(&mut self) {
        let works: Vec<(u16, bool)> = self.live.values().filter_map(|pair| self.pdc(pair.model).map(|pdc| (pair.model, !pdc.idle()))).collect();
        for (model, busy) in works {
            let pair = self.live.get_mut(&model).unwrap();
            if pair.busy != busy {
                pair.busy = busy;
                let id = pair.block;
                assert_eq!(self.block.ask(pdc_ask::WORK, &[("id", id.into()), ("busy", busy.into())]).get("verdict"), verdict::DONE);
            }
        }
        let (mut blocked, mut full) = (BTreeSet::new(), false);
        for (peer, mode, message) in std::mem::take(&mut self.waiting) {
            let there = self.live.values().any(|pair| pair.peer == peer && pair.mode == mode && self.initiates(pair));
            if !blocked.contains(&(peer, mode)) && (there || !full) {
                let taken = self.pds.pdcs().find(|pdc| pdc.initiator && pdc.tx.queue.iter().any(|(queued, _)| queued.id == message.id)).map(|pdc| pdc.id);
                let order = [("peer", peer.into()), ("rod", u64::from(mode == Mode::Rod)), ("function", u64::from(peer & 1))];
                let told = self.block.ask(pdc_ask::POST, &order);
                match told.get("verdict") {
                    verdict::OPENED => {
                        if there {
                            self.reach(format!("beside {mode:?}"));
                        }
                        self.born(taken.expect("the model takes it, too"), &told);
                    }
                    verdict::DONE => {
                        let pair = self.live.get_mut(&taken.expect("the model takes it, too")).unwrap();
                        assert_eq!(pair.block, told.id());
                        pair.busy = true;
                    }
                    verdict => assert!(taken.is_none() && [verdict::LATER, verdict::FULL].contains(&verdict), "verdict {verdict}"),
                }
                let verdict = told.get("verdict");
                self.reach(format!("post {verdict}"));
                // Else its peer has its share, and it waits alone.
                full |= verdict == verdict::FULL && !self.pds.has_all(peer);
                if verdict == verdict::FULL && self.pds.has_all(peer) {
                    self.reach("peer full");
                }
                if verdict == verdict::OPENED || verdict == verdict::DONE {
                    continue;
                }
            }
            blocked.insert((peer, mode));
            self.waiting.push_back((peer, mode, message));
        }
        if full {
            let told = self.block.ask(pdc_ask::ROOM, &[]);
            self.reach(format!("room {}", told.get("victim")));
            self.victims(&told);
        }
        self.compare();
    }

    fn initiates(&self, pair: &Pair) -> bool {
        self.pdc(pair.model).is_some_and(|pdc| pdc.initiator)
    }

    /// All PDCs are the same; one of them is looked at closely.
    fn compare(&mut self) {
        let model: BTreeSet<u16> = self.pds.pdcs().map(|pdc| pdc.id).collect();
        assert_eq!(model, self.live.keys().copied().collect(), "PDCs");
        for pdc in self.pds.pdcs() {
            let pair = &self.live[&pdc.id];
            assert_eq!((pair.closing, pair.wants), (pdc.closing, pdc.wants_close), "{pair:?}");
        }
        let Some(pair) = self.any() else { return };
        let peer_id = self.pdc(pair.model).unwrap().peer_id;
        let told = self.block.ask(pdc_ask::LOOK, &[("id", pair.block.into()), ("peer", pair.peer.into()), ("peer_id", peer_id.into())]);
        let pdc = self.pdc(pair.model).unwrap();
        let stage = match pdc.stage {
            Stage::Syn => stage::SYN,
            Stage::Open => stage::OPEN,
            Stage::CloseWait => stage::CLOSE_WAIT,
            Stage::Linger(close) => {
                assert_eq!(told.get("line.close"), u64::from(close));
                stage::LINGER
            }
            Stage::Over => stage::FREE,
        };
        let line = ["line.stage", "line.initiator", "line.rod", "line.closing", "line.wants", "line.peer", "line.peer_id", "line.function"].map(|name| told.get(name));
        let expected = [stage, pdc.initiator.into(), u64::from(pdc.mode == Mode::Rod), pdc.closing.into(), pdc.wants_close.into(), pdc.peer.into(), pdc.peer_id.into(), u64::from(pdc.peer & 1)];
        assert_eq!((told.get("verdict"), line), (verdict::DONE, expected), "{pair:?}");
        let resting = self.pds.timers().iter().filter(|(id, timer, _)| *timer == Timer::Safety && self.pdc(*id).is_none()).count();
        let count = |which: &dyn Fn(&ferric_uet::model::Pdc) -> bool| self.pds.pdcs().filter(|pdc| which(pdc)).count();
        let expected = [count(&|pdc| pdc.initiator) + resting, count(&|pdc| !pdc.initiator), resting, count(&|pdc| matches!(pdc.stage, Stage::Linger(_)))];
        assert_eq!(["initiators", "targets", "resting", "lingering"].map(|name| told.get(name) as usize), expected);
    }
}

#[test]
fn pdcs_live_as_the_model_says() {
    let mut bench = Bench::new("uet_pdc_test");
    for _ in 0..40_000 {
        bench.event();
        bench.settle();
    }
    bench.finish();
    println!("{:?}", bench.reached);
    for what in events::WANTED {
        assert!(bench.reached.get(*what).is_some_and(|n| *n > 0), "never reached: {what}; {:?}", bench.reached);
    }
    use Counter::*;
    let pairs = [
        ("opened", Opened),
        ("accepted", Accepted),
        ("closed", Closed),
        ("lingered", Lingered),
        ("linger_cut", LingerCut),
        ("ousted", Ousted),
        ("syn_after_close", SynAfterClose),
        ("close_again", CloseAgain),
        ("closed_by_0e", ClosedBy0e),
        ("asked_to_close", TargetWantsClose),
        ("made_to_leave", PoolFull),
        ("trimmed", TrimmedDropped),
        ("early", Early),
        ("stray", Stray),
        ("bad_ack", BadAck),
        ("stale", NackStale),
        ("failed", Failed),
    ];
    for (name, counter) in pairs {
        let quiet = if counter == Failed { bench.quiet } else { 0 };
        let (counted, model) = (bench.block.stat(&format!("uet_pdc_{name}")), bench.counters.get(&counter).copied().unwrap_or(0) + quiet);
        assert_eq!(counted, model, "{name}");
        assert!(model > 0, "never reached: {name}");
    }
    assert_eq!(bench.block.stat("uet_pdc_reused"), bench.reused);
    assert!(bench.reused > 100);
    assert_eq!(bench.block.stat("uet_pdc_ignored"), bench.ignored);
    assert!(bench.ignored > 0);
}
