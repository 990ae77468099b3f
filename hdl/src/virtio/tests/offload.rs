//! Checksums that are asked for, and verdicts on those that come, beside the golden model.
use super::*;
use crate::net::l4::testing::packet;

/// Drivers of two functions, one of which has its checksums offloaded; both ask for them, and for what nobody offers. Packets of all kinds come to both.
fn offloads(width: usize, seed: u64, stall: u32, frames: usize, packed: bool) {
    let mut b = Bench::new(width, seed, stall);
    for (queue, size) in [(0, 64), (1, 64), (2, 64), (3, 64)] {
        let mut ring = Ring::new(queue, 1 + queue / 2, size, if queue % 2 == 0 { Kind::Receive } else { Kind::Transmit }, true, &mut b.guest);
        (ring.sums, ring.asks, ring.merged) = (queue < 2, true, queue % 2 == 0 && seed % 2 == 0);
        b.begin(if packed { ring.packed() } else { ring });
    }
    let limit = b.tb.cycles() + 600_000 + 6000 * frames as u64;
    loop {
        b.cycle();
        b.turn();
        let offered: usize = b.offered.values().map(Vec::len).sum();
        if offered < frames && b.tb.rng().below(500) == 0 {
            let (queue, frame) = (2 * b.tb.rng().below(2) as u16, packet(b.tb.rng()));
            b.offer_frame(queue, frame);
        }
        for ring in &mut b.rings {
            ring.stops = ring.kind == Kind::Transmit && ring.posted >= frames as u64 / 2;
        }
        let sent = b.rings.iter().filter(|r| r.kind == Kind::Transmit).all(|r| r.stops && r.returned == r.posted && b.left.get(&r.queue).copied().unwrap_or_default() == r.frames.len() as u64);
        let came = offered >= frames && [0, 2].iter().all(|q| b.rings[usize::from(*q)].received + b.dropped(*q) == b.offered.get(q).map_or(0, Vec::len) as u64);
        if sent && came {
            break;
        }
        assert!(b.tb.cycles() < limit, "{:?}", b.rings.iter().map(|r| (r.queue, r.frames.len(), r.refused, r.posted, r.returned, r.received)).collect::<Vec<_>>());
    }
    for n in [1, 3] {
        let ring = &b.rings[n];
        assert_eq!(b.told(ring.queue, VirtioCause::BadOffload), ring.refused, "queue {n}");
        assert_eq!(ring.frames.len() as u64 + ring.refused, ring.posted);
    }
    let [received, sent, plain, refused] = [0, 1, 2, 3].map(|n| &b.rings[n]);
    assert!(sent.summed > frames as u64 / 8 && sent.refused > frames as u64 / 20, "{} sums, {} refused", sent.summed, sent.refused);
    assert!(refused.summed == 0 && refused.refused > frames as u64 / 6, "{} refused", refused.refused);
    assert!(received.sound > frames as u64 / 8 && received.received > received.sound + frames as u64 / 16, "{} of {} verified", received.sound, received.received);
    assert!(plain.sound == 0 && plain.received > frames as u64 / 8);
}

#[test]
fn checksums_are_offloaded_w64() {
    offloads(64, 31, 20, 400, false);
    offloads(64, 32, 0, 200, true);
}

#[test]
fn checksums_are_offloaded_w512() {
    offloads(512, 33, 20, 400, true);
    offloads(512, 34, 0, 200, false);
}
