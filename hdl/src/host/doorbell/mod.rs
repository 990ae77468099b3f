//! Doorbell window: AXI4 writes from the host become doorbell messages. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::MsgSrc;
use crate::codes::doorbell_kind;
use crate::msg::{DoorbellMsg, WqeDoorbell};
use crate::prim::mux::IndexMux;
use crate::prim::pack::Cast;
use crate::prim::slot::SlotMerge;
use crate::records;
use crate::stats::flags;
use crate::stream::{AxisSlice, MsgFifo, MsgSlice};
use ferric_abi::csr;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Below these levels, of a cycle ago, the queues of 16, the answers not yet given and the queue of 8 work requests have room for one more.
const ROOM: u64 = 12;
const WQE_ROOM: u64 = 5;
/// Beats are counted up to here: more than a line has.
const MANY_BEATS: u64 = 15;
/// Byte strobes of a doorbell.
const STROBES: u64 = 0xff;

/// What bit i of `stat` counts.
pub const STATS: &[&str] = &["db_bad", "db_rung", "db_wqe"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // A beat is taken only while every queue has room.
    ("aw_valid", &["m_sq", "m_rq", "m_cq", "m_eq", "m_wqe", "b_valid"]),
    ("w_valid", &["m_sq", "m_rq", "m_cq", "m_eq", "m_wqe", "b_valid"]),
];

/// Write address channel, what is used of it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Address {
    addr: Bits<32>,
    len: Bits<8>,
}

/// AXI4 write-only slave of `W` data bits, `K` = W / 8, for 2^`LF` functions. Responses are always OKAY: writes are posted.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && 512 % W == 0 && W >= 64, "W is 64 to 512, K is W / 8")]
#[demand(LF <= 12, "messages have 12 bits for the function")]
#[demand((csr::DB_SQ % 32, csr::DB_RQ, csr::DB_CQ, csr::DB_EQ) == (0, csr::DB_SQ + 8, csr::DB_SQ + 16, csr::DB_SQ + 24))]
#[demand((csr::DB_WQE % csr::DB_WQE_SIZE, csr::DB_WQE_SIZE) == (0, 0x1000))]
pub struct Doorbell<const W: usize, const K: usize, const LF: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub aw_valid: Signal<In, Bit>,
    pub aw_ready: Signal<Out, Bit>,
    /// function << 16 | offset.
    pub aw_addr: Signal<In, Bits<32>>,
    /// Beats - 1.
    pub aw_len: Signal<In, Bits<8>>,
    pub w_valid: Signal<In, Bit>,
    pub w_ready: Signal<Out, Bit>,
    pub w_data: Signal<In, Bits<W>>,
    pub w_strb: Signal<In, Bits<K>>,
    pub w_last: Signal<In, Bit>,
    pub b_valid: Signal<Out, Bit>,
    pub b_ready: Signal<In, Bit>,
    pub b_resp: Signal<Out, Bits<2>>,
    pub m_sq: MsgSrc<DoorbellMsg>,
    pub m_rq: MsgSrc<DoorbellMsg>,
    pub m_cq: MsgSrc<DoorbellMsg>,
    pub m_eq: MsgSrc<DoorbellMsg>,
    pub m_wqe: MsgSrc<WqeDoorbell>,
    /// See [`STATS`]; whose events they are. A window that is nobody's is the card's.
    pub stat: Signal<Out, Bits<3>>,
    pub stat_function: Signal<Out, Bits<12>>,
    aw: MsgSlice<Address>,
    w: AxisSlice<W, K>,
    sq: MsgFifo<DoorbellMsg, 4>,
    rq: MsgFifo<DoorbellMsg, 4>,
    cq: MsgFifo<DoorbellMsg, 4>,
    eq: MsgFifo<DoorbellMsg, 4>,
    wqes: MsgFifo<WqeDoorbell, 3>,
    merge_data: SlotMerge<512, W>,
    merge_strb: SlotMerge<64, K>,
    lanes: IndexMux<Bits<64>, 8, 3>,
    record: Cast<Bits<64>, records::Doorbell>,
    beats: DFF<Bits<4>>,
    line: DFF<Bits<512>>,
    strobes: DFF<Bits<64>>,
    answers: DFF<Bits<4>>,
    counts: DFF<Bits<3>>,
    counts_of: DFF<Bits<12>>,
    #[init(Constant::new((K / 8 - 1).to_bits()))]
    lane_mask: Constant<Bits<3>>,
    /// Beats of a line less one.
    #[init(Constant::new((512 / W - 1).to_bits()))]
    line_beats: Constant<Bits<4>>,
    #[init(Constant::new(u64::from(csr::DB_SQ >> 5).to_bits()))]
    db_page: Constant<Bits<11>>,
    #[init(Constant::new(u64::from(csr::DB_WQE >> 12).to_bits()))]
    wqe_page: Constant<Bits<4>>,
    /// Functions that have a window.
    #[init(Constant::new((1u64 << LF).to_bits()))]
    functions: Constant<Bits<16>>,
    /// Every queue had room for one more than this in the last cycle.
    room: DFF<Bit>,
    take: Signal<Local, Bit>,
    finish: Signal<Local, Bit>,
    head: Signal<Local, Address>,
    addr: Signal<Local, Bits<32>>,
    data: Signal<Local, Bits<512>>,
    strb: Signal<Local, Bits<64>>,
    beats_next: Signal<Local, Bits<4>>,
    number: Signal<Local, Bits<16>>,
    known: Signal<Local, Bit>,
    lane: Signal<Local, Bits<3>>,
    wanted: Signal<Local, Bits<64>>,
    is_db: Signal<Local, Bit>,
    is_wqe: Signal<Local, Bit>,
    kind: Signal<Local, Bits<2>>,
    message: Signal<Local, DoorbellMsg>,
    wqe: Signal<Local, WqeDoorbell>,
}

