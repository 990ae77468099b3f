//! The send-queue unit between a random host, a random DMA reader and a requester that rewinds, parks and flushes.

mod carried;

use super::model::RingModel;
use super::{SendQueue, FETCHED, FETCH_ERRORS, STATS};
use crate::host::testing::{memory, Control, SmallReads};
use crate::msg::{DoorbellMsg, SqCmd, SqWqe, WqeData, WqeDoorbell, WqeFree, WqeRead};
use crate::tb::{Counted, Fields, Sink, Source, Tb};
use ferric_abi::context::RingCtx;
use ferric_abi::host::WqeHead;
use std::collections::HashMap;

const LQ: usize = 4;
const QUEUES: usize = 1 << LQ;

struct Bench {
    tb: Tb,
    db: Source,
    wqe: Source,
    cmds: [Source; 2],
    offers: Sink,
    read: Source,
    data: Sink,
    frees: [Source; 2],
    ctl: Control,
    reads: SmallReads,
    directs: u64,
    stats: [Counted; 3],
    /// The host answers reads.
    answers: bool,
    /// Pulses of `work`.
    works: [u64; 2],
    direct: HashMap<(u32, u16), Vec<u32>>,
}

impl Bench {
    fn new(name: &str, stall: u32) -> Bench {
        Bench::of(Tb::new(name, SendQueue::<LQ, 256, 8, 11>::default()), stall)
    }

    fn of(mut tb: Tb, stall: u32) -> Bench {
        let (db, wqe) = (tb.source("s_db", stall), tb.source("s_wqe", stall));
        let cmds = [tb.source("s_cmd$0", stall), tb.source("s_cmd$1", stall)];
        let offers = tb.sink("m_wqe", stall);
        let reads = SmallReads::new(tb.sink("m_rd", stall), tb.source("s_rd", stall / 2));
        let (read, data) = (tb.source("s_read", stall), tb.sink("m_read", stall));
        let frees = [tb.source("s_free$0", stall), tb.source("s_free$1", stall)];
        let ctl = Control::new(&mut tb, stall);
        let stats = [Counted::new("stat", "stat_function", STATS), Counted::new("fetched", "fetched_function", FETCHED), Counted::new("fetch_errors", "fetch_errors_function", FETCH_ERRORS)];
        Bench { tb, db, wqe, cmds, offers, read, data, frees, ctl, reads, directs: 0, stats, answers: true, works: [0; 2], direct: HashMap::new() }
    }

    fn cycle(&mut self) {
        self.tb.cycle();
        self.stats.iter_mut().for_each(|stats| stats.see(&self.tb));
        let work = self.tb.get("work");
        (0..2).for_each(|i| self.works[i] += work >> i & 1);
        if self.answers {
            self.reads.step(&mut self.tb);
        }
    }

    fn all(&self, name: &str) -> u64 {
        self.stats.iter().map(|stats| stats.all(name)).sum()
    }

    /// Of function `function`.
    fn by(&self, function: u64, name: &'static str) -> u64 {
        self.stats.iter().filter_map(|stats| stats.events.get(&(function, name))).sum()
    }

    fn run(&mut self, cycles: u64) {
        (0..cycles).for_each(|_| self.cycle());
    }

    fn ctl(&mut self, line: u32, word: u32, write: Option<u32>) -> u32 {
        self.ctl.ask(line, word, write);
        for _ in 0..4000 {
            self.cycle();
            if let Some(answer) = self.ctl.answer() {
                return answer.expect("the line exists");
            }
        }
        panic!("no answer on the control bus");
    }

    fn create(&mut self, qpn: u32, ring: &RingModel, valid: bool) {
        let row = RingCtx::default()
            .with_base(base(qpn))
            .with_function(ring.function)
            .with_log_size(ring.log_size)
            .with_stride(ring.stride)
            .with_valid(valid)
            .with_epoch(ring.epoch)
            .with_producer(ring.producer)
            .with_fetch(ring.next);
        for word in [0, 1, 3, 4, 2] {
            let bytes: [u8; 4] = row.0[4 * word..4 * word + 4].try_into().expect("four bytes");
            self.ctl(qpn, word as u32, Some(u32::from_le_bytes(bytes)));
        }
    }

