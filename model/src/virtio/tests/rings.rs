//! Rings: the order of what the device writes, events, chains of every layout, places around the end of the ring.
use super::guest::*;
use crate::virtio::Step;
use ferric_abi::virtio::{event, feature, PackedDesc, PackedEvent};

const EVENT: u64 = feature::EVENT_IDX;
const PACKED: u64 = feature::RING_PACKED;

/// Frames that are sent one by one, all finished in another order than they left; the writes that giving them back takes.
fn writes_of_three(features: u64) -> (Guest, Vec<(u64, Vec<u8>)>) {
    let mut guest = Guest::new(features);
    (0..3).for_each(|n| guest.publish(TRANSMIT, &[d(0, 40, NEXT).tail(if features & PACKED != 0 { n } else { 0 }), d(0x100, 32, 0).tail(n)]));
    guest.notify(TRANSMIT);
    while guest.out.len() < 3 {
        assert_ne!(guest.step(TRANSMIT), Step::Idle);
    }
    guest.ram.writes.clear();
    for n in [2, 1, 0] {
        let first = guest.ram.writes.clone();
        assert!(first.is_empty(), "used before the one in front of it");
        guest.device.sent(guest.out[n]);
        if n > 0 {
            // It looks at the ring, and arms it.
            guest.step(TRANSMIT);
            guest.ram.writes.clear();
        }
    }
    assert_eq!(guest.step(TRANSMIT), Step::Worked);
    let writes = std::mem::take(&mut guest.ram.writes);
    (guest, writes)
}

#[test]
fn split_elements_are_written_before_their_index() {
    let (mut guest, writes) = writes_of_three(0);
    let device = areas(TRANSMIT)[2];
    let places: Vec<(u64, usize)> = writes.iter().map(|(at, bytes)| (*at, bytes.len())).collect();
    assert_eq!(places, [(device + 4, 8), (device + 12, 8), (device + 20, 8), (device + 2, 2)]);
    assert_eq!(guest.used(TRANSMIT, 2), [(0, 0), (2, 0), (4, 0)]);
}

/// The flags of the first descriptor are written last, and alone: until then the driver sees none of the batch.
#[test]
fn packed_entries_are_visible_at_once() {
    let (mut guest, writes) = writes_of_three(PACKED);
    let desc = areas(TRANSMIT)[0];
    let places: Vec<(u64, usize)> = writes.iter().map(|(at, bytes)| (*at, bytes.len())).collect();
    assert_eq!(places, [(desc + 8, 6), (desc + 2 * 16 + 8, 8), (desc + 4 * 16 + 8, 8), (desc + 14, 2)]);
    assert_eq!(guest.used(TRANSMIT, 2), [(0, 0), (1, 0), (2, 0)]);
}

/// A packed descriptor that has been used says by WRITE whether its length counts, and keeps its address.
#[test]
fn packed_entries_of_received_frames() {
    let mut guest = Guest::new(PACKED);
    guest.publish(RECEIVE, &[d(0, 40, WRITE | NEXT).tail(8), d(0x100, 100, WRITE).tail(9)]);
    guest.device.receive(&mut guest.ram, 0, &[3; 60], false).unwrap();
    guest.run(RECEIVE);
    let used = PackedDesc(guest.ram.get(areas(RECEIVE)[0]));
    assert_eq!((used.addr(), used.length(), used.id()), (BUFFERS, 72, 9));
    assert_eq!((used.write(), used.avail(), used.used(), used.has_next()), (true, true, true, false));
}

/// Interrupts for each of ten used buffers, one at a time, by what the driver has written before.
fn interrupts(features: u64, mut before: impl FnMut(&mut Guest, u32)) -> Vec<u32> {
    let mut guest = Guest::new(features);
    let mut seen = Vec::new();
    for n in 0..10 {
        before(&mut guest, n);
        guest.publish(TRANSMIT, &[d(0, 72, 0)]);
        guest.run(TRANSMIT);
        if !guest.device.interrupts().is_empty() {
            seen.push(n);
        }
    }
    seen
}

