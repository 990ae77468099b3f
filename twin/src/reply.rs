//! What a responder sends: acknowledges, answers to READs, results of atomics, in the order of its queue pair.
use crate::counters::count;
use crate::host::Host;
use crate::memory::{right, Fault, Owner};
use crate::requester::{HALF, PSN};
use crate::Twin;
use ferric_abi::codes::{CqeOpcode, CqeStatus};
use ferric_abi::wire::{feth, opcode, pmtu, syndrome, ICRC_BYTES};
use ferric_model::net::icrc::seal;
use ferric_model::roce::header::{put_header, Op};
use ferric_model::roce::responder::{kind, Order};
use std::collections::VecDeque;

/// READs and atomics that are kept, duplicates included, and from how many on duplicates are dropped.
const RING: usize = 32;
const CROWD: usize = 16;
/// Results of atomics that are kept for duplicates.
const RESULTS: usize = 32;
const ATOMIC_BYTES: u32 = 8;

/// A READ or an atomic that is to be answered.
#[derive(Clone, Copy)]
struct Question {
    psn: u32,
    msn: u32,
    /// It has been answered before.
    again: bool,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    /// `done` bytes of `len` have been sent.
    Read {
        va: u64,
        key: u32,
        len: u32,
        done: u32,
    },
    Atomic {
        original: u64,
    },
}

/// An acknowledge or NAK that waits.
#[derive(Clone, Copy)]
struct Answer {
    syndrome: u8,
    psn: u32,
    msn: u32,
}

/// What a queue pair has to answer.
#[derive(Default)]
pub(crate) struct Replies {
    ring: VecDeque<Question>,
    answer: Option<Answer>,
    /// PSN and result of atomics.
    results: VecDeque<(u32, u64)>,
    /// It has failed: nothing more is answered in this life.
    over: bool,
}

impl Replies {
    /// READs and atomics, duplicates apart, that have not been answered.
    pub(crate) fn open(&self) -> u32 {
        self.ring.iter().filter(|q| !q.again).count() as u32
    }

    /// The newest acknowledge takes the place of one that waits, but a NAK is not pushed out by that of an older packet. True: one has been left out.
    pub(crate) fn acknowledge(&mut self, syndrome: u8, psn: u32, msn: u32) {
        let older = self.answer.is_some_and(|a| a.syndrome != syndrome::ACK && a.psn.wrapping_sub(psn) & PSN < HALF && a.psn != psn);
        if !older && !self.over {
            self.answer = Some(Answer { syndrome, psn, msn });
        }
    }

    /// A NAK that ends the queue pair.
    pub(crate) fn refuse(&mut self, syndrome: u8, psn: u32, msn: u32) {
        self.acknowledge(syndrome, psn, msn);
    }

    fn waits(&self) -> bool {
        !self.ring.is_empty()
    }
}

