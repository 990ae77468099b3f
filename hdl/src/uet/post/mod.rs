//! WRITEs that the host posts, and their ends in a ring of its memory. See README.md.

#[cfg(test)]
mod tests;

use super::pdc::places::Places;
use super::pds::types::{Description, Message, MessageEnd, WHY};
use crate::bus::{MsgSink, MsgSrc};
use crate::context::line::CtlLine;
use crate::msg::{CtlReq, CtlResp, WqeDoorbell, WrDone, WrSmall};
use crate::prim::pack::{Cast, Gather};
use crate::prim::ram::Ram;
use crate::prim::sum::Sum;
use crate::records::{PathCtx, RingCtx, UetEnd, UetPost};
use crate::stream::{fence::Fence, MsgFifo, MsgSlice};
use ferric_abi::host;
use ferric_abi::uet::codes::SesOpcode;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_wqe", &[]),  // one too many is dropped
    ("s_end", &[]),  // there is a place for the end of each message
    ("s_done", &[]), // only counted
    ("s_ctl", &[]),  // one access at a time
    ("m_ctl", &[]),
    ("passed", &["fence", "m_wr", "s_done"]),
    ("flushed", &["m", "m_wr"]), // the end of a message that is turned away comes before it is taken
];

/// Names of the bits of `stat`: messages taken, ended well, ended otherwise; posts that were dropped because too many waited, and because they name no peer of the function or there is no ring; ends that the host did not take.
pub const STATS: &[&str] = &["uet_posts", "uet_ends", "uet_failed", "uet_posts_lost", "uet_posts_bad", "uet_ends_lost"];

/// log2 of the posts that may wait for a place.
const LG_WAITING: usize = 5;
/// Bytes of an entry, and their log2.
const ENTRY: u64 = host::UetEnd::BYTES as u64;
const LG_ENTRY: usize = host::UetEnd::BYTES.ilog2() as usize;
/// Bits of a ring's number of entries.
const INDEX: usize = 16;
/// Cycles from the ring's line to the address of the next entry.
const STEPS: usize = 3;
/// Bits of a count of ends that are being written.
const INSIDE: usize = 8;

/// Bits of a message's number, which stand above its place in its token: who waits to send for a message that has ended since does not send for the next in that place.
pub const NUMBER: usize = 16;
/// The same as a shift.
pub const NUMBER_AT: usize = 16;

/// Where a message's bytes are, for its packets, and what its host calls it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Sent {
    pub va: Bits<64>,
    pub key: Bits<32>,
    pub pd: Bits<16>,
    pub function: Bits<12>,
    pub tag: Bits<32>,
    /// It has not ended; the high half of its token.
    pub live: Bit,
    pub number: Bits<NUMBER>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// The peer of the oldest post is read.
    Read,
    Judge,
    Keep,
    Offer,
    /// The message that has ended is read.
    Look,
    Write,
}

