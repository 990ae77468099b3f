//! What req_tx must know about a work request and its context before the first packet: one register stage, so that the
//! state machine decides on single bits.

use crate::msg::SqWqe;
use crate::prim::pack::Cast;
use crate::prim::sum::{LessOne, Sum};
use crate::records::{ReqCtx, WqeHead};
use crate::roce::req_rx::{LONGEST_TIMEOUT, TIMEOUT_TICKS};
use ferric_abi::codes::{CqeStatus, QpState, QpType, WrOpcode};
use ferric_abi::wire::pmtu;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Bytes of the longest raw frame.
const LONGEST_RAW: u64 = 9216;
/// Bytes of an atomic's answer.
const ATOMIC_BYTES: u64 = 8;
/// Work requests that the tracker holds of a queue pair, less one.
const TRACKED: u64 = 255;

/// Latches its outputs from `line` and `wqe` in cycles with `en`.
#[derive(LogicBlock, Default)]
pub struct Plan {
    pub clock: Signal<In, Clock>,
    pub en: Signal<In, Bit>,
    pub line: Signal<In, ReqCtx>,
    pub wqe: Signal<In, SqWqe>,
    /// Bytes of the message that are transferred, as the line has it a cycle after `en`.
    pub offset: Signal<In, Bits<32>>,
    /// Of another epoch, or the queue pair does not send.
    pub stale: Signal<Out, Bit>,
    pub live: Signal<Out, Bit>,
    /// No request begins that has not (SQD).
    pub halted: Signal<Out, Bit>,
    /// The request whose turn it is.
    pub in_order: Signal<Out, Bit>,
    /// At or behind a request that failed locally.
    pub past_error: Signal<Out, Bit>,
    /// The tracker has no place for a new request.
    pub full: Signal<Out, Bit>,
    /// Enters the tracker and sends nothing: a NOP, or a local operation, which is executed before.
    pub nop: Signal<Out, Bit>,
    pub local: Signal<Out, Bit>,
    /// A local operation that must wait: every request before is to be complete (invalidation), or the fence holds.
    pub waits: Signal<Out, Bit>,
    /// It is a local invalidation.
    pub drains: Signal<Out, Bit>,
    /// `CqeStatus` if the request cannot be sent, else 0.
    pub status: Signal<Out, Bits<8>>,
    /// UD or RAW: one packet whatever the length.
    pub single: Signal<Out, Bit>,
    pub reliable: Signal<Out, Bit>,
    /// READ, atomic, FLUSH or ATOMIC WRITE: one packet that takes the PSNs of its answer (IBTA 9.7.2). `atomic` tells atomics apart.
    pub asks: Signal<Out, Bit>,
    pub atomic: Signal<Out, Bit>,
    /// No further READ or atomic may go now; the request is fenced and there is one on its way; a READ of so many PSNs that nothing
    /// else may be on its way, and something is.
    pub asks_full: Signal<Out, Bit>,
    pub fence: Signal<Out, Bit>,
    pub alone: Signal<Out, Bit>,
    /// Last PSN of the message; a cycle later the one behind it.
    pub last_psn: Signal<Out, Bits<24>>,
    pub behind: Signal<Out, Bits<24>>,
    /// Remote address: of a READ, two cycles after `en`, that of the first byte that is not transferred yet; otherwise that of the message.
    pub raddr: Signal<Out, Bits<64>>,
    /// Payload bytes of a full packet.
    pub mtu: Signal<Out, Bits<13>>,
    /// Retransmission time, 4.096 us * 2^timeout in ticks, at most 2^30.
    pub ticks: Signal<Out, Bits<32>>,
    head: Cast<Bits<256>, WqeHead>,
    r_stale: DFF<Bit>,
    r_live: DFF<Bit>,
    r_halted: DFF<Bit>,
    r_in_order: DFF<Bit>,
    r_past_error: DFF<Bit>,
    r_full: DFF<Bit>,
    r_nop: DFF<Bit>,
    r_local: DFF<Bit>,
    r_drains: DFF<Bit>,
    r_drained: DFF<Bit>,
    r_bad: DFF<Bit>,
    r_err: DFF<Bit>,
    r_long: DFF<Bit>,
    r_single: DFF<Bit>,
    r_datagram: DFF<Bit>,
    r_reliable: DFF<Bit>,
    r_asks: DFF<Bit>,
    r_atomic: DFF<Bit>,
    r_asks_full: DFF<Bit>,
    r_fence: DFF<Bit>,
    r_flying: DFF<Bit>,
    r_first_psn: DFF<Bits<24>>,
    r_raddr: DFF<Bits<64>>,
    advance: Sum<64>,
    /// PSNs of the message less one.
    r_more: DFF<Bits<24>>,
    r_behind: DFF<Bits<24>>,
    less: LessOne<32>,
    r_mtu: DFF<Bits<13>>,
    r_ticks: DFF<Bits<32>>,
    send: Signal<Local, Bit>,
    invalidates: Signal<Local, Bit>,
    inward: Signal<Local, Bit>,
    write: Signal<Local, Bit>,
    read: Signal<Local, Bit>,
    exchange: Signal<Local, Bit>,
    /// FLUSH or ATOMIC WRITE: what is asked for has no bytes, whatever the request says behind its head.
    poke: Signal<Local, Bit>,
    asking: Signal<Local, Bit>,
    idle: Signal<Local, Bit>,
    imm: Signal<Local, Bit>,
    raw: Signal<Local, Bit>,
    opcode: Signal<Local, Bits<8>>,
    length: Signal<Local, Bits<32>>,
    transport: Signal<Local, Bits<3>>,
    beyond: Signal<Local, Bits<16>>,
    tracked: Signal<Local, Bits<16>>,
    exponent: Signal<Local, Bits<5>>,
    most: Signal<Local, Bits<32>>,
    last: Sum<24>,
    follower: Sum<25>,
    carried: Signal<Local, Bits<25>>,
}

