//! The next event and its line, fetched while the one before is in hand.
use super::intake::Event;
use crate::bus::MsgSink;
use crate::context::bus::CtxClient;
use crate::context::pair::LinePair;
use crate::records::ReqCtx;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Events in the order they come, each with its queue pair's line in a register.
#[derive(LogicBlock, Default)]
pub struct Fetch {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_event: MsgSink<Event>,
    pub ctx: [CtxClient<ReqCtx>; 2],
    /// The next event; gone in a cycle with `take`. `missing`: its queue pair does not exist, there is no line.
    pub valid: Signal<Out, Bit>,
    pub take: Signal<In, Bit>,
    pub ev: Signal<Out, Event>,
    /// Of `ev`.
    pub qpn: Signal<Out, Bits<24>>,
    pub kind: Signal<Out, Bits<4>>,
    pub line: Signal<Out, ReqCtx>,
    pub missing: Signal<Out, Bit>,
    /// Whose the line is, for `give_client`.
    pub client: Signal<Out, Bit>,
    /// A line goes back; gone in a cycle with `given`.
    pub give: Signal<In, Bit>,
    pub give_client: Signal<In, Bit>,
    pub give_id: Signal<In, Bits<24>>,
    pub dirty: Signal<In, Bit>,
    pub after: Signal<In, ReqCtx>,
    pub given: Signal<Out, Bit>,
    lines: LinePair<ReqCtx>,
    asked: DFF<Event>,
    got: DFF<Bit>,
    came: DFF<Event>,
    row: DFF<ReqCtx>,
    fault: DFF<Bit>,
    side: DFF<Bit>,
}

#[kernel]
impl Logic for Fetch {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, asked, got, came, row, fault, side);
        clock!(self, clock, lines);
        self.lines.reset.next = self.reset.val();
        for i in 0..2 {
            CtxClient::<ReqCtx>::link(&mut self.ctx[i], &mut self.lines.ctx[i]);
        }
        self.lines.ask.next = self.s_event.valid.val();
        self.lines.id.next = self.s_event.data.val().qpn;
        self.lines.drop.next = false;
        self.s_event.ready.next = self.lines.asked.val();
        if self.lines.asked.val() {
            self.asked.d.next = self.s_event.data.val();
        }
        self.valid.next = self.got.q.val();
        self.ev.next = self.came.q.val();
        self.qpn.next = self.came.q.val().qpn;
        self.kind.next = self.came.q.val().kind;
        self.line.next = self.row.q.val();
        self.missing.next = self.fault.q.val();
        self.client.next = self.side.q.val();
        if self.take.val() {
            self.got.d.next = false;
        }
        self.lines.take.next = !self.got.q.val();
        if !self.got.q.val() {
            self.got.d.next = self.lines.valid.val();
            self.came.d.next = self.asked.q.val();
            self.row.d.next = self.lines.line.val();
            self.fault.d.next = self.lines.fault.val();
            self.side.d.next = self.lines.client.val();
        }
        self.lines.give.next = self.give.val();
        self.lines.give_client.next = self.give_client.val();
        self.lines.give_id.next = self.give_id.val();
        self.lines.dirty.next = self.dirty.val();
        self.lines.after.next = self.after.val();
        self.given.next = self.lines.given.val();
        if self.reset.val() {
            self.got.d.next = false;
        }
    }
}
