use super::*;
use crate::assembly::WaitGraph;

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

fn page(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../docs/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap_or_else(|e| panic!("docs/{name}: {e}"))
}

#[test]
fn pages_are_written_from_the_list() {
    const WRITE: &str = "write it anew: cargo run -p ferric-hdl --bin ferric-gen -- --docs docs";
    assert!(page("ports.md") == pages::ports(64).unwrap(), "docs/ports.md differs; {WRITE}");
    let deadlock = page("deadlock.md");
    assert!(deadlock == pages::with_graph(&deadlock, 64).unwrap(), "docs/deadlock.md differs; {WRITE}");
}

/// Nobody waits for himself, and every port that waits has said for whom.
#[test]
fn the_wait_graph_has_no_circle() {
    for width in WIDTHS {
        on_a_large_stack(|| {
            let card = list(width)?.assemble().map_err(|f| f.join("\n"))?;
            let graph = WaitGraph::of(&card);
            assert!(graph.faults.is_empty(), "{:#?}", graph.faults);
            assert_eq!(graph.circle(), None);
            assert!(graph.edges.values().map(|e| e.len()).sum::<usize>() > 500);
            // The requester's reports into the responder's placement instead of its own queue: a report would wait for a frame that waits for reports.
            let closed = WaitGraph::with(&card, &[("egress.m_done", "resp.s_rx"), ("resp.s_rx", "egress.m_done")]);
            let circle = closed.circle().expect("a wire that closes a circle");
            assert!(circle.iter().any(|port| port == "resp.s_rx") && circle.iter().any(|port| port.starts_with("egress.")), "{circle:?}");
            Ok(())
        })
        .unwrap();
    }
}
