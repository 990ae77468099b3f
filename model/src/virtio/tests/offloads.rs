//! What is done to frames: checksums and segments of those that leave, the verdict, the filter and the pair of those that come. Another implementation (etherparse) is the judge of headers and sums.
use super::guest::*;
use crate::virtio::filter::Filter;
use crate::virtio::offload::judge;
use crate::virtio::queue::Ticket;
use crate::virtio::transmit::Frame;
use crate::virtio::verdict::is_verified;
use crate::virtio::Offer;
use etherparse::{NetHeaders, PacketBuilder, PacketHeaders, TransportHeader};
use ferric_abi::virtio::net::{control, gso};
use ferric_abi::virtio::{feature, NetConfig, NetHeader};

const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// A frame with good checksums and this many bytes of payload, to the function.
fn frame(ipv6: bool, udp: bool, payload: usize) -> Vec<u8> {
    let bytes: Vec<u8> = (0..payload).map(|n| (n * 7) as u8).collect();
    let ethernet = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 2], OWN);
    let ip = if ipv6 { ethernet.ipv6([3; 16], [4; 16], 64) } else { ethernet.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64) };
    let mut frame = Vec::new();
    if udp {
        ip.udp(5, 6).write(&mut frame, &bytes).unwrap();
    } else {
        ip.tcp(1000, 80, u32::MAX - 99, 512).psh().fin().cwr().ack(7).write(&mut frame, &bytes).unwrap();
    }
    frame
}

/// A frame as it leaves the function, with what its header asks for.
fn leave(header: NetHeader, bytes: Vec<u8>) -> Vec<Vec<u8>> {
    let offload = judge(&header, &bytes, Offer::KNOWN).expect("a good header");
    let ticket = Guest::new(0).device_ticket();
    Frame { ticket, bytes, offload }.segments()
}

impl Guest {
    fn device_ticket(&self) -> Ticket {
        self.device.queues[1].ticket(1, 0)
    }
}

/// The parts of a frame and its payload, whose checksums and lengths are right.
fn parts(frame: &[u8]) -> (PacketHeaders<'_>, usize) {
    let p = PacketHeaders::from_ethernet_slice(frame).expect("good headers");
    let payload = p.payload.slice();
    let Some(net) = &p.net else { panic!("no IP") };
    if let NetHeaders::Ipv4(ip, _) = net {
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        assert_eq!(usize::from(ip.total_len), frame.len() - 14);
    }
    let sum = |tcp: &TransportHeader| match (net, tcp) {
        (NetHeaders::Ipv4(ip, _), TransportHeader::Tcp(h)) => (h.checksum, h.calc_checksum_ipv4(ip, payload).unwrap()),
        (NetHeaders::Ipv6(ip, _), TransportHeader::Tcp(h)) => (h.checksum, h.calc_checksum_ipv6(ip, payload).unwrap()),
        (NetHeaders::Ipv4(ip, _), TransportHeader::Udp(h)) => (h.checksum, h.calc_checksum_ipv4(ip, payload).unwrap()),
        (NetHeaders::Ipv6(ip, _), TransportHeader::Udp(h)) => (h.checksum, h.calc_checksum_ipv6(ip, payload).unwrap()),
        _ => panic!("neither TCP nor UDP"),
    };
    let (found, wanted) = sum(p.transport.as_ref().expect("a transport"));
    assert_eq!(found, wanted);
    let at = payload.as_ptr() as usize - frame.as_ptr() as usize;
    (p, at)
}

