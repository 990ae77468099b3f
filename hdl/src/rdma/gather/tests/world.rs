//! What stands around the gatherer: buffers of work requests, keys, slots and an assembly memory.
use crate::msg::*;
use crate::rdma::gather::Gather;
use crate::roce::req_tx::OP_FREE;
use crate::tb::{Fields, Sink, Source, Tb};
use std::collections::{HashMap, VecDeque};

/// Byte of host memory at an IOVA.
pub(super) fn host(iova: u64) -> u8 {
    (iova ^ iova >> 8 ^ iova >> 13).wrapping_mul(0x9d) as u8
}

/// A key's translation: its pages are scattered; low bits of the key choose what goes wrong.
pub(super) fn translate(key: u32, va: u64) -> u64 {
    (va >> 12).wrapping_mul(0x1_0001).wrapping_add(u64::from(key)) << 12 | va & 0xfff
}

/// The round that a queue pair is in, when all have gone back `times`.
pub(super) fn round_of(qpn: u64, times: u64) -> u64 {
    ((qpn ^ qpn >> 7) + times) & 3
}

pub(super) fn key_status(key: u32) -> u8 {
    (key & 7).saturating_sub(1).min(6) as u8
}

#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) slot: u64,
    pub(super) base: u64,
    pub(super) hdr_len: u64,
    pub(super) payload: Vec<u8>,
    pub(super) op: Vec<u32>,
    pub(super) status: u8,
    pub(super) raw: bool,
}

pub(super) struct World {
    pub(super) tb: Tb,
    pub(super) op: Source,
    pub(super) reply: Source,
    pub(super) wqe: (Sink, Source),
    pub(super) free: Sink,
    pub(super) mr: (Sink, Source),
    pub(super) slot: (Sink, Source),
    pub(super) pay: Sink,
    pub(super) hdr: Sink,
    pub(super) seal: Sink,
    pub(super) inline: Sink,
    pub(super) buffers: Vec<[u8; 512]>,
    pub(super) ready_mr: VecDeque<(u64, Vec<u32>)>,
    pub(super) mr_latency: u64,
    pub(super) expected: VecDeque<Packet>,
    /// Slots asked for since the last check.
    pub(super) asked: usize,
    pub(super) memory: HashMap<u64, u8>,
    pub(super) reads: HashMap<u64, u64>,
    /// Reads of packets whose slot has been granted again.
    pub(super) counts: Vec<u64>,
    pub(super) headers: Vec<Vec<u32>>,
    pub(super) seals: Vec<(Packet, Vec<u32>)>,
    pub(super) frees: Vec<u64>,
    pub(super) next_base: u64,
    /// Who gets a buffer that has come back writes to it at once.
    pub(super) spoils: bool,
    /// No slot is granted.
    pub(super) full: bool,
    /// Granules of buffers that cannot be read.
    pub(super) failed: Vec<(u64, u64)>,
    /// How often all queue pairs have gone back; cycles after which they do again, 0: when a test says so.
    pub(super) rounds: u64,
    pub(super) storm: u64,
    /// Packets that were sealed as stale.
    pub(super) stale: usize,
}

impl World {
    pub(super) fn new(seed: u64, stall: u32, mr_latency: u64) -> World {
        let mut tb = Tb::with_seed("gather", Gather::default(), seed);
        World {
            op: tb.source("s_op", stall),
            reply: tb.source("s_reply", stall),
            wqe: (tb.sink("m_wqe", stall), tb.source("s_wqe", stall)),
            free: tb.sink("m_free", stall),
            mr: (tb.sink("m_mr", stall), tb.source("s_mr", stall)),
            slot: (tb.sink("m_slot", stall), tb.source("s_slot", stall)),
            pay: tb.sink("m_pay", stall),
            hdr: tb.sink("m_hdr", stall),
            seal: tb.sink("m_seal", stall),
            inline: tb.sink("m_inline", stall),
            tb,
            buffers: vec![[0; 512]; 64],
            ready_mr: VecDeque::new(),
            mr_latency,
            expected: VecDeque::new(),
            asked: 0,
            memory: HashMap::new(),
            reads: HashMap::new(),
            counts: Vec::new(),
            headers: Vec::new(),
            seals: Vec::new(),
            frees: Vec::new(),
            next_base: 0,
            spoils: false,
            full: false,
            failed: Vec::new(),
            rounds: 0,
            storm: 0,
            stale: 0,
        }
    }

