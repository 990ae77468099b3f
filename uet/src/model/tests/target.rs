//! What a target says to what comes.
use super::*;
use crate::wire::Trim;

#[test]
fn a_packet_of_nobodys_pdc_is_refused() {
    let (mut end, id) = target(config());
    assert_eq!(nack(&receive(&mut end, request(1, To::Id(0)))), Some(NackCode::InvalidPdc));
    assert_eq!(nack(&receive(&mut end, request(1, To::Id(id + 1)))), Some(NackCode::InvalidPdc));
    // Of an earlier life.
    assert_eq!(nack(&receive(&mut end, request(1, To::Id(id ^ 1 << 2)))), Some(NackCode::InvalidPdc));
    assert_eq!(nack(&receive(&mut end, control(ControlType::CloseCommand, 1, id ^ 1 << 2))), Some(NackCode::InvalidPdc));
}

#[test]
fn ids_and_mode_have_to_fit() {
    let (mut end, id) = target(config());
    let Packet::Request { psn, clear, to, retx, ar, body, .. } = request(1, To::Id(id)) else { unreachable!() };
    let other = |mode, spdcid| Packet::Request { mode, psn, clear, spdcid, to, retx, ar, body };
    assert_eq!(nack(&receive(&mut end, other(Mode::Rud, THEIRS + 1))), Some(NackCode::HeaderMismatch));
    assert_eq!(nack(&receive(&mut end, other(Mode::Rud, 0))), Some(NackCode::HeaderMismatch));
    assert_eq!(nack(&receive(&mut end, other(Mode::Rod, THEIRS))), Some(NackCode::ModeMismatch));
    let stranger = end.step(Event::Received { from: PEER + 1, packet: request(1, To::Id(id)), trim: None, ce: false, ev: 0 });
    assert_eq!(nack(&stranger), Some(NackCode::HeaderMismatch));
    assert_eq!(delivered(&receive(&mut end, other(Mode::Rud, THEIRS))), 1);
}

#[test]
fn a_syn_has_to_agree_with_the_pdc_that_it_opened() {
    let (mut end, _) = target(config());
    assert_eq!(nack(&receive(&mut end, request(1, To::Syn(0)))), Some(NackCode::InvalidSyn));
    assert_eq!(nack(&receive(&mut end, request(8, To::Syn(8)))), None, "it is inside the window by now");
    assert_eq!(nack(&receive(&mut end, request(9, To::Syn(9)))), Some(NackCode::InvalidSyn));
    assert_eq!(end.pdcs().count(), 1);
    let Packet::Request { psn, spdcid, to, body, .. } = request(1, To::Syn(1)) else { unreachable!() };
    let ordered = Packet::Request { mode: Mode::Rod, psn, clear: 0, spdcid, to, retx: false, ar: false, body };
    assert_eq!(nack(&receive(&mut end, ordered)), Some(NackCode::ModeMismatch));
}

#[test]
fn a_syn_opens_within_the_pool_and_the_window_only() {
    let mut end = end(config());
    assert_eq!(nack(&receive(&mut end, request(8, To::Syn(8)))), Some(NackCode::InvalidSyn));
    let syn_control = Packet::Control { kind: ControlType::Noop, mode: Mode::Rud, psn: START, payload: 0, spdcid: THEIRS, to: To::Syn(0), retx: false, ar: true };
    assert_eq!(nack(&receive(&mut end, syn_control)), Some(NackCode::HeaderMismatch));
    for peer in 0..2 {
        assert_eq!(delivered(&end.step(Event::Received { from: peer, packet: request(0, To::Syn(0)), trim: None, ce: false, ev: 0 })), 1);
    }
    let third = receive(&mut end, request(0, To::Syn(0)));
    assert!(matches!(sent(&third)[..], [Packet::Nack { code: NackCode::NoPdc, spdcid: 0, dpdcid: THEIRS, .. }]));
    assert!(counted(&third, Counter::TargetWantsClose));
}

