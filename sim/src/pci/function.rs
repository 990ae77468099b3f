//! What one PCI function is besides the gateware: configuration space, MSI-X table and pending bits, eventfds, error log.
use super::config::{self, ConfigSpace, Effect};
use crate::iommu::Fault;
use crate::virtio::NetCounters;
use ferric_abi::pci;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard};

/// What happened to a function, for tools and tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// DMA reads and writes that the client's map let through.
    pub dma_passed: [u64; 2],
    /// DMA accesses that lay outside the client's map or came with bus mastering off.
    pub dma_refused: u64,
    /// Of these, those that came with bus mastering off: a driver's end clears it, whatever the card is doing.
    pub dma_master_off: u64,
    /// Interrupts delivered.
    pub interrupts: u64,
    /// Function-level resets.
    pub resets: u64,
    /// Clients that were served.
    pub clients: u64,
    /// Clients that were refused because there was one.
    pub refused: u64,
    /// Messages answered with an error, and connections closed because of what they sent.
    pub nonsense: u64,
    /// Register reads that the simulation did not answer in time, and writes it did not take.
    pub late: u64,
}

/// The changing part.
pub struct State {
    /// Configuration space.
    pub config: ConfigSpace,
    vectors: Vec<Option<File>>,
    error: Option<File>,
    table: Vec<u8>,
    pending: u32,
    /// Counters.
    pub counters: Counters,
    /// Those of a virtio function.
    pub network: NetCounters,
}

/// One function.
pub struct Function {
    /// Card it belongs to.
    pub card: usize,
    /// Number on the card.
    pub number: u16,
    /// Its number among the card's virtio functions, if it is one.
    pub virtio: Option<usize>,
    state: Mutex<State>,
}

/// Writes an eventfd that the client gave, without ever waiting for it.
fn signal(mut fd: &File) -> bool {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: one valid entry.
    let n = unsafe { libc::poll(&mut poll, 1, 0) };
    n == 1 && poll.revents & libc::POLLOUT != 0 && fd.write_all(&1u64.to_ne_bytes()).is_ok()
}

/// The serial number of a card.
fn serial(card: usize) -> u64 {
    0x0200_0000_fe11_0000 | (card as u64) << 8 | 1
}

impl Function {
    /// Function `number` of card `card`, which has the usual functions, after power-on.
    pub fn new(card: usize, number: u16) -> Self {
        Self::among(card, number, pci::FUNCTIONS)
    }

    /// The same of a card with `functions` functions.
    pub fn among(card: usize, number: u16, functions: u16) -> Self {
        Self::with(card, number, None, ConfigSpace::new(number, functions, serial(card)))
    }

    /// Virtio function `index` of card `card`, which has `functions` native ones in front of it.
    pub fn virtio(card: usize, index: usize, functions: u16) -> Self {
        Self::with(card, functions + index as u16, Some(index), ConfigSpace::virtio(serial(card)))
    }

    fn with(card: usize, number: u16, virtio: Option<usize>, config: ConfigSpace) -> Self {
        let state =
            State { config, vectors: (0..pci::MSIX_VECTORS).map(|_| None).collect(), error: None, table: Self::table(), pending: 0, counters: Counters::default(), network: NetCounters::default() };
        Self { card, number, virtio, state: Mutex::new(state) }
    }

    /// Every vector is masked after reset.
    fn table() -> Vec<u8> {
        (0..pci::MSIX_VECTORS as usize * 16).map(|i| (i % 16 == 12) as u8).collect()
    }

    /// The state, locked.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Counters.
    pub fn counters(&self) -> Counters {
        self.state().counters
    }

    /// Raises MSI-X `vector`; without an eventfd it stays pending.
    pub fn interrupt(&self, vector: u16) {
        let mut s = self.state();
        let Some(slot) = s.vectors.get(vector as usize) else {
            log::warn!("function {}: interrupt vector {vector} does not exist", self.number);
            return;
        };
        if slot.as_ref().is_some_and(signal) {
            s.counters.interrupts += 1;
        } else {
            s.pending |= 1 << vector;
        }
    }

    /// The IOMMU refused an access of this function.
    pub fn dma_fault(&self, fault: Fault) {
        let mut s = self.state();
        s.counters.dma_refused += 1;
        log::debug!("function {}: {} {:#x} refused, bus mastering is {}", self.number, if fault.write { "write to" } else { "read of" }, fault.iova, if s.master_enabled() { "on" } else { "off" });
        // The header of the request: 64-bit address, one dword; format and type say read or write.
        let kind = if fault.write { 0x6000_0001 } else { 0x2000_0001 };
        let header = [kind, (self.number as u32) << 16 | 0xff, (fault.iova >> 32) as u32, fault.iova as u32 & !3];
        s.config.set(config::STATUS, config::STATUS_MASTER_ABORT as u32);
        if s.config.log_error(config::ERROR_UNSUPPORTED, header) {
            if let Some(fd) = &s.error {
                signal(fd);
            }
        }
    }
}

