//! What the page-table cache keeps, and what it fetches before it is asked for.
use super::tests::line_writes;
use super::MemoryKeys;
use crate::msg::{CtlReq, MrReq, MrResp, RdCmd, RdRow};
use crate::tb::{Fields, Sink, Source, Tb};
use ferric_abi::context::MrCtx;
use std::collections::VecDeque;

pub(super) const START: u64 = 0x10_0010;
const PAGE: u64 = 4096;
/// A megabyte that does not begin with a page: 33 lines, the last of one entry.
const PAGES: u64 = 257;
/// A region of 21 pages: its third line has five entries.
const SMALL: u64 = 4;
/// One of 2,048 lines: as many as the cache has places for twice over.
pub(super) const LARGE: u64 = 5;
/// One of more lines than can be cached.
const HUGE: u64 = 6;

pub(super) fn table(region: u64) -> u64 {
    region << 32
}

pub(super) struct Bench {
    pub tb: Tb,
    ports: [Source; 2],
    pub answers: [Sink; 2],
    rd: Sink,
    rows: Source,
    pub due: VecDeque<(u64, Vec<u32>)>,
    /// Cycles until the host answers a read.
    latency: u64,
    /// Tables whose reads fail.
    pub failing: Vec<u64>,
    /// Reads seen: cycle, address.
    pub reads: Vec<(u64, u64)>,
    /// What the block has counted of accesses that waited for their line, and of lines fetched ahead.
    pub waited: u64,
    pub early: u64,
    /// Added to the page that an entry names.
    pub shift: u64,
}

impl Bench {
    /// Regions 1 to 3, all of one size, a small one, a large one and a huge one, on ports that stall in so many cycles of a hundred.
    pub fn new(stalls: u32) -> Self {
        let mut tb = Tb::new("mr", MemoryKeys::<4, 9, 4>::default());
        let ctl = Fields::of::<CtlReq>();
        let (ctl_req, ctl_resp) = (tb.source("s_ctl", 0), tb.sink("m_ctl", 0));
        for region in 1..7 {
            let length = match region {
                SMALL => 20 * PAGE,
                LARGE => 64 << 20,
                HUGE => 1 << 50,
                _ => 1 << 20,
            };
            let mr = MrCtx::default().with_valid(true).with_remote_write(true).with_start(START).with_length(length).with_table(table(region));
            line_writes(&ctl, region.into(), &mr).into_iter().for_each(|w| ctl_req.push(w));
        }
        tb.run_until(5000, |_| ctl_resp.len() == 72);
        tb.run(600);
        let ports = [tb.source("s_req$0", stalls), tb.source("s_req$1", stalls)];
        let answers = [tb.sink("m_resp$0", stalls), tb.sink("m_resp$1", stalls)];
        let (rd, rows) = (tb.sink("m_rd", stalls), tb.source("s_rd", stalls));
        Self { tb, ports, answers, rd, rows, due: VecDeque::new(), latency: 250, failing: Vec::new(), reads: Vec::new(), waited: 0, early: 0, shift: 0 }
    }

    /// One cycle. The page of entry `n` of a table is the table's number and `n`; 2^29 entries further begins the table of the next number.
    pub fn cycle(&mut self) {
        let (cmd, row) = (Fields::of::<RdCmd>(), Fields::of::<RdRow>());
        self.tb.cycle();
        let now = self.tb.cycles();
        let counted = self.tb.get("stat");
        self.waited += counted >> 2 & 1;
        self.early += counted >> 7 & 1;
        while let Some(c) = self.rd.pop() {
            let at = cmd.get(&c, "iova") as u64;
            self.reads.push((now, at));
            let mut answer = row.pack(&[("tag", cmd.get(&c, "tag")), ("last", 1), ("err", self.failing.contains(&at).into())]);
            let first = ((at >> 32) << 12 | (at as u32 as u64) >> 3) + self.shift;
            let words: Vec<u32> = (first..first + 8).flat_map(|page| [(page as u32) << 12 | 1, (page >> 20) as u32]).collect();
            row.set_words(&mut answer, "data", &words);
            self.due.push_back((now + self.latency, answer));
        }
        while self.due.front().is_some_and(|d| d.0 <= now) {
            self.rows.push(self.due.pop_front().expect("just seen").1);
        }
    }

