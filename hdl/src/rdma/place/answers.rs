//! Answers in front of the walk: the head and the first entry of their request are read as soon as they come, whatever is being walked. See README.md.

use super::walk::{Segment, ATOMIC_SKIPS, SEND_SKIPS};
use crate::bus::{MsgSink, MsgSrc};
use crate::codes::{access, place_kind, PAGE};
use crate::msg::{MrReq, PlaceOp, WqeData, WqeRead};
use crate::stream::MsgFifo;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// What the two reads of an answer say.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Found {
    /// Both could be read, there is an entry, and the message is no longer than `total` says.
    good: Bit,
    /// Bytes of the message.
    total: Bits<13>,
    va: Bits<64>,
    /// Bytes of the entry; `long`: more than a packet has.
    length: Bits<13>,
    long: Bit,
    key: Bits<32>,
}

/// Between the answers and the walk, in their order. Those that are a whole message are looked at; eight wait.
#[derive(LogicBlock, Default)]
pub struct Answers {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_op: MsgSink<PlaceOp>,
    /// Of one that is `straight` the payload lies in the first entry and in one page: `seg` is its only segment, with the key request `mr`.
    pub m_op: MsgSrc<PlaceOp>,
    pub straight: Signal<Out, Bit>,
    pub seg: Signal<Out, Segment>,
    pub mr: Signal<Out, MrReq>,
    /// Reads of the walk, and what they bring.
    pub s_read: MsgSink<WqeRead>,
    pub m_data: MsgSrc<WqeData>,
    pub m_again: MsgSrc<WqeRead>,
    pub s_again: MsgSink<WqeData>,
    orders: MsgFifo<PlaceOp, 3>,
    founds: MsgFifo<Found, 4>,
    /// Whose what comes is: an answer's, or the walk's. There is room for all: two of each answer that waits, two of the walk.
    whose: MsgFifo<Bit, 5>,
    read: DFF<WqeRead>,
    read_busy: DFF<Bit>,
    /// The entry is read next: the one of an atomic.
    second: DFF<Bit>,
    second_atomic: DFF<Bit>,
    /// What comes next for an answer is its entry; of its head there is this.
    entry_next: DFF<Bit>,
    head_good: DFF<Bit>,
    total: DFF<Bits<13>>,
    /// The answer in front has been judged.
    ready: DFF<Bit>,
    fits: DFF<Bit>,
    kind_in: Signal<Local, Bits<4>>,
    looked_at: Signal<Local, Bit>,
    open: Signal<Local, Bit>,
    walks: Signal<Local, Bit>,
    asks: Signal<Local, Bit>,
    gone: Signal<Local, Bit>,
    mine: Signal<Local, Bit>,
    comes: Signal<Local, Bit>,
    data: Signal<Local, Bits<128>>,
    more: Signal<Local, Bits<128>>,
    length: Signal<Local, Bits<32>>,
    entry_len: Signal<Local, Bits<32>>,
    kind: Signal<Local, Bits<4>>,
    judged: Signal<Local, Bit>,
    there: Signal<Local, Bit>,
    found: Signal<Local, Found>,
    va: Signal<Local, Bits<64>>,
    ending: Signal<Local, Bits<14>>,
    goes: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Answers {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, read, read_busy, second, second_atomic, entry_next, head_good, total, ready, fits);
        clock!(self, clock, orders, founds, whose);
        self.orders.reset.next = self.reset.val();
        self.founds.reset.next = self.reset.val();
        self.whose.reset.next = self.reset.val();

        // Reads: the walk's first, which has an order in hand.
        self.kind_in.next = self.s_op.data.val().kind;
        self.looked_at.next = self.kind_in.val().get_bit(place_kind::ANSWER_BIT) & self.s_op.data.val().done & self.s_op.data.val().pay_len.any() & !self.s_op.data.val().msg_off.any();
        self.open.next = !self.read_busy.q.val();
        self.walks.next = self.s_read.valid.val() & self.open.val();
        self.s_read.ready.next = self.open.val();
        self.s_op.ready.next = self.orders.s.ready.val() & self.open.val() & !self.s_read.valid.val();
        self.orders.s.valid.next = self.s_op.valid.val() & self.open.val() & !self.s_read.valid.val();
        self.orders.s.data.next = self.s_op.data.val();
        self.asks.next = self.s_op.valid.val() & self.s_op.ready.val() & self.looked_at.val();
        self.m_again.data.next = self.read.q.val();
        self.m_again.valid.next = self.read_busy.q.val();
        self.gone.next = self.m_again.ready.val() & self.read_busy.q.val();
        if self.gone.val() {
            self.read_busy.d.next = self.second.q.val();
            self.second.d.next = false;
            self.read.d.next.granule = bits::<5>(SEND_SKIPS + 1);
            if self.second_atomic.q.val() {
                self.read.d.next.granule = bits::<5>(ATOMIC_SKIPS + 1);
            }
        }
        if self.open.val() {
            self.read.d.next = self.s_read.data.val();
            self.read_busy.d.next = self.walks.val() | self.asks.val();
            self.second.d.next = self.asks.val();
            self.second_atomic.d.next = self.kind_in.val().get_bit(0);
            if self.asks.val() {
                self.read.d.next.handle = bit_cast::<8, 6>(self.s_op.data.val().rq_handle);
                self.read.d.next.granule = bits::<5>(0);
            }
        }
        self.whose.s.valid.next = self.walks.val() | self.asks.val() | (self.gone.val() & self.second.q.val());
        self.whose.s.data.next = !self.walks.val();

