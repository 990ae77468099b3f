//! Service ID resolution over the wire of [`super::tests`], and its messages against bytes written down by hand.
use super::ip_datagram_service_id;
use super::tests::{handle, ip, World};
use super::types::{Event, ServiceAnswer, ServiceQuestion};
use super::wire::*;
use std::time::Duration;

fn question(private: &[u8]) -> ServiceQuestion {
    ServiceQuestion { to: handle(2), from: ip(1), service_id: ip_datagram_service_id(7174), ip_port: Some(0x1234), private: private.to_vec() }
}

const SERVES: ServiceAnswer = ServiceAnswer { status: ServiceStatus::Valid, qpn: 0x12_3456, qkey: 0x0123_4567 };

#[test]
fn services_are_resolved_whatever_the_wire_does() {
    for (seed, loss) in [(1, 0), (2, 10), (3, 30), (4, 50)] {
        let mut w = World::new(seed, loss);
        w.ends[1].serve(ip_datagram_service_id(7174));
        for n in 0..8 {
            let now = w.now;
            let a = w.ends[0].ask_service(now, &question(b"who?")).unwrap();
            let Event::ServiceRequest { id: b, service_id, ip: header, private } = w.event(1) else { panic!() };
            let header = header.unwrap();
            assert_eq!((service_id, header.addresses(), header.src_port()), (ip_datagram_service_id(7174), Some((ip(1), ip(2))), 0x1234));
            assert_eq!((&private[..4], private.len(), w.ends[1].asker(b)), (&b"who?"[..], 180, Some(handle(1))));
            let now = w.now;
            let answer = ServiceAnswer { qpn: SERVES.qpn + n, ..SERVES };
            w.ends[1].answer_service(now, b, &answer, b"me").unwrap();
            assert!(w.ends[1].answer_service(now, b, &answer, b"").is_err(), "once is enough");
            let Event::ServiceReply { id, answer: told, private } = w.event(0) else { panic!() };
            assert_eq!((id, told, &private[..2], private.len()), (a, answer, &b"me"[..], 136));
        }
        // Repeats made no event, and nothing is remembered for ever.
        w.until(|w| w.ends[1].questions() == 0);
        assert!(w.ends[0].questions() == 0 && w.events.iter().all(Vec::is_empty), "{:?}", w.events);
    }
}

#[test]
fn nobody_serves_refuses_or_answers() {
    let mut w = World::new(5, 0);
    w.ends[1].listen(ip_datagram_service_id(7174));
    let ask = |w: &mut World| {
        let now = w.now;
        w.ends[0].ask_service(now, &question(b"")).unwrap()
    };
    let told = |w: &mut World| match w.event(0) {
        Event::ServiceReply { id, answer, .. } => (id, answer.status),
        other => panic!("{other:?}"),
    };
    // Who listens for connections serves no datagrams.
    let a = ask(&mut w);
    assert_eq!(told(&mut w), (a, ServiceStatus::Unsupported));
    w.ends[1].serve(ip_datagram_service_id(7174));
    for status in [ServiceStatus::Rejected, ServiceStatus::Other(3)] {
        let a = ask(&mut w);
        let Event::ServiceRequest { id, .. } = w.event(1) else { panic!() };
        let now = w.now;
        w.ends[1].answer_service(now, id, &ServiceAnswer { status, ..SERVES }, b"").unwrap();
        assert_eq!(told(&mut w), (a, status));
    }
    w.ends[1].serve_no_more(ip_datagram_service_id(7174));
    let a = ask(&mut w);
    assert_eq!(told(&mut w), (a, ServiceStatus::Unsupported));
    let now = w.now;
    assert!(w.ends[1].answer_service(now, 77, &SERVES, b"").is_err());
    assert!(w.ends[0].ask_service(now, &question(&[0; 181])).is_err() && w.ends[0].questions() == 0);

    // Silence: it gives up, and says so once.
    let mut silent = World::new(6, 100);
    let a = ask(&mut silent);
    assert_eq!(silent.event(0), Event::Rejected { id: a, reason: RejectReason::Timeout, private: Vec::new() });
    assert_eq!((silent.sent, silent.ends[0].questions()), (16, 0));
}

#[test]
fn a_question_that_was_forgotten_comes_again() {
    let mut w = World::new(7, 0);
    w.ends[1].serve(ip_datagram_service_id(7174));
    let now = w.now;
    let a = w.ends[0].ask_service(now, &question(b"")).unwrap();
    for _ in 0..3 {
        let Event::ServiceRequest { id, .. } = w.event(1) else { panic!() };
        w.ends[1].forget_service(id);
        assert_eq!(w.ends[1].asker(id), None);
    }
    let Event::ServiceRequest { id, .. } = w.event(1) else { panic!() };
    // Nobody waits for the answer any more.
    w.ends[0].forget_service(a);
    let now = w.now;
    w.ends[1].answer_service(now, id, &SERVES, b"").unwrap();
    w.ends[1].forget_service(id);
    assert_eq!(w.ends[1].questions(), 1, "the answer stays for a request that is repeated");
    (0..50).for_each(|_| w.step());
    assert!(w.events[0].is_empty());
}

/// An answer from a machine that was not asked, or to no question.
#[test]
fn strangers_answer_nothing() {
    let mut w = World::new(8, 0);
    let now = w.now;
    let a = w.ends[0].ask_service(now, &question(b"")).unwrap();
    for (from, request_id) in [(9, a), (2, a + 1)] {
        let body = Body::SidrRep(CmSidrRep::default().with_request_id(request_id).with_qpn(5));
        w.ends[0].receive(now, handle(from), &Message { tid: 1, body, private: Vec::new() }.encode());
        assert_eq!(w.ends[0].poll(), None);
    }
    assert_eq!(w.ends[0].questions(), 1);
    w.ends[0].tick(now + Duration::from_secs(1));
    assert_eq!(w.ends[0].take_outgoing().len(), 2, "it asks on");
}

/// Offsets as the tables of 12.11 print them.
#[test]
fn fields_of_service_id_resolution() {
    let req = CmSidrReq::default().with_request_id(0x0102_0304).with_pkey(0xfffe).with_service_id(0x1112_1314_1516_1718);
    let mad = Message { tid: 1, body: Body::SidrReq(req), private: vec![0x99; 216] }.encode();
    assert_eq!(mad[16..18], [0, 0x17]);
    assert_eq!(mad[24..41], [1, 2, 3, 4, 0xff, 0xfe, 0, 0, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x99]);
    let rep = CmSidrRep::default().with_request_id(0x0102_0304).with_status(2).with_info_length(7).with_qpn(0x21_2223).with_service_id(0x1112_1314_1516_1718).with_qkey(0x3132_3334);
    let mad = Message { tid: 1, body: Body::SidrRep(rep), private: vec![0x99; 136] }.encode();
    assert_eq!(mad[16..18], [0, 0x18]);
    assert_eq!(mad[24..48], [1, 2, 3, 4, 2, 7, 0, 0, 0x21, 0x22, 0x23, 0, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x31, 0x32, 0x33, 0x34]);
    assert_eq!((mad[119], mad[120], mad[255]), (0, 0x99, 0x99));
    assert_eq!(ip_datagram_service_id(0x1c06), 0x0111_1c06);
}
