//! Frames in several chains, beside the golden model: the same rings, the same frames, and afterwards the same memory.
use super::*;
use ferric_abi::virtio::{feature, window, CommonConfig, NetConfig, PackedDesc};
use ferric_model::virtio::{Device, Offer, Step};

const SIZE: u16 = 64;
const BUFFERS: u64 = 0x40_0000_0000;
const APART: u64 = 0x4000;

fn set(device: &mut Device, name: &str, value: u64) {
    let field = CommonConfig::LAYOUT.field(name).expect("a register");
    let at = window::COMMON + field.offset as u32 / 8;
    // Registers of 64 bits are written as two of 32.
    value.to_le_bytes()[..field.width / 8].chunks(4).zip((at..).step_by(4)).for_each(|(half, at)| device.write(at, half));
}

/// The model of a function, with its receive queue in these places.
fn model([desc, driver, device]: [u64; 3], packed: bool) -> Device {
    let features = feature::VERSION_1 | feature::ACCESS_PLATFORM | feature::MRG_RXBUF | if packed { feature::RING_PACKED } else { 0 };
    let mut model = Device::new(Offer { features, pairs: 1, max_size: SIZE, vectors: 4, stock: usize::from(SIZE), config: NetConfig::default() });
    for status in [1, 3] {
        set(&mut model, "device_status", status);
    }
    for select in 0..2 {
        set(&mut model, "driver_feature_select", select);
        set(&mut model, "driver_feature", features >> (32 * select) & 0xffff_ffff);
    }
    set(&mut model, "device_status", 11);
    for (name, value) in [("queue_select", 0), ("queue_size", SIZE.into()), ("queue_desc", desc), ("queue_driver", driver), ("queue_device", device), ("queue_enable", 1)] {
        set(&mut model, name, value);
    }
    set(&mut model, "device_status", 15);
    model
}

/// What has become of all frames so far: delivered, and dropped by cause.
fn fate(b: &Bench) -> [u64; 3] {
    [b.delivered, b.told(0, VirtioCause::RxNoBuffer), b.told(0, VirtioCause::RxSmall)]
}

