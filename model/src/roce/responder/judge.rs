//! What becomes of a packet, and of a queue pair that has failed.
use super::{kind, Act, Grant, Message, Order, Packet, Qp, Receives};

/// Longest READ.
const LONGEST: u32 = 1 << 31;
/// Opcodes of annex A19.
const FLUSH: u8 = 0x1c;
const ATOMIC_WRITE: u8 = 0x1d;
/// `CqeOpcode::AtomicWrite`.
const STORED: u8 = 12;

/// NAK code of a request with an answer of its own that is wrong in itself: payload, length, alignment, right (IBTA 9.4.5, 9.7.4.1, annex A19).
fn malformed(p: &Packet, qp: &Qp) -> Option<u8> {
    let (right, sound, payload) = match p.opcode {
        0x0c => (qp.remote_read, p.dma_len <= LONGEST, 0),
        // A placement type and a level that have a meaning.
        FLUSH => (qp.remote_flush, p.imm & 3 != 0 && p.imm & 0x2c == 0 && (whole(p) || p.dma_len <= LONGEST), 0),
        // The right to WRITE is looked at as that of a WRITE is.
        ATOMIC_WRITE => (true, p.va % 8 == 0 && p.dma_len == 8, 8),
        _ => (qp.remote_atomic, p.va % 8 == 0, 0),
    };
    (p.pay_len != payload || p.pad != 0 || !right || !sound).then_some(1)
}

/// A FLUSH of the whole region.
fn whole(p: &Packet) -> bool {
    p.imm & 16 != 0
}

const FIRST: u8 = 0;
const MIDDLE: u8 = 1;
const LAST: u8 = 2;
const ONLY: u8 = 3;

/// (write, position, immediate) of the opcodes served.
fn request(opcode: u8) -> Option<(bool, u8, bool)> {
    Some(match opcode & 31 {
        0x00 => (false, FIRST, false),
        0x01 => (false, MIDDLE, false),
        0x02 => (false, LAST, false),
        0x03 => (false, LAST, true),
        0x04 => (false, ONLY, false),
        0x05 => (false, ONLY, true),
        0x06 => (true, FIRST, false),
        0x07 => (true, MIDDLE, false),
        0x08 => (true, LAST, false),
        0x09 => (true, LAST, true),
        0x0a => (true, ONLY, false),
        0x0b => (true, ONLY, true),
        // With invalidate, on reliable connections only.
        0x16 if opcode == 0x16 => (false, LAST, false),
        0x17 if opcode == 0x17 => (false, ONLY, false),
        ATOMIC_WRITE if opcode == ATOMIC_WRITE => (true, ONLY, false),
        _ => return None,
    })
}

/// PSNs of a READ: one per packet of its response (IBTA 9.7.2.1).
fn packets(p: &Packet, qp: &Qp) -> u32 {
    p.dma_len.div_ceil(128 << qp.pmtu).max(1)
}

/// Requests of a reliable connection that have an answer of their own.
fn reads(p: &Packet) -> bool {
    matches!(p.opcode, 0x0c | 0x13 | 0x14 | FLUSH | ATOMIC_WRITE)
}

/// Who is asked for receives, and what has been decided about a packet or an error so far.
pub struct Judge<'a> {
    pub receives: &'a mut dyn Receives,
    pub acts: &'a mut Vec<Act>,
}