#[test]
fn interrupts_are_for_whom_wants_them() {
    let [_, driver, _] = areas(TRANSMIT);
    let flags = |value: u16| move |guest: &mut Guest, _: u32| guest.ram.put(driver, &value.to_le_bytes());
    let used_event = |guest: &mut Guest, value: u16| guest.ram.put(driver + 4 + 2 * u64::from(SIZE), &value.to_le_bytes());
    let packed = |value: PackedEvent| move |guest: &mut Guest, _: u32| guest.ram.put(driver, &value.0);
    let all: Vec<u32> = (0..10).collect();
    assert_eq!(interrupts(0, flags(0)), all);
    assert_eq!(interrupts(0, flags(1)), []);
    // With an event index the flag counts for nothing.
    assert_eq!(interrupts(EVENT, |guest, n| [flags(1)(guest, n), used_event(guest, 4)].into_iter().collect()), [4]);
    assert_eq!(interrupts(EVENT, |guest, n| used_event(guest, n as u16)), all);
    assert_eq!(interrupts(EVENT, |guest, _| used_event(guest, 0xffff)), []);
    // Without, it is not read.
    assert_eq!(interrupts(0, |guest, _| used_event(guest, 4)), all);
    let enable = PackedEvent::default().with_flags(event::ENABLE);
    let place = |offset: u16, wrap: bool| PackedEvent::default().with_flags(event::DESC).with_offset(offset).with_wrap(wrap);
    assert_eq!(interrupts(PACKED, packed(enable)), all);
    assert_eq!(interrupts(PACKED, packed(PackedEvent::default().with_flags(event::DISABLE))), []);
    assert_eq!(interrupts(PACKED | EVENT, packed(place(6, true))), [6]);
    assert_eq!(interrupts(PACKED | EVENT, packed(place(1, false))), [9]);
    assert_eq!(interrupts(PACKED | EVENT, packed(place(6, false))), []);
    // A descriptor that the ring does not have; a descriptor without EVENT_IDX; the reserved value.
    assert_eq!(interrupts(PACKED | EVENT, packed(place(SIZE, true))), []);
    assert_eq!(interrupts(PACKED, packed(place(6, true))), all);
    assert_eq!(interrupts(PACKED | EVENT, packed(PackedEvent::default().with_flags(3))), all);
}

/// One interrupt for a batch, if the event is anywhere in it.
#[test]
fn an_event_in_the_middle_of_a_batch() {
    for (event, wanted) in [(0, 1), (1, 1), (2, 1), (3, 0)] {
        let mut guest = Guest::new(EVENT);
        guest.ram.put(areas(TRANSMIT)[1] + 4 + 2 * u64::from(SIZE), &u16::to_le_bytes(event));
        (0..3).for_each(|_| guest.publish(TRANSMIT, &[d(0, 72, 0)]));
        guest.notify(TRANSMIT);
        while guest.out.len() < 3 {
            guest.step(TRANSMIT);
        }
        (0..3).for_each(|n| guest.device.sent(guest.out[n]));
        guest.run(TRANSMIT);
        assert_eq!(guest.device.interrupts().len(), wanted, "event {event}");
    }
}

/// What the device says about notifications: none while it looks by itself, the next one before it goes idle.
#[test]
fn the_ring_is_armed_before_it_goes_idle() {
    let [_, _, device] = areas(TRANSMIT);
    for features in [0, EVENT, PACKED, PACKED | EVENT] {
        let mut guest = Guest::new(features);
        (0..3).for_each(|_| guest.publish(TRANSMIT, &[d(0, 72, 0)]));
        guest.notify(TRANSMIT);
        assert_eq!(guest.step(TRANSMIT), Step::Worked);
        let now: [u8; 4] = guest.ram.get(device);
        match features {
            0 => assert_eq!(now[0], 1),
            PACKED => assert_eq!(PackedEvent(now).flags(), event::DISABLE),
            _ => assert_eq!(now, [0; 4]),
        }
        guest.run(TRANSMIT);
        let now: [u8; 4] = guest.ram.get(device);
        match features {
            0 => assert_eq!(now[0], 0),
            EVENT => assert_eq!((now[0], guest.ram.get(device + 4 + 8 * u64::from(SIZE))), (0, [3, 0])),
            PACKED => assert_eq!(now, [0; 4]),
            _ => assert_eq!(PackedEvent(now), PackedEvent::default().with_flags(event::DESC).with_offset(3).with_wrap(true)),
        }
        // Nothing more is read until the driver notifies.
        let reads = guest.ram.reads;
        assert_eq!(guest.step(TRANSMIT), Step::Idle);
        assert_eq!(guest.ram.reads, reads);
    }
}

