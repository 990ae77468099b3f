//! Replies against a list per queue pair; the test plays completion, gatherer, egress and host memory.
mod bench;

use super::Reply;
use crate::msg::{AckOp, QpError, ReplyOp, TxDone};
use crate::roce::word::opened;
use crate::tb::{Fields, Tb};
use bench::{Ack, Bench, HOST, MTU};
use std::collections::VecDeque;

fn random(seed: u64, stall: u32, delay: u64, count: usize) {
    let mut bench = Bench::new(seed, stall, delay);
    HOST.with(|h| h.borrow_mut().clear());
    for _ in 0..count {
        let id = bench.tb.rng().below(16) as u32;
        let open = bench.qps[&id].items.len();
        match bench.tb.rng().below(10) {
            0..=3 => {
                let syndrome = if bench.tb.rng().percent(90) { 31 } else { 0x60 };
                bench.acknowledge(id, syndrome);
            }
            4 | 5 if open < 28 => {
                let len = [0, 1, 255, 256, 257, 1000, 4096, 4097, 9000][bench.tb.rng().below(9) as usize];
                bench.read(id, len, false);
            }
            6 if open < 14 => bench.read(id, 700, true),
            7 | 8 if open < 28 => {
                let rng = bench.tb.rng();
                let (iova, add, operand) = (8 * rng.below(40), rng.percent(60), rng.next_u64());
                let now = bench.memory.get(&iova).copied().unwrap_or(iova);
                let compare = if bench.tb.rng().percent(50) { now } else { 5 };
                bench.atomic(id, iova, add, compare, operand);
            }
            9 if open < 14 => {
                let results = bench.qps[&id].results.clone();
                let back = bench.tb.rng().below(40) as usize;
                let psn = if results.len() > back { results[results.len() - 1 - back].0 } else { 0x12345 };
                bench.atomic_again(id, psn);
            }
            _ => {}
        }
        let idle = bench.tb.rng().below(if stall == 0 { 8 } else { 60 });
        (0..idle).for_each(|_| bench.step());
    }
    bench.settle();
    for (id, qp) in &bench.qps {
        assert!(qp.items.is_empty(), "queue pair {id}: {:x?} never came, seed {seed}", qp.items);
        assert_eq!(qp.told, qp.finished, "queue pair {id}, seed {seed}");
        // An acknowledge may only be left out for something newer.
        assert!(qp.acks.back().is_none_or(|a| a.psn != qp.psn), "queue pair {id}: {:x?} never came, seed {seed}", qp.acks);
    }
    for (iova, value) in &bench.memory {
        assert_eq!(bench.host(*iova), *value, "memory at {iova:#x}, seed {seed}");
    }
    assert!(bench.packets > count as u64 / 4, "too few packets");
}

#[test]
fn replies_come_in_the_order_of_their_queue_pair() {
    random(1, 30, 40, 1500);
    random(2, 0, 5, 1500);
    random(3, 50, 600, 600);
}

/// A long READ of one queue pair does not stop the acknowledges and short READs of others.
#[test]
fn a_long_read_stops_nobody_else() {
    let mut bench = Bench::new(4, 0, 30);
    bench.read(1, 64 << 10, false);
    (0..100).for_each(|_| bench.step());
    bench.acknowledge(2, 31);
    bench.read(3, 600, false);
    bench.acknowledge(1, 31);
    (0..200).for_each(|_| bench.step());
    assert!(bench.qps[&2].acks.is_empty() && bench.qps[&3].items.is_empty(), "held up");
    assert_eq!((bench.qps[&1].items.len(), bench.qps[&1].acks.len()), (1, 1), "still at it");
    bench.settle();
    assert!(bench.qps[&1].items.is_empty() && bench.qps[&1].acks.is_empty());
}

