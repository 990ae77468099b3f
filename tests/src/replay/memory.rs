//! The replaced responder's memory: regions behind the captured addresses and keys, an image of what they must hold, and the ways in
//! which an access can be refused.
use super::analyse::{Connection, Message};
use super::endpoint::{Domain, Endpoint, Region, RegionSpec};
use super::error::{Error, Result};
use super::frame::{Frame, Kind};
use ferric_driver::Access;
use std::collections::BTreeMap;

/// Why a request is refused. A NAK does not tell, so every cause the frame allows is run (rule 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The key's variant is of another registration.
    StaleKey,
    /// No region has the key's index.
    UnknownKey,
    /// One byte behind the region.
    BehindEnd,
    /// One byte before the region.
    BeforeStart,
    /// The region does not give the right.
    NoRight,
    /// The region belongs to another protection domain.
    OtherDomain,
    /// The queue pair does not give the right.
    QueuePairRight,
    /// The receive is one byte too small.
    ReceiveTooSmall,
    /// A peer may not invalidate the region.
    NotFast,
    /// A SEND of the exchange has invalidated the key.
    Invalidated,
}

impl Cause {
    /// Every cause that a NAK with this code for one of these messages can have; none: none is known to the replay.
    pub fn of(messages: &[Message], refused: &Message, code: u8) -> Vec<Cause> {
        use Cause::*;
        let mut causes = match (refused.kind, code) {
            (Kind::Write | Kind::ReadRequest | Kind::Flush, 2) if refused.len > 0 => vec![StaleKey, UnknownKey, BehindEnd, BeforeStart, NoRight, OtherDomain],
            (Kind::Flush, 2) => vec![StaleKey, UnknownKey, NoRight, OtherDomain],
            (Kind::CompareSwap | Kind::FetchAdd | Kind::AtomicWrite, 2) => vec![StaleKey, UnknownKey, BehindEnd, BeforeStart, NoRight, OtherDomain],
            (Kind::Send, 2) if refused.invalidate.is_some() => vec![StaleKey, UnknownKey, NoRight, OtherDomain, NotFast],
            (Kind::Write | Kind::ReadRequest | Kind::CompareSwap | Kind::FetchAdd | Kind::Flush, 1) => vec![QueuePairRight],
            (Kind::Send, 1 | 3) if refused.len > 0 => vec![ReceiveTooSmall],
            _ => vec![],
        };
        let key = refused.remote.map(|(_, key)| key).or(refused.invalidate);
        if causes.contains(&StaleKey) && key.is_some_and(|key| Lives::new(messages).at(key, refused.first) > 0) {
            causes.push(Invalidated);
        }
        causes
    }
}

/// When keys stop working: for each the positions of the packets that invalidate it. A key that is used afterwards and not refused has been
/// given to another region meanwhile: that is its next life.
struct Lives(BTreeMap<u32, Vec<u32>>);

impl Lives {
    fn new(messages: &[Message]) -> Self {
        let mut ends: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for m in messages.iter().filter(|m| m.nak.is_none()) {
            if let Some(key) = m.invalidate {
                ends.entry(key).or_default().push(m.end() - 1);
            }
        }
        Self(ends)
    }

    /// Which life of the key a packet at this position means.
    fn at(&self, key: u32, position: u32) -> usize {
        self.0.get(&key).map_or(0, |ends| ends.partition_point(|end| *end < position))
    }

    /// How many lives of the key end.
    fn ended(&self, key: u32) -> usize {
        self.0.get(&key).map_or(0, Vec::len)
    }
}

const MAX_REGION: u64 = 64 << 20;

/// A region and what it must hold.
pub struct Image {
    /// The region.
    pub region: Region,
    /// Captured address of its first byte.
    base: u64,
    /// What the endpoint's memory must hold now.
    pub bytes: Vec<u8>,
    /// What the exchange wrote, and where it did.
    truth: Vec<Option<u8>>,
}

impl Image {
    /// The endpoint's address for a captured one.
    fn translate(&self, va: u64) -> u64 {
        va.wrapping_sub(self.base).wrapping_add(self.region.addr)
    }
}

/// Translation of one refused message.
struct Refused {
    first: u32,
    end: u32,
    va: u64,
    key: u32,
}

/// All memory a peer reaches, and its translation.
pub struct Plan {
    /// By captured key and its life.
    regions: BTreeMap<(u32, usize), Image>,
    lives: Lives,
    refused: Option<Refused>,
    /// The refused message's region, which must stay as it is.
    untouched: Option<Image>,
    /// The cause played.
    pub cause: Option<Cause>,
    scribbles: u8,
}

