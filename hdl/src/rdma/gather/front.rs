//! First stage of the gatherer: lengths, egress slot, header order.

use super::Place;
use crate::bus::{MsgSink, MsgSrc};
use crate::codes::header;
use crate::msg::{HdrOp, SlotGrant, SlotReq, TxOp};
use crate::stream::{MsgFifo, MsgSlice};
use ferric_abi::codes::QpType;
use ferric_abi::wire::ICRC_BYTES;
use ferric_abi::wire::{Aeth, AtomicAckEth, AtomicEth, Deth};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// A packet whose slot has been asked for. `hdr`: its header order but for the slot.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Asked {
    hdr: HdrOp,
    hdr_len: Bits<8>,
    raw: Bit,
}

/// Asks for slots in packet order, up to 32 ahead of the grants; hands every grant on as a header order and a place.
/// Two stages: the order, its lengths. One packet per cycle.
#[derive(LogicBlock, Default)]
pub struct Front {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Packet orders, those without a packet left out.
    pub op: Signal<In, TxOp>,
    pub op_valid: Signal<In, Bit>,
    /// Registered.
    pub op_ready: Signal<Out, Bit>,
    pub m_slot: MsgSrc<SlotReq>,
    pub s_slot: MsgSink<SlotGrant>,
    pub m_hdr: MsgSrc<HdrOp>,
    /// Where each packet's payload goes.
    pub m_place: MsgSrc<Place>,
    first: DFF<TxOp>,
    first_valid: DFF<Bit>,
    second_valid: DFF<Bit>,
    raw: DFF<Bit>,
    hdr_len: DFF<Bits<8>>,
    /// Payload, pad and ICRC bytes.
    body: DFF<Bits<14>>,
    pay: DFF<Bits<14>>,
    asked: MsgFifo<Asked, 5>,
    slots: MsgSlice<SlotReq>,
    hdrs: MsgSlice<HdrOp>,
    places: MsgFifo<Place, 5>,
    length: Signal<Local, Bits<13>>,
    low: Signal<Local, Bits<2>>,
    odd: Signal<Local, Bits<2>>,
    is_raw: Signal<Local, Bit>,
    len: Signal<Local, Bits<8>>,
    ip: Signal<Local, Bits<8>>,
    tag: Signal<Local, Bits<8>>,
    reth: Signal<Local, Bits<8>>,
    imm: Signal<Local, Bits<8>>,
    other: Signal<Local, Bits<8>>,
    first_go: Signal<Local, Bit>,
    second_go: Signal<Local, Bit>,
    grant: Signal<Local, Bit>,
    grant_open: Signal<Local, Bit>,
    hdr: Signal<Local, HdrOp>,
    dst: Signal<Local, Bits<18>>,
}

