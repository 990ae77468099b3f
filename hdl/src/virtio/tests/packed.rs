//! Packed rings: traffic over them beside split ones, rings of anything, and lives of either kind.
use super::*;
use ferric_abi::virtio::PackedDesc;

/// Cycles in which everything that a queue has sent has left.
const LEAVES: u64 = 3_000;

#[test]
fn frames_pass_over_packed_rings_w64() {
    mixed(64, 52, 25, 300, [true; 4]);
}

#[test]
fn frames_pass_over_packed_rings_w512() {
    mixed(512, 53, 25, 300, [true; 4]);
}

#[test]
fn frames_pass_over_packed_rings_without_stalls() {
    mixed(64, 54, 0, 200, [true; 4]);
    mixed(512, 55, 0, 200, [true; 4]);
}

#[test]
fn packed_and_split_rings_side_by_side() {
    mixed(64, 56, 20, 200, [true, false, false, true]);
    mixed(512, 57, 20, 200, [false, true, true, false]);
}

/// The port takes no frame: what waits to be sent holds up nobody who receives.
#[test]
fn frames_come_over_packed_rings_while_none_can_leave() {
    for seed in [2, 3, 4, 9] {
        refused_by(seed, true);
    }
}

/// Queues end with chains in stock and in hand, and begin again as rings of the other kind, or of the same.
#[test]
fn queues_live_again_as_rings_of_either_kind() {
    let mut b = Bench::new(64, 58, 15);
    for life in 0..8 {
        b.left.clear();
        b.offered.clear();
        for (queue, size) in [(0, 40 + life), (1, 30 + life)] {
            let split = life % 4 == 3;
            let size = if split { 32 } else { size };
            let mut ring = Ring::new(queue, 1, size, if queue == 0 { Kind::Receive } else { Kind::Transmit }, life % 2 == 0, &mut b.guest);
            ring.merged = life % 3 == 0;
            b.begin(if split { ring } else { ring.packed() });
        }
        let limit = b.tb.cycles() + 400_000;
        while b.rings[0].received < 12 || b.rings[1].returned < 25 {
            b.cycle();
            b.turn();
            if b.tb.rng().below(600) == 0 {
                b.offer(0, 60);
            }
            assert!(b.tb.cycles() < limit, "life {life}: {} frames have come, {} have gone", b.rings[0].received, b.rings[1].returned);
        }
        // A frame that is still to be placed would be the next life's.
        let came = |b: &Bench| b.delivered + b.dropped(0);
        let mut quiet = (came(&b), 0);
        while quiet.1 < 6000 {
            b.run(1);
            quiet = if came(&b) == quiet.0 { (quiet.0, quiet.1 + 1) } else { (came(&b), 0) };
        }
        b.rings.iter_mut().for_each(|ring| ring.stops = true);
        for queue in [0, 1] {
            let (taken, back) = b.end(queue);
            assert_eq!(taken, back, "life {life}");
        }
        // What the queue has sent before its end may still be on its way to the port.
        b.run(LEAVES);
        b.rings.clear();
        while b.interrupts.pop().is_some() {}
    }
}

/// Packed rings of anything beside a function that goes on: no hang, each reject has its cause, every chain comes back or is the last of a broken ring, and afterwards the queue works.
fn hostile_packed(width: usize, seed: u64, rounds: usize) {
    let mut b = Bench::new(width, seed, 10);
    for (queue, size) in [(0, 64), (1, 16)] {
        let ring = Ring::new(queue, 1, size, if queue == 0 { Kind::Receive } else { Kind::Transmit }, true, &mut b.guest);
        b.begin(if rounds % 4 == 0 { ring.packed() } else { ring });
    }
    let mut broken = 0;
    for round in 0..rounds {
        let queue = 2 + (round % 2) as u16;
        // Chains to be sent that no slot holds, but for that as good as any; a chain without an end.
        let (long, endless) = (round % 4 == 1, round % 7 == 6);
        let size = if long { 64 } else { b.tb.rng().range(1, 70) as u16 };
        let ring = Ring::new(queue, 2, size, if queue == 2 { Kind::Receive } else { Kind::Transmit }, round % 3 == 0, &mut b.guest).packed();
        let [desc, driver, device] = ring.areas;
        let before = b.left.get(&1).copied().unwrap_or_default();
        b.guest.unmapped.clear();
        for i in 0..u64::from(size) {
            let rng = b.tb.rng();
            let d = PackedDesc::default().with_addr(0xdead_0000 + rng.below(9000)).with_length([0, 12, 26, 40, 300, 2000, 1 << 20][rng.below(7) as usize]).with_id(rng.next_u64() as u16);
            let d = if long || endless {
                d.with_length(2000).with_has_next(endless || rng.percent(92)).with_write(queue == 2)
            } else {
                d.with_has_next(rng.percent(50)).with_write((queue == 2) ^ rng.percent(10)).with_indirect(rng.percent(8))
            };
            // Available in this round; wrap counters that have been turned over, also in the middle of a chain.
            let turned = !endless && rng.percent(10);
            b.guest.put(desc + 16 * i, &d.with_avail(!turned || rng.percent(50)).with_used(turned).0);
        }
        if round % 5 == 4 {
            // The ring, the events or the buffers cannot be reached.
            let at = [desc, driver, device, 0xdead_0000][round / 5 % 4];
            b.guest.unmapped.insert(at >> 12);
        }
        b.begin(ring);
        // Nobody drives it from here on.
        b.rings.truncate(2);
        b.notify.push(Fields::of::<VqNotify>().pack(&[("queue", queue.into())]));
        let (soonest, latest) = (b.tb.cycles() + 4000, b.tb.cycles() + 300_000);
        while b.tb.cycles() < soonest || b.left.get(&1).copied().unwrap_or_default() == before {
            assert!(b.tb.cycles() < latest, "round {round}: the other function's frames do not leave");
            b.cycle();
            b.turn_but(queue);
            if queue == 2 && b.tb.rng().below(400) == 0 {
                b.offer(2, 60);
            }
            if b.tb.rng().below(400) == 0 {
                b.offer(0, 100);
            }
        }
        while endless && !b.avail(queue).broken() {
            assert!(b.tb.cycles() < latest, "round {round}: {:?}", (size, b.avail(queue).taken(), b.avail(queue).fetch()));
            b.turn_but(queue);
        }
        let lost = b.avail(queue).broken();
        broken += u64::from(lost);
        b.end(queue);
        // What it has sent until then has left.
        b.turn_but(queue);
        b.offered.remove(&2);
    }
    let mut causes = BTreeMap::<u8, u64>::new();
    for ((queue, cause), n) in &b.told {
        if *queue > 1 {
            *causes.entry(*cause).or_default() += n;
        }
    }
    use VirtioCause::{BadDirection, BadIndirect, LongChain, Oversize, RingDma, Short};
    for cause in [LongChain, BadIndirect, BadDirection, Short, Oversize, RingDma] {
        assert!(causes.contains_key(&(cause as u8)), "never {cause:?}: {causes:?}");
    }
    assert!(broken > 5, "{broken} rings were lost");
}

#[test]
fn hostile_packed_rings_w64() {
    hostile_packed(64, 60, 120);
}

#[test]
fn hostile_packed_rings_w512() {
    hostile_packed(512, 61, 60);
}
