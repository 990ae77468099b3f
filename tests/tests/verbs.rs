//! Behaviour a verbs user sees, on whole cards: PSN wrap, interrupts, protection errors, RNR, retries, reset, raw frames, IPv6 and VLAN.
use ferric_abi::codes::{AdminOpcode, EventKind, WrOpcode};
use ferric_driver::device::{Device, DmaAccess};
use ferric_driver::mapping::Mapping;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mtu, QpType, RtrAttr, RtsAttr};
use ferric_driver::{Access, CqeStatus, QpConfig, QpState, QueuePair, RecvRequest, SendRequest};
use ferric_hdl::card::counters;
use ferric_sim::axi::HostTiming;
use ferric_sim::fabric::Fate;
use ferric_sim::{CardConfig, WorldConfig};
use ferric_tests::pair::{Linked, Pair, Wire};
use ferric_tests::traffic::Flow;
use ferric_tests::widths::widths;
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: u64 = 400_000;

/// A card as VFIO shows it: the kernel maps its window uncached, so that a line of 64 bytes would come in pieces.
struct Uncached(Arc<dyn Device>);

impl Device for Uncached {
    fn read32(&self, offset: u32) -> u32 {
        self.0.read32(offset)
    }
    fn write32(&self, offset: u32, value: u32) {
        self.0.write32(offset, value);
    }
    fn write64(&self, offset: u32, value: u64) {
        self.0.write64(offset, value);
    }
    unsafe fn map(&self, ptr: *mut u8, len: usize, access: DmaAccess, contiguous: bool) -> ferric_driver::error::Result<Mapping> {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.0.map(ptr, len, access, contiguous) }
    }
    fn unmap(&self, mapping: &Mapping) {
        self.0.unmap(mapping);
    }
    fn relax(&self) {
        self.0.relax();
    }
    fn wait_interrupt(&self, vector: u16, timeout: Duration) -> ferric_driver::error::Result<bool> {
        self.0.wait_interrupt(vector, timeout)
    }
    fn now(&self) -> Duration {
        self.0.now()
    }
}

struct Bench(Linked);

fn bench(wire: &Wire) -> Bench {
    let pattern: Vec<u8> = (0..16_384u32).map(|i| (i * 5 + (i >> 7)) as u8).collect();
    Bench(Linked::new(&QpConfig::default(), wire, &pattern).unwrap())
}

impl Bench {
    fn send(&mut self, wr_id: u64, opcode: WrOpcode, len: u32, lkey: u32, rkey: u32) {
        let sges = [sge(self.0.src.addr(), len, lkey)];
        let request = SendRequest { wr_id, opcode, payload: Payload::Sges(&sges), remote_addr: self.0.dst.addr(), rkey, imm: 7, signaled: true, solicited: true };
        self.0.qps[0].post_send(&request).unwrap();
    }
    fn receive(&mut self, wr_id: u64, len: u32) {
        let into = [sge(self.0.dst.addr(), len, self.0.dst.lkey())];
        self.0.qps[1].post_recv(&RecvRequest { wr_id, sges: &into }).unwrap();
    }
    fn wait(&mut self, host: usize) -> (u64, CqeStatus) {
        let c = self.0.wait(host, PATIENCE).unwrap();
        (c.wr_id, c.status)
    }
    fn delivered(&self, len: usize) -> bool {
        self.0.dst.to_vec(0, len) == self.0.src.to_vec(0, len) && self.0.pair.iommu_faults() == 0
    }
}

#[test]
fn psn_wraps_inside_a_message() {
    for opcode in [WrOpcode::Write, WrOpcode::Send] {
        let pair = Pair::new(&WorldConfig::default()).unwrap();
        let wire = Wire { mtu: Mtu::M256, psn: [0xff_fffd, 0xff_fffe], ..Default::default() };
        Flow::new(&pair, &wire, 3000, 4, false).unwrap().run(&pair, opcode, 6, PATIENCE).unwrap();
        Flow::new(&pair, &wire, 3000, 4, true).unwrap().run(&pair, opcode, 6, PATIENCE).unwrap();
    }
}

