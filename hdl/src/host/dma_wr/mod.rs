//! DMA writes: one ordered AXI4 write stream for payload, completions, events and admin answers. See README.md.

mod beats;
mod front;
mod gate;
mod guard;
mod resp;
#[cfg(test)]
mod tests;

use crate::assembly::AnyBlock;
use crate::bus::{AxisSink, AxisSrc, MsgSink, MsgSrc};
use crate::for_clients;
use crate::host::dma::{BurstSend, FrontMark, Quiesce};
use crate::msg::{WrCmd, WrDone, WrSmall};
use crate::prim::arb::RrPick;
use crate::prim::mux::OneHotMux;
use crate::prim::rotate::ByteRotate;
use crate::rdma::atomics::{LOG_UNDER_WAY, UNDER_WAY};
use crate::stats::flags;
use crate::stream::{AxisSlice, MsgFifo};
use beats::Beats;
use ferric_hdl_derive::{kernel, BlockDefault};
use front::PayFront;
use gate::WGate;
use guard::Guard;
use resp::{Responses, ROUTE};
use rust_hdl::prelude::*;

/// A write command ready for the arbiter.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct WrJob {
    /// Address of the first beat.
    pub addr: Bits<64>,
    /// PCIe function.
    pub function: Bits<12>,
    /// The client's tag.
    pub tag: Bits<8>,
    /// Beats - 1.
    pub last: Bits<9>,
    /// Beats - 1 up to the next burst border.
    pub room: Bits<9>,
    /// More beats than that: two bursts.
    pub cross: Bit,
}

/// Events on `stat`, bit 0 first: commands issued, commands that failed.
pub const STATS: &[&str] = &["writes", "write_errors"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // One ordered stream: a command waits for the beats of the one in front of it, and for a place for its response; responses leave in order.
    ("s_small[*]", &["aw_valid", "w_valid", "b_valid", "m_small_done[..]", "m_cmd_done", "s_data"]),
    // The same, and for the end of atomics on its page. What is held is not chosen: small writes pass.
    ("s_cmd", &["aw_valid", "w_valid", "b_valid", "m_small_done[..]", "m_cmd_done", "s_data", "atomic_end"]),
    ("s_data", &["aw_valid", "w_valid", "b_valid", "m_small_done[..]", "m_cmd_done", "s_data", "atomic_end"]), // beats wait for their command
    ("m_small_done[*]", &["aw_valid", "w_valid", "b_valid", "m_small_done[..]", "m_cmd_done", "s_data"]),
    ("m_cmd_done", &["aw_valid", "w_valid", "b_valid", "m_small_done[..]", "m_cmd_done", "s_data", "atomic_end", "s_cmd"]), // its command may not have come yet
    ("w_valid", &["s_data"]),                                                                                               // of a burst whose address stands on AW
    ("b_valid", &["m_small_done[..]", "m_cmd_done"]),
    // Payload issued before the hold, not that which is held.
    ("atomic_clear", &["aw_valid", "w_valid", "b_valid", "m_small_done[..]", "m_cmd_done", "s_data"]),
    ("quiesced", &["quiesce", "aw_valid", "w_valid", "b_valid", "m_small_done[..]", "m_cmd_done", "s_data", "atomic_end"]),
];

/// The block for so many clients of small writes.
pub fn for_number<const W: usize, const K: usize, const LK: usize>(clients: usize) -> AnyBlock {
    for_clients!(clients, <N, P> AnyBlock::new(DmaWrite::<W, K, LK, N, P, { P + ROUTE }>::default()))
}

