//! Whether two texts of Verilog say the same: for changes of the generator that must change no card.

use std::collections::BTreeMap;

/// How two texts differ.
#[derive(Debug, PartialEq, Eq)]
pub enum Difference {
    /// Module by module the same bytes.
    None,
    /// The same, but that instances, or assignments of different targets, stand in another order in these modules, which have no branches.
    Order(Vec<String>),
    /// These modules differ, or only one of the texts has them.
    Modules(Vec<String>),
}

/// Compares two texts that `ferric-gen` has written.
pub fn compare(a: &str, b: &str) -> Difference {
    let (a, b) = (modules(a), modules(b));
    let unequal: Vec<&String> = a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))).filter(|k| a.get(*k) != b.get(*k)).collect();
    let names = |list: Vec<&String>| list.into_iter().cloned().collect::<Vec<_>>();
    let differ: Vec<&String> = unequal
        .iter()
        .copied()
        .filter(|k| {
            let parts = |of: &BTreeMap<String, String>| of.get(*k).and_then(|text| by_target(text));
            parts(&a).is_none() || parts(&a) != parts(&b)
        })
        .collect();
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

/// What stands in a module, by what it is about: assignments by their target, in their order; instances and declarations by themselves. `None` for a module with branches, where order has a meaning.
fn by_target(module: &str) -> Option<BTreeMap<String, Vec<String>>> {
    let branches = |line: &str| line.contains("if (") || line.contains("case (");
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut lines = module.lines().map(str::trim).filter(|l| !l.is_empty());
    // The ports, in their order.
    groups.insert("module".into(), vec![lines.next()?.into()]);
    while let Some(line) = lines.next() {
        if branches(line) {
            return None;
        }
        let (key, text) = if line.ends_with('(') && !line.contains(" = ") {
            (line.into(), lines.by_ref().take_while(|l| *l != ");").collect::<Vec<_>>().join(" "))
        } else {
            let target = line.strip_prefix("always @(*) ").unwrap_or(line).split_once(" = ").map_or(line, |(target, _)| target);
            (target.to_string(), line.to_string())
        };
        groups.entry(key).or_default().push(text);
    }
    Some(groups)
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
        let two = "module t(x);\n    a u(\n        .p(x),\n        .q(x)\n    );\n    b v(\n        .p(x)\n    );\nendmodule // t\n";
        let turned = "module t(x);\n    b v(\n        .p(x)\n    );\n    a u(\n        .p(x),\n        .q(x)\n    );\nendmodule // t\n";
        assert_eq!(compare(two, turned), Difference::Order(vec!["t".into()]));
        assert_eq!(compare(two, &turned.replace(".q(x)", ".q(y)")), Difference::Modules(vec!["t".into()]));
        let branch = TEXT.replace("y = 3;", "if (x) y = 3;");
        assert_eq!(compare(&branch, &branch.replace("        y = x;\n        z = y;\n", "        z = y;\n        y = x;\n")), Difference::Modules(vec!["a".into()]), "branches keep their order");
        assert_eq!(compare(TEXT, &TEXT.replace("y = 3", "y = 4")), Difference::Modules(vec!["a".into()]));
        assert_eq!(compare(TEXT, TEXT.split("\n\nmodule b").next().unwrap_or_default()), Difference::Modules(vec!["b".into()]));
    }
}
