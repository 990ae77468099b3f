//! Which raw queue pairs a frame is for. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::line::CtlLine;
use crate::msg::{CtlReq, CtlResp, Network, RxRequest};
use crate::net::within::{Within, NETWORKS};
use crate::prim::arb::{BinToOneHot, FirstSet, OneHotToBin};
use crate::prim::pack::Cast;
use crate::prim::ram::RamAsync2;
use crate::records::RawCtx;
use crate::stream::MsgSlice;
use ferric_hdl_derive::{kernel, BlockDefault};
use ferric_model::net::networks;
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s", &["m", "m_retain"]),
    ("s_ctl", &[]), // one access at a time
    ("m_ctl", &[]),
];

/// Of a frame's `function` the bits that say that it is for all of a network, and that it comes from there.
const ALL: usize = networks::WHOLE.ilog2() as usize;
const LOOPED: usize = networks::LOOPED.ilog2() as usize;

#[derive(Copy, Clone, PartialEq, Eq, Debug, LogicState)]
enum State {
    /// Each frame is for one queue pair, or for none.
    One,
    /// A frame is for several, those in `left`.
    Next,
    /// It gets one owner more.
    Retain,
    /// It is on offer for `target`, and then for others.
    Copy,
    /// It is on offer for the last one, or for nobody.
    Last,
}

/// A line for each of 2^`LF` functions.
#[derive(LogicBlock, BlockDefault)]
#[demand((1..=6).contains(&LF))]
pub struct RawQueues<const LF: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; no function has a raw queue pair any more, and for 2^`LF` cycles the control bus waits.
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<RxRequest>,
    /// As they came, but that `function` of what is not RoCE is zero: `raw_qpn` says whose it is. What is for several comes several times.
    pub m: MsgSrc<RxRequest>,
    /// Handles of frames that get one owner more.
    pub m_retain: MsgSrc<Bits<9>>,
    /// Which network each function is in.
    pub networks: Signal<In, Bits<NETWORKS>>,
    /// The admin engine's word of SET_PORT: the physical function's raw queue pair.
    pub port: Signal<In, Bits<32>>,
    /// Of the frame on `m`, as it stood in the cycle before: the queue pair, bit 31 = valid.
    pub raw_qpn: Signal<Out, Bits<32>>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    ctl: CtlLine<RawCtx, LF>,
    slice: MsgSlice<RxRequest>,
    /// Read by the control bus, and for the frame.
    lines: RamAsync2<RawCtx, LF>,
    /// Functions that have a raw queue pair.
    live: DFF<Bits<64>>,
    written: BinToOneHot<64, 6>,
    clearing: DFF<Bit>,
    sweep: DFF<Bits<LF>>,
    word: Cast<RawCtx, Bits<32>>,
    state: DFF<State>,
    // A frame for several
    within: Within,
    origin: Signal<Local, Network>,
    sender: BinToOneHot<64, 6>,
    several: Signal<Local, Bit>,
    left: DFF<Bits<64>>,
    first: FirstSet<64>,
    number: OneHotToBin<64, 6>,
    rest: Signal<Local, Bits<64>>,
    target: DFF<Bits<6>>,
    handle: Signal<Local, Bits<12>>,
    /// `chosen` is of the frame at hand, and of the function that it is for.
    known: DFF<Bit>,
    chosen: DFF<Bits<32>>,
    whose: Signal<Local, Bits<12>>,
    owner: Signal<Local, Bits<6>>,
    copies: Signal<Local, Bit>,
    offers: Signal<Local, Bit>,
    goes: Signal<Local, Bit>,
    #[init(Constant::new(RawCtx::default()))]
    none: Constant<RawCtx>,
}

