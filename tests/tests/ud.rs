//! Unreliable datagrams on whole cards (IBTA volume 1, 9.8.3, and annex A17): addresses per request, Q_Keys, the GRH area, losses.
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mtu, QpType};
use ferric_driver::ud::{GRH_BYTES, GSI_QKEY, GSI_QPN, MULTICAST_QPN, QKEY_OWN};
use ferric_driver::{Access, AddressHandle, Completion, CompletionQueue, CqeStatus, DatagramRequest, Grh, MemoryRegion, QpConfig, QpState, QueuePair, RecvRequest, Source};
use ferric_hdl::card::counters;
use ferric_sim::{CardConfig, WorldConfig};
use ferric_tests::pair::{Pair, Wire};
use ferric_tests::traffic::{pattern, Flow};
use std::net::IpAddr;

const PATIENCE: u64 = 400_000;
const SLOT: usize = 4096;
const QKEY: u32 = 0x1122_3344;

struct Bench {
    pair: Pair,
    cqs: [CompletionQueue; 2],
    /// Of host 0, then two of host 1.
    qps: Vec<QueuePair>,
    src: MemoryRegion,
    dst: MemoryRegion,
    v6: bool,
}

fn source(pair: &Pair, host: usize, v6: bool, vlan: Option<u16>) -> Source {
    Source { smac: pair.hosts[host].mac(), sip: pair.hosts[host].ip(v6), vlan, udp_sport: 0xd123, flow_label: 0x5_4321 }
}

impl Bench {
    fn new(width: usize, mtu: Mtu, v6: bool, vlan: Option<u16>) -> Self {
        let card = CardConfig { width, ..Default::default() };
        let pair = Pair::new(&WorldConfig { cards: vec![card.clone(), card], ..Default::default() }).unwrap();
        let cqs = [pair.hosts[0].cq(64).unwrap(), pair.hosts[1].cq(64).unwrap()];
        let config = QpConfig { qp_type: QpType::Ud, max_inline: 100, ..Default::default() };
        let mut qps: Vec<_> = [0, 1, 1].into_iter().map(|h| pair.hosts[h].pd.create_qp(&config, &cqs[h], &cqs[h]).unwrap()).collect();
        for (n, qp) in qps.iter_mut().enumerate() {
            // Each has a Q_Key of its own.
            qp.to_init_ud(QKEY + n as u32).unwrap();
            qp.to_rtr_ud(mtu, &source(&pair, n.min(1), v6, vlan)).unwrap();
            qp.to_rts_ud(0xff_fff0).unwrap();
        }
        let src = pair.hosts[0].region(8 * SLOT, Access::ALL).unwrap();
        let dst = pair.hosts[1].region(16 * SLOT, Access::ALL).unwrap();
        for n in 0..8 {
            let bytes: Vec<u8> = (0..SLOT).map(|i| pattern(n, i)).collect();
            src.write(n as usize * SLOT, &bytes);
        }
        dst.write(0, &[0xee; 16 * SLOT]);
        Self { pair, cqs, qps, src, dst, v6 }
    }

    fn to(&self) -> AddressHandle {
        AddressHandle { tclass: 0x20, hop_limit: 17, ..AddressHandle::new(self.pair.hosts[1].mac(), self.pair.hosts[1].ip(self.v6)) }
    }

    /// The first `len` bytes of slot `n`, in three entries or inline, to queue pair `to` of host 1.
    fn send(&mut self, n: usize, len: usize, to: usize, qkey: u32, imm: Option<u32>, inline: bool) {
        let at = self.src.addr() + (n * SLOT) as u64;
        let (a, b) = (len / 3, len / 2);
        let cuts = [(0, a), (a, b), (b, len)].map(|(from, end)| sge(at + from as u64, (end - from) as u32, self.src.lkey()));
        let bytes = self.src.to_vec(n * SLOT, len);
        let payload = if inline { Payload::Inline(&bytes) } else { Payload::Sges(&cuts) };
        let (to_address, dest_qpn) = (self.to(), self.qps[to].qpn());
        let request = DatagramRequest { wr_id: n as u64, payload, to: &to_address, dest_qpn, qkey, imm, signaled: true, solicited: n % 2 == 1 };
        self.qps[0].post_send_ud(&request).unwrap();
    }

