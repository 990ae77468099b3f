//! Chooses the next frame to leave and decides its fate.

use super::types::{FrameRec, TxJob};
use crate::bus::MsgSink;
use crate::msg::{HdrDone, SlotSeal, TxDone};
use crate::prim::ram::RamAsync;
use ferric_abi::codes::CqeStatus;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// log2 of the cycles between two bypass frames while data is held: longer than the peer's requester takes for an acknowledge of as many messages as it can have under way (256, four cycles
/// each), so that what it cannot follow waits here.
const LOG_TRICKLE: usize = 10;

/// Heads of the two orders -> jobs. A complete bypass frame goes first. One job in two cycles. `N` clients make headers; `2^LS` slots.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Picker<const N: usize, const LS: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// 0: data, 1: bypass.
    pub s_rec: [MsgSink<FrameRec>; 2],
    /// Questions to and answers from the slot table about the heads.
    pub ask: [Signal<Out, Bits<8>>; 2],
    pub whose: [Signal<Out, Bits<3>>; 2],
    pub sealed: [Signal<In, Bit>; 2],
    pub headed: [Signal<In, Bit>; 2],
    pub failed: [Signal<In, Bit>; 2],
    pub seal_we: Signal<In, Bit>,
    pub seal: Signal<In, SlotSeal>,
    pub hdr_we: [Signal<In, Bit>; N],
    pub hdr: [Signal<In, HdrDone>; N],
    /// The queue pair of the frame in hand, and the round that this is in.
    pub look: Signal<Out, Bits<24>>,
    pub round: Signal<In, Bits<2>>,
    /// No data frame is chosen, and a bypass frame in 2^[`LOG_TRICKLE`] cycles.
    pub hold: Signal<In, Bit>,
    pub valid: Signal<Out, Bit>,
    pub job: Signal<Out, TxJob>,
    pub done: Signal<Out, TxDone>,
    pub take: Signal<In, Bit>,
    seals: RamAsync<SlotSeal, LS>,
    headers: [RamAsync<HdrDone, LS>; N],
    ready0: DFF<Bit>,
    ready1: DFF<Bit>,
    /// Cycles since the last bypass frame, while data is held.
    waited: DFF<Bits<LOG_TRICKLE>>,
    trickle: DFF<Bit>,
    // The chosen frame with all that is known about it.
    p_valid: DFF<Bit>,
    p_rec: DFF<FrameRec>,
    p_seal: DFF<SlotSeal>,
    p_hdr: DFF<HdrDone>,
    p_failed: DFF<Bit>,
    p_bypass: DFF<Bit>,
    go: Signal<Local, Bit>,
    slot: Signal<Local, Bits<8>>,
    sealed_slot: Signal<Local, Bits<8>>,
    headed_slot: Signal<Local, Bits<8>>,
    client: Signal<Local, Bits<3>>,
    came: Signal<Local, HdrDone>,
    bad_header: Signal<Local, Bit>,
    empty: Signal<Local, Bit>,
    /// Of an earlier round.
    stale: Signal<Local, Bit>,
    drop: Signal<Local, Bit>,
    status: Signal<Local, Bits<8>>,
    #[init(std::array::from_fn(|client| Constant::new((client as u64).to_bits())))]
    numbers: [Constant<Bits<3>>; N],
}

