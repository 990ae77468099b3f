//! Answers for the card's addresses, and finds its neighbours. See README.md.

mod answer;
mod fetch;
mod header;
mod limit;
mod manifest;
pub use ferric_model::net::echo::{self as model, BURST, TICKS_PER_TOKEN};
mod send;
mod table;
#[cfg(test)]
mod tests;
mod walk;
mod worker;

pub use manifest::ECHO;

use crate::bus::{AxisSink, MsgSink, MsgSrc};
use crate::msg::{CellRead, CtlReq, CtlResp, InlineWrite, Network, RxDesc, SlotGrant, SlotReq, SlotSeal};
use crate::net::within::{Within, NETWORKS};
use crate::stream::{MsgFifo, MsgSlice};
use ferric_abi::meta::frame_kind;
use ferric_abi::wire;
use ferric_hdl_derive::{kernel, BlockDefault};
use ferric_model::net::networks;
use rust_hdl::prelude::*;

/// Names of the bits of `stat`. Every frame that is looked at is one of them; `echo_asked` is a request of our own.
pub const STATS: &[&str] = &["echo_arp", "echo_nd", "echo_ping", "echo_ping6", "echo_malformed", "echo_limited", "echo_passed_on", "echo_found", "echo_asked"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_desc", &["m_desc"]),                       // what is taken out has a place: as many as there are cells
    ("s_cell", &[]),                               // there is room for every beat asked for
    ("s_slot", &[]),                               // awaited since it was asked for
    ("m_seal", &["m_cell", "s_cell", "m_inline"]), // of a slot that has been granted: the frame is copied
    ("s_ctl", &[]),                                // one access at a time, between two looks at the table
    ("m_ctl", &[]),
];

/// Cells of waiting frames from which on the oldest is dropped unseen: half of the card's, so that whoever floods the card leaves the others room.
const CROWD: u64 = crate::net::cells::CELLS as u64 / 2;
/// log2 of a cell's bytes, and what rounds a length up to cells.
const LG_CELL: u64 = crate::prim::cell_ram::CELL_BYTES.ilog2() as u64;
const ROUND_UP: u64 = crate::prim::cell_ram::CELL_BYTES as u64 - 1;

/// log2 of the frames that may wait: one for each cell.
const LG_WAITING: usize = 9;
/// Bytes of Ethernet header and checksum: what of an echo's answer is not copied, but for the IP header and a tag.
const AROUND: u64 = wire::Eth::BYTES as u64 + 4;
const COPIED_4: u64 = AROUND + wire::Ipv4::BYTES as u64;
const COPIED_6: u64 = AROUND + wire::Ipv6::BYTES as u64;
const TAG: u64 = wire::Vlan::BYTES as u64;
/// The bit of a frame's `function` that says that software is shown it.
const SHOWN: usize = networks::SHOWN.ilog2() as usize;
/// Number of a frame's second piece.
const SECOND: u64 = 1;
/// Ends of an ARP packet and of a message of neighbour discovery.
const ARP_END: u64 = (wire::Eth::BYTES + wire::Arp::BYTES) as u64;
const DISCOVERY_END: u64 = answer::BYTES as u64;

/// Of a descriptor, what cannot be made again of the rest.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Waiting {
    pub handle: Bits<12>,
    pub frame_len: Bits<14>,
    pub port: Bits<2>,
    pub ecn: Bits<2>,
    pub has_vlan: Bit,
    pub vlan_tci: Bits<16>,
    pub flow_hash: Bits<32>,
    pub kind: Bits<2>,
    pub tunnel: Bit,
    pub function: Bits<12>,
    /// What software is told.
    pub src_qpn: Bits<24>,
}

