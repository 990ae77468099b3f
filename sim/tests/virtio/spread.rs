//! Receive-side scaling: each frame comes by the queue that its hash says, whatever the driver has asked for, and however it has ended.
use super::guest::*;
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::net::{control, hash_type};
use ferric_abi::virtio::{feature, RssHead, RssTail};
use ferric_model::virtio::rss::{Rss, KEY, MOST};
use ferric_sim::Rng;
use rand::{Rng as _, SeedableRng};

/// Pairs of the function.
const PAIRS: u16 = 4;
const BUFFER: u32 = 2048;
/// The one whose receive queue is reset in the middle.
const RESET: u16 = 2;

/// A packet of any flow for the function: TCP or UDP, whose sums nobody looks at.
fn packet(rng: &mut Rng, mac: [u8; 6]) -> Vec<u8> {
    let (v4, protocol) = (rng.gen(), if rng.gen() { 6 } else { 17 });
    let payload = rng.gen_range(40..200);
    let (head, addresses) = if v4 { (vec![8, 0, 0x45, 0, 0, 20 + payload, 0, 1, 0x40, 0, 64, protocol, 0, 0], 8) } else { (vec![0x86, 0xdd, 0x60, 0, 0, 0, 0, payload, protocol, 64], 32) };
    let any: Vec<u8> = (0..addresses + usize::from(payload)).map(|_| rng.gen()).collect();
    [&mac[..], &[2, 0, 0, 0, 0, 1], &head, &any].concat()
}

/// The bytes of the command.
fn command(rss: &Rss) -> Vec<u8> {
    let head = RssHead::default().with_hash_types(rss.types).with_mask(rss.pairs.len() as u16 - 1).with_unclassified(rss.unclassified);
    let table: Vec<u8> = rss.pairs.iter().flat_map(|pair| pair.to_le_bytes()).collect();
    [&[control::MQ, control::MQ_RSS_CONFIG][..], &head.0, &table, &RssTail::default().with_max_tx_vq(1).with_key_length(KEY as u8).0, &rss.key].concat()
}

/// A guest whose receive queues have buffers.
fn ready(served: &Served) -> Guest {
    let mut guest = Guest::connect(served);
    guest.begin(served.taken | feature::RING_RESET);
    (0..PAIRS).for_each(|pair| fill(&mut guest, 2 * pair));
    guest
}

fn fill(guest: &mut Guest, queue: u16) {
    (0..SIZE).for_each(|_| guest.publish(queue, BUFFER, true));
    guest.notify(queue);
}

/// A frame comes, by this pair, and its buffer is there again.
fn comes(served: &Served, guest: &mut Guest, frame: &[u8], pair: u16) {
    served.send(frame);
    assert!(guest.received_by(2 * pair).1 == frame, "a frame comes by pair {pair}");
    guest.publish(2 * pair, BUFFER, true);
    guest.notify(2 * pair);
}

/// Frames of all flows over tables of all lengths.
pub fn frames_are_spread(served: &Served) {
    let mut rng = Rng::seed_from_u64(9);
    let mut guest = ready(served);
    let mut came = 0;
    for (types, entries) in [(hash_type::ALL, MOST), (hash_type::ALL, 4), (hash_type::TCPV4 | hash_type::IPV6, 16), (hash_type::ALL, 1), (0, 2)] {
        let rss = Rss { types, pairs: (0..entries).map(|_| rng.gen_range(0..PAIRS)).collect(), unclassified: rng.gen_range(0..PAIRS), key: std::array::from_fn(|_| rng.gen()) };
        assert_eq!(guest.command(&command(&rss)), control::OK);
        for n in 0..40 {
            if n == 20 {
                // One that cannot be changes nothing.
                let wrong = Rss { pairs: vec![PAIRS; 2], ..rss.clone() };
                assert_eq!(guest.command(&command(&wrong)), control::ERR);
            }
            let frame = packet(&mut rng, served.mac);
            comes(served, &mut guest, &frame, rss.pair_of(&frame));
            came += 1;
        }
    }
    // The other command of the class ends it: frames come by the pair that has sent their flow, here none.
    assert_eq!(guest.command(&[control::MQ, control::MQ_PAIRS_SET, PAIRS as u8, 0]), control::OK);
    for _ in 0..10 {
        comes(served, &mut guest, &packet(&mut rng, served.mac), 0);
        came += 1;
    }
    served.assert_arrived(came);
    served.assert_counts(|c| (c.device.delivered, c.device.rejects(), c.device.of(VirtioCause::BadCommand)), (came, 5, 5));
    served.assert_given_back();
}

/// What is spread to a queue that is reset is dropped and counted, the rest comes; the queue is found again when it runs. The function's reset forgets the table.
pub fn resets_in_the_middle(served: &Served) {
    let mut rng = Rng::seed_from_u64(10);
    let rss = Rss { types: hash_type::ALL, pairs: (0..MOST as u16).map(|n| n % PAIRS).collect(), unclassified: 0, key: std::array::from_fn(|_| rng.gen()) };
    let mut guest = ready(served);
    assert_eq!(guest.command(&command(&rss)), control::OK);
    guest.set("queue_select", (2 * RESET).into());
    guest.set("queue_reset", 1);
    guest.assert_register("queue_reset", 0);
    let (mut came, mut dropped) = (0, 0);
    for _ in 0..40 {
        let frame = packet(&mut rng, served.mac);
        match rss.pair_of(&frame) {
            RESET => {
                served.send(&frame);
                dropped += 1;
            }
            pair => comes(served, &mut guest, &frame, pair),
        }
        came += 1;
        served.assert_arrived(came);
    }
    // The engine has no buffers there, the model no queue.
    served.assert_counts(|c| (c.device.delivered, c.device.of(VirtioCause::RxDown) + c.device.of(VirtioCause::RxNoBuffer)), (came - dropped, dropped));
    assert!(dropped > 0);
    assert_eq!(guest.command(&command(&rss)), control::ERR, "a table that leads to a queue in reset");
    guest.enable(2 * RESET);
    fill(&mut guest, 2 * RESET);
    for _ in 0..40 {
        let frame = packet(&mut rng, served.mac);
        comes(served, &mut guest, &frame, rss.pair_of(&frame));
    }
    guest.reset();
    drop(guest);
    let mut guest = ready(served);
    for _ in 0..20 {
        comes(served, &mut guest, &packet(&mut rng, served.mac), 0);
    }
}
