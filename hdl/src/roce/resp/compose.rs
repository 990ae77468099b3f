//! From a verdict to the placement order, the new context and the event: combinational, all inputs are registers.
use super::check::{Sums, Verdict};
use super::decode::OpKind;
use super::STATS;
use crate::codes::{message, place_kind};
use crate::msg::{PlaceOp, RqFlush, RxRequest, TRANSPORT};
use crate::prim::pack::Cast;
use crate::records::RspCtx;
use crate::roce::word::RoceWord;
use crate::stats::flags;
use ferric_abi::codes::{CqeOpcode, CqeStatus, QpType};
use ferric_abi::wire::{syndrome, GRH_BYTES};
use ferric_abi::wire::{Eth, Ipv4, Vlan};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Which order is to be made.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum Order {
    /// A packet's.
    Packet,
    /// A datagram's IP header, which goes in front of its payload (IBTA 11.4.1.2 and annex A17: an IPv4 header is the last 20 bytes of the 40).
    Area,
    /// Completion of the half-received SEND of a failed queue pair.
    Held,
    /// A queue pair begins a new life: nothing that the chain keeps of an earlier one may count, and the buffer of a message that has been cut short goes back.
    Back,
    /// Another message's receive buffer, taken away from it.
    Take,
    /// Of a queue pair on a shared receive queue that goes to error: no completion, but what comes behind the last one.
    Last,
    /// Completion of a receive request flushed by the receive-queue unit.
    Flush,
    Barrier,
}

#[derive(LogicBlock, Default)]
pub struct Compose {
    pub order: Signal<In, Order>,
    pub verdict: Signal<In, Verdict>,
    pub id: Signal<In, Bits<24>>,
    pub rx: Signal<In, RxRequest>,
    pub kind: Signal<In, OpKind>,
    /// See `Front`.
    pub counted: Signal<In, Bit>,
    pub sums: Signal<In, Sums>,
    pub flush: Signal<In, RqFlush>,
    /// The receive buffer in hand has been taken away; the one that is.
    pub gone: Signal<In, Bit>,
    pub victim: Signal<In, Bits<6>>,
    pub ctx: Signal<In, RspCtx>,
    /// The packet's receive request comes with a grant to placement.
    pub late: Signal<In, Bit>,
    pub op: Signal<Out, PlaceOp>,
    pub after: Signal<Out, RspCtx>,
    /// Why the queue pair goes to error, if it does (`CqeStatus`).
    pub cause: Signal<Out, Bits<8>>,
    pub events: Signal<Out, Bits<16>>,
    /// Whose they are.
    pub whose: Signal<Out, Bits<12>>,
    word: Cast<RoceWord, Bits<TRANSPORT>>,
    handle: Signal<Local, Bits<8>>,
    low_handle: Signal<Local, Bits<6>>,
    frame_len: Signal<Local, Bits<14>>,
    rc: Signal<Local, Bit>,
    takes: Signal<Local, Bit>,
    closes: Signal<Local, Bit>,
    asked: Signal<Local, Bit>,
    datagram: Signal<Local, Bit>,
    area_off: Signal<Local, Bits<8>>,
    area_len: Signal<Local, Bits<13>>,
    area_at: Signal<Local, Bits<32>>,
    accepted: Signal<Local, Bits<5>>,
    timer: Signal<Local, Bits<8>>,
    psn_next: Signal<Local, Bits<24>>,
    last_psn: Signal<Local, Bits<24>>,
    msn_next: Signal<Local, Bits<24>>,
}

