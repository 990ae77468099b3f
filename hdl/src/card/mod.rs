//! Cards: the chassis (`list.rs`), the engines that there are, and the cards that are made of them.

pub mod counters;
#[cfg(test)]
mod header_tests;
mod list;
pub mod pages;
#[cfg(test)]
mod policy_tests;
#[cfg(test)]
mod read_tests;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tests;

use crate::assembly::Assembly;
pub use crate::engines::ENGINES;
use crate::engines::{sizes, Engine, Sizes};
use crate::host::admin::program::{self, Plan};
use crate::host::dma_rd::shares;
use ferric_abi::csr;

/// Cards that have a name: the name, their engines, and what they are for.
pub const CARDS: &[(&str, &[&str], &str)] = &[
    ("roce", &["roce", "echo", "pause"], "RDMA over Converged Ethernet: the reference for speed and area"),
    ("vxlan", &["roce", "echo", "pause", "vxlan"], "the same, with a VXLAN tunnel for each function that is to have one"),
    ("switch", &["roce", "echo", "pause", "vxlan", "flows", "local"], "the same, with flow tables that decide about received frames, and a way from function to function"),
    ("uet", &["echo", "pause", "uet"], "Ultra Ethernet packet delivery without RoCE: the first card that has it"),
    ("virtio", &["echo", "pause", "virtio"], "rings of virtio network functions, without RoCE: the first card that has them"),
];

/// Engines that stand in cards of their own: `uet`, since payload DMA goes to one engine, and `virtio`, since its counters and those of RoCE are more than a card has.
pub const APART: [&str; 2] = ["uet", "virtio"];

/// The engines that one card can have together: all but those of [`APART`].
pub fn most() -> impl Iterator<Item = &'static Engine> {
    ENGINES.iter().copied().filter(|engine| !APART.contains(&engine.name))
}

/// The card that is meant where none is named.
pub const DEFAULT: &str = CARDS[0].0;

/// Widths of the data path that there are cards of, in bits.
pub const WIDTHS: [usize; 2] = [64, 512];

/// A card: its engines in the order of [`ENGINES`], and its sizes.
#[derive(Clone)]
pub struct Card {
    pub engines: Vec<&'static Engine>,
    pub sizes: Sizes,
}

impl Card {
    /// The card called `name` with a data path of `width` bits. Error: there is no card of that name or width.
    pub fn named(name: &str, width: usize) -> Result<Self, String> {
        let known = || CARDS.iter().map(|c| c.0).collect::<Vec<_>>().join(", ");
        let card = CARDS.iter().find(|c| c.0 == name).ok_or_else(|| format!("no card is called {name}; there are: {}", known()))?;
        Self::of(card.1, width)
    }

    /// The card of these engines, and of those that they need. Errors: an unknown engine, an unknown width.
    pub fn of(engines: &[&str], width: usize) -> Result<Self, String> {
        let sizes = sizes::ALL.iter().find(|s| s.width == width).ok_or_else(|| format!("no card of {width} bits: 64 or 512"))?;
        let mut wanted: Vec<&str> = engines.to_vec();
        let mut at = 0;
        while at < wanted.len() {
            let known = || ENGINES.iter().map(|e| e.name).collect::<Vec<_>>().join(", ");
            let engine = ENGINES.iter().find(|e| e.name == wanted[at]).ok_or_else(|| format!("no engine is called {}; there are: {}", wanted[at], known()))?;
            wanted.extend(engine.needs);
            at += 1;
        }
        Ok(Card { engines: ENGINES.iter().filter(|e| wanted.contains(&e.name)).copied().collect(), sizes: *sizes })
    }

    /// The card of `functions` functions that is otherwise the same, but for the sizes that follow from them. Error: there are no such sizes.
    pub fn with_functions(self, functions: usize) -> Result<Self, String> {
        let mut sizes = sizes::ALL.iter().filter(|s| s.width == self.sizes.width);
        let sizes = sizes.find(|s| 1 << s.functions == functions).ok_or_else(|| format!("no card of {} bits has {functions} functions", self.sizes.width))?;
        Ok(Card { sizes: *sizes, ..self })
    }

    /// Its list, line by line.
    pub fn list(&self) -> Assembly {
        list::list(self)
    }

