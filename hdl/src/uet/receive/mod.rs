//! The receive half of all targets: requests in, packets for semantics out, their answers in, ACKs and NACKs out. See README.md.

mod answer;
mod arrive;
mod director;
mod expire;
mod facts;
mod finish;
mod frame;
mod lines;
mod rules;
mod types;

use super::ack::Ack;
use super::kept::Kept;
use super::pds::types::{Delivered, Finished, Gone, Outgoing};
use super::types::{AckAsk, AckTold, KeptAsk, KeptTold, RxAsk, RxTold, LINE};
use super::window::Window;
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{TimerCmd, TimerEvent};
use crate::rdma::timer::Timers;
use crate::uet::head::types::UetHead;
use crate::uet::pdc::types::{PdcAsk, PdcTold};
use director::Director;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] =
    &[("s_head", &["m_out", "m_deliver", "m_pdc", "s_pdc"]), ("s_done", &["m_out", "m_deliver", "m_pdc", "s_pdc"]), ("s_pdc", &[]), ("s_ending", &["m_out", "m_deliver", "m_pdc", "s_pdc"])];

/// `2^LP` PDCs, windows of `2^LW`, `2^LK` - 1 places for responses; `LR` = `LP` + `LW` - 6, `LT` = `LP` + 2.
#[derive(LogicBlock, BlockDefault)]
pub struct Receive<const LP: usize, const LW: usize, const LR: usize, const LK: usize, const LT: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Time, and times to wait, in ticks: for a silent peer, after a close, for a clear.
    pub now: Signal<In, Bits<32>>,
    pub reap: Signal<In, Bits<32>>,
    pub safety: Signal<In, Bits<32>>,
    pub clear_wait: Signal<In, Bits<32>>,
    /// See `ack` and `window`.
    pub ack_bytes: Signal<In, Bits<20>>,
    pub ack_least: Signal<In, Bits<14>>,
    pub ack_wait: Signal<In, Bits<32>>,
    pub window: Signal<In, Bits<16>>,
    /// PSNs that may be outstanding, in 128, as ACKs say.
    pub mpr: Signal<In, Bits<8>>,
    /// Requests and control packets.
    pub s_head: MsgSink<UetHead>,
    pub m_deliver: MsgSrc<Delivered>,
    /// An answer to each.
    pub s_done: MsgSink<Finished>,
    /// Places of PDCs that end if they are those of `gone`; behind the next one that is taken, all that follows from one is done.
    pub s_ending: MsgSink<Bits<LINE>>,
    pub gone: Signal<In, Gone>,
    pub m_out: MsgSrc<Outgoing>,
    pub m_pdc: MsgSrc<PdcAsk>,
    pub s_pdc: MsgSink<PdcTold>,
    director: Director<LP>,
    windows: Window<LP, LW, LR>,
    ack: Ack<LP>,
    kept: Kept<LP, LK>,
    timers: Timers<LT>,
}

#[kernel]
impl<const LP: usize, const LW: usize, const LR: usize, const LK: usize, const LT: usize> Logic for Receive<LP, LW, LR, LK, LT> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, director, windows, ack, kept, timers);
        self.director.reset.next = self.reset.val();
        self.windows.reset.next = self.reset.val();
        self.ack.reset.next = self.reset.val();
        self.kept.reset.next = self.reset.val();
        self.timers.reset.next = self.reset.val();
        self.director.now.next = self.now.val();
        self.timers.now.next = self.now.val();
        self.director.reap.next = self.reap.val();
        self.director.safety.next = self.safety.val();
        self.director.clear_wait.next = self.clear_wait.val();
        self.director.full.next = self.kept.full.val();
        self.director.ack_wait.next = self.ack_wait.val();
        self.director.mpr.next = self.mpr.val();
        self.windows.window.next = self.window.val();
        self.ack.ack_bytes.next = self.ack_bytes.val();
        self.ack.ack_least.next = self.ack_least.val();
        self.ack.ack_wait.next = self.ack_wait.val();
        MsgSink::<UetHead>::link(&mut self.s_head, &mut self.director.s_head);
        MsgSink::<Bits<LINE>>::link(&mut self.s_ending, &mut self.director.s_ending);
        self.director.gone.next = self.gone.val();
        MsgSrc::<Delivered>::link(&mut self.m_deliver, &mut self.director.m_deliver);
        MsgSink::<Finished>::link(&mut self.s_done, &mut self.director.s_done);
        MsgSrc::<Outgoing>::link(&mut self.m_out, &mut self.director.m_out);
        MsgSrc::<PdcAsk>::link(&mut self.m_pdc, &mut self.director.m_pdc);
        MsgSink::<PdcTold>::link(&mut self.s_pdc, &mut self.director.s_pdc);
        MsgSrc::<RxAsk>::join(&mut self.director.m_window, &mut self.windows.s);
        MsgSrc::<RxTold>::join(&mut self.windows.m, &mut self.director.s_window);
        MsgSrc::<AckAsk>::join(&mut self.director.m_ack, &mut self.ack.s);
        MsgSrc::<AckTold>::join(&mut self.ack.m, &mut self.director.s_ack);
        MsgSrc::<KeptAsk>::join(&mut self.director.m_kept, &mut self.kept.s);
        MsgSrc::<KeptTold>::join(&mut self.kept.m, &mut self.director.s_kept);
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
