//! The error table of VIRTIO.md, section 7, row by row, for both formats where a row concerns both. Each reject is counted once, under its name and no other, and what can go on goes on.
use super::guest::*;
use crate::virtio::Step;
use ferric_abi::codes::VirtioCause::{self, *};
use ferric_abi::virtio::net::gso;
use ferric_abi::virtio::{feature, window, NetHeader};

const FORMATS: [u64; 2] = [0, feature::RING_PACKED];
const ALL: u64 = feature::INDIRECT_DESC | feature::CTRL_VQ | feature::CTRL_RX | feature::MRG_RXBUF | feature::CSUM | feature::HOST_TSO4;

/// Only this cause has been counted, so often.
fn only(guest: &Guest, cause: VirtioCause, times: u64) {
    assert_eq!((guest.count(cause), guest.device.counters().rejects()), (times, times), "{cause:?}");
}

/// The chain goes back with length 0, whatever its length in the ring, and the queue goes on.
fn returned(features: u64, queue: u16, chain: &[D], cause: VirtioCause) {
    let mut guest = Guest::new(features | ALL);
    table(&mut guest);
    guest.publish(queue, chain);
    assert_eq!(guest.run(queue), Vec::<Vec<u8>>::new());
    only(&guest, cause, 1);
    // Of a split ring the head names it, of a packed one the last descriptor's ID.
    let id = if guest.packed { chain.last().map_or(0, |d| d.tail) } else { 0 };
    assert_eq!(guest.used(queue, chain.len() as u32), [(id.into(), 0)], "{cause:?}");
    guest.assert_works();
    only(&guest, cause, 1);
}

/// Indirect tables for the rows below, at offset 0x1000: two readable entries; at 0x2000: one that is a table itself.
fn table(guest: &mut Guest) {
    let packed = guest.packed;
    let entries = [d(0, 12, NEXT).tail(1), d(0x100, 60, 0)];
    entries.iter().enumerate().for_each(|(n, e)| guest.ram.put(BUFFERS + 0x1000 + 16 * n as u64, &entry(packed, *e)));
    guest.ram.put(BUFFERS + 0x2000, &entry(packed, d(0x1000, 32, INDIRECT)));
}

#[test]
fn the_available_index_jumps() {
    let mut guest = Guest::new(0);
    guest.ram.put(areas(TRANSMIT)[1] + 2, &(SIZE + 1).to_le_bytes());
    guest.run(TRANSMIT);
    assert_eq!(guest.count(AvailJump), 1);
    guest.assert_stopped();
    // Of a packed ring the driver makes a descriptor available that it has not got back: all places are in hand.
    let mut guest = Guest::new(feature::RING_PACKED);
    (0..SIZE).for_each(|_| guest.publish(TRANSMIT, &[d(0, 72, 0)]));
    guest.notify(TRANSMIT);
    for _ in 0..=SIZE {
        guest.step(TRANSMIT);
    }
    assert_eq!(guest.device.held(TRANSMIT), Some((0, SIZE.into())));
    guest.publish(TRANSMIT, &[d(0, 72, 0)]);
    guest.run(TRANSMIT);
    assert_eq!(guest.count(AvailJump), 1);
    guest.assert_stopped();
}

#[test]
fn a_head_beyond_the_ring_is_skipped() {
    let mut guest = Guest::new(0);
    guest.head(TRANSMIT, SIZE);
    guest.head(TRANSMIT, 0xffff);
    assert!(guest.run(TRANSMIT).is_empty());
    only(&guest, BadHead, 2);
    assert_eq!(guest.used(TRANSMIT, 1), []);
    let balance = guest.device.balance(TRANSMIT).unwrap();
    assert_eq!((balance.available, balance.skipped, balance.is_conserved()), (2, 2, true));
    guest.assert_works();
}

#[test]
fn a_next_beyond_its_table() {
    returned(0, TRANSMIT, &[d(0, 72, NEXT).tail(SIZE)], BadNext);
    // In an indirect table: three entries, of which the first leads to the fourth.
    let mut guest = Guest::new(ALL);
    guest.ram.put(BUFFERS + 0x1000, &d(0, 72, NEXT).tail(3).bytes());
    guest.publish(TRANSMIT, &[d(0x1000, 48, INDIRECT)]);
    guest.run(TRANSMIT);
    only(&guest, BadNext, 1);
    assert_eq!(guest.used(TRANSMIT, 1), [(0, 0)]);
    guest.assert_works();
}

