//! Doorbells of virtio queues: writes of functions, and of the control bus, become notifications. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::line::CtlLine;
use crate::msg::{CtlReq, CtlResp, VqNotify};
use crate::prim::pack::Gather;
use crate::prim::ram::RamAsync;
use crate::stream::{AxisSlice, MsgFifo, MsgSlice};
use ferric_abi::csr;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Names of the bits of `stat`: notifications of functions, and writes to the page that are none.
pub const STATS: &[&str] = &["virtio_rung", "virtio_bell_bad"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_aw_valid", &["m_aw_valid", "m_w_valid", "m_notify", "s_b_valid"]),
    ("s_w_valid", &["m_aw_valid", "m_w_valid", "m_notify", "s_b_valid"]),
    ("m_b_valid", &["s_b_valid"]),
    ("s_ctl", &[]), // one access at a time
    ("m_ctl", &[]),
];

/// log2 of the notifications that may wait. Below this level a function's has room, and those of the control bus have it always.
const LG_WAITING: usize = 4;
const ROOM: u64 = 8;
/// Answers that may wait to be given.
const ANSWERS: u64 = 12;
/// Strobes of a notification's 8 bytes.
const STROBES: u64 = 0xff;
/// Bits of a queue's number in a notification.
const NUMBER: usize = 16;

/// Write address channel, what is used of it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Address {
    addr: Bits<32>,
    len: Bits<8>,
}

/// Whose a queue is. `valid`: it may notify. `rings`: writing this notifies the queue itself.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Line {
    pub function: Bits<12>,
    pub valid: Bit,
    pub rings: Bit,
    pub rsvd0: Bits<18>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// A write of others passes.
    Pass,
    /// One of the page is taken, then judged.
    Take,
    Judge,
}

/// In front of the doorbell window, for 2^`LQ` queues. `W` data bits, `K` = W / 8.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && W >= 64, "a notification is 8 bytes")]
#[demand((1..NUMBER).contains(&LQ), "a queue's number has 16 bits")]
#[demand((csr::DB_VQ % csr::DB_VQ_SIZE, csr::DB_VQ_SIZE) == (0, 0x1000))]
pub struct Bell<const W: usize, const K: usize, const LQ: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; no queue is anybody's, within 2^LQ cycles.
    pub reset: Signal<In, Bit>,
    /// AXI4 write-only slave, as `host/doorbell` is, and the same for that block.
    pub s_aw_valid: Signal<In, Bit>,
    pub s_aw_ready: Signal<Out, Bit>,
    pub s_aw_addr: Signal<In, Bits<32>>,
    pub s_aw_len: Signal<In, Bits<8>>,
    pub s_w_valid: Signal<In, Bit>,
    pub s_w_ready: Signal<Out, Bit>,
    pub s_w_data: Signal<In, Bits<W>>,
    pub s_w_strb: Signal<In, Bits<K>>,
    pub s_w_last: Signal<In, Bit>,
    pub s_b_valid: Signal<Out, Bit>,
    pub s_b_ready: Signal<In, Bit>,
    pub s_b_resp: Signal<Out, Bits<2>>,
    pub m_aw_valid: Signal<Out, Bit>,
    pub m_aw_ready: Signal<In, Bit>,
    pub m_aw_addr: Signal<Out, Bits<32>>,
    pub m_aw_len: Signal<Out, Bits<8>>,
    pub m_w_valid: Signal<Out, Bit>,
    pub m_w_ready: Signal<In, Bit>,
    pub m_w_data: Signal<Out, Bits<W>>,
    pub m_w_strb: Signal<Out, Bits<K>>,
    pub m_w_last: Signal<Out, Bit>,
    pub m_b_valid: Signal<In, Bit>,
    pub m_b_ready: Signal<Out, Bit>,
    pub m_b_resp: Signal<In, Bits<2>>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    pub m_notify: MsgSrc<VqNotify>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<2>>,
    aw: MsgSlice<Address>,
    w: AxisSlice<W, K>,
    aw_out: MsgSlice<Address>,
    w_out: AxisSlice<W, K>,
    ctl: CtlLine<Line, LQ>,
    own: RamAsync<Line, LQ>,
    rows: RamAsync<Line, LQ>,
    waiting: MsgFifo<VqNotify, LG_WAITING>,
    state: DFF<State>,
    /// The address has been passed on; no beat has been taken yet, and more than one has.
    given: DFF<Bit>,
    begun: DFF<Bit>,
    long: DFF<Bit>,
    number: DFF<Bits<16>>,
    whole: DFF<Bit>,
    answers: DFF<Bits<4>>,
    wipes: DFF<Bit>,
    at: DFF<Bits<LQ>>,
    rung: DFF<Bit>,
    bad: DFF<Bit>,
    events: Gather<2>,
    head: Signal<Local, Bits<32>>,
    ours: Signal<Local, Bit>,
    beat: Signal<Local, Bits<W>>,
    lanes: Signal<Local, Bits<K>>,
    beyond: Signal<Local, Bits<16>>,
    row: Signal<Local, Line>,
    good: Signal<Local, Bit>,
    rings: Signal<Local, Bit>,
    answered: Signal<Local, Bit>,
    gives: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    given_back: Signal<Local, Bit>,
    queue: Signal<Local, Bits<16>>,
    #[init(Constant::new(u64::from(csr::DB_VQ >> 12).to_bits()))]
    page: Constant<Bits<4>>,
    #[init(Constant::new(u64::from(csr::DB_VQ).to_bits()))]
    place: Constant<Bits<16>>,
    #[init(Constant::new((0xffffu64 >> LQ << LQ).to_bits()))]
    outside: Constant<Bits<16>>,
    #[init(Constant::new(((1u64 << LQ) - 1).to_bits()))]
    last: Constant<Bits<LQ>>,
    #[init(Constant::new(Line::default()))]
    nobody: Constant<Line>,
    /// Strobes of the first 8 bytes of a beat.
    #[init(Constant::new(STROBES.to_bits()))]
    eight: Constant<Bits<K>>,
}

