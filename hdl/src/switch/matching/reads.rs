//! What commands read: one at a time, and the answer stays until the next one.

use super::commands::NUMBER;
use crate::prim::pack::{Cast, Resize};
use crate::records::FlowRecord;
use crate::switch::count::Use;
use crate::switch::{act, fdb, profile, tcam};
use ferric_abi::switch::table::{ANSWER_BYTES, EXACT_BITS};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of an answer, and of a record of counters.
pub const ANSWER: usize = 8 * ANSWER_BYTES;
const RECORD: usize = 128;
/// Bits of a line's number in that.
const LINE: usize = 16;

/// A bit for each table that is read.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Which {
    pub exact: Bit,
    pub count: Bit,
    pub profile: Bit,
    pub act: Bit,
    pub rule: Bit,
    pub station: Bit,
    pub flood: Bit,
}

/// Whoever holds a table reads a line when no lookup wants its memory: what is asked for stays until it is there.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Reads {
    pub clock: Signal<In, Clock>,
    /// Synchronous; nothing is being read then.
    pub reset: Signal<In, Bit>,
    /// A command reads a line of one table, or of one that is not here: then the answer is zero. Counters become zero behind that if `zero`.
    pub which: Signal<In, Which>,
    pub foreign: Signal<In, Bit>,
    pub zero: Signal<In, Bit>,
    pub way: Signal<In, Bits<2>>,
    pub line: Signal<In, Bits<NUMBER>>,
    /// To the tables.
    pub reads: Signal<Out, Which>,
    pub ask_zero: Signal<Out, Bit>,
    pub read_way: Signal<Out, Bits<2>>,
    pub read_line: Signal<Out, Bits<NUMBER>>,
    /// From them; `done` of one that is not asked means nothing.
    pub exact_done: Signal<In, Bit>,
    pub exact: Signal<In, Bits<EXACT_BITS>>,
    pub profile_done: Signal<In, Bit>,
    pub profile: Signal<In, Bits<{ profile::READ }>>,
    pub act_done: Signal<In, Bit>,
    pub act: Signal<In, Bits<{ act::READ }>>,
    pub rule_done: Signal<In, Bit>,
    pub rule: Signal<In, Bits<{ tcam::READ }>>,
    pub station_done: Signal<In, Bit>,
    pub station: Signal<In, Bits<{ fdb::LINE }>>,
    pub answered: Signal<In, Bit>,
    pub counted: Signal<In, Use>,
    /// From the cycle behind the command on, until the answer is there.
    pub busy: Signal<Out, Bit>,
    pub answer: Signal<Out, Bits<ANSWER>>,
    flags: Cast<Which, Bits<7>>,
    #[init(Constant::new(Which::default()))]
    none: Constant<Which>,
    asked: DFF<Which>,
    pending: DFF<Bit>,
    zeros: DFF<Bit>,
    ways: DFF<Bits<2>>,
    lines: DFF<Bits<NUMBER>>,
    done: Signal<Local, Bit>,
    record: Signal<Local, FlowRecord>,
    flat: Cast<FlowRecord, Bits<RECORD>>,
    exacts: Resize<EXACT_BITS, ANSWER>,
    profiles: Resize<{ profile::READ }, ANSWER>,
    known: DFF<Bits<ANSWER>>,
}

#[kernel]
impl Logic for Reads {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, asked, pending, zeros, ways, lines, known);
        self.flags.x.next = self.which.val();
        self.reads.next = self.asked.q.val();
        self.ask_zero.next = self.zeros.q.val();
        self.read_way.next = self.ways.q.val();
        self.read_line.next = self.lines.q.val();
        self.record.next.line = bit_cast::<LINE, NUMBER>(self.lines.q.val());
        self.record.next.packets = self.counted.val().frames;
        self.record.next.bytes = self.counted.val().bytes;
        self.record.next.last_use = self.counted.val().last;
        self.flat.x.next = self.record.val();
        self.exacts.x.next = self.exact.val();
        self.profiles.x.next = self.profile.val();
        self.done.next = false;
        if self.asked.q.val().exact & self.exact_done.val() {
            self.known.d.next = self.exacts.y.val();
            self.done.next = true;
        }
        if self.asked.q.val().profile & self.profile_done.val() {
            self.known.d.next = self.profiles.y.val();
            self.done.next = true;
        }
        if self.asked.q.val().act & self.act_done.val() {
            self.known.d.next = bit_cast::<ANSWER, { act::READ }>(self.act.val());
            self.done.next = true;
        }
        if self.asked.q.val().rule & self.rule_done.val() {
            self.known.d.next = bit_cast::<ANSWER, { tcam::READ }>(self.rule.val());
            self.done.next = true;
        }
        if (self.asked.q.val().station | self.asked.q.val().flood) & self.station_done.val() {
            self.known.d.next = bit_cast::<ANSWER, { fdb::LINE }>(self.station.val());
            self.done.next = true;
        }
        if self.asked.q.val().count & self.answered.val() {
            self.known.d.next = bit_cast::<ANSWER, RECORD>(self.flat.y.val());
            self.done.next = true;
        }
        if self.done.val() {
            self.asked.d.next = self.none.val();
            self.pending.d.next = false;
        }
        if self.flags.y.val().any() | self.foreign.val() {
            self.asked.d.next = self.which.val();
            self.pending.d.next = self.flags.y.val().any();
            self.zeros.d.next = self.zero.val();
            self.ways.d.next = self.way.val();
            self.lines.d.next = self.line.val();
        }
        if self.foreign.val() {
            self.known.d.next = bits::<ANSWER>(0);
        }
        self.busy.next = self.pending.q.val();
        self.answer.next = self.known.q.val();
        if self.reset.val() {
            self.asked.d.next = self.none.val();
            self.pending.d.next = false;
        }
    }
}
