//! Counters of a few flows, whose frames come one behind the other.
use super::{Count, FlowCounts};
use crate::tb::{Fields, Tb};

const LG: usize = 4;

/// Frames, bytes, last use.
type Counts = [u64; 3];

struct Bench {
    tb: Tb,
    fields: Fields,
    want: [Counts; 1 << LG],
    /// The line that is read, and what it has held in the last cycles, the newest last.
    asked: Option<(usize, bool, Vec<Counts>)>,
    answers: usize,
}

impl Bench {
    fn cycle(&mut self, frame: Option<usize>) {
        let rng = self.tb.rng();
        let (line, length, now) = (frame.unwrap_or_else(|| rng.below(1 << LG) as usize), rng.below(1 << 16), rng.below(1 << 24));
        self.tb.set("valid", frame.is_some().into());
        self.tb.set("line", line as u64);
        self.tb.set("length", length);
        self.tb.set("now", now);
        // It is taken in the first cycle without a frame.
        if let Some((asked, clear, held)) = &mut self.asked {
            if frame.is_none() && held.is_empty() {
                held.push(self.want[*asked]);
                if *clear {
                    self.want[*asked] = [0; 3];
                }
            }
        }
        if frame.is_some() {
            let [packets, bytes, _] = self.want[line];
            self.want[line] = [packets + 1, bytes + length, now];
        }
        self.tb.cycle();
        if self.tb.get("done") == 1 {
            let (line, clear, held) = self.asked.take().expect("a question");
            let counts = self.tb.get_wide("counts");
            let counts = ["packets", "bytes", "last_use"].map(|name| self.fields.get(&counts, name) as u64);
            assert_eq!(counts, held[0], "line {line}, cleared {clear}");
            self.tb.set("ask", 0);
            self.answers += 1;
        }
    }

    fn ask(&mut self, line: usize, clear: bool) {
        self.tb.set("ask", 1);
        self.tb.set("ask_line", line as u64);
        self.tb.set("ask_clear", clear.into());
        self.asked = Some((line, clear, Vec::new()));
    }
}

#[test]
fn every_frame_counts_once() {
    let tb = Tb::new("count", Count::<LG>::default());
    let mut b = Bench { tb, fields: Fields::of::<FlowCounts>(), want: [[0; 3]; 1 << LG], asked: None, answers: 0 };
    for round in 0..20_000u32 {
        // One flow every cycle, two that alternate, any of few, any of all; with gaps and without.
        let lines = [1, 2, 4, 1 << LG][(round / 64 % 4) as usize];
        let gaps = [0, 10, 50][(round / 256 % 3) as usize];
        let frame = (!b.tb.rng().percent(gaps)).then(|| b.tb.rng().below(lines) as usize);
        // After an answer the block takes no question for a cycle.
        let idle = b.asked.is_none();
        b.cycle(frame);
        if idle && b.tb.rng().percent(50) {
            let (line, clear) = (b.tb.rng().below(lines) as usize, b.tb.rng().percent(20));
            b.ask(line, clear);
        }
    }
    while b.asked.is_some() {
        b.cycle(None);
    }
    b.cycle(None);
    assert!(b.answers > 400, "{}", b.answers);
    for line in 0..1 << LG {
        b.ask(line, false);
        while b.asked.is_some() {
            b.cycle(None);
        }
        b.cycle(None);
    }
}
