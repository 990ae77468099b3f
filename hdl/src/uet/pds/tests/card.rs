//! An end whose packet delivery is the engine: what stands around it (addresses, IP, payload, memory) is here.
use crate::tb::{AxisSink, AxisSource, Fields, Sink, Source, Tb};
use crate::uet::head::types::Note;
use crate::uet::pdc::types::{STATS, STAT_BITS};
use crate::uet::pds::types::{Delivered, Finished, FrameNote, Gone, Message, MessageEnd};
use crate::uet::pds::Pds;
use ferric_abi::uet::codes::{NackCode, ReturnCode, SesOpcode};
use ferric_abi::wire::{ethertype, protocol, Eth, Ipv4};
use ferric_uet::model::{Config, Mode};
use std::collections::{BTreeMap, VecDeque};

pub const LP: usize = 4;
pub const LW: usize = 7;
const LM: usize = 5;
/// Places for responses: 63, of which 15 are for the oldest packet of each PDC.
const LK: usize = 6;

/// Cycles of a tick.
pub const TICK: u64 = 16;

/// An end of a message of ours: token, why it failed (0: it did not), code.
pub type Ended = (u64, u64, u64);

/// A packet that semantics have.
struct Task {
    due: u64,
    answer: Vec<u32>,
}

/// A message that is being received: bytes that are missing, header data, whether a packet of it has failed.
struct Incoming {
    left: u64,
    header_data: Option<u64>,
    failed: bool,
}

pub struct Card {
    pub tb: Tb,
    beats: AxisSource,
    notes: Source,
    posts: Source,
    dones: Source,
    headers: AxisSink,
    out_notes: Sink,
    ends: Sink,
    delivered: Sink,
    ending: [Source; 2],
    settled: bool,
    /// Own address and the other's, by line of the address table.
    lines: Vec<(u32, u32)>,
    mac: u64,
    macs: BTreeMap<u32, u64>,
    handle: u16,
    /// Bytes behind IP of frames that were not judged yet, by handle.
    frames: BTreeMap<u16, Vec<u8>>,
    /// Data of messages of ours, by token.
    data: BTreeMap<u64, Vec<u8>>,
    /// Notes of frames whose headers have not come, and the other way.
    waiting: VecDeque<Vec<u32>>,
    built: VecDeque<Vec<u8>>,
    tasks: Vec<Task>,
    incoming: BTreeMap<(u64, u64), Incoming>,
    /// Codes with which packets of messages to these places are answered: the first packet of each, and every second of the others.
    pub codes: BTreeMap<u64, u64>,
    pub memory: Vec<u8>,
    /// How often each byte was written.
    pub written: Vec<u8>,
    pub arrived: Vec<u64>,
    pub ended: Vec<Ended>,
    pub stats: BTreeMap<&'static str, u64>,
    /// Ticks that semantics take at most, and packets in 100 that they refuse.
    pub slow: u64,
    pub refuses: u32,
    now: u64,
}