/// `LE`: log2 of the peers. `2^LT` - 1 messages.
#[derive(LogicBlock, BlockDefault)]
#[demand(host::UetEnd::BYTES == 1 << LG_ENTRY && LT <= NUMBER_AT)]
pub struct Post<const LE: usize, const LT: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets all messages, and there is no ring.
    pub reset: Signal<In, Bit>,
    pub s_wqe: MsgSink<WqeDoorbell>,
    pub m: MsgSrc<Message>,
    pub s_end: MsgSink<MessageEnd>,
    pub m_wr: MsgSrc<WrSmall>,
    pub s_done: MsgSink<WrDone>,
    /// A line of `peers`, one cycle later.
    pub line: Signal<Out, Bits<LE>>,
    pub path: Signal<In, PathCtx>,
    /// A message, one cycle later.
    pub token: Signal<In, Bits<LT>>,
    pub sent: Signal<Out, Sent>,
    /// The ring, a `RingCtx`.
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// A pulse, and one back when all ends that had been begun by then are in host memory.
    pub fence: Signal<In, Bit>,
    pub passed: Signal<Out, Bit>,
    /// A pulse, and one back when all posts that had come by then are messages that have been taken, or nothing, and no end waits.
    pub flush: Signal<In, Bit>,
    pub flushed: Signal<Out, Bit>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<6>>,
    ctl: CtlLine<RingCtx, 1>,
    inside: Fence<INSIDE>,
    waiting: Fence<INSIDE>,
    /// A post that was bad has not been counted as gone; those that had come have.
    dropped: DFF<Bit>,
    emptied: DFF<Bit>,
    taken: Signal<Local, Bit>,
    ring: DFF<RingCtx>,
    /// Ends that were written.
    number: DFF<Bits<32>>,
    posts: MsgFifo<WqeDoorbell, LG_WAITING>,
    messages: MsgFifo<Message, LT>,
    ends: MsgFifo<MessageEnd, LT>,
    writes: MsgSlice<WrSmall>,
    tokens: Places<LT>,
    own: Ram<Sent, LT>,
    texts: Ram<Sent, LT>,
    state: DFF<State>,
    /// Number of the next message.
    serial: DFF<Bits<NUMBER>>,
    post: DFF<WqeDoorbell>,
    ended: DFF<MessageEnd>,
    route: DFF<PathCtx>,
    read: DFF<Bit>,
    flags: Gather<6>,
    events: DFF<Bits<6>>,
    as_post: Cast<Bits<512>, UetPost>,
    as_entry: Cast<UetEnd, Bits<512>>,
    p: Signal<Local, UetPost>,
    says: Signal<Local, Description>,
    entry: Signal<Local, Sent>,
    peer: Signal<Local, Bits<16>>,
    known: Signal<Local, Bit>,
    sendable: Signal<Local, Bit>,
    at: Signal<Local, Bits<LT>>,
    /// Where the next end goes, and its phase, step by step: the entries of the ring, the number in it, the address. It takes longer than that from one end to the next.
    mask: DFF<Bits<INDEX>>,
    index: DFF<Bits<INDEX>>,
    slot: DFF<Bits<64>>,
    place: Sum<64>,
    phase: DFF<Bit>,
    /// They are of a ring that has been changed since, as many cycles ago as there are steps.
    changed: DFF<Bits<STEPS>>,
    steady: Signal<Local, Bit>,
    more: Signal<Local, Bits<32>>,
    pass: Signal<Local, Bits<32>>,
    begins: Signal<Local, Bit>,
    change: Signal<Local, Bit>,
    fresh: Signal<Local, RingCtx>,
    #[init(Constant::new(RingCtx::default()))]
    none: Constant<RingCtx>,
    #[init(Constant::new(UetEnd::default()))]
    blank: Constant<UetEnd>,
    #[init(Constant::new((0xffffu64 & !((1u64 << LE) - 1)).to_bits()))]
    outside: Constant<Bits<16>>,
}

