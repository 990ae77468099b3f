//! Peers of the target in software: a set-up client's frames, and an RC requester with go-back-N (IBTA 9.7), as simple as can be.
use crate::net::icrc::model::seal;
use ferric_abi::target::{SetupReply, SetupRequest, MAGIC, PORT, VERSION};
use ferric_abi::wire::{Aeth, AtomicEth, Bth, Eth, ImmDt, Ipv4, Reth, Udp};
use std::collections::VecDeque;

/// An end of the wire.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Station {
    /// First byte on the wire in the most significant one of 48 bits.
    pub mac: u64,
    /// IPv4 address.
    pub ip: u32,
}

/// RFC 1071; 0 of what contains its own.
pub fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks(2).map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |low| u32::from(*low))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// Ethernet, IPv4, UDP and `payload`.
pub fn datagram(from: Station, to: Station, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let ip = Ipv4::default().with_version(4).with_ihl(5).with_total_length(20 + length).with_flags(2).with_ttl(64).with_protocol(17).with_src(from.ip).with_dst(to.ip);
    let ip = ip.with_checksum(checksum(&ip.0));
    let udp = Udp::default().with_src_port(ports.0).with_dst_port(ports.1).with_length(length);
    let eth = Eth::default().with_dst(to.mac).with_src(from.mac).with_ethertype(0x0800);
    [&eth.0[..], &ip.0, &udp.0, payload].concat()
}

/// A set-up request as a frame; magic and version are filled in.
pub fn setup_frame(from: Station, to: Station, port: u16, request: SetupRequest) -> Vec<u8> {
    datagram(from, to, (port, PORT), &request.with_magic(MAGIC).with_version(VERSION).0)
}

/// The answer in a frame for `to`, if it is one; panics when such a frame is not well formed.
pub fn setup_reply(frame: &[u8], from: Station, to: Station, port: u16) -> Option<SetupReply> {
    if frame.len() < 42 || frame[34..36] != PORT.to_be_bytes() || frame[23] != 17 {
        return None;
    }
    let body: [u8; 64] = frame[42..].try_into().expect("64 bytes");
    assert_eq!(frame, datagram(from, to, (PORT, port), &body), "headers of an answer");
    Some(SetupReply(body))
}

/// What a requester asks for.
#[derive(Clone, Debug)]
pub enum Request {
    /// RDMA WRITE.
    Write { va: u64, key: u32, data: Vec<u8> },
    /// RDMA READ of `len` bytes.
    Read { va: u64, key: u32, len: u32 },
    /// SEND, perhaps with immediate data.
    Send { data: Vec<u8>, imm: Option<u32> },
    /// FETCH_ADD of `add`, or, with `compare`, COMPARE_SWAP to it.
    Atomic { va: u64, key: u32, add: u64, compare: Option<u64> },
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The bytes of a READ, the former value (little endian) of an atomic, nothing.
    Done(Vec<u8>),
    /// NAK syndrome; the requester sends nothing more.
    Failed(u8),
}

struct Message {
    first: u32,
    packets: Vec<Vec<u8>>,
    /// PSNs it takes; of a READ those of its answer.
    psns: u32,
    request: Request,
    got: Vec<u8>,
    /// Answer packets so far.
    answers: u32,
}

/// One RC queue pair's sending half. Time is in cycles, `timeout` too.
pub struct Requester {
    /// This end and the other.
    pub here: Station,
    pub there: Station,
    /// Own queue pair's number and the peer's.
    pub qpn: u32,
    pub dest: u32,
    /// Bytes of a packet.
    pub mtu: usize,
    pub timeout: u64,
    psn: u32,
    messages: VecDeque<Message>,
    /// Message and packet that are sent next.
    at: (usize, usize),
    quiet_until: u64,
    progress: u64,
    done: VecDeque<Outcome>,
    dead: bool,
    /// Packets sent again.
    pub retries: u64,
}

/// Messages on the wire at most.
const WINDOW: usize = 8;

/// 24-bit difference with sign.
fn distance(a: u32, b: u32) -> i32 {
    ((a.wrapping_sub(b) << 8) as i32) >> 8
}

