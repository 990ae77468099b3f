//! Used descriptors of packed rings: what drivers may see of frames in several chains, and when they are interrupted.
use super::Used;
use crate::host::testing::Control;
use crate::msg::{VqPut, VqUse, WrDone};
use crate::tb::{Fields, Sink, Source, Tb};
use crate::virtio::testing::{Guest, Rows};
use ferric_abi::context::VqUsed;
use ferric_abi::virtio::{event, PackedDesc, PackedEvent};
use std::collections::VecDeque;

const FUNCTION: u64 = 5;
const QUEUES: u64 = 3;
/// No power of two.
const SIZE: u64 = 300;
/// Where the rings lie: the pages of a queue.
const DESCS: u64 = 0x7_0000_0000;
const DRIVERS: u64 = 0x8_0000_0000;
const APART: u64 = 0x2000;
/// Frames of a queue.
const FRAMES: usize = 60;

/// A chain that is given back.
#[derive(Clone, Copy, Debug)]
struct Use {
    id: u64,
    len: u64,
    slots: u64,
    follows: bool,
    none: bool,
}

/// What a queue gives back, and what its driver has seen.
#[derive(Default)]
struct Queue {
    uses: VecDeque<Use>,
    /// Chains in order with their places, and how many there are behind whole frames.
    chains: Vec<(u64, Use)>,
    ends: Vec<usize>,
    back: u16,
    seen: usize,
    pushed: usize,
}

impl Queue {
    /// There is room in the ring for the whole frame of the next chain: the driver has had all before it back.
    fn fits(&self) -> bool {
        let Some(end) = self.ends.iter().find(|end| **end > self.pushed) else { return true };
        let (place, chain) = self.chains[end - 1];
        place + chain.slots - self.chains[self.seen].0 <= SIZE
    }

    fn frame(&mut self, tb: &mut Tb, chains: u64) {
        for n in 1..=chains {
            let place = self.chains.last().map_or(0, |(place, chain)| place + chain.slots);
            let len = if tb.rng().percent(20) { 0 } else { tb.rng().below(1 << 14) };
            let chain = Use { id: tb.rng().below(1 << 16), len, slots: tb.rng().range(1, 3), follows: n < chains, none: false };
            self.uses.push_back(chain);
            self.chains.push((place, chain));
        }
        self.ends.push(self.chains.len());
    }
}

struct Bench {
    tb: Tb,
    control: Control,
    rows: Rows,
    uses: Source,
    puts: Sink,
    dones: Source,
    interrupts: Sink,
    guest: Guest,
    due: VecDeque<u64>,
    queues: Vec<Queue>,
}

impl Bench {
    fn new(stall: u32, seed: u64, events: bool) -> Self {
        let mut tb = Tb::with_seed("virtio_used_w64", Used::<3>::default(), seed);
        let control = Control::new(&mut tb, stall);
        let rows = Rows::new(&mut tb, stall, FUNCTION);
        let (uses, puts, dones, interrupts) = (tb.source("s_use", stall), tb.sink("m_put", stall), tb.source("s_done", stall), tb.sink("m_msix", stall));
        let mut b = Self { tb, control, rows, uses, puts, dones, interrupts, guest: Guest::default(), due: VecDeque::new(), queues: Vec::new() };
        for n in 0..QUEUES {
            let line = VqUsed::default().with_driver(DRIVERS + APART * n).with_device(DESCS + APART * n).with_size(SIZE as u16).with_function(FUNCTION as u16);
            let line = line.with_events(events).with_packed(true).with_wrap(true).with_enabled(true);
            for (word, bytes) in line.0.chunks_exact(4).enumerate() {
                b.access(n, word, Some(u32::from_le_bytes(bytes.try_into().expect("four"))));
            }
            // All is available in the first round.
            (0..SIZE).for_each(|slot| b.guest.put(DESCS + APART * n + 16 * slot, &PackedDesc::default().with_avail(true).0));
            b.queues.push(Queue::default());
        }
        b
    }

