//! What random lives do not reach.
use super::*;
use crate::msg::{CtlReq, CtlResp};
use ferric_abi::uet::codes::NackCode;

const PEER: u64 = 5;

fn syn(peer_id: u64, start: u64) -> Vec<(&'static str, u64)> {
    vec![("peer", PEER), ("peer_id", peer_id), ("syn", 1), ("request", 1), ("psn", start)]
}

fn single() -> Config {
    Config { places: 1, share: 1, low: 0, linger_cut: false, ..config() }
}

/// A place lives 2^12 lives before an id comes again: in each, the last one's late packets are refused, and when it comes again, those of the first.
#[test]
fn ids_of_all_earlier_lives_are_refused() {
    let mut block = Block::new("uet_pdc_test", &single());
    let lives = 1u64 << (16 - LP);
    let mut ids = Vec::new();
    // Every place in turn, so each has so many lives after this; peers number their ids, too.
    for life in 0..(lives + 3) * 15 {
        let peer_id = 1 + life % 60_000;
        let told = block.ask(pdc_ask::ARRIVE, &syn(peer_id, life));
        assert_eq!(told.get("verdict"), verdict::OPENED);
        let id = told.get("line.id");
        assert!(id != 0 && id & 15 != 0);
        // Late packets of the last life of this place, whoever had it: by its id, by its SYN. It is the same for each place.
        if life >= 15 && life % 15 == 3 {
            let (old, old_peer_id, old_start) = ids[(life - 15) as usize];
            assert_eq!((id & 15, old != id), (old & 15, true));
            let told = block.ask(pdc_ask::ARRIVE, &[("peer", PEER), ("peer_id", old_peer_id), ("id", old), ("request", 1), ("psn", old_start)]);
            assert_eq!((told.get("verdict"), told.get("code")), (verdict::REFUSE, NackCode::InvalidPdc as u64));
            let told = block.ask(pdc_ask::ARRIVE, &syn(old_peer_id, old_start));
            assert_eq!((told.get("verdict"), told.get("code")), (verdict::REFUSE, NackCode::NoPdc as u64));
        }
        if life >= lives * 15 {
            let (old, old_peer_id, old_start) = ids[(life - lives * 15) as usize];
            assert_eq!(old, id, "the id has come again");
            let told = block.ask(pdc_ask::ARRIVE, &[("peer", PEER), ("peer_id", old_peer_id), ("id", old), ("request", 1), ("psn", old_start)]);
            assert_eq!((told.get("verdict"), told.get("code")), (verdict::REFUSE, NackCode::HeaderMismatch as u64));
        }
        assert_eq!(block.ask(pdc_ask::FAIL, &[("id", id)]).get("verdict"), verdict::FAILED);
        ids.push((id, peer_id, life));
    }
}

#[test]
fn codes_that_are_not_there_end_nothing() {
    let mut block = Block::new("uet_pdc_test", &single());
    let told = block.ask(pdc_ask::POST, &[("peer", PEER)]);
    let id = told.get("line.id");
    let none: Vec<u8> = (0..=255u8).filter(|code| NackCode::from_u8(*code).is_none()).collect();
    for code in &none {
        let told = block.ask(pdc_ask::NACK, &[("peer", PEER), ("id", id), ("peer_id", 9), ("code", (*code).into())]);
        assert_eq!((told.get("verdict"), told.get("line.stage")), (verdict::DROP, stage::SYN), "code {code:x}");
    }
    assert_eq!(["uet_pdc_failed", "uet_pdc_unknown_nack"].map(|name| block.stat(name)), [0, none.len() as u64]);
}

/// A full pool answers, however often it is asked, and whoever makes room is used.
#[test]
fn a_full_pool_is_an_answer() {
    let mut block = Block::new("uet_pdc_test", &Config { linger_cut: true, ..single() });
    let id = block.ask(pdc_ask::ARRIVE, &syn(1, 100)).get("line.id");
    for peer_id in 2..40 {
        let told = block.ask(pdc_ask::ARRIVE, &syn(peer_id, 7));
        assert_eq!((told.get("verdict"), told.get("code")), (verdict::REFUSE, NackCode::NoPdc as u64));
        // The one that is there is asked once.
        assert_eq!(told.get("victim"), if peer_id == 2 { victim::ASKED } else { victim::NONE });
        assert_eq!(block.ask(pdc_ask::POST, &[("peer", PEER)]).get("verdict"), verdict::FULL);
        assert_eq!(block.ask(pdc_ask::ROOM, &[]).get("cut_id"), 0);
    }
    assert_eq!(block.stat("uet_pdc_no_room"), 76);
    assert_eq!(block.ask(pdc_ask::SHUT, &[("id", id), ("psn", 100), ("whole", 1)]).get("verdict"), verdict::LINGERS);
    // It makes room for an initiator, too, if it may.
    block.tb.set("linger_cut", 0);
    assert_eq!(block.ask(pdc_ask::ROOM, &[]).get("cut_id"), 0);
    assert_eq!(block.ask(pdc_ask::ARRIVE, &syn(77, 7)).get("verdict"), verdict::REFUSE);
    block.tb.set("linger_cut", 1);
    assert_eq!(block.ask(pdc_ask::ROOM, &[]).get("cut_id"), id);
    assert_eq!(block.ask(pdc_ask::POST, &[("peer", PEER)]).get("verdict"), verdict::OPENED);
}