/// A peer that opens one after another gets each in the place of its own oldest, once it has its share; another finds its place whatever it does.
#[test]
fn a_peer_takes_no_more_than_its_share() {
    let mut end = end(Config { places: 3, share: 3, peer_share: 2, linger_cut: false, ..config() });
    let open = |end: &mut Pds, from: Peer, spdcid: u16| {
        let Packet::Request { mode, psn, clear, to, retx, ar, body, .. } = request(0, To::Syn(0)) else { unreachable!() };
        end.step(Event::Received { from, packet: Packet::Request { mode, psn, clear, spdcid, to, retx, ar, body }, trim: None, ce: false, ev: 0 })
    };
    let theirs = |end: &Pds, from: Peer| end.pdcs().filter(|pdc| pdc.peer == from).map(|pdc| pdc.peer_id).collect::<std::collections::BTreeSet<u16>>();
    for spdcid in 1..=20 {
        let actions = open(&mut end, PEER, spdcid);
        assert_eq!((delivered(&actions), counted(&actions, Counter::Ousted), counted(&actions, Counter::Failed)), (1, spdcid > 2, spdcid > 2));
        assert_eq!(theirs(&end, PEER), (spdcid.saturating_sub(1).max(1)..=spdcid).collect());
    }
    // The one that is gone is nobody's; the same SYN opens one anew, in the place of another.
    assert_eq!(delivered(&open(&mut end, PEER + 1, 7)), 1);
    assert_eq!(nack(&open(&mut end, PEER + 2, 7)), Some(NackCode::NoPdc), "the pool is full");
    assert_eq!(delivered(&open(&mut end, PEER, 5)), 1);
    assert_eq!((theirs(&end, PEER), theirs(&end, PEER + 1)), ([5, 20].into(), [7].into()));
    // Those that linger stay, so that nothing is executed twice: then it has to wait.
    for spdcid in [5, 20] {
        let pdc = end.pdcs().find(|pdc| pdc.peer == PEER && pdc.peer_id == spdcid).unwrap();
        let (id, psn) = (pdc.id, pdc.rx.psn(0));
        done(&mut end, id, 0, false);
        let close = Packet::Control { kind: ControlType::CloseCommand, mode: Mode::Rud, psn: psn.wrapping_add(1), payload: 0, spdcid, to: To::Id(id), retx: false, ar: true };
        assert!(counted(&receive(&mut end, close), Counter::Lingered));
    }
    assert_eq!(nack(&open(&mut end, PEER, 30)), Some(NackCode::NoPdc));
    assert_eq!(theirs(&end, PEER), [5, 20].into());
}

/// Who finds no place has another peer's PDC asked to close only if that one has more; its own, if nobody has more than it.
#[test]
fn who_has_most_is_asked_to_close() {
    // Which peers open PDCs, in this order; the last finds no place.
    for (opened, asked) in [([1, 2, 2, 2, 1], 2), ([2, 1, 2, 1, 2], 2), ([1, 2, 1, 2, 2], 2), ([1, 2, 2, 1, 1], 1), ([3, 1, 1, 2, 4], 1)] {
        let mut end = end(Config { pool_bits: 3, places: 4, share: 4, low: 0, linger_cut: false, ..config() });
        for (n, from) in opened.into_iter().enumerate() {
            let Packet::Request { mode, psn, clear, to, retx, ar, body, .. } = request(0, To::Syn(0)) else { unreachable!() };
            let packet = Packet::Request { mode, psn, clear, spdcid: n as u16 + 1, to, retx, ar, body };
            let actions = end.step(Event::Received { from, packet, trim: None, ce: false, ev: 0 });
            assert_eq!((nack(&actions), counted(&actions, Counter::TargetWantsClose)), if n < 4 { (None, false) } else { (Some(NackCode::NoPdc), true) });
        }
        let wants: Vec<Peer> = end.pdcs().filter(|pdc| pdc.wants_close).map(|pdc| pdc.peer).collect();
        assert_eq!(wants, [asked], "{opened:?}");
    }
}

#[test]
fn duplicates_are_not_executed_and_answered_if_somebody_asks() {
    let (mut end, id) = target(config());
    let plain = receive(&mut end, request(0, To::Id(id)));
    assert_eq!((delivered(&plain), sent(&plain).len(), counted(&plain, Counter::DuplicateDropped)), (0, 0, true));
    let Packet::Request { mode, psn, clear, spdcid, to, body, .. } = request(0, To::Id(id)) else { unreachable!() };
    for (retx, ar) in [(true, false), (false, true)] {
        let actions = receive(&mut end, Packet::Request { mode, psn, clear, spdcid, to, retx, ar, body });
        let [Packet::Ack { response: Some(response), .. }] = sent(&actions)[..] else { panic!("{actions:?}") };
        assert_eq!((response.code, response.message, response.length), (ReturnCode::Null as u8, 0, 0));
    }
    // One that semantics have not finished gets nothing: its own answer comes.
    receive(&mut end, request(1, To::Id(id)));
    let pending = receive(&mut end, Packet::Request { mode, psn: psn.wrapping_add(1), clear, spdcid, to, retx: true, ar: true, body });
    assert_eq!((delivered(&pending), sent(&pending).len()), (0, 0));
}

