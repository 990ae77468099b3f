//! Frames of any length with checksums at any place, and received frames right and wrong, beside the golden model.
use super::fill::Fill;
use super::testing::packet;
use super::verify::Verify;
use crate::msg::{L4Order, L4Verdict, VqNotify};
use crate::tb::{AxisSink, AxisSource, Fields, Rng, Sink, Source, Tb};
use ferric_model::net::sums::{finish, pseudo, sum};
use ferric_model::virtio::offload::Offload;
use ferric_model::virtio::queue::Ticket;
use ferric_model::virtio::transmit::Frame;
use ferric_model::virtio::verdict::is_verified;
use std::collections::VecDeque;

/// Where a checksum is wanted: from which byte on, and where it stands.
type Order = Option<(usize, usize)>;

/// A frame as it leaves.
fn filled(frame: &[u8], order: Order) -> Vec<u8> {
    let offload = order.map(|(csum_start, csum_at)| Offload { csum_start, csum_at, segments: None });
    Frame { ticket: Ticket::default(), bytes: frame.to_vec(), offload }.segments().remove(0)
}

struct Filler {
    tb: Tb,
    frames: AxisSource,
    orders: Source,
    out: AxisSink,
    from: Sink,
    expected: VecDeque<(u64, Vec<u8>)>,
    offered: u64,
    too_long: u64,
}

impl Filler {
    /// A path of `width` bits that keeps 64 KiB, or (`small`) 16 beats.
    fn new(width: usize, small: bool, seed: u64, stall: u32) -> Self {
        let name = format!("l4_fill_w{width}");
        let mut tb = match (width, small) {
            (512, false) => Tb::with_seed(&name, Fill::<512, 64, 6, 10>::default(), seed),
            (512, true) => Tb::with_seed(&name, Fill::<512, 64, 6, 4>::default(), seed),
            (_, false) => Tb::with_seed(&name, Fill::<64, 8, 3, 13>::default(), seed),
            (_, true) => Tb::with_seed(&name, Fill::<64, 8, 3, 4>::default(), seed),
        };
        let (frames, orders) = (tb.axis_source("s_frame", stall), tb.source("s_order", stall));
        let (out, from) = (tb.axis_sink("m_frame", stall), tb.sink("m_from", stall));
        Self { tb, frames, orders, out, from, expected: VecDeque::new(), offered: 0, too_long: 0 }
    }

    /// A frame with what it wants, and what has to become of it.
    fn offer(&mut self, frame: &[u8], order: Order, leaves: Vec<u8>) {
        let queue = self.offered & 0xffff;
        self.offered += 1;
        // What is said of a frame that wants nothing means nothing.
        let (start, at) = order.map_or_else(|| (self.tb.rng().below(100), self.tb.rng().below(100)), |(start, at)| (start as u64, at as u64));
        self.orders.push(Fields::of::<L4Order>().pack(&[("queue", queue.into()), ("fills", order.is_some().into()), ("start", start.into()), ("at", at.into())]));
        self.frames.push(frame);
        self.expected.push_back((queue, leaves));
    }

    fn settle(&mut self) {
        let limit = self.tb.cycles() + 400_000;
        let (mut queues, mut frames) = (VecDeque::new(), VecDeque::new());
        while !self.expected.is_empty() {
            assert!(self.tb.cycles() < limit, "{} frames do not come", self.expected.len());
            self.tb.begin();
            self.too_long += self.tb.get("too_long");
            self.tb.end();
            while let Some(words) = self.from.pop() {
                queues.push_back(Fields::of::<VqNotify>().get(&words, "queue") as u64);
            }
            frames.extend(self.out.pop());
            while let (Some(_), Some(from)) = (frames.front(), queues.front()) {
                let (queue, leaves) = self.expected.pop_front().expect("a frame that nobody has sent");
                assert_eq!(*from, queue);
                queues.pop_front();
                let frame = frames.pop_front().unwrap_or_default();
                assert!(frame == leaves, "frame {queue} of {} bytes: {frame:02x?} for {leaves:02x?}", leaves.len());
            }
        }
        assert!(queues.is_empty() && frames.is_empty());
    }
}

/// A frame and what it wants.
fn any(rng: &mut Rng, most: u64) -> (Vec<u8>, Order) {
    let longest = [64, 300, 1514, most][rng.below(4) as usize].min(most);
    let length = rng.range(14, longest) as usize;
    // Sums of zero and of all ones are rare among random bytes.
    let frame = match rng.below(8) {
        0 => vec![0; length],
        1 => vec![0xff; length],
        _ => rng.bytes(length),
    };
    let at = rng.below(length as u64 - 1) as usize;
    let start = rng.below(at as u64 + 1) as usize;
    (frame, rng.percent(70).then_some((start, at)))
}

fn fills(width: usize, seed: u64, stall: u32, count: usize) {
    let mut b = Filler::new(width, false, seed, stall);
    for _ in 0..count {
        for _ in 0..10 {
            let (frame, order) = any(b.tb.rng(), 9018);
            let leaves = filled(&frame, order);
            b.offer(&frame, order, leaves);
        }
        b.settle();
    }
    assert_eq!(b.too_long, 0);
}

