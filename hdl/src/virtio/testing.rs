//! What the blocks' tests share: a guest's memory, and who answers the engine's small reads from it.
use crate::msg::{RdCmd, RdRow};
use crate::tb::{Fields, Sink, Source, Tb};
use ferric_model::virtio::{Memory, Unmapped};
use std::collections::{HashMap, HashSet, VecDeque};

const PAGE: u64 = 4096;

/// Memory of pages that come as they are touched, but for those that cannot be reached.
#[derive(Default)]
pub struct Guest {
    pages: HashMap<u64, Vec<u8>>,
    pub unmapped: HashSet<u64>,
}

impl Guest {
    pub fn byte(&mut self, at: u64) -> &mut u8 {
        &mut self.pages.entry(at / PAGE).or_insert_with(|| vec![0; PAGE as usize])[(at % PAGE) as usize]
    }

    pub fn put(&mut self, at: u64, bytes: &[u8]) {
        bytes.iter().enumerate().for_each(|(i, byte)| *self.byte(at + i as u64) = *byte);
    }

    pub fn get(&mut self, at: u64, bytes: usize) -> Vec<u8> {
        (0..bytes as u64).map(|i| *self.byte(at + i)).collect()
    }

    pub fn word(&mut self, at: u64) -> u16 {
        u16::from_le_bytes([*self.byte(at), *self.byte(at + 1)])
    }

    pub fn reaches(&self, at: u64, bytes: u64) -> bool {
        u128::from(at) + u128::from(bytes) <= 1 << 64 && (at / PAGE..=(at + (bytes.max(1) - 1)) / PAGE).all(|page| !self.unmapped.contains(&page))
    }
}

impl Memory for Guest {
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), Unmapped> {
        let found = self.reaches(at, into.len() as u64).then(|| self.get(at, into.len())).ok_or(Unmapped)?;
        into.copy_from_slice(&found);
        Ok(())
    }

    fn write(&mut self, at: u64, from: &[u8]) -> Result<(), Unmapped> {
        self.reaches(at, from.len() as u64).then(|| self.put(at, from)).ok_or(Unmapped)
    }
}

/// Answers reads of up to eight rows, of one page, through ports `m_rd` and `s_row`, 2 to 60 cycles after they come. What was there when they came is the answer.
pub struct Rows {
    commands: Sink,
    rows: Source,
    due: VecDeque<(u64, Vec<u32>)>,
    /// Function whose reads they have to be.
    pub function: u64,
}

impl Rows {
    pub fn new(tb: &mut Tb, stall: u32, function: u64) -> Self {
        Self { commands: tb.sink("m_rd", stall), rows: tb.source("s_row", stall), due: VecDeque::new(), function }
    }

    /// Once per cycle.
    pub fn step(&mut self, tb: &mut Tb, guest: &mut Guest) {
        let (command, row) = (Fields::of::<RdCmd>(), Fields::of::<RdRow>());
        while let Some(c) = self.commands.pop() {
            let [iova, rows, function, tag] = ["iova", "rows", "function", "tag"].map(|name| command.get(&c, name) as u64);
            assert!((1..=8).contains(&rows) && iova % 64 == 0 && iova % PAGE + 64 * rows <= PAGE && function == self.function, "read of {rows} rows at {iova:#x} by {function}");
            let mut at = tb.cycles() + tb.rng().range(2, 60);
            for n in 0..rows {
                let from = iova + 64 * n;
                let good = guest.reaches(from, 64);
                let bytes = if good { guest.get(from, 64) } else { tb.rng().bytes(64) };
                let mut words = row.pack(&[("tag", tag.into()), ("last", (n + 1 == rows).into()), ("err", (!good).into())]);
                let data: Vec<u32> = bytes.chunks(4).map(|w| w.iter().rev().fold(0, |x, b| x << 8 | u32::from(*b))).collect();
                row.set_words(&mut words, "data", &data);
                self.due.push_back((at, words));
                // One behind the other, with pauses.
                at += u64::from(tb.rng().percent(30)) * tb.rng().below(20);
            }
        }
        while self.due.front().is_some_and(|(at, _)| *at <= tb.cycles()) {
            let Some((_, words)) = self.due.pop_front() else { break };
            self.rows.push(words);
        }
    }
}
