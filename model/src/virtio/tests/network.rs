//! The network device: headers of received frames, buffers that are merged, what sent frames ask for, the control queue, pairs of queues.
use super::guest::*;
use crate::virtio::offload::{judge, Offload, Segments};
use crate::virtio::{Device, Offer, Step};
use etherparse::PacketBuilder;
use ferric_abi::codes::VirtioCause::{BadOffload, RxDown, RxNoBuffer};
use ferric_abi::virtio::net::{control, gso};
use ferric_abi::virtio::{feature, window, NetConfig, NetHeader};

const FORMATS: [u64; 2] = [0, feature::RING_PACKED];

#[test]
fn a_frame_behind_its_header() {
    for format in FORMATS {
        for (taken, verified, valid) in [(0, true, false), (feature::GUEST_CSUM, false, false), (feature::GUEST_CSUM, true, true)] {
            let mut guest = Guest::new(format | taken);
            // The header alone, split, and together with the frame; a buffer that is longer than it needs to be.
            guest.publish(RECEIVE, &[d(0, 5, WRITE | NEXT), d(5, 7, WRITE | NEXT), d(0x100, 100, WRITE).tail(3)]);
            guest.run(RECEIVE);
            guest.ram.put(BUFFERS + 0x100 + 60, &[0xaa; 40]);
            guest.device.receive(&mut guest.ram, 0, &[9; 60], verified).unwrap();
            assert_eq!(guest.used(RECEIVE, 3), [], "used before anything has been given back");
            guest.run(RECEIVE);
            assert_eq!(guest.used(RECEIVE, 3), [(if guest.packed { 3 } else { 0 }, 72)]);
            assert_eq!(NetHeader(guest.ram.get(BUFFERS)), NetHeader::default().with_num_buffers(1).with_data_valid(valid));
            assert_eq!(guest.ram.get(BUFFERS + 0x100), [9; 60]);
            assert_eq!(guest.ram.get(BUFFERS + 0x100 + 60), [0xaa; 40]);
            assert_eq!(guest.device.interrupts(), [RECEIVE]);
        }
    }
}

/// Buffers but the last are filled, all come together, and those that are not needed stay.
#[test]
fn a_frame_over_several_buffers() {
    for format in FORMATS {
        let mut guest = Guest::new(format | feature::MRG_RXBUF);
        for n in 0..4u64 {
            guest.publish(RECEIVE, &[d(n * 0x100, 10, WRITE | NEXT), d(n * 0x100 + 0x80, 20, WRITE).tail(n as u16)]);
        }
        guest.run(RECEIVE);
        let frame: Vec<u8> = (0..70).collect();
        guest.device.receive(&mut guest.ram, 0, &frame, false).unwrap();
        assert_eq!(guest.device.held(RECEIVE), Some((1, 0)));
        guest.run(RECEIVE);
        let id = |n: u32| if guest.packed { n } else { 2 * n };
        let wanted = [(id(0), 30), (id(1), 30), (id(2), 22)];
        assert_eq!(guest.used(RECEIVE, 2), wanted);
        let mut bytes = Vec::new();
        for n in 0..3 {
            bytes.extend(guest.ram.get::<10>(BUFFERS + n * 0x100));
            bytes.extend(guest.ram.get::<20>(BUFFERS + n * 0x100 + 0x80));
        }
        assert_eq!(NetHeader(*bytes.first_chunk().unwrap()), NetHeader::default().with_num_buffers(3));
        assert_eq!(bytes[12..82], frame);
        // Three buffers, one interrupt.
        assert_eq!(guest.device.interrupts(), [RECEIVE]);
    }
}

/// The stock is filled to its target, and again when half of it is gone: the ring is not read for every frame.
#[test]
fn the_stock_is_filled_in_time() {
    let mut guest = Guest::new(0);
    (0..SIZE).for_each(|_| guest.publish(RECEIVE, &[d(0, 100, WRITE)]));
    guest.run(RECEIVE);
    assert_eq!(guest.device.held(RECEIVE), Some((4, 0)));
    for (left, after) in [(3, 3), (2, 4)] {
        guest.device.receive(&mut guest.ram, 0, &[0; 60], false).unwrap();
        assert_eq!(guest.device.held(RECEIVE), Some((left, 0)));
        guest.run(RECEIVE);
        assert_eq!(guest.device.held(RECEIVE), Some((after, 0)));
    }
}

