//! Last stage of the gatherer: key answers meet their segments and places, reads and seals go out.

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
    pub m_seal: MsgSrc<SlotSeal>,
    /// Pulse: a key answer was taken.
    pub answered: Signal<Out, Bit>,
    /// Pulses: a packet is sealed, a read of it goes to the output register.
    pub sealed: Signal<Out, Bit>,
    pub reads_one: Signal<Out, Bit>,
    reads: DFF<Bits<9>>,
    status: DFF<Bits<8>>,
    pay: MsgSlice<PayCmd>,
    seal: MsgSlice<SlotSeal>,
    open: Signal<Local, Bit>,
    fire: Signal<Local, Bit>,
    keyed: Signal<Local, Bit>,
    refused: Signal<Local, Bit>,
    outcome: Signal<Local, Bits<8>>,
    issued: Signal<Local, Bits<9>>,
}

#[kernel]
impl Logic for Issue {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, reads, status);
        clock!(self, clock, pay, seal);
        self.pay.reset.next = self.reset.val();
        self.seal.reset.next = self.reset.val();
        MsgSrc::<PayCmd>::link(&mut self.m_pay, &mut self.pay.m);
        MsgSrc::<SlotSeal>::link(&mut self.m_seal, &mut self.seal.m);

        self.keyed.next = self.s_segment.data.val().keyed;
        self.open.next = self.s_segment.valid.val() & self.s_owner.valid.val() & self.s_place.valid.val() & self.pay.s.ready.val() & self.seal.s.ready.val();
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
        self.issued.next = self.reads.q.val();
        if self.keyed.val() & !self.outcome.val().any() {
            self.issued.next = self.reads.q.val() + 1;
        }
        if self.fire.val() {
            self.status.d.next = self.outcome.val();
            self.reads.d.next = self.issued.val();
            if self.s_segment.data.val().last {
                self.status.d.next = bits::<8>(0);
                self.reads.d.next = bits::<9>(0);
            }
        }
        self.pay.s.valid.next = self.fire.val() & self.keyed.val() & !self.outcome.val().any();
        self.sealed.next = self.fire.val() & self.s_segment.data.val().last;
        self.reads_one.next = self.pay.s.valid.val();
        self.pay.s.data.next.iova = self.s_mr.data.val().iova;
        self.pay.s.data.next.function = self.s_owner.data.val().function;
        self.pay.s.data.next.len = self.s_segment.data.val().len;
        self.pay.s.data.next.dst = self.s_place.data.val().dst + bit_cast::<18, 14>(self.s_segment.data.val().at);
        self.pay.s.data.next.slot = self.s_place.data.val().slot;
        self.seal.s.valid.next = self.fire.val() & self.s_segment.data.val().last;
        self.seal.s.data.next.slot = self.s_place.data.val().slot;
        self.seal.s.data.next.reads = self.issued.val();
        self.seal.s.data.next.abort = self.outcome.val().any();
        self.seal.s.data.next.notify = self.s_owner.data.val().notify;
        self.seal.s.data.next.qpn = self.s_owner.data.val().qpn;
        self.seal.s.data.next.epoch = self.s_owner.data.val().epoch;
        self.seal.s.data.next.psn = self.s_owner.data.val().psn;
        self.seal.s.data.next.wqe_index = self.s_owner.data.val().wqe_index;
        self.seal.s.data.next.status = self.outcome.val();
        self.seal.s.data.next.reply = self.s_owner.data.val().reply;
        if self.reset.val() {
            self.reads.d.next = bits::<9>(0);
            self.status.d.next = bits::<8>(0);
        }
    }
}
