//! What functions send waits until it is known whether they may, and goes on or is dropped. See README.md.

mod recall;
mod senders;
pub(super) mod tally;
#[cfg(test)]
mod tests;

use crate::bus::{AxisSink, AxisSrc};
use crate::prim::sized::Delay;
use crate::records::{FlowCommand, SenderCtx, TunnelCtx};
use crate::stream::{AxisFifo, Bypass, MsgFifo};
use crate::switch::matching::ANSWER;
use crate::switch::sight::Sight;
use crate::switch::verify::{self, Verify};
use crate::switch::wrap::whose::Whose;
use ferric_abi::codes::SwitchCause;
use ferric_abi::csr::FUNCTION_PORTS;
use ferric_hdl_derive::{kernel, BlockDefault};
use recall::Recall;
use rust_hdl::prelude::*;
use senders::Senders;
use tally::Tally;

/// What is counted of a function that is verified, of each frame one: it goes on; then, dropped, by cause. The fields of `SenderCounts`.
pub const COUNTS: &[&str] = &["verified", "deep", "spoof_mac", "spoof_ip", "spoof_arp", "tag_denied", "roce_denied", "underlay_denied"];

/// Which ports may wait for which others (docs/deadlock.md). A frame's window is 16 beats at most, and there are places for 64: what is known of the first frame does not wait for others.
pub const WAITS: &[(&str, &[&str])] = &[("s", &["m"])];

/// Kinds of events, log2 of them, and the causes of all but the first.
const EVENTS: usize = 8;
const LG_EVENTS: usize = 3;
const EVENT_BITS: u64 = LG_EVENTS as u64;
const DEEP: u64 = SwitchCause::Deep as u64;
const SPOOF_MAC: u64 = SwitchCause::SpoofMac as u64;
const SPOOF_IP: u64 = SwitchCause::SpoofIp as u64;
const SPOOF_ARP: u64 = SwitchCause::SpoofArp as u64;
const TAG_DENIED: u64 = SwitchCause::TagDenied as u64;
const ROCE_DENIED: u64 = SwitchCause::RoceDenied as u64;
const UNDERLAY_DENIED: u64 = SwitchCause::UnderlayDenied as u64;
/// Their places in [`COUNTS`].
const AS_DEEP: u64 = 1;
const AS_SPOOF_MAC: u64 = 2;
const AS_SPOOF_IP: u64 = 3;
const AS_SPOOF_ARP: u64 = 4;
const AS_TAG_DENIED: u64 = 5;
const AS_ROCE_DENIED: u64 = 6;
const AS_UNDERLAY_DENIED: u64 = 7;
const FIRST_FUNCTION: u64 = FUNCTION_PORTS as u64;

/// log2 of the places for beats; and for fates, which are never more than beats.
const LG_BEATS: usize = 6;
const LG_FATES: usize = 7;
/// Bits of the lower part of a counter, and of the upper one.
const PART: usize = 32;
/// Cycles from the window to what stands against the frame, and to its key.
const KNOWN: usize = verify::FROM_WINDOW as usize;
const KEYED: usize = (verify::FROM_WINDOW - verify::LATENCY) as usize;

/// Frames of `NF` functions, four ways of 2^`LB` addresses that they may send from, 2^`LC` counters.
#[derive(LogicBlock, BlockDefault)]
#[demand(COUNTS.len() == EVENTS && 1 << LG_EVENTS == EVENTS && 1 << LC == NF * EVENTS)]
pub struct Guard<const W: usize, const K: usize, const NF: usize, const LB: usize, const LC: usize> {
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
    /// What each function may send, for others that have to know.
    pub each: [Signal<Out, SenderCtx>; NF],
    /// The tunnels, which end at addresses that are nobody's.
    pub ctx: [Signal<In, TunnelCtx>; NF],
    /// A command of `ferric_abi::switch::table`, one a cycle, at any time.
    pub write: Signal<In, Bit>,
    pub command: Signal<In, FlowCommand>,
    /// In the next cycle: it named nothing that there is here.
    pub refused: Signal<Out, Bit>,
    /// As `matching` has it: what a command reads is under way, and what it has read; zero if that was not here.
    pub reading: Signal<Out, Bit>,
    pub answer: Signal<Out, Bits<ANSWER>>,
    /// What a function may send is taken away, if it is verified; and what all may.
    pub close: Signal<In, Bit>,
    pub closed: Signal<In, Bits<12>>,
    pub forget: Signal<In, Bit>,
    /// A counter, by function and place in [`COUNTS`], and what it is at a cycle later.
    pub asked: Signal<In, Bits<LC>>,
    pub count: Signal<Out, Bits<64>>,
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
    owners: Delay<Bits<6>>,
    recall: Recall<LB>,
    tally: Tally<LC, PART, PART>,
    cause: Signal<Local, Bits<6>>,
    denied: Signal<Local, Bit>,
    event1: DFF<Bits<LG_EVENTS>>,
    event_valid: DFF<Bit>,
    owner: DFF<Bits<6>>,
    fate: DFF<Bit>,
    fate_valid: DFF<Bit>,
    drop: Signal<Local, Bit>,
    leaves: Signal<Local, Bit>,
    // While nobody is verified a frame's fate is known when it begins
    bypass: Bypass,
    nobody: DFF<Bit>,
    early: DFF<Bit>,
}

