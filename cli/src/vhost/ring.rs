//! A split ring of a guest, from the device's side: `virtio_queue::Queue` for the descriptors and the available ring; the used ring is written here, because all buffers of a merged frame
//! have to become visible at once, and because that crate does not know `VIRTQ_AVAIL_F_NO_INTERRUPT`.
use std::fs::File;
use std::num::Wrapping;
use std::os::fd::{FromRawFd, IntoRawFd, RawFd};
use std::sync::atomic::{fence, Ordering};
use virtio_queue::{Queue, QueueOwnedT, QueueT};
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};
use vmm_sys_util::eventfd::EventFd;

/// The memory of a guest.
pub type Memory = GuestMemoryMmap<()>;

/// Most entries of a ring; as many as QEMU gives one at most.
pub const MOST: u16 = 1024;
/// Bit 0 of the available ring's flags: the driver wants no interrupts.
const NO_INTERRUPT: u16 = 1;
/// Bytes in front of the entries of both rings, of an available entry, and of a used one.
const HEAD: u64 = 4;
const AVAILABLE: u64 = 2;
const USED: u64 = 8;
/// Where the used ring has its index.
const INDEX: u64 = 2;

/// The ring cannot be read, or says what cannot be: where it stands is not known any more.
#[derive(Debug, PartialEq)]
pub struct Broken;

/// A chain with a fault: it goes back with nothing in it, and the ring goes on.
#[derive(Debug, PartialEq)]
pub struct Bad;

/// The buffers of a chain in the guest's memory.
pub type Buffers = Vec<(GuestAddress, usize)>;

/// A chain that the driver has made available.
pub struct Chain {
    /// Its number, which goes back.
    pub head: u16,
    /// Its buffers, all of one direction.
    pub buffers: Result<Buffers, Bad>,
}

/// A ring.
pub struct Ring {
    queue: Queue,
    event_idx: bool,
    enabled: bool,
    broken: bool,
    kick: Option<EventFd>,
    call: Option<EventFd>,
    /// Used index of which the driver has been told, or has said that it does not want to be.
    told: Wrapping<u16>,
    /// Nothing has been told since the ring was started.
    fresh: bool,
}

impl Ring {
    /// One that does not run.
    pub fn new() -> Self {
        let queue = Queue::new(MOST).expect("a size that can be");
        Self { queue, event_idx: false, enabled: false, broken: false, kick: None, call: None, told: Wrapping(0), fresh: true }
    }

    /// Entries, a power of two up to [`MOST`]. False: that it cannot be.
    pub fn set_size(&mut self, size: u32) -> bool {
        u16::try_from(size).is_ok_and(|size| self.queue.try_set_size(size).is_ok())
    }

    /// Where its parts are. False: one is not aligned.
    pub fn set_areas(&mut self, descriptors: u64, available: u64, used: u64) -> bool {
        let q = &mut self.queue;
        q.try_set_desc_table_address(GuestAddress(descriptors)).is_ok() && q.try_set_avail_ring_address(GuestAddress(available)).is_ok() && q.try_set_used_ring_address(GuestAddress(used)).is_ok()
    }

    /// The available index from which on it is read.
    pub fn set_base(&mut self, base: u16) {
        self.queue.set_next_avail(base);
    }

    /// Both sides say at which index they want to be told.
    pub fn set_event_idx(&mut self, on: bool) {
        self.event_idx = on;
        self.queue.set_event_idx(on);
    }

    /// Frames may pass, or not.
    pub fn enable(&mut self, on: bool) {
        self.enabled = on;
    }

    /// The driver is told by `call` (`None`: not at all).
    pub fn set_call(&mut self, call: Option<File>) {
        self.call = call.map(event);
    }

    /// The ring is there from now on, and the driver tells by `kick`; without one it has to be looked at.
    pub fn start(&mut self, kick: Option<File>) {
        self.kick = kick.map(event);
        self.queue.set_ready(true);
        (self.broken, self.fresh) = (false, true);
    }

    /// The ring's memory can be used: looked at when the ring is started and when something about it changes. False: the ring is broken, and was not before.
    pub fn check(&mut self, memory: &Memory) -> bool {
        if !self.queue.ready() || self.broken {
            return true;
        }
        match self.queue.used_idx(memory, Ordering::Acquire) {
            Ok(used) if self.queue.is_valid(memory) => {
                if self.fresh {
                    self.queue.set_next_used(used.0);
                    self.told = used;
                }
            }
            _ => self.broken = true,
        }
        !self.broken
    }

    /// It is there no more. Gives the available index up to which it has been used.
    pub fn stop(&mut self) -> u16 {
        self.queue.set_ready(false);
        (self.kick, self.call) = (None, None);
        self.queue.next_avail()
    }

    /// Frames pass.
    pub fn is_running(&self) -> bool {
        self.queue.ready() && self.enabled && !self.broken
    }

