//! Generation-time switch that builds every slice and FIFO with random stalls on its output.
//!
//! The setting is per thread and consulted when a block is constructed; each instance takes the next LFSR seed of the
//! sequence, so a card built from the same seed is the same card. Off (the default) leaves no gate in the netlist.

use std::cell::Cell;

thread_local! {
    static STATE: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Blocks constructed by this thread from now on stall at random; `seed` fixes the patterns.
pub fn enable(seed: u64) {
    STATE.with(|s| s.set(Some(seed)));
}

/// Blocks constructed by this thread from now on do not stall.
pub fn disable() {
    STATE.with(|s| s.set(None));
}

/// Constructs with chaos on and restores the former setting afterwards, also on a panic.
pub fn scoped<R>(seed: u64, build: impl FnOnce() -> R) -> R {
    struct Restore(Option<u64>);
    impl Drop for Restore {
        fn drop(&mut self) {
            STATE.with(|s| s.set(self.0));
        }
    }
    let _restore = Restore(STATE.with(|s| s.replace(Some(seed))));
    build()
}

/// Whether blocks constructed now stall at random.
pub fn on() -> bool {
    STATE.with(|s| s.get().is_some())
}

/// The LFSR seed for the next instance, or `None` when chaos is off.
pub(crate) fn next_seed() -> Option<u32> {
    STATE.with(|s| {
        s.get().map(|x| {
            // SplitMix64 step: a Weyl sequence through a mixer, so neighbouring instances are unrelated.
            let n = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
            s.set(Some(n));
            let z = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (z >> 32) as u32
        })
    })
}
