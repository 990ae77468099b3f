//! Commands for the flow tables out of words of the control bus, what is done with frames off the wire, and the counters. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::word::CtlWord;
use crate::msg::{CtlReq, CtlResp};
use crate::prim::pack::{BePick, Cast, Slice};
use crate::prim::sum::PlusOne;
use crate::records::{FlowCommand, FlowCounts, FlowPortCtx};
use crate::switch::count::TICK;
use crate::switch::flows;
use crate::switch::guard::tally::Tally;
use crate::switch::local::Told;
use crate::switch::matching::ANSWER;
use crate::switch::{COMMAND, RECORD};
use ferric_abi::csr::{FLOW_ANSWER, FLOW_BINDS_AT, FLOW_BUSY, FLOW_CLOSE, FLOW_COMMAND, FLOW_COUNTS, FLOW_EGRESS, FLOW_FORGET, FLOW_GROUPS_AT, FLOW_NOW, FLOW_PORT, FLOW_REFUSED, FLOW_SENDERS};
use ferric_abi::switch::table;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_ctl", &[]), // one access at a time
    ("m_ctl", &[]),
];

/// What is counted of a function's frames that were about to leave while the tables were asked about them, of each frame one: it leaves; then, dropped, by cause. The fields of `EgressCounts`.
pub const EGRESS: &[&str] = &["left", "deep", "software", "elsewhere", "acl", "miss", "no_rule_room", "roce_denied"];
/// Their places.
pub(super) const AS_LEFT: u64 = 0;
pub(super) const AS_DEEP: u64 = 1;
pub(super) const AS_SOFTWARE: u64 = 2;
pub(super) const AS_ELSEWHERE: u64 = 3;
pub(super) const AS_ACL: u64 = 4;
pub(super) const AS_MISS: u64 = 5;
pub(super) const AS_NO_RULE_ROOM: u64 = 6;
pub(super) const AS_ROCE_DENIED: u64 = 7;

/// Counters: those of `flows`.
const COUNTERS: usize = 11;
/// Bits of the longest line, that of the counters.
const LINE: usize = 64 * COUNTERS;
/// log2 of the lines.
const LG_LINES: usize = FLOW_EGRESS.ilog2() as usize + 1;
/// The bits of a line's number that say that it is a function's, and log2 of the words of a counter.
const SENDERS: usize = FLOW_SENDERS.ilog2() as usize;
const LEAVERS: usize = FLOW_EGRESS.ilog2() as usize;
/// Bits of the lower part of a counter, and of the upper one.
const PART: usize = 32;
const LG_WORDS: usize = 1;
/// Counters of a function, log2.
const LG_COUNTS: usize = 3;
const COUNT_BITS: u64 = LG_COUNTS as u64;
/// Bits of a command's words behind its first one: the second, and the record.
const LATER: usize = 32 * 29;
/// Bits of one word less.
const SHIFTED: usize = LATER - 32;
const ABOVE: u64 = SHIFTED as u64;
/// Where a command's record begins.
const RECORD_AT: u64 = 128;

const LINE_COMMAND: u64 = FLOW_COMMAND as u64;
const LINE_PORT: u64 = FLOW_PORT as u64;
const LINE_COUNTS: u64 = FLOW_COUNTS as u64;
const LINE_ANSWER: u64 = FLOW_ANSWER as u64;
/// Bit of the line of commands from which on the tick stands.
const NOW_AT: u64 = 32 * FLOW_NOW as u64;
const WORD_FORGET: u64 = FLOW_FORGET as u64;
const WORD_CLOSE: u64 = FLOW_CLOSE as u64;
/// Places of the bits that are read.
const REFUSED: u64 = FLOW_REFUSED.trailing_zeros() as u64;
const BUSY: u64 = FLOW_BUSY.trailing_zeros() as u64;
const CLEAR: u64 = table::CLEAR as u64;
/// Tables in the order in which they are emptied.
const TABLES: [u8; 7] = [table::PROFILE, table::EXACT, table::ACTION, table::RULE, table::STATION, table::FLOOD, table::BIND];
const FIRST: u64 = TABLES[0] as u64;
const SECOND: u64 = TABLES[1] as u64;
const THIRD: u64 = TABLES[2] as u64;
const FOURTH: u64 = TABLES[3] as u64;
const FIFTH: u64 = TABLES[4] as u64;
const SIXTH: u64 = TABLES[5] as u64;
const SEVENTH: u64 = TABLES[6] as u64;
/// The sweep's own numbers of the tables; it begins with the first, and ends when all bits of its number are ones.
const SWEEPS_FIRST: usize = 9;
const SWEEPS_SECOND: u64 = 10;
const SWEEPS_THIRD: u64 = 11;
const SWEEPS_FOURTH: u64 = 12;
const SWEEPS_FIFTH: u64 = 13;
const SWEEPS_SIXTH: u64 = 14;
const SWEEPS_SEVENTH: u64 = 15;

