//! Verilog text to a shared library, cached by content.

use crate::error::Error;
use crate::model::Library;
use crate::share::shared;
use crate::shim;
use crate::tool::{cxx, run, verilator, Cxx, Verilator};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

/// How hard the C++ compiler works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptLevel {
    /// For block tests: builds in seconds.
    O1,
    /// For whole cards: simulates fastest.
    O3,
    /// For netlists: what the other levels do for each gate takes hours with a hundred thousand of them.
    Netlist,
}

impl OptLevel {
    fn flag(self) -> &'static str {
        match self {
            OptLevel::O1 => "-O1",
            OptLevel::O3 => "-O3 -march=native",
            OptLevel::Netlist => "-O0",
        }
    }

    /// Bytes of generated C++ joined into one translation unit: each reads the model's header, which for a netlist is of megabytes. Most blocks have one unit with this.
    fn unit_bytes(self) -> u64 {
        match self {
            OptLevel::Netlist => 8_000_000,
            _ => 700_000,
        }
    }

    /// Of Verilator, beyond those of every model.
    fn verilator(self) -> &'static [&'static str] {
        match self {
            OptLevel::Netlist => &["-fno-gate", "-fno-dfg"],
            _ => &[],
        }
    }
}

/// Size of generated files and functions: compilers need more than linear time for a function, and one huge function keeps the other core idle.
const SPLIT: [&str; 4] = ["--output-split", "20000", "--output-split-cfuncs", "3000"];
/// Translation units compiled at the same time.
const PARALLEL: usize = 2;

/// What to build. See the crate documentation for an example.
#[derive(Clone, Debug)]
pub struct Builder {
    verilog: String,
    top: String,
    opt: OptLevel,
    trace: bool,
    judge: Option<(String, Judge)>,
}

/// Reads what Verilator said of a top (its name, its text as [`shared`] makes it, the warnings of `-Wall`). Errors: why there is to be no model of it.
pub type Judge = fn(&str, &str, &str) -> Result<(), String>;

impl Builder {
    /// A model of module `top` of the given Verilog-2005 text, at `-O1` and without tracing.
    pub fn new(verilog: impl Into<String>, top: &str) -> Self {
        Builder { verilog: verilog.into(), top: top.into(), opt: OptLevel::O1, trace: false, judge: None }
    }

    /// Chooses the C++ optimisation level.
    pub fn opt(mut self, opt: OptLevel) -> Self {
        self.opt = opt;
        self
    }

    /// Makes instances able to write FST (30 to 50 times slower while they do).
    pub fn trace(mut self, trace: bool) -> Self {
        self.trace = trace;
        self
    }

    /// Has Verilator say all that it has to say, and no model built unless `judge` has read it. `rules`: another text when `judge` judges otherwise, for models are kept.
    pub fn judge(mut self, rules: &str, judge: Judge) -> Self {
        self.judge = Some((rules.into(), judge));
        self
    }

    /// Loads the library, building it first when the cache does not hold it.
    pub fn build(&self) -> Result<Library, Error> {
        let verilator = verilator()?;
        let rules = self.judge.as_ref().map_or("", |(rules, _)| rules);
        let flags = format!("{:?} {COLD_OPT} {RARELY} trace={} {} {SPLIT:?} {} {rules}", self.opt, self.trace, cxx()?.version, cpu());
        let verilog = shared(&self.verilog, &self.top);
        let key = content_hash(&[&verilog, &self.top, &flags, &verilator.version, shim::SHIM_VERSION]);
        let dir = cache_dir().join(format!("{}-{key}", file_name(&self.top)));
        let lib = dir.join("lib.so");
        if !lib.is_file() {
            let _lock = Lock::take(&dir)?;
            if !lib.is_file() {
                let start = std::time::Instant::now();
                self.make(&verilog, verilator, &dir, &lib)?;
                log::info!("{}: built in {:.1} s", self.top, start.elapsed().as_secs_f32());
            }
        }
        Library::open(&lib, &self.top, self.trace)
    }