    fn access(&mut self, line: u64, word: usize, write: Option<u32>) -> u32 {
        self.control.ask(line as u32, word as u32, write);
        let mut answer = None;
        self.tb.run_until(5000, |_| {
            answer = self.control.answer();
            answer.is_some()
        });
        answer.flatten().expect("there is such a line")
    }

    fn push(&mut self, n: usize, chain: Use) {
        self.queues[n].back = self.queues[n].back.wrapping_add(1);
        self.queues[n].pushed += usize::from(!chain.none && chain.slots > 0);
        let fields = [("queue", n as u64), ("id", chain.id), ("slots", chain.slots), ("len", chain.len), ("follows", chain.follows.into()), ("none", chain.none.into())];
        self.uses.push(Fields::of::<VqUse>().pack(&fields.map(|(name, value)| (name, value.into()))));
    }

    /// One cycle: what is written goes to memory at once; the drivers look, and make what they have got available again.
    fn cycle(&mut self) {
        let put = Fields::of::<VqPut>();
        self.rows.step(&mut self.tb, &mut self.guest);
        while let Some(words) = self.puts.pop() {
            let get = |name| put.get(&words, name) as u64;
            assert_eq!((get("function"), get("wide")), (FUNCTION, 1));
            let at = get("iova");
            assert!([8, 12].contains(&(at % 16)), "a write at byte {} of a descriptor", at % 16);
            self.guest.put(at, &(get("data") as u32).to_le_bytes());
            self.look(((at - DESCS) / APART) as usize);
            let when = self.tb.cycles() + self.tb.rng().range(1, 40);
            self.due.push_back(when);
        }
        while self.due.front().is_some_and(|at| *at <= self.tb.cycles()) {
            self.due.pop_front();
            self.dones.push(Fields::of::<WrDone>().pack(&[]));
        }
        self.tb.cycle();
    }

    /// The driver of a queue sees whole frames.
    fn look(&mut self, n: usize) {
        let (queue, guest) = (&mut self.queues[n], &mut self.guest);
        let before = queue.seen;
        while let Some((place, chain)) = queue.chains.get(queue.seen) {
            let (slot, wrap) = (place % SIZE, (place / SIZE) % 2 == 0);
            let at = |slot: u64| DESCS + APART * n as u64 + 16 * slot;
            let found = PackedDesc(guest.get(at(slot), 16).try_into().expect("as long"));
            if found.avail() != wrap || found.used() != wrap {
                break;
            }
            let what = (u64::from(found.id()), u64::from(found.length()), found.write());
            assert_eq!(what, (chain.id, chain.len, chain.len > 0), "queue {n}: chain {}", queue.seen);
            for place in *place..place + chain.slots {
                let wrap = (place / SIZE) % 2 == 1;
                guest.put(at(place % SIZE), &PackedDesc::default().with_avail(wrap).with_used(!wrap).0);
            }
            queue.seen += 1;
        }
        assert!(before == queue.seen || queue.ends.contains(&queue.seen), "queue {n}: the driver sees {} chains, a part of a frame", queue.seen);
    }
}

