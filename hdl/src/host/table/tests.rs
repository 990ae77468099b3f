//! The pipeline under a table of counters: every lost, doubled or reordered access of a row shows as a wrong sum.

use super::TablePipe;
use crate::bus::{MsgSink, MsgSrc};
use crate::host::testing::Control;
use crate::msg::{CtlReq, CtlResp};
use crate::prim::pack::Gather;
use crate::stream::MsgSlice;
use crate::tb::{Fields, Source, Tb};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;
use std::collections::VecDeque;

const LQ: usize = 3;
const SOURCES: usize = 3;

#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Request {
    id: Bits<24>,
    amount: Bits<16>,
}

/// `source`: who asked. The rest as in the request.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Add {
    source: Bits<2>,
    amount: Bits<16>,
}

/// `mark` and `kept` belong to the control bus and to nobody.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Counter {
    sum: Bits<32>,
    mark: Bits<32>,
    kept: Bits<32>,
}

/// Adds amounts to counters. A control write changes `mark` only.
#[derive(LogicBlock, Default)]
struct Counters {
    clock: Signal<In, Clock>,
    reset: Signal<In, Bit>,
    s: [MsgSink<Request>; 3],
    s_ctl: MsgSink<CtlReq>,
    m_ctl: MsgSrc<CtlResp>,
    /// The operation in Act.
    valid: Signal<Out, Bit>,
    id: Signal<Out, Bits<24>>,
    add: Signal<Out, Add>,
    sum: Signal<Out, Bits<32>>,
    inside: Signal<Out, Bit>,
    requests: [MsgSlice<Request>; 3],
    ready: Gather<3>,
    pipe: TablePipe<Add, Counter, 3, 3, 4>,
    known: DFF<Bit>,
    sum_now: DFF<Bits<32>>,
    request: Signal<Local, Request>,
    op: Signal<Local, Add>,
    old: Signal<Local, Counter>,
    new: Signal<Local, Counter>,
    ctl: Signal<Local, Counter>,
}

#[kernel]
impl Logic for Counters {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, known, sum_now);
        clock!(self, clock, pipe);
        self.pipe.reset.next = self.reset.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.pipe.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.pipe.m_ctl);
        self.op.next.source = bits::<2>(0);
        for i in 0..3 {
            self.requests[i].clock.next = self.clock.val();
            self.requests[i].reset.next = self.reset.val();
            MsgSink::<Request>::link(&mut self.s[i], &mut self.requests[i].s);
            self.request.next = self.requests[i].m.data.val();
            self.op.next.amount = self.request.val().amount;
            self.pipe.id[i].next = self.request.val().id;
            self.pipe.op[i].next = self.op.val();
            self.op.next.source = self.op.val().source + 1;
            self.ready.x[i].next = self.requests[i].m.valid.val();
            self.requests[i].m.ready.next = self.pipe.grant.val().get_bit(i);
        }
        self.pipe.req.next = self.ready.y.val();
        self.known.d.next = self.pipe.look_inside.val();
        self.old.next = self.pipe.act_row.val();
        self.new.next = self.pipe.act_row.val();
        self.new.next.sum = self.old.val().sum + bit_cast::<32, 16>(self.pipe.act_op.val().amount);
        self.pipe.write.next = self.pipe.act_valid.val() & self.known.q.val();
        self.pipe.new_row.next = self.new.val();
        if self.pipe.ctl_look.val() {
            self.sum_now.d.next = self.pipe.look_row.val().sum;
        }
        self.ctl.next = self.pipe.ctl_row.val();
        self.ctl.next.sum = self.sum_now.q.val();
        self.ctl.next.kept = bits::<32>(0);
        self.pipe.ctl_new_row.next = self.ctl.val();
        self.valid.next = self.pipe.act_valid.val();
        self.id.next = self.pipe.act_id.val();
        self.add.next = self.pipe.act_op.val();
        self.sum.next = self.old.val().sum;
        self.inside.next = self.known.q.val();
    }
}

/// An operation as Act saw it.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    cycle: u64,
    source: usize,
    id: u32,
    amount: u32,
    sum: u32,
    inside: bool,
}

struct Bench {
    tb: Tb,
    sources: [Source; SOURCES],
    ctl: Control,
    seen: VecDeque<Seen>,
}

impl Bench {
    fn new(stall: u32) -> Bench {
        let mut tb = Tb::new("table_pipe", Counters::default());
        let sources = std::array::from_fn(|i| tb.source(&format!("s${i}"), stall));
        let ctl = Control::new(&mut tb, stall);
        Bench { tb, sources, ctl, seen: VecDeque::new() }
    }

    fn push(&self, source: usize, id: u32, amount: u32) {
        self.sources[source].push(Fields::of::<Request>().pack(&[("id", id.into()), ("amount", amount.into())]));
    }

    fn cycle(&mut self) {
        self.tb.cycle();
        if self.tb.get("valid") == 1 {
            let (layout, add) = (Fields::of::<Add>(), self.tb.get_wide("add"));
            self.seen.push_back(Seen {
                cycle: self.tb.cycles(),
                source: layout.get(&add, "source") as usize,
                id: self.tb.get("id") as u32,
                amount: layout.get(&add, "amount") as u32,
                sum: self.tb.get("sum") as u32,
                inside: self.tb.get("inside") == 1,
            });
        }
    }

