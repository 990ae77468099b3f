//! The model in the place of the machine that opened the PDC.
use super::capture::{clean, Exchange, Step};
use super::Deviation;
use crate::model::{Action, Body, Config, Event, Message, Mode, Packet, Pds, Policy, To};
use crate::wire::{Pds as Head, Ses};
use ferric_abi::uet::codes::{ControlType, ReturnCode, SesOpcode};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

const PEER: u32 = 0;
/// Time-outs that are waited for before a packet counts as missing.
const PATIENCE: usize = 4;

/// What every packet of a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    opcode: u8,
    flags: [bool; 4],
    job: u32,
    generation: u8,
    pid: u16,
    index: u16,
    offset: u64,
    initiator: u32,
    key: u64,
    total: u32,
}

/// The message of a packet: its id, none for short forms, and what is said of it.
fn said(step: &Step) -> Result<(u16, Said), String> {
    let short = |opcode, dc, ie, rel, generation, job, pid, index, offset, total: u16| Said {
        opcode,
        flags: [dc, ie, rel, false],
        job,
        generation,
        pid,
        index,
        offset,
        initiator: 0,
        key: 0,
        total: total.into(),
    };
    // Standard headers of a first and of a later packet are records of their own, with the same fields here.
    macro_rules! standard {
        ($h:ident) => {
            (
                $h.message_id(),
                Said {
                    opcode: $h.opcode(),
                    flags: [$h.dc(), $h.ie(), $h.rel(), $h.hd()],
                    job: $h.job_id(),
                    generation: $h.generation(),
                    pid: $h.pid(),
                    index: $h.index(),
                    offset: $h.offset(),
                    initiator: $h.initiator(),
                    key: $h.key(),
                    total: $h.request_length(),
                },
            )
        };
    }
    let (id, said) = match step.parsed.ses {
        Ses::First(h, _) => standard!(h),
        Ses::Next(h, _) => standard!(h),
        Ses::Small(h, _) => (0, short(h.opcode(), h.dc(), h.ie(), h.rel(), h.generation(), h.job_id(), h.pid(), h.index(), h.offset(), h.request_length())),
        Ses::Medium(h, _) => (0, short(h.opcode(), h.dc(), h.ie(), h.rel(), h.generation(), h.job_id(), h.pid(), h.index(), h.data(), h.request_length())),
        _ => return Err("a request without a request header".into()),
    };
    let known = [SesOpcode::Write, SesOpcode::Send, SesOpcode::TaggedSend, SesOpcode::DeferrableSend, SesOpcode::NoOp, SesOpcode::FetchingAtomic, SesOpcode::Atomic];
    match SesOpcode::from_u8(said.opcode).filter(|opcode| known.contains(opcode)) {
        Some(_) => Ok((id, said)),
        None => Err(format!("operation {:#x} is not one that can be replayed", said.opcode)),
    }
}

struct Run<'a> {
    exchange: &'a Exchange,
    pds: Pds,
    id: u16,
    peer_id: Option<u16>,
    out: VecDeque<Packet>,
    /// Messages of the capture by id, with the model's number; short forms by PSN.
    numbers: BTreeMap<(u16, u32), u16>,
    said: Vec<Said>,
    payload: BTreeMap<u32, Vec<u8>>,
    answered: BTreeMap<u16, u32>,
    errors: BTreeSet<u16>,
    sent: BTreeSet<u32>,
    /// CLEAR_PSN of the capture, which does not go back.
    clear: u32,
    now: u64,
}

/// Replays an exchange.
pub fn run(exchange: &Exchange, deviations: &mut BTreeSet<Deviation>) -> Result<(), String> {
    let data = |step: &&Step| matches!(step.packet, Packet::Request { .. }) && step.forward;
    // A packet with others behind it is as long as packets are.
    let full = exchange.frames.iter().filter(data).filter_map(|s| if let Packet::Request { body, .. } = s.packet { (!body.last() || body.offset == 0).then_some(body.bytes) } else { None });
    let mtu = full.max().unwrap_or(1).max(1);
    let config = Config {
        pool_bits: 1,
        places: 1,
        share: 1,
        mtu,
        first_window: 4095,
        default_mpr: 255,
        spray: Policy::Fixed,
        first_psn: Some(exchange.start),
        idle: u64::MAX / 2,
        reap: u64::MAX / 2,
        ..Config::default()
    };
    let mut run = Run {
        exchange,
        pds: Pds::new(Arc::new(config)),
        id: 0,
        peer_id: None,
        out: VecDeque::new(),
        numbers: BTreeMap::new(),
        said: Vec::new(),
        payload: BTreeMap::new(),
        answered: BTreeMap::new(),
        errors: BTreeSet::new(),
        sent: BTreeSet::new(),
        clear: exchange.start.wrapping_sub(1),
        now: 0,
    };
    for (n, step) in exchange.frames.iter().enumerate() {
        run.now += 1;
        clean(step).and_then(|()| if step.forward { run.expect(n, step, deviations) } else { run.feed(step) }).map_err(|what| format!("packet {n}: {what}"))?;
    }
    run.end()
}

