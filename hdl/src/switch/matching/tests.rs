//! Verdicts on frames of every shape against the golden model's, while the tables of the next generation are written and switched to.
use super::{Asking, Matching, Origin, ANSWER, LATENCY};
use crate::bus::AxisSink;
use crate::records::{FlowCommand as CommandStruct, Verdict as VerdictStruct};
use crate::switch::count::Use;
use crate::switch::key::tests::any_frame;
use crate::switch::sight::Sight;
use crate::switch::testing::{any_action, any_mask, homed, words};
use crate::tb::{AxisSource, Fields, Rng, Tb};
use ferric_abi::switch::station;
use ferric_abi::switch::table::{self, profile_line};
use ferric_abi::switch::ternary::{say, sources, Said, Source};
use ferric_abi::switch::{FlowCommand, FlowKey, Verdict};
use ferric_abi::wire::ethertype;
use ferric_driver::switch::place::{Entry, Table, Write};
use ferric_driver::switch::rules::{self, Rules};
use ferric_hdl_derive::{kernel, BlockDefault};
use ferric_model::switch::decide::Facts;
use ferric_model::switch::key::{key, masked, Origin as From};
use ferric_model::switch::layers::{parse, WINDOW};
use ferric_model::switch::tables::{MissAction, Port, Rule, Station, Tables};
use rust_hdl::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// A stream of frames in front of the block.
#[derive(LogicBlock, BlockDefault)]
struct Front<const W: usize, const K: usize, const LG: usize, const G: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: AxisSink<W, K>,
    pub origin: Signal<In, Origin>,
    pub asking: Signal<In, Asking>,
    pub verdict_valid: Signal<Out, Bit>,
    pub verdict: Signal<Out, VerdictStruct>,
    pub stop: Signal<Out, Bits<17>>,
    pub write: Signal<In, Bit>,
    pub command: Signal<In, CommandStruct>,
    pub refused: Signal<Out, Bit>,
    pub busy: Signal<Out, Bit>,
    pub answer: Signal<Out, Bits<ANSWER>>,
    sight: Sight<W, K>,
    matching: Matching<LG, G>,
    /// Nobody counts here.
    #[init(Constant::new(Use::default()))]
    nothing: Constant<Use>,
}

#[kernel]
impl<const W: usize, const K: usize, const LG: usize, const G: usize> Logic for Front<W, K, LG, G> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, sight, matching);
        self.sight.reset.next = self.reset.val();
        self.matching.reset.next = self.reset.val();
        self.s.ready.next = true;
        self.sight.data.next = self.s.data.val();
        self.sight.keep.next = self.s.keep.val();
        self.sight.last.next = self.s.last.val();
        self.sight.err.next = false;
        self.sight.valid.next = self.s.valid.val();
        self.matching.window.next = self.sight.window.val();
        self.matching.window_valid.next = self.sight.window_valid.val();
        self.matching.ended.next = self.sight.ended.val();
        self.matching.len.next = self.sight.len.val();
        self.matching.origin.next = self.origin.val();
        self.matching.asking.next = self.asking.val();
        self.verdict_valid.next = self.matching.verdict_valid.val();
        self.verdict.next = self.matching.verdict.val();
        self.stop.next = self.matching.stop.val();
        self.matching.write.next = self.write.val();
        self.matching.command.next = self.command.val();
        self.refused.next = self.matching.refused.val();
        self.busy.next = self.matching.busy.val();
        self.answer.next = self.matching.answer.val();
        self.matching.answered.next = false;
        self.matching.counted.next = self.nothing.val();
    }
}

/// Where a frame comes from: few places, so that frames come again.
#[derive(Clone, Debug)]
struct Place {
    origin: From,
    port: Port,
}

/// Bridge domains that frames are of. A small table has flood groups for the first two alone, and the others' numbers end as these do.
const DOMAINS: [u16; 4] = [0x20, 0x21, 0xa20, 0xa21];

