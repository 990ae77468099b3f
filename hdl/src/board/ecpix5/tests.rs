//! The board's top, through its pins.
use super::Pins;
use crate::memory_target::model::{setup_frame, setup_reply, Outcome, Request, Requester, Station};
use crate::memory_target::{IP, MAC};
use crate::tb::Rng;
use ferric_abi::codes::{TargetOp, TargetStatus};
use ferric_abi::host::Cqe;
use ferric_abi::target::{SetupReply, SetupRequest};
use ferric_station::Station as Stack;
use std::collections::VecDeque;
use std::net::IpAddr;

const CARD: Station = Station { mac: MAC, ip: IP };
const PEER: Station = Station { mac: 0x0200_5e00_0002, ip: 0x0a00_0002 };
const PORT: u16 = 40_000;
/// Cycles of the pins between two looks of the peer's network stack, which cost more than cycles do.
const LOOK: u64 = 500;
/// Nanoseconds of a cycle of the pins.
const NANOS: u64 = 8;

fn address(station: Station) -> IpAddr {
    station.ip.to_be_bytes().into()
}

/// The board as generated, or the netlist in the file that FERRIC_NETLIST names.
fn board() -> Result<Pins, String> {
    let Some(file) = std::env::var_os("FERRIC_NETLIST") else { return Pins::new() };
    let text = std::fs::read_to_string(&file).map_err(|e| format!("FERRIC_NETLIST {}: {e}", file.to_string_lossy()))?;
    Pins::of_netlist(&text)
}

/// The board, and who speaks with it.
struct Lab {
    pins: Pins,
    /// The peer's own network stack, for ARP and ping, and what it wants sent.
    neighbour: Stack,
    waiting: VecDeque<Vec<u8>>,
    look: u64,
    seq: u32,
    replies: Vec<SetupReply>,
}

impl Lab {
    fn new() -> Lab {
        let mac: [u8; 6] = PEER.mac.to_be_bytes()[2..].try_into().expect("6 bytes");
        let neighbour = Stack::new(mac, &[(address(PEER), 24)]);
        Lab { pins: board().unwrap_or_else(|e| panic!("{e}")), neighbour, waiting: VecDeque::new(), look: 0, seq: 1, replies: Vec::new() }
    }

    /// Cycles of 8 ns.
    fn run(&mut self, cycles: u64, requester: &mut Option<&mut Requester>) {
        for _ in 0..cycles {
            let now = self.pins.cycles() / 2;
            if self.pins.waiting() < 4 {
                if self.pins.cycles() >= self.look {
                    self.look = self.pins.cycles() + LOOK;
                    self.waiting.extend(self.neighbour.poll(self.pins.cycles() * NANOS));
                }
                if let Some(frame) = self.waiting.pop_front() {
                    self.pins.push(&frame);
                } else if let Some(frame) = requester.as_mut().and_then(|r| r.poll(now)) {
                    self.pins.push(&frame);
                }
            }
            self.pins.cycle();
            while let Some(frame) = self.pins.pop() {
                if let Some(reply) = setup_reply(&frame, CARD, PEER, PORT) {
                    self.replies.push(reply);
                } else if let Some(requester) = requester.as_mut() {
                    requester.take(&frame, now);
                }
                self.neighbour.take(frame);
            }
        }
    }

    fn ask(&mut self, op: TargetOp, request: SetupRequest) -> SetupReply {
        self.seq += 1;
        self.pins.push(&setup_frame(PEER, CARD, PORT, request.with_op(op as u8).with_seq(self.seq)));
        for _ in 0..100 {
            self.run(100, &mut None);
            if let Some(reply) = self.replies.pop() {
                assert_eq!((reply.op(), reply.seq(), reply.status()), (op as u8, self.seq, TargetStatus::Done as u8));
                return reply;
            }
        }
        panic!("no answer to a set-up request");
    }

