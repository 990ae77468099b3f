//! Context store: a table of lines with one owner at a time. See README.md.

mod port;
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::bus::CtxServer;
use crate::context::word::CtlWord;
use crate::msg::{CtlReq, CtlResp};
use crate::prim::arb::RrPick;
use crate::prim::clash::Clash;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::Gather;
use crate::prim::patch_ram::PatchRam;
use ferric_hdl_derive::{kernel, BlockDefault};
use port::Port;
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // A line may be another client's; the control bus keeps one for some cycles. Without client 2 (or 1) its rows mean nothing.
    ("client[0]", &["client[1]", "client[2]"]),
    ("client[1]", &["client[0]", "client[2]"]),
    ("client[2]", &["client[0]", "client[1]"]),
    ("s_ctl", &[]), // one access at a time
    ("m_ctl", &["client[0]", "client[1]", "client[2]"]),
];

/// `2^LQ` lines of type `T` for `NC` (1 to 3) clients and the control bus.
#[derive(LogicBlock, BlockDefault)]
#[demand((1..=3).contains(&NC), "the store has 1 to 3 clients")]
pub struct CtxStore<T: Synth, const LQ: usize, const NC: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; drops all locks. The lines keep their contents.
    pub reset: Signal<In, Bit>,
    pub client: [CtxServer<T>; NC],
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    port: [Port<T, LQ>; NC],
    line: CtlWord<T, LQ>,
    ctl_read: DFF<Bit>,
    ctl_held: DFF<Bit>,
    ram: PatchRam<T, LQ>,
    // The clients from 0 on; the control bus is number 3.
    want: Gather<4>,
    held: Gather<4>,
    clash: Clash<LQ, 4>,
    pick: RrPick<4>,
    last: DFF<Bits<4>>,
    read_mux: OneHotMux<Bits<LQ>, 4>,
    put_addr: OneHotMux<Bits<LQ>, 4>,
    put_row: OneHotMux<T, 3>,
    /// Who writes.
    writer: Gather<4>,
    puts: Gather<3>,
    /// Who would write.
    wishes: Gather<3>,
    /// The control bus or a client behind this one writes.
    blocked: [Signal<Local, Bit>; 3],
    ctl_writes: Signal<Local, Bit>,
}

#[kernel]
impl<T: Synth, const LQ: usize, const NC: usize> Logic for CtxStore<T, LQ, NC> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, ctl_read, ctl_held, last);
        clock!(self, clock, line, ram);
        self.line.reset.next = self.reset.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.line.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.line.m_ctl);
        // Places without a client rest.
        for i in 0..3 {
            self.want.x[i].next = false;
            self.held.x[i].next = false;
            self.writer.x[i].next = false;
            self.puts.x[i].next = false;
            self.wishes.x[i].next = false;
            self.clash.id[i].next = bits::<LQ>(0);
            self.clash.kept[i].next = bits::<LQ>(0);
            self.read_mux.x[i].next = bits::<LQ>(0);
            self.put_addr.x[i].next = bits::<LQ>(0);
            self.put_row.x[i].next = self.ram.read_data.val();
        }
        for i in 0..NC {
            self.port[i].clock.next = self.clock.val();
            self.port[i].reset.next = self.reset.val();
            CtxServer::<T>::link(&mut self.client[i], &mut self.port[i].client);
            self.want.x[i].next = self.port[i].want.val();
            self.held.x[i].next = self.port[i].held.val();
            self.clash.id[i].next = self.port[i].id.val();
            self.clash.kept[i].next = self.port[i].kept.val();
            self.read_mux.x[i].next = self.port[i].id.val();
            self.put_addr.x[i].next = self.port[i].kept.val();
            self.put_row.x[i].next = self.client[i].rel_data.val();
            self.port[i].row.next = self.ram.read_data.val();
        }
        // The control bus: wanted from `req` until the row is there, held until `done`.
        self.want.x[3].next = self.line.req.val() & !self.ctl_held.q.val();
        self.held.x[3].next = self.ctl_held.q.val();
        self.clash.id[3].next = self.line.addr.val();
        self.clash.kept[3].next = self.line.addr.val();
        self.read_mux.x[3].next = self.line.addr.val();
        self.put_addr.x[3].next = self.line.addr.val();
        self.line.row.next = self.ram.read_data.val();
        self.line.row_valid.next = self.ctl_read.q.val();
        self.ctl_read.d.next = self.pick.grant.val().get_bit(3);
        if self.pick.grant.val().get_bit(3) {
            self.ctl_held.d.next = true;
        }
        if self.line.done.val() {
            self.ctl_held.d.next = false;
        }
        // Read port and lock, in turn among those whose line nobody holds.
        self.clash.held.next = self.held.y.val();
        self.pick.req.next = self.want.y.val() & !self.clash.y.val();
        self.pick.last.next = self.last.q.val();
        if self.pick.grant.val().any() {
            self.last.d.next = self.pick.grant.val();
        }
        self.read_mux.sel.next = self.pick.grant.val();
        self.ram.read_addr.next = self.read_mux.y.val();
        // Write port: the control bus cannot wait, the clients keep their rows until they are written, the highest first: the last ones know late that they give a line back.
        self.ctl_writes.next = self.line.done.val() & self.line.we.val();
        self.writer.x[3].next = self.ctl_writes.val();
        for i in 0..NC {
            self.wishes.x[i].next = self.port[i].put.val();
        }
        self.blocked[2].next = self.ctl_writes.val();
        self.blocked[1].next = self.ctl_writes.val() | self.wishes.y.val().get_bit(2);
        self.blocked[0].next = self.ctl_writes.val() | self.wishes.y.val().get_bits::<2>(1).any();
        for i in 0..NC {
            self.port[i].grant.next = self.pick.grant.val().get_bit(i);
            self.port[i].open.next = !self.blocked[i].val();
            self.writer.x[i].next = self.port[i].put.val() & !self.blocked[i].val();
            self.puts.x[i].next = self.port[i].put.val() & !self.blocked[i].val();
        }
        self.put_addr.sel.next = self.writer.y.val();
        self.put_row.sel.next = self.puts.y.val();
        self.ram.write_en.next = self.wishes.y.val().any() & !self.ctl_writes.val();
        self.ram.word_en.next = self.ctl_writes.val();
        self.ram.word.next = self.line.word.val();
        self.ram.word_data.next = self.line.data.val();
        self.ram.write_addr.next = self.put_addr.y.val();
        self.ram.write_data.next = self.put_row.y.val();
        if self.reset.val() {
            self.ctl_read.d.next = false;
            self.ctl_held.d.next = false;
        }
    }
}
