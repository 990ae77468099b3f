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
}

impl Cause {
    /// Every cause that a NAK with this code for this message can have; `None`: none is known to the replay.
    pub fn of(message: &Message, code: u8) -> &'static [Cause] {
        use Cause::*;
        match (message.kind, code) {
            (Kind::Write | Kind::ReadRequest, 2) if message.len > 0 => &[StaleKey, UnknownKey, BehindEnd, BeforeStart, NoRight, OtherDomain],
            (Kind::Flush, 2) if message.len > 0 => &[StaleKey, UnknownKey, BehindEnd, BeforeStart, NoRight, OtherDomain],
            (Kind::Flush, 2) => &[StaleKey, UnknownKey, NoRight, OtherDomain],
            (Kind::CompareSwap | Kind::FetchAdd | Kind::AtomicWrite, 2) => &[StaleKey, UnknownKey, BehindEnd, BeforeStart, NoRight, OtherDomain],
            (Kind::Write | Kind::ReadRequest | Kind::CompareSwap | Kind::FetchAdd | Kind::Flush, 1) => &[QueuePairRight],
            (Kind::Send, 1 | 3) if message.len > 0 => &[ReceiveTooSmall],
            _ => &[],
        }
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

/// Translation of one refused message.
struct Refused {
    first: u32,
    end: u32,
    va: u64,
    key: u32,
}

/// All memory a peer reaches, and its translation.
pub struct Plan {
    /// By captured key.
    regions: BTreeMap<u32, Image>,
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
    pub fn new(c: &Connection, peer: usize, limit: usize, cause: Option<Cause>, endpoint: &mut dyn Endpoint) -> Result<Self> {
        let messages = &c.requests[peer].messages[..limit];
        let mut ranges: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for m in messages.iter().filter(|m| m.nak.is_none() && m.len > 0) {
            let Some((va, key)) = m.remote else { continue };
            let end = va.checked_add(m.len as u64).ok_or_else(|| Error::Exchange("an accepted access wraps around the address space".into()))?;
            let r = ranges.entry(key).or_insert((va, end));
            *r = (r.0.min(va), r.1.max(end));
        }
        // A FLUSH of a whole region says nothing of where it lies.
        for m in messages.iter().filter(|m| m.nak.is_none() && m.len == 0 && m.kind == Kind::Flush) {
            let Some((va, key)) = m.remote else { continue };
            ranges.entry(key).or_insert((va, va.saturating_add(1)));
        }
        let mut regions = BTreeMap::new();
        for (key, (lo, hi)) in ranges {
            if hi - lo > MAX_REGION {
                return Err(Error::Exchange(format!("key {key:#x} reaches over {} bytes, more than the replay provides", hi - lo)));
            }
            let spec = RegionSpec { len: (hi - lo) as usize, page_offset: lo & 0xfff, exact: false, access: Access::ALL, domain: Domain::Own };
            regions.insert(key, image(endpoint, &spec, lo)?);
        }
        let (mut refused, mut untouched) = (None, None);
        if let (Some(m), Some(cause)) = (messages.iter().find(|m| m.nak.is_some()), cause) {
            if let Some((va, _)) = m.remote {
                let access = if cause == Cause::NoRight { Access::LOCAL_WRITE } else { Access::ALL };
                let domain = if cause == Cause::OtherDomain { Domain::Other } else { Domain::Own };
                let place = image(endpoint, &RegionSpec { len: m.len.max(1), page_offset: va & 0xfff, exact: cause == Cause::BeforeStart, access, domain }, va)?;
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
                refused = Some(Refused { first: m.first, end: m.end(), va, key });
                untouched = Some(place);
            }
        }
        Ok(Self { regions, refused, untouched, cause, scribbles: 0 })
    }

    /// Replaces captured address and key by the endpoint's; `position` is the packet's place in the stream.
    pub fn translate(&self, frame: &mut Frame, position: i64) {
        if let Some(atomic) = &mut frame.atomic {
            if let Some(r) = self.refused.as_ref().filter(|r| (r.first as i64..r.end as i64).contains(&position)) {
                atomic.set_va(r.va).set_rkey(r.key);
            } else if let Some(image) = self.regions.get(&atomic.rkey()) {
                let va = atomic.va().wrapping_sub(image.base).wrapping_add(image.region.addr);
                atomic.set_va(va).set_rkey(image.region.key);
            }
        }
        let Some(reth) = &mut frame.reth else { return };
        if let Some(r) = self.refused.as_ref().filter(|r| (r.first as i64..r.end as i64).contains(&position)) {
            reth.set_va(r.va).set_rkey(r.key);
        } else if let Some(image) = self.regions.get(&reth.rkey()) {
            let va = reth.va().wrapping_sub(image.base).wrapping_add(image.region.addr);
            reth.set_va(va).set_rkey(image.region.key);
        }
    }

    fn find(&mut self, remote: (u64, u32), offset: usize, len: usize) -> Option<(&mut Image, usize)> {
        let image = self.regions.get_mut(&remote.1)?;
        let at = (remote.0 - image.base) as usize + offset;
        (at + len <= image.bytes.len()).then_some((image, at))
    }

    /// An accepted WRITE packet: its bytes must be there. They are then overwritten from this side, so that a second
    /// execution would show.
    pub fn written(&mut self, endpoint: &mut dyn Endpoint, remote: (u64, u32), offset: usize, payload: &[u8]) -> Result<()> {
        if payload.is_empty() {
            return self.check(endpoint);
        }
        let Some((image, at)) = self.find(remote, offset, payload.len()) else {
            return Err(Error::Exchange("an accepted WRITE carries more than its RETH says".into()));
        };
        image.bytes[at..at + payload.len()].copy_from_slice(payload);
        for (t, b) in image.truth[at..].iter_mut().zip(payload) {
            *t = Some(*b);
        }
        self.check(endpoint)?;
        self.scribbles = self.scribbles.wrapping_add(1);
        let generation = self.scribbles;
        if let Some((image, at)) = self.find(remote, offset, payload.len()) {
            for i in at..at + payload.len() {
                image.bytes[i] = filler(i, generation);
            }
            endpoint.write_memory(&image.region, at, &image.bytes[at..at + payload.len()]);
        }
        Ok(())
    }

    /// The 8 bytes that an atomic is about to change, after [`Self::before_read`] or an earlier change.
    pub fn value(&mut self, remote: (u64, u32)) -> u64 {
        let Some((image, at)) = self.find(remote, 0, 8) else { return 0 };
        u64::from_le_bytes(std::array::from_fn(|i| image.bytes[at + i]))
    }

    /// A READ or atomic is about to come: bytes the exchange has written are put back, the others are what its first response says: the
    /// machine's own program may have changed them since an earlier one (rping does).
    pub fn before_read(&mut self, endpoint: &mut dyn Endpoint, remote: (u64, u32), seen: &[u8], len: usize) {
        let Some((image, at)) = self.find(remote, 0, len) else { return };
        for i in 0..len {
            if let Some(t) = image.truth[at + i].or(seen.get(i).copied()) {
                image.bytes[at + i] = t;
            }
        }
        endpoint.write_memory(&image.region, at, &image.bytes[at..at + len]);
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
