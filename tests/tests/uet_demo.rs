//! A short form of `./scripts/demo --uet`: three cards at switches with several paths, losses, and a path that fails and comes back.
use etherparse::{SlicedPacket, TransportSlice};
use ferric_abi::uet::UET_PORT;
use ferric_tests::uet::judge::registers;
use ferric_tests::uet::plot::{bars, draw, parts};
use ferric_tests::uet::street::{run, Plan, CARDS};
use ferric_uet::replay::load;
use ferric_uet::wire::parse;
use std::path::PathBuf;

#[test]
fn three_cards_write_to_each_other_over_paths_that_lose_and_fail() {
    let tmp = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (capture, picture) = (tmp.join("uet-demo.pcapng"), tmp.join("uet-demo.svg"));
    let plan = Plan { width: 64, seed: 1, cycles: 200_000, bin: 10_000, loss: 10_000, capture: Some(capture.clone()) };
    let outcome = run(&plan).unwrap();
    println!("{}{outcome:?}", bars(&plan, &outcome));
    let f = outcome.fabric;
    assert!(f.lost > 0 && f.cut > 0 && f.unknown + f.dropped == 0, "{f:?}");
    assert!(f.sent - f.delivered - f.lost - f.cut < 50, "{f:?}");
    // Sprayed: each path has its part, also the one that is away for a while.
    let sum: u64 = outcome.paths.iter().sum();
    assert!(outcome.paths.iter().all(|n| n * 10 > sum), "{:?}", outcome.paths);
    // Goodput falls with the path, and comes back.
    let rates: Vec<u64> = parts(&plan, &outcome).iter().map(|bin| bin.iter().sum()).collect();
    let [cut, noticed, back] = plan.failure().map(|at| (at / plan.bin) as usize);
    let mean = |from: usize, to: usize| rates[from - 1..to - 1].iter().sum::<u64>() / (to - from) as u64;
    let (before, meanwhile, behind) = (mean(1, cut), mean(cut + 1, noticed), mean(back + 2, rates.len() + 1));
    assert!(meanwhile * 100 < before * 70 && meanwhile > 0, "{before} before, {meanwhile} without the path");
    assert!(behind * 100 > before * 80, "{before} before, {behind} behind it");
    let by_card: Vec<u64> = (0..CARDS).map(|card| parts(&plan, &outcome).iter().map(|bin| bin[card]).sum()).collect();
    assert!(by_card.iter().all(|n| n * 2 > by_card[0]), "{by_card:?}");
    // The capture, by a reader of packets that was not written here, and by the codecs.
    let frames = load(&capture).unwrap();
    assert_eq!(frames.len() as u64, outcome.captured);
    for frame in &frames {
        let packet = SlicedPacket::from_ethernet(frame).unwrap();
        assert!(matches!(packet.transport, Some(TransportSlice::Udp(udp)) if udp.destination_port() == UET_PORT));
        assert!(parse(frame, &registers()).is_ok());
    }
    draw(&picture, &plan, &outcome).unwrap();
    let svg = std::fs::read_to_string(&picture).unwrap();
    assert!(svg.contains("<polyline") && svg.contains("path 2 cut"), "a picture with lines");
}
