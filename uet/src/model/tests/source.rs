//! What a source makes of ACKs, NACKs and silence.
use super::*;

fn failed(actions: &[Action]) -> Option<Failure> {
    actions.iter().find_map(|action| if let Action::Failed { message: 1, why } = action { Some(*why) } else { None })
}

fn answered(actions: &[Action]) -> usize {
    actions.iter().filter(|action| matches!(action, Action::Answered { .. })).count()
}

#[test]
fn the_first_answer_ends_the_syn() {
    let (mut end, id, start) = source(config(), Mode::Rud, 3, false);
    assert_eq!(end.pdcs().next().unwrap().stage, Stage::Syn);
    receive(&mut end, refusal(id, start.wrapping_add(1), NackCode::Trimmed, 0));
    let packets = sent(&end.step(Event::Grant));
    assert!(matches!(packets[..], [Packet::Request { to: To::Id(THEIRS), retx: true, ar: true, psn, .. }] if psn == start.wrapping_add(1)));
}

#[test]
fn refusals_that_say_lost_are_sent_again_at_once() {
    for code in [NackCode::Trimmed, NackCode::TrimmedLastHop, NackCode::NotReceived, NackCode::AckWithData, NackCode::InferredLoss] {
        let (mut end, id, start) = source(config(), Mode::Rud, 3, true);
        receive(&mut end, refusal(id, start.wrapping_add(1), code, 0));
        assert_eq!(again(&mut end), [start.wrapping_add(1)], "{code:?}");
    }
}

#[test]
fn refusals_for_want_of_something_wait() {
    for code in [NackCode::NoPdc, NackCode::NoCcc, NackCode::NoBitmap, NackCode::NoPacketBuffer, NackCode::NoGuaranteed, NackCode::NoMessage, NackCode::NoResource, NackCode::OutOfWindow] {
        let (mut end, id, start) = source(Config { nack_max: 2, rto: 1 << 40, ..config() }, Mode::Rud, 2, true);
        for n in 1..=2 {
            receive(&mut end, refusal(id, start, code, 0));
            assert_eq!(again(&mut end), [], "{code:?}");
            end.step(Event::Tick(n * 2000));
            assert_eq!(again(&mut end), [start], "{code:?}");
        }
        receive(&mut end, refusal(id, start, code, 0));
        assert_eq!(failed(&end.step(Event::Tick(10_000))), Some(Failure::NoRoom));
    }
}

#[test]
fn fatal_refusals_fail_the_messages() {
    use NackCode::*;
    for code in [InvalidPdc, HeaderMismatch, Closing, ClosingInError, ResponseLost, InvalidSyn, ModeMismatch, NewStart, Unexpected] {
        let (mut end, id, start) = source(config(), Mode::Rud, 3, true);
        let actions = receive(&mut end, refusal(id, start, code, 0));
        assert_eq!(failed(&actions), Some(Failure::Refused(code as u8)));
        end.step(Event::Expire { pdc: id, timer: Timer::Safety });
        assert!(end.at_rest());
    }
}

#[test]
fn refusals_of_what_is_not_out_mean_nothing() {
    let (mut end, id, start) = source(config(), Mode::Rud, 3, true);
    for psn in [start.wrapping_sub(1), start.wrapping_add(3), 0] {
        assert!(counted(&receive(&mut end, refusal(id, psn, NackCode::InvalidPdc, 0)), Counter::NackStale));
    }
    let foreign = Packet::Nack { code: NackCode::InvalidPdc, psn: start, spdcid: THEIRS + 1, dpdcid: id, payload: 0, marked: false, retx: false };
    assert!(counted(&receive(&mut end, foreign), Counter::Stray));
    receive(&mut end, refusal(id, start, NackCode::InProgress, 0));
    assert_eq!((again(&mut end), end.pdcs().count()), (vec![], 1));
}

#[test]
fn rod_goes_back_once_for_a_loss() {
    let (mut end, id, start) = source(config(), Mode::Rod, 4, true);
    let gap = |end: &mut Pds, psn: u32| receive(end, refusal(id, start.wrapping_add(psn), NackCode::RodOutOfOrder, start.wrapping_add(1)));
    gap(&mut end, 2);
    let psns = |list: &[u32]| list.iter().map(|n| start.wrapping_add(*n)).collect::<Vec<_>>();
    assert_eq!(again(&mut end), psns(&[1, 2, 3]));
    gap(&mut end, 3);
    assert_eq!(again(&mut end), []);
    receive(&mut end, ack(id, start, 1, 0, Some(ok(1))));
    gap(&mut end, 3);
    assert_eq!(again(&mut end), psns(&[1, 2, 3]));
}

