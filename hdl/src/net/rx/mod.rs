//! Receive front end: MAC frames in, checked descriptors out. See README.md.

pub mod feed;
pub mod ip;
pub mod judge;
pub use ferric_model::net::parse as model;
pub mod opcode;
pub mod parse;
#[cfg(test)]
mod tests;
pub mod window;

use crate::bus::{AxisSink, MsgSrc};
use crate::msg::{Network, PeerAsk, RxDesc};
use crate::net::cells::CellWriter;
use crate::net::icrc::IcrcPipe;
use crate::stream::MsgFifo;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// What the bits of `stat` count. Every frame is one of `rx_frames` and exactly one of the others, of [`STRANGERS`], or `foreign`.
pub const STATS: &[&str] = &["rx_frames", "rx_roce", "rx_raw", "rx_malformed", "rx_bad_icrc", "rx_no_buffer", "rx_mac_error", "rx_oversize"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s", &[]), // what finds no room is dropped; a descriptor has a place for each cell
    ("peer_stranger", &[]),
    ("peer_foreign", &[]),
    ("peer_line", &[]),
    ("other_station", &[]),
];

/// What the bits of `strange` count: RoCE packets that do not come from the queue pair's peer to the queue pair (see `roce/peer`), other frames that are for
/// another station (see `net/station`).
pub const STRANGERS: &[&str] = &["rx_stranger", "rx_other_station"];

/// log2 of the descriptors held. Each stands for a frame with at least one cell: as many as cells never overflow.
const LG_DESCS: usize = 9;