    /// The discovery words CAPS0 to CAPS3 (`abi::csr`).
    fn capabilities(&self) -> [u32; 4] {
        let s = &self.sizes;
        let chaos = u32::from(crate::stream::chaos::on()) << csr::FEATURE_CHAOS;
        let engines = self.engines.iter().fold(0, |bits, e| bits | e.capabilities);
        // 512-byte work requests: 480 bytes behind the head.
        [
            s.queue_pairs | s.completion_queues << 8 | s.memory_regions << 16 | s.protection_domains << 24,
            s.event_queues | s.functions << 8 | (s.width as u32 / 8) << 16 | 1 << 24,
            30 | 480 << 8 | 3 << 24,
            engines | chaos,
        ]
    }

    /// What its admin engine can do. The tables are those of the complete list ([`Plan::with_tables`]).
    pub fn admin_plan(&self) -> Plan {
        let s = &self.sizes;
        let sizes = program::Sizes { qp: s.queue_pairs, cq: s.completion_queues, mr: s.memory_regions, pd: s.protection_domains, eq: s.event_queues, functions: s.functions };
        Plan::new(sizes, self.engines.iter().flat_map(|e| e.commands), self.engines.iter().filter_map(|e| e.reset))
    }

    /// Bits of the AXI ids under which it reads host memory: 8, or 9 if it wants more than 128 small reads in flight, or more than 128 of payload; one more with a second master (`host/masters`).
    pub fn read_id_bits(&self) -> usize {
        let list = self.list();
        shares::id_bits(list.quotas(list::SMALL_READS), self.sizes.requests as usize) + usize::from(list.instances.iter().any(|i| i.name == "masters_rd"))
    }

    /// Whether a board whose bridge takes read ids of `bits` bits can have it. Error: it cannot, and why.
    pub fn fits_read_ids(&self, bits: usize) -> Result<(), String> {
        let list = self.list();
        let quotas = list.quotas(list::SMALL_READS);
        let (wanted, payload) = (quotas.iter().sum::<usize>(), 1 << shares::payload(quotas, self.sizes.requests as usize));
        match self.read_id_bits() {
            own if own > bits => Err(format!("this card wants {wanted} small reads and {payload} of payload in flight, for which its reads have ids of {own} bits; the board's bridge takes {bits}")),
            _ => Ok(()),
        }
    }

    /// Its Verilog. `chaos`: random stalls on internal streams and random context latency, for soaks. Errors: what the emitter and the lint gate found.
    pub fn verilog(&self, chaos: bool, top: &str) -> Result<String, String> {
        self.emit(chaos, top).map(|v| crate::emit::split::split(&v))
    }

    /// As RustHDL writes it, which is what the lint gate can read.
    fn emit(&self, chaos: bool, top: &str) -> Result<String, String> {
        let emit = || {
            let card = self.list().assemble().map_err(|faults| faults.join("\n"))?;
            crate::emit::emit(top, card).map_err(|e| e.to_string())
        };
        on_a_large_stack(|| if chaos { crate::stream::chaos::scoped(0xfe22_1c00, emit) } else { emit() })
    }
}

/// A port of a card: its name, whether it is an input, its bits.
pub type Border = (String, bool, usize);

/// The signals at the border of the default card of `width` bits, in order. Other cards have the same, but for the width of `ar_id` and `r_id` ([`Card::read_id_bits`]). Errors: those of [`Card::verilog`].
pub fn border(width: usize) -> Result<Vec<Border>, String> {
    on_a_large_stack(|| {
        let card = Card::named(DEFAULT, width)?.list().assemble().map_err(|faults| faults.join("\n"))?;
        let ports = crate::assembly::ports::of(&card);
        Ok(ports.iter().flat_map(|p| p.signals.iter().map(|s| (p.signal(&s.field), s.input, s.bits))).collect())
    })
}

/// Hash of everything the Verilog of a card depends on: the sources of this crate and of the abi.
pub const SOURCE_HASH: &str = env!("FERRIC_HDL_HASH");

/// A card is larger than an ordinary thread's stack. Errors: those of `work`, and a panic in it.
pub(crate) fn on_a_large_stack<R: Send>(work: impl FnOnce() -> Result<R, String> + Send) -> Result<R, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(512 << 20).spawn_scoped(scope, work).map_err(|e| e.to_string())?;
        thread.join().map_err(|_| "the generator panicked".to_string())?
    })
}
