//! The packet delivery engine: headers of frames on one side, messages and packets for semantics on the other. See README.md.

mod share;
#[cfg(test)]
mod tests;
pub mod types;

use super::head::builder::Builder;
use super::head::parser::Parser;
use super::head::types::{Carried, Note, PdsFields, STAT_BITS as HEAD_STATS};
use super::pdc::types::{PdcAsk, PdcTold, PLACES, STAT_BITS as PDC_STATS};
use super::pdc::Pdc;
use super::receive::Receive;
use super::transmit::Transmit;
use super::types::{LINE, PAYLOAD, SLOT};
use super::waiting::Waiting;
use crate::bus::{AxisSink, AxisSrc, MsgSink, MsgSrc};
use crate::msg::{CtlReq, CtlResp};
use crate::stream::{Fence, MsgArb, MsgFork};
use ferric_abi::uet::codes::{ControlType, PdsType};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;
use share::Share;
use types::{Delivered, Finished, FrameNote, Gone, Message, MessageEnd, Outgoing};

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s", &["m", "m_note", "m_deliver", "m_end"]),
    ("note", &["m", "m_note", "m_deliver", "m_end"]),
    ("s_post", &["m", "m_note", "m_deliver", "m_end"]), // the manager is shared
    ("s_done", &["m", "m_note", "m_deliver", "m_end"]),
    // A frame goes to the builder and its note to the port at once, the next one when both are taken: a note is offered before its headers are, which the builder makes by itself.
    ("m", &[]),
    ("m_note", &[]),
    ("s_ending[*]", &["m", "m_note", "m_deliver", "m_end"]),
    ("judged", &["m", "m_note", "m_deliver", "m_end"]),
    ("settled", &["m", "m_note"]),
    ("s_ctl", &["m_ctl"]),
    ("m_ctl", &[]), // between two orders of the halves, which wait for their answers
];

/// Bits of a count of frames between the halves and the port.
const LEAVING: usize = 4;

/// `L`: log2(K) + 1. `2^LP` - 1 PDCs with `2^LH` chains in their directory, windows of `2^LW` PSNs, `2^LM` - 1 messages, `2^LK` - 1 places for responses; `LR` = `LP` + `LW` - 6, `LA` = `LP` + `LW`, `LO` = `LP` + 6, `LT` = `LP` + 2.
#[derive(LogicBlock, BlockDefault)]
pub struct Pds<
    const W: usize,
    const K: usize,
    const L: usize,
    const LP: usize,
    const LH: usize,
    const LW: usize,
    const LR: usize,
    const LA: usize,
    const LO: usize,
    const LM: usize,
    const LK: usize,
    const LT: usize,
> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets all. Places are free some 12 cycles each behind it.
    pub reset: Signal<In, Bit>,
    /// Time in ticks; all times below are in them.
    pub now: Signal<In, Bits<32>>,
    /// UDP destination port of Ultra Ethernet; a CRC-32C follows each packet that goes out.
    pub port: Signal<In, Bits<16>>,
    pub crc: Signal<In, Bit>,
    /// Registers of the halves, see `transmit` and `receive`.
    pub rto: Signal<In, Bits<32>>,
    pub nack_wait: Signal<In, Bits<32>>,
    pub idle: Signal<In, Bits<32>>,
    pub safety: Signal<In, Bits<32>>,
    pub reap: Signal<In, Bits<32>>,
    pub clear_wait: Signal<In, Bits<32>>,
    pub tail_loss: Signal<In, Bits<32>>,
    pub stall_least: Signal<In, Bits<32>>,
    pub rto_max: Signal<In, Bits<4>>,
    pub nack_max: Signal<In, Bits<5>>,
    pub default_range: Signal<In, Bits<16>>,
    pub ask_bytes: Signal<In, Bits<20>>,
    pub mtu: Signal<In, Bits<PAYLOAD>>,
    pub path_order: Signal<In, Bit>,
    pub last_slot: Signal<In, Bits<SLOT>>,
    pub penalties: Signal<In, Bit>,
    pub table_en: Signal<In, Bit>,
    pub table_slot: Signal<In, Bits<SLOT>>,
    pub table_entropy: Signal<In, Bits<16>>,
    pub ack_bytes: Signal<In, Bits<20>>,
    pub ack_least: Signal<In, Bits<14>>,
    pub ack_wait: Signal<In, Bits<32>>,
    pub window: Signal<In, Bits<16>>,
    pub mpr: Signal<In, Bits<8>>,
    /// Registers of the PDC manager.
    pub share: Signal<In, Bits<PLACES>>,
    pub peer_share: Signal<In, Bits<PLACES>>,
    pub peer_initiators: Signal<In, Bits<PLACES>>,
    pub places: Signal<In, Bits<PLACES>>,
    pub low: Signal<In, Bits<PLACES>>,
    pub linger_cut: Signal<In, Bit>,
    pub seed: Signal<In, Bits<32>>,
    /// Packets that have come, from behind the header of IP, and a note for each.
    pub s: AxisSink<W, K>,
    pub note: MsgSink<Note>,
    /// Headers of packets that go out, from behind the header of IP, and a note for each: its keeper adds what is in front and the payload behind.
    pub m: AxisSrc<W, K>,
    pub m_note: MsgSrc<FrameNote>,
    /// Messages to be sent, and the end of each.
    pub s_post: MsgSink<Message>,
    pub m_end: MsgSrc<MessageEnd>,
    /// Packets for semantics, in the order of their frames, and an answer to each, in any order.
    pub m_deliver: MsgSrc<Delivered>,
    pub s_done: MsgSink<Finished>,
    /// Frames that are done with, each in a pulse: the parser has not taken the packet; its headers were all that was wanted of it, or it is not delivered. Of each frame that has come one of these tells, or it is delivered.
    pub bad: Signal<Out, Bit>,
    pub bad_handle: Signal<Out, Bits<16>>,
    pub gone: Signal<Out, Bit>,
    pub gone_handle: Signal<Out, Bits<16>>,
    /// A pulse for each packet that has come and is not `bad`: its headers have done all that they do.
    pub judged: Signal<Out, Bit>,
    /// Peers that have gone. While `parted` says so the messages to them fail, and the PDCs of the places in `s_ending` end if they are theirs: of the half that sends, of the half that receives. When the
    /// next place is taken all that follows from the one before it is told.
    pub parted: Signal<In, Gone>,
    pub s_ending: [MsgSink<Bits<LINE>>; 2],
    /// A pulse, and one back when all frames that had been made by then have left.
    pub settle: Signal<In, Bit>,
    pub settled: Signal<Out, Bit>,
    /// Pulses of the parser and of the manager, see their `STATS`.
    pub head_stat: Signal<Out, Bits<HEAD_STATS>>,
    pub pdc_stat: Signal<Out, Bits<PDC_STATS>>,
    /// Places in use: of initiators, with those that rest; of targets, with those that linger.
    pub used: Signal<Out, Bits<PLACES>>,
    /// Lines of the manager.
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    parser: Parser<W, K, L>,
    builder: Builder<W, K, L>,
    pdc: Pdc<LP, LH>,
    halves: Share,
    waiting: Waiting<LM>,
    transmit: Transmit<LP, LW, LR, LA, LO, LM, LT>,
    receive: Receive<LP, LW, LR, LK, LT>,
    frames: MsgArb<Outgoing, 2>,
    copies: MsgFork<Outgoing>,
    answers: Signal<Local, Bit>,
    requests: Signal<Local, Bit>,
    wish: Signal<Local, Bit>,
    front: Signal<Local, PdsFields>,
    kind: Signal<Local, Bits<5>>,
    /// The request at hand has been delivered; a frame is judged.
    given: DFF<Bit>,
    judges: Signal<Local, Bit>,
    leaving: Fence<LEAVING>,
    carried: Signal<Local, Carried>,
    over: DFF<Bit>,
    over_handle: DFF<Bits<16>>,
}

