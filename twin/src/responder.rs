//! The receiving half of a queue pair: the golden judge decides (`ferric_model::roce::responder`), its orders are carried out here.
use crate::counters::count;
use crate::host::Host;
use crate::memory::{Fault, List, Owner, Slot};
use crate::reply::Replies;
use crate::rings::Taken;
use crate::Twin;
use ferric_abi::codes::{CqeOpcode, CqeStatus, EventKind};
use ferric_abi::context::RspCtx;
use ferric_abi::host::{Cqe, RecvHead};
use ferric_abi::wire::syndrome;
use ferric_model::keys::{invalidate, Asker};
use ferric_model::roce::responder::{kind, Act, Grant, Judge, Message, Order, Packet, Qp, Receives};

/// Bit of `RspCtx::rq_handle`: a receive is taken and not complete.
const HELD: u8 = 0x80;
/// `RspCtx::in_msg`.
const SEND: u8 = 1;
const WRITE: u8 = 2;
/// Where the entries of a receive begin, and how many there may be.
const ENTRIES_AT: usize = RecvHead::BYTES;
const ENTRIES: u8 = 31;

/// What the context line does not hold.
#[derive(Default)]
pub(crate) struct Responder {
    /// The receive that is in use.
    pub receive: Option<Box<Slot>>,
    /// Status of the message under way of an unreliable queue pair that has failed: nothing more of it is placed.
    pub spoiled: Option<Fault>,
    pub replies: Replies,
}

impl Responder {
    /// A new life: nothing of the former one remains.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

fn judged(c: &RspCtx, open: u32) -> Qp {
    let message = (c.in_msg() != 0).then(|| Message { write: c.in_msg() == WRITE, va: c.va(), rkey: c.rkey(), remaining: c.remaining(), bytes: c.msg_bytes() });
    Qp {
        state: c.state(),
        qp_type: c.qp_type(),
        pmtu: c.pmtu(),
        min_rnr_timer: c.min_rnr_timer(),
        remote_write: c.remote_write(),
        remote_read: c.remote_read(),
        remote_atomic: c.remote_atomic(),
        remote_flush: c.remote_flush(),
        epoch: c.epoch(),
        rcqn: c.rcqn(),
        pd: c.pd(),
        function: c.function(),
        pkey: c.pkey(),
        qkey: c.qkey(),
        dest_qpn: c.dest_qpn(),
        ipv6: c.ipv6(),
        vlan: c.vlan(),
        epsn: c.epsn(),
        msn: c.msn(),
        nak_sent: c.nak_sent(),
        repeat_nak: c.repeat_nak(),
        rnr_sent: c.rnr_sent(),
        ahead: c.ahead().into(),
        rq: c.rq(),
        srq: c.srq(),
        rq_pd: c.rq_pd(),
        max_dest_rd_atomic: c.max_dest_rd_atomic().into(),
        open,
        message,
        receive: (c.rq_handle() & HELD != 0).then(|| (0, c.rq_index().into())),
    }
}

fn keep(c: &mut RspCtx, qp: &Qp) {
    c.set_state(qp.state).set_epsn(qp.epsn).set_msn(qp.msn).set_nak_sent(qp.nak_sent).set_rnr_sent(qp.rnr_sent).set_ahead(qp.ahead as u8);
    c.set_in_msg(qp.message.as_ref().map_or(0, |m| if m.write { WRITE } else { SEND }));
    if let Some(m) = &qp.message {
        c.set_va(m.va).set_rkey(m.rkey).set_remaining(m.remaining).set_msg_bytes(m.bytes);
    }
    match qp.receive {
        Some((_, index)) => c.set_rq_handle(HELD).set_rq_index(index as u16),
        None => c.set_rq_handle(0),
    };
}

/// The receive rings, for the judge.
struct Rings<'a> {
    twin: &'a mut Twin,
    host: &'a mut dyn Host,
    qpn: u32,
}

