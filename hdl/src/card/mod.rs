//! The card: its list (`list.rs`), its sizes, its Verilog.

pub mod counters;
mod list;
pub mod pages;
#[cfg(test)]
mod tests;

use crate::assembly::Assembly;

/// log2 of the protection domains.
const LOG_PDS: u32 = 8;

/// The discovery words CAPS0 to CAPS3 (`abi::csr`). `logs`: log2 of queue pairs, completion queues, memory regions, event queues.
pub(crate) fn capabilities(bytes: usize, logs: [usize; 4]) -> [u32; 4] {
    let [qps, cqs, mrs, eqs] = logs.map(|l| l as u32);
    let chaos = crate::stream::chaos::on() as u32;
    // 512-byte work requests: 480 bytes behind the head.
    [qps | cqs << 8 | mrs << 16 | LOG_PDS << 24, eqs | 2 << 8 | (bytes as u32) << 16 | 1 << 24, 30 | 480 << 8 | 3 << 24, 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 16 | chaos << 17 | 1 << 18 | 1 << ferric_abi::csr::FEATURE_SRQ | 1 << ferric_abi::csr::FEATURE_MULTICAST]
}

/// Widths of the data path that there are cards of, in bits.
pub const WIDTHS: [usize; 2] = [64, 512];

/// The list of the card of `width` bits. 512: 1024 queue pairs, 1024 completion queues, 4096 memory regions and 32 event queues; 64: 256, 256, 1024 and 32.
/// Error: there is no card of that width.
pub fn list(width: usize) -> Result<Assembly, String> {
    match width {
        64 => Ok(list::card::<64, 8, 3, 8, 15, 13, 9, 8, 10, 5>()),
        512 => Ok(list::card::<512, 64, 6, 10, 17, 15, 11, 10, 12, 5>()),
        w => Err(format!("no card of {w} bits: 64 or 512")),
    }
}

/// The Verilog of a card: `width` 64 or 512 bits. `chaos`: random stalls on internal streams and random context latency, for soaks.
/// Errors: an unknown width, or what the emitter and the lint gate found.
pub fn generate(width: usize, chaos: bool, top: &str) -> Result<String, String> {
    emit_card(width, chaos, top).map(|v| crate::emit::split::split(&v))
}

/// A port of a card: its name, whether it is an input, its bits.
pub type Border = (String, bool, usize);

/// The signals at the border of the card of `width` bits, in order. Errors: those of [`generate`].
pub fn border(width: usize) -> Result<Vec<Border>, String> {
    on_a_large_stack(|| {
        let card = list(width)?.assemble().map_err(|faults| faults.join("\n"))?;
        let ports = crate::assembly::ports::of(&card);
        Ok(ports.iter().flat_map(|p| p.signals.iter().map(|s| (p.signal(&s.field), s.input, s.bits))).collect())
    })
}

/// Hash of everything the Verilog of a card depends on: the sources of this crate and of the abi.
pub const SOURCE_HASH: &str = env!("FERRIC_HDL_HASH");

/// As RustHDL writes it, which is what the lint gate can read.
fn emit_card(width: usize, chaos: bool, top: &str) -> Result<String, String> {
    let emit = || {
        let card = list(width)?.assemble().map_err(|faults| faults.join("\n"))?;
        crate::emit::emit(top, card).map_err(|e| e.to_string())
    };
    on_a_large_stack(|| if chaos { crate::stream::chaos::scoped(0xfe22_1c00, emit) } else { emit() })
}

/// A card is larger than an ordinary thread's stack. Errors: those of `work`, and a panic in it.
pub(crate) fn on_a_large_stack<R: Send>(work: impl FnOnce() -> Result<R, String> + Send) -> Result<R, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(512 << 20).spawn_scoped(scope, work).map_err(|e| e.to_string())?;
        thread.join().map_err(|_| "the generator panicked".to_string())?
    })
}
