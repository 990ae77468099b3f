//! Replies in their world: the responder, the gatherer, the host memory and what they are told.
use super::super::{Reply, STATS};
use crate::msg::{AckOp, RdCmd, RdRow, ReplyOp, TxDone, TxOp, WrSmall};
use crate::rdma::atomics::UNDER_WAY;
use crate::roce::word::opened;
use crate::tb::{Counted, Fields, Sink, Source, Tb};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A READ or atomic to be answered.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) psn: u32,
    pub(super) msn: u32,
    pub(super) va: u64,
    pub(super) key: u32,
    pub(super) len: u32,
    /// The value an atomic must report.
    pub(super) value: Option<u64>,
    pub(super) again: bool,
    /// Packets seen of it.
    pub(super) sent: u32,
    pub(super) number: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Ack {
    pub(super) psn: u32,
    pub(super) msn: u32,
    pub(super) syndrome: u32,
    pub(super) number: u64,
}

#[derive(Default)]
pub(super) struct Qp {
    pub(super) items: VecDeque<Item>,
    pub(super) acks: VecDeque<Ack>,
    /// Results of atomics: PSN, value.
    pub(super) results: Vec<(u32, u64)>,
    pub(super) psn: u32,
    pub(super) msn: u32,
    /// Packets sent whose departure was not reported; packets since the last mark.
    pub(super) inside: u32,
    pub(super) run: u32,
    /// READs and atomics, duplicates apart: sent whole, and those that the responder was told of.
    pub(super) finished: u32,
    pub(super) told: u32,
}

/// Whose queue pair it is.
fn function_of(id: u32) -> u128 {
    u128::from(id % 5) + 3
}

pub(super) struct Bench {
    pub(super) tb: Tb,
    pub(super) stats: Counted,
    /// Functions that have asked for an atomic in these 64 bytes; READs and atomics by function.
    askers: BTreeMap<u64, BTreeSet<u128>>,
    asked: BTreeMap<u64, u64>,
    pub(super) ack: Source,
    pub(super) m_ack: Sink,
    pub(super) op: Sink,
    pub(super) done: Source,
    pub(super) error: Sink,
    pub(super) rd: (Sink, Source),
    pub(super) wr: (Sink, Source),
    pub(super) qps: BTreeMap<u32, Qp>,
    pub(super) memory: BTreeMap<u64, u64>,
    /// Departures and host answers, with the cycle in which they come.
    pub(super) departures: VecDeque<(u64, u32, bool, Vec<u32>)>,
    pub(super) rows: VecDeque<(u64, Vec<u32>)>,
    pub(super) answers: VecDeque<(u64, u64, u64)>,
    pub(super) delay: u64,
    pub(super) number: u64,
    pub(super) packets: u64,
    /// Pages held for atomics, and how many of them have begun.
    pub(super) held: VecDeque<u64>,
    pub(super) begun: usize,
    /// Atomics told to be over: by queue pair, those of a phase, with a key; FETCH_ADDs among the latter may not be before the host has answered.
    pub(super) over: BTreeMap<u32, u64>,
    pub(super) counted: BTreeMap<u32, u64>,
    pub(super) phases: [i64; 2],
    pub(super) executed: u64,
    pub(super) silent: u64,
    /// Addresses that cannot be read.
    pub(super) bad: Option<u64>,
}

pub(super) const MTU: u32 = 256;

