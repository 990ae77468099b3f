//! Operations against a memory in which they are executed one after the other; the test plays the transport, the guard of pages and the host.

use super::{AtomicDone, AtomicOp, Atomics, MARK, UNDER_WAY};
use crate::msg::{RdCmd, RdRow, WrDone, WrSmall};
use crate::tb::{Fields, Sink, Source, Tb};
use std::collections::{BTreeMap, VecDeque};

/// Cells of 8 bytes that operations are about: several rows, and addresses that are taken for the same.
const CELLS: u64 = 24;

/// An address that cannot be read, and one that cannot be written.
const UNREADABLE: u64 = 0x5_0000;
const UNWRITABLE: u64 = 0x6_0000;

fn cell(n: u64) -> u64 {
    // Every other cell lies so much further that the bits by which it is remembered are those of the cell in front of it.
    0x1_0000 + 8 * (n / 2) + 0x800_8000 * (n % 2)
}

/// What is expected of an operation.
struct Want {
    iova: u64,
    mark: u128,
    value: u64,
    err: bool,
    writes: bool,
}

struct Bench {
    tb: Tb,
    op: Source,
    done: Sink,
    rd: (Sink, Source),
    wr: (Sink, Source),
    /// As the operations leave it, and as the host has it.
    model: BTreeMap<u64, u64>,
    host: BTreeMap<u64, u64>,
    wants: VecDeque<Want>,
    /// Operations told, held, begun, and over.
    told: usize,
    pages: VecDeque<u64>,
    begun: usize,
    over: usize,
    /// When the guard lets the oldest one begin.
    clear_at: u64,
    delay: u64,
    rows: VecDeque<(u64, Vec<u32>)>,
    answers: VecDeque<(u64, u64, u64)>,
    writes: usize,
}

/// What `atomic_page` makes of an address.
fn page(iova: u64) -> u64 {
    (iova >> 12 ^ iova >> 24 ^ iova >> 36) & 0xfff
}

impl Bench {
    fn new(seed: u64, stall: u32, delay: u64) -> Bench {
        let mut tb = Tb::with_seed("atomics", Atomics::default(), seed);
        Bench {
            op: tb.source("s_op", stall),
            done: tb.sink("m_done", stall),
            rd: (tb.sink("m_rd", stall), tb.source("s_rd", stall)),
            wr: (tb.sink("m_wr", stall), tb.source("s_wr", stall)),
            tb,
            model: BTreeMap::new(),
            host: BTreeMap::new(),
            wants: VecDeque::new(),
            told: 0,
            pages: VecDeque::new(),
            begun: 0,
            over: 0,
            clear_at: 0,
            delay,
            rows: VecDeque::new(),
            answers: VecDeque::new(),
            writes: 0,
        }
    }

    fn random_op(&mut self) {
        let rng = self.tb.rng();
        let (n, add, operand, hit, mark) = (rng.below(CELLS + 3), rng.percent(50), rng.next_u64(), rng.percent(60), u128::from(rng.next_u64()) & ((1 << MARK) - 1));
        let iova = match n {
            CELLS => UNREADABLE,
            n if n == CELLS + 1 => UNWRITABLE,
            n if n == CELLS + 2 => cell(3) + 4,
            n => cell(n),
        };
        let value = self.model.get(&iova).copied().unwrap_or(iova);
        let compare = if hit { value } else { 5 };
        let aligned = iova % 8 == 0;
        let writes = aligned && iova != UNREADABLE && (add || compare == value);
        let err = !aligned || iova == UNREADABLE || (writes && iova == UNWRITABLE);
        if writes && !err {
            self.model.insert(iova, if add { value.wrapping_add(operand) } else { operand });
        }
        let fields = [
            ("qpn", mark & 0xff),
            ("epoch", mark >> 8 & 0xff),
            ("phase", mark & 1),
            ("mark", mark),
            ("iova", iova.into()),
            ("function", 3),
            ("add", add.into()),
            ("operand", operand.into()),
            ("compare", compare.into()),
        ];
        self.op.push(Fields::of::<AtomicOp>().pack(&fields));
        self.wants.push_back(Want { iova, mark, value, err, writes });
    }

    /// The pulses to the guard of pages, which answers by `atomic_clear`.
    fn guard(&mut self) {
        let now = self.tb.cycles();
        self.tb.set("atomic_clear", (now >= self.clear_at && self.begun < self.pages.len()).into());
        self.tb.begin();
        let pulses = ["atomic_hold", "atomic_begin", "atomic_end"].map(|name| self.tb.get(name) == 1);
        let at = self.tb.get("atomic_page");
        let clear = self.tb.get("atomic_clear") == 1;
        self.tb.end();
        if pulses[1] {
            assert!(clear, "an operation began before its page was clear");
            self.begun += 1;
            self.clear_at = now + self.tb.rng().below(self.delay / 4 + 1);
        }
        if pulses[0] {
            let want = &self.wants[self.pages.len() - self.told];
            assert_eq!(at, page(want.iova), "the page held");
            self.pages.push_back(at);
        }
        self.over += usize::from(pulses[2]);
        assert!(self.over <= self.begun && self.begun <= self.pages.len() && self.pages.len() - self.over <= UNDER_WAY, "holds");
    }