    fn make(&self, verilog: &str, verilator: &'static Verilator, dir: &Path, lib: &Path) -> Result<(), Error> {
        let obj = dir.join("obj");
        let source = dir.join(format!("{}.v", file_name(&self.top)));
        fs::write(&source, verilog).map_err(Error::io(&source))?;
        let mut command = Command::new(&verilator.program);
        // What memories leave open is wrong in a simulation, so that nobody gets used to it.
        command.arg("+define+FERRIC_CHECKS");
        command.args(["--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert"]);
        command.args(["-Wno-fatal", "--default-language", "1364-2005"]);
        command.arg(if self.judge.is_some() { "-Wall" } else { "-Wno-lint" });
        command.args(["--timescale", "1ns/1ns", "--prefix", "Vdut"]).args(SPLIT).args(self.opt.verilator());
        if self.trace {
            command.arg("--trace-fst");
        }
        command.args(["--top-module", &self.top]).arg("--Mdir").arg(&obj).arg(&source);
        let said = run(&mut command, "verilator", &self.top)?;
        if let Some((_, judge)) = &self.judge {
            judge(&self.top, verilog, &String::from_utf8_lossy(&said.stderr)).map_err(|reason| Error::Refused { top: self.top.clone(), reason })?;
        }

        let header = obj.join("Vdut.h");
        let text = fs::read_to_string(&header).map_err(Error::io(&header))?;
        let root = fs::read_to_string(obj.join("Vdut___024root.h")).unwrap_or_default();
        let shim_path = obj.join("ferric_shim.cpp");
        fs::write(&shim_path, shim::generate(&shim::parse_ports(&text, &self.top)?, shim::previous_clock(&root))).map_err(Error::io(&shim_path))?;

        let runtime = Runtime::get(verilator, cxx()?, self.trace)?;
        let header = runtime.header(self.opt.flag(), RARELY)?;
        let units = units(&obj, self.opt.unit_bytes())?;
        let cold = if units.iter().any(|unit| unit.cold) { runtime.header(COLD_OPT, "")? } else { header.clone() };
        let objects = parallel(&units, |unit| {
            let (flags, header) = if unit.cold { (COLD_OPT, &cold) } else { (self.opt.flag(), &header) };
            let object = unit.path.with_extension("o");
            let mut command = runtime.compiler(flags);
            command.arg("-include").arg(header).arg("-I").arg(&obj);
            command.arg("-c").arg(&unit.path).arg("-o").arg(&object);
            run(&mut command, &runtime.cxx.program, &self.top)?;
            Ok(object)
        })?;
        let unfinished = dir.join("lib.so.tmp");
        let mut link = Command::new(&runtime.cxx.program);
        link.args(["-shared", "-Wl,-Bsymbolic", "-o"]).arg(&unfinished).args(&objects).args(&runtime.objects);
        link.args(["-lpthread"]).args(self.trace.then_some("-lz"));
        // g++ knows without asking the library which atomics need no lock.
        link.args(runtime.cxx.clang.then_some("-latomic"));
        // Verilator comes with LZ4 for FST, or wants the system's.
        let own_lz4 = verilator.include.join("gtkwave/lz4.c").is_file();
        link.args((self.trace && !own_lz4).then_some("-llz4"));
        run(&mut link, &runtime.cxx.program, &self.top)?;
        fs::rename(&unfinished, lib).map_err(Error::io(lib))?;
        fs::remove_dir_all(&obj).map_err(Error::io(&obj))
    }
}

/// One translation unit that includes several generated files.
struct Unit {
    path: PathBuf,
    cold: bool,
}

