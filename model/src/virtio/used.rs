//! The used side of a ring: chains that are done with are given back in their order, then, when that is visible, the driver's event says whether it wants an interrupt.
use super::engine::{Engine, Outstanding};
use super::memory::{fetch, Memory};
use super::ring::Format;
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::{event, AvailHead, PackedDesc, PackedEvent, UsedElem};

impl Engine {
    /// Gives back the chains at the front that are done with, all of them in one visible step; how many they are. So all buffers of a received frame come together.
    pub fn give_back(&mut self, memory: &mut dyn Memory) -> Result<usize, VirtioCause> {
        let batch: Vec<Outstanding> = self.outstanding.iter().take_while(|chain| chain.done.is_some()).copied().collect();
        let n = batch.len();
        if n == 0 {
            return Ok(0);
        }
        let written = match self.ring.format() {
            Format::Split => self.give_split(memory, &batch),
            Format::Packed => self.give_packed(memory, &batch),
        };
        written.map_err(|_| VirtioCause::RingDma)?;
        // Not before: the numbers of chains in hand are counted from what is left here, also when the ring has broken.
        self.outstanding.drain(..n);
        self.balance.used += n as u64;
        self.balance.held -= n as u64;
        self.told = false;
        Ok(n)
    }

    fn give_split(&mut self, memory: &mut dyn Memory, batch: &[Outstanding]) -> Result<(), super::memory::Unmapped> {
        for chain in batch {
            let element = UsedElem::default().with_id(chain.id.into()).with_length(chain.done.unwrap_or(0));
            memory.write(self.ring.used_entry(self.used), &element.0)?;
            self.used = self.ring.after(self.used, 1);
        }
        memory.write(self.ring.device() + 2, &(self.used as u16).to_le_bytes())
    }

    /// The flags of the first entry come last: until then the driver does not look behind it.
    fn give_packed(&mut self, memory: &mut dyn Memory, batch: &[Outstanding]) -> Result<(), super::memory::Unmapped> {
        let mut first = None;
        for chain in batch {
            let (slot, wrap) = self.ring.slot(self.used);
            let length = chain.done.unwrap_or(0);
            let entry = PackedDesc::default().with_length(length).with_id(chain.id).with_write(length > 0).with_avail(wrap).with_used(wrap);
            // The address stays as it is: it means nothing any more.
            let at = self.ring.descriptor(slot) + 8;
            if first.is_none() {
                memory.write(at, &entry.0[8..14])?;
                first = Some((at + 6, entry));
            } else {
                memory.write(at, &entry.0[8..])?;
            }
            self.used = self.ring.after(self.used, chain.slots);
        }
        match first {
            Some((at, entry)) => memory.write(at, &entry.0[14..]),
            None => Ok(()),
        }
    }

    /// Whether the driver wants an interrupt for what has been given back since the last time; `None`: nothing has. It is asked after the entries are visible, never before: the driver looks
    /// at the ring after it has written its event.
    pub fn wants_interrupt(&mut self, memory: &mut dyn Memory) -> Result<Option<bool>, VirtioCause> {
        if self.told {
            return Ok(None);
        }
        let wants = match self.ring.format() {
            Format::Split if self.events => {
                let event = fetch(memory, self.ring.used_event()).map_err(|_| VirtioCause::RingDma)?;
                self.passes(u16::from_le_bytes(event).into())
            }
            Format::Split => {
                let head = AvailHead(fetch(memory, self.ring.driver()).map_err(|_| VirtioCause::RingDma)?);
                !head.no_interrupt()
            }
            Format::Packed => {
                let wanted = PackedEvent(fetch(memory, self.ring.driver()).map_err(|_| VirtioCause::RingDma)?);
                match wanted.flags() {
                    event::DISABLE => false,
                    // A descriptor that the ring does not have is never used.
                    event::DESC if self.events => self.ring.place(wanted.offset(), wanted.wrap()).is_some_and(|place| self.passes(place)),
                    _ => true,
                }
            }
        };
        (self.told, self.signalled) = (true, self.used);
        Ok(Some(wants))
    }

    /// Whether the entry at this place is among those written since the driver was last told.
    fn passes(&self, place: u32) -> bool {
        self.ring.distance(self.signalled, place) < self.ring.distance(self.signalled, self.used)
    }
}
