//! What one function may do beside the others: its numbers, what is the physical function's, its share of multicast, and a reset that is its own.

use super::super::program::Sizes;
use super::card::{Card, Event};
use super::commands::{cq_params, eq_params, line, mr_line, mr_params, qp_params, req, rtr_params, words};
use super::{Bench, SIZES};
use ferric_abi::codes::AdminOpcode::*;
use ferric_abi::codes::AdminStatus::*;
use ferric_abi::codes::{AdminOpcode, ObjectKind};
use ferric_abi::context::{AddressCtx, McastCtx, MrCtx, PathCtx};
use ferric_abi::csr::{space, ADDRESSES, FLOW_CLOSE, FLOW_COMMAND, NEIGHBOUR_LINE, RANGE_IN_USE, SPECIAL};
use ferric_abi::special::{is_special, special_queue_pair};

fn logs(sizes: Sizes) -> [u32; 6] {
    [sizes.qp, sizes.cq, sizes.mr, sizes.pd, sizes.eq, sizes.qp]
}

/// First number of function `f`'s share of a kind, and how many they are.
fn share(kind: ObjectKind, f: u32) -> (u32, u32) {
    let count = 1 << (logs(SIZES)[kind as usize] - 2);
    (f * count, count)
}

/// Soft reset of `f`; old completions are forgotten, for the ring begins anew.
pub fn reset(b: &mut Bench, f: usize) {
    b.soft_reset(f);
    b.card.lines.retain(|iova, _| *iova < Card::completions(f) || *iova > Card::completions(f) + 0x1_0000);
}

pub fn all(b: &mut Bench) {
    ranges(b);
    each_has_its_own(b);
    set_ranges(b);
    quotas(b);
    for f in 0..4 {
        reset(b, f);
    }
    special_queue_pairs(b);
    for f in 0..4 {
        reset(b, f);
    }
}

fn ranges(b: &mut Bench) {
    for f in 1..4u32 {
        let r = b.expect(Ok, f as usize, QueryRanges, 0, &[0]);
        let expected: Vec<u32> = logs(SIZES).iter().map(|log| f << (log - 2) | (log - 2) << 24).chain([f]).collect();
        assert_eq!(r[..7], expected);
        assert_eq!(b.expect(Ok, 0, QueryRanges, f, &[1])[..7], expected);
        b.expect(Denied, f as usize, QueryRanges, f, &[1]);
        // The numbers beside its share are none of its own.
        let (first, count) = share(ObjectKind::Pd, f);
        for id in [first - 1, first + count, 0] {
            b.expect(BadId, f as usize, CreatePd, id, &[]);
        }
        assert_eq!(b.expect(Ok, f as usize, QueryRanges, 0, &[0])[3], expected[3], "nothing was made");
        // Until it makes use of them they are the physical function's, too.
        b.expect(Ok, 0, CreatePd, first, &[]);
        b.expect(BadState, f as usize, CreatePd, first, &[]);
        b.expect(Ok, f as usize, CreatePd, first + count - 1, &[]);
        assert_eq!(b.expect(Ok, f as usize, QueryRanges, 0, &[0])[3], expected[3] | RANGE_IN_USE);
        b.expect(Ok, 0, DestroyPd, first, &[]);
        b.expect(BadId, 0, CreatePd, first, &[]);
        b.expect(BadId, 0, CreatePd, first + count - 1, &[]);
        b.expect(Ok, f as usize, CreatePd, first, &[]);
    }
    let all: Vec<u32> = logs(SIZES).iter().map(|log| log << 24).chain([0]).collect();
    assert_eq!(b.expect(Ok, 0, QueryRanges, 9, &[0])[..7], all);
    b.expect(BadId, 0, QueryRanges, 4, &[1]);
    b.expect(Ok, 0, CreatePd, 1, &[]);
    // Of one kind they are used, of the others not yet.
    b.expect(Ok, 0, CreateEq, 1, &eq_params());
    b.expect(BadState, 1, CreateEq, 1, &eq_params());
    b.expect(BadId, 2, CreateCq, share(ObjectKind::Cq, 2).0, &cq_params(1));
    // A reset gives them back.
    reset(b, 1);
    assert_eq!(b.expect(Ok, 1, QueryRanges, 0, &[0])[3] & RANGE_IN_USE, 0);
    b.expect(Ok, 0, CreatePd, share(ObjectKind::Pd, 1).0, &[]);
    b.expect(BadId, 0, CreatePd, share(ObjectKind::Pd, 2).0, &[]);
    for f in 0..4 {
        reset(b, f);
    }
}

