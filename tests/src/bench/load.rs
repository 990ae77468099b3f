//! Traffic between two hosts: every message posted as soon as the window has room, every byte verified.
use super::place::Placed;
use super::scenarios::Op;
use crate::pair::{Error, Pair, Wire};
use crate::traffic::pattern;
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mtu, QpType};
use ferric_driver::ud::GRH_BYTES;
use ferric_driver::{AddressHandle, AtomicOp, AtomicRequest, Completion, CompletionQueue, CqeStatus, DatagramRequest, QpConfig, QueuePair, ReadRequest, RecvRequest, SendRequest, Source};

const QKEY: u32 = 0x0bad_cafe;
/// Room for requests of one queue pair: the largest window.
const DEPTH: usize = 512;
/// Receives posted, in windows of the sender: a message meets one that was posted a window before it was sent, as with any program that keeps its receive
/// queue filled (perftest posts 512 for 128 sends). Posted in the same instant as the message, a receive is still being fetched when that arrives, and who is
/// told of receives by a wire is never that fast.
const AHEAD: usize = 2;
/// Cycles for each of the first receives, in which its doorbell is taken (a write of the host each, about two cycles), and those for fetching the last.
const TAKEN: u64 = 4;
const FETCHED: u64 = 4096;

/// A queue pair of host 0 and one of host 1 that talk to each other, with memory for both.
pub struct Line {
    qps: [QueuePair; 2],
    cqs: [CompletionQueue; 2],
    /// Memory of host 0 and of host 1.
    memory: [Placed; 2],
}

impl Line {
    /// A connection whose requests have slots for `entries` scatter/gather entries and `inline` bytes, with `room` bytes at each end.
    pub fn connected(pair: &Pair, mtu: Mtu, entries: usize, inline: usize, room: usize) -> Result<Self, Error> {
        let cqs = [pair.hosts[0].cq(2 * DEPTH)?, pair.hosts[1].cq((1 + AHEAD) * DEPTH)?];
        let config = QpConfig { max_send: DEPTH, max_recv: AHEAD * DEPTH, max_send_sge: entries, max_recv_sge: 1, max_inline: inline, ..Default::default() };
        let wire = Wire { mtu, timeout: 14, repeat_nak: true, ..Default::default() };
        let qps = pair.connected(&config, &wire, [&cqs[0], &cqs[1]])?;
        Ok(Self { qps, cqs, memory: [Placed::new(pair, 0, room)?, Placed::new(pair, 1, room)?] })
    }

    /// Datagrams of host 0's queue pair to host 1's.
    pub fn datagrams(pair: &Pair, room: usize) -> Result<Self, Error> {
        let cqs = [pair.hosts[0].cq(2 * DEPTH)?, pair.hosts[1].cq((1 + AHEAD) * DEPTH)?];
        let config = QpConfig { qp_type: QpType::Ud, max_send: DEPTH, max_recv: AHEAD * DEPTH, max_send_sge: 1, max_recv_sge: 1, max_inline: 0, ..Default::default() };
        let make = |h: usize| -> Result<QueuePair, Error> {
            let host = &pair.hosts[h];
            let mut qp = host.pd.create_qp(&config, &cqs[h], &cqs[h])?;
            qp.to_init_ud(QKEY)?;
            qp.to_rtr_ud(Mtu::M4096, &Source { smac: host.mac(), sip: host.ip(false), vlan: None, udp_sport: 0xc000, flow_label: 0 })?;
            qp.to_rts_ud(0)?;
            Ok(qp)
        };
        let qps = [make(0)?, make(1)?];
        Ok(Self { qps, cqs, memory: [Placed::new(pair, 0, room)?, Placed::new(pair, 1, room)?] })
    }
}

/// What is asked of a line.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// What is done.
    pub op: Op,
    /// Bytes of a message.
    pub size: usize,
    /// Messages outstanding.
    pub window: usize,
    /// Offset of buffers from a multiple of 64.
    pub offset: usize,
    /// Places for messages, a power of two, in which they are strewn; 0: one per message outstanding or receive posted, in order.
    pub strewn: usize,
    /// The host that asks.
    pub from: usize,
}