/// A packet of one of the three kinds that are cut, its header, and the features that it needs.
fn packet(kind: u8, tags: usize) -> (Vec<u8>, NetHeader, u64) {
    let [v4, v6] = [([10, 0, 0, 1], [10, 0, 0, 2]), ([10, 0, 0, 3], [10, 0, 0, 4])];
    let ethernet = || PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let mut frame = Vec::new();
    match kind {
        gso::TCPV4 => ethernet().ipv4(v4.0, v4.1, 64).tcp(1, 2, 3, 4).write(&mut frame, &[5; 3000]).unwrap(),
        gso::TCPV6 => ethernet().ipv6([v6.0[3]; 16], [v6.1[3]; 16], 64).tcp(1, 2, 3, 4).write(&mut frame, &[5; 3000]).unwrap(),
        _ => ethernet().ipv4(v4.0, v4.1, 64).udp(1, 2).write(&mut frame, &[5; 3000]).unwrap(),
    }
    for _ in 0..tags {
        frame.splice(12..12, [0x81, 0, 0, 5]);
    }
    let start = 14 + 4 * tags as u16 + if kind == gso::TCPV6 { 40 } else { 20 };
    let wanted = [(gso::TCPV4, feature::HOST_TSO4), (gso::TCPV6, feature::HOST_TSO6), (gso::UDP_L4, feature::HOST_USO)].into_iter().find(|(k, _)| *k == kind).unwrap().1;
    let offset = if kind == gso::UDP_L4 { 6 } else { 16 };
    (frame, NetHeader::default().with_needs_csum(true).with_gso(kind).with_gso_size(1000).with_csum_start(start).with_csum_offset(offset), feature::CSUM | wanted)
}

#[test]
fn frames_that_are_to_be_cut() {
    for kind in [gso::TCPV4, gso::TCPV6, gso::UDP_L4] {
        for tags in 0..3 {
            let (frame, header, features) = packet(kind, tags);
            let start = usize::from(header.csum_start());
            let field = usize::from(header.csum_offset());
            let headers = start + if kind == gso::UDP_L4 { 8 } else { 20 };
            let segments = Segments { kind, size: 1000, headers, ecn: false };
            // What the header says of its length is not looked at.
            assert_eq!(judge(&header.with_hdr_len(7), &frame, features), Ok(Some(Offload { csum_start: start, csum_at: start + field, segments: Some(segments) })));
            let refused = |header: NetHeader, frame: &[u8], features: u64| assert_eq!(judge(&header, frame, features), Err(BadOffload), "kind {kind}, {tags} tags: {header:?}");
            refused(header, &frame, feature::CSUM);
            refused(header, &frame, features & !feature::CSUM);
            refused(header.with_gso_size(0), &frame, features);
            refused(header.with_needs_csum(false), &frame, features);
            refused(header.with_csum_start(start as u16 - 4), &frame, features);
            refused(header.with_csum_offset(field as u16 - 2), &frame, features);
            refused(header.with_ecn(true), &frame, features);
            refused(header, &frame[..headers - 1], features);
            let all = Offer::KNOWN;
            for other in [gso::TCPV4, gso::TCPV6, gso::UDP_L4, 2, 3, 0x21].into_iter().filter(|other| *other != kind) {
                refused(header.with_gso(other), &frame, all);
            }
            let ecn = judge(&header.with_ecn(true), &frame, all);
            assert_eq!(ecn.is_ok(), kind != gso::UDP_L4);
            let mut wrong = frame.clone();
            wrong[14 + 4 * tags] ^= 0x20;
            refused(header, &wrong, features);
            if kind != gso::TCPV6 {
                // A fragment.
                let mut wrong = frame.clone();
                wrong[14 + 4 * tags + 6] |= 0x20;
                refused(header, &wrong, features);
            }
        }
        let (frame, header, features) = packet(kind, 3);
        assert_eq!(judge(&header, &frame, features), Err(BadOffload), "three tags");
    }
}

/// Headers of 244 bytes are the most: IPv4 and TCP have 60 each at most, so only what lies about its place comes further. An option is a part of the header.
#[test]
fn tcp_options_belong_to_the_headers() {
    let mut frame = Vec::new();
    let options = [0x55; 40];
    PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([1; 4], [2; 4], 9).tcp(1, 2, 3, 4).options_raw(&options).unwrap().write(&mut frame, &[5; 100]).unwrap();
    let header = NetHeader::default().with_needs_csum(true).with_gso(gso::TCPV4).with_gso_size(10).with_csum_start(34).with_csum_offset(16);
    let offload = judge(&header, &frame, feature::CSUM | feature::HOST_TSO4).unwrap().unwrap();
    assert_eq!(offload.segments.unwrap().headers, 14 + 20 + 60);
    frame[46] = 0x40;
    assert_eq!(judge(&header, &frame, feature::CSUM | feature::HOST_TSO4), Err(BadOffload), "a TCP header of 16 bytes");
}