impl Requester {
    /// A requester whose first PSN is `psn`.
    pub fn new(here: Station, there: Station, qpn: u32, dest: u32, psn: u32, mtu: usize) -> Requester {
        Requester { here, there, qpn, dest, mtu, timeout: 4000, psn, messages: VecDeque::new(), at: (0, 0), quiet_until: 0, progress: 0, done: VecDeque::new(), dead: false, retries: 0 }
    }

    fn packet(&self, opcode: u8, psn: u32, ack: bool, ext: &[u8], payload: &[u8]) -> Vec<u8> {
        let pad = (4 - payload.len() % 4) % 4;
        let bth = Bth::default().with_opcode(opcode).with_pad(pad as u8).with_pkey(0xffff).with_dest_qpn(self.dest).with_ack_req(ack).with_psn(psn & 0xff_ffff);
        let body = [&bth.0[..], ext, payload, &[0; 8][..pad + 4]].concat();
        let mut frame = datagram(self.here, self.there, (0xc000 | self.qpn as u16, 4791), &body);
        seal(&mut frame).expect("a RoCE frame");
        frame
    }

    /// Queues a request.
    pub fn post(&mut self, request: Request) {
        let first = self.psn;
        let mut packets = Vec::new();
        let mut psns = 1;
        match &request {
            Request::Write { data, .. } | Request::Send { data, .. } => {
                let count = data.len().div_ceil(self.mtu).max(1);
                psns = count as u32;
                for i in 0..count {
                    let part = &data[i * self.mtu..data.len().min((i + 1) * self.mtu)];
                    let (head, tail) = (i == 0, i + 1 == count);
                    let mut ext = Vec::new();
                    let opcode = match &request {
                        Request::Write { va, key, .. } => {
                            if head {
                                ext = Reth::default().with_va(*va).with_rkey(*key).with_length(data.len() as u32).0.to_vec();
                            }
                            [[7, 8], [6, 10]][usize::from(head)][usize::from(tail)]
                        }
                        Request::Send { imm: Some(imm), .. } if tail => {
                            ext = ImmDt::default().with_imm(*imm).0.to_vec();
                            [3, 5][usize::from(head)]
                        }
                        _ => [[1, 2], [0, 4]][usize::from(head)][usize::from(tail)],
                    };
                    packets.push(self.packet(opcode, first + i as u32, tail, &ext, part));
                }
            }
            Request::Read { va, key, len } => {
                psns = len.div_ceil(self.mtu as u32).max(1);
                packets.push(self.packet(0x0c, first, true, &Reth::default().with_va(*va).with_rkey(*key).with_length(*len).0, &[]));
            }
            Request::Atomic { va, key, add, compare } => {
                let ext = AtomicEth::default().with_va(*va).with_rkey(*key).with_swap_add(*add).with_compare(compare.unwrap_or(0));
                packets.push(self.packet(0x13 + u8::from(compare.is_none()), first, true, &ext.0, &[]));
            }
        }
        self.psn = (first + psns) & 0xff_ffff;
        self.messages.push_back(Message { first, packets, psns, request, got: Vec::new(), answers: 0 });
    }

    /// The next frame to be sent at `now`, if there is one.
    pub fn poll(&mut self, now: u64) -> Option<Vec<u8>> {
        if self.messages.is_empty() || self.dead {
            self.progress = now;
            return None;
        }
        if now < self.quiet_until {
            return None;
        }
        if self.at != (0, 0) && now - self.progress > self.timeout {
            self.again(now);
        }
        if self.at == (0, 0) {
            self.progress = now;
        }
        let message = self.messages.get(self.at.0).filter(|_| self.at.0 < WINDOW)?;
        // A READ that is asked for again reads what is there then: nothing changes the memory meanwhile (IBTA 10.8.3.3, fence).
        let reads = |m: &Message| matches!(m.request, Request::Read { .. });
        if !reads(message) && self.messages.iter().take(self.at.0).any(reads) {
            return None;
        }
        let frame = message.packets[self.at.1].clone();
        self.at = if self.at.1 + 1 < message.packets.len() { (self.at.0, self.at.1 + 1) } else { (self.at.0 + 1, 0) };
        Some(frame)
    }

