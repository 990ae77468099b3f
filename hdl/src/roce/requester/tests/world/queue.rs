//! What stands before the requester: the context store, the send queue and the gatherer.

use super::{Packet, WorkRequest, World, WINDOW};
use crate::msg::*;
use crate::roce::req_tx::OP_FREE;
use crate::tb::Fields;
use ferric_abi::codes::QpType;

impl World {
    pub(super) fn contexts(&mut self) {
        let cycle = self.tb.cycles();
        for client in 0..3 {
            let (acq, line, rel) = self.store.ports[client].clone();
            if let Some(got) = rel.pop_fields() {
                let id = got[0][0] as usize;
                assert_eq!(self.store.owner[id], Some(client), "released what was not held");
                self.store.owner[id] = None;
                if got[1][0] == 1 {
                    self.store.lines[id] = got[2].clone();
                } else {
                    assert_eq!(self.store.lines[id], got[2], "changed but not marked dirty");
                }
            }
            if let Some(got) = acq.pop_fields() {
                assert!(self.store.wants[client].is_none() && !self.store.owner.contains(&Some(client)), "one line at a time");
                let wait = self.tb.rng().range(0, self.latency);
                self.store.wants[client] = Some((got[0][0], got[1][0], cycle + wait));
            }
            if let Some((id, tag, from)) = self.store.wants[client] {
                if cycle >= from {
                    if id as usize >= self.qps.len() {
                        line.push_fields(&[&[tag], &[1], &self.ctx.zero()]);
                        self.store.wants[client] = None;
                    } else if self.store.owner[id as usize].is_none() {
                        self.store.owner[id as usize] = Some(client);
                        line.push_fields(&[&[tag], &[0], &self.store.lines[id as usize]]);
                        self.store.wants[client] = None;
                    }
                }
            }
        }
    }

    pub(super) fn commands(&mut self) {
        let f = Fields::of::<SqCmd>();
        for (half, sink) in self.cmds.iter().enumerate() {
            while let Some(cmd) = sink.pop() {
                let qp = f.get(&cmd, "qpn") as usize;
                if half == 1 && f.get(&cmd, "op") < 2 {
                    *self.rewinds.entry(qp).or_default() += 1;
                }
                let q = &mut self.qps[qp];
                let number = (f.get(&cmd, "index") as u16).wrapping_sub(q.base_index) as usize;
                let op = f.get(&cmd, "op");
                if op == 2 {
                    assert!(q.parked);
                    q.resumes += 1;
                } else {
                    assert_eq!(f.get(&cmd, "epoch") as u8, q.epoch.wrapping_add(1));
                    assert!(number <= q.wrs.len());
                    q.epoch = f.get(&cmd, "epoch") as u8;
                    q.fetch = number;
                }
                q.parked = op == 1;
                q.flush |= op == 3;
            }
        }
    }

    pub(super) fn offer(&mut self) {
        let qp = self.tb.rng().below(self.qps.len() as u64) as usize;
        let burst = self.tb.rng().range(1, 8);
        if self.tb.rng().percent(70) {
            return;
        }
        for _ in 0..burst {
            let q = &mut self.qps[qp];
            if q.parked || q.fetch == q.wrs.len() || self.wqe.pending() > 8 {
                return;
            }
            let Some(handle) = self.free_handles.pop() else { return };
            let request = &q.wrs[q.fetch];
            let mut head = ferric_abi::host::WqeHead::default();
            head.set_opcode(request.opcode as u8)
                .set_signaled(request.signaled)
                .set_solicited(request.solicited)
                .set_num_sge(1)
                .set_fence(request.fence)
                .set_dest_low(400 + qp as u16)
                .set_dest_high(0xa5)
                .set_imm(request.imm)
                .set_raddr(request.raddr)
                .set_rkey(request.rkey)
                .set_length(request.length);
            let f = Fields::of::<SqWqe>();
            let index = q.base_index.wrapping_add(q.fetch as u16);
            let mut wqe = f.pack(&[("qpn", qp as u128), ("index", index.into()), ("epoch", q.epoch.into()), ("handle", handle.into()), ("flush", q.flush.into())]);
            let words: Vec<u32> = head.0.chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            f.set_words(&mut wqe, "head", &words);
            let operands = u128::from(request.operands.1) << 64 | u128::from(request.operands.0);
            f.set(&mut wqe, "function", 300 + qp as u128);
            f.set(&mut wqe, "sge", operands);
            f.set(&mut wqe, "more", !operands);
            self.wqe.push(wqe);
            self.buffers.insert(handle, (qp, q.fetch));
            q.fetch += 1;
        }
    }

