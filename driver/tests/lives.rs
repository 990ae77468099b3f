//! A queue pair's completions end with it: at a reset, and when another queue pair gets its number.
mod card;

use card::{connect, start, Bench, Card};
use ferric_abi::codes::{CqeOpcode, WrOpcode};
use ferric_abi::host::Cqe;
use ferric_driver::qp::Payload;
use ferric_driver::{Access, CqeStatus, Error, QueuePair, RecvRequest, SendRequest, SrqConfig};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn sent(qp: &QueuePair, index: u16) -> Cqe {
    Cqe::default().with_wqe_index(index).with_opcode(CqeOpcode::Write as u8).with_qpn(qp.qpn())
}

fn received(qp: &QueuePair, index: u16) -> Cqe {
    Cqe::default().with_wqe_index(index).with_opcode(CqeOpcode::Recv as u8).with_qpn(qp.qpn()).with_is_recv(true)
}

fn write(qp: &mut QueuePair, wr_id: u64) -> Result<(), Error> {
    qp.post_send(&SendRequest { wr_id, opcode: WrOpcode::Write, payload: Payload::Inline(&[0; 8]), remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false })
}

fn receive(qp: &mut QueuePair, wr_id: u64) {
    qp.post_recv(&RecvRequest { wr_id, sges: &[] }).unwrap();
}

/// What is completed, in order.
fn polled(b: &mut Bench) -> Vec<u64> {
    std::iter::from_fn(|| b.cq.poll()).inspect(|c| assert_eq!(c.status, CqeStatus::Success)).map(|c| c.wr_id).collect()
}

#[test]
fn completions_from_before_a_reset_are_not_handed_out_for_new_requests() {
    let mut b = Bench::new(Card::new(false), 64);
    let (cq, mut qp) = (b.cq.id(), b.qp());
    start(&mut qp);
    for n in 0..3 {
        receive(&mut qp, n);
        write(&mut qp, 10 + n).unwrap();
    }
    for n in 0..3 {
        assert!(b.card.complete(cq, received(&qp, n as u16)) && b.card.complete(cq, sent(&qp, n as u16)));
    }
    qp.to_reset().unwrap();
    qp.to_init(Access::ALL).unwrap();
    (0..3).for_each(|n| receive(&mut qp, 20 + n));
    assert_eq!(polled(&mut b), [0u64; 0]);
    connect(&mut qp);
    (0..3).for_each(|n| write(&mut qp, 30 + n).unwrap());
    assert_eq!(polled(&mut b), [0u64; 0]);
    for n in 0..3 {
        assert!(b.card.complete(cq, received(&qp, n as u16)) && b.card.complete(cq, sent(&qp, n as u16)));
    }
    assert_eq!(polled(&mut b), [20, 30, 21, 31, 22, 32]);
}

#[test]
fn a_reused_number_has_no_past() {
    let mut b = Bench::new(Card::new(false), 64);
    let (cq, mut qp) = (b.cq.id(), b.qp());
    start(&mut qp);
    for n in 0..3 {
        receive(&mut qp, n);
        write(&mut qp, 10 + n).unwrap();
        assert!(b.card.complete(cq, received(&qp, n as u16)) && b.card.complete(cq, sent(&qp, n as u16)));
    }
    let number = qp.qpn();
    drop(qp);
    let mut qp = loop {
        let next = b.qp();
        if next.qpn() == number {
            break next;
        }
    };
    qp.to_init(Access::ALL).unwrap();
    (0..3).for_each(|n| receive(&mut qp, 20 + n));
    connect(&mut qp);
    (0..3).for_each(|n| write(&mut qp, 30 + n).unwrap());
    assert_eq!(polled(&mut b), [0u64; 0]);
    assert!(b.card.complete(cq, sent(&qp, 0)));
    assert_eq!(polled(&mut b), [30]);
}

/// Another queue pair's completions stay, in order, and there is as much room as if those of the one that was reset had never come.
#[test]
fn a_shared_queue_keeps_what_is_of_others_and_has_room_again() {
    for first in 0..5 {
        // In a ring of eight.
        let mut b = Bench::new(Card::new(false), 6);
        let (cq, mut one, mut other) = (b.cq.id(), b.qp(), b.qp());
        [&mut one, &mut other].into_iter().for_each(start);
        // So that the ring goes round at another place.
        for n in 0..first {
            write(&mut other, 0).unwrap();
            assert!(b.card.complete(cq, sent(&other, n)));
        }
        polled(&mut b);
        b.cq.arm(false);
        for n in 0..4 {
            write(&mut one, n).unwrap();
            write(&mut other, 10 + n).unwrap();
            let order = if n % 2 == 0 { [sent(&one, n as u16), sent(&other, first + n as u16)] } else { [sent(&other, first + n as u16), sent(&one, n as u16)] };
            order.into_iter().for_each(|e| assert!(b.card.complete(cq, e)));
        }
        assert!(!b.card.complete(cq, sent(&other, 99)), "full");
        one.to_reset().unwrap();
        start(&mut one);
        for n in 0..4 {
            write(&mut one, 20 + n).unwrap();
            assert!(b.card.complete(cq, sent(&one, n as u16)), "there is no room");
        }
        assert!(!b.card.complete(cq, sent(&other, 99)), "more room than there is");
        assert_eq!(polled(&mut b), [10, 11, 12, 13, 20, 21, 22, 23], "from place {first} on");
    }
}

