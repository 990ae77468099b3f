//! Windows, bitmaps and the wrap of PSNs.
use super::super::rx::{Arrival, Seen};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const SEEN: Seen = Seen { ask: false, marked: false, retx: false, ev: 0, at: 0, bytes: 1 };

#[test]
fn the_window_has_two_edges() {
    let (mut end, id) = target(config());
    assert_eq!(delivered(&receive(&mut end, request(8, To::Id(id)))), 1, "CACK + window");
    assert_eq!(nack(&receive(&mut end, request(9, To::Id(id)))), Some(NackCode::OutOfWindow));
    assert_eq!(nack(&receive(&mut end, request(1 << 31, To::Id(id)))), Some(NackCode::OutOfWindow));
    let old = receive(&mut end, request(u32::MAX, To::Id(id)));
    assert!(counted(&old, Counter::DuplicateDropped));
}

#[test]
fn a_source_stays_inside_what_it_is_allowed() {
    let (mut end, id, start) = source(config(), Mode::Rud, 20, false);
    assert_eq!(end.pdcs().next().unwrap().tx.next, 4, "the first window");
    let sack = Sack { mpr: 6, base: start.wrapping_add(1), bitmap: 0, bytes: 1, ooo: 0, service: 0 };
    receive(&mut end, Packet::Ack { cack: start, psn: start, sack: Some(sack), marked: false, retx: false, req: AckRequest::None, spdcid: THEIRS, dpdcid: id, response: Some(ok(1)) });
    (0..20).for_each(|_| drop(end.step(Event::Grant)));
    assert_eq!(end.pdcs().next().unwrap().tx.next, 7, "CACK + MP_RANGE");
    // A stale ACK changes nothing; mpr 0 is no news.
    for (covered, mpr) in [(0, 8), (1, 0)] {
        let stale = Sack { mpr, ..sack };
        receive(
            &mut end,
            Packet::Ack {
                cack: start.wrapping_add(covered).wrapping_sub(1),
                psn: start,
                sack: Some(stale),
                marked: false,
                retx: false,
                req: AckRequest::None,
                spdcid: THEIRS,
                dpdcid: id,
                response: None,
            },
        );
    }
    assert_eq!(end.pdcs().next().unwrap().tx.range, 6);
}

#[test]
fn ordered_packets_come_in_order() {
    let mut end = end(config());
    let ordered = |place: u32, to: To, retx: bool| Packet::Request { mode: Mode::Rod, psn: START.wrapping_add(place), clear: -1, spdcid: THEIRS, to, retx, ar: false, body: body(place as u16 + 1) };
    receive(&mut end, ordered(0, To::Syn(0), false));
    let ahead = receive(&mut end, ordered(2, To::Syn(2), false));
    let expected = START.wrapping_add(1);
    assert!(matches!(sent(&ahead)[..], [Packet::Nack { code: NackCode::RodOutOfOrder, payload, .. }] if payload == expected), "{ahead:?}");
    assert!(sent(&receive(&mut end, ordered(3, To::Syn(3), false))).is_empty(), "once for a gap");
    assert_eq!(nack(&receive(&mut end, ordered(3, To::Syn(3), true))), Some(NackCode::RodOutOfOrder), "again for what is sent again");
    for place in 1..4 {
        assert_eq!(delivered(&receive(&mut end, ordered(place, To::Syn(place as u16), true))), 1);
    }
}

