use super::*;
use crate::assembly::WaitGraph;

fn card(width: usize) -> Card {
    Card::named(DEFAULT, width).unwrap()
}

#[test]
fn cards_of_all_sizes_pass_the_lint_gate() {
    for width in WIDTHS {
        let top = format!("core{width}");
        crate::lint::check(&top, &card(width).emit(false, &top).unwrap()).unwrap_or_else(|e| panic!("{e:#?}"));
    }
    let many = card(64).with_functions(64).unwrap();
    crate::lint::check("core64", &many.emit(false, "core64").unwrap()).unwrap_or_else(|e| panic!("{e:#?}"));
    assert_eq!((many.capabilities()[1] >> 8 & 0xff, card(64).capabilities()[1] >> 8 & 0xff), (6, 2));
    assert!(card(512).with_functions(64).is_err() && card(64).with_functions(3).is_err());
    assert!(Card::named(DEFAULT, 128).is_err() && Card::named("nobody", 64).is_err() && Card::of(&["nothing"], 64).is_err());
}

/// Numbers of counters are their places: each name stands once.
#[test]
fn counters_have_one_name_each() {
    let names = counters::names();
    assert!(names.len() > 100 && names.len() <= crate::stats::COUNTERS);
    for (n, name) in names.iter().enumerate() {
        assert_eq!(counters::index(name), Some(n), "{name}");
    }
}

fn page(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../docs/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap_or_else(|e| panic!("docs/{name}: {e}"))
}

#[test]
fn pages_are_written_from_the_list() {
    const WRITE: &str = "write it anew: cargo run -p ferric-hdl --bin ferric-gen docs docs";
    assert!(page("ports.md") == pages::ports(&card(64)).unwrap(), "docs/ports.md differs; {WRITE}");
    assert!(page("engines.md") == pages::engines().unwrap(), "docs/engines.md differs; {WRITE}");
    let deadlock = page("deadlock.md");
    assert!(deadlock == pages::with_graph(&deadlock, &card(64)).unwrap(), "docs/deadlock.md differs; {WRITE}");
}

/// The tunnel's end between the ports and the card: nothing of the card changes around it, and it waits for nobody but the MAC.
#[test]
fn a_tunnels_end_fits_in() {
    for width in WIDTHS {
        on_a_large_stack(|| {
            let (with, without) = (Card::named("vxlan", width)?, card(width));
            crate::lint::check("tunnelled", &with.emit(false, "tunnelled")?).map_err(|e| format!("{e:#?}"))?;
            let assembled = with.list().assemble().map_err(|f| f.join("\n"))?;
            let graph = WaitGraph::of(&assembled);
            assert!(graph.faults.is_empty(), "{:#?}", graph.faults);
            assert_eq!(graph.circle(), None);
            assert!(graph.edges["outer.s"].is_empty(), "the MAC never waits");
            assert_eq!(with.list().counter_names(), without.list().counter_names());
            assert!(without.list().instances.iter().all(|i| i.part != "vxlan"));
            assert_eq!(with.capabilities()[3] ^ without.capabilities()[3], 1 << csr::FEATURE_TUNNEL);
            Ok(())
        })
        .unwrap();
    }
}

/// Flow tables behind the tunnel's end: the same holds of them.
#[test]
fn flow_tables_fit_in() {
    for width in WIDTHS {
        on_a_large_stack(|| {
            let (with, without) = (Card::named("switch", width)?, Card::named("vxlan", width)?);
            crate::lint::check("switched", &with.emit(false, "switched")?).map_err(|e| format!("{e:#?}"))?;
            let assembled = with.list().assemble().map_err(|f| f.join("\n"))?;
            let graph = WaitGraph::of(&assembled);
            assert!(graph.faults.is_empty(), "{:#?}", graph.faults);
            assert_eq!(graph.circle(), None);
            assert!(graph.edges["outer.s"].is_empty() && graph.edges["flows.s"].is_empty(), "the MAC never waits");
            assert_eq!(with.list().counter_names(), without.list().counter_names());
            assert_eq!(with.capabilities()[3] ^ without.capabilities()[3], 1 << csr::FEATURE_FLOWS);
            Ok(())
        })
        .unwrap();
    }
}

