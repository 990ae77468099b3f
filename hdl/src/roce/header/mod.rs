//! Header builder: from `HdrOp` and path to rows of the egress header RAM. See README.md.

mod fetch;
mod image;
pub use ferric_model::roce::header::{self as model, ext_len, header_len};
#[cfg(test)]
mod tests;

use crate::bus::{HdrSrc, MsgSink, MsgSrc};
use crate::context::bus::CtxClient;
use crate::msg::{HdrDone, HdrOp};
use crate::records::PathCtx;
use crate::stream::MsgSlice;
use ferric_hdl_derive::kernel;
use ferric_hdl_derive::BlockDefault;
use fetch::PathFetch;
use image::HeaderImage;
use rust_hdl::prelude::*;

/// Bytes of the longest header, rounded up.
pub const BYTES: usize = 128;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_op[*]", &["ctx[*]", "m_ready"]),
    ("ctx[*]", &["m_ready"]),                      // a line is given back when the op is in its register, which the row writer empties
    ("m_ready", &["ctx[0]", "ctx[1]", "m_ready"]), // of an op that has been taken: each comes no later than its seal
];

/// Builds headers; two request ports with a path lookup each, one row per cycle. `LJ`: log2 of the queue pairs in a function's share, of which one is its special queue pair, number 1 on the wire.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K.is_power_of_two() && (8..=64).contains(&K), "K must be W / 8, 8 to 64")]
pub struct HeaderBuilder<const W: usize, const K: usize, const LJ: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets all ops.
    pub reset: Signal<In, Bit>,
    /// 0: requests, 1: acknowledges.
    pub s_op: [MsgSink<HdrOp>; 2],
    pub ctx: [CtxClient<PathCtx>; 2],
    pub m_row: HdrSrc<W>,
    pub m_ready: MsgSrc<HdrDone>,
    fetch: [PathFetch<LJ>; 2],
    image: HeaderImage,
    out: MsgSlice<HdrDone>,
    /// Port served last.
    turn: DFF<Bit>,
    second: Signal<Local, Bit>,
    op: Signal<Local, HdrOp>,
    path: Signal<Local, PathCtx>,
    udp_len: Signal<Local, Bits<16>>,
    abort: Signal<Local, Bit>,
    total: Signal<Local, Bits<20>>,
    // Row writer.
    busy: DFF<Bit>,
    rows: DFF<Bits<1024>>,
    left: DFF<Bits<8>>,
    row: DFF<Bits<5>>,
    done: DFF<HdrDone>,
    last: Signal<Local, Bit>,
    finish: Signal<Local, Bit>,
    load: Signal<Local, Bit>,
    #[init(Constant::new((W as u64).to_bits()))]
    row_bits: Constant<Bits<10>>,
    #[init(Constant::new((K as u64).to_bits()))]
    row_bytes: Constant<Bits<8>>,
}

#[kernel]
impl<const W: usize, const K: usize, const LJ: usize> Logic for HeaderBuilder<W, K, LJ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, turn, busy, rows, left, row, done);
        clock!(self, clock, out);
        self.out.reset.next = self.reset.val();
        for i in 0..2 {
            self.fetch[i].clock.next = self.clock.val();
            self.fetch[i].reset.next = self.reset.val();
            MsgSink::<HdrOp>::link(&mut self.s_op[i], &mut self.fetch[i].s_op);
            CtxClient::<PathCtx>::link(&mut self.ctx[i], &mut self.fetch[i].ctx);
        }
        MsgSrc::<HdrDone>::link(&mut self.m_ready, &mut self.out.m);
        // The port not served last goes first.
        self.second.next = self.fetch[1].valid.val() & (!self.fetch[0].valid.val() | !self.turn.q.val());
        self.op.next = self.fetch[0].op.val();
        self.path.next = self.fetch[0].path.val();
        self.udp_len.next = self.fetch[0].udp_len.val();
        self.abort.next = self.fetch[0].abort.val();
        self.total.next = self.fetch[0].total.val();
        if self.second.val() {
            self.op.next = self.fetch[1].op.val();
            self.path.next = self.fetch[1].path.val();
            self.udp_len.next = self.fetch[1].udp_len.val();
            self.abort.next = self.fetch[1].abort.val();
            self.total.next = self.fetch[1].total.val();
        }
        self.image.op.next = self.op.val();
        self.image.path.next = self.path.val();
        self.image.udp_len.next = self.udp_len.val();
        self.image.total.next = self.total.val();
        // Row writer
        self.m_row.valid.next = self.busy.q.val() & !self.done.q.val().abort;
        self.m_row.slot.next = self.done.q.val().slot;
        self.m_row.row.next = self.row.q.val();
        self.m_row.data.next = self.rows.q.val().get_bits::<W>(0);
        self.last.next = (self.left.q.val() <= self.row_bytes.val()) | self.done.q.val().abort;
        self.out.s.data.next = self.done.q.val();
        self.out.s.valid.next = self.busy.q.val() & self.last.val();
        self.finish.next = self.busy.q.val() & self.last.val() & self.out.s.ready.val();
        self.load.next = (self.fetch[0].valid.val() | self.fetch[1].valid.val()) & (self.finish.val() | !self.busy.q.val());
        self.fetch[0].take.next = self.load.val() & !self.second.val();
        self.fetch[1].take.next = self.load.val() & self.second.val();
        if self.busy.q.val() & !self.last.val() {
            self.rows.d.next = self.rows.q.val() >> self.row_bits.val();
            self.left.d.next = self.left.q.val() - self.row_bytes.val();
            self.row.d.next = self.row.q.val() + 1;
        }
        if self.finish.val() {
            self.busy.d.next = false;
        }
        if self.load.val() {
            self.busy.d.next = true;
            self.turn.d.next = self.second.val();
            self.rows.d.next = self.image.image.val();
            self.left.d.next = self.image.len.val();
            self.row.d.next = bits::<5>(0);
            self.done.d.next.slot = self.op.val().slot;
            self.done.d.next.len = bit_cast::<9, 8>(self.image.len.val());
            self.done.d.next.ipv6 = self.path.val().ipv6;
            self.done.d.next.vlan = self.path.val().vlan;
            self.done.d.next.abort = self.abort.val();
            self.done.d.next.plain = false;
        }
        if self.reset.val() {
            self.busy.d.next = false;
        }
    }
}