/// Semantics refuse a packet when the next one has been taken: it is the one that is expected, and each of the others once more behind it.
#[test]
fn what_is_refused_in_front_of_others_may_come_again_in_order() {
    let (mut end, id) = target(config());
    let ordered = |place: u32| Packet::Request {
        mode: Mode::Rod,
        psn: START.wrapping_add(place),
        clear: -1,
        spdcid: THEIRS + 1,
        to: To::Syn(place as u16),
        retx: false,
        ar: false,
        body: body(place as u16 + 1),
    };
    (0..4).for_each(|place| assert_eq!(delivered(&receive(&mut end, ordered(place))), 1));
    let own = end.pdcs().find(|pdc| pdc.id != id).unwrap().id;
    let refuse = |end: &mut Pds, place: u32| nack(&end.step(Event::Refuse { pdc: own, psn: START.wrapping_add(place), code: NackCode::NoResource }));
    done(&mut end, own, 0, false);
    assert_eq!([1, 3].map(|place| refuse(&mut end, place)), [Some(NackCode::NoResource); 2]);
    // The second that is missing is not taken before the first.
    let gap = receive(&mut end, ordered(3));
    assert!(matches!(sent(&gap)[..], [Packet::Nack { code: NackCode::RodOutOfOrder, payload, .. }] if payload == START.wrapping_add(1)), "{gap:?}");
    assert_eq!(delivered(&receive(&mut end, ordered(1))), 1);
    done(&mut end, own, 2, false);
    assert_eq!(delivered(&receive(&mut end, ordered(3))), 0);
    done(&mut end, own, 1, false);
    (3..6).for_each(|place| assert_eq!(delivered(&receive(&mut end, ordered(place))), 1, "{place}"));
}

#[test]
fn an_old_pdc_is_closed_before_its_psns_come_round() {
    let (mut end, id, start) = source(Config { limit: 2, ..config() }, Mode::Rud, 1, true);
    receive(&mut end, ack(id, start, 1, 0, Some(ok(1))));
    end.step(Event::Post { peer: PEER, mode: Mode::Rud, message: Message { id: 2, bytes: 1, fetch: false } });
    assert!(counted(&end.step(Event::Grant), Counter::LimitReached));
    assert!(!end.pdcs().next().unwrap().takes());
}

#[test]
fn the_same_place_never_begins_near_where_it_ended() {
    let mut pds = end(Config { safety: 0, life_bits: 3, ..config() });
    let (mut starts, mut ids) = (Vec::new(), BTreeSet::new());
    for n in 0..200u64 {
        pds.step(Event::Post { peer: PEER, mode: Mode::Rud, message: Message { id: 1, bytes: 1, fetch: false } });
        let pdc = pds.pdcs().next().unwrap();
        starts.push(pdc.tx.start);
        ids.insert(pdc.id);
        assert_eq!(pdc.id & 3, 1, "the first place is free again");
        pds.step(Event::Reset);
        pds.step(Event::Tick(n + 1));
    }
    assert_eq!(ids.len(), 8, "an id for each life");
    assert!(starts.windows(2).all(|pair| pair[0] != 0 && pair[1].wrapping_sub(pair[0]).min(pair[0].wrapping_sub(pair[1])) >= 1 << 16));
}

