//! A virtio network function of a twin, served over vfio-user, with the golden model in its place: `cargo test -p ferric-sim --no-default-features --test virtio`; without that option also with the gateware's
//! engine in it (`seats.rs`). A guest's own Linux: `./scripts/vm-test virtio`.
mod guest;
mod packed;
mod seats;
mod spread;

use ferric_abi::virtio::net::{control, gso};
use ferric_abi::virtio::{feature, isr, status, window, NetHeader, NotfCoal};
use ferric_abi::{csr, pci};
use ferric_driver::vfio_user::VfioUserDevice;
use ferric_model::net::sums;
use ferric_model::virtio::coalesce;
use ferric_sim::pci::virtio::ACCESS;
use ferric_sim::virtio::FunctionConfig;
use guest::*;
use std::time::{Duration, Instant};

/// A TCP segment of the guest's flow to 10.0.0.1 with `payload` bytes, the sum of the pseudo header in its checksum's place.
fn tcp(dst: [u8; 6], payload: usize) -> Vec<u8> {
    let mut frame = [&dst[..], &[2, 0, 0, 0, 0, 9], &[8, 0]].concat();
    let total = (40 + payload) as u16;
    frame.extend([0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1]);
    let header = sums::finish(sums::sum(0, &frame[14..34]));
    frame[24..26].copy_from_slice(&header.to_be_bytes());
    frame.extend([0x30, 0x39, 0, 80, 0, 0, 0, 7, 0, 0, 0, 0, 0x50, 0x19, 1, 0, 0, 0, 0, 0]);
    frame.extend((0..payload).map(|n| n as u8));
    let pseudo = sums::fold(sums::pseudo(&[10, 0, 0, 2], &[10, 0, 0, 1], 6, 20 + payload as u32)) as u16;
    frame[50..52].copy_from_slice(&pseudo.to_be_bytes());
    frame
}

/// The same with its checksum made.
fn whole(dst: [u8; 6], payload: usize) -> Vec<u8> {
    let mut frame = tcp(dst, payload);
    let sum = sums::finish(sums::sum(0, &frame[34..]));
    frame[50..52].copy_from_slice(&sum.to_be_bytes());
    frame
}

const PEER: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// What `vp_modern_probe` and `virtnet_probe` look at, in their order and widths.
#[test]
fn the_function_as_linux_finds_it() {
    let served = Served::new();
    let mut guest = Guest::connect(&served);
    assert_eq!(guest.config(0), [0xf4, 0x1a, 0x41, 0x10]);
    assert_eq!((guest.client.region_size(0).unwrap(), guest.client.region_size(2).unwrap()), (0x1_0000, 0x2000));
    assert_eq!(guest.client.irq_count(2).unwrap(), u32::from(pci::MSIX_VECTORS));
    // Features, word by word.
    let mut offered = 0;
    for word in 0..4 {
        guest.set("device_feature_select", word);
        offered |= u128::from(guest.register("device_feature")) << (32 * word);
    }
    assert_eq!(offered, u128::from(FunctionConfig::new(0, 4).features()));
    assert_eq!(offered & u128::from(served.taken), u128::from(served.taken));
    // The MAC address byte by byte, the rest as it is wide; the queues.
    let mac: Vec<u8> = (0..6).map(|n| guest.read::<1>(window::DEVICE + n)[0]).collect();
    assert_eq!(mac, served.mac);
    assert_eq!((guest.read(window::DEVICE + 6), guest.read(window::DEVICE + 10)), ([1, 0], 9000u16.to_le_bytes()));
    assert_eq!(guest.register("num_queues"), 3);
    for queue in 0..4 {
        guest.set("queue_select", queue);
        assert_eq!(guest.register("queue_size"), if queue < 3 { 256 } else { 0 });
    }
    // A vector that there is, one that there is not.
    guest.set("config_msix_vector", 0);
    assert_eq!(guest.register("config_msix_vector"), 0);
    guest.set("config_msix_vector", u64::from(pci::MSIX_VECTORS));
    assert_eq!(guest.register("config_msix_vector"), 0xffff);
    // The way through configuration space (spec 4.1.4.9), which firmware takes.
    let through = |guest: &mut Guest, offset: u32, length: u8| {
        guest.client.write(7, ACCESS as u64 + 8, &offset.to_le_bytes(), false).unwrap();
        guest.client.write(7, ACCESS as u64 + 12, &[length, 0, 0, 0], false).unwrap();
    };
    through(&mut guest, window::COMMON + 20, 1);
    guest.client.write(7, ACCESS as u64 + 16, &[status::ACKNOWLEDGE], false).unwrap();
    assert_eq!((guest.register("device_status"), guest.config(ACCESS as u64 + 16)), (1, [1]));
    through(&mut guest, window::DEVICE, 4);
    assert_eq!(guest.config::<4>(ACCESS as u64 + 16), served.mac[..4]);
    // Memory space off: nobody answers. Its native neighbour does.
    guest.client.write(7, 4, &[0, 0], false).unwrap();
    assert_eq!(guest.read(window::COMMON), [0xff; 4]);
    assert_eq!(VfioUserDevice::open(&served.native).unwrap().read32(csr::MAGIC), csr::MAGIC_VALUE);
    assert!(VfioUserDevice::open(&served.socket).is_err(), "a virtio function is no native one");
}