    /// `len` bytes of slot `slot` for queue pair `qp`, in two entries.
    fn receive(&mut self, qp: usize, slot: usize, len: usize) {
        let at = self.dst.addr() + (slot * SLOT) as u64;
        let first = len.min(30 + slot);
        let into = [sge(at, first as u32, self.dst.lkey()), sge(at + first as u64, (len - first) as u32, self.dst.lkey())];
        self.qps[qp].post_recv(&RecvRequest { wr_id: slot as u64, sges: &into }).unwrap();
    }

    fn completion(&mut self, host: usize) -> Completion {
        let Bench { pair, cqs, .. } = self;
        pair.wait(&mut cqs[host], PATIENCE).unwrap()
    }

    fn sent(&mut self, n: usize) {
        let c = self.completion(0);
        assert_eq!((c.wr_id, c.status, c.is_recv), (n as u64, CqeStatus::Success, false), "{c:?}");
    }

    /// The next completion of host 1 is that of message `n` in slot `slot` of queue pair `qp`, and the slot holds it and nothing else.
    fn arrived(&mut self, qp: usize, slot: usize, n: usize, len: usize, imm: Option<u32>) {
        let c = self.completion(1);
        let got = (c.wr_id, c.status, c.qpn, c.byte_len as usize, c.imm, c.src_qp, c.grh, c.is_recv, c.solicited);
        let want = (slot as u64, CqeStatus::Success, self.qps[qp].qpn(), len + GRH_BYTES, imm, self.qps[0].qpn(), true, true, n % 2 == 1);
        assert_eq!(got, want);
        let bytes = self.dst.to_vec(slot * SLOT, SLOT);
        let grh = Grh::parse(bytes[..GRH_BYTES].try_into().unwrap()).expect("a GRH");
        assert_eq!(grh, Grh { sip: self.pair.hosts[0].ip(self.v6), dip: self.pair.hosts[1].ip(self.v6), tclass: 0x20 });
        if !self.v6 {
            assert_eq!((&bytes[..20], bytes[28]), (&[0xee; 20][..], 17), "in front of the IPv4 header, and its hop limit");
        } else {
            assert_eq!((bytes[1] & 15, bytes[2], bytes[3], bytes[7]), (5, 0x43, 0x21, 17), "flow label of the source, hop limit of the handle");
        }
        let wrong = bytes[GRH_BYTES..].iter().enumerate().find(|(i, b)| **b != if *i < len { pattern(n as u64, *i) } else { 0xee });
        assert_eq!(wrong, None, "slot {slot}, message {n} of {len} bytes");
    }

    fn counter(&self, host: usize, name: &str) -> u64 {
        self.pair.hosts[host].ctx.counters(counters::index(name).expect(name) as u32, 1).unwrap()[0]
    }
}

fn lengths(width: usize, mtu: Mtu, v6: bool, vlan: Option<u16>) {
    let mut b = Bench::new(width, mtu, v6, vlan);
    let messages = [(0, false), (1, true), (63, false), (64, true), (100, true), (mtu.bytes() - 1, false), (mtu.bytes(), false), (0, true)];
    for (n, (len, inline)) in messages.into_iter().enumerate() {
        let (qp, imm) = (1 + n / 2 % 2, (n % 3 == 0).then_some(0xabcd_0000 + n as u32));
        b.receive(qp, n, if n % 2 == 0 { len + GRH_BYTES } else { SLOT });
        b.send(n, len, qp, QKEY + qp as u32, imm, inline);
    }
    (0..8).for_each(|n| b.sent(n));
    for (n, (len, _)) in messages.into_iter().enumerate() {
        b.arrived(1 + n / 2 % 2, n, n, len, (n % 3 == 0).then_some(0xabcd_0000 + n as u32));
    }
    // Nothing came back.
    assert_eq!(b.pair.world().links[1].counters.sent, 0);
    assert_eq!(b.pair.iommu_faults(), 0);
}

