//! Others' words: smoltcp as a host on the network, etherparse for what is sent.
use super::bench::Bench;
use super::frames::*;
use super::REST;
use crate::engines::echo::model::{Outcome, Station};
use etherparse::{Icmpv4Type, Icmpv6Type, SlicedPacket, TransportSlice};
use ferric_model::net::networks::Network;
use ferric_station::Station as Stack;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Time between its looks, so that it asks again when nothing came: it does once a second.
const LOOK: u64 = 1_500_000_000;

/// A host with smoltcp's stack.
struct Peer {
    stack: Stack,
    nanos: u64,
}

impl Peer {
    fn new(here: Host) -> Peer {
        Peer { stack: Stack::new(bytes(here.mac), &[(address(here), if here.ipv6 { 64 } else { 24 })]), nanos: 0 }
    }

    /// Frames that it sends in answer to `frame`, if any, and by itself.
    fn poll(&mut self, frame: Option<Vec<u8>>) -> Vec<Vec<u8>> {
        frame.into_iter().for_each(|frame| self.stack.take(frame));
        self.nanos += LOOK;
        self.stack.poll(self.nanos).into_iter().map(|frame| finished(frame, None)).collect()
    }
}

fn address(host: Host) -> IpAddr {
    if host.ipv6 {
        host.ip.to_be_bytes().into()
    } else {
        (host.ip as u32).to_be_bytes().into()
    }
}

/// smoltcp asks for our MAC address, then pings us; what is sent to groups by itself is passed on.
#[test]
fn a_host_finds_and_pings_us() {
    let mut b = Bench::<64, 8, 4>::new("echo64", 10, 50);
    b.set_up();
    for card in [CARD4, CARD6] {
        let mut peer = Peer::new(card.peer());
        for len in [0, 1, 56, 1000] {
            let data = b.tb.rng().bytes(len);
            peer.stack.ping(address(card), &data);
            let (mut frames, mut seen, mut back) = (VecDeque::from(peer.poll(None)), Vec::new(), None);
            for _ in 0..20 {
                b.now += REST;
                let Some(frame) = frames.pop_front() else {
                    frames.extend(peer.poll(None));
                    continue;
                };
                if let Some(Outcome::Answered(name, answer, _)) = b.exchange(&frame) {
                    seen.push(name);
                    frames.extend(peer.poll(Some(answer)));
                }
                back = back.or_else(|| peer.stack.answer());
            }
            assert_eq!(back, Some(data), "{card:?} {len}");
            assert!(seen.ends_with(&[if card.ipv6 { "echo_ping6" } else { "echo_ping" }]), "{seen:?}");
            assert_eq!(seen.len(), if len == 0 { 2 } else { 1 }, "{seen:?}");
        }
    }
}

/// We ask for smoltcp's.
#[test]
fn we_find_a_host() {
    let mut b = Bench::<64, 8, 4>::new("echo64", 10, 51);
    b.set_up();
    for (source, card) in [(0, CARD4), (15, CARD6)] {
        let mut peer = Peer::new(card.peer());
        peer.poll(None);
        b.seek(0, card.peer().ip, source);
        b.run(2000);
        let request = b.sent.pop_front().expect("a request");
        assert_eq!(Some(&request), b.station.ask(0).as_ref());
        let answers = peer.poll(Some(request));
        assert!(answers.iter().any(|answer| b.exchange(answer) == Some(Outcome::Found)), "{answers:02x?}");
        b.check_search(0);
        assert_eq!((b.station.neighbours[0].mac(), b.station.neighbours[0].state()), (card.peer().mac, 2));
    }
}

/// What etherparse makes of the model's answers.
pub fn answers_parse() {
    let mut station = Station::new(1);
    for (n, card) in [CARD4, CARD6, TAGGED4, TAGGED6].into_iter().enumerate() {
        station.addresses[n] = card.address();
        for len in 0..50 {
            let data: Vec<u8> = (0..len).map(|n: u8| n.wrapping_mul(7)).collect();
            let Some(Outcome::Answered(_, answer, _)) = station.receive(&ping(card, &data), REST * (n as u32 * 100 + u32::from(len)), Network::default()) else { panic!("no answer") };
            let packet = SlicedPacket::from_ethernet(&answer).expect("a frame");
            match &packet.transport {
                Some(TransportSlice::Icmpv4(icmp)) => {
                    assert_eq!(icmp.icmp_type(), Icmpv4Type::EchoReply(etherparse::IcmpEchoHeader { id: 0x1234, seq: 7 }));
                    assert_eq!(icmp.payload(), data);
                    assert_eq!(icmp.header().icmp_type.calc_checksum(icmp.payload()), icmp.header().checksum);
                }
                Some(TransportSlice::Icmpv6(icmp)) => {
                    assert_eq!(icmp.icmp_type(), Icmpv6Type::EchoReply(etherparse::IcmpEchoHeader { id: 0x1234, seq: 7 }));
                    assert_eq!(icmp.payload(), data);
                    assert!(icmp.is_checksum_valid(card.ip.to_be_bytes(), PEER6.ip.to_be_bytes()));
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(packet.vlan.is_some(), card.vid.is_some());
            if let Some(etherparse::NetSlice::Ipv4(ip)) = &packet.net {
                assert_eq!(ip.header().to_header().calc_header_checksum(), ip.header().header_checksum());
            }
        }
        let Some(Outcome::Answered(_, answer, _)) = station.receive(&who_has(card), REST * 1000, Network::default()) else { panic!("no answer") };
        let packet = SlicedPacket::from_ethernet(&answer).expect("a frame");
        if let Some(TransportSlice::Icmpv6(icmp)) = &packet.transport {
            assert!(icmp.is_checksum_valid(card.ip.to_be_bytes(), PEER6.ip.to_be_bytes()));
        } else {
            assert!(!card.ipv6);
        }
    }
}