#[test]
fn silence_is_waited_for_longer_and_longer() {
    let (mut end, _, start) = source(Config { rto: 100, rto_max: 3, ..config() }, Mode::Rud, 1, true);
    let mut at = Vec::new();
    for now in 1..5000 {
        if let Some(why) = failed(&end.step(Event::Tick(now))) {
            assert_eq!(why, Failure::Timeout);
            at.push(now);
            break;
        }
        if again(&mut end) == [start] {
            at.push(now);
        }
    }
    assert_eq!(at, [100, 300, 700, 1500]);
}

#[test]
fn what_is_there_and_not_answered_is_asked_for() {
    let (mut end, id, start) = source(Config { rto: 100, ..config() }, Mode::Rud, 1, true);
    // An ACK without a response completes nothing.
    assert_eq!(answered(&receive(&mut end, ack(id, start, 0, 0, None))), 0);
    let actions = end.step(Event::Tick(200));
    assert!(matches!(sent(&actions)[..], [Packet::Control { kind: ControlType::AckRequest, psn, .. }] if psn == start), "{actions:?}");
    assert_eq!(again(&mut end), []);
    assert_eq!(answered(&receive(&mut end, ack(id, start, 1, 0, None))), 1, "CACK does");
}

#[test]
fn acknowledges_of_what_was_not_sent_are_dropped() {
    let (mut end, id, start) = source(config(), Mode::Rud, 2, true);
    assert!(counted(&receive(&mut end, ack(id, start, 3, 2, Some(ok(1)))), Counter::BadAck));
    assert_eq!(answered(&receive(&mut end, ack(id, start, 1, 0, Some(ok(1))))), 1);
    // CACK that goes back takes nothing back.
    assert_eq!(answered(&receive(&mut end, ack(id, start, 0, 0, Some(ok(1))))), 0);
    assert_eq!(end.pdcs().next().unwrap().tx.cack, 1);
    assert!(counted(&receive(&mut end, ack(id + 1, start, 1, 0, None)), Counter::Stray));
}

#[test]
fn a_close_is_over_when_it_is_acknowledged_or_forgotten() {
    for forgotten in [false, true] {
        let (mut end, id, start) = source(config(), Mode::Rud, 1, true);
        receive(&mut end, ack(id, start, 1, 0, Some(ok(1))));
        end.step(Event::Close { pdc: id });
        let packets = sent(&end.step(Event::Grant));
        assert!(matches!(packets[..], [Packet::Control { kind: ControlType::CloseCommand, psn, ar: true, .. }] if psn == start.wrapping_add(1)));
        let actions = if forgotten {
            receive(&mut end, Packet::Nack { code: NackCode::InvalidPdc, psn: start.wrapping_add(1), spdcid: 0, dpdcid: id, payload: 0, marked: false, retx: false })
        } else {
            receive(&mut end, ack(id, start, 2, 1, None))
        };
        assert!(counted(&actions, if forgotten { Counter::ClosedBy0e } else { Counter::Closed }) && failed(&actions).is_none());
        assert_eq!(end.pdcs().count(), 0);
    }
}

#[test]
fn a_target_that_wants_to_be_closed_is_closed_behind_what_there_is() {
    let (mut end, id, start) = source(Config { first_window: 2, ..config() }, Mode::Rud, 2, true);
    let wish = Packet::Control { kind: ControlType::CloseRequest, mode: Mode::Rud, psn: start, payload: 0, spdcid: THEIRS, to: To::Id(id), retx: false, ar: true };
    let actions = receive(&mut end, wish);
    assert!(counted(&actions, Counter::CloseRequestTaken) && matches!(sent(&actions)[..], [Packet::Ack { cack, .. }] if cack == start));
    assert!(sent(&end.step(Event::Grant)).is_empty(), "not before all is answered");
    receive(&mut end, ack(id, start, 2, 1, Some(ok(1))));
    assert!(matches!(sent(&end.step(Event::Grant))[..], [Packet::Control { kind: ControlType::CloseCommand, .. }]));
    receive(&mut end, ack(id, start, 3, 2, None));
    assert_eq!(end.pdcs().count(), 0);
}

