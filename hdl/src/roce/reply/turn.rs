//! One turn of a queue pair: up to 16 packets of READ responses and atomic acknowledges, or an acknowledge, as orders for the gatherer.
use super::seat::{Addressee, Item, Outcome, Seat};
use crate::bus::MsgSrc;
use crate::codes::ack_kind;
use crate::msg::TxOp;
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

/// What has become of a turn: the last job, with `off` and `psn_off` behind the turn, whether it has been done wholly (`all`), how many places of the ring
/// have been (`gone`), and how many READs and atomics have been answered in this life, modulo 32, duplicates apart.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct After {
    pub job: TurnJob,
    pub all: Bit,
    pub gone: Bits<5>,
    pub answered: Bits<5>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// What is next in the ring comes to hand.
    Next,
    /// Where earlier turns ended.
    Begin,
    Cut,
    /// The next one is an atomic: its outcome comes, and is there.
    Fetch,
    Judge,
    Send,
    /// The outcome waits to be taken.
    Done,
}

/// One packet in two cycles, and two more for each READ. The last packet of a turn has `notify`. A turn goes on with what is next in the ring as long as it has packets left; an atomic whose result is not there yet ends it.
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
    /// Place in the ring of what follows `item`, and what stands there, a cycle later.
    pub next_place: Signal<Out, Bits<5>>,
    pub next_item: Signal<In, Item>,
    /// Outcomes can be read in this cycle: that of `next_item` stands at `outcome` two cycles later.
    pub readable: Signal<In, Bit>,
    pub outcome: Signal<In, Outcome>,
    /// Whose turn it is, while one is under way.
    pub whose: Signal<Out, Bits<24>>,
    /// It is not an acknowledge alone.
    pub answers: Signal<Out, Bit>,
    /// Pulse: a life begins of `life_qpn`, whose seat is `seat`.
    pub life: Signal<In, Bit>,
    pub life_qpn: Signal<In, Bits<24>>,
    /// Pulse: of queue pair `tells_qpn` in life `tells_epoch` so many READs and atomics have been answered, modulo 32, duplicates apart. A life that begins is told at once; what a turn has to tell waits for that.
    pub tells: Signal<Out, Bit>,
    pub tells_qpn: Signal<Out, Bits<24>>,
    pub tells_epoch: Signal<Out, Bits<8>>,
    pub tells_count: Signal<Out, Bits<5>>,
    /// Nothing under way and no outcome left to take.
    pub idle: Signal<Out, Bit>,
    /// The outcome.
    pub done: Signal<Out, Bit>,
    pub after: Signal<Out, After>,
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
    /// The next of the ring, of which there are `rest`, and an atomic's value; it can be answered.
    ahead: DFF<Item>,
    ahead_value: DFF<Bits<64>>,
    next: DFF<Bits<5>>,
    rest: DFF<Bits<6>>,
    more: DFF<Bit>,
    leaves: DFF<Bits<5>>,
    told: DFF<Bits<5>>,
    telling: DFF<Bit>,
    /// `va` and `step`, as of `Begin` or `Send`: the lower half with its carry, and what the upper half is with one.
    onward: DFF<Bits<33>>,
    above: DFF<Bits<32>>,
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
        dff_setup!(self, clock, state, now, va, left, psn, first, last, pay, count, step, ahead, ahead_value, next, rest, more, leaves, told, telling, onward, above);
        self.idle.next = self.state.q.val() == State::Idle;
        self.done.next = self.state.q.val() == State::Done;
        self.after.next.job = self.now.q.val();
        self.after.next.all = self.last.q.val();
        self.after.next.gone = self.leaves.q.val();
        self.after.next.answered = self.told.q.val();
        self.whose.next = self.now.q.val().qpn;
        self.answers.next = self.now.q.val().kind.any();
        self.next_place.next = self.next.q.val();
        self.tells.next = self.telling.q.val() | self.life.val();
        self.tells_qpn.next = self.now.q.val().qpn;
        self.tells_epoch.next = self.now.q.val().epoch;
        self.tells_count.next = self.told.q.val();
        if self.life.val() {
            self.tells_qpn.next = self.life_qpn.val();
            self.tells_epoch.next = self.seat.val().epoch;
            self.tells_count.next = self.seat.val().answered;
        } else {
            self.telling.d.next = false;
        }
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
        if (self.state.q.val() == State::Begin) | (self.state.q.val() == State::Send) {
            self.onward.d.next = bit_cast::<33, 32>(self.va.q.val().get_bits::<32>(0)) + bit_cast::<33, 32>(self.step.q.val());
            self.above.d.next = self.va.q.val().get_bits::<32>(32) + 1;
        }
        self.ends.next = (self.last.q.val() & !self.more.q.val()) | self.count.q.val().all();
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
                self.count.d.next = bits::<4>(0);
                self.next.d.next = self.seat.val().head + 1;
                self.rest.d.next = self.seat.val().count - 1;
                if !self.answer.val() {
                    self.rest.d.next = bits::<6>(0);
                }
                self.leaves.d.next = bits::<5>(0);
                self.told.d.next = self.seat.val().answered;
                if self.start.val() {
                    self.state.d.next = State::Next;
                }
            }
            State::Next => {
                self.va.d.next = self.now.q.val().va;
                self.step.d.next = self.now.q.val().off;
                self.state.d.next = State::Begin;
            }
            State::Begin => {
                self.left.d.next = self.now.q.val().len - self.now.q.val().off;
                if !self.read.val() {
                    self.left.d.next = bits::<32>(0);
                }
                self.psn.d.next = self.now.q.val().psn + self.now.q.val().psn_off;
                self.first.d.next = !self.now.q.val().psn_off.any();
                self.state.d.next = State::Cut;
            }
            State::Cut => {
                self.va.d.next = ((self.va.q.val() >> 32) << 32) | bit_cast::<64, 32>(self.onward.q.val().get_bits::<32>(0));
                if self.onward.q.val().get_bit(32) {
                    self.va.d.next = (bit_cast::<64, 32>(self.above.q.val()) << 32) | bit_cast::<64, 32>(self.onward.q.val().get_bits::<32>(0));
                }
                self.ahead.d.next = self.next_item.val();
                self.more.d.next = self.rest.q.val().any() & !self.next_item.val().atomic;
                self.last.d.next = false;
                self.pay.d.next = self.mtu.val();
                self.step.d.next = self.wide_mtu.val();
                if self.left.q.val() <= self.wide_mtu.val() {
                    self.last.d.next = true;
                    self.pay.d.next = self.left.q.val().get_bits::<13>(0);
                    self.step.d.next = self.left.q.val();
                }
                self.state.d.next = State::Send;
                if self.rest.q.val().any() & self.next_item.val().atomic {
                    self.state.d.next = State::Cut;
                    if self.readable.val() {
                        self.state.d.next = State::Fetch;
                    }
                }
            }
            State::Fetch => {
                self.state.d.next = State::Judge;
            }
            State::Judge => {
                self.ahead_value.d.next = self.outcome.val().value;
                self.more.d.next = !self.outcome.val().running & !self.outcome.val().failed;
                self.state.d.next = State::Send;
            }
            State::Send => {
                if self.m_op.ready.val() {
                    self.left.d.next = self.left.q.val() - bit_cast::<32, 13>(self.pay.q.val());
                    self.now.d.next.off = self.now.q.val().off + bit_cast::<32, 13>(self.pay.q.val());
                    self.now.d.next.psn_off = self.now.q.val().psn_off + 1;
                    self.psn.d.next = self.psn.q.val() + 1;
                    self.count.d.next = self.count.q.val() + 1;
                    self.first.d.next = false;
                    self.state.d.next = State::Cut;
                    if self.last.q.val() & self.now.q.val().kind.any() {
                        self.leaves.d.next = self.leaves.q.val() + 1;
                        if !self.now.q.val().again {
                            self.told.d.next = self.told.q.val() + 1;
                            self.telling.d.next = true;
                        }
                    }
                    if self.ends.val() {
                        self.state.d.next = State::Done;
                    } else if self.last.q.val() {
                        self.now.d.next.kind = bits::<2>(ack_kind::READ);
                        if self.ahead.q.val().atomic {
                            self.now.d.next.kind = bits::<2>(ack_kind::ATOMIC);
                        }
                        self.now.d.next.value = self.ahead_value.q.val();
                        self.now.d.next.psn = self.ahead.q.val().psn;
                        self.now.d.next.msn = self.ahead.q.val().msn;
                        self.now.d.next.key = self.ahead.q.val().key;
                        self.now.d.next.len = self.ahead.q.val().len;
                        self.now.d.next.again = self.ahead.q.val().again;
                        self.now.d.next.off = bits::<32>(0);
                        self.now.d.next.psn_off = bits::<24>(0);
                        self.now.d.next.va = self.ahead.q.val().va;
                        self.next.d.next = self.next.q.val() + 1;
                        self.rest.d.next = self.rest.q.val() - 1;
                        self.state.d.next = State::Next;
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
            self.telling.d.next = false;
        }
    }
}
