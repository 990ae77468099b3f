//! Received descriptors to their engines. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::RxDesc;
use crate::stream::MsgSlice;
use rust_hdl::prelude::*;

/// Acknowledges and responses to the requester, everything else (requests, raw frames) to the responder, each in order.
#[derive(LogicBlock, Default)]
pub struct Dispatch {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<RxDesc>,
    pub m_resp: MsgSrc<RxDesc>,
    pub m_req: MsgSrc<RxDesc>,
    /// The switch's place: one register, nothing is looked up yet.
    switch_slot: MsgSlice<RxDesc>,
    resp: MsgSlice<RxDesc>,
    req: MsgSlice<RxDesc>,
    opcode: Signal<Local, Bits<8>>,
    answers: Signal<Local, Bit>,
}

impl Logic for Dispatch {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, switch_slot, resp, req);
        self.switch_slot.reset.next = self.reset.val();
        self.resp.reset.next = self.reset.val();
        self.req.reset.next = self.reset.val();
        MsgSink::<RxDesc>::link(&mut self.s, &mut self.switch_slot.s);
        MsgSrc::<RxDesc>::link(&mut self.m_resp, &mut self.resp.m);
        MsgSrc::<RxDesc>::link(&mut self.m_req, &mut self.req.m);
        // IBTA table 38: 0x0d..0x10 READ response, 0x11 acknowledge, 0x12 ATOMIC acknowledge
        self.opcode.next = self.switch_slot.m.data.val().opcode;
        self.answers.next =
            !self.switch_slot.m.data.val().raw & (self.opcode.val() >= 0x0d) & (self.opcode.val() <= 0x12);
        self.resp.s.data.next = self.switch_slot.m.data.val();
        self.req.s.data.next = self.switch_slot.m.data.val();
        self.resp.s.valid.next = self.switch_slot.m.valid.val() & !self.answers.val();
        self.req.s.valid.next = self.switch_slot.m.valid.val() & self.answers.val();
        self.switch_slot.m.ready.next =
            (self.answers.val() & self.req.s.ready.val()) | (!self.answers.val() & self.resp.s.ready.val());
    }
}
