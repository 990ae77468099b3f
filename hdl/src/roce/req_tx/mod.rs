//! The sending half of the requester: work requests in, packet orders out. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::codes::{done_status, local};
use crate::context::bus::CtxClient;
use crate::msg::{CqeReq, MrWork, SqCmd, SqWqe, TimerCmd, TrackWrite, TxDone, TxOp, WqeFree};
use crate::prim::pack::Cast;
use crate::prim::sum::{Diff, PlusOne};
use crate::records::{ReqCtx, WqeHead};
use crate::stats::flags;
use crate::stream::{Fence, MsgFifo};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

mod intake;
mod order;
mod plan;
mod tell;
#[cfg(test)]
mod tests;

use intake::Intake;
use order::Order;
use plan::Plan;
use tell::Tell;

/// The last packet that fits the window.
const LAST_PACKET: u64 = WINDOW as u64 - 1;

/// Names of the bits of `stat`.
pub const STATS: &[&str] = &["tx_packets", "stale_wqe", "flushed"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // A line is asked for when the queue of packet orders has room for a turn, and what leaves without the line has left. The queue of requests that wait has a place for each buffer.
    ("s_wqe", &["ctx", "m_cmd", "m_timer", "m_track", "m_op", "m_done", "m_cqe", "m_free", "m_work"]),
    // The line held: commands, and buffers that go back, which nobody holds up. All packet orders of the turn have a place since before the line was asked for (`no_line_is_held_for_packet_orders`), and the registers of the others are empty.
    ("ctx", &["m_cmd", "m_timer", "m_track", "m_free"]),
    ("passed", &["fence", "m_op"]),
];

/// `TxOp.opcode` of an order that sends nothing and only gives the buffer back.
pub const OP_FREE: u8 = 0xff;

/// `TxDone.status` that acknowledges nothing: look whether work requests can be retired (a NOP was entered).
pub const STATUS_LOOK: u8 = 0xff;

/// Packets that one queue pair may have in flight.
pub const WINDOW: u32 = 1 << WINDOW_BITS;
/// log2 of [`WINDOW`].
const WINDOW_BITS: usize = 9;

/// Packets per turn.
pub const TURN: u32 = 16;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Asks for the context of the work request in `intake`.
    Acquire,
    /// Takes the line and compares.
    Line,
    /// Compares the next request of the same queue pair, the line being held already.
    Check,
    /// Decides on the first packet and sends it.
    Decide,
    /// Sends the next packet of the same turn.
    Emit,
    Park,
    Requeue,
    /// Gives the buffer back.
    Discard,
    Release,
}

