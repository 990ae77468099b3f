//! Queue pairs that fail on purpose while the others work: each round one request breaks a rule, ends with the status of the
//! specification (IBTA 9.9), everything behind it is flushed in order, and the queue pair is reset and connected anew.
use super::Coverage;
use crate::pair::{Error, Pair, Wire};
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::{Access, CompletionQueue, CqeStatus, MemoryRegion, QpConfig, QueuePair, RecvRequest, SendRequest};
use ferric_sim::Rng;
use rand::Rng as _;

/// What is wrong with the request of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Crime {
    BadKey,
    OutOfBounds,
    TooLong,
    Unmapped,
    BadLocalKey,
}

const CRIMES: [Crime; 5] = [Crime::BadKey, Crime::OutOfBounds, Crime::TooLong, Crime::Unmapped, Crime::BadLocalKey];
/// Bytes of each buffer.
const LEN: usize = 8192;
/// Requests behind the bad one.
const BEHIND: u64 = 2;

/// One such pair of queue pairs. Host 0 sends, host 1 receives.
pub(super) struct Doomed {
    wire: Wire,
    qps: [QueuePair; 2],
    cqs: [CompletionQueue; 2],
    src: MemoryRegion,
    dst: MemoryRegion,
    crime: Crime,
    seen: u64,
    round: u64,
}

impl Doomed {
    pub(super) fn new(pair: &Pair, wire: &Wire) -> Result<Self, Error> {
        let cqs = [pair.hosts[0].cq(16)?, pair.hosts[1].cq(16)?];
        let qps = pair.connected(&QpConfig { max_send: 4, max_recv: 4, ..Default::default() }, wire, [&cqs[0], &cqs[1]])?;
        let (src, dst) = (pair.hosts[0].region(LEN, Access::ALL)?, pair.hosts[1].region(LEN, Access::ALL)?);
        let mut new = Self { wire: *wire, qps, cqs, src, dst, crime: CRIMES[0], seen: 0, round: 0 };
        new.commit(pair)?;
        Ok(new)
    }

    /// Posts the bad request and some behind it.
    fn commit(&mut self, pair: &Pair) -> Result<(), Error> {
        self.crime = CRIMES[self.round as usize % CRIMES.len()];
        self.seen = 0;
        for wr_id in 0..2 {
            let into = [sge(self.dst.addr(), 1000, self.dst.lkey())];
            self.qps[1].post_recv(&RecvRequest { wr_id, sges: &into })?;
        }
        if self.crime == Crime::Unmapped {
            // A region of its own, for the host takes its pages away for good.
            self.dst = pair.hosts[1].region(LEN, Access::ALL)?;
            pair.world().cards[1].iommu.unmap(0, self.dst.mapping());
        }
        for wr_id in 0..=BEHIND {
            let bad = wr_id == 0;
            let is = |c: Crime| bad && self.crime == c;
            let from = [sge(self.src.addr(), 3000, self.src.lkey() ^ (is(Crime::BadLocalKey) as u32) << 7)];
            let past = if is(Crime::OutOfBounds) { LEN as u64 - 2999 } else { 0 };
            let opcode = if is(Crime::TooLong) { WrOpcode::Send } else { WrOpcode::Write };
            self.qps[0].post_send(&SendRequest {
                wr_id,
                opcode,
                payload: Payload::Sges(&from),
                remote_addr: self.dst.addr() + past,
                rkey: self.dst.rkey() ^ is(Crime::BadKey) as u32,
                imm: 0,
                signaled: true,
                solicited: false,
            })?;
        }
        Ok(())
    }

    /// Polls; after the last completion of a round the next one starts. Tells what is wrong.
    pub(super) fn advance(&mut self, pair: &Pair, rng: &mut Rng, coverage: &mut Coverage) -> Result<Option<String>, Error> {
        while let Some(c) = self.cqs[1].poll() {
            if !matches!(c.status, CqeStatus::LocalLength | CqeStatus::WrFlush) {
                return Ok(Some(format!("{:?}: the receiver got {c:?}", self.crime)));
            }
        }
        while let Some(c) = self.cqs[0].poll() {
            let expected = match self.crime {
                _ if self.seen > 0 => CqeStatus::WrFlush,
                Crime::BadKey | Crime::OutOfBounds => CqeStatus::RemoteAccess,
                Crime::TooLong => CqeStatus::RemoteInvalidRequest,
                Crime::Unmapped => CqeStatus::RemoteOperation,
                Crime::BadLocalKey => CqeStatus::LocalProtection,
            };
            // A lost NAK is not repeated: the responder is in its error state and silent.
            let silent = self.seen == 0 && c.status == CqeStatus::RetryExceeded && self.crime != Crime::BadLocalKey;
            if c.wr_id != self.seen || (c.status != expected && !silent) {
                return Ok(Some(format!("{:?}: completion {} is {c:?}, expected {expected:?}", self.crime, self.seen)));
            }
            if self.seen == 0 {
                *coverage.entry(format!("status {:?}", c.status)).or_default() += 1;
            }
            self.seen += 1;
        }
        // Resetting takes thousands of cycles, in which nobody else is served.
        if self.seen > BEHIND && rng.gen_bool(0.005) {
            let [a, b] = &mut self.qps;
            a.to_reset()?;
            b.to_reset()?;
            self.wire.psn = [rng.gen_range(0..1 << 24), rng.gen_range(0..1 << 24)];
            pair.connect(&self.wire, a, b)?;
            self.round += 1;
            self.commit(pair)?;
        }
        Ok(None)
    }

    /// Rounds that ended.
    pub(super) fn rounds(&self) -> u64 {
        self.round
    }
}
