//! Commands out of words, the sweep over all tables, the port and the counters.
use super::{Program, EGRESS};
use crate::host::testing::Control;
use crate::switch::flows::STATS;
use crate::switch::local::Told;
use crate::tb::{Fields, Tb};
use ferric_abi::context::{FlowCounts, FlowPortCtx};
use ferric_abi::csr::{
    FLOW_ANSWER, FLOW_BINDS_AT, FLOW_BUSY, FLOW_CLOSE, FLOW_COMMAND, FLOW_COUNTS, FLOW_EGRESS, FLOW_FORGET, FLOW_GROUPS_AT, FLOW_NOW, FLOW_PORT, FLOW_REFUSED, FLOW_SENDERS, FLOW_SIZES,
};
use ferric_abi::switch::{table, FlowCommand};

/// Commands of a whole sweep: seven tables, four ways, 64 lines.
const SWEEP: usize = 7 * 4 * 64;

struct Bench {
    tb: Tb,
    control: Control,
    /// What the tables are told, and whether they refuse.
    told: Vec<FlowCommand>,
    refuses: bool,
    awaits: bool,
}

impl Bench {
    fn new() -> Self {
        let mut tb = Tb::new("flow_program", Program::<6, 3, 5, 2, 12>::default());
        let control = Control::new(&mut tb, 20);
        Bench { tb, control, told: Vec::new(), refuses: false, awaits: false }
    }

    fn cycle(&mut self) {
        // In the cycle behind that of the command.
        let refused = std::mem::replace(&mut self.awaits, self.tb.get("write") == 1) && self.refuses;
        // Either may know it.
        let other = self.tb.rng().percent(50);
        self.tb.set("refused", (refused || other).into());
        self.tb.set("refused_out", (refused || !other).into());
        self.tb.cycle();
        if self.tb.get("write") == 1 {
            let bytes: Vec<u8> = self.tb.get_wide("command").iter().flat_map(|w| w.to_le_bytes()).collect();
            self.told.push(FlowCommand(bytes.try_into().expect("128")));
        }
    }

    fn access(&mut self, line: u32, word: u32, value: Option<u32>) -> u32 {
        self.control.ask(line, word, value);
        for _ in 0..200 {
            self.cycle();
            if let Some(answer) = self.control.answer() {
                return answer.expect("a line");
            }
        }
        panic!("no answer");
    }

    fn status(&mut self) -> u32 {
        self.access(FLOW_COMMAND, 0, None)
    }

    /// Until all tables are empty.
    fn ready(&mut self) {
        while self.status() & FLOW_BUSY != 0 {}
    }

    fn give(&mut self, command: &FlowCommand) -> u32 {
        let word = |n: usize| u32::from_le_bytes(command.0[4 * n..4 * n + 4].try_into().expect("four"));
        self.access(FLOW_COMMAND, 1, Some(word(1)));
        for n in 0..28 {
            self.access(FLOW_COMMAND, 2 + n as u32, Some(word(4 + n)));
        }
        self.access(FLOW_COMMAND, 0, Some(word(0)));
        self.status()
    }

    fn whole_sweep(&mut self) {
        assert_eq!(self.told.len(), SWEEP);
        let mut seen: Vec<_> = self.told.drain(..).map(|c| (c.opcode(), c.table(), c.way(), c.line())).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), SWEEP, "each line of each way once");
        assert!(seen.iter().all(|(opcode, name, way, line)| *opcode == table::CLEAR && [1, 2, 3, 5, 7, 8, 10].contains(name) && *way < 4 && *line < 64));
    }
}

