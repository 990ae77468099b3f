//! `DmaWrite` between random clients and a random host. Every command writes addresses of its own, so that what lies in
//! host memory when its `WrDone` comes, and what is left at the end, can be checked byte by byte.

mod clients;

use super::*;
use crate::host::dma::border;
use crate::host::dma::host_model::{host_byte, Temper, WriteHost};
use crate::stream::chaos;
use crate::tb::{AxisSource, Fields, Sink, Source, Tb};
use std::collections::VecDeque;

#[derive(Clone, Copy)]
struct Write {
    iova: u64,
    function: u64,
    len: u64,
    tag: u128,
}

/// The clients of a RoCE card: admin, events, completions, answers.
const ROCE: usize = 4;

struct Bench<const W: usize, const K: usize, const LK: usize> {
    tb: Tb,
    temper: Temper,
    host: WriteHost,
    data: AxisSource,
    /// Ports of small writes; payload is the one behind them.
    smalls: usize,
    commands: Vec<Source>,
    done: Vec<Sink>,
    flying: Vec<VecDeque<Write>>,
    all: Vec<Vec<Write>>,
    layouts: [Fields; 3],
    counted: [u64; 2],
    failed: u64,
    next_function: u64,
    /// Pages of the bursts that the host has not answered.
    open: VecDeque<u64>,
    /// Pages on which somebody relies on having them alone.
    alone: Vec<u64>,
    /// Handshakes of AW, and of last beats on W.
    addresses: u64,
    bursts: u64,
}

impl<const W: usize, const K: usize, const LK: usize> Bench<W, K, LK> {
    fn new(name: &str, seed: u64, temper: Temper, stall: u32) -> Self {
        Self::of(ROCE, name, seed, temper, stall)
    }

    fn of(smalls: usize, name: &str, seed: u64, temper: Temper, stall: u32) -> Self {
        Self::with(Tb::with_seed(name, for_number::<W, K, LK>(smalls), seed), smalls, temper, stall)
    }

    fn with(mut tb: Tb, smalls: usize, temper: Temper, stall: u32) -> Self {
        let host = WriteHost::new(&mut tb, K, temper, stall);
        let data = tb.axis_source("s_data", stall);
        let mut commands: Vec<_> = (0..smalls).map(|i| tb.source(&format!("s_small${i}"), stall)).collect();
        commands.push(tb.source("s_cmd", stall));
        let mut done: Vec<_> = (0..smalls).map(|i| tb.sink(&format!("m_small_done${i}"), stall)).collect();
        done.push(tb.sink("m_cmd_done", stall));
        let layouts = [Fields::of::<WrCmd>(), Fields::of::<WrSmall>(), Fields::of::<WrDone>()];
        let (flying, all) = (vec![VecDeque::new(); smalls + 1], vec![Vec::new(); smalls + 1]);
        let (counted, failed, next_function) = ([0; 2], 0, 0);
        let (addresses, bursts, open, alone) = (0, 0, VecDeque::new(), Vec::new());
        ["atomic_hold", "atomic_begin", "atomic_end"].iter().for_each(|pulse| tb.set(pulse, 0));
        Bench { tb, temper, host, data, smalls, commands, done, flying, all, layouts, counted, failed, next_function, open, alone, addresses, bursts }
    }

    /// A command with its data; the bytes are those a read of the same function and address would give.
    fn write(&mut self, port: usize, iova: u64, len: u64) -> Write {
        self.next_function += 1;
        assert!(self.next_function < 4096, "one function per command");
        let (function, tag) = (self.next_function, self.tb.rng().below(256).into());
        let write = Write { iova, function, len, tag };
        let values = [("iova", iova.into()), ("function", function.into()), ("len", len.into()), ("tag", tag)];
        let layout = &self.layouts[usize::from(port < self.smalls)];
        let mut words = layout.pack(&values);
        if port < self.smalls {
            let mut data = self.tb.rng().words(512);
            for at in 0..len as usize {
                let (word, shift) = (&mut data[at / 4], 8 * (at % 4));
                *word = *word & !(0xff << shift) | u32::from(host_byte(function, iova + at as u64)) << shift;
            }
            layout.set_words(&mut words, "data", &data);
        }
        self.commands[port].push(words);
        self.flying[port].push_back(write);
        self.all[port].push(write);
        write
    }

