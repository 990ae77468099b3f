//! The gateware as a library of machine code, and its Verilog.
use crate::card::{CardConfig, FUNCTIONS};
use crate::error::Error;
use ferric_hdl::card::{Card, DEFAULT};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};
use verilator_sys::{Builder, Library, OptLevel};

/// The Verilated library of a card configuration, built once per process and cached on disk by content.
pub fn library(config: &CardConfig) -> Result<Library, Error> {
    static LIBRARIES: OnceLock<Mutex<HashMap<(&str, usize, usize, bool, bool), Library>>> = OnceLock::new();
    let key = (config.engines, config.width, config.functions, config.chaos, config.fst.is_some());
    let mut map = LIBRARIES.get_or_init(Mutex::default).lock().unwrap_or_else(|e| e.into_inner());
    if let Some(l) = map.get(&key) {
        return Ok(l.clone());
    }
    let functions = if config.functions == FUNCTIONS { String::new() } else { format!("_functions{}", config.functions) };
    let engines = if config.engines == DEFAULT { String::new() } else { format!("_{}", config.engines) };
    let top = format!("ferric_w{}{engines}{functions}{}", config.width, if config.chaos { "_chaos" } else { "" });
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
    kept(top, || Card::named(config.engines, config.width).and_then(|card| card.with_functions(config.functions)?.verilog(config.chaos, top)))
}

/// The Verilated virtio engine (`ferric_hdl::virtio`) with a data path of `width` bits, cached as [`library`] is.
pub fn virtio_engine(width: usize) -> Result<Library, Error> {
    static LIBRARIES: OnceLock<Mutex<HashMap<usize, Library>>> = OnceLock::new();
    let mut map = LIBRARIES.get_or_init(Mutex::default).lock().unwrap_or_else(|e| e.into_inner());
    if let Some(l) = map.get(&width) {
        return Ok(l.clone());
    }
    let top = format!("ferric_virtio_w{width}");
    let verilog = kept(&top, || virtio_verilog(width, &top))?;
    let library = Builder::new(verilog, &top).opt(OptLevel::O3).build()?;
    map.insert(width, library.clone());
    Ok(library)
}

/// The engine's Verilog, its top called `top`. Error: what its list or the emitter found.
fn virtio_verilog(width: usize, top: &str) -> Result<String, String> {
    // Modules within modules: more than a thread usually has.
    const STACK: usize = 512 << 20;
    let generate = || {
        let block = ferric_hdl::virtio::engine::steered(width).assemble().map_err(|faults| faults.join("\n"))?;
        ferric_hdl::emit::emit(top, block).map_err(|e| e.to_string())
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, generate).map_err(|e| e.to_string())?;
        thread.join().map_err(|_| "the generator panicked".to_string())?
    })
}

/// Verilog that is generated, or taken from the disk, by the hash of the gateware's sources.
fn kept(top: &str, generate: impl FnOnce() -> Result<String, String>) -> Result<String, Error> {
    let dir = verilator_sys::cache_dir();
    let file = dir.join(format!("{top}-{}.v", ferric_hdl::card::SOURCE_HASH));
    if let Ok(text) = std::fs::read_to_string(&file) {
        return Ok(text);
    }
    let text = generate().map_err(Error::Gateware)?;
    let fail = |e: std::io::Error| Error::Gateware(format!("{}: {e}", file.display()));
    std::fs::create_dir_all(&dir).map_err(fail)?;
    // Renamed into place, so that a second process never reads half a file.
    let partial = file.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&partial, &text).and_then(|()| std::fs::rename(&partial, &file)).map_err(fail)?;
    Ok(text)
}