    pub fn ask(&mut self, port: usize, region: u64, page: u64) {
        let va = (START / PAGE + page) * PAGE + 0x10;
        self.ports[port].push(Fields::of::<MrReq>().pack(&[("key", (region << 8).into()), ("va", va.into()), ("access", 4)]));
    }

    /// Takes an answer if there is one; it must be of this page.
    pub fn take(&mut self, port: usize, region: u64, page: u64) -> bool {
        let resp = Fields::of::<MrResp>();
        let Some(got) = self.answers[port].pop() else { return false };
        let want = (((region + (page >> 29)) << 12 | (page % (1 << 29))) + self.shift) << 12 | 0x10;
        assert_eq!((resp.get(&got, "status"), resp.get(&got, "iova")), (0, want.into()), "region {region}, page {page}, seed {}", self.tb.seed());
        true
    }

    /// One page after the other, each as soon as the one before is answered, at least `pace` cycles apart. The most cycles that an answer took.
    pub fn walk(&mut self, port: usize, region: u64, pages: std::ops::Range<u64>, pace: u64) -> u64 {
        let mut worst = 0;
        for page in pages {
            let begun = self.tb.cycles();
            self.ask(port, region, page);
            while !self.take(port, region, page) {
                self.cycle();
                assert!(self.tb.cycles() < begun + 2000, "no answer, seed {}", self.tb.seed());
            }
            worst = worst.max(self.tb.cycles() - begun);
            while self.tb.cycles() < begun + pace {
                self.cycle();
            }
        }
        worst
    }
}

/// Their last lines lie where other regions' first lines do.
#[test]
fn regions_of_a_size_keep_their_lines() {
    let mut b = Bench::new(0);
    for region in 1..4 {
        b.walk(1, region, 0..PAGES, 1);
    }
    let cold = b.reads.len();
    assert_eq!(cold, 3 * 33);
    for region in [2, 3, 1, 3] {
        assert!(b.walk(1, region, 0..PAGES, 1) <= 6);
    }
    assert_eq!(b.reads.len(), cold, "fetched again");
}

/// DMA at line rate, 64 cycles a page, waits for the first line and for no other; nothing behind the region's end is read.
#[test]
fn a_walk_waits_for_its_first_line() {
    let mut b = Bench::new(0);
    b.walk(1, 2, 0..1, 1);
    assert!(b.walk(1, 2, 1..PAGES, 64) < 70);
    b.tb.run(600);
    assert_eq!((b.waited, b.early, b.reads.len()), (1, 32, 33));
    assert!(b.reads.iter().all(|r| (table(2)..table(2) + 33 * 64).contains(&r.1)));
}

/// Neither at its end nor by an access behind that.
#[test]
fn nothing_behind_a_region_is_fetched() {
    let mut b = Bench::new(0);
    b.walk(1, SMALL, 0..21, 300);
    b.ask(1, SMALL, 22);
    (0..600).for_each(|_| b.cycle());
    let refused = b.answers[1].pop().expect("an answer");
    assert_eq!(Fields::of::<MrResp>().get(&refused, "status"), 3);
    assert_eq!(b.reads.iter().map(|r| r.1).collect::<Vec<_>>(), [0, 64, 128].map(|at| table(SMALL) + at));
}

/// A query for the line that is on its way asks for no second read, and does not wait longer than it takes.
#[test]
fn a_line_on_its_way_is_waited_for() {
    let mut b = Bench::new(0);
    b.walk(0, 1, 0..3, 1);
    while b.reads.len() < 2 {
        b.cycle();
    }
    let begun = b.reads[1].0;
    b.walk(0, 1, 8..9, 1);
    assert!(b.tb.cycles() <= begun + 260);
    assert_eq!(b.reads.iter().map(|r| r.1).collect::<Vec<_>>(), [table(1), table(1) + 64]);
}

/// A line that was asked for before an invalidation and comes long after it is fetched again.
#[test]
fn what_is_on_its_way_is_invalidated_too() {
    let mut b = Bench::new(0);
    b.latency = 1500;
    b.walk(0, 1, 0..3, 1);
    while b.reads.len() < 2 {
        b.cycle();
    }
    b.tb.set("invalidate", 1);
    b.cycle();
    b.tb.set("invalidate", 0);
    (0..3000).for_each(|_| b.cycle());
    b.walk(0, 1, 8..9, 1);
    assert_eq!(b.reads.iter().filter(|r| r.1 == table(1) + 64).count(), 2);
}