/// Puts what a driver puts in the checksum's place: the sum of the pseudo header.
fn unsummed(frame: &mut [u8], l4: usize, field: usize) {
    let body = &frame[l4..];
    let length = body.len() as u32;
    let (src, dst, protocol) = if frame[14] >> 4 == 4 { (&frame[26..30], &frame[30..34], frame[23]) } else { (&frame[22..38], &frame[38..54], frame[20]) };
    let sum = crate::net::sums::fold(crate::net::sums::pseudo(src, dst, protocol, length)) as u16;
    frame[l4 + field..l4 + field + 2].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn checksums_are_filled_in() {
    for (ipv6, udp) in [(false, false), (false, true), (true, false), (true, true)] {
        for payload in [0, 1, 2, 99, 1400] {
            let wanted = frame(ipv6, udp, payload);
            let (l4, field) = (if ipv6 { 54 } else { 34 }, if udp { 6 } else { 16 });
            let mut given = wanted.clone();
            unsummed(&mut given, l4, field);
            let header = NetHeader::default().with_needs_csum(true).with_csum_start(l4 as u16).with_csum_offset(field as u16);
            assert_eq!(leave(header, given), [wanted]);
        }
    }
    // A sum of zero is written as all ones: to UDP zero says that there is none.
    let mut given = vec![0; 60];
    given[50..52].copy_from_slice(&[0xff, 0xff]);
    let header = NetHeader::default().with_needs_csum(true).with_csum_start(40).with_csum_offset(4);
    let [left] = &leave(header, given)[..] else { panic!("one frame") };
    assert_eq!(left[44..46], [0xff, 0xff]);
}

#[test]
fn frames_are_cut() {
    for (kind, ipv6, udp) in [(gso::TCPV4, false, false), (gso::TCPV6, true, false), (gso::UDP_L4, false, true), (gso::UDP_L4, true, true)] {
        for payload in [1usize, 100, 101, 1000, 40_000] {
            let mut given = frame(ipv6, udp, payload);
            let (l4, field) = (if ipv6 { 54 } else { 34 }, if udp { 6 } else { 16 });
            let headers = l4 + if udp { 8 } else { 20 };
            unsummed(&mut given, l4, field);
            // The last identification of all, so that it goes around.
            if !ipv6 {
                given[18..20].copy_from_slice(&[0xff, 0xff]);
            }
            let header = NetHeader::default().with_needs_csum(true).with_gso(kind).with_gso_size(100).with_csum_start(l4 as u16).with_csum_offset(field as u16);
            let segments = leave(header, given.clone());
            assert_eq!(segments.len(), payload.div_ceil(100));
            let mut stream: Vec<u8> = Vec::new();
            for (n, segment) in segments.iter().enumerate() {
                let (p, at) = parts(segment);
                assert!(is_verified(segment));
                assert_eq!(at, headers);
                stream.extend(&segment[at..]);
                assert!(n + 1 == segments.len() || segment.len() == headers + 100);
                match (&p.net, &p.transport) {
                    (Some(NetHeaders::Ipv4(ip, _)), _) => assert_eq!(ip.identification, 0xffff_u16.wrapping_add(n as u16)),
                    (Some(NetHeaders::Ipv6(ip, _)), _) => assert_eq!(usize::from(ip.payload_length), segment.len() - 54),
                    _ => panic!("no IP"),
                }
                match &p.transport {
                    Some(TransportHeader::Tcp(tcp)) => {
                        let last = n + 1 == segments.len();
                        assert_eq!((tcp.sequence_number, tcp.acknowledgment_number), ((u32::MAX - 99).wrapping_add(100 * n as u32), 7));
                        assert_eq!((tcp.fin, tcp.psh, tcp.cwr, tcp.ack), (last, last, n == 0, true));
                    }
                    Some(TransportHeader::Udp(udp)) => assert_eq!(usize::from(udp.length), segment.len() - l4),
                    _ => panic!("no transport"),
                }
            }
            assert_eq!(stream, given[headers..]);
        }
    }
}

/// Headers alone are one segment: nothing is lost.
#[test]
fn a_frame_without_payload_is_not_cut() {
    let mut given = frame(false, false, 0);
    unsummed(&mut given, 34, 16);
    let header = NetHeader::default().with_needs_csum(true).with_gso(gso::TCPV4).with_gso_size(100).with_csum_start(34).with_csum_offset(16);
    assert_eq!(leave(header, given), [frame(false, false, 0)]);
}

#[test]
fn verdicts() {
    for (ipv6, udp) in [(false, false), (false, true), (true, false), (true, true)] {
        for payload in [0, 1, 33, 1400] {
            let good = frame(ipv6, udp, payload);
            assert!(is_verified(&good));
            // Padding of the wire is none of the packet; a tag in front of it does not matter.
            assert!(is_verified(&[&good[..], &[0xaa; 13]].concat()));
            let mut tagged = good.clone();
            tagged.splice(12..12, [0x81, 0, 0, 5]);
            assert!(is_verified(&tagged));
            // Any bit that a sum covers; those of lengths and of the version make another packet of it.
            let l4 = if ipv6 { 54 } else { 34 };
            for at in (l4 - 8..good.len()).filter(|at| !udp || !(l4 + 4..l4 + 6).contains(at)) {
                let mut bad = good.clone();
                bad[at] ^= 0x10;
                assert!(!is_verified(&bad), "byte {at}, ipv6 {ipv6}, udp {udp}");
            }
            (0..good.len()).for_each(|n| assert!(!is_verified(&good[..n]), "cut to {n}"));
        }
    }
    // UDP without a checksum, fragments, ICMP, ARP: the driver's business.
    let mut none = frame(false, true, 20);
    none[40..42].fill(0);
    let mut fragment = frame(false, true, 20);
    fragment[20] |= 0x20;
    let mut icmp = frame(false, true, 20);
    icmp[23] = 1;
    let mut arp = frame(false, true, 20);
    arp[13] = 6;
    for other in [none, fragment, icmp, arp, vec![], vec![0x81; 100]] {
        assert!(!is_verified(&other));
    }
}

fn filtering(features: u64) -> Guest {
    let mac = u64::from_le_bytes([2, 0, 0, 0, 0, 1, 0, 0]);
    let mut guest = Guest::found(Offer { config: NetConfig::default().with_mac(mac).with_mtu(1500), ..offer() }, features | BASE | feature::CTRL_VQ);
    (0..3).for_each(|n| guest.enable(n));
    guest.set("device_status", 15);
    guest
}

/// A command, and whether it has been carried out.
fn command(guest: &mut Guest, bytes: &[u8]) -> bool {
    guest.ram.put(BUFFERS, bytes);
    guest.publish(CONTROL, &[d(0, bytes.len() as u32, NEXT), d(0x8000, 1, WRITE)]);
    guest.run(CONTROL);
    guest.ram.get(BUFFERS + 0x8000) == [control::OK]
}

fn to(mac: [u8; 6], tag: Option<u16>) -> Vec<u8> {
    let mut frame = [&mac[..], &[2, 0, 0, 0, 0, 9]].concat();
    if let Some(tag) = tag {
        frame.extend([0x81, 0]);
        frame.extend(tag.to_be_bytes());
    }
    frame.resize(60, 0);
    frame
}

const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 7];
const GROUP: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];
const ALL: [u8; 6] = [0xff; 6];

