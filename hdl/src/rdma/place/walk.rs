//! Front half of placement: cuts payload into segments and asks for their translation. See README.md.
use super::first::First;
use super::page::Page;
use super::reads::Reads;
use crate::bus::{MsgSink, MsgSrc};
use crate::codes::{access, place_kind, place_status};
use crate::msg::{MrReq, PlaceOp, WqeData, WqeFree, WqeRead};
use crate::prim::sum::Diff;
use ferric_abi::host::{RecvHead, WqeHead};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Bytes that a work request buffer is read in.
const GRANULE: usize = 16;
/// So many granules more than a receive's head are in front of a send's entries, and of an atomic's.
pub const SEND_SKIPS: u64 = ((WqeHead::BYTES - RecvHead::BYTES) / GRANULE) as u64;
pub const ATOMIC_SKIPS: u64 = SEND_SKIPS + 1;
/// Entries that a buffer of 512 bytes holds behind a receive's head.
const MOST_ENTRIES: u64 = ((512 - RecvHead::BYTES) / GRANULE) as u64;

/// One piece of a packet's payload that crosses neither a page nor a scatter entry.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Segment {
    /// First byte inside the frame, and length.
    pub off: Bits<14>,
    pub len: Bits<13>,
    /// A translation was asked for.
    pub lookup: Bit,
    /// No further segment of this order.
    pub last: Bit,
    /// A key is to be invalidated, if all before this is well.
    pub inv: Bit,
    /// The atomic's key was asked for in this phase (`rdma/mr/drain.rs`).
    pub phase: Bit,
    /// `DoneOp::status` of an order that cannot be placed.
    pub status: Bits<8>,
}

/// What the machine does.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum State {
    Idle,
    Page,
    Start,
    Head,
    /// Answers only: whether the packet fits the message's length.
    Judge,
    Entry,
    Check,
    Skip,
    Room,
    Cut,
    Send,
    Fetch,
    Finish,
    /// No further order is begun: its keys are to be checked behind an invalidation.
    Hold,
}

