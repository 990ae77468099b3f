//! Runs scripts on two cards: the whole way through the driver, and back what it saw.
use super::golden::{words, Observed};
use super::program::{Connection, Crime, End, Verb, MOST_CONNECTIONS};
use super::script::{Act, Script, WORD};
use crate::pair::{together, Error, Pair, Wire};
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, LocalSge, Payload};
use ferric_driver::types::QpType;
use ferric_driver::{
    Access, AddressHandle, AtomicOp, AtomicRequest, AtomicWriteRequest, CompletionQueue, CqeStatus, DatagramRequest, FlushRequest, Flushed, MemoryRegion, MemoryWindow, QpConfig, QueuePair,
    ReadRequest, RecvRequest, SendRequest, Source, Start, WindowType,
};

/// Cycles without an end after which a run counts as hung.
const PATIENCE: u64 = 3_000_000;
/// Cycles within which a card has seen the doorbells of its receives, however its streams stall. A twin's first packet may be there sooner, and what is unreliable would be lost.
const SEEN: u64 = 1000;
/// Cycles after which late receives are posted.
const LATE: u64 = 3000;
/// Cycles after the end in which nothing more may happen.
const AFTER: u64 = 500;
const QKEY: u32 = 0x0123_4567;

/// Bytes of a connection's memory on each host: more than any script needs.
const ARENA: usize = 49_152;
/// Bytes of the region without rights: the largest message.
const CLOSED: usize = 8192;

/// What a connection works with, one of each per host. Used again and again.
pub struct Lane {
    /// Function of both cards that all of it belongs to.
    function: usize,
    cqs: [CompletionQueue; 2],
    memory: [MemoryRegion; 2],
    /// Peers have no rights in it. All zeroes.
    closed: [MemoryRegion; 2],
}

impl Lane {
    /// For as many connections as a program may have; the functions take turns.
    pub fn all(pair: &Pair) -> Result<Vec<Self>, Error> {
        let one = |n: usize| {
            let function = n % (pair.tenants.len() + 1);
            let [a, b] = pair.of(function);
            let bindable = |host: &crate::pair::Host| host.pd.register_bindable(vec![0; ARENA].into_boxed_slice(), Access::ALL);
            let memory = [bindable(a)?, bindable(b)?];
            let closed = [a.region(CLOSED, Access::LOCAL_WRITE)?, b.region(CLOSED, Access::LOCAL_WRITE)?];
            Ok(Self { function, cqs: [a.cq(16)?, b.cq(16)?], memory, closed })
        };
        (0..MOST_CONNECTIONS).map(one).collect()
    }

    /// Offset of the first multiple of 8.
    fn base(&self, host: usize) -> usize {
        let at = self.memory[host].addr();
        (at.next_multiple_of(8) - at) as usize
    }

    /// The first `len` bytes from there; an error if there is something behind them. A sender's last bytes do not count: an answer that
    /// its list has no room for may begin there.
    fn contents(&self, host: usize, len: usize, sender: bool) -> Result<Vec<u8>, Error> {
        let mut all = self.memory[host].to_vec(self.base(host), ARENA - 8 - if sender { CLOSED } else { 0 });
        if all.split_off(len).iter().any(|b| *b != 0) || self.closed[host].to_vec(0, CLOSED).iter().any(|b| *b != 0) {
            return Err(Error::Stuck(format!("host {host}: memory that nobody named was written")));
        }
        Ok(all)
    }
}

/// A connection at work.
struct Line<'a> {
    connection: &'a Connection,
    script: &'a Script,
    /// Sender's, then the other's.
    qps: [QueuePair; 2],
    lane: &'a mut Lane,
    /// Host of the sender, of the other.
    sides: [usize; 2],
    /// All of the other side's memory, by another key, which its peer may take away.
    _window: Option<MemoryWindow>,
    words: Vec<u64>,
    posted: usize,
    /// Acts whose memory is watched: their request has ended.
    ended: usize,
    /// The sender's memory when it was taken back.
    kept: Option<Vec<u8>>,
    seen: Observed,
}

