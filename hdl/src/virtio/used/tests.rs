//! Uses of several queues in any order between each other: what their drivers may see of frames in several chains, and when.
use super::Used;
use crate::host::testing::Control;
use crate::msg::{MsixReq, VqPut, VqUse, WrDone};
use crate::tb::{Fields, Tb};
use crate::virtio::testing::{Guest, Rows};
use ferric_abi::context::VqUsed;
use std::collections::VecDeque;

const FUNCTION: u64 = 5;
const QUEUES: u64 = 3;
const SIZE: u64 = 256;
/// Where the rings lie: the page of a queue.
const DEVICES: u64 = 0x7_0000_0000;
const DRIVERS: u64 = 0x8_0000_0000;
const PAGE: u64 = 4096;
/// Where a driver says it in its area.
const EVENT: u64 = 4 + 2 * SIZE;
/// Frames of a queue.
const FRAMES: usize = 60;

/// What a queue gives back, and what its driver has seen.
#[derive(Default)]
struct Queue {
    /// Uses to come: identifier, length, `follows`, `none`.
    uses: VecDeque<(u64, u64, bool, bool)>,
    /// Elements in order, and the used indexes behind whole frames.
    elements: Vec<(u64, u64)>,
    ends: Vec<usize>,
    back: u16,
    /// Halves of elements that have been written, and the index.
    written: usize,
    index: usize,
    /// Chains that the driver has found; it has been interrupted since.
    seen: usize,
    told: bool,
}

fn any_queue(tb: &mut Tb) -> Queue {
    let mut queue = Queue::default();
    for _ in 0..FRAMES {
        let chains = if tb.rng().percent(50) { 1 } else { tb.rng().range(2, 70) };
        for n in 1..=chains {
            let (id, len) = (tb.rng().below(SIZE), tb.rng().below(1 << 14));
            queue.uses.push_back((id, len, n < chains, false));
            queue.elements.push((id, len));
        }
        queue.ends.push(queue.elements.len());
        if tb.rng().percent(10) {
            queue.uses.push_back((tb.rng().below(SIZE), 0, false, true));
        }
    }
    queue.back = queue.uses.len() as u16;
    queue
}

/// With `events` drivers say from which chain on they want an interrupt, and look when they have had one.
fn run(stall: u32, events: bool) {
    let mut tb = Tb::new("virtio_used_w64", Used::<3>::default());
    let control = Control::new(&mut tb, stall);
    let mut rows = Rows::new(&mut tb, stall, FUNCTION);
    let (uses, puts, dones, interrupts) = (tb.source("s_use", stall), tb.sink("m_put", stall), tb.source("s_done", stall), tb.sink("m_msix", stall));
    let mut guest = Guest::default();
    let access = |tb: &mut Tb, line: u64, word: usize, write: Option<u32>| {
        control.ask(line as u32, word as u32, write);
        let mut answer = None;
        tb.run_until(5000, |_| {
            answer = control.answer();
            answer.is_some()
        });
        answer.flatten().expect("there is such a line")
    };
    for n in 0..QUEUES {
        let line = VqUsed::default()
            .with_driver(DRIVERS + PAGE * n)
            .with_device(DEVICES + PAGE * n)
            .with_size(SIZE as u16)
            .with_function(FUNCTION as u16)
            .with_enabled(true)
            .with_events(events)
            .with_vector(n as u16);
        for (word, bytes) in line.0.chunks_exact(4).enumerate() {
            access(&mut tb, n, word, Some(u32::from_le_bytes(bytes.try_into().expect("four"))));
        }
    }
    let mut queues: Vec<Queue> = (0..QUEUES).map(|_| any_queue(&mut tb)).collect();
    let (used, put) = (Fields::of::<VqUse>(), Fields::of::<VqPut>());
    let mut due: VecDeque<u64> = VecDeque::new();
    let (mut now, mut between) = (0, 0);
    let limit = tb.cycles() + 4_000_000;
    // Behind the last one all answers come, and interrupts.
    let mut rest = 2000;
    while rest > 0 {
        assert!(tb.cycles() < limit, "a frame stays unseen");
        rest -= u32::from(uses.pending() == 0 && queues.iter().all(|queue| queue.uses.is_empty() && queue.index == queue.elements.len()));
        if uses.pending() < 3 && tb.rng().percent(80) {
            // Another queue's turn, in the midst of a frame too.
            if tb.rng().percent(20) {
                now = tb.rng().below(QUEUES) as usize;
            }
            if let Some((id, len, follows, none)) = queues[now].uses.pop_front() {
                uses.push(used.pack(&[("queue", now as u128), ("id", id.into()), ("len", len.into()), ("follows", follows.into()), ("none", none.into())]));
                between += usize::from(follows);
            } else {
                now = tb.rng().below(QUEUES) as usize;
            }
        }
        while let Some(words) = interrupts.pop() {
            queues[Fields::of::<MsixReq>().get(&words, "vector") as usize].told = true;
        }
        for (n, queue) in (0..).zip(&mut queues).filter(|(_, queue)| queue.told) {
            if tb.rng().percent(5) {
                (queue.told, queue.seen) = (false, queue.index);
                guest.put(DRIVERS + PAGE * n + EVENT, &(queue.seen as u16).to_le_bytes());
            }
        }
        rows.step(&mut tb, &mut guest);
        while let Some(words) = puts.pop() {
            let get = |name| put.get(&words, name) as u64;
            assert_eq!(get("function"), FUNCTION);
            let (n, at) = ((get("iova") - DEVICES) / PAGE, (get("iova") - DEVICES) % PAGE);
            let queue = &mut queues[n as usize];
            if get("wide") == 0 {
                assert_eq!(at, 2);
                queue.index += usize::from((get("data") as u16).wrapping_sub(queue.index as u16));
                assert!(queue.ends.contains(&queue.index), "queue {n}: the driver sees {} chains, a part of a frame", queue.index);
                assert!(queue.written == 2 * queue.index, "queue {n}: the driver sees {} chains of which {} halves are written", queue.index, queue.written);
            } else {
                let (id, len) = queue.elements[queue.written / 2];
                let slot = (queue.written / 2) as u64 % SIZE;
                assert_eq!((at, get("data")), (4 + 8 * slot + 4 * (queue.written as u64 % 2), if queue.written % 2 == 0 { id } else { len }), "queue {n}");
                queue.written += 1;
            }
            let when = tb.cycles() + tb.rng().range(1, 40);
            due.push_back(when);
        }
        while due.front().is_some_and(|at| *at <= tb.cycles()) {
            due.pop_front();
            dones.push(Fields::of::<WrDone>().pack(&[]));
        }
        tb.cycle();
    }
    // With or without events, every driver has found all at the end.
    assert!(queues.iter().all(|queue| queue.seen == queue.index), "{:?}", queues.iter().map(|queue| (queue.seen, queue.index)).collect::<Vec<_>>());
    assert!(between > 1000, "{between} chains with another one behind them");
    for (n, queue) in (0..).zip(&queues) {
        let line: Vec<u8> = (0..VqUsed::BYTES / 4).flat_map(|word| access(&mut tb, n, word, None).to_le_bytes()).collect();
        assert_eq!(VqUsed(line.try_into().expect("as long")).back(), queue.back);
    }
}

#[test]
fn a_driver_sees_whole_frames() {
    run(0, false);
    run(50, false);
}

/// Parts of frames between the chains of others, whose drivers' events come late.
#[test]
fn a_driver_hears_of_all() {
    run(0, true);
    run(30, true);
}
