//! A ring that runs: chains are taken from it in order, and used in the same order. The available side's state machine is in `turn.rs`, the used side in `used.rs`.
use super::memory::{fetch, Memory};
use super::ring::{Format, Ring};
use super::turn::Phase;
use super::walk::{walk, Chain, Direction, Head, Rules, Walked};
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::{feature, AvailHead, PackedDesc};
use std::collections::VecDeque;

/// A chain in hand, with its number in the order of the ring.
#[derive(Clone, Debug)]
pub struct Taken {
    /// Its number.
    pub number: u64,
    /// Its buffers.
    pub chain: Chain,
}

/// What came of looking for a chain.
#[derive(Debug)]
pub enum Took {
    /// A good one.
    Chain(Taken),
    /// One that has been rejected for this cause; what has to be given back is on its way.
    Rejected(VirtioCause),
    /// The ring is empty.
    Nothing,
}

/// A chain that has not been given back.
#[derive(Clone, Copy)]
pub(super) struct Outstanding {
    pub(super) id: u16,
    pub(super) slots: u32,
    /// Bytes written into it, once it is done with.
    pub(super) done: Option<u32>,
}

/// How many chains went where since the ring was enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Heads that were found in the ring.
    pub available: u64,
    /// Heads that were no descriptor, and skipped.
    pub skipped: u64,
    /// Chains given back.
    pub used: u64,
    /// Chains not yet given back: in stock, in hand, or done with.
    pub held: u64,
}

impl Balance {
    /// Every chain is in one place.
    pub fn is_conserved(&self) -> bool {
        self.available == self.skipped + self.used + self.held
    }
}

/// A ring that runs. An error is the cause for which the function needs a reset; after one nothing may be asked of the ring but [`Engine::finish`] and what is in hand.
pub struct Engine {
    pub(super) ring: Ring,
    /// EVENT_IDX has been negotiated.
    pub(super) events: bool,
    indirect: bool,
    direction: Direction,
    /// Place of the next chain to be taken.
    pub(super) fetch: u32,
    /// Split: available index as last read.
    seen: u32,
    /// Place of the next used entry.
    pub(super) used: u32,
    /// Place up to which the driver has been told, or did not want to be.
    pub(super) signalled: u32,
    /// Used entries have been written since the driver's event was read.
    pub(super) told: bool,
    /// In the order of the ring; chains that wait to be used are among them.
    pub(super) outstanding: VecDeque<Outstanding>,
    pub(super) balance: Balance,
    pub(super) phase: Phase,
    pub(super) pending: bool,
}

impl Engine {
    /// A ring from its beginning, for a driver that has taken `features`.
    pub fn new(ring: Ring, features: u64, direction: Direction) -> Self {
        Self {
            ring,
            events: features & feature::EVENT_IDX != 0,
            indirect: features & feature::INDIRECT_DESC != 0,
            direction,
            fetch: 0,
            seen: 0,
            used: 0,
            signalled: 0,
            told: true,
            outstanding: VecDeque::new(),
            balance: Balance::default(),
            phase: Phase::Idle,
            pending: false,
        }
    }

    /// The ring goes on where an earlier one stopped: the next chain is at place `fetch`, the next used entry at `used`, both modulo the places that the ring has.
    pub fn resumed(self, fetch: u32, used: u32) -> Self {
        let [fetch, used] = [fetch, used].map(|place| self.ring.after(place, 0));
        Self { fetch, seen: fetch, used, signalled: used, ..self }
    }

    /// Place of the next used entry: the first chain that has not been given back, or the next one.
    pub fn place(&self) -> u32 {
        self.used
    }

    /// Places that no chain in hand takes.
    fn free(&self) -> u32 {
        let taken: u32 = match self.ring.format() {
            Format::Split => self.outstanding.len() as u32,
            Format::Packed => self.ring.distance(self.used, self.fetch),
        };
        self.ring.size() - taken
    }