impl Shape {
    /// Bytes from one message's place to the next's: with the header area that a datagram's receive begins with.
    fn stride(&self) -> usize {
        (self.size + if self.op == Op::Datagram { GRH_BYTES } else { 0 }).next_multiple_of(64)
    }

    /// The other end has to post receives.
    fn receives(&self) -> bool {
        matches!(self.op, Op::Send | Op::Datagram)
    }

    fn places(&self) -> usize {
        if self.strewn > 0 {
            self.strewn
        } else if self.receives() {
            AHEAD * self.window
        } else {
            self.window
        }
    }

    /// Where message `n` lies in the memory of either end.
    fn place(&self, n: u64) -> usize {
        let slot = if self.strewn == 0 {
            n % self.places() as u64
        } else {
            // Odd factors and shifts by half the width turn around the bits and keep every place once.
            let (mask, half) = (self.strewn as u64 - 1, self.strewn.trailing_zeros() / 2 + 1);
            let x = n.wrapping_mul(0x9e37_79b1) & mask;
            (x ^ x >> half).wrapping_mul(0x85eb_ca6b) & mask
        };
        slot as usize * self.stride() + self.offset
    }

    /// Memory that either end needs.
    pub fn room(&self) -> usize {
        self.places() * self.stride() + 64
    }
}

/// Messages of one shape on a line.
pub struct Stream<'a> {
    line: &'a mut Line,
    shape: Shape,
    posted: u64,
    done: u64,
    receives: u64,
    received: u64,
    to: AddressHandle,
}

impl<'a> Stream<'a> {
    /// On `line`, whose memory is made larger if the shape asks for it.
    pub fn new(pair: &Pair, line: &'a mut Line, shape: Shape) -> Result<Self, Error> {
        for (host, memory) in line.memory.iter_mut().enumerate() {
            if memory.len() < shape.room() {
                *memory = Placed::new(pair, host, shape.room())?;
            }
        }
        let peer = &pair.hosts[1 - shape.from];
        let to = AddressHandle::new(peer.mac(), peer.ip(false));
        Ok(Self { line, shape, posted: 0, done: 0, receives: 0, received: 0, to })
    }

    /// Completions so far.
    pub fn progress(&self) -> u64 {
        self.done + self.received
    }

    /// Posts receives until [`AHEAD`] windows of them wait, also behind the last message of a run: the next run finds them posted.
    fn prepare(&mut self) -> Result<(), Error> {
        while self.shape.receives() && self.receives - self.received < (AHEAD * self.shape.window) as u64 {
            self.receive()?;
        }
        Ok(())
    }

    /// The bytes of message `n`; of an atomic, what its answer must be.
    fn bytes(&self, n: u64) -> Vec<u8> {
        match self.shape.op {
            Op::Add => (n / self.shape.places() as u64).to_le_bytes().to_vec(),
            _ => (0..self.shape.size).map(|i| pattern(n, i)).collect(),
        }
    }

    /// One round: what the window allows is posted, and both ends are polled. True when `count` messages are done and verified.
    pub fn advance(&mut self, count: u64) -> Result<bool, Error> {
        let window = self.shape.window as u64;
        self.prepare()?;
        let ready = |s: &Self| !s.shape.receives() || s.posted + window <= s.receives;
        while self.posted < count && self.posted - self.done < window && ready(self) {
            self.post()?;
        }
        while let Some(c) = self.line.cqs[self.shape.from].poll() {
            expect(&c, self.done, "request")?;
            match self.shape.op {
                Op::Write | Op::Inline => self.verify(1 - self.shape.from, c.wr_id, 0)?,
                Op::Read | Op::Add => self.verify(self.shape.from, c.wr_id, 0)?,
                Op::Send | Op::Datagram => {}
            }
            self.done += 1;
        }
        while let Some(c) = self.line.cqs[1 - self.shape.from].poll() {
            expect(&c, self.received, "receive")?;
            self.verify(1 - self.shape.from, c.wr_id, if self.shape.op == Op::Datagram { GRH_BYTES } else { 0 })?;
            self.received += 1;
        }
        Ok(self.done == count && (!self.shape.receives() || self.received == count))
    }

