//! Unreliable connections on whole cards (IBTA volume 1, 9.8.2): nothing is acknowledged, a damaged message is dropped as a whole.
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mtu, QpType};
use ferric_driver::{Completion, CqeStatus, QpConfig, QpState, RecvRequest, SendRequest};
use ferric_hdl::card::counters;
use ferric_sim::fabric::Fate;
use ferric_tests::pair::{Linked, Wire};
use ferric_tests::traffic::pattern;

const PATIENCE: u64 = 400_000;
const SLOT: usize = 8192;

struct Bench(Linked);

impl Bench {
    fn new(wire: &Wire) -> Self {
        let config = QpConfig { qp_type: QpType::Uc, ..Default::default() };
        let bytes: Vec<u8> = (0..8).flat_map(|n| (0..SLOT).map(move |i| pattern(n, i))).collect();
        Self(Linked::new(&config, wire, &bytes).unwrap())
    }

    /// Message `n` from slot `n` to slot `to` of the other side.
    fn send(&mut self, n: usize, to: usize, opcode: WrOpcode, len: usize) {
        let from = [sge(self.0.src.addr() + (n * SLOT) as u64, len as u32, self.0.src.lkey())];
        let request = SendRequest {
            wr_id: n as u64,
            opcode,
            payload: Payload::Sges(&from),
            remote_addr: self.0.dst.addr() + (to * SLOT) as u64,
            rkey: self.0.dst.rkey(),
            imm: 0x100 + n as u32,
            signaled: true,
            solicited: false,
        };
        self.0.qps[0].post_send(&request).unwrap();
    }

    fn receive(&mut self, slot: usize) {
        let into = [sge(self.0.dst.addr() + (slot * SLOT) as u64, SLOT as u32, self.0.dst.lkey())];
        self.0.qps[1].post_recv(&RecvRequest { wr_id: slot as u64, sges: &into }).unwrap();
    }

    fn completion(&mut self, host: usize) -> Completion {
        self.0.wait(host, PATIENCE).unwrap()
    }

    fn sent(&mut self, n: usize) {
        let c = self.completion(0);
        assert_eq!((c.wr_id, c.status), (n as u64, CqeStatus::Success));
    }

    /// Slot `slot` holds the first `len` bytes of message `n` and zeroes behind them.
    fn holds(&self, slot: usize, n: u64, len: usize) -> bool {
        let bytes = self.0.dst.to_vec(slot * SLOT, SLOT);
        bytes.iter().enumerate().all(|(i, b)| *b == if i < len { pattern(n, i) } else { 0 })
    }
}

#[test]
fn every_operation_and_length() {
    for (mtu, psn) in [(Mtu::M1024, 0x10), (Mtu::M256, 0xff_fffe)] {
        let mut b = Bench::new(&Wire { mtu, psn: [psn, 5], ..Default::default() });
        let messages = [(WrOpcode::Send, 5000), (WrOpcode::SendImm, 0), (WrOpcode::Write, 4099), (WrOpcode::WriteImm, 1), (WrOpcode::Send, 256)];
        (0..5).for_each(|slot| b.receive(slot));
        for (n, (opcode, len)) in messages.into_iter().enumerate() {
            b.send(n, n, opcode, len);
        }
        (0..5).for_each(|n| b.sent(n));
        // A WRITE takes no receive, with immediate it takes one and leaves its buffer alone.
        let expected = [(0, 5000, false), (1, 0, true), (2, 1, true), (3, 256, false)];
        for (wr_id, len, imm) in expected {
            let c = b.completion(1);
            assert_eq!((c.wr_id, c.status, c.byte_len, c.imm.is_some()), (wr_id, CqeStatus::Success, len, imm), "{c:?}");
        }
        assert!(b.holds(0, 0, 5000) && b.holds(1, 1, 0) && b.holds(2, 2, 4099));
        // The last SEND took the receive of slot 3, which WRITE with immediate number 3 wrote one byte of.
        assert!(b.holds(3, 4, 256) && b.holds(4, 4, 0));
        // Nothing came back.
        assert_eq!(b.0.pair.world().links[1].counters.sent, 0);
        assert_eq!(b.0.pair.iommu_faults(), 0);
    }
}

