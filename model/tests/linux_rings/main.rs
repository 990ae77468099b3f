//! Linux' own `virtio_ring.c` as the driver of the model's rings: of Linux 6.1 (Debian 12) and 7.3 (the backports of Debian 13, with IN_ORDER and NOTIFICATION_DATA), every kind of ring, with
//! random buffers, at random speeds. The device gets its turn at every memory barrier of the driver. See model/src/virtio/README.md.
//!
//! FERRIC_RINGS: buffers of one test in all; FERRIC_SEED: another seed.
mod driver;
mod iommu;
mod linux;
mod numbers;
mod world;

use driver::{Driver, CONTROL, RECEIVE, TRANSMIT};
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::{feature, NetConfig};
use ferric_model::virtio::{Device, Offer};
use linux::Linux;
use rand::Rng;
use world::{with, World, QUEUES};

/// Features that make one kind of ring differ from another.
const KINDS: [u64; 6] = [feature::RING_PACKED, feature::INDIRECT_DESC, feature::EVENT_IDX, feature::MRG_RXBUF, feature::IN_ORDER, feature::NOTIFICATION_DATA];
/// Those that every driver takes.
const ALWAYS: u64 = feature::VERSION_1 | feature::ACCESS_PLATFORM | feature::ORDER_PLATFORM | feature::RING_RESET | feature::CTRL_VQ | feature::CTRL_RX | feature::CTRL_MAC_ADDR | feature::MAC;

fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).map_or(or, |text| text.parse().unwrap_or_else(|e| panic!("{name}: {e}")))
}

/// What one run has come to.
#[derive(Debug, Default)]
struct Sum {
    buffers: u64,
    frames: u64,
    notified: u64,
    resets: u64,
}

fn sizes(packed: bool) -> [u32; QUEUES as usize] {
    let choices: &[u32] = if packed { &[3, 8, 17, 64, 200, 256] } else { &[2, 8, 16, 64, 256] };
    [0; QUEUES as usize].map(|_| with(|w| choices[w.rng.gen_range(0..choices.len())]))
}

/// Chains that the driver has made available are used, in stock or in hand, and what came in has been delivered or dropped.
fn check(driver: &Driver) {
    for n in 0..QUEUES {
        let (added, out) = driver.counts(n);
        with(|w| {
            let balance = w.device.balance(n).expect("an enabled queue");
            assert!(balance.is_conserved(), "queue {n}: {balance:?}");
            let (stock, hand) = w.device.held(n).expect("as above");
            assert_eq!(balance.held, (stock + hand) as u64, "queue {n} at rest");
            assert_eq!(balance.available, balance.used + (stock + hand) as u64, "queue {n}");
            assert!(balance.available <= added && balance.used == added - out as u64, "queue {n}: {balance:?}, {added} added, {out} not back");
            if n != RECEIVE {
                assert_eq!((balance.available, balance.held), (added, 0), "queue {n}");
            }
        });
    }
    with(|w| {
        let counters = w.device.counters();
        assert_eq!(counters.frames, counters.delivered + w.dropped);
        let dropped = counters.of(VirtioCause::RxNoBuffer) + counters.of(VirtioCause::RxSmall);
        assert_eq!(w.dropped, dropped);
        // Nothing that Linux makes is rejected but the commands that were meant to be.
        assert_eq!(counters.rejects(), dropped + driver.refused);
        assert_eq!((w.iommu.faults, w.blamed), (0, false));
    });
}

