//! Reads of work requests for the walk: receives, and for answers the send work requests. Of those the first entry is read right behind the head.
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{WqeData, WqeRead};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// One read at a time, or the two of an answer. Answers come in the order of the reads.
#[derive(LogicBlock, Default)]
pub struct Reads {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: `granule` is read, and `entry` behind it (`both`).
    pub ask: Signal<In, Bit>,
    pub granule: Signal<In, Bits<5>>,
    pub both: Signal<In, Bit>,
    /// Levels until the reads have gone: the first entry's granule, the buffer, whether it is an answer's.
    pub entry: Signal<In, Bits<5>>,
    pub handle: Signal<In, Bits<6>>,
    pub answer: Signal<In, Bit>,
    /// What was read is taken when it is there.
    pub wants: Signal<In, Bit>,
    pub valid: Signal<Out, Bit>,
    pub data: Signal<Out, WqeData>,
    /// Pulse: nobody wants the entry that was asked for; it is dropped when it comes.
    pub lose: Signal<In, Bit>,
    /// A read has not gone yet.
    pub busy: Signal<Out, Bit>,
    pub m_wqe: MsgSrc<WqeRead>,
    pub s_wqe: MsgSink<WqeData>,
    pub m_again: MsgSrc<WqeRead>,
    pub s_again: MsgSink<WqeData>,
    asks: DFF<Bit>,
    second: DFF<Bit>,
    stray: DFF<Bit>,
    at: DFF<Bits<5>>,
    goes: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Reads {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, asks, second, stray, at);
        self.m_wqe.data.next.handle = bit_cast::<8, 6>(self.handle.val());
        self.m_wqe.data.next.granule = self.at.q.val();
        self.m_wqe.valid.next = self.asks.q.val() & !self.answer.val();
        self.m_again.data.next.handle = bit_cast::<8, 6>(self.handle.val());
        self.m_again.data.next.granule = self.at.q.val();
        self.m_again.valid.next = self.asks.q.val() & self.answer.val();
        self.goes.next = (self.m_wqe.ready.val() & !self.answer.val()) | (self.m_again.ready.val() & self.answer.val());
        if self.goes.val() {
            self.asks.d.next = self.second.q.val();
            self.second.d.next = false;
            self.at.d.next = self.entry.val();
        }
        if self.ask.val() {
            self.asks.d.next = true;
            self.second.d.next = self.both.val();
            self.at.d.next = self.granule.val();
        }
        self.busy.next = self.asks.q.val();

        // An answer is taken whether the second read has gone or not: it goes before its order is finished.
        self.s_wqe.ready.next = self.wants.val() & !self.answer.val();
        self.s_again.ready.next = self.stray.q.val() | (self.wants.val() & self.answer.val());
        if self.s_again.valid.val() {
            self.stray.d.next = false;
        }
        if self.lose.val() {
            self.stray.d.next = true;
        }
        self.data.next = self.s_wqe.data.val();
        self.valid.next = self.s_wqe.valid.val();
        if self.answer.val() {
            self.data.next = self.s_again.data.val();
            self.valid.next = self.s_again.valid.val() & !self.stray.q.val();
        }
        if self.reset.val() {
            self.asks.d.next = false;
            self.second.d.next = false;
            self.stray.d.next = false;
        }
    }
}
