//! The receive-queue unit in its world: the host's rings and memory, the DMA reader, the responder.

use super::super::model::RingModel;
use super::super::{RecvQueue, FETCHES, FETCH_ERRORS, STATS};
use super::{LQ, QUEUES};
use crate::host::testing::{memory, Control, SmallReads};
use crate::msg::{DoorbellMsg, EqeReq, RqAlloc, RqFlush, RqGrant, WqeData, WqeFree, WqeRead};
use crate::tb::{Counted, Fields, Sink, Source, Tb};
use ferric_abi::context::RingCtx;
use std::collections::{BTreeMap, HashMap, VecDeque};

pub(super) struct Bench {
    pub(super) tb: Tb,
    pub(super) db: Source,
    pub(super) alloc: Source,
    pub(super) grant: Sink,
    pub(super) cmd: Source,
    pub(super) flush: Option<Sink>,
    pub(super) event: Sink,
    pub(super) reads: SmallReads,
    pub(super) read: Source,
    pub(super) data: Sink,
    pub(super) free: Source,
    pub(super) ctl: Control,
    pub(super) stats: [Counted; 3],
    pub(super) rings: HashMap<u32, RingModel>,
    /// Allocations asked for: ring, the slot the model hands out, whether the ring is in error, and whether it is a slot's second time.
    pub(super) asked: VecDeque<(u32, Option<u16>, bool, bool)>,
    /// Events due: kind, shared receive queue.
    pub(super) events: VecDeque<(u8, u32)>,
    /// Buffers in the responder's hands.
    pub(super) held: Vec<Held>,
    /// Per queue pair the ring and the slot of a request whose buffer was taken away, and the copy that it named.
    pub(super) losers: BTreeMap<u32, (u32, u16, u32)>,
    /// The copies that requests under way for the second time are to be read from.
    pub(super) copies: VecDeque<u32>,
    /// Per ring: how often it has been made, and bytes by which its base is not that of its region.
    pub(super) lives: HashMap<u32, (u64, u64)>,
    /// Slots, by ring and offset, that may be read: how often they have been posted and not been used.
    pub(super) posted: HashMap<(u32, u64), u32>,
}

/// A buffer, the contents it should have, whether the fetch failed, and what it was fetched for.
pub(super) struct Held {
    pub(super) handle: u128,
    pub(super) contents: Vec<u32>,
    pub(super) failed: bool,
    pub(super) ring: u32,
    pub(super) slot: u16,
    pub(super) life: u64,
}

impl Bench {
    /// 14 blocks: few, so that rings lose theirs.
    pub(super) fn new(stall: u32) -> Bench {
        Self::of_card(Tb::new("rq", RecvQueue::<LQ, 4, 7>::default()), stall)
    }

    /// 112 blocks.
    pub(super) fn large(stall: u32) -> Bench {
        Self::of_card(Tb::new("rq_large", RecvQueue::<LQ, 7, 10>::default()), stall)
    }

    pub(super) fn of_card(tb: Tb, stall: u32) -> Bench {
        Self::with_flushes(tb, stall, true)
    }

