//! The block against its model, and both against what others make of these protocols.
mod bench;
mod frames;
mod peers;
mod searches;
mod storms;

use super::model::Outcome;
use super::{BURST, TICKS_PER_TOKEN};
use crate::tb::Rng;
use bench::Bench;
use ferric_model::net::networks::{Networks, Through};
use frames::*;
use std::collections::BTreeMap;

/// Ticks until the block answers as if it had not answered before.
const REST: u32 = (BURST * TICKS_PER_TOKEN) as u32;

fn lengths<const W: usize, const K: usize, const L: usize>(name: &str, stall: u32) {
    let mut b = Bench::<W, K, L>::new(name, stall, 1);
    b.set_up();
    for card in [CARD4, CARD6, TAGGED4, TAGGED6] {
        let around = if card.ipv6 { 62 } else { 42 } + if card.vid.is_some() { 4 } else { 0 };
        let all: Vec<usize> = if card.vid.is_some() == card.ipv6 { (0..140).collect() } else { (0..301).collect() };
        for len in all.into_iter().chain([1472, 4000, 8190 - around, 8191 - around]) {
            let data = b.tb.rng().bytes(len);
            b.now += TICKS_PER_TOKEN as u32;
            let name = if card.ipv6 { "echo_ping6" } else { "echo_ping" };
            assert!(matches!(b.exchange(&ping(card, &data)), Some(Outcome::Answered(n, _, 0..2)) if n == name), "{card:?} {len}");
        }
        b.now += REST;
        let name = if card.ipv6 { "echo_nd" } else { "echo_arp" };
        assert!(matches!(b.exchange(&who_has(card)), Some(Outcome::Answered(n, _, 0..2)) if n == name), "{card:?}");
    }
}

#[test]
fn pings_of_all_lengths_are_answered() {
    lengths::<64, 8, 4>("echo64", 0);
    lengths::<512, 64, 7>("echo512", 20);
}

/// One frame after the other.
fn random<const W: usize, const K: usize, const L: usize>(name: &str, stall: u32, seed: u64, frames: u32) {
    let mut b = Bench::<W, K, L>::new(name, stall, seed);
    b.set_up();
    let mut rng = Rng::new(seed ^ 0x5eed);
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for n in 0..frames {
        b.now = b.now.wrapping_add(REST);
        if n % 8 == 0 {
            let (function, card) = (n as usize / 8 % 2, [[CARD4, CARD6], [TAGGED4, TAGGED6]][n as usize / 8 % 2][n as usize / 16 % 2]);
            b.seek(function, card.peer().ip, [[0, 15], [3, 4]][function][usize::from(card.ipv6)]);
            b.run(300 + 4 * stall as usize);
            assert_eq!((b.sent.pop_front(), b.sender), (b.station.ask(function), Some(function)));
        }
        // Some come through a tunnel, rightly or wrongly.
        let (tunnels, through) = if rng.percent(70) { (0, None) } else { (rng.below(4), [None, Some(0), Some(1), Some(3)][rng.below(4) as usize]) };
        b.set_network(tunnels, through);
        let frame = any(&mut rng);
        let what = match b.exchange(&frame) {
            Some(Outcome::Answered(name, ..)) => name.to_string(),
            other => format!("{other:?}"),
        };
        *seen.entry(what).or_default() += 1;
        if n % 8 == 7 {
            b.check_search(n as usize / 8 % 2);
        }
    }
    println!("{seen:?}");
    assert!(seen.len() == 8 && seen.values().all(|n| *n > frames / 60), "{seen:?}");
}

#[test]
fn random_frames_agree_with_the_model() {
    random::<64, 8, 4>("echo64", 0, 1, 1500);
    random::<64, 8, 4>("echo64", 40, 2, 700);
    random::<512, 64, 7>("echo512", 30, 3, 1500);
}

