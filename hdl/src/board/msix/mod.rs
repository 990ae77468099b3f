//! MSI-X: the vector table, and messages as memory writes behind the core's own. See README.md.

mod fire;
mod table;
#[cfg(test)]
mod tests;

pub use fire::Fire;
pub use table::Table;

use super::lite::{LiteSlave, ReadSrc, WriteSrc};
use crate::bus::MsgSink;
use crate::msg::MsixReq;
use crate::stream::{AxisSlice, MsgSlice};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// A write's address.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct WriteAt {
    pub addr: Bits<64>,
    pub len: Bits<8>,
}

/// Writes pass from `s` to `m`; requests of `msix` become writes among them; `tbl` is the table (AXI4-Lite).
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 512 && K == 64, "a message has its place in 64 bytes")]
pub struct Msix<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// MSI-X is on; all vectors are masked.
    pub enable: Signal<In, Bit>,
    pub mask: Signal<In, Bit>,
    pub msix: MsgSink<MsixReq>,
    pub s_aw_valid: Signal<In, Bit>,
    pub s_aw_ready: Signal<Out, Bit>,
    pub s_aw_addr: Signal<In, Bits<64>>,
    pub s_aw_len: Signal<In, Bits<8>>,
    pub s_w_valid: Signal<In, Bit>,
    pub s_w_ready: Signal<Out, Bit>,
    pub s_w_data: Signal<In, Bits<W>>,
    pub s_w_strb: Signal<In, Bits<K>>,
    pub s_w_last: Signal<In, Bit>,
    pub s_b_valid: Signal<Out, Bit>,
    pub s_b_ready: Signal<In, Bit>,
    pub s_b_resp: Signal<Out, Bits<2>>,
    pub m_aw_valid: Signal<Out, Bit>,
    pub m_aw_ready: Signal<In, Bit>,
    pub m_aw_addr: Signal<Out, Bits<64>>,
    pub m_aw_len: Signal<Out, Bits<8>>,
    pub m_w_valid: Signal<Out, Bit>,
    pub m_w_ready: Signal<In, Bit>,
    pub m_w_data: Signal<Out, Bits<W>>,
    pub m_w_strb: Signal<Out, Bits<K>>,
    pub m_w_last: Signal<Out, Bit>,
    pub m_b_valid: Signal<In, Bit>,
    pub m_b_ready: Signal<Out, Bit>,
    pub m_b_resp: Signal<In, Bits<2>>,
    pub tbl_aw_valid: Signal<In, Bit>,
    pub tbl_aw_ready: Signal<Out, Bit>,
    pub tbl_aw_addr: Signal<In, Bits<13>>,
    pub tbl_w_valid: Signal<In, Bit>,
    pub tbl_w_ready: Signal<Out, Bit>,
    pub tbl_w_data: Signal<In, Bits<32>>,
    pub tbl_w_strb: Signal<In, Bits<4>>,
    pub tbl_b_valid: Signal<Out, Bit>,
    pub tbl_b_ready: Signal<In, Bit>,
    pub tbl_b_resp: Signal<Out, Bits<2>>,
    pub tbl_ar_valid: Signal<In, Bit>,
    pub tbl_ar_ready: Signal<Out, Bit>,
    pub tbl_ar_addr: Signal<In, Bits<13>>,
    pub tbl_r_valid: Signal<Out, Bit>,
    pub tbl_r_ready: Signal<In, Bit>,
    pub tbl_r_data: Signal<Out, Bits<32>>,
    pub tbl_r_resp: Signal<Out, Bits<2>>,
    bus: LiteSlave<13>,
    entries: Table,
    fire: Fire<W, K>,
    at: MsgSlice<WriteAt>,
    beats: AxisSlice<W, K>,
    answers: MsgSlice<Bits<2>>,
    /// Writes whose address has passed and whose last beat has not.
    owed: DFF<Bits<8>>,
    /// Writes not answered yet.
    open: DFF<Bits<10>>,
    /// Answers until the message's own, and that one is awaited.
    before: DFF<Bits<10>>,
    awaited: DFF<Bit>,
    /// No new address of `s`.
    closed: DFF<Bit>,
    takes_at: Signal<Local, Bit>,
    takes_beat: Signal<Local, Bit>,
    last_beat: Signal<Local, Bit>,
    own_at: Signal<Local, Bit>,
    own_beat: Signal<Local, Bit>,
    own_answer: Signal<Local, Bit>,
    answered: Signal<Local, Bit>,
    passes: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Msix<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, owed, open, before, awaited, closed);
        clock!(self, clock, bus, entries, fire, at, beats, answers);
        self.bus.reset.next = self.reset.val();
        self.entries.reset.next = self.reset.val();
        self.fire.reset.next = self.reset.val();
        self.at.reset.next = self.reset.val();
        self.beats.reset.next = self.reset.val();
        self.answers.reset.next = self.reset.val();
        MsgSink::<MsixReq>::link(&mut self.msix, &mut self.fire.msix);
        self.fire.enable.next = self.enable.val() & !self.mask.val();
        self.fire.masks.next = self.entries.masks.val();
        self.entries.pending.next = self.fire.pending.val();
        self.entries.look.next = self.fire.look.val();
        self.fire.found.next = self.entries.found.val();
        // Addresses: the core's while open, the message's when all beats of those before have passed.
        self.passes.next = !self.closed.q.val() & (self.owed.q.val() != 255) & (self.open.q.val() != 1023);
        self.own_at.next = self.closed.q.val() & (self.owed.q.val() == 0) & self.fire.at_valid.val();
        self.takes_at.next = self.passes.val() & self.s_aw_valid.val() & self.at.s.ready.val();
        self.s_aw_ready.next = self.passes.val() & self.at.s.ready.val();
        self.at.s.data.next.addr = self.s_aw_addr.val();
        self.at.s.data.next.len = self.s_aw_len.val();
        self.at.s.valid.next = self.passes.val() & self.s_aw_valid.val();
        if self.closed.q.val() {
            self.at.s.data.next.addr = self.fire.addr.val();
            self.at.s.data.next.len = bits::<8>(0);
            self.at.s.valid.next = self.own_at.val();
        }
        self.fire.at_ready.next = self.own_at.val() & self.at.s.ready.val();
        // Beats: of writes whose address has passed; the message's while `s` is closed and owes none.
        self.takes_beat.next = self.s_w_valid.val() & (self.owed.q.val() != 0) & self.beats.s.ready.val();
        self.last_beat.next = self.takes_beat.val() & self.s_w_last.val();
        self.s_w_ready.next = (self.owed.q.val() != 0) & self.beats.s.ready.val();
        self.own_beat.next = self.closed.q.val() & (self.owed.q.val() == 0) & self.fire.beat_valid.val();
        self.beats.s.data.next = self.s_w_data.val();
        self.beats.s.keep.next = self.s_w_strb.val();
        self.beats.s.last.next = self.s_w_last.val();
        self.beats.s.valid.next = self.s_w_valid.val() & (self.owed.q.val() != 0);
        if self.owed.q.val() == 0 {
            self.beats.s.data.next = self.fire.line.val();
            self.beats.s.keep.next = self.fire.strobes.val();
            self.beats.s.last.next = true;
            self.beats.s.valid.next = self.own_beat.val();
        }
        self.fire.beat_ready.next = self.own_beat.val() & self.beats.s.ready.val();
        if self.takes_at.val() & !self.last_beat.val() {
            self.owed.d.next = self.owed.q.val() + 1;
        }
        if self.last_beat.val() & !self.takes_at.val() {
            self.owed.d.next = self.owed.q.val() - 1;
        }
        // Closed from the moment a message is ready until its address and beat have passed.
        self.closed.d.next = self.fire.at_valid.val() | self.fire.beat_valid.val();
        // Answers come in the order of the addresses: the message's own is swallowed.
        self.answered.next = self.m_b_valid.val() & self.answers.s.ready.val();
        self.own_answer.next = self.awaited.q.val() & (self.before.q.val() == 0);
        self.m_b_ready.next = self.answers.s.ready.val();
        self.answers.s.data.next = self.m_b_resp.val();
        self.answers.s.valid.next = self.m_b_valid.val() & !self.own_answer.val();
        if self.answered.val() {
            if self.own_answer.val() {
                self.awaited.d.next = false;
            } else {
                self.open.d.next = self.open.q.val() - 1;
                self.before.d.next = self.before.q.val() - 1;
            }
        }
        if self.takes_at.val() {
            self.open.d.next = self.open.q.val() + 1;
            if self.answered.val() & !self.own_answer.val() {
                self.open.d.next = self.open.q.val();
            }
        }
        self.fire.free.next = !self.awaited.q.val();
        if self.own_at.val() & self.at.s.ready.val() {
            self.awaited.d.next = true;
            self.before.d.next = self.open.q.val();
            if self.answered.val() {
                self.before.d.next = self.open.q.val() - 1;
            }
        }
        if self.reset.val() {
            self.owed.d.next = bits::<8>(0);
            self.open.d.next = bits::<10>(0);
            self.awaited.d.next = false;
            self.closed.d.next = false;
        }
        self.m_aw_addr.next = self.at.m.data.val().addr;
        self.m_aw_len.next = self.at.m.data.val().len;
        self.m_aw_valid.next = self.at.m.valid.val();
        self.at.m.ready.next = self.m_aw_ready.val();
        self.m_w_data.next = self.beats.m.data.val();
        self.m_w_strb.next = self.beats.m.keep.val();
        self.m_w_last.next = self.beats.m.last.val();
        self.m_w_valid.next = self.beats.m.valid.val();
        self.beats.m.ready.next = self.m_w_ready.val();
        self.s_b_resp.next = self.answers.m.data.val();
        self.s_b_valid.next = self.answers.m.valid.val();
        self.answers.m.ready.next = self.s_b_ready.val();
        // Table
        self.bus.aw_valid.next = self.tbl_aw_valid.val();
        self.tbl_aw_ready.next = self.bus.aw_ready.val();
        self.bus.aw_addr.next = self.tbl_aw_addr.val();
        self.bus.w_valid.next = self.tbl_w_valid.val();
        self.tbl_w_ready.next = self.bus.w_ready.val();
        self.bus.w_data.next = self.tbl_w_data.val();
        self.bus.w_strb.next = self.tbl_w_strb.val();
        self.tbl_b_valid.next = self.bus.b_valid.val();
        self.bus.b_ready.next = self.tbl_b_ready.val();
        self.tbl_b_resp.next = self.bus.b_resp.val();
        self.bus.ar_valid.next = self.tbl_ar_valid.val();
        self.tbl_ar_ready.next = self.bus.ar_ready.val();
        self.bus.ar_addr.next = self.tbl_ar_addr.val();
        self.tbl_r_valid.next = self.bus.r_valid.val();
        self.bus.r_ready.next = self.tbl_r_ready.val();
        self.tbl_r_data.next = self.bus.r_data.val();
        self.tbl_r_resp.next = self.bus.r_resp.val();
        WriteSrc::<13>::join(&mut self.bus.write, &mut self.entries.write);
        ReadSrc::<13>::join(&mut self.bus.read, &mut self.entries.read);
    }
}
