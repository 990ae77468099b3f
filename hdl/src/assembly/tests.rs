//! Small lists: what they emit, what they refuse, who waits.

use super::{AnyBlock, Assembly, Share, WaitGraph};
use crate::for_clients;
use crate::stream::{arb, fifo, MsgArb, MsgFifo};
use crate::tb::Tb;
use rust_hdl::prelude::*;

type Word = Bits<8>;
const FIFOS: [&str; 2] = ["first", "second"];

/// Two queues in a row.
fn row() -> Assembly {
    let mut a = Assembly::default();
    a.input::<Clock>("clock");
    a.input::<Bit>("reset");
    a.reset_by("reset_q.q");
    for name in FIFOS {
        a.instance(name, MsgFifo::<Word, 2>::default).waits(fifo::WAITS);
        a.open(&format!("{name}.level"));
    }
    a.register::<Bit>("reset_q", "reset");
    a.expose("s", "first.s");
    a.expose("m", "second.m");
    a
}

fn faults(a: Assembly) -> String {
    a.assemble().err().expect("a faulty list").join("\n")
}

#[test]
fn a_list_is_a_block() {
    let mut a = row();
    a.join("first.m", "second.s");
    let mut tb = Tb::new("assembly", a.assemble().unwrap());
    let (source, sink) = (tb.source("s", 30), tb.sink("m", 30));
    // The registered reset falls two cycles later.
    tb.run(2);
    let words: Vec<u64> = (0..100).map(|_| tb.rng().below(256)).collect();
    words.iter().for_each(|word| source.push(*word));
    tb.run_until(2000, |_| sink.len() == words.len());
    words.iter().for_each(|word| assert_eq!(sink.pop_u64(), Some(*word)));
}

/// Clients get their numbers in the order of the lines; a place that nobody has, and a port that nobody uses, are left alone.
#[test]
fn pools_chains_and_optional_ports() {
    let mut a = Assembly::default();
    a.input::<Clock>("clock");
    a.input::<Bit>("reset");
    a.reset_by("reset");
    a.instance("arb", MsgArb::<Word, 4>::default);
    a.pool("words", &["arb.s[*]"]);
    a.chain("row", "arb.m", "last.s");
    a.expose("m", "last.m");
    for name in ["left", "right", "middle", "last", "spare"] {
        a.instance(name, MsgFifo::<Word, 2>::default);
        a.optional(&format!("{name}.level"));
    }
    ["spare.s", "spare.m"].iter().for_each(|port| a.optional(port));
    assert_eq!((a.client("words", &["left.m"]), a.client("words", &["right.m"]), a.clients("words")), (0, 1, 2));
    a.link("row", 5, "middle.s", "middle.m");
    a.expose("l", "left.s");
    a.expose("r", "right.s");
    let mut tb = Tb::new("assembly_pools", a.assemble().unwrap_or_else(|faults| panic!("{faults:#?}")));
    let (left, right, sink) = (tb.source("l", 0), tb.source("r", 0), tb.sink("m", 30));
    tb.run(2);
    (0..10u64).for_each(|word| {
        left.push(word);
        right.push(100 + word);
    });
    tb.run_until(500, |_| sink.len() == 20);
    let got: Vec<u64> = (0..20).filter_map(|_| sink.pop_u64()).collect();
    let of = |range: std::ops::Range<u64>| got.iter().copied().filter(|word| range.contains(word)).collect::<Vec<_>>();
    assert_eq!((of(0..10), of(100..110)), ((0..10).collect(), (100..110).collect()));
}

