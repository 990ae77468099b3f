//! The register window: the status and its order, features, enabling, resets, generations, vectors.
use super::guest::*;
use crate::virtio::{Device, Offer, Step};
use ferric_abi::codes::VirtioCause::{BadEnable, BadFeatures, BadNotify, BadState, RxDown};
use ferric_abi::virtio::net::{control, link};
use ferric_abi::virtio::{feature, isr, status, window, CommonConfig, NO_VECTOR};

#[test]
fn the_status_is_reached_in_order() {
    let fresh = || {
        let mut guest = Guest::found(offer(), BASE);
        guest.device = Device::new(offer());
        guest
    };
    // Out of order, skipped, of bits that there are not, taken back.
    for (steps, reached) in [(&[2][..], 0), (&[1, 9], 1), (&[1, 3, 7], 3), (&[1, 3, 15], 3), (&[1, 3, 1], 3), (&[16], 0), (&[1, 128], 1)] {
        let mut guest = fresh();
        steps.iter().for_each(|step| guest.set("device_status", *step));
        assert_eq!((guest.register("device_status"), guest.count(BadState)), (reached, u64::from(*steps != [1, 3, 15])), "{steps:?}");
    }
    // FAILED may be said at any time; what the driver reads back it may write back.
    let mut guest = Guest::new(0);
    guest.set("device_status", 15 | 64 | 128);
    assert_eq!((guest.register("device_status"), guest.count(BadState)), (15 | 128, 0));
}

#[test]
fn features_that_are_not_taken() {
    let features = |mask: u64| Guest::found(offer(), mask).register("device_status");
    assert_eq!(features(BASE), 11);
    assert_eq!(features(BASE | Offer::KNOWN & !feature::MQ), 11);
    assert_eq!(features(feature::VERSION_1), 3);
    assert_eq!(features(feature::ACCESS_PLATFORM), 3);
    // Not offered; without what it needs.
    assert_eq!(features(BASE | feature::MQ | feature::CTRL_VQ), 3);
    assert_eq!(features(BASE | 1 << 62), 3);
    assert_eq!(features(BASE | feature::CTRL_RX), 3);
    assert_eq!(features(BASE | feature::HOST_TSO4), 3);
    assert_eq!(features(BASE | feature::CSUM | feature::HOST_ECN), 3);
    assert_eq!(features(BASE | feature::CSUM | feature::HOST_TSO6 | feature::HOST_ECN), 11);
    // The driver may think again, and may read the device configuration meanwhile (spec 2.5).
    let mut guest = Guest::found(offer(), feature::VERSION_1);
    assert_eq!(guest.count(BadFeatures), 1);
    let mut mtu = [0; 2];
    guest.device.read(window::DEVICE + 10, &mut mtu);
    assert_eq!(u16::from_le_bytes(mtu), 1500);
    guest.set("driver_feature", BASE >> 32);
    guest.set("device_status", 11);
    assert_eq!(guest.register("device_status"), 11);
    // Then they are settled.
    guest.set("driver_feature", 0);
    assert_eq!((guest.count(BadState), guest.device.features()), (1, BASE));
}

#[test]
fn features_from_64_on_read_zero_and_must_not_be_set() {
    let mut guest = Guest::found(offer(), 0);
    for select in 0..5 {
        guest.set("device_feature_select", select);
        let wanted = if select < 2 { (Offer::KNOWN & !feature::MQ) >> (32 * select) & 0xffff_ffff } else { 0 };
        assert_eq!(guest.register("device_feature"), wanted);
    }
    guest.set("driver_feature_select", 1);
    guest.set("driver_feature", BASE >> 32);
    guest.set("driver_feature_select", 2);
    guest.set("driver_feature", 1);
    assert_eq!(guest.register("driver_feature"), 1);
    guest.set("device_status", 11);
    assert_eq!(guest.register("device_status"), 3);
    guest.set("driver_feature", 0);
    guest.set("device_status", 11);
    assert_eq!(guest.register("device_status"), 11);
}

#[test]
fn rings_that_cannot_be() {
    let [desc, driver, device] = areas(TRANSMIT);
    let top = u64::MAX;
    let cases = [
        (0, SIZE, [desc + 8, driver, device]),
        (0, SIZE, [desc, driver + 1, device]),
        (0, SIZE, [desc, driver, device + 2]),
        (0, 0, [desc, driver, device]),
        (0, SIZE * 2, [desc, driver, device]),
        (0, 6, [desc, driver, device]),
        (0, SIZE, [top - 15, driver, device]),
        (0, SIZE, [desc, top - 15, device]),
        (0, SIZE, [desc, driver, top - 31]),
        (feature::RING_PACKED, SIZE, [desc + 8, driver, device]),
        (feature::RING_PACKED, SIZE, [desc, driver + 2, device]),
        (feature::RING_PACKED, SIZE, [desc, driver, device + 2]),
        (feature::RING_PACKED, 0, [desc, driver, device]),
        (feature::RING_PACKED, SIZE + 1, [desc, driver, device]),
        (feature::RING_PACKED, SIZE, [desc, driver, top - 3]),
    ];
    for (features, size, areas) in cases {
        let mut guest = Guest::found(offer(), BASE | features);
        guest.describe(TRANSMIT, size, areas);
        guest.set("queue_enable", 1);
        assert_eq!((guest.register("queue_enable"), guest.count(BadEnable)), (0, 1), "{size} {areas:x?}");
        // The next try may be a good one; packed rings need no power of two.
        guest.describe(TRANSMIT, if features == 0 { 4 } else { 7 }, [desc, driver, device]);
        guest.set("queue_enable", 1);
        assert_eq!((guest.register("queue_enable"), guest.count(BadEnable)), (1, 1));
    }
    // A queue without use: there is no control queue.
    let mut guest = Guest::found(offer(), BASE);
    guest.describe(CONTROL, SIZE, areas(CONTROL));
    guest.set("queue_enable", 1);
    assert_eq!((guest.register("queue_enable"), guest.count(BadEnable)), (0, 1));
}