#[kernel]
impl<const LE: usize, const LT: usize> Logic for Post<LE, LT> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, dropped, emptied, ring, number, serial, state, post, ended, route, read, events, mask, index, slot, phase, changed);
        clock!(self, clock, inside, waiting, ctl, posts, messages, ends, writes, tokens, own, texts);
        self.ctl.reset.next = self.reset.val();
        self.posts.reset.next = self.reset.val();
        self.messages.reset.next = self.reset.val();
        self.ends.reset.next = self.reset.val();
        self.writes.reset.next = self.reset.val();
        self.tokens.reset.next = self.reset.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.ctl.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.ctl.m_ctl);
        MsgSrc::<Message>::link(&mut self.m, &mut self.messages.m);
        MsgSink::<MessageEnd>::link(&mut self.s_end, &mut self.ends.s);
        MsgSrc::<WrSmall>::link(&mut self.m_wr, &mut self.writes.m);
        self.s_done.ready.next = true;
        self.inside.reset.next = self.reset.val();
        self.inside.went.next = self.s_done.valid.val();
        self.inside.start.next = self.fence.val();
        self.passed.next = self.inside.passed.val();
        // The ring. A new one begins with its first entry.
        self.read.d.next = self.ctl.req.val() & !self.read.q.val();
        self.ctl.row_valid.next = self.read.q.val();
        self.ctl.row.next = self.ring.q.val();
        self.fresh.next = self.ctl.new_row.val();
        self.begins.next = false;
        self.change.next = self.ctl.done.val() & self.ctl.we.val();
        self.changed.d.next = (self.changed.q.val() << 1) | bit_cast::<STEPS, 1>(self.change.val().into());
        self.steady.next = !self.changed.q.val().any();
        if self.ctl.done.val() & self.ctl.we.val() & !self.ctl.addr.val().any() {
            self.ring.d.next = self.ctl.new_row.val();
            self.begins.next = self.fresh.val().valid & !self.ring.q.val().valid;
        }
        self.posts.s.data.next = self.s_wqe.data.val();
        self.posts.s.valid.next = self.s_wqe.valid.val();
        self.s_wqe.ready.next = true;
        self.as_post.x.next = self.post.q.val().data;
        self.p.next = self.as_post.y.val();
        self.peer.next = self.p.val().peer;
        self.line.next = self.peer.val().get_bits::<LE>(0);
        self.known.next = self.path.val().valid & (self.path.val().function == self.post.q.val().function) & !(self.peer.val() & self.outside.val()).any();
        self.sendable.next = self.known.val() & self.ring.q.val().valid;
        self.at.next = self.ended.q.val().token.get_bits::<LT>(0);
        self.tokens.take.next = false;
        self.tokens.give.next = false;
        self.tokens.given.next = self.at.val();
        self.own.read_addr.next = self.at.val();
        self.texts.read_addr.next = self.token.val();
        self.sent.next = self.texts.read_data.val();
        // What is kept of a message; of one that has ended, that nothing is sent for it any more.
        self.entry.next = self.own.read_data.val();
        self.entry.next.live = self.state.q.val() == State::Keep;
        if self.state.q.val() == State::Keep {
            self.entry.next.va = self.p.val().va;
            self.entry.next.key = self.p.val().lkey;
            self.entry.next.pd = self.route.q.val().pkey;
            self.entry.next.function = self.post.q.val().function;
            self.entry.next.tag = self.p.val().tag;
            self.entry.next.number = self.serial.q.val();
        }
        self.own.write_en.next = (self.state.q.val() == State::Keep) | (self.state.q.val() == State::Write);
        self.own.write_addr.next = self.at.val();
        if self.state.q.val() == State::Keep {
            self.own.write_addr.next = self.tokens.place.val();
        }
        self.own.write_data.next = self.entry.val();
        self.texts.write_en.next = self.own.write_en.val();
        self.texts.write_addr.next = self.own.write_addr.val();
        self.texts.write_data.next = self.own.write_data.val();
        self.messages.s.valid.next = false;
        self.messages.s.data.next.peer = self.p.val().peer;
        self.messages.s.data.next.rod = self.p.val().rod;
        self.messages.s.data.next.function = self.post.q.val().function.get_bits::<6>(0);
        self.messages.s.data.next.token = bit_cast::<32, LT>(self.tokens.place.val()) | (bit_cast::<32, NUMBER>(self.serial.q.val()) << NUMBER_AT);
        self.messages.s.data.next.length = self.p.val().length;
        self.says.next.opcode = bits::<6>(SesOpcode::Write as u64);
        self.says.next.dc = true;
        self.says.next.ie = false;
        self.says.next.rel = true;
        self.says.next.hd = false;
        self.says.next.generation = self.p.val().generation;
        self.says.next.job = self.p.val().job;
        self.says.next.pid = self.p.val().pid;
        self.says.next.index = self.p.val().index;
        self.says.next.offset = self.p.val().offset;
        self.says.next.initiator = self.p.val().initiator;
        self.says.next.key = self.p.val().rkey;
        self.says.next.header_data = bits::<64>(0);
        self.messages.s.data.next.says = self.says.val();
        self.posts.m.ready.next = false;
        self.ends.m.ready.next = false;
        // An entry of the ring.
        self.more.next = self.number.q.val() + 1;
        self.mask.d.next = !(!bits::<INDEX>(0) << bit_cast::<INDEX, 4>(self.ring.q.val().log_size));
        self.index.d.next = self.number.q.val().get_bits::<INDEX>(0) & self.mask.q.val();
        self.place.a.next = self.ring.q.val().base;
        self.place.b.next = bit_cast::<64, INDEX>(self.index.q.val()) << LG_ENTRY;
        self.slot.d.next = self.place.y.val();
        self.as_entry.x.next = self.blank.val();
        self.as_entry.x.next.tag = self.own.read_data.val().tag;
        self.as_entry.x.next.why = bit_cast::<8, WHY>(self.ended.q.val().why);
        self.as_entry.x.next.code = self.ended.q.val().code;
        self.as_entry.x.next.number = self.number.q.val().get_bits::<31>(0);
        self.pass.next = self.number.q.val() >> bit_cast::<32, 4>(self.ring.q.val().log_size);
        self.phase.d.next = !self.pass.val().get_bit(0);
        self.as_entry.x.next.phase = self.phase.q.val();
        self.writes.s.valid.next = false;
        self.writes.s.data.next.iova = self.slot.q.val();
        self.writes.s.data.next.function = self.ring.q.val().function;
        self.writes.s.data.next.len = bits::<7>(ENTRY);
        self.writes.s.data.next.tag = bits::<8>(0);
        self.writes.s.data.next.data = self.as_entry.y.val();
        for i in 0..6 {
            self.flags.x[i].next = false;
        }
        match self.state.q.val() {
            // Ends go first: they give places back.
            State::Idle => {
                self.ended.d.next = self.ends.m.data.val();
                self.post.d.next = self.posts.m.data.val();
                if self.ends.m.valid.val() {
                    self.ends.m.ready.next = true;
                    self.state.d.next = State::Look;
                } else if self.posts.m.valid.val() & self.tokens.any.val() {
                    self.posts.m.ready.next = true;
                    self.state.d.next = State::Read;
                }
            }
            // The memory sees the line in this state and has it in the next.
            State::Read => {
                self.state.d.next = State::Judge;
            }
            State::Judge => {
                self.route.d.next = self.path.val();
                self.state.d.next = State::Keep;
                if !self.sendable.val() {
                    self.flags.x[4].next = true;
                    self.state.d.next = State::Idle;
                }
            }
            State::Keep => {
                self.state.d.next = State::Offer;
            }
            State::Offer => {
                self.messages.s.valid.next = true;
                if self.messages.s.ready.val() {
                    self.tokens.take.next = true;
                    self.serial.d.next = self.serial.q.val() + 1;
                    self.flags.x[0].next = true;
                    self.state.d.next = State::Idle;
                }
            }
            State::Look => {
                self.state.d.next = State::Write;
            }
            State::Write => {
                self.writes.s.valid.next = self.ring.q.val().valid & self.steady.val();
                if (self.writes.s.ready.val() & self.steady.val()) | !self.ring.q.val().valid {
                    self.tokens.give.next = true;
                    self.flags.x[1].next = !self.ended.q.val().why.any() & (self.ended.q.val().code == ferric_abi::uet::codes::ReturnCode::Ok as u64);
                    self.flags.x[2].next = self.ended.q.val().why.any() | !(self.ended.q.val().code == ferric_abi::uet::codes::ReturnCode::Ok as u64);
                    self.number.d.next = self.more.val();
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.inside.came.next = self.writes.s.valid.val() & self.writes.s.ready.val();
        // What waits to be a message, or to be taken. One that was bad is counted in a cycle in which none is taken.
        self.taken.next = self.m.valid.val() & self.m.ready.val();
        self.waiting.reset.next = self.reset.val();
        self.waiting.came.next = self.s_wqe.valid.val() & self.posts.s.ready.val();
        self.waiting.went.next = self.taken.val() | self.dropped.q.val();
        self.waiting.start.next = self.flush.val();
        self.dropped.d.next = ((self.state.q.val() == State::Judge) & !self.sendable.val()) | (self.dropped.q.val() & self.taken.val());
        if self.waiting.passed.val() {
            self.emptied.d.next = true;
        }
        self.flushed.next = self.emptied.q.val() & (self.state.q.val() == State::Idle) & !self.ends.m.valid.val();
        if self.flushed.val() | self.reset.val() {
            self.emptied.d.next = false;
        }
        self.flags.x[3].next = self.s_wqe.valid.val() & !self.posts.s.ready.val();
        self.flags.x[5].next = self.s_done.valid.val() & self.s_done.data.val().err;
        self.events.d.next = self.flags.y.val();
        self.stat.next = self.events.q.val();
        if self.begins.val() | self.reset.val() {
            self.number.d.next = bits::<32>(0);
        }
        if self.reset.val() {
            self.ring.d.next = self.none.val();
            self.read.d.next = false;
            self.dropped.d.next = false;
            self.changed.d.next = bits::<STEPS>(0);
            self.state.d.next = State::Idle;
        }
    }
}
