//! Scenarios for made captures.
use super::frame::Kind;
use super::synth::{Fault, Scenario, Step};
use ferric_driver::types::Mtu;

/// Every path MTU.
pub const MTUS: [Mtu; 5] = [Mtu::M256, Mtu::M512, Mtu::M1024, Mtu::M2048, Mtu::M4096];

/// The scenarios of the recorded set and some more, for one MTU, over IPv4.
pub fn scenarios(mtu: Mtu) -> Vec<(&'static str, Scenario)> {
    let m = mtu.bytes();
    let sizes = [0, 1, 2, 3, 4, 5, 63, 64, m - 1, m, m + 1, 2 * m, 3 * m + 7];
    let each = |kind: Kind| sizes.map(|len| Step::new(kind, len)).to_vec();
    let base = |steps: Vec<Step>| Scenario::new(mtu, steps);
    let write6 = || base(vec![Step::new(Kind::Write, 6 * m)]);
    let with_imm = |kind| each(kind).into_iter().enumerate().map(|(i, s)| Step { imm: Some(0xc0ff_ee00 + i as u32), ..s }).collect::<Vec<_>>();
    let store = |n: u64| Step { offset: 8 * n, ..Step::new(Kind::AtomicWrite, 8) };
    let flush = |len: usize| Step::new(Kind::Flush, len);
    let placed = || base(vec![Step::new(Kind::Write, 2 * m), store(2), flush(2 * m), store(2), store(3), flush(0), Step::new(Kind::Write, m + 3)]);
    let sends = || base(vec![Step::new(Kind::Send, 32), Step::new(Kind::Send, 33)]);
    let take = |region: usize, len: usize| Step { region, invalidate: true, ..Step::new(Kind::Send, len) };
    let into = |region: usize, len: usize| Step { region, ..Step::new(Kind::Write, len) };
    let taken = || base([0, 1, m - 1, m, m + 1, 3 * m + 7].iter().enumerate().flat_map(|(n, len)| [into(n + 1, m + 3), take(n + 1, *len), into(0, 5)]).collect());
    let two = || base(vec![into(1, m + 5), take(1, m + 1), into(2, 2 * m), take(2, 33)]);
    vec![
        ("send", base(each(Kind::Send))),
        ("send_imm", base(with_imm(Kind::Send))),
        ("write", base(each(Kind::Write).into_iter().enumerate().map(|(i, s)| Step { offset: 3 * i as u64, ..s }).collect())),
        ("write_imm", base(with_imm(Kind::Write))),
        ("pipelined", Scenario { pipelined: true, ..base([each(Kind::Send), each(Kind::Write), with_imm(Kind::Write)].concat()) }),
        ("rnr", Scenario { late: 3, ..base(vec![Step::new(Kind::Send, m + 5)]) }),
        ("rnr_write_imm", Scenario { late: 2, ..base(vec![Step { imm: Some(7), ..Step::new(Kind::Write, m + 5) }]) }),
        ("rnr_exhaust", Scenario { late: usize::MAX, rnr_retry: 1, ..base(vec![Step::new(Kind::Send, 64)]) }),
        ("drop_write_middle", Scenario { fault: Fault::Drop(0, 3), ..write6() }),
        ("drop_write_first", Scenario { fault: Fault::Drop(0, 1), ..write6() }),
        ("drop_write_last", Scenario { fault: Fault::Drop(0, 6), ..write6() }),
        ("drop_send_only", Scenario { fault: Fault::Drop(0, 1), ..sends() }),
        ("drop_ack", Scenario { fault: Fault::Drop(1, 1), ..sends() }),
        ("drop_ack_pipelined", Scenario { fault: Fault::Drop(1, 2), pipelined: true, ..sends() }),
        ("dup_request", Scenario { fault: Fault::Duplicate(0, 2), ..write6() }),
        ("dup_last", Scenario { fault: Fault::Duplicate(0, 6), ..write6() }),
        ("dup_send", Scenario { fault: Fault::Duplicate(0, 1), ..sends() }),
        ("dup_ack", Scenario { fault: Fault::Duplicate(1, 1), ..sends() }),
        ("reorder", Scenario { fault: Fault::Swap(0, 2), ..write6() }),
        ("bad_icrc", Scenario { fault: Fault::Corrupt(0, 2), ..write6() }),
        ("bad_icrc_ack", Scenario { fault: Fault::Corrupt(1, 1), ..sends() }),
        ("bad_rkey", base(vec![Step { key: 0x5500, ..Step::new(Kind::Write, 2 * m + 1) }])),
        ("out_of_bounds", base(vec![Step { offset: (1 << 17) - 32, ..Step::new(Kind::Write, 64) }])),
        ("out_of_bounds_after_good", base(vec![Step::new(Kind::Write, 2 * m), Step { offset: (1 << 17) - 32, ..Step::new(Kind::Write, m + 64) }])),
        ("retry_exhaust", Scenario { fault: Fault::DropAll(0), timeout: (12, 2), ..sends() }),
        ("psn_wrap", Scenario { psn: 0xff_fffd, pipelined: true, ..base(vec![Step::new(Kind::Write, 5 * m), Step::new(Kind::Send, 2 * m)]) }),
        ("psn_wrap_drop", Scenario { psn: 0xff_fffd, fault: Fault::Drop(0, 4), ..write6() }),
        ("psn_wrap_timeout", Scenario { psn: 0xff_fffd, fault: Fault::Drop(0, 6), ..write6() }),
        ("placement", placed()),
        ("placement_pipelined", Scenario { pipelined: true, ..placed() }),
        ("placement_dup_store", Scenario { fault: Fault::Duplicate(0, 3), ..placed() }),
        ("placement_dup_flush", Scenario { fault: Fault::Duplicate(0, 4), ..placed() }),
        ("placement_drop_store", Scenario { fault: Fault::Drop(0, 5), ..placed() }),
        ("placement_drop_answer", Scenario { fault: Fault::Drop(1, 2), ..placed() }),
        ("flush_bad_rkey", base(vec![Step::new(Kind::Write, 64), Step { key: 0x5500, ..flush(64) }])),
        ("flush_region_bad_rkey", base(vec![Step { key: 0x5500, ..flush(0) }])),
        ("store_out_of_bounds", base(vec![Step { offset: 1 << 17, ..store(0) }])),
        ("read", base(each(Kind::ReadRequest)[1..].to_vec())),
        ("invalidate", taken()),
        ("invalidate_pipelined", Scenario { pipelined: true, ..taken() }),
        ("invalidate_dup", Scenario { fault: Fault::Duplicate(0, 4), ..two() }),
        ("invalidate_drop", Scenario { fault: Fault::Drop(0, 3), ..two() }),
        ("invalidate_drop_ack", Scenario { fault: Fault::Drop(1, 2), ..two() }),
        ("invalidate_rnr", Scenario { late: 2, ..two() }),
        ("invalidated_key", base(vec![into(1, 64), take(1, m + 1), into(1, 64)])),
        ("invalidated_twice", base(vec![take(1, 3), take(1, 3)])),
        ("invalidate_bad_rkey", base(vec![into(1, 64), Step { key: 0x5500, ..take(1, m + 2) }])),
    ]
}
