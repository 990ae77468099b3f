//! Every command of docs/admin.md, its checks and its effects.

use super::super::program::SCRATCH_BITS;
use super::card::{Card, Event, COUNTERS};
use super::{addresses, flows, functions, pause, queue_pairs, raw, stations, tunnel, Bench, SIZES};
use crate::stats;
use ferric_abi::codes::AdminOpcode::*;
use ferric_abi::codes::AdminStatus::*;
use ferric_abi::context::{CqCtx, EqCtx, McastCtx, MrCtx, PathCtx, ReqCtx, RingCtx, RspCtx};
use ferric_abi::csr::{space, PORT_PROMISCUOUS, PORT_RAW};

pub(super) fn words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    std::array::from_fn(|i| u32::from_le_bytes([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]]))
}

/// Line `line` of a table as its record's bytes.
pub(super) fn line<const N: usize>(card: &Card, space: u8, line: u32) -> [u8; N] {
    let mut out = [0; N];
    for (i, bytes) in out.chunks_exact_mut(4).enumerate() {
        bytes.copy_from_slice(&card.word(space, line, i as u8).to_le_bytes());
    }
    out
}
pub(super) fn set_line(b: &mut Bench, space: u8, line: u32, bytes: &[u8]) {
    for (word, value) in bytes.chunks(4).enumerate() {
        b.card.set(space, line, word as u8, u32::from_le_bytes(value.try_into().expect("four bytes")));
    }
}
pub(super) fn req(b: &Bench, qp: u32) -> ReqCtx {
    ReqCtx(line(&b.card, space::REQ, qp))
}
pub(super) fn rsp(b: &Bench, qp: u32) -> RspCtx {
    RspCtx(line(&b.card, space::RSP, qp))
}
pub(super) fn sq(b: &Bench, qp: u32) -> RingCtx {
    RingCtx(line(&b.card, space::SQ, qp))
}
/// Receive ring `n`: a queue pair's, or, from 16 on, that of a shared receive queue.
pub(super) fn rq(b: &Bench, qp: u32) -> RingCtx {
    RingCtx(line(&b.card, space::RQ, qp))
}

/// Reserved and card-owned bits set on purpose.
pub(super) fn cq_params(eqn: u8) -> [u32; 4] {
    words(&CqCtx::default().with_base(0x5_0000_0040).with_log_size(6).with_function(0xfff).with_armed(true).with_overflow(true).with_eqn(eqn).0)
}
pub(super) fn eq_params() -> [u32; 4] {
    words(&EqCtx::default().with_base(0x6_0000_0080).with_log_size(4).with_overflow(true).with_vector(9).with_rsvd2(77).0)
}
pub(super) fn mr_line() -> MrCtx {
    MrCtx::default()
        .with_local_write(true)
        .with_remote_read(true)
        .with_variant(0x5a)
        .with_page_size(2)
        .with_function(0xabc)
        .with_pd(2)
        .with_start(0xffff_ffff_f000)
        .with_length(0x1_2345_6789)
        .with_table(0x77_0000_0040)
}
pub(super) fn mr_params(line: MrCtx) -> [u32; 8] {
    words(&line.0)
}
pub(super) fn ring_line(base: u64) -> RingCtx {
    RingCtx::default().with_base(base).with_log_size(5).with_stride(2).with_valid(true).with_active(true).with_function(0x123)
}
pub(super) fn qp_params(kind: u32, pd: u32, scq: u32, rcq: u32) -> [u32; 10] {
    let s: [u32; 3] = words(&ring_line(0x10_0000_0100).0);
    let r: [u32; 3] = words(&ring_line(0x11_0000_0200).0);
    [kind | 8, pd, scq, rcq, s[0], s[1], s[2], r[0], r[1], r[2]]
}

pub(super) fn rtr_params(pmtu: u32) -> [u32; 24] {
    let path = PathCtx::default().with_dmac(0x0102_0304_0506).with_dip(0x0a00_0001).with_sip(0x0a00_0002).with_hop_limit(64).with_vlan_tci(5).with_pkey(0xffff);
    let mut p = [0; 24];
    p[..7].copy_from_slice(&[2, pmtu | 17 << 14 | 0b101 << 19 | 1 << 23, 0xff12_3456, 0xff00_0100, 0, 0xffff, 4 << 8]);
    p[8..].copy_from_slice(&words::<16>(&path.0));
    p
}

