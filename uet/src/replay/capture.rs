//! From frames to exchanges: who opened which PDC, and what belongs to it.
use super::{named, understand, Deviation};
use crate::end::packet;
use crate::model::{Packet, To};
use crate::wire::{addresses, checksum, Addresses, Bad, Carriage, Parsed, Pds, Ses};
use ferric_abi::uet::codes::NextHeader;
use ferric_abi::uet::{PdsSyn, SesNext};
use ferric_abi::wire::Udp;
use std::collections::{BTreeMap, BTreeSet};

/// Which machine the model replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one that opened the PDC.
    Initiator,
    /// The other.
    Target,
    /// Each in turn.
    Both,
}

/// A captured frame.
#[derive(Clone, Debug)]
pub enum Seen {
    /// A packet; `packet` is none if packet delivery has no use for it.
    Packet { parsed: Box<Parsed>, packet: Option<Packet>, crc: bool },
    /// Headers that are reserved or not implemented.
    Named(Bad, Addresses),
}

impl Seen {
    /// Source and destination.
    pub fn way(&self) -> (u128, u128) {
        let addresses = match self {
            Self::Packet { parsed, .. } => parsed.carriage.addresses,
            Self::Named(_, addresses) => *addresses,
        };
        (addresses.source(), addresses.destination())
    }
}

/// A packet of an exchange.
#[derive(Clone, Debug)]
pub struct Step {
    /// Sent by the initiator.
    pub forward: bool,
    /// What it is to the model.
    pub packet: Packet,
    /// What it was on the wire.
    pub parsed: Parsed,
}

/// All that belongs to one PDC.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The initiator's id.
    pub spdcid: u16,
    /// Start_PSN.
    pub start: u32,
    /// Packets in the order of the capture.
    pub frames: Vec<Step>,
}

/// Bytes in front of the transport header, of a frame with these headers.
pub fn transport(carriage: &Carriage) -> usize {
    let tag = if carriage.tag.is_some() { 4 } else { 0 };
    let ip = if matches!(carriage.addresses, Addresses::V4(..)) { 20 } else { 40 };
    let ports = if carriage.native.is_some() { 0 } else { Udp::BYTES };
    14 + tag + ip + ports
}

/// The checksum of UDP, if there is one, is right (RFC 768).
fn udp_sum(frame: &[u8], carriage: &Carriage) -> Result<(), String> {
    if carriage.native.is_some() {
        return Ok(());
    }
    let at = transport(carriage) - Udp::BYTES;
    let udp = frame.get(at..).and_then(|rest| rest.first_chunk()).map(|raw| Udp(*raw)).ok_or("no UDP header")?;
    let datagram = frame.get(at..at + udp.length() as usize).ok_or("UDP ends behind the frame")?;
    if udp.checksum() == 0 {
        return Ok(());
    }
    let addresses = match carriage.addresses {
        Addresses::V4(src, dst) => [src.to_be_bytes(), dst.to_be_bytes()].concat(),
        Addresses::V6(src, dst) => [src.to_be_bytes(), dst.to_be_bytes()].concat(),
    };
    let words = [&addresses[..], &[0, ferric_abi::wire::protocol::UDP], &udp.length().to_be_bytes()[..], datagram].concat();
    if checksum(&words) == 0 {
        Ok(())
    } else {
        Err("the checksum of UDP is wrong".into())
    }
}

/// Understands a captured frame.
pub fn read(frame: &[u8], deviations: &mut BTreeSet<Deviation>) -> Result<Seen, String> {
    let (understood, crc) = understand(frame);
    let mut parsed = match understood {
        Ok(parsed) => parsed,
        Err(bad) if named(bad) => return Ok(Seen::Named(bad, addresses(frame).map_err(|bad| format!("{bad:?}"))?)),
        Err(bad) => return Err(format!("{bad:?}")),
    };
    udp_sum(frame, &parsed.carriage)?;
    short_next(&mut parsed, deviations);
    let packet = packet(&parsed).ok();
    Ok(Seen::Packet { parsed: Box::new(parsed), packet, crc })
}

/// A header of 32 bytes in the place of 44, if its lengths fit the frame and those of 44 do not.
fn short_next(parsed: &mut Parsed, deviations: &mut BTreeSet<Deviation>) {
    const MISSING: usize = 12;
    let Ses::Next(ses, operands) = parsed.ses else { return };
    let fits = |ses: &SesNext, bytes: usize| ses.payload_length() as usize == bytes && ses.message_offset().checked_add(bytes as u32).is_some_and(|end| end <= ses.request_length());
    if operands.atomic.is_some() || fits(&ses, parsed.payload.len()) {
        return;
    }
    let mut raw = SesNext::default();
    let common = SesNext::BYTES - 2 * MISSING;
    raw.0[..common].copy_from_slice(&ses.0[..common]);
    raw.0[common + MISSING..].copy_from_slice(&ses.0[common..SesNext::BYTES - MISSING]);
    let payload = [&ses.0[SesNext::BYTES - MISSING..], &parsed.payload].concat();
    if fits(&raw, payload.len()) {
        deviations.insert(Deviation::ShortNext);
        parsed.ses = Ses::Next(raw, operands);
        parsed.payload = payload;
    }
}

