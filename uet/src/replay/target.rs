//! The model in the place of the machine that was asked.
use super::capture::{clean, Exchange, Step};
use super::Deviation;
use crate::model::{Action, Config, Event, Packet, Pds, Response, Sack, Timer, To};
use ferric_abi::uet::codes::{NackCode, ReturnCode};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

const PEER: u32 = 0;

struct Run<'a> {
    exchange: &'a Exchange,
    pds: Pds,
    /// The id that the captured target has.
    id: Option<u16>,
    /// Messages and lengths of PSNs that were delivered, and whether they came again.
    delivered: BTreeMap<u32, (u16, u32, bool, bool)>,
    /// PSNs that came since the last acknowledge.
    since: BTreeSet<u32>,
    nacks: VecDeque<(NackCode, u32, u32)>,
    now: u64,
}

/// Replays an exchange.
pub fn run(exchange: &Exchange, deviations: &mut BTreeSet<Deviation>) -> Result<(), String> {
    let config = Config { pool_bits: 1, places: 1, share: 1, low: 0, window: 4096, reap: u64::MAX / 2, clear_wait: u64::MAX / 2, ..Config::default() };
    let mut run = Run { exchange, pds: Pds::new(Arc::new(config)), id: None, delivered: BTreeMap::new(), since: BTreeSet::new(), nacks: VecDeque::new(), now: 0 };
    let mut acknowledged = None;
    for (n, step) in exchange.frames.iter().enumerate() {
        run.now += 1;
        let result = clean(step).and_then(|()| if step.forward { run.feed(step) } else { run.expect(step, deviations).map(|cack| acknowledged = cack.or(acknowledged)) });
        result.map_err(|what| format!("packet {n}: {what}"))?;
    }
    if let Some((code, psn, _)) = run.nacks.front() {
        return Err(format!("the model refuses PSN {psn:#x} with {code:?}, the capture does not"));
    }
    // What was asked for is answered before the exchange goes quiet.
    if acknowledged.is_some() && acknowledged != run.cack() {
        return Err("the last packets have no acknowledge".into());
    }
    Ok(())
}

