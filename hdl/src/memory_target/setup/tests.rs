//! Set-up with a played core: what is created, found again, destroyed and refused. The paths through the real one: `target/tests.rs`.
use super::Setup;
use crate::memory_target::model::{datagram, setup_frame, setup_reply, Station};
use crate::msg::{CtlReq, CtlResp};
use crate::tb::{AxisSink, Fields, Sink, Source, Tb};
use ferric_abi::codes::{TargetOp, TargetStatus};
use ferric_abi::target::{SetupReply, SetupRequest, PORT};
use std::collections::HashMap;

const CARD: Station = Station { mac: 0x02fe_1100_0001, ip: 0xc0a8_fe01 };
const FROM: u16 = 5000;

fn peer(n: u8) -> Station {
    Station { mac: 0x0200_0000_0000 + u64::from(n), ip: 0x0a00_0000 + u32::from(n) }
}

struct Lab {
    tb: Tb,
    rx: Source,
    tx: AxisSink,
    req: Sink,
    resp: Source,
    /// Words of responder contexts.
    words: HashMap<(u32, u32), u32>,
    fence: u32,
    fences: u32,
}

impl Lab {
    fn new(stall: u32) -> Lab {
        let mut tb = Tb::new("target_setup", Setup::<13>::default());
        let rx = tb.source_of("rx_", &["data", "last"], stall);
        let tx = tb.axis_sink("tx", stall);
        let (req, resp) = (tb.sink("m_ctl", stall), tb.source("s_ctl", stall));
        tb.set("mac", CARD.mac);
        tb.set("ip", CARD.ip.into());
        let mut lab = Lab { tb, rx, tx, req, resp, words: HashMap::new(), fence: 0, fences: 0 };
        lab.run(1500);
        lab
    }

    fn step(&mut self) {
        let (req, resp) = (Fields::of::<CtlReq>(), Fields::of::<CtlResp>());
        if self.tb.get("barrier") == 1 {
            self.fence = 1 + self.tb.rng().below(60) as u32;
            self.fences += 1;
        }
        self.tb.set("barrier_done", u64::from(self.fence == 1));
        self.fence = self.fence.saturating_sub(1);
        self.tb.cycle();
        while let Some(words) = self.req.pop() {
            let at = (req.get(&words, "line") as u32, req.get(&words, "word") as u32);
            let old = self.words.get(&at).copied().unwrap_or(0);
            if req.get(&words, "write") == 1 {
                self.words.insert(at, req.get(&words, "data") as u32);
            }
            self.resp.push(resp.pack(&[("data", old.into())]));
        }
    }

    fn run(&mut self, cycles: u32) {
        (0..cycles).for_each(|_| self.step());
    }

    fn push(&mut self, frame: &[u8]) {
        for (n, beat) in frame.chunks(8).enumerate() {
            let mut bytes = [0xa5; 8];
            bytes[..beat.len()].copy_from_slice(beat);
            let word = u64::from_le_bytes(bytes);
            self.rx.push_fields(&[&[word as u32, (word >> 32) as u32], &[u32::from(8 * (n + 1) >= frame.len())]]);
        }
    }

    /// The answer to a frame, if there is one in 2000 cycles.
    fn exchange(&mut self, from: Station, frame: &[u8]) -> Option<SetupReply> {
        self.push(frame);
        for _ in 0..2000 {
            self.step();
            if let Some(frame) = self.tx.pop() {
                self.run(20);
                return Some(setup_reply(&frame, CARD, from, FROM).expect("an answer"));
            }
        }
        None
    }

    fn ask(&mut self, from: u8, seq: u32, op: TargetOp, request: SetupRequest) -> SetupReply {
        let frame = setup_frame(peer(from), CARD, FROM, request.with_op(op as u8).with_seq(seq));
        let reply = self.exchange(peer(from), &frame).expect("an answer");
        assert_eq!((reply.op(), reply.seq()), (op as u8, seq));
        reply
    }
}

fn qp(n: u32) -> SetupRequest {
    SetupRequest::default().with_peer_qpn(n).with_first_psn(n * 3).with_pmtu(3).with_rights(5).with_pkey(0x8001).with_pd(0x77).with_rnr_timer(9)
}