    fn doorbell(&mut self, qpn: u32, index: u16, function: u16) {
        let layout = Fields::of::<DoorbellMsg>();
        self.db.push(layout.pack(&[("id", qpn.into()), ("index", index.into()), ("function", function.into())]));
    }

    fn wqe_doorbell(&mut self, qpn: u32, index: u16, function: u16) {
        let layout = Fields::of::<WqeDoorbell>();
        let mut data = self.tb.rng().words(512);
        let mut head: [u8; 32] = std::array::from_fn(|i| (data[i / 4] >> (8 * (i % 4))) as u8);
        let mut wqe = WqeHead(head);
        wqe.set_index(index).set_qpn(qpn);
        head = wqe.0;
        for (i, word) in data.iter_mut().take(8).enumerate() {
            *word = u32::from_le_bytes(head[4 * i..4 * i + 4].try_into().expect("four bytes"));
        }
        let mut words = layout.pack(&[("function", function.into())]);
        layout.set_words(&mut words, "data", &data);
        self.direct.insert((qpn, index), data);
        self.wqe.push(words);
        self.directs += 1;
    }

    fn command(&mut self, qpn: u32, op: u8, index: u16, epoch: u8) {
        let layout = Fields::of::<SqCmd>();
        let port = self.tb.rng().below(2) as usize;
        self.cmds[port].push(layout.pack(&[("qpn", qpn.into()), ("op", op.into()), ("index", index.into()), ("epoch", epoch.into())]));
        // Commands of one queue keep their order only within a port.
        for _ in 0..4000 {
            if self.cmds[port].pending() == 0 {
                break;
            }
            self.cycle();
        }
    }

    fn free(&mut self, handle: u128) {
        let port = self.tb.rng().below(2) as usize;
        self.frees[port].push(Fields::of::<WqeFree>().pack(&[("handle", handle)]));
    }

    /// Reads granules of a buffer and compares them with what the slot holds.
    fn check_contents(&mut self, handle: u128, expected: &[u32], failed: bool) {
        let (read, data) = (Fields::of::<WqeRead>(), Fields::of::<WqeData>());
        let granules: Vec<u64> = (0..3).map(|_| self.tb.rng().below(expected.len() as u64 / 4)).collect();
        for granule in &granules {
            self.read.push(read.pack(&[("handle", handle), ("granule", (*granule).into())]));
        }
        for granule in granules {
            let mut answer = None;
            for _ in 0..4000 {
                answer = self.data.pop();
                if answer.is_some() {
                    break;
                }
                self.cycle();
            }
            let answer = answer.expect("an answer to WqeRead");
            assert_eq!(data.get(&answer, "err") == 1, failed);
            if !failed {
                let at = 4 * granule as usize;
                assert_eq!(data.get_words(&answer, "data"), &expected[at..at + 4], "granule {granule}");
            }
        }
    }

    fn slot(&self, qpn: u32, ring: &RingModel, index: u16) -> (Vec<u32>, bool) {
        let iova = base(qpn) + ring.offset(index);
        let rows = 1u64 << ring.stride;
        let bad = self.reads.fails(iova, rows);
        ((0..rows).flat_map(|r| memory(iova + 64 * r)).collect(), bad)
    }