/// Two functions with the same addresses, each behind its tunnel: whose address is asked for is decided by where the question comes from, and the answer is that function's.
#[test]
fn the_same_addresses_in_two_networks() {
    let mut b = Bench::<64, 8, 4>::new("echo64", 10, 13);
    b.run(100);
    // They differ in their MAC addresses, so that the answers do.
    for (function, mac) in [(0, 0x0200_0000_0001), (1, 0x0200_0000_0002), (2, 0x0200_0000_0003)] {
        b.set(function, 2, Host { mac, ..CARD4 });
    }
    for (tunnels, through, expected) in
        [(0b011, Some(0), Some(0)), (0b011, Some(1), Some(1)), (0b011, None, Some(2)), (0b111, None, None), (0b011, Some(3), None), (0b110, None, Some(0)), (0b110, Some(2), Some(2))]
    {
        b.now += REST;
        b.set_network(tunnels, through);
        match b.exchange(&who_has(CARD4)) {
            Some(Outcome::Answered("echo_arp", _, function)) => assert_eq!(Some(function), expected, "{tunnels:b} {through:?}"),
            other => assert!(expected.is_none() && other == Some(Outcome::PassedOn), "{tunnels:b} {through:?}: {other:?}"),
        }
    }
    // Function 2 has joined function 1: in their network the lower line counts, each is reached by itself, and function 0 is asked by nobody of it.
    let joined = Networks::apart(0b010).join(2, 1);
    for (through, expected) in [(Through::Whole(1), 1), (Through::Looped(2), 1), (Through::Only(2), 2), (Through::None, 0)] {
        b.now += REST;
        b.set_networks(joined, through);
        let Some(Outcome::Answered("echo_arp", _, function)) = b.exchange(&who_has(CARD4)) else { panic!("{through:?}") };
        assert_eq!(function, expected, "{through:?}");
    }
    // What software is shown of other networks passes, whoever is meant, to the same queue pair.
    b.set_networks(joined, Through::Shown(0));
    b.seek(0, CARD4.peer().ip, 2);
    b.run(500);
    assert_eq!((b.sent.pop_front(), b.sender), (b.station.ask(0), Some(0)));
    let own = Host { mac: 0x0200_0000_0001, ..CARD4 };
    for frame in [who_has(CARD4), who_has(CARD6), ping(CARD4, b"some data"), is_at(CARD4.peer(), own)] {
        assert_eq!(b.exchange(&frame), None);
    }
    b.set_networks(joined, Through::None);
    assert_eq!(b.exchange(&is_at(CARD4.peer(), own)), Some(Outcome::Found), "the search is still under way");
    // Who seeks a neighbour is answered by his own network only.
    b.set_network(0b010, Some(2));
    b.seek(1, CARD4.peer().ip, 2);
    b.run(500);
    assert_eq!((b.sent.pop_front(), b.sender), (b.station.ask(1), Some(1)));
    let own = Host { mac: 0x0200_0000_0002, ..CARD4 };
    assert_eq!(b.exchange(&is_at(CARD4.peer(), own)), Some(Outcome::PassedOn));
    b.set_network(0b010, None);
    assert_eq!(b.exchange(&is_at(CARD4.peer(), own)), Some(Outcome::PassedOn));
    b.set_network(0b010, Some(1));
    assert_eq!(b.exchange(&is_at(CARD4.peer(), own)), Some(Outcome::Found));
}

/// The same with every queue stalling at random inside.
#[test]
fn chaos_changes_nothing() {
    crate::stream::chaos::scoped(7, || random::<64, 8, 4>("echo64_chaos", 20, 4, 700));
}

/// Every bit of the headers turned over, with right checksums.
#[test]
fn every_bit_counts() {
    let mut b = Bench::<512, 64, 7>::new("echo512", 0, 12);
    b.set_up();
    for (n, card) in [CARD4, CARD6, TAGGED4, TAGGED6].into_iter().enumerate() {
        let (function, source) = [(0, 0), (0, 15), (1, 3), (1, 4)][n];
        for (kind, frame) in [ping(card, b"some data"), who_has(card), is_at(card.peer(), card)].into_iter().enumerate() {
            let length = frame.len().min(if card.ipv6 { 90 } else { 50 });
            for bit in 0..8 * length {
                b.now = b.now.wrapping_add(REST);
                if kind == 2 && b.station.neighbours[function].state() != 1 {
                    b.seek(function, card.peer().ip, source);
                    b.run(500);
                    b.sent.clear();
                }
                let mut frame = frame.clone();
                frame[bit / 8] ^= 1 << (bit % 8);
                repair(&mut frame);
                b.exchange(&frame);
            }
        }
    }
}

