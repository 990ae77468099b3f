//! Binding to Verilator's runtime: Verilog text in, a running model out.
//!
//! The model is built at *run* time (Verilator, then the C++ compiler), cached by content under
//! `target/verilated/` and loaded with `dlopen`, so a test that emits the same gateware twice builds once
//! and no crate needs a build script. Ports are read and written through pointers into the model's own
//! storage: only [`Model::settle`], [`Model::edge`] and [`Model::eval`] cross into C++.
//!
//! ```no_run
//! use verilator_sys::{Builder, OptLevel};
//! # fn main() -> Result<(), verilator_sys::Error> {
//! # let verilog = String::new();
//! let library = Builder::new(verilog, "counter").opt(OptLevel::O1).build()?;
//! let mut model = library.instance(None)?;
//! let (enable, count) = (model.port("enable")?, model.port("count")?);
//! model.set(enable, 1);
//! model.settle(); // clock low: outputs are what they are just before the edge
//! assert_eq!(model.get(count), 0);
//! model.edge(); // clock high, 4 ns per cycle
//! assert_eq!(model.get(count), 1);
//! # Ok(()) }
//! ```
//!
//! Environment: `FERRIC_VERILATED_DIR` moves the cache, `VERILATOR` and `CXX` name other tools; without `CXX`, `clang++` is taken if it is there, else `g++`.

mod builder;
mod error;
mod model;
mod share;
mod shim;
mod tool;

pub use builder::{cache_dir, content_hash, Builder, OptLevel};
pub use error::Error;
pub use model::{Direction, Library, Model, Port, PortId, CYCLE_NS};
pub use share::shared;
pub use tool::{verilator, Verilator};
