//! Cycles per acknowledge. What happens to the queue pairs is tested together with the other half, in `roce/requester`.

use super::RequesterRx;
use crate::msg::*;
use crate::records::ReqCtx;
use crate::tb::{Fields, Tb};

/// One signalled request of one packet per acknowledge, `ahead` more behind it; context and tracker answer in a cycle of the bench.
fn cycles_per_acknowledge(qps: u32, acks: u32) -> f64 {
    let mut tb = Tb::new("req_rx", RequesterRx::default());
    let fc = Fields::of::<ReqCtx>();
    let each = acks / qps;
    let row = fc.pack(&[("state", 3), ("pmtu", 3), ("timeout", 14), ("timer_on", 1), ("sent_index", (each + 2).into()), ("next_psn", (each + 2).into()), ("max_psn", (each + 2).into())]);
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
    let (track, entries) = (tb.sink("m_track", 0), tb.source("s_track", 0));
    for port in ["m_cmd", "m_timer", "m_error", "m_async", "m_cell", "m_place", "m_again"] {
        tb.sink(port, 0);
    }
    for port in ["s_tx_done$0", "s_tx_done$1", "s_timer", "s_error", "s_placed", "s_again"] {
        tb.source(port, 0);
    }
    let (fr, ft, fe) = (Fields::of::<RxAnswer>(), Fields::of::<TrackRead>(), Fields::of::<TrackEntry>());
    for n in 0..each * qps {
        rx.push(fr.pack(&[("opcode", 0x11), ("dest_qpn", (n % qps).into()), ("psn", (n / qps).into())]));
    }
    let start = tb.cycles();
    while cqes.taken() < u64::from(each * qps) {
        assert!(tb.cycles() < start + 40 * u64::from(acks), "{} of {acks} completions", cqes.taken());
        tb.cycle();
        for (i, (acq, line, rel)) in ports.iter().enumerate() {
            while let Some(got) = rel.pop_fields() {
                if got[1][0] == 1 {
                    lines[got[0][0] as usize] = got[2].clone();
                }
                held[i] = None;
            }
            while let Some(got) = acq.pop_fields() {
                wanted[i] = Some(got[0][0]);
            }
            if wanted[i].is_some() && wanted[i] != held[1 - i] {
                held[i] = wanted[i].take();
                line.push_fields(&[&[0], &[0], &lines[held[i].expect("just given") as usize]]);
            }
        }
        while let Some(read) = track.pop() {
            entries.push(fe.pack(&[("last_psn", ft.get(&read, "index")), ("next_psn", ft.get(&read, "index") + 1), ("signaled", 1), ("opcode", 2)]));
        }
    }
    (tb.cycles() - start) as f64 / f64::from(each * qps)
}

#[test]
fn it_keeps_the_cycle_budget() {
    for (qps, acks, most) in [(1, 100, 4.0), (8, 400, 3.1)] {
        let each = cycles_per_acknowledge(qps, acks);
        println!("req_rx: {qps} queue pairs: {each:.2} cycles per acknowledge");
        assert!(each <= most, "{qps} queue pairs: {each:.2} cycles per acknowledge");
    }
}
