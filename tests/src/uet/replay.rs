//! `./scripts/replay --uet` on the card: what the initiator of a captured exchange sent comes to a simulated card, in the place of the target, and what the card answers is compared with what the target did. What is compared, and what is not possible: `uet/src/replay/README.md`.
use super::forge::sum;
use super::judge::{judge, Judged};
use super::{address, grown, number, Lane, LaneConfig, Way, OPEN};
use ferric_abi::uet::codes::{NextHeader, ReturnCode, SesOpcode};
use ferric_abi::uet::{SesFirst, SesNext};
use ferric_driver::types::Mac;
use ferric_driver::MemoryRegion;
use ferric_uet::end::packet;
use ferric_uet::model::{Packet, Response, Sack, To};
use ferric_uet::replay::capture::{apart, clean, exchanges, read, Exchange, Seen, Step};
use ferric_uet::replay::Deviation;
use ferric_uet::wire::{build, parse, Addresses, Carriage, Message, Operands, Parsed, Pds, Ses};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Cycles in which the card has done all that a packet asks for, its merged acknowledge among it.
const SETTLED: u64 = 2500;
/// Messages of an exchange, and bytes of each, that there is room for.
const MESSAGES: usize = 16;
const ROOM: usize = 1 << 16;
const FILL: u8 = 0x5a;
const CARD: Mac = Mac([2, 0, 0, 0, 9, 1]);
const PEER: u16 = 0;

fn way() -> Way {
    Way { own: IpAddr::from([10, 9, 0, 1]), other: IpAddr::from([10, 9, 0, 2]), mac: Mac([2, 0, 0, 0, 9, 2]) }
}

/// What was judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Packets of exchanges.
    pub exchanged: usize,
    /// Frames that belong to no exchange: the card counts them as the codecs say.
    pub samples: usize,
    /// What was excused.
    pub deviations: BTreeSet<Deviation>,
    /// What the card was told in other words.
    pub translated: BTreeSet<&'static str>,
}

/// What the card answered to an exchange's initiator: for each packet of the capture what came behind it, and what is in its memory.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// By the number of the packet in front.
    pub answers: Vec<Vec<Packet>>,
    /// What is in the places of messages.
    pub memory: Vec<u8>,
    translated: BTreeSet<&'static str>,
}

/// A card that takes the place of targets.
pub struct Player {
    lane: Lane,
    region: MemoryRegion,
}

/// A request as WRITE in the standard form, to a place of ours.
fn write(parsed: &Parsed, id: u16, offset: u64, key: u64, translated: &mut BTreeSet<&'static str>) -> Result<Ses, String> {
    let first = |dc, ie, eom, generation, job, pid, index, header_data, length| {
        let head = SesFirst::default()
            .with_opcode(SesOpcode::Write as u8)
            .with_dc(dc)
            .with_ie(ie)
            .with_rel(true)
            .with_eom(eom)
            .with_som(true)
            .with_message_id(id)
            .with_generation(generation)
            .with_job_id(job);
        Ses::First(head.with_pid(pid).with_index(index).with_offset(offset).with_key(key).with_header_data(header_data).with_request_length(length), Operands::default())
    };
    if parsed.ses.opcode() != Some(SesOpcode::Write as u8) {
        translated.insert("operations: as WRITE");
    }
    translated.insert("ids, addresses, keys");
    Ok(match parsed.ses {
        Ses::Small(h, _) => {
            translated.insert("short forms: as the standard one");
            first(h.dc(), h.ie(), h.eom(), h.generation(), h.job_id(), h.pid(), h.index(), 0, h.request_length().into())
        }
        Ses::Medium(h, _) => {
            translated.insert("short forms: as the standard one");
            first(h.dc(), h.ie(), h.eom(), h.generation(), h.job_id(), h.pid(), h.index(), 0, h.request_length().into())
        }
        Ses::First(h, _) => first(h.dc(), h.ie(), h.eom(), h.generation(), h.job_id(), h.pid(), h.index(), h.header_data(), h.request_length()),
        Ses::Next(h, _) => {
            let head = SesNext::default().with_opcode(SesOpcode::Write as u8).with_dc(h.dc()).with_ie(h.ie()).with_rel(true).with_eom(h.eom()).with_message_id(id).with_generation(h.generation());
            let head = head.with_job_id(h.job_id()).with_pid(h.pid()).with_index(h.index()).with_offset(offset).with_key(key);
            Ses::Next(head.with_payload_length(h.payload_length()).with_message_offset(h.message_offset()).with_request_length(h.request_length()), Operands::default())
        }
        _ => return Err("a request of a target is not one that can be replayed".into()),
    })
}

