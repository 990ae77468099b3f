//! The completion writer between random clients, a host that consumes and arms, and a DMA writer with random latency.

use super::model::{CqModel, Outcome};
use super::{for_number, IN_ORDER, STATS, TOLD};
use crate::assembly::MOST_CLIENTS;
use crate::host::testing::Control;
use crate::msg::{CqeReq, DoorbellMsg, EqeReq, WrDone, WrSmall};
use crate::tb::{Counted, Events, Fields, Sink, Source, Tb};
use ferric_abi::context::CqCtx;
use ferric_abi::host::Cqe;
use std::collections::{HashMap, VecDeque};

const LC: usize = 4;
const QUEUES: u32 = 1 << LC;

struct Bench {
    tb: Tb,
    /// Ports: those in order, then the others.
    reqs: Vec<Source>,
    db: Source,
    wr: Sink,
    done: Source,
    events: Sink,
    ctl: Control,
    stats: Counted,
    told: Counted,
    /// What they should have counted.
    counts: Events,
    queues: HashMap<u32, CqModel>,
    /// Requests pushed and not seen written, per port, in order; with the cqn.
    asked: Vec<VecDeque<(u32, Vec<u32>)>>,
    /// Writes waiting for their answer: due cycle, queue, event.
    writes: VecDeque<(u64, u32, bool)>,
    /// Answered writes and arming doorbells that must raise an event, in order: queue, kind.
    expected: VecDeque<(u32, u8)>,
    /// Events of last receives seen: queue pair, event queue, and how many writes had been answered then.
    lasts: Vec<(u32, u8, u32)>,
    answered: u32,
    /// Overflow events seen.
    overflows: Vec<u32>,
    failures: u32,
    stamp: u32,
    /// Port of each entry, in the order they were written.
    order: Vec<usize>,
}

impl Bench {
    /// The clients of a RoCE card: two in order, and one.
    fn new(stall: u32) -> Bench {
        Self::of(1, stall)
    }

    fn of(clients: usize, stall: u32) -> Bench {
        let mut tb = Tb::new("cq", for_number::<LC>(clients));
        let ports = (0..IN_ORDER).map(|i| format!("s_order${i}")).chain((0..clients).map(|i| format!("s_req${i}")));
        let ctl = Control::new(&mut tb, stall);
        Bench {
            reqs: ports.map(|port| tb.source(&port, stall)).collect(),
            db: tb.source("s_db", stall),
            wr: tb.sink("m_wr", stall),
            done: tb.source("s_done", stall),
            events: tb.sink("m_event", stall),
            ctl,
            tb,
            stats: Counted::new("stat", "stat_function", STATS),
            told: Counted::new("told", "told_function", TOLD),
            counts: Events::new(),
            queues: HashMap::new(),
            asked: vec![VecDeque::new(); IN_ORDER + clients],
            writes: VecDeque::new(),
            expected: VecDeque::new(),
            lasts: Vec::new(),
            answered: 0,
            overflows: Vec::new(),
            failures: 0,
            stamp: 0,
            order: Vec::new(),
        }
    }

    fn cycle(&mut self) {
        if self.tb.cycles() % 16 == 0 {
            self.stamp = self.stamp.wrapping_add(1);
            self.tb.set("now", self.stamp.into());
        }
        self.tb.cycle();
        self.stats.see(&self.tb);
        self.told.see(&self.tb);
        self.answer();
        self.written();
        self.event();
    }

    fn count(&mut self, function: u16, name: &'static str) {
        *self.counts.entry((function.into(), name)).or_default() += 1;
    }

    fn run(&mut self, cycles: u32) {
        (0..cycles).for_each(|_| self.cycle());
    }

    /// Answers writes in order when they are due; only then may an event follow.
    fn answer(&mut self) {
        while self.writes.front().is_some_and(|(due, ..)| *due <= self.tb.cycles()) {
            let (_, cqn, event) = self.writes.pop_front().expect("looked at");
            self.answered += 1;
            let err = self.failures > 0 && self.tb.rng().percent(self.failures);
            if err {
                self.count(self.queues[&cqn].function, "cq_write_errors");
            }
            if event || err {
                self.expected.push_back((cqn, if err { 2 } else { 1 }));
            }
            self.done.push(Fields::of::<WrDone>().pack(&[("err", err.into())]));
        }
    }

