//! Set-up over UDP: queue pairs, keys and the receive ring of the target. See README.md.
mod answer;
pub mod proto;
#[cfg(test)]
mod tests;
mod window;

use super::keys::{Key, KeyWrite};
use super::paths::{Peer, PeerWrite};
use super::ring::RingSetup;
use crate::bus::{AxisSrc, MsgSink, MsgSrc};
use crate::msg::{CtlReq, CtlResp};
use crate::prim::ram::RamAsync;
use crate::prim::word::WordPick;
use crate::records::RspCtx;
use answer::Answer;
use ferric_abi::csr::space;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;
use window::Window;

/// Whose an entry is: of queue pair n entry n, of key n entry 16 + n. It stays, not `valid`, when the object has gone.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Owner {
    pub valid: Bit,
    pub ip: Bits<32>,
    /// The request that made it, or ended it.
    pub seq: Bits<32>,
    /// The peer's queue pair.
    pub peer: Bits<24>,
    /// Lives so far: the queue pair's epoch, the key's variant.
    pub life: Bits<8>,
}

/// What the machine does.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum State {
    /// After a reset: every entry is emptied.
    Clear,
    Idle,
    Judge,
    /// A place is looked for: entry by entry.
    Scan,
    Found,
    /// The queue pair is stopped, and what was accepted before is waited for.
    Stop,
    Fence,
    /// Its context is written, word 0 last.
    Words,
    Commit,
    /// State, expected PSN and messages are read.
    Look,
    Tell,
    Sent,
}