    /// From the oldest request on.
    fn again(&mut self, now: u64) {
        self.at = (0, 0);
        self.progress = now;
        self.retries += 1;
        for message in &mut self.messages {
            message.got.clear();
            message.answers = 0;
        }
    }

    fn finish(&mut self, outcome: Outcome, now: u64) {
        self.messages.pop_front();
        self.done.push_back(outcome);
        self.progress = now;
        // What was finished need not be sent, if it was to be sent again.
        self.at = if self.at.0 == 0 { (0, 0) } else { (self.at.0 - 1, self.at.1) };
    }

    /// Everything up to PSN `psn` has been acknowledged; a READ or an atomic in between, whose answer has been lost, is asked for again.
    fn acknowledged(&mut self, psn: u32, now: u64) {
        while let Some(message) = self.messages.front() {
            let last = message.first + message.psns - 1;
            if distance(psn, last) < 0 {
                return;
            }
            if matches!(message.request, Request::Read { .. } | Request::Atomic { .. }) {
                return self.again(now);
            }
            self.finish(Outcome::Done(Vec::new()), now);
        }
    }

    /// A frame from the wire; frames for others are left alone.
    pub fn take(&mut self, frame: &[u8], now: u64) {
        if frame.len() < 58 || frame[36..38] != 4791u16.to_be_bytes() {
            return;
        }
        let bth = Bth(frame[42..54].try_into().expect("12 bytes"));
        if bth.dest_qpn() != self.qpn || self.dead {
            return;
        }
        let mut sealed = frame.to_vec();
        seal(&mut sealed).expect("a RoCE frame");
        assert_eq!(sealed, frame, "ICRC");
        let (psn, opcode) = (bth.psn(), bth.opcode());
        let aeth = Aeth(frame[54..58].try_into().expect("4 bytes"));
        match opcode {
            0x11 => match aeth.syndrome() >> 5 {
                0 => self.acknowledged(psn, now),
                kind => {
                    self.acknowledged(psn.wrapping_sub(1) & 0xff_ffff, now);
                    // What is finished already has a NAK of an earlier try.
                    if self.messages.front().is_none_or(|m| distance(psn, m.first) < 0) {
                    } else if kind == 1 {
                        self.again(now);
                        self.quiet_until = now + self.timeout / 2;
                    } else if aeth.syndrome() == 0x60 {
                        self.again(now);
                    } else {
                        self.dead = true;
                        self.done.push_back(Outcome::Failed(aeth.syndrome()));
                    }
                }
            },
            0x0d..=0x10 | 0x12 => {
                let Some(at) = self.messages.iter().position(|m| distance(psn, m.first) >= 0 && distance(psn, m.first) < m.psns as i32) else { return };
                let first = self.messages[at].first;
                self.acknowledged(first.wrapping_sub(1) & 0xff_ffff, now);
                let Some(message) = self.messages.front_mut().filter(|m| m.first == first) else { return };
                if distance(psn, message.first + message.answers) != 0 {
                    return;
                }
                let from = if opcode == 0x0e { 54 } else { 58 };
                let end = frame.len() - 4 - usize::from(bth.pad());
                if opcode == 0x12 {
                    message.got = frame[58..66].iter().rev().copied().collect();
                } else {
                    message.got.extend(&frame[from..end]);
                }
                message.answers += 1;
                self.progress = now;
                if message.answers == message.psns {
                    if let Request::Read { len, .. } = message.request {
                        assert_eq!(message.got.len(), len as usize, "bytes of a READ");
                    }
                    let got = std::mem::take(&mut message.got);
                    self.finish(Outcome::Done(got), now);
                }
            }
            _ => panic!("opcode {opcode:#x} from the target"),
        }
    }

    /// The oldest outcome not yet seen.
    pub fn outcome(&mut self) -> Option<Outcome> {
        self.done.pop_front()
    }

    /// Nothing is under way.
    pub fn idle(&self) -> bool {
        self.messages.is_empty() || self.dead
    }
}