#[test]
fn checksums_are_filled_in_w64() {
    fills(64, 1, 25, 40);
    fills(64, 2, 0, 20);
}

#[test]
fn checksums_are_filled_in_w512() {
    fills(512, 3, 25, 80);
    fills(512, 4, 0, 60);
}

/// Borders of a frame: the checksum in its first bytes and its last ones, across beats, begun at the last byte; sums of zero; frames of 64 KiB, one behind the other.
#[test]
fn borders_of_a_filled_frame() {
    for width in [64, 512] {
        let (mut b, beat) = (Filler::new(width, false, 5, 0), width / 8);
        for length in [2, 3, beat - 1, beat, beat + 1, 2 * beat, 2 * beat + 1, 65_535, 65_536] {
            let mut frame = b.tb.rng().bytes(length);
            for at in [0, 1, beat - 2, beat - 1, beat, 2 * beat - 1, length - 2] {
                for start in [0, 1, at.saturating_sub(1), at, at + 1, at + 2, length - 1] {
                    if at + 2 <= length && start < length.min(65_536) {
                        let order = Some((start, at));
                        let leaves = filled(&frame, order);
                        b.offer(&frame, order, leaves);
                        b.settle();
                    }
                }
            }
            // The sum is all ones: its inverse would say that there is none.
            frame[0] = 0;
            frame[1] = 0;
            let found = finish(sum(0, &frame));
            frame[..2].copy_from_slice(&found.to_be_bytes());
            let leaves = filled(&frame, Some((0, 0)));
            assert_eq!(leaves[..2], [0xff, 0xff]);
            b.offer(&frame, Some((0, 0)), leaves);
            b.settle();
        }
        for _ in 0..4 {
            let frame = b.tb.rng().bytes(65_536);
            let leaves = filled(&frame, Some((34, 50)));
            b.offer(&frame, Some((34, 50)), leaves);
        }
        b.settle();
        assert_eq!(b.too_long, 0);
    }
}

/// A frame that is longer than what is kept leaves as it is, whatever it wants, and nothing stands still.
#[test]
fn frames_that_are_too_long_leave_as_they_are() {
    for width in [64, 512] {
        let (mut b, kept, mut long) = (Filler::new(width, true, 6, 20), 16 * width / 8, 0);
        for n in 0..200 {
            let length = [kept - 1, kept, kept + 1, 20, 3 * kept, 40 * kept][n % 6];
            let frame = b.tb.rng().bytes(length);
            let order = (n % 7 != 0).then_some((length - 4, length - 2));
            long += u64::from(length > kept && order.is_some());
            let leaves = if length > kept { frame.clone() } else { filled(&frame, order) };
            b.offer(&frame, order.map(|(start, at)| (start.min(65_535), at)), leaves);
            if n % 5 == 0 {
                b.settle();
            }
        }
        b.settle();
        assert_eq!(b.too_long, long);
    }
}

/// One beat in each cycle, also of frames of a single one, with checksums and without.
#[test]
fn a_beat_leaves_in_each_cycle() {
    for width in [64, 512] {
        let mut b = Filler::new(width, false, 7, 0);
        let mut beats = 0;
        for n in 0..300 {
            let frame = b.tb.rng().bytes(if n % 3 == 0 { 60 } else { 1514 });
            beats += frame.len().div_ceil(width / 8) as u64;
            let order = (n % 2 == 0).then_some((34, 50));
            let leaves = filled(&frame, order);
            b.offer(&frame, order, leaves);
        }
        let before = b.tb.cycles();
        b.settle();
        let cycles = b.tb.cycles() - before;
        // The first frame is kept until its sum is known.
        assert!(cycles < beats + 1514 / (width as u64 / 8) + 60, "{cycles} cycles for {beats} beats");
    }
}

struct Judge {
    tb: Tb,
    frames: AxisSource,
    out: AxisSink,
    verdicts: Sink,
    expected: VecDeque<Vec<u8>>,
    judged: VecDeque<Vec<u8>>,
    right: usize,
    wrong: usize,
    /// Those of the wrong ones of which nothing but the sum is wrong.
    summed: usize,
}

impl Judge {
    fn new(width: usize, seed: u64, stall: u32) -> Self {
        let name = format!("l4_verify_w{width}");
        let mut tb = if width == 512 { Tb::with_seed(&name, Verify::<512, 64, 6>::default(), seed) } else { Tb::with_seed(&name, Verify::<64, 8, 3>::default(), seed) };
        let (frames, out, verdicts) = (tb.axis_source("s_frame", stall), tb.axis_sink("m_frame", stall), tb.sink("m_verdict", stall));
        Self { tb, frames, out, verdicts, expected: VecDeque::new(), judged: VecDeque::new(), right: 0, wrong: 0, summed: 0 }
    }

    fn offer(&mut self, frame: Vec<u8>) {
        self.frames.push(&frame);
        self.expected.push_back(frame.clone());
        self.judged.push_back(frame);
    }