/// Ports of the whole are ends of a chain: without a link nothing is other than without the chain, and a link stands between.
#[test]
fn chains_begin_and_end_at_the_border() {
    let chained = |links: bool| {
        let mut a = Assembly::default();
        a.input::<Clock>("clock");
        a.input::<Bit>("reset");
        a.reset_by("reset_q.q");
        a.chain_in("in", &[("s", "first.s"), ("more", "second.s")]);
        a.chain_out("out", &[("second.m", "m")]);
        for name in FIFOS.iter().chain(if links { &["a", "b", "c"][..] } else { &[] }) {
            a.instance(name, MsgFifo::<Word, 2>::default).waits(fifo::WAITS);
            a.open(&format!("{name}.level"));
        }
        a.register::<Bit>("reset_q", "reset");
        a.expose("n", "first.m");
        if links {
            a.link("out", 1, "c.s", "c.m");
            a.link_all("in", 1, &["a.s", "b.s"], &["a.m", "b.m"]);
        }
        a
    };
    let mut plain = chained(false);
    plain.chains.clear();
    plain.wires.clear();
    for (port, inner) in [("s", "first.s"), ("more", "second.s"), ("m", "second.m")] {
        plain.expose(port, inner);
    }
    plain.join("reset", "reset_q.d");
    plain.expose("n", "first.m");
    let verilog = |a: Assembly| crate::emit::emit("border", a.assemble().unwrap_or_else(|faults| panic!("{faults:#?}"))).unwrap();
    assert_eq!(verilog(chained(false)), verilog(plain));
    let built = chained(true).assemble().unwrap_or_else(|faults| panic!("{faults:#?}"));
    let graph = WaitGraph::of(&built);
    let next = |port: &str| graph.edges[port].iter().map(|e| e.to.clone()).collect::<Vec<_>>();
    assert_eq!([next("a.s"), next("b.s"), next("second.s")], [["first.s"], ["second.s"], ["c.s"]]);
    let mut tb = Tb::new("assembly_border", built);
    let (s, more, n, m) = (tb.source("s", 20), tb.source("more", 20), tb.sink("n", 30), tb.sink("m", 30));
    tb.run(2);
    (0..40u64).for_each(|word| {
        s.push(word);
        more.push(100 + word);
    });
    tb.run_until(1000, |_| n.len() + m.len() == 80);
    (0..40).for_each(|word| assert_eq!((n.pop_u64(), m.pop_u64()), (Some(word), Some(100 + word))));
}

#[test]
fn what_does_not_fit_a_chain_at_the_border_is_a_fault() {
    let mut a = row();
    a.join("first.m", "second.s");
    a.chain_in("in", &[("s", "first.s"), ("t", "second.s")]);
    a.chain_out("out", &[("second.m", "u")]);
    a.link("in", 1, "first.s", "first.m");
    a.link_all("out", 1, &["first.s", "second.s"], &["first.m"]);
    a.tail("out", "first.s");
    let faults = faults(a);
    for part in [
        "s cannot show first.s",
        "second$s$data is driven by",
        "in has 2 signals, first.s and first.m are 1 and 1",
        "out has 1 signals, first.s, second.s and first.m are 2 and 1",
        "out ends at a port of the whole and at first.s",
    ] {
        assert!(faults.contains(part), "{part}: {faults}");
    }
}

/// An arbiter for ports that are made for one client.
const ARB: Share = Share {
    name: "arb",
    kind: "MsgArb",
    make: |list| match list.clients("words") {
        2 => AnyBlock::new(MsgArb::<Word, 2>::default()),
        3 => AnyBlock::new(MsgArb::<Word, 3>::default()),
        n => panic!("{n} clients"),
    },
    whole: &["m"],
    each: &["s[*]"],
    waits: arb::WAITS,
};

