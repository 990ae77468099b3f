//! Choice of paths, and losses found by their order.
use super::super::spray::Told;
use super::*;
use std::collections::BTreeMap;

#[test]
fn paths_are_used_alike_and_bad_ones_less() {
    for policy in [Policy::Oblivious, Policy::Penalties] {
        let mut seed = 3;
        let mut spray = Spray::new(policy, 8, &mut seed);
        let (bad, _) = spray.choose();
        (0..4).for_each(|_| spray.told(bad, Told::Timeout));
        let mut count = BTreeMap::new();
        (0..160).for_each(|_| *count.entry(spray.choose().0).or_insert(0) += 1);
        assert_eq!(count.len(), 8);
        let share = count[&bad];
        assert!(if policy == Policy::Oblivious { share == 20 } else { share < 10 }, "{policy:?}: {count:?}");
    }
    let mut seed = 3;
    let mut fixed = Spray::new(Policy::Fixed, 8, &mut seed);
    let first = fixed.choose();
    assert!((0..20).all(|_| fixed.choose() == first));
}

#[test]
fn penalties_are_as_heavy_as_what_happened() {
    for (told, skipped) in [(Told::Ok, 0), (Told::Ecn, 1), (Told::Nack, 4), (Told::Timeout, 15)] {
        let mut seed = 9;
        let mut spray = Spray::new(Policy::Penalties, 2, &mut seed);
        spray.told(0, told);
        let before = (0..100).take_while(|_| spray.choose().0 != 0).count();
        assert_eq!(before, skipped, "{told:?}");
    }
}

/// Two paths in turn: a packet that a later one on the same path has overtaken is lost; one on the other path may only be late.
#[test]
fn a_packet_that_was_overtaken_on_its_own_path_is_lost() {
    let spraying = Config { spray: Policy::Oblivious, entropies: 2, first_window: 8, ..config() };
    let (mut end, id, start) = source(spraying, Mode::Rud, 6, true);
    let heard = |bytes: u32, bitmap: u64| {
        let sack = Sack { mpr: 8, base: start, bitmap, bytes, ooo: 0, service: 0 };
        Packet::Ack {
            cack: start.wrapping_sub(1),
            psn: start.wrapping_add(63 - bitmap.leading_zeros()),
            sack: Some(sack),
            marked: false,
            retx: false,
            req: AckRequest::None,
            spdcid: THEIRS,
            dpdcid: id,
            response: None,
        }
    };
    // Packets 0, 2, 4 went by one path, 1, 3, 5 by the other. The second and fourth have come: 0 and 2 may be late.
    receive(&mut end, heard(2, 0b1010));
    assert_eq!(again(&mut end), []);
    // An ACK that was overtaken by the one before says nothing by its zeros.
    receive(&mut end, heard(1, 0b10000));
    assert_eq!(again(&mut end), []);
    let actions = receive(&mut end, heard(3, 0b11010));
    assert!(counted(&actions, Counter::PathLoss));
    assert_eq!(again(&mut end), [start, start.wrapping_add(2)]);
}

#[test]
fn the_last_hole_is_found_by_the_stall() {
    let spraying = Config { spray: Policy::Oblivious, entropies: 2, tail_loss: 50, rto: 10_000, ..config() };
    let (mut end, id, start) = source(spraying, Mode::Rud, 2, true);
    let sack = Sack { mpr: 8, base: start, bitmap: 0b10, bytes: 1, ooo: 0, service: 0 };
    end.step(Event::Tick(8));
    // The second has come, by another path, and nothing follows that could overtake the first.
    receive(
        &mut end,
        Packet::Ack { cack: start.wrapping_sub(1), psn: start.wrapping_add(1), sack: Some(sack), marked: false, retx: true, req: AckRequest::None, spdcid: THEIRS, dpdcid: id, response: Some(ok(1)) },
    );
    assert_eq!(again(&mut end), []);
    assert!(!counted(&end.step(Event::Tick(57)), Counter::Stall));
    assert!(counted(&end.step(Event::Tick(58)), Counter::Stall));
    assert_eq!(again(&mut end), [start]);
    // That one is lost, too: the next look is as far away.
    assert!(!counted(&end.step(Event::Tick(107)), Counter::Stall));
    assert!(counted(&end.step(Event::Tick(158)), Counter::Stall));
}