fn any_place(rng: &mut Rng) -> Place {
    let number = rng.below(4) as u8;
    let origin = From { port: 8 + number, domain: DOMAINS[usize::from(number)], remote: 0, geneve_option: number == 3 };
    let miss = if rng.percent(50) { MissAction::Drop } else { MissAction::Exception };
    Place { origin, port: Port { class: number, miss, bridge: rng.percent(40), ..Default::default() } }
}

/// How many frames there are, which come again and again.
const POOL: usize = 80;
/// Entries of one generation.
const ENTRIES: usize = 100;
/// Wildcard rules of one generation.
const RULES: usize = 10;
/// Stations of one generation.
const STATIONS: usize = 40;
/// Actions of a generation; generations take turns in two halves of as many lines.
const ACTIONS: u64 = 16;
/// Lines from here on are never written.
const NEVER: u64 = 2 * ACTIONS;

struct Bench<const LG: usize, const G: usize> {
    tb: Tb,
    source: AxisSource,
    pool: Vec<Vec<u8>>,
    /// Frames whose verdict is due.
    expected: VecDeque<Vec<u8>>,
    /// Where frames came from, and the generation, in the last cycles; the newest first.
    places: VecDeque<(Place, u8)>,
    generation: u8,
    tables: Tables,
    placement: Table<{ table::KEY_BITS }, 64>,
    homes: Table<{ station::KEY_BITS }, 64>,
    rules: Rules,
    /// The rules as the model has them, by number.
    whole: BTreeMap<usize, Rule>,
    writes: VecDeque<FlowCommand>,
    /// Frames that a rule decided about.
    by_rule: usize,
    /// And a station.
    by_station: usize,
    seen: BTreeMap<(u8, u8), usize>,
    /// The lines that have been written, by table, way and number, as the command would write them that clears what does not count.
    card: BTreeMap<(u8, u8, u32), FlowCommand>,
    /// The command that reads a line, and what that has been since; how many were read of each table.
    reading: Option<(FlowCommand, Vec<FlowCommand>)>,
    read: BTreeMap<u8, usize>,
}

impl<const LG: usize, const G: usize> Bench<LG, G> {
    fn new<const W: usize, const K: usize>() -> Self {
        let mut tb = Tb::new(&format!("matching{W}"), Front::<W, K, LG, G>::default());
        let source = tb.axis_source("s", 20);
        // Every fifth frame at most is one that the parser does not understand.
        let mut frames = std::iter::repeat_with(|| any_frame(tb.rng()));
        let pool = (0..POOL).filter_map(|n| frames.find(|frame| n % 5 == 0 || parse(frame).is_ok())).collect();
        Bench {
            tb,
            source,
            pool,
            expected: VecDeque::new(),
            places: VecDeque::new(),
            generation: 0,
            tables: Tables::default(),
            placement: Table::new(LG as u32),
            homes: Table::new(LG as u32),
            rules: Rules::new(G),
            whole: BTreeMap::new(),
            writes: VecDeque::new(),
            by_rule: 0,
            by_station: 0,
            seen: BTreeMap::new(),
            card: BTreeMap::new(),
            reading: None,
            read: BTreeMap::new(),
        }
    }

    fn push(&mut self, frame: Vec<u8>) {
        self.source.push(&frame);
        self.expected.push_back(frame);
    }