/// Two walks at once and a third that goes anywhere, with stalls on all sides: every answer is right, and few reads are waited for.
#[test]
fn walks_at_once() {
    let mut b = Bench::new(25);
    let mut open: [VecDeque<(u64, u64)>; 2] = Default::default();
    let (mut next, mut done) = ([0u64; 2], 0);
    while done < 2 * PAGES {
        for port in 0..2 {
            if next[port] < PAGES && open[port].len() < 4 && b.tb.rng().below(40) == 0 {
                // Port 1 wanders now and then.
                let wild = port == 1 && b.tb.rng().below(8) == 0;
                let (region, page) = if wild { (3, b.tb.rng().below(PAGES)) } else { (1 + port as u64, next[port]) };
                next[port] += u64::from(!wild);
                done -= u64::from(wild && done > 0);
                b.ask(port, region, page);
                open[port].push_back((region, page));
            }
        }
        b.cycle();
        for port in 0..2 {
            if let Some(&(region, page)) = open[port].front() {
                if b.take(port, region, page) {
                    open[port].pop_front();
                    done += 1;
                }
            }
        }
        assert!(b.tb.cycles() < 200_000, "stuck after {done}, seed {}", b.tb.seed());
    }
    let early = b.early;
    assert!(early > 40, "{early} of {} fetched ahead, seed {}", b.reads.len(), b.tb.seed());
}

/// Once it says that it is clean, a table is not read for what was asked before: its pages are the program's again.
#[test]
fn clean_means_that_no_table_is_read() {
    for wait in 0..40 {
        let mut b = Bench::new(0);
        // The last page of a line leads to the next line, the one behind is being fetched.
        b.ask(0, 1, 6);
        b.ask(1, 2, 6);
        while b.answers[0].is_empty() || b.answers[1].is_empty() {
            b.cycle();
        }
        (0..wait).for_each(|_| b.cycle());
        b.tb.set("invalidate", 1);
        b.cycle();
        b.tb.set("invalidate", 0);
        b.cycle();
        let mut swept = 0;
        while b.tb.get("clean") == 0 {
            b.cycle();
            swept += 1;
        }
        assert!(swept < 400, "{swept} cycles");
        assert!(b.due.is_empty(), "a read is under way, {wait} cycles behind the answers");
        let reads = b.reads.len();
        (0..600).for_each(|_| b.cycle());
        assert_eq!((b.reads.len(), b.tb.get("clean")), (reads, 1), "{wait} cycles behind the answers");
    }
}

/// Lines from 2^29 on are read for each who asks: they are not taken for nearer lines whose numbers are the same in the tags, nor those for them, and none is fetched ahead.
#[test]
fn far_lines_are_not_cached() {
    let mut b = Bench::new(0);
    let far = 1 << 32;
    for page in [1, far + 1, 9, far + 9, 1, far + 1, far + 2, 9, far << 5 | 1, 2] {
        b.walk(1, HUGE, page..page + 1, 1);
    }
    assert_eq!(b.reads.len(), 2 + 5, "{:x?}", b.reads);
    // The last line that is cached is followed by one that is not, of the first one's tag.
    b.walk(1, HUGE, far - 8..far, 64);
    b.walk(1, HUGE, 1..8, 64);
    (0..300).for_each(|_| b.cycle());
    assert_eq!((b.reads.len(), b.early), (2 + 5 + 1, 0), "{:x?}", b.reads);
    // Both ports ask for the same far line at once: each reads it.
    b.ask(0, HUGE, far + 17);
    b.ask(1, HUGE, far + 18);
    for (port, page) in [(0, far + 17), (1, far + 18)] {
        while !b.take(port, HUGE, page) {
            b.cycle();
        }
    }
    b.walk(0, HUGE, 17..18, 1);
    assert_eq!(b.reads.len(), 8 + 3);
    // Nor is one fetched ahead where no nearer line of its tag is at hand.
    let mut b = Bench::new(0);
    b.walk(1, HUGE, far - 8..far, 64);
    (0..300).for_each(|_| b.cycle());
    assert_eq!((b.reads.len(), b.early), (1, 0), "{:x?}", b.reads);
}
