//! Which received frames are for a function of the card, by their destination MAC address. See README.md.

#[cfg(test)]
use ferric_model::net::stations as model;
mod rightful;
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::line::CtlLine;
use crate::msg::{CtlReq, CtlResp, Network};
use crate::net::within::{Within, NETWORKS};
use crate::prim::arb::{BinToOneHot, FirstSet, OneHotToBin};
use crate::prim::pack::Gather;
use crate::prim::ram::RamAsync;
use crate::records::{SenderCtx, StationCtx};
use ferric_abi::csr;
use ferric_abi::wire::PAUSE_ADDRESS;
use ferric_hdl_derive::{kernel, BlockDefault};
use rightful::Rightful;
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("dmac", &[]),
    ("owner", &[]), // a cycle later
    ("other", &[]), // three cycles later
    ("s_ctl", &[]), // one access at a time
    ("m_ctl", &[]),
];

/// The bit of a group's address: the first on the wire, which is the lowest of the first byte (IEEE 802.3, 3.2.3).
const GROUP: usize = 40;
/// Bits of SET_PORT's word.
const RAW: usize = csr::PORT_RAW.ilog2() as usize;
const PROMISCUOUS: usize = csr::PORT_PROMISCUOUS.ilog2() as usize;
/// log2 of the addresses of a function.
const LG_STATIONS: usize = csr::STATIONS.ilog2() as usize;

/// Compares each destination with all of the `N` = 2^`LN` addresses of `NF` functions, one destination per cycle.
#[derive(LogicBlock, BlockDefault)]
#[demand(1 << LN == N)]
pub struct Stations<const N: usize, const LN: usize, const NF: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; no function has an address any more, and for `N` cycles the control bus waits.
    pub reset: Signal<In, Bit>,
    /// In every cycle a destination, which counts if `net/rx` asks about a frame.
    pub dmac: Signal<In, Bits<48>>,
    /// With it: where the frame comes from, and which network each function is in.
    pub network: Signal<In, Network>,
    pub networks: Signal<In, Bits<NETWORKS>>,
    /// In the next cycle: whose address it is; the physical function's if it is nobody's.
    pub owner: Signal<Out, Bits<6>>,
    /// At the same time: it is somebody's.
    pub owned: Signal<Out, Bit>,
    /// Three cycles after `dmac`: no function wants the frame.
    pub other: Signal<Out, Bit>,
    /// What each function may send: one that is verified has no other addresses than those, whatever it says.
    pub senders: [Signal<In, SenderCtx>; NF],
    /// Each function's addresses, as they stand; valid if they count.
    pub macs: [Signal<Out, StationCtx>; N],
    /// The admin engine's word of SET_PORT.
    pub port: Signal<In, Bits<32>>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    ctl: CtlLine<StationCtx, LN>,
    /// What the control bus reads, and what is looked at; the registers say the same.
    lines: RamAsync<StationCtx, LN>,
    looked_at: RamAsync<StationCtx, LN>,
    rightful: Rightful<N, LN, NF>,
    barred: Signal<Local, Bits<N>>,
    asked: Signal<Local, Bits<N>>,
    kept: Signal<Local, StationCtx>,
    addresses: [DFF<Bits<48>>; N],
    live: [DFF<Bit>; N],
    stored: BinToOneHot<N, LN>,
    stores: Signal<Local, Bits<N>>,
    clearing: DFF<Bit>,
    sweep: DFF<Bits<LN>>,
    counts: Signal<Local, Bit>,
    shown: Signal<Local, StationCtx>,
    same: Gather<N>,
    within: Within,
    hits: DFF<Bits<N>>,
    group: DFF<Bit>,
    promiscuous: DFF<Bit>,
    control: DFF<Bit>,
    first: FirstSet<N>,
    line: OneHotToBin<N, LN>,
    number: Signal<Local, Bits<8>>,
    other1: DFF<Bit>,
    other2: DFF<Bit>,
    #[init(Constant::new(StationCtx::default()))]
    nobody: Constant<StationCtx>,
    #[init(Constant::new(PAUSE_ADDRESS.to_bits()))]
    control_address: Constant<Bits<48>>,
}