    fn cycle(&mut self) -> bool {
        let place = any_place(self.tb.rng());
        let From { port, domain, remote, geneve_option } = place.origin;
        let origin = [("port", port.into()), ("domain", domain.into()), ("remote", remote.into()), ("option", geneve_option.into())];
        self.tb.set_wide("origin", &Fields::of::<Origin>().pack(&origin)[..]);
        let asking = [("class", place.port.class.into()), ("drop_miss", (place.port.miss == MissAction::Drop).into()), ("generation", self.generation.into()), ("bridge", place.port.bridge.into())];
        self.tb.set_wide("asking", &Fields::of::<Asking>().pack(&asking)[..]);
        self.places.push_front((place, self.generation));
        self.places.truncate(LATENCY as usize);
        let mut command = if self.tb.rng().percent(60) { self.writes.pop_front() } else { None };
        if let Some(command) = &command {
            self.written(command);
        } else if self.reading.is_none() && !self.card.is_empty() && self.tb.rng().percent(50) {
            let at = self.tb.rng().below(self.card.len() as u64) as usize;
            let ((table, way, line), now) = self.card.iter().nth(at).expect("there are as many");
            let read = table::read(*table, *way, *line);
            self.reading = Some((read, vec![*now]));
            command = Some(read);
        }
        self.tb.set("write", command.is_some().into());
        if let Some(command) = command {
            self.tb.set_wide("command", &words(&command.0)[..]);
        }
        let asked = command.is_some_and(|command| command.opcode() == table::READ);
        self.tb.cycle();
        if !asked && self.reading.is_some() && self.tb.get("busy") == 0 {
            let (read, held) = self.reading.take().expect("a read");
            let answer: Vec<u8> = self.tb.get_wide("answer").iter().flat_map(|w| w.to_le_bytes()).collect();
            let stands = table::standing(&read, answer[..].try_into().expect("64")).expect("a table that is written");
            assert!(held.contains(&stands), "{stands:?} {held:?}");
            *self.read.entry(read.table()).or_default() += 1;
        }
        assert_eq!(self.tb.get("refused"), 0);
        let valid = self.tb.get("verdict_valid") == 1;
        if valid {
            let frame = self.expected.pop_front().expect("a verdict for every frame, no more");
            self.compare(&frame);
        }
        valid
    }

    /// What a line is from now on.
    fn written(&mut self, command: &FlowCommand) {
        let place = (command.table(), command.way(), command.line());
        if command.table() == table::ROW {
            return;
        }
        let now = if command.opcode() == table::CLEAR { table::read(place.0, place.1, place.2).with_opcode(table::CLEAR) } else { *command };
        self.card.insert(place, now);
        if let Some((_, held)) = self.reading.as_mut().filter(|(read, _)| (read.table(), read.way(), read.line()) == place) {
            held.push(now);
        }
    }

    fn compare(&mut self, frame: &[u8]) {
        let (Place { origin, port }, generation) = self.places[LATENCY as usize - 1].clone();
        self.tables.generation = generation;
        let want = match parse(frame) {
            Ok(layers) => {
                assert_eq!(self.tb.get("stop"), layers.ip().map_or(0, |ip| ip.end as u64));
                let (key, facts) = (key(&layers, origin), Facts::of(&layers));
                let rules = std::mem::take(&mut self.tables.outbound.tcam);
                let without = self.tables.decide(&key, &facts, &port);
                self.tables.outbound.tcam = rules;
                let want = self.tables.decide(&key, &facts, &port);
                self.by_station += usize::from(want != self.tables.decide(&key, &facts, &Port { bridge: false, ..port.clone() }));
                self.by_rule += usize::from(want != without);
                want
            }
            // A frame that is longer than the window is known to be cut when it ends: `stop` says so.
            Err(_) if frame.len() > WINDOW && self.tb.get("stop") > frame.len() as u64 => return,
            Err(_) => self.tables.decide(&Default::default(), &Facts::DEEP, &port),
        };
        let got = Verdict(self.tb.get_wide("verdict").iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>()[..Verdict::BYTES].try_into().expect("13"));
        assert_eq!(got, want, "generation {generation} {origin:?} {port:?} {frame:02x?}");
        *self.seen.entry((want.kind(), want.cause())).or_default() += 1;
    }

    /// The commands of a placement.
    fn placed(&mut self, writes: impl IntoIterator<Item = Write>) {
        for Write { place, entry, .. } in writes {
            let key = entry.as_ref().map(|entry| FlowKey((&entry.key[..]).try_into().expect("61")));
            let what = entry.as_ref().zip(key.as_ref()).map(|(entry, key)| (key, entry.result as u16, entry.generation));
            self.writes.push_back(table::exact(place.way, place.line.into(), what));
        }
    }

