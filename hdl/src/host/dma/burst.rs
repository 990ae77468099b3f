//! Cuts a command into AXI4 INCR bursts (Arm IHI 0022, A3.4.1): at most 256 beats, none across a 4 KiB border.

use crate::bus::{MsgSink, MsgSrc};
use crate::prim::sum::Sum;
use crate::stream::MsgSlice;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// A command: `last` + 1 beats of the full width from `addr` (aligned to a beat) on. At most two bursts.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct BurstCmd {
    /// First byte's address.
    pub addr: Bits<64>,
    /// Beats - 1.
    pub last: Bits<9>,
    /// AxUSER.
    pub function: Bits<12>,
    /// AxID, the same for both bursts: AXI keeps them in order. Of a card with ids of 8 bits the highest is zero.
    pub id: Bits<9>,
}

/// One burst, as it stands on the address channel.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Burst {
    /// AxADDR.
    pub addr: Bits<64>,
    /// AxLEN: beats - 1.
    pub len: Bits<8>,
    /// AxUSER.
    pub function: Bits<12>,
    /// AxID.
    pub id: Bits<9>,
}

/// log2 of the bytes no burst crosses a border of: 4 KiB, or 256 beats where those are fewer.
pub const fn border(lk: usize) -> u64 {
    if lk + 8 < 12 {
        lk as u64 + 8
    } else {
        12
    }
}

/// A command's first burst and, with `cross`, the length of its second one.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Cut {
    /// First byte's address.
    pub addr: Bits<64>,
    /// AxLEN of the first burst.
    pub len: Bits<8>,
    /// There is a second one from the border on, `rest` + 1 beats.
    pub cross: Bit,
    /// AxLEN of the second.
    pub rest: Bits<8>,
    /// AxUSER.
    pub function: Bits<12>,
    /// AxID.
    pub id: Bits<9>,
}

/// Finds the border in a command. Combinational.
#[derive(LogicBlock, BlockDefault)]
#[demand((3..=6).contains(&LK), "beats of 8 to 64 bytes")]
pub struct BurstCut<const LK: usize> {
    pub x: Signal<In, BurstCmd>,
    pub y: Signal<Out, Cut>,
    #[init(Constant::new((LK as u64).into()))]
    lk: Constant<Bits<4>>,
    /// Beats between two borders, less one.
    #[init(Constant::new(((1u64 << (border(LK) - LK as u64)) - 1).into()))]
    limit: Constant<Bits<8>>,
    addr1: Signal<Local, Bits<64>>,
    beat1: Signal<Local, Bits<12>>,
    index1: Signal<Local, Bits<8>>,
    room1: Signal<Local, Bits<8>>,
    room9: Signal<Local, Bits<9>>,
    last1: Signal<Local, Bits<9>>,
    rest1: Signal<Local, Bits<9>>,
    cross1: Signal<Local, Bit>,
}

/// Sends one or two bursts per command through an output slice: one burst per cycle.
#[derive(LogicBlock, BlockDefault)]
pub struct BurstSend<const LK: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<Cut>,
    pub m: MsgSrc<Burst>,
    out: MsgSlice<Burst>,
    /// A second burst is due: behind the border above `first`.
    second: DFF<Bit>,
    first: DFF<Cut>,
    #[init(Constant::new(border(LK).into()))]
    border: Constant<Bits<4>>,
    page: Signal<Local, Bits<64>>,
    /// The page behind.
    page_on: Sum<64>,
    #[init(Constant::new(1u64.into()))]
    one: Constant<Bits<64>>,
    bumped: Signal<Local, Bits<64>>,
    open: Signal<Local, Bit>,
}

#[kernel]
impl<const LK: usize> Logic for BurstCut<LK> {
    #[hdl_gen]
    fn update(&mut self) {
        self.addr1.next = self.x.val().addr;
        self.last1.next = self.x.val().last;
        self.beat1.next = self.addr1.val().get_bits::<12>(0) >> self.lk.val();
        self.index1.next = self.beat1.val().get_bits::<8>(0) & self.limit.val();
        self.room1.next = self.limit.val() ^ self.index1.val();
        self.room9.next = bit_cast::<9, 8>(self.room1.val());
        self.cross1.next = self.last1.val() > self.room9.val();
        self.rest1.next = self.last1.val() - self.room9.val() - 1;
        self.y.next.addr = self.addr1.val();
        self.y.next.len = self.last1.val().get_bits::<8>(0);
        if self.cross1.val() {
            self.y.next.len = self.room1.val();
        }
        self.y.next.cross = self.cross1.val();
        self.y.next.rest = self.rest1.val().get_bits::<8>(0);
        self.y.next.function = self.x.val().function;
        self.y.next.id = self.x.val().id;
    }
}

#[kernel]
impl<const LK: usize> Logic for BurstSend<LK> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, second, first);
        clock!(self, clock, out);
        self.out.reset.next = self.reset.val();
        MsgSrc::<Burst>::link(&mut self.m, &mut self.out.m);
        self.page.next = self.first.q.val().addr >> self.border.val();
        self.page_on.a.next = self.page.val();
        self.page_on.b.next = self.one.val();
        self.bumped.next = self.page_on.y.val() << self.border.val();
        self.open.next = self.out.s.ready.val() & !self.second.q.val();
        self.s.ready.next = self.open.val();
        self.out.s.valid.next = self.second.q.val() | self.s.valid.val();
        self.out.s.data.next.addr = self.s.data.val().addr;
        self.out.s.data.next.len = self.s.data.val().len;
        self.out.s.data.next.function = self.s.data.val().function;
        self.out.s.data.next.id = self.s.data.val().id;
        if self.second.q.val() {
            self.out.s.data.next.addr = self.bumped.val();
            self.out.s.data.next.len = self.first.q.val().rest;
            self.out.s.data.next.function = self.first.q.val().function;
            self.out.s.data.next.id = self.first.q.val().id;
        }
        if self.out.s.ready.val() {
            self.second.d.next = self.s.valid.val() & self.s.data.val().cross & !self.second.q.val();
        }
        if self.open.val() {
            self.first.d.next = self.s.data.val();
        }
        if self.reset.val() {
            self.second.d.next = false;
        }
    }
}