/// PD 2, EQ 1, CQ 3 and 4 of function 1.
pub(super) fn basics(b: &mut Bench) {
    basics_of(b, 1);
}

pub(super) fn basics_of(b: &mut Bench, f: usize) {
    b.expect(Ok, f, CreatePd, 2, &[]);
    b.expect(Ok, f, CreateEq, 1, &eq_params());
    b.expect(Ok, f, CreateCq, 3, &cq_params(1));
    b.expect(Ok, f, CreateCq, 4, &cq_params(1));
}

/// Runs everything.
pub fn all(b: &mut Bench) {
    for f in 0..4 {
        b.expect(Ok, f, Nop, 0, &[]);
    }
    let n = b.produced[1];
    let iova = b.post(1, 99, 0, &[]);
    assert_eq!(b.wait(1, iova, n).0, BadOpcode);
    functions::all(b);
    // From here on functions 1 and 2 may use every number, too: what is refused is so for other reasons.
    for f in 1..3 {
        for (kind, log) in [SIZES.qp, SIZES.cq, SIZES.mr, SIZES.pd, SIZES.eq, SIZES.qp].into_iter().enumerate() {
            b.expect(Ok, 0, SetRange, f, &[kind as u32, log << 24]);
        }
    }
    unreadable(b);
    simple_objects(b);
    regions(b);
    queue_pairs::queue_pair_life(b);
    queue_pairs::queue_pair_errors(b);
    shared_queues(b);
    groups(b);
    addresses::all(b);
    stations::all(b);
    pause::all(b);
    tunnel::all(b);
    raw::all(b);
    flows::all(b);
    ports_and_queries(b);
    rounds(b);
    resets(b);
    assert_eq!(b.card.refused, b.refused, "refused commands are counted");
}

fn unreadable(b: &mut Bench) {
    let slot = Card::ring(2) + 128 * u64::from(b.produced[2] % 2);
    b.card.unreadable.insert(slot);
    b.expect(DmaError, 2, CreatePd, 0, &[]);
    b.card.unreadable.clear();
    b.expect(BadState, 2, DestroyPd, 0, &[]);
}

fn simple_objects(b: &mut Bench) {
    basics(b);
    for (create, params, last) in [(CreatePd, vec![], 7), (CreateEq, eq_params().to_vec(), 3), (CreateCq, cq_params(1).to_vec(), 15)] {
        b.expect(BadId, 1, create, last + 1, &params);
        b.expect(BadId, 1, create, u32::MAX, &params);
    }
    b.expect(BadState, 1, CreatePd, 2, &[]);
    b.expect(BadState, 2, CreatePd, 2, &[]);
    b.expect(BadId, 2, DestroyPd, 2, &[]);
    b.expect(BadState, 1, DestroyPd, 3, &[]);
    let eq = EqCtx(line(&b.card, space::EQ, 1));
    let expected = EqCtx::default().with_base(0x6_0000_0080).with_log_size(4).with_function(1).with_valid(true).with_vector(9);
    assert_eq!(eq, expected);
    let cq = CqCtx(line(&b.card, space::CQ, 4));
    assert_eq!(cq, CqCtx::default().with_base(0x5_0000_0040).with_log_size(6).with_function(1).with_valid(true).with_eqn(1));
    for (word, value) in [(0, 0x20), (2, 0)] {
        let (mut e, mut c) = (eq_params(), cq_params(1));
        (e[word], c[word]) = (value, value);
        b.expect(BadParameter, 1, CreateEq, 2, &e);
        b.expect(BadParameter, 1, CreateCq, 2, &c);
    }
    b.expect(BadState, 1, CreateCq, 2, &cq_params(0));
    b.expect(BadId, 1, CreateCq, 2, &cq_params(4));
    b.expect(BadId, 2, CreateCq, 2, &cq_params(1));
    b.expect(InUse, 1, DestroyEq, 1, &[]);
    b.expect(Ok, 1, DestroyCq, 3, &[]);
    b.expect(InUse, 1, DestroyEq, 1, &[]);
    b.expect(Ok, 1, DestroyCq, 4, &[]);
    assert!(!CqCtx(line(&b.card, space::CQ, 4)).valid());
    b.expect(Ok, 1, DestroyEq, 1, &[]);
    assert!(!EqCtx(line(&b.card, space::EQ, 1)).valid());
    b.expect(Ok, 1, DestroyPd, 2, &[]);
    b.expect(BadState, 1, DestroyPd, 2, &[]);
}

