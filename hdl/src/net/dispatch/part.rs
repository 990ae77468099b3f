//! The parts of a descriptor that its consumers look at: wires.

use crate::msg::{RxAnswer, RxDesc, RxRequest};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Of a request or a raw frame what the responder needs.
#[derive(LogicBlock, Default)]
pub struct RequestPart {
    pub x: Signal<In, RxDesc>,
    pub y: Signal<Out, RxRequest>,
}

#[kernel]
impl Logic for RequestPart {
    #[hdl_gen]
    fn update(&mut self) {
        self.y.next.handle = self.x.val().handle;
        self.y.next.frame_len = self.x.val().frame_len;
        self.y.next.ipv6 = self.x.val().ipv6;
        self.y.next.has_vlan = self.x.val().has_vlan;
        self.y.next.vlan_tci = self.x.val().vlan_tci;
        self.y.next.raw = self.x.val().raw;
        self.y.next.pay_off = self.x.val().pay_off;
        self.y.next.pay_len = self.x.val().pay_len;
        self.y.next.pad = self.x.val().pad;
        self.y.next.opcode = self.x.val().opcode;
        self.y.next.solicited = self.x.val().solicited;
        self.y.next.ack_req = self.x.val().ack_req;
        self.y.next.pkey = self.x.val().pkey;
        self.y.next.dest_qpn = self.x.val().dest_qpn;
        self.y.next.psn = self.x.val().psn;
        self.y.next.va = self.x.val().va;
        self.y.next.rkey = self.x.val().rkey;
        self.y.next.dma_len = self.x.val().dma_len;
        self.y.next.imm = self.x.val().imm;
        self.y.next.qkey = self.x.val().qkey;
        self.y.next.src_qpn = self.x.val().src_qpn;
        self.y.next.operand = self.x.val().operand;
        self.y.next.compare = self.x.val().compare;
        self.y.next.multicast = self.x.val().multicast;
        self.y.next.tunnel = self.x.val().tunnel;
        self.y.next.function = self.x.val().function;
    }
}

/// Of an acknowledge or a response what the requester needs.
#[derive(LogicBlock, Default)]
pub struct AnswerPart {
    pub x: Signal<In, RxDesc>,
    pub y: Signal<Out, RxAnswer>,
}

#[kernel]
impl Logic for AnswerPart {
    #[hdl_gen]
    fn update(&mut self) {
        self.y.next.handle = self.x.val().handle;
        self.y.next.pay_off = self.x.val().pay_off;
        self.y.next.pay_len = self.x.val().pay_len;
        self.y.next.opcode = self.x.val().opcode;
        self.y.next.dest_qpn = self.x.val().dest_qpn;
        self.y.next.psn = self.x.val().psn;
        self.y.next.aeth = self.x.val().aeth;
        self.y.next.operand = self.x.val().operand;
    }
}
