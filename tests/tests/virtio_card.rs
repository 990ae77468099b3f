//! Virtio functions of whole cards: rings in host memory, frames from card to card, every byte compared (docs/virtio.md). The drivers of rings are those of the engine's own tests.
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
        use ferric_driver::device::{Device, DmaAccess};
        use ferric_driver::mapping::Mapping;
        use std::sync::Arc;

        const PAGE: usize = 4096;

        /// Memory of a function's guest, in one piece for the card.
        pub struct Guest {
            memory: Vec<u8>,
            at: usize,
            mapping: Mapping,
            device: Arc<dyn Device>,
        }

        impl Guest {
            pub fn new(device: &Arc<dyn Device>, bytes: u64) -> Self {
                let mut memory = vec![0u8; bytes as usize + PAGE];
                let at = memory.as_ptr().align_offset(PAGE);
                // SAFETY: it lives as long as the mapping, and only one thread runs the cards and the drivers.
                let mapping = unsafe { device.map(memory.as_mut_ptr().wrapping_add(at), bytes as usize, DmaAccess::ReadWrite, true) }.expect("memory of a guest");
                Self { memory, at, mapping, device: device.clone() }
            }

            /// Where it begins for the card.
            pub fn base(&self) -> u64 {
                self.mapping.runs()[0].iova
            }

            fn place(&self, at: u64) -> *mut u8 {
                let offset = (at - self.base()) as usize;
                assert!(offset < self.memory.len() - PAGE, "{at:#x} is beyond the memory");
                self.memory.as_ptr().wrapping_add(self.at + offset).cast_mut()
            }

            pub fn put(&mut self, at: u64, bytes: &[u8]) {
                // SAFETY: inside of the memory; nobody else runs.
                (0..).zip(bytes).for_each(|(n, byte)| unsafe { self.place(at + n).write_volatile(*byte) });
            }

            pub fn get(&mut self, at: u64, bytes: usize) -> Vec<u8> {
                // SAFETY: as above.
                (0..bytes as u64).map(|n| unsafe { self.place(at + n).read_volatile() }).collect()
            }

            pub fn word(&mut self, at: u64) -> u16 {
                let bytes = self.get(at, 2);
                u16::from_le_bytes([bytes[0], bytes[1]])
            }
        }

        impl Drop for Guest {
            fn drop(&mut self) {
                self.device.unmap(&self.mapping);
            }
        }
    }
}

use driver::Kind;
use site::{street, Shape};

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
    assert_eq!([0, 1].map(|card| street.account(card)), [0, 1].map(|card| street.frames(1 - card).0));
}

/// Random frames of all sizes over split and packed rings of four functions, both ways at once.
fn traffic(width: usize, seed: u64, frames: usize) {
    let mut street = street(width, seed);
    street.begin_all(Shape::MIXED);
    let most = frames / 8;
    street.until("enough frames", |s| s.hosts.iter().flat_map(|host| &host.rings).filter(|ring| ring.kind == Kind::Transmit).all(|ring| ring.frames.len() >= most));
    for host in &mut street.hosts {
        host.rings.iter_mut().for_each(|ring| ring.stops = ring.kind == Kind::Transmit);
    }
    street.until("all sent", |s| s.hosts.iter().flat_map(|host| &host.rings).filter(|ring| ring.kind == Kind::Transmit).all(|ring| ring.returned == ring.posted));
    (0..200).for_each(|_| street.turn());
    for card in 0..2 {
        let (sent, _) = street.frames(card);
        let (_, received) = street.frames(1 - card);
        assert_eq!(street.counters(card, &["virtio.virtio_sent", "virtio.virtio_bell_bad"]), [sent, 0]);
        assert_eq!(street.account(1 - card), received, "what the card says it has delivered");
        assert_eq!(street.counters(1 - card, &["rx.rx_frames"]), [sent]);
        assert!(received > sent / 2, "{received} of {sent}");
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

#[test]
fn frames_go_from_card_to_card_w64() {
    traffic(64, 2, 800);
}

#[test]
fn frames_go_from_card_to_card_w512() {
    traffic(512, 3, 1600);
}