/// `W` bits and `K` = 2^`LK` bytes per beat. `N` ports of small writes, `P` = `N` + 1 with payload; `R`: bits of what `resp.rs` keeps of a command.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K == 1 << LK, "K must be W / 8, LK its logarithm")]
pub struct DmaWrite<const W: usize, const K: usize, const LK: usize, const N: usize, const P: usize, const R: usize> {
    pub clock: Signal<In, Clock>,
    /// Not while writes are in flight (quiesce first).
    pub reset: Signal<In, Bit>,
    pub aw_valid: Signal<Out, Bit>,
    pub aw_ready: Signal<In, Bit>,
    /// All writes have AXI id 0.
    pub aw_addr: Signal<Out, Bits<64>>,
    pub aw_len: Signal<Out, Bits<8>>,
    /// PCIe function.
    pub aw_user: Signal<Out, Bits<12>>,
    pub w_valid: Signal<Out, Bit>,
    pub w_ready: Signal<In, Bit>,
    pub w_data: Signal<Out, Bits<W>>,
    pub w_strb: Signal<Out, Bits<K>>,
    pub w_last: Signal<Out, Bit>,
    pub b_valid: Signal<In, Bit>,
    pub b_ready: Signal<Out, Bit>,
    pub b_resp: Signal<In, Bits<2>>,
    pub s_cmd: MsgSink<WrCmd>,
    pub s_data: AxisSink<W, K>,
    pub m_cmd_done: MsgSrc<WrDone>,
    pub s_small: [MsgSink<WrSmall>; N],
    pub m_small_done: [MsgSrc<WrDone>; N],
    /// Atomics: pulse to hold a page, pulse when the oldest hold not begun does, which it may at `atomic_clear`, pulse when the oldest is over.
    pub atomic_hold: Signal<In, Bit>,
    /// Bits 12 to 47 of its address, folded to 12.
    pub atomic_page: Signal<In, Bits<12>>,
    pub atomic_clear: Signal<Out, Bit>,
    pub atomic_begin: Signal<In, Bit>,
    pub atomic_end: Signal<In, Bit>,
    /// Level: raise, wait for `quiesced`, drop.
    pub quiesce: Signal<In, Bit>,
    /// All writes accepted before `quiesce` rose have been answered by the host. Stays until `quiesce` falls.
    pub quiesced: Signal<Out, Bit>,
    pub stat: Signal<Out, Bits<2>>,
    front: PayFront<LK>,
    payload: AxisSlice<W, K>,
    smalls: [MsgFifo<WrSmall, 2>; N],
    marks: [FrontMark; P],
    /// Requests: small ports, then payload.
    pick: RrPick<P>,
    pick_last: DFF<Bits<P>>,
    pick_small: OneHotMux<WrSmall, N>,
    turn: ByteRotate<512, 64, 6>,
    beats: Beats<W, K, LK>,
    split: BurstSend<LK>,
    gate: WGate<W, K>,
    guard: Guard<UNDER_WAY, LOG_UNDER_WAY>,
    resp: Responses<N, P, R>,
    drain: Quiesce,
    bad: DFF<Bit>,
    #[init(std::array::from_fn(|i| Constant::new((1u64 << i).into())))]
    hot: [Constant<Bits<P>>; P],
    #[init(Constant::new((LK as u64).into()))]
    lk: Constant<Bits<4>>,
    #[init(Constant::new((!0u64 << LK).into()))]
    aligned: Constant<Bits<64>>,
    /// Offsets of 8 bytes inside a beat.
    #[init(Constant::new((0x38 & (K as u64 - 1)).into()))]
    granule: Constant<Bits<6>>,
    /// Strobes of the first 8, 16, 32, 64 bytes, as far as a beat reaches.
    #[init(strobes::<K>(8))]
    strobes8: Constant<Bits<K>>,
    #[init(strobes::<K>(16))]
    strobes16: Constant<Bits<K>>,
    #[init(strobes::<K>(32))]
    strobes32: Constant<Bits<K>>,
    #[init(strobes::<K>(64))]
    strobes64: Constant<Bits<K>>,
    wanted: Signal<Local, Bits<P>>,
    grant: Signal<Local, Bits<P>>,
    start: Signal<Local, Bit>,
    is_pay: Signal<Local, Bit>,
    row: Signal<Local, Bits<512>>,
    iova: Signal<Local, Bits<64>>,
    off: Signal<Local, Bits<6>>,
    len: Signal<Local, Bits<7>>,
    less: Signal<Local, Bits<7>>,
    last: Signal<Local, Bits<7>>,
    span: Signal<Local, Bits<K>>,
    job: Signal<Local, WrJob>,
    beyond: Signal<Local, Bits<9>>,
    clear: Signal<Local, Bit>,
}

