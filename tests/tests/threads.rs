//! Two cards on two threads do, cycle for cycle, what they do on one, and so do cards that change between both.
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::{CqeStatus, QpConfig, SendRequest};
use ferric_sim::trace::Kind;
use ferric_sim::{CardConfig, WorldConfig};
use ferric_tests::pair::{Linked, Pair, Wire};

const BYTES: usize = 20_000;
const PAGE: usize = 4096;

/// When, at which card, what, how many bytes, and whether they were the last: all of an event but addresses, which are the heap's.
type Seen = (u64, u16, Kind, u32, bool);

/// What passed at the cards' boundaries, and when it was over: WRITEs over a link that loses frames.
fn run(threads: Option<usize>) -> (Vec<Seen>, u64) {
    let card = CardConfig { width: 64, ..Default::default() };
    let mut config = WorldConfig { cards: vec![card.clone(), card], threads, ..Default::default() };
    config.link.faults.loss = 5;
    let pair = Pair::new(&config).unwrap();
    let mut link = Linked::on(pair, &QpConfig::default(), &Wire::default(), &[7; BYTES + PAGE]).unwrap();
    // From the first whole page on, wherever the heap has laid the region.
    let page = |addr: u64| addr.next_multiple_of(PAGE as u64);
    link.pair.world().trace = Some(Vec::new());
    for n in 0..4 {
        let from = [sge(page(link.src.addr()), BYTES as u32, link.src.lkey())];
        let (remote_addr, rkey) = (page(link.dst.addr()), link.dst.rkey());
        let request = SendRequest { wr_id: n, opcode: WrOpcode::Write, payload: Payload::Sges(&from), remote_addr, rkey, imm: 0, signaled: true, solicited: false };
        link.qps[0].post_send(&request).unwrap();
        assert_eq!(link.wait(0, 400_000).unwrap().status, CqeStatus::Success);
    }
    let mut world = link.pair.world();
    let trace = world.trace.take().unwrap();
    (trace.iter().map(|e| (e.cycle, e.card, e.kind, e.bytes, e.last)).collect(), world.cycle())
}

#[test]
fn threads_change_nothing() {
    let one = run(Some(1));
    assert!(one.0.len() > 1000, "{} events", one.0.len());
    for threads in [Some(2), None] {
        let other = run(threads);
        let differs = one.0.iter().zip(&other.0).position(|(a, b)| a != b);
        assert_eq!((differs, other.0.len(), other.1), (None, one.0.len(), one.1), "{threads:?} threads: the first event that differs, events, cycles");
    }
}