impl Receives for Rings<'_> {
    fn grant(&mut self, qp: &Qp) -> Grant {
        match self.twin.fetch_receive(self.host, qp.rq) {
            Taken::None => {
                self.twin.empty = true;
                Grant::None
            }
            Taken::Dead => Grant::Dead,
            Taken::Slot(index, slot) => {
                self.twin.responders[self.qpn as usize].receive = Some(Box::new(slot));
                Grant::Some(0, index.into())
            }
        }
    }
}

impl Twin {
    /// What the judge says, carried out. `frame`: what the orders place from.
    fn decide(&mut self, host: &mut dyn Host, qpn: u32, frame: &[u8], act: impl FnOnce(&mut Judge, &mut Qp)) {
        let n = qpn as usize;
        let mut qp = judged(&self.tables.rsp[n], self.responders[n].replies.open());
        let mut acts = std::mem::take(&mut self.acts);
        act(&mut Judge { receives: &mut Rings { twin: self, host: &mut *host, qpn }, acts: &mut acts }, &mut qp);
        keep(&mut self.tables.rsp[n], &qp);
        self.verdict = acts.iter().find_map(|act| match act {
            Act::Place(o) => Some((o.kind.unwrap_or(kind::NOTHING), o.syndrome.filter(|_| o.ack == Some(true)))),
            _ => None,
        });
        // A receive in hand is completed before the queue is flushed.
        acts.sort_by_key(|act| match act {
            Act::Place(order) if order.cqe == Some(false) && order.kind == Some(kind::FLUSH) => 3,
            Act::Place(_) => 0,
            Act::FlushQueue(_) => 1,
            Act::Error { .. } => 2,
        });
        for act in acts.drain(..) {
            match act {
                // Behind one that has failed nothing is placed.
                Act::Place(_) if self.failure.is_some() => {}
                Act::Place(order) => self.carry_out(host, qpn, &order, frame),
                Act::FlushQueue(_) => {
                    self.tables.rq[n].set_flush(true);
                    self.flush_receives(host, qpn);
                }
                Act::Error { cause, .. } => self.requester_error(host, qpn, cause),
            }
        }
        self.acts = acts;
        if let Some((epoch, cause)) = self.failure.take() {
            self.responder_error(host, qpn, Some(epoch), cause);
        }
    }

    /// A request for `qpn`, which receives.
    pub(crate) fn request(&mut self, host: &mut dyn Host, qpn: u32, p: &Packet, frame: &[u8]) {
        let before = self.tables.rsp[qpn as usize];
        self.empty = false;
        self.decide(host, qpn, frame, |judge, qp| judge.packet(qpn, p, qp));
        self.count_verdict(&before, p);
    }

    /// The responder half ends: because of an order of life `epoch`, or because the requester half has.
    pub(crate) fn responder_error(&mut self, host: &mut dyn Host, qpn: u32, epoch: Option<u8>, cause: u8) {
        self.decide(host, qpn, &[], |judge, qp| judge.error(qpn, qp, epoch, cause));
    }

    /// A new life begins: what is kept of an earlier one does not count.
    pub(crate) fn new_life(&mut self, qpn: u32) {
        self.responders[qpn as usize].clear();
        self.tables.rsp[qpn as usize].set_in_msg(0).set_rq_handle(0);
    }

    fn carry_out(&mut self, host: &mut dyn Host, qpn: u32, o: &Order, frame: &[u8]) {
        match o.kind.unwrap_or(kind::NOTHING) {
            kind::FLUSH if o.cqe == Some(true) => {
                self.responders[qpn as usize].receive = None;
                self.flush_receive(host, qpn, o.rq_index.unwrap_or(0) as u16);
            }
            kind::FLUSH => {
                let cqn = self.tables.rsp[qpn as usize].rcqn() as usize;
                let eqn = self.tables.cq[cqn].eqn();
                self.event(host, eqn, EventKind::LastWqe, qpn, 0);
            }
            kind::READ | kind::ATOMIC => match self.take_question(host, qpn, o) {
                Ok(()) => self.activate(qpn),
                Err(fault) => self.failed(host, qpn, o, fault, Party::Peer),
            },
            kind::WRITE | kind::SEND => self.place(host, qpn, o, frame),
            _ => self.answer_order(qpn, o),
        }
    }

