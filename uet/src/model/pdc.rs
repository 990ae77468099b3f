//! A PDC: its two halves, its ids, its timers, and what it sends (UE 3.5.8).
use super::rx::{Rx, Seen};
use super::spray::{Policy, Spray};
use super::tx::{Content, Tx};
use super::types::{Action, Config, Counter, Defect, Failure, Message, Mode, Packet, Peer, Response, Timer, To};
use ferric_abi::uet::codes::{ControlType, NackCode};
use std::collections::BTreeMap;

/// Value of `Config::nack_max` with which a refused packet is sent again for ever.
const NACKS_FOREVER: u8 = 31;

/// Where a PDC is in its life. QUIESCE is `Open` with `closing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// An initiator that does not know its peer's id.
    Syn,
    /// Both ids are known.
    Open,
    /// CLOSE_COMMAND is out.
    CloseWait,
    /// A target that was closed at this place.
    Linger(u32),
    /// It is to be taken away.
    Over,
}

/// What PDCs share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shared {
    /// Packet records in use.
    pub records: usize,
    /// Places for answers in use: kept ones, and one for each packet that semantics have.
    pub kept: usize,
    /// State of the random choices.
    pub random: u64,
}

/// What a step of a PDC works with.
pub struct Cx<'a> {
    /// Registers.
    pub config: &'a Config,
    /// Time.
    pub now: u64,
    /// What is done.
    pub out: &'a mut Vec<Action>,
    /// Pools.
    pub shared: &'a mut Shared,
}

impl Cx<'_> {
    /// Counts.
    pub fn count(&mut self, counter: Counter) {
        self.out.push(Action::Count(counter));
    }

    /// Whether a rule is broken on purpose.
    pub fn defect(&self, defect: Defect) -> bool {
        self.config.defect == Some(defect)
    }
}

/// A packet delivery context.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pdc {
    /// Its own id.
    pub id: u16,
    /// The other end.
    pub peer: Peer,
    /// The id there; 0: not known yet.
    pub peer_id: u16,
    /// How it delivers.
    pub mode: Mode,
    /// Whether it was opened here.
    pub initiator: bool,
    /// Where it is in its life.
    pub stage: Stage,
    /// Takes no new messages; closes when all is answered.
    pub closing: bool,
    /// A target that wants to be closed.
    pub wants_close: bool,
    /// Place in the order of opening.
    pub opened: u64,
    /// Transmit half.
    pub tx: Tx,
    /// Receive half.
    pub rx: Rx,
    /// When timers that run expire.
    pub timers: BTreeMap<Timer, u64>,
    /// NACKs sent: place and time.
    pub(super) nacked: BTreeMap<u32, u64>,
    /// The newest packet without an ACK.
    pub(super) owed: Option<(u32, Response, Seen)>,
}

impl Pdc {
    /// A PDC between here and `peer`, whose id is `peer_id`.
    pub fn new(id: u16, peer: Peer, peer_id: u16, mode: Mode, start: u32, opened: u64, cx: &mut Cx) -> Self {
        let initiator = peer_id == 0;
        let policy = if mode == Mode::Rod { Policy::Fixed } else { cx.config.spray };
        let spray = Spray::new(policy, cx.config.entropies, &mut cx.shared.random);
        let range = cx.config.default_mpr * cx.config.mpr_unit;
        let stage = if initiator { Stage::Syn } else { Stage::Open };
        let (tx, rx) = (Tx::new(start, range, spray), Rx::new(start));
        Self { id, peer, peer_id, mode, initiator, stage, closing: false, wants_close: false, opened, tx, rx, timers: BTreeMap::new(), nacked: BTreeMap::new(), owed: None }
    }

    /// Whether a message may be added.
    pub fn takes(&self) -> bool {
        !self.closing && matches!(self.stage, Stage::Syn | Stage::Open)
    }

    /// Whether it does nothing.
    pub fn idle(&self) -> bool {
        self.tx.idle() && self.rx.pending() == 0 && matches!(self.stage, Stage::Open)
    }

    /// Adds a message.
    pub fn post(&mut self, message: Message) {
        self.tx.queue.push_back((message, 0));
        self.timers.remove(&Timer::Idle);
    }

    /// Starts a timer that does not run.
    pub fn start(&mut self, timer: Timer, after: u64, now: u64) {
        self.timers.entry(timer).or_insert(now + after);
    }

    /// Starts a timer anew.
    pub fn restart(&mut self, timer: Timer, after: u64, now: u64) {
        self.timers.insert(timer, now + after);
    }

    /// Time-out by the tries so far.
    pub(super) fn timeout(&self, config: &Config) -> u64 {
        config.rto << self.tx.tries.min(31)
    }

