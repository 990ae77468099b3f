//! Posts and ends at random, with a table of peers and a host that the bench plays, under stalls.
use super::*;
use crate::host::testing::Control;
use crate::tb::{Fields, Tb};
use std::collections::{BTreeMap, VecDeque};

const LE: usize = 2;
const LT: usize = 3;
const LOG: u32 = 3;
const BASE: u64 = 0x7_1234_0000;

/// A post of a peer: those from 3 on are none of the function's.
fn post(tag: u32, peer: u16) -> host::UetPost {
    host::UetPost::default().with_tag(tag).with_peer(peer).with_rod(tag & 1 == 1).with_length(tag ^ 0xff).with_lkey(tag + 5).with_va(u64::from(tag) << 20).with_rkey(9).with_offset(u64::from(tag) << 8)
}

/// A cycle with the memory of peers, which is a cycle late. Posts that were bad.
fn step(tb: &mut Tb, paths: &[Vec<u32>], at: &mut usize) -> u64 {
    tb.set_wide("path", &paths[*at][..]);
    tb.begin();
    *at = tb.get("line") as usize;
    let bad = tb.get("stat") >> 4 & 1;
    tb.end();
    bad
}

#[test]
fn each_post_is_a_message_and_each_end_an_entry() {
    for (stall, seed) in [(0, 1), (60, 2)] {
        let mut tb = Tb::with_seed("uet_post", Post::<LE, LT>::default(), seed);
        let [wqe, message, end, write, done] = [Fields::of::<WqeDoorbell>(), Fields::of::<Message>(), Fields::of::<MessageEnd>(), Fields::of::<WrSmall>(), Fields::of::<WrDone>()];
        let (posts, messages, ends, writes, dones) = (tb.source("s_wqe", 0), tb.sink("m", stall), tb.source("s_end", stall), tb.sink("m_wr", stall), tb.source("s_done", stall));
        let control = Control::new(&mut tb, stall);
        tb.reset();
        let paths: Vec<Vec<u32>> = (0..4u128).map(|n| Fields::of::<PathCtx>().pack(&[("valid", (n != 3).into()), ("function", u128::from(n == 2)), ("pkey", n + 40)])).collect();
        for (word, value) in [
            (0, BASE as u32),
            (1, (BASE >> 32) as u32),
            (2, ferric_abi::context::RingCtx::default().with_log_size(LOG as u8).with_valid(true).0[8..12].iter().rev().fold(0, |a, b| a << 8 | u32::from(*b))),
        ] {
            control.ask(0, word, Some(value));
        }
        let mut answers = 0;
        while answers < 3 {
            tb.cycle();
            answers += usize::from(control.answer().is_some());
        }
        let (mut sent, mut ended, mut bad, mut wrong, mut at) = (0u32, 0u32, 0u64, 0u64, 0);
        // Posts that are to become messages; messages by token; ends that are to be written.
        let mut expected = VecDeque::new();
        let mut under_way: BTreeMap<u64, u32> = BTreeMap::new();
        let mut entries: VecDeque<(u32, u64, u64)> = VecDeque::new();
        let (mut over, mut numbers) = (VecDeque::new(), std::collections::BTreeSet::new());
        while ended < 100 {
            if sent < 2000 && expected.len() + under_way.len() + entries.len() < 12 && tb.rng().percent(20) {
                let peer = tb.rng().below(6) as u16;
                let mut words = wqe.pack(&[]);
                let line: Vec<u32> = post(sent, peer).0.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
                wqe.set_words(&mut words, "data", &line);
                posts.push(words);
                // Peer 2 is another function's, peer 3 nobody, and the others are beyond the table.
                if peer < 2 {
                    expected.push_back((sent, peer));
                } else {
                    wrong += 1;
                }
                sent += 1;
            }
            bad += step(&mut tb, &paths, &mut at);
            while let Some(words) = messages.pop() {
                let get = |name| message.get(&words, name) as u64;
                let (tag, peer) = expected.pop_front().unwrap();
                assert_eq!((get("peer"), get("rod"), get("length")), (peer.into(), u64::from(tag & 1), u64::from(tag ^ 0xff)));
                assert_eq!((get("says.offset"), get("says.key"), get("says.opcode")), (u64::from(tag) << 8, 9, SesOpcode::Write as u64));
                assert_eq!(under_way.insert(get("token"), tag), None, "each token is one message's");
                // Where its bytes are.
                let place = get("token") % (1 << LT);
                tb.set("token", place);
                bad += step(&mut tb, &paths, &mut at) + step(&mut tb, &paths, &mut at);
                let words = tb.get_wide("sent");
                let sent = Fields::of::<Sent>();
                assert_eq!(
                    ["va", "key", "pd", "tag", "live", "number"].map(|name| sent.get(&words, name) as u64),
                    [u64::from(tag) << 20, u64::from(tag) + 5, u64::from(peer) + 40, tag.into(), 1, get("token") >> NUMBER_AT]
                );
                assert!(under_way.keys().filter(|other| **other % (1 << LT) == place).count() == 1, "each place is one message's");
                assert!(numbers.insert(get("token") >> NUMBER_AT), "no number comes again soon");
            }
            assert!(under_way.len() < 1 << LT);
            if !under_way.is_empty() && tb.rng().percent(10) {
                let number = tb.rng().below(under_way.len() as u64) as usize;
                let token = *under_way.keys().nth(number).unwrap();
                let (why, code) = (tb.rng().below(4), tb.rng().below(256));
                entries.push_back((under_way.remove(&token).unwrap(), why, code));
                over.push_back(token % (1 << LT));
                ends.push(end.pack(&[("token", token.into()), ("why", why.into()), ("code", code.into())]));
            }
            while let Some(words) = writes.pop() {
                let get = |name| write.get(&words, name) as u64;
                let (tag, why, code) = entries.pop_front().unwrap();
                assert_eq!((get("iova"), get("len")), (BASE + 64 * u64::from(ended % (1 << LOG)), 64));
                let bytes: Vec<u8> = write.get_words(&words, "data").iter().flat_map(|word| word.to_le_bytes()).collect();
                let entry = host::UetEnd(bytes.try_into().unwrap());
                let model = host::UetEnd::default().with_tag(tag).with_why(why as u8).with_code(code as u8).with_number(ended).with_phase(ended >> LOG & 1 == 0);
                assert_eq!(entry, model);
                dones.push(done.pack(&[]));
                ended += 1;
                // Nothing is sent for it any more, unless its place is another's already.
                let place = over.pop_front().unwrap();
                tb.set("token", place);
                bad += step(&mut tb, &paths, &mut at) + step(&mut tb, &paths, &mut at);
                let words = tb.get_wide("sent");
                let sent = Fields::of::<Sent>();
                assert!(sent.get(&words, "live") == 0 || sent.get(&words, "tag") as u32 != tag);
            }
            assert!(tb.cycles() < 200_000, "it hangs");
        }
        assert!(wrong > 20 && bad > 20);
    }
}