#[test]
fn requests_of_one_line_travel_with_the_doorbell_only_where_lines_stay_whole() {
    let small = QpConfig { max_send_sge: 2, ..Default::default() };
    let run = |pair: Pair| {
        let mut b = Bench(Linked::on(pair, &small, &Wire::default(), &[7; 4096]).unwrap());
        for n in 0..20 {
            b.send(n, WrOpcode::Write, 3000, b.0.src.lkey(), b.0.dst.rkey());
            assert_eq!(b.wait(0), (n, CqeStatus::Success));
        }
        assert!(b.delivered(3000));
        ["db_wqe", "db_rung", "db_bad"].map(|name| b.0.pair.hosts[0].ctx.counters(counters::index(&format!("doorbell.{name}")).unwrap() as u32, 1).unwrap()[0])
    };
    let whole = run(Pair::new(&WorldConfig::default()).unwrap());
    assert_eq!((whole[0], whole[2]), (20, 0));
    let pieces = run(Pair::behind(&WorldConfig::default(), |card| Arc::new(Uncached(card))).unwrap());
    assert_eq!(pieces, [0, whole[1] + 20, 0]);
}

#[test]
fn ipv6_and_vlan_carry_messages() {
    let pair = Pair::new(&WorldConfig::default()).unwrap();
    for (v6, vlan) in [(true, None), (false, Some(0x2064)), (true, Some(0x2064))] {
        let wire = Wire { mtu: Mtu::M1024, v6, vlan, ..Default::default() };
        Flow::new(&pair, &wire, 5001, 4, false).unwrap().run(&pair, WrOpcode::Send, 5, PATIENCE).unwrap();
    }
}

#[test]
fn completions_by_interrupt() {
    let mut b = bench(&Wire::default());
    b.0.cqs[1].arm(true);
    b.receive(1, 4096);
    b.send(2, WrOpcode::SendImm, 1000, b.0.src.lkey(), 0);
    let event = b.0.pair.hosts[1].eq.wait(Duration::from_millis(50)).unwrap().expect("an event");
    assert_eq!((event.kind, event.id), (EventKind::Completion, b.0.cqs[1].id()));
    assert_eq!(b.wait(1), (1, CqeStatus::Success));
    // Not armed: the next message raises nothing.
    b.receive(3, 4096);
    b.send(4, WrOpcode::SendImm, 1000, b.0.src.lkey(), 0);
    assert_eq!(b.wait(1), (3, CqeStatus::Success));
    assert_eq!(b.0.pair.hosts[1].eq.wait(Duration::from_millis(1)).unwrap(), None);
}

#[test]
fn bad_remote_key_is_refused_and_flushes() {
    let mut b = bench(&Wire::default());
    let key = b.0.dst.rkey() ^ 1;
    b.send(1, WrOpcode::Write, 5000, b.0.src.lkey(), key);
    b.send(2, WrOpcode::Write, 100, b.0.src.lkey(), b.0.dst.rkey());
    assert_eq!(b.wait(0), (1, CqeStatus::RemoteAccess));
    assert_eq!(b.wait(0), (2, CqeStatus::WrFlush));
    assert_eq!(b.0.dst.to_vec(0, 16_384), vec![0; 16_384], "a refused WRITE left bytes behind");
    assert_eq!(b.0.qps[0].query().unwrap().state, QpState::Error);
    assert_eq!(b.0.qps[1].query().unwrap().responder_state, QpState::Error);
    let event = b.0.pair.hosts[0].eq.wait(Duration::from_millis(50)).unwrap().expect("an event");
    assert_eq!(event.kind, EventKind::QpError);
}

#[test]
fn bad_local_key_completes_with_protection_error_in_order() {
    let mut b = bench(&Wire::default());
    b.send(1, WrOpcode::Write, 4096, b.0.src.lkey(), b.0.dst.rkey());
    b.send(2, WrOpcode::Write, 4096, b.0.src.lkey() ^ 0x80, b.0.dst.rkey());
    b.send(3, WrOpcode::Write, 4096, b.0.src.lkey(), b.0.dst.rkey());
    assert_eq!(b.wait(0), (1, CqeStatus::Success));
    assert_eq!(b.wait(0), (2, CqeStatus::LocalProtection));
    assert_eq!(b.wait(0), (3, CqeStatus::WrFlush));
    assert!(b.delivered(4096));
}