#[test]
fn every_length_to_two_queue_pairs() {
    lengths(512, Mtu::M1024, false, None);
    lengths(512, Mtu::M256, true, Some(0x4064));
}

#[test]
fn every_length_w64() {
    lengths(64, Mtu::M2048, false, Some(0x2005));
    lengths(64, Mtu::M1024, true, None);
}

#[test]
fn what_a_receiver_does_not_want_is_dropped_counted_and_forgotten() {
    let mut b = Bench::new(512, Mtu::M1024, false, None);
    let bad = b.counter(1, "resp.drop_bad_qkey");
    b.receive(1, 0, SLOT);
    // The other queue pair's Q_Key; a queue pair that is not there; none of the receiver's; then the right one, which is the sender's own.
    b.send(0, 64, 1, QKEY + 2, None, false);
    b.send(1, 64, 1, QKEY_OWN, None, false);
    b.send(2, 64, 2, QKEY + 2, None, false);
    b.send(3, 64, 1, QKEY + 1, None, false);
    (0..4).for_each(|n| b.sent(n));
    b.arrived(1, 0, 3, 64, None);
    assert_eq!(b.counter(1, "resp.drop_bad_qkey") - bad, 2);
    assert_eq!(b.counter(1, "resp.no_recv"), 1, "queue pair 2 had no receive");
    // It gets the next one.
    b.receive(2, 1, SLOT);
    b.send(4, 500, 2, QKEY + 2, Some(5), false);
    b.sent(4);
    b.arrived(2, 1, 4, 500, Some(5));
    // Every one of them is still alive.
    let states: Vec<_> = b.qps.iter().map(|qp| qp.query().unwrap().responder_state).collect();
    assert_eq!(states, [QpState::Rts; 3]);
    assert_eq!(b.pair.world().links[1].counters.sent, 0);
}

#[test]
fn the_own_qkey_is_sent_when_the_request_says_so() {
    let mut b = Bench::new(512, Mtu::M1024, false, None);
    // Host 1's first queue pair gets the sender's Q_Key.
    let source = source(&b.pair, 1, false, None);
    b.qps[1].to_reset().unwrap();
    b.qps[1].to_init_ud(QKEY).unwrap();
    b.qps[1].to_rtr_ud(Mtu::M1024, &source).unwrap();
    b.receive(1, 0, SLOT);
    b.send(1, 64, 1, QKEY_OWN | 0x1234, None, false);
    b.sent(1);
    b.arrived(1, 0, 1, 64, None);
}

#[test]
fn a_receive_that_is_too_small_costs_itself_only() {
    let mut b = Bench::new(512, Mtu::M1024, true, None);
    for (slot, len) in [(0, GRH_BYTES + 99), (1, 39), (2, 39), (3, GRH_BYTES + 100)] {
        b.receive(1, slot, len);
    }
    b.send(0, 100, 1, QKEY + 1, Some(1), false);
    b.send(1, 100, 1, QKEY + 1, None, false);
    b.send(2, 0, 1, QKEY + 1, None, false);
    b.send(3, 100, 1, QKEY + 1, None, false);
    (0..4).for_each(|n| b.sent(n));
    for slot in 0..3 {
        let c = b.completion(1);
        assert_eq!((c.wr_id, c.status, c.imm), (slot, CqeStatus::LocalLength, None));
    }
    b.arrived(1, 3, 3, 100, None);
    assert_eq!(b.counter(1, "complete.recv_too_small"), 3);
    assert_eq!(b.qps[1].query().unwrap().responder_state, QpState::Rts);
    // Nothing was written behind what they offered.
    assert_eq!(b.dst.to_vec(GRH_BYTES + 99, 100), [0xee; 100]);
    assert_eq!(b.dst.to_vec(SLOT + 39, 100), [0xee; 100]);
}