impl Judge<'_> {
    /// Judges a packet for queue pair `id`, which receives (RTR or RTS). The first act is the packet's order; a datagram has two.
    pub fn packet(&mut self, id: u32, p: &Packet, qp: &mut Qp) {
        let mut op = nothing(p);
        (op.qpn, op.epoch) = (Some(id), Some(qp.epoch));
        let first_act = self.acts.len();
        if p.raw {
            self.raw(p, qp, &mut op);
        } else {
            let member = (p.pkey | qp.pkey) & 0x8000 != 0 && (p.pkey ^ qp.pkey) & 0x7fff == 0;
            let reply = (0x0d..=0x12).contains(&(p.opcode & 31));
            match (qp.qp_type, p.opcode >> 5) {
                _ if reply || !member => {}
                (0, 0) => self.reliable(id, p, qp, &mut op),
                (1, 1) => self.unreliable(id, p, qp, &mut op),
                (2, 3) => {
                    if let Some(area) = self.datagram(id, p, qp, &mut op) {
                        self.acts.extend([Act::Place(area), Act::Place(op)]);
                        return;
                    }
                }
                _ => {}
            }
        }
        self.acts.insert(first_act, Act::Place(op));
    }

    fn raw(&mut self, p: &Packet, qp: &mut Qp, op: &mut Order) {
        if qp.qp_type != 3 {
            return;
        }
        let Grant::Some(handle, index) = self.receives.grant(qp) else { return };
        place(op, kind::SEND, (0, p.frame_len, 0));
        receives(op, qp, (handle, index));
        completes(op, p.frame_len, 16, None);
        (op.replies, op.function) = (Some(false), Some(qp.function));
    }

    /// A datagram: the order of its IP header, if that is one of its own, and `op`, that of the payload. The header takes the first 40 bytes
    /// of the receive, one of IPv4 the last 20 of them (IBTA 11.4.1.2, annex A17).
    fn datagram(&mut self, id: u32, p: &Packet, qp: &mut Qp, op: &mut Order) -> Option<Order> {
        let imm = match p.opcode {
            0x64 => false,
            0x65 => true,
            _ => return None,
        };
        if p.qkey != qp.qkey || p.pay_len > 128 << qp.pmtu || p.pad != (4 - p.pay_len % 4) % 4 {
            return None;
        }
        let (handle, index) = match self.receives.grant(qp) {
            Grant::Some(handle, index) => (handle, index),
            Grant::Dead => {
                self.fall(id, qp, Some(2));
                return None;
            }
            Grant::None => return None,
        };
        let header = (if p.tag { 18 } else { 14 }, if p.v6 { 40 } else { 20 }, if p.v6 { 0 } else { 20 });
        op.kind = Some(kind::SEND);
        (op.grh, op.soft, op.first) = (Some(true), Some(true), Some(p.pay_len == 0));
        receives(op, qp, (handle, index));
        (op.replies, op.pd, op.function) = (Some(false), Some(qp.rq_pd), Some(qp.function));
        let mut area = op.clone();
        place(&mut area, kind::SEND, header);
        (area.has_frame, area.first) = (Some(false), Some(true));
        completes(op, 40 + p.pay_len, 16 + u8::from(imm), imm.then_some(p.imm));
        (op.src_qpn, op.solicited) = (Some(p.src_qpn), Some(p.solicited));
        if p.pay_len == 0 {
            place(op, kind::SEND, header);
            return None;
        }
        place(op, kind::SEND, (p.pay_off, p.pay_len, 40));
        Some(area)
    }

    fn reliable(&mut self, id: u32, p: &Packet, qp: &mut Qp, op: &mut Order) {
        let distance = p.psn.wrapping_sub(qp.epsn) & 0xff_ffff;
        if distance >= 1 << 23 {
            if reads(p) {
                let n = if p.opcode == 0x0c { packets(p, qp) } else { 1 };
                // All of it must be behind, and nothing wrong with it but its age.
                if malformed(p, qp).is_none() && n <= (distance.wrapping_neg() & 0xff_ffff) {
                    answer(op, qp, 0x1f, p.psn);
                    read(p, qp, op);
                    op.again = Some(true);
                    if p.opcode != 0x0c {
                        op.chk_len = Some(0);
                        op.opcode = None;
                        op.flush = op.flush.map(|_| false);
                    }
                }
                return;
            }
            let last = matches!(request(p.opcode), Some((_, LAST | ONLY, _)));
            if p.ack_req || last {
                answer(op, qp, 0x1f, qp.epsn.wrapping_sub(1) & 0xff_ffff);
            }
            return;
        }
        if distance > 0 {
            // PSNs rise until the peer repeats: one that does not is the sign that it has, and that the expected packet was lost once more.
            let ahead = distance.min(255);
            let repeats = ahead <= qp.ahead && ahead < 255;
            // The NAK may be lost, too: where the queue pair is set so, some of the packets behind the gap bring it again.
            let reminds = qp.repeat_nak && ahead % 64 == 0;
            if !qp.nak_sent && !qp.rnr_sent || repeats || reminds && qp.nak_sent {
                qp.nak_sent = true;
                answer(op, qp, 0x60, qp.epsn);
            }
            qp.ahead = ahead;
            return;
        }
        let fault = match fault(p, qp) {
            Some(code) => code,
            None if reads(p) && p.opcode != ATOMIC_WRITE => {
                qp.epsn = (p.psn + if p.opcode == 0x0c { packets(p, qp) } else { 1 }) & 0xff_ffff;
                qp.msn = (qp.msn + 1) & 0xff_ffff;
                qp.open += 1;
                (qp.nak_sent, qp.rnr_sent) = (false, false);
                answer(op, qp, 0x1f, p.psn);
                (op.again, op.done) = (Some(false), Some(true));
                return read(p, qp, op);
            }
            None => {
                match self.receive(p, qp) {
                    Grant::Some(..) => {}
                    Grant::Dead => {
                        answer(op, qp, 0x63, p.psn);
                        return self.fall(id, qp, Some(2));
                    }
                    Grant::None => {
                        qp.rnr_sent = true;
                        qp.nak_sent = false;
                        qp.ahead = 0;
                        return answer(op, qp, 0x20 | qp.min_rnr_timer, p.psn);
                    }
                }
                execute(p, qp, op);
                (op.replies, op.syndrome) = (Some(true), Some(0x1f));
                if p.opcode == ATOMIC_WRITE {
                    // Answered as a READ of no bytes is.
                    qp.open += 1;
                    (op.opcode, op.byte_len) = (Some(STORED), Some(0));
                }
                if p.ack_req || p.opcode == ATOMIC_WRITE {
                    answer(op, qp, 0x1f, p.psn);
                }
                return;
            }
        };
        answer(op, qp, 0x60 | fault, p.psn);
        self.fall(id, qp, Some(8 + fault));
    }

    fn unreliable(&mut self, id: u32, p: &Packet, qp: &mut Qp, op: &mut Order) {
        let start = matches!(request(p.opcode), Some((_, FIRST | ONLY, _)));
        let expected = qp.epsn;
        if start {
            // A new message ends whatever was lost in part; its receive request serves the next.
            qp.message = None;
            qp.epsn = p.psn;
        }
        let taken = if qp.epsn != p.psn || fault(p, qp).is_some() { Grant::None } else { self.receive(p, qp) };
        match taken {
            Grant::Some(..) => {}
            Grant::Dead => {
                qp.epsn = expected;
                return self.fall(id, qp, Some(2));
            }
            Grant::None => {
                qp.message = None;
                qp.epsn = (p.psn + 1) & 0xff_ffff;
                return;
            }
        }
        execute(p, qp, op);
        op.replies = Some(false);
    }

    /// Takes a receive request if this packet needs one; `Some` also if it needs none.
    fn receive(&mut self, p: &Packet, qp: &mut Qp) -> Grant {
        let Some((write, position, imm)) = request(p.opcode) else { return Grant::None };
        let needs = if write { imm } else { position == FIRST || position == ONLY };
        if needs && qp.receive.is_none() {
            let answer = self.receives.grant(qp);
            if let Grant::Some(handle, index) = answer {
                qp.receive = Some((handle, index));
            }
            return answer;
        }
        Grant::Some(0, 0)
    }

    /// To ERROR; `cause`: tell the requester.
    pub fn fall(&mut self, id: u32, qp: &mut Qp, cause: Option<u8>) {
        qp.state = 6;
        if !qp.srq {
            self.acts.push(Act::FlushQueue(id));
        }
        if let Some(cause) = cause {
            self.acts.push(Act::Error { qpn: id, epoch: qp.epoch, cause });
        }
        let flush = Order { kind: Some(kind::FLUSH), has_frame: Some(false), qpn: Some(id), done: Some(true), ack: Some(false), rcqn: Some(qp.rcqn), ..Order::default() };
        if let Some(receive) = qp.receive.take() {
            let mut order = Order { epoch: Some(qp.epoch), cqe: Some(true), ..flush.clone() };
            receives(&mut order, qp, receive);
            order.free_rq = Some(true);
            self.acts.push(Act::Place(order));
        }
        if qp.srq {
            // Its last receive has gone by: told behind the completions (IBTA 11.6.3.1).
            self.acts.push(Act::Place(Order { cqe: Some(false), free_rq: Some(false), ..flush }));
        }
    }

    /// A queue pair error reported by completion (`Some(epoch)`) or by the requester.
    pub fn error(&mut self, id: u32, qp: &mut Qp, epoch: Option<u8>, cause: u8) {
        if qp.state == 0 || qp.state == 6 || epoch.is_some_and(|epoch| epoch != qp.epoch) {
            return;
        }
        self.fall(id, qp, epoch.map(|_| cause));
    }
}

