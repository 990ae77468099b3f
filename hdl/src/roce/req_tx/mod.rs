//! The sending half of the requester: work requests in, packet orders out. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::context::bus::CtxClient;
use crate::msg::{CqeReq, MrWork, SqCmd, SqWqe, TimerCmd, TrackWrite, TxDone, TxOp, WqeFree};
use crate::prim::pack::Cast;
use crate::prim::sum::{Diff, Sum};
use crate::records::{ReqCtx, WqeHead};
use crate::stream::{Fence, MsgFifo};
use crate::codes::{send_command, done_status, local};
use crate::stats::flags;
use ferric_abi::codes::{CqeStatus, WrOpcode};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

mod order;
mod plan;
#[cfg(test)]
mod tests;

use order::Order;
use plan::Plan;

/// The last packet that fits the window.
const LAST_PACKET: u64 = WINDOW as u64 - 1;

/// Names of the bits of `stat`.
pub const STATS: &[&str] = &["tx_packets", "stale_wqe", "flushed"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // A line is asked for when the queue of packet orders has room for a turn, and what leaves without the line has left. The queue of requests that wait has a place for each of the 128 buffers.
    ("s_wqe", &["ctx", "m_cmd", "m_timer", "m_track", "m_op", "m_done", "m_cqe", "m_free", "m_work"]),
    // The line held: commands only. All packet orders of the turn have a place since before the line was asked for (`no_line_is_held_for_packet_orders`), and the registers of the others are empty.
    ("ctx", &["m_cmd", "m_timer", "m_track"]),
    ("passed", &["fence", "m_op"]),
];

/// `TxOp.opcode` of an order that sends nothing and only gives the buffer back.
pub const OP_FREE: u8 = 0xff;

/// `TxDone.status` that acknowledges nothing: look whether work requests can be retired (a NOP was entered).
pub const STATUS_LOOK: u8 = 0xff;

/// Packets that one queue pair may have in flight.
pub const WINDOW: u32 = 512;

/// Packets per turn.
pub const TURN: u32 = 16;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Asks for the context of the work request in `ahead`.
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

/// Requester, sending half.
#[derive(LogicBlock, Default)]
pub struct RequesterTx {
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
    /// Pulse in; pulse out when every packet order made before has been taken by the gatherer.
    pub fence: Signal<In, Bit>,
    pub passed: Signal<Out, Bit>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<3>>,
    waiting: MsgFifo<SqWqe, 7>,
    /// Twice the packets of a turn: a turn begins only while all of its orders have a place.
    ops: MsgFifo<TxOp, 5>,
    ordered: Fence<6>,
    plan: Plan,
    order: Order,
    head: Cast<Bits<256>, WqeHead>,
    turn: DFF<Bit>,
    ahead: DFF<SqWqe>,
    ahead_valid: DFF<Bit>,
    ahead_fresh: DFF<Bit>,
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
    left: DFF<Bits<32>>,
    /// The release was offered together with the last packet and not taken then.
    offered: DFF<Bit>,
    /// The line is looked at again, not as it comes.
    again: DFF<Bit>,
    remains: Diff<32>,
    /// Message offset behind a full packet.
    behind: Sum<32>,
    count: DFF<Bits<4>>,
    cmd: DFF<SqCmd>,
    cmd_valid: DFF<Bit>,
    done: DFF<TxDone>,
    done_valid: DFF<Bit>,
    cqe: DFF<CqeReq>,
    cqe_valid: DFF<Bit>,
    timer: DFF<TimerCmd>,
    timer_valid: DFF<Bit>,
    free: DFF<WqeFree>,
    free_valid: DFF<Bit>,
    track: DFF<TrackWrite>,
    track_valid: DFF<Bit>,
    work: DFF<MrWork>,
    work_valid: DFF<Bit>,
    stats: DFF<Bits<3>>,
    acquire: Signal<Local, Bit>,
    give: Signal<Local, Bit>,
    is_last: Signal<Local, Bit>,
    window_full: Signal<Local, Bit>,
    filling: Signal<Local, Bit>,
    held_back: Signal<Local, Bit>,
    room: Signal<Local, Bit>,
    level: Signal<Local, Bits<16>>,
    emit: Signal<Local, Bit>,
    /// The next request is the same queue pair's and the turn is not over.
    goes_on: Signal<Local, Bit>,
    starts_timer: Signal<Local, Bit>,
    at_once: Signal<Local, Bit>,
    seen: Signal<Local, ReqCtx>,
    /// The line after this cycle.
    new: Signal<Local, ReqCtx>,
    after: Signal<Local, Bits<8>>,
    status: Signal<Local, Bits<8>>,
    /// First PSN behind a READ or atomic.
    opcode: Signal<Local, Bits<8>>,
    sge: Signal<Local, Bits<128>>,
    access: Signal<Local, Bits<32>>,
}

