//! Grants slots and assembly rows.

use super::types::FrameRec;
use crate::assembly::MOST_CLIENTS;
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{SlotGrant, SlotReq};
use crate::stream::{MsgFifo, MsgSlice};
use ferric_hdl_derive::{kernel, BlockNew};
use rust_hdl::prelude::*;

/// Progress of the data request at hand: row arithmetic, room for it, grant.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Phase {
    Empty,
    Fit,
    Room,
    Grant,
}

/// `2^LS` slots from a free list, rows from a ring of `2^bytes_log2` bytes in which a frame never wraps. Data requests (port 0) take rows and keep
/// `RESERVE` slots free for bypass requests (port 1), which go first. `clients` make headers; `owners` as for the egress.
#[derive(LogicBlock, BlockNew)]
#[given(bytes_log2: usize, clients: usize, owners: [usize; 2])]
pub(super) struct Allocator<const K: usize, const LK: usize, const LS: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Start-up: `init_slot` runs through all slots.
    pub init: Signal<In, Bit>,
    pub init_slot: Signal<In, Bits<8>>,
    pub s_slot: [MsgSink<SlotReq>; 2],
    pub m_slot: [MsgSrc<SlotGrant>; 2],
    /// Frames in grant order, data and bypass.
    pub m_data: MsgSrc<FrameRec>,
    pub m_bypass: MsgSrc<FrameRec>,
    pub granted: Signal<Out, Bit>,
    pub granted_slot: Signal<Out, Bits<8>>,
    pub free_valid: Signal<In, Bit>,
    pub free_slot: Signal<In, Bits<8>>,
    pub free_rows: Signal<In, Bits<14>>,
    in1: MsgSlice<SlotReq>,
    out0: MsgSlice<SlotGrant>,
    out1: MsgSlice<SlotGrant>,
    /// Numbers of free slots. Of `LS` bits: what they are never is known to be zero.
    free: MsgFifo<Bits<LS>, LS>,
    data: MsgFifo<FrameRec, LS>,
    bypass: MsgFifo<FrameRec, 7>,
    slots: DFF<Bits<9>>,
    phase: DFF<Phase>,
    rec: DFF<FrameRec>,
    need: DFF<Bits<14>>,
    limit: DFF<Bits<14>>,
    ptr: DFF<Bits<14>>,
    to_end: DFF<Bits<14>>,
    avail: DFF<Bits<14>>,
    load: Signal<Local, Bit>,
    grant0: Signal<Local, Bit>,
    grant1: Signal<Local, Bit>,
    used: Signal<Local, Bit>,
    freed: Signal<Local, Bit>,
    rounded0: Signal<Local, Bits<15>>,
    rounded1: Signal<Local, Bits<15>>,
    need0: Signal<Local, Bits<15>>,
    need1: Signal<Local, Bits<15>>,
    start: Signal<Local, Bits<14>>,
    total: Signal<Local, Bits<14>>,
    taken: Signal<Local, Bits<14>>,
    given: Signal<Local, Bits<14>>,
    slot: Signal<Local, Bits<8>>,
    #[init(Constant::new((K as u64 - 1).to_bits()))]
    below_k: Constant<Bits<15>>,
    #[init(Constant::new((LK as u64).to_bits()))]
    lk: Constant<Bits<4>>,
    #[init(Constant::new((1u64 << (bytes_log2 - LK)).to_bits()))]
    all_rows: Constant<Bits<14>>,
    #[init(Constant::new(RESERVE.to_bits()))]
    reserve: Constant<Bits<9>>,
    /// One client needs no number.
    #[init(Constant::new((if clients > 1 { MOST_CLIENTS as u64 - 1 } else { 0 }).to_bits()))]
    client_bits: Constant<Bits<3>>,
    #[init(owners.map(|client| Constant::new((client as u64).to_bits())))]
    owners: [Constant<Bits<3>>; 2],
}

/// Slots that data frames leave free.
const RESERVE: u64 = 2;

