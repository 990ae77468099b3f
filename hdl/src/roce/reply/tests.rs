//! Replies against a list per queue pair; the test plays completion, gatherer, egress and host memory.
use super::Reply;
use crate::msg::{AckOp, QpError, RdCmd, RdRow, TxDone, TxOp, WrSmall};
use crate::tb::{Fields, Sink, Source, Tb};
use std::collections::{BTreeMap, VecDeque};

/// A READ or atomic to be answered.
#[derive(Clone, Debug)]
struct Item {
    psn: u32,
    msn: u32,
    va: u64,
    key: u32,
    len: u32,
    /// The value an atomic must report.
    value: Option<u64>,
    again: bool,
    /// Packets seen of it.
    sent: u32,
    number: u64,
}

#[derive(Clone, Debug)]
struct Ack {
    psn: u32,
    msn: u32,
    syndrome: u32,
    number: u64,
}

#[derive(Default)]
struct Qp {
    items: VecDeque<Item>,
    acks: VecDeque<Ack>,
    /// Results of atomics: PSN, value.
    results: Vec<(u32, u64)>,
    psn: u32,
    msn: u32,
    /// Packets sent whose departure was not reported; packets since the last mark.
    inside: u32,
    run: u32,
    /// READs and atomics, duplicates apart: sent whole, and those that the responder was told of.
    finished: u32,
    told: u32,
}

struct Bench {
    tb: Tb,
    ack: Source,
    m_ack: Sink,
    op: Sink,
    done: Source,
    error: Sink,
    rd: (Sink, Source),
    wr: (Sink, Source),
    qps: BTreeMap<u32, Qp>,
    memory: BTreeMap<u64, u64>,
    /// Departures and host answers, with the cycle in which they come.
    departures: VecDeque<(u64, u32, bool, Vec<u32>)>,
    rows: VecDeque<(u64, Vec<u32>)>,
    answers: VecDeque<(u64, u64, u64)>,
    delay: u64,
    number: u64,
    packets: u64,
    /// Pages held for atomics, and how many of them have begun.
    held: VecDeque<u64>,
    begun: usize,
    /// Addresses that cannot be read.
    bad: Option<u64>,
}

const MTU: u32 = 256;

impl Bench {
    fn new(seed: u64, stall: u32, delay: u64) -> Bench {
        let mut tb = Tb::with_seed("reply", Reply::<4, 9>::default(), seed);
        tb.set("barrier", 0);
        tb.set("atomic_clear", 1);
        Bench {
            ack: tb.source("s_ack", stall),
            m_ack: tb.sink("m_ack", stall),
            op: tb.sink("m_op", stall),
            done: tb.source("s_tx_done", stall),
            error: tb.sink("m_error", stall),
            rd: (tb.sink("m_rd", stall), tb.source("s_rd", stall)),
            wr: (tb.sink("m_wr", stall), tb.source("s_wr", stall)),
            tb,
            qps: (0..16).map(|id| (id, Qp { psn: 0xff_fff0, ..Qp::default() })).collect(),
            memory: BTreeMap::new(),
            departures: VecDeque::new(),
            rows: VecDeque::new(),
            answers: VecDeque::new(),
            delay,
            number: 0,
            packets: 0,
            held: VecDeque::new(),
            begun: 0,
            bad: None,
        }
    }

    fn push(&mut self, id: u32, kind: u32, fields: &[(&str, u128)]) {
        let mut all: Vec<(&str, u128)> = vec![
            ("qpn", id.into()), ("dest_qpn", (id + 0x100).into()), ("kind", kind.into()), ("epoch", 7), ("function", 3), ("pd", 9), ("pmtu", 1),
        ];
        all.extend_from_slice(fields);
        self.ack.push(Fields::of::<AckOp>().pack(&all));
        self.number += 1;
    }

