//! Strangers and neighbours: packets with the right queue pair, PSN and key that do not come from the peer, or are not for this host, have no effect and no answer.
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mac, Mtu, QpType};
use ferric_driver::ud::MULTICAST_QPN;
use ferric_driver::{Access, AddressHandle, CqeStatus, QpConfig, ReadRequest, RecvRequest, SendRequest, Source};
use ferric_hdl::card::counters;
use ferric_sim::fabric::Fate;
use ferric_sim::{CardConfig, WorldConfig};
use ferric_tests::pair::{Linked, Pair, Wire};
use ferric_tests::strangers::{aeth, packet, reth, run, Between, Foreign, Plan};
use ferric_tests::widths::widths;

const PATIENCE: u64 = 400_000;

fn pair(width: usize) -> Pair {
    let card = CardConfig { width, ..Default::default() };
    Pair::new(&WorldConfig { cards: vec![card.clone(), card], ..Default::default() }).unwrap()
}

fn counter(pair: &Pair, host: usize, name: &str) -> u64 {
    pair.hosts[host].ctx.counters(counters::index(name).expect(name) as u32, 1).unwrap()[0]
}

/// Frames that host `host` has sent.
fn sent(pair: &Pair, host: usize) -> u64 {
    counter(pair, host, "egress.tx_frames")
}

fn throw(pair: &Pair, host: usize, frame: Vec<u8>) {
    let mut world = pair.world();
    world.cards[host].receive(frame);
    world.run(600);
}

/// A frame that is to have an effect, and time for it.
fn deliver(pair: &Pair, host: usize, frame: Vec<u8>) {
    throw(pair, host, frame);
    pair.world().run(2400);
}

fn write(b: &mut Linked, wr_id: u64, at: u64, len: u32) {
    let from = [sge(b.src.addr(), len, b.src.lkey())];
    let request = SendRequest { wr_id, opcode: WrOpcode::Write, payload: Payload::Sges(&from), remote_addr: b.dst.addr() + at, rkey: b.dst.rkey(), imm: 0, signaled: true, solicited: false };
    b.qps[0].post_send(&request).unwrap();
}

const WIRES: [Wire; 3] = {
    let base = Wire { mtu: Mtu::M256, psn: [0x1000, 0x2000], ..Wire::DEFAULT };
    [base, Wire { v6: true, vlan: Some(0x6123), ..base }, Wire { vlan: Some(7), ..base }]
};

