//! Every stream block of one width stands in one top, so that a width costs one Verilated library.

use crate::bus::*;
use crate::stream::*;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Width of the records of the record blocks.
pub const MSG_BITS: usize = 48;
/// Width of the wide records: four or one beats more or less, not a whole number of 512-bit beats.
pub const WIDE_BITS: usize = 1000;

#[derive(LogicBlock, Default)]
pub struct Yard<const W: usize, const K: usize, const L: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub mslice_s: MsgSink<Bits<48>>,
    pub mslice_m: MsgSrc<Bits<48>>,
    mslice: MsgSlice<Bits<48>>,
    pub aslice_s: AxisSink<W, K>,
    pub aslice_m: AxisSrc<W, K>,
    aslice: AxisSlice<W, K>,
    pub mfifo1_s: MsgSink<Bits<48>>,
    pub mfifo1_m: MsgSrc<Bits<48>>,
    mfifo1: MsgFifo<Bits<48>, 1>,
    pub mfifo1_level: Signal<Out, Bits<16>>,
    pub mfifo4_s: MsgSink<Bits<48>>,
    pub mfifo4_m: MsgSrc<Bits<48>>,
    mfifo4: MsgFifo<Bits<48>, 4>,
    pub mfifo4_level: Signal<Out, Bits<16>>,
    pub mfifo7_s: MsgSink<Bits<48>>,
    pub mfifo7_m: MsgSrc<Bits<48>>,
    mfifo7: MsgFifo<Bits<48>, 7>,
    pub mfifo7_level: Signal<Out, Bits<16>>,
    /// A skid with a slice behind it, which makes its output a register.
    pub mskid_s: MsgSink<Bits<48>>,
    pub mskid_m: MsgSrc<Bits<48>>,
    mskid: MsgSkid<Bits<48>>,
    mskid_out: MsgSlice<Bits<48>>,
    pub afifo4_s: AxisSink<W, K>,
    pub afifo4_m: AxisSrc<W, K>,
    afifo4: AxisFifo<W, K, 4>,
    pub afifo4_level: Signal<Out, Bits<16>>,
    pub afifo7_s: AxisSink<W, K>,
    pub afifo7_m: AxisSrc<W, K>,
    afifo7: AxisFifo<W, K, 7>,
    pub afifo7_level: Signal<Out, Bits<16>>,
    pub marb_s: [MsgSink<Bits<48>>; 3],
    pub marb_m: MsgSrc<Bits<48>>,
    marb: MsgArb<Bits<48>, 3>,
    pub aarb_s: [AxisSink<W, K>; 3],
    pub aarb_m: AxisSrc<W, K>,
    aarb: AxisArb<W, K, 3>,
    pub twin_s: MsgSink<Bits<48>>,
    pub twin_m0: MsgSrc<Bits<48>>,
    pub twin_m1: MsgSrc<Bits<48>>,
    twin: MsgFork<Bits<48>>,
    pub to_s: WideSink<1000>,
    pub to_m: AxisSrc<W, K>,
    to: WideToBeats<1000, W, K, L>,
    pub nar_s: WideSink<40>,
    pub nar_m: AxisSrc<W, K>,
    nar: WideToBeats<40, W, K, L>,
    pub from_s: AxisSink<W, K>,
    pub from_m: WideSrc<1000>,
    from: BeatsToWide<1000, W, K, L>,
    pub few_s: AxisSink<W, K>,
    pub few_m: WideSrc<40>,
    few: BeatsToWide<40, W, K, L>,
}

