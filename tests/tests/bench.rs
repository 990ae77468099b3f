//! What the bench stands on, on whole cards: time, paces, and figures that do not depend on where memory lies.
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::{CqeStatus, QpConfig, SendRequest};
use ferric_sim::axi::HostTiming;
use ferric_sim::fabric::Fate;
use ferric_tests::bench::reader;
use ferric_tests::bench::scenarios::{Measure, Op, Point, Rig, Scenario, Way, SCENARIOS};
use ferric_tests::pair::{Linked, Wire};

const BYTES: usize = 65_536;
const PAGE: usize = 4096;

/// Writes from the first whole page of a region to that of the other: the paces depend on where pages end, and the heap lays a region anywhere.
fn write(link: &mut Linked, bytes: usize) {
    let page = |addr: u64| addr.next_multiple_of(PAGE as u64);
    let from = [sge(page(link.src.addr()), bytes as u32, link.src.lkey())];
    let (remote_addr, rkey) = (page(link.dst.addr()), link.dst.rkey());
    let request = SendRequest { wr_id: 1, opcode: WrOpcode::Write, payload: Payload::Sges(&from), remote_addr, rkey, imm: 0, signaled: true, solicited: false };
    link.qps[0].post_send(&request).unwrap();
    assert_eq!(link.wait(0, 400_000).unwrap().status, CqeStatus::Success);
}

fn linked() -> Linked {
    Linked::new(&QpConfig::default(), &Wire::default(), &[7; BYTES + PAGE]).unwrap()
}

/// The second of two messages is lost. The card waits for its time-out, of which the simulation skips nearly all; the figure does not.
#[test]
fn skipped_time_is_in_the_figures() {
    let mut link = linked();
    let (cycle, elapsed) = {
        let mut world = link.pair.world();
        world.trace = Some(Vec::new());
        (world.cycle(), world.elapsed())
    };
    write(&mut link, 64);
    link.pair.world().links[0].set_hook(Some(Box::new(|n, _| (n == 1).then_some(Fate::Dropped))));
    write(&mut link, 64);
    let mut world = link.pair.world();
    let trace = world.trace.take().unwrap();
    // 4.096 us * 2^8 are 1024 ticks of 256 cycles; the timer may take part of a tick for a whole one.
    let timeout = 1000 * 256;
    assert!(world.cycle() - cycle < 40_000, "{} cycles were simulated", world.cycle() - cycle);
    assert!(world.elapsed() - elapsed >= timeout, "{} cycles passed", world.elapsed() - elapsed);
    let d = reader::delivered(&trace, 1, false).unwrap();
    assert_eq!((d.messages, d.payload), (2, 128));
    assert!(d.cycles_per_message().unwrap() >= timeout as f64, "{d:?}");
    assert_eq!(reader::waste(&trace, 0).repeats, 1);
}

/// A MAC and a host that take fewer bytes than the card could move hold it to that, and lose little of it; a host takes no more reads than it is told.
#[test]
fn paces_are_kept() {
    let mut link = linked();
    let mut goodput = |mac: u32, host: HostTiming| {
        {
            let mut world = link.pair.world();
            for card in &mut world.cards {
                card.pace_mac(mac);
                card.set_timing(host);
                card.bus.max_outstanding = 0;
            }
        }
        write(&mut link, BYTES);
        link.pair.world().trace = Some(Vec::new());
        write(&mut link, BYTES);
        let mut world = link.pair.world();
        let trace = world.trace.take().unwrap();
        (reader::delivered(&trace, 1, false).unwrap().goodput(), world.cards[0].bus.max_outstanding)
    };
    let (free, outstanding) = goodput(0, HostTiming::default());
    // The host answers at once, so it owes little (`host/dma_rd/owed.rs`): four pages, and what goes while that is counted.
    assert!(free > 44.0 && outstanding > 4, "{free} B per cycle, {outstanding} reads");
    let (mac, _) = goodput(32, HostTiming::default());
    // The last of 16 frames reaches the receiver at full speed.
    assert!(mac < 34.0 && mac > 24.0, "{mac}");
    let (bus, _) = goodput(0, HostTiming { bytes_per_cycle: 32, ..Default::default() });
    assert!(bus < 34.0 && bus > 20.0, "{bus}");
    let (few, outstanding) = goodput(0, HostTiming { max_reads: 2, ..Default::default() });
    assert!(few < free && outstanding == 2, "{few} B per cycle, {outstanding} reads");
}

/// The same point runs twice in one process, with other memory and other keys. It gives the same figure.
#[test]
fn a_figure_is_a_function_of_its_point() {
    let base = SCENARIOS.iter().find(|s| s.name == "write_64_1qp").unwrap();
    let scenario: &'static Scenario = Box::leak(Box::new(Scenario { rig: Rig::Large1024, size: 3000, op: Op::Write, measure: Measure::Efficiency, count: 64, windows: &[16], ..*base }));
    let run = |offset| Rig::Large1024.set_up(Way::Plain).unwrap().measure(&Point { scenario, window: 16, offset, latency: 250 }, |_| ());
    let first = run(16);
    std::mem::forget(vec![1u8; 12_345]);
    let second = run(16);
    assert_eq!((first.error.as_deref(), first.messages), (None, 64));
    assert!(first.value.is_some_and(|v| v > 5.0 && v <= 100.0), "{first:?}");
    assert_eq!((first.value, first.cycles, first.faults), (second.value, second.cycles, second.faults));
}