/// Walks one order at a time. Every order yields at least one segment, the last one marked.
#[derive(LogicBlock, Default)]
pub struct Walk {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_op: MsgSink<PlaceOp>,
    /// `s_op` but for its receive: `head` if `queued`, else `direct`.
    pub head: Signal<In, PlaceOp>,
    pub direct: Signal<In, PlaceOp>,
    pub queued: Signal<In, Bit>,
    /// With `s_op`: a SEND whose payload is one segment, which goes to `at` with key `at_key`.
    pub straight: Signal<In, Bit>,
    pub at: Signal<In, Bits<64>>,
    pub at_key: Signal<In, Bits<32>>,
    /// Answers to our READs and atomics.
    pub s_answer: MsgSink<PlaceOp>,
    /// With `s_answer`: its payload is one segment, as with `s_op`.
    pub answer_straight: Signal<In, Bit>,
    pub answer_at: Signal<In, Bits<64>>,
    pub answer_key: Signal<In, Bits<32>>,
    /// The same order for the back half, before its segments.
    pub m_op: MsgSrc<PlaceOp>,
    pub m_seg: MsgSrc<Segment>,
    pub m_mr: MsgSrc<MrReq>,
    pub m_wqe: MsgSrc<WqeRead>,
    pub s_wqe: MsgSink<WqeData>,
    pub m_free: MsgSrc<WqeFree>,
    /// Send work requests: those of answers.
    pub m_again: MsgSrc<WqeRead>,
    pub s_again: MsgSink<WqeData>,
    pub m_again_free: MsgSrc<WqeFree>,
    /// Of the key unit: the present phase. Out, pulse: the key of an atomic is about to be asked for, in this phase.
    pub phase: Signal<In, Bit>,
    pub begun: Signal<Out, Bit>,
    /// Pulse: the invalidation of the last order is over, or will not be.
    pub resume: Signal<In, Bit>,
    state: DFF<State>,
    /// The state is `Idle`: what takes an order goes far in its cycle.
    idle: DFF<Bit>,
    op: DFF<PlaceOp>,
    op_busy: DFF<Bit>,
    seg: DFF<Segment>,
    seg_busy: DFF<Bit>,
    mr: DFF<MrReq>,
    mr_busy: DFF<Bit>,
    reads: Reads,
    /// The packet begins with the list's first byte: nothing is skipped.
    whole: DFF<Bit>,
    free_busy: DFF<Bit>,
    status: DFF<Bits<8>>,
    freed: DFF<Bits<6>>,
    // Where the walk stands in the scatter list; kept between packets of one message.
    known: DFF<Bit>,
    known_answer: DFF<Bit>,
    total: DFF<Bits<32>>,
    reach: DFF<Bits<32>>,
    resumed: DFF<Bit>,
    /// An answer is taken next.
    turn: DFF<Bit>,
    /// Granules in front of the entries, less one.
    skipped: DFF<Bits<2>>,
    known_qpn: DFF<Bits<24>>,
    known_handle: DFF<Bits<6>>,
    known_off: DFF<Bits<32>>,
    entries: DFF<Bits<8>>,
    entry: DFF<Bits<8>>,
    key: DFF<Bits<32>>,
    va: DFF<Bits<64>>,
    left: DFF<Bits<32>>,
    skip: DFF<Bits<32>>,
    // The packet
    off: DFF<Bits<14>>,
    rem: DFF<Bits<13>>,
    room: DFF<Bits<13>>,
    len: DFF<Bits<13>>,
    send: Signal<Local, Bit>,
    invalidates: Signal<Local, Bit>,
    kind: Signal<Local, Bits<4>>,
    answer: Signal<Local, Bit>,
    more: Signal<Local, Bits<128>>,
    length: Signal<Local, Bits<32>>,
    deep: Signal<Local, Bits<8>>,
    wrong: Signal<Local, Bit>,
    missing: Signal<Local, Bit>,
    page: Page,
    data: Signal<Local, Bits<128>>,
    entry_len: Signal<Local, Bits<32>>,
    next_entry: Signal<Local, Bits<8>>,
    first: First,
    len32: Signal<Local, Bits<32>>,
    /// Of the present entry behind what is sent.
    remains: Diff<32>,
    go: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    /// An order is there for the port whose turn it is.
    offered: Signal<Local, Bit>,
    last: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Walk {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, idle, op, op_busy, seg, seg_busy, mr, mr_busy, free_busy, status, freed, whole);
        clock!(self, clock, reads, page);
        dff_setup!(self, clock, known_answer, total, reach, resumed, turn, skipped, off, rem, room, len);
        dff_setup!(self, clock, known, known_qpn, known_handle, known_off, entries, entry, key, va, left, skip);
        self.m_op.data.next = self.op.q.val();
        self.m_op.valid.next = self.op_busy.q.val();
        if self.m_op.ready.val() {
            self.op_busy.d.next = false;
        }
        self.m_seg.data.next = self.seg.q.val();
        self.m_seg.valid.next = self.seg_busy.q.val();
        if self.m_seg.ready.val() {
            self.seg_busy.d.next = false;
        }
        self.m_mr.data.next = self.mr.q.val();
        self.m_mr.valid.next = self.mr_busy.q.val();
        if self.m_mr.ready.val() {
            self.mr_busy.d.next = false;
        }
        self.kind.next = self.op.q.val().kind;
        self.answer.next = self.kind.val().get_bit(place_kind::ANSWER_BIT);
        self.reads.reset.next = self.reset.val();
        self.reads.ask.next = false;
        self.reads.granule.next = bits::<5>(0);
        self.reads.both.next = self.answer.val();
        self.reads.entry.next = bit_cast::<5, 2>(self.skipped.q.val()) + 1;
        self.reads.handle.next = self.op.q.val().rq_handle;
        self.reads.answer.next = self.answer.val();
        self.reads.wants.next = (self.state.q.val() == State::Head) | (self.state.q.val() == State::Entry);
        self.reads.lose.next = false;
        MsgSrc::<WqeRead>::link(&mut self.m_wqe, &mut self.reads.m_wqe);
        MsgSink::<WqeData>::link(&mut self.s_wqe, &mut self.reads.s_wqe);
        MsgSrc::<WqeRead>::link(&mut self.m_again, &mut self.reads.m_again);
        MsgSink::<WqeData>::link(&mut self.s_again, &mut self.reads.s_again);
        self.m_free.data.next.handle = bit_cast::<8, 6>(self.freed.q.val());
        self.m_free.valid.next = self.free_busy.q.val() & !self.answer.val();
        self.m_again_free.data.next.handle = bit_cast::<8, 6>(self.freed.q.val());
        self.m_again_free.valid.next = self.free_busy.q.val() & self.answer.val();
        if (self.m_free.ready.val() & !self.answer.val()) | (self.m_again_free.ready.val() & self.answer.val()) {
            self.free_busy.d.next = false;
        }
        self.go.next = !self.seg_busy.q.val() & !self.mr_busy.q.val() & !self.free_busy.q.val();
        self.take.next = self.idle.q.val() & !self.op_busy.q.val() & self.go.val();
        // An answer has its turn after an order of the responder, or when there is none.
        self.s_op.ready.next = self.take.val() & !self.turn.q.val();
        self.s_answer.ready.next = self.take.val() & self.turn.q.val();
        if self.take.val() & (self.turn.q.val() | self.s_op.valid.val() | self.s_answer.valid.val()) {
            self.turn.d.next = self.s_answer.valid.val() & !self.turn.q.val();
        }
        self.offered.next = (self.s_op.valid.val() & !self.turn.q.val()) | (self.s_answer.valid.val() & self.turn.q.val());
        self.send.next = (self.op.q.val().kind == place_kind::SEND) | self.answer.val();
        self.invalidates.next = self.op.q.val().inv & (self.op.q.val().kind == place_kind::SEND);
        self.page.va.next = self.va.q.val();
        self.page.len.next = self.len.q.val();
        self.page.carry.next = false;
        self.data.next = self.reads.data.val().data;
        // In the second granule of a send's head, which comes with the first.
        self.more.next = self.reads.data.val().more;
        self.length.next = self.more.val().get_bits::<32>(96);
        self.deep.next = self.entry.q.val() + bit_cast::<8, 2>(self.skipped.q.val());
        // The last packet ends the message, the others do not reach its end.
        self.missing.next = self.reach.q.val() < self.total.q.val();
        self.wrong.next = (self.op.q.val().done == self.missing.val()) | (self.op.q.val().done & !(self.reach.q.val() == self.total.q.val()));
        self.entry_len.next = self.data.val().get_bits::<32>(64);
        self.next_entry.next = self.entry.q.val() + 1;
        self.len32.next = bit_cast::<32, 13>(self.len.q.val());
        self.page.skip.next = self.skip.q.val();
        self.page.left.next = self.left.q.val();
        self.remains.a.next = self.left.q.val();
        self.remains.b.next = self.len32.val();
        self.last.next = self.len.q.val() == self.rem.q.val();
        self.first.op.next = self.s_op.data.val();
        self.first.head.next = self.head.val();
        self.first.direct.next = self.direct.val();
        self.first.queued.next = self.queued.val();
        self.first.placed.next = self.straight.val();
        self.first.at.next = self.at.val();
        self.first.at_key.next = self.at_key.val();
        self.first.phase.next = self.phase.val();
        self.first.turn.next = self.turn.q.val();
        self.first.answer.next = self.s_answer.data.val();
        self.first.answer_straight.next = self.answer_straight.val();
        self.first.answer_at.next = self.answer_at.val();
        self.first.answer_key.next = self.answer_key.val();
        self.begun.next = self.take.val() & !self.turn.q.val() & self.s_op.valid.val() & self.first.atomic.val();
        if self.take.val() {
            self.seg.d.next = self.first.seg.val();
            self.mr.d.next = self.first.mr.val();
        } else if self.go.val() {
            self.seg.d.next.off = self.off.q.val();
            self.seg.d.next.len = self.len.q.val();
            self.seg.d.next.lookup = true;
            // The invalidation comes behind the payload, in a segment of its own.
            self.seg.d.next.last = self.last.val() & !self.invalidates.val();
            self.seg.d.next.status = bits::<8>(0);
            self.seg.d.next.inv = false;
            if self.state.q.val() == State::Finish {
                self.seg.d.next.len = bits::<13>(0);
                self.seg.d.next.lookup = false;
                self.seg.d.next.last = true;
                self.seg.d.next.inv = self.invalidates.val();
                self.seg.d.next.status = self.status.q.val();
            }
            self.mr.d.next.key = self.key.q.val();
            self.mr.d.next.pd = self.op.q.val().pd;
            self.mr.d.next.function = self.op.q.val().function;
            self.mr.d.next.qpn = self.op.q.val().qpn;
            self.mr.d.next.va = self.va.q.val();
            self.mr.d.next.chk_len = self.len32.val();
            self.mr.d.next.whole = false;
            self.mr.d.next.access = bits::<6>(access::LOCAL_WRITE);
            if !self.send.val() {
                self.mr.d.next.access = bits::<6>(access::REMOTE_WRITE);
            }
        }