/// A failed read of a response packet, and a failed atomic: NAK remote operational error, the responder is told, nothing else comes.
#[test]
fn failures_end_the_queue_pair() {
    let mut bench = Bench::new(5, 0, 3000);
    let nak = |bench: &mut Bench, id: u32, psn: u32| {
        let qp = bench.qps.get_mut(&id).expect("there");
        qp.items.clear();
        let msn = qp.msn - 1;
        qp.acks = VecDeque::from([Ack { psn, msn, syndrome: 0x63, number: 0 }]);
        bench.settle();
        assert!(bench.qps[&id].acks.is_empty(), "no NAK");
        let error = bench.error.pop().expect("the responder is told");
        let f = Fields::of::<QpError>();
        assert_eq!((f.get(&error, "qpn") as u32, f.get(&error, "epoch"), f.get(&error, "side")), (id, 7, 1));
        // Whatever comes later is not answered.
        bench.push(id, 0, &[("psn", 77), ("syndrome", 31)]);
        bench.push(id, 1, &[("psn", 78), ("len", 1000)]);
        bench.settle();
        assert!(bench.error.is_empty());
    };
    bench.read(1, 2000, false);
    (0..300).for_each(|_| bench.step());
    let psn = bench.qps[&1].psn.wrapping_sub(5) & 0xff_ffff;
    bench.done.push(Fields::of::<TxDone>().pack(&[("qpn", 1), ("epoch", 7), ("psn", psn.into()), ("status", 4), ("reply", 1)]));
    nak(&mut bench, 1, psn);
    bench.bad = Some(0x1000);
    let psn = bench.qps[&2].psn;
    bench.atomic(2, 0x1008, true, 0, 1);
    nak(&mut bench, 2, psn);
    // An address that is not aligned in the host's eyes.
    let psn = bench.qps[&3].psn;
    bench.atomic(3, 0x2004, true, 0, 1);
    nak(&mut bench, 3, psn);
    // Behind what can be answered in the same turn: a READ that takes long enough for both atomics to be over.
    bench.read(4, 64 << 10, false);
    bench.atomic(4, 0x3000, true, 0, 1);
    let psn = bench.qps[&4].psn;
    bench.atomic(4, 0x1010, true, 0, 1);
    while bench.qps[&4].items.len() > 1 {
        bench.step();
    }
    nak(&mut bench, 4, psn);
    // A new life answers again.
    bench.push(1, 0, &[("psn", 5), ("syndrome", 31), ("epoch", 8)]);
    bench.qps.get_mut(&1).expect("there").acks = VecDeque::from([Ack { psn: 5, msn: 0, syndrome: 31, number: 0 }]);
    bench.settle();
    assert!(bench.qps[&1].acks.is_empty());
}

/// The packet of a duplicate READ cannot be read, its key having gone: that ends nothing.
#[test]
fn a_duplicate_that_fails_ends_nothing() {
    let mut bench = Bench::new(15, 0, 3000);
    bench.read(1, 2000, false);
    bench.settle();
    bench.read(1, 2000, true);
    (0..300).for_each(|_| bench.step());
    let psn = bench.qps[&1].psn;
    bench.done.push(Fields::of::<TxDone>().pack(&[("qpn", 1), ("epoch", 7), ("psn", psn.into()), ("status", 4), ("reply", 1), ("wqe_index", 1)]));
    bench.settle();
    assert!(bench.error.is_empty(), "the responder is told");
    // The queue pair goes on.
    bench.acknowledge(1, 31);
    bench.read(1, 600, false);
    bench.settle();
    assert!(bench.qps[&1].items.is_empty() && bench.qps[&1].acks.is_empty());
}

/// A barrier passes behind the atomics that came before it.
#[test]
fn a_barrier_waits_for_atomics() {
    let mut bench = Bench::new(6, 0, 50);
    for n in 0..4 {
        bench.atomic(n, 64 * u64::from(n), true, 0, 1);
    }
    (0..40).for_each(|_| bench.step());
    bench.tb.set("barrier", 1);
    bench.step();
    bench.tb.set("barrier", 0);
    while bench.tb.get("barrier_done") == 0 {
        assert!(bench.tb.cycles() < 5000);
        bench.step();
    }
    assert_eq!((bench.wr.0.taken(), bench.wr.1.taken()), (4, 4));
    bench.settle();
}

