//! The gatherer against buffers, keys, slots and an assembly memory in Rust.

mod inline;
mod pace;

use super::Gather;
use crate::msg::*;
use crate::roce::req_tx::OP_FREE;
use crate::tb::{Fields, Rng, Sink, Source, Tb};
use std::collections::{HashMap, VecDeque};

/// Byte of host memory at an IOVA.
fn host(iova: u64) -> u8 {
    (iova ^ iova >> 8 ^ iova >> 13).wrapping_mul(0x9d) as u8
}

/// A key's translation: its pages are scattered; low bits of the key choose what goes wrong.
fn translate(key: u32, va: u64) -> u64 {
    (va >> 12).wrapping_mul(0x1_0001).wrapping_add(u64::from(key)) << 12 | va & 0xfff
}

/// The round that a queue pair is in, when all have gone back `times`.
fn round_of(qpn: u64, times: u64) -> u64 {
    ((qpn ^ qpn >> 7) + times) & 3
}

fn key_status(key: u32) -> u8 {
    (key & 7).saturating_sub(1).min(6) as u8
}

#[derive(Clone, Debug)]
struct Packet {
    slot: u64,
    base: u64,
    hdr_len: u64,
    payload: Vec<u8>,
    op: Vec<u32>,
    status: u8,
    raw: bool,
}

struct World {
    tb: Tb,
    op: Source,
    reply: Source,
    wqe: (Sink, Source),
    free: Sink,
    mr: (Sink, Source),
    slot: (Sink, Source),
    pay: Sink,
    hdr: Sink,
    seal: Sink,
    inline: Sink,
    buffers: Vec<[u8; 512]>,
    ready_mr: VecDeque<(u64, Vec<u32>)>,
    mr_latency: u64,
    expected: VecDeque<Packet>,
    /// Slots asked for since the last check.
    asked: usize,
    memory: HashMap<u64, u8>,
    reads: HashMap<u64, u64>,
    /// Reads of packets whose slot has been granted again.
    counts: Vec<u64>,
    headers: Vec<Vec<u32>>,
    seals: Vec<(Packet, Vec<u32>)>,
    frees: Vec<u64>,
    next_base: u64,
    /// Who gets a buffer that has come back writes to it at once.
    spoils: bool,
    /// No slot is granted.
    full: bool,
    /// Granules of buffers that cannot be read.
    failed: Vec<(u64, u64)>,
    /// How often all queue pairs have gone back; cycles after which they do again, 0: when a test says so.
    rounds: u64,
    storm: u64,
    /// Packets that were sealed as stale.
    stale: usize,
}

