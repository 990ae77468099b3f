//! Queue pairs set up and taken down in batches on whole cards: what it costs, and what is said when the card refuses a command in the middle.
use ferric_abi::codes::{AdminStatus, WrOpcode};
use ferric_driver::qp::{sge, Payload};
use ferric_driver::{Access, CqeStatus, Error, Mtu, QpConfig, QpState, QpType, RtrAttr, RtsAttr, SendRequest, Source, Start};
use ferric_sim::{CardConfig, WorldConfig};
use ferric_tests::pair::{together, Linked, Pair, Wire};

const QKEY: u32 = 0x77;

fn pair() -> Pair {
    let card = CardConfig { width: 64, ..Default::default() };
    Pair::new(&WorldConfig { cards: vec![card.clone(), card], ..Default::default() }).unwrap()
}

/// Cycles that something takes.
fn cycles(pair: &Pair, what: impl FnOnce()) -> u64 {
    let start = pair.world().cycle();
    what();
    pair.world().cycle() - start
}

/// Both cards work at the same time, and none waits for its driver between two commands.
#[test]
fn batches_of_two_cards_take_half_the_cycles() {
    let pair = pair();
    let cqs = [pair.hosts[0].cq(64).unwrap(), pair.hosts[1].cq(64).unwrap()];
    let make = || [0, 1].map(|h| pair.hosts[h].pd.create_qp(&QpConfig::default(), &cqs[h], &cqs[h]).unwrap());
    let rts = RtsAttr { sq_psn: 1, timeout: 8, retry_cnt: 7, rnr_retry: 7, max_rd_atomic: 16 };
    let mut qps = make();
    let one_by_one = cycles(&pair, || {
        for qp in &mut qps {
            qp.to_init(Access::ALL).unwrap();
            qp.to_rtr(Access::ALL, &RtrAttr { mtu: Mtu::M1024, dest_qpn: 5, rq_psn: 1, min_rnr_timer: 1, repeat_nak: false, max_dest_rd_atomic: 16, path: None }).unwrap();
            qp.to_rts(&rts).unwrap();
        }
    });
    let dropped = cycles(&pair, || drop(qps));
    let mut qps = make();
    let [a, b] = &mut qps;
    let batched = cycles(&pair, || pair.connect(&Wire::default(), a, b).unwrap());
    assert!(qps.iter().all(|qp| qp.state() == QpState::Rts && qp.query().unwrap().state == QpState::Rts));
    let destroyed = cycles(&pair, || pair.destroy_of(0, [qps]).unwrap());
    println!("cycles to connect: one by one {one_by_one}, in batches {batched}; to destroy: {dropped}, {destroyed}");
    assert!(batched * 100 < one_by_one * 60 && destroyed * 100 < dropped * 60, "connect {batched} of {one_by_one}, destroy {destroyed} of {dropped}");
}

#[test]
fn a_change_that_the_card_refuses_stops_its_queue_pair_and_no_other() {
    let pair = pair();
    let host = &pair.hosts[0];
    let cq = host.cq(64).unwrap();
    let make = |qp_type| host.pd.create_qp(&QpConfig { qp_type, ..Default::default() }, &cq, &cq).unwrap();
    let (mut wrong, mut right) = (make(QpType::Rc), make(QpType::Ud));
    // More READs than the card keeps.
    let rtr = RtrAttr { mtu: Mtu::M1024, dest_qpn: 5, rq_psn: 1, min_rnr_timer: 1, repeat_nak: false, max_dest_rd_atomic: 17, path: None };
    let rts = RtsAttr { sq_psn: 1, timeout: 8, retry_cnt: 7, rnr_retry: 7, max_rd_atomic: 16 };
    let source = Source { smac: host.mac(), sip: host.ip(false), vlan: None, udp_sport: 0xc001, flow_label: 0 };
    let mut batch = host.ctx.batch();
    batch.start(&mut wrong, &Start::Connected { access: Access::ALL, rtr, rts }).unwrap();
    batch.start(&mut right, &Start::Datagrams { qkey: QKEY, mtu: Mtu::M1024, source, sq_psn: 9 }).unwrap();
    let done = batch.post().wait();
    assert!(matches!(done[..], [Err(Error::Admin { what: "modify QP to RTR", status: AdminStatus::BadParameter }), Ok(())]), "{done:?}");
    // The driver says of both what the card has.
    for (qp, state) in [(&wrong, QpState::Init), (&right, QpState::Rts)] {
        assert_eq!((qp.state(), qp.query().unwrap().state), (state, state));
    }
    wrong.to_rtr(Access::ALL, &RtrAttr { max_dest_rd_atomic: 16, ..rtr }).unwrap();
    wrong.to_rts(&rts).unwrap();
    let mut batch = host.ctx.batch();
    batch.fail(&mut wrong).unwrap();
    together([batch]).unwrap();
    assert_eq!(wrong.query().unwrap().state, QpState::Error);
}

