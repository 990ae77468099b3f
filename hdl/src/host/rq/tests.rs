//! The receive-queue unit between a random host, a random DMA reader and a responder.

use super::model::RingModel;
use super::{RecvQueue, FETCHES, FETCH_ERRORS, STATS};
use crate::host::testing::{memory, Control, SmallReads};
use crate::msg::{DoorbellMsg, EqeReq, RqAlloc, RqCmd, RqFlush, RqGrant, WqeData, WqeFree, WqeRead};
use crate::tb::{Counted, Fields, Sink, Source, Tb};
use ferric_abi::context::RingCtx;
use std::collections::{BTreeMap, HashMap, VecDeque};

const LQ: usize = 4;
const QUEUES: u32 = 1 << LQ;

struct Bench {
    tb: Tb,
    db: Source,
    alloc: Source,
    grant: Sink,
    cmd: Source,
    flush: Sink,
    event: Sink,
    reads: SmallReads,
    read: Source,
    data: Sink,
    free: Source,
    ctl: Control,
    stats: [Counted; 3],
    rings: HashMap<u32, RingModel>,
    /// Allocations asked for: ring, the slot the model hands out, whether the ring is in error, and whether it is a slot's second time.
    asked: VecDeque<(u32, Option<u16>, bool, bool)>,
    /// Events due: kind, shared receive queue.
    events: VecDeque<(u8, u32)>,
    /// Buffers in the responder's hands.
    held: Vec<Held>,
    /// Per queue pair the ring and the slot of a request whose buffer was taken away, and the copy that it named.
    losers: BTreeMap<u32, (u32, u16, u32)>,
    /// The copies that requests under way for the second time are to be read from.
    copies: VecDeque<u32>,
}

/// A buffer, the contents it should have, whether the fetch failed, and what it was fetched for.
struct Held {
    handle: u128,
    contents: Vec<u32>,
    failed: bool,
    ring: u32,
    slot: u16,
}

impl Bench {
    fn new(stall: u32) -> Bench {
        let mut tb = Tb::new("rq", RecvQueue::<LQ>::default());
        let reads = SmallReads::new(tb.sink("m_rd", stall), tb.source("s_rd", stall / 2));
        let ctl = Control::new(&mut tb, stall);
        Bench {
            db: tb.source("s_db", stall),
            alloc: tb.source("s_alloc", stall),
            grant: tb.sink("m_grant", stall),
            cmd: tb.source("s_cmd", stall),
            flush: tb.sink("m_flush", stall),
            event: tb.sink("m_event", stall),
            read: tb.source("s_read", stall),
            data: tb.sink("m_read", stall),
            free: tb.source("s_free", stall),
            reads,
            ctl,
            tb,
            stats: [Counted::new("stat", "stat_function", STATS), Counted::new("fetches", "fetches_function", FETCHES), Counted::new("fetch_errors", "fetch_errors_function", FETCH_ERRORS)],
            rings: HashMap::new(),
            asked: VecDeque::new(),
            events: VecDeque::new(),
            held: Vec::new(),
            losers: BTreeMap::new(),
            copies: VecDeque::new(),
        }
    }

    fn cycle(&mut self) {
        self.tb.cycle();
        self.stats.iter_mut().for_each(|stats| stats.see(&self.tb));
        self.reads.step(&mut self.tb);
        self.grants();
        let layout = Fields::of::<EqeReq>();
        while let Some(event) = self.event.pop() {
            let got = (layout.get(&event, "kind") as u8, layout.get(&event, "id") as u32);
            assert_eq!(Some(got), self.events.pop_front());
            assert_eq!(layout.get(&event, "eqn"), 0x50 + u128::from(got.1));
        }
    }

    fn all(&self, name: &str) -> u64 {
        self.stats.iter().map(|stats| stats.all(name)).sum()
    }

    /// Of function `function`.
    fn of(&self, function: u64, name: &'static str) -> u64 {
        self.stats.iter().filter_map(|stats| stats.events.get(&(function, name))).sum()
    }

