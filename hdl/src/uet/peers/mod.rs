//! Peers: whom an end speaks with, and how. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::line::CtlLine;
use crate::msg::{CtlReq, CtlResp};
use crate::prim::ram::Ram;
use crate::records::PathCtx;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("s_ctl", &[]), ("m_ctl", &[])];

/// log2 of the lines.
pub const LINES: usize = 4;
/// Who reads: frames that come, frames that go, payload that comes, messages that are posted.
pub mod reader {
    pub const INTAKE: usize = 0;
    pub const DRESS: usize = 1;
    pub const PLACE: usize = 2;
    pub const POST: usize = 3;
}
/// How many.
pub const READERS: usize = 4;

/// `2^LE` lines, each a `PathCtx` in which `pkey` is the protection domain that the peer's packets may touch; see README.md.
#[derive(LogicBlock, BlockDefault)]
#[demand((1..=16).contains(&LE), "a line's number has 16 bits")]
pub struct Peers<const LE: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; nobody is a peer, within 2^LE cycles.
    pub reset: Signal<In, Bit>,
    /// A line by its number, one cycle later.
    pub line: [Signal<In, Bits<LE>>; READERS],
    pub path: [Signal<Out, PathCtx>; READERS],
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    ctl: CtlLine<PathCtx, LE>,
    own: Ram<PathCtx, LE>,
    rows: [Ram<PathCtx, LE>; READERS],
    /// The control bus's row is at the memory's output.
    read: DFF<Bit>,
    wipes: DFF<Bit>,
    at: DFF<Bits<LE>>,
    write: Signal<Local, Bit>,
    place: Signal<Local, Bits<LE>>,
    row: Signal<Local, PathCtx>,
    #[init(Constant::new(PathCtx::default()))]
    nobody: Constant<PathCtx>,
    #[init(Constant::new(((1u64 << LE) - 1).to_bits()))]
    last: Constant<Bits<LE>>,
}

#[kernel]
impl<const LE: usize> Logic for Peers<LE> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, read, wipes, at);
        clock!(self, clock, ctl, own);
        self.ctl.reset.next = self.reset.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.ctl.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.ctl.m_ctl);
        self.own.read_addr.next = self.ctl.addr.val();
        self.read.d.next = self.ctl.req.val() & !self.read.q.val() & !self.wipes.q.val();
        self.ctl.row_valid.next = self.read.q.val();
        self.ctl.row.next = self.own.read_data.val();
        self.write.next = self.ctl.done.val() & self.ctl.we.val();
        self.place.next = self.ctl.addr.val();
        self.row.next = self.ctl.new_row.val();
        if self.wipes.q.val() {
            self.write.next = true;
            self.place.next = self.at.q.val();
            self.row.next = self.nobody.val();
            self.at.d.next = self.at.q.val() + 1;
            self.wipes.d.next = !(self.at.q.val() == self.last.val());
        }
        self.own.write_en.next = self.write.val();
        self.own.write_addr.next = self.place.val();
        self.own.write_data.next = self.row.val();
        for i in 0..READERS {
            self.rows[i].clock.next = self.clock.val();
            self.rows[i].read_addr.next = self.line[i].val();
            self.rows[i].write_en.next = self.write.val();
            self.rows[i].write_addr.next = self.place.val();
            self.rows[i].write_data.next = self.row.val();
            self.path[i].next = self.rows[i].read_data.val();
        }
        if self.reset.val() {
            self.read.d.next = false;
            self.wipes.d.next = true;
            self.at.d.next = bits::<LE>(0);
        }
    }
}
