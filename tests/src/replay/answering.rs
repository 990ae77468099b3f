//! The responder's half of a run: posts receives when they are needed, follows what must have been accepted, and matches acknowledges,
//! NAKs and READ responses with the captured ones (rules 3, 6, 8, 9).
use super::analyse::{Connection, Message, Stream};
use super::compare;
use super::deviations::Deviation;
use super::endpoint::{Done, Region, RegionSpec, Slice};
use super::error::{Error, Result};
use super::frame::{psn_add, Frame, Ip, Kind, Op, Syndrome};
use super::memory::{Cause, Plan};
use super::run::{Expected, Stage};
use ferric_abi::wire::Aeth;
use ferric_driver::{Access, CqeStatus};
use std::collections::{HashMap, HashSet};

/// State of the half.
pub struct Answering<'a> {
    stream: &'a Stream,
    plan: Plan,
    /// Next position to be accepted, and messages accepted.
    accepted: u32,
    msn: u32,
    mtu: usize,
    rnr_left: HashMap<u32, u32>,
    /// A fatal NAK has ended the queue pair.
    ended: bool,
    /// A receive stands ready for this message.
    ready: Option<usize>,
    receives: Option<(Region, Vec<u8>)>,
    offsets: Vec<usize>,
    /// Responses of the endpoint; those before `taken` are matched, and so are NAKs and READ responses before it.
    sent: Vec<Frame>,
    /// For `sent`: the acknowledge was not sent, and did not have to be.
    implied: Vec<bool>,
    taken: usize,
    /// How many there were before the last packet came.
    mark: usize,
    /// Packets so far that a responder acknowledges, and captured acknowledges.
    enabling: usize,
    acknowledged: usize,
    /// Position of the last accepted packet with AckReq, and of the last captured acknowledge.
    asked: Option<u32>,
    answered: Option<u32>,
    /// The RNR NAK of the endpoint that a captured one was matched with last.
    last_rnr: Option<Frame>,
    /// Where the rest of a READ was asked for again.
    rests: HashSet<i64>,
    completions: Vec<Done>,
    due: Vec<Done>,
}

impl<'a> Answering<'a> {
    /// For the requests of machine `peer`.
    pub fn new(c: &'a Connection, peer: usize, plan: Plan) -> Self {
        let stream = &c.requests[peer];
        let mut offsets = vec![0];
        for m in &stream.messages {
            offsets.push(offsets[offsets.len() - 1] + if m.kind == Kind::Send { m.len } else { 0 });
        }
        Self {
            stream,
            plan,
            accepted: 0,
            msn: 0,
            mtu: c.mtu.bytes(),
            rnr_left: stream.rnr.clone(),
            ended: false,
            ready: None,
            receives: None,
            offsets,
            sent: Vec::new(),
            implied: Vec::new(),
            taken: 0,
            mark: 0,
            enabling: 0,
            acknowledged: 0,
            asked: None,
            answered: None,
            last_rnr: None,
            rests: HashSet::new(),
            completions: Vec::new(),
            due: Vec::new(),
        }
    }

    fn current(&self, f: &Frame) -> Option<(usize, &'a Message)> {
        let at = u32::try_from(self.stream.position(f.psn())).ok()?;
        self.stream.at(at)
    }

    fn is_next(&self, f: &Frame) -> bool {
        !self.ended && self.stream.position(f.psn()) == self.accepted as i64
    }

    /// A request packet is about to arrive.
    pub fn before(&mut self, stage: &mut Stage, f: &Frame) -> Result<()> {
        self.mark = self.sent.len();
        let Some((n, m)) = self.current(f).filter(|_| self.is_next(f) && f.icrc_error == 0) else { return Ok(()) };
        if f.op.kind.brings_data() && m.nak.is_none() {
            self.plan.before_read(stage.endpoint.as_mut(), m);
        }
        let needs_receive = f.op.kind == Kind::Send && f.op.first || f.op.kind == Kind::Write && f.op.imm;
        let turned_away = self.rnr_left.get(&self.accepted).is_some_and(|n| *n > 0);
        if needs_receive && !turned_away && self.ready != Some(n) {
            self.post(stage, n, m)?;
        }
        Ok(())
    }

    fn post(&mut self, stage: &mut Stage, n: usize, m: &Message) -> Result<()> {
        let total = self.offsets[self.offsets.len() - 1];
        if self.receives.is_none() && total > 0 {
            let region = stage.endpoint.register(&RegionSpec::new(total, Access::LOCAL_WRITE))?;
            let image: Vec<u8> = (0..total).map(|i| (i as u8).wrapping_mul(113) ^ 0x3c).collect();
            stage.endpoint.write_memory(&region, 0, &image);
            self.receives = Some((region, image));
        }
        let len = if m.kind == Kind::Send { m.len - usize::from(self.too_small(m)) } else { 0 };
        let place = self.receives.as_ref().filter(|_| len > 0).map(|(region, _)| Slice { region: *region, offset: self.offsets[n], len });
        self.ready = Some(n);
        stage.endpoint.post_recv(n as u64, place)
    }

