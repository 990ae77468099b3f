//! Frames of every length for functions that are live or not, beside a cell buffer that answers late.
use super::*;
use crate::tb::{Fields, Sink, Source, Tb};
use ferric_abi::context::StationCtx as Mac;
use std::collections::{HashMap, VecDeque};

const NF: usize = 4;
const ND: usize = 16;

fn access(tb: &mut Tb, (asks, answers): &(Source, Sink), word: u64, data: u32) {
    asks.push(Fields::of::<CtlReq>().pack(&[("word", word.into()), ("write", 1), ("data", data.into())]));
    tb.run_until(2000, |_| !answers.is_empty());
    assert_eq!(Fields::of::<CtlResp>().get(&answers.pop().expect("an answer"), "err"), 0);
}

fn frames<const W: usize, const K: usize, const LG: usize>(seed: u64, stall: u32, count: u64) {
    let mut tb = Tb::with_seed(&format!("virtio_intake_w{W}"), Intake::<W, K, LG, NF, 2, ND>::default(), seed);
    let (desc, passed) = (tb.source("s_desc", stall), tb.sink("m_desc", stall));
    // Cells answer at once or late, never in another order.
    let (reads, cells) = (tb.sink("m_cell", stall), tb.axis_source("s_cell", stall));
    let (copies, whose) = (tb.axis_sink("m_frame", stall), tb.sink("m_for", stall));
    let control = (tb.source("s_ctl", stall), tb.sink("m_ctl", stall));
    tb.reset();
    // Function f has addresses f, 16 + f; function 3 is not live, function 2 sees all.
    let station = |function: u64, n: u64| 0x0200_0000_0000 | n << 8 | function;
    for function in 0..NF as u64 {
        for n in 0..4 {
            let line = Mac::default().with_mac(station(function, n)).with_valid(n < 2);
            let words: Vec<u32> = line.0.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().expect("four"))).collect();
            tb.set_wide(&format!("macs${}", 4 * function + n), words);
        }
    }
    access(&mut tb, &control, 0, 0b0111);
    access(&mut tb, &control, 2, 0b0100);
    let (read, note) = (Fields::of::<CellRead>(), Fields::of::<RxDesc>());
    let mut stored: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut order: VecDeque<u64> = VecDeque::new();
    let mut expected: VecDeque<(u64, Vec<u8>)> = VecDeque::new();
    let (mut sent, mut over, mut counted, mut freed) = (0u64, 0u64, [0u64; 4], 0u64);
    let (mut taken, mut made, mut nobodys) = (0, 0, 0);
    let mut whose_next: Option<u64> = None;
    while over < count {
        if sent < count && stored.len() < 20 && tb.rng().percent(30) {
            let length = match tb.rng().below(6) {
                0 => tb.rng().range(14, 70),
                1 => 512 * tb.rng().range(1, 4),
                2 => tb.rng().range(1, 8192).max(14),
                _ => tb.rng().range(60, 1600),
            };
            let mut frame = tb.rng().bytes(length as usize);
            let to = match tb.rng().below(8) {
                0 => 0xffff_ffff_ffff,
                1 => 0x3333_0000_0001,
                2 => tb.rng().next_u64() & 0xfeff_ffff_ffff,
                _ => station(tb.rng().below(NF as u64), tb.rng().below(3)),
            };
            frame[..6].copy_from_slice(&to.to_be_bytes()[2..]);
            let handle = sent % 512;
            let own = |f: u64| (0..2).any(|n| station(f, n) == to);
            let wants: Vec<u64> = (0..3).filter(|f| to >> 40 & 1 == 1 || *f == 2 || own(*f)).collect();
            wants.iter().for_each(|f| expected.push_back((*f, frame.clone())));
            order.push_back(handle);
            (taken, made) = (taken + 1, made + wants.len() as u64);
            desc.push(note.pack(&[("handle", handle.into()), ("frame_len", length.into()), ("raw", 1)]));
            stored.insert(handle, frame);
            sent += 1;
        }
        tb.cycle();
        (0..4).for_each(|n| counted[n] += tb.get("stat") >> n & 1);
        while let Some(c) = reads.pop() {
            let [handle, off, len, free] = ["handle", "off", "len", "free"].map(|name| read.get(&c, name) as u64);
            let frame = &stored[&handle];
            assert_eq!(order[0], handle, "in the order of their coming");
            assert!(len > 0 && off + len <= frame.len() as u64);
            cells.push(&frame[off as usize..(off + len) as usize]);
            if free == 1 {
                stored.remove(&handle);
                order.pop_front();
                freed += 1;
                over += 1;
            }
        }
        loop {
            whose_next = whose_next.or_else(|| whose.pop().map(|words| Fields::of::<VsFor>().get(&words, "function") as u64));
            let Some(function) = whose_next else { break };
            let Some(frame) = copies.pop() else { break };
            whose_next = None;
            assert_eq!(Some((function, frame)), expected.pop_front());
        }
        assert!(passed.pop().is_none(), "function 2 sees all");
        assert!(tb.cycles() < 4000 * count, "{over} of {sent} are over");
    }
    tb.run(4000);
    while let Some(frame) = copies.pop() {
        let function = whose_next.take().unwrap_or_else(|| Fields::of::<VsFor>().get(&whose.pop().expect("whose it is"), "function") as u64);
        assert_eq!(Some((function, frame)), expected.pop_front());
    }
    assert!(expected.is_empty() && stored.is_empty());
    assert_eq!((freed, counted[1]), (taken, made));
    // Nobody sees all any more: what is nobody's is handed on, and freed by others.
    access(&mut tb, &control, 2, 0);
    for n in 0..50u64 {
        let to = if n % 2 == 0 { station(3, 0) } else { station(1, 2) };
        let mut frame = tb.rng().bytes(100);
        frame[..6].copy_from_slice(&to.to_be_bytes()[2..]);
        desc.push(note.pack(&[("handle", n.into()), ("frame_len", 100), ("raw", 1), ("flow_hash", (7 * n).into())]));
        for _ in 0..200 {
            tb.cycle();
            (0..4).for_each(|n| counted[n] += tb.get("stat") >> n & 1);
            while let Some(c) = reads.pop() {
                assert_eq!(["off", "len", "free"].map(|name| read.get(&c, name) as u64), [0, 6, 0], "only looked at");
                cells.push(&frame[..6]);
            }
            if let Some(words) = passed.pop() {
                assert_eq!(["handle", "frame_len", "raw", "pay_len", "flow_hash"].map(|name| note.get(&words, name) as u64), [n, 100, 1, 100, 7 * n]);
                nobodys += 1;
            }
        }
    }
    assert_eq!((nobodys, counted[3], counted[2]), (50, 50, 0));
}