/// The captured target's id: that of its first answer that has one.
fn captured_id(exchange: &Exchange) -> Option<u16> {
    exchange.frames.iter().filter(|step| !step.forward).find_map(|step| match step.packet {
        Packet::Ack { spdcid, .. } | Packet::Nack { spdcid, .. } if spdcid != 0 => Some(spdcid),
        _ => None,
    })
}

impl Player {
    /// A card of so many bits. Errors: those of the simulation.
    pub fn new(width: usize) -> Result<Self, String> {
        let lane = Lane::new(&LaneConfig { width, skip_idle: false, ..Default::default() }, CARD).map_err(|e| e.to_string())?;
        let region = lane.region(&lane.pd, MESSAGES * ROOM, FILL, OPEN).map_err(|e| e.to_string())?;
        Ok(Self { lane, region })
    }

    /// The other machine's packet, for the card. `ids`: of the captured target and of the card's.
    fn translate(&self, step: &Step, slots: &mut BTreeMap<(u16, u32), usize>, ids: [Option<u16>; 2], translated: &mut BTreeSet<&'static str>) -> Result<(Vec<u8>, Option<usize>), String> {
        // An id that is not the captured target's is not the card's either.
        let to = |id: u16| if ids[0] == Some(id) { ids[1].unwrap_or(0) } else { 0 };
        let mut slot = None;
        let (pds, ses) = match (step.parsed.pds, step.packet) {
            (Pds::Request(head, cc), Packet::Request { psn, to: destination, body, .. }) => {
                let key = (body.message, if body.message == 0 { psn } else { 0 });
                let next = slots.len();
                let place = *slots.entry(key).or_insert(next);
                if place >= MESSAGES || body.total as usize > ROOM {
                    return Err(format!("message {place} of {} bytes is beyond what there is room for", body.total));
                }
                slot = Some(place * ROOM);
                let head = head.with_next(NextHeader::Standard as u8);
                let head = if let To::Id(id) = destination { head.with_dpdcid(to(id)) } else { head };
                (Pds::Request(head, cc), write(&step.parsed, place as u16 + 1, self.region.addr() + (place * ROOM) as u64, self.region.rkey().into(), translated)?)
            }
            (Pds::Control(head), Packet::Control { to: destination, .. }) => (Pds::Control(if let To::Id(id) = destination { head.with_dpdcid(to(id)) } else { head }), Ses::None),
            _ => return Err("an answer of an initiator is not one that can be replayed".into()),
        };
        let (IpAddr::V4(other), IpAddr::V4(own)) = (way().other, way().own) else { return Err("addresses".into()) };
        let carriage = Carriage { dst_mac: number(CARD), src_mac: number(way().mac), tag: None, addresses: Addresses::V4(other.into(), own.into()), native: None, ..step.parsed.carriage };
        Ok((build(&Message { carriage, pds, ses, payload: &step.parsed.payload }, &super::judge::registers()), slot))
    }