    fn acknowledge(&mut self, id: u32, syndrome: u32) {
        let number = self.number;
        let qp = self.qps.get_mut(&id).expect("there");
        qp.psn = (qp.psn + 1) & 0xff_ffff;
        let (psn, msn) = (qp.psn, qp.msn);
        qp.acks.push_back(Ack { psn, msn, syndrome, number });
        self.push(id, 0, &[("psn", psn.into()), ("msn", msn.into()), ("syndrome", syndrome.into())]);
    }

    fn read(&mut self, id: u32, len: u32, again: bool) {
        let (va, key, number) = (self.tb.rng().next_u64(), self.tb.rng().next_u32(), self.number);
        let qp = self.qps.get_mut(&id).expect("there");
        let (psn, n) = (qp.psn, len.div_ceil(MTU).max(1));
        if !again {
            qp.psn = (qp.psn + n) & 0xff_ffff;
            qp.msn += 1;
        }
        let msn = qp.msn;
        qp.items.push_back(Item { psn, msn, va, key, len, value: None, again, sent: 0, number });
        self.push(id, 1, &[
            ("psn", psn.into()), ("msn", msn.into()), ("va", va.into()), ("key", key.into()), ("len", len.into()), ("again", again.into()),
        ]);
    }

    fn atomic(&mut self, id: u32, iova: u64, add: bool, compare: u64, operand: u64) {
        let number = self.number;
        let qp = self.qps.get_mut(&id).expect("there");
        let (psn, value) = (qp.psn, self.memory.get(&iova).copied().unwrap_or(iova));
        qp.psn = (qp.psn + 1) & 0xff_ffff;
        qp.msn += 1;
        if add {
            self.memory.insert(iova, value.wrapping_add(operand));
        } else if value == compare {
            self.memory.insert(iova, operand);
        }
        qp.results.push((psn, value));
        let msn = qp.msn;
        qp.items.push_back(Item { psn, msn, va: 0, key: 0, len: 0, value: Some(value), again: false, sent: 0, number });
        self.push(id, 2, &[
            ("psn", psn.into()), ("msn", msn.into()), ("va", iova.into()), ("add", add.into()), ("operand", operand.into()), ("compare", compare.into()),
        ]);
    }

    /// A duplicate atomic with this PSN.
    fn atomic_again(&mut self, id: u32, psn: u32) {
        let number = self.number;
        let qp = self.qps.get_mut(&id).expect("there");
        let msn = qp.msn;
        let known = qp.results.iter().rev().take(32).find(|(p, _)| *p == psn).map(|(_, value)| *value);
        if known.is_some() {
            qp.items.push_back(Item { psn, msn, va: 0, key: 0, len: 0, value: known, again: true, sent: 0, number });
        }
        self.push(id, 2, &[("psn", psn.into()), ("msn", msn.into()), ("va", 0x40), ("add", 1), ("operand", 1), ("again", 1)]);
    }

    /// An acknowledge has left the block: it must be newer than the one before, and nothing before it may be open.
    fn acknowledged(&mut self, id: u32, psn: u32, msn: u32, syndrome: u32) {
        let seed = self.tb.seed();
        let qp = self.qps.get_mut(&id).expect("there");
        loop {
            let ack = qp.acks.pop_front().unwrap_or_else(|| panic!("acknowledge {psn:#x} of {id} nobody asked for, seed {seed}"));
            if ack.psn == psn && ack.msn == msn {
                assert_eq!(syndrome, ack.syndrome);
                let open = qp.items.iter().find(|i| !i.again && i.number < ack.number);
                assert!(open.is_none(), "{id}: {ack:x?} overtakes {open:x?}, seed {seed}");
                return;
            }
        }
    }