impl<'a> Line<'a> {
    fn new(pair: &Pair, lane: &'a mut Lane, connection: &'a Connection, script: &'a Script) -> Result<Self, Error> {
        let sides = [connection.from, 1 - connection.from];
        let hosts = sides.map(|h| &pair.of(lane.function)[h]);
        for side in 0..2 {
            let mut bytes = script.before[side].clone();
            bytes.resize(ARENA - 8, 0);
            lane.memory[sides[side]].write(lane.base(sides[side]), &bytes);
            pair.unseal_of(lane.function, sides[side], &lane.memory[sides[side]], 0..ARENA);
        }
        let config = QpConfig { qp_type: connection.transport, max_send: 8, max_recv: 8, max_send_sge: 3, max_recv_sge: 2, ..Default::default() };
        let make = |side: usize| hosts[side].pd.create_qp(&config, &lane.cqs[sides[side]], &lane.cqs[sides[side]]);
        let mut qps = [make(0)?, make(1)?];
        let wire = Wire { mtu: connection.mtu, v6: connection.v6, vlan: connection.vlan.then_some(0x2007), timeout: 4, ..Default::default() };
        if connection.transport == QpType::Ud {
            let mut batches = hosts.map(|host| host.ctx.batch());
            for (side, qp) in qps.iter_mut().enumerate() {
                let source = Source { smac: hosts[side].mac(), sip: hosts[side].ip(wire.v6), vlan: wire.vlan, udp_sport: 0xd321, flow_label: 0x12345 };
                batches[side].start(qp, &Start::Datagrams { qkey: QKEY, mtu: wire.mtu, source, sq_psn: connection.psn[side] })?;
            }
            together(batches)?;
        } else {
            let [a, b] = &mut qps;
            let mut psn = connection.psn;
            if connection.from == 1 {
                psn.swap(0, 1);
                pair.connect_of(lane.function, &Wire { psn, ..wire }, b, a)?;
            } else {
                pair.connect_of(lane.function, &Wire { psn, ..wire }, a, b)?;
            }
        }
        let mut seen = Observed { sent: Vec::new(), received: Vec::new(), after: Default::default(), words: Default::default(), window: 0 };
        let mut window = None;
        if script.acts.iter().any(|act| act.op.through || act.op.verb == Verb::SendInv) {
            let mut opened = hosts[1].pd.alloc_mw(WindowType::Two)?;
            seen.window = qps[1].post_bind(0, &mut opened, &lane.memory[sides[1]], 0..ARENA, Access::ALL, true)?;
            pair.wait(&mut lane.cqs[sides[1]], PATIENCE)?;
            window = Some(opened);
        }
        Ok(Self { connection, script, qps, lane, sides, _window: window, words: words(script), posted: 0, ended: 0, kept: None, seen })
    }

    fn address(&self, side: usize, offset: usize) -> u64 {
        self.memory(side).addr() + (self.lane.base(self.sides[side]) + offset) as u64
    }

    fn memory(&self, side: usize) -> &MemoryRegion {
        &self.lane.memory[self.sides[side]]
    }