/// Requester, sending half. `2^LH` buffers of work requests.
#[derive(LogicBlock, Default)]
pub struct RequesterTx<const LH: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_wqe: MsgSink<SqWqe>,
    pub ctx: CtxClient<ReqCtx>,
    pub m_cmd: MsgSrc<SqCmd>,
    pub m_op: MsgSrc<TxOp>,
    pub m_done: MsgSrc<TxDone>,
    pub m_cqe: MsgSrc<CqeReq>,
    pub m_timer: MsgSrc<TimerCmd>,
    pub m_free: MsgSrc<WqeFree>,
    pub m_track: MsgSrc<TrackWrite>,
    /// Local operations, to the key unit.
    pub m_work: MsgSrc<MrWork>,
    /// The queue pair whose packets are ordered, and its round in the same cycle (`roce/rounds`).
    pub look: Signal<Out, Bits<24>>,
    pub round: Signal<In, Bits<2>>,
    /// Pulse in; pulse out when every packet order made before has been taken by the gatherer.
    pub fence: Signal<In, Bit>,
    pub passed: Signal<Out, Bit>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<3>>,
    /// Whose events they are.
    pub stat_function: Signal<Out, Bits<12>>,
    waiting: MsgFifo<SqWqe, LH>,
    /// Twice the packets of a turn: a turn begins only while all of its orders have a place.
    ops: MsgFifo<TxOp, 5>,
    ordered: Fence<6>,
    plan: Plan,
    order: Order,
    intake: Intake,
    tell: Tell,
    head: Cast<Bits<256>, WqeHead>,
    state: DFF<State>,
    wqe: DFF<SqWqe>,
    /// First time this request is seen: no packet order has its buffer yet.
    fresh: DFF<Bit>,
    /// The line is ours.
    held: DFF<Bit>,
    dirty: DFF<Bit>,
    /// A packet went in this turn.
    sent: DFF<Bit>,
    line: DFF<ReqCtx>,
    /// The request has no tracker entry yet.
    unsent: DFF<Bit>,
    first: DFF<Bit>,
    out: DFF<Bits<24>>,
    /// When the request was looked at, as much was in flight as may be, or more (a READ takes the PSNs of its answer).
    window_full: DFF<Bit>,
    in_flight: Diff<24>,
    left: DFF<Bits<32>>,
    /// The release was offered together with the last packet and not taken then.
    offered: DFF<Bit>,
    /// The line is looked at again, not as it comes.
    again: DFF<Bit>,
    /// A request of this turn has been thrown away: its buffer may still be on its way out.
    thrown: DFF<Bit>,
    /// The PSN behind the next one. Not a carry chain: what it goes through is long enough.
    onward: PlusOne<24>,
    /// The packets of the turn, with the next one. Not a carry chain either: mapping would take its carry for `count` being full.
    counted: PlusOne<4>,
    remains: Diff<32>,
    /// Message offset behind a full packet, in units of 256 bytes, the shortest MTU. The offset is a multiple of the MTU, so that the bits below the MTU's are 0; filled with 1, one more is the sum.
    behind: PlusOne<24>,
    /// A bit of the MTU in these units, and all below it.
    units: Signal<Local, Bits<4>>,
    below: Signal<Local, Bits<4>>,
    count: DFF<Bits<4>>,
    stats: DFF<Bits<3>>,
    stats_of: DFF<Bits<12>>,
    acquire: Signal<Local, Bit>,
    give: Signal<Local, Bit>,
    is_last: Signal<Local, Bit>,
    filling: Signal<Local, Bit>,
    held_back: Signal<Local, Bit>,
    room: Signal<Local, Bit>,
    level: Signal<Local, Bits<16>>,
    emit: Signal<Local, Bit>,
    /// The next request is the same queue pair's and the turn is not over.
    goes_on: Signal<Local, Bit>,
    /// The register of buffers that go back is free.
    may_throw: Signal<Local, Bit>,
    starts_timer: Signal<Local, Bit>,
    at_once: Signal<Local, Bit>,
    seen: Signal<Local, ReqCtx>,
    /// The line after this cycle.
    new: Signal<Local, ReqCtx>,
    after: Signal<Local, Bits<8>>,
    status: Signal<Local, Bits<8>>,
}