/// Groups the generated files into units of about `limit` bytes.
fn units(obj: &Path, limit: u64) -> Result<Vec<Unit>, Error> {
    let mut files = Vec::new();
    for entry in fs::read_dir(obj).map_err(Error::io(obj))? {
        let entry = entry.map_err(Error::io(obj))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".cpp") {
            let cold = ["Slow", "__Syms", "__Trace"].iter().any(|part| name.contains(part));
            files.push((cold, name, entry.metadata().map_err(Error::io(obj))?.len()));
        }
    }
    files.sort();
    let mut groups: Vec<(bool, u64, String)> = Vec::new();
    for (cold, name, bytes) in files {
        let line = format!("#include \"{name}\"\n");
        match groups.last_mut() {
            Some((group_cold, size, text)) if *group_cold == cold && *size + bytes <= limit => {
                *size += bytes;
                text.push_str(&line);
            }
            _ => groups.push((cold, bytes, line)),
        }
    }
    groups
        .into_iter()
        .enumerate()
        .map(|(index, (cold, _, text))| {
            let path = obj.join(format!("unit{index}.cc"));
            fs::write(&path, text).map_err(Error::io(&path))?;
            Ok(Unit { path, cold })
        })
        .collect()
}

/// Runs `job` over `items` on a few threads; the first error wins.
fn parallel<T: Sync, R: Send>(items: &[T], job: impl Fn(&T) -> Result<R, Error> + Sync) -> Result<Vec<R>, Error> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL.min(items.len()) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = job(item);
                    if result.is_err() {
                        next.store(items.len(), Ordering::Relaxed);
                    }
                    results.lock().expect("a compile thread panicked").push(result);
                }
            });
        }
    });
    results.into_inner().expect("a compile thread panicked").into_iter().collect()
}

/// Verilator's own run-time library and a precompiled header, each built once.
struct Runtime {
    /// Everything but the optimisation level.
    flags: Vec<String>,
    objects: Vec<PathBuf>,
    verilator: &'static Verilator,
    cxx: &'static Cxx,
}

/// How code is compiled that runs once (initial values, symbol tables) or only while a trace is written. It is half of a card's text.
const COLD_OPT: &str = "-O0";
/// What the model's code is compiled behind, all headers of others being read: a condition of an `if` rarely holds. Nearly all of them are enables of registers and memories, of which most are off in a
/// cycle, and whoever runs through megabytes of code in a cycle reads ahead well if what is left out stands elsewhere.
const RARELY: &str = "#define if(...) if (__builtin_expect(!!(__VA_ARGS__), 0))\n";
/// How the runtime's own objects are compiled, whatever the model's level.
const RUNTIME_OPT: &str = "-O2";

impl Runtime {
    /// The runtime for models with or without tracing.
    fn get(verilator: &'static Verilator, cxx: &'static Cxx, trace: bool) -> Result<Runtime, Error> {
        let include = verilator.include.display().to_string();
        let traced = u8::from(trace);
        let fixed = ["-std=c++17", "-fPIC", "-w", "-fvisibility=hidden"];
        let mut flags: Vec<String> = fixed.map(String::from).to_vec();
        // A library with unique symbols is never unloaded; clang makes none.
        flags.extend((!cxx.clang).then(|| "-fno-gnu-unique".into()));
        // The precompiled header's templates are instantiated once, and not again for each unit, which is most of what a small one takes. Only clang can.
        flags.extend(cxx.clang.then(|| "-fpch-instantiate-templates".into()));
        flags.extend(["-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE_VCD=0", "-DVL_TIME_CONTEXT"].map(String::from));
        flags.extend([format!("-DVM_TRACE={traced}"), format!("-DVM_TRACE_FST={traced}")]);
        flags.extend([format!("-I{include}"), format!("-I{include}/vltstd")]);
        let mut runtime = Runtime { flags, objects: Vec::new(), verilator, cxx };
        let mut sources = vec!["verilated.cpp", "verilated_threads.cpp"];
        sources.extend(trace.then_some("verilated_fst_c.cpp"));
        let dir = runtime.once(RUNTIME_OPT, |dir| {
            let jobs: Vec<_> = sources.iter().map(|s| (verilator.include.join(s), dir.join(s).with_extension("o"))).collect();
            parallel(&jobs, |(source, object)| runtime.compile(RUNTIME_OPT, "c++", source, object)).map(drop)
        })?;
        runtime.objects = sources.iter().map(|source| dir.join(source).with_extension("o")).collect();
        Ok(runtime)
    }

