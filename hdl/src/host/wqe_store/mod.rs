//! Work request buffers of 512 bytes with their free list, filled by small reads. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{RdRow, WqeData, WqeFree, WqeRead};
use crate::prim::mux::IndexMux;
use crate::prim::ram::{Ram, RamAsync};
use crate::prim::two_writers::RamTwoWriters;
use crate::stream::{MsgFifo, MsgSlice};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

// Codes of strides, by the bytes of a slot; 2^code is the number of its rows.
const STRIDE_64: u64 = 0;
const STRIDE_128: u64 = 1;
const STRIDE_256: u64 = 2;
const STRIDE_512: u64 = 3;
// Marks of a buffer.
const FILLED: u64 = 1;
const FAILED: u64 = 2;
/// Below this level `answers` has room for all that are in flight.
const ANSWERS: u64 = 12;

/// `NB` = 2^`LB` buffers of a send or receive queue unit (LB up to 8), `LR` = LB + 3.
///
/// `RdRow.tag` = fetch number (6 bits) | stride code << 6: row `r` of fetch `f` belongs to its request `r >> stride`,
/// whose buffer the owner has written to the map.
#[derive(LogicBlock, BlockDefault)]
#[demand(NB == 1 << LB && LR == LB + 3 && LB <= 8, "NB = 2^LB buffers, 2^LR rows")]
pub struct WqeStore<const NB: usize, const LB: usize, const LR: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; all buffers become free.
    pub reset: Signal<In, Bit>,
    /// Fetched rows, always taken.
    pub s_rd: MsgSink<RdRow>,
    pub s_read: MsgSink<WqeRead>,
    pub m_read: MsgSrc<WqeData>,
    pub s_free: MsgSink<WqeFree>,
    /// Pulse per buffer that came back over `s_free`.
    pub freed: Signal<Out, Bit>,
    /// Free buffers, to be taken by the owner.
    pub m_buffer: MsgSrc<WqeFree>,
    /// Binds request `map_addr[2:0]` of fetch `map_addr[8:3]` to buffer `map_handle`.
    pub map_we: Signal<In, Bit>,
    pub map_addr: Signal<In, Bits<9>>,
    pub map_handle: Signal<In, Bits<LB>>,
    /// Buffer `map_handle` starts a new life: without contents, or (`open_done`) with whatever it holds.
    pub open_en: Signal<In, Bit>,
    pub open_done: Signal<In, Bit>,
    /// Writes row 0 of buffer `put_handle` and marks it filled; taken when `put_ready`.
    pub put_en: Signal<In, Bit>,
    pub put_handle: Signal<In, Bits<LB>>,
    pub put_data: Signal<In, Bits<512>>,
    pub put_ready: Signal<Out, Bit>,
    /// One cycle per finished fetch.
    pub tag_done: Signal<Out, Bit>,
    pub tag_err: Signal<Out, Bit>,
    pub tag: Signal<Out, Bits<6>>,
    /// Of buffer `head_addr`, in the same cycle: whether it is filled, whether its fetch failed, and its first 64 bytes, the head and what follows it.
    pub head_addr: Signal<In, Bits<LB>>,
    pub done: Signal<Out, Bit>,
    pub err: Signal<Out, Bit>,
    pub head: Signal<Out, Bits<256>>,
    pub sge: Signal<Out, Bits<128>>,
    pub more: Signal<Out, Bits<128>>,
    rows: Ram<Bits<512>, LR>,
    heads: RamAsync<Bits<512>, LB>,
    map: RamAsync<Bits<LB>, 9>,
    /// Bit 0: filled, bit 1: its fetch failed. Written when a request's last row comes, and when its buffer is opened. Read for `head_addr` and for granules.
    marks: RamTwoWriters<2, LB>,
    frees: MsgSlice<WqeFree>,
    list: MsgFifo<WqeFree, LB>,
    boot: DFF<Bits<9>>,
    reads: MsgSlice<WqeRead>,
    answers: MsgFifo<WqeData, 4>,
    look_valid: DFF<Bit>,
    look_err: DFF<Bit>,
    granule: DFF<Bits<2>>,
    lane: IndexMux<Bits<128>, 4, 2>,
    booting: Signal<Local, Bit>,
    first: Signal<Local, Bits<512>>,
    #[init(Constant::new((NB as u64).into()))]
    all: Constant<Bits<9>>,
    rd_tag: Signal<Local, Bits<8>>,
    stride: Signal<Local, Bits<2>>,
    rd_row: Signal<Local, Bits<3>>,
    sub_mask: Signal<Local, Bits<3>>,
    sub: Signal<Local, Bits<3>>,
    wqe: Signal<Local, Bits<3>>,
    rd_data: Signal<Local, Bits<512>>,
    fill: Signal<Local, Bit>,
    fill_err: Signal<Local, Bit>,
    head_marks: Signal<Local, Bits<2>>,
    read_marks: Signal<Local, Bits<2>>,
    put_go: Signal<Local, Bit>,
    read_handle: Signal<Local, Bits<LB>>,
    read_granule: Signal<Local, Bits<5>>,
    read_go: Signal<Local, Bit>,
    row_word: Signal<Local, Bits<512>>,
}