/// The exchanges of a capture, and the frames that belong to none.
pub fn exchanges(seen: &[Seen]) -> (Vec<Exchange>, Vec<usize>) {
    // An initiator is who sends a SYN and is answered.
    let mut opened: BTreeMap<(u128, u128, u16), (u32, Vec<usize>, bool)> = BTreeMap::new();
    let mut rest = Vec::new();
    for seen in seen {
        let Seen::Packet { parsed, packet: Some(Packet::Request { psn, spdcid, to: To::Syn(offset), .. }), .. } = seen else { continue };
        let key = (parsed.carriage.addresses.source(), parsed.carriage.addresses.destination(), *spdcid);
        opened.entry(key).or_insert((psn.wrapping_sub((*offset).into()), Vec::new(), false));
    }
    for (n, seen) in seen.iter().enumerate() {
        let Seen::Packet { parsed, packet: Some(packet), .. } = seen else {
            rest.push(n);
            continue;
        };
        let (source, destination) = (parsed.carriage.addresses.source(), parsed.carriage.addresses.destination());
        let (own, other) = match *packet {
            Packet::Request { spdcid, to: To::Id(id), .. } | Packet::Control { spdcid, to: To::Id(id), .. } => (spdcid, id),
            Packet::Request { spdcid, .. } | Packet::Control { spdcid, .. } => (spdcid, 0),
            Packet::Ack { spdcid, dpdcid, .. } | Packet::Nack { spdcid, dpdcid, .. } => (spdcid, dpdcid),
        };
        let (forward, back) = ((source, destination, own), (destination, source, other));
        if let Some(entry) = opened.get_mut(&back).filter(|_| source != destination) {
            entry.1.push(n);
            entry.2 = true;
        } else if let Some(entry) = opened.get_mut(&forward) {
            entry.1.push(n);
        } else {
            rest.push(n);
        }
    }
    let mut exchanges = Vec::new();
    for ((source, _, spdcid), (start, numbers, answered)) in opened {
        if !answered {
            rest.extend(numbers);
            continue;
        }
        let step = |n: &usize| match &seen[*n] {
            Seen::Packet { parsed, packet: Some(packet), .. } => Some(Step { forward: parsed.carriage.addresses.source() == source, packet: *packet, parsed: (**parsed).clone() }),
            _ => None,
        };
        exchanges.push(Exchange { spdcid, start, frames: numbers.iter().filter_map(step).collect() });
    }
    rest.sort_unstable();
    (exchanges, rest)
}

/// A frame of no exchange goes from one machine to another that says nothing to it: between two that talk, every packet belongs to a PDC.
pub fn apart(seen: &Seen, ways: &BTreeSet<(u128, u128)>) -> Result<(), String> {
    let (source, destination) = seen.way();
    if source != destination && ways.contains(&(destination, source)) {
        return Err("belongs to no PDC of the two machines".into());
    }
    Ok(())
}

/// What an exchange must not have, whoever sent it: reserved bits, and fields that the model always leaves zero.
pub fn clean(step: &Step) -> Result<(), String> {
    let reserved = step.parsed.reserved();
    if !reserved.is_empty() {
        return Err(format!("reserved and set: {reserved:?}"));
    }
    if matches!(step.parsed.ses, Ses::First(ses, _) if !ses.hd() && ses.header_data() != 0) {
        return Err("header data of a message that has none".into());
    }
    let next = |wanted: NextHeader, there: u8| if there == wanted as u8 { Ok(()) } else { Err(format!("next header {there}")) };
    match step.parsed.pds {
        Pds::Request(head, _) if head.syn() && (PdsSyn(head.dpdcid().to_be_bytes()).rsvd0() != 0 || PdsSyn(head.dpdcid().to_be_bytes()).reserved_pdc()) => Err("reserved bits of a SYN".into()),
        Pds::Request(..) => crate::wire::agreed(&step.parsed).map_err(|bad| format!("{bad:?}")),
        Pds::Nack(head) if head.vendor() != 0 => Err("vendor code".into()),
        Pds::Nack(head) => next(NextHeader::None, head.next()),
        Pds::Ack(head, cc) if head.probe() || cc.is_some_and(|cc| cc.cc_type() != 0) => Err("an answer to a probe, or credit".into()),
        _ => Ok(()),
    }
}
