//! Reads of two masters: addresses in turns, answers by their ids. See README.md.

use crate::stream::{AxisSlice, MsgArb, MsgSlice};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of the second master's ids.
pub const SECOND: usize = 8;

/// Read address channel; `second`: of the second master.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Address {
    addr: Bits<64>,
    id: Bits<9>,
    second: Bit,
    len: Bits<8>,
    user: Bits<12>,
}

/// What comes with a beat.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Beat {
    id: Bits<9>,
    second: Bit,
    resp: Bits<2>,
}

/// Of a read's number the bit that says that it is the second master's.
const THEIRS: u64 = 1;

/// `W` bits and `K` bytes per beat. `LA`: bits of the first master's ids, `LO` = `LA` + 1 of those on the bus, whose top bit says whose they are.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K, "K must be W / 8")]
#[demand(LO == LA + 1 && LA >= SECOND && LA <= 9, "a bit says whose an id is")]
pub struct Reads<const W: usize, const K: usize, const LA: usize, const LO: usize> {
    pub clock: Signal<In, Clock>,
    /// Not while reads are in flight.
    pub reset: Signal<In, Bit>,
    pub ar_valid: Signal<Out, Bit>,
    pub ar_ready: Signal<In, Bit>,
    pub ar_id: Signal<Out, Bits<LO>>,
    pub ar_addr: Signal<Out, Bits<64>>,
    pub ar_len: Signal<Out, Bits<8>>,
    pub ar_user: Signal<Out, Bits<12>>,
    pub r_valid: Signal<In, Bit>,
    pub r_ready: Signal<Out, Bit>,
    pub r_id: Signal<In, Bits<LO>>,
    pub r_data: Signal<In, Bits<W>>,
    pub r_resp: Signal<In, Bits<2>>,
    pub r_last: Signal<In, Bit>,
    /// The first master.
    pub a_ar_valid: Signal<In, Bit>,
    pub a_ar_ready: Signal<Out, Bit>,
    pub a_ar_id: Signal<In, Bits<LA>>,
    pub a_ar_addr: Signal<In, Bits<64>>,
    pub a_ar_len: Signal<In, Bits<8>>,
    pub a_ar_user: Signal<In, Bits<12>>,
    pub a_r_valid: Signal<Out, Bit>,
    pub a_r_ready: Signal<In, Bit>,
    pub a_r_id: Signal<Out, Bits<LA>>,
    pub a_r_data: Signal<Out, Bits<W>>,
    pub a_r_resp: Signal<Out, Bits<2>>,
    pub a_r_last: Signal<Out, Bit>,
    /// The second.
    pub b_ar_valid: Signal<In, Bit>,
    pub b_ar_ready: Signal<Out, Bit>,
    pub b_ar_id: Signal<In, Bits<SECOND>>,
    pub b_ar_addr: Signal<In, Bits<64>>,
    pub b_ar_len: Signal<In, Bits<8>>,
    pub b_ar_user: Signal<In, Bits<12>>,
    pub b_r_valid: Signal<Out, Bit>,
    pub b_r_ready: Signal<In, Bit>,
    pub b_r_id: Signal<Out, Bits<SECOND>>,
    pub b_r_data: Signal<Out, Bits<W>>,
    pub b_r_resp: Signal<Out, Bits<2>>,
    pub b_r_last: Signal<Out, Bit>,
    addresses: MsgArb<Address, 2>,
    /// A beat and what comes with it: two slices in step.
    data: AxisSlice<W, K>,
    beat: MsgSlice<Beat>,
    #[init(Constant::new((LA as u64).into()))]
    whose_at: Constant<Bits<4>>,
    whose: Signal<Local, Bits<LO>>,
    number: Signal<Local, Bits<LO>>,
    came: Signal<Local, Bits<LO>>,
    top: Signal<Local, Bits<LO>>,
    here: Signal<Local, Bit>,
    to_second: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize, const LA: usize, const LO: usize> Logic for Reads<W, K, LA, LO> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, addresses, data, beat);
        self.addresses.reset.next = self.reset.val();
        self.data.reset.next = self.reset.val();
        self.beat.reset.next = self.reset.val();
        self.addresses.s[0].valid.next = self.a_ar_valid.val();
        self.addresses.s[0].data.next.addr = self.a_ar_addr.val();
        self.addresses.s[0].data.next.id = bit_cast::<9, LA>(self.a_ar_id.val());
        self.addresses.s[0].data.next.second = false;
        self.addresses.s[0].data.next.len = self.a_ar_len.val();
        self.addresses.s[0].data.next.user = self.a_ar_user.val();
        self.a_ar_ready.next = self.addresses.s[0].ready.val();
        self.addresses.s[1].valid.next = self.b_ar_valid.val();
        self.addresses.s[1].data.next.addr = self.b_ar_addr.val();
        self.addresses.s[1].data.next.id = bit_cast::<9, SECOND>(self.b_ar_id.val());
        self.addresses.s[1].data.next.second = true;
        self.addresses.s[1].data.next.len = self.b_ar_len.val();
        self.addresses.s[1].data.next.user = self.b_ar_user.val();
        self.b_ar_ready.next = self.addresses.s[1].ready.val();
        self.ar_valid.next = self.addresses.m.valid.val();
        self.addresses.m.ready.next = self.ar_ready.val();
        self.ar_addr.next = self.addresses.m.data.val().addr;
        self.ar_len.next = self.addresses.m.data.val().len;
        self.ar_user.next = self.addresses.m.data.val().user;
        self.whose.next = bits::<LO>(0);
        if self.addresses.m.data.val().second {
            self.whose.next = bits::<LO>(THEIRS);
        }
        self.number.next = bit_cast::<LO, 9>(self.addresses.m.data.val().id);
        self.ar_id.next = (self.whose.val() << self.whose_at.val()) | self.number.val();

        self.came.next = self.r_id.val();
        self.data.s.data.next = self.r_data.val();
        self.data.s.keep.next = bits::<K>(0);
        self.data.s.last.next = self.r_last.val();
        self.data.s.valid.next = self.r_valid.val() & self.beat.s.ready.val();
        self.beat.s.data.next.id = bit_cast::<9, LA>(self.came.val().get_bits::<LA>(0));
        self.top.next = self.came.val() >> self.whose_at.val();
        self.beat.s.data.next.second = self.top.val().any();
        self.beat.s.data.next.resp = self.r_resp.val();
        self.beat.s.valid.next = self.r_valid.val() & self.data.s.ready.val();
        self.r_ready.next = self.data.s.ready.val() & self.beat.s.ready.val();
        self.here.next = self.data.m.valid.val() & self.beat.m.valid.val();
        self.to_second.next = self.beat.m.data.val().second;
        self.a_r_valid.next = self.here.val() & !self.to_second.val();
        self.a_r_id.next = bit_cast::<LA, 9>(self.beat.m.data.val().id);
        self.a_r_data.next = self.data.m.data.val();
        self.a_r_resp.next = self.beat.m.data.val().resp;
        self.a_r_last.next = self.data.m.last.val();
        self.b_r_valid.next = self.here.val() & self.to_second.val();
        self.b_r_id.next = bit_cast::<SECOND, 9>(self.beat.m.data.val().id);
        self.b_r_data.next = self.data.m.data.val();
        self.b_r_resp.next = self.beat.m.data.val().resp;
        self.b_r_last.next = self.data.m.last.val();
        self.moves.next = self.a_r_ready.val();
        if self.to_second.val() {
            self.moves.next = self.b_r_ready.val();
        }
        self.data.m.ready.next = self.moves.val() & self.here.val();
        self.beat.m.ready.next = self.moves.val() & self.here.val();
    }
}
