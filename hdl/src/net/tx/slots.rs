//! What is known about each slot: sealed, reads outstanding, header there, read error.

use super::seals::SealQueue;
use crate::bus::MsgSink;
use crate::msg::{HdrDone, PayDone, SlotSeal};
use crate::prim::ram::RamAsync;
use crate::prim::two_writers::RamTwoWriters;
use crate::stream::MsgSlice;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

// Marks of a slot.
const SEALED: u64 = 1;
const BUSY: u64 = 2;
const FAILED: u64 = 4;
/// Minus one.
const ONE_LESS: u64 = (1 << 10) - 1;

/// Follows seals, finished reads and headers. Finished reads and seals pass one by one through a counter per slot, which
/// the seal raises by the number of reads and every finished read lowers by one: zero means none outstanding, whichever
/// came first. `2^LS` slots. `N` clients make headers; only the one whose a frame is can say that its header is there.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct SlotTable<const N: usize, const LS: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Start-up: the counter of `init_slot` is cleared.
    pub init: Signal<In, Bit>,
    pub init_slot: Signal<In, Bits<8>>,
    /// A new owner of `granted_slot`.
    pub granted: Signal<In, Bit>,
    pub granted_slot: Signal<In, Bits<8>>,
    pub s_seal: [MsgSink<SlotSeal>; 2],
    pub s_pay_done: MsgSink<PayDone>,
    pub s_hdr: [MsgSink<HdrDone>; N],
    /// Inline writes, which seals of port 0 wait for: see [`SealQueue`].
    pub under_way: Signal<In, Bits<3>>,
    pub written: Signal<In, Bit>,
    pub seal_we: Signal<Out, Bit>,
    pub seal: Signal<Out, SlotSeal>,
    /// Two slots asked about, of these clients. `sealed`: and no reads outstanding. `headed`: header there.
    pub ask: [Signal<In, Bits<8>>; 2],
    pub whose: [Signal<In, Bits<3>>; 2],
    pub sealed: [Signal<Out, Bit>; 2],
    pub headed: [Signal<Out, Bit>; 2],
    pub failed: [Signal<Out, Bit>; 2],
    seal0: SealQueue,
    seal1: MsgSlice<SlotSeal>,
    count: RamAsync<Bits<10>, LS>,
    ev_valid: DFF<Bit>,
    ev_slot: DFF<Bits<8>>,
    ev_delta: DFF<Bits<10>>,
    ev_seal: DFF<Bit>,
    ev_err: DFF<Bit>,
    /// What events have said of a slot since it was granted: [`SEALED`], [`BUSY`] (reads outstanding), [`FAILED`]. Read for the two slots asked about.
    marks: RamTwoWriters<3, LS>,
    /// Of each client: its header of the slot is there.
    headers: [RamTwoWriters<1, LS>; N],
    take0: Signal<Local, Bit>,
    take1: Signal<Local, Bit>,
    sum: Signal<Local, Bits<10>>,
    known: Signal<Local, Bits<3>>,
    seen: [Signal<Local, Bits<3>>; 2],
    headed_slot: Signal<Local, Bits<8>>,
    came: Signal<Local, HdrDone>,
    #[init(std::array::from_fn(|client| Constant::new((client as u64).to_bits())))]
    numbers: [Constant<Bits<3>>; N],
}

