use super::*;

#[test]
fn both_widths_pass_the_lint_gate() {
    for width in WIDTHS {
        let top = format!("core{width}");
        crate::lint::check(&top, &emit_card(width, false, &top).unwrap()).unwrap_or_else(|e| panic!("{e:#?}"));
    }
    assert!(emit_card(128, false, "x").is_err());
}

/// Numbers of counters are their places: each name stands once.
#[test]
fn counters_have_one_name_each() {
    let names = counters::names();
    assert!(names.len() > 100 && names.len() <= list::COUNTERS);
    for (n, name) in names.iter().enumerate() {
        assert_eq!(counters::index(name), Some(n), "{name}");
    }
}