        // What they bring. Head and entry of an answer come in that order.
        self.mine.next = self.whose.m.data.val();
        self.m_data.data.next = self.s_again.data.val();
        self.m_data.valid.next = self.s_again.valid.val() & self.whose.m.valid.val() & !self.mine.val();
        self.s_again.ready.next = self.whose.m.valid.val() & (self.mine.val() | self.m_data.ready.val());
        self.whose.m.ready.next = self.s_again.valid.val() & (self.mine.val() | self.m_data.ready.val());
        self.comes.next = self.s_again.valid.val() & self.whose.m.valid.val() & self.mine.val();
        self.data.next = self.s_again.data.val().data;
        self.more.next = self.s_again.data.val().more;
        self.length.next = self.more.val().get_bits::<32>(96);
        self.entry_len.next = self.data.val().get_bits::<32>(64);
        if self.comes.val() {
            self.entry_next.d.next = !self.entry_next.q.val();
            self.head_good.d.next = self.data.val().get_bits::<8>(16).any() & !self.s_again.data.val().err & !self.length.val().get_bits::<19>(13).any();
            self.total.d.next = self.length.val().get_bits::<13>(0);
        }
        self.founds.s.valid.next = self.comes.val() & self.entry_next.q.val();
        self.founds.s.data.next.good = self.head_good.q.val() & !self.s_again.data.val().err;
        self.founds.s.data.next.total = self.total.q.val();
        self.founds.s.data.next.va = self.data.val().get_bits::<64>(0);
        self.founds.s.data.next.length = self.entry_len.val().get_bits::<13>(0);
        self.founds.s.data.next.long = self.entry_len.val().get_bits::<19>(13).any();
        self.founds.s.data.next.key = self.data.val().get_bits::<32>(96);

        // The answer in front: in one cycle it is seen where its payload lies, in the next it may be taken.
        self.kind.next = self.orders.m.data.val().kind;
        self.judged.next = self.kind.val().get_bit(place_kind::ANSWER_BIT) & self.orders.m.data.val().done & self.orders.m.data.val().pay_len.any() & !self.orders.m.data.val().msg_off.any();
        self.there.next = self.orders.m.valid.val() & self.judged.val() & self.founds.m.valid.val();
        self.found.next = self.founds.m.data.val();
        self.va.next = self.found.val().va;
        self.ending.next = bit_cast::<14, 12>(self.va.val().get_bits::<12>(0)) + bit_cast::<14, 13>(self.orders.m.data.val().pay_len);
        self.fits.d.next = self.found.val().good
            & (self.found.val().total == self.orders.m.data.val().pay_len)
            & (self.found.val().long | (self.found.val().length >= self.orders.m.data.val().pay_len))
            & (self.ending.val() <= bits::<14>(PAGE as u64));
        self.goes.next = self.m_op.valid.val() & self.m_op.ready.val();
        self.ready.d.next = self.there.val() & !self.goes.val();
        self.m_op.data.next = self.orders.m.data.val();
        self.m_op.valid.next = self.orders.m.valid.val() & (!self.judged.val() | self.ready.q.val());
        self.orders.m.ready.next = self.m_op.ready.val() & (!self.judged.val() | self.ready.q.val());
        self.founds.m.ready.next = self.goes.val() & self.judged.val();
        self.straight.next = self.ready.q.val() & self.fits.q.val();
        self.seg.next.off = bit_cast::<14, 8>(self.orders.m.data.val().pay_off);
        self.seg.next.len = self.orders.m.data.val().pay_len;
        self.seg.next.lookup = true;
        self.seg.next.last = true;
        self.seg.next.inv = false;
        self.seg.next.phase = false;
        self.seg.next.status = bits::<8>(0);
        self.mr.next.key = self.found.val().key;
        self.mr.next.pd = self.orders.m.data.val().pd;
        self.mr.next.function = self.orders.m.data.val().function;
        self.mr.next.qpn = self.orders.m.data.val().qpn;
        self.mr.next.va = self.va.val();
        self.mr.next.chk_len = bit_cast::<32, 13>(self.orders.m.data.val().pay_len);
        self.mr.next.access = bits::<6>(access::LOCAL_WRITE);
        self.mr.next.whole = false;
        if self.reset.val() {
            self.read_busy.d.next = false;
            self.second.d.next = false;
            self.entry_next.d.next = false;
            self.ready.d.next = false;
        }
    }
}
