//! The whole target, frame by frame, against a requester in software.
use super::model::{setup_frame, setup_reply, Outcome, Request, Requester, Station};
use super::Target;
use crate::tb::{AxisSink, AxisSource, Tb};
use ferric_abi::codes::{TargetOp, TargetStatus};
use ferric_abi::host::Cqe;
use ferric_abi::target::{SetupReply, SetupRequest};

const CARD: Station = Station { mac: 0x02fe_1100_0001, ip: 0x0a00_0001 };
const PEER: Station = Station { mac: 0x02fe_1100_0002, ip: 0x0a00_0002 };
const PORT: u16 = 40_000;
const RAM: u64 = 32 << 10;

/// A target at the other end of a wire that loses `loss` percent of the RoCE frames either way.
struct Lab {
    tb: Tb,
    rx: AxisSource,
    tx: AxisSink,
    loss: u32,
    seq: u32,
    /// Set-up answers not yet looked at.
    replies: Vec<SetupReply>,
}

impl Lab {
    fn new(stall: u32, loss: u32, seed: u64) -> Lab {
        let mut tb = Tb::with_seed("target_w64", Target::new(CARD.mac, CARD.ip), seed);
        let (rx, tx) = (tb.axis_source("rx", 0), tb.axis_sink("tx", stall));
        // Cells, slots and the tables of the set-up are made ready.
        tb.run(1200);
        Lab { tb, rx, tx, loss, seq: 1, replies: Vec::new() }
    }

    /// Lets frames pass for one cycle.
    fn step(&mut self, peers: &mut [&mut Requester]) {
        let now = self.tb.cycles();
        if self.rx.pending() < 8 {
            for peer in peers.iter_mut() {
                if let Some(frame) = peer.poll(now) {
                    if !self.tb.rng().percent(self.loss) {
                        self.rx.push(&frame);
                    }
                    break;
                }
            }
        }
        self.tb.cycle();
        while let Some(frame) = self.tx.pop() {
            if let Some(reply) = setup_reply(&frame, CARD, PEER, PORT) {
                self.replies.push(reply);
            } else if !self.tb.rng().percent(self.loss) {
                peers.iter_mut().for_each(|peer| peer.take(&frame, now));
            }
        }
    }

    fn ask_as(&mut self, from: Station, request: SetupRequest) -> Vec<u8> {
        setup_frame(from, CARD, PORT, request)
    }

    /// Asks and waits for the answer.
    fn ask(&mut self, op: TargetOp, request: SetupRequest) -> SetupReply {
        self.seq += 1;
        let request = request.with_op(op as u8).with_seq(self.seq);
        let frame = self.ask_as(PEER, request);
        self.exchange(&frame)
    }

    fn exchange(&mut self, frame: &[u8]) -> SetupReply {
        self.rx.push(frame);
        for _ in 0..5000 {
            self.step(&mut []);
            if let Some(reply) = self.replies.pop() {
                return reply;
            }
        }
        panic!("no answer to a set-up request");
    }

    fn key(&mut self, start: u32, length: u32, rights: u8) -> u32 {
        let reply = self.ask(TargetOp::CreateKey, SetupRequest::default().with_start(start).with_length(length).with_rights(rights).with_pd(7));
        assert_eq!(reply.status(), TargetStatus::Done as u8);
        reply.object()
    }

    fn ring(&mut self, start: u32, log_slot: u8, log_count: u8) {
        let reply = self.ask(TargetOp::SetRing, SetupRequest::default().with_start(start).with_log_slot(log_slot).with_log_count(log_count));
        assert_eq!(reply.status(), TargetStatus::Done as u8);
    }