#[test]
fn receiver_not_ready_then_ready() {
    let mut b = bench(&Wire::default());
    b.send(1, WrOpcode::Send, 6000, b.0.src.lkey(), 0);
    b.0.pair.world().run(20_000);
    assert!(b.0.cqs[0].poll().is_none());
    b.receive(2, 8192);
    assert_eq!(b.wait(1), (2, CqeStatus::Success));
    assert_eq!(b.wait(0), (1, CqeStatus::Success));
    assert!(b.delivered(6000));
}

#[test]
fn receiver_never_ready() {
    let mut b = bench(&Wire { rnr_retry: 1, ..Default::default() });
    b.send(1, WrOpcode::Send, 6000, b.0.src.lkey(), 0);
    assert_eq!(b.wait(0), (1, CqeStatus::RnrRetryExceeded));
}

#[test]
fn silent_peer_exhausts_retries() {
    let mut b = bench(&Wire { retry_cnt: 2, timeout: 5, ..Default::default() });
    b.0.pair.world().links[0].set_hook(Some(Box::new(|_, _| Some(Fate::Dropped))));
    b.send(1, WrOpcode::Write, 5000, b.0.src.lkey(), b.0.dst.rkey());
    b.send(2, WrOpcode::Write, 10, b.0.src.lkey(), b.0.dst.rkey());
    assert_eq!(b.wait(0), (1, CqeStatus::RetryExceeded));
    assert_eq!(b.wait(0), (2, CqeStatus::WrFlush));
}

#[test]
fn reset_and_use_again() {
    let mut b = bench(&Wire::default());
    b.send(1, WrOpcode::Write, 16_000, b.0.src.lkey(), b.0.dst.rkey());
    // Traffic is in flight.
    b.0.pair.world().run(400);
    let Linked { pair, qps: [q0, q1], .. } = &mut b.0;
    q0.to_reset().unwrap();
    q1.to_reset().unwrap();
    pair.connect(&Wire { psn: [0x777, 0x888], ..Default::default() }, q0, q1).unwrap();
    while b.0.cqs[0].poll().is_some() {}
    b.receive(8, 16_384);
    b.send(9, WrOpcode::Send, 16_000, b.0.src.lkey(), 0);
    assert_eq!(b.wait(1), (8, CqeStatus::Success));
    assert_eq!(b.wait(0), (9, CqeStatus::Success));
    assert!(b.delivered(16_000));
}

/// More often than the card has receive buffers: each reset finds a SEND of which only the first packets have come.
#[test]
fn resets_in_mid_message_cost_no_receive_buffer() {
    let card = CardConfig { width: 64, ..Default::default() };
    let pair = Pair::new(&WorldConfig { cards: vec![card.clone(), card], ..Default::default() }).unwrap();
    let pattern: Vec<u8> = (0..4096u32).map(|i| (i * 3 + (i >> 8)) as u8).collect();
    let wire = Wire { mtu: Mtu::M256, ..Default::default() };
    let mut b = Bench(Linked::on(pair, &QpConfig::default(), &wire, &pattern).unwrap());
    for round in 0..72u64 {
        let (mut frames, before) = (0, b.0.pair.world().links[0].counters.dropped);
        b.0.pair.world().links[0].set_hook(Some(Box::new(move |_, _| {
            frames += 1;
            (frames > 1 + round % 5).then_some(Fate::Dropped)
        })));
        b.receive(1, 4096);
        b.send(2, WrOpcode::Send, 4096, b.0.src.lkey(), 0);
        while b.0.pair.world().links[0].counters.dropped == before {
            b.0.pair.world().run(100);
        }
        let Linked { pair, qps: [q0, q1], .. } = &mut b.0;
        q1.to_reset().unwrap();
        q0.to_reset().unwrap();
        pair.world().links[0].set_hook(None);
        pair.connect(&wire, q0, q1).unwrap();
        assert!(b.0.cqs[0].poll().is_none() && b.0.cqs[1].poll().is_none(), "round {round}: a reset completes nothing");
    }
    b.receive(8, 4096);
    b.send(9, WrOpcode::Send, 4000, b.0.src.lkey(), 0);
    assert_eq!(b.wait(1), (8, CqeStatus::Success));
    assert_eq!(b.wait(0), (9, CqeStatus::Success));
    assert!(b.delivered(4000));
}