    /// Nobody tells when there is something in it.
    pub fn is_silent(&self) -> bool {
        self.is_running() && self.kick.is_none()
    }

    /// What the driver tells by.
    pub fn kick(&self) -> Option<&EventFd> {
        self.kick.as_ref()
    }

    /// Takes a kick; `good`: there is one, as far as its descriptor says. One that is no event is given up, and so is the ring. False: that has happened.
    pub fn kicked(&mut self, good: bool) -> bool {
        let fails = |k: &EventFd| k.read().is_err_and(|e| e.kind() != std::io::ErrorKind::WouldBlock);
        let fine = good && !self.kick.as_ref().is_some_and(fails);
        if !fine {
            (self.kick, self.broken) = (None, true);
        }
        fine
    }

    /// No more of it until it is started again.
    pub fn give_up(&mut self) {
        self.broken = true;
    }

    /// The available index of the next chain, for [`Ring::set_base`] to go back.
    pub fn place(&self) -> u16 {
        self.queue.next_avail()
    }

    /// The next chain, whose buffers the device is to write, or to read.
    pub fn take(&mut self, memory: &Memory, writes: bool) -> Result<Option<Chain>, Broken> {
        let Some(mut chain) = self.queue.iter(memory).map_err(|_| Broken)?.next() else { return Ok(None) };
        let head = chain.head_index();
        let (mut buffers, mut whole) = (Buffers::new(), false);
        // What ends without an end, at a descriptor that cannot be read or after too many, is no chain.
        for d in &mut chain {
            if d.is_write_only() != writes {
                return Ok(Some(Chain { head, buffers: Err(Bad) }));
            }
            buffers.push((d.addr(), d.len() as usize));
            whole = !d.has_next();
        }
        Ok(Some(Chain { head, buffers: if whole { Ok(buffers) } else { Err(Bad) } }))
    }

    /// Gives chains back, each with the bytes written into it; the driver sees all of them at once. A head that there is not is left out.
    pub fn give(&mut self, memory: &Memory, chains: &[(u16, u32)]) -> Result<(), Broken> {
        let size = self.queue.size();
        let mut next = Wrapping(self.queue.next_used());
        for (head, length) in chains.iter().filter(|(head, _)| *head < size) {
            let at = HEAD + u64::from(next.0 % size) * USED;
            let entry = u64::from(*head) | u64::from(*length) << 32;
            memory.write_obj(entry.to_le(), self.used(at)?).map_err(|_| Broken)?;
            next += 1;
        }
        self.queue.set_next_used(next.0);
        memory.store(next.0.to_le(), self.used(INDEX)?, Ordering::Release).map_err(|_| Broken)
    }

    fn used(&self, offset: u64) -> Result<GuestAddress, Broken> {
        self.queue.used_ring().checked_add(offset).map(GuestAddress).ok_or(Broken)
    }

    fn available(&self, memory: &Memory, offset: u64) -> Result<u16, Broken> {
        let at = self.queue.avail_ring().checked_add(offset).map(GuestAddress).ok_or(Broken)?;
        memory.load(at, Ordering::Relaxed).map(u16::from_le).map_err(|_| Broken)
    }

    /// Tells the driver of the chains given back since the last time, if it wants to hear of them.
    pub fn tell(&mut self, memory: &Memory) -> Result<(), Broken> {
        let now = Wrapping(self.queue.next_used());
        if now == self.told {
            return Ok(());
        }
        // What has been given is visible before the driver's wish is read: it looks again after it has changed its wish.
        fence(Ordering::SeqCst);
        let wanted = if self.event_idx {
            let event = Wrapping(self.available(memory, HEAD + u64::from(self.queue.size()) * AVAILABLE)?);
            self.fresh || now - event - Wrapping(1) < now - self.told
        } else {
            self.available(memory, 0)? & NO_INTERRUPT == 0
        };
        (self.told, self.fresh) = (now, false);
        if let Some(Err(e)) = self.call.as_ref().filter(|_| wanted).map(|c| c.write(1)) {
            log::debug!("the driver cannot be told: {e}");
        }
        Ok(())
    }

    /// No kicks, please. They may come all the same.
    pub fn hush(&mut self, memory: &Memory) -> Result<(), Broken> {
        self.queue.disable_notification(memory).map_err(|_| Broken)
    }

    /// Asks for a kick at the next chain. True: there is one already.
    pub fn listen(&mut self, memory: &Memory) -> Result<bool, Broken> {
        self.queue.enable_notification(memory).map_err(|_| Broken)
    }
}

impl Default for Ring {
    fn default() -> Self {
        Self::new()
    }
}

/// An event of the front end's; neither side waits for the other at it.
fn event(file: File) -> EventFd {
    let fd: RawFd = file.into_raw_fd();
    // SAFETY: flags of an open descriptor, which is ours alone from here on.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
        EventFd::from_raw_fd(fd)
    }
}