/// For tables whose ways have 2^`LG` lines, one of addresses whose ways have 2^`LB`, 2^`LC` counters of functions, and `G` groups of rules. `S` = `LG` + 6: a line, a way and a table.
#[derive(LogicBlock, BlockDefault)]
#[demand(S == LG + 6 && (6..=12).contains(&LG) && LB <= LG)]
#[demand(COUNTERS == flows::STATS.len() && EGRESS.len() == 1 << LG_COUNTS)]
pub struct Program<const LG: usize, const LB: usize, const LC: usize, const G: usize, const S: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous: frames pass, and all tables are emptied; the counters stay.
    pub reset: Signal<In, Bit>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// What is done with frames off the wire; it changes between two cycles as a whole.
    pub port: Signal<Out, FlowPortCtx>,
    /// Frames that leave are asked about.
    pub egress: Signal<Out, Bit>,
    /// A command for the tables, one cycle.
    pub write: Signal<Out, Bit>,
    pub command: Signal<Out, FlowCommand>,
    /// In the next cycle: it named nothing that there is.
    pub refused: Signal<In, Bit>,
    /// The same of the tables about what functions send: only if both refuse it nobody knows it.
    pub refused_out: Signal<In, Bit>,
    /// This function may send nothing any more, one cycle.
    pub close: Signal<Out, Bit>,
    pub closed: Signal<Out, Bits<12>>,
    /// The counters of flows become zero, and what functions may send is taken away, one cycle.
    pub forget: Signal<Out, Bit>,
    /// What a command reads is not there yet, from two cycles behind `write` on at the latest, or the counters of flows are not zero yet.
    pub reading: Signal<In, Bit>,
    pub answer: Signal<In, Bits<ANSWER>>,
    /// The same of what functions may send; whoever has not read what a command reads answers with zeros.
    pub reading_out: Signal<In, Bit>,
    pub answer_out: Signal<In, Bits<ANSWER>>,
    answers: Signal<Local, Bits<ANSWER>>,
    pub now: Signal<In, Bits<TICK>>,
    /// As `guard` has it: a counter of a function.
    pub asked: Signal<Out, Bits<LC>>,
    pub sent: Signal<In, Bits<64>>,
    /// What `flows` has said about a frame that was about to leave.
    pub outcome: Signal<In, Told>,
    pub outcome_valid: Signal<In, Bit>,
    leavers: Tally<LC, PART, PART>,
    which: Signal<Local, Bits<LC>>,
    of_function: Signal<Local, Bits<64>>,
    /// `stat` of `flows`.
    pub stat: Signal<In, Bits<COUNTERS>>,
    ctl: CtlWord<Bits<LINE>, LG_LINES>,
    told: Signal<Local, Bit>,
    to_command: Signal<Local, Bit>,
    // The command
    later: DFF<Bits<LATER>>,
    #[init(Slice::new(32))]
    rest: Slice<LATER, SHIFTED>,
    #[init(Slice::new(32))]
    record: Slice<LATER, RECORD>,
    first: Signal<Local, Bits<COMMAND>>,
    second: Signal<Local, Bits<COMMAND>>,
    behind: Signal<Local, Bits<COMMAND>>,
    whole: Cast<Bits<COMMAND>, FlowCommand>,
    ours: Signal<Local, FlowCommand>,
    go: Signal<Local, Bit>,
    write1: DFF<Bit>,
    command1: DFF<FlowCommand>,
    awaited: DFF<Bit>,
    answered: DFF<Bit>,
    bad: DFF<Bit>,
    // The tables are emptied
    forget1: DFF<Bit>,
    close1: DFF<Bit>,
    closed1: DFF<Bits<12>>,
    waits: Signal<Local, Bit>,
    busy: DFF<Bit>,
    sweep: DFF<Bits<S>>,
    next: PlusOne<S>,
    #[init(Slice::new(0))]
    sweep_line: Slice<S, LG>,
    #[init(Slice::new(LG))]
    sweep_way: Slice<S, 2>,
    #[init(Slice::new(LG + 2))]
    sweep_table: Slice<S, 4>,
    #[init(Constant::new(((SWEEPS_FIRST << (LG + 2)) as u64).to_bits()))]
    origin: Constant<Bits<S>>,
    cleared: Signal<Local, FlowCommand>,
    /// Behind the first word how large the tables are.
    #[init(Constant::new((((LG | G << FLOW_GROUPS_AT | LB << FLOW_BINDS_AT) as u64) << 32).to_bits()))]
    sizes: Constant<Bits<LINE>>,
    // The port
    rules: DFF<FlowPortCtx>,
    rules_bits: Cast<FlowPortCtx, Bits<32>>,
    written: Cast<Bits<32>, FlowPortCtx>,
    #[init(Constant::new(FlowPortCtx::default()))]
    off: Constant<FlowPortCtx>,
    #[init(BePick::new((0..LINE).map(|bit| bit % 64).collect()))]
    each: BePick<64, Bits<LINE>>,
    count_word: Signal<Local, Bits<LG_COUNTS>>,
    counted: DFF<Bit>,
    // Counters
    events: DFF<Bits<COUNTERS>>,
    counts: [DFF<Bits<64>>; COUNTERS],
    plus: [PlusOne<64>; COUNTERS],
    sums: Signal<Local, FlowCounts>,
    sums_bits: Cast<FlowCounts, Bits<LINE>>,
}