    /// Something was acknowledged, or sent after a silence.
    pub(super) fn arm(&mut self, cx: &Cx) {
        if self.tx.records.is_empty() {
            self.timers.remove(&Timer::Rto);
        } else {
            self.restart(Timer::Rto, self.timeout(cx.config), cx.now);
        }
        if self.tx.stalled() {
            self.start(Timer::Stall, self.tx.stall_time(cx.config), cx.now);
        } else {
            self.timers.remove(&Timer::Stall);
        }
        if self.initiator && self.takes() && self.stage == Stage::Open && self.tx.idle() {
            self.start(Timer::Idle, cx.config.idle, cx.now);
        }
    }

    /// What it would send next; none: nothing.
    fn next(&self, config: &Config, shared: &Shared) -> Option<Next> {
        if matches!(self.stage, Stage::Linger(_) | Stage::Over) {
            return None;
        }
        if let Some(place) = self.tx.resend.iter().next() {
            return Some(Next::Again(*place));
        }
        let first = self.stage != Stage::Syn || self.tx.next < config.first_window && self.tx.wait.is_empty();
        if !self.tx.queue.is_empty() {
            return (first && self.tx.room() && shared.records < config.records).then_some(Next::Data);
        }
        let quiet = self.tx.idle() && self.stage == Stage::Open && shared.records < config.records;
        match self.initiator {
            true if quiet && self.closing && self.rx.pending() == 0 => Some(Next::Close),
            false if quiet && self.wants_close && !self.timers.contains_key(&Timer::CloseRequest) => Some(Next::CloseRequest),
            _ => None,
        }
    }

    /// Whether it has something to send.
    pub fn ready(&self, config: &Config, shared: &Shared) -> bool {
        self.next(config, shared).is_some()
    }

    /// Whether it waits for the window, or for records.
    pub fn blocked(&self, config: &Config, shared: &Shared) -> Option<Counter> {
        let waits = !self.tx.queue.is_empty() && self.tx.resend.is_empty() && matches!(self.stage, Stage::Syn | Stage::Open);
        if waits && shared.records >= config.records {
            return Some(Counter::RecordsFull);
        }
        (waits && !self.tx.room()).then_some(Counter::WindowFull)
    }

    /// Sends one packet.
    pub fn send(&mut self, cx: &mut Cx) {
        let Some(next) = self.next(cx.config, cx.shared) else { return };
        let (place, content) = match next {
            Next::Again(place) => {
                self.tx.resend.remove(&place);
                let Some(record) = self.tx.records.get(&place) else { return };
                (place, record.content)
            }
            Next::Data => {
                let Some(body) = self.tx.cut(cx.config.mtu) else { return };
                (self.fresh(cx), Content::Data(body))
            }
            Next::Close => {
                self.stage = Stage::CloseWait;
                self.tx.tries = 0;
                (self.fresh(cx), Content::Close)
            }
            Next::CloseRequest => {
                self.restart(Timer::CloseRequest, cx.config.close_wait, cx.now);
                (self.fresh(cx), Content::CloseRequest)
            }
        };
        let retx = matches!(next, Next::Again(_));
        self.timers.remove(&Timer::Idle);
        let ev = self.tx.sent(place, content, cx.now, cx.config);
        let (psn, spdcid, mode) = (self.tx.psn(place), self.id, self.mode);
        if psn == 0 && !retx {
            cx.count(Counter::PsnWrapped);
        }
        let to = if self.peer_id == 0 { To::Syn(place as u16) } else { To::Id(self.peer_id) };
        // CLEAR_PSN is the one in front of the lowest without an answer.
        let clear = if cx.defect(Defect::ClearsUnanswered) { 0 } else { (self.tx.cleared().wrapping_sub(1).wrapping_sub(place) as i32).max(i16::MIN.into()) as i16 };
        let (packet, control) = match content {
            Content::Data(body) => {
                let ar = self.tx.asks(place, body.bytes, cx.config) || retx;
                (Packet::Request { mode, psn, clear, spdcid, to, retx, ar, body }, false)
            }
            Content::Close => (Packet::Control { kind: ControlType::CloseCommand, mode, psn, payload: 0, spdcid, to, retx, ar: true }, true),
            Content::CloseRequest => (Packet::Control { kind: ControlType::CloseRequest, mode, psn, payload: 0, spdcid, to, retx, ar: true }, true),
        };
        cx.out.push(Action::Transmit { to: self.peer, packet, ev, control });
        if !self.timers.contains_key(&Timer::Rto) {
            self.arm(cx);
        }
        if self.initiator && self.takes() && self.tx.next >= cx.config.limit {
            self.closing = true;
            cx.count(Counter::LimitReached);
        }
    }

    /// The next new place.
    fn fresh(&mut self, cx: &mut Cx) -> u32 {
        cx.shared.records += 1;
        self.tx.next += 1;
        self.tx.next - 1
    }