/// Ultra Ethernet instead of RoCE: what nobody brings is tied off, and nobody waits for himself.
#[test]
fn ultra_ethernet_fits_in() {
    for width in WIDTHS {
        on_a_large_stack(|| {
            let card = Card::named("uet", width)?;
            crate::lint::check("uet", &card.emit(false, "uet")?).map_err(|e| format!("{e:#?}"))?;
            let assembled = card.list().assemble().map_err(|f| f.join("\n"))?;
            let graph = WaitGraph::of(&assembled);
            assert!(graph.faults.is_empty(), "{:#?}", graph.faults);
            assert_eq!(graph.circle(), None);
            assert_eq!(card.capabilities()[3], 1 << csr::FEATURE_UET | 1 << csr::FEATURE_ADDRESSES | 1 << csr::FEATURE_PAUSE);
            assert!(card.list().instances.iter().all(|i| !["roce", "verbs"].contains(&i.part)));
            let names = card.list().counter_names();
            assert!(names.iter().enumerate().all(|(n, name)| !names[..n].contains(name)), "{names:?}");
            Ok(())
        })
        .unwrap();
    }
}

/// Virtio functions, whose engine has DMA of its own beside the card's.
#[test]
fn virtio_functions_fit_in() {
    for width in WIDTHS {
        on_a_large_stack(|| {
            let card = Card::named("virtio", width)?;
            let assembled = card.list().assemble().map_err(|f| f.join("\n"))?;
            crate::lint::check("virtio", &card.emit(false, "virtio")?).map_err(|e| format!("{e:#?}"))?;
            let graph = WaitGraph::of(&assembled);
            assert!(graph.faults.is_empty(), "{:#?}", graph.faults);
            assert_eq!(graph.circle(), None);
            assert_eq!(card.capabilities()[3], 1 << csr::FEATURE_VIRTIO | 1 << csr::FEATURE_ADDRESSES | 1 << csr::FEATURE_PAUSE);
            assert!(card.list().instances.iter().all(|i| !["roce", "verbs"].contains(&i.part)));
            let names = card.list().counter_names();
            assert!(names.iter().enumerate().all(|(n, name)| !names[..n].contains(name)), "{names:?}");
            assert_eq!(card.read_id_bits(), if width == 64 { 9 } else { 10 });
            Ok(())
        })
        .unwrap();
    }
}

/// Nobody waits for himself, and every port that waits has said for whom.
#[test]
fn the_wait_graph_has_no_circle() {
    for width in WIDTHS {
        on_a_large_stack(|| {
            let card = card(width).list().assemble().map_err(|f| f.join("\n"))?;
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

/// Every set of engines makes a card that fits together and passes the lint gate; what is not in the set leaves nothing in it.
#[test]
fn an_engine_that_is_not_listed_leaves_no_gate() {
    // Not `verbs` alone: what only a transport can drive would be missing.
    for set in [&[][..], &["roce"]] {
        let card = Card::of(set, 64).unwrap();
        let listed = |part: &str| part == "chassis" || card.engines.iter().any(|e| e.name == part);
        let verilog = card.emit(false, "some").unwrap_or_else(|e| panic!("{set:?}: {e}"));
        crate::lint::check("some", &verilog).unwrap_or_else(|e| panic!("{set:?}: {e:#?}"));
        let (list, all) = (card.list(), Card::of(&["roce"], 64).unwrap().list());
        assert!(list.instances.iter().all(|i| listed(i.part)) && list.tables.iter().all(|t| listed(t.part)) && list.counters.iter().all(|c| listed(c.part)));
        for absent in all.instances.iter().filter(|i| !listed(i.part)) {
            let module = format!("some${}", absent.name);
            assert!(["(", "$", " "].iter().all(|end| !verilog.contains(&format!("{module}{end}"))), "{set:?} has {}", absent.name);
        }
        let bits = card.engines.iter().fold(0, |bits, e| bits | e.capabilities);
        assert_eq!(card.capabilities()[3], bits);
    }
    assert_eq!(Card::of(&["roce"], 64).unwrap().engines.len(), 2, "with what it needs");
}