#[test]
fn a_shared_receive_queue_gets_back_what_an_old_life_had_of_it() {
    for destroy in [false, true] {
        let mut b = Bench::new(Card::new(false), 64);
        let srq = b.pd.create_srq(&SrqConfig { max_wr: 2, max_sge: 1 }, &b.ctx.create_eq(4, 0).unwrap()).unwrap();
        let mut qp = b.pd.create_qp_on_srq(&Default::default(), &b.cq, &b.cq, &srq).unwrap();
        start(&mut qp);
        let post = |wr_id| srq.post_srq_recv(&RecvRequest { wr_id, sges: &[] });
        for n in 0..2 {
            post(n).unwrap();
            assert!(b.card.complete(b.cq.id(), received(&qp, n as u16)));
        }
        assert!(matches!(post(9), Err(Error::QueueFull)));
        if destroy {
            drop(qp);
            qp = b.pd.create_qp_on_srq(&Default::default(), &b.cq, &b.cq, &srq).unwrap();
        } else {
            qp.to_reset().unwrap();
        }
        (2..4).for_each(|n| post(n).unwrap());
        start(&mut qp);
        assert_eq!(polled(&mut b), [0u64; 0]);
        (2..4).for_each(|n| assert!(b.card.complete(b.cq.id(), received(&qp, n as u16))));
        assert_eq!(polled(&mut b), [2, 3]);
    }
}

/// Nothing of a life can complete before its first command that lets it: what is found until then is older, however late the card wrote it.
#[test]
fn completions_that_come_late_are_older_than_the_new_life() {
    for poll_between in [false, true] {
        let mut b = Bench::new(Card::new(false), 64);
        let (cq, mut qp) = (b.cq.id(), b.qp());
        start(&mut qp);
        receive(&mut qp, 1);
        write(&mut qp, 2).unwrap();
        qp.to_reset().unwrap();
        // They come with the answer to the next command.
        b.card.complete_late(cq, received(&qp, 0));
        b.card.complete_late(cq, sent(&qp, 0));
        qp.to_init(Access::ALL).unwrap();
        receive(&mut qp, 11);
        if poll_between {
            assert_eq!(polled(&mut b), [0u64; 0]);
        }
        // And one more of the send queue, later still.
        b.card.complete_late(cq, sent(&qp, 0));
        connect(&mut qp);
        write(&mut qp, 12).unwrap();
        assert_eq!(polled(&mut b), [0u64; 0]);
        assert!(b.card.complete(cq, sent(&qp, 0)) && b.card.complete(cq, received(&qp, 0)));
        assert_eq!(polled(&mut b), [12, 11]);
    }
}

/// Flushed receives of a queue pair that goes from INIT to ERROR do complete.
#[test]
fn receives_that_are_flushed_out_of_init_complete() {
    let mut b = Bench::new(Card::new(false), 8);
    let (cq, mut qp) = (b.cq.id(), b.qp());
    qp.to_init(Access::ALL).unwrap();
    receive(&mut qp, 5);
    qp.to_error().unwrap();
    assert!(b.card.complete(cq, received(&qp, 0)));
    assert_eq!(polled(&mut b), [5]);
}

/// One thread polls all the time, another resets: what is polled after a reset has returned is never of a life before it, and nothing is lost or stuck.
#[test]
fn polling_and_resets_at_once() {
    const LIVES: u64 = 300;
    let b = Bench::new(Card::new(false), 16);
    let (card, cq, mut qp, mut other) = (b.card.clone(), b.cq.id(), b.qp(), b.qp());
    [&mut qp, &mut other].into_iter().for_each(start);
    let (life, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut polled_queue = b.cq;
    let others = std::thread::scope(|s| {
        let poller = s.spawn(|| {
            let mut others = 0;
            loop {
                let (last, at_least) = (stop.load(Ordering::Acquire), life.load(Ordering::Acquire));
                match polled_queue.poll() {
                    Some(c) if c.wr_id >> 32 == 0xffff => {
                        assert_eq!(c.wr_id & 0xffff_ffff, others, "of another queue pair, out of order or lost");
                        others += 1;
                    }
                    Some(c) => assert!(c.wr_id >> 32 >= at_least, "of life {} in life {at_least}", c.wr_id >> 32),
                    None if last => return others,
                    None => {}
                }
            }
        });
        let mut foreign = 0;
        for n in 0..LIVES {
            for i in 0..6u16 {
                while write(&mut qp, n << 32 | u64::from(i)).is_err() {}
                while !card.complete(cq, sent(&qp, i)) {}
                while write(&mut other, 0xffff << 32 | foreign).is_err() {}
                while !card.complete(cq, sent(&other, foreign as u16)) {}
                foreign += 1;
            }
            qp.to_reset().unwrap();
            life.store(n + 1, Ordering::Release);
            start(&mut qp);
        }
        stop.store(true, Ordering::Release);
        poller.join().unwrap()
    });
    assert_eq!(others, LIVES * 6, "completions of another queue pair were lost");
}
