//! Where congestion control gets its events and gives its orders. See README.md.

mod policy;
#[cfg(test)]
mod tests;

use crate::msg::{CcEvent, CcUpdate};
use ferric_hdl_derive::kernel;
use policy::Policy;
use rust_hdl::prelude::*;

/// Names of the bits of `stat`.
pub const STATS: &[&str] = &["np_ecn_marked_roce_packets", "rp_cnp_ignored"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("notice", &[]), ("notice_valid", &[])];

/// The congestion hook: counts, and hands each event to the policy.
#[derive(LogicBlock, Default)]
pub struct CcHook {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    /// One event a cycle, never refused.
    pub notice: Signal<In, CcEvent>,
    pub notice_valid: Signal<In, Bit>,
    /// What the policy wants of a queue pair, at most one a cycle.
    pub update: Signal<Out, CcUpdate>,
    pub update_valid: Signal<Out, Bit>,
    /// One pulse per event, see [`STATS`].
    pub stat: Signal<Out, Bits<2>>,
    policy: Policy,
    events: DFF<Bits<2>>,
    marked: Signal<Local, Bit>,
    ignored: Signal<Local, Bit>,
}

#[kernel]
impl Logic for CcHook {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, events);
        self.policy.notice.next = self.notice.val();
        self.policy.notice_valid.next = self.notice_valid.val();
        self.update.next = self.policy.update.val();
        self.update_valid.next = self.policy.update_valid.val();
        self.stat.next = self.events.q.val();
        self.marked.next = self.notice_valid.val() & (self.notice.val().ecn == 3);
        self.ignored.next = self.notice_valid.val() & (self.notice.val().kind == 1) & !self.policy.handled.val();
        self.events.d.next = bit_cast::<2, 1>(self.marked.val().into()) | (bit_cast::<2, 1>(self.ignored.val().into()) << 1);
        if self.reset.val() {
            self.events.d.next = bits::<2>(0);
        }
    }
}
