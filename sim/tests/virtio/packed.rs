//! A driver of packed rings: the same over the golden model and over the gateware's engine.
use super::guest::*;
use super::whole;
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::{feature, isr, status, window, NetHeader, PackedDesc};
use std::time::{Duration, Instant};

const BUFFER: u32 = 2048;
/// Frames each way: the rings go around more than twice.
const FRAMES: u64 = 150;

/// Places of a ring, counted from its beginning and never around: where the next chain goes, and where the next used one is to be.
struct Packed {
    queue: u16,
    next: u64,
    seen: u64,
}

impl Packed {
    fn new(queue: u16) -> Self {
        Self { queue, next: 0, seen: 0 }
    }

    /// Address of a place's descriptor, its number, its wrap counter.
    fn place(&self, place: u64) -> (u64, u16, bool) {
        let slot = place % u64::from(SIZE);
        (Guest::area(self.queue, 0) + 16 * slot, slot as u16, (place / u64::from(SIZE)) % 2 == 0)
    }

    /// Makes a chain of one descriptor available, whose identifier is none of the ring's numbers; its flags are written last.
    fn publish(&mut self, guest: &Guest, length: u32, write: bool) {
        let (at, slot, wrap) = self.place(self.next);
        let d = PackedDesc::default().with_addr(Guest::buffer(self.queue, slot)).with_length(length).with_id(!slot).with_write(write).with_avail(wrap).with_used(!wrap);
        guest.poke(at, &d.0[..14]);
        guest.poke(at + 14, &d.0[14..]);
        self.next += 1;
    }

    /// The next used chain: its buffer's number, and the bytes in it.
    fn used(&mut self, guest: &Guest) -> (u16, u32) {
        let (at, _, wrap) = self.place(self.seen);
        let end = Instant::now() + PATIENCE;
        loop {
            let d = PackedDesc(guest.peek(at));
            if d.avail() == wrap && d.used() == wrap {
                assert_eq!(d.write(), d.length() > 0);
                self.seen += 1;
                return (!d.id(), d.length());
            }
            assert!(Instant::now() < end, "nothing comes back in queue {}", self.queue);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Frames both ways; then a chain that has no end, by which the function's work is over.
pub fn packed_rings(served: &Served) {
    let mut guest = Guest::connect(served);
    guest.begin(served.taken | feature::RING_PACKED);
    let [mut receive, mut transmit] = [RECEIVE, TRANSMIT].map(Packed::new);
    (0..8).for_each(|_| receive.publish(&guest, BUFFER, true));
    guest.notify(RECEIVE);
    for n in 0..FRAMES {
        let sent = vec![n as u8; 60 + n as usize];
        let (_, slot, _) = transmit.place(transmit.next);
        guest.poke(Guest::buffer(TRANSMIT, slot), &[&NetHeader::default().0[..], &sent].concat());
        transmit.publish(&guest, (NetHeader::BYTES + sent.len()) as u32, false);
        guest.notify(TRANSMIT);
        assert!(served.received() == sent, "frame {n} leaves");
        assert_eq!(transmit.used(&guest), (slot, 0), "frame {n}");
        let frame = whole(served.mac, 100 + n as usize);
        served.send(&frame);
        let (slot, length) = receive.used(&guest);
        assert_eq!(u64::from(slot), n % u64::from(SIZE));
        assert_eq!(length as usize, NetHeader::BYTES + frame.len(), "frame {n}");
        let at = Guest::buffer(RECEIVE, slot) + NetHeader::BYTES as u64;
        let found: Vec<u8> = (0..frame.len() as u64).map(|i| guest.peek::<1>(at + i)[0]).collect();
        assert!(found == frame, "frame {n} comes");
        receive.publish(&guest, BUFFER, true);
        guest.notify(RECEIVE);
    }
    served.assert_arrived(FRAMES);
    assert!(guest.interrupts(TRANSMIT) > 0 && guest.interrupts(RECEIVE) > 0);
    served.assert_given_back();
    served.assert_counts(|c| (c.left, c.device.delivered, c.device.rejects()), (FRAMES, FRAMES, 0));
    // All places of the ring are one chain's, and it goes on.
    for n in (0..u64::from(SIZE)).rev() {
        let (at, slot, wrap) = transmit.place(transmit.next + n);
        let d = PackedDesc::default().with_addr(Guest::buffer(TRANSMIT, slot)).with_length(10).with_has_next(true).with_avail(wrap).with_used(!wrap);
        guest.poke(at, &d.0);
    }
    guest.notify(TRANSMIT);
    let end = Instant::now() + PATIENCE;
    while guest.register("device_status") & u64::from(status::NEEDS_RESET) == 0 {
        assert!(Instant::now() < end, "the function goes on");
    }
    assert_eq!(guest.read::<1>(window::ISR)[0] & isr::CONFIG, isr::CONFIG);
    served.assert_counts(|c| c.device.of(VirtioCause::LongChain), 1);
    // As split rings.
    guest.begin(served.taken);
    guest.transmit(NetHeader::default(), &[5; 60]);
    assert_eq!(served.received(), [5; 60]);
}