#[kernel]
impl<const NB: usize, const LB: usize, const LR: usize> Logic for WqeStore<NB, LB, LR> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, boot, look_valid, look_err, granule);
        clock!(self, clock, rows, heads, map, marks, frees, list, reads, answers);
        self.frees.reset.next = self.reset.val();
        self.list.reset.next = self.reset.val();
        self.reads.reset.next = self.reset.val();
        self.answers.reset.next = self.reset.val();
        MsgSink::<WqeFree>::link(&mut self.s_free, &mut self.frees.s);
        MsgSink::<WqeRead>::link(&mut self.s_read, &mut self.reads.s);
        MsgSrc::<WqeData>::link(&mut self.m_read, &mut self.answers.m);
        MsgSrc::<WqeFree>::link(&mut self.m_buffer, &mut self.list.m);

        // Free list: filled once with all numbers after a reset, later with what comes back.
        self.booting.next = !(self.boot.q.val() == self.all.val());
        self.list.s.valid.next = self.booting.val() | self.frees.m.valid.val();
        self.list.s.data.next.handle = self.frees.m.data.val().handle;
        if self.booting.val() {
            self.list.s.data.next.handle = self.boot.q.val().get_bits::<8>(0);
            self.boot.d.next = self.boot.q.val() + 1;
        }
        self.frees.m.ready.next = !self.booting.val() & self.list.s.ready.val();
        self.freed.next = !self.booting.val() & self.list.s.ready.val() & self.frees.m.valid.val();

        // Fetched rows go straight into the buffer the map names.
        self.s_rd.ready.next = true;
        self.rd_tag.next = self.s_rd.data.val().tag;
        self.rd_row.next = self.s_rd.data.val().row;
        self.rd_data.next = self.s_rd.data.val().data;
        self.stride.next = self.rd_tag.val().get_bits::<2>(6);
        self.sub_mask.next = bits::<3>(((1 << STRIDE_512) - 1) as u64);
        match self.stride.val().index() {
            STRIDE_64 => {
                self.sub_mask.next = bits::<3>(0);
            }
            STRIDE_128 => {
                self.sub_mask.next = bits::<3>(((1 << STRIDE_128) - 1) as u64);
            }
            STRIDE_256 => {
                self.sub_mask.next = bits::<3>(((1 << STRIDE_256) - 1) as u64);
            }
            _ => {}
        }
        self.sub.next = self.rd_row.val() & self.sub_mask.val();
        self.wqe.next = self.rd_row.val() >> self.stride.val();
        self.map.read_addr.next = (bit_cast::<9, 6>(self.rd_tag.val().get_bits::<6>(0)) << 3) | bit_cast::<9, 3>(self.wqe.val());
        self.map.write_addr.next = self.map_addr.val();
        self.map.write_data.next = self.map_handle.val();
        self.map.write_en.next = self.map_we.val();
        self.tag.next = self.rd_tag.val().get_bits::<6>(0);
        self.tag_done.next = self.s_rd.valid.val() & self.s_rd.data.val().last;
        self.tag_err.next = self.s_rd.valid.val() & self.s_rd.data.val().last & self.s_rd.data.val().err;

        // Row memory: fetched rows first, a direct write when there is none.
        self.put_ready.next = !self.s_rd.valid.val();
        self.put_go.next = self.put_en.val() & !self.s_rd.valid.val();
        self.rows.write_addr.next = (bit_cast::<LR, LB>(self.put_handle.val())) << 3;
        self.rows.write_data.next = self.put_data.val();
        self.heads.write_addr.next = self.put_handle.val();
        self.heads.write_data.next = self.put_data.val();
        self.heads.write_en.next = self.put_go.val();
        self.rows.write_en.next = self.put_go.val() | self.s_rd.valid.val();
        self.marks.write_addr0.next = self.put_handle.val();
        self.fill.next = self.put_go.val();
        self.fill_err.next = false;
        if self.s_rd.valid.val() {
            self.rows.write_addr.next = (bit_cast::<LR, LB>(self.map.read_data.val()) << 3) | bit_cast::<LR, 3>(self.sub.val());
            self.rows.write_data.next = self.rd_data.val();
            self.heads.write_addr.next = self.map.read_data.val();
            self.heads.write_data.next = self.rd_data.val();
            self.heads.write_en.next = !self.sub.val().any();
            self.marks.write_addr0.next = self.map.read_data.val();
            self.fill.next = self.sub.val() == self.sub_mask.val();
            self.fill_err.next = self.s_rd.data.val().err;
        }
        self.heads.read_addr.next = self.head_addr.val();
        self.first.next = self.heads.read_data.val();
        self.head.next = self.first.val().get_bits::<256>(0);
        self.sge.next = self.first.val().get_bits::<128>(256);
        self.more.next = self.first.val().get_bits::<128>(384);

        // Filled and failed marks. An error stands on each row of its fetch, so the last one's says it.
        self.marks.write_en0.next = self.fill.val();
        self.marks.write_data0.next = bits::<2>(FILLED);
        if self.fill_err.val() {
            self.marks.write_data0.next = bits::<2>(FILLED | FAILED);
        }
        self.marks.write_en1.next = self.open_en.val();
        self.marks.write_addr1.next = self.map_handle.val();
        self.marks.write_data1.next = bits::<2>(0);
        if self.open_done.val() {
            self.marks.write_data1.next = bits::<2>(FILLED);
        }
        self.marks.read_addr0.next = self.head_addr.val();
        self.head_marks.next = self.marks.read_data0.val();
        self.done.next = (self.head_marks.val() & FILLED).any();
        self.err.next = (self.head_marks.val() & FAILED).any();

        // Granule reads wait here until their buffer is filled; the answer FIFO has room for all that are in flight.
        self.read_handle.next = bit_cast::<LB, 8>(self.reads.m.data.val().handle);
        self.marks.read_addr1.next = self.read_handle.val();
        self.read_marks.next = self.marks.read_data1.val();
        self.read_granule.next = self.reads.m.data.val().granule;
        self.read_go.next = self.reads.m.valid.val() & (self.read_marks.val() & FILLED).any() & (self.answers.level.val() < ANSWERS);
        self.reads.m.ready.next = self.read_go.val();
        self.rows.read_addr.next = (bit_cast::<LR, LB>(self.read_handle.val()) << 3) | bit_cast::<LR, 3>(self.read_granule.val().get_bits::<3>(2));
        self.look_valid.d.next = self.read_go.val();
        self.look_err.d.next = (self.read_marks.val() & FAILED).any();
        self.granule.d.next = self.read_granule.val().get_bits::<2>(0);
        self.row_word.next = self.rows.read_data.val();
        for i in 0..4 {
            self.lane.x[i].next = self.row_word.val().get_bits::<128>(128 * i);
        }
        self.lane.sel.next = self.granule.q.val();
        self.answers.s.data.next.data = self.lane.y.val();
        // The granule behind an even one.
        self.answers.s.data.next.more = self.row_word.val().get_bits::<128>(128);
        if self.granule.q.val().get_bit(1) {
            self.answers.s.data.next.more = self.row_word.val().get_bits::<128>(384);
        }
        self.answers.s.data.next.err = self.look_err.q.val();
        self.answers.s.valid.next = self.look_valid.q.val();

        if self.reset.val() {
            self.boot.d.next = bits::<9>(0);
            self.look_valid.d.next = false;
        }
    }
}
