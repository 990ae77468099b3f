//! Rings that somebody else runs: what the borrower and the driver see of each other.
use super::guest::*;
use crate::virtio::{Device, Step};
use ferric_abi::codes::VirtioCause::{AvailJump, RxNoBuffer};
use ferric_abi::virtio::{feature, isr, status, window};

/// A guest whose rings have been lent.
fn lent() -> (Guest, [crate::virtio::Lent; 2]) {
    let mut guest = Guest::new(feature::RING_RESET);
    let rings = [RECEIVE, TRANSMIT].map(|n| guest.device.lend(n).expect("a ring"));
    (guest, rings)
}

#[test]
fn a_ring_is_lent_once_and_nothing_else_takes_from_it() {
    let mut guest = Guest::found(offer(), BASE);
    guest.describe(TRANSMIT, SIZE, areas(TRANSMIT));
    guest.set("queue_enable", 1);
    assert_eq!(guest.device.lend(TRANSMIT), None, "before DRIVER_OK");
    let (mut guest, [receive, transmit]) = lent();
    assert_eq!((guest.device.lend(TRANSMIT), guest.device.lend(CONTROL), guest.device.lend(7)), (None, None, None));
    assert!(receive.receive && !transmit.receive);
    assert_eq!((transmit.ring.descriptor(0), transmit.ring.size()), (areas(TRANSMIT)[0], SIZE.into()));
    guest.publish(TRANSMIT, &[d(0, 100, 0)]);
    guest.notify(TRANSMIT);
    assert_eq!(guest.step(TRANSMIT), Step::Idle);
    assert_eq!([0; 2].map(|_| guest.device.take_notification(TRANSMIT)), [true, false]);
    guest.device.chains_used(TRANSMIT);
    let mut seen = [0];
    guest.device.read(window::ISR, &mut seen);
    assert_eq!(seen, [isr::QUEUE]);
}

#[test]
fn resets_wait_for_rings_that_are_out() {
    let (mut guest, [receive, transmit]) = lent();
    let free = |device: &mut Device| [receive, transmit].map(|ring| device.may_run(ring.ticket));
    assert_eq!(free(&mut guest.device), [true, true]);
    guest.set("queue_select", TRANSMIT.into());
    guest.set("queue_reset", 1);
    assert_eq!((free(&mut guest.device), guest.register("queue_reset")), ([true, false], 1));
    guest.device.take_back(transmit.ticket);
    assert_eq!(guest.register("queue_reset"), 0);
    guest.describe(TRANSMIT, SIZE, areas(TRANSMIT));
    guest.set("queue_enable", 1);
    let again = guest.device.lend(TRANSMIT).expect("a ring");
    assert!(!guest.device.may_run(transmit.ticket) && guest.device.may_run(again.ticket));
    guest.set("device_status", 0);
    assert!(guest.device.is_resetting() && guest.register("device_status") != 0);
    guest.device.take_back(receive.ticket);
    assert!(guest.device.is_resetting());
    guest.device.take_back(again.ticket);
    assert_eq!((guest.device.is_resetting(), guest.register("device_status")), (false, 0));
}

#[test]
fn what_the_borrower_tells_is_counted_and_a_lost_ring_ends_the_work() {
    let (mut guest, [receive, transmit]) = lent();
    assert_eq!(guest.device.receiving(), 1);
    guest.device.admitted();
    guest.device.rejected(RECEIVE, RxNoBuffer);
    guest.device.admitted();
    guest.device.delivered();
    guest.device.filtered();
    let counters = guest.device.counters();
    assert_eq!((counters.filtered, counters.frames, counters.delivered, counters.of(RxNoBuffer)), (1, 2, 1, 1));
    guest.device.rejected(TRANSMIT, AvailJump);
    assert_eq!((guest.count(AvailJump), guest.device.status() & status::NEEDS_RESET), (1, status::NEEDS_RESET));
    assert!(!guest.device.may_run(receive.ticket) && guest.device.lend(RECEIVE).is_none());
    assert_eq!(guest.device.receiving(), 0);
    // Rings that come back before the reset do not hold it up.
    [receive, transmit].into_iter().for_each(|ring| guest.device.take_back(ring.ticket));
    assert_eq!(guest.device.lend(RECEIVE), None);
    guest.set("device_status", 0);
    assert!(!guest.device.is_resetting());
}