    fn step(&mut self) {
        self.guard();
        let (now, read, row) = (self.tb.cycles(), Fields::of::<RdCmd>(), Fields::of::<RdRow>());
        while let Some(c) = self.rd.0.pop() {
            let at = read.get(&c, "iova") as u64;
            assert_eq!((read.get(&c, "rows"), read.get(&c, "function"), at % 64), (1, 3, 0));
            let ready = (now + self.tb.rng().below(self.delay)).max(self.rows.back().map_or(0, |r| r.0));
            let mut words = row.pack(&[("last", 1), ("err", (at == UNREADABLE).into())]);
            let data: Vec<u32> = (0..8).map(|n| at + 8 * n).flat_map(|at| self.host.get(&at).copied().map_or([at as u32, (at >> 32) as u32], |v| [v as u32, (v >> 32) as u32])).collect();
            row.set_words(&mut words, "data", &data);
            self.rows.push_back((ready, words));
        }
        while self.rows.front().is_some_and(|r| r.0 <= now) {
            self.rd.1.push(self.rows.pop_front().expect("there").1);
        }
        let write = Fields::of::<WrSmall>();
        while let Some(c) = self.wr.0.pop() {
            let at = write.get(&c, "iova") as u64;
            assert_eq!((write.get(&c, "len"), at % 8, write.get(&c, "function")), (8, 0, 3));
            let data = write.get_words(&c, "data");
            let ready = (now + self.tb.rng().below(self.delay)).max(self.answers.back().map_or(0, |r| r.0));
            self.answers.push_back((ready, at, u64::from(data[0]) | u64::from(data[1]) << 32));
            self.writes += 1;
        }
        while self.answers.front().is_some_and(|r| r.0 <= now) {
            let (_, at, value) = self.answers.pop_front().expect("there");
            if at != UNWRITABLE {
                self.host.insert(at, value);
            }
            self.wr.1.push(Fields::of::<WrDone>().pack(&[("err", (at == UNWRITABLE).into())]));
        }
        let done = Fields::of::<AtomicDone>();
        while let Some(d) = self.done.pop() {
            let want = self.wants.pop_front().expect("one outcome for each operation");
            assert_eq!(done.get(&d, "mark"), want.mark);
            assert_eq!((done.get(&d, "qpn"), done.get(&d, "epoch"), done.get(&d, "phase")), (want.mark & 0xff, want.mark >> 8 & 0xff, want.mark & 1));
            assert_eq!(done.get(&d, "err") == 1, want.err, "at {:#x}", want.iova);
            if !want.err {
                assert_eq!(done.get(&d, "value") as u64, want.value, "at {:#x}", want.iova);
            }
            if want.writes && !want.err {
                assert!(self.answers.iter().all(|a| a.1 != want.iova) || self.wants.iter().any(|w| w.iova == want.iova), "told before the host has it");
            }
            self.told += 1;
        }
    }

    fn settle(&mut self) {
        let end = self.tb.cycles() + 100_000;
        while !self.wants.is_empty() {
            assert!(self.tb.cycles() < end, "outcomes are missing");
            self.step();
        }
        (0..8).for_each(|_| self.step());
        assert_eq!(self.tb.get("idle"), 1);
        assert_eq!((self.pages.len(), self.over), (self.told, self.told), "every hold is over");
    }
}

fn random(seed: u64, stall: u32, delay: u64, count: usize) {
    let mut bench = Bench::new(seed, stall, delay);
    for _ in 0..count {
        bench.random_op();
        // Ever so often the queue of operations runs full.
        let idle = if bench.tb.rng().percent(10) { 400 } else { bench.tb.rng().below(8) };
        (0..idle).for_each(|_| bench.step());
    }
    bench.settle();
    for n in 0..CELLS {
        let of = |memory: &BTreeMap<u64, u64>| memory.get(&cell(n)).copied().unwrap_or(cell(n));
        assert_eq!(of(&bench.host), of(&bench.model), "cell {n}, seed {seed}");
    }
    assert!(bench.writes > count / 3, "{} writes", bench.writes);
}

#[test]
fn operations_are_executed_one_after_the_other() {
    random(1, 30, 40, 1500);
    random(2, 0, 3, 1500);
    random(3, 60, 500, 500);
}

/// Operations on different bytes are under way together: as many reads before the first answer.
#[test]
fn as_many_are_under_way_as_pages_are_held() {
    let mut bench = Bench::new(4, 0, 1);
    let op = Fields::of::<AtomicOp>();
    for n in 0..UNDER_WAY as u64 + 4 {
        bench.op.push(op.pack(&[("iova", (0x1_0000 + 8 * n).into()), ("add", 1)]));
    }
    let mut asked = 0;
    for _ in 0..200 {
        bench.tb.set("atomic_clear", 1);
        bench.tb.cycle();
        asked += std::iter::from_fn(|| bench.rd.0.pop()).count();
    }
    assert_eq!(asked, UNDER_WAY);
}