    /// Checks every write against the model, in the order they come.
    fn written(&mut self) {
        let (write, req) = (Fields::of::<WrSmall>(), Fields::of::<CqeReq>());
        while let Some(w) = self.wr.pop() {
            let data = write.get_words(&w, "data");
            assert!(data[8..].iter().all(|word| *word == 0) && write.get(&w, "len") == 32);
            let cqe = Cqe(std::array::from_fn(|i| (data[i / 4] >> (8 * (i % 4))) as u8));
            let iova = write.get(&w, "iova") as u64;
            let cqn = ((iova - 0x30_0000_0000) >> 24) as u32;
            // Which request this is: found by content; those of its queue before it on the port must have been bad ones.
            let same = |(q, r): &(u32, Vec<u32>)| *q == cqn && (req.get(r, "wqe_index") as u16, req.get(r, "imm") as u32) == (cqe.wqe_index(), cqe.imm());
            let place = (0..self.reqs.len()).find_map(|p| Some((p, self.asked[p].iter().position(same)?)));
            let (port, at) = place.expect("a request for the entry");
            let function = self.queues[&cqn].function;
            let passed = self.asked[port].iter().take(at).filter(|(q, _)| *q == cqn);
            assert!(passed.into_iter().all(|(_, r)| req.get(r, "function") as u16 != function), "order within port {port}");
            let (_, r) = self.asked[port].remove(at).expect("position");
            self.order.push(port);
            let get = |name| req.get(&r, name);
            let expected = (
                (get("status") as u8, get("opcode") as u8, get("qpn") as u32, get("is_recv") == 1, get("imm_valid") == 1),
                (get("imm") as u32, get("solicited") == 1, get("byte_len") as u32, get("src_qp") as u32, get("syndrome") as u8, get("grh") == 1),
            );
            let got = ((cqe.status(), cqe.opcode(), cqe.qpn(), cqe.is_recv(), cqe.imm_valid()), (cqe.imm(), cqe.solicited(), cqe.byte_len(), cqe.src_qp(), cqe.syndrome(), cqe.grh()));
            assert_eq!(got, expected);
            let age = u64::from(self.stamp) - cqe.timestamp();
            assert!(age < 200, "time stamp {age} ticks ago");
            let urgent = cqe.status() != 0 || (cqe.is_recv() && cqe.solicited());
            let queue = self.queues.get_mut(&cqn).expect("it exists");
            let Outcome::Written { slot, phase, event } = queue.complete(get("function") as u16, urgent) else {
                panic!("queue {cqn}: this completion must not be written: {queue:?}");
            };
            assert_eq!((iova & 0xff_ffff, cqe.phase()), (u64::from(slot) * 32, phase), "queue {cqn}");
            assert_eq!(write.get(&w, "function") as u16, queue.function);
            let function = queue.function;
            self.count(function, "cqe_written");
            let due = self.writes.back().map_or(0, |(due, ..)| *due).max(self.tb.cycles() + self.tb.rng().range(0, 40));
            self.writes.push_back((due, cqn, event));
        }
    }

    fn event(&mut self) {
        let layout = Fields::of::<EqeReq>();
        while let Some(event) = self.events.pop() {
            let (cqn, kind) = (layout.get(&event, "id") as u32, layout.get(&event, "kind") as u8);
            if kind == 6 {
                self.lasts.push((cqn, layout.get(&event, "eqn") as u8, self.answered));
                continue;
            }
            assert_eq!(layout.get(&event, "eqn") as u8, self.queues[&cqn].eqn);
            self.count(self.queues[&cqn].function, "cq_events");
            if self.expected.front() == Some(&(cqn, kind)) {
                self.expected.pop_front();
            } else {
                assert_eq!(kind, 2, "an unexpected event of queue {cqn}; expected {:?}", self.expected);
                self.overflows.push(cqn);
            }
        }
    }

    /// Until all requests are done with and all writes answered.
    fn settle(&mut self) {
        while self.reqs.iter().map(Source::pending).sum::<usize>() + self.db.pending() + self.writes.len() > 0 {
            self.cycle();
        }
        self.run(200);
        assert!(self.writes.is_empty() && self.expected.is_empty(), "events are missing: {:?}", self.expected);
    }

    fn access(&mut self, line: u32, word: u32, write: Option<u32>) -> u32 {
        self.ctl.ask(line, word, write);
        for _ in 0..4000 {
            self.cycle();
            if let Some(answer) = self.ctl.answer() {
                return answer.expect("the line exists");
            }
        }
        panic!("no answer on the control bus");
    }

    fn create(&mut self, cqn: u32, queue: CqModel) {
        let row = CqCtx::default()
            .with_base(0x30_0000_0000 + (u64::from(cqn) << 24))
            .with_function(queue.function)
            .with_log_size(queue.log_size)
            .with_valid(queue.valid)
            .with_eqn(queue.eqn)
            .with_producer(queue.producer)
            .with_consumer(queue.consumer);
        for word in [0, 1, 3, 4, 2] {
            let bytes: [u8; 4] = row.0[4 * word..4 * word + 4].try_into().expect("four bytes");
            self.access(cqn, word as u32, Some(u32::from_le_bytes(bytes)));
        }
        self.queues.insert(cqn, queue);
    }

