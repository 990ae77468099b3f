//! Frames off the wire and of functions become one stream.
use super::super::arrive::{Arrive, STATS};
use super::model::Network;
use super::{drive, network, packed, packed_sender, sender, shown, Sender};
use crate::tb::Tb;
use std::collections::VecDeque;

/// A frame, whether it is bad, its network, and who has sent it, if a function did.
type Frame = (Vec<u8>, bool, Network, Option<Sender>);

struct Bench<const W: usize, const K: usize> {
    tb: Tb,
    /// Beats that are to come, off the wire and from functions.
    wire: VecDeque<(Vec<u8>, bool, bool, Network)>,
    local: VecDeque<(Vec<u8>, bool, Network, Sender)>,
    /// Of a hundred cycles, those in which the wire brings a beat, and a function does.
    rates: [u32; 2],
    inside: bool,
    out: Vec<Frame>,
    now: Vec<u8>,
    lost: u64,
}

impl<const W: usize, const K: usize> Bench<W, K> {
    fn new(rates: [u32; 2], seed: u64) -> Self {
        let tb = Tb::with_seed(&format!("arrive{W}"), Arrive::<W, K>::default(), seed);
        let (wire, local, out, now) = Default::default();
        Bench { tb, wire, local, rates, inside: false, out, now, lost: 0 }
    }

    fn push(&mut self, frame: &Frame) {
        let (bytes, bad, network, sender) = frame;
        let count = bytes.len().div_ceil(K);
        for (n, beat) in bytes.chunks(K).enumerate() {
            let last = n + 1 == count;
            match sender {
                Some(sender) => self.local.push_back((beat.to_vec(), last, *network, *sender)),
                // Of a bad frame the last beat says so; before that the signal means nothing.
                None => self.wire.push_back((beat.to_vec(), last, *bad && last, *network)),
            }
        }
    }

    fn cycle(&mut self) {
        let [wire, local] = self.rates.map(|rate| self.tb.rng().percent(rate));
        let beat = if wire { self.wire.pop_front() } else { None };
        drive(&mut self.tb, "s", beat.as_ref().map(|(bytes, last, ..)| (&bytes[..], *last)), K);
        self.tb.set("s_err", beat.as_ref().is_some_and(|beat| beat.2).into());
        if let Some((.., network)) = &beat {
            self.tb.set_wide("s_network", &packed(*network)[..]);
        }
        // A frame begins if there is room for it.
        let may = local && (self.inside || self.tb.get("room") == 1);
        let beat = if may { self.local.pop_front() } else { None };
        drive(&mut self.tb, "s_local", beat.as_ref().map(|(bytes, last, ..)| (&bytes[..], *last)), K);
        if let Some((_, last, network, sender)) = &beat {
            self.tb.set_wide("origin", &packed_sender(*sender)[..]);
            self.tb.set_wide("network", &packed(*network)[..]);
            self.inside = !last;
        }
        self.tb.cycle();
        assert_eq!((self.tb.get("s$ready"), self.tb.get("s_local$ready")), (1, 1));
        self.lost += self.tb.get("stat");
        if let Some((bytes, last)) = shown(&self.tb, "m") {
            self.now.extend(bytes);
            if last {
                let whole = std::mem::take(&mut self.now);
                self.out.push((whole, self.tb.get("m_err") == 1, network(&self.tb, "m_network"), sender(&self.tb, "m_origin")));
            }
        }
    }

    fn run(&mut self) {
        let mut idle = 0;
        while idle < 100 {
            let before = (self.wire.len(), self.local.len(), self.out.len(), self.now.len());
            self.cycle();
            idle = if before == (self.wire.len(), self.local.len(), self.out.len(), self.now.len()) { idle + 1 } else { 0 };
        }
    }

    /// The first byte says where it is from.
    fn any(&mut self, local: bool, longest: u64) -> Frame {
        let rng = self.tb.rng();
        let bytes = if rng.percent(70) { rng.range(14, 200) } else { rng.range(14, longest) } as usize;
        let mut frame = rng.bytes(bytes);
        frame[0] = local.into();
        let function = rng.below(4) as u16;
        (frame, !local && rng.percent(10), Network { tunnel: rng.percent(50), function }, local.then(|| (rng.below(64) as u16, rng.below(64) as u16)))
    }
}

