//! A card as the simulation sees it, whatever it is made of.
use crate::error::Error;
#[cfg(feature = "cards")]
use crate::gateware::Gateware;
use crate::iommu::Iommu;
use crate::timing::HostTiming;
use crate::trace::Event;
use crate::twin::TwinBody;
#[cfg(feature = "cards")]
use crate::virtio::GatewareSeat;
use crate::virtio::{FunctionConfig, ModelSeat, Seat, SeatEdge};
use std::collections::VecDeque;
use std::path::PathBuf;

/// What a card is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Body {
    /// The gateware, compiled by Verilator: cycle by cycle.
    #[default]
    Gateware,
    /// The functional twin: a program, without cycles.
    Twin,
}

/// The variable of the environment that names the bodies of a world's cards, whatever their configurations say: `twin`, `gateware`, or one for each card, `twin,gateware`.
pub const BODIES: &str = "FERRIC_BODY";

impl Body {
    /// The body of card `index` that is to have `wanted`. Error: [`BODIES`] says something that is none.
    pub(crate) fn of(index: usize, wanted: Self) -> Result<Self, Error> {
        let Ok(list) = std::env::var(BODIES) else { return Ok(wanted) };
        let names: Vec<&str> = list.split(',').collect();
        match names[index % names.len()] {
            "twin" => Ok(Self::Twin),
            "gateware" => Ok(Self::Gateware),
            other => Err(Error::Gateware(format!("{BODIES}: no card has a body `{other}`; there are twin and gateware"))),
        }
    }
}

/// How a card is built and driven.
#[derive(Clone, Debug)]
pub struct CardConfig {
    /// What it is made of. Of a twin only `width` (the size of its tables), `functions`, `engines` and `seed` count.
    pub body: Body,
    /// Data path width in bits: 64 or 512.
    pub width: usize,
    /// PCI functions: 4, or 64 with 64 bits; of a twin a power of two, 64 at most.
    pub functions: usize,
    /// Its engines, by the name of a card (`ferric_hdl::card::CARDS`). A twin is that of the card `vxlan`, or of the default card, whatever else stands here.
    pub engines: &'static str,
    /// Virtio network functions, behind the native ones: their numbers begin with `functions`.
    pub virtio: Vec<FunctionConfig>,
    /// Build with the chaos option (random stalls on internal streams, random context latency).
    pub chaos: bool,
    /// Write an FST waveform here (uses a separately built, much slower model).
    pub fst: Option<PathBuf>,
    /// Clock cycle with which it begins.
    pub fst_from: u64,
    /// Host timing.
    pub host: HostTiming,
    /// Probability in percent that the MAC withholds ready, or a gap stands between received beats, in a cycle.
    pub mac_stall_percent: u32,
    /// Bytes per cycle that the MAC takes, on average, and holds the card back for; 0: a beat in every cycle. 100G at 250 MHz: 49.
    pub mac_bytes_per_cycle: u32,
    /// Seed of everything random around this card.
    pub seed: u64,
}

/// Functions of a card, unless others are wanted.
pub(crate) const FUNCTIONS: usize = ferric_abi::pci::FUNCTIONS as usize;

/// Engines of a card, unless others are wanted.
#[cfg(feature = "cards")]
const ENGINES: &str = ferric_hdl::card::DEFAULT;
/// Without gateware there are twins only, to which the name says that they end no tunnels.
#[cfg(not(feature = "cards"))]
const ENGINES: &str = "roce";

impl Default for CardConfig {
    fn default() -> Self {
        Self {
            body: Body::Gateware,
            width: 512,
            functions: FUNCTIONS,
            engines: ENGINES,
            virtio: Vec::new(),
            chaos: false,
            fst: None,
            fst_from: 0,
            host: HostTiming::default(),
            mac_stall_percent: 0,
            mac_bytes_per_cycle: 0,
            seed: 1,
        }
    }
}

/// What the host's bus has seen of a card of gateware.
#[derive(Clone, Copy, Debug, Default)]
pub struct BusCounters {
    /// Reads answered while an older one was still waiting.
    pub out_of_order: u64,
    /// Error responses given.
    pub errors: u64,
    /// Largest number of reads that were outstanding at once.
    pub max_outstanding: usize,
}

