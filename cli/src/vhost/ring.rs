//! A guest's ring, split or packed, from the device's side: the golden model of a ring (`ferric_model::virtio::engine`) over the guest's memory, and how a front end says that it begins and stops.
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::feature;
use ferric_model::virtio::engine::{Engine, Taken, Took};
use ferric_model::virtio::ring::{Format, Ring as Areas};
use ferric_model::virtio::turn::Turn;
use ferric_model::virtio::walk::Direction;
use ferric_model::virtio::{Memory, Unmapped};
use ferric_sim::virtio::read_whole;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{FromRawFd, IntoRawFd, RawFd};
use std::sync::atomic::{fence, Ordering};
use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};
use vmm_sys_util::eventfd::EventFd;

/// Most entries of a ring; as many as QEMU gives one at most.
pub const MOST: u16 = 1024;
/// Of a packed ring's place as front ends say it: the bit that is the wrap counter.
const WRAP: u16 = 1 << 15;
/// Where a split ring's used index is, behind the device's area.
const USED_INDEX: u64 = 2;

/// The memory of a guest.
pub type GuestMemory = GuestMemoryMmap<()>;

/// A guest's memory as a ring sees it.
pub struct Seen<'a>(pub &'a GuestMemory);

impl Memory for Seen<'_> {
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), Unmapped> {
        read_whole(into, |into| self.0.read_slice(into, GuestAddress(at)).map_err(|_| Unmapped))
    }

    fn write(&mut self, at: u64, from: &[u8]) -> Result<(), Unmapped> {
        // What a later write makes visible is there before it.
        fence(Ordering::SeqCst);
        self.0.write_slice(from, GuestAddress(at)).map_err(|_| Unmapped)?;
        fence(Ordering::SeqCst);
        Ok(())
    }
}

/// The ring cannot be read, or says what cannot be: where it stands is not known any more.
#[derive(Debug, PartialEq)]
pub struct Broken;

impl From<VirtioCause> for Broken {
    fn from(cause: VirtioCause) -> Self {
        log::debug!("a ring is broken: {cause:?}");
        Broken
    }
}

/// What is next in a ring to be sent from.
pub enum Next {
    /// A chain.
    Chain(Taken),
    /// One with a fault, which goes back as it is.
    Bad(VirtioCause),
    /// Nothing: the driver tells when there is something again.
    Nothing,
}

/// A ring.
pub struct Ring {
    direction: Direction,
    features: u64,
    size: u16,
    /// Addresses in the guest of descriptors, driver's area, device's area.
    areas: [u64; 3],
    /// Where it begins, as the front end has said it.
    base: u16,
    ready: bool,
    enabled: bool,
    broken: bool,
    kick: Option<EventFd>,
    call: Option<EventFd>,
    /// The driver has been told nothing since the ring was started.
    fresh: bool,
    engine: Option<Engine>,
    /// Chains that are in hand and wait for a frame, in order.
    stock: VecDeque<Taken>,
}

impl Ring {
    /// One that does not run, of which the device writes the buffers, or reads them.
    pub fn new(direction: Direction) -> Self {
        let stock = VecDeque::new();
        Self { direction, features: 0, size: MOST, areas: [0; 3], base: 0, ready: false, enabled: false, broken: false, kick: None, call: None, fresh: true, engine: None, stock }
    }

    fn format(&self) -> Format {
        if self.features & feature::RING_PACKED != 0 {
            Format::Packed
        } else {
            Format::Split
        }
    }

    /// What both sides have agreed on.
    pub fn set_features(&mut self, features: u64) {
        self.pause();
        self.features = features;
    }

    /// Entries, up to [`MOST`], of a split ring a power of two. False: that it cannot be.
    pub fn set_size(&mut self, size: u32) -> bool {
        self.pause();
        match u16::try_from(size) {
            Ok(size) if (1..=MOST).contains(&size) && (self.format() == Format::Packed || size.is_power_of_two()) => self.size = size,
            _ => return false,
        }
        true
    }

    /// Where its parts are: descriptors, driver's area, device's area. False: one is not aligned.
    pub fn set_areas(&mut self, areas: [u64; 3]) -> bool {
        self.pause();
        self.areas = areas;
        let small = match self.format() {
            Format::Split => [16, 2, 4],
            Format::Packed => [16, 4, 4],
        };
        areas.iter().zip(small).all(|(at, align)| at % align == 0)
    }

    /// From where on it is read: the available index, of a packed ring the number of a descriptor and the wrap counter in bit 15.
    pub fn set_base(&mut self, base: u16) {
        self.pause();
        self.base = base;
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
        self.pause();
        self.kick = kick.map(event);
        (self.ready, self.broken, self.fresh) = (true, false, true);
    }

    /// What is in hand stays in the ring, and it goes on from there. Nothing is kept over what a front end says of a ring.
    fn pause(&mut self) {
        if let Some(engine) = self.engine.take() {
            let place = engine.place();
            self.base = match self.format() {
                Format::Split => place as u16,
                Format::Packed => {
                    let (slot, wrap) = engine.ring().slot(place);
                    slot as u16 | if wrap { WRAP } else { 0 }
                }
            };
        }
        self.stock.clear();
    }