    fn one(&mut self, requester: &mut Requester, request: Request) -> Outcome {
        requester.post(request);
        for _ in 0..2000 {
            self.run(100, &mut Some(&mut *requester));
            if let Some(outcome) = requester.outcome() {
                return outcome;
            }
        }
        panic!("the requester does not come to an end");
    }

    /// Until the neighbour has its answer.
    fn ping(&mut self, payload: &[u8]) {
        self.neighbour.ping(address(CARD), payload);
        for _ in 0..300 {
            self.run(100, &mut None);
            if let Some(data) = self.neighbour.answer() {
                assert_eq!(data, payload);
                return;
            }
        }
        panic!("no answer to a ping of {} bytes; address known: {}", payload.len(), self.neighbour.arps);
    }
}

#[test]
fn a_peer_finds_pings_and_uses_the_card() {
    let mut lab = Lab::new();
    let mut rng = Rng::new(7);
    assert_eq!(lab.pins.get("led_g"), 0);
    // smoltcp asks for the address first.
    lab.ping(b"who are you?");
    assert_eq!(lab.neighbour.arps, 1);
    assert_eq!(lab.pins.get("led_g"), 1, "a frame has come");
    for len in [0, 1, 17, 56, 1000, 1472] {
        let payload = rng.bytes(len);
        lab.ping(&payload);
    }
    assert_eq!(lab.neighbour.arps, 1);

    let key = lab.ask(TargetOp::CreateKey, SetupRequest::default().with_length(0x8000).with_rights(7).with_pd(7)).object();
    lab.ask(TargetOp::SetRing, SetupRequest::default().with_start(0x4000).with_log_slot(11).with_log_count(2));
    let wanted = SetupRequest::default().with_peer_qpn(0x123).with_first_psn(0xff_fffe).with_pd(7).with_pkey(0xffff).with_pmtu(3).with_rights(7).with_rnr_timer(1);
    let qpn = lab.ask(TargetOp::CreateQp, wanted).object();
    let mut requester = Requester::new(PEER, CARD, 0x123, qpn, 0xff_fffe, 1024);
    requester.timeout = 20_000;

    let data = rng.bytes(5000);
    assert_eq!(lab.one(&mut requester, Request::Write { va: 0x1003, key, data: data.clone() }), Outcome::Done(vec![]));
    // An echo between two halves of a conversation.
    lab.ping(b"still there?");
    assert_eq!(lab.one(&mut requester, Request::Read { va: 0x1003, key, len: 5000 }), Outcome::Done(data));
    assert_eq!(lab.one(&mut requester, Request::Write { va: 0x10, key, data: 40u64.to_le_bytes().to_vec() }), Outcome::Done(vec![]));
    assert_eq!(lab.one(&mut requester, Request::Atomic { va: 0x10, key, add: 2, compare: None }), Outcome::Done(40u64.to_le_bytes().to_vec()));
    for n in 0..6u16 {
        let sent = rng.bytes(300 * usize::from(n));
        assert_eq!(lab.one(&mut requester, Request::Send { data: sent.clone(), imm: Some(n.into()) }), Outcome::Done(vec![]));
        let slot = Request::Read { va: 0x4000 + u64::from(n % 4) * 2048, key, len: 32 + sent.len() as u32 };
        let Outcome::Done(slot) = lab.one(&mut requester, slot) else { panic!("slot {n}") };
        let record = Cqe(slot[..32].try_into().expect("32 bytes"));
        assert_eq!((record.wqe_index(), record.status(), record.qpn(), record.byte_len(), record.imm()), (n, 0, qpn, sent.len() as u32, n.into()));
        assert_eq!(&slot[32..], sent);
        lab.ask(TargetOp::Release, SetupRequest::default().with_consumer(n + 1));
    }
    assert_eq!(requester.retries, 0, "nothing is lost on a wire like this");
    let state = lab.ask(TargetOp::Query, SetupRequest::default().with_object(qpn));
    assert_eq!((state.state(), state.errors(), state.echoes(), state.malformed()), (2, 0, 9, 0));
    assert_eq!(lab.pins.get("led_g"), 7, "seen, set up, busy, no fault");
}
