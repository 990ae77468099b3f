//! Guests that write anything anywhere: descriptors, indices, tables, registers, notifications, at any time. Nothing panics and nothing hangs, every chain and every frame is accounted for, what
//! the memory refuses is in a counter, and after a reset the function works.
use super::guest::*;
use crate::virtio::{Offer, Step};
use ferric_abi::codes::VirtioCause::{self, BadCommand, BadEnable, BadFeatures, BadIndirect, RingDma, RxDma, RxDown, RxNoBuffer, RxSmall, TxDma};
use ferric_abi::virtio::{feature, window};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

/// What a guest does, or what happens to it.
#[derive(Clone, Debug)]
enum Act {
    /// A chain, as it should be or not.
    Publish(u16, Vec<D>),
    /// Bytes in the descriptors, in the driver's or the device's area of a ring.
    Poke(u16, usize, u64, Vec<u8>),
    /// Entries of tables among the buffers.
    Table(u64, Vec<D>),
    Notify(u32, Vec<u8>),
    Register(u32, Vec<u8>),
    /// The available index goes on by so many, whatever is there.
    Jump(u16, u16),
    Step(u16, usize),
    Frame(usize),
    Sent(usize),
    Unmap(usize),
    Reset,
}

fn descriptor() -> impl Strategy<Value = D> {
    let length = prop_oneof![4 => 0u32..200, 2 => (0u32..20).prop_map(|n| 16 * n), 1 => 0u32..80_000, 1 => any::<u32>()];
    let addr = prop_oneof![6 => (0..BUFFER_BYTES - 0x1000).prop_map(|at| BUFFERS + at), 2 => (0u64..4).prop_map(|n| BUFFERS + 0x1000 * n), 1 => BUFFERS + BUFFER_BYTES - 300..BUFFERS + BUFFER_BYTES + 10, 1 => any::<u64>(), 1 => u64::MAX - 300..];
    let flags = prop_oneof![8 => 0u16..8, 1 => any::<u16>()];
    let tail = prop_oneof![3 => Just(0u16), 2 => 0u16..2 * SIZE, 1 => any::<u16>()];
    (addr, length, flags, tail).prop_map(|(addr, length, flags, tail)| D { addr, length, flags, tail })
}

/// Chains whose flags are mostly as they should be, so that what is behind the first check is reached.
fn chain() -> impl Strategy<Value = (u16, Vec<D>)> {
    (0u16..3, prop::collection::vec(descriptor(), 1..6), any::<bool>()).prop_map(|(n, mut chain, tame)| {
        if tame {
            let last = chain.len() - 1;
            chain.iter_mut().enumerate().for_each(|(k, d)| {
                d.flags = d.flags & INDIRECT & if k == last { INDIRECT } else { 0 } | if k == last { 0 } else { NEXT };
                d.flags |= if n == RECEIVE || n == CONTROL && k == last { WRITE } else { 0 };
                d.tail = 0;
            });
        }
        (n, chain)
    })
}

fn act() -> impl Strategy<Value = Act> {
    let bytes = |most| prop::collection::vec(any::<u8>(), 1..=most);
    let register = prop_oneof![3 => window::COMMON..window::COMMON + 64, 1 => 0u32..0x10000];
    let notify = (0u32..4, any::<bool>()).prop_map(|(n, data)| Act::Notify(4 * n, if data { vec![n as u8, 0, 3, 0] } else { vec![n as u8, 0] }));
    prop_oneof![
        10 => chain().prop_map(|(n, chain)| Act::Publish(n, chain)),
        4 => (0u16..3, 0usize..3, prop_oneof![0u64..160, 0u64..0x4000], bytes(16)).prop_map(|(n, area, at, bytes)| Act::Poke(n, area, at, bytes)),
        3 => (0u64..4, prop::collection::vec(descriptor(), 1..10)).prop_map(|(n, entries)| Act::Table(0x1000 * n, entries)),
        8 => notify,
        1 => (0u32..0x4100, bytes(4)).prop_map(|(at, bytes)| Act::Notify(at, bytes)),
        1 => (register, bytes(4)).prop_map(|(at, bytes)| Act::Register(at, bytes)),
        2 => (0u16..3, prop_oneof![0u16..10, any::<u16>()]).prop_map(|(n, by)| Act::Jump(n, by)),
        16 => (0u16..4, 1usize..20).prop_map(|(n, steps)| Act::Step(n, steps)),
        4 => prop_oneof![14usize..200, 14usize..3000].prop_map(Act::Frame),
        4 => any::<usize>().prop_map(Act::Sent),
        1 => (0usize..4).prop_map(Act::Unmap),
        1 => Just(Act::Reset),
    ]
}

/// What must be so at any time.
fn check(guest: &Guest) -> Result<(), TestCaseError> {
    for n in 0..3 {
        if let Some(balance) = guest.device.balance(n) {
            prop_assert!(balance.is_conserved(), "queue {}: {:?}", n, balance);
            prop_assert!(balance.held <= SIZE.into(), "queue {}: {:?}", n, balance);
            // What is in hand is out, and comes back: only frames are, for longer than a step.
            let (stock, hand) = guest.device.held(n).expect("an enabled queue");
            prop_assert!((stock + hand) as u64 <= balance.held && hand <= if n == TRANSMIT { guest.out.len() } else { 0 }, "queue {}: {} in hand", n, hand);
        }
    }
    let counters = guest.device.counters();
    let dropped: u64 = [RxSmall, RxNoBuffer, RxDown, RxDma].iter().map(|cause| counters.of(*cause)).sum();
    prop_assert_eq!(counters.frames, counters.delivered + dropped);
    // A command may meet two refusals: it cannot be read, and its answer cannot be written.
    let counted = [RingDma, TxDma, RxDma, BadIndirect].iter().map(|cause| counters.of(*cause)).sum::<u64>() + 2 * counters.of(BadCommand);
    prop_assert!(guest.ram.refused <= counted, "{} refused, {} counted", guest.ram.refused, counted);
    Ok(())
}