    /// `flushes`: they are taken.
    pub(super) fn with_flushes(mut tb: Tb, stall: u32, flushes: bool) -> Bench {
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

    pub(super) fn life(&self, ring: u32) -> u64 {
        self.lives.get(&ring).map_or(0, |(life, _)| *life)
    }

    pub(super) fn base(&self, ring: u32) -> u64 {
        let (life, shift) = self.lives.get(&ring).copied().unwrap_or_default();
        region(ring, life) + shift
    }

    /// What is read has been posted and not been used, or is a copy.
    pub(super) fn see_reads(&mut self) {
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

    pub(super) fn used(&mut self, ring: u32, slot: u16) {
        let offset = self.rings[&ring].offset(slot);
        *self.posted.get_mut(&(ring, offset)).expect("posted") -= 1;
    }

    /// Until every read that has been decided on is on its way.
    pub(super) fn fence(&mut self) {
        self.tb.set("fence", 1);
        self.cycle();
        self.tb.set("fence", 0);
        while self.tb.get("passed") == 0 {
            self.cycle();
        }
        self.cycle();
    }

    /// The ring ends, and another one gets its number.
    pub(super) fn remake(&mut self, qpn: u32, ring: RingModel, shift: u64) {
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

    pub(super) fn random_ring(&mut self, qpn: u32) -> (RingModel, u64) {
        let rng = self.tb.rng();
        let start = if rng.percent(50) { 0 } else { 0xfff0 + rng.below(16) as u16 };
        let (function, log_size, stride) = (rng.below(4) as u16, rng.range(0, 5) as u8, rng.below(4) as u8);
        let shift = if rng.percent(20) { 64 << stride } else { 0 };
        (RingModel { function, log_size, stride, producer: start, next: start, shared: qpn >= QUEUES / 2, ..Default::default() }, shift)
    }

    pub(super) fn cycle(&mut self) {
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

    pub(super) fn all(&self, name: &str) -> u64 {
        self.stats.iter().map(|stats| stats.all(name)).sum()
    }

    /// Of function `function`.
    pub(super) fn of(&self, function: u64, name: &'static str) -> u64 {
        self.stats.iter().filter_map(|stats| stats.events.get(&(function, name))).sum()
    }

    pub(super) fn run(&mut self, cycles: u32) {
        (0..cycles).for_each(|_| self.cycle());
    }

    /// Until what was pushed is in the tables.
    pub(super) fn settle(&mut self) {
        while self.db.pending() + self.alloc.pending() + self.cmd.pending() > 0 {
            self.cycle();
        }
        self.run(12);
    }

    pub(super) fn grants(&mut self) {
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

    pub(super) fn access(&mut self, line: u32, word: u32, write: Option<u32>) -> u32 {
        self.ctl.ask(line, word, write);
        for _ in 0..4000 {
            self.cycle();
            if let Some(answer) = self.ctl.answer() {
                return answer.expect("the line exists");
            }
        }
        panic!("no answer on the control bus");
    }

    pub(super) fn create(&mut self, qpn: u32, ring: RingModel) {
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
    pub(super) fn post(&mut self, qpn: u32, index: u16) {
        let ring = self.rings.get_mut(&qpn).expect("it exists");
        let (function, first) = (ring.function, ring.producer);
        assert!(ring.doorbell(function, index));
        for slot in (0..index.wrapping_sub(first)).map(|n| first.wrapping_add(n)) {
            *self.posted.entry((qpn, ring.offset(slot))).or_default() += 1;
        }
        self.doorbell(qpn, index, function);
    }

    pub(super) fn doorbell(&mut self, qpn: u32, index: u16, function: u16) {
        self.db.push(Fields::of::<DoorbellMsg>().pack(&[("kind", 1), ("id", qpn.into()), ("index", index.into()), ("function", function.into())]));
    }

    pub(super) fn ask(&mut self, qpn: u32) {
        let ring = self.rings.get_mut(&qpn).expect("it exists");
        self.asked.push_back((qpn, ring.alloc(), ring.error, false));
        self.limit_event(qpn);
        self.alloc.push(Fields::of::<RqAlloc>().pack(&[("ring", qpn.into())]));
    }

    /// A buffer is taken away from its request, with an allocation that says so; and one that was is wanted again.
    pub(super) fn once_more(&mut self) {
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

    pub(super) fn limit_event(&mut self, ring: u32) {
        if self.rings.get_mut(&ring).expect("it exists").reached() {
            self.events.push_back((5, ring - QUEUES / 2));
        }
    }

    /// Arms the limit of a shared receive queue.
    pub(super) fn arm(&mut self, ring: u32, limit: u16) {
        self.rings.get_mut(&ring).expect("it exists").limit = limit;
        self.limit_event(ring);
        self.access(ring, 5, Some(limit.into()));
        self.run(20);
    }

    /// Reads some granules of a held buffer and gives it back.
    pub(super) fn use_one(&mut self) {
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
    pub(super) fn flushed(&mut self) {
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

pub(super) fn region(qpn: u32, life: u64) -> u64 {
    0x20_0000_0000 + (u64::from(qpn) << 24) + (life << 16)
}