#[test]
fn cack_stops_in_front_of_a_kept_answer_until_it_is_cleared() {
    let (mut end, id) = target(config());
    receive(&mut end, request(1, To::Id(id)));
    let actions = done(&mut end, id, 1, true);
    let [Packet::Ack { cack, req, response: Some(response), .. }] = sent(&actions)[..] else { panic!("{actions:?}") };
    assert_eq!((cack, req, response.code), (START, AckRequest::Clear, ReturnCode::BadKey as u8));
    // It is sent again as often as it is asked for.
    for packet in [control(ControlType::AckRequest, 1, id), request(1, To::Id(id))] {
        let actions = receive(&mut end, packet);
        assert!(matches!(sent(&actions)[..], [Packet::Ack { response: Some(r), .. }] if r == response));
    }
    // A clear of what has not come frees nothing; one up to it does.
    let clear = |upto: u32| Packet::Control { kind: ControlType::ClearCommand, mode: Mode::Rud, psn: 0, payload: START.wrapping_add(upto), spdcid: THEIRS, to: To::Id(id), retx: false, ar: false };
    receive(&mut end, clear(5));
    assert_eq!(end.pdcs().next().unwrap().rx.base, 1);
    assert!(counted(&receive(&mut end, clear(1)), Counter::KeptCleared));
    assert_eq!(end.pdcs().next().unwrap().rx.base, 2);
    assert_eq!(nack(&receive(&mut end, clear(0))), None);
}

#[test]
fn a_clear_comes_with_a_request() {
    let (mut end, id) = target(config());
    receive(&mut end, request(1, To::Id(id)));
    done(&mut end, id, 1, true);
    // CLEAR_PSN beyond the PSN is nonsense, and ignored.
    let Packet::Request { mode, psn, spdcid, to, retx, ar, body, .. } = request(2, To::Id(id)) else { unreachable!() };
    let ahead = receive(&mut end, Packet::Request { mode, psn, clear: 0x1234, spdcid, to, retx, ar, body });
    assert!(counted(&ahead, Counter::Ignored) && end.pdcs().next().unwrap().rx.base == 1);
    receive(&mut end, Packet::Request { mode, psn: psn.wrapping_add(1), clear: -2, spdcid, to, retx, ar, body });
    assert_eq!(end.pdcs().next().unwrap().rx.base, 2, "clear -2 of the fourth PSN covers the second");
}

#[test]
fn without_room_for_an_answer_nothing_is_executed() {
    let (mut end, id) = target(Config { kept: 1, ..config() });
    receive(&mut end, request(2, To::Id(id)));
    assert_eq!(nack(&receive(&mut end, request(3, To::Id(id)))), Some(NackCode::NoGuaranteed));
    // The oldest has a place of its own, or those behind it could never be cleared.
    assert_eq!(delivered(&receive(&mut end, request(1, To::Id(id)))), 1);
    done(&mut end, id, 2, false);
    assert_eq!(nack(&receive(&mut end, request(3, To::Id(id)))), Some(NackCode::NoGuaranteed));
    done(&mut end, id, 1, false);
    assert_eq!(delivered(&receive(&mut end, request(3, To::Id(id)))), 1);
}

#[test]
fn what_semantics_refuse_comes_again() {
    let (mut end, id) = target(config());
    for code in [NackCode::NoPacketBuffer, NackCode::NoMessage, NackCode::NoResource] {
        assert_eq!(delivered(&receive(&mut end, request(1, To::Id(id)))), 1);
        assert_eq!(nack(&end.step(Event::Refuse { pdc: id, psn: START.wrapping_add(1), code })), Some(code));
    }
    assert_eq!(delivered(&receive(&mut end, request(1, To::Id(id)))), 1);
    // What is not with semantics cannot be refused, nor be done.
    assert!(counted(&end.step(Event::Refuse { pdc: id, psn: START, code: NackCode::NoMessage }), Counter::Ignored));
    assert!(counted(&done(&mut end, id, 5, false), Counter::Ignored));
}

#[test]
fn ack_request_is_answered_by_what_is_known() {
    let (mut end, id) = target(config());
    assert_eq!(nack(&receive(&mut end, control(ControlType::AckRequest, 1, id))), Some(NackCode::NotReceived));
    receive(&mut end, request(1, To::Id(id)));
    assert_eq!(nack(&receive(&mut end, control(ControlType::AckRequest, 1, id))), Some(NackCode::InProgress));
    done(&mut end, id, 1, false);
    let actions = receive(&mut end, control(ControlType::AckRequest, 1, id));
    assert!(counted(&actions, Counter::AckRequestAnswered) && matches!(sent(&actions)[..], [Packet::Ack { .. }]));
}