    fn complete(&mut self, port: usize, cqn: u32, function: u16) {
        let layout = Fields::of::<CqeReq>();
        let mut r = self.tb.rng().words(layout.width());
        layout.set(&mut r, "cqn", cqn.into());
        layout.set(&mut r, "function", function.into());
        layout.set(&mut r, "last", 0);
        if self.tb.rng().percent(80) {
            layout.set(&mut r, "status", 0);
        }
        self.reqs[port].push(r.clone());
        self.asked[port].push_back((cqn, r));
    }

    fn doorbell(&mut self, cqn: u32, function: u16, index: u16, arm: [bool; 2]) {
        self.db.push(Fields::of::<DoorbellMsg>().pack(&[
            ("kind", 2),
            ("id", cqn.into()),
            ("index", index.into()),
            ("arm", arm[0].into()),
            ("arm_solicited", arm[1].into()),
            ("function", function.into()),
        ]));
    }
}

fn scenario(clients: usize, stall: u32, rounds: u32) {
    let mut bench = Bench::of(clients, stall);
    bench.failures = 3;
    bench.run(40);
    for cqn in 0..QUEUES {
        let rng = bench.tb.rng();
        let at = if rng.percent(50) { 0 } else { 0xfff0 + rng.below(16) as u16 };
        let (function, log_size, eqn) = (rng.below(4) as u16, rng.range(1, 6) as u8, rng.below(32) as u8);
        let queue = CqModel { valid: cqn != 9, function, log_size, eqn, producer: at, consumer: at, ..Default::default() };
        bench.create(cqn, queue);
    }
    let mut dead = 0;
    for round in 0..rounds {
        // Many completions, few queues, so that they meet.
        let ports = bench.reqs.len() as u64;
        let hot = bench.tb.rng().below(QUEUES.into()) as u32;
        for _ in 0..bench.tb.rng().range(1, 24) {
            let rng = bench.tb.rng();
            let cqn = if rng.percent(50) { hot } else { rng.below(u64::from(QUEUES) + 2) as u32 };
            let (port, wrong) = (rng.below(ports) as usize, rng.percent(5));
            let function = bench.queues.get(&cqn).map_or(0, |queue| queue.function) ^ u16::from(wrong);
            bench.complete(port, cqn, function);
        }
        bench.settle();
        // What was asked and not written must have been bad or lost.
        for port in 0..bench.reqs.len() {
            for (cqn, r) in std::mem::take(&mut bench.asked[port]) {
                let function = Fields::of::<CqeReq>().get(&r, "function") as u16;
                match bench.queues.get_mut(&cqn).map_or(Outcome::Bad, |queue| queue.complete(function, false)) {
                    Outcome::Bad => bench.count(function, "cq_bad"),
                    Outcome::Lost { first } => {
                        bench.count(function, "cq_overflow");
                        dead += usize::from(first);
                    }
                    written => panic!("round {round}: queue {cqn} should have had this one: {written:?}"),
                }
            }
        }
        assert_eq!(bench.overflows.len(), dead, "one error event per dead queue");
        // The host reads on and arms, sometimes wrongly.
        for _ in 0..6 {
            let cqn = bench.tb.rng().below(u64::from(QUEUES) + 1) as u32;
            let mut queue = bench.queues.get(&cqn).cloned().unwrap_or_default();
            let unread = queue.producer.wrapping_sub(queue.consumer);
            let rng = bench.tb.rng();
            let index = queue.consumer.wrapping_add(rng.below(u64::from(unread) + 1) as u16);
            let index = if rng.percent(60) { queue.producer } else { index };
            let index = if rng.percent(5) { queue.producer.wrapping_add(1) } else { index };
            let function = queue.function ^ u16::from(rng.percent(5));
            let arm = [rng.percent(40), rng.percent(40)];
            bench.doorbell(cqn, function, index, arm);
            match queue.doorbell(function, index, arm[0], arm[1]) {
                Some(true) => bench.expected.push_back((cqn, 1)),
                Some(false) => {}
                None if queue.valid && queue.function == function => bench.count(function, "cq_db_overrun"),
                None => bench.count(function, "cq_db_bad"),
            }
            if cqn < QUEUES {
                bench.queues.insert(cqn, queue);
            }
            bench.settle();
        }
        let seen: Events = bench.stats.events.clone().into_iter().chain(bench.told.events.clone()).collect();
        assert_eq!(seen, bench.counts, "round {round}");
        // Dead queues are made anew.
        if let Some(cqn) = bench.overflows.first().copied().filter(|_| bench.tb.rng().percent(30)) {
            bench.overflows.retain(|q| *q != cqn);
            dead = bench.overflows.len();
            let old = &bench.queues[&cqn];
            let queue = CqModel { valid: true, function: old.function, log_size: old.log_size, eqn: old.eqn, ..Default::default() };
            bench.create(cqn, queue);
        }
    }
    assert!(STATS.iter().all(|name| bench.stats.all(name) > 0) && TOLD.iter().all(|name| bench.told.all(name) > 0), "{:?}", bench.counts);
}