    /// Queues a packet order and what must come of it.
    pub(super) fn send(&mut self, op: &[(&str, u128)], payload: Vec<u8>, status: u8) {
        let fo = Fields::of::<TxOp>();
        let mut op = fo.pack(op);
        let round = round_of(fo.get(&op, "qpn") as u64, self.rounds);
        fo.set(&mut op, "round", round.into());
        // The first entry travels with the order.
        let at = 32 + 16 * fo.get(&op, "has_deth") as usize;
        let entry = &self.buffers[fo.get(&op, "handle") as usize][at..at + 16];
        let words: Vec<u32> = entry.chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        fo.set_words(&mut op, "sge", &words);
        let get = |name: &str| fo.get(&op, name) as u64;
        while self.reply.pending() > 0 {
            self.step();
        }
        self.op.push(op.clone());
        if get("opcode") == u64::from(OP_FREE) {
            return;
        }
        let raw = get("qp_type") == 3;
        let hdr_len = if raw { 0 } else { 54 + 20 * get("ipv6") + 4 * get("vlan") + 16 * get("has_reth") + 8 * get("has_deth") + 4 * get("has_imm") };
        self.expect(op, hdr_len, payload, status, raw);
    }

    pub(super) fn expect(&mut self, op: Vec<u32>, hdr_len: u64, payload: Vec<u8>, status: u8, raw: bool) {
        let n = (self.expected.len() + self.seals.len()) as u64;
        let packet = Packet { slot: n % 64, base: self.next_base, hdr_len, payload, op, status, raw };
        self.next_base = (self.next_base + (hdr_len + packet.payload.len() as u64 + 8).next_multiple_of(64)) % (1 << 18);
        self.expected.push_back(packet);
    }

    /// Queues a packet of the responder, behind all orders of the requester: `len` bytes at `va`. Keys of peers have bit 31 set here.
    pub(super) fn answer(&mut self, va: u64, len: u64, key: u32) {
        while self.op.pending() > 0 {
            self.step();
        }
        let fo = Fields::of::<TxOp>();
        let rng = self.tb.rng();
        let kind = rng.below(3) as u128;
        let (opcode, atomic) = ([0x0e, 0x10, 0x12][kind as usize], kind == 2);
        let len = if atomic { 0 } else { len };
        let sge = u128::from(va) | u128::from(len) << 64 | u128::from(key) << 96;
        let op = fo.pack(&[
            ("pd", 77),
            ("function", 99),
            ("reply", 1),
            ("num_sge", 1),
            ("pay_len", len.into()),
            ("sge", sge),
            ("opcode", opcode),
            ("handle", 0),
            ("has_aeth", (kind > 0).into()),
            ("aeth", rng.next_u32().into()),
            ("has_atomic_ack", atomic.into()),
            ("operand", rng.next_u64().into()),
            ("psn", rng.below(1 << 24).into()),
            ("qpn", rng.below(1 << 24).into()),
            ("ipv6", rng.below(2).into()),
            ("vlan", rng.below(2).into()),
            ("notify", rng.below(2).into()),
            ("epoch", rng.below(256).into()),
        ]);
        self.reply.push(op.clone());
        let get = |name: &str| fo.get(&op, name) as u64;
        let hdr_len = 54 + 20 * get("ipv6") + 4 * get("vlan") + [0, 4, 12][kind as usize];
        let payload = (0..len).map(|at| host(translate(key, va.wrapping_add(at)))).collect();
        let status = if key_status(key) == 0 || len == 0 { 0 } else { 4 };
        self.expect(op.clone(), hdr_len, payload, status, false);
    }