    fn run(&mut self, cycles: u32) {
        (0..cycles).for_each(|_| self.cycle());
    }

    /// Until what was pushed is in the tables.
    fn settle(&mut self) {
        while self.db.pending() + self.alloc.pending() + self.cmd.pending() > 0 {
            self.cycle();
        }
        self.run(12);
    }

    fn grants(&mut self) {
        let layout = Fields::of::<RqGrant>();
        while let Some(grant) = self.grant.pop() {
            let (qpn, slot, dead, again) = self.asked.pop_front().expect("a grant for every allocation");
            assert_eq!(layout.get(&grant, "ok") == 1, slot.is_some(), "queue {qpn} {:?}", self.rings[&qpn]);
            assert_eq!(layout.get(&grant, "dead") == 1, dead, "queue {qpn}");
            let Some(index) = slot else { continue };
            let handle = layout.get(&grant, "handle");
            assert!(self.held.iter().all(|held| held.handle != handle), "buffer {handle} granted twice");
            let ring = &self.rings[&qpn];
            let (mut iova, rows) = (base(qpn) + ring.offset(index), 1 << ring.stride);
            let copy = again.then(|| self.copies.pop_front()).flatten();
            if !again {
                assert_eq!(layout.get(&grant, "index") as u16, index, "queue {qpn}");
            } else if let (Some(copy), true) = (copy, ring.shared) {
                // The slot may be another request's by now: its copy, whose number it said itself.
                let copy = copy % (1 << ring.log_size);
                iova = base(qpn) + (u64::from(copy + (1 << ring.log_size)) << (6 + ring.stride));
            }
            let contents = (0..rows).flat_map(|r| memory(iova + 64 * r)).collect();
            self.held.push(Held { handle, contents, failed: self.reads.fails(iova, rows), ring: qpn, slot: index });
        }
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

    fn create(&mut self, qpn: u32, ring: RingModel) {
        let row = RingCtx::default()
            .with_base(base(qpn))
            .with_function(ring.function)
            .with_log_size(ring.log_size)
            .with_stride(ring.stride)
            .with_valid(true)
            .with_shared(ring.shared)
            .with_eqn(0x50 + (qpn % (QUEUES / 2)) as u8)
            .with_producer(ring.producer)
            .with_fetch(ring.next);
        for word in [0, 1, 3, 4, 6, 2] {
            let bytes: [u8; 4] = row.0[4 * word..4 * word + 4].try_into().expect("four bytes");
            self.access(qpn, word as u32, Some(u32::from_le_bytes(bytes)));
        }
        self.rings.insert(qpn, ring);
    }

    fn doorbell(&mut self, qpn: u32, index: u16, function: u16) {
        self.db.push(Fields::of::<DoorbellMsg>().pack(&[("kind", 1), ("id", qpn.into()), ("index", index.into()), ("function", function.into())]));
    }

    fn ask(&mut self, qpn: u32) {
        let ring = self.rings.get_mut(&qpn).expect("it exists");
        self.asked.push_back((qpn, ring.alloc(), ring.error, false));
        self.limit_event(qpn);
        self.alloc.push(Fields::of::<RqAlloc>().pack(&[("ring", qpn.into())]));
    }

    /// A buffer is taken away from its request, with an allocation that says so; and one that was is wanted again.
    fn once_more(&mut self) {
        let (at, qpn) = (self.tb.rng().next_u32() as usize, self.tb.rng().below(QUEUES.into()) as u32);
        let other = self.tb.rng().below(QUEUES.into()) as u32;
        // Half of the time one that has just been granted, whose request is still on its way.
        let fresh = self.tb.rng().percent(50);
        if fresh {
            let ring = QUEUES / 2 + self.tb.rng().below(u64::from(QUEUES / 2)) as u32;
            self.ask(ring);
        }
        // The responder asks for one at a time.
        while !self.asked.is_empty() {
            self.cycle();
        }
        if !self.held.is_empty() && !self.losers.contains_key(&qpn) {
            let held = if fresh { self.held.pop().expect("not empty") } else { self.held.swap_remove(at % self.held.len()) };
            self.losers.insert(qpn, (held.ring, held.slot, held.contents[1] & 0xffff));
            // The buffer comes back sooner or later.
            let free = Fields::of::<WqeFree>().pack(&[("handle", held.handle)]);
            let late = self.tb.rng().percent(50);
            if !late {
                self.free.push(free.clone());
            }
            let ring = self.rings.get_mut(&other).expect("it exists");
            self.asked.push_back((other, ring.alloc(), ring.error, false));
            self.limit_event(other);
            let taken = [("ring", other.into()), ("taken", 1), ("victim", held.handle), ("loser", qpn.into())];
            self.alloc.push(Fields::of::<RqAlloc>().pack(&taken));
            // It is answered when the victim's request has come.
            while !self.asked.is_empty() {
                self.cycle();
            }
            self.settle();
            if late {
                self.free.push(free);
            }
        }
        if self.tb.rng().percent(60) {
            if let Some((qpn, (ring, slot, copy))) = self.losers.pop_first() {
                self.copies.push_back(copy);
                self.asked.push_back((ring, Some(slot), self.rings[&ring].error, true));
                let again = [("ring", ring.into()), ("qpn", qpn.into()), ("again", 1), ("index", slot.into())];
                self.alloc.push(Fields::of::<RqAlloc>().pack(&again));
            }
        }
    }

    fn limit_event(&mut self, ring: u32) {
        if self.rings.get_mut(&ring).expect("it exists").reached() {
            self.events.push_back((5, ring - QUEUES / 2));
        }
    }

    /// Arms the limit of a shared receive queue.
    fn arm(&mut self, ring: u32, limit: u16) {
        self.rings.get_mut(&ring).expect("it exists").limit = limit;
        self.limit_event(ring);
        self.access(ring, 5, Some(limit.into()));
        self.run(20);
    }

    /// Reads some granules of a held buffer and gives it back.
    fn use_one(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let at = self.tb.rng().below(self.held.len() as u64) as usize;
        let Held { handle, contents, failed, ring, slot } = self.held.swap_remove(at);
        let (read, data) = (Fields::of::<WqeRead>(), Fields::of::<WqeData>());
        let granules: Vec<usize> = (0..3).map(|_| self.tb.rng().below(contents.len() as u64 / 4) as usize).collect();
        for granule in &granules {
            self.read.push(read.pack(&[("handle", handle), ("granule", *granule as u128)]));
        }
        for granule in granules {
            let answer = (0..4000).find_map(|_| {
                self.cycle();
                self.data.pop()
            });
            let answer = answer.expect("an answer to WqeRead");
            assert_eq!(data.get(&answer, "err") == 1, failed);
            if !failed {
                assert_eq!(data.get_words(&answer, "data"), &contents[4 * granule..4 * granule + 4], "granule {granule} of slot {slot} of {ring}: {:?}", self.rings[&ring]);
            }
        }
        self.free.push(Fields::of::<WqeFree>().pack(&[("handle", handle)]));
    }

    /// Every slot left comes back, in ring order per queue.
    fn flushed(&mut self) {
        let layout = Fields::of::<RqFlush>();
        while let Some(flush) = self.flush.pop() {
            let qpn = layout.get(&flush, "qpn") as u32;
            let ring = self.rings.get_mut(&qpn).expect("it exists");
            assert!(ring.flush && ring.pending() > 0, "queue {qpn} {ring:?}");
            assert_eq!(layout.get(&flush, "index") as u16, ring.pop(), "queue {qpn}");
        }
    }
}

fn base(qpn: u32) -> u64 {
    0x20_0000_0000 + (u64::from(qpn) << 24)
}

fn scenario(stall: u32, rounds: u32) {
    let mut bench = Bench::new(stall);
    bench.run(40);
    for qpn in 0..QUEUES {
        let rng = bench.tb.rng();
        let start = if rng.percent(50) { 0 } else { 0xfff0 + rng.below(16) as u16 };
        let (function, log_size, stride) = (rng.below(4) as u16, rng.range(0, 5) as u8, rng.below(4) as u8);
        bench.create(qpn, RingModel { function, log_size, stride, producer: start, next: start, shared: qpn >= QUEUES / 2, ..Default::default() });
    }
    bench.reads.bad_pages.extend([base(3) >> 12, base(7) >> 12]);
    for _ in 0..rounds {
        for _ in 0..6 {
            let qpn = bench.tb.rng().below(QUEUES.into()) as u32;
            let ring = bench.rings.get_mut(&qpn).expect("it exists");
            let room = (1u64 << ring.log_size) - u64::from(ring.pending());
            if room > 0 {
                let (index, function) = (ring.producer.wrapping_add(bench.tb.rng().range(1, room) as u16), ring.function);
                assert!(ring.doorbell(function, index));
                bench.doorbell(qpn, index, function);
            }
        }
        bench.settle();
        bench.flushed();
        for _ in 0..bench.tb.rng().below(12) {
            let qpn = bench.tb.rng().below(QUEUES.into()) as u32;
            bench.ask(qpn);
        }
        bench.settle();
        // Never so many held that a buffer has to be waited for.
        while bench.held.len() > 30 {
            bench.use_one();
        }
        bench.use_one();
        if bench.tb.rng().percent(40) {
            bench.once_more();
        }
        if bench.tb.rng().percent(30) {
            let rng = bench.tb.rng();
            let (ring, limit) = (QUEUES / 2 + rng.below(u64::from(QUEUES / 2)) as u32, rng.below(12) as u16);
            bench.arm(ring, limit);
        }
        if bench.tb.rng().percent(8) {
            let qpn = bench.tb.rng().below(u64::from(QUEUES / 2)) as u32;
            bench.cmd.push(Fields::of::<RqCmd>().pack(&[("qpn", qpn.into())]));
            bench.rings.get_mut(&qpn).expect("it exists").flush = true;
            bench.settle();
        }
    }
    bench.run(600);
    bench.flushed();
    assert!(bench.rings.values().all(|ring| !ring.flush || ring.pending() == 0), "all flushed: {:?}", bench.rings);
    assert!(bench.asked.is_empty());
    while !bench.held.is_empty() {
        bench.use_one();
    }
    assert!(bench.events.is_empty(), "{:?}", bench.events);
    assert_eq!(["rq_db_bad", "rq_db_overrun", "srq_errors"].map(|name| bench.all(name)), [0; 3]);
    let others = ["rq_fetches", "rq_fetch_errors", "rq_empty", "rq_fetched_again", "rq_flushed", "srq_limits"];
    assert!(others.iter().all(|name| bench.all(name) > 0), "{:?}", others.map(|name| bench.all(name)));
    buffers_run_out(&mut bench);
}

/// 64 grants; the next allocation waits until a buffer comes back.
fn buffers_run_out(bench: &mut Bench) {
    bench.access(0, 2, Some(0));
    bench.run(20);
    bench.create(0, RingModel { log_size: 7, producer: 0, ..Default::default() });
    bench.rings.get_mut(&0).expect("it exists").producer = 128;
    bench.doorbell(0, 128, 0);
    bench.settle();
    (0..64).for_each(|_| bench.ask(0));
    bench.run(1500);
    assert_eq!((bench.held.len(), bench.asked.len()), (64, 0), "all buffers are out");
    bench.ask(0);
    bench.run(3000);
    assert_eq!(bench.asked.len(), 1, "it waits for a buffer");
    bench.use_one();
    bench.run(200);
    assert_eq!((bench.held.len(), bench.asked.len()), (64, 0), "granted again");
    while !bench.held.is_empty() {
        bench.use_one();
    }
}

#[test]
fn slots_are_granted_in_ring_order_and_flushed() {
    scenario(0, 80);
    scenario(40, 80);
}

#[test]
fn bad_doorbells_are_counted() {
    let mut bench = Bench::new(20);
    bench.run(40);
    bench.create(5, RingModel { function: 3, log_size: 3, ..Default::default() });
    // Wrong function, no such queue, beyond the table, beyond the ring, no news, behind.
    for (qpn, index, function) in [(5, 1, 2), (6, 1, 3), (5 + QUEUES, 1, 3), (5, 9, 3), (5, 0, 3), (5, 0xffff, 3)] {
        bench.doorbell(qpn, index, function);
    }
    bench.settle();
    assert_eq!((bench.of(2, "rq_db_bad"), bench.of(3, "rq_db_bad"), bench.of(3, "rq_db_overrun")), (1, 2, 3), "of whoever rang");
    assert_eq!((bench.all("rq_db_bad"), bench.all("rq_db_overrun")), (3, 3));
    assert_eq!(bench.access(5, 4, None), 0, "nothing moved");
    bench.ask(5);
    // An allocation on a queue that does not exist is answered, too.
    bench.asked.push_back((5, None, false, false));
    bench.alloc.push(Fields::of::<RqAlloc>().pack(&[("ring", 9)]));
    bench.run(100);
    assert!(bench.asked.is_empty());
}

/// A failed fetch is told once, the queue hands out nothing more, others go on; queue pairs' rings have no such state.
#[test]
fn a_failed_fetch_ends_a_shared_queue() {
    let mut bench = Bench::new(20);
    bench.run(40);
    for qpn in [4, 11, 12] {
        let function = (qpn % 5) as u16;
        bench.create(qpn, RingModel { function, log_size: 4, shared: qpn >= QUEUES / 2, ..Default::default() });
        assert!(bench.rings.get_mut(&qpn).expect("it exists").doorbell(function, 8));
        bench.doorbell(qpn, 8, function);
    }
    bench.reads.bad_pages.extend([base(4) >> 12, base(12) >> 12]);
    bench.settle();
    bench.events.push_back((7, 12 - QUEUES / 2));
    for round in 0..3 {
        [4, 11, 12].into_iter().for_each(|ring| bench.ask(ring));
        bench.run(1500);
        assert!(bench.asked.is_empty() && bench.events.is_empty(), "round {round}");
        bench.rings.get_mut(&12).expect("it exists").error = true;
    }
    // Rings 4, 11 and 12 are functions 4's, 1's and 2's.
    for (function, fetches, errors) in [(4, 3, 3), (1, 3, 0), (2, 1, 1)] {
        assert_eq!((bench.of(function, "rq_fetches"), bench.of(function, "rq_fetch_errors")), (fetches, errors), "function {function}");
    }
    assert_eq!((bench.all("rq_fetches"), bench.all("rq_fetch_errors"), bench.all("srq_errors"), bench.of(2, "srq_errors")), (7, 4, 1, 1));
    // A limit says nothing of a queue in error that has enough; the state is there to be read.
    assert_eq!(bench.access(12, 2, None) >> 26 & 3, 3, "shared, and in error");
    while !bench.held.is_empty() {
        bench.use_one();
    }
}

#[test]
fn allocations_pipeline() {
    let mut bench = Bench::new(0);
    bench.run(40);
    for qpn in 0..QUEUES {
        bench.create(qpn, RingModel { log_size: 3, ..Default::default() });
        assert!(bench.rings.get_mut(&qpn).expect("it exists").doorbell(0, 4));
        bench.doorbell(qpn, 4, 0);
    }
    bench.settle();
    let start = bench.tb.cycles();
    (0..48).for_each(|i| bench.ask(i % QUEUES));
    while !bench.asked.is_empty() {
        bench.cycle();
        assert!(bench.tb.cycles() - start < 140, "48 allocations of different queues in 140 cycles");
    }
    println!("48 grants in {} cycles", bench.tb.cycles() - start);
}
