//! A driver's packed ring.
use super::driver::Ring;
use crate::tb::Rng;
use crate::virtio::testing::Guest;
use ferric_abi::virtio::{event, PackedDesc, PackedEvent};
use std::collections::HashMap;

/// What a driver writes in front of a buffer's number to make its identifier: the device does not know what it means.
const ID: u16 = 0xa5c0;

/// Places of a driver's packed ring, counted from its beginning and never around.
#[derive(Default)]
pub struct Packed {
    /// Where the next chain goes, where it went when the device was last told, and where the next used one is to be.
    next: u64,
    notified: u64,
    last: u64,
    /// The flags that show what has been posted: they are written last.
    hidden: Option<(u64, [u8; 2])>,
    /// Places of the chains that are out.
    places: HashMap<u16, u64>,
}

/// Descriptor and wrap counter of a place.
fn slot(place: u64, size: u16) -> (u64, bool) {
    (place % u64::from(size), (place / u64::from(size)) % 2 == 0)
}

impl Packed {
    pub fn free(&self, size: u16) -> usize {
        usize::from(size) - (self.next - self.last) as usize
    }

    /// A chain, direct or in a table.
    pub fn place(&mut self, rng: &mut Rng, guest: &mut Guest, (ring, tables, size): (u64, u64, u16), id: u16, pieces: &[(u64, u32)], write: bool) {
        let desc = |n: usize| PackedDesc::default().with_addr(pieces[n].0).with_length(pieces[n].1).with_write(write);
        let mut chain: Vec<PackedDesc> = (0..pieces.len()).map(|n| desc(n).with_has_next(n + 1 < pieces.len())).collect();
        if rng.percent(30) {
            let table = tables + 0x100 * u64::from(id) + 16 * rng.below(8);
            for n in 0..pieces.len() {
                // Flags and identifiers in there mean nothing.
                guest.put(table + 16 * n as u64, &desc(n).with_id(rng.next_u64() as u16).with_has_next(rng.percent(50)).0);
            }
            chain = vec![PackedDesc::default().with_addr(table).with_length(16 * pieces.len() as u32).with_indirect(true)];
        }
        self.places.insert(id, chain.len() as u64);
        let last = chain.len() - 1;
        for (n, d) in chain.into_iter().enumerate() {
            let (slot, wrap) = slot(self.next, size);
            // The last one's identifier counts.
            let d = d.with_id(if n == last { ID ^ id } else { rng.next_u64() as u16 }).with_avail(wrap).with_used(!wrap);
            let at = ring + 16 * slot;
            guest.put(at, &d.0[..14]);
            let flags = [d.0[14], d.0[15]];
            if self.hidden.is_none() {
                self.hidden = Some((at + 14, flags));
            } else {
                guest.put(at + 14, &flags);
            }
            self.next += 1;
        }
    }

    /// What has been posted becomes available.
    pub fn show(&mut self, guest: &mut Guest) {
        if let Some((at, flags)) = self.hidden.take() {
            guest.put(at, &flags);
        }
    }

    pub fn wants_notification(&mut self, guest: &mut Guest, device: u64, size: u16, events: bool) -> bool {
        let (old, new) = (self.notified, self.next);
        self.notified = new;
        let wanted = PackedEvent(guest.get(device, 4).try_into().expect("four"));
        if old == new || wanted.flags() == event::ENABLE {
            return old != new;
        }
        assert!(events && wanted.flags() == event::DESC, "flags {}", wanted.flags());
        let round = 2 * u64::from(size);
        let named = u64::from(wanted.offset()) + if wanted.wrap() { 0 } else { u64::from(size) };
        (named + round - old % round) % round < new - old
    }

    /// From when on it wants to be told.
    pub fn ask(&self, guest: &mut Guest, driver: u64, size: u16, events: bool) {
        let (slot, wrap) = slot(self.last, size);
        let wanted = if events { PackedEvent::default().with_offset(slot as u16).with_wrap(wrap).with_flags(event::DESC) } else { PackedEvent::default() };
        guest.put(driver, &wanted.0);
    }

    fn found(&self, guest: &mut Guest, ring: u64, size: u16) -> (PackedDesc, bool) {
        let (slot, wrap) = slot(self.last, size);
        (PackedDesc(guest.get(ring + 16 * slot, 16).try_into().expect("as long")), wrap)
    }

    pub fn is_used(&self, guest: &mut Guest, ring: u64, size: u16) -> bool {
        let (d, wrap) = self.found(guest, ring, size);
        self.last < self.next && d.avail() == wrap && d.used() == wrap
    }

    /// The next used chain: its buffer's number, and the bytes in it.
    pub fn take(&mut self, guest: &mut Guest, ring: u64, size: u16) -> (u16, usize) {
        let (d, wrap) = self.found(guest, ring, size);
        assert_eq!((d.avail(), d.used(), d.write(), d.has_next(), d.indirect()), (wrap, wrap, d.length() > 0, false, false));
        let id = d.id() ^ ID;
        self.last += self.places.remove(&id).expect("it was out");
        (id, d.length() as usize)
    }
}

impl Ring {
    /// The same as a packed ring.
    pub fn packed(mut self) -> Self {
        self.packed = Some(Packed::default());
        self
    }
}
