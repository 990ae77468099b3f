//! One turn of a queue pair: up to 16 packets of a READ response, an atomic acknowledge, or an acknowledge, as orders for the gatherer.
use super::seat::{Addressee, Item, Seat};
use crate::bus::MsgSrc;
use crate::codes::ack_kind;
use crate::msg::TxOp;
use crate::prim::sum::Sum;
use ferric_abi::wire::{opcode, pmtu, syndrome};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// What is to be sent. `kind`: 0 acknowledge with `syndrome`, 1 READ response, 2 atomic acknowledge with `value`.
/// `again`: of a duplicate. `va`, `len`: the whole READ; `off`, `psn_off`: bytes and packets of it that earlier turns have sent.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct TurnJob {
    pub qpn: Bits<24>,
    pub epoch: Bits<8>,
    pub to: Addressee,
    pub kind: Bits<2>,
    pub psn: Bits<24>,
    pub msn: Bits<24>,
    pub syndrome: Bits<8>,
    pub va: Bits<64>,
    pub key: Bits<32>,
    pub len: Bits<32>,
    pub off: Bits<32>,
    pub psn_off: Bits<24>,
    pub value: Bits<64>,
    pub again: Bit,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// Where earlier turns ended.
    Begin,
    Cut,
    Send,
    /// The outcome waits to be taken.
    Done,
}

/// One packet in two cycles. The last one of a turn has `notify`.
#[derive(LogicBlock, Default)]
pub struct Turn {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Begins the turn of queue pair `qpn`: with `answer` of `item`, an atomic's result being `value`, else of the acknowledge in `seat`.
    pub start: Signal<In, Bit>,
    pub qpn: Signal<In, Bits<24>>,
    pub seat: Signal<In, Seat>,
    pub answer: Signal<In, Bit>,
    pub item: Signal<In, Item>,
    pub value: Signal<In, Bits<64>>,
    /// Nothing under way and no outcome left to take.
    pub idle: Signal<Out, Bit>,
    /// The outcome: the job, with `off` and `psn_off` behind this turn, and whether it was the last.
    pub done: Signal<Out, Bit>,
    pub after: Signal<Out, TurnJob>,
    pub all: Signal<Out, Bit>,
    pub take: Signal<In, Bit>,
    pub m_op: MsgSrc<TxOp>,
    state: DFF<State>,
    now: DFF<TurnJob>,
    va: DFF<Bits<64>>,
    left: DFF<Bits<32>>,
    psn: DFF<Bits<24>>,
    first: DFF<Bit>,
    last: DFF<Bit>,
    pay: DFF<Bits<13>>,
    count: DFF<Bits<4>>,
    /// By how much `va` goes on: what earlier turns have sent, then each packet.
    step: DFF<Bits<32>>,
    place: Sum<64>,
    job: Signal<Local, TurnJob>,
    to: Signal<Local, Addressee>,
    mtu: Signal<Local, Bits<13>>,
    wide_mtu: Signal<Local, Bits<32>>,
    ends: Signal<Local, Bit>,
    read: Signal<Local, Bit>,
    credit: Signal<Local, Bits<8>>,
}