/// Set-up of up to 16 queue pairs and 16 keys over `2^A` rows of 8 bytes.
#[derive(LogicBlock, BlockDefault)]
pub struct Setup<const A: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets all queue pairs and keys.
    pub reset: Signal<In, Bit>,
    pub now: Signal<In, Bits<32>>,
    /// The MAC's stream, overheard.
    pub rx_data: Signal<In, Bits<64>>,
    pub rx_last: Signal<In, Bit>,
    pub rx_err: Signal<In, Bit>,
    pub rx_valid: Signal<In, Bit>,
    pub tx: AxisSrc<64, 8>,
    pub mac: Signal<In, Bits<48>>,
    pub ip: Signal<In, Bits<32>>,
    /// Responder contexts.
    pub m_ctl: MsgSrc<CtlReq>,
    pub s_ctl: MsgSink<CtlResp>,
    pub key: Signal<Out, KeyWrite>,
    pub key_en: Signal<Out, Bit>,
    pub peer: Signal<Out, PeerWrite>,
    pub peer_en: Signal<Out, Bit>,
    pub ring: Signal<Out, RingSetup>,
    pub ring_consumer: Signal<Out, Bits<16>>,
    pub ring_head: Signal<In, Bits<16>>,
    pub barrier: Signal<Out, Bit>,
    pub barrier_done: Signal<In, Bit>,
    /// Pulses that are counted: a RoCE frame, a request judged, a queue pair's error.
    pub frame: Signal<In, Bit>,
    pub judged: Signal<In, Bit>,
    pub failed: Signal<In, Bit>,
    /// There is a queue pair.
    pub active: Signal<Out, Bit>,
    window: Window,
    answer: Answer,
    owners: RamAsync<Owner, 5>,
    words: WordPick<RspCtx>,
    state: DFF<State>,
    entry: DFF<Bits<5>>,
    /// A free entry, or the one that the object has already; `same`: and by this very request.
    place: DFF<Bits<5>>,
    free: DFF<Bit>,
    has: DFF<Bit>,
    same: DFF<Bit>,
    owner: DFF<Owner>,
    status: DFF<Bits<8>>,
    object: DFF<Bits<32>>,
    word: DFF<Bits<6>>,
    asking: DFF<Bit>,
    waiting: DFF<Bit>,
    fence: DFF<Bit>,
    qp_state: DFF<Bits<8>>,
    epsn: DFF<Bits<24>>,
    msn: DFF<Bits<24>>,
    qps: DFF<Bits<5>>,
    ring_now: DFF<RingSetup>,
    consumer: DFF<Bits<16>>,
    frames: DFF<Bits<32>>,
    requests: DFF<Bits<32>>,
    errors: DFF<Bits<32>>,
    refused: DFF<Bits<32>>,
    // Verdicts on parameters, a cycle behind the request.
    range_ok: DFF<Bit>,
    qp_ok: DFF<Bit>,
    ring_ok: DFF<Bit>,
    release_ok: DFF<Bit>,
    key_end: DFF<Bits<33>>,
    ring_end: DFF<Bits<33>>,
    steps: DFF<Bits<4>>,
    #[init(Constant::new((8u64 << A).into()))]
    ram_bytes: Constant<Bits<33>>,
    #[init(Constant::new(u64::from(space::RSP).into()))]
    rsp: Constant<Bits<4>>,
    #[init(Constant::new(u64::from(proto::MAGIC).into()))]
    magic: Constant<Bits<32>>,
    #[init(Constant::new(u64::from(proto::VERSION).into()))]
    version: Constant<Bits<8>>,
    op: Signal<Local, Bits<8>>,
    creates: Signal<Local, Bit>,
    keyed: Signal<Local, Bit>,
    named: Signal<Local, Bits<32>>,
    known: Signal<Local, Bit>,
    mine: Signal<Local, Bit>,
    rights: Signal<Local, Bits<8>>,
    pmtu: Signal<Local, Bits<8>>,
    rnr: Signal<Local, Bits<8>>,
    slot: Signal<Local, Bits<8>>,
    count: Signal<Local, Bits<8>>,
    log_ring: Signal<Local, Bits<5>>,
    ring_bytes: Signal<Local, Bits<33>>,
    low: Signal<Local, Bits<32>>,
    ahead: Signal<Local, Bits<16>>,
    given: Signal<Local, Bits<16>>,
    life: Signal<Local, Bits<8>>,
    key_value: Signal<Local, Bits<32>>,
    written: Signal<Local, Bit>,
    word_now: Signal<Local, Bits<32>>,
    line: Signal<Local, Bits<24>>,
    key_now: Signal<Local, Key>,
    peer_now: Signal<Local, Peer>,
    whole: Signal<Local, Bit>,
    variant_ok: Signal<Local, Bit>,
    ended: Signal<Local, Bit>,
    ring_same: Signal<Local, Bit>,
}

