//! Work requests of orders that come before the walk: `late` ones, whose receive is granted while they wait. The head and the first entry are read as soon as the
//! grant is there, whatever is being walked. See README.md.
use crate::bus::{MsgSink, MsgSrc};
use crate::codes::place_kind;
use crate::msg::{PlaceOp, RqGrant, WqeData, WqeRead};
use crate::stream::MsgFifo;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// What the granules of one read say: how many entries there are, and the first one.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Entry {
    some: Bit,
    va: Bits<64>,
    length: Bits<32>,
    key: Bits<32>,
}

/// Between the orders and the walk. An order that is not `late` passes in the same cycle.
#[derive(LogicBlock, Default)]
pub struct Lead {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_op: MsgSink<PlaceOp>,
    /// `s_op`, where it does not come from the queue in front it is seen later: only there a late order is looked at.
    pub head: Signal<In, PlaceOp>,
    pub queued: Signal<In, Bit>,
    /// With the receive of a late order. Of one that is `straight` the payload lies in the first entry and in one page, at `va` with `key`.
    pub m_op: MsgSrc<PlaceOp>,
    pub straight: Signal<Out, Bit>,
    pub at: Signal<Out, Bits<64>>,
    pub key: Signal<Out, Bits<32>>,
    /// Receives of late orders, in their order.
    pub s_late: MsgSink<RqGrant>,
    /// Reads of the walk, and their answers.
    pub s_read: MsgSink<WqeRead>,
    pub m_data: MsgSrc<WqeData>,
    pub m_wqe: MsgSrc<WqeRead>,
    pub s_wqe: MsgSink<WqeData>,
    grants: MsgFifo<RqGrant, 4>,
    entries: MsgFifo<Entry, 4>,
    /// Whose the answers are that are due: a grant's, or the walk's.
    whose: MsgFifo<Bit, 5>,
    read: DFF<WqeRead>,
    read_busy: DFF<Bit>,
    /// The late order at the head has its receive: what is known of it.
    ready: DFF<Bit>,
    fits: DFF<Bit>,
    va: DFF<Bits<64>>,
    granted: Signal<Local, Bit>,
    open: Signal<Local, Bit>,
    walks: Signal<Local, Bit>,
    takes: Signal<Local, Bit>,
    mine: Signal<Local, Bit>,
    data: Signal<Local, Bits<128>>,
    more: Signal<Local, Bits<128>>,
    entry: Signal<Local, Entry>,
    base: Signal<Local, Bits<64>>,
    length: Signal<Local, Bits<32>>,
    offset: Signal<Local, Bits<32>>,
    reach: Signal<Local, Bits<14>>,
    in_page: Signal<Local, Bits<12>>,
    ending: Signal<Local, Bits<14>>,
    moved: Signal<Local, Bits<12>>,
    beyond: Signal<Local, Bit>,
    long: Signal<Local, Bit>,
    late: Signal<Local, Bit>,
    there: Signal<Local, Bit>,
    reads: Signal<Local, Bit>,
    goes: Signal<Local, Bit>,
    over: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Lead {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, read, read_busy, ready, fits, va);
        clock!(self, clock, grants, entries, whose);
        self.grants.reset.next = self.reset.val();
        self.entries.reset.next = self.reset.val();
        self.whose.reset.next = self.reset.val();

        // Reads: the walk's first, which has an order in hand. A grant's asks for head and first entry at once.
        self.m_wqe.data.next = self.read.q.val();
        self.m_wqe.valid.next = self.read_busy.q.val();
        self.open.next = !self.read_busy.q.val() & self.whose.s.ready.val();
        self.walks.next = self.s_read.valid.val() & self.open.val();
        self.takes.next = self.s_late.valid.val() & self.open.val() & !self.s_read.valid.val() & self.grants.s.ready.val() & self.entries.s.ready.val();
        self.s_read.ready.next = self.open.val();
        self.s_late.ready.next = self.open.val() & !self.s_read.valid.val() & self.grants.s.ready.val() & self.entries.s.ready.val();
        if self.m_wqe.ready.val() {
            self.read_busy.d.next = false;
        }
        if self.open.val() {
            self.read.d.next = self.s_read.data.val();
            if self.takes.val() {
                self.read.d.next.handle = bit_cast::<8, 6>(self.s_late.data.val().handle);
                self.read.d.next.granule = bits::<5>(0);
            }
        }
        // Nothing was there, for the ring has gone meanwhile: there is nothing to be read, and nothing to be placed.
        self.reads.next = self.walks.val() | (self.takes.val() & self.s_late.data.val().ok);
        if self.reads.val() {
            self.read_busy.d.next = true;
        }
        self.whose.s.valid.next = self.reads.val();
        self.whose.s.data.next = self.takes.val();
        self.grants.s.valid.next = self.takes.val();
        self.grants.s.data.next = self.s_late.data.val();

