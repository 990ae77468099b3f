//! Each rule by itself, on a function that has nothing else.
use super::super::stations::LG_STATIONS;
use super::*;
use ferric_abi::virtio::net::control;

/// One function, which all rules are tried on.
fn alone(pairs: u16) -> (Bench, Golden) {
    let b = Bench::new(64, 5, 10);
    let filter = Filter::default();
    let golden = Golden { filter, modes: [false; 6], features: feature::CTRL_RX | feature::CTRL_VLAN, own: mac(false, 0), pairs, first: 0, multiqueue: true, rss: None, flows: Flows::default() };
    (b, golden)
}

/// A frame to an address, with a tag or without.
fn plain(to: [u8; 6], vlan: Option<u16>) -> Vec<u8> {
    let tag = vlan.map_or(vec![], |vlan| [[0x81, 0], vlan.to_be_bytes()].concat());
    [&to[..], &[2; 6], &tag, &[0x88, 0xb5], &[7; 46]].concat()
}

#[test]
fn modes_and_tables() {
    let (mut b, golden) = alone(1);
    b.functions[0] = golden;
    // One group is in the list.
    let list = [&[0; 4][..], &[1, 0, 0, 0], &mac(true, 0)].concat();
    b.functions[0].filter.set_addresses(&list).expect("a table");
    let to = [mac(false, 0), mac(false, 1), mac(true, 0), mac(true, 1), [0xff; 6]];
    for mode in (control::RX_PROMISC..=control::RX_NOBCAST).map(Some).chain([None]) {
        b.functions[0].modes = std::array::from_fn(|n| mode == Some(n as u8));
        b.load(0);
        to.into_iter().for_each(|to| b.offer(0, plain(to, None)));
        b.settle();
    }
    // Lists of every length: the last address is found, those behind it are not, and too many are all. The lists before have been longer.
    for (own, groups) in [(16, 32), (17, 33), (0, 0), (1, 31), (15, 1)] {
        let list = |group: bool, n: u64| [&(n as u32).to_le_bytes()[..], &(0..n).flat_map(|i| mac(group, i + 1)).collect::<Vec<_>>()].concat();
        b.functions[0].filter.set_addresses(&[list(false, own), list(true, groups)].concat()).expect("a table");
        b.load(0);
        for n in [0, 1, own, own + 1] {
            b.offer(0, plain(mac(false, n), None));
        }
        for n in [1, groups, groups + 1] {
            b.offer(0, plain(mac(true, n), None));
        }
        b.settle();
    }
    // Every VLAN that differs in one bit.
    for n in 0..12 {
        let vlan = 0x5a5 ^ 1 << n;
        b.functions[0].filter.set_vlan(vlan, true).expect("a VLAN");
        b.load(0);
        for other in (0..12).map(|m| vlan ^ 1 << m).chain([vlan, vlan | 0xe000]) {
            b.offer(0, plain(mac(false, 0), Some(other)));
        }
        b.settle();
        b.functions[0].filter.set_vlan(vlan, false).expect("a VLAN");
    }
}

#[test]
fn flows_are_forgotten_when_they_are_to_be() {
    let (mut b, mut golden) = alone(4);
    golden.modes[usize::from(control::RX_PROMISC)] = true;
    b.functions[0] = golden;
    b.load(0);
    b.write((line(tables::OWNERS, 7), 0, 0));
    b.owners[7] = 0;
    let sent: Vec<_> = std::iter::repeat_with(|| frame(b.tb.rng())).filter(|frame| ferric_model::virtio::steer::place(frame).is_some()).take(20).collect();
    sent.iter().for_each(|frame| b.note(7, frame));
    b.settle();
    sent.iter().for_each(|frame| b.offer(0, answer(frame)));
    assert!(b.expected.iter().any(|fate| fate.as_ref().is_ok_and(|(queue, _)| *queue == 6)));
    b.settle();
    b.functions[0].flows = Flows::default();
    b.load(0);
    sent.iter().for_each(|frame| b.offer(0, answer(frame)));
    assert!(b.expected.iter().all(|fate| fate.as_ref().is_ok_and(|(queue, _)| *queue == 0)));
    b.settle();
}

#[test]
fn what_is_no_write_of_a_table_is_refused() {
    let (mut b, mut golden) = alone(1);
    golden.modes[usize::from(control::RX_PROMISC)] = true;
    b.functions[0] = golden;
    b.load(0);
    b.write((line(tables::OWNERS, 1), 0, 0));
    b.owners[1] = 0;
    // The first line that each table has not, and one with its uppermost bit: neither means another function's.
    let (functions, queues) = (FUNCTIONS as u32, QUEUES as u32);
    let sizes = [functions, functions << LG_STATIONS, 2 * functions, 2 * functions, functions, queues, functions];
    let stray = (0..).zip(sizes).flat_map(|(table, size)| [size, 0x8000].map(|index| (line(table, index), Some(0))));
    let others = [(line(tables::COUNT, 0), Some(1)), (line(tables::FUNCTIONS, 0), None), (0xff_0000, Some(0))];
    for (at, write) in stray.chain(others) {
        // Of lines of two words the second counts.
        for word in 0..2 {
            refused(&mut b, at, word, write);
        }
    }
    // All is as it was: the function takes what it has taken.
    let sent = frame(b.tb.rng());
    b.note(1, &sent);
    b.offer(0, plain(mac(false, 0), None));
    b.offer(0, answer(&sent));
    b.settle();
}

/// An access is answered with an error.
fn refused(b: &mut Bench, at: u32, word: u32, write: Option<u32>) {
    b.control.ask(at, word, write);
    let mut answer = None;
    let control = &b.control;
    b.tb.run_until(5000, |_| {
        answer = control.answer();
        answer.is_some()
    });
    assert_eq!(answer, Some(None), "line {at:#x}, word {word}");
}