#[test]
fn the_filter_follows_its_modes() {
    let wants = |guest: &Guest| [OWN, OTHER, GROUP, ALL].map(|mac| guest.device.wants(&to(mac, None)));
    // Without the commands every group is received.
    assert_eq!(wants(&filtering(0)), [true, false, true, true]);
    let mut guest = filtering(feature::CTRL_RX | feature::CTRL_RX_EXTRA);
    assert_eq!(wants(&guest), [true, false, false, true]);
    let cases = [
        (control::RX_PROMISC, [true; 4]),
        (control::RX_ALLMULTI, [true, false, true, true]),
        (control::RX_ALLUNI, [true, true, false, true]),
        (control::RX_NOMULTI, [true, false, false, true]),
        (control::RX_NOUNI, [false, false, false, true]),
        (control::RX_NOBCAST, [true, false, false, false]),
    ];
    for (mode, wanted) in cases {
        assert!(command(&mut guest, &[control::RX, mode, 1]));
        assert_eq!(wants(&guest), wanted, "mode {mode}");
        assert!(command(&mut guest, &[control::RX, mode, 0]));
    }
    assert!(!guest.device.wants(&[2, 0]), "no address at all");
}

#[test]
fn the_filter_has_tables() {
    let mut guest = filtering(feature::CTRL_RX | feature::CTRL_VLAN);
    let table = |own: &[[u8; 6]], groups: &[[u8; 6]]| {
        let list = |macs: &[[u8; 6]]| [&(macs.len() as u32).to_le_bytes()[..], &macs.concat()].concat();
        [vec![control::MAC, control::MAC_TABLE_SET], list(own), list(groups)].concat()
    };
    assert!(command(&mut guest, &table(&[OTHER], &[GROUP])));
    assert_eq!([OWN, OTHER, GROUP, [3; 6]].map(|mac| guest.device.wants(&to(mac, None))), [true, true, true, false]);
    // The next table takes the place of the whole one. Too many addresses: all of the kind.
    assert!(command(&mut guest, &table(&[], &[[1, 0, 0, 0, 0, 0]; 33])));
    assert_eq!([OTHER, GROUP, [3; 6]].map(|mac| guest.device.wants(&to(mac, None))), [false, true, true]);
    assert!(command(&mut guest, &table(&[[4; 6]; 17], &[])));
    assert_eq!([OTHER, GROUP].map(|mac| guest.device.wants(&to(mac, None))), [true, false]);
    // Tables that are not whole change nothing.
    let good = table(&[OTHER], &[GROUP]);
    for bad in [&good[..good.len() - 1], &[&good[..], &[0]].concat(), &[1, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0], &[1, 0, 0, 0]] {
        assert!(!command(&mut guest, bad));
    }
    assert_eq!([OTHER, GROUP].map(|mac| guest.device.wants(&to(mac, None))), [true, false]);
    // VLANs: what has no tag is received all the same.
    assert_eq!([None, Some(5), Some(0x2005)].map(|tag| guest.device.wants(&to(OWN, tag))), [true, false, false]);
    assert!(command(&mut guest, &[control::VLAN, control::VLAN_ADD, 5, 0]));
    assert_eq!([Some(5), Some(0x2005), Some(6), Some(4095)].map(|tag| guest.device.wants(&to(OWN, tag))), [true, true, false, false]);
    assert!(!command(&mut guest, &[control::VLAN, control::VLAN_ADD, 0, 0x10]), "there are 4,096");
    assert!(command(&mut guest, &[control::VLAN, control::VLAN_DEL, 5, 0]));
    assert!(!guest.device.wants(&to(OWN, Some(5))));
    assert_ne!(guest.device.filter, Filter::default());
    guest.set("device_status", 0);
    assert_eq!(guest.device.filter, Filter::default(), "a reset empties it");
    // Without CTRL_VLAN tags do not count, and the command is none.
    let mut guest = filtering(0);
    assert!(guest.device.wants(&to(OWN, Some(5))) && !command(&mut guest, &[control::VLAN, control::VLAN_ADD, 5, 0]));
}

