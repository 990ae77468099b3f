//! Random packets to queue pairs of every kind: what a correct peer sends, now and then spoilt.
use super::super::model::{self, Act, Grant, Packet, Qp};
use super::bench::{write_qp, Bench, RAW_QPN};
use crate::tb::Rng;
use std::collections::BTreeMap;

pub fn random_qp(rng: &mut Rng, id: u32) -> Qp {
    Qp {
        state: [2, 3, 3, 3, 3, 3, 1, 6][rng.below(8) as usize],
        qp_type: if id == RAW_QPN { 3 } else { [0, 0, 0, 1, 2][rng.below(5) as usize] },
        pmtu: rng.range(1, 5) as u8,
        min_rnr_timer: rng.below(32) as u8,
        repeat_nak: rng.below(2) == 0,
        remote_write: rng.percent(95),
        remote_read: rng.percent(95),
        remote_atomic: rng.percent(95),
        remote_flush: rng.percent(95),
        epoch: rng.next_u32() as u8,
        rcqn: rng.next_u32() >> 8,
        pd: rng.next_u32() >> 8,
        function: (rng.next_u32() >> 20) as u16,
        pkey: 0xffff - rng.below(2) as u16 * 0x8000,
        qkey: rng.next_u32(),
        dest_qpn: rng.next_u32() >> 8,
        ipv6: rng.percent(50),
        vlan: rng.percent(50),
        epsn: if rng.percent(30) { 0xff_ffff - rng.below(20) as u32 } else { rng.next_u32() >> 8 },
        msn: rng.next_u32() >> 8,
        max_dest_rd_atomic: [0, 1, 2, 4, 16, 16, 16, 16][rng.below(8) as usize],
        rq: rng.next_u32() >> 8,
        srq: id != RAW_QPN && rng.percent(50),
        rq_pd: rng.next_u32() >> 8,
        ..Qp::default()
    }
}

