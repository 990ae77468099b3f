//! One thing each: errors, resets, the depth of READs, notifications.
use super::super::model::{self, Act, Grant, Order, Packet};
use super::super::*;
use super::bench::{write_qp, Bench, RAW_QPN};
use super::streams::random_qp;
use crate::roce::word::opened;
use crate::tb::Fields;

/// Raw frames from another network than the physical function's find no queue.
#[test]
fn raw_frames_of_another_network_are_nobodys() {
    let mut bench = Bench::new("resp", 20, (2, 20));
    let mut golden = model::Responder::default();
    let mut qp = random_qp(bench.tb.rng(), RAW_QPN);
    (qp.state, qp.qp_type, qp.srq) = (3, 3, false);
    bench.store.lines.insert(RAW_QPN, write_qp(&bench.store.layout, &qp));
    golden.qps.insert(RAW_QPN, qp);
    // Receives that they would take are there.
    for n in 0..2 {
        golden.grants.push_back(Grant::Some(30 + n, 50 + n));
        bench.answers.push_back(Grant::Some(30 + n, 50 + n));
    }
    for (n, function) in [1, 0x800, 0, 0xfff, 0].into_iter().enumerate() {
        bench.elsewhere = function;
        golden.raw_qpn = (function == 0).then_some(RAW_QPN);
        let frame = Packet { raw: true, handle: n as u32, frame_len: 100, ..Default::default() };
        golden.packet(&frame);
        bench.send(&frame);
        bench.settle();
    }
    bench.compare(&golden.acts);
}

#[test]
fn errors_flush_the_queue_and_the_half_received_send() {
    let mut bench = Bench::new("resp", 30, (2, 20));
    let mut golden = model::Responder::default();
    for id in 0..3 {
        let mut qp = random_qp(bench.tb.rng(), id);
        (qp.state, qp.qp_type, qp.pmtu, qp.pkey, qp.epsn) = (3, 0, 1, 0xffff, 0xff_ffff);
        (qp.epoch, qp.srq) = (7, id == 1);
        bench.store.lines.insert(id, write_qp(&bench.store.layout, &qp));
        golden.qps.insert(id, qp);
    }
    for id in 0..3 {
        let first = Packet { opcode: 0, psn: 0xff_ffff, qpn: id, pay_len: 256, pkey: 0xffff, ..Default::default() };
        golden.grants.push_back(Grant::Some(20 + id, 40 + id));
        bench.answers.push_back(Grant::Some(20 + id, 40 + id));
        golden.packet(&first);
        bench.send(&first);
    }
    bench.settle();
    // 0: from completion; 1: from the requester; 2: of an earlier life, without effect.
    let layout = Fields::of::<QpError>();
    for (port, id, epoch) in [(0, 0, 7), (1, 1, 99), (0, 2, 6)] {
        bench.errors[port].push(layout.pack(&[("qpn", id), ("epoch", epoch), ("cause", 4)]));
        bench.settle();
        golden.error(id as u32, (port == 0).then_some(epoch as u8), 4);
    }
    // A second report changes nothing.
    bench.errors[0].push(layout.pack(&[("qpn", 0), ("epoch", 7), ("cause", 4)]));
    bench.settle();
    bench.compare(&golden.acts);
    assert_eq!(golden.qps[&2].state, 3);
    // Flushed receive requests come back as completions; those of a live queue pair do not.
    let flush = Fields::of::<RqFlush>();
    for (qpn, index) in [(0, 41), (2, 50), (0, 42)] {
        bench.flush.push(flush.pack(&[("qpn", qpn), ("index", index)]));
    }
    bench.settle();
    bench.tb.set("barrier", 1);
    bench.cycle();
    bench.tb.set("barrier", 0);
    bench.settle();
    let order = Order { has_frame: Some(false), ..Order::default() };
    let flush = Order { kind: Some(3), qpn: Some(0), epoch: Some(7), cqe: Some(true), done: Some(true), free_rq: Some(false), opcode: Some(16), ..order.clone() };
    let op = |index| Act::Place(Order { rq_index: Some(index), ..flush.clone() });
    let barrier = Act::Place(Order { kind: Some(4), again: Some(false), ack: Some(false), cqe: Some(false), ..order });
    bench.compare(&[op(41), op(42), barrier]);
}

