//! Verdicts against the golden model's, of any actions, which are written meanwhile.
use super::{About, Act, Station as StationStruct, ACTION_BITS, LATENCY};
use crate::records::Verdict as VerdictStruct;
use crate::switch::testing::{any_action, words};
use crate::tb::{Fields, Rng, Tb};
use ferric_abi::switch::{destination, Action, Encap, FlowKey, Verdict};
use ferric_model::switch::decide::Facts;
use ferric_model::switch::tables::{profile, MissAction, Port, Rule, Station, Tables};
use std::collections::{BTreeMap, VecDeque};

/// What is asked in one cycle.
#[derive(Clone)]
struct Question {
    /// Lines that an exact entry and a rule lead to.
    exact: Option<u16>,
    rule: Option<u16>,
    station: Option<Station>,
    key: FlowKey,
    facts: Facts,
    port: Port,
    generation: u8,
}

struct Bench<const LG: usize> {
    tb: Tb,
    actions: Vec<Option<Action>>,
    /// Verdicts that are due, the newest first.
    due: VecDeque<Option<Verdict>>,
    seen: BTreeMap<(u8, u8), usize>,
    /// Frames that a station decided about.
    bridged: u64,
}

/// The model's verdict: a mask and a rule that fit every frame lead to the lines.
fn model(q: &Question, actions: &[Option<Action>]) -> Verdict {
    let mut tables = Tables { generation: q.generation, ..Default::default() };
    tables.outbound.actions = actions.to_vec();
    let zeros = FlowKey::default();
    if let Some(line) = q.exact {
        tables.outbound.profiles[usize::from(q.generation)][profile(&q.port, q.facts.class)] = Some(zeros);
        tables.outbound.exact.insert((zeros.0, q.generation), line);
    }
    if let Some(line) = q.rule {
        tables.outbound.tcam.push(Rule { key: q.key, mask: zeros, action: line, generation: q.generation });
    }
    if let Some(station) = q.station {
        tables.outbound.fdb.insert((q.key.domain(), q.key.dmac(), q.generation), station);
        if let Station::Remote(encap) = station {
            tables.encaps = vec![Encap::default().with_uplink(uplink(encap)); usize::from(encap) + 1];
        }
    }
    tables.decide(&q.key, &q.facts, &q.port)
}

/// The uplink that a line of the encapsulation table leaves by.
fn uplink(encap: u16) -> u8 {
    (encap % 3) as u8
}

impl<const LG: usize> Bench<LG> {
    fn new() -> Self {
        Bench { tb: Tb::new(&format!("act{LG}"), Act::<LG>::default()), actions: vec![None; 1 << LG], due: vec![None; LATENCY as usize - 1].into(), seen: BTreeMap::new(), bridged: 0 }
    }

    fn question(&mut self) -> Question {
        let rng = self.tb.rng();
        // Lines in the table, and in a tenth of the cases any.
        let line = |rng: &mut Rng| if rng.percent(90) { rng.below(1 << LG) as u16 } else { rng.below(1 << 16) as u16 };
        Question {
            exact: rng.percent(60).then(|| line(rng)),
            rule: rng.percent(60).then(|| line(rng)),
            station: rng.percent(60).then(|| match rng.below(3) {
                0 => Station::Port(rng.next_u32() as u8),
                1 => Station::Remote(rng.below(1 << 12) as u16),
                _ => Station::Group(rng.below(1 << 12) as u16),
            }),
            key: FlowKey::default().with_ttl_class(rng.below(3) as u8),
            facts: Facts { deep: rng.percent(5), class: rng.below(4) as u8, roce: rng.percent(30), ends: rng.percent(30) },
            port: Port { miss: if rng.percent(50) { MissAction::Drop } else { MissAction::Exception }, bridge: rng.percent(50), ..Default::default() },
            generation: rng.below(4) as u8,
        }
    }