impl Card {
    /// With stalls in so many percent of cycles.
    pub fn new<const W: usize, const K: usize, const L: usize>(seed: u64, config: &Config, stall: u32, bytes: usize) -> Self {
        let block = Pds::<W, K, L, LP, 3, LW, { LP + LW - 6 }, { LP + LW }, { LP + 6 }, LM, LK, { LP + 2 }>::default();
        let mut tb = Tb::with_seed(&format!("uet_pds{W}"), block, seed);
        let range = config.default_mpr * config.mpr_unit;
        for (port, value) in [
            ("port", ferric_abi::uet::UET_PORT.into()),
            ("rto", config.rto),
            ("nack_wait", config.nack_wait),
            ("idle", config.idle),
            ("safety", config.safety),
            ("reap", config.reap),
            ("clear_wait", config.clear_wait),
            ("tail_loss", config.tail_loss),
            ("stall_least", config.stall_least),
            ("rto_max", config.rto_max.into()),
            ("nack_max", config.nack_max.into()),
            ("default_range", range.into()),
            ("ask_bytes", config.ack_bytes.into()),
            ("mtu", config.mtu.into()),
            ("path_order", config.path_order.into()),
            ("last_slot", u64::from(config.entropies) - 1),
            ("ack_bytes", config.ack_bytes.into()),
            ("ack_least", config.ack_least.into()),
            ("ack_wait", config.ack_wait),
            ("window", config.window.into()),
            ("mpr", (config.window / config.mpr_unit).into()),
            ("share", 11),
            ("peer_share", config.peer_share.min(15) as u64),
            ("peer_initiators", config.peer_initiators.min(15) as u64),
            ("places", 15),
            ("seed", seed | 1),
        ] {
            tb.set(port, value);
        }
        tb.reset();
        for slot in 0..u64::from(config.entropies) {
            tb.set("table_slot", slot);
            tb.set("table_entropy", 0x8000 + 77 * slot);
            tb.set("table_en", 1);
            tb.cycle();
        }
        tb.set("table_en", 0);
        let (beats, notes, posts, dones) = (tb.axis_source("s", stall), tb.source("note", stall), tb.source("s_post", stall), tb.source("s_done", stall));
        let (headers, out_notes, ends, delivered) = (tb.axis_sink("m", stall), tb.sink("m_note", stall), tb.sink("m_end", stall), tb.sink("m_deliver", stall));
        let ending = [0, 1].map(|half| tb.source(&format!("s_ending${half}"), stall));
        let (memory, written) = (vec![0; bytes], vec![0; bytes]);
        let (lines, macs, frames, data, waiting, built, tasks, incoming, codes, arrived, ended) = Default::default();
        let stats = BTreeMap::new();
        Self {
            tb,
            beats,
            notes,
            posts,
            dones,
            headers,
            out_notes,
            ends,
            delivered,
            ending,
            settled: false,
            lines,
            mac: seed | 0x0200_0000_0000,
            macs,
            handle: 0,
            frames,
            data,
            waiting,
            built,
            tasks,
            incoming,
            codes,
            memory,
            written,
            arrived,
            ended,
            stats,
            slow: 0,
            refuses: 0,
            now: 0,
        }
    }

    /// Makes a pair of addresses known; lines are numbered in this order.
    pub fn pair(&mut self, own: u32, other: u32, mac: u64) {
        self.lines.push((own, other));
        self.macs.insert(other, mac);
    }

    /// Posts a WRITE to byte `at` of the other's memory; its token and header data are `at` + 1.
    pub fn write(&mut self, own: u32, other: u32, mode: Mode, at: u64, data: &[u8]) {
        let peer = self.lines.iter().position(|line| *line == (own, other)).unwrap();
        self.data.insert(at + 1, data.to_vec());
        let message = Fields::of::<Message>().pack(&[
            ("peer", peer as u128),
            ("rod", u128::from(mode == Mode::Rod)),
            ("token", u128::from(at + 1)),
            ("length", data.len() as u128),
            ("says.opcode", SesOpcode::Write as u128),
            ("says.dc", 1),
            ("says.rel", 1),
            ("says.hd", 1),
            ("says.generation", 0x5a),
            ("says.job", 0x12_3456),
            ("says.pid", 0x789),
            ("says.index", 0xabc),
            ("says.offset", at.into()),
            ("says.initiator", 0xdead_beef),
            ("says.key", 0x0123_4567_89ab_cdef),
            ("says.header_data", u128::from(at + 1)),
        ]);
        self.posts.push(message);
    }

    /// A frame comes.
    pub fn receive(&mut self, frame: &[u8]) {
        let ip = Ipv4(*frame[Eth::BYTES..].first_chunk().unwrap());
        let bytes = frame[Eth::BYTES + Ipv4::BYTES..Eth::BYTES + ip.total_length() as usize].to_vec();
        let Some(peer) = self.lines.iter().position(|line| *line == (ip.dst(), ip.src())) else { panic!("a frame for nobody") };
        let note = Fields::of::<Note>().pack(&[("peer", peer as u128), ("congested", u128::from(ip.ecn() == 3)), ("handle", self.handle.into())]);
        self.beats.push(&bytes);
        self.notes.push(note);
        self.frames.insert(self.handle, bytes);
        self.handle = self.handle.wrapping_add(1);
    }

