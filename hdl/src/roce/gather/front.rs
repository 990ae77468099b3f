//! First stage of the gatherer: lengths, egress slot, header order.

use super::GatherJob;
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{HdrOp, SlotGrant, SlotReq, TxOp};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Take,
    Measure,
    Ask,
    Grant,
    /// An order without a packet goes on without a slot.
    Pass,
}

/// Takes packet orders, one at a time, to a granted slot.
#[derive(LogicBlock, Default)]
pub struct Front {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_op: MsgSink<TxOp>,
    pub m_slot: MsgSrc<SlotReq>,
    pub s_slot: MsgSink<SlotGrant>,
    pub m_hdr: MsgSrc<HdrOp>,
    pub m_job: MsgSrc<GatherJob>,
    state: DFF<State>,
    op: DFF<TxOp>,
    raw: DFF<Bit>,
    hdr_len: DFF<Bits<8>>,
    /// Payload, pad and ICRC bytes.
    body: DFF<Bits<14>>,
    pay: DFF<Bits<14>>,
    pad: DFF<Bits<2>>,
    slot: DFF<SlotReq>,
    slot_valid: DFF<Bit>,
    hdr: DFF<HdrOp>,
    hdr_valid: DFF<Bit>,
    job: DFF<GatherJob>,
    job_valid: DFF<Bit>,
    length: Signal<Local, Bits<13>>,
    low: Signal<Local, Bits<2>>,
    odd: Signal<Local, Bits<2>>,
    frame: Signal<Local, Bits<14>>,
    clear: Signal<Local, Bit>,
    ip: Signal<Local, Bits<8>>,
    tag: Signal<Local, Bits<8>>,
    reth: Signal<Local, Bits<8>>,
    imm: Signal<Local, Bits<8>>,
}