#[kernel]
impl<const W: usize, const K: usize, const L: usize> Logic for Yard<W, K, L> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, mslice, aslice, mfifo1, mfifo4, mfifo7, mskid, mskid_out, afifo4, afifo7, marb, aarb, twin, to, nar, from, few);
        self.mslice.reset.next = self.reset.val();
        self.aslice.reset.next = self.reset.val();
        self.mfifo1.reset.next = self.reset.val();
        self.mfifo4.reset.next = self.reset.val();
        self.mfifo7.reset.next = self.reset.val();
        self.mskid.reset.next = self.reset.val();
        self.mskid_out.reset.next = self.reset.val();
        MsgSink::<Bits<48>>::link(&mut self.mskid_s, &mut self.mskid.s);
        MsgSrc::<Bits<48>>::join(&mut self.mskid.m, &mut self.mskid_out.s);
        MsgSrc::<Bits<48>>::link(&mut self.mskid_m, &mut self.mskid_out.m);
        self.afifo4.reset.next = self.reset.val();
        self.afifo7.reset.next = self.reset.val();
        self.marb.reset.next = self.reset.val();
        self.aarb.reset.next = self.reset.val();
        self.twin.reset.next = self.reset.val();
        self.to.reset.next = self.reset.val();
        self.nar.reset.next = self.reset.val();
        self.from.reset.next = self.reset.val();
        self.few.reset.next = self.reset.val();
        MsgSink::<Bits<48>>::link(&mut self.mslice_s, &mut self.mslice.s);
        MsgSrc::<Bits<48>>::link(&mut self.mslice_m, &mut self.mslice.m);
        AxisSink::<W, K>::link(&mut self.aslice_s, &mut self.aslice.s);
        AxisSrc::<W, K>::link(&mut self.aslice_m, &mut self.aslice.m);
        MsgSink::<Bits<48>>::link(&mut self.mfifo1_s, &mut self.mfifo1.s);
        MsgSrc::<Bits<48>>::link(&mut self.mfifo1_m, &mut self.mfifo1.m);
        self.mfifo1_level.next = self.mfifo1.level.val();
        MsgSink::<Bits<48>>::link(&mut self.mfifo4_s, &mut self.mfifo4.s);
        MsgSrc::<Bits<48>>::link(&mut self.mfifo4_m, &mut self.mfifo4.m);
        self.mfifo4_level.next = self.mfifo4.level.val();
        MsgSink::<Bits<48>>::link(&mut self.mfifo7_s, &mut self.mfifo7.s);
        MsgSrc::<Bits<48>>::link(&mut self.mfifo7_m, &mut self.mfifo7.m);
        self.mfifo7_level.next = self.mfifo7.level.val();
        AxisSink::<W, K>::link(&mut self.afifo4_s, &mut self.afifo4.s);
        AxisSrc::<W, K>::link(&mut self.afifo4_m, &mut self.afifo4.m);
        self.afifo4_level.next = self.afifo4.level.val();
        AxisSink::<W, K>::link(&mut self.afifo7_s, &mut self.afifo7.s);
        AxisSrc::<W, K>::link(&mut self.afifo7_m, &mut self.afifo7.m);
        self.afifo7_level.next = self.afifo7.level.val();
        for i in 0..3 {
            MsgSink::<Bits<48>>::link(&mut self.marb_s[i], &mut self.marb.s[i]);
            AxisSink::<W, K>::link(&mut self.aarb_s[i], &mut self.aarb.s[i]);
        }
        MsgSrc::<Bits<48>>::link(&mut self.marb_m, &mut self.marb.m);
        AxisSrc::<W, K>::link(&mut self.aarb_m, &mut self.aarb.m);
        MsgSink::<Bits<48>>::link(&mut self.twin_s, &mut self.twin.s);
        MsgSrc::<Bits<48>>::link(&mut self.twin_m0, &mut self.twin.m0);
        MsgSrc::<Bits<48>>::link(&mut self.twin_m1, &mut self.twin.m1);
        WideSink::<1000>::link(&mut self.to_s, &mut self.to.s);
        AxisSrc::<W, K>::link(&mut self.to_m, &mut self.to.m);
        WideSink::<40>::link(&mut self.nar_s, &mut self.nar.s);
        AxisSrc::<W, K>::link(&mut self.nar_m, &mut self.nar.m);
        AxisSink::<W, K>::link(&mut self.from_s, &mut self.from.s);
        WideSrc::<1000>::link(&mut self.from_m, &mut self.from.m);
        AxisSink::<W, K>::link(&mut self.few_s, &mut self.few.s);
        WideSrc::<40>::link(&mut self.few_m, &mut self.few.m);
    }
}
