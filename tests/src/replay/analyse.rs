//! From frames to connections: which queue pairs talk to each other, which messages they exchanged, and what the machines must have
//! been configured with.
use super::capture::{Capture, Record};
use super::endpoint::Flush;
use super::error::{Error, Result};
use super::frame::{psn_add, psn_distance, Frame, Ip, Kind, Syndrome};
use ferric_driver::types::{Mac, Mtu, Path};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

/// One frame of a connection.
#[derive(Clone, Debug)]
pub struct Item {
    /// Packet number in the file.
    pub number: usize,
    /// Nanoseconds.
    pub time: u64,
    /// Index of the sending machine.
    pub side: usize,
    /// The frame.
    pub frame: Frame,
    /// Put on the wire here.
    pub sent: bool,
    /// Received here.
    pub delivered: bool,
}

/// A machine as seen on the wire.
#[derive(Clone, Debug)]
pub struct Host {
    /// IP address.
    pub ip: IpAddr,
    /// Queue pair number; `None` when nobody ever addressed it.
    pub qpn: Option<u32>,
}

/// A message, as its sender sent it.
#[derive(Clone, Debug)]
pub struct Message {
    /// SEND, WRITE, READ request, atomic, FLUSH or ATOMIC WRITE.
    pub kind: Kind,
    /// Immediate data.
    pub imm: Option<u32>,
    /// Key that a SEND invalidates.
    pub invalidate: Option<u32>,
    /// Solicited event.
    pub solicited: bool,
    /// Remote address and key.
    pub remote: Option<(u64, u32)>,
    /// Bytes; of a SEND whose tail was not seen, what was seen and one more; none of a FLUSH of a whole region.
    pub len: usize,
    /// The bytes seen (READ: of the response; atomic: the value found, as it lies in memory).
    pub data: Vec<u8>,
    /// First PSN, counted from the stream's first.
    pub first: u32,
    /// PSNs taken.
    pub psns: u32,
    /// Fatal NAK: position and code.
    pub nak: Option<(u32, u8)>,
    /// Of a FLUSH.
    pub flush: Option<Flush>,
}

impl Message {
    /// Bytes of the requester's memory that it takes or fills.
    pub fn local_len(&self) -> usize {
        if self.kind == Kind::Flush {
            0
        } else {
            self.len
        }
    }
    /// One past its last PSN, counted from the stream's first.
    pub fn end(&self) -> u32 {
        self.first + self.psns
    }
}

/// The requests of one side.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// First PSN.
    pub base: u32,
    /// Messages in PSN order.
    pub messages: Vec<Message>,
    /// How often the packet at this position was answered with an RNR NAK.
    pub rnr: HashMap<u32, u32>,
    /// RNR NAK timer code of the other side.
    pub rnr_timer: Option<u8>,
}

impl Stream {
    /// Position of a PSN; negative when it lies before the first.
    pub fn position(&self, psn: u32) -> i64 {
        psn_distance(psn, self.base) as i64
    }
    /// The message at a position.
    pub fn at(&self, position: u32) -> Option<(usize, &Message)> {
        let i = self.messages.partition_point(|m| m.end() <= position);
        self.messages.get(i).filter(|m| m.first <= position).map(|m| (i, m))
    }
}

/// One pair of connected queue pairs.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The two machines; the first is the one whose request comes first.
    pub hosts: [Host; 2],
    /// Everything between them, in order.
    pub items: Vec<Item>,
    /// What each side asked for.
    pub requests: [Stream; 2],
    /// Path MTU.
    pub mtu: Mtu,
}

/// A direction to one queue pair: requests or responses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
struct Flow {
    src: IpAddr,
    dst: IpAddr,
    qpn: u32,
    request: bool,
}

/// There are frames, and none of a reliable connection.
pub fn none_reliable(capture: &Capture) -> bool {
    let frames = capture.records.iter().filter_map(|r| Frame::decode(&r.bytes).ok().flatten());
    let mut classes = frames.map(|f| f.bth.opcode() >> 5).peekable();
    classes.peek().is_some() && classes.all(|class| class == super::ud::CLASS || class == super::uc::CLASS)
}

/// The RoCEv2 frames of a capture, each with its record.
pub(super) fn frames(capture: &Capture) -> Result<Vec<(&Record, Frame)>> {
    let mut all = Vec::new();
    for r in &capture.records {
        match Frame::decode(&r.bytes) {
            Ok(frame) => all.extend(frame.map(|f| (r, f))),
            // What arrived damaged beyond reading was not accepted by anybody.
            Err(_) if !r.sent => {}
            Err(e) => return Err(Error::Exchange(format!("packet {}: malformed RoCEv2 frame: {e}", r.number))),
        }
    }
    Ok(all)
}