fn regions(b: &mut Bench) {
    basics(b);
    let good = mr_line();
    b.expect(Ok, 1, CreateMr, 31, &mr_params(good));
    assert_eq!(MrCtx(line(&b.card, space::MR, 31)), good.with_function(1).with_valid(true));
    b.expect(BadState, 1, CreateMr, 31, &mr_params(good));
    b.expect(BadId, 1, CreateMr, 32, &mr_params(good));
    let bad = [
        (BadState, good.with_pd(1)),
        (BadId, good.with_pd(9)),
        (BadParameter, good.with_length(0)),
        (BadParameter, good.with_table(0x20)),
        (BadParameter, good.with_page_size(3)),
        (BadParameter, good.with_start(u64::MAX).with_length(1)),
        (BadParameter, good.with_start(1).with_length(u64::MAX)),
        (BadParameter, good.with_start(0xffff_ffff_ffff_0000).with_length(0x1_0000)),
    ];
    for (status, line) in bad {
        b.expect(status, 1, CreateMr, 30, &mr_params(line));
    }
    b.expect(BadId, 2, CreateMr, 30, &mr_params(good));
    let whole = good.with_start(0).with_length(u64::MAX).with_direct(true).with_table(0x1234);
    b.expect(Ok, 1, CreateMr, 30, &mr_params(whole));
    b.expect(InUse, 1, DestroyPd, 2, &[]);
    b.expect(BadId, 0, DestroyMr, 31, &[]);
    b.expect(Ok, 1, DestroyMr, 30, &[]);
    let start = b.card.log.len();
    b.expect(Ok, 1, DestroyMr, 31, &[]);
    assert!(!MrCtx(line(&b.card, space::MR, 31)).valid());
    // Invalid first, then what is under way, then the cache, and nothing is said before it is empty.
    let kind = |e: &Event| match e {
        Event::Control { space: space::MR, word: 0, write: Some(0), .. } => Some('v'),
        Event::Invalidate => Some('i'),
        Event::Clean => Some('e'),
        Event::Barrier => Some('b'),
        Event::Quiesce { writes } => Some(if *writes { 'w' } else { 'r' }),
        Event::Write { .. } => Some('c'),
        _ => None,
    };
    assert_eq!(b.card.log[start..].iter().filter_map(kind).collect::<String>(), "vbrwiec");
    for (opcode, id) in [(DestroyCq, 3), (DestroyCq, 4), (DestroyEq, 1), (DestroyPd, 2)] {
        b.expect(Ok, 1, opcode, id, &[]);
    }
}

fn srq_params(pd: u32, eq: u32) -> [u32; 5] {
    let r: [u32; 3] = words(&ring_line(0x12_0000_0300).with_flush(true).with_error(true).0);
    [pd, eq, r[0], r[1], r[2]]
}