    fn run(&mut self, cycles: u64) {
        (0..cycles).for_each(|_| self.cycle());
    }

    fn ctl(&mut self, line: u32, word: u32, write: Option<u32>) -> u32 {
        self.ctl.ask(line, word, write);
        for _ in 0..1000 {
            self.cycle();
            if let Some(answer) = self.ctl.answer() {
                return answer.expect("the line exists");
            }
        }
        panic!("no answer on the control bus");
    }
}

/// Three sources on few queues, some of them outside of the table, and control writes in between.
#[test]
fn no_access_is_lost_and_sources_keep_their_order() {
    for stall in [0, 40] {
        let mut bench = Bench::new(stall);
        bench.run(1 << LQ);
        let mut pushed: [VecDeque<(u32, u32)>; SOURCES] = Default::default();
        let (mut sums, mut marks) = ([0u32; 1 << LQ], [0u32; 1 << LQ]);
        for round in 0..1500 {
            for source in 0..SOURCES {
                let rng = bench.tb.rng();
                let outside = if rng.percent(5) { 1 << (LQ as u64 + rng.below(21)) } else { 0 };
                let (id, amount) = ((rng.below(3) + outside) as u32, rng.below(1 << 16) as u32);
                pushed[source].push_back((id, amount));
                bench.push(source, id, amount);
            }
            if round % 10 == 0 {
                let (line, mark) = (bench.tb.rng().below(3) as usize, bench.tb.rng().next_u32());
                assert_eq!(bench.ctl(line as u32, 1, Some(mark)), marks[line], "round {round}");
                marks[line] = mark;
                // The pipeline's word, and one nobody may write.
                let word = 2 * bench.tb.rng().below(2) as u32;
                bench.ctl(line as u32, word, Some(mark));
            }
            while bench.sources.iter().any(|source| source.pending() > 4) {
                bench.cycle();
            }
        }
        bench.run(400);
        for seen in std::mem::take(&mut bench.seen) {
            assert_eq!(pushed[seen.source].pop_front(), Some((seen.id, seen.amount)), "{seen:?}");
            assert_eq!(seen.inside, seen.id < 1 << LQ, "{seen:?}");
            if seen.inside {
                let sum = &mut sums[seen.id as usize];
                assert_eq!(seen.sum, *sum, "{seen:?}");
                *sum = sum.wrapping_add(seen.amount);
            }
        }
        assert!(pushed.iter().all(VecDeque::is_empty));
        for line in 0..1 << LQ {
            let row = [0, 1, 2].map(|word| bench.ctl(line as u32, word, None));
            assert_eq!(row, [sums[line], marks[line], 0], "line {line}");
        }
    }
}

/// Cycles from each operation's Act to the next one's, and who it was.
fn gaps(bench: &mut Bench) -> Vec<(u64, usize)> {
    bench.run(60);
    let seen: Vec<Seen> = bench.seen.drain(..).collect();
    seen.windows(2).map(|pair| (pair[1].cycle - pair[0].cycle, pair[1].source)).collect()
}

#[test]
fn one_operation_per_cycle_one_per_four_on_the_same_queue_everybody_in_turn() {
    let mut bench = Bench::new(0);
    bench.run(1 << LQ);
    (0..8).for_each(|id| bench.push(1, id, 1));
    assert_eq!(gaps(&mut bench), [(1, 1); 7]);
    (0..5).for_each(|_| bench.push(2, 6, 1));
    assert_eq!(gaps(&mut bench), [(4, 2); 4]);
    for i in 0..6 {
        (0..SOURCES).for_each(|source| bench.push(source, (3 * i + source as u32) % 8, 1));
    }
    let turns: Vec<_> = (1..18).map(|n| (1, n % SOURCES)).collect();
    assert_eq!(gaps(&mut bench), turns);
    // A queue that waits does not keep the others waiting.
    (0..3).for_each(|_| bench.push(0, 5, 1));
    (0..4).for_each(|id| bench.push(1, id, 1));
    let order: Vec<_> = gaps(&mut bench).into_iter().map(|(_, source)| source).collect();
    assert_eq!(order, [1, 1, 1, 0, 1, 0]);
}

#[test]
fn a_request_is_in_act_four_cycles_after_it_is_offered() {
    let mut bench = Bench::new(0);
    bench.run(1 << LQ);
    bench.push(0, 1, 1);
    let start = bench.tb.cycles();
    bench.run(10);
    // One of them is the input slice's.
    assert_eq!(bench.seen[0].cycle - start, 4);
}

#[test]
fn a_reset_clears_every_row() {
    let mut bench = Bench::new(0);
    bench.run(1 << LQ);
    (0..8).for_each(|id| bench.push(0, id, 1 + id));
    bench.run(40);
    assert_eq!(bench.ctl(7, 0, None), 8);
    bench.tb.reset();
    bench.push(0, 7, 1);
    bench.run(1 << LQ);
    assert_eq!(bench.seen.len(), 8, "nothing starts during the sweep");
    bench.run(10);
    assert_eq!(bench.seen.len(), 9);
    for id in 0..8 {
        assert_eq!(bench.ctl(id, 0, None), u32::from(id == 7));
    }
}
