//! The event writer between two clients, a host that consumes, and a DMA writer with random latency.

use super::{for_number, STATS, TOLD};
use crate::assembly::MOST_CLIENTS;
use crate::host::testing::Control;
use crate::msg::{DoorbellMsg, EqeReq, MsixReq, WrDone, WrSmall};
use crate::tb::{Counted, Events, Fields, Sink, Source, Tb};
use ferric_abi::context::EqCtx;
use ferric_abi::host::Eqe;
use std::collections::VecDeque;

const LE: usize = 3;
const QUEUES: u32 = 1 << LE;

#[derive(Clone, Default)]
struct Queue {
    valid: bool,
    function: u16,
    log_size: u8,
    vector: u16,
    producer: u16,
    consumer: u16,
}

struct Bench {
    tb: Tb,
    reqs: Vec<Source>,
    db: Source,
    wr: Sink,
    done: Source,
    msix: Sink,
    ctl: Control,
    stats: Counted,
    told: Counted,
    /// What they should have counted.
    counts: Events,
    queues: Vec<Queue>,
    asked: Vec<VecDeque<(u32, Vec<u32>)>>,
    writes: VecDeque<(u64, u32)>,
    expected: VecDeque<u32>,
}

impl Bench {
    fn new(clients: usize, stall: u32) -> Bench {
        let mut tb = Tb::new("eq", for_number::<LE>(clients));
        let ctl = Control::new(&mut tb, stall);
        Bench {
            reqs: (0..clients).map(|i| tb.source(&format!("s_req${i}"), stall)).collect(),
            db: tb.source("s_db", stall),
            wr: tb.sink("m_wr", stall),
            done: tb.source("s_done", stall),
            msix: tb.sink("m_msix", stall),
            ctl,
            tb,
            stats: Counted::new("stat", "stat_function", STATS),
            told: Counted::new("told", "told_function", TOLD),
            counts: Events::new(),
            queues: Vec::new(),
            asked: vec![VecDeque::new(); clients],
            writes: VecDeque::new(),
            expected: VecDeque::new(),
        }
    }

    fn cycle(&mut self) {
        self.tb.cycle();
        self.stats.see(&self.tb);
        self.told.see(&self.tb);
        while self.writes.front().is_some_and(|(due, _)| *due <= self.tb.cycles()) {
            let (_, eqn) = self.writes.pop_front().expect("looked at");
            let err = self.tb.rng().percent(5);
            self.count(self.queues[eqn as usize].function, if err { "eq_write_errors" } else { "eq_msix" });
            self.expected.extend((!err).then_some(eqn));
            self.done.push(Fields::of::<WrDone>().pack(&[("err", err.into())]));
        }
        self.written();
        let layout = Fields::of::<MsixReq>();
        while let Some(msix) = self.msix.pop() {
            let eqn = self.expected.pop_front().expect("no interrupt before the write's answer");
            let queue = &self.queues[eqn as usize];
            let got = (layout.get(&msix, "function") as u16, layout.get(&msix, "vector") as u16);
            assert_eq!(got, (queue.function, queue.vector));
        }
    }

    fn count(&mut self, function: u16, name: &'static str) {
        *self.counts.entry((function.into(), name)).or_default() += 1;
    }

    fn written(&mut self) {
        let (write, req) = (Fields::of::<WrSmall>(), Fields::of::<EqeReq>());
        while let Some(w) = self.wr.pop() {
            let data = write.get_words(&w, "data");
            assert!(data[4..].iter().all(|word| *word == 0) && write.get(&w, "len") == 16);
            let eqe = Eqe(std::array::from_fn(|i| (data[i / 4] >> (8 * (i % 4))) as u8));
            let iova = write.get(&w, "iova") as u64;
            let eqn = ((iova - 0x40_0000_0000) >> 24) as u32;
            // Next of this queue on some port.
            let same = |(q, r): &(u32, Vec<u32>)| *q == eqn && (req.get(r, "kind") as u8, req.get(r, "id") as u32, req.get(r, "cause") as u16) == (eqe.kind(), eqe.id(), eqe.cause());
            let port = (0..self.reqs.len()).find(|p| self.asked[*p].iter().find(|(q, _)| *q == eqn).is_some_and(same));
            let port = port.expect("a request for the entry, first of its queue on its port");
            let at = self.asked[port].iter().position(same).expect("it was found above");
            self.asked[port].remove(at);
            let queue = &mut self.queues[eqn as usize];
            let size = 1u16 << queue.log_size;
            assert!(queue.valid && queue.producer.wrapping_sub(queue.consumer) < size, "queue {eqn} has no room");
            assert_eq!(iova & 0xff_ffff, u64::from(queue.producer % size) * 16, "queue {eqn}");
            assert_eq!(eqe.phase(), queue.producer / size % 2 == 0, "queue {eqn}");
            assert_eq!(write.get(&w, "function") as u16, queue.function);
            queue.producer = queue.producer.wrapping_add(1);
            let function = queue.function;
            self.count(function, "eqe_written");
            let due = self.writes.back().map_or(0, |(due, _)| *due).max(self.tb.cycles() + self.tb.rng().range(0, 40));
            self.writes.push_back((due, eqn));
        }
    }

