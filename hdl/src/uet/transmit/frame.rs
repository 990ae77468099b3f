//! The headers of what a PDC sends: a request, its close, the question what became of a packet, or which responses may go.
use crate::prim::sum::{Diff, LessOne};
use crate::uet::head::types::{Carried, PdsFields, SesFields, UetHead};
use crate::uet::pds::types::{Description, FrameNote, Message, MessageTold, Outgoing, TxLine};
use crate::uet::types::{content, Choice, LossTold, TxRecord};
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
    /// CLEAR_COMMAND: all in front of `oldest` is answered; the peer's id.
    pub clears: Signal<In, Bit>,
    pub peer_id: Signal<In, Bits<16>>,
    pub message: Signal<In, MessageTold>,
    pub choice: Signal<In, Choice>,
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
    place: Diff<32>,
    answered: LessOne<32>,
    l: Signal<Local, TxLine>,
    t: Signal<Local, LossTold>,
    m: Signal<Local, MessageTold>,
    record: Signal<Local, TxRecord>,
    whole: Signal<Local, Message>,
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
        self.record.next = self.t.val().record;
        self.whole.next = self.m.val().message;
        self.says.next = self.whole.val().says;
        self.data.next = !self.asks.val() & !self.clears.val() & (self.record.val().content == content::DATA);
        self.first.next = !self.m.val().offset.any();
        self.place.a.next = self.t.val().psn;
        self.place.b.next = self.l.val().start;
        self.answered.a.next = self.t.val().oldest;
        self.note.next = self.no_note.val();
        self.head.next = self.no_head.val();
        self.carried.next = self.no_carried.val();
        self.pds.next = self.no_pds.val();
        self.ses.next = self.no_ses.val();
        self.note.next.peer = self.l.val().peer;
        self.note.next.control = !self.data.val();
        self.carried.next.entropy = self.choose.val().entropy;
        self.pds.next.spdcid = self.l.val().id;
        self.pds.next.dpdcid = self.l.val().peer_id;
        self.pds.next.retx = self.record.val().again;
        self.pds.next.ar = self.t.val().ar;
        self.pds.next.psn = self.t.val().psn;
        if self.data.val() {
            self.note.next.token = self.whole.val().token;
            self.note.next.offset = self.m.val().offset;
            self.note.next.bytes = self.m.val().bytes;
            self.pds.next.kind = bits::<5>(PdsType::RudReq as u64);
            if self.l.val().rod {
                self.pds.next.kind = bits::<5>(PdsType::RodReq as u64);
            }
            self.pds.next.follows = bits::<4>(NextHeader::Standard as u64);
            self.pds.next.word = self.t.val().clear;
            // Until the peer's id is known: how far it is from Start_PSN.
            self.pds.next.syn = self.l.val().syn;
            if self.l.val().syn {
                self.pds.next.dpdcid = bit_cast::<16, 12>(self.place.y.val().get_bits::<12>(0));
            }
            self.ses.next.form = bits::<3>(NextHeader::Standard as u64);
            self.ses.next.opcode = self.says.val().opcode;
            self.ses.next.dc = self.says.val().dc;
            self.ses.next.ie = self.says.val().ie;
            self.ses.next.rel = self.says.val().rel;
            self.ses.next.hd = self.says.val().hd;
            self.ses.next.som = self.first.val();
            self.ses.next.eom = self.m.val().last;
            self.ses.next.message = self.m.val().id;
            self.ses.next.generation = self.says.val().generation;
            self.ses.next.job = self.says.val().job;
            self.ses.next.pid = self.says.val().pid;
            self.ses.next.index = self.says.val().index;
            self.ses.next.offset = self.says.val().offset;
            self.ses.next.initiator = self.says.val().initiator;
            self.ses.next.key = self.says.val().key;
            self.ses.next.request_length = self.whole.val().length;
            if self.first.val() {
                self.ses.next.header_data = self.says.val().header_data;
            } else {
                self.ses.next.message_offset = self.m.val().offset;
            }
            self.head.next.pay_len = bit_cast::<16, 14>(self.m.val().bytes);
        } else {
            self.pds.next.kind = bits::<5>(PdsType::Control as u64);
            self.pds.next.follows = bits::<4>(ControlType::CloseCommand as u64);
            self.pds.next.rod = self.l.val().rod;
            if self.asks.val() {
                self.pds.next.follows = bits::<4>(ControlType::AckRequest as u64);
                self.pds.next.retx = false;
                self.pds.next.ar = true;
                self.pds.next.psn = self.t.val().oldest;
            } else if self.clears.val() {
                self.pds.next.follows = bits::<4>(ControlType::ClearCommand as u64);
                self.pds.next.retx = false;
                self.pds.next.ar = false;
                self.pds.next.psn = bits::<32>(0);
                self.pds.next.payload = self.answered.y.val();
                self.pds.next.dpdcid = self.peer_id.val();
            }
        }
        self.head.next.carried = self.carried.val();
        self.head.next.pds = self.pds.val();
        self.head.next.ses = self.ses.val();
        self.frame.next.note = self.note.val();
        self.frame.next.head = self.head.val();
    }
}
