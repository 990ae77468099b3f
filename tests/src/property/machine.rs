//! Runs scripts on two cards: the whole way through the driver, and back what it saw.
use super::golden::{words, Observed};
use super::program::{Connection, Crime, Verb, MOST_CONNECTIONS};
use super::script::{Act, Script, WORD};
use crate::pair::{Error, Pair, Wire};
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, LocalSge, Payload};
use ferric_driver::types::QpType;
use ferric_driver::{Access, AddressHandle, AtomicOp, AtomicRequest, CompletionQueue, DatagramRequest, MemoryRegion, QpConfig, QueuePair, ReadRequest, RecvRequest, SendRequest, Source};

/// Cycles without an end after which a run counts as hung.
const PATIENCE: u64 = 3_000_000;
/// Cycles after which late receives are posted.
const LATE: u64 = 3000;
/// Cycles after the end in which nothing more may happen.
const AFTER: u64 = 500;
const QKEY: u32 = 0x0123_4567;

/// A connection at work.
struct Line<'a> {
    connection: &'a Connection,
    script: &'a Script,
    /// Sender's, then the other's.
    qps: [QueuePair; 2],
    /// Of host 0 and host 1.
    cqs: &'a mut [CompletionQueue; 2],
    memory: [MemoryRegion; 2],
    base: [usize; 2],
    /// A region of the other side in which peers have no rights, and what is in it.
    closed: MemoryRegion,
    words: Vec<u64>,
    posted: usize,
    seen: Observed,
}

/// What the region holds from the first multiple of 8 on.
fn contents(memory: &MemoryRegion, base: usize, len: usize) -> Vec<u8> {
    memory.to_vec(base, len)
}

impl<'a> Line<'a> {
    fn new(pair: &Pair, cqs: &'a mut [CompletionQueue; 2], connection: &'a Connection, script: &'a Script) -> Result<Self, Error> {
        let sides = [connection.from, 1 - connection.from];
        let hosts = sides.map(|h| &pair.hosts[h]);
        let region = |side: usize| hosts[side].region(script.before[side].len() + 8, Access::ALL);
        let memory = [region(0)?, region(1)?];
        let base = [0, 1].map(|side: usize| (memory[side].addr().next_multiple_of(8) - memory[side].addr()) as usize);
        for side in 0..2 {
            memory[side].write(base[side], &script.before[side]);
        }
        let most = connection.ops.iter().map(|op| op.len).max().unwrap_or(0);
        let closed = hosts[1].region(most.max(8), Access::LOCAL_WRITE)?;
        let config = QpConfig { qp_type: connection.transport, max_send: 8, max_recv: 8, max_send_sge: 3, max_recv_sge: 2, ..Default::default() };
        let make = |side: usize| hosts[side].pd.create_qp(&config, &cqs[sides[side]], &cqs[sides[side]]);
        let mut qps = [make(0)?, make(1)?];
        let wire = Wire { mtu: connection.mtu, v6: connection.v6, vlan: connection.vlan.then_some(0x2007), timeout: 6, ..Default::default() };
        if connection.transport == QpType::Ud {
            for side in 0..2 {
                let source = Source { smac: hosts[side].mac(), sip: hosts[side].ip(wire.v6), vlan: wire.vlan, udp_sport: 0xd321, flow_label: 0x12345 };
                qps[side].to_init_ud(QKEY)?;
                qps[side].to_rtr_ud(wire.mtu, &source)?;
                qps[side].to_rts_ud(connection.psn[side])?;
            }
        } else {
            let [a, b] = &mut qps;
            let mut psn = connection.psn;
            if connection.from == 1 {
                psn.swap(0, 1);
                pair.connect(&Wire { psn, ..wire }, b, a)?;
            } else {
                pair.connect(&Wire { psn, ..wire }, a, b)?;
            }
        }
        let seen = Observed { sent: Vec::new(), received: Vec::new(), after: Default::default() };
        Ok(Self { connection, script, qps, cqs, memory, base, closed, words: words(script), posted: 0, seen })
    }

    fn address(&self, side: usize, offset: usize) -> u64 {
        self.memory[side].addr() + (self.base[side] + offset) as u64
    }