/// Domain, event queue, completion queue, queue pair, region of function `f`: the first numbers of its share, but for those that are reserved.
pub struct Own {
    pub pd: u32,
    eq: u32,
    pub cq: u32,
    pub qp: u32,
    mr: u32,
}

pub fn own(f: u32) -> Own {
    let first = |kind| share(kind, f).0;
    Own { pd: first(ObjectKind::Pd), eq: first(ObjectKind::Eq), cq: first(ObjectKind::Cq), qp: first(ObjectKind::Qp) + 2, mr: first(ObjectKind::Mr) + 1 }
}

pub fn make(b: &mut Bench, f: u32, qp_type: u32) {
    let o = own(f);
    let f = f as usize;
    b.expect(Ok, f, CreatePd, o.pd, &[]);
    b.expect(Ok, f, CreateEq, o.eq, &eq_params());
    b.expect(Ok, f, CreateCq, o.cq, &cq_params(o.eq as u8));
    b.expect(Ok, f, CreateQp, o.qp, &qp_params(qp_type, o.pd, o.cq, o.cq));
    b.expect(Ok, f, CreateMr, o.mr, &mr_params(mr_line().with_pd(o.pd)));
}

fn each_has_its_own(b: &mut Bench) {
    for f in 0..4 {
        make(b, f, 0);
        assert_eq!(u32::from(req(b, own(f).qp).eqn()), own(f).eq, "its events go to its own queue");
    }
    for f in 0..4u32 {
        for other in (0..4u32).filter(|other| *other != f) {
            let (me, them, f) = (own(f), own(other), f as usize);
            for (opcode, id) in [(DestroyPd, them.pd), (DestroyEq, them.eq), (DestroyCq, them.cq), (DestroyQp, them.qp), (DestroyMr, them.mr), (ModifyQp, them.qp), (QueryQp, them.qp)] {
                b.expect(BadId, f, opcode, id, &[0]);
            }
            for (pd, cq) in [(them.pd, me.cq), (me.pd, them.cq)] {
                b.expect(BadId, f, CreateQp, me.qp + 1, &qp_params(0, pd, cq, me.cq));
            }
            b.expect(BadId, f, CreateQp, me.qp + 1, &qp_params(0, me.pd, me.cq, them.cq));
            b.expect(BadId, f, CreateMr, me.mr + 1, &mr_params(mr_line().with_pd(them.pd)));
            b.expect(BadId, f, CreateCq, me.cq + 1, &cq_params(them.eq as u8));
            b.expect(BadId, f, CreateSrq, me.qp, &[them.pd, me.eq, 0x100, 0, 5 << 16]);
            b.expect(BadId, f, CreateSrq, me.qp, &[me.pd, them.eq, 0x100, 0, 5 << 16]);
            if f != 0 {
                b.expect(BadId, f, QueryObject, them.qp, &[space::REQ.into(), 0]);
                b.expect(BadId, f, QueryObject, them.mr, &[space::MR.into(), 0]);
            }
        }
        // What tells of the others, or speaks for them, is the physical function's.
        if f != 0 {
            b.expect(Denied, f as usize, CreateQp, own(f).qp + 1, &qp_params(3, own(f).pd, own(f).cq, own(f).cq));
            b.expect(Denied, f as usize, SetPort, 0, &[1 << 31 | own(f).qp]);
            b.expect(Denied, f as usize, QueryCounters, 0, &[0x40, 0, 0, 8, 1 << 31]);
        }
    }
    // The reset of one touches no line that is another's, and drains twice, however much it has; each queue pair's life ends with a barrier.
    for qp in 1..2 {
        b.expect(Ok, 2, CreateQp, own(2).qp + qp, &qp_params(0, own(2).pd, own(2).cq, own(2).cq));
        b.expect(Ok, 2, ModifyQp, own(2).qp + qp, &[1, 0, 0, 0, 0, 0xffff]);
        b.expect(Ok, 2, ModifyQp, own(2).qp + qp, &rtr_params(5));
    }
    let start = b.card.log.len();
    reset(b, 2);
    let log = b.card.log[start..].to_vec();
    for event in &log {
        if let Event::Control { space, line, word, write: Some(value) } = event {
            // What it may send is taken away.
            if *space == space::FLOW {
                assert_eq!((*line, u32::from(*word), *value), (FLOW_COMMAND, FLOW_CLOSE, 2));
                continue;
            }
            if *space == space::ADDRESS {
                assert!((2 * ADDRESSES..3 * ADDRESSES).contains(line) || *line == NEIGHBOUR_LINE + 2, "{event:?}");
                continue;
            }
            // Frames reach its raw queue pair no more.
            if *space == space::RAW {
                assert_eq!((*line, *word, *value), (2, 0, 0));
                continue;
            }
            let kind = match *space {
                space::CQ => ObjectKind::Cq,
                space::MR => ObjectKind::Mr,
                space::EQ => ObjectKind::Eq,
                _ => ObjectKind::Qp,
            };
            let (first, count) = share(kind, 2);
            assert!((first..first + count).contains(line), "{event:?}");
        }
    }
    assert_eq!(log.iter().filter(|e| **e == Event::Quiesce { writes: true }).count(), 2);
    assert_eq!(log.iter().filter(|e| **e == Event::Barrier).count(), 2 + 2);
    assert!(!MrCtx(line(&b.card, space::MR, own(2).mr)).valid());
    for f in [0, 1, 3] {
        assert!(MrCtx(line(&b.card, space::MR, own(f).mr)).valid());
        for (opcode, id) in [(DestroyMr, own(f).mr), (DestroyQp, own(f).qp), (DestroyCq, own(f).cq), (DestroyEq, own(f).eq), (DestroyPd, own(f).pd)] {
            b.expect(Ok, f as usize, opcode, id, &[]);
        }
    }
    make(b, 2, 0);
    for f in 0..4 {
        reset(b, f);
    }
}

