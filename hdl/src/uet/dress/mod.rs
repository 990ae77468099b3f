//! Frames that go: addresses in front of the engine's headers, payload of host memory behind them. See README.md.

#[cfg(test)]
mod tests;

use super::cut::Cut;
use super::pds::types::FrameNote;
use super::post::{Sent, NUMBER, NUMBER_AT};
use super::types::PAYLOAD;
use crate::bus::{AxisSink, HdrSrc, MsgSink, MsgSrc};
use crate::codes::access;
use crate::msg::{HdrDone, InlineWrite, MrReq, MrResp, PayCmd, SlotGrant, SlotReq, SlotSeal};
use crate::net::header::layers::Layers;
use crate::net::header::sum::Ip4Sum;
use crate::net::header::TRANSPORT;
use crate::prim::pack::{BePack, Gather};
use crate::prim::sum::{PlusOne, Sum};
use crate::records::PathCtx;
use crate::stream::{fence::Fence, BeatsToWide, MsgSlice};
use ferric_abi::wire::protocol;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // One frame at a time.
    ("s", &["s_note", "m_slot", "s_slot", "m_done", "m_key", "s_key", "m_pay", "m_seal"]),
    ("s_note", &["s", "m_slot", "s_slot", "m_done", "m_key", "s_key", "m_pay", "m_seal"]),
    ("s_slot", &[]), // awaited since it was asked for
    ("s_key", &[]),
    ("m_seal", &["m_done", "m_key", "s_key", "m_pay"]), // of a slot that has been granted
    ("m_done", &[]),                                    // of a slot that has been granted: before its seal
    ("passed", &["fence", "s", "m_slot", "s_slot", "m_done", "m_key", "s_key", "m_pay", "m_seal"]),
];

/// Names of the bits of `stat`: frames with payload, without, and those that come to nothing because their peer has gone, their message has ended, or their memory may not be read.
pub const STATS: &[&str] = &["uet_sent", "uet_sent_control", "uet_unsent"];

/// Bytes of the header RAM, and those of the packet's own headers that there is room for in it behind IPv4.
pub const HEADER: usize = 128;
const HEADER_BITS: usize = 8 * HEADER;
const OWN: usize = HEADER - TRANSPORT;
const OWN_BITS: usize = 8 * OWN;
/// The congestion bits of IP's class: of data, ECT(0).
const ECT_0: u64 = 2;
const NOT_ECN: u64 = 0xfc;
/// Bits of the lower half of an address, with its carry.
const HALF: usize = 32;
const LOW: usize = HALF + 1;
/// Cycles until the sum of IPv4's header is right.
const SUMMED: u64 = 2;
/// Bits of a count of frames at hand.
const INSIDE: usize = 2;

/// Own bytes to where they are in an untagged frame of IPv4.
fn behind() -> Vec<usize> {
    (8 * TRANSPORT..HEADER_BITS).collect()
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// Peer and message are read.
    Read,
    Load,
    /// IPv4's checksum is added up.
    Sum,
    Ask,
    Grant,
    /// The header, row by row.
    Rows,
    Done,
    /// Payload, piece by piece.
    Key,
    Keyed,
    Fetch,
    Seal,
}

