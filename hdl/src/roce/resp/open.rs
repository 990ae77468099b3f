//! How many READs and atomics of a queue pair are open: accepted, which its context counts, less answered, which the replies say.
use crate::prim::ram::Ram;
use crate::records::RspCtx;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// What the replies said last of a queue pair: in life `epoch` so many were answered, modulo 32.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Answered {
    epoch: Bits<8>,
    count: Bits<5>,
}

/// `LQ`: log2 of the number of queue pairs. A request of the peer's comes long after the answer that allows it has been counted here.
#[derive(LogicBlock, Default)]
pub struct OpenRequests<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    /// Forgets everything, within 2^LQ cycles.
    pub reset: Signal<In, Bit>,
    /// From `roce/reply`.
    pub answered: Signal<In, Bit>,
    pub answered_qpn: Signal<In, Bits<24>>,
    pub answered_epoch: Signal<In, Bits<8>>,
    pub answered_count: Signal<In, Bits<5>>,
    /// The queue pair whose line is `ctx` in the next cycle.
    pub qpn: Signal<In, Bits<24>>,
    pub ctx: Signal<In, RspCtx>,
    /// One cycle behind `ctx`: as many are open as the queue pair grants.
    pub full: Signal<Out, Bit>,
    told: Ram<Answered, LQ>,
    open: DFF<Bits<5>>,
    most: DFF<Bits<5>>,
    sweeping: DFF<Bit>,
    sweep: DFF<Bits<LQ>>,
    done: Signal<Local, Bits<5>>,
}

#[kernel]
impl<const LQ: usize> Logic for OpenRequests<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, open, most, sweeping, sweep);
        clock!(self, clock, told);
        self.told.write_en.next = self.answered.val() | self.sweeping.q.val();
        self.told.write_addr.next = self.answered_qpn.val().get_bits::<LQ>(0);
        self.told.write_data.next.epoch = self.answered_epoch.val();
        self.told.write_data.next.count = self.answered_count.val();
        if self.sweeping.q.val() {
            self.told.write_addr.next = self.sweep.q.val();
            self.told.write_data.next.epoch = bits::<8>(0);
            self.told.write_data.next.count = bits::<5>(0);
            self.sweep.d.next = self.sweep.q.val() + 1;
            self.sweeping.d.next = !self.sweep.q.val().all();
        }
        self.told.read_addr.next = self.qpn.val().get_bits::<LQ>(0);
        // What was said of an earlier life does not count.
        self.done.next = bits::<5>(0);
        if self.told.read_data.val().epoch == self.ctx.val().epoch {
            self.done.next = self.told.read_data.val().count;
        }
        self.open.d.next = self.ctx.val().rd_in - self.done.val();
        self.most.d.next = self.ctx.val().max_dest_rd_atomic;
        self.full.next = self.open.q.val() >= self.most.q.val();
        if self.reset.val() {
            self.sweeping.d.next = true;
            self.sweep.d.next = bits::<LQ>(0);
        }
    }
}