    /// The ring's memory can be used: looked at when the ring is started and when something about it changes. False: the ring is broken, and was not before.
    pub fn check(&mut self, memory: &GuestMemory) -> bool {
        if !self.ready || self.broken {
            return true;
        }
        self.broken = !self.is_within(memory) || (self.engine.is_none() && self.begin(memory).is_none());
        !self.broken
    }

    /// All of it is in the guest's memory.
    fn is_within(&self, memory: &GuestMemory) -> bool {
        let n = usize::from(self.size);
        let bytes = match self.format() {
            Format::Split => [16 * n, 6 + 2 * n, 6 + 8 * n],
            Format::Packed => [16 * n, 4, 4],
        };
        self.areas.iter().zip(bytes).all(|(at, bytes)| memory.check_range(GuestAddress(*at), bytes))
    }

    fn begin(&mut self, memory: &GuestMemory) -> Option<()> {
        let areas = Areas::new(self.format(), self.size, MOST, self.areas)?;
        let (fetch, used) = match self.format() {
            Format::Split => {
                let used: u16 = memory.load(GuestAddress(areas.device() + USED_INDEX), Ordering::Acquire).ok()?;
                (self.base.into(), u16::from_le(used).into())
            }
            Format::Packed => {
                let place = areas.place(self.base & !WRAP, self.base & WRAP != 0)?;
                (place, place)
            }
        };
        self.engine = Some(Engine::new(areas, self.features, self.direction).resumed(fetch, used));
        Some(())
    }

    /// It is there no more. Gives the place for [`Ring::set_base`] from which on nothing has been used.
    pub fn stop(&mut self) -> u16 {
        self.pause();
        self.ready = false;
        (self.kick, self.call) = (None, None);
        self.base
    }

    /// Frames pass.
    pub fn is_running(&self) -> bool {
        self.ready && self.enabled && !self.broken
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
            self.kick = None;
            self.give_up();
        }
        fine
    }

    /// No more of it until it is started again.
    pub fn give_up(&mut self) {
        self.broken = true;
    }

    fn engine(&mut self) -> Result<&mut Engine, Broken> {
        self.engine.as_mut().ok_or(Broken)
    }

    /// Looks whether there is something, whether the driver has told or not.
    pub fn look(&mut self) {
        if let Some(engine) = &mut self.engine {
            engine.notify();
        }
    }

    /// The next chain. If there is none, the driver tells when there is.
    pub fn next(&mut self, memory: &GuestMemory) -> Result<Next, Broken> {
        let engine = self.engine()?;
        loop {
            match engine.turn(&mut Seen(memory))? {
                Turn::Idle => return Ok(Next::Nothing),
                Turn::Worked => {}
                Turn::Chain(taken) => return Ok(Next::Chain(taken)),
                Turn::Rejected(cause) => return Ok(Next::Bad(cause)),
            }
        }
    }

    /// The first chains that wait, once there are `n` of them; `bad` counts those with a fault on the way, which go back as they are. `None`: there are not as many.
    pub fn wait_for(&mut self, memory: &GuestMemory, n: usize, bad: &mut u64) -> Result<Option<&VecDeque<Taken>>, Broken> {
        for _ in 0..MOST {
            if self.stock.len() >= n {
                return Ok(Some(&self.stock));
            }
            match self.engine()?.take(&mut Seen(memory))? {
                Took::Chain(taken) => self.stock.push_back(taken),
                Took::Rejected(_) => *bad += 1,
                Took::Nothing => break,
            }
        }
        Ok(None)
    }

    /// No chain waits for a frame.
    pub fn is_empty(&self) -> bool {
        self.stock.is_empty()
    }

    /// Takes the first `n` chains that wait.
    pub fn take(&mut self, n: usize) -> Vec<Taken> {
        self.stock.drain(..n).collect()
    }

    /// A chain is done with, and has so many bytes in it.
    pub fn finish(&mut self, chain: &Taken, written: u32) {
        if let Some(engine) = &mut self.engine {
            engine.finish(chain.number, written);
        }
    }

    /// Gives back what is done with, and the driver sees all of it at once.
    pub fn give(&mut self, memory: &GuestMemory) -> Result<(), Broken> {
        Ok(self.engine()?.give_back(&mut Seen(memory)).map(drop)?)
    }

    /// Tells the driver of the chains given back since the last time, if it wants to hear of them.
    pub fn tell(&mut self, memory: &GuestMemory) -> Result<(), Broken> {
        let Some(wants) = self.engine()?.wants_interrupt(&mut Seen(memory))? else { return Ok(()) };
        // Of an index nobody knows which one was there when the ring stopped.
        let wants = wants || (self.fresh && self.features & feature::EVENT_IDX != 0);
        self.fresh = false;
        if let Some(Err(e)) = self.call.as_ref().filter(|_| wants).map(|c| c.write(1)) {
            log::debug!("the driver cannot be told: {e}");
        }
        Ok(())
    }

    /// No kicks, please. They may come all the same.
    pub fn hush(&mut self, memory: &GuestMemory) -> Result<(), Broken> {
        Ok(self.engine()?.wake(&mut Seen(memory))?)
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
