//! What is known about each slot: sealed, reads outstanding, header there, read error.

use super::seals::SealQueue;
use crate::bus::MsgSink;
use crate::msg::{HdrDone, PayDone, SlotSeal};
use crate::prim::arb::BinToOneHot;
use crate::prim::ram::RamAsync;
use crate::stream::MsgSlice;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Minus one.
const ONE_LESS: u64 = (1 << 10) - 1;

/// Follows seals, finished reads and headers. Finished reads and seals pass one by one through a counter per slot, which
/// the seal raises by the number of reads and every finished read lowers by one: zero means none outstanding, whichever
/// came first. `N` clients make headers; only the one whose a frame is can say that its header is there.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct SlotTable<const N: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Start-up: the counter of `init_slot` is cleared.
    pub init: Signal<In, Bit>,
    pub init_slot: Signal<In, Bits<7>>,
    /// A new owner of `granted_slot`.
    pub granted: Signal<In, Bit>,
    pub granted_slot: Signal<In, Bits<7>>,
    pub s_seal: [MsgSink<SlotSeal>; 2],
    pub s_pay_done: MsgSink<PayDone>,
    pub s_hdr: [MsgSink<HdrDone>; N],
    /// Inline writes, which seals of port 0 wait for: see [`SealQueue`].
    pub under_way: Signal<In, Bits<3>>,
    pub written: Signal<In, Bit>,
    pub seal_we: Signal<Out, Bit>,
    pub seal: Signal<Out, SlotSeal>,
    /// Two slots asked about, of these clients. `sealed`: and no reads outstanding. `headed`: header there.
    pub ask: [Signal<In, Bits<7>>; 2],
    pub whose: [Signal<In, Bits<3>>; 2],
    pub sealed: [Signal<Out, Bit>; 2],
    pub headed: [Signal<Out, Bit>; 2],
    pub failed: [Signal<Out, Bit>; 2],
    seal0: SealQueue,
    seal1: MsgSlice<SlotSeal>,
    count: RamAsync<Bits<10>, 7>,
    ev_valid: DFF<Bit>,
    ev_slot: DFF<Bits<7>>,
    ev_delta: DFF<Bits<10>>,
    ev_seal: DFF<Bit>,
    ev_err: DFF<Bit>,
    is_sealed: DFF<Bits<128>>,
    is_busy: DFF<Bits<128>>,
    is_headed: [DFF<Bits<128>>; N],
    is_failed: DFF<Bits<128>>,
    ev_hot: BinToOneHot<128, 7>,
    hdr_hot: [BinToOneHot<128, 7>; N],
    new_hot: BinToOneHot<128, 7>,
    take0: Signal<Local, Bit>,
    take1: Signal<Local, Bit>,
    sum: Signal<Local, Bits<10>>,
    set_sealed: Signal<Local, Bits<128>>,
    set_busy: Signal<Local, Bits<128>>,
    set_failed: Signal<Local, Bits<128>>,
    complete: Signal<Local, Bits<128>>,
    shifted: Signal<Local, Bits<128>>,
    came: Signal<Local, HdrDone>,
    #[init(std::array::from_fn(|client| Constant::new((client as u64).to_bits())))]
    numbers: [Constant<Bits<3>>; N],
}

#[kernel]
impl<const N: usize> Logic for SlotTable<N> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, ev_valid, ev_slot, ev_delta, ev_seal, ev_err, is_sealed, is_busy, is_failed);
        clock!(self, clock, seal0, seal1, count);
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
        self.count.read_addr.next = self.ev_slot.q.val();
        self.sum.next = self.count.read_data.val() + self.ev_delta.q.val();
        self.count.write_en.next = self.init.val() | self.ev_valid.q.val();
        self.count.write_addr.next = self.ev_slot.q.val();
        self.count.write_data.next = self.sum.val();
        if self.init.val() {
            self.count.write_addr.next = self.init_slot.val();
            self.count.write_data.next = bits::<10>(0);
        }
        // The flags
        self.ev_hot.en.next = self.ev_valid.q.val();
        self.ev_hot.x.next = self.ev_slot.q.val();
        self.new_hot.en.next = self.granted.val();
        self.new_hot.x.next = self.granted_slot.val();
        self.set_sealed.next = bits::<128>(0);
        self.set_failed.next = bits::<128>(0);
        self.set_busy.next = bits::<128>(0);
        if self.ev_seal.q.val() {
            self.set_sealed.next = self.ev_hot.y.val();
        }
        if self.ev_err.q.val() {
            self.set_failed.next = self.ev_hot.y.val();
        }
        if self.sum.val().any() {
            self.set_busy.next = self.ev_hot.y.val();
        }
        self.is_sealed.d.next = (self.is_sealed.q.val() | self.set_sealed.val()) & !self.new_hot.y.val();
        self.is_failed.d.next = (self.is_failed.q.val() | self.set_failed.val()) & !self.new_hot.y.val();
        self.is_busy.d.next = (self.is_busy.q.val() & !self.ev_hot.y.val()) | self.set_busy.val();
        self.complete.next = self.is_sealed.q.val() & !self.is_busy.q.val();
        for i in 0..2 {
            self.shifted.next = self.complete.val() >> self.ask[i].val();
            self.sealed[i].next = self.shifted.val().get_bit(0);
            self.headed[i].next = false;
            self.shifted.next = self.is_failed.q.val() >> self.ask[i].val();
            self.failed[i].next = self.shifted.val().get_bit(0);
        }
        for n in 0..N {
            self.s_hdr[n].ready.next = true;
            self.hdr_hot[n].en.next = self.s_hdr[n].valid.val();
            self.came.next = self.s_hdr[n].data.val();
            self.hdr_hot[n].x.next = self.came.val().slot;
            self.is_headed[n].clock.next = self.clock.val();
            self.is_headed[n].d.next = (self.is_headed[n].q.val() | self.hdr_hot[n].y.val()) & !self.new_hot.y.val();
            for i in 0..2 {
                self.shifted.next = self.is_headed[n].q.val() >> self.ask[i].val();
                if self.whose[i].val() == self.numbers[n].val() {
                    self.headed[i].next = self.shifted.val().get_bit(0);
                }
            }
            if self.reset.val() {
                self.is_headed[n].d.next = bits::<128>(0);
            }
        }
        if self.reset.val() {
            self.ev_valid.d.next = false;
            self.is_sealed.d.next = bits::<128>(0);
            self.is_busy.d.next = bits::<128>(0);
            self.is_failed.d.next = bits::<128>(0);
        }
    }
}
