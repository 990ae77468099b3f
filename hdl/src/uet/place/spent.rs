//! Frames that are done with, from those who say so to the mover, which gives their cells back.
use crate::bus::MsgSrc;
use crate::msg::MoveOp;
use crate::stream::{MsgArb, MsgFifo};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[];

/// Who says so: the intake, the parser, the engine behind it.
const VOICES: usize = 3;
/// log2 of the frames that may wait: one for each cell.
const LG_WAITING: usize = 9;
/// Bits of a cell's number.
const CELL: usize = 12;

/// A pulse of `over[i]` with a frame's handle, of which the low bits are the cell buffer's.
#[derive(LogicBlock, BlockDefault)]
#[demand(1 << LG_WAITING == crate::net::cells::CELLS)]
pub struct Spent {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets them.
    pub reset: Signal<In, Bit>,
    pub over: [Signal<In, Bit>; VOICES],
    pub handle: [Signal<In, Bits<16>>; VOICES],
    pub m: MsgSrc<MoveOp>,
    waiting: [MsgFifo<Bits<CELL>, LG_WAITING>; VOICES],
    all: MsgArb<Bits<CELL>, VOICES>,
    cell: [Signal<Local, Bits<16>>; VOICES],
}

#[kernel]
impl Logic for Spent {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, all);
        self.all.reset.next = self.reset.val();
        for i in 0..VOICES {
            self.waiting[i].clock.next = self.clock.val();
            self.waiting[i].reset.next = self.reset.val();
            self.cell[i].next = self.handle[i].val();
            self.waiting[i].s.data.next = self.cell[i].val().get_bits::<CELL>(0);
            self.waiting[i].s.valid.next = self.over[i].val();
            MsgSrc::<Bits<CELL>>::join(&mut self.waiting[i].m, &mut self.all.s[i]);
        }
        self.m.valid.next = self.all.m.valid.val();
        self.all.m.ready.next = self.m.ready.val();
        self.m.data.next.handle = self.all.m.data.val();
        self.m.data.next.off = bits::<14>(0);
        self.m.data.next.len = bits::<13>(0);
        self.m.data.next.iova = bits::<64>(0);
        self.m.data.next.function = bits::<12>(0);
        self.m.data.next.free = true;
        self.m.data.next.direct = false;
        self.m.data.next.data = bits::<64>(0);
    }
}