#[kernel]
impl Logic for Plan {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, r_stale, r_live, r_halted, r_in_order, r_past_error, r_full, r_nop, r_bad, r_err, r_long, r_single, r_datagram, r_local);
        dff_setup!(self, clock, r_drains, r_drained, r_reliable, r_asks, r_atomic, r_asks_full, r_fence, r_flying, r_first_psn, r_raddr, r_more, r_behind, r_mtu, r_ticks);
        self.head.x.next = self.wqe.val().head;
        self.length.next = self.head.y.val().length;
        self.opcode.next = self.head.y.val().opcode;
        self.transport.next = self.line.val().qp_type;
        self.invalidates.next = self.opcode.val() == WrOpcode::SendInv as u64;
        self.send.next = (self.opcode.val() == WrOpcode::Send as u64) | (self.opcode.val() == WrOpcode::SendImm as u64) | self.invalidates.val();
        self.write.next = (self.opcode.val() == WrOpcode::Write as u64) | (self.opcode.val() == WrOpcode::WriteImm as u64);
        self.read.next = self.opcode.val() == WrOpcode::Read as u64;
        self.exchange.next = (self.opcode.val() == WrOpcode::CompareSwap as u64) | (self.opcode.val() == WrOpcode::FetchAdd as u64);
        self.poke.next = (self.opcode.val() == WrOpcode::Flush as u64) | (self.opcode.val() == WrOpcode::AtomicWrite as u64);
        self.asking.next = self.read.val() | self.exchange.val() | self.poke.val();
        self.inward.next = (self.opcode.val() == WrOpcode::LocalInv as u64) | (self.opcode.val() == WrOpcode::RegMr as u64) | (self.opcode.val() == WrOpcode::BindMw as u64);
        self.advance.a.next = self.head.y.val().raddr;
        self.advance.b.next = bit_cast::<64, 32>(self.offset.val());
        self.r_raddr.d.next = self.advance.y.val();
        self.less.a.next = self.length.val();
        self.most.next = self.less.y.val();
        self.idle.next = self.opcode.val() == WrOpcode::Nop as u64;
        self.imm.next = self.opcode.val().get_bit(0);
        self.raw.next = self.transport.val() == QpType::Raw as u64;
        self.beyond.next = self.wqe.val().index - self.line.val().error_index;
        self.tracked.next = self.line.val().sent_index - self.line.val().done_index;
        self.exponent.next = self.line.val().timeout;
        if self.line.val().timeout > LONGEST_TIMEOUT {
            self.exponent.next = bits::<5>(LONGEST_TIMEOUT);
        }
        if self.en.val() {
            self.r_stale.d.next = !(self.wqe.val().epoch == self.line.val().epoch);
            self.r_live.d.next = (self.line.val().state == QpState::Rts as u64) | (self.line.val().state == QpState::Sqd as u64);
            self.r_halted.d.next = self.line.val().state == QpState::Sqd as u64;
            self.r_in_order.d.next = self.wqe.val().index == self.line.val().next_index;
            self.r_past_error.d.next = self.line.val().error_pending & !self.beyond.val().get_bit(15);
            self.r_full.d.next = self.tracked.val() > TRACKED;
            self.r_nop.d.next = self.idle.val() | self.inward.val();
            self.r_local.d.next = self.inward.val();
            self.r_drains.d.next = self.opcode.val() == WrOpcode::LocalInv as u64;
            self.r_drained.d.next = !self.tracked.val().any();
            self.r_err.d.next = self.wqe.val().err;
            // What has an answer: reliable connections only, an atomic's answer has 8 bytes, that of FLUSH and ATOMIC WRITE none, nothing of it is inline.
            self.r_bad.d.next = !(self.send.val() | self.write.val() | self.idle.val() | self.asking.val() | self.inward.val())
                // Connections have local operations, datagrams and raw queues have none.
                | (self.inward.val() & self.transport.val().get_bit(1))
                | (self.asking.val()
                    & (self.transport.val().any()
                        | !self.line.val().max_rd_atomic.any()
                        | self.head.y.val().inline_data
                        | (self.exchange.val() & (self.length.val() != ATOMIC_BYTES))
                        | (self.poke.val() & self.length.val().any())))
                | (self.invalidates.val() & self.transport.val().any())
                | (self.write.val() & self.transport.val().get_bit(1))
                | (self.send.val() & self.imm.val() & self.raw.val());
            self.r_long.d.next = self.length.val().get_bit(31) | (self.raw.val() & ((self.length.val() > LONGEST_RAW) | (self.length.val() == 0)));
            self.r_single.d.next = self.transport.val().get_bit(1);
            self.r_datagram.d.next = self.transport.val() == QpType::Ud as u64;
            self.r_reliable.d.next = self.transport.val() == QpType::Rc as u64;
            self.r_asks.d.next = self.asking.val();
            self.r_atomic.d.next = self.exchange.val();
            self.r_asks_full.d.next = self.asking.val() & ((self.line.val().rd_open >= self.line.val().max_rd_atomic) | self.line.val().rd_out.all());
            self.r_fence.d.next = self.head.y.val().fence & self.line.val().rd_out.any();
            self.r_flying.d.next = !(self.line.val().next_psn == self.line.val().una_psn);
            // Only a READ begins in its middle, and only the oldest request does.
            self.r_first_psn.d.next = self.line.val().next_psn;
            if self.asking.val() & self.line.val().msg_offset.any() {
                self.r_first_psn.d.next = self.line.val().una_wqe_psn;
            }
            self.r_ticks.d.next = bits::<32>(TIMEOUT_TICKS) << bit_cast::<32, 5>(self.exponent.val());
            match self.line.val().pmtu.index() {
                pmtu::MTU_256 => {
                    self.r_mtu.d.next = bits::<13>(pmtu::bytes(pmtu::MTU_256) as u64);
                    self.r_more.d.next = self.most.val().get_bits::<24>(8);
                }
                pmtu::MTU_512 => {
                    self.r_mtu.d.next = bits::<13>(pmtu::bytes(pmtu::MTU_512) as u64);
                    self.r_more.d.next = bit_cast::<24, 23>(self.most.val().get_bits::<23>(9));
                }
                pmtu::MTU_1024 => {
                    self.r_mtu.d.next = bits::<13>(pmtu::bytes(pmtu::MTU_1024) as u64);
                    self.r_more.d.next = bit_cast::<24, 22>(self.most.val().get_bits::<22>(10));
                }
                pmtu::MTU_2048 => {
                    self.r_mtu.d.next = bits::<13>(pmtu::bytes(pmtu::MTU_2048) as u64);
                    self.r_more.d.next = bit_cast::<24, 21>(self.most.val().get_bits::<21>(11));
                }
                _ => {
                    self.r_mtu.d.next = bits::<13>(pmtu::bytes(pmtu::MTU_4096) as u64);
                    self.r_more.d.next = bit_cast::<24, 20>(self.most.val().get_bits::<20>(12));
                }
            }
            // An empty message takes one PSN, and so does a frame of whatever length.
            if (self.length.val() == 0) | self.raw.val() {
                self.r_more.d.next = bits::<24>(0);
            }
        }
        self.stale.next = self.r_stale.q.val();
        self.live.next = self.r_live.q.val();
        self.halted.next = self.r_halted.q.val();
        self.in_order.next = self.r_in_order.q.val();
        self.past_error.next = self.r_past_error.q.val();
        self.full.next = self.r_full.q.val();
        self.nop.next = self.r_nop.q.val();
        self.local.next = self.r_local.q.val();
        self.drains.next = self.r_drains.q.val();
        self.waits.next = self.r_fence.q.val() | (self.r_drains.q.val() & !self.r_drained.q.val());
        self.single.next = self.r_single.q.val();
        self.reliable.next = self.r_reliable.q.val();
        self.mtu.next = self.r_mtu.q.val();
        self.ticks.next = self.r_ticks.q.val();
        self.status.next = bits::<8>(CqeStatus::Success as u64);
        if self.r_err.q.val() {
            self.status.next = bits::<8>(CqeStatus::Fatal as u64);
        } else if self.r_bad.q.val() {
            self.status.next = bits::<8>(CqeStatus::LocalQpOperation as u64);
        } else if (self.r_long.q.val() | (self.r_datagram.q.val() & self.r_more.q.val().any())) & !self.r_nop.q.val() {
            self.status.next = bits::<8>(CqeStatus::LocalLength as u64);
        }
        self.asks.next = self.r_asks.q.val();
        self.atomic.next = self.r_atomic.q.val();
        self.asks_full.next = self.r_asks_full.q.val();
        self.fence.next = self.r_fence.q.val();
        // The window may be exceeded by one READ; more than 2^23 PSNs may never be on their way.
        self.alone.next = self.r_flying.q.val() & self.r_asks.q.val() & (self.r_more.q.val().get_bit(22) | self.r_more.q.val().get_bit(23));
        self.last.a.next = self.r_first_psn.q.val();
        self.last.b.next = self.r_more.q.val();
        self.last_psn.next = self.last.y.val();
        // One more, by the carry into the lowest bit: one chain, not two.
        self.follower.a.next = (bit_cast::<25, 24>(self.r_first_psn.q.val()) << 1) | 1;
        self.follower.b.next = (bit_cast::<25, 24>(self.r_more.q.val()) << 1) | 1;
        self.carried.next = self.follower.y.val();
        self.r_behind.d.next = self.carried.val().get_bits::<24>(1);
        self.behind.next = self.r_behind.q.val();
        self.raddr.next = self.head.y.val().raddr;
        if self.r_asks.q.val() {
            self.raddr.next = self.r_raddr.q.val();
        }
    }
}