    fn settle(&mut self) {
        let limit = self.tb.cycles() + 400_000;
        while !(self.expected.is_empty() && self.judged.is_empty()) {
            assert!(self.tb.cycles() < limit, "{} frames and {} verdicts do not come", self.expected.len(), self.judged.len());
            self.tb.cycle();
            while let Some(frame) = self.out.pop() {
                assert_eq!(Some(frame), self.expected.pop_front(), "frames pass as they are");
            }
            while let Some(words) = self.verdicts.pop() {
                let frame = self.judged.pop_front().expect("a verdict of no frame");
                let good = Fields::of::<L4Verdict>().get(&words, "good") == 1;
                assert_eq!(good, is_verified(&frame), "{frame:02x?}");
                let checked = Fields::of::<L4Verdict>().get(&words, "checked") == 1;
                assert!(checked || !good);
                self.summed += usize::from(checked && !good);
                *(if good { &mut self.right } else { &mut self.wrong }) += 1;
            }
        }
    }
}

fn verdicts(width: usize, seed: u64, stall: u32, count: usize) {
    let mut b = Judge::new(width, seed, stall);
    for _ in 0..count {
        for _ in 0..40 {
            let frame = packet(b.tb.rng());
            b.offer(frame);
        }
        b.settle();
    }
    assert!(b.right > 10 * count && b.wrong > 10 * count, "{} right, {} wrong", b.right, b.wrong);
}

#[test]
fn checksums_are_looked_at_w64() {
    verdicts(64, 11, 25, 60);
    verdicts(64, 12, 0, 40);
}

#[test]
fn checksums_are_looked_at_w512() {
    verdicts(512, 13, 25, 60);
    verdicts(512, 14, 0, 40);
}

/// Each bit of right packets of every kind turned over.
#[test]
fn every_bit_of_a_packet_counts() {
    for width in [64, 512] {
        let mut b = Judge::new(width, 15, 0);
        let (mut kinds, mut bits) = (0, 0);
        while kinds < 6 {
            let frame = packet(b.tb.rng());
            if !is_verified(&frame) || frame.len() > 130 {
                continue;
            }
            kinds += 1;
            bits += 8 * frame.len();
            for bit in 0..8 * frame.len() {
                let mut other = frame.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                b.offer(other);
            }
            b.settle();
        }
        assert!(b.summed > bits / 8 && b.summed < bits, "{} of {bits} bits are in the sum alone", b.summed);
    }
}

/// A packet without a tag, to an address that ends with `last`, whose sum is right by its first two bytes, wherever its checksum stands, if it has so many.
fn right(six: bool, protocol: u8, last: [u8; 2], mut body: Vec<u8>) -> Vec<u8> {
    let addresses: Vec<u8> = (1..=if six { 30 } else { 6 }).chain(last).collect();
    let (src, dst) = addresses.split_at(addresses.len() / 2);
    if body.len() >= 2 {
        body[..2].fill(0);
        let found = finish(sum(pseudo(src, dst, protocol, body.len() as u32), &body));
        body[..2].copy_from_slice(&found.to_be_bytes());
    }
    let mut frame = vec![2; 12];
    if six {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, body.len() as u8, protocol, 64]);
        frame.extend(&addresses);
    } else {
        let mut ip = vec![0x45, 0, 0, 20 + body.len() as u8, 0, 0, 0x40, 0, 64, protocol, 0, 0];
        ip.extend(&addresses);
        let found = finish(sum(0, &ip));
        ip[10..12].copy_from_slice(&found.to_be_bytes());
        frame.extend([8, 0]);
        frame.extend(ip);
    }
    frame.extend(body);
    frame
}

/// What a sum does not tell: packets that are shorter than their header, UDP without a checksum, frames that end before their packet does, in zeros that add nothing, and padding.
#[test]
fn borders_of_a_verdict() {
    for width in [64, 512] {
        let mut b = Judge::new(width, 16, 0);
        for (six, protocol) in [(false, 6), (false, 17), (true, 6), (true, 17), (true, 58)] {
            for length in 0..30 {
                for none in [true, false] {
                    let mut body = b.tb.rng().bytes(length);
                    if length >= 8 && protocol == 17 {
                        body[4..6].copy_from_slice(&(length as u16).to_be_bytes());
                        body[6..8].copy_from_slice(if none { &[0, 0] } else { &[0, 1] });
                    }
                    b.offer(right(six, protocol, [7, 8], body));
                }
            }
            // The last 70 bytes are zeros.
            let mut body = vec![0; 90];
            (body[5], body[7]) = (90, 1);
            let frame = right(six, protocol, [7, 8], body);
            for cut in 0..frame.len() {
                b.offer(frame[..=cut].to_vec());
            }
            for padding in 0..20 {
                b.offer([&frame[..], &vec![0xa5; padding]].concat());
            }
            // Sums that end with a carry.
            for last in [[0xff, 0xff], [0xff, 0xfe], [0, 0]] {
                let mut body = b.tb.rng().bytes(40);
                body[4..6].copy_from_slice(&[0, 40]);
                b.offer(right(six, protocol, last, body));
            }
            b.settle();
        }
        assert!(b.right > 150, "{} right", b.right);
    }
}
