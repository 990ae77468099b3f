//! Notifications that are held back: until there are so many packets, or for a time; never what is no packet, and never for longer than is allowed.
use super::guest::*;
use crate::virtio::coalesce::LONGEST;
use crate::virtio::Device;
use ferric_abi::codes::VirtioCause::BadCommand;
use ferric_abi::virtio::net::control;
use ferric_abi::virtio::{feature, NotfCoal};

const FORMATS: [u64; 2] = [0, feature::RING_PACKED];

/// A guest that asks for these limits, of packets and microseconds; what is answered.
fn ask(guest: &mut Guest, command: u8, packets: u32, usecs: u32) -> u8 {
    let limits = NotfCoal::default().with_max_packets(packets).with_max_usecs(usecs);
    guest.ram.put(BUFFERS + 0x2000, &[&[control::NOTF_COAL, command][..], &limits.0].concat());
    guest.ram.put(BUFFERS + 0x2100, &[0x55]);
    guest.publish(CONTROL, &[d(0x2000, 10, NEXT), d(0x2100, 1, WRITE)]);
    guest.run(CONTROL);
    assert_eq!(guest.device.interrupts(), [CONTROL], "an answer is told at once");
    let [answer] = guest.ram.get(BUFFERS + 0x2100);
    answer
}

/// A frame comes; how often the driver is told.
fn comes(guest: &mut Guest) -> usize {
    guest.publish(RECEIVE, &[d(0, 100, WRITE)]);
    guest.run(RECEIVE);
    guest.device.receive(&mut guest.ram, 0, &[7; 60], false).unwrap();
    guest.run(RECEIVE);
    told(guest, RECEIVE)
}

fn told(guest: &mut Guest, queue: u16) -> usize {
    let all = guest.device.interrupts();
    assert!(all.iter().all(|vector| *vector == queue));
    all.len()
}

#[test]
fn so_many_packets_or_so_long() {
    for format in FORMATS {
        let mut guest = Guest::new(format | feature::NOTF_COAL);
        assert_eq!(ask(&mut guest, control::NOTF_COAL_RX_SET, 3, 100), control::OK);
        assert_eq!([0; 7].map(|_| comes(&mut guest)), [0, 0, 1, 0, 0, 1, 0]);
        // What is used is visible all the time.
        assert_eq!(guest.used(RECEIVE, 1).len(), 7);
        assert!(guest.device.holds_back());
        guest.device.set_time(99);
        guest.run(RECEIVE);
        assert_eq!((told(&mut guest, RECEIVE), guest.device.holds_back()), (0, true));
        guest.device.set_time(100);
        assert!(!guest.device.holds_back());
        guest.run(RECEIVE);
        assert_eq!(told(&mut guest, RECEIVE), 1);
        // The time begins with the first packet, and does not go back.
        guest.device.set_time(150);
        assert_eq!(comes(&mut guest), 0);
        guest.device.set_time(249);
        assert_eq!(comes(&mut guest), 0);
        guest.device.set_time(0);
        assert!(guest.device.holds_back());
        guest.device.set_time(250);
        guest.run(RECEIVE);
        assert_eq!(told(&mut guest, RECEIVE), 1);
        // The other direction has limits of its own.
        guest.publish(TRANSMIT, &[d(0, 72, 0)]);
        guest.run(TRANSMIT);
        assert_eq!(told(&mut guest, TRANSMIT), 1);
        assert_eq!(ask(&mut guest, control::NOTF_COAL_TX_SET, 2, 100), control::OK);
        for told_now in [0, 1, 0] {
            guest.publish(TRANSMIT, &[d(0, 72, 0)]);
            guest.run(TRANSMIT);
            assert_eq!(told(&mut guest, TRANSMIT), told_now);
        }
        // Less than is held back already: the driver is told with the next step.
        assert_eq!(ask_quietly(&mut guest, 0, 0), control::OK);
        guest.run(TRANSMIT);
        assert_eq!(told(&mut guest, TRANSMIT), 1);
    }
}

/// The limits of transmit queues, while something is held back there.
fn ask_quietly(guest: &mut Guest, packets: u32, usecs: u32) -> u8 {
    assert!(guest.device.holds_back());
    ask(guest, control::NOTF_COAL_TX_SET, packets, usecs)
}

/// One of both limits that is zero: each packet is told.
#[test]
fn zero_is_none() {
    for (packets, usecs) in [(0, 100), (100, 0), (1, 100), (0, 0)] {
        let mut guest = Guest::new(feature::NOTF_COAL);
        assert_eq!(ask(&mut guest, control::NOTF_COAL_RX_SET, packets, usecs), control::OK);
        assert_eq!([0; 3].map(|_| comes(&mut guest)), [1; 3], "{packets} packets, {usecs} microseconds");
        assert!(!guest.device.holds_back());
    }
}

/// What is rejected is no packet: nobody waits for others behind it.
#[test]
fn rejects_are_told_at_once() {
    let mut guest = Guest::new(feature::NOTF_COAL);
    assert_eq!(ask(&mut guest, control::NOTF_COAL_RX_SET, 10, 100), control::OK);
    guest.publish(RECEIVE, &[d(0, 100, 0)]);
    guest.run(RECEIVE);
    assert_eq!(told(&mut guest, RECEIVE), 1);
}

#[test]
fn what_cannot_be_is_refused_and_resets_end_it() {
    let mut guest = Guest::new(0);
    assert_eq!(ask(&mut guest, control::NOTF_COAL_RX_SET, 3, 100), control::ERR, "not negotiated");
    let mut guest = Guest::new(feature::NOTF_COAL | feature::RING_RESET);
    assert_eq!(ask(&mut guest, control::NOTF_COAL_RX_SET, 3, LONGEST), control::OK);
    let modes = *guest.device.modes();
    // Too long, and commands that are not offered: those of single queues.
    for (command, usecs) in [(control::NOTF_COAL_RX_SET, LONGEST + 1), (control::NOTF_COAL_TX_SET, u32::MAX), (2, 1), (3, 1)] {
        assert_eq!(ask(&mut guest, command, 5, usecs), control::ERR);
    }
    guest.ram.put(BUFFERS + 0x2000, &[control::NOTF_COAL, control::NOTF_COAL_RX_SET, 1, 0, 0, 0, 0, 0, 0]);
    guest.publish(CONTROL, &[d(0x2000, 9, NEXT), d(0x2100, 1, WRITE)]);
    guest.run(CONTROL);
    guest.device.interrupts();
    assert_eq!((*guest.device.modes(), guest.count(BadCommand)), (modes, 5), "cut");
    // A queue that is reset in the middle has nothing to tell; the limits stay.
    assert_eq!(comes(&mut guest), 0);
    assert!(guest.device.holds_back());
    guest.set("queue_select", RECEIVE.into());
    guest.set("queue_reset", 1);
    guest.device.set_time(10_000_000);
    assert!(!guest.device.holds_back());
    guest.enable(RECEIVE);
    assert_eq!([0; 3].map(|_| comes(&mut guest)), [0, 0, 1]);
    assert_eq!(comes(&mut guest), 0);
    guest.set("device_status", 0);
    assert_eq!((guest.device.holds_back(), *guest.device.modes()), (false, *Device::new(offer()).modes()));
    guest.begin(feature::NOTF_COAL);
    assert_eq!(comes(&mut guest), 1);
}