#[test]
fn a_message_that_loses_a_packet_is_dropped_and_the_next_one_takes_its_receive() {
    let mut b = Bench::new(&Wire { mtu: Mtu::M1024, ..Default::default() });
    let mut frames = 0;
    // Messages of 4 packets: the third packet of the second message, the first of the fourth, the last of the sixth.
    b.0.pair.world().links[0].set_hook(Some(Box::new(move |_, _| {
        frames += 1;
        [7, 13, 24].contains(&frames).then_some(Fate::Dropped)
    })));
    (0..4).for_each(|slot| b.receive(slot));
    (0..8).for_each(|n| b.send(n, n, if n == 6 { WrOpcode::Write } else { WrOpcode::Send }, 4000));
    (0..8).for_each(|n| b.sent(n));
    for (slot, n) in [0, 2, 4, 7].into_iter().enumerate() {
        let c = b.completion(1);
        assert_eq!((c.wr_id, c.status, c.byte_len), (slot as u64, CqeStatus::Success, 4000));
        assert!(b.holds(slot, n, 4000), "slot {slot}");
    }
    assert!(b.holds(6, 6, 4000));
    let world = b.0.pair.world();
    assert_eq!((world.links[0].counters.dropped, world.links[1].counters.sent), (3, 0));
}

#[test]
fn without_a_receive_the_message_is_lost_and_nobody_told() {
    let mut b = Bench::new(&Wire::default());
    b.send(0, 0, WrOpcode::Send, 64);
    b.sent(0);
    b.0.pair.world().run(5000);
    b.receive(3);
    b.send(1, 1, WrOpcode::Send, 64);
    b.sent(1);
    let c = b.completion(1);
    assert_eq!((c.wr_id, c.status, c.byte_len), (3, CqeStatus::Success, 64));
    assert!(b.holds(3, 1, 64) && b.0.pair.world().links[1].counters.sent == 0);
}

/// A message that may not be placed, or is too long for its receive, is lost; the queue pair goes on (IBTA 9.9.3, class D).
#[test]
fn a_message_that_fails_is_dropped_and_the_queue_pair_goes_on() {
    let mut b = Bench::new(&Wire { mtu: Mtu::M1024, ..Default::default() });
    let dropped = |b: &Bench| {
        let number = counters::index("place.msg_dropped").unwrap() as u32;
        b.0.pair.hosts[1].ctx.counters(number, 1).unwrap()[0]
    };
    let write = |b: &mut Bench, n: usize, opcode: WrOpcode, addr: u64, len: usize, rkey: u32| {
        let from = [sge(b.0.src.addr() + (n * SLOT) as u64, len as u32, b.0.src.lkey())];
        let request = SendRequest { wr_id: n as u64, opcode, payload: Payload::Sges(&from), remote_addr: addr, rkey, imm: 9, signaled: true, solicited: false };
        b.0.qps[0].post_send(&request).unwrap();
        b.sent(n);
    };
    let (at, key) = (b.0.dst.addr(), b.0.dst.rkey());
    // A wrong key; beyond the end; with immediate, which costs the receive.
    write(&mut b, 0, WrOpcode::Write, at, 4000, key ^ 1);
    write(&mut b, 1, WrOpcode::Write, at + (8 * SLOT) as u64 - 100, 3000, key);
    b.receive(0);
    write(&mut b, 2, WrOpcode::WriteImm, at, 4000, key ^ 1);
    let c = b.completion(1);
    assert_eq!((c.wr_id, c.status, c.imm), (0, CqeStatus::LocalAccess, None));
    assert!((0..8).all(|slot| b.holds(slot, 0, 0)), "nothing was written");
    // A receive that is too small for a message of four packets, then one that will do, then a WRITE.
    let into = [sge(b.0.dst.addr() + SLOT as u64, 1500, b.0.dst.lkey())];
    b.0.qps[1].post_recv(&RecvRequest { wr_id: 1, sges: &into }).unwrap();
    b.receive(2);
    b.send(3, 0, WrOpcode::Send, 4000);
    b.sent(3);
    let c = b.completion(1);
    assert_eq!((c.wr_id, c.status), (1, CqeStatus::LocalLength));
    b.send(4, 0, WrOpcode::Send, 4000);
    b.sent(4);
    let c = b.completion(1);
    assert_eq!((c.wr_id, c.status, c.byte_len), (2, CqeStatus::Success, 4000));
    assert!(b.holds(2, 4, 4000));
    b.send(5, 6, WrOpcode::Write, 5000);
    b.sent(5);
    b.0.pair.world().run(5000);
    assert!(b.holds(6, 5, 5000) && dropped(&b) == 4);
    let state = b.0.qps[1].query().unwrap();
    assert_eq!((state.state, state.responder_state, b.0.pair.iommu_faults()), (QpState::Rts, QpState::Rts, 0));
}