/// The order of a frame of which nothing is placed.
pub fn nothing(p: &Packet) -> Order {
    let no = Some(false);
    Order { kind: Some(kind::NOTHING), has_frame: Some(true), handle: Some(p.handle), ack: no, done: no, cqe: no, free_rq: no, flush: no, ..Order::default() }
}

/// The packet is answered.
fn answer(op: &mut Order, qp: &Qp, syndrome: u8, psn: u32) {
    (op.ack, op.replies, op.syndrome, op.psn, op.msn) = (Some(true), Some(true), Some(syndrome), Some(psn), Some(qp.msn));
    (op.dest_qpn, op.ipv6, op.vlan) = (Some(qp.dest_qpn), Some(qp.ipv6), Some(qp.vlan));
}

/// Bytes of the frame, from where and how many, go to a place in the message.
fn place(op: &mut Order, kind: u8, (pay_off, pay_len, msg_off): (u32, u32, u32)) {
    op.kind = Some(kind);
    (op.pay_off, op.pay_len, op.msg_off) = (Some(pay_off), Some(pay_len), Some(msg_off));
}

/// The order uses a receive.
fn receives(op: &mut Order, qp: &Qp, (handle, index): (u32, u32)) {
    (op.rq_handle, op.rq_index, op.rcqn) = (Some(handle), Some(index), Some(qp.rcqn));
}