impl Twin {
    /// A READ or atomic request that the judge has let pass.
    pub(crate) fn take_question(&mut self, host: &mut dyn Host, qpn: u32, o: &Order) -> Result<(), Fault> {
        let n = qpn as usize;
        let f = o.function.unwrap_or(0);
        let owner = Owner { function: f, pd: o.pd.unwrap_or(0), qpn };
        let (key, va, check, again) = (o.key.unwrap_or(0), o.va.unwrap_or(0), o.chk_len.unwrap_or(0), o.again == Some(true));
        let (read, flush) = (o.kind == Some(kind::READ), o.flush == Some(true));
        let rights = match (read, flush) {
            (true, true) => right::REMOTE_FLUSH,
            (true, false) => right::REMOTE_READ,
            _ => right::REMOTE_ATOMIC,
        };
        let psn = o.psn.unwrap_or(0);
        let whole = flush && o.imm.unwrap_or(0) & feth::WHOLE != 0;
        let reached = if check > 0 || flush { self.reach_part(host, owner, key, va, check, rights, whole) } else { Ok(0) };
        if again && reached.is_err() {
            // A duplicate whose key has gone: nothing is said.
            return Ok(());
        }
        let iova = reached?;
        let what = if read {
            What::Read { va, key, len: o.byte_len.unwrap_or(0), done: 0 }
        } else if again {
            let Some((_, original)) = self.responders[n].replies.results.iter().find(|(at, _)| *at == psn).copied() else {
                count!(self, f, "reply.replies_dropped");
                return Ok(());
            };
            What::Atomic { original }
        } else {
            What::Atomic { original: self.exchange(host, owner, iova, o)? }
        };
        let replies = &mut self.responders[n].replies;
        if replies.ring.len() >= if again { CROWD } else { RING } {
            count!(self, f, "reply.replies_dropped");
            return Ok(());
        }
        if let What::Atomic { original } = what {
            if !again {
                replies.results.push_back((psn, original));
                if replies.results.len() > RESULTS {
                    replies.results.pop_front();
                }
            }
        }
        if !again {
            // The response acknowledges all that came before (IBTA 9.7.5.1.3).
            replies.answer = None;
        }
        replies.ring.push_back(Question { psn, msn: o.msn.unwrap_or(0), again, what });
        if again {
            count!(self, f, "reply.answered_again");
        } else if read {
            count!(self, f, "reply.reads");
        } else {
            count!(self, f, "reply.atomics");
        }
        Ok(())
    }

    /// An ATOMIC WRITE has been executed: it is answered as a READ of no bytes is.
    pub(crate) fn take_written(&mut self, qpn: u32, o: &Order) {
        let replies = &mut self.responders[qpn as usize].replies;
        replies.answer = None;
        replies.ring.push_back(Question { psn: o.psn.unwrap_or(0), msn: o.msn.unwrap_or(0), again: false, what: What::Read { va: 0, key: 0, len: 0, done: 0 } });
        count!(self, o.function.unwrap_or(0), "reply.reads");
    }

    /// Executes an atomic on the eight bytes at `iova`; what was there.
    fn exchange(&mut self, host: &mut dyn Host, owner: Owner, iova: u64, o: &Order) -> Result<u64, Fault> {
        let mut bytes = [0; ATOMIC_BYTES as usize];
        if !self.dma_read(host, owner.function, iova, &mut bytes) {
            return Err(Fault::Dma);
        }
        let (original, operand) = (u64::from_le_bytes(bytes), o.operand.unwrap_or(0));
        let changed = if o.opcode == Some(CqeOpcode::FetchAdd as u8) { Some(original.wrapping_add(operand)) } else { (o.compare == Some(original)).then_some(operand) };
        match changed {
            Some(value) if !self.dma_write(host, owner.function, iova, &value.to_le_bytes()) => Err(Fault::Dma),
            _ => Ok(original),
        }
    }

    /// Sends up to `packets` packets of what the queue pair has to answer. True: there is more.
    pub(crate) fn reply_turn(&mut self, host: &mut dyn Host, qpn: u32, packets: usize) -> bool {
        let n = qpn as usize;
        self.ahead.forget();
        for sent in 0..packets {
            self.ahead.may_send(packets - sent);
            let Some(question) = self.responders[n].replies.ring.front().copied() else { break };
            if self.send_answer(host, qpn, question) {
                continue;
            }
            self.responders[n].replies.ring.clear();
            self.responders[n].replies.acknowledge(syndrome::NAK_OPERATION, question.psn, question.msn);
            self.responders[n].replies.over = true;
            let f = self.tables.rsp[n].function();
            count!(self, f, "reply.reply_errors");
            let epoch = self.tables.rsp[n].epoch();
            self.responder_error(host, qpn, Some(epoch), CqeStatus::Fatal as u8);
        }
        if self.responders[n].replies.waits() {
            return true;
        }
        self.send_acknowledge(qpn);
        false
    }