#[test]
fn a_reset_in_mid_message_gives_the_receive_back() {
    let mut bench = Bench::new("resp", 30, (2, 20));
    let mut golden = model::Responder::default();
    for id in 0..4 {
        let mut qp = random_qp(bench.tb.rng(), id);
        (qp.state, qp.qp_type, qp.pmtu, qp.pkey, qp.epsn) = (3, u8::from(id == 2), 1, 0xffff, 7);
        (qp.epoch, qp.srq) = (7, id == 1);
        bench.store.lines.insert(id, write_qp(&bench.store.layout, &qp));
        golden.qps.insert(id, qp);
    }
    // The last one is between two messages.
    for id in 0..3 {
        let first = Packet { opcode: 0x20 * golden.qps[&id].qp_type, psn: 7, qpn: id, pay_len: 256, pkey: 0xffff, ..Default::default() };
        golden.grants.push_back(Grant::Some(20 + id, 40 + id));
        bench.answers.push_back(Grant::Some(20 + id, 40 + id));
        golden.packet(&first);
        bench.send(&first);
    }
    bench.settle();
    let layout = Fields::of::<QpError>();
    for id in 0..4 {
        let words = bench.store.lines.get_mut(&id).expect("made above");
        bench.store.layout.set(words, "state", 0);
        bench.store.layout.set(words, "epoch", 8);
        let qp = golden.qps.get_mut(&id).expect("made above");
        (qp.state, qp.epoch) = (0, 8);
        // Of an earlier life, then twice of this one.
        for epoch in [7, 8, 8] {
            bench.errors[0].push(layout.pack(&[("qpn", id.into()), ("epoch", epoch), ("cause", 0)]));
            golden.give_back(id, epoch as u8);
        }
        bench.settle();
    }
    bench.compare(&golden.acts);
    assert_eq!(golden.acts.len(), 3 + 2 * 4);
    for (id, words) in &bench.store.lines {
        assert_eq!(bench.store.layout.get(words, "rq_handle") >> 7, 0, "queue pair {id}");
        assert_eq!(bench.store.layout.get(words, "state"), 0, "queue pair {id}");
        assert_eq!(bench.store.layout.get(words, "in_msg"), 0, "queue pair {id}");
    }
}

/// As many READs, atomics and the like as were granted, one of them answered, one more, and one too many.
#[test]
fn no_more_is_open_than_was_granted() {
    let mut bench = Bench::new("resp", 20, (2, 20));
    let mut golden = model::Responder::default();
    for most in [1, 3, 16] {
        let mut qp = random_qp(bench.tb.rng(), most);
        (qp.state, qp.qp_type, qp.pmtu, qp.pkey, qp.epsn) = (3, 0, 1, 0xffff, 0);
        (qp.remote_read, qp.remote_atomic, qp.remote_write, qp.remote_flush, qp.max_dest_rd_atomic) = (true, true, true, true, most);
        bench.store.lines.insert(most, write_qp(&bench.store.layout, &qp));
        golden.qps.insert(most, qp);
    }
    let ask = |bench: &mut Bench, golden: &mut model::Responder, id: u32| {
        let psn = golden.qps[&id].epsn;
        let (opcode, pay_len) = [(0x14, 0), (0x0c, 0), (0x1c, 0), (0x1d, 8)][psn as usize % 4];
        let p = Packet { opcode, qpn: id, psn, dma_len: 8, pay_len, imm: 1, pkey: 0xffff, ..Default::default() };
        golden.packet(&p);
        bench.send(&p);
    };
    // Round and round: the counts are modulo 32.
    for round in 1..=40 {
        for id in [1, 3, 16] {
            while golden.qps[&id].open < id {
                ask(&mut bench, &mut golden, id);
            }
        }
        bench.settle();
        for id in [1, 3, 16] {
            golden.qps.get_mut(&id).expect("made above").open -= 1;
            let epoch = golden.qps[&id].epoch;
            bench.answered(id, epoch, round);
        }
    }
    assert!(golden.qps.values().all(|qp| qp.state == 3));
    for id in [1, 3, 16] {
        ask(&mut bench, &mut golden, id);
        ask(&mut bench, &mut golden, id);
    }
    bench.settle();
    bench.compare(&golden.acts);
    assert!(golden.qps.values().all(|qp| qp.state == 6));
}

