//! The driver's device trait over a simulated card. Only waiting makes time pass.
use crate::card::{CardConfig, FUNCTIONS};
use crate::error::Error;
use crate::world::World;
use ferric_driver::device::{Device, DmaAccess};
use ferric_driver::mapping::Mapping;
use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use verilator_sys::{Builder, Library, OptLevel};

/// Cycles that pass in one call of the wait hook.
const QUANTUM: u64 = 16;

/// The Verilated library of a card configuration, built once per process and cached on disk by content.
pub fn library(config: &CardConfig) -> Result<Library, Error> {
    static LIBRARIES: OnceLock<Mutex<HashMap<(usize, usize, bool, bool), Library>>> = OnceLock::new();
    let key = (config.width, config.functions, config.chaos, config.fst.is_some());
    let mut map = LIBRARIES.get_or_init(Mutex::default).lock().unwrap_or_else(|e| e.into_inner());
    if let Some(l) = map.get(&key) {
        return Ok(l.clone());
    }
    let functions = if config.functions == FUNCTIONS { String::new() } else { format!("_functions{}", config.functions) };
    let top = format!("ferric_w{}{functions}{}", config.width, if config.chaos { "_chaos" } else { "" });
    let verilog = verilog(config, &top)?;
    // The chaos card runs for minutes, but compiling it at -O3 takes longer than that.
    let opt = if config.chaos { OptLevel::O1 } else { OptLevel::O3 };
    let library = Builder::new(verilog, &top).opt(opt).trace(config.fst.is_some()).build()?;
    map.insert(key, library.clone());
    Ok(library)
}

/// The Verilog of a card as it is simulated, its top called `ferric_w64` or `ferric_w512`. `width`: bits of the data path.
pub fn card_verilog(width: usize) -> Result<String, Error> {
    verilog(&CardConfig { width, ..CardConfig::default() }, &format!("ferric_w{width}"))
}

/// The generated Verilog, cached on disk by the hash of the gateware's sources.
fn verilog(config: &CardConfig, top: &str) -> Result<String, Error> {
    let dir = verilator_sys::cache_dir();
    let file = dir.join(format!("{top}-{}.v", ferric_hdl::card::SOURCE_HASH));
    if let Ok(text) = std::fs::read_to_string(&file) {
        return Ok(text);
    }
    let text = ferric_hdl::card::Card::named(ferric_hdl::card::DEFAULT, config.width).and_then(|card| card.with_functions(config.functions)?.verilog(config.chaos, top)).map_err(Error::Gateware)?;
    let fail = |e: std::io::Error| Error::Gateware(format!("{}: {e}", file.display()));
    std::fs::create_dir_all(&dir).map_err(fail)?;
    // Renamed into place, so that a second process never reads half a file.
    let partial = file.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&partial, &text).and_then(|()| std::fs::rename(&partial, &file)).map_err(fail)?;
    Ok(text)
}

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
        self.world().cards[self.card].write32(addr, value);
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