#[test]
fn a_checksum_is_ordered_and_flags_are_ignored() {
    let features = feature::CSUM | feature::HOST_TSO4;
    let header = NetHeader::default().with_needs_csum(true).with_csum_start(50).with_csum_offset(8).with_other_flags(0x3f).with_data_valid(true);
    assert_eq!(judge(&header, &[0; 60], features), Ok(Some(Offload { csum_start: 50, csum_at: 58, segments: None })));
    assert_eq!(judge(&header, &[0; 59], features), Err(BadOffload));
    // Without NEEDS_CSUM nothing of it counts.
    assert_eq!(judge(&header.with_needs_csum(false), &[0; 14], features), Ok(None));
    let mut guest = Guest::new(features);
    guest.ram.put(BUFFERS, &header.0);
    guest.publish(TRANSMIT, &[d(0, 72, 0)]);
    guest.notify(TRANSMIT);
    guest.step(TRANSMIT);
    let Step::Frame(frame) = guest.step(TRANSMIT) else { panic!("no frame") };
    assert_eq!((frame.bytes.len(), frame.offload), (60, Some(Offload { csum_start: 50, csum_at: 58, segments: None })));
}

#[test]
fn commands_are_carried_out() {
    for format in FORMATS {
        let mut guest = Guest::new(format | feature::CTRL_RX | feature::CTRL_RX_EXTRA);
        for mode in control::RX_PROMISC..=control::RX_NOBCAST {
            for on in [1, 0, 1] {
                guest.ram.put(BUFFERS, &[control::RX, mode, on]);
                guest.ram.put(BUFFERS + 0x10, &[0x55; 2]);
                // Head and data apart, as Linux has them.
                guest.publish(CONTROL, &[d(0, 2, NEXT), d(2, 1, NEXT), d(0x10, 2, WRITE).tail(3)]);
                guest.run(CONTROL);
                assert_eq!(guest.ram.get(BUFFERS + 0x10), [control::OK, 0x55]);
                assert_eq!(guest.device.modes().receive[usize::from(mode)], on == 1);
                assert_eq!(guest.used(CONTROL, 3), [(if guest.packed { 3 } else { guest.head_of_last(CONTROL, 3) }, 1)]);
            }
        }
        assert_eq!((guest.device.modes().receive, guest.device.counters().commands), ([true; 6], 18));
        guest.set("device_status", 0);
        assert_eq!(guest.device.modes().receive, [false; 6]);
        // EXTRA is not taken: its commands are refused, the others are not.
        let mut guest = Guest::new(format | feature::CTRL_RX);
        for mode in control::RX_PROMISC..=control::RX_NOBCAST {
            guest.ram.put(BUFFERS, &[control::RX, mode, 1]);
            guest.publish(CONTROL, &[d(0, 3, NEXT), d(0x10, 1, WRITE)]);
            guest.run(CONTROL);
            assert_eq!(guest.ram.get(BUFFERS + 0x10), [u8::from(mode > control::RX_ALLMULTI)]);
        }
    }
}

/// With MQ the control queue is behind all pairs, and pairs work when they are in use (spec 5.1.2).
#[test]
fn pairs_of_queues() {
    let offer = Offer { features: Offer::KNOWN, pairs: 2, ..offer() };
    let mut guest = Guest::found(offer, BASE | feature::MQ | feature::CTRL_VQ);
    assert_eq!((guest.register("num_queues"), guest.device.config.max_pairs()), (5, 2));
    // Of our guest's three rings one is the second pair's receive queue, one the control queue.
    for (queue, ring) in [(0, RECEIVE), (2, TRANSMIT), (4, CONTROL)] {
        guest.describe(ring, SIZE, areas(ring));
        guest.set("queue_select", queue);
        for (name, address) in ["queue_desc", "queue_driver", "queue_device"].into_iter().zip(areas(ring)) {
            guest.set(name, address);
        }
        guest.set("queue_enable", 1);
        assert_eq!(guest.register("queue_enable"), 1);
    }
    guest.set("device_status", 15);
    for (pairs, answer) in [(0, control::ERR), (3, control::ERR), (2, control::OK), (1, control::OK)] {
        guest.ram.put(BUFFERS, &[control::MQ, control::MQ_PAIRS_SET, pairs, 0]);
        guest.publish(CONTROL, &[d(0, 4, NEXT), d(0x10, 1, WRITE)]);
        guest.device.write(window::NOTIFY + 16, &[4, 0]);
        while guest.device.step(&mut guest.ram, 4) != Step::Idle {}
        assert_eq!(guest.ram.get(BUFFERS + 0x10), [answer]);
        let second = guest.device.receive(&mut guest.ram, 1, &[0; 60], false);
        assert_eq!(second, Err(if pairs == 2 { RxNoBuffer } else { RxDown }), "{pairs} pairs");
    }
}

#[test]
#[should_panic = "features"]
fn an_offer_of_what_is_not_there() {
    Device::new(Offer { features: feature::DEVICE_STATS | feature::CTRL_VQ, config: NetConfig::default(), ..offer() });
}
