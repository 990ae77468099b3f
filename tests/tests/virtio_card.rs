//! Virtio functions of whole cards: rings in host memory, frames from card to card, every byte compared (docs/virtio.md). The drivers of rings are those of the engine's own tests.
#[allow(dead_code)] // What only the engine's own tests use of it.
#[path = "../../hdl/src/virtio/tests/driver.rs"]
mod driver;
#[path = "../../hdl/src/virtio/tests/packed_ring.rs"]
mod packed_ring;
#[path = "virtio_card/site.rs"]
mod site;

/// What the drivers know of the crate that they come from.
mod tb {
    pub use ferric_hdl::tb::Rng;
}

mod virtio {
    pub mod testing {
        pub use ferric_tests::guest::Guest;
    }
}

use driver::Kind;
use ferric_abi::context::VqAvail;
use ferric_abi::virtio::SplitDesc;
use ferric_driver::{Config, Context};
use ferric_sim::SimDevice;
use site::{street, Shape, Street};

/// Bytes of the header in front of each frame.
const HEADER: usize = ferric_abi::virtio::NetHeader::BYTES;

/// One frame each way.
#[test]
fn one_frame_goes_each_way() {
    let mut street = street(64, 1);
    let split = Shape { packed: |_| false, events: |_| true, merged: |_| false };
    for card in 0..2 {
        for queue in [2, 3] {
            street.begin(card, queue, split);
            street.hosts[card].rings.iter_mut().for_each(|ring| ring.stops = ring.kind == Kind::Transmit);
        }
    }
    street.until("buffers", |s| s.hosts.iter().all(|host| host.rings[0].posted > 10));
    for host in &mut street.hosts {
        host.rings[1].stops = false;
    }
    street.until("a frame", |s| s.hosts.iter().all(|host| !host.rings[1].frames.is_empty()));
    for host in &mut street.hosts {
        host.rings[1].stops = true;
    }
    street.until("there", |s| (0..2).all(|card| s.frames(card).1 == s.frames(1 - card).0));
    for card in 0..2 {
        assert_eq!(street.account(card), street.frames(1 - card).0);
    }
}

/// Random frames of all sizes over split and packed rings of four functions, both ways at once.
fn traffic(width: usize, seed: u64, frames: usize, pace: u64) {
    let mut street = street(width, seed);
    street.pace = pace;
    street.begin_all(Shape::MIXED);
    let most = frames / 8;
    street.until("enough frames", |s| s.hosts.iter().flat_map(|host| &host.rings).filter(|ring| ring.kind == Kind::Transmit).all(|ring| ring.frames.len() >= most));
    for host in &mut street.hosts {
        host.rings.iter_mut().for_each(|ring| ring.stops = ring.kind == Kind::Transmit);
    }
    street.until("all sent", |s| s.hosts.iter().flat_map(|host| &host.rings).filter(|ring| ring.kind == Kind::Transmit).all(|ring| ring.returned == ring.posted));
    for card in 0..2 {
        let (sent, _) = street.frames(card);
        assert_eq!(street.counters(card, &["virtio.virtio_sent", "virtio.virtio_bell_bad"]), [sent, 0]);
        let delivered = street.account(1 - card);
        street.until("all collected", |s| s.frames(1 - card).1 == delivered);
        assert_eq!(street.counters(1 - card, &["rx.rx_frames"]), [sent]);
        let [_, engine, _] = street.books(1 - card);
        if pace < FULL {
            assert!(delivered > sent / 2, "{delivered} of {sent}: {:?}", street.books(1 - card));
        } else {
            assert!(engine[1] > 0, "{delivered} of {sent} frames have been received, none was one too many");
        }
    }
    // Every queue has received, and all ends with nothing in hand.
    assert!(street.hosts.iter().flat_map(|host| &host.rings).all(|ring| ring.kind == Kind::Transmit || ring.received > 0), "{:?}", street.state());
    for card in 0..2 {
        for queue in 0..site::QUEUES {
            street.hosts[card].contexts[0].end_vq(queue).expect("it ends");
            let place = street.hosts[card].contexts[0].query_vq(queue).expect("its place");
            assert!(!place.enabled && !place.broken && place.taken == place.back, "queue {queue}: {place:?}");
        }
    }
}

/// As fast as senders can.
const FULL: u64 = 400;

#[test]
fn frames_go_from_card_to_card_w64() {
    traffic(64, 2, 320, 5);
}

#[test]
fn frames_go_from_card_to_card_w512() {
    traffic(512, 3, 320, 4);
}

