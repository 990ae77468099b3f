//! Received frames from the card's buffer to the functions that want them. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{AxisSink, AxisSrc, MsgSink, MsgSrc};
use crate::context::line::CtlLine;
use crate::msg::{CellRead, CtlReq, CtlResp, RxDesc, VsFor};
use crate::prim::arb::{FirstSet, OneHotToBin};
use crate::prim::cell_ram::CELL_BYTES;
use crate::prim::pack::{permutation, BePick, Gather};
use crate::records::StationCtx;
use crate::stream::{AxisFifo, MsgFifo, MsgSlice};
use ferric_abi::csr;
use ferric_abi::meta::frame_kind;
use ferric_abi::wire;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Names of the bits of `stat`: frames that some function gets, what functions get of them, frames dropped because too many wait, frames handed on because no function wants them.
pub const STATS: &[&str] = &["virtio_frames", "virtio_copies", "virtio_crowded", "virtio_passed_on"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_desc", &[]),                            // there is a place for as many as there are cells
    ("s_cell", &[]),                            // there is room for every beat asked for
    ("m_frame", &["m_cell", "s_cell"]),         // its function has been said
    ("m_for", &["m_desc", "m_cell", "s_cell"]), // of a frame whose beats are taken; nobody needs the next one's before
    ("s_ctl", &[]),
    ("m_ctl", &[]),
];

/// log2 of the frames that may wait: one for each cell.
const LG_WAITING: usize = 9;
/// Cells of waiting frames from which on the oldest is dropped unseen: half of the card's, so that frames for virtio functions leave others room.
const CROWD: u64 = crate::net::cells::CELLS as u64 / 2;
/// log2 of a cell's bytes, and what rounds a length up to cells.
const LG_CELL: u64 = CELL_BYTES.ilog2() as u64;
const ROUND_UP: u64 = CELL_BYTES as u64 - 1;
/// log2 of the bytes that are read at once; half of what there is room for.
const LG_PIECE: usize = 9;
const PIECE: u64 = 1 << LG_PIECE;
/// Cycles by which the decision about room is late.
const LATE: u64 = 2;
/// Bytes of a frame that are looked at: its destination.
const LOOK: u64 = 6;
/// Of a destination the bit that says that it is a group's: the lowest of its first byte.
const GROUP: usize = 40;

/// Of a descriptor, what cannot be made again of the rest.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Waiting {
    handle: Bits<12>,
    frame_len: Bits<14>,
    port: Bits<2>,
    ecn: Bits<2>,
    has_vlan: Bit,
    vlan_tci: Bits<16>,
    flow_hash: Bits<32>,
    kind: Bits<2>,
    tunnel: Bit,
    function: Bits<12>,
}

/// Functions, a bit each. `live`: they may get frames. `promiscuous`: whatever the destination.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Line {
    pub live: Bits<64>,
    pub promiscuous: Bits<64>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// The destination is read, and compared.
    Ask,
    Await,
    Compare,
    Judge,
    Choose,
    /// A copy, piece by piece.
    Tell,
    Read,
    Beats,
    /// Nobody's; one too many.
    Pass,
    Drop,
}

