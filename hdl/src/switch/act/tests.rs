//! Verdicts against the golden model's, of any actions, which are written meanwhile.
use super::{About, Act, ACTION_BITS, LATENCY};
use crate::records::Verdict as VerdictStruct;
use crate::switch::testing::{any_action, words};
use crate::tb::{Fields, Tb};
use ferric_abi::switch::{Action, FlowKey, Verdict};
use ferric_model::switch::decide::Facts;
use ferric_model::switch::tables::{MissAction, Port, Rule, Tables};
use std::collections::{BTreeMap, VecDeque};

/// What is asked in one cycle.
#[derive(Clone)]
struct Question {
    hit: bool,
    line: u16,
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
}

/// The model's verdict: a rule that fits every frame leads to the line.
fn model(q: &Question, actions: &[Option<Action>]) -> Verdict {
    let mut tables = Tables { generation: q.generation, ..Default::default() };
    tables.outbound.actions = actions.to_vec();
    if q.hit {
        tables.outbound.tcam.push(Rule { key: q.key, mask: FlowKey::default(), action: q.line, generation: q.generation });
    }
    tables.decide(&q.key, &q.facts, &q.port)
}

impl<const LG: usize> Bench<LG> {
    fn new() -> Self {
        Bench { tb: Tb::new(&format!("act{LG}"), Act::<LG>::default()), actions: vec![None; 1 << LG], due: vec![None; LATENCY as usize - 1].into(), seen: BTreeMap::new() }
    }

    fn question(&mut self) -> Question {
        let rng = self.tb.rng();
        // Lines in the table, and in a tenth of the cases any.
        let line = if rng.percent(90) { rng.below(1 << LG) } else { rng.below(1 << 16) } as u16;
        Question {
            hit: rng.percent(85),
            line,
            key: FlowKey::default().with_ttl_class(rng.below(3) as u8),
            facts: Facts { deep: rng.percent(5), class: rng.below(4) as u8, roce: rng.percent(30), ends: rng.percent(30) },
            port: Port { miss: if rng.percent(50) { MissAction::Drop } else { MissAction::Exception }, ..Default::default() },
            generation: rng.below(4) as u8,
        }
    }

    fn cycle(&mut self, question: Option<Question>, write: Option<(u16, Option<Action>)>) {
        self.tb.set("valid", question.is_some().into());
        // What is not valid is noise.
        let q = question.clone().unwrap_or_else(|| self.question());
        let spent = q.facts.class >= 2 && q.key.ttl_class() < 2;
        let about = [("deep", q.facts.deep), ("roce", q.facts.roce), ("ends", q.facts.ends), ("spent", spent), ("drop_miss", q.port.miss == MissAction::Drop), ("generation", q.generation & 1 == 1)];
        let about = about.map(|(name, is)| (name, u128::from(is)));
        self.tb.set_wide("about", &Fields::of::<About>().pack(&about)[..]);
        self.tb.set("hit", q.hit.into());
        self.tb.set("line", q.line.into());
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
        let question = Question { hit: true, line, key: FlowKey::default(), facts: Facts::default(), port: Port::default(), generation: 0 };
        b.cycle(Some(question), None);
    }
    (0..LATENCY).for_each(|_| b.cycle(None, None));
    assert_eq!(b.seen, [((0, ferric_abi::codes::SwitchCause::NoRuleRoom as u8), 64)].into());
}
