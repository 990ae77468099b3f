//! The wire, and the responder at its other end.

use super::super::super::model::Packet;
use super::{found, Reply, World};
use crate::msg::*;
use crate::tb::Fields;

/// Bytes that come back.
fn answered(packet: &Packet) -> u32 {
    match packet.opcode {
        0x1c | 0x1d => 0,
        _ => packet.reth.map_or(8, |reth| reth.2),
    }
}

impl World {
    fn answer(&mut self, qp: usize, psn: u32, syndrome: u8) {
        let loss = self.qps[qp].trouble.loss;
        if self.tb.rng().percent(loss) {
            return;
        }
        let delay = self.tb.rng().range(10, 120);
        let at = self.acks.back().map_or(0, |last| last.at).max(self.tb.cycles() + delay);
        let reply = Reply { at, qp, psn: psn & 0xff_ffff, opcode: 0x11, syndrome, length: 0, value: 0 };
        self.acks.push_back(reply);
        let echo = self.qps[qp].trouble.echo;
        if syndrome < 0x20 && self.tb.rng().percent(echo) {
            // An old acknowledge overtaken by this one: between the first of all and this.
            let age = u64::from(psn.wrapping_sub(self.qps[qp].first_psn) & 0xff_ffff);
            let back = self.tb.rng().range(0, age.min(300)) as u32;
            self.acks.push_back(Reply { at: at + 1, psn: psn.wrapping_sub(back) & 0xff_ffff, ..reply });
        }
    }

    /// The answer to the READ or atomic that begins with `psn`.
    fn respond(&mut self, qp: usize, psn: u32) {
        let q = &self.qps[qp];
        let (number, packet) = q.truth[&psn].clone();
        let mtu = q.mtu;
        let odd = q.trouble.odd.filter(|o| o.0 == number).map(|o| o.1);
        let loss = q.trouble.loss;
        let left = answered(&packet);
        let count = left.div_ceil(mtu).max(1);
        for n in 0..count {
            let (first, last) = (n == 0, n + 1 == count);
            let mut reply = Reply {
                at: 0,
                qp,
                psn: (psn + n) & 0xff_ffff,
                syndrome: 0x1f,
                value: found(psn),
                opcode: match (first, last) {
                    (true, true) => 0x10,
                    (true, false) => 0x0d,
                    (false, false) => 0x0e,
                    (false, true) => 0x0f,
                },
                length: if last { left - n * mtu } else { mtu },
            };
            if packet.atomic.is_some() {
                (reply.opcode, reply.length) = (0x12, 0);
            }
            match odd {
                Some(1) if packet.atomic.is_some() => reply.opcode = 0x10,
                Some(1) if first => reply.opcode = 0x0e,
                Some(2) => reply.syndrome = 0x61,
                Some(3) => reply.length += 1,
                _ => {}
            }
            if self.tb.rng().percent(loss) {
                continue;
            }
            let delay = self.tb.rng().range(10, 120);
            reply.at = self.acks.back().map_or(0, |last| last.at).max(self.tb.cycles() + delay);
            self.acks.push_back(reply);
        }
    }