    /// The message is refused because its receive is too small.
    fn too_small(&self, m: &Message) -> bool {
        m.nak.is_some() && self.plan.cause == Some(Cause::ReceiveTooSmall)
    }

    /// Replaces captured address and key by the endpoint's.
    pub fn translate(&self, f: &mut Frame) {
        let position = self.stream.position(f.psn());
        self.plan.translate(f, position);
    }

    /// The endpoint sent a response.
    pub fn sent(&mut self, f: Frame) -> Result<()> {
        log::debug!("endpoint: {}", f.brief());
        self.push(f, false);
        Ok(())
    }

    fn push(&mut self, f: Frame, implied: bool) {
        self.sent.push(f);
        self.implied.push(implied);
    }

    /// A receive completion.
    pub fn completed(&mut self, done: Done) {
        self.completions.push(done);
    }

    /// A request packet with a right ICRC has arrived and been worked on.
    pub fn after(&mut self, stage: &mut Stage, f: &Frame) -> Result<()> {
        let position = self.stream.position(f.psn());
        let responses = self.mark;
        if self.ended || position > self.accepted as i64 {
            return self.unchanged(stage);
        }
        if position < self.accepted as i64 {
            if f.op.kind == Kind::ReadRequest && self.stream.at(position.max(0) as u32).is_some_and(|(_, m)| i64::from(m.first) < position) {
                self.rests.insert(position);
            }
            self.enabling += usize::from(!f.op.kind.has_response());
            self.check_acks(responses)?;
            if self.sent.len() == responses && !f.op.kind.has_response() {
                // Nobody asked: a responder may leave this acknowledge to the next one (rule 3).
                if f.bth.ack_req() {
                    return Err(Error::Differs(format!("duplicate {} asked for an acknowledge and got none", f.brief())));
                }
                let implied = self.implied_ack(stage, f);
                self.push(implied, true);
            }
            return self.unchanged(stage);
        }
        let Some((n, m)) = self.current(f) else { return self.unchanged(stage) };
        if let Some(left) = self.rnr_left.get_mut(&self.accepted).filter(|n| **n > 0 && (f.op.kind == Kind::Send || f.op.imm)) {
            *left -= 1;
            return self.unchanged(stage);
        }
        if m.nak.is_some_and(|(at, _)| at == self.accepted) {
            self.ended = true;
            if self.ready == Some(n) {
                let small = self.too_small(m);
                let status = match m.kind {
                    Kind::Send if small => CqeStatus::LocalLength,
                    Kind::Send => CqeStatus::RemoteInvalidRequest,
                    _ => CqeStatus::WrFlush,
                };
                self.due.push(Done::new(n as u64, true, status));
                // What a failed receive leaves in its own buffer means nothing.
                if let Some((region, image)) = &mut self.receives {
                    let room = self.offsets[n]..self.offsets[n + 1] - usize::from(small);
                    image[room.clone()].copy_from_slice(&stage.endpoint.read_memory(region, room.start, room.len()));
                }
            }
            return self.unchanged(stage);
        }
        self.accept(stage, f, n, m)?;
        self.check_acks(responses)?;
        if f.bth.ack_req() && !m.kind.has_response() {
            let last = self.sent.iter().zip(&self.implied).rev().find(|(r, implied)| compare::is_ack(r) && !**implied);
            if last.map(|(r, _)| self.stream.position(r.psn())) != Some(self.accepted as i64 - 1) {
                return Err(Error::Differs(format!("{} asked for an acknowledge and got none", f.brief())));
            }
        }
        self.unchanged(stage)
    }

