//! What each function may send, and the commands that say so.

use crate::prim::arb::BinToOneHot;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::{Cast, Gather, Resize, Slice};
use crate::records::{FlowCommand, SenderCtx};
use crate::switch::verify::LINE as BOUND;
use crate::switch::{beyond, COMMAND, COMMAND_LINE as LINE, RECORD};
use ferric_abi::switch::bind::KEY_BITS;
use ferric_abi::switch::table;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of a sender.
pub(super) const SENDER: usize = 256;

const WRITE: u64 = table::WRITE as u64;
const CLEAR: u64 = table::CLEAR as u64;
const READ: u64 = table::READ as u64;
const SENDERS: u64 = table::SENDER as u64;
const BINDS: u64 = table::BIND as u64;
/// The physical function.
const FIRST: usize = 0;

/// A line of the table of addresses; its result says nothing.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Bound {
    key: Bits<KEY_BITS>,
    result: Bit,
    generation: Bits<2>,
    counts: Bit,
}

/// Lines of `NF` functions, which are registers, and of 2^`LB` lines of a way of addresses, which stand elsewhere.
#[derive(LogicBlock, BlockDefault)]
#[demand(NF <= 64)]
pub(super) struct Senders<const NF: usize, const LB: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous: nobody is verified.
    pub reset: Signal<In, Bit>,
    pub write: Signal<In, Bit>,
    pub command: Signal<In, FlowCommand>,
    /// In the next cycle: it named no table of these, or a line that there is not.
    pub refused: Signal<Out, Bit>,
    /// A function that is verified may send nothing any more.
    pub close: Signal<In, Bit>,
    pub closed: Signal<In, Bits<12>>,
    /// The same of all of them, and the physical function is not verified any more.
    pub forget: Signal<In, Bit>,
    /// What each function may send, as it stands.
    pub each: [Signal<Out, SenderCtx>; NF],
    /// A function is verified.
    pub any: Signal<Out, Bit>,
    /// What that function may send, combinational.
    pub asked: Signal<In, Bits<6>>,
    pub sender: Signal<Out, SenderCtx>,
    /// An address is written; combinational.
    pub to_bind: Signal<Out, Bit>,
    pub way: Signal<Out, Bits<2>>,
    pub line: Signal<Out, Bits<LB>>,
    pub bound: Signal<Out, Bits<BOUND>>,
    /// A line is to be read; combinational. One of no table of these: `reads_foreign`.
    pub reads_sender: Signal<Out, Bit>,
    pub reads_bind: Signal<Out, Bit>,
    pub reads_foreign: Signal<Out, Bit>,
    pub who: Signal<Out, Bits<6>>,
    raw: Cast<FlowCommand, Bits<COMMAND>>,
    #[init(Slice::new(COMMAND - RECORD))]
    record: Slice<COMMAND, RECORD>,
    written: Cast<Bits<SENDER>, SenderCtx>,
    told: BinToOneHot<64, 6>,
    leaver: BinToOneHot<64, 6>,
    asks: BinToOneHot<64, 6>,
    tells: Signal<Local, Bits<64>>,
    leaves: Signal<Local, Bits<64>>,
    mine: Resize<64, NF>,
    row: OneHotMux<SenderCtx, NF>,
    lines: [DFF<SenderCtx>; NF],
    ons: Gather<NF>,
    own: Signal<Local, SenderCtx>,
    entry: Signal<Local, Bound>,
    flat: Cast<Bound, Bits<BOUND>>,
    counts: Signal<Local, Bit>,
    orderly: Signal<Local, Bit>,
    is_sender: Signal<Local, Bit>,
    is_bound: Signal<Local, Bit>,
    in_senders: Signal<Local, Bit>,
    in_binds: Signal<Local, Bit>,
    asks_line: Signal<Local, Bit>,
    is_ours: Signal<Local, Bit>,
    refused1: DFF<Bit>,
    /// A line number of no function, and of no line of addresses, has one of these bits.
    #[init(beyond(NF.ilog2() as usize))]
    beyond: Constant<Bits<LINE>>,
    #[init(beyond(LB))]
    beyond_binds: Constant<Bits<LINE>>,
    #[init(Constant::new(SenderCtx::default()))]
    off: Constant<SenderCtx>,
    /// Verified, and nothing is allowed.
    #[init(Constant::new(SenderCtx { on: true, ..Default::default() }))]
    shut: Constant<SenderCtx>,
}

