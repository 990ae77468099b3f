//! At which widths of the data path a test of whole cards runs.

/// Set by `./scripts/soak widths`: every test of [`widths`] runs at both.
pub const ALL: &str = "FERRIC_ALL_WIDTHS";

/// The widths in bits for a test whose rule is kept by blocks that do not know the width: `one` of them, or 64 and 512 when [`ALL`] is set.
///
/// What depends on the width (lengths, alignments, lines of the host) is tested at both by name. For the others the second width simulated the same decisions
/// again, for a fifth of the suite's time; which one a test has changes from test to test, so that both see all kinds.
pub fn widths(one: usize) -> Vec<usize> {
    if std::env::var_os(ALL).is_some() {
        vec![64, 512]
    } else {
        vec![one]
    }
}
