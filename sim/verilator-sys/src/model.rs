//! A loaded library and its instances.

use crate::error::Error;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::path::Path;
use std::sync::Arc;

/// Nanoseconds per clock cycle in traces: the core runs at 250 MHz.
pub const CYCLE_NS: u64 = 4;

/// Which way a port of the top faces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Written by the test bench.
    In,
    /// Written by the model.
    Out,
}

/// One port of the top module.
#[derive(Clone, Debug)]
pub struct Port {
    /// Verilog name, e.g. `s$data`.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// Direction seen from the model.
    pub direction: Direction,
}

impl Port {
    /// Bytes of its value.
    pub fn bytes(&self) -> usize {
        self.width.div_ceil(8) as usize
    }
}

/// A port of one top: cheap to copy, valid for every instance of the same library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortId(u32);

#[repr(C)]
struct RawPort {
    name: *const c_char,
    width: u32,
    input: u32,
}

/// The shim's entry points (`shim.rs` generates the other side).
struct Symbols {
    new: unsafe extern "C" fn() -> *mut c_void,
    delete: unsafe extern "C" fn(*mut c_void),
    storage: unsafe extern "C" fn(*mut c_void, u32) -> *mut c_void,
    eval: unsafe extern "C" fn(*mut c_void),
    cycle: unsafe extern "C" fn(*mut c_void),
    trace_open: unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int,
    trace_dump: unsafe extern "C" fn(*mut c_void, u64),
}

struct Loaded {
    top: String,
    traced: bool,
    symbols: Symbols,
    ports: Vec<Port>,
    names: HashMap<String, PortId>,
}

/// A built and loaded model class; instances come from [`Library::instance`].
#[derive(Clone)]
pub struct Library(Arc<Loaded>);

impl Library {
    pub(crate) fn open(path: &Path, top: &str, traced: bool) -> Result<Library, Error> {
        let fail = |e: libloading::Error| Error::Load { path: path.into(), reason: e.to_string() };
        // SAFETY: the file was written by this crate's builder: its only initialisers are those of
        // Verilator's runtime, and every symbol below has the type given here in the generated shim.
        let (symbols, ports) = unsafe {
            let library = libloading::Library::new(path).map_err(fail)?;
            // Never unloaded: the runtime registers thread-local destructors that would dangle.
            let library = Box::leak(Box::new(library));
            let count = library.get::<unsafe extern "C" fn() -> u32>(b"ferric_port_count").map_err(fail)?();
            let table = library.get::<unsafe extern "C" fn() -> *const RawPort>(b"ferric_ports").map_err(fail)?();
            let ports = (0..count as usize).map(|index| {
                let raw = &*table.add(index);
                Port { name: CStr::from_ptr(raw.name).to_string_lossy().into_owned(), width: raw.width, direction: if raw.input != 0 { Direction::In } else { Direction::Out } }
            });
            let symbols = Symbols {
                new: *library.get(b"ferric_new").map_err(fail)?,
                delete: *library.get(b"ferric_delete").map_err(fail)?,
                storage: *library.get(b"ferric_port_storage").map_err(fail)?,
                eval: *library.get(b"ferric_eval").map_err(fail)?,
                cycle: *library.get(b"ferric_cycle").map_err(fail)?,
                trace_open: *library.get(b"ferric_trace_open").map_err(fail)?,
                trace_dump: *library.get(b"ferric_trace_dump").map_err(fail)?,
            };
            (symbols, ports.collect::<Vec<_>>())
        };
        let names = ports.iter().enumerate().map(|(i, port)| (port.name.clone(), PortId(i as u32))).collect();
        Ok(Library(Arc::new(Loaded { top: top.into(), traced, symbols, ports, names })))
    }

    /// All ports in declaration order.
    pub fn ports(&self) -> &[Port] {
        &self.0.ports
    }

