//! What a fabric does with frames; etherparse reads them.
use super::*;
use etherparse::{Ipv4HeaderSlice, Ipv6HeaderSlice, PacketBuilder};
use proptest::prelude::*;
use std::collections::BTreeSet;

const TRIMMING: Trimming = Trimming { trimmable: 8, trimmed: 10, trimmed_last: 12, keep: 24 };

fn mac(node: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, node as u8]
}

fn fabric(config: Config, seed: u64) -> Fabric {
    let nodes = config.nodes;
    let mut fabric = Fabric::new(config, seed);
    for node in 0..nodes {
        fabric.attach(0x0200_0000_0000 | node as u64, node);
    }
    fabric
}

/// A frame over IPv4 or IPv6 with DSCP, ECN and a source port.
fn udp(v6: bool, to: usize, dscp: u8, ecn: u8, port: u16, bytes: usize) -> Vec<u8> {
    let ether = PacketBuilder::ethernet2(mac(0), mac(to));
    let mut out = Vec::new();
    let payload = vec![0x5a; bytes];
    if v6 {
        let mut ip = etherparse::Ipv6Header { hop_limit: 64, source: [1; 16], destination: [to as u8; 16], ..Default::default() };
        ip.traffic_class = dscp << 2 | ecn;
        ether.ip(etherparse::IpHeaders::Ipv6(ip, Default::default())).udp(port, 4793).write(&mut out, &payload).unwrap();
    } else {
        let mut ip = etherparse::Ipv4Header::new(0, 64, etherparse::ip_number::UDP, [10, 0, 0, 1], [10, 0, 0, to as u8]).unwrap();
        ip.dscp = dscp.try_into().unwrap();
        ip.ecn = ecn.try_into().unwrap();
        ether.ip(etherparse::IpHeaders::Ipv4(ip, Default::default())).udp(port, 4793).write(&mut out, &payload).unwrap();
    }
    out
}

/// DSCP and ECN as etherparse reads them; the checksum of IPv4 is right.
fn class_of(frame: &[u8]) -> (u8, u8) {
    if frame[14] >> 4 == 4 {
        let header = Ipv4HeaderSlice::from_slice(&frame[14..]).unwrap().to_header();
        assert_eq!(header.calc_header_checksum(), header.header_checksum);
        assert_eq!(usize::from(header.total_len), frame.len() - 14);
        return (header.dscp.value(), header.ecn.value());
    }
    let header = Ipv6HeaderSlice::from_slice(&frame[14..]).unwrap();
    assert_eq!(usize::from(header.payload_length()), frame.len() - 14 - 40);
    (header.traffic_class() >> 2, header.traffic_class() & 3)
}

#[test]
fn a_frame_takes_the_time_of_its_path() {
    let mut fabric = fabric(Config { latencies: vec![500], ..Config::default() }, 1);
    let frame = udp(false, 1, 0, 2, 7, 104);
    fabric.send(10, 0, frame.clone());
    // 146 bytes and 24 of preamble, gap and FCS are 3 ticks of 64 bytes, on the path and on the last link.
    assert_eq!(fabric.advance(515), []);
    assert_eq!(fabric.advance(516), [Delivery { time: 516, node: 1, frame }]);
    assert_eq!(fabric.next(), None);
}

#[test]
fn the_five_tuple_chooses_the_path() {
    let fabric = fabric(Config { latencies: vec![1; 8], ..Config::default() }, 3);
    for v6 in [false, true] {
        let paths: BTreeSet<_> = (0..200).filter_map(|port| fabric.path_of(&udp(v6, 1, 0, 2, port, 10))).collect();
        assert_eq!(paths.len(), 8);
        let lengths: BTreeSet<_> = (0..50).map(|bytes| fabric.path_of(&udp(v6, 1, 0, 2, 5, bytes))).collect();
        assert_eq!(lengths.len(), 1, "length is not part of the flow");
    }
    // Native carriage: the entropy value stands where ports do.
    let native = |entropy: u16, rest: u8| {
        let mut frame = udp(false, 1, 0, 2, entropy, 10);
        frame[14 + 9] = 253;
        frame[14 + 20 + 2] = rest;
        fabric.path_of(&frame)
    };
    assert!((0..200).map(|entropy| native(entropy, 0)).collect::<BTreeSet<_>>().len() == 8);
    assert_eq!(native(5, 0), native(5, 1));
}

#[test]
fn full_queues_mark_and_trim_and_drop() {
    for v6 in [false, true] {
        let queue = Limits { mark: 2000, trim: 5000, drop: 6000 };
        let mut fabric = fabric(Config { path_rate: 1, path_queue: queue, trimming: Some(TRIMMING), ..Config::default() }, 1);
        for port in 0..20 {
            fabric.send(0, 0, udp(v6, 1, TRIMMING.trimmable, 2, port, 1000));
        }
        let arrived = fabric.advance(1_000_000);
        let full: Vec<_> = arrived.iter().filter(|d| d.frame.len() > 1000).map(|d| class_of(&d.frame)).collect();
        let cut: Vec<_> = arrived.iter().filter(|d| d.frame.len() < 100).collect();
        assert_eq!((full[0], full[4]), ((8, 2), (8, 3)), "those that found a queue are marked");
        assert_eq!(cut.len() + full.len(), 20, "nothing is dropped while trimmed frames have room");
        assert!(cut.len() > 10 && cut.iter().all(|d| d.frame.len() == 14 + if v6 { 40 } else { 20 } + 24));
        assert!(cut.iter().all(|d| class_of(&d.frame).0 == TRIMMING.trimmed));
        assert_eq!(fabric.counters.trimmed as usize, cut.len());
        // Urgent frames pass those that wait.
        let first = arrived.iter().position(|d| d.frame.len() < 100).unwrap();
        assert!(first <= 1, "a trimmed frame waits behind {first} whole ones");
    }
}