#[kernel]
impl<
        const W: usize,
        const K: usize,
        const L: usize,
        const LP: usize,
        const LH: usize,
        const LW: usize,
        const LR: usize,
        const LA: usize,
        const LO: usize,
        const LM: usize,
        const LK: usize,
        const LT: usize,
    > Logic for Pds<W, K, L, LP, LH, LW, LR, LA, LO, LM, LK, LT>
{
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, given, over, over_handle);
        clock!(self, clock, parser, builder, pdc, halves, waiting, transmit, receive, frames, copies, leaving);
        self.waiting.reset.next = self.reset.val();
        self.leaving.reset.next = self.reset.val();
        self.parser.reset.next = self.reset.val();
        self.builder.reset.next = self.reset.val();
        self.pdc.reset.next = self.reset.val();
        self.halves.reset.next = self.reset.val();
        self.transmit.reset.next = self.reset.val();
        self.receive.reset.next = self.reset.val();
        self.frames.reset.next = self.reset.val();
        self.copies.reset.next = self.reset.val();
        self.parser.port.next = self.port.val();
        self.builder.port.next = self.port.val();
        self.builder.crc.next = self.crc.val();
        self.transmit.now.next = self.now.val();
        self.transmit.rto.next = self.rto.val();
        self.transmit.nack_wait.next = self.nack_wait.val();
        self.transmit.idle.next = self.idle.val();
        self.transmit.safety.next = self.safety.val();
        self.transmit.tail_loss.next = self.tail_loss.val();
        self.transmit.stall_least.next = self.stall_least.val();
        self.transmit.rto_max.next = self.rto_max.val();
        self.transmit.nack_max.next = self.nack_max.val();
        self.transmit.default_range.next = self.default_range.val();
        self.transmit.ack_bytes.next = self.ask_bytes.val();
        self.transmit.mtu.next = self.mtu.val();
        self.transmit.path_order.next = self.path_order.val();
        self.transmit.last_slot.next = self.last_slot.val();
        self.transmit.penalties.next = self.penalties.val();
        self.transmit.table_en.next = self.table_en.val();
        self.transmit.table_slot.next = self.table_slot.val();
        self.transmit.table_entropy.next = self.table_entropy.val();
        self.receive.now.next = self.now.val();
        self.receive.reap.next = self.reap.val();
        self.receive.safety.next = self.safety.val();
        self.receive.clear_wait.next = self.clear_wait.val();
        self.receive.ack_bytes.next = self.ack_bytes.val();
        self.receive.ack_least.next = self.ack_least.val();
        self.receive.ack_wait.next = self.ack_wait.val();
        self.receive.window.next = self.window.val();
        self.receive.mpr.next = self.mpr.val();
        self.pdc.window.next = self.window.val();
        self.pdc.share.next = self.share.val();
        self.pdc.peer_share.next = self.peer_share.val();
        self.pdc.peer_initiators.next = self.peer_initiators.val();
        self.pdc.places.next = self.places.val();
        self.pdc.low.next = self.low.val();
        self.pdc.linger_cut.next = self.linger_cut.val();
        self.pdc.seed.next = self.seed.val();
        self.head_stat.next = self.parser.stat.val();
        self.pdc_stat.next = self.pdc.stat.val();
        self.used.next = self.pdc.used.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.pdc.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.pdc.m_ctl);
        AxisSink::<W, K>::link(&mut self.s, &mut self.parser.s);
        MsgSink::<Note>::link(&mut self.note, &mut self.parser.note);
        AxisSrc::<W, K>::link(&mut self.m, &mut self.builder.m);
        // Messages that find no PDC let others pass.
        self.waiting.now.next = self.now.val();
        self.waiting.gone.next = self.parted.val();
        self.waiting.later.next = self.transmit.later.val();
        self.waiting.room.next = self.transmit.room.val();
        MsgSink::<Message>::link(&mut self.s_post, &mut self.waiting.s);
        MsgSrc::<Message>::join(&mut self.waiting.m, &mut self.transmit.s_post);
        MsgSrc::<MessageEnd>::link(&mut self.m_end, &mut self.transmit.m_end);
        MsgSrc::<Delivered>::link(&mut self.m_deliver, &mut self.receive.m_deliver);
        MsgSink::<Finished>::link(&mut self.s_done, &mut self.receive.s_done);
        // What has come: answers and what targets ask of their initiators to the transmit half, requests and other control packets to the receive half. RUDI and UUD are nobody's.
        self.front.next = self.parser.m.data.val().pds;
        self.kind.next = self.front.val().kind;
        self.wish.next = (self.kind.val() == PdsType::Control as u64) & (self.front.val().follows == ControlType::ClearRequest as u64);
        self.answers.next = self.wish.val() | (self.kind.val() == PdsType::Ack as u64) | (self.kind.val() == PdsType::AckCc as u64) | (self.kind.val() == PdsType::Nack as u64);
        self.requests.next = (self.kind.val() == PdsType::RudReq as u64)
            | (self.kind.val() == PdsType::RodReq as u64)
            | (self.kind.val() == PdsType::RudCcReq as u64)
            | (self.kind.val() == PdsType::RodCcReq as u64)
            | ((self.kind.val() == PdsType::Control as u64) & !self.wish.val());
        self.transmit.s_head.data.next = self.parser.m.data.val();
        self.transmit.s_head.valid.next = self.parser.m.valid.val() & self.answers.val();
        self.receive.s_head.data.next = self.parser.m.data.val();
        self.receive.s_head.valid.next = self.parser.m.valid.val() & self.requests.val();
        self.parser.m.ready.next = true;
        if self.answers.val() {
            self.parser.m.ready.next = self.transmit.s_head.ready.val();
        } else if self.requests.val() {
            self.parser.m.ready.next = self.receive.s_head.ready.val();
        }
        // What becomes of frames. A request is delivered in an earlier cycle than it is taken.
        self.judges.next = self.parser.m.valid.val() & self.parser.m.ready.val();
        self.judged.next = self.judges.val();
        if self.m_deliver.valid.val() & self.m_deliver.ready.val() {
            self.given.d.next = true;
        }
        if self.judges.val() | self.reset.val() {
            self.given.d.next = false;
        }
        self.over.d.next = self.judges.val() & !self.given.q.val() & !self.reset.val();
        self.carried.next = self.parser.m.data.val().carried;
        self.over_handle.d.next = self.carried.val().handle;
        self.bad.next = self.parser.bad.val();
        self.bad_handle.next = self.parser.bad_handle.val();
        self.gone.next = self.over.q.val();
        self.gone_handle.next = self.over_handle.q.val();
        // The manager.
        MsgSrc::<PdcAsk>::join(&mut self.transmit.m_pdc, &mut self.halves.s[0]);
        MsgSrc::<PdcAsk>::join(&mut self.receive.m_pdc, &mut self.halves.s[1]);
        MsgSrc::<PdcTold>::join(&mut self.halves.m_told[0], &mut self.transmit.s_pdc);
        MsgSrc::<PdcTold>::join(&mut self.halves.m_told[1], &mut self.receive.s_pdc);
        MsgSrc::<PdcAsk>::join(&mut self.halves.m, &mut self.pdc.s);
        MsgSrc::<PdcTold>::join(&mut self.pdc.m, &mut self.halves.s_told);
        // What goes out.
        MsgSrc::<Outgoing>::join(&mut self.transmit.m_out, &mut self.frames.s[0]);
        MsgSrc::<Outgoing>::join(&mut self.receive.m_out, &mut self.frames.s[1]);
        MsgSrc::<Outgoing>::join(&mut self.frames.m, &mut self.copies.s);
        self.builder.s.data.next = self.copies.m0.data.val().head;
        self.builder.s.valid.next = self.copies.m0.valid.val();
        self.copies.m0.ready.next = self.builder.s.ready.val();
        self.m_note.data.next = self.copies.m1.data.val().note;
        self.m_note.valid.next = self.copies.m1.valid.val();
        self.copies.m1.ready.next = self.m_note.ready.val();
        // Who has gone. A frame of one half is taken at a time.
        self.transmit.gone.next = self.parted.val();
        self.receive.gone.next = self.parted.val();
        // Messages to them that wait end first.
        self.transmit.s_ending.data.next = self.s_ending[0].data.val();
        self.transmit.s_ending.valid.next = self.s_ending[0].valid.val() & self.waiting.swept.val();
        self.s_ending[0].ready.next = self.transmit.s_ending.ready.val() & self.waiting.swept.val();
        MsgSink::<Bits<LINE>>::link(&mut self.s_ending[1], &mut self.receive.s_ending);
        self.leaving.came.next = (self.transmit.m_out.valid.val() & self.frames.s[0].ready.val()) | (self.receive.m_out.valid.val() & self.frames.s[1].ready.val());
        self.leaving.went.next = self.m_note.valid.val() & self.m_note.ready.val();
        self.leaving.start.next = self.settle.val();
        self.settled.next = self.leaving.passed.val();
    }
}
