use super::*;

/// The shifts in the kernel and the names in `counters` agree on where each block's counters stand.
#[test]
fn counter_order() {
    let source = include_str!("mod.rs");
    for (n, (block, events)) in counters::BLOCKS.iter().enumerate() {
        let wanted = format!("// {block}: {} at {}", events.len(), counters::offset(n));
        assert!(source.contains(&wanted), "the kernel lacks `{wanted}`");
    }
    assert!(counters::names().len() <= counters::INPUTS);
}

#[test]
fn both_widths_pass_the_lint_gate() {
    for width in [64, 512] {
        let top = format!("core{width}");
        crate::lint::check(&top, &emit_card(width, false, &top).unwrap()).unwrap_or_else(|e| panic!("{e:#?}"));
    }
    assert!(emit_card(128, false, "x").is_err());
}
