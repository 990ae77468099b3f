//! Two clients of a context store used in turn, so that the next line is fetched while the one before is in hand.
use crate::context::bus::CtxClient;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Fetches lines in the order they are asked for. At most two are out at a time; whoever asks again for one that is in hand gets it
/// when it has been given back.
#[derive(LogicBlock, BlockDefault)]
pub struct LinePair<T: Synth> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets what was asked for.
    pub reset: Signal<In, Bit>,
    pub ctx: [CtxClient<T>; 2],
    /// A line is wanted: taken in a cycle with `asked`, which does not depend on `ask`.
    pub ask: Signal<In, Bit>,
    pub id: Signal<In, Bits<24>>,
    pub asked: Signal<Out, Bit>,
    /// Pulse, in the cycle after `asked`: the line asked for was not wanted. It goes back as it comes, and nothing is `asked` before.
    pub drop: Signal<In, Bit>,
    /// The line asked for first, or the fault that it does not exist (nothing to give back then); gone in a cycle with `take`. Whoever has
    /// dropped it does not look.
    pub valid: Signal<Out, Bit>,
    pub line: Signal<Out, T>,
    pub fault: Signal<Out, Bit>,
    pub take: Signal<In, Bit>,
    /// Whose it is: name it when the line goes back.
    pub client: Signal<Out, Bit>,
    /// A line goes back; gone in a cycle with `given`.
    pub give: Signal<In, Bit>,
    pub give_client: Signal<In, Bit>,
    pub give_id: Signal<In, Bits<24>>,
    pub dirty: Signal<In, Bit>,
    pub after: Signal<In, T>,
    pub given: Signal<Out, Bit>,
    busy: DFF<Bit>,
    turn: DFF<Bit>,
    /// Clients with a line in hand.
    out0: DFF<Bit>,
    out1: DFF<Bit>,
    /// The line that was dropped has not come yet; it has come, and goes back.
    stray: DFF<Bit>,
    returns: DFF<Bit>,
    /// Of the line that was asked for last.
    asked_id: DFF<Bits<24>>,
    free: Signal<Local, Bit>,
    strays: Signal<Local, Bit>,
}

#[kernel]
impl<T: Synth> Logic for LinePair<T> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, busy, turn, out0, out1, stray, returns, asked_id);
        for i in 0..2 {
            self.ctx[i].acq_valid.next = false;
            self.ctx[i].acq_id.next = self.id.val();
            self.ctx[i].acq_tag.next = bits::<4>(0);
            self.ctx[i].line_ready.next = false;
            self.ctx[i].rel_valid.next = false;
            self.ctx[i].rel_id.next = self.give_id.val();
            self.ctx[i].rel_dirty.next = self.dirty.val();
            self.ctx[i].rel_data.next = self.after.val();
        }
        self.client.next = self.turn.q.val();
        self.strays.next = self.drop.val() | self.stray.q.val();
        // Not while the client has a line in hand; but the store takes both at once, what goes back and what is wanted.
        self.free.next = !self.busy.q.val() & (!self.out0.q.val() | (self.give.val() & !self.give_client.val()));
        if self.turn.q.val() {
            self.free.next = !self.busy.q.val() & (!self.out1.q.val() | (self.give.val() & self.give_client.val()));
        }
        if self.turn.q.val() {
            self.ctx[1].acq_valid.next = self.ask.val() & self.free.val();
            self.asked.next = self.ctx[1].acq_ready.val() & self.free.val();
            self.ctx[1].line_ready.next = self.take.val() | self.strays.val();
            self.valid.next = self.ctx[1].line_valid.val();
            self.line.next = self.ctx[1].line_data.val();
            self.fault.next = self.ctx[1].line_fault.val();
        } else {
            self.ctx[0].acq_valid.next = self.ask.val() & self.free.val();
            self.asked.next = self.ctx[0].acq_ready.val() & self.free.val();
            self.ctx[0].line_ready.next = self.take.val() | self.strays.val();
            self.valid.next = self.ctx[0].line_valid.val();
            self.line.next = self.ctx[0].line_data.val();
            self.fault.next = self.ctx[0].line_fault.val();
        }
        if self.ask.val() & self.asked.val() {
            self.asked_id.d.next = self.id.val();
            self.busy.d.next = true;
        }
        if self.give_client.val() {
            self.ctx[1].rel_valid.next = self.give.val();
            self.given.next = self.ctx[1].rel_ready.val();
            if self.give.val() & self.ctx[1].rel_ready.val() {
                self.out1.d.next = false;
            }
        } else {
            self.ctx[0].rel_valid.next = self.give.val();
            self.given.next = self.ctx[0].rel_ready.val();
            if self.give.val() & self.ctx[0].rel_ready.val() {
                self.out0.d.next = false;
            }
        }
        if self.take.val() & self.valid.val() {
            self.busy.d.next = false;
            if !self.fault.val() {
                self.turn.d.next = !self.turn.q.val();
                if self.turn.q.val() {
                    self.out1.d.next = true;
                } else {
                    self.out0.d.next = true;
                }
            }
        }
        // A line that is dropped: no other is given back through the client whose turn it is.
        self.stray.d.next = self.strays.val() & !self.valid.val();
        if self.strays.val() & self.valid.val() {
            self.returns.d.next = !self.fault.val();
            self.busy.d.next = !self.fault.val();
        }
        if self.returns.q.val() {
            if self.turn.q.val() {
                self.ctx[1].rel_valid.next = true;
                self.ctx[1].rel_id.next = self.asked_id.q.val();
                self.ctx[1].rel_dirty.next = false;
                self.returns.d.next = !self.ctx[1].rel_ready.val();
                self.busy.d.next = !self.ctx[1].rel_ready.val();
            } else {
                self.ctx[0].rel_valid.next = true;
                self.ctx[0].rel_id.next = self.asked_id.q.val();
                self.ctx[0].rel_dirty.next = false;
                self.returns.d.next = !self.ctx[0].rel_ready.val();
                self.busy.d.next = !self.ctx[0].rel_ready.val();
            }
        }
        if self.reset.val() {
            self.stray.d.next = false;
            self.returns.d.next = false;
            self.busy.d.next = false;
            self.out0.d.next = false;
            self.out1.d.next = false;
        }
    }
}
