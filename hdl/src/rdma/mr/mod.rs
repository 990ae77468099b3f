//! Memory keys: key check and translation. See README.md.

mod ahead;
mod answers;
mod cache;
#[cfg(test)]
mod cache_tests;
mod change;
mod drain;
#[cfg(test)]
mod drain_tests;
mod extent;
#[cfg(test)]
mod miss_tests;
mod misses;
pub use ferric_model::keys as model;
#[cfg(test)]
mod number_tests;
#[cfg(test)]
mod tests;
mod way;
#[cfg(test)]
mod window_tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::codes::{access, key_status, PAGE};
use crate::context::line::CtlLine;
use crate::msg::{CtlReq, CtlResp, MrChange, MrChanged, MrReq, MrResp, MrWork, RdCmd, RdRow, TxDone};
use crate::prim::ram::RamHold;
use crate::prim::sum::{Ahead, Diff, Sum};
use crate::records::MrCtx;
use crate::stream::MsgSkid;
use cache::PteCache;
use change::Change;
use drain::Drain;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bytes of larger pages.
const PAGE_2M: u64 = 2 << 20;
const PAGE_1G: u64 = 1 << 30;
// Ports, as bits of `take`.
const PORT_0: u64 = 1;
const PORT_1: u64 = 2;

/// Counters of the block, in `stat` bit order.
pub const STATS: &[&str] = &["mr_checks", "mr_refused", "mtt_misses", "invalidated", "changes_refused", "registered", "bound", "mtt_ahead"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // The pipeline stops while all reads of page tables are under way, and for a full answer queue. That of port 0 is never full: 32 places, and the gatherer has at most 32 keys unanswered.
    ("s_req[*]", &["m_rd", "s_rd", "m_resp[1]"]),
    ("m_resp[*]", &["m_rd", "s_rd", "m_resp[1]"]),
    ("s_rd", &[]), // those who wait for a row have places for their answers
    // One change at a time: table rows through the pipeline; then atomics that may have found the key, which have left placement (`begun`) and are over (`over`); then its answer.
    ("s_change", &["m_rd", "s_rd", "m_resp[1]", "begun", "over", "m_changed", "m_worked"]),
    ("s_work", &["m_rd", "s_rd", "m_resp[1]", "begun", "over", "m_changed", "m_worked"]),
    ("m_changed", &["m_rd", "s_rd", "m_resp[1]", "begun", "over"]),
    ("m_worked", &["m_rd", "s_rd", "m_resp[1]", "begun", "over"]),
    ("clean", &["invalidate", "m_rd", "s_rd", "m_resp[1]"]), // queries in front, fetches ahead
    ("s_ctl", &[]),                                          // one access at a time
    // A window that the bus destroyed is counted before the bus has a row again: not behind the wait for atomics, but behind an answer.
    ("m_ctl", &["m_rd", "s_rd", "m_resp[1]", "m_changed", "m_worked"]),
];

/// Verdicts of the first two stages, carried with the request.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Checked {
    port: Bit,
    bad_key: Bit,
    bad_owner: Bit,
    bad_access: Bit,
    below: Bit,
    /// Bounds do not count.
    whole: Bit,
    /// No page is looked for: the region has no table, or nothing of it is touched.
    direct: Bit,
    function: Bits<12>,
    index: Bits<24>,
    /// Of the table: 4 KiB, 2 MiB, 1 GiB.
    page_size: Bits<2>,
    /// The address in its page.
    va_low: Bits<30>,
    life: Bits<8>,
    /// Of the page table's first line: entries in front of the start address's own.
    skew: Bits<3>,
    chk_len: Bits<32>,
    off: Bits<64>,
    /// From the region's first page on, in units of 4 KiB.
    page: Bits<52>,
    length: Bits<64>,
    table: Bits<64>,
}

/// Ready for the cache.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Bounded {
    port: Bit,
    status: Bits<3>,
    out_of_bounds: Bit,
    /// Bits of the remainder's upper half, eight by eight: it is that long.
    long: Bits<4>,
    rem: Bits<32>,
    chk_len: Bits<32>,
    direct: Bit,
    function: Bits<12>,
    index: Bits<24>,
    page_size: Bits<2>,
    va_low: Bits<30>,
    life: Bits<8>,
    page: Bits<52>,
    /// Of the address: its lower half is there, with a carry; the upper half is still two numbers.
    low: Bits<32>,
    carry: Bit,
    table: Bits<32>,
    add: Bits<32>,
}

