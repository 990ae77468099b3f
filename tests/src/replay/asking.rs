//! The requester's half of a run: posts messages when their first packet is next, matches its packets with the captured ones, advances
//! time where the captured machine waited, and checks completions (rules 2, 6, 7, 8).
use super::analyse::Stream;
use super::answering::Answering;
use super::compare;
use super::deviations::Deviation;
use super::endpoint::{rnr_ticks, timeout_ticks, Done, Post, Region, RegionSpec, Slice};
use super::error::{Error, Result};
use super::frame::{Frame, Kind, Syndrome};
use super::learn::Learned;
use super::run::{settle, Expected, Stage};
use ferric_driver::{Access, CqeStatus};
use std::collections::HashSet;

/// Ticks by which a timer may be early because it counts whole ticks.
const ROUNDING: u64 = 2;

/// A request packet of the endpoint.
struct Sent {
    frame: Frame,
    position: u32,
    ticks: u64,
}

/// State of the half.
pub struct Asking<'a> {
    stream: &'a Stream,
    learned: Learned,
    buffer: Option<Region>,
    offsets: Vec<usize>,
    posted: usize,
    /// What the endpoint sent, and up to where it is matched.
    sent: Vec<Sent>,
    matched: usize,
    /// Positions that some captured packet stood for.
    seen: HashSet<u32>,
    /// The endpoint's next position if it goes on, and one past its highest.
    own_next: u32,
    own_max: u32,
    /// Positions from which the endpoint may start again.
    restarts: Vec<u32>,
    /// The captured machine's next position if it goes on, and one past its highest.
    next: u32,
    max: u32,
    last_time: u64,
    una: u32,
    /// Sequence NAKs not yet followed by the captured machine. It may follow one late: what it sends crosses what it is told.
    naks: Vec<u32>,
    /// Where answers to a READ or an atomic were missing when later ones came.
    implied: Vec<u32>,
    /// RNR wait: position and the tick before which nothing may come.
    rnr: Option<(u32, u64)>,
    rnr_count: u8,
    /// Tick from which the retransmission timer runs at the earliest.
    timer_from: u64,
    done: Vec<Done>,
    failed: Option<CqeStatus>,
}

impl<'a> Asking<'a> {
    /// Prepares the payloads of the messages machine `side` sends.
    pub fn new(stage: &mut Stage<'a>, side: usize, learned: &Learned) -> Result<Self> {
        let stream = &stage.connection.requests[side];
        let messages = &stream.messages;
        let mut offsets = Vec::new();
        let mut total = 0;
        for m in messages {
            offsets.push(total);
            total += m.local_len();
        }
        let buffer = if total > 0 {
            let region = stage.endpoint.register(&RegionSpec::new(total, Access::ALL))?;
            for (m, at) in messages.iter().zip(&offsets).filter(|(m, _)| !m.kind.brings_data()) {
                stage.endpoint.write_memory(&region, *at, &m.data);
            }
            Some(region)
        } else {
            None
        };
        Ok(Self {
            stream,
            learned: learned.clone(),
            buffer,
            offsets,
            posted: 0,
            sent: Vec::new(),
            matched: 0,
            seen: HashSet::new(),
            own_next: 0,
            own_max: 0,
            restarts: Vec::new(),
            next: 0,
            max: 0,
            last_time: 0,
            una: 0,
            naks: Vec::new(),
            implied: Vec::new(),
            rnr: None,
            rnr_count: 0,
            timer_from: 0,
            done: Vec::new(),
            failed: None,
        })
    }

    fn slice(&self, n: usize) -> Option<Slice> {
        let len = self.stream.messages[n].local_len();
        self.buffer.filter(|_| len > 0).map(|region| Slice { region, offset: self.offsets[n], len })
    }

    /// The packet's position and one past it (past its responses, for a READ).
    fn span(&self, f: &Frame) -> Result<(u32, u32)> {
        let outside = || Error::Differs(format!("{} belongs to no message", f.brief()));
        let at = u32::try_from(self.stream.position(f.psn())).map_err(|_| outside())?;
        let (_, m) = self.stream.at(at).ok_or_else(outside)?;
        Ok((at, if m.kind == Kind::ReadRequest { m.end() } else { at + 1 }))
    }