/// A queue at the end, and as many in front of it as there are `clients`, which are of a part of their own.
fn fan(clients: &[&'static str]) -> Assembly {
    let mut a = Assembly::default();
    a.part("chassis");
    a.input::<Clock>("clock");
    a.input::<Bit>("reset");
    a.reset_by("reset");
    a.instance("last", MsgFifo::<Word, 2>::default).waits(fifo::WAITS);
    a.open("last.level");
    a.expose("m", "last.m");
    a.shared("words", &["last.s"], ARB);
    a.part("engine");
    for name in clients {
        a.instance(name, MsgFifo::<Word, 2>::default).waits(fifo::WAITS);
        a.open(&format!("{name}.level"));
        a.expose(&format!("{name}_s"), &format!("{name}.s"));
        a.client("words", &[&format!("{name}.m")]);
    }
    a
}

/// One client has the ports to itself, none leaves them alone; from the second on there is an instance between, as large as it has to be.
#[test]
fn a_shared_pool_costs_one_client_nothing() {
    let mut plain = fan(&[]);
    plain.instance("a", MsgFifo::<Word, 2>::default);
    plain.open("a.level");
    plain.expose("a_s", "a.s");
    plain.join("a.m", "last.s");
    let verilog = |a: Assembly| crate::emit::emit("fan", a.assemble().unwrap_or_else(|faults| panic!("{faults:#?}"))).unwrap();
    assert_eq!(verilog(fan(&["a"])), verilog(plain));
    assert!(fan(&["a"]).instances.iter().all(|i| i.name != "arb"));
    assert!(fan(&[]).assemble().is_ok());
    for names in [&["a", "b"][..], &["a", "b", "c"]] {
        let list = fan(names);
        let between: Vec<&str> = list.instances.iter().filter(|i| i.name == "arb").map(|i| i.part).collect();
        assert_eq!((between, list.clients("words")), (vec!["chassis"], names.len()));
        assert_eq!(["arb.s[1]", "last.s", "arb.s[3]"].map(|port| list.user(port)), [Some("engine"), Some("chassis"), None]);
        let built = list.assemble().unwrap_or_else(|faults| panic!("{faults:#?}"));
        let graph = WaitGraph::of(&built);
        assert!(graph.faults.is_empty(), "{:?}", graph.faults);
        assert_eq!(graph.edges["arb.s[1]"].iter().map(|e| e.to.as_str()).collect::<Vec<_>>(), ["last.s"]);
        let mut tb = Tb::new(&format!("assembly_fan{}", names.len()), built);
        let sources: Vec<_> = names.iter().map(|name| tb.source(&format!("{name}_s"), 20)).collect();
        let sink = tb.sink("m", 30);
        sources.iter().zip(0u64..).for_each(|(source, i)| (0..20).for_each(|word| source.push(50 * i + word)));
        tb.run_until(1000, |_| sink.len() == 20 * names.len());
        let mut got: Vec<u64> = (0..20 * names.len()).filter_map(|_| sink.pop_u64()).collect();
        got.sort_unstable();
        assert_eq!(got, (0..names.len() as u64).flat_map(|i| 50 * i..50 * i + 20).collect::<Vec<_>>());
    }
}

#[test]
fn what_does_not_fit_a_shared_pool_is_a_fault() {
    let mut a = fan(&["a"]);
    a.shared("words", &["last.s"], ARB);
    a.shared("more", &["last.s", "last.m"], ARB);
    a.shared("others", &["last.s"], Share { each: &["s[0]"], ..ARB });
    a.client("words", &["a.m", "a.level"]);
    let faults = faults(a);
    for part in ["two pools are called words", "arb has not the ports of pool more", "s[0] of arb has no *", "a client of words has 1 ports", "a$m$ready is driven by"] {
        assert!(faults.contains(part), "{part}: {faults}");
    }
}

#[test]
fn what_does_not_fit_a_pool_or_a_chain_is_a_fault() {
    let mut a = row();
    a.join("first.m", "second.s");
    a.client("nothing", &["first.m"]);
    a.link("nothing", 1, "first.s", "first.m");
    a.pool("one", &["first.s"]);
    a.pool("words", &["first.s[*]"]);
    a.pool("words", &["first.s[*]"]);
    a.client("words", &["second.m", "second.level"]);
    a.tail("nowhere", "first.s");
    a.chain_from("open", "first.m");
    a.chain("row", "first.m", "second.s");
    a.tail("row", "third.s");
    a.link("row", 1, "second.s", "second.m");
    a.link("row", 1, "second.s", "second.m");
    let faults = faults(a);
    for part in [
        "nothing, which is no pool",
        "nothing, which is no chain",
        "first.s of pool one has no *",
        "two pools are called words",
        "a client of words has 1 ports",
        "two links of row have the place 1",
        "the end of nowhere, which is no chain",
        "row ends at second.s and at third.s",
        "open goes from first.m to nowhere",
    ] {
        assert!(faults.contains(part), "{part}: {faults}");
    }
}

/// A list with an arbiter for as many clients as the pool `words` has, of which there may be two, with quotas of ten together.
fn shared(quotas: &[usize]) -> Assembly {
    let mut a = Assembly::default();
    a.input::<Clock>("clock");
    a.input::<Bit>("reset");
    a.reset_by("reset");
    a.instance_by("arb", "MsgArb", |list| for_clients!(list.clients("words"), <N> AnyBlock::new(MsgArb::<Word, N>::default()))).waits(arb::WAITS);
    a.pool("words", &["arb.s[*]"]);
    a.pool_fits("words", |quotas| match quotas.iter().sum::<usize>() {
        sum if sum > 10 => Err(format!("{sum} of 10")),
        _ => super::up_to_most(quotas),
    });
    a.expose("m", "arb.m");
    for (n, quota) in quotas.iter().enumerate() {
        a.instance(&format!("fifo{n}"), MsgFifo::<Word, 2>::default).waits(&[("s", &["m"]), ("m", &["s"])]);
        a.open(&format!("fifo{n}.level"));
        a.expose(&format!("s{n}"), &format!("fifo{n}.s"));
        a.client_with("words", *quota, &[&format!("fifo{n}.m")]);
    }
    a
}

/// A block has as many ports as its pool has clients; who asks for more than there is gets a fault that names the pool.
#[test]
fn a_pool_sizes_its_block_and_refuses_what_does_not_fit() {
    for quotas in [&[1][..], &[4, 6], &[1, 2, 3]] {
        let a = shared(quotas);
        assert_eq!((a.clients("words"), a.quotas("words")), (quotas.len(), quotas));
        let built = a.assemble().unwrap_or_else(|faults| panic!("{faults:#?}"));
        let ports = built.ports.iter().find(|(name, _)| name == "arb").map_or(0, |(_, ports)| ports.iter().filter(|p| p.name.starts_with("s[")).count());
        assert_eq!(ports, quotas.len().max(super::FEWEST_PORTS));
    }
    assert_eq!(faults(shared(&[4, 8])), "pool words: 12 of 10");
    assert_eq!(faults(shared(&[1; 9])), "pool words: 9 clients, and at most 8 are possible");
    let mut a = shared(&[11]);
    a.pool_fits("nothing", super::up_to_most);
    assert_eq!(faults(a), "nothing, which is no pool, fits nobody\npool words: 11 of 10");
}

/// Lists are instances of lists.
#[test]
fn lists_nest() {
    let inner = || {
        let mut a = row();
        a.join("first.m", "second.s");
        a.assemble().unwrap()
    };
    let mut a = Assembly::default();
    a.input::<Clock>("clock");
    a.input::<Bit>("reset");
    a.reset_by("reset");
    a.instance("left", inner);
    a.instance("right", inner);
    a.join("left.m", "right.s");
    a.expose("s", "left.s");
    a.expose("m", "right.m");
    let mut tb = Tb::new("assembly_nested", a.assemble().unwrap());
    let (source, sink) = (tb.source("s", 0), tb.sink("m", 50));
    tb.run(2);
    (0..20u64).for_each(|word| source.push(word));
    tb.run_until(500, |_| sink.len() == 20);
    (0..20).for_each(|word| assert_eq!(sink.pop_u64(), Some(word)));
}

#[test]
fn what_does_not_fit_is_refused() {
    let without = faults(row());
    assert!(without.contains("second$s$data has no driver") && without.contains("nobody listens to first$m$data"), "{without}");
    let mut a = row();
    a.join("first.m", "second.s");
    a.join("first.m", "second.s");
    assert!(faults(a).contains("second$s$data is driven by first$m$data and by first$m$data"));
    let mut a = row();
    a.join("first.m", "second.t");
    assert!(faults(a).contains("there is no port second.t"));
    let mut a = row();
    a.join("first.s", "second.s");
    assert!(faults(a).contains("first$s$data and second$s$data both take"));
    let mut a = row();
    a.instance("wide", MsgFifo::<Bits<9>, 2>::default);
    a.join("first.m", "wide.s");
    assert!(faults(a).contains("first$m$data is"), "another width");
    let mut a = row();
    a.instance("first", MsgFifo::<Word, 2>::default);
    assert!(faults(a).contains("two instances are called first"));
    let mut a = row();
    a.join("first.m", "second.s");
    a.open("second.m");
    assert!(faults(a).contains("second.m is called open, and is not"));
    let mut a = row();
    a.table(3, "first");
    assert!(faults(a).contains("stands before the control switch"));
    let mut a = row();
    a.count("first", "first.level", &["one"]);
    assert!(faults(a).contains("nobody counts"));
}

#[test]
fn waits_follow_the_wires() {
    let mut a = row();
    a.join("first.m", "second.s");
    let built = a.assemble().unwrap();
    let graph = WaitGraph::of(&built);
    assert!(graph.faults.is_empty(), "{:?}", graph.faults);
    assert_eq!(graph.circle(), None);
    assert_eq!(graph.edges["first.s"].iter().map(|e| e.to.as_str()).collect::<Vec<_>>(), ["second.s"]);
    // Back to the beginning.
    let circle = WaitGraph::with(&built, &[("second.m", "first.s")]).circle().expect("a circle");
    assert_eq!(circle, ["first.s", "second.s"]);
    // An instance without rows.
    let mut a = row();
    a.instances[1].waits = &[];
    a.join("first.m", "second.s");
    let graph = WaitGraph::of(&a.assemble().unwrap());
    assert!(graph.faults.iter().any(|f| f.starts_with("second.s ")), "{:?}", graph.faults);
    // A row for no port.
    let mut a = row();
    a.instances[1].waits = &[("s", &["m"]), ("t", &[])];
    a.join("first.m", "second.s");
    assert_eq!(WaitGraph::of(&a.assemble().unwrap()).faults, ["second.t has a row, and no wire"]);
    // Every port of a kind, as far as the block has them.
    let mut a = shared(&[1, 1]);
    a.instances[0].waits = &[("s[*]", &["m"]), ("m", &["s[..]"])];
    let graph = WaitGraph::of(&a.assemble().unwrap());
    assert!(graph.faults.is_empty(), "{:?}", graph.faults);
    assert_eq!(graph.edges["arb.m"].iter().map(|e| e.to.as_str()).collect::<Vec<_>>(), ["fifo0.m", "fifo1.m"]);
    // An input that never waits here.
    let mut a = row();
    a.instances[0].never_waits("s");
    a.join("first.m", "second.s");
    let built = a.assemble().unwrap();
    assert_eq!(WaitGraph::with(&built, &[("second.m", "first.s")]).circle(), None);
}