#[kernel]
impl<const LH: usize> Logic for RequesterTx<LH> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, wqe, fresh, held, dirty, sent, line, unsent, first, out, window_full, left, offered, again, thrown, count, stats, stats_of);
        clock!(self, clock, waiting, ops, ordered, plan, intake, tell);
        self.waiting.reset.next = self.reset.val();
        self.ops.reset.next = self.reset.val();
        self.ordered.reset.next = self.reset.val();
        self.intake.reset.next = self.reset.val();
        self.tell.reset.next = self.reset.val();
        self.ordered.start.next = self.fence.val();
        self.passed.next = self.ordered.passed.val();

        // What leaves besides packet orders waits in `tell`, whose pulses the states below raise.
        MsgSrc::<TxOp>::link(&mut self.m_op, &mut self.ops.m);
        self.ops.s.data.next = self.order.op.val();
        self.ops.s.valid.next = false;
        MsgSrc::<SqCmd>::link(&mut self.m_cmd, &mut self.tell.m_cmd);
        MsgSrc::<TxDone>::link(&mut self.m_done, &mut self.tell.m_done);
        MsgSrc::<CqeReq>::link(&mut self.m_cqe, &mut self.tell.m_cqe);
        MsgSrc::<TimerCmd>::link(&mut self.m_timer, &mut self.tell.m_timer);
        MsgSrc::<WqeFree>::link(&mut self.m_free, &mut self.tell.m_free);
        MsgSrc::<TrackWrite>::link(&mut self.m_track, &mut self.tell.m_track);
        MsgSrc::<MrWork>::link(&mut self.m_work, &mut self.tell.m_work);
        self.tell.park.next = false;
        self.tell.finish.next = false;
        self.tell.flush.next = false;
        self.tell.start.next = false;
        self.tell.give_back.next = false;
        self.tell.enter.next = false;
        self.tell.execute.next = false;
        self.tell.line.next = self.line.q.val();
        self.tell.wqe.next = self.wqe.q.val();
        self.tell.nop.next = self.plan.nop.val();
        self.tell.drains.next = self.plan.drains.val();
        self.tell.last_psn.next = self.plan.last_psn.val();
        self.tell.ticks.next = self.plan.ticks.val();
        self.stat.next = self.stats.q.val();
        self.stat_function.next = self.stats_of.q.val();
        self.stats_of.d.next = self.wqe.q.val().function;
        self.stats.d.next = bits::<3>(0);
        self.level.next = self.ops.level.val();
        self.room.next = !self.level.val().get_bits::<12>(4).any();

        // `intake` has the request ahead. Whatever leaves without the line being held is out before the next line is asked for.
        MsgSink::<SqWqe>::link(&mut self.s_wqe, &mut self.intake.s_new);
        MsgSrc::<SqWqe>::join(&mut self.waiting.m, &mut self.intake.s_waiting);
        self.acquire.next = self.intake.valid.val() & (self.state.q.val() == State::Acquire) & self.room.val() & !self.tell.others.val();
        self.intake.take.next = self.acquire.val() & self.ctx.acq_ready.val();

        // Context port.
        self.give.next = (self.state.q.val() == State::Release) & (self.offered.q.val() | !self.tell.commands.val());
        self.ctx.acq_valid.next = self.acquire.val();
        self.ctx.acq_id.next = self.intake.wqe.val().qpn;
        self.ctx.acq_tag.next = bits::<4>(0);
        self.ctx.line_ready.next = self.state.q.val() == State::Line;
        self.ctx.rel_id.next = self.wqe.q.val().qpn;
        self.waiting.s.data.next = self.wqe.q.val();
        self.waiting.s.valid.next = self.state.q.val() == State::Requeue;

        // The request and the place of the next packet in it.
        self.head.x.next = self.wqe.q.val().head;
        self.filling.next = self.out.q.val() == LAST_PACKET;
        self.is_last.next = self.plan.single.val() | self.plan.asks.val() | (self.left.q.val() <= bit_cast::<32, 13>(self.plan.mtu.val()));
        // What has been sent once may be sent again.
        self.held_back.next = self.unsent.q.val() & (self.plan.asks_full.val() | self.plan.fence.val() | self.plan.alone.val());
        self.intake.qpn.next = self.wqe.q.val().qpn;
        self.goes_on.next = self.intake.valid.val() & self.intake.same.val() & !self.count.q.val().all();
        self.may_throw.next = !self.thrown.q.val() | !self.tell.freeing.val();
        self.starts_timer.next = self.plan.reliable.val() & !self.line.q.val().timer_on & self.line.q.val().timeout.any();
        // A tracker entry is written in the next cycle, long before anyone can read it; commands must be out before.
        self.at_once.next = !self.tell.commands.val() & !self.starts_timer.val();
        self.after.next = self.line.q.val().epoch + 1;
        self.status.next = self.plan.status.val();
        self.seen.next = self.ctx.line_data.val();
        if self.again.q.val() {
            self.seen.next = self.line.q.val();
        }
        self.in_flight.a.next = self.seen.val().next_psn;
        self.in_flight.b.next = self.seen.val().una_psn;
        self.again.d.next = false;
        self.units.next = self.plan.mtu.val().get_bits::<4>(9);
        self.below.next = self.units.val() | (self.units.val() >> 1) | (self.units.val() >> 2) | (self.units.val() >> 3);
        self.behind.a.next = self.line.q.val().msg_offset.get_bits::<24>(8) | bit_cast::<24, 4>(self.below.val());
        self.remains.a.next = self.head.y.val().length;
        self.remains.b.next = self.seen.val().msg_offset;
        self.plan.en.next = (self.state.q.val() == State::Check) | (self.state.q.val() == State::Line);
        self.plan.line.next = self.seen.val();
        self.plan.wqe.next = self.wqe.q.val();
        self.plan.offset.next = self.line.q.val().msg_offset;
        self.look.next = self.wqe.q.val().qpn;
        self.order.round.next = self.round.val();
        self.order.line.next = self.line.q.val();
        self.order.wqe.next = self.wqe.q.val();
        self.order.first.next = self.first.q.val();
        self.order.last.next = self.is_last.val();
        self.order.filling.next = self.filling.val();
        self.order.only_free.next = self.state.q.val() == State::Discard;
        self.order.left.next = self.left.q.val();
        self.order.asks.next = self.plan.asks.val();
        self.order.atomic.next = self.plan.atomic.val();
        self.order.raddr.next = self.plan.raddr.val();
        self.order.pay.next = self.plan.mtu.val();
        if self.is_last.val() {
            self.order.pay.next = self.left.q.val().get_bits::<13>(0);
        }
        self.emit.next = false;
        self.counted.a.next = self.count.q.val();
        self.new.next = self.line.q.val();

        match self.state.q.val() {
            State::Acquire => {
                self.wqe.d.next = self.intake.wqe.val();
                self.fresh.d.next = self.intake.fresh.val();
                self.dirty.d.next = false;
                self.sent.d.next = false;
                self.count.d.next = bits::<4>(0);
                self.offered.d.next = false;
                self.thrown.d.next = false;
                if self.acquire.val() & self.ctx.acq_ready.val() {
                    self.state.d.next = State::Line;
                }
            }
            State::Line => {
                self.held.d.next = !self.ctx.line_fault.val();
                if self.ctx.line_valid.val() {
                    self.state.d.next = State::Decide;
                    if self.ctx.line_fault.val() {
                        self.stats.d.next = bits::<3>(flags(STATS, &["stale_wqe"]) as u64);
                        self.state.d.next = State::Discard;
                    }
                }
            }
            State::Check => {
                self.state.d.next = State::Decide;
            }
            State::Decide => {
                if self.plan.stale.val() {
                    self.stats.d.next = bits::<3>(flags(STATS, &["stale_wqe"]) as u64);
                    self.state.d.next = State::Discard;
                } else if self.wqe.q.val().flush {
                    self.stats.d.next = bits::<3>(flags(STATS, &["flushed"]) as u64);
                    self.tell.flush.next = true;
                    self.state.d.next = State::Discard;
                } else if !self.plan.live.val() | self.plan.past_error.val() {
                    self.stats.d.next = bits::<3>(flags(STATS, &["stale_wqe"]) as u64);
                    self.state.d.next = State::Discard;
                } else if !self.plan.in_order.val() {
                    self.state.d.next = State::Requeue;
                } else if self.plan.halted.val() & self.unsent.q.val() {
                    self.state.d.next = State::Park;
                } else if self.status.val().any() {
                    self.tell.finish.next = true;
                    self.state.d.next = State::Discard;
                } else if self.plan.full.val() & self.unsent.q.val() {
                    self.state.d.next = State::Park;
                } else if self.plan.local.val() & self.unsent.q.val() & !(self.line.q.val().local == local::EXECUTED) {
                    // Executed by the key unit while the queue is parked; when it is offered again it counts as a NOP. Executed once, whatever is
                    // sent again meanwhile.
                    self.state.d.next = State::Park;
                    if !self.line.q.val().local.any() & !self.plan.waits.val() {
                        self.tell.execute.next = true;
                        self.new.next.local = bits::<2>(local::UNDER_WAY);
                    }
                } else if self.plan.nop.val() {
                    if self.unsent.q.val() {
                        self.new.next.local = bits::<2>(0);
                    }
                    self.status.next = bits::<8>(done_status::QUIET);
                    self.tell.finish.next = true;
                    self.dirty.d.next = true;
                    self.new.next.next_index = self.line.q.val().next_index + 1;
                    if self.unsent.q.val() {
                        self.tell.enter.next = true;
                        self.new.next.sent_index = self.line.q.val().sent_index + 1;
                    }
                    self.state.d.next = State::Discard;
                } else if self.window_full.q.val() | self.held_back.val() {
                    self.state.d.next = State::Park;
                } else if self.plan.asks.val() {
                    // The PSN behind its answer is there a cycle later.
                    self.state.d.next = State::Emit;
                } else {
                    self.emit.next = true;
                }
            }
            State::Emit => {
                self.emit.next = true;
            }
            State::Park => {
                // The send queue offers this request again when req_rx resumes it; what of it is in flight stays.
                self.tell.park.next = true;
                self.dirty.d.next = true;
                self.new.next.epoch = self.after.val();
                self.new.next.parked = true;
                self.new.next.fenced = self.plan.fence.val() & self.unsent.q.val();
                self.new.next.drain = self.plan.drains.val() & self.unsent.q.val() & !self.line.q.val().local.any();
                self.state.d.next = State::Discard;
                if self.sent.q.val() {
                    // The packet that filled the window has taken the buffer along.
                    self.state.d.next = State::Release;
                }
            }
            State::Requeue => {
                if self.waiting.s.ready.val() {
                    self.state.d.next = State::Release;
                }
            }
            State::Discard => {
                // Packets of this request may still wait in the gatherer: then the buffer goes back behind them.
                if self.fresh.q.val() {
                    self.tell.give_back.next = self.may_throw.val();
                } else {
                    self.ops.s.valid.next = self.may_throw.val();
                }
                if self.may_throw.val() & (self.fresh.q.val() | self.ops.s.ready.val()) {
                    self.state.d.next = State::Acquire;
                    if self.held.q.val() {
                        self.state.d.next = State::Release;
                    }
                    // Behind a park many stale requests of one queue pair follow each other.
                    if self.held.q.val() & self.plan.stale.val() & self.goes_on.val() {
                        self.thrown.d.next = true;
                        self.count.d.next = self.counted.y.val();
                        self.wqe.d.next = self.intake.wqe.val();
                        self.fresh.d.next = self.intake.fresh.val();
                        self.sent.d.next = false;
                        self.intake.take.next = true;
                        self.again.d.next = true;
                        self.state.d.next = State::Check;
                    }
                }
            }
            State::Release => {
                if self.give.val() & self.ctx.rel_ready.val() {
                    self.state.d.next = State::Acquire;
                }
            }
            _ => {
                self.state.d.next = State::Acquire;
            }
        }

        // A packet goes: its order has a place since the turn began.
        self.ctx.rel_valid.next = self.give.val();
        self.onward.a.next = self.line.q.val().next_psn;
        if self.emit.val() {
            self.ops.s.valid.next = true;
            self.stats.d.next = bits::<3>(flags(STATS, &["tx_packets"]) as u64);
            self.dirty.d.next = true;
            self.sent.d.next = true;
            self.first.d.next = false;
            self.left.d.next = self.left.q.val() - bit_cast::<32, 13>(self.plan.mtu.val());
            self.out.d.next = self.out.q.val() + 1;
            self.count.d.next = self.counted.y.val();
            self.new.next.next_psn = self.onward.y.val();
            if self.line.q.val().next_psn == self.line.q.val().max_psn {
                self.new.next.max_psn = self.onward.y.val();
            }
            if self.plan.asks.val() {
                self.new.next.next_psn = self.plan.behind.val();
                if self.line.q.val().next_psn == self.line.q.val().max_psn {
                    self.new.next.max_psn = self.plan.behind.val();
                }
                if self.unsent.q.val() {
                    self.new.next.rd_out = self.line.q.val().rd_out + 1;
                    self.new.next.rd_open = self.line.q.val().rd_open + 1;
                }
            }
            self.new.next.in_msg = !self.is_last.val();
            if self.unsent.q.val() {
                self.unsent.d.next = false;
                self.tell.enter.next = true;
                self.new.next.sent_index = self.line.q.val().sent_index + 1;
            }
            if self.starts_timer.val() {
                self.new.next.timer_on = true;
                self.tell.start.next = true;
            }
            self.state.d.next = State::Emit;
            self.new.next.msg_offset = bit_cast::<32, 24>(self.behind.y.val()) << 8;
            if self.is_last.val() {
                self.new.next.msg_offset = bits::<32>(0);
                self.new.next.next_index = self.line.q.val().next_index + 1;
                self.state.d.next = State::Release;
                if self.goes_on.val() {
                    self.wqe.d.next = self.intake.wqe.val();
                    self.fresh.d.next = self.intake.fresh.val();
                    self.sent.d.next = false;
                    self.intake.take.next = true;
                    self.again.d.next = true;
                    self.state.d.next = State::Check;
                } else if self.at_once.val() {
                    self.ctx.rel_valid.next = true;
                    self.offered.d.next = !self.ctx.rel_ready.val();
                    if self.ctx.rel_ready.val() {
                        self.state.d.next = State::Acquire;
                    }
                }
            } else if self.filling.val() {
                self.state.d.next = State::Park;
            } else if self.count.q.val().all() {
                self.state.d.next = State::Requeue;
            }
        }
        // What the context says of the request, when it is first seen.
        if self.plan.en.val() {
            self.unsent.d.next = self.wqe.q.val().index == self.seen.val().sent_index;
            self.first.d.next = self.seen.val().msg_offset == 0;
            self.out.d.next = self.in_flight.y.val();
            self.window_full.d.next = self.in_flight.y.val().get_bits::<15>(WINDOW_BITS).any();
            self.left.d.next = self.remains.y.val();
        }
        self.ordered.came.next = self.ops.s.valid.val() & self.ops.s.ready.val();
        self.ordered.went.next = self.m_op.valid.val() & self.m_op.ready.val();
        // Before its turn to be given back a line goes together with the packet that changes it.
        self.ctx.rel_dirty.next = self.dirty.q.val() | !(self.state.q.val() == State::Release);
        self.tell.status.next = self.status.val();
        self.tell.after.next = self.after.val();
        self.ctx.rel_data.next = self.new.val();
        self.line.d.next = self.new.val();
        if self.state.q.val() == State::Line {
            self.line.d.next = self.ctx.line_data.val();
        }
        if self.reset.val() {
            self.state.d.next = State::Acquire;
        }
    }
}