/// The life of a queue pair ends with a barrier: nothing of it is sent behind, and the others go on.
#[test]
fn a_life_ends_with_a_barrier() {
    for wait in [1, 30, 90, 200] {
        let mut bench = Bench::new(60 + wait, 0, 20);
        for id in [3, 4] {
            bench.read(id, 100 * MTU, false);
        }
        (0..wait).for_each(|_| bench.step());
        bench.tb.set("ends", 1);
        bench.tb.set("ends_qpn", 3);
        bench.tb.set("barrier", 1);
        bench.step();
        bench.tb.set("barrier", 0);
        while bench.tb.get("barrier_done") == 0 {
            assert!(bench.tb.cycles() < 3000);
            bench.step();
        }
        bench.tb.set("ends", 0);
        let sent = |bench: &Bench, id: u32| bench.qps[&id].items.front().map_or(100, |item| item.sent);
        let before = sent(&bench, 3);
        assert!(before < 100, "nothing left to forget");
        bench.settle();
        assert!(bench.qps[&4].items.is_empty());
        assert_eq!(sent(&bench, 3), before, "sent behind the barrier");
        bench.qps.get_mut(&3).expect("there").items.clear();
    }
}

/// Operations on different addresses do not wait for each other.
#[test]
fn atomics_overlap() {
    let mut bench = Bench::new(8, 0, 300);
    HOST.with(|h| h.borrow_mut().clear());
    for n in 0..256u64 {
        bench.atomic(n as u32 % 16, 8 * n, true, 0, 1);
    }
    let start = bench.tb.cycles();
    while bench.wr.0.taken() < 256 {
        bench.step();
    }
    let each = (bench.tb.cycles() - start) / 256;
    assert!(each < 50, "{each} cycles per operation");
    bench.settle();
    assert!(bench.qps.values().all(|qp| qp.items.is_empty()));
}

/// An acknowledge with nothing before it passes in three cycles.
#[test]
fn an_acknowledge_passes_quickly() {
    let mut bench = Bench::new(7, 0, 0);
    (0..40).for_each(|_| bench.step());
    bench.acknowledge(1, 31);
    let latency = (0..20).find(|_| {
        bench.step();
        bench.m_ack.taken() == 1
    });
    assert_eq!(latency, Some(2));
    // One a cycle.
    (0..20).for_each(|n| bench.acknowledge(1 + n % 3, 31));
    (0..23).for_each(|_| bench.step());
    assert_eq!(bench.m_ack.taken(), 21);
}

/// What comes to nothing is over too: refused, poisoned, of a queue pair that has failed, one too many. It says nothing to the peer and changes nothing.
#[test]
fn atomics_that_come_to_nothing_are_over() {
    let mut bench = Bench::new(9, 20, 20);
    bench.acknowledge(1, 31);
    bench.push(1, 0, &[("mute", 1), ("epoch", 99), ("atomic", 1)]);
    bench.read(1, 3000, false);
    bench.push(1, 0, &[("mute", 1), ("epoch", 98), ("dest_qpn", 5), ("atomic", 1), ("keyed", 1), ("phase", 1)]);
    bench.acknowledge(1, 31);
    bench.atomic(1, 0x3000, true, 0, 1);
    bench.push(2, 0, &[("mute", 1), ("epoch", 3), ("atomic", 1)]);
    // A refusal with nothing in front of it, and one behind a READ.
    let nak = |bench: &mut Bench, id: u32| {
        let number = bench.number;
        let qp = bench.qps.get_mut(&id).expect("there");
        qp.psn += 1;
        let (psn, msn) = (qp.psn, qp.msn);
        qp.acks.push_back(Ack { psn, msn, syndrome: 0x62, number });
        bench.push(id, 0, &[("psn", psn.into()), ("msn", msn.into()), ("syndrome", 0x62), ("atomic", 1), ("keyed", 1), ("phase", 0)]);
    };
    nak(&mut bench, 3);
    bench.read(4, 2000, false);
    nak(&mut bench, 4);
    bench.bad = Some(0);
    bench.settle();
    // What is left is an acknowledge for which the atomic behind it speaks.
    assert!(bench.qps.iter().all(|(id, qp)| qp.items.is_empty() && (qp.acks.is_empty() || *id == 1)));
}

