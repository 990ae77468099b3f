//! Whether a received packet comes from the queue pair's peer and is for the queue pair, and through its function's tunnel. See README.md.

#[cfg(test)]
use ferric_model::roce::peer as model;
#[cfg(test)]
mod tests;

use crate::msg::{CtlReq, Network, PeerAsk};
use crate::net::within::{Within, NETWORKS};
use crate::prim::ram::Ram;
use ferric_abi::csr::SPECIAL;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("ask", &[]),
    ("stranger", &[]), // two cycles later
    ("foreign", &[]),  // the same
    ("addressee", &[]),
    ("line_bits", &[]), // as `stranger`
];

/// The four words of an address.
const IP_WORDS: usize = 4;

/// Compares each received packet with the path of its queue pair, one per cycle. `LQ`: log2 of the queue pairs, `LJ`: of those in a function's share.
#[derive(LogicBlock, BlockDefault)]
#[demand(1 < LJ && LJ <= LQ)]
pub struct PeerCheck<const LQ: usize, const LJ: usize> {
    pub clock: Signal<In, Clock>,
    /// A request on the control port of the paths (`PathCtx`).
    pub ctl: Signal<In, CtlReq>,
    pub ctl_valid: Signal<In, Bit>,
    pub ask: Signal<In, PeerAsk>,
    /// Two cycles after `ask`: the packet is refused. Where there is no path nothing is: the engines know no such queue pair.
    pub stranger: Signal<Out, Bit>,
    /// At the same time: the queue pair is of another network than the packet. Groups are `roce/mcast`'s.
    pub foreign: Signal<Out, Bit>,
    /// With `ask`: the function whose MAC address the packet goes to (`net/station`).
    pub addressee: Signal<In, Bits<6>>,
    /// With `stranger`: bits of the number of the queue pair that the packet is for which it does not name.
    pub line_bits: Signal<Out, Bits<24>>,
    /// Which network each function is in.
    pub networks: Signal<In, Bits<NETWORKS>>,
    // The words of `PathCtx` that are compared, as the control bus writes them.
    tci: Ram<Bits<16>, LQ>,
    smac_low: Ram<Bits<32>, LQ>,
    smac_high: Ram<Bits<16>, LQ>,
    dip: [Ram<Bits<32>, LQ>; IP_WORDS],
    sip: [Ram<Bits<32>, LQ>; IP_WORDS],
    flags: Ram<Bits<3>, LQ>,
    functions: Ram<Bits<6>, LQ>,
    line: Signal<Local, Bits<24>>,
    /// The word written, one-hot.
    hit: Signal<Local, Bits<64>>,
    data: Signal<Local, Bits<32>>,
    write: Signal<Local, Bit>,
    qpn: Signal<Local, Bits<24>>,
    /// The packet is for a special queue pair: which one, its destination says.
    special: Signal<Local, Bit>,
    share: Signal<Local, Bits<24>>,
    /// What stands in the number beyond 1: the function's share.
    more1: DFF<Bits<24>>,
    more2: DFF<Bits<24>>,
    /// On the wire no special queue pair has another number than 1.
    hidden: DFF<Bit>,
    named: Signal<Local, Bits<24>>,
    #[init(Constant::new(SPECIAL.to_bits()))]
    special_qpn: Constant<Bits<24>>,
    #[init(Constant::new(((1u64 << LJ) - 1).to_bits()))]
    within: Constant<Bits<24>>,
    #[init(Constant::new((LJ as u64).to_bits()))]
    share_at: Constant<Bits<5>>,
    // The packet while its row is read
    now: DFF<PeerAsk>,
    dmac: Signal<Local, Bits<48>>,
    from: Signal<Local, Bits<128>>,
    to: Signal<Local, Bits<128>>,
    row_tci: Signal<Local, Bits<16>>,
    row_flags: Signal<Local, Bits<3>>,
    four: Signal<Local, Bit>,
    /// Bits of a queue pair number beyond the table.
    #[init(Constant::new(((1u64 << 24) - (1u64 << LQ)).to_bits()))]
    outside: Constant<Bits<24>>,
    excess: Signal<Local, Bits<24>>,
    // What differs
    known: DFF<Bit>,
    group: DFF<Bit>,
    mac_bad: DFF<Bit>,
    vlan_bad: DFF<Bit>,
    version_bad: DFF<Bit>,
    from_bad: [DFF<Bit>; IP_WORDS],
    to_bad: [DFF<Bit>; IP_WORDS],
    group4_bad: DFF<Bit>,
    group6_bad: DFF<Bit>,
    datagram: DFF<Bit>,
    ipv6: DFF<Bit>,
    apart: DFF<Bit>,
    owner: Signal<Local, Bits<6>>,
    /// Functions of the packet's network, found while its row is read.
    reach: Within,
    reached: DFF<Bits<64>>,
    origin: Signal<Local, Network>,
    shifted: Signal<Local, Bits<64>>,
    from_low: Signal<Local, Bit>,
    from_high: Signal<Local, Bit>,
    to_low: Signal<Local, Bit>,
    to_high: Signal<Local, Bit>,
}

