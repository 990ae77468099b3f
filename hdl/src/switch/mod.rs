//! The flow switch: so far the tunnels' end, and the match stage on the receive side. See README.md.

pub mod act;
pub mod bank;
pub mod count;
pub mod edit;
pub mod entry;
pub mod fdb;
pub mod flows;
pub mod guard;
pub mod key;
pub mod local;
pub mod matching;
pub mod outer;
pub mod profile;
pub mod program;
pub mod queues;
mod sight;
pub mod tcam;
#[cfg(test)]
pub(crate) mod testing;
pub mod verify;
pub mod wrap;

use crate::prim::pack::BePick;
use rust_hdl::prelude::*;

/// Bits of a command (`FlowCommand`), of its record, and of the number of a line in it.
const COMMAND: usize = 1024;
const RECORD: usize = 896;
const COMMAND_LINE: usize = 24;

/// Of `N` bits those that no number below 2^`lg` has: a number beyond a table of so many lines has one of them.
fn beyond<const N: usize>(lg: usize) -> Constant<Bits<N>> {
    Constant::new((((1u64 << N) - 1) >> lg << lg).to_bits())
}

/// 16-bit network-order word at byte `at` of `N` bits.
fn be16<const N: usize>(at: usize) -> BePick<N, Bits<16>> {
    BePick::new((0..16).map(|bit| 8 * (at + 1 - bit / 8) + bit % 8).collect())
}
