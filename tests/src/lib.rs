//! What crosses crates: two simulated cards with their drivers, connected queue pairs, and the programs built on them
//! (demo, bench, soak, replay).

// One copy of the gateware for all programs of this crate.
use ferric_shared as _;

pub mod bench;
pub mod guest;
pub mod hostile;
pub mod mutants;
pub mod pair;
pub mod programs;
pub mod property;
pub mod raw;
pub mod replay;
pub mod rxe_placement;
pub mod served;
pub mod soak;
pub mod strangers;
pub mod synth;
pub mod traffic;
pub mod uet;
pub mod widths;