/// What arrives is one of filtered, delivered and dropped with a cause; a good checksum is said to be one.
#[test]
fn what_arrives_is_accounted_for() {
    let mut guest = filtering(feature::GUEST_CSUM | feature::CTRL_RX);
    (0..2).for_each(|_| guest.publish(RECEIVE, &[d(0, 2000, WRITE)]));
    guest.run(RECEIVE);
    let mut wrong = frame(false, false, 50);
    wrong[60] ^= 1;
    for (bytes, valid) in [(frame(false, false, 50), true), (wrong, false)] {
        guest.device.arrive(&mut guest.ram, &bytes);
        assert_eq!(NetHeader(guest.ram.get(BUFFERS)).data_valid(), valid);
    }
    guest.device.arrive(&mut guest.ram, &to(OTHER, None));
    guest.device.arrive(&mut guest.ram, &to(OWN, None));
    let counters = guest.device.counters();
    assert_eq!((counters.filtered, counters.frames, counters.delivered, counters.rejects()), (1, 3, 2, 1));
}

#[test]
fn a_flow_comes_back_by_the_pair_that_sent_it() {
    let offer = Offer { features: Offer::KNOWN, pairs: 3, ..offer() };
    let mut guest = Guest::found(offer, BASE | feature::MQ | feature::CTRL_VQ);
    guest.device.modes.pairs = 3;
    let flows = |udp: bool, ipv6: bool| {
        let out = frame(ipv6, udp, 10);
        let mut back = out.clone();
        let (at, half) = if ipv6 { (22, 16) } else { (26, 4) };
        back[at..at + 2 * half].rotate_left(half);
        back[at + 2 * half..at + 2 * half + 4].rotate_left(2);
        (out, back)
    };
    for (pair, (udp, ipv6)) in [(2, (false, false)), (1, (true, false)), (2, (true, true)), (1, (false, true))] {
        let (out, back) = flows(udp, ipv6);
        assert_eq!(guest.device.pair_of(&back), 0, "nothing has been sent");
        guest.device.note_flow(&out, pair);
        assert_eq!(guest.device.pair_of(&back), pair);
    }
    // Pairs that are not used any more are not asked.
    guest.device.modes.pairs = 2;
    assert_eq!(guest.device.pair_of(&flows(false, false).1), 0);
    assert_eq!([&[][..], &[0; 20], &[8; 60]].map(|bytes| guest.device.pair_of(bytes)), [0; 3]);
}