fn set_ranges(b: &mut Bench) {
    let qp = ObjectKind::Qp as u32;
    b.expect(Denied, 1, SetRange, 1, &[qp, 0]);
    for (status, id, kind, range) in [
        (BadId, 0, qp, 0),
        (BadId, 4, qp, 0),
        (BadId, u32::MAX, qp, 0),
        (BadParameter, 1, 6, 0),
        (BadParameter, 1, u32::MAX, 0),
        (BadParameter, 1, qp, 5 << 24),
        (BadParameter, 1, qp, 3 << 24 | 9),
        (BadParameter, 1, qp, 1 << 29 | 3 << 24),
        (BadParameter, 1, qp, 31 << 24),
        (BadParameter, 1, qp, 16),
    ] {
        b.expect(status, 0, SetRange, id, &[kind, range]);
    }
    for (kind, log) in logs(SIZES).into_iter().enumerate() {
        b.expect(Ok, 0, SetRange, 3, &[kind as u32, (log - 1) << 24 | 1 << (log - 1)]);
        assert_eq!(b.expect(Ok, 3, QueryRanges, 0, &[0])[kind], (log - 1) << 24 | 1 << (log - 1));
    }
    let half = 1 << (SIZES.pd - 1);
    b.expect(BadId, 3, CreatePd, half - 1, &[]);
    b.expect(Ok, 3, CreatePd, half, &[]);
    b.expect(Ok, 3, CreatePd, 2 * half - 1, &[]);
    b.expect(InUse, 0, SetRange, 3, &[ObjectKind::Pd as u32, 0]);
    b.expect(Ok, 0, SetRange, 3, &[ObjectKind::Cq as u32, 0]);
    reset(b, 3);
    for (kind, log) in logs(SIZES).into_iter().enumerate() {
        b.expect(Ok, 0, SetRange, 3, &[kind as u32, (log - 2) << 24 | 3 << (log - 2)]);
    }
}

fn quotas(b: &mut Bench) {
    let group = |n: u32| [0, n, 0xabcd, 0x5678_0000, 0xff0e_0000];
    let lines = |b: &Bench| (0..64).map(|i| McastCtx(line(&b.card, space::MCAST, i))).filter(|a| a.valid()).count();
    for f in 1..4u32 {
        make(b, f, 2);
        let o = own(f);
        b.expect(Ok, f as usize, CreateQp, o.qp + 1, &qp_params(2, o.pd, o.cq, o.cq));
        b.expect(Ok, f as usize, CreateQp, o.qp - 1, &qp_params(2, o.pd, o.cq, o.cq));
    }
    b.expect(BadId, 1, AttachMulticast, own(2).qp, &group(1));
    // Two members of a group and 16 attachments each, whatever the others have.
    for f in 1..4u32 {
        let (o, f) = (own(f), f as usize);
        for qp in [o.qp, o.qp, o.qp + 1] {
            b.expect(Ok, f, AttachMulticast, qp, &group(1));
        }
        b.expect(NoRoom, f, AttachMulticast, o.qp - 1, &group(1));
        for n in 0..14 {
            b.expect(Ok, f, AttachMulticast, o.qp, &group(10 * f as u32 + 100 + n));
        }
        b.expect(NoRoom, f, AttachMulticast, o.qp, &group(9));
    }
    b.expect(BadId, 1, DetachMulticast, own(2).qp, &group(1));
    assert_eq!(lines(b), 48);
    b.expect(Ok, 1, DetachMulticast, own(1).qp, &group(1));
    b.expect(Ok, 1, AttachMulticast, own(1).qp - 1, &group(1));
    reset(b, 1);
    assert_eq!(lines(b), 32, "its own have gone");
}