proptest! {
    /// Against a set: what has come, in any order, around the wrap.
    #[test]
    fn the_window_is_a_set(start in any::<u32>(), picks in prop::collection::vec((0..40u32, any::<bool>(), any::<bool>()), 1..120)) {
        let mut rx = Rx::new(start);
        let (mut seen, mut kept, mut cleared) = (BTreeSet::new(), BTreeSet::new(), 0);
        for (place, keep, clear) in picks {
            let base = rx.base;
            let known = seen.contains(&place);
            match rx.look(place, Mode::Rud, 16, false) {
                Arrival::New => {
                    prop_assert!(!known && place >= base && place < base + 16);
                    rx.take(place, SEEN);
                    prop_assert_eq!(rx.look(place, Mode::Rud, 16, false), Arrival::Pending);
                    prop_assert!(rx.done(place, keep.then_some(ok(place as u16)), false).is_some());
                    seen.insert(place);
                    if keep {
                        kept.insert(place);
                    }
                }
                Arrival::Kept(response) => prop_assert_eq!((response, kept.contains(&place)), (ok(place as u16), true)),
                Arrival::Old => prop_assert!(known),
                Arrival::Outside => prop_assert!(place >= base + 16),
                other => prop_assert!(false, "{:?}", other),
            }
            if clear {
                // All answers in front of the first packet that is missing have arrived.
                cleared = (0..).find(|n| !seen.contains(n)).unwrap_or(0).max(cleared);
                rx.clear(cleared);
                kept.retain(|n| *n >= cleared);
            }
            let wanted = (0..).find(|n| !seen.contains(n) || kept.contains(n)).unwrap_or(0);
            prop_assert_eq!(rx.base, wanted);
            prop_assert_eq!(rx.cack(), start.wrapping_add(wanted).wrapping_sub(1));
            let (from, bitmap) = rx.sack();
            for bit in 0..64 {
                let at = rx.place(from) + bit;
                prop_assert_eq!(bitmap >> bit & 1 == 1, seen.contains(&at) && at >= wanted);
            }
        }
    }

    /// No event and no packet stops an endpoint, and pools never have more than they had.
    #[test]
    fn nothing_panics(events in prop::collection::vec((0..12u8, any::<u32>(), any::<u16>(), any::<u8>(), any::<bool>(), any::<bool>()), 1..200), first in prop::option::of(Just(START))) {
        let mut end = end(Config { kept: 4, records: 6, first_psn: first, idle: 50, reap: 400, ..config() });
        let mut tasks = Vec::new();
        for (kind, psn, id, small, a, b) in events {
            // Half of the numbers are near what is right.
            let ids: Vec<u16> = end.pdcs().map(|pdc| pdc.id).collect();
            let pick = if a { ids.get(usize::from(id) % ids.len().max(1)).copied().unwrap_or(id) } else { id };
            let psn = if b { START.wrapping_add(psn % 12) } else { psn };
            let to = if a && small % 2 == 0 { To::Syn(psn.wrapping_sub(START) as u16) } else { To::Id(pick) };
            let mode = if small % 5 == 0 { Mode::Rod } else { Mode::Rud };
            let code = NackCode::from_u8(small % 0x1b).unwrap_or(NackCode::Trimmed);
            let control = ControlType::from_u8(small % 10).unwrap_or(ControlType::Noop);
            let sack = Sack { mpr: small, base: psn, bitmap: u64::from(psn) << 7 | u64::from(id), bytes: psn & 0xff_ffff, ooo: id, service: id };
            let packet = match kind {
                0..=2 => Packet::Request { mode, psn, clear: if b { -1 } else { id as i16 }, spdcid: THEIRS, to, retx: a, ar: b, body: body(id) },
                3 => Packet::Control { kind: control, mode, psn, payload: psn, spdcid: THEIRS, to, retx: a, ar: b },
                4 | 5 => Packet::Ack { cack: psn, psn: psn.wrapping_add(u32::from(small)), sack: a.then_some(sack), marked: a, retx: b, req: AckRequest::Close, spdcid: THEIRS, dpdcid: pick, response: b.then_some(ok(id)) },
                _ => Packet::Nack { code, psn, spdcid: THEIRS, dpdcid: pick, payload: psn, marked: a, retx: b },
            };
            let trim = if small > 240 { Some(crate::wire::Trim::Path) } else { None };
            let actions = match kind {
                0..=6 => end.step(Event::Received { from: PEER, packet, trim, ce: a, ev: id }),
                7 => end.step(Event::Post { peer: PEER, mode, message: Message { id: id | 1, bytes: u32::from(small) * 4, fetch: a } }),
                8 => match tasks.pop() {
                    Some((pdc, psn)) if a => end.step(Event::Done { pdc, psn, response: ok(1), keep: b }),
                    Some((pdc, psn)) => end.step(Event::Refuse { pdc, psn, code: NackCode::NoMessage }),
                    None => Vec::new(),
                },
                9 => end.step(Event::Tick(u64::from(psn % 5000))),
                10 => end.step(Event::Return { pdc: pick, message: Message { id, bytes: 5, fetch: false } }),
                _ => end.step(Event::Grant),
            };
            tasks.extend(actions.iter().filter_map(|action| if let Action::Deliver { pdc, psn, .. } = action { Some((*pdc, *psn)) } else { None }));
            prop_assert!(end.pdcs().filter(|pdc| pdc.initiator).count() <= 2);
        }
        end.step(Event::Reset);
        for (id, timer, _) in end.timers() {
            end.step(Event::Expire { pdc: id, timer });
        }
        prop_assert!(end.at_rest(), "something is left after a reset");
    }
}
