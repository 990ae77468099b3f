//! Cycles per request that ends. What happens to the queue pairs is tested together with the other half, in `roce/requester`.

use super::RequesterRx;
use crate::msg::*;
use crate::records::ReqCtx;
use crate::tb::{Fields, Tb};
use ferric_abi::codes::QpType;

/// What ends a request: an acknowledge, the departure of a datagram, or an answer to a READ that is placed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Acknowledge,
    Departure,
    Read,
}

/// One signalled request of one packet per end, and more behind it; context and placement answer in a cycle of the bench.
fn cycles_per_end(end: End, qps: u32, ends: u32) -> f64 {
    let reads = end == End::Read;
    let mut tb = Tb::new("req_rx", RequesterRx::default());
    let fc = Fields::of::<ReqCtx>();
    let each = ends / qps;
    let row = fc.pack(&[
        ("state", 3),
        ("qp_type", if end == End::Departure { QpType::Ud as u128 } else { QpType::Rc as u128 }),
        ("pmtu", 3),
        ("timeout", 14),
        ("timer_on", 1),
        ("sent_index", (each + 2).into()),
        ("next_psn", (each + 2).into()),
        ("max_psn", (each + 2).into()),
        ("rd_out", if reads { (each + 1).into() } else { 0 }),
        ("max_rd_atomic", 16),
    ]);
    let mut lines = vec![row; qps as usize];
    let ports = [0, 1].map(|i| {
        (
            tb.sink_of(&format!("ctx${i}$acq_"), &["id", "tag"], 0),
            tb.source_of(&format!("ctx${i}$line_"), &["tag", "fault", "data"], 0),
            tb.sink_of(&format!("ctx${i}$rel_"), &["id", "dirty", "data"], 0),
        )
    });
    let (mut wanted, mut held) = ([None; 2], [None; 2]);
    let (rx, cqes) = (tb.source("s_rx", 0), tb.sink("m_cqe", 0));
    let departures = tb.source("s_tx_done$1", 0);
    let (track, entries) = (tb.sink("m_track", 0), tb.source("s_track", 0));
    let (again, buffers, orders, placed) = (tb.sink("m_again", 0), tb.source("s_again", 0), tb.sink("m_place", 0), tb.source("s_placed", 0));
    for port in ["m_cmd", "m_timer", "m_error", "m_async", "m_cell"] {
        tb.sink(port, 0);
    }
    for port in ["s_tx_done$0", "s_timer", "s_error"] {
        tb.source(port, 0);
    }
    let (fr, ft, fe) = (Fields::of::<RxAnswer>(), Fields::of::<TrackRead>(), Fields::of::<TrackEntry>());
    for n in 0..each * qps {
        if end == End::Departure {
            departures.push(Fields::of::<TxDone>().pack(&[("qpn", (n % qps).into()), ("psn", (n / qps).into())]));
        } else {
            rx.push(fr.pack(&[("opcode", if reads { 0x10 } else { 0x11 }), ("pay_len", 64), ("dest_qpn", (n % qps).into()), ("psn", (n / qps).into())]));
        }
    }
    let mut coming = Vec::new();
    let start = tb.cycles();
    while cqes.taken() < u64::from(each * qps) {
        assert!(tb.cycles() < start + 40 * u64::from(ends), "{} of {ends} completions", cqes.taken());
        tb.cycle();
        for (i, (acq, line, rel)) in ports.iter().enumerate() {
            while let Some(got) = rel.pop_fields() {
                if got[1][0] == 1 {
                    lines[got[0][0] as usize] = got[2].clone();
                }
                held[i] = None;
            }
            while let Some(got) = acq.pop_fields() {
                assert!(wanted[i].is_none() && held[i].is_none(), "one line at a time");
                wanted[i] = Some(got[0][0]);
            }
            if wanted[i].is_some() && wanted[i] != held[1 - i] {
                held[i] = wanted[i].take();
                line.push_fields(&[&[0], &[0], &lines[held[i].expect("just given") as usize]]);
            }
        }
        // Two cycles, as in `roce/tracker`.
        coming.drain(..).for_each(|entry: Vec<u32>| entries.push(entry));
        while let Some(read) = track.pop() {
            coming.push(fe.pack(&[
                ("last_psn", ft.get(&read, "index")),
                ("next_psn", ft.get(&read, "index") + 1),
                ("signaled", 1),
                ("opcode", if reads { 4 } else { 2 }),
                ("next_asks", reads.into()),
            ]));
        }
        while again.pop().is_some() {
            buffers.push(Fields::of::<WqeHandle>().pack(&[("handle", 5)]));
        }
        while let Some(order) = orders.pop() {
            let (fo, fd) = (Fields::of::<PlaceOp>(), Fields::of::<ReadDone>());
            placed.push(fd.pack(&[("qpn", fo.get(&order, "qpn")), ("transport", fo.get(&order, "transport") & 0xff_ffff), ("status", 0)]));
        }
    }
    (tb.cycles() - start) as f64 / f64::from(each * qps)
}

#[test]
fn it_keeps_the_cycle_budget() {
    for (end, qps, ends, most) in [(End::Acknowledge, 1, 100, 3.4), (End::Acknowledge, 8, 400, 3.1), (End::Departure, 1, 100, 3.4), (End::Departure, 8, 400, 3.1), (End::Read, 8, 200, 6.1)] {
        let each = cycles_per_end(end, qps, ends);
        println!("req_rx: {qps} queue pairs: {each:.2} cycles per {end:?}");
        assert!(each <= most, "{qps} queue pairs: {each:.2} cycles per {end:?}");
    }
}