#[test]
fn commands_are_whole() {
    let mut b = Bench::new();
    b.ready();
    b.told.clear();
    for n in 0..20 {
        let mut command = FlowCommand::default();
        let noise = b.tb.rng().bytes(128);
        command.0.copy_from_slice(&noise);
        // The tables look neither at `signal` nor at `seq`.
        command.0[8..16].fill(0);
        b.refuses = n % 3 == 0;
        let status = b.give(&command);
        assert_eq!((b.told.len(), status), (1, if b.refuses { FLOW_REFUSED } else { 0 }));
        assert_eq!(b.told.pop(), Some(command));
    }
    assert_eq!(b.access(FLOW_COMMAND, FLOW_SIZES, None), 6 | 2 << FLOW_GROUPS_AT | 3 << FLOW_BINDS_AT);
    // What nobody listens to does nothing.
    for (line, word) in [(FLOW_COUNTS, 0), (FLOW_ANSWER, 0), (FLOW_PORT, 1), (FLOW_PORT, FLOW_CLOSE)] {
        b.access(line, word, Some(u32::MAX));
    }
    assert_eq!((b.told.len(), b.status(), b.access(FLOW_PORT, 0, None)), (0, 0, 0));
}

/// Whose right to send goes, for one cycle; the tables do not notice.
#[test]
fn functions_are_closed() {
    let mut b = Bench::new();
    b.ready();
    b.told.clear();
    for function in [3, 0, 63, 0xfff] {
        b.control.ask(FLOW_COMMAND, FLOW_CLOSE, Some(function | 0xf000));
        let mut closed = Vec::new();
        for _ in 0..60 {
            b.cycle();
            if b.tb.get("close") == 1 {
                closed.push(b.tb.get("closed"));
            }
            b.control.answer();
        }
        assert_eq!(closed, [u64::from(function)]);
    }
    assert_eq!((b.told.len(), b.status()), (0, 0));
}

#[test]
fn tables_are_emptied() {
    let mut b = Bench::new();
    // Out of reset, then by command, then by a reset in the middle of that.
    b.ready();
    b.tb.reset();
    b.told.clear();
    b.ready();
    b.whole_sweep();
    b.refuses = true;
    b.access(FLOW_COMMAND, FLOW_FORGET, Some(0));
    assert_eq!(b.status() & FLOW_BUSY, FLOW_BUSY);
    b.ready();
    b.whole_sweep();
    assert_eq!(b.status(), 0, "what names nothing while the tables are emptied is nobody's fault");
    b.access(FLOW_COMMAND, FLOW_FORGET, Some(0));
    b.told.clear();
    b.access(FLOW_COMMAND, FLOW_FORGET, Some(0));
    b.told.drain(..).for_each(drop);
    b.tb.reset();
    b.told.clear();
    b.ready();
    b.whole_sweep();
}

#[test]
fn port_and_counters() {
    let mut b = Bench::new();
    b.ready();
    let port = FlowPortCtx::default().with_valid(true).with_drop_miss(true).with_class(2).with_generation(3).with_bridge(true);
    let word = u32::from_le_bytes(port.0);
    b.access(FLOW_PORT, 0, Some(word));
    assert_eq!((b.access(FLOW_PORT, 0, None), b.tb.get("port")), (word, word.into()));
    assert_eq!(STATS.to_vec(), FlowCounts::LAYOUT.fields.iter().map(|f| f.name).collect::<Vec<_>>());
    for n in 0..STATS.len() {
        b.tb.set("stat", 1 << n);
        (0..=n).for_each(|_| b.cycle());
        b.tb.set("stat", 0);
        b.cycle();
    }
    b.tb.reset();
    assert_eq!(b.tb.get("port"), 0, "frames pass");
    let counts: Vec<u32> = (0..24).map(|w| b.access(FLOW_COUNTS, w, None)).collect();
    let want: Vec<u32> = (0..24).map(|w| if w % 2 == 0 && w < 22 { w / 2 + 1 } else { 0 }).collect();
    assert_eq!(counts, want);
}