/// The receive of the order is complete with it.
fn completes(op: &mut Order, byte_len: u32, opcode: u8, imm: Option<u32>) {
    (op.done, op.cqe, op.free_rq, op.byte_len) = (Some(true), Some(true), Some(true), Some(byte_len));
    (op.opcode, op.has_imm) = (Some(opcode), Some(imm.is_some()));
    if imm.is_some() {
        op.imm = imm;
    }
}

/// The order of a READ or atomic request, of a FLUSH, or of a duplicate of an ATOMIC WRITE: a READ of no bytes.
fn read(p: &Packet, qp: &Qp, op: &mut Order) {
    (op.pd, op.function, op.pmtu) = (Some(qp.pd), Some(qp.function), Some(qp.pmtu));
    (op.va, op.key) = (Some(p.va), Some(p.rkey));
    if p.opcode == 0x0c {
        (op.kind, op.chk_len, op.byte_len, op.flush) = (Some(kind::READ), Some(p.dma_len), Some(p.dma_len), Some(false));
    } else if p.opcode == FLUSH {
        (op.kind, op.chk_len, op.byte_len, op.flush) = (Some(kind::READ), Some(if whole(p) { 0 } else { p.dma_len }), Some(0), Some(true));
        op.imm = Some(p.imm);
    } else if p.opcode == ATOMIC_WRITE {
        (op.kind, op.chk_len, op.byte_len, op.flush) = (Some(kind::READ), Some(0), Some(0), Some(false));
    } else {
        (op.kind, op.chk_len, op.operand, op.compare) = (Some(kind::ATOMIC), Some(8), Some(p.operand), Some(p.compare));
        op.opcode = Some(p.opcode - 0x13 + 5);
    }
}

