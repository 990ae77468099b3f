//! The driver's device trait over a simulated card. Only waiting makes time pass.
use crate::world::World;
use ferric_driver::device::{Device, DmaAccess};
use ferric_driver::mapping::Mapping;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

#[cfg(feature = "cards")]
pub use crate::library::{card_verilog, library};

/// Cycles that pass in one call of the wait hook.
const QUANTUM: u64 = 16;

/// One function of one card of a [`World`].
pub struct SimDevice {
    world: Arc<Mutex<World>>,
    card: usize,
    function: u16,
}

impl SimDevice {
    /// Function `function` of card `card`.
    // Nobody wants the concrete type: a driver takes any device.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(world: &Arc<Mutex<World>>, card: usize, function: u16) -> Arc<dyn Device> {
        Arc::new(Self { world: world.clone(), card, function })
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn address(&self, offset: u32) -> u32 {
        (self.function as u32) << ferric_abi::csr::WINDOW_BITS | offset
    }
}

impl Device for SimDevice {
    fn read32(&self, offset: u32) -> u32 {
        let mut w = self.world();
        w.cards[self.card].start_read32(self.address(offset));
        // A PCIe root port gives all-ones when a completion does not come.
        for _ in 0..1_000_000 {
            w.step();
            if let Some(v) = w.cards[self.card].take_read() {
                return v;
            }
        }
        u32::MAX
    }

    fn write32(&self, offset: u32, value: u32) {
        let addr = self.address(offset);
        let mut w = self.world();
        if offset == ferric_abi::csr::ADMIN_DOORBELL {
            w.asks(self.card);
        }
        w.cards[self.card].write32(addr, value);
    }

    fn write64(&self, offset: u32, value: u64) {
        let addr = self.address(offset);
        self.world().cards[self.card].doorbell(addr, &value.to_le_bytes());
    }

    fn has_lines(&self) -> bool {
        true
    }

    fn write_line(&self, offset: u32, line: &[u8; 64]) {
        let addr = self.address(offset);
        self.world().cards[self.card].doorbell(addr, line);
    }

    unsafe fn map(&self, ptr: *mut u8, len: usize, access: DmaAccess, contiguous: bool) -> ferric_driver::error::Result<Mapping> {
        // SAFETY: the caller's promise is passed on.
        Ok(unsafe { self.world().cards[self.card].iommu.map(self.function, ptr, len, access == DmaAccess::ReadWrite, contiguous) })
    }

    fn map_dmabuf(&self, buffer: BorrowedFd, offset: u64, len: usize, access: DmaAccess) -> ferric_driver::error::Result<Mapping> {
        let fail = |reason: &str| Err(ferric_driver::Error::Map { len, reason: reason.into(), errno: 0 });
        let mut w = self.world();
        let Some(peer) = w.peers.iter().find(|p| p.is(buffer)).cloned() else { return fail("no device of this machine has exported the buffer") };
        if offset.checked_add(len as u64).is_none_or(|end| end > peer.bytes()) {
            return fail("it ends behind the buffer");
        }
        Ok(w.cards[self.card].iommu.map_peer(self.function, &peer, offset, len, access == DmaAccess::ReadWrite))
    }

    fn unmap(&self, mapping: &Mapping) {
        let function = self.function;
        self.world().cards[self.card].iommu.unmap(function, mapping);
    }

    fn relax(&self) {
        self.world().run(QUANTUM);
    }

    fn relax_for_answer(&self) {
        self.world().run_for(self.card, QUANTUM);
    }

    fn wait_interrupt(&self, vector: u16, timeout: Duration) -> ferric_driver::error::Result<bool> {
        let end = self.now() + timeout;
        loop {
            {
                let mut w = self.world();
                let pending = &mut w.cards[self.card].interrupts;
                if let Some(i) = pending.iter().position(|p| *p == (self.function, vector)) {
                    pending.remove(i);
                    return Ok(true);
                }
                w.run(QUANTUM);
            }
            if self.now() >= end {
                return Ok(false);
            }
        }
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.world().nanos())
    }
}