#[test]
fn chains_that_are_too_long() {
    // A loop.
    returned(0, TRANSMIT, &[d(0, 60, NEXT), d(0, 60, NEXT).tail(1)], LongChain);
    // A chain of the whole ring is none.
    let mut guest = Guest::new(0);
    let mut whole: Vec<D> = (0..u64::from(SIZE)).map(|n| d(16 * n, 16, NEXT)).collect();
    whole[usize::from(SIZE) - 1].flags = 0;
    guest.publish(TRANSMIT, &whole);
    assert_eq!(guest.run(TRANSMIT)[0].len(), 16 * usize::from(SIZE) - 12);
    // A loop in an indirect table.
    let mut guest = Guest::new(ALL);
    guest.ram.put(BUFFERS + 0x1000, &d(0, 60, NEXT).tail(1).bytes());
    guest.ram.put(BUFFERS + 0x1010, &d(0, 60, NEXT).tail(1).bytes());
    guest.publish(TRANSMIT, &[d(0x1000, 32, INDIRECT)]);
    guest.run(TRANSMIT);
    only(&guest, LongChain, 1);
    guest.assert_works();
    // A packed chain without an end: nobody knows where the next one begins.
    let mut guest = Guest::new(feature::RING_PACKED);
    guest.publish(TRANSMIT, &[d(0, 60, NEXT); SIZE as usize]);
    guest.run(TRANSMIT);
    only(&guest, LongChain, 1);
    guest.assert_stopped();
    // One that ends behind the places that are free.
    let mut guest = Guest::new(feature::RING_PACKED);
    guest.publish(TRANSMIT, &[d(0, 60, NEXT), d(0, 60, 0)]);
    guest.notify(TRANSMIT);
    guest.step(TRANSMIT);
    assert!(matches!(guest.step(TRANSMIT), Step::Frame(_)));
    guest.publish(TRANSMIT, &[&[d(0, 60, NEXT); 6][..], &[d(0, 60, 0)]].concat());
    guest.run(TRANSMIT);
    only(&guest, LongChain, 1);
    guest.assert_stopped();
    for format in FORMATS {
        // More than 2^17 bytes.
        let mut guest = Guest::new(format | ALL);
        let packed = guest.packed;
        for n in 0..3 {
            guest.ram.put(BUFFERS + 0x1000 + 16 * n, &entry(packed, d(0, 50_000, if n < 2 { NEXT } else { 0 }).tail(n as u16 + 1)));
        }
        guest.publish(TRANSMIT, &[d(0x1000, 48, INDIRECT)]);
        guest.run(TRANSMIT);
        only(&guest, LongChain, 1);
        guest.assert_works();
    }
}

#[test]
fn indirect_tables_where_none_may_be() {
    for format in FORMATS {
        // Not negotiated.
        let mut guest = Guest::new(format);
        table(&mut guest);
        guest.publish(TRANSMIT, &[d(0x1000, 32, INDIRECT)]);
        guest.run(TRANSMIT);
        only(&guest, BadIndirect, 1);
        guest.assert_works();
        for length in [0, 8, 24, 16 * 257] {
            returned(format, TRANSMIT, &[d(0x1000, length, INDIRECT).tail(5)], BadIndirect);
        }
        returned(format, TRANSMIT, &[d(0x1000, 32, INDIRECT | NEXT), d(0x100, 60, 0).tail(5)], BadIndirect);
        // A table that cannot be read: the ring goes on.
        returned(format, TRANSMIT, &[d(BUFFER_BYTES, 32, INDIRECT).tail(5)], BadIndirect);
        returned(format, TRANSMIT, &[D { addr: u64::MAX - 15, ..d(0, 32, INDIRECT) }.tail(5)], BadIndirect);
        // 256 entries are allowed.
        let mut guest = Guest::new(format | ALL);
        let packed = guest.packed;
        for n in 0..256 {
            guest.ram.put(BUFFERS + 0x1000 + 16 * n, &entry(packed, d(0, 1, if n < 255 { NEXT } else { 0 }).tail(n as u16 + 1)));
        }
        guest.publish(TRANSMIT, &[d(0x1000, 16 * 256, INDIRECT)]);
        assert_eq!(guest.run(TRANSMIT)[0].len(), 256 - 12);
        // 256 segments, one of them in front of the table: one too many.
        returned(format, TRANSMIT, &[d(0, 12, NEXT), D { length: 16 * 256, ..d(0x8000, 0, INDIRECT) }.tail(5)], if packed { LongChain } else { Short });
    }
    // A table in a table; of packed tables the flag is to be ignored.
    returned(0, TRANSMIT, &[d(0x2000, 16, INDIRECT)], BadIndirect);
}

