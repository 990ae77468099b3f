//! Two endpoints, a channel that loses, repeats and reorders, and what is true of every message.
use crate::model::{Action, Body, Config, Event, Message, Mode, Packet, Pds, Peer, Pool, Response, Timer, To};
use ferric_abi::uet::codes::{NackCode, ReturnCode};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What semantics of the target answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Done.
    Plain,
    /// Done, with data that must not be lost.
    Data,
    /// An error, which must not be lost.
    Error,
}

/// A message that is going to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// End that sends it.
    pub from: usize,
    /// How.
    pub mode: Mode,
    /// Packets.
    pub packets: u32,
    /// What it is answered.
    pub verdict: Verdict,
}

/// What may happen how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Packets that are lost.
    pub losses: u8,
    /// Packets that come twice.
    pub repeats: u8,
    /// Packets that semantics have no room for.
    pub refusals: u8,
}

/// A thing that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next message is posted.
    Post,
    /// The link takes a packet of an end.
    Grant(usize),
    /// A packet arrives.
    Arrive(usize),
    /// A packet arrives, and comes again.
    Repeat(usize),
    /// A packet is lost.
    Lose(usize),
    /// Semantics finish a packet.
    Done(usize),
    /// Semantics have no room for it.
    Refuse(usize),
    /// A timer expires.
    Expire(usize, u16, Timer),
}

/// What is known of a packet of a message, whoever knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
struct Fate {
    /// Target's PDC and PSN, once semantics have executed it.
    executed: Option<(u16, u32)>,
    /// Semantics have it.
    taken: bool,
    answered: bool,
}

/// The state of everything.
#[derive(Clone)]
pub struct World {
    ends: [Pds; 2],
    plans: Arc<[Plan]>,
    /// Where each packet goes, and what; sorted, for the channel has no order.
    channel: Vec<(usize, Packet)>,
    /// End, PDC, PSN, packet.
    pending: Vec<(usize, u16, u32, Body)>,
    posted: usize,
    fates: Vec<Vec<Fate>>,
    failed: Vec<bool>,
    budget: Budget,
}