/// Each function has one number for its special queue pair, whatever its range is, and nobody else may use it. It speaks from the function's own addresses only, and those stay while it does.
fn special_queue_pairs(b: &mut Bench) {
    let log_share = SIZES.qp - SIZES.functions;
    for f in 0..4 {
        let o = own(f);
        let f = f as usize;
        b.expect(Ok, f, CreatePd, o.pd, &[]);
        b.expect(Ok, f, CreateEq, o.eq, &eq_params());
        b.expect(Ok, f, CreateCq, o.cq, &cq_params(o.eq as u8));
    }
    for (f, other) in (0..4u32).flat_map(|f| (0..4).map(move |other| (f, other))) {
        let (o, qpn) = (own(f), special_queue_pair(other, log_share));
        assert_eq!(qpn, 4 * other + 1);
        if f != other {
            b.expect(BadId, f as usize, CreateQp, qpn, &qp_params(2, o.pd, o.cq, o.cq));
        }
    }
    // Its number is its own also where its range does not have it, and is no use of the range.
    let qp = ObjectKind::Qp as u32;
    b.expect(Ok, 0, SetRange, 2, &[qp, 2 << 24 | 12]);
    let o = own(2);
    b.expect(BadId, 2, CreateQp, 8, &qp_params(2, o.pd, o.cq, o.cq));
    b.expect(BadId, 2, CreateQp, 13, &qp_params(2, o.pd, o.cq, o.cq));
    b.expect(BadId, 3, CreateQp, 0, &qp_params(2, own(3).pd, own(3).cq, own(3).cq));
    for f in 0..4u32 {
        let (o, qpn) = (own(f), special_queue_pair(f, log_share));
        let make = qp_params(2, o.pd, o.cq, o.cq);
        b.expect(Ok, f as usize, CreateQp, qpn, &make);
        b.expect(BadState, f as usize, CreateQp, qpn, &make);
        b.expect(Ok, f as usize, ModifyQp, qpn, &[1, 0, 0, 0, 0, 0xffff, 0, 0x8001_0000]);
    }
    b.expect(Ok, 0, SetRange, 2, &[qp, 2 << 24 | 8]);
    // The physical function is believed.
    b.expect(Ok, 0, ModifyQp, SPECIAL, &rtr_params(1));
    let at = |f: u32, ip: u128, mac: u64| AddressCtx::default().with_ip(ip).with_mac(mac).with_vid(5).with_vlan(true).with_valid(true).with_ip(ip | u128::from(f) << 8);
    let params = |source: &AddressCtx| {
        let mut p = rtr_params(1);
        let path = PathCtx::default().with_dip(1).with_dmac(2).with_sip(source.ip()).with_smac(source.mac()).with_udp_sport(0xc000).with_vlan_tci(0x6000 | source.vid());
        p[8..].copy_from_slice(&words::<16>(&path.0));
        p[1] = p[1] & !(1 << 22 | 1 << 23) | u32::from(source.ipv6()) << 22 | u32::from(source.vlan()) << 23;
        p
    };
    for f in 1..4u32 {
        let qpn = special_queue_pair(f, log_share);
        // In the last place that is looked at.
        let (v4, v6) = (at(f, 0x0a00_0001, 0x0200_1234_0000 | u64::from(f)), at(f, 0xfd << 120 | 1, 0x0200_1234_0000 | u64::from(f)).with_ipv6(true));
        let f = f as usize;
        b.expect(Denied, f, ModifyQp, qpn, &params(&v4));
        b.expect(Ok, f, SetAddress, ADDRESSES - 1, &words::<6>(&v4.0));
        b.expect(Ok, f, SetAddress, 0, &words::<6>(&v6.0));
        for other in f + 1..4 {
            b.expect(Denied, other, ModifyQp, special_queue_pair(other as u32, log_share), &params(&v4));
        }
        let near = [
            v4.with_mac(v4.mac() ^ 1),
            v4.with_mac(v4.mac() ^ 1 << 40),
            v4.with_ip(v4.ip() ^ 2),
            v6.with_ip(v6.ip() ^ 1 << 32),
            v6.with_ip(v6.ip() ^ 1 << 64),
            v6.with_ip(v6.ip() ^ 1 << 96),
            v4.with_vid(6),
            v4.with_vlan(false),
            v4.with_ipv6(true),
            v6.with_ipv6(false),
        ];
        for source in near {
            b.expect(Denied, f, ModifyQp, qpn, &params(&source));
        }
        assert!(!PathCtx(line(&b.card, space::PATH, qpn)).valid());
        b.expect(Ok, f, ModifyQp, qpn, &params(if f == 2 { &v6 } else { &v4 }));
        assert_eq!(u32::from(PathCtx(line(&b.card, space::PATH, qpn)).function()), f as u32);
        let (used, idle) = if f == 2 { ((0, v6), (ADDRESSES - 1, v4)) } else { ((ADDRESSES - 1, v4), (0, v6)) };
        let start = b.card.log.len();
        b.expect(InUse, f, SetAddress, used.0, &words::<6>(&AddressCtx::default().0));
        b.expect(InUse, f, SetAddress, used.0, &words::<6>(&used.1.with_mac(used.1.mac() ^ 4).0));
        b.expect(InUse, f, SetAddress, used.0, &words::<6>(&at(f as u32, 0x0a00_0009, 0x0200_1234_0000).0));
        assert_eq!(b.card.written(space::ADDRESS, start), [], "what is refused changes nothing");
        // The same again is no change, and the other one may go.
        b.expect(Ok, f, SetAddress, used.0, &words::<6>(&used.1 .0));
        b.expect(Ok, f, SetAddress, idle.0, &words::<6>(&AddressCtx::default().0));
        if f == 3 {
            b.expect(Ok, f, DestroyQp, qpn, &[]);
            b.expect(Ok, f, SetAddress, used.0, &words::<6>(&AddressCtx::default().0));
            continue;
        }
        // A reset takes both, and nothing of the former life is left.
        reset(b, f);
        b.expect(BadState, f, ModifyQp, qpn, &[1]);
        assert!((0..ADDRESSES).all(|id| !AddressCtx(line(&b.card, space::ADDRESS, f as u32 * ADDRESSES + id)).valid()));
        for there in [true, false] {
            b.expect(Ok, f, SetAddress, used.0, &words::<6>(&used.1.with_valid(there).0));
        }
    }
}

