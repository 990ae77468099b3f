//! The state machine against itself over a wire that loses, doubles and delays, and the layouts against bytes written down by hand.
use super::machine::Cm;
use super::types::{Event, Local, Remote, Request};
use super::wire::*;
use super::{ip_service_id, timeout};
use crate::types::{Mac, Mtu, Path};
use crate::ud::AddressHandle;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

pub(super) fn ip(n: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 9, 0, n))
}

pub(super) fn handle(n: u8) -> AddressHandle {
    AddressHandle::new(Mac([2, 0, 0, 0, 0, n]), ip(n))
}

fn local(qpn: u32) -> Local {
    Local { qpn, psn: qpn << 4, responder_resources: 4, initiator_depth: 7, rnr_retry: 6 }
}

fn request(qpn: u32) -> Request {
    Request { to: handle(2), from: ip(1), service_id: ip_service_id(4791), local: local(qpn), mtu: Mtu::M1024, retry_count: 5, ack_timeout: 17, ip_port: Some(0x1234), private: b"hello".to_vec() }
}

/// Two managers and the wire between them.
pub(super) struct World {
    pub(super) ends: [Cm; 2],
    wire: Vec<(Duration, usize, [u8; MAD_BYTES])>,
    pub(super) now: Duration,
    seed: u64,
    /// Percent of messages lost, and doubled.
    loss: u64,
    pub(super) sent: u64,
    pub(super) events: [Vec<Event>; 2],
}

impl World {
    pub(super) fn new(seed: u64, loss: u64) -> Self {
        let ends = [Cm::new(0xa, 7), Cm::new(0xb, 9000)];
        Self { ends, wire: Vec::new(), now: Duration::from_secs(1), seed, loss, sent: 0, events: Default::default() }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.seed >> 33) % below
    }

    /// A step of 10 ms.
    pub(super) fn step(&mut self) {
        for end in 0..2 {
            self.ends[end].tick(self.now);
            for (to, mad) in self.ends[end].take_outgoing() {
                assert_eq!(to, handle(2 - end as u8), "from {end}");
                self.sent += 1;
                for _ in 0..1 + u64::from(self.random(100) < self.loss) {
                    if self.random(100) >= self.loss {
                        let at = self.now + Duration::from_millis(self.random(30));
                        self.wire.push((at, 1 - end, mad));
                    }
                }
            }
        }
        let (due, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.wire).into_iter().partition(|w| w.0 <= self.now);
        self.wire = rest;
        for (_, end, mad) in due {
            self.ends[end].receive(self.now, handle(2 - end as u8), &mad);
        }
        for end in 0..2 {
            while let Some(e) = self.ends[end].poll() {
                self.events[end].push(e);
            }
        }
        self.now += Duration::from_millis(10);
    }

    pub(super) fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..3000 {
            if done(self) {
                return;
            }
            self.step();
        }
        panic!("it never happens: {:?}", self.events);
    }

    /// Removes and returns the only event of an end.
    pub(super) fn event(&mut self, end: usize) -> Event {
        self.until(|w| !w.events[end].is_empty());
        self.events[end].remove(0)
    }
}

fn connected(w: &mut World, qpn: u32) -> (u32, u32) {
    let now = w.now;
    let a = w.ends[0].connect(now, &request(qpn)).unwrap();
    let event = w.event(1);
    let Event::Request { id: b, service_id, remote, ip: header, private } = event else { panic!("{event:?}") };
    assert_eq!((service_id, remote.qpn, remote.psn, remote.mtu), (ip_service_id(4791), qpn, qpn << 4, Mtu::M1024));
    assert_eq!((remote.responder_resources, remote.initiator_depth, remote.retry_count, remote.rnr_retry, remote.ack_timeout), (4, 7, 5, 6, 17));
    let header = header.unwrap();
    assert_eq!((header.addresses(), header.src_port()), (Some((ip(1), ip(2))), 0x1234));
    assert_eq!((&private[..5], private.len()), (&b"hello"[..], 56));
    let now = w.now;
    w.ends[1].accept(now, b, &Local { rnr_retry: 3, ..local(qpn + 1) }, b"welcome").unwrap();
    let Event::Reply { id, remote, private } = w.event(0) else { panic!() };
    assert_eq!((id, remote.qpn, remote.psn, remote.rnr_retry, remote.mtu, remote.retry_count), (a, qpn + 1, (qpn + 1) << 4, 3, Mtu::M1024, 5));
    assert_eq!((&private[..7], private.len()), (&b"welcome"[..], 196));
    let rts = remote.rts(&local(qpn));
    assert_eq!((rts.sq_psn, rts.timeout, rts.max_rd_atomic), ((qpn + 1) << 4, 17, 4));
    w.ends[0].confirm(a, b"").unwrap();
    assert_eq!(w.event(0), Event::Established { id: a });
    assert_eq!(w.event(1), Event::Established { id: b });
    (a, b)
}