/// The next packet a correct peer would send to `qp`, now and then spoilt.
fn random_packet(rng: &mut Rng, id: u32, qp: &Qp) -> Packet {
    let mtu = 128u32 << qp.pmtu;
    let start = qp.message.is_none();
    let write = qp.message.as_ref().map_or(rng.percent(50), |m| m.write);
    let rest = qp.message.as_ref().map_or(0, |m| m.remaining);
    let mut dma_len = rng.below(u64::from(4 * mtu)) as u32;
    let last = if start && write {
        dma_len <= mtu
    } else if write {
        rest <= mtu
    } else {
        rng.percent(40)
    };
    let pay_len = match (last, write) {
        (false, _) => mtu,
        (true, true) => {
            if start {
                dma_len
            } else {
                rest
            }
        }
        (true, false) => rng.range(u64::from(!start), mtu.into()) as u32,
    };
    let position = match (start, last) {
        (true, false) => 0,
        (false, false) => 1,
        (false, true) => 2 + rng.below(2) as u8,
        (true, true) => 4 + rng.below(2) as u8,
    };
    let class = if qp.qp_type == 1 { 0x20 } else { 0 };
    if qp.qp_type == 2 {
        return random_datagram(rng, id, qp);
    }
    let mut p = Packet {
        raw: id == RAW_QPN,
        handle: rng.next_u32() >> 20,
        frame_len: rng.range(60, 4200) as u32,
        pay_off: rng.range(54, 90) as u32,
        pay_len,
        pad: (4 - pay_len % 4) % 4,
        opcode: class | (position + if write { 6 } else { 0 }),
        ack_req: rng.percent(50),
        solicited: rng.percent(50),
        pkey: 0xffff,
        qpn: id,
        psn: qp.epsn,
        va: rng.next_u64(),
        rkey: rng.next_u32(),
        dma_len,
        imm: rng.next_u32(),
        operand: rng.next_u64(),
        compare: rng.next_u64(),
        qkey: rng.next_u32(),
        src_qpn: rng.next_u32() >> 8,
        v6: rng.percent(50),
        tag: rng.percent(50),
    };
    if qp.qp_type == 0 && rng.percent(if start { 40 } else { 3 }) {
        (p.pay_len, p.pad) = (0, 0);
        p.opcode = [0x0c, 0x0c, 0x13, 0x14, 0x1c, 0x1d][rng.below(6) as usize];
        p.dma_len = [0, 1, mtu, mtu + 1, 5 * mtu, rng.next_u32() >> rng.below(32), 1 << 31][rng.below(7) as usize];
        p.va &= if rng.percent(98) { !7 } else { !0 };
        // Placement type and level of a FLUSH; an ATOMIC WRITE has 8 bytes, now and then fewer or more.
        p.imm = p.imm << 6 | [1, 0x11, 1, 0x11, 1, 0x11, 2, 3, 0x13, 0, 5, 9, 0x21][rng.below(13) as usize];
        if p.opcode == 0x1d {
            p.pay_len = [8, 8, 8, 8, 8, 8, 0, 4, 12][rng.below(9) as usize];
            p.dma_len = if rng.percent(90) { p.pay_len } else { p.dma_len };
        }
    }
    if last && !write && p.opcode < 6 && rng.percent(30) {
        p.opcode = 0x16 + u8::from(start);
    }
    if rng.percent(20) {
        // Of some gaps every 64th packet is a reminder, of those nearer than 255.
        let ahead = if rng.percent(30) { 64 * rng.range(1, 6) as u32 } else { rng.range(1, 8) as u32 };
        p.psn = (p.psn + ahead) & 0xff_ffff;
    } else if rng.percent(20) {
        let far = rng.range(1, 20);
        p.psn = p.psn.wrapping_sub(rng.range(1, 1 << far) as u32) & 0xff_ffff;
    }
    if last && write && p.pay_len > 4 && rng.percent(2) {
        // A message that ends before what its RETH announced, and nothing else wrong.
        p.pay_len -= 4;
    } else if last && mtu < 4096 && rng.percent(2) {
        // Too long for one packet, and nothing else wrong.
        p.pay_len = mtu + 4 * rng.range(1, 16) as u32;
        p.pad = 0;
        if start && write {
            p.dma_len = p.pay_len;
        }
    } else if rng.percent(5) {
        match rng.below(8) {
            0 => p.opcode = rng.next_u32() as u8,
            1 => p.opcode = class | rng.below(24) as u8,
            2 => p.pad = rng.below(4) as u32,
            3 => p.pay_len = rng.below(4097) as u32,
            4 => p.pkey = 0x7fff - rng.below(2) as u16,
            5 => p.qpn = 0x10_0000 + rng.below(20) as u32,
            6 => {
                dma_len = [0, mtu, 1 << 31, 0x8000_0001, u32::MAX][rng.below(5) as usize];
                p.dma_len = dma_len;
            }
            _ => p.psn ^= 1 << 23,
        }
    }
    if p.raw {
        // `net/rx` says nothing of a transport.
        p.opcode = 0;
    }
    p
}

/// A datagram for `qp`, now and then one that it must not take.
fn random_datagram(rng: &mut Rng, id: u32, qp: &Qp) -> Packet {
    let mtu = 128u32 << qp.pmtu;
    let pay_len = if rng.percent(15) { 0 } else { rng.range(1, mtu.into()) as u32 };
    let mut p = Packet {
        handle: rng.next_u32() >> 20,
        frame_len: rng.range(60, 4200) as u32,
        pay_off: rng.range(54, 90) as u32,
        pay_len,
        pad: (4 - pay_len % 4) % 4,
        opcode: 0x64 | rng.below(2) as u8,
        ack_req: rng.percent(50),
        solicited: rng.percent(50),
        pkey: 0xffff,
        qpn: id,
        psn: rng.next_u32() >> 8,
        va: rng.next_u64(),
        rkey: rng.next_u32(),
        dma_len: rng.next_u32(),
        imm: rng.next_u32(),
        qkey: qp.qkey,
        src_qpn: rng.next_u32() >> 8,
        v6: rng.percent(50),
        tag: rng.percent(50),
        ..Packet::default()
    };
    match rng.below(30) {
        0 => p.qkey ^= 1 << rng.below(32),
        1 => p.pkey ^= 1 << rng.below(16),
        2 => p.opcode = 0x60 | rng.below(32) as u8,
        3 => p.opcode ^= 0x20 << rng.below(3),
        4 => p.pad = rng.below(4) as u32,
        5 if mtu < 4096 => (p.pay_len, p.pad) = (mtu + 4, 0),
        _ => {}
    }
    p
}

