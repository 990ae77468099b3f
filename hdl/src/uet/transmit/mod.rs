//! The transmit half of all initiators: messages in, requests out, ACKs and NACKs in, ends of messages out. See README.md.

mod admit;
mod director;
mod fire;
mod frame;
mod hear;
mod lines;
mod timing;
mod turn;
mod types;

use super::messages::Messages;
use super::pds::types::{Gone, Listed, Message, MessageAsk, MessageEnd, MessageTold, Outgoing};
use super::sched::Sched;
use super::source::Source;
use super::spray::Spray;
use super::types::{Answered, Choice, LossAsk, LossTold, SprayAsk, Tell, LINE, PAYLOAD, SLOT};
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{TimerCmd, TimerEvent};
use crate::rdma::timer::Timers;
use crate::stream::MsgArb;
use crate::uet::head::types::UetHead;
use crate::uet::pdc::types::{PdcAsk, PdcTold};
use director::Director;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] =
    &[("s_post", &["m_out", "m_end", "m_pdc", "s_pdc"]), ("s_head", &["m_out", "m_end", "m_pdc", "s_pdc"]), ("s_pdc", &["m_end"]), ("s_ending", &["m_out", "m_end", "m_pdc", "s_pdc"])];

/// `2^LP` PDCs, windows of `2^LW`, `2^LM` - 1 messages; `LR` = `LP` + `LW` - 6, `LA` = `LP` + `LW`, `LO` = `LP` + 6, `LT` = `LP` + 2.
#[derive(LogicBlock, BlockDefault)]
pub struct Transmit<const LP: usize, const LW: usize, const LR: usize, const LA: usize, const LO: usize, const LM: usize, const LT: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Time, and times to wait, in ticks.
    pub now: Signal<In, Bits<32>>,
    pub rto: Signal<In, Bits<32>>,
    pub nack_wait: Signal<In, Bits<32>>,
    pub idle: Signal<In, Bits<32>>,
    pub safety: Signal<In, Bits<32>>,
    pub tail_loss: Signal<In, Bits<32>>,
    pub stall_least: Signal<In, Bits<32>>,
    /// Time-outs in a row, and refusals in a row (31: any number), before a PDC fails.
    pub rto_max: Signal<In, Bits<4>>,
    pub nack_max: Signal<In, Bits<5>>,
    /// PSNs that a peer is taken to allow until it says so; bytes after which an ACK is asked for; bytes of a packet.
    pub default_range: Signal<In, Bits<16>>,
    pub ack_bytes: Signal<In, Bits<20>>,
    pub mtu: Signal<In, Bits<PAYLOAD>>,
    pub path_order: Signal<In, Bit>,
    /// See `spray`.
    pub last_slot: Signal<In, Bits<SLOT>>,
    pub penalties: Signal<In, Bit>,
    pub table_en: Signal<In, Bit>,
    pub table_slot: Signal<In, Bits<SLOT>>,
    pub table_entropy: Signal<In, Bits<16>>,
    /// Messages, and the end of each; one that has found no PDC (`later`, not with `ready`) may be offered again. There is a place for one.
    pub s_post: MsgSink<Message>,
    pub later: Signal<Out, Bit>,
    pub room: Signal<Out, Bit>,
    pub m_end: MsgSrc<MessageEnd>,
    /// ACKs, NACKs and CLEAR_REQUEST.
    pub s_head: MsgSink<UetHead>,
    /// Places of PDCs that end if they are those of `gone`; behind the next one that is taken, all that follows from one is done.
    pub s_ending: MsgSink<Bits<LINE>>,
    pub gone: Signal<In, Gone>,
    pub m_out: MsgSrc<Outgoing>,
    pub m_pdc: MsgSrc<PdcAsk>,
    pub s_pdc: MsgSink<PdcTold>,
    director: Director<LP>,
    source: Source<LP, LW, LR, LA, LO>,
    spray: Spray<LP, LO>,
    paths: MsgArb<SprayAsk, 2>,
    messages: Messages<LP, LM>,
    sched: Sched<LP>,
    timers: Timers<LT>,
    told: Signal<Local, Tell>,
}