    fn settle(&mut self) {
        while self.reqs.iter().map(Source::pending).sum::<usize>() + self.db.pending() + self.writes.len() > 0 {
            self.cycle();
        }
        (0..200).for_each(|_| self.cycle());
        assert!(self.writes.is_empty() && self.expected.is_empty(), "interrupts are missing: {:?}", self.expected);
    }

    fn create(&mut self, eqn: u32, queue: Queue) {
        let row = EqCtx::default()
            .with_base(0x40_0000_0000 + (u64::from(eqn) << 24))
            .with_function(queue.function)
            .with_log_size(queue.log_size)
            .with_valid(queue.valid)
            .with_vector(queue.vector)
            .with_producer(queue.producer)
            .with_consumer(queue.consumer);
        for word in [0, 1, 3, 4, 2] {
            let bytes: [u8; 4] = row.0[4 * word..4 * word + 4].try_into().expect("four bytes");
            self.ctl.ask(eqn, word as u32, Some(u32::from_le_bytes(bytes)));
            while self.ctl.answer().is_none() {
                self.cycle();
            }
        }
        self.queues.push(queue);
    }
}

#[test]
fn events_follow_the_model() {
    // Three: a RoCE card.
    for (clients, stall) in [(3, 0), (3, 40), (1, 20), (MOST_CLIENTS, 20)] {
        let mut bench = Bench::new(clients, stall);
        (0..20).for_each(|_| bench.cycle());
        for eqn in 0..QUEUES {
            let rng = bench.tb.rng();
            let at = if rng.percent(50) { 0 } else { 0xfff0 + rng.below(16) as u16 };
            let (function, log_size, vector) = (rng.below(4) as u16, rng.range(1, 5) as u8, rng.below(2048) as u16);
            bench.create(eqn, Queue { valid: eqn != 5, function, log_size, vector, producer: at, consumer: at });
        }
        for round in 0..60 {
            for _ in 0..bench.tb.rng().range(1, 30) {
                let layout = Fields::of::<EqeReq>();
                let mut r = bench.tb.rng().words(layout.width());
                let eqn = bench.tb.rng().below(u64::from(QUEUES) + 2) as u32;
                layout.set(&mut r, "eqn", eqn.into());
                let port = bench.tb.rng().below(clients as u64) as usize;
                bench.reqs[port].push(r.clone());
                bench.asked[port].push_back((eqn, r));
            }
            bench.settle();
            for (eqn, _) in bench.asked.iter_mut().flat_map(std::mem::take).collect::<Vec<_>>() {
                match bench.queues.get(eqn as usize).filter(|queue| queue.valid) {
                    // Nobody's.
                    None => bench.count(0, "eq_bad"),
                    Some(queue) => {
                        assert_eq!(queue.producer.wrapping_sub(queue.consumer), 1 << queue.log_size, "queue {eqn} had room");
                        let function = queue.function;
                        bench.count(function, "eq_overflow");
                    }
                }
            }
            for _ in 0..5 {
                let eqn = bench.tb.rng().below(u64::from(QUEUES) + 1) as u32;
                let queue = bench.queues.get(eqn as usize).cloned().unwrap_or_default();
                let unread = queue.producer.wrapping_sub(queue.consumer);
                let rng = bench.tb.rng();
                let index = queue.consumer.wrapping_add(rng.below(u64::from(unread) + 1) as u16);
                let index = if rng.percent(10) { queue.producer.wrapping_add(1) } else { index };
                let function = queue.function ^ u16::from(rng.percent(10));
                bench.db.push(Fields::of::<DoorbellMsg>().pack(&[("kind", 3), ("id", eqn.into()), ("index", index.into()), ("function", function.into())]));
                if !queue.valid || function != queue.function {
                    bench.count(function, "eq_db_bad");
                } else if queue.producer.wrapping_sub(index) > unread {
                    bench.count(function, "eq_db_overrun");
                } else {
                    bench.queues[eqn as usize].consumer = index;
                }
                bench.settle();
            }
            let seen: Events = bench.stats.events.clone().into_iter().chain(bench.told.events.clone()).collect();
            assert_eq!(seen, bench.counts, "round {round}");
        }
        assert!(STATS.iter().all(|name| bench.stats.all(name) > 0) && TOLD.iter().all(|name| bench.told.all(name) > 0), "{:?}", bench.counts);
    }
}
