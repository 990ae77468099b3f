//! Which raw queue pair a frame is for. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::line::CtlLine;
use crate::msg::{CtlReq, CtlResp, RxRequest};
use crate::prim::pack::Cast;
use crate::prim::ram::RamAsync2;
use crate::records::RawCtx;
use crate::stream::MsgSlice;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s", &["m"]),
    ("s_ctl", &[]), // one access at a time
    ("m_ctl", &[]),
];

/// A line for each of 2^`LF` functions.
#[derive(LogicBlock, BlockDefault)]
#[demand((1..=6).contains(&LF))]
pub struct RawQueues<const LF: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; no function has a raw queue pair any more, and for 2^`LF` cycles the control bus waits.
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<RxRequest>,
    /// As they came, but that `function` of what is not RoCE is zero: `raw_qpn` says whose it is.
    pub m: MsgSrc<RxRequest>,
    /// The admin engine's word of SET_PORT: the physical function's raw queue pair.
    pub port: Signal<In, Bits<32>>,
    /// Of the frame on `m`, as it stood in the cycle before: the queue pair, bit 31 = valid.
    pub raw_qpn: Signal<Out, Bits<32>>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    ctl: CtlLine<RawCtx, LF>,
    slice: MsgSlice<RxRequest>,
    /// Read by the control bus, and for the frame.
    lines: RamAsync2<RawCtx, LF>,
    clearing: DFF<Bit>,
    sweep: DFF<Bits<LF>>,
    word: Cast<RawCtx, Bits<32>>,
    /// `chosen` is of the frame at hand.
    known: DFF<Bit>,
    chosen: DFF<Bits<32>>,
    whose: Signal<Local, Bits<12>>,
    goes: Signal<Local, Bit>,
    #[init(Constant::new(RawCtx::default()))]
    none: Constant<RawCtx>,
}

#[kernel]
impl<const LF: usize> Logic for RawQueues<LF> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, clearing, sweep, known, chosen);
        clock!(self, clock, ctl, slice, lines);
        self.ctl.reset.next = self.reset.val();
        self.slice.reset.next = self.reset.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.ctl.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.ctl.m_ctl);
        MsgSink::<RxRequest>::link(&mut self.s, &mut self.slice.s);

        // The table: a line is one word.
        self.lines.read_addr0.next = self.ctl.addr.val();
        self.ctl.row.next = self.lines.read_data0.val();
        self.ctl.row_valid.next = self.ctl.req.val() & !self.clearing.q.val();
        self.lines.write_en.next = self.ctl.done.val() & self.ctl.we.val();
        self.lines.write_addr.next = self.ctl.addr.val();
        self.lines.write_data.next = self.ctl.new_row.val();
        if self.clearing.q.val() {
            self.lines.write_en.next = true;
            self.lines.write_addr.next = self.sweep.q.val();
            self.lines.write_data.next = self.none.val();
            self.sweep.d.next = self.sweep.q.val() + 1;
            self.clearing.d.next = !self.sweep.q.val().all();
        }

        // The frame at hand: its line is looked at in every cycle until it goes, so that what waits here is not for a queue pair that has gone meanwhile.
        self.whose.next = self.slice.m.data.val().function;
        self.lines.read_addr1.next = self.whose.val().get_bits::<LF>(0);
        self.word.x.next = self.lines.read_data1.val();
        self.chosen.d.next = self.port.val();
        if self.whose.val().any() {
            self.chosen.d.next = bits::<32>(0);
            if self.slice.m.data.val().tunnel & self.lines.read_data1.val().valid {
                self.chosen.d.next = self.word.y.val();
            }
        }
        self.goes.next = self.slice.m.valid.val() & self.known.q.val() & self.m.ready.val();
        self.known.d.next = self.slice.m.valid.val() & !self.goes.val();
        self.slice.m.ready.next = self.known.q.val() & self.m.ready.val();
        self.m.valid.next = self.slice.m.valid.val() & self.known.q.val();
        self.m.data.next = self.slice.m.data.val();
        self.raw_qpn.next = self.chosen.q.val();
        if self.slice.m.data.val().raw {
            self.m.data.next.function = bits::<12>(0);
        }
        if self.reset.val() {
            self.known.d.next = false;
            self.clearing.d.next = true;
            self.sweep.d.next = bits::<LF>(0);
        }
    }
}
