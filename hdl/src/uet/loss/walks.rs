//! Which walk a state makes: which packets, and what is done to each.
use super::{Line, State};
use crate::prim::sum::PlusOne;
use crate::uet::types::{content, loss_ask, told, LossAsk, TxFound, TxRecord, TxWalk};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

const ONE: u64 = 1;
/// Holes that an ACK is examined for at most.
const HOLES: u64 = 4;

/// Choices, from what was worked out a cycle earlier: a state that uses such a register comes at least two cycles behind the one that changes what it is made of, `stalled` four.
#[derive(LogicBlock, BlockDefault)]
pub struct Walks {
    pub clock: Signal<In, Clock>,
    pub state: Signal<In, State>,
    pub ask: Signal<In, LossAsk>,
    pub line: Signal<In, Line>,
    /// How old a hole may be; a place beyond those where a stalled sender looks for some.
    pub age: Signal<In, Bits<32>>,
    pub bound: Signal<In, Bits<32>>,
    /// What the walk before has found.
    pub found: Signal<In, TxFound>,
    /// Place behind the last one that the SACK speaks of.
    pub upto: Signal<In, Bits<32>>,
    pub path_order: Signal<In, Bit>,
    /// See [`super::places::Places`].
    pub own: Signal<In, Bits<32>>,
    pub covered: Signal<In, Bits<32>>,
    pub own_in: Signal<In, Bit>,
    /// The place behind `own`.
    pub own_step: Signal<In, Bits<32>>,
    pub from: Signal<In, Bits<32>>,
    pub gap: Signal<In, Bits<32>>,
    pub walk: Signal<Out, TxWalk>,
    /// Where it goes on behind it.
    pub after: Signal<Out, State>,
    bounded: DFF<Bits<32>>,
    limit: DFF<Bits<32>>,
    /// Ends of walks, none in front of CACK: of a stalled sender's, of one over what CACK covers, over a SACK's holes, up to what the peer is known to have.
    stalled: DFF<Bits<32>>,
    cover: DFF<Bits<32>>,
    holes_from: DFF<Bits<32>>,
    holes_upto: DFF<Bits<32>>,
    hole: DFF<Bits<32>>,
    /// Where the bits of a SACK begin, and they; it says nothing.
    picks_from: DFF<Bits<32>>,
    picks: DFF<Bits<64>>,
    order: PlusOne<32>,
    #[init(Constant::new(TxWalk::default()))]
    blank: Constant<TxWalk>,
    near: Signal<Local, Bit>,
    early: Signal<Local, Bits<25>>,
    late: Signal<Local, Bit>,
    plain: Signal<Local, Bit>,
    met: Signal<Local, TxRecord>,
    packet: Signal<Local, TxRecord>,
}

