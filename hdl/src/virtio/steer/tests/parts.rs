//! The hash and the notes by themselves, and how long a frame takes.
use super::frames::frame;
use super::Bench;
use crate::msg::{VqNotify, VsNote};
use crate::tb::{Fields, Tb};
use crate::virtio::note::Note;
use crate::virtio::steer::choose::LG_PAIRS;
use crate::virtio::steer::toeplitz::Toeplitz;
use ferric_model::virtio::rss::{toeplitz, KEY, MOST};
use ferric_model::virtio::steer::place;

/// The published vectors (model/src/virtio/tests/rss.rs has them all with their source), and random ones.
#[test]
fn hashes_are_toeplitz() {
    let published: [u8; KEY] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
        0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];
    // 66.9.149.187:2794 to 161.142.100.80:1766, and 3ffe:501:8::260:97ff:fe40:efab:14230 to ff02::1:4739.
    let v4 = [66, 9, 149, 187, 161, 142, 100, 80, 0x0a, 0xea, 0x06, 0xe6];
    let v6 = [0x3f, 0xfe, 0x05, 0x01, 0, 8, 0, 0, 0x02, 0x60, 0x97, 0xff, 0xfe, 0x40, 0xef, 0xab, 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x37, 0x96, 0x12, 0x83];
    let mut cases = vec![(published, v4.to_vec(), Some((0x323e_8fc2, 0x51cc_c178))), (published, v6.to_vec(), Some((0x0f0c_461c, 0xdde5_1bbf)))];
    let mut tb = Tb::new("virtio_toeplitz", Toeplitz::<2, 7>::default());
    for n in 0..40 {
        let key = tb.rng().bytes(KEY).try_into().expect("as long");
        cases.push((key, tb.rng().bytes(if n % 2 == 0 { 12 } else { 36 }), None));
    }
    for (n, (key, data, hashes)) in cases.into_iter().enumerate() {
        let function = n as u64 % 4;
        for (i, word) in key.chunks_exact(2).enumerate() {
            tb.set("write_en", 1);
            tb.set("write_addr", function << 5 | i as u64);
            tb.set("write_data", u64::from(word[0]) << 8 | u64::from(word[1]));
            tb.cycle();
        }
        tb.set("write_en", 0);
        tb.set("owner", function);
        tb.set("begins", 1);
        tb.cycle();
        tb.set("begins", 0);
        tb.run(3);
        let words = data.len() / 2;
        for (i, word) in data.chunks_exact(2).enumerate() {
            tb.set("feeds", 1);
            tb.set("feed", u64::from(word[0]) << 8 | u64::from(word[1]));
            tb.set("paired", u64::from(i + 3 == words));
            tb.cycle();
            tb.set("feeds", 0);
            tb.set("feed", 0xffff);
            if tb.rng().percent(20) {
                tb.cycle();
            }
        }
        tb.cycle();
        let got = (tb.get("pair") as u32, tb.get("whole") as u32);
        assert_eq!(got, (toeplitz(&key, &data[..data.len() - 4]), toeplitz(&key, &data)), "case {n}");
        assert!(hashes.is_none_or(|hashes| hashes == got), "case {n}: {got:x?}");
    }
    assert_eq!(MOST, 1 << LG_PAIRS);
}

/// How long a frame of 64 bytes takes: the figure of README.md.
#[test]
fn a_short_frame_is_steered_in_time() {
    for (width, most) in [(64, 35), (512, 30)] {
        let mut b = Bench::new(width, 6, 0);
        b.functions[0].modes = [true, false, false, false, false, false];
        b.functions[0].pairs = 1;
        b.load(0);
        let tcp = [&[2; 12][..], &[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6, 0, 0], &[10; 8], &[1; 26]].concat();
        (0..100).for_each(|_| b.offer(0, tcp.clone()));
        let from = b.tb.cycles();
        b.settle();
        let each = (b.tb.cycles() - from) / 100;
        assert!(each <= most, "{width} bits: {each} cycles");
        println!("{width} bits: {each} cycles for a frame");
    }
}

fn notes<const W: usize, const K: usize>(stall: u32) {
    let mut tb = Tb::new(&format!("virtio_note_w{W}"), Note::<W, K>::default());
    let (s, from, m) = (tb.axis_source("s_frame", stall), tb.source("s_from", stall), tb.axis_sink("m_frame", stall));
    let (queues, noted) = (tb.sink("m_from", stall), tb.sink("m_note", stall));
    let fields = Fields::of::<VsNote>();
    let (mut sent, mut wanted) = (Vec::new(), Vec::new());
    for _ in 0..300 {
        let (queue, frame) = (tb.rng().below(1 << 16), frame(tb.rng()));
        from.push(Fields::of::<VqNotify>().pack(&[("queue", queue.into())]));
        s.push(&frame);
        wanted.extend(place(&frame).map(|at| (queue, at as u64)));
        sent.push((queue, frame));
    }
    let (mut got, mut count) = (Vec::new(), 0);
    let take = |got: &mut Vec<(u64, u64)>| {
        while let Some(words) = noted.pop() {
            got.push((fields.get(&words, "queue") as u64, fields.get(&words, "place") as u64));
        }
    };
    tb.run_until(400_000, |_| {
        while let Some(frame) = m.pop() {
            assert_eq!(frame, sent[count].1, "frame {count}");
            count += 1;
        }
        take(&mut got);
        count == sent.len()
    });
    tb.run(300);
    take(&mut got);
    assert_eq!(got, wanted);
    let passed: Vec<_> = std::iter::from_fn(|| queues.pop()).map(|words| Fields::of::<VqNotify>().get(&words, "queue") as u64).collect();
    assert_eq!(passed, sent.iter().map(|(queue, _)| *queue).collect::<Vec<_>>());
}

#[test]
fn frames_that_leave_are_noted() {
    notes::<64, 8>(30);
    notes::<512, 64>(0);
    notes::<512, 64>(30);
}
