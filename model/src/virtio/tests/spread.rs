//! Commands that spread frames by their hash: what is refused, what a refusal leaves as it was, and which command, reset or queue reset ends it.
use super::guest::*;
use crate::virtio::rss::{Rss, KEY, MOST};
use crate::virtio::{Offer, Step};
use ferric_abi::codes::VirtioCause::{BadCommand, RxDown, RxNoBuffer};
use ferric_abi::virtio::net::{control, hash_type};
use ferric_abi::virtio::{feature, window, NetConfig, RssHead, RssTail};

/// Pairs of the function, and the one whose receive queue is not enabled.
const PAIRS: u16 = 4;
const IDLE: u16 = 2;
/// Where a command's answer is.
const ANSWER: u64 = 0x3000;

/// A guest with these features beside those that it must take; all receive queues but one are enabled, with memory that is not used.
fn guest(features: u64) -> Guest {
    let offer = Offer { features: Offer::KNOWN, pairs: PAIRS, ..offer() };
    let mut guest = Guest::found(offer, BASE | feature::CTRL_VQ | features);
    for pair in (0..PAIRS).filter(|pair| *pair != IDLE) {
        enable(&mut guest, 2 * pair, RECEIVE);
    }
    enable(&mut guest, 2 * PAIRS, CONTROL);
    guest.set("device_status", 15);
    guest
}

/// Enables a queue with the memory of one of the guest's rings.
fn enable(guest: &mut Guest, queue: u16, ring: u16) {
    guest.describe(queue, SIZE, areas(ring));
    guest.set("queue_enable", 1);
    assert_eq!(guest.register("queue_enable"), 1, "queue {queue}");
}

/// Gives a command, in pieces as Linux does.
fn command(guest: &mut Guest, name: u8, data: &[u8]) -> u8 {
    let bytes = [&[control::MQ, name], data].concat();
    guest.ram.put(BUFFERS, &bytes);
    guest.ram.put(BUFFERS + ANSWER, &[0x55]);
    let split = data.len().min(8) as u32;
    let pieces: Vec<D> = [(0, 2), (2, split), (2 + split, data.len() as u32 - split)].into_iter().filter(|(_, length)| *length > 0).map(|(at, length)| d(at.into(), length, NEXT)).collect();
    guest.publish(CONTROL, &[&pieces[..], &[d(ANSWER, 1, WRITE)]].concat());
    guest.device.write(window::NOTIFY + window::NOTIFY_MULTIPLIER * u32::from(2 * PAIRS), &(2 * PAIRS).to_le_bytes());
    while guest.device.step(&mut guest.ram, 2 * PAIRS) != Step::Idle {}
    let [answer] = guest.ram.get(BUFFERS + ANSWER);
    answer
}

/// The data of MQ_RSS_CONFIG.
#[derive(Clone, Debug)]
struct Config {
    types: u32,
    mask: u16,
    unclassified: u16,
    table: Vec<u16>,
    max_tx_vq: u16,
    key_length: u8,
    key: Vec<u8>,
}

impl Config {
    /// One that can be, with so many entries.
    fn good(entries: u16) -> Self {
        let table = (0..entries).map(|n| if n % PAIRS == IDLE { 0 } else { n % PAIRS }).collect();
        Self { types: hash_type::ALL, mask: entries - 1, unclassified: 1, table, max_tx_vq: 2, key_length: KEY as u8, key: (1..=KEY as u8).collect() }
    }

    fn bytes(&self) -> Vec<u8> {
        let head = RssHead::default().with_hash_types(self.types).with_mask(self.mask).with_unclassified(self.unclassified);
        let tail = RssTail::default().with_max_tx_vq(self.max_tx_vq).with_key_length(self.key_length);
        let table: Vec<u8> = self.table.iter().flat_map(|pair| pair.to_le_bytes()).collect();
        [&head.0[..], &table, &tail.0, &self.key].concat()
    }
}