    /// A new instance in its power-up state, with its own simulation context; writes FST to `trace` if given.
    pub fn instance(&self, trace: Option<&Path>) -> Result<Model, Error> {
        let loaded = &self.0;
        if trace.is_some() && !loaded.traced {
            return Err(Error::NotTraced(loaded.top.clone()));
        }
        // SAFETY: the entry points belong to this library and `raw` is a live instance of it until `Model` drops.
        let raw = unsafe { (loaded.symbols.new)() };
        let storage = |index| unsafe { (loaded.symbols.storage)(raw, index).cast::<u8>() };
        let storage: Vec<*mut u8> = (0..loaded.ports.len() as u32).map(storage).collect();
        let clock = loaded.names.get("clock").copied();
        let model = Model { library: self.clone(), raw, storage, clock, cycles: 0, traced_from: trace.map(|_| 0) };
        if let Some(path) = trace {
            let bad = || Error::TraceFile(path.into());
            let name = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| bad())?;
            // SAFETY: as above; the name lives across the call.
            if unsafe { (loaded.symbols.trace_open)(raw, name.as_ptr()) } != 1 {
                return Err(bad());
            }
        }
        Ok(model)
    }
}

/// One running instance. Deleting it closes its trace.
pub struct Model {
    library: Library,
    raw: *mut c_void,
    /// Start of each port's storage inside the C++ object; at least `Port::bytes` long, little endian.
    storage: Vec<*mut u8>,
    clock: Option<PortId>,
    cycles: u64,
    /// The cycle with which its trace begins, if there is one.
    traced_from: Option<u64>,
}

// SAFETY: an instance owns its context, shares no mutable state with other instances, and all access to it
// goes through `&mut self` (or `&self` for plain reads), so it may move between threads.
unsafe impl Send for Model {}

impl Model {
    /// The port of that Verilog name.
    pub fn port(&self, name: &str) -> Result<PortId, Error> {
        self.try_port(name).ok_or_else(|| Error::NoPort { top: self.library.0.top.clone(), name: name.into(), ports: self.ports().iter().map(|port| port.name.as_str()).collect::<Vec<_>>().join(" ") })
    }

    /// The port of that Verilog name, if there is one.
    pub fn try_port(&self, name: &str) -> Option<PortId> {
        self.library.0.names.get(name).copied()
    }

    /// All ports in declaration order.
    pub fn ports(&self) -> &[Port] {
        self.library.ports()
    }

    /// Name, width and direction of a port.
    pub fn info(&self, port: PortId) -> &Port {
        &self.ports()[port.0 as usize]
    }

    /// Writes an input of up to 64 bits (wider ones are zero extended). Panics if the value does not fit.
    pub fn set(&mut self, port: PortId, value: u64) {
        let width = self.info(port).width;
        assert!(width >= 64 || value >> width == 0, "{value:#x} does not fit `{}`", self.info(port).name);
        let bytes = value.to_le_bytes();
        let storage = self.bytes_mut(port);
        let low = storage.len().min(8);
        storage[..low].copy_from_slice(&bytes[..low]);
        storage[low..].fill(0);
    }

    /// Reads a port of up to 64 bits. Panics on wider ones.
    pub fn get(&self, port: PortId) -> u64 {
        let storage = self.bytes(port);
        assert!(storage.len() <= 8, "`{}` is wider than 64 bits", self.info(port).name);
        let mut bytes = [0; 8];
        bytes[..storage.len()].copy_from_slice(storage);
        u64::from_le_bytes(bytes)
    }

