//! Several queue pairs set up and taken down in one go: how the card is told, and what is said of a command that fails.
mod card;

use card::{attributes, Bench, Card};
use ferric_abi::codes::{AdminOpcode, AdminStatus};
use ferric_driver::{Access, Error, QpState, QueuePair, Start};
use std::time::Duration;

fn connected() -> Start {
    let (rtr, rts) = attributes();
    Start::Connected { access: Access::ALL, rtr, rts }
}

/// Starts all in one batch.
fn start(b: &Bench, qps: &mut [QueuePair]) -> Vec<Result<(), Error>> {
    let mut batch = b.ctx.batch();
    qps.iter_mut().try_for_each(|qp| batch.start(qp, &connected())).unwrap();
    batch.post().wait()
}

fn all_ok(results: &[Result<(), Error>]) -> bool {
    results.iter().all(Result::is_ok)
}

fn states(qps: &[QueuePair]) -> Vec<QpState> {
    qps.iter().map(QueuePair::state).collect()
}

#[test]
fn the_card_is_told_once() {
    let b = Bench::new(Card::new(false), 64);
    let mut qps: Vec<_> = (0..4).map(|_| b.qp()).collect();
    b.card.admin(|a| (a.bells, a.executed) = (0, Vec::new()));
    assert!(all_ok(&start(&b, &mut qps)));
    assert_eq!(states(&qps), [QpState::Rts; 4]);
    let wanted: Vec<_> = qps.iter().flat_map(|qp| [(AdminOpcode::ModifyQp as u8, qp.qpn()); 3]).collect();
    assert_eq!(b.card.admin(|a| (a.bells, std::mem::take(&mut a.executed))), (1, wanted));

    let wanted: Vec<_> = qps.iter().map(|qp| (AdminOpcode::DestroyQp as u8, qp.qpn())).collect();
    let mut batch = b.ctx.batch();
    qps.into_iter().try_for_each(|qp| batch.destroy(qp)).unwrap();
    assert!(all_ok(&batch.post().wait()));
    assert_eq!(b.card.admin(|a| (a.bells, std::mem::take(&mut a.executed))), (2, wanted), "none is destroyed twice");
}

#[test]
fn more_commands_than_the_ring_has_places() {
    let b = Bench::new(Card::new(false), 64);
    let mut qps: Vec<_> = (0..25).map(|_| b.qp()).collect();
    assert!(all_ok(&start(&b, &mut qps)));
    assert_eq!(states(&qps), [QpState::Rts; 25]);
}

#[test]
fn a_command_in_the_middle_fails() {
    let b = Bench::new(Card::new(false), 64);
    let mut qps: Vec<_> = (0..3).map(|_| b.qp()).collect();
    let command = |state: QpState| (AdminOpcode::ModifyQp as u8, qps[1].qpn(), state as u32);
    let refused = [(command(QpState::Rtr), AdminStatus::BadParameter), (command(QpState::Rts), AdminStatus::BadState)];
    b.card.admin(|a| a.refused.extend(refused));
    let results = start(&b, &mut qps);
    assert!(results[0].is_ok() && results[2].is_ok(), "the others go on: {results:?}");
    assert!(matches!(results[1], Err(Error::Admin { what: "modify QP to RTR", status: AdminStatus::BadParameter })), "{results:?}");
    assert_eq!(states(&qps), [QpState::Rts, QpState::Init, QpState::Rts]);

    // From the state that was reached the single changes go on; back in RESET a batch may have it again.
    b.card.admin(|a| a.refused.clear());
    assert!(matches!(b.ctx.batch().start(&mut qps[1], &connected()), Err(Error::State)));
    qps[1].to_reset().unwrap();
    assert!(all_ok(&start(&b, &mut qps[1..2])));
    assert_eq!(states(&qps), [QpState::Rts; 3]);
}

#[test]
fn a_queue_pair_that_the_card_does_not_destroy_keeps_its_number() {
    let b = Bench::new(Card::new(false), 64);
    let (first, second) = (b.qp(), b.qp());
    let numbers = [first.qpn(), second.qpn()];
    b.card.admin(|a| a.refused.insert((AdminOpcode::DestroyQp as u8, numbers[0], 0), AdminStatus::DmaError));
    let mut batch = b.ctx.batch();
    batch.destroy(first).unwrap();
    batch.destroy(second).unwrap();
    let results = batch.post().wait();
    assert!(matches!(results[..], [Err(Error::Admin { what: "destroy QP", status: AdminStatus::DmaError }), Ok(())]), "{results:?}");
    let next: Vec<_> = std::iter::from_fn(|| b.pd.create_qp(&Default::default(), &b.cq, &b.cq).ok()).collect();
    assert!(next.iter().all(|qp| qp.qpn() != numbers[0]) && next.iter().any(|qp| qp.qpn() == numbers[1]));
}

#[test]
fn a_reset_comes_in_between() {
    let b = Bench::new(Card::new(false), 64);
    let mut qps: Vec<_> = (0..3).map(|_| b.qp()).collect();
    let before = ferric_driver::Device::now(&*b.card);
    b.card.admin(|a| a.left = Some(4));
    let results = start(&b, &mut qps);
    assert!(results[0].is_ok(), "{results:?}");
    assert!(matches!(results[1], Err(Error::AdminTimeout("modify QP to RTR"))) && matches!(results[2], Err(Error::AdminTimeout("modify QP to INIT"))), "{results:?}");
    assert_eq!(states(&qps), [QpState::Rts, QpState::Init, QpState::Reset]);
    assert!(ferric_driver::Device::now(&*b.card) - before < Duration::from_secs(30), "one wait for all of them");
    // As long as nothing is answered the ring is not overwritten: the card may still read it.
    let refused = (0..40).map(|_| qps[0].query()).filter(|r| matches!(r, Err(Error::AdminTimeout(_)))).count();
    assert_eq!(refused, 40);
    assert!(ferric_driver::Device::now(&*b.card) - before < Duration::from_secs(32 * 22));
}

#[test]
fn a_batch_that_nobody_waits_for_happens_and_others_may_work_beside_it() {
    let b = Bench::new(Card::new(false), 64);
    let (mut first, mut second, third) = (b.qp(), b.qp(), b.qp());
    let mut batch = b.ctx.batch();
    batch.start(&mut first, &connected()).unwrap();
    let posted = batch.post();
    // Another command of the same function, whose answer comes behind those of the batch.
    second.to_init(Access::ALL).unwrap();
    drop(posted);
    assert_eq!(states(&[first, second]), [QpState::Rts, QpState::Init]);

    let other = Bench::new(Card::new(false), 64);
    assert!(matches!(other.ctx.batch().destroy(third), Err(Error::Invalid(_))), "a batch is one function's");
    let mut batch = b.ctx.batch();
    let mut reset = b.qp();
    assert!(matches!(batch.fail(&mut reset), Err(Error::State)));
}