/// The same with a change.
fn but(of: &Config, change: impl FnOnce(&mut Config)) -> Config {
    let mut other = of.clone();
    change(&mut other);
    other
}

/// A packet of UDP over IPv4 from this port.
fn packet(port: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2([2; 6], [0; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(port, 9).write(&mut frame, &[5; 20]).unwrap();
    frame
}

#[test]
fn a_table_is_obeyed() {
    for entries in [1, 2, 64, MOST as u16] {
        let mut guest = guest(feature::MQ | feature::RSS);
        let config = Config::good(entries);
        assert_eq!(command(&mut guest, control::MQ_RSS_CONFIG, &config.bytes()), control::OK);
        let rss = guest.device.rss().expect("a table").clone();
        assert_eq!((rss.types, &rss.pairs, rss.unclassified, &rss.key[..], guest.device.modes().pairs), (hash_type::ALL, &config.table, 1, &config.key[..], 2));
        for port in 0..100 {
            let hash = rss.hash(&packet(port)).expect("a hash");
            let pair = guest.device.sort(&packet(port)).expect("a frame for the function");
            assert_eq!(pair, config.table[hash as usize % usize::from(entries)]);
            // Queues that the driver does not send by receive all the same.
            assert_eq!(guest.device.receive(&mut guest.ram, pair, &packet(port), false), Err(RxNoBuffer));
        }
        assert_eq!(guest.device.sort(&[&[0; 12][..], &[8, 6], &[0; 46]].concat()), Some(1), "no hash");
    }
}

/// Of a key that is shorter the rest is zero; where nothing is hashed there need not be one.
#[test]
fn keys_of_other_lengths() {
    let mut guest = guest(feature::RSS);
    let short = but(&Config::good(4), |c| (c.key_length, c.key) = (16, vec![0xff; 16]));
    assert_eq!(command(&mut guest, control::MQ_RSS_CONFIG, &short.bytes()), control::OK);
    let key = guest.device.rss().expect("a table").key;
    assert_eq!((&key[..16], &key[16..]), (&[0xff; 16][..], &[0; KEY - 16][..]));
    let none = but(&Config::good(4), |c| (c.types, c.key_length, c.key) = (0, 0, Vec::new()));
    assert_eq!(command(&mut guest, control::MQ_RSS_CONFIG, &none.bytes()), control::OK);
    assert_eq!(guest.device.sort(&packet(1)), Some(1), "all is unclassified");
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut guest = guest(feature::MQ | feature::RSS);
    let good = Config::good(8);
    assert_eq!(command(&mut guest, control::MQ_RSS_CONFIG, &good.bytes()), control::OK);
    let (rss, modes) = (guest.device.rss().cloned(), *guest.device.modes());
    // Another that would be good, so that what is taken of it is seen.
    let other = but(&good, |c| {
        (c.types, c.unclassified, c.max_tx_vq) = (1, 3, 4);
        c.table.reverse();
        c.key.reverse();
    });
    let mut bad: Vec<Vec<u8>> = [
        // A table whose length is no power of two, or more than the function says; entries that are not there.
        but(&other, |c| (c.mask, c.table) = (2, vec![0; 3])),
        but(&other, |c| (c.mask, c.table) = (2 * MOST as u16 - 1, vec![0; 2 * MOST])),
        but(&other, |c| c.mask = u16::MAX),
        but(&other, |c| c.mask = 15),
        but(&other, |c| c.mask = 3),
        // Kinds of hash that there are not: of extension headers, and beyond.
        but(&other, |c| c.types |= hash_type::ALL + 1),
        but(&other, |c| c.types |= 1 << 31),
        // Queues that there are not, that are not enabled, that a reserved bit names.
        but(&other, |c| c.table[7] = PAIRS),
        but(&other, |c| c.table[0] = IDLE),
        but(&other, |c| c.table[3] |= 0x8000),
        but(&other, |c| c.unclassified = PAIRS),
        but(&other, |c| c.unclassified = IDLE),
        but(&other, |c| c.unclassified |= 0x8000),
        but(&other, |c| c.max_tx_vq = 0),
        but(&other, |c| c.max_tx_vq = PAIRS + 1),
        // Keys.
        but(&other, |c| (c.key_length, c.key) = (KEY as u8 + 1, vec![1; KEY + 1])),
        but(&other, |c| (c.key_length, c.key) = (0, Vec::new())),
        but(&other, |c| c.key_length = u8::MAX),
    ]
    .iter()
    .map(Config::bytes)
    .collect();
    // Cut anywhere.
    bad.extend((0..other.bytes().len()).map(|length| other.bytes()[..length].to_vec()));
    for (n, data) in (1..).zip(bad) {
        assert_eq!(command(&mut guest, control::MQ_RSS_CONFIG, &data), control::ERR, "{data:x?}");
        assert_eq!((guest.device.rss().cloned(), *guest.device.modes(), guest.count(BadCommand)), (rss.clone(), modes, n), "{data:x?}");
    }
    // A byte behind the key, as Linux 7.3 has it.
    assert_eq!(command(&mut guest, control::MQ_RSS_CONFIG, &[&other.bytes()[..], &[7]].concat()), control::OK);
    assert_ne!((guest.device.rss().cloned(), *guest.device.modes()), (rss, modes));
    // There is no such command: hashes in headers are not offered.
    assert_eq!(command(&mut guest, control::MQ_RSS_CONFIG + 1, &other.bytes()), control::ERR);
}

/// Whether a driver may give the command, and what the others of its class do, is a matter of features.
#[test]
fn the_feature_decides() {
    let mut without = guest(feature::MQ);
    assert_eq!(command(&mut without, control::MQ_RSS_CONFIG, &Config::good(4).bytes()), control::ERR);
    assert!(without.device.rss().is_none());
    // Without MQ the pairs are there, of which the first receives until a table says otherwise, and the other command is not.
    let mut alone = guest(feature::RSS);
    assert_eq!(command(&mut alone, control::MQ_PAIRS_SET, &[2, 0]), control::ERR);
    assert_eq!((alone.device.sort(&packet(1)), alone.device.receive(&mut alone.ram, 3, &packet(1), false)), (Some(0), Err(RxDown)));
    assert_eq!(command(&mut alone, control::MQ_RSS_CONFIG, &but(&Config::good(1), |c| c.table = vec![3]).bytes()), control::OK);
    assert_eq!((alone.device.sort(&packet(1)), alone.device.receive(&mut alone.ram, 3, &packet(1), false)), (Some(3), Err(RxNoBuffer)));
    for (features, shown) in [(Offer::KNOWN, (40, 128, 0x3f)), (Offer::KNOWN & !feature::RSS, (0, 0, 0))] {
        let mut guest = Guest::found(Offer { features, pairs: PAIRS, ..offer() }, BASE);
        let mut config = NetConfig::default();
        guest.device.read(window::DEVICE, &mut config.0);
        assert_eq!((config.rss_max_key_size(), config.rss_max_table(), config.hash_types()), shown);
    }
}

/// The last command decides how frames are spread; one that is refused is none.
#[test]
fn the_last_command_decides() {
    let mut guest = guest(feature::MQ | feature::RSS);
    let all_to_3 = but(&Config::good(1), |c| (c.table, c.unclassified) = (vec![3], 3));
    assert_eq!(command(&mut guest, control::MQ_PAIRS_SET, &[2, 0]), control::OK);
    guest.device.note_flow(&packet(1), 1);
    assert_eq!(guest.device.sort(&packet(1)), Some(1));
    assert_eq!(command(&mut guest, control::MQ_RSS_CONFIG, &all_to_3.bytes()), control::OK);
    assert_eq!((guest.device.sort(&packet(1)), guest.device.receiving()), (Some(3), PAIRS));
    for pairs in [0, PAIRS as u8 + 1] {
        assert_eq!(command(&mut guest, control::MQ_PAIRS_SET, &[pairs, 0]), control::ERR);
        assert_eq!(guest.device.sort(&packet(1)), Some(3));
    }
    assert_eq!(command(&mut guest, control::MQ_PAIRS_SET, &[2, 0]), control::OK);
    assert_eq!((guest.device.sort(&packet(1)), guest.device.receiving()), (Some(1), 2));
    assert_eq!(guest.device.receive(&mut guest.ram, 3, &packet(1), false), Err(RxDown), "a pair that is not in use any more");
}

/// What is spread to a queue in reset is dropped, the rest is not; a queue that begins again is found again. The function's reset forgets all.
#[test]
fn resets_in_the_middle() {
    let mut guest = guest(feature::MQ | feature::RSS | feature::RING_RESET);
    assert_eq!(command(&mut guest, control::MQ_RSS_CONFIG, &Config::good(64).bytes()), control::OK);
    let came = |guest: &mut Guest| {
        (0..200).fold([0; 4], |mut dropped, port| {
            let pair = guest.device.sort(&packet(port)).expect("a frame for the function");
            dropped[usize::from(pair)] += u32::from(guest.device.receive(&mut guest.ram, pair, &packet(port), false) == Err(RxDown));
            dropped
        })
    };
    assert_eq!(came(&mut guest), [0; 4]);
    guest.set("queue_select", 6);
    guest.set("queue_reset", 1);
    let [a, b, c, d] = came(&mut guest);
    assert_eq!([a, b, c], [0; 3]);
    assert!(d > 0, "frames for the queue in reset are dropped");
    // A table that leads there is refused meanwhile.
    assert_eq!(command(&mut guest, control::MQ_RSS_CONFIG, &Config::good(64).bytes()), control::ERR);
    enable(&mut guest, 6, RECEIVE);
    assert_eq!(came(&mut guest), [0; 4]);
    guest.set("device_status", 0);
    assert_eq!((guest.register("device_status"), guest.device.rss(), guest.device.modes().pairs, guest.device.receiving()), (0, None, 1, 0));
}

/// Whatever bytes a guest gives: what is taken can be, and no frame is led to a queue that does not run.
#[test]
fn any_bytes() {
    let mut guest = guest(feature::MQ | feature::RSS);
    let mut state = 1u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut data = Config::good(1 << random(8)).bytes();
        for _ in 0..random(4) {
            let at = random(data.len() as u64) as usize;
            data[at] = if random(2) == 0 { random(u64::from(PAIRS) + 1) as u8 } else { random(256) as u8 };
        }
        if random(8) == 0 {
            data.truncate(random(data.len() as u64) as usize);
        }
        let before = (guest.device.rss().cloned(), *guest.device.modes());
        if command(&mut guest, control::MQ_RSS_CONFIG, &data) == control::ERR {
            assert_eq!((guest.device.rss().cloned(), *guest.device.modes()), before);
            refused += 1;
            continue;
        }
        taken += 1;
        let Rss { types, pairs, unclassified, .. } = guest.device.rss().expect("a table");
        assert!(types & !hash_type::ALL == 0 && pairs.len().is_power_of_two() && pairs.len() <= MOST && (1..=PAIRS).contains(&guest.device.modes().pairs));
        assert!(pairs.iter().chain([unclassified]).all(|pair| *pair < PAIRS && *pair != IDLE));
        let frame = packet(random(1 << 16) as u16);
        let pair = guest.device.sort(&frame).expect("a frame for the function");
        assert_eq!(guest.device.receive(&mut guest.ram, pair, &frame, false), Err(RxNoBuffer));
    }
    assert!(taken > 1000 && refused > 1000, "{taken} taken, {refused} refused");
}