/// It is for the congestion hook, which has been told of it.
#[test]
fn a_congestion_notification_is_dropped_in_silence() {
    for qp_type in 0..3 {
        let mut bench = Bench::new("resp", 0, (1, 1));
        let mut golden = model::Responder::default();
        let mut qp = random_qp(bench.tb.rng(), 1);
        (qp.state, qp.qp_type) = (3, qp_type);
        bench.store.lines.insert(1, write_qp(&bench.store.layout, &qp));
        golden.qps.insert(1, qp);
        let p = Packet { opcode: 0x81, qpn: 1, pay_len: 16, pkey: 0xffff, ..Default::default() };
        golden.packet(&p);
        bench.send(&p);
        let mut events = Vec::new();
        for _ in 0..100 {
            bench.cycle();
            events.extend(Some(bench.tb.get("stat")).filter(|stat| *stat != 0));
        }
        bench.settle();
        bench.compare(&golden.acts);
        assert_eq!(events, [1], "a request, and no drop for a cause");
    }
}

/// Each of its 32 bits: a datagram with one of them wrong is dropped.
#[test]
fn every_bit_of_the_qkey_counts() {
    let mut bench = Bench::new("resp", 0, (1, 1));
    let mut golden = model::Responder::default();
    let mut qp = random_qp(bench.tb.rng(), 1);
    (qp.state, qp.qp_type, qp.pkey, qp.qkey, qp.pmtu) = (3, 2, 0xffff, 0x8111_2347, 3);
    bench.store.lines.insert(1, write_qp(&bench.store.layout, &qp));
    golden.qps.insert(1, qp);
    let mut dropped = 0;
    for bit in 0..33 {
        let p = Packet { opcode: 0x64, qpn: 1, pay_len: 64, pkey: 0xffff, qkey: 0x8111_2347 ^ (1u64 << bit) as u32, ..Default::default() };
        if bit == 32 {
            golden.grants.push_back(Grant::Some(1, 1));
            bench.answers.push_back(Grant::Some(1, 1));
        }
        golden.packet(&p);
        bench.send(&p);
    }
    for _ in 0..1000 {
        bench.cycle();
        dropped += bench.tb.get("stat") >> 13 & 1;
    }
    bench.settle();
    bench.compare(&golden.acts);
    assert_eq!(dropped, 32);
}

