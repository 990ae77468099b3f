//! `DmaRead` between random clients and a random host. Every byte written to the assembly buffer is checked as it is
//! written: it must belong to a command in flight, carry that byte of host memory and be written once.

mod owed;
mod quotas;

use super::*;
use crate::host::dma::host_model::{host_byte, ReadHost, Temper};
use crate::stream::chaos;
use crate::tb::{Fields, Sink, Source, Tb};
use std::collections::{HashMap, VecDeque};

/// The longest assembly buffer.
const BUFFER: usize = 1 << 17;

/// The quotas of a RoCE card: admin, send queue, receive queue, memory keys, answers.
const ROCE: &[usize] = &[8, 64, 64, 32, 32];

#[derive(Clone, Copy)]
struct Pay {
    iova: u64,
    function: u64,
    len: u64,
    dst: usize,
    written: u64,
}

#[derive(Clone, Copy)]
struct Small {
    iova: u64,
    function: u64,
    rows: u64,
    tag: u128,
}

struct Bench<const W: usize, const K: usize, const LK: usize> {
    tb: Tb,
    temper: Temper,
    host: ReadHost,
    pay: Source,
    done: Sink,
    small: Vec<(Source, Sink)>,
    owner: Vec<Option<u64>>,
    flying: HashMap<u64, Pay>,
    rows: Vec<VecDeque<(Small, u64)>>,
    layouts: [Fields; 4],
    /// Beats each command will read, in the order of acceptance per port (payload last), by function.
    sent: Vec<Vec<(u64, u64)>>,
    heard: Vec<Vec<u32>>,
    last_write: u64,
    counted: [u64; 2],
    failed: u64,
    next_function: u64,
}

/// With as many payload reads as a card of this width has.
fn block<const W: usize, const K: usize, const LK: usize>(quotas: &[usize]) -> AnyBlock {
    match W {
        512 => for_quotas::<W, K, LK, 8>(quotas),
        _ => for_quotas::<W, K, LK, 7>(quotas),
    }
}

impl<const W: usize, const K: usize, const LK: usize> Bench<W, K, LK> {
    fn new(name: &str, seed: u64, temper: Temper, stall: u32) -> Self {
        Self::of(ROCE, name, seed, temper, stall)
    }

    fn of(quotas: &[usize], name: &str, seed: u64, temper: Temper, stall: u32) -> Self {
        Self::with(Tb::with_seed(name, block::<W, K, LK>(quotas), seed), quotas.len(), temper, stall)
    }

    fn with(mut tb: Tb, ports: usize, temper: Temper, stall: u32) -> Self {
        let host = ReadHost::new(&mut tb, K, temper, stall);
        let pay = tb.source("s_pay", stall);
        let done = tb.sink("m_pay_done", stall);
        let small = (0..ports).map(|i| (tb.source(&format!("s_small${i}"), stall), tb.sink(&format!("m_small${i}"), stall))).collect();
        let layouts = [Fields::of::<PayCmd>(), Fields::of::<PayDone>(), Fields::of::<RdCmd>(), Fields::of::<RdRow>()];
        let mut bench = Bench {
            tb,
            temper,
            host,
            pay,
            done,
            small,
            layouts,
            // Rows have 13 bits.
            owner: vec![None; BUFFER.min(K << 13)],
            flying: HashMap::new(),
            rows: vec![VecDeque::new(); ports],
            sent: vec![Vec::new(); ports + 1],
            heard: Vec::new(),
            last_write: 0,
            counted: [0; 2],
            failed: 0,
            next_function: 0,
        };
        // Until all ids are clear.
        bench.tb.run(600);
        bench
    }

    fn beats(&self, iova: u64, len: u64) -> u64 {
        ((iova + len - 1) >> LK) - (iova >> LK) + 1
    }

    fn function(&mut self) -> u64 {
        self.next_function += 1;
        assert!(self.next_function < 4096, "one function per command");
        self.next_function
    }