/// `L`: log2(K) + 1. `LE`: log2 of the peers, `LT`: of the messages.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K <= HEADER)]
pub struct Dress<const W: usize, const K: usize, const L: usize, const LE: usize, const LT: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets the frame at hand.
    pub reset: Signal<In, Bit>,
    /// Headers from UDP on, and what stands beside each.
    pub s: AxisSink<W, K>,
    pub s_note: MsgSink<FrameNote>,
    /// A line of `peers`, a message of `post`: one cycle later.
    pub line: Signal<Out, Bits<LE>>,
    pub path: Signal<In, PathCtx>,
    pub token: Signal<Out, Bits<LT>>,
    pub sent: Signal<In, Sent>,
    pub m_slot: MsgSrc<SlotReq>,
    pub s_slot: MsgSink<SlotGrant>,
    /// Never used: payload is fetched.
    pub m_inline: MsgSrc<InlineWrite>,
    pub m_row: HdrSrc<W>,
    pub m_done: MsgSrc<HdrDone>,
    pub m_pay: MsgSrc<PayCmd>,
    pub m_seal: MsgSrc<SlotSeal>,
    pub m_key: MsgSrc<MrReq>,
    pub s_key: MsgSink<MrResp>,
    /// A pulse, and one back when the frame that was at hand by then has all its reads ordered.
    pub fence: Signal<In, Bit>,
    pub passed: Signal<Out, Bit>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<3>>,
    wide: BeatsToWide<OWN_BITS, W, K, L>,
    notes: MsgSlice<FrameNote>,
    grants: MsgSlice<SlotGrant>,
    keys: MsgSlice<MrResp>,
    state: DFF<State>,
    note: DFF<FrameNote>,
    own: DFF<Bits<OWN_BITS>>,
    own_len: DFF<Bits<8>>,
    route: DFF<PathCtx>,
    source: DFF<Sent>,
    /// Its message has ended since.
    stale: DFF<Bit>,
    count: DFF<Bits<2>>,
    slot: DFF<SlotGrant>,
    rows: DFF<Bits<HEADER_BITS>>,
    rest: DFF<Bits<8>>,
    row: DFF<Bits<5>>,
    /// What `length` was a cycle ago.
    behind_ip: DFF<Bits<16>>,
    len: DFF<Bits<8>>,
    /// Where the packet's bytes begin: the low half of a sum, and a cycle later all of it.
    low: DFF<Bits<LOW>>,
    start_at: DFF<Bits<64>>,
    // Payload: the address, what is left, and where it goes
    va: DFF<Bits<64>>,
    left: DFF<Bits<PAYLOAD>>,
    dst: DFF<Bits<18>>,
    iova: DFF<Bits<64>>,
    reads: DFF<Bits<9>>,
    fails: DFF<Bit>,
    events: DFF<Bits<3>>,
    flags: Gather<3>,
    inside: Fence<INSIDE>,
    // The piece at `va`, a cycle later: its key takes longer.
    piece: DFF<Bits<13>>,
    last: DFF<Bit>,
    after: DFF<Bits<64>>,
    remains: DFF<Bits<PAYLOAD>>,
    cut: Cut,
    first: Sum<LOW>,
    carried: PlusOne<32>,
    #[init(Layers::new(protocol::UDP))]
    layers: Layers,
    #[init(Ip4Sum::new(protocol::UDP))]
    sum: Ip4Sum,
    #[init(BePack::new(behind()))]
    body: BePack<HEADER_BITS, Bits<OWN_BITS>>,
    way: Signal<Local, PathCtx>,
    va_all: Signal<Local, Bits<64>>,
    mine: Signal<Local, Bits<NUMBER>>,
    upper: Signal<Local, Bits<32>>,
    length: Signal<Local, Bits<16>>,
    bytes: Signal<Local, Bits<PAYLOAD>>,
    last_row: Signal<Local, Bit>,
    over: Signal<Local, Bit>,
    #[init(Constant::new((W as u64).to_bits()))]
    row_bits: Constant<Bits<10>>,
    #[init(Constant::new((K as u64).to_bits()))]
    row_bytes: Constant<Bits<8>>,
}