    fn free(&mut self, handle: u64) {
        assert!(self.buffers.remove(&handle).is_some(), "buffer {handle} freed twice");
        self.free_handles.insert(0, handle);
    }

    /// Within a round PSNs rise, but for time-outs: what is sent again has another stamp than what it replaces, and nothing else has.
    fn stamped(&mut self, qp: usize, round: u32, psn: u32) {
        let rewinds = self.rewinds.get(&qp).copied().unwrap_or(0);
        let Some((before, last, since)) = self.rounds.insert(qp, (round, psn, rewinds)) else { return };
        // Stamps are modulo 4: who goes back four times before anything is sent has the old one again.
        if round == before && rewinds - since < 4 {
            let ahead = psn.wrapping_sub(last) & 0xff_ffff;
            if ahead == 0 || ahead >= 1 << 23 {
                let backs = self.backs.entry(qp).or_default();
                *backs += 1;
                let timeouts = self.rx_stats.events.get(&(300 + qp as u64, "timeouts")).copied().unwrap_or(0);
                assert!(*backs <= timeouts, "queue pair {qp} sends PSN {psn:#x} behind {last:#x} in one round, after {timeouts} time-outs, {} times back since", rewinds - since);
            }
            return;
        }
        let changes = self.changes.entry(qp).or_default();
        *changes += 1;
        assert!(*changes <= rewinds, "queue pair {qp}: round {changes} after going back {rewinds} times");
    }