/// Enables of the first `bytes` bytes, or of the whole beat of `K`.
fn strobes<const K: usize>(bytes: usize) -> Constant<Bits<K>> {
    Constant::new((!0u64 >> (64 - bytes.min(K))).into())
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize, const N: usize, const P: usize, const R: usize> Logic for DmaWrite<W, K, LK, N, P, R> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, pick_last, bad);
        clock!(self, clock, front, payload, beats, split, gate, guard, resp, drain);
        self.front.reset.next = self.reset.val();
        self.payload.reset.next = self.reset.val();
        self.beats.reset.next = self.reset.val();
        self.split.reset.next = self.reset.val();
        self.gate.reset.next = self.reset.val();
        self.guard.reset.next = self.reset.val();
        self.resp.reset.next = self.reset.val();
        self.drain.reset.next = self.reset.val();
        for i in 0..N {
            self.smalls[i].clock.next = self.clock.val();
            self.smalls[i].reset.next = self.reset.val();
            MsgSink::<WrSmall>::link(&mut self.s_small[i], &mut self.smalls[i].s);
            MsgSrc::<WrDone>::link(&mut self.m_small_done[i], &mut self.resp.m[i]);
        }
        // Once, for payload: the place behind the small ports.
        for i in N..P {
            MsgSrc::<WrDone>::link(&mut self.m_cmd_done, &mut self.resp.m[i]);
        }
        MsgSink::<WrCmd>::link(&mut self.s_cmd, &mut self.front.s);
        AxisSink::<W, K>::link(&mut self.s_data, &mut self.payload.s);

        // Who is next. A payload command does not wait for its first beat, which follows within some cycles: its address may go.
        self.wanted.next = bits::<P>(0);
        for i in 0..N {
            self.pick_small.x[i].next = self.smalls[i].m.data.val();
            if self.smalls[i].m.valid.val() {
                self.wanted.next = self.wanted.val() | self.hot[i].val();
            }
        }
        for i in N..P {
            if self.front.m.valid.val() {
                self.wanted.next = self.wanted.val() | self.hot[i].val();
            }
        }
        self.pick.req.next = self.wanted.val();
        self.pick.last.next = self.pick_last.q.val();
        self.grant.next = self.pick.grant.val();
        for i in N..P {
            self.is_pay.next = self.grant.val().get_bit(i);
        }
        self.start.next = self.wanted.val().any() & self.beats.free.val() & self.split.s.ready.val() & self.resp.s.ready.val();
        if self.start.val() {
            self.pick_last.d.next = self.grant.val();
        }
        for i in 0..N {
            self.smalls[i].m.ready.next = self.start.val() & self.grant.val().get_bit(i);
        }
        self.front.m.ready.next = self.start.val() & self.is_pay.val();

        // Payload for a page on which an atomic is under way waits, and all behind it.
        self.guard.hold.next = self.atomic_hold.val();
        self.guard.page.next = self.atomic_page.val();
        self.guard.starts.next = self.atomic_begin.val();
        self.guard.ends.next = self.atomic_end.val();
        self.atomic_clear.next = self.guard.clear.val();
        self.guard.next_page.next = self.front.next_page.val();
        self.front.next_below.next = self.guard.next_below.val();
        self.front.next_above.next = self.guard.next_above.val();
        self.guard.job_page.next = self.front.job_page.val();
        self.front.job_below.next = self.guard.job_below.val();
        self.front.job_above.next = self.guard.job_above.val();
        self.guard.issued.next = self.start.val() & self.is_pay.val();
        self.guard.answered.next = self.resp.finish_pay.val();

        // A small write's data turn to their lanes of a beat.
        self.pick_small.sel.next = self.grant.val().get_bits::<N>(0);
        self.iova.next = self.pick_small.y.val().iova;
        self.len.next = self.pick_small.y.val().len;
        self.off.next = self.iova.val().get_bits::<6>(0) & self.granule.val();
        self.less.next = self.len.val() - 1;
        self.last.next = self.less.val() >> self.lk.val();
        self.row.next = self.pick_small.y.val().data;
        self.turn.x.next = self.row.val();
        self.turn.n.next = self.off.val();
        self.span.next = self.strobes64.val();
        if self.len.val().get_bit(3) {
            self.span.next = self.strobes8.val();
        } else if self.len.val().get_bit(4) {
            self.span.next = self.strobes16.val();
        } else if self.len.val().get_bit(5) {
            self.span.next = self.strobes32.val();
        }
        self.job.next = self.front.m.data.val();
        if !self.is_pay.val() {
            self.job.next.addr = self.iova.val() & self.aligned.val();
            self.job.next.function = self.pick_small.y.val().function;
            self.job.next.tag = self.pick_small.y.val().tag;
            self.job.next.last = bit_cast::<9, 7>(self.last.val());
            self.job.next.cross = false;
        }
        self.beats.load.next = self.start.val();
        self.beats.job.next = self.job.val();
        self.beats.short.next = !self.is_pay.val();
        self.beats.row.next = self.turn.y.val();
        self.beats.strobes.next = self.span.val() << self.off.val();
        AxisSrc::<W, K>::join(&mut self.payload.m, &mut self.beats.s);

        // The same command to the address channel and to the responses.
        self.split.s.valid.next = self.start.val();
        self.split.s.data.next.addr = self.job.val().addr;
        self.split.s.data.next.len = self.job.val().last.get_bits::<8>(0);
        if self.job.val().cross {
            self.split.s.data.next.len = self.job.val().room.get_bits::<8>(0);
        }
        self.beyond.next = self.job.val().last - self.job.val().room - 1;
        self.split.s.data.next.cross = self.job.val().cross;
        self.split.s.data.next.rest = self.beyond.val().get_bits::<8>(0);
        self.split.s.data.next.function = self.job.val().function;
        self.split.s.data.next.id = bits::<9>(0);
        self.resp.s.valid.next = self.start.val();
        self.resp.s_port.next = self.grant.val();
        self.resp.s.data.next.tag = self.job.val().tag;
        self.resp.s.data.next.two = self.job.val().cross;
        self.resp.s.data.next.color = self.drain.color.val();

        // AXI.
        self.aw_valid.next = self.split.m.valid.val();
        self.split.m.ready.next = self.aw_ready.val();
        self.aw_addr.next = self.split.m.data.val().addr;
        self.aw_len.next = self.split.m.data.val().len;
        self.aw_user.next = self.split.m.data.val().function;
        AxisSrc::<W, K>::join(&mut self.beats.m, &mut self.gate.s);
        self.gate.aw_valid.next = self.split.m.valid.val();
        self.gate.aw_ready.next = self.aw_ready.val();
        self.w_valid.next = self.gate.w_valid.val();
        self.gate.w_ready.next = self.w_ready.val();
        self.w_data.next = self.gate.w_data.val();
        self.w_strb.next = self.gate.w_strb.val();
        self.w_last.next = self.gate.w_last.val();
        self.resp.b_valid.next = self.b_valid.val();
        self.resp.b_resp.next = self.b_resp.val();
        self.b_ready.next = self.resp.b_ready.val();

        // Quiesce and statistics.
        self.clear.next = true;
        for i in 0..P {
            self.marks[i].clock.next = self.clock.val();
            self.marks[i].reset.next = self.reset.val();
            self.marks[i].pop.next = self.start.val() & self.grant.val().get_bit(i);
            self.marks[i].mark.next = self.drain.mark.val();
            self.clear.next = self.clear.val() & self.marks[i].clear.val();
        }
        for i in 0..N {
            self.marks[i].push.next = self.s_small[i].valid.val() & self.s_small[i].ready.val();
        }
        for i in N..P {
            self.marks[i].push.next = self.s_cmd.valid.val() & self.s_cmd.ready.val();
        }
        self.drain.quiesce.next = self.quiesce.val();
        self.drain.clear.next = self.clear.val();
        self.drain.start.next = self.start.val();
        self.drain.finish.next = self.resp.finish.val();
        self.drain.finish_color.next = self.resp.finish_color.val();
        self.quiesced.next = self.drain.quiesced.val();
        self.bad.d.next = self.resp.finish.val() & self.resp.finish_err.val();
        self.stat.next = bits::<2>(0);
        if self.start.val() {
            self.stat.next = self.stat.val() | flags(STATS, &["writes"]) as u64;
        }
        if self.bad.q.val() {
            self.stat.next = self.stat.val() | flags(STATS, &["write_errors"]) as u64;
        }
        if self.reset.val() {
            self.pick_last.d.next = bits::<P>(0);
            self.bad.d.next = false;
        }
    }
}