    fn receive(&mut self) -> Result<(), Error> {
        let (n, far) = (self.receives, 1 - self.shape.from);
        let area = if self.shape.op == Op::Datagram { GRH_BYTES } else { 0 };
        let memory = &self.line.memory[far];
        let into = [sge(memory.addr() + self.shape.place(n) as u64, (self.shape.size + area) as u32, memory.lkey())];
        self.line.qps[far].post_recv(&RecvRequest { wr_id: n, sges: &into })?;
        self.receives += 1;
        Ok(())
    }

    fn post(&mut self) -> Result<(), Error> {
        let (wr_id, from, Shape { op, size, .. }) = (self.posted, self.shape.from, self.shape);
        let (at, bytes) = (self.shape.place(wr_id), self.bytes(wr_id));
        let dest_qpn = self.line.qps[1 - from].qpn();
        let (near, far) = (&self.line.memory[from], &self.line.memory[1 - from]);
        match op {
            Op::Read => far.write(at, &bytes),
            Op::Add | Op::Inline => {}
            _ => near.write(at, &bytes),
        }
        let entries = [sge(near.addr() + at as u64, size as u32, near.lkey())];
        let payload = if op == Op::Inline { Payload::Inline(&bytes) } else { Payload::Sges(&entries) };
        let (remote_addr, rkey) = (far.addr() + at as u64, far.rkey());
        let qp = &mut self.line.qps[from];
        match op {
            Op::Read => qp.post_read(&ReadRequest { wr_id, sges: &entries, remote_addr, rkey, signaled: true, fence: false })?,
            Op::Add => qp.post_atomic(&AtomicRequest { wr_id, op: AtomicOp::FetchAdd(1), sges: &entries, remote_addr, rkey, signaled: true, fence: false })?,
            Op::Datagram => qp.post_send_ud(&DatagramRequest { wr_id, payload, to: &self.to, dest_qpn, qkey: QKEY, imm: None, signaled: true, solicited: false })?,
            Op::Write | Op::Inline | Op::Send => {
                let opcode = if op == Op::Send { WrOpcode::Send } else { WrOpcode::Write };
                qp.post_send(&SendRequest { wr_id, opcode, payload, remote_addr, rkey, imm: 0, signaled: true, solicited: false })?
            }
        }
        self.posted += 1;
        Ok(())
    }

    /// Message `n` is in `host`'s memory, `skip` bytes behind the beginning of its place.
    fn verify(&self, host: usize, n: u64, skip: usize) -> Result<(), Error> {
        let got = self.line.memory[host].to_vec(self.shape.place(n) + skip, self.shape.size);
        let right = self.bytes(n);
        match got.iter().zip(&right).position(|(a, b)| a != b) {
            None => Ok(()),
            Some(i) => Err(Error::Stuck(format!("message {n} of {} bytes: byte {i} is {:#04x}, not {:#04x}", self.shape.size, got[i], right[i]))),
        }
    }
}

fn expect(c: &Completion, n: u64, what: &str) -> Result<(), Error> {
    if c.status != CqeStatus::Success || c.wr_id != n {
        return Err(Error::Stuck(format!("{what} {n} was expected, {c:?} came")));
    }
    Ok(())
}

/// Runs all until each has done `count` messages; fails when nothing completes for `patience` simulated cycles.
pub fn run(pair: &Pair, streams: &mut [Stream], count: u64, patience: u64) -> Result<(), Error> {
    if streams.iter().any(|s| s.shape.receives() && s.receives == 0) {
        streams.iter_mut().try_for_each(Stream::prepare)?;
        pair.world().run(FETCHED + TAKEN * streams.iter().map(|s| s.receives).sum::<u64>());
    }
    let (mut seen, mut since) = (u64::MAX, pair.world().cycle());
    loop {
        let mut all = true;
        for s in streams.iter_mut() {
            all &= s.advance(count)?;
        }
        if all {
            return Ok(());
        }
        let (progress, now) = (streams.iter().map(Stream::progress).sum(), pair.world().cycle());
        if progress != seen {
            (seen, since) = (progress, now);
        } else if now - since > patience {
            return Err(Error::Stuck(format!("no completion for {patience} cycles after {progress} completions")));
        }
        pair.world().run(16);
    }
}
