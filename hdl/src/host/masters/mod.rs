//! Two AXI4 masters on one bus to the host. See README.md.

mod reads;
#[cfg(test)]
mod tests;
mod writes;

use crate::assembly::AnyBlock;
pub use reads::Reads;
pub use writes::Writes;

/// Which ports may wait for which others (docs/deadlock.md).
pub const READ_WAITS: &[(&str, &[&str])] = &[
    ("a_ar_valid", &["ar_valid"]),
    ("b_ar_valid", &["ar_valid"]),
    // An answer waits for the answers in front of it.
    ("a_r_valid", &["ar_valid", "r_valid", "b_r_valid"]),
    ("b_r_valid", &["ar_valid", "r_valid", "a_r_valid"]),
];

/// The same. A burst that has begun ends before the other master's: its beats need nobody's help.
pub const WRITE_WAITS: &[(&str, &[&str])] = &[
    ("a_aw_valid", &["aw_valid", "w_valid", "b_w_valid", "b_valid", "a_b_valid", "b_b_valid"]),
    ("b_aw_valid", &["aw_valid", "w_valid", "a_w_valid", "b_valid", "a_b_valid", "b_b_valid"]),
    ("a_w_valid", &["aw_valid", "w_valid", "b_w_valid", "b_valid", "a_b_valid", "b_b_valid"]),
    ("b_w_valid", &["aw_valid", "w_valid", "a_w_valid", "b_valid", "a_b_valid", "b_b_valid"]),
    ("a_b_valid", &["aw_valid", "w_valid", "b_w_valid", "b_valid", "b_b_valid"]),
    ("b_b_valid", &["aw_valid", "w_valid", "a_w_valid", "b_valid", "a_b_valid"]),
];

/// The block for a first master whose reads have ids of `id_bits` bits, 8 or 9. The ids on the bus have one bit more.
pub fn reads_for<const W: usize, const K: usize>(id_bits: usize) -> AnyBlock {
    match id_bits {
        8 => AnyBlock::new(Reads::<W, K, 8, 9>::default()),
        _ => AnyBlock::new(Reads::<W, K, 9, 10>::default()),
    }
}
