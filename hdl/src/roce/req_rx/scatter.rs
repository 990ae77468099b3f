//! Answers to READs and atomics on their way to placement: each gets the buffer of its work request, fetched once more.

use crate::bus::{MsgSink, MsgSrc};
use crate::codes::place_kind;
use crate::msg::{PlaceOp, WqeAgain, WqeHandle, TRANSPORT};
use crate::prim::pack::Cast;
use crate::roce::word::RoceWord;
use crate::stream::{Backlog, Fence, MsgFifo};
use ferric_hdl_derive::kernel;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// An answer packet that req_rx has dealt with. `place`: it belongs to request `index` from byte `msg_off` on, else its frame is only freed.
/// `last`: of its request. `atomic`: 8 bytes in `data`, no frame.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Answer {
    pub qpn: Bits<24>,
    pub index: Bits<16>,
    pub function: Bits<12>,
    pub pd: Bits<24>,
    pub psn: Bits<24>,
    pub place: Bit,
    pub last: Bit,
    pub atomic: Bit,
    pub handle: Bits<12>,
    pub pay_off: Bits<8>,
    pub pay_len: Bits<13>,
    pub msg_off: Bits<32>,
    pub data: Bits<64>,
    /// Buffer of the work request.
    pub buffer: Bits<8>,
    /// Gives `buffer` back, and nothing else.
    pub only_free: Bit,
    /// No answer: queue pair `qpn` has failed, and here its answers end.
    pub mark: Bit,
}

/// Queue pair `qpn` has failed when `taken` answers had been accepted since the beginning.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Mark {
    qpn: Bits<24>,
    taken: Bits<16>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// Asks for the work request, waits for its buffer.
    Ask,
    Await,
    /// Hands the answer on.
    Pass,
    /// Gives the buffer back that another request's answers were placed by.
    Give,
    /// Hands a mark on.
    Mark,
}

/// In order. A buffer is kept while the answers that follow belong to the same request: those of a queue pair come request by request, each
/// ending with its `last`, so the queue pair's number tells. Fetches run ahead of placement by the 64 places of
/// the queue behind.
#[derive(LogicBlock, BlockDefault)]
pub struct Scatter {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_answer: MsgSink<Answer>,
    /// Fewer than 7 answers wait: those under way between a frame's acceptance and here have a place.
    pub room: Signal<Out, Bit>,
    pub m_again: MsgSrc<WqeAgain>,
    pub s_again: MsgSink<WqeHandle>,
    pub m_op: MsgSrc<PlaceOp>,
    /// Pulse: queue pair `mark_qpn` has failed. An order that places nothing goes behind its answers: what becomes of it tells that they are in host memory. At
    /// most one per queue pair waits.
    pub mark: Signal<In, Bit>,
    pub mark_qpn: Signal<In, Bits<24>>,
    /// Pulse in; pulse out when everything that came before it has been taken by placement.
    pub barrier: Signal<In, Bit>,
    pub barrier_done: Signal<Out, Bit>,
    answers: MsgFifo<Answer, 4>,
    orders: MsgFifo<Answer, 6>,
    state: DFF<State>,
    answer: DFF<Answer>,
    /// The buffer at hand and whose queue pair's it is.
    kept: DFF<Bit>,
    kept_qpn: DFF<Bits<24>>,
    buffer: DFF<Bits<8>>,
    /// The next answer is taken, if one waits; the buffer at hand is kept for it; it is of its request.
    take: Signal<Local, Bit>,
    stays: Signal<Local, Bit>,
    same: Signal<Local, Bit>,
    /// The queue pair's number may have changed hands since.
    stale: DFF<Bit>,
    backlog: Backlog<5>,
    waiting: Signal<Local, Bits<5>>,
    /// Answers taken in, in the queue to placement or further, and handed on; a barrier waits until the last reaches what the first was.
    taken: DFF<Bits<16>>,
    entered: DFF<Bits<16>>,
    placed: DFF<Bits<16>>,
    limit: DFF<Bits<16>>,
    draining: DFF<Bit>,
    passed: DFF<Bit>,
    missing: Signal<Local, Bits<16>>,
    marks: MsgFifo<Mark, 10>,
    /// Marks that a barrier has to see handed on, behind the answers.
    marked: Fence<11>,
    /// A mark was handed on in the cycle before.
    told: DFF<Bit>,
    ahead: Signal<Local, Bits<16>>,
    due: Signal<Local, Bit>,
    passes: Signal<Local, Bit>,
    #[init(Constant::new(PlaceOp::default()))]
    blank: Constant<PlaceOp>,
    #[init(Constant::new(RoceWord::default()))]
    no_word: Constant<RoceWord>,
    word: Cast<RoceWord, Bits<TRANSPORT>>,
}

