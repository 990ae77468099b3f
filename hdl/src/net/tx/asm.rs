//! Write side of the assembly buffer: DMA rows always, inline bytes in the cycles between.

use crate::bus::MsgSink;
use crate::msg::InlineWrite;
use crate::prim::keep_mask::{LenMask, RangeMask};
use crate::prim::sized::SizedLaneRam;
use crate::prim::spread::{SpreadLanes, SPREAD_BYTES};
use crate::stream::MsgSlice;
use ferric_hdl_derive::{kernel, BlockNew};
use rust_hdl::prelude::*;

/// The assembly buffer, `2^bytes_log2` bytes. An inline write covers at most 32 bytes; rows narrower than that take it in pieces of a row's length, each over at
/// most two rows.
#[derive(LogicBlock, BlockNew)]
#[given(bytes_log2: usize)]
#[demand(W == 8 * K && K == 1 << LK && (8..=64).contains(&K), "K must be W / 8, 8 to 64, LK its logarithm")]
pub(super) struct Assembly<const W: usize, const K: usize, const LK: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub asm_we: Signal<In, Bits<K>>,
    pub asm_row1: Signal<In, Bits<K>>,
    pub asm_addr: Signal<In, Bits<13>>,
    pub asm_data: Signal<In, Bits<W>>,
    pub s_inline: MsgSink<InlineWrite>,
    /// Inline writes taken and not yet in the buffer; pulse: one goes in.
    pub under_way: Signal<Out, Bits<3>>,
    pub written: Signal<Out, Bit>,
    pub raddr: Signal<In, Bits<13>>,
    pub rdata: Signal<Out, Bits<W>>,
    #[init(SizedLaneRam::new(bytes_log2 - LK))]
    ram: SizedLaneRam<W, K, 13>,
    d_we: DFF<Bits<K>>,
    d_row1: DFF<Bits<K>>,
    d_addr: DFF<Bits<13>>,
    d_data: DFF<Bits<W>>,
    d_busy: DFF<Bit>,
    queue: MsgSlice<InlineWrite>,
    range: RangeMask<K, 8>,
    wrap: LenMask<K, 8>,
    below: LenMask<K, 8>,
    spread: SpreadLanes<W, K>,
    count: DFF<Bits<3>>,
    /// The piece of the write at hand, if it has several.
    piece: DFF<Bits<2>>,
    i_valid: DFF<Bit>,
    i_final: DFF<Bit>,
    i_we: DFF<Bits<K>>,
    i_row1: DFF<Bits<K>>,
    i_addr: DFF<Bits<13>>,
    i_data: DFF<Bits<W>>,
    fire: Signal<Local, Bit>,
    load: Signal<Local, Bit>,
    split: Signal<Local, Bit>,
    came: Signal<Local, Bit>,
    went: Signal<Local, Bit>,
    dst: Signal<Local, Bits<18>>,
    len: Signal<Local, Bits<8>>,
    data: Signal<Local, Bits<256>>,
    passed: Signal<Local, Bits<8>>,
    at: Signal<Local, Bits<8>>,
    limit: Signal<Local, Bits<8>>,
    row: Signal<Local, Bits<18>>,
    #[init(Constant::new(K < SPREAD_BYTES))]
    narrow: Constant<Bit>,
    /// Bytes of a piece, and their logarithm.
    #[init(Constant::new((K.min(SPREAD_BYTES) as u64).to_bits()))]
    piece_bytes: Constant<Bits<8>>,
    #[init(Constant::new(u64::from(K.min(SPREAD_BYTES).ilog2()).to_bits()))]
    piece_log2: Constant<Bits<4>>,
    #[init(Constant::new((K as u64 - 1).to_bits()))]
    lane_bits: Constant<Bits<8>>,
    #[init(Constant::new((K as u64).to_bits()))]
    k: Constant<Bits<8>>,
    #[init(Constant::new((LK as u64).to_bits()))]
    lk: Constant<Bits<4>>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize> Logic for Assembly<W, K, LK> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, d_we, d_row1, d_addr, d_data, d_busy, count, piece, i_valid, i_final, i_we, i_row1, i_addr, i_data);
        clock!(self, clock, ram, queue);
        self.queue.reset.next = self.reset.val();
        self.d_we.d.next = self.asm_we.val();
        self.d_row1.d.next = self.asm_row1.val();
        self.d_addr.d.next = self.asm_addr.val();
        self.d_data.d.next = self.asm_data.val();
        self.d_busy.d.next = self.asm_we.val().any();
        // Taken by hand instead of by link, to count what is inside.
        self.came.next = self.s_inline.valid.val() & self.queue.s.ready.val();
        self.s_inline.ready.next = self.queue.s.ready.val();
        self.queue.s.valid.next = self.s_inline.valid.val();
        self.queue.s.data.next = self.s_inline.data.val();
        self.fire.next = self.i_valid.q.val() & !self.d_busy.q.val();
        self.load.next = self.queue.m.valid.val() & (self.fire.val() | !self.i_valid.q.val());
        // The piece at hand
        self.passed.next = bits::<8>(0);
        self.data.next = self.queue.m.data.val().data;
        if self.narrow.val() {
            self.passed.next = bit_cast::<8, 2>(self.piece.q.val()) << self.piece_log2.val();
            self.data.next = self.queue.m.data.val().data >> (self.passed.val() << 3);
        }
        self.dst.next = self.queue.m.data.val().dst + bit_cast::<18, 8>(self.passed.val());
        self.len.next = bit_cast::<8, 6>(self.queue.m.data.val().len) - self.passed.val();
        self.split.next = false;
        if self.narrow.val() & (self.len.val() > self.piece_bytes.val()) {
            self.split.next = true;
            self.len.next = self.piece_bytes.val();
        }
        self.at.next = self.dst.val().get_bits::<8>(0) & self.lane_bits.val();
        self.limit.next = self.at.val() + self.len.val();
        self.row.next = self.dst.val() >> self.lk.val();
        self.range.lo.next = self.at.val();
        self.range.hi.next = self.limit.val();
        self.wrap.len.next = bits::<8>(0);
        if self.limit.val() > self.k.val() {
            self.wrap.len.next = self.limit.val() - self.k.val();
        }
        self.below.len.next = self.at.val();
        self.spread.x.next = self.data.val();
        self.spread.n.next = self.dst.val().get_bits::<5>(0);
        self.queue.m.ready.next = self.load.val() & !self.split.val();
        if self.fire.val() {
            self.i_valid.d.next = false;
        }
        if self.load.val() {
            self.i_valid.d.next = true;
            self.i_final.d.next = !self.split.val();
            self.piece.d.next = bits::<2>(0);
            if self.split.val() {
                self.piece.d.next = self.piece.q.val() + 1;
            }
            self.i_we.d.next = self.range.keep.val() | self.wrap.keep.val();
            self.i_row1.d.next = self.below.keep.val();
            self.i_addr.d.next = self.row.val().get_bits::<13>(0);
            self.i_data.d.next = self.spread.y.val();
        }
        self.went.next = self.fire.val() & self.i_final.q.val();
        if self.came.val() & !self.went.val() {
            self.count.d.next = self.count.q.val() + 1;
        }
        if self.went.val() & !self.came.val() {
            self.count.d.next = self.count.q.val() - 1;
        }
        self.under_way.next = self.count.q.val();
        self.written.next = self.went.val();
        // The port
        self.ram.we.next = bits::<K>(0);
        if self.i_valid.q.val() {
            self.ram.we.next = self.i_we.q.val();
        }
        self.ram.row1.next = self.i_row1.q.val();
        self.ram.waddr.next = self.i_addr.q.val();
        self.ram.wdata.next = self.i_data.q.val();
        if self.d_busy.q.val() {
            self.ram.we.next = self.d_we.q.val();
            self.ram.row1.next = self.d_row1.q.val();
            self.ram.waddr.next = self.d_addr.q.val();
            self.ram.wdata.next = self.d_data.q.val();
        }
        self.ram.raddr.next = self.raddr.val();
        self.rdata.next = self.ram.rdata.val();
        if self.reset.val() {
            self.d_busy.d.next = false;
            self.count.d.next = bits::<3>(0);
            self.piece.d.next = bits::<2>(0);
            self.i_valid.d.next = false;
        }
    }
}
