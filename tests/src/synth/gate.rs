//! The gate on area and depth: what has changed since the committed table was written, and what has grown.

use super::table::{Row, Table, FILE};

/// Growth that is let through, in percent.
const PERCENT: u64 = 5;

/// Growth of LUTs, LUT memory and flip-flops that is let through in blocks so small that a few cells are more than [`PERCENT`].
const CELLS: u64 = 16;

/// LUTs, by the table, of all changed blocks together that a test maps: ten minutes of a busy core. More than that has to come with
/// its figures.
const BUDGET: u64 = 12_000;

/// What stands in the tree now.
#[derive(Clone, Debug)]
pub struct Now<'a> {
    pub top: &'a str,
    pub family: &'a str,
    pub hash: String,
    /// Too large to be mapped in a test.
    pub whole: bool,
}

/// What there is to do.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// Tops that are as they were when the table was written.
    pub same: usize,
    /// Index of each top to map.
    pub map: Vec<usize>,
    /// Wholes whose figures are of other gateware, a sentence each.
    pub stale: Vec<String>,
    pub faults: Vec<String>,
}

/// Tops that the table does not have, and rows of tops that are gone. `all`: every top there is.
pub fn missing(all: &[(&str, &str)], table: &Table) -> Vec<String> {
    let listed = |top: &str, family: &str| table.unmeasured.iter().any(|u| u.top == top && u.family == family);
    let new = all.iter().filter(|(top, family)| table.find(top, family).is_none() && !listed(top, family));
    let new = new.map(|(top, family)| format!("{top} on {family} is not in {FILE}: ./scripts/synth --update {top}"));
    let gone = table.rows.iter().filter(|r| !all.contains(&(r.top.as_str(), r.family.as_str())));
    new.chain(gone.map(|r| format!("{} on {} is in {FILE} and exists no more: ./scripts/synth --update --changed", r.top, r.family))).collect()
}

/// Tops that the table lists without figures, a sentence each.
pub fn unmeasured(table: &Table) -> Vec<String> {
    table.unmeasured.iter().map(|u| format!("{} on {} has no figures ({}), so nothing holds it: ./scripts/synth --update {}", u.top, u.family, u.unmeasured, u.top)).collect()
}

/// Which of `now` have to be mapped in a test. `yosys`: the installed version, if it is installed.
pub fn plan(now: &[Now], table: &Table, yosys: Option<&str>) -> Plan {
    let mut plan = Plan::default();
    let mut luts = 0;
    for (n, top) in now.iter().enumerate() {
        // What is not there `missing` or `unmeasured` tells.
        let Some(row) = table.find(top.top, top.family) else { continue };
        let tool = yosys.is_none_or(|v| v == row.yosys);
        if row.hash == top.hash && tool {
            plan.same += 1;
        } else if top.whole {
            plan.stale.push(format!(
                "{} on {} has changed since its figures were made (gateware of {}), and is too large to be mapped here: ./scripts/synth --check {}, or --update",
                top.top, top.family, row.commit, top.top
            ));
        } else {
            luts += row.lut;
            plan.map.push(n);
        }
    }
    if luts > BUDGET {
        let names: Vec<&str> = plan.map.drain(..).map(|n| now[n].top).collect();
        plan.faults.push(format!(
            "{} blocks of {luts} LUT have changed, more than a test maps ({BUDGET}); ./scripts/synth --update --changed maps them and writes the table: {}",
            names.len(),
            names.join(" ")
        ));
    }
    plan
}

/// What is different between two mappings of a top.
#[derive(Debug, Default, PartialEq)]
pub struct Changes {
    /// More than is let through, a sentence each.
    pub grown: Vec<String>,
    /// Less by as much, or less deep.
    pub shrunk: Vec<String>,
}