#[kernel]
impl<const LQ: usize, const LJ: usize> Logic for PeerCheck<LQ, LJ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, now, known, group, mac_bad, vlan_bad, version_bad, group4_bad, group6_bad, datagram, ipv6, apart, more1, more2, hidden, reached);
        clock!(self, clock, tci, smac_low, smac_high, flags, functions);

        // The paths, as they are written. Seen for several cycles a write is only repeated.
        self.line.next = self.ctl.val().line;
        self.hit.next = bits::<64>(1) << bit_cast::<64, 6>(self.ctl.val().word);
        self.data.next = self.ctl.val().data;
        self.write.next = self.ctl_valid.val() & self.ctl.val().write;
        self.special.next = self.ask.val().datagram & (self.ask.val().qpn == self.special_qpn.val());
        self.share.next = bit_cast::<24, 6>(self.addressee.val()) << self.share_at.val();
        self.more1.d.next = bits::<24>(0);
        self.qpn.next = self.ask.val().qpn;
        if self.special.val() {
            self.more1.d.next = self.share.val();
            self.qpn.next = self.ask.val().qpn | self.share.val();
        }
        self.more2.d.next = self.more1.q.val();
        self.line_bits.next = self.more2.q.val();
        self.tci.write_en.next = self.write.val() & self.hit.val().get_bit(1);
        self.tci.write_addr.next = self.line.val().get_bits::<LQ>(0);
        self.tci.write_data.next = self.data.val().get_bits::<16>(16);
        self.tci.read_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.smac_low.write_en.next = self.write.val() & self.hit.val().get_bit(2);
        self.smac_low.write_addr.next = self.line.val().get_bits::<LQ>(0);
        self.smac_low.write_data.next = self.data.val();
        self.smac_low.read_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.smac_high.write_en.next = self.write.val() & self.hit.val().get_bit(3);
        self.smac_high.write_addr.next = self.line.val().get_bits::<LQ>(0);
        self.smac_high.write_data.next = self.data.val().get_bits::<16>(0);
        self.smac_high.read_addr.next = self.qpn.val().get_bits::<LQ>(0);
        // Words 4 to 7 and 8 to 11
        for i in 0..4 {
            self.dip[i].clock.next = self.clock.val();
            self.dip[i].write_en.next = self.write.val() & self.hit.val().get_bit(i + 4);
            self.dip[i].write_addr.next = self.line.val().get_bits::<LQ>(0);
            self.dip[i].write_data.next = self.data.val();
            self.dip[i].read_addr.next = self.qpn.val().get_bits::<LQ>(0);
            self.sip[i].clock.next = self.clock.val();
            self.sip[i].write_en.next = self.write.val() & self.hit.val().get_bit(i + 8);
            self.sip[i].write_addr.next = self.line.val().get_bits::<LQ>(0);
            self.sip[i].write_data.next = self.data.val();
            self.sip[i].read_addr.next = self.qpn.val().get_bits::<LQ>(0);
            self.from_bad[i].clock.next = self.clock.val();
            self.to_bad[i].clock.next = self.clock.val();
        }
        // Word 13: hop limit 8 bits, `ipv6`, `vlan`, `valid`
        self.flags.write_en.next = self.write.val() & self.hit.val().get_bit(13);
        self.flags.write_addr.next = self.line.val().get_bits::<LQ>(0);
        self.flags.write_data.next = self.data.val().get_bits::<3>(8);
        self.flags.read_addr.next = self.qpn.val().get_bits::<LQ>(0);

        // Word 15: whose it is
        self.functions.write_en.next = self.write.val() & self.hit.val().get_bit(15);
        self.functions.write_addr.next = self.line.val().get_bits::<LQ>(0);
        self.functions.write_data.next = self.data.val().get_bits::<6>(0);
        self.functions.read_addr.next = self.qpn.val().get_bits::<LQ>(0);

        self.excess.next = self.now.q.val().qpn & self.outside.val();
        // First cycle: the row is read. Second: word against word. What the path says of the other end is what a packet says of its source.
        self.now.d.next = self.ask.val();
        self.dmac.next = self.now.q.val().dmac;
        self.from.next = self.now.q.val().sip;
        self.to.next = self.now.q.val().dip;
        self.row_tci.next = self.tci.read_data.val();
        self.row_flags.next = self.flags.read_data.val();
        self.mac_bad.d.next = (self.dmac.val().get_bits::<32>(0) != self.smac_low.read_data.val()) | (self.dmac.val().get_bits::<16>(32) != self.smac_high.read_data.val());
        for i in 0..4 {
            self.from_bad[i].d.next = self.from.val().get_bits::<32>(i * 32) != self.dip[i].read_data.val();
            self.to_bad[i].d.next = self.to.val().get_bits::<32>(i * 32) != self.sip[i].read_data.val();
        }
        self.version_bad.d.next = self.now.q.val().ipv6 != self.row_flags.val().get_bit(0);
        self.vlan_bad.d.next = (self.now.q.val().vlan != self.row_flags.val().get_bit(1)) | (self.now.q.val().vlan & (self.now.q.val().vid != self.row_tci.val().get_bits::<12>(0)));
        self.known.d.next = self.row_flags.val().get_bit(2) & !self.excess.val().any();
        self.owner.next = self.functions.read_data.val();
        self.origin.next.tunnel = self.ask.val().tunnel;
        self.origin.next.function = self.ask.val().function;
        self.reach.network.next = self.origin.val();
        self.reach.networks.next = self.networks.val();
        self.reached.d.next = self.reach.reached.val();
        self.shifted.next = self.reached.q.val() >> bit_cast::<64, 6>(self.owner.val());
        self.apart.d.next = !self.shifted.val().get_bit(0);
        self.named.next = self.now.q.val().qpn & self.within.val();
        self.hidden.d.next = (self.named.val() == self.special_qpn.val()) & (self.now.q.val().qpn != self.special_qpn.val());
        self.datagram.d.next = self.now.q.val().datagram;
        self.ipv6.d.next = self.now.q.val().ipv6;
        // To a group, whose members `roce/mcast` knows: its own MAC address, 01:00:5e and 23 bits (RFC 1112) or 33:33 and 32 bits (RFC 2464).
        self.group.d.next = self.now.q.val().datagram & self.now.q.val().qpn.all();
        self.group4_bad.d.next = (self.dmac.val().get_bits::<25>(23) != 0x200bc) | (self.dmac.val().get_bits::<23>(0) != self.to.val().get_bits::<23>(0));
        self.group6_bad.d.next = (self.dmac.val().get_bits::<16>(32) != 0x3333) | (self.dmac.val().get_bits::<32>(0) != self.to.val().get_bits::<32>(0));

        // Third: the verdict. Of IPv4 addresses the low word counts.
        self.from_low.next = self.from_bad[0].q.val();
        self.from_high.next = self.from_bad[1].q.val() | self.from_bad[2].q.val() | self.from_bad[3].q.val();
        self.to_low.next = self.to_bad[0].q.val();
        self.to_high.next = self.to_bad[1].q.val() | self.to_bad[2].q.val() | self.to_bad[3].q.val();
        self.four.next = !self.ipv6.q.val();
        self.stranger.next = self.known.q.val()
            & (self.hidden.q.val()
                | self.mac_bad.q.val()
                | self.vlan_bad.q.val()
                | self.version_bad.q.val()
                | self.to_low.val()
                | (self.to_high.val() & self.ipv6.q.val())
                // A datagram may come from anybody.
                | (!self.datagram.q.val() & (self.from_low.val() | (self.from_high.val() & self.ipv6.q.val()))));
        self.foreign.next = self.known.q.val() & self.apart.q.val() & !self.group.q.val();
        if self.group.q.val() {
            self.stranger.next = (self.ipv6.q.val() & self.group6_bad.q.val()) | (self.four.val() & self.group4_bad.q.val());
        }
    }
}