#[test]
fn too_many_posts_are_dropped_and_counted() {
    let mut tb = Tb::new("uet_post_flood", Post::<LE, LT>::default());
    let posts = tb.source("s_wqe", 0);
    tb.reset();
    let words = Fields::of::<WqeDoorbell>().pack(&[]);
    // There is no ring, so each that is looked at is bad; they come faster than that.
    (0..200).for_each(|_| posts.push(words.clone()));
    let (mut lost, mut bad) = (0, 0);
    for _ in 0..2000 {
        tb.begin();
        let stat = tb.get("stat");
        tb.end();
        lost += stat >> 3 & 1;
        bad += stat >> 4 & 1;
    }
    assert!(lost > 50 && bad > 50 && lost + bad == 200, "{lost} {bad}");
}

/// A flush is over when all posts that had come are messages that were taken, or nothing, and no end waits; not before, and whatever comes later.
#[test]
fn a_flush_waits_for_what_had_come() {
    const LATE: u32 = 3;
    let mut tb = Tb::new("uet_post_flush", Post::<LE, LT>::default());
    let wqe = Fields::of::<WqeDoorbell>();
    let (posts, messages, ends, entries) = (tb.source("s_wqe", 0), tb.sink("m", 0), tb.source("s_end", 0), tb.sink("m_wr", 0));
    messages.refuse();
    let control = Control::new(&mut tb, 0);
    tb.reset();
    let paths: Vec<Vec<u32>> = (0..4u128).map(|n| Fields::of::<PathCtx>().pack(&[("valid", (n != 3).into()), ("function", u128::from(n == 2))])).collect();
    let mut at = 0;
    let push = |tag: u32, peer: u16| {
        let mut words = wqe.pack(&[]);
        let line: Vec<u32> = post(tag, peer).0.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
        wqe.set_words(&mut words, "data", &line);
        posts.push(words);
    };
    let ring = ferric_abi::context::RingCtx::default().with_log_size(LOG as u8).with_valid(true).0;
    let word = |n: usize| u32::from_le_bytes(ring[4 * n..4 * n + 4].try_into().unwrap());
    control.ask(0, 2, Some(word(2)));
    // A cycle, and whether the flush is over.
    let mut run = |tb: &mut Tb, cycles: u32| -> Option<u32> {
        (0..cycles).find(|_| {
            tb.set_wide("path", &paths[at][..]);
            tb.begin();
            at = tb.get("line") as usize;
            let over = tb.get("flushed") == 1;
            tb.end();
            over
        })
    };
    assert_eq!(run(&mut tb, 40), None);
    let flush = |tb: &mut Tb, run: &mut dyn FnMut(&mut Tb, u32) -> Option<u32>| {
        tb.set("flush", 1);
        let at_once = run(tb, 1);
        tb.set("flush", 0);
        assert_eq!(at_once, None);
    };
    // Nothing waits.
    flush(&mut tb, &mut run);
    assert!(run(&mut tb, 10).is_some());
    // Good and bad ones; all places are taken, so that some wait for an end.
    let all = (1 << LT) - 1 + 2;
    (0..all).for_each(|tag| push(tag, 0));
    (0..3).for_each(|tag| push(100 + tag, 3));
    run(&mut tb, 200);
    flush(&mut tb, &mut run);
    assert_eq!(run(&mut tb, 300), None, "nobody takes a message");
    messages.set_stall(0);
    assert_eq!(run(&mut tb, 300), None, "two have no place");
    let tokens = || std::iter::from_fn(|| messages.pop()).map(|words| Fields::of::<Message>().get(&words, "token") as u64);
    let taken: Vec<u64> = tokens().collect();
    assert_eq!(taken.len(), (1 << LT) - 1);
    // Two ends give places to the two, and a third one a place that the bad ones are looked at with. Those that come now are waited for by nobody: they have no place.
    (0..LATE).for_each(|tag| push(200 + tag, 0));
    let end = |token: u64| ends.push(Fields::of::<MessageEnd>().pack(&[("token", token.into())]));
    taken[..2].iter().for_each(|token| end(*token));
    assert_eq!(run(&mut tb, 300), None, "the bad ones have not been looked at");
    end(taken[2]);
    assert!(run(&mut tb, 300).is_some());
    // Those that came late, now that they are asked for.
    flush(&mut tb, &mut run);
    assert_eq!(run(&mut tb, 300), None, "two have no place");
    taken[3..5].iter().for_each(|token| end(*token));
    assert!(run(&mut tb, 300).is_some());
    let late: Vec<u64> = tokens().collect();
    assert_eq!(late.len(), 2 + LATE as usize);
    // Nor is it over while an end waits: here for the host, which takes no entry.
    assert_eq!(std::iter::from_fn(|| entries.pop()).count(), 5);
    entries.refuse();
    late.iter().for_each(|token| end(*token));
    flush(&mut tb, &mut run);
    assert_eq!(run(&mut tb, 300), None, "ends are not written");
    entries.set_stall(0);
    assert!(run(&mut tb, 300).is_some());
    assert_eq!(std::iter::from_fn(|| entries.pop()).count(), late.len());
}