/// Parses and checks at one beat per cycle; the MAC never waits.
#[derive(LogicBlock, BlockDefault)]
#[demand(1 << LG_DESCS == crate::net::cells::CELLS)]
pub struct RxFront<const W: usize, const K: usize, const LK: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    /// Frames from the Ethernet header on, without FCS. Always ready.
    pub s: AxisSink<W, K>,
    /// With `s.last`: the MAC found the frame bad.
    pub s_err: Signal<In, Bit>,
    /// With every beat: where the frame comes from.
    pub network: Signal<In, Network>,
    /// With every beat: `src_qpn` of its descriptor if it is none of RoCE.
    pub note: Signal<In, Bits<24>>,
    pub m_cell: CellWriter<W>,
    /// RoCE packets that passed.
    pub m_desc: MsgSrc<RxDesc>,
    /// All other frames that passed. Both leave one queue: who takes one kind must not wait for the other.
    pub m_raw: MsgSrc<RxDesc>,
    /// To `roce/peer`, in every cycle; its answer comes two cycles later.
    pub peer: Signal<Out, PeerAsk>,
    pub peer_stranger: Signal<In, Bit>,
    pub peer_foreign: Signal<In, Bit>,
    pub peer_line: Signal<In, Bits<24>>,
    /// To `net/station`, in every cycle a destination, a cycle earlier than `peer`; its answer comes three cycles later.
    pub dmac: Signal<Out, Bits<48>>,
    pub dmac_network: Signal<Out, Network>,
    pub other_station: Signal<In, Bit>,
    /// From `net/station`, a cycle after `dmac`: whose address it is, if it is somebody's. A frame for a whole network is for that function alone then.
    pub owner: Signal<In, Bits<6>>,
    pub owned: Signal<In, Bit>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<8>>,
    /// See [`STRANGERS`].
    pub strange: Signal<Out, Bits<2>>,
    /// One pulse per RoCE packet that is refused because its queue pair is of another network (see `roce/peer`). It is none of the card's counters: whoever makes networks counts.
    pub foreign: Signal<Out, Bit>,
    window: window::Window<W, K>,
    parser: parse::Parser,
    feed: feed::Feed<W, K>,
    icrc: IcrcPipe<W, K, LK>,
    judge: judge::Judge,
    descs: MsgFifo<RxDesc, LG_DESCS>,
    raw: Signal<Local, Bit>,
    /// Beside the beats of the window, and the window.
    network1: DFF<Network>,
    network2: DFF<Network>,
    note1: DFF<Bits<24>>,
    note2: DFF<Bits<24>>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize> Logic for RxFront<W, K, LK> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, network1, network2, note1, note2);
        clock!(self, clock, window, parser, feed, icrc, judge, descs);
        self.window.reset.next = self.reset.val();
        self.parser.reset.next = self.reset.val();
        self.feed.reset.next = self.reset.val();
        self.icrc.reset.next = self.reset.val();
        self.judge.reset.next = self.reset.val();
        self.descs.reset.next = self.reset.val();
        self.s.ready.next = true;
        self.window.data.next = self.s.data.val();
        self.window.keep.next = self.s.keep.val();
        self.window.last.next = self.s.last.val();
        self.window.err.next = self.s_err.val();
        self.window.valid.next = self.s.valid.val();
        self.parser.window.next = self.window.window.val();
        self.parser.window_valid.next = self.window.window_valid.val();
        self.parser.types.next = self.window.types.val();
        self.network1.d.next = self.network.val();
        self.network2.d.next = self.network1.q.val();
        self.parser.network.next = self.network2.q.val();
        self.note1.d.next = self.note.val();
        self.note2.d.next = self.note1.q.val();
        self.parser.note.next = self.note2.q.val();
        self.feed.b_data.next = self.window.b_data.val();
        self.feed.b_keep.next = self.window.b_keep.val();
        self.feed.b_last.next = self.window.b_last.val();
        self.feed.b_err.next = self.window.b_err.val();
        self.feed.b_valid.next = self.window.b_valid.val();
        self.feed.flags.next = self.parser.flags.val();
        self.feed.flags_valid.next = self.window.early.val();
        self.icrc.data.next = self.feed.data.val();
        self.icrc.keep.next = self.feed.icrc_keep.val();
        self.icrc.first.next = self.feed.first.val();
        self.icrc.last.next = self.feed.icrc_last.val();
        self.icrc.valid.next = self.feed.icrc_valid.val();
        self.icrc.vlan.next = self.feed.vlan.val();
        self.icrc.ipv6.next = self.feed.ipv6.val();
        self.icrc.drop4.next = false;
        self.m_cell.data.next = self.feed.data.val();
        self.m_cell.first.next = self.feed.first.val();
        self.m_cell.last.next = self.feed.cell_last.val();
        self.m_cell.valid.next = self.feed.cell_valid.val();
        self.judge.ending.next = self.feed.ending.val();
        self.judge.crc_right.next = self.icrc.right.val();
        self.judge.crc_valid.next = self.icrc.right_valid.val();
        self.judge.parsed.next = self.parser.desc.val();
        self.judge.malformed.next = self.parser.malformed.val();
        self.judge.refused.next = self.parser.refused.val();
        self.judge.foreign.next = self.parser.foreign.val();
        self.peer.next = self.parser.peer.val();
        self.parser.peer_stranger.next = self.peer_stranger.val();
        self.parser.peer_foreign.next = self.peer_foreign.val();
        self.parser.peer_line.next = self.peer_line.val();
        self.dmac.next = self.parser.dmac.val();
        self.dmac_network.next = self.parser.dmac_network.val();
        self.parser.other_station.next = self.other_station.val();
        self.parser.owner.next = self.owner.val();
        self.parser.owned.next = self.owned.val();
        self.judge.parsed_valid.next = self.parser.desc_valid.val();
        self.m_cell.verdict.next = self.judge.verdict.val();
        self.m_cell.keep.next = self.judge.keep.val();
        self.judge.done.next = self.m_cell.done.val();
        self.judge.done_ok.next = self.m_cell.done_ok.val();
        self.judge.done_no_room.next = self.m_cell.done_no_room.val();
        self.judge.done_handle.next = self.m_cell.done_handle.val();
        self.descs.s.data.next = self.judge.desc.val();
        self.descs.s.valid.next = self.judge.desc_valid.val();
        self.raw.next = self.descs.m.data.val().raw;
        self.m_desc.data.next = self.descs.m.data.val();
        self.m_desc.valid.next = self.descs.m.valid.val() & !self.raw.val();
        self.m_raw.data.next = self.descs.m.data.val();
        self.m_raw.valid.next = self.descs.m.valid.val() & self.raw.val();
        self.descs.m.ready.next = self.m_desc.ready.val();
        if self.raw.val() {
            self.descs.m.ready.next = self.m_raw.ready.val();
        }
        self.stat.next = self.judge.stat.val();
        self.strange.next = self.judge.strange.val();
        self.foreign.next = self.judge.foreign_seen.val();
    }
}