    fn packet(&mut self, words: &[u32]) {
        let f = Fields::of::<TxOp>();
        let get = |name: &str| f.get(words, name);
        let (id, opcode, psn, aeth) = (get("qpn") as u32, get("opcode") as u32, get("psn") as u32, get("aeth") as u32);
        assert_eq!((get("dest_qpn") as u32, get("epoch"), get("function"), get("pd"), get("reply")), (id + 0x100, 7, 3, 9, 1));
        assert_eq!((get("num_sge"), get("pay_off"), get("free"), get("ack_req"), get("has_reth"), get("has_imm")), (1, 0, 0, 0, 0, 0));
        let qp = self.qps.get_mut(&id).expect("there");
        qp.inside += 1;
        qp.run += 1;
        assert!(qp.run <= 16, "a turn of more than 16 packets");
        if get("notify") == 1 {
            qp.run = 0;
        }
        self.packets += 1;
        let at = self.tb.cycles() + self.delay;
        self.departures.push_back((at, id, get("notify") == 1, Fields::of::<TxDone>().pack(&[("qpn", id.into()), ("epoch", 7), ("psn", psn.into()), ("reply", 1), ("notify", get("notify"))])));
        if opcode == 0x11 {
            assert_eq!((get("pay_len"), get("has_aeth"), get("has_atomic_ack")), (0, 1, 0));
            return self.acknowledged(id, psn, aeth & 0xff_ffff, aeth >> 24);
        }
        let qp = self.qps.get_mut(&id).expect("there");
        let item = qp.items.front_mut().unwrap_or_else(|| panic!("opcode {opcode:#x} nobody asked for"));
        assert_eq!(psn, (item.psn + item.sent) & 0xff_ffff, "{item:x?}");
        if let Some(value) = item.value {
            assert_eq!((opcode, get("has_atomic_ack"), get("operand") as u64, get("pay_len")), (0x12, 1, value, 0), "{item:x?}");
            assert_eq!((get("has_aeth"), aeth), (1, 31 << 24 | item.msn));
            qp.finished += u32::from(!item.again);
            qp.items.pop_front();
            return;
        }
        let (n, off) = (item.len.div_ceil(MTU).max(1), item.sent * MTU);
        let (first, last) = (item.sent == 0, item.sent + 1 == n);
        let want = match (first, last) { (true, true) => 0x10, (true, _) => 0x0d, (_, true) => 0x0f, _ => 0x0e };
        assert_eq!(opcode, want, "{item:x?}");
        assert_eq!((get("has_aeth") == 1, get("has_atomic_ack")), (first || last, 0));
        if first || last {
            assert_eq!(aeth, 31 << 24 | item.msn);
        }
        let size = if last { item.len - off } else { MTU };
        assert_eq!(get("pay_len") as u32, size);
        let sge = get("sge");
        assert_eq!((sge as u64, (sge >> 64) as u32, (sge >> 96) as u32), (item.va.wrapping_add(off.into()), size, item.key), "{item:x?}");
        item.sent += 1;
        if last {
            qp.finished += u32::from(!item.again);
            qp.items.pop_front();
        }
    }

    /// Holds come before reads, and end behind writes.
    fn holds(&mut self) {
        let [hold, page, begin, end, clear] = ["atomic_hold", "atomic_page", "atomic_begin", "atomic_end", "atomic_clear"].map(|port| self.tb.get(port));
        if end == 1 {
            assert!(self.begun > 0, "an end without a beginning");
            self.begun -= 1;
            self.held.pop_front();
        }
        if begin == 1 {
            assert!(clear == 1 && self.begun < self.held.len(), "begun too early");
            self.begun += 1;
        }
        if hold == 1 {
            self.held.push_back(page);
            assert!(self.held.len() <= 16);
        }
    }

    fn is_held(&self, iova: u64) -> bool {
        let page = (iova >> 12 ^ iova >> 24 ^ iova >> 36) & 0xfff;
        self.held.iter().take(self.begun).any(|p| *p == page)
    }