#[kernel]
impl Logic for Compose {
    #[hdl_gen]
    fn update(&mut self) {
        self.handle.next = self.ctx.val().rq_handle;
        self.low_handle.next = self.handle.val().get_bits::<6>(0);
        self.frame_len.next = self.rx.val().frame_len;
        self.rc.next = self.ctx.val().qp_type == QpType::Rc as u64;
        self.closes.next = self.kind.val().end | self.rx.val().raw;
        self.takes.next = self.kind.val().send | self.kind.val().imm | self.rx.val().raw;
        self.asked.next = self.rc.val() & self.rx.val().ack_req;
        self.timer.next = bit_cast::<8, 5>(self.ctx.val().min_rnr_timer);
        self.psn_next.next = self.rx.val().psn + self.sums.val().step;
        self.last_psn.next = self.ctx.val().epsn - 1;
        self.accepted.next = self.ctx.val().rd_in + 1;
        self.msn_next.next = self.ctx.val().msn + 1;

        self.datagram.next = self.ctx.val().qp_type == QpType::Ud as u64;
        self.area_off.next = bits::<8>(Eth::BYTES as u64);
        if self.rx.val().has_vlan {
            self.area_off.next = bits::<8>((Eth::BYTES + Vlan::BYTES) as u64);
        }
        self.area_len.next = bits::<13>(Ipv4::BYTES as u64);
        self.area_at.next = bits::<32>(Ipv4::BYTES as u64);
        if self.rx.val().ipv6 {
            self.area_len.next = bits::<13>(GRH_BYTES);
            self.area_at.next = bits::<32>(0);
        }

        self.cause.next = bits::<8>(CqeStatus::RemoteInvalidRequest as u64);
        self.events.next = bits::<16>(0);
        self.whose.next = self.ctx.val().function;
        self.after.next = self.ctx.val();
        self.op.next.qpn = self.id.val();
        self.op.next.epoch = self.ctx.val().epoch;
        self.op.next.function = self.ctx.val().function;
        self.op.next.pd = self.ctx.val().pd;
        if self.kind.val().send | self.rx.val().raw {
            // Entries of a receive are those of whoever posted it.
            self.op.next.pd = self.ctx.val().rq_pd;
        }
        self.op.next.own_pd = self.ctx.val().pd;
        self.op.next.kind = bits::<4>(place_kind::NOTHING);
        self.op.next.has_frame = self.order.val() == Order::Packet;
        self.op.next.handle = self.rx.val().handle;
        self.op.next.pay_off = self.rx.val().pay_off;
        self.op.next.pay_len = self.rx.val().pay_len;
        self.op.next.va = self.sums.val().va;
        self.op.next.key = self.sums.val().key;
        self.op.next.chk_len = self.sums.val().chk_len;
        self.op.next.rq_handle = self.low_handle.val();
        self.op.next.rq_index = self.ctx.val().rq_index;
        self.op.next.free_rq = false;
        self.op.next.msg_off = self.sums.val().offset;
        self.op.next.late = self.late.val();
        self.op.next.done = false;
        self.op.next.cqe = false;
        self.op.next.rcqn = self.ctx.val().rcqn;
        self.op.next.opcode = bits::<8>(CqeOpcode::Recv as u64);
        self.op.next.has_imm = self.kind.val().imm;
        self.op.next.imm = self.rx.val().imm;
        self.op.next.inv = self.kind.val().inv;
        self.op.next.solicited = self.rx.val().solicited;
        self.op.next.byte_len = self.sums.val().bytes;
        if self.kind.val().read {
            self.op.next.byte_len = self.sums.val().chk_len;
        }
        if self.kind.val().store {
            // Of its answer.
            self.op.next.byte_len = bits::<32>(0);
        }
        self.op.next.flush = false;
        self.op.next.src_qpn = self.rx.val().src_qpn;
        self.op.next.grh = self.datagram.val() & (self.order.val() == Order::Packet);
        // A failure costs UC and UD the message (IBTA 9.9.3, class D). A datagram with payload begins with its header.
        self.op.next.soft = (self.ctx.val().qp_type == QpType::Uc as u64) | self.datagram.val();
        self.op.next.first = self.kind.val().start & (!self.datagram.val() | !self.rx.val().pay_len.any());
        self.op.next.ack = false;
        // The others have no acknowledges.
        self.op.next.replies = self.rc.val();
        self.op.next.transport = self.word.y.val();
        self.word.x.next.syndrome = bits::<8>(syndrome::ACK);
        self.word.x.next.psn = self.rx.val().psn;
        self.word.x.next.msn = self.ctx.val().msn;
        self.word.x.next.dest_qpn = self.ctx.val().dest_qpn;
        self.word.x.next.ipv6 = self.ctx.val().ipv6;
        self.word.x.next.vlan = self.ctx.val().vlan;
        self.word.x.next.pmtu = self.ctx.val().pmtu;
        self.op.next.again = false;
        self.op.next.atomic = self.counted.val() & (self.order.val() == Order::Packet);
        self.op.next.operand = self.rx.val().operand;
        self.op.next.compare = self.rx.val().compare;

        if self.order.val() == Order::Barrier {
            self.op.next.kind = bits::<4>(place_kind::BARRIER);
        } else if self.order.val() == Order::Packet {
            match self.verdict.val() {
                Verdict::Notice => self.events.next = bits::<16>(flags(STATS, &["rx_requests"]) as u64),
                Verdict::NoQp => {
                    self.events.next = bits::<16>(flags(STATS, &["rx_requests", "drop_no_qp"]) as u64);
                    self.whose.next = bits::<12>(0);
                }
                Verdict::Transport => self.events.next = bits::<16>(flags(STATS, &["rx_requests", "drop_bad_transport"]) as u64),
                Verdict::Pkey => self.events.next = bits::<16>(flags(STATS, &["rx_requests", "drop_bad_pkey"]) as u64),
                Verdict::Qkey => self.events.next = bits::<16>(flags(STATS, &["rx_requests", "drop_bad_qkey"]) as u64),
                Verdict::Duplicate => {
                    self.op.next.ack = self.rx.val().ack_req | (self.kind.val().end & (self.kind.val().send | self.kind.val().write));
                    self.word.x.next.psn = self.last_psn.val();
                    self.events.next = bits::<16>(flags(STATS, &["rx_requests", "dup_requests"]) as u64);
                    if self.kind.val().asks {
                        // Answered under its own PSN (IBTA 9.7.5.1), or not at all.
                        self.word.x.next.psn = self.rx.val().psn;
                        self.op.next.ack = self.sums.val().again;
                        self.op.next.again = true;
                        if self.sums.val().again {
                            self.op.next.kind = bits::<4>(place_kind::READ);
                            if self.kind.val().atomic {
                                // From what is stored: nothing is touched.
                                self.op.next.kind = bits::<4>(place_kind::ATOMIC);
                            }
                            if !self.kind.val().read {
                                self.op.next.chk_len = bits::<32>(0);
                            }
                        }
                    }
                }
                Verdict::Gap => {
                    self.op.next.ack = true;
                    self.word.x.next.syndrome = bits::<8>(syndrome::NAK_SEQUENCE);
                    self.word.x.next.psn = self.ctx.val().epsn;
                    self.after.next.nak_sent = true;
                    self.after.next.ahead = self.sums.val().ahead;
                    self.events.next = bits::<16>(flags(STATS, &["rx_requests", "out_of_order", "nak_seq_sent"]) as u64);
                }
                Verdict::Silent => {
                    self.after.next.ahead = self.sums.val().ahead;
                    self.events.next = bits::<16>(flags(STATS, &["rx_requests", "out_of_order"]) as u64);
                }
                Verdict::Invalid => {
                    self.op.next.ack = true;
                    self.word.x.next.syndrome = bits::<8>(syndrome::NAK_INVALID);
                    self.events.next = bits::<16>(flags(STATS, &["rx_requests", "nak_inv_sent"]) as u64);
                }
                Verdict::Access => {
                    self.op.next.ack = true;
                    self.word.x.next.syndrome = bits::<8>(syndrome::NAK_ACCESS);
                    self.cause.next = bits::<8>(CqeStatus::RemoteAccess as u64);
                    self.events.next = bits::<16>(flags(STATS, &["rx_requests", "nak_access_sent"]) as u64);
                }
                Verdict::Dead => {
                    self.op.next.ack = self.rc.val();
                    self.word.x.next.syndrome = bits::<8>(syndrome::NAK_OPERATION);
                    self.cause.next = bits::<8>(CqeStatus::LocalQpOperation as u64);
                    self.events.next = bits::<16>(flags(STATS, &["rx_requests", "srq_dead"]) as u64);
                }
                Verdict::Broken => {
                    self.after.next.in_msg = bits::<2>(0);
                    self.after.next.epsn = self.psn_next.val();
                    self.events.next = bits::<16>(flags(STATS, &["rx_requests", "out_of_order"]) as u64);
                    if self.datagram.val() {
                        self.after.next = self.ctx.val();
                        self.events.next = bits::<16>(flags(STATS, &["rx_requests", "drop_bad_length"]) as u64);
                    }
                }
                Verdict::NoReceive => {
                    self.events.next = bits::<16>(flags(STATS, &["rx_requests", "no_recv"]) as u64);
                    if self.rc.val() {
                        self.op.next.ack = true;
                        self.word.x.next.syndrome = self.timer.val() | syndrome::RNR_NAK;
                        self.after.next.rnr_sent = true;
                        self.after.next.nak_sent = false;
                        self.after.next.ahead = bits::<8>(0);
                        self.events.next = bits::<16>(flags(STATS, &["rx_requests", "rnr_sent"]) as u64);
                    } else if !self.rx.val().raw & !self.datagram.val() {
                        self.after.next.in_msg = bits::<2>(0);
                        self.after.next.epsn = self.psn_next.val();
                    }
                }
                Verdict::NoRaw => {
                    self.events.next = bits::<16>(flags(STATS, &["rx_requests", "raw_no_queue"]) as u64);
                    self.whose.next = bits::<12>(0);
                }
                Verdict::Accept => {
                    self.events.next = bits::<16>(flags(STATS, &["rx_requests"]) as u64);
                    self.op.next.kind = bits::<4>(place_kind::WRITE);
                    self.op.next.ack = self.asked.val();
                    self.op.next.done = self.closes.val();
                    self.op.next.cqe = self.closes.val() & self.takes.val();
                    self.op.next.free_rq = self.closes.val() & self.takes.val();
                    if self.kind.val().imm {
                        self.op.next.opcode = bits::<8>(CqeOpcode::RecvWriteImm as u64);
                    }
                    if self.kind.val().send {
                        self.op.next.kind = bits::<4>(place_kind::SEND);
                        if self.kind.val().imm {
                            self.op.next.opcode = bits::<8>(CqeOpcode::RecvImm as u64);
                        }
                    }
                    if self.kind.val().read {
                        self.op.next.kind = bits::<4>(place_kind::READ);
                        self.op.next.ack = true;
                    }
                    if self.kind.val().flush {
                        self.op.next.kind = bits::<4>(place_kind::READ);
                        self.op.next.flush = true;
                        self.op.next.ack = true;
                    }
                    if self.kind.val().store {
                        self.op.next.opcode = bits::<8>(CqeOpcode::AtomicWrite as u64);
                        self.op.next.ack = true;
                    }
                    if self.kind.val().atomic {
                        self.op.next.kind = bits::<4>(place_kind::ATOMIC);
                        self.op.next.ack = true;
                        self.op.next.opcode = bits::<8>(CqeOpcode::CompareSwap as u64);
                        if self.kind.val().add {
                            self.op.next.opcode = bits::<8>(CqeOpcode::FetchAdd as u64);
                        }
                    }
                    if self.closes.val() {
                        self.word.x.next.msn = self.msn_next.val();
                        self.after.next.msn = self.msn_next.val();
                        self.after.next.in_msg = bits::<2>(0);
                        if self.takes.val() {
                            self.after.next.rq_handle = bits::<8>(0);
                        }
                    } else if self.kind.val().send {
                        self.after.next.in_msg = bits::<2>(message::SEND);
                    } else {
                        self.after.next.in_msg = bits::<2>(message::WRITE);
                    }
                    if self.kind.val().asks {
                        self.after.next.rd_in = self.accepted.val();
                    }
                    self.after.next.epsn = self.psn_next.val();
                    self.after.next.nak_sent = false;
                    self.after.next.rnr_sent = false;
                    self.after.next.msg_bytes = self.sums.val().bytes;
                    self.after.next.remaining = self.sums.val().left;
                    self.after.next.va = self.sums.val().va_next;
                    self.after.next.rkey = self.sums.val().key;
                    if self.rx.val().raw | self.datagram.val() {
                        // A raw or datagram queue has no sequence: its context stays as it was.
                        self.after.next = self.ctx.val();
                        self.after.next.rq_handle = bits::<8>(0);
                    }
                    if self.datagram.val() {
                        self.op.next.byte_len = bit_cast::<32, 14>(self.sums.val().datagram);
                        self.op.next.msg_off = bits::<32>(GRH_BYTES);
                        if !self.rx.val().pay_len.any() {
                            // The header is all there is.
                            self.op.next.pay_off = self.area_off.val();
                            self.op.next.pay_len = self.area_len.val();
                            self.op.next.msg_off = self.area_at.val();
                        }
                    }
                    if self.rx.val().raw {
                        self.op.next.kind = bits::<4>(place_kind::SEND);
                        self.op.next.opcode = bits::<8>(CqeOpcode::Recv as u64);
                        self.op.next.has_imm = false;
                        self.op.next.solicited = false;
                        self.op.next.pay_off = bits::<8>(0);
                        self.op.next.pay_len = self.frame_len.val().get_bits::<13>(0);
                        self.op.next.msg_off = bits::<32>(0);
                        self.op.next.byte_len = bit_cast::<32, 14>(self.frame_len.val());
                    }
                }
                _ => {}
            }
        } else if self.order.val() == Order::Back {
            self.op.next.kind = bits::<4>(place_kind::BARRIER);
            self.op.next.again = true;
            self.op.next.ack = true;
            self.op.next.free_rq = self.handle.val().get_bit(7) & !self.gone.val();
            self.after.next.rq_handle = bits::<8>(0);
            self.after.next.in_msg = bits::<2>(0);
        } else if self.order.val() == Order::Take {
            self.op.next.free_rq = true;
            self.op.next.rq_handle = self.victim.val();
        } else if self.order.val() == Order::Area {
            self.op.next.kind = bits::<4>(place_kind::SEND);
            self.op.next.grh = true;
            self.op.next.first = true;
            self.op.next.pay_off = self.area_off.val();
            self.op.next.pay_len = self.area_len.val();
            self.op.next.msg_off = self.area_at.val();
        } else {
            self.op.next.kind = bits::<4>(place_kind::FLUSH);
            self.op.next.done = true;
            self.op.next.cqe = true;
            self.op.next.has_imm = false;
            self.op.next.byte_len = bits::<32>(0);
            self.op.next.solicited = false;
            self.events.next = bits::<16>(flags(STATS, &["recv_flushed"]) as u64);
            if self.order.val() == Order::Held {
                self.op.next.free_rq = !self.gone.val();
                self.after.next.rq_handle = bits::<8>(0);
                self.after.next.in_msg = bits::<2>(0);
            } else if self.order.val() == Order::Last {
                self.op.next.cqe = false;
                self.events.next = bits::<16>(0);
            } else {
                self.op.next.rq_index = self.flush.val().index;
            }
        }
    }
}
