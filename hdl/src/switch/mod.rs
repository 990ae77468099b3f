//! The flow switch: so far the tunnels' end, and the match stage on the receive side. See README.md.

pub mod act;
pub mod bank;
pub mod count;
pub mod entry;
pub mod fdb;
pub mod flows;
pub mod guard;
pub mod key;
pub mod matching;
pub mod outer;
pub mod profile;
pub mod program;
mod sight;
pub mod tcam;
#[cfg(test)]
mod testing;
pub mod verify;
pub mod wrap;

use crate::prim::pack::BePick;
use rust_hdl::prelude::*;

/// 16-bit network-order word at byte `at` of `N` bits.
fn be16<const N: usize>(at: usize) -> BePick<N, Bits<16>> {
    BePick::new((0..16).map(|bit| 8 * (at + 1 - bit / 8) + bit % 8).collect())
}
