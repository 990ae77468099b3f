//! What of a PDC's timers has to be started, and which of them is due.
use crate::prim::sum::{Diff, Sum};
use crate::uet::pds::types::TxLine;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Timers of a PDC, as low bits of the number that `rdma/timer` knows them by.
pub mod timer {
    pub const RTO: u64 = 0;
    pub const STALL: u64 = 1;
    pub const RETRY: u64 = 2;
    /// An initiator has had nothing to do; its place rests.
    pub const LIFE: u64 = 3;
    /// Their bits below the place of the PDC, in that number.
    pub const SHIFT: u64 = 2;
}

/// A cycle behind the line.
#[derive(LogicBlock, BlockDefault)]
pub struct Timing {
    pub clock: Signal<In, Clock>,
    pub now: Signal<In, Bits<32>>,
    pub rto: Signal<In, Bits<32>>,
    /// Instead: how long the place rests.
    pub ends: Signal<In, Bit>,
    pub safety: Signal<In, Bits<32>>,
    pub line: Signal<In, TxLine>,
    /// The present time-out, and when it is over.
    pub timeout: Signal<Out, Bits<32>>,
    pub until: Signal<Out, Bits<32>>,
    /// The time-out that runs is over.
    pub due: Signal<Out, Bit>,
    /// Holes, and nothing new may be sent.
    pub stalled: Signal<Out, Bit>,
    /// It has something to be sent again; something new, or its close.
    pub again: Signal<Out, Bit>,
    pub fresh: Signal<Out, Bit>,
    pub closes: Signal<Out, Bit>,
    /// It has nothing to do.
    pub rests: Signal<Out, Bit>,
    timeouts: DFF<Bits<32>>,
    overs: DFF<Bits<32>>,
    dues: DFF<Bit>,
    stalls: DFF<Bit>,
    agains: DFF<Bit>,
    freshes: DFF<Bit>,
    close: DFF<Bit>,
    resting: DFF<Bit>,
    sum: Sum<32>,
    late: Diff<32>,
    l: Signal<Local, TxLine>,
    empty: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Timing {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, timeouts, overs, dues, stalls, agains, freshes, close, resting);
        self.l.next = self.line.val();
        self.timeouts.d.next = self.rto.val() << self.l.val().tries;
        if self.ends.val() {
            self.timeouts.d.next = self.safety.val();
        }
        self.sum.a.next = self.now.val();
        self.sum.b.next = self.timeouts.q.val();
        self.overs.d.next = self.sum.y.val();
        self.late.a.next = self.now.val();
        self.late.b.next = self.l.val().rto_at;
        self.dues.d.next = !self.late.y.val().get_bit(31);
        self.empty.next = !self.l.val().queued & !self.l.val().outs;
        self.stalls.d.next = self.l.val().hole & (!self.l.val().queued | !self.l.val().room);
        self.agains.d.next = self.l.val().live & self.l.val().resends;
        self.freshes.d.next = self.l.val().live & !self.l.val().resends & self.l.val().queued & self.l.val().room & !(self.l.val().syn & self.l.val().waits);
        self.close.d.next = self.l.val().live & self.l.val().closing & !self.l.val().leaving & !self.l.val().syn & self.empty.val();
        self.resting.d.next = self.l.val().live & !self.l.val().closing & !self.l.val().leaving & !self.l.val().syn & self.empty.val();
        self.timeout.next = self.timeouts.q.val();
        self.until.next = self.overs.q.val();
        self.due.next = self.dues.q.val();
        self.stalled.next = self.stalls.q.val();
        self.again.next = self.agains.q.val();
        self.fresh.next = self.freshes.q.val();
        self.closes.next = self.close.q.val();
        self.rests.next = self.resting.q.val();
    }
}
