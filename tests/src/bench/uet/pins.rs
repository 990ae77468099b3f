//! What has passed the pins of cards `uet`: frames, whose packets they are, and what of them is new.

use super::beats_of;
use ferric_sim::trace::{Event, Kind};
use std::collections::HashSet;

/// A request with payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Source and destination address, mode, place: two that agree are one packet.
    pub(super) who: (u32, u32, u8, u32),
    pub(super) payload: u64,
    pub(super) ends: bool,
}

/// What a frame of Ultra Ethernet over IPv4 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    Request(Request),
    Ack,
    Nack,
    Control,
}

pub(super) fn read(frame: &[u8]) -> Option<Packet> {
    let number = |at: usize, len: usize| Some(frame.get(at..at + len)?.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)));
    // IPv4 without options, UDP to Ultra Ethernet's port.
    if (number(12, 2)?, number(14, 1)?, number(23, 1)?, number(36, 2)?) != (0x0800, 0x45, 17, 4793) {
        return None;
    }
    let length = u64::from(number(38, 2)?);
    let prologue = number(42, 2)?;
    match prologue >> 11 {
        mode @ (2 | 3) if prologue >> 7 & 15 == 3 => {
            let payload = length.checked_sub(8 + 12 + 44)?;
            Some(Packet::Request(Request { who: (number(26, 4)?, number(30, 4)?, mode as u8, number(46, 4)?), payload, ends: number(55, 1)? & 2 > 0 }))
        }
        7 | 8 => Some(Packet::Ack),
        10 => Some(Packet::Nack),
        _ => Some(Packet::Control),
    }
}

/// A frame that has passed a card's pins: its first and last beat.
pub(super) struct Frame {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) packet: Option<Packet>,
}

pub(super) fn frames(trace: &[Event], card: usize, kind: Kind) -> Vec<Frame> {
    let (mut all, mut first) = (Vec::new(), None);
    for e in trace.iter().filter(|e| usize::from(e.card) == card && e.kind == kind) {
        let begun = *first.get_or_insert(e.cycle);
        if e.last {
            all.push(Frame { first: begun, last: e.cycle, packet: read(&e.head) });
            first = None;
        }
    }
    all
}

/// Each packet's payload counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Delivered {
    pub(super) payload: u64,
    pub(super) messages: u64,
    pub(super) beats: u64,
    pub(super) first: u64,
    pub(super) started: u64,
    pub(super) last: u64,
}

pub(super) fn delivered(trace: &[Event], card: usize) -> Option<Delivered> {
    let (mut seen, mut sum) = (HashSet::new(), None::<Delivered>);
    for f in frames(trace, card, Kind::RxBeat) {
        let Some(Packet::Request(r)) = f.packet else { continue };
        let d = sum.get_or_insert(Delivered { first: f.first, ..Default::default() });
        if seen.insert(r.who) {
            d.payload += r.payload;
            d.messages += u64::from(r.ends);
        }
        (d.started, d.last) = (f.first, f.last);
    }
    let mut d = sum?;
    d.beats = beats_of(d.payload);
    Some(d)
}

/// Frames that say what an earlier one of `card` has said, and refusals.
pub(super) fn waste(trace: &[Event], card: usize) -> (u64, u64) {
    let (mut seen, mut waste) = (HashSet::new(), (0, 0));
    for f in frames(trace, card, Kind::TxBeat) {
        match f.packet {
            Some(Packet::Request(r)) => waste.0 += u64::from(!seen.insert(r.who)),
            Some(Packet::Nack) => waste.1 += 1,
            _ => {}
        }
    }
    waste
}

/// The last beat of a request to the first write address after it, mean.
pub(super) fn wire_to_dma(trace: &[Event], card: usize) -> Option<f64> {
    let (mut sum, mut n, mut arrived) = (0, 0u64, None);
    for e in trace.iter().filter(|e| usize::from(e.card) == card) {
        match e.kind {
            Kind::RxBeat if e.last && matches!(read(&e.head), Some(Packet::Request(_))) => arrived = Some(e.cycle),
            Kind::WriteAddress => {
                if let Some(at) = arrived.take() {
                    sum += e.cycle - at;
                    n += 1;
                }
            }
            _ => {}
        }
    }
    (n > 0).then(|| sum as f64 / n as f64)
}
