//! Received frames of the target: requests to the responder, all others back to the cell buffer.
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{CellRead, RxDesc, RxRequest};
use crate::net::dispatch::RequestPart;
use ferric_abi::wire::opcode;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// One descriptor at a time. There is no requester whom an answer could be for; frames that are not RoCE were seen by others on their way in.
#[derive(LogicBlock, Default)]
pub struct Sort {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<RxDesc>,
    pub m_resp: MsgSrc<RxRequest>,
    pub m_free: MsgSrc<CellRead>,
    desc: DFF<RxDesc>,
    request: RequestPart,
    resp_busy: DFF<Bit>,
    free_busy: DFF<Bit>,
    opcode: Signal<Local, Bits<8>>,
    useless: Signal<Local, Bit>,
    open: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Sort {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, desc, resp_busy, free_busy);
        self.request.x.next = self.desc.q.val();
        self.m_resp.data.next = self.request.y.val();
        self.m_resp.valid.next = self.resp_busy.q.val();
        if self.m_resp.ready.val() {
            self.resp_busy.d.next = false;
        }
        self.m_free.data.next.handle = self.desc.q.val().handle;
        self.m_free.data.next.off = bits::<14>(0);
        self.m_free.data.next.len = bits::<14>(0);
        self.m_free.data.next.free = true;
        self.m_free.valid.next = self.free_busy.q.val();
        if self.m_free.ready.val() {
            self.free_busy.d.next = false;
        }
        // Answers: IBTA table 38, 0x0d to 0x12.
        self.opcode.next = self.s.data.val().opcode;
        self.useless.next = self.s.data.val().raw | ((self.opcode.val() >= opcode::READ_RESPONSE_FIRST) & (self.opcode.val() <= opcode::ATOMIC_ACKNOWLEDGE));
        self.open.next = !self.resp_busy.q.val() & !self.free_busy.q.val();
        self.s.ready.next = self.open.val();
        if self.open.val() {
            self.desc.d.next = self.s.data.val();
            self.resp_busy.d.next = self.s.valid.val() & !self.useless.val();
            self.free_busy.d.next = self.s.valid.val() & self.useless.val();
        }
        if self.reset.val() {
            self.resp_busy.d.next = false;
            self.free_busy.d.next = false;
        }
    }
}