#[test]
fn connections_come_and_go_whatever_the_wire_does() {
    for (seed, loss) in [(1, 0), (2, 10), (3, 30), (4, 50)] {
        let mut w = World::new(seed, loss);
        w.ends[1].listen(ip_service_id(4791));
        for n in 0..8 {
            let (a, b) = connected(&mut w, 0x100 + 16 * n);
            let (end, id, other) = if n % 2 == 0 { (0, a, b) } else { (1, b, a) };
            let now = w.now;
            w.ends[end].disconnect(now, id, b"bye").unwrap();
            assert_eq!(w.event(end), Event::Disconnected { id });
            // With all DREQs lost the other side may know nothing.
            if loss < 50 {
                assert_eq!(w.event(1 - end), Event::Disconnected { id: other });
            } else {
                w.until(|w| w.wire.is_empty());
                w.events[1 - end].clear();
            }
        }
        if loss < 50 {
            w.until(|w| w.ends.iter().all(|e| e.connections() == 0));
            assert!(w.events.iter().all(Vec::is_empty), "{:?}", w.events);
        }
        if loss == 0 {
            // REQ, REP, RTU, DREQ, DREP and nothing twice.
            assert_eq!(w.sent, 40);
        }
    }
}

#[test]
fn refusals() {
    let mut w = World::new(5, 0);
    let now = w.now;
    let a = w.ends[0].connect(now, &request(2)).unwrap();
    assert!(matches!(w.event(0), Event::Rejected { id, reason: RejectReason::InvalidServiceId, .. } if id == a));
    w.ends[1].listen(ip_service_id(4791));
    let now = w.now;
    let a = w.ends[0].connect(now, &request(3)).unwrap();
    let Event::Request { id: b, .. } = w.event(1) else { panic!() };
    w.ends[1].reject(b, RejectReason::Consumer, b"no thanks").unwrap();
    let Event::Rejected { id, reason, private } = w.event(0) else { panic!() };
    assert_eq!((id, reason, &private[..9], private.len()), (a, RejectReason::Consumer, &b"no thanks"[..], 148));
    // What was never there, and what is not there any more.
    assert!(w.ends[0].confirm(a, b"").is_err() && w.ends[0].accept(now, a, &local(1), b"").is_err());
    assert!(w.ends[0].connect(now, &Request { private: vec![0; 57], ..request(9) }).is_err(), "no room behind the addresses");
}

/// Kills the program at end 0 and starts it again: its identifiers are others, its queue pairs have the same numbers.
fn kill(w: &mut World) {
    w.ends[0] = Cm::new(0xa, 0x7777_0000 + w.sent);
    w.events[0].clear();
}

