//! The walker: from the head of a chain to its buffers, with all checks. The same code walks split and packed rings and the indirect tables of both; where the formats differ, it asks
//! which one it is. It reads each descriptor once.
use super::memory::{fetch, Memory};
use super::ring::{Format, Ring};
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::{PackedDesc, SplitDesc, MAX_SEGMENTS};

/// Bytes that a chain of the transmit queue may have, more than any frame.
pub const MAX_TRANSMIT: u64 = 1 << 17;

/// A piece of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Bus address.
    pub addr: u64,
    /// Bytes, at least 1.
    pub length: u32,
}

/// A chain that has passed all checks of the walker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// What the used entry names: the head, or the buffer ID.
    pub id: u16,
    /// Places of the ring that it takes: 1, of a packed ring one for each descriptor.
    pub slots: u32,
    /// What the device reads, in order.
    pub readable: Vec<Segment>,
    /// What it writes, in order.
    pub writable: Vec<Segment>,
}

/// Bytes of some segments.
pub fn total(segments: &[Segment]) -> u64 {
    segments.iter().map(|s| u64::from(s.length)).sum()
}

/// What the buffers of a queue are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The device reads them: transmit queues.
    Readable,
    /// It writes them: receive queues.
    Writable,
    /// Both, first those that it reads: the control queue.
    Both,
}

/// What a queue allows.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// INDIRECT_DESC has been negotiated.
    pub indirect: bool,
    /// Use of the queue's buffers.
    pub direction: Direction,
    /// Places of the ring that are not taken by chains in hand.
    pub free: u32,
}

/// Where a chain begins.
#[derive(Clone, Copy, Debug)]
pub enum Head {
    /// Split: number of the first descriptor, below the ring's size.
    Split(u16),
    /// Packed: place of the first descriptor, and what has been read there.
    Packed(u32, PackedDesc),
}

/// What came of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Walked {
    /// The chain may be used.
    Good(Chain),
    /// It may not, but its place in the ring is known: it is to be returned with length 0.
    Bad {
        /// What the used entry names.
        id: u16,
        /// Places that it takes.
        slots: u32,
        /// Why.
        cause: VirtioCause,
    },
    /// Nobody knows where the next chain begins.
    Lost(VirtioCause),
}

/// A descriptor of either format.
struct Descriptor {
    addr: u64,
    length: u32,
    next: Option<u32>,
    write: bool,
    indirect: bool,
    id: u16,
}

/// A table of descriptors: the ring itself, or an indirect one.
#[derive(Clone, Copy)]
struct Table {
    at: u64,
    entries: u32,
    is_ring: bool,
}

impl Table {
    fn entry(&self, memory: &mut dyn Memory, n: u32) -> Option<[u8; 16]> {
        fetch(memory, self.at.checked_add(16 * u64::from(n))?).ok()
    }

    /// What entry `n` says. Of packed tables NEXT leads to the entry behind it, in the ring around its end; in indirect ones flags other than WRITE are ignored (spec 2.8.7).
    fn read(&self, format: Format, n: u32, raw: [u8; 16]) -> Descriptor {
        match format {
            Format::Split => {
                let d = SplitDesc(raw);
                Descriptor { addr: d.addr(), length: d.length(), next: d.has_next().then(|| d.next().into()), write: d.write(), indirect: d.indirect(), id: 0 }
            }
            Format::Packed => {
                let d = PackedDesc(raw);
                let goes_on = if self.is_ring { d.has_next() } else { n + 1 < self.entries };
                Descriptor { addr: d.addr(), length: d.length(), next: goes_on.then(|| (n + 1) % self.entries), write: d.write(), indirect: self.is_ring && d.indirect(), id: d.id() }
            }
        }
    }
}

/// A walk under way.
struct Walk<'a> {
    rules: &'a Rules,
    chain: Chain,
    /// Descriptors of buffers so far, empty ones among them.
    buffers: usize,
    /// A descriptor with WRITE has come.
    writes: bool,
    /// First thing wrong.
    fault: Option<VirtioCause>,
}

