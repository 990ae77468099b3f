//! The oldest request that is not retired: how far the acknowledge reaches.
use crate::msg::TrackEntry;
use crate::prim::sum::{Ahead, PlusOne};
use crate::records::ReqCtx;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Judges the tracker's entry as it comes, in cycles with `take`, and keeps it and the judgement.
#[derive(LogicBlock, Default)]
pub struct Oldest {
    pub clock: Signal<In, Clock>,
    pub take: Signal<In, Bit>,
    pub data: Signal<In, TrackEntry>,
    /// `una_psn` behind what is acknowledged.
    pub line: Signal<In, ReqCtx>,
    pub entry: Signal<Out, TrackEntry>,
    /// It gets a completion.
    pub wanted: Signal<Out, Bit>,
    /// Acknowledged to its end. In cycles with `take` only.
    pub passed: Signal<Out, Bit>,
    /// Number of the request behind it, and its first PSN.
    pub follower: Signal<Out, Bits<16>>,
    pub first_psn: Signal<Out, Bits<24>>,
    /// What stands there has failed locally; nothing stands there; what stands there is not acknowledged to its end.
    pub fails_next: Signal<Out, Bit>,
    pub empties: Signal<Out, Bit>,
    pub stops: Signal<Out, Bit>,
    kept: DFF<TrackEntry>,
    short: DFF<Bit>,
    behind: DFF<Bits<24>>,
    reach: Ahead<24>,
    next_reach: Ahead<24>,
    beyond: PlusOne<24>,
    /// Not a carry chain: a comparison with its result goes on bit by bit.
    onward: PlusOne<16>,
    now: Signal<Local, TrackEntry>,
    after: Signal<Local, Bits<16>>,
    fails: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Oldest {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, kept, short, behind);
        self.now.next = self.kept.q.val();
        if self.take.val() {
            self.now.next = self.data.val();
        }
        self.kept.d.next = self.now.val();
        self.entry.next = self.now.val();
        self.wanted.next = self.now.val().signaled;
        // Added before the choice: the sum is what takes long.
        self.beyond.a.next = self.data.val().last_psn;
        self.first_psn.next = self.behind.q.val();
        if self.take.val() {
            self.first_psn.next = self.beyond.y.val();
            self.behind.d.next = self.beyond.y.val();
        }
        self.reach.a.next = self.line.val().una_psn;
        self.reach.b.next = self.data.val().last_psn;
        self.passed.next = self.reach.y.val();
        self.onward.a.next = self.line.val().una_index;
        self.after.next = self.onward.y.val();
        self.follower.next = self.after.val();
        self.fails.next = self.line.val().error_pending & (self.after.val() == self.line.val().error_index);
        self.fails_next.next = self.fails.val();
        self.empties.next = (self.after.val() == self.line.val().sent_index) & !self.fails.val();
        self.next_reach.a.next = self.line.val().una_psn;
        self.next_reach.b.next = self.data.val().next_psn;
        self.ends.next = self.short.q.val();
        if self.take.val() {
            self.ends.next = !self.next_reach.y.val();
        }
        self.short.d.next = self.ends.val();
        self.stops.next = self.ends.val() & !self.fails.val();
    }
}
