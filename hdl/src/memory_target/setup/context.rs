//! Responder contexts, word by word.
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{CtlReq, CtlResp};
use crate::prim::word::WordPick;
use crate::records::{RspCtx, SetupRequest};
use ferric_abi::codes::{QpState, QpType};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// READs and atomics of a peer that may be open.
const MOST_OPEN: u64 = 16;

/// While `go`: word `word` of context `line` is read (`look`) or written, then `done` pulses.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Context {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub go: Signal<In, Bit>,
    pub look: Signal<In, Bit>,
    /// What is written is state RESET and the epoch, whatever the word.
    pub stop: Signal<In, Bit>,
    pub word: Signal<In, Bits<6>>,
    pub line: Signal<In, Bits<24>>,
    pub epoch: Signal<In, Bits<8>>,
    /// The queue pair that is to be.
    pub request: Signal<In, SetupRequest>,
    pub done: Signal<Out, Bit>,
    /// The word read, with `done`.
    pub data: Signal<Out, Bits<32>>,
    pub m_ctl: MsgSrc<CtlReq>,
    pub s_ctl: MsgSink<CtlResp>,
    words: WordPick<RspCtx>,
    asking: DFF<Bit>,
    waiting: DFF<Bit>,
    rights: Signal<Local, Bits<8>>,
    pmtu: Signal<Local, Bits<8>>,
    rnr: Signal<Local, Bits<8>>,
    word_now: Signal<Local, Bits<32>>,
    answered: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Context {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, asking, waiting);
        self.rights.next = self.request.val().rights;
        self.pmtu.next = self.request.val().pmtu;
        self.rnr.next = self.request.val().rnr_timer;
        self.words.x.next.state = bits::<3>(QpState::Rtr as u64);
        self.words.x.next.qp_type = bits::<3>(QpType::Rc as u64);
        self.words.x.next.pmtu = self.pmtu.val().get_bits::<3>(0);
        self.words.x.next.min_rnr_timer = self.rnr.val().get_bits::<5>(0);
        self.words.x.next.remote_write = self.rights.val().get_bit(0);
        self.words.x.next.remote_read = self.rights.val().get_bit(1);
        self.words.x.next.remote_atomic = self.rights.val().get_bit(2);
        self.words.x.next.ipv6 = false;
        self.words.x.next.vlan = false;
        self.words.x.next.nak_sent = false;
        self.words.x.next.in_msg = bits::<2>(0);
        self.words.x.next.rnr_sent = false;
        self.words.x.next.repeat_nak = false;
        self.words.x.next.remote_flush = false;
        self.words.x.next.epoch = self.epoch.val();
        self.words.x.next.rcqn = bits::<24>(0);
        self.words.x.next.max_dest_rd_atomic = bits::<5>(MOST_OPEN);
        self.words.x.next.rsvd1 = bits::<2>(0);
        self.words.x.next.pd = self.request.val().pd;
        self.words.x.next.rsvd2 = bits::<8>(0);
        self.words.x.next.function = bits::<12>(0);
        self.words.x.next.rsvd3 = bits::<4>(0);
        self.words.x.next.pkey = self.request.val().pkey;
        self.words.x.next.dest_qpn = self.request.val().peer_qpn;
        self.words.x.next.ahead = bits::<8>(0);
        self.words.x.next.epsn = self.request.val().first_psn;
        self.words.x.next.rd_in = bits::<5>(0);
        self.words.x.next.rsvd5 = bits::<3>(0);
        self.words.x.next.msn = bits::<24>(0);
        self.words.x.next.rsvd6 = bits::<8>(0);
        self.words.x.next.va = bits::<64>(0);
        self.words.x.next.rkey = bits::<32>(0);
        self.words.x.next.remaining = bits::<32>(0);
        self.words.x.next.msg_bytes = bits::<32>(0);
        self.words.x.next.rq_handle = bits::<8>(0);
        self.words.x.next.rq_index = bits::<16>(0);
        self.words.x.next.rsvd7 = bits::<8>(0);
        self.words.x.next.qkey = bits::<32>(0);
        self.words.x.next.rq = bits::<24>(0);
        // The ring is shared: a queue pair in error flushes nothing.
        self.words.x.next.srq = true;
        self.words.x.next.rsvd9 = bits::<7>(0);
        self.words.x.next.rq_pd = bits::<24>(0);
        self.words.x.next.rsvd10 = bits::<8>(0);
        self.words.sel.next = self.word.val();
        self.word_now.next = self.words.y.val();
        if self.stop.val() {
            self.word_now.next = bit_cast::<32, 8>(self.epoch.val()) << 24;
        }
        self.m_ctl.data.next.rsvd = bits::<4>(0);
        self.m_ctl.data.next.line = self.line.val();
        self.m_ctl.data.next.word = self.word.val();
        self.m_ctl.data.next.write = !self.look.val();
        self.m_ctl.data.next.data = self.word_now.val();
        self.m_ctl.valid.next = self.asking.q.val();
        self.s_ctl.ready.next = self.waiting.q.val();
        self.answered.next = self.waiting.q.val() & self.s_ctl.valid.val();
        self.done.next = self.answered.val();
        self.data.next = self.s_ctl.data.val().data;
        if self.m_ctl.ready.val() {
            self.asking.d.next = false;
        }
        if self.go.val() {
            self.asking.d.next = !self.waiting.q.val() | (self.asking.q.val() & !self.m_ctl.ready.val());
            self.waiting.d.next = !self.answered.val();
        }
        if self.reset.val() {
            self.asking.d.next = false;
            self.waiting.d.next = false;
        }
    }
}
