//! Set-up over UDP: queue pairs, keys and the receive ring of the target. See README.md.
mod answer;
mod check;
mod context;
mod grant;
mod owners;
#[cfg(test)]
mod tests;
mod told;
mod window;

use super::keys::KeyWrite;
use super::paths::PeerWrite;
use super::ring::RingSetup;
use crate::bus::{AxisSrc, MsgSink, MsgSrc};
use crate::msg::{CtlReq, CtlResp};
use answer::Answer;
use check::Check;
use context::Context;
use ferric_abi::codes::{TargetOp, TargetStatus};
use ferric_abi::context::RspCtx;
use ferric_hdl_derive::kernel;
use grant::Grant;
use owners::{Owner, Owners};
use rust_hdl::prelude::*;
use told::Told;
use window::Window;

// Steps after which a request has been judged, and what its entry's owner means for it.
const JUDGED: u64 = 4;
const OWNED: u64 = 7;
/// Last word of a context.
const LAST_WORD: u64 = (RspCtx::BYTES / 4 - 1) as u64;
/// Words of the expected PSN and of the messages in it.
const EPSN: u64 = 5;
const MSN: u64 = 6;

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
#[derive(LogicBlock, Default)]
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
    /// Pulses that are counted: a RoCE frame, a request judged, a queue pair's error; an ARP or ICMP echo request answered, a malformed one.
    pub frame: Signal<In, Bit>,
    pub judged: Signal<In, Bit>,
    pub failed: Signal<In, Bit>,
    pub echoed: Signal<In, Bit>,
    pub malformed: Signal<In, Bit>,
    /// There is a queue pair.
    pub active: Signal<Out, Bit>,
    window: Window,
    answer: Answer,
    owners: Owners,
    check: Check<A>,
    context: Context,
    told: Told<A>,
    grant: Grant,
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
    fence: DFF<Bit>,
    qps: DFF<Bits<5>>,
    steps: DFF<Bits<4>>,
    op: Signal<Local, Bits<8>>,
    creates: Signal<Local, Bit>,
    keyed: Signal<Local, Bit>,
    life: Signal<Local, Bits<8>>,
    key_value: Signal<Local, Bits<32>>,
    line: Signal<Local, Bits<24>>,
}