    /// Gives the initiator's packets to the card. Nothing that the captured target sent gets to it, but for its id.
    pub fn play(&mut self, exchange: &Exchange) -> Result<Transcript, String> {
        let fail = |e: &dyn std::fmt::Display| e.to_string();
        // Its PDCs are those of this exchange only.
        self.lane.ctx.clear_uet_peer(PEER).map_err(|e| fail(&e))?;
        self.lane.befriend(PEER, &way(), &self.lane.pd).map_err(|e| fail(&e))?;
        self.region.write(0, &vec![FILL; MESSAGES * ROOM]);
        let (mut answers, mut slots, mut translated, mut own) = (Vec::new(), BTreeMap::new(), BTreeSet::new(), None);
        for (n, step) in exchange.frames.iter().enumerate() {
            let mut came = Vec::new();
            if step.forward {
                let (frame, _) = self.translate(step, &mut slots, [captured_id(exchange), own], &mut translated).map_err(|what| format!("packet {n}: {what}"))?;
                self.lane.receive(frame);
                for frame in (0..SETTLED).flat_map(|_| self.lane.step()) {
                    let parsed = parse(&frame, &super::judge::registers()).map_err(|bad| format!("behind packet {n} the card sends a frame that is {bad:?}"))?;
                    let reserved = parsed.reserved();
                    if parsed.carriage.addresses.destination() != address(way().other) || !reserved.is_empty() {
                        return Err(format!("behind packet {n} the card sends to somebody else, or sets {reserved:?}"));
                    }
                    let packet = packet(&parsed).map_err(|what| format!("behind packet {n} the card sends {what:?}"))?;
                    if let Packet::Ack { spdcid, .. } | Packet::Nack { spdcid, .. } = packet {
                        own = own.or((spdcid != 0).then_some(spdcid));
                    }
                    came.push(packet);
                }
            }
            answers.push(came);
        }
        Ok(Transcript { answers, memory: self.region.to_vec(0, MESSAGES * ROOM), translated })
    }

    /// Frames that belong to no exchange, as a peer's: each in the counter that the codecs say.
    fn sample(&mut self, frame: &[u8]) -> Result<(), String> {
        let (way, mut frame) = (way(), frame.to_vec());
        frame[..6].copy_from_slice(&CARD.0);
        frame[6..12].copy_from_slice(&way.mac.0);
        if let (IpAddr::V4(other), IpAddr::V4(own), true) = (way.other, way.own, frame[12..14] == [8, 0] && frame.len() >= 34) {
            frame[26..30].copy_from_slice(&other.octets());
            frame[30..34].copy_from_slice(&own.octets());
            sum(&mut frame);
        }
        let names = match judge(&frame, &[way]) {
            Judged::Other => vec![],
            Judged::Dropped(name) => vec![name],
            Judged::Peer(_, name, _) => vec!["uet.uet_frames", name],
        };
        let before = self.lane.counters().map_err(|e| e.to_string())?;
        self.lane.receive(frame);
        (0..SETTLED).for_each(|_| drop(self.lane.step()));
        let moved = grown(&before, &self.lane.counters().map_err(|e| e.to_string())?);
        let counts = |name: &str| matches!(name, "uet.uet_frames" | "uet.uet_bad_ip" | "uet.uet_stranger") || name.starts_with("uet.uet_rx") && name != "uet.uet_rx_reserved";
        let found: Vec<_> = moved.iter().filter(|(name, n)| **n > 0 && counts(name)).map(|(name, n)| (name.as_str(), *n)).collect();
        if found.len() != names.len() || !names.iter().all(|name| found.contains(&(name, 1))) {
            return Err(format!("the card counts {found:?}, and the codecs say {names:?}"));
        }
        Ok(())
    }

    /// Replays the frames of a file with the card as target.
    pub fn replay(&mut self, frames: &[Vec<u8>]) -> Result<Outcome, String> {
        let mut outcome = Outcome::default();
        let (exchanges, rest) = understood(frames, &mut outcome.deviations)?;
        for exchange in &exchanges {
            let wrong = |what: String| format!("target of id {:#x}: {what}", exchange.spdcid);
            let transcript = self.play(exchange).map_err(wrong)?;
            compare(exchange, &transcript, &mut outcome.deviations).map_err(wrong)?;
            outcome.exchanged += exchange.frames.len();
            outcome.translated.extend(transcript.translated);
        }
        self.lane.befriend(PEER, &way(), &self.lane.pd).map_err(|e| e.to_string())?;
        for n in rest {
            self.sample(&frames[n]).map_err(|what| format!("frame {n}: {what}"))?;
            outcome.samples += 1;
        }
        if outcome.exchanged + outcome.samples == 0 {
            return Err("no frame of Ultra Ethernet".into());
        }
        Ok(outcome)
    }
}

