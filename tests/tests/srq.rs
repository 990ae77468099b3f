//! Shared receive queues on whole cards (IBTA volume 1, 10.2.9 and 11.2.3): many queue pairs on one queue, limit event, empty queue, errors.
use ferric_abi::codes::{AdminOpcode, EventKind, WrOpcode};
use ferric_abi::csr::space;
use ferric_driver::eq::Event;
use ferric_driver::mapping::Mapping;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mtu, QpType};
use ferric_driver::ud::GRH_BYTES;
use ferric_driver::{
    Access, AddressHandle, Completion, CompletionQueue, CqeStatus, DatagramRequest, Error, MemoryRegion, QpConfig, QpState, QueuePair, RecvRequest, SendRequest, SharedReceiveQueue, Source, SrqConfig,
};
use ferric_hdl::card::counters;
use ferric_sim::fabric::Fate;
use ferric_sim::WorldConfig;
use ferric_tests::pair::{Pair, Wire};
use ferric_tests::traffic::pattern;
use std::time::Duration;

const PATIENCE: u64 = 2_000_000;
const SLOT: usize = 4096;

struct Bench {
    pair: Pair,
    cqs: [CompletionQueue; 2],
    /// Of host 1: the first for RC, the second for UC.
    srqs: Vec<SharedReceiveQueue>,
    /// Pairs of queue pairs; those of host 1 are on a shared queue.
    qps: Vec<[QueuePair; 2]>,
    src: MemoryRegion,
    dst: MemoryRegion,
}

impl Drop for Bench {
    /// On both cards at the same time, which saves half of the simulation's cycles.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.pair.destroy_of(0, self.qps.drain(..)).unwrap();
        }
    }
}

impl Bench {
    /// `rc` queue pairs on the first shared queue, `uc` on the second.
    fn new(max_wr: usize, rc: usize, uc: usize, wire: &Wire) -> Self {
        let pair = Pair::new(&WorldConfig::default()).unwrap();
        let cqs = [pair.hosts[0].cq(1024).unwrap(), pair.hosts[1].cq(1024).unwrap()];
        let host = &pair.hosts[1];
        let config = SrqConfig { max_wr, max_sge: 2 };
        let srqs: Vec<_> = (0..2).map(|_| host.pd.create_srq(&config, &host.eq).unwrap()).collect();
        let src = pair.hosts[0].region(4 * SLOT, Access::ALL).unwrap();
        let dst = host.region(2 * max_wr * SLOT, Access::ALL).unwrap();
        let mut bench = Self { pair, cqs, srqs, qps: Vec::new(), src, dst };
        for n in 0..rc + uc {
            let qps = bench.queue_pair(if n < rc { QpType::Rc } else { QpType::Uc }, usize::from(n >= rc));
            bench.qps.push(qps);
            let [a, b] = bench.qps.last_mut().unwrap();
            bench.pair.connect(wire, a, b).unwrap();
        }
        bench
    }

    fn queue_pair(&self, qp_type: QpType, srq: usize) -> [QueuePair; 2] {
        let config = QpConfig { qp_type, max_send: 8, max_recv: 2, ..Default::default() };
        let a = self.pair.hosts[0].pd.create_qp(&config, &self.cqs[0], &self.cqs[0]).unwrap();
        let b = self.pair.hosts[1].pd.create_qp_on_srq(&config, &self.cqs[1], &self.cqs[1], &self.srqs[srq]).unwrap();
        [a, b]
    }

    /// Posts slot `slot` to shared queue `srq`, in two entries.
    fn receive(&mut self, srq: usize, slot: usize) {
        let (at, key) = (self.dst.addr() + (slot * SLOT) as u64, self.dst.lkey());
        let into = [sge(at, 300, key), sge(at + 300, SLOT as u32 - 300, key)];
        self.srqs[srq].post_srq_recv(&RecvRequest { wr_id: slot as u64, sges: &into }).unwrap();
    }

    /// Message `n` of queue pair `qp`: `len` bytes of the pattern `n`, told apart by its immediate.
    fn send(&mut self, qp: usize, n: usize, len: usize) {
        self.send_from(qp, n, len, n % 4);
    }

    fn send_from(&mut self, qp: usize, n: usize, len: usize, part: usize) {
        let from = [sge(self.src.addr() + (part * SLOT) as u64, len as u32, self.src.lkey())];
        let request = SendRequest { wr_id: n as u64, opcode: WrOpcode::SendImm, payload: Payload::Sges(&from), remote_addr: 0, rkey: 0, imm: (qp << 16 | n) as u32, signaled: true, solicited: false };
        self.qps[qp][0].post_send(&request).unwrap();
    }

    fn completion(&mut self, host: usize) -> Completion {
        let Bench { pair, cqs, .. } = self;
        pair.wait(&mut cqs[host], PATIENCE).unwrap()
    }