/// Between the receive front and the engines that it feeds. `L` = log2(K) + 1, `LF` log2 of the card's functions, `LA` = `LF` + 4.
#[derive(LogicBlock, BlockDefault)]
#[demand((1..=6).contains(&LF), "2 to 64 functions")]
#[demand(1 << LG_WAITING == crate::net::cells::CELLS)]
pub struct Echo<const W: usize, const K: usize, const L: usize, const LF: usize, const LA: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets the frames that wait, and all addresses within 2^LA cycles.
    pub reset: Signal<In, Bit>,
    /// Ticks of 1.024 us.
    pub now: Signal<In, Bits<32>>,
    /// Every received frame that is not a RoCE packet.
    pub s_desc: MsgSink<RxDesc>,
    /// Those that are not ours.
    pub m_desc: MsgSrc<RxDesc>,
    pub m_cell: MsgSrc<CellRead>,
    pub s_cell: AxisSink<W, K>,
    pub m_slot: MsgSrc<SlotReq>,
    pub s_slot: MsgSink<SlotGrant>,
    pub m_inline: MsgSrc<InlineWrite>,
    pub m_seal: MsgSrc<SlotSeal>,
    /// Which network each function is in.
    pub networks: Signal<In, Bits<NETWORKS>>,
    /// Space ADDRESS.
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// One pulse per event, see [`STATS`].
    pub stat: Signal<Out, Bits<9>>,
    arrived: MsgSlice<RxDesc>,
    waiting: MsgFifo<Waiting, LG_WAITING>,
    fetch: fetch::Fetch<W, K, L>,
    header: header::Header,
    addresses: table::Table<LF, LA>,
    limit: limit::Limit<LA>,
    walk: walk::Walk,
    answer: answer::Answer,
    send: send::Send,
    worker: worker::Worker<LF>,
    /// A frame that was looked at is on offer.
    returns: DFF<Bit>,
    /// Cells of the frames that wait.
    held: DFF<Bits<14>>,
    came: Signal<Local, Bits<14>>,
    gone: Signal<Local, Bits<14>>,
    /// Cells of frames that came and went in the last cycle: counted in this one, because either is known late.
    entering: DFF<Bits<14>>,
    leaving: DFF<Bits<14>>,
    stop: DFF<Bits<14>>,
    copied_from: DFF<Bits<7>>,
    /// Functions of the frame's network.
    within: Within,
    origin: Signal<Local, Network>,
    reached: DFF<Bits<64>>,
    shown: Signal<Local, Bit>,
    ours: Signal<Local, Bit>,
    passes: Signal<Local, Bit>,
    now_waiting: Signal<Local, Waiting>,
    tci: Signal<Local, Bits<16>>,
    pings: Signal<Local, Bit>,
    bucket: Signal<Local, Bits<LA>>,
    has_tag: Signal<Local, Bit>,
    plain_end: Signal<Local, Bits<14>>,
    plain_from: Signal<Local, Bits<7>>,
    #[init(Constant::new(RxDesc::default()))]
    blank: Constant<RxDesc>,
}