/// Key table of `2^LM` regions with a page-table cache of 2 * `2^LX` lines, of which `2^LO` may be on their way from host memory; two requesters, answers in order per port.
#[derive(LogicBlock, BlockDefault)]
#[demand((1..=16).contains(&LM), "the cache tag holds 16 bits of the region's number")]
pub struct MemoryKeys<const LM: usize, const LX: usize, const LO: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// 0: gather, 1: placement.
    pub s_req: [MsgSink<MrReq>; 2],
    pub m_resp: [MsgSrc<MrResp>; 2],
    /// Page-table lines.
    pub m_rd: MsgSrc<RdCmd>,
    pub s_rd: MsgSink<RdRow>,
    /// Regions that a peer invalidates: once `m_changed` says so, no request taken later finds the key.
    pub s_change: MsgSink<MrChange>,
    pub m_changed: MsgSrc<MrChanged>,
    /// Local operations of the requester.
    pub s_work: MsgSink<MrWork>,
    pub m_worked: MsgSrc<TxDone>,
    /// Atomics: `begun`, from placement, with the `phase` it is told; `over`, from the replies. A change that takes a key away is answered
    /// when those that may have found it are over.
    pub phase: Signal<Out, Bit>,
    pub begun: Signal<In, Bit>,
    pub over: Signal<In, Bit>,
    pub over_phase: Signal<In, Bit>,
    /// Pulse: forget all translations.
    pub invalidate: Signal<In, Bit>,
    /// From the second cycle after that: they are forgotten, and no fetch ahead is under way from before.
    pub clean: Signal<Out, Bit>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    pub stat: Signal<Out, Bits<8>>,
    input: [MsgSkid<MrReq>; 2],
    regions: RamHold<MrCtx, LM>,
    line: CtlLine<MrCtx, LM>,
    change: Change<LM>,
    drain: Drain,
    cache: PteCache<LX, LO>,
    last: DFF<Bit>,
    b: DFF<MrReq>,
    b_port: DFF<Bit>,
    b_valid: DFF<Bit>,
    c: DFF<Checked>,
    c_valid: DFF<Bit>,
    d: DFF<Bounded>,
    d_valid: DFF<Bit>,
    /// The control bus or a change has read the table in the last cycle.
    row_read: DFF<Bit>,
    /// One of them has a row in hand; it is the change.
    lent: DFF<Bit>,
    for_change: DFF<Bit>,
    asked: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    take: Signal<Local, Bits<2>>,
    pick: Signal<Local, Bit>,
    chosen: Signal<Local, MrReq>,
    excess: Signal<Local, Bits<24>>,
    own: Signal<Local, Bit>,
    allowed: Signal<Local, Bits<6>>,
    refused: Signal<Local, Bits<6>>,
    flushes: Signal<Local, Bit>,
    diff: Diff<64>,
    page: Diff<52>,
    va_page: Signal<Local, Bits<52>>,
    start_page: Signal<Local, Bits<52>>,
    in_page: Signal<Local, Bits<30>>,
    rem: Diff<64>,
    rem64: Signal<Local, Bits<64>>,
    rem_high: Signal<Local, Bits<32>>,
    start: Signal<Local, Bits<64>>,
    va: Signal<Local, Bits<64>>,
    key_index: Signal<Local, Bits<24>>,
    b_index: Signal<Local, Bits<24>>,
    key_variant: Signal<Local, Bits<8>>,
    /// From the table on: bytes to the place, entries of eight bytes to the page's own.
    reach: Signal<Local, Bits<64>>,
    pages: Signal<Local, Bits<52>>,
    /// The page's place in its table.
    place: Sum<52>,
    entry: Signal<Local, Bits<52>>,
    root: Signal<Local, Bits<64>>,
    base: Signal<Local, Bits<64>>,
    /// A bound window is in the row that the control bus has in hand, and the region it belongs to; it is being destroyed.
    bound: DFF<Bit>,
    parent: DFF<Bits<24>>,
    destroys: Signal<Local, Bit>,
    low: Sum<33>,
    low33: Signal<Local, Bits<33>>,
    low_half: Signal<Local, Bits<32>>,
    /// Of the upper half, with the carry as lowest bit of both.
    high: Sum<33>,
    high33: Signal<Local, Bits<33>>,
    carried: Signal<Local, Bits<33>>,
    high_half: Signal<Local, Bits<32>>,
    short: Signal<Local, Bit>,
    bound_bad: Signal<Local, Bit>,
    /// Less is left than is asked for; a bit more than they have, so that it is not modulo anything.
    lacks: Ahead<33>,
    #[init(Constant::new(((1u64 << 24) - (1u64 << LM)).to_bits()))]
    outside: Constant<Bits<24>>,
}

