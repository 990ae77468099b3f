//! The headers of ACKs and NACKs.
use crate::prim::sum::Diff;
use crate::uet::pdc::types::PEER;
use crate::uet::pds::types::Outgoing;
use crate::uet::types::{Owed, RxTold};
use ferric_abi::uet::codes::{AckRequest, NextHeader, PdsType, ResponseOpcode, ReturnCode};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// What is answered.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Reply {
    pub peer: Bits<PEER>,
    /// The PDC's ids here and there; 0: it has none here.
    pub id: Bits<16>,
    pub peer_id: Bits<16>,
    /// A refusal, its code, and the PSN that is expected.
    pub nack: Bit,
    pub code: Bits<8>,
    pub expected: Bits<32>,
    /// An ACK with a response and all that is known; else of a control packet.
    pub full: Bit,
    /// The target wants to be closed.
    pub wants: Bit,
    /// Which packet is meant, how it came, and what semantics say of it.
    pub owed: Owed,
    pub service: Bits<16>,
}

/// Steady inputs; no registers.
#[derive(LogicBlock, BlockDefault)]
pub struct Frame {
    pub reply: Signal<In, Reply>,
    /// Answer to SACK.
    pub seen: Signal<In, RxTold>,
    pub mpr: Signal<In, Bits<8>>,
    pub frame: Signal<Out, Outgoing>,
    #[init(Constant::new(Outgoing::default()))]
    nothing: Constant<Outgoing>,
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
        self.frame.next = self.nothing.val();
        self.frame.next.note.peer = self.r.val().peer;
        self.frame.next.note.control = true;
        self.frame.next.head.carried.entropy = self.o.val().entropy;
        self.frame.next.head.pds.marked = self.o.val().marked;
        self.frame.next.head.pds.retx = self.o.val().retx;
        self.frame.next.head.pds.spdcid = self.r.val().id;
        self.frame.next.head.pds.dpdcid = self.r.val().peer_id;
        if self.r.val().nack {
            self.frame.next.head.pds.kind = bits::<5>(PdsType::Nack as u64);
            self.frame.next.head.pds.word = bit_cast::<16, 8>(self.r.val().code) << 8;
            self.frame.next.head.pds.psn = self.o.val().psn;
            self.frame.next.head.pds.payload = self.r.val().expected;
        } else {
            self.frame.next.head.pds.kind = bits::<5>(PdsType::Ack as u64);
            self.frame.next.head.pds.word = self.own.y.val().get_bits::<16>(0);
            self.frame.next.head.pds.psn = self.w.val().cack;
            if self.r.val().wants {
                self.frame.next.head.pds.req = bits::<2>(AckRequest::Close as u64);
            }
            if self.r.val().full {
                self.frame.next.head.pds.kind = bits::<5>(PdsType::AckCc as u64);
                self.frame.next.head.pds.follows = bits::<4>(NextHeader::Response as u64);
                self.frame.next.head.pds.mpr = self.mpr.val();
                self.frame.next.head.pds.sack_offset = self.base.y.val().get_bits::<16>(0);
                self.frame.next.head.pds.bitmap = self.w.val().bitmap;
                // As `NsccState`: service time, bytes received, how far out of order.
                self.frame.next.head.pds.state = (bit_cast::<64, 16>(self.r.val().service) << 48) | (bit_cast::<64, 24>(self.w.val().bytes) << 16) | bit_cast::<64, 16>(self.w.val().ooo);
                self.frame.next.head.ses.form = bits::<3>(NextHeader::Response as u64);
                self.frame.next.head.ses.opcode = bits::<6>(ResponseOpcode::Response as u64);
                if (self.o.val().code == ReturnCode::Ok as u64) | (self.o.val().code == ReturnCode::Null as u64) {
                    self.frame.next.head.ses.opcode = bits::<6>(ResponseOpcode::Default as u64);
                }
                self.frame.next.head.ses.code = self.o.val().code;
                self.frame.next.head.ses.message = self.o.val().message;
                self.frame.next.head.ses.modified_length = self.o.val().length;
            }
        }
    }
}