#[test]
fn functions_get_their_frames_w64() {
    frames::<64, 8, 7>(1, 30, 400);
}

#[test]
fn functions_get_their_frames_w512() {
    frames::<512, 64, 4>(2, 30, 600);
}

/// The buffer takes its time: beyond half of the buffer the oldest frame goes unseen, as soon as it is looked at.
#[test]
fn too_many_frames_are_dropped() {
    let mut tb = Tb::new("virtio_intake_crowd", Intake::<64, 8, 7, NF, 2, ND>::default());
    let (desc, reads, cells) = (tb.source("s_desc", 0), tb.sink("m_cell", 0), tb.axis_source("s_cell", 0));
    let (copies, whose) = (tb.axis_sink("m_frame", 0), tb.sink("m_for", 0));
    let control = (tb.source("s_ctl", 0), tb.sink("m_ctl", 0));
    let (_passed, read, note) = (tb.sink("m_desc", 0), Fields::of::<CellRead>(), Fields::of::<RxDesc>());
    tb.reset();
    access(&mut tb, &control, 0, 1);
    // Frames of 1,000 bytes to a group, four cells each: half of the buffer is 64 of them.
    for n in 0..100u64 {
        desc.push(note.pack(&[("handle", n.into()), ("frame_len", 1000), ("raw", 1)]));
    }
    let (mut dropped, mut freed, mut counted) = (0, 0, 0);
    for round in 0..60_000 {
        tb.cycle();
        counted += tb.get("stat") >> 2 & 1;
        if round < 3000 {
            // The buffer does not answer yet: the first one is being looked at.
            continue;
        }
        while let Some(c) = reads.pop() {
            let [len, free] = ["len", "free"].map(|name| read.get(&c, name) as u64);
            if len > 0 {
                cells.push(&vec![0xff; len as usize]);
            } else {
                assert_eq!(free, 1);
                dropped += 1;
            }
            freed += free;
        }
        while copies.pop().is_some() {}
        while whose.pop().is_some() {}
    }
    assert_eq!((freed, counted), (100, dropped));
    assert_eq!(dropped, 37, "99 waited behind the first one; with 63 there is room, which is known one frame late");
}