    fn step(&mut self) {
        // One that may begin stays so until it does.
        if self.tb.get("atomic_clear") == 0 || self.begun == self.held.len() {
            let clear = self.begun < self.held.len() && self.tb.rng().percent(50);
            self.tb.set("atomic_clear", clear.into());
        }
        self.tb.begin();
        self.holds();
        self.tb.end();
        let now = self.tb.cycles();
        while let Some(words) = self.op.pop() {
            self.packet(&words);
        }
        if self.tb.get("answered") == 1 {
            let [id, epoch, count] = ["answered_qpn", "answered_epoch", "answered_count"].map(|name| self.tb.get(name) as u32);
            let qp = self.qps.get_mut(&id).expect("there");
            qp.told += 1;
            assert!(qp.told <= qp.finished, "told before it is sent");
            assert_eq!((epoch, count), (7, qp.told % 32));
        }
        while let Some(words) = self.m_ack.pop() {
            let f = Fields::of::<AckOp>();
            let get = |name: &str| f.get(&words, name) as u32;
            let id = get("qpn");
            assert_eq!(get("dest_qpn"), id + 0x100);
            assert_eq!(self.qps[&id].inside, 0, "an acknowledge overtakes packets of its queue pair");
            self.acknowledged(id, get("psn"), get("msn"), get("syndrome"));
        }
        while self.departures.front().is_some_and(|d| d.0 <= now) {
            let (_, id, notify, words) = self.departures.pop_front().expect("there");
            self.qps.get_mut(&id).expect("there").inside -= 1;
            if notify {
                self.done.push(words);
            }
        }
        let (fr, fw) = (Fields::of::<RdCmd>(), Fields::of::<WrSmall>());
        while let Some(words) = self.rd.0.pop() {
            let iova = fr.get(&words, "iova") as u64;
            assert_eq!((iova & 63, fr.get(&words, "rows"), fr.get(&words, "function")), (0, 1, 3));
            assert!(self.is_held(iova), "{iova:#x} is read without being held");
            let row: Vec<u32> = (0..8).flat_map(|n| {
                let v = self.host(iova + 8 * n);
                [v as u32, (v >> 32) as u32]
            }).collect();
            let layout = Fields::of::<RdRow>();
            let mut answer = layout.pack(&[("last", 1), ("err", (self.bad == Some(iova)).into())]);
            layout.set_words(&mut answer, "data", &row);
            self.rows.push_back((now + self.delay, answer));
        }
        while self.rows.front().is_some_and(|r| r.0 <= now) {
            self.rd.1.push(self.rows.pop_front().expect("there").1);
        }
        while let Some(words) = self.wr.0.pop() {
            let (iova, data) = (fw.get(&words, "iova") as u64, fw.get_words(&words, "data"));
            assert_eq!((fw.get(&words, "len"), iova & 7, fw.get(&words, "function")), (8, 0, 3));
            // Read early, written late: what is not kept apart is seen.
            self.answers.push_back((now + self.delay, iova, u64::from(data[0]) | u64::from(data[1]) << 32));
        }
        while self.answers.front().is_some_and(|a| a.0 <= now) {
            let (_, iova, value) = self.answers.pop_front().expect("there");
            assert!(self.is_held(iova), "{iova:#x} is held no longer, and not written yet");
            HOST.with(|h| h.borrow_mut().insert(iova, value));
            self.wr.1.push(0u32);
        }
    }

    /// What the host's memory holds, as the block has written it.
    fn host(&self, iova: u64) -> u64 {
        HOST.with(|h| h.borrow().get(&iova).copied().unwrap_or(iova))
    }

    fn settle(&mut self) {
        let mut quiet = 0;
        while quiet < 2 * self.delay + 400 {
            assert!(self.tb.cycles() < 4_000_000, "no rest");
            let before = self.packets + self.m_ack.taken() + self.rd.0.taken();
            self.step();
            let idle = self.ack.pending() == 0 && self.departures.is_empty() && before == self.packets + self.m_ack.taken() + self.rd.0.taken();
            quiet = if idle { quiet + 1 } else { 0 };
        }
    }
}