#[test]
fn errors_of_ones_own_are_reported() {
    // Too long for the path.
    let mut b = Bench::new(512, Mtu::M1024, false, None);
    b.receive(1, 0, SLOT);
    b.send(0, 1025, 1, QKEY + 1, None, false);
    let c = b.completion(0);
    assert_eq!((c.wr_id, c.status), (0, CqeStatus::LocalLength));
    assert_eq!(b.pair.world().links[0].counters.sent, 0);
    // A receive whose key is wrong ends its own queue pair.
    let mut b = Bench::new(512, Mtu::M1024, false, None);
    let into = [sge(b.dst.addr(), SLOT as u32, b.dst.lkey() ^ 0x55)];
    b.qps[1].post_recv(&RecvRequest { wr_id: 7, sges: &into }).unwrap();
    b.receive(1, 8, SLOT);
    b.send(0, 64, 1, QKEY + 1, None, false);
    b.sent(0);
    let first = b.completion(1);
    assert_eq!((first.wr_id, first.status), (7, CqeStatus::LocalProtection));
    let second = b.completion(1);
    assert_eq!((second.wr_id, second.status), (8, CqeStatus::WrFlush));
    // The other one does not notice.
    b.receive(2, 9, SLOT);
    b.send(1, 64, 2, QKEY + 2, None, false);
    b.sent(1);
    b.arrived(2, 9, 1, 64, None);
}

#[test]
fn what_does_not_fit_together_is_not_posted() {
    let mut b = Bench::new(512, Mtu::M1024, false, None);
    let v6 = AddressHandle::new(b.pair.hosts[1].mac(), b.pair.hosts[1].ip(true));
    let request = DatagramRequest { wr_id: 0, payload: Payload::Inline(b"x"), to: &v6, dest_qpn: 5, qkey: 0, imm: None, signaled: true, solicited: false };
    assert!(b.qps[0].post_send_ud(&request).is_err());
    let v4 = b.to();
    assert!(b.qps[0].post_send_ud(&DatagramRequest { to: &v4, dest_qpn: 1 << 24, ..request }).is_err());
    assert!(b.qps[0].to_init_ud(1).is_err());
    let mut rc = b.pair.hosts[0].pd.create_qp(&QpConfig::default(), &b.cqs[0], &b.cqs[0]).unwrap();
    assert!(rc.to_init_ud(1).is_err() && rc.post_send_ud(&DatagramRequest { to: &v4, ..request }).is_err());
}