#[kernel]
impl<const LM: usize, const LX: usize, const LO: usize> Logic for MemoryKeys<LM, LX, LO> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, last, b, b_port, b_valid, c, c_valid, d, d_valid, row_read, lent, for_change, bound, parent);
        clock!(self, clock, regions, line, change, cache, drain);
        self.drain.reset.next = self.reset.val();
        self.phase.next = self.drain.phase.val();
        self.drain.begun.next = self.begun.val();
        self.drain.over.next = self.over.val();
        self.drain.over_phase.next = self.over_phase.val();
        self.drain.turn.next = self.change.turn_phase.val();
        self.change.dry.next = self.drain.dry.val();
        for i in 0..2 {
            self.input[i].clock.next = self.clock.val();
            self.input[i].reset.next = self.reset.val();
            MsgSink::<MrReq>::link(&mut self.s_req[i], &mut self.input[i].s);
            MsgSrc::<MrResp>::link(&mut self.m_resp[i], &mut self.cache.m_resp[i]);
        }
        self.line.reset.next = self.reset.val();
        self.change.reset.next = self.reset.val();
        self.cache.reset.next = self.reset.val();
        self.cache.invalidate.next = self.invalidate.val() | self.change.wrap.val();
        self.clean.next = self.cache.clean.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.line.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.line.m_ctl);
        MsgSink::<MrChange>::link(&mut self.s_change, &mut self.change.s_change);
        MsgSrc::<MrChanged>::link(&mut self.m_changed, &mut self.change.m_changed);
        MsgSink::<MrWork>::link(&mut self.s_work, &mut self.change.s_work);
        MsgSrc::<TxDone>::link(&mut self.m_worked, &mut self.change.m_worked);
        MsgSrc::<RdCmd>::link(&mut self.m_rd, &mut self.cache.m_rd);
        MsgSink::<RdRow>::link(&mut self.s_rd, &mut self.cache.s_rd);

        // The whole pipeline moves together; it stops while no read of a page table can begin, and for a full answer queue.
        self.go.next = self.cache.ready.val();

        // Stage A: pick a port, read the table. The control bus or a change takes the read port when the pipeline has passed, one of them at a time.
        // A change looks at several rows before it gives them back.
        self.asked.next = (self.line.req.val() & !self.lent.q.val() & !self.change.uncounted.val()) | (self.change.req.val() & (!self.lent.q.val() | self.for_change.q.val()));
        self.pick.next = self.input[1].m.valid.val() & (!self.input[0].m.valid.val() | !self.last.q.val());
        self.take.next = bits::<2>(0);
        if self.go.val() & !self.asked.val() & !self.row_read.q.val() {
            if self.pick.val() {
                self.take.next = bits::<2>(PORT_1);
            } else if self.input[0].m.valid.val() {
                self.take.next = bits::<2>(PORT_0);
            }
        }
        self.input[0].m.ready.next = self.take.val().get_bit(0);
        self.input[1].m.ready.next = self.take.val().get_bit(1);
        self.chosen.next = self.input[0].m.data.val();
        if self.pick.val() {
            self.chosen.next = self.input[1].m.data.val();
        }
        self.key_index.next = self.chosen.val().key.get_bits::<24>(8);
        self.regions.read_en.next = self.go.val();
        self.regions.read_addr.next = self.key_index.val().get_bits::<LM>(0);
        self.row_read.d.next = false;
        self.line.row_valid.next = self.row_read.q.val() & !self.for_change.q.val();
        self.line.row.next = self.regions.read_data.val();
        self.change.row_valid.next = self.row_read.q.val() & self.for_change.q.val();
        self.change.row.next = self.regions.read_data.val();
        if self.asked.val() & self.go.val() & !self.b_valid.q.val() {
            self.regions.read_addr.next = self.line.addr.val();
            if self.change.req.val() {
                self.regions.read_addr.next = self.change.addr.val();
            }
            self.row_read.d.next = true;
            self.lent.d.next = true;
            self.for_change.d.next = self.change.req.val();
        }
        if self.line.row_valid.val() {
            self.bound.d.next = self.regions.read_data.val().window & self.regions.read_data.val().valid;
            self.parent.d.next = self.regions.read_data.val().link;
        }
        self.destroys.next = self.line.done.val() & self.line.we.val() & self.bound.q.val() & !self.line.new_row.val().valid;
        self.change.orphan.next = self.destroys.val();
        self.change.parent.next = self.parent.q.val();
        if self.line.done.val() | self.change.done.val() {
            self.lent.d.next = false;
        }
        self.regions.write_en.next = (self.line.done.val() & self.line.we.val()) | self.change.we.val();
        self.regions.write_addr.next = self.line.addr.val();
        self.regions.write_data.next = self.line.new_row.val();
        if self.for_change.q.val() {
            self.regions.write_addr.next = self.change.addr.val();
            self.regions.write_data.next = self.change.new_row.val();
        }

        // Stage B: the region is there. Compare, subtract.
        self.b_index.next = self.b.q.val().key.get_bits::<24>(8);
        self.key_variant.next = self.b.q.val().key.get_bits::<8>(0);
        self.excess.next = self.b_index.val() & self.outside.val();
        self.start.next = self.regions.read_data.val().start;
        self.va.next = self.b.q.val().va;
        self.diff.a.next = self.va.val();
        self.diff.b.next = self.start.val();
        self.va_page.next = self.va.val().get_bits::<52>(12);
        self.start_page.next = self.start.val().get_bits::<52>(12);
        // Of larger pages: what is below their size is taken from the address on both sides, and the difference is 0 there.
        self.page.a.next = self.va_page.val();
        self.page.b.next = self.start_page.val();
        self.in_page.next = self.va.val().get_bits::<30>(0) & bits::<30>((PAGE - 1) as u64);
        if self.regions.read_data.val().page_size.get_bit(0) {
            self.page.b.next = ((self.start_page.val() >> 9) << 9) | (self.va_page.val() & bits::<52>((PAGE_2M / PAGE - 1) as u64));
            self.in_page.next = self.va.val().get_bits::<30>(0) & bits::<30>((PAGE_2M - 1) as u64);
        }
        if self.regions.read_data.val().page_size.get_bit(1) {
            self.page.b.next = ((self.start_page.val() >> 18) << 18) | (self.va_page.val() & bits::<52>((PAGE_1G / PAGE - 1) as u64));
            self.in_page.next = self.va.val().get_bits::<30>(0);
        }
        // A window's key is for peers only.
        self.own.next = !self.regions.read_data.val().window;
        self.allowed.next = bit_cast::<6, 1>(self.own.val().into())
            | (bit_cast::<6, 1>(self.regions.read_data.val().local_write.into()) << 1)
            | (bit_cast::<6, 1>(self.regions.read_data.val().remote_write.into()) << 2)
            | (bit_cast::<6, 1>(self.regions.read_data.val().remote_read.into()) << 3)
            | (bit_cast::<6, 1>(self.regions.read_data.val().remote_atomic.into()) << 4)
            | (bit_cast::<6, 1>(self.regions.read_data.val().remote_flush.into()) << 5);
        self.root.next = self.regions.read_data.val().table;
        self.refused.next = self.b.q.val().access & !self.allowed.val();
        self.flushes.next = (self.b.q.val().access & bits::<6>(access::REMOTE_FLUSH)).any();

        // Stage C: what is left behind the address, where the page-table line stands. An entry's address in a table that begins anywhere in its first line is a plain sum; the line's is that without the last bits.
        self.rem.a.next = self.c.q.val().length;
        self.rem.b.next = self.c.q.val().off;
        self.rem64.next = self.rem.y.val();
        self.pages.next = self.c.q.val().page;
        if self.c.q.val().page_size.get_bit(0) {
            self.pages.next = self.c.q.val().page >> 9;
        }
        if self.c.q.val().page_size.get_bit(1) {
            self.pages.next = self.c.q.val().page >> 18;
        }
        self.place.a.next = self.pages.val();
        self.place.b.next = bit_cast::<52, 3>(self.c.q.val().skew);
        self.entry.next = self.place.y.val();
        self.reach.next = bit_cast::<64, 52>(self.pages.val()) << 3;
        if self.c.q.val().direct {
            self.reach.next = self.c.q.val().off;
        }
        self.base.next = self.c.q.val().table;
        self.low.a.next = bit_cast::<33, 32>(self.base.val().get_bits::<32>(0));
        self.low.b.next = bit_cast::<33, 32>(self.reach.val().get_bits::<32>(0));
        self.low33.next = self.low.y.val();
        self.low_half.next = self.low33.val().get_bits::<32>(0);
        self.rem_high.next = self.rem64.val().get_bits::<32>(32);

        // The cache reads the slot of this page meanwhile.
        self.cache.look_page.next = self.entry.val();
        self.cache.look_index.next = self.c.q.val().index.get_bits::<16>(0);
        self.cache.look_valid.next = self.c_valid.q.val();

        // Stage D: verdict; the slot is there, the cache answers.
        self.short.next = !self.d.q.val().long.any();
        self.lacks.a.next = bit_cast::<33, 32>(self.d.q.val().chk_len);
        self.lacks.b.next = bit_cast::<33, 32>(self.d.q.val().rem);
        self.bound_bad.next = self.d.q.val().out_of_bounds | (self.short.val() & self.lacks.y.val());
        self.carried.next = bit_cast::<33, 1>(self.d.q.val().carry.into());
        self.high.a.next = (bit_cast::<33, 32>(self.d.q.val().table) << 1) | self.carried.val();
        self.high.b.next = (bit_cast::<33, 32>(self.d.q.val().add) << 1) | self.carried.val();
        self.high33.next = self.high.y.val();
        self.high_half.next = self.high33.val().get_bits::<32>(1);
        self.cache.query.next.port = self.d.q.val().port;
        self.cache.query.next.status = self.d.q.val().status;
        self.cache.query.next.out_of_bounds = self.bound_bad.val();
        self.cache.query.next.direct = self.d.q.val().direct;
        self.cache.query.next.function = self.d.q.val().function;
        self.cache.query.next.index = self.d.q.val().index.get_bits::<16>(0);
        self.cache.query.next.life = self.d.q.val().life;
        self.cache.query.next.page_size = self.d.q.val().page_size;
        self.cache.query.next.va_low = self.d.q.val().va_low;
        self.cache.query.next.rem = self.d.q.val().rem;
        self.cache.query.next.short = self.short.val();
        self.cache.query.next.page = self.d.q.val().page;
        self.cache.query.next.addr = (bit_cast::<64, 32>(self.high_half.val()) << 32) | bit_cast::<64, 32>(self.d.q.val().low);
        self.cache.query_valid.next = self.d_valid.q.val();

        if self.go.val() {
            self.b.d.next = self.chosen.val();
            self.b_port.d.next = self.pick.val();
            self.b_valid.d.next = self.take.val().any();
            if self.take.val().any() {
                self.last.d.next = self.pick.val();
            }

            self.c_valid.d.next = self.b_valid.q.val();
            self.c.d.next.port = self.b_port.q.val();
            self.c.d.next.bad_key = !self.regions.read_data.val().valid | (self.regions.read_data.val().variant != self.key_variant.val()) | self.excess.val().any();
            self.c.d.next.bad_owner = (self.regions.read_data.val().pd != self.b.q.val().pd)
                | (self.regions.read_data.val().function != self.b.q.val().function)
                | (self.regions.read_data.val().window & self.regions.read_data.val().fast & (self.regions.read_data.val().qpn != self.b.q.val().qpn));
            self.c.d.next.bad_access = self.refused.val().any();
            self.c.d.next.below = self.diff.below.val();
            self.c.d.next.whole = self.b.q.val().whole;
            self.c.d.next.direct = self.regions.read_data.val().direct | self.flushes.val();
            self.c.d.next.function = self.b.q.val().function;
            self.c.d.next.index = self.b_index.val();
            self.c.d.next.life = self.regions.read_data.val().life;
            self.c.d.next.page_size = self.regions.read_data.val().page_size;
            self.c.d.next.va_low = self.in_page.val();
            self.c.d.next.chk_len = self.b.q.val().chk_len;
            self.c.d.next.off = self.diff.y.val();
            self.c.d.next.page = self.page.y.val();
            self.c.d.next.length = self.regions.read_data.val().length;
            self.c.d.next.table = self.root.val();
            self.c.d.next.skew = self.root.val().get_bits::<3>(3);
            if self.regions.read_data.val().direct {
                self.c.d.next.skew = bits::<3>(0);
            }

            self.d_valid.d.next = self.c_valid.q.val();
            self.d.d.next.port = self.c.q.val().port;
            self.d.d.next.status = bits::<3>(0);
            if self.c.q.val().bad_key {
                self.d.d.next.status = bits::<3>(key_status::KEY);
            } else if self.c.q.val().bad_owner {
                self.d.d.next.status = bits::<3>(key_status::DOMAIN);
            } else if self.c.q.val().bad_access {
                self.d.d.next.status = bits::<3>(key_status::PERMISSION);
            }
            self.d.d.next.out_of_bounds = (self.c.q.val().below | self.rem.below.val()) & !self.c.q.val().whole;
            self.d.d.next.long = bit_cast::<4, 1>(self.rem_high.val().get_bits::<8>(0).any().into())
                | (bit_cast::<4, 1>(self.rem_high.val().get_bits::<8>(8).any().into()) << 1)
                | (bit_cast::<4, 1>(self.rem_high.val().get_bits::<8>(16).any().into()) << 2)
                | (bit_cast::<4, 1>(self.rem_high.val().get_bits::<8>(24).any().into()) << 3);
            self.d.d.next.rem = self.rem64.val().get_bits::<32>(0);
            self.d.d.next.chk_len = self.c.q.val().chk_len;
            self.d.d.next.direct = self.c.q.val().direct;
            self.d.d.next.function = self.c.q.val().function;
            self.d.d.next.index = self.c.q.val().index;
            self.d.d.next.life = self.c.q.val().life;
            self.d.d.next.page_size = self.c.q.val().page_size;
            self.d.d.next.va_low = self.c.q.val().va_low;
            self.d.d.next.page = self.entry.val();
            self.d.d.next.low = self.low_half.val();
            if !self.c.q.val().direct {
                self.d.d.next.low = (self.low_half.val() >> 6) << 6;
            }
            self.d.d.next.carry = self.low33.val().get_bit(32);
            self.d.d.next.table = self.base.val().get_bits::<32>(32);
            self.d.d.next.add = self.reach.val().get_bits::<32>(32);
        } else if self.cache.took.val() {
            self.d_valid.d.next = false;
        }

        self.stat.next = bit_cast::<8, 1>(self.cache.answered.val().into())
            | (bit_cast::<8, 1>(self.cache.refused.val().into()) << 1)
            | (bit_cast::<8, 1>(self.cache.miss.val().into()) << 2)
            | (bit_cast::<8, 4>(self.change.stat.val()) << 3)
            | (bit_cast::<8, 1>(self.cache.early.val().into()) << 7);
        if self.reset.val() {
            self.b_valid.d.next = false;
            self.c_valid.d.next = false;
            self.d_valid.d.next = false;
            // What three stages only hand on would become a shift register of LUTs, whose output comes late; one with a reset does not.
            self.d.d.next.port = false;
            self.d.d.next.chk_len = bits::<32>(0);
            self.row_read.d.next = false;
            self.lent.d.next = false;
        }
    }
}