    /// The next generation's tables, beside those that are asked.
    fn prepare(&mut self, next: u8) {
        let old: Vec<_> = self.tables.outbound.exact.iter().map(|((key, generation), line)| (*key, *generation, *line)).filter(|(_, generation, _)| *generation == next).collect();
        for (key, generation, line) in old {
            self.tables.outbound.exact.remove(&(key, generation));
            let place = self.placement.remove(&key, generation).expect("it was put there").place;
            // What a line that is cleared holds does not matter.
            self.writes.push_back(table::exact(place.way, place.line.into(), Some((&FlowKey(key), line, generation))).with_opcode(table::CLEAR));
        }
        for port in 0..4 {
            for packet in 0..4 {
                let at = &mut self.tables.outbound.profiles[usize::from(next)][usize::from(port * 4 + packet)];
                if at.is_some() && self.tb.rng().percent(50) {
                    continue;
                }
                *at = self.tb.rng().percent(85).then(|| any_mask(self.tb.rng()));
                self.writes.push_back(table::profile(profile_line(next, port, packet), at.as_ref()));
            }
        }
        let first = u64::from(next & 1) * ACTIONS;
        self.tables.outbound.actions.resize(NEVER as usize, None);
        for line in first..first + ACTIONS {
            let action = self.tb.rng().percent(90).then(|| any_action(self.tb.rng()));
            self.tables.outbound.actions[line as usize] = action;
            self.writes.push_back(table::action(line as u32, action.as_ref()));
        }
        self.prepare_rules(next, first);
        self.prepare_stations(next);
        // An entry of a key of zeros, which a class without a mask must not find.
        if let Ok(writes) = self.placement.insert(Entry { key: [0; table::KEY_BITS / 8].into(), generation: next, result: first as u32 }) {
            self.placed(writes);
            self.tables.outbound.exact.insert(([0; table::KEY_BITS / 8], next), first as u16);
        }
        for _ in 0..ENTRIES {
            let rng = self.tb.rng();
            let frame = &self.pool[rng.below(POOL as u64) as usize];
            let place = any_place(rng);
            let Ok(layers) = parse(frame) else { continue };
            let class = Facts::of(&layers).class;
            let Some(mask) = self.tables.outbound.profiles[usize::from(next)][ferric_model::switch::tables::profile(&place.port, class)] else { continue };
            let line = match rng.below(20) {
                0 => rng.range(NEVER, (1 << LG) - 1),
                1 => rng.below(1 << 16) | 1 << LG,
                _ => first + rng.below(ACTIONS),
            };
            let key = masked(&key(&layers, place.origin), &mask).0;
            // A key without room stays in software.
            if let Ok(writes) = self.placement.insert(Entry { key: key.into(), generation: next, result: line as u32 }) {
                self.placed(writes);
                self.tables.outbound.exact.insert((key, next), line as u16);
            }
        }
    }

    fn prepare_stations(&mut self, next: u8) {
        let old: Vec<_> = self.tables.outbound.fdb.keys().filter(|(_, _, generation)| *generation == next).copied().collect();
        for (domain, mac, generation) in old {
            self.tables.outbound.fdb.remove(&(domain, mac, generation));
            let write = self.homes.remove(&station::key(domain, mac), generation).expect("it was put there");
            self.writes.push_back(table::station(write.place.way, write.place.line.into(), None));
        }
        for _ in 0..STATIONS {
            let rng = self.tb.rng();
            let frame = &self.pool[rng.below(POOL as u64) as usize];
            let Ok(layers) = parse(frame) else { continue };
            let key = key(&layers, any_place(rng).origin);
            let number = rng.below(1 << 8) as u16;
            // Lines of the encapsulation table that are not there leave by uplink 0.
            let (to, result) = match rng.below(3) {
                0 => (Station::Port(number as u8), station::port(number as u8)),
                1 => (Station::Remote(number), station::remote(number, 0)),
                _ => (Station::Group(number), station::group(number)),
            };
            let home = station::key(key.domain(), key.dmac());
            if let Ok(writes) = self.homes.insert(Entry { key: home.into(), generation: next, result: result.into() }) {
                self.writes.extend(writes.iter().map(homed));
                self.tables.outbound.fdb.insert((key.domain(), key.dmac(), next), to);
            }
        }
    }

