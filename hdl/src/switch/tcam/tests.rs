//! Packets against wildcard rules that the driver writes, takes away and replaces meanwhile.
use super::{Tcam, LATENCY};
use crate::switch::testing::words;
use crate::tb::{Rng, Tb};
use ferric_abi::switch::ternary::{say, Said, RULES};
use ferric_abi::switch::{table, FlowCommand, FlowKey};
use ferric_driver::switch::rules::{Rule, Rules};
use ferric_model::switch::key::masked;
use std::collections::{BTreeMap, VecDeque};

/// Cycles after its key in which a lookup sees which rules count; a write in that cycle comes too late for it.
const SEES: usize = 2;

/// A rule over the whole key, as the model has it.
#[derive(Clone, Copy)]
struct Whole {
    key: FlowKey,
    mask: FlowKey,
    v6: bool,
    action: u16,
    generation: u8,
}

struct Bench<const G: usize> {
    tb: Tb,
    rules: Rules,
    /// By number: those that count in the card.
    card: BTreeMap<usize, Whole>,
    /// Commands to come, and what the card has when one is done.
    commands: VecDeque<(FlowCommand, Option<(usize, Option<Whole>)>)>,
    asked: VecDeque<(FlowKey, bool, u8)>,
    due: VecDeque<Option<u16>>,
    hits: usize,
    misses: usize,
    several: usize,
}

/// Few values in each field, so that rules meet packets.
fn any_key(rng: &mut Rng, v6: bool) -> FlowKey {
    let address = |rng: &mut Rng| if v6 { (0xfd00 << 112) | u128::from(rng.below(4)) | u128::from(rng.below(2)) << 90 } else { u128::from(0x0a00_0000 + rng.below(4)) };
    FlowKey::default()
        .with_in_port(8 + rng.below(2) as u8)
        .with_domain(rng.below(2) as u16)
        .with_ethertype(if v6 { 0x86dd } else { 0x0800 })
        .with_proto([6, 17][rng.below(2) as usize])
        .with_src(address(rng))
        .with_dst(address(rng))
        .with_dst_port(rng.below(4) as u16)
}

/// A mask of some fields, each in so many of 100 cases, or of any bits.
fn any_mask(rng: &mut Rng, percent: u32) -> FlowKey {
    let mut mask = FlowKey::default();
    // More rules at once are to be narrower ones.
    let prefix = |rng: &mut Rng| if rng.percent(percent) { u128::MAX } else { u128::MAX << rng.below(128) };
    if rng.percent(percent) {
        mask.set_in_port(0xff);
    }
    if rng.percent(percent) {
        mask.set_ethertype(0xffff);
    }
    if rng.percent(percent) {
        mask.set_src(prefix(rng));
    }
    if rng.percent(percent) {
        mask.set_dst(prefix(rng));
    }
    if rng.percent(percent) {
        mask.set_dst_port(if rng.percent(percent) { u16::MAX } else { rng.next_u32() as u16 });
    }
    if rng.percent(10) {
        mask.0[rng.below(FlowKey::BYTES as u64) as usize] ^= rng.next_u32() as u8;
    }
    mask
}

impl<const G: usize> Bench<G> {
    fn new() -> Self {
        Bench {
            tb: Tb::new(&format!("tcam{G}"), Tcam::<G>::default()),
            rules: Rules::new(G),
            card: BTreeMap::new(),
            commands: VecDeque::new(),
            asked: vec![(FlowKey::default(), false, 0); SEES].into(),
            due: vec![None; LATENCY as usize - SEES - 1].into(),
            hits: 0,
            misses: 0,
            several: 0,
        }
    }

    fn find(&mut self, (key, v6, generation): (FlowKey, bool, u8)) -> Option<u16> {
        let fits = |rule: &&Whole| rule.v6 == v6 && rule.generation == generation && masked(&key, &rule.mask) == masked(&rule.key, &rule.mask);
        let mut all = self.card.values().filter(fits).map(|rule| rule.action);
        let first = all.next();
        self.several += usize::from(all.next().is_some());
        first
    }