#[kernel]
impl<const W: usize, const K: usize, const LQ: usize> Logic for Bell<W, K, LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, given, begun, long, number, whole, answers, wipes, at, rung, bad);
        clock!(self, clock, aw, w, aw_out, w_out, ctl, own, rows, waiting);
        self.aw.reset.next = self.reset.val();
        self.w.reset.next = self.reset.val();
        self.aw_out.reset.next = self.reset.val();
        self.w_out.reset.next = self.reset.val();
        self.ctl.reset.next = self.reset.val();
        self.waiting.reset.next = self.reset.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.ctl.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.ctl.m_ctl);
        MsgSrc::<VqNotify>::link(&mut self.m_notify, &mut self.waiting.m);
        self.aw.s.data.next.addr = self.s_aw_addr.val();
        self.aw.s.data.next.len = self.s_aw_len.val();
        self.aw.s.valid.next = self.s_aw_valid.val();
        self.s_aw_ready.next = self.aw.s.ready.val();
        self.w.s.data.next = self.s_w_data.val();
        self.w.s.keep.next = self.s_w_strb.val();
        self.w.s.last.next = self.s_w_last.val();
        self.w.s.valid.next = self.s_w_valid.val();
        self.s_w_ready.next = self.w.s.ready.val();
        self.m_aw_valid.next = self.aw_out.m.valid.val();
        self.m_aw_addr.next = self.aw_out.m.data.val().addr;
        self.m_aw_len.next = self.aw_out.m.data.val().len;
        self.aw_out.m.ready.next = self.m_aw_ready.val();
        self.m_w_valid.next = self.w_out.m.valid.val();
        self.m_w_data.next = self.w_out.m.data.val();
        self.m_w_strb.next = self.w_out.m.keep.val();
        self.m_w_last.next = self.w_out.m.last.val();
        self.w_out.m.ready.next = self.m_w_ready.val();

        // The table, and its notifications.
        self.own.read_addr.next = self.ctl.addr.val();
        self.ctl.row.next = self.own.read_data.val();
        self.ctl.row_valid.next = self.ctl.req.val() & !self.wipes.q.val();
        self.own.write_en.next = self.ctl.done.val() & self.ctl.we.val();
        self.own.write_addr.next = self.ctl.addr.val();
        self.own.write_data.next = self.ctl.new_row.val();
        if self.wipes.q.val() {
            self.own.write_en.next = true;
            self.own.write_addr.next = self.at.q.val();
            self.own.write_data.next = self.nobody.val();
            self.at.d.next = self.at.q.val() + 1;
            self.wipes.d.next = !(self.at.q.val() == self.last.val());
        }
        self.rows.write_en.next = self.own.write_en.val();
        self.rows.write_addr.next = self.own.write_addr.val();
        self.rows.write_data.next = self.own.write_data.val();
        self.rings.next = self.ctl.done.val() & self.ctl.we.val() & self.ctl.new_row.val().rings;

        // Writes pass, or are taken.
        self.head.next = self.aw.m.data.val().addr;
        self.ours.next = self.head.val().get_bits::<4>(12) == self.page.val();
        self.aw.m.ready.next = false;
        self.w.m.ready.next = false;
        self.aw_out.s.data.next = self.aw.m.data.val();
        self.aw_out.s.valid.next = false;
        self.w_out.s.data.next = self.w.m.data.val();
        self.w_out.s.keep.next = self.w.m.keep.val();
        self.w_out.s.last.next = self.w.m.last.val();
        self.w_out.s.valid.next = false;
        self.beat.next = self.w.m.data.val();
        self.lanes.next = self.w.m.keep.val();
        self.beyond.next = self.number.q.val() & self.outside.val();
        self.rows.read_addr.next = self.number.q.val().get_bits::<LQ>(0);
        self.row.next = self.rows.read_data.val();
        self.good.next = self.whole.q.val() & !self.beyond.val().any() & self.row.val().valid & (self.row.val().function == self.head.val().get_bits::<12>(16));
        self.gives.next = self.aw_out.s.ready.val() & !self.given.q.val();
        self.moves.next = self.w.m.valid.val() & self.w_out.s.ready.val() & self.given.q.val();
        self.answered.next = false;
        self.rung.d.next = false;
        self.bad.d.next = false;
        self.waiting.s.valid.next = self.rings.val();
        self.queue.next = bit_cast::<16, LQ>(self.ctl.addr.val());
        match self.state.q.val() {
            State::Idle => {
                self.given.d.next = false;
                self.begun.d.next = false;
                self.long.d.next = false;
                if self.aw.m.valid.val() {
                    self.state.d.next = State::Pass;
                    if self.ours.val() {
                        self.state.d.next = State::Take;
                    }
                }
            }
            State::Pass => {
                self.aw_out.s.valid.next = !self.given.q.val();
                if self.gives.val() {
                    self.given.d.next = true;
                }
                self.w_out.s.valid.next = self.w.m.valid.val() & self.given.q.val();
                self.w.m.ready.next = self.w_out.s.ready.val() & self.given.q.val();
                if self.moves.val() & self.w.m.last.val() {
                    self.aw.m.ready.next = true;
                    self.state.d.next = State::Idle;
                }
            }
            State::Take => {
                self.w.m.ready.next = true;
                if self.w.m.valid.val() {
                    self.begun.d.next = true;
                    self.long.d.next = self.begun.q.val();
                    if !self.begun.q.val() {
                        self.number.d.next = self.beat.val().get_bits::<NUMBER>(0);
                        self.whole.d.next = (self.lanes.val() == self.eight.val()) & (self.head.val().get_bits::<16>(0) == self.place.val());
                    }
                    if self.w.m.last.val() {
                        self.state.d.next = State::Judge;
                    }
                }
            }
            State::Judge => {
                if (self.waiting.level.val() < ROOM) & (self.answers.q.val() < ANSWERS) & !self.rings.val() {
                    self.answered.next = true;
                    self.aw.m.ready.next = true;
                    self.state.d.next = State::Idle;
                    self.rung.d.next = self.good.val() & !self.long.q.val();
                    self.bad.d.next = !self.good.val() | self.long.q.val();
                    self.waiting.s.valid.next = self.good.val() & !self.long.q.val();
                    self.queue.next = self.number.q.val();
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.waiting.s.data.next.queue = self.queue.val();
        self.events.x[0].next = self.rung.q.val();
        self.events.x[1].next = self.bad.q.val();
        self.stat.next = self.events.y.val();

        // Answers are all alike: ours go when there are some.
        self.s_b_resp.next = bits::<2>(0);
        self.s_b_valid.next = self.answers.q.val().any() | self.m_b_valid.val();
        self.m_b_ready.next = !self.answers.q.val().any() & self.s_b_ready.val();
        self.given_back.next = self.answers.q.val().any() & self.s_b_ready.val();
        if self.answered.val() & !self.given_back.val() {
            self.answers.d.next = self.answers.q.val() + 1;
        }
        if !self.answered.val() & self.given_back.val() {
            self.answers.d.next = self.answers.q.val() - 1;
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.answers.d.next = bits::<4>(0);
            self.wipes.d.next = true;
            self.at.d.next = bits::<LQ>(0);
        }
    }
}
