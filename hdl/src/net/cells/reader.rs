//! Read port: bytes of a frame as a stream of aligned beats.

use crate::bus::{AxisSrc, MsgSink, MsgSrc};
use crate::msg::CellRead;
use crate::prim::keep_mask::RangeMask;
use crate::stream::{AxisFifo, MsgSlice};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum State {
    /// Nothing to read.
    Idle,
    /// Follows the chain to the cell of the first byte, one cell a cycle.
    Seek,
    /// Reads one row a cycle.
    Run,
}

/// Serves `CellRead` in order. The position after a read is kept, so that the next piece of the same frame starts there
/// and not at the frame's head.
#[derive(LogicBlock, BlockDefault)]
pub struct Reader<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<CellRead>,
    pub m: AxisSrc<W, K>,
    /// Handles to free, after their last row has been read.
    pub m_free: MsgSrc<Bits<9>>,
    /// A frame's cells were given back: a kept position in it is void.
    pub gone: Signal<In, Bit>,
    pub gone_handle: Signal<In, Bits<9>>,
    // Successors
    pub walk: Signal<Out, Bits<9>>,
    pub walk_next: Signal<In, Bits<9>>,
    // Storage, two cycles
    pub read_cell: Signal<Out, Bits<9>>,
    pub read_row: Signal<Out, Bits<5>>,
    pub read_data: Signal<In, Bits<W>>,
    queue: MsgSlice<CellRead>,
    free: MsgSlice<Bits<9>>,
    out: AxisFifo<W, K, 4>,
    range: RangeMask<K, 8>,
    // Decoded command
    d_valid: DFF<Bit>,
    d_empty: DFF<Bit>,
    d_free: DFF<Bit>,
    d_handle: DFF<Bits<9>>,
    d_index: DFF<Bits<6>>,
    d_row: DFF<Bits<5>>,
    d_lo: DFF<Bits<8>>,
    d_hi: DFF<Bits<8>>,
    d_left: DFF<Bits<12>>,
    lane: Signal<Local, Bits<15>>,
    past: Signal<Local, Bits<15>>,
    stop: Signal<Local, Bits<15>>,
    end_lane: Signal<Local, Bits<15>>,
    end_row: Signal<Local, Bits<15>>,
    row_of: Signal<Local, Bits<14>>,
    row_in: Signal<Local, Bits<14>>,
    off: Signal<Local, Bits<14>>,
    d_go: Signal<Local, Bit>,
    // Walk
    state: DFF<State>,
    known: DFF<Bit>,
    handle: DFF<Bits<9>>,
    at: DFF<Bits<9>>,
    index: DFF<Bits<6>>,
    steps: DFF<Bits<6>>,
    row: DFF<Bits<5>>,
    left: DFF<Bits<12>>,
    lo: DFF<Bits<8>>,
    hi: DFF<Bits<8>>,
    frees: DFF<Bit>,
    hit: Signal<Local, Bit>,
    distance: Signal<Local, Bits<6>>,
    final_row: Signal<Local, Bit>,
    issue: Signal<Local, Bit>,
    finish: Signal<Local, Bit>,
    // Rows under way
    used: DFF<Bits<5>>,
    used_after: Signal<Local, Bits<5>>,
    room: DFF<Bit>,
    popped: Signal<Local, Bit>,
    v1: DFF<Bit>,
    last1: DFF<Bit>,
    lo1: DFF<Bits<8>>,
    hi1: DFF<Bits<8>>,
    v2: DFF<Bit>,
    last2: DFF<Bit>,
    lo2: DFF<Bits<8>>,
    hi2: DFF<Bits<8>>,
    #[init(Constant::new(u64::from(K.trailing_zeros()).to_bits()))]
    lk: Constant<Bits<4>>,
    #[init(Constant::new((K as u64 - 1).to_bits()))]
    lane_mask: Constant<Bits<15>>,
    #[init(Constant::new((super::rows(K) as u64 - 1).to_bits()))]
    row_mask: Constant<Bits<14>>,
    #[init(Constant::new((super::rows(K) as u64 - 1).to_bits()))]
    last_row: Constant<Bits<5>>,
    #[init(Constant::new((K as u64).to_bits()))]
    all_lanes: Constant<Bits<8>>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Reader<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, d_valid, d_empty, d_free, d_handle, d_index, d_row, d_lo, d_hi, d_left);
        dff_setup!(self, clock, state, known, handle, at, index, steps, row, left, lo, hi, frees);
        dff_setup!(self, clock, used, room, v1, last1, lo1, hi1, v2, last2, lo2, hi2);
        clock!(self, clock, queue, free, out);
        self.queue.reset.next = self.reset.val();
        self.free.reset.next = self.reset.val();
        self.out.reset.next = self.reset.val();
        MsgSink::<CellRead>::link(&mut self.s, &mut self.queue.s);
        MsgSrc::<Bits<9>>::link(&mut self.m_free, &mut self.free.m);
        AxisSrc::<W, K>::link(&mut self.m, &mut self.out.m);
        // Walk: what happens in this cycle
        self.walk.next = self.at.q.val();
        self.final_row.next = !self.left.q.val().any();
        self.issue.next = (self.state.q.val() == State::Run) & self.room.q.val() & (!self.final_row.val() | !self.frees.q.val() | self.free.s.ready.val());
        self.finish.next = self.issue.val() & self.final_row.val();
        self.d_go.next = self.d_valid.q.val() & ((self.state.q.val() == State::Idle) | self.finish.val());
        if self.d_empty.q.val() {
            self.d_go.next = self.d_valid.q.val() & (self.state.q.val() == State::Idle) & (!self.d_free.q.val() | self.free.s.ready.val());
        }
        // Decode
        self.queue.m.ready.next = !self.d_valid.q.val() | self.d_go.val();
        self.off.next = self.queue.m.data.val().off;
        self.lane.next = bit_cast::<15, 14>(self.off.val()) & self.lane_mask.val();
        self.past.next = self.lane.val() + bit_cast::<15, 14>(self.queue.m.data.val().len);
        self.stop.next = self.past.val() - 1;
        self.end_lane.next = self.stop.val() & self.lane_mask.val();
        self.end_row.next = self.stop.val() >> self.lk.val();
        self.row_of.next = self.off.val() >> self.lk.val();
        self.row_in.next = self.row_of.val() & self.row_mask.val();
        if !self.d_valid.q.val() | self.d_go.val() {
            self.d_valid.d.next = self.queue.m.valid.val();
            self.d_empty.d.next = !self.queue.m.data.val().len.any();
            self.d_free.d.next = self.queue.m.data.val().free;
            self.d_handle.d.next = self.queue.m.data.val().handle.get_bits::<9>(0);
            self.d_index.d.next = self.off.val().get_bits::<6>(8);
            self.d_row.d.next = bit_cast::<5, 14>(self.row_in.val());
            self.d_lo.d.next = bit_cast::<8, 15>(self.lane.val());
            self.d_hi.d.next = bit_cast::<8, 15>(self.end_lane.val());
            self.d_left.d.next = bit_cast::<12, 15>(self.end_row.val());
        }
        // Walk: state
        self.read_cell.next = self.at.q.val();
        self.read_row.next = self.row.q.val();
        if self.issue.val() & !self.final_row.val() {
            self.left.d.next = self.left.q.val() - 1;
            self.lo.d.next = bits::<8>(0);
            self.row.d.next = self.row.q.val() + 1;
            if self.row.q.val() == self.last_row.val() {
                self.row.d.next = bits::<5>(0);
                self.at.d.next = self.walk_next.val();
                self.index.d.next = self.index.q.val() + 1;
            }
        }
        if self.state.q.val() == State::Seek {
            self.at.d.next = self.walk_next.val();
            self.steps.d.next = self.steps.q.val() - 1;
            if self.steps.q.val() == 1 {
                self.state.d.next = State::Run;
            }
        }
        if self.finish.val() {
            self.state.d.next = State::Idle;
        }
        if (self.finish.val() & self.frees.q.val()) | (self.gone.val() & (self.gone_handle.val() == self.handle.q.val())) {
            self.known.d.next = false;
        }
        self.hit.next = self.known.q.val() & (self.handle.q.val() == self.d_handle.q.val()) & (self.index.q.val() <= self.d_index.q.val());
        self.distance.next = self.d_index.q.val();
        if self.hit.val() {
            self.distance.next = self.d_index.q.val() - self.index.q.val();
        }
        if self.d_go.val() & !self.d_empty.q.val() {
            self.known.d.next = true;
            self.handle.d.next = self.d_handle.q.val();
            self.index.d.next = self.d_index.q.val();
            self.steps.d.next = self.distance.val();
            self.row.d.next = self.d_row.q.val();
            self.left.d.next = self.d_left.q.val();
            self.lo.d.next = self.d_lo.q.val();
            self.hi.d.next = self.d_hi.q.val() + 1;
            self.frees.d.next = self.d_free.q.val();
            if !self.hit.val() {
                self.at.d.next = self.d_handle.q.val();
            }
            self.state.d.next = State::Run;
            if self.distance.val().any() {
                self.state.d.next = State::Seek;
            }
        }
        // Free behind the last row
        self.free.s.valid.next = self.finish.val() & self.frees.q.val();
        self.free.s.data.next = self.handle.q.val();
        if self.d_empty.q.val() & (self.state.q.val() == State::Idle) {
            self.free.s.valid.next = self.d_valid.q.val() & self.d_free.q.val();
            self.free.s.data.next = self.d_handle.q.val();
        }
        // Rows under way: never more than the output holds
        self.popped.next = self.m.valid.val() & self.m.ready.val();
        self.used_after.next = self.used.q.val();
        if self.issue.val() & !self.popped.val() {
            self.used_after.next = self.used.q.val() + 1;
        }
        if self.popped.val() & !self.issue.val() {
            self.used_after.next = self.used.q.val() - 1;
        }
        self.used.d.next = self.used_after.val();
        self.room.d.next = !self.used_after.val().get_bit(4);
        self.v1.d.next = self.issue.val();
        self.last1.d.next = self.final_row.val();
        self.lo1.d.next = self.lo.q.val();
        self.hi1.d.next = self.all_lanes.val();
        if self.final_row.val() {
            self.hi1.d.next = self.hi.q.val();
        }
        self.v2.d.next = self.v1.q.val();
        self.last2.d.next = self.last1.q.val();
        self.lo2.d.next = self.lo1.q.val();
        self.hi2.d.next = self.hi1.q.val();
        self.range.lo.next = self.lo2.q.val();
        self.range.hi.next = self.hi2.q.val();
        self.out.s.valid.next = self.v2.q.val();
        self.out.s.data.next = self.read_data.val();
        self.out.s.keep.next = self.range.keep.val();
        self.out.s.last.next = self.last2.q.val();
        if self.reset.val() {
            self.d_valid.d.next = false;
            self.state.d.next = State::Idle;
            self.known.d.next = false;
            self.used.d.next = bits::<5>(0);
            self.room.d.next = false;
            self.v1.d.next = false;
            self.v2.d.next = false;
        }
    }
}