/// The exchanges of a capture, and the numbers of the frames that belong to none. `Err`: one that should.
pub fn understood(frames: &[Vec<u8>], deviations: &mut BTreeSet<Deviation>) -> Result<(Vec<Exchange>, Vec<usize>), String> {
    let seen = frames.iter().enumerate().map(|(n, frame)| read(frame, deviations).map_err(|what| format!("frame {n}: {what}"))).collect::<Result<Vec<_>, _>>()?;
    let (exchanges, rest) = exchanges(&seen);
    let ways: BTreeSet<_> = seen.iter().map(Seen::way).collect();
    rest.iter().try_for_each(|n| apart(&seen[*n], &ways).map_err(|what| format!("frame {n}: {what}")))?;
    Ok((exchanges, rest))
}

/// What an acknowledge says, as far as it is compared.
#[derive(Clone, Copy, Debug)]
struct Ack {
    cack: u32,
    psn: u32,
    sack: Option<Sack>,
    marked: bool,
    retx: bool,
    response: Option<Response>,
    spdcid: u16,
    dpdcid: u16,
}

fn ack(packet: &Packet) -> Option<Ack> {
    let Packet::Ack { cack, psn, sack, marked, retx, spdcid, dpdcid, response, .. } = *packet else { return None };
    Some(Ack { cack, psn, sack, marked, retx, response, spdcid, dpdcid })
}

/// PSNs behind CACK that both speak of, and what either says of them.
fn bits(ours: &Sack, theirs: &Sack, cack: u32) -> Result<(), String> {
    let said = |sack: &Sack, psn: u32| Some(psn.wrapping_sub(sack.base)).filter(|bit| *bit < 64).map(|bit| sack.bitmap >> bit & 1 == 1);
    for ahead in 1..4096 {
        let psn = cack.wrapping_add(ahead);
        let both = (said(ours, psn), said(theirs, psn));
        // Who does not speak of a PSN has not said that it has come.
        let differ = match both {
            (Some(ours), Some(theirs)) => ours != theirs,
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => false,
        };
        if differ {
            return Err(format!("SACK of PSN {psn:#x}: the card and the capture say {both:?}"));
        }
    }
    // Up to CACK all is there, and what a bitmap says of PSNs that were never sent is not.
    Ok(())
}