#[kernel]
impl<const LF: usize> Logic for RawQueues<LF> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, live, clearing, sweep, state, left, target, known, chosen);
        clock!(self, clock, ctl, slice, lines);
        self.ctl.reset.next = self.reset.val();
        self.slice.reset.next = self.reset.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.ctl.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.ctl.m_ctl);
        MsgSink::<RxRequest>::link(&mut self.s, &mut self.slice.s);

        // The table: a line is one word.
        self.lines.read_addr0.next = self.ctl.addr.val();
        self.ctl.row.next = self.lines.read_data0.val();
        self.ctl.row_valid.next = self.ctl.req.val() & !self.clearing.q.val();
        self.lines.write_en.next = self.ctl.done.val() & self.ctl.we.val();
        self.lines.write_addr.next = self.ctl.addr.val();
        self.lines.write_data.next = self.ctl.new_row.val();
        self.written.en.next = self.lines.write_en.val();
        self.written.x.next = bit_cast::<6, LF>(self.ctl.addr.val());
        self.live.d.next = self.live.q.val() & !self.written.y.val();
        if self.ctl.new_row.val().valid {
            self.live.d.next = self.live.q.val() | self.written.y.val();
        }
        if self.clearing.q.val() {
            self.lines.write_en.next = true;
            self.lines.write_addr.next = self.sweep.q.val();
            self.lines.write_data.next = self.none.val();
            self.sweep.d.next = self.sweep.q.val() + 1;
            self.clearing.d.next = !self.sweep.q.val().all();
            self.live.d.next = bits::<64>(0);
        }

        // For whom a frame is that is for a whole network. The physical function shares no network, and its queue pair is not in the table.
        self.whose.next = self.slice.m.data.val().function;
        self.origin.next.tunnel = self.slice.m.data.val().tunnel;
        self.origin.next.function = self.whose.val();
        self.within.network.next = self.origin.val();
        self.within.networks.next = self.networks.val();
        self.sender.x.next = self.whose.val().get_bits::<6>(0);
        self.sender.en.next = self.whose.val().get_bit(LOOPED);
        self.owner.next = self.whose.val().get_bits::<6>(0);
        self.copies.next = (self.state.q.val() == State::Copy) | (self.state.q.val() == State::Last);
        self.several.next = self.slice.m.data.val().raw & self.slice.m.data.val().tunnel & self.whose.val().get_bit(ALL) & (self.owner.val().any() | self.whose.val().get_bit(LOOPED));
        self.first.x.next = self.left.q.val();
        self.number.x.next = self.first.y.val();
        self.rest.next = self.left.q.val() & !self.first.y.val();
        self.handle.next = self.slice.m.data.val().handle;
        self.m_retain.data.next = self.handle.val().get_bits::<9>(0);
        self.m_retain.valid.next = self.state.q.val() == State::Retain;

        // The frame at hand: its line is looked at in every cycle until it goes, so that what waits here is not for a queue pair that has gone meanwhile.
        if self.copies.val() {
            self.owner.next = self.target.q.val();
        }
        self.lines.read_addr1.next = self.owner.val().get_bits::<LF>(0);
        self.word.x.next = self.lines.read_data1.val();
        self.chosen.d.next = self.port.val();
        if self.owner.val().any() | (self.copies.val() & !self.target.q.val().any()) {
            self.chosen.d.next = bits::<32>(0);
            if self.slice.m.data.val().tunnel & self.lines.read_data1.val().valid & self.owner.val().any() {
                self.chosen.d.next = self.word.y.val();
            }
        }
        self.offers.next = ((self.state.q.val() == State::One) & self.slice.m.valid.val() & !self.several.val()) | self.copies.val();
        self.goes.next = self.offers.val() & self.known.q.val() & self.m.ready.val();
        self.known.d.next = self.offers.val() & !self.goes.val();
        self.slice.m.ready.next = self.goes.val() & (self.state.q.val() != State::Copy);
        self.m.valid.next = self.offers.val() & self.known.q.val();
        self.m.data.next = self.slice.m.data.val();
        self.raw_qpn.next = self.chosen.q.val();
        if self.slice.m.data.val().raw {
            self.m.data.next.function = bits::<12>(0);
        }
        match self.state.q.val() {
            State::One => {
                self.left.d.next = self.within.reached.val() & self.live.q.val() & !self.sender.y.val();
                if self.slice.m.valid.val() & self.several.val() {
                    self.state.d.next = State::Next;
                }
            }
            State::Next => {
                self.target.d.next = self.number.y.val();
                self.left.d.next = self.rest.val();
                self.state.d.next = State::Last;
                if self.rest.val().any() {
                    self.state.d.next = State::Retain;
                }
            }
            State::Retain => {
                if self.m_retain.ready.val() {
                    self.state.d.next = State::Copy;
                }
            }
            State::Copy => {
                if self.goes.val() {
                    self.state.d.next = State::Next;
                }
            }
            State::Last => {
                if self.goes.val() {
                    self.state.d.next = State::One;
                }
            }
            _ => {
                self.state.d.next = State::One;
            }
        }
        if self.reset.val() {
            self.known.d.next = false;
            self.clearing.d.next = true;
            self.sweep.d.next = bits::<LF>(0);
            self.state.d.next = State::One;
        }
    }
}