/// Finds the connections of a capture.
pub fn connections(capture: &Capture) -> Result<Vec<Connection>> {
    let mut items = Vec::new();
    for (r, frame) in frames(capture)? {
        match frame.bth.opcode() >> 5 {
            0 => {}
            // Replayed for themselves.
            super::ud::CLASS | super::uc::CLASS => continue,
            t => {
                let name = if t == 2 { "RD" } else { "manufacturer-specific" };
                return Err(Error::Exchange(format!("packet {}: {name} transport is not supported by the replay", r.number)));
            }
        }
        items.push((r, frame));
    }
    if items.is_empty() {
        return Err(Error::Exchange("no RoCEv2 frames of a reliable connection".into()));
    }
    let mut flows: BTreeMap<Flow, Vec<usize>> = BTreeMap::new();
    for (i, (_, f)) in items.iter().enumerate() {
        flows.entry(flow_of(f)).or_default().push(i);
    }
    let pairs = pair(&items.iter().map(|(_, f)| f).collect::<Vec<_>>(), &flows)?;
    let mut out = Vec::new();
    for (a, b) in pairs {
        // a, b: (address, queue pair number)
        let member = |f: &Frame| {
            let (src, dst, q) = (f.ip.src(), f.ip.dst(), Some(f.bth.dest_qpn()));
            (src, dst) == (a.0, b.0) && q == b.1 || (src, dst) == (b.0, a.0) && q == a.1
        };
        let mut own: Vec<Item> = Vec::new();
        for (r, f) in items.iter().filter(|(_, f)| member(f)) {
            let side = usize::from(f.ip.src() != a.0);
            own.push(Item { number: r.number, time: r.time, side, frame: f.clone(), sent: r.sent, delivered: r.delivered });
        }
        out.push(connection([Host { ip: a.0, qpn: a.1 }, Host { ip: b.0, qpn: b.1 }], own)?);
    }
    out.sort_by_key(|c| c.items.first().map_or(0, |i| i.number));
    Ok(out)
}

fn flow_of(f: &Frame) -> Flow {
    Flow { src: f.ip.src(), dst: f.ip.dst(), qpn: f.bth.dest_qpn(), request: f.op.kind.is_request() }
}

type End = (IpAddr, Option<u32>);

/// Pairs the directions of queue pairs: the responses to a queue pair's requests acknowledge the PSNs it sent.
fn pair(frames: &[&Frame], flows: &BTreeMap<Flow, Vec<usize>>) -> Result<Vec<(End, End)>> {
    let psns = |flow: &Flow| -> HashSet<u32> { flows[flow].iter().map(|i| frames[*i].psn()).collect() };
    let asked = |flow: &Flow| -> HashSet<u32> {
        let mut all = psns(flow);
        for i in &flows[flow] {
            // A READ takes the PSNs of its responses too; 256 is the smallest MTU, so this is an upper bound.
            if let (Kind::ReadRequest, Some(reth)) = (frames[*i].op.kind, frames[*i].reth) {
                all.extend((0..reth.length().div_ceil(256).clamp(1, 1 << 16)).map(|n| psn_add(frames[*i].psn(), n)));
            }
        }
        all
    };
    let mut scores = Vec::new();
    for s in flows.keys().filter(|f| !f.request) {
        let acked = psns(s);
        for r in flows.keys().filter(|r| r.request && (r.src, r.dst) == (s.dst, s.src)) {
            let n = asked(r).intersection(&acked).count();
            if n > 0 {
                scores.push((n, *r, *s));
            }
        }
    }
    scores.sort_by_key(|(n, ..)| std::cmp::Reverse(*n));
    let mut pairs: Vec<(End, End)> = Vec::new();
    let (mut used_r, mut used_s) = (HashSet::new(), HashSet::new());
    for (n, r, s) in &scores {
        if used_r.contains(r) || used_s.contains(s) {
            continue;
        }
        let rival = scores.iter().any(|(m, r2, s2)| m == n && ((r2 == r) != (s2 == s)) && !used_r.contains(r2) && !used_s.contains(s2));
        if rival {
            return Err(Error::Exchange(format!("queue pair {:#x}: PSNs do not tell which queue pair answers which", r.qpn)));
        }
        used_r.insert(*r);
        used_s.insert(*s);
        let ends = ((r.src, Some(s.qpn)), (r.dst, Some(r.qpn)));
        if !pairs.contains(&(ends.1, ends.0)) {
            pairs.push(ends);
        }
    }
    for f in flows.keys().filter(|f| f.request && !used_r.contains(f)) {
        // Its own queue pair may be known from the other direction of the connection.
        if !pairs.iter().any(|(a, b)| *a == (f.dst, Some(f.qpn)) && b.0 == f.src || *b == (f.dst, Some(f.qpn)) && a.0 == f.src) {
            pairs.push(((f.src, None), (f.dst, Some(f.qpn))));
        }
    }
    if let Some(s) = flows.keys().find(|f| !f.request && !used_s.contains(f)) {
        return Err(Error::Exchange(format!("responses to queue pair {:#x} of {} match no requests: the capture starts too late", s.qpn, s.dst)));
    }
    Ok(pairs)
}

