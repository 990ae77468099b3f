//! A model end: packet delivery with as much of semantics as WRITE and a fetching atomic need, from frames to memory. Frames in, frames out, completions.
mod frames;
mod target;
#[cfg(test)]
mod tests;

pub use frames::{headers, packet, Description, Unused};
pub use target::{Arrived, Target};

use crate::model::{Action, Config, Counter, Event, Failure, Message, Mode, Packet, Pds, Peer};
use crate::wire::{build, parse, Addresses, Bad, Carriage, Message as Frame, Registers, CONTROL_DSCP};
use ferric_abi::uet::codes::ReturnCode;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// How frames of an end look.
#[derive(Clone, Debug)]
pub struct Outlook {
    /// Registers of the wire.
    pub registers: Registers,
    /// IP protocol instead of UDP.
    pub native: Option<u8>,
    /// DSCP of requests.
    pub data_dscp: u8,
}

/// How a message of ours ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What the program calls it.
    pub token: u64,
    /// The code of the target, or why there is none.
    pub status: Result<u8, Failure>,
    /// What a fetching atomic found.
    pub data: Option<u64>,
}

/// A message of ours.
#[derive(Clone, Debug)]
struct Outgoing {
    description: Description,
    data: Vec<u8>,
    /// Packets that are not answered.
    left: u32,
    code: u8,
    found: Option<u64>,
}

/// A pair of addresses, which is what packet delivery calls a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    addresses: Addresses,
    mac: u64,
}

/// Bits of a message id that are its place; those above tell lives apart.
const PLACE_BITS: u32 = 12;
/// ECT(0).
const ECT: u8 = 2;
const CE: u8 = 3;
const HOPS: u8 = 64;

/// A model end.
pub struct End {
    /// Packet delivery.
    pub pds: Pds,
    /// Its memory, and what is being received.
    pub target: Target,
    outlook: Outlook,
    mac: u64,
    own: BTreeSet<u128>,
    neighbours: BTreeMap<u128, u64>,
    lines: Vec<Line>,
    by_addresses: BTreeMap<(u128, u128), Peer>,
    outgoing: BTreeMap<u16, Outgoing>,
    next_id: u16,
    frames: VecDeque<Vec<u8>>,
    completions: Vec<Completion>,
    /// How often what was reached.
    pub counters: BTreeMap<Counter, u64>,
    /// Frames that were not taken, by reason.
    pub bad: BTreeMap<Bad, u64>,
    /// Packets that the model has no use for, by reason.
    pub unused: BTreeMap<Unused, u64>,
    /// Frames from or to addresses that are nobody's.
    pub strangers: u64,
}

impl End {
    /// An end with a MAC address, addresses of its own and `bytes` of memory.
    pub fn new(config: Arc<Config>, outlook: Outlook, mac: u64, own: &[u128], bytes: usize) -> Self {
        let (counters, bad, unused) = Default::default();
        Self {
            target: Target::new(bytes),
            pds: Pds::new(config),
            outlook,
            mac,
            own: own.iter().copied().collect(),
            neighbours: BTreeMap::new(),
            lines: Vec::new(),
            by_addresses: BTreeMap::new(),
            outgoing: BTreeMap::new(),
            next_id: 0,
            frames: VecDeque::new(),
            completions: Vec::new(),
            counters,
            bad,
            unused,
            strangers: 0,
        }
    }

    /// Makes an address of another end known.
    pub fn neighbour(&mut self, address: u128, mac: u64) {
        self.neighbours.insert(address, mac);
    }

    /// The line of a pair of addresses. None: nobody's.
    fn line(&mut self, own: u128, other: u128) -> Option<Peer> {
        if let Some(line) = self.by_addresses.get(&(own, other)) {
            return Some(*line);
        }
        let mac = *self.neighbours.get(&other)?;
        let small = |address: u128| u32::try_from(address).ok();
        let addresses = match (small(own), small(other)) {
            (Some(own), Some(other)) => Addresses::V4(own, other),
            _ => Addresses::V6(own, other),
        };
        self.lines.push(Line { addresses, mac });
        let line = (self.lines.len() - 1) as Peer;
        self.by_addresses.insert((own, other), line);
        Some(line)
    }

    /// Posts a message from an address of ours to another's. False: no such neighbour, or 4,095 messages are under way.
    pub fn post(&mut self, own: u128, other: u128, mode: Mode, description: Description, data: Vec<u8>) -> bool {
        let Some(peer) = self.line(own, other).filter(|_| self.outgoing.len() < (1 << PLACE_BITS) - 1) else { return false };
        let place = |id: u16| id & ((1 << PLACE_BITS) - 1);
        let taken = |id: u16| place(id) == 0 || self.outgoing.keys().any(|other| place(*other) == place(id));
        let mut id = self.next_id.wrapping_add(1);
        while taken(id) {
            id = id.wrapping_add(1);
        }
        self.next_id = id;
        let (bytes, mtu) = (data.len() as u32, self.pds.config().mtu);
        let left = bytes.div_ceil(mtu).max(1);
        let fetch = description.fetch;
        self.outgoing.insert(id, Outgoing { description, data, left, code: ReturnCode::Ok as u8, found: None });
        self.step(Event::Post { peer, mode, message: Message { id, bytes, fetch } });
        true
    }