#[test]
fn a_killed_peer_connects_again() {
    for (seed, loss) in [(11, 0), (12, 10), (13, 30)] {
        let mut w = World::new(seed, loss);
        w.ends[1].listen(ip_service_id(4791));
        for _ in 0..3 {
            let (_, b) = connected(&mut w, 0x40);
            kill(&mut w);
            let now = w.now;
            let again = w.ends[0].connect(now, &request(0x40)).unwrap();
            // The program hears of the end of the old one first, and once.
            assert_eq!(w.event(1), Event::Disconnected { id: b });
            let Event::Request { id, remote, .. } = w.event(1) else { panic!() };
            assert_eq!(remote.qpn, 0x40);
            let now = w.now;
            w.ends[1].accept(now, id, &local(0x41), b"").unwrap();
            assert!(matches!(w.event(0), Event::Reply { id, .. } if id == again));
            w.ends[0].confirm(again, b"").unwrap();
            assert_eq!((w.event(0), w.event(1)), (Event::Established { id: again }, Event::Established { id }));
            assert!(w.ends[1].disconnect(now, b, b"").is_err(), "it has ended");
            // The old one is forgotten soon.
            w.until(|w| w.ends.iter().all(|e| e.connections() == 1));
            assert!(w.events.iter().all(Vec::is_empty), "{:?}", w.events);
            kill(&mut w);
            w.ends[1] = Cm::new(0xb, 9000 + w.sent);
            w.ends[1].listen(ip_service_id(4791));
        }
    }
}

/// A queue pair that lives is connected anew: its old connection ends at both sides.
#[test]
fn a_queue_pair_has_one_connection() {
    let mut w = World::new(14, 0);
    w.ends[1].listen(ip_service_id(4791));
    let (a, b) = connected(&mut w, 0x40);
    // Another machine's queue pair of that number is another one.
    let now = w.now;
    let foreign = w.ends[0].connect(now, &request(0x40)).unwrap();
    let mads = w.ends[0].take_outgoing();
    w.ends[1].receive(now, handle(9), &mads[0].1);
    assert!(matches!(w.ends[1].poll(), Some(Event::Request { .. })));
    w.ends[1].receive(now, handle(1), &mads[0].1);
    assert_eq!((w.event(1), w.event(0)), (Event::Disconnected { id: b }, Event::Disconnected { id: a }));
    assert!(matches!(w.event(1), Event::Request { .. }));
    assert!(w.ends[0].disconnect(now, foreign, b"").is_err(), "still asking");
}

#[test]
fn killed_while_connecting() {
    for accepted in [false, true] {
        let mut w = World::new(15, 0);
        w.ends[1].listen(ip_service_id(4791));
        let now = w.now;
        w.ends[0].connect(now, &request(0x40)).unwrap();
        let Event::Request { id: old, .. } = w.event(1) else { panic!() };
        if accepted {
            w.ends[1].accept(now, old, &local(0x41), b"").unwrap();
            w.event(0);
        }
        kill(&mut w);
        let now = w.now;
        w.ends[0].connect(now, &request(0x40)).unwrap();
        assert!(matches!(w.event(1), Event::Rejected { id, reason: RejectReason::StaleConnection, .. } if id == old));
        assert!(matches!(w.event(1), Event::Request { id, .. } if id != old));
        assert!(w.ends[1].accept(now, old, &local(0x41), b"").is_err());
    }
}

/// The server is killed, not the client, which connects again.
#[test]
fn a_killed_server() {
    let mut w = World::new(16, 0);
    w.ends[1].listen(ip_service_id(4791));
    let (a, _) = connected(&mut w, 0x40);
    w.ends[1] = Cm::new(0xb, 70_000);
    w.ends[1].listen(ip_service_id(4791));
    let now = w.now;
    let again = w.ends[0].connect(now, &request(0x50)).unwrap();
    let Event::Request { id, .. } = w.event(1) else { panic!() };
    // Its queue pair has the old one's number.
    w.ends[1].accept(now, id, &local(0x41), b"").unwrap();
    assert!(matches!(w.event(0), Event::Reply { id, .. } if id == again));
    assert_eq!(w.event(0), Event::Disconnected { id: a });
    w.ends[0].confirm(again, b"").unwrap();
    assert_eq!((w.event(0), w.event(1)), (Event::Established { id: again }, Event::Established { id }));
    w.until(|w| w.ends.iter().all(|e| e.connections() == 1));
}

