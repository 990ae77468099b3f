//! What functions send waits until it is known whether they may, and goes on or is dropped. See README.md.

mod senders;
#[cfg(test)]
mod tests;

use crate::bus::{AxisSink, AxisSrc};
use crate::prim::arb::BinToOneHot;
use crate::prim::pack::Gather;
use crate::prim::sized::Delay;
use crate::records::{FlowCommand, SenderCtx, TunnelCtx};
use crate::stream::{AxisFifo, MsgFifo};
use crate::switch::sight::Sight;
use crate::switch::verify::{self, Verify};
use crate::switch::wrap::whose::Whose;
use ferric_abi::codes::SwitchCause;
use ferric_abi::csr::FUNCTION_PORTS;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;
use senders::Senders;

/// Events on `stat`, of each frame of a function that is verified one: it goes on; then, dropped, by cause.
pub const STATS: &[&str] = &["tx_verified", "tx_deep", "tx_spoof_mac", "tx_spoof_ip", "tx_spoof_arp", "tx_tag_denied", "tx_roce_denied", "tx_underlay_denied"];

/// Which ports may wait for which others (docs/deadlock.md). A frame's window is 16 beats at most, and there are places for 64: what is known of the first frame does not wait for others.
pub const WAITS: &[(&str, &[&str])] = &[("s", &["m"])];

/// Bits of `stat`, and the causes of its bits.
const EVENTS: usize = 8;
const NOTHING: usize = SwitchCause::None as usize;
const DEEP: usize = SwitchCause::Deep as usize;
const SPOOF_MAC: usize = SwitchCause::SpoofMac as usize;
const SPOOF_IP: usize = SwitchCause::SpoofIp as usize;
const SPOOF_ARP: usize = SwitchCause::SpoofArp as usize;
const TAG_DENIED: usize = SwitchCause::TagDenied as usize;
const ROCE_DENIED: usize = SwitchCause::RoceDenied as usize;
const UNDERLAY_DENIED: usize = SwitchCause::UnderlayDenied as usize;
const FIRST_FUNCTION: u64 = FUNCTION_PORTS as u64;

/// log2 of the places for beats; and for fates, which are never more than beats.
const LG_BEATS: usize = 6;
const LG_FATES: usize = 7;
/// Cycles from the window to what stands against the frame, and to its key.
const KNOWN: usize = verify::FROM_WINDOW as usize;
const KEYED: usize = (verify::FROM_WINDOW - verify::LATENCY) as usize;