    pub(super) fn step(&mut self) {
        if self.storm > 0 && self.tb.cycles() % self.storm == 0 {
            self.rounds += 1;
        }
        let looked_at = self.tb.get("look");
        self.tb.set("round", round_of(looked_at, self.rounds));
        self.tb.cycle();
        let now = self.tb.cycles();
        let (fw, fd) = (Fields::of::<WqeRead>(), Fields::of::<WqeData>());
        while let Some(read) = self.wqe.0.pop() {
            let at = 16 * fw.get(&read, "granule") as usize;
            let buffer = &self.buffers[fw.get(&read, "handle") as usize];
            let err = self.failed.iter().any(|(handle, granule)| *handle == fw.get(&read, "handle") as u64 && granule & !1 == (at as u64 / 16) & !1);
            let word = |at: usize| u128::from_le_bytes(buffer[at..at + 16].try_into().expect("16 bytes"));
            // Behind an odd granule comes nothing that means anything.
            let more = if at % 32 == 0 { word(at + 16) } else { u128::MAX };
            self.wqe.1.push(fd.pack(&[("data", word(at)), ("more", more), ("err", err.into())]));
        }
        let (fq, fr) = (Fields::of::<MrReq>(), Fields::of::<MrResp>());
        while let Some(req) = self.mr.0.pop() {
            let (key, va, len) = (fq.get(&req, "key") as u32, fq.get(&req, "va") as u64, fq.get(&req, "chk_len") as u64);
            assert!(len >= 1 && (va & 0xfff) + len <= 4096, "{len} bytes at {va:#x} cross a page");
            let access = if key >> 31 == 1 { 8 } else { 1 };
            assert_eq!((fq.get(&req, "access"), fq.get(&req, "pd"), fq.get(&req, "function")), (access, 77, 99));
            let answer = fr.pack(&[("iova", translate(key, va).into()), ("status", key_status(key).into())]);
            self.ready_mr.push_back((now + self.mr_latency, answer));
        }
        while self.ready_mr.front().is_some_and(|answer| answer.0 <= now) {
            let (_, answer) = self.ready_mr.pop_front().expect("looked at");
            self.mr.1.push(answer);
        }
        let (fs, fg) = (Fields::of::<SlotReq>(), Fields::of::<SlotGrant>());
        // As many slots in use as leave a slot's last reads time to arrive before it is granted anew.
        while !self.full && self.asked - self.seals.len() < 32 {
            let Some(req) = self.slot.0.pop() else { break };
            let p = &self.expected[self.asked - self.seals.len()];
            let (pay, pad) = (p.payload.len() as u128, (p.payload.len() as u128).wrapping_neg() % 4);
            let frame = if p.raw { pay } else { u128::from(p.hdr_len) + pay + pad + 4 };
            assert_eq!((fs.get(&req, "frame_len"), fs.get(&req, "hdr_len"), fs.get(&req, "pay_len")), (frame, p.hdr_len.into(), pay & 0x1fff));
            assert_eq!((fs.get(&req, "raw"), fs.get(&req, "bypass")), (p.raw.into(), 0));
            if self.asked >= 64 {
                self.counts.push(self.reads.remove(&p.slot).unwrap_or(0));
            }
            self.slot.1.push(fg.pack(&[("slot", p.slot.into()), ("base", p.base.into())]));
            self.asked += 1;
        }
        let fi = Fields::of::<InlineWrite>();
        while let Some(write) = self.inline.pop() {
            let (words, len) = (fi.get_words(&write, "data"), fi.get(&write, "len") as usize);
            assert!((1..=32).contains(&len));
            for (n, byte) in words.iter().flat_map(|word| word.to_le_bytes()).take(len).enumerate() {
                let old = self.memory.insert(fi.get(&write, "dst") as u64 + n as u64, byte);
                assert_eq!(old, None, "byte written twice");
            }
        }
        let fp = Fields::of::<PayCmd>();
        while let Some(pay) = self.pay.pop() {
            let get = |name: &str| fp.get(&pay, name) as u64;
            assert_eq!(get("function"), 99);
            assert!((get("iova") & 0xfff) + get("len") <= 4096 && get("len") > 0);
            for n in 0..get("len") {
                let old = self.memory.insert(get("dst") + n, host(get("iova") + n));
                assert_eq!(old, None, "byte written twice");
            }
            *self.reads.entry(get("slot")).or_default() += 1;
        }
        self.headers.extend(self.hdr.pop());
        while let Some(free) = self.free.pop_u64() {
            self.frees.push(free);
            if self.spoils {
                self.buffers[free as usize] = [0xee; 512];
            }
        }
        let fl = Fields::of::<SlotSeal>();
        while let Some(seal) = self.seal.pop() {
            let p = self.expected.pop_front().expect("a seal too many");
            assert_eq!(fl.get(&seal, "slot") as u64, p.slot);
            let fo = Fields::of::<TxOp>();
            let get = |name: &str| fo.get(&p.op, name) as u64;
            let may_be_stale = get("reply") == 0 && (self.storm > 0 || get("round") != round_of(get("qpn"), self.rounds));
            let stale = may_be_stale && fl.get(&seal, "abort") == 1 && fl.get(&seal, "status") == 0;
            assert!(stale || fl.get(&seal, "status") as u8 == p.status, "{:?}", fo.unpack(&p.op));
            self.stale += stale as usize;
            self.seals.push((p, seal));
        }
    }

