//! A software responder, written from the rules of IBTA volume 1, 9.7.4 (inbound requests), 9.8.2.2 (UC) and 9.8.3 (UD), as go-back-N
//! with one message in flight. Packets in, placement orders and side effects out.
use std::collections::{BTreeMap, VecDeque};

/// A received request, or a raw frame.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    pub raw: bool,
    pub handle: u32,
    pub frame_len: u32,
    pub pay_off: u32,
    pub pay_len: u32,
    pub pad: u32,
    pub opcode: u8,
    pub ack_req: bool,
    pub solicited: bool,
    pub pkey: u16,
    pub qpn: u32,
    pub psn: u32,
    pub va: u64,
    pub rkey: u32,
    pub dma_len: u32,
    pub imm: u32,
    pub operand: u64,
    pub compare: u64,
    pub qkey: u32,
    pub src_qpn: u32,
    /// Of the frame: IPv6, 802.1Q tag.
    pub v6: bool,
    pub tag: bool,
}

/// A queue pair's responder half.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Qp {
    pub state: u8,
    pub qp_type: u8,
    pub pmtu: u8,
    pub min_rnr_timer: u8,
    pub remote_write: bool,
    pub remote_read: bool,
    pub remote_atomic: bool,
    pub epoch: u8,
    pub rcqn: u32,
    pub pd: u32,
    pub function: u16,
    pub pkey: u16,
    pub qkey: u32,
    pub dest_qpn: u32,
    pub ipv6: bool,
    pub vlan: bool,
    pub epsn: u32,
    pub msn: u32,
    pub nak_sent: bool,
    pub rnr_sent: bool,
    /// How far ahead the last packet was while the peer knew of the gap, at most 255.
    pub ahead: u32,
    /// Receive ring, whether it is a shared one, and the protection domain of what is posted to it.
    pub rq: u32,
    pub srq: bool,
    pub rq_pd: u32,
    /// READs and atomics that the peer may have open, and those that it has.
    pub max_dest_rd_atomic: u32,
    pub open: u32,
    pub message: Option<Message>,
    /// Receive request taken and not yet completed: (buffer, index).
    pub receive: Option<(u32, u32)>,
}

/// The message under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub write: bool,
    pub va: u64,
    pub rkey: u32,
    pub remaining: u32,
    pub bytes: u32,
}

/// What the responder does about something.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// A placement order; the fields that matter for it.
    Place(BTreeMap<&'static str, u128>),
    /// The receive queue is to be flushed.
    FlushQueue(u32),
    /// The requester is told.
    Error { qpn: u32, epoch: u8, cause: u8 },
}

/// Answer of a receive ring. `dead`: a shared one in error.
#[derive(Clone, Copy, Debug, Default)]
pub enum Grant {
    #[default]
    None,
    Dead,
    Some(u32, u32),
}

/// All queue pairs.
#[derive(Default)]
pub struct Responder {
    pub qps: BTreeMap<u32, Qp>,
    pub raw_qpn: Option<u32>,
    /// What the receive queues will answer, in order.
    pub grants: VecDeque<Grant>,
    /// Rings that were asked.
    pub asked: Vec<u32>,
    pub acts: Vec<Act>,
    /// Packets, by whose they are: 0 is nobody's.
    pub requests: BTreeMap<u64, u64>,
}

/// NAK code of a READ or atomic request that is wrong in itself: payload, length, alignment, right (IBTA 9.4.5, 9.7.4.1).
fn malformed(p: &Packet, qp: &Qp) -> Option<u8> {
    let (right, sound) = match p.opcode {
        0x0c => (qp.remote_read, p.dma_len <= 1 << 31),
        _ => (qp.remote_atomic, p.va % 8 == 0),
    };
    (p.pay_len != 0 || p.pad != 0 || !right || !sound).then_some(1)
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
        _ => return None,
    })
}

/// PSNs of a READ: one per packet of its response (IBTA 9.7.2.1).
fn packets(p: &Packet, qp: &Qp) -> u32 {
    p.dma_len.div_ceil(128 << qp.pmtu).max(1)
}

/// READ and atomic requests of a reliable connection.
fn reads(p: &Packet) -> bool {
    matches!(p.opcode, 0x0c | 0x13 | 0x14)
}