#[test]
fn the_last_hop_trims_with_a_number_of_its_own() {
    let mut fabric = fabric(Config { nodes: 3, latencies: vec![10; 4], port_rate: 1, port_queue: Limits { mark: 0, trim: 3000, drop: 9000 }, trimming: Some(TRIMMING), ..Config::default() }, 1);
    for port in 0..40 {
        fabric.send(0, 0, udp(false, 1, TRIMMING.trimmable, 2, port, 1000));
        fabric.send(0, 2, udp(false, 1, 0, 0, port, 1000));
    }
    let arrived = fabric.advance(1_000_000);
    assert!(fabric.counters.trimmed_last > 5 && fabric.counters.trimmed == 0);
    assert!(fabric.counters.dropped > 5, "what may not be trimmed is dropped");
    let trimmed = arrived.iter().filter(|d| class_of(&d.frame).0 == TRIMMING.trimmed_last);
    assert_eq!(trimmed.count() as u64, fabric.counters.trimmed_last);
    assert!(arrived.iter().all(|d| class_of(&d.frame) != (0, 3)), "what does not understand marks is not marked");
}

#[test]
fn a_path_that_fails_loses_until_it_is_withdrawn() {
    let mut fabric = fabric(Config { latencies: vec![10; 2], ..Config::default() }, 1);
    let frames: Vec<_> = (0..40).map(|port| udp(false, 1, 0, 2, port, 10)).collect();
    let on_one = frames.iter().filter(|f| fabric.path_of(f) == Some(1)).count();
    let arrive = |fabric: &mut Fabric, at: u64| {
        for frame in &frames {
            fabric.send(at, 0, frame.clone());
        }
        fabric.advance(at + 10_000).len()
    };
    assert!(on_one > 5 && on_one < 35);
    assert_eq!(arrive(&mut fabric, 0), 40);
    fabric.cut(1);
    assert_eq!(arrive(&mut fabric, 20_000), 40 - on_one);
    fabric.withdraw(1);
    assert_eq!(arrive(&mut fabric, 40_000), 40);
    fabric.restore(1);
    assert_eq!(arrive(&mut fabric, 60_000), 40);
    assert_eq!(fabric.counters.cut as usize, on_one);
}

#[test]
fn faults_are_as_frequent_as_they_are_to_be() {
    let faults = Faults { loss: 100_000, duplicate: 50_000, corrupt: 20_000 };
    let mut fabric = fabric(Config { latencies: vec![10; 4], faults, ..Config::default() }, 9);
    let frame = udp(false, 1, 0, 2, 1, 100);
    let mut wrong = 0;
    for n in 0..20_000 {
        fabric.send(n * 100, 0, frame.clone());
        wrong += fabric.advance(n * 100 + 99).iter().filter(|d| d.frame != frame).count();
    }
    let c = fabric.counters;
    assert!((1800..2200).contains(&c.lost) && (800..1050).contains(&c.copied) && (280..440).contains(&c.corrupted), "{c:?}");
    assert!(wrong as u64 <= c.corrupted && wrong as u64 + 3 > c.corrupted);
}

proptest! {
    /// Every frame is in one counter; equal seeds give equal runs; random bytes are no reason to stop.
    #[test]
    fn frames_are_conserved(seed in any::<u64>(), frames in prop::collection::vec((0..4usize, 0..5usize, any::<u16>(), 0..1500usize, any::<bool>(), prop::option::of(any::<[u8; 40]>())), 1..60)) {
        let queue = Limits { mark: 500, trim: 1500, drop: 2500 };
        let faults = Faults { loss: 50_000, duplicate: 100_000, corrupt: 100_000 };
        let config = Config { nodes: 4, latencies: vec![5, 50, 500], path_rate: 8, port_rate: 4, path_queue: queue, port_queue: queue, trimming: Some(TRIMMING), faults, ..Config::default() };
        let run = || {
            let mut fabric = fabric(config.clone(), seed);
            let mut arrived = Vec::new();
            for (n, (from, to, port, bytes, v6, noise)) in frames.iter().enumerate() {
                let mut frame = udp(*v6, *to, [0, 8, 46][*port as usize % 3], 2, *port, *bytes);
                if let Some(noise) = noise {
                    frame.truncate(usize::from(noise[0]));
                    let end = frame.len().min(40);
                    frame[end.min(6)..end].copy_from_slice(&noise[end.min(6)..end]);
                }
                fabric.send(n as u64, *from, frame);
                arrived.extend(fabric.advance(n as u64));
            }
            let c = fabric.counters;
            assert_eq!(c.sent + c.copied, c.delivered + c.lost + c.cut + c.dropped + c.unknown + fabric.on_the_way() as u64);
            arrived.extend(fabric.advance(1_000_000));
            assert_eq!(fabric.on_the_way(), 0);
            (arrived, fabric.counters)
        };
        let (arrived, c) = run();
        prop_assert_eq!(c.sent + c.copied, c.delivered + c.lost + c.cut + c.dropped + c.unknown);
        prop_assert_eq!(c.delivered as usize, arrived.len());
        prop_assert!(arrived.windows(2).all(|pair| pair[0].time <= pair[1].time));
        prop_assert_eq!(run(), (arrived, c));
    }
}