    /// One cycle, and what came of it. Gives frames that have gone out.
    pub fn cycle(&mut self) -> Vec<Vec<u8>> {
        self.tb.set("now", self.now);
        self.tb.begin();
        let pulses = self.tb.get("pdc_stat");
        self.settled |= self.tb.get("settled") == 1;
        self.tb.end();
        if pulses != 0 {
            (0..STAT_BITS).filter(|bit| pulses >> bit & 1 == 1).for_each(|bit| *self.stats.entry(STATS[bit]).or_insert(0) += 1);
        }
        while let Some(words) = self.delivered.pop() {
            self.take(&words);
        }
        let now = self.now;
        let (over, rest): (Vec<Task>, _) = std::mem::take(&mut self.tasks).into_iter().partition(|task| task.due <= now);
        self.tasks = rest;
        over.into_iter().for_each(|task| self.dones.push(task.answer));
        while let Some(words) = self.ends.pop() {
            let fields = Fields::of::<MessageEnd>();
            self.ended.push((fields.get(&words, "token") as u64, fields.get(&words, "why") as u64, fields.get(&words, "code") as u64));
        }
        while let Some(note) = self.out_notes.pop() {
            self.waiting.push_back(note);
        }
        let mut out = Vec::new();
        while let Some(header) = self.headers.pop() {
            self.built.push_back(header);
        }
        while !self.built.is_empty() && !self.waiting.is_empty() {
            let (header, note) = (self.built.pop_front().unwrap(), self.waiting.pop_front().unwrap());
            out.push(self.frame(&note, header));
        }
        out
    }

    /// A peer goes, or all do. Gives the cycles that it takes until nothing of them is left, and the frames that go out meanwhile.
    pub fn part(&mut self, peer: Option<u64>) -> (u64, Vec<Vec<u8>>) {
        let gone = Fields::of::<Gone>();
        self.tb.set_wide("parted", &gone.pack(&[("on", 1), ("all", peer.is_none().into()), ("peer", peer.unwrap_or(0).into())])[..]);
        (0..1u64 << LP).rev().for_each(|place| self.ending.iter().for_each(|half| half.push(place)));
        let begun = self.tb.cycles();
        let mut out = Vec::new();
        // A packet that is delivered meanwhile would be one that had come before.
        while self.ending.iter().any(|half| half.pending() > 0) {
            assert!(self.tb.cycles() - begun < 50_000, "it hangs");
            out.append(&mut self.cycle());
        }
        self.settled = false;
        self.tb.set("settle", 1);
        out.append(&mut self.cycle());
        self.tb.set("settle", 0);
        while !self.settled {
            assert!(self.tb.cycles() - begun < 60_000, "it hangs");
            out.append(&mut self.cycle());
        }
        // What has left the engine is put together.
        (0..200).for_each(|_| out.append(&mut self.cycle()));
        self.tb.set_wide("parted", &gone.pack(&[])[..]);
        (self.tb.cycles() - begun - 200, out)
    }

    /// Nothing comes any more, of frames and of messages.
    pub fn heard(&self) -> bool {
        self.notes.pending() == 0 && self.posts.pending() == 0
    }

    /// Places in use.
    pub fn used(&self) -> u64 {
        self.tb.get("used")
    }

    /// It is so late.
    pub fn clock(&mut self, now: u64) {
        self.now = now;
    }

    /// A tick. Gives frames that have gone out.
    pub fn tick(&mut self, now: u64) -> Vec<Vec<u8>> {
        self.now = now;
        (0..TICK).flat_map(|_| self.cycle()).collect()
    }