/// IBTA 10.3.1, SQ error: a send request that fails costs those behind it, not the receives; then sending goes on.
#[test]
fn a_failed_request_stops_sends_and_no_receives() {
    let mut b = Bench::new(&Wire { mtu: Mtu::M1024, ..Default::default() });
    let region = b.0.pair.hosts[0].region(SLOT, ferric_driver::Access::ALL).unwrap();
    for round in 0..3 {
        b.receive(0);
        b.send(1, 0, WrOpcode::Send, 3000);
        let from = [sge(b.0.src.addr(), 3000, b.0.src.lkey() ^ 0x80)];
        let bad = SendRequest { wr_id: 2, opcode: WrOpcode::Send, payload: Payload::Sges(&from), remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false };
        b.0.qps[0].post_send(&bad).unwrap();
        b.send(3, 0, WrOpcode::Send, 100);
        b.send(4, 0, WrOpcode::Write, 100);
        for (n, status) in [(1, CqeStatus::Success), (2, CqeStatus::LocalProtection), (3, CqeStatus::WrFlush), (4, CqeStatus::WrFlush)] {
            let c = b.completion(0);
            assert_eq!((c.wr_id, c.status), (n, status));
        }
        assert_eq!(b.completion(1).status, CqeStatus::Success);
        let state = b.0.qps[0].query().unwrap();
        assert_eq!((state.state, state.responder_state), (QpState::SqError, QpState::Rtr));
        // What is posted now is flushed; what comes is received.
        b.send(5, 0, WrOpcode::Send, 100);
        assert_eq!((b.completion(0).wr_id, b.0.qps[1].state()), (5, QpState::Rts));
        let into = [sge(region.addr(), SLOT as u32, region.lkey())];
        b.0.qps[0].post_recv(&RecvRequest { wr_id: 7, sges: &into }).unwrap();
        let from = [sge(b.0.dst.addr(), 2000, b.0.dst.lkey())];
        let back = SendRequest { wr_id: 8, opcode: WrOpcode::Send, payload: Payload::Sges(&from), remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false };
        b.0.qps[1].post_send(&back).unwrap();
        let c = b.completion(0);
        assert_eq!((c.wr_id, c.status, c.is_recv), (7, CqeStatus::Success, true));
        assert_eq!(b.completion(1).wr_id, 8);
        assert_eq!(region.to_vec(0, 2000), b.0.dst.to_vec(0, 2000));
        b.0.qps[0].resume().unwrap();
        assert_eq!(b.0.qps[0].query().unwrap().state, QpState::Rts);
        b.0.dst.write(0, &[0; SLOT]);
        b.receive(0);
        b.send(6, 0, WrOpcode::Send, 5000);
        b.sent(6);
        assert_eq!(b.completion(1).status, CqeStatus::Success, "round {round}");
        assert!(b.holds(0, 6, 5000));
    }
    // From SQ error to ERROR: what was flushed is not flushed again.
    let from = [sge(b.0.src.addr(), 3000, b.0.src.lkey() ^ 0x80)];
    let bad = SendRequest { wr_id: 2, opcode: WrOpcode::Send, payload: Payload::Sges(&from), remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false };
    b.0.qps[0].post_send(&bad).unwrap();
    b.send(3, 0, WrOpcode::Send, 100);
    assert_eq!([b.completion(0).wr_id, b.completion(0).wr_id], [2, 3]);
    b.0.qps[0].to_error().unwrap();
    b.0.pair.world().run(5000);
    assert!(b.0.cqs[0].poll().is_none());
    assert_eq!(b.0.qps[0].query().unwrap().responder_state, QpState::Error);
}