    /// The endpoint sent a request packet: it must go on where it was, or start again where it has reason to.
    pub fn sent(&mut self, frame: Frame, ticks: u64) -> Result<()> {
        log::debug!("endpoint at tick {ticks}: {}", frame.brief());
        let (at, after) = self.span(&frame)?;
        if self.failed.is_some() {
            return Err(Error::Differs(format!("{} after the queue pair's error", frame.brief())));
        }
        if at != self.own_next && at != self.own_max {
            if let Some((_, until)) = self.rnr.filter(|(p, until)| *p == at && ticks + ROUNDING < *until) {
                return Err(Error::Differs(format!("{} comes {} ticks before the RNR timer ends", frame.brief(), until - ticks)));
            }
            let rnr_over = self.rnr.is_some_and(|(p, _)| p == at);
            match self.restarts.iter().position(|r| *r == at) {
                Some(i) => {
                    self.restarts.remove(i);
                }
                None if rnr_over => {}
                None => return Err(Error::Differs(format!("{} is sent again without a reason", frame.brief()))),
            }
        }
        self.own_next = after;
        self.own_max = self.own_max.max(after);
        self.sent.push(Sent { frame, position: at, ticks });
        Ok(())
    }

    /// A send completion.
    pub fn completed(&mut self, done: Done) {
        self.done.push(done);
    }

    /// The captured machine sent this request packet.
    pub fn expect(&mut self, stage: &mut Stage<'a>, answering: &mut Answering<'a>, e: &Expected) -> Result<()> {
        let (at, after) = self.span(&e.frame)?;
        while self.posted < self.stream.messages.len() && self.stream.messages[self.posted].first <= at {
            self.post(stage, &e.frame)?;
            let before = stage.endpoint.ticks();
            if self.una == self.max {
                self.timer_from = before;
            }
            settle(stage, self, answering)?;
        }
        if at == self.max {
            // New.
        } else if at > self.max {
            return Err(Error::Differs(format!("captured {}, but the packets before it are missing", e.frame.brief())));
        } else if at != self.next {
            self.again(stage, answering, e, at)?;
        }
        let found = self.sent[self.matched..].iter().position(|s| s.position == at);
        let Some(found) = found.map(|i| i + self.matched) else {
            return Err(Error::Differs(format!("captured {}, which was not sent{}", e.frame.brief(), if at < self.max { " again" } else { "" })));
        };
        compare::same(&self.sent[found].frame, &e.frame).map_err(Error::Differs)?;
        self.matched = found + 1;
        self.seen.insert(at);
        self.next = after;
        self.max = self.max.max(after);
        self.last_time = e.time;
        Ok(())
    }

    /// `frame`: the captured packet with which the message begins.
    fn post(&mut self, stage: &mut Stage, frame: &Frame) -> Result<()> {
        let m = &self.stream.messages[self.posted];
        let operands = frame.atomic.map_or((0, 0), |a| (a.swap_add(), a.compare()));
        let (local, remote) = (self.slice(self.posted), m.remote.unwrap_or_default());
        let post = Post { id: self.posted as u64, kind: m.kind, operands, imm: m.imm, invalidate: m.invalidate, solicited: m.solicited, local, remote, flush: m.flush };
        self.posted += 1;
        stage.post(&post)
    }

    /// The captured machine went back to `at`: by NAK, after an RNR wait, or by time-out.
    fn again(&mut self, stage: &mut Stage<'a>, answering: &mut Answering<'a>, e: &Expected, at: u32) -> Result<()> {
        if let Some(i) = self.naks.iter().position(|n| *n == at) {
            self.naks.drain(..=i);
            return Ok(());
        }
        if let Some((position, until)) = self.rnr.filter(|(p, _)| *p == at) {
            let wait = until.saturating_sub(self.timer_from);
            self.timer_from = self.wait(stage, answering, position, until, until + 3 * wait + 64)?;
            self.rnr = None;
            return Ok(());
        }
        if let Some(i) = self.implied.iter().position(|n| *n == at) {
            // The endpoint may have taken the hole for a NAK, as 9.7.5.1.2 lets it; the captured machine waited for its timer.
            self.implied.remove(i);
            if self.sent[self.matched..].iter().any(|s| s.position == at) {
                return Ok(());
            }
        }
        let none = |why: &str| Err(Error::Differs(format!("captured {}, for which there is no reason: {why}", e.frame.brief())));
        if at != self.una {
            return none("no NAK asked for it and it is not the oldest unacknowledged packet");
        }
        if self.learned.shortest_timeout.is_none_or(|s| e.time.saturating_sub(self.last_time) < s) {
            return none("no NAK asked for it and it comes before the time-out");
        }
        let t = timeout_ticks(self.learned.setup.timeout);
        self.restarts.push(at);
        self.timer_from = self.wait(stage, answering, at, self.timer_from + t, self.timer_from + 4 * t + 64)?;
        self.restarts.clear();
        Ok(())
    }