    /// Posts receives up to the first late one, or all.
    fn post_receives(&mut self, all: bool) -> Result<(), Error> {
        while let Some(act) = self.script.acts.get(self.posted) {
            if act.op.late && !all {
                break;
            }
            if let Some(room) = act.receive {
                let first = room.min(room / 3 + 1);
                let (at, key) = (self.address(1, act.remote), self.memory[1].lkey());
                let into = [sge(at, first as u32, key), sge(at + first as u64, (room - first) as u32, key)];
                self.qps[1].post_recv(&RecvRequest { wr_id: self.posted as u64, sges: &into })?;
            }
            self.posted += 1;
        }
        Ok(())
    }

    /// The local list: `entries` pieces. A crime against the bounds moves it to the end of the region, and one byte further.
    fn list(&self, act: &Act) -> Vec<LocalSge> {
        let (len, crime) = (act.op.len, act.op.crime);
        let key = self.memory[0].lkey() ^ if crime == Some(Crime::LocalKey) { 0x40 } else { 0 };
        let mut at = self.address(0, act.local);
        if crime == Some(Crime::LocalBounds) {
            at = self.memory[0].addr() + (self.memory[0].len() - len + 1) as u64;
        }
        let cut = len / act.op.entries;
        let piece = |i: usize| if i + 1 == act.op.entries { len - cut * i } else { cut };
        (0..act.op.entries).map(|i| sge(at + (cut * i) as u64, piece(i) as u32, key)).collect()
    }

    /// Address and key of what the request names at the other side.
    fn target(&self, act: &Act) -> (u64, u32) {
        let atomic = act.op.verb.is_atomic();
        let at = self.address(1, if atomic { WORD } else { act.remote });
        let there = &self.memory[1];
        match act.op.crime {
            Some(Crime::Key) => (at, there.rkey() ^ 0x20),
            // Aligned, for that is looked at first.
            Some(Crime::Bounds) if atomic => ((there.addr() + there.len() as u64 - 7).next_multiple_of(8), there.rkey()),
            Some(Crime::Bounds) => (there.addr() + (there.len() - act.op.len + 1) as u64, there.rkey()),
            Some(Crime::Right) => (self.closed.addr().next_multiple_of(if atomic { 8 } else { 1 }), self.closed.rkey()),
            Some(Crime::Odd) => (at + 1 + act.operand % 7, there.rkey()),
            _ => (at, there.rkey()),
        }
    }

    fn post(&mut self, pair: &Pair, n: usize) -> Result<(), Error> {
        let act = &self.script.acts[n];
        let (list, (remote_addr, rkey), wr_id) = (self.list(act), self.target(act), n as u64);
        let bytes = self.script.payload(act);
        let payload = if act.op.inline { Payload::Inline(bytes) } else { Payload::Sges(&list) };
        let (signaled, solicited, fence, imm) = (act.op.signaled, act.op.solicited, act.op.fence, act.imm);
        let opcode = match act.op.verb {
            Verb::Send => WrOpcode::Send,
            Verb::SendImm => WrOpcode::SendImm,
            Verb::Write => WrOpcode::Write,
            _ => WrOpcode::WriteImm,
        };
        if self.connection.transport == QpType::Ud {
            let peer = &pair.hosts[1 - self.connection.from];
            let to = AddressHandle::new(peer.mac(), peer.ip(self.connection.v6));
            let imm = act.op.verb.has_imm().then_some(imm);
            let dest_qpn = self.qps[1].qpn();
            return Ok(self.qps[0].post_send_ud(&DatagramRequest { wr_id, payload, to: &to, dest_qpn, qkey: QKEY, imm, signaled, solicited })?);
        }
        let atomic = match act.op.verb {
            Verb::FetchAdd => Some(AtomicOp::FetchAdd(act.operand)),
            Verb::CompareSwap { hit } => Some(AtomicOp::CompareSwap { compare: if hit { self.words[n] } else { !self.words[n] }, swap: act.operand }),
            _ => None,
        };
        let request = SendRequest { wr_id, opcode, payload, remote_addr, rkey, imm, signaled, solicited };
        let qp = &mut self.qps[0];
        match atomic {
            Some(op) => qp.post_atomic(&AtomicRequest { wr_id, op, sges: &list, remote_addr, rkey, signaled, fence })?,
            None if act.op.verb == Verb::Read => qp.post_read(&ReadRequest { wr_id, sges: &list, remote_addr, rkey, signaled, fence })?,
            None if fence => qp.post_send_fenced(&request)?,
            None => qp.post_send(&request)?,
        }
        Ok(())
    }