#[test]
fn half_open_connections_end() {
    let over = |w: &mut World, end: usize, id: u32, at_least: Duration, at_most: Duration| {
        let start = w.now;
        // The other end has died without a word.
        w.loss = 100;
        assert!(matches!(w.event(end), Event::Rejected { id: rejected, reason: RejectReason::Timeout, .. } if rejected == id));
        assert!((at_least..at_most).contains(&(w.now - start)), "{:?}", w.now - start);
        assert_eq!(w.ends[end].connections(), 0);
    };
    let give_up = 16 * timeout(16);
    // A request that the program does not answer: as long as its peer asks, and as long as that was told to wait.
    for (mra, most) in [(None, give_up), (Some(20), give_up + timeout(20))] {
        let mut w = World::new(17, 0);
        w.ends[1].listen(ip_service_id(4791));
        let now = w.now;
        w.ends[0].connect(now, &request(2)).unwrap();
        let Event::Request { id, .. } = w.event(1) else { panic!() };
        mra.iter().for_each(|exponent| w.ends[1].delay(id, *exponent).unwrap());
        // The peer lives and asks, longer than it would be waited for a dead one.
        if mra.is_none() {
            (0..300).for_each(|_| w.step());
            assert!(w.events[1].is_empty());
        }
        over(&mut w, 1, id, most - Duration::from_secs(1), most + Duration::from_secs(1));
        let now = w.now;
        assert!(w.ends[1].accept(now, id, &local(3), b"").is_err());
    }
    // A reply that the program does not confirm. Its repeats are answered (MRA), so that the peer waits.
    let mut w = World::new(18, 0);
    w.ends[1].listen(ip_service_id(4791));
    let now = w.now;
    let a = w.ends[0].connect(now, &request(2)).unwrap();
    let Event::Request { id, .. } = w.event(1) else { panic!() };
    w.ends[1].accept(now, id, &local(3), b"").unwrap();
    assert!(matches!(w.event(0), Event::Reply { .. }));
    (0..1500).for_each(|_| w.step());
    assert!(w.events.iter().all(Vec::is_empty), "15 seconds: {:?}", w.events);
    over(&mut w, 0, a, Duration::from_secs(5), Duration::from_secs(8));
    // Whatever a peer says: no more than a minute.
    let mut w = World::new(19, 0);
    w.ends[1].listen(ip_service_id(4791));
    let req = CmReq::default().with_local_id(5).with_service_id(ip_service_id(4791)).with_local_qpn(9).with_remote_timeout(31).with_max_cm_retries(15).with_mtu(3);
    let now = w.now;
    w.ends[1].receive(now, handle(1), &Message { tid: 1, body: Body::Req(req), private: vec![0; 92] }.encode());
    let Some(Event::Request { id, .. }) = w.ends[1].poll() else { panic!() };
    w.ends[1].delay(id, 31).unwrap();
    w.ends[1].tick(now + Duration::from_secs(59));
    assert!(w.ends[1].poll().is_none());
    w.ends[1].tick(now + Duration::from_secs(60));
    assert!(matches!(w.ends[1].poll(), Some(Event::Rejected { .. })));
}

#[test]
fn a_request_that_was_ignored_comes_again() {
    let mut w = World::new(20, 0);
    w.ends[1].listen(ip_service_id(4791));
    let now = w.now;
    let a = w.ends[0].connect(now, &request(2)).unwrap();
    for _ in 0..2 {
        let Event::Request { id, .. } = w.event(1) else { panic!() };
        w.ends[1].ignore(id).unwrap();
        assert!(w.ends[1].ignore(id).is_err());
    }
    let Event::Request { id, .. } = w.event(1) else { panic!() };
    w.ends[1].accept(now, id, &local(3), b"").unwrap();
    assert!(matches!(w.event(0), Event::Reply { id, .. } if id == a));
}

