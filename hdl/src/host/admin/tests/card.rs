//! Tables, host memory and pipelines as far as the admin engine sees them.

use crate::assembly::{Table, TableName};
use crate::host::admin::model::World;
use crate::host::admin::program::Sizes;
use crate::host::csr::word;
use crate::stats;
use ferric_abi::csr::{space, FLOW_COMMAND, NEIGHBOUR_LINE, STATIONS};
use std::collections::{HashMap, HashSet, VecDeque};

/// What the engine did to the outside, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Control { space: u8, line: u32, word: u8, write: Option<u32> },
    Fetch { function: u32, iova: u64 },
    Write { function: u32, iova: u64, line: [u32; 16] },
    Error { port: u32, qpn: u32, epoch: u8 },
    Barrier,
    Quiesce { writes: bool },
    Invalidate,
    Clean,
}

/// The rest of the card and the host.
pub struct Card {
    lines_of: [u32; 256],
    words_of: [u8; 256],
    pub tables: HashMap<(u8, u32, u8), u32>,
    pub commands: HashMap<u64, [u32; 32]>,
    pub lines: HashMap<u64, [u32; 16]>,
    pub unreadable: HashSet<u64>,
    pub unwritable: HashSet<u64>,
    pub log: Vec<Event>,
    pub enabled: Vec<bool>,
    pub soft_reset: Vec<bool>,
    pub producer: Vec<u32>,
    /// Functions that are to have a turn, and the one behind that which had the last.
    due: Vec<bool>,
    first: usize,
    pub raw_qpn: u32,
    /// Commands counted as refused, by function.
    pub refused: Vec<u32>,
    /// Reads of a requester's line until the key unit has answered the local operation under way.
    pub answer_in: u32,
    /// What reads of the flow tables' state say next; then that all is well.
    pub flow_answers: VecDeque<u32>,
}

pub const COUNTERS: u32 = 24;

/// The tables in the order of their numbers on the control bus, none of which is the one that hosts know; more than 16 of them.
pub fn tables() -> Vec<Table> {
    let known = [
        space::ADDRESS,
        space::STATS,
        space::MR,
        space::STATION,
        space::SQ,
        space::REQ,
        space::PATH,
        space::CQ,
        space::EQ,
        space::RSP,
        space::MCAST,
        space::RQ,
        space::PAUSE,
        space::TUNNEL,
        space::FLOW,
        space::RAW,
    ];
    let others = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"].map(TableName::Own);
    let names = known[..6].iter().map(|space| TableName::Known(*space)).chain(others).chain(known[6..].iter().map(|space| TableName::Known(*space)));
    names.map(|name| Table { name, part: "", instance: String::new() }).collect()
}

impl Card {
    pub fn new(sizes: Sizes) -> Self {
        let functions = 1 << sizes.functions;
        let (mut lines_of, mut words_of) = ([0; 256], [0; 256]);
        let tables = [
            (space::SQ, 1 << sizes.qp, 8),
            (space::RQ, 2 << sizes.qp, 8),
            (space::REQ, 1 << sizes.qp, 13),
            (space::RSP, 1 << sizes.qp, 16),
            (space::PATH, 1 << sizes.qp, 16),
            (space::CQ, 1 << sizes.cq, 8),
            (space::EQ, 1 << sizes.eq, 8),
            (space::MR, 1 << sizes.mr, 12),
            // Of each function; looked at apart.
            (space::STATS, u32::MAX, 4),
            (space::MCAST, 64, 8),
            (space::STATION, STATIONS << sizes.functions, 2),
            (space::PAUSE, 1, 6),
            (space::TUNNEL, 65, 24),
            (space::FLOW, 128, 32),
            (space::RAW, 1 << sizes.functions, 1),
            (space::ADDRESS, NEIGHBOUR_LINE + (1 << sizes.functions), 6),
        ];
        for (space, lines, words) in tables {
            lines_of[space as usize] = lines;
            words_of[space as usize] = words;
        }
        Self {
            lines_of,
            words_of,
            tables: HashMap::new(),
            commands: HashMap::new(),
            lines: HashMap::new(),
            unreadable: HashSet::new(),
            unwritable: HashSet::new(),
            log: Vec::new(),
            enabled: vec![true; functions],
            soft_reset: vec![false; functions],
            producer: vec![0; functions],
            due: vec![false; functions],
            first: 0,
            raw_qpn: 0,
            refused: vec![0; functions],
            answer_in: 0,
            flow_answers: VecDeque::new(),
        }
    }

    /// Ring of function `f`; the carry out of the low half is part of the test.
    pub fn ring(f: usize) -> u64 {
        [0x1_0000_1000, 0x7_ffff_ff80, 0x3000, 0xffff_0000_ffff_0000][f % 4] + 0x100_0000_0000 * (f as u64 / 4)
    }
    pub fn completions(f: usize) -> u64 {
        [0x2_0000_1000, 0x9_ffff_ffc0, 0x8000, 0xffff_0001_ffff_0000][f % 4] + 0x100_0000_0000 * (f as u64 / 4)
    }
    /// log2 of the slots of both rings.
    pub fn log_size(f: usize) -> u32 {
        [3, 5, 1, 10][f % 4]
    }

    /// There is something new in the registers of function `f`.
    pub fn tell(&mut self, f: usize) {
        self.due[f] = true;
    }
    pub fn enable(&mut self, f: usize, on: bool) {
        self.enabled[f] = on;
        self.tell(f);
    }
    /// Whose turn it is.
    fn turn(&self) -> Option<usize> {
        let functions = self.due.len();
        (0..functions).map(|n| (self.first + n) % functions).find(|f| self.due[*f])
    }

