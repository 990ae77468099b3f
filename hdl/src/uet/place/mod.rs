//! Payload that has come: checked against the key that it names, and moved to host memory. See README.md.

pub mod spent;
#[cfg(test)]
mod tests;

use super::cut::Cut;
use super::head::types::SesFields;
use super::intake::SIX;
use super::pds::types::{Delivered, Finished};
use super::types::PAYLOAD;
use crate::bus::{MsgSink, MsgSrc};
use crate::codes::{access, key_status};
use crate::msg::{MoveOp, MrReq, MrResp, WrDone};
use crate::prim::sum::Sum;
use crate::records::PathCtx;
use crate::stream::{fence::Fence, MsgFifo, MsgSlice};
use ferric_abi::uet::codes::{ReturnCode, SesOpcode};
use ferric_abi::wire::{Eth, Ipv4, Ipv6};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s", &[]), // there is a place for each packet that semantics may have
    ("s_key", &[]),
    ("s_written", &[]), // and for each of its writes
    ("m_key", &["s_key", "m_move"]),
    ("m_move", &[]), // offered before any of its packet's writes is awaited
    ("passed", &["fence", "m_key", "s_key", "m_move", "s_written", "m"]),
];

/// Names of the bits of `stat`: packets that are in host memory, and those that were not placed.
pub const STATS: &[&str] = &["uet_placed", "uet_refused"];

/// Bytes in front of the packet.
const BEHIND4: u64 = (Eth::BYTES + Ipv4::BYTES) as u64;
const BEHIND6: u64 = (Eth::BYTES + Ipv6::BYTES) as u64;
const OK: u64 = ReturnCode::Ok as u64;
/// Bits of a key that the key unit knows; the others are zero.
const KEY: usize = 32;
/// Bits of a count of packets that are begun and not answered.
const INSIDE: usize = 8;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// The peer is read.
    Read,
    Judge,
    /// Piece by piece.
    Ask,
    Asked,
    Move,
    /// Nothing more of the frame is wanted.
    Free,
    Tell,
}

/// A packet whose writes are awaited.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Waiting {
    pub answer: Finished,
    pub writes: Bits<2>,
}

/// `LE`: log2 of the peers. `LK`: of the packets that semantics may have, `LD` = `LK` + 1: of their writes.
#[derive(LogicBlock, BlockDefault)]
#[demand(LD == LK + 1 && LK + 1 < INSIDE)]
pub struct Place<const LE: usize, const LK: usize, const LD: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets all packets.
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<Delivered>,
    /// An answer to each, in their order: once its bytes are in host memory.
    pub m: MsgSrc<Finished>,
    /// A line of `peers`, one cycle later.
    pub line: Signal<Out, Bits<LE>>,
    pub path: Signal<In, PathCtx>,
    pub m_key: MsgSrc<MrReq>,
    pub s_key: MsgSink<MrResp>,
    pub m_move: MsgSrc<MoveOp>,
    /// Of each write, in their order.
    pub s_written: MsgSink<WrDone>,
    /// A pulse, and one back when all packets that had been begun by then are in host memory, or will not be.
    pub fence: Signal<In, Bit>,
    pub passed: Signal<Out, Bit>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<2>>,
    packets: MsgFifo<Delivered, LK>,
    keys: MsgSlice<MrResp>,
    waiting: MsgFifo<Waiting, LK>,
    written: MsgFifo<WrDone, LD>,
    state: DFF<State>,
    packet: DFF<Delivered>,
    peer: DFF<PathCtx>,
    /// Where the packet's bytes go: a sum of its own, with nothing chosen behind it.
    start_at: DFF<Bits<64>>,
    va: DFF<Bits<64>>,
    off: DFF<Bits<14>>,
    left: DFF<Bits<PAYLOAD>>,
    iova: DFF<Bits<64>>,
    code: DFF<Bits<8>>,
    writes: DFF<Bits<2>>,
    // The oldest packet that waits: writes that have been answered, and whether one has failed
    seen: DFF<Bits<2>>,
    failed: DFF<Bit>,
    placed: DFF<Bit>,
    refused: DFF<Bit>,
    events: crate::prim::pack::Gather<2>,
    inside: Fence<INSIDE>,
    first: Sum<64>,
    // The piece at `va`, a cycle later: its key takes longer.
    piece: DFF<Bits<13>>,
    last: DFF<Bit>,
    after: DFF<Bits<64>>,
    remains: DFF<Bits<PAYLOAD>>,
    cut: Cut,
    ses: Signal<Local, SesFields>,
    answer: Signal<Local, Finished>,
    key: Signal<Local, Bits<64>>,
    handle: Signal<Local, Bits<16>>,
    upper: Signal<Local, Bits<32>>,
    whole: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
}