    /// Takes one offer if there is one: stale ones are freed, others must be the ring's next.
    fn requester(&mut self, rings: &mut HashMap<u32, RingModel>) -> bool {
        let layout = Fields::of::<SqWqe>();
        let Some(offer) = self.offers.pop() else { return false };
        let get = |name| layout.get(&offer, name);
        let (qpn, handle) = (get("qpn") as u32, get("handle"));
        let ring = rings.get_mut(&qpn).expect("a queue that exists");
        if get("epoch") as u8 == ring.epoch {
            assert!(!ring.parked, "queue {qpn} is parked");
            assert_eq!(get("index") as u16, ring.next, "queue {qpn} {ring:?}");
            assert!(ring.pending() > 0, "queue {qpn}: offer beyond the producer");
            assert_eq!(get("flush") == 1, ring.flush, "queue {qpn}");
            assert_eq!(get("function") as u16, ring.function);
            ring.next = ring.next.wrapping_add(1);
            if !ring.flush {
                let ring = ring.clone();
                let index = ring.next.wrapping_sub(1);
                let (mut expected, mut bad) = self.slot(qpn, &ring, index);
                let head = layout.get_words(&offer, "head");
                // A WQE doorbell may or may not have been used; both carry what the host wrote.
                if let Some(data) = self.direct.get(&(qpn, index)).filter(|data| data[..8] == head[..]) {
                    (expected, bad) = (data.clone(), false);
                }
                assert_eq!(get("err") == 1, bad, "queue {qpn} index {index}");
                if !bad {
                    assert_eq!(head, expected[..8], "queue {qpn} index {index}");
                    assert_eq!(layout.get_words(&offer, "sge"), expected[8..12], "queue {qpn} index {index}");
                    assert_eq!(layout.get_words(&offer, "more"), expected[12..16], "queue {qpn} index {index}");
                }
                self.check_contents(handle, &expected, bad);
            } else {
                assert_eq!(get("err"), 0, "queue {qpn}: nothing was fetched");
            }
        }
        self.free(handle);
        true
    }

    /// Until nothing is left on the way and every running queue is empty.
    fn drain(&mut self, rings: &mut HashMap<u32, RingModel>) {
        let mut quiet = 0;
        for _ in 0..200_000 {
            self.cycle();
            let took = self.requester(rings);
            let left = rings.values().any(|ring| !ring.parked && ring.pending() > 0);
            let busy = took || left || !self.reads.idle() || self.db.pending() + self.wqe.pending() > 0;
            quiet = if busy { 0 } else { quiet + 1 };
            if quiet > 300 {
                return;
            }
        }
        panic!("work is left: {rings:?}");
    }
}

fn base(qpn: u32) -> u64 {
    0x10_0000_0000 + (u64::from(qpn) << 24)
}

fn rings(bench: &mut Bench) -> HashMap<u32, RingModel> {
    let mut rings = HashMap::new();
    for qpn in 0..QUEUES as u32 {
        let rng = bench.tb.rng();
        let start = if rng.percent(50) { 0 } else { 0xfff0 + rng.below(16) as u16 };
        let ring =
            RingModel { function: rng.below(4) as u16, log_size: rng.range(0, 6) as u8, stride: rng.below(4) as u8, epoch: rng.below(256) as u8, producer: start, next: start, ..Default::default() };
        bench.create(qpn, &ring, true);
        rings.insert(qpn, ring);
    }
    rings
}