#[kernel]
impl<const A: usize> Logic for Setup<A> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, entry, place, free, has, same, owner, status, object, word, fence, qps, steps);
        clock!(self, clock, window, answer, owners, check, context, told, grant);
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
        self.active.next = self.qps.q.val().any();
        self.barrier.next = self.fence.q.val();
        self.fence.d.next = false;

        // The request.
        self.op.next = self.window.request.val().op;
        self.creates.next = (self.op.val() == TargetOp::CreateQp as u64) | (self.op.val() == TargetOp::CreateKey as u64);
        self.keyed.next = (self.op.val() == TargetOp::CreateKey as u64) | (self.op.val() == TargetOp::DestroyKey as u64);
        self.check.request.next = self.window.request.val();
        self.check.ring.next = self.grant.ring.val();
        self.check.consumer.next = self.grant.consumer.val();
        self.check.head.next = self.ring_head.val();
        self.check.busy.next = self.qps.q.val().any();

        // The entry at hand.
        self.owners.request.next = self.window.request.val();
        self.owners.ip.next = self.window.sender.val().ip;
        self.owners.keyed.next = self.keyed.val();
        self.owners.entry.next = self.entry.q.val();
        self.owners.place.next = self.place.q.val();
        self.owners.write.next = false;
        self.owners.valid.next = self.creates.val();
        self.life.next = self.owner.q.val().life + 1;
        self.owners.life.next = self.life.val();
        self.owners.clear.next = self.state.q.val() == State::Clear;

        // Its context.
        self.line.next = bit_cast::<24, 4>(self.place.q.val().get_bits::<4>(0));
        self.context.reset.next = self.reset.val();
        self.context.go.next = (self.state.q.val() == State::Clear) | (self.state.q.val() == State::Stop) | (self.state.q.val() == State::Words) | (self.state.q.val() == State::Look);
        self.context.look.next = self.state.q.val() == State::Look;
        self.context.stop.next = (self.state.q.val() == State::Stop) | (self.state.q.val() == State::Clear);
        self.context.word.next = self.word.q.val();
        self.context.line.next = self.line.val();
        self.context.epoch.next = self.life.val();
        self.context.request.next = self.window.request.val();
        MsgSrc::<CtlReq>::link(&mut self.m_ctl, &mut self.context.m_ctl);
        MsgSink::<CtlResp>::link(&mut self.s_ctl, &mut self.context.s_ctl);

        // Keys and peers, when all else is done; empty ones after a reset.
        self.key_value.next = (bit_cast::<32, 4>(self.place.q.val().get_bits::<4>(0)) << 8) | bit_cast::<32, 8>(self.life.val());
        self.grant.reset.next = self.reset.val();
        self.grant.request.next = self.window.request.val();
        self.grant.sender.next = self.window.sender.val();
        self.grant.line.next = self.line.val();
        self.grant.life.next = self.life.val();
        self.grant.clear.next = self.state.q.val() == State::Clear;
        self.grant.ring_bytes.next = self.check.ring_bytes.val();
        self.grant.ring_same.next = self.check.ring_same.val();
        self.grant.ring_head.next = self.ring_head.val();
        self.grant.set_ring.next = false;
        self.grant.give_back.next = false;
        self.key.next = self.grant.key.val();
        self.key_en.next = false;
        self.peer.next = self.grant.peer.val();
        self.peer_en.next = false;
        self.ring.next = self.grant.ring.val();
        self.ring_consumer.next = self.grant.consumer.val();

        // The answer.
        self.told.reset.next = self.reset.val();
        self.told.now.next = self.now.val();
        self.told.request.next = self.window.request.val();
        self.told.status.next = self.status.q.val();
        self.told.object.next = self.object.q.val();
        self.told.clear.next = false;
        self.told.look.next = self.context.done.val() & (self.state.q.val() == State::Look);
        self.told.word.next = self.word.q.val();
        self.told.data.next = self.context.data.val();
        self.told.ring.next = self.grant.ring.val();
        self.told.head.next = self.ring_head.val();
        self.told.consumer.next = self.grant.consumer.val();
        self.told.frame.next = self.frame.val();
        self.told.judged.next = self.judged.val();
        self.told.failed.next = self.failed.val();
        self.told.echoed.next = self.echoed.val();
        self.told.malformed.next = self.malformed.val();
        self.told.told.next = self.state.q.val() == State::Tell;
        self.answer.reply.next = self.told.reply.val();

        match self.state.q.val() {
            State::Clear => {
                // Entry by entry: owner, key, peer, and word 0 of the context.
                self.word.d.next = bits::<6>(0);
                if self.context.done.val() {
                    self.owners.write.next = true;
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
                self.status.d.next = bits::<8>(TargetStatus::Done as u64);
                self.object.d.next = bits::<32>(0);
                self.told.clear.next = true;
                self.has.d.next = false;
                self.free.d.next = false;
                self.same.d.next = false;
                if self.window.some.val() {
                    self.state.d.next = State::Judge;
                }
            }
            State::Judge => {
                self.steps.d.next = self.steps.q.val() + 1;
                self.entry.d.next = self.owners.first.val();
                self.place.d.next = bit_cast::<5, 4>(self.window.request.val().object.get_bits::<4>(0));
                self.word.d.next = bits::<6>(0);
                if self.steps.q.val() == JUDGED {
                    self.state.d.next = State::Scan;
                    if self.window.malformed.val() {
                        self.status.d.next = bits::<8>(TargetStatus::Malformed as u64);
                        self.state.d.next = State::Tell;
                    } else if self.op.val() > TargetOp::Release as u64 {
                        self.status.d.next = bits::<8>(TargetStatus::UnknownOp as u64);
                        self.state.d.next = State::Tell;
                    } else if self.check.refused.val() {
                        self.status.d.next = bits::<8>(TargetStatus::Refused as u64);
                        self.state.d.next = State::Tell;
                    } else if self.op.val() == TargetOp::SetRing as u64 {
                        self.place.d.next = bits::<5>(0);
                        self.state.d.next = State::Commit;
                    } else if self.op.val() == TargetOp::Release as u64 {
                        self.grant.give_back.next = true;
                        self.state.d.next = State::Tell;
                    } else if self.op.val() == TargetOp::Query as u64 {
                        self.object.d.next = self.window.request.val().object;
                        self.state.d.next = State::Look;
                        if !self.owners.whole.val() {
                            self.status.d.next = bits::<8>(TargetStatus::NotFound as u64);
                            self.state.d.next = State::Tell;
                        }
                    }
                }
            }
            State::Scan => {
                self.owner.d.next = self.owners.owner.val();
                if self.creates.val() {
                    // Known already, or the first that is free.
                    if self.owners.known.val() {
                        self.place.d.next = self.entry.q.val();
                        self.has.d.next = true;
                        self.same.d.next = self.owners.same.val();
                        self.state.d.next = State::Found;
                    } else if !self.owners.owner.val().valid & !self.free.q.val() {
                        self.place.d.next = self.entry.q.val();
                        self.free.d.next = true;
                    }
                    if self.entry.q.val().get_bits::<4>(0).all() {
                        self.state.d.next = State::Found;
                    } else {
                        self.entry.d.next = self.entry.q.val() + 1;
                    }
                } else {
                    self.place.d.next = self.entry.q.val();
                    self.has.d.next = self.owners.mine.val() & self.owners.owner.val().valid & self.owners.whole.val() & self.owners.variant_ok.val();
                    self.same.d.next = self.owners.mine.val() & self.owners.whole.val() & !self.owners.owner.val().valid & self.owners.same.val();
                    self.state.d.next = State::Found;
                }
            }
            State::Found => {
                self.entry.d.next = self.place.q.val();
                self.steps.d.next = self.steps.q.val() + 1;
                // Two cycles: the entry's owner, then what to do.
                self.owner.d.next = self.owners.owner.val();
                if self.steps.q.val() == OWNED {
                    self.object.d.next = bit_cast::<32, 24>(self.line.val());
                    self.word.d.next = bits::<6>(0);
                    if self.same.q.val() {
                        // Done before.
                        if self.keyed.val() {
                            self.object.d.next = (bit_cast::<32, 24>(self.line.val()) << 8) | bit_cast::<32, 8>(self.owner.q.val().life);
                        }
                        self.state.d.next = State::Tell;
                    } else if !self.creates.val() & !self.has.q.val() {
                        self.status.d.next = bits::<8>(TargetStatus::NotFound as u64);
                        self.state.d.next = State::Tell;
                    } else if self.creates.val() & !self.has.q.val() & !self.free.q.val() {
                        self.status.d.next = bits::<8>(TargetStatus::Full as u64);
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
                if self.context.done.val() {
                    self.fence.d.next = true;
                    self.state.d.next = State::Fence;
                }
            }
            State::Fence => {
                self.word.d.next = bits::<6>(LAST_WORD);
                if self.barrier_done.val() {
                    self.state.d.next = State::Tell;
                    if self.op.val() == TargetOp::CreateQp as u64 {
                        self.state.d.next = State::Words;
                    } else if self.op.val() == TargetOp::DestroyQp as u64 {
                        self.state.d.next = State::Commit;
                    }
                }
            }
            State::Words => {
                // The peer's address before the queue pair wakes.
                self.peer_en.next = true;
                if self.context.done.val() {
                    self.word.d.next = self.word.q.val() - 1;
                    if !self.word.q.val().any() {
                        self.state.d.next = State::Commit;
                    }
                }
            }
            State::Commit => {
                self.state.d.next = State::Tell;
                self.key_en.next = self.keyed.val() | (self.op.val() == TargetOp::SetRing as u64);
                self.owners.write.next = self.op.val() != TargetOp::SetRing as u64;
                self.grant.set_ring.next = self.op.val() == TargetOp::SetRing as u64;
                if (self.op.val() == TargetOp::CreateQp as u64) & !self.has.q.val() {
                    self.qps.d.next = self.qps.q.val() + 1;
                }
                if self.op.val() == TargetOp::DestroyQp as u64 {
                    self.qps.d.next = self.qps.q.val() - 1;
                }
                if self.op.val() == TargetOp::DestroyKey as u64 {
                    // What passed the key's check is done before its end is told.
                    self.fence.d.next = true;
                    self.state.d.next = State::Fence;
                }
            }
            State::Look => {
                // State, expected PSN, messages.
                if self.context.done.val() {
                    self.word.d.next = bits::<6>(EPSN);
                    if self.word.q.val() == EPSN {
                        self.word.d.next = bits::<6>(MSN);
                    } else if self.word.q.val() == MSN {
                        self.state.d.next = State::Tell;
                    }
                }
            }
            State::Tell => {
                self.answer.start.next = true;
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
        if self.reset.val() {
            self.state.d.next = State::Clear;
            self.place.d.next = bits::<5>(0);
            self.word.d.next = bits::<6>(0);
            self.fence.d.next = false;
            self.qps.d.next = bits::<5>(0);
        }
    }
}
