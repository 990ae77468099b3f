//! Memory of an end: WRITE and FETCHING_ATOMIC executed in it, after some time, as a host's memory takes.
use crate::model::{random, Body, Peer, Response};
use crate::wire::Ses;
use ferric_abi::uet::codes::{NackCode, ReturnCode};
use std::collections::{BTreeMap, VecDeque};

/// A message that has arrived whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Its header data.
    pub header_data: u64,
    /// Bytes.
    pub bytes: u32,
}

/// A message of several packets that is being received.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    left: u32,
    total: u32,
    header_data: Option<u64>,
    failed: bool,
}

/// A packet that semantics have.
struct Task {
    due: u64,
    pdc: u16,
    psn: u32,
    from: Peer,
    body: Body,
    write: Write,
}

struct Write {
    offset: u64,
    header_data: Option<u64>,
    payload: Vec<u8>,
}

/// Memory, and what is being received.
pub struct Target {
    /// Memory: buffers are parts of it.
    pub memory: Vec<u8>,
    /// Messages of several packets that can be received at a time; each PDC has one more, for its oldest packet.
    pub lines: usize,
    /// Packets that the host's memory takes at a time.
    pub tasks: usize,
    /// Ticks that a packet takes, at most.
    pub slow: u64,
    incoming: BTreeMap<(Peer, u16, u16), Incoming>,
    work: VecDeque<Task>,
    arrived: Vec<Arrived>,
    random: u64,
}

impl Target {
    /// `bytes` of memory that are zero.
    pub fn new(bytes: usize) -> Self {
        Self { memory: vec![0; bytes], lines: 4096, tasks: 512, slow: 0, incoming: BTreeMap::new(), work: VecDeque::new(), arrived: Vec::new(), random: 1 }
    }

    /// Messages that have arrived since the last call.
    pub fn arrived(&mut self) -> Vec<Arrived> {
        std::mem::take(&mut self.arrived)
    }

    /// Nothing is being received.
    pub fn at_rest(&self) -> bool {
        self.incoming.is_empty() && self.work.is_empty()
    }

    /// When the next packet is done.
    pub fn deadline(&self) -> Option<u64> {
        self.work.front().map(|task| task.due)
    }

    /// Takes a packet. `Err`: there is no room.
    pub(super) fn take(&mut self, (pdc, from, psn): (u16, Peer, u32), body: &Body, oldest: bool, ses: &Ses, payload: &[u8], now: u64) -> Result<(), NackCode> {
        if self.work.len() >= self.tasks {
            return Err(NackCode::NoResource);
        }
        let (offset, header_data) = match ses {
            Ses::First(head, _) => (head.offset(), Some(head.header_data())),
            Ses::Next(head, _) => (head.offset(), None),
            Ses::Small(head, _) => (head.offset(), Some(0)),
            Ses::Medium(head, _) => (if head.hd() { 0 } else { head.data() }, Some(0)),
            _ => (0, None),
        };
        let (key, several) = ((from, pdc, body.message), body.bytes != body.total);
        if several && !self.incoming.contains_key(&key) {
            if self.incoming.len() >= self.lines && !oldest {
                return Err(NackCode::NoMessage);
            }
            // The first packet to come makes the line, whichever it is.
            self.incoming.insert(key, Incoming { left: body.total, total: body.total, header_data: None, failed: false });
        }
        let write = Write { offset: offset.wrapping_add(body.offset.into()), header_data, payload: payload.to_vec() };
        // The host answers in order.
        let due = (now + if self.slow > 0 { random(&mut self.random) % self.slow } else { 0 }).max(self.work.back().map_or(0, |task| task.due));
        self.work.push_back(Task { due, pdc, psn, from, body: *body, write });
        Ok(())
    }

    /// The next packet that is done by now: its PDC, its PSN, its answer, and whether that must not be lost.
    pub(super) fn finished(&mut self, now: u64) -> Option<(u16, u32, Response, bool)> {
        self.work.front().filter(|task| task.due <= now)?;
        let Task { pdc, psn, from, body, write, .. } = self.work.pop_front()?;
        let (code, data) = self.execute(&body, &write);
        self.account(from, pdc, &body, &write, code != ReturnCode::Ok);
        let plain = code == ReturnCode::Ok && data.is_none();
        let length = if code == ReturnCode::Ok { body.total } else { 0 };
        Some((pdc, psn, Response { message: body.message, code: code as u8, length, data }, !plain))
    }

    /// Changes memory.
    fn execute(&mut self, body: &Body, write: &Write) -> (ReturnCode, Option<u64>) {
        let at = usize::try_from(write.offset).ok().filter(|at| at.checked_add(write.payload.len()).is_some_and(|end| end <= self.memory.len()));
        let Some(at) = at else { return (ReturnCode::BadAddress, None) };
        let place = &mut self.memory[at..at + write.payload.len()];
        if !body.fetch {
            place.copy_from_slice(&write.payload);
            return (ReturnCode::Ok, None);
        }
        let (Some(place), Some(operand)) = (place.first_chunk_mut::<8>(), write.payload.first_chunk::<8>()) else { return (ReturnCode::AmoUnsupportedSize, None) };
        if at % 8 != 0 {
            return (ReturnCode::AmoUnaligned, None);
        }
        let found = u64::from_le_bytes(*place);
        *place = found.wrapping_add(u64::from_be_bytes(*operand)).to_le_bytes();
        (ReturnCode::Ok, Some(found))
    }

    /// Counts a message's bytes down; it is complete when all are there and its first packet was seen.
    fn account(&mut self, from: Peer, pdc: u16, body: &Body, write: &Write, failed: bool) {
        let key = (from, pdc, body.message);
        let several = body.bytes != body.total;
        let mut line = Incoming { left: body.total, total: body.total, header_data: None, failed: false };
        let line = if several { self.incoming.get_mut(&key) } else { Some(&mut line) };
        let Some(line) = line else { return };
        line.left = line.left.saturating_sub(body.bytes);
        line.header_data = write.header_data.or(line.header_data);
        line.failed |= failed;
        let (whole, arrived) = (line.left == 0 && line.header_data.is_some(), Arrived { header_data: line.header_data.unwrap_or(0), bytes: line.total });
        if whole && !line.failed && !body.fetch {
            self.arrived.push(arrived);
        }
        if whole && several {
            self.incoming.remove(&key);
        }
    }

    /// A PDC has ended: its messages will not be completed.
    pub(super) fn gone(&mut self, pdc: u16, from: Peer) {
        self.incoming.retain(|(peer, id, _), _| *peer != from || *id != pdc);
        self.work.retain(|task| task.pdc != pdc || task.from != from);
    }
}