/// A command that reads is over when its answer is there.
#[test]
fn answers() {
    let mut b = Bench::new();
    b.ready();
    let words: [u32; 16] = std::array::from_fn(|_| b.tb.rng().next_u32());
    // One of two answers is zero; which one, it does not know.
    let half = |which: usize| -> [u32; 16] { std::array::from_fn(|n| if n % 2 == which { words[n] } else { 0 }) };
    b.tb.set_wide("answer", &half(0)[..]);
    b.tb.set_wide("answer_out", &half(1)[..]);
    b.tb.set("now", 0x12_3456);
    assert_eq!((0..20).map(|n| b.access(FLOW_ANSWER, n, None)).collect::<Vec<_>>(), [&words[..], &[0; 4]].concat());
    assert_eq!(b.access(FLOW_COMMAND, FLOW_NOW, None), 0x12_3456);
    assert_eq!(b.status(), 0);
    b.tb.set("reading_out", 1);
    assert_eq!(b.status(), FLOW_BUSY);
    b.tb.set("reading_out", 0);
    b.tb.set("reading", 1);
    assert_eq!(b.status(), FLOW_BUSY);
    b.tb.set("reading", 0);
}

/// Counters of functions: each word asks for its own.
#[test]
fn functions_counters_are_read() {
    let mut b = Bench::new();
    b.ready();
    let mut want = Vec::new();
    for (f, n) in (0..4).flat_map(|f| (0..16).map(move |n| (f, n))) {
        b.control.ask(FLOW_SENDERS + f, n, None);
        let count = |asked: u64| asked << 40 | (asked + 3) << 4;
        let got = loop {
            // Whoever has the counters answers a cycle later.
            let asked = b.tb.get("asked");
            b.cycle();
            b.tb.set("sent", count(asked));
            if let Some(answer) = b.control.answer() {
                break answer;
            }
        };
        want.push((got, (count(u64::from(8 * f + n / 2)) >> (32 * (n % 2))) as u32));
    }
    want.iter().for_each(|(got, want)| assert_eq!(*got, Some(*want)));
}

/// What became of frames that were about to leave, of each function: only of those about which the tables were asked.
#[test]
fn frames_that_leave_are_counted() {
    let mut b = Bench::new();
    b.ready();
    let mut want = [[0; 8]; 4];
    for _ in 0..600 {
        let rng = b.tb.rng();
        let [f, place, valid, judged] = [4, EGRESS.len() as u64, 2, 2].map(|n| rng.below(n));
        let told = Fields::of::<Told>().pack(&[("function", f.into()), ("place", place.into()), ("judged", judged.into()), ("drops", (place > 0).into())]);
        b.tb.set_wide("outcome", &told[..]);
        b.tb.set("outcome_valid", valid);
        want[f as usize][place as usize] += (valid & judged) as u32;
        b.cycle();
    }
    b.tb.set("outcome_valid", 0);
    let got = [0, 1, 2, 3].map(|f| std::array::from_fn(|n| b.access(FLOW_EGRESS + f, 2 * n as u32, None)));
    assert_eq!(got, want);
    assert!((0..4).all(|f| (0..8).all(|n| b.access(FLOW_EGRESS + f, 2 * n + 1, None) == 0 && b.access(FLOW_SENDERS + f, 2 * n, None) == 0)));
    // Nobody is asked but if tables decide, too.
    let port = |valid, egress| u32::from_le_bytes(FlowPortCtx::default().with_valid(valid).with_egress(egress).0);
    let asks = [(false, false), (false, true), (true, false), (true, true)].map(|(valid, egress)| {
        b.access(FLOW_PORT, 0, Some(port(valid, egress)));
        b.tb.get("egress")
    });
    assert_eq!(asks, [0, 0, 0, 1]);
}

/// The counters of flows are forgotten with the tables, and not by any other word.
#[test]
fn counters_are_forgotten() {
    let mut b = Bench::new();
    b.ready();
    let mut forgets = |line, word| {
        b.control.ask(line, word, Some(0));
        let mut cycles = 0;
        for _ in 0..100 {
            b.cycle();
            b.control.answer();
            cycles += b.tb.get("forget");
        }
        cycles
    };
    assert_eq!([(FLOW_COMMAND, FLOW_FORGET), (FLOW_COMMAND, 0), (FLOW_PORT, 0), (FLOW_COUNTS, FLOW_FORGET)].map(|(line, word)| forgets(line, word)), [1, 0, 0, 0]);
}
