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

/// The list of engines for a test of tunnels that are configured one by one. Of 512 bits it is the card with flow tables, which has the same tunnels and passes all frames on until its tables decide: other tests
/// need that model anyway, and one of the card without tables takes two minutes of a processor to make. When [`ALL`] is set both widths have the smaller card.
pub fn tunnel_engines(width: usize) -> &'static str {
    if width == 512 && std::env::var_os(ALL).is_none() {
        "switch"
    } else {
        "vxlan"
    }
}