    fn read(&mut self, iova: u64, len: u64, dst: usize, slot: u64) {
        let function = self.function();
        let values = [("iova", iova), ("function", function), ("len", len), ("dst", dst as u64), ("slot", slot)];
        self.pay.push(self.layouts[0].pack(&values.map(|(name, value)| (name, value.into()))));
        assert!(self.flying.insert(slot, Pay { iova, function, len, dst, written: 0 }).is_none());
        for byte in dst..dst + len as usize {
            assert!(self.owner[byte].replace(slot).is_none(), "test gave byte {byte} twice");
        }
        let beats = self.beats(iova, len);
        self.sent.last_mut().expect("payload").push((function, beats));
    }

    fn read_small(&mut self, port: usize, iova: u64, rows: u64) {
        let function = self.function();
        let tag = self.tb.rng().below(256).into();
        let values = [("iova", iova.into()), ("function", function.into()), ("rows", rows.into()), ("tag", tag)];
        self.small[port].0.push(self.layouts[2].pack(&values));
        self.rows[port].push_back((Small { iova, function, rows, tag }, 0));
        let beats = self.beats(iova, 64 * rows);
        self.sent[port].push((function, beats));
    }

    /// One cycle with all checks.
    fn cycle(&mut self) {
        self.host.step(self.tb.cycles());
        self.tb.begin();
        assert_eq!(self.tb.get("r_ready"), 1, "R is always taken");
        let (we, row1) = (self.tb.get("asm_we"), self.tb.get("asm_row1"));
        if we != 0 {
            let (row, data) = (self.tb.get("asm_addr") as usize, self.tb.get_wide("asm_data"));
            self.last_write = self.tb.cycles();
            for lane in (0..K).filter(|lane| we >> lane & 1 == 1) {
                let at = ((row + (row1 >> lane & 1) as usize) * K + lane) % self.owner.len();
                let slot = self.owner[at].take().unwrap_or_else(|| panic!("byte {at} was not to be written"));
                let pay = self.flying.get_mut(&slot).expect("in flight");
                pay.written += 1;
                let addr = pay.iova + (at - pay.dst) as u64;
                let byte = (data[lane / 4] >> (8 * (lane % 4))) as u8;
                let want = host_byte(pay.function, addr);
                assert!(byte == want || self.temper.bad(addr), "byte {at}: {byte:#x}, not {want:#x} from {addr:#x}");
            }
        }
        let stat = self.tb.get("stat");
        (0..2).for_each(|i| self.counted[i] += stat >> i & 1);
        self.tb.end();
        // A `PayDone` may be one cycle ahead of the last bytes at the write port.
        let heard = std::mem::replace(&mut self.heard, std::iter::from_fn(|| self.done.pop()).collect());
        for words in heard {
            let (slot, err) = (self.layouts[1].get(&words, "slot") as u64, self.layouts[1].get(&words, "err") == 1);
            let pay = self.flying.remove(&slot).expect("answered once");
            assert_eq!(pay.written, pay.len, "done before all bytes were written");
            assert_eq!(err, self.temper.any_bad(pay.iova, pay.len));
            self.failed += u64::from(err);
        }
        for port in 0..self.small.len() {
            while let Some(words) = self.small[port].1.pop() {
                let (cmd, row) = self.rows[port].front_mut().expect("a row was asked for");
                let get = |name| self.layouts[3].get(&words, name);
                let err = self.temper.any_bad(cmd.iova, 64 * cmd.rows);
                let last = *row + 1 == cmd.rows;
                assert_eq!((get("tag"), get("row"), get("last")), (cmd.tag, (*row).into(), last.into()), "port {port}");
                assert_eq!(get("err") == 1, err);
                let data = self.layouts[3].get_words(&words, "data");
                let want = |at: u64| host_byte(cmd.function, cmd.iova + 64 * *row + at);
                assert!(err || (0..64).all(|at| (data[at as usize / 4] >> (8 * (at % 4))) as u8 == want(at)), "row data");
                *row += 1;
                if last {
                    self.rows[port].pop_front();
                    self.failed += u64::from(err);
                }
            }
        }
    }