    fn sent(&mut self, n: usize) {
        let c = self.completion(0);
        assert_eq!((c.wr_id, c.status), (n as u64, CqeStatus::Success));
    }

    /// The next completion of host 1 is message `n` of queue pair `qp`; its slot.
    fn arrived(&mut self, qp: usize, n: usize, len: usize) -> usize {
        let c = self.completion(1);
        let got = (c.qpn, c.status, c.byte_len as usize, c.imm, c.is_recv);
        assert_eq!(got, (self.qps[qp][1].qpn(), CqeStatus::Success, len, Some((qp << 16 | n) as u32), true));
        assert!(self.holds(c.wr_id as usize, n, len), "slot {}", c.wr_id);
        c.wr_id as usize
    }

    fn holds(&self, slot: usize, n: usize, len: usize) -> bool {
        self.dst.to_vec(slot * SLOT, len).iter().enumerate().all(|(i, b)| *b == pattern((n % 4) as u64, i))
    }

    fn fill(&self) {
        for n in 0..4 {
            let bytes: Vec<u8> = (0..SLOT).map(|i| pattern(n, i)).collect();
            self.src.write(n as usize * SLOT, &bytes);
        }
    }

    fn event(&mut self) -> Option<Event> {
        self.pair.hosts[1].eq.wait(Duration::from_millis(2)).unwrap()
    }

    fn counter(&self, name: &str) -> u64 {
        self.pair.hosts[1].ctx.counters(counters::index(name).expect(name) as u32, 1).unwrap()[0]
    }
}

/// Messages of several packets from all of them at once, few receives posted: each goes on in the request it took at its first packet.
#[test]
fn hundreds_of_queue_pairs_share_two_queues() {
    const RC: usize = 180;
    const UC: usize = 40;
    const ROUNDS: usize = 2;
    let mut b = Bench::new(96, RC, UC, &Wire { mtu: Mtu::M256, min_rnr_timer: 1, ..Default::default() });
    b.fill();
    // UC would lose what finds no request; RC is told to come again.
    (0..96).for_each(|slot| b.receive(1, 96 + slot));
    (0..48).for_each(|slot| b.receive(0, slot));
    let len = |qp: usize, n: usize| 1 + (qp * 37 + n * 701) % 1500;
    let mut next = vec![0; RC + UC];
    let total = (RC + UC) * ROUNDS;
    for qp in 0..RC {
        (0..ROUNDS).for_each(|n| b.send(qp, n, len(qp, n)));
    }
    // UC when RC is through: nobody repeats what a full buffer costs it. So many at a time as there are buffers in the card.
    let (mut uc_sent, mut uc_done, mut done, mut sent) = (0, 0, 0, 0);
    let end = b.pair.world().cycle() + 3 * PATIENCE;
    while done < total || sent < total {
        while done >= RC * ROUNDS && uc_sent < UC * ROUNDS && uc_sent < uc_done + 2 {
            let (qp, n) = (RC + uc_sent % UC, uc_sent / UC);
            b.send(qp, n, len(qp, n));
            uc_sent += 1;
        }
        if let Some(c) = b.cqs[0].poll() {
            assert_eq!(c.status, CqeStatus::Success, "{c:?}");
            sent += 1;
        }
        let Some(c) = b.cqs[1].poll() else {
            assert!(b.pair.world().cycle() < end, "{done} of {total} arrived, {sent} sent, {uc_done} of UC");
            b.cqs[1].relax();
            continue;
        };
        let (qp, n) = ((c.imm.unwrap() >> 16) as usize, (c.imm.unwrap() & 0xffff) as usize);
        let got = (c.qpn, c.status, c.byte_len as usize, n);
        assert_eq!(got, (b.qps[qp][1].qpn(), CqeStatus::Success, len(qp, n), next[qp]), "{c:?}");
        assert!(b.holds(c.wr_id as usize, n, len(qp, n)), "queue pair {qp} message {n}");
        assert_eq!(c.wr_id >= 96, qp >= RC, "a request of the other queue");
        next[qp] += 1;
        done += 1;
        uc_done += usize::from(qp >= RC);
        b.receive(usize::from(qp >= RC), c.wr_id as usize);
    }
    let status = b.srqs[0].query_srq().unwrap();
    assert_eq!((status.posted, status.limit, status.error), (48, 0, false));
    assert_eq!((b.pair.iommu_faults(), b.counter("rq.rq_db_overrun"), b.counter("rq.srq_errors")), (0, 0, 0));
    // Still used: it comes back, and goes with the last queue pair.
    let first = b.srqs.remove(0);
    let first = first.destroy_srq().expect_err("queue pairs use it");
    b.pair.destroy_of(0, b.qps.drain(..)).unwrap();
    first.destroy_srq().ok().expect("nobody uses it");
}

