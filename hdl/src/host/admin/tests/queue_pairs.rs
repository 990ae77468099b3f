//! Queue pairs: their life from RESET to their end, and what their commands refuse.

use super::card::Event;
use super::commands::*;
use super::Bench;
use ferric_abi::codes::AdminOpcode::*;
use ferric_abi::codes::AdminStatus::*;
use ferric_abi::context::{MrCtx, PathCtx, ReqCtx, RspCtx};
use ferric_abi::csr::space;

pub(super) fn queue_pair_life(b: &mut Bench) {
    basics(b);
    let good = qp_params(0, 2, 3, 4);
    let mut bad = vec![(BadParameter, qp_params(4, 2, 3, 4)), (BadState, qp_params(0, 1, 3, 4)), (BadId, qp_params(0, 2, 3, 16)), (BadState, qp_params(0, 2, 5, 4))];
    for (word, value) in [(4, 0x80), (6, 0), (7, 0x40), (9, 0)] {
        let mut p = good;
        p[word] = value;
        bad.push((BadParameter, p));
    }
    for (status, params) in bad {
        b.expect(status, 1, CreateQp, 6, &params);
    }
    b.expect(BadId, 2, CreateQp, 6, &good);
    b.expect(BadId, 1, CreateQp, 16, &good);
    // A former life of the number has left its epochs and some rubbish.
    b.card.set(space::REQ, 6, 0, 0x4f00_0007);
    b.card.set(space::RSP, 6, 0, 0xffff_ffff);
    b.card.set(space::RSP, 6, 12, 0x1234);
    b.expect(Ok, 1, CreateQp, 6, &good);
    b.expect(BadState, 1, CreateQp, 6, &good);
    // Management belongs to the physical function.
    b.expect(BadId, 1, CreateQp, 1, &good);
    let ring = ring_line(0).with_function(1).with_valid(false).with_active(false);
    assert_eq!(req(b, 6), ReqCtx::default().with_sig_all(true).with_epoch(0x4f).with_scqn(3).with_pd(2).with_eqn(1).with_function(1));
    assert_eq!(rsp(b, 6), RspCtx::default().with_epoch(0xff).with_rcqn(4).with_pd(2).with_function(1).with_rq(6).with_rq_pd(2));
    assert_eq!(sq(b, 6), ring.with_base(0x10_0000_0100).with_epoch(0x4f));
    assert_eq!(rq(b, 6), ring.with_base(0x11_0000_0200).with_epoch(0xff));
    b.expect(InUse, 1, DestroyPd, 2, &[]);
    b.expect(InUse, 1, DestroyCq, 3, &[]);
    b.expect(InUse, 1, DestroyCq, 4, &[]);
    // States in the wrong order
    for state in [2, 3] {
        b.expect(BadState, 1, ModifyQp, 6, &[state]);
    }
    b.expect(BadState, 1, ModifyQp, 6, &[4]);
    for state in [5, 7, u32::MAX] {
        b.expect(BadParameter, 1, ModifyQp, 6, &[state]);
    }
    b.expect(BadId, 0, ModifyQp, 6, &[1]);
    b.expect(Ok, 1, ModifyQp, 6, &[1, 0b010 << 19, 0, 0, 0, 0x8001, 0, 0x8765_4321]);
    assert_eq!((req(b, 6).state(), rsp(b, 6).state()), (1, 1));
    assert_eq!((req(b, 6).pkey(), rsp(b, 6).pkey()), (0x8001, 0x8001));
    assert_eq!((rsp(b, 6).remote_write(), rsp(b, 6).remote_read(), rsp(b, 6).remote_atomic()), (false, true, false));
    assert_eq!(rsp(b, 6).qkey(), 0x8765_4321);
    assert_eq!((sq(b, 6).valid(), rq(b, 6).valid()), (false, true));
    b.expect(BadState, 1, ModifyQp, 6, &[1]);
    for pmtu in [0, 6, 7] {
        b.expect(BadParameter, 1, ModifyQp, 6, &rtr_params(pmtu));
    }
    let mut many = rtr_params(5);
    many[6] = 17 << 8;
    b.expect(BadParameter, 1, ModifyQp, 6, &many);
    b.expect(Ok, 1, ModifyQp, 6, &rtr_params(5));
    let r = req(b, 6);
    assert_eq!((r.state(), r.pmtu(), r.vlan(), r.ipv6(), r.dest_qpn(), r.epoch()), (2, 5, true, false, 0x12_3456, 0x4f));
    let s = rsp(b, 6);
    assert_eq!((s.state(), s.pmtu(), s.vlan(), s.ipv6(), s.dest_qpn(), s.epsn(), s.min_rnr_timer()), (2, 5, true, false, 0x12_3456, 0x100, 17));
    assert_eq!((s.remote_write(), s.remote_read(), s.remote_atomic(), s.epoch()), (true, false, true, 0xff));
    let path = PathCtx(line(&b.card, space::PATH, 6));
    assert_eq!((path.dmac(), path.dip(), path.valid(), path.vlan(), path.ipv6(), path.hop_limit()), (0x0102_0304_0506, 0x0a00_0001, true, true, false, 64));
    assert_eq!(path.qkey(), 0x8765_4321);
    // The responder works already: what it does must survive.
    let busy = s.with_in_msg(2).with_nak_sent(true);
    b.card.set(space::RSP, 6, 0, words::<1>(&busy.0)[0]);
    b.expect(BadParameter, 1, ModifyQp, 6, &[3, 0, 0, 0, 0, 0xffff, 17]);
    b.expect(Ok, 1, ModifyQp, 6, &[3, 14 << 3 | 6 << 8 | 7 << 11, 0, 0, 0xff00_0200, 0xffff, 16]);
    assert_eq!(rsp(b, 6), busy);
    let r = req(b, 6);
    assert_eq!((r.max_rd_atomic(), s.max_dest_rd_atomic(), r.scqn(), s.rcqn()), (16, 4, 3, 4));
    assert_eq!((r.state(), r.timeout(), r.retry_cnt(), r.rnr_retry(), r.pmtu()), (3, 14, 6, 7, 5));
    assert_eq!((r.next_psn(), r.una_psn(), r.max_psn(), r.una_wqe_psn(), r.retries_left(), r.rnr_left()), (0x200, 0x200, 0x200, 0x200, 6, 7));
    assert_eq!((r.parked(), r.rnr_wait(), r.timer_on(), r.una_index(), r.next_index(), r.msg_offset()), (false, false, false, 0, 0, 0));
    assert!(sq(b, 6).valid() && sq(b, 6).epoch() == r.epoch());
    b.card.set(space::SQ, 6, 4, 0x0012_0034);
    let q = b.expect(Ok, 1, QueryQp, 6, &[]);
    assert_eq!((q[0] & 7, q[1] & 0xff_ffff, q[2] & 0xff_ffff, q[4] & 7, q[5], q[7]), (3, 0x200, 0x200, 3, 0x100, 0x0012_0034));
    b.expect(BadId, 0, QueryQp, 6, &[]);
    // SQD and back
    b.expect(Ok, 1, ModifyQp, 6, &[4]);
    // The responder stays where INIT -> RTR has put it.
    assert_eq!((req(b, 6).state(), rsp(b, 6).state()), (4, 2));
    b.expect(BadState, 1, ModifyQp, 6, &[4]);
    b.expect(Ok, 1, ModifyQp, 6, &[3]);
    assert_eq!(req(b, 6).state(), 3);
    // SQ error: the requester begins anew where the flush has ended.
    let failed = req(b, 6)
        .with_state(5)
        .with_max_psn(0x4321)
        .with_next_psn(0x99)
        .with_una_psn(0x80)
        .with_error_pending(true)
        .with_una_index(0x30)
        .with_next_index(0x31)
        .with_sent_index(0x32)
        .with_done_index(0x33)
        .with_msg_offset(256)
        .with_retries_left(5)
        .with_rnr_left(6);
    set_line(b, space::REQ, 6, &failed.0);
    b.card.set(space::SQ, 6, 4, 0x0034_0034);
    b.card.set(space::SQ, 6, 2, b.card.word(space::SQ, 6, 2) | 1 << 23);
    assert!(sq(b, 6).flush());
    b.expect(BadState, 1, ModifyQp, 6, &[1]);
    b.expect(Ok, 1, ModifyQp, 6, &[3]);
    let r = req(b, 6);
    assert_eq!((r.state(), r.next_psn(), r.una_psn(), r.max_psn(), r.una_wqe_psn(), r.error_pending()), (3, 0x4321, 0x4321, 0x4321, 0x4321, false));
    assert_eq!((r.una_index(), r.next_index(), r.sent_index(), r.done_index(), r.msg_offset()), (0x34, 0x34, 0x34, 0x34, 0));
    assert_eq!((r.retries_left(), r.rnr_left(), r.epoch(), sq(b, 6).flush(), sq(b, 6).valid()), (5, 6, failed.epoch(), false, true));
    b.card.set(space::SQ, 6, 4, 0x0012_0034);
    // To RESET, in mid-message and with a local operation under way
    let (half, busy) = (rsp(b, 6).with_rq_handle(0x85), req(b, 6).with_local(1));
    set_line(b, space::RSP, 6, &half.0);
    set_line(b, space::REQ, 6, &busy.0);
    b.card.answer_in = 5;
    let start = b.card.log.len();
    b.expect(Ok, 1, ModifyQp, 6, &[0]);
    assert_eq!(b.card.answer_in, 0, "the key unit is awaited");
    let back = b.card.log[start..].iter().position(|e| matches!(e, Event::Error { port: 3, qpn: 6, .. })).expect("the receive goes back");
    let barrier = b.card.log[start..].iter().position(|e| *e == Event::Barrier).expect("a barrier");
    assert!(back < barrier);
    let (r, s) = (req(b, 6), rsp(b, 6));
    assert_eq!((r.state(), s.state(), s.in_msg(), s.nak_sent(), s.epoch()), (0, 0, 0, false, 0));
    assert!(r.epoch() != 0x4f && r.epoch() == sq(b, 6).epoch());
    assert_eq!((r.next_psn(), r.una_index(), s.epsn(), sq(b, 6).producer(), sq(b, 6).fetch()), (0, 0, 0, 0, 0));
    assert_eq!((sq(b, 6).valid(), rq(b, 6).valid(), PathCtx(line(&b.card, space::PATH, 6)).valid()), (false, false, false));
    assert_eq!((sq(b, 6).log_size(), sq(b, 6).stride(), sq(b, 6).function()), (5, 2, 1));
    assert_eq!((r.scqn(), r.pd(), r.function(), r.sig_all()), (3, 2, 1, true));
    // And up again with the same epochs everywhere
    b.expect(Ok, 1, ModifyQp, 6, &[1, 0, 0, 0, 0, 0xffff]);
    b.expect(Ok, 1, ModifyQp, 6, &rtr_params(1));
    b.expect(Ok, 1, ModifyQp, 6, &[3, 0, 0, 0, 7, 0xffff, 0]);
    assert_eq!(req(b, 6).epoch(), sq(b, 6).epoch());
    // With it go the windows of type 2 that were bound through it, and no other.
    let window = mr_line().with_valid(true).with_window(true).with_fast(true).with_qpn(6);
    let lines = [window, window.with_qpn(7), window.with_fast(false), window.with_window(false), window.with_valid(false)];
    for (number, line) in (20..).zip(&lines) {
        b.expect(Ok, 1, CreateMr, number, &mr_params(*line));
        set_line(b, space::MR, number, &line.0);
    }
    // Regions that come and go are no windows less.
    for _ in &lines {
        b.expect(Ok, 1, CreateMr, 30, &mr_params(mr_line()));
        b.expect(Ok, 1, DestroyMr, 30, &[]);
    }
    b.expect(Ok, 1, DestroyQp, 6, &[]);
    for (number, was) in (20..).zip(lines) {
        let goes = number == 20;
        assert_eq!(MrCtx(line(&b.card, space::MR, number)), if goes { was.with_valid(false) } else { was }, "window {number}");
        b.expect(Ok, 1, DestroyMr, number, &[]);
    }
    b.expect(BadState, 1, DestroyQp, 6, &[]);
    for (opcode, id) in [(DestroyCq, 3), (DestroyCq, 4), (DestroyEq, 1), (DestroyPd, 2)] {
        b.expect(Ok, 1, opcode, id, &[]);
    }
}