thread_local! {
    static HOST: std::cell::RefCell<BTreeMap<u64, u64>> = const { std::cell::RefCell::new(BTreeMap::new()) };
}

fn random(seed: u64, stall: u32, delay: u64, count: usize) {
    let mut bench = Bench::new(seed, stall, delay);
    HOST.with(|h| h.borrow_mut().clear());
    for _ in 0..count {
        let id = bench.tb.rng().below(16) as u32;
        let open = bench.qps[&id].items.len();
        match bench.tb.rng().below(10) {
            0..=3 => {
                let syndrome = if bench.tb.rng().percent(90) { 31 } else { 0x60 };
                bench.acknowledge(id, syndrome);
            }
            4 | 5 if open < 28 => {
                let len = [0, 1, 255, 256, 257, 1000, 4096, 4097, 9000][bench.tb.rng().below(9) as usize];
                bench.read(id, len, false);
            }
            6 if open < 14 => bench.read(id, 700, true),
            7 | 8 if open < 28 => {
                let rng = bench.tb.rng();
                let (iova, add, operand) = (8 * rng.below(40), rng.percent(60), rng.next_u64());
                let now = bench.memory.get(&iova).copied().unwrap_or(iova);
                let compare = if bench.tb.rng().percent(50) { now } else { 5 };
                bench.atomic(id, iova, add, compare, operand);
            }
            9 if open < 14 => {
                let results = bench.qps[&id].results.clone();
                let back = bench.tb.rng().below(40) as usize;
                let psn = if results.len() > back { results[results.len() - 1 - back].0 } else { 0x12345 };
                bench.atomic_again(id, psn);
            }
            _ => {}
        }
        let idle = bench.tb.rng().below(if stall == 0 { 8 } else { 60 });
        (0..idle).for_each(|_| bench.step());
    }
    bench.settle();
    for (id, qp) in &bench.qps {
        assert!(qp.items.is_empty(), "queue pair {id}: {:x?} never came, seed {seed}", qp.items);
        assert_eq!(qp.told, qp.finished, "queue pair {id}, seed {seed}");
        // An acknowledge may only be left out for something newer.
        assert!(qp.acks.back().is_none_or(|a| a.psn != qp.psn), "queue pair {id}: {:x?} never came, seed {seed}", qp.acks);
    }
    for (iova, value) in &bench.memory {
        assert_eq!(bench.host(*iova), *value, "memory at {iova:#x}, seed {seed}");
    }
    assert!(bench.packets > count as u64 / 4, "too few packets");
}

#[test]
fn replies_come_in_the_order_of_their_queue_pair() {
    random(1, 30, 40, 1500);
    random(2, 0, 5, 1500);
    random(3, 50, 600, 600);
}

/// A long READ of one queue pair does not stop the acknowledges and short READs of others.
#[test]
fn a_long_read_stops_nobody_else() {
    let mut bench = Bench::new(4, 0, 30);
    bench.read(1, 64 << 10, false);
    (0..100).for_each(|_| bench.step());
    bench.acknowledge(2, 31);
    bench.read(3, 600, false);
    bench.acknowledge(1, 31);
    (0..200).for_each(|_| bench.step());
    assert!(bench.qps[&2].acks.is_empty() && bench.qps[&3].items.is_empty(), "held up");
    assert_eq!((bench.qps[&1].items.len(), bench.qps[&1].acks.len()), (1, 1), "still at it");
    bench.settle();
    assert!(bench.qps[&1].items.is_empty() && bench.qps[&1].acks.is_empty());
}