/// `W`, `K`: data path bits and bytes; `LG`: log2 of the beats of two pieces. `NF`, `LF`: functions, and log2 of them. `ND`: their MAC addresses.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K << LG == 2 << LG_PIECE, "two pieces have room")]
#[demand(1 << LF == NF && csr::STATIONS == 4 && 4 * NF == ND && NF <= 64, "each function has its addresses")]
#[demand(1 << LG_WAITING == crate::net::cells::CELLS)]
pub struct Intake<const W: usize, const K: usize, const LG: usize, const NF: usize, const LF: usize, const ND: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets the frames that wait. No function is live.
    pub reset: Signal<In, Bit>,
    /// Frames that are no RoCE packets, and those of them that nobody here wants.
    pub s_desc: MsgSink<RxDesc>,
    pub m_desc: MsgSrc<RxDesc>,
    pub m_cell: MsgSrc<CellRead>,
    pub s_cell: AxisSink<W, K>,
    /// The functions' MAC addresses.
    pub macs: [Signal<In, StationCtx>; ND],
    /// Copies, and whose they are.
    pub m_frame: AxisSrc<W, K>,
    pub m_for: MsgSrc<VsFor>,
    /// [`Line`], the only one.
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<4>>,
    arrived: MsgSlice<RxDesc>,
    waiting: MsgFifo<Waiting, LG_WAITING>,
    reads: MsgSlice<CellRead>,
    passed: MsgSlice<RxDesc>,
    whose: MsgSlice<VsFor>,
    beats: AxisFifo<W, K, LG>,
    ctl: CtlLine<Line, 1>,
    line: DFF<Line>,
    state: DFF<State>,
    dmac: DFF<Bits<48>>,
    station: Signal<Local, StationCtx>,
    same: Gather<ND>,
    each: [Signal<Local, Bits<4>>; NF],
    own: Gather<NF>,
    live: DFF<Bits<NF>>,
    all: DFF<Bits<NF>>,
    hits: DFF<Bits<NF>>,
    wants: DFF<Bits<NF>>,
    first: FirstSet<NF>,
    number: OneHotToBin<NF, LF>,
    of: DFF<Bits<LF>>,
    more: DFF<Bit>,
    off: DFF<Bits<14>>,
    left: DFF<Bits<14>>,
    held: DFF<Bits<14>>,
    entering: DFF<Bits<14>>,
    leaving: DFF<Bits<14>>,
    roomy: DFF<Bit>,
    taken: DFF<Bit>,
    copied: DFF<Bit>,
    crowded: DFF<Bit>,
    nobodys: DFF<Bit>,
    events: Gather<4>,
    now: Signal<Local, Waiting>,
    came: Signal<Local, Bits<14>>,
    gone: Signal<Local, Bits<14>>,
    done: Signal<Local, Bit>,
    #[init(BePick::new(permutation(&wire::Eth::LAYOUT, 0)[..8 * LOOK as usize].to_vec()))]
    destination: BePick<W, Bits<48>>,
    beat: Signal<Local, Bits<W>>,
    found: Signal<Local, Bits<ND>>,
    tci: Signal<Local, Bits<16>>,
    ends: Signal<Local, Bit>,
    rest: Signal<Local, Bits<NF>>,
    group: Signal<Local, Bit>,
    lives: Signal<Local, Bits<64>>,
    sees: Signal<Local, Bits<64>>,
    #[init(Constant::new(RxDesc::default()))]
    blank: Constant<RxDesc>,
    #[init(Constant::new(Line::default()))]
    nobody: Constant<Line>,
    /// Beats of a piece, less those that the level does not know of yet.
    #[init(Constant::new(((1u64 << LG_PIECE) / K as u64 - LATE).to_bits()))]
    piece_beats: Constant<Bits<16>>,
}