fn perform(guest: &mut Guest, act: &Act) -> Result<(), TestCaseError> {
    match act {
        Act::Publish(n, chain) => guest.publish(*n, chain),
        Act::Poke(n, area, at, bytes) => {
            let area = areas(*n)[*area] + at.min(&(0x4000 - 16));
            guest.poke(area, bytes);
        }
        Act::Table(at, entries) => {
            let packed = guest.packed;
            entries.iter().enumerate().for_each(|(k, d)| guest.poke(BUFFERS + at + 16 * k as u64, &entry(packed, *d)));
        }
        Act::Notify(at, bytes) => guest.device.write(window::NOTIFY + at, bytes),
        Act::Register(at, bytes) => {
            guest.device.write(*at, bytes);
            let mut into = [0; 8];
            guest.device.read(*at, &mut into[..bytes.len()]);
        }
        Act::Jump(n, by) => guest.jump(*n, *by),
        Act::Step(n, steps) => {
            for _ in 0..*steps {
                let before = guest.device.counters().rejects();
                let step = guest.step(*n);
                let rejects = guest.device.counters().rejects() - before;
                prop_assert!(rejects <= 1, "one step, {} rejects", rejects);
                if step == Step::Idle {
                    break;
                }
            }
        }
        Act::Frame(bytes) => {
            let outcome = guest.device.receive(&mut guest.ram, 0, &vec![3; *bytes], true);
            // The header is there, and the frame behind it.
            prop_assert!(outcome != Ok(()) || guest.device.status() & 4 != 0);
        }
        Act::Sent(n) => {
            if !guest.out.is_empty() {
                let ticket = guest.out.swap_remove(n % guest.out.len());
                guest.device.sent(ticket);
            }
        }
        Act::Unmap(n) => {
            if guest.ram.regions.len() > 3 {
                guest.ram.regions.remove(*n);
            }
        }
        Act::Reset => guest.device.reset(),
    }
    check(guest)
}

/// One guest's life; what it has counted is added.
fn live(taken: u64, acts: &[Act], sum: &mut Counted) -> Result<(), TestCaseError> {
    // Every set of features that can be.
    let ring = feature::RING_PACKED | feature::EVENT_IDX | feature::INDIRECT_DESC | feature::RING_RESET | feature::MRG_RXBUF | feature::MTU;
    let known = ring | Offer::KNOWN & (feature::CSUM | feature::HOST_TSO4 | feature::CTRL_RX | feature::CTRL_MAC_ADDR | feature::GUEST_CSUM);
    let mut features = taken.rotate_left(17) & known | feature::CTRL_RX;
    if features & feature::CSUM == 0 {
        features &= !feature::HOST_TSO4;
    }
    let mut guest = Guest::new(features);
    for act in acts {
        perform(&mut guest, act)?;
    }
    // It comes to rest, in as many steps as rings have places and a few more.
    for n in 0..4 {
        let mut steps = 0;
        while guest.step(n) != Step::Idle {
            steps += 1;
            prop_assert!(steps < 200, "queue {} does not come to rest", n);
            if let Some(ticket) = guest.out.pop() {
                guest.device.sent(ticket);
            }
        }
    }
    check(&guest)?;
    // A reset ends when all frames have come back, and the function is as new.
    guest.set("device_status", 0);
    for ticket in std::mem::take(&mut guest.out) {
        guest.device.sent(ticket);
    }
    prop_assert_eq!(guest.register("device_status"), 0);
    let mut anew = Guest::new(features);
    std::mem::swap(&mut anew.device, &mut guest.device);
    anew.begin(features);
    anew.assert_works();
    sum.iter_mut().zip(VirtioCause::ALL).for_each(|(n, (cause, ..))| *n += anew.count(*cause));
    Ok(())
}

/// Rejects by their cause.
type Counted = [u64; VirtioCause::ALL.len()];

fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).map_or(or, |text| text.parse().unwrap_or_else(|e| panic!("{name}: {e}")))
}

/// FERRIC_GUESTS: how many; FERRIC_SEED: other ones. A failure prints what the guest did, made smaller.
#[test]
fn anything_goes() {
    let (guests, seed) = (number("FERRIC_GUESTS", 3000), number("FERRIC_SEED", 1));
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = ProptestConfig { cases: guests as u32, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let sum = std::cell::Cell::new(Counted::default());
    let outcome = runner.run(&(any::<u64>(), prop::collection::vec(act(), 1..80)), |(taken, acts)| {
        let mut now = sum.get();
        let outcome = live(taken, &acts, &mut now);
        sum.set(now);
        outcome
    });
    outcome.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    // Otherwise the guests were not hostile enough.
    for (cause, name, n, _) in VirtioCause::ALL {
        println!("{name}: {}", sum.get()[usize::from(*n)]);
        assert!(matches!(cause, VirtioCause::None | BadFeatures | BadEnable) || sum.get()[usize::from(*n)] > 0, "no guest has caused {name}");
    }
}