    /// The payload of `write`, aligned as the mover aligns it.
    fn feed(&mut self, write: Write) {
        let (k, end) = (K as u64, write.iova + write.len);
        let mut at = write.iova & !(k - 1);
        while at < end {
            let inside = |addr: u64| addr >= write.iova && addr < end;
            let bytes: Vec<u8> = (at..at + k).map(|addr| host_byte(write.function, addr)).collect();
            let keep = (0..K).fold(0, |x, lane| x | u128::from(inside(at + lane as u64)) << lane);
            self.data.push_beat(&bytes, keep, at + k >= end);
            at += k;
        }
    }

    fn pay(&mut self, iova: u64, len: u64) {
        let write = self.write(self.smalls, iova, len);
        self.feed(write);
    }

    fn cycle(&mut self) {
        self.host.step(self.tb.cycles());
        self.tb.begin();
        let stat = self.tb.get("stat");
        (0..2).for_each(|i| self.counted[i] += stat >> i & 1);
        let [aw_valid, aw_ready, w_valid, w_ready, w_last] = ["aw_valid", "aw_ready", "w_valid", "w_ready", "w_last"].map(|port| self.tb.get(port));
        assert!(w_valid == 0 || self.bursts < self.addresses + aw_valid, "data without an address");
        self.addresses += aw_valid & aw_ready;
        if aw_valid & aw_ready == 1 {
            let page = self.tb.get("aw_addr") >> 12;
            assert!(!self.alone.contains(&page), "a write to a page that is held");
            self.open.push_back(page);
        }
        if self.tb.get("b_valid") & self.tb.get("b_ready") == 1 {
            self.open.pop_front().expect("an answer to nothing");
        }
        self.bursts += w_valid & w_ready & w_last;
        self.tb.end();
        for port in 0..=self.smalls {
            while let Some(words) = self.done[port].pop() {
                let write = self.flying[port].pop_front().expect("answered once");
                let get = |name| self.layouts[2].get(&words, name);
                let err = self.temper.any_bad(write.iova, write.len);
                assert_eq!((get("tag"), get("err") == 1), (write.tag, err), "port {port}");
                self.failed += u64::from(err);
                for addr in write.iova..write.iova + write.len {
                    let byte = self.host.memory.remove(&addr);
                    assert_eq!(byte, Some(host_byte(write.function, addr)), "address {addr:#x}, port {port}");
                }
            }
        }
    }

    fn idle(&self) -> bool {
        self.flying.iter().all(VecDeque::is_empty)
    }

    fn settle(&mut self, limit: u64) {
        let end = self.tb.cycles() + limit;
        while !self.idle() {
            assert!(self.tb.cycles() < end, "writes are missing");
            self.cycle();
        }
        assert!(self.host.memory.is_empty(), "bytes nobody asked to write");
        assert_eq!(self.counted, [self.next_function, self.failed], "statistics");
        // Each port's writes in its own order.
        for port in &self.all {
            let mut addresses = self.host.order.clone();
            addresses.dedup();
            addresses.retain(|function| port.iter().any(|write| write.function == *function));
            assert_eq!(addresses, port.iter().map(|write| write.function).collect::<Vec<_>>());
        }
    }

    fn quiesce(&mut self) {
        let taken: Vec<_> = self.commands.iter().map(|source| source.taken() as usize).collect();
        self.tb.set("quiesce", 1);
        let end = self.tb.cycles() + 40_000;
        while self.tb.get("quiesced") == 0 {
            assert!(self.tb.cycles() < end, "never quiet");
            self.cycle();
        }
        for (port, taken) in self.all.iter().zip(taken) {
            for write in &port[..taken] {
                let bursts = 1 + usize::from(write.iova >> border(LK) != (write.iova + write.len - 1) >> border(LK));
                assert_eq!(self.host.answered(write.function), bursts, "still in flight");
            }
        }
        self.tb.set("quiesce", 0);
        (0..3).for_each(|_| self.cycle());
        assert_eq!(self.tb.get("quiesced"), 0);
    }
}

fn random<const W: usize, const K: usize, const LK: usize>(name: &str, seed: u64, temper: Temper, stall: u32) {
    exercise(&mut Bench::<W, K, LK>::new(name, seed, temper, stall));
}

