//! Others' words: smoltcp as a host on the network, etherparse for what is sent.
use super::bench::Bench;
use super::frames::*;
use super::REST;
use crate::engines::echo::model::{Outcome, Station};
use etherparse::{Icmpv4Type, Icmpv6Type, SlicedPacket, TransportSlice};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::icmp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, HardwareAddress, Icmpv4Packet, Icmpv4Repr, Icmpv6Packet, Icmpv6Repr, IpAddress, IpCidr, Ipv4Address, Ipv6Address};
use std::collections::VecDeque;

const IDENT: u16 = 0x4711;

#[derive(Default)]
struct Wire {
    rx: VecDeque<Vec<u8>>,
    tx: VecDeque<Vec<u8>>,
}

struct Got(Vec<u8>);
struct Give<'a>(&'a mut VecDeque<Vec<u8>>);

impl RxToken for Got {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for Give<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = vec![0; len];
        let result = f(&mut frame);
        self.0.push_back(frame);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Got;
    type TxToken<'a> = Give<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Got, Give<'_>)> {
        self.rx.pop_front().map(|frame| (Got(frame), Give(&mut self.tx)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Give<'_>> {
        Some(Give(&mut self.tx))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut all = DeviceCapabilities::default();
        all.medium = Medium::Ethernet;
        all.max_transmission_unit = 1514;
        all
    }
}

fn address(host: Host) -> IpAddress {
    if host.ipv6 {
        IpAddress::Ipv6(Ipv6Address::from(host.ip.to_be_bytes()))
    } else {
        IpAddress::Ipv4(Ipv4Address::from((host.ip as u32).to_be_bytes()))
    }
}

/// A host with smoltcp's stack.
struct Peer {
    here: Host,
    wire: Wire,
    iface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    time: i64,
}

impl Peer {
    fn new(here: Host) -> Peer {
        let mut wire = Wire::default();
        let mac = HardwareAddress::Ethernet(EthernetAddress(bytes(here.mac)));
        let mut iface = Interface::new(Config::new(mac), &mut wire, Instant::ZERO);
        iface.update_ip_addrs(|all| all.push(IpCidr::new(address(here), if here.ipv6 { 64 } else { 24 })).expect("room for an address"));
        let buffer = || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; 4], vec![0; 4096]);
        let mut socket = icmp::Socket::new(buffer(), buffer());
        socket.bind(icmp::Endpoint::Ident(IDENT)).expect("an ICMP socket");
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        Peer { here, wire, iface, sockets, socket, time: 0 }
    }

    fn ping(&mut self, card: Host, data: &[u8]) {
        let socket = self.sockets.get_mut::<icmp::Socket>(self.socket);
        let caps = ChecksumCapabilities::default();
        match (address(self.here), address(card)) {
            (IpAddress::Ipv6(from), IpAddress::Ipv6(to)) => {
                let request = Icmpv6Repr::EchoRequest { ident: IDENT, seq_no: 3, data };
                let room = socket.send(request.buffer_len(), to.into()).expect("room for a ping");
                request.emit(&from, &to, &mut Icmpv6Packet::new_unchecked(room), &caps);
            }
            (_, to) => {
                let request = Icmpv4Repr::EchoRequest { ident: IDENT, seq_no: 3, data };
                let room = socket.send(request.buffer_len(), to).expect("room for a ping");
                request.emit(&mut Icmpv4Packet::new_unchecked(room), &caps);
            }
        }
    }

    fn answer(&mut self, card: Host) -> Option<Vec<u8>> {
        let socket = self.sockets.get_mut::<icmp::Socket>(self.socket);
        let (bytes, _) = socket.recv().ok()?;
        let caps = ChecksumCapabilities::default();
        match (address(card), address(self.here)) {
            (IpAddress::Ipv6(from), IpAddress::Ipv6(to)) => match Icmpv6Repr::parse(&from, &to, &Icmpv6Packet::new_checked(bytes).expect("a message"), &caps) {
                Ok(Icmpv6Repr::EchoReply { ident: IDENT, seq_no: 3, data }) => Some(data.to_vec()),
                other => panic!("{other:?}"),
            },
            _ => match Icmpv4Repr::parse(&Icmpv4Packet::new_checked(bytes).expect("a message"), &caps) {
                Ok(Icmpv4Repr::EchoReply { ident: IDENT, seq_no: 3, data }) => Some(data.to_vec()),
                other => panic!("{other:?}"),
            },
        }
    }

    /// Frames that it sends in answer to `frame`, if any, and by itself.
    fn poll(&mut self, frame: Option<Vec<u8>>) -> Vec<Vec<u8>> {
        self.wire.rx.extend(frame);
        self.time += 1500;
        self.iface.poll(Instant::from_millis(self.time), &mut self.wire, &mut self.sockets);
        self.wire.tx.drain(..).map(|frame| finished(frame, None)).collect()
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
            peer.ping(card, &data);
            let (mut frames, mut seen, mut back) = (VecDeque::from(peer.poll(None)), Vec::new(), None);
            for _ in 0..20 {
                b.now += REST;
                let Some(frame) = frames.pop_front() else {
                    frames.extend(peer.poll(None));
                    continue;
                };
                if let Some(Outcome::Answered(name, answer)) = b.exchange(&frame) {
                    seen.push(name);
                    frames.extend(peer.poll(Some(answer)));
                }
                back = back.or(peer.answer(card));
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
            let Some(Outcome::Answered(_, answer)) = station.receive(&ping(card, &data), REST * (n as u32 * 100 + u32::from(len))) else { panic!("no answer") };
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
        let Some(Outcome::Answered(_, answer)) = station.receive(&who_has(card), REST * 1000) else { panic!("no answer") };
        let packet = SlicedPacket::from_ethernet(&answer).expect("a frame");
        if let Some(TransportSlice::Icmpv6(icmp)) = &packet.transport {
            assert!(icmp.is_checksum_valid(card.ip.to_be_bytes(), PEER6.ip.to_be_bytes()));
        } else {
            assert!(!card.ipv6);
        }
    }
}
