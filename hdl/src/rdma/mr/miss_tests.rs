//! Many page-table lines on their way at once.
use super::cache_tests::{table, Bench, LARGE};
use crate::msg::MrResp;
use crate::tb::Fields;
use std::collections::{BTreeMap, VecDeque};

/// Lines that may be on their way in these benches.
const MOST: usize = 16;
/// Pages of a line.
const LINE: u64 = 8;

/// Accesses to these pages at once on a port; the answers in their order.
fn burst(b: &mut Bench, port: usize, region: u64, pages: &[u64]) {
    pages.iter().for_each(|page| b.ask(port, region, *page));
    for page in pages {
        let begun = b.tb.cycles();
        while !b.take(port, region, *page) {
            b.cycle();
            assert!(b.tb.cycles() < begun + 3000, "no answer, seed {}", b.tb.seed());
        }
    }
}

/// As many reads as there may be are made before the first is answered, and no more; each is answered in one round trip and little more.
#[test]
fn lines_are_fetched_side_by_side() {
    let mut b = Bench::new(0);
    let begun = b.tb.cycles();
    let pages: Vec<u64> = (0..20).map(|n| n * LINE).collect();
    burst(&mut b, 0, 1, &pages);
    assert!(b.tb.cycles() < begun + 2 * 250 + 200, "{} cycles", b.tb.cycles() - begun);
    let before = b.reads.iter().filter(|r| r.0 < b.reads[0].0 + 250).count();
    assert_eq!((before, b.reads.len(), b.waited), (MOST, 20, 20), "{:?}", b.reads);
}

/// One port's answers that are there do not wait for the other's lines, as long as a read may begin.
#[test]
fn the_other_port_goes_on() {
    let mut b = Bench::new(0);
    b.walk(1, 2, 0..1, 1);
    for n in 0..MOST as u64 {
        b.ask(0, 1, n * LINE);
    }
    (0..20).for_each(|_| b.cycle());
    let worst = b.walk(1, 2, 0..1, 1).max(b.walk(1, 2, 1..2, 1));
    assert!(worst < 60, "{worst} cycles");
    assert!(b.answers[0].is_empty(), "the lines are still on their way");
    // With all reads under way and one more wanted, a port waits until the first row comes, and not for the last.
    for n in MOST as u64..3 * MOST as u64 - 1 {
        b.ask(0, 1, n % 32 * LINE + 1);
    }
    let worst = b.walk(1, 2, 0..1, 1);
    assert!(worst < 320, "{worst} cycles");
}

/// Who comes to a line that is on its way waits for the same read, on either port, for any of its pages.
#[test]
fn a_line_is_read_once_for_all_who_wait() {
    let mut b = Bench::new(0);
    let pages = [3, 0, 9, 1, 7, 15, 2, 8, 4];
    for page in pages {
        b.ask(0, 1, page);
        b.ask(1, 1, page ^ 1);
    }
    let mut open = [VecDeque::from(pages), VecDeque::from(pages.map(|p| p ^ 1))];
    while open.iter().any(|o| !o.is_empty()) {
        b.cycle();
        for (port, open) in open.iter_mut().enumerate() {
            if open.front().is_some_and(|page| b.take(port, 1, *page)) {
                open.pop_front();
            }
        }
        assert!(b.tb.cycles() < 5000, "stuck: {open:?}");
    }
    let lines: Vec<u64> = b.reads.iter().map(|r| (r.1 - table(1)) / 64).collect();
    assert_eq!(lines.iter().filter(|n| **n < 2).count(), 2, "{lines:?}");
}

/// Rows that fail fail those who wait for them and nobody else; the line is asked for again by the next one.
#[test]
fn a_failed_row_fails_its_own() {
    let mut b = Bench::new(20);
    let bad = |line: u64| line % 3 == 1;
    b.failing = (0..33).filter(|n| bad(*n)).map(|n| table(1) + n * 64).collect();
    let mut seen = BTreeMap::<bool, u32>::new();
    for round in 0..2 {
        let pages: Vec<u64> = (0..120).map(|n| n * 37 % 257).collect();
        let mut open: [VecDeque<u64>; 2] = Default::default();
        for (n, page) in pages.iter().enumerate() {
            b.ask(n % 2, 1, *page);
            open[n % 2].push_back(*page);
        }
        let begun = b.tb.cycles();
        while open.iter().any(|o| !o.is_empty()) {
            b.cycle();
            for (port, open) in open.iter_mut().enumerate() {
                let Some(got) = b.answers[port].pop() else { continue };
                let page = open.pop_front().expect("an answer nobody asked for");
                let status = Fields::of::<MrResp>().get(&got, "status");
                // Behind the failed row of an earlier access the line may be on its way again: it fails again.
                assert_eq!(status, if bad(page / LINE) { 6 } else { 0 }, "page {page}, round {round}, seed {}", b.tb.seed());
                if status == 0 {
                    let want = ((1 << 12 | page) << 12 | 0x10).into();
                    assert_eq!(Fields::of::<MrResp>().get(&got, "iova"), want, "page {page}, seed {}", b.tb.seed());
                }
                *seen.entry(status == 0).or_default() += 1;
            }
            assert!(b.tb.cycles() < begun + 40_000, "stuck, seed {}", b.tb.seed());
        }
    }
    assert!(seen[&true] > 50 && seen[&false] > 50, "{seen:?}");
}