    fn idle(&self) -> bool {
        self.flying.is_empty() && self.rows.iter().all(VecDeque::is_empty)
    }

    fn settle(&mut self, limit: u64) {
        let end = self.tb.cycles() + limit;
        while !self.idle() {
            assert!(self.tb.cycles() < end, "reads are missing");
            self.cycle();
        }
        assert_eq!(self.counted, [self.next_function, self.failed], "statistics");
    }

    /// Raises `quiesce`, waits, and checks that every command accepted before has been answered by the host.
    fn quiesce(&mut self) {
        let taken: Vec<u64> = self.small.iter().map(|(s, _)| s.taken()).chain([self.pay.taken()]).collect();
        self.tb.set("quiesce", 1);
        let end = self.tb.cycles() + 40_000;
        while self.tb.get("quiesced") == 0 {
            assert!(self.tb.cycles() < end, "never quiet");
            self.cycle();
        }
        for (sent, taken) in self.sent.iter().zip(taken) {
            for (function, beats) in &sent[..taken as usize] {
                assert_eq!(self.host.answered.get(function), Some(beats), "still in flight");
            }
        }
        self.tb.set("quiesce", 0);
        (0..3).for_each(|_| self.cycle());
        assert_eq!(self.tb.get("quiesced"), 0);
    }
}

/// Random commands on all ports; payload destinations follow each other byte by byte around the buffer.
fn random<const W: usize, const K: usize, const LK: usize>(name: &str, seed: u64, temper: Temper, stall: u32) {
    exercise(&mut Bench::<W, K, LK>::new(name, seed, temper, stall));
}

fn exercise<const W: usize, const K: usize, const LK: usize>(bench: &mut Bench<W, K, LK>) {
    exercise_with(bench, 250, 250);
}

/// So many reads of payload, and of all ports of small reads together.
fn exercise_with<const W: usize, const K: usize, const LK: usize>(bench: &mut Bench<W, K, LK>, mut payloads: u32, mut smalls: u32) {
    let mut dst = 0usize;
    let mut cycles = 0;
    while payloads > 0 || smalls > 0 {
        let slot = bench.tb.rng().below(64);
        if payloads > 0 && !bench.flying.contains_key(&slot) && bench.pay.pending() < 4 {
            let rng = bench.tb.rng();
            let most = [4096, 300, 64, 9][rng.below(4) as usize];
            let len = rng.range(1, most);
            let mut at = if rng.percent(50) { rng.range(0, 4096 - len) } else { 0 };
            if rng.percent(20) {
                // The end lies within the first beats behind the middle: a border where beats are narrow.
                at = (2048 + rng.range(1, 2 * K as u64)).saturating_sub(len);
            }
            let iova = rng.next_u64() << 12 | at;
            let gap = rng.below(3) as usize;
            if dst + len as usize + gap > bench.owner.len() {
                dst = 0;
            }
            let range = dst + gap..dst + gap + len as usize;
            if bench.owner[range.clone()].iter().all(Option::is_none) {
                bench.read(iova, len, range.start, slot);
                dst = range.end;
                payloads -= 1;
            }
        }
        let port = bench.tb.rng().below(bench.small.len() as u64) as usize;
        if smalls > 0 && bench.small[port].0.pending() < 4 && bench.tb.rng().percent(40) {
            let (iova, rows) = (bench.tb.rng().next_u64() >> 1 & !63, bench.tb.rng().range(1, 8));
            bench.read_small(port, iova, rows);
            smalls -= 1;
        }
        bench.cycle();
        cycles += 1;
        if cycles % 700 == 350 {
            bench.quiesce();
        }
        assert!(cycles < 400_000, "stuck");
    }
    bench.settle(60_000);
    bench.quiesce();
    // Nothing in flight before: commands accepted just now have to be waited for.
    for _ in 0..20 {
        let commands = bench.tb.rng().range(1, bench.small.len() as u64) as usize;
        for port in 0..commands {
            let iova = bench.tb.rng().next_u64() >> 1 & !63;
            bench.read_small(port, iova, 1);
        }
        bench.read(bench.temper.latency.0 << 12, 64, 0, 0);
        while bench.pay.pending() > 0 || bench.small.iter().any(|(source, _)| source.pending() > 0) {
            bench.cycle();
        }
        bench.quiesce();
        bench.settle(20_000);
    }
}