#[kernel]
impl<const W: usize, const K: usize, const L: usize, const LE: usize, const LT: usize> Logic for Dress<W, K, L, LE, LT> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, state, note, own, own_len, route, source, stale, count, slot, rows, rest, row, behind_ip, len, low, start_at, piece, last, after, remains, va, left, dst, iova, reads, fails,
            events
        );
        clock!(self, clock, wide, notes, grants, keys, sum, inside);
        self.inside.reset.next = self.reset.val();
        self.inside.came.next = self.s_note.valid.val() & self.s_note.ready.val();
        self.inside.start.next = self.fence.val();
        self.passed.next = self.inside.passed.val();
        self.wide.reset.next = self.reset.val();
        self.notes.reset.next = self.reset.val();
        self.grants.reset.next = self.reset.val();
        self.keys.reset.next = self.reset.val();
        AxisSink::<W, K>::link(&mut self.s, &mut self.wide.s);
        MsgSink::<FrameNote>::link(&mut self.s_note, &mut self.notes.s);
        MsgSink::<SlotGrant>::link(&mut self.s_slot, &mut self.grants.s);
        MsgSink::<MrResp>::link(&mut self.s_key, &mut self.keys.s);
        self.line.next = self.note.q.val().peer.get_bits::<LE>(0);
        self.token.next = self.note.q.val().token.get_bits::<LT>(0);
        self.bytes.next = self.note.q.val().bytes;
        if self.note.q.val().control {
            self.bytes.next = bits::<PAYLOAD>(0);
        }
        self.length.next = bit_cast::<16, 8>(self.own_len.q.val()) + bit_cast::<16, PAYLOAD>(self.bytes.val());
        self.way.next = self.path.val();
        self.way.next.tclass = self.path.val().tclass & NOT_ECN;
        if !self.note.q.val().control {
            self.way.next.tclass = (self.path.val().tclass & NOT_ECN) | ECT_0;
        }
        self.sum.load.next = (self.state.q.val() == State::Sum) & !self.count.q.val().any();
        self.sum.path.next = self.route.q.val();
        self.sum.length.next = self.behind_ip.q.val();
        self.body.x.next = self.own.q.val();
        self.layers.path.next = self.route.q.val();
        self.behind_ip.d.next = self.length.val();
        self.layers.length.next = self.behind_ip.q.val();
        self.layers.total.next = self.sum.total.val();
        self.layers.body.next = self.body.y.val();
        self.layers.body_len.next = self.own_len.q.val();
        self.mine.next = self.note.q.val().token.get_bits::<NUMBER>(NUMBER_AT);
        self.stale.d.next = !self.note.q.val().control & !(self.source.q.val().live & (self.source.q.val().number == self.mine.val()));
        self.va_all.next = self.source.q.val().va;
        self.first.a.next = bit_cast::<LOW, 32>(self.va_all.val().get_bits::<32>(0));
        self.first.b.next = bit_cast::<LOW, 32>(self.note.q.val().offset);
        self.low.d.next = self.first.y.val();
        self.carried.a.next = self.va_all.val().get_bits::<32>(HALF);
        self.upper.next = self.va_all.val().get_bits::<32>(HALF);
        if self.low.q.val().get_bit(HALF) {
            self.upper.next = self.carried.y.val();
        }
        self.start_at.d.next = bit_cast::<64, 32>(self.low.q.val().get_bits::<32>(0)) | (bit_cast::<64, 32>(self.upper.val()) << 32);
        self.cut.va.next = self.va.q.val();
        self.cut.left.next = self.left.q.val();
        self.piece.d.next = self.cut.len.val();
        self.last.d.next = self.cut.last.val();
        self.after.d.next = self.cut.after.val();
        self.remains.d.next = self.cut.rest.val();
        self.wide.m.ready.next = false;
        self.notes.m.ready.next = false;
        self.grants.m.ready.next = false;
        self.keys.m.ready.next = false;
        self.m_slot.valid.next = false;
        self.m_slot.data.next.hdr_len = bit_cast::<9, 8>(self.len.q.val());
        self.m_slot.data.next.frame_len = bit_cast::<14, 8>(self.len.q.val()) + self.bytes.val();
        self.m_slot.data.next.pay_len = self.bytes.val().get_bits::<13>(0);
        self.m_slot.data.next.bypass = false;
        self.m_slot.data.next.raw = false;
        self.m_slot.data.next.client = bits::<3>(0);
        self.m_row.valid.next = (self.state.q.val() == State::Rows) & self.route.q.val().valid;
        self.m_row.slot.next = self.slot.q.val().slot;
        self.m_row.row.next = self.row.q.val();
        self.m_row.data.next = self.rows.q.val().get_bits::<W>(0);
        self.last_row.next = self.rest.q.val() <= self.row_bytes.val();
        self.m_done.valid.next = false;
        self.m_done.data.next.slot = self.slot.q.val().slot;
        self.m_done.data.next.len = bit_cast::<9, 8>(self.len.q.val());
        self.m_done.data.next.ipv6 = self.route.q.val().ipv6;
        self.m_done.data.next.vlan = self.route.q.val().vlan;
        self.m_done.data.next.abort = !self.route.q.val().valid;
        self.m_done.data.next.plain = true;
        self.m_key.valid.next = false;
        self.m_key.data.next.key = self.source.q.val().key;
        self.m_key.data.next.pd = bit_cast::<24, 16>(self.source.q.val().pd);
        self.m_key.data.next.function = self.source.q.val().function;
        self.m_key.data.next.qpn = bits::<24>(0);
        self.m_key.data.next.va = self.va.q.val();
        self.m_key.data.next.chk_len = bit_cast::<32, PAYLOAD>(self.left.q.val());
        self.m_key.data.next.access = bits::<6>(access::LOCAL_READ);
        self.m_key.data.next.whole = false;
        self.m_inline.valid.next = false;
        self.m_inline.data.next.dst = bits::<18>(0);
        self.m_inline.data.next.len = bits::<6>(0);
        self.m_inline.data.next.data = bits::<256>(0);
        self.m_pay.valid.next = false;
        self.m_pay.data.next.iova = self.iova.q.val();
        self.m_pay.data.next.function = self.source.q.val().function;
        self.m_pay.data.next.len = self.piece.q.val();
        self.m_pay.data.next.dst = self.dst.q.val();
        self.m_pay.data.next.slot = self.slot.q.val().slot;
        self.m_seal.valid.next = false;
        self.m_seal.data.next.slot = self.slot.q.val().slot;
        self.m_seal.data.next.reads = self.reads.q.val();
        self.m_seal.data.next.abort = self.fails.q.val();
        self.m_seal.data.next.notify = false;
        self.m_seal.data.next.qpn = bits::<24>(0);
        self.m_seal.data.next.epoch = bits::<8>(0);
        self.m_seal.data.next.psn = bits::<24>(0);
        self.m_seal.data.next.wqe_index = bits::<16>(0);
        self.m_seal.data.next.status = bits::<8>(0);
        self.m_seal.data.next.reply = false;
        self.m_seal.data.next.request = false;
        self.m_seal.data.next.round = bits::<2>(0);
        self.m_seal.data.next.function = self.route.q.val().function;
        self.over.next = (self.state.q.val() == State::Seal) & self.m_seal.ready.val();
        self.inside.went.next = self.over.val();
        self.flags.x[0].next = self.over.val() & !self.fails.q.val() & !self.note.q.val().control;
        self.flags.x[1].next = self.over.val() & !self.fails.q.val() & self.note.q.val().control;
        self.flags.x[2].next = self.over.val() & self.fails.q.val();
        self.events.d.next = self.flags.y.val();
        self.stat.next = self.events.q.val();
        match self.state.q.val() {
            State::Idle => {
                self.note.d.next = self.notes.m.data.val();
                self.own.d.next = self.wide.m.data.val();
                self.own_len.d.next = self.wide.m.len.val().get_bits::<8>(0);
                if self.notes.m.valid.val() & self.wide.m.valid.val() {
                    self.state.d.next = State::Read;
                }
            }
            // The memories see their places in this state and have the lines in the next.
            State::Read => {
                self.notes.m.ready.next = true;
                self.wide.m.ready.next = true;
                self.state.d.next = State::Load;
            }
            State::Load => {
                self.route.d.next = self.way.val();
                self.source.d.next = self.sent.val();
                self.count.d.next = bits::<2>(0);
                self.state.d.next = State::Sum;
            }
            State::Sum => {
                self.count.d.next = self.count.q.val() + 1;
                self.rows.d.next = self.layers.image.val();
                self.len.d.next = self.layers.len.val();
                self.rest.d.next = self.layers.len.val();
                self.row.d.next = bits::<5>(0);
                self.reads.d.next = bits::<9>(0);
                self.fails.d.next = !self.route.q.val().valid | self.stale.q.val();
                self.va.d.next = self.start_at.q.val();
                self.left.d.next = self.bytes.val();
                if self.count.q.val() == SUMMED {
                    self.state.d.next = State::Ask;
                }
            }
            State::Ask => {
                self.m_slot.valid.next = true;
                if self.m_slot.ready.val() {
                    self.state.d.next = State::Grant;
                }
            }
            State::Grant => {
                self.grants.m.ready.next = true;
                self.slot.d.next = self.grants.m.data.val();
                self.dst.d.next = self.grants.m.data.val().base + bit_cast::<18, 8>(self.len.q.val());
                if self.grants.m.valid.val() {
                    self.state.d.next = State::Rows;
                }
            }
            State::Rows => {
                self.rows.d.next = self.rows.q.val() >> self.row_bits.val();
                self.rest.d.next = self.rest.q.val() - self.row_bytes.val();
                self.row.d.next = self.row.q.val() + 1;
                if self.last_row.val() | !self.route.q.val().valid {
                    self.state.d.next = State::Done;
                }
            }
            State::Done => {
                self.m_done.valid.next = true;
                if self.m_done.ready.val() {
                    self.state.d.next = State::Key;
                    if !self.left.q.val().any() | self.fails.q.val() {
                        self.state.d.next = State::Seal;
                    }
                }
            }
            State::Key => {
                self.m_key.valid.next = true;
                if self.m_key.ready.val() {
                    self.state.d.next = State::Keyed;
                }
            }
            State::Keyed => {
                self.keys.m.ready.next = true;
                self.iova.d.next = self.keys.m.data.val().iova;
                if self.keys.m.valid.val() {
                    self.state.d.next = State::Fetch;
                    if self.keys.m.data.val().status.any() {
                        self.fails.d.next = true;
                        self.state.d.next = State::Seal;
                    }
                }
            }
            State::Fetch => {
                self.m_pay.valid.next = true;
                if self.m_pay.ready.val() {
                    self.reads.d.next = self.reads.q.val() + 1;
                    self.va.d.next = self.after.q.val();
                    self.left.d.next = self.remains.q.val();
                    self.dst.d.next = self.dst.q.val() + bit_cast::<18, 13>(self.piece.q.val());
                    self.state.d.next = State::Key;
                    if self.last.q.val() {
                        self.state.d.next = State::Seal;
                    }
                }
            }
            State::Seal => {
                self.m_seal.valid.next = true;
                if self.m_seal.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
