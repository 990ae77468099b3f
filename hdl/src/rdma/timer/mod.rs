//! One retransmission / RNR timer per queue pair. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{TimerCmd, TimerEvent};
use crate::prim::ram::Ram;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_cmd[*]", &[]), // whatever `m_event` does
];

#[cfg(test)]
mod tests;

/// What the table holds for a queue pair. `deadline` in ticks.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct TimerEntry {
    pub armed: Bit,
    pub kind: Bit,
    pub deadline: Bits<32>,
}

/// Timers of `2^LQ` queue pairs, one looked at per cycle.
#[derive(LogicBlock, BlockDefault)]
pub struct Timers<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous. The table is cleared in the `2^LQ` cycles after it.
    pub reset: Signal<In, Bit>,
    /// Time in ticks of 1.024 us.
    pub now: Signal<In, Bits<32>>,
    /// 0: req_tx, 1: req_rx.
    pub s_cmd: [MsgSink<TimerCmd>; 2],
    pub m_event: MsgSrc<TimerEvent>,
    mem: Ram<TimerEntry, LQ>,
    clearing: DFF<Bit>,
    turn: DFF<Bit>,
    cmd: DFF<TimerCmd>,
    cmd_valid: DFF<Bit>,
    scan: DFF<Bits<LQ>>,
    /// Stage 1: `mem.read_data` belongs to `addr1`.
    addr1: DFF<Bits<LQ>>,
    valid1: DFF<Bit>,
    /// Stage 2: `addr2` was found expired.
    addr2: DFF<Bits<LQ>>,
    kind2: DFF<Bit>,
    hit2: DFF<Bit>,
    ev: DFF<TimerEvent>,
    ev_valid: DFF<Bit>,
    target: Signal<Local, Bits<LQ>>,
    late: Signal<Local, Bits<32>>,
    fire: Signal<Local, Bit>,
}

#[kernel]
impl<const LQ: usize> Logic for Timers<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, clearing, turn, cmd, cmd_valid, scan, addr1, valid1, addr2, kind2, hit2, ev, ev_valid);
        clock!(self, clock, mem);
        // Commands: a two-port rotation, one register, then the table. While an expiry waits for the write port none is
        // taken, so that the expiry waits one cycle at most.
        self.turn.d.next = !self.turn.q.val();
        self.s_cmd[0].ready.next = !self.turn.q.val() & !self.hit2.q.val() & !self.clearing.q.val();
        self.s_cmd[1].ready.next = self.turn.q.val() & !self.hit2.q.val() & !self.clearing.q.val();
        self.cmd_valid.d.next = false;
        if !self.hit2.q.val() & !self.clearing.q.val() {
            if self.turn.q.val() {
                self.cmd.d.next = self.s_cmd[1].data.val();
                self.cmd_valid.d.next = self.s_cmd[1].valid.val();
            } else {
                self.cmd.d.next = self.s_cmd[0].data.val();
                self.cmd_valid.d.next = self.s_cmd[0].valid.val();
            }
        }
        self.target.next = bit_cast::<LQ, 24>(self.cmd.q.val().qpn);
        // Scan: address, data and comparison, decision. A command for the same queue kills what is in the pipeline.
        self.mem.read_addr.next = self.scan.q.val();
        self.scan.d.next = self.scan.q.val() + 1;
        self.addr1.d.next = self.scan.q.val();
        self.valid1.d.next = !(self.cmd_valid.q.val() & (self.target.val() == self.scan.q.val()));
        self.late.next = self.now.val() - self.mem.read_data.val().deadline;
        self.fire.next = self.hit2.q.val() & !self.cmd_valid.q.val() & !self.ev_valid.q.val();
        if self.hit2.q.val() {
            // Waiting or firing: what comes from stage 1 is looked at again in the next round.
            self.hit2.d.next = self.cmd_valid.q.val() & !(self.target.val() == self.addr2.q.val());
        } else {
            self.addr2.d.next = self.addr1.q.val();
            self.kind2.d.next = self.mem.read_data.val().kind;
            self.hit2.d.next =
                self.valid1.q.val() & self.mem.read_data.val().armed & !self.late.val().get_bit(31) & !self.ev_valid.q.val() & !(self.cmd_valid.q.val() & (self.target.val() == self.addr1.q.val()));
        }
        // Table writes: clear after reset, command, or disarm on expiry.
        self.mem.write_en.next = self.clearing.q.val() | self.cmd_valid.q.val() | self.fire.val();
        self.mem.write_addr.next = self.target.val();
        self.mem.write_data.next.armed = self.cmd.q.val().start & self.cmd_valid.q.val();
        self.mem.write_data.next.kind = self.cmd.q.val().kind;
        self.mem.write_data.next.deadline = self.now.val() + self.cmd.q.val().ticks;
        if self.clearing.q.val() {
            self.mem.write_addr.next = self.scan.q.val();
            self.valid1.d.next = false;
            if self.scan.q.val().all() {
                self.clearing.d.next = false;
            }
        } else if self.fire.val() {
            self.mem.write_addr.next = self.addr2.q.val();
        }
        // Event
        self.m_event.data.next = self.ev.q.val();
        self.m_event.valid.next = self.ev_valid.q.val();
        if self.ev_valid.q.val() & self.m_event.ready.val() {
            self.ev_valid.d.next = false;
        }
        if self.fire.val() {
            self.ev_valid.d.next = true;
            self.ev.d.next.qpn = bit_cast::<24, LQ>(self.addr2.q.val());
            self.ev.d.next.kind = self.kind2.q.val();
        }
        if self.reset.val() {
            self.clearing.d.next = true;
            self.scan.d.next = bits::<LQ>(0);
            self.cmd_valid.d.next = false;
            self.valid1.d.next = false;
            self.hit2.d.next = false;
            self.ev_valid.d.next = false;
        }
    }
}