fn shared_queues(b: &mut Bench) {
    basics(b);
    b.expect(Ok, 1, CreatePd, 3, &[]);
    let good = srq_params(3, 1);
    let mut bad = vec![(BadState, srq_params(4, 1)), (BadId, srq_params(8, 1)), (BadState, srq_params(3, 2)), (BadId, srq_params(3, 4))];
    for (word, value) in [(2, 0x40), (4, 0)] {
        let mut params = good;
        params[word] = value;
        bad.push((BadParameter, params));
    }
    for (status, params) in bad {
        b.expect(status, 1, CreateSrq, 6, &params);
    }
    b.expect(BadId, 1, CreateSrq, 16, &good);
    b.card.set(space::RQ, 22, 5, 0xffff);
    b.expect(Ok, 1, CreateSrq, 6, &good);
    b.expect(BadState, 1, CreateSrq, 6, &good);
    b.expect(InUse, 1, DestroyPd, 3, &[]);
    let ring = RingCtx::default().with_base(0x12_0000_0300).with_log_size(5).with_stride(2).with_function(1).with_valid(true).with_shared(true).with_pd(3).with_eqn(1);
    assert_eq!(rq(b, 22), ring);
    // The limit, at most the size of the ring
    b.expect(BadParameter, 1, ModifySrq, 6, &[33]);
    b.expect(Ok, 1, ModifySrq, 6, &[32]);
    assert_eq!(rq(b, 22), ring.with_limit(32));
    b.card.set(space::RQ, 22, 4, 0x0012_0034);
    let q = b.expect(Ok, 1, QuerySrq, 6, &[]);
    assert_eq!(q[..4], [words::<8>(&ring.0)[2], 0x0012_0034, 32, 1 << 24 | 3]);
    for (opcode, params) in [(ModifySrq, &[1][..]), (QuerySrq, &[]), (DestroySrq, &[])] {
        b.expect(BadId, 0, opcode, 6, params);
        b.expect(BadState, 1, opcode, 7, params);
        b.expect(BadId, 1, opcode, 16, params);
    }
    // Queue pairs on it: their own receive ring stays invalid.
    let on = |kind: u32, srq: u32| {
        let mut params = [0; 11];
        params[..10].copy_from_slice(&qp_params(kind | 16, 2, 3, 4));
        params[10] = srq;
        // Nobody looks at the receive ring.
        params[9] = 0;
        params
    };
    b.expect(Denied, 1, CreateQp, 6, &on(3, 6));
    b.expect(BadState, 1, CreateQp, 6, &on(0, 7));
    b.expect(BadId, 1, CreateQp, 6, &on(0, 16));
    for (kind, id) in [(0, 6), (1, 7), (2, 8)] {
        b.expect(Ok, 1, CreateQp, id, &on(kind, 6));
        let r = rsp(b, id);
        assert_eq!((r.rq(), r.srq(), r.rq_pd(), r.pd()), (22, true, 3, 2));
        b.expect(Ok, 1, ModifyQp, id, &[1, 0, 0, 0, 0, 0xffff]);
        assert!(!rq(b, id).valid() && rsp(b, id).state() == 1);
        b.expect(Ok, 1, ModifyQp, id, &[0]);
        assert_eq!((rsp(b, id).rq(), rsp(b, id).srq()), (22, true));
        b.expect(InUse, 1, DestroySrq, 6, &[]);
    }
    assert_eq!(rq(b, 22).limit(), 32, "the queue is none of theirs");
    b.expect(Ok, 1, DestroyQp, 6, &[]);
    b.expect(Ok, 1, DestroyQp, 7, &[]);
    b.expect(InUse, 1, DestroySrq, 6, &[]);
    b.expect(Ok, 1, DestroyQp, 8, &[]);
    // The number's next life has a ring of its own again.
    b.expect(Ok, 1, CreateQp, 8, &qp_params(0, 2, 3, 4));
    assert_eq!((rsp(b, 8).rq(), rsp(b, 8).srq(), rsp(b, 8).rq_pd()), (8, false, 2));
    b.expect(Ok, 1, DestroySrq, 6, &[]);
    assert!(!rq(b, 22).valid());
    b.expect(BadState, 1, DestroySrq, 6, &[]);
    for (opcode, id) in [(DestroyQp, 8), (DestroyPd, 3)] {
        b.expect(Ok, 1, opcode, id, &[]);
    }
    // A soft reset takes them, too.
    b.expect(Ok, 1, CreateSrq, 0, &srq_params(2, 1));
    b.expect(Ok, 1, CreateQp, 6, &on(0, 0));
    b.soft_reset(1);
    assert!(!rq(b, 16).valid());
    b.card.lines.retain(|iova, _| *iova < Card::completions(1) || *iova > Card::completions(1) + 0x1000);
    b.expect(BadState, 1, QuerySrq, 0, &[]);
}

