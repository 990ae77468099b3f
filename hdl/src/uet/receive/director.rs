//! One event after another: a request or a control packet, an answer of semantics, a timer. Each kind has a machine; here they take turns, and share whom they ask.
use super::answer::Answer;
use super::arrive::Arrive;
use super::expire::Expire;
use super::finish::Finish;
use super::lines::Lines;
use super::types::{LineAsk, LineTold, Reply};
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{TimerCmd, TimerEvent};
use crate::uet::call::Call;
use crate::uet::head::types::UetHead;
use crate::uet::pdc::types::{PdcAsk, PdcTold};
use crate::uet::pds::types::{Delivered, Finished, Gone, Outgoing};
use crate::uet::types::{AckAsk, AckTold, KeptAsk, KeptTold, RxAsk, RxTold, LINE};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Whose event it is.
mod what {
    pub const HEAD: u64 = 0;
    pub const DONE: u64 = 1;
    pub const TIMER: u64 = 2;
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Choose,
    Work,
}

/// `2^LP` targets. Ports as of [`super::Receive`], and those of the blocks in it.
#[derive(LogicBlock, BlockDefault)]
#[demand(LP <= LINE)]
pub struct Director<const LP: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub now: Signal<In, Bits<32>>,
    pub reap: Signal<In, Bits<32>>,
    pub safety: Signal<In, Bits<32>>,
    pub ack_wait: Signal<In, Bits<32>>,
    pub clear_wait: Signal<In, Bits<32>>,
    pub mpr: Signal<In, Bits<8>>,
    pub s_head: MsgSink<UetHead>,
    pub m_deliver: MsgSrc<Delivered>,
    pub s_done: MsgSink<Finished>,
    pub m_out: MsgSrc<Outgoing>,
    pub m_pdc: MsgSrc<PdcAsk>,
    pub s_pdc: MsgSink<PdcTold>,
    pub m_window: MsgSrc<RxAsk>,
    pub s_window: MsgSink<RxTold>,
    pub m_ack: MsgSrc<AckAsk>,
    pub s_ack: MsgSink<AckTold>,
    pub m_kept: MsgSrc<KeptAsk>,
    pub s_kept: MsgSink<KeptTold>,
    pub full: Signal<In, Bit>,
    pub m_timer: MsgSrc<TimerCmd>,
    pub s_timer: MsgSink<TimerEvent>,
    pub s_ending: MsgSink<Bits<LINE>>,
    pub gone: Signal<In, Gone>,
    arrive: Arrive<LP>,
    finish: Finish<LP>,
    expire: Expire,
    answer: Answer<LP>,
    lines: Lines<LP>,
    line: Call<LineAsk, LineTold, 3>,
    pdc: Call<PdcAsk, PdcTold, 3>,
    window: Call<RxAsk, RxTold, 3>,
    ack: Call<AckAsk, AckTold, 4>,
    kept: Call<KeptAsk, KeptTold, 3>,
    reply: Call<Reply, Bit, 3>,
    state: DFF<State>,
    what: DFF<Bits<2>>,
    /// Nobody is being asked; none of those that an answer asks.
    calm: Signal<Local, Bit>,
    inner: Signal<Local, Bit>,
    over: Signal<Local, Bit>,
    /// Neither the manager nor a line is asked: the next event begins with these, and waits for the others of the one before then.
    ready: Signal<Local, Bit>,
    /// A timer is over, or a PDC may have to end.
    fires: Signal<Local, Bit>,
}

