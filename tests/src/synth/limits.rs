//! What whole cores may take, whatever their figures were before.

use super::report::LIMIT;
use super::table::Row;

/// Upper bounds of a core.
struct Limit {
    top: &'static str,
    lut: u64,
    /// RAMB36.
    bram: f64,
    levels: u32,
}

/// The `roce` card without `echo` may take what it took before counters of each function, stations and `echo` came (the core of the `ferric_f2` of e4c8253): what they cost is to be saved elsewhere.
/// Its depth is what 250 MHz allow, across the borders of blocks as within.
const PLAIN: Limit = Limit { top: "core_plain_w512", lut: 104_206, bram: 462.0, levels: LIMIT };

/// Figures of a row beyond a limit, a sentence each.
pub fn beyond(row: &Row) -> Vec<String> {
    if row.top != PLAIN.top {
        return vec![];
    }
    let figures = [("LUT", row.lut as f64, PLAIN.lut as f64), ("RAMB36", row.bram, PLAIN.bram), ("levels", row.levels.into(), PLAIN.levels.into())];
    let over = figures.into_iter().filter(|(_, now, limit)| now > limit);
    over.map(|(name, now, limit)| format!("{} on {}: {name} {now}, and at most {limit} are allowed", row.top, row.family)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::table::Table;

    fn row(top: &str, lut: u64, bram: f64, levels: u32) -> Row {
        let text = format!(
            r#"{{"top":"{top}","family":"xcup","hash":"h","yosys":"1","commit":"abc","lut":{lut},"lutram":0,"ff":100,"bram":{bram:.1},"uram":2,"dsp":0,"levels":{levels},"chain":8,"joined":true,"from":"a","to":"b"}}"#
        );
        Table::parse(&text).unwrap_or_else(|e| panic!("{e}")).rows.remove(0)
    }

    #[test]
    fn a_core_beyond_a_limit_is_a_fault() {
        assert_eq!(beyond(&row(PLAIN.top, PLAIN.lut, PLAIN.bram, PLAIN.levels)), [""; 0]);
        assert_eq!(beyond(&row("core_w512", PLAIN.lut + 1, PLAIN.bram + 1.0, PLAIN.levels + 1)), [""; 0]);
        let faults = beyond(&row(PLAIN.top, PLAIN.lut + 1, PLAIN.bram + 0.5, PLAIN.levels + 1));
        assert_eq!(faults.len(), 3);
        assert_eq!(faults[0], "core_plain_w512 on xcup: LUT 104207, and at most 104206 are allowed");
    }
}
