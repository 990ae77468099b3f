//! Frames against the model of headers, with slots, keys and host memory that the bench plays, under stalls.
use super::*;
use crate::net::header::model::layers;
use crate::tb::{Fields, Tb};
use ferric_abi::context::PathCtx as Path;
use std::collections::{BTreeMap, VecDeque};

const LE: usize = 2;
const LT: usize = 3;
const PAGE: u64 = 4096;
const MASK: u64 = 0xb000_0000_0000;

/// Line `n` of the peers: by IPv6 if it is odd; the last is nobody.
fn path(n: u64) -> Path {
    let path = Path::default().with_dmac(0x0200_0000_0001 + n).with_smac(0x0200_0000_0100 + n).with_dip(u128::from(0x0a00_0001 + n)).with_sip(u128::from(0x0a00_0101 + n));
    path.with_tclass(0x23).with_hop_limit(9).with_ipv6(n % 2 == 1).with_valid(n != 3).with_flow_label(5)
}

/// Message `n`: where its bytes are, and under which key.
fn message(n: u64) -> (u64, u64) {
    (0x10_0000 * n + 777 * n, n)
}

fn run<const W: usize, const K: usize, const L: usize>(stall: u32, seed: u64) {
    let mut tb = Tb::with_seed(&format!("uet_dress{W}"), Dress::<W, K, L, LE, LT>::default(), seed);
    let [note, slot, grant, ready, key, told, pay, seal] = [
        Fields::of::<FrameNote>(),
        Fields::of::<SlotReq>(),
        Fields::of::<SlotGrant>(),
        Fields::of::<HdrDone>(),
        Fields::of::<MrReq>(),
        Fields::of::<MrResp>(),
        Fields::of::<PayCmd>(),
        Fields::of::<SlotSeal>(),
    ];
    let (headers, notes, grants, key_answers) = (tb.axis_source("s", stall), tb.source("s_note", stall), tb.source("s_slot", stall), tb.source("s_key", stall));
    let (slots, readies, keys, pays, seals) = (tb.sink("m_slot", stall), tb.sink("m_done", stall), tb.sink("m_key", stall), tb.sink("m_pay", stall), tb.sink("m_seal", stall));
    tb.reset();
    let row_of = |bytes: &[u8]| -> Vec<u32> { bytes.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect() };
    let paths: Vec<Vec<u32>> = (0..4).map(|n| row_of(&path(n).0)).collect();
    let texts: Vec<Vec<u32>> =
        (0..8).map(|n| Fields::of::<Sent>().pack(&[("va", message(n).0.into()), ("key", message(n).1.into()), ("pd", 6), ("live", (n != 6).into()), ("number", u128::from(n * 3 + 1))])).collect();
    let (mut line, mut token) = (0, 0);
    let mut frames: VecDeque<(u64, bool, u64, u64, u64, Vec<u8>, bool)> = VecDeque::new();
    let mut late = 0;
    let mut rows: BTreeMap<u64, u8> = BTreeMap::new();
    let (mut sent, mut over, mut fails, mut base, mut reads, mut placed, mut refused) = (0u64, 0u64, 0u64, 0u64, 0u64, 0u64, false);
    let mut lens = (0u64, 0u64);
    while over < 120 {
        if sent < 120 && frames.len() < 3 {
            let (peer, control, message) = (tb.rng().below(4), tb.rng().percent(30), tb.rng().below(8));
            let (offset, bytes, len) = (tb.rng().below(9000), tb.rng().below(4097), 20 + tb.rng().below(55));
            let header = tb.rng().bytes(len as usize);
            headers.push(&header);
            // Message 6 has ended, and the place of some others was another message's when the packet was made.
            let older = tb.rng().percent(10);
            let stale = !control && (message == 6 || older);
            let token = message | (message * 3 + 1 + u64::from(older)) << NUMBER_AT;
            notes.push(note.pack(&[("peer", peer.into()), ("control", control.into()), ("token", token.into()), ("offset", offset.into()), ("bytes", bytes.into())]));
            frames.push_back((peer, control, message, offset, if control { 0 } else { bytes }, header, stale));
            sent += 1;
        }
        tb.set_wide("path", &paths[line][..]);
        tb.set_wide("sent", &texts[token][..]);
        tb.begin();
        (line, token) = (tb.get("line") as usize, tb.get("token") as usize);
        if tb.get("m_row$valid") == 1 {
            let row = tb.get("m_row$row");
            let bytes: Vec<u8> = tb.get_wide("m_row$data").iter().flat_map(|word| word.to_le_bytes()).collect();
            rows.extend((0..).map(|n| row * K as u64 + n).zip(bytes));
        }
        tb.end();
        let frame = frames.front();
        while let Some(words) = slots.pop() {
            let get = |name| slot.get(&words, name) as u64;
            let (peer, _, _, _, bytes, header, _) = frame.unwrap();
            let len = if peer % 2 == 1 { 54 } else { 34 } + header.len() as u64;
            assert_eq!((get("hdr_len"), get("frame_len"), get("pay_len"), get("raw")), (len, len + bytes, *bytes, 0));
            base = tb.rng().below(1 << 10) * 64;
            lens = (len, *bytes);
            (reads, placed, refused) = (0, 0, false);
            rows.clear();
            grants.push(grant.pack(&[("slot", u128::from(over & 0x7f)), ("base", base.into())]));
        }
        while let Some(words) = keys.pop() {
            let get = |name| key.get(&words, name) as u64;
            let (_, _, message_number, offset, bytes, _, stale) = frame.unwrap();
            assert!(!stale, "bytes of another message are asked for");
            let (va, lkey) = message(*message_number);
            assert_eq!((get("va"), get("key"), get("chk_len"), get("access"), get("pd")), (va + offset + placed, lkey, bytes - placed, access::LOCAL_READ, 6));
            // Message 7 has a key that is none.
            refused = lkey == 7;
            key_answers.push(told.pack(&[("iova", u128::from(get("va") ^ MASK)), ("status", refused.into())]));
        }
        while let Some(words) = pays.pop() {
            let get = |name| pay.get(&words, name) as u64;
            let (_, _, message_number, offset, bytes, ..) = frame.unwrap();
            let va = message(*message_number).0 + offset + placed;
            let len = (bytes - placed).min(PAGE - va % PAGE);
            assert_eq!((get("iova"), get("len"), get("dst"), get("slot")), (va ^ MASK, len, base + lens.0 + placed, over & 0x7f));
            placed += len;
            reads += 1;
        }
        while let Some(words) = readies.pop() {
            let get = |name| ready.get(&words, name) as u64;
            let (peer, control, _, _, bytes, header, _) = frame.unwrap();
            assert_eq!((get("slot"), get("len"), get("plain"), get("abort")), (over & 0x7f, lens.0, 1, u64::from(*peer == 3)));
            if *peer < 3 {
                let path = path(*peer).with_tclass(if *control { 0x20 } else { 0x22 });
                let expected = [layers(&path, 17, (header.len() as u64 + bytes) as u16), header.clone()].concat();
                let built: Vec<u8> = (0..lens.0).map(|at| rows[&at]).collect();
                assert_eq!(built, expected, "frame {over}");
            }
        }
        while let Some(words) = seals.pop() {
            let get = |name| seal.get(&words, name) as u64;
            let (peer, .., bytes, _, stale) = frames.pop_front().unwrap();
            let fail = peer == 3 || refused || stale;
            late += u64::from(stale);
            assert_eq!((get("slot"), get("reads"), get("abort")), (over & 0x7f, reads, fail.into()));
            assert!(fail || placed == bytes);
            fails += u64::from(fail);
            over += 1;
        }
        assert!(tb.cycles() < 200_000, "it hangs");
    }
    assert!((20..100).contains(&fails) && late > 5, "{fails} {late}");
}

#[test]
fn frames_are_dressed_as_the_model_says_w64() {
    run::<64, 8, 4>(0, 1);
    run::<64, 8, 4>(50, 2);
}

#[test]
fn frames_are_dressed_as_the_model_says_w512() {
    run::<512, 64, 7>(50, 3);
}