/// Doorbells of all kinds while the requester takes; the model sees only states where the unit's fetch index is certain.
fn scenario(stall: u32, rounds: u32) {
    let mut bench = Bench::new("sq", stall);
    bench.run(40);
    let mut rings = rings(&mut bench);
    for _ in 0..rounds {
        for _ in 0..bench.tb.rng().range(1, 12) {
            let qpn = bench.tb.rng().below(QUEUES as u64) as u32;
            let ring = rings.get_mut(&qpn).expect("all exist");
            let room = (1u32 << ring.log_size) - u32::from(ring.pending());
            if room == 0 {
                continue;
            }
            let rng = bench.tb.rng();
            let (count, function) = (rng.range(1, room.into()) as u16, ring.function);
            if rng.percent(30) {
                let index = ring.producer;
                assert!(ring.doorbell(function, index.wrapping_add(1)));
                bench.wqe_doorbell(qpn, index, function);
                // Two kinds of doorbells keep their order only if the first is taken before the second goes.
                while bench.wqe.pending() > 0 {
                    bench.cycle();
                }
                bench.run(8);
            } else {
                let index = ring.producer.wrapping_add(count);
                assert!(ring.doorbell(function, index));
                bench.doorbell(qpn, index, function);
                while bench.db.pending() > 0 {
                    bench.cycle();
                }
                bench.run(8);
            }
            if bench.tb.rng().percent(40) {
                bench.requester(&mut rings);
            }
        }
        let qpn = bench.tb.rng().below(QUEUES as u64) as u32;
        let ring = rings.get_mut(&qpn).expect("all exist");
        let (choice, epoch) = (bench.tb.rng().below(10), ring.epoch.wrapping_add(1));
        match choice {
            // Rewind over up to what was offered and is still in the ring.
            0..=3 if !ring.flush => {
                let room = (1u16 << ring.log_size) - ring.pending();
                let index = ring.next.wrapping_sub(bench.tb.rng().below(u64::from(room) + 1) as u16);
                let op = u8::from(choice > 1);
                ring.command(op, index, epoch);
                bench.command(qpn, op, index, epoch);
            }
            4..=6 if ring.parked => {
                ring.command(2, 0, 0);
                bench.command(qpn, 2, 0, 0);
            }
            7 => {
                let index = ring.next;
                ring.command(3, index, epoch);
                bench.command(qpn, 3, index, epoch);
            }
            _ => {}
        }
        for _ in 0..bench.tb.rng().below(60) {
            bench.cycle();
            bench.requester(&mut rings);
        }
    }
    bench.drain(&mut rings);
    assert_eq!(bench.all("sq_db_bad"), 0, "all doorbells were good");
    assert!(bench.all("sq_db_overrun") <= bench.directs, "only a WQE doorbell overtaken by a plain one may be late");
    assert!(bench.all("sq_fetches") > 0 && bench.all("sq_flushed") > 0 && bench.works.iter().all(|n| *n > 0), "{:?}", bench.works);
    no_buffer_was_lost(&mut bench, &mut rings);
}

/// All 256 buffers can be out at once.
fn no_buffer_was_lost(bench: &mut Bench, rings: &mut HashMap<u32, RingModel>) {
    let ring = RingModel { log_size: 8, ..Default::default() };
    bench.ctl(0, 2, Some(0));
    rings.insert(0, ring.clone());
    bench.create(0, &ring, true);
    bench.doorbell(0, 256, 0);
    bench.run(4000);
    assert_eq!(bench.offers.len(), 256, "offers until the buffers are used up");
    rings.get_mut(&0).expect("it exists").producer = 256;
    bench.drain(rings);
}

#[test]
fn requests_reach_the_requester_in_ring_order() {
    scenario(0, 60);
    scenario(40, 60);
}