fn exercise<const W: usize, const K: usize, const LK: usize>(bench: &mut Bench<W, K, LK>) {
    let (mut payloads, mut smalls, mut cycles) = (200, 300, 0);
    while payloads > 0 || smalls > 0 {
        if payloads > 0 && bench.commands[bench.smalls].pending() < 4 {
            let rng = bench.tb.rng();
            let most = [4096, 300, 64, 9][rng.below(4) as usize];
            let len = rng.range(1, most);
            let mut at = if rng.percent(50) { rng.range(0, 4096 - len) } else { 0 };
            if rng.percent(20) {
                // The end lies within the first beats behind the middle: a border where beats are narrow.
                at = (2048 + rng.range(1, 2 * K as u64)).saturating_sub(len);
            }
            let page = rng.next_u64() >> 1 << 12;
            bench.pay(page | at, len);
            payloads -= 1;
        }
        let port = bench.tb.rng().below(bench.smalls as u64) as usize;
        if smalls > 0 && bench.commands[port].pending() < 4 && bench.tb.rng().percent(40) {
            let len = [8, 16, 32, 64][bench.tb.rng().below(4) as usize];
            let iova = bench.tb.rng().next_u64() & !(len - 1);
            bench.write(port, iova, len);
            smalls -= 1;
        }
        bench.cycle();
        cycles += 1;
        if cycles % 700 == 350 {
            bench.quiesce();
        }
        assert!(cycles < 400_000, "stuck");
    }
    bench.settle(200_000);
    bench.quiesce();
}

#[test]
fn random_writes_arrive_64() {
    random::<64, 8, 3>("dma_wr64", 1, Temper { latency: (1, 1000), bad: 20, shuffle: 1 }, 40);
    random::<64, 8, 3>("dma_wr64", 2, Temper { latency: (1, 1), bad: 0, shuffle: 1 }, 0);
}

/// With stalls inside the block, and a second life after a reset.
#[test]
fn random_writes_arrive_under_chaos_and_after_reset() {
    let tb = Tb::with_seed("dma_wr512_chaos", chaos::scoped(12, || for_number::<512, 64, 6>(ROCE)), 6);
    let mut bench = Bench::<512, 64, 6>::with(tb, ROCE, Temper { latency: (1, 300), bad: 20, shuffle: 1 }, 20);
    exercise(&mut bench);
    bench.tb.reset();
    exercise(&mut bench);
}

#[test]
fn random_writes_arrive_512() {
    random::<512, 64, 6>("dma_wr512", 3, Temper { latency: (1, 1000), bad: 20, shuffle: 1 }, 40);
    random::<512, 64, 6>("dma_wr512", 4, Temper { latency: (1, 1), bad: 0, shuffle: 1 }, 0);
    random::<512, 64, 6>("dma_wr512", 5, Temper { latency: (1, 50), bad: 300, shuffle: 1 }, 10);
}

const LATE: Temper = Temper { latency: (250, 250), bad: 0, shuffle: 1 };

/// 64 payload writes of 4 KiB: cycles from the first address to the last beat.
fn stream<const W: usize, const K: usize, const LK: usize>(name: &str, misalign: u64) -> u64 {
    let mut bench = Bench::<W, K, LK>::new(name, 7, LATE, 0);
    for page in 0..64 {
        bench.pay((page << 12) + misalign, 4096 - misalign);
    }
    bench.settle(64 * 4096 / K as u64 * 2 + 1000);
    bench.host.last - bench.host.first.unwrap_or(0)
}

#[test]
fn payload_flows_at_one_beat_per_cycle() {
    for misalign in [0, 5] {
        let cycles = stream::<512, 64, 6>("dma_wr512", misalign);
        assert!(cycles <= 64 * 64 * 103 / 100 + 20, "W=512: {cycles} cycles");
    }
    let cycles = stream::<64, 8, 3>("dma_wr64", 3);
    assert!(cycles <= 64 * 512 * 103 / 100 + 20, "W=64: {cycles} cycles");
}

/// One-beat commands on all ports, one per cycle, more than 200 in flight.
#[test]
fn short_writes_flow_at_one_per_cycle() {
    let mut bench = Bench::<512, 64, 6>::new("dma_wr512", 8, LATE, 0);
    for i in 0..400 {
        for port in 0..ROCE {
            bench.write(port, (5 * i + port as u64) << 6, 64);
        }
        bench.pay((5 * i + 4) << 6, 64);
    }
    bench.settle(10_000);
    let cycles = bench.host.last - bench.host.first.unwrap_or(0);
    assert!(cycles <= 2000 * 105 / 100 + 20, "{cycles} cycles");
}

/// A payload command's address is on AW two cycles after the command, its data come when they come; so do writes behind it.
#[test]
fn an_address_does_not_wait_for_its_data() {
    let mut bench = Bench::<512, 64, 6>::new("dma_wr512", 9, LATE, 0);
    let late = bench.write(ROCE, 0x1000, 100);
    (0..3).for_each(|_| bench.cycle());
    assert_eq!((bench.addresses, bench.bursts), (1, 0), "command, choice, address");
    bench.write(1, 0x8000, 16);
    (0..600).for_each(|_| bench.cycle());
    assert_eq!((bench.flying[1].len(), bench.flying[ROCE].len()), (1, 1));
    bench.feed(late);
    bench.settle(1000);
}