#[kernel]
impl Logic for Scatter {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, answer, kept, kept_qpn, buffer, stale, taken, entered, placed, limit, draining, passed, told);
        clock!(self, clock, answers, orders, backlog, marks, marked);
        self.marks.reset.next = self.reset.val();
        self.marked.reset.next = self.reset.val();
        self.backlog.reset.next = self.reset.val();
        self.answers.reset.next = self.reset.val();
        self.orders.reset.next = self.reset.val();
        MsgSink::<Answer>::link(&mut self.s_answer, &mut self.answers.s);
        self.backlog.came.next = self.s_answer.valid.val();
        self.backlog.went.next = self.answers.m.valid.val() & self.answers.m.ready.val();
        self.waiting.next = self.backlog.count.val();
        // Half of the places, and one more for the cycle, are for what stands between the intake and here.
        self.room.next = !self.waiting.val().get_bit(4) & !self.waiting.val().get_bit(3) & !(self.waiting.val() == 7);
        // A mark enters the queue behind the answers before it: between two answers, or while there is none.
        self.ahead.next = self.marks.m.data.val().taken - self.entered.q.val();
        self.due.next = self.marks.m.valid.val() & (!self.ahead.val().any() | self.ahead.val().get_bit(15));
        self.take.next = (self.state.q.val() == State::Idle) | ((self.state.q.val() == State::Pass) & self.orders.s.ready.val());
        self.answers.m.ready.next = self.take.val() & !self.due.val();
        self.stays.next = self.kept.q.val() & !((self.state.q.val() == State::Pass) & self.answer.q.val().place & self.answer.q.val().last);
        self.same.next = self.stays.val() & !self.stale.q.val() & (self.answers.m.data.val().qpn == self.kept_qpn.q.val());
        self.m_again.valid.next = self.state.q.val() == State::Ask;
        self.m_again.data.next.qpn = self.answer.q.val().qpn;
        self.m_again.data.next.index = self.answer.q.val().index;
        self.s_again.ready.next = self.state.q.val() == State::Await;
        self.orders.s.valid.next = (self.state.q.val() == State::Pass) | (self.state.q.val() == State::Give) | (self.state.q.val() == State::Mark);
        self.orders.s.data.next = self.answer.q.val();
        self.orders.s.data.next.buffer = self.buffer.q.val();
        self.orders.s.data.next.only_free = self.state.q.val() == State::Give;
        self.orders.s.data.next.mark = self.state.q.val() == State::Mark;
        self.marked.start.next = self.passed.q.val();
        self.barrier_done.next = self.marked.passed.val();
        self.missing.next = self.limit.q.val() - self.placed.q.val();
        self.passed.d.next = self.draining.q.val() & (!self.missing.val().any() | self.missing.val().get_bit(15));
        if !self.missing.val().any() | self.missing.val().get_bit(15) {
            self.draining.d.next = false;
        }
        // There is always a place, see `room`.
        if self.s_answer.valid.val() {
            self.taken.d.next = self.taken.q.val() + 1;
        }
        if (self.state.q.val() == State::Pass) & self.orders.s.ready.val() {
            self.entered.d.next = self.entered.q.val() + 1;
        }
        self.passes.next = self.orders.m.valid.val() & self.m_op.ready.val();
        if self.passes.val() & !self.orders.m.data.val().only_free & !self.orders.m.data.val().mark {
            self.placed.d.next = self.placed.q.val() + 1;
        }
        if self.barrier.val() {
            self.draining.d.next = true;
            self.limit.d.next = self.taken.q.val();
            self.stale.d.next = true;
        }

        self.marks.s.valid.next = self.mark.val();
        self.marks.s.data.next.qpn = self.mark_qpn.val();
        self.marks.s.data.next.taken = self.taken.q.val();
        self.marked.came.next = self.mark.val();
        self.marks.m.ready.next = self.due.val() & self.take.val();
        self.told.d.next = self.passes.val() & self.orders.m.data.val().mark;
        self.marked.went.next = self.told.q.val();

        // To placement: mostly wires.
        self.m_op.valid.next = self.orders.m.valid.val();
        self.orders.m.ready.next = self.m_op.ready.val();
        self.m_op.data.next = self.blank.val();
        self.m_op.data.next.qpn = self.orders.m.data.val().qpn;
        self.m_op.data.next.function = self.orders.m.data.val().function;
        self.m_op.data.next.pd = self.orders.m.data.val().pd;
        self.word.x.next = self.no_word.val();
        self.word.x.next.psn = self.orders.m.data.val().psn;
        self.m_op.data.next.transport = self.word.y.val();
        self.m_op.data.next.rq_handle = self.orders.m.data.val().buffer.get_bits::<6>(0);
        self.m_op.data.next.free_rq = self.orders.m.data.val().only_free;
        self.m_op.data.next.again = self.orders.m.data.val().mark;
        self.m_op.data.next.kind = bits::<4>(place_kind::ANSWER);
        if !self.orders.m.data.val().only_free & !self.orders.m.data.val().mark {
            // `atomic` means something of what is placed only; what is dropped always has a frame.
            self.m_op.data.next.has_frame = !(self.orders.m.data.val().atomic & self.orders.m.data.val().place);
            self.m_op.data.next.handle = self.orders.m.data.val().handle;
            if self.orders.m.data.val().place {
                self.m_op.data.next.pay_len = self.orders.m.data.val().pay_len;
                self.m_op.data.next.msg_off = self.orders.m.data.val().msg_off;
                self.m_op.data.next.done = self.orders.m.data.val().last;
                self.m_op.data.next.free_rq = self.orders.m.data.val().last;
                if self.orders.m.data.val().atomic {
                    self.m_op.data.next.kind = bits::<4>(place_kind::VALUE);
                }
            } else {
                self.m_op.data.next.kind = bits::<4>(place_kind::NOTHING);
            }
        }
        // Of an answer that is not placed nobody looks at these: gates for zeros are saved.
        self.m_op.data.next.operand = self.orders.m.data.val().data;
        self.m_op.data.next.pay_off = self.orders.m.data.val().pay_off;

        match self.state.q.val() {
            State::Ask => {
                if self.m_again.ready.val() {
                    self.state.d.next = State::Await;
                }
            }
            State::Await => {
                self.buffer.d.next = self.s_again.data.val().handle;
                if self.s_again.valid.val() {
                    self.kept.d.next = true;
                    self.stale.d.next = false;
                    self.kept_qpn.d.next = self.answer.q.val().qpn;
                    self.state.d.next = State::Pass;
                }
            }
            State::Pass => {
                if self.orders.s.ready.val() {
                    self.kept.d.next = self.stays.val();
                }
            }
            State::Give => {
                if self.orders.s.ready.val() {
                    self.kept.d.next = false;
                    self.state.d.next = State::Ask;
                }
            }
            State::Mark => {
                if self.orders.s.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {}
        }
        if self.take.val() {
            self.state.d.next = State::Idle;
            self.answer.d.next = self.answers.m.data.val();
            if self.due.val() {
                self.answer.d.next.qpn = self.marks.m.data.val().qpn;
                self.state.d.next = State::Mark;
            } else if self.answers.m.valid.val() {
                self.state.d.next = State::Pass;
                if self.answers.m.data.val().place & !self.same.val() {
                    self.state.d.next = State::Ask;
                    if self.stays.val() {
                        self.state.d.next = State::Give;
                    }
                }
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.kept.d.next = false;
            self.stale.d.next = false;
            self.draining.d.next = false;
            self.told.d.next = false;
            self.entered.d.next = bits::<16>(0);
            self.taken.d.next = bits::<16>(0);
            self.placed.d.next = bits::<16>(0);
        }
    }
}