#[test]
fn bad_doorbells_are_counted_and_failed_fetches_marked() {
    let mut bench = Bench::new("sq", 20);
    bench.run(40);
    let mut rings = HashMap::new();
    let ring = RingModel { function: 3, log_size: 3, stride: 1, ..Default::default() };
    bench.create(5, &ring, true);
    bench.create(6, &ring, false);
    rings.insert(5, ring);
    // Wrong function, no such queue, beyond the table, beyond the ring, behind the producer.
    bench.doorbell(5, 1, 2);
    bench.doorbell(6, 1, 3);
    bench.doorbell(5 + QUEUES as u32, 1, 3);
    bench.doorbell(5, 9, 3);
    bench.doorbell(5, 0, 3);
    bench.doorbell(5, 0xffff, 3);
    bench.wqe_doorbell(5, 20, 3);
    bench.drain(&mut rings);
    assert_eq!((bench.by(2, "sq_db_bad"), bench.by(3, "sq_db_bad"), bench.by(3, "sq_db_overrun")), (1, 2, 4), "of whoever rang");
    assert_eq!((bench.all("sq_db_bad"), bench.all("sq_db_overrun")), (3, 4));
    assert_eq!(bench.ctl(5, 4, None), 0, "nothing moved");
    bench.reads.bad_pages.insert(base(5) >> 12);
    rings.get_mut(&5).expect("it exists").producer = 8;
    bench.doorbell(5, 8, 3);
    bench.drain(&mut rings);
    assert_eq!((bench.all("sq_fetches"), bench.all("sq_fetch_errors")), (2, 2), "two bursts of 512 bytes, both failed");
    assert_eq!((bench.by(3, "sq_fetches"), bench.by(3, "sq_fetch_errors")), (2, 2), "of the ring's function");
    // Destroyed with a fetch in flight: all buffers come back with the old epoch.
    bench.doorbell(5, 16, 3);
    rings.get_mut(&5).expect("it exists").producer = 16;
    bench.ctl(5, 2, Some(0));
    rings.get_mut(&5).expect("it exists").epoch = 1;
    bench.run(500);
    while bench.requester(&mut rings) {
        bench.cycle();
    }
    rings.remove(&5);
    no_buffer_was_lost(&mut bench, &mut rings);
}

#[test]
fn throughput_of_many_queues() {
    let mut bench = Bench::new("sq", 0);
    bench.run(40);
    for qpn in 0..QUEUES as u32 {
        bench.create(qpn, &RingModel { log_size: 5, ..Default::default() }, true);
    }
    let start = bench.tb.cycles();
    for index in 1..=2 {
        (0..QUEUES as u32).for_each(|qpn| bench.doorbell(qpn, index, 0));
    }
    let offers = bench.offers.clone();
    while offers.len() < 2 * QUEUES {
        bench.cycle();
        assert!(bench.tb.cycles() - start < 400, "{} offers in 400 cycles", offers.len());
    }
    println!("{} doorbells to offers in {} cycles, reads take 5..80", 2 * QUEUES, bench.tb.cycles() - start);
}

/// A doorbell per request: those of one queue go together while they wait, those of two queues never do.
#[test]
fn doorbells_of_one_queue_do_not_wait_for_each_other() {
    for queues in [1, 2] {
        let mut bench = Bench::new("sq", 0);
        bench.run(40);
        let mut rings: HashMap<u32, RingModel> = (0..queues).map(|qpn| (qpn, RingModel { log_size: 6, ..Default::default() })).collect();
        for (qpn, ring) in &rings {
            bench.create(*qpn, ring, true);
        }
        bench.run(100);
        let start = bench.tb.cycles();
        for index in 1..=60 {
            let qpn = u32::from(index) % queues;
            assert!(rings.get_mut(&qpn).expect("just made").doorbell(0, index));
            bench.doorbell(qpn, index, 0);
        }
        while bench.db.pending() > 0 {
            bench.cycle();
        }
        let each = (bench.tb.cycles() - start) as f64 / 60.0;
        println!("{queues} queues: {each:.2} cycles per doorbell");
        assert!(queues > 1 || each <= 2.2, "{each:.2} cycles per doorbell");
        bench.drain(&mut rings);
        assert_eq!((bench.all("sq_db_bad"), bench.all("sq_db_overrun")), (0, 0));
        no_buffer_was_lost(&mut bench, &mut rings);
    }
}

/// Exact cycles of an idle unit: doorbell to read command, row to offer.
#[test]
fn an_idle_unit_loses_no_time() {
    let mut bench = Bench::new("sq", 0);
    bench.run(40);
    bench.create(3, &RingModel { log_size: 4, ..Default::default() }, true);
    bench.run(20);
    let (commands, rows) = bench.reads.ports();
    for index in 1..=3 {
        bench.doorbell(3, index, 0);
        assert_eq!(bench.tb.latency(&commands, 40), 7, "doorbell to read command");
        let command = commands.pop().expect("taken");
        let (cmd, row) = (Fields::of::<crate::msg::RdCmd>(), Fields::of::<crate::msg::RdRow>());
        rows.push(row.pack(&[("tag", cmd.get(&command, "tag")), ("last", 1)]));
        assert_eq!(bench.tb.latency(&bench.offers, 40), 2, "row to offer");
        bench.tb.run(20);
    }
}