impl Bench {
    pub(super) fn new(seed: u64, stall: u32, delay: u64) -> Bench {
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
            stats: Counted::new("stat", "stat_function", STATS),
            askers: BTreeMap::new(),
            asked: BTreeMap::new(),
            departures: VecDeque::new(),
            rows: VecDeque::new(),
            answers: VecDeque::new(),
            delay,
            number: 0,
            packets: 0,
            held: VecDeque::new(),
            begun: 0,
            over: BTreeMap::new(),
            counted: BTreeMap::new(),
            phases: [0; 2],
            executed: 0,
            silent: 0,
            bad: None,
        }
    }

    pub(super) fn push(&mut self, id: u32, kind: u32, fields: &[(&str, u128)]) {
        let mut all: Vec<(&str, u128)> = vec![("qpn", id.into()), ("dest_qpn", (id + 0x100).into()), ("kind", kind.into()), ("epoch", 7), ("function", function_of(id)), ("pd", 9), ("pmtu", 1)];
        all.extend_from_slice(fields);
        if all.iter().any(|(name, value)| *name == "atomic" && *value == 1) {
            *self.counted.entry(id).or_default() += 1;
        }
        if let Some((_, phase)) = all.iter().find(|(name, _)| *name == "phase") {
            self.phases[*phase as usize] += 1;
        }
        if kind == 1 || kind == 2 {
            *self.asked.entry(function_of(id) as u64).or_default() += 1;
        }
        if let (2, Some((_, va))) = (kind, all.iter().find(|(name, _)| *name == "va")) {
            self.askers.entry(*va as u64 & !63).or_default().insert(function_of(id));
        }
        self.ack.push(opened::<ReplyOp>().pack(&all));
        self.number += 1;
    }

    pub(super) fn acknowledge(&mut self, id: u32, syndrome: u32) {
        let number = self.number;
        let qp = self.qps.get_mut(&id).expect("there");
        qp.psn = (qp.psn + 1) & 0xff_ffff;
        let (psn, msn) = (qp.psn, qp.msn);
        qp.acks.push_back(Ack { psn, msn, syndrome, number });
        self.push(id, 0, &[("psn", psn.into()), ("msn", msn.into()), ("syndrome", syndrome.into())]);
    }

    pub(super) fn read(&mut self, id: u32, len: u32, again: bool) {
        let (va, key, number) = (self.tb.rng().next_u64(), self.tb.rng().next_u32(), self.number);
        // Now and then across a border of 4 GiB.
        let va = if self.tb.rng().percent(30) { va | 0xffff_ff00 } else { va };
        let qp = self.qps.get_mut(&id).expect("there");
        let (psn, n) = (qp.psn, len.div_ceil(MTU).max(1));
        if !again {
            qp.psn = (qp.psn + n) & 0xff_ffff;
            qp.msn += 1;
        }
        let msn = qp.msn;
        qp.items.push_back(Item { psn, msn, va, key, len, value: None, again, sent: 0, number });
        self.push(id, 1, &[("psn", psn.into()), ("msn", msn.into()), ("va", va.into()), ("key", key.into()), ("len", len.into()), ("again", again.into())]);
    }

    pub(super) fn atomic(&mut self, id: u32, iova: u64, add: bool, compare: u64, operand: u64) {
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
        self.silent += u64::from(!add && value != compare);
        qp.results.push((psn, value));
        let msn = qp.msn;
        qp.items.push_back(Item { psn, msn, va: 0, key: 0, len: 0, value: Some(value), again: false, sent: 0, number });
        let phase = u128::from(number >> 3 & 1);
        self.push(
            id,
            2,
            &[
                ("psn", psn.into()),
                ("msn", msn.into()),
                ("va", iova.into()),
                ("add", add.into()),
                ("operand", operand.into()),
                ("compare", compare.into()),
                ("atomic", 1),
                ("keyed", 1),
                ("phase", phase),
            ],
        );
    }

    /// A duplicate atomic with this PSN.
    pub(super) fn atomic_again(&mut self, id: u32, psn: u32) {
        let number = self.number;
        let qp = self.qps.get_mut(&id).expect("there");
        let msn = qp.msn;
        let known = qp.results.iter().rev().take(32).find(|(p, _)| *p == psn).map(|(_, value)| *value);
        if known.is_some() {
            qp.items.push_back(Item { psn, msn, va: 0, key: 0, len: 0, value: known, again: true, sent: 0, number });
        }
        self.push(id, 2, &[("psn", psn.into()), ("msn", msn.into()), ("va", 0x40), ("add", 1), ("operand", 1), ("again", 1), ("atomic", 1)]);
    }

    /// An acknowledge has left the block: it must be newer than the one before, and nothing before it may be open.
    pub(super) fn acknowledged(&mut self, id: u32, psn: u32, msn: u32, syndrome: u32) {
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

    pub(super) fn packet(&mut self, words: &[u32]) {
        let f = Fields::of::<TxOp>();
        let get = |name: &str| f.get(words, name);
        let (id, opcode, psn, aeth) = (get("qpn") as u32, get("opcode") as u32, get("psn") as u32, get("aeth") as u32);
        assert_eq!((get("dest_qpn") as u32, get("epoch"), get("function"), get("pd"), get("reply")), (id + 0x100, 7, function_of(id), 9, 1));
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
        self.departures.push_back((
            at,
            id,
            get("notify") == 1,
            Fields::of::<TxDone>().pack(&[("qpn", id.into()), ("epoch", 7), ("psn", psn.into()), ("reply", 1), ("notify", get("notify")), ("wqe_index", get("wqe_index"))]),
        ));
        if opcode == 0x11 {
            assert_eq!((get("pay_len"), get("has_aeth"), get("has_atomic_ack")), (0, 1, 0));
            return self.acknowledged(id, psn, aeth & 0xff_ffff, aeth >> 24);
        }
        let qp = self.qps.get_mut(&id).expect("there");
        let item = qp.items.front_mut().unwrap_or_else(|| panic!("opcode {opcode:#x} nobody asked for"));
        assert_eq!((psn, get("wqe_index")), ((item.psn + item.sent) & 0xff_ffff, item.again.into()), "{item:x?}");
        if let Some(value) = item.value {
            assert_eq!((opcode, get("has_atomic_ack"), get("operand") as u64, get("pay_len")), (0x12, 1, value, 0), "{item:x?}");
            assert_eq!((get("has_aeth"), aeth), (1, 31 << 24 | item.msn));
            qp.finished += u32::from(!item.again);
            qp.items.pop_front();
            return;
        }
        let (n, off) = (item.len.div_ceil(MTU).max(1), item.sent * MTU);
        let (first, last) = (item.sent == 0, item.sent + 1 == n);
        let want = match (first, last) {
            (true, true) => 0x10,
            (true, _) => 0x0d,
            (_, true) => 0x0f,
            _ => 0x0e,
        };
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
    pub(super) fn holds(&mut self) {
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
            assert!(self.held.len() <= UNDER_WAY);
        }
    }

    pub(super) fn is_held(&self, iova: u64) -> bool {
        let page = (iova >> 12 ^ iova >> 24 ^ iova >> 36) & 0xfff;
        self.held.iter().take(self.begun).any(|p| *p == page)
    }

    pub(super) fn step(&mut self) {
        // One that may begin stays so until it does.
        if self.tb.get("atomic_clear") == 0 || self.begun == self.held.len() {
            let clear = self.begun < self.held.len() && self.tb.rng().percent(50);
            self.tb.set("atomic_clear", clear.into());
        }
        self.tb.begin();
        self.stats.see(&self.tb);
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
        if self.tb.get("over") == 1 {
            let [id, count, keyed, phase] = ["over_qpn", "over_count", "over_keyed", "over_phase"].map(|name| self.tb.get(name));
            let over = self.over.entry(id as u32).or_default();
            *over += 1;
            assert_eq!(count, *over % 512);
            assert!(*over <= self.counted[&(id as u32)], "an atomic that never came is over");
            if keyed == 1 {
                self.executed += 1;
                self.phases[phase as usize] -= 1;
                assert!(self.bad.is_some() || self.executed <= self.wr.1.taken() + self.silent, "over before the host has answered");
            }
        } else {
            assert_eq!(self.tb.get("over_keyed"), 0);
        }
        while let Some(words) = self.m_ack.pop() {
            let f = Fields::of::<AckOp>();
            let get = |name: &str| f.get(&words, name) as u32;
            let id = get("qpn");
            assert_eq!(get("dest_qpn"), id + 0x100);
            assert_eq!(self.qps[&id].inside, 0, "an acknowledge overtakes packets of its queue pair");
            assert_eq!(u128::from(get("function")), function_of(id));
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
            assert_eq!((iova & 63, fr.get(&words, "rows")), (0, 1));
            assert!(self.askers[&iova].contains(&fr.get(&words, "function")), "{iova:#x} read for a function that did not ask");
            assert!(self.is_held(iova), "{iova:#x} is read without being held");
            let row: Vec<u32> = (0..8)
                .flat_map(|n| {
                    let v = self.host(iova + 8 * n);
                    [v as u32, (v >> 32) as u32]
                })
                .collect();
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
            assert_eq!((fw.get(&words, "len"), iova & 7), (8, 0));
            assert!(self.askers[&(iova & !63)].contains(&fw.get(&words, "function")), "{iova:#x} written for a function that did not ask");
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
    pub(super) fn host(&self, iova: u64) -> u64 {
        HOST.with(|h| h.borrow().get(&iova).copied().unwrap_or(iova))
    }

    pub(super) fn settle(&mut self) {
        let (mut quiet, begun) = (0, self.tb.cycles());
        while quiet < 2 * self.delay + 400 {
            assert!(self.tb.cycles() < begun + 500_000, "no rest");
            let before = self.packets + self.m_ack.taken() + self.rd.0.taken();
            self.step();
            let idle = self.ack.pending() == 0 && self.departures.is_empty() && before == self.packets + self.m_ack.taken() + self.rd.0.taken();
            quiet = if idle { quiet + 1 } else { 0 };
        }
        assert_eq!((&self.over, self.phases), (&self.counted, [0; 2]), "all that came are over");
        // A queue pair that has failed counts nothing more.
        if self.error.taken() == 0 && self.silent == 0 {
            let mut seen = BTreeMap::<u64, u64>::new();
            self.stats.events.iter().filter(|((_, name), _)| *name != "reply_errors").for_each(|((function, _), n)| *seen.entry(*function).or_default() += n);
            assert_eq!(seen, self.asked, "each READ and atomic is counted once, for whose it is");
        }
    }
}

thread_local! {
    pub(super) static HOST: std::cell::RefCell<BTreeMap<u64, u64>> = const { std::cell::RefCell::new(BTreeMap::new()) };
}
