//! What can go wrong between Verilog text and a running model.

use std::path::PathBuf;

/// Errors of building, loading and addressing a Verilated model.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A tool of the chain is not installed.
    #[error("`{tool}` cannot be run ({source}): run ./scripts/setup")]
    ToolMissing {
        /// Program name as it was tried.
        tool: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Verilator or the C++ compiler refused its input; `stderr` is its own text.
    #[error("{tool} failed on `{top}`:\n{stderr}")]
    ToolFailed {
        /// Program name.
        tool: String,
        /// Top module being built.
        top: String,
        /// The tool's error output (its tail when long).
        stderr: String,
    },
    /// What Verilator said of the text does not please the judge.
    #[error("the lint gate refuses `{top}`:\n{reason}")]
    Refused {
        /// Top module being built.
        top: String,
        /// Fault by fault.
        reason: String,
    },
    /// Files of the cache could not be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// File or directory concerned.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The shared library did not load or lacks the shim's symbols.
    #[error("cannot load {path}: {reason}", path = path.display())]
    Load {
        /// The library.
        path: PathBuf,
        /// The loader's message.
        reason: String,
    },
    /// The header Verilator wrote was not understood.
    #[error("Verilator's header for `{top}` has an unknown port declaration: {line}")]
    Header {
        /// Top module being built.
        top: String,
        /// The line.
        line: String,
    },
    /// The top has no port of that name.
    #[error("no port `{name}` on `{top}`; it has: {ports}")]
    NoPort {
        /// Top module.
        top: String,
        /// Name asked for.
        name: String,
        /// The names there are.
        ports: String,
    },
    /// A trace file was asked of a library built without tracing.
    #[error("`{0}` was built without tracing: use Builder::trace(true)")]
    NotTraced(String),
    /// The trace file could not be opened.
    #[error("cannot open the trace file {path}", path = .0.display())]
    TraceFile(PathBuf),
}

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { path, source }
    }
}