        match self.state.q.val() {
            State::Idle => {
                if self.take.val() {
                    self.op.d.next = self.first.order.val();
                    // Behind the first segment, should the order be a WRITE of several.
                    self.off.d.next = bit_cast::<14, 8>(self.s_op.data.val().pay_off) + bit_cast::<14, 13>(self.first.room.val());
                    self.rem.d.next = self.s_op.data.val().pay_len - self.first.room.val();
                    self.freed.d.next = self.first.order.val().rq_handle;
                }
                if self.take.val() & self.offered.val() {
                    self.op_busy.d.next = true;
                    self.state.d.next = State::Start;
                    if self.first.straight.val() {
                        self.seg_busy.d.next = true;
                        self.mr_busy.d.next = true;
                        self.known.d.next = false;
                        self.key.d.next = self.s_op.data.val().key;
                        self.state.d.next = State::Page;
                        if self.first.fits.val() {
                            self.free_busy.d.next = self.first.order.val().free_rq;
                            self.state.d.next = State::Idle;
                        }
                    }
                }
            }
            State::Page => {
                // The rest of a WRITE begins with the next page.
                self.va.d.next = (self.op.q.val().va >> 12) << 12;
                self.page.carry.next = true;
                self.state.d.next = State::Room;
            }
            State::Start => {
                self.off.d.next = bit_cast::<14, 8>(self.op.q.val().pay_off);
                self.rem.d.next = self.op.q.val().pay_len;
                self.skip.d.next = self.op.q.val().msg_off;
                self.status.d.next = bits::<8>(0);
                self.state.d.next = State::Finish;
                self.reach.d.next = self.op.q.val().msg_off + bit_cast::<32, 13>(self.op.q.val().pay_len);
                self.resumed.d.next = false;
                self.skipped.d.next = bits::<2>(0);
                self.whole.d.next = !self.op.q.val().msg_off.any();
                if self.answer.val() {
                    // The head has two granules; an atomic's operands follow (kind VALUE).
                    self.skipped.d.next = bits::<2>(SEND_SKIPS);
                    if self.kind.val().get_bit(0) {
                        self.skipped.d.next = bits::<2>(ATOMIC_SKIPS);
                    }
                }
                if (self.op.q.val().pay_len != 0) | (self.answer.val() & self.op.q.val().done) {
                    if self.send.val() {
                        self.state.d.next = State::Head;
                        self.reads.ask.next = true;
                        if self.known.q.val()
                            & (self.known_answer.q.val() == self.answer.val())
                            & (self.known_qpn.q.val() == self.op.q.val().qpn)
                            & (self.known_handle.q.val() == self.op.q.val().rq_handle)
                            & (self.known_off.q.val() == self.op.q.val().msg_off)
                            & (self.op.q.val().msg_off != 0)
                        {
                            self.skip.d.next = bits::<32>(0);
                            self.reads.ask.next = false;
                            self.resumed.d.next = true;
                            self.state.d.next = State::Check;
                            if self.answer.val() {
                                self.state.d.next = State::Judge;
                            }
                        }
                    }
                }
            }
            State::Head => {
                self.known.d.next = false;
                self.entry.d.next = bits::<8>(0);
                self.entries.d.next = self.data.val().get_bits::<8>(0);
                self.total.d.next = self.length.val();
                if self.answer.val() {
                    self.entries.d.next = self.data.val().get_bits::<8>(16);
                }
                if self.reads.valid.val() {
                    self.state.d.next = State::Fetch;
                    if self.answer.val() {
                        self.state.d.next = State::Judge;
                    }
                    if self.reads.data.val().err {
                        self.reads.lose.next = self.answer.val();
                        self.status.d.next = bits::<8>(place_status::BAD_RECEIVE);
                        self.state.d.next = State::Finish;
                    }
                }
            }
            State::Judge => {
                self.state.d.next = State::Fetch;
                self.reads.lose.next = !self.resumed.q.val();
                if !self.resumed.q.val() & self.entries.q.val().any() & self.op.q.val().pay_len.any() & !self.wrong.val() {
                    self.reads.lose.next = false;
                    self.state.d.next = State::Entry;
                }
                if self.resumed.q.val() {
                    self.state.d.next = State::Check;
                }
                if !self.op.q.val().pay_len.any() {
                    self.state.d.next = State::Finish;
                }
                if self.wrong.val() {
                    self.status.d.next = bits::<8>(place_status::BAD_ANSWER);
                    self.state.d.next = State::Finish;
                }
            }
            State::Entry => {
                self.va.d.next = self.data.val().get_bits::<64>(0);
                self.left.d.next = self.entry_len.val();
                self.key.d.next = self.data.val().get_bits::<32>(96);
                if self.reads.valid.val() {
                    self.state.d.next = State::Check;
                    if self.reads.data.val().err {
                        self.status.d.next = bits::<8>(place_status::BAD_RECEIVE);
                        self.state.d.next = State::Finish;
                    }
                }
            }
            State::Check => {
                // Is there a byte for this packet in the present entry?
                self.state.d.next = State::Skip;
                if self.whole.q.val() {
                    self.state.d.next = State::Room;
                }
                if self.left.q.val() <= self.skip.q.val() {
                    self.skip.d.next = self.skip.q.val() - self.left.q.val();
                    self.entry.d.next = self.next_entry.val();
                    self.state.d.next = State::Fetch;
                }
            }
            State::Skip => {
                self.va.d.next = self.page.past.val();
                self.left.d.next = self.page.beyond.val();
                self.skip.d.next = bits::<32>(0);
                self.state.d.next = State::Room;
            }
            State::Fetch => {
                self.reads.granule.next = self.next_entry.val().get_bits::<5>(0) + bit_cast::<5, 2>(self.skipped.q.val());
                self.reads.both.next = false;
                if self.entry.q.val() >= self.entries.q.val() {
                    self.status.d.next = bits::<8>(place_status::TOO_SMALL);
                    self.state.d.next = State::Finish;
                } else if self.deep.val() >= MOST_ENTRIES {
                    // 512 bytes hold the head and 31 entries, fewer of a send.
                    self.status.d.next = bits::<8>(place_status::BAD_RECEIVE);
                    self.state.d.next = State::Finish;
                } else {
                    self.reads.ask.next = true;
                    self.state.d.next = State::Entry;
                }
            }
            State::Room => {
                self.room.d.next = self.page.room.val();
                self.len.d.next = self.rem.q.val();
                if self.send.val() & (self.left.q.val() < bit_cast::<32, 13>(self.rem.q.val())) {
                    self.len.d.next = self.left.q.val().get_bits::<13>(0);
                }
                self.state.d.next = State::Cut;
            }
            State::Cut => {
                if self.len.q.val() > self.room.q.val() {
                    self.len.d.next = self.room.q.val();
                }
                self.state.d.next = State::Send;
            }
            State::Send => {
                if self.go.val() {
                    self.seg_busy.d.next = true;
                    self.mr_busy.d.next = true;
                    self.rem.d.next = self.rem.q.val() - self.len.q.val();
                    self.off.d.next = self.off.q.val() + bit_cast::<14, 13>(self.len.q.val());
                    self.va.d.next = self.page.behind.val();
                    self.page.carry.next = self.page.full.val();
                    self.left.d.next = self.remains.y.val();
                    self.known_off.d.next = self.op.q.val().msg_off + bit_cast::<32, 13>(self.op.q.val().pay_len);
                    self.known_qpn.d.next = self.op.q.val().qpn;
                    self.known_answer.d.next = self.answer.val();
                    self.known_handle.d.next = self.op.q.val().rq_handle;
                    if self.last.val() {
                        self.known.d.next = self.send.val() & !self.op.q.val().done;
                        self.free_busy.d.next = self.op.q.val().free_rq & !self.invalidates.val();
                        self.freed.d.next = self.op.q.val().rq_handle;
                        self.state.d.next = State::Idle;
                        if self.invalidates.val() {
                            self.state.d.next = State::Finish;
                        }
                    } else if self.send.val() {
                        self.state.d.next = State::Check;
                    } else {
                        self.state.d.next = State::Room;
                    }
                }
            }
            State::Finish => {
                if self.go.val() & !self.reads.busy.val() {
                    self.seg_busy.d.next = true;
                    self.free_busy.d.next = self.op.q.val().free_rq;
                    self.freed.d.next = self.op.q.val().rq_handle;
                    if self.status.q.val() != 0 {
                        self.known.d.next = false;
                    }
                    self.state.d.next = State::Idle;
                    if self.invalidates.val() {
                        self.state.d.next = State::Hold;
                    }
                }
            }
            State::Hold => {
                if self.resume.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        // No state so near behind one that carries says where the walk stands.
        if self.page.turns.val() {
            self.va.d.next = self.page.next_page.val();
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.op_busy.d.next = false;
            self.seg_busy.d.next = false;
            self.mr_busy.d.next = false;
            self.free_busy.d.next = false;
            self.known.d.next = false;
            self.turn.d.next = false;
        }
        self.idle.d.next = self.state.d.val() == State::Idle;
    }
}
