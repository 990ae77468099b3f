//! Packets of one target after another, against the golden model's packet delivery: an ACK goes out when the model sends one, and says the same.
use super::Ack;
use crate::tb::Tb;
use crate::uet::testing::Asked;
use crate::uet::types::{ack_ask, AckAsk, AckTold};
use ferric_uet::model::{Action, Body, Config, Event, Mark, Mode, Packet, Pds, Policy, Response, Rx, Seen, Timer, To};
use std::sync::Arc;

const LP: usize = 2;
const WAIT: u64 = 40;
const PEER: u32 = 1;
const START: u32 = 0xffff_ffc0;

struct Target {
    pds: Pds,
    id: u16,
    /// The same packets, for what the window says of them.
    rx: Rx,
    next: u32,
    /// With semantics.
    pending: Vec<(u32, Seen)>,
}

fn config() -> Config {
    Config { pool_bits: 2, places: 3, share: 3, low: 0, mtu: 4096, ack_wait: WAIT, spray: Policy::Fixed, ..Config::default() }
}

fn body(place: u32, bytes: u32) -> Body {
    Body { message: place as u16, offset: 0, bytes, total: bytes, fetch: false }
}

impl Target {
    fn new() -> Self {
        Self { pds: Pds::new(Arc::new(config())), id: 0, rx: Rx::new(START), next: 0, pending: Vec::new() }
    }

    fn receive(&mut self, place: u32, seen: Seen) {
        let to = if self.id == 0 { To::Syn(place as u16) } else { To::Id(self.id) };
        let packet = Packet::Request { mode: Mode::Rud, psn: START.wrapping_add(place), clear: -1, spdcid: 9, to, retx: seen.retx, ar: seen.ask, body: body(place, seen.bytes) };
        self.pds.at(seen.at);
        let actions = self.pds.step(Event::Received { from: PEER, packet, trim: None, ce: seen.marked, ev: seen.ev });
        if actions.iter().any(|action| matches!(action, Action::Deliver { .. })) {
            self.id = self.pds.pdcs().next().unwrap().id;
            self.rx.take(place, seen);
            self.pending.push((place, seen));
        }
    }
}

/// The ACK that the model sends, as the block says it.
fn sent(actions: &[Action]) -> Option<[u128; 8]> {
    actions.iter().find_map(|action| match action {
        Action::Transmit { packet: Packet::Ack { psn, sack: Some(sack), marked, retx, response: Some(response), .. }, ev, .. } => {
            Some([(*psn).into(), response.message.into(), response.code.into(), response.length.into(), (*ev).into(), (*marked).into(), (*retx).into(), sack.service.into()])
        }
        _ => None,
    })
}