#[test]
fn queues_are_enabled_when_they_may() {
    let mut guest = Guest::found(offer(), BASE);
    guest.describe(TRANSMIT, SIZE, areas(TRANSMIT));
    guest.set("queue_enable", 0);
    assert_eq!(guest.count(BadState), 1);
    guest.set("queue_enable", 1);
    // What is enabled does not change.
    guest.set("queue_size", 4);
    guest.set("queue_desc", 0);
    guest.set("queue_enable", 1);
    assert_eq!((guest.register("queue_size"), guest.register("queue_desc"), guest.count(BadState)), (SIZE.into(), areas(TRANSMIT)[0], 5));
    // Nor is there anything that can be reset alone.
    guest.set("queue_reset", 1);
    assert_eq!((guest.register("queue_reset"), guest.register("queue_enable"), guest.count(BadState)), (0, 1, 6));
    guest.set("device_status", 15);
    guest.set("queue_select", RECEIVE.into());
    guest.set("queue_enable", 1);
    assert_eq!((guest.register("queue_enable"), guest.count(BadState)), (0, 7));
    // A queue that there is not.
    guest.set("queue_select", 3);
    assert_eq!((guest.register("queue_size"), guest.register("queue_desc")), (0, 0));
    guest.set("queue_enable", 1);
    assert_eq!(guest.count(BadState), 8);
    // Before the features are settled.
    let mut guest = Guest::found(offer(), 0);
    guest.describe(TRANSMIT, SIZE, areas(TRANSMIT));
    guest.set("queue_enable", 1);
    assert_eq!((guest.register("queue_enable"), guest.count(BadState)), (0, 1));
}

#[test]
fn registers_that_are_not_written() {
    let mut guest = Guest::new(0);
    let before = guest.count(BadState);
    for (n, name) in ["device_feature", "num_queues", "config_generation", "queue_notify_off", "queue_notif_config_data", "admin_queue_index", "admin_queue_num"].into_iter().enumerate() {
        guest.set(name, 0xffff_ffff);
        assert_eq!(guest.count(BadState), before + n as u64 + 1, "{name}");
    }
    // Other widths than the register's, other places, the MAC address in the device configuration.
    for (at, bytes) in [(window::COMMON, 2), (window::COMMON + 20, 4), (window::COMMON + 22, 1), (window::COMMON + 0x100, 4), (window::DEVICE, 1), (window::ISR, 1), (0x1000, 4)] {
        let before = guest.count(BadState);
        guest.device.write(at, &[0xff; 4][..bytes]);
        assert_eq!(guest.count(BadState), before + 1, "{at:#x}");
    }
    guest.assert_works();
}

#[test]
fn halves_of_addresses_stand_alone() {
    let mut guest = Guest::found(offer(), BASE);
    let at = window::COMMON + CommonConfig::LAYOUT.field("queue_driver").unwrap().offset as u32 / 8;
    guest.device.write(at + 4, &0x1234_5678u32.to_le_bytes());
    assert_eq!(guest.register("queue_driver"), 0x1234_5678_0000_0000);
    guest.device.write(at, &0x9abc_def0u32.to_le_bytes());
    assert_eq!(guest.register("queue_driver"), 0x1234_5678_9abc_def0);
    guest.device.write(at + 4, &[0; 4]);
    assert_eq!(guest.register("queue_driver"), 0x9abc_def0);
}

#[test]
fn vectors_that_there_are_not() {
    let mut guest = Guest::found(offer(), BASE);
    for name in ["config_msix_vector", "queue_msix_vector"] {
        assert_eq!(guest.register(name), NO_VECTOR.into());
        guest.set(name, 3);
        assert_eq!(guest.register(name), 3);
        guest.set(name, 4);
        assert_eq!(guest.register(name), NO_VECTOR.into());
    }
    // Then there is no interrupt, but the status says so; reading clears it.
    guest.enable(TRANSMIT);
    guest.set("queue_msix_vector", 4);
    guest.set("device_status", 15);
    guest.publish(TRANSMIT, &[d(0, 72, 0)]);
    guest.run(TRANSMIT);
    assert_eq!(guest.device.interrupts(), []);
    for wanted in [isr::QUEUE, 0] {
        let mut byte = [0];
        guest.device.read(window::ISR, &mut byte);
        assert_eq!(byte, [wanted]);
    }
    assert_eq!(guest.count(BadState), 0);
}