/// Compares what the card answered with what the capture has. `Err`: what is different.
pub fn compare(exchange: &Exchange, transcript: &Transcript, deviations: &mut BTreeSet<Deviation>) -> Result<(), String> {
    let delivered: BTreeMap<u32, &Step> =
        exchange.frames.iter().filter(|step| step.forward).filter_map(|step| if let Packet::Request { psn, .. } = step.packet { Some((psn, step)) } else { None }).collect();
    let (mut waiting, mut refusals) = (Vec::<Ack>::new(), Vec::<Packet>::new());
    let (mut card, mut captured) = (None::<u16>, None::<u16>);
    let mut last = None;
    for (n, step) in exchange.frames.iter().enumerate() {
        clean(step).map_err(|what| format!("packet {n}: {what}"))?;
        for packet in &transcript.answers[n] {
            match packet {
                Packet::Ack { .. } => waiting.extend(ack(packet)),
                Packet::Nack { .. } => refusals.push(*packet),
                other => return Err(format!("behind packet {n} the card sends {other:?}")),
            }
        }
        if step.forward {
            continue;
        }
        let at = |what: String| format!("packet {n}: {what}");
        match step.packet {
            Packet::Nack { code, psn, payload, spdcid, dpdcid, marked, retx } => {
                let ours = (!refusals.is_empty()).then(|| refusals.remove(0));
                let same = matches!(ours, Some(Packet::Nack { code: c, psn: p, payload: y, spdcid: s, dpdcid: d, marked: m, retx: r }) if (c, p, y, s == 0, d, m, r) == (code, psn, payload, spdcid == 0, dpdcid, marked, retx));
                if !same {
                    return Err(at(format!("refusal {code:?} of PSN {psn:#x}: the card has {ours:?}")));
                }
            }
            _ => {
                let Some(theirs) = ack(&step.packet) else { return Err(at("not an answer".into())) };
                // More acknowledges on the card's side are merged ones of the capture.
                let Some(ours) = waiting.last().copied() else { return Err(at("the card does not acknowledge".into())) };
                if let Some(ahead) = waiting.iter().find(|one| one.cack.wrapping_sub(ours.cack) as i32 > 0) {
                    return Err(at(format!("the card's CACK goes back from {:#x}", ahead.cack)));
                }
                waiting.clear();
                if *card.get_or_insert(ours.spdcid) != ours.spdcid || *captured.get_or_insert(theirs.spdcid) != theirs.spdcid || ours.spdcid == 0 || theirs.spdcid == 0 {
                    return Err(at("a target has another id, or none".into()));
                }
                if ours.dpdcid != exchange.spdcid || theirs.dpdcid != exchange.spdcid {
                    return Err(at("for another id than the initiator's".into()));
                }
                if (ours.cack, ours.psn, ours.marked, ours.retx) != (theirs.cack, theirs.psn, theirs.marked, theirs.retx) {
                    return Err(at(format!("the card: {ours:x?}, the capture: {theirs:x?}")));
                }
                if let (Some(ours), Some(theirs)) = (&ours.sack, &theirs.sack) {
                    bits(ours, theirs, step_cack(&step.packet)).map_err(at)?;
                    if theirs.mpr == 0 || ours.mpr == 0 {
                        return Err(at("no room for anything".into()));
                    }
                    deviations.extend((theirs.bytes == 0).then_some(Deviation::NoState));
                } else if ours.sack.is_none() && theirs.sack.is_some() {
                    return Err(at("the card has no bitmap".into()));
                }
                let total = match delivered.get(&ours.psn).map(|step| step.packet) {
                    Some(Packet::Request { body, .. }) => Some(body.total),
                    _ => None,
                };
                match (ours.response, total) {
                    (Some(response), Some(total)) if response.code == ReturnCode::Ok as u8 && response.length == total => {}
                    (None, None) => {}
                    (response, _) => return Err(at(format!("the card's response is {response:?}"))),
                }
                match theirs.response {
                    None => {
                        deviations.insert(Deviation::NoResponse);
                    }
                    Some(response) if Some(response.length) != total || response.code != ReturnCode::Ok as u8 => return Err(at(format!("response {response:?}"))),
                    Some(_) => {}
                }
                last = Some(theirs.cack);
            }
        }
    }
    if let Some(refusal) = refusals.first() {
        return Err(format!("the card sends {refusal:?}, the capture does not"));
    }
    if waiting.last().is_some_and(|ours| Some(ours.cack) != last) {
        return Err("the last packets have no acknowledge in the capture".into());
    }
    memory(exchange, transcript, last)
}

fn step_cack(packet: &Packet) -> u32 {
    ack(packet).map_or(0, |ack| ack.cack)
}

/// All that is acknowledged is in the card's memory, and nothing else.
fn memory(exchange: &Exchange, transcript: &Transcript, last: Option<u32>) -> Result<(), String> {
    let mut wanted = vec![FILL; MESSAGES * ROOM];
    let mut slots = BTreeMap::new();
    for step in exchange.frames.iter().filter(|step| step.forward) {
        let Packet::Request { psn, body, .. } = step.packet else { continue };
        let next = slots.len();
        let place = *slots.entry((body.message, if body.message == 0 { psn } else { 0 })).or_insert(next);
        if last.is_some_and(|last| psn.wrapping_sub(last) as i32 <= 0) {
            let at = place * ROOM + body.offset as usize;
            wanted.get_mut(at..at + step.parsed.payload.len()).ok_or("a packet beyond its message")?.copy_from_slice(&step.parsed.payload);
        }
    }
    if wanted != transcript.memory {
        return Err("other bytes are in the card's memory than were sent".into());
    }
    Ok(())
}