#[kernel]
impl<const K: usize, const LK: usize, const LS: usize> Logic for Allocator<K, LK, LS> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, slots, phase, rec, need, limit, ptr, to_end, avail);
        clock!(self, clock, in1, out0, out1, free, data, bypass);
        self.in1.reset.next = self.reset.val();
        self.out0.reset.next = self.reset.val();
        self.out1.reset.next = self.reset.val();
        self.free.reset.next = self.reset.val();
        self.data.reset.next = self.reset.val();
        self.bypass.reset.next = self.reset.val();
        MsgSink::<SlotReq>::link(&mut self.s_slot[1], &mut self.in1.s);
        MsgSrc::<SlotGrant>::link(&mut self.m_slot[0], &mut self.out0.m);
        MsgSrc::<SlotGrant>::link(&mut self.m_slot[1], &mut self.out1.m);
        MsgSrc::<FrameRec>::link(&mut self.m_data, &mut self.data.m);
        MsgSrc::<FrameRec>::link(&mut self.m_bypass, &mut self.bypass.m);
        self.rounded0.next = bit_cast::<15, 14>(self.s_slot[0].data.val().frame_len) + self.below_k.val();
        self.rounded1.next = bit_cast::<15, 14>(self.in1.m.data.val().frame_len) + self.below_k.val();
        self.need0.next = self.rounded0.val() >> self.lk.val();
        self.need1.next = self.rounded1.val() >> self.lk.val();
        // Who gets a slot
        self.grant1.next = !self.init.val() & self.in1.m.valid.val() & self.free.m.valid.val() & self.out1.s.ready.val() & self.bypass.s.ready.val();
        self.grant0.next =
            (self.phase.q.val() == Phase::Grant) & !self.grant1.val() & self.free.m.valid.val() & (self.slots.q.val() > self.reserve.val()) & self.out0.s.ready.val() & self.data.s.ready.val();
        self.used.next = self.grant0.val() | self.grant1.val();
        self.granted.next = self.used.val();
        self.slot.next = bit_cast::<8, LS>(self.free.m.data.val());
        self.granted_slot.next = self.slot.val();
        self.free.m.ready.next = self.used.val();
        self.in1.m.ready.next = self.grant1.val();
        self.out1.s.valid.next = self.grant1.val();
        self.out1.s.data.next.slot = self.slot.val();
        self.out1.s.data.next.base = bits::<18>(0);
        self.bypass.s.valid.next = self.grant1.val();
        self.bypass.s.data.next.slot = self.slot.val();
        self.bypass.s.data.next.frame_len = self.in1.m.data.val().frame_len;
        self.bypass.s.data.next.hdr_len = self.in1.m.data.val().hdr_len;
        self.bypass.s.data.next.pay_end = bit_cast::<14, 9>(self.in1.m.data.val().hdr_len);
        self.bypass.s.data.next.raw = false;
        self.bypass.s.data.next.row = bits::<13>(0);
        self.bypass.s.data.next.rows = bits::<14>(0);
        self.bypass.s.data.next.beats = bit_cast::<12, 15>(self.need1.val());
        self.bypass.s.data.next.client = self.owners[1].val();
        self.out0.s.valid.next = self.grant0.val();
        self.out0.s.data.next.slot = self.slot.val();
        self.out0.s.data.next.base = bit_cast::<18, 13>(self.rec.q.val().row) << self.lk.val();
        self.data.s.valid.next = self.grant0.val();
        self.data.s.data.next = self.rec.q.val();
        self.data.s.data.next.slot = self.slot.val();
        // Rows of the data request
        self.start.next = self.ptr.q.val();
        self.total.next = self.need.q.val();
        if self.need.q.val() > self.to_end.q.val() {
            self.start.next = bits::<14>(0);
            self.total.next = self.need.q.val() + self.to_end.q.val();
        }
        self.load.next = self.grant0.val();
        match self.phase.q.val() {
            Phase::Empty => {
                self.load.next = !self.init.val();
            }
            Phase::Fit => {
                self.rec.d.next.row = bit_cast::<13, 14>(self.start.val());
                self.rec.d.next.rows = self.total.val();
                self.limit.d.next = self.start.val() + self.need.q.val();
                self.phase.d.next = Phase::Room;
            }
            Phase::Room => {
                if self.avail.q.val() >= self.rec.q.val().rows {
                    self.phase.d.next = Phase::Grant;
                }
            }
            Phase::Grant => {
                if self.grant0.val() {
                    self.phase.d.next = Phase::Empty;
                    self.ptr.d.next = self.limit.q.val();
                    self.to_end.d.next = self.all_rows.val() - self.limit.q.val();
                }
            }
            _ => {
                self.phase.d.next = Phase::Empty;
            }
        }
        self.s_slot[0].ready.next = self.load.val();
        if self.load.val() & self.s_slot[0].valid.val() {
            self.phase.d.next = Phase::Fit;
            self.need.d.next = bit_cast::<14, 15>(self.need0.val());
            self.rec.d.next.frame_len = self.s_slot[0].data.val().frame_len;
            self.rec.d.next.hdr_len = self.s_slot[0].data.val().hdr_len;
            self.rec.d.next.pay_end = bit_cast::<14, 9>(self.s_slot[0].data.val().hdr_len) + bit_cast::<14, 13>(self.s_slot[0].data.val().pay_len);
            self.rec.d.next.raw = self.s_slot[0].data.val().raw;
            // A raw frame may be longer than `pay_len` can say.
            if self.s_slot[0].data.val().raw {
                self.rec.d.next.pay_end = self.s_slot[0].data.val().frame_len;
            }
            self.rec.d.next.beats = bit_cast::<12, 15>(self.need0.val());
            self.rec.d.next.client = (self.s_slot[0].data.val().client & self.client_bits.val()) | self.owners[0].val();
        }
        self.taken.next = bits::<14>(0);
        if self.grant0.val() {
            self.taken.next = self.rec.q.val().rows;
        }
        self.given.next = bits::<14>(0);
        if self.free_valid.val() {
            self.given.next = self.free_rows.val();
        }
        self.avail.d.next = self.avail.q.val() - self.taken.val() + self.given.val();
        // The free list
        self.freed.next = self.init.val() | self.free_valid.val();
        self.free.s.valid.next = self.freed.val();
        self.free.s.data.next = self.free_slot.val().get_bits::<LS>(0);
        if self.init.val() {
            self.free.s.data.next = self.init_slot.val().get_bits::<LS>(0);
        }
        if self.freed.val() & !self.used.val() {
            self.slots.d.next = self.slots.q.val() + 1;
        }
        if !self.freed.val() & self.used.val() {
            self.slots.d.next = self.slots.q.val() - 1;
        }
        if self.reset.val() {
            self.slots.d.next = bits::<9>(0);
            self.phase.d.next = Phase::Empty;
            self.ptr.d.next = bits::<14>(0);
            self.to_end.d.next = self.all_rows.val();
            self.avail.d.next = self.all_rows.val();
        }
    }
}