/// A byte that depends on place and generation.
fn filler(i: usize, generation: u8) -> u8 {
    (i as u8).wrapping_mul(31) ^ (i >> 8) as u8 ^ generation.wrapping_mul(0x9d) ^ 0xa5
}

fn image(endpoint: &mut dyn Endpoint, spec: &RegionSpec, base: u64) -> Result<Image> {
    let region = endpoint.register(spec)?;
    let bytes: Vec<u8> = (0..spec.len).map(|i| filler(i, 0)).collect();
    endpoint.write_memory(&region, 0, &bytes);
    Ok(Image { region, base, truth: vec![None; bytes.len()], bytes })
}

impl Plan {
    /// Registers what the requests of machine `peer` need, exactly as large as they need it.
    pub fn new(c: &Connection, peer: usize, cause: Option<Cause>, endpoint: &mut dyn Endpoint) -> Result<Self> {
        let messages = &c.requests[peer].messages;
        let lives = Lives::new(messages);
        let mut ranges: BTreeMap<(u32, usize), (u64, u64)> = BTreeMap::new();
        let gone = cause == Some(Cause::Invalidated);
        for m in messages.iter().filter(|m| m.len > 0 && (m.nak.is_none() || gone)) {
            let Some((va, key)) = m.remote else { continue };
            let end = va.checked_add(m.len as u64).ok_or_else(|| Error::Exchange("an accepted access wraps around the address space".into()))?;
            // A key that was invalidated names the bytes that it named before.
            let life = lives.at(key, m.first).saturating_sub(usize::from(m.nak.is_some()));
            let r = ranges.entry((key, life)).or_insert((va, end));
            *r = (r.0.min(va), r.1.max(end));
        }
        // A FLUSH of a whole region says nothing of where it lies, and a SEND that takes a key away not even that.
        for m in messages.iter().filter(|m| m.nak.is_none() && m.len == 0 && m.kind == Kind::Flush) {
            let Some((va, key)) = m.remote else { continue };
            ranges.entry((key, lives.at(key, m.first))).or_insert((va, va.saturating_add(1)));
        }
        for (key, ends) in &lives.0 {
            (0..ends.len()).for_each(|life| _ = ranges.entry((*key, life)).or_insert((0, 1)));
        }
        let mut regions = BTreeMap::new();
        for ((key, life), (lo, hi)) in ranges {
            if hi - lo > MAX_REGION {
                return Err(Error::Exchange(format!("key {key:#x} reaches over {} bytes, more than the replay provides", hi - lo)));
            }
            let spec = RegionSpec { page_offset: lo & 0xfff, fast: life < lives.ended(key), ..RegionSpec::new((hi - lo) as usize, Access::ALL) };
            regions.insert((key, life), image(endpoint, &spec, lo)?);
        }
        let mut plan = Self { regions, lives, refused: None, untouched: None, cause, scribbles: 0 };
        if let (Some(m), Some(cause)) = (messages.iter().find(|m| m.nak.is_some()), cause) {
            plan.refuse(m, cause, endpoint)?;
        }
        Ok(plan)
    }

    /// Sees to it that a message is refused for this cause.
    fn refuse(&mut self, m: &Message, cause: Cause, endpoint: &mut dyn Endpoint) -> Result<()> {
        let Some((va, key)) = m.remote.or(m.invalidate.map(|key| (0, key))) else { return Ok(()) };
        if cause == Cause::Invalidated {
            let last = self.lives.at(key, m.first).checked_sub(1).and_then(|life| self.regions.get(&(key, life)));
            self.refused = last.map(|image| Refused { first: m.first, end: m.end(), va: image.translate(va), key: image.region.key });
            return Ok(());
        }
        let (access, domain) = match cause {
            Cause::NoRight => (Access::LOCAL_WRITE, Domain::Own),
            Cause::OtherDomain => (Access::ALL, Domain::Other),
            _ => (Access::ALL, Domain::Own),
        };
        let fast = m.invalidate.is_some() && cause != Cause::NotFast;
        let place = image(endpoint, &RegionSpec { len: m.len.max(1), page_offset: va & 0xfff, exact: cause == Cause::BeforeStart, access, domain, fast }, va)?;
        let r = place.region;
        let key = match cause {
            Cause::StaleKey => r.key ^ 0x55,
            Cause::UnknownKey => r.key ^ 0x2a8 << 8,
            _ => r.key,
        };
        // An atomic that is not aligned is refused for that.
        let step = if matches!(m.kind, Kind::CompareSwap | Kind::FetchAdd | Kind::AtomicWrite) { 8 } else { 1 };
        let va = match cause {
            Cause::BehindEnd => r.addr + step,
            Cause::BeforeStart => r.addr - step,
            _ => r.addr,
        };
        self.refused = Some(Refused { first: m.first, end: m.end(), va, key });
        self.untouched = Some(place);
        Ok(())
    }

