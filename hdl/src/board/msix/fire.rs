//! Pending bits, and one message at a time out of the table.

use crate::bus::MsgSink;
use crate::msg::MsixReq;
use crate::prim::arb::{BinToOneHot, OneHotToBin, RrPick};
use crate::prim::word::WordPut;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Choose,
    /// Three words of its entry are read.
    Look,
    Low,
    High,
    Data,
    Offer,
}

/// Chooses pending, unmasked vectors in turn and offers their messages.
#[derive(LogicBlock, BlockDefault)]
pub struct Fire<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Messages may be sent.
    pub enable: Signal<In, Bit>,
    pub msix: MsgSink<MsixReq>,
    /// Mask bit of each vector.
    pub masks: Signal<In, Bits<32>>,
    pub pending: Signal<Out, Bits<32>>,
    /// Word of the table, and what is in it a cycle later.
    pub look: Signal<Out, Bits<7>>,
    pub found: Signal<In, Bits<32>>,
    /// No message is on its way.
    pub free: Signal<In, Bit>,
    pub at_valid: Signal<Out, Bit>,
    pub at_ready: Signal<In, Bit>,
    pub addr: Signal<Out, Bits<64>>,
    pub beat_valid: Signal<Out, Bit>,
    pub beat_ready: Signal<In, Bit>,
    pub line: Signal<Out, Bits<W>>,
    pub strobes: Signal<Out, Bits<K>>,
    state: DFF<State>,
    waits: DFF<Bits<32>>,
    chosen: DFF<Bits<32>>,
    vector: DFF<Bits<5>>,
    low: DFF<Bits<32>>,
    high: DFF<Bits<32>>,
    at: DFF<Bit>,
    beat: DFF<Bit>,
    asked: BinToOneHot<32, 5>,
    pick: RrPick<32>,
    number: OneHotToBin<32, 5>,
    put: WordPut<Bits<W>>,
    ready: DFF<Bits<32>>,
    whole: DFF<Bits<W>>,
    enables: DFF<Bits<K>>,
    lane: Signal<Local, Bits<6>>,
    four: Signal<Local, Bits<K>>,
    entry: Signal<Local, Bits<7>>,
    cleared: Signal<Local, Bits<32>>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Fire<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, waits, chosen, vector, low, high, at, beat, ready, whole, enables);
        self.msix.ready.next = true;
        self.asked.en.next = self.msix.valid.val() & (self.msix.data.val().function == 0) & !self.msix.data.val().vector.get_bits::<11>(5).any();
        self.asked.x.next = self.msix.data.val().vector.get_bits::<5>(0);
        self.pending.next = self.waits.q.val();
        self.ready.d.next = bits::<32>(0);
        if self.enable.val() {
            self.ready.d.next = self.waits.q.val() & !self.masks.val();
        }
        self.pick.req.next = self.ready.q.val();
        self.pick.last.next = self.chosen.q.val();
        self.number.x.next = self.chosen.q.val();
        self.cleared.next = bits::<32>(0);
        self.entry.next = bit_cast::<7, 5>(self.vector.q.val()) << 2;
        self.look.next = self.entry.val();
        self.addr.next = bit_cast::<64, 32>(self.low.q.val()) | (bit_cast::<64, 32>(self.high.q.val()) << 32);
        self.at_valid.next = self.at.q.val();
        self.beat_valid.next = self.beat.q.val();
        self.put.x.next = bits::<W>(0);
        self.put.sel.next = bit_cast::<6, 4>(self.low.q.val().get_bits::<4>(2));
        self.put.data.next = self.found.val();
        self.lane.next = bit_cast::<6, 4>(self.low.q.val().get_bits::<4>(2)) << 2;
        self.four.next = bits::<K>(15);
        self.line.next = self.whole.q.val();
        self.strobes.next = self.enables.q.val();
        match self.state.q.val() {
            State::Idle => {
                if self.free.val() & self.ready.q.val().any() {
                    self.chosen.d.next = self.pick.grant.val();
                    self.state.d.next = State::Choose;
                }
            }
            State::Choose => {
                // A request from here on makes the vector pending again.
                self.cleared.next = self.chosen.q.val();
                self.vector.d.next = self.number.y.val();
                self.state.d.next = State::Look;
            }
            State::Look => {
                self.state.d.next = State::Low;
            }
            State::Low => {
                self.low.d.next = self.found.val() & bits::<32>(0xffff_fffc_u64);
                self.look.next = self.entry.val() | bits::<7>(1);
                self.state.d.next = State::High;
            }
            State::High => {
                self.high.d.next = self.found.val();
                self.look.next = self.entry.val() | bits::<7>(2);
                self.state.d.next = State::Data;
            }
            State::Data => {
                self.whole.d.next = self.put.y.val();
                self.enables.d.next = self.four.val() << self.lane.val();
                self.at.d.next = true;
                self.beat.d.next = true;
                self.state.d.next = State::Offer;
            }
            State::Offer => {
                if !self.at.q.val() & !self.beat.q.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.at_ready.val() {
            self.at.d.next = false;
        }
        if self.beat_ready.val() {
            self.beat.d.next = false;
        }
        self.waits.d.next = (self.waits.q.val() & !self.cleared.val()) | self.asked.y.val();
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.waits.d.next = bits::<32>(0);
            self.at.d.next = false;
            self.beat.d.next = false;
        }
    }
}