#[test]
fn random_reads_arrive_64() {
    random::<64, 8, 3>("dma_rd64", 1, Temper { latency: (1, 1000), bad: 20, shuffle: 256 }, 40);
    random::<64, 8, 3>("dma_rd64", 2, Temper { latency: (1, 1), bad: 0, shuffle: 256 }, 0);
}

/// With stalls inside the block, and a second life after a reset.
#[test]
fn random_reads_arrive_under_chaos_and_after_reset() {
    let tb = Tb::with_seed("dma_rd512_chaos", chaos::scoped(11, || block::<512, 64, 6>(ROCE)), 6);
    let mut bench = Bench::<512, 64, 6>::with(tb, ROCE.len(), Temper { latency: (1, 300), bad: 20, shuffle: 256 }, 20);
    exercise(&mut bench);
    bench.tb.reset();
    bench.tb.run(600);
    exercise(&mut bench);
}

#[test]
fn random_reads_arrive_512() {
    random::<512, 64, 6>("dma_rd512", 3, Temper { latency: (1, 1000), bad: 20, shuffle: 256 }, 40);
    random::<512, 64, 6>("dma_rd512", 4, Temper { latency: (1, 1), bad: 0, shuffle: 256 }, 0);
    random::<512, 64, 6>("dma_rd512", 5, Temper { latency: (1, 50), bad: 300, shuffle: 256 }, 10);
}

/// 64 payload reads of 4 KiB: cycles from the first address to the last byte written.
fn stream<const W: usize, const K: usize, const LK: usize>(name: &str, shuffle: usize, misalign: u64) -> u64 {
    let mut bench = Bench::<W, K, LK>::new(name, 7, Temper { latency: (250, 250), bad: 0, shuffle }, 0);
    let mut sent = 0;
    while sent < 64 || !bench.idle() {
        let dst = sent as usize % 15 * 4160;
        if sent < 64 && bench.owner[dst..dst + 4160].iter().all(Option::is_none) {
            bench.read(0x7000_0000 + (sent << 12) + misalign, 4096 - misalign, dst + 1, sent);
            sent += 1;
        }
        bench.cycle();
    }
    bench.last_write - bench.host.addresses[0]
}

#[test]
fn payload_flows_at_one_beat_per_cycle() {
    for (shuffle, misalign) in [(1, 0), (4, 0), (4, 3)] {
        let cycles = stream::<512, 64, 6>("dma_rd512", shuffle, misalign);
        assert!(cycles <= 64 * 64 * 103 / 100 + 260, "W=512: {cycles} cycles");
    }
    let cycles = stream::<64, 8, 3>("dma_rd64", 4, 1);
    assert!(cycles <= 64 * 512 * 103 / 100 + 260, "W=64: {cycles} cycles");
}