#[kernel]
impl<const LE: usize, const LK: usize, const LD: usize> Logic for Place<LE, LK, LD> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, packet, peer, start_at, piece, last, after, remains, va, off, left, iova, code, writes, seen, failed, placed, refused);
        clock!(self, clock, packets, keys, waiting, written, inside);
        self.inside.reset.next = self.reset.val();
        self.inside.came.next = self.s.valid.val() & self.s.ready.val();
        self.inside.start.next = self.fence.val();
        self.passed.next = self.inside.passed.val();
        self.packets.reset.next = self.reset.val();
        self.keys.reset.next = self.reset.val();
        self.waiting.reset.next = self.reset.val();
        self.written.reset.next = self.reset.val();
        MsgSink::<Delivered>::link(&mut self.s, &mut self.packets.s);
        MsgSink::<MrResp>::link(&mut self.s_key, &mut self.keys.s);
        MsgSink::<WrDone>::link(&mut self.s_written, &mut self.written.s);
        self.packets.m.ready.next = false;
        self.keys.m.ready.next = false;
        self.line.next = self.packet.q.val().peer.get_bits::<LE>(0);
        self.ses.next = self.packet.q.val().ses;
        self.key.next = self.ses.val().key;
        self.upper.next = self.key.val().get_bits::<32>(KEY);
        self.handle.next = self.packet.q.val().handle;
        self.first.a.next = self.ses.val().offset;
        self.first.b.next = bit_cast::<64, 32>(self.ses.val().message_offset);
        self.cut.va.next = self.va.q.val();
        self.cut.left.next = self.left.q.val();
        self.start_at.d.next = self.first.y.val();
        self.piece.d.next = self.cut.len.val();
        self.last.d.next = self.cut.last.val();
        self.after.d.next = self.cut.after.val();
        self.remains.d.next = self.cut.rest.val();
        self.m_key.valid.next = false;
        self.m_key.data.next.key = self.key.val().get_bits::<KEY>(0);
        self.m_key.data.next.pd = bit_cast::<24, 16>(self.peer.q.val().pkey);
        self.m_key.data.next.function = self.peer.q.val().function;
        self.m_key.data.next.qpn = bits::<24>(0);
        self.m_key.data.next.va = self.va.q.val();
        self.m_key.data.next.chk_len = bit_cast::<32, PAYLOAD>(self.left.q.val());
        self.m_key.data.next.access = bits::<6>(access::REMOTE_WRITE);
        self.m_key.data.next.whole = false;
        self.m_move.valid.next = false;
        self.m_move.data.next.handle = self.handle.val().get_bits::<12>(0);
        self.m_move.data.next.off = self.off.q.val();
        self.m_move.data.next.len = self.piece.q.val();
        self.m_move.data.next.iova = self.iova.q.val();
        self.m_move.data.next.function = self.peer.q.val().function;
        self.m_move.data.next.free = self.last.q.val();
        self.m_move.data.next.direct = false;
        self.m_move.data.next.data = bits::<64>(0);
        self.waiting.s.valid.next = false;
        self.waiting.s.data.next.writes = self.writes.q.val();
        self.answer.next.id = self.packet.q.val().id;
        self.answer.next.psn = self.packet.q.val().psn;
        self.answer.next.bytes = self.packet.q.val().bytes;
        self.answer.next.came = self.packet.q.val().came;
        self.answer.next.refused = false;
        self.answer.next.keep = false;
        self.answer.next.code = self.code.q.val();
        self.answer.next.message = self.ses.val().message;
        self.answer.next.length = bits::<32>(0);
        if self.code.q.val() == OK {
            self.answer.next.length = self.ses.val().request_length;
        }
        self.waiting.s.data.next.answer = self.answer.val();
        match self.state.q.val() {
            State::Idle => {
                self.packet.d.next = self.packets.m.data.val();
                self.packets.m.ready.next = true;
                if self.packets.m.valid.val() {
                    self.state.d.next = State::Read;
                }
            }
            // The memory sees the line in this state and has it in the next.
            State::Read => {
                self.off.d.next = bit_cast::<14, 8>(self.packet.q.val().pay_off) + BEHIND4;
                if self.handle.val().get_bit(SIX) {
                    self.off.d.next = bit_cast::<14, 8>(self.packet.q.val().pay_off) + BEHIND6;
                }
                self.left.d.next = self.packet.q.val().bytes;
                self.writes.d.next = bits::<2>(0);
                self.state.d.next = State::Judge;
            }
            State::Judge => {
                self.peer.d.next = self.path.val();
                self.va.d.next = self.start_at.q.val();
                self.code.d.next = bits::<8>(OK);
                self.state.d.next = State::Ask;
                if !self.left.q.val().any() {
                    self.state.d.next = State::Free;
                }
                if !(self.ses.val().opcode == SesOpcode::Write as u64) {
                    self.code.d.next = bits::<8>(ReturnCode::UnsupportedOp as u64);
                    self.state.d.next = State::Free;
                } else if self.upper.val().any() | !self.path.val().valid {
                    self.code.d.next = bits::<8>(ReturnCode::BadKey as u64);
                    self.state.d.next = State::Free;
                }
            }
            State::Ask => {
                self.m_key.valid.next = true;
                if self.m_key.ready.val() {
                    self.state.d.next = State::Asked;
                }
            }
            State::Asked => {
                self.keys.m.ready.next = true;
                self.iova.d.next = self.keys.m.data.val().iova;
                if self.keys.m.valid.val() {
                    self.state.d.next = State::Move;
                    if self.keys.m.data.val().status.any() {
                        self.state.d.next = State::Free;
                        self.code.d.next = bits::<8>(ReturnCode::BadKey as u64);
                    }
                    if (self.keys.m.data.val().status == key_status::BOUNDS) | (self.keys.m.data.val().status == key_status::PAGE) {
                        self.code.d.next = bits::<8>(ReturnCode::BadAddress as u64);
                    } else if self.keys.m.data.val().status == key_status::PERMISSION {
                        self.code.d.next = bits::<8>(ReturnCode::PermissionViolation as u64);
                    } else if self.keys.m.data.val().status == key_status::FETCH {
                        self.code.d.next = bits::<8>(ReturnCode::HostFailed as u64);
                    }
                }
            }
            State::Move => {
                self.m_move.valid.next = true;
                if self.m_move.ready.val() {
                    self.writes.d.next = self.writes.q.val() + 1;
                    self.va.d.next = self.after.q.val();
                    self.left.d.next = self.remains.q.val();
                    self.off.d.next = self.off.q.val() + bit_cast::<14, 13>(self.piece.q.val());
                    self.state.d.next = State::Ask;
                    if self.last.q.val() {
                        self.state.d.next = State::Tell;
                    }
                }
            }
            State::Free => {
                self.m_move.valid.next = true;
                self.m_move.data.next.len = bits::<13>(0);
                self.m_move.data.next.free = true;
                if self.m_move.ready.val() {
                    self.state.d.next = State::Tell;
                }
            }
            State::Tell => {
                self.waiting.s.valid.next = true;
                if self.waiting.s.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        // Answers, behind their writes.
        self.whole.next = self.seen.q.val() == self.waiting.m.data.val().writes;
        self.m.valid.next = self.waiting.m.valid.val() & self.whole.val();
        self.m.data.next = self.waiting.m.data.val().answer;
        if self.failed.q.val() {
            self.m.data.next.code = bits::<8>(ReturnCode::HostFailed as u64);
            self.m.data.next.length = bits::<32>(0);
        }
        self.ends.next = self.m.valid.val() & self.m.ready.val();
        self.waiting.m.ready.next = self.whole.val() & self.m.ready.val();
        self.written.m.ready.next = self.waiting.m.valid.val() & !self.whole.val();
        if self.written.m.valid.val() & self.written.m.ready.val() {
            self.seen.d.next = self.seen.q.val() + 1;
            self.failed.d.next = self.failed.q.val() | self.written.m.data.val().err;
        }
        if self.ends.val() | self.reset.val() {
            self.seen.d.next = bits::<2>(0);
            self.failed.d.next = false;
        }
        self.inside.went.next = self.ends.val();
        self.placed.d.next = self.ends.val() & (self.m.data.val().code == OK);
        self.refused.d.next = self.ends.val() & !(self.m.data.val().code == OK);
        self.events.x[0].next = self.placed.q.val();
        self.events.x[1].next = self.refused.q.val();
        self.stat.next = self.events.y.val();
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