#[kernel]
impl<const N: usize, const LS: usize> Logic for Picker<N, LS> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, ready0, ready1, waited, trickle, p_valid, p_rec, p_seal, p_hdr, p_failed, p_bypass);
        clock!(self, clock, seals);
        self.seals.write_en.next = self.seal_we.val();
        self.sealed_slot.next = self.seal.val().slot;
        self.seals.write_addr.next = self.sealed_slot.val().get_bits::<LS>(0);
        self.seals.write_data.next = self.seal.val();
        self.ask[0].next = self.s_rec[0].data.val().slot;
        self.ask[1].next = self.s_rec[1].data.val().slot;
        self.whose[0].next = self.s_rec[0].data.val().client;
        self.whose[1].next = self.s_rec[1].data.val().client;
        // Choice
        self.go.next = (self.ready0.q.val() | self.ready1.q.val()) & !self.p_valid.q.val();
        self.s_rec[1].ready.next = self.go.val() & self.ready1.q.val();
        self.s_rec[0].ready.next = self.go.val() & !self.ready1.q.val();
        self.ready0.d.next = !self.hold.val() & self.s_rec[0].valid.val() & self.sealed[0].val() & (self.headed[0].val() | self.s_rec[0].data.val().raw) & !(self.go.val() & !self.ready1.q.val());
        self.ready1.d.next = self.trickle.q.val() & self.s_rec[1].valid.val() & self.sealed[1].val() & self.headed[1].val() & !(self.go.val() & self.ready1.q.val());
        if !self.waited.q.val().all() {
            self.waited.d.next = self.waited.q.val() + 1;
        }
        self.trickle.d.next = !self.hold.val() | self.waited.q.val().all();
        if self.go.val() & self.ready1.q.val() {
            self.waited.d.next = bits::<LOG_TRICKLE>(0);
            self.trickle.d.next = !self.hold.val();
        }
        self.slot.next = self.s_rec[0].data.val().slot;
        self.client.next = self.s_rec[0].data.val().client;
        if self.ready1.q.val() {
            self.slot.next = self.s_rec[1].data.val().slot;
            self.client.next = self.s_rec[1].data.val().client;
        }
        self.seals.read_addr.next = self.slot.val().get_bits::<LS>(0);
        if self.take.val() {
            self.p_valid.d.next = false;
        }
        if self.go.val() {
            self.p_valid.d.next = true;
            self.p_rec.d.next = self.s_rec[0].data.val();
            self.p_failed.d.next = self.failed[0].val();
            self.p_bypass.d.next = self.ready1.q.val();
            self.p_seal.d.next = self.seals.read_data.val();
            if self.ready1.q.val() {
                self.p_rec.d.next = self.s_rec[1].data.val();
                self.p_failed.d.next = self.failed[1].val();
            }
        }
        for n in 0..N {
            self.headers[n].clock.next = self.clock.val();
            self.headers[n].write_en.next = self.hdr_we[n].val();
            self.came.next = self.hdr[n].val();
            self.headed_slot.next = self.came.val().slot;
            self.headers[n].write_addr.next = self.headed_slot.val().get_bits::<LS>(0);
            self.headers[n].write_data.next = self.came.val();
            self.headers[n].read_addr.next = self.slot.val().get_bits::<LS>(0);
            if self.go.val() & (self.client.val() == self.numbers[n].val()) {
                self.p_hdr.d.next = self.headers[n].read_data.val();
            }
        }
        // Fate
        self.bad_header.next = !self.p_rec.q.val().raw & (self.p_hdr.q.val().abort | (self.p_hdr.q.val().len != self.p_rec.q.val().hdr_len));
        self.empty.next = self.p_rec.q.val().beats == 0;
        self.look.next = self.p_seal.q.val().qpn;
        self.stale.next = self.p_seal.q.val().request & !(self.p_seal.q.val().round == self.round.val());
        self.drop.next = self.stale.val() | self.bad_header.val() | self.empty.val() | self.p_seal.q.val().abort | self.p_failed.q.val();
        self.status.next = bits::<8>(CqeStatus::Success as u64);
        if self.bad_header.val() {
            self.status.next = bits::<8>(CqeStatus::LocalQpOperation as u64);
        }
        if self.empty.val() {
            self.status.next = bits::<8>(CqeStatus::LocalLength as u64);
        }
        if self.p_seal.q.val().abort {
            self.status.next = self.p_seal.q.val().status;
        }
        if self.p_failed.q.val() {
            self.status.next = bits::<8>(CqeStatus::Fatal as u64);
        }
        // Whatever is wrong with it is found when it is sent again.
        if self.stale.val() {
            self.status.next = bits::<8>(CqeStatus::Success as u64);
        }
        self.valid.next = self.p_valid.q.val();
        self.job.next.slot = self.p_rec.q.val().slot;
        self.job.next.frame_len = self.p_rec.q.val().frame_len;
        self.job.next.hdr_len = self.p_rec.q.val().hdr_len;
        self.job.next.pay_end = self.p_rec.q.val().pay_end;
        self.job.next.row = self.p_rec.q.val().row;
        self.job.next.rows = self.p_rec.q.val().rows;
        self.job.next.beats = self.p_rec.q.val().beats;
        self.job.next.client = self.p_rec.q.val().client;
        self.job.next.function = self.p_seal.q.val().function;
        self.job.next.vlan = self.p_hdr.q.val().vlan;
        self.job.next.ipv6 = self.p_hdr.q.val().ipv6;
        self.job.next.plain = self.p_rec.q.val().raw | self.p_hdr.q.val().plain;
        self.job.next.drop = self.drop.val();
        // The requester hears nothing of bypass frames: they are not its own.
        self.job.next.report = !self.p_bypass.q.val() & ((self.drop.val() & self.status.val().any()) | (!self.drop.val() & self.p_seal.q.val().notify));
        self.done.next.qpn = self.p_seal.q.val().qpn;
        self.done.next.epoch = self.p_seal.q.val().epoch;
        self.done.next.psn = self.p_seal.q.val().psn;
        self.done.next.wqe_index = self.p_seal.q.val().wqe_index;
        self.done.next.status = self.status.val();
        self.done.next.reply = self.p_seal.q.val().reply;
        self.done.next.notify = self.p_seal.q.val().notify;
        if self.reset.val() {
            self.ready0.d.next = false;
            self.ready1.d.next = false;
            self.trickle.d.next = false;
            self.waited.d.next = bits::<LOG_TRICKLE>(0);
            self.p_valid.d.next = false;
        }
    }
}