/// The WRITE of a stranger changes no byte and takes no PSN: the peer's WRITE of that PSN arrives. The same for SEND, READ, atomics, duplicates, and in mid-message.
fn requests(width: usize, qp_type: QpType) {
    let mut p = Some(pair(width));
    for (round, wire) in WIRES.iter().enumerate().take(if qp_type == QpType::Rc { 3 } else { 1 }) {
        let config = QpConfig { qp_type, ..Default::default() };
        let mut b = Linked::on(p.take().unwrap(), &config, wire, &(0..2000u32).map(|i| (i * 7) as u8 | 1).collect::<Vec<_>>()).unwrap();
        let class = if qp_type == QpType::Rc { 0 } else { 0x20 };
        let (qpn, psn, rc) = (b.qps[1].qpn(), wire.psn[0], qp_type == QpType::Rc);
        let into = [sge(b.dst.addr() + 1000, 500, b.dst.lkey())];
        b.qps[1].post_recv(&RecvRequest { wr_id: 5, sges: &into }).unwrap();
        let own = Between::of(&b.pair, wire, 0);
        let access = |at: u64, len: u32| reth(b.dst.addr() + at, b.dst.rkey(), len);
        let (start, before) = (sent(&b.pair, 1), counter(&b.pair, 1, "rx.rx_stranger"));
        let mut thrown = 0;
        for (n, foreign) in Foreign::ALL.into_iter().cycle().take(16).enumerate() {
            let n = n as u64 * 7 + round as u64;
            let between = foreign.apply(&own, n);
            let mut forged =
                vec![packet(0x0a | class, qpn, psn, &access(0, 64), &[0xee; 64]), packet(0x06 | class, qpn, psn, &access(0, 512), &[0xee; 256]), packet(0x04 | class, qpn, psn, &[], &[0xee; 64])];
            if rc {
                forged.push(packet(0x0c, qpn, psn, &access(0, 64), &[]));
                forged.push(packet(0x14, qpn, psn, &[&access(0, 0)[..12], &[0, 0, 0, 0, 0, 0, 0, 1], &[0; 8]].concat(), &[]));
                // A duplicate, a gap.
                forged.push(packet(0x0a, qpn, psn - 1, &access(0, 64), &[0xee; 64]));
                forged.push(packet(0x0a, qpn, psn + 1, &access(0, 64), &[0xee; 64]));
                // What ends a connection: an opcode out of order.
                forged.push(packet(0x07, qpn, psn, &[], &[0xee; 256]));
            }
            for f in forged {
                throw(&b.pair, 1, between.frame(&f));
                thrown += 1;
            }
        }
        assert_eq!(counter(&b.pair, 1, "rx.rx_stranger") - before, thrown);
        assert_eq!(sent(&b.pair, 1), start, "a stranger was answered");
        assert_eq!(b.dst.to_vec(0, 2000), vec![0; 2000]);
        let state = b.qps[1].query().unwrap();
        assert_eq!((state.expected_psn, state.msn), (psn, 0));

        // In the middle of the peer's message, whose packets come by another way now: another source MAC address, another priority.
        let router = Between { smac: Mac([2, 9, 9, 9, 9, 9]), vlan: own.vlan.map(|v| v ^ 0xe000), ..own };
        let bytes = b.src.to_vec(0, 600);
        throw(&b.pair, 1, router.frame(&packet(0x06 | class, qpn, psn, &access(0, 600), &bytes[..256])));
        throw(&b.pair, 1, Foreign::Source.apply(&own, 3).frame(&packet(0x07 | class, qpn, psn + 1, &[], &[0xee; 256])));
        throw(&b.pair, 1, router.frame(&packet(0x07 | class, qpn, psn + 1, &[], &bytes[256..512])));
        throw(&b.pair, 1, Foreign::Flooded.apply(&own, 3).frame(&packet(0x08 | class, qpn, psn + 2, &[], &[0xee; 88])));
        deliver(&b.pair, 1, router.frame(&packet(0x08 | class, qpn, psn + 2, &[], &bytes[512..])));
        assert_eq!(b.dst.to_vec(0, 1000), [&bytes[..], &[0; 400]].concat());
        assert_eq!((b.qps[1].query().unwrap().expected_psn, b.qps[1].query().unwrap().msn), (psn + 3, 1));

        // A new connection of the same PSNs: what the peer asks for arrives at once, behind a stranger's request of that PSN.
        b.dst.write(0, &[0; 2000]);
        let fresh = b.pair.connected(&config, wire, [&b.cqs[0], &b.cqs[1]]).unwrap();
        let old = std::mem::replace(&mut b.qps, fresh);
        throw(&b.pair, 1, Foreign::Everything.apply(&own, 9).frame(&packet(0x0a | class, b.qps[1].qpn(), psn, &reth(b.dst.addr(), b.dst.rkey(), 8), &[0xee; 8])));
        write(&mut b, 1, 100, 600);
        assert_eq!(b.wait(0, PATIENCE).unwrap().status, CqeStatus::Success);
        b.pair.world().run(3000);
        assert_eq!(b.dst.to_vec(0, 2000), [&[0; 100][..], &bytes, &[0; 1300]].concat());
        assert_eq!((counter(&b.pair, 0, "req_rx.retransmits"), b.pair.iommu_faults()), (0, 0));
        drop(old);
        let Linked { pair, .. } = b;
        p = Some(pair);
    }
}

#[test]
fn a_write_of_a_stranger_changes_nothing() {
    widths(512).into_iter().for_each(|width| requests(width, QpType::Rc));
}

#[test]
fn strangers_of_unreliable_connections() {
    requests(64, QpType::Uc);
    requests(512, QpType::Uc);
}