/// Messages about a connection that come from a machine which has no part in it.
#[test]
fn strangers_change_nothing() {
    let mut w = World::new(21, 0);
    w.ends[1].listen(ip_service_id(4791));
    let (a, b) = connected(&mut w, 0x40);
    let now = w.now;
    let asking = w.ends[0].connect(now, &request(0x60)).unwrap();
    let Event::Request { id: asked, .. } = w.event(1) else { panic!() };
    let bodies = [
        Body::Dreq(CmDreq::default().with_local_id(b).with_remote_id(a)),
        Body::Rej(CmRej::default().with_remote_id(asking).with_reason(28)),
        Body::Rep(CmRep::default().with_local_id(9).with_remote_id(asking)),
        Body::Mra(CmMra::default().with_local_id(asked).with_remote_id(asking).with_service_timeout(24)),
        Body::Drep(CmDrep::default().with_local_id(b).with_remote_id(a)),
        Body::Rtu(CmRtu::default().with_local_id(b).with_remote_id(a)),
    ];
    for body in bodies {
        w.ends[0].receive(now, handle(9), &Message { tid: 3, body, private: Vec::new() }.encode());
        assert_eq!(w.ends[0].poll(), None, "{body:?}");
    }
    assert!(w.ends[0].take_outgoing().iter().all(|(to, _)| *to == handle(9)));
    w.ends[1].accept(now, asked, &local(3), b"").unwrap();
    assert!(matches!(w.event(0), Event::Reply { id, .. } if id == asking));
    w.ends[0].disconnect(now, a, b"").unwrap();
    assert_eq!((w.event(0), w.event(1)), (Event::Disconnected { id: a }, Event::Disconnected { id: b }));
}

#[test]
fn silence_and_patience() {
    let mut w = World::new(6, 100);
    let (start, a) = (w.now, w.ends[0].connect(Duration::from_secs(1), &request(2)).unwrap());
    assert!(matches!(w.event(0), Event::Rejected { id, reason: RejectReason::Timeout, .. } if id == a));
    // One message, 15 times again, and the rejection that nobody hears.
    w.step();
    let waited = w.now - start;
    assert_eq!(w.sent, 17);
    assert!(waited >= 16 * timeout(16) && waited < 17 * timeout(16), "{waited:?}");
    assert_eq!(w.ends[0].connections(), 0);
    // Without MRA the request comes again, with it the asker waits.
    for mra in [false, true] {
        let mut w = World::new(7, 0);
        w.ends[1].listen(ip_service_id(4791));
        let now = w.now;
        w.ends[0].connect(now, &request(2)).unwrap();
        let Event::Request { id, .. } = w.event(1) else { panic!() };
        if mra {
            w.ends[1].delay(id, 19).unwrap();
        }
        (0..200).for_each(|_| w.step());
        assert_eq!(w.sent, if mra { 2 } else { 8 }, "two seconds");
        let now = w.now;
        w.ends[1].accept(now, id, &local(3), b"").unwrap();
        assert!(matches!(w.event(0), Event::Reply { .. }));
        assert!(w.events[1].is_empty(), "one request, one event");
    }
}

#[test]
fn nonsense_is_passed_over() {
    let mut w = World::new(8, 0);
    w.ends[1].listen(ip_service_id(4791));
    connected(&mut w, 2);
    for n in 0..20_000 {
        let mut mad: [u8; MAD_BYTES] = std::array::from_fn(|_| w.random(256) as u8);
        if n % 2 == 0 {
            mad[..4].copy_from_slice(&[1, 7, 2, 3]);
            mad[16..18].copy_from_slice(&(0x10 + w.random(10) as u16).to_be_bytes());
        }
        let now = w.now;
        w.ends[1].receive(now, handle(1), &mad);
    }
    w.ends[1].receive(Duration::ZERO, handle(1), &[1, 7, 2]);
    while w.ends[1].poll().is_some() {}
    w.ends[1].take_outgoing();
    connected(&mut w, 99);
}

