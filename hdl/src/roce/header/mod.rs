//! Header builder: from `HdrOp` and path to rows of the egress header RAM. See README.md.

mod fetch;
mod image;
pub mod model;
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::bus::CtxClient;
use crate::msg::{HdrDone, HdrOp};
use crate::records::PathCtx;
use crate::stream::MsgSlice;
use fetch::PathFetch;
use image::HeaderImage;
use rust_hdl::prelude::*;

/// Bytes of header RAM per slot.
pub const SLOT_BYTES: usize = 128;

/// Bytes of extension headers behind the BTH.
pub const fn ext_len(reth: bool, imm: bool, aeth: bool) -> usize {
    16 * reth as usize + 4 * imm as usize + 4 * aeth as usize
}

/// Bytes from the destination MAC to the end of the last extension header (`ext` bytes of them).
pub const fn header_len(ipv6: bool, vlan: bool, ext: usize) -> usize {
    14 + 4 * vlan as usize + if ipv6 { 40 } else { 20 } + 8 + 12 + ext
}

/// Builds headers; two request ports, one path lookup at a time, one row per cycle.
#[derive(LogicBlock)]
pub struct HeaderBuilder<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets all ops.
    pub reset: Signal<In, Bit>,
    /// 0: requests, 1: acknowledges.
    pub s_op: [MsgSink<HdrOp>; 2],
    pub ctx: CtxClient<PathCtx>,
    pub hdr_we: Signal<Out, Bit>,
    /// slot * (128 / K) + row.
    pub hdr_addr: Signal<Out, Bits<10>>,
    pub hdr_data: Signal<Out, Bits<W>>,
    pub m_ready: MsgSrc<HdrDone>,
    fetch: PathFetch,
    image: HeaderImage,
    out: MsgSlice<HdrDone>,
    // Summing: `step` counts the cycles the op has been there.
    step: DFF<Bits<2>>,
    sum_src: DFF<Bits<20>>,
    sum_dst: DFF<Bits<20>>,
    sum_rest: DFF<Bits<20>>,
    total: DFF<Bits<20>>,
    fold: DFF<Bits<17>>,
    src: Signal<Local, Bits<128>>,
    dst: Signal<Local, Bits<128>>,
    total_length: Signal<Local, Bits<16>>,
    sum: Signal<Local, Bits<20>>,
    folded: Signal<Local, Bits<17>>,
    checksum: Signal<Local, Bits<16>>,
    // Row writer.
    busy: DFF<Bit>,
    rows: DFF<Bits<1024>>,
    left: DFF<Bits<8>>,
    addr: DFF<Bits<10>>,
    done: DFF<HdrDone>,
    last: Signal<Local, Bit>,
    finish: Signal<Local, Bit>,
    load: Signal<Local, Bit>,
    row_bits: Constant<Bits<10>>,
    row_bytes: Constant<Bits<8>>,
    slot_shift: Constant<Bits<3>>,
}

impl<const W: usize, const K: usize> Default for HeaderBuilder<W, K> {
    fn default() -> Self {
        assert!(W == 8 * K && K.is_power_of_two() && (8..=64).contains(&K), "K must be W / 8, 8 to 64");
        Self {
            clock: Default::default(),
            reset: Default::default(),
            s_op: Default::default(),
            ctx: Default::default(),
            hdr_we: Default::default(),
            hdr_addr: Default::default(),
            hdr_data: Default::default(),
            m_ready: Default::default(),
            fetch: Default::default(),
            image: Default::default(),
            out: Default::default(),
            step: Default::default(),
            sum_src: Default::default(),
            sum_dst: Default::default(),
            sum_rest: Default::default(),
            total: Default::default(),
            fold: Default::default(),
            src: Default::default(),
            dst: Default::default(),
            total_length: Default::default(),
            sum: Default::default(),
            folded: Default::default(),
            checksum: Default::default(),
            busy: Default::default(),
            rows: Default::default(),
            left: Default::default(),
            addr: Default::default(),
            done: Default::default(),
            last: Default::default(),
            finish: Default::default(),
            load: Default::default(),
            row_bits: Constant::new((W as u64).to_bits()),
            row_bytes: Constant::new((K as u64).to_bits()),
            slot_shift: Constant::new(u64::from((SLOT_BYTES / K).trailing_zeros()).to_bits()),
        }
    }
}

