//! Writes of two masters: burst by burst, and answers in the order of the bursts. See README.md.

use crate::stream::{AxisSlice, MsgFifo, MsgSlice};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// log2 of the bursts that may wait for their answers.
const LG_BURSTS: usize = 8;
/// Whose a burst is.
const FIRST: u64 = 1;
const SECOND: u64 = 2;

/// Write address channel.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Address {
    addr: Bits<64>,
    len: Bits<8>,
    user: Bits<12>,
}

/// `W` bits and `K` bytes per beat.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K, "K must be W / 8")]
pub struct Writes<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    /// Not while writes are in flight.
    pub reset: Signal<In, Bit>,
    pub aw_valid: Signal<Out, Bit>,
    pub aw_ready: Signal<In, Bit>,
    pub aw_addr: Signal<Out, Bits<64>>,
    pub aw_len: Signal<Out, Bits<8>>,
    pub aw_user: Signal<Out, Bits<12>>,
    pub w_valid: Signal<Out, Bit>,
    pub w_ready: Signal<In, Bit>,
    pub w_data: Signal<Out, Bits<W>>,
    pub w_strb: Signal<Out, Bits<K>>,
    pub w_last: Signal<Out, Bit>,
    pub b_valid: Signal<In, Bit>,
    pub b_ready: Signal<Out, Bit>,
    pub b_resp: Signal<In, Bits<2>>,
    /// The first master.
    pub a_aw_valid: Signal<In, Bit>,
    pub a_aw_ready: Signal<Out, Bit>,
    pub a_aw_addr: Signal<In, Bits<64>>,
    pub a_aw_len: Signal<In, Bits<8>>,
    pub a_aw_user: Signal<In, Bits<12>>,
    pub a_w_valid: Signal<In, Bit>,
    pub a_w_ready: Signal<Out, Bit>,
    pub a_w_data: Signal<In, Bits<W>>,
    pub a_w_strb: Signal<In, Bits<K>>,
    pub a_w_last: Signal<In, Bit>,
    pub a_b_valid: Signal<Out, Bit>,
    pub a_b_ready: Signal<In, Bit>,
    pub a_b_resp: Signal<Out, Bits<2>>,
    /// The second.
    pub b_aw_valid: Signal<In, Bit>,
    pub b_aw_ready: Signal<Out, Bit>,
    pub b_aw_addr: Signal<In, Bits<64>>,
    pub b_aw_len: Signal<In, Bits<8>>,
    pub b_aw_user: Signal<In, Bits<12>>,
    pub b_w_valid: Signal<In, Bit>,
    pub b_w_ready: Signal<Out, Bit>,
    pub b_w_data: Signal<In, Bits<W>>,
    pub b_w_strb: Signal<In, Bits<K>>,
    pub b_w_last: Signal<In, Bit>,
    pub b_b_valid: Signal<Out, Bit>,
    pub b_b_ready: Signal<In, Bit>,
    pub b_b_resp: Signal<Out, Bits<2>>,
    addresses: MsgSlice<Address>,
    data: AxisSlice<W, K>,
    answers: MsgSlice<Bits<2>>,
    bursts: MsgFifo<Bits<2>, LG_BURSTS>,
    /// A burst is under way, the second master's or the first's; its address has been given.
    busy: DFF<Bit>,
    second: DFF<Bit>,
    given: DFF<Bit>,
    gives: Signal<Local, Bit>,
    offers: Signal<Local, Bit>,
    shows: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    whose: Signal<Local, Bits<2>>,
    answered: Signal<Local, Bit>,
    takes: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Writes<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, busy, second, given);
        clock!(self, clock, addresses, data, answers, bursts);
        self.addresses.reset.next = self.reset.val();
        self.data.reset.next = self.reset.val();
        self.answers.reset.next = self.reset.val();
        self.bursts.reset.next = self.reset.val();

        // Whose turn it is: in turns if both want one.
        if !self.busy.q.val() {
            self.second.d.next = self.b_aw_valid.val() & (!self.a_aw_valid.val() | !self.second.q.val());
            self.busy.d.next = self.a_aw_valid.val() | self.b_aw_valid.val();
            self.given.d.next = false;
        }
        // Its address.
        self.offers.next = self.a_aw_valid.val();
        self.addresses.s.data.next.addr = self.a_aw_addr.val();
        self.addresses.s.data.next.len = self.a_aw_len.val();
        self.addresses.s.data.next.user = self.a_aw_user.val();
        self.bursts.s.data.next = bits::<2>(FIRST);
        if self.second.q.val() {
            self.offers.next = self.b_aw_valid.val();
            self.addresses.s.data.next.addr = self.b_aw_addr.val();
            self.addresses.s.data.next.len = self.b_aw_len.val();
            self.addresses.s.data.next.user = self.b_aw_user.val();
            self.bursts.s.data.next = bits::<2>(SECOND);
        }
        self.gives.next = self.busy.q.val() & !self.given.q.val() & self.offers.val() & self.addresses.s.ready.val() & self.bursts.s.ready.val();
        self.addresses.s.valid.next = self.gives.val();
        self.bursts.s.valid.next = self.gives.val();
        self.a_aw_ready.next = self.busy.q.val() & !self.given.q.val() & !self.second.q.val() & self.addresses.s.ready.val() & self.bursts.s.ready.val();
        self.b_aw_ready.next = self.busy.q.val() & !self.given.q.val() & self.second.q.val() & self.addresses.s.ready.val() & self.bursts.s.ready.val();
        if self.gives.val() {
            self.given.d.next = true;
        }
        // Its beats behind it.
        self.shows.next = self.a_w_valid.val();
        self.data.s.data.next = self.a_w_data.val();
        self.data.s.keep.next = self.a_w_strb.val();
        self.data.s.last.next = self.a_w_last.val();
        if self.second.q.val() {
            self.shows.next = self.b_w_valid.val();
            self.data.s.data.next = self.b_w_data.val();
            self.data.s.keep.next = self.b_w_strb.val();
            self.data.s.last.next = self.b_w_last.val();
        }
        self.data.s.valid.next = self.shows.val() & self.given.q.val();
        self.a_w_ready.next = self.given.q.val() & !self.second.q.val() & self.data.s.ready.val();
        self.b_w_ready.next = self.given.q.val() & self.second.q.val() & self.data.s.ready.val();
        self.ends.next = self.shows.val() & self.given.q.val() & self.data.s.ready.val() & self.data.s.last.val();
        if self.ends.val() {
            self.busy.d.next = false;
            self.given.d.next = false;
        }
        self.aw_valid.next = self.addresses.m.valid.val();
        self.addresses.m.ready.next = self.aw_ready.val();
        self.aw_addr.next = self.addresses.m.data.val().addr;
        self.aw_len.next = self.addresses.m.data.val().len;
        self.aw_user.next = self.addresses.m.data.val().user;
        self.w_valid.next = self.data.m.valid.val();
        self.data.m.ready.next = self.w_ready.val();
        self.w_data.next = self.data.m.data.val();
        self.w_strb.next = self.data.m.keep.val();
        self.w_last.next = self.data.m.last.val();

        // Answers, in the order of the bursts.
        self.answers.s.valid.next = self.b_valid.val();
        self.answers.s.data.next = self.b_resp.val();
        self.b_ready.next = self.answers.s.ready.val();
        self.whose.next = self.bursts.m.data.val();
        self.answered.next = self.answers.m.valid.val() & self.bursts.m.valid.val();
        self.a_b_valid.next = self.answered.val() & self.whose.val().get_bit(0);
        self.b_b_valid.next = self.answered.val() & self.whose.val().get_bit(1);
        self.a_b_resp.next = self.answers.m.data.val();
        self.b_b_resp.next = self.answers.m.data.val();
        self.takes.next = self.answered.val() & ((self.whose.val().get_bit(0) & self.a_b_ready.val()) | (self.whose.val().get_bit(1) & self.b_b_ready.val()));
        self.answers.m.ready.next = self.takes.val();
        self.bursts.m.ready.next = self.takes.val();
        if self.reset.val() {
            self.busy.d.next = false;
            self.given.d.next = false;
        }
    }
}
