//! The headers of what a PDC sends: a request, its close, or the question what became of a packet.
use crate::prim::sum::Diff;
use crate::uet::pds::types::{Description, MessageTold, Outgoing, TxLine};
use crate::uet::types::{content, Choice, LossTold};
use ferric_abi::uet::codes::{ControlType, NextHeader, PdsType};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Steady inputs; no registers.
#[derive(LogicBlock, BlockDefault)]
pub struct Frame {
    pub line: Signal<In, TxLine>,
    /// Of SEND and AGAIN, or of RTO: `oldest` is asked for.
    pub loss: Signal<In, LossTold>,
    pub asks: Signal<In, Bit>,
    pub message: Signal<In, MessageTold>,
    pub choice: Signal<In, Choice>,
    pub frame: Signal<Out, Outgoing>,
    #[init(Constant::new(Outgoing::default()))]
    nothing: Constant<Outgoing>,
    place: Diff<32>,
    l: Signal<Local, TxLine>,
    t: Signal<Local, LossTold>,
    m: Signal<Local, MessageTold>,
    says: Signal<Local, Description>,
    data: Signal<Local, Bit>,
    first: Signal<Local, Bit>,
    choose: Signal<Local, Choice>,
}

#[kernel]
impl Logic for Frame {
    #[hdl_gen]
    fn update(&mut self) {
        self.l.next = self.line.val();
        self.t.next = self.loss.val();
        self.m.next = self.message.val();
        self.choose.next = self.choice.val();
        self.says.next = self.m.val().message.says;
        self.data.next = !self.asks.val() & (self.t.val().record.content == content::DATA);
        self.first.next = !self.m.val().offset.any();
        self.place.a.next = self.t.val().psn;
        self.place.b.next = self.l.val().start;
        self.frame.next = self.nothing.val();
        self.frame.next.note.peer = self.l.val().peer;
        self.frame.next.note.control = !self.data.val();
        self.frame.next.head.carried.entropy = self.choose.val().entropy;
        self.frame.next.head.pds.spdcid = self.l.val().id;
        self.frame.next.head.pds.dpdcid = self.l.val().peer_id;
        self.frame.next.head.pds.retx = self.t.val().record.again;
        self.frame.next.head.pds.ar = self.t.val().ar;
        self.frame.next.head.pds.psn = self.t.val().psn;
        if self.data.val() {
            self.frame.next.note.token = self.m.val().message.token;
            self.frame.next.note.offset = self.m.val().offset;
            self.frame.next.note.bytes = self.m.val().bytes;
            self.frame.next.head.pds.kind = bits::<5>(PdsType::RudReq as u64);
            if self.l.val().rod {
                self.frame.next.head.pds.kind = bits::<5>(PdsType::RodReq as u64);
            }
            self.frame.next.head.pds.follows = bits::<4>(NextHeader::Standard as u64);
            self.frame.next.head.pds.word = self.t.val().clear;
            // Until the peer's id is known: how far it is from Start_PSN.
            self.frame.next.head.pds.syn = self.l.val().syn;
            if self.l.val().syn {
                self.frame.next.head.pds.dpdcid = bit_cast::<16, 12>(self.place.y.val().get_bits::<12>(0));
            }
            self.frame.next.head.ses.form = bits::<3>(NextHeader::Standard as u64);
            self.frame.next.head.ses.opcode = self.says.val().opcode;
            self.frame.next.head.ses.dc = self.says.val().dc;
            self.frame.next.head.ses.ie = self.says.val().ie;
            self.frame.next.head.ses.rel = self.says.val().rel;
            self.frame.next.head.ses.hd = self.says.val().hd;
            self.frame.next.head.ses.som = self.first.val();
            self.frame.next.head.ses.eom = self.m.val().last;
            self.frame.next.head.ses.message = self.m.val().id;
            self.frame.next.head.ses.generation = self.says.val().generation;
            self.frame.next.head.ses.job = self.says.val().job;
            self.frame.next.head.ses.pid = self.says.val().pid;
            self.frame.next.head.ses.index = self.says.val().index;
            self.frame.next.head.ses.offset = self.says.val().offset;
            self.frame.next.head.ses.initiator = self.says.val().initiator;
            self.frame.next.head.ses.key = self.says.val().key;
            self.frame.next.head.ses.request_length = self.m.val().message.length;
            if self.first.val() {
                self.frame.next.head.ses.header_data = self.says.val().header_data;
            } else {
                self.frame.next.head.ses.message_offset = self.m.val().offset;
            }
            self.frame.next.head.pay_len = bit_cast::<16, 14>(self.m.val().bytes);
        } else {
            self.frame.next.head.pds.kind = bits::<5>(PdsType::Control as u64);
            self.frame.next.head.pds.follows = bits::<4>(ControlType::CloseCommand as u64);
            self.frame.next.head.pds.rod = self.l.val().rod;
            if self.asks.val() {
                self.frame.next.head.pds.follows = bits::<4>(ControlType::AckRequest as u64);
                self.frame.next.head.pds.retx = false;
                self.frame.next.head.pds.ar = true;
                self.frame.next.head.pds.psn = self.t.val().oldest;
            }
        }
    }
}