fn random<const W: usize, const K: usize>(rates: [u32; 2], seed: u64, frames: usize) {
    assert_eq!(STATS, ["local_wire_lost"]);
    let mut b = Bench::<W, K>::new(rates, seed);
    let mut sent: [Vec<Frame>; 2] = Default::default();
    for _ in 0..frames {
        let local = rates[1] > 0 && b.tb.rng().percent(50);
        let frame = b.any(local, 9000);
        b.push(&frame);
        sent[usize::from(local)].push(frame);
        if b.tb.rng().percent(10) {
            b.run();
        }
    }
    b.run();
    let mut got: [Vec<Frame>; 2] = Default::default();
    b.out.iter().for_each(|frame| got[usize::from(frame.0[0])].push(frame.clone()));
    assert!(got == sent, "{} and {} of {} and {} frames", got[0].len(), got[1].len(), sent[0].len(), sent[1].len());
    assert_eq!(b.lost, 0);
}

/// The wire brings as much as a 100G MAC does, 49 of 64 bytes a cycle, or less: all frames go on whole, those of each side in their order.
#[test]
fn both_sides_become_one_stream() {
    random::<64, 8>([76, 100], 1, 300);
    random::<64, 8>([30, 60], 2, 200);
    random::<512, 64>([76, 100], 3, 1500);
    random::<512, 64>([40, 100], 4, 500);
    random::<512, 64>([100, 0], 5, 300);
}

/// Nothing off the wire waits a cycle longer than the register while no function sends.
#[test]
fn a_frame_off_the_wire_takes_a_cycle() {
    let mut b = Bench::<512, 64>::new([100, 100], 6);
    let frame = b.any(false, 300);
    b.push(&frame);
    let beats = b.wire.len();
    (0..beats + 1).for_each(|_| b.cycle());
    assert_eq!(b.out, [frame]);
}

/// A wire without a gap: a frame of a function that has begun ends, what the queue cannot hold is counted, and no frame goes on as a good one that is not whole.
#[test]
fn a_wire_without_gaps_loses_what_does_not_fit() {
    fn full<const W: usize, const K: usize>(seed: u64) {
        let mut b = Bench::<W, K>::new([100, 100], seed);
        let mut sent: [Vec<Frame>; 2] = Default::default();
        for n in 0..40 {
            let (mut local, mut wire) = (b.any(true, 200), Vec::new());
            local.0.resize(16_383, n);
            b.push(&local);
            sent[1].push(local);
            // A pause lets the next one of them begin; then the wire brings more than two of them.
            b.rates = [0, 100];
            (0..b.local.len() + 3).for_each(|_| b.cycle());
            b.rates = [100, 100];
            while wire.iter().map(|frame: &Frame| frame.0.len()).sum::<usize>() < 24_000 {
                let mut frame = b.any(false, 1500);
                frame.1 = false;
                b.push(&frame);
                wire.push(frame);
            }
            sent[0].extend(wire);
            for n in 0..3 {
                let local = b.any(true, 2000 + n);
                b.push(&local);
                sent[1].push(local);
            }
            while !b.wire.is_empty() {
                b.cycle();
            }
            b.run();
        }
        let mut got: [Vec<Frame>; 2] = Default::default();
        b.out.iter().for_each(|frame| got[usize::from(frame.0[0])].push(frame.clone()));
        assert!(got[1] == sent[1], "functions lose nothing");
        let cut = got[0].iter().filter(|frame| frame.1).count() as u64;
        let mut whole = got[0].iter().filter(|frame| !frame.1);
        let mut missing = 0;
        let mut next = whole.next();
        for frame in &sent[0] {
            if next == Some(frame) {
                next = whole.next();
            } else {
                missing += 1;
            }
        }
        assert_eq!((next, missing), (None, b.lost), "in order, and every other one is counted");
        println!("{missing} of {} lost, {cut} of them cut", sent[0].len());
        assert!(missing > 0 && cut <= missing, "{cut} cut of {missing}");
    }
    full::<512, 64>(7);
    full::<64, 8>(8);
}
