//! A sender and a network that loses, repeats and reorders: each packet, ACK, NACK and timer of the golden model's source, and of this one, and what both know behind it.
use crate::tb::{Fields, Sink, Tb};
use crate::uet::source::Source;
use crate::uet::testing::Asked;
use crate::uet::types::{loss_ask, Answered, LossAsk, LossTold, Tell};
use ferric_abi::uet::codes::{AckRequest, NackCode};
use ferric_uet::model::{Action, Arrival, Config, Counter, Event, Message, Mode, Packet, Pdc, Pds, Policy, Response, Rx, Sack, Seen, Spray, Timer, Told};
use std::sync::Arc;

const LP: usize = 2;
const LW: usize = 7;
const PEER: u32 = 7;
const THEIRS: u16 = 0x4321;
const UNIT: u32 = 64;
const LINE: u128 = 2;
/// Ticks that nothing in these tests waits for.
const NEVER: u64 = 1 << 40;

fn config() -> Config {
    Config {
        pool_bits: 2,
        places: 3,
        share: 2,
        low: 0,
        mtu: 1000,
        window: 128,
        mpr_unit: UNIT,
        default_mpr: 1,
        first_window: 32,
        rto: 300,
        rto_max: 12,
        nack_wait: 80,
        nack_max: 31,
        ack_bytes: 6000,
        tail_loss: 200,
        stall_least: 30,
        idle: NEVER,
        spray: Policy::Penalties,
        entropies: 5,
        first_psn: Some(0xffff_ffc0),
        ..Config::default()
    }
}

/// A packet on its way: its place and whether it was sent again.
type Flying = (u32, bool, i16);

struct Bench {
    tb: Tb,
    block: Asked,
    tells: Sink,
    answers: Sink,
    mode: Mode,
    pds: Pds,
    id: u16,
    paths: Spray,
    rx: Rx,
    flying: Vec<Flying>,
    acks: Vec<Packet>,
    messages: u16,
    now: u64,
    reached: std::collections::BTreeMap<Counter, u64>,
}

impl Bench {
    fn new(mode: Mode, c: Config) -> Self {
        let mut tb = Tb::new("uet_source_test", Source::<LP, LW, { LP + LW - 6 }, { LP + LW }, { LP + 6 }>::default());
        for (port, value) in
            [("default_range", u64::from(c.default_mpr * c.mpr_unit)), ("ack_bytes", c.ack_bytes.into()), ("tail_loss", c.tail_loss), ("stall_least", c.stall_least), ("path_order", 1)]
        {
            tb.set(port, value);
        }
        let block = Asked::new::<LossAsk, LossTold>(&mut tb);
        let (tells, answers) = (tb.sink("m_tell", 30), tb.sink("m_answer", 30));
        let mut pds = Pds::new(Arc::new(c));
        pds.step(Event::Post { peer: PEER, mode, message: Message { id: 0, bytes: 5000, fetch: false } });
        let pdc = pds.pdcs().next().unwrap();
        let (id, start, paths) = (pdc.id, pdc.tx.start, pdc.tx.spray.clone());
        let mut bench = Self { tb, block, tells, answers, mode, pds, id, paths, rx: Rx::new(start), flying: Vec::new(), acks: Vec::new(), messages: 1, now: 1, reached: Default::default() };
        bench.ask(loss_ask::OPEN, &[("psn", start.into())], &[]);
        bench
    }

    fn pdc(&self) -> &Pdc {
        self.pds.pdcs().next().expect("the PDC has not ended")
    }

    /// Lets the model act at the present time.
    fn step(&mut self, event: Event) -> Vec<Action> {
        self.pds.at(self.now);
        let actions = self.pds.step(event);
        for action in &actions {
            if let Action::Count(counter) = action {
                *self.reached.entry(*counter).or_insert(0) += 1;
            }
        }
        actions
    }

