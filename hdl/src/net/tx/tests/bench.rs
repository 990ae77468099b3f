//! Plays gatherer, DMA, header builder, acknowledge generator, MAC and requester around one egress.

use super::makers::inline_write;
use crate::msg::{HdrDone, PayDone, SlotGrant, SlotReq, SlotSeal, TxDone};
use crate::net::icrc::model as icrc;
use crate::roce::header::model::{header, Op};
use crate::tb::{AxisSink, Fields, Sink, Source, Tb};
use ferric_abi::context::PathCtx;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Kind {
    #[default]
    Data,
    Raw,
    Bypass,
}

/// What the frame shall suffer.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub kind: Kind,
    pub pay_len: usize,
    pub reth: bool,
    pub inline: bool,
    pub notify: bool,
    /// Seal says abort, with this status.
    pub abort: Option<u8>,
    pub read_error: bool,
    pub no_path: bool,
    pub wrong_len: bool,
    /// Of a round that is over.
    pub stale: bool,
}

/// The round that a queue pair is in.
fn round_of(qpn: u64) -> u64 {
    (qpn ^ qpn >> 7) & 3
}

/// Whose frame it is said to be.
fn function_of(bytes: &[u8]) -> u128 {
    bytes.len() as u128 & 0xfff
}

struct Frame {
    plan: Plan,
    bytes: Vec<u8>,
    hdr_len: usize,
    ipv6: bool,
    vlan: bool,
    id: u32,
}

enum HdrStep {
    /// Slot, number of the row, bytes.
    Row(u32, usize, Vec<u8>),
    Done(Vec<u32>),
}

struct Read {
    slot: u32,
    writes: VecDeque<(usize, Vec<u8>)>,
    err: bool,
}

struct Seal {
    due: u64,
    inline_before: u64,
    words: Vec<u32>,
}

pub struct Bench {
    pub tb: Tb,
    pub k: usize,
    /// Bytes of its assembly buffer.
    pub asm: usize,
    slots: usize,
    stall: u32,
    /// No delays of the bench's own, payload not written and not compared.
    pub prompt: bool,
    pub hold_reads: bool,
    slot: [Source; 2],
    grant: [Sink; 2],
    seal: [Source; 2],
    pay_done: Source,
    hdr: Source,
    inline: Source,
    mac: AxisSink,
    done: Sink,
    reply_done: Sink,
    asked: [VecDeque<Frame>; 2],
    hdr_steps: VecDeque<HdrStep>,
    reads: Vec<Read>,
    seals: [VecDeque<Seal>; 2],
    inline_pushed: u64,
    expected: [VecDeque<Vec<u8>>; 2],
    /// Of the requester's frames (even ids) and of replies.
    reports: [VecDeque<(u32, u32)>; 2],
    counts: [u64; 2],
    /// Functions of frames that have begun to leave.
    begun: VecDeque<u128>,
    wanted: [u64; 2],
    pub sent_data: usize,
    pub sent_bypass: usize,
    pub first_beat: u64,
    pub last_beat: u64,
    pub beats: u64,
    inside: bool,
    next_id: u32,
}

impl Bench {
    pub fn new(mut tb: Tb, k: usize, stall: u32) -> Bench {
        Bench {
            slot: [tb.source("s_slot$0", stall), tb.source("s_slot$1", stall)],
            grant: [tb.sink("m_slot$0", stall), tb.sink("m_slot$1", stall)],
            seal: [tb.source("s_seal$0", stall), tb.source("s_seal$1", stall)],
            pay_done: tb.source("s_pay_done", stall),
            hdr: tb.source("s_hdr$0", stall),
            inline: tb.source("s_inline", stall),
            mac: tb.axis_sink("m", stall),
            done: tb.sink("m_done", stall),
            reply_done: tb.sink("m_reply_done", stall),
            tb,
            k,
            asm: 1 << super::asm_log2(super::log_slots(k)),
            slots: 1 << super::log_slots(k),
            stall,
            prompt: false,
            hold_reads: false,
            asked: Default::default(),
            hdr_steps: VecDeque::new(),
            reads: Vec::new(),
            seals: Default::default(),
            inline_pushed: 0,
            expected: Default::default(),
            reports: Default::default(),
            counts: [0; 2],
            begun: VecDeque::new(),
            wanted: [0; 2],
            sent_data: 0,
            sent_bypass: 0,
            first_beat: 0,
            last_beat: 0,
            beats: 0,
            inside: false,
            next_id: 0,
        }
    }