    fn connect(&mut self, qpn: u32, psn: u32) -> Requester {
        let wanted = SetupRequest::default().with_peer_qpn(qpn).with_first_psn(psn).with_pd(7).with_pkey(0xffff).with_pmtu(3).with_rights(7).with_rnr_timer(1);
        let reply = self.ask(TargetOp::CreateQp, wanted);
        assert_eq!(reply.status(), TargetStatus::Done as u8);
        assert!((2..16).contains(&reply.object()));
        Requester::new(PEER, CARD, qpn, reply.object(), psn, 1024)
    }

    /// Runs until `peer` has nothing more to do; its outcomes.
    fn finish(&mut self, peer: &mut Requester) -> Vec<Outcome> {
        for _ in 0..400_000 {
            if peer.idle() {
                // Acknowledges on the way are let through.
                (0..50).for_each(|_| self.step(&mut [&mut *peer]));
                return std::iter::from_fn(|| peer.outcome()).collect();
            }
            self.step(&mut [&mut *peer]);
        }
        panic!("the requester does not come to an end");
    }

    fn one(&mut self, peer: &mut Requester, request: Request) -> Outcome {
        peer.post(request);
        let mut outcomes = self.finish(peer);
        assert_eq!(outcomes.len(), 1);
        outcomes.remove(0)
    }
}

#[test]
fn a_write_is_acknowledged_and_read_back() {
    let mut lab = Lab::new(0, 0, 1);
    let key = lab.key(0, RAM as u32, 7);
    let mut peer = lab.connect(0x123, 0xff_fffe);
    let data = lab.tb.rng().bytes(3000);
    assert_eq!(lab.one(&mut peer, Request::Write { va: 0x1003, key, data: data.clone() }), Outcome::Done(vec![]));
    assert_eq!(lab.one(&mut peer, Request::Read { va: 0x1003, key, len: 3000 }), Outcome::Done(data));
    assert_eq!(peer.retries, 0);
    let state = lab.ask(TargetOp::Query, SetupRequest::default().with_object(peer.dest));
    assert_eq!((state.state(), state.epsn(), state.msn(), state.errors()), (2, 4, 2, 0));
    assert_eq!(u64::from(state.ram_bytes()), RAM);
}

/// Who has the queue pair's number, PSN and key, but another address, or sends to another card, changes nothing and gets no answer.
#[test]
fn strangers_are_not_heard() {
    let mut lab = Lab::new(0, 0, 9);
    let key = lab.key(0, RAM as u32, 7);
    let mut peer = lab.connect(0x123, 0x500);
    let data = lab.tb.rng().bytes(100);
    let other = Station { mac: PEER.mac, ip: PEER.ip ^ 8 };
    let elsewhere = [Station { mac: CARD.mac ^ 0x10, ip: CARD.ip }, Station { mac: 0xffff_ffff_ffff, ip: CARD.ip }, Station { mac: CARD.mac, ip: CARD.ip ^ 0x100 }];
    for (from, to) in [(other, CARD)].into_iter().chain(elsewhere.map(|to| (PEER, to))) {
        let mut stranger = Requester::new(from, to, 0x123, peer.dest, 0x500, 1024);
        stranger.post(Request::Write { va: 0x40, key, data: vec![0xee; 100] });
        for _ in 0..3000 {
            let now = lab.tb.cycles();
            if let Some(frame) = stranger.poll(now).filter(|_| lab.rx.pending() < 8) {
                lab.rx.push(&frame);
            }
            lab.tb.cycle();
            assert_eq!(lab.tx.pop(), None);
        }
        assert!(stranger.outcome().is_none());
        let state = lab.ask(TargetOp::Query, SetupRequest::default().with_object(peer.dest));
        assert_eq!((state.state(), state.epsn(), state.msn(), state.errors()), (2, 0x500, 0, 0));
    }
    assert_eq!(lab.one(&mut peer, Request::Write { va: 0x1000, key, data: data.clone() }), Outcome::Done(vec![]));
    assert_eq!(lab.one(&mut peer, Request::Read { va: 0x1000, key, len: 100 }), Outcome::Done(data));
    assert_eq!(lab.one(&mut peer, Request::Read { va: 0x40, key, len: 100 }), Outcome::Done(vec![0; 100]));
    assert_eq!(peer.retries, 0);
}

