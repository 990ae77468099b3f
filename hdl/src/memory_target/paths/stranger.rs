//! Whether a received packet comes from the queue pair's peer and is for this card. In the place of `roce/peer`: IPv4, no tag, one address of its own.
use super::{Peer, PeerWrite};
use crate::msg::PeerAsk;
use crate::prim::ram::RamAsync;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// One packet per cycle, of `2^LQ` queue pairs.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Strangers<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    pub mac: Signal<In, Bits<48>>,
    pub ip: Signal<In, Bits<32>>,
    pub write: Signal<In, PeerWrite>,
    pub write_en: Signal<In, Bit>,
    pub ask: Signal<In, PeerAsk>,
    /// Two cycles after `ask`. Where there is no peer nothing is refused: the responder knows no such queue pair.
    pub stranger: Signal<Out, Bit>,
    ips: RamAsync<Bits<32>, LQ>,
    valids: RamAsync<Bit, LQ>,
    line: Signal<Local, Bits<24>>,
    peer: Signal<Local, Peer>,
    now: DFF<PeerAsk>,
    qpn: Signal<Local, Bits<24>>,
    from: Signal<Local, Bits<128>>,
    to: Signal<Local, Bits<128>>,
    #[init(Constant::new(((1u64 << 24) - (1u64 << LQ)).to_bits()))]
    outside: Constant<Bits<24>>,
    excess: Signal<Local, Bits<24>>,
    known: DFF<Bit>,
    from_bad: DFF<Bit>,
    mac_bad: DFF<Bit>,
    to_bad: DFF<Bit>,
}

#[kernel]
impl<const LQ: usize> Logic for Strangers<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, now, known, from_bad, mac_bad, to_bad);
        clock!(self, clock, ips, valids);
        self.line.next = self.write.val().qpn;
        self.peer.next = self.write.val().peer;
        self.ips.write_en.next = self.write_en.val();
        self.ips.write_addr.next = self.line.val().get_bits::<LQ>(0);
        self.ips.write_data.next = self.peer.val().ip;
        self.valids.write_en.next = self.write_en.val();
        self.valids.write_addr.next = self.line.val().get_bits::<LQ>(0);
        self.valids.write_data.next = self.peer.val().valid;

        self.now.d.next = self.ask.val();
        self.qpn.next = self.now.q.val().qpn;
        self.from.next = self.now.q.val().sip;
        self.to.next = self.now.q.val().dip;
        self.ips.read_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.valids.read_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.excess.next = self.qpn.val() & self.outside.val();
        self.known.d.next = self.valids.read_data.val() & !self.excess.val().any();
        self.from_bad.d.next = self.from.val().get_bits::<32>(0) != self.ips.read_data.val();
        self.mac_bad.d.next = self.now.q.val().dmac != self.mac.val();
        self.to_bad.d.next = (self.to.val().get_bits::<32>(0) != self.ip.val()) | self.now.q.val().ipv6 | self.now.q.val().vlan;
        self.stranger.next = self.known.q.val() & (self.from_bad.q.val() | self.mac_bad.q.val() | self.to_bad.q.val());
    }
}