    fn accept(&mut self, stage: &mut Stage, f: &Frame, n: usize, m: &Message) -> Result<()> {
        let offset = (self.accepted - m.first) as usize * self.mtu;
        self.accepted = if m.kind == Kind::ReadRequest { m.end() } else { self.accepted + 1 };
        if f.bth.ack_req() && !m.kind.has_response() {
            self.enabling += 1;
            self.asked = Some(self.accepted - 1);
        }
        if f.op.last {
            self.msn += 1;
        }
        match m.kind {
            Kind::Write | Kind::AtomicWrite => self.plan.written(stage.endpoint.as_mut(), m, offset, &f.payload)?,
            Kind::CompareSwap | Kind::FetchAdd => {
                let (old, Some(atomic)) = (self.plan.value(m), f.atomic) else { return Ok(()) };
                let new = match m.kind {
                    Kind::FetchAdd => old.wrapping_add(atomic.swap_add()),
                    _ if old == atomic.compare() => atomic.swap_add(),
                    _ => old,
                };
                // The value in between is compared, too; then overwritten, so that executing it again would show.
                self.plan.written(stage.endpoint.as_mut(), m, 0, &new.to_le_bytes())?;
            }
            Kind::Send => {
                if let Some((_, image)) = &mut self.receives {
                    let at = self.offsets[n] + offset;
                    let end = (at + f.payload.len()).min(self.offsets[n + 1]);
                    image[at..end].copy_from_slice(&f.payload[..end - at]);
                }
            }
            _ => {}
        }
        if f.op.last && (m.kind == Kind::Send || f.op.imm) {
            self.ready = None;
            let (imm, invalidated) = (f.imm.map(|i| i.imm()), self.plan.invalidated(m));
            self.due.push(Done { len: m.len as u32, imm, invalidated, solicited: f.bth.solicited(), ..Done::new(n as u64, true, CqeStatus::Success) });
        }
        Ok(())
    }

    /// The acknowledge of everything accepted so far, addressed like an answer to `f`.
    fn implied_ack(&self, stage: &Stage, f: &Frame) -> Frame {
        let mut a = f.clone();
        a.eth.set_src(f.eth.dst()).set_dst(f.eth.src());
        match &mut a.ip {
            Ip::V4(h) => {
                let (src, dst) = (h.src(), h.dst());
                h.set_src(dst).set_dst(src);
            }
            Ip::V6(h) => {
                let (src, dst) = (h.src(), h.dst());
                h.set_src(dst).set_dst(src);
            }
        }
        a.op = Op::plain(Kind::Ack, true, true);
        let peer = stage.connection.hosts.iter().find(|h| h.ip == f.ip.src()).and_then(|h| h.qpn).unwrap_or(0);
        a.bth.set_opcode(a.op.code().unwrap_or(0)).set_solicited(false).set_pad(0).set_dest_qpn(peer).set_psn(psn_add(self.stream.base, self.accepted.wrapping_sub(1)));
        a.aeth = Some(Aeth::default().with_syndrome(Syndrome::Ack.byte()).with_msn(self.msn));
        (a.reth, a.imm, a.ieth, a.payload, a.pad) = (None, None, None, Vec::new(), Vec::new());
        a
    }

    /// Acknowledges since `from` say exactly what has been accepted.
    fn check_acks(&self, from: usize) -> Result<()> {
        for f in self.sent[from.min(self.sent.len())..].iter().filter(|f| compare::is_ack(f)) {
            self.check_ack(f)?;
        }
        Ok(())
    }

    fn check_ack(&self, f: &Frame) -> Result<()> {
        let msn = f.aeth.map_or(0, |a| a.msn());
        let position = self.stream.position(f.psn());
        if position >= self.accepted as i64 {
            return Err(Error::Differs(format!("{} acknowledges a packet that was not accepted", f.brief())));
        }
        if position == self.accepted as i64 - 1 && msn != self.msn & 0xff_ffff {
            return Err(Error::Differs(format!("{}: MSN must be {}", f.brief(), self.msn)));
        }
        Ok(())
    }

    /// Memory and completions are exactly what they must be now.
    pub fn unchanged(&mut self, stage: &mut Stage) -> Result<()> {
        if let Some(f) = self.sent.last().filter(|f| compare::is_ack(f)) {
            self.check_ack(f)?;
        }
        self.plan.check(stage.endpoint.as_ref())?;
        if let Some((region, image)) = &self.receives {
            let now = stage.endpoint.read_memory(region, 0, image.len());
            if let Some(i) = now.iter().zip(image).position(|(a, b)| a != b) {
                let n = self.offsets.partition_point(|o| *o <= i) - 1;
                return Err(Error::Differs(format!("receive {n}, byte {}: {:#04x}, must be {:#04x}", i - self.offsets[n], now[i], image[i])));
            }
        }
        for (i, want) in self.due.iter().enumerate() {
            match self.completions.get(i) {
                // The length of a failed receive means nothing.
                Some(got) if got == want || want.status != CqeStatus::Success && (got.id, got.status) == (want.id, want.status) => {}
                Some(got) => return Err(Error::Differs(format!("receive completion {got:?}, must be {want:?}"))),
                None => return Err(Error::Differs(format!("no receive completion, must be {want:?}"))),
            }
        }
        match self.completions.get(self.due.len()) {
            Some(d) => Err(Error::Differs(format!("receive completion {d:?} without a message"))),
            None => Ok(()),
        }
    }