    fn place(&mut self, host: &mut dyn Host, qpn: u32, o: &Order, frame: &[u8]) {
        let n = qpn as usize;
        let soft = o.soft == Some(true);
        if o.first == Some(true) {
            self.responders[n].spoiled = None;
        }
        let (from, len) = (o.pay_off.unwrap_or(0) as usize, o.pay_len.unwrap_or(0) as usize);
        let data = frame.get(from..from + len).unwrap_or(&[]);
        let write = o.kind == Some(kind::WRITE);
        let fault = match self.responders[n].spoiled {
            Some(fault) => Err((fault, Party::Peer)),
            None if write => self.place_write(host, qpn, o, data).map_err(|fault| (fault, Party::Peer)),
            None => self.place_send(host, qpn, o, data),
        };
        let rsp = self.tables.rsp[n];
        let mut status = CqeStatus::Success;
        if let Err((fault, party)) = fault {
            let spared = soft && (write || fault == Fault::Short);
            if !spared {
                return self.failed(host, qpn, o, fault, party);
            }
            if self.responders[n].spoiled.is_none() {
                count!(self, rsp.function(), "place.msg_dropped");
            } else {
                count!(self, rsp.function(), "place.poisoned");
            }
            self.responders[n].spoiled = Some(fault);
            if !write && o.done == Some(true) {
                count!(self, rsp.function(), "complete.recv_too_small");
            }
            status = if write { CqeStatus::LocalAccess } else { CqeStatus::LocalLength };
        }
        if o.cqe == Some(true) {
            self.responders[n].receive = None;
            let fine = status == CqeStatus::Success;
            let entry = self.receipt(qpn, o).with_status(status as u8).with_imm_valid(fine && o.has_imm == Some(true));
            self.complete(host, rsp.rcqn(), rsp.function(), entry);
        }
        if o.done == Some(true) {
            self.responders[n].spoiled = None;
        }
        if write && o.opcode == Some(CqeOpcode::AtomicWrite as u8) {
            self.take_written(qpn, o);
            self.activate(qpn);
        } else {
            self.answer_order(qpn, o);
        }
    }

    /// The completion of the order's receive, as if all were well.
    fn receipt(&self, qpn: u32, o: &Order) -> Cqe {
        let yes = |flag: Option<bool>| flag == Some(true);
        Cqe::default()
            .with_wqe_index(o.rq_index.unwrap_or(0) as u16)
            .with_opcode(o.opcode.unwrap_or(CqeOpcode::Recv as u8))
            .with_qpn(qpn)
            .with_is_recv(true)
            .with_imm_valid(yes(o.has_imm))
            .with_solicited(yes(o.solicited))
            .with_grh(yes(o.grh))
            .with_inv_valid(yes(o.inv))
            .with_byte_len(o.byte_len.unwrap_or(0))
            .with_imm(o.imm.unwrap_or(0))
            .with_src_qp(o.src_qpn.unwrap_or(0))
    }

    fn place_write(&mut self, host: &mut dyn Host, qpn: u32, o: &Order, data: &[u8]) -> Result<(), Fault> {
        let owner = Owner { function: o.function.unwrap_or(0), pd: o.pd.unwrap_or(0), qpn };
        self.store(host, owner, o.key.unwrap_or(0), o.va.unwrap_or(0), o.chk_len.unwrap_or(0), o.done == Some(true), data)
    }

