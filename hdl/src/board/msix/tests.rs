//! Writes pass unchanged, messages come behind them, the table does what the specification says.

use super::*;
use crate::tb::{Sink, Source, Tb};

struct Bench {
    tb: Tb,
    aw: Source,
    w: Source,
    b: Sink,
    m_aw: Sink,
    m_w: Sink,
    m_b: Source,
    msix: Source,
    tbl: (Source, Source, Sink, Source, Sink),
    /// Answers given to `m`, in order: response and whether it is a message's.
    answers: Vec<(u32, bool)>,
    /// Addresses and beats at `m`, in order.
    seen: Vec<(u64, Vec<Vec<u32>>)>,
    open: Vec<(u64, u32, Vec<Vec<u32>>)>,
}

/// Messages go there; the core's writes do not.
const MESSAGES: u64 = 0xfee0_0000;

impl Bench {
    fn new(stall: u32) -> Bench {
        let mut tb = Tb::new("ferric_msix_w512", Msix::<512, 64>::default());
        let tbl = (
            tb.source_of("tbl_aw_", &["addr"], stall),
            tb.source_of("tbl_w_", &["data", "strb"], stall),
            tb.sink_of("tbl_b_", &["resp"], stall),
            tb.source_of("tbl_ar_", &["addr"], stall),
            tb.sink_of("tbl_r_", &["data", "resp"], stall),
        );
        Bench {
            aw: tb.source_of("s_aw_", &["addr", "len"], stall),
            w: tb.source_of("s_w_", &["data", "strb", "last"], stall),
            b: tb.sink_of("s_b_", &["resp"], stall),
            m_aw: tb.sink_of("m_aw_", &["addr", "len"], stall),
            m_w: tb.sink_of("m_w_", &["data", "strb", "last"], stall),
            m_b: tb.source_of("m_b_", &["resp"], stall),
            msix: tb.source("msix", stall),
            tbl,
            tb,
            answers: Vec::new(),
            seen: Vec::new(),
            open: Vec::new(),
        }
    }

    /// A cycle; the memory takes what comes and answers in order.
    fn cycle(&mut self) {
        self.tb.cycle();
        if let Some(at) = self.m_aw.pop() {
            self.open.push((u64::from(at[0]) | u64::from(at[1]) << 32, at[2], Vec::new()));
        }
        if !self.open.is_empty() {
            if let Some(beat) = self.m_w.pop() {
                let last = beat[18] == 1;
                let (addr, len, beats) = &mut self.open[0];
                beats.push(beat);
                assert_eq!(last, beats.len() as u32 == *len + 1, "the last beat of the write to {addr:x}");
                if last {
                    let (addr, _, beats) = self.open.remove(0);
                    let resp = self.tb.rng().below(4) as u32;
                    self.answers.push((resp, addr >> 20 == MESSAGES >> 20));
                    self.m_b.push(resp);
                    self.seen.push((addr, beats));
                }
            }
        }
    }

    fn write(&mut self, addr: u32, data: u32) {
        let before = self.tbl.2.len();
        self.tbl.0.push(addr);
        self.tbl.1.push_fields(&[&[data], &[15]]);
        (0..2000)
            .find(|_| {
                self.cycle();
                self.tbl.2.len() > before
            })
            .unwrap_or_else(|| panic!("no answer to a write of the table"));
    }

    fn read(&mut self, addr: u32) -> u32 {
        self.tbl.3.push(addr);
        (0..2000)
            .find_map(|_| {
                self.cycle();
                self.tbl.4.pop()
            })
            .unwrap_or_else(|| panic!("no answer to a read of the table"))[0]
    }

    fn set_up(&mut self) {
        for vector in 0..32 {
            let at = vector * 16;
            self.write(at, MESSAGES as u32 + vector * 4);
            self.write(at + 4, 0);
            self.write(at + 8, 0x4000 + vector);
            self.write(at + 12, 0);
        }
        self.tb.set("enable", 1);
    }

    /// Messages seen: vectors, in order.
    fn messages(&self) -> Vec<u32> {
        let ours = self.seen.iter().filter(|(addr, _)| addr >> 20 == MESSAGES >> 20);
        ours.map(|(addr, beats)| {
            let vector = (addr & 0xff) as u32 / 4;
            let lane = (addr % 64 / 4) as usize;
            let beat = &beats[0];
            assert_eq!(beats.len(), 1);
            assert_eq!(beat[lane], 0x4000 + vector);
            assert_eq!(u64::from(beat[16]) | u64::from(beat[17]) << 32, 15 << (addr % 64));
            vector
        })
        .collect()
    }
}