/// Offsets as the tables of 12.6 print them.
#[test]
fn fields_stand_where_the_standard_puts_them() {
    let req = CmReq::default()
        .with_local_id(0x0102_0304)
        .with_service_id(0x1112_1314_1516_1718)
        .with_local_qpn(0x21_2223)
        .with_responder_resources(0x24)
        .with_initiator_depth(0x25)
        .with_remote_timeout(0x1f)
        .with_transport(1)
        .with_flow_control(true)
        .with_starting_psn(0x31_3233)
        .with_local_timeout(0x15)
        .with_retry_count(5)
        .with_pkey(0xffff)
        .with_mtu(4)
        .with_rnr_retry(7)
        .with_max_cm_retries(9)
        .with_srq(true)
        .with_local_gid(0x41)
        .with_remote_gid(0x42)
        .with_flow_label(0x5_1525)
        .with_tclass(0x61)
        .with_hop_limit(0x62)
        .with_ack_timeout(0x13);
    let mad = Message { tid: 0x7172_7374_7576_7778, body: Body::Req(req), private: vec![0x99; 92] }.encode();
    assert_eq!(mad[..18], [1, 7, 2, 3, 0, 0, 0, 0, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0, 0x10]);
    let at = |n: usize, want: &[u8]| assert_eq!(&mad[24 + n..24 + n + want.len()], want, "byte {n}");
    at(0, &[1, 2, 3, 4]);
    at(8, &[0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
    at(32, &[0x21, 0x22, 0x23, 0x24]);
    at(39, &[0x25, 0, 0, 0, 0x1f << 3 | 1 << 1 | 1]);
    at(44, &[0x31, 0x32, 0x33, 0x15 << 3 | 5, 0xff, 0xff, 4 << 4 | 7, 9 << 4 | 8]);
    at(71, &[0x41]);
    at(87, &[0x42]);
    at(88, &[0x51, 0x52, 0x50, 0, 0x61, 0x62, 0, 0x13 << 3]);
    at(139, &[0, 0x99]);
    assert_eq!(mad[255], 0x99);
    let rep = CmRep::default().with_local_qpn(0x0a_0b0c).with_starting_psn(0x0d_0e0f).with_responder_resources(1).with_initiator_depth(2).with_rnr_retry(5).with_local_guid(3);
    let mad = Message { tid: 0, body: Body::Rep(rep), private: vec![0x77; 300] }.encode();
    assert_eq!((&mad[36..39], &mad[44..47], &mad[48..50], mad[51], mad[59], mad[60], mad[255]), (&[10, 11, 12][..], &[13, 14, 15][..], &[1, 2][..], 5 << 5, 3, 0x77, 0x77));
    let rooms = [
        (Body::Req(CmReq::default()), 92),
        (Body::Mra(CmMra::default()), 222),
        (Body::Rej(CmRej::default()), 148),
        (Body::Rep(CmRep::default()), 196),
        (Body::Rtu(CmRtu::default()), 224),
        (Body::Dreq(CmDreq::default()), 220),
        (Body::Drep(CmDrep::default()), 224),
        (Body::SidrReq(CmSidrReq::default()), 216),
        (Body::SidrRep(CmSidrRep::default()), 136),
    ];
    for (n, (body, room)) in rooms.into_iter().enumerate() {
        assert_eq!(body.room(), room);
        let message = Message { tid: n as u64, body, private: vec![n as u8; room] };
        assert_eq!(Message::decode(&message.encode()), Some(message));
    }
    assert_eq!((ip_service_id(0x1389), gid(ip(5))), (0x0000_0000_0106_1389, 0xffff_0a09_0005));
}

/// 12.7.31: the PSN in a REQ or REP is the one with which the side that gets it begins. Linux as seen in tests/captures/peers/*/rping_v4.pcapng.
#[test]
fn the_starting_psn_is_for_the_other_side() {
    let local = Local { qpn: 1, psn: 0x111, responder_resources: 1, initiator_depth: 1, rnr_retry: 7 };
    let remote = Remote { qpn: 2, psn: 0x222, mtu: Mtu::M1024, responder_resources: 1, initiator_depth: 1, retry_count: 7, rnr_retry: 7, ack_timeout: 14 };
    let path = Path { dmac: Mac([2; 6]), smac: Mac([4; 6]), dip: ip(2), sip: ip(1), vlan: None, udp_sport: 0xc000, tclass: 0, hop_limit: 64, flow_label: 0 };
    assert_eq!((remote.rtr(&local, path, 12).rq_psn, remote.rts(&local).sq_psn), (0x111, 0x222));
}
