//! The good pair: the card and a model end, which write to each other; each byte is verified.
use super::{address, number, Lane, Way, OPEN};
use crate::pair::Error;
use crate::traffic::pattern;
use ferric_abi::uet::codes::ReturnCode;
use ferric_driver::{Access, MemoryRegion, UetEnd, UetWrite};
use ferric_uet::end::{Description, End, Outlook};
use ferric_uet::model::{Config, Mode};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Cycles that a frame is on the wire, and bytes of it a cycle.
const DELAY: u64 = 50;
const RATE: u64 = 8;
/// Messages under way in each direction, and bytes of the largest.
const WINDOW: usize = 4;
const LARGEST: usize = 1500;
/// The model end's memory begins with places for the card's messages.
const MEMORY: usize = WINDOW * LARGEST;

/// The model's end has the parameters of the card (`hdl/src/uet/settings.rs`).
fn config() -> Config {
    Config {
        pool_bits: 4,
        places: 15,
        share: 11,
        peer_share: 5,
        peer_initiators: 4,
        low: 0,
        window: 128,
        default_mpr: 1,
        first_window: 128,
        records: 1024,
        kept: 63,
        rto: 200,
        nack_wait: 50,
        clear_wait: 50,
        tail_loss: 50,
        safety: 800,
        linger_cut: false,
        entropies: 16,
        ..Config::default()
    }
}

/// A direction: which place has which message.
#[derive(Default)]
struct Direction {
    free: Vec<usize>,
    /// Place and bytes.
    under_way: BTreeMap<u64, (usize, usize)>,
    next: u64,
}

/// Both ends' messages.
pub struct Good {
    /// The model end.
    pub end: End,
    way: Way,
    peer: u16,
    from: MemoryRegion,
    to: MemoryRegion,
    out: Direction,
    back: Direction,
    /// Frames to the end, by the cycle in which they come; the cycle in which the end may send again, and its frames on the way.
    coming: VecDeque<(u64, Vec<u8>)>,
    free_at: u64,
    leaving: VecDeque<(u64, Vec<u8>)>,
    ticked: u64,
    /// Messages and bytes that were verified: of the card, and to it.
    pub done: [u64; 2],
    /// See `done`.
    pub bytes: [u64; 2],
}

impl Good {
    /// The good peer of `lane`, under the number `peer`.
    pub fn new(lane: &Lane, peer: u16, way: Way) -> Result<Self, Error> {
        lane.befriend(peer, &way, &lane.pd)?;
        let outlook = Outlook { registers: super::judge::registers(), native: None, data_dscp: 8 };
        let mut end = End::new(Arc::new(config()), outlook, number(way.mac), &[address(way.other)], MEMORY);
        end.neighbour(address(way.own), number(lane.mac));
        let places = || Direction { free: (0..WINDOW).collect(), ..Default::default() };
        Ok(Self {
            end,
            way,
            peer,
            from: lane.region(&lane.pd, MEMORY, 0, Access::LOCAL_WRITE)?,
            to: lane.region(&lane.pd, MEMORY, 0, OPEN)?,
            out: places(),
            back: places(),
            coming: VecDeque::new(),
            free_at: 0,
            leaving: VecDeque::new(),
            ticked: 0,
            done: [0; 2],
            bytes: [0; 2],
        })
    }

    /// The region that the end writes to.
    pub fn place(&self) -> (u64, u64) {
        (self.to.addr(), self.to.rkey().into())
    }

    /// It has left the card.
    pub fn sent(&mut self, cycle: u64, frame: Vec<u8>) {
        self.coming.push_back((cycle + DELAY, frame));
    }

    /// Messages of a direction that are under way: the card's, and those to it.
    pub fn under_way(&self) -> [usize; 2] {
        [self.out.under_way.len(), self.back.under_way.len()]
    }