#[kernel]
impl<const LG: usize, const LB: usize, const LC: usize, const G: usize, const S: usize> Logic for Program<LG, LB, LC, G, S> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, later, write1, command1, awaited, answered, bad, forget1, close1, closed1, busy, sweep, rules, events, counted);
        clock!(self, clock, ctl, leavers);
        self.ctl.reset.next = self.reset.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.ctl.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.ctl.m_ctl);
        self.told.next = self.ctl.done.val() & self.ctl.we.val();
        self.to_command.next = self.told.val() & (self.ctl.addr.val() == LINE_COMMAND);
        // A word behind the first comes in from above; after all of them the one that came first is lowest.
        self.rest.x.next = self.later.q.val();
        if self.to_command.val() & self.ctl.word.val().any() {
            self.later.d.next = (bit_cast::<LATER, 32>(self.ctl.data.val()) << ABOVE) | bit_cast::<LATER, SHIFTED>(self.rest.y.val());
        }
        self.record.x.next = self.later.q.val();
        self.first.next = bit_cast::<COMMAND, 32>(self.ctl.data.val());
        self.second.next = bit_cast::<COMMAND, 32>(self.later.q.val().get_bits::<32>(0)) << 32;
        self.behind.next = bit_cast::<COMMAND, RECORD>(self.record.y.val()) << RECORD_AT;
        self.whole.x.next = self.first.val() | self.second.val() | self.behind.val();
        self.ours.next = self.whole.y.val();
        self.go.next = self.to_command.val() & !self.ctl.word.val().any();
        // All tables, one line a cycle, in cycles in which there is no command.
        self.next.a.next = self.sweep.q.val();
        self.sweep_line.x.next = self.sweep.q.val();
        self.sweep_way.x.next = self.sweep.q.val();
        self.sweep_table.x.next = self.sweep.q.val();
        self.cleared.next.generation = bits::<2>(0);
        self.cleared.next.action = bits::<16>(0);
        self.cleared.next.signal = false;
        self.cleared.next.seq = bits::<32>(0);
        self.cleared.next.rsvd0 = bits::<39>(0);
        self.cleared.next.record0 = bits::<128>(0);
        self.cleared.next.record1 = bits::<128>(0);
        self.cleared.next.record2 = bits::<128>(0);
        self.cleared.next.record3 = bits::<128>(0);
        self.cleared.next.record4 = bits::<128>(0);
        self.cleared.next.record5 = bits::<128>(0);
        self.cleared.next.record6 = bits::<128>(0);
        self.cleared.next.opcode = bits::<5>(CLEAR);
        self.cleared.next.table = bits::<6>(FIRST);
        if self.sweep_table.y.val() == SWEEPS_SECOND {
            self.cleared.next.table = bits::<6>(SECOND);
        } else if self.sweep_table.y.val() == SWEEPS_THIRD {
            self.cleared.next.table = bits::<6>(THIRD);
        } else if self.sweep_table.y.val() == SWEEPS_FOURTH {
            self.cleared.next.table = bits::<6>(FOURTH);
        } else if self.sweep_table.y.val() == SWEEPS_FIFTH {
            self.cleared.next.table = bits::<6>(FIFTH);
        } else if self.sweep_table.y.val() == SWEEPS_SIXTH {
            self.cleared.next.table = bits::<6>(SIXTH);
        } else if self.sweep_table.y.val() == SWEEPS_SEVENTH {
            self.cleared.next.table = bits::<6>(SEVENTH);
        }
        self.cleared.next.way = bit_cast::<3, 2>(self.sweep_way.y.val());
        self.cleared.next.line = bit_cast::<24, LG>(self.sweep_line.y.val());
        self.write1.d.next = self.go.val() | self.busy.q.val();
        self.command1.d.next = self.cleared.val();
        if self.go.val() {
            self.command1.d.next = self.ours.val();
        } else if self.busy.q.val() {
            self.sweep.d.next = self.next.y.val();
            self.busy.d.next = !self.sweep.q.val().all();
        }
        self.forget1.d.next = false;
        if self.to_command.val() & (self.ctl.word.val() == WORD_FORGET) {
            self.forget1.d.next = true;
            self.busy.d.next = true;
            self.sweep.d.next = self.origin.val();
        }
        self.forget.next = self.forget1.q.val();
        self.close1.d.next = self.to_command.val() & (self.ctl.word.val() == WORD_CLOSE);
        self.closed1.d.next = self.ctl.data.val().get_bits::<12>(0);
        self.close.next = self.close1.q.val();
        self.closed.next = self.closed1.q.val();
        self.waits.next = self.busy.q.val() | self.awaited.q.val() | self.answered.q.val() | self.forget1.q.val() | self.reading.val() | self.reading_out.val();
        self.write.next = self.write1.q.val();
        self.command.next = self.command1.q.val();
        // What a command of the host comes to is known two cycles later.
        self.awaited.d.next = self.go.val();
        self.answered.d.next = self.awaited.q.val();
        if self.answered.q.val() {
            self.bad.d.next = self.refused.val() & self.refused_out.val();
        }
        // The port
        self.written.x.next = self.ctl.data.val();
        if self.told.val() & (self.ctl.addr.val() == LINE_PORT) & !self.ctl.word.val().any() {
            self.rules.d.next = self.written.y.val();
        }
        self.port.next = self.rules.q.val();
        self.egress.next = self.rules.q.val().valid & self.rules.q.val().egress;
        // Counters
        self.events.d.next = self.stat.val();
        for i in 0..COUNTERS {
            self.counts[i].clock.next = self.clock.val();
            self.plus[i].a.next = self.counts[i].q.val();
            self.counts[i].d.next = self.counts[i].q.val();
            if self.events.q.val().get_bit(i) {
                self.counts[i].d.next = self.plus[i].y.val();
            }
        }
        self.sums.next.port = self.counts[0].q.val();
        self.sums.next.software = self.counts[1].q.val();
        self.sums.next.unable = self.counts[2].q.val();
        self.sums.next.acl = self.counts[3].q.val();
        self.sums.next.miss = self.counts[4].q.val();
        self.sums.next.no_rule_room = self.counts[5].q.val();
        self.sums.next.roce_denied = self.counts[6].q.val();
        self.sums.next.port_down = self.counts[7].q.val();
        self.sums.next.exception_no_queue = self.counts[8].q.val();
        self.sums.next.cut = self.counts[9].q.val();
        self.sums.next.bad = self.counts[10].q.val();
        self.sums_bits.x.next = self.sums.val();
        // What is read
        // A function's counter is there one cycle later; it stands in all places of the line.
        self.count_word.next = self.ctl.word.val().get_bits::<LG_COUNTS>(LG_WORDS);
        self.which.next = (bit_cast::<LC, LG_LINES>(self.ctl.addr.val()) << COUNT_BITS) | bit_cast::<LC, LG_COUNTS>(self.count_word.val());
        self.asked.next = self.which.val();
        self.leavers.valid.next = self.outcome_valid.val() & self.outcome.val().judged;
        self.leavers.which.next = (bit_cast::<LC, 6>(self.outcome.val().function) << COUNT_BITS) | bit_cast::<LC, LG_COUNTS>(self.outcome.val().place);
        self.leavers.asked.next = self.which.val();
        self.of_function.next = self.sent.val();
        if self.ctl.addr.val().get_bit(LEAVERS) {
            self.of_function.next = self.leavers.count.val();
        }
        self.each.x.next = self.of_function.val();
        self.answers.next = self.answer.val() | self.answer_out.val();
        self.rules_bits.x.next = self.rules.q.val();
        self.counted.d.next = self.ctl.req.val();
        self.ctl.row_valid.next = self.ctl.req.val() & self.counted.q.val();
        self.ctl.row.next =
            self.sizes.val() | (bit_cast::<LINE, 1>(self.bad.q.val().into()) << REFUSED) | (bit_cast::<LINE, 1>(self.waits.val().into()) << BUSY) | (bit_cast::<LINE, TICK>(self.now.val()) << NOW_AT);
        if self.ctl.addr.val() == LINE_PORT {
            self.ctl.row.next = bit_cast::<LINE, 32>(self.rules_bits.y.val());
        } else if self.ctl.addr.val() == LINE_COUNTS {
            self.ctl.row.next = self.sums_bits.y.val();
        } else if self.ctl.addr.val() == LINE_ANSWER {
            self.ctl.row.next = bit_cast::<LINE, ANSWER>(self.answers.val());
        }
        if self.ctl.addr.val().get_bit(SENDERS) | self.ctl.addr.val().get_bit(LEAVERS) {
            self.ctl.row.next = self.each.y.val();
        }
        if self.reset.val() {
            self.rules.d.next = self.off.val();
            self.busy.d.next = true;
            self.sweep.d.next = self.origin.val();
            self.write1.d.next = false;
        }
    }
}