#[kernel]
impl<const NF: usize, const LB: usize> Logic for Senders<NF, LB> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, refused1);
        self.raw.x.next = self.command.val();
        self.record.x.next = self.raw.y.val();
        self.counts.next = self.command.val().opcode == WRITE;
        self.orderly.next = self.write.val() & (self.counts.val() | (self.command.val().opcode == CLEAR));
        self.in_senders.next = (self.command.val().table == SENDERS) & !(self.command.val().line & self.beyond.val()).any();
        self.in_binds.next = (self.command.val().table == BINDS) & !(self.command.val().line & self.beyond_binds.val()).any() & !self.command.val().way.get_bit(2);
        self.is_sender.next = self.orderly.val() & self.in_senders.val();
        self.is_bound.next = self.orderly.val() & self.in_binds.val();
        self.asks_line.next = self.write.val() & (self.command.val().opcode == READ);
        self.is_ours.next = self.in_senders.val() | self.in_binds.val();
        self.reads_sender.next = self.asks_line.val() & self.in_senders.val();
        self.reads_bind.next = self.asks_line.val() & self.in_binds.val();
        self.reads_foreign.next = self.asks_line.val() & !self.is_ours.val();
        self.who.next = self.command.val().line.get_bits::<6>(0);
        self.refused1.d.next = self.write.val() & !((self.orderly.val() | self.asks_line.val()) & self.is_ours.val()) & !self.reset.val();
        self.refused.next = self.refused1.q.val();
        // Addresses
        self.entry.next.key = self.record.y.val().get_bits::<KEY_BITS>(0);
        self.entry.next.result = false;
        self.entry.next.generation = bits::<2>(0);
        self.entry.next.counts = self.counts.val();
        self.flat.x.next = self.entry.val();
        self.to_bind.next = self.is_bound.val();
        self.way.next = self.command.val().way.get_bits::<2>(0);
        self.line.next = bit_cast::<LB, LINE>(self.command.val().line);
        self.bound.next = self.flat.y.val();
        // Lines
        self.written.x.next = self.record.y.val().get_bits::<SENDER>(0);
        self.told.x.next = self.command.val().line.get_bits::<6>(0);
        self.told.en.next = self.is_sender.val();
        self.tells.next = self.told.y.val();
        self.leaver.x.next = self.closed.val().get_bits::<6>(0);
        self.leaver.en.next = self.close.val();
        self.leaves.next = self.leaver.y.val();
        self.asks.x.next = self.asked.val();
        self.asks.en.next = true;
        self.mine.x.next = self.asks.y.val();
        self.row.sel.next = self.mine.y.val();
        for i in 0..NF {
            self.lines[i].clock.next = self.clock.val();
            self.lines[i].d.next = self.lines[i].q.val();
            self.own.next = self.lines[i].q.val();
            self.row.x[i].next = self.lines[i].q.val();
            self.each[i].next = self.lines[i].q.val();
            self.ons.x[i].next = self.own.val().on;
            if self.tells.val().get_bit(i) {
                self.lines[i].d.next = self.off.val();
                if self.counts.val() {
                    self.lines[i].d.next = self.written.y.val();
                }
            }
            if (self.leaves.val().get_bit(i) | self.forget.val()) & self.own.val().on {
                self.lines[i].d.next = self.shut.val();
            }
            if self.reset.val() {
                self.lines[i].d.next = self.off.val();
            }
        }
        self.any.next = self.ons.y.val().any();
        if self.forget.val() {
            self.lines[FIRST].d.next = self.off.val();
        }
        self.sender.next = self.row.y.val();
    }
}
