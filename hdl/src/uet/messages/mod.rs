//! Messages that are being sent: their packets, and their ends. See README.md.

#[cfg(test)]
mod tests;

use super::pdc::places::Places;
use super::pds::types::{message_ask, why, Message, MessageAsk, MessageEnd, MessageTold, OUTS, WHY};
use super::types::{content, Answered, LINE, PAYLOAD};
use crate::bus::{MsgSink, MsgSrc};
use crate::prim::ram::Ram;
use crate::prim::sum::{Diff, Sum};
use ferric_abi::uet::codes::ReturnCode;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("s", &["m", "m_end"]), ("s_answer", &["m", "m_end"])];

/// Bits of the place of a message, which is the low part of its id, and of the life above it.
const PLACE: usize = 10;
const LIFE: usize = 6;
const ONE: u64 = 1;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// After a reset no place is used.
    Wipe,
    Idle,
    Queue,
    // A message is added
    Add,
    Added,
    // A packet is cut off, or looked at
    Cut,
    CutRead,
    CutLess,
    CutPut,
    Look,
    LookRead,
    LookSum,
    // All of a PDC fail
    Scan,
    ScanRead,
    ScanJudge,
    ScanEnd,
    /// One fails that was not added
    Away,
    // A packet is answered
    Answer,
    AnswerRead,
    AnswerCount,
    AnswerEnd,
    Tell,
}

/// Messages of a PDC that have packets to be sent: the first and the last of them.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Queue {
    any: Bit,
    head: Bits<PLACE>,
    tail: Bits<PLACE>,
}

/// What is known of a message.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Slot {
    used: Bit,
    life: Bits<LIFE>,
    line: Bits<LINE>,
    /// Bytes that were sent once; all were.
    sent: Bits<32>,
    whole: Bit,
    /// Packets that are not answered.
    outs: Bits<OUTS>,
    /// The last answer that said more than that it is done.
    code: Bits<6>,
}

/// Up to `2^LM` - 1 messages of `2^LP` PDCs.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE && LM <= PLACE)]
pub struct Messages<const LP: usize, const LM: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets all. No PDC has messages before OPEN.
    pub reset: Signal<In, Bit>,
    /// Bytes of a packet.
    pub mtu: Signal<In, Bits<PAYLOAD>>,
    /// One more can be added.
    pub room: Signal<Out, Bit>,
    /// Nothing is under way, and no answer waits.
    pub quiet: Signal<Out, Bit>,
    pub s: MsgSink<MessageAsk>,
    pub m: MsgSrc<MessageTold>,
    /// Packets that are answered; `code` is the answer's, steady until `quiet`.
    pub s_answer: MsgSink<Answered>,
    pub code: Signal<In, Bits<6>>,
    pub m_end: MsgSrc<MessageEnd>,
    queues: Ram<Queue, LP>,
    slots: Ram<Slot, LM>,
    texts: Ram<Message, LM>,
    nexts: Ram<Bits<PLACE>, LM>,
    free: Places<LM>,
    state: DFF<State>,
    ask: DFF<MessageAsk>,
    told: DFF<MessageTold>,
    queue: DFF<Queue>,
    slot: DFF<Slot>,
    at: DFF<Bits<PLACE>>,
    plain: DFF<Bit>,
    said: DFF<Bits<6>>,
    left: DFF<Bits<32>>,
    less: Diff<32>,
    sum: Sum<32>,
    #[init(Constant::new(((1u64 << LM) - 1).to_bits()))]
    last_place: Constant<Bits<PLACE>>,
    #[init(Constant::new(Slot::default()))]
    unused: Constant<Slot>,
    place: Signal<Local, Bits<LM>>,
    line: Signal<Local, Bits<LP>>,
    asked: Signal<Local, Bits<LM>>,
    text: Signal<Local, Message>,
    /// One that no PDC has.
    away: Signal<Local, Message>,
    last: Signal<Local, Bit>,
    mine: Signal<Local, Bit>,
    over: Signal<Local, Bit>,
    id: Signal<Local, Bits<16>>,
}