/// Hundreds of flushed receives of one queue pair, and packets of another: of both something comes all the time.
#[test]
fn flushes_let_packets_pass_and_go_on() {
    let mut bench = Bench::new("resp", 0, (1, 1));
    for id in 0..2 {
        let mut qp = random_qp(bench.tb.rng(), id);
        (qp.state, qp.qp_type, qp.pkey, qp.epsn, qp.remote_write) = (if id == 0 { 6 } else { 3 }, 0, 0xffff, 0, true);
        bench.store.lines.insert(id, write_qp(&bench.store.layout, &qp));
    }
    let flush = Fields::of::<RqFlush>();
    (0..300u16).for_each(|index| bench.flush.push(flush.pack(&[("qpn", 0), ("index", index.into())])));
    (0..60).for_each(|_| bench.cycle());
    for psn in 0..80 {
        bench.send(&Packet { opcode: 10, psn, qpn: 1, pay_len: 64, dma_len: 64, pkey: 0xffff, ..Default::default() });
    }
    bench.settle();
    let layout = opened::<PlaceOp>();
    let kinds: Vec<u128> = std::iter::from_fn(|| bench.op.pop()).map(|op| layout.get(&op, "kind")).collect();
    assert_eq!((kinds.iter().filter(|k| **k == 3).count(), kinds.iter().filter(|k| **k == 1).count()), (300, 80));
    let of = |kind: u128| kinds.iter().position(|k| *k == kind).expect("some")..kinds.len() - kinds.iter().rev().position(|k| *k == kind).expect("some");
    let flushed = kinds[of(1)].iter().filter(|k| **k == 3).count();
    assert!((10..=13).contains(&flushed), "{flushed} flushes among 80 packets");
}

/// First and Middle carry less than is still to come, each of them (IBTA 9.7.4.1.6).
#[test]
fn a_write_carries_no_more_than_it_announced() {
    let mut bench = Bench::new("resp", 10, (2, 20));
    let mut golden = model::Responder::default();
    // What the RETH says, and which packet is too much: 0 the first, 1 the one behind it, 2 none.
    for (id, (announced, bad)) in [(255, 0), (256, 0), (257, 1), (511, 1), (512, 1), (513, 2), (600, 2), (0, 0)].into_iter().enumerate() {
        let id = id as u32;
        let mut qp = random_qp(bench.tb.rng(), id);
        (qp.state, qp.qp_type, qp.pmtu, qp.pkey, qp.epsn, qp.remote_write) = (3, 0, 1, 0xffff, 9, true);
        bench.store.lines.insert(id, write_qp(&bench.store.layout, &qp));
        golden.qps.insert(id, qp);
        for (n, opcode) in [6, 7].into_iter().enumerate().take(bad + 1) {
            let p = Packet { opcode, psn: 9 + n as u32, qpn: id, pay_len: 256, dma_len: announced, pkey: 0xffff, ..Default::default() };
            golden.packet(&p);
            bench.send(&p);
        }
        bench.settle();
        assert_eq!(golden.qps[&id].state, if bad == 2 { 3 } else { 6 }, "{announced} bytes announced");
    }
    bench.compare(&golden.acts);
}

/// A gap, and a repeat whose first packet is lost as well: the second NAK comes with the repeat and not before.
#[test]
fn a_lost_repeat_is_asked_for_again() {
    let mut bench = Bench::new("resp", 10, (2, 20));
    let mut golden = model::Responder::default();
    let mut qp = random_qp(bench.tb.rng(), 1);
    (qp.state, qp.qp_type, qp.pkey, qp.epsn, qp.remote_write) = (3, 0, 0xffff, 0xff_fff0, true);
    bench.store.lines.insert(1, write_qp(&bench.store.layout, &qp));
    golden.qps.insert(1, qp);
    // PSNs behind the expected one, in the order of arrival; then the one that is expected, and the rest again.
    for ahead in [1, 2, 3, 40, 300, 301, 1, 2, 2, 5, 299, 700, 3, 0, 1, 2, 9, 9] {
        let psn = (0xff_fff0 + ahead) & 0xff_ffff;
        let p = Packet { opcode: 10, psn, qpn: 1, pay_len: 64, dma_len: 64, pkey: 0xffff, ..Default::default() };
        golden.packet(&p);
        bench.send(&p);
        bench.settle();
    }
    bench.compare(&golden.acts);
    let naks = golden.acts.iter().filter(|act| matches!(act, Act::Place(op) if op.syndrome == Some(0x60))).count();
    // First of the gap, 1 behind 301, 2 behind 2, 3 behind 700; then 9 of the next gap, twice.
    assert_eq!(naks, 4 + 2);
}
