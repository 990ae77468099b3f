//! Received descriptors to their engines. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::RxDesc;
use crate::stream::MsgFifo;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// log2 of the descriptors each way. Each stands for a frame with at least one cell: as many as cells never overflow.
const LG_DESCS: usize = 9;

/// Acknowledges and responses to the requester, everything else (requests, raw frames) to the responder, each in order.
#[derive(LogicBlock, BlockDefault)]
#[demand(1 << LG_DESCS == crate::net::cells::CELLS)]
pub struct Dispatch {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<RxDesc>,
    pub m_resp: MsgSrc<RxDesc>,
    pub m_req: MsgSrc<RxDesc>,
    resp: MsgFifo<RxDesc, LG_DESCS>,
    req: MsgFifo<RxDesc, LG_DESCS>,
    opcode: Signal<Local, Bits<8>>,
    answers: Signal<Local, Bit>,
}

impl Logic for Dispatch {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, resp, req);
        self.resp.reset.next = self.reset.val();
        self.req.reset.next = self.reset.val();
        MsgSrc::<RxDesc>::link(&mut self.m_resp, &mut self.resp.m);
        MsgSrc::<RxDesc>::link(&mut self.m_req, &mut self.req.m);
        // IBTA table 38: 0x0d..0x10 READ response, 0x11 acknowledge, 0x12 ATOMIC acknowledge
        self.opcode.next = self.s.data.val().opcode;
        self.answers.next =
            !self.s.data.val().raw & (self.opcode.val() >= 0x0d) & (self.opcode.val() <= 0x12);
        // Room on both sides, whichever it goes to: ready does not look at the descriptor.
        self.s.ready.next = self.resp.s.ready.val() & self.req.s.ready.val();
        self.resp.s.data.next = self.s.data.val();
        self.req.s.data.next = self.s.data.val();
        self.resp.s.valid.next = self.s.valid.val() & !self.answers.val() & self.req.s.ready.val();
        self.req.s.valid.next = self.s.valid.val() & self.answers.val() & self.resp.s.ready.val();
    }
}
