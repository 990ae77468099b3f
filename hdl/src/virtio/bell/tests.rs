//! Writes of several functions, to the page and beside it, beside a table that changes.
use super::*;
use crate::tb::{Fields, Sink, Source, Tb};
use std::collections::VecDeque;

const LQ: usize = 3;
const QUEUES: u64 = 1 << LQ;

fn access(tb: &mut Tb, (asks, answers): &(Source, Sink), line: u64, write: Option<u32>) -> (u32, u64) {
    let (ask, told) = (Fields::of::<CtlReq>(), Fields::of::<CtlResp>());
    asks.push(ask.pack(&[("line", line.into()), ("write", write.is_some().into()), ("data", write.unwrap_or(0).into())]));
    tb.run_until(2000, |_| !answers.is_empty());
    let words = answers.pop().expect("an answer");
    (told.get(&words, "data") as u32, told.get(&words, "err") as u64)
}

fn rings<const W: usize, const K: usize>(seed: u64, stall: u32) {
    let mut tb = Tb::with_seed(&format!("virtio_bell_w{W}"), Bell::<W, K, LQ>::default(), seed);
    tb.allow_combinational();
    let (aw, w, b) = (tb.source_of("s_aw_", &["addr", "len"], stall), tb.source_of("s_w_", &["data", "strb", "last"], stall), tb.sink_of("s_b_", &["resp"], stall));
    let (aw_out, w_out, b_in) = (tb.sink_of("m_aw_", &["addr", "len"], stall), tb.sink_of("m_w_", &["data", "strb", "last"], stall), tb.source_of("m_b_", &["resp"], stall));
    let control = (tb.source("s_ctl", stall), tb.sink("m_ctl", stall));
    let notifications = tb.sink("m_notify", stall);
    tb.reset();
    tb.run(20);
    let mut owners = [None::<u64>; QUEUES as usize];
    let (mut passes, mut beats, mut expected) = (VecDeque::new(), VecDeque::new(), VecDeque::<u64>::new());
    let (mut rung, mut bad, mut counted, mut answers, mut writes) = (0, 0, [0; 2], 0, 0);
    let mut stalls = 0;
    while writes < 1500 || answers < writes {
        // A line changes while nothing is under way, so that it is known which write it came before.
        if writes < 1500 && writes == answers && tb.rng().percent(20) {
            let (queue, function, valid, rings) = (tb.rng().below(QUEUES), tb.rng().below(4), tb.rng().percent(80), tb.rng().percent(30));
            let line = function as u32 | u32::from(valid) << 12 | u32::from(rings) << 13;
            assert_eq!(access(&mut tb, &control, queue, Some(line)).1, 0);
            assert_eq!(access(&mut tb, &control, queue, None), (line, 0));
            owners[queue as usize] = valid.then_some(function);
            if rings {
                expected.push_back(queue);
            }
        }
        if writes < 1500 && writes - answers < 8 && tb.rng().percent(30) {
            writes += 1;
            let (function, queue) = (tb.rng().below(4), tb.rng().below(QUEUES + 2));
            let long = tb.rng().percent(20);
            let ours = tb.rng().percent(70);
            let offset = match (ours, tb.rng().below(10)) {
                (true, 0) => 0x3008,
                (true, _) => 0x3000,
                _ => [0x1000, 0x2000, 0x2fc0, 0x4000][tb.rng().below(4) as usize],
            };
            let count = if long { 8 } else { 1 };
            aw.push_fields(&[&[(function << 16 | offset) as u32], &[count - 1]]);
            let strobes = if tb.rng().percent(90) { 0xff } else { 0x0f };
            for n in 0..count {
                let mut data = vec![0u32; W / 32];
                data.iter_mut().for_each(|word| *word = tb.rng().next_u32());
                data[0] = data[0] & !0xffff | queue as u32;
                let mut strb = vec![0u32; K.div_ceil(32)];
                strb[0] = strobes;
                let last = u32::from(n + 1 == count);
                w.push_fields(&[&data, &strb, &[last]]);
                if !ours {
                    beats.push_back((data, strb, last));
                }
            }
            if ours {
                let good = offset == 0x3000 && !long && strobes == 0xff && queue < QUEUES && owners[queue as usize] == Some(function);
                if good {
                    expected.push_back(queue);
                }
                rung += u64::from(good);
                bad += u64::from(!good);
            } else {
                passes.push_back((function << 16 | offset) as u32);
            }
        }
        tb.cycle();
        let stat = tb.get("stat");
        (counted[0], counted[1]) = (counted[0] + (stat & 1), counted[1] + (stat >> 1));
        while let Some(fields) = aw_out.pop_fields() {
            assert_eq!(Some(fields[0][0]), passes.pop_front());
        }
        while let Some(fields) = w_out.pop_fields() {
            let (data, strb, last) = beats.pop_front().expect("a beat that was written");
            assert_eq!((&fields[0], &fields[1], fields[2][0]), (&data, &strb, last));
            if last == 1 {
                b_in.push_fields(&[&[0]]);
            }
        }
        while let Some(fields) = b.pop_fields() {
            assert_eq!(fields[0][0], 0);
            answers += 1;
        }
        while let Some(words) = notifications.pop() {
            assert_eq!(Some(Fields::of::<VqNotify>().get(&words, "queue") as u64), expected.pop_front());
        }
        stalls += 1;
        assert!(stalls < 400_000, "{writes} writes, {answers} answers");
    }
    tb.run(100);
    while let Some(words) = notifications.pop() {
        assert_eq!(Some(Fields::of::<VqNotify>().get(&words, "queue") as u64), expected.pop_front());
    }
    assert!(passes.is_empty() && beats.is_empty() && expected.is_empty());
    assert_eq!(counted, [rung, bad]);
    assert!(rung > 60 && bad > 200);
    assert_eq!(access(&mut tb, &control, QUEUES, None).1, 1, "there is no such queue");
    tb.reset();
    tb.run(20);
    (0..QUEUES).for_each(|queue| assert_eq!(access(&mut tb, &control, queue, None), (0, 0), "nobody's after a reset"));
}

#[test]
fn functions_notify_their_own_queues_w64() {
    rings::<64, 8>(1, 30);
}

#[test]
fn functions_notify_their_own_queues_w512() {
    rings::<512, 64>(2, 30);
}
