//! Several requests, one doorbell; or none.
mod card;

use card::{start, Bench, Card};
use ferric_abi::codes::{CqeOpcode, WrOpcode};
use ferric_abi::csr;
use ferric_abi::host::{Cqe, Doorbell};
use ferric_driver::qp::{sge, Payload};
use ferric_driver::{Error, QpConfig, RecvRequest, SendRequest, SrqConfig};

fn request(wr_id: u64, payload: Payload<'_>) -> SendRequest<'_> {
    SendRequest { wr_id, opcode: WrOpcode::Write, payload, remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false }
}

#[test]
fn a_list_is_rung_once() {
    for lines in [false, true] {
        let mut b = Bench::new(Card::new(lines), 64);
        let config = QpConfig { max_send: 4, max_send_sge: 1, max_inline: 8, ..Default::default() };
        let mut qp = b.pd.create_qp(&config, &b.cq, &b.cq).unwrap();
        start(&mut qp);
        b.card.rung();
        let entry = [sge(0, 8, 1)];
        for n in 0..3 {
            qp.stage_send(&request(n, Payload::Sges(&entry)), false).unwrap();
        }
        assert_eq!(b.card.rung(), [], "nothing is rung before all is staged");
        qp.ring();
        qp.ring();
        let bell = u64::from_le_bytes(Doorbell::default().with_id(qp.qpn()).with_index(3).0);
        assert_eq!(b.card.rung(), [(csr::DB_SQ, bell)]);
        // One alone travels with its doorbell where there are lines.
        qp.post_send(&request(3, Payload::Inline(&[1; 8]))).unwrap();
        assert_eq!(b.card.rung().iter().map(|r| r.0).collect::<Vec<_>>(), [if lines { csr::DB_WQE } else { csr::DB_SQ }]);
        assert!(matches!(qp.stage_send(&request(4, Payload::Sges(&entry)), false), Err(Error::QueueFull)));
        // What is given up takes no room, and its completion would not be believed.
        let done = |index| Cqe::default().with_wqe_index(index).with_opcode(CqeOpcode::Write as u8).with_qpn(qp.qpn());
        (0..4).for_each(|n| assert!(b.card.complete(b.cq.id(), done(n))));
        assert_eq!(std::iter::from_fn(|| b.cq.poll()).map(|c| c.wr_id).collect::<Vec<_>>(), [0, 1, 2, 3]);
        b.card.rung();
        for _ in 0..3 {
            (4..8).for_each(|n| qp.stage_send(&request(n, Payload::Sges(&entry)), false).unwrap());
            qp.unstage();
            qp.ring();
        }
        assert_eq!(b.card.rung(), []);
        assert!(b.card.complete(b.cq.id(), Cqe::default().with_wqe_index(4).with_opcode(CqeOpcode::Write as u8).with_qpn(qp.qpn())));
        assert_eq!(b.cq.poll(), None);
    }
}

#[test]
fn what_is_placed_first_is_what_is_sent() {
    let b = Bench::new(Card::new(true), 64);
    let mut qp = b.pd.create_qp(&QpConfig { max_send_sge: 1, max_inline: 32, ..Default::default() }, &b.cq, &b.cq).unwrap();
    start(&mut qp);
    let halves = [[1u8; 5], [2; 5]];
    // SAFETY: memory of this test's.
    let placed = unsafe { qp.place_inline(halves.iter().map(|h| (h.as_ptr(), h.len()))) }.unwrap();
    assert_eq!(placed, qp.place_same(&halves.concat()));
    // SAFETY: as above.
    assert!(unsafe { qp.place_inline(std::iter::repeat_n((halves[0].as_ptr(), 5), 7)) }.is_err(), "more than a slot has");
    assert!(qp.place_entries(false, &[sge(0, 8, 1); 3]).is_err());
    assert!(qp.place_entries(true, &[sge(0, 8, 1)]).is_ok());
}

/// The inline bytes of a request that is copied whole.
trait Same {
    fn place_same(&mut self, bytes: &[u8]) -> ferric_driver::qp::Placed;
}

impl Same for ferric_driver::QueuePair {
    fn place_same(&mut self, bytes: &[u8]) -> ferric_driver::qp::Placed {
        // SAFETY: a slice of the caller's.
        unsafe { self.place_inline([(bytes.as_ptr(), bytes.len())].into_iter()) }.unwrap()
    }
}

#[test]
fn receives_of_a_list_are_rung_once() {
    let b = Bench::new(Card::new(false), 64);
    let mut qp = b.qp();
    start(&mut qp);
    b.card.rung();
    (0..3).for_each(|wr_id| qp.stage_recv(&RecvRequest { wr_id, sges: &[] }).unwrap());
    qp.ring_recv();
    qp.ring_recv();
    assert_eq!(b.card.rung().iter().map(|r| r.0).collect::<Vec<_>>(), [csr::DB_RQ]);
    let srq = b.pd.create_srq(&SrqConfig { max_wr: 2, max_sge: 1 }, &b.ctx.create_eq(4, 0).unwrap()).unwrap();
    let mut posting = srq.posting();
    (0..2).for_each(|wr_id| posting.add(&RecvRequest { wr_id, sges: &[] }).unwrap());
    assert!(matches!(posting.add(&RecvRequest { wr_id: 2, sges: &[] }), Err(Error::QueueFull)));
    drop(posting);
    drop(srq.posting());
    assert_eq!(b.card.rung().iter().map(|r| r.0).collect::<Vec<_>>(), [csr::DB_RQ]);
}