#[test]
fn acks_are_due_when_the_model_sends_them() {
    let mut tb = Tb::new("uet_ack_test", Ack::<LP>::default());
    let c = config();
    tb.set("ack_bytes", c.ack_bytes.into());
    tb.set("ack_least", c.ack_least.into());
    tb.set("ack_wait", WAIT);
    let block = Asked::new::<AckAsk, AckTold>(&mut tb);
    let mut targets: Vec<Target> = (0..1 << LP).map(|_| Target::new()).collect();
    for line in 0..1 << LP {
        block.ask(&mut tb, &[("kind", ack_ask::OPEN.into()), ("line", line)]);
    }
    let mut now = 1u64;
    // ACKs at once and by the timer, none; late ones of other reasons.
    let mut reached = [0; 5];
    let compare = |told: &crate::uet::testing::Told, expected: Option<[u128; 8]>, what: &str| {
        assert_eq!(told.is("send"), expected.is_some(), "{what}");
        if let Some(expected) = expected {
            let names = ["owed.psn", "owed.message", "owed.code", "owed.length", "owed.entropy", "owed.marked", "owed.retx", "service"];
            assert_eq!(names.map(|name| told.get(name)), expected, "{what}");
        }
    };
    for _ in 0..4000 {
        now += if tb.rng().percent(1) { 70_000 } else { tb.rng().below(8) };
        let line = tb.rng().below(1 << LP) as usize;
        let target = &mut targets[line];
        match tb.rng().below(8) {
            0..=3 => {
                let rng = tb.rng();
                let bytes = if rng.percent(40) { rng.below(4097) as u32 } else { rng.below(900) as u32 };
                let seen = Seen { ask: rng.percent(4) || target.id == 0, marked: rng.percent(4), retx: rng.percent(10), ev: rng.next_u32() as u16, at: now, bytes };
                // One or two are overtaken now and then.
                let skip = if rng.percent(8) { 1 + rng.below(2) as u32 } else { 0 };
                let hole = target.rx.marks.iter().position(|mark| *mark == Mark::Empty).map(|n| target.rx.base + n as u32);
                let place = hole.filter(|_| tb.rng().percent(50)).unwrap_or(target.next + skip * u32::from(target.id != 0));
                target.next = target.next.max(place + 1);
                target.receive(place, seen);
            }
            4..=6 if !target.pending.is_empty() => {
                let n = tb.rng().below(target.pending.len() as u64) as usize;
                let (place, seen) = target.pending.remove(n);
                let keep = tb.rng().percent(3);
                let response = Response { message: place as u16, code: if keep { 2 } else { 1 }, length: seen.bytes, data: None };
                let finished = target.rx.done(place, None, false).unwrap();
                let psn = START.wrapping_add(place);
                target.pds.at(now);
                // What is kept would hold CACK back, which is the window's affair.
                let expected = sent(&target.pds.step(Event::Done { pdc: target.id, psn, response, keep: false }));
                let order = [
                    ("kind", ack_ask::DONE.into()),
                    ("line", line as u128),
                    ("now", now.into()),
                    ("owed.psn", psn.into()),
                    ("owed.message", response.message.into()),
                    ("owed.code", response.code.into()),
                    ("owed.length", response.length.into()),
                    ("owed.entropy", seen.ev.into()),
                    ("owed.marked", seen.marked.into()),
                    ("owed.retx", seen.retx.into()),
                    ("owed.at", seen.at.into()),
                    ("bytes", seen.bytes.into()),
                    ("ask", seen.ask.into()),
                    ("filled", finished.filled.into()),
                    ("beyond", finished.beyond.into()),
                ];
                reached[usize::from(expected.is_some())] += 1;
                compare(&block.ask(&mut tb, &order), expected, "done");
            }
            4..=6 => {}
            _ => {
                target.pds.at(now);
                let due = target.pds.timers().iter().find(|(_, timer, _)| *timer == Timer::Ack).copied();
                let actions = if due.is_some_and(|(.., time)| time <= now) { target.pds.step(Event::Expire { pdc: target.id, timer: Timer::Ack }) } else { Vec::new() };
                let told = block.ask(&mut tb, &[("kind", ack_ask::LATE.into()), ("line", line as u128), ("now", now.into())]);
                reached[2] += u32::from(!actions.is_empty());
                compare(&told, sent(&actions), "late");
                assert_eq!(told.is("waits"), due.is_some() && actions.is_empty());
                if let Some((.., time)) = due.filter(|_| told.is("waits")) {
                    reached[3] += 1;
                    assert_eq!(told.get("deadline"), time.into());
                }
                // A duplicate is answered: the ACK that is owed goes with it.
                if target.id != 0 && tb.rng().percent(30) && target.rx.base > 0 {
                    let seen = Seen { ask: true, marked: false, retx: true, ev: 1, at: now, bytes: 0 };
                    target.receive(target.rx.base - 1, seen);
                    let told = block.ask(&mut tb, &[("kind", ack_ask::SENT.into()), ("line", line as u128), ("now", now.into())]);
                    assert!(!told.is("send") && !told.is("waits"));
                    reached[4] += 1;
                }
            }
        }
    }
    assert!(reached.iter().all(|n| *n > 30), "{reached:?}");
}

/// A kept answer, the only reason that the test above leaves out.
#[test]
fn a_kept_answer_goes_at_once() {
    let mut tb = Tb::new("uet_ack_test", Ack::<LP>::default());
    tb.set("ack_bytes", 1 << 14);
    let block = Asked::new::<AckAsk, AckTold>(&mut tb);
    block.ask(&mut tb, &[("kind", ack_ask::OPEN.into())]);
    assert!(!block.ask(&mut tb, &[("kind", ack_ask::DONE.into())]).is("send"));
    assert!(block.ask(&mut tb, &[("kind", ack_ask::DONE.into()), ("keep", 1)]).is("send"));
}