#[test]
fn completions_follow_the_model() {
    scenario(1, 0, 60);
    scenario(1, 40, 60);
}

/// Each client's completions come in its order, and all of them, however many clients there are.
#[test]
fn completions_of_many_clients_follow_the_model() {
    scenario(3, 20, 40);
    scenario(MOST_CLIENTS, 10, 60);
}

/// Flush completions (port 0) begin when the failed request's (port 1) has been taken, and must not overtake it, however
/// busy the queue is and whatever waits at port 2.
#[test]
fn what_req_rx_gave_first_is_written_first() {
    let mut bench = Bench::new(0);
    bench.run(40);
    bench.create(3, CqModel { valid: true, log_size: 15, ..Default::default() });
    for round in 0..300 {
        let (receives, failed, flushed) = {
            let rng = bench.tb.rng();
            (rng.below(4), rng.range(1, 3), rng.range(1, 3))
        };
        (0..receives).for_each(|_| bench.complete(2, 3, 0));
        (0..failed).for_each(|_| bench.complete(1, 3, 0));
        while bench.reqs[1].pending() > 0 {
            bench.cycle();
        }
        (0..flushed).for_each(|_| bench.complete(0, 3, 0));
        bench.settle();
        let sends: Vec<usize> = bench.order.drain(..).filter(|port| *port != 2).collect();
        let expected: Vec<usize> = [vec![1; failed as usize], vec![0; flushed as usize]].concat();
        assert_eq!(sends, expected, "round {round}");
        let index = bench.queues[&3].producer;
        bench.doorbell(3, 0, index, [false; 2]);
        bench.queues.get_mut(&3).expect("it exists").consumer = index;
        bench.settle();
    }
}

#[test]
fn rates() {
    let mut bench = Bench::new(0);
    bench.run(40);
    for cqn in 0..QUEUES {
        bench.create(cqn, CqModel { valid: true, log_size: 7, ..Default::default() });
    }
    for (queues, limit) in [(QUEUES, 130), (1, 450)] {
        let start = bench.tb.cycles();
        (0..99).for_each(|i| bench.complete(i as usize % 3, i % queues, 0));
        while bench.asked.iter().any(|port| !port.is_empty()) {
            bench.cycle();
        }
        let cycles = bench.tb.cycles() - start;
        println!("99 completions to {queues} queues in {cycles} cycles");
        assert!(cycles <= limit, "99 completions to {queues} queues took {cycles} cycles");
        bench.settle();
        for cqn in 0..QUEUES {
            let index = bench.queues[&cqn].producer;
            bench.doorbell(cqn, 0, index, [false; 2]);
            bench.queues.get_mut(&cqn).expect("it exists").consumer = index;
        }
        bench.settle();
    }
}

/// It is an event and no entry, behind the answers to the writes of all that came before, whether the queue is armed or not.
#[test]
fn the_last_receive_is_told_behind_its_completions() {
    for stall in [0, 30] {
        let mut bench = Bench::new(stall);
        bench.run(40);
        bench.create(3, CqModel { valid: true, log_size: 5, eqn: 7, ..Default::default() });
        for (n, qpn) in [(5, 0x1234), (2, 0x77)] {
            (0..n).for_each(|_| bench.complete(2, 3, 0));
            let request = [("cqn", 3), ("qpn", qpn), ("is_recv", 1), ("last", 1)];
            bench.reqs[2].push(Fields::of::<CqeReq>().pack(&request));
        }
        bench.settle();
        assert_eq!(bench.lasts.iter().map(|last| (last.0, last.1)).collect::<Vec<_>>(), [(0x1234, 7), (0x77, 7)]);
        assert!(bench.lasts[0].2 >= 5 && bench.lasts[1].2 == 7, "before its completions: {:?}", bench.lasts);
        assert_eq!((bench.answered, bench.stats.all("cqe_written"), bench.queues[&3].producer), (7, 7, 7));
    }
}
