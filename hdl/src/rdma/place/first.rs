//! What an order of the responder asks for in the cycle in which it comes: a WRITE's first segment, the one key check of a READ, an atomic or a FLUSH. Combinational.
use super::walk::Segment;
use crate::codes::{access, place_kind, PAGE};
use crate::msg::{MrReq, PlaceOp};
use ferric_abi::wire::feth;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// See the module.
#[derive(LogicBlock, Default)]
pub struct First {
    pub op: Signal<In, PlaceOp>,
    /// It is a SEND whose payload is one segment, at `at` with key `at_key`.
    pub placed: Signal<In, Bit>,
    pub at: Signal<In, Bits<64>>,
    pub at_key: Signal<In, Bits<32>>,
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
    check: Signal<Local, Bit>,
    flush: Signal<Local, Bit>,
    feth: Signal<Local, Bits<32>>,
    va: Signal<Local, Bits<64>>,
    left: Signal<Local, Bits<13>>,
    whole: Signal<Local, Bit>,
}

#[kernel]
impl Logic for First {
    #[hdl_gen]
    fn update(&mut self) {
        self.va.next = self.op.val().va;
        self.left.next = bits::<13>(PAGE) - bit_cast::<13, 12>(self.va.val().get_bits::<12>(0));
        self.whole.next = self.op.val().pay_len <= self.left.val();
        self.room.next = self.left.val();
        self.fits.next = self.whole.val() | self.placed.val();
        self.check.next = ((self.op.val().kind == place_kind::READ) | (self.op.val().kind == place_kind::ATOMIC)) & self.op.val().chk_len.any();
        self.flush.next = self.op.val().flush;
        self.feth.next = self.op.val().imm;
        self.atomic.next = (self.op.val().kind == place_kind::ATOMIC) & self.check.val();
        self.straight.next = ((self.op.val().kind == place_kind::WRITE) & self.op.val().pay_len.any()) | self.check.val() | self.flush.val() | self.placed.val();
        self.seg.next.off = bit_cast::<14, 8>(self.op.val().pay_off);
        self.seg.next.len = self.left.val();
        if self.fits.val() {
            self.seg.next.len = self.op.val().pay_len;
        }
        self.seg.next.lookup = true;
        self.seg.next.last = self.fits.val();
        self.seg.next.status = bits::<8>(0);
        self.seg.next.inv = false;
        self.seg.next.phase = self.phase.val();
        self.mr.next.key = self.op.val().key;
        self.mr.next.pd = self.op.val().pd;
        self.mr.next.function = self.op.val().function;
        self.mr.next.qpn = self.op.val().qpn;
        self.mr.next.va = self.va.val();
        // The whole rest of the message must lie inside the region before its first byte is written.
        self.mr.next.chk_len = self.op.val().chk_len;
        self.mr.next.access = bits::<6>(access::REMOTE_WRITE);
        if self.placed.val() {
            self.mr.next.va = self.at.val();
            self.mr.next.key = self.at_key.val();
            self.mr.next.chk_len = bit_cast::<32, 13>(self.op.val().pay_len);
            self.mr.next.access = bits::<6>(access::LOCAL_WRITE);
        }
        if self.op.val().kind == place_kind::READ {
            self.mr.next.access = bits::<6>(access::REMOTE_READ);
        }
        if self.flush.val() {
            self.mr.next.access = bits::<6>(access::REMOTE_FLUSH);
        }
        self.mr.next.whole = self.flush.val() & (self.feth.val() & bits::<32>(feth::WHOLE as u64)).any();
        if self.op.val().kind == place_kind::ATOMIC {
            self.mr.next.access = bits::<6>(access::REMOTE_ATOMIC);
        }
    }
}
