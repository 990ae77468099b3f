//! Searches: what is asked, and which answers count.
use super::bench::Bench;
use super::frames::*;
use super::REST;
use crate::engines::echo::model::Outcome;

fn start(stall: u32, seed: u64) -> Bench<64, 8, 4> {
    let mut b = Bench::new("echo64", stall, seed);
    b.set_up();
    b
}

/// The request is sent, once.
fn asked(b: &mut Bench<64, 8, 4>, function: usize) {
    b.run(1000);
    assert_eq!(b.sent.pop_front(), b.station.ask(function));
    assert!(b.sent.is_empty());
}

#[test]
fn an_answer_is_learned_once() {
    for (n, (function, source, card)) in [(0, 0, CARD4), (0, 15, CARD6), (1, 3, TAGGED4), (1, 4, TAGGED6)].into_iter().enumerate() {
        let mut b = start([0, 30][n % 2], 30 + n as u64);
        let answer = is_at(card.peer(), card);
        assert_eq!(b.exchange(&answer), Some(Outcome::PassedOn), "nobody has asked");
        b.seek(function, card.peer().ip, source);
        asked(&mut b, function);
        assert_eq!(b.stat["echo_asked"], 1);
        // From another host, to another of our addresses, of another network.
        let other = Host { ip: card.peer().ip + 1, ..card.peer() };
        assert_eq!(b.exchange(&is_at(other, card)), Some(Outcome::PassedOn));
        assert_eq!(b.exchange(&is_at(card.peer(), Host { mac: card.mac + 7, ..card })), Some(Outcome::PassedOn));
        assert_eq!(b.exchange(&is_at(card.peer(), Host { ip: card.ip + 7, ..card })), Some(Outcome::PassedOn));
        assert_eq!(b.exchange(&is_at(card.peer(), Host { vid: Some(9), ..card })), Some(Outcome::PassedOn));
        b.check_search(function);
        assert_eq!(b.exchange(&answer), Some(Outcome::Found));
        b.check_search(function);
        // A late one, with another MAC address.
        let late = is_at(Host { mac: 0x0200_5e00_0099, ..card.peer() }, card);
        assert_eq!(b.exchange(&late), Some(Outcome::PassedOn));
        b.check_search(function);
        // Asked once more it counts.
        b.seek(function, card.peer().ip, source);
        asked(&mut b, function);
        assert_eq!(b.exchange(&late), Some(Outcome::Found));
        b.check_search(function);
    }
}

#[test]
fn two_functions_seek_at_once() {
    let mut b = start(0, 40);
    let second = Host { mac: CARD4.mac, ip: CARD4.ip + 9, ..CARD4 };
    b.set(1, 7, second);
    b.seek(0, PEER4.ip, 0);
    b.seek(1, PEER4.ip, 7);
    b.run(1000);
    assert_eq!(b.sent.drain(..).collect::<Vec<_>>(), [b.station.ask(0).unwrap(), b.station.ask(1).unwrap()]);
    assert_eq!(b.exchange(&is_at(PEER4, second)), Some(Outcome::Found));
    b.check_search(0);
    b.check_search(1);
    assert_eq!(b.exchange(&is_at(PEER4, CARD4)), Some(Outcome::Found));
    b.check_search(0);
}

/// From an address that is none nothing is asked, and nothing is learned.
#[test]
fn the_source_has_to_be_valid() {
    let mut b = start(0, 41);
    b.seek(0, PEER4.ip, 5);
    b.run(1000);
    assert!(b.sent.is_empty() && b.station.ask(0).is_none());
    assert_eq!(b.exchange(&is_at(PEER4, CARD4)), Some(Outcome::PassedOn));
    assert_eq!(b.stat["echo_asked"], 0);
    // The address goes between question and answer.
    b.seek(1, PEER6.ip, 4);
    asked(&mut b, 1);
    b.access(16 + 4, 5, Some(0));
    b.station.addresses[20] = b.station.addresses[20].with_valid(false).with_vlan(false).with_ipv6(false).with_vid(0);
    assert_eq!(b.exchange(&is_at(PEER6, TAGGED6)), Some(Outcome::PassedOn));
    b.check_search(1);
}

/// The search changes while a long advertisement, whose checksum is right, is being looked at.
#[test]
fn an_answer_that_becomes_late() {
    let mut b = start(0, 42);
    let mut message = is_at(PEER6, CARD6)[54..86].to_vec();
    for _ in 0..60 {
        message.extend([14, 1, 0, 0, 0, 0, 0, 0]);
    }
    let answer = discovery(PEER6, CARD6.ip, CARD6.mac, &message, None);
    for (wait, found) in [(4000, true), (400, false)] {
        b.now += REST;
        b.seek(0, PEER6.ip, 15);
        asked(&mut b, 0);
        b.push(&answer);
        b.run(wait);
        b.seek(0, PEER6.ip + 1, 15);
        b.settle(10_000);
        b.run(1000);
        assert_eq!(b.passed.pop_front().is_some(), !found);
        assert_eq!(b.stat["echo_found"], 1, "{wait}");
        b.sent.clear();
    }
    b.check_search(0);
}

/// Each function's request is sent although all come while a long frame is being answered.
#[test]
fn requests_wait_for_their_turn() {
    let mut b = start(0, 43);
    b.push(&ping(CARD4, &[3; 4000]));
    b.run(50);
    for _ in 0..2 {
        b.seek(0, PEER4.ip, 0);
        b.seek(1, PEER4.ip, 3);
    }
    b.settle(40_000);
    b.run(1000);
    b.sent.pop_front().expect("the ping's answer");
    let mut sent: Vec<_> = b.sent.drain(..).collect();
    sent.sort();
    let mut expected = [b.station.ask(0).unwrap(), b.station.ask(1).unwrap()];
    expected.sort();
    assert_eq!(sent, expected);
}
