//! Frames given back: reference counts and the return of chains.

use crate::bus::MsgSink;
use crate::prim::ram::RamHold;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// A good frame's chain beyond its head, which is its handle.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Extent {
    pub tail: Bits<9>,
    pub count: Bits<6>,
}

/// Keeps each frame's extent and the number of its owners beyond the first. A free of the last owner splices the chain.
#[derive(LogicBlock, Default)]
pub struct Release {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    /// Handles to free.
    pub s_free: [MsgSink<Bits<9>>; 2],
    /// Handles that get one owner more.
    pub s_retain: MsgSink<Bits<9>>,
    // A good frame came in
    pub commit: Signal<In, Bit>,
    pub commit_head: Signal<In, Bits<9>>,
    pub commit_tail: Signal<In, Bits<9>>,
    pub commit_count: Signal<In, Bits<6>>,
    /// The free list is taken by the receive side in this cycle.
    pub busy: Signal<In, Bit>,
    pub splice: Signal<Out, Bit>,
    pub splice_head: Signal<Out, Bits<9>>,
    pub splice_tail: Signal<Out, Bits<9>>,
    pub splice_count: Signal<Out, Bits<6>>,
    // Counts are zeroed while the free list is built
    pub init: Signal<In, Bit>,
    pub init_cell: Signal<In, Bits<9>>,
    extents: RamHold<Extent, 9>,
    extra: RamHold<Bits<3>, 9>,
    active: DFF<Bit>,
    retain: DFF<Bit>,
    handle: DFF<Bits<9>>,
    /// Which free port goes first.
    turn: DFF<Bit>,
    take0: Signal<Local, Bit>,
    take1: Signal<Local, Bit>,
    take_r: Signal<Local, Bit>,
    want: Signal<Local, Bits<9>>,
    any: Signal<Local, Bit>,
    sole: Signal<Local, Bit>,
    leaves: Signal<Local, Bit>,
    accept: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Release {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, active, retain, handle, turn);
        clock!(self, clock, extents, extra);
        // Choice among the ports
        self.take0.next = self.s_free[0].valid.val() & (!self.turn.q.val() | !self.s_free[1].valid.val());
        self.take1.next = self.s_free[1].valid.val() & (self.turn.q.val() | !self.s_free[0].valid.val());
        self.take_r.next = self.s_retain.valid.val() & !self.s_free[0].valid.val() & !self.s_free[1].valid.val();
        self.want.next = self.s_retain.data.val();
        if self.take0.val() {
            self.want.next = self.s_free[0].data.val();
        }
        if self.take1.val() {
            self.want.next = self.s_free[1].data.val();
        }
        self.any.next = self.take0.val() | self.take1.val() | self.take_r.val();
        // The operation at hand
        self.sole.next = !self.extra.read_data.val().any();
        self.splice.next = self.active.q.val() & !self.retain.q.val() & self.sole.val() & !self.busy.val();
        self.leaves.next = self.active.q.val() & (self.retain.q.val() | !self.sole.val() | !self.busy.val());
        self.splice_head.next = self.handle.q.val();
        self.splice_tail.next = self.extents.read_data.val().tail;
        self.splice_count.next = self.extents.read_data.val().count;
        // A second operation on the same frame waits until the first has written.
        self.accept.next = self.any.val() & !self.init.val() & (!self.active.q.val() | (self.leaves.val() & (self.want.val() != self.handle.q.val())));
        self.s_free[0].ready.next = self.accept.val() & self.take0.val();
        self.s_free[1].ready.next = self.accept.val() & self.take1.val();
        self.s_retain.ready.next = self.accept.val() & self.take_r.val();
        self.extents.read_addr.next = self.want.val();
        self.extents.read_en.next = self.accept.val();
        self.extra.read_addr.next = self.want.val();
        self.extra.read_en.next = self.accept.val();
        if self.leaves.val() {
            self.active.d.next = false;
        }
        if self.accept.val() {
            self.active.d.next = true;
            self.handle.d.next = self.want.val();
            self.retain.d.next = self.take_r.val();
            self.turn.d.next = self.take0.val();
        }
        // Memories
        self.extents.write_en.next = self.commit.val();
        self.extents.write_addr.next = self.commit_head.val();
        self.extents.write_data.next.tail = self.commit_tail.val();
        self.extents.write_data.next.count = self.commit_count.val();
        self.extra.write_en.next = self.active.q.val() & (self.retain.q.val() | !self.sole.val());
        self.extra.write_addr.next = self.handle.q.val();
        self.extra.write_data.next = self.extra.read_data.val() - 1;
        if self.retain.q.val() {
            self.extra.write_data.next = self.extra.read_data.val() + 1;
        }
        if self.init.val() {
            self.extra.write_en.next = true;
            self.extra.write_addr.next = self.init_cell.val();
            self.extra.write_data.next = bits::<3>(0);
        }
        if self.reset.val() {
            self.active.d.next = false;
        }
    }
}
