//! The gatherer against buffers, keys, slots and an assembly memory in Rust.

mod inline;
mod pace;
mod stale;
mod world;

use crate::msg::*;
use crate::roce::req_tx::OP_FREE;
use crate::tb::{Fields, Rng};
use world::*;

/// Fills buffer `handle` with a list of entries; gives the message they hold.
fn entries(world: &mut World, handle: usize, list: &[(u64, u32, u32)]) -> Vec<u8> {
    entries_at(world, handle, 32, list)
}

/// The same from byte `at` on.
fn entries_at(world: &mut World, handle: usize, at: usize, list: &[(u64, u32, u32)]) -> Vec<u8> {
    let mut message = Vec::new();
    let start = at;
    for (n, (addr, length, key)) in list.iter().enumerate() {
        let sge = ferric_abi::host::Sge::default().with_addr(*addr).with_length(*length).with_lkey(*key);
        world.buffers[handle][start + 16 * n..start + 16 + 16 * n].copy_from_slice(&sge.0);
        message.extend((0..u64::from(*length)).map(|at| host(translate(*key, addr.wrapping_add(at)))));
    }
    message
}

fn random_list(rng: &mut Rng) -> Vec<(u64, u32, u32)> {
    let count = if rng.percent(10) { 30 } else { rng.range(1, 4) };
    let entry = |rng: &mut Rng| {
        let length = match rng.below(6) {
            0 => 0,
            1 => rng.range(1, 20),
            2 if count < 5 => rng.range(1, 9000),
            _ => rng.range(1, 1500),
        };
        let addr = if rng.percent(30) { rng.next_u64() & !0xfff } else { rng.next_u64() };
        (addr, length as u32, rng.next_u32() >> 1 & !7)
    };
    (0..count).map(|_| entry(rng)).collect()
}

/// Random messages in random pieces, several in turn, as req_tx orders them.
fn random_traffic(seed: u64, stall: u32, mr_latency: u64) {
    let mut world = World::new(seed, stall, mr_latency);
    world.spoils = true;
    for _ in 0..25 {
        // Up to three messages whose packets mix.
        let mut open: Vec<(usize, Vec<u8>, usize, Vec<(&str, u128)>)> = Vec::new();
        let mut freed = Vec::new();
        for handle in 0..world.tb.rng().range(1, 3) as usize {
            let inline = world.tb.rng().percent(25);
            // A datagram's address stands in front, and it is one packet.
            let datagram = world.tb.rng().percent(25);
            let front = if datagram { 48 } else { 32 };
            let (message, count) = if inline {
                let bytes = world.tb.rng().bytes(512 - front);
                world.buffers[handle][front..].copy_from_slice(&bytes);
                let len = world.tb.rng().range(0, bytes.len() as u64) as usize;
                (bytes[..len].to_vec(), world.tb.rng().below(256))
            } else {
                let mut list = random_list(world.tb.rng());
                if datagram {
                    list.truncate(29);
                    let most = 4096 / list.len() as u32;
                    list.iter_mut().for_each(|entry| entry.1 = entry.1.min(most));
                }
                (entries_at(&mut world, handle, front, &list), list.len() as u64)
            };
            let rng = world.tb.rng();
            let raw = !datagram && message.len() < 8000 && !message.is_empty() && rng.percent(15);
            let mtu = if raw || datagram { 1 << 20 } else { 256 << rng.below(5) };
            let fields = vec![
                ("handle", handle as u128),
                ("num_sge", count.into()),
                ("inline_data", inline.into()),
                ("pd", 77),
                ("function", 99),
                ("qp_type", if raw { 3 } else { 2 * u128::from(datagram) }),
                ("has_deth", datagram.into()),
                ("ipv6", rng.below(2).into()),
                ("vlan", rng.below(2).into()),
                ("dma_len", message.len() as u128),
                ("qpn", rng.below(1 << 24).into()),
                ("dest_qpn", rng.below(1 << 24).into()),
                ("epoch", rng.below(256).into()),
                ("opcode", rng.below(12).into()),
                ("raddr", rng.next_u64().into()),
                ("rkey", rng.next_u32().into()),
                ("imm", rng.next_u32().into()),
                ("wqe_index", rng.below(65536).into()),
            ];
            open.push((0, message, mtu, fields));
        }
        while !open.is_empty() {
            let pick = world.tb.rng().below(open.len() as u64) as usize;
            for _ in 0..world.tb.rng().range(1, 5) {
                let (at, message, mtu, fields) = &mut open[pick];
                let len = (message.len() - *at).min(*mtu);
                let last = *at + len == message.len();
                let rng = world.tb.rng();
                let (raw, datagram) = (fields.contains(&("qp_type", 3)), fields.contains(&("qp_type", 2)));
                let apart = last && rng.percent(20);
                let mut op = fields.clone();
                op.extend([
                    ("pay_off", *at as u128),
                    ("pay_len", len as u128),
                    ("free", (last && !apart).into()),
                    ("psn", rng.below(1 << 24).into()),
                    ("has_reth", (*at == 0 && !raw && !datagram && rng.percent(50)).into()),
                    ("has_imm", (last && !raw && rng.percent(50)).into()),
                    ("notify", rng.below(2).into()),
                    ("ack_req", rng.below(2).into()),
                    ("solicited", rng.below(2).into()),
                ]);
                let payload = message[*at..*at + len].to_vec();
                *at += len;
                let handle = fields[0].1;
                world.send(&op, payload, 0);
                if world.tb.rng().percent(20) {
                    // A reply between two packets of a message: the message's list must be found again.
                    let rng = world.tb.rng();
                    let (va, len) = (rng.next_u64(), rng.range(0, 4096));
                    let key = 1 << 31 | rng.next_u32() & if rng.percent(90) { !7 } else { !5 };
                    world.answer(va, len, key);
                }
                if apart {
                    world.send(&[("handle", handle), ("opcode", OP_FREE.into()), ("free", 1)], Vec::new(), 0);
                }
                if last {
                    freed.push(handle as u64);
                    open.remove(pick);
                    break;
                }
            }
        }
        world.finish();
        // Those of inline data come back later than others.
        world.frees.sort();
        freed.sort();
        assert_eq!(std::mem::take(&mut world.frees), freed);
    }
}