    pub fn random_plan(&mut self) -> Plan {
        let longest = 16383.min(self.asm as u64 / 2);
        let rng = self.tb.rng();
        let kind = match rng.below(6) {
            0 | 1 => Kind::Bypass,
            2 => Kind::Raw,
            _ => Kind::Data,
        };
        let pay_len = match rng.below(4) {
            0 if kind == Kind::Raw => rng.range(1, longest),
            0 => rng.range(1, 4096),
            1 => rng.range(0, 80),
            2 => rng.range(200, 1100),
            _ => 64 << rng.below(4),
        } as usize;
        let inline = rng.percent(20);
        let mut plan =
            Plan { kind, pay_len: if inline { pay_len % 200 } else { pay_len }.max((kind == Kind::Raw) as usize), reth: rng.percent(40), inline, notify: rng.percent(30), ..Plan::default() };
        match rng.below(24) {
            0 => plan.abort = Some(*[4, 1, 0].get(rng.below(3) as usize).expect("three")),
            1 => plan.read_error = !plan.inline,
            2 => plan.no_path = plan.kind != Kind::Raw,
            3 => plan.wrong_len = plan.kind != Kind::Raw,
            _ => {}
        }
        if kind == Kind::Bypass {
            plan = Plan { kind, no_path: plan.no_path, ..Plan::default() };
        } else {
            // Whatever else is wrong with it.
            plan.stale = self.tb.rng().percent(10);
        }
        plan
    }

    pub fn requests_waiting(&self) -> usize {
        self.asked.iter().map(VecDeque::len).max().unwrap_or(0)
    }

    pub fn request(&mut self, plan: Plan) {
        let rng = self.tb.rng();
        let mut path = PathCtx(rng.bytes(64).try_into().expect("64 bytes"));
        if self.prompt {
            path.set_ipv6(false).set_vlan(false);
        }
        let pad = (4 - plan.pay_len % 4) % 4;
        let rng = self.tb.rng();
        let op = Op {
            opcode: rng.next_u32() as u8,
            psn: rng.next_u32() >> 8,
            pay_len: plan.pay_len as u16,
            pad: pad as u8,
            reth: plan.reth.then(|| (rng.next_u64(), rng.next_u32(), rng.next_u32())),
            aeth: (plan.kind == Kind::Bypass).then(|| rng.next_u32()),
            ..Op::default()
        };
        let mut bytes = if plan.kind == Kind::Raw { Vec::new() } else { header(&op, &path) };
        let hdr_len = bytes.len();
        bytes.extend(rng.bytes(plan.pay_len));
        if plan.kind != Kind::Raw {
            bytes.extend(vec![0; pad + 4]);
            icrc::seal(&mut bytes).expect("a frame with an ICRC");
        }
        let port = (plan.kind == Kind::Bypass) as usize;
        self.slot[port].push(Fields::of::<SlotReq>().pack(&[
            ("frame_len", bytes.len() as u128),
            ("hdr_len", hdr_len as u128),
            ("pay_len", (plan.pay_len & 0x1fff) as u128),
            ("bypass", port as u128),
            ("raw", (plan.kind == Kind::Raw) as u128),
        ]));
        self.next_id += 1;
        let (ipv6, vlan) = (path.ipv6(), path.vlan());
        self.asked[port].push_back(Frame { plan, bytes, hdr_len, ipv6, vlan, id: self.next_id & 0xff_ffff });
    }