/// AXI: data must not wait for AWREADY (but do wait for their own AWVALID).
#[test]
fn data_do_not_wait_for_address_ready() {
    let mut tb = Tb::new("dma_wr64", for_number::<64, 8, 3>(ROCE));
    let (layout, small, w) = (Fields::of::<WrSmall>(), tb.source("s_small$0", 0), tb.sink_of("w_", &["strb", "last"], 0));
    (0..3).for_each(|i| small.push(layout.pack(&[("iova", 64 * i), ("len", 64)])));
    for bursts in 1..=3 {
        tb.set("aw_ready", 0);
        tb.run(50);
        assert_eq!((tb.get("aw_valid"), w.taken()), (1, 8 * bursts));
        tb.set("aw_ready", 1);
        tb.cycle();
    }
}

/// Who holds a page may begin once all payload in front has landed, and from then on has the page alone.
#[test]
fn payload_keeps_off_held_pages() {
    const PAGES: usize = 64;
    // A bus that stalls more: commands wait in front of it, and pages are held meanwhile.
    for (seed, stall) in [(1, 20), (2, 50), (3, 70)] {
        let mut bench = Bench::<512, 64, 6>::new("dma_wr_w512", seed, Temper { latency: (20, 90), bad: 0, shuffle: 1 }, stall);
        // The last looks like the first: waiting for either is as good.
        let page = |n: u64| if n == PAGES as u64 - 1 { 0x4_2310 } else { 0x1_2340 + n };
        let fold = |page: u64| (page ^ page >> 12 ^ page >> 24) & 0xfff;
        let (mut waiting, mut held) = (VecDeque::new(), VecDeque::new());
        let (mut begun, mut refused, mut at) = (0, 0, [0u64; PAGES]);
        for round in 0..15_000u64 {
            let busy = bench.flying[ROCE].len() < 40 && bench.next_function < 4000;
            if busy && bench.tb.rng().percent(40) {
                let n = bench.tb.rng().below(PAGES as u64);
                // Every byte once: 4 KiB pages of as many functions.
                let len = 1 + bench.tb.rng().below(200);
                at[n as usize] = (at[n as usize] + 256) % 3840;
                bench.pay(page(n) << 12 | at[n as usize], len);
            }
            // Now and then as many as there may be.
            let often = if round % 2000 < 300 { 40 } else { 3 };
            let holds = waiting.len() + held.len() < UNDER_WAY && bench.tb.rng().percent(often);
            let begins = bench.tb.get("atomic_clear") == 1 && bench.tb.rng().percent(30);
            let ends = !held.is_empty() && bench.tb.rng().percent(8);
            let n = bench.tb.rng().below(PAGES as u64);
            bench.tb.set("atomic_hold", holds.into());
            bench.tb.set("atomic_page", fold(page(n)));
            bench.tb.set("atomic_begin", begins.into());
            bench.tb.set("atomic_end", ends.into());
            if ends {
                held.pop_front();
            }
            if begins {
                let page: u64 = waiting.pop_front().expect("somebody waits");
                assert!(!bench.open.contains(&page), "round {round}, seed {seed}: a write to the page has not landed");
                held.push_back(page);
                begun += 1;
            }
            if holds {
                waiting.push_back(page(n));
            }
            refused += usize::from(!waiting.is_empty() && !begins);
            bench.alone = held.iter().copied().collect();
            bench.cycle();
        }
        ["atomic_hold", "atomic_begin"].iter().for_each(|pulse| bench.tb.set(pulse, 0));
        while waiting.len() + held.len() > 0 {
            let begins = bench.tb.get("atomic_clear") == 1;
            bench.tb.set("atomic_begin", begins.into());
            bench.tb.set("atomic_end", (!held.is_empty()).into());
            held.pop_front();
            if begins {
                held.push_back(waiting.pop_front().expect("somebody waits"));
            }
            bench.alone = held.iter().copied().collect();
            bench.cycle();
            assert!(bench.tb.cycles() < 50_000, "a hold that may not begin");
        }
        bench.tb.set("atomic_begin", 0);
        bench.tb.set("atomic_end", 0);
        bench.settle(20_000);
        assert!(begun > 50 && refused > 500 && bench.next_function > 300, "too tame: {begun} {refused} {}", bench.next_function);
    }
}