#[kernel]
impl<const N: usize, const LS: usize> Logic for SlotTable<N, LS> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, ev_valid, ev_slot, ev_delta, ev_seal, ev_err);
        clock!(self, clock, seal0, seal1, count, marks);
        self.seal0.reset.next = self.reset.val();
        self.seal1.reset.next = self.reset.val();
        MsgSink::<SlotSeal>::link(&mut self.s_seal[0], &mut self.seal0.s);
        MsgSink::<SlotSeal>::link(&mut self.s_seal[1], &mut self.seal1.s);
        // One event a cycle: finished reads, then seals of port 0, then of port 1.
        self.take0.next = self.seal0.m.valid.val() & !self.s_pay_done.valid.val();
        self.take1.next = self.seal1.m.valid.val() & !self.s_pay_done.valid.val() & !self.take0.val();
        self.s_pay_done.ready.next = true;
        self.seal0.m.ready.next = !self.s_pay_done.valid.val();
        self.seal0.under_way.next = self.under_way.val();
        self.seal0.written.next = self.written.val();
        self.seal1.m.ready.next = !self.s_pay_done.valid.val() & !self.take0.val();
        self.seal.next = self.seal0.m.data.val();
        if !self.take0.val() {
            self.seal.next = self.seal1.m.data.val();
        }
        self.seal_we.next = self.take0.val() | self.take1.val();
        self.ev_valid.d.next = self.s_pay_done.valid.val() | self.take0.val() | self.take1.val();
        self.ev_slot.d.next = self.seal.val().slot;
        self.ev_delta.d.next = bit_cast::<10, 9>(self.seal.val().reads);
        self.ev_seal.d.next = !self.s_pay_done.valid.val();
        self.ev_err.d.next = self.s_pay_done.data.val().err & self.s_pay_done.valid.val();
        if self.s_pay_done.valid.val() {
            self.ev_slot.d.next = self.s_pay_done.data.val().slot;
            self.ev_delta.d.next = bits::<10>(ONE_LESS);
        }
        // The counter
        self.count.read_addr.next = self.ev_slot.q.val().get_bits::<LS>(0);
        self.sum.next = self.count.read_data.val() + self.ev_delta.q.val();
        self.count.write_en.next = self.init.val() | self.ev_valid.q.val();
        self.count.write_addr.next = self.ev_slot.q.val().get_bits::<LS>(0);
        self.count.write_data.next = self.sum.val();
        if self.init.val() {
            self.count.write_addr.next = self.init_slot.val().get_bits::<LS>(0);
            self.count.write_data.next = bits::<10>(0);
        }
        // The marks: a grant wipes them, an event adds to them.
        self.marks.write_en1.next = self.granted.val();
        self.marks.write_addr1.next = self.granted_slot.val().get_bits::<LS>(0);
        self.marks.write_data1.next = bits::<3>(0);
        self.known.next = self.marks.written0.val() & (SEALED | FAILED);
        if self.ev_seal.q.val() {
            self.known.next = self.known.val() | SEALED;
        }
        if self.ev_err.q.val() {
            self.known.next = self.known.val() | FAILED;
        }
        if self.sum.val().any() {
            self.known.next = self.known.val() | BUSY;
        }
        self.marks.write_en0.next = self.ev_valid.q.val();
        self.marks.write_addr0.next = self.ev_slot.q.val().get_bits::<LS>(0);
        self.marks.write_data0.next = self.known.val();
        self.marks.read_addr0.next = self.ask[0].val().get_bits::<LS>(0);
        self.marks.read_addr1.next = self.ask[1].val().get_bits::<LS>(0);
        self.seen[0].next = self.marks.read_data0.val();
        self.seen[1].next = self.marks.read_data1.val();
        for i in 0..2 {
            self.sealed[i].next = (self.seen[i].val() & (SEALED | BUSY)) == SEALED;
            self.failed[i].next = (self.seen[i].val() & FAILED).any();
            self.headed[i].next = false;
        }
        for n in 0..N {
            self.s_hdr[n].ready.next = true;
            self.came.next = self.s_hdr[n].data.val();
            self.headed_slot.next = self.came.val().slot;
            self.headers[n].clock.next = self.clock.val();
            self.headers[n].write_en0.next = self.s_hdr[n].valid.val();
            self.headers[n].write_addr0.next = self.headed_slot.val().get_bits::<LS>(0);
            self.headers[n].write_data0.next = bits::<1>(1);
            self.headers[n].write_en1.next = self.granted.val();
            self.headers[n].write_addr1.next = self.granted_slot.val().get_bits::<LS>(0);
            self.headers[n].write_data1.next = bits::<1>(0);
            self.headers[n].read_addr0.next = self.ask[0].val().get_bits::<LS>(0);
            self.headers[n].read_addr1.next = self.ask[1].val().get_bits::<LS>(0);
            if self.whose[0].val() == self.numbers[n].val() {
                self.headed[0].next = self.headers[n].read_data0.val().any();
            }
            if self.whose[1].val() == self.numbers[n].val() {
                self.headed[1].next = self.headers[n].read_data1.val().any();
            }
        }
        if self.reset.val() {
            self.ev_valid.d.next = false;
        }
    }
}
