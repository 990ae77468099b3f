//! Payload reads before and after the host: lane arithmetic and an AXI id on the way out, `PayDone` on the way back.

use super::owed::Owed;
use super::shares;
use super::RdState;
use crate::bus::{MsgSink, MsgSrc};
use crate::host::dma::{BurstCmd, FrontMark};
use crate::msg::{PayCmd, PayDone};
use crate::stream::MsgFifo;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// A payload read whose last beat has come.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct PayFin {
    /// The command's egress slot.
    pub slot: Bits<8>,
    /// A beat came with an error.
    pub err: Bit,
    /// AXI id, free again once the `PayDone` is taken.
    pub id: Bits<8>,
}

/// AXI ids 0 to 2^`LP` - 1 belong to payload reads. An id stays taken until its `PayDone` has left, so the FIFO of those
/// always has room.
#[derive(LogicBlock, BlockDefault)]
pub struct PayPort<const LK: usize, const LP: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<PayCmd>,
    pub m: MsgSrc<PayDone>,
    /// To the arbiter.
    pub req_valid: Signal<Out, Bit>,
    pub req: Signal<Out, BurstCmd>,
    pub req_state: Signal<Out, RdState>,
    pub req_take: Signal<In, Bit>,
    /// From the landing pipeline.
    pub fin_valid: Signal<In, Bit>,
    pub fin: Signal<In, PayFin>,
    pub mark: Signal<In, Bit>,
    pub clear: Signal<Out, Bit>,
    /// A beat has come from the host; it is payload.
    pub beat: Signal<In, Bit>,
    pub payload: Signal<In, Bit>,
    /// Where fewer reads are in flight, their number is the limit.
    #[init(Owed::new(LP == shares::MOST))]
    owed: Owed,
    free: MsgFifo<Bits<8>, LP>,
    done: MsgFifo<PayFin, LP>,
    front: FrontMark,
    /// Ids put into the free list after reset; bit `LP`: all of them.
    filled: DFF<Bits<9>>,
    rq_valid: DFF<Bit>,
    rq: DFF<BurstCmd>,
    rq_state: DFF<RdState>,
    #[init(Constant::new((LP as u64).into()))]
    log_ids: Constant<Bits<4>>,
    #[init(Constant::new((LK as u64).into()))]
    lk: Constant<Bits<4>>,
    #[init(Constant::new((!0u64 << LK).into()))]
    aligned: Constant<Bits<64>>,
    open: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    iova: Signal<Local, Bits<64>>,
    len: Signal<Local, Bits<13>>,
    dst: Signal<Local, Bits<18>>,
    off: Signal<Local, Bits<LK>>,
    less: Signal<Local, Bits<13>>,
    tail: Signal<Local, Bits<13>>,
    last: Signal<Local, Bits<13>>,
    hi: Signal<Local, Bits<LK>>,
    nhi: Signal<Local, Bits<LK>>,
    base: Signal<Local, Bits<18>>,
    row: Signal<Local, Bits<18>>,
    full: Signal<Local, Bit>,
    back: Signal<Local, Bit>,
}

#[kernel]
impl<const LK: usize, const LP: usize> Logic for PayPort<LK, LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, filled, rq_valid, rq, rq_state);
        clock!(self, clock, owed, free, done, front);
        self.owed.reset.next = self.reset.val();
        self.free.reset.next = self.reset.val();
        self.done.reset.next = self.reset.val();
        self.front.reset.next = self.reset.val();

        // A command meets a free id.
        self.open.next = self.free.m.valid.val() & (!self.rq_valid.q.val() | self.req_take.val());
        self.take.next = self.s.valid.val() & self.open.val();
        self.s.ready.next = self.open.val();
        self.free.m.ready.next = self.take.val();
        self.iova.next = self.s.data.val().iova;
        self.len.next = self.s.data.val().len;
        self.dst.next = self.s.data.val().dst;
        // Bytes off .. end (inclusive), counted from the first beat's lane 0.
        self.off.next = self.iova.val().get_bits::<LK>(0);
        self.less.next = self.len.val() - 1;
        self.tail.next = bit_cast::<13, LK>(self.off.val()) + self.less.val();
        self.last.next = self.tail.val() >> self.lk.val();
        self.hi.next = self.tail.val().get_bits::<LK>(0);
        self.nhi.next = !self.hi.val();
        // Where that lane 0 would land: may lie before the buffer, whose rows wrap.
        self.base.next = self.dst.val() - bit_cast::<18, LK>(self.off.val());
        self.row.next = self.base.val() >> self.lk.val();
        if self.req_take.val() {
            self.rq_valid.d.next = false;
        }
        if self.take.val() {
            self.rq_valid.d.next = true;
            self.rq.d.next.addr = self.iova.val() & self.aligned.val();
            self.rq.d.next.last = self.last.val().get_bits::<9>(0);
            self.rq.d.next.function = self.s.data.val().function;
            self.rq.d.next.id = bit_cast::<9, 8>(self.free.m.data.val());
            self.rq_state.d.next.row = self.row.val().get_bits::<13>(0);
            self.rq_state.d.next.shift = bit_cast::<6, LK>(self.base.val().get_bits::<LK>(0));
            self.rq_state.d.next.lo = bit_cast::<6, LK>(self.off.val());
            self.rq_state.d.next.nhi = bit_cast::<6, LK>(self.nhi.val());
            self.rq_state.d.next.last = self.last.val().get_bits::<9>(0);
            self.rq_state.d.next.slot = self.s.data.val().slot;
        }
        self.owed.waiting.next = self.rq_valid.q.val();
        self.owed.start.next = self.req_take.val();
        self.owed.last.next = self.rq.q.val().last;
        self.owed.beat.next = self.beat.val();
        self.owed.payload.next = self.payload.val();
        self.req_valid.next = self.rq_valid.q.val() & self.owed.open.val();
        self.req.next = self.rq.q.val();
        self.req_state.next = self.rq_state.q.val();

        // Done: the id goes back with the message.
        self.done.s.valid.next = self.fin_valid.val();
        self.done.s.data.next = self.fin.val();
        self.done.m.ready.next = self.m.ready.val();
        self.m.valid.next = self.done.m.valid.val();
        self.m.data.next.slot = self.done.m.data.val().slot;
        self.m.data.next.err = self.done.m.data.val().err;
        self.back.next = self.done.m.valid.val() & self.m.ready.val();
        self.full.next = self.filled.q.val().get_bit(self.log_ids.val().index());
        self.free.s.valid.next = self.back.val() | !self.full.val();
        self.free.s.data.next = self.done.m.data.val().id;
        if !self.full.val() {
            self.free.s.data.next = self.filled.q.val().get_bits::<8>(0);
            self.filled.d.next = self.filled.q.val() + 1;
        }

        self.front.push.next = self.s.valid.val() & self.s.ready.val();
        self.front.pop.next = self.req_take.val();
        self.front.mark.next = self.mark.val();
        self.clear.next = self.front.clear.val();
        if self.reset.val() {
            self.filled.d.next = bits::<9>(0);
            self.rq_valid.d.next = false;
        }
    }
}