#[test]
fn directions() {
    for format in FORMATS {
        returned(format, TRANSMIT, &[d(0, 12, NEXT), d(0x100, 60, WRITE).tail(5)], BadDirection);
        returned(format, CONTROL, &[d(0, 1, NEXT | WRITE), d(0x100, 60, 0).tail(5)], BadDirection);
        // The first thing wrong counts; what is behind it is not looked at, not even a table that cannot be read.
        returned(format, TRANSMIT, &[d(0, 12, NEXT | WRITE), d(BUFFER_BYTES, 32, INDIRECT).tail(5)], BadDirection);
        // A receive queue's chains are fetched into the stock.
        returned(format, RECEIVE, &[d(0, 12, NEXT), d(0x100, 2000, WRITE).tail(5)], BadDirection);
    }
}

#[test]
fn short_and_long_frames() {
    for format in FORMATS {
        returned(format, TRANSMIT, &[d(0, 0, NEXT), d(0x100, 0, 0).tail(5)], Short);
        returned(format, TRANSMIT, &[d(0, 25, 0).tail(5)], Short);
        returned(format, TRANSMIT, &[d(0, 12 + 65_551, 0).tail(5)], Oversize);
        let mut guest = Guest::new(format);
        guest.publish(TRANSMIT, &[d(0, 0, NEXT), d(0, 26, NEXT), d(0, 0, 0)]);
        guest.publish(TRANSMIT, &[d(0, 12 + 65_550, 0)]);
        assert_eq!(guest.run(TRANSMIT).iter().map(Vec::len).collect::<Vec<_>>(), [14, 65_550]);
    }
}

#[test]
fn offloads_that_cannot_be() {
    for format in FORMATS {
        let bad = [
            NetHeader::default().with_needs_csum(true).with_csum_start(50).with_csum_offset(9),
            NetHeader::default().with_needs_csum(true).with_csum_start(0xffff).with_csum_offset(0xffff),
            NetHeader::default().with_gso(gso::TCPV4).with_gso_size(100),
            NetHeader::default().with_gso(0x20),
        ];
        for header in bad {
            let mut guest = Guest::new(format | ALL);
            guest.ram.put(BUFFERS, &header.0);
            guest.publish(TRANSMIT, &[d(0, 72, 0).tail(5)]);
            assert!(guest.run(TRANSMIT).is_empty());
            only(&guest, BadOffload, 1);
            guest.assert_works();
        }
    }
}

#[test]
fn receive_buffers_that_are_too_small() {
    for format in FORMATS {
        for mergeable in [0, feature::MRG_RXBUF] {
            let mut guest = Guest::new(format | mergeable);
            guest.publish(RECEIVE, &[d(0, 11, WRITE)]);
            guest.publish(RECEIVE, &[d(0x100, 200, WRITE)]);
            guest.run(RECEIVE);
            assert_eq!(guest.device.receive(&mut guest.ram, 0, &[1; 60], false), Err(RxSmall));
            only(&guest, RxSmall, 1);
            // The buffers are kept: a header is never in two of them.
            assert_eq!(guest.device.held(RECEIVE), Some((2, 0)));
            guest.assert_works();
        }
        let mut guest = Guest::new(format);
        guest.publish(RECEIVE, &[d(0, 71, WRITE)]);
        guest.publish(RECEIVE, &[d(0, 71, WRITE)]);
        assert_eq!(guest.device.receive(&mut guest.ram, 0, &[1; 60], false), Err(RxSmall));
        assert_eq!(guest.device.receive(&mut guest.ram, 0, &[1; 59], false), Ok(()));
        let mut guest = Guest::new(format | feature::MRG_RXBUF);
        guest.publish(RECEIVE, &[d(0, 71, WRITE)]);
        assert_eq!(guest.device.receive(&mut guest.ram, 0, &[1; 60], false), Err(RxSmall));
        guest.publish(RECEIVE, &[d(0, 1, WRITE)]);
        assert_eq!(guest.device.receive(&mut guest.ram, 0, &[1; 60], false), Ok(()));
        // Longer than the MTU allows.
        let mut guest = Guest::new(format | feature::MTU);
        guest.publish(RECEIVE, &[d(0, 0x1_0000, WRITE)]);
        assert_eq!(guest.device.receive(&mut guest.ram, 0, &[1; 1519], false), Err(RxSmall));
        assert_eq!(guest.device.receive(&mut guest.ram, 0, &[1; 1518], false), Ok(()));
    }
}

