//! Message streams between a pair, verified byte by byte, for demo, bench and soak.
use crate::pair::{Error, Pair, Wire};
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::{Access, CompletionQueue, CqeStatus, MemoryRegion, QpConfig, QueuePair, RecvRequest, SendRequest};

/// One queue pair pair with buffers at both ends, host 0 sends to host 1 (or the other way for `reverse`).
pub struct Flow {
    qps: [QueuePair; 2],
    cqs: [CompletionQueue; 2],
    src: MemoryRegion,
    dst: MemoryRegion,
    from: usize,
    window: usize,
    size: usize,
    stride: usize,
    posted: u64,
    done: u64,
    received: u64,
    receives: u64,
}

/// Byte `i` of message `n`: nothing repeats within a message or from one to the next.
pub fn pattern(n: u64, i: usize) -> u8 {
    let x = (i as u64).wrapping_mul(0x9e37_79b9).wrapping_add(n.wrapping_mul(0x85eb_ca6b));
    (x >> 13 ^ x >> 5) as u8
}

impl Flow {
    /// A flow of messages of `size` bytes with up to `window` outstanding.
    pub fn new(pair: &Pair, wire: &Wire, size: usize, window: usize, reverse: bool) -> Result<Self, Error> {
        let from = reverse as usize;
        let entries = (4 * window).max(64);
        let cqs = [pair.hosts[0].cq(entries)?, pair.hosts[1].cq(entries)?];
        let config = QpConfig { max_send: window.max(2), max_recv: window.max(2), ..Default::default() };
        let qps = pair.connected(&config, wire, [&cqs[0], &cqs[1]])?;
        let stride = size.next_multiple_of(64).max(64);
        let src = pair.hosts[from].region(stride * window, Access::ALL)?;
        let dst = pair.hosts[1 - from].region(stride * window, Access::ALL)?;
        Ok(Self { qps, cqs, src, dst, from, window, size, stride, posted: 0, done: 0, received: 0, receives: 0 })
    }

    /// Posts what the window allows and polls both ends once; `count`: messages in all. True when all are done and verified.
    pub fn advance(&mut self, opcode: WrOpcode, count: u64) -> Result<bool, Error> {
        let is_send = opcode == WrOpcode::Send;
        while is_send && self.receives < count && self.receives - self.received < self.window as u64 {
            let at = (self.receives % self.window as u64) as usize * self.stride;
            let into = [sge(self.dst.addr() + at as u64, self.size as u32, self.dst.lkey())];
            self.qps[1 - self.from].post_recv(&RecvRequest { wr_id: self.receives, sges: &into })?;
            self.receives += 1;
        }
        while self.posted < count && self.posted - self.done < self.window as u64 && (!is_send || self.posted < self.receives) {
            let at = (self.posted % self.window as u64) as usize * self.stride;
            let bytes: Vec<u8> = (0..self.size).map(|i| pattern(self.posted, i)).collect();
            self.src.write(at, &bytes);
            let from = [sge(self.src.addr() + at as u64, self.size as u32, self.src.lkey())];
            self.qps[self.from].post_send(&SendRequest {
                wr_id: self.posted,
                opcode,
                payload: Payload::Sges(&from),
                remote_addr: self.dst.addr() + at as u64,
                rkey: self.dst.rkey(),
                imm: 0,
                signaled: true,
                solicited: false,
            })?;
            self.posted += 1;
        }
        while let Some(c) = self.cqs[self.from].poll() {
            if c.status != CqeStatus::Success || c.wr_id != self.done {
                return Err(Error::Stuck(format!("send completion {c:?} while waiting for message {}", self.done)));
            }
            if !is_send {
                self.verify(c.wr_id)?;
            }
            self.done += 1;
        }
        while let Some(c) = self.cqs[1 - self.from].poll() {
            if c.status != CqeStatus::Success || c.wr_id != self.received || c.byte_len as usize != self.size {
                return Err(Error::Stuck(format!("receive completion {c:?} while waiting for message {}", self.received)));
            }
            self.verify(c.wr_id)?;
            self.received += 1;
        }
        Ok(self.done == count && (!is_send || self.received == count))
    }

    fn verify(&self, n: u64) -> Result<(), Error> {
        let at = (n % self.window as u64) as usize * self.stride;
        let got = self.dst.to_vec(at, self.size);
        match got.iter().enumerate().find(|(i, b)| **b != pattern(n, *i)) {
            None => Ok(()),
            Some((i, b)) => Err(Error::Stuck(format!("message {n} of {} bytes: byte {i} is {b:#04x}, not {:#04x}", self.size, pattern(n, i)))),
        }
    }

    /// Messages completed at the sender.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Runs `count` messages to their end; fails when nothing completes for `patience` cycles.
    pub fn run(&mut self, pair: &Pair, opcode: WrOpcode, count: u64, patience: u64) -> Result<(), Error> {
        run_all(pair, &mut [(self, opcode)], count, patience)
    }
}

/// Runs several flows at once, `count` messages each.
pub fn run_all(pair: &Pair, flows: &mut [(&mut Flow, WrOpcode)], count: u64, patience: u64) -> Result<(), Error> {
    let mut seen = u64::MAX;
    let mut since = pair.world().cycle();
    loop {
        let mut all = true;
        for (flow, opcode) in flows.iter_mut() {
            all &= flow.advance(*opcode, count)?;
        }
        if all {
            return Ok(());
        }
        let (progress, now) = (flows.iter().map(|(f, _)| f.done + f.received).sum(), pair.world().cycle());
        if progress != seen {
            (seen, since) = (progress, now);
        } else if now - since > patience {
            return Err(Error::Stuck(format!("no completion for {patience} cycles after {progress} completions")));
        }
        pair.world().run(16);
    }
}