/// More than the receivers can take: what is too much is dropped and counted, what is delivered is whole.
#[test]
fn too_many_frames_are_counted() {
    traffic(64, 7, 800, FULL);
}

/// Frames that functions of a card have received, without those of `but`.
fn received(street: &Street, card: usize, but: u16) -> u64 {
    street.hosts[card].rings.iter().filter(|ring| ring.function != but).map(|ring| ring.received).sum()
}

/// A function is reset while its queues are busy: its rings end, its memory is touched no more, the others' frames go on, and afterwards it works again.
#[test]
fn a_reset_ends_a_functions_rings() {
    const GONE: u16 = 2;
    let mut street = street(64, 4);
    street.begin_all(Shape::MIXED);
    for round in 0..4 {
        let before = received(&street, 0, GONE);
        street.until("busy", |s| s.hosts[0].rings.iter().all(|ring| ring.posted > ring.returned || ring.frames.len() > 5) && received(s, 0, GONE) > before + 20);
        if round == 3 {
            // Its rings end one by one, and busy; then there is nothing left to be ended.
            for queue in [2 * GONE + 1, 2 * GONE] {
                street.hosts[0].contexts[0].end_vq(queue).expect("it ends");
            }
        }
        // The function's driver begins anew, which is a reset.
        let context = Context::open(SimDevice::new(&street.world, 0, GONE), Config::default()).expect("it answers");
        street.hosts[0].rings.retain(|ring| ring.function != GONE);
        for queue in [2 * GONE, 2 * GONE + 1] {
            let place = street.hosts[0].contexts[0].query_vq(queue).expect("its place");
            assert!(!place.enabled && place.taken == place.back, "round {round}, queue {queue}: {place:?}");
        }
        let device = SimDevice::new(&street.world, 0, GONE);
        let faults = |street: &Street| street.world.lock().expect("the world").cards[0].iommu.fault_count();
        let old = std::mem::replace(&mut street.hosts[0].guests[usize::from(GONE)], virtio::testing::Guest::new(&device, driver::APART * u64::from(site::QUEUES)).expect("memory of a guest"));
        drop(old);
        let (was, before) = (faults(&street), received(&street, 0, GONE));
        street.until("the others' frames", |s| received(s, 0, GONE) > before + 40);
        assert_eq!(faults(&street), was, "what it had is not touched any more");
        street.hosts[0].contexts[usize::from(GONE)] = context;
        street.hosts[0].live(0, GONE);
        for queue in [2 * GONE, 2 * GONE + 1] {
            street.begin(0, queue, Shape::MIXED);
        }
        let had = street.hosts[1].rings[usize::from(2 * GONE)].received;
        street.until("it works", |s| s.hosts[0].rings.iter().any(|ring| ring.queue == 2 * GONE && ring.received > 0) && s.hosts[1].rings[usize::from(2 * GONE)].received > had);
    }
    for card in 0..2 {
        street.account(card);
    }
}

