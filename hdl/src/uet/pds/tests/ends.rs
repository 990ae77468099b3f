//! Peers that say nothing, refuse, or send what belongs to nobody: how messages and PDCs end.
use super::card::{Card, Ended, TICK};
use super::world::{config, registers, OWN};
use crate::uet::pds::types::why;
use ferric_abi::uet::codes::{AckRequest, ControlType, NackCode, PdsType, ReturnCode};
use ferric_abi::uet::PdsNack;
use ferric_abi::wire::{Eth, Ipv4, Udp};
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

/// Where a request writes to.
fn offset(frame: &[u8]) -> Option<u64> {
    match parse(frame, &registers()).unwrap().ses {
        Ses::First(head, _) => Some(head.offset()),
        _ => None,
    }
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

/// A peer that ends one PDC after another has so many places and no more, until they have rested: a message to it waits, and those to another do not.
#[test]
fn places_that_rest_are_a_share() {
    const PLACES: u64 = 3;
    let config = Config { rto: 10_000, peer_initiators: PLACES as usize, ..config() };
    let mut card = card(&config);
    let [bad, good] = [OWN[0], OWN[1]];
    let refuse = |frame: &[u8]| parse(frame, &registers()).is_ok_and(|parsed| parsed.carriage.addresses.source() == bad[0].into()).then(|| nack(frame, NackCode::HeaderMismatch, 0x77));
    for n in 0..2 * PLACES {
        card.write(bad[0], bad[1], if n % 2 == 0 { Mode::Rud } else { Mode::Rod }, 100 * n, &[1; 60]);
    }
    card.write(good[0], good[1], Mode::Rud, 5000, &[2; 60]);
    let mut sent = Vec::new();
    for now in 1..config.safety - 100 {
        if now == 200 {
            card.write(good[0], good[1], Mode::Rod, 6000, &[2; 60]);
        }
        for frame in card.tick(now) {
            sent.extend(offset(&frame).map(|at| (at, now)));
            refuse(&frame).into_iter().for_each(|frame| card.receive(&frame));
        }
    }
    assert!([(5000, 0), (6000, 200)].iter().all(|(at, posted)| sent.iter().any(|(sent, now)| sent == at && (*posted..posted + 150).contains(now))), "{sent:?}");
    // Some have ended with the one in front of them.
    assert!((PLACES..2 * PLACES).contains(&(card.ended.len() as u64)) && card.used() == PLACES + 2, "{:?}, {} places", card.ended, card.used());
    for now in config.safety - 100..config.safety + 200 {
        for frame in card.tick(now) {
            refuse(&frame).into_iter().for_each(|frame| card.receive(&frame));
        }
    }
    assert_eq!(sorted(&card.ended), (0..2 * PLACES).map(|n| (100 * n + 1, why::REFUSED, NackCode::HeaderMismatch as u64)).collect::<Vec<_>>());
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

/// Two engines and a channel that is steady.
struct Two {
    cards: [Card; 2],
    now: u64,
    /// When it comes, to whom.
    flying: std::collections::VecDeque<(u64, usize, Vec<u8>)>,
}

const DELAY: u64 = 10;

impl Two {
    fn new<const W: usize, const K: usize, const L: usize>(config: &Config, stall: u32) -> Self {
        let cards = [0, 1].map(|n| {
            let mut card = Card::new::<W, K, L>(40 + n as u64, config, stall, 1 << 16);
            OWN.iter().for_each(|pair| card.pair(pair[n], pair[1 - n], MAC));
            card.slow = 6;
            card
        });
        Self { cards, now: 0, flying: Default::default() }
    }

    fn send(&mut self, from: usize, frames: Vec<Vec<u8>>) {
        let at = self.now + DELAY;
        self.flying.extend(frames.into_iter().map(|frame| (at, 1 - from, frame)));
    }

    /// Ticks; gives what each end has sent.
    fn run(&mut self, ticks: u64) -> [Vec<Vec<u8>>; 2] {
        let mut sent = [Vec::new(), Vec::new()];
        for _ in 0..ticks {
            self.now += 1;
            while self.flying.front().is_some_and(|(at, ..)| *at <= self.now) {
                let (_, to, frame) = self.flying.pop_front().unwrap();
                self.cards[to].receive(&frame);
            }
            for (n, sent) in sent.iter_mut().enumerate() {
                let frames = self.cards[n].tick(self.now);
                sent.extend(frames.iter().cloned());
                self.send(n, frames);
            }
        }
        sent
    }

    /// Messages of both, by both pairs and in both modes; `at` is the first one's place.
    fn write(&mut self, at: u64, count: u64, bytes: usize) {
        for n in 0..count {
            for card in 0..2 {
                let mode = if n % 3 == 2 { Mode::Rod } else { Mode::Rud };
                let pair = OWN[(n % 2) as usize];
                self.cards[card].write(pair[card], pair[1 - card], mode, at + n * bytes as u64, &vec![n as u8 + 1; bytes]);
            }
        }
    }
}

fn sorted(ended: &[Ended]) -> Vec<Ended> {
    let mut ended = ended.to_vec();
    ended.sort_unstable();
    ended
}

/// All peers of one end go while messages are under way in both directions, three times: its messages end at once, each once; of its PDCs only the places of initiators are used still, and they rest; nothing of
/// them is sent any more but refusals; what the other has open to it ends by one of these. What is written behind it goes at once.
fn three_lives<const W: usize, const K: usize, const L: usize>(stall: u32) {
    const COUNT: u64 = 6;
    const BYTES: usize = 1500;
    const BOUND: u64 = 16 * 2 * 150;
    let config = Config { rto: 200, rto_max: 3, safety: 600, reap: 700, ..config() };
    let mut two = Two::new::<W, K, L>(&config, stall);
    let (mut early, mut late) = (0, 0);
    for life in 0..3 {
        let at = 20_000 * life;
        // All PDCs are open, and the peers' ids are known.
        two.write(at, COUNT, 60);
        two.run(200);
        two.cards.iter_mut().for_each(|card| assert_eq!(std::mem::take(&mut card.ended).len(), COUNT as usize));
        two.write(at + 500, COUNT, BYTES);
        let posted: Vec<u64> = (0..COUNT).map(|n| at + 500 + n * BYTES as u64 + 1).collect();
        two.run(50 + 50 * life);
        // In a card the intake lets nobody in by now, and what it had let in is heard.
        while !two.cards[0].heard() {
            two.run(1);
        }
        two.run(1);
        let before = two.cards[0].ended.len();
        let (cycles, frames) = two.cards[0].part(None);
        two.send(0, frames);
        assert!(stall > 0 || cycles < BOUND, "{cycles} cycles");
        let ended = sorted(&two.cards[0].ended);
        assert_eq!(ended.iter().map(|(token, ..)| *token).collect::<Vec<_>>(), posted, "each of its messages has ended, once");
        assert!(ended.iter().all(|(_, why, code)| [(0, ReturnCode::Ok as u64), (why::GONE, 0)].contains(&(*why, *code))), "{ended:?}");
        early += before as u64;
        late += (two.cards[0].ended.len() - before) as u64;
        // Places of initiators, two modes to two peers; of an earlier life some may rest still.
        let used = two.cards[0].used();
        assert!(if life == 0 { used == 4 } else { used <= 8 }, "{used} places");
        // Nothing of them goes out, though semantics still answer; requests of the other are refused.
        let [sent, _] = two.run(600);
        for frame in &sent {
            let parsed = parse(frame, &registers()).unwrap();
            let Pds::Nack(nack) = parsed.pds else { panic!("it is no refusal: {parsed:?}") };
            assert_eq!(nack.code(), NackCode::InvalidPdc as u8);
        }
        assert!(!sent.is_empty());
        let theirs = sorted(&two.cards[1].ended);
        assert_eq!(theirs.len(), posted.len(), "{theirs:?}");
        let fine = [(0, ReturnCode::Ok as u64), (why::REFUSED, NackCode::InvalidPdc as u64)];
        assert!(theirs.iter().all(|(_, why, code)| fine.contains(&(*why, *code))), "{theirs:?}");
        assert!(theirs.iter().any(|(_, why, _)| *why == why::REFUSED));
        // A PDC of the other that had nothing to do finds out by its next message.
        two.cards.iter_mut().for_each(|card| card.ended.clear());
        two.write(at + 15_000, COUNT, 60);
        two.run(300);
        assert!(two.cards[1].ended.iter().all(|(_, why, code)| fine.contains(&(*why, *code))), "{:?}", two.cards[1].ended);
        // The next life.
        let next = at + 10_000;
        two.cards.iter_mut().for_each(|card| card.ended.clear());
        two.write(next, 4, 300);
        two.run(300);
        for card in &two.cards {
            assert_eq!(sorted(&card.ended), (0..4).map(|n| (next + n * 300 + 1, 0, ReturnCode::Ok as u64)).collect::<Vec<_>>());
        }
        two.cards.iter_mut().for_each(|card| card.ended.clear());
    }
    assert!(early > 0 && late > 5, "{early} ended before, {late} then");
    two.run(config.idle + 2 * config.safety);
    assert!(two.cards[0].free(), "a place is lost");
}

#[test]
fn who_has_gone_leaves_nothing_behind() {
    three_lives::<64, 8, 4>(0);
    three_lives::<512, 64, 7>(25);
}

/// One peer goes: its messages end, and those of the others go on as if nothing were.
#[test]
fn one_peer_goes_and_no_other() {
    let config = Config { rto: 200, rto_max: 3, ..config() };
    let mut two = Two::new::<64, 8, 4>(&config, 10);
    // All PDCs are open, and the peers' ids are known: a packet that says SYN would open one anew.
    for (at, bytes, ticks) in [(5000, 60, 200), (0, 4000, 50)] {
        two.cards.iter_mut().for_each(|card| card.ended.clear());
        for (n, pair) in OWN.iter().enumerate() {
            let at = at + 10_000 * n as u64;
            two.cards[0].write(pair[0], pair[1], Mode::Rud, at, &vec![n as u8 + 1; bytes]);
            two.cards[1].write(pair[1], pair[0], Mode::Rod, at, &vec![n as u8 + 1; bytes]);
        }
        two.run(ticks);
    }
    let (_, frames) = two.cards[0].part(Some(1));
    two.send(0, frames);
    assert_eq!(two.cards[0].ended, [(10_001, why::GONE, 0)]);
    two.run(3000);
    assert_eq!(two.cards[0].stats["uet_pdc_accepted"], 3);
    let fine = ReturnCode::Ok as u64;
    assert_eq!(sorted(&two.cards[0].ended), [(1, 0, fine), (10_001, why::GONE, 0), (20_001, 0, fine)]);
    assert_eq!(sorted(&two.cards[1].ended), [(1, 0, fine), (10_001, why::REFUSED, NackCode::InvalidPdc as u64), (20_001, 0, fine)]);
    for card in &two.cards {
        assert!(card.memory[..4000].iter().all(|byte| *byte == 1) && card.memory[20_000..24_000].iter().all(|byte| *byte == 3));
    }
}

/// Messages that no PDC has yet end, too: some find no place, and those to another pass.
#[test]
fn messages_that_wait_end_with_their_peers() {
    let mut card = card(&Config { rto: 2000, ..config() });
    card.tb.set("places", 1);
    for n in 0..5 {
        let pair = OWN[n as usize % 2];
        card.write(pair[0], pair[1], Mode::Rud, 1000 * n, &[1; 60]);
    }
    let sent: Vec<u64> = (1..50).flat_map(|now| card.tick(now)).map(|frame| offset(&frame).unwrap()).collect();
    assert!(card.ended.is_empty() && card.used() == 1 && card.heard());
    assert_eq!(sent, [0, 2000, 4000]);
    card.part(Some(1));
    assert_eq!(std::mem::take(&mut card.ended), [1001, 3001].map(|token| (token, why::GONE, 0)));
    card.write(OWN[1][0], OWN[1][1], Mode::Rud, 5000, &[1; 60]);
    (50..60).for_each(|now| drop(card.tick(now)));
    card.part(None);
    assert_eq!(sorted(&card.ended), [1, 2001, 4001, 5001].map(|token| (token, why::GONE, 0)));
    assert_eq!(card.used(), 1, "the place that rests");
}

/// A peer that wants each PDC closed, and answers no close: the next message has another PDC at once; if it has to come behind those in front of it, it has it when these are answered, and keeps nobody else waiting.
#[test]
fn a_close_that_is_not_answered_keeps_nobody_waiting() {
    const PROLOGUE: usize = Eth::BYTES + Ipv4::BYTES + Udp::BYTES;
    const WANTS_CLOSE: u8 = (AckRequest::Close as u8) << 1;
    let config = Config { rto: 1000, rto_max: 3, ..config() };
    let mut card = card(&config);
    let mut peer = End::new(std::sync::Arc::new(config.clone()), Outlook { registers: registers(), native: None, data_dscp: 8 }, MAC, &[OWN[0][1].into(), OWN[1][1].into()], 1 << 16);
    OWN[..2].iter().for_each(|pair| peer.neighbour(pair[0].into(), 1));
    let (mut now, mut closes, mut held, mut holds, mut seen) = (0, 0, Vec::new(), true, Vec::new());
    let mut run = |card: &mut Card, holds: bool, ticks: u64| {
        for _ in 0..ticks {
            now += 1;
            for frame in card.tick(now) {
                let parsed = parse(&frame, &registers()).unwrap();
                match (parsed.pds, parsed.ses) {
                    (Pds::Control(head), _) => closes += u64::from(head.ctl() == ControlType::CloseCommand as u8 && !head.retx()),
                    (Pds::Request(head, _), Ses::First(ses, _)) => {
                        seen.push((ses.offset(), head.spdcid()));
                        peer.receive(&frame, now);
                    }
                    (Pds::Request(..), Ses::Next(..)) if holds => held.push(frame),
                    (Pds::Request(..), Ses::Next(..)) => peer.receive(&frame, now),
                    other => panic!("{other:?}"),
                }
            }
            if !holds {
                held.drain(..).for_each(|frame| peer.receive(&frame, now));
            }
            peer.tick(now);
            while let Some(mut frame) = peer.transmit(now) {
                let parsed = parse(&frame, &registers()).unwrap();
                if matches!(parsed.pds, Pds::Ack(..)) && parsed.carriage.addresses.source() == OWN[0][1].into() {
                    frame[PROLOGUE + 1] |= WANTS_CLOSE;
                }
                card.receive(&frame);
            }
        }
        (closes, seen.clone())
    };
    for n in 0..3 {
        card.write(OWN[0][0], OWN[0][1], Mode::Rud, 1000 * n, &[1; 60]);
        let (closes, seen) = run(&mut card, holds, 100);
        assert_eq!((card.ended.len() as u64, closes, seen.len() as u64, card.used()), (n + 1, n + 1, n + 1, n + 1), "message {n}");
    }
    // In three packets, of which two are late.
    card.write(OWN[0][0], OWN[0][1], Mode::Rod, 20_000, &[1; 600]);
    let (closes, _) = run(&mut card, holds, 60);
    card.write(OWN[0][0], OWN[0][1], Mode::Rod, 21_000, &[1; 60]);
    card.write(OWN[0][0], OWN[0][1], Mode::Rod, 22_000, &[1; 60]);
    card.write(OWN[1][0], OWN[1][1], Mode::Rod, 30_000, &[1; 60]);
    let (closes_then, seen) = run(&mut card, holds, 60);
    assert!(closes == 3 && closes_then == 3 && seen.iter().all(|(at, _)| *at != 21_000 && *at != 22_000), "a message that has to wait does");
    assert_eq!(card.ended.last().map(|(token, ..)| *token), Some(30_001), "another's passes");
    holds = false;
    let (closes, seen) = run(&mut card, holds, 500);
    let fine = ReturnCode::Ok as u64;
    assert_eq!(card.ended.split_off(3), [30_001, 20_001, 21_001, 22_001].map(|token| (token, 0, fine)));
    assert_eq!(closes, 5);
    let of = |offset: u64| seen.iter().filter(|(at, _)| *at == offset).map(|(_, id)| *id).collect::<std::collections::BTreeSet<u16>>();
    assert!(of(20_000).len() == 1 && of(21_000) == of(22_000) && of(20_000) != of(21_000));
    // All close by their last time-out, and nothing is left; the other pair's by its idleness.
    run(&mut card, holds, 15 * config.rto + config.idle + config.safety + 1000);
    assert!(card.free(), "a place is lost");
}

/// A peer that opens one PDC after another, each of which keeps responses that nobody clears: it has one at a time, and what those before it kept is forgotten, so that there are places for the responses of others.
#[test]
fn what_makes_room_for_its_peers_next_keeps_nothing() {
    const PDCS: u16 = 40;
    const TICKS: u64 = 80;
    const SPDCID: usize = Eth::BYTES + Ipv4::BYTES + Udp::BYTES + 8;
    let config = Config { peer_share: 1, ..config() };
    let mut one = card(&config);
    one.write(OWN[0][0], OWN[0][1], Mode::Rud, 0, &[1; 2500]);
    one.write(OWN[1][0], OWN[1][1], Mode::Rud, 3000, &[2; 750]);
    let frames: Vec<Vec<u8>> = (1..100).flat_map(|now| one.tick(now)).collect();
    let of = |pair: usize| frames.iter().filter(move |frame| parse(frame, &registers()).unwrap().carriage.addresses.source() == OWN[pair][0].into());
    let mut target = Card::new::<64, 8, 4>(2, &config, 0, 1 << 16);
    OWN.iter().for_each(|pair| target.pair(pair[1], pair[0], MAC));
    target.codes.insert(0, ReturnCode::BadAddress as u64);
    // What asks for a clear has no response; nothing is refused.
    let code = |frame: &Vec<u8>| match (parse(frame, &registers()).unwrap().pds, parse(frame, &registers()).unwrap().ses) {
        (_, Ses::Response(response)) => response.code(),
        (Pds::Control(_), _) => ReturnCode::Ok as u8,
        other => panic!("{other:?}"),
    };
    assert_eq!(of(0).count(), 10);
    let mut kept = 0;
    for id in 1..=PDCS {
        for frame in of(0) {
            let mut frame = frame.clone();
            frame[SPDCID..SPDCID + 2].copy_from_slice(&id.to_be_bytes());
            target.receive(&frame);
        }
        let now = TICKS * u64::from(id);
        let bad = (now..now + TICKS).flat_map(|now| target.tick(now)).filter(|frame| code(frame) == ReturnCode::BadAddress as u8).count();
        assert!(bad > 0 && target.used() == 1 && target.heard());
        kept += bad;
    }
    assert!(kept > 100, "{kept}");
    assert_eq!((target.stats["uet_pdc_ousted"], target.stats["uet_pdc_failed"]), (u64::from(PDCS) - 1, u64::from(PDCS) - 1));
    // Three packets of another, two of which are not the oldest of their PDC.
    of(1).for_each(|frame| target.receive(frame));
    let answers: Vec<Vec<u8>> = (8000..8100).flat_map(|now| target.tick(now)).collect();
    assert!(!answers.is_empty() && answers.iter().all(|frame| code(frame) == ReturnCode::Ok as u8), "no refusal");
    assert_eq!((target.used(), target.memory[3000..3750] == [2; 750]), (2, true));
}