    /// A control packet without a PSN of its own.
    pub(super) fn control(&mut self, kind: ControlType, psn: u32, payload: u32, ar: bool, cx: &mut Cx) {
        if self.peer_id != 0 {
            let (_, ev) = self.tx.spray.choose();
            let packet = Packet::Control { kind, mode: self.mode, psn, payload, spdcid: self.id, to: To::Id(self.peer_id), retx: false, ar };
            cx.out.push(Action::Transmit { to: self.peer, packet, ev, control: true });
        }
    }

    /// CLEAR_COMMAND up to the lowest PSN without an answer.
    pub(super) fn clear(&mut self, cx: &mut Cx) {
        let upto = self.tx.psn(self.tx.cleared()).wrapping_sub(1);
        cx.count(Counter::ClearCommand);
        self.control(ControlType::ClearCommand, 0, upto, false, cx);
    }

    /// Refuses a packet, at most once in a while for each PSN.
    pub(super) fn refuse(&mut self, code: NackCode, psn: u32, payload: u32, seen: Seen, cx: &mut Cx) {
        let (place, base) = (self.rx.place(psn), self.rx.base);
        if cx.config.nack_gap > 0 {
            self.nacked.retain(|place, time| *place >= base && cx.now - *time < cx.config.nack_gap);
            if self.nacked.insert(place, cx.now).is_some() {
                return cx.count(Counter::NackHeldBack);
            }
        }
        cx.count(Counter::NackSent(code as u8));
        let packet = Packet::Nack { code, psn, spdcid: self.id, dpdcid: self.peer_id, payload, marked: seen.marked, retx: seen.retx };
        cx.out.push(Action::Transmit { to: self.peer, packet, ev: seen.ev, control: true });
    }

    /// Ends in error: each message that is not answered fails.
    pub fn fail(&mut self, why: Failure, cx: &mut Cx) {
        cx.count(Counter::Failed);
        let failed = self.tx.unfinished();
        cx.out.extend(failed.into_iter().map(|message| Action::Failed { message, why }));
        if !self.initiator {
            cx.out.push(Action::Gone { pdc: self.id, from: self.peer });
        }
        self.end(cx);
    }

    /// Ends: gives everything back.
    pub fn end(&mut self, cx: &mut Cx) {
        cx.shared.records -= self.tx.records.len();
        cx.shared.kept = cx.shared.kept.saturating_sub(self.rx.held() + self.rx.pending());
        self.tx.records.clear();
        self.tx.queue.clear();
        self.tx.resend.clear();
        self.rx.marks.clear();
        self.timers.clear();
        self.stage = Stage::Over;
    }

    /// A timer has expired.
    pub fn expire(&mut self, timer: Timer, cx: &mut Cx) {
        self.timers.remove(&timer);
        match timer {
            Timer::Rto if self.tx.tries >= cx.config.rto_max => match self.stage {
                // Everything was answered; only the close was not.
                Stage::CloseWait => self.end(cx),
                _ => self.fail(Failure::Timeout, cx),
            },
            Timer::Rto => {
                cx.count(Counter::Rto);
                let timeout = self.timeout(cx.config);
                self.tx.tries += 1;
                if let Err(oldest) = self.tx.expired(cx.now, self.mode, timeout) {
                    cx.count(Counter::AckRequestSent);
                    let psn = self.tx.psn(oldest);
                    self.control(ControlType::AckRequest, psn, 0, true, cx);
                }
                self.arm(cx);
            }
            Timer::Retry if cx.config.nack_max < NACKS_FOREVER && self.tx.refusals >= cx.config.nack_max => self.fail(Failure::NoRoom, cx),
            Timer::Retry => {
                self.tx.refusals = self.tx.refusals.saturating_add(1);
                let again = std::mem::take(&mut self.tx.wait);
                self.tx.resend.extend(again);
            }
            Timer::Stall => {
                if self.tx.stall(cx.now, cx.config) > 0 {
                    cx.count(Counter::Stall);
                }
                if self.tx.stalled() {
                    self.start(Timer::Stall, self.tx.stall_time(cx.config), cx.now);
                }
            }
            Timer::Ack => {
                if let Some((place, response, seen)) = self.owed.take() {
                    self.acknowledge(place, Some(response), seen, cx);
                }
            }
            Timer::Clear if self.rx.held() > 0 => {
                cx.count(Counter::ClearRequest);
                let wanted = self.rx.psn(self.rx.newest).wrapping_sub(1);
                self.control(ControlType::ClearRequest, 0, wanted, false, cx);
                self.start(Timer::Clear, cx.config.clear_wait, cx.now);
            }
            Timer::Clear => {}
            Timer::Idle => self.closing = true,
            Timer::CloseRequest => {
                cx.count(Counter::CloseRequestExpired);
                self.fail(Failure::Timeout, cx);
            }
            Timer::Reap => {
                cx.count(Counter::Reaped);
                self.fail(Failure::Timeout, cx);
            }
            Timer::Safety => self.end(cx),
        }
    }
}

/// What a PDC sends next.
#[derive(Clone, Copy)]
enum Next {
    Again(u32),
    Data,
    Close,
    CloseRequest,
}