impl Responder {
    /// Judges one packet.
    pub fn packet(&mut self, p: &Packet) {
        let base = BTreeMap::from([("kind", 0), ("has_frame", 1), ("handle", p.handle.into()), ("ack", 0), ("done", 0), ("cqe", 0), ("free_rq", 0)]);
        let id = if p.raw { self.raw_qpn } else { Some(p.qpn) };
        let found = id.and_then(|id| self.qps.get(&id).map(|qp| (id, qp.clone())));
        let found = found.filter(|(_, qp)| qp.state == 2 || qp.state == 3);
        // A raw frame for a queue pair of another kind is nobody's, too.
        let whose = found.as_ref().filter(|(_, qp)| !p.raw || qp.qp_type == 3).map_or(0, |(_, qp)| qp.function.into());
        *self.requests.entry(whose).or_default() += 1;
        let Some((id, mut qp)) = found else {
            return self.acts.push(Act::Place(base));
        };
        let mut op = base;
        op.extend([("qpn", id.into()), ("epoch", qp.epoch.into())]);
        let first_act = self.acts.len();
        if p.raw {
            self.raw(p, &mut qp, &mut op);
        } else {
            let member = (p.pkey | qp.pkey) & 0x8000 != 0 && (p.pkey ^ qp.pkey) & 0x7fff == 0;
            let reply = (0x0d..=0x12).contains(&(p.opcode & 31));
            match (qp.qp_type, p.opcode >> 5) {
                _ if reply || !member => {}
                (0, 0) => self.reliable(id, p, &mut qp, &mut op),
                (1, 1) => self.unreliable(id, p, &mut qp, &mut op),
                (2, 3) => {
                    if let Some(area) = self.datagram(id, p, &mut qp, &mut op) {
                        self.acts.push(Act::Place(area));
                        self.acts.push(Act::Place(op));
                        return;
                    }
                }
                _ => {}
            }
        }
        self.acts.insert(first_act, Act::Place(op));
        self.qps.insert(id, qp);
    }

    fn raw(&mut self, p: &Packet, qp: &mut Qp, op: &mut BTreeMap<&'static str, u128>) {
        if qp.qp_type != 3 {
            return;
        }
        let Grant::Some(handle, index) = self.grant(qp) else { return };
        let len = u128::from(p.frame_len);
        op.extend([("kind", 2), ("pay_off", 0), ("pay_len", len), ("msg_off", 0), ("done", 1), ("cqe", 1), ("free_rq", 1)]);
        op.extend([("rq_handle", handle.into()), ("rq_index", index.into()), ("byte_len", len), ("opcode", 16)]);
        op.extend([("has_imm", 0), ("rcqn", qp.rcqn.into()), ("replies", 0), ("function", qp.function.into())]);
    }