/// A failed read of a response packet, and a failed atomic: NAK remote operational error, the responder is told, nothing else comes.
#[test]
fn failures_end_the_queue_pair() {
    let mut bench = Bench::new(5, 0, 3000);
    let nak = |bench: &mut Bench, id: u32, psn: u32| {
        let qp = bench.qps.get_mut(&id).expect("there");
        qp.items.clear();
        let msn = qp.msn - 1;
        qp.acks = VecDeque::from([Ack { psn, msn, syndrome: 0x63, number: 0 }]);
        bench.settle();
        assert!(bench.qps[&id].acks.is_empty(), "no NAK");
        let error = bench.error.pop().expect("the responder is told");
        let f = Fields::of::<QpError>();
        assert_eq!((f.get(&error, "qpn") as u32, f.get(&error, "epoch"), f.get(&error, "side")), (id, 7, 1));
        // Whatever comes later is not answered.
        bench.push(id, 0, &[("psn", 77), ("syndrome", 31)]);
        bench.push(id, 1, &[("psn", 78), ("len", 1000)]);
        bench.settle();
        assert!(bench.error.is_empty());
    };
    bench.read(1, 2000, false);
    (0..300).for_each(|_| bench.step());
    let psn = bench.qps[&1].psn.wrapping_sub(5) & 0xff_ffff;
    bench.done.push(Fields::of::<TxDone>().pack(&[("qpn", 1), ("epoch", 7), ("psn", psn.into()), ("status", 4), ("reply", 1)]));
    nak(&mut bench, 1, psn);
    bench.bad = Some(0x1000);
    let psn = bench.qps[&2].psn;
    bench.atomic(2, 0x1008, true, 0, 1);
    nak(&mut bench, 2, psn);
    // An address that is not aligned in the host's eyes.
    let psn = bench.qps[&3].psn;
    bench.atomic(3, 0x2004, true, 0, 1);
    nak(&mut bench, 3, psn);
    // A new life answers again.
    bench.push(1, 0, &[("psn", 5), ("syndrome", 31), ("epoch", 8)]);
    bench.qps.get_mut(&1).expect("there").acks = VecDeque::from([Ack { psn: 5, msn: 0, syndrome: 31, number: 0 }]);
    bench.settle();
    assert!(bench.qps[&1].acks.is_empty());
}

/// A barrier passes behind the atomics that came before it.
#[test]
fn a_barrier_waits_for_atomics() {
    let mut bench = Bench::new(6, 0, 50);
    for n in 0..4 {
        bench.atomic(n, 64 * u64::from(n), true, 0, 1);
    }
    (0..40).for_each(|_| bench.step());
    bench.tb.set("barrier", 1);
    bench.step();
    bench.tb.set("barrier", 0);
    while bench.tb.get("barrier_done") == 0 {
        assert!(bench.tb.cycles() < 5000);
        bench.step();
    }
    assert_eq!((bench.wr.0.taken(), bench.wr.1.taken()), (4, 4));
    bench.settle();
}

/// Operations on different addresses do not wait for each other.
#[test]
fn atomics_overlap() {
    let mut bench = Bench::new(8, 0, 300);
    HOST.with(|h| h.borrow_mut().clear());
    for n in 0..256u64 {
        bench.atomic(n as u32 % 16, 8 * n, true, 0, 1);
    }
    let start = bench.tb.cycles();
    while bench.wr.0.taken() < 256 {
        bench.step();
    }
    let each = (bench.tb.cycles() - start) / 256;
    assert!(each < 50, "{each} cycles per operation");
    bench.settle();
    assert!(bench.qps.values().all(|qp| qp.items.is_empty()));
}

/// An acknowledge with nothing before it passes in three cycles.
#[test]
fn an_acknowledge_passes_quickly() {
    let mut bench = Bench::new(7, 0, 0);
    (0..40).for_each(|_| bench.step());
    bench.acknowledge(1, 31);
    let latency = (0..20).find(|_| {
        bench.step();
        bench.m_ack.taken() == 1
    });
    assert_eq!(latency, Some(2));
    // One a cycle.
    (0..20).for_each(|n| bench.acknowledge(1 + n % 3, 31));
    (0..23).for_each(|_| bench.step());
    assert_eq!(bench.m_ack.taken(), 21);
}
