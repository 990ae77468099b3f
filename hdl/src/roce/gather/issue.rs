//! Last stage of the gatherer: key answers meet their segments, reads and seals go out.

use super::{Owner, Segment};
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{MrResp, PayCmd, SlotSeal};
use rust_hdl::prelude::*;

/// One segment per cycle while its outputs are free.
#[derive(LogicBlock, Default)]
pub struct Issue {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_owner: MsgSink<Owner>,
    pub s_segment: MsgSink<Segment>,
    pub s_mr: MsgSink<MrResp>,
    pub m_pay: MsgSrc<PayCmd>,
    pub m_seal: MsgSrc<SlotSeal>,
    reads: DFF<Bits<9>>,
    status: DFF<Bits<8>>,
    pay: DFF<PayCmd>,
    pay_valid: DFF<Bit>,
    seal: DFF<SlotSeal>,
    seal_valid: DFF<Bit>,
    open: Signal<Local, Bit>,
    fire: Signal<Local, Bit>,
    keyed: Signal<Local, Bit>,
    refused: Signal<Local, Bit>,
    outcome: Signal<Local, Bits<8>>,
    issued: Signal<Local, Bits<9>>,
}

impl Logic for Issue {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, reads, status, pay, pay_valid, seal, seal_valid);
        self.m_pay.data.next = self.pay.q.val();
        self.m_pay.valid.next = self.pay_valid.q.val();
        self.m_seal.data.next = self.seal.q.val();
        self.m_seal.valid.next = self.seal_valid.q.val();
        self.pay_valid.d.next = self.pay_valid.q.val() & !self.m_pay.ready.val();
        self.seal_valid.d.next = self.seal_valid.q.val() & !self.m_seal.ready.val();

        self.keyed.next = self.s_segment.data.val().keyed;
        self.open.next = self.s_segment.valid.val()
            & self.s_owner.valid.val()
            & !self.pay_valid.q.val()
            & !self.seal_valid.q.val();
        self.fire.next = self.open.val() & (!self.keyed.val() | self.s_mr.valid.val());
        self.s_mr.ready.next = self.open.val() & self.keyed.val();
        self.s_segment.ready.next = self.fire.val();
        self.s_owner.ready.next = self.fire.val() & self.s_segment.data.val().last;

        // The first failure of a packet is the one that counts.
        self.refused.next = self.keyed.val() & self.s_mr.data.val().status.any();
        self.outcome.next = self.status.q.val();
        if !self.status.q.val().any() {
            self.outcome.next = self.s_segment.data.val().status;
            if self.refused.val() {
                self.outcome.next = bits::<8>(4);
                if self.s_mr.data.val().status == 6 {
                    self.outcome.next = bits::<8>(19);
                }
            }
        }
        self.issued.next = self.reads.q.val();
        if self.keyed.val() & !self.outcome.val().any() {
            self.issued.next = self.reads.q.val() + 1;
        }
        if self.fire.val() {
            self.pay_valid.d.next = self.keyed.val() & !self.outcome.val().any();
            self.status.d.next = self.outcome.val();
            self.reads.d.next = self.issued.val();
            if self.s_segment.data.val().last {
                self.seal_valid.d.next = true;
                self.status.d.next = bits::<8>(0);
                self.reads.d.next = bits::<9>(0);
            }
        }
        if !self.pay_valid.q.val() {
            self.pay.d.next.iova = self.s_mr.data.val().iova;
            self.pay.d.next.function = self.s_owner.data.val().function;
            self.pay.d.next.len = self.s_segment.data.val().len;
            self.pay.d.next.dst = self.s_segment.data.val().dst;
            self.pay.d.next.slot = self.s_owner.data.val().slot;
        }
        if !self.seal_valid.q.val() {
            self.seal.d.next.slot = self.s_owner.data.val().slot;
            self.seal.d.next.reads = self.issued.val();
            self.seal.d.next.abort = self.outcome.val().any();
            self.seal.d.next.notify = self.s_owner.data.val().notify;
            self.seal.d.next.qpn = self.s_owner.data.val().qpn;
            self.seal.d.next.epoch = self.s_owner.data.val().epoch;
            self.seal.d.next.psn = self.s_owner.data.val().psn;
            self.seal.d.next.wqe_index = self.s_owner.data.val().wqe_index;
            self.seal.d.next.status = self.outcome.val();
        }
        if self.reset.val() {
            self.reads.d.next = bits::<9>(0);
            self.status.d.next = bits::<8>(0);
            self.pay_valid.d.next = false;
            self.seal_valid.d.next = false;
        }
    }
}