#[test]
fn management_datagrams_among_connections() {
    let pair = Pair::new(&WorldConfig::default()).unwrap();
    let mut cqs = [pair.hosts[0].cq(64).unwrap(), pair.hosts[1].cq(64).unwrap()];
    let mut gsi: Vec<_> = (0..2).map(|h| pair.hosts[h].pd.create_gsi(&QpConfig::default(), &cqs[h], &cqs[h]).unwrap()).collect();
    assert!(pair.hosts[0].pd.create_gsi(&QpConfig::default(), &cqs[0], &cqs[0]).is_err(), "there is one");
    for (h, qp) in gsi.iter_mut().enumerate() {
        qp.to_init_ud(GSI_QKEY).unwrap();
        qp.to_rtr_ud(Mtu::M1024, &source(&pair, h, false, None)).unwrap();
        qp.to_rts_ud(0).unwrap();
    }
    let regions = [0, 1].map(|h| pair.hosts[h].region(SLOT, Access::ALL).unwrap());
    let mut flows = [Flow::new(&pair, &Wire::default(), 3000, 4, false).unwrap(), Flow::new(&pair, &Wire::default(), 3000, 4, true).unwrap()];
    for round in 0..4u64 {
        for (flow, opcode) in flows.iter_mut().zip([ferric_abi::codes::WrOpcode::Write, ferric_abi::codes::WrOpcode::Send]) {
            flow.run(&pair, opcode, 5 * (round + 1), PATIENCE).unwrap();
        }
        for (h, other) in [(0, 1), (1, 0)] {
            let into = [sge(regions[other].addr(), SLOT as u32, regions[other].lkey())];
            gsi[other].post_recv(&RecvRequest { wr_id: round, sges: &into }).unwrap();
            let to = AddressHandle::new(pair.hosts[other].mac(), pair.hosts[other].ip(false));
            let mad = [round as u8 + h as u8; 256];
            let request = DatagramRequest { wr_id: round, payload: Payload::Sges(&[]), to: &to, dest_qpn: GSI_QPN, qkey: GSI_QKEY, imm: None, signaled: true, solicited: false };
            let from = [sge(regions[h].addr() + 2048, 256, regions[h].lkey())];
            regions[h].write(2048, &mad);
            gsi[h].post_send_ud(&DatagramRequest { payload: Payload::Sges(&from), ..request }).unwrap();
            assert_eq!(pair.wait(&mut cqs[h], PATIENCE).unwrap().status, CqeStatus::Success);
            let c = pair.wait(&mut cqs[other], PATIENCE).unwrap();
            assert_eq!((c.wr_id, c.qpn, c.src_qp, c.byte_len), (round, GSI_QPN, GSI_QPN, 296));
            assert_eq!(regions[other].to_vec(GRH_BYTES, 256), mad);
            let grh = Grh::parse(&regions[other].to_vec(0, GRH_BYTES).try_into().unwrap()).unwrap();
            let IpAddr::V4(_) = grh.sip else { panic!("{grh:?}") };
        }
    }
    // The number can be used again.
    drop(gsi);
    pair.hosts[0].pd.create_gsi(&QpConfig::default(), &cqs[0], &cqs[0]).unwrap();
    assert_ne!(pair.hosts[0].pd.create_qp(&QpConfig::default(), &cqs[0], &cqs[0]).unwrap().qpn(), GSI_QPN);
}