    /// A datagram: the order of its IP header, if that is one of its own, and `op`, that of the payload. The header takes the first 40 bytes
    /// of the receive, one of IPv4 the last 20 of them (IBTA 11.4.1.2, annex A17).
    fn datagram(&mut self, id: u32, p: &Packet, qp: &mut Qp, op: &mut BTreeMap<&'static str, u128>) -> Option<BTreeMap<&'static str, u128>> {
        let imm = match p.opcode {
            0x64 => false,
            0x65 => true,
            _ => return None,
        };
        if p.qkey != qp.qkey || p.pay_len > 128 << qp.pmtu || p.pad != (4 - p.pay_len % 4) % 4 {
            return None;
        }
        let (handle, index) = match self.grant(qp) {
            Grant::Some(handle, index) => (handle, index),
            Grant::Dead => {
                self.fall(id, qp, Some(2));
                return None;
            }
            Grant::None => return None,
        };
        let header = [("pay_off", if p.tag { 18 } else { 14 }), ("pay_len", if p.v6 { 40 } else { 20 }), ("msg_off", if p.v6 { 0 } else { 20 })];
        op.extend([("kind", 2), ("grh", 1), ("rq_handle", handle.into()), ("rq_index", index.into()), ("rcqn", qp.rcqn.into()), ("replies", 0)]);
        op.extend([("soft", 1), ("first", u128::from(p.pay_len == 0))]);
        op.extend([("pd", qp.rq_pd.into()), ("function", qp.function.into())]);
        let mut area = op.clone();
        area.extend(header);
        area.extend([("has_frame", 0), ("first", 1)]);
        op.extend([("done", 1), ("cqe", 1), ("free_rq", 1), ("byte_len", (40 + p.pay_len).into()), ("src_qpn", p.src_qpn.into())]);
        op.extend([("opcode", 16 + u128::from(imm)), ("has_imm", imm.into()), ("solicited", p.solicited.into())]);
        if imm {
            op.insert("imm", p.imm.into());
        }
        if p.pay_len == 0 {
            op.extend(header);
            return None;
        }
        op.extend([("pay_off", p.pay_off.into()), ("pay_len", p.pay_len.into()), ("msg_off", 40)]);
        Some(area)
    }

    fn reliable(&mut self, id: u32, p: &Packet, qp: &mut Qp, op: &mut BTreeMap<&'static str, u128>) {
        let answer = |op: &mut BTreeMap<_, _>, qp: &Qp, syndrome: u8, psn: u32| {
            op.extend([("ack", 1), ("replies", 1), ("syndrome", syndrome.into()), ("psn", psn.into()), ("msn", qp.msn.into())]);
            op.extend([("dest_qpn", qp.dest_qpn.into()), ("ipv6", qp.ipv6.into()), ("vlan", qp.vlan.into())]);
        };
        let distance = p.psn.wrapping_sub(qp.epsn) & 0xff_ffff;
        if distance >= 1 << 23 {
            if reads(p) {
                let n = if p.opcode == 0x0c { packets(p, qp) } else { 1 };
                // All of it must be behind, and nothing wrong with it but its age.
                if malformed(p, qp).is_none() && n <= (distance.wrapping_neg() & 0xff_ffff) {
                    answer(op, qp, 0x1f, p.psn);
                    self.read(p, qp, op);
                    op.insert("again", 1);
                    if p.opcode != 0x0c {
                        op.insert("chk_len", 0);
                        op.remove("opcode");
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
            if !qp.nak_sent && !qp.rnr_sent || repeats {
                qp.nak_sent = true;
                answer(op, qp, 0x60, qp.epsn);
            }
            qp.ahead = ahead;
            return;
        }
        let fault = match self.fault(p, qp) {
            Some(code) => code,
            None if reads(p) => {
                qp.epsn = (p.psn + if p.opcode == 0x0c { packets(p, qp) } else { 1 }) & 0xff_ffff;
                qp.msn = (qp.msn + 1) & 0xff_ffff;
                qp.open += 1;
                (qp.nak_sent, qp.rnr_sent) = (false, false);
                answer(op, qp, 0x1f, p.psn);
                op.extend([("again", 0), ("done", 1)]);
                return self.read(p, qp, op);
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
                self.execute(p, qp, op);
                op.extend([("replies", 1), ("syndrome", 0x1f)]);
                if p.ack_req {
                    answer(op, qp, 0x1f, p.psn);
                }
                return;
            }
        };
        answer(op, qp, 0x60 | fault, p.psn);
        self.fall(id, qp, Some(8 + fault));
    }

    /// The order of a READ or atomic request.
    fn read(&self, p: &Packet, qp: &Qp, op: &mut BTreeMap<&'static str, u128>) {
        op.extend([("pd", qp.pd.into()), ("function", qp.function.into()), ("pmtu", qp.pmtu.into())]);
        op.extend([("va", p.va.into()), ("key", p.rkey.into())]);
        if p.opcode == 0x0c {
            op.extend([("kind", 5), ("chk_len", p.dma_len.into()), ("byte_len", p.dma_len.into())]);
        } else {
            op.extend([("kind", 6), ("chk_len", 8), ("operand", p.operand.into()), ("compare", p.compare.into())]);
            op.insert("opcode", (p.opcode - 0x13 + 5).into());
        }
    }

    fn unreliable(&mut self, id: u32, p: &Packet, qp: &mut Qp, op: &mut BTreeMap<&'static str, u128>) {
        let start = matches!(request(p.opcode), Some((_, FIRST | ONLY, _)));
        let expected = qp.epsn;
        if start {
            // A new message ends whatever was lost in part; its receive request serves the next.
            qp.message = None;
            qp.epsn = p.psn;
        }
        let taken = if qp.epsn != p.psn || self.fault(p, qp).is_some() { Grant::None } else { self.receive(p, qp) };
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
        self.execute(p, qp, op);
        op.insert("replies", 0);
    }

    /// NAK code of a request that must not be executed.
    fn fault(&self, p: &Packet, qp: &Qp) -> Option<u8> {
        let invalid = Some(1);
        if reads(p) && qp.qp_type == 0 {
            let crowded = qp.open >= qp.max_dest_rd_atomic;
            return if qp.message.is_some() || crowded { invalid } else { malformed(p, qp) };
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

    /// Takes a receive request if this packet needs one; `Some` also if it needs none.
    fn receive(&mut self, p: &Packet, qp: &mut Qp) -> Grant {
        let Some((write, position, imm)) = request(p.opcode) else { return Grant::None };
        let needs = if write { imm } else { position == FIRST || position == ONLY };
        if needs && qp.receive.is_none() {
            let answer = self.grant(qp);
            if let Grant::Some(handle, index) = answer {
                qp.receive = Some((handle, index));
            }
            return answer;
        }
        Grant::Some(0, 0)
    }

    fn execute(&mut self, p: &Packet, qp: &mut Qp, op: &mut BTreeMap<&'static str, u128>) {
        let Some((write, position, imm)) = request(p.opcode) else { return };
        let m = qp.message.take();
        let m = m.unwrap_or(Message { write, va: p.va, rkey: p.rkey, remaining: if write { p.dma_len } else { 0 }, bytes: 0 });
        op.extend([("kind", if write { 1 } else { 2 }), ("pay_off", p.pay_off.into()), ("pay_len", p.pay_len.into())]);
        op.extend([("pd", if write { qp.pd } else { qp.rq_pd }.into()), ("function", qp.function.into()), ("psn", p.psn.into())]);
        if write {
            op.extend([("va", m.va.into()), ("key", m.rkey.into()), ("chk_len", m.remaining.into())]);
        } else {
            op.insert("msg_off", m.bytes.into());
            let invalidates = matches!(p.opcode, 0x16 | 0x17);
            op.extend([("inv", invalidates.into()), ("own_pd", qp.pd.into())]);
            if invalidates {
                op.insert("imm", p.imm.into());
            }
        }
        if let Some((handle, index)) = qp.receive {
            if !write || imm {
                op.extend([("rq_handle", handle.into()), ("rq_index", index.into()), ("rcqn", qp.rcqn.into())]);
            }
        }
        op.extend([("soft", u128::from(qp.qp_type == 1)), ("first", u128::from(position == FIRST || position == ONLY))]);
        let bytes = m.bytes + p.pay_len;
        qp.epsn = (p.psn + 1) & 0xff_ffff;
        qp.nak_sent = false;
        qp.rnr_sent = false;
        if position == LAST || position == ONLY {
            qp.msn = (qp.msn + 1) & 0xff_ffff;
            let receives = !write || imm;
            op.extend([("done", 1), ("byte_len", bytes.into())]);
            if receives {
                let opcode = [[16, 17], [0, 18]][usize::from(write)][usize::from(imm)];
                op.extend([("cqe", 1), ("free_rq", 1), ("opcode", opcode), ("has_imm", imm.into())]);
                op.insert("solicited", p.solicited.into());
                qp.receive = None;
            }
            if imm {
                op.insert("imm", p.imm.into());
            }
        } else {
            let va = m.va.wrapping_add(p.pay_len.into());
            let remaining = if write { m.remaining - p.pay_len } else { 0 };
            qp.message = Some(Message { write, va, remaining, bytes, ..m });
        }
        op.insert("msn", qp.msn.into());
    }

    /// To ERROR; `cause`: tell the requester.
    fn fall(&mut self, id: u32, qp: &mut Qp, cause: Option<u8>) {
        qp.state = 6;
        if !qp.srq {
            self.acts.push(Act::FlushQueue(id));
        }
        if let Some(cause) = cause {
            self.acts.push(Act::Error { qpn: id, epoch: qp.epoch, cause });
        }
        if let Some((handle, index)) = qp.receive.take() {
            self.acts.push(Act::Place(BTreeMap::from([
                ("kind", 3),
                ("has_frame", 0),
                ("qpn", id.into()),
                ("epoch", qp.epoch.into()),
                ("done", 1),
                ("cqe", 1),
                ("free_rq", 1),
                ("rq_handle", handle.into()),
                ("rq_index", index.into()),
                ("rcqn", qp.rcqn.into()),
                ("ack", 0),
            ])));
        }
        if qp.srq {
            // Its last receive has gone by: told behind the completions (IBTA 11.6.3.1).
            let order = [("kind", 3), ("has_frame", 0), ("qpn", id.into()), ("done", 1), ("cqe", 0), ("free_rq", 0), ("rcqn", qp.rcqn.into()), ("ack", 0)];
            self.acts.push(Act::Place(BTreeMap::from(order)));
        }
    }

    /// A queue pair error reported by completion (`Some(epoch)`) or by the requester.
    pub fn error(&mut self, id: u32, epoch: Option<u8>, cause: u8) {
        let Some(mut qp) = self.qps.get(&id).cloned() else { return };
        if qp.state == 0 || qp.state == 6 || epoch.is_some_and(|epoch| epoch != qp.epoch) {
            return;
        }
        self.fall(id, &mut qp, epoch.map(|_| cause));
        self.qps.insert(id, qp);
    }

    /// Queue pair `id` has been reset: the chain forgets its earlier life, and the buffer of a receive it has taken comes back.
    pub fn give_back(&mut self, id: u32, epoch: u8) {
        let Some(qp) = self.qps.get_mut(&id).filter(|qp| qp.epoch == epoch) else { return };
        qp.message = None;
        let mut order = BTreeMap::from([("kind", 4), ("again", 1), ("ack", 1), ("qpn", id.into()), ("epoch", epoch.into())]);
        order.extend([("has_frame", 0), ("done", 0), ("cqe", 0), ("free_rq", 0)]);
        if let Some((handle, _)) = qp.receive.take() {
            order.extend([("free_rq", 1), ("rq_handle", handle.into())]);
        }
        self.acts.push(Act::Place(order));
    }

    fn grant(&mut self, qp: &Qp) -> Grant {
        self.asked.push(qp.rq);
        self.grants.pop_front().unwrap_or_default()
    }
}
