//! Cuts a command into AXI4 INCR bursts (Arm IHI 0022, A3.4.1): at most 256 beats, none across a 4 KiB border.

use crate::bus::{MsgSink, MsgSrc};
use crate::stream::MsgSlice;
use crate::prim::sum::Sum;
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
    /// AxID, the same for both bursts: AXI keeps them in order.
    pub id: Bits<8>,
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
    pub id: Bits<8>,
}

/// log2 of the bytes no burst crosses a border of: 4 KiB, or 256 beats where those are fewer.
pub const fn border(lk: usize) -> u64 {
    if lk + 8 < 12 {
        lk as u64 + 8
    } else {
        12
    }
}

/// Two stages and an output slice: one burst per cycle.
#[derive(LogicBlock)]
pub struct BurstSplit<const LK: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<BurstCmd>,
    pub m: MsgSrc<Burst>,
    out: MsgSlice<Burst>,
    v1: DFF<Bit>,
    c1: DFF<BurstCmd>,
    v2: DFF<Bit>,
    b2: DFF<Burst>,
    /// The burst in `b2` is the first of two; `rest2` is the second one's length.
    cross2: DFF<Bit>,
    rest2: DFF<Bits<8>>,
    lk: Constant<Bits<4>>,
    border: Constant<Bits<4>>,
    /// Beats between two borders, less one.
    limit: Constant<Bits<8>>,
    addr1: Signal<Local, Bits<64>>,
    beat1: Signal<Local, Bits<12>>,
    index1: Signal<Local, Bits<8>>,
    room1: Signal<Local, Bits<8>>,
    room9: Signal<Local, Bits<9>>,
    last1: Signal<Local, Bits<9>>,
    rest1: Signal<Local, Bits<9>>,
    cross1: Signal<Local, Bit>,
    page: Signal<Local, Bits<64>>,
    /// The page behind.
    page_on: Sum<64>,
    one: Constant<Bits<64>>,
    bumped: Signal<Local, Bits<64>>,
    sent: Signal<Local, Bit>,
    done: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    open: Signal<Local, Bit>,
}

impl<const LK: usize> Default for BurstSplit<LK> {
    fn default() -> Self {
        assert!((3..=6).contains(&LK), "beats of 8 to 64 bytes");
        Self {
            clock: Default::default(),
            reset: Default::default(),
            s: Default::default(),
            m: Default::default(),
            out: Default::default(),
            v1: Default::default(),
            c1: Default::default(),
            v2: Default::default(),
            b2: Default::default(),
            cross2: Default::default(),
            rest2: Default::default(),
            lk: Constant::new((LK as u64).into()),
            border: Constant::new(border(LK).into()),
            limit: Constant::new(((1u64 << (border(LK) - LK as u64)) - 1).into()),
            addr1: Default::default(),
            beat1: Default::default(),
            index1: Default::default(),
            room1: Default::default(),
            room9: Default::default(),
            last1: Default::default(),
            rest1: Default::default(),
            cross1: Default::default(),
            page: Default::default(),
            page_on: Default::default(),
            one: Constant::new(1u64.into()),
            bumped: Default::default(),
            sent: Default::default(),
            done: Default::default(),
            go: Default::default(),
            open: Default::default(),
        }
    }
}

impl<const LK: usize> Logic for BurstSplit<LK> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, v1, c1, v2, b2, cross2, rest2);
        clock!(self, clock, out);
        self.out.reset.next = self.reset.val();
        MsgSrc::<Burst>::link(&mut self.m, &mut self.out.m);
        // Stage 2: the burst, and the second one in its place when there are two.
        self.out.s.data.next = self.b2.q.val();
        self.out.s.valid.next = self.v2.q.val();
        self.sent.next = self.v2.q.val() & self.out.s.ready.val();
        self.done.next = self.sent.val() & !self.cross2.q.val();
        self.page.next = self.b2.q.val().addr >> self.border.val();
        self.page_on.a.next = self.page.val();
        self.page_on.b.next = self.one.val();
        self.bumped.next = self.page_on.y.val() << self.border.val();
        if self.sent.val() {
            self.cross2.d.next = false;
            self.b2.d.next.addr = self.bumped.val();
            self.b2.d.next.len = self.rest2.q.val();
        }
        // Stage 1: where the next border is.
        self.addr1.next = self.c1.q.val().addr;
        self.last1.next = self.c1.q.val().last;
        self.beat1.next = self.addr1.val().get_bits::<12>(0) >> self.lk.val();
        self.index1.next = self.beat1.val().get_bits::<8>(0) & self.limit.val();
        self.room1.next = self.limit.val() ^ self.index1.val();
        self.room9.next = bit_cast::<9, 8>(self.room1.val());
        self.cross1.next = self.last1.val() > self.room9.val();
        self.rest1.next = self.last1.val() - self.room9.val() - 1;
        self.go.next = self.v1.q.val() & (!self.v2.q.val() | self.done.val());
        if self.done.val() {
            self.v2.d.next = false;
        }
        if self.go.val() {
            self.v2.d.next = true;
            self.v1.d.next = false;
            self.cross2.d.next = self.cross1.val();
            self.rest2.d.next = self.rest1.val().get_bits::<8>(0);
            self.b2.d.next.addr = self.addr1.val();
            self.b2.d.next.function = self.c1.q.val().function;
            self.b2.d.next.id = self.c1.q.val().id;
            self.b2.d.next.len = self.last1.val().get_bits::<8>(0);
            if self.cross1.val() {
                self.b2.d.next.len = self.room1.val();
            }
        }
        self.open.next = !self.v1.q.val() | self.go.val();
        self.s.ready.next = self.open.val();
        if self.open.val() {
            self.v1.d.next = self.s.valid.val();
            self.c1.d.next = self.s.data.val();
        }
        if self.reset.val() {
            self.v1.d.next = false;
            self.v2.d.next = false;
        }
    }
}
