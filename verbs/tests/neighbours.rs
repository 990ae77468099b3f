//! Whose word counts about a neighbour's MAC address: the environment's, the card's, or none.
#[path = "../../driver/tests/card/mod.rs"]
#[allow(dead_code, reason = "this test wants no queues")]
mod card;

use card::Card;
use ferric_abi::context::AddressCtx;
use ferric_driver::{Config, Context, Mac, Search};
use ferric_verbs::config::mac_of;
use ferric_verbs::neighbour::{introduce, mac};
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

const BRIEF: Search = Search { asks: 2, wait: Duration::from_millis(20) };

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn the_environment_comes_first_then_the_card() {
    for (own, them, number) in [("10.0.0.1", "10.0.0.2", 0x0a00_0002), ("fd00::1", "fd00::2", 0xfd << 120 | 2)] {
        let card = Card::with_network();
        let ctx = Context::open(card.clone(), Config::default()).unwrap();
        introduce(&ctx, ip(own)).unwrap();
        introduce(&ctx, ip(own)).unwrap();
        card.network(|n| {
            let made = mac_of(ip(own)).0.iter().fold(0, |n, b| n << 8 | u64::from(*b));
            assert_eq!(n.own.values().map(AddressCtx::mac).collect::<Vec<_>>(), [made]);
            n.neighbours.insert(number, (0x5254_0000_0002, 1, 1));
        });
        let named = HashMap::from([(ip(them), Mac([7; 6]))]);
        assert_eq!(mac(&ctx, &named, ip(them), &BRIEF), Mac([7; 6]));
        card.network(|n| assert!(n.asked.is_empty()));
        assert_eq!(mac(&ctx, &HashMap::new(), ip(them), &BRIEF), Mac([0x52, 0x54, 0, 0, 0, 2]));
    }
}

#[test]
fn without_an_answer_a_neighbour_is_a_ferric_card() {
    let silent = Context::open(Card::with_network(), Config::default()).unwrap();
    introduce(&silent, ip("10.0.0.1")).unwrap();
    let start = Instant::now();
    for _ in 0..50 {
        assert_eq!(mac(&silent, &HashMap::new(), ip("10.0.0.9"), &BRIEF), mac_of(ip("10.0.0.9")));
    }
    // It was waited for once, not fifty times, on however busy a machine.
    assert!(start.elapsed() >= 2 * BRIEF.wait && start.elapsed() < 50 * BRIEF.wait, "{:?}", start.elapsed());
    // A card that cannot ask does not wait.
    let plain = Context::open(Card::new(false), Config::default()).unwrap();
    introduce(&plain, ip("10.0.0.1")).unwrap();
    let start = Instant::now();
    assert_eq!(mac(&plain, &HashMap::new(), ip("10.0.0.9"), &Search::default()), mac_of(ip("10.0.0.9")));
    assert!(start.elapsed() < Duration::from_millis(500));
}