impl World {
    fn new(seed: u64, stall: u32, mr_latency: u64) -> World {
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
    fn send(&mut self, op: &[(&str, u128)], payload: Vec<u8>, status: u8) {
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

    fn expect(&mut self, op: Vec<u32>, hdr_len: u64, payload: Vec<u8>, status: u8, raw: bool) {
        let n = (self.expected.len() + self.seals.len()) as u64;
        let packet = Packet { slot: n % 64, base: self.next_base, hdr_len, payload, op, status, raw };
        self.next_base = (self.next_base + (hdr_len + packet.payload.len() as u64 + 8).next_multiple_of(64)) % (1 << 18);
        self.expected.push_back(packet);
    }

    /// Queues a packet of the responder, behind all orders of the requester: `len` bytes at `va`. Keys of peers have bit 31 set here.
    fn answer(&mut self, va: u64, len: u64, key: u32) {
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

    fn step(&mut self) {
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
    fn finish(&mut self) {
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

/// Fills buffer `handle` with a list of entries; gives the message they hold.
fn entries(world: &mut World, handle: usize, list: &[(u64, u32, u32)]) -> Vec<u8> {
    entries_at(world, handle, 32, list)
}

/// The same from byte `at` on.
fn entries_at(world: &mut World, handle: usize, at: usize, list: &[(u64, u32, u32)]) -> Vec<u8> {
    let mut message = Vec::new();
    let start = at;
    for (n, (addr, length, key)) in list.iter().enumerate() {
        let sge = ferric_abi::host::Sge::default().with_addr(*addr).with_length(*length).with_lkey(*key);
        world.buffers[handle][start + 16 * n..start + 16 + 16 * n].copy_from_slice(&sge.0);
        message.extend((0..u64::from(*length)).map(|at| host(translate(*key, addr.wrapping_add(at)))));
    }
    message
}

fn random_list(rng: &mut Rng) -> Vec<(u64, u32, u32)> {
    let count = if rng.percent(10) { 30 } else { rng.range(1, 4) };
    let entry = |rng: &mut Rng| {
        let length = match rng.below(6) {
            0 => 0,
            1 => rng.range(1, 20),
            2 if count < 5 => rng.range(1, 9000),
            _ => rng.range(1, 1500),
        };
        let addr = if rng.percent(30) { rng.next_u64() & !0xfff } else { rng.next_u64() };
        (addr, length as u32, rng.next_u32() >> 1 & !7)
    };
    (0..count).map(|_| entry(rng)).collect()
}

/// Random messages in random pieces, several in turn, as req_tx orders them.
fn random_traffic(seed: u64, stall: u32, mr_latency: u64) {
    let mut world = World::new(seed, stall, mr_latency);
    world.spoils = true;
    for _ in 0..25 {
        // Up to three messages whose packets mix.
        let mut open: Vec<(usize, Vec<u8>, usize, Vec<(&str, u128)>)> = Vec::new();
        let mut freed = Vec::new();
        for handle in 0..world.tb.rng().range(1, 3) as usize {
            let inline = world.tb.rng().percent(25);
            // A datagram's address stands in front, and it is one packet.
            let datagram = world.tb.rng().percent(25);
            let front = if datagram { 48 } else { 32 };
            let (message, count) = if inline {
                let bytes = world.tb.rng().bytes(512 - front);
                world.buffers[handle][front..].copy_from_slice(&bytes);
                let len = world.tb.rng().range(0, bytes.len() as u64) as usize;
                (bytes[..len].to_vec(), world.tb.rng().below(256))
            } else {
                let mut list = random_list(world.tb.rng());
                if datagram {
                    list.truncate(29);
                    let most = 4096 / list.len() as u32;
                    list.iter_mut().for_each(|entry| entry.1 = entry.1.min(most));
                }
                (entries_at(&mut world, handle, front, &list), list.len() as u64)
            };
            let rng = world.tb.rng();
            let raw = !datagram && message.len() < 8000 && !message.is_empty() && rng.percent(15);
            let mtu = if raw || datagram { 1 << 20 } else { 256 << rng.below(5) };
            let fields = vec![
                ("handle", handle as u128),
                ("num_sge", count.into()),
                ("inline_data", inline.into()),
                ("pd", 77),
                ("function", 99),
                ("qp_type", if raw { 3 } else { 2 * u128::from(datagram) }),
                ("has_deth", datagram.into()),
                ("ipv6", rng.below(2).into()),
                ("vlan", rng.below(2).into()),
                ("dma_len", message.len() as u128),
                ("qpn", rng.below(1 << 24).into()),
                ("dest_qpn", rng.below(1 << 24).into()),
                ("epoch", rng.below(256).into()),
                ("opcode", rng.below(12).into()),
                ("raddr", rng.next_u64().into()),
                ("rkey", rng.next_u32().into()),
                ("imm", rng.next_u32().into()),
                ("wqe_index", rng.below(65536).into()),
            ];
            open.push((0, message, mtu, fields));
        }
        while !open.is_empty() {
            let pick = world.tb.rng().below(open.len() as u64) as usize;
            for _ in 0..world.tb.rng().range(1, 5) {
                let (at, message, mtu, fields) = &mut open[pick];
                let len = (message.len() - *at).min(*mtu);
                let last = *at + len == message.len();
                let rng = world.tb.rng();
                let (raw, datagram) = (fields.contains(&("qp_type", 3)), fields.contains(&("qp_type", 2)));
                let apart = last && rng.percent(20);
                let mut op = fields.clone();
                op.extend([
                    ("pay_off", *at as u128),
                    ("pay_len", len as u128),
                    ("free", (last && !apart).into()),
                    ("psn", rng.below(1 << 24).into()),
                    ("has_reth", (*at == 0 && !raw && !datagram && rng.percent(50)).into()),
                    ("has_imm", (last && !raw && rng.percent(50)).into()),
                    ("notify", rng.below(2).into()),
                    ("ack_req", rng.below(2).into()),
                    ("solicited", rng.below(2).into()),
                ]);
                let payload = message[*at..*at + len].to_vec();
                *at += len;
                let handle = fields[0].1;
                world.send(&op, payload, 0);
                if world.tb.rng().percent(20) {
                    // A reply between two packets of a message: the message's list must be found again.
                    let rng = world.tb.rng();
                    let (va, len) = (rng.next_u64(), rng.range(0, 4096));
                    let key = 1 << 31 | rng.next_u32() & if rng.percent(90) { !7 } else { !5 };
                    world.answer(va, len, key);
                }
                if apart {
                    world.send(&[("handle", handle), ("opcode", OP_FREE.into()), ("free", 1)], Vec::new(), 0);
                }
                if last {
                    freed.push(handle as u64);
                    open.remove(pick);
                    break;
                }
            }
        }
        world.finish();
        // Those of inline data come back later than others.
        world.frees.sort();
        freed.sort();
        assert_eq!(std::mem::take(&mut world.frees), freed);
    }
}

#[test]
fn payload_arrives_where_it_belongs() {
    random_traffic(1, 0, 8);
    random_traffic(2, 40, 0);
    random_traffic(3, 20, 60);
}

/// Of packets of an earlier round nothing is read any more, whole messages of them or what is left of one; every buffer, slot and header goes its way all the same, and replies are not concerned.
#[test]
fn what_is_stale_is_not_read() {
    for (seed, stall) in [(11, 0), (12, 30)] {
        let mut world = World::new(seed, stall, 20);
        let mut packets = 0;
        for turn in 0..40u64 {
            let handle = (turn % 8) as usize;
            let list: Vec<_> = (0..6).map(|n| (0x1000 * (turn << 8 | n) + 0xf00, 300, 8 << n)).collect();
            let message = entries(&mut world, handle, &list);
            let fields = [("pd", 77u128), ("function", 99), ("handle", handle as u128), ("num_sge", 6), ("dma_len", 1800), ("qpn", (turn * 77).into()), ("free", 1), ("pay_len", 1800)];
            world.send(&fields, message, 0);
            if turn % 3 == 0 {
                let va = world.tb.rng().next_u64();
                world.answer(va, 500, 1 << 31);
            }
            packets += 1;
            // All go back in the middle of what is under way.
            for _ in 0..world.tb.rng().below(60) {
                world.step();
            }
            if world.tb.rng().percent(40) {
                world.rounds += 1;
                // Another time only when nothing older than a round is left: rounds are counted modulo 4.
                while !world.expected.is_empty() {
                    world.step();
                }
            }
        }
        let stale = world.stale;
        assert!((5..packets - 4).contains(&stale), "{stale} of {packets} packets were stale");
        world.finish();
        assert_eq!(world.frees.len(), packets);
    }
}

/// Queue pairs that go back again and again, so that a packet's round comes round while it is read: what goes out is whole.
#[test]
fn a_packet_of_which_something_was_left_out_does_not_leave() {
    for (seed, storm) in [(21, 3), (22, 5), (23, 9)] {
        let mut world = World::new(seed, 20, 20);
        world.storm = storm;
        for turn in 0..60u64 {
            let handle = (turn % 8) as usize;
            let count = 1 + turn % 6;
            let list: Vec<_> = (0..count).map(|n| (0x1000 * (turn << 8 | n) + 0xf00, 300, 8 << n)).collect();
            let message = entries(&mut world, handle, &list);
            let fields = [
                ("pd", 77u128),
                ("function", 99),
                ("handle", handle as u128),
                ("num_sge", count.into()),
                ("dma_len", (300 * count).into()),
                ("qpn", (turn * 77).into()),
                ("free", 1),
                ("pay_len", (300 * count).into()),
            ];
            world.send(&fields, message, 0);
            (0..30).for_each(|_| world.step());
        }
        world.finish();
        assert!((1..60).contains(&world.stale), "{} of 60 packets were stale", world.stale);
    }
}

/// Packets of two messages take turns: each resumes where the other stopped, but in its own list.
#[test]
fn messages_that_take_turns_keep_their_lists() {
    let mut world = World::new(7, 10, 5);
    let messages: Vec<_> = (0..2usize)
        .map(|handle| {
            let (addr, key) = (0x5_0000 + 0x123 * handle as u64, 8 + 8 * handle as u32);
            entries(&mut world, handle, &[(addr, 700, key), (addr << 8, 4000, key)])
        })
        .collect();
    for at in (0..4700usize).step_by(512) {
        for (handle, message) in messages.iter().enumerate() {
            let end = message.len().min(at + 512);
            let fields = [
                ("pd", 77u128),
                ("function", 99),
                ("handle", handle as u128),
                ("num_sge", 2),
                ("dma_len", 4700),
                ("pay_off", at as u128),
                ("pay_len", (end - at) as u128),
                ("free", (end == message.len()).into()),
            ];
            world.send(&fields, message[at..end].to_vec(), 0);
        }
    }
    world.finish();
    assert_eq!(world.frees, [0, 1]);
}

/// Packets, entries and pages that end together: nothing is left of one of them.
#[test]
fn what_ends_with_its_page_has_nothing_behind_it() {
    let mut world = World::new(8, 10, 5);
    // An entry that ends with its page, one that a packet leaves at the end of a page, one of just a page.
    let list = [(0x1f00, 0x100, 8), (0x2e00, 0x400, 16), (0x5000, 0x1000, 24)];
    let message = entries(&mut world, 0, &list);
    let mut at = 0;
    for len in [0x80, 0x280, 0x200, 0x1000] {
        let fields = [("pd", 77u128), ("function", 99), ("num_sge", 3), ("dma_len", 0x1500), ("pay_off", at as u128), ("pay_len", len as u128)];
        world.send(&fields, message[at..at + len].to_vec(), 0);
        at += len;
    }
    world.finish();
}

#[test]
fn errors_abort_the_packet_and_nothing_else() {
    for stall in [0, 30] {
        let mut world = World::new(4, stall, 5);
        let base = [("pd", 77u128), ("function", 99), ("qpn", 9), ("free", 1)];
        let op = |handle: u128, count: u128, len: u128, more: &[(&'static str, u128)]| {
            let fixed = [("handle", handle), ("num_sge", count), ("pay_len", len), ("dma_len", len)];
            [&base[..], &fixed, more].concat()
        };
        // Good, key refused with each status in the first, then in the last of three entries, good again.
        for bad in 0..14u32 {
            let status = bad / 2 + 1;
            let keys = if bad % 2 == 0 { [status, 8, 16] } else { [8, 16, status] };
            let list: Vec<_> = keys.iter().map(|key| (0x1ff0, 300, *key)).collect();
            let message = entries(&mut world, bad as usize, &list);
            let expected = match key_status(status) {
                0 => 0,
                6 => 19,
                _ => 4,
            };
            world.send(&op(bad.into(), 3, 900, &[]), message, expected);
        }
        // Entries shorter than the packet; too many; none; inline data beyond the buffer.
        let short = entries(&mut world, 20, &[(0, 100, 8), (0, 100, 8)]);
        world.send(&op(20, 2, 201, &[]), [short.clone(), vec![0]].concat(), 1);
        entries(&mut world, 21, &[(0, 100, 8); 30]);
        world.send(&op(21, 31, 10, &[]), vec![0; 10], 1);
        world.send(&op(22, 0, 10, &[]), vec![0; 10], 1);
        world.send(&op(22, 0, 0, &[]), Vec::new(), 0);
        world.send(&op(23, 0, 256, &[("inline_data", 1), ("pay_off", 256)]), vec![0; 256], 1);
        world.send(&op(20, 2, 200, &[]), short, 0);
        // An address takes the place of an entry.
        entries_at(&mut world, 24, 48, &[(0, 100, 8); 29]);
        world.send(&op(24, 30, 10, &[("has_deth", 1), ("qp_type", 2)]), vec![0; 10], 1);
        world.send(&op(25, 0, 465, &[("inline_data", 1), ("has_deth", 1), ("qp_type", 2)]), vec![0; 465], 1);
        world.finish();
        assert_eq!(world.frees.len(), 22);
    }
}

/// A fence passes when the payload of every order taken before has been asked of the host, however much comes behind.
#[test]
fn a_fence_waits_for_the_payload_of_orders_before_it() {
    for seed in 0..8 {
        let mut w = World::new(300 + seed, 20, 150);
        for n in 0..120u64 {
            w.answer(0x10_0000 + 4096 * n, 200, 1 << 31);
        }
        let loaded: Vec<_> = w.expected.iter().map(|p| !p.payload.is_empty()).collect();
        for _ in 0..6 {
            // It makes no packet: nobody waits for one.
            w.op.push(Fields::of::<TxOp>().pack(&[("handle", 1), ("opcode", OP_FREE.into()), ("free", 1)]));
        }
        let wait = 20 * seed;
        (0..wait).for_each(|_| w.step());
        w.tb.set("fence", 1);
        w.step();
        w.tb.set("fence", 0);
        let before = loaded[..w.reply.taken() as usize].iter().filter(|l| **l).count() as u64;
        let start = w.tb.cycles();
        while w.tb.get("passed") == 0 {
            assert!(w.tb.cycles() - start < 6000, "does not end");
            w.step();
        }
        let asked = w.pay.taken();
        assert!(asked >= before, "{asked} reads of {before}");
        assert!(w.reply.pending() > 0, "waited for all");
        w.finish();
        // With nothing under way there is nothing to wait for.
        w.tb.set("fence", 1);
        w.step();
        w.tb.set("fence", 0);
        w.tb.run_until(50, |tb| tb.get("passed") == 1);
    }
}