#[test]
fn trimmed_packets_are_asked_for_again_and_open_nothing() {
    let (mut end, id) = target(config());
    let mut trimmed = |packet, trim, ce| end.step(Event::Received { from: PEER, packet, trim: Some(trim), ce, ev: 5 });
    let actions = trimmed(request(1, To::Id(id)), Trim::Path, true);
    assert!(matches!(actions[..], [_, Action::Transmit { packet: Packet::Nack { code: NackCode::Trimmed, marked: true, .. }, ev: 5, control: true, .. }]), "{actions:?}");
    assert_eq!(nack(&trimmed(request(1, To::Syn(1)), Trim::LastHop, false)), Some(NackCode::TrimmedLastHop));
    assert!(matches!(sent(&trimmed(request(0, To::Id(id)), Trim::Path, false))[..], [Packet::Ack { .. }]), "it is there already");
    // Nothing of a trimmed frame is checked, so it ends no PDC.
    for packet in [request(1, To::Id(0)), request(9, To::Syn(0)), request(20, To::Id(id)), control(ControlType::CloseCommand, 1, id)] {
        let actions = trimmed(packet, Trim::Path, false);
        assert!(sent(&actions).is_empty() && counted(&actions, Counter::TrimmedDropped), "{actions:?}");
    }
    let other = end.step(Event::Received { from: PEER + 1, packet: request(0, To::Syn(0)), trim: Some(Trim::Path), ce: false, ev: 0 });
    assert_eq!((sent(&other).len(), end.pdcs().count()), (0, 1));
}

#[test]
fn a_closed_target_lingers() {
    let (mut end, id) = target(config());
    let close = receive(&mut end, control(ControlType::CloseCommand, 1, id));
    let wanted = START.wrapping_add(1);
    assert!(matches!(sent(&close)[..], [Packet::Ack { cack, response: None, .. }] if cack == wanted));
    let again = receive(&mut end, control(ControlType::CloseCommand, 1, id));
    assert!(counted(&again, Counter::CloseAgain) && matches!(sent(&again)[..], [Packet::Ack { .. }]));
    assert_eq!(nack(&receive(&mut end, request(2, To::Id(id)))), Some(NackCode::Closing));
    let late = receive(&mut end, request(0, To::Syn(0)));
    assert!(counted(&late, Counter::SynAfterClose) && delivered(&late) == 0 && sent(&late).is_empty());
    end.step(Event::Expire { pdc: id, timer: Timer::Safety });
    assert!(end.at_rest());
    assert_eq!(nack(&receive(&mut end, control(ControlType::CloseCommand, 1, id))), Some(NackCode::InvalidPdc));
}

#[test]
fn a_close_with_something_open_is_refused() {
    let (mut end, id) = target(config());
    // A hole in front of it; and a target does not take the request of a target.
    assert_eq!(nack(&receive(&mut end, control(ControlType::CloseCommand, 2, id))), Some(NackCode::Unexpected));
    assert_eq!(nack(&receive(&mut end, control(ControlType::CloseRequest, 1, id))), Some(NackCode::Unexpected));
    end.step(Event::Return { pdc: id, message: Message { id: 40, bytes: 10, fetch: false } });
    let actions = receive(&mut end, control(ControlType::CloseCommand, 1, id));
    assert_eq!(nack(&actions), Some(NackCode::ClosingInError));
    assert!(actions.contains(&Action::Failed { message: 40, why: Failure::Refused(NackCode::ClosingInError as u8) }));
    assert!(actions.contains(&Action::Gone { pdc: id, from: PEER }) && end.at_rest());
}

#[test]
fn control_packets_that_are_not_there_are_refused_or_counted() {
    let (mut end, id) = target(config());
    for kind in [ControlType::Probe, ControlType::Negotiation] {
        assert_eq!(nack(&receive(&mut end, control(kind, 1, id))), Some(NackCode::Unexpected));
    }
    for kind in [ControlType::Credit, ControlType::CreditRequest] {
        assert!(counted(&receive(&mut end, control(kind, 1, id)), Counter::Ignored));
    }
    assert!(matches!(sent(&receive(&mut end, control(ControlType::Noop, 1, id)))[..], [Packet::Ack { .. }]));
    assert_eq!(end.pdcs().next().unwrap().rx.base, 2);
}

#[test]
fn a_silent_peer_is_given_up() {
    let (mut end, id) = target(config());
    receive(&mut end, request(1, To::Id(id)));
    let actions = end.step(Event::Tick(config().reap + 1));
    assert!(counted(&actions, Counter::Reaped) && actions.contains(&Action::Gone { pdc: id, from: PEER }));
    assert!(end.at_rest());
}

#[test]
fn a_flood_of_bad_packets_is_no_flood_of_refusals() {
    let (mut end, id) = target(Config { nack_gap: 32, ..config() });
    let refused = (0..100).filter(|_| nack(&receive(&mut end, request(20, To::Id(id)))).is_some()).count();
    assert_eq!(refused, 1);
    end.step(Event::Tick(40));
    assert_eq!(nack(&receive(&mut end, request(20, To::Id(id)))), Some(NackCode::OutOfWindow));
}