    /// Wildcard rules of the next generation, in every other number; those of its name from four generations ago go.
    fn prepare_rules(&mut self, next: u8, first: u64) {
        let old: Vec<usize> = self.whole.iter().filter(|(_, rule)| rule.generation == next).map(|(number, _)| *number).collect();
        for number in old {
            self.whole.remove(&number);
            self.writes.extend(self.rules.clear(number).unwrap());
        }
        for _ in 0..RULES {
            let number = self.tb.rng().below(self.rules.room() as u64 / 2) as usize * 2 + usize::from(next & 1);
            let rng = self.tb.rng();
            let frame = &self.pool[rng.below(POOL as u64) as usize];
            let Ok(layers) = parse(frame) else { continue };
            let key = key(&layers, any_place(rng).origin);
            let v6 = key.ethertype() == ethertype::IPV6;
            // Some of the bits that rules see; the type says which these are.
            let seen = sources(v6);
            let mut mask = FlowKey::default();
            for bit in (0..table::KEY_BITS).filter(|bit| seen.contains(&Source::Key(*bit))) {
                mask.0[bit / 8] |= u8::from(rng.percent(15)) << (bit % 8);
            }
            mask.set_ethertype(u16::MAX);
            let action = (first + rng.below(ACTIONS)) as u16;
            let Said::By(pattern) = say(&key, &mask, v6) else { panic!("{mask:?} can be said") };
            self.writes.extend(self.rules.set(number, rules::Rule { pattern, action, generation: next }).unwrap());
            self.whole.insert(number, Rule { key, mask, action, generation: next });
        }
        self.tables.outbound.tcam = self.whole.values().copied().collect();
    }

    /// Every frame with a verdict, some cycles more, and nothing besides.
    fn drain(&mut self) {
        for _ in 0..400_000 {
            self.cycle();
            if self.expected.is_empty() {
                break;
            }
        }
        assert!(self.expected.is_empty());
        (0..20).for_each(|_| assert!(!self.cycle()));
    }
}

fn generations<const W: usize, const K: usize, const LG: usize, const G: usize>(rounds: u8) {
    let mut b = Bench::<LG, G>::new::<W, K>();
    for round in 0..rounds {
        // Flood groups have no generation: they change while no frame is under way.
        let domain = DOMAINS[b.tb.rng().below(4) as usize];
        if u32::from(domain) < 1 << LG {
            let group = b.tb.rng().percent(60).then(|| b.tb.rng().below(1 << 12) as u16);
            b.tables.outbound.floods.remove(&domain);
            b.tables.outbound.floods.extend(group.map(|group| (domain, group)));
            b.writes.push_back(table::flood(domain, group));
            (0..60).for_each(|_| assert!(!b.cycle()));
            assert!(b.writes.is_empty());
        }
        b.prepare((round + 1) & 3);
        while !b.writes.is_empty() {
            if b.expected.len() < 20 {
                let at = b.tb.rng().below(POOL as u64) as usize;
                b.push(b.pool[at].clone());
            }
            b.cycle();
        }
        // The last write is in its table before it is asked; what was asked of the old set is answered before that is written again.
        b.generation = (round + 1) & 3;
        for _ in 0..200 {
            let at = b.tb.rng().below(POOL as u64) as usize;
            b.push(b.pool[at].clone());
        }
        b.drain();
    }
    for end in [(0, 13), (0, 14), (0, 21), (0, 26), (1, 0), (2, 0), (3, 0), (4, 0), (4, 12), (4, 17)] {
        assert!(b.seen.contains_key(&end), "{end:?}: {:?}", b.seen);
    }
    for table in [table::PROFILE, table::EXACT, table::ACTION, table::RULE, table::STATION, table::FLOOD] {
        assert!(b.read.get(&table).is_some_and(|n| *n > if table == table::FLOOD { 2 } else { 20 }), "{:?}", b.read);
    }
    let hits: usize = b.seen.iter().filter(|((kind, _), _)| (1..=3).contains(kind)).map(|(_, n)| n).sum();
    assert!(hits > 12 * usize::from(rounds) && b.by_rule > 5 * usize::from(rounds) && b.by_station > 5 * usize::from(rounds), "{} {} {:?}", b.by_rule, b.by_station, b.seen);
}