#[kernel]
impl<const W: usize, const K: usize, const LF: usize> Logic for Doorbell<W, K, LF> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, beats, line, strobes, answers, counts, counts_of, room);
        clock!(self, clock, aw, w, sq, rq, cq, eq, wqes);
        self.aw.reset.next = self.reset.val();
        self.w.reset.next = self.reset.val();
        self.sq.reset.next = self.reset.val();
        self.rq.reset.next = self.reset.val();
        self.cq.reset.next = self.reset.val();
        self.eq.reset.next = self.reset.val();
        self.wqes.reset.next = self.reset.val();
        MsgSrc::<DoorbellMsg>::link(&mut self.m_sq, &mut self.sq.m);
        MsgSrc::<DoorbellMsg>::link(&mut self.m_rq, &mut self.rq.m);
        MsgSrc::<DoorbellMsg>::link(&mut self.m_cq, &mut self.cq.m);
        MsgSrc::<DoorbellMsg>::link(&mut self.m_eq, &mut self.eq.m);
        MsgSrc::<WqeDoorbell>::link(&mut self.m_wqe, &mut self.wqes.m);
        self.aw.s.data.next.addr = self.aw_addr.val();
        self.aw.s.data.next.len = self.aw_len.val();
        self.aw.s.valid.next = self.aw_valid.val();
        self.aw_ready.next = self.aw.s.ready.val();
        self.w.s.data.next = self.w_data.val();
        self.w.s.keep.next = self.w_strb.val();
        self.w.s.last.next = self.w_last.val();
        self.w.s.valid.next = self.w_valid.val();
        self.w_ready.next = self.w.s.ready.val();

        // Collect: beats into a line. A beat is taken only when any message it may become has room.
        self.room.d.next = (self.sq.level.val() < ROOM)
            & (self.rq.level.val() < ROOM)
            & (self.cq.level.val() < ROOM)
            & (self.eq.level.val() < ROOM)
            & (self.wqes.level.val() < WQE_ROOM)
            & (self.answers.q.val() < ROOM);
        self.take.next = self.aw.m.valid.val() & self.w.m.valid.val() & self.room.q.val();
        self.finish.next = self.take.val() & self.w.m.last.val();
        self.aw.m.ready.next = self.finish.val();
        self.w.m.ready.next = self.take.val();
        self.merge_data.acc.next = self.line.q.val();
        self.merge_data.data.next = self.w.m.data.val();
        self.merge_data.slot.next = bit_cast::<8, 4>(self.beats.q.val());
        self.merge_data.fresh.next = self.beats.q.val() == 0;
        self.merge_strb.acc.next = self.strobes.q.val();
        self.merge_strb.data.next = self.w.m.keep.val();
        self.merge_strb.slot.next = bit_cast::<8, 4>(self.beats.q.val());
        self.merge_strb.fresh.next = self.beats.q.val() == 0;
        self.beats_next.next = self.beats.q.val() + 1;
        if self.beats.q.val() == MANY_BEATS {
            self.beats_next.next = bits::<4>(MANY_BEATS);
        }
        self.head.next = self.aw.m.data.val();
        if self.take.val() {
            self.line.d.next = self.merge_data.y.val();
            self.strobes.d.next = self.merge_strb.y.val();
            self.beats.d.next = self.beats_next.val();
        }
        if self.finish.val() {
            self.beats.d.next = bits::<4>(0);
        }

        // Judge and send with the last beat.
        self.addr.next = self.head.val().addr;
        self.data.next = self.merge_data.y.val();
        self.strb.next = self.merge_strb.y.val();
        self.number.next = self.addr.val().get_bits::<16>(16);
        self.known.next = self.number.val() < self.functions.val();
        self.lane.next = self.addr.val().get_bits::<3>(3) & self.lane_mask.val();
        self.wanted.next = bits::<64>(STROBES) << (bit_cast::<6, 3>(self.lane.val()) << 3);
        self.is_db.next =
            (self.addr.val().get_bits::<11>(5) == self.db_page.val()) & !self.addr.val().get_bits::<3>(0).any() & self.known.val() & (self.beats.q.val() == 0) & (self.strb.val() == self.wanted.val());
        self.is_wqe.next = (self.addr.val().get_bits::<4>(12) == self.wqe_page.val())
            & !self.addr.val().get_bits::<6>(0).any()
            & self.known.val()
            & (self.beats.q.val() == self.line_beats.val())
            & self.strb.val().all();
        for i in 0..8 {
            self.lanes.x[i].next = self.data.val().get_bits::<64>(64 * i);
        }
        self.lanes.sel.next = self.lane.val();
        self.record.x.next = self.lanes.y.val();
        self.kind.next = self.addr.val().get_bits::<2>(3);
        self.message.next.kind = self.kind.val();
        self.message.next.id = self.record.y.val().id;
        self.message.next.index = self.record.y.val().index;
        self.message.next.arm = self.record.y.val().arm;
        self.message.next.arm_solicited = self.record.y.val().arm_solicited;
        self.message.next.function = self.addr.val().get_bits::<12>(16);
        self.wqe.next.function = self.addr.val().get_bits::<12>(16);
        self.wqe.next.data = self.data.val();
        self.sq.s.data.next = self.message.val();
        self.rq.s.data.next = self.message.val();
        self.cq.s.data.next = self.message.val();
        self.eq.s.data.next = self.message.val();
        self.wqes.s.data.next = self.wqe.val();
        self.sq.s.valid.next = self.finish.val() & self.is_db.val() & (self.kind.val() == doorbell_kind::SQ);
        self.rq.s.valid.next = self.finish.val() & self.is_db.val() & (self.kind.val() == doorbell_kind::RQ);
        self.cq.s.valid.next = self.finish.val() & self.is_db.val() & (self.kind.val() == doorbell_kind::CQ);
        self.eq.s.valid.next = self.finish.val() & self.is_db.val() & (self.kind.val() == doorbell_kind::EQ);
        self.wqes.s.valid.next = self.finish.val() & self.is_wqe.val();
        self.counts.d.next = bits::<3>(0);
        if self.finish.val() {
            self.counts.d.next = bits::<3>(flags(STATS, &["db_bad"]) as u64);
            if self.is_db.val() {
                self.counts.d.next = bits::<3>(flags(STATS, &["db_rung"]) as u64);
            }
            if self.is_wqe.val() {
                self.counts.d.next = bits::<3>(flags(STATS, &["db_wqe"]) as u64);
            }
        }
        self.counts_of.d.next = bits::<12>(0);
        if self.known.val() {
            self.counts_of.d.next = self.addr.val().get_bits::<12>(16);
        }
        self.stat.next = self.counts.q.val();
        self.stat_function.next = self.counts_of.q.val();

        // Responses, counted.
        self.b_valid.next = self.answers.q.val().any();
        self.b_resp.next = bits::<2>(0);
        if self.finish.val() & !(self.b_ready.val() & self.answers.q.val().any()) {
            self.answers.d.next = self.answers.q.val() + 1;
        }
        if !self.finish.val() & self.b_ready.val() & self.answers.q.val().any() {
            self.answers.d.next = self.answers.q.val() - 1;
        }
        if self.reset.val() {
            self.beats.d.next = bits::<4>(0);
            self.answers.d.next = bits::<4>(0);
        }
    }
}