#[kernel]
impl<const LP: usize> Logic for Director<LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, what);
        clock!(self, clock, arrive, finish, expire, answer, lines, line, pdc, window, ack, kept, reply);
        self.inner.next = !self.window.busy.val() & !self.ack.busy.val();
        self.calm.next = self.inner.val() & !self.line.busy.val() & !self.pdc.busy.val() & !self.kept.busy.val() & !self.reply.busy.val();
        self.ready.next = !self.line.busy.val() & !self.pdc.busy.val();
        self.over.next = self.arrive.over.val() | self.finish.over.val() | self.expire.over.val();
        self.arrive.reset.next = self.reset.val();
        self.finish.reset.next = self.reset.val();
        self.expire.reset.next = self.reset.val();
        self.answer.reset.next = self.reset.val();
        self.lines.reset.next = self.reset.val();
        self.line.reset.next = self.reset.val();
        self.pdc.reset.next = self.reset.val();
        self.window.reset.next = self.reset.val();
        self.ack.reset.next = self.reset.val();
        self.kept.reset.next = self.reset.val();
        self.reply.reset.next = self.reset.val();
        self.arrive.now.next = self.now.val();
        self.finish.now.next = self.now.val();
        self.expire.now.next = self.now.val();
        self.answer.now.next = self.now.val();
        self.lines.now.next = self.now.val();
        self.lines.reap.next = self.reap.val();
        self.lines.safety.next = self.safety.val();
        self.lines.ack_wait.next = self.ack_wait.val();
        self.lines.clear_wait.next = self.clear_wait.val();
        self.arrive.full.next = self.full.val();
        self.answer.mpr.next = self.mpr.val();
        MsgSink::<UetHead>::link(&mut self.s_head, &mut self.arrive.s_head);
        MsgSrc::<Delivered>::link(&mut self.m_deliver, &mut self.arrive.m_deliver);
        MsgSink::<Finished>::link(&mut self.s_done, &mut self.finish.s_done);
        MsgSink::<TimerEvent>::link(&mut self.s_timer, &mut self.expire.s_timer);
        MsgSink::<Bits<LINE>>::link(&mut self.s_ending, &mut self.expire.s_ending);
        self.expire.gone.next = self.gone.val();
        self.fires.next = self.s_timer.valid.val() | self.s_ending.valid.val();
        MsgSrc::<TimerCmd>::link(&mut self.m_timer, &mut self.lines.m_timer);
        MsgSrc::<Outgoing>::link(&mut self.m_out, &mut self.answer.m_out);
        // Who is asked, by whom.
        MsgSrc::<LineAsk>::join(&mut self.line.m, &mut self.lines.s);
        MsgSrc::<LineTold>::join(&mut self.lines.m, &mut self.line.s);
        MsgSrc::<Reply>::join(&mut self.reply.m, &mut self.answer.s);
        MsgSrc::<Bit>::join(&mut self.answer.m, &mut self.reply.s);
        MsgSrc::<PdcAsk>::link(&mut self.m_pdc, &mut self.pdc.m);
        MsgSink::<PdcTold>::link(&mut self.s_pdc, &mut self.pdc.s);
        MsgSrc::<RxAsk>::link(&mut self.m_window, &mut self.window.m);
        MsgSink::<RxTold>::link(&mut self.s_window, &mut self.window.s);
        MsgSrc::<AckAsk>::link(&mut self.m_ack, &mut self.ack.m);
        MsgSink::<AckTold>::link(&mut self.s_ack, &mut self.ack.s);
        MsgSrc::<KeptAsk>::link(&mut self.m_kept, &mut self.kept.m);
        MsgSink::<KeptTold>::link(&mut self.s_kept, &mut self.kept.s);
        self.line.go[0].next = self.arrive.line_go.val();
        self.line.ask[0].next = self.arrive.line_ask.val();
        self.line.go[1].next = self.finish.line_go.val();
        self.line.ask[1].next = self.finish.line_ask.val();
        self.line.go[2].next = self.expire.line_go.val();
        self.line.ask[2].next = self.expire.line_ask.val();
        self.pdc.go[0].next = self.arrive.pdc_go.val();
        self.pdc.ask[0].next = self.arrive.pdc_ask.val();
        self.pdc.go[1].next = self.finish.pdc_go.val();
        self.pdc.ask[1].next = self.finish.pdc_ask.val();
        self.pdc.go[2].next = self.expire.pdc_go.val();
        self.pdc.ask[2].next = self.expire.pdc_ask.val();
        self.window.go[0].next = self.arrive.window_go.val();
        self.window.ask[0].next = self.arrive.window_ask.val();
        self.window.go[1].next = self.finish.window_go.val();
        self.window.ask[1].next = self.finish.window_ask.val();
        self.window.go[2].next = self.answer.window_go.val();
        self.window.ask[2].next = self.answer.window_ask.val();
        self.ack.go[0].next = self.arrive.ack_go.val();
        self.ack.ask[0].next = self.arrive.ack_ask.val();
        self.ack.go[1].next = self.finish.ack_go.val();
        self.ack.ask[1].next = self.finish.ack_ask.val();
        self.ack.go[2].next = self.expire.ack_go.val();
        self.ack.ask[2].next = self.expire.ack_ask.val();
        self.ack.go[3].next = self.answer.ack_go.val();
        self.ack.ask[3].next = self.answer.ack_ask.val();
        self.kept.go[0].next = self.arrive.kept_go.val();
        self.kept.ask[0].next = self.arrive.kept_ask.val();
        self.kept.go[1].next = self.finish.kept_go.val();
        self.kept.ask[1].next = self.finish.kept_ask.val();
        self.kept.go[2].next = self.expire.kept_go.val();
        self.kept.ask[2].next = self.expire.kept_ask.val();
        self.reply.go[0].next = self.arrive.reply_go.val();
        self.reply.ask[0].next = self.arrive.reply.val();
        self.reply.go[1].next = self.finish.reply_go.val();
        self.reply.ask[1].next = self.finish.reply.val();
        self.reply.go[2].next = self.expire.reply_go.val();
        self.reply.ask[2].next = self.expire.reply.val();
        // A line that goes back is not answered.
        self.line.mute.next = self.over.val();
        self.pdc.mute.next = false;
        self.window.mute.next = false;
        self.ack.mute.next = false;
        self.kept.mute.next = false;
        self.reply.mute.next = false;
        self.arrive.line.next = self.line.told.val();
        self.finish.line.next = self.line.told.val();
        self.expire.line.next = self.line.told.val();
        self.arrive.pdc.next = self.pdc.told.val();
        self.finish.pdc.next = self.pdc.told.val();
        self.expire.pdc.next = self.pdc.told.val();
        self.arrive.window.next = self.window.told.val();
        self.finish.window.next = self.window.told.val();
        self.answer.window.next = self.window.told.val();
        self.arrive.kept.next = self.kept.told.val();
        self.finish.ack.next = self.ack.told.val();
        self.expire.ack.next = self.ack.told.val();
        // Each kind of event in turn.
        self.answer.calm.next = self.inner.val();
        self.arrive.calm.next = self.calm.val();
        self.finish.calm.next = self.calm.val();
        self.expire.calm.next = self.calm.val();
        self.arrive.free.next = !self.line.busy.val();
        self.finish.free.next = !self.line.busy.val();
        self.arrive.go.next = false;
        self.finish.go.next = false;
        self.expire.go.next = false;
        if self.state.q.val() == State::Work {
            if self.over.val() {
                self.state.d.next = State::Choose;
            }
        } else if self.ready.val() {
            // The first from `what` on.
            if self.what.q.val() == what::HEAD {
                self.arrive.go.next = self.s_head.valid.val();
                self.finish.go.next = self.s_done.valid.val() & !self.s_head.valid.val();
                self.expire.go.next = self.fires.val() & !self.s_head.valid.val() & !self.s_done.valid.val();
            } else if self.what.q.val() == what::DONE {
                self.finish.go.next = self.s_done.valid.val();
                self.expire.go.next = self.fires.val() & !self.s_done.valid.val();
                self.arrive.go.next = self.s_head.valid.val() & !self.s_done.valid.val() & !self.fires.val();
            } else {
                self.expire.go.next = self.fires.val();
                self.arrive.go.next = self.s_head.valid.val() & !self.fires.val();
                self.finish.go.next = self.s_done.valid.val() & !self.fires.val() & !self.s_head.valid.val();
            }
            // The one behind it is first then.
            if self.arrive.go.val() {
                self.what.d.next = bits::<2>(what::DONE);
                self.state.d.next = State::Work;
            } else if self.finish.go.val() {
                self.what.d.next = bits::<2>(what::TIMER);
                self.state.d.next = State::Work;
            } else if self.expire.go.val() {
                self.what.d.next = bits::<2>(what::HEAD);
                self.state.d.next = State::Work;
            }
        }
        if self.reset.val() {
            self.what.d.next = bits::<2>(what::HEAD);
            self.state.d.next = State::Choose;
        }
    }
}