    /// A slot was granted: schedule everything that fills it.
    fn granted(&mut self, port: usize, slot: u32, base: usize) {
        let frame = self.asked[port].pop_front().expect("a grant without request");
        let plan = frame.plan.clone();
        let now = self.tb.cycles();
        if port == 0 {
            let rows = frame.bytes.len().div_ceil(self.k) * self.k;
            assert!(base % self.k == 0 && base + rows <= self.asm, "base {base}");
        }
        let aborted = plan.abort.is_some();
        let bad_header = !aborted && (plan.no_path || plan.wrong_len);
        // Header
        if plan.kind != Kind::Raw {
            if !plan.no_path {
                for (i, row) in frame.bytes[..frame.hdr_len].chunks(self.k).enumerate() {
                    let mut row = row.to_vec();
                    row.resize(self.k, 0);
                    self.hdr_steps.push_back(HdrStep::Row(slot, i, row));
                }
            }
            self.hdr_steps.push_back(HdrStep::Done(Fields::of::<HdrDone>().pack(&[
                ("slot", slot.into()),
                ("len", frame.hdr_len as u128 + 4 * plan.wrong_len as u128),
                ("ipv6", frame.ipv6.into()),
                ("vlan", frame.vlan.into()),
                ("abort", plan.no_path.into()),
            ])));
        }
        // Payload
        let start = base + frame.hdr_len;
        let payload = &frame.bytes[frame.hdr_len..frame.hdr_len + plan.pay_len];
        let mut reads = 0;
        if plan.inline {
            // Of any length: whoever writes cuts as its own buffer lies.
            let mut at = 0;
            while at < payload.len() {
                let most = (payload.len() - at).min(32) as u64;
                let n = if self.prompt || self.tb.rng().percent(50) { most } else { self.tb.rng().range(1, most) } as usize;
                self.inline.push(inline_write(start + at, &payload[at..at + n]));
                self.inline_pushed += 1;
                at += n;
            }
        } else {
            let mut at = 0;
            while at < payload.len() {
                let most = (payload.len() - at) as u64;
                let n = if self.prompt || self.tb.rng().percent(50) { most } else { self.tb.rng().range(1, most) } as usize;
                let err = plan.read_error && at + n == payload.len();
                let mut writes = VecDeque::new();
                let mut off = 0;
                while !self.prompt && !err && off < n {
                    // Beats as the DMA has them: the first one may be short.
                    let len = (n - off).min(self.tb.rng().range(1.max(self.k as u64 / 2), self.k as u64) as usize);
                    writes.push_back((start + at + off, payload[at + off..at + off + len].to_vec()));
                    off += len;
                }
                self.reads.push(Read { slot, writes, err });
                reads += 1;
                at += n;
            }
        }
        let err = plan.read_error && reads > 0;
        // A request of the present round, one of an earlier one, or no request, whose round means nothing.
        let qpn = (u64::from(frame.id) * 0x1235) & 0xff_ffff;
        let request = plan.stale || (port == 0 && self.tb.rng().percent(60));
        let round = match (request, plan.stale) {
            (true, false) => round_of(qpn),
            (true, true) => (round_of(qpn) + self.tb.rng().range(1, 3)) % 4,
            _ => self.tb.rng().below(4),
        };
        let due = if self.prompt { now } else { now + self.tb.rng().below(200) };
        self.seals[port].push_back(Seal {
            due,
            inline_before: self.inline_pushed,
            words: Fields::of::<SlotSeal>().pack(&[
                ("slot", slot.into()),
                ("reads", reads),
                ("abort", aborted.into()),
                ("notify", plan.notify.into()),
                ("reply", (frame.id & 1).into()),
                ("qpn", qpn.into()),
                ("request", request.into()),
                ("round", round.into()),
                ("epoch", 0x56),
                ("psn", frame.id.into()),
                ("wqe_index", (frame.id & 0xffff).into()),
                ("status", plan.abort.unwrap_or(0).into()),
                ("function", function_of(&frame.bytes)),
            ]),
        });
        // What must come of it
        let status = match (err, plan.abort) {
            _ if plan.stale => 0,
            (true, _) => 19,
            (_, Some(status)) => status.into(),
            _ if bad_header => 2,
            _ => 0,
        };
        let dropped = err || aborted || bad_header || plan.stale;
        self.wanted[dropped as usize] += 1;
        if port == 0 && (if dropped { status != 0 } else { plan.notify }) {
            self.reports[frame.id as usize & 1].push_back((frame.id, status));
        }
        if dropped {
            // Its place in the order shows in the rows only.
            if port == 0 {
                self.expected[0].push_back(Vec::new());
            }
        } else {
            self.expected[port].push_back(frame.bytes);
        }
    }