fn connection(mut hosts: [Host; 2], mut items: Vec<Item>) -> Result<Connection> {
    let first = items.iter().find(|i| i.frame.op.kind.is_request()).map_or(0, |i| i.side);
    if first == 1 {
        hosts.swap(0, 1);
        items.iter_mut().for_each(|i| i.side ^= 1);
    }
    let mtu = path_mtu(&items)?;
    let requests = [stream(&items, 0, mtu)?, stream(&items, 1, mtu)?];
    Ok(Connection { hosts, items, requests, mtu })
}

/// First and Middle packets are exactly one path MTU long; without any, the smallest MTU that fits what was seen.
pub(super) fn path_mtu(items: &[Item]) -> Result<Mtu> {
    let good = || items.iter().filter(|i| i.frame.icrc_error == 0).map(|i| &i.frame);
    let full: HashSet<usize> = good().filter(|f| !f.op.last).map(|f| f.payload.len()).collect();
    let longest = good().map(|f| f.payload.len()).max().unwrap_or(0);
    let bytes = match full.iter().collect::<Vec<_>>()[..] {
        [] => longest.next_power_of_two().max(256),
        [n] => *n,
        _ => return Err(Error::Exchange("First and Middle packets of different length: the path MTU changed".into())),
    };
    Mtu::from_bytes(bytes).filter(|m| m.bytes() >= longest).ok_or_else(|| Error::Exchange(format!("{bytes} bytes is no path MTU")))
}

/// Puts the packets of one side's requests together.
pub(super) fn stream(items: &[Item], side: usize, mtu: Mtu) -> Result<Stream> {
    let mut out = Stream::default();
    let mut packets: HashMap<u32, &Frame> = HashMap::new();
    let mut end = 0u32;
    let own = |i: &&Item| i.side == side && i.sent && i.frame.op.kind.is_request() && i.frame.icrc_error == 0;
    for (n, item) in items.iter().filter(own).enumerate() {
        if n == 0 {
            out.base = item.frame.psn();
        }
        let at = out.position(item.frame.psn());
        if at < 0 {
            return Err(Error::Exchange(format!("packet {}: PSN before the first one seen; the capture starts too late", item.number)));
        }
        packets.entry(at as u32).or_insert(&item.frame);
        end = end.max(at as u32 + 1);
    }
    let mut at = 0;
    while at < end {
        let message = message(&packets, at, mtu).map_err(|e| Error::Exchange(format!("request PSN {:#08x}: {e}", psn_add(out.base, at))))?;
        at = message.end();
        out.messages.push(message);
    }
    answers(items, side, &mut out);
    Ok(out)
}