#[kernel]
impl<const W: usize, const K: usize, const NF: usize, const LB: usize, const LC: usize> Logic for Guard<W, K, NF, LB, LC> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, sender1, event1, event_valid, owner, fate, fate_valid, nobody, early);
        clock!(self, clock, recall, sight, whose, senders, words, verify, beats, fates, sender, owners, tally, bypass);
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
        self.sight.valid.next = self.taken.val() & !self.bypass.past.val();
        self.nobody.d.next = !self.senders.any.val();
        self.bypass.reset.next = self.reset.val();
        self.bypass.may.next = self.nobody.q.val();
        self.bypass.taken.next = self.taken.val();
        self.bypass.last.next = self.s.last.val();
        self.bypass.busy.next = self.beats.m.valid.val();
        self.early.d.next = self.taken.val() & self.bypass.past.val() & self.bypass.first.val();
        self.whose.begins.next = self.begins.val();
        self.whose.sender.next = self.begins_function.val();
        self.whose.whole.next = self.sight.window_valid.val() | self.early.q.val();
        // Who it is, and what is in it
        self.senders.asked.next = self.recall.asked.val();
        if self.sight.window_valid.val() {
            self.senders.asked.next = self.whose.first.val();
        }
        self.sender1.d.next = self.senders.sender.val();
        self.sender.x.next = self.sender1.q.val();
        self.owners.x.next = self.whose.first.val();
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
            self.each[i].next = self.senders.each[i].val();
        }
        // What becomes of it
        self.denied.next = self.verify.on.val() & self.verify.cause.val().any();
        self.m_begins.next = (self.verify.judged.val() & !self.denied.val()) | self.early.q.val();
        self.m_function.next = bit_cast::<12, 6>(self.owners.y.val());
        if self.early.q.val() {
            self.m_function.next = bit_cast::<12, 6>(self.whose.first.val());
        }
        self.fate.d.next = self.denied.val();
        self.fate_valid.d.next = self.verify.judged.val();
        // Of a frame that goes by: on.
        self.fates.s.data.next = self.fate.q.val() & self.fate_valid.q.val();
        self.fates.s.valid.next = self.fate_valid.q.val() | self.early.q.val();
        // What counts
        self.cause.next = self.verify.cause.val();
        self.event1.d.next = bits::<LG_EVENTS>(0);
        if self.cause.val() == DEEP {
            self.event1.d.next = bits::<LG_EVENTS>(AS_DEEP);
        } else if self.cause.val() == SPOOF_MAC {
            self.event1.d.next = bits::<LG_EVENTS>(AS_SPOOF_MAC);
        } else if self.cause.val() == SPOOF_IP {
            self.event1.d.next = bits::<LG_EVENTS>(AS_SPOOF_IP);
        } else if self.cause.val() == SPOOF_ARP {
            self.event1.d.next = bits::<LG_EVENTS>(AS_SPOOF_ARP);
        } else if self.cause.val() == TAG_DENIED {
            self.event1.d.next = bits::<LG_EVENTS>(AS_TAG_DENIED);
        } else if self.cause.val() == ROCE_DENIED {
            self.event1.d.next = bits::<LG_EVENTS>(AS_ROCE_DENIED);
        } else if self.cause.val() == UNDERLAY_DENIED {
            self.event1.d.next = bits::<LG_EVENTS>(AS_UNDERLAY_DENIED);
        }
        self.event_valid.d.next = self.verify.judged.val() & self.verify.on.val();
        self.owner.d.next = self.owners.y.val();
        self.tally.valid.next = self.event_valid.q.val();
        self.tally.which.next = (bit_cast::<LC, 6>(self.owner.q.val()) << EVENT_BITS) | bit_cast::<LC, LG_EVENTS>(self.event1.q.val());
        self.tally.asked.next = self.asked.val();
        self.count.next = self.tally.count.val();
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
        self.recall.reset.next = self.reset.val();
        self.recall.sender.next = self.senders.reads_sender.val();
        self.recall.bind.next = self.senders.reads_bind.val();
        self.recall.foreign.next = self.senders.reads_foreign.val();
        self.recall.who.next = self.senders.who.val();
        self.recall.way.next = self.senders.way.val();
        self.recall.line.next = self.senders.line.val();
        self.recall.sender_free.next = !self.sight.window_valid.val();
        self.recall.sender_line.next = self.senders.sender.val();
        self.verify.read.next = self.recall.read.val();
        self.verify.read_way.next = self.recall.read_way.val();
        self.verify.read_line.next = self.recall.read_line.val();
        self.recall.read_done.next = self.verify.read_done.val();
        self.recall.read_data.next = self.verify.read_data.val();
        self.reading.next = self.recall.busy.val();
        self.answer.next = self.recall.answer.val();
        self.senders.close.next = self.close.val();
        self.senders.closed.next = self.closed.val();
        self.senders.forget.next = self.forget.val();
        self.verify.write.next = self.senders.to_bind.val();
        self.verify.write_way.next = self.senders.way.val();
        self.verify.write_line.next = self.senders.line.val();
        self.verify.write_data.next = self.senders.bound.val();
        if self.reset.val() {
            self.fate_valid.d.next = false;
            self.event_valid.d.next = false;
            self.early.d.next = false;
        }
    }
}
