//! Cycles from packet to order.
use super::super::model::{self, Grant, Packet};
use super::bench::{write_qp, Bench};
use super::streams::random_qp;
use crate::tb::Rng;

/// Orders of 96 packets on `qps` queue pairs in turn, nothing in the way: cycles to the first, and from it to the last.
fn pace(qps: u32) -> (u64, u64) {
    let mut bench = Bench::new("resp", 0, (1, 1));
    let mut golden = model::Responder::default();
    let mut qp = random_qp(&mut Rng::new(1), 1);
    (qp.state, qp.qp_type, qp.remote_write, qp.pkey, qp.epsn) = (3, 0, true, 0xffff, 5);
    for id in 0..qps {
        bench.store.lines.insert(id, write_qp(&bench.store.layout, &qp));
        golden.qps.insert(id, qp.clone());
    }
    // The counts of atomics are clear.
    (0..20).for_each(|_| bench.cycle());
    for n in 0..97 {
        let p = Packet { opcode: 10, psn: 5 + n / qps, qpn: n % qps, pay_len: 64, dma_len: 64, pkey: 0xffff, ack_req: true, ..Default::default() };
        golden.packet(&p);
        bench.send(&p);
    }
    let start = bench.tb.cycles();
    let mut orders = [0; 2];
    for (n, at) in [1, 97].into_iter().zip(&mut orders) {
        while bench.op.taken() < n {
            bench.cycle();
        }
        *at = bench.tb.cycles() - start;
    }
    bench.settle();
    bench.compare(&golden.acts);
    // A message offered in cycle 0 and taken at once in cycle n has been taken after n + 1 cycles.
    (orders[0] - 1, orders[1] - orders[0])
}

#[test]
fn an_order_comes_after_six_cycles_and_then_every_three() {
    assert_eq!(pace(3), (6, 3 * 96));
    // Of one queue pair eight go on with the line of the first, then it goes back once.
    assert_eq!(pace(1), (6, 3 * 96 + 2 * 12));
}

/// Cycles for 96 SENDs of one packet on three queue pairs in turn, whose rings have requests enough.
#[test]
fn a_send_takes_as_long_as_a_write() {
    let mut bench = Bench::new("resp", 0, (1, 1));
    let mut golden = model::Responder::default();
    let mut qp = random_qp(&mut Rng::new(1), 1);
    (qp.state, qp.qp_type, qp.pkey, qp.epsn) = (3, 0, 0xffff, 5);
    (0..3).for_each(|id| drop(bench.store.lines.insert(id, write_qp(&bench.store.layout, &qp))));
    golden.qps.extend((0..3).map(|id| (id, qp.clone())));
    (0..20).for_each(|_| bench.cycle());
    for n in 0..120 {
        golden.grants.push_back(Grant::Some(n % 64, n));
        bench.answers.push_back(Grant::Some(n % 64, n));
    }
    for n in 0..96 {
        let p = Packet { opcode: 4, psn: 5 + n / 3, qpn: n % 3, pay_len: 64, pkey: 0xffff, ack_req: true, ..Default::default() };
        golden.packet(&p);
        bench.send(&p);
    }
    let start = bench.tb.cycles();
    while bench.op.taken() < 96 {
        bench.cycle();
    }
    let cycles = bench.tb.cycles() - start;
    assert!(cycles <= 96 * 3 + 8, "{cycles} cycles for 96 SENDs");
    bench.settle();
    assert_eq!(bench.lates, 96);
    bench.compare(&golden.acts);
}

#[test]
fn a_datagram_takes_few_cycles() {
    let mut bench = Bench::new("resp", 0, (1, 1));
    let mut golden = model::Responder::default();
    let mut qp = random_qp(&mut Rng::new(1), 1);
    (qp.state, qp.qp_type, qp.pkey, qp.qkey) = (3, 2, 0xffff, 0x1234);
    bench.store.lines.insert(1, write_qp(&bench.store.layout, &qp));
    golden.qps.insert(1, qp);
    for n in 0..101 {
        let p = Packet { opcode: 0x64, qpn: 1, pay_len: 64, pkey: 0xffff, qkey: 0x1234, ..Default::default() };
        golden.grants.push_back(Grant::Some(n % 64, n));
        bench.answers.push_back(Grant::Some(n % 64, n));
        golden.packet(&p);
        bench.send(&p);
    }
    let start = bench.tb.cycles();
    while bench.op.taken() < 202 {
        bench.cycle();
    }
    let cycles = bench.tb.cycles() - start;
    println!("resp: {cycles} cycles for 101 datagrams");
    assert!(cycles <= 101 * 6 + 100, "{cycles} cycles for 101 datagrams");
    bench.settle();
    bench.compare(&golden.acts);
}