fn groups(b: &mut Bench) {
    let group = |n: u32| [0, n, 0xabcd, 0x5678_0000, 0xff0e_0000];
    let lines = |b: &Bench| (0..64).map(|i| McastCtx(line(&b.card, space::MCAST, i))).filter(|a| a.valid()).count();
    // The physical function's, which may have all of them while nobody else uses the numbers.
    functions::reset(b, 2);
    basics_of(b, 0);
    // The numbers between are those of special queue pairs.
    let qps = [2, 3, 4, 6, 7, 8, 10, 11, 12, 14];
    for qp in qps {
        b.expect(Ok, 0, CreateQp, qp, &qp_params(if qp == 2 { 0 } else { 2 }, 2, 3, 4));
    }
    b.expect(BadParameter, 0, AttachMulticast, 2, &group(1));
    b.expect(BadId, 2, AttachMulticast, 3, &group(1));
    b.expect(BadState, 0, AttachMulticast, 15, &group(1));
    b.expect(BadParameter, 0, AttachMulticast, 3, &[2, 0, 0, 0, 0]);
    b.expect(BadState, 0, DetachMulticast, 3, &group(1));
    // Eight members, each once.
    for qp in &qps[1..9] {
        b.expect(Ok, 0, AttachMulticast, *qp, &group(1));
        b.expect(Ok, 0, AttachMulticast, *qp, &group(1));
    }
    assert_eq!(lines(b), 8);
    b.expect(NoRoom, 0, AttachMulticast, 14, &group(1));
    // The same number as an IPv4 address is another group, as is one with a bit more.
    let mut v4 = group(1);
    v4[0] = 1;
    b.expect(Ok, 0, AttachMulticast, 14, &v4);
    b.expect(BadState, 0, DetachMulticast, 14, &group(1));
    b.expect(Ok, 0, DetachMulticast, 7, &group(1));
    b.expect(BadState, 0, DetachMulticast, 7, &group(1));
    b.expect(Ok, 0, AttachMulticast, 14, &group(1));
    let found = (0..64).map(|i| McastCtx(line(&b.card, space::MCAST, i))).find(|a| a.valid() && a.qpn() == 14 && !a.ipv6()).expect("attached");
    assert_eq!(found.group(), 0xff0e_0000_5678_0000_0000_abcd_0000_0001);
    // The table is full.
    let left = 64 - lines(b) as u32;
    for n in 0..left {
        b.expect(Ok, 0, AttachMulticast, 3, &group(100 + n));
    }
    b.expect(NoRoom, 0, AttachMulticast, 3, &group(99));
    // With a queue pair go its attachments, and no others.
    b.expect(Ok, 0, DestroyQp, 3, &[]);
    assert_eq!(lines(b) as u32, 64 - left - 1);
    for qp in qps.into_iter().filter(|qp| *qp != 3) {
        b.expect(Ok, 0, DestroyQp, qp, &[]);
    }
    assert_eq!(lines(b), 0);
    for (opcode, id) in [(DestroyCq, 3), (DestroyCq, 4), (DestroyEq, 1), (DestroyPd, 2)] {
        b.expect(Ok, 0, opcode, id, &[]);
    }
}