#[test]
fn queue_pairs_are_found_again() {
    let mut lab = Lab::new(30);
    let first = lab.ask(1, 1, TargetOp::CreateQp, qp(40));
    assert_eq!((first.status(), first.object()), (0, 2));
    assert_eq!(lab.tb.get("active"), 1);
    let words: Vec<u32> = (0..16).map(|w| lab.words[&(2, w)]).collect();
    assert_eq!(words[0] & 0xff_ffff, 2 | 3 << 6 | 9 << 9 | 1 << 14 | 1 << 16, "state, MTU, timer, rights");
    assert_eq!((words[2], words[3] >> 16, words[4], words[5], words[6]), (0x77, 0x8001, 40, 120, 0));
    assert_eq!(words[14] >> 24, 1, "receives from the ring");
    let (epoch, fences) = (words[0] >> 24, lab.fences);
    // The same request once more changes nothing, another one for the same peer begins anew.
    assert_eq!(lab.ask(1, 1, TargetOp::CreateQp, qp(40).with_first_psn(5)).object(), 2);
    assert_eq!((lab.words[&(2, 5)], lab.fences), (120, fences));
    assert_eq!(lab.ask(1, 2, TargetOp::CreateQp, qp(40).with_first_psn(5)).object(), 2);
    assert_eq!((lab.words[&(2, 5)], lab.words[&(2, 0)] >> 24, lab.fences), (5, epoch + 1, fences + 1));
    // Others get others, until there are none.
    for n in 3..16 {
        assert_eq!(lab.ask(n as u8, 1, TargetOp::CreateQp, qp(40)).object(), n);
    }
    assert_eq!(lab.ask(1, 3, TargetOp::CreateQp, qp(41)).status(), TargetStatus::Full as u8);
    // Only whose it is may end it, once, and ask twice.
    let it = SetupRequest::default().with_object(5);
    assert_eq!(lab.ask(4, 9, TargetOp::DestroyQp, it).status(), TargetStatus::NotFound as u8);
    assert_eq!(lab.ask(5, 9, TargetOp::DestroyQp, it).status(), 0);
    assert_eq!(lab.words[&(5, 0)] & 7, 0);
    assert_eq!(lab.ask(5, 9, TargetOp::DestroyQp, it).status(), 0);
    assert_eq!(lab.ask(5, 10, TargetOp::DestroyQp, it).status(), TargetStatus::NotFound as u8);
    assert_eq!(lab.ask(1, 3, TargetOp::CreateQp, qp(41)).object(), 5);
    for bad in [qp(1).with_pmtu(0), qp(1).with_pmtu(6), qp(1).with_rights(8), qp(1).with_rnr_timer(32)] {
        assert_eq!(lab.ask(1, 50, TargetOp::CreateQp, bad).status(), TargetStatus::Refused as u8);
    }
    for object in [0, 1, 0x12, 0x1_0002] {
        assert_eq!(lab.ask(1, 51, TargetOp::DestroyQp, SetupRequest::default().with_object(object)).status(), TargetStatus::NotFound as u8);
    }
    let state = lab.ask(1, 52, TargetOp::Query, SetupRequest::default().with_object(2));
    assert_eq!((state.state(), state.epsn(), state.msn(), state.refused()), (2, 5, 0, 11));
    // A reset forgets them all.
    lab.tb.reset();
    lab.run(1500);
    assert_eq!(lab.tb.get("active"), 0);
    assert!((0..16).all(|line| lab.words[&(line, 0)] & 7 == 0));
}

#[test]
fn keys_lie_in_the_ram() {
    let mut lab = Lab::new(20);
    let key = |start, length| SetupRequest::default().with_start(start).with_length(length).with_rights(3).with_pd(4);
    let first = lab.ask(1, 1, TargetOp::CreateKey, key(0, 0x10000)).object();
    assert_eq!(first >> 8, 1);
    assert_eq!(lab.ask(1, 1, TargetOp::CreateKey, key(0, 0x10000)).object(), first);
    assert_eq!(lab.ask(2, 1, TargetOp::CreateKey, key(0xffff, 1)).object() >> 8, 2);
    for (n, bad) in [key(0, 0x10001), key(1, 0x10000), key(0x10000, 1), key(u32::MAX, u32::MAX), key(5, 0), key(0, 1).with_rights(8)].into_iter().enumerate() {
        assert_eq!(lab.ask(1, 100 + n as u32, TargetOp::CreateKey, bad).status(), TargetStatus::Refused as u8, "case {n}");
    }
    let it = |object| SetupRequest::default().with_object(object);
    for object in [first ^ 1, first ^ 0x1000, 0, 2 << 8] {
        assert_eq!(lab.ask(1, 200, TargetOp::DestroyKey, it(object)).status(), TargetStatus::NotFound as u8);
    }
    let fences = lab.fences;
    assert_eq!(lab.ask(1, 201, TargetOp::DestroyKey, it(first)).status(), 0);
    assert_eq!(lab.fences, fences + 1);
    let again = lab.ask(1, 202, TargetOp::CreateKey, key(0, 8)).object();
    assert!(again >> 8 == 1 && again != first, "another variant");
    for n in 3..16 {
        assert_eq!(lab.ask(1, 300 + n, TargetOp::CreateKey, key(0, 8)).object() >> 8, n);
    }
    assert_eq!(lab.ask(1, 400, TargetOp::CreateKey, key(0, 8)).status(), TargetStatus::Full as u8);
}

