//! libibverbs and librdmacm over Ferric's own driver: programs written for RDMA cards run on ours without a kernel driver.
//!
//! The environment says which cards a program sees, see [`config`]. The README beside this crate names the calls that exist and those that
//! do not.
//!
//! # Layers
//!
//! * `abi`: the C structures of `verbs.h` and `rdma_cma.h`, byte by byte; a test compares them with the installed headers.
//! * `shared`: a card in use, one per card and process however often the program opens it.
//! * One module per kind of object (`context`, `domain`, `mr`, `mw`, `cq`, `qp`, `srq`, `ah`, `channel`): checks the arguments, calls `ferric_driver`, and turns its
//!   errors into error numbers (`errors`).
//! * `post`, `qp_ex`, `cq_ex`: the data path, once in the form of `ibv_post_send` and once in that of `ibv_wr_*` and extended completion queues.
//! * `private`: names that other providers of rdma-core want to find here.
//! * `cm`: librdmacm's calls and events over the connection manager of `ferric_driver::cm`; rsockets on top of them.
//!
//! **Errors and panics.** Every function checks what the program gives it and answers with the error number rdma-core gives. A panic would be
//! a defect of this crate; it ends the process at the border to C (that is what `extern "C"` does) and never unwinds into a program.
//!
//! **Pointers.** Handles are pointers, as C programs have them; a pointer that did not come from here is undefined behaviour, as in any other
//! implementation of this interface.
#![warn(missing_docs)]
// The interface is C's: functions take raw pointers whose rules are those of the manual pages.
#![allow(clippy::missing_safety_doc)]

pub mod abi;
mod ah;
mod channel;
mod cm;
pub mod config;
mod context;
mod cq;
mod cq_ex;
mod domain;
mod errors;
mod events;
mod flow;
mod fork;
mod latch;
mod mr;
mod mw;
pub mod neighbour;
mod post;
mod private;
mod qp;
mod qp_ex;
mod qp_modify;
mod query;
mod shared;
mod srq;
mod strings;

pub use shared::{Opener, MODELS};