    /// Advances time until the packet at `position` is sent again: not before `earliest`, not after `latest`. Returns the tick from
    /// which its timer runs again.
    fn wait(&mut self, stage: &mut Stage<'a>, answering: &mut Answering<'a>, position: u32, earliest: u64, latest: u64) -> Result<u64> {
        let from = self.sent.len();
        let step = ((latest - earliest) / 256).max(1);
        loop {
            if let Some(s) = self.sent[from..].first() {
                return if s.position != position {
                    Err(Error::Differs(format!("{} where the packet at {position} of the stream was due again", s.frame.brief())))
                } else if s.ticks + ROUNDING < earliest {
                    Err(Error::Differs(format!("{} is sent again {} ticks before the timer can end", s.frame.brief(), earliest - s.ticks)))
                } else {
                    Ok(s.ticks.saturating_sub(ROUNDING))
                };
            }
            let now = stage.endpoint.ticks();
            if now > latest {
                return Err(Error::Differs(format!("nothing is sent again within {} ticks, though the timer was due after {}", now - self.timer_from, earliest - self.timer_from)));
            }
            let n = if now + ROUNDING + 1 < earliest { earliest - ROUNDING - 1 - now } else { step };
            stage.endpoint.advance(n);
            settle(stage, self, answering)?;
        }
    }

    /// The peer's response reaches the requester.
    pub fn told(&mut self, stage: &mut Stage<'a>, f: &Frame, before: u64) -> Result<()> {
        let Ok(at) = u32::try_from(self.stream.position(f.psn())) else { return Ok(()) };
        if at >= self.max {
            return Err(Error::Exchange(format!("{} answers a packet that was not sent", f.brief())));
        }
        if at < self.una || self.failed.is_some() {
            return Ok(());
        }
        let progress = |s: &mut Self, to: u32| {
            if to > s.una {
                s.una = to;
                s.restarts.retain(|n| *n >= to);
                s.rnr = s.rnr.filter(|(p, _)| *p >= to);
                s.rnr_count = 0;
            }
            s.timer_from = before;
        };
        // What lies before an answer or a positive acknowledge counts up to the first READ or atomic that is not answered.
        let answer = matches!(f.op.kind, Kind::ReadResponse | Kind::AtomicAck);
        let positive = f.aeth.is_none_or(|a| matches!(Syndrome::of(a.syndrome()), Syndrome::Ack));
        let open = self.stream.messages.iter().find(|m| m.kind.has_response() && m.end() > self.una).map(|m| m.first.max(self.una));
        if let Some(open) = open.filter(|open| positive && (at > *open || at == *open && !answer)) {
            if open > self.una {
                progress(self, open);
            }
            if !self.implied.contains(&open) {
                self.implied.push(open);
                self.restarts.push(open);
            }
            return Ok(());
        }
        let Some(aeth) = f.aeth else {
            progress(self, at + 1);
            return Ok(());
        };
        match Syndrome::of(aeth.syndrome()) {
            Syndrome::Ack => progress(self, at + 1),
            Syndrome::Rnr(timer) => {
                progress(self, at);
                self.naks.clear();
                self.rnr = Some((at, before + rnr_ticks(timer)));
                self.rnr_count += 1;
                let retries = self.learned.setup.rnr_retry;
                if retries != 7 && self.rnr_count > retries {
                    self.failed = Some(CqeStatus::RnrRetryExceeded);
                }
            }
            Syndrome::Sequence if self.rnr.is_some_and(|(p, _)| p == at) => {
                stage.deviations.insert(Deviation::SequenceNakAfterRnr);
            }
            Syndrome::Sequence => {
                progress(self, at);
                self.naks.push(at);
                self.restarts.push(at);
            }
            Syndrome::Fatal(code) => {
                progress(self, at);
                self.failed = Some(match code {
                    1 => CqeStatus::RemoteInvalidRequest,
                    2 => CqeStatus::RemoteAccess,
                    _ => CqeStatus::RemoteOperation,
                });
            }
            Syndrome::Reserved => {}
        }
        Ok(())
    }