#[test]
fn sends_land_in_the_ring() {
    let mut lab = Lab::new(20, 0, 2);
    let key = lab.key(0, RAM as u32, 7);
    lab.ring(0x4000, 11, 2);
    let mut peer = lab.connect(0x77, 5);
    let sent: Vec<Vec<u8>> = (0..11).map(|n| lab.tb.rng().bytes([0, 1, 64, 1500, 2016][n % 5])).collect();
    for (n, data) in sent.iter().enumerate() {
        let imm = (n % 2 == 0).then_some(0x1000 + n as u32);
        assert_eq!(lab.one(&mut peer, Request::Send { data: data.clone(), imm }), Outcome::Done(vec![]));
        let slot = 0x4000 + (n as u64 % 4) * 2048;
        let Outcome::Done(read) = lab.one(&mut peer, Request::Read { va: slot, key, len: 32 + data.len() as u32 }) else { panic!() };
        let record = Cqe(read[..32].try_into().unwrap());
        assert_eq!((record.wqe_index(), record.status(), record.qpn(), record.byte_len()), (n as u16, 0, peer.dest, data.len() as u32));
        assert_eq!((record.imm_valid(), record.imm()), (imm.is_some(), imm.unwrap_or(record.imm())));
        assert_eq!(record.phase(), n / 4 % 2 == 0);
        assert_eq!(&read[32..], data);
        let reply = lab.ask(TargetOp::Release, SetupRequest::default().with_consumer(n as u16 + 1));
        assert_eq!((reply.status(), reply.ring_head(), reply.ring_consumer()), (0, n as u16 + 1, n as u16 + 1));
    }
    // Four fill the ring; the fifth waits until a slot is given back.
    for n in 0..5u8 {
        peer.post(Request::Send { data: vec![n; 10], imm: None });
    }
    for _ in 0..20_000 {
        lab.step(&mut [&mut peer]);
    }
    assert!(!peer.idle() && peer.retries > 1, "RNR");
    assert_eq!(lab.ask(TargetOp::Release, SetupRequest::default().with_consumer(16)).status(), TargetStatus::Refused as u8);
    assert_eq!(lab.ask(TargetOp::Release, SetupRequest::default().with_consumer(12)).status(), 0);
    assert_eq!(lab.finish(&mut peer).len(), 5);
    // A message larger than a slot ends the queue pair.
    lab.ask(TargetOp::Release, SetupRequest::default().with_consumer(16));
    assert_eq!(lab.one(&mut peer, Request::Send { data: vec![1; 2017], imm: None }), Outcome::Failed(0x61));
    let state = lab.ask(TargetOp::Query, SetupRequest::default().with_object(peer.dest));
    assert_eq!((state.state(), state.errors()), (6, 1));
}