/// A stranger's acknowledge completes nothing, his NAK ends nothing, his answer to a READ is not placed; the peer's are then taken.
fn answers(width: usize) {
    let mut p = Some(pair(width));
    for wire in &WIRES {
        let mut b = Linked::on(p.take().unwrap(), &QpConfig::default(), wire, &[0x5a; 2000]).unwrap();
        b.dst.write(0, &[0x77; 2000]);
        let (qpn, psn) = (b.qps[0].qpn(), wire.psn[0]);
        // The peer hears nothing for now.
        b.pair.world().links[0].set_hook(Some(Box::new(|_, _| Some(Fate::Dropped))));
        let into = [sge(b.src.addr() + 1000, 300, b.src.lkey())];
        b.qps[0].post_read(&ReadRequest { wr_id: 1, sges: &into, remote_addr: b.dst.addr(), rkey: b.dst.rkey(), signaled: true, fence: false }).unwrap();
        write(&mut b, 2, 600, 200);
        b.pair.world().run(3000);
        let own = Between::of(&b.pair, wire, 1);
        let before = counter(&b.pair, 0, "rx.rx_stranger");
        let mut thrown = 0;
        for (n, foreign) in Foreign::ALL.into_iter().enumerate() {
            let between = foreign.apply(&own, n as u64 * 5);
            let mut forged = vec![
                packet(0x0d, qpn, psn, &aeth(0x1f, 1), &[0xee; 256]),
                packet(0x0f, qpn, psn + 1, &aeth(0x1f, 1), &[0xee; 44]),
                packet(0x10, qpn, psn, &aeth(0x1f, 1), &[0xee; 256]),
                packet(0x12, qpn, psn, &[aeth(0x1f, 1), vec![0xee; 8]].concat(), &[]),
                packet(0x81, qpn, 0, &[], &[0; 16]),
            ];
            for syndrome in [0x1f, 0x60, 0x61, 0x62, 0x63, 0x21, 0x2e] {
                for ahead in [0, 2] {
                    forged.push(packet(0x11, qpn, psn + ahead, &aeth(syndrome, 1), &[]));
                }
            }
            for f in forged {
                b.pair.world().cards[0].receive(between.frame(&f));
                thrown += 1;
            }
        }
        b.pair.world().run(20_000);
        assert_eq!(counter(&b.pair, 0, "rx.rx_stranger") - before, thrown);
        for name in [
            "req_rx.nak_seq_received",
            "req_rx.nak_inv_received",
            "req_rx.nak_access_received",
            "req_rx.nak_op_received",
            "req_rx.rnr_received",
            "req_rx.bad_ack",
            "req_rx.bad_response",
            "cc.rp_cnp_ignored",
        ] {
            assert_eq!(counter(&b.pair, 0, name), 0, "{name}");
        }
        assert!(b.cqs[0].poll().is_none(), "a stranger completed a request");
        assert_eq!(b.src.to_vec(1000, 300), [0x5a; 300]);
        b.pair.world().links[0].set_hook(None);
        for wr_id in [1, 2] {
            let c = b.wait(0, 40_000_000).unwrap();
            assert_eq!((c.wr_id, c.status), (wr_id, CqeStatus::Success));
        }
        assert_eq!((b.src.to_vec(1000, 300), b.dst.to_vec(600, 200)), (vec![0x77; 300], vec![0x5a; 200]));
        let Linked { pair, .. } = b;
        p = Some(pair);
    }
}

#[test]
fn answers_of_strangers_are_not_taken() {
    widths(64).into_iter().for_each(answers);
}

