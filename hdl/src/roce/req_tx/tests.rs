//! Speed of req_tx alone; what it does is tested in `roce::requester`, with the other half.

use super::RequesterTx;
use crate::msg::*;
use crate::records::ReqCtx;
use crate::tb::{Fields, Tb};

/// Cycles per packet for `requests` requests of `length` bytes on `qps` queue pairs, contexts answering in two cycles.
fn cycles_per_packet(qps: u32, requests: u32, length: u32) -> f64 {
    let mut tb = Tb::new("req_tx", RequesterTx::<7>::default());
    let fc = Fields::of::<ReqCtx>();
    let mut lines = vec![fc.pack(&[("state", 3), ("pmtu", 3), ("timeout", 14)]); qps as usize];
    let (acq, line, rel) = (tb.sink_of("ctx$acq_", &["id", "tag"], 0), tb.source_of("ctx$line_", &["tag", "fault", "data"], 0), tb.sink_of("ctx$rel_", &["id", "dirty", "data"], 0));
    let (wqe, ops) = (tb.source("s_wqe", 0), tb.sink("m_op", 0));
    for port in ["m_cmd", "m_done", "m_cqe", "m_timer", "m_free", "m_track"] {
        tb.sink(port, 0);
    }
    let f = Fields::of::<SqWqe>();
    for n in 0..requests {
        let head = ferric_abi::host::WqeHead::default().with_opcode(2).with_num_sge(1).with_length(length);
        let mut message = f.pack(&[("qpn", (n % qps).into()), ("index", (n / qps).into()), ("handle", (n % 64).into())]);
        let words: Vec<u32> = head.0.chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        f.set_words(&mut message, "head", &words);
        wqe.push(message);
    }
    let packets = u64::from(requests * length.div_ceil(1024).max(1));
    let start = tb.cycles();
    while ops.taken() < packets {
        assert!(tb.cycles() < start + 100 * packets, "{} of {packets} packets", ops.taken());
        tb.cycle();
        while let Some(got) = rel.pop_fields() {
            lines[got[0][0] as usize] = got[2].clone();
        }
        while let Some(got) = acq.pop_fields() {
            line.push_fields(&[&got[1], &[0], &lines[got[0][0] as usize]]);
        }
    }
    (tb.cycles() - start) as f64 / packets as f64
}

#[test]
fn it_keeps_the_cycle_budget() {
    for (qps, requests, length, most) in [(1, 120, 64, 2.3), (8, 500, 64, 4.1), (1, 10, 40 * 1024, 2.6), (4, 12, 5 * 1024, 3.0)] {
        let each = cycles_per_packet(qps, requests, length);
        println!("req_tx: {qps} queue pairs, {length} bytes: {each:.2} cycles per packet");
        assert!(each <= most, "{qps} queue pairs, {length} bytes: {each:.2} cycles per packet");
    }
}

