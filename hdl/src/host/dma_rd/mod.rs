//! DMA reads: AXI4 read master between the ports of small reads, the payload reads and the host. See README.md.

mod landing;
pub(crate) mod owed;
mod pay;
pub mod shares;
mod small;
#[cfg(test)]
mod tests;

use crate::assembly::AnyBlock;
use crate::bus::{MsgSink, MsgSrc};
use crate::for_clients;
use crate::host::dma::{BurstCut, BurstSend, Cut, Quiesce};
use crate::msg::{PayCmd, PayDone, RdCmd, RdRow};
use crate::prim::arb::RrPick;
use crate::prim::mux::OneHotMux;
use crate::prim::row_ram::RowRam;
use crate::stats::flags;
use ferric_hdl_derive::{kernel, BlockNew};
use landing::Landing;
use pay::PayPort;
use rust_hdl::prelude::*;
use small::SmallPort;

/// What the landing pipeline knows of the command behind an AXI id.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct RdState {
    /// Payload: assembly row of the first beat's lane 0 after rotation. Small: first row in the row buffer.
    pub row: Bits<13>,
    /// Lanes to rotate left.
    pub shift: Bits<6>,
    /// First lane wanted of the first beat.
    pub lo: Bits<6>,
    /// Lanes above the last one wanted of the last beat.
    pub nhi: Bits<6>,
    /// Beats - 1.
    pub last: Bits<9>,
    /// Egress slot (payload).
    pub slot: Bits<8>,
    /// See `Quiesce`.
    pub color: Bit,
}

/// Events on `stat`, bit 0 first: commands issued, commands that failed.
pub const STATS: &[&str] = &["reads", "read_errors"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // A command takes tag and rows, which come free as the rows before it are taken. The ports share nothing but the address channel: a row is read out of the buffer only with a place for it in its port's outlet.
    ("s_small[*]", &["ar_valid", "r_valid", "m_small[*]"]),
    ("m_small[*]", &["ar_valid", "r_valid", "m_small[*]"]), // in order
    // An id comes free with its `PayDone`.
    ("s_pay", &["ar_valid", "r_valid", "m_pay_done"]),
    ("m_pay_done", &["ar_valid", "r_valid", "m_pay_done"]),
    ("r_valid", &[]), // tag, rows or the slot's bytes are taken before AR
    // What was accepted has to reach the address channel, hence a tag.
    ("quiesced", &["quiesce", "ar_valid", "r_valid", "m_small[..]", "m_pay_done"]),
];

/// The block for clients of small reads with these quotas, which [`shares::fit`], and 2^`LH` payload reads, as far as they have ids of 9 bits: with ids as wide as they need.
pub fn for_quotas<const W: usize, const K: usize, const LK: usize, const LH: usize>(quotas: &[usize]) -> AnyBlock {
    let quota = |port: usize| quotas.get(port).copied().unwrap_or(shares::SMALLEST);
    if quotas.iter().sum::<usize>() > shares::SOME {
        return for_clients!(quotas.len(), <N, P> AnyBlock::new(DmaRead::<W, K, LK, N, P, 9, 9, 7, 11, { shares::FEWEST }>::new(std::array::from_fn(quota))));
    }
    if shares::id_bits(quotas, LH) > 8 {
        return for_clients!(quotas.len(), <N, P> AnyBlock::new(DmaRead::<W, K, LK, N, P, 9, 8, 6, 10, LH>::new(std::array::from_fn(quota))));
    }
    for_clients!(quotas.len(), <N, P> AnyBlock::new(DmaRead::<W, K, LK, N, P, 8, 7, 5, 9, LH>::new(std::array::from_fn(quota))))
}