/// Without buffers a fetch waits for as many as it may take.
#[test]
fn a_fetch_waits_for_a_burst_of_buffers() {
    let mut bench = Bench::new("sq", 0);
    bench.run(40);
    (0..2).for_each(|qpn| bench.create(qpn, &RingModel { log_size: 8, ..Default::default() }, true));
    bench.doorbell(0, 256, 0);
    bench.run(4000);
    bench.doorbell(1, 64, 0);
    bench.run(200);
    let (fetches, layout) = (bench.all("sq_fetches"), Fields::of::<SqWqe>());
    for n in 1..=24 {
        let offer = bench.offers.pop().expect("all buffers are out");
        bench.free(layout.get(&offer, "handle"));
        bench.run(100);
        assert_eq!(bench.all("sq_fetches") - fetches, n / 8, "{n} buffers came back");
    }
}

#[test]
fn commands_are_accepted_while_offers_are_stuck() {
    let mut bench = Bench::new("sq", 0);
    bench.run(40);
    for qpn in 0..QUEUES as u32 {
        bench.create(qpn, &RingModel { log_size: 6, ..Default::default() }, true);
        bench.doorbell(qpn, 64, 0);
    }
    let mut tb = bench.tb;
    // The offers' monitor is not called any more: ready stays low.
    tb.set("m_wqe$ready", 0);
    let layout = Fields::of::<SqCmd>();
    let mut taken = 0;
    for cycle in 0..400 {
        tb.set("s_cmd$0$valid", 1);
        tb.set_wide("s_cmd$0$data", layout.pack(&[("qpn", cycle % QUEUES as u128), ("op", 1), ("epoch", 1)]));
        tb.model().settle();
        taken += tb.get("s_cmd$0$ready");
        tb.model().edge();
    }
    assert!(taken > 300, "{taken} commands taken in 400 cycles");
}

/// The resume that answers a park comes at the other port. While the control bus has the table both wait, and must come out in the order in which they came.
#[test]
fn a_resume_does_not_pass_the_park_in_front_of_it() {
    park_and_resume(Bench::new("sq", 0));
    // Wherever a stream may stall.
    park_and_resume(Bench::of(Tb::new("sq_chaos", crate::stream::chaos::scoped(5, SendQueue::<LQ, 256, 8, 11>::default)), 0));
}

fn park_and_resume(mut bench: Bench) {
    bench.run(40);
    bench.create(3, &RingModel { log_size: 15, ..Default::default() }, true);
    let layout = Fields::of::<SqCmd>();
    let mut index = 0;
    for round in 0..240u64 {
        // The control bus, the two commands, what waits at port 0, and whoever had the table last: all in every position to each other.
        for _ in 0..1 + round % 4 {
            bench.ctl.ask(9, 4, None);
        }
        bench.run(round / 4 % 10);
        for _ in 0..round % 7 {
            bench.cmds[0].push(layout.pack(&[("qpn", 9), ("op", 1)]));
        }
        bench.cmds[0].push(layout.pack(&[("qpn", 3), ("op", 1), ("index", index), ("epoch", 0)]));
        while bench.cmds[0].pending() > 0 {
            bench.cycle();
        }
        bench.run(round / 40);
        bench.cmds[1].push(layout.pack(&[("qpn", 3), ("op", 2)]));
        bench.run(300);
        while bench.ctl.answer().is_some() {}
        index += 1;
        bench.doorbell(3, index as u16, 0);
        bench.run(600);
        let offer = bench.offers.pop().unwrap_or_else(|| panic!("round {round}: the queue stayed parked"));
        bench.free(Fields::of::<SqWqe>().get(&offer, "handle"));
    }
}