#[test]
fn the_limit_is_told_once_until_armed_again() {
    let mut b = Bench::new(16, 2, 0, &Wire::default());
    b.fill();
    (0..10).for_each(|slot| b.receive(0, slot));
    b.srqs[0].modify_srq(5).unwrap();
    assert_eq!(b.srqs[0].query_srq().unwrap().limit, 5);
    let round = |b: &mut Bench, n: usize| {
        b.send(n % 2, n, 100 + n);
        b.sent(n);
        b.arrived(n % 2, n, 100 + n);
    };
    (0..5).for_each(|n| round(&mut b, n));
    assert_eq!(b.event(), None, "five are left");
    round(&mut b, 5);
    let reached = Event { kind: EventKind::SrqLimit, id: b.srqs[0].id(), cause: 0 };
    assert_eq!(b.event(), Some(reached));
    assert_eq!((b.srqs[0].query_srq().unwrap().posted, b.srqs[0].query_srq().unwrap().limit), (4, 0));
    round(&mut b, 6);
    assert_eq!(b.event(), None, "once");
    // Armed again with three left: below three no, below four yes, and at once.
    b.srqs[0].modify_srq(3).unwrap();
    assert_eq!(b.event(), None);
    b.srqs[0].modify_srq(4).unwrap();
    assert_eq!(b.event(), Some(reached));
    b.srqs[0].modify_srq(3).unwrap();
    b.srqs[0].modify_srq(0).unwrap();
    (7..10).for_each(|n| round(&mut b, n));
    assert_eq!((b.event(), b.counter("rq.srq_limits")), (None, 2), "disarmed");
    assert!(matches!(b.srqs[0].modify_srq(17), Err(Error::Invalid(_))));
}

/// RC is told to wait, the others lose the message; with a request each goes on. A datagram takes one like the others.
#[test]
fn an_empty_queue_and_a_full_one() {
    let mut b = Bench::new(4, 1, 1, &Wire::default());
    b.fill();
    b.send(0, 0, 3000);
    b.send(1, 1, 50);
    b.sent(1);
    b.pair.world().run(20_000);
    assert!(b.cqs[0].poll().is_none() && b.counter("resp.rnr_sent") > 0 && b.counter("resp.no_recv") == 1);
    (0..4).for_each(|slot| b.receive(0, slot));
    let into = [sge(b.dst.addr(), 64, b.dst.lkey())];
    assert!(matches!(b.srqs[0].post_srq_recv(&RecvRequest { wr_id: 9, sges: &into }), Err(Error::QueueFull)));
    assert!(matches!(b.qps[0][1].post_recv(&RecvRequest { wr_id: 9, sges: &into }), Err(Error::Invalid(_))));
    b.sent(0);
    assert_eq!(b.arrived(0, 0, 3000), 0);
    // A datagram queue pair on the same queue.
    let [mut a, mut u] = b.queue_pair(QpType::Ud, 0);
    for (host, qp) in [&mut a, &mut u].into_iter().enumerate() {
        let me = &b.pair.hosts[host];
        qp.to_init_ud(0x77).unwrap();
        qp.to_rtr_ud(Mtu::M1024, &Source { smac: me.mac(), sip: me.ip(false), vlan: None, udp_sport: 0xd123, flow_label: 0 }).unwrap();
        qp.to_rts_ud(5).unwrap();
    }
    let to = AddressHandle::new(b.pair.hosts[1].mac(), b.pair.hosts[1].ip(false));
    let from = [sge(b.src.addr(), 700, b.src.lkey())];
    let request = DatagramRequest { wr_id: 3, payload: Payload::Sges(&from), to: &to, dest_qpn: u.qpn(), qkey: 0x77, imm: None, signaled: true, solicited: false };
    a.post_send_ud(&request).unwrap();
    b.sent(3);
    let c = b.completion(1);
    assert_eq!((c.wr_id, c.status, c.qpn, c.byte_len as usize, c.grh), (1, CqeStatus::Success, u.qpn(), 700 + GRH_BYTES, true));
    assert_eq!(b.dst.to_vec(SLOT + GRH_BYTES, 700), b.src.to_vec(0, 700));
}

