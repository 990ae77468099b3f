//! Mover: received payload from the cell buffer to the DMA writer, realigned. See README.md.
#[cfg(test)]
mod tests;

use crate::bus::{AxisSink, AxisSrc, MsgSink, MsgSrc};
use crate::msg::{CellRead, MoveOp, WrCmd};
use crate::prim::keep_mask::{KeepMask, LenMask, RangeMask};
use crate::prim::rotate::ByteRotate;
use crate::stream::{AxisSlice, MsgFifo};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_move", &["m_cell", "s_cell", "m_cmd", "m_data"]),
    ("s_cell", &["m_data"]),
    ("m_cmd", &["s_move", "m_cell", "s_cell", "m_cmd", "m_data"]),
    // Beats of the oldest command whose beats are due. Its read was ordered in the same cycle; commands, reads and beats keep one order, and all beats of the reads in front have been taken: so the read is (no `m_cell`).
    ("m_data", &["s_cell"]),
];

/// How the beats of one move are realigned. Lane numbers, so K is at most 64.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Job {
    /// Lanes to rotate by.
    pub shift: Bits<6>,
    /// First lane of the first beat out, and one past the last lane of the last beat out.
    pub start: Bits<7>,
    pub end: Bits<7>,
    /// The first beat in fills no beat out: all its bytes wrap into the next one.
    pub early: Bit,
    /// After the last beat in, bytes are left for one more beat out.
    pub extra: Bit,
    /// The only beat in is `data`, not one of the cell buffer.
    pub direct: Bit,
    pub data: Bits<64>,
}

/// The extra beat out of a move.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Tail {
    shift: Bits<6>,
    start: Bits<7>,
    end: Bits<7>,
    /// It is the only beat out.
    only: Bit,
}