impl Run<'_> {
    fn step(&mut self, event: Event) {
        for action in self.pds.step(event) {
            match action {
                Action::Transmit { packet, .. } => self.out.push_back(packet),
                Action::Answered { message, bytes, response, .. } => {
                    *self.answered.entry(message).or_insert(0) += bytes;
                    if response.is_some_and(|r| r.code != ReturnCode::Ok as u8) {
                        self.errors.insert(message);
                    }
                }
                Action::Failed { message, .. } => {
                    self.errors.insert(message);
                }
                _ => {}
            }
        }
    }

    /// The other machine's packet, with the model's id.
    fn feed(&mut self, step: &Step) -> Result<(), String> {
        let mut packet = step.packet;
        let theirs = match &mut packet {
            Packet::Ack { dpdcid, spdcid, psn, cack, response, sack, .. } => {
                let place = |psn: u32| psn.wrapping_sub(self.exchange.start);
                let bits = sack.map_or(0, |sack| 64 - sack.bitmap.leading_zeros());
                let newest = [place(*psn), place(*cack), sack.map_or(0, |sack| if bits == 0 { 0 } else { place(sack.base).wrapping_add(bits - 1) })];
                let known = |n: u32| n == u32::MAX || self.sent.contains(&self.exchange.start.wrapping_add(n));
                if !newest.iter().all(|n| known(*n) || *n == 0) {
                    return Err("acknowledges what was not sent".into());
                }
                if let Some(response) = response {
                    let number = self.numbers.get(&(response.message, 0)).copied();
                    response.message = number.unwrap_or(response.message);
                }
                *dpdcid = self.id;
                *spdcid
            }
            Packet::Nack { dpdcid, spdcid, .. } => {
                *dpdcid = self.id;
                *spdcid
            }
            Packet::Control { to, spdcid, .. } => {
                *to = To::Id(self.id);
                *spdcid
            }
            Packet::Request { .. } => return Err("a request in the return direction is not one that can be replayed".into()),
        };
        // Zero comes with a refusal by somebody who has no PDC.
        if theirs != 0 && *self.peer_id.get_or_insert(theirs) != theirs {
            return Err("the target has another id".into());
        }
        self.step(Event::Received { from: PEER, packet, trim: None, ce: step.parsed.carriage.ecn == 3, ev: 0 });
        Ok(())
    }

    /// The model sends what the machine sent.
    fn expect(&mut self, at: usize, step: &Step, deviations: &mut BTreeSet<Deviation>) -> Result<(), String> {
        if let Packet::Request { mode, psn, body, .. } = step.packet {
            self.post(step, mode, psn, &body)?;
        }
        if matches!(step.packet, Packet::Control { kind: ControlType::CloseCommand, .. }) {
            self.step(Event::Close { pdc: self.id });
        }
        for _ in 0..self.exchange.frames.len() + PATIENCE {
            let Some(packet) = self.next() else { return Err(format!("the model does not send {:?}", step.packet)) };
            let (Some(ours), Some(theirs)) = (self.psn(&packet), self.psn(&step.packet)) else { continue };
            let later = |ours: u32| self.exchange.frames[at + 1..].iter().any(|s| s.forward && self.psn(&s.packet) == Some(ours));
            if ours != theirs && !self.sent.contains(&ours) && later(ours) {
                // It was lost in front of the capture: only what was sent again is there.
                self.sent.insert(ours);
                continue;
            }
            return self.compare(&packet, step, deviations);
        }
        Err("the model goes on and on".into())
    }

    /// What the model sends next; timers expire when there is nothing.
    fn next(&mut self) -> Option<Packet> {
        for _ in 0..=PATIENCE {
            if self.out.is_empty() {
                self.step(Event::Grant);
            }
            if let Some(packet) = self.out.pop_front() {
                return Some(packet);
            }
            self.now = self.now.max(self.pds.deadline()?);
            self.step(Event::Tick(self.now));
        }
        None
    }

    fn psn(&self, packet: &Packet) -> Option<u32> {
        match packet {
            Packet::Request { psn, .. } => Some(*psn),
            Packet::Control { kind: ControlType::CloseCommand | ControlType::AckRequest | ControlType::Noop, psn, .. } => Some(*psn),
            _ => None,
        }
    }

    /// A message is posted when its first packet is next.
    fn post(&mut self, step: &Step, mode: Mode, psn: u32, body: &Body) -> Result<(), String> {
        let (id, said) = said(step)?;
        let key = (id, if id == 0 { psn } else { 0 });
        if let Some(number) = self.numbers.get(&key) {
            if self.said[usize::from(*number)] != said {
                return Err("packets of a message disagree".into());
            }
        } else {
            let number = self.said.len() as u16;
            self.numbers.insert(key, number);
            self.step(Event::Post { peer: PEER, mode, message: Message { id: number, bytes: said.total, fetch: body.fetch } });
            self.said.push(said);
        }
        self.id = self.pds.pdcs().next().map_or(self.id, |pdc| pdc.id);
        match self.payload.insert(psn, step.parsed.payload.clone()).filter(|before| *before != step.parsed.payload) {
            Some(_) => Err("other bytes than the first time".into()),
            None => Ok(()),
        }
    }

    fn compare(&mut self, ours: &Packet, step: &Step, deviations: &mut BTreeSet<Deviation>) -> Result<(), String> {
        let (place, known) = (|psn: u32| psn.wrapping_sub(self.exchange.start), self.peer_id);
        let differs = |what: &str| Err(format!("{what}: the model sends {ours:?}, the capture has {:?}", step.packet));
        let to_fits = |psn: u32, ours: To, theirs: To, deviations: &mut BTreeSet<Deviation>| match theirs {
            To::Syn(offset) if u32::from(offset) != place(psn) => false,
            To::Syn(_) => {
                if let To::Id(_) = ours {
                    deviations.insert(Deviation::SynStays);
                }
                true
            }
            To::Id(id) => known == Some(id),
        };
        match (*ours, step.packet) {
            (Packet::Request { mode: m, psn: p, clear: c, to: t, retx, ar, body: b, .. }, Packet::Request { mode, psn, clear, spdcid, to, retx: their_retx, ar: their_ar, body }) => {
                if (m, p) != (mode, psn) || spdcid != self.exchange.spdcid {
                    return differs("mode, PSN or id");
                }
                let clears = [c, clear].map(|offset| psn.wrapping_add_signed(offset.into()));
                if clears[1].wrapping_sub(clears[0]) as i32 > 0 || (clears[1].wrapping_sub(self.clear) as i32) < 0 {
                    return differs("clear");
                }
                deviations.extend((clears[1] != clears[0]).then_some(Deviation::ClearBehind));
                self.clear = clears[1];
                if !to_fits(psn, t, to, deviations) {
                    return differs("destination id or offset");
                }
                let head = said(step)?.0;
                let number = self.numbers.get(&(head, if head == 0 { psn } else { 0 })).copied();
                if number != Some(b.message) || (b.offset, b.bytes, b.total) != (body.offset, body.bytes, body.total) || b.bytes as usize != step.parsed.payload.len() {
                    return differs("place in the message");
                }
                let (som, eom) = match step.parsed.ses {
                    Ses::First(h, _) => (h.som(), h.eom()),
                    Ses::Next(h, _) => (h.som(), h.eom()),
                    _ => (true, true),
                };
                if (som, eom) != (b.offset == 0, b.last()) {
                    return differs("start or end of the message");
                }
                if their_retx && !retx {
                    return differs("retx");
                }
                deviations.extend((retx && !their_retx).then_some(Deviation::RetxMissing));
                deviations.extend((ar && !their_ar).then_some(Deviation::ArMissing));
                self.sent.insert(psn);
                Ok(())
            }
            (Packet::Control { kind: k, psn: p, to: t, payload: y, .. }, Packet::Control { kind, psn, to, payload, spdcid, .. }) => {
                if (k, p, y) != (kind, psn, payload) || spdcid != self.exchange.spdcid || !to_fits(psn, t, to, deviations) {
                    return differs("control packet");
                }
                self.sent.insert(psn);
                Ok(())
            }
            _ => differs("kind"),
        }
    }

    /// What the target has acknowledged is complete, and nothing else.
    fn end(&self) -> Result<(), String> {
        let acks =
            self.exchange.frames.iter().filter(|step| !step.forward).filter_map(|step| if let (Packet::Ack { cack, .. }, Head::Ack(..)) = (step.packet, step.parsed.pds) { Some(cack) } else { None });
        let covered = acks.map(|cack| cack.wrapping_sub(self.exchange.start).wrapping_add(1)).filter(|n| *n < 1 << 31).max().unwrap_or(0);
        let all = self.sent.iter().all(|psn| psn.wrapping_sub(self.exchange.start) < covered);
        for (number, said) in self.said.iter().enumerate() {
            let bytes = self.answered.get(&(number as u16)).copied();
            if all && !self.errors.contains(&(number as u16)) && bytes.unwrap_or(u32::MAX) != said.total {
                return Err(format!("message {number} is acknowledged, and of its {} bytes {bytes:?} are complete", said.total));
            }
        }
        Ok(())
    }
}