#[kernel]
impl<const W: usize, const K: usize, const LG: usize, const NF: usize, const LF: usize, const ND: usize> Logic for Intake<W, K, LG, NF, LF, ND> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, line, state, dmac, live, all, hits, wants, of, more, off, left, held, entering, leaving, roomy, taken, copied, crowded, nobodys);
        clock!(self, clock, arrived, waiting, reads, passed, whose, beats, ctl);
        self.arrived.reset.next = self.reset.val();
        self.waiting.reset.next = self.reset.val();
        self.reads.reset.next = self.reset.val();
        self.passed.reset.next = self.reset.val();
        self.whose.reset.next = self.reset.val();
        self.beats.reset.next = self.reset.val();
        self.ctl.reset.next = self.reset.val();
        MsgSink::<RxDesc>::link(&mut self.s_desc, &mut self.arrived.s);
        MsgSrc::<RxDesc>::link(&mut self.m_desc, &mut self.passed.m);
        MsgSrc::<CellRead>::link(&mut self.m_cell, &mut self.reads.m);
        MsgSrc::<VsFor>::link(&mut self.m_for, &mut self.whose.m);
        AxisSrc::<W, K>::link(&mut self.m_frame, &mut self.beats.m);
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.ctl.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.ctl.m_ctl);

        // The only line.
        self.ctl.row.next = self.line.q.val();
        self.ctl.row_valid.next = self.ctl.req.val();
        if self.ctl.done.val() & self.ctl.we.val() {
            self.line.d.next = self.ctl.new_row.val();
        }
        self.lives.next = self.line.q.val().live;
        self.sees.next = self.line.q.val().promiscuous;
        self.live.d.next = self.lives.val().get_bits::<NF>(0);
        self.all.d.next = self.sees.val().get_bits::<NF>(0);

        // Every frame waits aside.
        self.waiting.s.valid.next = self.arrived.m.valid.val();
        self.arrived.m.ready.next = self.waiting.s.ready.val();
        self.waiting.s.data.next.handle = self.arrived.m.data.val().handle;
        self.waiting.s.data.next.frame_len = self.arrived.m.data.val().frame_len;
        self.waiting.s.data.next.port = self.arrived.m.data.val().port;
        self.waiting.s.data.next.ecn = self.arrived.m.data.val().ecn;
        self.waiting.s.data.next.has_vlan = self.arrived.m.data.val().has_vlan;
        self.waiting.s.data.next.vlan_tci = self.arrived.m.data.val().vlan_tci;
        self.waiting.s.data.next.flow_hash = self.arrived.m.data.val().flow_hash;
        self.waiting.s.data.next.kind = self.arrived.m.data.val().kind;
        self.waiting.s.data.next.tunnel = self.arrived.m.data.val().tunnel;
        self.waiting.s.data.next.function = self.arrived.m.data.val().function;
        self.now.next = self.waiting.m.data.val();
        self.came.next = self.arrived.m.data.val().frame_len + ROUND_UP;
        self.gone.next = self.now.val().frame_len + ROUND_UP;
        self.entering.d.next = bits::<14>(0);
        if self.waiting.s.valid.val() & self.waiting.s.ready.val() {
            self.entering.d.next = self.came.val() >> LG_CELL;
        }
        self.leaving.d.next = bits::<14>(0);
        if self.done.val() {
            self.leaving.d.next = self.gone.val() >> LG_CELL;
        }
        self.held.d.next = self.held.q.val() + self.entering.q.val() - self.leaving.q.val();

        // What is handed on.
        self.tci.next = self.now.val().vlan_tci;
        self.passed.s.valid.next = false;
        self.passed.s.data.next = self.blank.val();
        self.passed.s.data.next.handle = self.now.val().handle;
        self.passed.s.data.next.frame_len = self.now.val().frame_len;
        self.passed.s.data.next.port = self.now.val().port;
        self.passed.s.data.next.class = self.tci.val().get_bits::<3>(13);
        self.passed.s.data.next.ecn = self.now.val().ecn;
        self.passed.s.data.next.ipv6 = self.now.val().kind == frame_kind::ICMPV6;
        self.passed.s.data.next.has_vlan = self.now.val().has_vlan;
        self.passed.s.data.next.vlan_tci = self.now.val().vlan_tci;
        self.passed.s.data.next.raw = true;
        self.passed.s.data.next.pay_len = self.now.val().frame_len.get_bits::<13>(0);
        self.passed.s.data.next.flow_hash = self.now.val().flow_hash;
        self.passed.s.data.next.kind = self.now.val().kind;
        self.passed.s.data.next.tunnel = self.now.val().tunnel;
        self.passed.s.data.next.function = self.now.val().function;

        // Whose it is.
        for i in 0..ND {
            self.station.next = self.macs[i].val();
            self.same.x[i].next = self.station.val().valid & (self.station.val().mac == self.dmac.q.val());
        }
        self.found.next = self.same.y.val();
        for f in 0..NF {
            self.each[f].next = self.found.val().get_bits::<4>(4 * f);
            self.own.x[f].next = self.each[f].val().any();
        }
        self.hits.d.next = self.own.y.val();
        self.group.next = self.dmac.q.val().get_bit(GROUP);
        self.first.x.next = self.wants.q.val();
        self.number.x.next = self.first.y.val();
        self.rest.next = self.wants.q.val() & !self.first.y.val();

        // Beats: of the destination into the register, of a copy on their way.
        self.beat.next = self.s_cell.data.val();
        self.destination.x.next = self.beat.val();
        self.beats.s.data.next = self.s_cell.data.val();
        self.beats.s.keep.next = self.s_cell.keep.val();
        self.ends.next = self.left.q.val() <= PIECE;
        self.beats.s.last.next = self.s_cell.last.val() & self.ends.val();
        self.beats.s.valid.next = false;
        self.s_cell.ready.next = false;
        // Half of it is free.
        self.roomy.d.next = self.beats.level.val() < self.piece_beats.val();

        self.reads.s.valid.next = false;
        self.reads.s.data.next.handle = self.now.val().handle;
        self.reads.s.data.next.off = self.off.q.val();
        self.reads.s.data.next.len = bits::<14>(PIECE);
        if self.ends.val() {
            self.reads.s.data.next.len = self.left.q.val();
        }
        self.reads.s.data.next.free = self.ends.val() & !self.more.q.val();
        self.whose.s.valid.next = false;
        self.whose.s.data.next.function = bit_cast::<12, LF>(self.of.q.val());
        self.done.next = false;
        self.taken.d.next = false;
        self.copied.d.next = false;
        self.crowded.d.next = false;
        self.nobodys.d.next = false;
        match self.state.q.val() {
            State::Idle => {
                if self.waiting.m.valid.val() {
                    self.state.d.next = State::Ask;
                    if self.held.q.val() >= CROWD {
                        self.state.d.next = State::Drop;
                    }
                }
            }
            State::Ask => {
                self.reads.s.valid.next = true;
                self.reads.s.data.next.off = bits::<14>(0);
                self.reads.s.data.next.len = bits::<14>(LOOK);
                self.reads.s.data.next.free = false;
                if self.reads.s.ready.val() {
                    self.state.d.next = State::Await;
                }
            }
            State::Await => {
                self.s_cell.ready.next = true;
                self.dmac.d.next = self.destination.y.val();
                if self.s_cell.valid.val() {
                    self.state.d.next = State::Compare;
                }
            }
            State::Compare => {
                self.state.d.next = State::Judge;
            }
            State::Judge => {
                self.wants.d.next = self.live.q.val() & (self.hits.q.val() | self.all.q.val());
                if self.group.val() {
                    self.wants.d.next = self.live.q.val();
                }
                self.state.d.next = State::Choose;
            }
            State::Choose => {
                self.of.d.next = self.number.y.val();
                self.more.d.next = self.rest.val().any();
                self.wants.d.next = self.rest.val();
                self.off.d.next = bits::<14>(0);
                self.left.d.next = self.now.val().frame_len;
                self.state.d.next = State::Tell;
                if !self.wants.q.val().any() {
                    self.state.d.next = State::Pass;
                }
            }
            State::Tell => {
                self.whose.s.valid.next = true;
                if self.whose.s.ready.val() {
                    self.copied.d.next = true;
                    self.state.d.next = State::Read;
                }
            }
            State::Read => {
                self.reads.s.valid.next = self.roomy.q.val();
                if self.roomy.q.val() & self.reads.s.ready.val() {
                    self.state.d.next = State::Beats;
                }
            }
            State::Beats => {
                self.s_cell.ready.next = true;
                self.beats.s.valid.next = self.s_cell.valid.val();
                if self.s_cell.valid.val() & self.s_cell.last.val() {
                    self.off.d.next = self.off.q.val() + PIECE;
                    self.left.d.next = self.left.q.val() - PIECE;
                    self.state.d.next = State::Read;
                    if self.ends.val() {
                        self.state.d.next = State::Choose;
                        if !self.more.q.val() {
                            self.taken.d.next = true;
                            self.done.next = true;
                            self.state.d.next = State::Idle;
                        }
                    }
                }
            }
            State::Pass => {
                self.passed.s.valid.next = true;
                if self.passed.s.ready.val() {
                    self.nobodys.d.next = true;
                    self.done.next = true;
                    self.state.d.next = State::Idle;
                }
            }
            State::Drop => {
                self.reads.s.valid.next = true;
                self.reads.s.data.next.off = bits::<14>(0);
                self.reads.s.data.next.len = bits::<14>(0);
                self.reads.s.data.next.free = true;
                if self.reads.s.ready.val() {
                    self.crowded.d.next = true;
                    self.done.next = true;
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.waiting.m.ready.next = self.done.val();
        self.events.x[0].next = self.taken.q.val();
        self.events.x[1].next = self.copied.q.val();
        self.events.x[2].next = self.crowded.q.val();
        self.events.x[3].next = self.nobodys.q.val();
        self.stat.next = self.events.y.val();
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.line.d.next = self.nobody.val();
            self.held.d.next = bits::<14>(0);
            self.entering.d.next = bits::<14>(0);
            self.leaving.d.next = bits::<14>(0);
        }
    }
}
