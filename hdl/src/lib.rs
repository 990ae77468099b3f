//! Ferric's gateware in RustHDL. See `docs/microarchitecture.md` for the blocks and how they fit together.
#![allow(clippy::new_without_default)]
// What stands in a kernel stands in its Verilog: `!(a == b)` is other text than `a != b`, and two conditions are other gates than one.
#![allow(clippy::nonminimal_bool, clippy::collapsible_if)]

// What derived code calls is called by this name in the crate itself, too.
extern crate self as ferric_hdl;

pub mod assembly;
pub mod board;
pub mod bus;
pub mod card;
pub mod cc;
pub mod codes;
pub mod context;
pub mod emit;
pub mod engines;
pub mod host;
pub mod kernel;
pub mod lint;
pub mod memory_target;
pub mod msg;
pub mod mutants;
pub mod net;
pub mod prim;
pub mod rdma;
pub mod records;
pub mod roce;
pub mod stats;
pub mod stream;
pub mod switch;
pub mod tb;
pub mod tops;
pub mod uet;
pub mod virtio;