    pub fn step(&mut self) {
        let eager = if self.prompt { 100 } else { 40 + self.tb.rng().below(50) as u32 };
        // Header RAM
        self.tb.set("s_row$0$valid", 0);
        if self.tb.rng().percent(eager) {
            match self.hdr_steps.pop_front() {
                Some(HdrStep::Row(slot, at, row)) => {
                    self.tb.set("s_row$0$valid", 1);
                    self.tb.set("s_row$0$slot", slot.into());
                    self.tb.set("s_row$0$row", at as u64);
                    self.tb.set_wide("s_row$0$data", words(&row));
                    // One row a cycle; a prompt bench follows up with the answer at once.
                    if self.prompt && matches!(self.hdr_steps.front(), Some(HdrStep::Done(_))) {
                        if let Some(HdrStep::Done(message)) = self.hdr_steps.pop_front() {
                            self.hdr.push(message);
                        }
                    }
                }
                Some(HdrStep::Done(message)) => self.hdr.push(message),
                None => {}
            }
        }
        // Reads, in any order
        let mut write = None;
        if !self.reads.is_empty() && !self.hold_reads && self.tb.rng().percent(eager) {
            let pick = if self.prompt { 0 } else { self.tb.rng().below(self.reads.len().min(12) as u64) as usize };
            write = self.reads[pick].writes.pop_front();
            if self.reads[pick].writes.is_empty() {
                let read = self.reads.remove(pick);
                self.pay_done.push(Fields::of::<PayDone>().pack(&[("slot", read.slot.into()), ("err", read.err.into())]));
            }
        }
        let mut lanes = (0u64, 0u64);
        if let Some((dst, bytes)) = write {
            let mut row = self.tb.rng().bytes(self.k);
            for (i, byte) in bytes.iter().enumerate() {
                let lane = (dst + i) % self.k;
                row[lane] = *byte;
                lanes.0 |= 1 << lane;
                lanes.1 |= u64::from(lane < dst % self.k) << lane;
            }
            self.tb.set("asm_addr", (dst / self.k) as u64);
            self.tb.set_wide("asm_data", words(&row));
        }
        let looked_at = self.tb.get("look");
        self.tb.set("round", round_of(looked_at));
        self.tb.set("asm_we", lanes.0);
        self.tb.set("asm_row1", lanes.1);
        // Seals, after the inline data they speak for was taken
        for port in 0..2 {
            let ripe = |s: &Seal| s.due <= self.tb.cycles() && s.inline_before <= self.inline.taken();
            if self.seals[port].front().is_some_and(ripe) {
                if let Some(seal) = self.seals[port].pop_front() {
                    self.seal[port].push(seal.words);
                }
            }
        }
        self.tb.begin();
        self.watch();
        self.tb.end();
        self.collect();
    }

    /// Looks at the MAC port and the statistics in the middle of a cycle.
    fn watch(&mut self) {
        let stat = self.tb.get("stat");
        self.counts[0] += stat & 1;
        self.counts[1] += stat >> 1;
        if self.tb.get("begins") == 1 {
            self.begun.push_back(self.tb.get("begins_function").into());
        }
        let valid = self.tb.get("m$valid") == 1;
        if self.stall == 0 {
            assert!(valid || !self.inside, "cycle {}: a gap inside a frame", self.tb.cycles());
            if valid {
                self.inside = self.tb.get("m$last") == 0;
            }
        }
        if valid {
            self.beats += 1;
            self.last_beat = self.tb.cycles();
            if self.first_beat == 0 {
                self.first_beat = self.tb.cycles();
            }
        }
    }