    fn poll(&mut self) {
        let from = self.connection.from;
        while let Some(c) = self.cqs[from].poll() {
            self.seen.sent.push(c);
        }
        while let Some(c) = self.cqs[1 - from].poll() {
            self.seen.received.push(c);
        }
    }

    /// The last request has ended: the last is always signalled.
    fn done(&self) -> bool {
        self.seen.sent.last().is_some_and(|c| c.wr_id as usize + 1 == self.script.acts.len())
    }

    fn receives(&self) -> usize {
        self.script.acts.iter().filter(|a| a.receive.is_some()).count()
    }
}

/// Waits until `what` of all lines.
fn until(pair: &Pair, lines: &mut [Line], name: &str, what: impl Fn(&Line) -> bool) -> Result<(), Error> {
    let (start, mut late) = (pair.world().cycle(), true);
    loop {
        lines.iter_mut().for_each(Line::poll);
        if lines.iter().all(&what) {
            return Ok(());
        }
        let cycle = pair.world().cycle();
        if late && cycle - start > LATE {
            late = false;
            lines.iter_mut().try_for_each(|l| l.post_receives(true))?;
        }
        if cycle - start > PATIENCE {
            let ends: Vec<_> = lines.iter().map(|l| (l.connection.transport, l.seen.sent.len(), l.seen.received.len())).collect();
            return Err(Error::Stuck(format!("{name}: hangs; requests and receives that have ended: {ends:?}")));
        }
        pair.world().run(50);
    }
}

/// Completion queues for as many connections as a program may have, to be used again and again.
pub fn queues(pair: &Pair) -> Result<Vec<[CompletionQueue; 2]>, Error> {
    (0..MOST_CONNECTIONS).map(|_| Ok([pair.hosts[0].cq(16)?, pair.hosts[1].cq(16)?])).collect()
}

/// Runs all scripts at once.
pub fn run(pair: &Pair, cqs: &mut [[CompletionQueue; 2]], connections: &[Connection], scripts: &[Script]) -> Result<Vec<Observed>, Error> {
    let refused = pair.iommu_faults();
    let mut lines = connections.iter().zip(scripts).zip(cqs).map(|((c, s), cqs)| Line::new(pair, cqs, c, s)).collect::<Result<Vec<_>, _>>()?;
    lines.iter_mut().try_for_each(|l| l.post_receives(false))?;
    let longest = scripts.iter().map(|s| s.acts.len()).max().unwrap_or(0);
    for n in 0..longest {
        for line in lines.iter_mut().filter(|l| n < l.script.acts.len()) {
            line.post(pair, n)?;
        }
    }
    until(pair, &mut lines, "requests", |l| l.done())?;
    lines.iter_mut().try_for_each(|l| l.post_receives(true))?;
    // What nobody acknowledges is still on its way.
    while !pair.world().quiet() {
        pair.world().run(100);
    }
    for line in &mut lines {
        for qp in &mut line.qps {
            qp.to_error()?;
        }
    }
    until(pair, &mut lines, "receives", |l| l.seen.received.len() >= l.receives())?;
    pair.world().run(AFTER);
    lines.iter_mut().for_each(Line::poll);
    for line in &mut lines {
        line.seen.after = [0, 1].map(|side| contents(&line.memory[side], line.base[side], line.script.before[side].len()));
        if line.closed.to_vec(0, line.closed.len()).iter().any(|b| *b != 0) {
            return Err(Error::Stuck("a region without rights was written".into()));
        }
    }
    if pair.iommu_faults() != refused {
        return Err(Error::Stuck("an access outside mapped memory".into()));
    }
    Ok(lines.into_iter().map(|l| l.seen).collect())
}