/// More commands than the ring has places, on a card that takes its time.
#[test]
fn fifteen_queue_pairs_in_one_batch() {
    let pair = pair();
    let cqs = [pair.hosts[0].cq(64).unwrap(), pair.hosts[1].cq(64).unwrap()];
    let mut qps: Vec<_> = (0..15).map(|_| [0, 1].map(|h| pair.hosts[h].pd.create_qp(&QpConfig { qp_type: QpType::Ud, ..Default::default() }, &cqs[h], &cqs[h]).unwrap())).collect();
    let mut batches = pair.hosts.each_ref().map(|host| host.ctx.batch());
    for (side, qp) in qps.iter_mut().flat_map(|pair| pair.iter_mut().enumerate()) {
        let host = &pair.hosts[side];
        let source = Source { smac: host.mac(), sip: host.ip(true), vlan: None, udp_sport: 0xc001, flow_label: 0 };
        batches[side].start(qp, &Start::Datagrams { qkey: QKEY, mtu: Mtu::M1024, source, sq_psn: 9 }).unwrap();
    }
    together(batches).unwrap();
    assert!(qps.iter().flatten().all(|qp| qp.query().unwrap().state == QpState::Rts));
    let mut batches = pair.hosts.each_ref().map(|host| host.ctx.batch());
    for qp in &mut qps {
        qp.iter_mut().zip(&mut batches).try_for_each(|(qp, batch)| batch.fail(qp)).unwrap();
    }
    together(batches).unwrap();
    assert!(qps.iter().flatten().all(|qp| qp.state() == QpState::Error));
    pair.destroy_of(0, qps).unwrap();
    // What is gone has given back its domain and its completion queue.
    drop(cqs);
    assert_eq!(pair.iommu_faults(), 0);
}

/// While host 0 does nothing but wait for commands, the other card's clock stands, but when something comes by the wire: a WRITE arrives there, and is acknowledged. With `rest` off no clock stands.
#[test]
fn clocks_of_cards_that_rest_stand_until_a_frame_comes() {
    for rest in [false, true] {
        let card = CardConfig { width: 64, ..Default::default() };
        let pair = Pair::new(&WorldConfig { cards: vec![card.clone(), card], rest, ..Default::default() }).unwrap();
        let mut l = Linked::on(pair, &QpConfig::default(), &Wire { timeout: 0, ..Wire::default() }, &[7; 3000]).unwrap();
        let clocks = |pair: &Pair| {
            let world = pair.world();
            [world.rested(), world.cycle()]
        };
        let before = clocks(&l.pair);
        let sges = [sge(l.src.addr(), 3000, l.src.lkey())];
        let request = SendRequest { wr_id: 1, opcode: WrOpcode::Write, payload: Payload::Sges(&sges), remote_addr: l.dst.addr(), rkey: l.dst.rkey(), imm: 0, signaled: true, solicited: false };
        l.qps[0].post_send(&request).unwrap();
        for _ in 0..20 {
            l.pair.hosts[0].ctx.counters(0, 1).unwrap();
        }
        // Without one more cycle.
        assert_eq!(l.cqs[0].poll().map(|done| done.status), Some(CqeStatus::Success));
        assert!(l.dst.to_vec(0, 3000) == [7; 3000]);
        let now = clocks(&l.pair);
        let (rested, passed) = (now[0] - before[0], now[1] - before[1]);
        assert!(if rest { (passed / 2..passed).contains(&rested) } else { rested == 0 }, "{rested} of {passed} cycles");
    }
}