/// NAK code of a request that must not be executed.
fn fault(p: &Packet, qp: &Qp) -> Option<u8> {
    let invalid = Some(1);
    if reads(p) && qp.qp_type == 0 {
        let crowded = qp.open >= qp.max_dest_rd_atomic;
        // No region has the right to be flushed to persistence.
        let barred = p.opcode == ATOMIC_WRITE && !qp.remote_write || p.opcode == FLUSH && p.imm & 2 != 0;
        return if qp.message.is_some() || crowded { invalid } else { malformed(p, qp).or(barred.then_some(2)) };
    }
    let Some((write, position, _)) = request(p.opcode) else { return invalid };
    match (&qp.message, position) {
        (None, FIRST | ONLY) => {}
        (Some(m), MIDDLE | LAST) if m.write == write => {}
        _ => return invalid,
    }
    let mtu = 128u32 << qp.pmtu;
    let length_ok = match position {
        FIRST | MIDDLE => p.pay_len == mtu,
        LAST => (1..=mtu).contains(&p.pay_len),
        _ => p.pay_len <= mtu,
    };
    if !length_ok || p.pad != (4 - p.pay_len % 4) % 4 {
        return invalid;
    }
    let before = qp.message.as_ref();
    if write {
        let rest = before.map_or(p.dma_len, |m| m.remaining);
        let fits = if position == LAST || position == ONLY { rest == p.pay_len } else { rest > p.pay_len };
        if rest > 1 << 31 || !fits {
            return invalid;
        }
        return (!qp.remote_write).then_some(2);
    }
    (before.map_or(0, |m| m.bytes) + p.pay_len >= 1 << 31).then_some(1)
}

/// The packet is executed: its order, and the queue pair behind it.
fn execute(p: &Packet, qp: &mut Qp, op: &mut Order) {
    let Some((write, position, imm)) = request(p.opcode) else { return };
    let m = qp.message.take();
    let m = m.unwrap_or(Message { write, va: p.va, rkey: p.rkey, remaining: if write { p.dma_len } else { 0 }, bytes: 0 });
    (op.kind, op.pay_off, op.pay_len) = (Some(if write { kind::WRITE } else { kind::SEND }), Some(p.pay_off), Some(p.pay_len));
    (op.pd, op.function, op.psn) = (Some(if write { qp.pd } else { qp.rq_pd }), Some(qp.function), Some(p.psn));
    if write {
        (op.va, op.key, op.chk_len) = (Some(m.va), Some(m.rkey), Some(m.remaining));
    } else {
        op.msg_off = Some(m.bytes);
        let invalidates = matches!(p.opcode, 0x16 | 0x17);
        (op.inv, op.own_pd) = (Some(invalidates), Some(qp.pd));
        if invalidates {
            op.imm = Some(p.imm);
        }
    }
    if let Some(receive) = qp.receive.filter(|_| !write || imm) {
        receives(op, qp, receive);
    }
    (op.soft, op.first) = (Some(qp.qp_type == 1), Some(position == FIRST || position == ONLY));
    let bytes = m.bytes + p.pay_len;
    qp.epsn = (p.psn + 1) & 0xff_ffff;
    qp.nak_sent = false;
    qp.rnr_sent = false;
    if position == LAST || position == ONLY {
        qp.msn = (qp.msn + 1) & 0xff_ffff;
        (op.done, op.byte_len) = (Some(true), Some(bytes));
        if !write || imm {
            let opcode = [[16, 17], [0, 18]][usize::from(write)][usize::from(imm)];
            completes(op, bytes, opcode, imm.then_some(p.imm));
            op.solicited = Some(p.solicited);
            qp.receive = None;
        }
        if imm {
            op.imm = Some(p.imm);
        }
    } else {
        let va = m.va.wrapping_add(p.pay_len.into());
        let remaining = if write { m.remaining - p.pay_len } else { 0 };
        qp.message = Some(Message { write, va, remaining, bytes, ..m });
    }
    op.msn = Some(qp.msn);
}
