//! Datagrams to a multicast group: a copy for every queue pair attached to it. See README.md.

#[cfg(test)]
use ferric_model::roce::groups as model;
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::line::CtlLine;
use crate::msg::{CtlReq, CtlResp, Network, RxRequest};
use crate::net::within::{Within, NETWORKS};
use crate::prim::ram::{Ram, RamAsync};
use crate::records::McastCtx;
use crate::stats::flags;
use ferric_hdl_derive::kernel;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// Names of the bits of `stat`.
pub const STATS: &[&str] = &["mcast_delivered", "mcast_no_group"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s", &["m", "m_retain"]),
    ("s_ctl", &[]),                // one access at a time
    ("m_ctl", &["m", "m_retain"]), // not while a group is looked up
];

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// The table is wiped after a reset.
    Clear,
    /// Everything but multicast passes.
    Idle,
    /// One attachment in three cycles.
    Read,
    Compare,
    Act,
    /// One owner more for the frame, then the copy that waits may go.
    Retain,
    Emit,
    /// The last copy, or the datagram as it came if nobody wants it.
    Last,
}

/// Words of `PathCtx` with the tag, and with the bit that says whether there is one.
const TAG_WORD: u64 = 1;
const FLAGS_WORD: u64 = 13;

/// Attachments, `2^LA` of them, of `2^LQ` queue pairs, between the queue of received requests and the responder.
#[derive(LogicBlock, BlockDefault)]
#[demand(LA <= 7)]
pub struct Multicast<const LA: usize, const LQ: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; detaches everything within 2^LA cycles.
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<RxRequest>,
    pub m: MsgSrc<RxRequest>,
    /// Handles of frames that get one owner more.
    pub m_retain: MsgSrc<Bits<9>>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// A request on the control port of the paths (`PathCtx`): members of another VLAN get no copy.
    pub path_ctl: Signal<In, CtlReq>,
    pub path_ctl_valid: Signal<In, Bit>,
    /// Which network each function is in: members of another than the datagram's get no copy.
    pub networks: Signal<In, Bits<NETWORKS>>,
    /// One pulse per event, see [`STATS`].
    pub stat: Signal<Out, Bits<2>>,
    lines: RamAsync<McastCtx, LA>,
    tags: Ram<Bits<12>, LQ>,
    tagged: Ram<Bit, LQ>,
    ctl: CtlLine<McastCtx, LA>,
    state: DFF<State>,
    index: DFF<Bits<LA>>,
    /// One above the last attachment, for the most part: the scan ends there.
    bound: DFF<Bits<8>>,
    row: DFF<McastCtx>,
    hit: DFF<Bit>,
    /// A copy waits, for this queue pair.
    found: DFF<Bit>,
    target: DFF<Bits<24>>,
    events: DFF<Bits<2>>,
    #[init(Constant::new(McastCtx::default()))]
    nothing: Constant<McastCtx>,
    path_line: Signal<Local, Bits<24>>,
    path_data: Signal<Local, Bits<32>>,
    path_write: Signal<Local, Bit>,
    member: Signal<Local, Bits<24>>,
    frame_tag: Signal<Local, Bits<16>>,
    same_vlan: Signal<Local, Bit>,
    apart: Signal<Local, Bit>,
    within: Within,
    /// Functions of the datagram's network. It has been there for two cycles when they are asked for.
    reached: DFF<Bits<64>>,
    origin: Signal<Local, Network>,
    shifted: Signal<Local, Bits<64>>,
    joins: Signal<Local, Bit>,
    group: Signal<Local, Bits<128>>,
    wide: Signal<Local, Bits<12>>,
    place: Signal<Local, Bits<8>>,
    next: Signal<Local, Bits<8>>,
    over: Signal<Local, Bit>,
    on: Signal<Local, Bit>,
    idle: Signal<Local, Bit>,
    plain: Signal<Local, Bit>,
    ctl_place: Signal<Local, Bits<8>>,
    ctl_next: Signal<Local, Bits<8>>,
}