    fn collect(&mut self) {
        for port in 0..2 {
            let layout = Fields::of::<SlotGrant>();
            while let Some(message) = self.grant[port].pop() {
                self.granted(port, layout.get(&message, "slot") as u32, layout.get(&message, "base") as usize);
            }
        }
        while let Some(frame) = self.mac.pop() {
            assert_eq!(self.begun.pop_front(), Some(function_of(&frame)), "whose frame it is");
            while self.expected[0].front().is_some_and(Vec::is_empty) {
                self.expected[0].pop_front();
            }
            let matches = |wanted: Option<&Vec<u8>>| match wanted {
                // A prompt bench has not written the payload: only length and header count.
                Some(w) if self.prompt => w.len() == frame.len() && w[..54] == frame[..54],
                Some(w) => *w == frame,
                None => false,
            };
            if matches(self.expected[1].front()) {
                self.expected[1].pop_front();
                self.sent_bypass += 1;
            } else if matches(self.expected[0].front()) {
                self.expected[0].pop_front();
                self.sent_data += 1;
            } else {
                panic!("unexpected frame {frame:02x?}\nnext data {:02x?}\nnext bypass {:02x?}", self.expected[0].front(), self.expected[1].front());
            }
        }
        let layout = Fields::of::<TxDone>();
        for (n, sink) in [&self.done, &self.reply_done].into_iter().enumerate() {
            while let Some(message) = sink.pop() {
                let got = (layout.get(&message, "psn") as u32, layout.get(&message, "status") as u32);
                assert_eq!(Some(got), self.reports[n].pop_front());
                assert_eq!((layout.get(&message, "qpn"), layout.get(&message, "epoch"), layout.get(&message, "reply")), (u128::from((u64::from(got.0) * 0x1235) & 0xff_ffff), 0x56, n as u128));
                assert_eq!(layout.get(&message, "wqe_index") as u32, got.0 & 0xffff);
            }
        }
    }

    pub fn idle(&self) -> bool {
        self.requests_waiting() == 0 && self.counts == self.wanted && self.expected.iter().all(|q| q.iter().all(Vec::is_empty)) && self.reports.iter().all(VecDeque::is_empty)
    }

    pub fn state(&self) -> String {
        format!(
            "asked {:?}, reads {}, seals {:?}, expected {:?}, reports {}, counts {:?} of {:?}",
            [self.asked[0].len(), self.asked[1].len()],
            self.reads.len(),
            [self.seals[0].len(), self.seals[1].len()],
            [self.expected[0].len(), self.expected[1].len()],
            self.reports[0].len() + self.reports[1].len(),
            self.counts,
            self.wanted
        )
    }

    /// All slots are in the free list.
    pub fn start(&mut self) {
        (0..self.slots).for_each(|_| self.step());
    }

    /// Every frame left or was dropped, once.
    pub fn check_counts(&self) {
        assert_eq!(self.counts, self.wanted, "frames and aborts");
        assert_eq!((self.sent_data + self.sent_bypass) as u64, self.wanted[0]);
    }

    /// No slot and no row was lost: all can be had again.
    pub fn check_all_free(&mut self) {
        let ask = |bench: &mut Bench, port: usize, frame_len: u128| {
            bench.slot[port].push(Fields::of::<SlotReq>().pack(&[("frame_len", frame_len), ("hdr_len", 54), ("bypass", port as u128)]));
        };
        let mut slots = std::collections::HashSet::new();
        let wait = |bench: &mut Bench, slots: &mut std::collections::HashSet<u128>, cycles| {
            for _ in 0..cycles {
                bench.tb.cycle();
                for port in 0..2 {
                    while let Some(message) = bench.grant[port].pop() {
                        assert!(slots.insert(Fields::of::<SlotGrant>().get(&message, "slot")), "a slot granted twice");
                    }
                }
            }
        };
        // So many frames of 4 KiB fit wherever the ring stands, and a row for every other slot; then small ones up to the slots kept for bypass frames.
        let large = (self.asm - 4096 - (self.slots - 2) * self.k) / 4096;
        (0..large).for_each(|_| ask(self, 0, 4096));
        wait(self, &mut slots, 1000);
        assert_eq!(slots.len(), large, "rows lost");
        (0..self.slots - 4).for_each(|_| ask(self, 0, 1));
        wait(self, &mut slots, 4000);
        assert_eq!(slots.len(), self.slots - 2, "slots lost");
        (0..4).for_each(|_| ask(self, 1, 66));
        wait(self, &mut slots, 500);
        assert_eq!(slots.len(), self.slots, "slots lost");
    }
}

pub(super) fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|c| u32::from_le_bytes(c.try_into().expect("a multiple of four bytes"))).collect()
}
