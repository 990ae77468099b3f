//! Makes the W beats of one command after the other, in the order of their addresses.

use super::WrJob;
use crate::bus::{AxisSink, AxisSrc};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// The command in hand. `load` brings the next one in the cycle in which `free` is high: with the last beat of the one
/// before, so that beats follow each other without gaps.
#[derive(LogicBlock, BlockDefault)]
pub struct Beats<const W: usize, const K: usize, const LK: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub load: Signal<In, Bit>,
    pub job: Signal<In, WrJob>,
    /// A small write: `row` has its data, already turned to their lanes, `strobes` the lanes of each beat.
    pub short: Signal<In, Bit>,
    pub row: Signal<In, Bits<512>>,
    pub strobes: Signal<In, Bits<K>>,
    pub free: Signal<Out, Bit>,
    /// Payload.
    pub s: AxisSink<W, K>,
    /// W channel; `keep` are the strobes.
    pub m: AxisSrc<W, K>,
    busy: DFF<Bit>,
    now: DFF<WrJob>,
    is_small: DFF<Bit>,
    data: DFF<Bits<512>>,
    strobe: DFF<Bits<K>>,
    count: DFF<Bits<9>>,
    #[init(Constant::new((W as u64).into()))]
    width: Constant<Bits<10>>,
    go: Signal<Local, Bit>,
    end_of_job: Signal<Local, Bit>,
    end_of_burst: Signal<Local, Bit>,
    valid: Signal<Local, Bit>,
    finished: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize> Logic for Beats<W, K, LK> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, busy, now, is_small, data, strobe, count);
        self.end_of_job.next = self.count.q.val() == self.now.q.val().last;
        self.end_of_burst.next = self.end_of_job.val() | (self.now.q.val().cross & (self.count.q.val() == self.now.q.val().room));
        self.valid.next = self.busy.q.val() & (self.is_small.q.val() | self.s.valid.val());
        self.go.next = self.valid.val() & self.m.ready.val();
        self.finished.next = self.go.val() & self.end_of_job.val();
        self.free.next = !self.busy.q.val() | self.finished.val();
        self.s.ready.next = self.busy.q.val() & !self.is_small.q.val() & self.m.ready.val();
        self.m.valid.next = self.valid.val();
        self.m.last.next = self.end_of_burst.val();
        self.m.data.next = self.s.data.val();
        self.m.keep.next = self.s.keep.val();
        if self.is_small.q.val() {
            self.m.data.next = self.data.q.val().get_bits::<W>(0);
            self.m.keep.next = self.strobe.q.val();
        }
        if self.go.val() {
            self.count.d.next = self.count.q.val() + 1;
            self.data.d.next = self.data.q.val() >> self.width.val();
        }
        if self.finished.val() {
            self.busy.d.next = false;
        }
        if self.load.val() {
            self.busy.d.next = true;
            self.now.d.next = self.job.val();
            self.is_small.d.next = self.short.val();
            self.data.d.next = self.row.val();
            self.strobe.d.next = self.strobes.val();
            self.count.d.next = bits::<9>(0);
        }
        if self.reset.val() {
            self.busy.d.next = false;
        }
    }
}