#[test]
fn payload_arrives_where_it_belongs() {
    random_traffic(1, 0, 8);
    random_traffic(2, 40, 0);
    random_traffic(3, 20, 60);
}

/// Packets of two messages take turns: each resumes where the other stopped, but in its own list.
#[test]
fn messages_that_take_turns_keep_their_lists() {
    let mut world = World::new(7, 10, 5);
    let messages: Vec<_> = (0..2usize)
        .map(|handle| {
            let (addr, key) = (0x5_0000 + 0x123 * handle as u64, 8 + 8 * handle as u32);
            entries(&mut world, handle, &[(addr, 700, key), (addr << 8, 4000, key)])
        })
        .collect();
    for at in (0..4700usize).step_by(512) {
        for (handle, message) in messages.iter().enumerate() {
            let end = message.len().min(at + 512);
            let fields = [
                ("pd", 77u128),
                ("function", 99),
                ("handle", handle as u128),
                ("num_sge", 2),
                ("dma_len", 4700),
                ("pay_off", at as u128),
                ("pay_len", (end - at) as u128),
                ("free", (end == message.len()).into()),
            ];
            world.send(&fields, message[at..end].to_vec(), 0);
        }
    }
    world.finish();
    assert_eq!(world.frees, [0, 1]);
}

/// Packets, entries and pages that end together: nothing is left of one of them.
#[test]
fn what_ends_with_its_page_has_nothing_behind_it() {
    let mut world = World::new(8, 10, 5);
    // An entry that ends with its page, one that a packet leaves at the end of a page, one of just a page.
    let list = [(0x1f00, 0x100, 8), (0x2e00, 0x400, 16), (0x5000, 0x1000, 24)];
    let message = entries(&mut world, 0, &list);
    let mut at = 0;
    for len in [0x80, 0x280, 0x200, 0x1000] {
        let fields = [("pd", 77u128), ("function", 99), ("num_sge", 3), ("dma_len", 0x1500), ("pay_off", at as u128), ("pay_len", len as u128)];
        world.send(&fields, message[at..at + len].to_vec(), 0);
        at += len;
    }
    world.finish();
}