#[test]
fn verdicts_are_the_models_w512() {
    generations::<512, 64, 12, 19>(30);
}

#[test]
fn verdicts_are_the_models_w64() {
    generations::<64, 8, 6, 2>(16);
}

/// A frame every cycle, a verdict every cycle.
#[test]
fn one_verdict_a_cycle() {
    let mut b = Bench::<6, 2>::new::<64, 8>();
    let mut tb = Tb::new("matching_rate", Front::<512, 64, 6, 2>::default());
    b.source = tb.axis_source("s", 0);
    b.tb = tb;
    b.pool.iter_mut().for_each(|frame| frame.truncate(60));
    let count = 5 * POOL;
    (0..count).for_each(|n| b.push(b.pool[n % POOL].clone()));
    let first = (1..).find(|_| b.cycle()).expect("a verdict");
    // The beat is taken in the first cycle, side by side with others in the next one, and shown in the one after it.
    assert_eq!((first, LATENCY), (2 + LATENCY, 13));
    (1..count).for_each(|n| assert!(b.cycle(), "verdict {n} is late"));
}

/// Gives a command; whether it is refused.
fn give(tb: &mut Tb, command: &FlowCommand) -> u64 {
    tb.set("write", 1);
    tb.set_wide("command", &words(&command.0)[..]);
    tb.cycle();
    let refused = tb.get("refused");
    tb.set("write", 0);
    tb.cycle();
    refused
}

/// What names nothing that there is: refused, and nothing is written.
#[test]
fn commands_that_name_nothing_are_refused() {
    let mut b = Bench::<6, 2>::new::<64, 8>();
    let action = any_action(b.tb.rng()).with_kind(1);
    let key = Default::default();
    let good = table::action(5, Some(&action));
    let bad = [
        good.with_opcode(0),
        good.with_opcode(4),
        good.with_table(0),
        good.with_table(12),
        table::rewrite(64, [[2; 6]; 2]),
        table::rewrite(5, [[2; 6]; 2]).with_opcode(table::CLEAR),
        table::rewrite(5, [[2; 6]; 2]).with_opcode(table::READ),
        good.with_line(64 + 5),
        good.with_line(1 << 23 | 5),
        table::exact(4, 0, Some((&key, 5, 0))),
        table::exact(0, 64, Some((&key, 5, 0))),
        table::profile(64, Some(&key)),
        table::row(2, 0, &[0xff; 112]),
        table::row(1, 0, &[0xff; 112]).with_opcode(table::CLEAR),
        table::row(1, 0, &[0xff; 112]).with_line(1 << 10 | 1 << 5),
        table::rule(table::rule_line(2, 0), Some((5, 0))),
        table::rule(table::rule_line(0, 14), Some((5, 0))),
        table::rule(1 << 9, Some((5, 0))),
        table::read_exact(4, 0),
        table::station(4, 0, Some((&[0; 8], 5, 0))),
        table::station(0, 64, None),
        table::station(0, 0, Some((&[0; 8], station::kind::NONE << station::NUMBER_BITS | 5, 0))),
        table::flood(64, Some(5)),
        table::flood(64, None).with_opcode(table::READ),
        table::row(0, 0, &[0xff; 112]).with_opcode(table::READ),
        table::read(table::PROFILE, 0, 64),
        table::read(table::ACTION, 0, 64),
        table::read(table::STATION, 4, 0),
        table::read(table::SENDER, 0, 0),
        table::read_exact(0, 64),
        table::count(64, false),
        table::count(1 << 23, true),
        table::count(5, false).with_opcode(table::WRITE),
        table::rule(table::rule_line(0, 14), None).with_opcode(table::READ),
    ];
    for command in &bad {
        assert_eq!(give(&mut b.tb, command), 1, "{command:?}");
    }
    // A mask of nothing for the frames of port class 0 and an entry for it, which leads to line 5: there is no action.
    let frame = [0x0au8, 0, 0, 0, 0, 1, 0x0a, 0, 0, 0, 0, 2, 0x88, 0xb5].into_iter().chain([0; 50]).collect::<Vec<_>>();
    let place = Table::<{ table::KEY_BITS }, 64>::new(6).candidates(&key.0)[1];
    for class in 0..4 {
        assert_eq!(give(&mut b.tb, &table::profile(profile_line(0, class, 0), Some(&key))), 0);
        b.tables.outbound.profiles[0][usize::from(class) * 4] = Some(key);
    }
    assert_eq!(give(&mut b.tb, &table::exact(place.way, place.line.into(), Some((&key, 5, 0)))), 0);
    b.tables.outbound.exact.insert((key.0, 0), 5);
    // The entry is read; a command about a table that is not here reads zeros.
    assert_eq!(give(&mut b.tb, &table::read_exact(place.way, place.line.into())), 0);
    (0..20).for_each(|_| b.tb.cycle());
    assert!(b.tb.get("busy") == 0 && b.tb.get_wide("answer").iter().any(|word| *word > 0));
    assert_eq!(give(&mut b.tb, &table::read(table::SENDER, 0, 0)), 1);
    assert!(b.tb.get_wide("answer").iter().all(|word| *word == 0));
    b.push(frame.clone());
    b.drain();
    b.writes.push_back(good);
    b.tables.outbound.actions.resize(6, Some(action));
    (0..30).for_each(|_| assert!(!b.cycle()));
    b.push(frame);
    b.drain();
    assert_eq!(b.seen.values().sum::<usize>(), 2);
    assert!(b.seen.contains_key(&(0, 21)), "{:?}", b.seen);
}

