//! Whether two texts of Verilog say the same: for changes of the generator that must change no card.

use std::collections::BTreeMap;

/// How two texts differ.
#[derive(Debug, PartialEq, Eq)]
pub enum Difference {
    /// Module by module the same bytes.
    None,
    /// The same, but that statements with different targets stand in another order in these modules.
    Order(Vec<String>),
    /// These modules differ, or only one of the texts has them.
    Modules(Vec<String>),
}

/// Compares two texts that `ferric-gen` has written.
pub fn compare(a: &str, b: &str) -> Difference {
    let (a, b) = (modules(a), modules(b));
    let unequal: Vec<&String> = a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))).filter(|k| a.get(*k) != b.get(*k)).collect();
    let names = |list: Vec<&String>| list.into_iter().cloned().collect::<Vec<_>>();
    let differ: Vec<&String> = unequal.iter().copied().filter(|k| a.get(*k).map(|t| by_target(t)) != b.get(*k).map(|t| by_target(t))).collect();
    match (unequal.is_empty(), differ.is_empty()) {
        (true, _) => Difference::None,
        (_, true) => Difference::Order(names(unequal)),
        _ => Difference::Modules(names(differ)),
    }
}

/// The modules of a text, by name.
fn modules(text: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for part in text.split("endmodule") {
        if let Some((_, module)) = part.split_once("module ") {
            all.insert(module.split('(').next().unwrap_or_default().trim().to_string(), module.to_string());
        }
    }
    all
}

/// Lines by what they assign, in their order; all others in theirs.
fn by_target(module: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in module.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let target = line.strip_prefix("always @(*) ").unwrap_or(line).split_once(" = ").map_or("", |(target, _)| target);
        groups.entry(target).or_default().push(line);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "module a(x,y);\n    input x;\n    always @(*) begin\n        y = x;\n        z = y;\n        y = 3;\n    end\nendmodule // a\n\nmodule b(x);\nendmodule // b\n";

    #[test]
    fn order_is_told_from_meaning() {
        assert_eq!(compare(TEXT, TEXT), Difference::None);
        assert_eq!(compare(TEXT, &TEXT.replace("        y = x;\n        z = y;\n", "        z = y;\n        y = x;\n")), Difference::Order(vec!["a".into()]));
        assert_eq!(compare(TEXT, &TEXT.replace("        y = x;\n        z = y;\n        y = 3;\n", "        y = 3;\n        z = y;\n        y = x;\n")), Difference::Modules(vec!["a".into()]));
        assert_eq!(compare(TEXT, &TEXT.replace("module a(x,y)", "module a(y,x)")), Difference::Modules(vec!["a".into()]));
        assert_eq!(compare(TEXT, &TEXT.replace("y = 3", "y = 4")), Difference::Modules(vec!["a".into()]));
        assert_eq!(compare(TEXT, TEXT.split("\n\nmodule b").next().unwrap_or_default()), Difference::Modules(vec!["b".into()]));
    }
}
