//! Third stage of the gatherer: key answers meet their segments and places, reads go out, and inline data and seals go on to the copier.

use super::copy::{Piece, Sealed};
use super::{Owner, Place, Segment};
use crate::bus::{MsgSink, MsgSrc};
use crate::codes::key_status;
use crate::msg::{MrResp, PayCmd, SlotSeal};
use crate::stream::MsgSlice;
use ferric_abi::codes::CqeStatus;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// One segment per cycle.
#[derive(LogicBlock, Default)]
pub struct Issue {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_owner: MsgSink<Owner>,
    pub s_place: MsgSink<Place>,
    pub s_segment: MsgSink<Segment>,
    pub s_mr: MsgSink<MrResp>,
    pub m_pay: MsgSrc<PayCmd>,
    pub m_piece: MsgSrc<Piece>,
    pub m_seal: MsgSrc<Sealed>,
    /// The packet's queue pair, and the round that this is in.
    pub look: Signal<Out, Bits<24>>,
    pub round: Signal<In, Bits<2>>,
    /// Pulse: a key answer was taken.
    pub answered: Signal<Out, Bit>,
    /// Pulses: a packet is sealed, a read of it goes to the output register.
    pub sealed: Signal<Out, Bit>,
    pub reads_one: Signal<Out, Bit>,
    reads: DFF<Bits<9>>,
    status: DFF<Bits<8>>,
    /// A read of this packet was left out.
    left_out: DFF<Bit>,
    pay: MsgSlice<PayCmd>,
    open: Signal<Local, Bit>,
    fire: Signal<Local, Bit>,
    keyed: Signal<Local, Bit>,
    refused: Signal<Local, Bit>,
    outcome: Signal<Local, Bits<8>>,
    /// The packet is of an earlier round: it will be sent again, or has been acknowledged.
    stale: Signal<Local, Bit>,
    reads_on: Signal<Local, Bit>,
    issued: Signal<Local, Bits<9>>,
    dst: Signal<Local, Bits<18>>,
    seal: Signal<Local, SlotSeal>,
}

#[kernel]
impl Logic for Issue {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, reads, status, left_out);
        clock!(self, clock, pay);
        self.pay.reset.next = self.reset.val();
        MsgSrc::<PayCmd>::link(&mut self.m_pay, &mut self.pay.m);

        self.keyed.next = self.s_segment.data.val().keyed;
        // Whatever becomes of the segment, there is room for it.
        self.open.next = self.s_segment.valid.val() & self.s_owner.valid.val() & self.s_place.valid.val() & self.pay.s.ready.val() & self.m_seal.ready.val() & self.m_piece.ready.val();
        self.fire.next = self.open.val() & (!self.keyed.val() | self.s_mr.valid.val());
        self.s_mr.ready.next = self.open.val() & self.keyed.val();
        self.answered.next = self.fire.val() & self.keyed.val();
        self.s_segment.ready.next = self.fire.val();
        self.s_owner.ready.next = self.fire.val() & self.s_segment.data.val().last;
        self.s_place.ready.next = self.fire.val() & self.s_segment.data.val().last;

        // The first failure of a packet is the one that counts.
        self.refused.next = self.keyed.val() & self.s_mr.data.val().status.any();
        self.outcome.next = self.status.q.val();
        if !self.status.q.val().any() {
            self.outcome.next = self.s_segment.data.val().status;
            if self.refused.val() {
                self.outcome.next = bits::<8>(CqeStatus::LocalProtection as u64);
                if self.s_mr.data.val().status == key_status::FETCH {
                    self.outcome.next = bits::<8>(CqeStatus::Fatal as u64);
                }
            }
        }
        self.look.next = self.s_owner.data.val().qpn;
        self.stale.next = !self.s_owner.data.val().reply & !(self.s_owner.data.val().round == self.round.val());
        self.reads_on.next = self.keyed.val() & !self.outcome.val().any() & !self.stale.val() & !self.left_out.q.val();
        self.issued.next = self.reads.q.val();
        if self.reads_on.val() {
            self.issued.next = self.reads.q.val() + 1;
        }
        if self.fire.val() {
            self.status.d.next = self.outcome.val();
            self.reads.d.next = self.issued.val();
            self.left_out.d.next = self.stale.val() | self.left_out.q.val();
            if self.s_segment.data.val().last {
                self.status.d.next = bits::<8>(0);
                self.left_out.d.next = false;
                self.reads.d.next = bits::<9>(0);
            }
        }
        self.pay.s.valid.next = self.fire.val() & self.reads_on.val();
        self.sealed.next = self.fire.val() & self.s_segment.data.val().last;
        self.reads_one.next = self.pay.s.valid.val();
        self.pay.s.data.next.iova = self.s_mr.data.val().iova;
        self.pay.s.data.next.function = self.s_owner.data.val().function;
        self.pay.s.data.next.len = self.s_segment.data.val().len;
        self.dst.next = self.s_place.data.val().dst + bit_cast::<18, 14>(self.s_segment.data.val().at);
        self.pay.s.data.next.dst = self.dst.val();
        self.pay.s.data.next.slot = self.s_place.data.val().slot;
        self.m_seal.valid.next = self.fire.val() & self.s_segment.data.val().last;
        self.seal.next.slot = self.s_place.data.val().slot;
        self.seal.next.reads = self.issued.val();
        self.seal.next.abort = self.outcome.val().any() | self.stale.val() | self.left_out.q.val();
        self.seal.next.notify = self.s_owner.data.val().notify;
        self.seal.next.qpn = self.s_owner.data.val().qpn;
        self.seal.next.epoch = self.s_owner.data.val().epoch;
        self.seal.next.psn = self.s_owner.data.val().psn;
        self.seal.next.wqe_index = self.s_owner.data.val().wqe_index;
        // What is wrong with it is found when it is sent again.
        self.seal.next.status = self.outcome.val();
        if self.stale.val() | self.left_out.q.val() {
            self.seal.next.status = bits::<8>(CqeStatus::Success as u64);
        }
        self.seal.next.request = !self.s_owner.data.val().reply;
        self.seal.next.round = self.s_owner.data.val().round;
        self.seal.next.reply = self.s_owner.data.val().reply;
        self.seal.next.function = self.s_owner.data.val().function;
        self.m_seal.data.next.seal = self.seal.val();
        self.m_seal.data.next.copies = self.s_segment.data.val().inline_data;
        self.m_piece.valid.next = self.fire.val() & self.s_segment.data.val().inline_data;
        self.m_piece.data.next.handle = self.s_owner.data.val().handle;
        self.m_piece.data.next.granule = self.s_segment.data.val().granule;
        self.m_piece.data.next.dst = self.dst.val();
        self.m_piece.data.next.len = self.s_segment.data.val().len.get_bits::<6>(0);
        self.m_piece.data.next.last = self.s_segment.data.val().last;
        self.m_piece.data.next.free = self.s_owner.data.val().free;
        if self.reset.val() {
            self.reads.d.next = bits::<9>(0);
            self.status.d.next = bits::<8>(0);
            self.left_out.d.next = false;
        }
    }
}
