//! What the other side answers: READs and atomics, every answer verified.
use super::scenario::traced;
use crate::pair::{Error, Pair, Wire};
use crate::traffic::pattern;
use ferric_driver::qp::sge;
use ferric_driver::types::Mtu;
use ferric_driver::{Access, AtomicOp, AtomicRequest, CompletionQueue, CqeStatus, MemoryRegion, QpConfig, QueuePair, ReadRequest};
use std::path::Path;

/// What is asked for.
#[derive(Clone, Copy, PartialEq)]
enum Ask {
    /// So many bytes.
    Read(usize),
    /// One is added to 8 bytes.
    Add,
}

/// One queue pair of host `from` asks the other host; each of `window` places is asked about again once it has been answered.
struct Asker {
    ask: Ask,
    qps: [QueuePair; 2],
    cqs: [CompletionQueue; 2],
    near: MemoryRegion,
    far: MemoryRegion,
    from: usize,
    window: usize,
    posted: u64,
    done: u64,
}

impl Asker {
    fn new(pair: &Pair, wire: &Wire, ask: Ask, window: usize, from: usize) -> Result<Self, Error> {
        let entries = (4 * window).max(64);
        let cqs = [pair.hosts[0].cq(entries)?, pair.hosts[1].cq(entries)?];
        let config = QpConfig { max_send: window.max(2), ..Default::default() };
        let qps = pair.connected(&config, wire, [&cqs[0], &cqs[1]])?;
        let size = if let Ask::Read(n) = ask { n } else { 8 };
        let near = pair.hosts[from].region(size * window, Access::ALL)?;
        let far = pair.hosts[1 - from].region(size * window, Access::ALL)?;
        Ok(Self { ask, qps, cqs, near, far, from, window, posted: 0, done: 0 })
    }

    /// What the answer to request `n` must be.
    fn answer(&self, n: u64) -> Vec<u8> {
        match self.ask {
            Ask::Read(len) => (0..len).map(|i| pattern(n, i)).collect(),
            Ask::Add => (n / self.window as u64).to_le_bytes().to_vec(),
        }
    }

    /// Posts and polls once; true when `count` answers are there.
    fn advance(&mut self, count: u64) -> Result<bool, Error> {
        let size = self.near.len() / self.window;
        while self.posted < count && self.posted - self.done < self.window as u64 {
            let (wr_id, at) = (self.posted, (self.posted % self.window as u64) as usize * size);
            let into = [sge(self.near.addr() + at as u64, size as u32, self.near.lkey())];
            let (remote_addr, rkey) = (self.far.addr() + at as u64, self.far.rkey());
            match self.ask {
                Ask::Read(_) => {
                    self.far.write(at, &self.answer(wr_id));
                    self.qps[self.from].post_read(&ReadRequest { wr_id, sges: &into, remote_addr, rkey, signaled: true, fence: false })?;
                }
                Ask::Add => {
                    self.qps[self.from].post_atomic(&AtomicRequest { wr_id, op: AtomicOp::FetchAdd(1), sges: &into, remote_addr, rkey, signaled: true, fence: false })?;
                }
            }
            self.posted += 1;
        }
        while let Some(c) = self.cqs[self.from].poll() {
            let at = (c.wr_id % self.window as u64) as usize * size;
            if c.status != CqeStatus::Success || c.wr_id != self.done || self.near.to_vec(at, size) != self.answer(c.wr_id) {
                return Err(Error::Stuck(format!("answer {}: {c:?}, or its bytes are wrong", self.done)));
            }
            self.done += 1;
        }
        Ok(self.done == count)
    }
}

fn run(pair: &Pair, askers: &mut [Asker], count: u64) -> Result<(), Error> {
    let end = pair.world().cycle() + 1_000_000;
    loop {
        let mut all = true;
        for asker in askers.iter_mut() {
            all &= asker.advance(count)?;
        }
        if all {
            return Ok(());
        }
        if pair.world().cycle() > end {
            return Err(Error::Stuck("answers are missing".into()));
        }
        pair.world().run(16);
    }
}

/// Large READs both ways at once, 16 outstanding on each of two queue pairs.
pub fn reads(pair: &Pair, mtu: Mtu, path: &Path) -> Result<(), Error> {
    let wire = Wire { mtu, timeout: 14, ..Default::default() };
    let mut askers = (0..4).map(|i| Asker::new(pair, &wire, Ask::Read(65_536), 16, i / 2)).collect::<Result<Vec<_>, _>>()?;
    run(pair, &mut askers, 16)?;
    traced(pair, path, || run(pair, &mut askers, 40))
}

/// FETCH_ADD of `qps` queue pairs on addresses of their own, one direction. Returns how many were traced.
pub fn atomics(pair: &Pair, qps: usize, path: &Path) -> Result<u64, Error> {
    let wire = Wire { timeout: 14, ..Default::default() };
    let mut askers = (0..qps).map(|_| Asker::new(pair, &wire, Ask::Add, 16, 0)).collect::<Result<Vec<_>, _>>()?;
    run(pair, &mut askers, 16)?;
    traced(pair, path, || run(pair, &mut askers, 64))?;
    Ok(qps as u64 * 48)
}
