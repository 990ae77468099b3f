//! Payload write commands before the arbiter: beats and burst border worked out.

use super::WrJob;
use crate::bus::{MsgSink, MsgSrc};
use crate::host::dma::border;
use crate::msg::WrCmd;
use crate::stream::MsgSkid;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// One command per cycle, one cycle of latency.
#[derive(LogicBlock, BlockDefault)]
pub struct PayFront<const LK: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<WrCmd>,
    /// Not while its page is held.
    pub m: MsgSrc<WrJob>,
    /// What stands for the page (`guard.rs`) of the command that is coming and of the one that waits; is it held, by one half of the holds or the other?
    pub next_page: Signal<Out, Bits<12>>,
    pub next_below: Signal<In, Bit>,
    pub next_above: Signal<In, Bit>,
    pub job_page: Signal<Out, Bits<12>>,
    pub job_below: Signal<In, Bit>,
    pub job_above: Signal<In, Bit>,
    inlet: MsgSkid<WrCmd>,
    v1: DFF<Bit>,
    job1: DFF<WrJob>,
    page1: DFF<Bits<12>>,
    below1: DFF<Bit>,
    above1: DFF<Bit>,
    #[init(Constant::new((LK as u64).into()))]
    lk: Constant<Bits<4>>,
    #[init(Constant::new((!0u64 << LK).into()))]
    aligned: Constant<Bits<64>>,
    #[init(Constant::new(((1u64 << (border(LK) - LK as u64)) - 1).into()))]
    limit: Constant<Bits<8>>,
    iova: Signal<Local, Bits<64>>,
    len: Signal<Local, Bits<13>>,
    less: Signal<Local, Bits<13>>,
    top: Signal<Local, Bits<13>>,
    beats: Signal<Local, Bits<13>>,
    beat: Signal<Local, Bits<12>>,
    room: Signal<Local, Bits<8>>,
    go1: Signal<Local, Bit>,
    last9: Signal<Local, Bits<9>>,
    room9: Signal<Local, Bits<9>>,
}

#[kernel]
impl<const LK: usize> Logic for PayFront<LK> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, v1, job1, page1, below1, above1);
        clock!(self, clock, inlet);
        self.inlet.reset.next = self.reset.val();
        MsgSink::<WrCmd>::link(&mut self.s, &mut self.inlet.s);
        self.m.valid.next = self.v1.q.val() & !self.below1.q.val() & !self.above1.q.val();
        self.m.data.next = self.job1.q.val();
        self.go1.next = !self.v1.q.val() | self.m.ready.val();
        self.job_page.next = self.page1.q.val();
        self.below1.d.next = self.job_below.val();
        self.above1.d.next = self.job_above.val();
        self.inlet.m.ready.next = self.go1.val();
        // The last beat's number, and that of the last one before the next border.
        self.iova.next = self.inlet.m.data.val().iova;
        self.next_page.next = self.iova.val().get_bits::<12>(12) ^ self.iova.val().get_bits::<12>(24) ^ self.iova.val().get_bits::<12>(36);
        self.len.next = self.inlet.m.data.val().len;
        self.less.next = self.len.val() - 1;
        self.top.next = bit_cast::<13, LK>(self.iova.val().get_bits::<LK>(0)) + self.less.val();
        self.beats.next = self.top.val() >> self.lk.val();
        self.beat.next = self.iova.val().get_bits::<12>(0) >> self.lk.val();
        self.room.next = self.limit.val() ^ (self.beat.val().get_bits::<8>(0) & self.limit.val());
        self.last9.next = self.beats.val().get_bits::<9>(0);
        self.room9.next = bit_cast::<9, 8>(self.room.val());
        if self.go1.val() {
            self.v1.d.next = self.inlet.m.valid.val();
            self.page1.d.next = self.next_page.val();
            self.below1.d.next = self.next_below.val();
            self.above1.d.next = self.next_above.val();
            self.job1.d.next.addr = self.iova.val() & self.aligned.val();
            self.job1.d.next.function = self.inlet.m.data.val().function;
            self.job1.d.next.tag = self.inlet.m.data.val().tag;
            self.job1.d.next.last = self.last9.val();
            self.job1.d.next.room = self.room9.val();
            self.job1.d.next.cross = self.last9.val() > self.room9.val();
        }
        if self.reset.val() {
            self.v1.d.next = false;
        }
    }
}
