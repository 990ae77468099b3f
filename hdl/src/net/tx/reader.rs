//! Reads jobs out of header RAM and assembly buffer, one beat a cycle.

use super::types::{BeatTag, TxJob};
use crate::msg::TxDone;
use crate::prim::keep_mask::{KeepMask, LenMask};
use ferric_abi::wire::ICRC_BYTES;
use ferric_hdl_derive::{kernel, BlockNew};
use rust_hdl::prelude::*;

/// Row r of a frame: header bytes, then payload bytes, then zeros (pad and ICRC place). A frame starts only when the
/// output FIFO has room for all of it, so nothing behind this ever waits. Frames follow each other without a gap. `2^hdr_log2`: bytes of a slot's header; `N` clients make headers.
#[derive(LogicBlock, BlockNew)]
#[given(hdr_log2: usize)]
pub(super) struct FrameReader<const W: usize, const K: usize, const LK: usize, const N: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    pub job: Signal<In, TxJob>,
    pub done: Signal<In, TxDone>,
    pub take: Signal<Out, Bit>,
    /// The `TxDone` FIFO can take one more.
    pub done_room: Signal<In, Bit>,
    /// Only while little waits in the output FIFO.
    pub shallow: Signal<In, Bit>,
    /// A beat left the output FIFO.
    pub popped: Signal<In, Bit>,
    /// Read ports of the memories; data comes a cycle later.
    pub hdr_addr: Signal<Out, Bits<12>>,
    pub hdr_data: [Signal<In, Bits<W>>; N],
    pub asm_addr: Signal<Out, Bits<13>>,
    pub asm_data: Signal<In, Bits<W>>,
    /// The slot and its rows are free again.
    pub free_valid: Signal<Out, Bit>,
    pub free_slot: Signal<Out, Bits<8>>,
    pub free_rows: Signal<Out, Bits<14>>,
    pub report: Signal<Out, Bit>,
    pub report_data: Signal<Out, TxDone>,
    pub sent: Signal<Out, Bit>,
    pub aborted: Signal<Out, Bit>,
    /// For one cycle: a frame begins, and whose it is. Frames leave in this order.
    pub begins: Signal<Out, Bit>,
    pub begins_function: Signal<Out, Bits<12>>,
    pub beat_valid: Signal<Out, Bit>,
    pub beat: Signal<Out, Bits<W>>,
    pub tag: Signal<Out, BeatTag>,
    // The frame being read.
    active: DFF<Bit>,
    row: DFF<Bits<13>>,
    hrow: DFF<Bits<12>>,
    hdr_left: DFF<Bits<9>>,
    pay_left: DFF<Bits<14>>,
    body_left: DFF<Bits<14>>,
    len_left: DFF<Bits<14>>,
    first: DFF<Bit>,
    cur: DFF<TxJob>,
    cur_done: DFF<TxDone>,
    room: DFF<Bits<12>>,
    last: Signal<Local, Bit>,
    finish: Signal<Local, Bit>,
    start: Signal<Local, Bit>,
    discard: Signal<Local, Bit>,
    reserved: Signal<Local, Bits<12>>,
    released: Signal<Local, Bits<12>>,
    left: Signal<Local, Bits<12>>,
    // Given back, a cycle later.
    f_valid: DFF<Bit>,
    f_slot: DFF<Bits<8>>,
    f_rows: DFF<Bits<14>>,
    f_report: DFF<Bit>,
    f_done: DFF<TxDone>,
    f_sent: DFF<Bit>,
    f_aborted: DFF<Bit>,
    // Stage 1: beside the memories' read registers.
    hdr_mask: LenMask<K, 9>,
    pay_mask: LenMask<K, 14>,
    valid1: DFF<Bit>,
    tag1: DFF<BeatTag>,
    /// Of each client's header, the lanes that are the frame's.
    hdr_lanes: [DFF<Bits<K>>; N],
    pay_lanes: DFF<Bits<K>>,
    // The beat.
    hdr_bits: [KeepMask<W, K>; N],
    bytes: Signal<Local, Bits<W>>,
    #[init(std::array::from_fn(|client| Constant::new((client as u64).to_bits())))]
    numbers: [Constant<Bits<3>>; N],
    pay_bits: KeepMask<W, K>,
    frame: Signal<Local, Bits<14>>,
    #[init(Constant::new((K as u64).to_bits()))]
    k8: Constant<Bits<8>>,
    #[init(Constant::new((K as u64).to_bits()))]
    k9: Constant<Bits<9>>,
    #[init(Constant::new((K as u64).to_bits()))]
    k14: Constant<Bits<14>>,
    #[init(Constant::new(((hdr_log2 - LK) as u64).to_bits()))]
    slot_shift: Constant<Bits<3>>,
    /// The bits of a header's length: what no header needs leaves no gate.
    #[init(Constant::new(((2u64 << hdr_log2) - 1).to_bits()))]
    length_bits: Constant<Bits<9>>,
    #[init(Constant::new(((super::OUT_BYTES / K) as u64).to_bits()))]
    depth: Constant<Bits<12>>,
    /// Room with which a frame begins if little is to wait.
    #[init(Constant::new(((super::OUT_BYTES / K - super::SHALLOW) as u64).to_bits()))]
    little: Constant<Bits<12>>,
    crowded: DFF<Bit>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize, const N: usize> Logic for FrameReader<W, K, LK, N> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, active, row, hrow, hdr_left, pay_left, body_left, len_left, first, cur, cur_done, room);
        dff_setup!(self, clock, f_valid, f_slot, f_rows, f_report, f_done, f_sent, f_aborted);
        dff_setup!(self, clock, valid1, tag1, pay_lanes, crowded);
        self.last.next = self.len_left.q.val() <= self.k14.val();
        self.finish.next = self.active.q.val() & self.last.val();
        self.start.next =
            self.valid.val() & !self.job.val().drop & self.done_room.val() & (self.room.q.val() >= self.job.val().beats) & !self.crowded.q.val() & (self.finish.val() | !self.active.q.val());
        // Only between frames, because both give back through the same registers.
        self.discard.next = self.valid.val() & self.job.val().drop & self.done_room.val() & !self.active.q.val();
        self.take.next = self.start.val() | self.discard.val();
        self.hdr_addr.next = self.hrow.q.val();
        self.asm_addr.next = self.row.q.val();
        // Counters: what is left of header, header and payload, frame without ICRC, frame.
        self.row.d.next = self.row.q.val() + 1;
        self.hrow.d.next = self.hrow.q.val() + 1;
        self.first.d.next = false;
        self.hdr_left.d.next = bits::<9>(0);
        if self.hdr_left.q.val() > self.k9.val() {
            self.hdr_left.d.next = (self.hdr_left.q.val() - self.k9.val()) & self.length_bits.val();
        }
        self.pay_left.d.next = bits::<14>(0);
        if self.pay_left.q.val() > self.k14.val() {
            self.pay_left.d.next = self.pay_left.q.val() - self.k14.val();
        }
        self.body_left.d.next = bits::<14>(0);
        if self.body_left.q.val() > self.k14.val() {
            self.body_left.d.next = self.body_left.q.val() - self.k14.val();
        }
        self.len_left.d.next = self.len_left.q.val() - self.k14.val();
        if self.finish.val() {
            self.active.d.next = false;
        }
        if self.start.val() {
            self.active.d.next = true;
            self.first.d.next = true;
            self.cur.d.next = self.job.val();
            self.cur_done.d.next = self.done.val();
            self.row.d.next = self.job.val().row;
            self.hrow.d.next = bit_cast::<12, 8>(self.job.val().slot) << self.slot_shift.val();
            self.hdr_left.d.next = self.job.val().hdr_len & self.length_bits.val();
            self.pay_left.d.next = self.job.val().pay_end;
            self.len_left.d.next = self.job.val().frame_len;
            self.body_left.d.next = self.job.val().frame_len - ICRC_BYTES;
            if self.job.val().plain {
                self.body_left.d.next = self.job.val().frame_len;
            }
        }
        // Room in the output FIFO, for whole frames
        self.reserved.next = bits::<12>(0);
        if self.start.val() {
            self.reserved.next = self.job.val().beats;
        }
        self.released.next = bits::<12>(0);
        if self.popped.val() {
            self.released.next = bits::<12>(1);
        }
        self.left.next = self.room.q.val() - self.reserved.val() + self.released.val();
        self.room.d.next = self.left.val();
        self.crowded.d.next = self.shallow.val() & (self.left.val() < self.little.val());
        // Giving back
        self.f_valid.d.next = self.finish.val() | self.discard.val();
        self.f_sent.d.next = self.finish.val();
        self.f_aborted.d.next = self.discard.val();
        self.f_slot.d.next = self.cur.q.val().slot;
        self.f_rows.d.next = self.cur.q.val().rows;
        self.f_done.d.next = self.cur_done.q.val();
        self.f_report.d.next = self.finish.val() & self.cur.q.val().report;
        if self.discard.val() {
            self.f_slot.d.next = self.job.val().slot;
            self.f_rows.d.next = self.job.val().rows;
            self.f_done.d.next = self.done.val();
            self.f_report.d.next = self.job.val().report;
        }
        self.free_valid.next = self.f_valid.q.val();
        self.free_slot.next = self.f_slot.q.val();
        self.free_rows.next = self.f_rows.q.val();
        self.report.next = self.f_report.q.val();
        self.report_data.next = self.f_done.q.val();
        self.sent.next = self.f_sent.q.val();
        self.aborted.next = self.f_aborted.q.val();
        self.begins.next = self.active.q.val() & self.first.q.val();
        self.begins_function.next = self.cur.q.val().function;
        // Stage 1
        self.hdr_mask.len.next = self.hdr_left.q.val();
        self.pay_mask.len.next = self.pay_left.q.val();
        self.pay_lanes.d.next = self.pay_mask.keep.val() & !self.hdr_mask.keep.val();
        self.valid1.d.next = self.active.q.val();
        self.tag1.d.next.first = self.first.q.val();
        self.tag1.d.next.last = self.last.val();
        self.tag1.d.next.vlan = self.cur.q.val().vlan;
        self.tag1.d.next.ipv6 = self.cur.q.val().ipv6;
        self.frame.next = self.cur.q.val().frame_len;
        self.tag1.d.next.turn = self.frame.val().get_bits::<2>(0);
        self.tag1.d.next.len = self.k8.val();
        if self.last.val() {
            self.tag1.d.next.len = self.len_left.q.val().get_bits::<8>(0);
        }
        self.tag1.d.next.body = self.k8.val();
        if self.body_left.q.val() <= self.k14.val() {
            self.tag1.d.next.body = self.body_left.q.val().get_bits::<8>(0);
        }
        // The beat, as the memories give it.
        self.pay_bits.keep.next = self.pay_lanes.q.val();
        self.beat_valid.next = self.valid1.q.val();
        self.tag.next = self.tag1.q.val();
        self.bytes.next = self.asm_data.val() & self.pay_bits.mask.val();
        for n in 0..N {
            self.hdr_lanes[n].clock.next = self.clock.val();
            self.hdr_lanes[n].d.next = bits::<K>(0);
            if self.cur.q.val().client == self.numbers[n].val() {
                self.hdr_lanes[n].d.next = self.hdr_mask.keep.val();
            }
            self.hdr_bits[n].keep.next = self.hdr_lanes[n].q.val();
            self.bytes.next = self.bytes.val() | (self.hdr_data[n].val() & self.hdr_bits[n].mask.val());
        }
        self.beat.next = self.bytes.val();
        if self.reset.val() {
            self.active.d.next = false;
            self.f_valid.d.next = false;
            self.f_report.d.next = false;
            self.f_sent.d.next = false;
            self.f_aborted.d.next = false;
            self.valid1.d.next = false;
            self.room.d.next = self.depth.val();
            self.crowded.d.next = false;
        }
    }
}