    /// Gives the block the order that goes with what the model did, and compares all that both know. Gives its answer's fields.
    fn ask(&mut self, kind: u64, order: &[(&str, u128)], actions: &[Action]) -> Vec<u32> {
        let all: Vec<(&str, u128)> = [("kind", u128::from(kind)), ("line", LINE), ("now", self.now.into())].into_iter().chain(order.iter().copied()).collect();
        let told = self.block.ask(&mut self.tb, &all);
        let pdc = self.pds.pdcs().next().unwrap();
        let tx = &pdc.tx;
        let state = ["outs", "resends", "waits", "tries", "refusals", "oldest", "stall"].map(|name| told.get(name));
        let expected =
            [tx.records.len() as u128, tx.resend.len() as u128, tx.wait.len() as u128, tx.tries.into(), tx.refusals.into(), tx.psn(tx.cleared()).into(), tx.stall_time(self.pds.config()).into()];
        assert_eq!(state, expected, "{all:?}: {tx:?}");
        assert_eq!(told.is("room"), tx.room(), "{all:?}: {tx:?}");
        if tx.queue.is_empty() || !tx.room() {
            assert_eq!(told.is("hole"), tx.stalled(), "{all:?}: {tx:?}");
        }
        let words = ["ok", "lost", "sacked", "again", "back", "psn", "clear", "ar", "record.message", "record.offset", "record.bytes"].map(|name| told.word(name)).to_vec();
        // What is told and answered comes a little later.
        self.tb.run(24);
        let tell = Fields::of::<Tell>();
        while let Some(words) = self.tells.pop() {
            let what = [Told::Ok, Told::Ecn, Told::Nack, Told::Timeout][tell.get(&words, "what") as usize - 1];
            assert_eq!(tell.get(&words, "line"), LINE);
            self.paths.told(tell.get(&words, "slot") as u16, what);
        }
        let answer = Fields::of::<Answered>();
        let answered: Vec<_> = std::iter::from_fn(|| self.answers.pop()).map(|words| ["message", "offset", "bytes", "response"].map(|name| answer.get(&words, name) as u32)).collect();
        let expected: Vec<_> = actions
            .iter()
            .filter_map(|action| match action {
                Action::Answered { message, offset, bytes, response } => Some([u32::from(*message), *offset, *bytes, response.is_some().into()]),
                _ => None,
            })
            .collect();
        assert_eq!(answered, expected, "{all:?}");
        for action in actions {
            if matches!(action, Action::Transmit { .. }) {
                self.paths.choose();
            }
        }
        words
    }

    fn same_paths(&self) {
        assert_eq!(self.paths, self.pdc().tx.spray);
    }

    fn grant(&mut self) {
        let actions = self.step(Event::Grant);
        let Some(Packet::Request { psn, clear, retx, ar, body, .. }) = actions.iter().find_map(|action| if let Action::Transmit { packet, .. } = action { Some(*packet) } else { None }) else {
            return;
        };
        let tx = &self.pdc().tx;
        let place = tx.place(psn);
        let (more, slot) = (!tx.queue.is_empty(), tx.records[&place].slot);
        let order = [("more", more.into()), ("slot", slot.into()), ("message", body.message.into()), ("offset", body.offset.into()), ("bytes", body.bytes.into())];
        let told = if retx { self.ask(loss_ask::AGAIN, &order[..2], &actions) } else { self.ask(loss_ask::SEND, &order, &actions) };
        assert_eq!(told[5..], [psn, u32::from(clear as u16), ar.into(), body.message.into(), body.offset, body.bytes]);
        if !self.tb.rng().percent(8) {
            self.flying.push((place, retx, clear));
            if self.tb.rng().percent(3) {
                self.flying.push((place, retx, clear));
            }
        }
        self.same_paths();
    }

