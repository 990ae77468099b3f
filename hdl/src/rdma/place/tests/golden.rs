//! Software placement of an order.
use super::{translate, Msg, Sge};
use crate::msg::DoneOp;
use crate::tb::Events;
use std::collections::BTreeMap;

/// The segments of `len` bytes from byte `skip` of a scatter list: (key, va, len). Err: does not fit.
fn scatter(list: &[Sge], mut skip: u64, mut len: u64) -> (Vec<(u32, u64, u64)>, bool) {
    let mut segments = Vec::new();
    for sge in list {
        let size = u64::from(sge.length);
        if skip >= size {
            skip -= size;
            continue;
        }
        let (mut va, mut left) = (sge.addr.wrapping_add(skip), size - skip);
        skip = 0;
        while left > 0 && len > 0 {
            let n = len.min(left).min(4096 - (va & 0xfff));
            segments.push((sge.lkey, va, n));
            (va, left, len) = (va.wrapping_add(n), left - n, len - n);
        }
    }
    (segments, len == 0)
}

/// Software placement of one order: translation requests, moves, outcome.
#[derive(Default)]
pub struct Golden {
    /// Failed life of a queue pair, and whether only the message in progress has failed.
    pub marks: BTreeMap<u128, (u128, bool)>,
    pub requests: Vec<Msg>,
    pub changes: Vec<(usize, Msg)>,
    pub moves: Vec<Msg>,
    pub dones: Vec<Msg>,
    pub frees: Vec<u128>,
    pub again_frees: Vec<u128>,
    pub events: Events,
}

impl Golden {
    /// Where the bytes of an answer go, or why not.
    fn list(&self, op: &Msg, sends: &BTreeMap<u32, Option<(u32, bool, Vec<Sge>)>>) -> (Vec<(u32, u64, u64)>, u128) {
        let (len, done) = (op["pay_len"] as u64, op["done"] == 1);
        if len == 0 && !done {
            return (Vec::new(), 0);
        }
        let Some((length, _, list)) = &sends[&(op["rq_handle"] as u32)] else { return (Vec::new(), 2) };
        let end = op["msg_off"] as u64 + len;
        if done && end != u64::from(*length) || !done && end >= u64::from(*length) {
            return (Vec::new(), 3);
        }
        let (segments, fits) = scatter(list, op["msg_off"] as u64, len);
        (segments, u128::from(!fits))
    }

