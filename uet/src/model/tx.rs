//! The transmit half of a PDC: what is out, what is answered, what is lost (UE 3.5.11; loss by the rules of docs/uet.md).
use super::spray::{Spray, Told};
use super::types::{Body, Config, Message, Mode, Sack};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a PSN carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// A packet of a message.
    Data(Body),
    /// CLOSE_COMMAND.
    Close,
    /// CLOSE_REQUEST.
    CloseRequest,
}

/// A packet that is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// What it carries.
    pub content: Content,
    /// Path that it took last.
    pub slot: u16,
    /// Place in the order of sending.
    pub order: u32,
    /// When it was sent last.
    pub time: u64,
    /// It was sent more than once.
    pub again: bool,
    /// The peer has it, and has not answered it.
    pub sacked: bool,
}

/// Holes that an ACK is examined for at most.
const HOLES_PER_ACK: usize = 4;
/// PSNs behind CACK among which a stalled sender looks for holes.
const STALL_REACH: u32 = 64;
/// An ACK in so many may report a duplicate before the order on paths counts no more.
const DUPLICATE_SHARE: u32 = 16;
/// ACKs before that share is judged.
const SHARE_FROM: u32 = 64;
/// Sign of a difference of `rcvd_bytes`, which has 24 bits.
const BYTES_SIGN: u32 = 1 << 23;

/// Transmit half.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tx {
    /// Start_PSN.
    pub start: u32,
    /// Packets sent so far.
    pub next: u32,
    /// Packets that the highest CACK covers.
    pub cack: u32,
    /// Packets beyond it that may be out.
    pub range: u32,
    /// What is out and not answered, by place.
    pub records: BTreeMap<u32, Record>,
    /// Messages to be sent, with the first byte that is not.
    pub queue: VecDeque<(Message, u32)>,
    /// Places to be sent again.
    pub resend: BTreeSet<u32>,
    /// Places to be sent again after a wait.
    pub wait: BTreeSet<u32>,
    /// Time-outs in a row.
    pub tries: u8,
    /// Refusals for want of something in a row.
    pub refusals: u8,
    /// ROD has gone back for this loss.
    pub rewound: bool,
    /// Slowest round trip measured.
    pub slowest: u64,
    /// Place behind the newest that the peer is known to have.
    known: u32,
    /// Paths.
    pub spray: Spray,
    order: u32,
    acked_order: BTreeMap<u16, u32>,
    newest_bytes: Option<u32>,
    unasked: u32,
    acks: u32,
    duplicates: u32,
}

/// An answered packet.
pub type Answer = (u32, Record);

impl Tx {
    /// Nothing sent.
    pub fn new(start: u32, range: u32, spray: Spray) -> Self {
        let (records, queue, resend, wait) = Default::default();
        Self {
            start,
            next: 0,
            cack: 0,
            range,
            records,
            queue,
            resend,
            wait,
            tries: 0,
            refusals: 0,
            rewound: false,
            slowest: 0,
            known: 0,
            spray,
            order: 0,
            acked_order: BTreeMap::new(),
            newest_bytes: None,
            unasked: 0,
            acks: 0,
            duplicates: 0,
        }
    }

    /// Place of a PSN.
    pub fn place(&self, psn: u32) -> u32 {
        psn.wrapping_sub(self.start)
    }

    /// PSN of a place.
    pub fn psn(&self, place: u32) -> u32 {
        self.start.wrapping_add(place)
    }

    /// Packets from the start on that are all answered.
    pub fn cleared(&self) -> u32 {
        self.records.keys().next().copied().unwrap_or(self.next)
    }

    /// Nothing to send and nothing out.
    pub fn idle(&self) -> bool {
        self.records.is_empty() && self.queue.is_empty()
    }

    /// Whether the window has room for a packet that has not been sent.
    pub fn room(&self) -> bool {
        self.next < self.cack.saturating_add(self.range)
    }

    /// Cuts the next packet off the queue.
    pub fn cut(&mut self, mtu: u32) -> Option<Body> {
        let (message, offset) = self.queue.front_mut()?;
        let bytes = mtu.min(message.bytes - *offset);
        let body = Body { message: message.id, offset: *offset, bytes, total: message.bytes, fetch: message.fetch };
        *offset += bytes;
        if body.last() {
            self.queue.pop_front();
        }
        Some(body)
    }

    /// Records a packet as sent, for the first time or again. Gives its entropy value.
    pub fn sent(&mut self, place: u32, content: Content, now: u64, config: &Config) -> u16 {
        let (slot, ev) = self.spray.choose();
        let again = self.records.contains_key(&place);
        // Without the rule the order is of no use, and would only tell states apart.
        self.order += u32::from(config.path_order);
        self.records.insert(place, Record { content, slot, order: self.order, time: now, again, sacked: false });
        ev
    }

    /// Whether a packet sent now asks for its ACK.
    pub fn asks(&mut self, place: u32, bytes: u32, config: &Config) -> bool {
        self.unasked += bytes;
        let nothing_more = self.queue.is_empty() && self.resend.is_empty();
        let ask = nothing_more || place % 16 == 15 || self.unasked >= config.ack_bytes || (self.next - self.cack) * 4 >= self.range * 3;
        if ask {
            self.unasked = 0;
        }
        ask
    }

    /// An ACK that is not older than all before it: its zero bits mean something, for ACKs overtake each other.
    pub fn fresh(&mut self, sack: &Sack) -> bool {
        let fresh = self.newest_bytes.is_none_or(|newest| sack.bytes.wrapping_sub(newest) & (2 * BYTES_SIGN - 1) < BYTES_SIGN);
        if fresh {
            self.newest_bytes = Some(sack.bytes);
        }
        fresh
    }