    /// Writes an input of any width, least significant word first. Panics unless there are exactly
    /// `width.div_ceil(32)` words and the value fits.
    pub fn set_wide(&mut self, port: PortId, words: &[u32]) {
        let width = self.info(port).width as usize;
        assert_eq!(words.len(), width.div_ceil(32), "words of `{}`", self.info(port).name);
        let top = words.last().copied().unwrap_or(0);
        assert!(width.is_multiple_of(32) || top >> (width % 32) == 0, "value does not fit `{}`", self.info(port).name);
        for (bytes, word) in self.bytes_mut(port).chunks_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
        }
    }

    /// Reads a port of any width, least significant word first. Panics unless there are exactly
    /// `width.div_ceil(32)` words.
    pub fn get_wide(&self, port: PortId, words: &mut [u32]) {
        let storage = self.bytes(port);
        assert_eq!(words.len(), storage.len().div_ceil(4), "words of `{}`", self.info(port).name);
        for (bytes, word) in storage.chunks(4).zip(words) {
            let mut all = [0; 4];
            all[..bytes.len()].copy_from_slice(bytes);
            *word = u32::from_le_bytes(all);
        }
    }

    /// Writes an input of any width, least significant byte first. Panics unless there are exactly
    /// `width.div_ceil(8)` bytes and the value fits.
    pub fn set_bytes(&mut self, port: PortId, bytes: &[u8]) {
        let width = self.info(port).width;
        let top = bytes.last().copied().unwrap_or(0);
        assert!(width.is_multiple_of(8) || top >> (width % 8) == 0, "value does not fit `{}`", self.info(port).name);
        self.bytes_mut(port).copy_from_slice(bytes);
    }

    /// Reads a port of any width, least significant byte first. Panics unless there are exactly
    /// `width.div_ceil(8)` bytes.
    pub fn get_bytes(&self, port: PortId, bytes: &mut [u8]) {
        bytes.copy_from_slice(self.bytes(port));
    }

    /// A port's storage, `width.div_ceil(8)` bytes, least significant first.
    pub fn bytes(&self, port: PortId) -> &[u8] {
        let len = self.info(port).bytes();
        // SAFETY: the port's storage is at least that long (Verilator rounds widths up to 8, 16, 32, 64 or n*32
        // bits), lives as long as the instance, and is written only through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.storage[port.0 as usize], len) }
    }

    fn bytes_mut(&mut self, port: PortId) -> &mut [u8] {
        let len = self.info(port).bytes();
        // SAFETY: as in `bytes`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.storage[port.0 as usize], len) }
    }

    /// Evaluates the model as it stands (for tops without a clock).
    pub fn eval(&mut self) {
        // SAFETY: `raw` is a live instance of this library.
        unsafe { (self.library.0.symbols.eval)(self.raw) }
    }

    /// Clock low and evaluate: outputs show what is sampled at the coming edge. May be repeated in one cycle.
    pub fn settle(&mut self) {
        if let Some(clock) = self.clock {
            self.set(clock, 0);
        }
        self.eval();
    }

    /// Clock high and evaluate: the registers take their next values; time advances by [`CYCLE_NS`].
    pub fn edge(&mut self) {
        self.dump(self.cycles * CYCLE_NS);
        if let Some(clock) = self.clock {
            self.set(clock, 1);
        }
        self.eval();
        self.dump(self.cycles * CYCLE_NS + CYCLE_NS / 2);
        self.cycles += 1;
    }

    /// One whole cycle: [`Model::settle`], then [`Model::edge`].
    pub fn tick(&mut self) {
        self.settle();
        self.edge();
    }

    /// One whole cycle in one evaluation, for tops whose outputs come from registers only: what the outputs show before the
    /// call is what is sampled at this edge, whatever the inputs are. Twice as fast as [`Model::tick`].
    pub fn cycle(&mut self) {
        if self.tracing() {
            return self.tick();
        }
        // SAFETY: `raw` is a live instance of this library.
        unsafe { (self.library.0.symbols.cycle)(self.raw) }
        self.cycles += 1;
    }

    /// Edges so far.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Nothing before this cycle goes to the trace: what comes before may be a hundred times as long as what is looked for.
    pub fn trace_from(&mut self, cycle: u64) {
        self.traced_from = self.traced_from.map(|_| cycle);
    }

    fn tracing(&self) -> bool {
        self.traced_from.is_some_and(|from| self.cycles >= from)
    }

    fn dump(&mut self, ns: u64) {
        if self.tracing() {
            // SAFETY: `raw` is a live instance of this library.
            unsafe { (self.library.0.symbols.trace_dump)(self.raw, ns) }
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: `raw` came from this library's `ferric_new` and is deleted once.
        unsafe { (self.library.0.symbols.delete)(self.raw) }
    }
}