/// What lies around a card's body in a cycle.
pub struct Edge<'a> {
    /// Memory that it can reach.
    pub iommu: &'a mut Iommu,
    /// What the host's bus counts.
    pub bus: &'a mut BusCounters,
    /// Frames that leave.
    pub sent: &'a mut VecDeque<Vec<u8>>,
    /// MSI-X requests (function, vector).
    pub interrupts: &'a mut VecDeque<(u16, u16)>,
    /// Boundary events, when switched on.
    pub trace: &'a mut Option<Vec<Event>>,
}

/// What a card is made of: the gateware, or its twin.
pub trait CardBody: Send {
    /// One cycle of the world, at tick `ticks`. True: something moved at the boundary, or waits there.
    fn cycle(&mut self, edge: &mut Edge, cycle: u64, ticks: u64) -> bool;
    /// Posts a register write.
    fn write32(&mut self, addr: u32, value: u32);
    /// Starts a register read.
    fn start_read32(&mut self, addr: u32);
    /// The value of the last read, once.
    fn take_read(&mut self) -> Option<u32>;
    /// Posts a doorbell write of 8 or 64 bytes.
    fn doorbell(&mut self, addr: u32, bytes: &[u8]);
    /// A frame, not shorter than Ethernet's 60 bytes.
    fn receive(&mut self, frame: Vec<u8>);
    /// BAR accesses that wait.
    fn mmio_backlog(&self) -> usize;
    /// Frames that wait.
    fn receive_backlog(&self) -> usize;
    /// Nothing moves at the boundary and nothing waits there.
    fn idle(&self) -> bool;
    /// What it is asked for it does at once: while it is idle nothing is under way inside.
    fn instant(&self) -> bool {
        false
    }
    /// The tick at which something may happen by itself, if that is known: timers of gateware are not.
    fn next_deadline(&self) -> Option<u64> {
        None
    }
    /// Changes the host's timing from now on, where there is one.
    fn set_timing(&mut self, _timing: HostTiming) {}
    /// From now on the MAC takes so many bytes per cycle, where cycles count.
    fn pace_mac(&mut self, _bytes_per_cycle: u32) {}
}

/// Cycles of silence at a card's boundary after which idle time is skipped: longer than any internal latency of gateware, and the same for a twin, so that programs see time pass alike.
const SILENCE: u64 = 3000;

/// The same after which a card's clock may stand for a while: what is under way inside goes on later.
const REST: u64 = 64;

#[cfg(not(feature = "cards"))]
const NO_GATEWARE: &str = "this program has been built without the gateware; there are twins only";

/// Ethernet's shortest frame without FCS.
const SHORTEST: usize = 60;

/// A simulated card.
pub struct Card {
    body: Box<dyn CardBody>,
    /// Virtio functions, in the order of their numbers.
    pub virtio: Vec<Box<dyn Seat>>,
    /// Memory the card can reach.
    pub iommu: Iommu,
    /// What the host's bus has counted.
    pub bus: BusCounters,
    /// Frames completed by the MAC in this cycle.
    pub sent: VecDeque<Vec<u8>>,
    /// MSI-X requests (function, vector) not yet taken.
    pub interrupts: VecDeque<(u16, u16)>,
    /// Cycle of the last activity at the boundary.
    pub last_activity: u64,
}

impl Card {
    /// A card as after power-on, number `index` of its world. Gateware is built, or taken from the cache. Errors: of that.
    pub fn new(config: &CardConfig, index: u16) -> Result<Self, Error> {
        let body: Box<dyn CardBody> = match Body::of(index.into(), config.body)? {
            Body::Twin => Box::new(TwinBody::new(config)),
            #[cfg(feature = "cards")]
            Body::Gateware => Box::new(Gateware::new(&crate::device::library(config)?, config, index)?),
            #[cfg(not(feature = "cards"))]
            Body::Gateware => return Err(Error::Gateware(NO_GATEWARE.into())),
        };
        let iommu = Iommu::new(config.seed ^ 0x10);
        let first = config.functions as u16;
        let seat = |(c, number): (&FunctionConfig, u16)| -> Result<Box<dyn Seat>, Error> {
            match c.body {
                Body::Twin => Ok(Box::new(ModelSeat::new(number, c))),
                #[cfg(feature = "cards")]
                Body::Gateware => Ok(Box::new(GatewareSeat::new(number, c, config)?)),
                #[cfg(not(feature = "cards"))]
                Body::Gateware => Err(Error::Gateware(NO_GATEWARE.into())),
            }
        };
        let virtio = config.virtio.iter().zip(first..).map(seat).collect::<Result<_, _>>()?;
        Ok(Self { body, virtio, iommu, bus: BusCounters::default(), sent: VecDeque::new(), interrupts: VecDeque::new(), last_activity: 0 })
    }

