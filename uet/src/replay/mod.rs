//! The model in the place of one machine of a captured exchange. What is compared, and what is excused by name, stands in the README beside this file.
pub mod capture;
mod initiator;
mod target;
#[cfg(test)]
mod tests;

pub use capture::Role;

use crate::wire::{layout, parse, Bad, Registers};
use capture::{exchanges, Seen};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::BTreeSet;
use std::path::Path;

/// A way in which captured peers differ from the specification, excused for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deviation {
    /// `syn` stays set when the peer's id is known.
    SynStays,
    /// Packets that are sent again do not say so.
    RetxMissing,
    /// No acknowledge is asked for.
    ArMissing,
    /// Packets behind the first have a header of 32 bytes: initiator and key are missing.
    ShortNext,
    /// CLEAR_PSN is behind what has been answered.
    ClearBehind,
    /// ACKs have no response.
    NoResponse,
    /// Fields of congestion are zero.
    NoState,
}

/// What was judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Packets of exchanges.
    pub exchanged: usize,
    /// Frames that belong to no exchange: their headers were judged.
    pub samples: usize,
    /// What was excused.
    pub deviations: BTreeSet<Deviation>,
    /// What frames would be refused for, and reserved bits that are set in samples.
    pub notes: BTreeSet<String>,
}

/// DSCPs mean nothing in a capture: nobody says what its switches were told.
fn registers(crc: bool) -> Registers {
    Registers { crc, dscp_trimmed: u8::MAX, dscp_trimmed_last: u8::MAX, ..Registers::default() }
}

/// Frames of a capture, pcap or pcapng. `Err`: why it cannot be read.
pub fn load(path: &Path) -> Result<Vec<Vec<u8>>, String> {
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    let mut frames = Vec::new();
    if let Ok(mut reader) = PcapReader::new(&bytes[..]) {
        while let Some(packet) = reader.next_packet() {
            frames.push(packet.map_err(|e| e.to_string())?.data.into_owned());
        }
        return Ok(frames);
    }
    let mut reader = PcapNgReader::new(&bytes[..]).map_err(|e| e.to_string())?;
    while let Some(block) = reader.next_block() {
        match block.map_err(|e| e.to_string())? {
            Block::EnhancedPacket(packet) => frames.push(packet.data.into_owned()),
            Block::SimplePacket(packet) => frames.push(packet.data.into_owned()),
            _ => {}
        }
    }
    Ok(frames)
}

/// Replays the frames of a file. `Err`: what is different.
pub fn replay(frames: &[Vec<u8>], role: Role) -> Result<Outcome, String> {
    let mut outcome = Outcome::default();
    let seen = frames.iter().enumerate().map(|(n, frame)| capture::read(frame, &mut outcome.deviations).map_err(|what| format!("frame {n}: {what}"))).collect::<Result<Vec<_>, _>>()?;
    let (exchanges, rest) = exchanges(&seen);
    let ways: BTreeSet<_> = seen.iter().map(Seen::way).collect();
    for n in rest {
        capture::apart(&seen[n], &ways).map_err(|what| format!("frame {n}: {what}"))?;
        sample(&frames[n], &seen[n], &mut outcome).map_err(|what| format!("frame {n}: {what}"))?;
    }
    for exchange in &exchanges {
        outcome.exchanged += exchange.frames.len();
        let wrong = |side: &str, what: String| format!("{side} with id {:#x}: {what}", exchange.spdcid);
        if role != Role::Target {
            initiator::run(exchange, &mut outcome.deviations).map_err(|what| wrong("initiator", what))?;
        }
        if role != Role::Initiator {
            target::run(exchange, &mut outcome.deviations).map_err(|what| wrong("target", what))?;
        }
    }
    if outcome.exchanged + outcome.samples == 0 {
        return Err("no frame of Ultra Ethernet".into());
    }
    Ok(outcome)
}

/// A frame by itself: its headers are understood, and built again they are the same bytes.
fn sample(frame: &[u8], seen: &Seen, outcome: &mut Outcome) -> Result<(), String> {
    outcome.samples += 1;
    let (parsed, crc) = match seen {
        Seen::Packet { parsed, crc, .. } => (parsed, crc),
        Seen::Named(bad, _) => {
            outcome.notes.insert(format!("not read: {bad:?}"));
            return Ok(());
        }
    };
    let message = crate::wire::Message { carriage: parsed.carriage, pds: parsed.pds, ses: parsed.ses, payload: &parsed.payload };
    let again = crate::wire::build(&message, &registers(*crc));
    let from = capture::transport(&parsed.carriage);
    // Checksums of IP and UDP are judged where the frame is read.
    if frame.get(from..again.len()) != again.get(from..) {
        return Err("its headers are other bytes when they are built again".into());
    }
    if let Err(bad) = parse(frame, &registers(*crc)) {
        outcome.notes.insert(format!("as a packet it is refused: {bad:?}"));
    }
    outcome.notes.extend(parsed.reserved().into_iter().map(|field| format!("reserved and set: {field}")));
    Ok(())
}

/// Whether a header is one that the specification reserves or that is not implemented, so that nothing is said of what follows.
fn named(bad: Bad) -> bool {
    matches!(bad, Bad::Tss | Bad::Ccx | Bad::NextNotAllowed(_))
}

/// The layout, with a CRC behind it if there is one.
fn understand(frame: &[u8]) -> (Result<crate::wire::Parsed, Bad>, bool) {
    match layout(frame, &registers(true)) {
        Ok(parsed) => (Ok(parsed), true),
        Err(_) => (layout(frame, &registers(false)), false),
    }
}