impl Run<'_> {
    /// CACK of the model.
    fn cack(&self) -> Option<u32> {
        self.pds.pdcs().next().map(|pdc| pdc.rx.cack())
    }

    fn step(&mut self, event: Event) {
        let mut done = Vec::new();
        for action in self.pds.step(event) {
            match action {
                Action::Transmit { packet: Packet::Nack { code, psn, payload, .. }, .. } => self.nacks.push_back((code, psn, payload)),
                Action::Deliver { pdc, psn, body, .. } => {
                    let response = Response { message: body.message, code: ReturnCode::Ok as u8, length: body.total, data: None };
                    done.push(Event::Done { pdc, psn, response, keep: false });
                }
                _ => {}
            }
        }
        done.into_iter().for_each(|event| self.step(event));
    }

    fn feed(&mut self, step: &Step) -> Result<(), String> {
        let mut packet = step.packet;
        let own = self.pds.pdcs().next().map(|pdc| pdc.id);
        if let Packet::Request { to, .. } | Packet::Control { to, .. } = &mut packet {
            match (*to, own) {
                (To::Id(id), Some(own)) if self.id == Some(id) => *to = To::Id(own),
                // Of another id, and so no PDC of the model's.
                (To::Id(_), _) => *to = To::Id(0),
                (To::Syn(_), _) => {}
            }
        }
        if let Packet::Request { psn, body, retx, .. } = packet {
            let again = self.delivered.contains_key(&psn);
            self.since.insert(psn);
            self.delivered.insert(psn, (body.message, body.total, retx, again));
        }
        self.step(Event::Tick(self.now));
        self.step(Event::Received { from: PEER, packet, trim: None, ce: step.parsed.carriage.ecn == 3, ev: 0 });
        // When the model merges acknowledges, and the capture does not, both have to say the same all the same.
        for (id, timer, _) in self.pds.timers().into_iter().filter(|(_, timer, _)| *timer == Timer::Ack) {
            self.step(Event::Expire { pdc: id, timer });
        }
        Ok(())
    }

    /// The capture's answer is what the model knows. Gives its CACK.
    fn expect(&mut self, step: &Step, deviations: &mut BTreeSet<Deviation>) -> Result<Option<u32>, String> {
        let (spdcid, dpdcid) = match step.packet {
            Packet::Ack { spdcid, dpdcid, .. } | Packet::Nack { spdcid, dpdcid, .. } => (spdcid, dpdcid),
            _ => return Err("a request of a target is not one that can be replayed".into()),
        };
        if dpdcid != self.exchange.spdcid {
            return Err("for another id than the initiator's".into());
        }
        if spdcid != 0 && *self.id.get_or_insert(spdcid) != spdcid {
            return Err("the target has another id".into());
        }
        match step.packet {
            Packet::Nack { code, psn, payload, .. } => {
                let wanted = self.nacks.pop_front();
                if wanted != Some((code, psn, payload)) {
                    return Err(format!("refusal {code:?} of PSN {psn:#x}: the model has {wanted:?}"));
                }
                Ok(None)
            }
            Packet::Ack { cack, psn, sack, marked, retx, response, .. } => {
                if spdcid == 0 {
                    return Err("an acknowledge without an id".into());
                }
                if Some(cack) != self.cack() {
                    return Err(format!("CACK {cack:#x}: the model is at {:x?}", self.cack()));
                }
                let Some((message, total, was, _)) = self.delivered.get(&psn).copied().or_else(|| self.control(psn)) else { return Err(format!("acknowledges PSN {psn:#x}, which did not come")) };
                let since = std::mem::take(&mut self.since);
                if !since.is_empty() && !since.contains(&psn) {
                    return Err(format!("acknowledges PSN {psn:#x} and not what came"));
                }
                if marked || retx != was {
                    return Err("marked, or sent again".into());
                }
                if let Some(sack) = sack {
                    self.bits(&sack, cack)?;
                    if sack.mpr == 0 {
                        return Err("no room for anything".into());
                    }
                    deviations.extend((sack.bytes == 0).then_some(Deviation::NoState));
                }
                match response {
                    None => {
                        deviations.insert(Deviation::NoResponse);
                    }
                    Some(r) if r.code != ReturnCode::Ok as u8 || r.message != message || r.length != total => return Err(format!("response {r:?}")),
                    Some(_) => {}
                }
                Ok(Some(cack))
            }
            _ => Ok(None),
        }
    }

    /// A control packet that takes a PSN is acknowledged likewise.
    fn control(&self, psn: u32) -> Option<(u16, u32, bool, bool)> {
        let there = self.exchange.frames.iter().any(|step| step.forward && matches!(step.packet, Packet::Control { psn: other, .. } if other == psn));
        there.then_some((0, 0, false, false))
    }

    /// The bits of a SACK: those that are one, are there; and what is there and spoken of, is one.
    fn bits(&self, sack: &Sack, cack: u32) -> Result<(), String> {
        let Some(pdc) = self.pds.pdcs().next() else { return Err("an acknowledge of nothing".into()) };
        let behind = |psn: u32| psn.wrapping_sub(cack) as i32 <= 0;
        for bit in 0..64 {
            let psn = sack.base.wrapping_add(bit);
            let ours = behind(psn) && self.delivered.contains_key(&psn)
                || !behind(psn) && pdc.rx.marks.get(psn.wrapping_sub(cack).wrapping_sub(1) as usize).is_some_and(|mark| *mark == crate::model::Mark::Done);
            let theirs = sack.bitmap >> bit & 1 == 1;
            if theirs && !ours || !theirs && ours && !behind(psn) {
                return Err(format!("SACK of PSN {psn:#x}: the model has it {ours}, the capture {theirs}"));
            }
        }
        Ok(())
    }
}