/// Messages take another PDC beside one that takes no more: at once, or if they have an order when all in front of them are answered. The end of the old one leaves the new one where it is.
#[test]
fn beside_a_pdc_that_closes_another_is_opened() {
    for mode in [Mode::Rud, Mode::Rod] {
        let (mut end, id, start) = source(Config { first_window: 2, ..config() }, mode, 2, true);
        end.step(Event::Close { pdc: id });
        let post = |end: &mut Pds, id| end.step(Event::Post { peer: PEER, mode, message: Message { id, bytes: 1, fetch: false } });
        post(&mut end, 2);
        let beside = |end: &Pds| end.pdcs().filter(|pdc| pdc.id != id).map(|pdc| pdc.id).collect::<Vec<u16>>();
        assert_eq!(beside(&end).len(), usize::from(mode == Mode::Rud), "{mode:?}");
        receive(&mut end, ack(id, start, 2, 1, Some(ok(1))));
        let packets: Vec<Packet> = (0..3).flat_map(|_| sent(&end.step(Event::Grant))).collect();
        assert!(packets.iter().any(|packet| matches!(packet, Packet::Control { kind: ControlType::CloseCommand, .. })), "{packets:?}");
        let new = beside(&end);
        assert!(packets.iter().any(|packet| matches!(packet, Packet::Request { to: To::Syn(0), spdcid, .. } if *spdcid == new[0])), "{packets:?}");
        receive(&mut end, ack(id, start, 3, 2, None));
        post(&mut end, 3);
        assert_eq!(end.pdcs().map(|pdc| pdc.id).collect::<Vec<_>>(), new);
    }
}

/// A peer that ends one PDC after another has so many places of ours and no more, until they have rested; messages to others find theirs.
#[test]
fn places_that_rest_are_a_share() {
    let mut end = end(Config { pool_bits: 3, places: 7, share: 5, peer_initiators: 3, ..config() });
    let post = |end: &mut Pds, peer, mode, id| end.step(Event::Post { peer, mode, message: Message { id, bytes: 1, fetch: false } });
    for n in 1..=5 {
        post(&mut end, PEER, Mode::Rud, n);
        let Some(Packet::Request { psn, spdcid, .. }) = sent(&end.step(Event::Grant)).first().copied() else {
            assert_eq!(n, 4);
            break;
        };
        assert!(counted(&receive(&mut end, refusal(spdcid, psn, NackCode::InvalidPdc, 0)), Counter::Failed));
    }
    assert_eq!((end.pdcs().count(), end.pool.waiting.len()), (0, 1));
    let actions = [post(&mut end, PEER + 1, Mode::Rud, 10), post(&mut end, PEER, Mode::Rod, 11), post(&mut end, PEER + 1, Mode::Rod, 12)].concat();
    assert_eq!((actions.iter().filter(|action| **action == Action::Count(Counter::Opened)).count(), end.pool.waiting.len()), (2, 2));
    let rests = end.timers().iter().find(|(_, timer, _)| *timer == Timer::Safety).map(|(id, ..)| *id).unwrap();
    assert!(counted(&end.step(Event::Expire { pdc: rests, timer: Timer::Safety }), Counter::Opened));
    assert_eq!(end.pool.waiting.len(), 1);
}

#[test]
fn reset_ends_everything() {
    let (mut end, _, _) = source(config(), Mode::Rud, 3, true);
    let actions = end.step(Event::Reset);
    assert_eq!(failed(&actions), Some(Failure::Reset));
    assert_eq!(end.pdcs().count(), 0);
}

#[test]
fn an_idle_pdc_closes_by_itself() {
    let (mut end, id, start) = source(config(), Mode::Rud, 1, true);
    receive(&mut end, ack(id, start, 1, 0, Some(ok(1))));
    assert!(sent(&end.step(Event::Grant)).is_empty());
    end.step(Event::Tick(config().idle + 1));
    assert!(matches!(sent(&end.step(Event::Grant))[..], [Packet::Control { kind: ControlType::CloseCommand, .. }]));
}
