//! The functional twin as a card's body.
use crate::card::{CardBody, CardConfig, Edge};
use crate::iommu::Iommu;
use ferric_twin::{Config, Host, Twin};
use std::collections::VecDeque;

/// Packets that a twin sends in one cycle of the world, about.
const PACKETS: usize = 64;

/// A posted or non-posted access to the BAR.
enum Access {
    Write32(u32, u32),
    Read32(u32),
    Doorbell(u32, [u8; 64], usize),
}

/// The twin with what waits for it.
pub(crate) struct TwinBody {
    twin: Twin,
    mmio: VecDeque<Access>,
    receive: VecDeque<Vec<u8>>,
    read: Option<u32>,
    /// The earliest tick at which a timer may fire.
    next: Option<u64>,
}

impl TwinBody {
    pub(crate) fn new(config: &CardConfig) -> Self {
        let twin = Twin::new(Config { width: config.width, functions: config.functions, tunnels: config.engines == "vxlan" });
        Self { twin, mmio: VecDeque::new(), receive: VecDeque::new(), read: None, next: None }
    }
}

/// Host memory as the twin sees it.
struct Memory<'a>(&'a mut Iommu);

impl Host for Memory<'_> {
    fn read(&mut self, function: u16, iova: u64, out: &mut [u8]) -> bool {
        self.0.read_through(function, iova, out).is_ok()
    }

    fn try_read(&mut self, function: u16, iova: u64, out: &mut [u8]) -> bool {
        self.0.can_read(function, iova, out.len()) && self.0.read_through(function, iova, out).is_ok()
    }

    fn write(&mut self, function: u16, iova: u64, data: &[u8]) -> bool {
        self.0.write_through(function, iova, data, true).is_ok()
    }

    fn place(&mut self, function: u16, iova: u64, data: &[u8]) -> bool {
        self.0.write_through(function, iova, data, false).is_ok()
    }
}

impl CardBody for TwinBody {
    fn cycle(&mut self, edge: &mut Edge, _cycle: u64, ticks: u64) -> bool {
        let due = self.next.is_some_and(|at| at <= ticks);
        if self.idle() && !due {
            return false;
        }
        let host = &mut Memory(edge.iommu);
        self.twin.set_time(ticks);
        // One register read is answered at a time, behind what was posted before it.
        while self.read.is_none() {
            match self.mmio.pop_front() {
                None => break,
                Some(Access::Write32(addr, value)) => {
                    self.twin.write32(addr, value);
                    self.twin.poll(host, 0);
                }
                Some(Access::Doorbell(addr, bytes, len)) => self.twin.doorbell(host, addr, &bytes[..len]),
                Some(Access::Read32(addr)) => self.read = Some(self.twin.read32(addr)),
            }
        }
        while let Some(frame) = self.receive.pop_front() {
            self.twin.receive(host, &frame);
        }
        self.twin.poll(host, PACKETS);
        edge.sent.append(&mut self.twin.sent);
        edge.interrupts.append(&mut self.twin.interrupts);
        self.next = self.twin.next_deadline();
        true
    }

    fn write32(&mut self, addr: u32, value: u32) {
        self.mmio.push_back(Access::Write32(addr, value));
    }

    fn start_read32(&mut self, addr: u32) {
        self.mmio.push_back(Access::Read32(addr));
    }

    fn take_read(&mut self) -> Option<u32> {
        self.read.take()
    }

    fn doorbell(&mut self, addr: u32, bytes: &[u8]) {
        let mut line = [0; 64];
        let len = bytes.len().min(line.len());
        line[..len].copy_from_slice(&bytes[..len]);
        self.mmio.push_back(Access::Doorbell(addr, line, len));
    }

    fn receive(&mut self, frame: Vec<u8>) {
        self.receive.push_back(frame);
    }

    fn mmio_backlog(&self) -> usize {
        self.mmio.len()
    }

    fn receive_backlog(&self) -> usize {
        self.receive.len()
    }

    fn idle(&self) -> bool {
        self.mmio.is_empty() && self.receive.is_empty() && self.twin.idle()
    }

    fn instant(&self) -> bool {
        true
    }

    fn next_deadline(&self) -> Option<u64> {
        self.next
    }
}