    /// Completions so far: one success per acknowledged message, then the error, then flushes; in order.
    pub fn check_completions(&self) -> Result<()> {
        let acknowledged = self.stream.messages[..self.posted].iter().take_while(|m| m.end() <= self.una).count();
        let mut want: Vec<CqeStatus> = vec![CqeStatus::Success; acknowledged];
        if let Some(status) = self.failed {
            want.push(status);
            want.resize(self.posted.max(acknowledged + 1), CqeStatus::WrFlush);
        }
        for (n, status) in want.iter().enumerate() {
            match self.done.get(n) {
                Some(d) if d.id == n as u64 && d.status == *status => {}
                Some(d) => return Err(Error::Differs(format!("completion {n} is of message {} with {:?}, must be of message {n} with {status:?}", d.id, d.status))),
                None => return Err(Error::Differs(format!("message {n} is not completed ({status:?} expected)"))),
            }
        }
        match self.done.get(want.len()) {
            Some(d) => Err(Error::Differs(format!("message {} is completed with {:?} before it is acknowledged", d.id, d.status))),
            None => Ok(()),
        }
    }

    /// The exchange is over: what is due now, and that nothing else comes.
    pub fn finish(&mut self, stage: &mut Stage<'a>, answering: &mut Answering<'a>) -> Result<()> {
        let t = timeout_ticks(self.learned.setup.timeout);
        if self.learned.gives_up == Some(CqeStatus::RetryExceeded) && self.failed.is_none() {
            let (earliest, latest) = (self.timer_from + t, self.timer_from + 4 * t + 64);
            let completed = self.done.len();
            while self.done.len() == completed {
                let now = stage.endpoint.ticks();
                if now > latest {
                    return Err(Error::Differs("retries are exhausted, but no completion says so".into()));
                }
                stage.endpoint.advance(if now + ROUNDING + 1 < earliest { earliest - ROUNDING - 1 - now } else { (t / 64).max(1) });
                settle(stage, self, answering)?;
            }
            if stage.endpoint.ticks() + ROUNDING < earliest {
                return Err(Error::Differs("retries are given up before the timer can end".into()));
            }
            self.failed = Some(CqeStatus::RetryExceeded);
        }
        self.check_completions()?;
        if self.una == self.max || self.failed.is_some() {
            // Silence for one further time-out.
            let count = self.sent.len();
            stage.endpoint.advance(t + t / 4 + 16);
            settle(stage, self, answering)?;
            if let Some(s) = self.sent.get(count) {
                return Err(Error::Differs(format!("{} after the end of the exchange", s.frame.brief())));
            }
            self.check_completions()?;
        }
        // What no captured packet stood for must belong to the unseen tail of a message that ended in error.
        for s in &self.sent {
            let unseen_tail = self.failed.is_some() && self.stream.at(s.position).is_some_and(|(_, m)| m.nak.is_some() && s.position >= self.max);
            if !self.seen.contains(&s.position) && !unseen_tail {
                return Err(Error::Differs(format!("{} was sent, which the captured machine did not send", s.frame.brief())));
            }
        }
        for (n, m) in self.stream.messages[..self.posted].iter().enumerate().filter(|(_, m)| m.kind.brings_data() && m.end() <= self.una) {
            if let Some(l) = self.slice(n) {
                if stage.endpoint.read_memory(&l.region, l.offset, l.len) != m.data {
                    return Err(Error::Differs(format!("message {n}: the bytes read are not those of the responses")));
                }
            }
        }
        Ok(())
    }
}