    pub(super) fn peer(&mut self) {
        let cycle = self.tb.cycles();
        while self.wire.front().is_some_and(|packet| packet.0 <= cycle) {
            let (_, qp, psn, ask) = self.wire.pop_front().expect("looked at");
            let rnr = self.tb.rng().percent(self.qps[qp].trouble.rnr);
            let q = &mut self.qps[qp];
            let ahead = psn.wrapping_sub(q.epsn) & 0xff_ffff;
            let epsn = q.epsn;
            if ahead == 0 {
                let number = q.truth[&psn].0;
                let asks = q.wrs[number].asks();
                if let Some((_, code)) = q.trouble.refuse.filter(|refuse| refuse.0 == number) {
                    self.answer(qp, psn, 0x60 + code);
                } else if asks {
                    let packet = &q.truth[&psn].1;
                    let left = answered(packet);
                    q.epsn = (epsn + left.div_ceil(q.mtu).max(1)) & 0xff_ffff;
                    q.nak_sent = false;
                    self.respond(qp, psn);
                } else if rnr || q.trouble.slow.is_some() && q.tried.insert(psn) {
                    q.rnr_naks += 1;
                    q.nak_sent = true;
                    let code = q.trouble.slow.unwrap_or(1);
                    self.answer(qp, psn, 0x20 + code);
                } else {
                    q.epsn = (epsn + 1) & 0xff_ffff;
                    q.nak_sent = false;
                    q.unanswered |= ask;
                }
            } else if ahead < 1 << 23 {
                // A gap: acknowledge before it, once. The loss of this NAK is made up for by the timer.
                if !q.nak_sent && !self.silent {
                    q.nak_sent = true;
                    self.answer(qp, epsn, 0x60);
                }
            } else if q.wrs[q.truth[&psn].0].asks() {
                self.respond(qp, psn);
            } else {
                q.unanswered = true;
            }
        }
        for qp in 0..self.qps.len() {
            if self.qps[qp].unanswered && !self.silent && self.tb.rng().percent(20) {
                self.qps[qp].unanswered = false;
                let last = self.qps[qp].epsn.wrapping_sub(1);
                self.answer(qp, last, 0x1f);
            }
        }
        // No more frames than the cell buffer has names for.
        while self.frames - self.freed < 3000 && self.acks.front().is_some_and(|ack| ack.at <= cycle) {
            let reply = self.acks.pop_front().expect("looked at");
            self.reply(reply);
        }
    }

    /// Acknowledges and NAKs that have not reached the requester.
    pub fn acks_under_way(&self) -> usize {
        self.acks.len()
    }

    /// A response frame for the requester.
    pub fn receive(&mut self, qp: usize, psn: u32, opcode: u8, syndrome: u8) {
        self.reply(Reply { at: 0, qp, psn, opcode, syndrome, length: 0, value: 0 });
    }

    /// A frame that the peer has not sent: what the world knows of the wire stays as it is.
    pub fn forge(&mut self, qp: usize, psn: u32, opcode: u8, syndrome: u8) {
        self.frame(Reply { at: 0, qp, psn, opcode, syndrome, length: 0, value: 0 });
    }

    fn reply(&mut self, reply: Reply) {
        let Reply { qp, psn, opcode, syndrome, .. } = reply;
        let q = self.qps.get_mut(qp).filter(|_| opcode == 0x11);
        if let Some(q) = q {
            let next = match syndrome {
                0..0x20 => psn.wrapping_add(1),
                _ => psn,
            } & 0xff_ffff;
            if next.wrapping_sub(q.acked) & 0xff_ffff < 1 << 23 {
                q.acked = next;
            }
        }
        self.frame(reply);
    }

    fn frame(&mut self, reply: Reply) {
        let Reply { qp, psn, opcode, syndrome, .. } = reply;
        let f = Fields::of::<RxAnswer>();
        let aeth = u128::from(syndrome) << 24 | 0x123;
        self.rx.push(f.pack(&[
            ("dest_qpn", qp as u128),
            ("opcode", opcode.into()),
            ("psn", psn.into()),
            ("aeth", aeth),
            ("handle", self.frames as u128 % 4096),
            ("pay_off", 58),
            ("pay_len", reply.length.into()),
            ("operand", reply.value.into()),
        ]));
        let last = matches!(opcode, 0x0f | 0x10 | 0x12);
        if let Some(q) = self.qps.get_mut(qp).filter(|_| last) {
            if let Some((number, _)) = q.truth.get(&psn) {
                q.answered.insert(*number);
            }
        }
        if matches!(opcode, 0x0d..=0x10) {
            self.held.insert(self.frames % 4096, reply);
        } else {
            self.told.insert(self.frames % 4096);
        }
        self.frames += 1;
    }
}
