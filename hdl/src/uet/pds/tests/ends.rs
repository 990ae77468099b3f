//! Peers that say nothing, refuse, or send what belongs to nobody: how messages and PDCs end.
use super::card::{Card, TICK};
use super::world::{config, registers, OWN};
use crate::uet::pds::types::why;
use ferric_abi::uet::codes::{NackCode, PdsType, ReturnCode};
use ferric_abi::uet::PdsNack;
use ferric_uet::end::{End, Outlook};
use ferric_uet::model::{Config, Mode};
use ferric_uet::wire::{build, parse, Addresses, Carriage, Message, Pds, Ses};

const MAC: u64 = 0x0200_0000_0002;

fn card(config: &Config) -> Card {
    let mut card = Card::new::<64, 8, 4>(1, config, 0, 1 << 16);
    OWN.iter().for_each(|pair| card.pair(pair[0], pair[1], MAC));
    card
}

/// A refusal of a request.
fn nack(frame: &[u8], code: NackCode, spdcid: u16) -> Vec<u8> {
    let parsed = parse(frame, &registers()).unwrap();
    let Pds::Request(head, _) = parsed.pds else { panic!("{parsed:?}") };
    let Addresses::V4(src, dst) = parsed.carriage.addresses else { panic!("{parsed:?}") };
    let nack = PdsNack::default().with_kind(PdsType::Nack as u8).with_code(code as u8).with_psn(head.psn()).with_spdcid(spdcid).with_dpdcid(head.spdcid());
    let carriage = Carriage { addresses: Addresses::V4(dst, src), ..parsed.carriage };
    build(&Message { carriage, pds: Pds::Nack(nack), ses: Ses::None, payload: &[] }, &registers())
}

/// Until so many messages have ended, each request answered by `answer`. Gives the ticks that it took.
fn until_ended(card: &mut Card, count: usize, answer: impl Fn(&[u8]) -> Option<Vec<u8>>) -> u64 {
    for now in 1..20_000 {
        for frame in card.tick(now) {
            if let Some(frame) = answer(&frame) {
                card.receive(&frame);
            }
        }
        if card.ended.len() == count {
            return now;
        }
    }
    panic!("{:?}", card.ended);
}

/// Its places are free again behind the safety time, and not before.
fn rests(card: &mut Card, config: &Config, now: u64) {
    assert!(!card.free());
    (0..config.safety - 100).for_each(|n| drop(card.tick(now + n)));
    assert!(!card.free(), "a place is free too early");
    (0..300).for_each(|n| drop(card.tick(now + config.safety - 100 + n)));
    assert!(card.free(), "a place is lost");
}

/// All messages of a peer that says nothing fail, once, after all time-outs, each twice as long.
#[test]
fn a_silent_peer_is_given_up() {
    let config = Config { rto: 100, rto_max: 3, ..config() };
    let mut card = card(&config);
    card.write(OWN[0][0], OWN[0][1], Mode::Rud, 0, &[1; 600]);
    card.write(OWN[0][0], OWN[0][1], Mode::Rud, 1000, &[2; 60]);
    card.write(OWN[1][0], OWN[1][1], Mode::Rod, 2000, &[3; 10]);
    let now = until_ended(&mut card, 3, |_| None);
    card.ended.sort_unstable();
    assert_eq!(card.ended, [1, 1001, 2001].map(|token| (token, why::TIMEOUT, 0)));
    assert!((1500..1700).contains(&now), "{now} ticks for four time-outs of 100 to 800");
    rests(&mut card, &config, now);
}

/// A refusal that ends the PDC ends its messages with its code; those of another PDC go on.
#[test]
fn a_fatal_refusal_ends_a_pdc_and_no_other() {
    let config = Config { rto: 100, rto_max: 3, ..config() };
    let mut card = card(&config);
    card.write(OWN[0][0], OWN[0][1], Mode::Rud, 0, &[1; 600]);
    card.write(OWN[1][0], OWN[1][1], Mode::Rud, 2000, &[3; 10]);
    let refuse = |frame: &[u8]| parse(frame, &registers()).is_ok_and(|parsed| parsed.carriage.addresses.source() == OWN[0][0].into()).then(|| nack(frame, NackCode::HeaderMismatch, 0x77));
    let now = until_ended(&mut card, 2, refuse);
    assert_eq!(card.ended, [(1, why::REFUSED, NackCode::HeaderMismatch as u64), (2001, why::TIMEOUT, 0)]);
    rests(&mut card, &config, now);
}

/// A peer without room is asked again after a wait, and given up after so many.
#[test]
fn a_peer_without_room_is_asked_again_so_often() {
    let config = Config { rto: 2000, nack_wait: 200, nack_max: 3, ..config() };
    let mut card = card(&config);
    card.write(OWN[0][0], OWN[0][1], Mode::Rud, 0, &[1; 60]);
    let count = std::cell::Cell::new(0);
    let now = until_ended(&mut card, 1, |frame| {
        count.set(count.get() + 1);
        Some(nack(frame, NackCode::NoPdc, 0))
    });
    assert_eq!(card.ended, [(1, why::NO_ROOM, 0)]);
    assert_eq!(count.get(), 4, "frames");
    assert!((780..950).contains(&now), "{now} ticks for four waits of 200");
    rests(&mut card, &config, now);
}

