//! The headers of ACKs, NACKs and CLEAR_REQUEST.
use super::types::Reply;
use crate::prim::sum::Diff;
use crate::uet::head::types::{Carried, PdsFields, SesFields, UetHead};
use crate::uet::pds::types::{FrameNote, Outgoing};
use crate::uet::types::{Owed, RxTold};
use ferric_abi::uet::codes::{AckRequest, ControlType, NextHeader, PdsType, ResponseOpcode, ReturnCode};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Steady inputs; no registers.
#[derive(LogicBlock, BlockDefault)]
pub struct Frame {
    pub reply: Signal<In, Reply>,
    /// Answer to SACK.
    pub seen: Signal<In, RxTold>,
    /// The newest PSN that has come.
    pub newest: Signal<In, Bits<32>>,
    pub mpr: Signal<In, Bits<8>>,
    pub frame: Signal<Out, Outgoing>,
    #[init(Constant::new(FrameNote::default()))]
    no_note: Constant<FrameNote>,
    #[init(Constant::new(UetHead::default()))]
    no_head: Constant<UetHead>,
    #[init(Constant::new(Carried::default()))]
    no_carried: Constant<Carried>,
    #[init(Constant::new(PdsFields::default()))]
    no_pds: Constant<PdsFields>,
    #[init(Constant::new(SesFields::default()))]
    no_ses: Constant<SesFields>,
    // The frame's parts.
    note: Signal<Local, FrameNote>,
    head: Signal<Local, UetHead>,
    carried: Signal<Local, Carried>,
    pds: Signal<Local, PdsFields>,
    ses: Signal<Local, SesFields>,
    own: Diff<32>,
    base: Diff<32>,
    r: Signal<Local, Reply>,
    o: Signal<Local, Owed>,
    w: Signal<Local, RxTold>,
}

#[kernel]
impl Logic for Frame {
    #[hdl_gen]
    fn update(&mut self) {
        self.r.next = self.reply.val();
        self.o.next = self.r.val().owed;
        self.w.next = self.seen.val();
        self.own.a.next = self.o.val().psn;
        self.own.b.next = self.w.val().cack;
        self.base.a.next = self.w.val().base;
        self.base.b.next = self.w.val().cack;
        self.note.next = self.no_note.val();
        self.head.next = self.no_head.val();
        self.carried.next = self.no_carried.val();
        self.pds.next = self.no_pds.val();
        self.ses.next = self.no_ses.val();
        self.note.next.peer = self.r.val().peer;
        self.note.next.control = true;
        self.carried.next.entropy = self.o.val().entropy;
        self.pds.next.marked = self.o.val().marked;
        self.pds.next.retx = self.o.val().retx;
        self.pds.next.spdcid = self.r.val().id;
        self.pds.next.dpdcid = self.r.val().peer_id;
        if self.r.val().nack {
            self.pds.next.kind = bits::<5>(PdsType::Nack as u64);
            self.pds.next.word = bit_cast::<16, 8>(self.r.val().code) << 8;
            self.pds.next.psn = self.o.val().psn;
            self.pds.next.payload = self.r.val().expected;
        } else if self.r.val().clears {
            // It has no packet whose path it could take: its entropy value is made of the PDC's id. It asks for all that has come.
            self.carried.next.entropy = self.r.val().id;
            self.pds.next.kind = bits::<5>(PdsType::Control as u64);
            self.pds.next.follows = bits::<4>(ControlType::ClearRequest as u64);
            self.pds.next.rod = self.r.val().rod;
            self.pds.next.payload = self.newest.val();
        } else {
            self.pds.next.kind = bits::<5>(PdsType::Ack as u64);
            self.pds.next.word = self.own.y.val().get_bits::<16>(0);
            self.pds.next.psn = self.w.val().cack;
            if self.r.val().wants {
                self.pds.next.req = bits::<2>(AckRequest::Close as u64);
            } else if self.w.val().held.any() {
                self.pds.next.req = bits::<2>(AckRequest::Clear as u64);
            }
            if self.r.val().full {
                self.pds.next.kind = bits::<5>(PdsType::AckCc as u64);
                self.pds.next.follows = bits::<4>(NextHeader::Response as u64);
                self.pds.next.mpr = self.mpr.val();
                self.pds.next.sack_offset = self.base.y.val().get_bits::<16>(0);
                self.pds.next.bitmap = self.w.val().bitmap;
                // As `NsccState`: service time, bytes received, how far out of order.
                self.pds.next.state = (bit_cast::<64, 16>(self.r.val().service) << 48) | (bit_cast::<64, 24>(self.w.val().bytes) << 16) | bit_cast::<64, 16>(self.w.val().ooo);
                self.ses.next.form = bits::<3>(NextHeader::Response as u64);
                self.ses.next.opcode = bits::<6>(ResponseOpcode::Response as u64);
                if (self.o.val().code == ReturnCode::Ok as u64) | (self.o.val().code == ReturnCode::Null as u64) {
                    self.ses.next.opcode = bits::<6>(ResponseOpcode::Default as u64);
                }
                self.ses.next.code = self.o.val().code;
                self.ses.next.message = self.o.val().message;
                self.ses.next.modified_length = self.o.val().length;
            }
        }
        self.head.next.carried = self.carried.val();
        self.head.next.pds = self.pds.val();
        self.head.next.ses = self.ses.val();
        self.frame.next.note = self.note.val();
        self.frame.next.head = self.head.val();
    }
}
