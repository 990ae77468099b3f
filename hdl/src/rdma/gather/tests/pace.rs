//! Cycles that the gatherer takes.

use super::*;

/// Exact cycles of an idle gatherer: the key is asked for two cycles after the order, the slot three; the read follows the
/// key's answer in the next cycle.
#[test]
fn an_idle_gatherer_loses_no_time() {
    let mut world = World::new(6, 0, 0);
    let small = entries(&mut world, 0, &[(0x100, 64, 8)]);
    let op = [("pd", 77u128), ("function", 99), ("num_sge", 1), ("pay_len", 64), ("free", 1)];
    for _ in 0..3 {
        world.send(&op, small.clone(), 0);
        world.expected.clear();
        let (mr, slot) = (world.mr.0.clone(), world.slot.0.clone());
        assert_eq!(world.tb.latency(&mr, 20), 2, "order to key");
        assert_eq!(world.tb.latency(&slot, 20), 0, "the slot one cycle behind");
        world.slot.1.push(Fields::of::<SlotGrant>().pack(&[("slot", 3), ("base", 640)]));
        world.tb.run(3);
        world.mr.1.push(Fields::of::<MrResp>().pack(&[("iova", 0x7000)]));
        let pay = world.pay.clone();
        assert_eq!(world.tb.latency(&pay, 20), 1, "answer to read");
        world.tb.run(20);
    }
}

/// Cycles per packet at an answer time of 8 cycles for keys and no stalls.
#[test]
fn it_is_fast_enough() {
    let mut world = World::new(5, 0, 8);
    let base = [("pd", 77u128), ("function", 99)];
    let small = entries(&mut world, 0, &[(0x100, 64, 8)]);
    let cycles = |world: &mut World, name: &str, most: f64| {
        let (start, packets) = (world.tb.cycles(), world.expected.len() as u64);
        while !world.expected.is_empty() {
            world.step();
        }
        let each = (world.tb.cycles() - start) as f64 / packets as f64;
        println!("gather: {name}: {each:.2} cycles per packet");
        assert!(each <= most, "{name}: {each:.2} cycles");
        world.finish();
    };
    for _ in 0..60 {
        world.send(&[&base[..], &[("num_sge", 1), ("pay_len", 64), ("free", 1)]].concat(), small.clone(), 0);
    }
    cycles(&mut world, "64 bytes, one entry", 2.3);
    let datagram = entries_at(&mut world, 4, 48, &[(0x100, 64, 8)]);
    for _ in 0..60 {
        let fields = [("handle", 4), ("num_sge", 1), ("pay_len", 64), ("free", 1), ("has_deth", 1), ("qp_type", 2)];
        world.send(&[&base[..], &fields].concat(), datagram.clone(), 0);
    }
    cycles(&mut world, "64 bytes, a datagram", 2.3);
    let long = entries(&mut world, 1, &[(0x123, 60 * 1024, 8)]);
    for n in 0..60usize {
        let fields = [("handle", 1), ("num_sge", 1), ("pay_off", n as u128 * 1024), ("pay_len", 1024), ("free", (n == 59).into())];
        world.send(&[&base[..], &fields].concat(), long[n * 1024..(n + 1) * 1024].to_vec(), 0);
    }
    cycles(&mut world, "1024 of a long unaligned message", 4.0);
    for _ in 0..60 {
        let payload = world.buffers[2][32..96].to_vec();
        world.send(&[&base[..], &[("handle", 2), ("inline_data", 1), ("pay_len", 64), ("free", 1)]].concat(), payload, 0);
    }
    cycles(&mut world, "64 bytes inline", 3.3);
}