impl Walk<'_> {
    fn blame(&mut self, cause: VirtioCause) {
        self.fault.get_or_insert(cause);
    }

    fn add(&mut self, d: &Descriptor) {
        self.buffers += 1;
        let allowed = match self.rules.direction {
            Direction::Readable => !d.write,
            Direction::Writable => d.write,
            Direction::Both => d.write || !self.writes,
        };
        self.writes |= d.write;
        if !allowed {
            self.blame(VirtioCause::BadDirection);
        }
        if self.buffers > MAX_SEGMENTS {
            self.blame(VirtioCause::LongChain);
        }
        if self.fault.is_some() {
            return;
        }
        let into = if d.write { &mut self.chain.writable } else { &mut self.chain.readable };
        if d.length > 0 {
            into.push(Segment { addr: d.addr, length: d.length });
        }
        if self.rules.direction == Direction::Readable && total(&self.chain.readable) > MAX_TRANSMIT {
            self.blame(VirtioCause::LongChain);
        }
    }

    /// The table that a descriptor of `from` leads to, if it may.
    fn table(&self, d: &Descriptor, from: &Table) -> Option<Table> {
        let entries = d.length / 16;
        let allowed = self.rules.indirect && from.is_ring && d.next.is_none();
        (allowed && d.length % 16 == 0 && (1..=MAX_SEGMENTS as u32).contains(&entries)).then_some(Table { at: d.addr, entries, is_ring: false })
    }

    fn bad(&self, cause: VirtioCause) -> Walked {
        Walked::Bad { id: self.chain.id, slots: self.chain.slots, cause }
    }
}

/// Walks the chain that begins at `head`. The descriptors of the ring in one chain are as many as the ring has at most; those of an indirect table count for themselves, since Linux makes
/// tables that are longer than the ring.
pub fn walk(memory: &mut dyn Memory, ring: &Ring, rules: &Rules, head: Head) -> Walked {
    let format = ring.format();
    let mut table = Table { at: ring.descriptor(0), entries: ring.size(), is_ring: true };
    let (mut n, mut given, id) = match head {
        Head::Split(id) => (id.into(), None, id),
        Head::Packed(at, first) => (ring.slot(at).0, Some(first.0), first.id()),
    };
    let mut walk = Walk { rules, chain: Chain { id, slots: 1, ..Default::default() }, buffers: 0, writes: false, fault: None };
    // Descriptors that have been read in this table.
    let mut taken = 0;
    loop {
        let Some(raw) = given.take().or_else(|| table.entry(memory, n)) else {
            return if table.is_ring { Walked::Lost(VirtioCause::RingDma) } else { walk.bad(VirtioCause::BadIndirect) };
        };
        let d = table.read(format, n, raw);
        taken += 1;
        if table.is_ring && format == Format::Packed {
            (walk.chain.slots, walk.chain.id) = (taken, d.id);
        }
        if !d.indirect {
            walk.add(&d);
        } else if let Some(to) = walk.table(&d, &table) {
            if walk.fault.is_none() {
                (table, n, taken) = (to, 0, 0);
                continue;
            }
        } else {
            walk.blame(VirtioCause::BadIndirect);
        }
        // Only of a chain in a packed ring it is not known yet how many places it takes.
        let skims = table.is_ring && format == Format::Packed;
        if let (Some(cause), false) = (walk.fault, skims) {
            return walk.bad(cause);
        }
        let Some(next) = d.next else { break };
        if next >= table.entries {
            return walk.bad(VirtioCause::BadNext);
        }
        if skims && taken >= rules.free {
            return Walked::Lost(VirtioCause::LongChain);
        }
        // A chain that has come by as many descriptors as the table has, and goes on, is a loop.
        if taken >= table.entries {
            return walk.bad(VirtioCause::LongChain);
        }
        n = next;
    }
    let empty = walk.chain.readable.is_empty() && walk.chain.writable.is_empty();
    match walk.fault.or(empty.then_some(VirtioCause::Short)) {
        Some(cause) => walk.bad(cause),
        None => Walked::Good(walk.chain),
    }
}