/// A target whose peer falls silent is free behind the reap time; what comes for it then is nobody's.
#[test]
fn a_target_that_hears_nothing_is_free_again() {
    let config = Config { reap: 700, ..config() };
    let mut one = card(&config);
    one.write(OWN[0][0], OWN[0][1], Mode::Rud, 0, &[1; 600]);
    let frames: Vec<Vec<u8>> = (1..100).flat_map(|now| one.tick(now)).collect();
    assert_eq!(frames.len(), 3);
    let mut target = Card::new::<64, 8, 4>(2, &config, 0, 1 << 16);
    OWN.iter().for_each(|pair| target.pair(pair[1], pair[0], MAC));
    target.receive(&frames[0]);
    let answers: Vec<Vec<u8>> = (1..400).flat_map(|now| target.tick(now)).collect();
    target.receive(&frames[1]);
    let more: Vec<Vec<u8>> = (400..1000).flat_map(|now| target.tick(now)).collect();
    assert!(!target.free(), "it was heard 600 ticks ago");
    let ack = parse(&answers[0], &registers()).unwrap();
    let (Pds::Ack(head, Some(_)), Ses::Response(ses)) = (ack.pds, ack.ses) else { panic!("{ack:?}") };
    assert_eq!((ses.code(), ses.modified_length()), (ReturnCode::Ok as u8, 600));
    assert!(!more.is_empty());
    (1000..1200).for_each(|now| drop(target.tick(now)));
    assert!(target.free());
    // One that does not say SYN, to the id that was.
    let parsed = parse(&frames[2], &registers()).unwrap();
    let Pds::Request(request, _) = parsed.pds else { panic!("{parsed:?}") };
    let late = build(&Message { carriage: parsed.carriage, pds: Pds::Request(request.with_syn(false).with_dpdcid(head.spdcid()), None), ses: parsed.ses, payload: &parsed.payload }, &registers());
    target.receive(&late);
    let refusal: Vec<Vec<u8>> = (1200..1210).flat_map(|now| target.tick(now)).collect();
    let Pds::Nack(nack) = parse(&refusal[0], &registers()).unwrap().pds else { panic!("no refusal") };
    assert_eq!((nack.code(), nack.psn(), nack.spdcid(), nack.dpdcid()), (NackCode::InvalidPdc as u8, request.psn(), 0, request.spdcid()));
}

/// The timer of a place has been over for idleness, and has not been heard, when the PDC ends: its rest is as long as any.
#[test]
fn an_idle_event_on_its_way_ends_no_rest() {
    let config = Config { idle: 60, rto: 5000, safety: 200, ..config() };
    let mut rested = 0;
    for delay in (0..16 * TICK).step_by(10) {
        let mut card = card(&config);
        let mut peer = End::new(std::sync::Arc::new(config.clone()), Outlook { registers: registers(), native: None, data_dscp: 8 }, MAC, &[OWN[0][1].into()], 1 << 16);
        peer.neighbour(OWN[0][0].into(), 1);
        card.write(OWN[0][0], OWN[0][1], Mode::Rud, 0, &[1; 60]);
        let mut now = 0;
        while card.ended.is_empty() {
            now += 1;
            assert!(now < 500);
            card.tick(now).iter().for_each(|frame| peer.receive(frame, now));
            peer.tick(now);
            while let Some(frame) = peer.transmit(now) {
                card.receive(&frame);
            }
        }
        // Just before it has been idle for so long there is a message, and its refusal comes around that time.
        (0..config.idle - 16).for_each(|n| drop(card.tick(now + n)));
        now += config.idle - 16;
        card.write(OWN[0][0], OWN[0][1], Mode::Rud, 1000, &[1; 60]);
        let mut frame = None;
        let mut cycles = 0;
        while card.ended.len() < 2 {
            cycles += 1;
            assert!(cycles < 100 * TICK);
            if cycles % TICK == 0 {
                now += 1;
                card.clock(now);
            }
            frame = card.cycle().pop().or(frame);
            if cycles >= delay {
                if let Some(frame) = frame.take() {
                    card.receive(&nack(&frame, NackCode::HeaderMismatch, 0));
                }
            }
        }
        assert_eq!(card.ended[1], (1001, why::REFUSED, NackCode::HeaderMismatch as u64));
        for n in 1..config.safety - 20 {
            card.tick(now + n);
            assert!(!card.free(), "{delay} cycles: the place is free after {n} ticks of {}", config.safety);
        }
        (0..60).for_each(|n| drop(card.tick(now + config.safety - 20 + n)));
        assert!(card.free(), "a place is lost");
        rested += 1;
    }
    assert!(rested > 20);
}