/// A whole card's worth of objects: what B5 of issue 18 asks for, in cycles of the engine; an access takes as long as on the card.
#[test]
fn the_reset_of_a_full_function_keeps_its_cycle_budget() {
    let sizes = Sizes::default();
    let mut b = Bench::rtl_of("admin_full", sizes, 0);
    // All queue pairs but the special ones of the other functions.
    let qps: Vec<u32> = (1..256).filter(|id| *id == SPECIAL || !is_special(*id, sizes.qp - sizes.functions)).collect();
    let run = |b: &mut Bench, opcode: AdminOpcode, ids: &[u32], params: &[u32]| {
        for id in ids {
            b.expect(Ok, 0, opcode, *id, params);
            b.card.log.clear();
        }
    };
    let upto = |range: std::ops::Range<u32>| range.collect::<Vec<_>>();
    run(&mut b, CreatePd, &upto(1..40), &[]);
    run(&mut b, CreateEq, &upto(0..4), &eq_params());
    run(&mut b, CreateCq, &upto(0..256), &cq_params(1));
    run(&mut b, CreateMr, &upto(1..1024), &mr_params(mr_line()));
    run(&mut b, CreateQp, &qps, &qp_params(0, 2, 3, 4));
    run(&mut b, ModifyQp, &qps, &[1, 0, 0, 0, 0, 0xffff]);
    run(&mut b, ModifyQp, &qps, &rtr_params(5));
    let start = b.cycles();
    b.soft_reset(0);
    let accesses = b.card.log.iter().filter(|e| matches!(e, Event::Control { .. })).count() as u64;
    // The bench answers in two cycles, the switch and the tables of a card in twelve.
    let cycles = b.cycles() - start + 10 * accesses;
    println!("admin: {cycles} cycles, {accesses} accesses");
    assert!((1..1024).all(|id| !MrCtx(line(&b.card, space::MR, id)).valid()));
    assert!(cycles < 130_000, "{cycles} cycles, {accesses} accesses");
}