    /// The endpoint's address and key for captured ones of a packet at this position.
    fn translated(&self, (va, key): (u64, u32), position: i64) -> Option<(u64, u32)> {
        if let Some(r) = self.refused.as_ref().filter(|r| (r.first as i64..r.end as i64).contains(&position)) {
            return Some((r.va, r.key));
        }
        let life = self.lives.at(key, u32::try_from(position).unwrap_or(0));
        self.regions.get(&(key, life)).map(|image| (image.translate(va), image.region.key))
    }

    /// Replaces captured address and key by the endpoint's; `position` is the packet's place in the stream.
    pub fn translate(&self, frame: &mut Frame, position: i64) {
        if let Some(atomic) = &mut frame.atomic {
            if let Some((va, key)) = self.translated((atomic.va(), atomic.rkey()), position) {
                atomic.set_va(va).set_rkey(key);
            }
        }
        if let Some(reth) = &mut frame.reth {
            if let Some((va, key)) = self.translated((reth.va(), reth.rkey()), position) {
                reth.set_va(va).set_rkey(key);
            }
        }
        if let Some(ieth) = &mut frame.ieth {
            if let Some((_, key)) = self.translated((0, ieth.rkey()), position) {
                ieth.set_rkey(key);
            }
        }
    }

    /// The endpoint's key that a message invalidates.
    pub fn invalidated(&self, m: &Message) -> Option<u32> {
        m.invalidate.and_then(|key| self.translated((0, key), i64::from(m.first))).map(|(_, key)| key)
    }

    /// The region that a message reaches, and where in it.
    fn find(&mut self, m: &Message, offset: usize, len: usize) -> Option<(&mut Image, usize)> {
        let (va, key) = m.remote?;
        let image = self.regions.get_mut(&(key, self.lives.at(key, m.first)))?;
        let at = (va - image.base) as usize + offset;
        (at + len <= image.bytes.len()).then_some((image, at))
    }

    /// An accepted WRITE packet: its bytes must be there. They are then overwritten from this side, so that a second
    /// execution would show.
    pub fn written(&mut self, endpoint: &mut dyn Endpoint, m: &Message, offset: usize, payload: &[u8]) -> Result<()> {
        if payload.is_empty() {
            return self.check(endpoint);
        }
        let Some((image, at)) = self.find(m, offset, payload.len()) else {
            return Err(Error::Exchange("an accepted WRITE carries more than its RETH says".into()));
        };
        image.bytes[at..at + payload.len()].copy_from_slice(payload);
        for (t, b) in image.truth[at..].iter_mut().zip(payload) {
            *t = Some(*b);
        }
        self.check(endpoint)?;
        self.scribbles = self.scribbles.wrapping_add(1);
        let generation = self.scribbles;
        if let Some((image, at)) = self.find(m, offset, payload.len()) {
            for i in at..at + payload.len() {
                image.bytes[i] = filler(i, generation);
            }
            endpoint.write_memory(&image.region, at, &image.bytes[at..at + payload.len()]);
        }
        Ok(())
    }

    /// The 8 bytes that an atomic is about to change, after [`Self::before_read`] or an earlier change.
    pub fn value(&mut self, m: &Message) -> u64 {
        let Some((image, at)) = self.find(m, 0, 8) else { return 0 };
        u64::from_le_bytes(std::array::from_fn(|i| image.bytes[at + i]))
    }

    /// A READ or atomic is about to come: bytes the exchange has written are put back, the others are what its first response says: the
    /// machine's own program may have changed them since an earlier one (rping does).
    pub fn before_read(&mut self, endpoint: &mut dyn Endpoint, m: &Message) {
        let Some((image, at)) = self.find(m, 0, m.len) else { return };
        for i in 0..m.len {
            if let Some(t) = image.truth[at + i].or(m.data.get(i).copied()) {
                image.bytes[at + i] = t;
            }
        }
        endpoint.write_memory(&image.region, at, &image.bytes[at..at + m.len]);
    }

    /// Every byte of every region is what it must be.
    pub fn check(&self, endpoint: &dyn Endpoint) -> Result<()> {
        for image in self.regions.values().chain(&self.untouched) {
            let now = endpoint.read_memory(&image.region, 0, image.bytes.len());
            if let Some(i) = now.iter().zip(&image.bytes).position(|(a, b)| a != b) {
                return Err(Error::Differs(format!("memory at captured address {:#x} holds {:#04x}, must hold {:#04x}", image.base + i as u64, now[i], image.bytes[i])));
            }
        }
        Ok(())
    }
}