/// `W` bits and `K` = 2^`LK` bytes per beat. `N` ports of small reads, of which port i may have `quotas[i]` in flight;
/// `P` = `N` + 1 counts the payload reads, too. `LI`, `LT`, `LG`, `LR`, `LP`: bits of an id and its parts, log2 of the row buffer, and of the payload reads, as in `Landing`.
#[derive(LogicBlock, BlockNew)]
#[given(quotas: [usize; N])]
#[demand(W == 8 * K && K == 1 << LK, "K must be W / 8, LK its logarithm")]
#[demand(P == N + 1, "P counts the small ports and payload")]
#[demand((LI == 8 && LT == 7 || LI == 9 && LT >= 8) && LG + 2 == LT, "the tag of a small read is what is left of its id, which no payload read has")]
#[demand((shares::FEWEST..=shares::MOST).contains(&LP) && (LP == shares::FEWEST || LI == 9 && LT == 8), "2^{LP} ids of payload reads, and those of small reads behind them")]
pub struct DmaRead<const W: usize, const K: usize, const LK: usize, const N: usize, const P: usize, const LI: usize, const LT: usize, const LG: usize, const LR: usize, const LP: usize> {
    pub clock: Signal<In, Clock>,
    /// Not while reads are in flight: their beats would land in the next life (quiesce first).
    pub reset: Signal<In, Bit>,
    pub ar_valid: Signal<Out, Bit>,
    pub ar_ready: Signal<In, Bit>,
    /// Small reads 2^`LP` and up, payload below. Beats of different ids may interleave.
    pub ar_id: Signal<Out, Bits<LI>>,
    pub ar_addr: Signal<Out, Bits<64>>,
    pub ar_len: Signal<Out, Bits<8>>,
    /// PCIe function.
    pub ar_user: Signal<Out, Bits<12>>,
    pub r_valid: Signal<In, Bit>,
    /// High from 2^`LI` cycles after reset on.
    pub r_ready: Signal<Out, Bit>,
    pub r_id: Signal<In, Bits<LI>>,
    pub r_data: Signal<In, Bits<W>>,
    pub r_resp: Signal<In, Bits<2>>,
    /// Not looked at: beats are counted.
    pub r_last: Signal<In, Bit>,
    pub s_small: [MsgSink<RdCmd>; N],
    pub m_small: [MsgSrc<RdRow>; N],
    pub s_pay: MsgSink<PayCmd>,
    pub m_pay_done: MsgSrc<PayDone>,
    /// Lanes to write.
    pub asm_we: Signal<Out, Bits<K>>,
    /// Lanes that go to row `asm_addr` + 1.
    pub asm_row1: Signal<Out, Bits<K>>,
    pub asm_addr: Signal<Out, Bits<13>>,
    pub asm_data: Signal<Out, Bits<W>>,
    /// Level: raise, wait for `quiesced`, drop.
    pub quiesce: Signal<In, Bit>,
    /// All reads accepted before `quiesce` rose have been answered by the host. Stays until `quiesce` falls.
    pub quiesced: Signal<Out, Bit>,
    pub stat: Signal<Out, Bits<2>>,
    #[init(shares::allot(&quotas, LP, LR).map(|share| SmallPort::new(share, LK, LP)))]
    small: [SmallPort<LT, LR>; N],
    pay: PayPort<LK, LP>,
    #[init(Landing::new(&shares::allot(&quotas, LP, LR)))]
    landing: Landing<W, K, LK, LI, LT, LG, LR, LP>,
    drain: Quiesce,
    /// Per port, beside the arbitration.
    cut: [BurstCut<LK>; P],
    split: BurstSend<LK>,
    rows: RowRam<W, 512, LR>,
    /// Requests: small ports, then payload.
    pick: RrPick<P>,
    pick_last: DFF<Bits<P>>,
    pick_cmd: OneHotMux<Cut, P>,
    pick_state: OneHotMux<RdState, P>,
    get: RrPick<N>,
    get_last: DFF<Bits<N>>,
    get_row: OneHotMux<Bits<LR>, N>,
    bad: DFF<Bit>,
    #[init(std::array::from_fn(|i| Constant::new((1u64 << i).into())))]
    hot: [Constant<Bits<P>>; P],
    #[init(std::array::from_fn(|i| Constant::new((1u64 << i).into())))]
    hot_small: [Constant<Bits<N>>; N],
    wanted: Signal<Local, Bits<P>>,
    start: Signal<Local, Bit>,
    getting: Signal<Local, Bits<N>>,
    clear: Signal<Local, Bit>,
    state: Signal<Local, RdState>,
    open_id: Signal<Local, Bits<9>>,
    out_id: Signal<Local, Bits<9>>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize, const N: usize, const P: usize, const LI: usize, const LT: usize, const LG: usize, const LR: usize, const LP: usize> Logic
    for DmaRead<W, K, LK, N, P, LI, LT, LG, LR, LP>
{
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, pick_last, get_last, bad);
        clock!(self, clock, pay, landing, drain, split, rows);
        self.pay.reset.next = self.reset.val();
        self.landing.reset.next = self.reset.val();
        self.drain.reset.next = self.reset.val();
        self.split.reset.next = self.reset.val();
        for i in 0..N {
            self.small[i].clock.next = self.clock.val();
            self.small[i].reset.next = self.reset.val();
            MsgSink::<RdCmd>::link(&mut self.s_small[i], &mut self.small[i].s);
            MsgSrc::<RdRow>::link(&mut self.m_small[i], &mut self.small[i].m);
        }
        MsgSink::<PayCmd>::link(&mut self.s_pay, &mut self.pay.s);
        MsgSrc::<PayDone>::link(&mut self.m_pay_done, &mut self.pay.m);