    /// A packet reaches the target, which mostly answers.
    fn arrive(&mut self) {
        if self.flying.is_empty() {
            return;
        }
        let n = self.tb.rng().below(self.flying.len().min(12) as u64) as usize;
        let (place, retx, clear) = self.flying.remove(n);
        self.rx.clear(place.wrapping_add_signed(clear.into()).wrapping_add(1));
        let seen = Seen { ask: true, marked: false, retx, ev: 0, at: 0, bytes: 1000 };
        let ok = Response { message: 0, code: 1, length: 1000, data: None };
        let (kept, silent) = (self.tb.rng().percent(5), self.tb.rng().percent(30));
        let mut response = Some(ok);
        match self.rx.look(place, Mode::Rud, config().window, retx) {
            Arrival::New => {
                self.rx.take(place, seen);
                self.rx.done(place, kept.then_some(ok), false);
            }
            Arrival::Kept(_) => {}
            Arrival::Outside => return,
            _ => response = Some(Response { code: 0, ..ok }),
        }
        if silent {
            return;
        }
        let (base, bitmap) = self.rx.sack();
        let bytes = self.rx.bytes.div_ceil(256) as u32 & 0xff_ffff;
        let rng = self.tb.rng();
        let sack = Sack { mpr: rng.below(3) as u8, base, bitmap, bytes, ooo: self.rx.out_of_order(), service: rng.below(20) as u16 };
        let (sack, response) = (rng.percent(85).then_some(sack), response.filter(|_| rng.percent(90)));
        let ack = Packet::Ack { cack: self.rx.cack(), psn: self.rx.psn(place), sack, marked: rng.percent(10), retx, req: AckRequest::None, spdcid: THEIRS, dpdcid: self.id, response };
        self.acks.push(ack);
    }

    fn hear(&mut self) {
        if self.acks.is_empty() {
            return;
        }
        let n = self.tb.rng().below(self.acks.len().min(4) as u64) as usize;
        let mut packet = self.acks.remove(n);
        if self.tb.rng().percent(10) {
            return;
        }
        let bad = self.tb.rng().percent(2);
        let sent = self.pdc().tx.next;
        let start = self.rx.start;
        if let Packet::Ack { cack, .. } = &mut packet {
            if bad {
                *cack = start.wrapping_add(sent + self.tb.rng().below(3) as u32);
            }
        }
        let Packet::Ack { cack, psn, sack, marked, retx, response, .. } = packet else { return };
        // SYN: all packets wait, or all are open, after the first one that counts.
        let actions = self.step(Event::Received { from: PEER, packet, trim: None, ce: false, ev: 0 });
        let nothing = response.is_some_and(|r| r.code == 0);
        let (flag, said) = (|on: bool| u128::from(on), sack.unwrap_or(Sack { mpr: 0, base: 0, bitmap: 0, bytes: 0, ooo: 0, service: 0 }));
        let order = [
            ("cack", cack.into()),
            ("psn", psn.into()),
            ("sack", flag(sack.is_some())),
            ("base", said.base.into()),
            ("bitmap", said.bitmap.into()),
            ("rcvd", said.bytes.into()),
            ("range", u128::from(u32::from(said.mpr) * UNIT)),
            ("service", said.service.into()),
            ("marked", flag(marked)),
            ("retx", flag(retx)),
            ("response", flag(response.is_some() && !nothing)),
            ("nothing", flag(nothing)),
        ];
        let told = self.ask(loss_ask::ACK, &order, &actions);
        let counted = |counter: Counter| actions.iter().filter(|action| **action == Action::Count(counter)).count() as u32;
        assert_eq!(told[..2], [u32::from(counted(Counter::BadAck) == 0), counted(Counter::PathLoss)], "{packet:?}");
        self.same_paths();
    }

