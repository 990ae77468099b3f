//! From the PSNs of an order to places, which count from Start_PSN, and where they are.
use super::Line;
use crate::prim::sum::{Diff, PlusOne};
use crate::uet::types::{loss_ask, LossAsk};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// The order and the line are steady from the cycle after `go` on; the places from `done` on.
#[derive(LogicBlock, BlockDefault)]
pub struct Places {
    pub clock: Signal<In, Clock>,
    pub go: Signal<In, Bit>,
    pub ask: Signal<In, LossAsk>,
    pub line: Signal<In, Line>,
    pub done: Signal<Out, Bit>,
    /// Packets that the ACK covers, or the place that is expected; it is beyond all that was sent.
    pub covered: Signal<Out, Bits<32>>,
    pub bad: Signal<Out, Bit>,
    /// The packet that is meant, and whether it is in the window.
    pub own: Signal<Out, Bits<32>>,
    pub own_in: Signal<Out, Bit>,
    /// First place of a SACK; it is not beyond the next to be sent; CACK less it.
    pub from: Signal<Out, Bits<32>>,
    pub from_in: Signal<Out, Bit>,
    pub gap: Signal<Out, Bits<32>>,
    steps: [DFF<Bit>; 5],
    covers: DFF<Bits<32>>,
    owns: DFF<Bits<32>>,
    froms: DFF<Bits<32>>,
    gaps: DFF<Bits<32>>,
    beyond: DFF<Bit>,
    own_inside: DFF<Bit>,
    from_inside: DFF<Bit>,
    place: Diff<32>,
    behind: Diff<32>,
    more: PlusOne<32>,
}

#[kernel]
impl Logic for Places {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, covers, owns, froms, gaps, beyond, own_inside, from_inside);
        for i in 0..5 {
            self.steps[i].clock.next = self.clock.val();
        }
        self.steps[0].d.next = self.go.val();
        self.steps[1].d.next = self.steps[0].q.val();
        self.steps[2].d.next = self.steps[1].q.val();
        self.steps[3].d.next = self.steps[2].q.val();
        self.steps[4].d.next = self.steps[3].q.val();
        self.place.a.next = self.ask.val().base;
        self.place.b.next = self.line.val().start;
        self.more.a.next = self.covers.q.val();
        self.behind.a.next = self.line.val().cack;
        self.behind.b.next = self.froms.q.val();
        if self.steps[0].q.val() {
            self.place.a.next = self.ask.val().cack;
            self.covers.d.next = self.place.y.val();
        } else if self.steps[1].q.val() {
            self.place.a.next = self.ask.val().psn;
            self.owns.d.next = self.place.y.val();
            if self.ask.val().kind == loss_ask::ACK {
                self.covers.d.next = self.more.y.val();
            }
        } else if self.steps[2].q.val() {
            self.froms.d.next = self.place.y.val();
        } else if self.steps[3].q.val() {
            self.gaps.d.next = self.behind.y.val();
            self.beyond.d.next = self.covers.q.val() > self.line.val().sent;
            self.own_inside.d.next = (self.owns.q.val() >= self.line.val().cack) & (self.owns.q.val() < self.line.val().sent);
            self.from_inside.d.next = self.froms.q.val() <= self.line.val().sent;
        }
        self.done.next = self.steps[4].q.val();
        self.covered.next = self.covers.q.val();
        self.bad.next = self.beyond.q.val();
        self.own.next = self.owns.q.val();
        self.own_in.next = self.own_inside.q.val();
        self.from.next = self.froms.q.val();
        self.from_in.next = self.from_inside.q.val();
        self.gap.next = self.gaps.q.val();
    }
}