        // One command per cycle, round robin.
        self.wanted.next = bits::<P>(0);
        for i in 0..N {
            self.cut[i].x.next = self.small[i].req.val();
            self.pick_cmd.x[i].next = self.cut[i].y.val();
            self.pick_state.x[i].next = self.small[i].req_state.val();
            if self.small[i].req_valid.val() {
                self.wanted.next = self.wanted.val() | self.hot[i].val();
            }
        }
        // Once, for payload: the place behind the small ports.
        for i in N..P {
            self.cut[i].x.next = self.pay.req.val();
            self.pick_cmd.x[i].next = self.cut[i].y.val();
            self.pick_state.x[i].next = self.pay.req_state.val();
            if self.pay.req_valid.val() {
                self.wanted.next = self.wanted.val() | self.hot[i].val();
            }
        }
        self.pick.req.next = self.wanted.val();
        self.pick.last.next = self.pick_last.q.val();
        self.pick_cmd.sel.next = self.pick.grant.val();
        self.pick_state.sel.next = self.pick.grant.val();
        self.start.next = self.wanted.val().any() & self.split.s.ready.val();
        for i in 0..N {
            self.small[i].req_take.next = self.pick.grant.val().get_bit(i) & self.start.val();
        }
        for i in N..P {
            self.pay.req_take.next = self.pick.grant.val().get_bit(i) & self.start.val();
        }
        if self.start.val() {
            self.pick_last.d.next = self.pick.grant.val();
        }
        self.split.s.valid.next = self.start.val();
        self.split.s.data.next = self.pick_cmd.y.val();
        self.state.next = self.pick_state.y.val();
        self.landing.open.next = self.start.val();
        self.open_id.next = self.pick_cmd.y.val().id;
        self.landing.open_id.next = self.open_id.val().get_bits::<LI>(0);
        self.landing.open_state.next = self.state.val();
        self.landing.open_state.next.color = self.drain.color.val();

        // AXI.
        self.ar_valid.next = self.split.m.valid.val();
        self.split.m.ready.next = self.ar_ready.val();
        self.out_id.next = self.split.m.data.val().id;
        self.ar_id.next = self.out_id.val().get_bits::<LI>(0);
        self.ar_addr.next = self.split.m.data.val().addr;
        self.ar_len.next = self.split.m.data.val().len;
        self.ar_user.next = self.split.m.data.val().function;
        self.landing.r_valid.next = self.r_valid.val();
        self.landing.r_id.next = self.r_id.val();
        self.landing.r_data.next = self.r_data.val();
        self.landing.r_resp.next = self.r_resp.val();
        self.r_ready.next = self.landing.r_ready.val();

        // Payload lands in the assembly buffer, rows of small reads in the row buffer.
        self.asm_we.next = self.landing.asm_we.val();
        self.asm_row1.next = self.landing.asm_row1.val();
        self.asm_addr.next = self.landing.asm_addr.val();
        self.asm_data.next = self.landing.asm_data.val();
        self.pay.fin_valid.next = self.landing.pay_fin.val();
        self.pay.fin.next = self.landing.pay.val();
        self.pay.beat.next = self.landing.beat.val();
        self.pay.payload.next = self.landing.payload.val();
        self.rows.write_en.next = self.landing.row_en.val();
        self.rows.write_addr.next = self.landing.row_addr.val();
        self.rows.write_sub.next = self.landing.row_sub.val();
        self.rows.write_data.next = self.landing.row_data.val();

        // One row per cycle leaves the row buffer, round robin.
        self.getting.next = bits::<N>(0);
        for i in 0..N {
            self.get_row.x[i].next = self.small[i].get_row.val();
            if self.small[i].get_valid.val() {
                self.getting.next = self.getting.val() | self.hot_small[i].val();
            }
        }
        self.get.req.next = self.getting.val();
        self.get.last.next = self.get_last.q.val();
        self.get_row.sel.next = self.get.grant.val();
        self.rows.read_addr.next = self.get_row.y.val();
        if self.getting.val().any() {
            self.get_last.d.next = self.get.grant.val();
        }
        self.clear.next = self.pay.clear.val();
        for i in 0..N {
            self.small[i].get_take.next = self.get.grant.val().get_bit(i);
            self.small[i].row_data.next = self.rows.read_data.val();
            self.small[i].fin_valid.next = self.landing.small_fin.val();
            self.small[i].fin_tag.next = self.landing.small_tag.val();
            self.small[i].fin_err.next = self.landing.small_err.val();
            self.small[i].mark.next = self.drain.mark.val();
            self.clear.next = self.clear.val() & self.small[i].clear.val();
        }
        self.pay.mark.next = self.drain.mark.val();

        self.drain.quiesce.next = self.quiesce.val();
        self.drain.clear.next = self.clear.val();
        self.drain.start.next = self.start.val();
        self.drain.finish.next = self.landing.finish.val();
        self.drain.finish_color.next = self.landing.finish_color.val();
        self.quiesced.next = self.drain.quiesced.val();
        self.bad.d.next = self.landing.finish.val() & self.landing.finish_err.val();
        self.stat.next = bits::<2>(0);
        if self.start.val() {
            self.stat.next = self.stat.val() | flags(STATS, &["reads"]) as u64;
        }
        if self.bad.q.val() {
            self.stat.next = self.stat.val() | flags(STATS, &["read_errors"]) as u64;
        }
        if self.reset.val() {
            self.pick_last.d.next = bits::<P>(0);
            self.get_last.d.next = bits::<N>(0);
            self.bad.d.next = false;
        }
    }
}