    pub fn order(&mut self, op: &Msg, buffers: &BTreeMap<u32, Option<Vec<Sge>>>, sends: &BTreeMap<u32, Option<(u32, bool, Vec<Sge>)>>) {
        let kind = op["kind"];
        let (reads, answer) = (kind == 5 || kind == 6, kind == 8 || kind == 9);
        let (soft, flush) = (op["soft"] == 1, kind == 5 && op.get("flush") == Some(&1));
        if kind == 4 && op["again"] == 1 {
            // A new life: what was kept of any other is forgotten.
            self.marks.remove(&op["qpn"]);
        }
        let mark = self.marks.get(&op["qpn"]).filter(|(epoch, _)| *epoch == op["epoch"]).map(|(_, soft)| *soft);
        let poisoned = (kind < 3 || reads) && mark == Some(false);
        let torn = (kind == 1 || kind == 2) && mark == Some(true) && soft && op["first"] == 0;
        let lost = poisoned || torn;
        if !lost && (kind == 1 || kind == 2 || reads) && (mark.is_none() || op["first"] == 1 || op["done"] == 1) {
            self.marks.remove(&op["qpn"]);
        }
        let len = op["pay_len"] as u64;
        let (segments, mut failure) = match (kind, len) {
            (5 | 6, _) if op["chk_len"] != 0 || flush => (vec![(op["key"] as u32, op["va"] as u64, 0)], 0),
            (8 | 9, _) => self.list(op, sends),
            (_, 0) | (0, _) | (3.., _) => (Vec::new(), 0),
            (1, _) => (scatter(&[Sge { addr: op["va"] as u64, length: len as u32, lkey: op["key"] as u32 }], 0, len).0, 0),
            _ => match &buffers[&(op["rq_handle"] as u32)] {
                None => (Vec::new(), 2),
                Some(list) => {
                    let (segments, fits) = scatter(list, op["msg_off"] as u64, len);
                    (segments, u128::from(!fits))
                }
            },
        };
        let inv = kind == 2 && op["inv"] == 1;
        let (mut off, mut writes, mut status) = (op["pay_off"], 0, 0);
        for (n, (key, va, size)) in segments.iter().enumerate() {
            let chk_len = if reads || kind == 1 && n == 0 { op["chk_len"] } else { (*size).into() };
            self.requests.push(BTreeMap::from([
                ("key", (*key).into()),
                ("va", (*va).into()),
                ("chk_len", chk_len),
                ("pd", op["pd"]),
                ("function", op["function"]),
                ("access", if flush { 32 } else { [0, 4, 2, 0, 0, 8, 16, 0, 2, 2][kind as usize] }),
                // Bit 4 of the FETH.
                ("whole", u128::from(flush && op["imm"] & 16 != 0)),
            ]));
            let (iova, bad) = translate(*key, *va);
            if bad != 0 && status == 0 {
                status = u128::from(bad) + 8;
            }
            let last = n + 1 == segments.len() && failure == 0 && !inv;
            if status == 0 && !lost && !reads {
                writes += 1;
                let direct = kind == 9;
                let mut step = BTreeMap::from([
                    ("handle", op["handle"]),
                    ("direct", direct.into()),
                    ("off", if direct { 0 } else { off }),
                    ("len", (*size).into()),
                    ("iova", iova.into()),
                    ("function", op["function"]),
                    ("free", u128::from(last && op["has_frame"] == 1)),
                ]);
                if direct {
                    step.insert("data", op["operand"] >> (8 * off));
                }
                self.moves.push(step);
            } else if last && op["has_frame"] == 1 {
                self.moves.push(BTreeMap::from([("handle", op["handle"]), ("len", 0), ("free", 1)]));
            }
            off += u128::from(*size);
        }
        if (segments.is_empty() || failure != 0 || inv) && op["has_frame"] == 1 {
            self.moves.push(BTreeMap::from([("handle", op["handle"]), ("len", 0), ("free", 1)]));
        }
        if status != 0 {
            failure = status;
        }
        // The key goes only behind all the rest, and no later key request before it has gone.
        if inv && failure == 0 && !poisoned {
            let change = BTreeMap::from([("key", op["imm"]), ("pd", op["own_pd"]), ("function", op["function"])]);
            self.changes.push((self.requests.len(), change));
            failure = if op["imm"] >> 28 == 0xf { 4 } else { 0 };
        }
        if op["free_rq"] == 1 {
            if answer { &mut self.again_frees } else { &mut self.frees }.push(op["rq_handle"]);
        }
        let hushed = reads && op["again"] == 1 && failure != 0;
        if hushed {
            failure = 0;
        }
        // A message too long for its receive or aimed at the wrong place costs an unreliable queue pair that message.
        let spared = soft && failure != 0 && !lost && (kind == 1 || failure == 1);
        let failed = failure != 0 && !lost && !spared;
        for (what, name) in [(failed, "place_failed"), (spared, "msg_dropped"), (lost, "poisoned")] {
            if what {
                *self.events.entry((op["function"] as u64, name)).or_default() += 1;
            }
        }
        if failed && !answer {
            self.marks.insert(op["qpn"], (op["epoch"], false));
        } else if spared && op["done"] == 0 {
            self.marks.insert(op["qpn"], (op["epoch"], true));
        } else if torn && op["done"] == 1 {
            self.marks.remove(&op["qpn"]);
        }
        let mut done = op.clone();
        done.retain(|name, _| DoneOp::FIELDS.iter().any(|(field, _)| field == name));
        done.insert("inv", inv.into());
        done.insert("writes", writes);
        done.insert(
            "status",
            if poisoned {
                0
            } else if torn {
                [9, 1][usize::from(kind == 2)]
            } else {
                failure
            },
        );
        done.insert("access_local", u128::from(kind == 2 || answer));
        if let (6, [(key, va, _)]) = (kind, &segments[..]) {
            done.insert("va", translate(*key, *va).0.into());
        } else if kind == 6 {
            // Nothing was translated: the address means nothing.
            done.remove("va");
        }
        if poisoned || hushed {
            done.insert("kind", 0);
            done.insert("ack", 0);
        }
        self.dones.push(done);
    }
}