#[kernel]
impl Logic for Walks {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, bounded, limit, stalled, cover, holes_from, holes_upto, hole, picks_from, picks);
        // The SACK begins in front of CACK; the whole of it is there; it begins behind all that was sent.
        self.near.next = !self.gap.val().get_bit(31) & self.gap.val().any();
        self.early.next = self.gap.val().get_bits::<25>(6);
        self.late.next = !self.near.val() & (self.from.val() >= self.line.val().sent);
        self.bounded.d.next = self.bound.val();
        self.limit.d.next = self.line.val().known;
        if self.line.val().known > self.bounded.q.val() {
            self.limit.d.next = self.bounded.q.val();
        }
        self.stalled.d.next = self.limit.q.val();
        if self.limit.q.val() < self.line.val().cack {
            self.stalled.d.next = self.line.val().cack;
        }
        self.cover.d.next = self.covered.val();
        if self.covered.val() < self.line.val().cack {
            self.cover.d.next = self.line.val().cack;
        }
        self.holes_from.d.next = self.line.val().cack;
        if self.from.val() > self.line.val().cack {
            self.holes_from.d.next = self.from.val();
        }
        self.holes_upto.d.next = self.line.val().sent;
        if self.upto.val() < self.line.val().sent {
            self.holes_upto.d.next = self.upto.val();
        }
        if self.upto.val() < self.line.val().cack {
            self.holes_upto.d.next = self.line.val().cack;
        }
        self.hole.d.next = self.line.val().known;
        if self.line.val().known < self.line.val().cack {
            self.hole.d.next = self.line.val().cack;
        }
        self.picks.d.next = self.ask.val().bitmap;
        self.picks_from.d.next = self.line.val().cack;
        if self.near.val() {
            self.picks.d.next = self.ask.val().bitmap >> self.gap.val().get_bits::<6>(0);
        } else {
            self.picks_from.d.next = self.from.val();
        }
        if !self.ask.val().sack | (self.near.val() & self.early.val().any()) | self.late.val() {
            self.picks_from.d.next = self.line.val().sent;
        }
        self.order.a.next = self.line.val().order;
        self.met.next = self.found.val().record;
        self.plain.next = !(self.met.val().content == content::DATA);
        // The packet that goes out.
        self.packet.next = self.met.val();
        self.packet.next.again = true;
        if !(self.ask.val().kind == loss_ask::AGAIN) {
            self.packet.next.content = self.ask.val().content;
            self.packet.next.message = self.ask.val().message;
            self.packet.next.offset = self.ask.val().offset;
            self.packet.next.bytes = self.ask.val().bytes;
            self.packet.next.again = false;
        }
        self.packet.next.slot = self.ask.val().slot;
        self.packet.next.time = self.ask.val().now;
        self.packet.next.order = self.line.val().order;
        if self.path_order.val() {
            self.packet.next.order = self.order.y.val();
        }
        self.walk.next = self.blank.val();
        self.walk.next.line = self.ask.val().line;
        self.walk.next.now = self.ask.val().now;
        self.walk.next.age = self.age.val();
        self.walk.next.from = self.line.val().cack;
        self.walk.next.upto = self.line.val().sent;
        self.after.next = State::Hole;
        match self.state.val() {
            State::Open => {
                self.walk.next.init = true;
                self.after.next = State::Oldest;
            }
            State::Start => {
                if self.ask.val().kind == loss_ask::ACK {
                    // The bits of the SACK, from CACK on.
                    self.walk.next.picks = true;
                    self.walk.next.not_sacked = true;
                    self.walk.next.set_sacked = true;
                    self.walk.next.clear_resend = true;
                    self.walk.next.arrived = true;
                    self.walk.next.told = bits::<3>(told::OK);
                    self.walk.next.bitmap = self.picks.q.val();
                    self.walk.next.from = self.picks_from.q.val();
                    self.after.next = State::Known;
                } else if self.ask.val().kind == loss_ask::AGAIN {
                    self.walk.next.only_resend = true;
                    self.walk.next.limit = bits::<3>(ONE);
                    self.after.next = State::Put;
                } else if self.ask.val().kind == loss_ask::RTO {
                    self.walk.next.limit = bits::<3>(ONE);
                    self.after.next = State::Rto;
                } else if self.ask.val().kind == loss_ask::STALL {
                    self.walk.next.upto = self.stalled.q.val();
                    self.walk.next.not_sacked = true;
                    self.walk.next.not_wait = true;
                    self.walk.next.not_resend = true;
                    self.walk.next.aged = true;
                    self.walk.next.set_resend = true;
                    self.after.next = State::Count;
                } else if self.ask.val().kind == loss_ask::RETRY {
                    self.walk.next.only_wait = true;
                    self.walk.next.clear_wait = true;
                    self.walk.next.set_resend = true;
                } else {
                    // The packet that the NACK is about.
                    self.after.next = State::Nack;
                    self.walk.next.from = self.line.val().sent;
                    if self.own_in.val() {
                        self.walk.next.from = self.own.val();
                        self.walk.next.upto = self.own_step.val();
                    }
                    if self.ask.val().kind == loss_ask::NACK_AGAIN {
                        self.walk.next.clear_sacked = true;
                        self.walk.next.set_resend = true;
                        self.walk.next.told = bits::<3>(told::NACK);
                    }
                }
            }
            State::Known => {
                self.walk.next.from = self.line.val().sent;
                if self.own_in.val() {
                    self.walk.next.from = self.own.val();
                    self.walk.next.upto = self.own_step.val();
                }
                self.after.next = State::Measure;
            }
            State::Mine => {
                self.walk.next.from = self.line.val().sent;
                if self.own_in.val() {
                    self.walk.next.from = self.own.val();
                    self.walk.next.upto = self.own_step.val();
                }
                self.walk.next.arrived = true;
                self.walk.next.told = bits::<3>(told::OK);
                if self.ask.val().marked {
                    self.walk.next.told = bits::<3>(told::ECN);
                }
                self.walk.next.response = self.ask.val().response | self.ask.val().nothing;
                if self.plain.val() | self.ask.val().response {
                    self.walk.next.remove = true;
                } else {
                    self.walk.next.set_sacked = true;
                    self.walk.next.clear_resend = !self.found.val().sacked;
                }
                self.after.next = State::Covered;
            }
            State::Covered => {
                self.walk.next.remove = true;
                self.walk.next.arrived = true;
                self.walk.next.told = bits::<3>(told::OK);
                self.walk.next.upto = self.cover.q.val();
                self.after.next = State::Settle;
            }
            State::Examine => {
                self.walk.next.from = self.holes_from.q.val();
                self.walk.next.upto = self.holes_upto.q.val();
                self.walk.next.not_sacked = true;
                self.walk.next.not_resend = true;
                self.walk.next.not_wait = true;
                self.walk.next.limit = bits::<3>(HOLES);
                self.walk.next.overtaken = true;
                self.walk.next.set_resend = true;
                self.walk.next.told = bits::<3>(told::TIMEOUT);
                self.after.next = State::Lost;
            }
            State::Put => {
                self.walk.next.put = true;
                self.walk.next.from = self.own.val();
                self.walk.next.record = self.packet.val();
                if self.ask.val().kind == loss_ask::AGAIN {
                    self.walk.next.from = self.found.val().place;
                }
                self.after.next = State::Ask;
            }
            State::Nack => {
                if self.ask.val().kind == loss_ask::NACK_BACK {
                    self.walk.next.from = self.cover.q.val();
                    self.walk.next.set_resend = true;
                } else {
                    if !self.ask.val().all {
                        self.walk.next.from = self.own.val();
                        self.walk.next.upto = self.own_step.val();
                    }
                    self.walk.next.set_wait = true;
                    self.after.next = State::Wait;
                }
            }
            State::Wait => {
                self.walk.next.only_wait = true;
                self.walk.next.clear_resend = true;
            }
            State::Rto => {
                self.walk.next.from = self.found.val().place;
                self.walk.next.upto = self.found.val().last;
                self.walk.next.not_sacked = true;
                self.walk.next.not_resend = true;
                self.walk.next.not_wait = true;
                self.walk.next.set_resend = true;
                self.walk.next.told = bits::<3>(told::TIMEOUT);
                self.after.next = State::RtoRest;
            }
            State::RtoRest => {
                self.walk.next.from = self.own.val();
                self.walk.next.not_sacked = true;
                self.walk.next.not_resend = true;
                self.walk.next.not_wait = true;
                self.walk.next.set_resend = true;
                self.walk.next.told = bits::<3>(told::TIMEOUT);
                self.walk.next.age = self.ask.val().age;
                self.walk.next.aged = !self.ask.val().all;
                self.after.next = State::Count;
            }
            State::Hole => {
                self.walk.next.upto = self.hole.q.val();
                self.walk.next.not_sacked = true;
                self.walk.next.limit = bits::<3>(ONE);
                self.after.next = State::Oldest;
            }
            State::Oldest => {
                self.walk.next.limit = bits::<3>(ONE);
                self.after.next = State::Last;
            }
            _ => {}
        }
    }
}