/// A quick hash of 64 bits: states are told apart by it.
#[derive(Clone, Copy)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        let z = (self.0 ^ self.0 >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        z ^ z >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.0 >> 29;
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    fn write_u16(&mut self, n: u16) {
        self.write_u64(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut mix = Mix(0x1234_5678_9abc_def1);
    value.hash(&mut mix);
    mix.finish()
}

/// Answer of a message, different for each.
fn answer(message: u16, verdict: Verdict, bytes: u32) -> (Response, bool) {
    match verdict {
        Verdict::Plain => (Response { message, code: ReturnCode::Ok as u8, length: bytes, data: None }, false),
        Verdict::Data => (Response { message, code: ReturnCode::Ok as u8, length: bytes, data: Some(1000 + u64::from(message)) }, true),
        Verdict::Error => (Response { message, code: ReturnCode::BadKey as u8, length: 0, data: None }, true),
    }
}

/// Whether `psn` is not behind `cack`.
fn covered(psn: u32, cack: u32) -> bool {
    psn.wrapping_sub(cack) as i32 <= 0
}

impl World {
    /// Nothing has happened.
    pub fn new(config: Arc<Config>, plans: Arc<[Plan]>, budget: Budget) -> Self {
        let fates = plans.iter().map(|plan| vec![Fate::default(); plan.packets as usize]).collect();
        let ends = [Pds::new(config.clone()), Pds::new(config)];
        Self { ends, failed: vec![false; plans.len()], plans, channel: Vec::new(), pending: Vec::new(), posted: 0, fates, budget }
    }

    /// What tells it from other states.
    pub fn fingerprint(&self) -> u64 {
        let pools: [&Pool; 2] = [&self.ends[0].pool, &self.ends[1].pool];
        hash(&(pools, &self.channel, &self.pending, self.posted, &self.fates, &self.failed, self.budget))
    }

    /// Packets under way.
    pub fn crowd(&self) -> usize {
        self.channel.len()
    }

    /// What can happen next.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.posted < self.plans.len() {
            steps.push(Step::Post);
        }
        steps.extend((0..2).filter(|end| self.ends[*end].ready()).map(Step::Grant));
        for n in (0..self.channel.len()).filter(|n| *n == 0 || self.channel[*n] != self.channel[n - 1]) {
            steps.push(Step::Arrive(n));
            if self.budget.losses > 0 {
                steps.push(Step::Lose(n));
            }
            if self.budget.repeats > 0 {
                steps.push(Step::Repeat(n));
            }
        }
        for n in 0..self.pending.len() {
            steps.push(Step::Done(n));
            // What ROD's semantics refuse, they refuse before the next packet comes.
            let last = self.pending.len() == n + 1;
            if self.budget.refusals > 0 && (last || self.plans[usize::from(self.pending[n].3.message)].mode == Mode::Rud) {
                steps.push(Step::Refuse(n));
            }
        }
        for end in 0..2 {
            let timers = self.ends[end].timers().into_iter().filter(|(id, timer, _)| self.may_expire(end, *id, *timer));
            steps.extend(timers.map(|(id, timer, _)| Step::Expire(end, id, timer)));
        }
        steps
    }

    /// Times that parameters promise: a closed PDC's ids are free when none of its packets is under way, and a target that hears nothing is not given up before its peer has.
    fn may_expire(&self, end: usize, id: u16, timer: Timer) -> bool {
        if !matches!(timer, Timer::Safety | Timer::Reap) {
            return true;
        }
        let pdc = self.ends[end].pdcs().find(|pdc| pdc.id == id);
        let peer_id = pdc.map_or(0, |pdc| pdc.peer_id);
        let quiet = self.channel.iter().all(|(to, packet)| {
            let (own, other) = match *packet {
                Packet::Request { spdcid, to, .. } | Packet::Control { spdcid, to, .. } => (spdcid, if let To::Id(id) = to { id } else { 0 }),
                Packet::Ack { spdcid, dpdcid, .. } | Packet::Nack { spdcid, dpdcid, .. } => (spdcid, dpdcid),
            };
            if *to == end {
                other != id && (own != peer_id || peer_id == 0)
            } else {
                own != id && (other != peer_id || peer_id == 0)
            }
        });
        let alone = timer == Timer::Safety || self.ends[1 - end].pdcs().all(|pdc| pdc.id != peer_id);
        let mine = self.pending.iter().all(|(at, pdc, ..)| *at != end || *pdc != id);
        quiet && alone && mine
    }

    /// Makes a step. `Err`: what must not be.
    pub fn make(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Post => {
                let (n, plan) = (self.posted, self.plans[self.posted]);
                self.posted += 1;
                let bytes = plan.packets * self.ends[0].config().mtu;
                let message = Message { id: n as u16, bytes, fetch: plan.verdict == Verdict::Data };
                self.act(plan.from, Event::Post { peer: (1 - plan.from) as Peer, mode: plan.mode, message })
            }
            Step::Grant(end) => self.act(end, Event::Grant),
            Step::Arrive(n) => {
                let (to, packet) = self.channel.remove(n);
                self.arrive(to, packet)
            }
            Step::Repeat(n) => {
                self.budget.repeats -= 1;
                let (to, packet) = self.channel[n];
                self.arrive(to, packet)
            }
            Step::Lose(n) => {
                self.budget.losses -= 1;
                self.channel.remove(n);
                Ok(())
            }
            Step::Done(n) => {
                let (end, pdc, psn, body) = self.pending.remove(n);
                let (response, keep) = answer(body.message, self.plans[usize::from(body.message)].verdict, body.total);
                self.fate(&body).executed = Some((pdc, psn));
                self.act(end, Event::Done { pdc, psn, response, keep })
            }
            Step::Refuse(n) => {
                self.budget.refusals -= 1;
                let (end, pdc, psn, body) = self.pending.remove(n);
                self.fate(&body).taken = false;
                self.act(end, Event::Refuse { pdc, psn, code: NackCode::NoMessage })
            }
            Step::Expire(end, pdc, timer) => self.act(end, Event::Expire { pdc, timer }),
        }
    }

    fn arrive(&mut self, to: usize, packet: Packet) -> Result<(), String> {
        self.act(to, Event::Received { from: (1 - to) as Peer, packet, trim: None, ce: false, ev: 0 })
    }

    fn fate(&mut self, body: &Body) -> &mut Fate {
        let mtu = self.ends[0].config().mtu;
        &mut self.fates[usize::from(body.message)][(body.offset / mtu) as usize]
    }

    fn act(&mut self, end: usize, event: Event) -> Result<(), String> {
        let actions = self.ends[end].step(event);
        for action in actions {
            match action {
                Action::Transmit { to, packet, .. } => {
                    if to as usize != 1 - end {
                        return Err(format!("end {end} sends to itself"));
                    }
                    self.told(end, &packet)?;
                    let entry = (to as usize, packet);
                    // Any order will do, as long as it is the same for the same packets.
                    let at = self.channel.partition_point(|other| hash(other) < hash(&entry));
                    self.channel.insert(at, entry);
                }
                Action::Deliver { pdc, psn, body, .. } => {
                    if self.plans[usize::from(body.message)].from == end {
                        return Err(format!("message {} comes back to its sender", body.message));
                    }
                    let fate = self.fate(&body);
                    if std::mem::replace(&mut fate.taken, true) {
                        return Err(format!("a byte twice: message {} at {}", body.message, body.offset));
                    }
                    self.pending.push((end, pdc, psn, body));
                }
                Action::Answered { message, offset, bytes, response } => self.answered(end, message, offset, bytes, response)?,
                Action::Failed { message, .. } => {
                    if self.plans[usize::from(message)].from != end || std::mem::replace(&mut self.failed[usize::from(message)], true) || self.complete(message) {
                        return Err(format!("message {message} fails, and has ended or is another's"));
                    }
                }
                // What its packets did stands, and is not told; the sender hears of an error.
                Action::Gone { pdc, .. } => self.pending.retain(|(at, id, ..)| *at != end || *id != pdc),
                Action::Count(_) => {}
            }
        }
        Ok(())
    }

    fn answered(&mut self, end: usize, message: u16, offset: u32, bytes: u32, response: Option<Response>) -> Result<(), String> {
        let plan = self.plans[usize::from(message)];
        let body = Body { message, offset, bytes, total: 0, fetch: false };
        let total = plan.packets * self.ends[0].config().mtu;
        let (wanted, keep) = answer(message, plan.verdict, total);
        let fate = self.fate(&body);
        if plan.from != end || std::mem::replace(&mut fate.answered, true) {
            return Err(format!("message {message} at {offset} is answered twice, or to another"));
        }
        if fate.executed.is_none() {
            return Err(format!("message {message} at {offset} is answered and was not executed"));
        }
        match response {
            Some(response) if response != wanted => Err(format!("message {message} gets the answer {response:?} of another")),
            None if keep => Err(format!("the answer to message {message} is lost")),
            _ => Ok(()),
        }
    }

    /// CACK goes past no answer that is kept and has not arrived.
    fn told(&self, end: usize, packet: &Packet) -> Result<(), String> {
        let Packet::Ack { cack, spdcid, .. } = *packet else { return Ok(()) };
        for (n, plan) in self.plans.iter().enumerate().filter(|(_, plan)| plan.from != end && plan.verdict != Verdict::Plain) {
            let past = |fate: &Fate| fate.executed.is_some_and(|(pdc, psn)| pdc == spdcid && covered(psn, cack)) && !fate.answered;
            if !self.failed[n] && self.fates[n].iter().any(past) {
                return Err(format!("CACK is past the answer to message {n}, which is kept ({:?})", plan.verdict));
            }
        }
        Ok(())
    }

    fn complete(&self, message: u16) -> bool {
        self.fates[usize::from(message)].iter().all(|fate| fate.answered)
    }

    /// All messages have ended, nothing is under way, all pools are full.
    pub fn at_rest(&self) -> Result<(), String> {
        for n in 0..self.plans.len() {
            if self.complete(n as u16) == self.failed[n] {
                return Err(format!("message {n} has {} end", if self.failed[n] { "more than one" } else { "no" }));
            }
        }
        if !self.pending.is_empty() || !self.channel.is_empty() || self.ends.iter().any(|end| !end.at_rest()) {
            return Err("something is left when nothing can happen any more".into());
        }
        Ok(())
    }

    /// What happens when the channel is good from now on: packets in some order; when there are none, timers in turn, for there are no times here.
    pub fn settle(mut self, most: usize) -> Result<usize, String> {
        let mut turn = 0;
        for n in 0..most {
            let steps = self.steps();
            let timers: Vec<&Step> = steps.iter().filter(|step| matches!(step, Step::Expire(..))).collect();
            let good = |step: &&Step| !matches!(step, Step::Lose(_) | Step::Repeat(_) | Step::Refuse(_) | Step::Expire(..));
            let step = match steps.iter().find(good) {
                Some(step) => *step,
                None if timers.is_empty() => return self.at_rest().map(|()| n),
                None => {
                    turn += 1;
                    *timers[turn % timers.len()]
                }
            };
            self.make(step)?;
        }
        Err(format!("no rest after {most} steps"))
    }
}