/// IBTA 10.3.1, SQD: what has begun is completed, with frames lost on the way, and told; what was posted waits.
#[test]
fn a_send_queue_is_drained_and_goes_on() {
    for lost in [0, 3] {
        let mut b = bench(&Wire { mtu: Mtu::M1024, timeout: 6, ..Default::default() });
        let mut frames = 0;
        b.0.pair.world().links[0].set_hook(Some(Box::new(move |_, _| {
            frames += 1;
            (frames == lost).then_some(Fate::Dropped)
        })));
        let drained = |b: &mut Bench| {
            b.0.qps[0].to_sqd().unwrap();
            let event = b.0.pair.hosts[0].eq.wait(Duration::from_millis(50)).unwrap().expect("an event");
            assert_eq!((event.kind, event.id), (EventKind::SqDrained, b.0.qps[0].qpn()));
        };
        let mut done = 0;
        for n in 0..50 {
            b.send(n, WrOpcode::Write, 16_000, b.0.src.lkey(), b.0.dst.rkey());
        }
        b.0.pair.world().run(300);
        for _ in 0..2 {
            drained(&mut b);
            // The last completion and the event go their own ways.
            b.0.pair.world().run(2000);
            while b.0.cqs[0].poll().is_some() {
                done += 1;
            }
            assert!(done < 50, "too late to see");
            b.0.pair.world().run(50_000);
            assert!(b.0.cqs[0].poll().is_none(), "nothing begins");
            assert_eq!(b.0.qps[0].query().unwrap().state, QpState::Sqd);
            b.0.qps[0].resume().unwrap();
            b.0.pair.world().run(300);
        }
        for n in done..50 {
            assert_eq!(b.wait(0), (n, CqeStatus::Success));
        }
        assert!(b.delivered(16_000));
        // Nothing is under way: told at once. What is posted waits, also for the other end.
        drained(&mut b);
        b.receive(9, 4096);
        b.send(10, WrOpcode::Send, 4000, b.0.src.lkey(), 0);
        b.0.pair.world().run(20_000);
        assert!(b.0.cqs[0].poll().is_none() && b.0.cqs[1].poll().is_none());
        b.0.qps[0].resume().unwrap();
        assert_eq!((b.wait(1), b.wait(0)), ((9, CqeStatus::Success), (10, CqeStatus::Success)));
        // From SQD to ERROR and RESET.
        drained(&mut b);
        b.send(11, WrOpcode::Write, 100, b.0.src.lkey(), b.0.dst.rkey());
        b.0.qps[0].to_error().unwrap();
        assert_eq!(b.wait(0), (11, CqeStatus::WrFlush));
        b.0.qps[0].to_reset().unwrap();
    }
}

/// What the driver relies on when it takes the completions of an old life out of a queue: when RESET is answered they all stand there, those of flushes and those
/// of messages under way, however slowly the host takes writes. The commands are raw, so that the driver knows of no reset.
#[test]
fn all_completions_stand_before_a_reset_is_answered() {
    let stall_percent = 70;
    for width in widths(512) {
        let card = CardConfig { width, host: HostTiming { stall_percent, write_latency: 700, ..Default::default() }, ..Default::default() };
        let pair = Pair::new(&WorldConfig { cards: vec![card.clone(), card], ..Default::default() }).unwrap();
        let regions = [0, 1].map(|i: usize| pair.hosts[i].region(4096, Access::ALL).unwrap());
        for n in 0..4u64 {
            let mut cqs = [0, 1].map(|i: usize| pair.hosts[i].cq(64).unwrap());
            let mut qps = pair.connected(&QpConfig::default(), &Wire::default(), [&cqs[0], &cqs[1]]).unwrap();
            let into = [sge(regions[1].addr(), 64, regions[1].lkey())];
            let from = [sge(regions[0].addr(), 64, regions[0].lkey())];
            for wr_id in 0..24 {
                qps[1].post_recv(&RecvRequest { wr_id, sges: &into }).unwrap();
                let wr = SendRequest { wr_id, opcode: WrOpcode::Send, payload: Payload::Sges(&from), remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false };
                qps[0].post_send(&wr).unwrap();
            }
            pair.world().run(700 + 311 * n);
            for side in [0, 1].map(|i| if n & 2 == 0 { i } else { 1 - i }) {
                let modify = |state: QpState| pair.hosts[side].ctx.admin(AdminOpcode::ModifyQp, qps[side].qpn(), &[state as u32]).unwrap();
                if n & 1 == 1 {
                    modify(QpState::Error);
                }
                modify(QpState::Reset);
                while cqs[side].poll().is_some() {}
                pair.world().run(3000);
                assert_eq!(cqs[side].poll(), None, "late: W = {width}, {stall_percent} % stalls, round {n}, host {side}");
            }
        }
    }
}