#[test]
fn the_ring_is_set_while_nobody_sends() {
    let mut lab = Lab::new(0);
    let ring = |start, slot, count| SetupRequest::default().with_start(start).with_log_slot(slot).with_log_count(count);
    for bad in [ring(0x800, 6, 0), ring(0, 5, 0), ring(0, 13, 0), ring(0, 6, 7), ring(0x1000, 12, 4), ring(0xffff_f000, 12, 6)] {
        assert_eq!(lab.ask(1, 1, TargetOp::SetRing, bad).status(), TargetStatus::Refused as u8);
    }
    let set = lab.ask(1, 2, TargetOp::SetRing, ring(0, 12, 4));
    assert_eq!((set.status(), set.ring_base(), set.ring_log_slot(), set.ring_log_count()), (0, 0, 12, 4));
    lab.ask(1, 3, TargetOp::CreateQp, qp(1));
    assert_eq!(lab.ask(1, 4, TargetOp::SetRing, ring(0x1000, 11, 2)).status(), TargetStatus::Refused as u8);
    assert_eq!(lab.ask(1, 5, TargetOp::SetRing, ring(0, 12, 4)).status(), 0);
    lab.tb.set("ring_head", 9);
    assert_eq!(lab.ask(1, 9, TargetOp::SetRing, ring(0, 12, 4)).ring_consumer(), 0, "the same ring");
    assert_eq!(lab.ask(1, 6, TargetOp::Release, SetupRequest::default().with_consumer(10)).status(), TargetStatus::Refused as u8);
    assert_eq!(lab.ask(1, 7, TargetOp::Release, SetupRequest::default().with_consumer(9)).ring_consumer(), 9);
    assert_eq!(lab.tb.get("ring_consumer"), 9);
    assert_eq!(lab.ask(1, 8, TargetOp::Release, SetupRequest::default().with_consumer(8)).status(), TargetStatus::Refused as u8);
}

/// Frames that are not for us, broken ones, and requests right behind others.
#[test]
fn what_is_not_a_request() {
    let mut lab = Lab::new(0);
    let good = setup_frame(peer(1), CARD, FROM, SetupRequest::default().with_seq(77));
    assert!(lab.exchange(peer(1), &good).is_some());
    // Length, magic, version, operation: answered.
    for (n, body) in [(62, 0), (30, 0), (80, 0), (64, 1), (64, 2), (64, 3)] {
        let mut payload = good[42..].to_vec();
        payload.resize(n, 0);
        match body {
            1 => payload[0] ^= 1,
            2 => payload[4] = 9,
            3 => payload[5] = 7,
            _ => {}
        }
        let reply = lab.exchange(peer(1), &datagram(peer(1), CARD, (FROM, PORT), &payload)).expect("an answer");
        assert_eq!(reply.status(), if body == 3 { TargetStatus::UnknownOp } else { TargetStatus::Malformed } as u8, "{n} {body}");
    }
    // Address, port, protocol, checksum, fragments: not for us.
    for (at, bit) in [(0, 0), (12, 0), (23, 1), (24, 0), (33, 0), (37, 0), (20, 5)] {
        let mut frame = good.clone();
        frame[at] ^= 1 << bit;
        assert!(lab.exchange(peer(1), &frame).is_none(), "byte {at}");
    }
    // Any frames in front.
    for n in 0..200 {
        let len = lab.tb.rng().range(60, 300) as usize;
        let noise = lab.tb.rng().bytes(len);
        lab.push(&noise);
        let reply = lab.exchange(peer(1), &setup_frame(peer(1), CARD, FROM, SetupRequest::default().with_seq(n))).expect("an answer");
        assert_eq!((reply.seq(), reply.status()), (n, 0));
    }
}