    fn place_send(&mut self, host: &mut dyn Host, qpn: u32, o: &Order, data: &[u8]) -> Result<(), (Fault, Party)> {
        let n = qpn as usize;
        let rsp = self.tables.rsp[n];
        if let Some(slot) = self.responders[n].receive.take() {
            let owner = Owner { function: rsp.function(), pd: rsp.rq_pd(), qpn };
            let entries = slot.bytes[0];
            let placed = if slot.failed || entries > ENTRIES {
                Err(Fault::List)
            } else {
                self.scatter(host, owner, List { slot: &slot, at: ENTRIES_AT, entries: entries.into() }, o.msg_off.unwrap_or(0).into(), data)
            };
            self.responders[n].receive = Some(slot);
            placed.map_err(|fault| (fault, Party::Receiver))?;
        }
        if o.inv == Some(true) {
            let by = Asker { pd: rsp.pd(), function: rsp.function(), qpn };
            if invalidate(&mut self.tables.mr, o.imm.unwrap_or(0), by, true) != 0 {
                count!(self, 0, "mr.changes_refused");
                return Err((Fault::Key, Party::Invalidation));
            }
            count!(self, 0, "mr.invalidated");
        }
        Ok(())
    }

    /// An order could not be carried out: the receive, the peer and the requester half are told, and the queue pair ends.
    pub(crate) fn failed(&mut self, host: &mut dyn Host, qpn: u32, o: &Order, fault: Fault, party: Party) {
        let n = qpn as usize;
        let f = self.tables.rsp[n].function();
        count!(self, f, "place.place_failed");
        let (nak, cause) = match (party, fault) {
            (_, Fault::Short) => (syndrome::NAK_INVALID, CqeStatus::LocalLength),
            (Party::Invalidation, _) => (syndrome::NAK_ACCESS, CqeStatus::RemoteAccess),
            (Party::Receiver, Fault::Key) => (syndrome::NAK_OPERATION, CqeStatus::LocalProtection),
            (Party::Peer, Fault::Key) => (syndrome::NAK_ACCESS, CqeStatus::RemoteAccess),
            (Party::Peer, Fault::Table) => (syndrome::NAK_OPERATION, CqeStatus::RemoteOperation),
            _ => (syndrome::NAK_OPERATION, CqeStatus::Fatal),
        };
        match nak {
            syndrome::NAK_INVALID => count!(self, f, "complete.nak_inv_sent"),
            syndrome::NAK_ACCESS => count!(self, f, "complete.nak_access_sent"),
            _ => count!(self, f, "complete.nak_op_sent"),
        }
        match fault {
            Fault::Short => count!(self, f, "complete.recv_too_small"),
            Fault::Dma => count!(self, f, "complete.writes_failed"),
            _ => {}
        }
        let send = o.kind == Some(kind::SEND);
        if send || o.cqe == Some(true) {
            let status = match party {
                _ if !send => CqeStatus::WrFlush,
                Party::Invalidation => CqeStatus::RemoteInvalidRequest,
                _ => cause,
            };
            let entry = self.receipt(qpn, o).with_status(status as u8).with_imm_valid(false).with_inv_valid(false);
            let rcqn = self.tables.rsp[n].rcqn();
            self.responders[n].receive = None;
            // It is not told twice.
            self.tables.rsp[n].set_rq_handle(0);
            self.complete(host, rcqn, f, entry);
        }
        if o.replies == Some(true) {
            let msn = o.msn.unwrap_or(0).wrapping_sub(u32::from(o.done == Some(true)));
            self.responders[n].replies.refuse(nak, o.psn.unwrap_or(0), msn);
            self.activate_answers(qpn);
        }
        let epoch = self.tables.rsp[n].epoch();
        self.failure = Some((epoch, cause as u8));
    }

    /// The acknowledge, or NAK, that goes with an order.
    fn answer_order(&mut self, qpn: u32, o: &Order) {
        if o.ack != Some(true) {
            return;
        }
        self.responders[qpn as usize].replies.acknowledge(o.syndrome.unwrap_or(syndrome::ACK), o.psn.unwrap_or(0), o.msn.unwrap_or(0));
        self.activate_answers(qpn);
    }
}

/// Whose fault a failed order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    /// The peer's, which named a key.
    Peer,
    /// The receive's.
    Receiver,
    /// The peer's, which named a key to invalidate.
    Invalidation,
}