    pub fn word(&self, space: u8, line: u32, word: u8) -> u32 {
        self.tables.get(&(space, line, word)).copied().unwrap_or(0)
    }
    pub fn set(&mut self, space: u8, line: u32, word: u8, value: u32) {
        self.tables.insert((space, line, word), value);
    }

    /// Writes to the table `of` since event `start`: line, word and value.
    pub fn written(&self, of: u8, start: usize) -> Vec<(u32, u8, u32)> {
        let write = |e: &Event| match e {
            Event::Control { space, line, word, write: Some(value) } if *space == of => Some((*line, *word, *value)),
            _ => None,
        };
        self.log[start..].iter().filter_map(write).collect()
    }
}

impl World for Card {
    fn control(&mut self, table: u8, line: u32, word: u8, write: Option<u32>) -> (u32, bool) {
        let space = match tables().get(usize::from(table)).map(|t| t.name) {
            Some(TableName::Known(space)) => space,
            other => panic!("nobody asks for table {table}, {other:?}"),
        };
        self.log.push(Event::Control { space, line, word, write });
        // The block that has the addresses says of words, too, that they do not exist; what it answers then means nothing.
        let uncounted = space == space::STATS && (line % (1 << stats::FUNCTION_AT) >= COUNTERS || line >> stats::FUNCTION_AT >= self.enabled.len() as u32);
        if uncounted || line >= self.lines_of[space as usize] || space == space::ADDRESS && word >= self.words_of[space as usize] {
            return (0xdead_beef, true);
        }
        let local = ferric_abi::context::ReqCtx::LAYOUT.field("local").expect("a field of it").offset;
        if (space, u32::from(word)) == (space::REQ, local as u32 / 32) && self.answer_in > 0 {
            self.answer_in -= 1;
            if self.answer_in == 0 {
                let value = self.word(space, line, word) & !(3 << (local % 32));
                self.set(space, line, word, value);
            }
        }
        if (space, line, word, write) == (space::FLOW, FLOW_COMMAND, 0, None) {
            return (self.flow_answers.pop_front().unwrap_or(0), false);
        }
        let old = self.word(space, line, word);
        if let Some(value) = write {
            assert!(word < self.words_of[space as usize], "write beyond the line: {space} {line} {word}");
            self.set(space, line, word, value);
        }
        (old, false)
    }

    fn register(&mut self, function: u32, number: u32) -> u32 {
        let f = function as usize;
        match number {
            0 => Card::ring(f) as u32,
            1 => (Card::ring(f) >> 32) as u32,
            2 => Card::completions(f) as u32,
            3 => (Card::completions(f) >> 32) as u32,
            word::SIZE => Card::log_size(f),
            word::PRODUCER => self.producer[f],
            word::STATE => u32::from(self.enabled[f]) << word::ENABLED | u32::from(self.soft_reset[f]) << word::RESETTING,
            _ => self.turn().map_or(0, |f| 1 << word::DUE | f as u32),
        }
    }

    fn fetch(&mut self, function: u32, iova: u64) -> ([u32; 32], bool) {
        self.log.push(Event::Fetch { function, iova });
        (self.commands.get(&iova).copied().unwrap_or([0; 32]), self.unreadable.contains(&iova))
    }

    fn write(&mut self, function: u32, iova: u64, line: [u32; 16]) -> bool {
        self.log.push(Event::Write { function, iova, line });
        let failed = self.unwritable.contains(&iova);
        if !failed {
            self.lines.insert(iova, line);
        }
        failed
    }

    fn output(&mut self, function: u32, port: u32, value: u32) {
        match port {
            0 => self.raw_qpn = value,
            2 => self.log.extend([Event::Invalidate, Event::Clean]),
            4 => self.refused[function as usize] += 1,
            5 => {
                assert!(self.due[function as usize], "out of turn");
                self.due[function as usize] = false;
                self.first = function as usize + 1;
            }
            6 => self.tell(function as usize),
            _ => self.soft_reset[function as usize] = false,
        }
    }

    /// The engines do at once what they are told.
    fn error(&mut self, port: u32, qpn: u32, epoch: u8) {
        self.log.push(Event::Error { port, qpn, epoch });
        let space = if port % 2 == 0 { space::REQ } else { space::RSP };
        let word = self.word(space, qpn, 0);
        assert!(port % 2 == 0 && port > 0 || word >> 24 == u32::from(epoch), "epoch of the error");
        if port != 3 && port > 1 {
            let state = match port {
                2 => 4,
                _ => 3,
            };
            return self.set(space::REQ, qpn, 0, self.word(space::REQ, qpn, 0) & !7 | state);
        }
        if port == 3 {
            assert_eq!(word & 7, 0, "only a queue pair that has been reset");
            let held = ferric_abi::context::RspCtx::LAYOUT.field("rq_handle").expect("a field of it").offset;
            let value = self.word(space, qpn, (held / 32) as u8) & !(0xff << (held % 32));
            self.set(space, qpn, (held / 32) as u8, value);
            let message = ferric_abi::context::RspCtx::LAYOUT.field("in_msg").expect("a field of it").offset;
            return self.set(space, qpn, 0, self.word(space, qpn, 0) & !(3 << message));
        }
        self.set(space, qpn, 0, word & !7 | 6);
    }

    fn barrier(&mut self) {
        self.log.push(Event::Barrier);
    }

    fn quiesce(&mut self, writes: bool) {
        self.log.push(Event::Quiesce { writes });
    }
}