    /// Puts addresses in front of a packet's headers and its payload behind.
    fn frame(&self, note: &[u32], mut bytes: Vec<u8>) -> Vec<u8> {
        let fields = Fields::of::<FrameNote>();
        let get = |name| fields.get(note, name) as usize;
        let (own, other) = self.lines[get("peer")];
        if get("control") == 0 {
            let data = &self.data[&(get("token") as u64)];
            bytes.extend(&data[get("offset")..get("offset") + get("bytes")]);
        }
        let eth = Eth::default().with_dst(self.macs[&other]).with_src(self.mac).with_ethertype(ethertype::IPV4);
        let (dscp, ecn) = if get("control") == 1 { (46, 0) } else { (8, 2) };
        let ip = Ipv4::default().with_version(4).with_ihl(5).with_dscp(dscp).with_ecn(ecn).with_total_length((Ipv4::BYTES + bytes.len()) as u16).with_ttl(64).with_protocol(protocol::UDP);
        let ip = ip.with_src(own).with_dst(other);
        let sum: u32 = ip.0.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        let ip = ip.with_checksum(!((sum & 0xffff) + (sum >> 16)) as u16);
        [&eth.0[..], &ip.0, &bytes].concat()
    }

    /// Semantics take a packet.
    fn take(&mut self, words: &[u32]) {
        let fields = Fields::of::<Delivered>();
        let get = |name| fields.get(words, name) as u64;
        let (handle, at, bytes) = (get("handle") as u16, get("pay_off") as usize, get("bytes") as usize);
        // Frames are judged in their order.
        let payload = self.frames[&handle][at..at + bytes].to_vec();
        self.frames.retain(|other, _| handle.wrapping_sub(*other) > 1 << 15);
        let total = get("ses.request_length");
        let mut answer = vec![("id", get("id")), ("psn", get("psn")), ("bytes", get("bytes")), ("message", get("ses.message"))];
        answer.extend(["came.entropy", "came.congested", "came.retx", "came.ask", "came.at"].map(|name| (name, get(name))));
        let refused = get("first") == 0 && self.refuses > 0 && self.tb.rng().percent(self.refuses);
        if refused {
            answer.extend([("refused", 1), ("code", NackCode::NoResource as u64)]);
        } else {
            let code = self.codes.get(&get("ses.offset")).copied().filter(|_| get("ses.som") == 1 || self.tb.rng().percent(50));
            match code {
                Some(code) => answer.push(("code", code)),
                None => {
                    answer.extend([("code", ReturnCode::Ok as u64), ("length", total)]);
                    let place = (get("ses.offset") + get("ses.message_offset")) as usize;
                    self.memory[place..place + bytes].copy_from_slice(&payload);
                    self.written[place..place + bytes].iter_mut().for_each(|count| *count += 1);
                }
            }
            let line = self.incoming.entry((get("id"), get("ses.message"))).or_insert(Incoming { left: total, header_data: None, failed: false });
            line.left -= bytes as u64;
            line.failed |= code.is_some();
            if get("ses.som") == 1 {
                line.header_data = Some(get("ses.header_data"));
            }
            if let (0, Some(header_data)) = (line.left, line.header_data) {
                if !line.failed {
                    self.arrived.push(header_data);
                }
                self.incoming.remove(&(get("id"), get("ses.message")));
            }
        }
        let answer: Vec<_> = answer.into_iter().map(|(name, value)| (name, u128::from(value))).collect();
        let due = self.now + if self.slow > 0 { self.tb.rng().below(self.slow) } else { 0 };
        self.tasks.push(Task { due, answer: Fields::of::<Finished>().pack(&answer) });
    }

    /// Each PDC that was opened or accepted is over, and its place free.
    pub fn free(&self) -> bool {
        self.tb.get("used") == 0
    }

    /// No message is being received, and semantics have nothing.
    pub fn at_rest(&self) -> bool {
        self.incoming.is_empty() && self.tasks.is_empty()
    }
}