fn message(packets: &HashMap<u32, &Frame>, first: u32, mtu: Mtu) -> std::result::Result<Message, String> {
    let head = packets.get(&first).ok_or("never seen, though later ones were")?;
    if !head.op.first {
        return Err(format!("{} where a message should begin", head.brief()));
    }
    let mut m =
        Message { kind: head.op.kind, imm: None, invalidate: None, solicited: false, remote: head.reth.map(|r| (r.va(), r.rkey())), len: 0, data: Vec::new(), first, psns: 0, nak: None, flush: None };
    let told = head.reth.map(|r| r.length() as usize);
    if m.kind == Kind::ReadRequest {
        m.len = told.unwrap_or(0);
        m.psns = m.len.div_ceil(mtu.bytes()).max(1) as u32;
        m.solicited = head.bth.solicited();
        return Ok(m);
    }
    if let Some(atomic) = head.atomic {
        (m.remote, m.len, m.psns) = (Some((atomic.va(), atomic.rkey())), 8, 1);
        return Ok(m);
    }
    if let Some(feth) = head.feth {
        let flush = Flush { feth, len: told.unwrap_or(0) as u32 };
        (m.flush, m.psns) = (Some(flush), 1);
        m.len = if flush.whole() { 0 } else { flush.len as usize };
        return Ok(m);
    }
    if m.kind == Kind::AtomicWrite {
        (m.len, m.psns, m.data) = (head.payload.len(), 1, head.payload.clone());
        return Ok(m);
    }
    let mut complete = false;
    while let Some(p) = packets.get(&(first + m.psns)) {
        if p.op.kind != m.kind || (p.op.first && m.psns > 0) {
            return Err(format!("{} inside a message", p.brief()));
        }
        m.psns += 1;
        m.data.extend_from_slice(&p.payload);
        if p.op.last {
            (m.imm, m.invalidate) = (p.imm.map(|i| i.imm()), p.ieth.map(|i| i.rkey()));
            m.solicited = p.bth.solicited();
            complete = true;
            break;
        }
    }
    m.len = told.unwrap_or(m.data.len() + usize::from(!complete));
    if complete && m.len != m.data.len() {
        return Err(format!("RETH says {} bytes, the packets carry {}", m.len, m.data.len()));
    }
    if !complete {
        m.psns = m.len.div_ceil(mtu.bytes()).max(1) as u32;
    }
    Ok(m)
}

/// What the other side's responses tell about a stream.
fn answers(items: &[Item], side: usize, out: &mut Stream) {
    let mut read: HashMap<u32, Vec<u8>> = HashMap::new();
    for i in items.iter().filter(|i| i.side != side && i.sent && i.frame.icrc_error == 0 && !i.frame.op.kind.is_request()) {
        let Ok(at) = u32::try_from(out.position(i.frame.psn())) else { continue };
        if i.frame.op.kind == Kind::ReadResponse {
            read.entry(at).or_insert_with(|| i.frame.payload.clone());
        }
        if let Some(a) = i.frame.atomic_ack {
            read.entry(at).or_insert_with(|| a.original().to_le_bytes().to_vec());
        }
        match i.frame.aeth.map(|a| Syndrome::of(a.syndrome())) {
            Some(Syndrome::Rnr(timer)) => {
                *out.rnr.entry(at).or_default() += 1;
                out.rnr_timer.get_or_insert(timer);
            }
            Some(Syndrome::Fatal(code)) => {
                let n = out.messages.partition_point(|m| m.end() <= at);
                if let Some(m) = out.messages.get_mut(n) {
                    m.nak.get_or_insert((at, code));
                }
            }
            _ => {}
        }
    }
    for m in out.messages.iter_mut().filter(|m| m.kind.has_response()) {
        for p in m.first..m.first + m.psns {
            let Some(bytes) = read.get(&p) else { break };
            m.data.extend_from_slice(bytes);
        }
    }
}

impl Connection {
    /// How the machine `side` addresses its packets. Taken from one of its own, or turned around from one it got.
    pub fn path(&self, side: usize) -> Path {
        let mac = |v: u64| {
            let b = v.to_be_bytes();
            Mac([b[2], b[3], b[4], b[5], b[6], b[7]])
        };
        let own = self.items.iter().find(|i| i.side == side && i.sent).map(|i| (&i.frame, false));
        let (f, turned) = own.unwrap_or_else(|| (&self.items[0].frame, true));
        let (tclass, hop_limit, flow_label) = match f.ip {
            Ip::V4(h) => (h.dscp() << 2 | h.ecn(), h.ttl(), 0),
            Ip::V6(h) => (h.dscp() << 2 | h.ecn(), h.hop_limit(), h.flow_label()),
        };
        let path = Path {
            dmac: mac(f.eth.dst()),
            smac: mac(f.eth.src()),
            dip: f.ip.dst(),
            sip: f.ip.src(),
            vlan: f.vlan.map(|v| u16::from_be_bytes([v.0[0], v.0[1]])),
            udp_sport: f.udp.src_port(),
            tclass,
            hop_limit,
            flow_label,
        };
        if turned {
            Path { dmac: path.smac, smac: path.dmac, dip: path.sip, sip: path.dip, ..path }
        } else {
            path
        }
    }
}