#[kernel]
impl<const N: usize, const LN: usize, const NF: usize> Logic for Stations<N, LN, NF> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, clearing, sweep, hits, group, promiscuous, control, other1, other2);
        clock!(self, clock, ctl, lines, looked_at, rightful);
        self.ctl.reset.next = self.reset.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.ctl.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.ctl.m_ctl);

        self.barred.next = self.rightful.barred.val();
        // The table, a word at a time.
        self.lines.read_addr.next = self.ctl.addr.val();
        // Of an address that does not count the control bus hears that there is none: whoever may have it takes it.
        self.kept.next = self.lines.read_data.val();
        self.asked.next = self.barred.val() >> self.ctl.addr.val();
        self.kept.next.valid = self.lines.read_data.val().valid & !self.asked.val().get_bit(0);
        self.ctl.row.next = self.kept.val();
        self.ctl.row_valid.next = self.ctl.req.val() & !self.clearing.q.val();
        self.stored.x.next = self.ctl.addr.val();
        self.stored.en.next = self.ctl.done.val() & self.ctl.we.val();
        self.stores.next = self.stored.y.val();
        self.lines.write_en.next = self.stored.en.val();
        self.lines.write_addr.next = self.ctl.addr.val();
        self.lines.write_data.next = self.ctl.new_row.val();
        if self.clearing.q.val() {
            self.lines.write_en.next = true;
            self.lines.write_addr.next = self.sweep.q.val();
            self.lines.write_data.next = self.nobody.val();
            self.sweep.d.next = self.sweep.q.val() + 1;
            self.clearing.d.next = !self.sweep.q.val().all();
        }
        self.looked_at.write_en.next = self.lines.write_en.val();
        self.looked_at.write_addr.next = self.lines.write_addr.val();
        self.looked_at.write_data.next = self.lines.write_data.val();
        self.looked_at.read_addr.next = self.rightful.at.val();
        self.rightful.row.next = self.looked_at.read_data.val();
        self.rightful.stores.next = self.stores.val();
        for f in 0..NF {
            self.rightful.senders[f].next = self.senders[f].val();
        }

        self.within.network.next = self.network.val();
        self.within.networks.next = self.networks.val();
        // First cycle: every row. Second: one of them, or whoever may be meant besides.
        for i in 0..N {
            self.addresses[i].clock.next = self.clock.val();
            self.live[i].clock.next = self.clock.val();
            self.addresses[i].d.next = self.addresses[i].q.val();
            self.live[i].d.next = self.live[i].q.val();
            if self.stores.val().get_bit(i) {
                self.addresses[i].d.next = self.ctl.new_row.val().mac;
                self.live[i].d.next = self.ctl.new_row.val().valid;
            }
            if self.reset.val() {
                self.live[i].d.next = false;
            }
            self.shown.next = self.nobody.val();
            self.shown.next.mac = self.addresses[i].q.val();
            self.counts.next = self.live[i].q.val() & !self.barred.val().get_bit(i);
            self.shown.next.valid = self.counts.val();
            self.macs[i].next = self.shown.val();
            self.same.x[i].next = self.counts.val() & (self.addresses[i].q.val() == self.dmac.val()) & self.within.reached.val().get_bit(i >> LG_STATIONS);
        }
        self.hits.d.next = self.same.y.val();
        self.group.d.next = self.dmac.val().get_bit(GROUP);
        // Nobody but the raw queue pair wants what is for no function.
        self.promiscuous.d.next = self.port.val().get_bit(RAW) & self.port.val().get_bit(PROMISCUOUS) & self.within.reached.val().get_bit(0);
        // MAC control frames end here, whoever listens: pause frames are between the two ends of a link (IEEE 802.3 clause 31).
        self.control.d.next = self.dmac.val() == self.control_address.val();
        self.other1.d.next = self.control.q.val() | (!self.hits.q.val().any() & !self.group.q.val() & !self.promiscuous.q.val());
        self.other2.d.next = self.other1.q.val();
        self.other.next = self.other2.q.val();
        // When a tunnel ends, an address may be there twice for a while: the lower line counts.
        self.first.x.next = self.hits.q.val();
        self.line.x.next = self.first.y.val();
        self.number.next = bit_cast::<8, LN>(self.line.y.val());
        self.owner.next = self.number.val().get_bits::<6>(2);
        self.owned.next = self.hits.q.val().any();
        if self.reset.val() {
            self.clearing.d.next = true;
            self.sweep.d.next = bits::<LN>(0);
        }
    }
}