/// Neither side takes what is the other's.
#[test]
fn each_side_has_its_share() {
    let mut block = Block::new("uet_pdc_test", &Config { places: 5, share: 2, low: 0, ..config() });
    let accepted: Vec<u64> = (1..5).map(|peer_id| block.ask(pdc_ask::ARRIVE, &syn(peer_id, 9)).get("verdict")).collect();
    assert_eq!(accepted, [verdict::OPENED, verdict::OPENED, verdict::REFUSE, verdict::REFUSE]);
    let opened: Vec<u64> = (1..5).map(|peer| block.ask(pdc_ask::POST, &[("peer", peer)]).get("verdict")).collect();
    assert_eq!(opened, [verdict::OPENED, verdict::OPENED, verdict::FULL, verdict::FULL]);
}

/// An answer for one that is gone, or of another peer, is counted; so is no other look.
#[test]
fn answers_for_nobody_are_counted() {
    let mut block = Block::new("uet_pdc_test", &config());
    let id = block.ask(pdc_ask::POST, &[("peer", PEER)]).get("line.id");
    let look = |block: &mut Block, id: u64, peer: u64, bare: u64, heard: u64| {
        let verdict = block.ask(pdc_ask::LOOK, &[("id", id), ("peer", peer), ("peer_id", 9), ("bare", bare), ("heard", heard)]).get("verdict");
        (verdict, block.stat("uet_pdc_stray"))
    };
    assert_eq!(look(&mut block, id, PEER, 0, 1), (verdict::DONE, 0));
    assert_eq!(look(&mut block, id, PEER + 1, 0, 1), (verdict::NOBODY, 1));
    assert_eq!(look(&mut block, id, PEER + 1, 1, 1), (verdict::DONE, 1));
    assert_eq!(block.ask(pdc_ask::FAIL, &[("id", id)]).get("verdict"), verdict::FAILED);
    assert_eq!(look(&mut block, id, PEER, 0, 1), (verdict::NOBODY, 2));
    assert_eq!(look(&mut block, id, PEER, 1, 1), (verdict::NOBODY, 3));
    assert_eq!(look(&mut block, id, PEER, 1, 0), (verdict::NOBODY, 3));
}

/// All lines are free after a reset of the card, and its queries read them.
#[test]
fn queries_read_lines_and_a_reset_frees_them() {
    let mut block = Block::new("uet_pdc_test", &config());
    let (req, resp) = (Fields::of::<CtlReq>(), Fields::of::<CtlResp>());
    let (query, answer) = (block.tb.source("s_ctl", 30), block.tb.sink("m_ctl", 30));
    let mut ids = Vec::new();
    for peer_id in 1..8 {
        ids.push(block.ask(pdc_ask::ARRIVE, &syn(peer_id, 1000 * peer_id)).get("line.id"));
    }
    let word = |block: &mut Block, id: u64, word: u64| {
        query.push(req.pack(&[("line", u128::from(id & 15)), ("word", word.into())]));
        block.tb.run_until(PATIENCE, |_| !answer.is_empty());
        let words = answer.pop().unwrap();
        assert_eq!(resp.get(&words, "err"), 0);
        resp.get(&words, "data") as u64
    };
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(word(&mut block, *id, 2), 1000 * (n as u64 + 1));
        assert_eq!(word(&mut block, *id, 1), id << 16 | PEER);
    }
    block.tb.reset();
    for id in &ids {
        assert_eq!(block.ask(pdc_ask::LOOK, &[("id", *id), ("bare", 1)]).get("verdict"), verdict::NOBODY);
        assert_eq!(word(&mut block, *id, 0) & 7, stage::FREE);
    }
    assert_eq!(block.ask(pdc_ask::ARRIVE, &syn(3, 3000)).get("verdict"), verdict::OPENED);
}
