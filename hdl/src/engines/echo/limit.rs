//! Limits what is answered: a bucket of tokens for each function's neighbours and one for its pings, so that pings do not take what neighbours need.

use super::{BURST, TICKS_PER_TOKEN};
use crate::prim::ram::Ram;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Ticks until an empty bucket is full, and until one that is as good as empty is.
const FULL: u64 = BURST * TICKS_PER_TOKEN;
const LAST: u64 = FULL - TICKS_PER_TOKEN;

/// Of each bucket the tick is kept at which it will be full: tokens that come need no work. `A`: log2 of the buckets.
///
/// A bucket that was not asked for 2^32 ticks (73 minutes) or a multiple of it may be taken for empty, for 1 ms.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Limit<const A: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub now: Signal<In, Bits<32>>,
    /// Asks for a token out of `bucket`, which stays until `done`.
    pub go: Signal<In, Bit>,
    pub bucket: Signal<In, Bits<A>>,
    pub done: Signal<Out, Bit>,
    pub allowed: Signal<Out, Bit>,
    full_at: Ram<Bits<32>, A>,
    steps: [DFF<Bit>; 4],
    tick: DFF<Bits<32>>,
    kept: DFF<Bits<32>>,
    ahead: DFF<Bits<32>>,
    from: DFF<Bits<32>>,
    may: DFF<Bit>,
}

#[kernel]
impl<const A: usize> Logic for Limit<A> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, tick, kept, ahead, from, may);
        clock!(self, clock, full_at);
        for i in 0..4 {
            self.steps[i].clock.next = self.clock.val();
        }
        self.steps[0].d.next = self.go.val();
        for i in 1..4 {
            self.steps[i].d.next = self.steps[i - 1].q.val();
        }
        self.full_at.read_addr.next = self.bucket.val();
        self.tick.d.next = self.tick.q.val();
        if self.go.val() {
            self.tick.d.next = self.now.val();
        }
        self.kept.d.next = self.full_at.read_data.val();
        self.ahead.d.next = self.kept.q.val() - self.tick.q.val();
        // What lies further ahead than an empty bucket's tick is in the past: the bucket is full.
        self.from.d.next = self.tick.q.val();
        if self.ahead.q.val() <= FULL {
            self.from.d.next = self.kept.q.val();
        }
        self.may.d.next = (self.ahead.q.val() > FULL) | (self.ahead.q.val() <= LAST);
        self.full_at.write_addr.next = self.bucket.val();
        self.full_at.write_data.next = self.from.q.val() + TICKS_PER_TOKEN;
        self.full_at.write_en.next = self.steps[3].q.val() & self.may.q.val();
        self.done.next = self.steps[3].q.val();
        self.allowed.next = self.may.q.val();
        if self.reset.val() {
            for i in 0..4 {
                self.steps[i].d.next = false;
            }
        }
    }
}