    /// The captured machine sent this response.
    pub fn expect(&mut self, stage: &mut Stage, e: &Expected) -> Result<()> {
        let (f, position) = (&e.frame, self.stream.position(e.frame.psn()));
        if compare::is_ack(f) {
            return self.expect_ack(e, position);
        }
        let syndrome = f.aeth.map(|a| Syndrome::of(a.syndrome()));
        let next = (self.taken..self.sent.len()).find(|i| !compare::is_ack(&self.sent[*i]));
        let mut wanted = f.clone();
        if let (Some(aeth), Some((_, m))) = (&mut wanted.aeth, self.stream.at(position.max(0) as u32)) {
            let own = next.and_then(|i| self.sent[i].aeth).map(|a| Syndrome::of(a.syndrome()));
            if m.kind == Kind::Send && syndrome == Some(Syndrome::Fatal(3)) && own == Some(Syndrome::Fatal(1)) {
                aeth.set_syndrome(Syndrome::Fatal(1).byte());
                stage.deviations.insert(Deviation::ReceiveTooSmall);
            }
        }
        if let Some(own) = next.map(|i| &self.sent[i]) {
            // The request was for the rest of a READ; all else must be the same.
            let code = if f.op.last { 0x0f } else { 0x0e };
            let rest = self.rests.contains(&position) && own.op == Op { first: true, ..f.op } && f.bth.opcode() == code;
            if f.op.kind == Kind::ReadResponse && !f.op.first && rest {
                wanted.op = own.op;
                wanted.bth.set_opcode(own.bth.opcode());
                wanted.aeth = wanted.aeth.or(own.aeth);
                stage.deviations.insert(Deviation::MiddleOfRead);
            }
        }
        let matched = match next {
            Some(i) => compare::same(&self.sent[i], &wanted).map(|()| i),
            None => Err(format!("captured {}, which was not sent", f.brief())),
        };
        match matched {
            Ok(i) => {
                self.taken = i + 1;
                self.last_rnr = matches!(syndrome, Some(Syndrome::Rnr(_))).then(|| self.sent[i].clone());
            }
            Err(_) if self.is_complaint_after_rnr(f) => {
                self.last_rnr = None;
                stage.deviations.insert(Deviation::SequenceNakAfterRnr);
            }
            Err(e) => return Err(Error::Differs(e)),
        }
        if matches!(f.op.kind, Kind::ReadResponse | Kind::AtomicAck) {
            self.answered = self.answered.max(u32::try_from(position).ok());
        }
        Ok(())
    }

    /// The frame is the RNR NAK just matched, but for its syndrome, which says sequence error.
    fn is_complaint_after_rnr(&self, f: &Frame) -> bool {
        self.last_rnr.as_ref().is_some_and(|rnr| {
            let mut like = rnr.clone();
            if let Some(a) = &mut like.aeth {
                a.set_syndrome(Syndrome::Sequence.byte());
            }
            compare::same(&like, f).is_ok()
        })
    }

    /// A captured acknowledge equals one of the endpoint's, not before the one matched last; acknowledges of the endpoint may be passed over.
    fn expect_ack(&mut self, e: &Expected, position: i64) -> Result<()> {
        self.acknowledged += 1;
        if self.acknowledged > self.enabling {
            return Err(Error::Differs(format!("captured {}, for which no request asked", e.frame.brief())));
        }
        let from = self.taken.saturating_sub(usize::from(self.taken > 0 && compare::is_ack(&self.sent[self.taken - 1])));
        let mut nearest = None;
        for i in from..self.sent.len() {
            if !compare::is_ack(&self.sent[i]) {
                break;
            }
            match compare::same(&self.sent[i], &e.frame) {
                Ok(()) => {
                    self.taken = i + 1;
                    self.answered = self.answered.max(u32::try_from(position).ok());
                    return Ok(());
                }
                Err(why) => nearest = Some(why),
            }
        }
        Err(Error::Differs(nearest.unwrap_or_else(|| format!("captured {}, which was not sent", e.frame.brief()))))
    }

    /// The exchange is over.
    pub fn finish(&mut self, stage: &mut Stage) -> Result<()> {
        self.unchanged(stage)?;
        if let Some(f) = self.sent[self.taken.min(self.sent.len())..].iter().find(|f| !compare::is_ack(f)) {
            return Err(Error::Differs(format!("{} was sent, which the captured machine did not send", f.brief())));
        }
        if !self.ended && self.asked > self.answered {
            let psn = psn_add(self.stream.base, self.asked.unwrap_or(0));
            return Err(Error::Differs(format!("the captured machine never acknowledged PSN {psn:#08x}, as it was asked to")));
        }
        Ok(())
    }
}
