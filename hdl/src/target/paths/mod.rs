//! The target's paths: where each queue pair's peer is. Stands in the place of a context store of [`PathCtx`]. See README.md.
use crate::context::bus::CtxServer;
use crate::prim::ram::RamAsync2;
use crate::records::PathCtx;
use rust_hdl::prelude::*;

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
    entries: RamAsync2<Peer, LQ>,
    peer: [DFF<Peer>; 2],
    id: [DFF<Bits<24>>; 2],
    tag: [DFF<Bits<4>>; 2],
    full: [DFF<Bit>; 2],
    qpn: Signal<Local, Bits<24>>,
    asked0: Signal<Local, Bits<24>>,
    asked1: Signal<Local, Bits<24>>,
}

impl<const LQ: usize> Logic for Paths<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, entries);
        self.qpn.next = self.write.val().qpn;
        self.entries.write_en.next = self.write_en.val();
        self.entries.write_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.entries.write_data.next = self.write.val().peer;
        self.asked0.next = self.client[0].acq_id.val();
        self.asked1.next = self.client[1].acq_id.val();
        self.entries.read_addr0.next = self.asked0.val().get_bits::<LQ>(0);
        self.entries.read_addr1.next = self.asked1.val().get_bits::<LQ>(0);
        self.peer[0].d.next = self.peer[0].q.val();
        self.peer[1].d.next = self.peer[1].q.val();
        if !self.full[0].q.val() {
            self.peer[0].d.next = self.entries.read_data0.val();
        }
        if !self.full[1].q.val() {
            self.peer[1].d.next = self.entries.read_data1.val();
        }
        for i in 0..2 {
            self.peer[i].clock.next = self.clock.val();
            self.id[i].clock.next = self.clock.val();
            self.tag[i].clock.next = self.clock.val();
            self.full[i].clock.next = self.clock.val();
            self.client[i].acq_ready.next = !self.full[i].q.val();
            self.client[i].rel_ready.next = true;
            self.id[i].d.next = self.id[i].q.val();
            self.tag[i].d.next = self.tag[i].q.val();
            if self.full[i].q.val() {
                self.full[i].d.next = !self.client[i].line_ready.val();
            } else {
                self.full[i].d.next = self.client[i].acq_valid.val();
                self.id[i].d.next = self.client[i].acq_id.val();
                self.tag[i].d.next = self.client[i].acq_tag.val();
            }
            self.client[i].line_valid.next = self.full[i].q.val();
            self.client[i].line_tag.next = self.tag[i].q.val();
            // Numbers come from the engines: there is none that does not exist.
            self.client[i].line_fault.next = false;
            self.client[i].line_data.next.dmac = self.peer[i].q.val().mac;
            self.client[i].line_data.next.vlan_tci = bits::<16>(0);
            self.client[i].line_data.next.smac = self.mac.val();
            // One flow per queue pair, in the range of RoCEv2 (annex A17: 0xc000 and up).
            self.client[i].line_data.next.udp_sport = bit_cast::<16, 24>(self.id[i].q.val()) | 0xc000;
            self.client[i].line_data.next.dip = bit_cast::<128, 32>(self.peer[i].q.val().ip);
            self.client[i].line_data.next.sip = bit_cast::<128, 32>(self.ip.val());
            self.client[i].line_data.next.flow_label = bits::<20>(0);
            self.client[i].line_data.next.rsvd0 = bits::<4>(0);
            self.client[i].line_data.next.tclass = bits::<8>(0);
            self.client[i].line_data.next.hop_limit = bits::<8>(64);
            self.client[i].line_data.next.ipv6 = false;
            self.client[i].line_data.next.vlan = false;
            self.client[i].line_data.next.valid = self.peer[i].q.val().valid;
            self.client[i].line_data.next.rsvd1 = bits::<5>(0);
            self.client[i].line_data.next.pkey = self.peer[i].q.val().pkey;
            self.client[i].line_data.next.qkey = bits::<32>(0);
            self.client[i].line_data.next.rsvd4 = bits::<32>(0);
            if self.reset.val() {
                self.full[i].d.next = false;
            }
        }
    }
}
