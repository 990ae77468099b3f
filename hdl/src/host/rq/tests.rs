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
    flush: Option<Sink>,
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
    /// Per ring: how often it has been made, and bytes by which its base is not that of its region.
    lives: HashMap<u32, (u64, u64)>,
    /// Slots, by ring and offset, that may be read: how often they have been posted and not been used.
    posted: HashMap<(u32, u64), u32>,
}

/// A buffer, the contents it should have, whether the fetch failed, and what it was fetched for.
struct Held {
    handle: u128,
    contents: Vec<u32>,
    failed: bool,
    ring: u32,
    slot: u16,
    life: u64,
}

impl Bench {
    /// 14 blocks: few, so that rings lose theirs.
    fn new(stall: u32) -> Bench {
        Self::of_card(Tb::new("rq", RecvQueue::<LQ, 4, 7>::default()), stall)
    }

    /// 112 blocks.
    fn large(stall: u32) -> Bench {
        Self::of_card(Tb::new("rq_large", RecvQueue::<LQ, 7, 10>::default()), stall)
    }

    fn of_card(tb: Tb, stall: u32) -> Bench {
        Self::with_flushes(tb, stall, true)
    }

    /// `flushes`: they are taken.
    fn with_flushes(mut tb: Tb, stall: u32, flushes: bool) -> Bench {
        let mut reads = SmallReads::new(tb.sink("m_rd", stall), tb.source("s_rd", stall / 2));
        reads.in_order = true;
        let ctl = Control::new(&mut tb, stall);
        Bench {
            db: tb.source("s_db", stall),
            alloc: tb.source("s_alloc", stall),
            grant: tb.sink("m_grant", stall),
            cmd: tb.source("s_cmd", stall),
            flush: flushes.then(|| tb.sink("m_flush", stall)),
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
            lives: HashMap::new(),
            posted: HashMap::new(),
        }
    }

    fn life(&self, ring: u32) -> u64 {
        self.lives.get(&ring).map_or(0, |(life, _)| *life)
    }

    fn base(&self, ring: u32) -> u64 {
        let (life, shift) = self.lives.get(&ring).copied().unwrap_or_default();
        region(ring, life) + shift
    }

    /// What is read has been posted and not been used, or is a copy.
    fn see_reads(&mut self) {
        for (iova, rows) in std::mem::take(&mut self.reads.log) {
            let qpn = (iova - region(0, 0)) as u32 >> 24;
            let ring = &self.rings[&qpn];
            let slot_bytes = 64 << ring.stride;
            let offset = iova.checked_sub(self.base(qpn)).expect("of this life of the ring");
            for at in (offset..offset + 64 * rows).step_by(slot_bytes) {
                let copy = ring.shared && at >= (slot_bytes as u64) << ring.log_size;
                assert!(copy || self.posted.get(&(qpn, at)).is_some_and(|n| *n > 0), "slot {at:#x} of ring {qpn} is not posted: {ring:?}");
            }
        }
    }

    fn used(&mut self, ring: u32, slot: u16) {
        let offset = self.rings[&ring].offset(slot);
        *self.posted.get_mut(&(ring, offset)).expect("posted") -= 1;
    }

    /// Until every read that has been decided on is on its way.
    fn fence(&mut self) {
        self.tb.set("fence", 1);
        self.cycle();
        self.tb.set("fence", 0);
        while self.tb.get("passed") == 0 {
            self.cycle();
        }
        self.cycle();
    }

    /// The ring ends, and another one gets its number.
    fn remake(&mut self, qpn: u32, ring: RingModel, shift: u64) {
        while !self.asked.is_empty() {
            self.cycle();
        }
        self.access(qpn, 2, Some(0));
        self.fence();
        self.run(60);
        self.flushed();
        self.losers.retain(|_, (ring, ..)| *ring != qpn);
        self.posted.retain(|(ring, _), _| *ring != qpn);
        let failing = self.reads.fails(self.base(qpn), 1);
        let life = self.life(qpn) + 1;
        self.lives.insert(qpn, (life, shift));
        if failing {
            self.reads.bad_pages.insert(self.base(qpn) >> 12);
        }
        self.create(qpn, ring);
    }