#[kernel]
impl<const W: usize, const K: usize, const L: usize, const LF: usize, const LA: usize> Logic for Echo<W, K, L, LF, LA> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, returns, held, entering, leaving, stop, copied_from, reached);
        clock!(self, clock, arrived, waiting, fetch, header, addresses, limit, walk, answer, send, worker);
        self.arrived.reset.next = self.reset.val();
        self.waiting.reset.next = self.reset.val();
        self.fetch.reset.next = self.reset.val();
        self.addresses.reset.next = self.reset.val();
        self.limit.reset.next = self.reset.val();
        self.walk.reset.next = self.reset.val();
        self.answer.reset.next = self.reset.val();
        self.send.reset.next = self.reset.val();
        self.worker.reset.next = self.reset.val();
        MsgSink::<RxDesc>::link(&mut self.s_desc, &mut self.arrived.s);
        MsgSrc::<CellRead>::link(&mut self.m_cell, &mut self.fetch.m_cell);
        AxisSink::<W, K>::link(&mut self.s_cell, &mut self.fetch.s_cell);
        MsgSrc::<SlotReq>::link(&mut self.m_slot, &mut self.send.m_slot);
        MsgSink::<SlotGrant>::link(&mut self.s_slot, &mut self.send.s_slot);
        MsgSrc::<InlineWrite>::link(&mut self.m_inline, &mut self.send.m_inline);
        MsgSrc::<SlotSeal>::link(&mut self.m_seal, &mut self.send.m_seal);
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.addresses.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.addresses.m_ctl);

        // What may be ours waits aside, the rest passes. A frame that comes back gets in when nothing stands before it that has been offered
        // already, and the next one after at least one that passes.
        // What software is shown of other networks is none of ours.
        self.shown.next = self.arrived.m.data.val().tunnel & self.arrived.m.data.val().function.get_bit(SHOWN);
        self.ours.next = self.arrived.m.data.val().raw & self.arrived.m.data.val().kind.any() & !self.shown.val();
        self.passes.next = self.arrived.m.valid.val() & !self.ours.val();
        self.waiting.s.valid.next = self.arrived.m.valid.val() & self.ours.val();
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
        self.waiting.s.data.next.src_qpn = self.arrived.m.data.val().src_qpn;
        self.arrived.m.ready.next = self.waiting.s.ready.val();
        if !self.ours.val() {
            self.arrived.m.ready.next = self.m_desc.ready.val() & !self.returns.q.val();
        }
        self.now_waiting.next = self.waiting.m.data.val();
        self.tci.next = self.now_waiting.val().vlan_tci;
        self.has_tag.next = self.now_waiting.val().has_vlan;
        self.m_desc.valid.next = self.passes.val() | self.returns.q.val();
        self.m_desc.data.next = self.arrived.m.data.val();
        if self.returns.q.val() {
            self.m_desc.data.next = self.blank.val();
            self.m_desc.data.next.handle = self.now_waiting.val().handle;
            self.m_desc.data.next.frame_len = self.now_waiting.val().frame_len;
            self.m_desc.data.next.port = self.now_waiting.val().port;
            self.m_desc.data.next.class = self.tci.val().get_bits::<3>(13);
            self.m_desc.data.next.ecn = self.now_waiting.val().ecn;
            self.m_desc.data.next.ipv6 = self.now_waiting.val().kind == frame_kind::ICMPV6;
            self.m_desc.data.next.has_vlan = self.now_waiting.val().has_vlan;
            self.m_desc.data.next.vlan_tci = self.now_waiting.val().vlan_tci;
            self.m_desc.data.next.raw = true;
            self.m_desc.data.next.pay_len = self.now_waiting.val().frame_len.get_bits::<13>(0);
            self.m_desc.data.next.flow_hash = self.now_waiting.val().flow_hash;
            self.m_desc.data.next.kind = self.now_waiting.val().kind;
            self.m_desc.data.next.tunnel = self.now_waiting.val().tunnel;
            self.m_desc.data.next.function = self.now_waiting.val().function;
            self.m_desc.data.next.src_qpn = self.now_waiting.val().src_qpn;
        }
        if self.returns.q.val() {
            self.returns.d.next = !self.m_desc.ready.val();
        } else {
            self.returns.d.next = self.worker.back.val() & (!self.passes.val() | self.m_desc.ready.val());
        }
        self.worker.back_ready.next = self.returns.q.val() & self.m_desc.ready.val();
        self.worker.waiting.next = self.waiting.m.valid.val();
        self.waiting.m.ready.next = self.worker.taken.val();
        self.came.next = self.arrived.m.data.val().frame_len + ROUND_UP;
        self.gone.next = self.now_waiting.val().frame_len + ROUND_UP;
        self.entering.d.next = bits::<14>(0);
        if self.waiting.s.valid.val() & self.waiting.s.ready.val() {
            self.entering.d.next = self.came.val() >> LG_CELL;
        }
        self.leaving.d.next = bits::<14>(0);
        if self.worker.taken.val() {
            self.leaving.d.next = self.gone.val() >> LG_CELL;
        }
        self.held.d.next = self.held.q.val() + self.entering.q.val() - self.leaving.q.val();
        self.worker.crowded.next = self.held.q.val() >= CROWD;

        // Pieces, for one of three.
        self.fetch.handle.next = self.now_waiting.val().handle;
        self.fetch.frame_len.next = self.now_waiting.val().frame_len;
        self.fetch.go.next = self.worker.fetch.val() | self.walk.need.val() | self.send.need.val();
        self.fetch.free.next = self.worker.fetch_free.val();
        self.fetch.index.next = self.walk.index.val();
        if self.send.need.val() {
            self.fetch.index.next = self.send.index.val();
        }
        if self.worker.fetch.val() {
            self.fetch.index.next = bits::<7>(0);
            if self.worker.fetch_second.val() {
                self.fetch.index.next = bits::<7>(SECOND);
            }
        }
        self.worker.came.next = self.fetch.came.val();
        self.walk.came.next = self.fetch.came.val();
        self.send.came.next = self.fetch.came.val();
        self.header.piece.next = self.fetch.piece.val();
        self.walk.piece.next = self.fetch.piece.val();
        self.send.piece.next = self.fetch.piece.val();
        self.worker.long.next = self.now_waiting.val().frame_len > fetch::PIECE as u64;

        // Headers.
        self.header.first.next = self.worker.first.val();
        self.header.second.next = self.worker.second.val();
        self.header.kind.next = self.now_waiting.val().kind;
        self.header.has_tag.next = self.has_tag.val();
        self.header.vid.next = self.tci.val().get_bits::<12>(0);
        self.header.frame_len.next = self.now_waiting.val().frame_len;
        self.worker.sort.next = self.header.sort.val();
        self.worker.good.next = self.header.good.val();
        self.worker.nobody.next = self.header.nobody.val();

        // Table and limit.
        self.addresses.go.next = self.worker.look.val();
        self.addresses.want.next = self.worker.want.val();
        self.addresses.key.next = self.header.key.val();
        self.addresses.whose.next = self.worker.whose.val();
        self.origin.next.tunnel = self.now_waiting.val().tunnel;
        self.origin.next.function = self.now_waiting.val().function;
        self.within.network.next = self.origin.val();
        self.within.networks.next = self.networks.val();
        self.reached.d.next = self.within.reached.val();
        self.addresses.within.next = self.reached.q.val();
        self.addresses.mac.next = self.header.smac.val();
        if self.header.sort.val().advertisement {
            self.addresses.mac.next = self.walk.mac.val();
        }
        self.worker.looked.next = self.addresses.done.val();
        self.worker.hit.next = self.addresses.hit.val();
        self.worker.ask.next = self.addresses.ask.val();
        self.worker.ask_function.next = self.addresses.ask_function.val();
        self.pings.next = self.header.sort.val().ping | self.header.sort.val().ping6;
        self.bucket.next = bit_cast::<LA, LF>(self.addresses.holder.val()) << 1;
        self.limit.bucket.next = self.bucket.val();
        if self.pings.val() {
            self.limit.bucket.next = self.bucket.val() + 1;
        }
        self.limit.now.next = self.now.val();
        self.limit.go.next = self.worker.limit.val();
        self.worker.limited.next = self.limit.done.val();
        self.worker.allowed.next = self.limit.allowed.val();

        // Checksums and options.
        self.walk.start.next = self.worker.walk.val();
        self.walk.has_tag.next = self.has_tag.val();
        self.walk.ipv6.next = self.now_waiting.val().kind == frame_kind::ICMPV6;
        self.walk.discovery.next = self.header.sort.val().solicitation | self.header.sort.val().advertisement;
        self.walk.length.next = self.header.length.val();
        self.worker.walked.next = self.walk.done.val();
        self.worker.right.next = self.walk.right.val();
        self.worker.source.next = self.walk.source.val();
        self.worker.target.next = self.walk.target.val();

        // What is sent.
        self.answer.start.next = self.worker.build.val();
        self.answer.sort.next = self.header.sort.val();
        self.answer.asking.next = self.worker.asking.val();
        self.answer.address.next = self.addresses.address.val();
        self.answer.sought.next = self.addresses.sought.val();
        self.answer.smac.next = self.header.smac.val();
        self.answer.nobody.next = self.header.nobody.val();
        self.answer.arp_in.next = self.header.arp.val();
        self.answer.ip4_in.next = self.header.ip4.val();
        self.answer.ip6_in.next = self.header.ip6.val();
        self.answer.checksum.next = self.header.checksum.val();
        self.worker.built.next = self.answer.done.val();
        self.send.start.next = self.worker.send.val();
        self.send.built.next = self.answer.built.val();
        self.send.vlan.next = self.addresses.address.val().vlan;
        self.send.vid.next = self.addresses.address.val().vid;
        self.send.sender.next = bit_cast::<12, LF>(self.addresses.holder.val());
        self.send.copies.next = self.pings.val() & !self.worker.asking.val();
        self.send.copied_from.next = self.copied_from.q.val();
        self.send.stop.next = self.stop.q.val();
        self.worker.sent.next = self.send.done.val();
        // An address of the version that it is says how long ARP or neighbour discovery is.
        self.plain_end.next = bits::<14>(ARP_END);
        self.plain_from.next = bits::<7>(COPIED_4);
        if self.addresses.address.val().ipv6 {
            self.plain_end.next = bits::<14>(DISCOVERY_END);
            self.plain_from.next = bits::<7>(COPIED_6);
        }
        self.stop.d.next = self.plain_end.val();
        self.copied_from.d.next = self.plain_from.val();
        if self.addresses.address.val().vlan {
            self.stop.d.next = self.plain_end.val() + TAG;
            self.copied_from.d.next = self.plain_from.val() + TAG;
        }
        if self.pings.val() & !self.worker.asking.val() {
            self.stop.d.next = self.header.stop.val();
        }
        self.stat.next = self.worker.stat.val();
        if self.reset.val() {
            self.returns.d.next = false;
            self.held.d.next = bits::<14>(0);
            self.entering.d.next = bits::<14>(0);
            self.leaving.d.next = bits::<14>(0);
        }
    }
}