fn random_streams(name: &str, stall: u32, latency: (u64, u64), rounds: u32, packets: u32) {
    let mut bench = Bench::new(name, stall, latency);
    let mut seen = BTreeMap::<u8, u32>::new();
    for _ in 0..rounds {
        let mut golden = model::Responder { raw_qpn: Some(RAW_QPN), ..Default::default() };
        // No receive of the round before is in hand any more.
        bench.reset();
        bench.store.lines.clear();
        for id in 0..12 {
            let qp = random_qp(bench.tb.rng(), id);
            bench.store.lines.insert(id, write_qp(&bench.store.layout, &qp));
            golden.qps.insert(id, qp);
        }
        let mut answered = [0; 12];
        for n in 0..packets {
            if n % 30 == 29 {
                // Replies: some of what is open is answered, while nothing is on its way.
                bench.settle();
                for (id, qp) in &mut golden.qps {
                    for _ in 0..bench.tb.rng().below(u64::from(qp.open) + 1) {
                        qp.open -= 1;
                        answered[*id as usize] += 1;
                        bench.answered(*id, qp.epoch, answered[*id as usize]);
                    }
                    // Of an earlier life, which has no meaning.
                    if answered[*id as usize] == 0 && bench.tb.rng().percent(50) {
                        let count = bench.tb.rng().below(32) as u32;
                        bench.answered(*id, qp.epoch.wrapping_sub(1), count);
                    }
                }
            }
            let id = bench.tb.rng().below(12) as u32;
            let p = random_packet(bench.tb.rng(), id, &golden.qps[&id]);
            let rng = bench.tb.rng();
            let answer = match rng.below(100) {
                // Only shared queues can be in error.
                0 if golden.qps[&id].srq => Grant::Dead,
                0..20 => Grant::None,
                // A buffer that no message has.
                n => {
                    let busy: Vec<u32> = golden.qps.values().filter_map(|qp| qp.receive).map(|(handle, _)| handle).collect();
                    let first = rng.below(64) as u32;
                    let handle = (0..64).map(|i| (first + i) % 64).find(|handle| !busy.contains(handle)).expect("more buffers than queue pairs");
                    Grant::Some(handle, (n as u32) << 9 | rng.below(1 << 9) as u32)
                }
            };
            golden.grants.push_back(answer);
            golden.packet(&p);
            if golden.grants.pop_front().is_none() {
                bench.answers.push_back(answer);
            }
            bench.send(&p);
        }
        bench.settle();
        bench.compare(&golden.acts);
        bench.compare_counts(&golden.requests);
        assert_eq!(std::mem::take(&mut bench.asked), golden.asked, "receive rings");
        for act in &golden.acts {
            if let Act::Place(order) = act {
                *seen.entry(order.syndrome.unwrap_or(0) >> 5 << 5 | order.kind.expect("each has one")).or_default() += 1;
            }
        }
        for (id, qp) in &golden.qps {
            let (expected, layout) = (write_qp(&bench.store.layout, qp), &bench.store.layout);
            let got = &bench.store.lines[id];
            // What is half done no longer matters once the queue pair is in error.
            let names = ["state", "epsn", "msn", "nak_sent", "rnr_sent", "ahead", "in_msg"];
            for name in &names[..if qp.state == 6 { 3 } else { 7 }] {
                assert_eq!(layout.get(got, name), layout.get(&expected, name), "queue pair {id}: {name}");
            }
        }
    }
    println!("{name}: {seen:x?}");
    assert!(seen.len() >= 5, "the traffic is too tame: {seen:x?}");
}

#[test]
fn random_packets_are_judged_as_the_model_does() {
    random_streams("resp", 30, (2, 40), 40, 150);
}

#[test]
fn slow_contexts_change_nothing() {
    random_streams("resp", 50, (2, 500), 4, 60);
}