/// Frames of up to four pieces through rings of eight, many times around: every alignment of chain and ring.
#[test]
fn chains_go_around_the_end_of_the_ring() {
    for features in [0, EVENT, PACKED, PACKED | EVENT] {
        let mut guest = Guest::new(features);
        for round in 0..100u32 {
            let pieces = 1 + round % 4;
            let frame: Vec<u8> = (0..60).map(|n| (n + round) as u8).collect();
            guest.ram.put(BUFFERS + 12, &frame);
            let mut chain: Vec<D> = (0..pieces).map(|n| d(u64::from(n) * 16, 16, NEXT).tail(if guest.packed { 77 } else { 0 })).collect();
            let last = chain.last_mut().unwrap();
            (last.length, last.flags) = (72 - 16 * (pieces - 1), 0);
            guest.publish(TRANSMIT, &chain);
            assert_eq!(guest.run(TRANSMIT), [frame], "round {round}");
            assert_eq!(guest.used(TRANSMIT, pieces).len(), 1);
            assert!(guest.device.balance(TRANSMIT).unwrap().is_conserved());
        }
    }
}

/// Descriptors in front of an indirect one; empty ones; WRITE on the one that leads to the table, which is to be ignored (spec 2.7.5.3.2, 2.8.7).
#[test]
fn layouts_of_chains() {
    for format in [0, PACKED] {
        let mut guest = Guest::new(format | feature::INDIRECT_DESC);
        let packed = guest.packed;
        guest.ram.put(BUFFERS + 12, &[1; 30]);
        guest.ram.put(BUFFERS + 0x200, &[2; 30]);
        // Of packed tables nothing but WRITE counts: they end where their length says.
        let flags = if packed { INDIRECT } else { NEXT };
        let entries = [d(0x200, 10, flags).tail(2), d(0x2fe, 0xffff, if packed { 0 } else { WRITE }), d(0x20a, 20, 0)];
        let table = if packed { vec![entries[0], entries[2]] } else { entries.to_vec() };
        table.iter().enumerate().for_each(|(n, e)| guest.ram.put(BUFFERS + 0x1000 + 16 * n as u64, &entry(packed, *e)));
        guest.publish(TRANSMIT, &[d(0, 0, NEXT), d(0, 12, NEXT), d(12, 30, NEXT), d(0x1000, 16 * table.len() as u32, INDIRECT | WRITE).tail(6)]);
        assert_eq!(guest.run(TRANSMIT), [[[1; 30], [2; 30]].concat()]);
        assert_eq!(guest.used(TRANSMIT, 4), [(if packed { 6 } else { 0 }, 0)]);
        assert_eq!(guest.device.counters().rejects(), 0);
    }
}

/// Nothing that the guest has given is read twice: each descriptor, head and index once.
#[test]
fn descriptors_are_read_once() {
    for (features, wanted) in [(0, 2 + 3), (PACKED, 3)] {
        let mut guest = Guest::new(features);
        guest.publish(TRANSMIT, &[d(0, 12, NEXT), d(0x40, 30, NEXT), d(0x80, 30, 0)]);
        guest.notify(TRANSMIT);
        guest.step(TRANSMIT);
        let before = guest.ram.reads;
        assert!(matches!(guest.step(TRANSMIT), Step::Frame(_)));
        // The payload is three reads more.
        assert_eq!(guest.ram.reads - before, wanted + 3);
    }
}

#[test]
fn a_flood_of_notifications_is_one() {
    for format in [0, PACKED] {
        let mut guest = Guest::new(format);
        (0..1000).for_each(|_| guest.notify(TRANSMIT));
        // Awake, empty and armed, nothing at the second look.
        assert_eq!([(); 4].map(|()| guest.step(TRANSMIT)), [Step::Worked, Step::Worked, Step::Worked, Step::Idle]);
        guest.notify(TRANSMIT);
        guest.step(TRANSMIT);
        (0..1000).for_each(|_| guest.notify(TRANSMIT));
        assert_eq!([(); 3].map(|()| guest.step(TRANSMIT)), [Step::Worked, Step::Worked, Step::Idle]);
        assert_eq!(guest.device.counters().rejects(), 0);
    }
}