/// One kind of ring until so many buffers have been made available.
fn run(linux: &Linux, wanted: u64, buffers: u64, seed: u64) -> Sum {
    let offer = Offer { features: ALWAYS | KINDS.iter().fold(0, |all, kind| all | kind), pairs: 1, max_size: 256, vectors: QUEUES, stock: 1 << (seed % 8), config: NetConfig::default() };
    world::begin(Device::new(offer), seed);
    let packed = wanted & feature::RING_PACKED != 0;
    let mut driver = Driver::new(linux, ALWAYS | wanted, sizes(packed));
    let mergeable = driver.features & feature::MRG_RXBUF != 0;
    let mut sum = Sum::default();
    while driver.buffers < buffers {
        // A burst, at the end of which everything is at rest.
        with(|w| w.longest = if w.rng.gen_bool(0.3) { 3000 } else { 300 });
        for _ in 0..with(|w| w.rng.gen_range(1..200)) {
            match with(|w| w.rng.gen_range(0..12)) {
                0..3 => _ = driver.send(),
                3..6 => {
                    let bytes = with(|w| if mergeable { w.rng.gen_range(12..600) } else { w.rng.gen_range(1000..3100) });
                    driver.post(bytes);
                }
                6 => _ = driver.command(),
                7..10 => driver.kick(with(|w| w.rng.gen_range(0..QUEUES))),
                10 => driver.serve(),
                _ => with(World::anything),
            }
        }
        with(|w| w.longest = 0);
        driver.settle();
        check(&driver);
        if with(|w| w.rng.gen_bool(0.2)) {
            // In the middle of work.
            (0..20).for_each(|_| _ = driver.send());
            driver.post(1500);
            driver.kick(TRANSMIT);
            with(|w| (0..9).for_each(|_| _ = w.step(TRANSMIT)));
            let n = with(|w| w.rng.gen_range(0..QUEUES));
            driver.reset_queue(n, sizes(packed)[usize::from(n)]);
            sum.resets += 1;
            driver.settle();
            check(&driver);
        }
    }
    every_buffer_gets_a_frame(&mut driver);
    sum.buffers = driver.buffers;
    sum.frames = driver.frames;
    sum.notified = with(|w| w.notified);
    driver.end();
    sum
}

/// Buffers that the device has left in the ring because its stock was full are found: each takes a frame of one byte beyond a header.
fn every_buffer_gets_a_frame(driver: &mut Driver) {
    let (_, out) = driver.counts(RECEIVE);
    let before = driver.frames;
    let mut frames = 0;
    while with(|w| w.arrive(14)).is_ok() {
        frames += 1;
        driver.settle();
    }
    assert_eq!(driver.frames - before, frames);
    if driver.features & feature::MRG_RXBUF == 0 {
        assert_eq!(frames, out as u64, "each buffer takes a frame");
        assert_eq!(driver.counts(RECEIVE).1, 0);
    }
    check(driver);
}

/// All kinds of ring with the driver of this Linux, in the suite 10,000 buffers and more.
fn all_kinds(test: &str, version: &str, kinds: &[u64]) {
    let Some(linux) = linux::linux(test, version, &world::HOOKS) else { return };
    let (wanted, seed) = (number("FERRIC_RINGS", 12_000), number("FERRIC_SEED", 1));
    let mut sum = Sum::default();
    for kind in 0..1 << kinds.len() {
        let features = kinds.iter().enumerate().filter(|(n, _)| kind >> n & 1 == 1).fold(0, |all, (_, feature)| all | feature);
        let one = run(&linux, features, wanted.div_ceil(1 << kinds.len()), seed.wrapping_mul(1000) + kind);
        // Otherwise the run has not shown what it should.
        assert!(one.frames > 0 && one.notified > 0, "kind {features:#x}: {one:?}");
        sum = Sum { buffers: sum.buffers + one.buffers, frames: sum.frames + one.frames, notified: sum.notified + one.notified, resets: sum.resets + one.resets };
    }
    assert!(sum.resets > 0 && sum.notified < sum.buffers, "{sum:?}");
    println!("Linux {version}: {} kinds of ring, {} buffers, {} frames received, {} notifications, {} queue resets", 1 << kinds.len(), sum.buffers, sum.frames, sum.notified, sum.resets);
}

#[test]
fn linux_rings_6_1() {
    all_kinds("linux_rings_6_1", "6.1", &KINDS[..4]);
}

#[test]
fn linux_rings_7_3() {
    all_kinds("linux_rings_7_3", "7.3", &KINDS);
}

/// Which features Linux' ring code takes: else the tests above would be about less than they say.
#[test]
fn linux_rings_take_what_is_offered() {
    for (version, kinds) in [("6.1", &KINDS[..4]), ("7.3", &KINDS[..])] {
        let Some(linux) = linux::linux("linux_rings_take_what_is_offered", version, &world::HOOKS) else { return };
        let offer = Offer { features: ALWAYS | KINDS.iter().fold(0, |all, kind| all | kind), pairs: 1, max_size: 256, vectors: QUEUES, stock: 4, config: NetConfig::default() };
        world::begin(Device::new(offer), 1);
        let driver = Driver::new(&linux, u64::MAX, [8; 3]);
        assert_eq!(driver.features, ALWAYS | kinds.iter().fold(0, |all, kind| all | kind), "Linux {version}");
        assert_eq!(with(|w| w.device.features()), driver.features);
        assert_eq!(driver.counts(CONTROL), (0, 0));
        driver.end();
    }
}