    fn random_ring(&mut self, qpn: u32) -> (RingModel, u64) {
        let rng = self.tb.rng();
        let start = if rng.percent(50) { 0 } else { 0xfff0 + rng.below(16) as u16 };
        let (function, log_size, stride) = (rng.below(4) as u16, rng.range(0, 5) as u8, rng.below(4) as u8);
        let shift = if rng.percent(20) { 64 << stride } else { 0 };
        (RingModel { function, log_size, stride, producer: start, next: start, shared: qpn >= QUEUES / 2, ..Default::default() }, shift)
    }

    fn cycle(&mut self) {
        self.tb.cycle();
        self.stats.iter_mut().for_each(|stats| stats.see(&self.tb));
        self.reads.step(&mut self.tb);
        self.see_reads();
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
            let (mut iova, rows) = (self.base(qpn) + ring.offset(index), 1 << ring.stride);
            let copy = again.then(|| self.copies.pop_front()).flatten();
            if !again {
                assert_eq!(layout.get(&grant, "index") as u16, index, "queue {qpn}");
            } else if let (Some(copy), true) = (copy, ring.shared) {
                // The slot may be another request's by now: its copy, whose number it said itself.
                let copy = copy % (1 << ring.log_size);
                iova = self.base(qpn) + (u64::from(copy + (1 << ring.log_size)) << (6 + ring.stride));
            }
            let contents = (0..rows).flat_map(|r| memory(iova + 64 * r)).collect();
            let life = self.life(qpn);
            self.held.push(Held { handle, contents, failed: self.reads.fails(iova, rows), ring: qpn, slot: index, life });
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
            .with_base(self.base(qpn))
            .with_function(ring.function)
            .with_log_size(ring.log_size)
            .with_stride(ring.stride)
            .with_valid(true)
            .with_shared(ring.shared)
            .with_eqn(0x50 + (qpn % (QUEUES / 2)) as u8)
            .with_producer(ring.producer)
            .with_fetch(ring.next);
        for word in [0, 1, 3, 4, 5, 6, 2] {
            let bytes: [u8; 4] = row.0[4 * word..4 * word + 4].try_into().expect("four bytes");
            self.access(qpn, word as u32, Some(u32::from_le_bytes(bytes)));
        }
        self.rings.insert(qpn, ring);
    }