    pub(super) fn gather(&mut self) {
        let (fo, fd) = (Fields::of::<TxOp>(), Fields::of::<TxDone>());
        while let Some(free) = self.frees.pop_u64() {
            assert!(self.gathering.iter().all(|op| fo.get(op, "handle") != free.into()), "freed under the gatherer");
            self.free(free);
        }
        self.gathering.extend(self.ops.pop());
        if self.gathering.len() < 20 && self.tb.rng().percent(50) {
            return;
        }
        let Some(op) = self.gathering.pop_front() else { return };
        let get = |name: &str| fo.get(&op, name);
        let (qp, handle) = (get("qpn") as usize, get("handle") as u64);
        let owner = self.buffers[&handle];
        assert_eq!(owner.0, qp);
        if get("free") == 1 {
            self.free(handle);
        }
        if get("opcode") == OP_FREE.into() {
            assert_eq!(get("free"), 1);
            return;
        }
        self.sent += 1;
        *self.ordered.entry(qp).or_default() += 1;
        let psn = get("psn") as u32;
        self.stamped(qp, get("round") as u32, psn);
        let q = &self.qps[qp];
        let (number, truth) = q.truth.get(&psn).unwrap_or_else(|| panic!("PSN {psn:#x} belongs to no request"));
        assert_eq!(*number, owner.1);
        let reth = (get("raddr") as u64, get("rkey") as u32, get("dma_len") as u32);
        let seen = Packet {
            psn,
            opcode: get("opcode") as u8,
            offset: get("pay_off") as u32,
            length: get("pay_len") as u32,
            feth: (get("has_feth") == 1).then_some(get("imm") as u32),
            reth: (get("has_reth") == 1).then_some(reth),
            imm: (get("has_imm") == 1 && get("has_feth") == 0).then_some(get("imm") as u32),
            atomic: (get("has_atomic") == 1).then(|| (get("raddr") as u64, get("rkey") as u32, get("operand") as u64, get("compare") as u64)),
            solicited: get("solicited") == 1,
            last: truth.last,
        };
        assert_eq!(&seen, truth, "request {number} of queue pair {qp}");
        // A FETH has the place of immediate data; an ATOMIC WRITE takes its operand as inline data.
        assert!(get("has_feth") <= get("has_imm") && (get("opcode") != 0x1d || get("inline_data") == 1));
        let local = q.wrs[..*number].iter().enumerate().find(|(n, wr)| wr.is_local() && q.worked.get(n) != Some(&true));
        assert!(local.is_none(), "request {number} of queue pair {qp} has passed a local operation");
        let reliable = q.kind == QpType::Rc;
        let flight = psn.wrapping_sub(q.acked) & 0xff_ffff;
        let asks = q.wrs.iter().any(WorkRequest::asks);
        assert!(asks || !reliable || flight < WINDOW || flight >> 23 == 1, "{flight} packets not acknowledged");
        let datagram = q.kind == QpType::Ud;
        let dest = if datagram { 0xa5_0000 } else { 0 } + 400 + qp as u128;
        assert_eq!((get("function"), get("pd"), get("dest_qpn"), get("has_deth")), (300 + qp as u128, 200 + qp as u128, dest, datagram.into()));
        if datagram {
            // Address and Q_Key as posted, the first entry behind the address.
            let wr = &q.wrs[*number];
            let operands = u128::from(wr.operands.1) << 64 | u128::from(wr.operands.0);
            assert_eq!((get("raddr") as u64, get("rkey") as u32, get("compare") << 64 | get("operand")), (wr.raddr, wr.rkey, operands));
            assert_eq!(get("sge"), !operands);
        }
        assert_eq!(get("wqe_index") as u16, q.base_index.wrapping_add(*number as u16));
        assert!(!truth.last || if reliable { get("ack_req") == 1 } else { get("notify") == 1 });
        assert!(!reliable || get("notify") == 0);
        if q.wrs[*number].fence {
            let behind = q.wrs[..*number].iter().enumerate().filter(|(_, wr)| wr.asks()).find(|(n, _)| !q.placed.get(n).is_some_and(|p| p.1));
            assert!(behind.is_none(), "request {number} of queue pair {qp} has passed a fence");
        }
        if q.wrs[*number].asks() {
            let out = q.wrs[..*number].iter().enumerate().filter(|(n, wr)| wr.asks() && !q.answered.contains(n)).count() as u32 + 1;
            assert!(u128::from(out) <= self.ctx.get(&self.store.lines[qp], "max_rd_atomic"), "{out} READs and atomics outstanding");
            self.qps[qp].asked = self.qps[qp].asked.max(out);
        }
        let q = &self.qps[qp];
        let number = &q.truth[&psn].0;
        let mut done = vec![("qpn", qp as u128), ("epoch", get("epoch")), ("psn", psn.into()), ("wqe_index", get("wqe_index"))];
        if q.trouble.local == Some(*number) {
            done.push(("status", 4));
            self.tx_done.push(fd.pack(&done));
        } else if reliable {
            let lost = q.trouble.cut.is_some_and(|from| *number >= from) || self.tb.rng().percent(q.trouble.loss);
            let q = &mut self.qps[qp];
            if !(lost || q.trouble.deaf && q.tried.insert(psn)) {
                let delay = self.tb.rng().range(10, 120);
                let at = self.wire.back().map_or(0, |last| last.0).max(self.tb.cycles() + delay);
                self.wire.push_back((at, qp, psn, get("ack_req") == 1));
            }
        } else if get("notify") == 1 {
            self.tx_done.push(fd.pack(&done));
        }
    }
}
