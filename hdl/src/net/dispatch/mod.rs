//! Received descriptors to their engines. See README.md.

mod part;
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::codes::congestion;
use crate::msg::{CcEvent, RxAnswer, RxDesc, RxRequest};
use crate::stream::MsgFifo;
use ferric_abi::wire::{opcode, ECN_CE};
use ferric_hdl_derive::{kernel, BlockDefault};
pub use part::{AnswerPart, RequestPart};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s", &[]), // a place for each cell, both ways
    ("s_raw", &[]),
];

/// log2 of the descriptors each way. Each stands for a frame with at least one cell: as many as cells never overflow.
const LG_DESCS: usize = 9;

/// Acknowledges and responses to the requester; requests and, in between, raw frames to the responder; each in order.
#[derive(LogicBlock, BlockDefault)]
#[demand(1 << LG_DESCS == crate::net::cells::CELLS)]
pub struct Dispatch {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    /// RoCE packets.
    pub s: MsgSink<RxDesc>,
    /// Frames for the raw queue pair.
    pub s_raw: MsgSink<RxDesc>,
    pub m_resp: MsgSrc<RxRequest>,
    pub m_req: MsgSrc<RxAnswer>,
    /// Ticks.
    pub now: Signal<In, Bits<32>>,
    /// For congestion control: of frames with CE and of congestion notification packets, in the cycle after they are taken.
    pub notice: Signal<Out, CcEvent>,
    pub notice_valid: Signal<Out, Bit>,
    last: DFF<CcEvent>,
    noticed: DFF<Bit>,
    resp: MsgFifo<RxRequest, LG_DESCS>,
    req: MsgFifo<RxAnswer, LG_DESCS>,
    request: RequestPart,
    answer: AnswerPart,
    /// This cycle is a raw frame's: at most every second one while RoCE packets come.
    raw: DFF<Bit>,
    room: Signal<Local, Bit>,
    opcode: Signal<Local, Bits<8>>,
    answers: Signal<Local, Bit>,
    cnp: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Dispatch {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, last, noticed, raw);
        clock!(self, clock, resp, req);
        self.resp.reset.next = self.reset.val();
        self.req.reset.next = self.reset.val();
        MsgSrc::<RxRequest>::link(&mut self.m_resp, &mut self.resp.m);
        MsgSrc::<RxAnswer>::link(&mut self.m_req, &mut self.req.m);
        // IBTA table 38: 0x0d..0x10 READ response, 0x11 acknowledge, 0x12 ATOMIC acknowledge
        self.opcode.next = self.s.data.val().opcode;
        self.answers.next = (self.opcode.val() >= opcode::READ_RESPONSE_FIRST) & (self.opcode.val() <= opcode::ATOMIC_ACKNOWLEDGE);
        // Room on both sides, whichever it goes to: ready does not look at the descriptor, nor whose turn it is at the other port.
        self.room.next = self.resp.s.ready.val() & self.req.s.ready.val();
        self.raw.d.next = self.s_raw.valid.val() & (!self.raw.q.val() | !self.s.valid.val());
        self.s.ready.next = self.room.val() & !self.raw.q.val();
        self.s_raw.ready.next = self.room.val() & self.raw.q.val();
        self.answer.x.next = self.s.data.val();
        self.req.s.data.next = self.answer.y.val();
        self.req.s.valid.next = self.s.valid.val() & self.answers.val() & self.s.ready.val();
        self.resp.s.data.next = self.request.y.val();
        self.resp.s.valid.next = self.s.valid.val() & !self.answers.val() & self.s.ready.val();
        self.request.x.next = self.s.data.val();
        if self.raw.q.val() {
            self.request.x.next = self.s_raw.data.val();
            self.resp.s.valid.next = self.s_raw.valid.val() & self.s_raw.ready.val();
        }

        // Annex A17: congestion notification packet 0x81. RFC 3168: congestion experienced 3.
        self.cnp.next = self.opcode.val() == opcode::CNP;
        self.notice.next = self.last.q.val();
        self.notice_valid.next = self.noticed.q.val();
        self.noticed.d.next = self.s.valid.val() & self.s.ready.val() & (self.cnp.val() | (self.s.data.val().ecn == ECN_CE));
        self.last.d.next.context = self.s.data.val().dest_qpn;
        self.last.d.next.kind = bits::<3>(0);
        if self.cnp.val() {
            self.last.d.next.kind = bits::<3>(congestion::NOTIFICATION);
        }
        self.last.d.next.time = self.now.val();
        self.last.d.next.ecn = self.s.data.val().ecn;
        self.last.d.next.rtt = bits::<32>(0);
        self.last.d.next.bytes = self.s.data.val().frame_len;
        self.last.d.next.telemetry = bits::<32>(0);
        if self.reset.val() {
            self.raw.d.next = false;
            self.noticed.d.next = false;
        }
    }
}
