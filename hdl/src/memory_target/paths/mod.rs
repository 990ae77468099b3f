//! The target's paths: where each queue pair's peer is. Stands in the place of a context store of [`PathCtx`]. See README.md.
mod stranger;

use crate::codes::ip;
use crate::context::bus::CtxServer;
use crate::msg::PeerAsk;
use crate::prim::ram::RamAsync2;
use crate::records::PathCtx;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;
use stranger::Strangers;

/// First source port of RoCEv2 (annex A17).
const SOURCE_PORTS: u64 = 0xc000;

/// What is known of a peer.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Peer {
    pub valid: Bit,
    /// First byte on the wire in the most significant one.
    pub mac: Bits<48>,
    pub ip: Bits<32>,
    pub pkey: Bits<16>,
}

/// Writes the peer of queue pair `qpn`.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct PeerWrite {
    pub qpn: Bits<24>,
    pub peer: Peer,
}

/// One reader: asks for a queue pair's peer, and shows it as a path.
#[derive(LogicBlock, Default)]
pub struct PathPort {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub client: CtxServer<PathCtx>,
    pub mac: Signal<In, Bits<48>>,
    pub ip: Signal<In, Bits<32>>,
    /// Whose peer is wanted, and the peer in the same cycle.
    pub wanted: Signal<Out, Bits<24>>,
    pub found: Signal<In, Peer>,
    peer: DFF<Peer>,
    id: DFF<Bits<24>>,
    tag: DFF<Bits<4>>,
    full: DFF<Bit>,
}

#[kernel]
impl Logic for PathPort {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, peer, id, tag, full);
        self.wanted.next = self.client.acq_id.val();
        self.client.acq_ready.next = !self.full.q.val();
        self.client.rel_ready.next = true;
        if self.full.q.val() {
            self.full.d.next = !self.client.line_ready.val();
        } else {
            self.full.d.next = self.client.acq_valid.val();
            self.id.d.next = self.client.acq_id.val();
            self.tag.d.next = self.client.acq_tag.val();
            self.peer.d.next = self.found.val();
        }
        self.client.line_valid.next = self.full.q.val();
        self.client.line_tag.next = self.tag.q.val();
        // Numbers come from the engines: there is none that does not exist.
        self.client.line_fault.next = false;
        self.client.line_data.next.dmac = self.peer.q.val().mac;
        self.client.line_data.next.vlan_tci = bits::<16>(0);
        self.client.line_data.next.smac = self.mac.val();
        // One flow per queue pair, in the range of RoCEv2 (annex A17: 0xc000 and up).
        self.client.line_data.next.udp_sport = bit_cast::<16, 24>(self.id.q.val()) | SOURCE_PORTS;
        self.client.line_data.next.dip = bit_cast::<128, 32>(self.peer.q.val().ip);
        self.client.line_data.next.sip = bit_cast::<128, 32>(self.ip.val());
        self.client.line_data.next.flow_label = bits::<20>(0);
        self.client.line_data.next.rsvd0 = bits::<4>(0);
        self.client.line_data.next.tclass = bits::<8>(0);
        self.client.line_data.next.hop_limit = bits::<8>(ip::HOPS);
        self.client.line_data.next.ipv6 = false;
        self.client.line_data.next.vlan = false;
        self.client.line_data.next.valid = self.peer.q.val().valid;
        self.client.line_data.next.rsvd1 = bits::<5>(0);
        self.client.line_data.next.pkey = self.peer.q.val().pkey;
        self.client.line_data.next.qkey = bits::<32>(0);
        self.client.line_data.next.function = bits::<12>(0);
        self.client.line_data.next.rsvd4 = bits::<20>(0);
        if self.reset.val() {
            self.full.d.next = false;
        }
    }
}

/// Peers of `2^LQ` queue pairs: IPv4, no tag. Readers own nothing: a line is a copy.
#[derive(LogicBlock, Default)]
pub struct Paths<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous. The peers stay.
    pub reset: Signal<In, Bit>,
    pub client: [CtxServer<PathCtx>; 2],
    /// The card's own addresses.
    pub mac: Signal<In, Bits<48>>,
    pub ip: Signal<In, Bits<32>>,
    pub write: Signal<In, PeerWrite>,
    pub write_en: Signal<In, Bit>,
    /// Asked by `net/rx`; the answer comes two cycles later, as that of `roce/peer`.
    pub ask: Signal<In, PeerAsk>,
    pub stranger: Signal<Out, Bit>,
    strangers: Strangers<LQ>,
    entries: RamAsync2<Peer, LQ>,
    port: [PathPort; 2],
    qpn: Signal<Local, Bits<24>>,
    wanted0: Signal<Local, Bits<24>>,
    wanted1: Signal<Local, Bits<24>>,
}

#[kernel]
impl<const LQ: usize> Logic for Paths<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, entries, strangers);
        self.strangers.mac.next = self.mac.val();
        self.strangers.ip.next = self.ip.val();
        self.strangers.write.next = self.write.val();
        self.strangers.write_en.next = self.write_en.val();
        self.strangers.ask.next = self.ask.val();
        self.stranger.next = self.strangers.stranger.val();
        self.qpn.next = self.write.val().qpn;
        self.entries.write_en.next = self.write_en.val();
        self.entries.write_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.entries.write_data.next = self.write.val().peer;
        for i in 0..2 {
            self.port[i].clock.next = self.clock.val();
            self.port[i].reset.next = self.reset.val();
            self.port[i].mac.next = self.mac.val();
            self.port[i].ip.next = self.ip.val();
            CtxServer::<PathCtx>::link(&mut self.client[i], &mut self.port[i].client);
        }
        self.wanted0.next = self.port[0].wanted.val();
        self.wanted1.next = self.port[1].wanted.val();
        self.entries.read_addr0.next = self.wanted0.val().get_bits::<LQ>(0);
        self.entries.read_addr1.next = self.wanted1.val().get_bits::<LQ>(0);
        self.port[0].found.next = self.entries.read_data0.val();
        self.port[1].found.next = self.entries.read_data1.val();
    }
}