impl State {
    /// Memory space is enabled.
    pub fn memory_enabled(&self) -> bool {
        self.config.word(config::COMMAND) & config::COMMAND_MEMORY != 0
    }
    /// Bus mastering is enabled.
    pub fn master_enabled(&self) -> bool {
        self.config.word(config::COMMAND) & config::COMMAND_MASTER != 0
    }

    /// Software writes configuration space.
    pub fn write_config(&mut self, offset: usize, data: &[u8]) -> Effect {
        self.config.write(offset, data)
    }

    /// Reads the BAR of the MSI-X table.
    pub fn read_msix(&self, offset: usize, out: &mut [u8]) {
        let pba = pci::MSIX_PBA as usize;
        for (i, o) in out.iter_mut().enumerate() {
            let at = offset + i;
            *o = match self.table.get(at) {
                Some(b) => *b,
                None if (pba..pba + 4).contains(&at) => self.pending.to_le_bytes()[at - pba],
                None => 0,
            };
        }
    }

    /// Writes the MSI-X table. It is kept for reading back only: eventfds, not table entries, say where interrupts go.
    pub fn write_msix(&mut self, offset: usize, data: &[u8]) {
        for (i, d) in data.iter().enumerate() {
            if let Some(b) = self.table.get_mut(offset + i) {
                *b = if (offset + i) % 16 >= 13 {
                    0
                } else if (offset + i) % 16 == 12 {
                    d & 1
                } else {
                    *d
                };
            }
        }
    }

    /// Wires MSI-X vectors from `start` on; `None` unwires. What was pending is delivered. False: there are no such vectors.
    pub fn set_vectors(&mut self, start: usize, fds: Vec<Option<File>>) -> bool {
        let Some(slots) = start.checked_add(fds.len()).and_then(|end| self.vectors.get_mut(start..end)) else { return false };
        for (i, (slot, fd)) in slots.iter_mut().zip(fds).enumerate() {
            let bit = 1u32 << (start + i);
            if self.pending & bit != 0 && fd.as_ref().is_some_and(signal) {
                self.pending &= !bit;
                self.counters.interrupts += 1;
            }
            *slot = fd;
        }
        true
    }

    /// Unwires all MSI-X vectors.
    pub fn clear_vectors(&mut self) {
        self.vectors.iter_mut().for_each(|v| *v = None);
    }

    /// Wires the error interrupt.
    pub fn set_error(&mut self, fd: Option<File>) {
        self.error = fd;
    }

    /// Function-level reset of everything here.
    pub fn reset(&mut self) {
        self.config.reset();
        self.table = Function::table();
        self.pending = 0;
        self.counters.resets += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferric_driver::eventfd::EventFd;
    use std::os::fd::AsFd;

    fn file(e: &EventFd) -> File {
        File::from(e.as_fd().try_clone_to_owned().unwrap())
    }

    #[test]
    fn an_interrupt_waits_for_its_eventfd() {
        let f = Function::new(0, 0);
        let e = EventFd::new().unwrap();
        f.interrupt(3);
        f.interrupt(3);
        f.interrupt(400);
        let mut pba = [0; 4];
        f.state().read_msix(pci::MSIX_PBA as usize, &mut pba);
        assert_eq!(pba, [8, 0, 0, 0]);
        assert!(f.state().set_vectors(3, vec![Some(file(&e))]));
        assert_eq!(e.take(), 1);
        f.interrupt(3);
        assert_eq!((e.take(), f.counters().interrupts), (1, 2));
        assert!(!f.state().set_vectors(31, vec![None, None]));
        assert!(!f.state().set_vectors(usize::MAX, vec![None]));
    }

    #[test]
    fn a_full_eventfd_does_not_stop_the_card() {
        let f = Function::new(0, 0);
        let e = EventFd::new().unwrap();
        let mut full = file(&e);
        full.write_all(&(u64::MAX - 1).to_ne_bytes()).unwrap();
        f.state().set_vectors(0, vec![Some(full)]);
        f.interrupt(0);
        assert_eq!(f.counters().interrupts, 0);
    }

    #[test]
    fn a_refused_access_is_counted_and_logged() {
        let f = Function::new(0, 0);
        f.dma_fault(Fault { function: 0, iova: 0x12_3456_7804, write: true });
        let s = f.state();
        assert_eq!(s.counters.dma_refused, 1);
        assert_eq!(s.config.dword(config::AER_UNCORRECTABLE), config::ERROR_UNSUPPORTED);
        assert_eq!([s.config.dword(config::AER_HEADER_LOG + 8), s.config.dword(config::AER_HEADER_LOG + 12)], [0x12, 0x3456_7804]);
        assert_ne!(s.config.word(config::STATUS) & config::STATUS_MASTER_ABORT, 0);
    }

    #[test]
    fn table_bytes_are_kept_and_reset_masks_them() {
        let f = Function::new(0, 0);
        f.state().write_msix(16, &[0xff; 16]);
        f.state().write_msix(usize::MAX - 3, &[0xff; 2]);
        let mut entry = [0; 16];
        f.state().read_msix(16, &mut entry);
        assert_eq!(entry[11..], [0xff, 1, 0, 0, 0]);
        f.state().reset();
        f.state().read_msix(16, &mut entry);
        assert_eq!(entry, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    }
}