    /// Lets packet delivery execute an event, and does what it says.
    pub fn step(&mut self, event: Event) {
        let actions = self.pds.step(event);
        self.act(actions, None);
    }

    /// A frame has come.
    pub fn receive(&mut self, frame: &[u8], now: u64) {
        self.pds.at(now);
        let parsed = match parse(frame, &self.outlook.registers) {
            Ok(parsed) => parsed,
            Err(bad) => return *self.bad.entry(bad).or_insert(0) += 1,
        };
        let (source, destination) = (parsed.carriage.addresses.source(), parsed.carriage.addresses.destination());
        let Some(from) = self.own.contains(&destination).then(|| self.line(destination, source)).flatten() else {
            return self.strangers += 1;
        };
        let packet = match packet(&parsed) {
            Ok(packet) => packet,
            Err(unused) => return *self.unused.entry(unused).or_insert(0) += 1,
        };
        let event = Event::Received { from, packet, trim: parsed.trim, ce: parsed.carriage.ecn == CE, ev: parsed.carriage.entropy };
        let actions = self.pds.step(event);
        self.act(actions, Some((&parsed.ses, parsed.payload, now)));
    }

    /// Time passes: timers, and semantics that are done with packets.
    pub fn tick(&mut self, now: u64) {
        self.step(Event::Tick(now));
        while let Some((pdc, psn, response, keep)) = self.target.finished(now) {
            self.step(Event::Done { pdc, psn, response, keep });
        }
    }

    /// When it wants to be told the time.
    pub fn deadline(&self) -> Option<u64> {
        [self.pds.deadline(), self.target.deadline()].into_iter().flatten().min()
    }

    /// The next frame that goes out: what answers goes first, then what packet delivery sends.
    pub fn transmit(&mut self, now: u64) -> Option<Vec<u8>> {
        self.pds.at(now);
        if self.frames.is_empty() && self.pds.ready() {
            self.step(Event::Grant);
        }
        self.frames.pop_front()
    }

    /// Whether it has something to send.
    pub fn ready(&self) -> bool {
        !self.frames.is_empty() || self.pds.ready()
    }

    /// Messages of ours that have ended since the last call.
    pub fn completions(&mut self) -> Vec<Completion> {
        std::mem::take(&mut self.completions)
    }

    /// Messages of ours that have not ended.
    pub fn under_way(&self) -> usize {
        self.outgoing.len()
    }

    fn act(&mut self, actions: Vec<Action>, came: Option<(&crate::wire::Ses, Vec<u8>, u64)>) {
        for action in actions {
            match action {
                Action::Transmit { to, packet, ev, control } => self.send(to, &packet, ev, control),
                Action::Deliver { pdc, from, psn, body, oldest } => {
                    let Some((ses, payload, now)) = &came else { continue };
                    if let Err(code) = self.target.take((pdc, from, psn), &body, oldest, ses, payload, *now) {
                        self.step(Event::Refuse { pdc, psn, code });
                    }
                }
                Action::Answered { message, response, .. } => {
                    let Some(out) = self.outgoing.get_mut(&message) else { continue };
                    out.left -= 1;
                    if let Some(response) = response.filter(|r| r.code != ReturnCode::Ok as u8) {
                        out.code = response.code;
                    }
                    out.found = response.and_then(|r| r.data).or(out.found);
                    if out.left == 0 {
                        let completion = Completion { token: out.description.header_data, status: Ok(out.code), data: out.found };
                        self.completions.push(completion);
                        self.outgoing.remove(&message);
                    }
                }
                Action::Failed { message, why } => {
                    if let Some(out) = self.outgoing.remove(&message) {
                        self.completions.push(Completion { token: out.description.header_data, status: Err(why), data: None });
                    }
                }
                Action::Gone { pdc, from } => self.target.gone(pdc, from),
                Action::Count(counter) => *self.counters.entry(counter).or_insert(0) += 1,
            }
        }
    }

    fn send(&mut self, to: Peer, packet: &Packet, ev: u16, control: bool) {
        let line = self.lines[to as usize];
        let mut payload = Vec::new();
        let out = if let Packet::Request { body, .. } = packet { self.outgoing.get(&body.message).map(|out| (out, body)) } else { None };
        if let Some((out, body)) = out {
            payload = out.data[body.offset as usize..(body.offset + body.bytes) as usize].to_vec();
        }
        let (pds, ses, data) = headers(packet, out.map(|(out, _)| &out.description));
        payload.extend(data);
        let (dscp, ecn) = if control { (CONTROL_DSCP, 0) } else { (self.outlook.data_dscp, ECT) };
        let carriage = Carriage { dst_mac: line.mac, src_mac: self.mac, tag: None, addresses: line.addresses, dscp, ecn, hops: HOPS, native: self.outlook.native, entropy: ev };
        self.frames.push_back(build(&Frame { carriage, pds, ses, payload: &payload }, &self.outlook.registers));
    }
}