fn ports_and_queries(b: &mut Bench) {
    functions::reset(b, 1);
    b.expect(Ok, 0, CreatePd, 1, &[]);
    b.expect(Ok, 0, CreateEq, 0, &eq_params());
    b.expect(Ok, 0, CreateCq, 0, &cq_params(0));
    b.expect(BadParameter, 0, CreateQp, 10, &qp_params(3 | 16, 1, 0, 0));
    b.expect(Ok, 0, CreateQp, 10, &qp_params(3, 1, 0, 0));
    b.expect(Ok, 0, ModifyQp, 10, &[1, 0, 0, 0, 0, 0xffff]);
    b.expect(Ok, 0, ModifyQp, 10, &[2]);
    b.expect(Ok, 0, ModifyQp, 10, &[3, 0, 0, 0, 0, 0, 4]);
    assert_eq!((req(b, 10).state(), rsp(b, 10).state(), PathCtx(line(&b.card, space::PATH, 10)).valid()), (3, 2, false));
    assert_eq!(b.card.raw_qpn, 0);
    b.expect(Denied, 1, SetPort, 0, &[0]);
    b.expect(BadState, 0, SetPort, 0, &[1 << 31 | 8]);
    b.expect(BadId, 0, SetPort, 0, &[1 << 31 | 99]);
    b.expect(Ok, 0, SetPort, 0, &[1 << 31 | 10]);
    assert_eq!(b.card.raw_qpn, 1 << 31 | 10);
    for bad in [PORT_RAW | PORT_PROMISCUOUS | 8, PORT_RAW | PORT_PROMISCUOUS | 99, PORT_RAW | 1 << 29 | 10] {
        assert_ne!(b.execute(0, SetPort, 0, &[bad]).0, Ok);
    }
    b.expect(Denied, 1, SetPort, 0, &[PORT_RAW | PORT_PROMISCUOUS | 10]);
    b.expect(Ok, 0, SetPort, 0, &[PORT_PROMISCUOUS | 10]);
    assert_eq!(b.card.raw_qpn, 0, "nobody there to be promiscuous");
    b.expect(Ok, 0, SetPort, 0, &[PORT_RAW | PORT_PROMISCUOUS | 10]);
    assert_eq!(b.card.raw_qpn, PORT_RAW | PORT_PROMISCUOUS | 10);
    // Objects
    let q = b.expect(Ok, 0, QueryObject, 10, &[space::REQ.into(), 1]);
    assert_eq!(q[..8], std::array::from_fn::<u32, 8, _>(|i| b.card.word(space::REQ, 10, 1 + i as u8)));
    b.expect(BadId, 1, QueryObject, 10, &[space::REQ.into(), 0]);
    b.expect(BadState, 1, QueryObject, 8, &[space::SQ.into(), 0]);
    b.expect(BadId, 1, QueryObject, 0, &[space::CQ.into(), 0]);
    b.expect(BadParameter, 1, QueryObject, 0, &[space::STATS.into(), 0]);
    b.expect(BadParameter, 1, QueryObject, 0, &[space::ADMIN.into(), 0]);
    b.expect(BadParameter, 0, QueryObject, 0, &[u32::from(space::RAW) + 1, 0]);
    b.expect(BadParameter, 0, QueryObject, 0, &[space::SQ.into(), 57]);
    b.expect(BadId, 0, QueryObject, 16, &[space::SQ.into(), 0]);
    b.expect(BadId, 0, QueryObject, 1 << 24, &[space::SQ.into(), 0]);
    b.expect(BadId, 0, QueryObject, 1 << SCRATCH_BITS, &[space::ADMIN.into(), 0]);
    let q = b.expect(Ok, 0, QueryObject, 28 + 10, &[space::ADMIN.into(), 0]);
    assert_eq!(q[0], 1 << 31, "queue pair 10 exists, function 0, no users");
    // Counters
    counters(b);
    assert!(!b.card.lines.contains_key(&0x40));
    b.card.unwritable.insert(0x40);
    b.expect(DmaError, 0, QueryCounters, 0, &[0x40, 0, 0, 8, 0]);
    // The raw queue goes with its queue pair.
    b.expect(Ok, 0, DestroyQp, 10, &[]);
    assert_eq!(b.card.raw_qpn, 0);
}

