//! Two clients on one port of small reads. See README.md.
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{RdCmd, RdRow};
use crate::stream::{Fence, MsgFifo, MsgSlice};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_cmd[*]", &["m_cmd"]), // 64 places say whose rows are due: more than the port behind, its outlet and this block hold
    ("s_row", &["m_row[0]", "m_row[1]"]),
    ("m_row[*]", &["m_cmd", "s_row", "m_row[0]", "m_row[1]"]),
    ("passed", &["fence", "m_cmd"]),
];

/// Commands in turn; the port answers in order, so the order of the commands tells whose rows come.
#[derive(LogicBlock, Default)]
pub struct RowShare {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_cmd: [MsgSink<RdCmd>; 2],
    pub m_cmd: MsgSrc<RdCmd>,
    pub s_row: MsgSink<RdRow>,
    pub m_row: [MsgSrc<RdRow>; 2],
    /// Pulse in; pulse out when every command taken before has left `m_cmd`.
    pub fence: Signal<In, Bit>,
    pub passed: Signal<Out, Bit>,
    out: MsgSlice<RdCmd>,
    through: Fence<3>,
    /// Whose answers are due: more than the port holds.
    due: MsgFifo<Bit, 6>,
    rows: MsgSlice<RdRow>,
    /// Who was served last.
    turn: DFF<Bit>,
    second: Signal<Local, Bit>,
    open: Signal<Local, Bit>,
    taken: Signal<Local, Bit>,
}

#[kernel]
impl Logic for RowShare {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, turn);
        clock!(self, clock, out, due, rows, through);
        self.through.reset.next = self.reset.val();
        self.through.start.next = self.fence.val();
        self.passed.next = self.through.passed.val();
        self.out.reset.next = self.reset.val();
        self.due.reset.next = self.reset.val();
        self.rows.reset.next = self.reset.val();
        MsgSrc::<RdCmd>::link(&mut self.m_cmd, &mut self.out.m);
        MsgSink::<RdRow>::link(&mut self.s_row, &mut self.rows.s);
        // The port is open to one of them, known from the register: the other has it next when this one was served or has nothing.
        self.second.next = self.turn.q.val();
        self.open.next = self.out.s.ready.val() & self.due.s.ready.val();
        self.s_cmd[0].ready.next = self.open.val() & !self.second.val();
        self.s_cmd[1].ready.next = self.open.val() & self.second.val();
        self.out.s.data.next = self.s_cmd[0].data.val();
        self.taken.next = self.s_cmd[0].valid.val() & self.open.val();
        if self.second.val() {
            self.out.s.data.next = self.s_cmd[1].data.val();
            self.taken.next = self.s_cmd[1].valid.val() & self.open.val();
            self.turn.d.next = self.s_cmd[1].valid.val() & (!self.open.val() | !self.s_cmd[0].valid.val());
        } else {
            self.turn.d.next = self.s_cmd[1].valid.val() & (self.taken.val() | !self.s_cmd[0].valid.val());
        }
        self.out.s.valid.next = self.taken.val();
        self.through.came.next = self.taken.val();
        self.through.went.next = self.m_cmd.valid.val() & self.m_cmd.ready.val();
        self.due.s.valid.next = self.taken.val();
        self.due.s.data.next = self.second.val();

        self.m_row[0].data.next = self.rows.m.data.val();
        self.m_row[1].data.next = self.rows.m.data.val();
        self.m_row[0].valid.next = self.rows.m.valid.val() & self.due.m.valid.val() & !self.due.m.data.val();
        self.m_row[1].valid.next = self.rows.m.valid.val() & self.due.m.valid.val() & self.due.m.data.val();
        self.rows.m.ready.next = self.due.m.valid.val() & ((self.m_row[0].ready.val() & !self.due.m.data.val()) | (self.m_row[1].ready.val() & self.due.m.data.val()));
        self.due.m.ready.next = self.rows.m.valid.val() & self.rows.m.data.val().last & ((self.m_row[0].ready.val() & !self.due.m.data.val()) | (self.m_row[1].ready.val() & self.due.m.data.val()));
        if self.reset.val() {
            self.turn.d.next = false;
        }
    }
}