    /// One packet of an answer. False: it cannot be given.
    fn send_answer(&mut self, host: &mut dyn Host, qpn: u32, q: Question) -> bool {
        let n = qpn as usize;
        let rsp = self.tables.rsp[n];
        let aeth = Some(u32::from(syndrome::ACK) << 24 | q.msn);
        let op = Op { qpn, dest_qpn: rsp.dest_qpn(), psn: q.psn, ..Op::default() };
        match q.what {
            What::Atomic { original } => {
                self.responders[n].replies.ring.pop_front();
                let op = Op { opcode: opcode::ATOMIC_ACKNOWLEDGE, aeth, atomic_ack: Some(original), ..op };
                self.send_bare(qpn, &op);
                true
            }
            What::Read { va, key, len, done } => {
                let mtu = pmtu::bytes(rsp.pmtu()) as u32;
                let length = mtu.min(len - done);
                let (first, last) = (done == 0, done + length == len);
                let opcode = match (first, last) {
                    (true, true) => opcode::READ_RESPONSE_ONLY,
                    (true, false) => opcode::READ_RESPONSE_FIRST,
                    (false, false) => opcode::READ_RESPONSE_MIDDLE,
                    (false, true) => opcode::READ_RESPONSE_LAST,
                };
                let op = Op { opcode, psn: q.psn, pad: ((4 - length % 4) % 4) as u8, pay_len: length as u16, aeth: aeth.filter(|_| first || last), ..op };
                let mut frame = Vec::with_capacity(128 + length as usize);
                put_header(&mut frame, &op, &self.tables.path[n]);
                let (owner, at) = (Owner { function: rsp.function(), pd: rsp.pd(), qpn }, va.wrapping_add(done.into()));
                let read = self.append(&mut frame, done.into(), length as usize, (len - done) as usize, |twin, out| twin.load(host, owner, key, at, right::REMOTE_READ, out));
                if read.is_ok() {
                    frame.resize(frame.len() + usize::from(op.pad) + ICRC_BYTES, 0);
                    seal(&mut frame);
                    self.emit(rsp.function(), frame);
                } else {
                    count!(self, 0, "egress.tx_aborted");
                    // A packet of a duplicate is left out: its key may have gone with the first answer, and a peer that has not had that asks again.
                    if !q.again {
                        return false;
                    }
                }
                let ring = &mut self.responders[n].replies.ring;
                if last {
                    self.ahead.forget();
                    ring.pop_front();
                } else if let Some(front) = ring.front_mut() {
                    front.psn = (q.psn + 1) & PSN;
                    front.what = What::Read { va, key, len, done: done + length };
                }
                true
            }
        }
    }

    /// The acknowledge or NAK that waits, if nothing has to go before it.
    pub(crate) fn send_acknowledge(&mut self, qpn: u32) {
        let n = qpn as usize;
        if self.responders[n].replies.waits() {
            return;
        }
        let Some(a) = self.responders[n].replies.answer.take() else { return };
        let rsp = self.tables.rsp[n];
        let f = rsp.function();
        match a.syndrome >> 5 & 3 {
            syndrome::KIND_ACK => count!(self, f, "ackgen.ack_sent"),
            syndrome::KIND_RNR => count!(self, f, "ackgen.rnr_nak_sent"),
            _ => count!(self, f, "ackgen.nak_sent"),
        }
        let op = Op { qpn, opcode: opcode::ACKNOWLEDGE, dest_qpn: rsp.dest_qpn(), psn: a.psn, aeth: Some(u32::from(a.syndrome) << 24 | a.msn & PSN), ..Op::default() };
        self.send_bare(qpn, &op);
    }

    /// A packet without payload.
    fn send_bare(&mut self, qpn: u32, op: &Op) {
        let mut frame = Vec::with_capacity(128);
        put_header(&mut frame, op, &self.tables.path[qpn as usize]);
        frame.resize(frame.len() + ICRC_BYTES, 0);
        seal(&mut frame);
        self.emit(self.tables.rsp[qpn as usize].function(), frame);
    }
}