/// A NAK that waits behind a READ is not pushed out by the acknowledge of a duplicate, but by what acknowledges its packet.
#[test]
fn a_waiting_nak_is_not_lost() {
    for syndrome in [0x60, 0x2c] {
        let mut bench = Bench::new(10, 0, 60);
        bench.read(1, 9000, false);
        bench.acknowledge(1, syndrome);
        let (psn, msn) = (bench.qps[&1].psn, bench.qps[&1].msn);
        let older = psn.wrapping_sub(1) & 0xff_ffff;
        bench.push(1, 0, &[("psn", older.into()), ("msn", msn.into()), ("syndrome", 0x1f)]);
        bench.settle();
        assert!(bench.qps[&1].acks.is_empty(), "the NAK is lost");
        // The packet has come meanwhile.
        bench.read(1, 9000, false);
        let psn = bench.qps[&1].psn;
        bench.push(1, 0, &[("psn", psn.into()), ("msn", msn.into()), ("syndrome", syndrome.into())]);
        let msn = bench.qps[&1].msn;
        bench.qps.get_mut(&1).expect("there").acks = VecDeque::from([Ack { psn, msn, syndrome: 31, number: bench.number }]);
        bench.push(1, 0, &[("psn", psn.into()), ("msn", msn.into()), ("syndrome", 0x1f)]);
        bench.settle();
        assert!(bench.qps[&1].acks.is_empty());
    }
}

/// A life whose epoch is that of an earlier one: nothing has been answered in it.
#[test]
fn a_new_life_begins_at_nothing() {
    let mut tb = Tb::new("reply", Reply::<4, 9>::default());
    let (ack, op) = (tb.source("s_ack", 0), tb.sink("m_op", 0));
    let (_m_ack, _error, _rd, _wr) = (tb.sink("m_ack", 0), tb.sink("m_error", 0), tb.sink("m_rd", 0), tb.sink("m_wr", 0));
    let layout = opened::<ReplyOp>();
    let read = |psn: u32| layout.pack(&[("qpn", 3), ("kind", 1), ("epoch", 9), ("psn", psn.into()), ("len", 8), ("pmtu", 1), ("syndrome", 0x1f)]);
    let told = |tb: &mut Tb| {
        let mut last = None;
        for _ in 0..200 {
            tb.cycle();
            if tb.get("answered") == 1 {
                last = Some([tb.get("answered_qpn"), tb.get("answered_epoch"), tb.get("answered_count")]);
            }
        }
        last
    };
    (0..3).for_each(|psn| ack.push(read(psn)));
    assert_eq!(told(&mut tb), Some([3, 9, 3]));
    ack.push(layout.pack(&[("qpn", 3), ("kind", 3), ("epoch", 9)]));
    assert_eq!(told(&mut tb), Some([3, 9, 0]));
    ack.push(read(3));
    assert_eq!(told(&mut tb), Some([3, 9, 1]));
    assert_eq!(op.taken(), 4);
}

/// What completion says of an order that failed becomes a NAK, with the MSN without its message; else the word's own syndrome and MSN go out.
#[test]
fn an_outcome_becomes_its_nak() {
    let mut tb = Tb::new("reply", Reply::<4, 9>::default());
    let (ack, m_ack) = (tb.source("s_ack", 0), tb.sink("m_ack", 0));
    let (_op, _error, _rd, _wr) = (tb.sink("m_op", 0), tb.sink("m_error", 0), tb.sink("m_rd", 0), tb.sink("m_wr", 0));
    let (layout, out) = (opened::<ReplyOp>(), Fields::of::<AckOp>());
    for (outcome, done, syndrome, msn) in [(0, 0, 0x2c, 5), (0, 1, 0x1f, 5), (1, 0, 0x61, 5), (1, 1, 0x61, 4), (2, 0, 0x62, 5), (2, 1, 0x62, 4), (3, 0, 0x63, 5), (3, 1, 0x63, 4)] {
        let word = [("msn", 5), ("psn", 9), ("dest_qpn", 0x77), ("ipv6", 1), ("vlan", 1), ("syndrome", if outcome == 0 { syndrome } else { 0x1f })];
        ack.push(layout.pack(&[&[("qpn", 3), ("outcome", outcome), ("done", done)][..], &word[..]].concat()));
        tb.run_until(200, |_| !m_ack.is_empty());
        let got = m_ack.pop().expect("an acknowledge");
        let want = [("qpn", 3), ("dest_qpn", 0x77), ("psn", 9), ("msn", msn), ("syndrome", syndrome), ("ipv6", 1), ("vlan", 1)];
        assert_eq!(want.map(|(name, _)| (name, out.get(&got, name))), want, "outcome {outcome}, done {done}");
    }
}