/// What a park leaves behind: requests of an earlier epoch, which only give their buffers back. Each does so once, however slowly buffers are taken, and those of
/// another queue pair between them are sent.
#[test]
fn stale_requests_are_thrown_away_in_a_row() {
    for (stall, every, most) in [(0, 200, 3.4), (0, 7, 4.5), (60, 7, 9.0)] {
        let mut tb = Tb::new("req_tx", RequesterTx::<7>::default());
        let fc = Fields::of::<ReqCtx>();
        let mut lines = [fc.pack(&[("state", 3), ("pmtu", 3), ("timeout", 14), ("epoch", 1)]), fc.pack(&[("state", 3), ("pmtu", 3), ("timeout", 14)])];
        let (acq, line, rel) = (tb.sink_of("ctx$acq_", &["id", "tag"], 0), tb.source_of("ctx$line_", &["tag", "fault", "data"], 0), tb.sink_of("ctx$rel_", &["id", "dirty", "data"], 0));
        let (wqe, ops, frees) = (tb.source("s_wqe", 0), tb.sink("m_op", 0), tb.sink("m_free", stall));
        for port in ["m_cmd", "m_done", "m_cqe", "m_timer", "m_track"] {
            tb.sink(port, 0);
        }
        let f = Fields::of::<SqWqe>();
        let (mut good, requests) = (0u64, 120u32);
        for n in 0..requests {
            let sent = n % every == every - 1;
            let head = ferric_abi::host::WqeHead::default().with_opcode(2).with_num_sge(1).with_length(64);
            let mut message = f.pack(&[("qpn", sent.into()), ("index", if sent { good.into() } else { 0 }), ("handle", n.into())]);
            let words: Vec<u32> = head.0.chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            f.set_words(&mut message, "head", &words);
            wqe.push(message);
            good += u64::from(sent);
        }
        let (start, mut freed) = (tb.cycles(), Vec::new());
        while freed.len() < (u64::from(requests) - good) as usize || ops.taken() < good {
            assert!(tb.cycles() < start + 4000, "{} of {requests} thrown away, {} of {good} sent", freed.len(), ops.taken());
            tb.cycle();
            while let Some(got) = rel.pop_fields() {
                lines[got[0][0] as usize] = got[2].clone();
            }
            while let Some(got) = acq.pop_fields() {
                line.push_fields(&[&got[1], &[0], &lines[got[0][0] as usize]]);
            }
            while let Some(handle) = frees.pop_u64() {
                freed.push(handle as u32);
            }
        }
        let each = (tb.cycles() - start) as f64 / f64::from(requests);
        println!("req_tx: stale requests, one of another queue pair in {every}: {each:.2} cycles");
        assert_eq!(freed, (0..requests).filter(|n| n % every != every - 1).collect::<Vec<_>>());
        assert!(each <= most, "{each:.2} cycles");
    }
}

/// Nobody takes packet orders: whatever is going on, the line is given back. The other half of the requester may be what the
/// orders wait for.
#[test]
fn no_line_is_held_for_packet_orders() {
    for (qps, length) in [(3u32, 64u32), (3, 40 * 1024), (1, 64), (1, 3000)] {
        let mut tb = Tb::new("req_tx", RequesterTx::<7>::default());
        let fc = Fields::of::<ReqCtx>();
        let mut lines = vec![fc.pack(&[("state", 3), ("pmtu", 3), ("timeout", 14)]); qps as usize];
        let (acq, line, rel) = (tb.sink_of("ctx$acq_", &["id", "tag"], 0), tb.source_of("ctx$line_", &["tag", "fault", "data"], 0), tb.sink_of("ctx$rel_", &["id", "dirty", "data"], 0));
        let wqe = tb.source("s_wqe", 0);
        tb.set("m_op$ready", 0);
        for port in ["m_cmd", "m_done", "m_cqe", "m_timer", "m_free", "m_track"] {
            tb.sink(port, 0);
        }
        let f = Fields::of::<SqWqe>();
        let head = ferric_abi::host::WqeHead::default().with_opcode(2).with_num_sge(1).with_length(length);
        let words: Vec<u32> = head.0.chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        for n in 0..60 {
            let mut message = f.pack(&[("qpn", (n % qps).into()), ("index", (n / qps).into()), ("handle", n.into())]);
            f.set_words(&mut message, "head", &words);
            wqe.push(message);
        }
        let mut step = |tb: &mut Tb, cycles: u32| {
            let mut offered = 0;
            for _ in 0..cycles {
                offered += tb.get("m_op$valid");
                tb.cycle();
                while let Some(got) = rel.pop_fields() {
                    lines[got[0][0] as usize] = got[2].clone();
                }
                while let Some(got) = acq.pop_fields() {
                    line.push_fields(&[&got[1], &[0], &lines[got[0][0] as usize]]);
                }
            }
            offered
        };
        step(&mut tb, 1000);
        assert_eq!(acq.taken(), rel.taken(), "{qps} queue pairs, {length} bytes: a line is held");
        assert!(acq.taken() > 0, "nothing happened");
        // And it goes on when they are taken again.
        tb.set("m_op$ready", 1);
        let orders = step(&mut tb, 1000);
        assert!(orders >= 60, "{orders} orders");
    }
}