/// Many frames at once, and the control bus at work: what is passed on keeps its order in each of the two streams.
fn crowd<const W: usize, const K: usize, const L: usize, const LF: usize, const LA: usize>(name: &str, stall: u32, seed: u64) {
    let mut b = Bench::<W, K, L>::of::<LF, LA>(name, stall, seed);
    b.set_up();
    let mut rng = Rng::new(seed);
    for round in 0..6 {
        b.now += REST;
        let (mut answers, mut through, mut back, mut freed) = (Vec::new(), Vec::new(), Vec::new(), b.freed);
        for n in 0..80 {
            let frame = any(&mut rng);
            b.push(&frame);
            match b.station.receive(&frame, b.now, b.network) {
                None => through.push(frame),
                Some(Outcome::PassedOn) => back.push(frame),
                Some(Outcome::Answered(_, answer, _)) => {
                    answers.push(answer);
                    freed += 1;
                }
                Some(_) => freed += 1,
            }
            if n % 20 == round {
                // A line that nobody needs, and a search that nobody asks for.
                let value = rng.next_u32();
                for line in [22, 63, (1 << 16) + 3] {
                    b.access(line, 2, Some(value));
                    assert_eq!(b.access(line, 2, None), Some(value));
                }
            }
        }
        b.settle(400_000);
        let of_kind = |frame: &&Vec<u8>| crate::net::rx::model::receive(frame, false).expect("it passed").kind != 0;
        let (got_back, got_through): (Vec<_>, Vec<_>) = b.passed.iter().partition(of_kind);
        assert!(got_back.into_iter().eq(&back) && got_through.into_iter().eq(&through), "seed {}", b.tb.seed());
        assert!(b.sent.iter().eq(&answers), "seed {}", b.tb.seed());
        assert_eq!(b.freed, freed);
        b.passed.clear();
        b.sent.clear();
    }
}

#[test]
fn frames_that_wait_keep_their_order() {
    crowd::<64, 8, 4, 2, 6>("echo64", 0, 5);
    crowd::<64, 8, 4, 2, 6>("echo64", 50, 6);
    crowd::<512, 64, 7, 2, 6>("echo512", 30, 7);
}

/// 64 functions: the lowest line that is asked for answers.
#[test]
fn many_functions() {
    let mut b = Bench::<64, 8, 4>::of::<6, 10>("echo64_many", 10, 8);
    b.run(1100);
    for function in [0usize, 1, 17, 40, 63] {
        let host = Host { mac: 0x0200_0000_0000 + function as u64, ip: 0x0a01_0000 + function as u128, ..CARD4 };
        b.set(function, (function * 3) % 16, host);
        assert!(matches!(b.exchange(&ping(host, b"hello")), Some(Outcome::Answered(..))));
        assert!(matches!(b.exchange(&who_has(host)), Some(Outcome::Answered(..))));
    }
    // The same address twice: the lower line's MAC address is told.
    let twice = Host { mac: 0x0200_0000_0bad, ip: 0x0a01_0000 + 17, ..CARD4 };
    b.set(50, 2, twice);
    assert!(matches!(b.exchange(&who_has(twice)), Some(Outcome::Answered(..))));
    for n in 0..64 {
        b.exchange(&ping(Host { ip: 0x0a01_0000 + n, ..CARD4 }, &[1; 9]));
    }
}

#[test]
fn lines_and_words_that_are_none() {
    let mut b = Bench::<64, 8, 4>::new("echo64", 20, 9);
    for line in [64, 65, 1 << 15, (1 << 16) + 4, (1 << 16) + 64, 3 << 16, 1 << 23, (1 << 24) - 1] {
        for word in [0, 5] {
            assert_eq!((b.access(line, word, None), b.access(line, word, Some(7))), (None, None), "{line:#x}");
        }
    }
    for line in [0, 63, 1 << 16, (1 << 16) + 3] {
        for word in 0..8 {
            assert_eq!(b.access(line, word, Some(line + word)).is_some(), word < 6, "word {word}");
            assert_eq!(b.access(line, word, None), (word < 6).then_some(line + word));
        }
    }
}

/// What it waits for and what it knows is gone; what comes afterwards is like the first.
#[test]
fn reset_in_the_middle() {
    let mut b = Bench::<64, 8, 4>::new("echo64", 20, 10);
    let mut rng = Rng::new(77);
    for _ in 0..12 {
        b.set_up();
        b.now += REST;
        for _ in 0..10 {
            let frame = any(&mut rng);
            b.push(&frame);
        }
        b.run(rng.below(4000) as usize);
        b.reset();
        b.now += REST;
        assert_eq!(b.exchange(&who_has(CARD4)), Some(Outcome::PassedOn));
        b.set_up();
        assert!(matches!(b.exchange(&who_has(CARD4)), Some(Outcome::Answered(..))));
        let data = rng.bytes(200);
        assert!(matches!(b.exchange(&ping(CARD6, &data)), Some(Outcome::Answered(..))));
    }
}

#[test]
fn the_model_is_that_of_the_standards() {
    peers::answers_parse();
}