#[test]
fn no_receive_buffer_and_queues_that_are_down() {
    for format in FORMATS {
        let mut guest = Guest::new(format | feature::RING_RESET);
        assert_eq!(guest.device.receive(&mut guest.ram, 0, &[1; 60], false), Err(RxNoBuffer));
        // A cold queue: the first frame finds the buffer by one look, without a notification.
        guest.publish(RECEIVE, &[d(0, 100, WRITE)]);
        assert_eq!(guest.device.receive(&mut guest.ram, 0, &[1; 60], false), Ok(()));
        only(&guest, RxNoBuffer, 1);
        guest.set("queue_select", RECEIVE.into());
        guest.set("queue_reset", 1);
        assert_eq!(guest.device.receive(&mut guest.ram, 0, &[1; 60], false), Err(RxDown));
        assert_eq!(guest.device.receive(&mut guest.ram, 1, &[1; 60], false), Err(RxDown), "a pair that there is not");
        assert_eq!(guest.count(RxDown), 2);
        guest.assert_works();
        let counters = guest.device.counters();
        assert_eq!(counters.frames, counters.delivered + counters.of(RxNoBuffer) + counters.of(RxDown));
    }
}

#[test]
fn a_buffer_id_is_opaque() {
    let mut guest = Guest::new(feature::RING_PACKED);
    guest.publish(TRANSMIT, &[d(0, 40, NEXT).tail(3), d(0x100, 32, 0).tail(0xfffe)]);
    guest.run(TRANSMIT);
    assert_eq!(guest.used(TRANSMIT, 2), [(0xfffe, 0)]);
    only(&guest, BadNext, 0);
}

#[test]
fn rings_that_cannot_be_read_or_written() {
    for format in FORMATS {
        // Descriptors, the driver's area, the device's area; each lies in a region of its own.
        for hole in 0..3 {
            let mut guest = Guest::new(format);
            guest.publish(TRANSMIT, &[d(0, 72, 0)]);
            let base = areas(TRANSMIT)[0];
            let (_, bytes) = guest.ram.regions.remove(1);
            let parts = bytes.chunks(0x4000).enumerate().filter(|(n, _)| *n != hole).map(|(n, part)| (base + 0x4000 * n as u64, part.to_vec()));
            guest.ram.regions.extend(parts.collect::<Vec<_>>());
            guest.run(TRANSMIT);
            only(&guest, RingDma, 1);
            guest.assert_stopped();
        }
    }
}

/// Frames that are out when the ring breaks come back one by one, before the reset and after it, and the reset ends with the last.
#[test]
fn frames_are_out_when_the_ring_breaks() {
    for (format, frames) in FORMATS.into_iter().flat_map(|format| [(format, 2), (format, 3)]) {
        let mut guest = Guest::new(format);
        (0..frames).for_each(|_| guest.publish(TRANSMIT, &[d(0, 72, 0)]));
        guest.notify(TRANSMIT);
        while guest.out.len() < frames {
            guest.step(TRANSMIT);
        }
        guest.ram.regions.remove(1);
        for n in 0..2 {
            let ticket = guest.out.remove(0);
            guest.device.sent(ticket);
            guest.step(TRANSMIT);
            only(&guest, RingDma, 1);
            assert_eq!(guest.device.held(TRANSMIT), Some((0, frames - 1 - n)));
        }
        guest.assert_stopped();
    }
}