impl<const A: usize> Logic for Setup<A> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, entry, place, free, has, same, owner, status, object, word, asking, waiting, fence, qp_state, epsn, msn);
        dff_setup!(self, clock, qps, ring_now, consumer, frames, requests, errors, refused, range_ok, qp_ok, ring_ok, release_ok, key_end, ring_end, steps);
        clock!(self, clock, window, answer, owners);
        self.window.reset.next = self.reset.val();
        self.window.data.next = self.rx_data.val();
        self.window.last.next = self.rx_last.val();
        self.window.err.next = self.rx_err.val();
        self.window.valid.next = self.rx_valid.val();
        self.window.mac.next = self.mac.val();
        self.window.ip.next = self.ip.val();
        self.window.take.next = false;
        self.answer.reset.next = self.reset.val();
        self.answer.mac.next = self.mac.val();
        self.answer.ip.next = self.ip.val();
        self.answer.to.next = self.window.sender.val();
        self.answer.start.next = false;
        AxisSrc::<64, 8>::link(&mut self.tx, &mut self.answer.m);
        self.ring.next = self.ring_now.q.val();
        self.ring_consumer.next = self.consumer.q.val();
        self.active.next = self.qps.q.val().any();
        self.barrier.next = self.fence.q.val();
        self.fence.d.next = false;

        // Counters.
        if self.frame.val() {
            self.frames.d.next = self.frames.q.val() + 1;
        }
        if self.judged.val() {
            self.requests.d.next = self.requests.q.val() + 1;
        }
        if self.failed.val() {
            self.errors.d.next = self.errors.q.val() + 1;
        }

        // The request.
        self.op.next = self.window.request.val().op;
        self.creates.next = (self.op.val() == 1) | (self.op.val() == 3);
        self.keyed.next = (self.op.val() == 3) | (self.op.val() == 4);
        self.named.next = self.window.request.val().object;
        self.rights.next = self.window.request.val().rights;
        self.pmtu.next = self.window.request.val().pmtu;
        self.rnr.next = self.window.request.val().rnr_timer;
        self.slot.next = self.window.request.val().log_slot;
        self.count.next = self.window.request.val().log_count;
        self.low.next = self.window.request.val().start;
        // In range? Three cycles behind.
        self.key_end.d.next = bit_cast::<33, 32>(self.low.val()) + bit_cast::<33, 32>(self.window.request.val().length);
        self.range_ok.d.next = (self.key_end.q.val() <= self.ram_bytes.val()) & self.window.request.val().length.any();
        self.qp_ok.d.next = self.pmtu.val().any() & (self.pmtu.val() < 6) & (self.rights.val() < 8) & (self.rnr.val() < 32);
        self.log_ring.next = self.slot.val().get_bits::<5>(0) + self.count.val().get_bits::<5>(0);
        self.ring_bytes.next = bits::<33>(1) << self.log_ring.val();
        self.ring_end.d.next = bit_cast::<33, 32>(self.low.val()) + self.ring_bytes.val();
        self.ring_same.next = self.ring_now.q.val().valid
            & (self.ring_now.q.val().base == self.low.val())
            & (self.ring_now.q.val().log_slot == self.slot.val().get_bits::<4>(0))
            & (self.ring_now.q.val().log_count == self.count.val().get_bits::<3>(0));
        self.ring_ok.d.next = (self.slot.val() > 5)
            & (self.slot.val() < 13)
            & (self.count.val() < 7)
            & (self.ring_end.q.val() <= self.ram_bytes.val())
            & !self.low.val().get_bits::<12>(0).any()
            & (!self.qps.q.val().any() | self.ring_same.val());
        self.given.next = self.window.request.val().consumer - self.consumer.q.val();
        self.ahead.next = self.ring_head.val() - self.consumer.q.val();
        self.release_ok.d.next = self.given.val() <= self.ahead.val();

        // The entry at hand.
        self.owners.read_addr.next = self.entry.q.val();
        self.owners.write_addr.next = self.place.q.val();
        self.owners.write_en.next = false;
        self.owners.write_data.next.valid = self.creates.val();
        self.owners.write_data.next.ip = self.window.sender.val().ip;
        self.owners.write_data.next.seq = self.window.request.val().seq;
        self.owners.write_data.next.peer = self.window.request.val().peer_qpn;
        self.life.next = self.owner.q.val().life + 1;
        self.owners.write_data.next.life = self.life.val();
        self.mine.next = self.owners.read_data.val().ip == self.window.sender.val().ip;
        self.known.next = self.mine.val()
            & self.owners.read_data.val().valid
            & ((self.keyed.val() & (self.owners.read_data.val().seq == self.window.request.val().seq))
                | (!self.keyed.val() & (self.owners.read_data.val().peer == self.window.request.val().peer_qpn)));

        // A number beyond all entries, a key of an earlier life.
        self.whole.next = !self.named.val().get_bits::<28>(4).any();
        self.variant_ok.next = true;
        if self.keyed.val() {
            self.whole.next = !self.named.val().get_bits::<20>(12).any();
            self.variant_ok.next = self.owners.read_data.val().life == self.named.val().get_bits::<8>(0);
        }

        // Context words.
        self.words.x.next.state = bits::<3>(2);
        self.words.x.next.qp_type = bits::<3>(0);
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
        self.words.x.next.rsvd0 = false;
        self.words.x.next.epoch = self.life.val();
        self.words.x.next.rcqn = bits::<24>(0);
        self.words.x.next.max_dest_rd_atomic = bits::<5>(16);
        self.words.x.next.rsvd1 = bits::<3>(0);
        self.words.x.next.pd = self.window.request.val().pd;
        self.words.x.next.rsvd2 = bits::<8>(0);
        self.words.x.next.function = bits::<12>(0);
        self.words.x.next.rsvd3 = bits::<4>(0);
        self.words.x.next.pkey = self.window.request.val().pkey;
        self.words.x.next.dest_qpn = self.window.request.val().peer_qpn;
        self.words.x.next.rsvd4 = bits::<8>(0);
        self.words.x.next.epsn = self.window.request.val().first_psn;
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
        self.words.sel.next = self.word.q.val();
        self.word_now.next = self.words.y.val();
        if (self.state.q.val() == State::Stop) | (self.state.q.val() == State::Clear) {
            // State RESET, the new epoch.
            self.word_now.next = bit_cast::<32, 8>(self.life.val()) << 24;
        }
        self.line.next = bit_cast::<24, 4>(self.place.q.val().get_bits::<4>(0));
        self.m_ctl.data.next.space = self.rsp.val();
        self.m_ctl.data.next.line = self.line.val();
        self.m_ctl.data.next.word = self.word.q.val();
        self.m_ctl.data.next.write = self.state.q.val() != State::Look;
        self.m_ctl.data.next.data = self.word_now.val();
        self.m_ctl.valid.next = self.asking.q.val();
        if self.m_ctl.ready.val() {
            self.asking.d.next = false;
        }
        self.s_ctl.ready.next = self.waiting.q.val();
        self.written.next = self.waiting.q.val() & self.s_ctl.valid.val();

        // Keys and peers, when all else is done; empty ones after a reset.
        self.key_value.next = (bit_cast::<32, 4>(self.place.q.val().get_bits::<4>(0)) << 8) | bit_cast::<32, 8>(self.life.val());
        self.key.next.index = bit_cast::<8, 4>(self.place.q.val().get_bits::<4>(0));
        self.key_now.next.valid = (self.op.val() == 3) | (self.op.val() == 5);
        self.key_now.next.variant = self.life.val();
        self.key_now.next.rights = bit_cast::<4, 3>(self.rights.val().get_bits::<3>(0)) << 1;
        self.key_now.next.pd = self.window.request.val().pd;
        self.key_now.next.start = self.low.val();
        self.key_now.next.length = self.window.request.val().length;
        self.key_en.next = false;
        self.peer.next.qpn = self.line.val();
        self.peer_now.next.valid = self.op.val() == 1;
        self.peer_now.next.mac = self.window.sender.val().mac;
        self.peer_now.next.ip = self.window.sender.val().ip;
        self.peer_now.next.pkey = self.window.request.val().pkey;
        self.peer_en.next = false;
        if self.op.val() == 5 {
            // Entry 0 is the ring's: the card may write it, no peer anything.
            self.key_now.next.variant = bits::<8>(0);
            self.key_now.next.rights = bits::<4>(1);
            self.key_now.next.pd = bits::<24>(0);
            self.key_now.next.length = self.ring_bytes.val().get_bits::<32>(0);
        }

        // The answer.
        self.answer.reply.next.magic = self.magic.val();
        self.answer.reply.next.version = self.version.val();
        self.answer.reply.next.op = self.op.val();
        self.answer.reply.next.status = self.status.q.val();
        self.answer.reply.next.rsvd0 = bits::<8>(0);
        self.answer.reply.next.seq = self.window.request.val().seq;
        self.answer.reply.next.object = self.object.q.val();
        self.answer.reply.next.ram_bytes = self.ram_bytes.val().get_bits::<32>(0);
        self.answer.reply.next.state = self.qp_state.q.val();
        self.answer.reply.next.rsvd1 = bits::<8>(0);
        self.answer.reply.next.rsvd2 = bits::<16>(0);
        self.answer.reply.next.rsvd3 = bits::<8>(0);
        self.answer.reply.next.epsn = self.epsn.q.val();
        self.answer.reply.next.rsvd4 = bits::<8>(0);
        self.answer.reply.next.msn = self.msn.q.val();
        self.answer.reply.next.ring_base = self.ring_now.q.val().base;
        self.answer.reply.next.ring_log_slot = bit_cast::<8, 4>(self.ring_now.q.val().log_slot);
        self.answer.reply.next.ring_log_count = bit_cast::<8, 3>(self.ring_now.q.val().log_count);
        self.answer.reply.next.ring_head = self.ring_head.val();
        self.answer.reply.next.ring_consumer = self.consumer.q.val();
        self.answer.reply.next.rsvd5 = bits::<16>(0);
        self.answer.reply.next.frames = self.frames.q.val();
        self.answer.reply.next.requests = self.requests.q.val();
        self.answer.reply.next.errors = self.errors.q.val();
        self.answer.reply.next.refused = self.refused.q.val();
        self.answer.reply.next.now = self.now.val();

        self.ended.next = self.entry.q.val().get_bits::<4>(0).all();
        match self.state.q.val() {
            State::Clear => {
                // Entry by entry: owner, key, peer, and word 0 of the context.
                self.word.d.next = bits::<6>(0);
                self.owners.write_data.next.valid = false;
                self.owners.write_data.next.ip = bits::<32>(0);
                self.key_now.next.valid = false;
                self.peer_now.next.valid = false;
                self.asking.d.next = !self.waiting.q.val() | (self.asking.q.val() & !self.m_ctl.ready.val());
                self.waiting.d.next = true;
                if self.written.val() {
                    self.waiting.d.next = false;
                    self.owners.write_en.next = true;
                    self.key_en.next = true;
                    self.peer_en.next = true;
                    self.place.d.next = self.place.q.val() + 1;
                    if self.place.q.val().all() {
                        self.state.d.next = State::Idle;
                    }
                }
            }
            State::Idle => {
                self.steps.d.next = bits::<4>(0);
                self.status.d.next = bits::<8>(0);
                self.object.d.next = bits::<32>(0);
                self.qp_state.d.next = bits::<8>(0);
                self.epsn.d.next = bits::<24>(0);
                self.msn.d.next = bits::<24>(0);
                self.has.d.next = false;
                self.free.d.next = false;
                self.same.d.next = false;
                if self.window.some.val() {
                    self.state.d.next = State::Judge;
                }
            }
            State::Judge => {
                // First entry: queue pairs 0 and 1 are not given away (IBTA 3.5.10), nor is the ring's key.
                self.steps.d.next = self.steps.q.val() + 1;
                self.entry.d.next = bits::<5>(2);
                if self.keyed.val() {
                    self.entry.d.next = bits::<5>(17);
                }
                if !self.creates.val() {
                    self.entry.d.next = bit_cast::<5, 4>(self.named.val().get_bits::<4>(0));
                    if self.keyed.val() {
                        self.entry.d.next = bit_cast::<5, 4>(self.named.val().get_bits::<4>(8)) | 16;
                    }
                }
                self.place.d.next = bit_cast::<5, 4>(self.named.val().get_bits::<4>(0));
                self.word.d.next = bits::<6>(0);
                if self.steps.q.val() == 4 {
                    self.state.d.next = State::Scan;
                    if self.window.malformed.val() {
                        self.status.d.next = bits::<8>(1);
                        self.state.d.next = State::Tell;
                    } else if self.op.val() > 6 {
                        self.status.d.next = bits::<8>(2);
                        self.state.d.next = State::Tell;
                    } else if ((self.op.val() == 1) & !self.qp_ok.q.val())
                        | ((self.op.val() == 3) & (!self.range_ok.q.val() | (self.rights.val() > 7)))
                        | ((self.op.val() == 5) & !self.ring_ok.q.val())
                        | ((self.op.val() == 6) & !self.release_ok.q.val())
                    {
                        self.status.d.next = bits::<8>(5);
                        self.state.d.next = State::Tell;
                    } else if self.op.val() == 5 {
                        self.place.d.next = bits::<5>(0);
                        self.state.d.next = State::Commit;
                    } else if self.op.val() == 6 {
                        self.consumer.d.next = self.window.request.val().consumer;
                        self.state.d.next = State::Tell;
                    } else if self.op.val() == 0 {
                        self.object.d.next = self.named.val();
                        self.state.d.next = State::Look;
                        if !self.whole.val() {
                            self.status.d.next = bits::<8>(4);
                            self.state.d.next = State::Tell;
                        }
                    }
                }
            }
            State::Scan => {
                self.owner.d.next = self.owners.read_data.val();
                if self.creates.val() {
                    // Known already, or the first that is free.
                    if self.known.val() {
                        self.place.d.next = self.entry.q.val();
                        self.has.d.next = true;
                        self.same.d.next = self.owners.read_data.val().seq == self.window.request.val().seq;
                        self.state.d.next = State::Found;
                    } else if !self.owners.read_data.val().valid & !self.free.q.val() {
                        self.place.d.next = self.entry.q.val();
                        self.free.d.next = true;
                    }
                    if self.ended.val() {
                        self.state.d.next = State::Found;
                    } else {
                        self.entry.d.next = self.entry.q.val() + 1;
                    }
                } else {
                    self.place.d.next = self.entry.q.val();
                    self.has.d.next = self.mine.val() & self.owners.read_data.val().valid & self.whole.val() & self.variant_ok.val();
                    self.same.d.next = self.mine.val() & self.whole.val() & !self.owners.read_data.val().valid & (self.owners.read_data.val().seq == self.window.request.val().seq);
                    self.state.d.next = State::Found;
                }
            }
            State::Found => {
                self.entry.d.next = self.place.q.val();
                self.steps.d.next = self.steps.q.val() + 1;
                // Two cycles: the entry's owner, then what to do.
                self.owner.d.next = self.owners.read_data.val();
                if self.steps.q.val() == 7 {
                    self.object.d.next = bit_cast::<32, 24>(self.line.val());
                    self.word.d.next = bits::<6>(0);
                    if self.same.q.val() {
                        // Done before.
                        if self.keyed.val() {
                            self.object.d.next = (bit_cast::<32, 24>(self.line.val()) << 8) | bit_cast::<32, 8>(self.owner.q.val().life);
                        }
                        self.state.d.next = State::Tell;
                    } else if !self.creates.val() & !self.has.q.val() {
                        self.status.d.next = bits::<8>(4);
                        self.state.d.next = State::Tell;
                    } else if self.creates.val() & !self.has.q.val() & !self.free.q.val() {
                        self.status.d.next = bits::<8>(3);
                        self.state.d.next = State::Tell;
                    } else if self.keyed.val() {
                        if self.creates.val() {
                            self.object.d.next = self.key_value.val();
                        }
                        self.state.d.next = State::Commit;
                    } else {
                        self.state.d.next = State::Stop;
                    }
                }
            }
            State::Stop => {
                self.asking.d.next = !self.waiting.q.val() | (self.asking.q.val() & !self.m_ctl.ready.val());
                self.waiting.d.next = true;
                if self.written.val() {
                    self.waiting.d.next = false;
                    self.fence.d.next = true;
                    self.state.d.next = State::Fence;
                }
            }
            State::Fence => {
                self.word.d.next = bits::<6>(15);
                if self.barrier_done.val() {
                    self.state.d.next = State::Tell;
                    if self.op.val() == 1 {
                        self.state.d.next = State::Words;
                    } else if self.op.val() == 2 {
                        self.state.d.next = State::Commit;
                    }
                }
            }
            State::Words => {
                // The peer's address before the queue pair wakes.
                self.peer_en.next = true;
                self.asking.d.next = !self.waiting.q.val() | (self.asking.q.val() & !self.m_ctl.ready.val());
                self.waiting.d.next = true;
                if self.written.val() {
                    self.waiting.d.next = false;
                    self.word.d.next = self.word.q.val() - 1;
                    if !self.word.q.val().any() {
                        self.state.d.next = State::Commit;
                    }
                }
            }
            State::Commit => {
                self.state.d.next = State::Tell;
                self.key_en.next = self.keyed.val() | (self.op.val() == 5);
                self.owners.write_en.next = self.op.val() != 5;
                if self.op.val() == 5 {
                    self.ring_now.d.next.valid = true;
                    self.ring_now.d.next.base = self.low.val();
                    self.ring_now.d.next.log_slot = self.slot.val().get_bits::<4>(0);
                    self.ring_now.d.next.log_count = self.count.val().get_bits::<3>(0);
                    self.ring_now.d.next.key = bits::<32>(0);
                    if !self.ring_same.val() {
                        // Numbers go on: what an earlier ring wrote is not taken for new.
                        self.consumer.d.next = self.ring_head.val();
                    }
                }
                if (self.op.val() == 1) & !self.has.q.val() {
                    self.qps.d.next = self.qps.q.val() + 1;
                }
                if self.op.val() == 2 {
                    self.qps.d.next = self.qps.q.val() - 1;
                }
                if self.op.val() == 4 {
                    // What passed the key's check is done before its end is told.
                    self.fence.d.next = true;
                    self.state.d.next = State::Fence;
                }
            }
            State::Look => {
                self.asking.d.next = !self.waiting.q.val() | (self.asking.q.val() & !self.m_ctl.ready.val());
                self.waiting.d.next = true;
                if self.written.val() {
                    self.waiting.d.next = false;
                    if self.word.q.val() == 0 {
                        self.qp_state.d.next = bit_cast::<8, 3>(self.s_ctl.data.val().data.get_bits::<3>(0));
                        self.word.d.next = bits::<6>(5);
                    } else if self.word.q.val() == 5 {
                        self.epsn.d.next = self.s_ctl.data.val().data.get_bits::<24>(0);
                        self.word.d.next = bits::<6>(6);
                    } else {
                        self.msn.d.next = self.s_ctl.data.val().data.get_bits::<24>(0);
                        self.state.d.next = State::Tell;
                    }
                }
            }
            State::Tell => {
                self.answer.start.next = true;
                if self.status.q.val().any() {
                    self.refused.d.next = self.refused.q.val() + 1;
                }
                self.state.d.next = State::Sent;
            }
            State::Sent => {
                if self.answer.idle.val() {
                    self.window.take.next = true;
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.key.next.key = self.key_now.val();
        self.peer.next.peer = self.peer_now.val();
        if self.reset.val() {
            self.state.d.next = State::Clear;
            self.place.d.next = bits::<5>(0);
            self.word.d.next = bits::<6>(0);
            self.asking.d.next = false;
            self.waiting.d.next = false;
            self.fence.d.next = false;
            self.qps.d.next = bits::<5>(0);
            self.ring_now.d.next.valid = false;
            self.ring_now.d.next.log_slot = bits::<4>(0);
            self.consumer.d.next = bits::<16>(0);
            self.frames.d.next = bits::<32>(0);
            self.requests.d.next = bits::<32>(0);
            self.errors.d.next = bits::<32>(0);
            self.refused.d.next = bits::<32>(0);
        }
    }
}