/// A key stays behind its packet. What it has found is read like every other line.
#[test]
fn a_line_is_read_behind_a_packet_that_has_found_it() {
    let mut b = Bench::<6, 2>::new::<64, 8>();
    let all = FlowKey::default();
    let Said::By(pattern) = say(&all, &all, false) else { panic!("it can be said") };
    for command in b.rules.set(3, rules::Rule { pattern, action: 5, generation: 0 }).unwrap() {
        assert_eq!(give(&mut b.tb, &command), 0);
    }
    let action = any_action(b.tb.rng()).with_kind(1);
    assert_eq!(give(&mut b.tb, &table::action(5, Some(&action))), 0);
    b.source.push(&[[0x0a, 0, 0, 0, 0, 1, 0x0a, 0, 0, 0, 0, 2, 0x88, 0xb5], [0; 14], [0; 14], [0; 14], [0; 14]].concat());
    let found = (0..100).any(|_| {
        b.tb.cycle();
        b.tb.get("verdict_valid") == 1
    });
    assert!(found);
    let rule = table::rule_line(0, 3);
    for read in [
        table::read(table::RULE, 0, rule),
        table::read(table::ACTION, 0, 5),
        table::read_exact(1, 5),
        table::read(table::PROFILE, 0, 0),
        table::read(table::STATION, 1, 5),
        table::read(table::FLOOD, 0, 5),
    ] {
        assert_eq!(give(&mut b.tb, &read), 0);
        (0..20).for_each(|_| b.tb.cycle());
        assert_eq!(b.tb.get("busy"), 0, "{read:?}");
        let answer: Vec<u8> = b.tb.get_wide("answer").iter().flat_map(|w| w.to_le_bytes()).collect();
        let stands = table::standing(&read, answer[..].try_into().expect("64")).expect("a table that is written");
        assert_eq!(stands.opcode() == table::WRITE, matches!(read.table(), table::RULE | table::ACTION), "{read:?}");
    }
}