#[kernel]
impl Logic for Turn {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, now, va, left, psn, first, last, pay, count, step);
        self.idle.next = self.state.q.val() == State::Idle;
        self.done.next = self.state.q.val() == State::Done;
        self.after.next = self.now.q.val();
        self.all.next = self.last.q.val();
        self.job.next.qpn = self.qpn.val();
        self.job.next.epoch = self.seat.val().epoch;
        self.job.next.to = self.seat.val().to;
        self.job.next.kind = bits::<2>(ack_kind::ACKNOWLEDGE);
        self.job.next.psn = self.seat.val().ack_psn;
        self.job.next.msn = self.seat.val().ack_msn;
        self.job.next.syndrome = self.seat.val().ack_syndrome;
        self.job.next.va = self.item.val().va;
        self.job.next.key = self.item.val().key;
        self.job.next.len = self.item.val().len;
        self.job.next.off = bits::<32>(0);
        self.job.next.psn_off = bits::<24>(0);
        self.job.next.value = self.value.val();
        self.job.next.again = self.item.val().again & self.answer.val();
        if self.answer.val() {
            self.job.next.kind = bits::<2>(ack_kind::READ);
            self.job.next.psn = self.item.val().psn;
            self.job.next.msn = self.item.val().msn;
            self.job.next.syndrome = bits::<8>(syndrome::ACK);
            self.job.next.off = self.seat.val().off;
            self.job.next.psn_off = self.seat.val().psn_off;
            if self.item.val().atomic {
                self.job.next.kind = bits::<2>(ack_kind::ATOMIC);
            }
        }
        self.to.next = self.now.q.val().to;
        self.mtu.next = bits::<13>(pmtu::bytes(pmtu::MTU_4096) as u64);
        match self.to.val().pmtu.index() {
            pmtu::MTU_256 => self.mtu.next = bits::<13>(pmtu::bytes(pmtu::MTU_256) as u64),
            pmtu::MTU_512 => self.mtu.next = bits::<13>(pmtu::bytes(pmtu::MTU_512) as u64),
            pmtu::MTU_1024 => self.mtu.next = bits::<13>(pmtu::bytes(pmtu::MTU_1024) as u64),
            pmtu::MTU_2048 => self.mtu.next = bits::<13>(pmtu::bytes(pmtu::MTU_2048) as u64),
            _ => {}
        }
        self.wide_mtu.next = bit_cast::<32, 13>(self.mtu.val());
        self.place.a.next = self.va.q.val();
        self.place.b.next = bit_cast::<64, 32>(self.step.q.val());
        self.ends.next = self.last.q.val() | self.count.q.val().all();
        self.read.next = self.now.q.val().kind == ack_kind::READ;
        // Credit count 31: end-to-end flow control is not used.
        self.credit.next = self.now.q.val().syndrome;
        if self.credit.val() < syndrome::RNR_NAK {
            self.credit.next = bits::<8>(syndrome::ACK);
        }

        self.m_op.valid.next = self.state.q.val() == State::Send;
        self.m_op.data.next.qpn = self.now.q.val().qpn;
        self.m_op.data.next.epoch = self.now.q.val().epoch;
        self.m_op.data.next.function = self.to.val().function;
        self.m_op.data.next.pd = self.to.val().pd;
        self.m_op.data.next.qp_type = bits::<3>(0);
        self.m_op.data.next.ipv6 = self.to.val().ipv6;
        self.m_op.data.next.vlan = self.to.val().vlan;
        // IBTA table 38: First 0x0d, Middle 0x0e, Last 0x0f, Only 0x10; acknowledge 0x11, of an atomic 0x12.
        self.m_op.data.next.opcode = bits::<8>(opcode::READ_RESPONSE_MIDDLE);
        if self.first.q.val() & self.last.q.val() {
            self.m_op.data.next.opcode = bits::<8>(opcode::READ_RESPONSE_ONLY);
        } else if self.first.q.val() {
            self.m_op.data.next.opcode = bits::<8>(opcode::READ_RESPONSE_FIRST);
        } else if self.last.q.val() {
            self.m_op.data.next.opcode = bits::<8>(opcode::READ_RESPONSE_LAST);
        }
        if self.now.q.val().kind == ack_kind::ACKNOWLEDGE {
            self.m_op.data.next.opcode = bits::<8>(opcode::ACKNOWLEDGE);
        }
        if self.now.q.val().kind == ack_kind::ATOMIC {
            self.m_op.data.next.opcode = bits::<8>(opcode::ATOMIC_ACKNOWLEDGE);
        }
        self.m_op.data.next.dest_qpn = self.to.val().dest_qpn;
        self.m_op.data.next.psn = self.psn.q.val();
        self.m_op.data.next.ack_req = false;
        self.m_op.data.next.solicited = false;
        self.m_op.data.next.pay_off = bits::<32>(0);
        self.m_op.data.next.pay_len = self.pay.q.val();
        self.m_op.data.next.has_reth = false;
        self.m_op.data.next.raddr = bits::<64>(0);
        self.m_op.data.next.rkey = bits::<32>(0);
        self.m_op.data.next.dma_len = bits::<32>(0);
        self.m_op.data.next.has_imm = false;
        self.m_op.data.next.imm = bits::<32>(0);
        self.m_op.data.next.handle = bits::<8>(0);
        self.m_op.data.next.num_sge = bits::<8>(1);
        self.m_op.data.next.inline_data = false;
        self.m_op.data.next.free = false;
        // Comes back with what became of the packet: nobody waits for a duplicate's answer.
        self.m_op.data.next.wqe_index = bit_cast::<16, 1>(self.now.q.val().again.into());
        self.m_op.data.next.notify = self.ends.val();
        // An `Sge`: address, length, key.
        self.m_op.data.next.sge = bit_cast::<128, 64>(self.va.q.val()) | (bit_cast::<128, 13>(self.pay.q.val()) << 64) | (bit_cast::<128, 32>(self.now.q.val().key) << 96);
        self.m_op.data.next.has_aeth = self.first.q.val() | self.last.q.val();
        self.m_op.data.next.aeth = (bit_cast::<32, 8>(self.credit.val()) << 24) | bit_cast::<32, 24>(self.now.q.val().msn);
        self.m_op.data.next.has_atomic = false;
        self.m_op.data.next.has_deth = false;
        self.m_op.data.next.has_feth = false;
        self.m_op.data.next.has_atomic_ack = self.now.q.val().kind == ack_kind::ATOMIC;
        self.m_op.data.next.operand = self.now.q.val().value;
        self.m_op.data.next.compare = bits::<64>(0);
        self.m_op.data.next.reply = true;
        self.m_op.data.next.round = bits::<2>(0);

        match self.state.q.val() {
            State::Idle => {
                self.now.d.next = self.job.val();
                // The sum of the next state.
                self.va.d.next = self.job.val().va;
                self.step.d.next = self.job.val().off;
                self.count.d.next = bits::<4>(0);
                if self.start.val() {
                    self.state.d.next = State::Begin;
                }
            }
            State::Begin => {
                self.va.d.next = self.place.y.val();
                self.left.d.next = self.now.q.val().len - self.now.q.val().off;
                if !self.read.val() {
                    self.left.d.next = bits::<32>(0);
                }
                self.psn.d.next = self.now.q.val().psn + self.now.q.val().psn_off;
                self.first.d.next = !self.now.q.val().psn_off.any();
                self.state.d.next = State::Cut;
            }
            State::Cut => {
                self.last.d.next = false;
                self.pay.d.next = self.mtu.val();
                self.step.d.next = self.wide_mtu.val();
                if self.left.q.val() <= self.wide_mtu.val() {
                    self.last.d.next = true;
                    self.pay.d.next = self.left.q.val().get_bits::<13>(0);
                    self.step.d.next = self.left.q.val();
                }
                self.state.d.next = State::Send;
            }
            State::Send => {
                if self.m_op.ready.val() {
                    self.va.d.next = self.place.y.val();
                    self.left.d.next = self.left.q.val() - bit_cast::<32, 13>(self.pay.q.val());
                    self.now.d.next.off = self.now.q.val().off + bit_cast::<32, 13>(self.pay.q.val());
                    self.now.d.next.psn_off = self.now.q.val().psn_off + 1;
                    self.psn.d.next = self.psn.q.val() + 1;
                    self.count.d.next = self.count.q.val() + 1;
                    self.first.d.next = false;
                    self.state.d.next = State::Cut;
                    if self.ends.val() {
                        self.state.d.next = State::Done;
                    }
                }
            }
            State::Done => {
                if self.take.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