/// Four lines that share a slot of two ways, all on their way: the third and fourth have none, and are right all the same.
#[test]
fn lines_without_a_slot_are_used_once() {
    let mut b = Bench::new(0);
    // In a large region lines 512 apart share a slot.
    let pages = [0, 512, 1024, 1536, 512, 1024].map(|line: u64| line * LINE);
    burst(&mut b, 0, LARGE, &pages);
    burst(&mut b, 1, LARGE, &pages);
    let again = b.reads.len();
    assert!((4..=12).contains(&again), "{again} reads");
}

/// An invalidation while lines are on their way: when the cache is clean none is, and what is asked for afterwards is read anew, through more rounds than the tags count.
#[test]
fn an_invalidation_ends_all_that_is_on_its_way() {
    let mut b = Bench::new(10);
    for round in 0..140u64 {
        let pages: Vec<u64> = (0..6).map(|n| (round % 3 + n) * LINE % 256).collect();
        for page in &pages {
            b.ask((round % 2) as usize, 1, *page);
        }
        let wait = b.tb.rng().below(60);
        (0..wait).for_each(|_| b.cycle());
        b.tb.set("invalidate", 1);
        b.cycle();
        b.tb.set("invalidate", 0);
        b.cycle();
        let begun = b.tb.cycles();
        while b.tb.get("clean") == 0 {
            b.cycle();
            assert!(b.tb.cycles() < begun + 2000, "never clean, round {round}, seed {}", b.tb.seed());
        }
        assert!(b.due.is_empty(), "a read is under way, round {round}, seed {}", b.tb.seed());
        // Those that had not been looked up when it came may be right by either table: it has not changed yet.
        for page in &pages {
            while !b.take((round % 2) as usize, 1, *page) {
                b.cycle();
                assert!(b.tb.cycles() < begun + 6000, "no answer, round {round}, seed {}", b.tb.seed());
            }
        }
        b.tb.set("invalidate", 1);
        b.cycle();
        b.tb.set("invalidate", 0);
        b.cycle();
        while b.tb.get("clean") == 0 {
            b.cycle();
        }
        b.shift += 1;
        let reads = b.reads.len();
        burst(&mut b, (round % 2) as usize, 1, &pages[..2]);
        assert!(b.reads.len() > reads, "not read anew, round {round}");
        // A line that nobody has touched for as long as the count of rounds goes round.
        if round % 32 == 0 {
            burst(&mut b, 0, 1, &[31 * LINE]);
        }
    }
}

/// What nobody waits for is read only while there are reads enough: with eight of sixteen under way a walk fetches nothing ahead.
#[test]
fn lines_ahead_leave_reads_to_those_who_wait() {
    let mut b = Bench::new(0);
    b.walk(1, 2, 0..2, 1);
    let pages: Vec<u64> = (0..MOST as u64 / 2).map(|n| n * LINE).collect();
    pages.iter().for_each(|page| b.ask(0, 1, *page));
    (0..60).for_each(|_| b.cycle());
    b.walk(1, 2, 2..5, 1);
    assert_eq!((b.early, b.reads.len()), (0, 1 + MOST / 2));
    for page in pages {
        while !b.take(0, 1, page) {
            b.cycle();
        }
    }
    b.walk(1, 2, 5..6, 1);
    (0..20).for_each(|_| b.cycle());
    assert_eq!(b.early, 1);
}

/// Whoever looks a line up in any cycle around that in which it comes is answered, and reads it no second time.
#[test]
fn a_line_that_comes_is_seen() {
    let mut b = Bench::new(0);
    for n in 0..24 {
        b.ask(0, LARGE, n * LINE);
        let before = b.reads.len();
        while b.reads.len() == before {
            b.cycle();
        }
        let asked = b.reads[before].0;
        while b.tb.cycles() < asked + 238 + n {
            b.cycle();
        }
        b.walk(1, LARGE, n * LINE + 1..n * LINE + 2, 1);
        while !b.take(0, LARGE, n * LINE) {
            b.cycle();
        }
    }
    assert_eq!(b.reads.len(), 24);
}