    fn cycle(&mut self, question: Option<Question>, write: Option<(u16, Option<Action>)>) {
        self.tb.set("valid", question.is_some().into());
        // What is not valid is noise.
        let q = question.clone().unwrap_or_else(|| self.question());
        let spent = q.facts.class >= 2 && q.key.ttl_class() < 2;
        let about = [
            ("deep", q.facts.deep),
            ("roce", q.facts.roce),
            ("ends", q.facts.ends),
            ("spent", spent),
            ("drop_miss", q.port.miss == MissAction::Drop),
            ("generation", q.generation & 1 == 1),
            ("bridge", q.port.bridge),
        ];
        let about = about.map(|(name, is)| (name, u128::from(is)));
        self.tb.set_wide("about", &Fields::of::<About>().pack(&about)[..]);
        for (name, line) in [("exact", q.exact), ("rule", q.rule)] {
            self.tb.set(name, line.is_some().into());
            // The line of a table that has found nothing is noise.
            let noise = self.tb.rng().next_u32() as u16;
            self.tb.set(&format!("{name}_line"), line.unwrap_or(noise).into());
        }
        self.tb.set("home", q.station.is_some().into());
        let (kind, number, encap) = match q.station {
            Some(Station::Port(port)) => (destination::PORT, port.into(), 0),
            Some(Station::Remote(encap)) => (destination::UPLINK, uplink(encap).into(), encap),
            Some(Station::Group(group)) => (destination::GROUP, group, 0),
            // What was not found is noise.
            None => (2, self.tb.rng().below(1 << 12) as u16, 7),
        };
        self.tb.set_wide("station", &Fields::of::<StationStruct>().pack(&[("kind", kind.into()), ("number", number.into()), ("encap", encap.into())])[..]);
        self.bridged += u64::from(question.as_ref().is_some_and(|q| q.exact.is_none() && q.rule.is_none() && q.station.is_some() && q.port.bridge && !q.facts.deep));
        self.due.push_front(question.map(|q| model(&q, &self.actions)));
        self.tb.set("write", write.is_some().into());
        if let Some((line, action)) = write {
            self.tb.set("write_line", line.into());
            self.tb.set("there", action.is_some().into());
            // What a line that is taken away holds does not matter.
            let bytes = action.unwrap_or_else(|| any_action(self.tb.rng())).0;
            self.tb.set_wide("write_action", &words(&bytes[..ACTION_BITS / 8])[..]);
            self.actions[usize::from(line)] = action;
        }
        self.tb.cycle();
        let due = self.due.pop_back().expect("a cycle");
        assert_eq!(self.tb.get("verdict_valid"), u64::from(due.is_some()));
        if let Some(due) = due {
            assert_eq!(self.tb.get_wide("verdict"), words(&due.0), "{:?}", Fields::of::<VerdictStruct>().unpack(&self.tb.get_wide("verdict")));
            *self.seen.entry((due.kind(), due.cause())).or_default() += 1;
        }
    }
}

fn verdicts<const LG: usize>() {
    let mut b = Bench::<LG>::new();
    for round in 0..12000 {
        // A quarter of the lines of a small table is never written.
        let line = b.tb.rng().below((1 << LG) * 3 / 4) as u16;
        let action = b.tb.rng().percent(90).then(|| any_action(b.tb.rng()));
        let write = (round < 200 || b.tb.rng().percent(20)).then_some((line, action));
        let question = b.tb.rng().percent(80).then(|| b.question());
        b.cycle(question, write);
    }
    // Everything that may become of a frame came about: kind and cause.
    for end in [(0, 13), (0, 14), (0, 21), (0, 26), (1, 0), (2, 0), (3, 0), (4, 0), (4, 12), (4, 17)] {
        assert!(b.seen.get(&end).is_some_and(|n| *n > 20), "{end:?}: {:?}", b.seen);
    }
    assert_eq!(b.seen.len(), 10, "{:?}", b.seen);
    assert!(b.bridged > 300, "{}", b.bridged);
}

#[test]
fn verdicts_are_the_models_w64() {
    verdicts::<6>();
}

#[test]
fn verdicts_are_the_models_w512() {
    verdicts::<12>();
}

/// Nothing was ever written: every hit is a drop, and its cause is the model's.
#[test]
fn lines_that_were_never_written_drop() {
    let mut b = Bench::<6>::new();
    for line in 0..64 {
        let question = Question { exact: Some(line), rule: None, station: None, key: FlowKey::default(), facts: Facts::default(), port: Port::default(), generation: 0 };
        b.cycle(Some(question), None);
    }
    (0..LATENCY).for_each(|_| b.cycle(None, None));
    assert_eq!(b.seen, [((0, ferric_abi::codes::SwitchCause::NoRuleRoom as u8), 64)].into());
}
