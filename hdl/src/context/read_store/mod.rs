//! A context store whose clients only read. See README.md.

mod port;
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::bus::CtxServer;
use crate::context::word::CtlWord;
use crate::msg::{CtlReq, CtlResp};
use crate::prim::arb::RrPick;
use crate::prim::clash::Clash;
use crate::prim::pack::Gather;
use crate::prim::patch_ram::PatchRam;
use ferric_hdl_derive::{kernel, BlockDefault};
use port::Port;
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // A line may be another client's; the control bus keeps one for some cycles.
    ("client[0]", &["client[1]"]),
    ("client[1]", &["client[0]"]),
    ("s_ctl", &[]), // one access at a time
    ("m_ctl", &["client[0]", "client[1]"]),
];

/// `2^LQ` lines of type `T` for two clients that give them back as they were; the control bus writes.
#[derive(LogicBlock, BlockDefault)]
pub struct ReadStore<T: Synth, const LQ: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; drops all locks. The lines keep their contents.
    pub reset: Signal<In, Bit>,
    pub client: [CtxServer<T>; 2],
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    reader: [Port<T, LQ>; 2],
    line: CtlWord<T, LQ>,
    ctl_read: DFF<Bit>,
    ctl_held: DFF<Bit>,
    /// The same lines for each client, whose line stays at its memory's output, and for the control bus.
    ram: [PatchRam<T, LQ>; 3],
    // The clients, then the control bus.
    want: Gather<3>,
    held: Gather<3>,
    clash: Clash<LQ, 3>,
    pick: RrPick<3>,
    last: DFF<Bits<3>>,
    #[init(Constant::new(T::default()))]
    nothing: Constant<T>,
}

#[kernel]
impl<T: Synth, const LQ: usize> Logic for ReadStore<T, LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, ctl_read, ctl_held, last);
        clock!(self, clock, line);
        self.line.reset.next = self.reset.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.line.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.line.m_ctl);
        for i in 0..2 {
            self.reader[i].clock.next = self.clock.val();
            self.reader[i].reset.next = self.reset.val();
            CtxServer::<T>::link(&mut self.client[i], &mut self.reader[i].client);
            self.want.x[i].next = self.reader[i].want.val();
            self.held.x[i].next = self.reader[i].held.val();
            self.clash.id[i].next = self.reader[i].id.val();
            self.clash.kept[i].next = self.reader[i].kept.val();
            self.ram[i].read_addr.next = self.reader[i].id.val();
            self.reader[i].row.next = self.ram[i].read_data.val();
            self.reader[i].grant.next = self.pick.grant.val().get_bit(i);
        }
        // The control bus: wanted from `req` until the row is there, held until `done`.
        self.want.x[2].next = self.line.req.val() & !self.ctl_held.q.val();
        self.held.x[2].next = self.ctl_held.q.val();
        self.clash.id[2].next = self.line.addr.val();
        self.clash.kept[2].next = self.line.addr.val();
        self.ram[2].read_addr.next = self.line.addr.val();
        self.line.row.next = self.ram[2].read_data.val();
        self.line.row_valid.next = self.ctl_read.q.val();
        self.ctl_read.d.next = self.pick.grant.val().get_bit(2);
        if self.pick.grant.val().get_bit(2) {
            self.ctl_held.d.next = true;
        }
        if self.line.done.val() {
            self.ctl_held.d.next = false;
        }
        // One lock a cycle, in turn among those whose line nobody holds.
        self.clash.held.next = self.held.y.val();
        self.pick.req.next = self.want.y.val() & !self.clash.y.val();
        self.pick.last.next = self.last.q.val();
        if self.pick.grant.val().any() {
            self.last.d.next = self.pick.grant.val();
        }
        for i in 0..3 {
            self.ram[i].clock.next = self.clock.val();
            self.ram[i].write_addr.next = self.line.addr.val();
            self.ram[i].write_data.next = self.nothing.val();
            self.ram[i].write_en.next = false;
            self.ram[i].word.next = self.line.word.val();
            self.ram[i].word_data.next = self.line.data.val();
            self.ram[i].word_en.next = self.line.done.val() & self.line.we.val();
        }
        if self.reset.val() {
            self.ctl_read.d.next = false;
            self.ctl_held.d.next = false;
        }
    }
}