/// Compares what was mapped with its row of the table.
pub fn compare(old: &Row, new: &Row) -> Changes {
    let mut changes = Changes::default();
    let slack = |old: u64| (old * PERCENT).div_euclid(100).max(CELLS) as f64;
    let mut figure = |name: &str, old: f64, new: f64, slack: f64| {
        let percent = if old > 0.0 { format!(" ({:+.1} %)", 100.0 * (new - old) / old) } else { String::new() };
        let said = format!("{name} {old} -> {new}{percent}");
        if new > old + slack {
            changes.grown.push(said);
        } else if new + slack < old {
            changes.shrunk.push(said);
        }
    };
    for (name, old, new) in [("LUT", old.lut, new.lut), ("LUTRAM", old.lutram, new.lutram), ("FF", old.ff, new.ff)] {
        figure(name, old as f64, new as f64, slack(old));
    }
    figure("RAM blocks", old.bram, new.bram, old.bram * PERCENT as f64 / 100.0);
    figure("URAM", old.uram as f64, new.uram as f64, (old.uram * PERCENT) as f64 / 100.0);
    figure("DSP", old.dsp as f64, new.dsp as f64, 0.0);
    figure("levels", old.levels.into(), new.levels.into(), 0.0);
    let label = |said: &mut String| *said = format!("{} on {}: {said}", new.top, new.family);
    changes.grown.iter_mut().chain(&mut changes.shrunk).for_each(label);
    for grown in &mut changes.grown {
        *grown += &format!(", in {FILE} as of {}; where that is meant: ./scripts/synth --update {}", old.commit, new.top);
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(top: &str, lut: u64) -> Row {
        let text = format!(
            r#"{{"top":"{top}","family":"xcup","hash":"h","yosys":"1","commit":"abc","lut":{lut},"lutram":0,"ff":100,"bram":10.5,"uram":2,"dsp":0,"levels":9,"chain":8,"joined":false,"from":"a","to":"b"}}"#
        );
        Table::parse(&text).unwrap_or_else(|e| panic!("{e}")).rows.remove(0)
    }

    #[test]
    fn four_percent_pass_and_six_do_not() {
        let old = row("a", 1000);
        assert_eq!(compare(&old, &row("a", 1000)), Changes::default());
        assert_eq!(compare(&old, &row("a", 1040)), Changes::default());
        assert_eq!(compare(&old, &row("a", 1050)), Changes::default());
        assert_eq!(compare(&old, &row("a", 1060)).grown, ["a on xcup: LUT 1000 -> 1060 (+6.0 %), in docs/resources.jsonl as of abc; where that is meant: ./scripts/synth --update a"]);
        assert_eq!(compare(&old, &row("a", 1051)).grown.len(), 1);
        // Less is told.
        assert_eq!(compare(&old, &row("a", 900)), Changes { grown: vec![], shrunk: vec!["a on xcup: LUT 1000 -> 900 (-10.0 %)".into()] });
        // A small block has cells to spare, a large one a part of itself.
        assert_eq!(compare(&row("a", 20), &row("a", 36)), Changes::default());
        assert_eq!(compare(&row("a", 20), &row("a", 37)).grown.len(), 1);
        assert_eq!(compare(&row("a", 100_000), &row("a", 105_000)), Changes::default());
        assert_eq!(compare(&row("a", 100_000), &row("a", 105_001)).grown.len(), 1);
    }

    #[test]
    fn every_figure_is_compared() {
        let old = row("a", 1000);
        let changes: [(fn(&mut Row), &str); 7] = [
            (|r| r.lutram = 17, "LUTRAM 0 -> 17,"),
            (|r| r.ff = 117, "FF 100 -> 117 (+17.0 %)"),
            (|r| r.bram = 11.5, "RAM blocks 10.5 -> 11.5"),
            (|r| r.uram = 3, "URAM 2 -> 3"),
            (|r| r.dsp = 1, "DSP 0 -> 1"),
            (|r| r.levels = 10, "levels 9 -> 10"),
            (|r| r.lut = 1100, "LUT 1000 -> 1100"),
        ];
        for (change, said) in changes {
            let mut new = old.clone();
            change(&mut new);
            let found = compare(&old, &new);
            assert!(found.grown.len() == 1 && found.grown[0].contains(said), "{said}: {found:?}");
            assert_eq!(compare(&new, &old).shrunk.len(), 1, "{said} back");
        }
    }

    #[test]
    fn a_missing_row_and_one_too_many_are_faults() {
        let mut table = Table { rows: vec![row("a", 1), row("gone", 1)], ..Table::default() };
        let found = missing(&[("a", "xcup"), ("new", "xcup"), ("a", "ecp5")], &table);
        assert_eq!(found.len(), 3);
        assert!(found[0].starts_with("new on xcup is not in") && found[1].starts_with("a on ecp5 is not in") && found[2].starts_with("gone on xcup is in"));
        assert_eq!(missing(&[("a", "xcup"), ("gone", "xcup")], &table), [""; 0]);
        // Listed as one without figures: told, every time.
        table.lack("new", "xcup", "no time");
        table.lack("a", "xcup", "has a row");
        assert_eq!(missing(&[("a", "xcup"), ("gone", "xcup"), ("new", "xcup")], &table), [""; 0]);
        assert_eq!(unmeasured(&table), ["new on xcup has no figures (no time), so nothing holds it: ./scripts/synth --update new"]);
        table.put(row("new", 1));
        assert_eq!((table.rows.len(), table.unmeasured.len()), (3, 0));
    }

    #[test]
    fn what_changed_is_mapped_and_wholes_are_told() {
        let table = Table { rows: vec![row("same", 1), row("changed", 1), row("core", 100_000)], ..Table::default() };
        let now = |top, hash: &str, whole| Now { top, family: "xcup", hash: hash.into(), whole };
        let all = [now("same", "h", false), now("changed", "other", false), now("core", "other", true), now("new", "other", false)];
        let found = plan(&all, &table, Some("1"));
        assert_eq!((found.same, &found.map[..], found.stale.len(), found.faults.len()), (1, &[1][..], 1, 0));
        assert!(found.stale[0].contains("core on xcup has changed") && found.stale[0].contains("abc"), "{}", found.stale[0]);
        // Nothing changed, and no yosys to ask: nothing to do.
        assert_eq!(plan(&all[..1], &table, None), Plan { same: 1, ..Plan::default() });
        // Figures of another yosys are no figures.
        assert_eq!(plan(&all[..1], &table, Some("2")).map, [0]);
    }

    #[test]
    fn too_much_for_a_test_is_a_fault() {
        let table = Table { rows: vec![row("a", BUDGET - 1), row("b", 1), row("c", 1)], ..Table::default() };
        let now: Vec<Now> = ["a", "b", "c"].iter().map(|top| Now { top, family: "xcup", hash: "other".into(), whole: false }).collect();
        let found = plan(&now, &table, Some("1"));
        assert!(found.map.is_empty() && found.faults.len() == 1 && found.faults[0].starts_with("3 blocks of 12001 LUT"), "{found:?}");
        assert_eq!(plan(&now[..2], &table, Some("1")).map, [0, 1]);
    }
}