    /// Runs all packets and checks them.
    pub(super) fn finish(&mut self) {
        let total = self.expected.len() + self.seals.len();
        let limit = self.tb.cycles() + 4_000 * total as u64 + 10_000;
        while self.seals.len() < total || self.headers.len() < self.seals.iter().filter(|(p, _)| !p.raw).count() {
            assert!(self.tb.cycles() < limit, "{} of {total} packets", self.seals.len());
            self.step();
        }
        (0..200).for_each(|_| self.step());
        let (fo, fl, fh) = (Fields::of::<TxOp>(), Fields::of::<SlotSeal>(), Fields::of::<HdrOp>());
        let mut headers = self.headers.drain(..);
        (self.asked, self.next_base) = (0, 0);
        for (number, (p, seal)) in self.seals.drain(..).enumerate() {
            for name in ["qpn", "epoch", "psn", "wqe_index", "notify", "reply", "function"] {
                assert_eq!(fl.get(&seal, name), fo.get(&p.op, name), "{name}");
            }
            let reply = fo.get(&p.op, "reply");
            assert_eq!((fl.get(&seal, "request"), fl.get(&seal, "round")), (1 - reply, fo.get(&p.op, "round")));
            // Judged when it was sealed; an error beside it says nothing.
            let stale = fl.get(&seal, "abort") == 1 && fl.get(&seal, "status") == 0;
            assert!(stale || (fl.get(&seal, "abort") == 1) == (p.status != 0));
            let reads = self.counts.get(number).copied().unwrap_or_else(|| self.reads.remove(&p.slot).unwrap_or(0));
            assert_eq!(fl.get(&seal, "reads") as u64, reads);
            for (n, byte) in p.payload.iter().enumerate() {
                let got = self.memory.remove(&(p.base + p.hdr_len + n as u64));
                assert!(p.status != 0 || stale || got == Some(*byte), "byte {n} of {}: {got:?} instead of {byte}", p.payload.len());
            }
            if p.raw {
                continue;
            }
            let header = headers.next().expect("one header per packet");
            for name in [
                "qpn",
                "opcode",
                "dest_qpn",
                "psn",
                "ack_req",
                "solicited",
                "pay_len",
                "has_reth",
                "raddr",
                "rkey",
                "dma_len",
                "has_imm",
                "imm",
                "has_aeth",
                "aeth",
                "has_atomic",
                "has_atomic_ack",
                "operand",
                "compare",
                "has_deth",
            ] {
                assert_eq!(fh.get(&header, name), fo.get(&p.op, name), "{name}");
            }
            let pad = (p.payload.len() as u64).wrapping_neg() % 4;
            assert_eq!((fh.get(&header, "slot") as u64, fh.get(&header, "kind"), fh.get(&header, "pad") as u64), (p.slot, 0, pad));
        }
        self.counts.clear();
        assert!(headers.next().is_none() && self.memory.is_empty() && self.reads.is_empty(), "more than asked for");
    }
}