    /// Up to `index`; the model takes it.
    fn post(&mut self, qpn: u32, index: u16) {
        let ring = self.rings.get_mut(&qpn).expect("it exists");
        let (function, first) = (ring.function, ring.producer);
        assert!(ring.doorbell(function, index));
        for slot in (0..index.wrapping_sub(first)).map(|n| first.wrapping_add(n)) {
            *self.posted.entry((qpn, ring.offset(slot))).or_default() += 1;
        }
        self.doorbell(qpn, index, function);
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
        let at = if fresh { self.held.len().wrapping_sub(1) } else { at % self.held.len().max(1) };
        // What is of an earlier life of its ring is not wanted again.
        if self.held.get(at).is_some_and(|held| held.life == self.life(held.ring)) && !self.losers.contains_key(&qpn) {
            let held = self.held.swap_remove(at);
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
        let Held { handle, contents, failed, ring, slot, life } = self.held.swap_remove(at);
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
        if self.life(ring) == life {
            self.used(ring, slot);
        }
    }

    /// Every slot left comes back, in ring order per queue.
    fn flushed(&mut self) {
        let layout = Fields::of::<RqFlush>();
        while let Some(flush) = self.flush.as_ref().and_then(Sink::pop) {
            let qpn = layout.get(&flush, "qpn") as u32;
            let ring = self.rings.get_mut(&qpn).expect("it exists");
            assert!(ring.flush && ring.pending() > 0, "queue {qpn} {ring:?}");
            let slot = ring.pop();
            assert_eq!(layout.get(&flush, "index") as u16, slot, "queue {qpn}");
            self.used(qpn, slot);
        }
    }
}

fn region(qpn: u32, life: u64) -> u64 {
    0x20_0000_0000 + (u64::from(qpn) << 24) + (life << 16)
}

fn scenario(bench: &mut Bench, rounds: u32) {
    bench.run(140);
    for qpn in 0..QUEUES {
        let (ring, shift) = bench.random_ring(qpn);
        bench.lives.insert(qpn, (0, shift));
        bench.create(qpn, ring);
    }
    bench.reads.bad_pages.extend([region(3, 0) >> 12, region(7, 0) >> 12]);
    for _ in 0..rounds {
        for _ in 0..6 {
            let qpn = bench.tb.rng().below(QUEUES.into()) as u32;
            let ring = &bench.rings[&qpn];
            let (room, producer) = ((1u64 << ring.log_size) - u64::from(ring.pending()), ring.producer);
            if room > 0 {
                let index = producer.wrapping_add(bench.tb.rng().range(1, room) as u16);
                bench.post(qpn, index);
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
        if bench.tb.rng().percent(15) {
            let qpn = bench.tb.rng().below(QUEUES.into()) as u32;
            let (ring, shift) = bench.random_ring(qpn);
            bench.remake(qpn, ring, shift);
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
    let others = ["rq_fetches", "rq_fetch_errors", "rq_empty", "rq_fetched_again", "rq_flushed", "srq_limits", "rq_fetched_ahead"];
    assert!(others.iter().all(|name| bench.all(name) > 0), "{:?}", others.map(|name| bench.all(name)));
    buffers_run_out(bench);
}

/// 64 grants; the next allocation waits until a buffer comes back.
fn buffers_run_out(bench: &mut Bench) {
    bench.remake(0, RingModel { log_size: 7, ..Default::default() }, 0);
    bench.post(0, 128);
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
    scenario(&mut Bench::new(0), 120);
    scenario(&mut Bench::new(40), 120);
    scenario(&mut Bench::large(20), 80);
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
    bench.reads.bad_pages.extend([region(4, 0) >> 12, region(12, 0) >> 12]);
    for qpn in [4, 11, 12] {
        let function = (qpn % 5) as u16;
        bench.create(qpn, RingModel { function, log_size: 4, shared: qpn >= QUEUES / 2, ..Default::default() });
        bench.post(qpn, 8);
    }
    bench.settle();
    bench.run(300);
    assert_eq!(bench.all("rq_fetch_errors"), 0, "what fails ahead of its packet is nobody's failure yet");
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
        bench.post(qpn, 4);
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

/// Posted slots are in the card before anybody asks: no read, and their contents a few cycles behind the grant.
#[test]
fn slots_are_fetched_ahead_of_their_packets() {
    let mut bench = Bench::large(0);
    bench.run(140);
    bench.create(5, RingModel { log_size: 6, ..Default::default() });
    bench.post(5, 64);
    bench.run(900);
    assert_eq!(bench.all("rq_fetches"), 0);
    bench.reads.step(&mut bench.tb);
    (0..48).for_each(|_| bench.ask(5));
    let start = bench.tb.cycles();
    while !bench.asked.is_empty() {
        bench.cycle();
    }
    println!("48 grants of one ring in {} cycles", bench.tb.cycles() - start);
    let start = bench.tb.cycles();
    bench.use_one();
    assert!(bench.tb.cycles() - start < 30, "no read is waited for");
    assert_eq!((bench.all("rq_fetches"), bench.all("rq_fetched_ahead")), (48, 48));
    while !bench.held.is_empty() {
        bench.use_one();
    }
}

/// All rings have slots posted, more than there are blocks for; the one that is used has its own ahead after a while, and then another one.
#[test]
fn a_ring_that_is_idle_loses_its_blocks() {
    let mut bench = Bench::new(0);
    bench.run(140);
    for qpn in 0..QUEUES {
        bench.create(qpn, RingModel { log_size: 6, ..Default::default() });
        bench.post(qpn, 64);
    }
    bench.run(2000);
    for qpn in 0..QUEUES {
        let before = bench.all("rq_fetched_ahead");
        for _ in 0..48 {
            bench.ask(qpn);
            bench.run(130);
            bench.use_one();
        }
        let ahead = bench.all("rq_fetched_ahead") - before;
        assert!(ahead > 24, "ring {qpn}: {ahead} of 48 slots fetched ahead");
    }
}

/// A read is on its way when its ring ends; what comes is nobody's, and the next life of the number sees only its own.
#[test]
fn what_comes_late_is_dropped() {
    let mut bench = Bench::new(0);
    bench.run(140);
    // Others have the blocks but for a few, so that what is given back is wanted at once.
    for qpn in 6..QUEUES {
        bench.create(qpn, RingModel { log_size: 6, ..Default::default() });
        bench.post(qpn, 64);
        bench.run(60);
        bench.ask(qpn);
        bench.run(300);
        bench.ask(qpn);
        bench.run(300);
    }
    while !bench.held.is_empty() {
        bench.use_one();
    }
    bench.create(5, RingModel { log_size: 5, ..Default::default() });
    for round in 0..40u32 {
        bench.post(5, 32);
        bench.ask(5);
        bench.run(round);
        bench.remake(5, RingModel { log_size: 5, ..Default::default() }, 0);
        bench.post(5, 8);
        bench.run(round % 7);
        (0..8).for_each(|_| bench.ask(5));
        bench.settle();
        while !bench.held.is_empty() {
            bench.use_one();
        }
        bench.remake(5, RingModel { log_size: 5, ..Default::default() }, 0);
    }
    // Every block has come back.
    bench.run(500);
    let before = bench.all("rq_fetched_ahead");
    bench.post(5, 32);
    bench.run(500);
    (0..8).for_each(|_| bench.ask(5));
    bench.settle();
    assert!(bench.all("rq_fetched_ahead") - before >= 7);
    while !bench.held.is_empty() {
        bench.use_one();
    }
}

/// Slots that are copied for long hold up what comes behind them, of which no more is asked for than there is room for.
#[test]
fn what_passes_waits_for_room() {
    let mut bench = Bench::large(0);
    bench.run(140);
    for qpn in 0..5 {
        bench.create(qpn, RingModel { log_size: 5, stride: 3, ..Default::default() });
        bench.post(qpn, 32);
    }
    bench.run(3000);
    // More than each has ahead.
    for _ in 0..12 {
        (0..5).for_each(|qpn| bench.ask(qpn));
    }
    bench.run(3000);
    assert!(bench.asked.is_empty());
    while !bench.held.is_empty() {
        bench.use_one();
    }
}

/// Flushes that nobody takes keep blocks from being given back; until they are, they are not used either.
#[test]
fn blocks_that_are_not_given_back_are_not_used() {
    let mut bench = Bench::with_flushes(Tb::new("rq", RecvQueue::<LQ, 4, 7>::default()), 0, false);
    bench.run(140);
    for qpn in [1, 5] {
        bench.create(qpn, RingModel { log_size: 5, ..Default::default() });
        bench.post(qpn, 32);
    }
    bench.run(500);
    bench.cmd.push(Fields::of::<RqCmd>().pack(&[("qpn", 1)]));
    bench.rings.get_mut(&1).expect("it exists").flush = true;
    bench.run(300);
    bench.remake(5, RingModel { log_size: 5, ..Default::default() }, 0);
    bench.post(5, 32);
    (0..8).for_each(|_| bench.ask(5));
    bench.run(900);
    assert_eq!((bench.held.len(), bench.all("rq_fetched_ahead")), (8, 0));
    while !bench.held.is_empty() {
        bench.use_one();
    }
}