    fn cycle(&mut self, key: FlowKey, v6: bool, generation: u8) {
        self.tb.set_wide("key", &words(&key.0)[..]);
        self.tb.set("v6", v6.into());
        self.tb.set("generation", generation.into());
        self.tb.set("looks", 1);
        self.asked.push_front((key, v6, generation));
        let seeing = self.asked.pop_back().expect("a cycle");
        let found = self.find(seeing);
        self.due.push_front(found);
        self.tb.set("write_row", 0);
        self.tb.set("write_rule", 0);
        if let Some((command, done)) = if self.tb.rng().percent(80) { self.commands.pop_front() } else { None } {
            let line = command.line();
            if command.table() == table::ROW {
                self.tb.set("write_row", 1);
                self.tb.set("group", (line >> 5).into());
                self.tb.set("row", (line & 31).into());
                self.tb.set_wide("row_data", &words(&command.0[16..])[..]);
            } else {
                self.tb.set("write_rule", 1);
                self.tb.set("group", (line >> 4).into());
                self.tb.set("rule", (line & 15).into());
                self.tb.set("rule_counts", (command.opcode() == table::WRITE).into());
                self.tb.set("rule_generation", command.generation().into());
                self.tb.set("rule_action", command.action().into());
            }
            match done {
                Some((number, Some(rule))) => _ = self.card.insert(number, rule),
                Some((number, None)) => _ = self.card.remove(&number),
                None => {}
            }
        }
        self.tb.cycle();
        let due = self.due.pop_back().expect("a cycle");
        assert_eq!(self.tb.get("hit"), u64::from(due.is_some()));
        match due {
            Some(action) => {
                assert_eq!(self.tb.get("action"), u64::from(action));
                self.hits += 1;
            }
            None => self.misses += 1,
        }
    }

    fn set(&mut self, number: usize, rule: Whole) {
        let Said::By(pattern) = say(&rule.key, &rule.mask, rule.v6) else { return };
        let commands = self.rules.set(number, Rule { pattern, action: rule.action, generation: rule.generation }).unwrap();
        for command in commands {
            let done = (command.table() == table::RULE).then(|| (number, (command.opcode() == table::WRITE).then_some(rule)));
            self.commands.push_back((command, done));
        }
    }

    fn any_rule(&mut self) -> Whole {
        let rng = self.tb.rng();
        let v6 = rng.percent(50);
        Whole { key: any_key(rng, v6), mask: any_mask(rng, if G > 2 { 93 } else { 50 }), v6, action: rng.next_u32() as u16, generation: rng.below(2) as u8 }
    }
}

fn rules<const G: usize>(rounds: usize) {
    let mut b = Bench::<G>::new();
    for round in 0..rounds {
        if b.commands.is_empty() {
            let number = b.tb.rng().below(b.rules.room() as u64) as usize;
            if b.tb.rng().percent(if round < rounds / 2 { 10 } else { 40 }) {
                b.commands.extend(b.rules.clear(number).unwrap().map(|command| (command, Some((number, None)))));
            } else {
                let rule = b.any_rule();
                b.set(number, rule);
            }
        }
        let (v6, generation) = (b.tb.rng().percent(50), b.tb.rng().below(2) as u8);
        let key = any_key(b.tb.rng(), v6);
        b.cycle(key, v6, generation);
    }
    assert!(b.hits > rounds / 10 && b.misses > rounds / 10 && b.several > rounds / 50, "{} {} {}", b.hits, b.misses, b.several);
}

#[test]
fn rules_fit_what_the_models_fit_w64() {
    rules::<2>(20_000);
}

#[test]
fn rules_fit_what_the_models_fit_w512() {
    rules::<19>(30_000);
}

/// Every bit that rules see counts in every rule's place, and the lowest number of all that fit.
#[test]
fn every_bit_and_every_place() {
    let mut b = Bench::<2>::new();
    let mask = FlowKey([0xff; FlowKey::BYTES]).with_rsvd0(0);
    let all = b.rules.room();
    for number in (0..all).rev() {
        let key = any_key(b.tb.rng(), false);
        b.set(number, Whole { key, mask, v6: false, action: number as u16, generation: 3 });
        while !b.commands.is_empty() {
            b.cycle(key, false, 3);
        }
        for bit in (0..table::KEY_BITS).step_by(1 + number % RULES) {
            let mut other = key;
            other.0[bit / 8] ^= 1 << (bit % 8);
            // Addresses have 32 bits here, and nothing stands in what is reserved.
            if say(&other, &mask, false) != Said::Never {
                b.cycle(other, false, 3);
            }
        }
    }
    let before = b.hits;
    let zero = FlowKey::default();
    for number in (0..all).rev() {
        b.set(number, Whole { key: zero, mask: zero, v6: false, action: 1000 + number as u16, generation: 3 });
        while !b.commands.is_empty() {
            b.cycle(zero, false, 3);
        }
    }
    (0..LATENCY).for_each(|_| b.cycle(zero, false, 3));
    assert!(b.hits > before + 800);
}
