//! The parser: beats of a packet to its headers.
use super::delivery::Delivery;
use super::semantics::Semantics;
use super::tables::WINDOW_BITS;
use super::types::{Carried, Note, UetHead, CAUSE, STAT_BITS};
use crate::bus::{AxisSink, MsgSink, MsgSrc};
use crate::prim::arb::BinToOneHot;
use crate::stream::{BeatsToWide, MsgSlice};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of `stat` that are causes, the first being none.
const CAUSES: usize = STAT_BITS - 1;

/// `L`: log2(K) + 1. Reads the headers of one packet after another; see README.md. Those that are not taken leave nothing but a pulse of `stat`.
#[derive(LogicBlock, BlockDefault)]
pub struct Parser<const W: usize, const K: usize, const L: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets what is under way.
    pub reset: Signal<In, Bit>,
    /// UDP destination port of Ultra Ethernet.
    pub port: Signal<In, Bits<16>>,
    /// Packets from behind the header of IP up to where IP says that they end, below 2^16 bytes.
    pub s: AxisSink<W, K>,
    /// One for each packet, in their order.
    pub note: MsgSink<Note>,
    /// Those that are taken.
    pub m: MsgSrc<UetHead>,
    /// A pulse for each packet, see `STATS`.
    pub stat: Signal<Out, Bits<STAT_BITS>>,
    /// A pulse for each that is not taken, and what its keeper calls it.
    pub bad: Signal<Out, Bit>,
    pub bad_handle: Signal<Out, Bits<16>>,
    wide: BeatsToWide<WINDOW_BITS, W, K, L>,
    notes: MsgSlice<Note>,
    delivery: Delivery,
    semantics: Semantics,
    one: BinToOneHot<CAUSES, CAUSE>,
    out: MsgSlice<UetHead>,
    go: Signal<Local, Bit>,
    good: Signal<Local, Bit>,
    both: Signal<Local, Bit>,
    #[init(Constant::new((1u64 << CAUSES).to_bits()))]
    reserved_bit: Constant<Bits<STAT_BITS>>,
    causes: DFF<Bits<CAUSES>>,
    reserved: DFF<Bit>,
    spoilt: DFF<Bit>,
    carried: Signal<Local, Carried>,
    spoilt_handle: DFF<Bits<16>>,
}

#[kernel]
impl<const W: usize, const K: usize, const L: usize> Logic for Parser<W, K, L> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, causes, reserved, spoilt, spoilt_handle);
        clock!(self, clock, wide, notes, delivery, semantics, out);
        self.wide.reset.next = self.reset.val();
        self.notes.reset.next = self.reset.val();
        self.delivery.reset.next = self.reset.val();
        self.semantics.reset.next = self.reset.val();
        self.out.reset.next = self.reset.val();
        AxisSink::<W, K>::link(&mut self.s, &mut self.wide.s);
        MsgSink::<Note>::link(&mut self.note, &mut self.notes.s);
        MsgSrc::<UetHead>::link(&mut self.m, &mut self.out.m);
        // All steps move together; the slice behind them says whether they do, from a register.
        self.go.next = self.out.s.ready.val();
        self.both.next = self.wide.m.valid.val() & self.notes.m.valid.val();
        self.wide.m.ready.next = self.go.val() & self.notes.m.valid.val();
        self.notes.m.ready.next = self.go.val() & self.wide.m.valid.val();
        self.delivery.go.next = self.go.val();
        self.delivery.port.next = self.port.val();
        self.delivery.window.next = self.wide.m.data.val();
        self.delivery.len.next = self.wide.m.len.val();
        if self.notes.m.data.val().bytes.any() {
            self.delivery.len.next = self.notes.m.data.val().bytes;
        }
        self.delivery.note.next = self.notes.m.data.val();
        self.delivery.valid.next = self.both.val();
        self.semantics.go.next = self.go.val();
        self.semantics.pds.next = self.delivery.pds.val();
        self.semantics.behind.next = self.delivery.behind.val();
        self.semantics.tail.next = self.delivery.tail.val();
        self.semantics.valid.next = self.delivery.done.val();
        self.good.next = self.semantics.done.val() & !self.semantics.cause.val().any();
        self.out.s.data.next = self.semantics.head.val();
        self.out.s.valid.next = self.good.val();
        self.one.en.next = self.semantics.done.val() & self.go.val();
        self.one.x.next = self.semantics.cause.val();
        self.causes.d.next = self.one.y.val();
        self.reserved.d.next = self.good.val() & self.go.val() & self.semantics.head.val().reserved;
        self.stat.next = bit_cast::<STAT_BITS, CAUSES>(self.causes.q.val());
        if self.reserved.q.val() {
            self.stat.next = bit_cast::<STAT_BITS, CAUSES>(self.causes.q.val()) | self.reserved_bit.val();
        }
        self.bad.next = self.spoilt.q.val();
        self.bad_handle.next = self.spoilt_handle.q.val();
        self.spoilt.d.next = self.semantics.done.val() & self.go.val() & self.semantics.cause.val().any();
        self.carried.next = self.semantics.head.val().carried;
        self.spoilt_handle.d.next = self.carried.val().handle;
        if self.reset.val() {
            self.spoilt.d.next = false;
            self.causes.d.next = bits::<CAUSES>(0);
            self.reserved.d.next = false;
        }
    }
}