    /// An ACK was heard; whether it was for a packet that the peer had already.
    pub fn heard(&mut self, duplicate: bool, config: &Config) {
        self.acks = self.acks.saturating_add(u32::from(config.path_order));
        self.duplicates += u32::from(duplicate && config.path_order);
    }

    /// The peer has what went by `slot` as number `order`.
    pub fn arrived(&mut self, record: &Record, told: Told) {
        let newest = self.acked_order.entry(record.slot).or_insert(0);
        *newest = record.order.max(*newest);
        self.spray.told(record.slot, told);
    }

    /// What the bits of a SACK say. Gives the places that they newly cover.
    pub fn sacked(&mut self, sack: &Sack) -> Vec<u32> {
        let from = self.place(sack.base);
        let places: Vec<u32> = (0..64).filter(|bit| sack.bitmap >> bit & 1 == 1).map(|bit| from.wrapping_add(bit)).collect();
        let mut new = Vec::new();
        for place in places {
            if let Some(record) = self.records.get_mut(&place).filter(|record| !record.sacked) {
                record.sacked = true;
                self.known = self.known.max(place + 1);
                new.push(place);
                self.resend.remove(&place);
                let record = *record;
                self.arrived(&record, Told::Ok);
            }
        }
        new
    }

    /// Takes the records of all places in front of `upto`.
    pub fn covered(&mut self, upto: u32) -> Vec<Answer> {
        let rest = self.records.split_off(&upto);
        let taken = std::mem::replace(&mut self.records, rest);
        taken.into_iter().inspect(|(place, _)| self.forget(*place)).collect::<Vec<_>>()
    }

    /// Takes the record of one place.
    pub fn answered(&mut self, place: u32) -> Option<Answer> {
        let record = self.records.remove(&place)?;
        self.known = self.known.max(place + 1);
        self.forget(place);
        Some((place, record))
    }

    fn forget(&mut self, place: u32) {
        self.resend.remove(&place);
        self.wait.remove(&place);
    }

    /// Rule 2: what a fresh ACK speaks of, has not come, and was overtaken on its own path. Gives how many are lost.
    pub fn overtaken(&mut self, sack: &Sack, config: &Config) -> usize {
        let trusted = self.acks < SHARE_FROM || self.duplicates * DUPLICATE_SHARE <= self.acks;
        if !config.path_order || !trusted {
            return 0;
        }
        let from = self.place(sack.base);
        let upto = from.wrapping_add(64 - sack.bitmap.leading_zeros());
        if from > self.next || upto <= from {
            return 0;
        }
        let holes = self.records.range(from..upto).filter(|(place, record)| !record.sacked && !self.resend.contains(place) && !self.wait.contains(place)).take(HOLES_PER_ACK);
        let lost: Vec<(u32, u16)> = holes.filter(|(_, record)| self.acked_order.get(&record.slot).is_some_and(|newest| *newest > record.order)).map(|(place, record)| (*place, record.slot)).collect();
        for (place, slot) in &lost {
            self.resend.insert(*place);
            self.spray.told(*slot, Told::Timeout);
        }
        lost.len()
    }

    /// Whether rule 3 has something to look at: holes, and nothing new may be sent.
    pub fn stalled(&self) -> bool {
        let blocked = self.queue.is_empty() || !self.room();
        blocked && self.records.range(..self.known).any(|(_, record)| !record.sacked)
    }

    /// How long a hole may be old before it is taken as lost: a quarter more than the slowest round trip.
    pub fn stall_time(&self, config: &Config) -> u64 {
        if self.slowest == 0 {
            config.tail_loss
        } else {
            (self.slowest + self.slowest / 4).max(config.stall_least)
        }
    }

    /// Rule 3. Gives how many holes are sent again.
    pub fn stall(&mut self, now: u64, config: &Config) -> usize {
        let (age, reach) = (self.stall_time(config), self.cack.saturating_add(STALL_REACH));
        let lost: Vec<u32> =
            self.records.range(..self.known.min(reach)).filter(|(place, record)| !record.sacked && now - record.time >= age && !self.wait.contains(place)).map(|(place, _)| *place).collect();
        let before = self.resend.len();
        self.resend.extend(lost);
        self.resend.len() - before
    }

    /// Rule 4: what a time-out sends again. `Err`: the oldest has come and only its answer is missing.
    pub fn expired(&mut self, now: u64, mode: Mode, timeout: u64) -> Result<(), u32> {
        let Some((oldest, first)) = self.records.iter().next().map(|(place, record)| (*place, *record)) else { return Ok(()) };
        for (place, record) in &self.records {
            // ROD's target has dropped all that was behind the loss.
            let due = *place == oldest || mode == Mode::Rod || now - record.time >= timeout;
            if due && !record.sacked && !self.wait.contains(place) && self.resend.insert(*place) {
                self.spray.told(record.slot, Told::Timeout);
            }
        }
        if first.sacked {
            return Err(oldest);
        }
        Ok(())
    }

    /// Rule 6: ROD goes back to the place that the peer expects. Whether it does.
    pub fn rewind(&mut self, expected: u32) -> bool {
        if self.rewound || expected > self.next {
            return false;
        }
        self.rewound = true;
        self.resend.extend(self.records.range(expected..).map(|(place, _)| *place));
        true
    }

    /// Messages that are not completely answered.
    pub fn unfinished(&self) -> BTreeSet<u16> {
        let out = self.records.values().filter_map(|record| if let Content::Data(body) = record.content { Some(body.message) } else { None });
        out.chain(self.queue.iter().map(|(message, _)| message.id)).collect()
    }
}