    /// Posts a register write.
    pub fn write32(&mut self, addr: u32, value: u32) {
        self.body.write32(addr, value);
    }
    /// Starts a register read; its value shows up in [`Card::take_read`].
    pub fn start_read32(&mut self, addr: u32) {
        self.body.start_read32(addr);
    }
    /// The value of the last read, once.
    pub fn take_read(&mut self) -> Option<u32> {
        self.body.take_read()
    }
    /// Posts a doorbell write of 8 or 64 bytes.
    pub fn doorbell(&mut self, addr: u32, bytes: &[u8]) {
        self.body.doorbell(addr, bytes);
    }
    /// Hands a frame to the MAC's receive side. Padded to Ethernet's 60 bytes, as a real sender's MAC would. Each function sees it: native ones know their addresses, virtio ones have filters.
    pub fn receive(&mut self, mut frame: Vec<u8>) {
        if frame.len() < SHORTEST {
            frame.resize(SHORTEST, 0);
        }
        self.virtio.iter_mut().for_each(|seat| seat.receive(&frame));
        self.body.receive(frame);
    }
    /// BAR accesses that wait for the card.
    pub fn mmio_backlog(&self) -> usize {
        self.body.mmio_backlog()
    }
    /// Frames that wait for the card's MAC.
    pub fn receive_backlog(&self) -> usize {
        self.virtio.iter().map(|seat| seat.receive_backlog()).fold(self.body.receive_backlog(), usize::max)
    }
    /// Nothing moves at the boundary and nothing waits there.
    pub fn idle(&self) -> bool {
        self.body.idle() && self.virtio.iter().all(|seat| seat.idle())
    }
    /// Nothing moves, and nothing has for so long before `cycle` that nothing is under way inside.
    pub fn quiet(&self, cycle: u64) -> bool {
        self.idle() && cycle.saturating_sub(self.last_activity) > SILENCE
    }
    /// Nothing moves at its boundary, and little can be under way inside.
    pub fn rests(&self, cycle: u64) -> bool {
        self.idle() && cycle.saturating_sub(self.last_activity) > REST
    }
    /// It does at once what it is asked for: a twin.
    pub fn instant(&self) -> bool {
        self.body.instant()
    }
    /// The tick at which something may happen by itself, if that is known.
    pub fn next_deadline(&self) -> Option<u64> {
        self.body.next_deadline()
    }
    /// Changes the host's timing from now on.
    pub fn set_timing(&mut self, timing: HostTiming) {
        self.body.set_timing(timing);
    }
    /// From now on the MAC takes so many bytes per cycle, as [`CardConfig::mac_bytes_per_cycle`].
    pub fn pace_mac(&mut self, bytes_per_cycle: u32) {
        self.body.pace_mac(bytes_per_cycle);
    }

    /// Runs one clock cycle, at tick `ticks`.
    pub fn cycle(&mut self, cycle: u64, ticks: u64, trace: &mut Option<Vec<Event>>) {
        self.iommu.watch.now = cycle;
        let mut edge = Edge { iommu: &mut self.iommu, bus: &mut self.bus, sent: &mut self.sent, interrupts: &mut self.interrupts, trace };
        let mut moved = self.body.cycle(&mut edge, cycle, ticks);
        let mut edge = SeatEdge { iommu: &mut self.iommu, sent: &mut self.sent, interrupts: &mut self.interrupts };
        for seat in &mut self.virtio {
            moved |= seat.cycle(&mut edge);
        }
        if moved {
            self.last_activity = cycle;
        }
    }
}