/// Frames of `NF` functions, four ways of 2^`LB` addresses that they may send from.
#[derive(LogicBlock, BlockDefault)]
#[demand(STATS.len() == EVENTS)]
pub struct Guard<const W: usize, const K: usize, const NF: usize, const LB: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; what is under way is forgotten, and nobody is verified.
    pub reset: Signal<In, Bit>,
    /// From the egress: a frame begins, of this function; some cycles later its first beat comes on `s`.
    pub begins: Signal<In, Bit>,
    pub begins_function: Signal<In, Bits<12>>,
    pub s: AxisSink<W, K>,
    pub m: AxisSrc<W, K>,
    /// As from the egress, of the frames on `m`.
    pub m_begins: Signal<Out, Bit>,
    pub m_function: Signal<Out, Bits<12>>,
    /// The tunnels, which end at addresses that are nobody's.
    pub ctx: [Signal<In, TunnelCtx>; NF],
    /// A command of `ferric_abi::switch::table`, one a cycle, at any time.
    pub write: Signal<In, Bit>,
    pub command: Signal<In, FlowCommand>,
    /// In the next cycle: it named nothing that there is here.
    pub refused: Signal<Out, Bit>,
    /// What a function may send is taken away, if it is verified; and what all may.
    pub close: Signal<In, Bit>,
    pub closed: Signal<In, Bits<12>>,
    pub forget: Signal<In, Bit>,
    /// See [`STATS`], and whose frame it was.
    pub stat: Signal<Out, Bits<EVENTS>>,
    pub stat_function: Signal<Out, Bits<12>>,
    sight: Sight<W, K>,
    whose: Whose<K>,
    senders: Senders<NF, LB>,
    words: verify::Words,
    verify: Verify<NF, LB>,
    beats: AxisFifo<W, K, LG_BEATS>,
    fates: MsgFifo<Bit, LG_FATES>,
    taken: Signal<Local, Bit>,
    sender1: DFF<SenderCtx>,
    #[init(Delay::new(KEYED - 1))]
    sender: Delay<SenderCtx>,
    #[init(Delay::new(KNOWN))]
    function: Delay<Bits<6>>,
    one: BinToOneHot<64, 6>,
    causes: Signal<Local, Bits<64>>,
    all: Gather<EVENTS>,
    denied: Signal<Local, Bit>,
    events: DFF<Bits<EVENTS>>,
    owner: DFF<Bits<6>>,
    fate: DFF<Bit>,
    fate_valid: DFF<Bit>,
    drop: Signal<Local, Bit>,
    leaves: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize, const NF: usize, const LB: usize> Logic for Guard<W, K, NF, LB> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, sender1, events, owner, fate, fate_valid);
        clock!(self, clock, sight, whose, senders, words, verify, beats, fates, sender, function);
        self.sight.reset.next = self.reset.val();
        self.whose.reset.next = self.reset.val();
        self.senders.reset.next = self.reset.val();
        self.words.reset.next = self.reset.val();
        self.verify.reset.next = self.reset.val();
        self.beats.reset.next = self.reset.val();
        self.fates.reset.next = self.reset.val();
        // What comes
        AxisSink::<W, K>::link(&mut self.s, &mut self.beats.s);
        self.taken.next = self.s.valid.val() & self.s.ready.val();
        self.sight.data.next = self.s.data.val();
        self.sight.keep.next = self.s.keep.val();
        self.sight.last.next = self.s.last.val();
        self.sight.err.next = false;
        self.sight.valid.next = self.taken.val();
        self.whose.begins.next = self.begins.val();
        self.whose.sender.next = self.begins_function.val();
        self.whose.whole.next = self.sight.window_valid.val();
        // Who it is, and what is in it
        self.senders.function.next = self.whose.first.val();
        self.sender1.d.next = self.senders.sender.val();
        self.sender.x.next = self.sender1.q.val();
        self.function.x.next = self.whose.first.val();
        self.words.window.next = self.sight.window.val();
        self.words.window_valid.next = self.sight.window_valid.val();
        self.words.ended.next = self.sight.ended.val();
        self.words.len.next = self.sight.len.val();
        self.words.origin.next.port = bit_cast::<8, 6>(self.whose.first.val()) + FIRST_FUNCTION;
        self.words.origin.next.domain = bits::<12>(0);
        self.words.origin.next.remote = bits::<12>(0);
        self.words.origin.next.option = false;
        self.verify.valid.next = self.words.valid.val();
        self.verify.key.next = self.words.key.val();
        self.verify.facts.next = self.words.facts.val();
        self.verify.message.next = self.words.message.val();
        self.verify.sender.next = self.sender.y.val();
        for i in 0..NF {
            self.verify.ctx[i].next = self.ctx[i].val();
        }
        // What becomes of it
        self.denied.next = self.verify.on.val() & self.verify.cause.val().any();
        self.m_begins.next = self.verify.judged.val() & !self.denied.val();
        self.m_function.next = bit_cast::<12, 6>(self.function.y.val());
        self.fate.d.next = self.denied.val();
        self.fate_valid.d.next = self.verify.judged.val();
        self.fates.s.data.next = self.fate.q.val();
        self.fates.s.valid.next = self.fate_valid.q.val();
        self.one.x.next = self.verify.cause.val();
        self.one.en.next = self.verify.judged.val() & self.verify.on.val();
        self.causes.next = self.one.y.val();
        self.all.x[0].next = self.causes.val().get_bit(NOTHING);
        self.all.x[1].next = self.causes.val().get_bit(DEEP);
        self.all.x[2].next = self.causes.val().get_bit(SPOOF_MAC);
        self.all.x[3].next = self.causes.val().get_bit(SPOOF_IP);
        self.all.x[4].next = self.causes.val().get_bit(SPOOF_ARP);
        self.all.x[5].next = self.causes.val().get_bit(TAG_DENIED);
        self.all.x[6].next = self.causes.val().get_bit(ROCE_DENIED);
        self.all.x[7].next = self.causes.val().get_bit(UNDERLAY_DENIED);
        self.events.d.next = self.all.y.val();
        self.owner.d.next = self.function.y.val();
        self.stat.next = self.events.q.val();
        self.stat_function.next = bit_cast::<12, 6>(self.owner.q.val());
        // What goes
        self.drop.next = self.fates.m.data.val();
        self.leaves.next = self.beats.m.valid.val() & self.fates.m.valid.val();
        self.m.valid.next = self.leaves.val() & !self.drop.val();
        self.m.data.next = self.beats.m.data.val();
        self.m.keep.next = self.beats.m.keep.val();
        self.m.last.next = self.beats.m.last.val();
        self.beats.m.ready.next = self.fates.m.valid.val() & (self.drop.val() | self.m.ready.val());
        self.fates.m.ready.next = self.beats.m.valid.val() & self.beats.m.last.val() & (self.drop.val() | self.m.ready.val());
        // Commands
        self.senders.write.next = self.write.val();
        self.senders.command.next = self.command.val();
        self.refused.next = self.senders.refused.val();
        self.senders.close.next = self.close.val();
        self.senders.closed.next = self.closed.val();
        self.senders.forget.next = self.forget.val();
        self.verify.write.next = self.senders.to_bind.val();
        self.verify.write_way.next = self.senders.way.val();
        self.verify.write_line.next = self.senders.line.val();
        self.verify.write_data.next = self.senders.bound.val();
        if self.reset.val() {
            self.fate_valid.d.next = false;
            self.events.d.next = bits::<EVENTS>(0);
        }
    }
}
