//! Where a window lies in its region: bounds and page table, one difference at a time.

use crate::prim::sum::{Diff, Sum};
use crate::records::MrCtx;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Ready,
    /// From the region's start to the window's.
    Offset,
    /// From there to the region's end.
    Left,
    /// Less the window's length.
    Fits,
    /// The same start in pages.
    Pages,
    Entry,
    Table,
}

/// Begins with `go`, when `base` holds in the cycle behind it; all inputs stay until `ready`.
#[derive(LogicBlock, Default)]
pub struct Extent {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub go: Signal<In, Bit>,
    pub start: Signal<In, Bits<64>>,
    pub length: Signal<In, Bits<64>>,
    pub base: Signal<In, MrCtx>,
    pub ready: Signal<Out, Bit>,
    /// Not all of it lies in the region.
    pub outside: Signal<Out, Bit>,
    /// IOVA of the page-table entry of the window's first page; of its first byte, if the region is `direct`.
    pub root: Signal<Out, Bits<64>>,
    state: DFF<State>,
    a: DFF<Bits<64>>,
    b: DFF<Bits<64>>,
    off: DFF<Bits<64>>,
    over: DFF<Bit>,
    found: DFF<Bits<64>>,
    /// The difference of `a` and `b`, a cycle later; `settled`: it is that of those at hand.
    bytes: DFF<Bits<64>>,
    below: DFF<Bit>,
    settled: DFF<Bit>,
    /// Numbers of 4 KiB pages, of the first one of a larger page.
    start_page: Signal<Local, Bits<64>>,
    base_page: Signal<Local, Bits<64>>,
    entries: Signal<Local, Bits<64>>,
    diff: Diff<64>,
    sum: Sum<64>,
}

#[kernel]
impl Logic for Extent {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, a, b, off, over, found, bytes, below, settled);
        self.diff.a.next = self.a.q.val();
        self.diff.b.next = self.b.q.val();
        self.sum.a.next = self.base.val().table;
        self.sum.b.next = self.off.q.val();
        self.ready.next = (self.state.q.val() == State::Ready) & !self.go.val();
        self.outside.next = self.over.q.val();
        self.root.next = self.found.q.val();
        self.bytes.d.next = self.diff.y.val();
        self.below.d.next = self.diff.below.val();
        // Inputs and offset stay until long after it is asked for.
        self.found.d.next = self.sum.y.val();
        self.settled.d.next = !self.settled.q.val();
        self.start_page.next = self.start.val() >> 12;
        self.base_page.next = self.base.val().start >> 12;
        self.entries.next = self.bytes.q.val();
        if self.base.val().page_size.get_bit(0) {
            self.start_page.next = (self.start.val() >> 21) << 9;
            self.base_page.next = (self.base.val().start >> 21) << 9;
            self.entries.next = self.bytes.q.val() >> 9;
        }
        if self.base.val().page_size.get_bit(1) {
            self.start_page.next = (self.start.val() >> 30) << 18;
            self.base_page.next = (self.base.val().start >> 30) << 18;
            self.entries.next = self.bytes.q.val() >> 18;
        }
        match self.state.q.val() {
            State::Ready => {
                if self.go.val() {
                    self.over.d.next = false;
                    self.state.d.next = State::Offset;
                }
            }
            State::Offset => {
                self.a.d.next = self.start.val();
                self.b.d.next = self.base.val().start;
                self.settled.d.next = false;
                self.state.d.next = State::Left;
            }
            State::Left => {
                if self.settled.q.val() {
                    self.off.d.next = self.bytes.q.val();
                    self.over.d.next = self.below.q.val();
                    self.a.d.next = self.base.val().length;
                    self.b.d.next = self.bytes.q.val();
                    self.state.d.next = State::Fits;
                }
            }
            State::Fits => {
                if self.settled.q.val() {
                    self.over.d.next = self.over.q.val() | self.below.q.val();
                    self.a.d.next = self.bytes.q.val();
                    self.b.d.next = self.length.val();
                    self.state.d.next = State::Pages;
                }
            }
            State::Pages => {
                if self.settled.q.val() {
                    self.over.d.next = self.over.q.val() | self.below.q.val();
                    self.a.d.next = self.start_page.val();
                    self.b.d.next = self.base_page.val();
                    self.state.d.next = State::Entry;
                }
            }
            State::Entry => {
                if self.settled.q.val() {
                    if !self.base.val().direct {
                        self.off.d.next = self.entries.val() << 3;
                    }
                    self.state.d.next = State::Table;
                }
            }
            State::Table => {
                self.state.d.next = State::Ready;
            }
            _ => {
                self.state.d.next = State::Ready;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Ready;
        }
    }
}