/// A queue pair in error gives back what it has in hand and says when it has had its last; the queue's requests stay for the others.
#[test]
fn an_error_of_one_leaves_the_queue_to_the_others() {
    let mut b = Bench::new(8, 2, 2, &Wire { mtu: Mtu::M1024, ..Default::default() });
    b.fill();
    (0..4).for_each(|slot| b.receive(0, slot));
    (0..4).for_each(|slot| b.receive(1, 4 + slot));
    b.qps[0][1].to_error().unwrap();
    let last = |qp: &QueuePair| Some(Event { kind: EventKind::LastWqe, id: qp.qpn(), cause: 0 });
    let mut events = [b.event(), b.event()];
    events.sort_by_key(|e| e.map(|e| e.kind as u8));
    assert!(events.contains(&last(&b.qps[0][1])), "{events:?}");
    assert!(b.cqs[1].poll().is_none() && b.srqs[0].query_srq().unwrap().posted == 4, "nothing is flushed");
    b.send(1, 1, 2000);
    b.sent(1);
    assert_eq!(b.arrived(1, 1, 2000), 0);
    // In the middle of a message: UC, its last packet lost.
    let mut frames = 0;
    b.pair.world().links[0].set_hook(Some(Box::new(move |_, _| {
        frames += 1;
        (frames == 3).then_some(Fate::Dropped)
    })));
    b.send(2, 2, 3000);
    b.sent(2);
    b.send(3, 3, 100);
    b.sent(3);
    // It took the second request while the first is held.
    assert_eq!(b.arrived(3, 3, 100), 5);
    while b.event().is_some() {}
    b.qps[2][1].to_error().unwrap();
    let c = b.completion(1);
    assert_eq!((c.wr_id, c.status, c.qpn, c.is_recv), (4, CqeStatus::WrFlush, b.qps[2][1].qpn(), true));
    let mut events = [b.event(), b.event()];
    events.sort_by_key(|e| e.map(|e| e.kind as u8));
    assert!(events.contains(&last(&b.qps[2][1])), "{events:?}");
    assert_eq!(b.srqs[1].query_srq().unwrap().posted, 2);
    // And again from RESET on.
    let Bench { pair, qps, .. } = &mut b;
    for qp in [0, 2] {
        let [x, y] = &mut qps[qp];
        x.to_reset().unwrap();
        y.to_reset().unwrap();
        pair.connect(&Wire { psn: [77, 99], ..Default::default() }, x, y).unwrap();
    }
    b.send(0, 4, 4000);
    b.sent(4);
    b.arrived(0, 4, 4000);
    b.send(2, 5, 4000);
    b.sent(5);
    assert_eq!(b.arrived(2, 5, 4000), 6);
    assert_eq!((b.pair.iommu_faults(), b.counter("resp.srq_dead")), (0, 0));
}

/// A request that the card cannot fetch puts the queue in error: told once; whoever wants a request of it afterwards goes to error.
#[test]
fn a_request_out_of_reach_ends_the_queue() {
    let mut b = Bench::new(4, 3, 1, &Wire::default());
    b.fill();
    // The ring of the first queue vanishes from the card's view, before a slot is posted: what is posted may be fetched at once.
    let ctx = &b.pair.hosts[1].ctx;
    let line = ctx.capabilities().qps + b.srqs[0].id();
    let words = ctx.admin(AdminOpcode::QueryObject, line, &[space::RQ.into(), 0]).unwrap();
    let base = u64::from(words[0]) | u64::from(words[1]) << 32;
    b.pair.world().cards[1].iommu.unmap(0, &Mapping::new([(base & !0xfff, 4096)]));
    (0..4).for_each(|slot| b.receive(0, slot));
    (0..2).for_each(|slot| b.receive(1, 4 + slot));
    b.send(0, 0, 100);
    let c = b.completion(0);
    assert_eq!((c.wr_id, c.status), (0, CqeStatus::RemoteOperation));
    assert_eq!(b.completion(1).status, CqeStatus::Fatal);
    let mut kinds = Vec::new();
    while let Some(event) = b.event() {
        kinds.push((event.kind, event.id));
    }
    assert!(kinds.contains(&(EventKind::SrqError, b.srqs[0].id())) && kinds.contains(&(EventKind::LastWqe, b.qps[0][1].qpn())), "{kinds:?}");
    assert!(b.srqs[0].query_srq().unwrap().error);
    // The second queue pair finds out when it wants one; a WRITE wants none.
    b.send(1, 1, 100);
    let c = b.completion(0);
    assert_eq!((c.wr_id, c.status), (1, CqeStatus::RemoteOperation));
    assert_eq!((b.qps[1][1].query().unwrap().responder_state, b.counter("resp.srq_dead"), b.counter("rq.srq_errors")), (QpState::Error, 1, 1));
    let write = SendRequest {
        wr_id: 7,
        opcode: WrOpcode::Write,
        payload: Payload::Sges(&[sge(b.src.addr(), 64, b.src.lkey())]),
        remote_addr: b.dst.addr(),
        rkey: b.dst.rkey(),
        imm: 0,
        signaled: true,
        solicited: false,
    };
    b.qps[2][0].post_send(&write).unwrap();
    b.sent(7);
    // The other queue knows nothing of it.
    b.send(3, 2, 100);
    b.sent(2);
    b.arrived(3, 2, 100);
}