impl Logic for Front {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, state, op, raw, hdr_len, body, pay, pad, slot, slot_valid, hdr, hdr_valid, job, job_valid
        );
        self.m_slot.data.next = self.slot.q.val();
        self.m_slot.valid.next = self.slot_valid.q.val();
        self.m_hdr.data.next = self.hdr.q.val();
        self.m_hdr.valid.next = self.hdr_valid.q.val();
        self.m_job.data.next = self.job.q.val();
        self.m_job.valid.next = self.job_valid.q.val();
        self.slot_valid.d.next = self.slot_valid.q.val() & !self.m_slot.ready.val();
        self.hdr_valid.d.next = self.hdr_valid.q.val() & !self.m_hdr.ready.val();
        self.job_valid.d.next = self.job_valid.q.val() & !self.m_job.ready.val();
        self.clear.next = !self.job_valid.q.val() & !self.hdr_valid.q.val();
        self.s_op.ready.next = self.state.q.val() == State::Take;
        self.s_slot.ready.next = (self.state.q.val() == State::Grant) & self.clear.val();

        self.length.next = self.op.q.val().pay_len;
        // Pad to a multiple of 4: the negated low bits.
        self.low.next = self.length.val().get_bits::<2>(0) ^ 3;
        self.odd.next = self.low.val() + 1;
        self.frame.next = bit_cast::<14, 8>(self.hdr_len.q.val()) + self.body.q.val();
        // Ethernet 14, IPv4 20 or IPv6 40, UDP 8, BTH 12.
        self.ip.next = bits::<8>(54);
        if self.op.q.val().ipv6 {
            self.ip.next = bits::<8>(74);
        }
        self.tag.next = bit_cast::<8, 1>(self.op.q.val().vlan.into()) << 2;
        self.reth.next = bit_cast::<8, 1>(self.op.q.val().has_reth.into()) << 4;
        self.imm.next = bit_cast::<8, 1>(self.op.q.val().has_imm.into()) << 2;

        match self.state.q.val() {
            State::Take => {
                self.op.d.next = self.s_op.data.val();
                if self.s_op.valid.val() {
                    self.state.d.next = State::Measure;
                }
            }
            State::Measure => {
                self.raw.d.next = self.op.q.val().qp_type == 3;
                if self.op.q.val().qp_type == 3 {
                    self.hdr_len.d.next = bits::<8>(0);
                    self.pad.d.next = bits::<2>(0);
                    // A raw frame may be longer than `pay_len` can say.
                    self.pay.d.next = bit_cast::<14, 32>(self.op.q.val().dma_len);
                    self.body.d.next = bit_cast::<14, 32>(self.op.q.val().dma_len);
                } else {
                    self.hdr_len.d.next = self.ip.val() + self.tag.val() + self.reth.val() + self.imm.val();
                    self.pad.d.next = self.odd.val();
                    self.pay.d.next = bit_cast::<14, 13>(self.length.val());
                    self.body.d.next =
                        bit_cast::<14, 13>(self.length.val()) + bit_cast::<14, 2>(self.odd.val()) + bits::<14>(4);
                }
                self.state.d.next = State::Ask;
                if self.op.q.val().opcode == 0xff {
                    self.state.d.next = State::Pass;
                }
            }
            State::Ask => {
                if !self.slot_valid.q.val() {
                    self.slot_valid.d.next = true;
                    self.state.d.next = State::Grant;
                }
            }
            State::Grant => {
                if self.s_slot.valid.val() & self.clear.val() {
                    self.job_valid.d.next = true;
                    self.hdr_valid.d.next = !self.raw.q.val();
                    self.state.d.next = State::Take;
                }
            }
            State::Pass => {
                if !self.job_valid.q.val() {
                    self.job_valid.d.next = true;
                    self.state.d.next = State::Take;
                }
            }
            _ => {
                self.state.d.next = State::Take;
            }
        }
        if !self.slot_valid.q.val() {
            self.slot.d.next.frame_len = self.frame.val();
            self.slot.d.next.hdr_len = self.hdr_len.q.val();
            self.slot.d.next.pay_len = self.pay.q.val().get_bits::<13>(0);
            self.slot.d.next.bypass = false;
            self.slot.d.next.raw = self.raw.q.val();
        }
        if !self.hdr_valid.q.val() {
            self.hdr.d.next.kind = false;
            self.hdr.d.next.slot = self.s_slot.data.val().slot;
            self.hdr.d.next.qpn = self.op.q.val().qpn;
            self.hdr.d.next.opcode = self.op.q.val().opcode;
            self.hdr.d.next.dest_qpn = self.op.q.val().dest_qpn;
            self.hdr.d.next.psn = self.op.q.val().psn;
            self.hdr.d.next.ack_req = self.op.q.val().ack_req;
            self.hdr.d.next.solicited = self.op.q.val().solicited;
            self.hdr.d.next.pad = self.pad.q.val();
            self.hdr.d.next.pay_len = self.length.val();
            self.hdr.d.next.has_reth = self.op.q.val().has_reth;
            self.hdr.d.next.raddr = self.op.q.val().raddr;
            self.hdr.d.next.rkey = self.op.q.val().rkey;
            self.hdr.d.next.dma_len = self.op.q.val().dma_len;
            self.hdr.d.next.has_imm = self.op.q.val().has_imm;
            self.hdr.d.next.imm = self.op.q.val().imm;
        }
        if !self.job_valid.q.val() {
            self.job.d.next.slot = self.s_slot.data.val().slot;
            self.job.d.next.dst = self.s_slot.data.val().base + bit_cast::<18, 8>(self.hdr_len.q.val());
            self.job.d.next.function = self.op.q.val().function;
            self.job.d.next.pd = self.op.q.val().pd;
            self.job.d.next.pay_off = self.op.q.val().pay_off;
            self.job.d.next.pay_len = self.pay.q.val();
            self.job.d.next.handle = self.op.q.val().handle;
            self.job.d.next.num_sge = self.op.q.val().num_sge;
            self.job.d.next.inline_data = self.op.q.val().inline_data;
            self.job.d.next.free = self.op.q.val().free;
            self.job.d.next.only_free = self.op.q.val().opcode == 0xff;
            self.job.d.next.notify = self.op.q.val().notify;
            self.job.d.next.qpn = self.op.q.val().qpn;
            self.job.d.next.epoch = self.op.q.val().epoch;
            self.job.d.next.psn = self.op.q.val().psn;
            self.job.d.next.wqe_index = self.op.q.val().wqe_index;
        }
        if self.reset.val() {
            self.state.d.next = State::Take;
            self.slot_valid.d.next = false;
            self.hdr_valid.d.next = false;
            self.job_valid.d.next = false;
        }
    }
}
