//! The PDC manager: who has which place of the pool, and where each PDC is in its life. See README.md.

mod counts;
mod directory;
mod effects;
mod judge;
mod manager;
mod oldest;
pub mod places;
mod start;
mod tally;
#[cfg(test)]
mod tests;
pub mod types;

use crate::bus::{CtxClient, MsgSink, MsgSrc};
use crate::context::store::CtxStore;
use crate::msg::{CtlReq, CtlResp};
use ferric_hdl_derive::{kernel, BlockDefault};
use manager::Manager;
use rust_hdl::prelude::*;
use types::{PdcAsk, PdcLine, PdcTold, PLACES, STAT_BITS};

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s", &["m", "s_ctl", "m_ctl"]), // the control bus keeps a line for some cycles
    ("s_ctl", &["s", "m"]),          // so does the manager, which tells nobody meanwhile
    ("m_ctl", &[]),
];

/// `2^LP` - 1 PDCs; `2^LH` chains in the directory.
#[derive(LogicBlock, BlockDefault)]
pub struct Pdc<const LP: usize, const LH: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; all places become free, one after another, and the first order waits for that.
    pub reset: Signal<In, Bit>,
    /// PSNs of the receive window: a SYN may be so far from its Start_PSN.
    pub window: Signal<In, Bits<16>>,
    /// Places that initiators, and targets, may have; places in use at most.
    pub share: Signal<In, Bits<PLACES>>,
    /// Of the targets' places those that one peer may have: its next takes that of its own oldest, or is refused if all that it has linger.
    pub peer_share: Signal<In, Bits<PLACES>>,
    /// Of the initiators' places those that PDCs to one peer may have, with those that rest: a message to it that would open another one finds none.
    pub peer_initiators: Signal<In, Bits<PLACES>>,
    pub places: Signal<In, Bits<PLACES>>,
    /// Free places of the targets' share below which the oldest is asked to go.
    pub low: Signal<In, Bits<PLACES>>,
    /// Targets that linger give way when the pool is full.
    pub linger_cut: Signal<In, Bit>,
    /// Start of the random numbers, taken at reset.
    pub seed: Signal<In, Bits<32>>,
    /// Orders, and an answer to each.
    pub s: MsgSink<PdcAsk>,
    pub m: MsgSrc<PdcTold>,
    /// Pulses with an answer, see `types::STATS`.
    pub stat: Signal<Out, Bits<STAT_BITS>>,
    /// Places in use: of initiators, with those that rest, and of targets, with those that linger.
    pub used: Signal<Out, Bits<PLACES>>,
    /// Words of the lines ([`PdcLine`]), for the admin engine's queries.
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    manager: Manager<LP, LH>,
    lines: CtxStore<PdcLine, LP, 1>,
}

#[kernel]
impl<const LP: usize, const LH: usize> Logic for Pdc<LP, LH> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, manager, lines);
        self.manager.reset.next = self.reset.val();
        self.lines.reset.next = self.reset.val();
        self.manager.window.next = self.window.val();
        self.manager.share.next = self.share.val();
        self.manager.peer_share.next = self.peer_share.val();
        self.manager.peer_initiators.next = self.peer_initiators.val();
        self.manager.places.next = self.places.val();
        self.manager.low.next = self.low.val();
        self.manager.linger_cut.next = self.linger_cut.val();
        self.manager.seed.next = self.seed.val();
        self.stat.next = self.manager.stat.val();
        self.used.next = self.manager.used.val();
        MsgSink::<PdcAsk>::link(&mut self.s, &mut self.manager.s);
        MsgSrc::<PdcTold>::link(&mut self.m, &mut self.manager.m);
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.lines.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.lines.m_ctl);
        CtxClient::<PdcLine>::join(&mut self.manager.ctx, &mut self.lines.client[0]);
    }
}
