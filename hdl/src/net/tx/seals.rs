//! Seals of data frames wait for the inline bytes they speak for.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::SlotSeal;
use rust_hdl::prelude::*;

/// Register slice of two entries. Each seal waits for the inline writes that were under way when it came, and for no later ones: whoever writes without end
/// holds nobody's seals back.
#[derive(LogicBlock, Default)]
pub(super) struct SealQueue {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<SlotSeal>,
    pub m: MsgSrc<SlotSeal>,
    /// Inline writes taken before this cycle that are not in the buffer; pulse: one of them goes in.
    pub under_way: Signal<In, Bits<3>>,
    pub written: Signal<In, Bit>,
    first: DFF<SlotSeal>,
    first_valid: DFF<Bit>,
    first_waits: DFF<Bits<3>>,
    second: DFF<SlotSeal>,
    second_valid: DFF<Bit>,
    second_waits: DFF<Bits<3>>,
    came: Signal<Local, Bits<3>>,
    ahead: Signal<Local, Bits<3>>,
    behind: Signal<Local, Bits<3>>,
    ripe: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
}

impl Logic for SealQueue {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, first, first_valid, first_waits, second, second_valid, second_waits);
        self.ripe.next = !self.first_waits.q.val().any();
        self.m.data.next = self.first.q.val();
        self.m.valid.next = self.first_valid.q.val() & self.ripe.val();
        self.s.ready.next = !self.second_valid.q.val();
        self.go.next = (self.m.ready.val() & self.ripe.val()) | !self.first_valid.q.val();
        self.take.next = self.s.valid.val() & !self.second_valid.q.val();

        // What is left to wait for behind this cycle.
        self.came.next = self.under_way.val();
        self.ahead.next = self.first_waits.q.val();
        self.behind.next = self.second_waits.q.val();
        if self.written.val() {
            self.came.next = self.under_way.val() - 1;
            if self.first_waits.q.val().any() {
                self.ahead.next = self.first_waits.q.val() - 1;
            }
            if self.second_waits.q.val().any() {
                self.behind.next = self.second_waits.q.val() - 1;
            }
        }
        self.first_waits.d.next = self.ahead.val();
        self.second_waits.d.next = self.behind.val();
        if self.go.val() {
            self.first_valid.d.next = self.take.val() | self.second_valid.q.val();
            self.second_valid.d.next = false;
            self.first.d.next = self.s.data.val();
            self.first_waits.d.next = self.came.val();
            if self.second_valid.q.val() {
                self.first.d.next = self.second.q.val();
                self.first_waits.d.next = self.behind.val();
            }
        } else if self.take.val() {
            self.second_valid.d.next = true;
        }
        if !self.second_valid.q.val() {
            self.second.d.next = self.s.data.val();
            self.second_waits.d.next = self.came.val();
        }
        if self.reset.val() {
            self.first_valid.d.next = false;
            self.second_valid.d.next = false;
        }
    }
}