pub(super) fn queue_pair_errors(b: &mut Bench) {
    basics(b);
    b.expect(Ok, 1, CreateQp, 7, &qp_params(0, 2, 3, 3));
    let start = b.card.log.len();
    b.expect(Ok, 1, ModifyQp, 7, &[6]);
    assert_eq!((req(b, 7).state(), rsp(b, 7).state()), (6, 6));
    assert!(!b.card.log[start..].iter().any(|e| matches!(e, Event::Error { .. })), "nothing to flush");
    b.expect(BadState, 1, ModifyQp, 7, &[1]);
    b.expect(Ok, 1, ModifyQp, 7, &[0]);
    b.expect(Ok, 1, ModifyQp, 7, &[1, 0, 0, 0, 0, 0xffff]);
    let start = b.card.log.len();
    b.expect(Ok, 1, ModifyQp, 7, &[6]);
    let ports: Vec<_> = b.card.log[start..].iter().filter_map(|e| if let Event::Error { port, qpn: 7, .. } = e { Some(*port) } else { None }).collect();
    assert_eq!(ports, [0, 1]);
    b.expect(Ok, 1, ModifyQp, 7, &[6]);
    b.expect(Ok, 1, DestroyQp, 7, &[]);
    b.expect(Ok, 1, DestroyCq, 3, &[]);
    b.expect(Ok, 1, DestroyCq, 4, &[]);
    b.expect(Ok, 1, DestroyEq, 1, &[]);
    b.expect(Ok, 1, DestroyPd, 2, &[]);
}
