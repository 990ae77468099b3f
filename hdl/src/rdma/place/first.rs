//! What an order of the responder asks for in the cycle in which it comes: a WRITE's first segment, the one key check of a READ, an atomic or a FLUSH. Combinational.
use super::walk::Segment;
use crate::codes::{access, place_kind, PAGE};
use crate::msg::{MrReq, PlaceOp};
use ferric_abi::wire::feth;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// How much of a WRITE lies in its first page. Combinational.
#[derive(LogicBlock, Default)]
pub struct Room {
    pub op: Signal<In, PlaceOp>,
    /// Bytes up to the end of the page; the payload does not go beyond.
    pub left: Signal<Out, Bits<13>>,
    pub whole: Signal<Out, Bit>,
    va: Signal<Local, Bits<64>>,
    in_page: Signal<Local, Bits<12>>,
    /// What is left, less one.
    behind: Signal<Local, Bits<12>>,
    len: Signal<Local, Bits<12>>,
    differ: Signal<Local, Bits<12>>,
    carries: Signal<Local, Bits<12>>,
}

#[kernel]
impl Logic for Room {
    #[hdl_gen]
    fn update(&mut self) {
        self.va.next = self.op.val().va;
        self.in_page.next = self.va.val().get_bits::<12>(0);
        self.left.next = bits::<13>(PAGE) - bit_cast::<13, 12>(self.in_page.val());
        self.behind.next = !self.in_page.val();
        // The payload is at most as long as what is left, without that difference: shorter, or their sum is a page. That is so where the bits of both differ exactly above a bit that one of them has.
        self.len.next = self.op.val().pay_len.get_bits::<12>(0);
        self.differ.next = self.in_page.val() ^ self.len.val();
        self.carries.next = (self.in_page.val() | self.len.val()) << 1;
        self.whole.next = (self.op.val().pay_len <= bit_cast::<13, 12>(self.behind.val())) | (self.differ.val() == self.carries.val());
    }
}

/// See the module.
#[derive(LogicBlock, Default)]
pub struct First {
    /// It is `head` if `queued`, else `direct`, known earlier in the cycle; that of a late order differs in what does not matter to `Room`.
    pub op: Signal<In, PlaceOp>,
    pub head: Signal<In, PlaceOp>,
    pub direct: Signal<In, PlaceOp>,
    pub queued: Signal<In, Bit>,
    /// It is a SEND whose payload is one segment, at `at` with key `at_key`.
    pub placed: Signal<In, Bit>,
    pub at: Signal<In, Bits<64>>,
    pub at_key: Signal<In, Bits<32>>,
    /// An answer is taken instead, whose one segment `answers.rs` may know.
    pub turn: Signal<In, Bit>,
    pub answer: Signal<In, PlaceOp>,
    pub answer_straight: Signal<In, Bit>,
    pub answer_at: Signal<In, Bits<64>>,
    pub answer_key: Signal<In, Bits<32>>,
    /// What is taken.
    pub order: Signal<Out, PlaceOp>,
    /// Of the key unit.
    pub phase: Signal<In, Bit>,
    /// There is something to ask for: this segment and its key.
    pub straight: Signal<Out, Bit>,
    pub seg: Signal<Out, Segment>,
    pub mr: Signal<Out, MrReq>,
    /// It is the key of an atomic.
    pub atomic: Signal<Out, Bit>,
    /// Bytes up to the end of the page; the payload does not go beyond.
    pub room: Signal<Out, Bits<13>>,
    pub fits: Signal<Out, Bit>,
    /// It is known where the payload lies.
    lies: Signal<Local, Bit>,
    check: Signal<Local, Bit>,
    flush: Signal<Local, Bit>,
    feth: Signal<Local, Bits<32>>,
    of_head: Room,
    of_direct: Room,
    left: Signal<Local, Bits<13>>,
    whole: Signal<Local, Bit>,
}

#[kernel]
impl Logic for First {
    #[hdl_gen]
    fn update(&mut self) {
        self.of_head.op.next = self.head.val();
        self.of_direct.op.next = self.direct.val();
        self.left.next = self.of_direct.left.val();
        self.whole.next = self.of_direct.whole.val();
        if self.queued.val() {
            self.left.next = self.of_head.left.val();
            self.whole.next = self.of_head.whole.val();
        }
        self.room.next = self.left.val();
        self.order.next = self.op.val();
        self.lies.next = self.placed.val();
        if self.turn.val() {
            self.order.next = self.answer.val();
            self.lies.next = self.answer_straight.val();
        }
        self.fits.next = self.whole.val() | self.lies.val();
        self.check.next = ((self.order.val().kind == place_kind::READ) | (self.order.val().kind == place_kind::ATOMIC)) & self.order.val().chk_len.any();
        self.flush.next = self.op.val().flush & !self.turn.val();
        self.feth.next = self.op.val().imm;
        self.atomic.next = (self.order.val().kind == place_kind::ATOMIC) & self.check.val();
        self.straight.next = ((self.order.val().kind == place_kind::WRITE) & self.order.val().pay_len.any()) | self.check.val() | self.flush.val() | self.lies.val();
        self.seg.next.off = bit_cast::<14, 8>(self.order.val().pay_off);
        self.seg.next.len = self.left.val();
        if self.fits.val() {
            self.seg.next.len = self.order.val().pay_len;
        }
        self.seg.next.lookup = true;
        self.seg.next.last = self.fits.val();
        self.seg.next.status = bits::<8>(0);
        self.seg.next.inv = false;
        self.seg.next.phase = self.phase.val();
        self.mr.next.key = self.op.val().key;
        self.mr.next.pd = self.order.val().pd;
        self.mr.next.function = self.order.val().function;
        self.mr.next.qpn = self.order.val().qpn;
        self.mr.next.va = self.op.val().va;
        // The whole rest of the message must lie inside the region before its first byte is written.
        self.mr.next.chk_len = self.op.val().chk_len;
        self.mr.next.access = bits::<6>(access::REMOTE_WRITE);
        if self.lies.val() {
            self.mr.next.va = self.at.val();
            self.mr.next.key = self.at_key.val();
            if self.turn.val() {
                self.mr.next.va = self.answer_at.val();
                self.mr.next.key = self.answer_key.val();
            }
            self.mr.next.chk_len = bit_cast::<32, 13>(self.order.val().pay_len);
            self.mr.next.access = bits::<6>(access::LOCAL_WRITE);
        }
        if self.order.val().kind == place_kind::READ {
            self.mr.next.access = bits::<6>(access::REMOTE_READ);
        }
        if self.flush.val() {
            self.mr.next.access = bits::<6>(access::REMOTE_FLUSH);
        }
        self.mr.next.whole = self.flush.val() & (self.feth.val() & bits::<32>(feth::WHOLE as u64)).any();
        if self.order.val().kind == place_kind::ATOMIC {
            self.mr.next.access = bits::<6>(access::REMOTE_ATOMIC);
        }
    }
}
