//! What the engine says of its work, as events for the card's counters. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::codes::steer_cause;
use crate::msg::{VqNotify, VqTold, VsDropped};
use crate::prim::arb::BinToOneHot;
use crate::prim::pack::Gather;
use crate::stream::{MsgArb, MsgFifo};
use crate::virtio::engine::TELLERS;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Names of the bits of `stat`: a received frame ends as one of the first six; the rest are of rings and of chains to be sent (`VirtioCause`).
pub const STATS: &[&str] = &[
    "virtio_delivered",
    "virtio_filtered",
    "virtio_rx_down",
    "virtio_rx_small",
    "virtio_rx_no_buffer",
    "virtio_rx_dma",
    "virtio_sent",
    "virtio_avail_jump",
    "virtio_bad_head",
    "virtio_bad_next",
    "virtio_long_chain",
    "virtio_bad_indirect",
    "virtio_bad_direction",
    "virtio_short",
    "virtio_oversize",
    "virtio_bad_offload",
    "virtio_ring_dma",
    "virtio_tx_dma",
];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("s_from", &[])];

/// How many they are, and the causes that there can be.
const EVENTS: usize = 18;
const CAUSES: usize = 32;
const LG_CAUSES: usize = 5;
/// Those who tell, and log2 of what each of them may have told that has not been counted: nobody tells more often than in every fourth cycle.
const VOICES: usize = 6;
const LG_WAITING: usize = 4;
/// Bits of causes.
mod cause {
    use ferric_abi::codes::VirtioCause::*;
    pub const RX_SMALL: usize = RxSmall as usize;
    pub const RX_NO_BUFFER: usize = RxNoBuffer as usize;
    pub const RX_DMA: usize = RxDma as usize;
    pub const AVAIL_JUMP: usize = AvailJump as usize;
    pub const BAD_HEAD: usize = BadHead as usize;
    pub const BAD_NEXT: usize = BadNext as usize;
    pub const LONG_CHAIN: usize = LongChain as usize;
    pub const BAD_INDIRECT: usize = BadIndirect as usize;
    pub const BAD_DIRECTION: usize = BadDirection as usize;
    pub const SHORT: usize = Short as usize;
    pub const OVERSIZE: usize = Oversize as usize;
    pub const BAD_OFFLOAD: usize = BadOffload as usize;
    pub const RING_DMA: usize = RingDma as usize;
    pub const TX_DMA: usize = TxDma as usize;
}

/// One pulse per event.
#[derive(LogicBlock, BlockDefault)]
#[demand(TELLERS.len() == VOICES && STATS.len() == EVENTS)]
pub struct Tally {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets what has not been counted.
    pub reset: Signal<In, Bit>,
    /// What each of [`TELLERS`] rejects, with `told_valid`.
    pub told: [Signal<In, VqTold>; VOICES],
    pub told_valid: [Signal<In, Bit>; VOICES],
    /// Frames that steering drops, frames delivered.
    pub dropped: Signal<In, VsDropped>,
    pub dropped_valid: Signal<In, Bit>,
    pub delivered: Signal<In, Bit>,
    /// The queue of each frame that leaves.
    pub s_from: MsgSink<VqNotify>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<EVENTS>>,
    waiting: [MsgFifo<VqTold, LG_WAITING>; VOICES],
    all: MsgArb<VqTold, VOICES>,
    one: BinToOneHot<CAUSES, LG_CAUSES>,
    causes: DFF<Bits<CAUSES>>,
    passed: DFF<Bit>,
    filtered: DFF<Bit>,
    down: DFF<Bit>,
    sent: DFF<Bit>,
    events: Gather<EVENTS>,
}

#[kernel]
impl Logic for Tally {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, causes, passed, filtered, down, sent);
        clock!(self, clock, all);
        self.all.reset.next = self.reset.val();
        for i in 0..VOICES {
            self.waiting[i].clock.next = self.clock.val();
            self.waiting[i].reset.next = self.reset.val();
            self.waiting[i].s.data.next = self.told[i].val();
            self.waiting[i].s.valid.next = self.told_valid[i].val();
            MsgSrc::<VqTold>::join(&mut self.waiting[i].m, &mut self.all.s[i]);
        }
        self.all.m.ready.next = true;
        self.one.en.next = self.all.m.valid.val();
        self.one.x.next = self.all.m.data.val().cause;
        self.causes.d.next = self.one.y.val();
        self.passed.d.next = self.delivered.val();
        self.down.d.next = self.dropped_valid.val() & (self.dropped.val().cause == steer_cause::NO_QUEUE);
        self.filtered.d.next = self.dropped_valid.val() & !(self.dropped.val().cause == steer_cause::NO_QUEUE);
        self.s_from.ready.next = true;
        self.sent.d.next = self.s_from.valid.val();
        self.events.x[0].next = self.passed.q.val();
        self.events.x[1].next = self.filtered.q.val();
        self.events.x[2].next = self.down.q.val();
        self.events.x[3].next = self.causes.q.val().get_bit(cause::RX_SMALL);
        self.events.x[4].next = self.causes.q.val().get_bit(cause::RX_NO_BUFFER);
        self.events.x[5].next = self.causes.q.val().get_bit(cause::RX_DMA);
        self.events.x[6].next = self.sent.q.val();
        self.events.x[7].next = self.causes.q.val().get_bit(cause::AVAIL_JUMP);
        self.events.x[8].next = self.causes.q.val().get_bit(cause::BAD_HEAD);
        self.events.x[9].next = self.causes.q.val().get_bit(cause::BAD_NEXT);
        self.events.x[10].next = self.causes.q.val().get_bit(cause::LONG_CHAIN);
        self.events.x[11].next = self.causes.q.val().get_bit(cause::BAD_INDIRECT);
        self.events.x[12].next = self.causes.q.val().get_bit(cause::BAD_DIRECTION);
        self.events.x[13].next = self.causes.q.val().get_bit(cause::SHORT);
        self.events.x[14].next = self.causes.q.val().get_bit(cause::OVERSIZE);
        self.events.x[15].next = self.causes.q.val().get_bit(cause::BAD_OFFLOAD);
        self.events.x[16].next = self.causes.q.val().get_bit(cause::RING_DMA);
        self.events.x[17].next = self.causes.q.val().get_bit(cause::TX_DMA);
        self.stat.next = self.events.y.val();
    }
}