impl<const W: usize, const K: usize> Logic for HeaderBuilder<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, step, sum_src, sum_dst, sum_rest, total, fold, busy, rows, left, addr, done);
        clock!(self, clock, fetch, out);
        self.fetch.reset.next = self.reset.val();
        self.out.reset.next = self.reset.val();
        MsgSink::<HdrOp>::link(&mut self.s_op[0], &mut self.fetch.s_op[0]);
        MsgSink::<HdrOp>::link(&mut self.s_op[1], &mut self.fetch.s_op[1]);
        CtxClient::<PathCtx>::link(&mut self.ctx, &mut self.fetch.ctx);
        MsgSrc::<HdrDone>::link(&mut self.m_ready, &mut self.out.m);
        // IPv4 checksum. The registers follow the op; `step` tells when they have caught up.
        self.src.next = self.fetch.path.val().sip;
        self.dst.next = self.fetch.path.val().dip;
        self.sum_src.d.next = bit_cast::<20, 16>(self.src.val().get_bits::<16>(0)) + bit_cast::<20, 16>(self.src.val().get_bits::<16>(16));
        self.sum_dst.d.next = bit_cast::<20, 16>(self.dst.val().get_bits::<16>(0)) + bit_cast::<20, 16>(self.dst.val().get_bits::<16>(16));
        self.total_length.next = self.fetch.udp_len.val() + 20;
        // Version and length 0x45, flags DF 0x4000, protocol 17; identification 0.
        self.sum.next = bit_cast::<20, 16>(self.total_length.val()) + 0x8511;
        self.sum_rest.d.next = self.sum.val()
            + bit_cast::<20, 8>(self.fetch.path.val().tclass)
            + (bit_cast::<20, 8>(self.fetch.path.val().hop_limit) << 8);
        self.total.d.next = self.sum_src.q.val() + self.sum_dst.q.val() + self.sum_rest.q.val();
        self.fold.d.next = bit_cast::<17, 16>(self.total.q.val().get_bits::<16>(0)) + bit_cast::<17, 4>(self.total.q.val().get_bits::<4>(16));
        self.folded.next = self.fold.q.val();
        self.checksum.next = !(self.folded.val().get_bits::<16>(0) + bit_cast::<16, 1>(self.folded.val().get_bits::<1>(16)));
        self.image.op.next = self.fetch.op.val();
        self.image.path.next = self.fetch.path.val();
        self.image.udp_len.next = self.fetch.udp_len.val();
        self.image.total_length.next = self.total_length.val();
        self.image.checksum.next = self.checksum.val();
        // Row writer
        self.hdr_we.next = self.busy.q.val() & !self.done.q.val().abort;
        self.hdr_addr.next = self.addr.q.val();
        self.hdr_data.next = self.rows.q.val().get_bits::<W>(0);
        self.last.next = (self.left.q.val() <= self.row_bytes.val()) | self.done.q.val().abort;
        self.out.s.data.next = self.done.q.val();
        self.out.s.valid.next = self.busy.q.val() & self.last.val();
        self.finish.next = self.busy.q.val() & self.last.val() & self.out.s.ready.val();
        self.load.next = self.fetch.valid.val() & self.step.q.val().all() & (self.finish.val() | !self.busy.q.val());
        self.fetch.take.next = self.load.val();
        if self.fetch.valid.val() & !self.step.q.val().all() {
            self.step.d.next = self.step.q.val() + 1;
        }
        if self.busy.q.val() & !self.last.val() {
            self.rows.d.next = self.rows.q.val() >> self.row_bits.val();
            self.left.d.next = self.left.q.val() - self.row_bytes.val();
            self.addr.d.next = self.addr.q.val() + 1;
        }
        if self.finish.val() {
            self.busy.d.next = false;
        }
        if self.load.val() {
            self.busy.d.next = true;
            self.step.d.next = bits::<2>(0);
            self.rows.d.next = self.image.image.val();
            self.left.d.next = self.image.len.val();
            self.addr.d.next = bit_cast::<10, 6>(self.fetch.op.val().slot) << self.slot_shift.val();
            self.done.d.next.slot = self.fetch.op.val().slot;
            self.done.d.next.len = self.image.len.val();
            self.done.d.next.ipv6 = self.fetch.path.val().ipv6;
            self.done.d.next.vlan = self.fetch.path.val().vlan;
            self.done.d.next.abort = self.fetch.abort.val();
        }
        if self.reset.val() {
            self.busy.d.next = false;
            self.step.d.next = bits::<2>(0);
        }
    }
}
