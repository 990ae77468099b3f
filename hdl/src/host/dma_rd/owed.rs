//! How much payload the host may owe. What is asked for beyond what keeps the data channel busy only waits at the host, and every small read behind it.

use ferric_hdl_derive::{kernel, BlockNew};
use rust_hdl::prelude::*;

/// Beats that the host may owe after a reset, and at least: four reads of the largest page.
pub const LEAST: u64 = 256;
/// log2 of the cycles with a beat and a waiting read until a beat less may be owed. A limit that has become too low costs a cycle, so that is fewer than one cycle in a hundred.
pub const PATIENCE: usize = 7;

/// A limit of the beats of payload that the host owes, which follows the host: a cycle without a beat while a read waits for the limit, with beats before it since the host owed
/// nothing (the first answer takes its latency, whatever is asked for), raises it by one; each 2^[`PATIENCE`] cycles with a beat while a read waits lower it by one.
/// So it comes to what the host's latency and rate need, and no figure of either is configured. Without `limited` every read is free to go.
#[derive(LogicBlock, BlockNew)]
#[given(limited: bool)]
pub struct Owed {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// A read is there, whether it may go or not.
    pub waiting: Signal<In, Bit>,
    /// It goes now; its beats, less one.
    pub start: Signal<In, Bit>,
    pub last: Signal<In, Bits<9>>,
    /// A beat has come; it is payload.
    pub beat: Signal<In, Bit>,
    pub payload: Signal<In, Bit>,
    /// A read may go. Known a cycle late, so one more goes than the limit says.
    pub open: Signal<Out, Bit>,
    owed: DFF<Bits<14>>,
    limit: DFF<Bits<12>>,
    /// Beats have come since nothing was owed.
    flows: DFF<Bit>,
    busy: DFF<Bits<PATIENCE>>,
    is_open: DFF<Bit>,
    #[init(Constant::new(limited))]
    limited: Constant<Bit>,
    more: Signal<Local, Bits<14>>,
    less: Signal<Local, Bits<14>>,
    blocked: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Owed {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, owed, limit, flows, busy, is_open);
        self.more.next = bits::<14>(0);
        if self.start.val() {
            self.more.next = bit_cast::<14, 9>(self.last.val()) + 1;
        }
        self.less.next = bits::<14>(0);
        if self.beat.val() & self.payload.val() {
            self.less.next = bits::<14>(1);
            self.flows.d.next = true;
        }
        self.owed.d.next = self.owed.q.val() + self.more.val() - self.less.val();
        if !self.owed.q.val().any() {
            self.flows.d.next = false;
        }
        self.is_open.d.next = self.owed.q.val() < bit_cast::<14, 12>(self.limit.q.val());
        self.open.next = self.is_open.q.val() | !self.limited.val();
        self.blocked.next = self.waiting.val() & !self.is_open.q.val();
        if self.blocked.val() & !self.beat.val() & self.flows.q.val() & !self.limit.q.val().all() {
            self.limit.d.next = self.limit.q.val() + 1;
        }
        if self.blocked.val() & self.beat.val() {
            self.busy.d.next = self.busy.q.val() + 1;
            if self.busy.q.val().all() & (self.limit.q.val() > LEAST) {
                self.limit.d.next = self.limit.q.val() - 1;
            }
        }
        if self.reset.val() {
            self.owed.d.next = bits::<14>(0);
            self.limit.d.next = bits::<12>(LEAST);
            self.flows.d.next = false;
            self.busy.d.next = bits::<PATIENCE>(0);
            self.is_open.d.next = false;
        }
    }
}
