//! More than is answered, and as much as can wait.
use super::bench::Bench;
use super::frames::*;
use super::{BURST, REST, TICKS_PER_TOKEN};
use crate::engines::echo::model::Outcome;

/// A burst, then what time allows; each function has its own, pings and neighbours have theirs.
#[test]
fn answers_are_limited() {
    let mut b = Bench::<64, 8, 4>::new("echo64", 0, 20);
    b.set_up();
    // The ticks begin anew on the way.
    b.now = 0u32.wrapping_sub(REST + 76);
    let limited = |o: Option<Outcome>| o == Some(Outcome::Limited);
    for n in 0..BURST + 5 {
        assert_eq!(limited(b.exchange(&ping(CARD4, b"x"))), n >= BURST, "{n}");
    }
    assert!(limited(b.exchange(&ping(CARD6, b"x"))), "the same function");
    assert!(!limited(b.exchange(&who_has(CARD4))), "not a ping");
    assert!(!limited(b.exchange(&ping(TAGGED4, b"x"))), "another function");
    for n in 0..100 {
        b.now = b.now.wrapping_add(TICKS_PER_TOKEN as u32 / 2);
        assert_eq!(limited(b.exchange(&ping(CARD4, b"x"))), n % 2 == 0, "{n}");
    }
    // Malformed ones count too.
    let mut bad = ping(CARD4, b"x");
    bad[40] ^= 1;
    b.now = b.now.wrapping_add(2 * TICKS_PER_TOKEN as u32);
    assert_eq!(b.exchange(&bad), Some(Outcome::Malformed));
    assert!(!limited(b.exchange(&ping(CARD4, b"x"))));
    assert!(limited(b.exchange(&bad)));
    // Long after, no more than a burst.
    b.now = b.now.wrapping_add(0x4000_0000);
    for n in 0..BURST + 5 {
        assert_eq!(limited(b.exchange(&ping(CARD4, b"x"))), n >= BURST, "{n}");
    }
}

/// As many frames as there are cells wait while the egress gives no slot; others pass by them.
#[test]
fn as_many_wait_as_there_are_cells() {
    let mut b = Bench::<512, 64, 7>::new("echo512", 0, 21);
    b.set_up();
    b.egress_closed = true;
    let mut expected = Vec::new();
    for n in 0..512u32 {
        let frame = ping([CARD4, TAGGED6][n as usize % 2], &n.to_be_bytes());
        expected.push(b.station.receive(&frame, b.now, b.network));
        b.push(&frame);
    }
    b.run(3000);
    assert_eq!((b.desc_in.pending(), b.held(), b.passed.len()), (0, 512, 0), "all are inside");
    let other = [[2; 12].to_vec(), vec![0x88; 60]].concat();
    b.push(&other);
    b.run(50);
    assert_eq!(b.passed.pop_front(), Some(other));
    b.egress_closed = false;
    b.settle(1_000_000);
    let answers = expected.iter().filter(|o| matches!(o, Some(Outcome::Answered(..)))).count();
    assert_eq!((b.sent.len(), answers), (answers, 2 * BURST as usize));
    assert_eq!(b.stat["echo_limited"], 512 - 2 * BURST);
    // The first was at hand. Then the oldest went unseen until they held less than half of the cells, so all other answers are to younger ones.
    let number = |answer: &Vec<u8>| {
        let data = if answer[12..14] == [0x81, 0] { 66 } else { 42 };
        u32::from_be_bytes(answer[data..data + 4].try_into().unwrap())
    };
    assert_eq!(number(&b.sent[0]), 0);
    assert!(b.sent.iter().skip(1).all(|answer| number(answer) >= 256), "{}", number(&b.sent[1]));
}

/// Foreign ARP in masses: neither stream starves, and a search is asked for in between.
#[test]
fn neither_stream_starves() {
    let mut b = Bench::<64, 8, 4>::new("echo64", 0, 22);
    b.set_up();
    let foreign = who_has(Host { ip: 77, ..CARD4 });
    let other = [[2; 12].to_vec(), vec![0x88; 60]].concat();
    for n in 0..400 {
        b.push(if n % 4 == 0 { &foreign } else { &other });
    }
    b.run(20);
    b.set_out_stall(60);
    b.seek(0, PEER4.ip, 0);
    b.run(1000);
    assert_eq!(b.sent.pop_front(), b.station.ask(0), "asked among frames that wait");
    b.settle(100_000);
    assert_eq!(b.passed.len(), 400);
    assert_eq!(b.stat["echo_passed_on"], 100);
    // A frame that passes is never held up for longer than one that comes back.
    b.set_out_stall(0);
    b.passed.clear();
    for n in 0..64 {
        b.push(if n == 0 { &foreign } else { &other });
    }
    b.run(64 + 4);
    assert!(b.passed.len() >= 63);
    b.settle(10_000);
}