#[kernel]
impl Logic for RequesterTx {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, turn, ahead, ahead_valid, ahead_fresh, state, wqe, fresh, held, dirty, sent, line, unsent, first,
            out, left, offered, again, count, cmd, cmd_valid, done, done_valid, cqe, cqe_valid, timer, timer_valid,
            free, free_valid, track, track_valid, work, work_valid, stats
        );
        clock!(self, clock, waiting, ops, ordered, plan);
        self.waiting.reset.next = self.reset.val();
        self.ops.reset.next = self.reset.val();
        self.ordered.reset.next = self.reset.val();
        self.ordered.start.next = self.fence.val();
        self.passed.next = self.ordered.passed.val();

        // Outputs, one register each but the packet orders.
        MsgSrc::<TxOp>::link(&mut self.m_op, &mut self.ops.m);
        self.ops.s.data.next = self.order.op.val();
        self.ops.s.valid.next = false;
        self.m_cmd.data.next = self.cmd.q.val();
        self.m_cmd.valid.next = self.cmd_valid.q.val();
        self.m_done.data.next = self.done.q.val();
        self.m_done.valid.next = self.done_valid.q.val();
        self.m_cqe.data.next = self.cqe.q.val();
        self.m_cqe.valid.next = self.cqe_valid.q.val();
        self.m_timer.data.next = self.timer.q.val();
        self.m_timer.valid.next = self.timer_valid.q.val();
        self.m_free.data.next = self.free.q.val();
        self.m_free.valid.next = self.free_valid.q.val();
        self.m_track.data.next = self.track.q.val();
        self.m_track.valid.next = self.track_valid.q.val();
        self.m_work.data.next = self.work.q.val();
        self.m_work.valid.next = self.work_valid.q.val();
        self.work_valid.d.next = self.work_valid.q.val() & !self.m_work.ready.val();
        self.stat.next = self.stats.q.val();
        self.stats.d.next = bits::<3>(0);
        self.cmd_valid.d.next = self.cmd_valid.q.val() & !self.m_cmd.ready.val();
        self.done_valid.d.next = self.done_valid.q.val() & !self.m_done.ready.val();
        self.cqe_valid.d.next = self.cqe_valid.q.val() & !self.m_cqe.ready.val();
        self.timer_valid.d.next = self.timer_valid.q.val() & !self.m_timer.ready.val();
        self.free_valid.d.next = self.free_valid.q.val() & !self.m_free.ready.val();
        self.track_valid.d.next = self.track_valid.q.val() & !self.m_track.ready.val();
        self.level.next = self.ops.level.val();
        self.room.next = !self.level.val().get_bits::<12>(4).any();

        // Intake: new requests, and requeued ones in turn with them while there are any.
        self.s_wqe.ready.next = !self.ahead_valid.q.val() & !self.turn.q.val();
        self.waiting.m.ready.next = !self.ahead_valid.q.val() & self.turn.q.val();
        // Whatever leaves without the line being held is out before the next line is asked for.
        self.acquire.next = self.ahead_valid.q.val()
            & (self.state.q.val() == State::Acquire)
            & self.room.val()
            & !self.done_valid.q.val()
            & !self.cqe_valid.q.val()
            & !self.free_valid.q.val()
            & !self.work_valid.q.val();
        if self.ahead_valid.q.val() {
            self.ahead_valid.d.next = !(self.acquire.val() & self.ctx.acq_ready.val());
        } else {
            self.turn.d.next = !self.turn.q.val() & self.waiting.m.valid.val();
            self.ahead_fresh.d.next = !self.turn.q.val();
            if self.turn.q.val() {
                self.ahead.d.next = self.waiting.m.data.val();
                self.ahead_valid.d.next = self.waiting.m.valid.val();
            } else {
                self.ahead.d.next = self.s_wqe.data.val();
                self.ahead_valid.d.next = self.s_wqe.valid.val();
            }
        }

        // Context port.
        self.give.next = (self.state.q.val() == State::Release)
            & (self.offered.q.val() | (!self.cmd_valid.q.val() & !self.timer_valid.q.val() & !self.track_valid.q.val()));
        self.ctx.acq_valid.next = self.acquire.val();
        self.ctx.acq_id.next = self.ahead.q.val().qpn;
        self.ctx.acq_tag.next = bits::<4>(0);
        self.ctx.line_ready.next = self.state.q.val() == State::Line;
        self.ctx.rel_id.next = self.wqe.q.val().qpn;
        self.waiting.s.data.next = self.wqe.q.val();
        self.waiting.s.valid.next = self.state.q.val() == State::Requeue;

        // The request and the place of the next packet in it.
        self.head.x.next = self.wqe.q.val().head;
        self.opcode.next = self.head.y.val().opcode;
        self.window_full.next = self.out.q.val() > LAST_PACKET;
        self.filling.next = self.out.q.val() == LAST_PACKET;
        self.is_last.next = self.plan.single.val() | self.plan.asks.val() | (self.left.q.val() <= bit_cast::<32, 13>(self.plan.mtu.val()));
        // What has been sent once may be sent again.
        self.held_back.next = self.unsent.q.val()
            & (self.plan.asks_full.val() | self.plan.fence.val() | (self.plan.alone.val() & self.out.q.val().any()));
        self.goes_on.next = self.ahead_valid.q.val()
            & (self.ahead.q.val().qpn == self.wqe.q.val().qpn)
            & !self.count.q.val().all();
        self.starts_timer.next =
            self.plan.reliable.val() & !self.line.q.val().timer_on & self.line.q.val().timeout.any();
        // A tracker entry is written in the next cycle, long before anyone can read it; commands must be out before.
        self.at_once.next = !self.cmd_valid.q.val()
            & !self.timer_valid.q.val()
            & !self.track_valid.q.val()
            & !self.starts_timer.val();
        self.after.next = self.line.q.val().epoch + 1;
        self.status.next = self.plan.status.val();
        self.seen.next = self.ctx.line_data.val();
        if self.again.q.val() {
            self.seen.next = self.line.q.val();
        }
        self.again.d.next = false;
        self.behind.a.next = self.line.q.val().msg_offset;
        self.behind.b.next = bit_cast::<32, 13>(self.plan.mtu.val());
        self.remains.a.next = self.head.y.val().length;
        self.remains.b.next = self.seen.val().msg_offset;
        self.plan.en.next = (self.state.q.val() == State::Check) | (self.state.q.val() == State::Line);
        self.plan.line.next = self.seen.val();
        self.plan.wqe.next = self.wqe.q.val();
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
        self.new.next = self.line.q.val();

        match self.state.q.val() {
            State::Acquire => {
                self.wqe.d.next = self.ahead.q.val();
                self.fresh.d.next = self.ahead_fresh.q.val();
                self.dirty.d.next = false;
                self.sent.d.next = false;
                self.count.d.next = bits::<4>(0);
                self.offered.d.next = false;
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
                    self.cqe_valid.d.next = true;
                    self.state.d.next = State::Discard;
                } else if !self.plan.live.val() | self.plan.past_error.val() {
                    self.stats.d.next = bits::<3>(flags(STATS, &["stale_wqe"]) as u64);
                    self.state.d.next = State::Discard;
                } else if !self.plan.in_order.val() {
                    self.state.d.next = State::Requeue;
                } else if self.plan.halted.val() & self.unsent.q.val() {
                    self.state.d.next = State::Park;
                } else if self.status.val().any() {
                    self.done_valid.d.next = true;
                    self.state.d.next = State::Discard;
                } else if self.plan.full.val() & self.unsent.q.val() {
                    self.state.d.next = State::Park;
                } else if self.plan.local.val() & self.unsent.q.val() & !(self.line.q.val().local == local::EXECUTED) {
                    // Executed by the key unit while the queue is parked; when it is offered again it counts as a NOP. Executed once, whatever is
                    // sent again meanwhile.
                    self.state.d.next = State::Park;
                    if !self.line.q.val().local.any() & !self.plan.waits.val() {
                        self.work_valid.d.next = true;
                        self.new.next.local = bits::<2>(local::UNDER_WAY);
                    }
                } else if self.plan.nop.val() {
                    if self.unsent.q.val() {
                        self.new.next.local = bits::<2>(0);
                    }
                    self.status.next = bits::<8>(done_status::QUIET);
                    self.done_valid.d.next = true;
                    self.dirty.d.next = true;
                    self.new.next.next_index = self.line.q.val().next_index + 1;
                    if self.unsent.q.val() {
                        self.track_valid.d.next = true;
                        self.new.next.sent_index = self.line.q.val().sent_index + 1;
                    }
                    self.state.d.next = State::Discard;
                } else if self.window_full.val() | self.held_back.val() {
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
                self.cmd_valid.d.next = true;
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
                    self.free_valid.d.next = true;
                } else {
                    self.ops.s.valid.next = true;
                }
                if self.fresh.q.val() | self.ops.s.ready.val() {
                    self.state.d.next = State::Acquire;
                    if self.held.q.val() {
                        self.state.d.next = State::Release;
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
        if self.emit.val() {
            self.ops.s.valid.next = true;
            self.stats.d.next = bits::<3>(flags(STATS, &["tx_packets"]) as u64);
            self.dirty.d.next = true;
            self.sent.d.next = true;
            self.first.d.next = false;
            self.left.d.next = self.left.q.val() - bit_cast::<32, 13>(self.plan.mtu.val());
            self.out.d.next = self.out.q.val() + 1;
            self.count.d.next = self.count.q.val() + 1;
            self.new.next.next_psn = self.line.q.val().next_psn + 1;
            if self.line.q.val().next_psn == self.line.q.val().max_psn {
                self.new.next.max_psn = self.line.q.val().max_psn + 1;
            }
            if self.plan.asks.val() {
                self.new.next.next_psn = self.plan.behind.val();
                if self.line.q.val().next_psn == self.line.q.val().max_psn {
                    self.new.next.max_psn = self.plan.behind.val();
                }
                if self.unsent.q.val() {
                    self.new.next.rd_out = self.line.q.val().rd_out + 1;
                }
            }
            self.new.next.in_msg = !self.is_last.val();
            if self.unsent.q.val() {
                self.unsent.d.next = false;
                self.track_valid.d.next = true;
                self.new.next.sent_index = self.line.q.val().sent_index + 1;
            }
            if self.starts_timer.val() {
                self.new.next.timer_on = true;
                self.timer_valid.d.next = true;
            }
            self.state.d.next = State::Emit;
            self.new.next.msg_offset = self.behind.y.val();
            if self.is_last.val() {
                self.new.next.msg_offset = bits::<32>(0);
                self.new.next.next_index = self.line.q.val().next_index + 1;
                self.state.d.next = State::Release;
                if self.goes_on.val() {
                    self.wqe.d.next = self.ahead.q.val();
                    self.fresh.d.next = self.ahead_fresh.q.val();
                    self.sent.d.next = false;
                    self.ahead_valid.d.next = false;
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
            self.out.d.next = self.seen.val().next_psn - self.seen.val().una_psn;
            self.left.d.next = self.remains.y.val();
        }
        self.ordered.came.next = self.ops.s.valid.val() & self.ops.s.ready.val();
        self.ordered.went.next = self.m_op.valid.val() & self.m_op.ready.val();
        self.ctx.rel_dirty.next = self.dirty.q.val() | self.emit.val();
        self.ctx.rel_data.next = self.new.val();
        self.line.d.next = self.new.val();
        if self.state.q.val() == State::Line {
            self.line.d.next = self.ctx.line_data.val();
        }

        // Records load while their register is empty; the states above only raise `valid`.
        if !self.cmd_valid.q.val() {
            self.cmd.d.next.qpn = self.wqe.q.val().qpn;
            self.cmd.d.next.op = bits::<2>(send_command::PARK);
            self.cmd.d.next.index = self.wqe.q.val().index;
            self.cmd.d.next.epoch = self.after.val();
        }
        if !self.done_valid.q.val() {
            self.done.d.next.qpn = self.wqe.q.val().qpn;
            self.done.d.next.epoch = self.wqe.q.val().epoch;
            self.done.d.next.psn = self.line.q.val().next_psn;
            self.done.d.next.wqe_index = self.wqe.q.val().index;
            self.done.d.next.status = self.status.val();
        }
        if !self.cqe_valid.q.val() {
            self.cqe.d.next.cqn = self.line.q.val().scqn;
            self.cqe.d.next.function = self.line.q.val().function;
            self.cqe.d.next.qpn = self.wqe.q.val().qpn;
            self.cqe.d.next.wqe_index = self.wqe.q.val().index;
            self.cqe.d.next.status = bits::<8>(CqeStatus::WrFlush as u64);
        }
        if !self.timer_valid.q.val() {
            self.timer.d.next.qpn = self.wqe.q.val().qpn;
            self.timer.d.next.start = true;
            self.timer.d.next.ticks = self.plan.ticks.val();
        }
        if !self.free_valid.q.val() {
            self.free.d.next.handle = self.wqe.q.val().handle;
        }
        self.sge.next = self.wqe.q.val().sge;
        self.access.next = self.head.y.val().imm;
        if !self.work_valid.q.val() {
            self.work.d.next.register = self.opcode.val() == WrOpcode::RegMr as u64;
            self.work.d.next.bind = self.opcode.val() == WrOpcode::BindMw as u64;
            self.work.d.next.key = self.head.y.val().rkey;
            if self.plan.drains.val() {
                self.work.d.next.key = self.head.y.val().imm;
            }
            self.work.d.next.pd = self.line.q.val().pd;
            self.work.d.next.function = self.line.q.val().function;
            self.work.d.next.qpn = self.wqe.q.val().qpn;
            self.work.d.next.index = self.wqe.q.val().index;
            self.work.d.next.access = self.access.val().get_bits::<4>(1);
            self.work.d.next.page_size = self.access.val().get_bits::<2>(5);
            self.work.d.next.start = self.head.y.val().raddr;
            self.work.d.next.table = self.sge.val().get_bits::<64>(0);
            self.work.d.next.length = self.sge.val().get_bits::<64>(64);
        }
        if !self.track_valid.q.val() {
            self.track.d.next.qpn = self.wqe.q.val().qpn;
            self.track.d.next.index = self.wqe.q.val().index;
            self.track.d.next.last_psn = self.plan.last_psn.val();
            if self.plan.nop.val() {
                self.track.d.next.last_psn = self.line.q.val().next_psn - 1;
            }
            self.track.d.next.signaled = self.head.y.val().signaled | self.line.q.val().sig_all;
            self.track.d.next.opcode = self.opcode.val().get_bits::<4>(0);
        }
        if self.reset.val() {
            self.state.d.next = State::Acquire;
            self.ahead_valid.d.next = false;
            self.cmd_valid.d.next = false;
            self.done_valid.d.next = false;
            self.cqe_valid.d.next = false;
            self.timer_valid.d.next = false;
            self.free_valid.d.next = false;
            self.track_valid.d.next = false;
            self.work_valid.d.next = false;
        }
    }
}
