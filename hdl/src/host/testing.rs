//! What the tests of the queue units share: a small-read answerer over an endless host memory, and control accesses.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{CtlReq, CtlResp, RdCmd, RdRow};
use crate::tb::{Fields, Rng, Sink, Source, Tb};
use ferric_hdl_derive::{kernel, BlockNew};
use rust_hdl::prelude::*;
use std::collections::HashSet;

/// Contents of host memory: 64 bytes at an aligned address, a function of the address.
pub fn memory(iova: u64) -> Vec<u32> {
    Rng::new(iova ^ 0x5eed).words(512)
}

struct Read {
    rows: Vec<Vec<u32>>,
    ready_at: u64,
}

/// Answers `RdCmd`s with rows after 5 to 80 cycles, in any order across commands.
pub struct SmallReads {
    commands: Sink,
    rows: Source,
    reads: Vec<Read>,
    /// Answers come in the order of the commands.
    pub in_order: bool,
    /// The commands, address and rows, for a test that wants to see them.
    pub log: Vec<(u64, u64)>,
    /// 4 KiB pages whose reads fail.
    pub bad_pages: HashSet<u64>,
}

impl SmallReads {
    pub fn new(commands: Sink, rows: Source) -> SmallReads {
        SmallReads { commands, rows, reads: Vec::new(), in_order: false, log: Vec::new(), bad_pages: HashSet::new() }
    }

    /// Whether any of `rows` rows from `iova` cannot be read.
    pub fn fails(&self, iova: u64, rows: u64) -> bool {
        (0..rows).any(|r| self.bad_pages.contains(&((iova + 64 * r) >> 12)))
    }

    /// The two ports, for a test that answers itself.
    pub fn ports(&self) -> (Sink, Source) {
        (self.commands.clone(), self.rows.clone())
    }

    /// Nothing is on the way.
    pub fn idle(&self) -> bool {
        self.reads.is_empty() && self.rows.pending() == 0 && self.commands.is_empty()
    }

    /// To be called once per cycle.
    pub fn step(&mut self, tb: &mut Tb) {
        let (cmd, row) = (Fields::of::<RdCmd>(), Fields::of::<RdRow>());
        while let Some(c) = self.commands.pop() {
            let (iova, rows) = (cmd.get(&c, "iova") as u64, cmd.get(&c, "rows") as u64);
            assert!((1..=8).contains(&rows) && iova % 64 == 0, "read of {rows} rows from {iova:#x}");
            self.log.push((iova, rows));
            let err = self.fails(iova, rows);
            let ready_at = tb.cycles() + tb.rng().range(5, 80);
            let make = |r: u64| {
                let last = r + 1 == rows;
                let mut words = row.pack(&[("tag", cmd.get(&c, "tag")), ("row", r.into()), ("last", last.into()), ("err", err.into())]);
                row.set_words(&mut words, "data", &memory(iova + 64 * r));
                words
            };
            self.reads.push(Read { rows: (0..rows).map(make).collect(), ready_at });
        }
        if self.rows.pending() == 0 {
            let now = tb.cycles();
            let first = if self.in_order { 1 } else { self.reads.len() };
            if let Some(at) = self.reads.iter().take(first).position(|read| read.ready_at <= now) {
                self.reads.remove(at).rows.into_iter().for_each(|row| self.rows.push(row));
            }
        }
    }
}

/// One control access through ports `s_ctl` and `m_ctl`; `cycle` advances the bench. `None`: no such line.
pub struct Control {
    requests: Source,
    answers: Sink,
}

impl Control {
    pub fn new(tb: &mut Tb, stall: u32) -> Control {
        Control { requests: tb.source("s_ctl", stall), answers: tb.sink("m_ctl", stall) }
    }

    /// Queues a read or write of a word.
    pub fn ask(&self, line: u32, word: u32, write: Option<u32>) {
        self.requests.push(Fields::of::<CtlReq>().pack(&[("line", line.into()), ("word", word.into()), ("write", write.is_some().into()), ("data", write.unwrap_or(0).into())]));
    }

    /// The answer, if it is there; the inner `None` means no such line.
    pub fn answer(&self) -> Option<Option<u32>> {
        let layout = Fields::of::<CtlResp>();
        let answer = self.answers.pop()?;
        Some((layout.get(&answer, "err") == 0).then(|| layout.get(&answer, "data") as u32))
    }
}

/// A table of one word: every word of every line is the same register, which begins with `first`.
#[derive(LogicBlock, BlockNew)]
#[given(first: u64)]
pub struct Register {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    value: DFF<Bits<32>>,
    old: DFF<Bits<32>>,
    answers: DFF<Bit>,
    #[init(Constant::new(first.into()))]
    first: Constant<Bits<32>>,
}

#[kernel]
impl Logic for Register {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, value, old, answers);
        self.s_ctl.ready.next = !self.answers.q.val();
        self.m_ctl.valid.next = self.answers.q.val();
        self.m_ctl.data.next.data = self.old.q.val();
        self.m_ctl.data.next.err = false;
        if self.s_ctl.valid.val() & !self.answers.q.val() {
            self.answers.d.next = true;
            self.old.d.next = self.value.q.val();
            if self.s_ctl.data.val().write {
                self.value.d.next = self.s_ctl.data.val().data;
            }
        }
        if self.answers.q.val() & self.m_ctl.ready.val() {
            self.answers.d.next = false;
        }
        if self.reset.val() {
            self.answers.d.next = false;
            self.value.d.next = self.first.val();
        }
    }
}