    /// A header that stands precompiled for units with these optimisation flags; `last` stands behind everything else in it.
    fn header(&self, flags: &str, last: &str) -> Result<PathBuf, Error> {
        const NAME: &str = "ferric_runtime.h";
        let dir = self.once(&format!("header {flags} {last}"), |dir| {
            let header = dir.join(NAME);
            let text = "#include \"verilated.h\"\n#if VM_TRACE\n#include \"verilated_fst_c.h\"\n#endif\n";
            fs::write(&header, format!("{text}{last}")).map_err(Error::io(&header))?;
            self.compile(flags, "c++-header", &header, &header.with_extension("h.gch"))
        })?;
        Ok(dir.join(NAME))
    }

    /// The cache directory for `what` with these flags, filled by `make` if it is not there yet.
    fn once(&self, what: &str, make: impl FnOnce(&Path) -> Result<(), Error>) -> Result<PathBuf, Error> {
        let parts = [what, &self.flags.join(" "), &self.cxx.version, cpu(), &self.verilator.version, shim::SHIM_VERSION];
        let dir = cache_dir().join(format!("runtime-{}", content_hash(&parts)));
        let done = dir.join("done");
        if !done.is_file() {
            let _lock = Lock::take(&dir)?;
            if !done.is_file() {
                make(&dir)?;
                fs::write(&done, "").map_err(Error::io(&done))?;
            }
        }
        Ok(dir)
    }

    fn compile(&self, opt: &str, language: &str, source: &Path, target: &Path) -> Result<(), Error> {
        let mut command = self.compiler(opt);
        command.args(["-x", language, "-c"]).arg(source).arg("-o").arg(target);
        run(&mut command, &self.cxx.program, "the Verilator runtime").map(drop)
    }

    fn compiler(&self, opt: &str) -> Command {
        let mut command = Command::new(&self.cxx.program);
        command.args(&self.flags).args(opt.split(' '));
        command
    }
}

/// What this processor can do, as text: libraries compiled for one must not be found on another that shares the cache.
fn cpu() -> &'static str {
    static CPU: OnceLock<String> = OnceLock::new();
    CPU.get_or_init(|| {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        info.lines().find(|line| line.starts_with("flags") || line.starts_with("Features")).unwrap_or_default().to_string()
    })
}

/// An exclusive file lock beside a cache entry; creates the entry's directory.
struct Lock(#[allow(dead_code)] fs::File);

impl Lock {
    fn take(dir: &Path) -> Result<Lock, Error> {
        fs::create_dir_all(dir).map_err(Error::io(dir))?;
        let path = dir.join("lock");
        let file = fs::File::create(&path).map_err(Error::io(&path))?;
        file.lock().map_err(Error::io(&path))?;
        Ok(Lock(file))
    }
}

/// Where models are cached: `FERRIC_VERILATED_DIR`, else `verilated/` in the workspace's target directory.
pub fn cache_dir() -> PathBuf {
    if let Some(dir) = std::env::var_os("FERRIC_VERILATED_DIR") {
        return dir.into();
    }
    target_dir().join("verilated")
}

fn target_dir() -> PathBuf {
    if let Some(dir) = std::env::var_os("CARGO_TARGET_DIR") {
        return dir.into();
    }
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let root = manifest.iter().flat_map(|dir| dir.ancestors()).find(|dir| dir.join("Cargo.lock").is_file());
    if let Some(root) = root {
        return root.join("target");
    }
    // Outside cargo: the binary itself stands in target/<profile>/.
    let exe = std::env::current_exe().unwrap_or_default();
    let tagged = exe.ancestors().find(|dir| dir.join("CACHEDIR.TAG").is_file() || dir.ends_with("target"));
    tagged.map_or_else(|| std::env::temp_dir().join("ferric"), Path::to_path_buf)
}

/// A 128-bit FNV-1a digest in hexadecimal: names cache entries, guards against nothing else.
pub fn content_hash(parts: &[&str]) -> String {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for part in parts {
        // The separator keeps ("a", "bc") and ("ab", "c") apart.
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
    format!("{hash:032x}")
}

fn file_name(top: &str) -> String {
    top.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect()
}
