//! Where read data land: R beats in any order of ids, looked up, counted, rotated to their lanes and written.
//!
//! | stage | does |
//! |---|---|
//! | 0 | registers R; reads the id's command (block RAM, address from this register) |
//! | 1 | reads, increments and writes the id's beat count in one cycle, so beats of one id may follow each other at once |
//! | 2 | masks of the first and last beat; first half of the rotation; small reads: write to the row buffer |
//! | 3 | rotates the mask; second half of the rotation |
//! | 4 | assembly write port |

use super::pay::PayFin;
use super::shares::{row_mask, Share, LOG_SMALLEST};
use super::RdState;
use crate::prim::lookup::Lookup;
use crate::prim::ram::{Ram, RamAsync};
use crate::prim::rotate::ByteRotatePipe;
use ferric_hdl_derive::{kernel, BlockNew};
use rust_hdl::prelude::*;

/// Progress of an id: zero whenever no beat of its command has come yet.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Progress {
    /// Beats received.
    pub count: Bits<9>,
    /// One of them came with an error.
    pub err: Bit,
}

/// The R channel's pipeline. It never stalls; after reset it clears its tables for 2^`LI` cycles first.
///
/// `LI`: bits of an id. `LT`: its low bits, by which small reads are told apart (their tag), `LG`: those above a group of the smallest share. `LR`: log2 of the rows in the row buffer. `LP`: log2 of the payload reads' ids: one with a bit above is a small read's.
/// `shares`: the ids of each port of small reads.
#[derive(LogicBlock, BlockNew)]
#[given(shares: &[Share])]
pub struct Landing<const W: usize, const K: usize, const LK: usize, const LI: usize, const LT: usize, const LG: usize, const LR: usize, const LP: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub r_valid: Signal<In, Bit>,
    pub r_ready: Signal<Out, Bit>,
    pub r_id: Signal<In, Bits<LI>>,
    pub r_data: Signal<In, Bits<W>>,
    pub r_resp: Signal<In, Bits<2>>,
    /// A beat has come; it is payload.
    pub beat: Signal<Out, Bit>,
    pub payload: Signal<Out, Bit>,
    /// A command is issued under id `open_id`.
    pub open: Signal<In, Bit>,
    pub open_id: Signal<In, Bits<LI>>,
    pub open_state: Signal<In, RdState>,
    pub asm_we: Signal<Out, Bits<K>>,
    pub asm_row1: Signal<Out, Bits<K>>,
    pub asm_addr: Signal<Out, Bits<13>>,
    pub asm_data: Signal<Out, Bits<W>>,
    /// Row buffer write port: piece `row_sub` of row `row_addr`.
    pub row_en: Signal<Out, Bit>,
    pub row_addr: Signal<Out, Bits<LR>>,
    pub row_sub: Signal<Out, Bits<3>>,
    pub row_data: Signal<Out, Bits<W>>,
    /// A small read is complete (its last row is being written).
    pub small_fin: Signal<Out, Bit>,
    pub small_tag: Signal<Out, Bits<LT>>,
    pub small_err: Signal<Out, Bit>,
    /// A payload read is complete (its last bytes are written two cycles later).
    pub pay_fin: Signal<Out, Bit>,
    pub pay: Signal<Out, PayFin>,
    /// Any read is complete.
    pub finish: Signal<Out, Bit>,
    pub finish_color: Signal<Out, Bit>,
    pub finish_err: Signal<Out, Bit>,
    states: Ram<RdState, LI>,
    counts: RamAsync<Progress, LI>,
    rotate: ByteRotatePipe<W, K, LK>,
    /// Mask of the rows in the ring of the port that a group of tags belongs to.
    #[init(Lookup::of(|group| row_mask(shares, LT, group)))]
    rings: Lookup<LG, LR>,
    /// Ids whose progress has been cleared since reset, until it is all of them.
    cleared: DFF<Bits<LI>>,
    ready: DFF<Bit>,
    v0: DFF<Bit>,
    id0: DFF<Bits<LI>>,
    data0: DFF<Bits<W>>,
    err0: DFF<Bit>,
    v1: DFF<Bit>,
    id1: DFF<Bits<LI>>,
    data1: DFF<Bits<W>>,
    err1: DFF<Bit>,
    v2: DFF<Bit>,
    id2: DFF<Bits<LI>>,
    data2: DFF<Bits<W>>,
    state2: DFF<RdState>,
    count2: DFF<Bits<9>>,
    last2: DFF<Bit>,
    err2: DFF<Bit>,
    v3: DFF<Bit>,
    id3: DFF<Bits<LI>>,
    mask3: DFF<Bits<K>>,
    shift3: DFF<Bits<LK>>,
    row3: DFF<Bits<13>>,
    color3: DFF<Bit>,
    last3: DFF<Bit>,
    err3: DFF<Bit>,
    we4: DFF<Bits<K>>,
    row1_4: DFF<Bits<K>>,
    row4: DFF<Bits<13>>,
    #[init(Constant::new((!0u64 >> (64 - K)).into()))]
    ones: Constant<Bits<K>>,
    #[init(Constant::new(0u64.into()))]
    zero: Constant<Bits<LK>>,
    #[init(Constant::new(0u64.into()))]
    zeros: Constant<Bits<K>>,
    #[init(Constant::new((LP as u64).into()))]
    log_payload: Constant<Bits<4>>,
    /// log2 of the beats per row, and the beats per row less one.
    #[init(Constant::new((6 - LK as u64).into()))]
    beats: Constant<Bits<3>>,
    #[init(Constant::new(0u64.into()))]
    nobody: Constant<Bits<LI>>,
    #[init(Constant::new(((1u64 << (6 - LK)) - 1).into()))]
    subs: Constant<Bits<9>>,
    known: Signal<Local, Progress>,
    step: Signal<Local, Progress>,
    last: Signal<Local, Bit>,
    lo: Signal<Local, Bits<LK>>,
    nhi: Signal<Local, Bits<LK>>,
    first2: Signal<Local, Bit>,
    small2: Signal<Local, Bit>,
    shift2: Signal<Local, Bits<6>>,
    lo2: Signal<Local, Bits<6>>,
    nhi2: Signal<Local, Bits<6>>,
    upper0: Signal<Local, Bits<LI>>,
    upper2: Signal<Local, Bits<LI>>,
    upper3: Signal<Local, Bits<LI>>,
    tag2: Signal<Local, Bits<LT>>,
    ring: Signal<Local, Bits<LR>>,
    start: Signal<Local, Bits<LR>>,
    on: Signal<Local, Bits<9>>,
    row: Signal<Local, Bits<LR>>,
    start13: Signal<Local, Bits<13>>,
    sub: Signal<Local, Bits<9>>,
    back: Signal<Local, Bits<LK>>,
    turned: Signal<Local, Bits<K>>,
    small3: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize, const LI: usize, const LT: usize, const LG: usize, const LR: usize, const LP: usize> Logic for Landing<W, K, LK, LI, LT, LG, LR, LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, cleared, ready, v0, id0, data0, err0, v1, id1, data1, err1);
        dff_setup!(self, clock, v2, id2, data2, state2, count2, last2, err2);
        dff_setup!(self, clock, v3, id3, mask3, shift3, row3, color3, last3, err3);
        dff_setup!(self, clock, we4, row1_4, row4);
        clock!(self, clock, states, counts, rotate);
        self.states.write_addr.next = self.open_id.val();
        self.states.write_data.next = self.open_state.val();
        self.states.write_en.next = self.open.val();

        // Stage 0.
        self.r_ready.next = self.ready.q.val();
        self.v0.d.next = self.r_valid.val() & self.ready.q.val();
        self.id0.d.next = self.r_id.val();
        self.data0.d.next = self.r_data.val();
        self.err0.d.next = self.r_resp.val().get_bit(1);
        self.upper0.next = self.id0.q.val() >> self.log_payload.val();
        self.beat.next = self.v0.q.val();
        self.payload.next = !self.upper0.val().any();

        // Stage 1. A finished id's progress returns to zero, ready for its next command.
        self.v1.d.next = self.v0.q.val();
        self.id1.d.next = self.id0.q.val();
        self.data1.d.next = self.data0.q.val();
        self.err1.d.next = self.err0.q.val();
        self.states.read_addr.next = self.id0.q.val();
        self.counts.read_addr.next = self.id1.q.val();
        self.known.next = self.counts.read_data.val();
        self.last.next = self.known.val().count == self.states.read_data.val().last;
        self.step.next.count = self.known.val().count + 1;
        self.step.next.err = self.known.val().err | self.err1.q.val();
        self.counts.write_en.next = self.v1.q.val();
        self.counts.write_addr.next = self.id1.q.val();
        self.counts.write_data.next = self.step.val();
        if self.last.val() {
            self.counts.write_data.next.count = bits::<9>(0);
            self.counts.write_data.next.err = false;
        }
        if !self.ready.q.val() {
            self.ready.d.next = self.cleared.q.val().all();
            self.counts.write_en.next = true;
            self.counts.write_addr.next = self.cleared.q.val();
            self.counts.write_data.next.count = bits::<9>(0);
            self.counts.write_data.next.err = false;
            self.cleared.d.next = self.cleared.q.val() + 1;
        }

        // Stage 2.
        self.v2.d.next = self.v1.q.val();
        self.id2.d.next = self.id1.q.val();
        self.data2.d.next = self.data1.q.val();
        self.state2.d.next = self.states.read_data.val();
        self.count2.d.next = self.known.val().count;
        self.last2.d.next = self.last.val();
        self.err2.d.next = self.known.val().err | self.err1.q.val();
        self.first2.next = !self.count2.q.val().any();
        self.upper2.next = self.id2.q.val() >> self.log_payload.val();
        self.small2.next = self.upper2.val().any();
        self.lo2.next = self.state2.q.val().lo;
        self.nhi2.next = self.state2.q.val().nhi;
        self.lo.next = self.zero.val();
        self.nhi.next = self.zero.val();
        if self.first2.val() {
            self.lo.next = self.lo2.val().get_bits::<LK>(0);
        }
        if self.last2.q.val() {
            self.nhi.next = self.nhi2.val().get_bits::<LK>(0);
        }
        self.shift2.next = self.state2.q.val().shift;
        self.rotate.en.next = true;
        self.rotate.x.next = self.data2.q.val();
        self.rotate.n.next = self.shift2.val().get_bits::<LK>(0);
        // Small reads: rows of a port are a ring; four per tag of its share (see README).
        self.tag2.next = self.id2.q.val().get_bits::<LT>(0);
        self.rings.x.next = self.tag2.val().get_bits::<LG>(LOG_SMALLEST);
        self.ring.next = self.rings.y.val();
        self.start13.next = self.state2.q.val().row;
        self.start.next = self.start13.val().get_bits::<LR>(0);
        self.on.next = self.count2.q.val() >> self.beats.val();
        self.row.next = self.start.val() + bit_cast::<LR, 9>(self.on.val());
        self.sub.next = self.count2.q.val() & self.subs.val();
        self.row_en.next = self.v2.q.val() & self.small2.val();
        self.row_addr.next = (self.start.val() & !self.ring.val()) | (self.row.val() & self.ring.val());
        self.row_sub.next = self.sub.val().get_bits::<3>(0);
        self.row_data.next = self.data2.q.val();
        self.small_fin.next = self.v2.q.val() & self.last2.q.val() & self.small2.val();
        self.small_tag.next = self.tag2.val();
        self.small_err.next = self.err2.q.val();
        // Whoever hears of it needs longer to read the bytes than they need to the buffer.
        self.pay_fin.next = self.v2.q.val() & self.last2.q.val() & !self.small2.val();
        self.pay.next.slot = self.state2.q.val().slot;
        self.pay.next.err = self.err2.q.val();
        self.pay.next.id = self.id2.q.val().get_bits::<8>(0);

        // Stage 3.
        self.v3.d.next = self.v2.q.val();
        self.id3.d.next = self.id2.q.val();
        self.mask3.d.next = (self.ones.val() << self.lo.val()) & (self.ones.val() >> self.nhi.val());
        self.shift3.d.next = self.shift2.val().get_bits::<LK>(0);
        self.row3.d.next = self.start13.val() + bit_cast::<13, 9>(self.count2.q.val());
        self.color3.d.next = self.state2.q.val().color;
        self.last3.d.next = self.last2.q.val();
        self.err3.d.next = self.err2.q.val();
        self.upper3.next = self.id3.q.val() >> self.log_payload.val();
        self.small3.next = self.upper3.val().any();
        self.finish.next = self.v3.q.val() & self.last3.q.val();
        self.finish_color.next = self.color3.q.val();
        self.finish_err.next = self.err3.q.val();

        // Stage 4. Lanes below the shift wrapped around: they belong to the next row.
        self.back.next = self.zero.val() - self.shift3.q.val();
        self.turned.next = (self.mask3.q.val() << self.shift3.q.val()) | (self.mask3.q.val() >> self.back.val());
        self.we4.d.next = self.zeros.val();
        if self.v3.q.val() & !self.small3.val() {
            self.we4.d.next = self.turned.val();
        }
        self.row1_4.d.next = !(self.ones.val() << self.shift3.q.val());
        self.row4.d.next = self.row3.q.val();
        self.asm_we.next = self.we4.q.val();
        self.asm_row1.next = self.row1_4.q.val();
        self.asm_addr.next = self.row4.q.val();
        self.asm_data.next = self.rotate.y.val();
        if self.reset.val() {
            self.cleared.d.next = self.nobody.val();
            self.ready.d.next = false;
            self.v0.d.next = false;
            self.v1.d.next = false;
            self.v2.d.next = false;
            self.v3.d.next = false;
            self.we4.d.next = self.zeros.val();
        }
    }
}