/// Rings of anything on one function: every chain comes back, causes are counted, the others' frames go on, and afterwards the function works.
#[test]
fn hostile_rings_harm_nobody() {
    const BAD: u16 = 3;
    let mut street = street(64, 5);
    street.begin_all(Shape::MIXED);
    street.hosts[0].rings.retain(|ring| ring.function != BAD);
    for queue in [2 * BAD, 2 * BAD + 1] {
        street.hosts[0].contexts[0].end_vq(queue).expect("it ends");
    }
    for round in 0..40u16 {
        let queue = 2 * BAD + round % 2;
        let receive = queue % 2 == 0;
        let size = 1u16 << street.rng.below(7);
        let base = street.hosts[0].guests[usize::from(BAD)].base() + driver::APART * u64::from(queue);
        let [desc, avail, used, buffers] = [base, base + 0x1_0000, base + 0x2_0000, base + 0x10_0000];
        // Nothing is mapped there.
        let nowhere = 0xdead_0000;
        for n in 0..u64::from(size) {
            let rng = &mut street.rng;
            let at = if rng.percent(5) { nowhere } else { buffers } + rng.below(9000);
            let length = [0, 12, 26, 40, 300, 2000, 1 << 20][rng.below(7) as usize];
            let d = SplitDesc::default().with_addr(at).with_length(length).with_has_next(rng.percent(50)).with_next(rng.below(u64::from(size) + 1) as u16);
            let d = d.with_write(receive ^ rng.percent(10)).with_indirect(rng.percent(8));
            let head = if rng.percent(5) { rng.next_u64() as u16 } else { rng.below(size.into()) as u16 };
            let guest = &mut street.hosts[0].guests[usize::from(BAD)];
            guest.put(desc + 16 * n, &d.0);
            guest.put(avail + 4 + 2 * n, &head.to_le_bytes());
        }
        let ahead = if street.rng.percent(10) { u64::from(size) + 1 + street.rng.below(100) } else { 1 + street.rng.below(size.into()) };
        let host = &mut street.hosts[0];
        host.guests[usize::from(BAD)].put(avail, &[0; 4]);
        host.guests[usize::from(BAD)].put(avail + 2, &(ahead as u16).to_le_bytes());
        let areas = if round % 10 == 9 { [desc, avail, nowhere] } else { [desc, avail, used] };
        let line =
            VqAvail::default().with_desc(areas[0]).with_driver(areas[1]).with_device(areas[2]).with_size(size).with_function(BAD).with_receive(receive).with_indirect(true).with_events(round % 3 == 0);
        host.contexts[0].begin_vq(queue, &line, queue).expect("a ring that looks like one");
        host.contexts[usize::from(BAD)].notify_vq(queue);
        // It may not notify others' queues.
        host.contexts[usize::from(BAD)].notify_vq(0);
        let before = received(&street, 0, BAD);
        let soonest = street.cycle() + 4000;
        street.until("the others' frames", |s| received(s, 0, BAD) > before + 4 && s.cycle() > soonest);
        street.hosts[0].contexts[0].end_vq(queue).expect("it ends");
        let place = street.hosts[0].contexts[0].query_vq(queue).expect("its place");
        assert_eq!((place.enabled, place.taken), (false, place.back), "round {round}");
    }
    let names = ["avail_jump", "bad_head", "bad_next", "long_chain", "bad_indirect", "bad_direction", "short", "ring_dma"].map(|name| format!("virtio.virtio_{name}"));
    let counts = street.counters(0, &names.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(counts.iter().all(|n| *n > 0), "{names:?}: {counts:?}");
    assert_eq!(street.counters(0, &["virtio.virtio_bell_bad"]), [40]);
    let had = street.hosts[1].rings[usize::from(2 * BAD)].received;
    for queue in [2 * BAD, 2 * BAD + 1] {
        street.begin(0, queue, Shape::MIXED);
    }
    street.until("it works", |s| s.hosts[0].rings.iter().any(|ring| ring.queue == 2 * BAD && ring.received > 0) && s.hosts[1].rings[usize::from(2 * BAD)].received > had);
    for card in 0..2 {
        street.account(card);
    }
}

/// What the physical function may not say of queues, and what others may not say at all.
#[test]
fn only_sound_rings_of_the_physical_function_begin() {
    use ferric_abi::codes::AdminStatus;
    use ferric_driver::Error;
    let street = street(64, 6);
    let context = &street.hosts[0].contexts[0];
    let good = VqAvail::default().with_desc(0x1000).with_driver(0x2000).with_device(0x3000).with_size(64).with_function(1);
    let status = |result: Result<(), Error>| match result {
        Err(Error::Admin { status, .. }) => Some(status),
        Ok(()) => None,
        Err(other) => panic!("{other}"),
    };
    let bad = Some(AdminStatus::BadParameter);
    for line in [good.with_size(0), good.with_size(48), good.with_size(0x8001), good.with_desc(0x1008), good.with_driver(0x2001), good.with_device(0x3002), good.with_function(site::FUNCTIONS)] {
        assert_eq!(status(context.begin_vq(2, &line, 2)), bad);
    }
    assert_eq!(status(context.begin_vq(site::QUEUES, &good, 2)), Some(AdminStatus::BadId));
    assert_eq!(status(context.begin_vq(2, &good, 2)), None);
    assert_eq!(status(context.begin_vq(2, &good, 2)), Some(AdminStatus::BadState), "it runs");
    assert_eq!(status(context.begin_vq(3, &good.with_packed(true).with_size(48), 3)), None);
    assert_eq!(status(context.end_vq(3)), None);
    assert_eq!(status(context.end_vq(2)), None);
    assert_eq!(status(context.end_vq(2)), None, "it has ended");
    assert_eq!(status(context.set_vq_function(site::FUNCTIONS, true, false)), Some(AdminStatus::BadId));
    assert_eq!(status(context.steer_vqs(&[(9 << 16, 0, 0)])), bad, "there is no such table");
    let other = &street.hosts[0].contexts[1];
    assert_eq!([status(other.begin_vq(2, &good, 2)), status(other.end_vq(2)), status(other.set_vq_function(1, true, true)), status(other.query_vq(2).map(drop))], [Some(AdminStatus::Denied); 4]);
}