/// The mover.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K == 1 << LK && LK <= 6, "K is W / 8, a power of two, at most 64")]
pub struct Mover<const W: usize, const K: usize, const LK: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_move: MsgSink<MoveOp>,
    pub m_cell: MsgSrc<CellRead>,
    pub s_cell: AxisSink<W, K>,
    pub m_cmd: MsgSrc<WrCmd>,
    /// Beats aligned to the destination, `keep` = byte strobes.
    pub m_data: AxisSrc<W, K>,
    cell_busy: DFF<Bit>,
    reading: DFF<CellRead>,
    /// Commands and jobs of as many moves as are on the way from here to the host's bus while each takes its fewest cycles.
    commands: MsgFifo<WrCmd, 3>,
    jobs: MsgFifo<Job, 3>,
    // Data
    out: AxisSlice<W, K>,
    rotate: ByteRotate<W, K, LK>,
    wrapped: LenMask<K, 7>,
    wrapped_bits: KeepMask<W, K>,
    strobes: RangeMask<K, 7>,
    /// The next beat in begins a move; no beat out of this move yet.
    fresh: DFF<Bit>,
    unsent: DFF<Bit>,
    /// The extra beat of a move whose beats in have all been taken is due; its lanes. The next move may be at the head already.
    extra: DFF<Bit>,
    tail: DFF<Tail>,
    turned: DFF<Bits<W>>,
    turned_valid: DFF<Bit>,
    turned_emit: DFF<Bit>,
    turned_last: DFF<Bit>,
    turned_shift: DFF<Bits<7>>,
    low: DFF<Bits<7>>,
    high: DFF<Bits<7>>,
    before: DFF<Bits<W>>,
    #[init(Constant::new((K as u64).into()))]
    full: Constant<Bits<7>>,
    #[init(Constant::new((K as u64 - 1).into()))]
    lanes: Constant<Bits<7>>,
    in_lane: Signal<Local, Bits<LK>>,
    out_lane: Signal<Local, Bits<LK>>,
    iova: Signal<Local, Bits<64>>,
    off: Signal<Local, Bits<14>>,
    less: Signal<Local, Bits<13>>,
    in_end: Signal<Local, Bits<7>>,
    out_end: Signal<Local, Bits<7>>,
    take: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    early: Signal<Local, Bit>,
    shift: Signal<Local, Bits<LK>>,
    same_beats: Signal<Local, Bit>,
    advance: Signal<Local, Bit>,
    step: Signal<Local, Bit>,
    /// The next beat in only fills `before`; a beat in may be taken, is there, is taken.
    primes: Signal<Local, Bit>,
    open: Signal<Local, Bit>,
    there: Signal<Local, Bit>,
    takes: Signal<Local, Bit>,
    emit: Signal<Local, Bit>,
    ended: Signal<Local, Bit>,
    free: Signal<Local, Bit>,
    direct: Signal<Local, Bit>,
    in_last: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize> Logic for Mover<W, K, LK> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, cell_busy, reading, fresh, unsent, extra, turned, turned_valid, turned_emit);
        dff_setup!(self, clock, turned_last, turned_shift, low, high, before, tail);
        clock!(self, clock, commands, jobs, out);
        self.commands.reset.next = self.reset.val();
        MsgSrc::<WrCmd>::link(&mut self.m_cmd, &mut self.commands.m);
        self.jobs.reset.next = self.reset.val();
        self.out.reset.next = self.reset.val();
        AxisSrc::<W, K>::link(&mut self.m_data, &mut self.out.m);
        self.m_cell.data.next = self.reading.q.val();
        self.m_cell.valid.next = self.cell_busy.q.val();
        if self.m_cell.ready.val() {
            self.cell_busy.d.next = false;
        }

        // A move's lanes and borders are known in the cycle in which it comes; command, read and job leave in the next one.
        self.free.next = !self.cell_busy.q.val() & self.commands.s.ready.val() & self.jobs.s.ready.val();
        self.s_move.ready.next = self.free.val();
        self.take.next = self.free.val() & self.s_move.valid.val();
        self.moves.next = self.s_move.data.val().len.any();
        self.off.next = self.s_move.data.val().off;
        self.iova.next = self.s_move.data.val().iova;
        self.in_lane.next = self.off.val().get_bits::<LK>(0);
        self.out_lane.next = self.iova.val().get_bits::<LK>(0);
        self.shift.next = self.out_lane.val() - self.in_lane.val();
        self.early.next = self.out_lane.val() < self.in_lane.val();
        // As many beats out as in: the last byte's lane, counted from the first, wraps on both sides or on neither.
        self.less.next = self.s_move.data.val().len - 1;
        self.in_end.next = bit_cast::<7, LK>(self.in_lane.val()) + bit_cast::<7, LK>(self.less.val().get_bits::<LK>(0));
        self.out_end.next = bit_cast::<7, LK>(self.out_lane.val()) + bit_cast::<7, LK>(self.less.val().get_bits::<LK>(0));
        self.same_beats.next = (self.in_end.val() & self.full.val()) == (self.out_end.val() & self.full.val());
        self.jobs.s.data.next.shift = bit_cast::<6, LK>(self.shift.val());
        self.jobs.s.data.next.start = bit_cast::<7, LK>(self.out_lane.val());
        self.jobs.s.data.next.end = (self.out_end.val() & self.lanes.val()) + 1;
        self.jobs.s.data.next.early = self.early.val();
        self.jobs.s.data.next.extra = self.early.val() == self.same_beats.val();
        self.jobs.s.data.next.direct = self.s_move.data.val().direct;
        self.jobs.s.data.next.data = self.s_move.data.val().data;
        self.jobs.s.valid.next = self.take.val() & self.moves.val();
        self.commands.s.valid.next = self.take.val() & self.moves.val();
        self.commands.s.data.next.iova = self.s_move.data.val().iova;
        self.commands.s.data.next.function = self.s_move.data.val().function;
        self.commands.s.data.next.len = self.s_move.data.val().len;
        self.commands.s.data.next.tag = bits::<8>(0);
        if self.free.val() {
            self.reading.d.next.handle = self.s_move.data.val().handle;
            self.reading.d.next.off = self.s_move.data.val().off;
            self.reading.d.next.len = bit_cast::<14, 13>(self.s_move.data.val().len);
            if self.s_move.data.val().direct {
                self.reading.d.next.len = bits::<14>(0);
            }
            self.reading.d.next.free = self.s_move.data.val().free;
        }
        if self.take.val() {
            self.cell_busy.d.next = (self.moves.val() & !self.s_move.data.val().direct) | self.s_move.data.val().free;
        }

        // Data, first stage: each step rotates one beat in, or makes room for the extra beat out, or both: when the next move's first beat in fills no beat out.
        self.direct.next = self.jobs.m.data.val().direct;
        self.in_last.next = self.direct.val() | self.s_cell.last.val();
        self.advance.next = !self.turned_valid.q.val() | !self.turned_emit.q.val() | self.out.s.ready.val();
        self.primes.next = self.fresh.q.val() & self.jobs.m.data.val().early;
        self.open.next = self.jobs.m.valid.val() & (!self.extra.q.val() | self.primes.val());
        self.there.next = self.open.val() & (self.direct.val() | self.s_cell.valid.val());
        self.takes.next = self.advance.val() & self.there.val();
        self.step.next = self.advance.val() & (self.extra.q.val() | self.there.val());
        self.s_cell.ready.next = self.advance.val() & self.open.val() & !self.direct.val();
        self.rotate.x.next = self.s_cell.data.val();
        if self.direct.val() {
            self.rotate.x.next = bit_cast::<W, 64>(self.jobs.m.data.val().data);
        }
        self.rotate.n.next = bit_cast::<LK, 6>(self.jobs.m.data.val().shift);
        self.ended.next = self.extra.q.val() | (self.in_last.val() & !self.jobs.m.data.val().extra);
        self.emit.next = self.extra.q.val() | !self.primes.val();
        self.jobs.m.ready.next = self.takes.val() & self.in_last.val();
        if self.advance.val() {
            self.turned.d.next = self.rotate.y.val();
            self.turned_valid.d.next = self.step.val();
            self.turned_emit.d.next = self.emit.val();
            self.turned_last.d.next = self.ended.val();
            self.turned_shift.d.next = bit_cast::<7, 6>(self.jobs.m.data.val().shift);
            self.low.d.next = bits::<7>(0);
            if self.unsent.q.val() {
                self.low.d.next = self.jobs.m.data.val().start;
            }
            self.high.d.next = self.full.val();
            if self.ended.val() {
                self.high.d.next = self.jobs.m.data.val().end;
            }
            if self.extra.q.val() {
                self.turned_shift.d.next = bit_cast::<7, 6>(self.tail.q.val().shift);
                self.low.d.next = bits::<7>(0);
                if self.tail.q.val().only {
                    self.low.d.next = self.tail.q.val().start;
                }
                self.high.d.next = self.tail.q.val().end;
            }
        }
        if self.step.val() {
            self.extra.d.next = self.takes.val() & self.in_last.val() & self.jobs.m.data.val().extra;
        }
        if self.takes.val() {
            self.fresh.d.next = self.in_last.val();
            self.unsent.d.next = self.in_last.val() | self.primes.val();
            self.tail.d.next.shift = self.jobs.m.data.val().shift;
            self.tail.d.next.start = self.jobs.m.data.val().start;
            self.tail.d.next.end = self.jobs.m.data.val().end;
            self.tail.d.next.only = self.primes.val();
        }

        // Second stage: lanes below the shift come from the beat before.
        self.wrapped.len.next = self.turned_shift.q.val();
        self.wrapped_bits.keep.next = self.wrapped.keep.val();
        self.strobes.lo.next = self.low.q.val();
        self.strobes.hi.next = self.high.q.val();
        self.out.s.data.next = (self.before.q.val() & self.wrapped_bits.mask.val()) | (self.turned.q.val() & !self.wrapped_bits.mask.val());
        self.out.s.keep.next = self.strobes.keep.val();
        self.out.s.last.next = self.turned_last.q.val();
        self.out.s.valid.next = self.turned_valid.q.val() & self.turned_emit.q.val();
        if self.turned_valid.q.val() & self.advance.val() {
            self.before.d.next = self.turned.q.val();
        }
        if self.reset.val() {
            self.cell_busy.d.next = false;
            self.fresh.d.next = true;
            self.unsent.d.next = true;
            self.extra.d.next = false;
            self.turned_valid.d.next = false;
        }
    }
}