/// 1000 payload reads of one beat and a slow host: 256 in flight.
#[test]
fn short_payload_reads_pipeline() {
    let mut bench = Bench::<512, 64, 6>::new("dma_rd512", 8, Temper { latency: (1000, 1000), bad: 0, shuffle: 1 }, 0);
    let mut sent = 0;
    while sent < 1000 || !bench.idle() {
        // The slot number is the test's handle of a read, so 256 at once are known to it.
        let slot = sent % 256;
        if sent < 1000 && !bench.flying.contains_key(&slot) {
            bench.read(sent << 6, 64, slot as usize * 64, slot);
            sent += 1;
        }
        bench.cycle();
    }
    let cycles = bench.last_write - bench.host.addresses[0];
    assert!(cycles <= 1000 * 1020 / 256 + 1100, "{cycles} cycles");
    assert_eq!(bench.host.most, 256);
}

/// Small reads are served while payload saturates the bus, and a port nobody drains does not stop the others.
#[test]
fn small_reads_are_not_starved() {
    let mut bench = Bench::<512, 64, 6>::new("dma_rd512", 9, Temper { latency: (250, 250), bad: 0, shuffle: 1 }, 0);
    bench.small[1].1.set_stall(90);
    for i in 0..300 {
        bench.read_small(1, i << 9, 8);
    }
    let (mut sent, mut rows) = (0u64, 0);
    for _ in 0..8000 {
        let (slot, dst) = (sent % 64, sent as usize % 15 * 4096);
        if !bench.flying.contains_key(&slot) && bench.owner[dst..dst + 4096].iter().all(Option::is_none) {
            bench.read(sent << 12, 4096, dst, slot);
            sent += 1;
        }
        if bench.rows[3].is_empty() {
            bench.read_small(3, rows << 6, 1);
            rows += 1;
        }
        bench.cycle();
    }
    // Behind at most 15 payload reads of 64 beats each.
    assert!(rows >= 8000 / (250 + 15 * 64 + 60), "{rows} small reads");
    assert!(!bench.rows[1].is_empty());
    bench.small[1].1.set_stall(0);
    bench.settle(60_000);
}

/// Exact cycles of an idle block at W=512: command to address, last beat to row and to `PayDone`.
#[test]
fn an_idle_block_loses_no_time() {
    let mut tb = Tb::new("dma_rd512", block::<512, 64, 6>(ROCE));
    let ar = tb.sink_of("ar_", &["id", "addr", "len", "user"], 0);
    let r = tb.source_of("r_", &["id", "data", "resp", "last"], 0);
    let (cmd, row) = (tb.source("s_small$1", 0), tb.sink("m_small$1", 0));
    let (pay, done) = (tb.source("s_pay", 0), tb.sink("m_pay_done", 0));
    tb.run(600);
    for _ in 0..3 {
        cmd.push(Fields::of::<RdCmd>().pack(&[("iova", 0x1000), ("rows", 1)]));
        assert_eq!(tb.latency(&ar, 20), 2, "small read to address");
        let id = ar.pop_fields().expect("taken")[0].clone();
        r.push_fields(&[&id, &[7], &[0], &[1]]);
        assert_eq!(tb.latency(&row, 20), 6, "beat to row");
        pay.push(Fields::of::<PayCmd>().pack(&[("iova", 0x1000), ("len", 64)]));
        assert_eq!(tb.latency(&ar, 20), 2, "payload read to address");
        let id = ar.pop_fields().expect("taken")[0].clone();
        r.push_fields(&[&id, &[7], &[0], &[1]]);
        assert_eq!(tb.latency(&done, 20), 4, "beat to PayDone");
        tb.run(20);
    }
}

/// One-row reads of the send queue's port: 64 in flight.
#[test]
fn many_one_row_reads_are_in_flight() {
    let mut bench = Bench::<512, 64, 6>::new("dma_rd512", 10, Temper { latency: (250, 250), bad: 0, shuffle: 1 }, 0);
    for i in 0..640 {
        bench.read_small(1, i << 12 | 0xfc0, 1);
    }
    let start = bench.tb.cycles();
    bench.settle(10_000);
    let cycles = bench.tb.cycles() - start;
    assert_eq!(bench.host.most, 64);
    assert!(cycles <= 10 * 290 + 50, "{cycles} cycles");
}
