//! Frames that pass, frames that are marked, resets, and how long it takes.
use super::*;

/// Tunnels that are off change nothing, whatever comes; what comes through no tunnel passes as long as a function has none, and says whether that is the physical one.
#[test]
fn off_and_closed() {
    let mut b = Bench::<64, 8, 3>::new(20, 7);
    let (mut rng, mut seen) = (Rng::new(7), BTreeMap::new());
    let ctx = tunnel(false);
    let frames: Vec<(Vec<u8>, bool)> = (0..200).map(|_| (any_frame(&ctx, &mut rng), rng.percent(10))).collect();
    let off = ctx.with_valid(false);
    b.set(&alone(&off));
    // Through the block, and past it when there was silence.
    for _ in 0..2 {
        b.frames.clear();
        frames.iter().for_each(|(frame, bad)| b.receive(frame, *bad));
        b.drain();
        assert!(b.frames.iter().map(|(frame, bad, network)| (frame, bad, network)).eq(frames.iter().map(|(frame, bad)| (frame, bad, &[0, 0]))));
        assert!(b.stat.values().all(|n| *n == 0));
        b.drain();
    }
    // All have one that is being written: nobody gets a plain frame.
    b.set(&[off.with_bound(true); NF]);
    b.drain();
    b.frames.clear();
    (0..20).for_each(|_| b.receive(&frames[0].0, false));
    b.drain();
    assert_eq!((b.frames.len(), b.stat["miss"]), (0, 20));
    b.stat.insert("miss", 0);
    let frames: Vec<(Vec<u8>, bool)> = frames.into_iter().map(|f| (f.0, false)).collect();
    // All have one, also those whose lines are being written.
    let closed = [ctx, off.with_bound(true), ctx.with_vni(5), off.with_bound(true)];
    b.set(&closed);
    b.drain();
    compare(&mut b, &closed, &frames, &mut seen);
    assert!(seen["miss"] > 20 && !seen.contains_key("passed"), "{seen:?}");
    for open in 0..NF {
        let mut lines = closed;
        lines[open] = off;
        b.set(&lines);
        b.drain();
        compare(&mut b, &lines, &frames, &mut BTreeMap::new());
        let plain = if open == 0 { 0 } else { 0xfff };
        assert!(b.frames.iter().filter(|f| f.2 == [0, plain]).count() > 20, "{open}");
    }
}

/// Nobody has a tunnel: frames take a cycle. Then somebody has one, in the middle of frames, and has none again: frames stay in order, a tunnel's leave with their outer header or without, others as they came.
fn nobody_has_a_tunnel<const W: usize, const K: usize, const LK: usize>(gaps: u32) {
    let mut b = Bench::<W, K, LK>::new(gaps, 10);
    let mut rng = Rng::new(10);
    let ctx = tunnel(false);
    let lines = [false, true].map(|valid| [TunnelCtx::default(), ctx.with_valid(valid), TunnelCtx::default(), TunnelCtx::default()]);
    b.set(&lines[0]);
    let mut sent = Vec::new();
    for round in 0..120u8 {
        if rng.percent(60) {
            (0..100).for_each(|_| b.cycle());
        }
        for n in 0..20u8 {
            let mut inner = rng.bytes(60);
            inner[12..16].copy_from_slice(&[0x99, 0, round, n]);
            let more = rng.below(300) as usize + 4;
            inner.extend(rng.bytes(more));
            let frame = match rng.below(5) {
                0 | 1 => outer(&ctx, &mut rng, &inner),
                // What stands in a plain frame is no packet of the tunnel, wherever a beat begins.
                2 => [inner[..64].to_vec(), outer(&ctx, &mut rng, &inner)].concat(),
                _ => inner.clone(),
            };
            b.receive(&frame, false);
            sent.push((inner, frame));
        }
        if rng.percent(20) {
            // The wire pauses in the middle of a frame.
            (0..rng.below(10)).for_each(|_| b.cycle());
            let gaps = std::mem::replace(&mut b.gaps, 100);
            (0..100).for_each(|_| b.cycle());
            b.gaps = gaps;
        }
        (0..rng.below(200)).for_each(|_| b.cycle());
        b.set(&lines[rng.below(2) as usize]);
        while !b.beats.is_empty() {
            b.cycle();
        }
    }
    b.drain();
    assert_eq!(b.frames.len(), sent.len());
    let mut stripped = 0;
    for ((inner, frame), (out, bad, network)) in sent.iter().zip(&b.frames) {
        assert!(!bad);
        if out != frame {
            stripped += 1;
            assert_eq!((out, network), (inner, &[1, Through::Whole(1).bits().into()]));
        } else {
            assert_eq!(network, &[0, 0]);
        }
    }
    assert!(stripped > 100 && stripped == b.stat["stripped"], "{stripped} came through the tunnel");
}

#[test]
fn frames_go_by_while_nobody_has_a_tunnel() {
    nobody_has_a_tunnel::<512, 64, 6>(0);
    nobody_has_a_tunnel::<512, 64, 6>(30);
    nobody_has_a_tunnel::<64, 8, 3>(0);
    nobody_has_a_tunnel::<64, 8, 3>(30);
}

/// What the MAC has found bad stays bad, and no beat of a frame under way outlives a reset.
#[test]
fn bad_frames_and_resets() {
    let mut b = Bench::<512, 64, 6>::new(0, 8);
    let mut rng = Rng::new(8);
    let ctx = tunnel(false);
    b.set(&alone(&ctx));
    b.drain();
    let mut inner = rng.bytes(500);
    inner[12] = 0x99;
    let frame = outer(&ctx, &mut rng, &inner);
    b.receive(&frame, true);
    b.drain();
    assert_eq!(b.frames, [(inner.clone(), true, [1, Through::Whole(0).bits().into()])]);
    assert!(b.stat.values().all(|n| *n == 0));
    for cycles in 1..40 {
        b.frames.clear();
        b.out.clear();
        b.network = None;
        b.receive(&frame, false);
        (0..cycles).for_each(|_| b.cycle());
        b.beats.clear();
        b.tb.set("s$valid", 0);
        b.tb.reset();
        b.frames.clear();
        b.out.clear();
        b.network = None;
        b.receive(&frame, false);
        b.drain();
        assert_eq!(b.frames, [(inner.clone(), false, [1, Through::Whole(0).bits().into()])], "{cycles}");
    }
}

/// Cycles from the last beat of a frame to its last beat behind the block; README.md has them.
#[test]
fn latency() {
    fn of<const W: usize, const K: usize, const LK: usize>(len: usize) -> u64 {
        let mut b = Bench::<W, K, LK>::new(0, 9);
        let ctx = tunnel(false);
        b.set(&alone(&ctx));
        b.drain();
        let mut inner = vec![2; len];
        inner[12] = 0x99;
        let mut frame = outer(&ctx, &mut Rng::new(3), &inner);
        let l3 = if frame[12] == 8 { 14 } else { 18 };
        frame.truncate(l3 + 20 + 16 + len);
        b.receive(&frame, false);
        let mut cycles = 0;
        while b.frames.is_empty() {
            b.cycle();
            cycles += u64::from(b.beats.is_empty());
        }
        cycles
    }
    assert_eq!([64, 1500].map(of::<512, 64, 6>), [18, 18]);
    assert_eq!([64, 1500].map(of::<64, 8, 3>), [31, 32]);
}