/// Two of three queue pairs are attached, each with a Q_Key of the group; who leaves, or is destroyed, gets nothing any more.
#[test]
fn members_of_a_group_get_copies() {
    for (width, v6, vlan) in [(512, false, None), (64, true, Some(0x2005)), (64, false, None)] {
        let mut b = Bench::new(width, Mtu::M2048, v6, vlan);
        let config = QpConfig { qp_type: QpType::Ud, ..Default::default() };
        let mut members: Vec<_> = (0..3).map(|_| b.pair.hosts[1].pd.create_qp(&config, &b.cqs[1], &b.cqs[1]).unwrap()).collect();
        for qp in &mut members {
            qp.to_init_ud(QKEY).unwrap();
            qp.to_rtr_ud(Mtu::M2048, &source(&b.pair, 1, v6, vlan)).unwrap();
        }
        let [group, other]: [IpAddr; 2] = if v6 { ["ff0e::1:2345", "ff0e:0:0:1::1:2345"].map(|a| a.parse().unwrap()) } else { ["239.129.3.4", "239.1.3.4"].map(|a| a.parse().unwrap()) };
        let to = AddressHandle::multicast(group).unwrap();
        assert_eq!(to.dmac, AddressHandle::multicast(other).unwrap().dmac, "both groups have the same MAC address");
        members[0].attach_multicast(group).unwrap();
        members[1].attach_multicast(group).unwrap();
        members[2].attach_multicast(other).unwrap();
        assert!(b.qps[0].attach_multicast("10.0.0.1".parse().unwrap()).is_err());
        let mut n = 0;
        // To `dip`: who is to have it, in the order of attachment.
        let mut deliver = |b: &mut Bench, members: &mut [QueuePair], to: &AddressHandle, wanted: &[usize], len: usize, qkey: u32| {
            n += 1;
            for (i, qp) in members.iter_mut().enumerate() {
                let into = [sge(b.dst.addr() + (i * SLOT) as u64, SLOT as u32, b.dst.lkey())];
                qp.post_recv(&RecvRequest { wr_id: i as u64, sges: &into }).unwrap();
            }
            b.dst.write(0, &[0xee; 3 * SLOT]);
            let from = [sge(b.src.addr() + (n % 8 * SLOT) as u64, len as u32, b.src.lkey())];
            b.qps[0].post_send_ud(&DatagramRequest { wr_id: 9, payload: Payload::Sges(&from), to, dest_qpn: MULTICAST_QPN, qkey, imm: Some(n as u32), signaled: true, solicited: false }).unwrap();
            b.sent(9);
            b.pair.world().run(6000);
            let mut got: Vec<_> = std::iter::from_fn(|| b.cqs[1].poll()).collect();
            got.sort_by_key(|c| c.wr_id);
            assert_eq!(got.iter().map(|c| c.wr_id as usize).collect::<Vec<_>>(), wanted);
            for c in got {
                assert_eq!((c.status, c.byte_len as usize, c.imm, c.src_qp, c.grh), (CqeStatus::Success, len + GRH_BYTES, Some(n as u32), b.qps[0].qpn(), true));
                let bytes = b.dst.to_vec(c.wr_id as usize * SLOT, SLOT);
                let grh = Grh::parse(bytes[..GRH_BYTES].try_into().unwrap()).expect("a GRH");
                assert_eq!((grh.sip, grh.dip), (b.pair.hosts[0].ip(v6), to.dip));
                assert!((0..len).all(|i| bytes[GRH_BYTES + i] == pattern(n as u64 % 8, i)) && bytes[GRH_BYTES + len] == 0xee);
            }
            // Receives that nothing came for go with their queue pairs' next life.
            for (_, qp) in members.iter_mut().enumerate().filter(|(i, _)| !wanted.contains(i)) {
                qp.to_reset().unwrap();
                qp.to_init_ud(QKEY).unwrap();
                qp.to_rtr_ud(Mtu::M2048, &source(&b.pair, 1, v6, vlan)).unwrap();
            }
        };
        for len in [0, 1, 700, 2048] {
            deliver(&mut b, &mut members, &to, &[0, 1], len, QKEY);
        }
        deliver(&mut b, &mut members, &AddressHandle::multicast(other).unwrap(), &[2], 100, QKEY);
        assert_eq!(b.counter(1, "mcast.mcast_delivered"), 9);
        // A Q_Key of somebody else, then a group of nobody's.
        deliver(&mut b, &mut members, &to, &[], 100, QKEY + 1);
        assert_eq!((b.counter(1, "resp.drop_bad_qkey"), b.counter(1, "mcast.mcast_no_group")), (2, 0));
        members[0].detach_multicast(group).unwrap();
        assert!(members[0].detach_multicast(group).is_err());
        deliver(&mut b, &mut members, &to, &[1], 100, QKEY);
        members[1].detach_multicast(group).unwrap();
        deliver(&mut b, &mut members, &to, &[], 100, QKEY);
        assert_eq!((b.counter(1, "mcast.mcast_no_group"), b.counter(1, "resp.drop_no_qp")), (1, 1));
        // A destroyed queue pair's place is free again; frames come back to the buffer however many had them.
        for round in 0..if width == 64 && v6 { 70 } else { 1 } {
            let qp = b.pair.hosts[1].pd.create_qp(&config, &b.cqs[1], &b.cqs[1]).unwrap();
            qp.attach_multicast(group).unwrap();
            assert!(round > 0 || qp.attach_multicast(group).is_ok());
        }
        members[0].attach_multicast(group).unwrap();
        deliver(&mut b, &mut members, &to, &[0], 1000, QKEY);
        assert_eq!(b.pair.iommu_faults(), 0);
    }
}