        // Answers: 16 grants at most wait for theirs or keep it.
        self.mine.next = self.whose.m.data.val();
        self.m_data.data.next = self.s_wqe.data.val();
        self.m_data.valid.next = self.s_wqe.valid.val() & self.whose.m.valid.val() & !self.mine.val();
        self.s_wqe.ready.next = self.whose.m.valid.val() & (self.mine.val() | self.m_data.ready.val());
        self.whose.m.ready.next = self.s_wqe.valid.val() & (self.mine.val() | self.m_data.ready.val());
        self.data.next = self.s_wqe.data.val().data;
        self.entries.s.valid.next = self.s_wqe.valid.val() & self.whose.m.valid.val() & self.mine.val();
        self.entries.s.data.next.some = self.data.val().get_bits::<8>(0).any() & !self.s_wqe.data.val().err;
        self.more.next = self.s_wqe.data.val().more;
        self.entries.s.data.next.va = self.more.val().get_bits::<64>(0);
        self.entries.s.data.next.length = self.more.val().get_bits::<32>(64);
        self.entries.s.data.next.key = self.more.val().get_bits::<32>(96);

        // The head: in one cycle it is seen where its payload lies, in the next it may be taken.
        self.late.next = self.s_op.data.val().late;
        self.goes.next = self.s_op.valid.val() & self.m_op.ready.val() & (!self.late.val() | self.ready.q.val());
        self.entry.next = self.entries.m.data.val();
        self.there.next = self.grants.m.data.val().ok;
        self.granted.next = self.s_op.valid.val() & self.queued.val() & self.head.val().late & self.grants.m.valid.val() & (self.entries.m.valid.val() | !self.there.val());
        self.base.next = self.entry.val().va;
        self.length.next = self.entry.val().length;
        self.offset.next = self.head.val().msg_off;
        self.reach.next = bit_cast::<14, 13>(self.head.val().pay_len) + bit_cast::<14, 6>(self.offset.val().get_bits::<6>(0));
        self.in_page.next = self.base.val().get_bits::<12>(0);
        self.ending.next = bit_cast::<14, 12>(self.in_page.val()) + self.reach.val();
        self.long.next = self.length.val().get_bits::<18>(14).any() | (self.length.val().get_bits::<14>(0) >= self.reach.val());
        // Up to the end of the page.
        self.beyond.next = self.ending.val().get_bit(13) | (self.ending.val().get_bit(12) & self.ending.val().get_bits::<12>(0).any());
        self.fits.d.next = (self.head.val().kind == place_kind::SEND)
            & self.head.val().pay_len.any()
            & !self.head.val().inv
            & !self.offset.val().get_bits::<26>(6).any()
            & self.entry.val().some
            & self.there.val()
            & self.long.val()
            & !self.beyond.val();
        self.moved.next = self.in_page.val() + bit_cast::<12, 6>(self.offset.val().get_bits::<6>(0));
        self.va.d.next = bit_cast::<64, 12>(self.moved.val()) | (bit_cast::<64, 52>(self.base.val().get_bits::<52>(12)) << 12);
        self.ready.d.next = self.granted.val() & !self.goes.val();

        self.m_op.data.next = self.s_op.data.val();
        self.straight.next = self.ready.q.val() & self.fits.q.val();
        self.m_op.valid.next = self.s_op.valid.val() & (!self.late.val() | self.ready.q.val());
        self.s_op.ready.next = self.m_op.ready.val() & (!self.late.val() | self.ready.q.val());
        // What is ready is a late order in the queue in front: so much need not be asked again, and what takes it is known late.
        self.over.next = self.m_op.ready.val() & self.ready.q.val() & self.head.val().done;
        self.grants.m.ready.next = self.over.val();
        self.entries.m.ready.next = self.over.val() & self.there.val();
        if self.late.val() {
            self.m_op.data.next.rq_handle = self.grants.m.data.val().handle;
            self.m_op.data.next.rq_index = self.grants.m.data.val().index;
            if !self.there.val() {
                self.m_op.data.next.kind = bits::<4>(place_kind::NOTHING);
                self.m_op.data.next.free_rq = false;
                self.m_op.data.next.cqe = false;
                self.m_op.data.next.ack = false;
            }
        }
        self.at.next = self.va.q.val();
        self.key.next = self.entry.val().key;
        if self.reset.val() {
            self.read_busy.d.next = false;
            self.ready.d.next = false;
        }
    }
}