#[test]
fn what_is_not_offered_takes_what_needs_it_along() {
    let without = |without| FunctionConfig { without, pairs: 2, ..FunctionConfig::new(0, 4) }.features();
    assert_ne!(without(0) & feature::MQ, 0);
    assert_eq!(without(feature::CTRL_VQ) & (feature::CTRL_RX | feature::CTRL_VLAN | feature::MQ | feature::RSS | feature::CTRL_MAC_ADDR), 0);
    assert_eq!(without(feature::CSUM) & (feature::HOST_TSO4 | feature::HOST_USO | feature::HOST_ECN), 0);
    assert_eq!(FunctionConfig::new(0, 4).features() & (feature::MQ | feature::RSS), 0, "one pair");
}

#[test]
fn frames_leave() {
    let served = Served::new();
    let mut guest = Guest::running(&served);
    // As it is; with a checksum; in segments.
    guest.transmit(NetHeader::default(), &[7; 60]);
    assert_eq!(served.received(), [7; 60]);
    let ordered = NetHeader::default().with_needs_csum(true).with_csum_start(34).with_csum_offset(16);
    guest.transmit(ordered, &tcp(PEER, 100));
    assert_eq!(served.received(), whole(PEER, 100));
    guest.transmit(ordered.with_gso(gso::TCPV4).with_gso_size(1000), &tcp(PEER, 2500));
    let segments: Vec<Vec<u8>> = (0..3).map(|_| served.received()).collect();
    let payload: Vec<u8> = segments.iter().flat_map(|s| s[54..].to_vec()).collect();
    assert_eq!(payload, tcp(PEER, 2500)[54..]);
    for (n, s) in segments.iter().enumerate() {
        let sequence = u32::from_be_bytes([s[38], s[39], s[40], s[41]]);
        assert_eq!((sequence, s[19]), (7 + 1000 * n as u32, 1 + n as u8), "sequence and IPv4 identification");
        // FIN and PSH are the last one's.
        assert_eq!(s[47], if n == 2 { 0x19 } else { 0x10 });
        assert!(ferric_model::virtio::verdict::is_verified(s), "segment {n}");
    }
    // What the port does not carry does not leave; its chain comes back all the same.
    guest.transmit(NetHeader::default(), &[6; 9019]);
    guest.transmit(NetHeader::default(), &[7; 9018]);
    assert_eq!(served.received(), [7; 9018]);
    assert_eq!([0, 1, 2, 3, 4].map(|n| guest.used(TRANSMIT) == (n, 0)), [true; 5]);
    served.assert_counts(|c| (c.left, c.oversize), (6, 1));
    assert!(guest.interrupts(TRANSMIT) > 0);
    assert_eq!(guest.read::<1>(window::ISR), [isr::QUEUE]);
    assert_eq!(guest.read::<1>(window::ISR), [0], "reading has cleared it");
    served.assert_conserved();
}

#[test]
fn frames_come_and_those_of_strangers_do_not() {
    let served = Served::new();
    let mut guest = Guest::running(&served);
    guest.offer(16, 2048);
    served.send(&whole(served.mac, 500));
    let (header, frame) = guest.received();
    assert_eq!((header, frame), (NetHeader::default().with_num_buffers(1).with_data_valid(true), whole(served.mac, 500)));
    assert!(guest.interrupts(RECEIVE) > 0);
    // A wrong checksum is the driver's to find.
    let mut wrong = whole(served.mac, 500);
    wrong[100] ^= 1;
    served.send(&wrong);
    assert_eq!(guest.received(), (NetHeader::default().with_num_buffers(1), wrong));
    // Somebody else's, a multicast that nobody has asked for, then a broadcast.
    let (stranger, multicast, broadcast) = ([2, 0, 0, 0, 0, 77], [0x33, 0x33, 0, 0, 0, 5], [0xff; 6]);
    for mac in [stranger, multicast, broadcast] {
        served.send(&whole(mac, 60));
    }
    assert_eq!(guest.received().1, whole(broadcast, 60));
    // The control queue asks for the multicast, then for everything.
    let table = [&[control::MAC, control::MAC_TABLE_SET, 0, 0, 0, 0, 1, 0, 0, 0][..], &multicast].concat();
    assert_eq!((guest.command(&table), guest.command(&table[..15])), (control::OK, control::ERR));
    for mac in [stranger, multicast] {
        served.send(&whole(mac, 60));
    }
    assert_eq!(guest.received().1, whole(multicast, 60));
    assert_eq!(guest.command(&[control::RX, control::RX_PROMISC, 1]), control::OK);
    served.send(&whole(stranger, 60));
    assert_eq!(guest.received().1, whole(stranger, 60));
    served.assert_arrived(8);
    served.assert_counts(|c| (c.device.filtered, c.device.delivered), (3, 5));
}

/// Three frames of ten for which the driver wants to wait: it is told of them when the time has passed, although nothing else happens then.
#[test]
fn notifications_are_held_back_for_a_time() {
    let served = Served::new();
    let mut guest = Guest::connect(&served);
    guest.begin(served.taken | feature::NOTF_COAL);
    let held = Duration::from_micros(coalesce::LONGEST.into());
    let limits = NotfCoal::default().with_max_packets(10).with_max_usecs(coalesce::LONGEST);
    assert_eq!(guest.command(&[&[control::NOTF_COAL, control::NOTF_COAL_RX_SET][..], &limits.0].concat()), control::OK);
    guest.offer(16, 2048);
    let begun = Instant::now();
    (0..3).for_each(|_| served.send(&whole(served.mac, 500)));
    (0..3).for_each(|_| drop(guest.received()));
    assert_eq!(guest.interrupts(RECEIVE), 1);
    assert!(begun.elapsed() >= held);
    served.assert_arrived(3);
}