    fn refuse(&mut self) {
        let rng = self.tb.rng();
        let codes = [NackCode::Trimmed, NackCode::InferredLoss, NackCode::NotReceived, NackCode::NoGuaranteed, NackCode::NoResource, NackCode::OutOfWindow, NackCode::RodOutOfOrder];
        let code = codes[rng.below(if self.mode == Mode::Rod { 7 } else { 6 }) as usize];
        let behind = rng.below(40) as u32;
        let (tx, syn) = (&self.pdc().tx, self.pdc().peer_id == 0);
        let psn = tx.psn(tx.next.wrapping_sub(behind));
        let expected = tx.psn(tx.next.wrapping_sub(behind.saturating_sub(1)));
        let packet = Packet::Nack { code, psn, spdcid: if syn { 0 } else { THEIRS }, dpdcid: self.id, payload: expected, marked: false, retx: false };
        let before = self.pdc().tx.rewound;
        let actions = self.step(Event::Received { from: PEER, packet, trim: None, ce: false, ev: 0 });
        let kind = match code {
            NackCode::Trimmed | NackCode::InferredLoss | NackCode::NotReceived => loss_ask::NACK_AGAIN,
            NackCode::RodOutOfOrder => loss_ask::NACK_BACK,
            _ => loss_ask::NACK_LATER,
        };
        let told = self.ask(kind, &[("psn", psn.into()), ("cack", expected.into()), ("all", syn.into())], &actions);
        let stale = actions.contains(&Action::Count(Counter::NackStale));
        assert_eq!(told[0], u32::from(!stale));
        assert_eq!(told[4], u32::from(!before && self.pdc().tx.rewound));
        self.same_paths();
    }

    fn timers(&mut self) {
        let now = self.now;
        for (pdc, timer, _) in self.pds.timers().into_iter().filter(|(.., time)| *time <= now) {
            let age = self.pds.config().rto << self.pdc().tx.tries;
            let actions = self.step(Event::Expire { pdc, timer });
            let has = |counter: Counter| u32::from(actions.contains(&Action::Count(counter)));
            match timer {
                Timer::Rto => {
                    let told = self.ask(loss_ask::RTO, &[("age", age.into()), ("all", (self.mode == Mode::Rod).into())], &actions);
                    assert_eq!(told[2], has(Counter::AckRequestSent));
                }
                Timer::Stall => {
                    let told = self.ask(loss_ask::STALL, &[], &actions);
                    assert_eq!(u32::from(told[3] > 0), has(Counter::Stall));
                }
                Timer::Retry => drop(self.ask(loss_ask::RETRY, &[], &actions)),
                _ => {}
            }
            self.same_paths();
        }
    }

    fn run(&mut self, rounds: u32) {
        for round in 0..rounds {
            // Now and then nothing is sent or heard for long.
            let quiet = round % 900 > 860;
            self.now += if quiet { 40 } else { self.tb.rng().below(6) };
            if self.pdc().tx.queue.len() < 3 && round % 300 < 200 {
                let bytes = 1 + self.tb.rng().below(20_000) as u32;
                self.step(Event::Post { peer: PEER, mode: self.mode, message: Message { id: self.messages, bytes, fetch: false } });
                self.messages += 1;
            }
            match self.tb.rng().below(100) {
                0..=44 if !quiet => self.grant(),
                45..=69 => self.arrive(),
                70..=94 if !quiet => self.hear(),
                95..=96 => self.refuse(),
                _ => {}
            }
            self.timers();
        }
    }

    fn has_reached(&self, wanted: &[Counter]) {
        let missing: Vec<_> = wanted.iter().filter(|counter| !self.reached.contains_key(counter)).collect();
        assert!(missing.is_empty(), "not reached: {missing:?} of {:?}", self.reached);
    }
}

#[test]
fn a_rud_source_knows_what_the_model_knows() {
    let mut bench = Bench::new(Mode::Rud, config());
    bench.run(6000);
    bench.has_reached(&[Counter::PathLoss, Counter::Rto, Counter::AckRequestSent, Counter::BadAck, Counter::NackStale]);
}

#[test]
fn a_rod_source_goes_back() {
    let mut bench = Bench::new(Mode::Rod, config());
    bench.run(2500);
    bench.has_reached(&[Counter::Rto, Counter::NackTaken(NackCode::RodOutOfOrder as u8)]);
}

/// Without a time-out the last holes are found by their age.
#[test]
fn a_stalled_source_looks_for_holes() {
    let mut bench = Bench::new(Mode::Rud, Config { rto: 1 << 20, ..config() });
    bench.run(2500);
    bench.has_reached(&[Counter::Stall, Counter::PathLoss]);
}