#[test]
fn errors_abort_the_packet_and_nothing_else() {
    for stall in [0, 30] {
        let mut world = World::new(4, stall, 5);
        let base = [("pd", 77u128), ("function", 99), ("qpn", 9), ("free", 1)];
        let op = |handle: u128, count: u128, len: u128, more: &[(&'static str, u128)]| {
            let fixed = [("handle", handle), ("num_sge", count), ("pay_len", len), ("dma_len", len)];
            [&base[..], &fixed, more].concat()
        };
        // Good, key refused with each status in the first, then in the last of three entries, good again.
        for bad in 0..14u32 {
            let status = bad / 2 + 1;
            let keys = if bad % 2 == 0 { [status, 8, 16] } else { [8, 16, status] };
            let list: Vec<_> = keys.iter().map(|key| (0x1ff0, 300, *key)).collect();
            let message = entries(&mut world, bad as usize, &list);
            let expected = match key_status(status) {
                0 => 0,
                6 => 19,
                _ => 4,
            };
            world.send(&op(bad.into(), 3, 900, &[]), message, expected);
        }
        // Entries shorter than the packet; too many; none; inline data beyond the buffer.
        let short = entries(&mut world, 20, &[(0, 100, 8), (0, 100, 8)]);
        world.send(&op(20, 2, 201, &[]), [short.clone(), vec![0]].concat(), 1);
        entries(&mut world, 21, &[(0, 100, 8); 30]);
        world.send(&op(21, 31, 10, &[]), vec![0; 10], 1);
        world.send(&op(22, 0, 10, &[]), vec![0; 10], 1);
        world.send(&op(22, 0, 0, &[]), Vec::new(), 0);
        world.send(&op(23, 0, 256, &[("inline_data", 1), ("pay_off", 256)]), vec![0; 256], 1);
        world.send(&op(20, 2, 200, &[]), short, 0);
        // An address takes the place of an entry.
        entries_at(&mut world, 24, 48, &[(0, 100, 8); 29]);
        world.send(&op(24, 30, 10, &[("has_deth", 1), ("qp_type", 2)]), vec![0; 10], 1);
        world.send(&op(25, 0, 465, &[("inline_data", 1), ("has_deth", 1), ("qp_type", 2)]), vec![0; 465], 1);
        world.finish();
        assert_eq!(world.frees.len(), 22);
    }
}

/// A fence passes when the payload of every order taken before has been asked of the host, however much comes behind.
#[test]
fn a_fence_waits_for_the_payload_of_orders_before_it() {
    for seed in 0..8 {
        let mut w = World::new(300 + seed, 20, 150);
        for n in 0..120u64 {
            w.answer(0x10_0000 + 4096 * n, 200, 1 << 31);
        }
        let loaded: Vec<_> = w.expected.iter().map(|p| !p.payload.is_empty()).collect();
        for _ in 0..6 {
            // It makes no packet: nobody waits for one.
            w.op.push(Fields::of::<TxOp>().pack(&[("handle", 1), ("opcode", OP_FREE.into()), ("free", 1)]));
        }
        let wait = 20 * seed;
        (0..wait).for_each(|_| w.step());
        w.tb.set("fence", 1);
        w.step();
        w.tb.set("fence", 0);
        let before = loaded[..w.reply.taken() as usize].iter().filter(|l| **l).count() as u64;
        let start = w.tb.cycles();
        while w.tb.get("passed") == 0 {
            assert!(w.tb.cycles() - start < 6000, "does not end");
            w.step();
        }
        let asked = w.pay.taken();
        assert!(asked >= before, "{asked} reads of {before}");
        assert!(w.reply.pending() > 0, "waited for all");
        w.finish();
        // With nothing under way there is nothing to wait for.
        w.tb.set("fence", 1);
        w.step();
        w.tb.set("fence", 0);
        w.tb.run_until(50, |tb| tb.get("passed") == 1);
    }
}