/// Datagrams come from anybody, but to this host: its MAC address, the queue pair's own IP address and VLAN, or a group's.
#[test]
fn datagrams_for_others_are_not_taken() {
    for (width, v6, vlan) in [(64, false, None), (512, true, Some(0x6123u16)), (64, true, None), (512, false, Some(7))] {
        let p = pair(width);
        let wire = Wire { v6, vlan, ..Default::default() };
        let mut cq = p.hosts[1].cq(256).unwrap();
        let dst = p.hosts[1].region(4096, Access::ALL).unwrap();
        let config = QpConfig { qp_type: QpType::Ud, max_recv: 128, ..Default::default() };
        let source = Source { smac: p.hosts[1].mac(), sip: p.hosts[1].ip(v6), vlan, udp_sport: 0xd123, flow_label: 0 };
        // The second is in another VLAN and in the same group.
        let mut qps = [vlan, Some(0x222)].map(|vlan| {
            let mut qp = p.hosts[1].pd.create_qp(&config, &cq, &cq).unwrap();
            qp.to_init_ud(0x1234).unwrap();
            qp.to_rtr_ud(Mtu::M1024, &Source { vlan, ..source }).unwrap();
            let into = [sge(dst.addr(), 512, dst.lkey())];
            (0..64).for_each(|n| qp.post_recv(&RecvRequest { wr_id: n, sges: &into }).unwrap());
            qp
        });
        let own = Between::of(&p, &wire, 0);
        let qpn = qps[0].qpn();
        let datagram = |qpn: u32, qkey: u32| packet(0x64, qpn, 9, &[&qkey.to_be_bytes()[..], &[0, 0, 0, 0x55]].concat(), &[0xab; 32]);
        let mut dropped = 0;
        for (n, foreign) in Foreign::ALL.into_iter().enumerate().filter(|(_, f)| *f != Foreign::Source) {
            throw(&p, 1, foreign.apply(&own, 11 + n as u64).frame(&datagram(qpn, 0x1234)));
            dropped += 1;
            assert_eq!((cq.poll().map(|c| c.wr_id), counter(&p, 1, "rx.rx_stranger")), (None, dropped), "{foreign:?}");
        }
        // From anybody.
        for n in 0..8 {
            deliver(&p, 1, Between { smac: Mac([n; 6]), ..Foreign::Source.apply(&own, u64::from(n) * 9) }.frame(&datagram(qpn, 0x1234)));
            assert_eq!(cq.poll().map(|c| (c.status, c.byte_len)), Some((CqeStatus::Success, 72)));
        }
        // The Q_Key bit by bit.
        for bit in 0..32 {
            throw(&p, 1, own.frame(&datagram(qpn, 0x1234 ^ 1 << bit)));
            assert!(cq.poll().is_none(), "bit {bit} of the Q_Key");
        }
        assert_eq!(counter(&p, 1, "resp.drop_bad_qkey"), 32);
        // To the group at its MAC address; at another, or to the group's address at the queue pair's number, it is nobody's.
        let group = AddressHandle::multicast(if v6 { "ff0e::1:2345".parse().unwrap() } else { "239.129.3.4".parse().unwrap() }).unwrap();
        qps.iter_mut().for_each(|qp| qp.attach_multicast(group.dip).unwrap());
        let to_group = Between { dmac: group.dmac, dip: group.dip, ..own };
        for (between, to) in
            [(Between { dmac: own.dmac, ..to_group }, MULTICAST_QPN), (to_group, qpn), (Foreign::Flooded.apply(&to_group, 40), MULTICAST_QPN), (Foreign::Broadcast.apply(&to_group, 0), MULTICAST_QPN)]
        {
            throw(&p, 1, between.frame(&datagram(to, 0x1234)));
            dropped += 1;
            assert_eq!((cq.poll().map(|c| c.qpn), counter(&p, 1, "rx.rx_stranger")), (None, dropped));
        }
        for (tag, wanted) in [(vlan, vec![qpn]), (Some(0x8222), vec![qps[1].qpn()]), (Some(0x333), vec![])] {
            deliver(&p, 1, Between { vlan: tag, ..to_group }.frame(&datagram(MULTICAST_QPN, 0x1234)));
            assert_eq!(std::iter::from_fn(|| cq.poll()).map(|c| c.qpn).collect::<Vec<_>>(), wanted, "{tag:?}");
        }
        assert_eq!((counter(&p, 1, "mcast.mcast_no_group"), counter(&p, 1, "resp.drop_no_qp")), (1, 1));
        assert_eq!(p.iommu_faults(), 0);
    }
}

/// Who is not connected yet is spoken to by nobody, and each frame is counted once.
#[test]
fn before_there_is_a_peer_nothing_is_taken() {
    let p = pair(64);
    let cq = p.hosts[1].cq(16).unwrap();
    let dst = p.hosts[1].region(4096, Access::ALL).unwrap();
    let mut qp = p.hosts[1].pd.create_qp(&QpConfig::default(), &cq, &cq).unwrap();
    let own = Between::of(&p, &Wire::default(), 0);
    let frame = |qpn: u32| own.frame(&packet(0x0a, qpn, 0, &reth(dst.addr(), dst.rkey(), 64), &[0xee; 64]));
    throw(&p, 1, frame(qp.qpn()));
    qp.to_init(Access::ALL).unwrap();
    throw(&p, 1, frame(qp.qpn()));
    // A number beyond the table, whose lower bits are this queue pair's.
    throw(&p, 1, frame(qp.qpn() | 0x10_0000));
    assert_eq!((counter(&p, 1, "resp.drop_no_qp"), counter(&p, 1, "rx.rx_stranger"), sent(&p, 1)), (3, 0, 0));
    assert_eq!(dst.to_vec(0, 64), [0; 64]);
}

/// A short form of `./scripts/soak hostile --strangers 10000`.
#[test]
fn a_real_pair_works_among_strangers() {
    for (seed, width) in [(1, 64), (2, 512)] {
        let outcome = run(Plan { seed, frames: 400, width }).unwrap();
        println!("{outcome:?}");
    }
}