#[kernel]
impl Logic for Front {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, first, first_valid, second_valid, raw, hdr_len, body, pay);
        clock!(self, clock, asked, slots, hdrs, places);
        self.asked.reset.next = self.reset.val();
        self.slots.reset.next = self.reset.val();
        self.hdrs.reset.next = self.reset.val();
        self.places.reset.next = self.reset.val();
        MsgSrc::<SlotReq>::link(&mut self.m_slot, &mut self.slots.m);
        MsgSrc::<HdrOp>::link(&mut self.m_hdr, &mut self.hdrs.m);
        MsgSrc::<Place>::link(&mut self.m_place, &mut self.places.m);

        // First stage: the order.
        self.second_go.next = self.second_valid.q.val() & self.slots.s.ready.val();
        self.first_go.next = self.first_valid.q.val() & self.asked.s.ready.val() & (!self.second_valid.q.val() | self.second_go.val());
        self.op_ready.next = !self.first_valid.q.val() | self.first_go.val();
        if !self.first_valid.q.val() | self.first_go.val() {
            self.first.d.next = self.op.val();
            self.first_valid.d.next = self.op_valid.val();
        }

        // Second stage: its lengths.
        self.length.next = self.first.q.val().pay_len;
        // Pad to a multiple of 4: the negated low bits.
        self.low.next = self.length.val().get_bits::<2>(0) ^ 3;
        self.odd.next = self.low.val() + 1;
        // Ethernet 14, IPv4 20 or IPv6 40, UDP 8, BTH 12.
        self.ip.next = bits::<8>(header::ROCE4);
        if self.first.q.val().ipv6 {
            self.ip.next = bits::<8>(header::ROCE6);
        }
        self.tag.next = bit_cast::<8, 1>(self.first.q.val().vlan.into()) << 2;
        self.reth.next = bit_cast::<8, 1>(self.first.q.val().has_reth.into()) << 4;
        self.imm.next = bit_cast::<8, 1>(self.first.q.val().has_imm.into()) << 2;
        // At most one of these, and none of the others with it but immediate data with the DETH.
        self.other.next = bits::<8>(0);
        if self.first.q.val().has_atomic {
            self.other.next = bits::<8>(AtomicEth::BYTES as u64);
        } else if self.first.q.val().has_atomic_ack {
            self.other.next = bits::<8>((Aeth::BYTES + AtomicAckEth::BYTES) as u64);
        } else if self.first.q.val().has_deth {
            self.other.next = bits::<8>(Deth::BYTES as u64);
        } else if self.first.q.val().has_aeth {
            self.other.next = bits::<8>(Aeth::BYTES as u64);
        }
        self.is_raw.next = self.first.q.val().qp_type == QpType::Raw as u64;
        self.len.next = self.ip.val() + self.tag.val() + self.reth.val() + (self.imm.val() | self.other.val());
        if self.is_raw.val() {
            self.len.next = bits::<8>(0);
        }
        self.second_valid.d.next = self.first_go.val() | (self.second_valid.q.val() & !self.second_go.val());
        if self.first_go.val() {
            self.raw.d.next = self.is_raw.val();
            self.hdr_len.d.next = self.len.val();
            self.pay.d.next = bit_cast::<14, 13>(self.length.val());
            self.body.d.next = bit_cast::<14, 13>(self.length.val()) + bit_cast::<14, 2>(self.odd.val()) + bits::<14>(ICRC_BYTES);
            if self.is_raw.val() {
                // A raw frame may be longer than `pay_len` can say.
                self.pay.d.next = bit_cast::<14, 32>(self.first.q.val().dma_len);
                self.body.d.next = bit_cast::<14, 32>(self.first.q.val().dma_len);
            }
        }
        self.slots.s.valid.next = self.second_valid.q.val();
        self.slots.s.data.next.frame_len = bit_cast::<14, 8>(self.hdr_len.q.val()) + self.body.q.val();
        self.slots.s.data.next.hdr_len = bit_cast::<9, 8>(self.hdr_len.q.val());
        self.slots.s.data.next.pay_len = self.pay.q.val().get_bits::<13>(0);
        self.slots.s.data.next.bypass = false;
        self.slots.s.data.next.raw = self.raw.q.val();
        self.slots.s.data.next.client = bits::<3>(0);
        self.hdr.next.kind = false;
        self.hdr.next.slot = bits::<8>(0);
        self.hdr.next.qpn = self.first.q.val().qpn;
        self.hdr.next.opcode = self.first.q.val().opcode;
        self.hdr.next.dest_qpn = self.first.q.val().dest_qpn;
        self.hdr.next.psn = self.first.q.val().psn;
        self.hdr.next.ack_req = self.first.q.val().ack_req;
        self.hdr.next.solicited = self.first.q.val().solicited;
        self.hdr.next.pad = self.odd.val();
        self.hdr.next.pay_len = self.length.val();
        self.hdr.next.has_reth = self.first.q.val().has_reth;
        self.hdr.next.raddr = self.first.q.val().raddr;
        self.hdr.next.rkey = self.first.q.val().rkey;
        self.hdr.next.dma_len = self.first.q.val().dma_len;
        self.hdr.next.has_imm = self.first.q.val().has_imm;
        self.hdr.next.imm = self.first.q.val().imm;
        self.hdr.next.has_aeth = self.first.q.val().has_aeth;
        self.hdr.next.aeth = self.first.q.val().aeth;
        self.hdr.next.has_atomic = self.first.q.val().has_atomic;
        self.hdr.next.has_atomic_ack = self.first.q.val().has_atomic_ack;
        self.hdr.next.operand = self.first.q.val().operand;
        self.hdr.next.compare = self.first.q.val().compare;
        self.hdr.next.has_deth = self.first.q.val().has_deth;
        self.hdr.next.has_feth = self.first.q.val().has_feth;
        self.asked.s.valid.next = self.first_go.val();
        self.asked.s.data.next.hdr = self.hdr.val();
        self.asked.s.data.next.hdr_len = self.len.val();
        self.asked.s.data.next.raw = self.is_raw.val();

        // Grants, in the order of the requests.
        self.grant_open.next = self.asked.m.valid.val() & self.hdrs.s.ready.val() & self.places.s.ready.val();
        self.grant.next = self.grant_open.val() & self.s_slot.valid.val();
        self.s_slot.ready.next = self.grant_open.val();
        self.asked.m.ready.next = self.grant.val();
        self.hdrs.s.valid.next = self.grant.val() & !self.asked.m.data.val().raw;
        self.hdrs.s.data.next = self.asked.m.data.val().hdr;
        self.hdrs.s.data.next.slot = self.s_slot.data.val().slot;
        self.dst.next = self.s_slot.data.val().base + bit_cast::<18, 8>(self.asked.m.data.val().hdr_len);
        self.places.s.valid.next = self.grant.val();
        self.places.s.data.next.slot = self.s_slot.data.val().slot;
        self.places.s.data.next.dst = self.dst.val();
        if self.reset.val() {
            self.first_valid.d.next = false;
            self.second_valid.d.next = false;
        }
    }
}
