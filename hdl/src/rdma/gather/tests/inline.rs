//! Inline data of requests.

use super::*;

/// While no slot is free inline data wait in their buffer: it does not go back, whatever gives it back.
#[test]
fn a_buffer_stays_until_its_inline_data_have_been_read() {
    for (seed, end) in (0..60).map(|n| (n, n % 3)) {
        let mut world = World::new(700 + seed, 0, 5);
        (world.spoils, world.full) = (true, true);
        let bytes = world.tb.rng().bytes(480);
        world.buffers[5][32..].copy_from_slice(&bytes);
        let op = |off: u128, len: u128, free: u128| [("pd", 77u128), ("function", 99), ("handle", 5), ("inline_data", 1), ("pay_off", off), ("pay_len", len), ("free", free)];
        world.send(&op(0, 256, 0), bytes[..256].to_vec(), 0);
        match end {
            // The rest; an order that is nothing but the end; a packet beyond the data.
            0 => world.send(&op(256, 224, 1), bytes[256..].to_vec(), 0),
            1 => world.send(&[("handle", 5), ("opcode", OP_FREE.into()), ("free", 1)], Vec::new(), 0),
            _ => world.send(&op(256, 225, 1), vec![0; 225], 1),
        }
        (0..100).for_each(|_| world.step());
        assert!(world.frees.is_empty());
        world.full = false;
        world.finish();
        assert_eq!(world.frees, [5]);
    }
}

/// A buffer whose fetch has failed: the packet is not sent, those around it are.
#[test]
fn inline_data_that_cannot_be_read_abort_their_packet() {
    let mut world = World::new(8, 20, 5);
    for handle in 0..12u64 {
        let bytes = world.tb.rng().bytes(480);
        world.buffers[handle as usize][32..].copy_from_slice(&bytes);
        // In the middle of the data.
        world.failed.extend((handle % 3 == 1).then_some((handle, 9)));
        let len = 300 - 5 * handle as usize;
        let op = [("pd", 77u128), ("function", 99), ("handle", handle.into()), ("inline_data", 1), ("pay_len", len as u128), ("free", 1)];
        world.send(&op, bytes[..len].to_vec(), u8::from(handle % 3 == 1));
    }
    world.finish();
    assert_eq!(world.frees.len(), 12);
}

/// Every length and every place in a row, at the beginning and behind an address.
#[test]
fn inline_data_of_every_length_arrive() {
    for datagram in [false, true] {
        let front = if datagram { 48 } else { 32 };
        let mut world = World::new(9, 0, 0);
        world.spoils = true;
        for len in 0..=512 - front {
            let handle = len % 64;
            while world.expected.len() > 40 {
                world.step();
            }
            let bytes = world.tb.rng().bytes(512 - front);
            world.buffers[handle][front..].copy_from_slice(&bytes);
            let (ipv6, vlan, imm) = (world.tb.rng().below(2), world.tb.rng().below(2), world.tb.rng().below(2));
            let op = [
                ("pd", 77u128),
                ("function", 99),
                ("handle", handle as u128),
                ("inline_data", 1),
                ("pay_len", len as u128),
                ("free", 1),
                ("has_deth", datagram.into()),
                ("qp_type", 2 * u128::from(datagram)),
                ("ipv6", ipv6.into()),
                ("vlan", vlan.into()),
                ("has_imm", imm.into()),
            ];
            world.send(&op, bytes[..len].to_vec(), 0);
        }
        world.finish();
    }
}