#[kernel]
impl<const LA: usize, const LQ: usize> Logic for Multicast<LA, LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, index, bound, row, hit, found, target, events, reached);
        clock!(self, clock, lines, ctl, tags, tagged);
        self.ctl.reset.next = self.reset.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.ctl.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.ctl.m_ctl);
        self.stat.next = self.events.q.val();
        self.events.d.next = bits::<2>(0);

        self.idle.next = self.state.q.val() == State::Idle;
        self.plain.next = self.idle.val() & !self.s.data.val().multicast;
        self.m.data.next = self.s.data.val();
        if self.found.q.val() {
            self.m.data.next.dest_qpn = self.target.q.val();
        }
        self.m.valid.next = (self.plain.val() & self.s.valid.val()) | (self.state.q.val() == State::Emit) | (self.state.q.val() == State::Last);
        self.s.ready.next = (self.plain.val() | (self.state.q.val() == State::Last)) & self.m.ready.val();
        self.wide.next = self.s.data.val().handle;
        self.m_retain.data.next = self.wide.val().get_bits::<9>(0);
        self.m_retain.valid.next = self.state.q.val() == State::Retain;

        // The table is the control bus' while nothing is looked up.
        self.lines.read_addr.next = self.index.q.val();
        if self.idle.val() {
            self.lines.read_addr.next = self.ctl.addr.val();
        }
        self.ctl.row.next = self.lines.read_data.val();
        self.ctl.row_valid.next = self.ctl.req.val() & self.idle.val();
        self.lines.write_en.next = self.ctl.done.val() & self.ctl.we.val();
        self.lines.write_addr.next = self.ctl.addr.val();
        self.lines.write_data.next = self.ctl.new_row.val();
        self.ctl_place.next = bit_cast::<8, LA>(self.ctl.addr.val());
        self.ctl_next.next = self.ctl_place.val() + 1;
        if self.ctl.done.val() & self.ctl.we.val() {
            if self.ctl.new_row.val().valid {
                if self.ctl_place.val() >= self.bound.q.val() {
                    self.bound.d.next = self.ctl_next.val();
                }
            } else if self.ctl_next.val() == self.bound.q.val() {
                self.bound.d.next = self.ctl_place.val();
            }
        }

        // Of a path: the tag, and whether there is one. They are read while the group is compared.
        self.path_line.next = self.path_ctl.val().line;
        self.path_data.next = self.path_ctl.val().data;
        self.path_write.next = self.path_ctl_valid.val() & self.path_ctl.val().write;
        self.member.next = self.row.q.val().qpn;
        self.tags.write_en.next = self.path_write.val() & (self.path_ctl.val().word == TAG_WORD);
        self.tags.write_addr.next = self.path_line.val().get_bits::<LQ>(0);
        self.tags.write_data.next = self.path_data.val().get_bits::<12>(16);
        self.tags.read_addr.next = self.member.val().get_bits::<LQ>(0);
        self.tagged.write_en.next = self.path_write.val() & (self.path_ctl.val().word == FLAGS_WORD);
        self.tagged.write_addr.next = self.path_line.val().get_bits::<LQ>(0);
        self.tagged.write_data.next = self.path_data.val().get_bit(9);
        self.tagged.read_addr.next = self.member.val().get_bits::<LQ>(0);
        self.frame_tag.next = self.s.data.val().vlan_tci;
        self.same_vlan.next = (self.s.data.val().has_vlan == self.tagged.read_data.val()) & (!self.s.data.val().has_vlan | (self.frame_tag.val().get_bits::<12>(0) == self.tags.read_data.val()));
        self.joins.next = self.hit.q.val() & self.same_vlan.val();

        self.origin.next.tunnel = self.s.data.val().tunnel;
        self.origin.next.function = self.s.data.val().function;
        self.within.network.next = self.origin.val();
        self.within.networks.next = self.networks.val();
        self.reached.d.next = self.within.reached.val();
        self.shifted.next = self.reached.q.val() >> bit_cast::<64, 6>(self.row.q.val().function);
        self.apart.next = !self.shifted.val().get_bit(0);
        self.group.next = bit_cast::<128, 64>(self.s.data.val().operand) | (bit_cast::<128, 64>(self.s.data.val().compare) << 64);
        self.place.next = bit_cast::<8, LA>(self.index.q.val());
        self.next.next = self.place.val() + 1;
        self.over.next = self.next.val() >= self.bound.q.val();
        self.on.next = false;
        match self.state.q.val() {
            State::Clear => {
                self.lines.write_en.next = true;
                self.lines.write_addr.next = self.index.q.val();
                self.lines.write_data.next = self.nothing.val();
                self.index.d.next = self.index.q.val() + 1;
                if self.index.q.val().all() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Idle => {
                self.index.d.next = bits::<LA>(0);
                if self.s.valid.val() & self.s.data.val().multicast & !self.ctl.req.val() {
                    self.state.d.next = State::Read;
                    if !self.bound.q.val().any() {
                        self.state.d.next = State::Last;
                    }
                }
            }
            State::Read => {
                self.row.d.next = self.lines.read_data.val();
                self.state.d.next = State::Compare;
            }
            State::Compare => {
                self.hit.d.next = self.row.q.val().valid & !self.apart.val() & (self.row.q.val().ipv6 == self.s.data.val().ipv6) & (self.row.q.val().group == self.group.val());
                self.state.d.next = State::Act;
            }
            State::Act => {
                if self.joins.val() & self.found.q.val() {
                    self.state.d.next = State::Retain;
                } else {
                    self.on.next = true;
                    if self.joins.val() {
                        self.found.d.next = true;
                        self.target.d.next = self.row.q.val().qpn;
                    }
                }
            }
            State::Retain => {
                if self.m_retain.ready.val() {
                    self.state.d.next = State::Emit;
                }
            }
            State::Emit => {
                if self.m.ready.val() {
                    self.events.d.next = bits::<2>(flags(STATS, &["mcast_delivered"]) as u64);
                    self.target.d.next = self.row.q.val().qpn;
                    self.on.next = true;
                }
            }
            State::Last => {
                if self.m.ready.val() {
                    self.events.d.next = bits::<2>(flags(STATS, &["mcast_no_group"]) as u64);
                    if self.found.q.val() {
                        self.events.d.next = bits::<2>(flags(STATS, &["mcast_delivered"]) as u64);
                    }
                    self.found.d.next = false;
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Clear;
            }
        }
        if self.on.val() {
            self.index.d.next = self.index.q.val() + 1;
            self.state.d.next = State::Read;
            if self.over.val() {
                self.state.d.next = State::Last;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Clear;
            self.index.d.next = bits::<LA>(0);
            self.bound.d.next = bits::<8>(0);
            self.found.d.next = false;
        }
    }
}