#[test]
fn everything_under_loss() {
    // A seed under which both peers lose frames.
    let mut lab = Lab::new(30, 5, 2);
    let key = lab.key(0, RAM as u32, 7);
    let mut peers = [lab.connect(0x11, 100), lab.connect(0x12, 0xff_ff00)];
    // Each has its half of the region.
    let mut memory = vec![0u8; 0x8000];
    for half in 0..2 {
        let data = lab.tb.rng().bytes(0x4000);
        memory[half * 0x4000..][..0x4000].copy_from_slice(&data);
        let request = Request::Write { va: half as u64 * 0x4000, key, data };
        assert_eq!(lab.one(&mut peers[half], request), Outcome::Done(vec![]));
    }
    let mut wanted = [Vec::new(), Vec::new()];
    for _ in 0..60 {
        let half = lab.tb.rng().below(2) as usize;
        let len = lab.tb.rng().range(1, 3500) as usize;
        let at = half * 0x4000 + lab.tb.rng().below(0x4000 - len as u64) as usize;
        let va = at as u64;
        match lab.tb.rng().below(3) {
            0 => {
                let data = lab.tb.rng().bytes(len);
                memory[at..at + len].copy_from_slice(&data);
                peers[half].post(Request::Write { va, key, data });
                wanted[half].push(Outcome::Done(vec![]));
            }
            1 => {
                peers[half].post(Request::Read { va, key, len: len as u32 });
                wanted[half].push(Outcome::Done(memory[at..at + len].to_vec()));
            }
            _ => {
                let (at, va) = (at & !7, va & !7);
                let old = u64::from_le_bytes(memory[at..at + 8].try_into().unwrap());
                let add = lab.tb.rng().next_u64();
                let compare = [None, Some(old), Some(!old)][lab.tb.rng().below(3) as usize];
                let new = match compare {
                    None => old.wrapping_add(add),
                    Some(c) if c == old => add,
                    Some(_) => old,
                };
                memory[at..at + 8].copy_from_slice(&new.to_le_bytes());
                peers[half].post(Request::Atomic { va, key, add, compare });
                wanted[half].push(Outcome::Done(old.to_le_bytes().to_vec()));
            }
        }
    }
    for _ in 0..2_000_000 {
        if peers.iter().all(Requester::idle) {
            break;
        }
        let [a, b] = &mut peers;
        let order: [&mut Requester; 2] = if lab.tb.rng().percent(50) { [a, b] } else { [b, a] };
        let mut order = order;
        lab.step(&mut order);
    }
    for (peer, wanted) in peers.iter_mut().zip(wanted) {
        let got: Vec<Outcome> = std::iter::from_fn(|| peer.outcome()).collect();
        assert_eq!(got.len(), wanted.len());
        for (n, (got, wanted)) in got.into_iter().zip(wanted).enumerate() {
            assert_eq!(got, wanted, "request {n}");
        }
        assert!(peer.retries > 0, "nothing was lost");
    }
    lab.loss = 0;
    for half in 0..2 {
        let got = lab.one(&mut peers[half], Request::Read { va: half as u64 * 0x4000, key, len: 0x4000 });
        assert_eq!(got, Outcome::Done(memory[half * 0x4000..][..0x4000].to_vec()));
    }
}

#[test]
fn keys_and_rights_are_kept() {
    let mut lab = Lab::new(0, 0, 10);
    let (all, key) = (lab.key(0, RAM as u32, 7), lab.key(0x1000, 0x1000, 1));
    for n in 0..6 {
        let mut peer = lab.connect(9, n * 50);
        assert_eq!(lab.one(&mut peer, Request::Write { va: 0x1000, key, data: vec![1; 0x1000] }), Outcome::Done(vec![]));
        let write = |va, key| Request::Write { va, key, data: vec![2; 16] };
        let bad = match n {
            0 => write(0xff8, key),
            1 => write(0x1ff8, key),
            2 => Request::Read { va: 0x1000, key, len: 8 },
            3 => write(0x1000, key ^ 1),
            4 => Request::Atomic { va: 0x1000, key, add: 1, compare: None },
            _ => {
                let gone = lab.ask(TargetOp::DestroyKey, SetupRequest::default().with_object(key));
                assert_eq!(gone.status(), 0);
                write(0x1000, key)
            }
        };
        assert_eq!(lab.one(&mut peer, bad), Outcome::Failed(0x62), "case {n}");
        // Another life of the queue pair, another number to begin with; nothing has been written.
        let mut peer = lab.connect(9, 700);
        let Outcome::Done(bytes) = lab.one(&mut peer, Request::Read { va: 0xff0, key: all, len: 0x1020 }) else { panic!() };
        assert!(bytes[..16].iter().chain(&bytes[0x1010..]).all(|b| *b == 0) && bytes[16..0x1010].iter().all(|b| *b == 1));
    }
}