    /// Posts receives up to the first late one, or all.
    fn post_receives(&mut self, all: bool) -> Result<(), Error> {
        while let Some(act) = self.script.acts.get(self.posted) {
            if act.op.late && !all {
                break;
            }
            if let Some(room) = act.receive {
                let first = room.min(room / 3 + 1);
                let (at, key) = (self.address(1, act.remote), self.memory(1).lkey());
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
        let key = self.memory(0).lkey() ^ if crime == Some(Crime::LocalKey) { 0x40 } else { 0 };
        let mut at = self.address(0, act.local);
        if crime == Some(Crime::LocalBounds) {
            at = self.memory(0).addr() + (ARENA - len + 1) as u64;
        }
        let cut = len / act.op.entries;
        let piece = |i: usize| if i + 1 == act.op.entries { len - cut * i } else { cut };
        (0..act.op.entries).map(|i| sge(at + (cut * i) as u64, piece(i) as u32, key)).collect()
    }

    /// Address and key of what the request names at the other side.
    fn target(&self, act: &Act) -> (u64, u32) {
        let atomic = act.op.verb.is_atomic() || act.op.verb == Verb::Store;
        let at = self.address(1, if atomic { WORD } else { act.remote });
        let (there, closed) = (self.memory(1), &self.lane.closed[self.sides[1]]);
        match act.op.crime {
            Some(Crime::Key) => (at, there.rkey() ^ 0x20),
            // Aligned, for that is looked at first.
            Some(Crime::Bounds) if atomic => ((there.addr() + there.len() as u64 - 7).next_multiple_of(8), there.rkey()),
            Some(Crime::Bounds) => (there.addr() + (there.len() - act.op.len + 1) as u64, there.rkey()),
            Some(Crime::Right) => (closed.addr().next_multiple_of(if atomic { 8 } else { 1 }), closed.rkey()),
            Some(Crime::Odd) => (at + 1 + act.operand % 7, there.rkey()),
            _ if act.op.through => (at, self.seen.window),
            _ => (at, there.rkey()),
        }
    }

    fn post(&mut self, pair: &Pair, n: usize) -> Result<(), Error> {
        let act = &self.script.acts[n];
        let (list, (remote_addr, rkey), wr_id) = (self.list(act), self.target(act), n as u64);
        let bytes = self.script.payload(act);
        let payload = if act.op.inline { Payload::Inline(bytes) } else { Payload::Sges(&list) };
        let (signaled, solicited, fence) = (act.op.signaled, act.op.solicited, act.op.fence);
        let imm = if act.op.verb == Verb::SendInv { self.seen.window } else { act.imm };
        let opcode = match act.op.verb {
            Verb::Send => WrOpcode::Send,
            Verb::SendImm => WrOpcode::SendImm,
            Verb::SendInv => WrOpcode::SendInv,
            Verb::Write | Verb::Put => WrOpcode::Write,
            _ => WrOpcode::WriteImm,
        };
        if self.connection.transport == QpType::Ud {
            let peer = &pair.of(self.lane.function)[1 - self.connection.from];
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
            None if act.op.verb == Verb::Store => qp.post_atomic_write(&AtomicWriteRequest { wr_id, value: bytes.try_into().expect("8 bytes"), remote_addr, rkey, signaled, fence })?,
            None if act.op.verb == Verb::Flush => {
                // Of the whole region, whatever the address; what lies outside it is wrong in a range only.
                let whole = act.op.data % 3 == 0 && act.op.crime != Some(Crime::Bounds);
                let what = if whole { Flushed::Region } else { Flushed::Range(act.op.len as u32) };
                qp.post_flush(&FlushRequest { wr_id, what, global: true, persistent: false, remote_addr, rkey, signaled, fence })?
            }
            None if act.op.verb == Verb::Read => qp.post_read(&ReadRequest { wr_id, sges: &list, remote_addr, rkey, signaled, fence })?,
            None if fence => qp.post_send_fenced(&request)?,
            None => qp.post_send(&request)?,
        }
        Ok(())
    }

    /// What atomics work on, now.
    fn word(&self) -> u64 {
        let at = self.lane.base(self.sides[1]) + WORD;
        u64::from_le_bytes(self.memory(1).to_vec(at, 8).try_into().expect("8 bytes"))
    }

    /// From now on `len` bytes from an offset on are the program's.
    fn seal(&self, pair: &Pair, side: usize, offset: usize, len: usize) {
        let at = self.lane.base(self.sides[side]) + offset;
        pair.seal_of(self.lane.function, self.sides[side], self.memory(side), at..at + len, false);
    }

    fn poll(&mut self, pair: &Pair) {
        let [from, to] = self.sides;
        let reliable = self.connection.transport == QpType::Rc;
        while let Some(c) = self.lane.cqs[from].poll() {
            if c.status == CqeStatus::Success {
                let word = self.word();
                self.seen.words[0].push((c.wr_id, word));
            }
            // It ends those before it, too. Where an answer went the card does not write any more, whatever became of it, nor, if all is well, where a WRITE went.
            for n in self.ended..=c.wr_id as usize {
                let act = &self.script.acts[n];
                if act.op.verb.asks() && act.op.crime.is_none_or(|c| !c.is_local()) && self.kept.is_none() {
                    self.seal(pair, 0, act.local, act.op.len);
                }
                let written = matches!(act.op.verb, Verb::Write | Verb::WriteImm) && act.op.crime.is_none();
                if reliable && written && (c.status == CqeStatus::Success || n < c.wr_id as usize) {
                    self.seal(pair, 1, act.remote, act.op.len);
                }
            }
            self.ended = self.ended.max(c.wr_id as usize + 1);
            self.seen.sent.push(c);
        }
        while let Some(c) = self.lane.cqs[to].poll() {
            if c.status == CqeStatus::Success {
                let word = self.word();
                self.seen.words[1].push((c.wr_id, word));
            }
            let act = &self.script.acts[c.wr_id as usize];
            if reliable && act.op.verb.sends() {
                self.seal(pair, 1, act.remote, act.receive.unwrap_or(0));
            }
            self.seen.received.push(c);
        }
    }

    /// All requests have ended.
    fn end(&mut self, pair: &Pair) -> Result<(), Error> {
        let from = self.sides[0];
        match self.connection.end {
            End::Stays => {}
            End::Deregisters => {
                self.kept = Some(self.lane.contents(from, self.script.before[0].len(), true)?);
                self.lane.memory[from] = pair.of(self.lane.function)[from].pd.register_bindable(vec![0; ARENA].into_boxed_slice(), Access::ALL)?;
            }
            End::Resets => {
                self.qps[0].to_reset()?;
                pair.unseal_of(self.lane.function, from, self.memory(0), 0..ARENA);
                pair.seal_of(self.lane.function, from, self.memory(0), 0..ARENA, true);
            }
        }
        Ok(())
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
        lines.iter_mut().for_each(|l| l.poll(pair));
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

/// Runs all scripts at once.
pub fn run(pair: &Pair, lanes: &mut [Lane], connections: &[Connection], scripts: &[Script]) -> Result<Vec<Observed>, Error> {
    let refused = pair.iommu_faults();
    let mut lines = connections.iter().zip(scripts).zip(lanes).map(|((c, s), lane)| Line::new(pair, lane, c, s)).collect::<Result<Vec<_>, _>>()?;
    lines.iter_mut().try_for_each(|l| l.post_receives(false))?;
    pair.world().run(SEEN);
    let longest = scripts.iter().map(|s| s.acts.len()).max().unwrap_or(0);
    for n in 0..longest {
        for line in lines.iter_mut().filter(|l| n < l.script.acts.len()) {
            line.post(pair, n)?;
        }
    }
    until(pair, &mut lines, "requests", |l| l.done())?;
    lines.iter_mut().try_for_each(|l| l.end(pair))?;
    lines.iter_mut().try_for_each(|l| l.post_receives(true))?;
    // What nobody acknowledges is still on its way.
    while !pair.world().quiet() {
        pair.world().run(100);
    }
    for line in &mut lines {
        let first = usize::from(line.connection.end == End::Resets);
        let hosts = pair.of(line.lane.function);
        let mut batches = line.sides.map(|h| hosts[h].ctx.batch());
        for (qp, batch) in line.qps.iter_mut().zip(&mut batches).skip(first) {
            batch.fail(qp)?;
        }
        together(batches)?;
    }
    until(pair, &mut lines, "receives", |l| l.seen.received.len() >= l.receives())?;
    pair.world().run(AFTER);
    lines.iter_mut().for_each(|l| l.poll(pair));
    for line in &mut lines {
        let [from, to] = line.sides;
        let [home, away] = &line.script.before;
        let kept = line.kept.take();
        let home = kept.map_or_else(|| line.lane.contents(from, home.len(), true), Ok)?;
        line.seen.after = [home, line.lane.contents(to, away.len(), false)?];
    }
    if pair.iommu_faults() != refused {
        return Err(Error::Stuck("an access outside mapped memory".into()));
    }
    if let Some(late) = pair.trespasses().first() {
        return Err(Error::Stuck(format!("an access to what was the program's again: {late}")));
    }
    let ended = lines.into_iter().map(|line| {
        let Line { lane, sides, mut qps, seen, .. } = line;
        if sides[0] == 1 {
            qps.reverse();
        }
        pair.destroy_of(lane.function, [qps])?;
        Ok(seen)
    });
    ended.collect()
}
