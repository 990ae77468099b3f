//! Answers in front of the walk: the head and the first entry of their request are read as soon as they come, whatever is being walked. See README.md.

use super::walk::{ATOMIC_SKIPS, SEND_SKIPS};
use crate::bus::{MsgSink, MsgSrc};
use crate::codes::place_kind;
use crate::msg::{PlaceOp, WqeData, WqeRead};
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
    /// Of one that is `straight` the payload lies in the first entry and in one page, at `at` with `key`.
    pub m_op: MsgSrc<PlaceOp>,
    pub straight: Signal<Out, Bit>,
    pub at: Signal<Out, Bits<64>>,
    pub key: Signal<Out, Bits<32>>,
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
    /// The read is for an answer, which may not want it: known too late to be looked at in the cycle in which it comes.
    own: DFF<Bit>,
    wanted: DFF<Bit>,
    /// The entry is read next; an atomic's has operands in front of it.
    second: DFF<Bit>,
    atomic: DFF<Bit>,
    /// What comes next for an answer is its entry; of its head there is this.
    entry_next: DFF<Bit>,
    head_good: DFF<Bit>,
    total: DFF<Bits<13>>,
    /// The answer in front has been judged.
    ready: DFF<Bit>,
    fits: DFF<Bit>,
    taken: DFF<Bit>,
    kind_in: Signal<Local, Bits<4>>,
    looked_at: Signal<Local, Bit>,
    open: Signal<Local, Bit>,
    takes: Signal<Local, Bit>,
    gone: Signal<Local, Bit>,
    mine: Signal<Local, Bit>,
    comes: Signal<Local, Bit>,
    data: Signal<Local, Bits<128>>,
    more: Signal<Local, Bits<128>>,
    length: Signal<Local, Bits<32>>,
    entry_len: Signal<Local, Bits<32>>,
    judged: Signal<Local, Bit>,
    there: Signal<Local, Bit>,
    found: Signal<Local, Found>,
    va: Signal<Local, Bits<64>>,
    ending: Signal<Local, Bits<14>>,
    beyond: Signal<Local, Bit>,
    goes: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Answers {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, read, read_busy, own, wanted, second, atomic, entry_next, head_good, total, ready, fits, taken);
        clock!(self, clock, orders, founds, whose);
        self.orders.reset.next = self.reset.val();
        self.founds.reset.next = self.reset.val();
        self.whose.reset.next = self.reset.val();

        // Reads: the walk's first, which has an order in hand.
        self.kind_in.next = self.s_op.data.val().kind;
        self.looked_at.next = self.kind_in.val().get_bit(place_kind::ANSWER_BIT) & self.s_op.data.val().done & self.s_op.data.val().pay_len.any() & !self.s_op.data.val().msg_off.any();
        self.open.next = !self.read_busy.q.val();
        self.s_read.ready.next = self.open.val();
        self.takes.next = self.open.val() & !self.s_read.valid.val();
        self.s_op.ready.next = self.orders.s.ready.val() & self.takes.val();
        self.orders.s.valid.next = self.s_op.valid.val() & self.takes.val();
        self.orders.s.data.next = self.s_op.data.val();
        // Of an answer the field has no other meaning.
        self.orders.s.data.next.late = self.looked_at.val();
        self.m_again.data.next = self.read.q.val();
        self.m_again.valid.next = self.read_busy.q.val() & self.wanted.q.val();
        self.gone.next = self.read_busy.q.val() & (self.m_again.ready.val() | !self.wanted.q.val());
        if self.gone.val() {
            self.read_busy.d.next = self.second.q.val();
            self.second.d.next = false;
            self.read.d.next.granule = bits::<5>(SEND_SKIPS + 1);
            if self.atomic.q.val() {
                self.read.d.next.granule = bits::<5>(ATOMIC_SKIPS + 1);
            }
        }
        if self.open.val() {
            self.read.d.next = self.s_read.data.val();
            self.read_busy.d.next = self.s_read.valid.val();
            self.wanted.d.next = true;
            self.second.d.next = false;
            self.own.d.next = false;
            if !self.s_read.valid.val() {
                self.read.d.next.handle = bit_cast::<8, 6>(self.s_op.data.val().rq_handle);
                self.read.d.next.granule = bits::<5>(0);
                self.read_busy.d.next = self.s_op.valid.val() & self.orders.s.ready.val();
                self.wanted.d.next = self.looked_at.val();
                self.second.d.next = self.looked_at.val();
                self.own.d.next = true;
            }
            self.atomic.d.next = self.kind_in.val().get_bit(0);
        }
        self.whose.s.valid.next = self.gone.val() & self.wanted.q.val();
        self.whose.s.data.next = self.own.q.val();

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
        self.judged.next = self.orders.m.data.val().late;
        self.there.next = self.orders.m.valid.val() & self.judged.val() & self.founds.m.valid.val();
        self.found.next = self.founds.m.data.val();
        self.va.next = self.found.val().va;
        self.ending.next = bit_cast::<14, 12>(self.va.val().get_bits::<12>(0)) + bit_cast::<14, 13>(self.orders.m.data.val().pay_len);
        // Up to the end of the page: in gates, a comparison would be a second chain of carries.
        self.beyond.next = self.ending.val().get_bit(13) | (self.ending.val().get_bit(12) & self.ending.val().get_bits::<12>(0).any());
        self.fits.d.next = self.found.val().good
            & (self.found.val().total == self.orders.m.data.val().pay_len)
            & (self.found.val().long | (self.found.val().length >= self.orders.m.data.val().pay_len))
            & !self.beyond.val();
        self.goes.next = self.m_op.valid.val() & self.m_op.ready.val();
        // It leaves a cycle after it has been taken, which is known late.
        self.taken.d.next = self.goes.val();
        self.ready.d.next = self.there.val() & !self.goes.val() & !self.taken.q.val();
        self.m_op.data.next = self.orders.m.data.val();
        self.m_op.data.next.late = false;
        self.m_op.valid.next = self.orders.m.valid.val() & !self.taken.q.val() & (!self.judged.val() | self.ready.q.val());
        self.orders.m.ready.next = self.taken.q.val();
        self.founds.m.ready.next = self.taken.q.val() & self.judged.val();
        self.straight.next = self.ready.q.val() & self.fits.q.val();
        self.at.next = self.va.val();
        self.key.next = self.found.val().key;
        if self.reset.val() {
            self.read_busy.d.next = false;
            self.second.d.next = false;
            self.entry_next.d.next = false;
            self.ready.d.next = false;
            self.taken.d.next = false;
        }
    }
}