#[kernel]
impl<const LP: usize, const LM: usize> Logic for Messages<LP, LM> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, ask, told, queue, slot, at, plain, said, left);
        clock!(self, clock, queues, slots, texts, nexts, free);
        self.free.reset.next = self.reset.val();
        self.room.next = self.free.any.val();
        self.quiet.next = (self.state.q.val() == State::Idle) & !self.s_answer.valid.val();
        self.place.next = bit_cast::<LM, PLACE>(self.at.q.val());
        self.line.next = bit_cast::<LP, LINE>(self.ask.q.val().line);
        self.asked.next = bit_cast::<LM, 16>(self.ask.q.val().id);
        self.queues.read_addr.next = bit_cast::<LP, LINE>(self.s.data.val().line);
        self.queues.write_addr.next = self.line.val();
        self.queues.write_data.next = self.queue.q.val();
        self.queues.write_en.next = false;
        self.slots.read_addr.next = self.place.val();
        self.slots.write_addr.next = self.place.val();
        self.slots.write_data.next = self.slot.q.val();
        self.slots.write_en.next = false;
        self.texts.read_addr.next = self.place.val();
        self.texts.write_addr.next = self.place.val();
        self.texts.write_data.next = self.ask.q.val().message;
        self.texts.write_en.next = false;
        self.text.next = self.texts.read_data.val();
        self.away.next = self.ask.q.val().message;
        self.nexts.read_addr.next = self.place.val();
        self.nexts.write_addr.next = bit_cast::<LM, PLACE>(self.queue.q.val().tail);
        self.nexts.write_data.next = self.at.q.val();
        self.nexts.write_en.next = false;
        self.free.take.next = false;
        self.free.give.next = false;
        self.free.given.next = self.place.val();
        self.less.a.next = self.text.val().length;
        self.less.b.next = self.slot.q.val().sent;
        self.sum.a.next = self.told.q.val().offset;
        self.sum.b.next = bit_cast::<32, PAYLOAD>(self.told.q.val().bytes);
        self.last.next = self.left.q.val() <= bit_cast::<32, PAYLOAD>(self.mtu.val());
        self.id.next = (bit_cast::<16, LIFE>(self.slot.q.val().life) << 10) | bit_cast::<16, PLACE>(self.at.q.val());
        self.mine.next = self.slot.q.val().used & (self.slot.q.val().line == self.ask.q.val().line);
        self.over.next = self.slot.q.val().whole & !self.slot.q.val().outs.any();
        self.s.ready.next = false;
        self.s_answer.ready.next = false;
        self.m.valid.next = false;
        self.m.data.next = self.told.q.val();
        self.m_end.valid.next = false;
        self.m_end.data.next.token = self.text.val().token;
        self.m_end.data.next.why = bits::<WHY>(why::NOTHING);
        self.m_end.data.next.code = bit_cast::<8, 6>(self.slot.q.val().code);
        if self.state.q.val() == State::Away {
            self.m_end.data.next.token = self.away.val().token;
        }
        if (self.state.q.val() == State::ScanEnd) | (self.state.q.val() == State::Away) {
            self.m_end.data.next.why = self.ask.q.val().why;
            self.m_end.data.next.code = self.ask.q.val().code;
        }
        match self.state.q.val() {
            State::Wipe => {
                self.slots.write_data.next = self.unused.val();
                self.slots.write_en.next = true;
                self.at.d.next = self.at.q.val() + 1;
                if self.at.q.val() == self.last_place.val() {
                    self.state.d.next = State::Idle;
                }
            }
            // Answers go first: whoever waits for them orders nothing before.
            State::Idle => {
                self.ask.d.next = self.s.data.val();
                if self.s_answer.valid.val() {
                    self.state.d.next = State::Answer;
                } else if self.s.valid.val() {
                    self.state.d.next = State::Queue;
                }
            }
            // The order is taken a cycle later, so that `ready` follows no input.
            State::Queue => {
                self.s.ready.next = true;
                self.queue.d.next = self.queues.read_data.val();
                self.told.d.next.id = self.ask.q.val().id;
                self.told.d.next.offset = self.ask.q.val().offset;
                self.told.d.next.bytes = self.ask.q.val().bytes;
                self.state.d.next = State::Tell;
                if self.ask.q.val().kind == message_ask::OPEN {
                    self.queue.d.next.any = false;
                } else if self.ask.q.val().kind == message_ask::ADD {
                    self.at.d.next = bit_cast::<PLACE, LM>(self.free.place.val());
                    self.state.d.next = State::Add;
                } else if self.ask.q.val().kind == message_ask::CUT {
                    self.at.d.next = self.queues.read_data.val().head;
                    self.state.d.next = State::Cut;
                } else if self.ask.q.val().kind == message_ask::LOOK {
                    self.at.d.next = bit_cast::<PLACE, LM>(self.asked.val());
                    self.state.d.next = State::Look;
                } else if self.ask.q.val().kind == message_ask::AWAY {
                    self.state.d.next = State::Away;
                } else {
                    self.at.d.next = bits::<PLACE>(ONE);
                    self.state.d.next = State::Scan;
                }
            }
            // The memory sees the place in this state and has it in the next.
            State::Add => {
                self.free.take.next = true;
                self.texts.write_en.next = true;
                self.nexts.write_en.next = self.queue.q.val().any;
                self.queue.d.next.any = true;
                self.queue.d.next.tail = self.at.q.val();
                if !self.queue.q.val().any {
                    self.queue.d.next.head = self.at.q.val();
                }
                self.state.d.next = State::Added;
            }
            State::Added => {
                self.slots.write_en.next = true;
                self.slots.write_data.next.used = true;
                self.slots.write_data.next.life = self.slots.read_data.val().life + 1;
                self.slots.write_data.next.line = self.ask.q.val().line;
                self.slots.write_data.next.sent = bits::<32>(0);
                self.slots.write_data.next.whole = false;
                self.slots.write_data.next.outs = bits::<OUTS>(0);
                self.slots.write_data.next.code = bits::<6>(ReturnCode::Ok as u64);
                self.state.d.next = State::Tell;
            }
            State::Cut => {
                self.state.d.next = State::CutRead;
            }
            State::CutRead => {
                self.slot.d.next = self.slots.read_data.val();
                self.told.d.next.message = self.text.val();
                self.state.d.next = State::CutLess;
            }
            State::CutLess => {
                self.left.d.next = self.less.y.val();
                self.told.d.next.offset = self.slot.q.val().sent;
                self.told.d.next.id = self.id.val();
                self.state.d.next = State::CutPut;
            }
            State::CutPut => {
                self.told.d.next.last = self.last.val();
                self.told.d.next.bytes = self.mtu.val();
                if self.last.val() {
                    self.told.d.next.bytes = self.left.q.val().get_bits::<PAYLOAD>(0);
                    self.queue.d.next.head = self.nexts.read_data.val();
                    self.queue.d.next.any = !(self.queue.q.val().head == self.queue.q.val().tail);
                }
                self.sum.a.next = self.slot.q.val().sent;
                self.sum.b.next = bit_cast::<32, PAYLOAD>(self.mtu.val());
                self.slots.write_data.next.sent = self.sum.y.val();
                self.slots.write_data.next.whole = self.last.val();
                self.slots.write_data.next.outs = self.slot.q.val().outs + 1;
                self.slots.write_en.next = true;
                self.state.d.next = State::Tell;
            }
            State::Look => {
                self.state.d.next = State::LookRead;
            }
            State::LookRead => {
                self.told.d.next.message = self.text.val();
                self.left.d.next = self.sum.y.val();
                self.state.d.next = State::LookSum;
            }
            State::LookSum => {
                self.told.d.next.last = self.left.q.val() == self.text.val().length;
                self.state.d.next = State::Tell;
            }
            State::Scan => {
                self.state.d.next = State::ScanRead;
            }
            State::ScanRead => {
                self.slot.d.next = self.slots.read_data.val();
                self.queue.d.next.any = false;
                self.state.d.next = State::ScanJudge;
            }
            State::ScanJudge => {
                self.at.d.next = self.at.q.val() + 1;
                self.state.d.next = State::Scan;
                if self.mine.val() {
                    self.at.d.next = self.at.q.val();
                    self.state.d.next = State::ScanEnd;
                } else if self.at.q.val() == self.last_place.val() {
                    self.state.d.next = State::Tell;
                }
            }
            State::ScanEnd => {
                self.m_end.valid.next = true;
                if self.m_end.ready.val() {
                    self.slots.write_data.next.used = false;
                    self.slots.write_en.next = true;
                    self.free.give.next = true;
                    self.state.d.next = State::Scan;
                }
            }
            State::Away => {
                self.m_end.valid.next = true;
                if self.m_end.ready.val() {
                    self.state.d.next = State::Tell;
                }
            }
            State::Answer => {
                self.s_answer.ready.next = true;
                self.at.d.next = self.s_answer.data.val().message.get_bits::<PLACE>(0);
                self.plain.d.next = !self.s_answer.data.val().response;
                self.said.d.next = self.code.val();
                self.state.d.next = State::AnswerRead;
                if !(self.s_answer.data.val().content == content::DATA) {
                    self.state.d.next = State::Idle;
                }
            }
            State::AnswerRead => {
                self.state.d.next = State::AnswerCount;
            }
            State::AnswerCount => {
                self.slot.d.next = self.slots.read_data.val();
                self.slot.d.next.outs = self.slots.read_data.val().outs - 1;
                if !self.plain.q.val() & !(self.said.q.val() == ReturnCode::Ok as u64) {
                    self.slot.d.next.code = self.said.q.val();
                }
                self.state.d.next = State::AnswerEnd;
            }
            State::AnswerEnd => {
                self.m_end.valid.next = self.over.val();
                if self.m_end.ready.val() | !self.over.val() {
                    self.slots.write_data.next.used = !self.over.val();
                    self.slots.write_en.next = true;
                    self.free.give.next = self.over.val();
                    self.state.d.next = State::Idle;
                }
            }
            State::Tell => {
                self.queues.write_en.next = true;
                self.m.valid.next = true;
                self.m.data.next.more = self.queue.q.val().any;
                if self.m.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.at.d.next = bits::<PLACE>(0);
            self.state.d.next = State::Wipe;
        }
    }
}