    /// Split: reads the available index. It may not be further ahead than there are places: what the driver has not got back it cannot make available again.
    fn read_index(&mut self, memory: &mut dyn Memory) -> Result<(), VirtioCause> {
        let head = AvailHead(fetch(memory, self.ring.driver()).map_err(|_| VirtioCause::RingDma)?);
        let seen = u32::from(head.idx());
        if self.ring.distance(self.fetch, seen) > self.free() {
            return Err(VirtioCause::AvailJump);
        }
        self.seen = seen;
        Ok(())
    }

    /// Split: the next head, if there is one, whether it is a descriptor or not.
    fn next_split(&mut self, memory: &mut dyn Memory) -> Result<Option<u16>, VirtioCause> {
        if self.seen == self.fetch {
            self.read_index(memory)?;
        }
        if self.seen == self.fetch {
            return Ok(None);
        }
        let head = fetch(memory, self.ring.avail_entry(self.fetch)).map_err(|_| VirtioCause::RingDma)?;
        Ok(Some(u16::from_le_bytes(head)))
    }

    /// Packed: the descriptor at the next place, if it is available there.
    fn next_packed(&mut self, memory: &mut dyn Memory) -> Result<Option<PackedDesc>, VirtioCause> {
        let (slot, wrap) = self.ring.slot(self.fetch);
        let desc = PackedDesc(fetch(memory, self.ring.descriptor(slot)).map_err(|_| VirtioCause::RingDma)?);
        if desc.avail() != wrap || desc.used() == wrap {
            return Ok(None);
        }
        // All places are taken: the driver has made one available that it has not got back.
        if self.free() == 0 {
            return Err(VirtioCause::AvailJump);
        }
        Ok(Some(desc))
    }

    /// Whether there is a chain to be taken, by one look at the ring.
    pub fn is_available(&mut self, memory: &mut dyn Memory) -> Result<bool, VirtioCause> {
        match self.ring.format() {
            Format::Split => self.read_index(memory).map(|()| self.seen != self.fetch),
            Format::Packed => self.next_packed(memory).map(|desc| desc.is_some()),
        }
    }

    /// Takes the next chain, if there is one.
    pub fn take(&mut self, memory: &mut dyn Memory) -> Result<Took, VirtioCause> {
        let head = match self.ring.format() {
            Format::Split => match self.next_split(memory)? {
                None => return Ok(Took::Nothing),
                Some(head) if u32::from(head) >= self.ring.size() => {
                    self.fetch = self.ring.after(self.fetch, 1);
                    self.balance.available += 1;
                    self.balance.skipped += 1;
                    return Ok(Took::Rejected(VirtioCause::BadHead));
                }
                Some(head) => Head::Split(head),
            },
            Format::Packed => match self.next_packed(memory)? {
                None => return Ok(Took::Nothing),
                Some(desc) => Head::Packed(self.fetch, desc),
            },
        };
        let rules = Rules { indirect: self.indirect, direction: self.direction, free: self.free() };
        let (id, slots, took) = match walk(memory, &self.ring, &rules, head) {
            Walked::Lost(cause) => return Err(cause),
            Walked::Bad { id, slots, cause } => (id, slots, Took::Rejected(cause)),
            Walked::Good(chain) => (chain.id, chain.slots, Took::Chain(Taken { number: self.balance.available - self.balance.skipped, chain })),
        };
        self.fetch = self.ring.after(self.fetch, slots);
        self.balance.available += 1;
        self.balance.held += 1;
        self.outstanding.push_back(Outstanding { id, slots, done: matches!(took, Took::Rejected(_)).then_some(0) });
        Ok(took)
    }

    /// The chain of this number is done with; `written` bytes are in it. It is given back when all before it are. A number that is not in hand changes nothing.
    pub fn finish(&mut self, number: u64, written: u32) {
        let place = number.checked_sub(self.balance.used).and_then(|n| self.outstanding.get_mut(n as usize));
        if let Some(chain) = place.filter(|chain| chain.done.is_none()) {
            chain.done = Some(written);
        }
    }

    /// Chains that somebody works with.
    pub fn in_hand(&self) -> usize {
        self.outstanding.iter().filter(|chain| chain.done.is_none()).count()
    }

    /// Where the ring lies.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Where the chains are.
    pub fn balance(&self) -> Balance {
        self.balance
    }
}