#[kernel]
impl<const LP: usize, const LW: usize, const LR: usize, const LA: usize, const LO: usize, const LM: usize, const LT: usize> Logic for Transmit<LP, LW, LR, LA, LO, LM, LT> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, director, source, spray, paths, messages, sched, timers);
        self.director.reset.next = self.reset.val();
        self.source.reset.next = self.reset.val();
        self.spray.reset.next = self.reset.val();
        self.paths.reset.next = self.reset.val();
        self.messages.reset.next = self.reset.val();
        self.sched.reset.next = self.reset.val();
        self.timers.reset.next = self.reset.val();
        self.director.now.next = self.now.val();
        self.timers.now.next = self.now.val();
        self.director.rto.next = self.rto.val();
        self.director.nack_wait.next = self.nack_wait.val();
        self.director.idle.next = self.idle.val();
        self.director.safety.next = self.safety.val();
        self.director.rto_max.next = self.rto_max.val();
        self.director.nack_max.next = self.nack_max.val();
        self.source.default_range.next = self.default_range.val();
        self.source.ack_bytes.next = self.ack_bytes.val();
        self.source.tail_loss.next = self.tail_loss.val();
        self.source.stall_least.next = self.stall_least.val();
        self.source.path_order.next = self.path_order.val();
        self.messages.mtu.next = self.mtu.val();
        self.spray.last_slot.next = self.last_slot.val();
        self.spray.penalties.next = self.penalties.val();
        self.spray.table_en.next = self.table_en.val();
        self.spray.table_slot.next = self.table_slot.val();
        self.spray.table_entropy.next = self.table_entropy.val();
        MsgSink::<Message>::link(&mut self.s_post, &mut self.director.s_post);
        self.later.next = self.director.later.val();
        self.room.next = self.messages.room.val();
        MsgSink::<UetHead>::link(&mut self.s_head, &mut self.director.s_head);
        MsgSink::<Bits<LINE>>::link(&mut self.s_ending, &mut self.director.s_ending);
        self.director.gone.next = self.gone.val();
        MsgSrc::<Outgoing>::link(&mut self.m_out, &mut self.director.m_out);
        MsgSrc::<PdcAsk>::link(&mut self.m_pdc, &mut self.director.m_pdc);
        MsgSink::<PdcTold>::link(&mut self.s_pdc, &mut self.director.s_pdc);
        MsgSrc::<MessageEnd>::link(&mut self.m_end, &mut self.messages.m_end);
        MsgSrc::<LossAsk>::join(&mut self.director.m_loss, &mut self.source.s);
        MsgSrc::<LossTold>::join(&mut self.source.m, &mut self.director.s_loss);
        MsgSrc::<Choice>::join(&mut self.spray.m, &mut self.director.s_choice);
        MsgSrc::<SprayAsk>::join(&mut self.director.m_spray, &mut self.paths.s[0]);
        MsgSrc::<SprayAsk>::join(&mut self.paths.m, &mut self.spray.s);
        // What became of packets is told to the paths.
        self.told.next = self.source.m_tell.data.val();
        self.paths.s[1].data.next.line = self.told.val().line;
        self.paths.s[1].data.next.init = false;
        self.paths.s[1].data.next.choose = false;
        self.paths.s[1].data.next.fixed = false;
        self.paths.s[1].data.next.slot = self.told.val().slot;
        self.paths.s[1].data.next.what = self.told.val().what;
        self.paths.s[1].valid.next = self.source.m_tell.valid.val();
        self.source.m_tell.ready.next = self.paths.s[1].ready.val();
        MsgSrc::<MessageAsk>::join(&mut self.director.m_message, &mut self.messages.s);
        MsgSrc::<MessageTold>::join(&mut self.messages.m, &mut self.director.s_message);
        MsgSrc::<Answered>::join(&mut self.source.m_answer, &mut self.messages.s_answer);
        self.messages.code.next = self.director.code.val();
        self.director.room.next = self.messages.room.val();
        self.director.quiet.next = self.messages.quiet.val();
        MsgSrc::<Listed>::join(&mut self.director.m_list, &mut self.sched.s);
        MsgSrc::<Listed>::join(&mut self.sched.m, &mut self.director.s_offer);
        self.sched.served.next = self.director.served.val();
        self.sched.more.next = self.director.more.val();
        MsgSrc::<TimerCmd>::join(&mut self.director.m_timer, &mut self.timers.s_cmd[0]);
        MsgSrc::<TimerEvent>::join(&mut self.timers.m_event, &mut self.director.s_timer);
        // The second port for commands is nobody's.
        self.timers.s_cmd[1].data.next.qpn = bits::<24>(0);
        self.timers.s_cmd[1].data.next.start = false;
        self.timers.s_cmd[1].data.next.kind = false;
        self.timers.s_cmd[1].data.next.ticks = bits::<32>(0);
        self.timers.s_cmd[1].valid.next = false;
    }
}