fn whole_frames(stall: u32) {
    let mut b = Bench::new(stall, 31 + u64::from(stall), false);
    for n in 0..QUEUES as usize {
        for _ in 0..FRAMES {
            let chains = if b.tb.rng().percent(50) { 1 } else { b.tb.rng().range(2, 70) };
            b.queues[n].frame(&mut b.tb, chains);
            if b.tb.rng().percent(10) {
                // What is no chain, and one whose end nobody knows: they are counted.
                let none = b.tb.rng().percent(50);
                let slots = if none { b.tb.rng().below(3) } else { 0 };
                b.queues[n].uses.push_back(Use { id: 1, len: 0, slots, follows: false, none });
            }
        }
    }
    let (mut now, mut between) = (0, 0);
    let limit = b.tb.cycles() + 4_000_000;
    // Behind the last one all answers come, and interrupts.
    let mut rest = 500;
    while rest > 0 {
        assert!(b.tb.cycles() < limit, "a frame stays unseen");
        rest -= u32::from(b.uses.pending() == 0 && b.queues.iter().all(|queue| queue.uses.is_empty() && queue.seen == queue.chains.len()));
        if b.uses.pending() < 3 && b.tb.rng().percent(80) {
            // Another queue's turn, in the midst of a frame too.
            if b.tb.rng().percent(20) {
                now = b.tb.rng().below(QUEUES) as usize;
            }
            if !b.queues[now].fits() {
                now = b.tb.rng().below(QUEUES) as usize;
            } else if let Some(chain) = b.queues[now].uses.pop_front() {
                b.push(now, chain);
                between += usize::from(chain.follows);
            } else {
                now = b.tb.rng().below(QUEUES) as usize;
            }
        }
        b.cycle();
    }
    assert!(between > 1000, "{between} chains with another one behind them");
    for n in 0..QUEUES {
        let line: Vec<u8> = (0..VqUsed::BYTES / 4).flat_map(|word| b.access(n, word, None).to_le_bytes()).collect();
        let (line, queue) = (VqUsed(line.try_into().expect("as long")), &b.queues[n as usize]);
        let place = queue.chains.last().map_or(0, |(place, chain)| place + chain.slots);
        assert_eq!((line.back(), u64::from(line.used()), line.wrap()), (queue.back, place % SIZE, (place / SIZE) % 2 == 0));
    }
}

#[test]
fn a_driver_of_a_packed_ring_sees_whole_frames() {
    whole_frames(0);
    whole_frames(50);
}

/// An interrupt for each frame whose used descriptors the driver's event names, and for no other one.
fn interrupts(events: bool) {
    let mut b = Bench::new(10, 41, events);
    let (mut wanted, mut unwanted) = (0, 0);
    let mut place = 0;
    for n in 0..600 {
        let chains = b.tb.rng().range(1, [1, 3, 12][n % 3]);
        let old = place;
        b.queues[0].frame(&mut b.tb, chains);
        let new = b.queues[0].chains.last().map_or(0, |(place, chain)| place + chain.slots);
        place = new;
        // Any place near the frame, rarely one that the ring does not have; any flags.
        let named = (old + 2 * SIZE + b.tb.rng().below(new - old + 8) - 4) % (2 * SIZE);
        let (mut offset, mut wrap) = (named % SIZE, named < SIZE);
        let nowhere = b.tb.rng().percent(20);
        if nowhere {
            offset += SIZE;
            wrap ^= b.tb.rng().percent(50);
        }
        let flags = [event::ENABLE, event::DISABLE, event::DESC, event::DESC, event::DESC, event::DESC][b.tb.rng().below(6) as usize];
        b.guest.put(DRIVERS, &PackedEvent::default().with_offset(offset as u16).with_wrap(wrap).with_flags(flags).0);
        let want = match flags {
            event::DISABLE => false,
            event::DESC if events => !nowhere && (named + 2 * SIZE - old % (2 * SIZE)) % (2 * SIZE) < new - old,
            _ => true,
        };
        while let Some(chain) = b.queues[0].uses.pop_front() {
            b.push(0, chain);
        }
        let limit = b.tb.cycles() + 20_000;
        while b.queues[0].seen < b.queues[0].chains.len() {
            assert!(b.tb.cycles() < limit, "frame {n} stays unseen");
            b.cycle();
        }
        (0..400).for_each(|_| b.cycle());
        let mut came = 0;
        while b.interrupts.pop().is_some() {
            came += 1;
        }
        assert_eq!(came, u64::from(want), "frame {n} from {old} to {new}: {flags} {offset} {wrap}");
        wanted += u64::from(want);
        unwanted += u64::from(!want);
    }
    assert!(wanted > 100 && unwanted > 50, "{wanted} interrupts, {unwanted} frames without one");
}

#[test]
fn a_driver_of_a_packed_ring_is_interrupted_where_it_wants() {
    interrupts(true);
    interrupts(false);
}
