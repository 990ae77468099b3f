//! Frames of few flows against the model's counters, with and without gaps, while counters are read, set to zero, and all forgotten.
use super::{Count, Use, TICK_AT};
use crate::tb::{Fields, Tb};
use ferric_model::switch::counters::FlowCounters;
use std::collections::{BTreeMap, VecDeque};

/// Cycles from a frame to the cycle in which the clock is read for its last use.
const STAMPED: u64 = 2;

struct Bench<const LG: usize> {
    tb: Tb,
    cycles: u64,
    flows: BTreeMap<u64, FlowCounters>,
    /// A flow that is asked about, and whether it is set to zero.
    asked: Option<(u64, bool)>,
    /// What the flow held in the last cycles, the newest first.
    held: VecDeque<FlowCounters>,
    answers: usize,
}

impl<const LG: usize> Bench<LG> {
    fn new() -> Self {
        let mut tb = Tb::new(&format!("flow_count{LG}"), Count::<LG>::default());
        // The clock is known when a tick is over; all counters are zero by then.
        while tb.get("now") == 0 {
            tb.cycle();
        }
        assert_eq!(tb.get("busy"), 0);
        Bench { tb, cycles: 1 << TICK_AT, flows: BTreeMap::new(), asked: None, held: VecDeque::new(), answers: 0 }
    }

    fn cycle(&mut self, frame: Option<(u64, u64)>) {
        let (flow, len) = frame.unwrap_or_else(|| (self.tb.rng().below(1 << LG), self.tb.rng().below(1 << 17)));
        self.tb.set("valid", frame.is_some().into());
        self.tb.set("flow", flow);
        self.tb.set("len", len);
        self.tb.set("ask", self.asked.is_some().into());
        if let Some((flow, zero)) = self.asked {
            self.tb.set("asked", flow);
            self.tb.set("zero", zero.into());
            self.held.push_front(self.flows.get(&flow).copied().unwrap_or_default());
        }
        if frame.is_some() {
            let tick = (self.cycles + STAMPED) >> TICK_AT;
            self.flows.entry(flow).or_default().take(len, tick);
        }
        self.tb.cycle();
        self.cycles += 1;
        assert_eq!(self.tb.get("now"), self.cycles >> TICK_AT);
        if self.tb.get("answered") == 1 {
            let (flow, zero) = self.asked.take().expect("a question");
            // It was read two cycles ago, and those that came behind it are not in it.
            let then = self.held[2];
            assert_eq!(self.answer(), then, "flow {flow}");
            if zero {
                let now = self.flows.entry(flow).or_default();
                (now.packets, now.bytes) = (now.packets - then.packets, now.bytes - then.bytes);
                if now.packets == 0 {
                    now.last_use = 0;
                }
            }
            self.held.clear();
            self.answers += 1;
        }
    }

    fn answer(&self) -> FlowCounters {
        let answer = self.tb.get_wide("answer");
        let field = |name: &str| Fields::of::<Use>().get(&answer, name) as u64;
        FlowCounters { packets: field("frames"), bytes: field("bytes"), last_use: field("last") }
    }

    /// Waits for an answer, with frames in `busy` of 100 cycles, of `few` flows.
    fn ask(&mut self, flow: u64, zero: bool, busy: u32, few: u64) {
        self.asked = Some((flow, zero));
        while self.asked.is_some() {
            self.any(busy, few);
        }
    }

    fn any(&mut self, busy: u32, few: u64) {
        let rng = self.tb.rng();
        let frame = rng.percent(busy).then(|| (rng.below(few) * 3 % (1 << LG), rng.range(1, (1 << 17) - 1)));
        self.cycle(frame);
    }

    fn all_are_right(&mut self) {
        let flows: Vec<u64> = (0..1 << LG).filter(|flow| LG < 8 || self.flows.contains_key(flow) || flow % 97 == 0).collect();
        flows.into_iter().for_each(|flow| self.ask(flow, false, 0, 1));
    }

    fn forget(&mut self, busy: u32) {
        self.tb.set("forget", 1);
        self.cycle(None);
        self.tb.set("forget", 0);
        assert_eq!(self.tb.get("busy"), 1);
        self.asked = Some((1, false));
        self.flows.clear();
        let mut idle = 0;
        while self.tb.get("busy") == 1 {
            // All frames are of flow 0, which is the first to become zero.
            let frame = self.tb.rng().percent(busy).then_some((0, 77));
            self.cycle(frame);
            if frame.is_none() {
                idle += 1;
            }
            if idle == 1 && frame.is_none() {
                self.flows.clear();
            }
            assert!(self.asked.is_some(), "no answer before all are zero");
        }
        assert_eq!(idle, 1 << LG);
        while self.asked.is_some() {
            self.cycle(None);
        }
    }
}

fn counts<const LG: usize>() {
    let mut b = Bench::<LG>::new();
    for round in 0..12 {
        let (busy, few) = ([100, 95, 60, 30][round % 4], [1, 2, 3, 1 << LG][round / 3]);
        for _ in 0..2000 {
            b.any(busy, few);
        }
        for _ in 0..60 {
            let (flow, zero) = (b.tb.rng().below(few) * 3 % (1 << LG), b.tb.rng().percent(40));
            b.ask(flow, zero, busy.min(95), few);
        }
        b.all_are_right();
        if round % 4 == 3 {
            b.forget(50);
            b.all_are_right();
        }
    }
    assert!(b.answers > 700 && b.cycles > 3 << TICK_AT, "{} {}", b.answers, b.cycles);
}

#[test]
fn counters_are_the_models_w64() {
    counts::<6>();
}

#[test]
fn counters_are_the_models_w512() {
    counts::<12>();
}

/// One flow in every cycle: nothing is lost, and nobody gets an answer meanwhile.
#[test]
fn one_flow_back_to_back() {
    let mut b = Bench::<6>::new();
    b.asked = Some((5, false));
    (0..5000).for_each(|n| b.cycle(Some((5, 60 + n % 1000))));
    assert_eq!(b.answers, 0);
    b.ask(5, true, 0, 1);
    assert_eq!(b.flows[&5].packets, 0);
    // Flows in turn, at each distance.
    for distance in 1..6 {
        (0..600).for_each(|n| b.cycle(Some((n % distance, n + 1))));
        b.all_are_right();
    }
}

/// A reset forgets everything, what is under way, too.
#[test]
fn reset() {
    let mut b = Bench::<6>::new();
    (0..200).for_each(|n| b.cycle(Some((n % 7, 100))));
    b.asked = Some((3, false));
    b.cycle(None);
    b.tb.set("ask", 0);
    b.asked = None;
    let before = b.tb.get("now");
    b.tb.reset();
    assert_eq!((b.tb.get("busy"), b.tb.get("now")), (1, before));
    while b.tb.get("busy") == 1 {
        b.tb.cycle();
        assert_eq!(b.tb.get("answered"), 0);
    }
    b.tb.set("ask", 1);
    for flow in 0..8 {
        b.tb.set("asked", flow);
        b.tb.set("zero", 0);
        while b.tb.get("answered") == 0 {
            b.tb.cycle();
        }
        assert_eq!(b.answer(), FlowCounters::default());
        b.tb.cycle();
    }
}
