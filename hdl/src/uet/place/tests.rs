//! Packets of random places and keys, with a key unit, a mover and a host that the bench plays, under stalls: what is moved, what is freed, and what is answered.
use super::*;
use crate::tb::{Fields, Tb};
use std::collections::VecDeque;

const LE: usize = 2;
const LK: usize = 3;
const PAGE: u64 = 4096;
/// Bytes in front of the packet of IPv4 and of IPv6.
const BEHIND: [u64; 2] = [34, 54];

/// A packet, and what is expected of it.
struct Packet {
    psn: u64,
    handle: u64,
    code: u64,
    /// Pieces: address, place in the frame, bytes.
    pieces: Vec<(u64, u64, u64)>,
}

#[test]
fn packets_are_placed_freed_once_and_answered_behind_their_writes() {
    for (stall, seed) in [(0, 1), (40, 2), (70, 3)] {
        let mut tb = Tb::with_seed("uet_place", Place::<LE, LK, { LK + 1 }>::default(), seed);
        let [given, key, told, moved, done, answer] =
            [Fields::of::<Delivered>(), Fields::of::<MrReq>(), Fields::of::<MrResp>(), Fields::of::<MoveOp>(), Fields::of::<WrDone>(), Fields::of::<Finished>()];
        let (packets, keys, moves, answers) = (tb.source("s", stall), tb.sink("m_key", stall), tb.sink("m_move", stall), tb.sink("m", stall));
        let (key_answers, written) = (tb.source("s_key", stall), tb.source("s_written", stall));
        tb.reset();
        // The only peer: valid, of domain 0x21.
        let path = Fields::of::<PathCtx>().pack(&[("valid", 1), ("pkey", 0x21), ("function", 0)]);
        let mut waiting: VecDeque<Packet> = VecDeque::new();
        let mut expected: VecDeque<Packet> = VecDeque::new();
        let mut freed = Vec::new();
        let (mut sent, mut ended, mut bad, mut failing) = (0u64, 0u64, 0u64, false);
        let mut writes: VecDeque<bool> = VecDeque::new();
        while ended < 120 {
            tb.set_wide("path", &path[..]);
            if sent < 120 && waiting.len() + expected.len() < 1 << LK {
                let (va, bytes, six) = (tb.rng().below(1 << 40), tb.rng().below(4097), tb.rng().below(2));
                let kind = tb.rng().below(10);
                // The key says what becomes of it.
                let (status, code) = match kind {
                    0 => (1, 0x1c),
                    1 => (3, 0x1d),
                    2 => (4, 0x17),
                    3 => (6, 0x0e),
                    _ => (0, 1),
                };
                let (opcode, high) = (if kind == 8 { 5u64 } else { SesOpcode::Write as u64 }, u64::from(kind == 9) << 40);
                let code = if kind == 8 {
                    0x06
                } else if kind == 9 {
                    0x1c
                } else if bytes == 0 {
                    1
                } else {
                    code
                };
                let offset = tb.rng().below(1 << 20).min(va);
                let (handle, pay_off) = (tb.rng().below(512), 40 + tb.rng().below(60));
                let mut pieces = Vec::new();
                let (mut at, mut off, mut left) = (va, BEHIND[six as usize] + pay_off, bytes);
                while left > 0 && code == 1 {
                    let len = left.min(PAGE - at % PAGE);
                    pieces.push((at, off, len));
                    (at, off, left) = (at + len, off + len, left - len);
                }
                let words = given.pack(&[
                    ("handle", u128::from(handle | six << 12)),
                    ("pay_off", pay_off.into()),
                    ("bytes", bytes.into()),
                    ("peer", 1),
                    ("psn", sent.into()),
                    ("id", 0x77),
                    ("ses.opcode", opcode.into()),
                    ("ses.key", u128::from(status | high)),
                    ("ses.offset", u128::from(va - offset)),
                    ("ses.message_offset", offset.into()),
                    ("ses.message", u128::from(sent ^ 0x55)),
                    ("ses.request_length", 0x1_0000),
                ]);
                packets.push(words);
                waiting.push_back(Packet { psn: sent, handle, code, pieces });
                sent += 1;
            }
            tb.cycle();
            while let Some(words) = keys.pop() {
                let get = |name| key.get(&words, name) as u64;
                assert_eq!((get("pd"), get("access")), (0x21, access::REMOTE_WRITE));
                key_answers.push(told.pack(&[("iova", u128::from(get("va") ^ 0xa000_0000_0000)), ("status", get("key").into())]));
            }
            while let Some(words) = moves.pop() {
                let get = |name| moved.get(&words, name) as u64;
                let packet = waiting.front_mut().unwrap();
                assert_eq!(get("handle"), packet.handle);
                if get("len") > 0 {
                    assert_eq!((get("iova") ^ 0xa000_0000_0000, get("off"), get("len")), packet.pieces.remove(0));
                    let fails = tb.rng().percent(5);
                    writes.push_back(fails);
                    failing |= fails;
                }
                if get("free") == 1 {
                    let mut packet = waiting.pop_front().unwrap();
                    assert!(packet.pieces.is_empty(), "the frame is given back before all of it is written");
                    freed.push(packet.handle);
                    if failing {
                        packet.code = 0x0e;
                    }
                    failing = false;
                    expected.push_back(packet);
                }
            }
            // The host answers late.
            if tb.rng().percent(20) {
                if let Some(fails) = writes.pop_front() {
                    written.push(done.pack(&[("err", fails.into())]));
                }
            }
            while let Some(words) = answers.pop() {
                let get = |name| answer.get(&words, name) as u64;
                let packet = expected.pop_front().expect("an answer in front of the last write");
                let length = if packet.code == 1 { 0x1_0000 } else { 0 };
                assert_eq!((get("psn"), get("code"), get("message"), get("length"), get("id")), (packet.psn, packet.code, packet.psn ^ 0x55, length, 0x77));
                bad += u64::from(packet.code != 1);
                ended += 1;
            }
            assert!(tb.cycles() < 200_000, "it hangs");
        }
        assert!(writes.is_empty() && waiting.is_empty() && freed.len() == 120 && bad > 20);
        assert_eq!(tb.get("m$valid"), 0);
    }
}
