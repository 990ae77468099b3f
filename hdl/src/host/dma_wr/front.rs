//! Payload write commands before the arbiter: beats and burst border worked out, one register stage each.

use super::WrJob;
use crate::bus::{MsgSink, MsgSrc};
use crate::host::dma::border;
use crate::msg::WrCmd;
use crate::stream::MsgSlice;
use rust_hdl::prelude::*;

/// One command per cycle, two cycles of latency behind the input slice.
#[derive(LogicBlock)]
pub struct PayFront<const LK: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<WrCmd>,
    pub m: MsgSrc<WrJob>,
    inlet: MsgSlice<WrCmd>,
    v1: DFF<Bit>,
    job1: DFF<WrJob>,
    v2: DFF<Bit>,
    job2: DFF<WrJob>,
    lk: Constant<Bits<4>>,
    aligned: Constant<Bits<64>>,
    limit: Constant<Bits<8>>,
    iova: Signal<Local, Bits<64>>,
    len: Signal<Local, Bits<13>>,
    less: Signal<Local, Bits<13>>,
    top: Signal<Local, Bits<13>>,
    beats: Signal<Local, Bits<13>>,
    beat: Signal<Local, Bits<12>>,
    room: Signal<Local, Bits<8>>,
    go1: Signal<Local, Bit>,
    go2: Signal<Local, Bit>,
}

impl<const LK: usize> Default for PayFront<LK> {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            reset: Default::default(),
            s: Default::default(),
            m: Default::default(),
            inlet: Default::default(),
            v1: Default::default(),
            job1: Default::default(),
            v2: Default::default(),
            job2: Default::default(),
            lk: Constant::new((LK as u64).into()),
            aligned: Constant::new((!0u64 << LK).into()),
            limit: Constant::new(((1u64 << (border(LK) - LK as u64)) - 1).into()),
            iova: Default::default(),
            len: Default::default(),
            less: Default::default(),
            top: Default::default(),
            beats: Default::default(),
            beat: Default::default(),
            room: Default::default(),
            go1: Default::default(),
            go2: Default::default(),
        }
    }
}

impl<const LK: usize> Logic for PayFront<LK> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, v1, job1, v2, job2);
        clock!(self, clock, inlet);
        self.inlet.reset.next = self.reset.val();
        MsgSink::<WrCmd>::link(&mut self.s, &mut self.inlet.s);
        self.m.valid.next = self.v2.q.val();
        self.m.data.next = self.job2.q.val();
        self.go2.next = !self.v2.q.val() | self.m.ready.val();
        self.go1.next = !self.v1.q.val() | self.go2.val();
        self.inlet.m.ready.next = self.go1.val();
        // Stage 2: does it cross a border?
        if self.go2.val() {
            self.v2.d.next = self.v1.q.val();
            self.job2.d.next = self.job1.q.val();
            self.job2.d.next.cross = self.job1.q.val().last > self.job1.q.val().room;
        }
        // Stage 1: last beat's number, and that of the last one before the next border.
        self.iova.next = self.inlet.m.data.val().iova;
        self.len.next = self.inlet.m.data.val().len;
        self.less.next = self.len.val() - 1;
        self.top.next = bit_cast::<13, LK>(self.iova.val().get_bits::<LK>(0)) + self.less.val();
        self.beats.next = self.top.val() >> self.lk.val();
        self.beat.next = self.iova.val().get_bits::<12>(0) >> self.lk.val();
        self.room.next = self.limit.val() ^ (self.beat.val().get_bits::<8>(0) & self.limit.val());
        if self.go1.val() {
            self.v1.d.next = self.inlet.m.valid.val();
            self.job1.d.next.addr = self.iova.val() & self.aligned.val();
            self.job1.d.next.function = self.inlet.m.data.val().function;
            self.job1.d.next.tag = self.inlet.m.data.val().tag;
            self.job1.d.next.last = self.beats.val().get_bits::<9>(0);
            self.job1.d.next.room = bit_cast::<9, 8>(self.room.val());
            self.job1.d.next.cross = false;
        }
        if self.reset.val() {
            self.v1.d.next = false;
            self.v2.d.next = false;
        }
    }
}