/// Function 0 sees all functions together or any one, the others themselves.
fn counters(b: &mut Bench) {
    let named = 1 << 31;
    for n in 0..COUNTERS {
        for f in 0..4 {
            let line = f << stats::FUNCTION_AT | n;
            b.card.set(space::STATS, line, 0, 0x1000 * (f + 1) + n);
            b.card.set(space::STATS, line, 1, 16 * f + n);
            // The block answers the same in all functions' lines.
            b.card.set(space::STATS, line, 2, 0x9000 + n);
            b.card.set(space::STATS, line, 3, 0x90 + n);
        }
    }
    for f in 0..4u32 {
        for (word, of) in [(0, (f > 0).then_some(f)), (named | f, Some(f)), (named | 2, Some(2))] {
            if f != 0 && of != Some(f) {
                continue;
            }
            b.expect(Ok, f as usize, QueryCounters, 0, &[0xffff_ffc0, 0x20, 8, 16, word]);
            for n in 8..COUNTERS {
                let line = b.card.lines[&(0x20_ffff_ffc0 + u64::from((n - 8) / 8 * 64))];
                let at = (n % 8 * 2) as usize;
                let right = of.map_or([0x9000 + n, 0x90 + n], |of| [0x1000 * (of + 1) + n, 16 * of + n]);
                assert_eq!(line[at..at + 2], right, "counter {n} for function {f}, {word:#x}");
            }
        }
        for other in (0..4).filter(|other| f != 0 && *other != f) {
            b.expect(Denied, f as usize, QueryCounters, 0, &[0x40, 0, 0, 8, named | other]);
        }
    }
    b.expect(Ok, 0, QueryCounters, 0, &[0x40, 0, 8, 0, 0]);
    for bad in [
        [0x20, 0, 0, 8, 0],
        [0x40, 0, 0, 7, 0],
        [0x40, 0, 17, 8, 0],
        [0x40, 0, 0, 32, 0],
        [0x40, 0, u32::MAX - 7, 16, 0],
        [0x40, 0, 0, 1 << stats::FUNCTION_AT, 0],
        [0x40, 0, 1 << stats::FUNCTION_AT, 8, 0],
        // No function, none that there is, none that has a number, a word that names none.
        [0x40, 0, 0, 8, named | 4],
        [0x40, 0, 0, 8, named | 0xfff],
        [0x40, 0, 0, 8, named | 0x1000],
        [0x40, 0, 0, 8, 1],
    ] {
        b.expect(BadParameter, 0, QueryCounters, 0, &bad);
    }
    b.expect(BadParameter, 1, QueryCounters, 0, &[0x40, 0, 0, 8, 1]);
    b.expect(BadParameter, 1, QueryCounters, 0, &[0x40, 0, 0, 8, named | 0x1001]);
}

/// All functions at once, more commands than slots.
fn rounds(b: &mut Bench) {
    for _ in 0..4 {
        let posted: Vec<_> = (0..4).map(|f| (f, b.produced[f], b.post(f, 0, 0, &[]))).collect();
        for (f, n, iova) in posted {
            assert_eq!(b.wait(f, iova, n).0, Ok);
        }
    }
}

fn resets(b: &mut Bench) {
    basics(b);
    b.expect(Ok, 1, CreateMr, 4, &mr_params(mr_line()));
    b.expect(Ok, 1, CreateQp, 6, &qp_params(0, 2, 3, 4));
    b.expect(Ok, 1, ModifyQp, 6, &[1, 0, 0, 0, 0, 0xffff]);
    b.soft_reset(1);
    assert_eq!((rsp(b, 6).state(), rq(b, 6).valid(), MrCtx(line(&b.card, space::MR, 4)).valid()), (0, false, false));
    b.card.lines.retain(|iova, _| *iova < Card::completions(1) || *iova > Card::completions(1) + 0x1000);
    b.expect(BadState, 1, DestroyQp, 6, &[]);
    b.expect(BadState, 1, DestroyPd, 2, &[]);
    b.expect(Ok, 0, DestroyCq, 0, &[]);
    basics(b);
    // What one function has does not go with another's, wherever it lies.
    for (f, id) in [(1, 6), (2, 7), (1, 5)] {
        b.expect(Ok, f, CreatePd, id, &[]);
    }
    b.soft_reset(1);
    b.expect(BadState, 2, CreatePd, 7, &[]);
    b.expect(Ok, 2, CreatePd, 6, &[]);
    b.soft_reset(2);
    b.card.lines.retain(|iova, _| (0..4).all(|f| *iova < Card::completions(f) || *iova > Card::completions(f) + 0x1000));
    for id in 5..8 {
        b.expect(Ok, 1, CreatePd, id, &[]);
    }
    // A function that is switched off pauses.
    b.card.enable(2, false);
    let (n, start) = (b.produced[2], b.card.log.len());
    let iova = b.post(2, 0, 0, &[]);
    for _ in 0..5000 {
        b.advance();
    }
    assert!(!b.card.log[start..].iter().any(|e| matches!(e, Event::Fetch { function: 2, .. })));
    b.card.enable(2, true);
    assert_eq!(b.wait(2, iova, n).0, Ok);
}