    /// Posts what the windows allow.
    pub fn post(&mut self, lane: &Lane) {
        while let Some(place) = self.out.free.pop() {
            let n = self.out.next;
            let (at, bytes) = (place * LARGEST, Self::text(0, n));
            self.from.write(at, &bytes);
            let (addr, lkey) = (self.from.addr() + at as u64, self.from.lkey());
            lane.ctx.uet_write(&UetWrite { peer: self.peer, ordered: n % 3 == 2, length: bytes.len() as u32, addr, lkey, raddr: at as u64, rkey: 0, tag: n as u32 });
            self.out.under_way.insert(n, (place, bytes.len()));
            self.out.next += 1;
        }
        while let Some(place) = self.back.free.pop() {
            let n = self.back.next;
            let (at, bytes) = (place * LARGEST, Self::text(1, n));
            self.back.under_way.insert(n, (place, bytes.len()));
            let description = Description { fetch: false, job: 1, pid: 1, index: 1, offset: self.to.addr() + at as u64, key: self.to.rkey().into(), header_data: n };
            let mode = if n % 3 == 2 { Mode::Rod } else { Mode::Rud };
            assert!(self.end.post(address(self.way.other), address(self.way.own), mode, description, bytes), "the model end takes a message");
            self.back.next += 1;
        }
    }

    /// Bytes of message `n` of a direction.
    fn text(direction: u64, n: u64) -> Vec<u8> {
        let len = (n.wrapping_mul(0x9e37_79b9) >> 7) as usize % (LARGEST - 1) + 1;
        (0..len).map(|i| pattern(2 * n + direction, i)).collect()
    }

    /// An end of the card's ring that is of this pair.
    pub fn ended(&mut self, end: &UetEnd) -> Result<(), String> {
        let n = u64::from(end.tag);
        let Some((place, len)) = self.out.under_way.remove(&n) else { return Err(format!("{end:?} of no message")) };
        if (end.why, end.code) != (0, ReturnCode::Ok as u8) {
            return Err(format!("good message {n} of the card: {end:?}"));
        }
        let at = place * LARGEST;
        if self.end.target.memory[at..at + len] != Self::text(0, n) {
            return Err(format!("good message {n} of the card: other bytes have come"));
        }
        self.out.free.push(place);
        self.done[0] += 1;
        self.bytes[0] += len as u64;
        Ok(())
    }

    /// A cycle of the end's; gives the frames that come to the card.
    pub fn step(&mut self, cycle: u64, ticks: u64) -> Result<Vec<Vec<u8>>, String> {
        let mut moved = false;
        while self.coming.front().is_some_and(|(at, _)| *at <= cycle) {
            let Some((_, frame)) = self.coming.pop_front() else { break };
            self.end.receive(&frame, ticks);
            moved = true;
        }
        if ticks != self.ticked || moved {
            self.ticked = ticks;
            if self.end.deadline().is_some_and(|at| at <= ticks) {
                self.end.tick(ticks);
            }
        }
        while self.free_at <= cycle {
            let Some(frame) = self.end.transmit(ticks) else { break };
            self.free_at = cycle + (frame.len() as u64).div_ceil(RATE);
            self.leaving.push_back((cycle + DELAY, frame));
        }
        let mut frames = Vec::new();
        while self.leaving.front().is_some_and(|(at, _)| *at <= cycle) {
            let Some((_, frame)) = self.leaving.pop_front() else { break };
            frames.push(frame);
        }
        for completion in self.end.completions() {
            let n = completion.token;
            let Some((place, len)) = self.back.under_way.remove(&n) else { return Err(format!("{completion:?} of no message")) };
            if completion.status != Ok(ReturnCode::Ok as u8) {
                return Err(format!("good message {n} to the card: {completion:?}"));
            }
            if self.to.to_vec(place * LARGEST, len) != Self::text(1, n) {
                return Err(format!("good message {n} to the card: other bytes have come"));
            }
            self.back.free.push(place);
            self.done[1] += 1;
            self.bytes[1] += len as u64;
        }
        Ok(frames)
    }
}