#[test]
fn generations_of_the_configuration() {
    let mut guest = Guest::new(feature::CTRL_MAC_ADDR | feature::CTRL_RX);
    guest.set("config_msix_vector", 3);
    let read = |guest: &mut Guest| {
        let mut bytes = [0; 8];
        guest.device.read(window::DEVICE, &mut bytes);
        bytes
    };
    let generation = guest.register("config_generation");
    // Nobody has seen the old one.
    guest.device.set_link(link::UP);
    guest.device.set_link(0);
    assert_eq!((guest.register("config_generation"), guest.device.interrupts()), (generation, vec![3, 3]));
    // The same once more is no change.
    guest.device.set_link(0);
    assert_eq!(guest.device.interrupts(), []);
    read(&mut guest);
    (0..300).for_each(|n| guest.device.set_link(n % 2 + 1));
    assert_eq!(guest.register("config_generation"), generation + 1);
    // The MAC address that the control queue has set is in the configuration before the command comes back, and is not announced.
    read(&mut guest);
    guest.device.interrupts();
    guest.ram.put(BUFFERS, &[control::MAC, control::MAC_ADDR_SET, 2, 0, 0, 0, 0, 9]);
    guest.publish(CONTROL, &[d(0, 8, NEXT), d(0x10, 1, WRITE)]);
    guest.run(CONTROL);
    assert_eq!(read(&mut guest)[..6], [2, 0, 0, 0, 0, 9]);
    assert_eq!(guest.ram.get(BUFFERS + 0x10), [control::OK]);
    assert_eq!((guest.register("config_generation"), guest.device.interrupts()), (generation + 2, vec![CONTROL]));
}

#[test]
fn a_reset_waits_for_what_is_out() {
    let mut guest = Guest::new(feature::RING_RESET);
    guest.publish(TRANSMIT, &[d(0, 72, 0)]);
    guest.publish(RECEIVE, &[d(0x100, 100, WRITE)]);
    guest.run(RECEIVE);
    guest.notify(TRANSMIT);
    guest.step(TRANSMIT);
    assert!(matches!(guest.step(TRANSMIT), Step::Frame(_)));
    guest.set("device_status", 0);
    // The old status until it is done; whatever is written meanwhile is ignored.
    assert_eq!(guest.register("device_status"), 15);
    guest.set("device_status", 1);
    guest.set("queue_select", 1);
    guest.notify(TRANSMIT);
    assert_eq!((guest.count(BadState), guest.count(BadNotify)), (2, 1));
    assert_eq!(guest.device.receive(&mut guest.ram, 0, &[0; 60], false), Err(RxDown));
    let ticket = guest.out.pop().unwrap();
    guest.ram.writes.clear();
    guest.device.sent(ticket);
    assert_eq!((guest.register("device_status"), guest.device.features()), (0, 0));
    assert_eq!(guest.device.balance(TRANSMIT), None);
    assert_eq!((guest.register("queue_size"), guest.register("queue_desc")), (SIZE.into(), 0));
    // The ticket is of an earlier life, and means nothing any more.
    guest.device.sent(ticket);
    assert!(guest.ram.writes.is_empty());
    assert_eq!(guest.register("device_status"), 0);
}

#[test]
fn a_queue_reset_waits_for_its_own_frames_only() {
    for format in [0, feature::RING_PACKED] {
        let mut guest = Guest::new(feature::RING_RESET | format);
        guest.publish(TRANSMIT, &[d(0, 72, 0)]);
        guest.notify(TRANSMIT);
        guest.step(TRANSMIT);
        guest.step(TRANSMIT);
        guest.publish(RECEIVE, &[d(0x100, 100, WRITE)]);
        guest.run(RECEIVE);
        // The receive queue has nothing out.
        guest.set("queue_select", RECEIVE.into());
        guest.set("queue_reset", 1);
        assert_eq!((guest.register("queue_reset"), guest.register("queue_enable")), (0, 0));
        guest.set("queue_select", TRANSMIT.into());
        guest.set("queue_reset", 1);
        assert_eq!((guest.register("queue_reset"), guest.register("queue_enable"), guest.register("queue_msix_vector")), (1, 0, NO_VECTOR.into()));
        guest.set("queue_enable", 1);
        assert_eq!((guest.register("queue_enable"), guest.count(BadState)), (0, 1));
        let ticket = guest.out.pop().unwrap();
        guest.device.sent(ticket);
        assert_eq!(guest.register("queue_reset"), 0);
        // Both begin anew, at the ring's beginning.
        for n in [RECEIVE, TRANSMIT] {
            let base = areas(n)[0];
            guest.ram.regions.iter_mut().find(|(at, _)| *at == base).unwrap().1.fill(0);
            guest.enable(n);
        }
        guest.assert_works();
        assert_eq!(guest.used(TRANSMIT, 1), [(0, 0)]);
        assert_eq!(guest.count(BadState), 1);
        assert_eq!(guest.device.status(), 15 & !status::NEEDS_RESET);
    }
}