#[test]
fn a_new_driver_takes_over_a_card_in_use() {
    let mut b = bench(&Wire::default());
    b.send(1, WrOpcode::Write, 16_000, b.0.src.lkey(), b.0.dst.rkey());
    b.0.pair.world().run(400);
    let now = b.0.pair.world().cycle();
    b.0.pair.world().deadline = Some(now + 2_000_000);
    b.0.pair.take_over().unwrap();
    // What the old driver had is not touched any more; its memory stays, for it was never told that the card is done with it.
    let Linked { pair, cqs, qps, src, dst } = b.0;
    std::mem::forget((cqs, qps, src, dst));
    Flow::new(&pair, &Wire::default(), 5000, 4, false).unwrap().run(&pair, WrOpcode::Send, 6, PATIENCE).unwrap();
    Flow::new(&pair, &Wire::default(), 5000, 4, true).unwrap().run(&pair, WrOpcode::Write, 6, PATIENCE).unwrap();
}

#[test]
fn raw_frames_pass_both_rings() {
    let mut b = bench(&Wire::default());
    let config = QpConfig { qp_type: QpType::Raw, ..Default::default() };
    let mut raw: Vec<QueuePair> = (0..2).map(|h| b.0.pair.hosts[h].pd.create_qp(&config, &b.0.cqs[h], &b.0.cqs[h]).unwrap()).collect();
    for qp in &mut raw {
        qp.to_init(Access::ALL).unwrap();
        qp.to_rtr(Access::ALL, &RtrAttr { mtu: Mtu::M4096, dest_qpn: 0, rq_psn: 0, min_rnr_timer: 0, repeat_nak: false, max_dest_rd_atomic: 0, path: None }).unwrap();
        qp.to_rts(&RtsAttr { sq_psn: 0, timeout: 0, retry_cnt: 0, rnr_retry: 0, max_rd_atomic: 0 }).unwrap();
    }
    b.0.pair.hosts[1].ctx.set_raw_queue(Some(&raw[1])).unwrap();
    let into = [sge(b.0.dst.addr(), 2048, b.0.dst.lkey())];
    raw[1].post_recv(&RecvRequest { wr_id: 5, sges: &into }).unwrap();
    // An ARP request, say: no RoCE block wants it.
    let mut frame = vec![0xff; 6];
    frame.extend_from_slice(&[2, 0, 0, 0, 0, 1, 8, 6]);
    frame.extend((0..200u8).map(|i| i ^ 0x5a));
    b.0.src.write(0, &frame);
    let from = [sge(b.0.src.addr(), frame.len() as u32, b.0.src.lkey())];
    let request = SendRequest { wr_id: 6, opcode: WrOpcode::Send, payload: Payload::Sges(&from), remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false };
    raw[0].post_send(&request).unwrap();
    assert_eq!(b.wait(0), (6, CqeStatus::Success));
    let Linked { pair, cqs, .. } = &mut b.0;
    let c = pair.wait(&mut cqs[1], PATIENCE).unwrap();
    assert_eq!((c.wr_id, c.status, c.byte_len as usize), (5, CqeStatus::Success, frame.len()));
    assert_eq!(b.0.dst.to_vec(0, frame.len()), frame);
}