fn as_the_model(width: usize, seed: u64, rounds: usize, packed: bool) {
    let mut b = Bench::new(width, seed, 20);
    for round in 0..rounds {
        let mut ring = Ring::new(0, 1, SIZE, Kind::Receive, false, &mut b.guest);
        ring.merged = true;
        if packed {
            ring = ring.packed();
        }
        let [desc, driver, device] = ring.areas;
        let (mut theirs, mut model) = (Guest::default(), model([desc, driver, device], packed));
        // Where the flags of a packed ring's chains stand, which are written when the chain is shown, and what they are.
        let mut heads: Vec<(u64, [u8; 2])> = Vec::new();
        let chains = b.tb.rng().range(1, 20) as u16;
        let mut slot = 0;
        let mut places = Vec::new();
        for n in 0..chains {
            let rng = b.tb.rng();
            // A chain that can only be given back, one that is smaller than a header, ordinary ones.
            let (bad, pieces) = (rng.percent(12), rng.range(1, 3));
            let longest = [11, 40, 300, 300, 700, 1600][rng.below(6) as usize];
            let mut at = BUFFERS + APART * u64::from(n) + rng.below(4096);
            for piece in 0..pieces {
                let length = rng.range(1, longest);
                let d = SplitDesc::default().with_addr(at).with_length(length as u32).with_write(!(bad && piece + 1 == pieces));
                let mut d = d.with_has_next(piece + 1 < pieces).with_next(slot + 1).0;
                if packed {
                    let p = PackedDesc::default().with_addr(at).with_length(length as u32).with_write(!(bad && piece + 1 == pieces));
                    d = p.with_has_next(piece + 1 < pieces).with_id(0x700 + n).with_avail(true).0;
                    if piece == 0 {
                        heads.push((desc + 16 * u64::from(slot) + 14, [std::mem::take(&mut d[14]), d[15]]));
                    }
                } else if piece == 0 {
                    for memory in [&mut b.guest, &mut theirs] {
                        memory.put(driver + 4 + 2 * u64::from(n), &slot.to_le_bytes());
                    }
                }
                for memory in [&mut b.guest, &mut theirs] {
                    memory.put(desc + 16 * u64::from(slot), &d);
                    memory.put(at, &vec![0xee; length as usize]);
                }
                places.push((at, length as usize));
                (slot, at) = (slot + 1, at + length + rng.below(3));
            }
        }
        // Those behind the first ones are not notified: who needs them looks.
        let first = b.tb.rng().range(0, chains.into()) as u16;
        let show = |memory: &mut Guest, from: u16, until: u16| match packed {
            true => heads[usize::from(from)..usize::from(until)].iter().for_each(|(at, flags)| memory.put(*at, flags)),
            false => memory.put(driver + 2, &until.to_le_bytes()),
        };
        [&mut b.guest, &mut theirs].into_iter().for_each(|memory| show(memory, 0, first));
        b.begin(ring);
        b.rings.clear();
        b.notify.push(Fields::of::<VqNotify>().pack(&[("queue", 0)]));
        (0..20_000).for_each(|_| b.cycle());
        model.write(window::NOTIFY, &[0, 0]);
        while model.step(&mut theirs, 0) != Step::Idle {}
        [&mut b.guest, &mut theirs].into_iter().for_each(|memory| show(memory, first, chains));
        for frame in 0..b.tb.rng().range(2, 12) {
            let longest = [60, 400, 1514, 5000][b.tb.rng().below(4) as usize];
            let length = b.tb.rng().range(60, longest) as usize;
            b.offer(0, length);
            let limit = b.tb.cycles() + 60_000;
            let before = fate(&b);
            while fate(&b) == before {
                assert!(b.tb.cycles() < limit, "round {round}: frame {frame} is nowhere");
                b.cycle();
            }
            // Chains behind it that can only be given back go, too.
            (0..2500).for_each(|_| b.cycle());
            let mut expected = before;
            match model.receive(&mut theirs, 0, &b.offered[&0][frame as usize], false) {
                Ok(()) => expected[0] += 1,
                Err(VirtioCause::RxNoBuffer) => expected[1] += 1,
                Err(VirtioCause::RxSmall) => expected[2] += 1,
                Err(other) => panic!("{other:?}"),
            }
            while model.step(&mut theirs, 0) != Step::Idle {}
            assert_eq!(fate(&b), expected, "round {round}: frame {frame} of {length} bytes");
        }
        b.offered.clear();
        // The engine may have seen more of the ring than the model, which looks when a frame needs it: in the end both have seen all.
        b.notify.push(Fields::of::<VqNotify>().pack(&[("queue", 0)]));
        (0..20_000).for_each(|_| b.cycle());
        model.write(window::NOTIFY, &[0, 0]);
        while model.step(&mut theirs, 0) != Step::Idle {}
        // The flags are the model's alone: it suppresses notifications.
        let used = 4 + 8 * usize::from(SIZE) - 2;
        let visible = (b.guest.word(device + 2), theirs.word(device + 2));
        assert!(packed || b.guest.get(device + 2, used) == theirs.get(device + 2, used), "round {round}: used ring, {visible:?} of {chains} chains");
        let descs = 16 * usize::from(SIZE);
        assert_eq!(b.guest.get(desc, descs), theirs.get(desc, descs), "round {round}: descriptors, {chains} chains");
        for (at, length) in places {
            assert!(b.guest.get(at, length) == theirs.get(at, length), "round {round}: buffer of {length} bytes at {at:#x}");
        }
        b.end(0);
    }
    assert!(fate(&b).iter().all(|n| *n > 0), "{:?}", fate(&b));
}

#[test]
fn frames_are_merged_as_the_model_does_w64() {
    as_the_model(64, 13, 30, false);
}

#[test]
fn frames_are_merged_as_the_model_does_w512() {
    as_the_model(512, 14, 30, false);
}

#[test]
fn frames_are_merged_over_packed_rings_as_the_model_does() {
    as_the_model(64, 43, 30, true);
    as_the_model(512, 44, 30, true);
}

#[test]
fn a_frame_takes_one_chain_unless_it_may_take_more() {
    let mut b = Bench::new(64, 15, 10);
    let mut ring = Ring::new(0, 1, SIZE, Kind::Receive, false, &mut b.guest);
    let [_, driver, _] = ring.areas;
    ring.stops = true;
    for n in 0..4u16 {
        b.guest.put(ring.areas[0] + 16 * u64::from(n), &SplitDesc::default().with_addr(BUFFERS + APART * u64::from(n)).with_length(100).with_write(true).0);
        b.guest.put(driver + 4 + 2 * u64::from(n), &n.to_le_bytes());
    }
    b.guest.put(driver + 2, &4u16.to_le_bytes());
    b.begin(ring);
    b.notify.push(Fields::of::<VqNotify>().pack(&[("queue", 0)]));
    b.rings.clear();
    (0..5000).for_each(|_| b.cycle());
    for length in [300, 60] {
        b.offer(0, length);
        (0..3000).for_each(|_| b.cycle());
    }
    assert_eq!(fate(&b), [1, 0, 1]);
}