#[test]
fn the_table_reads_as_written_and_starts_masked() {
    let mut b = Bench::new(20);
    for vector in 0..32 {
        assert_eq!(b.read(vector * 16 + 12), 1);
    }
    let mut words = Vec::new();
    for at in 0..128 {
        let word = b.tb.rng().next_u32();
        b.write(at * 4, word);
        words.push(if at % 4 == 3 { word & 1 } else { word });
    }
    // Half a word changes nothing.
    b.tbl.0.push(0u32);
    b.tbl.1.push_fields(&[&[0x5555_5555], &[3]]);
    for (at, word) in words.iter().enumerate() {
        assert_eq!(b.read(at as u32 * 4), *word, "word {at}");
    }
    assert_eq!((b.read(0x200), b.read(0x1000), b.read(0x1004), b.read(0x1ffc)), (0, 0, 0, 0));
}

#[test]
fn masked_and_disabled_vectors_wait() {
    let mut b = Bench::new(0);
    b.set_up();
    b.write(5 * 16 + 12, 1);
    for vector in [5u64, 7, 5] {
        b.msix.push(vector << 12);
    }
    // Another function, and a vector that does not exist.
    b.msix.push(1u64 | 3 << 12);
    b.msix.push(32u64 << 12);
    (0..100).for_each(|_| b.cycle());
    assert_eq!((b.messages(), b.read(0x1000)), (vec![7], 1 << 5));
    b.write(5 * 16 + 12, 0);
    (0..100).for_each(|_| b.cycle());
    assert_eq!((b.messages(), b.read(0x1000)), (vec![7, 5], 0));
    for (port, held) in [("enable", 0), ("mask", 1)] {
        b.tb.set(port, held);
        (0..5).for_each(|_| b.cycle());
        b.msix.push(9u64 << 12);
        (0..100).for_each(|_| b.cycle());
        assert_eq!(b.read(0x1000), 1 << 9);
        let before = b.messages().len();
        b.tb.set(port, 1 - held);
        (0..100).for_each(|_| b.cycle());
        assert_eq!((b.messages().len(), b.read(0x1000)), (before + 1, 0));
    }
}

fn traffic(stall: u32) {
    let mut b = Bench::new(stall);
    b.set_up();
    let mut writes: Vec<(u64, Vec<Vec<u32>>)> = Vec::new();
    // For each request: how many writes were accepted before it.
    let (mut asked, mut taken) = (Vec::new(), 0);
    let mut queue: Vec<u32> = Vec::new();
    for n in 0..9000 {
        if writes.len() < 400 && b.aw.pending() < 4 && b.tb.rng().percent(30) {
            let addr = (writes.len() as u64) << 32 | 0x1000;
            let len = b.tb.rng().below(4) as u32;
            b.aw.push_fields(&[&[addr as u32, (addr >> 32) as u32], &[len]]);
            let beats: Vec<Vec<u32>> = (0..=len).map(|i| [b.tb.rng().words(512), b.tb.rng().words(64), vec![u32::from(i == len)]].concat()).collect();
            beats.iter().for_each(|beat| b.w.push_fields(&[&beat[..16], &beat[16..18], &beat[18..]]));
            writes.push((addr, beats));
        }
        if n < 8000 && b.msix.pending() == 0 && b.tb.rng().percent(3) {
            let vector = b.tb.rng().below(32) as u32;
            b.msix.push(u64::from(vector) << 12);
            queue.push(vector);
        }
        let accepted = b.aw.taken() as usize;
        b.cycle();
        if b.msix.taken() > taken {
            taken = b.msix.taken();
            asked.push((queue.remove(0), accepted));
        }
    }
    assert_eq!((b.aw.pending(), b.w.pending(), writes.len()), (0, 0, 400));
    // The core's writes, unchanged and in order.
    let own: Vec<_> = b.seen.iter().filter(|(addr, _)| addr >> 20 != MESSAGES >> 20).cloned().collect();
    assert!(own == writes);
    // Every request has a message behind all writes before it; one may stand for several.
    b.messages();
    let mut before = 0;
    let sent: Vec<(u32, usize)> = b
        .seen
        .iter()
        .filter_map(|(addr, _)| {
            let message = addr >> 20 == MESSAGES >> 20;
            before += usize::from(!message);
            message.then_some(((addr & 0xff) as u32 / 4, before))
        })
        .collect();
    assert!(asked.len() > 100 && sent.len() <= asked.len() && sent.len() * 2 > asked.len(), "{} of {}", sent.len(), asked.len());
    for (vector, accepted) in &asked {
        assert!(sent.iter().any(|(v, after)| v == vector && after >= accepted), "vector {vector} behind {accepted} writes");
    }
    // Answers of the core's writes come back, those of messages do not.
    let wanted: Vec<u64> = b.answers.iter().filter(|(_, message)| !message).map(|(resp, _)| u64::from(*resp)).collect();
    let got: Vec<u64> = std::iter::from_fn(|| b.b.pop_u64()).collect();
    assert_eq!(got, wanted);
}

#[test]
fn messages_pass_no_write_and_writes_pass_unchanged() {
    traffic(0);
    traffic(30);
}