#[test]
fn payload_that_cannot_be_read_or_written() {
    for format in FORMATS {
        returned(format, TRANSMIT, &[d(0, 12, NEXT), d(BUFFER_BYTES - 10, 60, 0).tail(5)], TxDma);
        returned(format, TRANSMIT, &[D { addr: u64::MAX - 10, ..d(0, 60, 0) }.tail(5)], TxDma);
        let mut guest = Guest::new(format);
        for n in 1..=16 {
            guest.publish(RECEIVE, &[d(BUFFER_BYTES - 10, 100, WRITE).tail(5)]);
            assert_eq!(guest.device.receive(&mut guest.ram, 0, &[1; 60], false), Err(RxDma));
            only(&guest, RxDma, n);
            if n < 16 {
                guest.run(RECEIVE);
                let id = if guest.packed { 5 } else { (n as u32 - 1) % u32::from(SIZE) };
                assert_eq!(guest.used(RECEIVE, 1), [(id, 0)]);
            }
        }
        guest.assert_stopped();
        // Between them one that can: it begins anew.
        let mut guest = Guest::new(format);
        for n in 0..40 {
            guest.publish(RECEIVE, &[d(if n % 15 == 14 { 0 } else { BUFFER_BYTES - 10 }, 100, WRITE)]);
            assert_eq!(guest.device.receive(&mut guest.ram, 0, &[1; 60], false).is_ok(), n % 15 == 14);
            guest.run(RECEIVE);
        }
        guest.assert_works();
    }
}

#[test]
fn commands_that_are_refused() {
    for format in FORMATS {
        // Unknown, short, of a feature that was not taken, out of range, unreadable.
        let good = d(0x200, 3, NEXT);
        for (bytes, head) in [([9, 0, 0], good), ([0, 0, 0], d(0x200, 2, NEXT)), ([0, 0, 0], d(0x200, 1, NEXT)), ([4, 0, 1], good), ([0, 0, 2], good), ([0, 0, 1], d(BUFFER_BYTES - 1, 3, NEXT))] {
            let mut guest = Guest::new(format | ALL);
            guest.ram.put(BUFFERS + 0x200, &bytes);
            guest.ram.put(BUFFERS + 0x300, &[0x55]);
            guest.publish(CONTROL, &[head, d(0x300, 1, WRITE).tail(5)]);
            guest.run(CONTROL);
            only(&guest, BadCommand, 1);
            assert_eq!(guest.ram.get(BUFFERS + 0x300), [1], "an error is answered");
            assert_eq!(guest.used(CONTROL, 2), [(if guest.packed { 5 } else { 0 }, 1)]);
            assert_eq!(guest.device.modes().receive, [false; 6]);
            guest.assert_works();
        }
        // Without room for the answer, or where the answer cannot be written, it goes back as it is.
        returned(format, CONTROL, &[d(0, 3, 0).tail(5)], BadCommand);
        returned(format, CONTROL, &[d(0, 3, NEXT), d(BUFFER_BYTES, 1, WRITE).tail(5)], BadCommand);
    }
}

#[test]
fn notifications_that_are_ignored() {
    for (features, width) in [(0, 2), (feature::NOTIFICATION_DATA, 4)] {
        let mut guest = Guest::new(features | feature::RING_RESET);
        let mut times = 0;
        let mut refused = |guest: &mut Guest, offset: u32, bytes: &[u8]| {
            times += 1;
            guest.device.write(window::NOTIFY + offset, bytes);
            only(guest, BadNotify, times);
        };
        // Of another width, of a queue that there is not, of one at another's place.
        refused(&mut guest, 4, &[1, 0, 0, 0][..6 - width]);
        refused(&mut guest, 4, &[1]);
        refused(&mut guest, 12, &[3, 0, 0, 0][..width]);
        refused(&mut guest, 4, &[0, 0, 0, 0][..width]);
        refused(&mut guest, 2, &[1, 0, 0, 0][..width]);
        assert_eq!(guest.step(TRANSMIT), Step::Idle);
        guest.set("queue_select", TRANSMIT.into());
        guest.set("queue_reset", 1);
        refused(&mut guest, 4, &[1, 0, 0, 0][..width]);
    }
    // Before DRIVER_OK it is counted, and remembered.
    let mut guest = Guest::found(offer(), BASE);
    (0..2).for_each(|n| guest.enable(n));
    guest.publish(TRANSMIT, &[d(0, 72, 0)]);
    guest.notify(TRANSMIT);
    only(&guest, BadNotify, 1);
    assert_eq!(guest.step(TRANSMIT), Step::Idle);
    guest.set("device_status", 15);
    assert_eq!(guest.step(TRANSMIT), Step::Worked);
    assert!(matches!(guest.step(TRANSMIT), Step::Frame(_)));
}
